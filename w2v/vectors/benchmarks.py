"""Benchmarks of word vectors: analogy questions and scored word pairs."""

from __future__ import annotations

import importlib.resources
import math
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError
from w2v.files import PathLike, lines
from w2v.progress import Meter, Report
from w2v.shown import Result
from w2v.vectors import _search
from w2v.vectors.cosines import EPSILON, unit

COSINES_AT_ONCE = 1 << 22  # computed at a time: 16 MB, about the size of a shared cache
QUESTIONS_AT_ONCE = 1 << 15
PAIRS_AT_ONCE = 1 << 12
MAX_SECTIONS, MAX_PAIRS = 10_000, 100_000  # in a file

Method = Literal["add", "mul"]


class Vectors(Protocol):
    """V words and their vectors, as in KeyedVectors."""

    @property
    def vectors(self) -> NDArray[np.float32]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def first_words(self, stop: int) -> list[str]: ...
    def words_in(self, text: str) -> list[str]: ...


@dataclass(frozen=True)
class Section:
    """The numbers of questions in a section of a question file: correct, answered, and in all.

    A question is answered if all its words are in the vocabulary.
    """

    name: str
    correct: int
    answered: int
    total: int


@dataclass(frozen=True)
class AnalogyResult(Result):
    """The result of `analogies`.

    Attributes:
        accuracy, semantic, syntactic: share of the answered questions (all of them, or those of semantic or syntactic
            sections) that are answered correctly, 0 to 1, or None if none is answered.
        answered: number of questions whose words are all in the vocabulary.
        questions: number of all questions.
        malformed: number of lines that are neither a question nor a section name.
        top: number of words searched.
        method: see `analogies`.
        sections: the results of the sections.
    """

    accuracy: float | None
    semantic: float | None
    syntactic: float | None
    answered: int
    questions: int
    malformed: int
    top: int
    method: Method
    sections: list[Section]


@dataclass(frozen=True)
class PairsResult(Result):
    """The result of `word_pairs`.

    Attributes:
        pearson, spearman: correlations of the cosines with the scores, -1 to 1, or None for fewer than two pairs or
            if all cosines or all scores are equal.
        found: number of pairs with both words in the vocabulary.
        pairs: number of all pairs.
        malformed: number of lines that are not a pair with a score.
        unknown: the words that are not in the vocabulary.
    """

    pearson: float | None
    spearman: float | None
    found: int
    pairs: int
    malformed: int
    unknown: list[str]


@dataclass(frozen=True)
class Answers:
    """The answers to the Q questions of a file, in its order.

    Attributes:
        names: of the sections. sections: int64 (Q,), the number of each question's section.
        known: bool (Q,), whether all words are in the vocabulary. correct: bool (Q,), whether the answer is right.
        malformed, top: as in AnalogyResult.
    """

    names: list[str]
    sections: NDArray[np.int64]
    known: NDArray[np.bool_]
    correct: NDArray[np.bool_]
    malformed: int
    top: int


@dataclass(frozen=True)
class RatedPairs:
    """The n pairs of a file whose words are both in the vocabulary, in the order of the file.

    Attributes:
        numbers: int64 (n,), their indices among all pairs of the file. rows: int64 (n, 2), the rows of their words.
        all_scores: float64 (P,), the scores of all pairs of the file.
        malformed, unknown: as in PairsResult.
    """

    numbers: NDArray[np.int64]
    rows: NDArray[np.int64]
    all_scores: NDArray[np.float64]
    malformed: int
    unknown: list[str]

    @property
    def scores(self) -> NDArray[np.float64]:
        return self.all_scores[self.numbers]


def analogies(
    vectors: Vectors,
    questions: PathLike | None = None,
    top: int = 30_000,
    method: Method = "add",
    case_insensitive: bool = True,
    progress: Report | None = None,
) -> AnalogyResult:
    """Answer questions "a b c d" (a is to b as c is to d) and count how often d is the best answer.

    The answer is the word x, among the first `top` words of the vocabulary without a, b and c, that maximises
    cos(x, b) - cos(x, a) + cos(x, c) (3CosAdd, Mikolov et al. 2013) or, with method "mul", cos(x, b) cos(x, c) /
    cos(x, a) of cosines shifted to 0..1 (3CosMul, Levy & Goldberg 2014).

    `questions` is a file with four words per line and a line ": name" before each section, by default the bundled one.
    Sections whose name begins with "gram" count as syntactic, the others as semantic. If `case_insensitive`, the first
    of several words that differ only in case counts for all of them. `progress` is called in phase "answer".

    Raises W2VError for a file that cannot be read or has no questions, SettingsError for a `top` below 1 or an unknown
    method.
    """
    found = answers(vectors, questions, top, method, case_insensitive, progress)
    tallies = [
        np.bincount(found.sections, flags, len(found.names)).astype(np.int64)
        for flags in (found.correct, found.known, None)
    ]
    right, answered, totals = tallies
    syntactic = np.array([name.startswith("gram") for name in found.names])
    return AnalogyResult(
        accuracy=_share(right, answered),
        semantic=_share(right[~syntactic], answered[~syntactic]),
        syntactic=_share(right[syntactic], answered[syntactic]),
        answered=int(answered.sum()),
        questions=int(totals.sum()),
        malformed=found.malformed,
        top=found.top,
        method=method,
        sections=[
            Section(name, *section)
            for name, *section in zip(found.names, right.tolist(), answered.tolist(), totals.tolist(), strict=True)
        ],
    )


def answers(
    vectors: Vectors,
    questions: PathLike | None,
    top: int,
    method: Method,
    case_insensitive: bool = True,
    progress: Report | None = None,
) -> Answers:
    """Answer each question; arguments and errors are those of `analogies`."""
    if top < 1:
        raise SettingsError(f"top must be at least 1, not {top}")
    if method not in ("add", "mul"):
        raise SettingsError(f'the method must be "add" or "mul", not {method!r}')
    top = min(top, len(vectors))
    fold = str.casefold if case_insensitive else str
    first, heads, variants = index_words(map(fold, vectors.first_words(top)))
    file = _Questions(questions, lambda word: _row(word, vectors, first, fold))
    parts = []
    for numbers, rows in file:
        known = np.all(rows >= 0, axis=1)
        correct = np.zeros(len(rows), bool)
        best = best_answers(vectors.vectors, rows[known, :3], variants, method, progress)
        correct[known] = heads[best] == rows[known, 3]
        parts.append((numbers, known, correct))
    if not parts:
        raise W2VError(f'{questions}: no questions: they are lines of four words, with ": name" before each section')
    sections, known, correct = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Answers(file.names, sections, known, correct, file.malformed, top)


def section_pairs(
    vectors: Vectors, questions: PathLike | None = None, section: str | None = None, case_insensitive: bool = True
) -> tuple[str, NDArray[np.int64]]:
    """The name of a section of a question file, and the rows of its pairs of words, (n, 2), each pair once.

    The default is the first section that has a pair with both words in the vocabulary. `questions` and
    `case_insensitive` are those of `analogies`. Raises W2VError for a file that cannot be read, for a missing section,
    and if no pair is known.
    """
    fold = str.casefold if case_insensitive else str
    first = index_words(map(fold, vectors))[0]
    file = _Questions(questions, lambda word: first.get(fold(word), -1))
    pairs: dict[int, dict[tuple[int, int], None]] = {}  # by section, in the order of the file
    for numbers, rows in file:
        for number, (a, b, c, d) in zip(numbers.tolist(), rows.tolist(), strict=True):
            pairs.setdefault(number, {}).update({pair: None for pair in ((a, b), (c, d)) if min(pair) >= 0})
    if section is not None and section not in file.names:
        raise W2VError(
            f"{section[:60]!r} is not a section of the questions: choose from {', '.join(file.names)[:1000]}"
        )
    for number, name in enumerate(file.names):
        if section in (None, name) and pairs.get(number):
            return name, np.array([*pairs[number]], np.int64)
    raise W2VError(f"no pair of {'the questions' if section is None else section} is in the vocabulary")


def word_pairs(vectors: Vectors, pairs: PathLike | None = None, case_insensitive: bool = True) -> PairsResult:
    """Correlate the cosines of word pairs with their scores.

    `pairs` is a file with lines "word word score", separated by tabs or spaces, by default the bundled one; "#" begins
    a comment line. If `case_insensitive`, the first of several words that differ only in case counts for all of them.
    Raises W2VError for a file that cannot be read, has no pairs or more than MAX_PAIRS.
    """
    rated = rated_pairs(vectors, pairs, case_insensitive)
    pearson, spearman = _correlations(cosines_of(vectors, rated.rows), rated.scores)
    return PairsResult(pearson, spearman, len(rated.rows), len(rated.all_scores), rated.malformed, rated.unknown)


def rated_pairs(vectors: Vectors, pairs: PathLike | None, case_insensitive: bool = True) -> RatedPairs:
    """Read a file of pairs; arguments and errors are those of `word_pairs`."""
    fold = str.casefold if case_insensitive else str
    first = index_words(map(fold, vectors))[0]
    numbers: list[int] = []
    rows: list[tuple[int, int]] = []
    scores: list[float] = []
    unknown: dict[str, None] = {}
    malformed = 0
    for number, line in _lines(pairs, "pairs.txt"):
        if not line.strip() or line.startswith(b"#"):
            continue
        fields = line.split(b"\t", 3) if b"\t" in line else line.split(None, 3)
        score = _parsed_score(fields[2]) if len(fields) == 3 else math.nan
        if not math.isfinite(score):
            malformed += 1
            continue
        scores.append(score)
        if len(scores) > MAX_PAIRS:
            raise W2VError(f"{pairs}: more than {MAX_PAIRS} pairs")
        words = [_decoded(pairs, number, field.strip()) for field in fields[:2]]
        left, right = (_row(word, vectors, first, fold) for word in words)
        unknown |= dict.fromkeys(word for word, row in zip(words, (left, right), strict=True) if row < 0)
        if left >= 0 and right >= 0:
            numbers.append(len(scores) - 1)
            rows.append((left, right))
    if not scores:
        raise W2VError(f"{pairs}: no pairs: they are lines of two words and a score")
    pair_rows = np.array(rows, np.int64).reshape(-1, 2)
    return RatedPairs(np.array(numbers, np.int64), pair_rows, np.array(scores), malformed, list(unknown))


def cosines_of(vectors: Vectors, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """The cosine of each pair of rows (n, 2): float32 (n,)."""
    cosines = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        left, right = (unit(vectors.vectors[side]) for side in rows[start : start + PAIRS_AT_ONCE].T)
        cosines[start : start + PAIRS_AT_ONCE] = np.einsum("ij,ij->i", left, right)
    return cosines


def _parsed_score(field: bytes) -> float:
    """A field as a number, or NaN if it is not one."""
    try:
        return float(field)
    except ValueError:
        return math.nan


def _correlations(
    first: NDArray[np.floating[Any]], second: NDArray[np.floating[Any]]
) -> tuple[float | None, float | None]:
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None, None
    from scipy import stats  # its import takes longer than that of the whole package

    return float(stats.pearsonr(first, second).statistic), float(stats.spearmanr(first, second).statistic)


def best_answers(
    vectors: NDArray[np.float32],
    questions: NDArray[np.int32],
    variants: NDArray[np.int32],
    method: Method,
    progress: Report | None = None,
) -> NDArray[np.int64]:
    """The row of the best answer to each question (Q, 3), among the first len(variants) rows."""
    top = len(variants)
    used, indices = np.unique(questions, return_inverse=True)  # (U,)
    queries = unit(vectors[used])  # (U, D)
    width = max(1, min(_search.WIDTH, COSINES_AT_ONCE // max(1, len(used))))
    scores = np.full(len(questions), -np.inf, np.float32)
    rows = np.zeros(len(questions), np.int64)
    meter = Meter(progress, "answer")
    for start in range(0, top, width):
        cosines = queries @ unit(vectors[start : min(start + width, top)]).T  # (U, W)
        if method == "mul":
            cosines = (1 + cosines) / 2
        _search.update_best(
            cosines,
            indices.reshape(-1, 3).astype(np.int32),
            used,
            variants,
            start,
            method == "mul",
            EPSILON,
            scores,
            rows,
        )
        meter(min(start + width, top), top)
    return rows


def index_words(
    words: Iterable[str],
) -> tuple[dict[str, int], NDArray[np.int32], NDArray[np.int32]]:
    """Index V words, some of which may be equal.

    Returns the first row of each word; the first row with the same word for each row, int32 (V,); and the next row with
    the same word for each row, or -1, int32 (V,).
    """
    first: dict[str, int] = {}
    heads: list[int] = []
    for row, word in enumerate(words):
        heads.append(first.setdefault(word, row))
    variants = np.full(len(heads), -1, np.int32)
    latest = np.arange(len(heads))  # by first row: the last equal row so far
    for row, head in enumerate(heads):
        if row != head:
            variants[latest[head]] = row
            latest[head] = row
    return first, np.array(heads, np.int32), variants


def _row(word: str, vectors: Vectors, first: dict[str, int], fold: Callable[[str], str]) -> int:
    """The row of a word, or of the word normalised as in training; -1 if neither is known."""
    row = first.get(fold(word), -1)
    if row < 0 and len(words := vectors.words_in(word)) == 1:
        row = first.get(fold(words[0]), -1)
    return row


class _Questions:
    """The questions of a file, in blocks: (number of the section (n,), rows of the words (n, 4))."""

    def __init__(self, path: PathLike | None, row_of: Callable[[str], int]) -> None:
        self.names: list[str] = []  # the names of the sections so far
        self.malformed = 0
        self._path, self._row_of = path, row_of

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
        numbers, rows = array("q"), array("i")
        for number, line in _lines(self._path, "questions.txt"):
            words = line.split(None, 4)
            if line.startswith(b":"):
                self.names.append(_decoded(self._path, number, line[1:].strip()))
                if len(self.names) > MAX_SECTIONS:
                    raise W2VError(f"{self._path}: more than {MAX_SECTIONS} sections")
            elif len(words) == 4:
                self.names = self.names or ["without a section"]
                numbers.append(len(self.names) - 1)
                rows.extend(self._row_of(_decoded(self._path, number, word)) for word in words)
            elif words:
                self.malformed += 1
            if len(numbers) == QUESTIONS_AT_ONCE:
                yield np.array(numbers), np.array(rows).reshape(-1, 4)
                numbers, rows = array("q"), array("i")
        if numbers:
            yield np.array(numbers), np.array(rows).reshape(-1, 4)


def _lines(path: PathLike | None, bundled: str) -> Iterator[tuple[int, bytes]]:
    if path is not None:
        yield from lines(path)
        return
    with importlib.resources.as_file(importlib.resources.files("w2v.data") / bundled) as file:
        yield from lines(file)


def _decoded(path: PathLike | None, number: int, text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise W2VError(f"{path}, line {number}: {text[:60]!r} is not UTF-8") from None


def _share(right: NDArray[Any], answered: NDArray[Any]) -> float | None:
    return float(right.sum() / answered.sum()) if answered.sum() else None
