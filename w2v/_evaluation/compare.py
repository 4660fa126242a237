"""Compare two models by the nearest neighbours of the words they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from w2v._display import Result
from w2v._errors import W2VError, pluralise
from w2v._evaluation.evaluate import NEIGHBOURS, evaluate
from w2v._evaluation.scores import Evaluation
from w2v._options import check_numbers
from w2v._progress import Meter, Report
from w2v._vectors.cosines import unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of
from w2v._vectors.neighbours import nearest_rows

BANDS = (100, 1_000, 10_000)  # the last frequency rank of each band; a final band has all other words
SAMPLED = 1_000  # number of words after the first `restrict_vocab` to compare, evenly spaced


@dataclass(frozen=True)
class Band:
    """A group of shared words with similar frequencies.

    Attributes:
        first, last: The first and last frequency rank in the group, among all shared words, from 1.
        words: Number of words in this band that were compared.
        overlap: The share of nearest neighbours that are the same in both models, 0 to 1, averaged over these words.
    """

    first: int
    last: int
    words: int
    overlap: float


@dataclass(frozen=True)
class Comparison(Result):
    """The differences between two models.

    Attributes:
        shared: Number of words in both models.
        only_first, only_second: Number of words in only one of the models.
        bands: The overlap of neighbours by word frequency.
        results: The scores of both models, see w2v.evaluate.
    """

    shared: int
    only_first: int
    only_second: int
    bands: list[Band]
    results: Evaluation

    @property
    def second_scores(self) -> dict[str, float | None]:
        """The scores of the second model, by "test set, measure"."""
        return {f"{result.name}, {result.measure}": result.scores[1].value for result in self.results}


def compare(
    first: KeyedVectors | HasWordVectors,
    second: KeyedVectors | HasWordVectors,
    *,
    restrict_vocab: int = 10_000,
    progress: Report | None = None,
) -> Comparison:
    """Compare the 10 nearest neighbours of words that two models share.

    Only shared words count as neighbours.

    Args:
        first, second: Vectors, or models that have them.
        restrict_vocab: Compare this many shared words, the first in the first model, which are its most frequent. A
            sample of the other shared words is compared, too.
        progress: Called in the phases "compare" and "evaluate".

    Raises:
        W2VError: If the models share fewer than two words.
        SettingsError: If `restrict_vocab` is impossible.
    """
    check_numbers(restrict_vocab=restrict_vocab)
    models = vectors_of(first), vectors_of(second)
    shared = [word for word in models[0].index_to_key if models[1].is_known(word)]
    if len(shared) < 2:
        raise W2VError(f"the models share {pluralise(len(shared), 'word')}: at least 2 are needed to compare them")
    vectors = [unit(model[shared]) for model in models]
    head = min(restrict_vocab, len(shared))
    sample_size = min(SAMPLED, len(shared) - head)
    sample = np.linspace(head, len(shared), sample_size, endpoint=False, dtype=np.int64)  # without repeats
    rows = np.concatenate([np.arange(head), sample])
    nearest = [nearest_rows(each, rows, NEIGHBOURS, Meter(progress, "compare")) for each in vectors]
    in_both = (nearest[0][:, :, None] == nearest[1][:, None, :]).any(axis=2)  # (n, k): is a neighbour in both models
    overlaps = in_both.mean(axis=1)
    return Comparison(
        shared=len(shared),
        only_first=len(models[0]) - len(shared),
        only_second=len(models[1]) - len(shared),
        bands=_bands(rows, overlaps, len(shared)),
        results=evaluate(*models, progress=progress),
    )


def _bands(rows: NDArray[np.int64], overlaps: NDArray[np.float64], size: int) -> list[Band]:
    """Return the mean overlap in each frequency band that has a compared word; `size` is the number of shared words."""
    bands = []
    for start, end in zip((0, *BANDS), (*BANDS, size), strict=True):
        inside = (rows >= start) & (rows < end)
        if inside.any():
            bands.append(Band(start + 1, min(end, size), int(inside.sum()), float(overlaps[inside].mean())))
    return bands
