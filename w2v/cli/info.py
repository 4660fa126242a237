"""What `w2v info` shows: this installation, or a model file."""

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.cpu import processors
from w2v.errors import W2VError
from w2v.formats.table import content_format
from w2v.formats.vector_file import VectorFile
from w2v.instruction_set import available_sets, instruction_set
from w2v.losses.loss import Loss, is_parameter
from w2v.losses.registry import LOSSES, Settings, needed_for
from w2v.vectors.keyed import KeyedVectors

MOST_FREQUENT = 10  # words named


def installation() -> dict[str, Any]:
    """Versions, and what the machine offers."""
    return {
        "version": version("w2v"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "processors": processors(),
        "instruction_set": instruction_set(),
        "instruction_sets": available_sets(),
    }


def model(path: Path, vectors: KeyedVectors) -> dict[str, Any]:
    """What the file at `path` holds; `vectors` is what was loaded from it."""
    try:
        settings = json.loads(vectors.metadata.get("settings", "null"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise W2VError(f"{path}: damaged: its settings are not JSON") from None
    return {
        "model": str(path),
        "format": file_format(path),
        "bytes": path.stat().st_size,
        "vocabulary_size": len(vectors),
        "vector_size": vectors.vector_size,
        "most_frequent": vectors.first_words(MOST_FREQUENT),
        "norms": {name: float(getattr(vectors.norms, name)()) for name in ("min", "mean", "max")},
        "counts": vectors.counts is not None,
        "tensors": {name: list(array.shape) for name, array in vectors.tensors.items()},
        "output_layer": output_layer(settings or {}, vectors.tensors),
        "settings": settings,
    }


def output_layer(settings: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Of a whole model: its loss, and the settings of that loss."""
    if not any(map(is_parameter, tensors)) or "loss" not in settings:
        return {}
    loss = settings["loss"]
    needs = {name: needed_for(name) for name in Settings.names()}
    names = [name for name, need in needs.items() if need and need[0] == "loss" and loss in need[1]]
    chosen = {name: settings[name] for name in names if settings.get(name) is not None}
    return {"loss": loss, **chosen, **LOSSES.get(str(loss), Loss).summary(tensors)}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def file_format(path: Path) -> str:
    """native, or word2vec binary or text. Raises W2VError for a file that is none of these."""
    kind = content_format(path)
    return kind if kind == "native" else f"word2vec {kind}"


def beside_vectors(stored: VectorFile) -> list[str]:
    """The names of all that was loaded except words and vectors; only the native format stores it."""
    counts = [] if stored.counts is None else ["counts"]
    return [*counts, *stored.tensors, *(name for name in stored.metadata if name not in ("format", "version"))]
