"""NumPy files without pickle: any array of numbers, and vectors as a matrix with a separate file of words."""

from __future__ import annotations

import math
import os
import tokenize
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from w2v._errors import TruncatedFile, W2VError, one_line
from w2v._formats.base import Format, has_signature
from w2v._formats.bfloat16 import float32_blocks
from w2v._formats.vector_file import VectorFile, as_floats
from w2v._formats.word_lists import LINE_SEPARATORS, read_words, write_words_with_matrix
from w2v._progress import Meter, Report
from w2v._system import memory
from w2v._system.files import NUMPY, PathLike, open_regular, translate_os_errors

WORDS_SUFFIX = ".words.txt"  # suffix of the file with the words; it replaces .npy
BLOCK_ROWS = 1 << 12
HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
HEADER_ERRORS = (ValueError, LookupError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError)


def read_array(path: PathLike) -> NDArray[Any]:
    """Read an array, in the byte order of this machine.

    Raises:
        W2VError: If the file cannot be read, is truncated or damaged, or does not hold a row or matrix of numbers.
    """
    with translate_os_errors(path), open_regular(path) as file:
        try:
            shape, is_fortran_order, dtype = HEADER_READERS[npy.read_magic(file)](file)
        except HEADER_ERRORS as error:
            raise W2VError(f"{path}: not a NumPy array: {one_line(error)}") from error
        if dtype.kind not in "fiu" or not dtype.itemsize or len(shape) > 2 or any(length < 0 for length in shape):
            raise W2VError(f"{path}: an array of type {dtype} and shape {shape}: expected one row or matrix of numbers")
        bytes_left = os.fstat(file.fileno()).st_size - file.tell()
        if math.prod(shape) * dtype.itemsize > bytes_left:
            raise TruncatedFile(
                f"{path}: truncated: an array of type {dtype} and shape {shape} in {bytes_left:,} bytes"
            )
        array = memory.empty(shape[::-1] if is_fortran_order else shape, dtype)
        if file.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:
            raise TruncatedFile(f"{path}: truncated while it was read")
    return (array.T if is_fortran_order else array).astype(dtype.newbyteorder("="), copy=False)


def header(shape: tuple[int, ...], descr: str = "<f4") -> bytes:
    """Return the header of a file. NumPy pads it, so a header with another number of rows has the same length."""
    file = BytesIO()
    npy.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


def read(path: PathLike, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read a matrix, and its words from the words file; see Format.read."""
    array = read_array(path)
    if array.ndim != 2 or array.dtype.kind != "f":
        raise W2VError(f"{path}: an array of type {array.dtype} and shape {array.shape}: expected a matrix of floats")
    words, counts = read_words(Path(path).with_suffix(WORDS_SUFFIX), len(array))
    vectors = np.ascontiguousarray(as_floats(array, path, words))
    return VectorFile(words, vectors, counts)


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a matrix, and its words to the words file; both are replaced together."""
    descr = "<f2" if content.vectors.dtype == np.float16 else "<f4"
    with write_words_with_matrix(path, WORDS_SUFFIX, content.words, None, replace) as file:
        file.write(header(content.vectors.shape, descr))
        for _, block in float32_blocks(content.vectors, BLOCK_ROWS, Meter(progress, "save")):
            file.write(block.astype(descr, copy=False).data)


FORMAT = Format(
    "numpy",
    (".npy",),
    6,
    has_signature(NUMPY),
    read,
    write,
    words_suffix=WORDS_SUFFIX,
    storages=("float32", "f16"),
    separators=LINE_SEPARATORS,
)
