"""Rotate the vectors of several models into one coordinate system, so that the vectors of a word can be compared.

Two trainings give vectors in different coordinate systems, even on the same text. Orthogonal Procrustes finds the
rotation that brings one model nearest to another. Let X and Y (n, D) be the vectors of n anchors in the model and in
the reference, each scaled to length 1, and U S Vᵀ the singular value decomposition of XᵀY. Then the rotation UVᵀ is the
orthogonal matrix W with the smallest |XW - Y| (Schönemann 1966). Rotated vectors have the same cosines as before.

Sources: Hamilton, Leskovec & Jurafsky 2016, "Diachronic Word Embeddings Reveal Statistical Laws of Semantic Change",
https://arxiv.org/abs/1605.09096; Artetxe, Labaka & Agirre 2016, "Learning principled bilingual mappings of word
embeddings while preserving monolingual invariance", https://aclanthology.org/D16-1250, for the centring; Conneau et al.
2018, "Word Translation Without Parallel Data", https://arxiv.org/abs/1710.04087, for CSLS.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from w2v._detect import decode_line, read_lines
from w2v._display import Result
from w2v._errors import SettingsError, W2VError, pluralise
from w2v._formats.bfloat16 import float32_blocks
from w2v._formats.header import ModelHeader
from w2v._options import check_numbers
from w2v._system import memory
from w2v._system.files import PathLike
from w2v._text.words import as_list
from w2v._vectors.cosines import Floats, unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of
from w2v._vectors.neighbours import nearest, top_rows

log = logging.getLogger("w2v")

Reference = Literal["first", "previous"]
Pairs = list[tuple[str, str]]  # of a word and its translation

RESTRICT_VOCAB = 50_000  # translations are searched among this many most frequent words
HELD_OUT = 0.1  # share of the anchors that measure the fit
MAX_HELD_OUT = 1_500  # and their largest number
PRECISIONS = (1, 5)  # numbers of candidates for a translation
CSLS_NEIGHBOURS = 10
ROWS_AT_ONCE = 1 << 14  # rows in a block
HINT = "make the models smaller first, with w2v convert --max-vocab or --dims, or end other programs"


@dataclass(frozen=True)
class Translation:
    """How often the translation of a held-out word is among its nearest words in the other language.

    Each list has two shares of words, 0 to 1: the nearest word is a correct translation, or one of the five nearest is.

    Attributes:
        words: Number of held-out words with a translation among the candidates.
        candidates: Number of words that are searched.
        nearest: With the highest cosines.
        csls: With the highest cosines minus the mean cosines of both words with their ten nearest in the other language
            (cross-domain similarity local scaling), so that words near to everything are chosen less often.
    """

    words: int
    candidates: int
    nearest: list[float]
    csls: list[float]


@dataclass(frozen=True)
class Fit:
    """How well a model fits its reference after the rotation.

    Attributes:
        anchors: Number of words, or of pairs of a dictionary, that determine the rotation.
        cosine: Mean cosine of the anchors' vectors in the model and in the reference, -1 to 1.
        held_out: Number of anchors that were held out to measure the fit.
        held_out_cosine: Mean cosine of the held-out anchors, under the rotation that the other anchors determine. None
            if there are too few anchors to hold some out.
        translation: With a dictionary, how many held-out words are translated correctly under the same rotation.
        pairs: With a dictionary, its number of different pairs; the `anchors` are those with both words in the models.
    """

    anchors: int
    cosine: float
    held_out: int
    held_out_cosine: float | None
    translation: Translation | None = None
    pairs: int | None = None


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
    dictionary: Iterable[tuple[str, str]] | None = None,
    centre: bool = True,
    restrict_vocab: int = RESTRICT_VOCAB,
    seed: int = 1,
) -> Alignment:
    """Rotate the vectors of several models into the coordinate system of the first.

    Vectors are scaled to length 1. With `centre`, the mean of the model's vectors is then subtracted, and they are
    scaled again, as vecmap does.

    Args:
        models: At least two models or vectors of the same size, such as models of successive periods.
        to: "first" rotates each model to the first; "previous" rotates each to the one before it, as HistWords does,
            which suits a long series, where the first and the last model have little in common.
        anchors: The words that determine the rotations, by default all words that a model shares with its reference.
        dictionary: Pairs of a word of the first model and its translation in the second, instead of anchors. A word may
            have several translations.
        centre: Subtract the mean vector of each model. This changes the cosines within a model a little.
        restrict_vocab: Search for translations among this many of the most frequent words.
        seed: Seed for the choice of the held-out anchors.

    Returns:
        The rotated vectors, which keep words, counts and text options, and how well they fit. N-grams and other arrays
        are left out. All headers have the same `coordinates`.

    Raises:
        SettingsError: If there are fewer than two models, or not exactly two with a dictionary, or if an option is
            impossible.
        W2VError: If an object is not a model, if the vectors of the models differ in size or are not finite, if a model
            shares no anchor with its reference, or if the vectors do not fit in memory.
    """
    sources = [vectors_of(model) for model in as_list(models)]
    pairs = None if dictionary is None else _as_pairs(dictionary)
    words = None if anchors is None else list(dict.fromkeys(as_list(anchors)))
    _check_arguments(sources, to, words, pairs)
    check_numbers(restrict_vocab=restrict_vocab, seed=seed)
    size = sources[0].vector_size
    memory.check(4 * sum(map(len, sources)) * size, f"aligning {pluralise(len(sources), 'model')}", HINT)
    rotated = [normalise(sources[0].vectors, centre)]
    fits = []
    for number, source in enumerate(sources[1:], 1):
        target = 0 if to == "first" else number - 1
        where = f"model {number + 1} and model {target + 1}"
        rows = _common_rows(sources[target], source, words, pairs, where)
        if len(rows) < size:
            log.warning(
                "%s cannot determine a rotation of %s: cosines between the models are partly arbitrary; align by more "
                "words, or train with fewer dimensions", pluralise(len(rows), "anchor"), pluralise(size, "dimension"),
            )  # fmt: skip
        vectors = normalise(source.vectors, centre)
        searched = None if pairs is None else restrict_vocab
        rotation, fit = _fit_rotation(vectors, rotated[target], rows, searched, seed)
        fits.append(replace(fit, pairs=None if pairs is None else len(pairs)))
        for start, block in float32_blocks(vectors, ROWS_AT_ONCE):
            vectors[start : start + len(block)] = block @ rotation
        rotated.append(vectors)
    if any(source.ngrams for source in sources):
        log.warning("the n-grams of the models are left out: after alignment, unknown words do not have a vector")
    coordinates = hashlib.sha256(rotated[0].data).hexdigest()[:16]
    aligned = []
    for source, vectors in zip(sources, rotated, strict=True):
        # The header has what stays true of aligned vectors.
        header = ModelHeader(metrics=source.header.metrics, text=source.header.text, coordinates=coordinates)
        aligned.append(KeyedVectors(source.index_to_key, memory.read_only(vectors), source.counts, header=header))
    return Alignment(aligned, fits)


def in_one_system(sources: Sequence[KeyedVectors]) -> tuple[list[KeyedVectors], list[Fit]]:
    """Return vectors of length 1 in one coordinate system, and the fits of the models after the first.

    If they already share a system, they stay as they are, and the list of fits is empty.

    Raises:
        W2VError: As in `align`.
    """
    if not share_system(sources):
        alignment = align(sources)
        return alignment.vectors, alignment.fits
    scaled = [memory.read_only(normalise(each.vectors, centre=False)) for each in sources]
    pairs = zip(sources, scaled, strict=True)
    return [KeyedVectors(each.index_to_key, rows, each.counts, header=each.header) for each, rows in pairs], []


def share_system(sources: Iterable[KeyedVectors]) -> bool:
    """Return True if all models say that their vectors are in the same coordinate system."""
    systems = {source.header.coordinates for source in sources}
    return len(systems) == 1 and "" not in systems


def check_slices(models: Mapping[str, KeyedVectors]) -> None:
    """Check that there are at least two models, given by name, and that they have one coordinate system.

    Raises:
        SettingsError: If there are fewer than two models.
        W2VError: If the models have no coordinate system in common.
    """
    if len(models) < 2:
        raise SettingsError(f"{pluralise(len(models), 'model')} as slices: give at least two")
    first, *others = models
    for other in others:
        if not share_system([models[first], models[other]]):
            raise W2VError(
                f"{first} and {other} have no coordinate system in common: align all models with w2v align, or train "
                "them with w2v slices"
            )


def read_pairs(path: PathLike) -> Pairs:
    """Return the pairs of a dictionary file: two words on each line, separated by a tab or, without tabs, by spaces.

    Raises:
        W2VError: If the file cannot be read, is not UTF-8, or has another number of words on a line, or has no pairs.
    """
    pairs = []
    for number, line in read_lines(path):
        text = decode_line(path, number, line)
        words = [word.strip() for word in text.split("\t" if "\t" in text else None)]
        if len(words) == 2 and all(words):
            pairs.append((words[0], words[1]))
        elif text.strip():
            raise W2VError(f"{path}, line {number}: {text.strip()[:60]!r} is not a pair of two words")
    if not pairs:
        raise W2VError(f"{path}: no pairs: write a word and its translation on each line")
    return pairs


def read_anchors(path: PathLike) -> list[str]:
    """Return the words of a file with a word on each line. Only the first field of a line with a tab counts.

    Raises:
        W2VError: If the file cannot be read, is not UTF-8, or has no words.
    """
    lines = (
        decode_line(path, number, line).partition("\t")[0].strip() for number, line in read_lines(path, "vocabulary")
    )
    words = list(filter(None, lines))
    if not words:
        raise W2VError(f"{path}: no words: write one on each line")
    return words


def _as_pairs(dictionary: Iterable[tuple[str, str]]) -> Pairs:
    """Return the different pairs of a dictionary as a list. Raise SettingsError for anything but pairs."""
    entries: Pairs = list(dictionary)
    for entry in entries:
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            raise SettingsError(f"dictionary has {entry!r:.60}: give pairs, such as [('dog', 'cane')]")
    return list(dict.fromkeys((word, other) for word, other in entries))


def _check_arguments(
    sources: Sequence[KeyedVectors], to: str, anchors: Sequence[str] | None, dictionary: Sequence[object] | None
) -> None:
    """Check the models and options of `align`; errors are the same."""
    if len(sources) < 2:
        raise SettingsError(f"{pluralise(len(sources), 'model')} to align: give at least two")
    if to not in get_args(Reference):
        raise SettingsError(f'to is {to!r}: it must be "first" or "previous"')
    if anchors is not None and dictionary is not None:
        raise SettingsError("anchors have no effect with a dictionary: give one of them")
    for name, given in {"anchors": anchors, "dictionary": dictionary}.items():
        if given is not None and not given:
            raise SettingsError(f"{name} is empty: leave it out to align by all common words")
    if dictionary is not None and len(sources) > 2:
        raise SettingsError(f"a dictionary has words of two models, not of {len(sources)}: align two at a time")
    sizes = [source.vector_size for source in sources]
    if {*sizes} != {sizes[0]}:
        raise W2VError(f"vectors of {', '.join(map(str, sizes))} values: models to align need vectors of the same size")


def normalise(vectors: NDArray[Any], centre: bool) -> Floats:
    """Return the vectors (V, D), scaled to length 1, and with `centre` centred and scaled again. Zeros stay zeros.

    Raises:
        W2VError: If a value is not finite.
    """
    scaled: Floats = memory.empty(vectors.shape)
    for start, block in float32_blocks(vectors, ROWS_AT_ONCE):
        if not np.isfinite(block).all():
            raise W2VError("vectors to align contain NaN or infinite values: the training of the model has diverged")
        unit(block, scaled[start : start + len(block)])
    if centre:
        mean = scaled.mean(axis=0, dtype=np.float64).astype(np.float32)
        scaled[scaled.any(axis=1)] -= mean
        unit(scaled, scaled)
    return scaled


def _fit_rotation(
    vectors: Floats, targets: Floats, pairs: NDArray[np.int64], searched: int | None, seed: int
) -> tuple[Floats, Fit]:
    """Return the rotation, float32 (D, D), that brings vectors nearest to their targets, and how well it fits.

    A share of the pairs is held out to measure the fit; the rotation itself is computed from all of them.

    Args:
        vectors: Unit vectors of the model to rotate, (V, D).
        targets: Unit vectors of the reference, (W, D).
        pairs: The rows of n anchors in the reference and in the model, (n, 2).
        searched: With a dictionary, the number of words among which translations are searched; otherwise None.
        seed: Seed for the choice of the held-out pairs.
    """
    rotation = procrustes(vectors[pairs[:, 1]], targets[pairs[:, 0]])
    words = np.random.default_rng(seed).permutation(np.unique(pairs[:, 0]))  # a word is held out with all translations
    held_out = np.isin(pairs[:, 0], words[: min(int(HELD_OUT * len(words)), MAX_HELD_OUT)])
    test, train = pairs[held_out], pairs[~held_out]
    cosine, translation = None, None
    if len(test):
        tested = procrustes(vectors[train[:, 1]], targets[train[:, 0]])
        cosine = _mean_cosine(vectors, targets, test, tested)
        if searched is not None:
            translation = _translate(targets, vectors[:searched] @ tested, test, searched)
    return rotation, Fit(len(pairs), _mean_cosine(vectors, targets, pairs, rotation), len(test), cosine, translation)


def procrustes(vectors: Floats, targets: Floats) -> Floats:
    """Return the orthogonal matrix W, float32 (D, D), with the smallest |XW - Y| for vectors X and targets Y (n, D)."""
    left, _, right = np.linalg.svd(vectors.T.astype(np.float64) @ targets)
    rotation: Floats = (left @ right).astype(np.float32)
    return rotation


def _mean_cosine(vectors: Floats, targets: Floats, pairs: NDArray[np.int64], rotation: Floats) -> float:
    products = np.einsum("nd,nd->n", vectors[pairs[:, 1]] @ rotation, targets[pairs[:, 0]])
    return float(products.mean(dtype=np.float64))


def _translate(sources: Floats, candidates: Floats, pairs: NDArray[np.int64], searched: int) -> Translation | None:
    """Return how often words are translated correctly; None if no translation is among the candidates.

    Args:
        sources: Unit vectors of the language of the words, (W, D).
        candidates: Rotated unit vectors of the most frequent words of the other language, (C, D).
        pairs: The rows of words and of their correct translations, (n, 2).
        searched: CSLS subtracts the nearness of a candidate to this many words of the first language.
    """
    correct: dict[int, set[int]] = {}
    for word, translation in pairs[pairs[:, 1] < len(candidates)].tolist():
        correct.setdefault(word, set()).add(translation)
    if not correct:
        return None
    others = sources[:searched]
    nearby = nearest(candidates, others, np.ones(len(others), np.float32), CSLS_NEIGHBOURS, [[]] * len(candidates))
    density = np.array([cosines.mean() for _, cosines in nearby])
    hits = {"nearest": np.zeros(len(PRECISIONS)), "csls": np.zeros(len(PRECISIONS))}
    for word, translations in correct.items():
        cosines = candidates @ sources[word]
        # The query's own mean cosine is the same for all candidates, so it does not change their order.
        for name, scores in (("nearest", cosines), ("csls", 2 * cosines - density)):
            found = top_rows(scores, max(PRECISIONS)).tolist()
            hits[name] += [not translations.isdisjoint(found[:number]) for number in PRECISIONS]
    shares = {name: (number / len(correct)).tolist() for name, number in hits.items()}
    return Translation(len(correct), len(candidates), **shares)


def _common_rows(
    reference: KeyedVectors, source: KeyedVectors, anchors: list[str] | None, dictionary: Pairs | None, where: str
) -> NDArray[np.int64]:
    """Return the rows of the anchors, or of the pairs of a dictionary, that both models have, (n, 2).

    Raises:
        W2VError: If there are none, or more pairs in the other order of languages.
    """
    pairs = dictionary or [(word, word) for word in anchors or reference.index_to_key]
    known = _known_rows(reference, source, pairs)
    if not len(known) and dictionary is None:
        what = "none of the words" if anchors is None else f"none of the anchors, such as {anchors[0]!r:.60}"
        raise W2VError(f"{where} share {what}: check language and capital letters")
    swapped = _known_rows(source, reference, dictionary or ())
    if not len(known) or len(swapped) > len(known):
        reason = f"{len(swapped):,} in the other order: swap the models" if len(swapped) else "check capital letters"
        raise W2VError(
            f"{pluralise(len(pairs), 'pair')} in the dictionary, {len(known) or 'none'} with the first word in the "
            f"first model and the second word in the second, {reason}"
        )
    return known


def _known_rows(reference: KeyedVectors, source: KeyedVectors, pairs: Iterable[tuple[str, str]]) -> NDArray[np.int64]:
    """Return the rows of the pairs that both models have, (n, 2), each pair once."""
    rows = ((reference.row_of(word), source.row_of(other)) for word, other in pairs)
    return np.array([pair for pair in dict.fromkeys(rows) if None not in pair], np.int64)
