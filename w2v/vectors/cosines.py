"""Lengths of vectors, and vectors scaled to unit length, whose products are cosines."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]

EPSILON = 1e-6  # added to the divisor in 3CosMul, to keep the quotient finite


def lengths(vectors: Vector) -> Vector:
    """The Euclidean length of each vector: (n,) for (n, D), a number for (D,)."""
    found: Vector = np.sqrt(np.einsum("...i,...i->...", vectors, vectors))
    return found


def cosine(first: Vector, second: Vector) -> float:
    """The cosine of two vectors (D,), computed in float64, so that it is 1 for equal vectors; 0 with a zero vector."""
    one, other = first.astype(np.float64), second.astype(np.float64)
    product = np.sqrt((one @ one) * (other @ other))
    return float(one @ other / product) if product else 0.0


def unit(vectors: Vector, out: Vector | None = None) -> Vector:
    """The vectors (D,) or (n, D), each scaled to length 1, in `out` if given; zero vectors stay zero."""
    divisors = lengths(vectors)[..., None]
    divisors[divisors == 0] = 1
    return np.divide(vectors, divisors, out=out)
