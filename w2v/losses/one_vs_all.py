"""One-vs-all: a logistic regression for every word or label."""

from __future__ import annotations

from dataclasses import dataclass

from w2v.losses.full_softmax import SoftmaxOptions, check_size
from w2v.losses.loss import Alpha, Array, Loss, Worker
from w2v.losses.rows import logistic
from w2v.options import option
from w2v.settings import LOSS


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
