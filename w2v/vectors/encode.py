"""Texts as vectors: weighted means of the vectors of their words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError
from w2v.formats import bfloat16
from w2v.options import suggestion
from w2v.progress import Meter, Report
from w2v.system.files import Errors
from w2v.text._text import PADDING, Lookup
from w2v.text.columns import PLAIN
from w2v.text.corpus import Corpus
from w2v.text.encodings import UTF_8, encoding_name
from w2v.text.idstore import malformed_located
from w2v.text.markup import without_markup
from w2v.text.normalise import Normaliser, TextOptions
from w2v.text.subwords import Ngrams, sums_of_rows
from w2v.text.words import Words
from w2v.vectors.cosines import unit

Weights = Literal["mean", "idf", "sif"]

SIF = 1e-3  # a of Arora et al. 2017
FORMULAS: dict[Weights, Callable[[Any], Any]] = {
    "mean": np.ones_like,
    "idf": lambda share: -np.log(share),
    "sif": lambda share: SIF / (SIF + share),
}
UNKNOWN_AT_ONCE = 1 << 10  # words made of n-grams

Array = NDArray[np.float32]


class Encoder:
    """Turns texts into vectors.

    The vector of a text is the weighted mean of those of its known words. With p(w), the share of a word in the
    training text, weights are 1 ("mean"), −log p(w) ("idf") or a / (a + p(w)), a = 0.001 ("sif": Arora, Liang and Ma
    2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings"). "sif" also removes the component that all
    texts have in common: the projection on the expected vector of a text, Σ p(w) weight(w) vector(w). It stands for
    the paper's first singular vector of the encoded texts; so the vector of a text does not depend on the others.
    Unknown words are left out unless they have n-grams; then they count as words that occur once.

    Attributes:
        texts, words, unknown: the number of texts encoded so far, of their words, and of those left out.
        missing: how many of the texts were missing; they are encoded as zeros.
    """

    def __init__(
        self,
        words: Words,
        vectors: NDArray[Any],
        counts: NDArray[np.int64] | None,
        ngrams: Ngrams | None,
        options: TextOptions,
        weights: Weights,
        errors: Errors,
    ) -> None:
        """`vectors` are (V, D), `counts` (V,). Raises SettingsError for unknown weights, or without their counts."""
        if weights not in get_args(Weights):
            raise SettingsError(f"weights {weights!r}: {suggestion(weights, get_args(Weights))}")
        if counts is None and weights != "mean":
            raise SettingsError(f"weights {weights}: these vectors have no counts; choose mean, or take a .safetensors")
        self.texts = self.words = self.unknown = self.missing = 0
        self.size = int(vectors.shape[1])
        self._vectors, self._ngrams = vectors, ngrams
        self._lookup = Lookup(words.padded(), words.offsets)
        self._normalise = Normaliser(options, errors)
        self._strips_markup = options.strip_markup
        counts = np.ones(len(words), np.int64) if counts is None else np.maximum(counts, 1)
        # The last is that of unknown words. Counts in memory may add up to more than an int64 holds.
        shares = np.append(counts, 1) / counts.sum(dtype=np.float64)
        self._weights: Array = FORMULAS[weights](shares).astype(np.float32)
        self._common = np.zeros(self.size, np.float32)
        if weights == "sif":
            expected = (shares * self._weights).astype(np.float32)
            parts = (expected[start : start + len(rows)] @ rows for start, rows in bfloat16.blocks(vectors))
            self._common = unit(np.sum(list(parts), axis=0))

    def blocks(
        self, texts: Corpus, progress: Report | None = None, column: str | None = PLAIN, encoding: str = UTF_8
    ) -> Iterator[Array]:
        """The vectors of texts, one on each line or in the `column` of tables, (n, D), a block at a time.

        Raises W2VError for what is no text and, if `column` is None, for tables; SettingsError for an unknown
        `encoding` of their files.
        """
        meter = Meter(progress, "encode")
        rest, share, done = np.zeros(self.size, np.float32), np.float32(0), 0  # of a text that a block has cut
        for text, bytes_done in self._read(texts, column, encoding_name(encoding)):
            sums, shares = self._encoded(self._normalise(text))
            sums[0] += rest
            shares[0] += share
            rest, share = sums[-1], shares[-1]
            yield self._means(sums[:-1], shares[:-1])
            done = bytes_done
            meter(done, texts.total_bytes)
        self.missing += texts.missing
        meter(done, done)

    def _read(self, texts: Corpus, column: str | None, encoding: str) -> Iterator[tuple[bytes, int]]:
        """The text in blocks, in UTF-8, and the bytes read so far; each line without markup, if the options say so."""
        rest = b""
        for block in texts.blocks(column, as_lines=True, encoding=encoding, errors=self._normalise.errors):
            with malformed_located(block):
                text = self._normalise.valid(block.text)
            if self._strips_markup:
                *lines, rest = (rest + text[: -len(PADDING)]).split(b"\n")
                plain = (b"".join(without_markup([line])).replace(b"\n", b" ") + b"\n" for line in lines)
                text = b"".join([*plain, PADDING])
            yield text, block.bytes_done

    def _encoded(self, text: bytes) -> tuple[Array, Array]:
        """For each line and, last, for what follows the last newline: the sum of its vectors, and of its weights."""
        rows, blob, offsets = self._lookup.find(text)
        known = len(self._weights) - 1
        ends = np.flatnonzero(rows < 0)
        starts = np.concatenate([[0], ends, [len(rows)]])
        words = Words(blob, offsets)
        found = (rows >= 0) & (rows < known)
        before = np.append(0, np.cumsum(found))[starts]
        chosen = rows[found]
        different, places = np.unique(chosen, return_inverse=True)  # different rows are few, and copied once
        vectors = np.asarray(self._vectors[different], np.float32)
        sums = sums_of_rows(vectors, places, before, self._weights[chosen])
        shares = np.diff(np.append(0, np.cumsum(self._weights[chosen], dtype=np.float64))[before]).astype(np.float32)
        others = np.flatnonzero(rows >= known)
        self.texts += len(ends)
        self.words += len(rows) - len(ends)
        self.unknown += len(others)
        if self._ngrams is not None and len(others):
            self._add_unknown(words, rows[others] - known, np.searchsorted(ends, others), sums, shares)
        return sums, shares

    def _add_unknown(self, words: Words, numbers: Any, texts: Any, sums: Array, shares: Array) -> None:
        """Add the vectors of unknown words with n-grams: word numbers[i] occurs in text texts[i]."""
        assert self._ngrams is not None
        order = np.argsort(numbers, kind="stable")
        numbers, texts = numbers[order], texts[order]
        for start in range(0, len(words), UNKNOWN_AT_ONCE):
            group = np.arange(start, min(start + UNKNOWN_AT_ONCE, len(words)))
            made = self._ngrams.vectors(words.take(group))
            first, last = np.searchsorted(numbers, [start, start + len(group)])
            chosen, into = numbers[first:last] - start, texts[first:last]
            kept = np.flatnonzero(made[chosen].any(axis=1))
            chosen, into = chosen[kept], into[kept]
            np.add.at(sums, into, self._weights[-1] * made[chosen])
            np.add.at(shares, into, self._weights[-1])
            self.unknown -= len(chosen)

    def _means(self, sums: Array, shares: Array) -> Array:
        divisors = shares[:, np.newaxis]
        means = np.divide(sums, divisors, out=np.zeros_like(sums), where=divisors > 0)
        means -= (means @ self._common)[:, np.newaxis] * self._common
        return means
