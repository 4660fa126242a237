"""Look up the words of question and pair files in a vocabulary."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from w2v._detect import read_lines
from w2v._system.files import PathLike
from w2v._vectors.encode import encode
from w2v._vectors.keyed import KeyedVectors
from w2v._vectors.neighbours import complete_vectors


def index_words(words: Iterable[str]) -> tuple[dict[str, int], NDArray[np.int32], NDArray[np.int32]]:
    """Index V words, which may repeat.

    Returns:
        first: A mapping from each word to its first row.
        first_variant: int32 (V,), for each row the first row with the same word.
        next_variant: int32 (V,), for each row the next row with the same word, or -1.
    """
    first: dict[str, int] = {}
    first_variant = np.fromiter((first.setdefault(word, row) for row, word in enumerate(words)), np.int32)
    order = np.argsort(first_variant, kind="stable").astype(np.int32)
    next_variant = np.full(len(first_variant), -1, np.int32)
    same = np.flatnonzero(np.diff(first_variant[order]) == 0)
    next_variant[order[same]] = order[same + 1]
    return first, first_variant, next_variant


class WordIndex:
    """A mapping from words to the first `restrict_vocab` rows of some vectors.

    Attributes:
        first_variant, next_variant: See index_words. If `case_insensitive`, words that differ only in case count as the
            same word.
    """

    def __init__(self, vectors: KeyedVectors, restrict_vocab: int, case_insensitive: bool) -> None:
        self._vectors, self._fold = vectors, str.casefold if case_insensitive else str
        words = map(self._fold, vectors.first_words(restrict_vocab))
        self._first, self.first_variant, self.next_variant = index_words(words)
        self._composed: list[NDArray[np.float32] | str] = []  # the vectors of unknown words, and texts to encode

    def row(self, word: str) -> int:
        """Return the row of a word, or of the word normalised as in training; -1 if both are unknown."""
        row = self._first.get(self._fold(word), -1)
        if row < 0 and len(words := self._vectors.words_in(word)) == 1:
            row = self._first.get(self._fold(words[0]), -1)
        return row

    def row_or_composed(self, word: str) -> int:
        """Return the row of a word. For a text, or an unknown word with n-grams, return V + k: see `composed_vectors`.

        A text has several words, at least one of them known. Return -1 for a word without a row or vector.
        """
        row = self.row(word)
        if row >= 0:
            return row
        words, ngrams, vector = self._vectors.words_in(word), self._vectors.ngrams, None
        if len(words) > 1 and any(each in self._vectors for each in words):
            self._composed.append(word)
        elif ngrams and (vector := ngrams.vector(words[0] if len(words) == 1 else word)) is not None:
            self._composed.append(vector)
        else:
            return -1
        return len(self._vectors) + len(self._composed) - 1

    def composed_vectors(self) -> NDArray[np.float32]:
        """Return the vectors of the texts and unknown words so far, (K, D): row k has the number V + k.

        Texts are encoded as w2v.encode does, with the weights "sif" if the words have counts, otherwise "mean".
        """
        texts = [each for each in self._composed if isinstance(each, str)]
        encoded = iter(encode(self._vectors, texts, "mean" if self._vectors.counts is None else "sif"))
        unknown = [each for each in self._composed if not isinstance(each, str)]
        completed = iter(complete_vectors(np.stack(unknown), self._vectors.vectors) if unknown else ())
        vectors = [next(encoded if isinstance(each, str) else completed) for each in self._composed]
        return np.stack(vectors) if vectors else np.empty((0, self._vectors.vector_size), np.float32)


def numbered_lines(path: PathLike | None, kind: str) -> Iterator[tuple[int, bytes]]:
    """Yield the number and bytes of each line of a file of "questions" or "pairs", by default the bundled one."""
    if path is not None:
        yield from read_lines(path, kind)
        return
    with importlib.resources.as_file(importlib.resources.files("w2v.data") / f"{kind}.txt") as file:
        yield from read_lines(file)
