"""`tune_classifier`: the score of a trial, how a stopped search is resumed, and trials without a score."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import Stop, stop_after, trials_in
from w2v._errors import Diverged, NothingToTrain
from w2v._evaluation.labels import Predictions, precision_recall_curve
from w2v._training import tune_labels
from w2v._training.search import Trial
from w2v._training.tune_labels import LabelTuner, Metric, tune_classifier

TEXTS, LABELS = ["ball goal team", "soup salt pan", "goal ball", "pan salt"] * 5, ["sport", "food"] * 10
HELD_OUT = ["goal soup ball", "salt pan", "team", "unknown"], ["sport", "food", "sport", "food"]


def test_precision_recall_curve_has_a_point_for_each_probability() -> None:
    probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0.3, 0.7], [np.nan, np.nan]], np.float32)
    labels = np.array([0, 0, 1, 1, 1], np.int32)
    blocks = [
        Predictions(probabilities[:2], np.arange(3), labels[:2]),
        Predictions(probabilities[2:], np.arange(4), labels[2:]),
    ]
    precision, recall = precision_recall_curve(blocks)
    np.testing.assert_allclose(precision, [1, 1, 3 / 4, 1])
    np.testing.assert_allclose(recall, [1 / 5, 2 / 5, 3 / 5, 0])
    precision, recall = precision_recall_curve(blocks, label=0)
    np.testing.assert_allclose(precision, [1, 2 / 3, 1])
    np.testing.assert_allclose(recall, [1 / 2, 1, 0])
    precision, recall = precision_recall_curve(blocks, k=None, label=1)  # 0.7, twice 0.4, and not 0.1
    np.testing.assert_allclose(precision, [1, 2 / 3, 2 / 4, 1])
    np.testing.assert_allclose(recall, [1 / 3, 2 / 3, 2 / 3, 0])
    assert [len(each) for each in precision_recall_curve(blocks[1:][:0])] == [0, 0]


def test_metrics_score_a_classifier() -> None:
    model = w2v.train_classifier(TEXTS, LABELS)
    scores = model.evaluate(*HELD_OUT)
    assert (scores.accuracy, scores.labels[model.labels.index("food")].f1) == (0.75, 2 / 3)
    expected = {
        "accuracy": 0.75,
        "macro_f1": scores.macro_f1,
        "f1": scores.f1,
        "f1:food": 2 / 3,
        "f1:other": 0,
        "precision_at_recall:0.7": 1,
        "precision_at_recall:0.8": 0,  # the text without known words is never found
        "precision_at_recall:1:sport": 1,
        "recall_at_precision:0.9:food": 0.5,
    }
    assert {text: Metric(text)(model, HELD_OUT) for text in expected} == expected
    for text in ("f2", "accuracy:food", "precision_at_recall", "precision_at_recall:80", "recall_at_precision:x"):
        with pytest.raises(w2v.SettingsError, match=f"metric '{text}': choose accuracy, macro_f1, f1, f1:LABEL"):
            Metric(text)
    with pytest.raises(w2v.SettingsError, match="no text has the label 'other'"):
        tune_classifier(TEXTS, LABELS, metric="f1:other")


def test_resume_does_not_repeat_trials(tmp_path: Path) -> None:
    state, other = tmp_path / "state.json", tmp_path / "other.json"

    def tune(count: int, state: Path, **more: Any) -> list[dict[str, Any]]:
        with pytest.raises(Stop):
            tune_classifier(TEXTS, LABELS, state=state, on_trial=stop_after(count), folds=2, workers=1, **more)
        return trials_in(state)

    first = tune(4, state)
    second = tune(12, state, time="1h")
    assert second[:4] == first
    uninterrupted = tune(12, other)
    assert [{**each, "seconds": 0} for each in second] == [{**each, "seconds": 0} for each in uninterrupted]
    assert [each["seed"] for each in second[:7]] == [1, 2, 1, 1, 1, 2, 1]  # three candidates, and the best of them
    for change, message in (
        ({"metric": "f1"}, "with metric accuracy, not f1"),
        ({"epochs": 3}, "with epochs none, not 3"),
        ({"held_out": HELD_OUT}, "without held-out text"),
    ):
        with pytest.raises(w2v.W2VError, match=rf"state\.json belongs to another run, {message}: give the same"):
            tune_classifier(TEXTS, LABELS, **{"state": state, "folds": 2, "workers": 1} | change)
    with pytest.raises(w2v.W2VError, match="with different text"):
        tune_classifier(TEXTS, LABELS[::-1], state=state, folds=2, workers=1)


def test_trials_without_a_score_do_not_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    train, calls = tune_labels.train_classifier, list[dict[str, Any]]()

    def failing(*texts: Any, **given: Any) -> Any:
        calls.append(given)
        if given.get("epochs") == 20:
            raise Diverged("NaN")
        if given.get("epochs") == 40:
            raise NothingToTrain("no words")
        return train(*texts, **given)

    monkeypatch.setattr(tune_labels, "train_classifier", failing)
    monkeypatch.setattr(tune_labels, "CHOICES", {"epochs": (3, 20, 40), "alpha": (1, 2)})
    trials = list[Trial]()
    options: dict[str, Any] = {"held_out": HELD_OUT, "on_trial": lambda trial, _: trials.append(trial), "alpha": 5.0}
    result = tune_classifier(TEXTS, LABELS, **options)
    assert {trial.choices.get("epochs", 10): trial.score for trial in trials} == {10: 0.75, 3: 0.75, 20: None, 40: None}
    assert (result.trials, result.score, result.changed) == (4, 0.75, {})
    assert [given["calibrated"] for given in calls[:-1]] == [False] * 4  # of trials, only the labels are scored
    assert "calibrated" not in calls[-1]


def test_learning_rates_are_factors_of_the_default() -> None:
    trials = list[Trial]()

    def record(trial: Trial, search: LabelTuner) -> None:
        trials.append(trial)
        if len(trials) == 25:
            raise Stop

    with pytest.raises(Stop):
        tune_classifier(TEXTS, LABELS, held_out=HELD_OUT, on_trial=record, epochs=1, workers=1)
    assert trials[0].alpha == 10
    for trial in trials:
        default = 0.5 if trial.choices.get("pooling") == "mean" else 10
        assert trial.alpha == default * float(trial.choices.get("alpha") or 1)
