"""What a model predicts: the distribution over the vocabulary that each loss has learnt, given input rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.losses import _trees
from w2v.losses.layers import ClassSoftmax
from w2v.losses.objective import Objective, log_softmax, tried, wrong
from w2v.losses.tree import HierarchicalSoftmax
from w2v.settings import LossName
from w2v.training.model import Model

Matrix = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]

BLOCK = 1 << 23  # scores to compute at a time: 32 MB in float32, and some three arrays of them are held


def log_probabilities(model: Model, rows: Matrix) -> Matrix:
    """log p(word | row), natural, of each word of the vocabulary: (N, V) for rows (N, D), in their dtype.

    A row is a word's input vector in skip-gram, the mean of the context words' in CBOW. Hierarchical, class-based and
    full softmax are distributions as they stand. Scores of noise-contrastive estimation and of sampled softmax are
    log p and a constant, and those of negative sampling log p / q and a constant (Levy & Goldberg 2014): with the
    noise distribution q put back, they are normalised over the vocabulary. (Draws that all differ, as ours, follow q
    while they are few beside the vocabulary.)
    """
    if isinstance(model.layer, Objective):
        found: Matrix = tried(model.layer, "log_probabilities", {"outputs": model.outputs} | model.parameters, rows)
        expected = len(rows), len(model.vocabulary)
        if not isinstance(found, np.ndarray) or found.shape != expected:
            wrong(model.layer, "log_probabilities", f"returned {np.shape(found)}: it must be an array {expected}")
        return found
    return DISTRIBUTIONS[model.layer.loss](model, rows)


def log_probabilities_of(model: Model, rows: Matrix, numbers: Integers, words: Integers) -> Matrix:
    """log p(words[k] | rows[numbers[k]]), natural: (N,) for rows (M, D) and `numbers` and `words`, both (N,).

    By hierarchical softmax it takes the nodes on the word's path, by class-based softmax the classes and the words of
    its own; by the other losses, all words.
    """
    if isinstance(model.layer, HierarchicalSoftmax):
        return _on_paths(model, rows, numbers, words)
    if isinstance(model.layer, ClassSoftmax):
        return _in_classes(model, rows, numbers, words)
    return log_probabilities(model, rows)[numbers, words]


def scores_of(model: Model) -> int:
    """How many scores log_probabilities_of computes at once for a row, at most."""
    partial = isinstance(model.layer, HierarchicalSoftmax | ClassSoftmax)
    return model.layer.most_rows if partial else len(model.vocabulary)


def _of_scores(model: Model, rows: Matrix) -> Matrix:
    return log_softmax(rows @ model.outputs.T)


def _of_ratios(model: Model, rows: Matrix) -> Matrix:
    noise = model.settings.ns_exponent * np.log(model.vocabulary.counts)
    return log_softmax(rows @ model.outputs.T + noise.astype(rows.dtype))


def _of_classes(model: Model, rows: Matrix) -> Matrix:
    layer = model.layer
    assert isinstance(layer, ClassSoftmax)
    scores: Matrix = rows @ model.outputs.T
    firsts, class_of = layer.starts[:-1], layer.class_of
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
    _trees.fill_depths(layer.parents, depths)
    scores = model.outputs @ rows.T  # (V - 1, N)
    logs = np.zeros((2 * size - 1, len(rows)), rows.dtype)
    for level in np.split(np.argsort(depths), np.cumsum(np.bincount(depths)))[1:-1]:  # from the root down
        above = layer.parents[level]
        logs[level] = logs[above] + log_logistic(signs[level] * scores[above - size])
    return logs[:size].T


def _on_paths(model: Model, rows: Matrix, numbers: Integers, words: Integers) -> Matrix:
    layer = model.layer
    assert isinstance(layer, HierarchicalSoftmax)
    logs = np.empty(len(words), rows.dtype)
    for word, places in _groups(words):
        path = slice(layer.starts[word], layer.starts[word + 1])
        distinct, which = np.unique(numbers[places], return_inverse=True)
        scores = rows[distinct] @ model.outputs[layer.nodes[path]].T
        logs[places] = log_logistic((1 - 2 * layer.codes[path]) * scores).sum(axis=1)[which]
    return logs


def _in_classes(model: Model, rows: Matrix, numbers: Integers, words: Integers) -> Matrix:
    layer = model.layer
    assert isinstance(layer, ClassSoftmax)
    own = layer.class_of[words]
    logs: Matrix = log_softmax(rows @ model.outputs[layer.words :].T)[numbers, own]
    for group, places in _groups(own):
        first, end = layer.starts[group : group + 2]
        distinct, which = np.unique(numbers[places], return_inverse=True)
        logs[places] += log_softmax(rows[distinct] @ model.outputs[first:end].T)[which, words[places] - first]
    return logs


def _groups(keys: Integers) -> Iterator[tuple[int, Integers]]:
    """Each of the keys, and the places where it stands."""
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts)[1:], strict=True)


def log_logistic(scores: Matrix) -> Matrix:
    """log σ of each, also where σ is too small for its type."""
    logs: Matrix = np.minimum(scores, 0) - np.log1p(np.exp(-np.abs(scores)))
    return logs


DISTRIBUTIONS: dict[LossName, Callable[[Model, Matrix], Matrix]] = {
    "ns": _of_ratios,
    "nce": _of_scores,
    "sampled": _of_scores,
    "softmax": _of_scores,
    "class": _of_classes,
    "hs": _of_tree,
}
