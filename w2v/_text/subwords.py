"""Subwords: the input row of a word is the mean of its own row and the rows of its character n-grams.

The method is described in Bojanowski et al. 2017.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError
from w2v._text._subwords import buckets_of, compose, counts_of, sum_rows
from w2v._text.words import Words, encode

Integers = NDArray[np.int64]

MAX_LENGTH = 99  # characters of an n-gram
MAX_BUCKETS = (1 << 31) - 1
NGRAMS_AT_ONCE = 1 << 14  # approximate number of n-grams processed at a time
MAX_WORD_NGRAMS = 1 << 19  # limit for a word in a file
WORDS_AT_ONCE = 1 << 12  # words composed in one call of compiled code, which Ctrl-C cannot interrupt


@dataclass(frozen=True)
class Subwords:
    """The definition of the n-grams of a word.

    The n-grams are the substrings of <word> with `shortest` to `longest` characters. fastText's hash function assigns
    them to `buckets` numbers, so that fastText's files can be read and written.
    """

    shortest: int
    longest: int
    buckets: int

    def count(self, words: Words) -> int:
        """Return the total number of n-grams of words. Repeated n-grams count each time."""
        return int(self._counts(words).sum())

    def ngram_buckets(self, words: Words, hash_code_points: bool = False) -> tuple[Integers, NDArray[np.int32]]:
        """Return the buckets of the n-grams of V words: starts, int64 (V + 1,), and buckets, int32 (n,).

        With `hash_code_points`, use the hash of gensim before 3.7, which differs for characters that are not ASCII.
        """
        return buckets_of(words.blob, words.offsets, self.shortest, self.longest, self.buckets, hash_code_points)

    def check_words(self, words: Words) -> None:
        """Raise W2VError for a word with more than MAX_WORD_NGRAMS n-grams."""
        counts = self._counts(words)
        if counts.max(initial=0) > MAX_WORD_NGRAMS:
            row = int(counts.argmax())
            length = words.offsets[row + 1] - words.offsets[row]
            raise W2VError(f"word {row + 1}, of {length:,} bytes, has more than {MAX_WORD_NGRAMS:,} n-grams")

    def groups(self, words: Words) -> Iterator[Words]:
        """Yield consecutive groups of words with about NGRAMS_AT_ONCE n-grams."""
        before = np.append(0, np.cumsum(self._counts(words)))
        start = 0
        while start < len(words):
            stop = max(start + 1, int(np.searchsorted(before, before[start] + NGRAMS_AT_ONCE, "right")) - 1)
            yield words.take(np.arange(start, stop))
            start = stop

    def _counts(self, words: Words) -> Integers:
        """Return the number of n-grams of each word, int64 (V,)."""
        return counts_of(words.blob, words.offsets, self.shortest, self.longest)


@dataclass(frozen=True)
class Ngrams:
    """The rows of n-grams, which give unknown words their vectors.

    Attributes:
        subwords: The definition of the n-grams.
        buckets: int32 (B,), ascending, the buckets that have a row. All other buckets have a row of zeros.
        rows: (B, D), float32 or a smaller type. In a model of several views, D is the size of the view of subwords.
    """

    subwords: Subwords
    buckets: NDArray[np.int32]
    rows: NDArray[Any]

    def vector(self, word: str) -> NDArray[np.float32] | None:
        """Return the mean of the rows of a word's n-grams, (D,), or None if no n-gram has a row."""
        encoded, vectors = encode(word), np.zeros((1, self.rows.shape[1]), np.float32)
        return vectors[0] if self._compose(encoded, np.array([0, len(encoded)], np.int64), vectors, False) else None

    def vectors(self, words: Words) -> NDArray[np.float32]:
        """Return the vectors of n words, (n, D). If `vector` returns None for a word, it gets zeros."""
        vectors = np.zeros((len(words), self.rows.shape[1]), np.float32)
        self._compose(words.blob, words.offsets, vectors, known=False)
        return vectors

    def rows_of(self, buckets: NDArray[np.int32]) -> NDArray[Any]:
        """Return the rows of n buckets, (n, D)."""
        found = np.zeros((len(buckets), self.rows.shape[1]), self.rows.dtype)
        known, rows = self.find_rows(buckets)
        found[known] = self.rows[rows]
        return found

    def find_rows(self, buckets: NDArray[np.int32]) -> tuple[NDArray[np.bool_], Integers]:
        """Return which of n buckets have a row, bool (n,), and the row numbers of these k buckets, int64 (k,)."""
        rows = np.searchsorted(self.buckets, buckets)
        known = rows < len(self.buckets)
        known[known] = self.buckets[rows[known]] == buckets[known]
        return known, rows[known]

    def compose(self, words: Words, own: NDArray[np.float32]) -> None:
        """Replace the own rows of words, (V, D), by the means of their own rows and the rows of their n-grams."""
        for start in range(0, len(words), WORDS_AT_ONCE):
            part = slice(start, start + WORDS_AT_ONCE)
            self._compose(words.blob, words.offsets[start : part.stop + 1], own[part], known=True)

    def _compose(self, blob: Any, offsets: Integers, vectors: NDArray[np.float32], known: bool) -> int:
        """Call the compiled `compose` with the rows of the n-grams as float32."""
        subwords, used, rows = self.subwords, self.buckets, self.rows
        lengths = subwords.shortest, subwords.longest
        if rows.dtype != np.float32:  # convert only the rows of these words: the file may be mapped into memory
            wanted = np.unique(buckets_of(blob, offsets, *lengths, subwords.buckets)[1])
            has_row, numbers = self.find_rows(wanted)
            used, rows = wanted[has_row], self.rows[numbers].astype(np.float32)
        rows = np.ascontiguousarray(rows)
        return compose(blob, offsets, *lengths, subwords.buckets, used, rows, vectors, known)

    # -- files --------------------------------------------------------------------------------------

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays to store in a file, by name."""
        return {"ngrams": self.rows, "ngram_buckets": self.buckets}

    @classmethod
    def from_file(
        cls, tensors: Mapping[str, NDArray[Any]], subwords: Subwords | None, size: int, where: object
    ) -> Ngrams | None:
        """Read the n-grams from the arrays of a file, or return None if the file has no n-grams.

        Args:
            tensors: The arrays, by name.
            subwords: The definition of the n-grams in the header of the file.
            size: The number of values of a row.
            where: The start of error messages.

        Raises:
            W2VError: If the n-grams are damaged.
        """
        if "ngrams" not in tensors:
            return None
        rows, buckets = tensors["ngrams"], tensors.get("ngram_buckets", np.empty(0))
        if (
            subwords is None
            or rows.dtype.name not in ("float32", "bfloat16", "float16") or rows.ndim != 2
            or rows.shape[1] != size or size < 1
            or buckets.dtype != np.int32 or buckets.shape != (len(rows),)
            or np.any(buckets[1:] <= buckets[:-1]) or np.any(buckets < 0) or np.any(buckets >= subwords.buckets)
        ):  # fmt: skip
            raise W2VError(f"{where}: damaged: its n-grams are inconsistent")
        return cls(subwords, buckets, rows)


def sums_of_rows(
    rows: NDArray[Any], chosen: NDArray[Any], starts: Integers, weights: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Return weighted sums of rows, float32 (n, D).

    Args:
        rows: (R, D).
        chosen: (m,), the numbers of the rows to add.
        starts: (n + 1,), sum k adds the rows chosen[starts[k] : starts[k + 1]].
        weights: (m,), the factor of each chosen row, by default 1.
    """
    weights = np.ones(len(chosen), np.float32) if weights is None else weights
    dense = rows.astype(np.float32, copy=False)
    dense = dense if dense.strides[1] == dense.itemsize else np.ascontiguousarray(dense)
    return sum_rows(dense, chosen.astype(np.int32, copy=False), starts, weights)
