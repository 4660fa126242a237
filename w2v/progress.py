"""Progress reports of long work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

# The phases of the work, and the unit in which each is counted.
PHASES = {
    "read": "bytes",  # of a text
    "count": "words",  # whose pairs are counted
    "join": "words",  # into phrases
    "train": "words",
    "tune": "seconds",
    "predict": "words",  # of a text, by perplexity, or of the vocabulary, by rank
    "encode": "bytes",  # of texts
    "load": "rows",  # of a vector file
    "save": "rows",
    "answer": "words",  # that answers to analogy questions are searched among
    "evaluate": "measures",  # of models
    "compare": "words",  # of two models
    "project": "iterations",  # of t-SNE or UMAP
    "index": "words",  # for approximate search
}

SHOWN_AFTER, REDRAWN_EVERY = 1.0, 0.1  # seconds until a notebook shows a bar, and between its updates


@dataclass(frozen=True)
class Progress:
    """The progress of a phase of the work. Values that are not known (yet) are None.

    Attributes:
        phase: see PHASES.
        done, total: units done, and in all; equal in the last report of work that succeeds. A resumed run counts from
            the beginning of the whole run.
        unit: that of the phase.
        rate: units per second since this process began the phase.
        seconds_left: time that the rest takes at that rate.
        epoch, epochs: the epoch being trained, from 1, and their number.
        loss: mean loss per prediction so far in this epoch.
        alpha: the learning rate.
        score: the best so far, of tuning.
        memory, memory_limit: estimated bytes that training needs at its peak, and bytes that this process may take.
    """

    phase: str
    done: int
    total: int | None
    unit: str
    rate: float | None = None
    seconds_left: float | None = None
    epoch: int | None = None
    epochs: int | None = None
    loss: float | None = None
    alpha: float | None = None
    score: float | None = None
    memory: int | None = None
    memory_limit: int | None = None


Report = Callable[[Progress], None]


def formatted_values(progress: Progress) -> list[str]:
    """The known values of a report, the most important first."""
    found = []
    if progress.seconds_left:
        found.append(f"{timedelta(seconds=round(progress.seconds_left))} left".removeprefix("0:"))
    if progress.score is not None:
        found.append(f"best score {100 * progress.score:.2f}")
    if progress.epochs is not None:
        found.append(f"epoch {progress.epoch}/{progress.epochs}")
    if progress.rate is not None:
        found.append(f"{quantity(progress.rate)} {progress.unit}/s")
    if progress.loss is not None:
        found.append(f"loss {progress.loss:.3f}")
    if progress.alpha is not None:
        found.append(f"alpha {progress.alpha:.2g}")
    return found


def duration(seconds: float) -> str:
    """A time to read: "45 seconds", "72 minutes", "2.5 hours"."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def quantity(number: float) -> str:
    """A number of units with about three digits, in millions if it is large."""
    return f"{number / 1e6:,.2f} M" if number >= 1e4 else f"{number:,.3g}" if number < 100 else f"{number:,.0f}"


class NotebookBar:
    """Progress of one phase as a bar below the running cell of a notebook; it disappears when the phase ends.

    Work of less than a second shows none.
    """

    def __init__(self) -> None:
        self._display: Any = None
        self._next = time.monotonic() + SHOWN_AFTER

    def __call__(self, progress: Progress) -> None:
        from IPython import display  # always installed in a notebook

        now, ended = time.monotonic(), progress.done == progress.total
        if now < self._next if not ended else not self._display:
            return
        self._next = now + REDRAWN_EVERY
        share = f' value="{progress.done}" max="{progress.total}"' if progress.total else ""
        values = ", ".join(formatted_values(progress))
        line = display.HTML("" if ended else f"<div>{progress.phase} <progress{share}></progress> {values}</div>")
        if self._display:
            self._display.update(line)
        else:
            self._display = display.display(line, display_id=True)


def notebook_bar() -> Report | None:
    """A bar, if this process runs a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return NotebookBar() if hasattr(shell, "kernel") else None


class Meter:
    """Reports one phase, which begins at `start` units. `known` are other fields of Progress, which do not change.

    Without a `report`, notebooks show a bar.
    """

    def __init__(self, report: Report | None, phase: str, start: int = 0, **known: Any) -> None:
        self._report = report or notebook_bar()
        self._start = start
        self._known = {"phase": phase, "unit": PHASES[phase], **known}
        self._started = time.monotonic()

    def __call__(self, done: int, total: int | None, **more: Any) -> None:
        """Report that `done` of `total` units are done; `more` are other fields of Progress."""
        if self._report is None:
            return
        seconds = time.monotonic() - self._started
        rate = (done - self._start) / seconds if done > self._start and seconds else None
        left = (total - done) / rate if rate and total is not None else None
        self._report(Progress(done=done, total=total, rate=rate, seconds_left=left, **self._known, **more))
