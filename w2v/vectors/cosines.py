"""Lengths of vectors, vectors scaled to unit length, and cosines. They are right for all finite vectors.

The squares of very large and very small values overflow and underflow in float32: vectors with such values, and only
these, are scaled in float64.
"""

import numpy as np
from numpy.typing import NDArray

from w2v.formats.bfloat16 import blocks

Vector = NDArray[np.float32]

EPSILON = 1e-6  # added to the divisor in 3CosMul, to keep the quotient finite
MIN_LENGTH, MAX_LENGTH = np.float32(1e-12), np.float32(1e18)  # between them, squares in float32 are precise


def lengths(vectors: Vector) -> Vector:
    """The Euclidean length of each vector (n, D): (n,). One that float32 cannot represent is infinite."""
    found = np.concatenate([np.empty(0, np.float32), *(_lengths_by_squares(block) for _, block in blocks(vectors))])
    extreme = _extreme(found)
    if extreme.any():
        with np.errstate(over="ignore"):
            found[extreme] = np.linalg.norm(vectors[extreme].astype(np.float64), axis=1)
    return found


def cosine(first: Vector, second: Vector) -> float:
    """The cosine of two vectors (D,), computed in float64, so that it is 1 for equal vectors; 0 with a zero vector."""
    one, other = first.astype(np.float64), second.astype(np.float64)
    product = np.sqrt((one @ one) * (other @ other))
    return float(one @ other / product) if product else 0.0


def cosines(queries: Vector, vectors: Vector, norms: Vector) -> Vector:
    """The cosines of unit queries (D,) or (n, D) with vectors (V, D) of these lengths (V,): (V,) or (n, V).

    Zero vectors have a cosine of 0 with all others.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        parts = [queries @ block.T for _, block in blocks(vectors)]
        scores: Vector = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        scores /= norms
    extreme = _extreme(norms)
    if extreme.any():
        scores[..., extreme] = queries @ unit(vectors[extreme]).T
    return scores


def unit(vectors: Vector, out: Vector | None = None) -> Vector:
    """The vectors (D,) or (n, D), each scaled to length 1, in `out` if given; zero vectors stay zero."""
    divisors = _lengths_by_squares(vectors)
    extreme = _extreme(divisors)
    divisors = divisors[..., None]
    if not extreme.any():
        return np.divide(vectors, divisors, out=out)
    wide = vectors[extreme].astype(np.float64)  # a copy: `out` may be `vectors`
    norms = np.linalg.norm(wide, axis=-1, keepdims=True)
    divisors[extreme] = 1
    found: Vector = np.divide(vectors, divisors, out=out)
    found[extreme] = wide / np.where(norms == 0, 1, norms)
    return found


def _lengths_by_squares(vectors: Vector) -> Vector:
    """The length of each vector (..., D), from squares in float32: not precise where it is _extreme."""
    found: Vector = np.sqrt(np.einsum("...i,...i->...", vectors, vectors))
    return found


def _extreme(norms: Vector) -> NDArray[np.bool_]:
    """Which vectors of these lengths are zero, or have squares that overflow or underflow in float32."""
    extreme: NDArray[np.bool_] = ~((norms > MIN_LENGTH) & (norms < MAX_LENGTH))
    return extreme
