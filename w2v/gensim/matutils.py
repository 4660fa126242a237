"""gensim.matutils: the functions that scripts with word vectors use."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from w2v.gensim.fall_through import attributes_of


def unitvec(vec: ArrayLike, norm: Literal["l1", "l2", "unique"] = "l2", return_norm: bool = False) -> Any:
    """Divide a dense array by its norm and, with `return_norm`, also return the norm.

    The norm "unique" is the number of nonzero values. An array of zeros is not changed; its norm is 1.0.

    Raises:
        ValueError: The norm is unknown.
    """
    vector = np.asarray(vec)
    if norm not in ("l1", "l2", "unique"):
        raise ValueError(f"{norm!r} is not a supported norm: choose l1, l2 or unique")
    length = np.count_nonzero(vector) if norm == "unique" else np.linalg.norm(vector.ravel(), int(norm[1]))
    if not length:
        return (vector, 1.0) if return_norm else vector
    dtype = float if np.issubdtype(vector.dtype, np.integer) else vector.dtype
    scaled = (vector / length).astype(dtype)
    return (scaled, length) if return_norm else scaled


def argsort(x: ArrayLike, topn: int | None = None, reverse: bool = False) -> NDArray[np.intp]:
    """Return the indices that sort the values, or only the first `topn`. With `reverse`, the largest come first."""
    values = np.asarray(x)
    order: NDArray[np.intp] = np.argsort(-values if reverse else values)
    return order[: max(0, len(order) if topn is None else topn)]


def zeros_aligned(
    shape: int | tuple[int, ...], dtype: DTypeLike, order: Literal["C", "F"] = "C", align: int = 128
) -> NDArray[Any]:
    """Return an array of zeros that starts at a multiple of `align` bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    buffer = np.zeros(size + align, np.uint8)
    start = -buffer.ctypes.data % align
    return buffer[start : start + size].view(dtype).reshape(shape, order=order)


__getattr__ = attributes_of(__name__)
