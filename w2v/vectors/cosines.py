"""Lengths of vectors, vectors scaled to unit length, and cosines, precise for all finite vectors.

In float32 the squares of very large values overflow, and the squares of very small ones underflow. Only vectors with
such values are computed in float64.
"""

import numpy as np
from numpy.typing import NDArray

from w2v.formats.bfloat16 import float32_blocks

Vector = NDArray[np.float32]

EPSILON = 1e-6  # added to the divisor in 3CosMul, to keep the quotient finite
MIN_LENGTH, MAX_LENGTH = np.float32(1e-12), np.float32(1e18)  # between them, squares in float32 are precise


def lengths(vectors: Vector) -> Vector:
    """Return the Euclidean length of each vector (n, D), float32 (n,); inf if it is too large for float32."""
    norms = np.concatenate(
        [np.empty(0, np.float32), *(_lengths_by_squares(block) for _, block in float32_blocks(vectors))]
    )
    extreme = _extreme(norms)
    if extreme.any():
        with np.errstate(over="ignore"):
            norms[extreme] = np.linalg.norm(vectors[extreme].astype(np.float64), axis=1)
    return norms


def cosine(first: Vector, second: Vector) -> float:
    """Return the cosine of two vectors (D,); 0 if one is zero.

    It is computed in float64, so the cosine of equal vectors is 1.
    """
    one, other = first.astype(np.float64), second.astype(np.float64)
    product = np.sqrt((one @ one) * (other @ other))
    return float(one @ other / product) if product else 0.0


def cosines(queries: Vector, vectors: Vector, norms: Vector) -> Vector:
    """Return the cosines of unit queries (D,) or (n, D) with vectors (V, D): (V,) or (n, V).

    `norms` (V,) are the lengths of the vectors. A zero vector has a cosine of 0 with every query.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        products = [queries @ block.T for _, block in float32_blocks(vectors)]
        scores: Vector = products[0] if len(products) == 1 else np.concatenate(products, axis=-1)
        scores /= norms
    extreme = _extreme(norms)
    if extreme.any():
        scores[..., extreme] = queries @ unit(vectors[extreme]).T
    return scores


def unit(vectors: Vector, out: Vector | None = None) -> Vector:
    """Return the vectors (D,) or (n, D), each scaled to length 1; zero vectors stay zero.

    The result is written to `out` if given, which may be `vectors` itself.
    """
    divisors = _lengths_by_squares(vectors)
    extreme = _extreme(divisors)
    divisors = divisors[..., None]
    if not extreme.any():
        return np.divide(vectors, divisors, out=out)
    wide = vectors[extreme].astype(np.float64)  # a copy: `out` may be `vectors`
    norms = np.linalg.norm(wide, axis=-1, keepdims=True)
    divisors[extreme] = 1
    scaled: Vector = np.divide(vectors, divisors, out=out)
    scaled[extreme] = wide / np.where(norms == 0, 1, norms)
    return scaled


def _lengths_by_squares(vectors: Vector) -> Vector:
    """Return the length of each vector (..., D), from squares in float32; imprecise if it is extreme."""
    norms: Vector = np.sqrt(np.einsum("...i,...i->...", vectors, vectors))
    return norms


def _extreme(norms: Vector) -> NDArray[np.bool_]:
    """Return True for each length that is zero, or too large or too small to be computed from squares in float32."""
    extreme: NDArray[np.bool_] = ~((norms > MIN_LENGTH) & (norms < MAX_LENGTH))
    return extreme
