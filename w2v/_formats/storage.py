"""Types of matrices in files: float32, and smaller types and sparse matrices, which become float32 row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v._errors import SettingsError
from w2v._formats import bfloat16
from w2v._system import memory
from w2v._text._subwords import sum_sparse_rows

FileStorage = Literal["float32", "bf16", "f16", "int8"]

SCALES_SUFFIX = "_scales"  # an int8 array NAME has its scales in the array NAME_scales
# A sparse matrix NAME has its values in NAME_values, and these arrays. NAME_width has its number of columns.
COLUMNS_SUFFIX, SPARSE_SUFFIXES = "_columns", ("_values", "_columns", "_starts", "_width")
DTYPES: dict[FileStorage, Callable[[], np.dtype[Any]]] = {
    "float32": lambda: np.dtype(np.float32),
    "bf16": bfloat16.bfloat16,
    "f16": lambda: np.dtype(np.float16),
    "int8": lambda: np.dtype(np.int8),
}


class CompactMatrix:
    """A matrix (V, D) of a smaller type, in memory or in a mapped file, that converts rows to float32 on access.

    np.asarray converts it to a float32 copy, and so do NumPy functions. A slice of rows is a view.

    Attributes:
        rows: int8, float16 or bfloat16 (V, D).
        scales: float32 (V,), the factors of int8 rows; None for other types.
    """

    ndim, dtype = 2, np.dtype(np.float32)

    def __init__(self, rows: NDArray[Any], scales: NDArray[np.float32] | None = None) -> None:
        self.rows, self.scales = rows, scales
        self.shape, self.size = rows.shape, rows.size

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return CompactMatrix(self.rows[index], None if self.scales is None else self.scales[index])
        rows = np.asarray(self.rows[index], np.float32)
        return rows if self.scales is None else rows * self.scales[index][..., np.newaxis]

    def take(self, rows: NDArray[np.int64], axis: int) -> CompactMatrix:
        """Return some rows, like NumPy's `take` along axis 0."""
        return CompactMatrix(self.rows.take(rows, axis), None if self.scales is None else self.scales.take(rows))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        matrix: NDArray[np.float32] = memory.empty(self.shape)
        for start, block in bfloat16.float32_blocks(self.rows):
            matrix[start : start + len(block)] = block
        if self.scales is not None:
            matrix *= self.scales[:, np.newaxis]
        return matrix.astype(dtype or np.float32, copy=False)


class SparseMatrix(CompactMatrix):
    """A matrix (V, D) of float32 with few values besides 0, which converts rows to dense ones on access.

    Attributes:
        rows: float32 (n,), the values of row 0, then those of row 1, and so on.
        columns: int32 (n,), the column of each value.
        starts: int64 (V + 1,), where the values of each row begin.
    """

    def __init__(self, rows: NDArray[Any], columns: NDArray[Any], starts: NDArray[Any], width: int) -> None:
        self.rows, self.columns, self.starts, self.scales = rows, columns, starts, None
        self.shape = len(starts) - 1, width
        self.size = math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return self.rows.nbytes + self.columns.nbytes + self.starts.nbytes

    @classmethod
    def of(cls, matrix: NDArray[np.float32]) -> SparseMatrix:
        """Take the values of a dense matrix that are not 0."""
        rows, columns = np.nonzero(matrix)
        starts = np.append(0, np.cumsum(np.bincount(rows, minlength=len(matrix))))
        return cls(matrix[rows, columns], columns.astype(np.int32), starts, matrix.shape[1])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice) and index.step in (None, 1):
            first, end, _ = index.indices(len(self))
            end = max(first, end)
            chosen = slice(self.starts[first], self.starts[end])
            starts = self.starts[first : end + 1] - self.starts[first]
            return SparseMatrix(self.rows[chosen], self.columns[chosen], starts, self.shape[1])
        numbers = np.arange(len(self))[index]
        if isinstance(index, slice):
            return self.take(numbers, 0)
        rows: NDArray[np.float32] = self.sums(
            numbers.ravel(), np.arange(numbers.size + 1), np.ones(numbers.size, np.float32)
        )
        return rows.reshape(*numbers.shape, self.shape[1])

    def take(self, rows: NDArray[np.int64], axis: int) -> CompactMatrix:
        return SparseMatrix.of(self[rows])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        matrix: NDArray[np.float32] = self[np.arange(len(self))]
        return matrix.astype(dtype or np.float32, copy=False)

    def sums(
        self, chosen: NDArray[Any], starts: NDArray[np.int64], weights: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return weighted sums of rows, float32 (n, D): see `sums_of_rows`."""
        sparse = self.rows, self.columns, self.starts, self.shape[1]
        return sum_sparse_rows(*sparse, chosen.astype(np.int32, copy=False), starts, weights)


def join_rows(matrices: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the rows of matrices in one; a SparseMatrix if all are sparse.

    If there are two, and the second follows the first in memory, as in a mapped file, they are not copied.
    """
    sparse: list[Any] = [each for each in matrices if isinstance(each, SparseMatrix)]
    if len(sparse) < len(matrices):
        if len(matrices) == 2 and not sparse and _are_adjacent(*matrices):
            return np.lib.stride_tricks.as_strided(matrices[0], (sum(map(len, matrices)), matrices[0].shape[1]))
        return np.concatenate(matrices)
    counts = np.concatenate([np.diff(each.starts) for each in sparse])
    rows, columns = (np.concatenate([getattr(each, name) for each in sparse]) for name in ("rows", "columns"))
    joined = SparseMatrix(rows, columns, np.append(0, np.cumsum(counts)), sparse[0].shape[1])
    return cast(NDArray[Any], joined)


def _are_adjacent(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Return True if two matrices of the same array, such as a mapped file, follow each other in memory."""
    is_next = second.ctypes.data == first.ctypes.data + first.nbytes and first.dtype == second.dtype
    return is_next and first.base is second.base is not None and bool(first.flags.c_contiguous)


def is_matrix(array: NDArray[Any]) -> bool:
    """Return True if files can store matrices of this array's dtype."""
    return isinstance(array, CompactMatrix) or bfloat16.is_training_dtype(array) or array.dtype == np.float16


def to_storage(matrix: NDArray[Any], storage: FileStorage) -> NDArray[Any]:
    """Convert a matrix (V, D) to another type; int8 becomes a CompactMatrix.

    Raises:
        SettingsError: If float16 cannot represent a value, or if bfloat16 needs ml_dtypes and it is missing.
    """
    dtype = DTYPES[storage]()
    rows = memory.empty(matrix.shape, dtype)
    scales = np.empty(len(matrix) if storage == "int8" else 0, np.float32)
    for start, block in bfloat16.float32_blocks(matrix):
        part = slice(start, start + len(block))
        if storage == "int8":
            rows[part], scales[part] = quantise(block)
            continue
        with np.errstate(over="ignore"):
            rows[part] = block
        if np.isinf(rows[part]).any():
            other = "bf16" if storage == "f16" else "float32"
            raise SettingsError(f"storage {storage}: {np.abs(block).max():.6g} is too large for it: choose {other}")
    return cast(NDArray[Any], CompactMatrix(rows, scales)) if storage == "int8" else rows


def quantise(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise vectors (n, D) to 8-bit integers (n, D) and float32 scales (n,): row i is about integers[i] * scales[i].

    The value with the largest magnitude in a row becomes 127 or -127, so errors are at most 1/254 of this magnitude.
    """
    largest = np.abs(vectors).max(axis=1)
    # Divide first: 127 / largest would overflow for a subnormal `largest`.
    divisors = np.where(largest == 0, np.float32(1), largest)[:, None]
    return np.rint(vectors / divisors * 127).astype(np.int8), largest / np.float32(127)


def split_matrices(tensors: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return named arrays as a file stores them: each CompactMatrix becomes its parts, with a suffix to its name."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, array in tensors.items():
        if isinstance(array, SparseMatrix):
            parts = array.rows, array.columns, array.starts, np.array([array.shape[1]])
            arrays |= {name + suffix: part for suffix, part in zip(SPARSE_SUFFIXES, parts, strict=True)}
        elif isinstance(array, CompactMatrix):
            arrays |= (
                {name: array.rows} if array.scales is None else {name: array.rows, name + SCALES_SUFFIX: array.scales}
            )
        else:
            arrays[name] = array
    return arrays


def join_matrices(tensors: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Undo `split_matrices`.

    Raises:
        ValueError: If the parts of a matrix do not fit each other.
    """
    arrays = dict(tensors)
    for name in [name for name in tensors if name.endswith(SCALES_SUFFIX)]:
        scales, rows = arrays.pop(name), arrays.get(name.removesuffix(SCALES_SUFFIX), np.empty(0))
        if scales.dtype != np.float32 or rows.dtype != np.int8 or rows.ndim != 2 or scales.shape != rows.shape[:1]:
            raise ValueError(f"the array {name!r} does not fit the array that it scales")
        arrays[name.removesuffix(SCALES_SUFFIX)] = cast(NDArray[Any], CompactMatrix(rows, scales))
    for name in [name.removesuffix(COLUMNS_SUFFIX) for name in tensors if name.endswith(COLUMNS_SUFFIX)]:
        # Copies, because a mapped file may change after the check.
        parts = [np.array(arrays.pop(name + suffix, 0)) for suffix in SPARSE_SUFFIXES]
        arrays[name] = cast(NDArray[Any], _sparse_matrix(name, *parts))
    return arrays


def _sparse_matrix(
    name: str, values: NDArray[Any], columns: NDArray[Any], starts: NDArray[Any], width: NDArray[Any]
) -> SparseMatrix:
    if (
        values.dtype != np.float32 or columns.dtype != np.int32 or starts.dtype != np.int64 or width.dtype != np.int64
        or values.ndim != 1 or columns.shape != values.shape
        or starts.ndim != 1 or width.shape != (1,) or not len(starts)
        or starts[0] != 0 or starts[-1] != len(values) or np.any(starts[1:] < starts[:-1])
        or columns.min(initial=0) < 0 or columns.max(initial=-1) >= width[0]
    ):  # fmt: skip
        raise ValueError(f"the arrays of the sparse matrix {name!r} are inconsistent")
    return SparseMatrix(values, columns, starts, int(width[0]))
