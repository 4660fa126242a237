"""Analogy questions: `a b c d`, a is to b as c is to d."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.display import Result
from w2v.errors import SettingsError, W2VError
from w2v.evaluation.models import HasWordVectors, vectors_of
from w2v.evaluation.word_index import WordIndex, decode_word, numbered_lines
from w2v.options import check_whole, formerly
from w2v.progress import Meter, Report
from w2v.system.files import PathLike
from w2v.vectors import _search
from w2v.vectors.cosines import EPSILON, unit
from w2v.vectors.keyed import KeyedVectors
from w2v.vectors.query import Method

COSINES_AT_ONCE = 1 << 22  # computed at a time: 16 MB, about the size of a shared cache
QUESTIONS_AT_ONCE = 1 << 15
MAX_SECTIONS = 10_000  # in a file


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


@formerly(top="restrict_vocab")
def analogies(
    vectors: KeyedVectors | HasWordVectors,
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
    known = vectors_of(vectors)
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


analogy = analogies  # its name on the command line


def answers(
    vectors: KeyedVectors,
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
    index = WordIndex(vectors, min(restrict_vocab, len(vectors)), case_insensitive)
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
    vectors: KeyedVectors, questions: PathLike | None = None, section: str | None = None, case_insensitive: bool = True
) -> tuple[str, NDArray[np.int64]]:
    """The name of a section of a question file, and the rows of its pairs of words, (n, 2), each pair once.

    The default is the first section that has a pair with both words in the vocabulary. `questions` and
    `case_insensitive` are those of `analogies`. Raises W2VError for a file that cannot be read, for a missing section,
    and if no pair is known.
    """
    file = _read_questions(questions, WordIndex(vectors, len(vectors), case_insensitive))
    if section is not None and section not in file.names:
        raise W2VError(
            f"{section[:60]!r} is not a section of the questions: choose from {', '.join(file.names)[:1000]}"
        )
    for number, name in enumerate(file.names):
        pairs = file.rows[file.sections == number].reshape(-1, 2).tolist() if section in (None, name) else []
        if known := dict.fromkeys((a, b) for a, b in pairs if min(a, b) >= 0):  # in the order of the file
            return name, np.array([*known], np.int64)
    raise W2VError(f"no pair of {'the questions' if section is None else section} is in the vocabulary")


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


def _read_questions(path: PathLike | None, index: WordIndex) -> Questions:
    names: list[str] = []
    sections, rows, malformed = array("i"), array("i"), 0
    first_malformed = None
    for number, line in numbered_lines(path, "questions"):
        words = line.split(None, 4)
        if line.startswith(b":"):
            names.append(decode_word(path, number, line[1:].strip()))
            if len(names) > MAX_SECTIONS:
                raise W2VError(f"{path}: more than {MAX_SECTIONS} sections")
        elif len(words) == 4:
            names = names or ["without a section"]
            sections.append(len(names) - 1)
            rows.extend(index.row(decode_word(path, number, word)) for word in words)
        elif words:
            malformed, first_malformed = malformed + 1, first_malformed or number
    return Questions(names, np.array(sections), np.array(rows).reshape(-1, 4), malformed, first_malformed)


def _share(right: NDArray[Any], answered: NDArray[Any]) -> float | None:
    return float(right.sum() / answered.sum()) if answered.sum() else None
