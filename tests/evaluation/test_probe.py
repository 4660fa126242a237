"""The probe of vectors, compared with scikit-learn."""

from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics
from sklearn.linear_model import LogisticRegression

import w2v
from tests.helpers import run, run_json
from w2v._evaluation import probe as probing
from w2v._evaluation.probe import fit_logistic, probe
from w2v._vectors.keyed import KeyedVectors

LETTERS = "abc"
WORDS = [f"{letter}{number}" for letter in LETTERS for number in range(20)]


def vectors(noise: float = 1.0) -> KeyedVectors:
    """Return vectors of three groups of words."""
    random = np.random.default_rng(1)
    return KeyedVectors(WORDS, np.repeat(np.eye(3, 8), 20, axis=0) + noise * random.normal(size=(60, 8)))


def test_fit_equals_scikit_learn() -> None:
    random = np.random.default_rng(2)
    inputs = random.normal(size=(80, 5))
    targets = inputs[:, :3] + random.normal(size=(80, 3)) > 0.5
    fitted = fit_logistic(inputs, targets)
    for column, target in enumerate(targets.T):
        expected = LogisticRegression(tol=1e-8).fit(inputs, target)
        np.testing.assert_allclose(fitted[:-1, column], expected.coef_[0], atol=1e-3)
        assert fitted[-1, column] == pytest.approx(expected.intercept_[0], abs=1e-3)


@pytest.mark.parametrize("several", [False, True])
def test_scores_are_those_of_scikit_learn(several: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = [[word[0], *(["even"] if several and int(word[1:]) % 2 == 0 else [])] for word in WORDS]
    chosen = []

    def hits(found: np.ndarray, targets: np.ndarray) -> np.ndarray:
        chosen.append((found, targets))
        return before(found, targets)

    before = probing._hits
    monkeypatch.setattr(probing, "_hits", hits)
    results = probe(vectors(), texts=WORDS, labels=labels)
    for one, average in zip(results, ("micro", "macro"), strict=True):
        (found, targets), (frequent, _) = chosen
        assert one.measure == f"{average} F1"
        assert (found.sum(axis=1) == targets.sum(axis=1)).all()
        assert one.scores[0].value == pytest.approx(metrics.f1_score(targets, found, average=average))
        assert one.chance == pytest.approx(metrics.f1_score(targets, frequent, average=average, zero_division=0))
        low, value, high = one.scores[0].low, one.scores[0].value, one.scores[0].high
        assert low < value < high  # type: ignore[operator]
    assert results[0].scores[0].value > (results[0].chance or 0) + 0.1  # type: ignore[operator]


def test_predictions_are_those_of_fits_to_the_other_folds() -> None:
    found = vectors()
    rows = found.vectors / np.linalg.norm(found.vectors, axis=1, keepdims=True)
    targets = np.array([[word[0] == letter for letter in LETTERS] for word in WORDS])
    folds = np.random.default_rng(1).permutation(60) % 5
    expected = np.zeros(60, int)
    for fold in range(5):
        rest = rows[folds != fold]
        scaled = (rows - rest.mean(axis=0)) / rest.std(axis=0)
        fits = [LogisticRegression(tol=1e-8).fit(scaled[folds != fold], target[folds != fold]) for target in targets.T]
        scores = np.stack([fit.decision_function(scaled[folds == fold]) for fit in fits], axis=1)
        expected[folds == fold] = scores.argmax(axis=1)
    accuracy = np.mean(expected == targets.argmax(axis=1))
    score = probe(found, texts=WORDS, labels=[[word[0]] for word in WORDS])[0].scores[0]
    assert score.value == pytest.approx(accuracy)


def test_texts_without_words_are_not_scored_and_models_are_compared() -> None:
    texts, labels = [*WORDS, "unheard"], [[word[0]] for word in [*WORDS, "a"]]
    good, bad = probe(vectors(0.1), vectors(5), texts=texts, labels=labels)[0].scores
    assert (good.value, good.items, good.total) == (1, 60, 61)
    assert bad.difference < -0.2  # type: ignore[operator]
    assert bad.p < 0.01  # type: ignore[operator]
    unknown = [word[:-1] + "!" for word in WORDS[4:]]
    for texts in ([*WORDS[:4], *unknown], ["?"] * 60):
        found = probe(vectors(), texts=texts, labels=[[word[0]] for word in WORDS])
        assert [(one.scores[0].value, one.scores[0].items) for one in found] == [(None, 0)] * 2
        assert "model 1 knows none or too few of the words: it has no score for labels" in str(found)
    with pytest.raises(w2v.W2VError, match="60 texts, 1 labels: a probe needs 5 texts"):
        probe(vectors(), texts=WORDS, labels=[["a"]] * 60)


def test_a_string_is_one_label_and_not_a_list_of_texts() -> None:
    groups = [f"group {word[0]}" for word in WORDS]
    assert probe(vectors(), texts=WORDS, labels=groups) == probe(vectors(), texts=WORDS, labels=[[x] for x in groups])
    with pytest.raises(w2v.SettingsError, match="texts must be a list of texts"):
        probe(vectors(), texts="a0 b0 c0", labels=["a"] * 8)


def test_the_command_probes_words_and_nodes(tmp_path: Path) -> None:
    vectors(0.1).save(tmp_path / "nodes.txt")
    (tmp_path / "groups.tsv").write_text("node\tgroup\n" + "".join(f"{word}\t{word[0]}\n" for word in WORDS))
    (tmp_path / "texts.txt").write_text("".join(f"__label__{word[0]} {word} {word}\n" for word in WORDS))
    columns = ["--column", "node", "--labels", "group"]
    for file in (["groups.tsv", *columns], ["texts.txt"]):
        found = run_json("evaluate", tmp_path / "nodes.txt", "--labelled", tmp_path / file[0], *file[1:])["results"]
        assert [(one["measure"], one["scores"][0]["value"]) for one in found] == [("micro F1", 1), ("macro F1", 1)]
    vectors().save(tmp_path / "noisy.txt")
    by_seed = {
        str(run_json("evaluate", tmp_path / "noisy.txt", "--labelled", tmp_path / "texts.txt", "--seed", seed))
        for seed in (1, 2)
    }
    assert len(by_seed) == 2
    done = run("evaluate", tmp_path / "nodes.txt", "--labelled", tmp_path / "texts.txt", "-k", 2, code=2)
    assert "-k has no effect with --labelled and word vectors" in done.stderr
