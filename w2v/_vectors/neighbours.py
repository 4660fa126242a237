"""Exact search for the nearest vectors by cosine, in blocks of queries and vectors."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._formats.bfloat16 import float32_blocks
from w2v._system.threads import map_in_order, one_blas_thread, processors
from w2v._vectors import _search
from w2v._vectors.cosines import Floats, cosines, lengths, unit

Rows = Sequence[int] | NDArray[np.int64]

QUERIES_AT_ONCE = 512  # queries in a block: enough for a fast matrix product
SCORES_AT_ONCE = 1 << 19  # scores that a thread computes at once: 2 MB, which fit in the second-level cache
RESULTS_AT_ONCE = 1 << 20  # results of a block of queries
NEAREST_KNOWN = 10  # words that complete the vector of an unknown one; bench/NOTES.md compares other numbers
ROWS_AT_ONCE = 1 << 12  # rows between two reports of progress


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
    queries: Floats, vectors: Floats, norms: Floats, topn: int, left_out: Sequence[Rows]
) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """Yield for each query the rows of the `topn` nearest vectors, nearest first, and their cosines.

    Several threads search, each with some of the queries. They need memory for some blocks of scores and for the
    results of these queries, but none that grows with the number of vectors.

    Args:
        queries: (n, D).
        vectors: (V, D).
        norms: The lengths of the vectors, (V,).
        topn: The maximum number of rows for each query.
        left_out: The rows to leave out of the result of each query.
    """
    topn = max(0, min(topn, len(vectors)))
    step = max(1, min(QUERIES_AT_ONCE, RESULTS_AT_ONCE // max(1, topn)))
    blocks = [slice(start, start + step) for start in range(0, len(queries), step)]

    def search(block: slice) -> tuple[NDArray[np.int64], Floats]:
        return _search_block(unit(queries[block]), vectors, norms, topn, left_out[block])

    workers = max(1, min(processors(), len(blocks)))
    with one_blas_thread() if workers > 1 else nullcontext():
        for rows, scores in map_in_order(search, blocks, workers):
            for best, best_scores in zip(rows, scores, strict=True):
                found = best_scores > -np.inf
                yield best[found], best_scores[found]


def _search_block(
    queries: Floats, vectors: Floats, norms: Floats, topn: int, left_out: Sequence[Rows]
) -> tuple[NDArray[np.int64], Floats]:
    """Return the nearest rows of n unit queries, (n, topn), and their cosines: -inf if there are fewer."""
    best_scores = np.full((len(queries), topn), -np.inf, np.float32)
    best_rows = np.zeros((len(queries), topn), np.int64)
    starts = np.cumsum([0, *map(len, left_out)])
    excluded = np.concatenate([np.empty(0, np.int64), *(np.asarray(rows, np.int64) for rows in left_out)])
    width = max(1, SCORES_AT_ONCE // max(1, len(queries)))
    for start, block in float32_blocks(vectors, width):
        scores = cosines(queries, block, norms[start : start + len(block)])
        _search.keep_best(scores, start, excluded, starts, best_scores, best_rows)
    order = np.lexsort((best_rows, -best_scores), axis=1)
    return np.take_along_axis(best_rows, order, 1), np.take_along_axis(best_scores, order, 1)


def nearest_rows(
    vectors: Floats, rows: NDArray[np.int64], topn: int, report: Callable[[int, int], object] | None = None
) -> NDArray[np.int64]:
    """Return the rows of the `topn` vectors nearest to each of n rows, int64 (n, min(topn, V - 1)).

    `vectors` is (V, D), `rows` (n,). `report` is called with the number of finished rows and n.
    """
    topn = min(topn, len(vectors) - 1)
    neighbours = np.empty((len(rows), topn), np.int64)
    norms = lengths(vectors)
    for start in range(0, len(rows) if topn else 0, ROWS_AT_ONCE):
        block = rows[start : start + ROWS_AT_ONCE]
        results = nearest(vectors[block], vectors, norms, topn, [[row] for row in block.tolist()])
        for number, (best, _) in enumerate(results, start):
            neighbours[number] = best
        if report:
            report(start + len(block), len(rows))
    return neighbours


def complete_vectors(ngram_vectors: Floats, vectors: NDArray[Any]) -> Floats:
    """Return the whole vectors of n unknown words, float32 (n, D).

    If the n-grams make only the last part of a vector, this part is scaled to length 1. The rest is the mean of this
    rest in the vectors of the NEAREST_KNOWN words with the nearest last parts, scaled to length 1.

    Args:
        ngram_vectors: The means of the words' n-gram rows, (n, D) or shorter. Rows of zeros stay zeros.
        vectors: The vectors of the known words, (V, D). If the n-grams make only a part of them, both parts have
            length 1.
    """
    offset = vectors.shape[1] - ngram_vectors.shape[1]
    if not offset:
        return ngram_vectors
    whole: Floats = np.pad(unit(ngram_vectors), ((0, 0), (offset, 0)))
    made = np.flatnonzero(whole.any(axis=1))
    # The zeros in the first parts leave the cosines of the last parts.
    results = nearest(whole[made], vectors, np.ones(len(vectors), np.float32), NEAREST_KNOWN, [[]] * len(made))
    for row, (best, _) in zip(made, results, strict=True):
        whole[row, :offset] = np.asarray(vectors[best], np.float32)[:, :offset].mean(axis=0)
    whole[:, :offset] = unit(whole[:, :offset])
    return whole
