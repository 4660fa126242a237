"""Evaluation on analogies and scored word pairs, with gensim's file rules and result formats."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.evaluation.analogies import best_answers
from w2v.evaluation.word_index import index_words
from w2v.gensim.sentences import read_bytes
from w2v.system.files import PathLike
from w2v.vectors.cosines import cosine
from w2v.vectors.query import Method

log = logging.getLogger("gensim.models.keyedvectors")


class EvaluationMethods:
    """The methods of KeyedVectors that evaluate vectors; see KeyedVectors for the attributes."""

    index_to_key: list[Any]
    vectors: NDArray[Any]

    def evaluate_word_analogies(
        self,
        analogies: PathLike,
        restrict_vocab: int = 300_000,
        case_insensitive: bool = True,
        dummy4unknown: bool = False,
        similarity_function: str = "most_similar",
    ) -> tuple[float, list[dict[str, Any]]]:
        """Return the accuracy, 0 to 1, and the correct and incorrect questions by section.

        The last section, "Total accuracy", has the questions of all sections.

        Raises:
            ValueError: A question comes before the first section header.
        """
        fold = str.upper if case_insensitive else str
        keys = (fold(str(key)) for key in self.index_to_key[:restrict_vocab])
        row_of, first_rows, next_same_word = index_words(keys)
        sections: list[dict[str, Any]] = []
        questions: list[tuple[dict[str, Any], tuple[str, ...]]] = []
        for number, line in enumerate(read_bytes(analogies).decode().splitlines()):
            words = tuple(map(fold, line.split()))
            if line.startswith(": "):
                sections.append({"section": line.removeprefix(": ").strip(), "correct": [], "incorrect": []})
            elif not sections:
                raise ValueError(f"Missing section header before line #{number} in {analogies}")
            elif len(words) == 4 and (dummy4unknown or all(word in row_of for word in words)):
                questions.append((sections[-1], words))
        rows = np.array([[row_of.get(word, -1) for word in words] for _, words in questions], np.int32)
        rows = rows.reshape(-1, 4)  # without questions, the array has no columns yet
        known = np.all(rows >= 0, axis=1)
        correct = np.zeros(len(rows), bool)
        method: Method = "mul" if similarity_function == "most_similar_cosmul" else "add"
        best = best_answers(self.vectors, rows[known, :3], next_same_word, method)
        correct[known] = first_rows[best] == rows[known, 3]
        for (section, words), is_correct in zip(questions, correct.tolist(), strict=True):
            section["correct" if is_correct else "incorrect"].append(words)
        total = {
            name: list(chain.from_iterable(section[name] for section in sections)) for name in ("correct", "incorrect")
        }
        sections.append({"section": "Total accuracy", **total})
        for section in sections:
            self.log_accuracy(section)
        return float(correct.mean()) if len(rows) else 0.0, sections

    @staticmethod
    def log_accuracy(section: Mapping[str, Any]) -> None:
        """Log the accuracy of a section, unless the section is empty."""
        correct = len(section["correct"])
        if total := correct + len(section["incorrect"]):
            log.info("%s: %.1f%% (%d/%d)", section["section"], 100 * correct / total, correct, total)

    def evaluate_word_pairs(
        self,
        pairs: PathLike,
        delimiter: str = "\t",
        encoding: str = "utf8",
        restrict_vocab: int = 300_000,
        case_insensitive: bool = True,
        dummy4unknown: bool = False,
    ) -> tuple[Any, Any, float]:
        """Return the correlations of the cosines with the scores of a file of word pairs.

        Returns:
            SciPy's results for Pearson's and Spearman's correlation, and the percentage of pairs with an unknown word.

        Raises:
            ValueError: The file has no pair to score.
        """
        from scipy import stats  # slow to import

        fold = str.upper if case_insensitive else str
        row_of = index_words(fold(str(key)) for key in self.index_to_key[:restrict_vocab])[0]
        scores, cosines = [], []
        unknown = 0
        for line in read_bytes(pairs).decode(encoding).splitlines():
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
                scores.append(score)
                cosines.append(cosine(*self.vectors[[row_of[first], row_of[second]]]) if known else 0.0)
        if not scores:
            raise ValueError(f"No valid similarity judgements found in {pairs}: invalid format, or all words unknown")
        total = len(scores) if dummy4unknown else len(scores) + unknown
        oov = 100 * unknown / total
        result = stats.pearsonr(scores, cosines), stats.spearmanr(scores, cosines), oov
        self.log_evaluate_word_pairs(*result, pairs)
        return result

    @staticmethod
    def log_evaluate_word_pairs(pearson: Any, spearman: Any, oov: float, pairs: object) -> None:
        """Log the result of evaluate_word_pairs; `oov` is the percentage of pairs with an unknown word."""
        log.info("%s: Pearson's correlation %.4f, Spearman's %.4f", pairs, pearson[0], spearman[0])
        log.info("%s: %.1f%% of the pairs have an unknown word", pairs, oov)
