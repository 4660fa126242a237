"""The run of a classifier: texts become examples, and words predict labels."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from w2v._errors import Diverged, NothingToTrain, SettingsError, W2VError, pluralise
from w2v._evaluation.labels import SMALLEST_PROBABILITY, log_losses
from w2v._formats import bfloat16
from w2v._formats.storage import SparseMatrix, join_rows
from w2v._kernel.plan import Plan, initial_inputs
from w2v._losses.registry import loss_for
from w2v._progress import Report
from w2v._system.files import temporary_folder
from w2v._text.examples import Examples, Features, RowCounts
from w2v._text.labels import DIRECT_LOSSES, LabelledTexts, LabelOptions
from w2v._text.words import OWN_PREFIX
from w2v._training.checkpoint import Checkpoint
from w2v._training.classifier import Classifier
from w2v._training.communicator import OneProcess
from w2v._training.config import RunConfig
from w2v._training.distributed import DistributedRun
from w2v._training.planning import plan_examples
from w2v._training.reading import ReadText
from w2v._training.run import Run
from w2v._training.start import Initialisation, initialise_from_vectors
from w2v._vectors.keyed import KeyedVectors

log = logging.getLogger("w2v")

# Limits of a direct model that is chosen by default: the bytes of its scores, and the number of its labels, because a
# step takes time in proportion to their square.
MAX_DIRECT_BYTES, MAX_DIRECT_LABELS = 1 << 30, 1000
# Learning rates, the best that were measured (bench/NOTES.md): by loss in direct models, for any loss in embedded ones.
DIRECT_ALPHA = {"ova": 10.0, "softmax": 5.0}
EMBEDDED_ALPHA, MEAN_ALPHA = 0.2, 0.5
# The temperature is measured on at most HELD_OUT_TEXTS after at most CALIBRATION_TEXTS of training.
HELD_OUT_SHARE, HELD_OUT_TEXTS, CALIBRATION_TEXTS, MIN_HELD_OUT = 0.1, 2000, 20_000, 20
MAX_HELD_OUT_SCORES = 1_000_000  # scores of all labels for these texts
MANY_LABELS = 5000  # from here on, scoring all labels takes too long for most uses
SMALLEST_SCORE = 1 / 256  # of a direct model, as a share of its largest score: smaller ones become 0 (bench/NOTES.md)
SCORES_AT_ONCE = 1 << 22
TEMPERATURES = np.geomspace(1 / 16, 16, 81)
BACK_OFF = 4  # after divergence, the learning rate is divided by this


@dataclass(frozen=True)
class LabelledExamples:
    """The texts of a classifier, after they were read.

    Attributes:
        features: The words, n-grams and labels.
        examples: The texts of this rank with words and labels, in random order.
        texts: The number of the texts of all ranks.
        held_out: The texts that score the run after each epoch; None if they are the last of the examples.
        several: Whether a text has several labels.
        source: The classifier that the run continues, or the vectors that words start with, or None.
        rows: int64 (n,), the row in `features` of each row of the continued classifier.
        label_numbers: int64 (m,), the number in `features` of each of its labels.
    """

    features: Features
    examples: Examples
    texts: int
    held_out: Examples | None
    several: bool
    source: Classifier | KeyedVectors | None
    rows: NDArray[np.int64]
    label_numbers: NDArray[np.int64]

    @classmethod
    def of(
        cls, text: ReadText, config: RunConfig, source: Classifier | KeyedVectors | None, checkpoint: Checkpoint | None
    ) -> LabelledExamples:
        """Find the words, n-grams and labels of a text.

        Args:
            text: The text.
            config: The description of the run.
            source: The classifier to continue, or the vectors to start words with.
            checkpoint: The checkpoint to resume from, which has the words, n-grams and labels.

        Raises:
            NothingToTrain: The texts have fewer than two labels, or no text has words.
            SettingsError: The loss of the continued classifier cannot learn a new label.
        """
        options, ranks, folder = config.labels, text.ranks, temporary_folder(config.reading.cache)
        assert options
        features, found, rows, numbers = _find_features(text, config, source, checkpoint)
        weights = text.corpus.sample_weight if isinstance(text.corpus, LabelledTexts) else None
        if weights is not None and len(weights) != len(found.sizes):
            raise W2VError(f"{len(weights):,} sample weights, and {len(found.sizes):,} texts")
        with ranks.collective_errors():
            examples = features.examples(found, weights, config.settings.seed, folder)
        own = [len(found.sizes), len(examples), np.count_nonzero(np.diff(examples.label_starts) > 1)]
        total, texts, multiple = ranks.allreduce(np.array(own, np.int64)).tolist()
        with ranks.collective_errors():
            if not texts:
                weightless = " and a weight above 0" if weights is not None else ""
                raise NothingToTrain(f"{text.corpus} has no text with both words and a label{weightless}")
        if zero := 0 if weights is None else int(np.count_nonzero(weights == 0)):
            log.warning("skipped %s of weight 0", pluralise(zero, "text"))
        if skipped := total - texts - zero:
            log.warning("skipped %s without words or without a label", pluralise(skipped, "text"))
        several = bool(multiple or options.several or (isinstance(source, Classifier) and source.several))
        if several and isinstance(source, Classifier) and isinstance(source.inputs, SparseMatrix):
            raise NothingToTrain(  # its scores are only right relative to each other
                f"{text.corpus} has texts with several labels, but the classifier to continue was trained with one for "
                "each: train a new classifier on all texts"
            )
        if options.balanced:
            examples = examples.balanced(len(features.labels), ranks.allreduce)
        held_out = None
        if text.held_out:
            _, found = features.find(text.held_out.store, _prefix_of(text.held_out, options), folder=folder)
            held_out = features.examples(found, folder=folder)
            if not len(held_out):
                raise NothingToTrain(f"{text.held_out.corpus} has no text with both known words and a known label")
            if skipped := len(found.sizes) - len(held_out):
                unknown = "without known words or without a known label"
                log.warning("%s: skipped %s %s", text.held_out.corpus, pluralise(skipped, "text"), unknown)
        return cls(features, examples, texts, held_out, several, source, rows, numbers)

    def choose(self, config: RunConfig) -> RunConfig:
        """Choose the model, the loss and the learning rate that are not given. Say so if texts have several labels."""
        settings, options = config.settings, config.labels
        assert options
        classes = len(self.features.labels)
        kind, loss = options.classifier, settings.loss
        if kind == "auto":
            is_small = self.features.rows * classes * 4 <= MAX_DIRECT_BYTES and classes <= MAX_DIRECT_LABELS
            kind = "direct" if options.pooling == "idf" and is_small else "embedded"
        if kind == "embedded" and options.auto_loss and not self.several:
            loss = "softmax"
        if self.several:
            log.warning(
                "texts have several labels: %s",
                "each has a probability of its own, and predict returns labels of 0.5 or more"
                if loss == "ova"
                else f"loss {loss} learns one of them at a time; ova learns all",
            )
        if loss in DIRECT_LOSSES and classes > MANY_LABELS:
            log.warning("%s labels: each step scores all of them; loss hs or ns is faster", f"{classes:,}")
        alpha = settings.alpha
        if alpha is None:
            alpha = MEAN_ALPHA if options.pooling == "mean" else EMBEDDED_ALPHA
            alpha = DIRECT_ALPHA[loss] if kind == "direct" else alpha
        size = classes if kind == "direct" else settings.vector_size
        chosen = replace(settings, loss=loss, alpha=alpha, vector_size=size)
        return replace(config, settings=chosen, labels=replace(options, classifier=kind, several=self.several))


def _find_features(
    text: ReadText, config: RunConfig, source: Classifier | KeyedVectors | None, checkpoint: Checkpoint | None
) -> tuple[Features, RowCounts, NDArray[np.int64], NDArray[np.int64]]:
    """Return the features, the rows of this rank's texts, and the last two fields of LabelledExamples.

    The arguments and the errors are those of LabelledExamples.of.
    """
    settings, options, ranks = config.settings, config.labels, text.ranks
    assert options
    prefix, folder = _prefix_of(text, options), temporary_folder(config.reading.cache)
    rows = numbers = np.empty(0, np.int64)
    if checkpoint and checkpoint.features:
        with ranks.collective_errors():
            return *checkpoint.features.find(text.store, prefix, folder=folder), rows, numbers
    before = source.features if isinstance(source, Classifier) else None
    with ranks.collective_errors():
        limits: dict[str, Any] = {"min_count": settings.min_count, "max_vocab": settings.max_vocab}
        limits |= {"subwords": settings.ngrams, "buckets": settings.buckets}
        features, rows, numbers = Features.choose(text.types, options, prefix, before, **limits)
        if len(features.labels) < 2:
            only = features.labels.words[0]
            raise NothingToTrain(f"{text.corpus} has one label, {only[:60]!r}: at least 2 are needed")
        if isinstance(source, Classifier) and source.loss.fixed_vocabulary:
            if new := set(features.labels.words) - set(source.labels):
                raise SettingsError(
                    f"loss {settings.loss} cannot learn the new label {min(new)[:60]!r}: "
                    "train a new classifier, or one with loss ova or softmax"
                )
            features, numbers = replace(features, labels=source.features.labels), np.arange(len(source.labels))
        features, found = features.find(text.store, prefix, add=not options.pruned, folder=folder)
    if ranks.size > 1:
        features, found = features.agree(found, len(before.buckets) if before else 0, ranks.allreduce)
    if options.pooling == "idf":
        features = features.with_idf(found, text.types, before, rows, ranks.allreduce)
    return features, found, rows, numbers


def _prefix_of(text: ReadText, options: LabelOptions) -> str:
    """Return what labels begin with in the lines of a text."""
    return OWN_PREFIX if isinstance(text.corpus, LabelledTexts) else options.label_prefix


def initialise_labels(
    config: RunConfig, labelled: LabelledExamples, checkpoint: Checkpoint | None = None
) -> Initialisation:
    """Return the labels and the matrices of a run at its start, or at the checkpoint that it resumes from."""
    features, settings, source = labelled.features, config.settings, labelled.source
    if checkpoint:
        own = checkpoint.loss, checkpoint.parameters
        instruction_set = checkpoint.resume_info.instruction_set
        return Initialisation(features.labels, *own, frozen=checkpoint.frozen, instruction_set=instruction_set)
    loss = loss_for(settings, features.labels)
    if isinstance(source, KeyedVectors):
        initial = initialise_from_vectors(source, features.vocabulary, config.freeze, len(features.buckets))
        return replace(initial, vocabulary=features.labels, loss=loss)
    size, parameters = settings.vector_size, dict[str, NDArray[Any]]()
    if config.labels and config.labels.classifier == "direct":
        # With the identity as output rows, which stay unchanged, the scores of the labels are the pooled row itself.
        parameters = {"inputs": np.zeros((features.rows, size), np.float32), "outputs": np.eye(size, dtype=np.float32)}
        if source:
            parameters["inputs"][np.ix_(labelled.rows, labelled.label_numbers)] = source.inputs
    elif source:
        parameters = {"inputs": initial_inputs(features.rows, size, settings.seed)[:, :size], **source.parameters}
        parameters["inputs"][labelled.rows] = source.inputs
        if not source.loss.fixed_vocabulary:  # each label has a row
            parameters["outputs"] = np.zeros((len(features.labels), size), np.float32)
            parameters["outputs"][labelled.label_numbers] = source.outputs
    return Initialisation(features.labels, loss, parameters)


class LabelRun(Run):
    """A run that trains words to predict the labels of texts.

    Its vocabulary are the labels, because the loss predicts them; its input rows are the rows of `features`.
    """

    def __init__(self, labelled: LabelledExamples, config: RunConfig, initial: Initialisation, *args: Any, **more: Any):
        self._labelled, self.temperature = labelled, 1.0
        self._resumed_from: Checkpoint | None = None
        assert config.labels
        self.options: LabelOptions = config.labels
        super().__init__(config, initial, *args, **more)

    @property
    def features(self) -> Features:
        return self._labelled.features

    def _plan(self, initial: Initialisation) -> Plan:
        own = self._labelled.examples, self.features.rows, self.options.classifier == "direct"
        return plan_examples(self.settings, initial, *own, self.max_chunk)

    def _hold_out(self) -> tuple[float, Callable[[], float]]:
        """Return the share of the texts to train on, and a function that returns the accuracy on held-out texts."""
        examples, held_out = self._labelled.examples, self._labelled.held_out
        trained = len(examples)
        if held_out is None:
            trained -= max(1, round(HELD_OUT_SHARE * trained))
            held_out = examples.part(trained, len(examples))
        texts = np.repeat(np.arange(len(held_out)), np.diff(held_out.label_starts))

        def accuracy() -> float:
            model = self.view()
            size = max(1, SCORES_AT_ONCE // len(model.labels))
            starts = range(0, len(held_out), size)
            parts = (held_out.part(first, min(first + size, len(held_out))) for first in starts)
            best = np.concatenate([model.probabilities_of(model.pool(part)).argmax(axis=1) for part in parts])
            right = np.bincount(texts, best[texts] == held_out.labels, len(held_out)) > 0
            return float(right.mean())

        return trained / len(examples), accuracy

    def make_checkpoint(self) -> Checkpoint:
        return replace(super().make_checkpoint(), features=self.features)

    def restore(self, checkpoint: Checkpoint) -> None:
        super().restore(checkpoint)
        self._resumed_from = checkpoint

    def train(self, report: Report | None = None) -> None:
        """Train to the end, with a lower learning rate if training diverges, and measure the temperature."""
        while True:
            try:
                super().train(report)
                break
            except Diverged as error:
                if self.plan.settings.start_alpha < 1e-6:
                    raise
                alpha = self.plan.settings.start_alpha / BACK_OFF
                where = "going on from the checkpoint" if self._resumed_from else "starting again"
                log.warning("%s: %s with alpha %g", error, where, alpha)
                self._start_again(alpha)
        self.temperature = self._measure_temperature()

    def _start_again(self, alpha: float) -> None:
        """Go back to the start of the run, or to the checkpoint that it resumed from, with another learning rate.

        A checkpoint does not tell where the run began, which may be another classifier.
        """
        settings = replace(self.settings, alpha=alpha, min_alpha=None)
        self.config = replace(self.config, settings=settings)
        self.plan = replace(self.plan, settings=settings)
        self.history, self.scores, self._failed = np.zeros((0, 4)), [], False
        self._allocate(initialise_labels(self.config, self._labelled, self._resumed_from), 0, 0)
        if self._resumed_from:
            self.restore(self._resumed_from)

    def _measure_temperature(self) -> float:
        """Return the temperature that gives held-out texts the highest probability of their labels (Guo et al. 2017).

        Another run trains without these texts, because the probabilities of texts that were trained are too high.
        """
        examples = self._labelled.examples
        most = min(HELD_OUT_TEXTS, MAX_HELD_OUT_SCORES // len(self.features.labels))
        size = min(int(HELD_OUT_SHARE * len(examples)), max(MIN_HELD_OUT, most))
        if size < MIN_HELD_OUT or not self.options.calibrated:
            return 1.0
        config = replace(self.config, settings=replace(self.settings, stop_early=None))
        trained = min(len(examples) - size, CALIBRATION_TEXTS)
        source = self._labelled.source  # a continued classifier may know the held-out texts
        labelled = replace(self._labelled, source=None if isinstance(source, Classifier) else source)
        initial = initialise_labels(config, labelled)
        if self.frozen is not None:
            kept = {"inputs": self.parameters["inputs"][self.frozen]}
            initial = replace(initial, parameters=kept, rows=np.flatnonzero(self.frozen), frozen=self.frozen)
        text = replace(self.text, ranks=OneProcess())  # the other ranks do not train it
        run = LabelRun(labelled, config, initial, text, share=trained / len(examples))
        try:
            Run.train(run)
        except Diverged:
            return 1.0
        held_out = examples.part(len(examples) - size, len(examples))
        model: Classifier = run.view()
        pooled = model.pool(held_out)
        log_losses = [_log_loss(model, pooled / np.float32(each), held_out) for each in TEMPERATURES]
        best = int(np.argmin(log_losses))
        return float(TEMPERATURES[best]) if log_losses[best] < log_losses[len(TEMPERATURES) // 2] else 1.0

    def view(self) -> Any:
        """Return the classifier as trained so far."""
        parameters = dict(self.parameters)
        inputs: NDArray[np.float32] | SparseMatrix = bfloat16.to_float32(parameters.pop("inputs"))
        if self.options.classifier == "direct":
            del parameters["outputs"]
            if not self._labelled.several:
                inputs = compact_scores(np.asarray(inputs))
        return Classifier(
            self.settings,
            self.options,
            self.features,
            inputs,
            self.plan.loss,
            {name: bfloat16.to_float32(array) for name, array in parameters.items()},
            several=self._labelled.several,
            temperature=self.temperature,
            text=self.config.text,
            metrics=self._metrics_of_run() | {"texts": self._labelled.texts},
        )


def compact_scores(scores: NDArray[np.float32]) -> NDArray[np.float32] | SparseMatrix:
    """Return the scores of a direct model, (R, L), without those that hardly matter: a SparseMatrix if it is smaller.

    Most scores of a row are alike, because its word or n-gram never occurs with these labels. Where texts have one
    label, adding a number to all scores of a row changes no probability. So scores are made relative to the median of
    their row, and then those below SMALLEST_SCORE of the largest one become 0.
    """
    middle, blocks = scores.shape[1] // 2, []
    smallest = SMALLEST_SCORE * np.abs(scores).max()
    for _, block in bfloat16.float32_blocks(scores, SCORES_AT_ONCE // scores.shape[1]):
        relative = block - np.partition(block, middle, axis=1)[:, middle, np.newaxis]
        blocks.append(SparseMatrix.of(np.where(np.abs(relative) < smallest, np.float32(0), relative)))
    sparse: Any = join_rows(cast(Any, blocks))
    return sparse if sparse.nbytes < scores.size * scores.itemsize else scores


class DistributedLabelRun(LabelRun, DistributedRun):
    """A run of several ranks that predicts labels. Each has a part of the texts, and the same features and matrices."""

    def _frequencies(self) -> dict[str, NDArray[np.float64]]:
        """Return the expected updates of each row per trained row of a text, with the squares of their factors."""
        examples, rows = self._labelled.examples, self.features.rows
        total = self.communicator.sum_of(len(examples.rows))
        squares = np.bincount(examples.rows, examples.weights.astype(np.float64) ** 2, rows)
        counts = self.vocabulary.counts
        outputs = self.plan.loss.expected_updates(counts / counts.sum()) * self._labelled.texts / total
        return {"inputs": self.communicator.allreduce(squares) / total, "outputs": outputs}

    def train(self, report: Report | None = None) -> None:
        """Train to the end, and let rank 0 measure the temperature. If training diverges, all ranks fail."""
        DistributedRun.train(self, report)
        with self.communicator.collective_errors():
            own = self._measure_temperature() if self.communicator.is_root else 1.0
        self.temperature = float(self.communicator.allgather(repr(own))[0])


def _log_loss(model: Classifier, pooled: NDArray[np.float32], examples: Examples) -> float:
    """Return the mean log loss of the labels of examples."""
    probabilities = model.probabilities_of(pooled)
    texts = np.repeat(np.arange(len(examples)), np.diff(examples.label_starts))
    if not model.several:
        return float(-np.log(np.maximum(probabilities[texts, examples.labels], SMALLEST_PROBABILITY)).mean())
    is_true = np.zeros(probabilities.shape, bool)
    is_true[texts, examples.labels] = True
    return float(log_losses(probabilities, is_true).mean())
