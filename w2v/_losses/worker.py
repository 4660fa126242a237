"""The state `s` of a training thread, which the training loop passes to the functions of a loss: see Loss."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v._losses.loss import Loss, Worker
from w2v._losses.rows import SCORE_BLOCK
from w2v._system import memory


def new_worker(
    loss: Loss,
    parameters: Mapping[str, NDArray[Any]],
    n: int,
    width: int,
    dtype: DTypeLike,
    chunk_size: int = 0,
    composed: int = 0,
    labels: int = 0,
    tags: int = 0,
) -> Worker:
    """Return the state of a thread.

    Args:
        loss: The loss, prepared for a run.
        parameters: The parameters of the loss, which all threads share.
        n: The maximum number of input rows of a step.
        width: The number of values of a row, with padding.
        dtype: The dtype of the rows: float32, or float64 to check results.
        chunk_size: The maximum number of ids in a chunk of the text.
        composed: The number of words in the vocabulary if their rows are composed of subwords, otherwise 0.
        labels: The highest number of labels of an example; 0 without examples.
        tags: The highest number of tags of a document; 0 without documents.
    """
    m, kept = loss.max_rows, chunk_size + n + 2
    distinct = min(kept, composed)
    fields: dict[str, Any] = {
        "parameters": as_named_tuple("parameters", parameters),
        "data": as_named_tuple("data", floats_as(dtype, loss.data)),
        "scratch": as_named_tuple("scratch", floats_as(dtype, loss.new_scratch(n))),
        "random": np.zeros(loss.predrawn + 1, np.uint64),
        "position": np.zeros(2, np.int64),
        "rows": np.zeros(m, np.int64),
        "target": np.zeros(m, dtype),
        "offset": np.zeros(m, dtype),
        "weight": np.ones(m, dtype),
        "scores": memory.zeros((n * m + SCORE_BLOCK,), dtype),
        "room": memory.zeros((n * m + SCORE_BLOCK,), dtype),
        "x": memory.zeros((n, width), dtype),
        "change": memory.zeros((n, width), dtype),
        "context": np.zeros(n, np.int64),
        "labels": np.zeros(labels, np.int32),
        "label_count": np.zeros(1, np.int64),
        "tags": np.zeros(tags, np.int64),
        "kept": np.zeros(kept, np.int32),
        "token_number": np.zeros(kept, np.int32),
        "slots": np.zeros(composed, np.int32),
        "distinct": np.zeros(distinct, np.int32),
        "composed": memory.zeros((distinct, width), dtype),
        "composed_before": memory.zeros((distinct, width), dtype),
    }
    return as_named_tuple("worker", fields)


def floats_as(dtype: DTypeLike, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays and numbers by name, with float32 arrays and Python's floats converted to another dtype."""
    converted = dict(values)
    for name, value in values.items():
        if isinstance(value, float):
            converted[name] = np.array(value, dtype)[()]
        elif getattr(value, "dtype", None) == np.float32:
            converted[name] = value.astype(dtype, copy=False)
    return converted


def as_named_tuple(kind: str, values: Mapping[str, Any]) -> Any:
    """Return the values as a named tuple, which Numba can compile, unlike a dict."""
    values = values or {"nothing": 0}
    return _named_tuple_type("__".join([f"named_{kind}", *values]))(**values)


@cache
def _named_tuple_type(name: str) -> Any:
    kind = namedtuple(name, name.split("__")[1:])  # type: ignore[misc]
    kind.__module__ = __name__
    return kind


def __getattr__(name: str) -> Any:
    """Return a type of `as_named_tuple`: machine code that Numba has stored on disk looks it up in this module."""
    if not name.startswith("named_"):
        raise AttributeError(name)
    return _named_tuple_type(name)
