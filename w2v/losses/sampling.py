"""The base of losses that draw words from the noise distribution q(w) ∝ count(w)^exponent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from w2v.losses import _trees
from w2v.losses.loss import Integers, Loss
from w2v.options import option
from w2v.settings import LOSS, BaseSettings


@dataclass(frozen=True, kw_only=True)
class SamplingSettings(BaseSettings):
    negative: int = option(5, "Number of words drawn for each prediction.", LOSS, minimum=1, maximum=1 << 14)
    ns_exponent: float = option(  # 0.5 as in fastText; word2vec.c has 0.75. bench/README.md, "Out of the box"
        0.5, "Draw words in proportion to their count to this power.", LOSS, minimum=-10, maximum=10
    )


class SamplingLoss(Loss):
    """A loss over the word itself and K words drawn from the noise distribution by an alias table.

    data: alias_table, uint32 (V, 2), thresholds and aliases: entry i draws i if a uniform 32-bit number is at most the
    threshold, otherwise the alias; offsets, float32 (V,), which are subtracted from scores.

    Attributes:
        negative: K.
        adaptive: whether more words are drawn when few carry weight; see SampledSoftmax.
        weighted: whether a repeated word counts again; otherwise it is replaced by another draw.
    """

    kernels = ("cython", "numba")
    ordered = True
    storages = ("float32", "bf16")
    fixed_vocabulary = ""
    settings_class = SamplingSettings
    no_word_outputs = ""
    epochs_by_size = True
    rank_above_size = 1
    weighted: ClassVar[bool] = True
    settings: SamplingSettings
    negative: int
    adaptive: bool = False

    def prepare(self) -> None:
        size, wanted = len(self.vocabulary), self.settings.negative
        self.negative = self.predrawn = min(wanted, size - 1)
        self.max_rows = self.negative + 1
        if self.negative < wanted:
            self.notice = (
                f"negative {wanted}: the vocabulary has {size} words, so {self.negative} are drawn for each prediction"
            )
        weights = noise_weights(self.vocabulary.counts, self.settings.ns_exponent)
        self.data = {"alias_table": alias_table(weights), "offsets": self.offsets(weights)}

    def offsets(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        """The offsets subtracted from scores, (V,), by default zeros; the noise distribution is weights / V."""
        return np.zeros(len(weights), np.float32)

    def updates(self, words: NDArray[np.float64]) -> NDArray[np.float64]:
        noise = noise_weights(self.vocabulary.counts, self.settings.ns_exponent) / len(words)
        return words + self.negative * noise


def noise_weights(counts: Integers, exponent: float) -> NDArray[np.float64]:
    """The noise distribution times V, with mean 1: float64 (V,)."""
    weights = counts.astype(np.float64) ** exponent
    weights /= weights.mean()
    return weights


def alias_table(weights: NDArray[np.float64]) -> NDArray[np.uint32]:
    """The alias table of weights of mean 1 (Vose 1991): uint32 (V, 2), see SamplingLoss."""
    table: NDArray[Any] = np.empty((len(weights), 2), np.uint32)
    _trees.fill_alias(weights.copy(), table, np.empty(len(weights), np.int64))  # the copy is overwritten
    return table


def sampling_data(counts: Integers, settings: SamplingSettings) -> dict[str, NDArray[Any]]:
    """What draw_words and set_importance need of `data`: the alias table and the offsets of sampled softmax."""
    weights = noise_weights(counts, settings.ns_exponent)
    return {"alias_table": alias_table(weights), "offsets": log_expected_draws(weights, settings.negative)}


def log_expected_draws(weights: NDArray[np.float64], negative: int) -> NDArray[np.float32]:
    """log(K q(w)), the logarithm of the expected count of each word among K draws, (V,)."""
    return np.log(weights * (negative / len(weights))).astype(np.float32)
