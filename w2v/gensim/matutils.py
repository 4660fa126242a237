"""gensim.matutils: the functions that scripts with word vectors use."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from w2v.gensim.fall_through import attributes_of, has_gensim, import_own, missing


def unitvec(vec: Any, norm: Literal["l1", "l2", "unique"] = "l2", return_norm: bool = False) -> Any:
    """Divide an array by its norm and, with `return_norm`, also return the norm.

    The norm "unique" is the number of nonzero values. An array of zeros is not changed; its norm is 1.0.

    Args:
        vec: An array. gensim, if it is installed, also divides its sparse vectors and SciPy's.

    Raises:
        ValueError: The norm is unknown, or the vector is not an array and gensim is not installed.
    """
    if not isinstance(vec, np.ndarray):
        if not has_gensim():
            raise ValueError(missing(f"matutils.unitvec of type {type(vec).__name__}"))
        return import_own("gensim.matutils").unitvec(vec, norm, return_norm)
    if norm not in ("l1", "l2", "unique"):
        raise ValueError(f"{norm!r} is not a supported norm: choose l1, l2 or unique")
    length = np.count_nonzero(vec) if norm == "unique" else np.linalg.norm(vec.ravel(), int(norm[1]))
    if not length:
        return (vec, 1.0) if return_norm else vec
    dtype = float if np.issubdtype(vec.dtype, np.integer) else vec.dtype
    scaled = (vec / length).astype(dtype)
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
