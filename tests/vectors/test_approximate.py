"""Search by an approximate index, and its recall."""

from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import explorer_of
from w2v.vectors.approximate import ApproximateIndex

pytest.importorskip("usearch")


def test_explorer_answers_from_the_index(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = w2v.load(model)
    reports: list[w2v.Progress] = []
    index = ApproximateIndex(vectors.vectors, reports.append)
    assert reports[-1].phase == "index"
    assert reports[-1].done == len(vectors)
    assert 0.9 < index.recall(vectors.vectors) <= 1
    explorer = explorer_of(vectors, 10, index)
    for plus, minus in ((["france"], []), (["king", "woman"], ["man"])):
        exact = dict(vectors.most_similar(plus, minus, topn=50))
        found = explorer.nearest(plus, minus, "add", 10)
        assert len(found) == 10
        assert not {one["word"] for one in found} & {*plus, *minus}
        for one in found:
            assert one["score"] == pytest.approx(exact[one["word"]], abs=1e-5)
    monkeypatch.setattr(index, "search", lambda vector, topn: (np.array([3]), np.array([0.5])))
    assert [one["word"] for one in explorer.nearest(["france"], [], "add", 10)] == [vectors.index_to_key[3]]
    assert len(explorer.nearest(["france"], [], "mul", 10)) == 10  # exact


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


def test_recall_is_measured_with_100_random_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(1).normal(size=(150, 4)).astype(np.float32)
    index, searched = ApproximateIndex(vectors), list[bytes]()

    def search(vector: np.ndarray, topn: int) -> tuple[np.ndarray, np.ndarray]:
        searched.append(vector.tobytes())
        return np.empty(0, np.int64), np.empty(0, np.float32)

    monkeypatch.setattr(index, "search", search)
    assert index.recall(vectors) == index.recall(vectors) == index.recall(vectors, seed=2) == 0
    first, same, other = searched[:100], searched[100:200], searched[200:]
    assert first == same != other
    assert len(set(first)) == len(set(other)) == 100
