"""The schedule of a run: epochs, rounds, learning rate, and the interval between checkpoints."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

from w2v._errors import SettingsError
from w2v._kernel.loop import learning_rate
from w2v._kernel.plan import Plan
from w2v._losses.loss import Loss
from w2v._losses.registry import Settings

FEW_EPOCHS = 5  # with slow losses, and for texts longer than LONG_TEXT
LONG_TEXT = 100_000_000  # words
MIN_EPOCHS, MAX_EPOCHS = 10, 50
WORDS_FOR_MIN_EPOCHS = {"skipgram": 1.3e6, "cbow": 6.6e6}  # measured: bench/README.md, "How the defaults were chosen"
DEFAULT_INTERVAL, NEVER = "10m", "never"


@dataclass(frozen=True)
class Schedule:
    """The division of a run into epochs and rounds.

    In a run of one process, an epoch is one round. In a run of several ranks, all ranks have the same number of rounds.
    In each round, a rank trains the same share of its own chunks; then the ranks exchange rows. This way all ranks
    finish an epoch at the same time, and have the same learning rate at any time.

    Attributes:
        plan: The plan of this process, for its part of the text.
        rounds: The number of rounds per epoch.
    """

    plan: Plan
    rounds: int = 1

    @property
    def total_rounds(self) -> int:
        """The number of rounds in the whole run."""
        return self.plan.epochs * self.rounds

    def chunks_after(self, rounds: int) -> int:
        """Return how many chunks this process has trained, over all epochs, after this many rounds."""
        epoch, done = divmod(rounds, self.rounds)
        return epoch * self.plan.chunks + self.plan.chunks * done // self.rounds

    def ends_epoch(self, rounds: int) -> bool:
        """Return True if an epoch ends after this many rounds."""
        return rounds % self.rounds == 0

    def epoch(self, position: int) -> int:
        """Return the index of the epoch that contains the chunk at `position`; after the last chunk, the last epoch."""
        last = self.plan.epochs - 1
        return min(position // self.plan.chunks, last) if self.plan.chunks else last

    def alpha_after(self, tokens: int) -> float:
        """Return the learning rate after this many words of the run."""
        total, settings = self.plan.epochs * self.plan.tokens, self.plan.settings
        return learning_rate(settings.start_alpha, settings.end_alpha, tokens / total if total else 1)


def epochs_for(settings: Settings, loss: Loss | type[Loss], tokens: int) -> int:
    """Return the number of epochs for a text with this many words of the vocabulary.

    With the setting "auto" it is 10 (w / tokens)^¼, but at least 10 and at most 50, where w is 1.3 million for
    skip-gram and 6.6 million for CBOW. It is 5 above 100 million words, and for losses slower than ns, nce and sampled.

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
    """The interval between two checkpoints, in seconds, epochs or chunks. At most one is not 0."""

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
    """Parse an interval such as 10m or 1epoch; "never" gives an interval of zeros.

    Raises:
        SettingsError: The interval is not valid.
    """
    if every == NEVER:
        return Interval()
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|m|h|epochs?|chunks?)", every) if isinstance(every, str) else None
    if not match or not float(match[1]):
        raise SettingsError(
            f"checkpoint_every {every!r}: it must be never or a number with s, m, h, epoch or chunk, like 30s or 1epoch"
        )
    size, unit = float(match[1]), UNITS[match[2][:5]]  # [:5] drops the plural s of epochs and chunks
    return Interval(*(size * part for part in unit))
