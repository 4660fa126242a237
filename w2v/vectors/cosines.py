"""Lengths of vectors, and vectors scaled to unit length, whose products are cosines."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]

EPSILON = 1e-6  # added to the divisor in 3CosMul, to keep the quotient finite


def lengths(vectors: Vector) -> Vector:
    """The Euclidean length of each vector: (n,) for (n, D), a number for (D,)."""
    found: Vector = np.sqrt(np.einsum("...i,...i->...", vectors, vectors))
    return found


def unit(vectors: Vector) -> Vector:
    """The vectors (D,) or (n, D), each scaled to length 1; zero vectors stay zero."""
    divisors = lengths(vectors)[..., None]
    divisors[divisors == 0] = 1
    return vectors / divisors
