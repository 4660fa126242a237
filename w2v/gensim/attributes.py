"""Save the attributes that a program sets on a model: arrays of numbers as tensors, all others as JSON."""

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

log = logging.getLogger("w2v")  # gensim's loggers are silent by default, and users must see that data is lost

Arrays = dict[str, NDArray[Any]]


def user_attributes(obj: object, reserved: Collection[str]) -> dict[str, Any]:
    """Return the public attributes of an object that are neither `reserved` nor defined by its class."""
    return {name: value for name, value in vars(obj).items() if _is_user_attribute(obj, reserved, name)}


def restore(obj: object, reserved: Collection[str], values: Mapping[str, Any]) -> None:
    """Set the attributes that `user_attributes` returned. Ignore all others: only a forged file has them."""
    vars(obj).update({name: value for name, value in values.items() if _is_user_attribute(obj, reserved, name)})


def _is_user_attribute(obj: object, reserved: Collection[str], name: str) -> bool:
    return not (name in reserved or name.startswith("_") or hasattr(type(obj), name))


def pack(name: str, values: Mapping[str, Any]) -> Arrays:
    """Convert values, by key, to arrays. Warn of each value that `unpack` could not restore, and leave it out.

    An array of numbers is stored as `name`.KEY. All other values are stored together, as JSON, in the array `name`.
    """
    arrays: Arrays = {}
    json_values: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "biuf" and value.itemsize <= 8:
            arrays[f"{name}.{key}"] = value.astype(value.dtype.newbyteorder("="), copy=False)
            continue
        plain = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
        with suppress(TypeError, ValueError, RecursionError):
            if json.loads(json.dumps(plain)) == plain:
                json_values[key] = plain
                continue
        warn_not_saved(f"the attribute {key}, which is neither an array of numbers nor JSON")
    if json_values:
        arrays[name] = np.frombuffer(json.dumps(json_values).encode(), np.uint8)
    return arrays


def warn_not_saved(part: str) -> None:
    """Log a warning that the file will lack this part of the object."""
    log.warning("not saved: %s", part)


def unpack(path: PathLike, name: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the values that `pack` converted to these arrays.

    Raises:
        W2VError: The arrays are damaged.
    """
    values: dict[str, Any] = {}
    if name in arrays:
        values |= decode(dict[str, Any], arrays[name].tobytes(), f"{path}: its attributes")
    return values | {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}
