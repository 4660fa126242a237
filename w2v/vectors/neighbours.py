"""The nearest neighbours of many words, as rows."""

import numpy as np
from numpy.typing import NDArray

from w2v.vectors.cosines import Vector, lengths, unit

SCORES_AT_ONCE = 1 << 24  # computed at a time: 64 MB


def nearest_rows(vectors: Vector, rows: NDArray[np.int64], topn: int) -> NDArray[np.int64]:
    """The rows of the `topn` (or all other) vectors nearest by cosine to each of n rows, nearest first.

    `vectors` is (V, D), `rows` (n,); the result is int64 (n, min(topn, V - 1)).
    """
    topn = min(topn, len(vectors) - 1)
    divisors = lengths(vectors)
    divisors[divisors == 0] = 1
    found = np.empty((len(rows), topn), np.int64)
    step = max(1, SCORES_AT_ONCE // len(vectors))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        scores = unit(vectors[block]) @ vectors.T / divisors
        own = np.arange(len(block))[:, None]
        scores[own, block[:, None]] = -np.inf
        best = np.argpartition(-scores, topn - 1, axis=1)[:, :topn] if topn else np.empty((len(block), 0), np.int64)
        found[start : start + step] = best[own, np.argsort(-scores[own, best], axis=1, kind="stable")]
    return found
