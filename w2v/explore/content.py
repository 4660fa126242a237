"""What a page holds of a model: words, counts, vectors as 8-bit integers, places on the map, and examples."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError
from w2v.formats.storage import quantise
from w2v.options import check_numbers
from w2v.plotting.projection import Projection, project
from w2v.plotting.words import CLUSTERS, clusters_of, nearest_cluster, skipped
from w2v.progress import Report
from w2v.vectors.cosines import unit
from w2v.vectors.keyed import KeyedVectors

Content = dict[str, Any]

TOP = 10_000  # words, by default
SHOWN = 1_500  # on the map when it opens
MAX_COORDINATE = 32767  # of a map
TRIED = 10  # analogies, until one is answered as expected
SEARCHED = 10_000  # words for the answer


def embedded(name: str, vectors: KeyedVectors, top: int, method: Projection, progress: Report | None = None) -> Content:
    """All that a page holds of the first `top` words of a model. Raises as map_of."""
    integers, scales = quantise(np.asarray(vectors.vectors[:top]))
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
    check_numbers(top=top)
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


def examples(models: Sequence[KeyedVectors], top: int) -> dict[str, Any]:
    """Return what a page shows before anything is asked: a word, and an analogy a - b + c whose answer it is.

    All models have these words, each among its first `top`. The word is None where no word is in all models, the
    analogy [] for fewer than four words. Two words and their nearest ones make an analogy: that of the most parallel
    offsets.
    """
    first, *others = models
    start = skipped(min(top, len(first)), SHOWN)
    words = [
        word
        for word in first.first_words(min(top, start + SHOWN))[start:]
        if all(other.key_to_index.get(word, top) < top for other in others)
    ]
    if len(words) < 4:
        return {"word": words[0] if words else None, "analogy": []}
    vectors = unit(first[words])
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = cosines.argmax(axis=1)
    offsets = unit(vectors - vectors[nearest])
    left, right = np.triu_indices(len(words), 1)
    different = (nearest[left] != nearest[right]) & (nearest[left] != right) & (nearest[right] != left)
    left, right = left[different], right[different]
    found = []
    for pair in np.argsort(-(offsets @ offsets.T)[left, right], kind="stable")[:TRIED]:
        places = left[pair], nearest[left[pair]], nearest[right[pair]], right[pair]
        a, b, c, answer = (words[place] for place in places)
        found.append({"word": answer, "analogy": [a, b, c]})
        if first.most_similar([a, c], [b], 1, SEARCHED)[0][0] == answer:
            return found[-1]
    return found[0] if found else {"word": words[0], "analogy": []}


def encoded(values: NDArray[Any]) -> str:
    """The values, little-endian, as base64."""
    return base64.b64encode(values.astype(values.dtype.newbyteorder("<")).tobytes()).decode()
