"""The trial of a user's own loss in plain Python before it is compiled, so that errors have file and line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from w2v.errors import W2VError
from w2v.losses.loss import Loss, Worker, call_method, fail
from w2v.losses.rows import score

INPUT_ROWS = 2


def dry_run(loss: Loss, s: Worker, words: int) -> None:
    """Predict the first, the middle and the last word from two rows, on copies of the parameters.

    Raises:
        W2VError: The loss has a mistake; the message has file and line.
    """
    for name in ("choose", "link") if loss.step is None else ("step",):
        if getattr(loss, name) is getattr(Loss, name):
            raise W2VError(f"{loss.label} has no {name}: write choose and link, or step")
        if hasattr(getattr(loss, name), "__self__"):
            fail(loss, name, "it takes no self: write @staticmethod above it")
    s = s._replace(parameters=type(s.parameters)(*(array.copy() for array in s.parameters)))
    for centre in (0, words // 2, words - 1):
        predict(loss, s, centre)


def predict(loss: Loss, s: Worker, centre: int) -> None:
    """Predict a word with the functions of the loss, and raise W2VError if one of them returns an invalid result."""
    n = min(INPUT_ROWS, len(s.x))
    x = s.x[:n].copy()
    x[:, : loss.settings.vector_size] = 0.1
    if loss.step is not None:
        change = np.zeros_like(x)
        value = call_method(loss, "step", s, centre, x, change, x.dtype.type(0.01))
        check_result(loss, "step", value, change)
        return
    m = call_method(loss, "choose", s, centre, x)
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or not 0 < m <= loss.max_rows:
        fail(loss, "choose", f"returned {m!r}: it must be the number of rows, from 1 to {loss.max_rows}")
    outputs = s.parameters.outputs
    if outputs.shape[1] != x.shape[1]:
        fail(
            loss,
            "parameters",
            f"rows of outputs have {outputs.shape[1]} values: memory.aligned_rows pads them to {x.shape[1]}",
        )
    if s.rows[:m].min() < 0 or s.rows[:m].max() >= len(outputs):
        fail(loss, "choose", f"chose row {s.rows[:m].max()}: outputs has {len(outputs)}")
    if len(set(s.rows[:m].tolist())) < m:
        fail(loss, "choose", "chose a row twice: choose it once and raise its weight")
    scores = s.scores[: n * m].reshape(n, m)
    score(x, outputs, s.rows, s.offset, scores)
    value = call_method(loss, "link", s, scores)
    check_result(loss, "link", value, scores)


def check_result(loss: Loss, method: str, value: Any, updates: Any) -> None:
    """Raise W2VError unless the value that a method returned, and the updates that it made, are finite."""
    if not isinstance(value, float | np.floating):
        fail(loss, method, f"returned {value!r}: it must be the loss, a float")
    if not math.isfinite(value) or not np.isfinite(updates).all():
        fail(loss, method, f"with untrained vectors, the loss is {value}: it and all updates must be finite")
