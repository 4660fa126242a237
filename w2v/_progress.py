"""Progress reports of long computations."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from w2v._errors import pluralise

# The phases and their units.
PHASES = {
    "read": "bytes",  # read a text
    "count": "words",  # count word pairs, to find phrases
    "join": "words",  # join phrases
    "walk": "walks",  # make random walks on a graph
    "train": "words",
    "tune": "seconds",
    "predict": "words",  # predict the words of a text (perplexity) or of the vocabulary (rank)
    "encode": "bytes",  # encode texts
    "load": "rows",  # load a vector file
    "save": "rows",
    "answer": "words",  # search all words for the answers to analogy questions
    "evaluate": "measures",  # evaluate models
    "compare": "words",  # compare two models
    "project": "iterations",  # run t-SNE or UMAP
    "recommend": "bytes",  # find the items nearest to sessions
    "index": "words",  # build an index for approximate search
}

SHOWN_AFTER, REDRAWN_EVERY = 1.0, 0.1  # seconds until a notebook shows a bar, and between its updates


@dataclass(frozen=True)
class Progress:
    """The progress of one phase. Unknown values are None.

    Attributes:
        phase: The name of the phase; see PHASES.
        done, total: The units done and the units in all. They are equal in the last report of a successful phase. A
            resumed run counts from the beginning of the whole run.
        unit: The unit of the phase.
        rate: Units per second since this process began the phase.
        seconds_left: The remaining time at this rate.
        epoch, epochs: The current epoch, from 1, and the number of epochs.
        loss: The mean loss per prediction so far in this epoch.
        alpha: The learning rate.
        score: The best score so far, in tuning.
        memory, memory_limit: The estimated peak memory of training, and the memory that this process may use, in bytes.
        view: The name of the view that is trained, if the model has several; in `compare_losses`, the loss.
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
    view: str | None = None


Report = Callable[[Progress], None]


def formatted_values(progress: Progress) -> list[str]:
    """Format the known values of a report, the most important first."""
    values = []
    if progress.seconds_left:
        values.append(f"{timedelta(seconds=round(progress.seconds_left))} left".removeprefix("0:"))
    if progress.score is not None:
        values.append(f"best score {100 * progress.score:.2f}")
    if progress.view is not None:
        values.append(progress.view)
    if progress.epochs is not None:
        values.append(f"epoch {progress.epoch}/{progress.epochs}")
    if progress.rate is not None:
        values.append(f"{quantity(progress.rate)} {progress.unit}/s")
    if progress.loss is not None:
        values.append(f"loss {progress.loss:.3f}")
    if progress.alpha is not None:
        values.append(f"alpha {progress.alpha:.2g}")
    return values


def duration(seconds: float) -> str:
    """Format a duration for people: "45 seconds", "72 minutes", "2.5 hours"."""
    if seconds < 120:
        return pluralise(round(seconds), "second")
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def quantity(number: float) -> str:
    """Format a number with about three digits, in millions if it is large."""
    return f"{number / 1e6:,.2f} M" if number >= 1e4 else f"{number:,.3g}" if number < 100 else f"{number:,.0f}"


class NotebookBar:
    """A progress bar below the running cell of a notebook. It appears after SHOWN_AFTER, and disappears at the end.

    In a notebook, the bars of rich need ipywidgets, and warn without it. IPython alone can update HTML.
    """

    def __init__(self) -> None:
        self._display: Any = None
        self._next = time.monotonic() + SHOWN_AFTER

    def __call__(self, progress: Progress) -> None:
        from IPython import display  # a notebook always has IPython

        now, ended = time.monotonic(), progress.done == progress.total
        if ended and not self._display:  # the phase was too short to show a bar
            return
        if not ended and now < self._next:
            return
        self._next = now + REDRAWN_EVERY
        share = f' value="{progress.done}" max="{progress.total}"' if progress.total else ""
        values = ", ".join(formatted_values(progress))
        html = display.HTML("" if ended else f"<div>{progress.phase} <progress{share}></progress> {values}</div>")
        if self._display:
            self._display.update(html)
        else:
            self._display = display.display(html, display_id=True)


def notebook_bar() -> Report | None:
    """Return a progress bar if this process runs a notebook, or None."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return NotebookBar() if hasattr(shell, "kernel") else None


class Meter:
    """A reporter of the progress of one phase.

    Args:
        report: The function that receives the reports. If it is None, notebooks show a bar.
        phase: The name of the phase; see PHASES.
        start: The units that were done before this process began the phase.
        constants: Fields of Progress that do not change.
    """

    def __init__(self, report: Report | None, phase: str, start: int = 0, **constants: Any) -> None:
        self._report = report or notebook_bar()
        self._start = start
        self._constants = {"phase": phase, "unit": PHASES[phase], **constants}
        self._started = time.monotonic()

    def __call__(self, done: int, total: int | None, **values: Any) -> None:
        """Report that `done` of `total` units are done. `values` are other fields of Progress."""
        if self._report is None:
            return
        seconds = time.monotonic() - self._started
        rate = (done - self._start) / seconds if done > self._start and seconds else None
        left = (total - done) / rate if rate and total is not None else None
        self._report(Progress(done=done, total=total, rate=rate, seconds_left=left, **self._constants, **values))
