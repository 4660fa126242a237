"""Prepare the data of the explore page: words, counts, 8-bit vectors, map coordinates, and examples."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError
from w2v._formats.storage import quantise
from w2v._options import check_numbers
from w2v._plotting.projection import Projection, project
from w2v._plotting.words import CLUSTERS, cluster_words, default_skip, nearest_cluster
from w2v._progress import Report
from w2v._vectors.cosines import unit
from w2v._vectors.keyed import KeyedVectors

Content = dict[str, Any]

RESTRICT_VOCAB = 10_000  # default number of words in a page
INITIAL_WORDS = 1_500  # words on the map when it opens
MAX_COORDINATE = 32767
MAX_CANDIDATES = 10  # example analogies to try; the first that the model answers correctly is used
SEARCHED_WORDS = 10_000  # number of words among which the model searches for the answer


def embedded_model(name: str, vectors: KeyedVectors, restrict_vocab: int, word_map: Content) -> Content:
    """Return the data of a page that works without a server: `restrict_vocab` words with their vectors.

    Args:
        word_map: The map of these words, from word_maps.
    """
    integers, scales = quantise(np.asarray(vectors.vectors[:restrict_vocab]))
    searched = "all words" if restrict_vocab >= len(vectors) else f"the first {restrict_vocab:,} words"
    return {
        **model_facts(name, vectors, f"search in {searched}, with vectors rounded to 8 bits"),
        **word_map,
        "vectors": encode_array(integers),
        "scales": encode_array(scales),
        "has_ngrams": vectors.ngrams is not None,  # the page explains that only a server can use the n-grams
    }


def model_facts(name: str, vectors: KeyedVectors, search: str) -> Content:
    """Return the facts that a page shows about a model. `search` describes how its words are searched."""
    return {"name": name, "size": len(vectors), "dimensions": vectors.vector_size, "search": search}


def word_maps(
    models: Sequence[KeyedVectors],
    restrict_vocab: int,
    method: Projection,
    slices: bool = False,
    progress: Report | None = None,
) -> list[Content]:
    """Return the data of a map of the first `restrict_vocab` words of each model.

    A map projects unit vectors, so that words with high cosines are close to each other.

    Args:
        slices: Whether the models have one coordinate system. Then their maps have one, too, and the same clusters.

    Returns:
        For each model, a dict with:
        words: The words, the most frequent first.
        counts: Their counts, or None.
        map: Their coordinates x, y, x, y, …, int16 as base64.
        skipped: The number of most frequent words that are left out when the map opens.
        shown: The number of words that are shown when the map opens. The clusters are computed from these words; with
            slices, from the words of the first model.
        clusters: The nearest cluster of each word, uint8 as base64.
        names: The names of the clusters.

    Raises:
        SettingsError: `restrict_vocab` is below 1.
        W2VError: A model has no words, a value is not finite, or a library is not installed.
    """
    check_numbers(restrict_vocab=restrict_vocab)
    if not all(each.vectors.size for each in models):
        raise W2VError("the model has no words")
    groups = [models] if slices else [[model] for model in models]
    return [each for group in groups for each in _maps_in_one_system(group, restrict_vocab, method, progress)]


def _maps_in_one_system(
    models: Sequence[KeyedVectors], restrict_vocab: int, method: Projection, progress: Report | None
) -> list[Content]:
    """Return the data of the maps of models in one coordinate system; see word_maps."""
    rows = [unit(np.asarray(each.vectors[:restrict_vocab])) for each in models]
    points = project(np.concatenate(rows), method, progress=progress)
    points -= (points.min(axis=0) + points.max(axis=0)) / 2
    points *= MAX_COORDINATE / (np.abs(points).max() or 1)
    coordinates = np.split(np.rint(points).astype(np.int16), np.cumsum([len(each) for each in rows])[:-1])
    skipped = [default_skip(len(each), INITIAL_WORDS) for each in rows]
    shown = slice(skipped[0], skipped[0] + INITIAL_WORDS)
    numbers, names = cluster_words(models[0].first_words(restrict_vocab)[shown], rows[0][shown], CLUSTERS, seed=1)
    return [
        {
            "words": model.first_words(restrict_vocab),
            "counts": None if model.counts is None else model.counts[:restrict_vocab].tolist(),
            "map": encode_array(coordinates[number]),
            "clusters": encode_array(nearest_cluster(rows[number], rows[0][shown], numbers).astype(np.uint8)),
            "names": names,
            "skipped": skipped[number],
            "shown": INITIAL_WORDS,
        }
        for number, model in enumerate(models)
    ]


def examples(models: Sequence[KeyedVectors], restrict_vocab: int) -> dict[str, Any]:
    """Choose the examples that a page shows at first: a word, and an analogy a - b + c with this word as its answer.

    An analogy consists of two words and the nearest word of each. The function prefers the pairs with the most
    parallel offsets, and takes the first analogy that the first model answers correctly.

    Returns:
        word: A word that every model has among its first `restrict_vocab` words; None if there is none.
        analogy: [a, b, c]; [] if there are fewer than four such words.
    """
    first, *others = models
    start = default_skip(min(restrict_vocab, len(first)), INITIAL_WORDS)
    words = [
        word
        for word in first.first_words(min(restrict_vocab, start + INITIAL_WORDS))[start:]
        if all((row := other.row_of(word)) is not None and row < restrict_vocab for other in others)
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
    candidates = []
    for pair in np.argsort(-(offsets @ offsets.T)[left, right], kind="stable")[:MAX_CANDIDATES]:
        rows = left[pair], nearest[left[pair]], nearest[right[pair]], right[pair]
        a, b, c, answer = (words[row] for row in rows)
        candidates.append({"word": answer, "analogy": [a, b, c]})
        if str(first.most_similar([a, c], [b], 1, SEARCHED_WORDS)[0][0]) == answer:
            return candidates[-1]
    return candidates[0] if candidates else {"word": words[0], "analogy": []}


def encode_array(values: NDArray[Any]) -> str:
    """Encode the values as base64 of their little-endian bytes."""
    return base64.b64encode(values.astype(values.dtype.newbyteorder("<")).tobytes()).decode()
