"""Nearest neighbours of many words, compared with single queries."""

import numpy as np
import pytest

from w2v.vectors import neighbours
from w2v.vectors.keyed import KeyedVectors


@pytest.mark.parametrize("block", [1, 100, 1 << 20])
@pytest.mark.parametrize("topn", [1, 5, 100])
def test_neighbours_equal_most_similar(block: int, topn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "SCORES_AT_ONCE", block)
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
    monkeypatch.setattr(neighbours, "SCORES_AT_ONCE", 40 * 3)  # three rows at a time
    vectors = np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32)
    reports: list[tuple[int, int]] = []
    neighbours.nearest_rows(vectors, np.arange(8), 5, lambda done, total: reports.append((done, total)))
    assert reports == [(3, 8), (6, 8), (8, 8)]


def test_best_rows_are_in_order_and_leave_out_minus_infinity() -> None:
    scores = np.array([2, 5, -np.inf, 5, 3, 2], np.float32)
    for topn, rows in ((0, []), (-1, []), (1, [1]), (2, [1, 3]), (4, [1, 3, 4, 0]), (9, [1, 3, 4, 0, 5])):
        assert neighbours.top_rows(scores, topn).tolist() == rows
    assert neighbours.top_rows(scores[:0], 3).tolist() == []
