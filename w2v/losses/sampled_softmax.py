"""Sampled softmax: a softmax over the word itself and K drawn ones (Bengio & Senécal 2003; Jean et al. 2015, 3.1).

The logarithm of a word's expected count is subtracted from its score; the softmax is then the probability that, of all
these words, this one is from the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError
from w2v.losses.loss import Alpha, Array, Worker
from w2v.losses.rows import draw_words, effective, prefetch_draws, set_importance, softmax
from w2v.losses.sampling import SamplingLoss, SamplingSettings, log_expected_draws
from w2v.options import option
from w2v.settings import LOSS, MAX_ADAPTIVE_BLOCKS


@dataclass(frozen=True, kw_only=True)
class SampledSettings(SamplingSettings):
    adaptive_samples: bool = option(
        False,
        "Draw more samples when few carry weight; needs --negative 3 or more.",
        LOSS,
        flags=("--adaptive-samples/--fixed-samples",),
    )


class SampledSoftmax(SamplingLoss):
    """With `adaptive`, more words are drawn, up to 16 K, after a window in which the effective number of samples of a
    context word, (Σr)² / Σr² with importance ratios r, was below K / 2 (Bengio & Senécal 2008). The previous window
    decides: deciding by the same sample would dilute heavy words just when they are drawn, and measured worse.
    """

    name = branch = "sampled"
    help = "sampled softmax"
    alpha = Alpha(0.05, 0.1)
    settings_class = SampledSettings
    settings: SampledSettings
    log_frequencies = True

    @classmethod
    def check(cls, settings: Any) -> None:
        if settings.adaptive_samples and settings.negative < 3:
            raise SettingsError(
                f"negative {settings.negative}: adaptive_samples draws more when fewer than half of the drawn words "
                "carry weight, and one always does: give 3 or more"
            )
        if settings.adaptive_samples and settings.deterministic and settings.workers != 1:
            raise SettingsError("deterministic: with adaptive_samples it needs workers 1")

    def prepare(self) -> None:
        super().prepare()
        self.adaptive = self.settings.adaptive_samples and self.negative >= 3
        if self.adaptive:
            self.max_rows = self.negative * MAX_ADAPTIVE_BLOCKS + 1
            self.choose, self.link = choose_adaptively, link_adaptively  # type: ignore[method-assign]

    def offsets(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        return log_expected_draws(weights, self.negative)

    def scratch(self, inputs: int) -> dict[str, Array]:
        return {"blocks": np.ones(1, np.int64), "least": np.full(1, np.inf)}

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        m = draw_words(s, centre, 1, True)
        prefetch_draws(s)
        set_importance(s, m, 1)
        return m

    link = staticmethod(softmax)


def choose_adaptively(s: Worker, centre: int, x: Array) -> int:
    blocks, least, negative = s.scratch.blocks, s.scratch.least, len(s.random) - 1
    if s.position[0] == 0:
        blocks[0] = 1
    elif s.position[1] == 0 and least[0] < 0.5 * negative:
        blocks[0] = min(2 * blocks[0], MAX_ADAPTIVE_BLOCKS)
    elif s.position[1] == 0 and negative < least[0] < np.inf:
        blocks[0] = max(blocks[0] // 2, 1)
    if s.position[1] == 0:
        least[0] = np.inf
    m = draw_words(s, centre, blocks[0], True)
    prefetch_draws(s)
    set_importance(s, m, blocks[0])
    return m


def link_adaptively(s: Worker, scores: Array) -> float:
    s.scratch.least[0] = min(s.scratch.least[0], effective(scores, s.weight, s.room))
    return softmax(s, scores)
