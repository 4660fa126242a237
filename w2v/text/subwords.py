"""Subwords: the character n-grams of words, whose rows make up the input row of a word (Bojanowski et al. 2017)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError
from w2v.text._subwords import buckets_of, compose, counts_of
from w2v.text.words import Words

Integers = NDArray[np.int64]

MAX_LENGTH = 99  # characters of an n-gram
MAX_BUCKETS = (1 << 31) - 1
NGRAMS_AT_ONCE = 1 << 14  # made at a time, about
MAX_WORD_NGRAMS = 1 << 19  # of a word in a file
WORDS_AT_ONCE = 1 << 12  # whose rows are composed: an interrupt waits for them


@dataclass(frozen=True)
class Subwords:
    """Which n-grams a word has: those of `shortest` to `longest` characters of <word>, hashed into `buckets`.

    The hash is that of fastText, so that its files can be read and written.
    """

    shortest: int
    longest: int
    buckets: int

    def count(self, words: Words) -> int:
        """Return the number of n-grams of words, counting those that are repeated in a word."""
        return int(self._counts(words).sum())

    def of(self, words: Words, of_characters: bool = False) -> tuple[Integers, NDArray[np.int32]]:
        """The buckets of the n-grams of V words: starts, int64 (V + 1,), and buckets, int32 (n,).

        With `of_characters`, by the hash of gensim before 3.7, which differs where a character is not ASCII.
        """
        return buckets_of(words.blob, words.offsets, self.shortest, self.longest, self.buckets, of_characters)

    def check_words(self, words: Words) -> None:
        """Raise W2VError for a word with more than MAX_WORD_NGRAMS n-grams."""
        counts = self._counts(words)
        if counts.max(initial=0) > MAX_WORD_NGRAMS:
            row = int(counts.argmax())
            length = words.offsets[row + 1] - words.offsets[row]
            raise W2VError(f"word {row + 1}, of {length:,} bytes, has more than {MAX_WORD_NGRAMS:,} n-grams")

    def groups(self, words: Words) -> Iterator[tuple[slice, Words]]:
        """Yield rows of words, in order, and these words, of about NGRAMS_AT_ONCE n-grams at a time."""
        before = np.append(0, np.cumsum(self._counts(words)))
        start = 0
        while start < len(words):
            stop = max(start + 1, int(np.searchsorted(before, before[start] + NGRAMS_AT_ONCE, "right")) - 1)
            yield slice(start, stop), words.take(np.arange(start, stop))
            start = stop

    def _counts(self, words: Words) -> Integers:
        """The number of n-grams of each word, int64 (V,)."""
        return counts_of(words.blob, words.offsets, self.shortest, self.longest)


@dataclass(frozen=True)
class Ngrams:
    """The rows of n-grams, from which a word that is not in the vocabulary gets its vector.

    Attributes:
        buckets: int32 (B,), ascending: the buckets that have a row; the rows of all others are zero.
        rows: float32, or a smaller type, (B, D).
    """

    subwords: Subwords
    buckets: NDArray[np.int32]
    rows: NDArray[Any]

    def vector(self, word: str) -> NDArray[np.float32] | None:
        """The mean of the rows of a word's n-grams, (D,); None if none of them has a row."""
        _, wanted = self.subwords.of(Words.of([word]))
        found, total = False, np.zeros(self.rows.shape[1])
        for start in range(0, len(wanted), NGRAMS_AT_ONCE):
            rows = self.of(wanted[start : start + NGRAMS_AT_ONCE])
            found = found or bool(rows.any())
            total += rows.sum(axis=0, dtype=np.float64)
        return (total / len(wanted)).astype(np.float32) if found else None

    def vectors(self, words: Words) -> NDArray[np.float32]:
        """The vectors of n words as of `vector`, (n, D); zeros without n-grams that have a row."""
        starts, wanted = self.subwords.of(words)
        known, places = self.places(wanted)
        chosen, numbers = np.unique(places, return_inverse=True)  # the rows in use, which are copied once
        sums = sums_of_rows(self.rows[chosen], numbers, np.append(0, np.cumsum(known))[starts])
        found: NDArray[np.float32] = sums / np.maximum(np.diff(starts), 1).astype(np.float32)[:, np.newaxis]
        return found

    def of(self, buckets: NDArray[np.int32]) -> NDArray[Any]:
        """The rows of n buckets, (n, D)."""
        found = np.zeros((len(buckets), self.rows.shape[1]), self.rows.dtype)
        known, places = self.places(buckets)
        found[known] = self.rows[places]
        return found

    def places(self, buckets: NDArray[np.int32]) -> tuple[NDArray[np.bool_], Integers]:
        """Return which of n buckets have a row, bool (n,), and the rows of these k, int64 (k,)."""
        places = np.searchsorted(self.buckets, buckets)
        known = places < len(self.buckets)
        known[known] = self.buckets[places[known]] == buckets[known]
        return known, places[known]

    def compose(self, words: Words, own: NDArray[np.float32]) -> None:
        """Turn the words' own rows (V, D) into the means of these and of the rows of their n-grams."""
        places = np.full(self.subwords.buckets, -1, np.int32)
        places[self.buckets] = np.arange(len(self.buckets))
        lengths = self.subwords.shortest, self.subwords.longest
        rows = np.ascontiguousarray(self.rows, np.float32)
        for start in range(0, len(words), WORDS_AT_ONCE):
            part = slice(start, start + WORDS_AT_ONCE)
            compose(words.blob, words.offsets[start : part.stop + 1], *lengths, places, rows, own[part])

    # -- in files -----------------------------------------------------------------------------------

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        return {"ngrams": self.rows, "ngram_buckets": self.buckets}

    @classmethod
    def from_file(
        cls, tensors: Mapping[str, NDArray[Any]], subwords: Subwords | None, size: int, where: object
    ) -> Ngrams | None:
        """The n-grams of a file with vectors of `size` values, or None if it has none. Raises W2VError if damaged.

        `subwords` are those of the file's header.
        """
        if "ngrams" not in tensors:
            return None
        rows, buckets = tensors["ngrams"], tensors.get("ngram_buckets", np.empty(0))
        if (
            subwords is None
            or rows.dtype.name not in ("float32", "bfloat16", "float16") or rows.ndim != 2 or rows.shape[1] != size
            or buckets.dtype != np.int32 or buckets.shape != (len(rows),)
            or np.any(buckets[1:] <= buckets[:-1]) or np.any(buckets < 0) or np.any(buckets >= subwords.buckets)
        ):  # fmt: skip
            raise W2VError(f"{where}: damaged: its n-grams are inconsistent")
        return cls(subwords, buckets, rows)


def sums_of_rows(
    rows: NDArray[Any], chosen: NDArray[Any], starts: Integers, weights: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Sums of rows (R, D), float32 (n, D): sum k is that of the rows chosen[starts[k] : starts[k + 1]].

    Each of the chosen rows, `chosen` (m,), is multiplied by its weight, (m,), by default 1.
    """
    from scipy.sparse import csr_array  # slow to import, and most queries need no sums

    weights = np.ones(len(chosen), np.float32) if weights is None else weights
    picked = csr_array((weights, chosen, starts), (len(starts) - 1, len(rows)))
    found: NDArray[np.float32] = picked @ rows.astype(np.float32, copy=False)
    return found
