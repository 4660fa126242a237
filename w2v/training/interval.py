"""What lies between two checkpoints."""

from __future__ import annotations

import re
from typing import NamedTuple

from w2v.errors import SettingsError

DEFAULT_INTERVAL, NEVER = "10m", "never"


class Interval(NamedTuple):
    """What lies between two checkpoints: a time, or a part of the text (see State). At most one of them is not 0."""

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
    """Raises SettingsError."""
    if every == NEVER:
        return Interval()
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|m|h|epochs?|chunks?)", every)
    if not found or not float(found[1]):
        raise SettingsError(
            f"checkpoint_every {every!r}: it must be never or a number with s, m, h, epoch or chunk, like 30s or 1epoch"
        )
    size, unit = float(found[1]), UNITS[found[2][:5]]
    return Interval(*(size * part for part in unit))
