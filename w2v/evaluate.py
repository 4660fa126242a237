"""How good vectors are: analogy questions and scored word pairs."""

import importlib.resources
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from w2v import _search
from w2v.errors import SettingsError, W2VError
from w2v.files import PathLike
from w2v.vectors import EPSILON, KeyedVectors, unit

TILE = 1 << 22  # cosines computed at a time: 16 MB, about what a shared cache holds

Method = Literal["add", "mul"]


@dataclass(frozen=True)
class Section:
    """One section of a question file; questions with words outside the vocabulary are not answered."""

    name: str
    correct: int
    answered: int
    total: int


@dataclass(frozen=True)
class AnalogyResult:
    """Shares of answered questions that are answered correctly, 0 to 1, or None where none is answered.

    `malformed` lines are neither questions nor section names; `top` is how many words were searched.
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
class PairsResult:
    """Correlations of cosines with given scores, -1 to 1; None for fewer than two pairs, or all values equal.

    `found` of `pairs` have both words in the vocabulary; `unknown` are the words that are not in it.
    """

    pearson: float | None
    spearman: float | None
    found: int
    pairs: int
    malformed: int
    unknown: list[str]


def analogies(
    vectors: KeyedVectors,
    questions: PathLike | None = None,
    top: int = 30_000,
    method: Method = "add",
    case_insensitive: bool = True,
) -> AnalogyResult:
    """Answer questions "a b c d" (a is to b as c is to d) and count how often d is the best answer.

    The answer is the word, among the `top` first of the vocabulary but a, b and c, that maximises
    cos(b) - cos(a) + cos(c) (3CosAdd, Mikolov et al. 2013) or, with method "mul", cos(b) cos(c) / cos(a) with
    the cosines shifted to 0..1 (3CosMul, Levy & Goldberg 2014). A file has four words a line and ": name"
    before each section; sections whose name begins with "gram" count as syntactic, the others as semantic.
    Where words differ only in case, the first one is asked. Without `questions` the bundled ones are used.
    Raises W2VError for a file without questions, SettingsError for a `top` below 1 or an unknown method.
    """
    if top < 1:
        raise SettingsError(f"top must be at least 1, not {top}")
    if method not in ("add", "mul"):
        raise SettingsError(f'the method must be "add" or "mul", not {method!r}')
    names, numbers, asked, malformed = _read_questions(questions)
    top = min(top, len(vectors))
    fold = str.casefold if case_insensitive else str
    first, heads, variants = _index(map(fold, vectors.first_words(top)))
    rows = np.array([[first.get(fold(word), -1) for word in words] for words in asked], np.int32)  # (Q, 4)
    known = np.all(rows >= 0, axis=1)
    correct = np.zeros(len(rows), bool)
    correct[known] = heads[_answers(vectors, rows[known, :3], variants, method)] == rows[known, 3]

    totals, answered, right = (np.bincount(numbers, flags, len(names)) for flags in (None, known, correct))
    syntactic = np.array([name.startswith("gram") for name in names])
    return AnalogyResult(
        accuracy=_share(right, answered),
        semantic=_share(right[~syntactic], answered[~syntactic]),
        syntactic=_share(right[syntactic], answered[syntactic]),
        answered=int(known.sum()),
        questions=len(rows),
        malformed=malformed,
        top=top,
        method=method,
        sections=[
            Section(name, int(good), int(tried), int(total))
            for name, good, tried, total in zip(names, right, answered, totals, strict=True)
        ],
    )


def word_pairs(vectors: KeyedVectors, pairs: PathLike | None = None, case_insensitive: bool = True) -> PairsResult:
    """Correlate the cosines of word pairs with their scores in a file of "word word score" lines.

    Fields are separated by tabs or blanks, "#" begins a comment line. Where words differ only in case, the
    first one counts. Without `pairs` the bundled ones are used. Raises W2VError for a file without pairs.
    """
    scored: list[tuple[str, str, float]] = []
    malformed = 0
    for line in _lines(pairs, "pairs.txt"):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            word1, word2, score = line.split("\t") if "\t" in line else line.split()
            value = float(score)
        except ValueError:
            value = math.nan
        if math.isfinite(value):
            scored.append((word1.strip(), word2.strip(), value))
        else:
            malformed += 1
    if not scored:
        raise W2VError(f"{pairs}: it holds no pairs: lines of two words and a score")
    fold = str.casefold if case_insensitive else str
    first = _index(map(fold, vectors))[0]
    unknown = [word for pair in scored for word in pair[:2] if fold(word) not in first]
    rows = np.array([[first.get(fold(word), -1) for word in pair[:2]] for pair in scored])  # (P, 2)
    known = np.all(rows >= 0, axis=1)
    left, right = (unit(vectors.vectors[rows[known, side]]) for side in (0, 1))
    cosines = np.einsum("ij,ij->i", left, right)
    pearson, spearman = _correlations(cosines, np.array([score for _, _, score in scored])[known])
    return PairsResult(pearson, spearman, int(known.sum()), len(scored), malformed, list(dict.fromkeys(unknown)))


def _correlations(
    first: NDArray[np.floating[Any]], second: NDArray[np.floating[Any]]
) -> tuple[float | None, float | None]:
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None, None
    from scipy import stats  # takes longer to import than all the rest of the package

    return float(stats.pearsonr(first, second).statistic), float(stats.spearmanr(first, second).statistic)


def _answers(
    vectors: KeyedVectors, questions: NDArray[np.int32], variants: NDArray[np.int32], method: Method
) -> NDArray[np.int64]:
    """The row of the best answer to each question (Q, 3), among the first len(variants) rows."""
    top = len(variants)
    used, places = np.unique(questions, return_inverse=True)  # (U,)
    queries = unit(vectors.vectors[used])  # (U, D)
    width = max(1, min(_search.WIDTH, TILE // max(1, len(used))))
    scores = np.full(len(questions), -np.inf, np.float32)
    rows = np.zeros(len(questions), np.int64)
    for start in range(0, top, width):
        cosines = queries @ unit(vectors.vectors[start : min(start + width, top)]).T  # (U, W)
        if method == "mul":
            cosines = (1 + cosines) / 2
        _search.update_best(
            cosines,
            places.reshape(-1, 3).astype(np.int32),
            used,
            variants,
            start,
            method == "mul",
            EPSILON,
            scores,
            rows,
        )
    return rows


def _index(
    words: Iterable[str],
) -> tuple[dict[str, int], NDArray[np.int32], NDArray[np.int32]]:
    """For V words, some equal: the first row of each word; for each row the first and the next equal one."""
    first: dict[str, int] = {}
    heads: list[int] = []
    for row, word in enumerate(words):
        heads.append(first.setdefault(word, row))
    variants = np.full(len(heads), -1, np.int32)
    latest = np.arange(len(heads))  # of the rows equal to this first one
    for row, head in enumerate(heads):
        if row != head:
            variants[latest[head]] = row
            latest[head] = row
    return first, np.array(heads, np.int32), variants


def _read_questions(path: PathLike | None) -> tuple[list[str], list[int], list[list[str]], int]:
    """The names of the sections; of each question the section and the words; the count of malformed lines."""
    names: list[str] = []
    numbers: list[int] = []
    questions: list[list[str]] = []
    malformed = 0
    for line in _lines(path, "questions.txt"):
        words = line.split()
        if line.startswith(":"):
            names.append(line[1:].strip())
        elif len(words) == 4:
            names = names or ["without a section"]
            numbers.append(len(names) - 1)
            questions.append(words)
        elif words:
            malformed += 1
    if not questions:
        raise W2VError(f'{path}: it holds no questions: lines of four words, and ": name" before each section')
    return names, numbers, questions, malformed


def _lines(path: PathLike | None, bundled: str) -> list[str]:
    source = importlib.resources.files("w2v.data") / bundled if path is None else Path(path)
    try:
        return source.read_bytes().decode("utf-8-sig").split("\n")
    except OSError as error:
        raise W2VError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise W2VError(f"{path}: it is not UTF-8 text: {error}") from error


def _share(right: NDArray[Any], answered: NDArray[Any]) -> float | None:
    return float(right.sum() / answered.sum()) if answered.sum() else None
