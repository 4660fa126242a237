"""Attributes that programs set on an object, in a native file: arrays of numbers as arrays, all else as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.system.files import PathLike
from w2v.system.schema import decode

log = logging.getLogger("w2v")  # gensim's loggers are silent by default, and a loss must be seen

Arrays = dict[str, NDArray[Any]]


def set_by_programs(owner: object, own: Collection[str]) -> dict[str, Any]:
    """The public attributes of an object but for its `own`."""
    return {name: value for name, value in vars(owner).items() if _is_programs(owner, own, name)}


def restore(owner: object, own: Collection[str], values: Mapping[str, Any]) -> None:
    """Set attributes that `set_by_programs` found; others, which only a forged file has, are left out."""
    vars(owner).update({name: value for name, value in values.items() if _is_programs(owner, own, name)})


def _is_programs(owner: object, own: Collection[str], name: str) -> bool:
    return not (name in own or name.startswith("_") or hasattr(type(owner), name))


def packed(name: str, values: Mapping[str, Any]) -> Arrays:
    """Values as arrays whose names begin with `name`; a warning names those that a file cannot give back."""
    arrays: Arrays = {}
    others: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "biuf" and value.itemsize <= 8:
            arrays[f"{name}.{key}"] = value.astype(value.dtype.newbyteorder("="), copy=False)
            continue
        plain = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
        with suppress(TypeError, ValueError, RecursionError):
            if json.loads(json.dumps(plain)) == plain:
                others[key] = plain
                continue
        warn_not_saved(f"the attribute {key}, which is neither an array of numbers nor JSON")
    if others:
        arrays[name] = np.frombuffer(json.dumps(others).encode(), np.uint8)
    return arrays


def warn_not_saved(what: str) -> None:
    """Warn of a part of an object that its file will not have."""
    log.warning("not saved: %s", what)


def unpacked(path: PathLike, name: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The values that `packed` made these arrays of. Raises W2VError if they are damaged."""
    found: dict[str, Any] = {}
    if name in arrays:
        found |= decode(dict[str, Any], arrays[name].tobytes(), f"{path}: its attributes")
    return found | {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}
