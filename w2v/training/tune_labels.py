"""`tune_classifier`: search for good settings of a classifier within a time budget, then train with the best.

The search is random, and begins with the defaults. A candidate keeps most values of the best settings so far. It is
trained on some parts of the texts and scored on the others (cross-validation), or scored on a held-out file. A
candidate whose mean score is clearly below the best on the parts tried so far is dropped, so a bad one costs one
training.
"""

from __future__ import annotations

import json
import logging
import time as clock
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean
from typing import Any, Literal, get_args

import numpy as np

from w2v.display import Result
from w2v.errors import NothingToTrain, SettingsError
from w2v.progress import Progress, Report
from w2v.text.labels import LabelOptions
from w2v.training.classifier import Classifier
from w2v.training.classify import train_classifier
from w2v.training.config import LABEL_SETTINGS
from w2v.training.tune import seconds_of

Metric = Literal["accuracy", "macro_f1"]
Texts = tuple[list[Any], list[Any]]  # the texts, and the label or labels of each

CHOICES: dict[str, tuple[Any, ...]] = {
    "pooling": ("idf", "mean"),
    "word_ngrams": (1, 2, 3),
    "subwords": (None, "2-4", "3-6"),
    "epochs": (5, 10, 20, 40),
    "alpha": (0.25, 0.5, 1, 2, 4),  # times the default
    "smoothing": (0.0, 0.01, 0.05, 0.1),
    "min_count": (1, 2, 3),
}
DEFAULTS: dict[str, Any] = {"pooling": LabelOptions.pooling, "word_ngrams": LabelOptions.word_ngrams, **LABEL_SETTINGS}
DROP_BELOW = 0.01  # a candidate is dropped if its score is so much lower than the best
KEEP_PROBABILITY = 0.7  # probability that a candidate keeps the best value of a setting
MAX_DRAWS = 200  # if so many draws give no new candidate, all of them count as tried
MIN_FOLDS = 2

log = logging.getLogger("w2v")


@dataclass(frozen=True)
class LabelTrial:
    """The training with candidate settings on one or more folds.

    Attributes:
        settings: The settings that differ from the defaults.
        scores: The score on each fold; fewer than all folds if the candidate was dropped.
        seconds: The time that it took.
    """

    settings: dict[str, Any]
    scores: list[float]
    seconds: float

    @property
    def score(self) -> float:
        """The mean score."""
        return mean(self.scores)


@dataclass(frozen=True)
class TunedClassifier(Result):
    """The result of `tune_classifier`.

    Attributes:
        model: A classifier of all texts, with the best settings.
        changed: The settings that differ from the defaults.
        score: The score of the best settings.
        default_score: The score of the default settings.
        trials: All trials, in order.
    """

    model: Classifier
    changed: dict[str, Any]
    score: float
    default_score: float
    trials: list[LabelTrial] = field(repr=False)


def tune_classifier(
    texts: list[Any],
    labels: list[Any],
    *,
    metric: Metric = "accuracy",
    held_out: Texts | None = None,
    folds: int = 3,
    time: str = "10m",
    on_trial: Callable[[LabelTrial, list[LabelTrial]], None] | None = None,
    progress: Report | None = None,
    **given: Any,
) -> TunedClassifier:
    """Search for good settings of a classifier, and train one with the best.

    Args:
        texts, labels: See `train_classifier`.
        metric: The score: "accuracy" or "macro_f1"; see LabelScores.
        held_out: Texts and their labels that score the settings; by default, cross-validation does.
        folds: The number of parts of the cross-validation.
        time: The time for the search, such as "30s", "10m" or "2h". The last training comes in addition.
        on_trial: A function that is called after each trial, with the trials so far.
        progress: A function that is called regularly with a `Progress` of phase "tune", which counts seconds.
        given: Settings of all trials: arguments of `train_classifier`.

    Raises:
        W2VError, SettingsError: See `train_classifier`. Settings that leave nothing to train are only skipped, unless
            they are the defaults.
    """
    if metric not in get_args(Metric):
        raise SettingsError(f"metric {metric!r}: choose from {', '.join(get_args(Metric))}")
    parts = [(np.arange(len(texts)), held_out)] if held_out else _folds(texts, labels, folds, given.get("seed", 1))
    seconds, started = seconds_of(time), clock.monotonic()
    choices = {name: values for name, values in CHOICES.items() if name not in given}
    random, seen, trials = np.random.default_rng(given.get("seed", 1)), set[str](), list[LabelTrial]()
    default_alphas: dict[str, float] = {}  # by pooling
    best, candidate = LabelTrial({}, [-np.inf], 0.0), dict[str, Any]()
    with _without_warnings():
        while clock.monotonic() - started < seconds:
            seen.add(json.dumps(candidate, sort_keys=True))
            begun, scores = clock.monotonic(), list[float]()
            for rows, test in parts:
                own = [texts[row] for row in rows], [labels[row] for row in rows]
                try:
                    model = train_classifier(*own, progress=lambda _: None, **given | candidate)
                    scores.append(getattr(model.evaluate(*test), metric) or 0.0)
                    if "alpha" not in candidate:
                        default_alphas[model.options.pooling] = model.settings.start_alpha
                except NothingToTrain:  # such as words that are rare in this part
                    scores.append(-np.inf)
                    if not trials and len(scores) == len(parts) and max(scores) == -np.inf:
                        raise
                if progress:
                    used = min(clock.monotonic() - started, seconds)
                    progress(Progress("tune", int(used), int(seconds), "seconds", None, seconds - used))
                if mean(scores) < mean(best.scores[: len(scores)]) - DROP_BELOW:
                    break
            trials.append(LabelTrial(candidate, scores, clock.monotonic() - begun))
            if len(scores) == len(parts) and trials[-1].score > best.score:
                best = trials[-1]
            if on_trial:
                on_trial(trials[-1], trials)
            drawn = _draw(random, best.settings, choices, DEFAULTS | given, default_alphas, seen)
            if drawn is None:
                break
            candidate = drawn
    model = train_classifier(texts, labels, **given | best.settings)
    return TunedClassifier(model, best.settings, best.score, trials[0].score, trials)


def _folds(texts: list[Any], labels: list[Any], folds: int, seed: int) -> list[tuple[Any, Texts]]:
    """Return the rows to train and the texts to score, with their labels, of each part of a cross-validation."""
    if not MIN_FOLDS <= folds <= len(texts):
        raise SettingsError(f"folds {folds}: it must be from {MIN_FOLDS} to the number of texts, {len(texts):,}")
    order = np.random.default_rng(seed).permutation(len(texts))
    found = []
    for part in np.array_split(order, folds):
        rows = np.setdiff1d(order, part)
        found.append((rows, ([texts[row] for row in part], [labels[row] for row in part])))
    return found


def _draw(
    random: np.random.Generator,
    best: dict[str, Any],
    choices: Mapping[str, tuple[Any, ...]],
    defaults: dict[str, Any],
    default_alphas: Mapping[str, float],
    seen: set[str],
) -> dict[str, Any] | None:
    """Return new settings near the best, without those that are defaults; None if nearly all have been tried."""
    for _ in range(MAX_DRAWS):
        candidate = dict(best)
        for name, values in choices.items():
            if random.random() < KEEP_PROBABILITY:
                continue
            value = values[random.integers(len(values))]
            if name == "alpha":
                default = default_alphas.get((defaults | candidate)["pooling"])
                value = None if default is None or value == 1 else default * value
            candidate[name] = value
        candidate = {name: value for name, value in candidate.items() if value not in (None, defaults.get(name))}
        if candidate.get("pooling") != best.get("pooling"):
            candidate.pop("alpha", None)  # each pooling has a default of its own
        if json.dumps(candidate, sort_keys=True) not in seen:
            return candidate
    return None


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Hide what each training would log, such as the number of texts without words."""
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
