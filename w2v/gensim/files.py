"""Read and write keys, vectors and attributes in w2v's native format, and in word2vec's formats with gensim's rules."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from w2v._errors import W2VError
from w2v._formats import gensim, native, registry, word2vec
from w2v._formats.header import INT_KEYS
from w2v._formats.vector_file import Array, VectorFile, as_floats, check_content, keep_first_rows, validate
from w2v._options import check_whole
from w2v._system.files import PICKLE, Errors, PathLike, atomic_write_together
from w2v._system.schema import decode
from w2v._text.words import Words
from w2v.gensim.utils import gensim_exceptions, unpacked

log = logging.getLogger("w2v")  # gensim's loggers are silent by default, and users must see that data is lost

Counts = tuple[PathLike, Array]
MAPPED_BYTES = 10 << 20  # size of a file above which the argument mmap has an effect; gensim saves such arrays apart

# -- w2v's native format ----------------------------------------------------------------------------


def keys_to_words(keys: Sequence[Any]) -> tuple[Words, dict[str, Array]]:
    """Convert keys to words; if some are ints, also return a bool array (V,) that marks them.

    Raises:
        W2VError: A key is neither str nor int.
    """
    if set(map(type, keys)) == {str}:
        return Words.of(keys), {}
    is_int = np.array([isinstance(key, int | np.integer) and not isinstance(key, bool) for key in keys], bool)
    for key, number in zip(keys, is_int.tolist(), strict=True):
        if not (number or isinstance(key, str)):
            raise W2VError(
                f"not written: the key {key!r:.60} is neither str nor int: use save_word2vec_format, which writes "
                "keys of any type as text"
            )
    return Words.of(map(str, keys)), {INT_KEYS: is_int}


def words_to_keys(path: PathLike, content: VectorFile) -> list[Any]:
    """Convert the words of a file back to the keys that `keys_to_words` converted.

    Raises:
        W2VError: The marks of int keys are damaged.
    """
    keys: list[Any] = content.words.tolist()
    is_int = content.tensors.get(INT_KEYS, np.zeros(0, bool))
    if is_int.shape not in ((0,), (len(keys),)):
        raise W2VError(f"{path}: damaged: it has {len(keys)} keys, but marks of int keys of shape {is_int.shape}")
    try:
        for row in np.flatnonzero(is_int).tolist():
            keys[row] = int(keys[row])
    except ValueError:
        raise W2VError(f"{path}: damaged: the key {keys[row]!r:.60} is marked as an int, but is not one") from None
    return keys


def as_matrix(vectors: Any, words: Words) -> Array:
    """Return the vectors of V words as an array (V, D): float16 as it is, and all other types as float32.

    A sparse matrix, or another object with a vector for each row, becomes an array.
    """
    if hasattr(vectors, "toarray"):
        vectors = vectors.toarray()
    elif not isinstance(vectors, np.ndarray):
        vectors = np.stack([vectors[row] for row in range(len(vectors))])
    return vectors if vectors.dtype == np.float16 else as_floats(vectors, words=words)


def write(fname_or_handle: PathLike | BinaryIO, content: VectorFile) -> None:
    """Write a native file to a path or to an open file."""
    if isinstance(fname_or_handle, str | os.PathLike):
        with gensim_exceptions(fname_or_handle):
            native.FORMAT.save(fname_or_handle, content)
        return
    with tempfile.TemporaryDirectory() as folder:
        write(path := Path(folder) / "content", content)
        with path.open("rb") as file:
            shutil.copyfileobj(file, fname_or_handle)


def read(path: PathLike, mmap: bool = False) -> VectorFile:
    """Read any file that w2v.load reads, including the whole content of a model that gensim saved, compressed or not.

    Arrays that are memory-mapped are read-only. As in gensim, small ones never are.
    """
    with gensim_exceptions(path), unpacked(path, PICKLE) as file, registry.watch_format(file) as file_format:
        if file_format.name == "gensim":
            return validate(file, gensim.read_saved(file), "strict")
        return registry.read(file, mmap and Path(file).stat().st_size > MAPPED_BYTES)


# -- attributes: arrays of numbers as tensors, all others as JSON -------------------------------------


def user_attributes(obj: object, reserved: Collection[str]) -> dict[str, Any]:
    """Return the public attributes of an object that are neither `reserved` nor defined by its class."""
    names = [name for name in vars(obj) if not (name in reserved or name.startswith("_") or hasattr(type(obj), name))]
    return {name: getattr(obj, name) for name in names}


def pack(name: str, values: Mapping[str, Any]) -> dict[str, Array]:
    """Convert values, by key, to arrays. Warn of each value that `unpack` could not restore, and leave it out.

    An array of numbers is stored as `name`.KEY. All other values are stored together, as JSON, in the array `name`.
    """
    arrays: dict[str, Array] = {}
    json_values: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "biuf" and value.itemsize <= 8:
            arrays[f"{name}.{key}"] = value.astype(value.dtype.newbyteorder("="), copy=False)
            continue
        plain = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
        with suppress(TypeError, ValueError, RecursionError):
            if json.loads(json.dumps(plain)) == plain:
                json_values[key] = plain
                continue
        warn_not_saved(f"the attribute {key}, which is neither an array of numbers nor JSON")
    if json_values:
        arrays[name] = np.frombuffer(json.dumps(json_values).encode(), np.uint8)
    return arrays


def warn_not_saved(part: str) -> None:
    """Log a warning that the file will lack this part of the object."""
    log.warning("not saved: %s", part)


def unpack(path: PathLike, name: str, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Return the values that `pack` converted to these arrays.

    Raises:
        W2VError: The arrays are damaged.
    """
    values: dict[str, Any] = {}
    if name in arrays:
        values |= decode(dict[str, Any], arrays[name].tobytes(), f"{path}: its attributes")
    return values | {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}


# -- word2vec's formats -----------------------------------------------------------------------------


def write_word2vec(
    path: PathLike, keys: list[str], vectors: Array, binary: bool, head: bytes, append: bool, counts: Counts | None
) -> None:
    """Write keys and vectors in word2vec's text or binary format.

    The text format allows spaces inside keys, because a reader can count the values from the end of a line.

    Args:
        head: The first line, or b"".
        counts: The path of a second file for keys and values, and the value of each key. Both files are replaced
            together.

    Raises:
        W2VError: A key cannot be stored in this format.
    """
    for key in keys:
        if key != key.strip():
            raise W2VError(f"{path}: not written: the key {key!r:.60} begins or ends with white space")
    content = VectorFile(Words.of(keys), as_floats(vectors, path, keys))
    check_content(path, content)
    blocks = word2vec.encode_rows(path, content, binary=binary, separators=b" \t\n\r" if binary else b"\t\n\r")
    paths = [path] if counts is None else [counts[0], path]
    with gensim_exceptions(path), ExitStack() as stack:
        if append:
            outputs: list[BinaryIO] = [stack.enter_context(Path(each).open("ab")) for each in paths]
        else:
            outputs = stack.enter_context(atomic_write_together(paths))
        *counts_file, raw = outputs
        out = stack.enter_context(word2vec.compress_by_name(path, raw))
        if counts:
            pairs = zip(keys, counts[1], strict=True)
            counts_file[0].writelines(f"{key} {value}\n".encode() for key, value in pairs)
        out.write(head)
        for _, block in blocks:
            out.write(block)


def read_word2vec(path: PathLike, encoding: str, errors: Errors, limit: int | None) -> VectorFile:
    """Read the first `limit` words and vectors of a file. If a word occurs twice, its first vector counts.

    Raises:
        OSError: The file cannot be read.
        EOFError: The file is truncated.
        UnicodeDecodeError: A word is not in `encoding`.
        W2VError: The file has other damage.
    """
    if limit is not None:
        check_whole(1, limit=limit)
    with gensim_exceptions(path):
        content = registry.read(path, errors=None, limit=limit)
    return keep_first_rows(path, replace(content, words=content.words.to_utf8(errors, encoding)))
