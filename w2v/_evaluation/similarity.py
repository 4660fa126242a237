"""Score vectors on word pairs that people have rated for similarity or relatedness."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._detect import LAYOUT_LINES, PairLayout, decode_line, pair_layout
from w2v._display import Result
from w2v._errors import W2VError
from w2v._evaluation.word_index import WordIndex, numbered_lines
from w2v._system.files import PathLike
from w2v._vectors.cosines import unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of

PAIRS_AT_ONCE = 1 << 12  # pairs in a batch
MAX_PAIRS = 100_000  # pairs in a file
MAX_LINE_BYTES = 1 << 16  # a longer line is malformed
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")  # the comma may separate thousands or be a decimal comma


@dataclass(frozen=True)
class PairsResult(Result):
    """The result of `word_pairs`.

    Attributes:
        pearson, spearman: Correlations of the cosines with the scores, -1 to 1, or None for fewer than two pairs or
            if all cosines or all scores are equal.
        found: Number of pairs with a vector for both words.
        known: Number of pairs with both words in the vocabulary. It is less than `found` if a model has vectors for
            unknown words, or if the file has texts of several words.
        known_spearman: The correlation of these pairs, which can be compared with other models' correlations.
        pairs: Number of all pairs.
        malformed: Number of lines that are not a pair with a score.
        first_malformed: The number of the first such line, from 1, or None.
        unknown: The words without a vector.
    """

    pearson: float | None
    spearman: float | None
    found: int
    known: int
    known_spearman: float | None
    pairs: int
    malformed: int
    first_malformed: int | None
    unknown: list[str]


@dataclass(frozen=True)
class RatedPairs:
    """The pairs of a file, and the n of its P pairs that have a vector for both words.

    Attributes:
        indices: int64 (n,), the indices of the n pairs among all pairs of the file, in file order.
        rows: int64 (n, 2), the rows of their words. Rows from V on belong to unknown words with n-grams.
        cosines: float32 (n,), the cosine of the two words of each pair.
        all_scores: float64 (P,), the scores of all pairs of the file.
        malformed, first_malformed, unknown: As in PairsResult.
    """

    indices: NDArray[np.int64]
    rows: NDArray[np.int64]
    cosines: NDArray[np.float32]
    all_scores: NDArray[np.float64]
    malformed: int
    first_malformed: int | None
    unknown: list[str]

    @property
    def scores(self) -> NDArray[np.float64]:
        """The scores of the n pairs, float64 (n,)."""
        return self.all_scores[self.indices]


def word_pairs(
    vectors: KeyedVectors | HasWordVectors, pairs: PathLike | None = None, case_insensitive: bool = True
) -> PairsResult:
    """Correlate the cosines of word pairs with their scores.

    Args:
        vectors: Vectors, or a model that has them.
        pairs: A file with two words, or two texts, and a score per line, separated by tabs, commas, semicolons or white
            space; by default the bundled one. The score is the first number after the words, in the same column in all
            lines; it may have a decimal comma. Other columns and a header line are ignored. "#" begins a comment line.
            A text has several words, and the vector that w2v.encode gives it.
        case_insensitive: Treat words that differ only in case as one word, with the vector of the first of them.

    Raises:
        W2VError: If the file cannot be read, if it has no pairs or more than 100,000, or if its scores have commas that
            may separate thousands.
    """
    vectors = vectors_of(vectors)
    rated = rated_pairs(vectors, pairs, case_insensitive)
    pearson, spearman = _correlations(rated.cosines, rated.scores)
    known = (rated.rows < len(vectors)).all(axis=1)
    _, known_spearman = _correlations(rated.cosines[known], rated.scores[known])
    return PairsResult(
        pearson=pearson,
        spearman=spearman,
        found=len(rated.rows),
        known=int(known.sum()),
        known_spearman=known_spearman,
        pairs=len(rated.all_scores),
        malformed=rated.malformed,
        first_malformed=rated.first_malformed,
        unknown=rated.unknown,
    )


def rated_pairs(vectors: KeyedVectors, pairs: PathLike | None, case_insensitive: bool = True) -> RatedPairs:
    """Read a file of pairs and compute their cosines. Arguments and errors are the same as in `word_pairs`."""
    index = WordIndex(vectors, len(vectors), case_insensitive)
    word_rows: list[list[int]] = []
    scores: list[float] = []
    score_texts: list[tuple[int, str]] = []  # (line number, score as it is written)
    unknown: dict[str, None] = {}  # an ordered set
    malformed, first_malformed = 0, None
    lines = _pair_lines(pairs)
    head = list(islice(lines, LAYOUT_LINES))
    layout = pair_layout([line for _, line in head]) or PairLayout(" ", 0, 2)
    for position, (number, line) in enumerate(chain(head, lines)):
        fields = layout.fields(line)
        pair = layout.pair(fields)
        if pair is None:
            if position or not layout.is_header(fields):
                malformed, first_malformed = malformed + 1, first_malformed or number
            continue
        if len(scores) == MAX_PAIRS:
            raise W2VError(f"{pairs}: more than {MAX_PAIRS} pairs: split the file")
        *words, score = pair
        scores.append(score)
        score_texts.append((number, fields[layout.score]))
        word_rows.append([index.row_or_composed(word) for word in words])
        unknown |= dict.fromkeys(word for word, row in zip(words, word_rows[-1], strict=True) if row < 0)
    if not scores:
        found = ""
        if head:
            number, text = head[0]
            found = f"{text[:60].strip()!r}" if text else f"longer than {MAX_LINE_BYTES:,} bytes"
            found = f", but line {number} is {found}"
        raise W2VError(f"{pairs}: no pairs found: a pair is a line of two words and a score{found}")
    _check_decimal_commas(pairs, score_texts)
    rows = np.array(word_rows, np.int64)
    known = np.flatnonzero((rows >= 0).all(axis=1))
    cosines = _cosines(vectors, index.composed_vectors(), rows[known])
    return RatedPairs(known, rows[known], cosines, np.array(scores), malformed, first_malformed, list(unknown))


def _check_decimal_commas(path: PathLike | None, scores: list[tuple[int, str]]) -> None:
    """Raise W2VError if commas in the scores may separate thousands. `scores` are (line number, text).

    "7,35" has a decimal comma. "1,234" is ambiguous unless another score of the file certainly has a decimal comma.
    """
    commas = [(number, score) for number, score in scores if "," in score]
    if not commas:
        return
    number, score = commas[0]
    for other_number, other in scores:
        if "." in other:
            raise W2VError(
                f"{path}, line {number}: the score {score!r} has a comma, but {other!r} in line {other_number} has a "
                "point: write all scores with a point"
            )
    if all(THOUSANDS.fullmatch(score) for _, score in commas):
        raise W2VError(
            f"{path}, line {number}: the score {score!r} may be {score.replace(',', '.')} or {score.replace(',', '')}: "
            "write scores with a decimal point, and without commas between thousands"
        )


def _pair_lines(path: PathLike | None) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line that is not empty and not a comment.

    A line that is too long to be a pair becomes an empty text, so that it counts as malformed.
    """
    for number, line in numbered_lines(path, "pairs"):
        if line.strip() and not line.startswith(b"#"):
            yield number, decode_line(path, number, line) if len(line) <= MAX_LINE_BYTES else ""


def _cosines(vectors: KeyedVectors, composed: NDArray[np.float32], pairs: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the cosine of each pair of rows (n, 2): float32 (n,). Row V + k has the vector composed[k]."""
    size, cosines = len(vectors), np.empty(len(pairs), np.float32)
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        batch = pairs[start : start + PAIRS_AT_ONCE]
        both = vectors.vectors[np.minimum(batch, size - 1)]  # (n, 2, D)
        for pair, side in np.argwhere(batch >= size):
            both[pair, side] = composed[batch[pair, side] - size]
        both = unit(both)
        cosines[start : start + len(batch)] = np.einsum("nd,nd->n", both[:, 0], both[:, 1])
    return cosines


def _correlations(
    first: NDArray[np.floating[Any]], second: NDArray[np.floating[Any]]
) -> tuple[float | None, float | None]:
    """Return Pearson's and Spearman's correlation; None for both if one variable is constant."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None, None
    from scipy import stats  # imported late: it takes longer to import than the whole package

    return float(stats.pearsonr(first, second).statistic), float(stats.spearmanr(first, second).statistic)
