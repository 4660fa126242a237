"""What a page holds of a model: its words and counts, their vectors as 8-bit integers, their places on the map."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError
from w2v.formats.storage import quantised
from w2v.plotting.clusters import clusters_of, nearest_cluster
from w2v.plotting.options import CLUSTERS, skipped
from w2v.plotting.projection import Projection, project
from w2v.progress import Report
from w2v.vectors.cosines import unit
from w2v.vectors.keyed import KeyedVectors

Content = dict[str, Any]

TOP = 10_000  # words, by default
SHOWN = 1_500  # on the map when it opens
MAX_COORDINATE = 32767  # of a map


def embedded(name: str, vectors: KeyedVectors, top: int, method: Projection, progress: Report | None = None) -> Content:
    """All that a page holds of the first `top` words of a model. Raises as map_of."""
    integers, scales = quantised(np.asarray(vectors.vectors[:top]))
    searched = "all words" if top >= len(vectors) else f"the first {top:,} words"
    return {
        **facts(name, vectors, f"search in {searched}, with vectors rounded to 8 bits"),
        **map_of(vectors, top, method, progress),
        "vectors": encoded(integers),
        "scales": encoded(scales),
        "composes": vectors.ngrams is not None,  # a page without a server has no n-grams
    }


def facts(name: str, vectors: KeyedVectors, search: str) -> Content:
    """What a page says about a model; `search` tells how its words are searched."""
    return {"name": name, "size": len(vectors), "dimensions": vectors.vector_size, "search": search}


def map_of(vectors: KeyedVectors, top: int, method: Projection, progress: Report | None = None) -> Content:
    """The first `top` words, their counts (or None), and their places on a map: pairs of 16-bit integers, as base64.

    The map shows unit vectors: words that are near each other have a high cosine. It opens with the
    `shown` words after those `skipped`; their clusters have `names`, and each word is in the nearest one (8-bit
    integers).

    Raises SettingsError for a `top` below 1, W2VError for a model without words or with values that are not finite, and
    where a library is missing.
    """
    if top < 1:
        raise SettingsError(f"top is {top}: it must be at least 1")
    if not vectors.vectors.size:
        raise W2VError("the model has no words")
    rows, words = unit(np.asarray(vectors.vectors[:top])), vectors.first_words(top)
    points = project(rows, method, progress=progress)
    points -= (points.min(axis=0) + points.max(axis=0)) / 2
    points *= MAX_COORDINATE / (np.abs(points).max() or 1)
    start = skipped(len(words), SHOWN)
    opening = slice(start, start + SHOWN)
    numbers, names = clusters_of(words[opening], rows[opening], CLUSTERS, seed=1)
    clusters = nearest_cluster(rows, rows[opening], numbers)
    return {
        "words": words,
        "counts": None if vectors.counts is None else vectors.counts[:top].tolist(),
        "map": encoded(np.rint(points).astype(np.int16)),
        "clusters": encoded(clusters.astype(np.uint8)),
        "names": names,
        "skipped": start,
        "shown": SHOWN,
    }


def encoded(values: NDArray[Any]) -> str:
    """The values, little-endian, as base64."""
    return base64.b64encode(values.astype(values.dtype.newbyteorder("<")).tobytes()).decode()
