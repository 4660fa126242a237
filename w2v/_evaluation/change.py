"""How much each word changed between two models.

Two distances per word are measured, see Measure. Models of two texts differ even if no word has changed, because each
text is a sample and training is random, and rare words differ most. So z compares each distance with the distances of
words of similar frequency: it is the distance minus their median, divided by their spread. The spread is the distance
from the median to the 84th percentile, which would be the standard deviation of a normal distribution. Two models do
not say how much a word differs between documents, so they give no p; `w2v.compare_periods` computes one.

The frequency of a word in two models is the harmonic mean of its counts, because the variance of the difference of two
samples is proportional to the sum of 1 / count.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from w2v._display import Result
from w2v._errors import SettingsError, W2VError, pluralise
from w2v._evaluation.evaluate import NEIGHBOURS
from w2v._options import check_numbers
from w2v._progress import Meter, Report
from w2v._text.words import as_list
from w2v._vectors.align import Fit, in_one_system
from w2v._vectors.cosines import Floats, unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, Neighbours, vectors_of
from w2v._vectors.neighbours import nearest, nearest_rows
from w2v._vectors.unknown_words import UnknownWordError

log = logging.getLogger("w2v")

Measure = Literal["cosine", "neighbourhood"]
Interpolation = Callable[[NDArray[np.float64]], NDArray[np.float64]]

LOCAL_NEIGHBOURS = 25  # as in Hamilton, Leskovec & Jurafsky 2016
WORDS_AT_ONCE = 256  # words in a batch
MIN_COUNT = 50
RESTRICT_VOCAB = 20_000
BAND = 200  # words of similar frequency share a median and a spread
UPPER_QUANTILE = 0.84  # of a normal distribution, one standard deviation above the median
MIN_SPREAD = 1e-6  # of equal distances, so that z is finite


@dataclass(frozen=True)
class Distance:
    """One distance of a word between two models.

    Attributes:
        value: The distance.
        z: How far it is above the median of words of similar frequency, in spreads; see the module.
    """

    value: float
    z: float


@dataclass(frozen=True)
class WordChange:
    """How much a word changed.

    Attributes:
        word: The word.
        counts: How often it occurs in each text; None if unknown.
        cosine: One minus the cosine of its two vectors after alignment, 0 to 2.
        neighbourhood: The local neighbourhood distance of Hamilton, Leskovec & Jurafsky 2016 ("Cultural Shift or
            Linguistic Drift?"), 0 to 2. Take all words that are among its 25 nearest in either model. The word's
            cosines with them in one model are a vector; the distance is 1 minus the cosine of the two models' vectors.
        first, second: The nearest words and their cosines, in each model.
    """

    word: str
    counts: list[int] | None
    cosine: Distance
    neighbourhood: Distance
    first: Neighbours
    second: Neighbours


@dataclass(frozen=True)
class Change(Result):
    """How much the words of two models changed.

    Attributes:
        compared: Number of words that were compared.
        measure: The distance that orders `words`.
        fit: How well the second model fits the first after alignment; None if both have the same coordinate system.
        words: The words asked for, or those with the highest z.
    """

    compared: int
    measure: Measure
    fit: Fit | None
    words: list[WordChange]


class _Limits(NamedTuple):
    """Words that are rarer are not compared. min_count is None if a model has no counts."""

    min_count: int | None
    restrict_vocab: int

    def rows(self, model: KeyedVectors) -> NDArray[np.bool_]:
        """Return True for each row of a word within the limits, (V,)."""
        within = np.arange(len(model)) < self.restrict_vocab
        if self.min_count and self.min_count > 1 and model.counts is not None:
            within &= model.counts >= self.min_count
        return within


@dataclass(frozen=True)
class _Pair:
    """The n words that are compared between two models.

    Attributes:
        models: The aligned vectors of both models, of length 1.
        rows: The rows of the words in each model, (2, n).
        counts: The count of each word in each text, (2, n), or None.
        frequencies: The frequency of each word in both models, (n,), see the module.
        distances: Of each measure, the distance of each word, (n,).
        fit: See Change.
    """

    models: Sequence[KeyedVectors]
    rows: NDArray[np.int64]
    counts: NDArray[np.int64] | None
    frequencies: NDArray[np.float64]
    distances: dict[Measure, NDArray[np.float64]]
    fit: Fit | None


def change(
    first: KeyedVectors | HasWordVectors,
    second: KeyedVectors | HasWordVectors,
    *,
    words: Iterable[str] | None = None,
    measure: Measure = "cosine",
    min_count: int | None = None,
    restrict_vocab: int = RESTRICT_VOCAB,
    topn: int = 20,
    progress: Report | None = None,
) -> Change:
    """Measure how much each word changed between two models, compared with words of similar frequency.

    The second model is aligned with the first (w2v.align), unless both are in the same coordinate system.

    Args:
        first, second: Vectors, or models that have them, such as models of two periods.
        words: The words to report, by default the `topn` with the highest z.
        measure: The distance that orders the words, "cosine" or "neighbourhood"; see WordChange.
        min_count: Leave out words that occur less often in one of the texts; 50 by default.
        restrict_vocab: Compare only words that are among this many most frequent words of each model.
        topn: Number of words to report.
        progress: Called in the phase "compare".

    Raises:
        UnknownWordError: If all words are missing in one of the models. If only some are, a warning names them.
        SettingsError: If an option is impossible, or if min_count is given and a model has no counts.
        W2VError: If models have no coordinate system in common and their vectors differ in size, if fewer than two
            words are left to compare, or if a word is rarer than the limits.
    """
    check_numbers(restrict_vocab=restrict_vocab, topn=topn)
    if min_count is not None:
        check_numbers(min_count=min_count)
    if measure not in get_args(Measure):
        raise SettingsError(f'measure is {measure!r}: it must be "cosine" or "neighbourhood"')
    models = [vectors_of(first), vectors_of(second)]
    have_counts = all(model.counts is not None for model in models)
    if min_count is not None and not have_counts:
        raise SettingsError("min_count has no effect: a model has no counts of its words, so use restrict_vocab")
    if not have_counts and restrict_vocab >= RESTRICT_VOCAB:
        log.warning(
            "a model has no counts of its words, so rare words are not left out, although their distances are mostly "
            "noise: save models as .safetensors, which have counts, or compare fewer words with --restrict-vocab "
            "(restrict_vocab=)"
        )
    limits = _Limits((min_count or MIN_COUNT) if have_counts else None, restrict_vocab)
    asked = None if words is None else list(dict.fromkeys(as_list(words)))
    pair = _compare(models, limits, progress)
    compared = [pair.models[0].index_to_key[row] for row in pair.rows[0].tolist()]
    position = {str(word): number for number, word in enumerate(compared)}  # a number may be asked for as text
    if asked:
        asked = _check_words(asked, pair.models, position, limits)
    found = {name: _assess(pair, name) for name in get_args(Measure)}
    if asked is None:
        shown = sorted(range(len(compared)), key=lambda at: -found[measure][at].z)[:topn]
    else:
        shown = [position[str(word)] for word in asked]
    nearby = [
        _neighbours(model, rows[shown], limits.rows(model)) for model, rows in zip(pair.models, pair.rows, strict=True)
    ]
    counts = itertools.repeat(None, len(shown)) if pair.counts is None else pair.counts[:, shown].T.tolist()
    columns = [compared[at] for at in shown], counts, *([each[at] for at in shown] for each in found.values())
    return Change(
        compared=len(compared),
        measure=measure,
        fit=pair.fit,
        words=[WordChange(*each) for each in zip(*columns, *nearby, strict=True)],
    )


def _compare(models: Sequence[KeyedVectors], limits: _Limits, progress: Report | None) -> _Pair:
    """Align two models, unless they are in one coordinate system, and measure the distances of all words.

    Raises:
        W2VError: As in `change`.
    """
    aligned, fits = in_one_system(models)
    first, second = aligned
    within = [limits.rows(model) for model in aligned]
    others = second.key_to_index
    pairs = [
        (row, others[word])
        for row, word in enumerate(first.index_to_key)
        if within[0][row] and word in others and within[1][others[word]]
    ]
    if len(pairs) < 2:
        often = f", {limits.min_count} times or more in each text" if limits.min_count else ""
        raise W2VError(
            f"the models share {pluralise(len(pairs), 'word')}{often}: at least 2 are needed to compare them"
        )
    rows = np.array(pairs, np.int64).T
    counts = None
    if limits.min_count:
        counts = np.array([model.counts[each] for model, each in zip(models, rows, strict=True)])  # type: ignore[index]
    occurrences = counts if counts is not None else 1 / (1 + rows)  # Zipf's law: a count is proportional to 1 / rank
    frequencies = 2 / (1 / np.maximum(occurrences, 1e-9)).sum(axis=0)
    vectors = [model.vectors[each] for model, each in zip(aligned, rows, strict=True)]
    cosines = np.einsum("nd,nd->n", *vectors, dtype=np.float64)
    everything = np.arange(len(pairs))
    near = [nearest_rows(each, everything, LOCAL_NEIGHBOURS, Meter(progress, "compare")) for each in vectors]
    distances: dict[Measure, NDArray[np.float64]] = {
        "cosine": np.maximum(1 - cosines, 0),  # rounding may give -1e-8
        "neighbourhood": neighbourhood_distances(vectors, everything, near),
    }
    return _Pair(aligned, rows, counts, frequencies, distances, fits[0] if fits else None)


def neighbourhood_distances(
    vectors: Sequence[Floats], rows: NDArray[np.int64], near: Sequence[NDArray[np.int64]]
) -> NDArray[np.float64]:
    """Return the local neighbourhood distance of each word between two models, (n,); see WordChange.

    Args:
        vectors: Unit vectors of each model, (V, D).
        rows: The rows of n words, (n,).
        near: The rows of their k nearest neighbours in each model, (n, k).
    """
    distances = np.empty(len(rows))
    for start in range(0, len(rows), WORDS_AT_ONCE):
        block = slice(start, start + WORDS_AT_ONCE)
        one, two = (each[block] for each in near)
        union = np.concatenate([one, two], axis=1)  # (n, 2k)
        repeated = (two[:, :, None] == one[:, None, :]).any(axis=2)
        counts = np.concatenate([np.ones(one.shape, bool), ~repeated], axis=1)  # False for the second of two equal rows
        cosines = [np.einsum("nd,nkd->nk", each[rows[block]], each[union]) * counts for each in vectors]
        distances[block] = np.maximum(1 - np.einsum("nk,nk->n", *map(unit, cosines)), 0)
    return distances


def _check_words(
    words: Iterable[str], models: Sequence[KeyedVectors], position: dict[str, int], limits: _Limits
) -> list[str]:
    """Return the words that are compared. Log a warning for other words, or raise UnknownWordError if none is left.

    Raises:
        W2VError: A known word is not compared, because it is rare.
    """
    known = list(words)
    for model, name in zip(models, ("the first model", "the second model"), strict=True):
        if unknown := [word for word in known if not model.is_known(word)]:
            error = UnknownWordError(unknown, model.key_to_index, name)
            known = [word for word in known if model.is_known(word)]
            if not known:
                raise error
            log.warning("%s", error)
    for word in known:
        if str(word) not in position:
            key = int(word) if models[0].header.key_type == "int" else word
            counts = [int(model.counts[model.key_to_index[key]]) for model in models if model.counts is not None]
            often = f" ({' and '.join(map(str, counts))} times)" if counts else ""
            limit = f"min_count {limits.min_count}, " if limits.min_count and limits.min_count > 1 else ""
            raise W2VError(
                f"{word!r}{often} is rarer than the limits, {limit}restrict_vocab {limits.restrict_vocab}: its "
                "distance is mostly noise, but you may change the limits"
            )
    return known


def _assess(pair: _Pair, measure: Measure) -> list[Distance]:
    """Compare a distance of all words with words of similar frequency."""
    values = pair.distances[measure]
    centres, spreads = _noise_by_frequency(pair.frequencies, values)
    z = (values - centres(pair.frequencies)) / spreads(pair.frequencies)
    return [Distance(*each) for each in zip(values.tolist(), z.tolist(), strict=True)]


def _noise_by_frequency(
    frequencies: NDArray[np.float64], distances: NDArray[np.float64]
) -> tuple[Interpolation, Interpolation]:
    """Return the median distance of words, and their spread above it, as functions of the frequency."""
    bands = np.array_split(np.argsort(frequencies, kind="stable"), max(1, len(frequencies) // BAND))
    logs = [np.log(frequencies[band]).mean() for band in bands]
    medians = [np.median(distances[band]) for band in bands]
    upper = [np.quantile(distances[band], UPPER_QUANTILE) for band in bands]
    spreads = np.maximum(np.subtract(upper, medians), MIN_SPREAD)
    return (lambda each: np.interp(np.log(each), logs, medians), lambda each: np.interp(np.log(each), logs, spreads))


def _neighbours(model: KeyedVectors, rows: NDArray[np.int64], within: NDArray[np.bool_]) -> list[Neighbours]:
    """Return for each of n rows the nearest words within the limits, and their cosines."""
    candidates = np.flatnonzero(within)
    vectors = model.vectors[candidates]
    left_out = [[at] for at in np.searchsorted(candidates, rows).tolist()]
    found = nearest(model.vectors[rows], vectors, np.ones(len(vectors), np.float32), NEIGHBOURS, left_out)
    words = model.index_to_key
    return [
        [(words[candidates[at]], float(cosine)) for at, cosine in zip(best.tolist(), cosines, strict=True)]
        for best, cosines in found
    ]
