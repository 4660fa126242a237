"""Texts with labels as examples: the rows of their words and n-grams, with weights, and their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from w2v.detect import SENTENCE_END_WORD
from w2v.errors import NothingToTrain, W2VError, pluralise
from w2v.system import memory
from w2v.text._subwords import IGNORED_LABEL, NO_LABEL, TextRows, hashes_of
from w2v.text._text import PRUNED_TYPE, SENTENCE_END_ID, Lookup
from w2v.text.idstore import IdStore, TypeCounts
from w2v.text.labels import OWN_PREFIX, LabelOptions, label_of, label_token
from w2v.text.subwords import Subwords
from w2v.text.vocabulary import Vocabulary
from w2v.text.words import Words

NGRAM_FACTOR = 0.6  # of the weights of n-grams of words with idf pooling (bench/NOTES.md)
LETTERS_FACTOR = 0.25  # of the weights of n-grams of characters
NGRAM_MULTIPLIER = 116049371  # of the hash of word n-grams, as in fastText
NGRAM_ROWS = "text_ngrams"  # a tensor in files: the rows of the buckets
TINY = 1e-30  # instead of the norm 0 of a text whose words all occur in every text of the training


@dataclass(frozen=True)
class Examples:
    """N texts with labels. Every text has at least one row and one label.

    Attributes:
        starts: int64 (N + 1,), where the rows of each text begin in `rows`.
        rows: int32 (n,), rows of the input matrix. The rows of a text are distinct.
        weights: float32 (n,), the factor of each row in the sum that predicts the label.
        label_starts: int64 (N + 1,), where the labels of each text begin in `labels`.
        labels: int32 (m,), the numbers of the labels.
        importance: float32 (N,), the factor of the learning rate for each text.
    """

    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    weights: NDArray[np.float32]
    label_starts: NDArray[np.int64]
    labels: NDArray[np.int32]
    importance: NDArray[np.float32]

    @classmethod
    def empty(cls) -> Examples:
        """Return no texts."""
        starts, none = np.zeros(1, np.int64), np.empty(0, np.int32)
        return cls(starts, none, none.astype(np.float32), starts, none, none.astype(np.float32))

    def __len__(self) -> int:
        return len(self.importance)

    def take(self, texts: NDArray[np.int64]) -> Examples:
        """Return these texts, in this order."""
        starts, places = _ranges(self.starts, texts)
        label_starts, label_places = _ranges(self.label_starts, texts)
        labels, importance = self.labels[label_places], self.importance[texts]
        return Examples(starts, self.rows[places], self.weights[places], label_starts, labels, importance)

    def balanced(self, classes: int) -> Examples:
        """Return the texts with an importance that gives each of the classes, their labels, the same sum."""
        texts = np.repeat(np.arange(len(self)), np.diff(self.label_starts))
        totals = np.bincount(self.labels, self.importance[texts], classes)
        factors = totals.sum() / (np.count_nonzero(totals) * np.maximum(totals, TINY))
        means = np.bincount(texts, factors[self.labels], len(self)) / np.diff(self.label_starts)
        return replace(self, importance=(self.importance * means).astype(np.float32))

    def chunk_starts(self, size: int) -> NDArray[np.int64]:
        """Divide the texts into chunks of at most `size` rows, or one text: int64 (chunks + 1,)."""
        starts = [0]
        while starts[-1] < len(self):
            end = int(np.searchsorted(self.starts, self.starts[starts[-1]] + size, "right")) - 1
            starts.append(max(starts[-1] + 1, end))
        return np.array(starts, np.int64)


class RowCounts(NamedTuple):
    """The rows of N texts, before they are weighted. See TextRows.find."""

    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: NDArray[np.int32]
    sizes: NDArray[np.int64]
    label_starts: NDArray[np.int64]
    labels: NDArray[np.int32]

    def parts(self, size: int) -> Iterator[RowCounts]:
        """Divide the texts into parts of at most `size` texts; at least one, which may be empty."""
        for first in range(0, max(1, len(self.sizes)), size):
            end = min(first + size, len(self.sizes))
            rows = slice(self.starts[first], self.starts[end])
            labels = slice(self.label_starts[first], self.label_starts[end])
            starts, label_starts = (each[first : end + 1] - each[first] for each in (self.starts, self.label_starts))
            sizes = self.sizes[first:end]
            yield RowCounts(starts, self.rows[rows], self.counts[rows], sizes, label_starts, self.labels[labels])


@dataclass(frozen=True)
class Features:
    """The meaning of the input rows of a classifier: V words, then B buckets of n-grams that occurred in training.

    As in fastText, a text ends with the word </s>, and n-grams of words and of characters share the buckets.

    Attributes:
        vocabulary: The V words, with </s>.
        labels: The L labels, the most frequent first.
        bucket_count: The number of buckets that n-grams are hashed into.
        word_ngrams: The maximum number of words of an n-gram; 1 for none.
        subwords: The n-grams of characters, or None.
        label_prefix: The beginning of a token that is a label.
        buckets: int32 (B,), the bucket of each row from V on.
        factors: float32 (V + B,), the idf of each row, times NGRAM_FACTOR or LETTERS_FACTOR for n-grams; None with mean
            pooling.
        pruned: Whether n-grams without a row do not count for the mean of the rows of a text.
    """

    vocabulary: Vocabulary
    labels: Vocabulary
    bucket_count: int
    word_ngrams: int
    subwords: Subwords | None
    label_prefix: str
    buckets: NDArray[np.int32]
    factors: NDArray[np.float32] | None
    pruned: bool = False

    @property
    def rows(self) -> int:
        """The number of rows, V + B."""
        return len(self.vocabulary) + len(self.buckets)

    def united(
        self, types: Words, counts: NDArray[np.int64], prefix: str, min_count: int
    ) -> tuple[Features, NDArray[np.int64], NDArray[np.int64]]:
        """Add the words and the labels of a text.

        Args:
            types, counts: The word of each id, and how often it occurs.
            prefix: What labels begin with in the text.
            min_count: How often a new word must occur.

        Returns:
            The new features; the new row of each old row, int64 (V + B,), and the new number of each old label,
            int64 (L,).
        """
        is_label, is_word = _labels_and_words(types, counts, prefix, min_count)
        vocabulary, word_rows = _united(self.vocabulary, _most_frequent(types, counts, is_word))
        written = _most_frequent(types, counts, is_label)
        named = Vocabulary([label_of(token, prefix) for token in written.words], written.counts)
        labels, label_numbers = _united(self.labels, named)
        rows = np.append(word_rows, np.arange(len(self.buckets)) + len(vocabulary))
        return replace(self, vocabulary=vocabulary, labels=labels), rows, label_numbers

    @property
    def row_of_bucket(self) -> NDArray[np.int32]:
        """The row of each bucket, or -1: int32 (bucket_count,)."""
        rows: NDArray[np.int32] = memory.empty((self.bucket_count,), np.int32)
        rows.fill(-1)
        rows[self.buckets] = np.arange(len(self.vocabulary), self.rows, dtype=np.int32)
        return rows

    def find(
        self, types: Words, pieces: Iterable[NDArray[np.uint32]], prefix: str | None = None, add: bool = False
    ) -> tuple[Features, RowCounts]:
        """Find the rows and the labels of texts.

        Args:
            types: The word of each id; see `types_of`.
            pieces: The ids of the texts, in pieces.
            prefix: What labels begin with in these texts; by default, `label_prefix`.
            add: Whether n-grams without a row get one.

        Returns:
            These features, with the new rows, and the rows of the texts.
        """
        row_of_bucket = self.row_of_bucket
        finder = TextRows(len(self.vocabulary), self.word_ngrams, row_of_bucket, self.rows, add)
        row_of_type = Lookup(*_padded(self.vocabulary.words)).rows(types.with_padding(), types.offsets)
        arguments = row_of_type, self.label_lookup(prefix)(types), *self.hashes(types)
        found = _join([RowCounts(*finder.find(ids, *arguments)) for ids in _whole_texts(pieces)])
        buckets = np.flatnonzero(row_of_bucket >= 0).astype(np.int32)
        return replace(self, buckets=buckets[np.argsort(row_of_bucket[buckets])]), found

    def label_lookup(self, prefix: str | None = None) -> Callable[[Words], NDArray[np.int32]]:
        """Return a function that returns the label of each of n words, NO_LABEL or IGNORED_LABEL: int32 (n,)."""
        prefix = self.label_prefix if prefix is None else prefix
        lookup = Lookup(*_padded(Words.of([label_token(label, prefix) for label in self.labels.words])))
        start = prefix.encode()

        def labels_of(words: Words) -> NDArray[np.int32]:
            labels: NDArray[np.int32] = lookup.rows(*_padded(words))
            labels[words.start_with(start) & (labels < 0)] = IGNORED_LABEL
            return labels

        return labels_of

    def hashes(self, words: Words) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
        """Return the hash of each of n words, int32 (n,), and their character n-grams: see Subwords.ngram_buckets."""
        ngrams = np.zeros(len(words) + 1, np.int64), np.empty(0, np.int32)
        if self.subwords:
            ngrams = self.subwords.ngram_buckets(words)
        return hashes_of(words.blob, words.offsets), *ngrams

    def with_idf(
        self,
        found: RowCounts,
        types: Words,
        before: NDArray[np.float32] | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> Features:
        """Return these features with the idf of each row among N texts, ln((N + 1) / df).

        Rows of a model that is continued keep their idf, because the number of its texts with each row is not known.

        Args:
            found: The rows of the texts.
            types: The words of the texts.
            before, rows: The factors of the model that is continued, and its rows here.
        """
        texts = np.bincount(found.rows, minlength=self.rows)
        idf = np.log((len(found.sizes) + 1) / np.maximum(texts, 1))
        idf[len(self.vocabulary) :] *= NGRAM_FACTOR
        if self.subwords:
            letters = self.row_of_bucket[np.unique(self.subwords.ngram_buckets(types)[1])]
            idf[letters[letters >= 0]] *= LETTERS_FACTOR / NGRAM_FACTOR
        if before is not None:
            idf[rows] = before
        return replace(self, factors=idf.astype(np.float32))

    @cached_property
    def end_row(self) -> int:
        """The row of the word </s>, or -1."""
        return int(Lookup(*_padded(self.vocabulary.words)).rows(*_padded(Words.of([SENTENCE_END_WORD])))[0])

    def have_words(self, found: RowCounts) -> NDArray[np.bool_]:
        """Return which of N texts have a row besides that of </s>, bool (N,)."""
        before = np.append(0, np.cumsum(found.rows != self.end_row))[found.starts]
        return np.diff(before) > 0

    def examples(self, found: RowCounts, importance: NDArray[np.float32] | None = None) -> Examples:
        """Return the texts that have words and labels as examples. `importance`, (N,), is 1 by default."""
        importance = np.ones(len(found.sizes), np.float32) if importance is None else importance
        texts = Examples(found.starts, found.rows, self.weights(found), found.label_starts, found.labels, importance)
        usable = self.have_words(found) & (np.diff(found.label_starts) > 0) & (importance > 0)
        return texts.take(np.flatnonzero(usable))

    def weights(self, found: RowCounts) -> NDArray[np.float32]:
        """Return the factor of each row in the sum over the rows of its text, float32 (n,).

        With mean pooling, it is the share of the row among all rows of the text. With idf pooling, it is (1 + ln tf) ·
        idf, scaled so that the squares of the factors of a text add up to 1.
        """
        weights: NDArray[np.float64] = found.counts.astype(np.float64)
        totals: NDArray[np.float64] = found.sizes.astype(np.float64)
        if self.pruned:
            totals = np.diff(np.append(0, np.cumsum(weights))[found.starts])
        elif self.factors is not None:
            weights = (1 + np.log(weights)) * self.factors[found.rows]
            totals = np.sqrt(np.diff(np.append(0, np.cumsum(weights**2))[found.starts]))
        weights /= np.maximum(np.repeat(totals, np.diff(found.starts)), TINY)
        return weights.astype(np.float32)

    def names_of_rows(self, text: list[bytes]) -> dict[int, str]:
        """Return the words and n-grams of a text by their rows; see `find`. N-grams that share a row are joined."""
        words = [word.decode(errors="replace") for word in (*text, SENTENCE_END_WORD)]
        rows_of_words = Lookup(*_padded(Words.of(self.vocabulary.words))).rows(*_padded(Words.of(words))).tolist()
        hashes, starts, buckets = self.hashes(Words.of(words))
        row_of_bucket, found = self.row_of_bucket, dict[int, dict[str, None]]()
        for at, word in enumerate(words):
            found.setdefault(rows_of_words[at], {})[word] = None
            for row in row_of_bucket[buckets[starts[at] : starts[at + 1]]].tolist():
                found.setdefault(row, {})[f"letters of {word}"] = None
            value = int(hashes[at])
            for end in range(at + 1, min(at + self.word_ngrams, len(words))):
                value = (value * NGRAM_MULTIPLIER + int(hashes[end])) % (1 << 64)
                row = int(row_of_bucket[value % self.bucket_count])
                found.setdefault(row, {})[" ".join(words[at : end + 1])] = None
        return {row: " / ".join(names) for row, names in found.items()}

    # -- files --------------------------------------------------------------------------------------

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays to store in a file, by name, besides the words and their counts."""
        names = Words.of(self.labels.words)
        stored: dict[str, NDArray[Any]] = {
            "labels": names.blob,
            "label_offsets": names.offsets,
            "label_counts": self.labels.counts,
            "text_buckets": self.buckets,
        }
        return stored if self.factors is None else stored | {"idf": self.factors}

    @classmethod
    def from_file(
        cls,
        vocabulary: Vocabulary,
        tensors: Mapping[str, NDArray[Any]],
        options: LabelOptions,
        subwords: Subwords | None,
        bucket_count: int,
    ) -> Features:
        """Return the features in the arrays of a file. Raise W2VError if they are damaged."""
        kinds: dict[str, Any] = {
            "labels": np.uint8,
            "label_offsets": np.int64,
            "label_counts": np.int64,
            "text_buckets": np.int32,
        }
        kinds |= {"idf": np.float32} if options.pooling == "idf" else {}
        found = {name: tensors.get(name, np.empty(0)) for name in kinds}
        buckets, rows = found["text_buckets"], len(vocabulary) + len(found["text_buckets"])
        if (
            any(found[name].dtype != kind or found[name].ndim != 1 for name, kind in kinds.items())
            or np.any(buckets < 0) or np.any(buckets >= bucket_count) or len(np.unique(buckets)) != len(buckets)
            or len(found.get("idf", np.empty(rows))) != rows
            or len(found["label_counts"]) != len(found["label_offsets"]) - 1
        ):  # fmt: skip
            raise W2VError("damaged: its labels and n-grams are inconsistent")
        names = Words(found["labels"], np.array(found["label_offsets"]))
        labels = Vocabulary(names, found["label_counts"])
        own = options.word_ngrams, subwords, options.label_prefix, np.array(buckets), found.get("idf")
        return cls(vocabulary, labels, bucket_count, *own, options.fasttext == "pruned")


class TextFinder:
    """Finds the rows of new texts. Any thread may call it."""

    def __init__(self, features: Features) -> None:
        self._features, words = features, Words.of(features.vocabulary.words)
        self._lookup, self._labels = Lookup(*_padded(words)), features.label_lookup()
        end = Words.of([SENTENCE_END_WORD])
        self._row_of_type = np.append(self._lookup.rows(*_padded(end)), np.arange(len(words), dtype=np.int32))
        self._hashes = features.hashes(end.concat(words))
        rows = features.rows
        self._rows = TextRows(len(words), features.word_ngrams, features.row_of_bucket, rows, False)
        self._lock = Lock()  # `_rows` has working memory

    def find(self, text: bytes) -> RowCounts:
        """Find the rows and the labels of the lines of a text, which ends with a newline and PADDING.

        An unknown label is -1.
        """
        rows, blob, offsets = self._lookup.find(text)
        new = Words(blob, offsets)
        # The types of this text: its end, which is -1 in `rows`, then known words, then unknown ones.
        types, ids = np.unique(rows, return_inverse=True)
        known = types[: len(types) - len(new)] + 1
        (hashes, starts, buckets), (new_hashes, new_starts, new_buckets) = self._hashes, self._features.hashes(new)
        starts, places = _ranges(starts, known)
        row_of_type = np.append(self._row_of_type[known], np.full(len(new), -1, np.int32))
        label_of_type = np.append(np.full(len(known), NO_LABEL, np.int32), self._labels(new))
        hashes, buckets = np.append(hashes[known], new_hashes), np.append(buckets[places], new_buckets)
        starts = np.append(starts, starts[-1] + new_starts[1:])
        unknown = len(self._features.labels)  # stands for all unknown labels, because TextRows leaves out negative ones
        label_of_type[label_of_type == IGNORED_LABEL] = unknown
        with self._lock:
            found = RowCounts(
                *self._rows.find(ids.astype(np.uint32), row_of_type, label_of_type, hashes, starts, buckets)
            )
        found.labels[found.labels == unknown] = -1
        return found


def read_features(
    store: IdStore,
    options: LabelOptions,
    *,
    min_count: int = 1,
    max_vocab: int | None = None,
    subwords: Subwords | None = None,
    buckets: int = 2_000_000,
    prefix: str | None = None,
) -> tuple[Features, RowCounts]:
    """Choose the words, the n-grams and the labels of texts, and return them with the rows of the texts.

    Args:
        store: The texts.
        options: The options of the classifier.
        min_count, max_vocab: See Vocabulary.from_store.
        subwords: See Features.
        buckets: The number of buckets that n-grams are hashed into.
        prefix: What labels begin with in these texts; by default, the prefix of the options.

    Raises:
        W2VError: There are no labels.
    """
    types, prefix = types_of(store), options.label_prefix if prefix is None else prefix
    is_label, is_word = _labels_and_words(types, store.counts, prefix, min_count)
    written = _most_frequent(types, store.counts, is_label)
    labels = Vocabulary([label_of(token, prefix) for token in written.words], written.counts)
    features, found = Features(
        _most_frequent(types, store.counts, is_word, max_vocab), labels, buckets, options.word_ngrams,
        subwords, options.label_prefix, np.empty(0, np.int32), None,
    ).find(types, store.pieces(), prefix, add=True)  # fmt: skip
    return features.with_idf(found, types) if options.pooling == "idf" else features, found


def types_of(store: TypeCounts) -> Words:
    """Return the word of each id of a text; the end of a text is the word </s>, as in fastText."""
    blob = np.append(np.frombuffer(SENTENCE_END_WORD, np.uint8), store.types.blob)
    offsets = store.types.offsets + len(SENTENCE_END_WORD)
    offsets[SENTENCE_END_ID] = 0
    return Words(blob, offsets)


def _labels_and_words(
    types: Words, counts: NDArray[np.int64], prefix: str, min_count: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which types of a text are labels, and which are words of a vocabulary: bool (types,) each.

    Raise NothingToTrain if there are none.
    """
    starts = types.start_with(prefix.encode())
    is_label = starts & (np.diff(types.offsets) > len(prefix.encode()))  # the prefix alone is neither label nor word
    is_word = ~starts & (counts >= max(1, min_count))
    is_word[PRUNED_TYPE] = False
    is_word[np.flatnonzero(Lookup(*_padded(Words.of([SENTENCE_END_WORD]))).rows(*_padded(types)) == 0)[1:]] = False
    if not is_label.any() and prefix == OWN_PREFIX:
        raise NothingToTrain("no text has a label: all of them are missing")
    if not is_label.any():
        raise NothingToTrain(
            f"no word begins with {prefix}: write the labels into the lines, as in {prefix}sport, or name the columns "
            "of a table with --column and --labels (column=, labels=)"
        )
    if not is_word.any():
        raise NothingToTrain(f"no word occurs at least {pluralise(min_count, 'time')}: lower --min-count (min_count=)")
    return is_label, is_word


def _united(old: Vocabulary, new: Vocabulary) -> tuple[Vocabulary, NDArray[np.int64]]:
    """Add the words and counts of a vocabulary to an old one. Return it, and the new row of each old word."""
    places = Lookup(*_padded(old.words)).rows(*_padded(new.words))
    counts = old.counts.copy()
    counts[places[places >= 0]] += new.counts[places >= 0]
    counts = np.append(counts, new.counts[places < 0])
    words = old.words.concat(new.words.take(np.flatnonzero(places < 0)))
    order = np.argsort(-counts, kind="stable")
    return Vocabulary(words.take(order), counts[order]), np.argsort(order, kind="stable")[: len(old)]


def _most_frequent(
    types: Words, counts: NDArray[np.int64], chosen: NDArray[np.bool_], size: int | None = None
) -> Vocabulary:
    """Return the chosen types, the most frequent first."""
    ids = np.flatnonzero(chosen)
    ids = ids[np.argsort(-counts[ids], kind="stable")][:size]
    return Vocabulary(types.take(ids), counts[ids])


def _padded(words: Words) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return words.with_padding(), words.offsets


def _whole_texts(pieces: Iterable[NDArray[np.uint32]]) -> Iterator[NDArray[np.uint32]]:
    """Divide ids into pieces that end with a text."""
    rest = np.empty(0, np.uint32)
    for piece in pieces:
        ids = np.append(rest, piece)
        end = len(ids) - int(np.argmax(ids[::-1] == SENTENCE_END_ID)) if np.any(piece == SENTENCE_END_ID) else 0
        if end:
            yield ids[:end]
        rest = ids[end:]
    if len(rest):
        yield np.append(rest, np.uint32(SENTENCE_END_ID))


def _join(parts: list[RowCounts]) -> RowCounts:
    """Return consecutive texts together."""
    return RowCounts(
        starts=np.append(0, np.cumsum(np.concatenate([np.diff(part.starts) for part in parts]))),
        rows=np.concatenate([part.rows for part in parts]),
        counts=np.concatenate([part.counts for part in parts]),
        sizes=np.concatenate([part.sizes for part in parts]),
        label_starts=np.append(0, np.cumsum(np.concatenate([np.diff(part.label_starts) for part in parts]))),
        labels=np.concatenate([part.labels for part in parts]),
    )


def _ranges(starts: NDArray[np.int64], chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where chosen ranges begin when they follow each other, and the places of all their items."""
    lengths = starts[chosen + 1] - starts[chosen]
    new_starts = np.append(0, np.cumsum(lengths))
    return new_starts, np.repeat(starts[chosen] - new_starts[:-1], lengths) + np.arange(new_starts[-1])
