"""The index of approximate search: a graph of near neighbours (HNSW, Malkov & Yashunin 2018, arXiv:1603.09320)."""

from typing import Any

import numpy as np

from w2v.errors import W2VError, one_line, optional
from w2v.progress import Meter, Report
from w2v.system.files import PathLike, errors_named, open_regular
from w2v.vectors.cosines import Vector


def built_index(vectors: Vector, progress: Report | None = None) -> Any:
    """usearch's index of the rows of a matrix by their cosines; a million rows take minutes.

    `progress` is called in phase "index". Raises W2VError if usearch is missing.
    """
    index = _usearch().Index(ndim=vectors.shape[1], metric="cos", dtype="f32")
    meter = Meter(progress, "index")

    def report(done: int, total: int) -> bool:  # usearch checks these types: they must not be strings
        meter(done, total)
        return True  # continue

    index.add(np.arange(len(vectors)), vectors, progress=report)
    return index


def index_of_file(path: PathLike) -> Any:
    """The index in a file of its method `save`. Raises W2VError for a file that cannot be read or is no index."""
    with errors_named(path), open_regular(path):
        try:
            return _usearch().Index.restore(str(path))
        except (ValueError, RuntimeError) as error:
            raise W2VError(f"{path}: not an index of usearch: {one_line(error)}") from error


def _usearch() -> Any:
    return optional("approximate search needs usearch", "approximate", "usearch.index")
