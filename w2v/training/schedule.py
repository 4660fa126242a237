"""The course of a run: which chunks its threads train until they pause, and how the learning rate falls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """The epochs of a run, and the rounds of an epoch.

    In one process an epoch is one round. In a run of several ranks, all have the same number of rounds. In each, a rank
    trains the same share of its own chunks, and after it the ranks exchange rows. So all reach the end of an epoch, and
    the same learning rate, at the same time.

    Attributes:
        epochs: passes over the text. rounds: rounds in an epoch.
        chunks: chunks in an epoch of this process's text. tokens: words of the vocabulary in this text.
        alpha, min_alpha: the learning rate at the beginning and at the end.
    """

    epochs: int
    chunks: int
    tokens: int
    alpha: float
    min_alpha: float
    rounds: int = 1

    @property
    def end(self) -> int:
        """Rounds in all epochs."""
        return self.epochs * self.rounds

    def position(self, rounds: int) -> int:
        """The chunks of this process, over all epochs, that are trained after this many rounds."""
        epoch, done = divmod(rounds, self.rounds)
        return epoch * self.chunks + self.chunks * done // self.rounds

    def ends_epoch(self, rounds: int) -> bool:
        return rounds % self.rounds == 0

    def epoch(self, position: int) -> int:
        """The epoch, from 0, that the chunk at this position belongs to; the last at the end."""
        return min(position // self.chunks, self.epochs - 1) if self.chunks else self.epochs - 1

    def alpha_after(self, tokens: int) -> float:
        """The learning rate after this many words of the run."""
        total = self.epochs * self.tokens
        return self.alpha + (self.min_alpha - self.alpha) * (tokens / total if total else 1)
