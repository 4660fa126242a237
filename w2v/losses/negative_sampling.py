"""Negative sampling: logistic regressions that separate the word from K different noise words (Mikolov 2013b, 2.2)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from w2v.losses.loss import Alpha, Array, Worker, log_softmax
from w2v.losses.rows import draw_words, logistic, prefetch_draws
from w2v.losses.sampling import SamplingLoss


class NegativeSampling(SamplingLoss):
    name = branch = "ns"
    help = "negative sampling"
    alpha = Alpha(0.05, 0.075)
    rank_above_size = 2  # log q adds one
    weighted = False
    link = staticmethod(logistic)

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        m = draw_words(s, centre, 1, False)
        prefetch_draws(s)
        return m

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        """Scores estimate log(p / q) + constant (Levy & Goldberg 2014), so this adds log q.

        Negatives drawn without replacement, as ours are, follow q as long as K is much smaller than V.
        """
        noise = self.settings.ns_exponent * np.log(self.vocabulary.counts)
        return log_softmax(rows @ parameters["outputs"].T + noise.astype(rows.dtype))
