"""Subwords: the character n-grams of words, whose rows make up the input row of a word (Bojanowski et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError
from w2v.system.schema import decode, encode
from w2v.text._subwords import buckets_of
from w2v.text.words import Words

Integers = NDArray[np.int64]

WORDS_AT_ONCE = 1 << 12  # whose rows are gathered


@dataclass(frozen=True)
class Subwords:
    """Which n-grams a word has: those of `shortest` to `longest` characters of <word>, hashed into `buckets`.

    The hash is that of fastText, so that its files can be read and written.
    """

    shortest: int
    longest: int
    buckets: int

    def of(self, words: Words) -> tuple[Integers, NDArray[np.int32]]:
        """The buckets of the n-grams of V words: starts, int64 (V + 1,), and buckets, int32 (n,)."""
        return buckets_of(words.blob, words.offsets, self.shortest, self.longest, self.buckets)


@dataclass(frozen=True)
class SubwordRows:
    """The rows of a matrix whose mean is the input row of each of V words: its own row, and those of its n-grams.

    Attributes:
        buckets: int32 (B,), the buckets of these words' n-grams; that of row V + i is buckets[i]. They are in the order
            in which they occur, so that the rows of a word are near each other, and those of frequent words come first.
        starts: int64 (V + 1,). rows: int32 (n,): those of word w are rows[starts[w]:starts[w + 1]], first its own, w.
    """

    buckets: NDArray[np.int32]
    starts: Integers
    rows: NDArray[np.int32]

    @classmethod
    def of(cls, subwords: Subwords, words: Words) -> SubwordRows:
        starts, found = subwords.of(words)
        buckets, firsts, places = np.unique(found, return_index=True, return_inverse=True)
        order = np.argsort(firsts)
        buckets, places = buckets[order], np.argsort(order)[places]
        own = np.arange(len(words), dtype=np.int32)
        rows = np.insert(places.astype(np.int32) + len(own), starts[:-1], own)
        return cls(buckets, starts + np.arange(len(starts)), rows)

    @property
    def sizes(self) -> Integers:
        """The number of rows of each word, int64 (V,)."""
        return np.diff(self.starts)

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """For each row the sum of `values` (V,) over the words that have it, float64 (V + B,)."""
        weights = np.repeat(values.astype(np.float64), self.sizes)
        return np.bincount(self.rows, weights, len(self.starts) - 1 + len(self.buckets)).astype(np.float64, copy=False)

    def compose(self, inputs: NDArray[Any], ngrams: NDArray[Any]) -> None:
        """Turn the words' own rows (V, D) into the means of all their rows, given those of their n-grams (B, D)."""
        for block in self._blocks():
            inputs[block] = self._sums(inputs, ngrams, block) / self.sizes[block, np.newaxis]

    def decompose(self, inputs: NDArray[Any], ngrams: NDArray[Any]) -> NDArray[np.float32]:
        """The words' own rows, float32 (V, D), from the means that `compose` makes."""
        own = inputs.astype(np.float32)
        for block in self._blocks():
            own[block] = own[block] * (self.sizes[block, np.newaxis] + 1) - self._sums(inputs, ngrams, block)
        return own

    def _blocks(self) -> list[slice]:
        words = len(self.starts) - 1
        return [slice(first, min(first + WORDS_AT_ONCE, words)) for first in range(0, words, WORDS_AT_ONCE)]

    def _sums(self, inputs: NDArray[Any], ngrams: NDArray[Any], block: slice) -> NDArray[np.float32]:
        """For each word of a block, the sum of its row of `inputs` and the rows of its n-grams, (words, D)."""
        starts = self.starts[block.start : block.stop + 1]
        rows = self.rows[starts[0] : starts[-1]] - len(inputs)
        if not len(ngrams):
            return inputs[block].astype(np.float32)
        parts = ngrams.take(rows, axis=0, mode="clip").astype(np.float32, copy=False)  # clip: those of own rows
        own = starts[:-1] - starts[0]
        parts[own] = inputs[block]
        sums: NDArray[np.float32] = np.add.reduceat(parts, own, axis=0)
        return sums


@dataclass(frozen=True)
class Ngrams:
    """The rows of n-grams, from which a word that is not in the vocabulary gets its vector.

    Attributes:
        buckets: int32 (B,), ascending: the buckets that have a row; the rows of all others are zero.
        rows: float32 or bfloat16 (B, D).
    """

    subwords: Subwords
    buckets: NDArray[np.int32]
    rows: NDArray[Any]

    def vector(self, word: str) -> NDArray[np.float32] | None:
        """The mean of the rows of a word's n-grams, (D,); None if none of them has a row."""
        _, wanted = self.subwords.of(Words.of([word]))
        rows = self.of(wanted)
        if not rows.any():
            return None
        mean: NDArray[np.float32] = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        return mean

    def of(self, buckets: NDArray[np.int32]) -> NDArray[Any]:
        """The rows of n buckets, (n, D)."""
        found = np.zeros((len(buckets), self.rows.shape[1]), self.rows.dtype)
        places = np.searchsorted(self.buckets, buckets)
        known = np.flatnonzero(places < len(self.buckets))
        known = known[self.buckets[places[known]] == buckets[known]]
        found[known] = self.rows[places[known]]
        return found

    # -- in files -----------------------------------------------------------------------------------

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        return {"ngrams": self.rows, "ngram_buckets": self.buckets}

    @property
    def metadata(self) -> dict[str, str]:
        return {"subwords": encode(self.subwords, "the subwords")}

    @classmethod
    def from_file(
        cls, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str], size: int, where: object
    ) -> Ngrams | None:
        """The n-grams of a file with vectors of `size` values, or None if it has none. Raises W2VError if damaged."""
        if "ngrams" not in tensors:
            return None
        subwords = decode(Subwords, metadata.get("subwords", ""), where)
        rows, buckets = tensors["ngrams"], tensors.get("ngram_buckets", np.empty(0))
        if (
            rows.dtype.name not in ("float32", "bfloat16") or rows.ndim != 2 or rows.shape[1] != size
            or buckets.dtype != np.int32 or buckets.shape != (len(rows),)
            or not 1 <= subwords.shortest <= subwords.longest or not 1 <= subwords.buckets < 1 << 31
            or np.any(buckets[1:] <= buckets[:-1]) or np.any(buckets < 0) or np.any(buckets >= subwords.buckets)
        ):  # fmt: skip
            raise W2VError(f"{where}: damaged: its n-grams are inconsistent")
        return cls(subwords, buckets, rows)
