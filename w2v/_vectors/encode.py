"""Vectors of texts: weighted means of the vectors of their words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from w2v._errors import SettingsError, W2VError
from w2v._formats import bfloat16
from w2v._options import suggestion
from w2v._progress import Meter, Report
from w2v._system.files import Errors
from w2v._text._text import Items
from w2v._text.columns import PLAIN
from w2v._text.corpus import Corpus, DataFrameLike, python_values
from w2v._text.encodings import UTF_8
from w2v._text.lines import read_lines
from w2v._text.subwords import sums_of_rows
from w2v._text.words import Words
from w2v._vectors.cosines import Floats, unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of
from w2v._vectors.neighbours import complete_vectors

Weights = Literal["mean", "idf", "sif"]

SIF = 1e-3  # the constant a of Arora et al. 2017
FORMULAS: dict[Weights, Callable[[Any], Any]] = {
    "mean": np.ones_like,
    "idf": lambda share: -np.log(share),
    "sif": lambda share: SIF / (SIF + share),
}
UNKNOWN_AT_ONCE = 1 << 10  # unknown words composed of n-grams in a batch


def encode(
    model: KeyedVectors | HasWordVectors,
    texts: Iterable[str | None] | Iterable[Sequence[str] | None],
    weights: Weights = "sif",
) -> Floats:
    """Return the vectors of n texts or lists of words, float32 (n, D): weighted means of their words' vectors.

    Texts are split into words by `words_in` of the vectors. A text without a known word gets zeros. So does a missing
    text (None, NaN); a TextWarning says how many were missing.

    Args:
        model: A model or vectors.
        texts: The texts.
        weights: The weight of a word w with the share p(w) of the words of the training text. "mean": 1. "idf":
            −log p(w). "sif": a / (a + p(w)) with a = 0.001, and the component that all texts have in common is removed,
            as in Arora, Liang and Ma 2017.

    Raises:
        SettingsError: If `weights` is unknown, or if it is "idf" or "sif" and the counts of the words are unknown.
        W2VError: If `texts` is not a list of texts, but a table or a string, for example.
    """
    return encode_lines(Encoder(vectors_of(model), weights), texts)


def encode_lines(encoder: Any, texts: Any) -> Floats:
    """Return the vectors that an Encoder or an Inference gives to texts or lists of words in memory, float32 (n, D).

    Raises:
        W2VError: If `texts` is not a list of texts, but a table or a string, for example.
    """
    if isinstance(texts, str):
        raise W2VError(f"a list of texts is needed, not a single one: write [{texts[:60]!r}]")
    if isinstance(texts, DataFrameLike | Mapping):
        raise W2VError("a list of texts is needed, not a table: give one of its columns")
    if not isinstance(texts, Iterable):
        raise W2VError(f"a list of texts is needed, not an object of type {type(texts).__name__}")
    lines = (text.replace("\n", " ") if isinstance(text, str) else text for text in python_values(texts))
    blocks = encoder.blocks(Corpus(lines), progress=lambda _: None)
    return np.concatenate([np.empty((0, encoder.size), np.float32), *blocks])


class Encoder:
    """A converter of texts into vectors.

    The vector of a text is the weighted mean of the vectors of its known words. p(w) is the share of word w in the
    training text. The weight of w is

        "mean"      1
        "idf"       −log p(w)
        "sif"       a / (a + p(w)), a = 0.001

    "sif" is the method of Arora, Liang and Ma 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings". It
    also removes the component that all texts have in common. The paper projects out the first singular vector of the
    encoded texts; here it is the expected vector of a text, Σ p(w) weight(w) vector(w). So the vector of a text does
    not depend on the other texts.

    Unknown words are left out, unless the vectors have n-grams. Then an unknown word gets a vector made from its
    n-grams, and the weight of a word that occurs once.

    Attributes:
        texts: Number of texts encoded so far.
        words: Number of words in these texts.
        unknown: Number of words left out.
        missing: Number of missing texts, such as None or an empty field of CSV; they are encoded as zeros.
    """

    def __init__(self, keyed_vectors: KeyedVectors, weights: Weights = "sif", errors: Errors = "strict") -> None:
        """Compute the weights of all words.

        Args:
            keyed_vectors: The words and their vectors.
            weights: See the class.
            errors: "strict", "replace" or "ignore": how to treat bytes that are not UTF-8.

        Raises:
            SettingsError: If `weights` is unknown, or if it needs counts and the counts of the words are unknown.
        """
        if weights not in get_args(Weights):
            raise SettingsError(f"weights {weights!r:.60}: {suggestion(str(weights), get_args(Weights))}")
        vectors, counts = keyed_vectors.vectors, keyed_vectors.counts
        if counts is None and weights != "mean":
            raise SettingsError(
                f"weights {weights}: these vectors have no counts; choose mean, or a .safetensors file, which has them"
            )
        self.texts = self.words = self.unknown = self.missing = 0
        self.size = keyed_vectors.vector_size
        self._vectors, self._ngrams, self._lookup = vectors, keyed_vectors.ngrams, keyed_vectors.lookup
        self._text, self._errors = keyed_vectors.header.text, errors
        counts = np.ones(len(vectors), np.int64) if counts is None else np.maximum(counts, 1)
        shares = np.append(counts, 1) / counts.sum(dtype=np.float64)  # the last is the share of an unknown word
        self._weights: Floats = FORMULAS[weights](shares).astype(np.float32)
        self._common = np.zeros(self.size, np.float32)
        if weights == "sif":
            expected = (shares * self._weights).astype(np.float32)
            parts = (expected[start : start + len(rows)] @ rows for start, rows in bfloat16.float32_blocks(vectors))
            self._common = unit(np.sum(list(parts), axis=0))

    def blocks(
        self, texts: Corpus, progress: Report | None = None, column: str | None = PLAIN, encoding: str = UTF_8
    ) -> Iterator[Floats]:
        """Yield the vectors of texts in blocks, float32 (n, D).

        A text is a line of a plain file, or a cell in the `column` of a table.

        Raises:
            W2VError: If a file is not text, or if it is a table and `column` is None.
            SettingsError: If `encoding` is unknown.
        """
        meter = Meter(progress, "encode")
        # The sum and the weight of a text that began in the last block and goes on in this one:
        begun_sum, begun_weight, done = np.zeros(self.size, np.float32), np.float32(0), 0
        for text, bytes_done in read_lines(texts, self._text, column, encoding, self._errors, action="gave zeros to"):
            sums, weights = self._sums(text)
            sums[0] += begun_sum
            weights[0] += begun_weight
            begun_sum, begun_weight = sums[-1], weights[-1]
            yield self._means(sums[:-1], weights[:-1])
            done = bytes_done
            meter(done, texts.total_bytes)
        self.missing += texts.missing
        meter(done, done)

    def _sums(self, text: bytes | Items) -> tuple[Floats, Floats]:
        """Return the weighted sum of each line's vectors, (lines + 1, D), and the sum of its weights, (lines + 1,).

        The last line is the text after the last newline. A session of items is a line.
        """
        rows, blob, offsets = self._lookup.find(text)  # -1 at the end of a line; V + k is the unknown word k
        vocabulary_size = len(self._weights) - 1
        line_ends = np.flatnonzero(rows < 0)
        line_starts = np.concatenate([[0], line_ends, [len(rows)]])
        is_known = (rows >= 0) & (rows < vocabulary_size)
        known = rows[is_known]
        cumulative_known_counts = np.append(0, np.cumsum(is_known))[line_starts]
        distinct, indices = np.unique(known, return_inverse=True)
        vectors = np.asarray(self._vectors[distinct], np.float32)  # a small copy, because most words repeat
        sums = sums_of_rows(vectors, indices, cumulative_known_counts, self._weights[known])
        cumulated = np.append(0, np.cumsum(self._weights[known], dtype=np.float64))
        weights = np.diff(cumulated[cumulative_known_counts]).astype(np.float32)
        unknown = np.flatnonzero(rows >= vocabulary_size)
        self.texts += len(line_ends)
        self.words += len(rows) - len(line_ends)
        self.unknown += len(unknown)
        if self._ngrams is not None and len(unknown):
            lines = np.searchsorted(line_ends, unknown)
            self._add_unknown(Words(blob, offsets), rows[unknown] - vocabulary_size, lines, sums, weights)
        return sums, weights

    def _add_unknown(self, words: Words, numbers: Any, lines: Any, sums: Floats, weights: Floats) -> None:
        """Add the vectors of unknown words, made from their n-grams: word numbers[i] occurs in line lines[i]."""
        assert self._ngrams is not None
        order = np.argsort(numbers, kind="stable")
        numbers, lines = numbers[order], lines[order]
        for start in range(0, len(words), UNKNOWN_AT_ONCE):
            batch = np.arange(start, min(start + UNKNOWN_AT_ONCE, len(words)))
            vectors = complete_vectors(self._ngrams.vectors(words.take(batch)), self._vectors)
            first, last = np.searchsorted(numbers, [start, start + len(batch)])
            rows, into = numbers[first:last] - start, lines[first:last]
            composed = np.flatnonzero(vectors[rows].any(axis=1))
            rows, into = rows[composed], into[composed]
            np.add.at(sums, into, self._weights[-1] * vectors[rows])
            np.add.at(weights, into, self._weights[-1])
            self.unknown -= len(rows)

    def _means(self, sums: Floats, weights: Floats) -> Floats:
        """Return the weighted means without the component that all texts have in common; zeros for a zero weight."""
        divisors = weights[:, np.newaxis]
        means = np.divide(sums, divisors, out=np.zeros_like(sums), where=divisors > 0)
        means -= (means @ self._common)[:, np.newaxis] * self._common
        return means
