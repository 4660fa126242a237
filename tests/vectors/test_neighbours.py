"""Nearest neighbours of many words, compared with single queries."""

import numpy as np
import pytest

from w2v._vectors import _search, neighbours
from w2v._vectors.cosines import cosines, lengths, unit
from w2v._vectors.keyed import KeyedVectors


@pytest.mark.parametrize("block", [1, 100, 1 << 20])
@pytest.mark.parametrize("queries", [1, 3, 100])
@pytest.mark.parametrize("topn", [1, 5, 100])
def test_neighbours_equal_most_similar(block: int, queries: int, topn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "SCORES_AT_ONCE", block)
    monkeypatch.setattr(neighbours, "QUERIES_AT_ONCE", queries)
    vectors = KeyedVectors([f"w{row}" for row in range(40)], np.random.default_rng(1).normal(size=(40, 6)))
    rows = np.array([3, 39, 0, 3])
    found = neighbours.nearest_rows(vectors.vectors, rows, topn)
    assert found.shape == (4, min(topn, 39))
    for row, near in zip(rows.tolist(), found.tolist(), strict=True):
        assert [f"w{each}" for each in near] == [word for word, _ in vectors.most_similar(f"w{row}", topn=topn)]


def test_zero_vectors_are_neighbours_and_a_single_vector_has_none() -> None:
    vectors = np.array([[0, 0], [1, 0], [1, 1]], np.float32)
    assert neighbours.nearest_rows(vectors, np.array([1]), 2).tolist() == [[2, 0]]
    assert neighbours.nearest_rows(vectors[:1], np.array([0]), 2).shape == (1, 0)


def test_finished_rows_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "ROWS_AT_ONCE", 3)
    vectors = np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32)
    reports: list[tuple[int, int]] = []
    neighbours.nearest_rows(vectors, np.arange(8), 5, lambda done, total: reports.append((done, total)))
    assert reports == [(3, 8), (6, 8), (8, 8)]


@pytest.mark.parametrize("topn", [1, 3, 30, 60])
@pytest.mark.parametrize("width", [1, 16, 17, 50])
def test_best_candidates_equal_a_stable_sort(topn: int, width: int) -> None:
    """Many scores are equal, and some are missing."""
    random = np.random.default_rng(topn + width)
    scores = random.choice([0.5, 1, 1.5, 2, -np.inf, np.nan], (8, 50)).astype(np.float32)
    left_out = [random.permutation(50)[:size] for size in random.integers(0, 50, 8)]
    starts = np.cumsum([0, *map(len, left_out)])
    best_scores, best_rows = np.full((8, topn), -np.inf, np.float32), np.zeros((8, topn), np.int64)
    for start in range(0, 50, width):
        part = np.ascontiguousarray(scores[:, start : start + width])
        _search.keep_best(part, start, np.concatenate(left_out), starts, best_scores, best_rows)
    for query, excluded in enumerate(left_out):
        candidates = np.setdiff1d(np.flatnonzero(scores[query] > -np.inf), excluded)
        expected = candidates[np.argsort(-scores[query, candidates], kind="stable")][:topn]
        is_found = best_scores[query] > -np.inf
        found = best_rows[query, is_found]
        assert sorted(found.tolist()) == sorted(expected.tolist())
        np.testing.assert_array_equal(scores[query, found], best_scores[query, is_found])


def test_several_blocks_of_queries_leave_out_their_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "QUERIES_AT_ONCE", 2)
    monkeypatch.setattr(neighbours, "SCORES_AT_ONCE", 14)
    vectors = np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32)
    norms, left_out = lengths(vectors), [list(range(query, 40, 3)) for query in range(7)]
    scores = cosines(unit(vectors[:7]), vectors, norms)
    for query, (rows, found) in enumerate(neighbours.nearest(vectors[:7], vectors, norms, 5, left_out)):
        scores[query, left_out[query]] = -np.inf
        np.testing.assert_array_equal(rows, neighbours.top_rows(scores[query], 5))
        np.testing.assert_allclose(found, scores[query, rows], rtol=1e-5)


def test_best_rows_are_in_order_and_leave_out_minus_infinity() -> None:
    scores = np.array([2, 5, -np.inf, 5, 3, 2], np.float32)
    for topn, rows in ((0, []), (-1, []), (1, [1]), (2, [1, 3]), (4, [1, 3, 4, 0]), (9, [1, 3, 4, 0, 5])):
        assert neighbours.top_rows(scores, topn).tolist() == rows
    assert neighbours.top_rows(scores[:0], 3).tolist() == []


def test_the_first_values_of_an_unknown_word_are_the_mean_of_the_ten_nearest_words() -> None:
    """Both parts of a vector have length 1."""
    random = np.random.default_rng(1)
    first, last = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in random.normal(size=(2, 15, 3)))
    words = np.hstack([first[:, :2] / np.linalg.norm(first[:, :2], axis=1, keepdims=True), last]).astype(np.float32)
    ngrams = np.array([[0, 3, 4], [0, 0, 0], [-1, 1, 0]], np.float32)
    expected = np.zeros((3, 5))
    for row in (0, 2):
        unit = ngrams[row] / np.linalg.norm(ngrams[row])
        nearest = np.argsort(-(last @ unit))[:10]
        mean = words[nearest, :2].mean(axis=0)
        expected[row] = [*mean / np.linalg.norm(mean), *unit]
    np.testing.assert_allclose(neighbours.complete_vectors(ngrams, words), expected, atol=1e-6)
    few = np.array([[1, 0, 1], [-1, 1, 0], [1, 0.5, 0.5]], np.float32)
    np.testing.assert_allclose(neighbours.complete_vectors(np.array([[0, 2]], np.float32), few), [[1, 0, 1]])
    assert neighbours.complete_vectors(ngrams, few) is ngrams  # whole vectors
