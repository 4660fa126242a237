"""Compare two models by the neighbours of their shared words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from w2v.display import Result
from w2v.errors import W2VError, counted
from w2v.evaluation.evaluate import NEIGHBOURS, EvaluationResult, evaluate
from w2v.evaluation.models import HasWordVectors, vectors_of
from w2v.options import check_whole, formerly
from w2v.progress import Meter, Report
from w2v.vectors.cosines import Vector, unit
from w2v.vectors.keyed import KeyedVectors
from w2v.vectors.neighbours import nearest_rows

BANDS = (100, 1_000, 10_000)  # last ranks of the frequency bands; one more has the other words
SAMPLED = 1_000  # words beyond the `top` that are compared, at equal distances
WORDS_AT_ONCE = 256


@dataclass(frozen=True)
class Band:
    """Shared words of about equal frequency.

    Attributes:
        first, last: ranks among the shared words, from 1.
        words: number of these that were compared. overlap: the mean share of nearest words that both models agree on.
    """

    first: int
    last: int
    words: int
    overlap: float


@dataclass(frozen=True)
class Moved:
    """A word whose neighbourhood differs.

    Attributes:
        distance: the local neighbourhood measure of Hamilton, Leskovec & Jurafsky 2016 ("Cultural Shift or Linguistic
            Drift?"): 1 minus the cosine of two vectors, one per model: the word's cosines with its nearest words in
            either model.
        first, second: its nearest words in each model.
    """

    word: str
    distance: float
    first: list[str]
    second: list[str]


@dataclass(frozen=True)
class Comparison(Result):
    """The differences of two models.

    Attributes:
        shared, only_first, only_second: numbers of words.
        bands: the overlap of neighbours by frequency. moved: the words that differ most, the most different first.
        results: the scores of both models, see w2v.evaluate.
    """

    shared: int
    only_first: int
    only_second: int
    bands: list[Band]
    moved: list[Moved]
    results: list[EvaluationResult]

    @property
    def second_scores(self) -> dict[str, float | None]:
        """The scores of the second model alone, by set and measure."""
        return {f"{one.name}, {one.measure}": one.scores[1].value for one in self.results}


@formerly(words="show")
def compare(
    first: KeyedVectors | HasWordVectors,
    second: KeyedVectors | HasWordVectors,
    *,
    top: int = 10_000,
    show: int = 20,
    progress: Report | None = None,
) -> Comparison:
    """Compare the neighbours of words that two models share: the 10 nearest shared words.

    The first `top` shared words of the first model, which are the most frequent, and a sample of the others are
    compared. Of the former, `show` words that differ most are listed. Raises W2VError for models that share fewer than
    two words, SettingsError for an impossible `top` or number of words to show.
    """
    check_whole(1, top=top)
    check_whole(0, show=show)
    models = vectors_of(first), vectors_of(second)
    shared = [word for word in models[0].index_to_key if models[1].is_known(word)]
    if len(shared) < 2:
        raise W2VError(f"the models share {counted(len(shared), 'word')}: at least 2 are needed to compare them")
    vectors = [unit(model[shared]) for model in models]
    head = min(top, len(shared))
    rest = len(shared) - head
    others = np.linspace(head, len(shared), min(SAMPLED, rest), endpoint=False, dtype=np.int64)  # all different
    rows = np.concatenate([np.arange(head), others])
    nearest = [nearest_rows(each, rows, NEIGHBOURS, Meter(progress, "compare")) for each in vectors]
    both = (nearest[0][:, :, None] == nearest[1][:, None, :]).any(axis=2)  # (n, k): is a neighbour in both models
    overlaps = both.mean(axis=1)
    distances = _distances(vectors, rows[:head], [each[:head] for each in nearest])
    moved = np.argsort(-distances, kind="stable")[:show]
    return Comparison(
        shared=len(shared),
        only_first=len(models[0]) - len(shared),
        only_second=len(models[1]) - len(shared),
        bands=_bands(rows, overlaps, len(shared)),
        moved=[
            Moved(shared[row], float(distances[row]), *([shared[near] for near in each[row]] for each in nearest))
            for row in moved.tolist()
        ],
        results=evaluate(*models, progress=progress),
    )


def _bands(rows: NDArray[np.int64], overlaps: NDArray[np.float64], size: int) -> list[Band]:
    found = []
    for start, end in zip((0, *BANDS), (*BANDS, size), strict=True):
        inside = (rows >= start) & (rows < end)
        if inside.any():
            found.append(Band(start + 1, min(end, size), int(inside.sum()), float(overlaps[inside].mean())))
    return found


def _distances(
    vectors: Sequence[Vector], rows: NDArray[np.int64], nearest: Sequence[NDArray[np.int64]]
) -> NDArray[np.float64]:
    """The distance of each row, (n,), see Moved. `vectors` have length 1."""
    distances = np.empty(len(rows))
    for start in range(0, len(rows), WORDS_AT_ONCE):
        block = slice(start, start + WORDS_AT_ONCE)
        one, two = (each[block] for each in nearest)
        union = np.concatenate([one, two], axis=1)  # (n, 2k)
        twice = (two[:, :, None] == one[:, None, :]).any(axis=2)
        counted = np.concatenate([np.ones(one.shape, bool), ~twice], axis=1)
        cosines = [np.einsum("nd,nkd->nk", each[rows[block]], each[union]) * counted for each in vectors]
        distances[block] = 1 - np.einsum("nk,nk->n", *map(unit, cosines))
    return distances
