"""A user's objective is rehearsed in plain Python before it is compiled: mistakes are found where they stand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from w2v.errors import W2VError
from w2v.losses.objective import Objective, Worker, tried, wrong
from w2v.losses.rows import score

INPUTS = 2  # rows


def rehearse(objective: Objective, s: Worker, words: int) -> None:
    """Predict the first word, one between and the last from two rows, on copies.

    Raises W2VError, with the place, for what is wrong.
    """
    for name in ("choose", "link") if objective.step is None else ("step",):
        if getattr(objective, name) is getattr(Objective, name):
            raise W2VError(f"objective {objective.name} has no {name}: write choose and link, or step")
        if hasattr(getattr(objective, name), "__self__"):
            wrong(objective, name, "it takes no self: write @staticmethod above it")
    s = s._replace(parameters=type(s.parameters)(*(array.copy() for array in s.parameters)))
    for centre in (0, words // 2, words - 1):
        predict(objective, s, centre)


def predict(objective: Objective, s: Worker, centre: int) -> None:
    n = min(INPUTS, len(s.x))
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
    outputs = s.parameters.outputs
    if outputs.shape[1] != x.shape[1]:
        wrong(
            objective,
            "parameters",
            f"rows of outputs have {outputs.shape[1]} values: memory.aligned_rows pads them to {x.shape[1]}",
        )
    if s.rows[:m].min() < 0 or s.rows[:m].max() >= len(outputs):
        wrong(objective, "choose", f"chose row {s.rows[:m].max()}: outputs has {len(outputs)}")
    if len(set(s.rows[:m].tolist())) < m:
        wrong(objective, "choose", "chose a row twice: let its weight say so")
    scores = s.scores[: n * m].reshape(n, m)
    score(x, outputs, s.rows, s.offset, scores)
    loss = tried(objective, "link", s, scores)
    checked(objective, "link", loss, scores)


def checked(objective: Objective, what: str, loss: Any, moved: Any) -> None:
    if not isinstance(loss, float | np.floating):
        wrong(objective, what, f"returned {loss!r}: it must be the loss, a float")
    if not math.isfinite(loss) or not np.isfinite(moved).all():
        wrong(objective, what, f"a loss of {loss} and values that are not numbers, from the first words on")
