"""Corrects the probabilities of a model for the subsampling of its training text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.losses.loss import Array, Integers
from w2v.training.model import Model


def keep_probabilities(model: Model) -> NDArray[np.float32]:
    """The probability with which the model's training kept an occurrence of each word: float32 (V,)."""
    return model.vocabulary.keep_probabilities(model.settings.sample, model.settings.sample_formula)


def log_probabilities_of(
    model: Model, rows: Array, numbers: Integers, words: Integers, keep: NDArray[Any]
) -> tuple[Array, Array]:
    """log p(words[k] | rows[numbers[k]]) of the model, and with subsampling undone: both (N,), natural.

    Arguments are those of Model.log_probabilities_of, and `keep` (V,). Subsampling multiplies the share of a word by
    keep(word), so the probability in the whole text is p(w | c) / keep(w), divided by its sum over the vocabulary.
    That sum is 1 + Σ p(u | c) (1 / keep(u) - 1), which only needs the words u with keep(u) < 1, the frequent ones. So
    hierarchical and class-based softmax need not compute the probabilities of all words.
    """
    dropped = np.flatnonzero(keep < 1)  # (U,)
    count = len(rows) * len(dropped)
    logs = model.log_probabilities_of(
        rows,
        np.concatenate([numbers, np.repeat(np.arange(len(rows)), len(dropped))]),
        np.concatenate([words, np.tile(dropped, len(rows))]),
    )
    plain, others = logs[: len(words)], logs[len(words) :].reshape(len(rows), len(dropped))
    if not count:
        return plain, plain
    sums = np.exp(others) @ (1 / keep[dropped].astype(rows.dtype) - 1)
    return plain, plain - np.log(keep[words]).astype(rows.dtype) - np.log1p(sums)[numbers]
