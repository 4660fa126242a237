"""Score models with confidence intervals, and test the differences between them.

Intervals are percentiles of the bootstrap (Efron & Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13).
The difference between two models is tested on the items that both models score. If each item is right or wrong, the
test is McNemar's exact test, otherwise the paired bootstrap (Efron & Tibshirani 1993, section 15.4; Koehn 2004).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from w2v.display import Result, ResultList
from w2v.errors import SettingsError, W2VError, malformed_lines, pluralise
from w2v.evaluation.analogies import Questions, answer_questions
from w2v.evaluation.held_out import DRAWS, MAX_IDS, GapTest
from w2v.evaluation.labels import mcnemar
from w2v.evaluation.similarity import RatedPairs, rated_pairs
from w2v.formats.header import ModelHeader
from w2v.losses.loss import Array
from w2v.options import check_numbers, options_of, refuse_unknown
from w2v.progress import Meter, Report
from w2v.system.files import PathLike, as_paths
from w2v.system.threads import processors
from w2v.text._text import FIRST_TYPE
from w2v.text.corpus import Corpus, Source
from w2v.text.idstore import ReadingOptions, read_corpus
from w2v.text.vocabulary import Vocabulary
from w2v.vectors.keyed import HasWordVectors, KeyedVectors, vectors_of
from w2v.vectors.neighbours import nearest_rows
from w2v.vectors.query import Method

log = logging.getLogger("w2v")

RESAMPLES = 2000
RESAMPLED_AT_ONCE = 1 << 22  # items drawn in a batch
CONFIDENCE = 0.95  # level of the intervals
NEIGHBOURS = 10
RELATED_QUANTILE = 2 / 3  # pairs with a score at or above this quantile of their file count as related
FREQUENT_WORDS = 500  # number of most frequent words in "rare neighbours"
RARE_COUNT = 20  # words that occur fewer times are rare


@dataclass(frozen=True)
class Score:
    """A model's score on a test set.

    Attributes:
        value: The score, or None if no item can be scored.
        low, high: The ends of the 95 % confidence interval of the value.
        items: Number of questions, pairs or words that are scored.
        total: Number of all questions, pairs or words.
        difference: The value minus the first model's value, over the items that both models score; None for the first
            model.
        p: The p-value of this difference.
    """

    value: float | None
    low: float | None
    high: float | None
    items: int
    total: int
    difference: float | None = None
    p: float | None = None


@dataclass(frozen=True)
class EvaluationResult(Result):
    """The scores of all models on one test set, by one measure.

    Attributes:
        name: The name of the test set.
        measure: One of

            - "accuracy": the share of analogy questions answered correctly
            - "spearman": the correlation of cosines with the scores of pairs
            - "related neighbours": of the pairs in the upper third of the scores, the share with both words among each
              other's 10 nearest neighbours
            - "rare neighbours": the share of words that occur fewer than 20 times among the 10 nearest neighbours of
              the 500 most frequent words
            - "gaps": how often the words around a gap in a text are nearer to the word in the gap than to a random
              word of the text; see GapTest
        scores: The score of each model.
    """

    name: str
    measure: str
    scores: list[Score]


@dataclass(frozen=True)
class ItemScores:
    """The results of one model on the n items of a test set that it can score.

    Attributes:
        items: (n,), numbers or words that identify the items. They tell which items two models have in common.
        values: float64 (n,), the model's value for each item.
        total: Number of all items of the test set.
        ratings: float64 (n,), the scores that people gave. Only correlations have them.
        strata: Int (n,), the stratum of each item, within which means are resampled. Only means have them.
    """

    items: Array
    values: Array
    total: int
    ratings: Array | None = None
    strata: Array | None = None

    def take(self, rows: Array) -> ItemScores:
        ratings = None if self.ratings is None else self.ratings[rows]
        strata = None if self.strata is None else self.strata[rows]
        return ItemScores(self.items[rows], self.values[rows], self.total, ratings, strata)


def evaluate(
    *models: KeyedVectors | HasWordVectors,
    questions: PathLike | Sequence[PathLike] = (),
    pairs: PathLike | Sequence[PathLike] = (),
    held_out: Source | None = None,
    restrict_vocab: int = 30_000,
    method: Method = "add",
    seed: int = 1,
    progress: Report | None = None,
    **reading: Any,
) -> list[EvaluationResult]:
    """Score models on the bundled questions and pairs, on more files of questions and pairs, and by word neighbours.

    The first model is the baseline: every other model is compared with it.

    Args:
        models: Vectors, or models that have them.
        questions, pairs: One or several files; see `analogies` and `word_pairs`.
        held_out: A text that no model was trained on. Words that one of the models does not have are left out for all
            models. Only the last 500,000 words of a long text are used.
        restrict_vocab, method: See `analogies`.
        seed: Seed of the resampling.
        progress: Called in phase "evaluate" and, with `held_out`, in phase "read".
        reading: Arguments of `train` for reading `held_out`; by default as in the training of the first model.

    Raises:
        W2VError: If a file cannot be used.
        SettingsError: If an argument is impossible.
    """
    check_numbers(seed=seed)
    refuse_unknown(reading, options_of(ReadingOptions), {})
    if reading and held_out is None:
        raise SettingsError(f"{next(iter(reading))} has no effect without held_out")
    questions, pairs = as_paths(questions), as_paths(pairs)
    meter = Meter(progress, "evaluate")
    total = 4 + len(questions) + 2 * len(pairs) + (held_out is not None)
    vectors = [vectors_of(model) for model in models]
    results: list[EvaluationResult] = ResultList()

    def add_result(name: str, measure: str, item_scores: list[ItemScores], statistic: Statistic) -> None:
        results.append(EvaluationResult(name, measure, score_models(item_scores, statistic, seed)))
        meter(len(results), total)

    for file in (None, *questions):
        name = "bundled questions" if file is None else Path(file).name
        answered = [answer_questions(model, file, restrict_vocab, method) for model in vectors]
        _warn_of_malformed(file, [question_set for question_set, _ in answered])
        add_result(name, "accuracy", [_accuracy(*each) for each in answered], means)
    for file in (None, *pairs):
        name = "bundled pairs" if file is None else Path(file).name
        rated = [rated_pairs(model, file) for model in vectors]
        _warn_of_malformed(file, rated)
        add_result(name, "spearman", [_cosines(each) for each in rated], _correlations)
        related = [_related(*each) for each in zip(vectors, rated, strict=True)]
        add_result(name, "related neighbours", related, means)
    add_result("frequent words", "rare neighbours", [_rare(model) for model in vectors], means)
    if held_out is not None:
        name = Path(held_out).name if isinstance(held_out, str | os.PathLike) else "held-out text"
        add_result(name, "gaps", _gaps(name, vectors, held_out, reading, progress), means)
    return results


def _warn_of_malformed(file: PathLike | None, contents: Sequence[Questions | RatedPairs]) -> None:
    """Log a warning if a file, which each model has read, has malformed lines."""
    for content in contents[:1]:
        if content.malformed:
            log.warning("%s: skipped %s", file, malformed_lines(content.malformed, content.first_malformed))


# -- item scores ----------------------------------------------------------------------------


def _accuracy(questions: Questions, correct: NDArray[np.bool_]) -> ItemScores:
    """Return 1 for each known question that is answered correctly, otherwise 0; sections are the strata."""
    items = np.flatnonzero(questions.known)
    return ItemScores(items, correct[items].astype(float), len(correct), strata=questions.sections[items])


def _cosines(rated: RatedPairs) -> ItemScores:
    """Return the cosine of each pair."""
    return ItemScores(rated.indices, rated.cosines.astype(float), len(rated.all_scores), ratings=rated.scores)


def _related(model: KeyedVectors, rated: RatedPairs) -> ItemScores:
    """Return 1 for each related pair with both words among each other's nearest neighbours, otherwise 0."""
    threshold = np.quantile(rated.all_scores, RELATED_QUANTILE)
    related = np.flatnonzero((rated.scores >= threshold) & (rated.rows < len(model)).all(axis=1))
    words, indices = np.unique(rated.rows[related], return_inverse=True)
    nearest = nearest_rows(model.vectors, words, NEIGHBOURS)
    first, second = indices.reshape(-1, 2).T
    mutual = (nearest[first] == words[second][:, None]).any(1) & (nearest[second] == words[first][:, None]).any(1)
    total = int((rated.all_scores >= threshold).sum())
    return ItemScores(rated.indices[related], mutual.astype(float), total, strata=np.zeros(len(related), int))


def _rare(model: KeyedVectors) -> ItemScores:
    """Return the share of rare words among the nearest neighbours of each frequent word."""
    counts = model.counts if model.counts is not None else np.zeros(0, np.int64)
    frequent = np.argsort(-counts, kind="stable")[:FREQUENT_WORDS]
    rare = counts < RARE_COUNT
    total = min(FREQUENT_WORDS, len(model))
    if len(counts) < 2 or not rare.any():  # as in a file without counts, or with frequent words only
        return ItemScores(np.empty(0, str), np.empty(0), total, strata=np.empty(0, int))
    shares = rare[nearest_rows(model.vectors, frequent, NEIGHBOURS)].mean(axis=1)
    words = np.array([model.index_to_key[row] for row in frequent], str)
    return ItemScores(words, shares, total, strata=np.zeros(len(words), int))


def _gaps(
    name: str, models: Sequence[KeyedVectors], text: Source, reading: Mapping[str, Any], progress: Report | None
) -> list[ItemScores]:
    """Return how often each model prefers the word in a gap of a text to random words, for the same gaps in all models.

    Only words that all models have take part. `total` is the number of words in the text.
    """
    text_options = [getattr(model, "header", ModelHeader()).text for model in models]
    if not reading and any(options != text_options[0] for options in text_options):
        log.warning("the models split texts into words in different ways: %s is split as for the first", name)
    options = ReadingOptions(**asdict(text_options[0]) | dict(reading))
    with read_corpus(Corpus(text), options, workers=processors(), progress=progress) as store:
        start = max(0, len(store.ids) - MAX_IDS)
        ids, counts = np.unique(store.ids[start:].astype(np.int64), return_counts=True)
        ids, counts = ids[ids >= FIRST_TYPE], counts[ids >= FIRST_TYPE]
        words = store.words(ids).tolist()
        known = np.flatnonzero([all(word in model for model in models) for word in words])
        known = known[np.argsort(-counts[known], kind="stable")]
        if not len(known):
            raise W2VError(f"{name}: none of its words is in {'all models' if len(models) > 1 else 'the model'}")
        vocabulary = Vocabulary([words[row] for row in known.tolist()], counts[known])
        gaps = GapTest.of(store, vocabulary, start)
    total = int(counts.sum())
    if skipped := total - vocabulary.tokens:
        log.info("%s: left out %s of %s that not all models have", name, f"{skipped:,}", pluralise(total, "word"))
    items, strata = np.arange(len(gaps.words)), np.zeros(len(gaps.words), int)
    wins = [gaps.count_wins(model[vocabulary.words.tolist()]) / DRAWS for model in models]
    return [ItemScores(items, each, total, strata=strata) for each in wins]


# -- uncertainty ----------------------------------------------------------------------------

# A function that returns a statistic of each model, first over all items, then over each of the RESAMPLES bootstrap
# samples: (models, 1 + RESAMPLES). The models must have the same items. The second argument is the seed.
Statistic = Callable[[Sequence[ItemScores], int], Array]


def score_models(models: Sequence[ItemScores], statistic: Statistic, seed: int) -> list[Score]:
    """Return the score of each model, with its interval and its difference from the first model."""
    scores = []
    for number, model in enumerate(models):
        value, low, high = _interval(statistic([model], seed)[0]) if len(model.items) else (None, None, None)
        compares = number > 0 and value is not None
        difference, p = _difference(models[0], model, statistic, seed) if compares else (None, None)
        scores.append(Score(value, low, high, len(model.items), model.total, difference, p))
    return scores


def _interval(values: Array) -> tuple[float | None, float | None, float | None]:
    """Return the value and its interval, from the value and its resamples (1 + RESAMPLES,); None if not finite."""
    finite = values[np.isfinite(values)]
    if not np.isfinite(values[0]):
        return None, None, None
    ends = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    low, high = np.quantile(finite[1:], ends).tolist() if len(finite) > 1 else (None, None)
    return float(values[0]), low, high


def _difference(
    first: ItemScores, other: ItemScores, statistic: Statistic, seed: int
) -> tuple[float | None, float | None]:
    """Return the score of `other` minus the score of `first`, over the items that both have, and the p-value."""
    _, in_first, in_other = np.intersect1d(first.items, other.items, assume_unique=True, return_indices=True)
    if not len(in_first):
        return None, None
    first, other = first.take(in_first), other.take(in_other)
    first_values, other_values = statistic([first, other], seed)
    difference, differences = float(other_values[0] - first_values[0]), (other_values - first_values)[1:]
    if not np.isfinite(difference):
        return None, None
    if np.isin([first.values, other.values], (0, 1)).all():
        return difference, mcnemar(first.values > 0, other.values > 0)
    differences = differences[np.isfinite(differences)]
    tail = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    return difference, min(1.0, float(2 * (tail + 1) / (len(differences) + 1)))


def means(models: Sequence[ItemScores], seed: int) -> Array:
    """Return the mean of all items, and the means of items resampled within each stratum; see Statistic.

    A multinomial draw replaces drawing n items one by one: it counts how often each combination of values is drawn.
    """
    random = np.random.default_rng(seed)
    sums = np.zeros((len(models), RESAMPLES))
    values, strata = np.stack([each.values for each in models], axis=1), models[0].strata  # (n, models), (n,)
    assert strata is not None
    for stratum in np.unique(strata):
        distinct, counts = np.unique(values[strata == stratum], axis=0, return_counts=True)
        sums += (random.multinomial(counts.sum(), counts / counts.sum(), RESAMPLES) @ distinct).T
    return np.column_stack([values.mean(axis=0), sums / len(values)])


def _correlations(models: Sequence[ItemScores], seed: int) -> Array:
    """Return Spearman's correlation of all pairs and of resampled pairs, the same for all models; see Statistic."""
    random = np.random.default_rng(seed)
    size = len(models[0].values)
    step = max(1, RESAMPLED_AT_ONCE // size)
    parts = []
    for start in range(0, RESAMPLES, step):
        drawn = min(step, RESAMPLES - start)
        indices = random.integers(size, size=(drawn, size)) + size * np.arange(drawn)[:, None]
        weights = np.bincount(indices.ravel(), minlength=drawn * size).reshape(drawn, size)
        if not start:
            weights = np.vstack([np.ones(size, np.int64), weights])
        parts.append(np.stack([spearman(weights, each.values, cast(Array, each.ratings)) for each in models]))
    return np.concatenate(parts, axis=1)


def spearman(weights: NDArray[np.int64], first: Array, second: Array) -> Array:
    """Return Spearman's correlation of two variables (n,) in each of B samples: (B,), NaN if one is constant.

    `weights` (B, n) is how often each item is in a sample. With these counts, one sort ranks all samples.
    """
    one, two = _ranks(weights, first), _ranks(weights, second)
    with np.errstate(invalid="ignore", divide="ignore"):
        products = (weights * one * two).sum(1)
        correlations: Array = products / np.sqrt((weights * one**2).sum(1) * (weights * two**2).sum(1))
    return correlations


def _ranks(weights: NDArray[np.int64], values: Array) -> Array:
    """Return the ranks of n values in B samples, minus the mean rank: (B, n). Equal values get their mean rank."""
    group, order = np.unique(values, return_inverse=True)[1], np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=np.nan))  # the first difference is NaN, not zero
    # `take` raises MemoryError where indexing would crash.
    sizes = np.add.reduceat(weights.take(order, axis=1), starts, axis=1)  # (B, groups)
    ranks: Array = np.cumsum(sizes, axis=1) - sizes / 2 - weights.sum(1, keepdims=True) / 2
    return ranks.take(group, axis=1)
