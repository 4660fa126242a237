"""What a model predicts: the distribution over the vocabulary that each loss has learnt, given input rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v import _outputs
from w2v.model import Model
from w2v.objectives.base import Objective, log_softmax
from w2v.outputs import ClassSoftmax
from w2v.settings import LossName
from w2v.tree import HierarchicalSoftmax

Matrix = NDArray[np.floating[Any]]


def log_probabilities(model: Model, rows: Matrix) -> Matrix:
    """log p(word | row), natural, of each word of the vocabulary: (N, V) for rows (N, D), in their dtype.

    A row is a word's input vector in skip-gram, the mean of the context words' in CBOW. Hierarchical, class-based and
    full softmax are distributions as they stand. Scores of noise-contrastive estimation and of sampled softmax are
    log p and a constant, and those of negative sampling log p / q and a constant (Levy & Goldberg 2014): with the
    noise distribution q put back, they are normalised over the vocabulary. (Draws that all differ, as ours, follow q
    while they are few beside the vocabulary.)
    """
    if isinstance(model.layer, Objective):
        return model.layer.log_probabilities({"outputs": model.outputs} | model.parameters, rows)
    return DISTRIBUTIONS[model.layer.loss](model, rows)


def _of_scores(model: Model, rows: Matrix) -> Matrix:
    return log_softmax(rows @ model.outputs.T)


def _of_ratios(model: Model, rows: Matrix) -> Matrix:
    noise = model.settings.ns_exponent * np.log(model.vocabulary.counts)
    return log_softmax(rows @ model.outputs.T + noise.astype(rows.dtype))


def _of_classes(model: Model, rows: Matrix) -> Matrix:
    layer = model.layer
    assert isinstance(layer, ClassSoftmax)
    scores, firsts, class_of = rows @ model.outputs.T, layer.starts[:-1], layer.class_of
    words, classes = scores[:, : layer.words], log_softmax(scores[:, layer.words :])
    words -= np.maximum.reduceat(words, firsts, axis=1)[:, class_of]
    classes -= np.log(np.add.reduceat(np.exp(words), firsts, axis=1, dtype=np.float64)).astype(rows.dtype)
    words += classes[:, class_of]
    return words


def _of_tree(model: Model, rows: Matrix) -> Matrix:
    layer = model.layer
    assert isinstance(layer, HierarchicalSoftmax)
    size, signs = len(layer.starts) - 1, 1 - 2 * layer.bits[:, None]
    depths = np.empty(2 * size - 1, np.int64)
    _outputs.fill_depths(layer.parents, depths)
    scores = model.outputs @ rows.T  # (V - 1, N)
    logs = np.zeros((2 * size - 1, len(rows)), rows.dtype)
    for level in np.split(np.argsort(depths), np.cumsum(np.bincount(depths)))[1:-1]:  # from the root down
        above = layer.parents[level]
        taken = signs[level] * scores[above - size]
        logs[level] = logs[above] + np.minimum(taken, 0) - np.log(1 + np.exp(-np.abs(taken)))
    return logs[:size].T


DISTRIBUTIONS: dict[LossName, Callable[[Model, Matrix], Matrix]] = {
    "ns": _of_ratios,
    "nce": _of_scores,
    "sampled": _of_scores,
    "softmax": _of_scores,
    "class": _of_classes,
    "hs": _of_tree,
}
