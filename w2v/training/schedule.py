"""How a run proceeds: its epochs and rounds, its learning rate, and the interval between checkpoints."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

from w2v.errors import SettingsError
from w2v.kernel.loop import learning_rate
from w2v.kernel.plan import Plan
from w2v.losses.loss import Loss
from w2v.losses.registry import Settings

FEW_EPOCHS = 5  # for the slower losses and for long texts
LONG_TEXT = 100_000_000  # words
MIN_EPOCHS, MAX_EPOCHS = 10, 50
WORDS_FOR_MIN_EPOCHS = {"skipgram": 1.3e6, "cbow": 6.6e6}  # bench/README.md, "Out of the box"
DEFAULT_INTERVAL, NEVER = "10m", "never"


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


def epochs_for(settings: Settings, loss: Loss | type[Loss], tokens: int) -> int:
    """The epochs over a text with this many words of the vocabulary; computed if the setting is "auto".

    10 (w / tokens)^¼, between 10 and 50, with w 1.3 million for skip-gram and 6.6 million for CBOW; 5 above 100 million
    words and for losses slower than ns, nce and sampled.

    | words      | 60,000 | 200,000 | 500,000 | 1.3 million | 3 million | 6 to 100 million | more |
    |------------|--------|---------|---------|-------------|-----------|------------------|------|
    | skip-gram  |     22 |      16 |      13 |          10 |        10 |               10 |    5 |
    | CBOW       |     32 |      24 |      19 |          15 |        12 |               10 |    5 |
    """
    if settings.epochs != "auto":
        return settings.epochs
    if tokens > LONG_TEXT or not loss.epochs_by_size:
        return FEW_EPOCHS
    return min(
        MAX_EPOCHS, max(MIN_EPOCHS, round(MIN_EPOCHS * math.pow(WORDS_FOR_MIN_EPOCHS[settings.model] / tokens, 1 / 4)))
    )


class Interval(NamedTuple):
    """What lies between two checkpoints: a time, or a part of the text (see Position). At most one of them is not 0."""

    seconds: float = 0
    epochs: float = 0
    chunks: float = 0


UNITS = {
    "s": Interval(seconds=1),
    "m": Interval(seconds=60),
    "h": Interval(seconds=3600),
    "epoch": Interval(epochs=1),
    "chunk": Interval(chunks=1),
}


def interval(every: str) -> Interval:
    """Return what an interval such as 10m or 1epoch means. Raises SettingsError."""
    if every == NEVER:
        return Interval()
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|m|h|epochs?|chunks?)", every) if isinstance(every, str) else None
    if not found or not float(found[1]):
        raise SettingsError(
            f"checkpoint_every {every!r}: it must be never or a number with s, m, h, epoch or chunk, like 30s or 1epoch"
        )
    size, unit = float(found[1]), UNITS[found[2][:5]]
    return Interval(*(size * part for part in unit))
