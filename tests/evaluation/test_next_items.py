"""Scores of recommendations, compared with recommendations one by one and with plain counts."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v._evaluation.next_items import BASELINES, next_items
from w2v._evaluation.scores import Evaluation, EvaluationResult, Score
from w2v._vectors.keyed import KeyedVectors

TRAINED_ON = [["a", "b", "c"], ["a", "b", "d"], ["e", "f"], ["f", "e", "a"], ["b", "c"], ["e", "d"]]
SESSIONS = [["a", "b", "c"], ["e", "f"], ["a"], ["a", "b", "a"], ["c", "x"], ["x", "f"], ["d", "e", "c", "b"]]
SCORED = [["a", "b", "c"], ["e", "f"], ["c", "x"], ["x", "f"], ["d", "e", "c", "b"]]  # two items, the last one new


def vectors() -> KeyedVectors:
    return KeyedVectors(list("abcdef"), np.random.default_rng(1).normal(size=(6, 4)))


def reference_ranks(scores_of: dict[str, dict[str, float]], last: int | None = None) -> list[list[float]]:
    """Return the ranks that each last item may have by the sum of the scores that the items before it give."""
    ranks = []
    for *before, target in SCORED:
        sums = Counter(dict.fromkeys("abcdef", 0.0))
        for item in before[-last if last else 0 :]:
            sums.update(scores_of.get(item, {}))
        others = [sums[item] for item in "abcdef" if item not in before and item != target]
        own = sums[target]
        ties = sum(bool(np.isclose(own, other)) for other in others)
        above = sum(other > own and not np.isclose(own, other) for other in others)
        ranks.append([above + 1.0 + tie for tie in range(ties + 1)] if target in "abcdef" else [np.inf])
    return ranks


def cosines(rows: dict[str, np.ndarray]) -> dict[str, dict[str, float]]:
    units = {item: row / np.linalg.norm(row) for item, row in rows.items()}
    return {item: {other: float(row @ units[other]) for other in units} for item, row in units.items()}


def baseline_scores(name: str) -> dict[str, dict[str, float]]:
    """Return the scores that an item gives to others, from plain loops over the sessions."""
    if name == "popularity":
        counts = Counter(item for session in TRAINED_ON for item in session)
        return {item: dict(counts) for item in [*"abcdef", "x"]}
    if name == "Markov":
        chain: dict[str, dict[str, float]] = {item: Counter() for item in "abcdef"}
        for session in TRAINED_ON:
            for first, second in pairwise(session):
                chain[first][second] += 1
        return chain
    weights = np.array([np.log(6 / len(session)) for session in TRAINED_ON])
    return cosines({item: weights * [item in session for session in TRAINED_ON] for item in "abcdef"})


@pytest.mark.parametrize("last", [None, 1, 2])
@pytest.mark.parametrize("topn", [1, 2, 4])
def test_scores_are_those_of_ranks_one_by_one(last: int | None, topn: int) -> None:
    results = next_items(vectors(), sessions=SESSIONS, trained_on=TRAINED_ON, topn=topn, last=last)
    rows = dict(zip("abcdef", vectors().vectors, strict=True))
    expected = [reference_ranks(cosines(rows), last)]
    for name in BASELINES:
        expected.append(reference_ranks(baseline_scores(name), 1 if name != "ItemKNN" else None))
    for number, ranks in enumerate(expected):
        hits = [np.mean([rank <= topn for rank in each]) for each in ranks]
        reciprocal = [np.mean([(rank <= topn) / rank for rank in each]) for each in ranks]
        gains = [np.mean([(rank <= topn) / np.log2(rank + 1) for rank in each]) for each in ranks]
        found = [result.scores[number].value for result in results]
        np.testing.assert_allclose(found, [np.mean(hits), np.mean(gains), np.mean(reciprocal)], rtol=1e-6)
    assert {(score.items, score.total) for result in results for score in result.scores} == {(5, 7)}


def test_command_reads_tables_and_names_the_baselines(tmp_path: Path) -> None:
    vectors().save(tmp_path / "items.txt")
    for name, sessions in (("earlier", TRAINED_ON), ("later", SESSIONS)):
        rows = [f"{number},{item}\n" for number, session in enumerate(sessions) for item in session]
        (tmp_path / f"{name}.csv").write_text("".join(["visit,product\n", *rows]))
    columns = ["--item", "product", "--session", "visit"]
    files = ["--sessions", tmp_path / "later.csv", "--trained-on", tmp_path / "earlier.csv", "--topn", "2"]
    printed = run_json("evaluate", tmp_path / "items.txt", *files, *columns)
    assert (printed["models"], printed["baselines"]) == ([str(tmp_path / "items.txt")], [*BASELINES])
    results = next_items(vectors(), sessions=SESSIONS, trained_on=TRAINED_ON, topn=2)
    found = [[score["value"] for score in result["scores"]] for result in printed["results"]]
    assert found == [[pytest.approx(score.value, rel=1e-6) for score in result.scores] for result in results]


def test_impossible_sessions_and_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(w2v.W2VError, match="no session has two items and a last item that is new in it"):
        next_items(vectors(), sessions=[["a"], ["b", "c", "b"]])
    with pytest.raises(w2v.SettingsError, match="topn"):
        next_items(vectors(), sessions=SESSIONS, topn=0)
    vectors().save(tmp_path / "items.txt")
    done = run("evaluate", tmp_path / "items.txt", "--trained-on", tmp_path / "items.txt", code=2)
    assert done.stderr.startswith("w2v: --trained-on has no effect without --sessions or --edges")
    (tmp_path / "s.txt").write_text("a b\n")
    same = ["--sessions", tmp_path / "s.txt", "--trained-on", tmp_path / "s.txt"]
    assert "must be different files" in run("evaluate", tmp_path / "items.txt", *same, code=2).stderr


def test_a_model_that_knows_no_item_has_no_score() -> None:
    other = KeyedVectors(["p", "q"], np.eye(2))
    results = next_items(other, sessions=SESSIONS, trained_on=TRAINED_ON)
    assert [(one.scores[0].value, one.scores[1].items) for one in results] == [(None, len(SCORED))] * 3
    assert "\nmodel 1 knows none or too few of the words: it has no score for next item\n" in str(results)
    assert "significantly" not in str(results)


@pytest.mark.parametrize(
    ("value", "p", "conclusion"),
    [(0.7, 0.01, "b beats m in rate: the simple"), (0.7, 0.5, "do not differ"), (0.4, 0.01, "m beats all simple")],
)
def test_the_table_says_how_the_model_compares_with_the_best_baseline(value: float, p: float, conclusion: str) -> None:
    first, worst = Score(0.5, 0.4, 0.6, 9, 9), Score(0.1, 0, 0.2, 9, 9, -0.4, 0.001)
    scores = [first, worst, Score(value, 0, 1, 9, 9, value - 0.5, p)]
    assert conclusion in str(Evaluation([EvaluationResult("s", "rate", scores)], ["m"], ["a", "b"]))
    tied = [first, scores[2], scores[2]]
    results = [EvaluationResult("s", "rate", tied), EvaluationResult("s", "gain", scores)]
    assert conclusion in str(Evaluation(results, ["m"], ["a", "b"]))
