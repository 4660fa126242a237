"""`tune_classifier`: search for good settings of a classifier within a time budget, then train with the best.

Candidates are scored on a held-out file, or by cross-validation: three candidates are scored on one part of the texts,
and the best of them on the other parts, too.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from w2v._errors import NothingToTrain, SettingsError
from w2v._evaluation.labels import precision_recall_curve, score_labels
from w2v._progress import Report
from w2v._system.files import PathLike
from w2v._text.labels import LabelledTexts, LabelOptions
from w2v._training.classifier import Classifier
from w2v._training.config import LABEL_SETTINGS
from w2v._training.identity import identity_of, new_run_id
from w2v._training.labels import MEAN_ALPHA
from w2v._training.search import ETA, Choices, Search, TimeBudget, Trial, Tuned, seconds_of
from w2v._training.train import train_classifier

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
VECTOR_SIZES = (10, 25, 50, 100, 200)  # of an embedded classifier
DEFAULTS: dict[str, Any] = {"pooling": LabelOptions.pooling, "word_ngrams": LabelOptions.word_ngrams, **LABEL_SETTINGS}
MIN_FOLDS = 2

log = logging.getLogger("w2v")


@dataclass(frozen=True)
class Metric:
    """A function that scores a classifier, given as text.

    It is accuracy, macro_f1 or f1, which LabelScores describes, or the F1 score of a label, as f1:sport. Or it is the
    highest precision of the predictions above a threshold whose recall is at least a number from 0 to 1, as in
    precision_at_recall:0.8, also of a label, as in precision_at_recall:0.8:sport; or recall_at_precision.

    Raises:
        SettingsError: The text is something else.
    """

    text: str = "accuracy"

    def __post_init__(self) -> None:
        self._parts  # noqa: B018 - raises SettingsError for another text

    @property
    def _parts(self) -> tuple[str, float, str | None]:
        """The name, the precision or recall to reach, and the label."""
        found = re.fullmatch(
            r"(accuracy|macro_f1)|(f1)(?::(.+))?|((?:precision_at_recall|recall_at_precision)):(0?\.\d+|[01])(?::(.+))?",
            self.text,
        )
        if not found:
            raise SettingsError(
                f"metric {self.text[:60]!r}: choose accuracy, macro_f1, f1, f1:LABEL, precision_at_recall:0.8 or "
                "recall_at_precision:0.8, which may end with :LABEL, too"
            )
        plain, f1, label, curve, reached, label_of_curve = found.groups()
        return plain or f1 or curve, float(reached or 0), label or label_of_curve

    @property
    def label(self) -> str | None:
        """The label that is scored; None for all."""
        return self._parts[2]

    def __call__(self, model: Classifier, texts: Texts, k: int = 1) -> float:
        """Return the score of a classifier that predicts up to k labels of these texts."""
        name, reached, label = self._parts
        if label is not None and label not in model.labels:  # it is rare, and in none of the texts of the training
            return 0.0
        number = None if label is None else model.labels.index(label)
        blocks = list(model.read_predictions(LabelledTexts.of_lists(*texts), progress=lambda _: None))
        if name not in ("precision_at_recall", "recall_at_precision"):
            scores = score_labels(model.labels, blocks, **model.limits(k), several=model.several)
            return getattr(scores if number is None else scores.labels[number], name) or 0.0
        precision, recall = precision_recall_curve(blocks, k, label=number)
        wanted, limited = (precision, recall) if name == "precision_at_recall" else (recall, precision)
        return float(wanted[limited >= reached].max(initial=0.0))


@dataclass(kw_only=True)
class LabelTuner(Search):
    """A search for the best settings of a classifier.

    Attributes:
        texts: The texts, and their labels.
        parts: For each training, the rows of the texts to train on, and the texts to score.
        metric: The score.
        k: The number of labels to predict for a text.
    """

    last_training = 2  # it also measures the temperature

    texts: Texts
    parts: list[tuple[Any, Texts]]
    metric: Metric
    k: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self.candidates = ETA if len(self.parts) > 1 else 1

    def resources(self, default: Trial) -> Sequence[float]:
        return (1, len(self.parts)) if len(self.parts) > 1 else (1,)

    def in_effect(self, choices: Choices) -> dict[str, Any]:
        return DEFAULTS | self.settings_for(choices)

    def settings_for(self, choices: Choices) -> dict[str, Any]:
        """Return the arguments of `train_classifier` for a trial, without those that have their defaults."""
        settings = {name: value for name, value in choices.items() if value != DEFAULTS.get(name)}
        factor: Any = settings.pop("alpha", 1)
        if factor != 1:
            # The learning rate of idf pooling depends on the number of labels; the first trial has it.
            is_mean = {**self.fixed, **settings}.get("pooling") == "mean" and self.fixed.get("classifier") != "direct"
            settings["alpha"] = factor * (MEAN_ALPHA if is_mean else self.trials[0].alpha or MEAN_ALPHA)
        return settings

    def evaluate(self, choices: Choices, share: float, seed: int) -> tuple[float | None, float | None]:
        rows, test = self.parts[seed - self.seed]
        own = tuple([each[row] for row in rows] for each in self.texts)
        given = {**self.fixed, **self.settings_for(choices), "calibrated": False}  # which changes no ranking
        try:
            with _without_warnings():
                model = train_classifier(*own, progress=self.report, **given)
                return self.metric(model, test, self.k), model.settings.start_alpha
        except NothingToTrain:  # such as words that are rare in this part
            if not self.trials:
                train_classifier(*self.texts, **self.fixed)  # raises the error if all texts together are too few
            return None, None

    def details(self, trial: Trial) -> str:
        return f"part {trial.seed - self.seed + 1} of {len(self.parts)}" if len(self.parts) > 1 else "held-out texts"


def search_labels(
    texts: list[Any],
    labels: list[Any],
    *,
    metric: str = Metric.text,
    k: int = 1,
    held_out: Texts | None = None,
    folds: int = 3,
    time: str = "10m",
    state: PathLike | None = None,
    on_trial: Callable[[Trial, LabelTuner], None] | None = None,
    progress: Report | None = None,
    **given: Any,
) -> LabelTuner:
    """Search for good settings of a classifier. The arguments and errors are those of `tune_classifier`."""
    score, seed = Metric(metric), given.get("seed", 1)
    known = {label for own in labels for label in ([own] if isinstance(own, str) else own)} if score.label else set()
    if score.label and score.label not in known:
        raise SettingsError(f"metric {metric!r}: no text has the label {score.label!r}")
    choices = dict(CHOICES) | ({"vector_size": VECTOR_SIZES} if given.get("classifier") == "embedded" else {})
    if given.get("loss", "ova") != "ova":
        choices.pop("smoothing", None)
    inputs = {"text": _checksum((texts, labels)), "held-out text": _checksum(held_out) if held_out else ""}
    tuner = LabelTuner(
        fixed=given,
        choices={name: values for name, values in choices.items() if name not in given},
        seed=seed,
        budget=TimeBudget(seconds_of(time), progress),
        identity=identity_of(new_run_id(), inputs, given | {"metric": metric, "k": k, "folds": folds}),
        state=None if state is None else Path(state),
        on_trial=on_trial,
        texts=(texts, labels),
        parts=[(range(len(texts)), held_out)] if held_out else _folds(texts, labels, folds, seed),
        metric=score,
        k=k,
    )
    tuner.search()
    return tuner


def tune_classifier(texts: list[Any], labels: list[Any], **given: Any) -> Tuned:
    """Search for good settings of a classifier, and train one with the best.

    Args:
        texts, labels: See `train_classifier`.
        metric: The score; see Metric.
        k: The number of labels to predict for a text.
        held_out: Texts and their labels that score the settings; by default, cross-validation does.
        folds: The number of parts of the cross-validation.
        time: The approximate time for everything: "30s", "10m" or "2h".
        state, on_trial: See Search.
        progress: A function that is called regularly with a `Progress` of phase "tune", which counts seconds.
        given: Settings of all trials: arguments of `train_classifier`.

    Raises:
        W2VError, SettingsError: See `train_classifier`. Settings that leave nothing to train are only skipped, unless
            they are the defaults.
    """
    tuner = search_labels(texts, labels, **given)
    settings = {**tuner.fixed, **tuner.settings_for(tuner.best)}
    return tuner.result(train_classifier(texts, labels, progress=tuner.budget, **settings))


def _checksum(texts: Texts) -> str:
    digest = hashlib.sha256()
    for pair in zip(*texts, strict=True):
        digest.update(repr(pair).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


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


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Hide what each training would log, such as the number of texts without words."""
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
