"""The exact softmax over all words."""

from __future__ import annotations

from dataclasses import dataclass

from w2v.errors import SettingsError
from w2v.losses.loss import Alpha, Array, Loss, LossOptions, Worker
from w2v.losses.rows import softmax
from w2v.options import option
from w2v.settings import LOSS

MAX_WORDS = 30_000  # of a vocabulary, unless large_softmax allows more


@dataclass(frozen=True, kw_only=True)
class SoftmaxOptions(LossOptions):
    large_softmax: bool = option(
        False,
        "Allow more than 30,000 words, although each prediction computes the scores of all words.",
        LOSS,
        flags=("--large-softmax/--no-large-softmax",),
    )


class FullSoftmax(Loss):
    """The softmax over the scores of all words."""

    name = branch = "softmax"
    help = "full softmax"
    alpha = Alpha(0.05, 0.1)
    options_class = SoftmaxOptions
    options: SoftmaxOptions
    fixed_vocabulary = ""
    no_word_outputs = ""
    log_frequencies = True
    rank_above_size = 1
    link = staticmethod(softmax)

    def prepare(self) -> None:
        check_size(self, "choose loss sampled or class")

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        m = len(s.parameters.outputs)
        for j in range(m):
            s.rows[j] = j
            s.target[j] = j == centre
        return m


def check_size(loss: Loss, instead: str) -> None:
    """Raise SettingsError if the vocabulary makes the softmax very slow, unless large_softmax allows it.

    Args:
        loss: A loss with SoftmaxOptions.
        instead: The alternative that the message suggests.
    """
    size = len(loss.vocabulary)
    if size > MAX_WORDS and not loss.options.large_softmax:
        raise SettingsError(
            f"loss {loss.name}: each prediction computes the scores of all {size:,} words, {size / 6:,.0f} times as "
            f"many as loss ns with negative 5; lower max_vocab to {MAX_WORDS:,}, {instead}, or set large_softmax to "
            "allow it"
        )
