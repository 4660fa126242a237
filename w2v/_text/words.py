"""Store words in one array of bytes and decode them only when needed."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeVar, get_args, overload

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError, pluralise
from w2v._text._text import PADDING, Lookup, take_words, word_hashes

# The type of a model's words: text, or whole numbers, such as ids of items, in decimal digits.
KeyType = Literal["str", "int"]
# What messages call the words: they may be items of sessions, or nodes of a graph.
Noun = Literal["word", "item", "node"]
NOUNS: tuple[Noun, ...] = get_args(Noun)
WORDS_AT_ONCE = 1 << 16  # words checked or decoded at a time
BYTES_AT_ONCE = 1 << 20  # bytes searched at a time
MAX_COUNT = (1 << 63) - 1  # limit for the sum of all counts
MAX_WORD_BYTES = 1 << 19  # limit for a word in a file: some readers recognise a file by its first 1 MB


OWN_PREFIX = "\ue000"  # of labels, tags and other names that w2v adds to words: a private character

INTEGER = re.compile(r"0|-?[1-9][0-9]{0,19}")  # a number as `str` writes it; 64 bits have at most 20 digits

Item = TypeVar("Item")


def is_number(key: object) -> bool:
    """Return True if a key is an int of at most 64 bits, signed or unsigned."""
    return isinstance(key, int | np.integer) and not isinstance(key, bool) and -(1 << 63) <= int(key) < 1 << 64


def is_missing(value: object) -> bool:
    """Return True for None, NaN, and pandas' NA and NaT."""
    is_nan = isinstance(value, float | np.floating) and bool(np.isnan(value))
    return value is None or is_nan or type(value).__name__ in {"NAType", "NaTType"}


def refuse_string(words: object) -> None:
    """Raise W2VError if `words` is a string, which would be read as a list of letters."""
    if isinstance(words, str):
        raise W2VError(f"a list of words is needed, not the string {words[:60]!r}: write {words[:60]!r}.split()")


def as_list(words: Iterable[Item]) -> list[Item]:
    """Return words as a list.

    Raises:
        W2VError: If `words` is a string or is not iterable.
    """
    refuse_string(words)
    if not isinstance(words, Iterable):
        raise W2VError(f"a list of words is needed, not an object of type {type(words).__name__}")
    return list(words)


def encode(word: str) -> bytes:
    """Return a word in UTF-8.

    Raises:
        W2VError: If it contains a lone surrogate, which UTF-8 cannot encode.
    """
    try:
        return word.encode()
    except UnicodeEncodeError as error:
        raise _not_encoded(error) from error


def _not_encoded(error: UnicodeEncodeError) -> W2VError:
    around = error.object[max(0, error.start - 30) : error.start + 30]
    return W2VError(f"the word {around!r} cannot be written as UTF-8")


class Words(Sequence[str]):
    """A sequence of V words.

    Attributes:
        blob: uint8 (n,), the UTF-8 bytes of all words, end to end.
        offsets: int64 (V + 1,), rising from 0 to n; word i is blob[offsets[i]:offsets[i + 1]].
    """

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        """Raise W2VError if the offsets do not rise from 0 to the end of the blob. Compiled code relies on this."""
        if (
            blob.dtype != np.uint8 or blob.ndim != 1 or offsets.dtype != np.int64 or offsets.ndim != 1
            or not len(offsets) or offsets[0] != 0 or offsets[-1] != len(blob) or np.any(offsets[1:] < offsets[:-1])
        ):  # fmt: skip
            raise W2VError("the word offsets are damaged: they must rise from 0 to the number of bytes")
        self.blob = blob
        self.offsets = offsets

    @classmethod
    def of(cls, words: Iterable[str | bytes]) -> Words:
        """Return words as Words.

        Raises:
            W2VError: If `words` is a string, if a word is neither str nor bytes, or if it contains a lone surrogate,
                which UTF-8 cannot encode.
        """
        if isinstance(words, Words):
            return words
        refuse_string(words)
        try:
            encoded = [word.encode() if isinstance(word, str) else word for word in words]
        except UnicodeEncodeError as error:
            raise _not_encoded(error) from error
        try:
            blob = b"".join(encoded)
        except TypeError:
            other = next(word for word in encoded if not isinstance(word, bytes))
            raise W2VError(f"the word {other!r:.60} is of type {type(other).__name__}, not str") from None
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
        return cls(np.frombuffer(blob, np.uint8), offsets)

    def concat(self, other: Words) -> Words:
        """Return these words followed by the words of `other`."""
        offsets = np.append(self.offsets, self.offsets[-1] + other.offsets[1:])
        return Words(np.append(self.blob, other.blob), offsets)

    def with_padding(self) -> NDArray[np.uint8]:
        """Return the blob followed by PADDING, uint8."""
        return np.append(self.blob, np.frombuffer(PADDING, np.uint8))

    def lookup(self) -> Lookup:
        """Return a hash table that finds the rows of these words."""
        return Lookup(self.with_padding(), self.offsets)

    def rows_of(self, words: Words) -> NDArray[np.int32]:
        """Return the row here of each of n other words, or -1: int32 (n,)."""
        return self.lookup().rows(words.with_padding(), words.offsets)

    def take(self, rows: NDArray[np.int64]) -> Words:
        """Return the words of these rows, in this order."""
        return Words(*take_words(self.blob, self.offsets, np.ascontiguousarray(rows, np.int64)))

    def check_lengths(self, where: str) -> None:
        """Raise W2VError if a word has more than MAX_WORD_BYTES.

        `where` is the start of the message; it may be empty.
        """
        for start in range(0, len(self), WORDS_AT_ONCE):
            lengths = np.diff(self.offsets[start : start + WORDS_AT_ONCE + 1])
            if lengths.max() > MAX_WORD_BYTES:
                begin = int(self.offsets[start + lengths.argmax()])
                word = self.blob[begin : begin + 60].tobytes().decode(errors="replace")
                problem = f"the word {word!r}… has {lengths.max():,} bytes: at most {MAX_WORD_BYTES:,} fit"
                raise W2VError(f"{where}: {problem}" if where else problem)

    def start_with(self, prefix: bytes) -> NDArray[np.bool_]:
        """Return which words begin with these bytes, bool (V,)."""
        found = np.diff(self.offsets) >= len(prefix)
        for at, byte in enumerate(prefix):
            rows = np.flatnonzero(found)
            found[rows] = self.blob[self.offsets[rows] + at] == byte
        return found

    def contain_any(self, characters: bytes) -> bool:
        """Return True if a word contains any of these ASCII characters."""
        wanted = np.frombuffer(characters, np.uint8)
        parts = (self.blob[start : start + BYTES_AT_ONCE] for start in range(0, len(self.blob), BYTES_AT_ONCE))
        return any(np.isin(part, wanted).any() for part in parts)

    def is_utf8(self) -> bool:
        """Return True if every word is valid UTF-8."""
        for start in range(0, len(self), WORDS_AT_ONCE):
            offsets = self.offsets[start : start + WORDS_AT_ONCE + 1]
            first, last = offsets[0], offsets[-1]
            try:
                str(self.blob[first:last].data, "utf-8")
            except UnicodeDecodeError:
                return False
            inner = offsets[(first < offsets) & (offsets < last)]
            if np.any(self.blob[inner] & 0xC0 == 0x80):  # a word begins inside a character
                return False
        return True

    def first_not_utf8(self) -> bytes:
        """Return the first word that is not UTF-8. Call this only if `is_utf8` is False."""
        words = self._iter_encoded(0, len(self))
        return next(word for word in words if word.decode(errors="replace").encode() != word)

    def find_duplicate(self) -> tuple[int, int] | None:
        """Return the row of a word and the first row that repeats it, or None if all words differ."""
        hashes = word_hashes(self.blob, self.offsets)
        hashes.sort()
        same = hashes[1:] == hashes[:-1]
        same[1:] &= ~same[:-1]  # keep only the second hash of each group of equal hashes
        repeated = hashes[1:][same]
        del hashes, same
        if not len(repeated):
            return None
        first_rows = np.full(len(repeated), -1, np.int64)
        for start in range(0, len(self), WORDS_AT_ONCE):
            block = word_hashes(self.blob, self.offsets[start : start + WORDS_AT_ONCE + 1])
            found = np.minimum(np.searchsorted(repeated, block), len(repeated) - 1)
            for k in np.flatnonzero(repeated[found] == block).tolist():
                first, row = int(first_rows[found[k]]), start + k
                if first < 0:
                    first_rows[found[k]] = row
                elif next(self._iter_encoded(first, first + 1)) == next(self._iter_encoded(row, row + 1)):
                    return first, row
        return None

    def to_utf8(self, errors: str, encoding: str = "utf-8") -> Words:
        """Convert the words from another encoding, or from damaged UTF-8, to UTF-8. `errors` is as in bytes.decode.

        Raises:
            UnicodeDecodeError: If `errors` is "strict" and a word is not in the encoding.
        """
        if codecs.lookup(encoding).name == "utf-8" and self.is_utf8():
            return self
        return Words.of(word.decode(encoding, errors) for word in self._iter_encoded(0, len(self)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"<Words: {pluralise(len(self), 'word')}>"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Words):
            return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.blob, other.blob)
        return self.tolist() == other

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return self._decode(start, max(start, stop))[::step] if step > 0 else self.tolist()[index]
        index = range(len(self))[index]
        return self._decode(index, index + 1)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __contains__(self, value: object) -> bool:
        return value in self._first_rows

    def index(self, value: Any, start: int = 0, stop: int = sys.maxsize) -> int:
        """Return the first row of a word. The first call decodes all words.

        Raises:
            ValueError: If the word is unknown.
        """
        if value not in self._first_rows:
            raise ValueError(f"{value!r} is not among the words")
        return self._first_rows[value] if (start, stop) == (0, sys.maxsize) else super().index(value, start, stop)

    @cached_property
    def _first_rows(self) -> dict[str, int]:
        """The first row of each word."""
        words = self.tolist()
        return {words[row]: row for row in reversed(range(len(words)))}

    def tolist(self) -> list[str]:
        """Return all words as a list of V strings."""
        return self._decode(0, len(self))

    def to_ints(self) -> list[int]:
        """Return words that are numbers, of the key type "int", as a list of V numbers.

        Raises:
            W2VError: If a word is not a number as `str` writes it.
        """
        for word in self.tolist():
            if not INTEGER.fullmatch(word):
                raise W2VError(f"the key {word[:60]!r} is not a whole number")
        return list(map(int, self.tolist()))

    def _decode(self, start: int, stop: int) -> list[str]:
        try:
            return [word.decode() for word in self._iter_encoded(start, stop)]
        except UnicodeDecodeError as error:
            raise W2VError(f"the word {error.object[:60]!r} is not valid UTF-8") from error

    def _iter_encoded(self, start: int, stop: int) -> Iterator[bytes]:
        bounds = self.offsets[start : stop + 1].tolist()
        first = bounds[0]
        blob = self.blob[first : bounds[-1]].tobytes()
        return (blob[begin - first : end - first] for begin, end in pairwise(bounds))
