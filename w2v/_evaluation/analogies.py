"""Score vectors on analogy questions `a b c d`: a is to b as c is to d."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._detect import decode_line
from w2v._display import Result
from w2v._errors import SettingsError, W2VError
from w2v._evaluation.word_index import WordIndex, numbered_lines
from w2v._options import check_numbers
from w2v._progress import Meter, Report
from w2v._system.files import PathLike
from w2v._vectors import _search
from w2v._vectors.cosines import EPSILON, unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of
from w2v._vectors.query import Method

COSINES_AT_ONCE = 1 << 22  # cosines in a batch: 16 MB, about the size of a shared cache
QUESTIONS_AT_ONCE = 1 << 15  # questions in a batch


@dataclass(frozen=True)
class Section:
    """The results of one section of a question file.

    Attributes:
        name: The name of the section.
        correct: Number of questions answered correctly.
        answered: Number of questions with all four words among the words searched for answers.
        total: Number of all questions.
    """

    name: str
    correct: int
    answered: int
    total: int


@dataclass(frozen=True)
class AnalogyResult(Result):
    """The result of `analogies`.

    Attributes:
        accuracy: Correct answers divided by answered questions, 0 to 1, or None if none is answered.
        semantic, syntactic: The accuracy on semantic and on syntactic sections only.
        answered: Number of questions with all four words among the `restrict_vocab` words.
        questions: Number of all questions.
        malformed: Number of lines that are neither a question nor a section name.
        first_malformed: The number of the first such line, from 1, or None.
        restrict_vocab: Number of words searched for answers.
        method: "add" or "mul", see `analogies`.
        sections: The results of each section.
    """

    accuracy: float | None
    semantic: float | None
    syntactic: float | None
    answered: int
    questions: int
    malformed: int
    first_malformed: int | None
    restrict_vocab: int
    method: Method
    sections: list[Section]


@dataclass(frozen=True)
class Questions:
    """The Q questions of a file, in file order.

    Attributes:
        names: The names of the sections.
        sections: int32 (Q,), the index of each question's section in `names`.
        rows: int32 (Q, 4), the rows of the words; -1 for words that are not in the WordIndex.
        malformed, first_malformed: As in AnalogyResult.
    """

    names: list[str]
    sections: NDArray[np.int32]
    rows: NDArray[np.int32]
    malformed: int
    first_malformed: int | None

    @property
    def known(self) -> NDArray[np.bool_]:
        """True for questions with all words in the WordIndex, bool (Q,)."""
        known: NDArray[np.bool_] = np.all(self.rows >= 0, axis=1)
        return known


def analogies(
    vectors: KeyedVectors | HasWordVectors,
    questions: PathLike | None = None,
    restrict_vocab: int = 30_000,
    method: Method = "add",
    case_insensitive: bool = True,
    progress: Report | None = None,
) -> AnalogyResult:
    """Answer questions "a b c d" (a is to b as c is to d) and count how often d is the best answer.

    Args:
        vectors: Vectors, or a model that has them.
        questions: A file with four words per line and a line ": name" before each section; by default the bundled one.
            Sections with names that begin with "gram" count as syntactic, the others as semantic.
        restrict_vocab: Search for answers among this many words, the first of the vocabulary. a, b and c are excluded.
            Questions with any other word are not answered.
        method: The score that the answer x maximises. "add" is 3CosAdd (Mikolov et al. 2013):
            cos(x, b) - cos(x, a) + cos(x, c). "mul" is 3CosMul (Levy & Goldberg 2014): cos(x, b) cos(x, c) / cos(x, a),
            with cosines shifted to 0..1.
        case_insensitive: Treat words that differ only in case as one word, with the vector of the first of them.
        progress: Called in phase "answer".

    Raises:
        W2VError: If the file cannot be read or has no questions.
        SettingsError: If `restrict_vocab` is less than 1, or if the method is unknown.
    """
    keyed = vectors_of(vectors)
    question_set, correct = answer_questions(keyed, questions, restrict_vocab, method, case_insensitive, progress)
    names = question_set.names
    right, answered, totals = (
        np.bincount(question_set.sections[each], minlength=len(names)) for each in (correct, question_set.known, ...)
    )
    syntactic = np.array([name.startswith("gram") for name in names])
    return AnalogyResult(
        accuracy=_accuracy(right, answered),
        semantic=_accuracy(right[~syntactic], answered[~syntactic]),
        syntactic=_accuracy(right[syntactic], answered[syntactic]),
        answered=int(answered.sum()),
        questions=int(totals.sum()),
        malformed=question_set.malformed,
        first_malformed=question_set.first_malformed,
        restrict_vocab=min(restrict_vocab, len(keyed)),
        method=method,
        sections=[
            Section(*each) for each in zip(names, right.tolist(), answered.tolist(), totals.tolist(), strict=True)
        ],
    )


def answer_questions(
    vectors: KeyedVectors,
    questions: PathLike | None,
    restrict_vocab: int,
    method: Method,
    case_insensitive: bool = True,
    progress: Report | None = None,
) -> tuple[Questions, NDArray[np.bool_]]:
    """Answer the questions of a file. Return them, and True for each question answered correctly, bool (Q,).

    Arguments and errors are the same as in `analogies`.
    """
    check_numbers(restrict_vocab=restrict_vocab)
    if method not in ("add", "mul"):
        raise SettingsError(f'the method must be "add" or "mul", not {method!r}')
    index = WordIndex(vectors, min(restrict_vocab, len(vectors)), case_insensitive)
    question_set = _read_questions(questions, index)
    if not len(question_set.rows):
        raise W2VError(
            f'{questions}: no questions found: a question is a line of four words, and a line ": name" begins a section'
        )
    correct = np.zeros(len(question_set.rows), np.bool_)
    known = np.flatnonzero(question_set.known)
    for start in range(0, len(known), QUESTIONS_AT_ONCE):
        batch = known[start : start + QUESTIONS_AT_ONCE]
        best = best_answers(vectors.vectors, question_set.rows[batch, :3], index.next_variant, method, progress)
        correct[batch] = index.first_variant[best] == question_set.rows[batch, 3]
    return question_set, correct


def section_pairs(
    vectors: KeyedVectors, questions: PathLike | None = None, section: str | None = None, case_insensitive: bool = True
) -> tuple[str, NDArray[np.int64]]:
    """Return the name of a section of a question file, and the rows of its distinct pairs of words, int64 (n, 2).

    Args:
        questions, case_insensitive: See `analogies`.
        section: A section name; by default the first section that has a pair with both words in the vocabulary.

    Raises:
        W2VError: If the file cannot be read, if it does not have the section, or if no pair is in the vocabulary.
    """
    question_set = _read_questions(questions, WordIndex(vectors, len(vectors), case_insensitive))
    if section is not None and section not in question_set.names:
        raise W2VError(
            f"{section[:60]!r} is not a section of the questions: choose from {', '.join(question_set.names)[:1000]}"
        )
    for number, name in enumerate(question_set.names):
        pairs = question_set.rows[question_set.sections == number].reshape(-1, 2).tolist()
        known = dict.fromkeys((a, b) for a, b in pairs if min(a, b) >= 0)  # a dict keeps the file's order
        if known and section in (None, name):
            return name, np.array([*known], np.int64)
    raise W2VError(f"no pair of {'the questions' if section is None else section} is in the vocabulary")


def best_answers(
    vectors: NDArray[np.float32],
    questions: NDArray[np.int32],
    next_variant: NDArray[np.int32],
    method: Method,
    progress: Report | None = None,
) -> NDArray[np.int64]:
    """Return the row of the best answer to each question, int64 (Q,), among the first len(next_variant) rows.

    `questions` (Q, 3) are the rows of a, b and c. See `WordIndex` for `next_variant`.
    """
    searched = len(next_variant)
    distinct, indices = np.unique(questions, return_inverse=True)  # (U,)
    queries = unit(vectors[distinct])  # (U, D)
    width = max(1, min(_search.WIDTH, COSINES_AT_ONCE // max(1, len(distinct))))
    best_scores = np.full(len(questions), -np.inf, np.float32)
    best_rows = np.zeros(len(questions), np.int64)
    triples = indices.reshape(-1, 3).astype(np.int32)
    meter = Meter(progress, "answer")
    for start in range(0, searched, width):
        cosines = queries @ unit(vectors[start : min(start + width, searched)]).T  # (U, W)
        if method == "mul":
            cosines = (1 + cosines) / 2
        _search.update_best(
            cosines, triples, distinct, next_variant, start, method == "mul", EPSILON, best_scores, best_rows
        )
        meter(min(start + width, searched), searched)
    return best_rows


def _read_questions(path: PathLike | None, index: WordIndex) -> Questions:
    names: list[str] = []
    sections, rows, malformed = array("i"), array("i"), 0
    first_malformed = None
    for number, line in numbered_lines(path, "questions"):
        words = line.split(None, 4)
        if line.startswith(b":"):
            names.append(decode_line(path, number, line[1:].strip()))
        elif len(words) == 4:
            names = names or ["without a section"]
            sections.append(len(names) - 1)
            rows.extend(index.row(decode_line(path, number, word)) for word in words)
        elif words:
            malformed, first_malformed = malformed + 1, first_malformed or number
    return Questions(names, np.array(sections), np.array(rows).reshape(-1, 4), malformed, first_malformed)


def _accuracy(right: NDArray[Any], answered: NDArray[Any]) -> float | None:
    return float(right.sum() / answered.sum()) if answered.sum() else None
