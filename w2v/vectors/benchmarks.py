"""Benchmarks of word vectors: analogy questions and scored word pairs."""

from __future__ import annotations

import importlib.resources
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from w2v.detect import LAYOUT_LINES, PairLayout, lines, pair_layout
from w2v.errors import SettingsError, W2VError, one_line
from w2v.options import check_whole, formerly
from w2v.progress import Meter, Report
from w2v.shown import Result
from w2v.system.files import PathLike
from w2v.text.subwords import Ngrams
from w2v.vectors import _search
from w2v.vectors.cosines import EPSILON, unit

COSINES_AT_ONCE = 1 << 22  # computed at a time: 16 MB, about the size of a shared cache
QUESTIONS_AT_ONCE = 1 << 15
PAIRS_AT_ONCE = 1 << 12
MAX_SECTIONS, MAX_PAIRS = 10_000, 100_000  # in a file
MAX_LINE_BYTES = 1 << 16  # of a pair; a longer line is malformed

Method = Literal["add", "mul"]


class Vectors(Protocol):
    """V words and their vectors, as in KeyedVectors."""

    @property
    def vectors(self) -> NDArray[np.float32]: ...
    @property
    def ngrams(self) -> Ngrams | None: ...
    def __len__(self) -> int: ...
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
        malformed: number of lines that are neither a question nor a section name. first_malformed: the first of them.
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
    first_malformed: int | None
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
class Questions:
    """The Q questions of a file, in its order.

    Attributes:
        names: of the sections. sections: int32 (Q,), the number of each question's section.
        rows: int32 (Q, 4), the rows of the words; -1 for one that is not in the vocabulary.
        malformed, first_malformed: as in AnalogyResult.
    """

    names: list[str]
    sections: NDArray[np.int32]
    rows: NDArray[np.int32]
    malformed: int
    first_malformed: int | None

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether all words of a question are in the vocabulary, bool (Q,)."""
        known: NDArray[np.bool_] = np.all(self.rows >= 0, axis=1)
        return known


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


class Trained(Protocol):
    """A model of which the word vectors are a part."""

    @property
    def wv(self) -> Vectors: ...


@formerly(top="restrict_vocab")
def analogies(
    vectors: Vectors | Trained,
    questions: PathLike | None = None,
    restrict_vocab: int = 30_000,
    method: Method = "add",
    case_insensitive: bool = True,
    progress: Report | None = None,
) -> AnalogyResult:
    """Answer questions "a b c d" (a is to b as c is to d) and count how often d is the best answer.

    The answer is the word x, among the first `restrict_vocab` words of the vocabulary, without a, b and c, that
    maximises cos(x, b) - cos(x, a) + cos(x, c) (3CosAdd, Mikolov et al. 2013) or, with method "mul", cos(x, b)
    cos(x, c) / cos(x, a) of cosines shifted to 0..1 (3CosMul, Levy & Goldberg 2014).

    `questions` is a file with four words per line and a line ": name" before each section, by default the bundled one.
    Sections whose name begins with "gram" count as syntactic, the others as semantic. If `case_insensitive`, the first
    of several words that differ only in case counts for all of them. `progress` is called in phase "answer".

    Raises W2VError for a file that cannot be read or has no questions, SettingsError for a `restrict_vocab` below 1 or
    an unknown method.
    """
    known: Vectors = vectors_of(vectors)
    found, correct = answers(known, questions, restrict_vocab, method, case_insensitive, progress)
    flags = (correct, found.known, None)
    tallies = np.stack([np.bincount(found.sections, each, len(found.names)) for each in flags]).astype(np.int64)
    right, answered, totals = tallies
    syntactic = np.array([name.startswith("gram") for name in found.names])
    return AnalogyResult(
        accuracy=_share(right, answered),
        semantic=_share(right[~syntactic], answered[~syntactic]),
        syntactic=_share(right[syntactic], answered[syntactic]),
        answered=int(answered.sum()),
        questions=int(totals.sum()),
        malformed=found.malformed,
        first_malformed=found.first_malformed,
        top=min(restrict_vocab, len(known)),
        method=method,
        sections=[Section(name, *numbers) for name, numbers in zip(found.names, tallies.T.tolist(), strict=True)],
    )


def answers(
    vectors: Vectors,
    questions: PathLike | None,
    restrict_vocab: int,
    method: Method,
    case_insensitive: bool = True,
    progress: Report | None = None,
) -> tuple[Questions, NDArray[np.bool_]]:
    """The questions of a file, and whether each is answered correctly; arguments and errors are as in `analogies`."""
    check_whole(1, restrict_vocab=restrict_vocab)
    if method not in ("add", "mul"):
        raise SettingsError(f'the method must be "add" or "mul", not {method!r}')
    index = _Index(vectors, min(restrict_vocab, len(vectors)), case_insensitive)
    found = _read_questions(questions, index)
    if not len(found.rows):
        raise W2VError(f'{questions}: no questions: they are lines of four words, with ": name" before each section')
    correct = np.zeros(len(found.rows), np.bool_)
    answered = np.flatnonzero(found.known)
    for start in range(0, len(answered), QUESTIONS_AT_ONCE):
        block = answered[start : start + QUESTIONS_AT_ONCE]
        best = best_answers(vectors.vectors, found.rows[block, :3], index.variants, method, progress)
        correct[block] = index.heads[best] == found.rows[block, 3]
    return found, correct


def section_pairs(
    vectors: Vectors, questions: PathLike | None = None, section: str | None = None, case_insensitive: bool = True
) -> tuple[str, NDArray[np.int64]]:
    """The name of a section of a question file, and the rows of its pairs of words, (n, 2), each pair once.

    The default is the first section that has a pair with both words in the vocabulary. `questions` and
    `case_insensitive` are those of `analogies`. Raises W2VError for a file that cannot be read, for a missing section,
    and if no pair is known.
    """
    file = _read_questions(questions, _Index(vectors, len(vectors), case_insensitive))
    if section is not None and section not in file.names:
        raise W2VError(
            f"{section[:60]!r} is not a section of the questions: choose from {', '.join(file.names)[:1000]}"
        )
    for number, name in enumerate(file.names):
        pairs = file.rows[file.sections == number].reshape(-1, 2).tolist() if section in (None, name) else []
        if known := dict.fromkeys((a, b) for a, b in pairs if min(a, b) >= 0):  # in the order of the file
            return name, np.array([*known], np.int64)
    raise W2VError(f"no pair of {'the questions' if section is None else section} is in the vocabulary")


def vectors_of(model: object) -> Any:
    """The vectors of a model, or these vectors. Raises W2VError for anything else, such as a path."""
    vectors = getattr(model, "wv", model)
    if not hasattr(vectors, "words_in"):
        raise W2VError(f"{one_line(repr(model))[:60]} is no model: give one, such as w2v.load('model.bin')")
    return vectors


def word_pairs(vectors: Vectors | Trained, pairs: PathLike | None = None, case_insensitive: bool = True) -> PairsResult:
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


analogy, similarity = analogies, word_pairs  # their names on the command line


def rated_pairs(vectors: Vectors, pairs: PathLike | None, case_insensitive: bool = True) -> RatedPairs:
    """Read a file of pairs; arguments and errors are those of `word_pairs`."""
    index = _Index(vectors, len(vectors), case_insensitive)
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
    for number, line in _lines(path, "pairs"):
        if line.strip() and not line.startswith(b"#"):
            yield number, _decoded(path, number, line) if len(line) <= MAX_LINE_BYTES else ""


def _cosines(vectors: Vectors, composed: list[NDArray[np.float32]], pairs: NDArray[np.int64]) -> NDArray[np.float32]:
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
    asked = indices.reshape(-1, 3).astype(np.int32)
    meter = Meter(progress, "answer")
    for start in range(0, top, width):
        cosines = queries @ unit(vectors[start : min(start + width, top)]).T  # (U, W)
        if method == "mul":
            cosines = (1 + cosines) / 2
        _search.update_best(cosines, asked, used, variants, start, method == "mul", EPSILON, scores, rows)
        meter(min(start + width, top), top)
    return rows


def index_words(words: Iterable[str]) -> tuple[dict[str, int], NDArray[np.int32], NDArray[np.int32]]:
    """Index V words, some of which may be equal.

    Returns the first row of each word; the first row with the same word for each row, int32 (V,); and the next row with
    the same word for each row, or -1, int32 (V,).
    """
    first: dict[str, int] = {}
    heads = np.fromiter((first.setdefault(word, row) for row, word in enumerate(words)), np.int32)
    order = np.argsort(heads, kind="stable").astype(np.int32)
    variants = np.full(len(heads), -1, np.int32)
    same = np.flatnonzero(np.diff(heads[order]) == 0)
    variants[order[same]] = order[same + 1]
    return first, heads, variants


class _Index:
    """The rows of words; heads and variants are those of index_words."""

    def __init__(self, vectors: Vectors, top: int, case_insensitive: bool) -> None:
        self._vectors, self._fold = vectors, str.casefold if case_insensitive else str
        self._first, self.heads, self.variants = index_words(map(self._fold, vectors.first_words(top)))
        self.composed: list[NDArray[np.float32]] = []

    def row(self, word: str) -> int:
        """The row of a word, or of the word normalised as in training; -1 if neither is known."""
        row = self._first.get(self._fold(word), -1)
        if row < 0 and len(words := self._vectors.words_in(word)) == 1:
            row = self._first.get(self._fold(words[0]), -1)
        return row

    def row_or_composed(self, word: str) -> int:
        """As `row`, but V + k for an unknown word whose vector is made of its n-grams, which becomes composed[k]."""
        row = self.row(word)
        if row < 0 and self._vectors.ngrams:
            words = self._vectors.words_in(word)
            vector = self._vectors.ngrams.vector(words[0] if len(words) == 1 else word)
            if vector is not None:
                self.composed.append(vector)
                return len(self._vectors) + len(self.composed) - 1
        return row


def _read_questions(path: PathLike | None, index: _Index) -> Questions:
    names: list[str] = []
    sections, rows, malformed = array("i"), array("i"), 0
    first_malformed = None
    for number, line in _lines(path, "questions"):
        words = line.split(None, 4)
        if line.startswith(b":"):
            names.append(_decoded(path, number, line[1:].strip()))
            if len(names) > MAX_SECTIONS:
                raise W2VError(f"{path}: more than {MAX_SECTIONS} sections")
        elif len(words) == 4:
            names = names or ["without a section"]
            sections.append(len(names) - 1)
            rows.extend(index.row(_decoded(path, number, word)) for word in words)
        elif words:
            malformed, first_malformed = malformed + 1, first_malformed or number
    return Questions(names, np.array(sections), np.array(rows).reshape(-1, 4), malformed, first_malformed)


def _lines(path: PathLike | None, kind: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file of this kind, by default of the bundled one."""
    if path is not None:
        yield from lines(path, kind)
        return
    with importlib.resources.as_file(importlib.resources.files("w2v.data") / f"{kind}.txt") as file:
        yield from lines(file)


def _decoded(path: PathLike | None, number: int, text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise W2VError(f"{path}, line {number}: {text[:60]!r} is not UTF-8") from None


def _share(right: NDArray[Any], answered: NDArray[Any]) -> float | None:
    return float(right.sum() / answered.sum()) if answered.sum() else None
