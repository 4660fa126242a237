"""gensim.matutils: what scripts that use word vectors take of it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


def unitvec(vec: ArrayLike, norm: Literal["l1", "l2", "unique"] = "l2", return_norm: bool = False) -> Any:
    """A dense array over its norm, or over its number of values that are not 0 ("unique"), and that norm if wanted.

    Zeros stay as they are, and have the norm 1. Raises ValueError for another norm.
    """
    vector = np.asarray(vec)
    if norm not in ("l1", "l2", "unique"):
        raise ValueError(f"{norm!r} is not a supported norm: choose l1, l2 or unique")
    length = np.count_nonzero(vector) if norm == "unique" else np.linalg.norm(vector.ravel(), int(norm[1]))
    if not length:
        return (vector, 1.0) if return_norm else vector
    kind = float if np.issubdtype(vector.dtype, np.integer) else vector.dtype
    scaled = (vector / length).astype(kind)
    return (scaled, length) if return_norm else scaled


def argsort(x: ArrayLike, topn: int | None = None, reverse: bool = False) -> NDArray[np.intp]:
    """The places of the `topn` smallest values, or with `reverse` the largest, these first; by default of all."""
    values = np.asarray(x)
    order: NDArray[np.intp] = np.argsort(-values if reverse else values)
    return order[: max(0, len(order) if topn is None else topn)]


def zeros_aligned(
    shape: int | tuple[int, ...], dtype: DTypeLike, order: Literal["C", "F"] = "C", align: int = 128
) -> NDArray[Any]:
    """Zeros whose first byte has an address that `align` divides."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    buffer = np.zeros(size + align, np.uint8)
    start = -buffer.ctypes.data % align
    return buffer[start : start + size].view(dtype).reshape(shape, order=order)
