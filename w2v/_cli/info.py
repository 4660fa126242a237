"""Facts about this installation or a model file, for `w2v info`."""

import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from w2v._formats import registry
from w2v._kernel.plan import available_sets, instruction_set
from w2v._losses.loss import is_parameter
from w2v._losses.registry import Settings, settings_from
from w2v._options import options_of
from w2v._system.threads import processors
from w2v._system.version import __version__
from w2v._text.normalise import TextOptions
from w2v._training.classifier import Classifier
from w2v._vectors.keyed import KeyedVectors

MOST_FREQUENT = 10  # number of most frequent words shown


def installation() -> dict[str, Any]:
    """Return versions, and the number of processors and the instruction sets of this machine."""
    return {
        "version": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "processors": processors(),
        "instruction_set": instruction_set(),
        "instruction_sets": available_sets(),
    }


def model(path: Path, vectors: KeyedVectors) -> dict[str, Any]:
    """Return facts about a model file, from which the vectors were loaded.

    Raises:
        W2VError: If the settings in the file are damaged.
    """
    header = vectors.header
    settings, shown_settings = None, None
    if header.settings is not None:
        settings = settings_from(header.settings, f"{path}: its settings")
        # fastText files hold only some settings
        shown_settings = {name: value for name, value in settings.in_effect().items() if name in header.settings}
    return {
        "model": str(path),
        "format": registry.detect_format(path).name,
        "bytes": sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else [path])),
        "vocabulary_size": len(vectors),
        "vector_size": vectors.vector_size,
        "most_frequent": vectors.first_words(MOST_FREQUENT),
        "norms": {name: float(getattr(vectors.norms, name)()) for name in ("min", "mean", "max")},
        "counts": vectors.counts is not None,
        "tensors": {name: list(array.shape) for name, array in vectors.tensors.items()},
        "output_layer": output_layer(settings, vectors),
        "views": {name: view.settings["vector_size"] for name, view in header.views.items()},
        "settings": shown_settings,
        "text": asdict(header.text) if header.text != TextOptions() else {},
        "classifier": classifier_facts(Classifier.load(path, mmap=path.suffix == ".safetensors"))
        if header.labels
        else None,
    }


def classifier_facts(model: Classifier) -> dict[str, Any]:
    """Return what a classifier has besides the settings of its run."""
    words = len(model.features.vocabulary)
    return {
        "labels": len(model.labels),
        "most_frequent_labels": model.labels[:MOST_FREQUENT],
        "words": words,
        "ngrams": model.features.rows - words,
        "several_labels": model.several,
        "temperature": model.temperature,
        "options": asdict(model.options),
    }


def output_layer(settings: Settings | None, vectors: KeyedVectors) -> dict[str, Any]:
    """Return the loss of a model and its options, or {} for a file without an output layer."""
    if settings is None or not any(map(is_parameter, vectors.tensors)):
        return {}
    names = options_of(settings.loss_class.options_class)
    chosen = {name: value for name in names if (value := getattr(settings, name)) is not None}
    return {"loss": settings.loss, **chosen, **settings.loss_class.summary(vectors.tensors)}
