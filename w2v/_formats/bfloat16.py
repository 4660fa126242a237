"""Matrices stored as float32 or as bfloat16, the upper half of a float32.

NumPy has no bfloat16 type; the optional package ml_dtypes provides one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, import_optional
from w2v._formats import _formats
from w2v._progress import Meter
from w2v._settings import Storage

BLOCK_VALUES = 1 << 16  # values that are converted to float32 per block: a block fits in a core's cache


def bfloat16() -> np.dtype[Any]:
    """Return the bfloat16 dtype.

    Raises:
        SettingsError: If ml_dtypes is missing.
    """
    ml_dtypes = import_optional("bfloat16 needs ml_dtypes", "bf16", "ml_dtypes", kind=SettingsError)
    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return dtype


def dtype_of(storage: Storage) -> np.dtype[Any]:
    """Return the dtype of matrices with this storage.

    Raises:
        SettingsError: If the storage is bfloat16 and ml_dtypes is missing.
    """
    return bfloat16() if storage == "bf16" else np.dtype(np.float32)


def stores_exactly(matrix: NDArray[Any], storage: Storage) -> bool:
    """Return True if this storage keeps all values of a matrix (V, D) exactly. NaN counts as equal to NaN."""
    dtype = dtype_of(storage)
    if dtype == matrix.dtype or dtype == np.float32:
        return True
    with np.errstate(all="ignore"):
        rows = max(1, BLOCK_VALUES // max(1, matrix.shape[1]))
        pairs = ((block.astype(dtype).astype(np.float32), block) for _, block in float32_blocks(matrix, rows))
        return all(np.array_equal(rounded, block, equal_nan=True) for rounded, block in pairs)


def is_bfloat16(array: NDArray[Any]) -> bool:
    return array.dtype.name == "bfloat16"


def is_training_dtype(array: NDArray[Any]) -> bool:
    """Return True for float32 and bfloat16, the types that training keeps matrices in."""
    return array.dtype == np.float32 or is_bfloat16(array)


def as_uint16(array: NDArray[Any]) -> NDArray[Any]:
    """View a bfloat16 array as uint16, because bfloat16 has no buffer interface. Return other arrays unchanged."""
    return array.view(np.uint16) if is_bfloat16(array) else array


def to_float32(array: NDArray[Any]) -> NDArray[Any]:
    """Convert a bfloat16 array to float32, with the same values. Return other arrays unchanged."""
    return array.astype(np.float32) if is_bfloat16(array) else array


def first_non_finite_row(matrix: NDArray[Any]) -> int:
    """Return the first row of a matrix (V, D) that has a NaN or an infinity, or -1."""
    for start, block in float32_blocks(matrix):
        row = _formats.first_non_finite_row(block)
        if row >= 0:
            return start + row
    return -1


def float32_blocks(
    matrix: NDArray[Any], rows: int | None = None, meter: Meter | None = None
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the rows of a matrix (V, D) as contiguous float32 blocks, each with the index of its first row.

    Args:
        rows: The maximum number of rows in a block. By default, a float32 matrix with contiguous rows is one block
            without a copy; other matrices are copied a few rows at a time.
        meter: Gets the number of rows of the blocks that the caller is done with.
    """
    if rows is None and isinstance(matrix, np.ndarray) and matrix.dtype == np.float32 and matrix.strides[1] == 4:
        yield 0, matrix
        return
    rows = rows or max(1, BLOCK_VALUES // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), rows):
        yield start, np.ascontiguousarray(matrix[start : start + rows], np.float32)
        if meter:
            meter(min(start + rows, len(matrix)), len(matrix))
