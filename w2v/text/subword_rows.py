"""The rows of a matrix of which input rows are made with subwords, in training and in fastText's files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.system import memory
from w2v.text.subwords import Ngrams, Subwords, sums_of_rows
from w2v.text.words import Words

Integers = NDArray[np.int64]

# Bytes that SubwordRows.of needs, at most, for each n-gram, for each different bucket and for each word.
NGRAM_BYTES, BUCKET_BYTES, WORD_BYTES = 38, 70, 130
HINT = (
    "raise min_count, lower max_vocab, choose shorter n-grams for subwords, or train with --ignore-memory "
    "(ignore_memory=True)"
)


@dataclass(frozen=True)
class SubwordRows:
    """The rows of a matrix that make up the input rows of V words, and how n-grams share them.

    The input row of a word is the mean of its subwords: of the word's own row and the rows of its n-grams. N-grams that
    occur in exactly the same words always change together, so they share one row, the sum of theirs. N-grams that occur
    in one word only are part of that word's own row. The matrix has the V own rows, then the G rows of other n-grams in
    the order in which they occur, so that the rows of a word are near each other, and those of frequent words come
    first.

    Attributes:
        buckets: int32 (B,), the buckets of these words' n-grams. places: int64 (B,), the row of each.
        starts: int64 (V + 1,). rows: int32 (n,): those of word w are rows[starts[w]:starts[w + 1]], first its own, w.
        sizes: int32 (V,), the number of subwords of each word.
        members: int64 (V + G,), the number of subwords that each row is the sum of.
    """

    buckets: NDArray[np.int32]
    places: Integers
    starts: Integers
    rows: NDArray[np.int32]
    sizes: NDArray[np.int32]
    members: Integers

    @classmethod
    def of(cls, subwords: Subwords, words: Words, ignore_memory: bool = False) -> SubwordRows:
        """The rows of these words. Raises W2VError if memory is short for making them, unless `ignore_memory`."""
        count, total = len(words), subwords.count(words)
        needed = NGRAM_BYTES * total + BUCKET_BYTES * min(total, subwords.buckets) + WORD_BYTES * count
        memory.check(needed, f"the table of {total:,} n-grams", HINT, ignore_memory)
        starts, found = subwords.of(words)
        sizes = np.diff(starts)
        buckets, firsts, ngrams = np.unique(found, return_index=True, return_inverse=True)
        order = np.argsort(firsts)
        buckets, ngrams = buckets[order], np.argsort(order)[ngrams]  # in the order in which they occur
        # A sum of random numbers marks the words that an n-gram is in; own rows are in one word each.
        marks = np.random.default_rng(0).integers(1 << 63, size=count, dtype=np.uint64)
        sums = np.zeros(len(buckets), np.uint64)
        np.add.at(sums, ngrams, np.repeat(marks, sizes))
        _, leaders, groups = np.unique(np.append(marks, sums), return_index=True, return_inverse=True)
        rows = np.argsort(np.argsort(leaders))[groups]  # of own rows, which keep their numbers, and of n-grams
        leads = np.zeros(count + len(buckets), bool)
        leads[leaders] = True
        kept = leads[count:][ngrams]  # a row occurs in a word once for all of its n-grams
        before = np.append(0, np.cumsum(kept))[starts]
        return cls(
            buckets=buckets,
            places=rows[count:],
            starts=before + np.arange(count + 1),
            rows=np.insert(rows[count:][ngrams[kept]], before[:-1], np.arange(count)).astype(np.int32),
            sizes=(sizes + 1).astype(np.int32),
            members=np.bincount(rows),
        )

    @classmethod
    def own(cls, words: int) -> SubwordRows:
        """Rows without n-grams: the input row of each word is its own row."""
        numbers, ones = np.arange(words + 1), np.ones(words, np.int64)
        none = np.empty(0, np.int64)
        return cls(none.astype(np.int32), none, numbers, numbers[:-1].astype(np.int32), ones.astype(np.int32), ones)

    @property
    def shared(self) -> int:
        """G, the number of rows that are no word's own."""
        return len(self.members) - len(self.sizes)

    def totals(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """For each row the sum of `values` (V,) over the words that have it, float64 (V + G,)."""
        weights = np.repeat(values.astype(np.float64), np.diff(self.starts))
        return np.bincount(self.rows, weights, len(self.members)).astype(np.float64, copy=False)

    def compose(self, own: NDArray[Any], shared: NDArray[Any]) -> None:
        """Turn the words' own rows (V, D) into the means of their subwords, given the other rows (G, D)."""
        own[:] = (own + self._of_words(shared)) / self.sizes[:, np.newaxis]

    def decompose(
        self, inputs: NDArray[Any], shared: NDArray[Any], words: Integers | slice = slice(None)
    ) -> NDArray[np.float32]:
        """The own rows, float32 (n, D), from the means (n, D) of n words, all unless their numbers are given."""
        own: NDArray[np.float32] = inputs * self.sizes[words, np.newaxis].astype(np.float32)
        own -= self._of_words(shared)[words]
        return own

    def _of_words(self, shared: NDArray[Any]) -> NDArray[np.float32]:
        """For each word the sum of its rows that are not its own, (V, D)."""
        words = len(self.sizes)
        others = self.rows[self.rows >= words] - words
        return sums_of_rows(shared, others, self.starts - np.arange(words + 1))

    def join(self, ngrams: NDArray[Any]) -> NDArray[np.float32]:
        """The sums that the rows stand for, float32 (V + G, D), from the rows of n-grams (B, D); own rows count 0."""
        counts = np.bincount(self.places, minlength=len(self.members))
        return sums_of_rows(ngrams, np.argsort(self.places, kind="stable"), np.append(0, np.cumsum(counts)))

    def split(self, own: NDArray[Any], shared: NDArray[Any]) -> NDArray[Any]:
        """The rows of n-grams (B, D): equal parts of the sums that their rows are."""
        words = len(self.sizes)
        alone = self.places < words
        ngrams = np.empty((len(self.places), own.shape[1]), own.dtype)
        ngrams[alone] = own[self.places[alone]]
        ngrams[~alone] = shared[self.places[~alone] - words]
        ngrams /= self.members[self.places, np.newaxis].astype(own.dtype)
        return ngrams


def own_rows(vectors: NDArray[Any], words: Words, ngrams: Ngrams) -> NDArray[np.float32]:
    """The words' own rows as fastText has them, float32 (V, D), without their n-grams, from the means (V, D)."""
    rows = SubwordRows.of(ngrams.subwords, words)
    sums = rows.join(ngrams.of(rows.buckets))
    return rows.decompose(vectors, sums[len(words) :]) - sums[: len(words)]
