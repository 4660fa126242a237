"""The types in which a file holds a matrix of vectors: float32, or a smaller one that rows become float32 from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v.errors import SettingsError
from w2v.formats import bfloat16
from w2v.system import memory

FileStorage = Literal["float32", "bf16", "f16", "int8"]

SCALES = "_scales"  # ends the name of the array with the scales of another, of int8
DTYPES: dict[FileStorage, Callable[[], np.dtype[Any]]] = {
    "float32": lambda: np.dtype(np.float32),
    "bf16": bfloat16.bfloat16,
    "f16": lambda: np.dtype(np.float16),
    "int8": lambda: np.dtype(np.int8),
}


class Rounded:
    """A matrix (V, D) of a smaller type, in memory or in a mapped file: its rows are float32 when they are taken.

    NumPy's functions take it as a float32 matrix, by a copy; slices of rows are no copies.

    Attributes:
        rows: int8, float16 or bfloat16 (V, D). scales: float32 (V,), which int8 rows are multiplied by.
    """

    ndim, dtype = 2, np.dtype(np.float32)

    def __init__(self, rows: NDArray[Any], scales: NDArray[np.float32] | None = None) -> None:
        self.rows, self.scales = rows, scales
        self.shape, self.size = rows.shape, rows.size

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Rounded(self.rows[index], None if self.scales is None else self.scales[index])
        found = np.asarray(self.rows[index], np.float32)
        return found if self.scales is None else found * self.scales[index][..., np.newaxis]

    def take(self, rows: NDArray[np.int64], axis: int) -> Rounded:
        """Some rows, as NumPy's `take` along axis 0."""
        return Rounded(self.rows.take(rows, axis), None if self.scales is None else self.scales.take(rows))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        found: NDArray[np.float32] = memory.empty(self.shape)
        for start, block in bfloat16.blocks(self.rows):
            found[start : start + len(block)] = block
        if self.scales is not None:
            found *= self.scales[:, np.newaxis]
        return found.astype(dtype or np.float32, copy=False)


def is_matrix(array: NDArray[Any]) -> bool:
    """Whether an array has one of the types in which a matrix is stored."""
    return isinstance(array, Rounded) or bfloat16.is_kept(array) or array.dtype == np.float16


def stored(matrix: NDArray[Any], storage: FileStorage) -> NDArray[Any]:
    """A matrix (V, D) in another type; int8 as Rounded.

    Raises SettingsError for values that float16 cannot hold, and for bfloat16 if ml_dtypes is missing.
    """
    dtype = DTYPES[storage]()
    found = memory.empty(matrix.shape, dtype)
    scales = np.empty(len(matrix) if storage == "int8" else 0, np.float32)
    for start, block in bfloat16.blocks(matrix):
        part = slice(start, start + len(block))
        if storage == "int8":
            found[part], scales[part] = quantised(block)
            continue
        with np.errstate(over="ignore"):
            found[part] = block
        if storage == "f16" and np.isinf(found[part]).any():
            raise SettingsError("storage f16: a value is beyond 65,504, the largest that float16 has: choose bf16")
    return cast(NDArray[Any], Rounded(found, scales)) if storage == "int8" else found


def quantised(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Vectors (n, D) as 8-bit integers (n, D) and float32 scales (n,): row i is about integers[i] * scales[i].

    The largest value of a row becomes 127 or -127, so the error of a value is at most 1/254 of it.
    """
    largest = np.abs(vectors).max(axis=1)
    divisors = np.where(largest == 0, np.float32(1), largest)[:, None]  # before 127, since it may be subnormal
    return np.rint(vectors / divisors * 127).astype(np.int8), largest / np.float32(127)


def split(tensors: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Named arrays as they stand in a file: those that are Rounded become integers and scales."""
    found = {}
    for name, array in tensors.items():
        if isinstance(array, Rounded):
            found |= {name: array.rows} if array.scales is None else {name: array.rows, name + SCALES: array.scales}
        else:
            found[name] = array
    return found


def join(tensors: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The opposite of `split`. Raises ValueError for scales that do not fit."""
    found = dict(tensors)
    for name in [name for name in tensors if name.endswith(SCALES)]:
        scales, rows = found.pop(name), found.get(name.removesuffix(SCALES), np.empty(0))
        if scales.dtype != np.float32 or rows.dtype != np.int8 or rows.ndim != 2 or scales.shape != rows.shape[:1]:
            raise ValueError(f"the array {name!r} does not fit the one that it belongs to")
        found[name.removesuffix(SCALES)] = cast(NDArray[Any], Rounded(rows, scales))
    return found
