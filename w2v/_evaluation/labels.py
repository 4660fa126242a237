"""Score predicted labels: precision, recall and F1, confusion and calibration, and compare two classifiers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._display import Result
from w2v._errors import W2VError
from w2v._evaluation.scores import Evaluation, EvaluationResult, ItemScores, Score

CALIBRATION_BINS = 15  # of equal width, as in Guo et al. 2017
MAX_CONFUSED_LABELS = 1000  # a confusion matrix of more labels is not stored
Z_95 = 1.959964  # the normal quantile of a confidence interval of 95%
SMALLEST_PROBABILITY = 1e-12  # limits the log loss of a label that was ruled out


@dataclass(frozen=True)
class Predictions:
    """The predictions for N texts, and their true labels.

    Attributes:
        probabilities: (N, L), the probability of each label; NaN in the row of a text without known words.
        starts: int64 (N + 1,), where the labels of each text begin in `labels`.
        labels: int32 (m,), the true labels; -1 for labels that the model does not have.
    """

    probabilities: NDArray[np.float32]
    starts: NDArray[np.int64]
    labels: NDArray[np.int32]

    @property
    def true_labels(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
        """The text and the number of each true label that the model has, and where they are, bool (N, L)."""
        texts, known = np.repeat(np.arange(len(self.probabilities)), np.diff(self.starts)), self.labels >= 0
        is_true = np.zeros(self.probabilities.shape, bool)
        is_true[texts[known], self.labels[known]] = True
        return texts[known], self.labels[known], is_true


@dataclass(frozen=True)
class LabelScore:
    """The scores of one label. A score is None if there is nothing to divide by.

    Attributes:
        label: The name of the label.
        precision: The share of its predictions that are right.
        recall: The share of its texts for which it was predicted.
        f1: The harmonic mean of precision and recall.
        texts: Number of texts that have this label.
        predicted: Number of texts for which it was predicted.
    """

    label: str
    precision: float | None
    recall: float | None
    f1: float | None
    texts: int
    predicted: int


@dataclass(frozen=True)
class LabelScores(Result):
    """The scores of a classifier on texts with known labels.

    A text may have several labels, and several may be predicted for it: the `k` most probable ones, if their
    probability is at least `threshold`. Texts without known words count, with nothing predicted. So do labels that the
    model does not have, which it cannot predict.

    Attributes:
        texts: Number of texts, N.
        without_words: Number of texts of which the model knows no word.
        unknown_labels: Number of true labels that the model does not have.
        k: The maximum number of labels predicted for a text; None if only the threshold limits it.
        threshold: See above.
        precision: The share of all predictions that are right (micro average); None without predictions.
        recall: The share of all true labels that were predicted (micro average).
        f1: The harmonic mean of precision and recall.
        macro_f1: The mean F1 of the labels that occur or were predicted.
        accuracy: The share of texts of which the most probable label is a true one.
        interval: The confidence interval of `accuracy`, 95% (Wilson 1927).
        log_loss: The mean of -ln p of the true labels; None if no text could be predicted. If labels have independent
            probabilities, the mean over texts of the sum of -ln p of their labels and -ln (1 - p) of the others.
        calibration_error: The expected difference between the probability of the best label and how often it is right
            (Guo et al. 2017, equation 3), in CALIBRATION_BINS bins.
        labels: The scores of each label.
        confusion: int64 (L, L), the number of texts with label i for which label j is the most probable; None above
            MAX_CONFUSED_LABELS. A text with several labels counts for each.
        correct: Bool (N,), whether the most probable label of each text is a true one.
    """

    texts: int
    without_words: int
    unknown_labels: int
    k: int | None
    threshold: float
    precision: float | None
    recall: float | None
    f1: float | None
    macro_f1: float | None
    accuracy: float
    interval: tuple[float, float]
    log_loss: float | None
    calibration_error: float | None
    labels: list[LabelScore]
    confusion: NDArray[np.int64] | None = field(repr=False)
    correct: NDArray[np.bool_] = field(repr=False)


def score_labels(
    labels: Sequence[str],
    blocks: Iterable[Predictions],
    k: int | None = 1,
    threshold: float = 0.0,
    several: bool = False,
) -> LabelScores:
    """Score predictions.

    Args:
        labels: The L labels of the model.
        blocks: The predictions for the texts, in blocks.
        k, threshold: Which labels count as predicted: see LabelScores.
        several: Whether the probabilities of the labels are independent.

    Raises:
        W2VError: The blocks have no text.
    """
    size = len(labels)
    hits, predicted, true = (np.zeros(size, np.int64) for _ in range(3))
    confusion = np.zeros((size, size), np.int64) if size <= MAX_CONFUSED_LABELS else None
    correct, best_probabilities, losses = [], [], [np.empty(0)]
    unknown = 0
    for block in blocks:
        probabilities = np.nan_to_num(block.probabilities)
        texts, gold, is_true = block.true_labels
        unknown += len(block.labels) - len(gold)
        chosen = predicted_labels(block.probabilities, k, threshold)
        hits += (chosen & is_true).sum(axis=0)
        predicted += chosen.sum(axis=0)
        true += is_true.sum(axis=0)
        has_words = ~np.isnan(block.probabilities[:, 0])
        best = probabilities.argmax(axis=1)
        correct.append(is_true[np.arange(len(best)), best] & has_words)
        best_probabilities.append(np.where(has_words, probabilities.max(axis=1), np.nan))
        texts, gold = texts[has_words[texts]], gold[has_words[texts]]
        if several:
            losses.append(log_losses(probabilities, is_true)[has_words])
        else:
            losses.append(-np.log(np.maximum(probabilities[texts, gold], SMALLEST_PROBABILITY)))
        if confusion is not None:
            predictions = np.where(is_true[texts, best[texts]], gold, best[texts])
            np.add.at(confusion, (gold, predictions), 1)
    if not sum(map(len, correct)):
        raise W2VError("there are no texts to score: give at least one")
    right, probability, loss = np.concatenate(correct), np.concatenate(best_probabilities), np.concatenate(losses)
    each = [
        LabelScore(label, *_precision_recall_f1(*numbers), numbers[2], numbers[1])
        for label, *numbers in zip(labels, hits.tolist(), predicted.tolist(), true.tolist(), strict=True)
    ]
    f1s = [score.f1 or 0.0 for score in each if score.texts or score.predicted]
    overall = _precision_recall_f1(int(hits.sum()), int(predicted.sum()), int(true.sum()) + unknown)
    return LabelScores(
        texts=len(right),
        without_words=int(np.isnan(probability).sum()),
        unknown_labels=unknown,
        k=k,
        threshold=threshold,
        precision=overall[0],
        recall=overall[1],
        f1=overall[2],
        macro_f1=float(np.mean(f1s)) if f1s else None,
        accuracy=float(right.mean()),
        interval=wilson_interval(int(right.sum()), len(right)),
        log_loss=float(loss.mean()) if len(loss) else None,
        calibration_error=_calibration_error(probability, right),
        labels=each,
        confusion=confusion,
        correct=right,
    )


def scores_of_labels(
    blocks: Iterable[Predictions], k: int | None = 1, threshold: float = 0.0, label: int | None = None
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the probability, at most 1, of each prediction, and whether it is right. Missed labels have -1 and True.

    Args:
        blocks: The predictions for the texts, in blocks.
        k, threshold: Which labels count as predicted: see LabelScores.
        label: The number of the label to score; by default, all labels together.
    """
    own = slice(None) if label is None else slice(label, label + 1)
    scores, truths = [np.empty(0, np.float32)], [np.empty(0, bool)]
    for block in blocks:
        chosen = predicted_labels(block.probabilities, k, threshold)[:, own]
        is_true = block.true_labels[2][:, own]
        unknown = np.count_nonzero(block.labels < 0) if label is None else 0
        each = np.where(chosen, np.minimum(block.probabilities[:, own], 1), np.float32(-1))
        scores += [each[chosen | is_true], np.full(unknown, -1, np.float32)]
        truths += [is_true[chosen | is_true], np.ones(unknown, bool)]
    return np.concatenate(scores), np.concatenate(truths)


def precision_recall_curve(
    blocks: Iterable[Predictions], k: int | None = 1, threshold: float = 0.0, label: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the precision and the recall of the predictions above each threshold, from the highest threshold on.

    The curve ends where all true labels are found, with a last point of precision 1 and recall 0. It is empty without
    predictions. The arguments are those of scores_of_labels.
    """
    scores, is_true = scores_of_labels(blocks, k, threshold, label)
    gold, predicted = np.count_nonzero(is_true), scores >= 0
    if not predicted.any():
        return np.empty(0), np.empty(0)
    scores, is_true = scores[predicted], is_true[predicted]
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum(is_true[order])
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # of equal probabilities
    last = last[: np.searchsorted(right[last], gold) + 1]
    recall = right[last] / gold if gold else np.full(len(last), np.nan)
    return np.append(right[last] / (last + 1), 1.0), np.append(recall, 0.0)


def log_losses(probabilities: NDArray[np.float32], is_true: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the log loss of each of N texts, with independent probabilities of labels: (N,)."""
    right = np.where(is_true, probabilities, 1 - probabilities)
    losses: NDArray[np.float64] = -np.log(np.maximum(right, SMALLEST_PROBABILITY)).sum(axis=1, dtype=np.float64)
    return losses


def predicted_labels(probabilities: NDArray[np.float32], k: int | None, threshold: float) -> NDArray[np.bool_]:
    """Return which labels are predicted, bool (N, L): see LabelScores. Of equal labels, the first is predicted."""
    if k is None:
        return probabilities >= threshold  # False for NaN
    best, values = best_labels(probabilities, k)
    chosen = np.zeros(probabilities.shape, bool)
    np.put_along_axis(chosen, best, values >= threshold, axis=1)
    return chosen


def best_labels(probabilities: NDArray[np.float32], k: int | None) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the k labels with the highest probabilities for N texts, or all, and these probabilities: (N, k) each."""
    if k == 1:
        best = probabilities.argmax(axis=1)[:, np.newaxis]
    else:
        best = np.argsort(-probabilities, axis=1, kind="stable")[:, :k]
    return best, np.take_along_axis(probabilities, best, axis=1)


def shorten(rows: list[Any], width: int, sizes: NDArray[np.int64]) -> list[Any]:
    """Shorten N rows of `width` items to these sizes, and return them."""
    for row in np.flatnonzero(sizes < width).tolist():
        rows[row] = rows[row][: sizes[row]]
    return rows


def evaluate_labels(models: Sequence[str], results: Sequence[LabelScores]) -> Evaluation:
    """Return the scores of classifiers, by their names, as a table. Their accuracies are compared with the first.

    Raises:
        W2VError: The numbers of texts differ.
    """
    texts = results[0].texts
    if others := [one.texts for one in results if one.texts != texts]:
        raise W2VError(f"the classifiers were scored on {texts:,} and {others[0]:,} texts: score both on the same")
    evaluation = Evaluation(models=models)
    items = [ItemScores(np.arange(texts), one.correct.astype(float), texts) for one in results]
    evaluation.add("texts", "accuracy", items, chance=max(label.texts for label in results[0].labels) / texts)
    accuracies = evaluation[0].scores
    for number, one in enumerate(results):
        accuracies[number] = replace(accuracies[number], low=one.interval[0], high=one.interval[1])
    for name in ("precision", "recall", "f1", "macro_f1", "log_loss", "calibration_error"):
        scores = [Score(getattr(one, name), None, None, texts, texts) for one in results]
        evaluation.append(EvaluationResult("texts", name.replace("_", " ").replace("f1", "F1"), scores))
    return evaluation


def wilson_interval(hits: int, trials: int) -> tuple[float, float]:
    """Return the confidence interval of a share, 95% (Wilson 1927)."""
    share, z = hits / trials, Z_95
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return float(max(0.0, centre - half)), float(min(1.0, centre + half))


def _precision_recall_f1(hits: int, predicted: int, true: int) -> tuple[float | None, float | None, float | None]:
    precision, recall = hits / predicted if predicted else None, hits / true if true else None
    f1 = 2 * hits / (predicted + true) if predicted + true else None
    return precision, recall, f1


def _calibration_error(probabilities: NDArray[np.float64], right: NDArray[np.bool_]) -> float | None:
    """Return the mean difference between the probabilities and the shares of right predictions in bins."""
    known = ~np.isnan(probabilities)
    if not known.any():
        return None
    probabilities, hits = probabilities[known], right[known]
    bins = np.minimum((probabilities * CALIBRATION_BINS).astype(np.int64), CALIBRATION_BINS - 1)
    gaps = np.bincount(bins, probabilities) - np.bincount(bins, hits)
    return float(np.abs(gaps).sum() / len(hits))
