"""How long work reports its progress: reading a text, training on it, predicting one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Progress:
    """How far a phase of the work has come. Values that are not known (yet) are None.

    Attributes:
        phase: "read" a text, "count" its pairs of words, "join" its phrases, "train" on it, or "predict" one, which
            perplexity does.
        done, total: units worked through, and in all. A resumed run counts from the beginning of the whole run.
        unit: "bytes" in phase "read", "words" in the others.
        rate: units per second since this process began the phase.
        seconds_left: what the rest takes at that rate.
        epoch, epochs: the epoch being trained, from 1, and their number.
        loss: mean loss per prediction so far in this epoch.
        alpha: the learning rate.
        memory, memory_limit: bytes that training needs at its peak, estimated, and that this process may take.
    """

    phase: Literal["read", "count", "join", "train", "predict"]
    done: int
    total: int | None
    unit: Literal["bytes", "words"]
    rate: float | None = None
    seconds_left: float | None = None
    epoch: int | None = None
    epochs: int | None = None
    loss: float | None = None
    alpha: float | None = None
    memory: int | None = None
    memory_limit: int | None = None


Report = Callable[[Progress], None]


class Meter:
    """Reports one phase, from `start` units on. `known` are the other fields of Progress that do not change."""

    def __init__(self, report: Report | None, phase: str, start: int = 0, **known: Any) -> None:
        self._report = report
        self._start = start
        self._known = {"phase": phase, "unit": "bytes" if phase == "read" else "words", **known}
        self._started = time.monotonic()

    def __call__(self, done: int, total: int | None, **more: Any) -> None:
        """Report that `done` of `total` units are done; `more` are other fields of Progress."""
        if self._report is None:
            return
        seconds = time.monotonic() - self._started
        rate = (done - self._start) / seconds if done > self._start and seconds else None
        left = (total - done) / rate if rate and total is not None else None
        self._report(Progress(done=done, total=total, rate=rate, seconds_left=left, **self._known, **more))
