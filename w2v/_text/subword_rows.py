"""Assign the rows of the input matrix to words and their n-grams, for training and for fastText's files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._system import memory
from w2v._text.subwords import Ngrams, Subwords, sums_of_rows
from w2v._text.words import Words

Integers = NDArray[np.int64]

# Limits for the bytes that SubwordRows.of needs for each n-gram, for each different bucket and for each word.
NGRAM_BYTES, BUCKET_BYTES, WORD_BYTES = 38, 70, 130
HINT = (
    "raise min_count, lower max_vocab, choose shorter n-grams for subwords, or train with --ignore-memory "
    "(ignore_memory=True)"
)


@dataclass(frozen=True)
class SubwordRows:
    """The matrix rows that make up the input rows of V words.

    The subwords of a word are the word itself and its n-grams. The input row of a word is the mean of the rows of its
    subwords. N-grams that occur in exactly the same words always get the same updates, so they share one row, which is
    the sum of their rows. N-grams that occur in only one word are part of that word's own row. The matrix begins with
    the V own rows. The G shared rows follow in order of first occurrence, so that the rows of a word are close together
    and the rows of frequent words come first.

    Attributes:
        buckets: int32 (B,), the buckets of the n-grams of these words.
        row_of_bucket: int64 (B,), the row of each bucket.
        starts: int64 (V + 1,), where the rows of each word begin in `rows`.
        rows: int32 (n,), the rows of word w are rows[starts[w]:starts[w + 1]]; the first is its own row, w.
        counts: int32 (V,), the number of subwords of each word.
        members: int64 (V + G,), the number of subwords summed in each row.
    """

    buckets: NDArray[np.int32]
    row_of_bucket: Integers
    starts: Integers
    rows: NDArray[np.int32]
    counts: NDArray[np.int32]
    members: Integers

    @classmethod
    def of(cls, subwords: Subwords, words: Words, ignore_memory: bool = False) -> SubwordRows:
        """Build the rows of these words.

        Raises:
            W2VError: If there is not enough memory, unless `ignore_memory` is True.
        """
        count, total = len(words), subwords.count(words)
        needed = NGRAM_BYTES * total + BUCKET_BYTES * min(total, subwords.buckets) + WORD_BYTES * count
        memory.check(needed, f"the table of {total:,} n-grams", HINT, ignore_memory)
        starts, ngram_buckets = subwords.ngram_buckets(words)
        sizes = np.diff(starts)
        buckets, firsts, ngrams = np.unique(ngram_buckets, return_index=True, return_inverse=True)
        order = np.argsort(firsts)
        buckets, ngrams = buckets[order], np.argsort(order)[ngrams]  # in order of first occurrence
        # Each word gets a random number. The sum of the numbers of its words identifies the set of words of an n-gram.
        marks = np.random.default_rng(0).integers(1 << 63, size=count, dtype=np.uint64)
        sums = np.zeros(len(buckets), np.uint64)
        np.add.at(sums, ngrams, np.repeat(marks, sizes))
        # Subwords of the same set of words form a group, which gets one row. Its leader is its first subword.
        _, leaders, groups = np.unique(np.append(marks, sums), return_index=True, return_inverse=True)
        rows = np.argsort(np.argsort(leaders))[groups]  # own rows keep their numbers; the rows of n-grams follow
        is_leader = np.zeros(count + len(buckets), bool)
        is_leader[leaders] = True
        kept = is_leader[count:][ngrams]  # n-grams that share a row add it to a word only once
        before = np.append(0, np.cumsum(kept))[starts]
        return cls(
            buckets=buckets,
            row_of_bucket=rows[count:],
            starts=before + np.arange(count + 1),
            rows=np.insert(rows[count:][ngrams[kept]], before[:-1], np.arange(count)).astype(np.int32),
            counts=(sizes + 1).astype(np.int32),
            members=np.bincount(rows),
        )

    @classmethod
    def without_ngrams(cls, words: int) -> SubwordRows:
        """Build rows without n-grams: the input row of each word is its own row."""
        numbers, ones = np.arange(words + 1), np.ones(words, np.int64)
        none = np.empty(0, np.int64)
        return cls(none.astype(np.int32), none, numbers, numbers[:-1].astype(np.int32), ones.astype(np.int32), ones)

    @property
    def shared(self) -> int:
        """G, the number of rows shared by n-grams."""
        return len(self.members) - len(self.counts)

    def totals(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return for each row the sum of `values`, (V,), over the words that have this row: float64 (V + G,)."""
        weights = np.repeat(values.astype(np.float64), np.diff(self.starts))
        return np.bincount(self.rows, weights, len(self.members)).astype(np.float64, copy=False)

    def compose(self, own: NDArray[Any], shared: NDArray[Any]) -> NDArray[Any]:
        """Return the means of the words' subwords, (V, D), from their own rows, (V, D), and the G shared rows."""
        means = self._sums_of_shared_rows(shared)
        means += own
        means /= self.counts[:, np.newaxis]
        return means.astype(own.dtype, copy=False)

    def decompose(
        self, inputs: NDArray[Any], shared: NDArray[Any], words: Integers | slice = slice(None)
    ) -> NDArray[np.float32]:
        """Return the own rows of words, float32 (n, D), from the means of their subwords, (n, D).

        `words` are the numbers of the n words; by default, all words.
        """
        own: NDArray[np.float32] = inputs * self.counts[words, np.newaxis].astype(np.float32)
        own -= self._sums_of_shared_rows(shared)[words]
        return own

    def _sums_of_shared_rows(self, shared: NDArray[Any]) -> NDArray[np.float32]:
        """Return for each word the sum of its shared rows, (V, D)."""
        words = len(self.counts)
        others = self.rows[self.rows >= words] - words
        return sums_of_rows(shared, others, self.starts - np.arange(words + 1))

    def sum_by_row(self, ngrams: NDArray[Any]) -> NDArray[np.float32]:
        """Sum the rows of n-grams, (B, D), that share a row of the matrix: float32 (V + G, D).

        The words' own rows are not added.
        """
        counts = np.bincount(self.row_of_bucket, minlength=len(self.members))
        return sums_of_rows(ngrams, np.argsort(self.row_of_bucket, kind="stable"), np.append(0, np.cumsum(counts)))

    def divide_by_row(self, own: NDArray[Any], shared: NDArray[Any]) -> NDArray[Any]:
        """Divide the sum in each matrix row equally among its n-grams. Return the rows of the n-grams, (B, D)."""
        words = len(self.counts)
        in_own_row = self.row_of_bucket < words
        ngrams = np.empty((len(self.row_of_bucket), own.shape[1]), own.dtype)
        ngrams[in_own_row] = own[self.row_of_bucket[in_own_row]]
        ngrams[~in_own_row] = shared[self.row_of_bucket[~in_own_row] - words]
        ngrams /= self.members[self.row_of_bucket, np.newaxis].astype(own.dtype)
        return ngrams


def own_rows(vectors: NDArray[Any], words: Words, ngrams: Ngrams) -> NDArray[np.float32]:
    """Compute the words' own rows as in fastText, without their n-grams: float32 (V, D).

    `vectors`, (V, D), are the means of the words' subwords.
    """
    rows = SubwordRows.of(ngrams.subwords, words)
    sums = rows.sum_by_row(ngrams.rows_of(rows.buckets))
    return rows.decompose(vectors, sums[len(words) :]) - sums[: len(words)]
