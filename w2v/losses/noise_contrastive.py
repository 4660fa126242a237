"""Noise-contrastive estimation (Mnih & Teh 2012): negative sampling whose scores are log-probabilities.

Logistic regressions on s − log(K q(w)), where s = log p(w) + log V: the normaliser is fixed at V, so zero vectors mean
a uniform distribution.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from w2v.losses.loss import Alpha, Array, Worker
from w2v.losses.rows import draw_words, logistic, prefetch_draws
from w2v.losses.sampling import SamplingLoss


class NoiseContrastive(SamplingLoss):
    name = branch = "nce"
    help = "noise-contrastive estimation"
    alpha = Alpha(0.05, 0.1)
    log_frequencies = True
    link = staticmethod(logistic)

    def offsets(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        """log(K q V)"""
        return np.log(weights * self.negative).astype(np.float32)

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        m = draw_words(s, centre, 1, True)
        prefetch_draws(s)
        for j in range(m):
            s.offset[j] = s.data.offsets[s.rows[j]]
        return m
