"""Search by an approximate index, and its recall."""

from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import explorer_of
from w2v._vectors.approximate import ApproximateIndex

pytest.importorskip("usearch")


def test_an_index_finds_most_neighbours_of_a_model(model: Path) -> None:
    vectors = w2v.load(model)
    reports: list[w2v.Progress] = []
    index = ApproximateIndex(vectors.vectors, reports.append)
    assert (reports[-1].phase, reports[-1].done) == ("index", len(vectors))
    assert 0.9 < index.recall(vectors.vectors) <= 1


def test_recall_counts_missed_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)
    index, search = ApproximateIndex(vectors), ApproximateIndex.search
    assert index.recall(vectors) == 1
    monkeypatch.setattr(
        ApproximateIndex, "search", lambda self, vector, topn: tuple(part[:8] for part in search(self, vector, topn))
    )
    assert index.recall(vectors) == pytest.approx(0.7, abs=0.01)  # the word itself, and 7 of 10 neighbours


def test_single_vector_has_no_neighbours() -> None:
    vectors = w2v.KeyedVectors(["a"], [[1.0, 2.0]])
    index = ApproximateIndex(vectors.vectors)
    assert index.recall(vectors.vectors) == 1
    assert explorer_of(vectors, 1, index).nearest(["a"], [], "add", 10) == []


def test_an_index_is_read_back_as_written(tmp_path: Path) -> None:
    vectors = np.random.default_rng(1).normal(size=(150, 4)).astype(np.float32)
    index = ApproximateIndex(vectors)
    (tmp_path / "index").write_bytes(index.to_bytes())
    loaded = ApproximateIndex.load(tmp_path / "index")
    assert index.vector_size == loaded.vector_size == 4
    for one in (index, loaded):
        rows, cosines = one.search(2 * vectors[7], 3)
        assert rows[0] == 7
        exact = vectors[rows] @ vectors[7] / np.linalg.norm(vectors[rows], axis=1) / np.linalg.norm(vectors[7])
        np.testing.assert_allclose(cosines, exact, atol=1e-6)
    (tmp_path / "index").write_bytes(b"no index")
    with pytest.raises(w2v.W2VError, match=r"^[^\n]*index: not an index of usearch: [^\n]+$"):
        ApproximateIndex.load(tmp_path / "index")
    with pytest.raises(w2v.W2VError, match="nothing: No such file"):
        ApproximateIndex.load(tmp_path / "nothing")
