"""Exact search for the nearest vectors by cosine, in batches."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from w2v.vectors.cosines import Floats, cosines, lengths, unit

SCORES_AT_ONCE = 1 << 26  # scores in a batch: 256 MB


def top_rows(scores: Floats, topn: int) -> NDArray[np.int64]:
    """Return the rows of the `topn` highest scores (V,), highest first; equal scores are in the order of their rows.

    Rows with a score of -inf are left out.
    """
    topn = min(topn, len(scores))
    if topn < 1:
        return np.zeros(0, np.int64)
    lowest = np.partition(scores, len(scores) - topn)[len(scores) - topn]
    rows = np.flatnonzero(scores >= lowest)
    rows = rows[np.argsort(-scores[rows], kind="stable")][:topn]
    return rows[scores[rows] > -np.inf]


def nearest(
    queries: Floats, vectors: Floats, norms: Floats, topn: int, left_out: Sequence[Sequence[int]]
) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """Yield for each query the rows of the `topn` nearest vectors, nearest first, and their cosines.

    Args:
        queries: (n, D).
        vectors: (V, D).
        norms: The lengths of the vectors, (V,).
        topn: The maximum number of rows for each query.
        left_out: The rows to leave out of the result of each query.
    """
    step = max(1, SCORES_AT_ONCE // max(1, len(vectors)))
    for start in range(0, len(queries), step):
        block = slice(start, start + step)
        for rows, scores in zip(left_out[block], cosines(unit(queries[block]), vectors, norms), strict=True):
            scores[rows] = -np.inf
            best = top_rows(scores, topn)
            yield best, scores[best]


def nearest_rows(
    vectors: Floats, rows: NDArray[np.int64], topn: int, report: Callable[[int, int], object] | None = None
) -> NDArray[np.int64]:
    """Return the rows of the `topn` vectors nearest to each of n rows, int64 (n, min(topn, V - 1)).

    `vectors` is (V, D), `rows` (n,). `report` is called with the number of finished rows and n.
    """
    topn = min(topn, len(vectors) - 1)
    neighbours = np.empty((len(rows), topn), np.int64)
    norms = lengths(vectors)
    step = max(1, SCORES_AT_ONCE // len(vectors))
    for start in range(0, len(rows) if topn else 0, step):
        block = rows[start : start + step]
        results = nearest(vectors[block], vectors, norms, topn, [[row] for row in block.tolist()])
        for number, (best, _) in enumerate(results, start):
            neighbours[number] = best
        if report:
            report(start + len(block), len(rows))
    return neighbours
