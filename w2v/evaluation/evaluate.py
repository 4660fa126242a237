"""Scores of models with their uncertainty, for choosing between models.

Intervals are percentiles of the bootstrap (Efron & Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13).
Differences between two models are tested on the items that both score: by McNemar's exact test if items are right or
wrong, otherwise by the paired bootstrap (Efron & Tibshirani 1993, section 15.4; Koehn 2004).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.display import Result
from w2v.errors import SettingsError, W2VError, counted, malformed_lines
from w2v.evaluation.analogies import Questions, answers
from w2v.evaluation.held_out import DRAWS, MAX_IDS, HeldOut
from w2v.evaluation.models import HasWordVectors, vectors_of
from w2v.evaluation.similarity import RatedPairs, rated_pairs
from w2v.formats.header import ModelHeader
from w2v.options import check_whole, formerly, options_of, refuse_unknown
from w2v.progress import Meter, Report
from w2v.system.files import PathLike, as_paths
from w2v.system.threads import processors
from w2v.text._text import FIRST_TYPE
from w2v.text.corpus import Corpus, Source
from w2v.text.idstore import ReadingOptions, read_corpus
from w2v.text.vocabulary import Vocabulary
from w2v.vectors.keyed import KeyedVectors
from w2v.vectors.neighbours import nearest_rows
from w2v.vectors.query import Method

log = logging.getLogger("w2v")

RESAMPLES = 2000
RESAMPLED_AT_ONCE = 1 << 22  # items drawn at a time
COVERAGE = 0.95  # of the intervals
NEIGHBOURS = 10
RELATED = 2 / 3  # pairs with scores from this quantile of their file on count as related
FREQUENT, RARE = 500, 20  # number of most frequent words; words with fewer occurrences are rare

Numbers = NDArray[Any]


@dataclass(frozen=True)
class Score:
    """A model's score on a set.

    Attributes:
        value: None if nothing can be scored. low, high: its 95 % interval.
        items, total: numbers of questions, pairs or words that are scored, and in all.
        difference: the value minus the first model's, over the items that both models score; None for the first model.
        p: the p-value of this difference.
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
    """The scores of all models in one measure on one set.

    Attributes:
        name: of the set. measure: "accuracy" (share of analogy questions answered correctly), "spearman" (correlation
            of cosines with the scores of pairs), "related neighbours" (share of the pairs in the upper third of the
            scores whose words are among each other's 10 nearest), "rare neighbours" (share of words that occur fewer
            than 20 times among the 10 nearest of each of the 500 most frequent words) or "gaps" (how often the words
            around a gap in a text are nearer to the word in it than to another word of the text; see HeldOut).
    """

    name: str
    measure: str
    scores: list[Score]


@dataclass(frozen=True)
class ItemScores:
    """A model's scores of n of the `total` items of a set.

    items    (n,): numbers or words by which the items of two models are matched
    values   float64 (n,)
    others   (n,): for a mean the strata of the items, for a correlation their scores
    """

    items: Numbers
    values: Numbers
    others: Numbers
    total: int

    def take(self, rows: Numbers) -> ItemScores:
        return ItemScores(self.items[rows], self.values[rows], self.others[rows], self.total)


@formerly(top="restrict_vocab")
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
    """Score models on the bundled questions and pairs, on files of questions and pairs, and by neighbours of words.

    The first model is the baseline; every other model is compared with it.

    Args:
        questions, pairs: files, one or several; see `analogies` and `word_pairs`.
        held_out: a text that no model was trained on; the score on it needs no questions. Words that a model lacks are
            left out for all models, and of a long text the last 500,000 words are used.
        restrict_vocab, method: see `analogies`.
        seed: of the resamples.
        progress: called in the phases "evaluate" and, with `held_out`, "read".
        reading: the arguments of `train` for reading `held_out`; by default those that the first model was trained
            with.

    Raises W2VError for a file that cannot be used, SettingsError for an impossible number.
    """
    check_whole(0, seed=seed)
    refuse_unknown(reading, options_of(ReadingOptions), {})
    if reading and held_out is None:
        raise SettingsError(f"{next(iter(reading))} has no effect without held_out")
    questions, pairs = as_paths(questions), as_paths(pairs)
    meter = Meter(progress, "evaluate")
    total = 4 + len(questions) + 2 * len(pairs) + (held_out is not None)
    vectors = [vectors_of(model) for model in models]
    found: list[EvaluationResult] = []
    for name, measure, scored, samples in _measured(vectors, questions, pairs, restrict_vocab, method):
        found.append(EvaluationResult(name, measure, _scores(scored, samples, seed)))
        meter(len(found), total)
    if held_out is not None:
        name = Path(held_out).name if isinstance(held_out, str | os.PathLike) else "held-out text"
        scored = _gaps(name, vectors, held_out, reading, progress)
        found.append(EvaluationResult(name, "gaps", _scores(scored, _means, seed)))
        meter(len(found), total)
    return found


def _measured(
    models: Sequence[KeyedVectors],
    questions: Sequence[PathLike],
    pairs: Sequence[PathLike],
    restrict_vocab: int,
    method: Method,
) -> Iterator[tuple[str, str, list[ItemScores], Samples]]:
    """Yield the name of each set, the measure, the item scores of each model, and the statistic that sums them up."""
    for file in (None, *questions):
        name = "bundled questions" if file is None else Path(file).name
        answered = [answers(model, file, restrict_vocab, method) for model in models]
        _warn_of_malformed(file, [asked for asked, _ in answered])
        yield name, "accuracy", [_accuracy(*one) for one in answered], _means
    for file in (None, *pairs):
        name = "bundled pairs" if file is None else Path(file).name
        rated = [(model, rated_pairs(model, file)) for model in models]
        _warn_of_malformed(file, [one for _, one in rated])
        yield name, "spearman", [_cosines(one) for _, one in rated], _correlations
        yield name, "related neighbours", [_related(*one) for one in rated], _means
    yield "frequent words", "rare neighbours", [_rare(model) for model in models], _means


def _warn_of_malformed(file: PathLike | None, read: Sequence[Questions | RatedPairs]) -> None:
    """Warn once of the malformed lines of a file, which was read for each model."""
    for one in read[:1]:
        if one.malformed:
            log.warning("%s: skipped %s", file, malformed_lines(one.malformed, one.first_malformed))


# -- scored items ---------------------------------------------------------------------------


def _accuracy(questions: Questions, correct: NDArray[np.bool_]) -> ItemScores:
    items = np.flatnonzero(questions.known)
    return ItemScores(items, correct[items].astype(float), questions.sections[items], len(correct))


def _cosines(rated: RatedPairs) -> ItemScores:
    return ItemScores(rated.numbers, rated.cosines.astype(float), rated.scores, len(rated.all_scores))


def _related(model: KeyedVectors, rated: RatedPairs) -> ItemScores:
    """1 for each related pair whose words are among each other's nearest, otherwise 0."""
    least = np.quantile(rated.all_scores, RELATED)
    related = np.flatnonzero((rated.scores >= least) & (rated.rows < len(model)).all(axis=1))
    words, indices = np.unique(rated.rows[related], return_inverse=True)
    nearest = nearest_rows(model.vectors, words, NEIGHBOURS)
    first, second = indices.reshape(-1, 2).T
    both = (nearest[first] == words[second][:, None]).any(1) & (nearest[second] == words[first][:, None]).any(1)
    return ItemScores(
        rated.numbers[related], both.astype(float), np.zeros(len(related), int), int((rated.all_scores >= least).sum())
    )


def _rare(model: KeyedVectors) -> ItemScores:
    """The share of rare words among the nearest of each frequent word."""
    counts = model.counts if model.counts is not None else np.zeros(0, np.int64)
    frequent = np.argsort(-counts, kind="stable")[:FREQUENT]
    rare = counts < RARE
    judged = len(counts) > 1 and rare.any()  # a file may have no rare words
    shares = rare[nearest_rows(model.vectors, frequent, NEIGHBOURS)].mean(axis=1) if judged else []
    words = np.array([model.index_to_key[row] for row in frequent[: len(shares)]], str)
    return ItemScores(words, np.asarray(shares, float), np.zeros(len(words), int), min(FREQUENT, len(model)))


def _gaps(
    name: str, models: Sequence[KeyedVectors], text: Source, reading: Mapping[str, Any], progress: Report | None
) -> list[ItemScores]:
    """How often each model prefers the word in a gap of a text to others; all of them are words that all models have.

    The items of all models are the same gaps, as many as `HeldOut` draws; `total` is the number of the text's words.
    """
    split = [getattr(model, "header", ModelHeader()).text for model in models]
    if not reading and any(other != split[0] for other in split):
        log.warning("the models split texts into words in different ways: %s is split as for the first", name)
    options = ReadingOptions(**asdict(split[0]) | dict(reading))
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
        gaps = HeldOut.of(store, vocabulary, start)
    total = int(counts.sum())
    if skipped := total - vocabulary.tokens:
        log.info("%s: left out %s of %s that not all models have", name, f"{skipped:,}", counted(total, "word"))
    items = np.arange(len(gaps.words))
    won = [gaps.won(model[vocabulary.words.tolist()]) / DRAWS for model in models]
    return [ItemScores(items, each, np.zeros(len(items), int), total) for each in won]


# -- uncertainty ----------------------------------------------------------------------------

# Statistics of models on the same items, of all items and then of RESAMPLES resamples: (models, 1 + RESAMPLES).
Samples = Callable[[Sequence[ItemScores], int], Numbers]


def _scores(found: Sequence[ItemScores], samples: Samples, seed: int) -> list[Score]:
    scores = []
    for number, scored in enumerate(found):
        value, low, high = _interval(samples([scored], seed)[0]) if len(scored.items) else (None, None, None)
        difference, p = _difference(found[0], scored, samples, seed) if number and value is not None else (None, None)
        scores.append(Score(value, low, high, len(scored.items), scored.total, difference, p))
    return scores


def _interval(sampled: Numbers) -> tuple[float | None, float | None, float | None]:
    """The value and its interval, of finite samples."""
    finite = sampled[np.isfinite(sampled)]
    if not np.isfinite(sampled[0]):
        return None, None, None
    ends = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
    low, high = np.quantile(finite[1:], ends).tolist() if len(finite) > 1 else (None, None)
    return float(sampled[0]), low, high


def _difference(first: ItemScores, other: ItemScores, samples: Samples, seed: int) -> tuple[float | None, float | None]:
    """The score of `other` minus that of `first` over the items of both, and the p-value."""
    _, mine, theirs = np.intersect1d(first.items, other.items, assume_unique=True, return_indices=True)
    if not len(mine):
        return None, None
    first, other = first.take(mine), other.take(theirs)
    low, high = samples([first, other], seed)
    difference, differences = float(high[0] - low[0]), (high - low)[1:]
    if not np.isfinite(difference):
        return None, None
    if np.isin([first.values, other.values], (0, 1)).all():
        return difference, mcnemar(first.values > 0, other.values > 0)
    differences = differences[np.isfinite(differences)]
    tail = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    return difference, min(1.0, 2 * (tail + 1) / (len(differences) + 1))


def mcnemar(first: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """The exact p-value of McNemar's test (1947): that, of the items (n,) only one model gets right, each gets half."""
    from scipy import stats

    lost, won = int(np.count_nonzero(first & ~other)), int(np.count_nonzero(other & ~first))
    return float(stats.binomtest(lost, lost + won).pvalue) if lost + won else 1.0


def _means(models: Sequence[ItemScores], seed: int) -> Numbers:
    """The means of items resampled within each stratum.

    Drawing n items with replacement and counting each combination of values is a multinomial draw.
    """
    random = np.random.default_rng(seed)
    sums = np.zeros((len(models), RESAMPLES))
    values, strata = np.stack([each.values for each in models], axis=1), models[0].others  # (n, models), (n,)
    for stratum in np.unique(strata):
        distinct, counts = np.unique(values[strata == stratum], axis=0, return_counts=True)
        sums += (random.multinomial(counts.sum(), counts / counts.sum(), RESAMPLES) @ distinct).T
    return np.column_stack([values.mean(axis=0), sums / len(values)])


def _correlations(models: Sequence[ItemScores], seed: int) -> Numbers:
    """Spearman's correlations of resampled pairs, the same pairs for all models."""
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
        parts.append(np.stack([spearman(weights, each.values, each.others) for each in models]))
    return np.concatenate(parts, axis=1)


def spearman(weights: NDArray[np.int64], first: Numbers, second: Numbers) -> Numbers:
    """Spearman's correlation of two variables, both (n,), in each of B samples: (B,), NaN if one is constant.

    `weights` (B, n) is how often each item is in a sample. With these counts, one sort ranks all samples.
    """
    if not len(first):
        return np.full(len(weights), np.nan)
    one, two = _ranks(weights, first), _ranks(weights, second)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Numbers = (weights * one * two).sum(1) / np.sqrt((weights * one**2).sum(1) * (weights * two**2).sum(1))
    return found


def _ranks(weights: NDArray[np.int64], values: Numbers) -> Numbers:
    """The ranks of n values in B samples, minus their mean; equal values have the mean of their ranks: (B, n)."""
    group, order = np.unique(values, return_inverse=True)[1], np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=np.nan))  # the first difference is NaN, not zero
    # `take`, because indexing crashes if memory is short
    sizes = np.add.reduceat(weights.take(order, axis=1), starts, axis=1)  # (B, groups)
    ranks: Numbers = np.cumsum(sizes, axis=1) - sizes / 2 - weights.sum(1, keepdims=True) / 2
    return ranks.take(group, axis=1)
