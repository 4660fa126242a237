"""Matrices stored as float32 or as bfloat16, the upper half of a float32; ml_dtypes, optional, has the NumPy type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, optional
from w2v.formats import _formats
from w2v.settings import Storage

VALUES_AT_ONCE = 1 << 16  # widened at a time: they fit in a core's cache


def bfloat16() -> np.dtype[Any]:
    """The dtype. Raises SettingsError if ml_dtypes is missing."""
    ml_dtypes = optional("bfloat16 needs ml_dtypes", "bf16", "ml_dtypes", kind=SettingsError)
    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return dtype


def dtype_of(storage: Storage) -> np.dtype[Any]:
    """The dtype of matrices with this storage. Raises SettingsError if ml_dtypes is needed and missing."""
    return bfloat16() if storage == "bf16" else np.dtype(np.float32)


def holds(matrix: NDArray[Any], storage: Storage) -> bool:
    """Whether this storage keeps all values of a matrix (V, D) as they are; NaN and infinity are no matter here."""
    dtype = dtype_of(storage)
    if dtype == matrix.dtype or dtype == np.float32:
        return True
    with np.errstate(all="ignore"):
        at_once = max(1, VALUES_AT_ONCE // max(1, matrix.shape[1]))
        pairs = ((block.astype(dtype).astype(np.float32), block) for _, block in blocks(matrix, at_once))
        return all(np.array_equal(rounded, block, equal_nan=True) for rounded, block in pairs)


def is_bfloat16(array: NDArray[Any]) -> bool:
    return array.dtype.name == "bfloat16"


def is_kept(array: NDArray[Any]) -> bool:
    """Whether an array is float32 or bfloat16, the types in which matrices are stored."""
    return array.dtype == np.float32 or is_bfloat16(array)


def bits(array: NDArray[Any]) -> NDArray[Any]:
    """A bfloat16 array viewed as uint16, since bfloat16 has no buffer interface; other arrays unchanged."""
    return array.view(np.uint16) if is_bfloat16(array) else array


def widened(array: NDArray[Any]) -> NDArray[Any]:
    """A bfloat16 array as float32, with the same values; other arrays unchanged."""
    return array.astype(np.float32) if is_bfloat16(array) else array


def first_not_finite(matrix: NDArray[Any]) -> int:
    """The first row of a matrix (V, D) with a NaN or an infinity, or -1."""
    for start, block in blocks(matrix):
        row = _formats.first_not_finite(block)
        if row >= 0:
            return start + row
    return -1


def blocks(matrix: NDArray[Any], rows: int | None = None) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """The rows of a matrix (V, D) as contiguous float32, as (index of the first row, block of at most `rows` rows).

    By default, a matrix whose rows are contiguous float32 is one block; others are copied a few rows at a time.
    """
    if rows is None and isinstance(matrix, np.ndarray) and matrix.dtype == np.float32 and matrix.strides[1] == 4:
        yield 0, matrix
        return
    rows = rows or max(1, VALUES_AT_ONCE // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), rows):
        yield start, np.ascontiguousarray(matrix[start : start + rows], np.float32)
