"""The native format: named arrays and strings in one `.safetensors` file, without pickle.

The layout is the public safetensors format: the length of the header (8 bytes, little-endian), the header in JSON, and
the bytes of the arrays, end to end. w2v does not use the safetensors package, because that package makes copies: of
matrices with padded rows when it writes, and of all arrays when it opens a file.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from io import BufferedReader
from typing import Any, BinaryIO, get_args

import numpy as np

from w2v._detect import is_native
from w2v._errors import SettingsError, W2VError, one_line, translate_errors
from w2v._formats import bfloat16, storage
from w2v._formats.base import EVERYTHING, Format
from w2v._formats.header import ModelHeader
from w2v._formats.vector_file import Array, VectorFile
from w2v._progress import Meter, Report
from w2v._system import memory
from w2v._system.files import PathLike, atomic_write, open_regular, translate_os_errors
from w2v._text.words import Words

VERSION = 1
MAX_HEADER_BYTES = 1 << 20  # parsed JSON takes about twenty times as much memory
BLOCK_BYTES = 1 << 20  # bytes of an array written at a time

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "|b1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a vector file atomically.

    Raises:
        W2VError: If the file cannot be written, or if `read` would refuse the content.
    """
    write_native(
        path, storage.split_matrices(arrays_of(content)), content.header.to_strings(path), replace, progress=progress
    )


def arrays_of(content: VectorFile) -> dict[str, Array]:
    """Return the arrays of a file, by name; `from_arrays` reads them."""
    arrays = {**content.tensors, "vectors": content.vectors}
    arrays |= {"words": content.words.blob, "word_offsets": content.words.offsets}
    return arrays if content.counts is None else arrays | {"counts": content.counts}


def read(path: PathLike, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read a vector file; see Format.read.

    Raises:
        W2VError: If the file is damaged or has no vectors.
    """
    return from_arrays(path, *read_native(path))


def read_mapped(path: PathLike) -> VectorFile:
    """Memory-map a vector file. Word offsets are checked; the bytes of words and the values of vectors are not."""
    return from_arrays(path, *read_native(path, mmap=True))


def from_arrays(path: PathLike, tensors: dict[str, Array], metadata: dict[str, str]) -> VectorFile:
    """Return the content of a file with these arrays and strings. Raise W2VError if it is damaged or has no vectors."""
    try:
        tensors = storage.join_matrices(tensors)
        vectors, blob, offsets = (tensors.pop(name) for name in ("vectors", "words", "word_offsets"))
    except KeyError as error:
        raise W2VError(f"{path}: no vectors: the array {error} is missing") from error
    except ValueError as error:
        raise W2VError(f"{path}: damaged: {one_line(error)}") from error
    counts = tensors.pop("counts", None)
    rows = len(vectors) if vectors.ndim == 2 else 0
    if (
        not storage.is_matrix(vectors) or not vectors.size
        or blob.dtype != np.uint8 or blob.ndim != 1
        or offsets.dtype != np.int64 or offsets.shape != (rows + 1,)
        or (counts is not None and (counts.dtype != np.int64 or counts.shape != (rows,)))
    ):  # fmt: skip
        raise W2VError(f"{path}: damaged: its arrays are inconsistent")
    with translate_errors(str(path), W2VError):
        words = Words(blob, np.array(offsets))  # a copy, since a mapped file may change after the check
    return VectorFile(words, vectors, counts, tensors, ModelHeader.from_strings(metadata, path))


# -- arrays and strings -------------------------------------------------------------------------


def write_native(
    path: PathLike,
    tensors: Mapping[str, Array],
    metadata: Mapping[str, str],
    replace: bool = True,
    follow: bool = True,
    progress: Report | None = None,
) -> None:
    """Write arrays and strings to one file atomically.

    Args:
        tensors: Arrays by name. Views with padded rows are written in blocks, without a copy of the whole array.
        metadata: Strings by name.
        replace: See atomic_write.
        follow: See atomic_write.
    """
    names, header = header_bytes(path, tensors, metadata)
    meter, done, size = Meter(progress, "save"), 0, sum(len(np.atleast_1d(tensors[name])) for name in names)
    with atomic_write(path, replace, follow) as file:
        file.write(header)
        for name in names:
            array = bfloat16.as_uint16(np.atleast_1d(tensors[name]))
            rows = max(1, BLOCK_BYTES * len(array) // max(1, array.nbytes))
            for start in range(0, len(array), rows):
                file.write(np.ascontiguousarray(array[start : start + rows]).data)
                meter(done + min(start + rows, len(array)), size)
            done += len(array)


def header_bytes(path: object, tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> tuple[list[str], bytes]:
    """Return the names of the arrays in file order, and the bytes of a file before the arrays.

    Raises:
        W2VError: If the header would have more than MAX_HEADER_BYTES.
    """
    # The format forbids gaps between arrays. In descending order of element size, all are aligned without gaps.
    names = sorted(tensors, key=lambda name: -tensors[name].itemsize)
    header: dict[str, Any] = {"__metadata__": {"format": "w2v", "version": str(VERSION), **metadata}}
    position = 0
    for name in names:
        array = tensors[name]
        header[name] = {
            "dtype": "BF16" if bfloat16.is_bfloat16(array) else _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % memory.CACHE_LINE)
    if len(text) > MAX_HEADER_BYTES:
        raise W2VError(f"cannot write {path}: a header of {len(text)} bytes; at most {MAX_HEADER_BYTES} fit")
    return names, len(text).to_bytes(8, "little") + text


def read_native(path: PathLike, mmap: bool = False, foreign: bool = False) -> tuple[dict[str, Array], dict[str, str]]:
    """Read the arrays and strings of a native file.

    Args:
        path: The file.
        mmap: Return read-only arrays that are read from disk when they are used.
        foreign: Accept any safetensors file, not only native ones.

    Raises:
        W2VError: If the file is missing, truncated, inconsistent, in another format or from a newer version.
        SettingsError: If the file has bfloat16 arrays and ml_dtypes is missing.
    """
    with translate_os_errors(path), open_regular(path) as file:
        return read_open(path, file, mmap, foreign)


def read_open(
    path: PathLike, file: BufferedReader, mmap: bool, foreign: bool = False
) -> tuple[dict[str, Array], dict[str, str]]:
    """Read an open file like `read_native`.

    Raises:
        W2VError, SettingsError: As in `read_native`.
        OSError: If reading fails.
    """
    index, metadata, start = _read_header(path, file, foreign)
    tensors: dict[str, Array] = {}
    if mmap:
        mapping = memory.MappedFile(file)
        for name, (dtype, shape, begin) in index.items():
            array = np.frombuffer(mapping, dtype, math.prod(shape), start + begin)
            tensors[name] = np.require(array.reshape(shape), requirements="A")  # A: aligned
        return tensors, metadata
    for name, (dtype, shape, begin) in index.items():
        tensors[name] = array = memory.empty(shape, dtype)
        file.seek(start + begin)
        if file.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:
            raise W2VError(f"{path}: truncated while it was read")
    return tensors, metadata


_TensorIndex = dict[str, tuple[np.dtype[Any], tuple[int, ...], int]]  # name: dtype, shape, first byte


def _read_header(path: PathLike, file: BinaryIO, foreign: bool) -> tuple[_TensorIndex, dict[str, str], int]:
    """Read and check the header.

    Returns:
        The index of the arrays, the metadata, and the position of the first array in the file.
    """
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > size - 8:
        raise W2VError(f"{path}: truncated: a header of {length} bytes in a file of {size}")
    if length > MAX_HEADER_BYTES:
        raise W2VError(f"{path}: a header of {length} bytes; at most {MAX_HEADER_BYTES} are accepted")
    try:
        header = json.loads(file.read(length))
        metadata = header.pop("__metadata__", {})
        if not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("its metadata holds a value that is not a string")
        index, end = _index_tensors(header)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise W2VError(f"{path}: its header is damaged: {one_line(error)}") from error
    if metadata.get("format") != "w2v" and not foreign:
        contents = f"the arrays {list(index)}" if index else "nothing"
        raise W2VError(f"{path}: a safetensors file, but not a w2v model: it holds {contents:.200}")
    version = metadata.get("version", "")
    if version != str(VERSION) and not foreign:
        raise W2VError(f"{path}: format version {version[:20]!r}; this w2v reads version {VERSION}: upgrade it")
    if size != 8 + length + end:
        problem = "truncated" if size < 8 + length + end else "bytes after its end"
        raise W2VError(f"{path}: {problem}: the header describes {8 + length + end} bytes, the file has {size}")
    return index, metadata, 8 + length


def _index_tensors(header: dict[str, Any]) -> tuple[_TensorIndex, int]:
    """Return the index of the arrays that a header describes, and the end of the last array.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: If the header is wrong.
        SettingsError: If the header has bfloat16 arrays and ml_dtypes is missing.
    """
    index: _TensorIndex = {}
    position = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        shape, (begin, end) = entry["shape"], entry["data_offsets"]
        if entry["dtype"] not in (*_DTYPES, "BF16"):
            raise ValueError(f"tensor {name!r} has the unknown type {entry['dtype']!r}")
        dtype = bfloat16.bfloat16() if entry["dtype"] == "BF16" else np.dtype(_DTYPES[entry["dtype"]])
        if not all(type(number) is int and number >= 0 for number in (*shape, begin, end)):
            raise ValueError(f"tensor {name!r} has a shape or offset that is not a non-negative integer")
        if len(shape) > 8 or math.prod(filter(None, shape)) >= 1 << 60:
            raise ValueError(f"tensor {name!r} has an impossible shape")
        if begin != position:
            raise ValueError(f"tensor {name!r} begins at byte {begin}, but the previous one ends at {position}")
        if end - begin != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"tensor {name!r} of shape {shape} does not fill bytes {begin} to {end}")
        index[name] = dtype, tuple(shape), begin
        position = end
    return index, position


FORMAT = Format(
    "native",
    (".safetensors",),
    1,
    lambda path, head: is_native(head),
    read,
    write,
    read_mapped,
    stores=EVERYTHING,
    storages=get_args(storage.FileStorage),
)
