"""The probabilities of labels as fastText computes them, for the models in its files."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from w2v._losses.hierarchical_softmax import HierarchicalSoftmax
from w2v._losses.loss import Array, Loss, softmax

FLOOR = 1e-5  # added to each probability
# The logistic function is a table: the value at the next lower of STEPS points of each unit; 0 and 1 beyond ±MAX_SCORE.
MAX_SCORE, STEPS = 8, 32


def label_probabilities(loss: Loss, parameters: Mapping[str, Array], rows: Array) -> Array:
    """Return the probability of each label, plus FLOOR, for pooled rows (N, D): (N, L).

    With hierarchical softmax, FLOOR is added to the probability at each node, and the results are multiplied. With
    negative sampling and one-vs-all, each label has a probability of its own.
    """
    outputs = parameters["outputs"]
    if isinstance(loss, HierarchicalSoftmax):
        return np.exp(loss.descend(outputs, rows, np.arange(2 * len(loss.vocabulary) - 1), FLOOR))
    scores = rows @ outputs.T
    if loss.name == "softmax":
        return softmax(scores) + np.float32(FLOOR)
    points = np.floor((np.clip(scores, -MAX_SCORE, MAX_SCORE) + MAX_SCORE) * STEPS) / STEPS - MAX_SCORE
    probabilities: Array = np.where(np.abs(scores) > MAX_SCORE, scores > 0, 1 / (1 + np.exp(-points)))
    return probabilities.astype(np.float32) + np.float32(FLOOR)
