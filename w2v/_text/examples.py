"""Texts with labels as examples: the rows of their words and n-grams, with weights, and their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from w2v._detect import SENTENCE_END_WORD
from w2v._errors import NothingToTrain, W2VError, pluralise
from w2v._system import memory
from w2v._system.files import temporary_folder
from w2v._text._subwords import IGNORED_LABEL, NO_LABEL, Addends, TextRows, TextTypes, hashes_of, idf_weights
from w2v._text._text import PRUNED_TYPE, SENTENCE_END_ID
from w2v._text.idstore import IdStore, TypeCounts, concatenate_in_files, temporary_array
from w2v._text.labels import LabelOptions, label_of, label_token
from w2v._text.subwords import Subwords
from w2v._text.vocabulary import Vocabulary, extend_vocabulary, label_tensors, labels_of_file
from w2v._text.words import OWN_PREFIX, Words

NGRAM_FACTOR = 0.6  # of the weights of n-grams of words with idf pooling (bench/NOTES.md)
LETTERS_FACTOR = 0.25  # of the weights of n-grams of characters
NGRAM_MULTIPLIER = 116049371  # of the hash of word n-grams, as in fastText
NGRAM_ROWS = "text_ngrams"  # a tensor in files: the rows of the buckets
SumOverRanks = Callable[[NDArray[Any]], NDArray[Any]]
END = Words.of([SENTENCE_END_WORD])
IDS_AT_ONCE, TEXTS_AT_ONCE, ROWS_AT_ONCE = 1 << 18, 1 << 10, 1 << 22  # so that what is computed of them fits in memory
TINY = 1e-30  # instead of the norm 0 of a text whose words all occur in every text of the training


@dataclass(frozen=True)
class Examples:
    """N texts with labels, or contexts with their inputs. Each has at least one row and one label.

    Attributes:
        starts: int64 (N + 1,), where the rows of each text begin in `rows`.
        rows: int32 (n,), rows of the input matrix. The rows of a text are distinct.
        weights: float32 (n,), the factor of each row in the sum that predicts the label; empty in skip-gram, where each
            row predicts it.
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

    def part(self, first: int, end: int) -> Examples:
        """Return the texts from number `first` up to `end`. They share the memory of these examples."""
        starts, rows = _slice(self.starts, first, end)
        label_starts, labels = _slice(self.label_starts, first, end)
        own = self.rows[rows], self.weights[rows], label_starts, self.labels[labels]
        return Examples(starts, *own, self.importance[first:end])

    def balanced(self, classes: int, sum_over_ranks: SumOverRanks) -> Examples:
        """Return the texts with an importance that gives each of the classes, their labels, the same sum."""
        texts = np.repeat(np.arange(len(self)), np.diff(self.label_starts))
        totals = sum_over_ranks(np.bincount(self.labels, self.importance[texts], classes))
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
            starts, rows = _slice(self.starts, first, end)
            label_starts, labels = _slice(self.label_starts, first, end)
            own = self.rows[rows], self.counts[rows], self.sizes[first:end]
            yield RowCounts(starts, *own, label_starts, self.labels[labels])


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
        pruned: Whether n-grams without a row do not count for the mean of the rows of a text, and further texts add no
            rows.
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

    @classmethod
    def choose(
        cls,
        types: TypeCounts,
        options: LabelOptions,
        prefix: str | None = None,
        before: Features | None = None,
        *,
        min_count: int = 1,
        max_vocab: int | None = None,
        subwords: Subwords | None = None,
        buckets: int = 2_000_000,
    ) -> tuple[Features, NDArray[np.int64], NDArray[np.int64]]:
        """Choose the words and the labels of texts. `find` adds rows of n-grams, and `with_idf` the idf.

        Args:
            types: The types of the texts.
            options: The options of the classifier.
            prefix: What labels begin with in these texts; by default, the prefix of the options.
            before: The features of the classifier that is continued.
            min_count, max_vocab: See extend_vocabulary.
            subwords: See the attribute.
            buckets: The number of buckets that n-grams are hashed into.

        Returns:
            The features; the row of each row of `before`, int64 (V + B,), and the number of each of its labels,
            int64 (L,).

        Raises:
            NothingToTrain: There are no labels or no words.
        """
        prefix = options.label_prefix if prefix is None else prefix
        words, counts = types_of(types), types.counts
        is_label, is_word = _labels_and_words(words, counts, prefix, min_count)
        old_words, old_labels, old_buckets = None, None, np.empty(0, np.int32)
        if before:
            old_words, old_labels, old_buckets = before.vocabulary, before.labels, before.buckets
        if before and options.pruned:
            max_vocab = len(before.vocabulary)
        own = words.take(np.flatnonzero(is_word)), counts[is_word]
        vocabulary, rows = extend_vocabulary(old_words, *own, min_count, max_vocab)
        names = Words.of([label_of(token, prefix) for token in words.take(np.flatnonzero(is_label))])
        labels, numbers = extend_vocabulary(old_labels, names, counts[is_label], options.min_count_label)
        rows = np.append(rows, len(vocabulary) + np.arange(len(old_buckets)))
        more = options.word_ngrams, subwords, options.label_prefix, old_buckets, None, options.pruned
        return cls(vocabulary, labels, buckets, *more), rows, numbers

    @property
    def rows(self) -> int:
        """The number of rows, V + B."""
        return len(self.vocabulary) + len(self.buckets)

    @property
    def row_of_bucket(self) -> NDArray[np.int32]:
        """The row of each bucket, or -1: int32 (bucket_count,)."""
        rows: NDArray[np.int32] = memory.empty((self.bucket_count,), np.int32)
        rows.fill(-1)
        rows[self.buckets] = np.arange(len(self.vocabulary), self.rows, dtype=np.int32)
        return rows

    def find(
        self, store: IdStore, prefix: str | None = None, add: bool = False, folder: Path | None = None
    ) -> tuple[Features, RowCounts]:
        """Find the rows and the labels of texts.

        Args:
            store: The texts.
            prefix: What labels begin with in these texts; by default, `label_prefix`.
            add: Whether n-grams without a row get one.
            folder: The folder for a temporary file with the rows.

        Returns:
            These features, with the new rows, and the rows of the texts.
        """
        types, row_of_bucket, row_count = types_of(store), self.row_of_bucket, self.rows
        labels = self.label_lookup(prefix)(types)
        if add and self.subwords:
            buckets = np.unique(self.subwords.ngram_buckets(types.take(np.flatnonzero(labels == NO_LABEL)))[1])
            new = buckets[row_of_bucket[buckets] < 0]
            row_of_bucket[new] = np.arange(row_count, row_count + len(new))
            row_count += len(new)
        known = TextTypes(types.blob, types.offsets, self.vocabulary.words.rows_of(types), labels)
        none = TextTypes(types.blob[:0], types.offsets[:1], labels[:0], labels[:0])
        finder = self.finder(row_of_bucket, row_count, add)
        pieces = _whole_texts(store.pieces(IDS_AT_ONCE))
        found = _join((RowCounts(*finder.find(ids, known, none)) for ids in pieces), temporary_folder(folder))
        buckets = np.flatnonzero(row_of_bucket >= 0).astype(np.int32)
        return replace(self, buckets=buckets[np.argsort(row_of_bucket[buckets])]), found

    def agree(self, found: RowCounts, known: int, sum_over_ranks: SumOverRanks) -> tuple[Features, RowCounts]:
        """Add the buckets that the texts of other ranks have, so that all ranks have the same rows.

        Args:
            found: The rows of this rank's texts.
            known: The number of the first buckets that all ranks knew before.
            sum_over_ranks: A function that sums arrays over all ranks.

        Returns:
            The features, and the rows of this rank's texts in them.
        """
        occurs = np.zeros(self.bucket_count, np.int32)
        occurs[self.buckets] = 1
        buckets = np.flatnonzero(sum_over_ranks(occurs)).astype(np.int32)
        new = np.setdiff1d(buckets, self.buckets[:known])
        features = replace(self, buckets=np.append(self.buckets[:known], new))
        rows = np.append(np.arange(len(self.vocabulary), dtype=np.int32), features.row_of_bucket[self.buckets])
        return features, found._replace(rows=rows[found.rows])

    def label_lookup(self, prefix: str | None = None) -> Callable[[Words], NDArray[np.int32]]:
        """Return a function that returns the label of each of n words, NO_LABEL or IGNORED_LABEL: int32 (n,)."""
        prefix = self.label_prefix if prefix is None else prefix
        lookup = Words.of([label_token(label, prefix) for label in self.labels.words]).lookup()
        start = prefix.encode()

        def labels_of(words: Words) -> NDArray[np.int32]:
            labels: NDArray[np.int32] = lookup.rows(words.with_padding(), words.offsets)
            labels[words.start_with(start) & (labels < 0)] = IGNORED_LABEL
            return labels

        return labels_of

    def finder(self, row_of_bucket: NDArray[np.int32], row_count: int, add: bool = False) -> TextRows:
        """Return a TextRows that finds the rows of these features; its arguments are the same."""
        lengths = (self.subwords.shortest, self.subwords.longest) if self.subwords else (1, 0)
        return TextRows(self.word_ngrams, *lengths, row_of_bucket, row_count, add, self.pruned)

    def with_idf(
        self,
        found: RowCounts,
        types: TypeCounts,
        before: Features | None,
        rows: NDArray[np.int64],
        sum_over_ranks: SumOverRanks,
    ) -> Features:
        """Return these features with the idf of each row among N texts, ln((N + 1) / df).

        Rows of a model that is continued keep their idf, because the number of its texts with each row is not known.

        Args:
            found: The rows of the texts.
            types: The types of the texts.
            before: The features of the classifier that is continued, or None.
            rows: The row here of each of its rows.
            sum_over_ranks: A function that sums arrays over all ranks.
        """
        texts = np.zeros(self.rows, np.int64)
        for first in range(0, len(found.rows), ROWS_AT_ONCE):
            texts += np.bincount(found.rows[first : first + ROWS_AT_ONCE], minlength=self.rows)
        counts = sum_over_ranks(np.append(texts, len(found.sizes)))
        idf = np.log((counts[-1] + 1) / np.maximum(counts[:-1], 1))
        idf[len(self.vocabulary) :] *= NGRAM_FACTOR
        if self.subwords:
            letters = self.row_of_bucket[np.unique(self.subwords.ngram_buckets(types_of(types))[1])]
            idf[letters[letters >= 0]] *= LETTERS_FACTOR / NGRAM_FACTOR
        if before:
            idf[rows] = before.factors
        return replace(self, factors=idf.astype(np.float32))

    @cached_property
    def end_row(self) -> int:
        """The row of the word </s>, or -1."""
        words = self.vocabulary.words
        rows = np.flatnonzero(np.diff(words.offsets) == len(SENTENCE_END_WORD))
        found = rows[words.take(rows).start_with(SENTENCE_END_WORD)]
        return int(found[0]) if len(found) else -1

    def have_words(self, found: RowCounts) -> NDArray[np.bool_]:
        """Return which of N texts have a row other than the row of </s>, bool (N,)."""
        before = np.append(0, np.cumsum(found.rows != self.end_row))[found.starts]
        return np.diff(before) > 0

    def examples(
        self,
        found: RowCounts,
        importance: NDArray[np.float32] | None = None,
        seed: int | None = None,
        folder: Path | None = None,
    ) -> Examples:
        """Return the texts that have words and labels as examples.

        Args:
            found: The rows of N texts.
            importance: The weights of the texts, (N,), which are scaled to a mean of 1; by default, all are the same.
                Texts of weight 0 are left out.
            seed: The seed of a random order of the texts; by default, they stay in order.
            folder: The folder for a temporary file with the rows and their weights.
        """
        importance = np.ones(len(found.sizes), np.float32) if importance is None else importance
        usable = np.concatenate([self.have_words(part) for part in found.parts(TEXTS_AT_ONCE)])
        usable &= (np.diff(found.label_starts) > 0) & (importance > 0)
        order = np.flatnonzero(usable)
        if seed is not None:
            order = order[np.random.default_rng(seed).permutation(len(order))]
        starts = starts_of(np.diff(found.starts)[order])
        new_starts = np.empty(len(usable), np.int64)
        new_starts[order] = starts[:-1]
        folder, first = temporary_folder(folder), 0
        rows, weights = (temporary_array(int(starts[-1]), kind, folder) for kind in (np.int32, np.float32))
        for part in found.parts(TEXTS_AT_ONCE):
            texts = np.flatnonzero(usable[first : first + len(part.sizes)])
            own, places = _ranges(part.starts, texts)
            to = np.repeat(new_starts[first + texts] - own[:-1], np.diff(own)) + np.arange(own[-1])
            rows[to], weights[to] = part.rows[places], self.weights(part)[places]
            first += len(part.sizes)
        label_starts, places = _ranges(found.label_starts, order)
        scaled = importance[order] / importance[order].mean(dtype=np.float64) if len(order) else importance[order]
        return Examples(starts, rows, weights, label_starts, found.labels[places], scaled.astype(np.float32))

    def weights(self, found: RowCounts) -> NDArray[np.float32]:
        """Return the factor of each row in the sum over the rows of its text, float32 (n,).

        With mean pooling, it is the share of the row among all rows of the text. With idf pooling, it is (1 + ln tf) ·
        idf, scaled so that the squares of the factors of a text add up to 1.
        """
        if self.factors is not None:
            return idf_weights(found.rows, found.counts, found.starts, self.factors, TINY)
        shares: NDArray[Any] = found.counts / np.repeat(found.sizes, np.diff(found.starts))
        return shares.astype(np.float32)

    # -- files --------------------------------------------------------------------------------------

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays to store in a file, by name, besides the words and their counts."""
        stored = label_tensors(self.labels) | {"text_buckets": self.buckets}
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
        kinds: dict[str, Any] = {"text_buckets": np.int32}
        if ("idf" in tensors) != (options.pooling == "idf"):
            raise W2VError(f"damaged: it has pooling {options.pooling}, and {'an' if 'idf' in tensors else 'no'} idf")
        kinds |= {"idf": np.float32} if "idf" in tensors else {}
        found = {name: tensors.get(name, np.empty(0)) for name in kinds}
        buckets, rows = found["text_buckets"], len(vocabulary) + len(found["text_buckets"])
        if (
            any(found[name].dtype != kind or found[name].ndim != 1 for name, kind in kinds.items())
            or np.any(buckets < 0) or np.any(buckets >= bucket_count)
            or (np.any(buckets[1:] <= buckets[:-1]) and len(np.unique(buckets)) != len(buckets))
            or len(found.get("idf", np.empty(rows))) != rows
        ):  # fmt: skip
            raise W2VError("damaged: its labels and n-grams are inconsistent")
        own = options.word_ngrams, subwords, options.label_prefix, np.array(buckets), found.get("idf")
        return cls(vocabulary, labels_of_file(tensors), bucket_count, *own, options.pruned)


class PooledTexts(NamedTuple):
    """The weighted sums of the rows of N texts: see TextRows.pool."""

    rows: NDArray[np.float32]
    known: NDArray[np.bool_]
    sizes: NDArray[np.int64]
    label_starts: NDArray[np.int64]
    labels: NDArray[np.int32]


class TextFinder:
    """Finds the rows of new texts. Any thread may call it.

    Args:
        features: The meaning of the rows.
        width: The number of values of a sum in `pool`.
    """

    def __init__(self, features: Features, width: int) -> None:
        self._features, words = features, features.vocabulary.words
        self._lookup, self._row_of_bucket = words.lookup(), features.row_of_bucket
        self._labels = {prefix: features.label_lookup(prefix) for prefix in (features.label_prefix, OWN_PREFIX)}
        own = np.append(np.int32(features.end_row), np.arange(len(words), dtype=np.int32))
        types, self._width = END.concat(words), width if features.subwords else 0
        self._types = TextTypes(types.blob, types.offsets, own, np.full_like(own, NO_LABEL), self._width)

    def find(self, text: bytes, prefix: str | None = None) -> RowCounts:
        """Find the rows and the labels of the lines of a text, which ends with a newline and PADDING.

        An unknown label is -1. Labels begin with the `prefix`, by default the `label_prefix` of the features.
        """
        finder = self._features.finder(self._row_of_bucket, self._features.rows)
        found = RowCounts(*finder.find(*self._tokens(text, prefix)))
        return found._replace(labels=self._known_labels(found.labels))

    def pool(self, text: bytes, prefix: str | None, addends: Addends) -> PooledTexts:
        """Return the means of the rows of the lines of a text, or of their products; and their labels, as in `find`."""
        finder = self._features.finder(self._row_of_bucket, self._features.rows)
        found = PooledTexts(*finder.pool(*self._tokens(text, prefix), addends))
        return found._replace(labels=self._known_labels(found.labels))

    def _tokens(self, text: bytes, prefix: str | None) -> tuple[NDArray[np.uint32], TextTypes, TextTypes]:
        """Return the types of the tokens of a text, the known types, and the others."""
        features = self._features
        rows, blob, offsets = self._lookup.find(text)
        labels = self._labels[features.label_prefix if prefix is None else prefix](Words(blob, offsets))
        labels[labels == IGNORED_LABEL] = len(features.labels)  # because TextRows leaves out negative ones
        types = TextTypes(blob, offsets, np.full_like(labels, -1), labels, self._width)
        return (rows + 1).astype(np.uint32), self._types, types  # the end of a text is -1 in `rows`

    def _known_labels(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return labels with -1 for unknown ones."""
        return np.where(labels < len(self._features.labels), labels, np.int32(-1))

    def names_of_rows(self, text: list[bytes]) -> dict[int, str]:
        """Return the words and n-grams of a text by their rows; see `find`. N-grams that share a row are joined."""
        features, row_of_bucket, found = self._features, self._row_of_bucket, dict[int, dict[str, None]]()
        names = [word.decode(errors="replace") for word in (*text, SENTENCE_END_WORD)]
        words = Words.of(names)
        rows_of_words = self._lookup.rows(words.with_padding(), words.offsets).tolist()
        hashes = hashes_of(words.blob, words.offsets)
        starts, buckets = (features.subwords or Subwords(1, 0, 1)).ngram_buckets(words)
        for at, name in enumerate(names):
            found.setdefault(rows_of_words[at], {})[name] = None
            for row in row_of_bucket[buckets[starts[at] : starts[at + 1]]].tolist():
                found.setdefault(row, {})[f"letters of {name}"] = None
            value = int(hashes[at])
            for end in range(at + 1, min(at + features.word_ngrams, len(names))):
                value = (value * NGRAM_MULTIPLIER + int(hashes[end])) % (1 << 64)
                row = int(row_of_bucket[value % features.bucket_count])
                found.setdefault(row, {})[" ".join(names[at : end + 1])] = None
        return {row: " / ".join(named) for row, named in found.items()}


def types_of(store: TypeCounts) -> Words:
    """Return the word of each id of a text; the end of a text is the word </s>, as in fastText."""
    offsets = store.types.offsets + len(SENTENCE_END_WORD)
    offsets[SENTENCE_END_ID] = 0
    return Words(np.append(END.blob, store.types.blob), offsets)


def _labels_and_words(
    types: Words, counts: NDArray[np.int64], prefix: str, min_count: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which types of a text are labels, and which are words of a vocabulary: bool (types,) each.

    Raise NothingToTrain if there are none.
    """
    starts = types.start_with(prefix.encode())
    is_label = starts & (np.diff(types.offsets) > len(prefix.encode()))  # the prefix without a name is neither
    is_word = ~starts & (counts > 0)
    is_word[PRUNED_TYPE] = False
    is_word[np.flatnonzero(END.rows_of(types) == 0)[1:]] = False  # </s> as a word of the text
    if not is_label.any() and prefix == OWN_PREFIX:
        raise NothingToTrain("no text has a label: all of them are missing")
    if not is_label.any():
        raise NothingToTrain(
            f"no word begins with {prefix}: write the labels into the lines, as in {prefix}sport, or name the columns "
            "of a table with --column and --labels (column=, labels=)"
        )
    if not np.any(counts[is_word] >= min_count):
        raise NothingToTrain(f"no word occurs at least {pluralise(min_count, 'time')}: lower --min-count (min_count=)")
    return is_label, is_word


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


def _join(parts: Iterable[RowCounts], folder: Path) -> RowCounts:
    """Return consecutive texts together. The arrays are mapped to files in a folder."""
    kinds = np.int64, np.int32, np.int32, np.int64, np.int64, np.int32
    columns = ((np.diff(part[0]), *part[1:4], np.diff(part[4]), part[5]) for part in parts)
    lengths, rows, counts, sizes, label_counts, labels = concatenate_in_files(columns, kinds, folder)
    return RowCounts(starts_of(lengths), rows, counts, sizes, starts_of(label_counts), labels)


def starts_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where ranges of these lengths begin when they follow each other, and where the last one ends."""
    return np.append(0, np.cumsum(lengths))


def _slice(starts: NDArray[np.int64], first: int, end: int) -> tuple[NDArray[np.int64], slice]:
    """Return where the ranges from number `first` up to `end` begin among their items, and the slice of these items."""
    return starts[first : end + 1] - starts[first], slice(starts[first], starts[end])


def _ranges(starts: NDArray[np.int64], chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where chosen ranges begin when they follow each other, and the places of all their items."""
    lengths = starts[chosen + 1] - starts[chosen]
    new_starts = starts_of(lengths)
    return new_starts, np.repeat(starts[chosen] - new_starts[:-1], lengths) + np.arange(new_starts[-1])
