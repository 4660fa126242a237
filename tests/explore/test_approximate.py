"""Search by an index, and its recall."""

from pathlib import Path

import numpy as np
import pytest

import w2v
from w2v.explore.approximate import ApproximateIndex
from w2v.explore.explorer import Explorer
from w2v.vectors.query import Query

pytest.importorskip("usearch")


def test_what_is_found_has_exact_scores_and_a_measured_recall(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = w2v.load(model)
    reports: list[w2v.Progress] = []
    index = ApproximateIndex(vectors, progress=reports.append)
    assert reports[-1].phase == "index"
    assert reports[-1].done == len(vectors)
    assert 0.9 < index.recall <= 1
    assert f"recall of {index.recall:.1%}" in index.description
    for plus, minus in ((["france"], []), (["king", "woman"], ["man"])):
        exact = dict(vectors.most_similar(plus, minus, topn=50))
        found = index.answer(Query(plus, minus, "add"), 10)
        assert len(found) == 10
        assert not {word for word, _ in found} & {*plus, *minus}
        for word, score in found:
            assert score == pytest.approx(exact[word], abs=1e-5)
    monkeypatch.setattr(index, "answer", lambda query, n: [("king", 0.5)])
    explorer = Explorer(vectors, 10, "pca", index)
    assert [one["word"] for one in explorer.nearest(["france"], [], "add", 10)] == ["king"]
    assert len(explorer.nearest(["france"], [], "mul", 10)) == 10  # exact


def test_a_recall_that_is_not_full_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = w2v.KeyedVectors([str(row) for row in range(30)], np.random.default_rng(1).normal(size=(30, 4)))
    whole = ApproximateIndex.answer
    monkeypatch.setattr(ApproximateIndex, "answer", lambda self, query, n: whole(self, query, n)[:7])
    assert ApproximateIndex(vectors).recall == pytest.approx(0.7, abs=0.01)


def test_one_word_has_no_neighbours() -> None:
    index = ApproximateIndex(w2v.KeyedVectors(["a"], [[1.0, 2.0]]))
    assert index.recall == 1
    assert index.answer(Query(["a"], [], "add"), 10) == []
