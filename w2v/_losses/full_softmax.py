"""The losses of the scores of all words: the exact softmax, and one-vs-all, a logistic regression for every word."""

from __future__ import annotations

from dataclasses import dataclass

from w2v._errors import SettingsError
from w2v._losses.loss import Alpha, Array, Loss, LossOptions, Worker
from w2v._losses.rows import logistic, softmax
from w2v._options import option
from w2v._settings import LOSS

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


@dataclass(frozen=True, kw_only=True)
class OneVsAllOptions(SoftmaxOptions):
    smoothing: float = option(
        0.0,
        "Smooth the targets: instead of 1 and 0, the probabilities to learn are 1 - smoothing / 2 and smoothing / 2.",
        LOSS,
        minimum=0,
        maximum=0.5,
    )


class OneVsAll(Loss):
    """The sum of the logistic losses of all words. Only this loss learns several labels of a text at the same time."""

    name = branch = "ova"
    help = "one-vs-all"
    alpha = Alpha(0.005, 0.005)
    options_class = OneVsAllOptions
    options: OneVsAllOptions
    fixed_vocabulary = ""
    no_word_outputs = ""
    independent = True
    link = staticmethod(logistic)

    def prepare(self) -> None:
        check_size(self, "choose loss ns")
        self.data = {"smoothing": self.options.smoothing}

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        m, low = len(s.parameters.outputs), s.data.smoothing / 2
        for j in range(m):
            s.rows[j], s.target[j] = j, low
        s.target[centre] = 1 - low
        for k in range(s.label_count[0]):
            s.target[s.labels[k]] = 1 - low
        return m
