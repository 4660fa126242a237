"""Lengths of vectors, vectors scaled to unit length, and cosines, precise for all finite vectors.

In float32 the squares of very large values overflow, and the squares of very small ones underflow. Only vectors with
such values are computed in float64.
"""

import numpy as np
from numpy.typing import NDArray

from w2v._formats.bfloat16 import float32_blocks

Floats = NDArray[np.float32]  # of any shape

EPSILON = 1e-6  # added to the divisor in 3CosMul, to keep the quotient finite
MIN_LENGTH, MAX_LENGTH = np.float32(1e-12), np.float32(1e18)  # between them, squares in float32 are precise


def lengths(vectors: Floats) -> Floats:
    """Return the Euclidean length of each vector (n, D), float32 (n,); inf if it is too large for float32."""
    norms = np.concatenate(
        [np.empty(0, np.float32), *(_lengths_by_squares(block) for _, block in float32_blocks(vectors))]
    )
    imprecise = imprecise_lengths(norms)
    if imprecise.any():
        with np.errstate(over="ignore"):
            norms[imprecise] = np.linalg.norm(vectors[imprecise].astype(np.float64), axis=1)
    return norms


def cosine(first: Floats, second: Floats) -> float:
    """Return the cosine of two vectors (D,); 0 if one is zero.

    It is computed in float64, so the cosine of equal vectors is 1.
    """
    one, other = first.astype(np.float64), second.astype(np.float64)
    product = np.sqrt((one @ one) * (other @ other))
    return float(one @ other / product) if product else 0.0


def cosines(queries: Floats, vectors: Floats, norms: Floats) -> Floats:
    """Return the cosines of unit queries (D,) or (n, D) with vectors (V, D): (V,) or (n, V).

    `norms` (V,) are the lengths of the vectors. A zero vector has a cosine of 0 with every query.
    """
    divides_vectors = queries.size > vectors.shape[1] ** 2  # fewer numbers to divide than in the scores
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        products = []
        for start, block in float32_blocks(vectors):
            lengths_of_block = norms[start : start + len(block)]
            if divides_vectors:
                products.append(queries @ (block / lengths_of_block[:, np.newaxis]).T)
            else:
                products.append(queries @ block.T)
                products[-1] /= lengths_of_block
        scores: Floats = products[0] if len(products) == 1 else np.concatenate(products, axis=-1)
    imprecise = imprecise_lengths(norms)
    if imprecise.any():
        scores[..., imprecise] = queries @ unit(vectors[imprecise]).T
    return scores


def unit(vectors: Floats, out: Floats | None = None) -> Floats:
    """Return the vectors (D,) or (n, D), each scaled to length 1; zero vectors stay zero.

    The result is written to `out` if given, which may be `vectors` itself.
    """
    divisors = _lengths_by_squares(vectors)
    imprecise = imprecise_lengths(divisors)
    divisors = divisors[..., None]
    if not imprecise.any():
        return np.divide(vectors, divisors, out=out)
    wide = vectors[imprecise].astype(np.float64)  # a copy: `out` may be `vectors`
    norms = np.linalg.norm(wide, axis=-1, keepdims=True)
    divisors[imprecise] = 1
    scaled: Floats = np.divide(vectors, divisors, out=out)
    scaled[imprecise] = wide / np.where(norms == 0, 1, norms)
    return scaled


def _lengths_by_squares(vectors: Floats) -> Floats:
    """Return the length of each vector (..., D), from squares in float32; see `imprecise_lengths`."""
    norms: Floats = np.sqrt(np.einsum("...i,...i->...", vectors, vectors))
    return norms


def imprecise_lengths(norms: Floats) -> NDArray[np.bool_]:
    """Return True for each length that is too large or too small to be computed from squares in float32.

    A length of 0 counts as too small, because the squares of very small values may have become 0.
    """
    result: NDArray[np.bool_] = ~((norms > MIN_LENGTH) & (norms < MAX_LENGTH))
    return result
