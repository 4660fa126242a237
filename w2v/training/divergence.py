"""When training diverges: values that are not finite, or a loss that has risen."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.formats import bfloat16
from w2v.losses.loss import Loss

# Of the loss, see `rise`. Normal runs reach 1.03, those with three times the default learning rate 1.3.
SOUND_RISE = 1.5  # up to this, a state is sound
MAX_RISE = 10.0  # above this, training has diverged; gensim's test of CBOW with hs reached 8
MIN_PREDICTIONS = 1000  # in an epoch; the mean of fewer losses is left to chance


def finite(parameters: Iterable[NDArray[Any]]) -> bool:
    """Whether all values of these matrices are finite."""
    return all(bfloat16.first_not_finite(array) < 0 for array in parameters)


def rise(loss: Loss, losses: NDArray[np.float64], predictions: NDArray[np.int64]) -> float:
    """By what factor the mean loss of an epoch exceeds the lowest before it, at worst.

    A lowest loss below 1 nat counts as 1. All epochs have the same text, so that their means can be compared. An
    unfinished epoch counts with a lower bound.

    Args:
        losses, predictions: of each epoch, (epochs,); see Checkpoint.
    """
    before = np.append(0, predictions[:-1])
    means = losses / np.maximum(np.maximum(predictions, before), MIN_PREDICTIONS)
    best = np.minimum.accumulate(np.append(untrained(loss), np.maximum(means[:-1], 1)))
    return float((means / best).max())


def untrained(loss: Loss) -> float:
    """A bound of the mean loss of new vectors, whose scores are 0; infinite for a user's own loss.

    An independent output row costs log 2, a distribution over V words about log V.
    """
    if loss.name == Loss.name:
        return math.inf
    return max(1.0, min(math.log(2) * loss.expected_rows, math.log(len(loss.vocabulary)) + 2))
