"""Memory for matrices: aligned to the cache line and, by NumPy's own `madvise`, in huge pages when large."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v.errors import W2VError

LINE = 64  # bytes in a cache line, and in the widest vector register


def empty(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """An array of `shape` that starts on a cache line; its values are arbitrary."""
    return _aligned(np.empty, shape, np.dtype(dtype))


def aligned_rows(rows: int, columns: int) -> NDArray[np.float32]:
    """A zeroed (rows, stride) float32 matrix whose every row starts on a cache line.

    stride is `columns` rounded up to a multiple of 16 floats; the columns past `columns` are padding.
    """
    floats = LINE // 4
    return _aligned(np.zeros, (rows, -(-columns // floats) * floats), np.dtype(np.float32))


def _aligned(
    allocate: Callable[[int, type[np.uint8]], NDArray[np.uint8]], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    size = math.prod(shape) * dtype.itemsize
    try:
        raw = allocate(size + LINE, np.uint8)
    except (MemoryError, ValueError) as error:  # ValueError: beyond the address space
        raise W2VError(f"no memory for an array of {size / 1e6:,.0f} MB, shape {shape}") from error
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)
