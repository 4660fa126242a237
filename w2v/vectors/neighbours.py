"""The nearest neighbours of many words, as rows."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from w2v.vectors.cosines import Vector, cosines, lengths, unit

SCORES_AT_ONCE = 1 << 26  # computed at a time: 256 MB


def nearest_rows(
    vectors: Vector, rows: NDArray[np.int64], topn: int, report: Callable[[int, int], object] | None = None
) -> NDArray[np.int64]:
    """The rows of the `topn` (or all other) vectors nearest by cosine to each of n rows, nearest first.

    `vectors` is (V, D), `rows` (n,); the result is int64 (n, min(topn, V - 1)). `report` is called with the number of
    finished rows and n.
    """
    topn = min(topn, len(vectors) - 1)
    found = np.empty((len(rows), topn), np.int64)
    norms = lengths(vectors)
    step = max(1, SCORES_AT_ONCE // len(vectors))
    for start in range(0, len(rows) if topn else 0, step):
        block = rows[start : start + step]
        scores = cosines(unit(vectors[block]), vectors, norms)
        scores[np.arange(len(block)), block] = -np.inf
        for near, row in zip(found[start : start + step], scores, strict=True):
            best = np.argpartition(row, -topn)[-topn:]
            near[:] = best[np.argsort(-row[best])]
        if report:
            report(start + len(block), len(rows))
    return found
