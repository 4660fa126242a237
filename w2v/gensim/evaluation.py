"""Analogies and scored pairs of words, with gensim's rules for files and its results."""

from __future__ import annotations

from itertools import chain
from typing import Any, Literal

import numpy as np

from w2v.gensim.sentences import read_bytes
from w2v.system.files import PathLike
from w2v.vectors import benchmarks
from w2v.vectors.keyed import KeyedVectors


def analogies(
    wv: KeyedVectors,
    path: PathLike,
    restrict_vocab: int,
    case_insensitive: bool,
    dummy4unknown: bool,
    method: Literal["add", "mul"],
) -> tuple[float, list[dict[str, Any]]]:
    """The share answered correctly, and the questions of each section; the last section is "Total accuracy"."""
    fold = str.upper if case_insensitive else str
    first, heads, variants = benchmarks.index_words(fold(str(key)) for key in wv.index_to_key[:restrict_vocab])
    sections: list[dict[str, Any]] = []
    questions: list[tuple[dict[str, Any], tuple[str, ...]]] = []
    for number, line in enumerate(read_bytes(path).decode().splitlines()):
        words = tuple(map(fold, line.split()))
        if line.startswith(": "):
            sections.append({"section": line.removeprefix(": ").strip(), "correct": [], "incorrect": []})
        elif not sections:
            raise ValueError(f"Missing section header before line #{number} in {path}")
        elif len(words) == 4 and (dummy4unknown or all(word in first for word in words)):
            questions.append((sections[-1], words))
    rows = np.array([[first.get(word, -1) for word in words] for _, words in questions], np.int32).reshape(-1, 4)
    known = np.all(rows >= 0, axis=1)
    correct = np.zeros(len(rows), bool)
    correct[known] = heads[benchmarks.best_answers(wv.vectors, rows[known, :3], variants, method)] == rows[known, 3]
    for (section, words), right in zip(questions, correct.tolist(), strict=True):
        section["correct" if right else "incorrect"].append(words)
    total = {
        name: list(chain.from_iterable(section[name] for section in sections)) for name in ("correct", "incorrect")
    }
    return float(correct.mean()) if len(rows) else 0.0, [*sections, {"section": "Total accuracy", **total}]


def word_pairs(
    wv: KeyedVectors,
    path: PathLike,
    delimiter: str,
    encoding: str,
    restrict_vocab: int,
    case_insensitive: bool,
    dummy4unknown: bool,
) -> tuple[Any, Any, float]:
    """SciPy's results for Pearson's and Spearman's correlation, and the percentage of pairs not found."""
    from scipy import stats  # slow to import

    fold = str.upper if case_insensitive else str
    row_of = benchmarks.index_words(fold(str(key)) for key in wv.index_to_key[:restrict_vocab])[0]
    wanted, found = [], []
    unknown = 0
    for line in read_bytes(path).decode(encoding).splitlines():
        fields = line.split(delimiter)
        try:
            first, second, score = fold(fields[0]), fold(fields[1]), float(fields[2])
        except (ValueError, IndexError):
            continue
        if line.startswith("#") or len(fields) != 3:
            continue
        known = first in row_of and second in row_of
        unknown += not known
        if known or dummy4unknown:
            wanted.append(score)
            found.append(float(wv.similarity(row_of[first], row_of[second])) if known else 0.0)
    if not wanted:
        raise ValueError(f"No valid similarity judgements found in {path}: invalid format, or all words unknown")
    missing = 100 * unknown / (len(wanted) + (0 if dummy4unknown else unknown))
    return stats.pearsonr(wanted, found), stats.spearmanr(wanted, found), missing
