"""The state of a thread, `s`, that the training loop and the functions of a loss get: see Loss."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v.losses.loss import Loss, Worker
from w2v.losses.rows import WHOLE
from w2v.system import memory


def new_worker(
    loss: Loss,
    parameters: Mapping[str, NDArray[Any]],
    n: int,
    width: int,
    dtype: DTypeLike,
    chunk: int = 0,
    composed: int = 0,
) -> Worker:
    """The state of a thread, for steps of at most n input rows; with subwords, of a vocabulary of `composed` words.

    dtype: of the rows, float32, or float64 to check the results.
    """
    m, kept = loss.max_rows, chunk + n + 2
    distinct = min(kept, composed)
    fields: dict[str, Any] = {
        "parameters": make_named_tuple("parameters", parameters),
        "data": make_named_tuple("data", floats_as(dtype, loss.data)),
        "scratch": make_named_tuple("scratch", floats_as(dtype, loss.new_scratch(n))),
        "random": np.zeros(loss.predrawn + 1, np.uint64),
        "position": np.zeros(2, np.int64),
        "rows": np.zeros(m, np.int64),
        "target": np.zeros(m, dtype),
        "offset": np.zeros(m, dtype),
        "weight": np.ones(m, dtype),
        "scores": memory.zeros((n * m + WHOLE,), dtype),
        "room": memory.zeros((n * m + WHOLE,), dtype),
        "x": memory.zeros((n, width), dtype),
        "change": memory.zeros((n, width), dtype),
        "context": np.zeros(n, np.int64),
        "kept": np.zeros(kept, np.int32),
        "token_number": np.zeros(kept, np.int32),
        "slots": np.zeros(composed, np.int32),
        "distinct": np.zeros(distinct, np.int32),
        "composed": memory.zeros((distinct, width), dtype),
        "composed_before": memory.zeros((distinct, width), dtype),
    }
    return make_named_tuple("worker", fields)


def floats_as(dtype: DTypeLike, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The float32 arrays among these as another type, and all others unchanged."""
    return {
        name: array.astype(dtype, copy=False) if array.dtype == np.float32 else array for name, array in arrays.items()
    }


def make_named_tuple(kind: str, values: Mapping[str, Any]) -> Any:
    """A named tuple, the kind of structure that Numba can compile."""
    values = values or {"nothing": 0}
    return _type("__".join([f"named_{kind}", *values]))(**values)


@cache
def _type(name: str) -> Any:
    made = namedtuple(name, name.split("__")[1:])  # type: ignore[misc]
    made.__module__ = __name__
    return made


def __getattr__(name: str) -> Any:
    """The types of `make_named_tuple`, to which machine code on disk refers by name."""
    if not name.startswith("named_"):
        raise AttributeError(name)
    return _type(name)
