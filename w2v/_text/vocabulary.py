"""The vocabulary: words, their counts, and their probabilities of being kept by subsampling."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from w2v._detect import SENTENCE_END_WORD, read_lines
from w2v._errors import SettingsError, W2VError, pluralise
from w2v._options import check_whole
from w2v._settings import Formula
from w2v._system.files import PathLike, atomic_write
from w2v._text._text import FIRST_TYPE
from w2v._text.idstore import TypeCounts
from w2v._text.text_checks import FirstWords, spacing_advice
from w2v._text.words import INTEGER, MAX_COUNT, KeyType, Words

WORDS_AT_ONCE = 1 << 16  # words written at a time
WHITE_SPACE = b" \t\n\v\f\r"
LABEL_TENSORS: dict[str, Any] = {"labels": np.uint8, "label_offsets": np.int64, "label_counts": np.int64}


class Vocabulary:
    """The V words to train and their counts, the most frequent word first.

    Attributes:
        words: V str, as Words. Items may contain white space.
        counts: int64 (V,), how often each word occurs; at least 1.
        tokens: The sum of the counts, int.
        key_type: "int" if the words are numbers of items, in decimal digits; otherwise "str".
    """

    def __init__(self, words: Sequence[str], counts: ArrayLike, key_type: KeyType = "str") -> None:
        """Check the words and counts.

        Args:
            words: Different tokens, each of at most MAX_WORD_BYTES, since files cannot store longer words.
            counts: Positive integers, in descending order.
            key_type: See the attribute.

        Raises:
            W2VError: For any other words or counts.
        """
        if not isinstance(words, Words) and not all(isinstance(word, str) for word in words):
            raise W2VError("the words of a vocabulary must be str")
        self.words = Words.of(words)
        if not self.words.is_utf8():
            raise W2VError(f"the word {self.words.first_not_utf8()[:60]!r} of the vocabulary is not UTF-8")
        self.words.check_lengths("")
        count_array = np.asarray(counts)
        if not len(self) or count_array.dtype.kind not in "iu" or count_array.shape != (len(self),):
            words = pluralise(len(self), "word")
            raise W2VError(f"counts of shape {count_array.shape} and type {count_array.dtype} do not fit {words}")
        self.counts: NDArray[np.int64] = count_array.astype(np.int64, copy=False)
        if self.counts.min() < 1 or np.any(self.counts[1:] > self.counts[:-1]):
            raise W2VError("the counts of a vocabulary must be 1 or more and in descending order")
        if float(self.counts.sum(dtype=np.float64)) > MAX_COUNT:
            raise W2VError(f"the counts add up to more than {MAX_COUNT}")
        if np.any(self.words.offsets[1:] == self.words.offsets[:-1]):
            raise W2VError("the words of a vocabulary must not be empty")
        if rows := self.words.find_duplicate():
            raise W2VError(f"the vocabulary contains the word {self.words[rows[0]][:60]!r} twice")
        self.tokens = int(self.counts.sum())
        self.key_type: KeyType = key_type

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"<Vocabulary: {pluralise(len(self), 'word')}, {pluralise(self.tokens, 'token')}>"

    @classmethod
    def from_store(cls, store: TypeCounts, min_count: int = 5, max_vocab: int | None = None) -> Self:
        """Choose the vocabulary from the words of a text. Words with equal counts stay in first-seen order.

        Args:
            store: The words of the text.
            min_count: Words that occur less often are left out.
            max_vocab: If given, only this number of the most frequent words is chosen.

        Raises:
            W2VError: If no words are left.
            SettingsError: If `min_count` is negative or `max_vocab` is less than 1.
        """
        counts = store.counts[FIRST_TYPE:]
        chosen = _select(counts, min_count, max_vocab)
        if not chosen.size:
            if not counts.size:
                raise W2VError(f"all {store.noun}s were pruned: raise --max-types")
            top = int(counts.argmax())
            word = store.words(np.array([top + FIRST_TYPE]))[0]
            reason = (spacing_advice(FirstWords.of(store)) if store.is_text else "") or (
                f"the most frequent, {word[:60]!r}, occurs {pluralise(counts[top], 'time')}; "
                "lower --min-count or give more text"
            )
            raise W2VError(f"no {store.noun} occurs {pluralise(min_count, 'time')}: {reason}")
        return cls(store.words(chosen + FIRST_TYPE), counts[chosen], store.key_type)

    def with_key_type(self, key_type: KeyType) -> Vocabulary:
        """Return the same vocabulary with this type of keys, if its words are of this type. Files do not store it."""
        if key_type == self.key_type or not all(map(INTEGER.fullmatch, self.words)):
            return self
        return Vocabulary(self.words, self.counts, key_type)

    def copy(self) -> Vocabulary:
        """Return a copy. Windows does not replace a file while a vocabulary of it is mapped."""
        return Vocabulary(self.words.take(np.arange(len(self))), self.counts.copy(), self.key_type)

    def keep_probabilities(self, sample: float, formula: Formula = "word2vec") -> NDArray[np.float32]:
        """Return the probability that subsampling keeps an occurrence of each word: float32 (V,).

        With t = `sample` and f = the word's share of all occurrences, the formula "word2vec" is
        min(1, √(t/f) + t/f), as in word2vec.c. The formula "paper" is min(1, √(t/f)), equation 5 of Mikolov et al.
        2013, "Distributed Representations of Words and Phrases and their Compositionality". A `sample` of 0 keeps
        every occurrence.

        Raises:
            SettingsError: For impossible values.
        """
        if not 0 <= sample < math.inf:
            raise SettingsError(f"sample is {sample}: it must be 0 or more")
        if formula not in ("word2vec", "paper"):
            raise SettingsError(f"the subsampling formula is {formula!r}: it must be word2vec or paper")
        if sample == 0:
            return np.ones(len(self), np.float32)
        ratio = sample * self.tokens / self.counts
        keep = np.sqrt(ratio) + (ratio if formula == "word2vec" else 0)
        return np.minimum(keep, 1).astype(np.float32)

    def save(self, path: PathLike, sentence_ends: int, *, force: bool = False) -> None:
        """Write a vocabulary file in the format of word2vec.c.

        The first line has `</s>` and the number of `sentence_ends`. Each other line has a word and its count.

        Raises:
            W2VError: If the file cannot be written, if it exists and `force` is False, or if a word contains white
                space, which the format cannot store.
        """
        self.check_separable(path)
        with atomic_write(path, force) as file:
            file.write(SENTENCE_END_WORD + b" %d\n" % sentence_ends)
            for start in range(0, len(self), WORDS_AT_ONCE):
                counts = self.counts[start : start + WORDS_AT_ONCE].tolist()
                for word, count in zip(self.words[start : start + WORDS_AT_ONCE], counts, strict=True):
                    file.write(f"{word} {count}\n".encode())

    def check_separable(self, path: PathLike) -> None:
        """Raise W2VError if a word contains white space, which separates words and counts in a vocabulary file."""
        if self.words.contain_any(WHITE_SPACE):
            word = next(word for word in self.words if any(space in word for space in WHITE_SPACE.decode()))
            raise W2VError(
                f"{path}: not written: the item {word[:60]!r} contains white space, which separates the words"
            )

    @classmethod
    def load(cls, path: PathLike, min_count: int = 1, max_vocab: int | None = None) -> Self:
        """Read a file written by `save` or word2vec.c, and choose words from it as `from_store` does.

        If the first line is for `</s>`, it is skipped.

        Raises:
            W2VError: If the file cannot be read, if a line is in another format (the message has its number), if a word
                appears twice, or if no words are left.
        """
        name = os.fspath(path)
        blob, ends, line_counts = bytearray(), array("q", [0]), array("q")
        for number, line in read_lines(path, "vocabulary"):
            if not line.strip() or (number == 1 and line.split(None, 1)[0] == SENTENCE_END_WORD):
                continue
            try:
                word, count = _parse(line)
            except ValueError as error:
                raise W2VError(f"{name}, line {number}: {error}") from None
            blob += word
            ends.append(len(blob))
            line_counts.append(count)
        if not line_counts:
            raise W2VError(f"{name} holds no words")
        if sum(line_counts) > MAX_COUNT:
            raise W2VError(f"{name}: the counts add up to more than {MAX_COUNT}")
        words = Words(np.frombuffer(blob, np.uint8), np.frombuffer(ends, np.int64))
        counts = np.frombuffer(line_counts, np.int64)
        rows = words.find_duplicate()
        if rows:
            first, second = counts[[*rows]]
            repeated = words[rows[0]][:60]
            raise W2VError(f"{name}: the word {repeated!r} appears twice, with counts {first} and {second}")
        chosen = _select(counts, min_count, max_vocab)
        if not chosen.size:
            raise W2VError(f"{name} holds no word that occurs {pluralise(min_count, 'time')}")
        words, counts = words.take(chosen), counts[chosen]
        del blob, ends, line_counts, chosen  # the check of the words below needs memory, too
        return cls(words, counts)


def extend_vocabulary(
    old: Vocabulary | None,
    words: Words,
    counts: NDArray[np.int64],
    min_count: int = 1,
    max_vocab: int | None = None,
    key_type: KeyType = "str",
) -> tuple[Vocabulary, NDArray[np.int64]]:
    """Add the words and counts of a text to a vocabulary.

    Args:
        old: The vocabulary; None if there is none yet.
        words: The different words of the text.
        counts: How often each of them occurs.
        min_count: New words that occur less often are left out.
        max_vocab: Add new words, the most frequent first, up to this many words in total.
        key_type: See Vocabulary.

    Returns:
        The new vocabulary, and the row in it of each old word, int64 (V,).
    """
    old_words, summed = (old.words, old.counts.copy()) if old else (Words.of([]), np.empty(0, np.int64))
    rows = old_words.rows_of(words)
    summed[rows[rows >= 0]] += counts[rows >= 0]
    new = np.flatnonzero(rows < 0)
    new = new[_select(counts[new], max(1, min_count), None)]
    if max_vocab is not None:
        new = new[: max(0, max_vocab - len(old_words))]
    summed = np.append(summed, counts[new])
    order = np.argsort(-summed, kind="stable")
    vocabulary = Vocabulary(old_words.concat(words.take(new)).take(order), summed[order], key_type)
    return vocabulary, np.argsort(order, kind="stable")[: len(old_words)]


def label_tensors(labels: Vocabulary) -> dict[str, NDArray[Any]]:
    """Return the arrays to store in a file of a second vocabulary: of labels, or of the contexts of pairs."""
    arrays = labels.words.blob, labels.words.offsets, labels.counts
    return dict(zip(LABEL_TENSORS, arrays, strict=True))


def labels_of_file(tensors: Mapping[str, NDArray[Any]], key_type: KeyType = "str") -> Vocabulary:
    """Return the vocabulary in the arrays that `label_tensors` returned. Raise W2VError if they are damaged."""
    found = [tensors.get(name, np.empty(0)) for name in LABEL_TENSORS]
    kinds = [each.dtype if each.ndim == 1 else None for each in found]
    if kinds != [*LABEL_TENSORS.values()] or len(found[2]) != len(found[1]) - 1:
        raise W2VError("damaged: its labels are inconsistent")
    return Vocabulary(Words(found[0], np.array(found[1])), found[2], key_type)


def _parse(line: bytes) -> tuple[bytes, int]:
    """Return the word and count in a line of a vocabulary file. Raises ValueError, with the reason, for other lines."""
    fields = line.split(None, 2)
    if len(fields) != 2 or not fields[1].isdigit():
        raise ValueError(f"{line[:60].strip()!r} is not a word and its count")
    count = int(fields[1])
    if not 1 <= count <= MAX_COUNT:
        raise ValueError(f"the count is {'0' if count == 0 else f'more than {MAX_COUNT}'}")
    try:
        fields[0].decode()
    except UnicodeDecodeError:
        raise ValueError(f"{fields[0][:60]!r} is not UTF-8") from None
    return fields[0], count


def _select(counts: NDArray[np.int64], min_count: int, max_vocab: int | None) -> NDArray[np.int64]:
    """Return the indices of the counts from `min_count` on, largest count first, and at most `max_vocab` of them."""
    check_whole(0, min_count=min_count)
    if max_vocab is not None:
        check_whole(1, max_vocab=max_vocab)
    enough = int(np.count_nonzero(counts >= min_count))
    return np.argsort(-counts, kind="stable")[:enough][:max_vocab]
