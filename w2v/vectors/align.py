"""Rotate the vectors of several models into one coordinate system, so that a word's vectors can be compared.

Two trainings give vectors in different coordinate systems, even on the same text. Orthogonal Procrustes finds the
rotation that brings one model nearest to another. Let X and Y (n, D) be the vectors of n anchors in the model and in
the reference, each scaled to length 1, and U S Vᵀ the singular value decomposition of XᵀY. Then the rotation UVᵀ is the
orthogonal matrix W with the smallest |XW - Y| (Schönemann 1966). Rotated vectors have the same cosines as before.

Sources: Hamilton, Leskovec & Jurafsky 2016, "Diachronic Word Embeddings Reveal Statistical Laws of Semantic Change",
https://arxiv.org/abs/1605.09096; Artetxe, Labaka & Agirre 2016, "Learning principled bilingual mappings of word
embeddings while preserving monolingual invariance", https://aclanthology.org/D16-1250, for the centring.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from w2v.display import Result
from w2v.errors import SettingsError, W2VError, pluralise
from w2v.formats.bfloat16 import float32_blocks
from w2v.formats.header import ModelHeader
from w2v.options import check_numbers
from w2v.system import memory
from w2v.text.words import as_list
from w2v.vectors.cosines import Floats, unit
from w2v.vectors.keyed import HasWordVectors, KeyedVectors, vectors_of

log = logging.getLogger("w2v")

Reference = Literal["first", "previous"]

HELD_OUT = 0.1  # share of the anchors that measure the fit
MAX_HELD_OUT = 1_500  # and their largest number
HINT = "make the models smaller first, with w2v convert --top or --dims, or end other programs"


@dataclass(frozen=True)
class Fit:
    """How well a model fits its reference after the rotation.

    Attributes:
        anchors: Number of words that determine the rotation.
        cosine: Mean cosine of the anchors' vectors in the model and in the reference, -1 to 1.
        held_out: Number of anchors that were held out to measure the fit.
        held_out_cosine: Mean cosine of the held-out anchors, under the rotation that the other anchors determine. None
            if there are too few anchors to hold some out.
    """

    anchors: int
    cosine: float
    held_out: int
    held_out_cosine: float | None


@dataclass(frozen=True)
class Alignment(Result):
    """Models in one coordinate system.

    Attributes:
        vectors: The vectors of each model, scaled to length 1 and rotated, in the order of the models.
        fits: The fit of each model after the first.
    """

    vectors: list[KeyedVectors]
    fits: list[Fit]


def align(
    models: Sequence[KeyedVectors | HasWordVectors],
    *,
    to: Reference = "first",
    anchors: Iterable[str] | None = None,
    centre: bool = False,
    seed: int = 1,
) -> Alignment:
    """Rotate the vectors of several models into the coordinate system of the first.

    Vectors are scaled to length 1 first. With `centre`, the mean of the model's vectors is then subtracted, and they
    are scaled again, as vecmap does.

    Args:
        models: At least two models or vectors of the same size, such as models of successive periods.
        to: "first" rotates each model to the first; "previous" rotates each to the one before it, as HistWords does,
            which suits a long series, where the first and the last model have little in common.
        anchors: The words that determine the rotations, by default all words that a model shares with its reference.
        centre: Subtract the mean vector of each model. This changes the cosines within a model.
        seed: Seed for the choice of the held-out anchors.

    Returns:
        The rotated vectors, which keep words, counts and text options, and how well they fit. N-grams and other arrays
        are left out. All headers have the same `coordinates`.

    Raises:
        SettingsError: If there are fewer than two models, or `to` or `seed` is impossible.
        W2VError: If an object is not a model, if the vectors of the models differ in size, if a model shares too few
            anchors with its reference, or if the vectors do not fit in memory.
    """
    sources = [vectors_of(model) for model in as_list(models)]
    if len(sources) < 2:
        raise SettingsError(f"{pluralise(len(sources), 'model')} to align: give at least two")
    if to not in get_args(Reference):
        raise SettingsError(f'to is {to!r}: it must be "first" or "previous"')
    check_numbers(seed=seed)
    sizes = [source.vector_size for source in sources]
    if {*sizes} != {sizes[0]}:
        raise W2VError(f"vectors of {', '.join(map(str, sizes))} values: models to align need vectors of the same size")
    chosen = None if anchors is None else list(dict.fromkeys(anchors))
    memory.check(4 * sum(map(len, sources)) * sizes[0], f"aligning {pluralise(len(sources), 'model')}", HINT)
    rotated = [normalise(sources[0].vectors, centre)]
    fits = []
    for number, source in enumerate(sources[1:], 1):
        reference = 0 if to == "first" else number - 1
        pairs = _pair_rows(source, sources[reference], chosen, f"model {number + 1} and model {reference + 1}")
        vectors = normalise(source.vectors, centre)
        rotation, fit = fit_rotation(vectors[pairs[:, 0]], rotated[reference][pairs[:, 1]], seed)
        fits.append(fit)
        for start, block in float32_blocks(vectors):
            vectors[start : start + len(block)] = block @ rotation
        rotated.append(vectors)
    if any(source.ngrams for source in sources):
        log.warning("the n-grams of the models are left out: after alignment, unknown words do not have a vector")
    coordinates = hashlib.sha256(rotated[0].data).hexdigest()[:16]
    return Alignment(
        [
            KeyedVectors(source.index_to_key, vectors, source.counts, header=_header(source.header, coordinates))
            for source, vectors in zip(sources, rotated, strict=True)
        ],
        fits,
    )


def normalise(vectors: NDArray[Any], centre: bool) -> Floats:
    """Return the vectors (V, D), scaled to length 1, and with `centre` centred and scaled again. Zeros stay zeros."""
    scaled: Floats = memory.empty(vectors.shape)
    for start, block in float32_blocks(vectors):
        unit(block, scaled[start : start + len(block)])
    if centre:
        mean = scaled.mean(axis=0, dtype=np.float64).astype(np.float32)
        scaled[scaled.any(axis=1)] -= mean
        unit(scaled, scaled)
    return scaled


def fit_rotation(vectors: Floats, targets: Floats, seed: int) -> tuple[Floats, Fit]:
    """Return the rotation, float32 (D, D), that brings unit vectors (n, D) nearest to unit targets (n, D), and its fit.

    A share of the n pairs is held out to measure the fit; the rotation itself is computed from all of them.
    """
    rotation = procrustes(vectors, targets)
    held_out = min(int(HELD_OUT * len(vectors)), MAX_HELD_OUT)
    order = np.random.default_rng(seed).permutation(len(vectors))
    test, train = order[:held_out], order[held_out:]
    held_out_cosine = None
    if held_out:
        held_out_cosine = _mean_cosine(vectors[test], targets[test], procrustes(vectors[train], targets[train]))
    return rotation, Fit(len(vectors), _mean_cosine(vectors, targets, rotation), held_out, held_out_cosine)


def procrustes(vectors: Floats, targets: Floats) -> Floats:
    """Return the orthogonal matrix W, float32 (D, D), with the smallest |XW - Y| for vectors X and targets Y (n, D)."""
    products = vectors.T.astype(np.float64) @ targets
    left, _, right = np.linalg.svd(products)
    rotation: Floats = (left @ right).astype(np.float32)
    return rotation


def _mean_cosine(vectors: Floats, targets: Floats, rotation: Floats) -> float:
    return float(np.einsum("nd,nd->n", vectors @ rotation, targets).mean(dtype=np.float64))


def _pair_rows(
    source: KeyedVectors, reference: KeyedVectors, anchors: Sequence[str] | None, where: str
) -> NDArray[np.int64]:
    """Return the rows of the anchors in the two models, (n, 2).

    Raises:
        W2VError: If the models share none of the anchors.
    """
    rows, others = source.key_to_index, reference.key_to_index
    words = source.index_to_key if anchors is None else anchors
    pairs = [(rows[word], others[word]) for word in words if word in rows and word in others]
    if not pairs:
        of_anchors = "words" if anchors is None else f"{pluralise(len(anchors), 'anchor')}"
        raise W2VError(f"{where} share none of the {of_anchors}: check language and capital letters")
    return np.array(pairs, np.int64)


def _header(header: ModelHeader, coordinates: str) -> ModelHeader:
    """Return a header for aligned vectors, with what stays true of them."""
    return ModelHeader(metrics=header.metrics, text=header.text, coordinates=coordinates)
