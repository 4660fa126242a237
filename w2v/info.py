"""What `w2v info` tells: about this installation, and about a model file."""

import json
import platform
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

import w2v
from w2v import native, sniff
from w2v._kernels import step_for
from w2v.blocks import opened
from w2v.settings import processors
from w2v.train import INSTRUCTION_SETS, instruction_set
from w2v.vectors import KeyedVectors

MOST_FREQUENT = 10  # words named


def installation() -> dict[str, Any]:
    """Versions, and what the machine offers."""
    return {
        "version": w2v.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "processors": processors(),
        "instruction_set": instruction_set(),
        "instruction_sets": [name for name in INSTRUCTION_SETS if step_for(name)],
    }


def model(path: Path, vectors: KeyedVectors) -> dict[str, Any]:
    """What the file at `path` holds; `vectors` is what was loaded from it."""
    settings = vectors.metadata.get("settings")
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
        "settings": json.loads(settings) if settings else None,
    }


def file_format(path: Path) -> str:
    """native, or word2vec binary or text. Raises W2VError for a file that is none of these."""
    with opened(path) as (file, _):
        sample = file.read(sniff.SAMPLE)
    return "native" if native.is_native(sample) else f"word2vec {sniff.recognise(path, sample).kind}"


def beside_vectors(vectors: KeyedVectors) -> list[str]:
    """The names of what was loaded beside words and vectors, which only the native format keeps."""
    counts = [] if vectors.counts is None else ["counts"]
    return [*counts, *vectors.tensors, *(name for name in vectors.metadata if name not in ("format", "version"))]


def peak_memory() -> int:
    """The most memory that this process has held, in bytes."""
    status = Path(
        "/proc/self/status"
    )  # on Linux getrusage's figure begins with that of the process that started this one
    if status.exists():
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
