"""Signs of divergence: values that are not finite, and a loss that rises."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.formats import bfloat16
from w2v.losses.loss import Loss

# Limits of `loss_ratio`. Normal runs reach 1.03, runs with three times the default learning rate 1.3.
WARNING_RATIO = 1.5  # above this, the vectors are poor
DIVERGENCE_RATIO = 10.0  # above this, training has diverged; gensim's test of CBOW with hs reached 8
MIN_PREDICTIONS = 1000  # the mean loss of an epoch with fewer predictions is too noisy


def all_finite(matrices: Iterable[NDArray[Any]]) -> bool:
    """Return True if all values of these matrices are finite."""
    return all(bfloat16.first_non_finite_row(array) < 0 for array in matrices)


def loss_ratio(loss: Loss, losses: NDArray[np.float64], predictions: NDArray[np.int64]) -> float:
    """Return the largest ratio of an epoch's mean loss to the lowest earlier one.

    The first epoch is compared with the loss of untrained vectors. The lowest mean counts as at least 1 nat. The means
    can be compared because every epoch trains on the same text. The sum of an unfinished epoch is divided by the
    predictions of the epoch before, which gives a lower bound of its mean.

    Args:
        loss: The loss of the run.
        losses: The sum of the losses in each epoch, (epochs,).
        predictions: The number of predictions in each epoch, (epochs,).
    """
    previous = np.append(0, predictions[:-1])
    means = losses / np.maximum(np.maximum(predictions, previous), MIN_PREDICTIONS)
    lowest = np.minimum.accumulate(np.append(untrained_loss(loss), np.maximum(means[:-1], 1)))
    return float((means / lowest).max())


def untrained_loss(loss: Loss) -> float:
    """Return an upper bound of the mean loss of untrained vectors; infinity for a user's own loss.

    The scores of untrained vectors are 0, so an independent output row costs log 2 and a distribution over V words
    costs about log V.
    """
    if loss.is_own:
        return math.inf
    independent = math.log(2) * loss.expected_rows
    return max(1.0, independent if loss.independent else min(independent, math.log(len(loss.vocabulary)) + 2))
