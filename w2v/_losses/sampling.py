"""Negative sampling, noise-contrastive estimation and sampled softmax.

These losses draw words from the noise distribution q(w) ∝ count(w)^exponent.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError
from w2v._losses import _tree
from w2v._losses.loss import Alpha, Array, Integers, Loss, LossOptions, Worker, log_softmax
from w2v._losses.rows import draw_words, effective_samples, logistic, prefetch_draws, set_importance, softmax
from w2v._options import option
from w2v._settings import LOSS, MAX_ADAPTIVE_BATCHES, GeneralOptions

log = logging.getLogger("w2v")


@dataclass(frozen=True, kw_only=True)
class SamplingOptions(LossOptions):
    negative: int = option(5, "Number of words drawn for each prediction.", LOSS, minimum=1, maximum=1 << 14)
    # 0.5 as in fastText; word2vec.c has 0.75. See bench/README.md, "How the defaults were chosen".
    ns_exponent: float = option(
        0.5, "Draw words in proportion to their count to this power.", LOSS, minimum=-10, maximum=10
    )


class SamplingLoss(Loss):
    """A loss over the centre word and K words drawn from the noise distribution with an alias table.

    `data` holds alias_table, uint32 (V, 2), with a threshold and an alias per entry: entry i draws word i if a uniform
    32-bit number is at most the threshold, otherwise the alias. It also holds offsets, float32 (V,), which are
    subtracted from scores.

    Attributes:
        negative: K.
        adaptive: Whether more words are drawn when few of them carry weight; see SampledSoftmax.
        weighted: Whether a word that is drawn again counts again; otherwise another word is drawn.
    """

    storages = ("float32", "bf16")
    fixed_vocabulary = ""
    options_class = SamplingOptions
    no_word_outputs = ""
    epochs_by_size = True
    rank_above_size = 1
    weighted: ClassVar[bool] = True
    options: SamplingOptions
    negative: int
    adaptive: bool = False

    def prepare(self) -> None:
        size, requested = len(self.vocabulary), self.options.negative
        self.negative = self.predrawn = min(requested, size - 1)
        self.max_rows = self.negative + 1
        if self.negative < requested:
            drawn = "1 is" if self.negative == 1 else f"{self.negative} are"
            self.notice = f"negative {requested}: the vocabulary has {size} words, so {drawn} drawn for each prediction"
        weights = noise_weights(self.vocabulary.counts, self.options.ns_exponent)
        self.data = {"alias_table": alias_table(weights), "offsets": self.offsets(weights)}

    def offsets(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return a number to subtract from the score of each word, (V,): by default 0.

        Args:
            weights: The noise distribution times V, (V,).
        """
        return np.zeros(len(weights), np.float32)

    def expected_updates(self, words: NDArray[np.float64]) -> NDArray[np.float64]:
        noise = noise_weights(self.vocabulary.counts, self.options.ns_exponent) / len(words)
        return words + self.negative * noise


class NegativeSampling(SamplingLoss):
    """Logistic regressions that separate the centre word from K different noise words.

    Source: Mikolov et al. 2013b, section 2.2.
    """

    name = branch = "ns"
    help = "negative sampling"
    alpha = Alpha(0.05, 0.075)
    rank_above_size = 2  # 1 for the normaliser of the softmax, and 1 for log q
    weighted = False
    link = staticmethod(logistic)

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        m = draw_words(s, centre, batches=1, counted=False)
        prefetch_draws(s)
        return m

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        """Return the log softmax of scores + log q, because scores estimate log(p / q) + constant.

        Source: Levy & Goldberg 2014. Our negatives are drawn without replacement. They follow q as long as K is much
        smaller than V.
        """
        log_noise = self.options.ns_exponent * np.log(self.vocabulary.counts)
        return log_softmax(rows @ parameters["outputs"].T + log_noise.astype(rows.dtype))


class NoiseContrastive(SamplingLoss):
    """Noise-contrastive estimation: as negative sampling, but the scores are log probabilities (Mnih & Teh 2012).

    The logistic regressions get s − log(K q(w) V) instead of the score s. So s becomes log p(w) + log V: the normaliser
    is fixed at V, and zero vectors mean a uniform distribution.
    """

    name = branch = "nce"
    help = "noise-contrastive estimation"
    alpha = Alpha(0.05, 0.1)
    log_frequencies = True
    link = staticmethod(logistic)

    def offsets(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return log(K q V) for each word."""
        return np.log(weights * self.negative).astype(np.float32)

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        m = draw_words(s, centre, batches=1, counted=True)
        prefetch_draws(s)
        for j in range(m):
            s.offset[j] = s.data.offsets[s.rows[j]]
        return m


@dataclass(frozen=True, kw_only=True)
class SampledSoftmaxOptions(SamplingOptions):
    adaptive_samples: bool = option(
        False,
        "Draw more samples when few carry weight; needs --negative 3 or more.",
        LOSS,
        flags=("--adaptive-samples/--fixed-samples",),
    )


class SampledSoftmax(SamplingLoss):
    """A softmax over the centre word and K drawn words (Bengio & Senécal 2003; Jean et al. 2015, section 3.1).

    The logarithm of a word's expected count is subtracted from its score. The softmax then gives the probability that
    this word is the centre word, and that the other words were drawn.

    With `adaptive`, the loss draws up to 16 K words. It doubles their number if the effective number of samples of a
    context word, (Σr)² / Σr² with importance ratios r, was below K / 2 in the previous window (Bengio & Senécal 2008),
    and halves it again if all were above K. The current sample must not decide its own size: it would grow, and so
    lower the share of heavy words, exactly when they are drawn. That gave worse results.
    """

    name = branch = "sampled"
    help = "sampled softmax"
    alpha = Alpha(0.05, 0.1)
    options_class = SampledSoftmaxOptions
    options: SampledSoftmaxOptions
    log_frequencies = True

    @classmethod
    def check(cls, settings: GeneralOptions, options: SampledSoftmaxOptions) -> None:
        if options.adaptive_samples and options.negative < 3:
            raise SettingsError(
                f"negative {options.negative}: adaptive_samples draws more words when fewer than half of the drawn "
                "words carry weight, and one always does: give 3 or more"
            )
        if options.adaptive_samples and settings.deterministic and settings.workers != 1:
            raise SettingsError("deterministic: with adaptive_samples it needs workers 1")

    def prepare(self) -> None:
        super().prepare()
        self.adaptive = self.options.adaptive_samples and self.negative >= 3
        if self.adaptive:
            self.max_rows = self.negative * MAX_ADAPTIVE_BATCHES + 1
            self.choose, self.link = choose_adaptively, link_adaptively  # type: ignore[method-assign]

    def offsets(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        return log_expected_draws(weights, self.negative)

    def scratch(self, inputs: int) -> dict[str, Array]:
        return {"batches": np.ones(1, np.int64), "min_effective": np.full(1, np.inf)}

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        m = draw_words(s, centre, batches=1, counted=True)
        prefetch_draws(s)
        set_importance(s, m, 1)
        return m

    link = staticmethod(softmax)


def choose_adaptively(s: Worker, centre: int, x: Array) -> int:
    """Draw as many batches of K words as the previous window needed; see SampledSoftmax."""
    batches, min_effective, negative = s.scratch.batches, s.scratch.min_effective, len(s.random) - 1
    if s.position[0] == 0:  # the first window of a chunk
        batches[0] = 1
    elif s.position[1] == 0 and min_effective[0] < 0.5 * negative:
        batches[0] = min(2 * batches[0], MAX_ADAPTIVE_BATCHES)
    elif s.position[1] == 0 and negative < min_effective[0] < np.inf:
        batches[0] = max(batches[0] // 2, 1)
    if s.position[1] == 0:  # the first step of a window
        min_effective[0] = np.inf
    m = draw_words(s, centre, batches[0], counted=True)
    prefetch_draws(s)
    set_importance(s, m, batches[0])
    return m


def link_adaptively(s: Worker, scores: Array) -> float:
    """Apply a softmax to each row, and record the smallest effective number of samples in the window."""
    effective = effective_samples(scores, s.weight, s.room)
    s.scratch.min_effective[0] = min(s.scratch.min_effective[0], effective)
    return softmax(s, scores)


def share_outputs(loss: SamplingLoss, output_words: Integers) -> SamplingLoss:
    """Return the same loss for words that share output rows: it draws a row by the counts of all of its words.

    Args:
        loss: The loss, prepared for a run.
        output_words: The word with the output row that predicts each word, (V,).
    """
    counts = loss.vocabulary.counts
    weights = np.bincount(output_words, counts, len(counts)).astype(np.float64)
    has_row = weights > 0
    weights[has_row] **= loss.options.ns_exponent
    weights /= weights.mean()
    with np.errstate(divide="ignore"):  # the offset of a word without a row of its own is not used
        offsets = np.where(has_row, loss.offsets(weights), np.float32(0))
    shared = copy.copy(loss)
    shared.data = {"alias_table": alias_table(weights), "offsets": offsets}
    return shared


def draw_from_groups(loss: SamplingLoss, groups: Integers) -> SamplingLoss:
    """Return the same loss, which draws the negatives of a word from the words of its group.

    The words of groups with at most K words draw from all words. `data` gets, for the entries of alias_table, the word
    of each, noise_words, and for each word its first entry and their number, noise_start and noise_size.

    Args:
        loss: The loss, prepared for a run.
        groups: The number of the group of each word, (V,).
    """
    weights, sizes = noise_weights(loss.vocabulary.counts, loss.options.ns_exponent), np.bincount(groups)
    order = np.argsort(groups, kind="stable").astype(np.int32)
    parts = np.split(weights[order], np.cumsum(sizes)[:-1])
    tables = [alias_table(part / part.mean()) for part in (weights, *parts) if len(part)]
    is_large = sizes[groups] > loss.negative
    starts = len(weights) + np.cumsum(sizes) - sizes
    restricted = copy.copy(loss)
    restricted.data = {
        **loss.data,
        "alias_table": np.concatenate(tables),
        "noise_words": np.append(np.arange(len(weights), dtype=np.int32), order),
        "noise_start": np.where(is_large, starts[groups], 0),
        "noise_size": np.where(is_large, sizes[groups], len(weights)),
    }
    if not is_large.all():
        found = f"{np.count_nonzero(~is_large):,} of {len(groups):,} contexts"
        log.warning("negatives-from: %s are in groups of at most %d, and draw from all contexts", found, loss.negative)
    return restricted


def noise_weights(counts: Integers, exponent: float) -> NDArray[np.float64]:
    """Return the noise distribution times V, which has mean 1: float64 (V,)."""
    weights = counts.astype(np.float64) ** exponent
    weights /= weights.mean()
    return weights


def alias_table(weights: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Return the alias table of weights with mean 1 (Vose 1991): uint32 (V, 2), see SamplingLoss."""
    table: NDArray[Any] = np.empty((len(weights), 2), np.uint32)
    _tree.fill_alias(weights.copy(), table, np.empty(len(weights), np.int64))  # a copy, since it is overwritten
    return table


def sampling_data(counts: Integers, options: SamplingOptions) -> dict[str, NDArray[Any]]:
    """Return the `data` that draw_words and set_importance need: the alias table and the offsets of sampled softmax."""
    weights = noise_weights(counts, options.ns_exponent)
    return {"alias_table": alias_table(weights), "offsets": log_expected_draws(weights, options.negative)}


def log_expected_draws(weights: NDArray[np.float64], negative: int) -> NDArray[np.float32]:
    """Return log(K q(w)), the logarithm of the expected count of each word among K draws, (V,)."""
    return np.log(weights * (negative / len(weights))).astype(np.float32)
