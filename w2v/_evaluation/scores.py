"""Scores of models with confidence intervals, tests of the differences between them, and the table of all scores.

Intervals are percentiles of the bootstrap (Efron & Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13).
The difference between two models is tested on the items that both models score. If each item is right or wrong, the
test is McNemar's exact test, otherwise the paired bootstrap (Efron & Tibshirani 1993, section 15.4; Koehn 2004).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from w2v._display import Html, html_table, text_table
from w2v._errors import SettingsError, W2VError, printable
from w2v._losses.loss import Array

RESAMPLES = 2000
RESAMPLED_AT_ONCE = 1 << 22  # items drawn in a batch
CONFIDENCE = 0.95  # level of the intervals
SIGNIFICANT = 0.05  # p-value below which two scores differ
OTHER_TEST_SETS = (
    "w2v evaluate MODEL --questions FILE --pairs FILE uses your own test sets, and w2v evaluate MODEL --held-out FILE "
    "needs only a text"
)
GAPS = (
    "how often the words around a gap in the text are nearer to the word in the gap than to another word; chance is 0.5"
)


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

    def __str__(self) -> str:
        interval = "" if self.low is None else f" [{self.low:.3f}, {self.high:.3f}]"
        return "-" if self.value is None else f"{self.value:.3f}{interval}"

    @property
    def difference_text(self) -> str:
        """The difference and its p-value as text; "" for the first model."""
        if self.difference is None or self.p is None:
            return ""
        return f"{self.difference:+.3f} (p {'< 0.001' if self.p < 0.001 else f'{self.p:.3f}'})"


@dataclass(frozen=True)
class EvaluationResult:
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
            - for the kinds of test sets that `evaluate` finds by their content, see word_sets.py
            - for "next item" and "held-out edges", see `next_items` and `link_prediction`
        scores: The score of each model, and then of each baseline.
        chance: The score of a guess that does not use the vectors, if it is known.
    """

    name: str
    measure: str
    scores: list[Score]
    chance: float | None = None


@dataclass(frozen=True)
class ItemScores:
    """The results of one model on the n items of a test set that it can score.

    Attributes:
        items: (n,), numbers or words that identify the items. They tell which items two models have in common.
        values: float64 (n,), the model's value for each item; or (n, m), m values for a `resampled` measure.
        total: Number of all items of the test set.
        ratings: float64 (n,), the scores that people gave. Only correlations have them.
        strata: Int (n,), the stratum of each item, within which means are resampled; by default one.
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


def name_models(models: Sequence[object], baselines: Sequence[str] = ()) -> list[str]:
    """Return names for models in the order of arguments.

    Raises:
        SettingsError: There are neither models nor baselines.
    """
    if not models and not baselines:
        raise SettingsError("no models to score: give at least one")
    return [f"model {number}" for number in range(1, len(models) + 1)]


class Evaluation(list[EvaluationResult]):
    """The scores of models by test set and measure: a table in a notebook and, with `print`, in a terminal.

    Attributes:
        models: The names of the models, in the order of their scores.
        baselines: The names of simple methods, whose scores follow.
    """

    def __init__(
        self, results: Iterable[EvaluationResult] = (), models: Sequence[str] = (), baselines: Sequence[str] = ()
    ) -> None:
        super().__init__(results)
        self.models, self.baselines = list(models), list(baselines)

    def add(
        self,
        name: str,
        measure: str,
        items: Sequence[ItemScores],
        statistic: Statistic | None = None,
        chance: float | None = None,
        *,
        seed: int = 1,
    ) -> None:
        """Add the scores of models, by default means, from the results of each model on the items of a test set."""
        self.append(EvaluationResult(name, measure, score_models(items, statistic or means, seed), chance))

    def to_dict(self) -> dict[str, Any]:
        """Return the names and all scores, as --json prints them."""
        return {"models": self.models, "baselines": self.baselines, "results": [asdict(one) for one in self]}

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each score.

        Raises:
            W2VError: If pandas is not installed.
        """
        rows = [
            {"set": one.name, "measure": one.measure, "model": model, **asdict(score), "chance": one.chance}
            for one in self
            for model, score in zip(self._columns, one.scores, strict=True)
        ]
        try:
            pandas: Any = import_module("pandas")
        except ImportError as error:
            raise W2VError("to_frame needs pandas: pip install pandas") from error
        return pandas.DataFrame(rows)

    def __str__(self) -> str:
        header = ("set", "measure", *self._columns)
        return "\n".join([text_table(self._rows(), header), *map(printable, self._notes())])

    def _repr_html_(self) -> Html:
        notes = html_table([[note] for note in self._notes()])
        return Html(html_table(self._rows(), ("set", "measure", *self._columns)) + notes)

    @property
    def _columns(self) -> list[str]:
        return [*self.models, *self.baselines]

    def _rows(self) -> list[tuple[str, ...]]:
        """Return by measure the scores with their intervals, the differences, and the numbers of items scored."""
        rows: list[tuple[str, ...]] = []
        shown = None
        for one in self:
            chance = "" if one.chance is None else f" (chance {one.chance:.3f})"
            rows.append((one.name, one.measure + chance, *map(str, one.scores)))
            if any(score.p is not None for score in one.scores):
                rows.append(("", "difference to the first", *(score.difference_text for score in one.scores)))
            scored = [f"{score.items:,} of {score.total:,}" for score in one.scores]
            if (one.name, scored) != shown:
                rows.append(("", "scored", *scored))
            shown = one.name, scored
        return rows

    def _notes(self) -> list[str]:
        """Return sentences that say what to conclude, and how to read the table."""
        notes = []
        for number, name in enumerate(self.models):
            lacking = [(one.measure, one.name) for one in self if not one.scores[number].items]
            if sets := [name for measure, name in lacking if measure in ("accuracy", "spearman")]:
                notes.append(f"every item of {' and '.join(sets)} has a word that {name} lacks: {OTHER_TEST_SETS}")
            others = ("accuracy", "spearman", "related neighbours", "rare neighbours", "gaps")
            if unknown := dict.fromkeys(name for measure, name in lacking if measure not in others):
                notes.append(f"{name} knows none or too few of the words: it has no score for {' and '.join(unknown)}")
            if any(measure == "rare neighbours" for measure, _ in lacking):
                notes.append(
                    f"{name} has no counts of its words, or no rare words, so rare neighbours cannot be counted"
                )
        if any(one.measure == "gaps" for one in self):
            notes.append(f"gaps: {GAPS}")
        notes.append(
            "95 % intervals in brackets (bootstrap; Wilson for labels); p: McNemar's test for items right or wrong, "
            "otherwise bootstrap"
        )
        if len(self._columns) > 1:
            notes.append("differences are over the items that both models score")
        if self.baselines and self.models and self[0].scores[0].items:
            notes.append(self._conclusion())
        return notes

    def _conclusion(self) -> str:
        """Say how the first model compares with the best baseline, by the first measure; the next ones break ties."""
        measure, first = self[0].measure, self.models[0]
        by_method = zip(*(one.scores[len(self.models) :] for one in self), strict=True)
        methods = zip(self.baselines, by_method, strict=True)
        name, (best, *_) = max(methods, key=lambda method: [score.value or 0.0 for score in method[1]])
        if best.p is None or best.p >= SIGNIFICANT:
            return f"{first} and {name} do not differ significantly in {measure}"
        if (best.difference or 0) > 0:
            return f"{name} beats {first} in {measure}: the simple method is the better choice here"
        return f"{first} beats all simple methods in {measure}"


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
    if not len(differences) or not np.isfinite(difference):
        return None, None
    if first.values.ndim == 1 and np.isin([first.values, other.values], (0, 1)).all():
        return difference, mcnemar(first.values > 0, other.values > 0)
    differences = differences[np.isfinite(differences)]
    tail = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    return difference, min(1.0, float(2 * (tail + 1) / (len(differences) + 1)))


def mcnemar(first: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """Return the exact p-value of McNemar's test (1947) for right or wrong answers of two models, bool (n,).

    Null hypothesis: of the items that only one of the models gets right, each model gets half.
    """
    from scipy.stats import binomtest  # slow to import

    lost, won = int(np.count_nonzero(first & ~other)), int(np.count_nonzero(other & ~first))
    return float(binomtest(lost, lost + won).pvalue) if lost + won else 1.0


def means(models: Sequence[ItemScores], seed: int) -> Array:
    """Return the mean of all items, and the means of items resampled within each stratum; see Statistic.

    A multinomial draw replaces drawing n items one by one: it counts how often each combination of values is drawn.
    """
    random = np.random.default_rng(seed)
    sums = np.zeros((len(models), RESAMPLES))
    values = np.stack([each.values for each in models], axis=1)  # (n, models)
    strata = np.zeros(len(values)) if models[0].strata is None else models[0].strata
    for stratum in np.unique(strata):
        distinct, counts = np.unique(values[strata == stratum], axis=0, return_counts=True)
        sums += (random.multinomial(counts.sum(), counts / counts.sum(), RESAMPLES) @ distinct).T
    return np.column_stack([values.mean(axis=0), sums / len(values)])


def resampled(measure: Callable[[NDArray[np.int64], ItemScores], Array]) -> Statistic:
    """Return the statistic of all items and of items resampled within each stratum, the same for all models.

    `measure` returns the values (B,) in B samples, from the number of times that each item is in a sample, (B, n).
    """

    def statistic(models: Sequence[ItemScores], seed: int) -> Array:
        random, size = np.random.default_rng(seed), len(models[0].items)
        strata = np.zeros(size) if models[0].strata is None else models[0].strata
        order = np.argsort(strata, kind="stable")
        _, starts, numbers, sizes = np.unique(strata[order], True, True, True)
        low, high = starts[numbers], (starts + sizes)[numbers]
        parts = [np.stack([measure(np.ones((1, size), np.int64), each) for each in models])]
        step = max(1, RESAMPLED_AT_ONCE // size)
        for start in range(0, RESAMPLES, step):
            drawn = min(step, RESAMPLES - start)
            indices = order[random.integers(low, high, (drawn, size))] + size * np.arange(drawn)[:, None]
            weights = np.bincount(indices.ravel(), minlength=drawn * size).reshape(drawn, size)
            parts.append(np.stack([measure(weights, each) for each in models]))
        return np.concatenate(parts, axis=1)

    return statistic


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


correlations = resampled(lambda weights, items: spearman(weights, items.values, cast(Array, items.ratings)))
