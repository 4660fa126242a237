"""Word pairs with a score of their similarity or relatedness, given by people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.detect import LAYOUT_LINES, PairLayout, pair_layout
from w2v.display import Result
from w2v.errors import W2VError
from w2v.evaluation.models import HasWordVectors, vectors_of
from w2v.evaluation.word_index import WordIndex, decode_word, numbered_lines
from w2v.system.files import PathLike
from w2v.vectors.cosines import unit
from w2v.vectors.keyed import KeyedVectors

PAIRS_AT_ONCE = 1 << 12
MAX_PAIRS = 100_000  # in a file
MAX_LINE_BYTES = 1 << 16  # of a pair; a longer line is malformed


@dataclass(frozen=True)
class PairsResult(Result):
    """The result of `word_pairs`.

    Attributes:
        pearson, spearman: correlations of the cosines with the scores, -1 to 1, or None for fewer than two pairs or
            if all cosines or all scores are equal.
        found: number of pairs with both words in the vocabulary.
        pairs: number of all pairs.
        malformed: number of lines that are not a pair with a score. first_malformed: the first of them.
        unknown: the words that are not in the vocabulary.
    """

    pearson: float | None
    spearman: float | None
    found: int
    pairs: int
    malformed: int
    first_malformed: int | None
    unknown: list[str]


@dataclass(frozen=True)
class RatedPairs:
    """The n pairs of a file whose words both have a vector, in the order of the file.

    Attributes:
        numbers: int64 (n,), their indices among all pairs of the file. rows: int64 (n, 2), the rows of their words;
            unknown words with a vector made of their n-grams have the rows from V on.
        cosines: float32 (n,), of the vectors of each pair.
        all_scores: float64 (P,), the scores of all pairs of the file.
        malformed, first_malformed, unknown: as in PairsResult.
    """

    numbers: NDArray[np.int64]
    rows: NDArray[np.int64]
    cosines: NDArray[np.float32]
    all_scores: NDArray[np.float64]
    malformed: int
    first_malformed: int | None
    unknown: list[str]

    @property
    def scores(self) -> NDArray[np.float64]:
        return self.all_scores[self.numbers]


def word_pairs(
    vectors: KeyedVectors | HasWordVectors, pairs: PathLike | None = None, case_insensitive: bool = True
) -> PairsResult:
    """Correlate the cosines of word pairs with their scores.

    `pairs` is a file whose lines have two words and then a score, separated by tabs, commas, semicolons or white space,
    by default the bundled one. The score is the first number after the words, in the same column in all lines; other
    columns are left out, and so is a first line with the names of columns. "#" begins a comment line. If
    `case_insensitive`, the first of several words that differ only in case counts for all of them. Raises W2VError for
    a file that cannot be read, has no pairs or more than MAX_PAIRS.
    """
    rated = rated_pairs(vectors_of(vectors), pairs, case_insensitive)
    pearson, spearman = _correlations(rated.cosines, rated.scores)
    return PairsResult(
        pearson=pearson,
        spearman=spearman,
        found=len(rated.rows),
        pairs=len(rated.all_scores),
        malformed=rated.malformed,
        first_malformed=rated.first_malformed,
        unknown=rated.unknown,
    )


similarity = word_pairs  # its name on the command line


def rated_pairs(vectors: KeyedVectors, pairs: PathLike | None, case_insensitive: bool = True) -> RatedPairs:
    """Read a file of pairs; arguments and errors are those of `word_pairs`."""
    index = WordIndex(vectors, len(vectors), case_insensitive)
    found: list[list[int]] = []
    scores: list[float] = []
    unknown: dict[str, None] = {}
    malformed, first_malformed = 0, None
    rows = _pair_lines(pairs)
    head = list(islice(rows, LAYOUT_LINES))
    layout = pair_layout([line for _, line in head]) or PairLayout(" ", 0, 2)
    for row, (number, line) in enumerate(chain(head, rows)):
        fields = layout.fields(line)
        pair = layout.pair(fields)
        if pair is None:
            if row or not layout.is_header(fields):
                malformed, first_malformed = malformed + 1, first_malformed or number
            continue
        if len(scores) == MAX_PAIRS:
            raise W2VError(f"{pairs}: more than {MAX_PAIRS} pairs")
        *words, score = pair
        scores.append(score)
        found.append([index.row_or_composed(word) for word in words])
        unknown |= dict.fromkeys(word for word, row in zip(words, found[-1], strict=True) if row < 0)
    if not scores:
        line = f", and line {head[0][0]} is {head[0][1][:60].strip()!r}" if head else ""
        raise W2VError(f"{pairs}: no pairs: they are lines of two words and a score{line}")
    numbers = np.array(found, np.int64)
    known = np.flatnonzero((numbers >= 0).all(axis=1))
    cosines = _cosines(vectors, index.composed, numbers[known])
    return RatedPairs(known, numbers[known], cosines, np.array(scores), malformed, first_malformed, list(unknown))


def _pair_lines(path: PathLike | None) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file of pairs that are not empty and not comments; one too long to be a pair is empty."""
    for number, line in numbered_lines(path, "pairs"):
        if line.strip() and not line.startswith(b"#"):
            yield number, decode_word(path, number, line) if len(line) <= MAX_LINE_BYTES else ""


def _cosines(
    vectors: KeyedVectors, composed: list[NDArray[np.float32]], pairs: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The cosine of each pair of rows (n, 2): float32 (n,). Row V + k is that of composed[k]."""
    size, cosines = len(vectors), np.empty(len(pairs), np.float32)
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        block = pairs[start : start + PAIRS_AT_ONCE]
        both = vectors.vectors[np.minimum(block, size - 1)]  # (n, 2, D)
        for pair, side in np.argwhere(block >= size):
            both[pair, side] = composed[block[pair, side] - size]
        both = unit(both)
        cosines[start : start + len(block)] = np.einsum("nd,nd->n", both[:, 0], both[:, 1])
    return cosines


def _correlations(
    first: NDArray[np.floating[Any]], second: NDArray[np.floating[Any]]
) -> tuple[float | None, float | None]:
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None, None
    from scipy import stats  # its import takes longer than that of the whole package

    return float(stats.pearsonr(first, second).statistic), float(stats.spearmanr(first, second).statistic)
