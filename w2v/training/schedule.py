"""The course of a run: which chunks its threads train until they pause, and how the learning rate falls."""

from __future__ import annotations

from dataclasses import dataclass

from w2v.kernel.loop import learning_rate
from w2v.kernel.plan import Plan


@dataclass(frozen=True)
class Schedule:
    """The epochs of a run, and the rounds of an epoch.

    In one process an epoch is one round. In a run of several ranks, all have the same number of rounds. In each, a rank
    trains the same share of its own chunks, and after it the ranks exchange rows. So all reach the end of an epoch, and
    the same learning rate, at the same time.

    Attributes:
        plan: the plan of this process, for its part of the text. rounds: rounds in an epoch.
    """

    plan: Plan
    rounds: int = 1

    @property
    def end(self) -> int:
        """Rounds in all epochs."""
        return self.plan.epochs * self.rounds

    def position(self, rounds: int) -> int:
        """The chunks of this process, over all epochs, that are trained after this many rounds."""
        epoch, done = divmod(rounds, self.rounds)
        return epoch * self.plan.chunks + self.plan.chunks * done // self.rounds

    def ends_epoch(self, rounds: int) -> bool:
        return rounds % self.rounds == 0

    def epoch(self, position: int) -> int:
        """The epoch, from 0, that the chunk at this position belongs to; the last at the end."""
        last = self.plan.epochs - 1
        return min(position // self.plan.chunks, last) if self.plan.chunks else last

    def alpha_after(self, tokens: int) -> float:
        """The learning rate after this many words of the run."""
        total = self.plan.epochs * self.plan.tokens
        return learning_rate(self.plan.alpha, self.plan.min_alpha, tokens / total if total else 1)
