"""NumPy's files: one array, without pickle."""

from __future__ import annotations

import math
import os
import tokenize
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from w2v.errors import CutFile, W2VError, one_line
from w2v.system import memory
from w2v.system.files import PathLike, errors_named

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_array(path: PathLike) -> NDArray[Any]:
    """The array of a file; its numbers are in the order of this machine.

    Raises W2VError for a file that cannot be read, is cut or damaged, or holds anything but numbers.
    """
    with errors_named(path), Path(path).open("rb") as file:
        return read_open(path, file, os.fstat(file.fileno()).st_size)


def read_open(path: PathLike, file: BufferedReader, size: int) -> NDArray[Any]:
    """As read_array, from an open file of so many bytes."""
    try:
        shape, by_columns, dtype = HEADERS[npy.read_magic(file)](file)
    except (ValueError, LookupError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError) as error:
        raise W2VError(f"{path}: no NumPy array: {one_line(error)}") from error
    return read_values(path, file, size - file.tell(), shape, dtype, by_columns)


def read_values(
    path: PathLike, file: BufferedReader, size: int, shape: tuple[int, ...], dtype: np.dtype[Any], by_columns: bool
) -> NDArray[Any]:
    """An array of this shape and type from the rest of a file, which has so many bytes."""
    if dtype.kind not in "fiu" or len(shape) > 2 or any(length < 0 for length in shape):
        raise W2VError(f"{path}: an array of type {dtype} and shape {shape}: expected one row or matrix of numbers")
    if math.prod(shape) * dtype.itemsize > size:
        raise CutFile(f"{path}: cut: an array of type {dtype} and shape {shape} in {size:,} bytes")
    array = memory.empty(shape[::-1] if by_columns else shape, dtype)
    if file.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:
        raise CutFile(f"{path}: cut while it was read")
    return (array.T if by_columns else array).astype(dtype.newbyteorder("="), copy=False)
