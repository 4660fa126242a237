"""A user's objective is rehearsed in plain Python before it is compiled: mistakes are found where they stand."""

from __future__ import annotations

import math
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from w2v.errors import W2VError
from w2v.objectives.base import Objective, Worker

INPUTS = 2  # rows


def rehearse(objective: Objective, s: Worker, words: int) -> None:
    """Predict one word from two rows, on copies. Raises W2VError, with the place, for what is wrong."""
    s = s._replace(parameters=type(s.parameters)(*(array.copy() for array in s.parameters)))
    n, centre = min(INPUTS, len(s.x)), words - 1
    x = s.x[:n].copy()
    x[:, : objective.settings.vector_size] = 0.1
    if objective.step is not None:
        change = np.zeros_like(x)
        loss = tried(objective, "step", s, centre, x, change, x.dtype.type(0.01))
        checked(objective, "step", loss, change)
        return
    m = tried(objective, "choose", s, centre, x)
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or not 0 < m <= objective.most_rows:
        wrong(objective, "choose", f"returned {m!r}: it must be the number of rows, from 1 to {objective.most_rows}")
    rows = len(s.parameters.outputs)
    if s.rows[:m].min() < 0 or s.rows[:m].max() >= rows:
        wrong(objective, "choose", f"chose row {s.rows[:m].max()}: there are {rows}")
    if len(set(s.rows[:m].tolist())) < m:
        wrong(objective, "choose", "chose a row twice: let its weight say so")
    scores = s.scores[: n * m].reshape(n, m)
    scores[:] = 0
    loss = tried(objective, "link", s, scores)
    checked(objective, "link", loss, scores)


def tried(objective: Objective, what: str, *arguments: Any) -> Any:
    function = getattr(objective, what)
    try:
        with np.errstate(over="ignore"):
            return function(*arguments)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        for candidate in traceback.extract_tb(error.__traceback__):
            if candidate.filename == function.__code__.co_filename:
                frame = candidate
        place = f"{Path(frame.filename).name}, line {frame.lineno}"
        said = str(error) or "it is not written"
        raise W2VError(f"objective {objective.name}: {what}, {place}: {type(error).__name__}: {said}") from error


def checked(objective: Objective, what: str, loss: Any, moved: Any) -> None:
    if not isinstance(loss, float | np.floating):
        wrong(objective, what, f"returned {loss!r}: it must be the loss")
    if not math.isfinite(loss) or not np.isfinite(moved).all():
        wrong(objective, what, f"a loss of {loss} and values that are not numbers, from the first words on")


def wrong(objective: Objective, what: str, said: str) -> None:
    code = getattr(objective, what).__code__
    place = f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
    raise W2VError(f"objective {objective.name}: {what}, {place}: {said}")
