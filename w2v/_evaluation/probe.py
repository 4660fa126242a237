"""Classify texts, or the nodes of a graph, by their vectors: which labels can be told from the vectors?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, W2VError
from w2v._evaluation.scores import Evaluation, ItemScores, name_models, resampled
from w2v._losses.loss import Array
from w2v._options import check_numbers
from w2v._vectors.cosines import unit
from w2v._vectors.encode import encode
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of

FOLDS = 5
SEED = 1


def probe(
    *models: KeyedVectors | HasWordVectors,
    texts: Sequence[str],
    labels: Sequence[str | Sequence[str]],
    seed: int = SEED,
) -> Evaluation:
    """Score how well a logistic regression tells the labels of texts from their vectors, by cross-validation.

    The vectors are those of w2v.encode, with length 1: with weights "sif" if the model has the counts of its words,
    otherwise "mean". The vector of a single word, such as a node of a graph, is its own. In each of 5 folds, the values
    are standardised, and `fit_logistic` is fitted to the other folds. A text gets as many labels as it has, the most
    probable ones (Perozzi, Al-Rfou & Skiena 2014, "DeepWalk"). The results are the micro and the macro F1: 2 hits /
    (predictions + true labels), of all labels together, and its mean over the labels. For texts with one label each,
    micro F1 is the accuracy. By chance, all texts get the most frequent labels. A model that knows words of fewer than
    5 texts has no score.

    Args:
        models: Word vectors, or models that have them. The first is compared with the others.
        texts: N texts.
        labels: The label of each text, or a list of its labels, at least one.
        seed: Seed of the folds and of the resampling.

    Raises:
        W2VError: There are fewer than 5 texts or 2 labels, or a text has none.
        SettingsError: If `seed` is impossible, `texts` is one text, or there are no models.
    """
    check_numbers(seed=seed)
    if isinstance(texts, str):
        raise SettingsError("texts must be a list of texts, not one text")
    labels = [[each] if isinstance(each, str) else each for each in labels]
    names, places = np.unique([label for each in labels for label in each], return_inverse=True)
    if len(texts) < FOLDS or len(names) < 2 or len(texts) != len(labels) or not all(map(len, labels)):
        raise W2VError(f"{len(texts):,} texts, {len(names):,} labels: a probe needs 5 texts, each with one of 2 labels")
    targets = np.zeros((len(texts), len(names)), bool)
    targets[np.repeat(np.arange(len(texts)), [*map(len, labels)]), places] = True
    results, found = Evaluation(models=name_models(models)), []
    for model in map(vectors_of, models):
        vectors = unit(encode(model, texts, "mean" if model.counts is None else "sif"))
        items = np.flatnonzero(vectors.any(axis=1))
        if len(items) < FOLDS:
            items = items[:0]
        found.append((items, _cross_validate(vectors[items], targets[items], seed)))
    scored = [ItemScores(items, _hits(chosen, targets[items]), len(texts)) for items, chosen in found]
    frequent = ItemScores(np.arange(len(texts)), _hits(_choose(targets.sum(axis=0), targets), targets), len(texts))
    for name, measure in {"micro F1": _micro_f1, "macro F1": _macro_f1}.items():
        chance = float(measure(np.ones((1, len(texts)), np.int64), frequent)[0])
        results.add("labels", name, scored, resampled(measure), chance, seed=seed)
    return results


def fit_logistic(vectors: NDArray[Any], targets: NDArray[Any]) -> Array:
    """Fit a logistic regression for each of L labels, independent of the others.

    It minimises the log loss plus half the squared length of the weights, without the intercept, as scikit-learn's
    LogisticRegression does with C = 1.

    Args:
        vectors: (n, D).
        targets: (n, L), 1 where an item has the label, otherwise 0.

    Returns:
        The weights, and in the last row the intercepts: float64 (D + 1, L).
    """
    from scipy.optimize import minimize  # slow to import
    from scipy.special import expit

    inputs = np.column_stack([vectors, np.ones(len(vectors))]).astype(float)
    shape = inputs.shape[1], targets.shape[1]

    def loss(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(shape)
        penalised = np.vstack([weights[:-1], np.zeros(shape[1])])
        scores = inputs @ weights
        value = (np.logaddexp(0, scores) - targets * scores).sum() + (penalised**2).sum() / 2
        return float(value), (inputs.T @ (expit(scores) - targets) + penalised).ravel()

    fitted: Array = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B").x
    return fitted.reshape(shape)


def _cross_validate(vectors: NDArray[np.float32], targets: NDArray[np.bool_], seed: int) -> NDArray[np.bool_]:
    """Return the labels that are predicted for n texts, bool (n, L), each by a fit to the other folds."""
    folds = np.random.default_rng(seed).permutation(len(vectors)) % FOLDS
    scores = np.zeros(targets.shape)
    for fold in range(FOLDS if len(vectors) else 0):
        rest, own = folds != fold, folds == fold
        mean, spread = vectors[rest].mean(axis=0), vectors[rest].std(axis=0)
        scaled = (vectors - mean) / np.where(spread > 0, spread, 1)
        weights = fit_logistic(scaled[rest], targets[rest])
        scores[own] = scaled[own] @ weights[:-1] + weights[-1]
    return _choose(scores, targets)


def _choose(scores: NDArray[Any], targets: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for each text as many labels as it has, the ones with the highest scores, (n, L) or (L,)."""
    ranks = np.argsort(np.argsort(-scores, axis=-1, kind="stable"), axis=-1)
    chosen: NDArray[np.bool_] = ranks < targets.sum(axis=1, keepdims=True)
    return chosen


def _hits(chosen: NDArray[np.bool_], targets: NDArray[np.bool_]) -> Array:
    """Return for each text and label twice the hits, and then the predictions and true labels, (n, 2 L)."""
    return np.concatenate([2 * (chosen & targets), chosen.astype(int) + targets], axis=1).astype(float)


def _micro_f1(weights: NDArray[np.int64], items: ItemScores) -> Array:
    hits, sizes = np.split(weights @ items.values, 2, axis=1)
    scores: Array = hits.sum(axis=1) / sizes.sum(axis=1)
    return scores


def _macro_f1(weights: NDArray[np.int64], items: ItemScores) -> Array:
    """Return the mean F1 of the labels that occur or are predicted in each sample."""
    hits, sizes = np.split(weights @ items.values, 2, axis=1)
    scores: Array = np.mean(hits / np.maximum(sizes, 1), axis=1, where=sizes > 0)
    return scores
