"""Many words as one block of bytes, decoded only when asked for."""

import codecs
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError
from w2v.text._text import hash_words

GROUP = 1 << 16  # words decoded at a time
PART = 1 << 20  # words whose hashes are sorted at a time: it takes less memory, and less time, than all at once
BLOCK = 1 << 20  # bytes decoded at a time


class Words(Sequence[str]):
    """V words: `blob`, their UTF-8 bytes end to end, (n,) uint8, and `offsets` into it, (V + 1,) int64."""

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.blob = blob
        self.offsets = offsets

    @classmethod
    def of(cls, words: Iterable[str | bytes]) -> "Words":
        """The same words, packed. Raises W2VError for a word that UTF-8 cannot hold (a lone surrogate)."""
        if isinstance(words, Words):
            return words
        try:
            encoded = [word.encode() if isinstance(word, str) else word for word in words]
        except UnicodeEncodeError as error:
            raise W2VError(f"the word {error.object[:60]!r} cannot be written as UTF-8") from error
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def take(self, rows: NDArray[np.int64]) -> "Words":
        """The words of these rows, in this order."""
        groups = range(0, len(rows), GROUP)
        offsets = np.zeros(len(rows) + 1, np.int64)
        for start in groups:
            group = rows[start : start + GROUP]
            offsets[start + 1 : start + 1 + len(group)] = self.offsets[group + 1] - self.offsets[group]
        np.cumsum(offsets, out=offsets)
        blob = np.empty(int(offsets[-1]), np.uint8)
        content = self.blob.data
        for start in groups:
            group = rows[start : start + GROUP]
            bounds = zip(self.offsets[group].tolist(), self.offsets[group + 1].tolist(), strict=True)
            piece = np.frombuffer(b"".join(content[begin:end] for begin, end in bounds), np.uint8)
            blob[offsets[start] : offsets[start] + len(piece)] = piece
        return Words(blob, offsets)

    def fit(self) -> bool:
        """Whether the offsets rise from 0 to the end of the bytes: nothing may be read by them that do not."""
        blob, offsets = self.blob, self.offsets
        if blob.dtype != np.uint8 or blob.ndim != 1 or offsets.dtype != np.int64 or offsets.ndim != 1:
            return False
        return len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(self.blob) and not _falls(offsets)

    def hold(self, some: bytes) -> bool:
        """Whether any of these bytes, which must be ASCII, stands in a word."""
        blocks = (self.blob[start : start + BLOCK] for start in range(0, len(self.blob), BLOCK))
        return any(np.isin(block, np.frombuffer(some, np.uint8)).any() for block in blocks)

    def is_utf8(self) -> bool:
        """Whether each word is UTF-8; the offsets must fit."""
        if self.blob.max(initial=0) < 0x80:
            return True
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for start in range(0, len(self.blob), BLOCK):
                decoder.decode(self.blob[start : start + BLOCK].data)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
        inner = self.offsets[: np.searchsorted(self.offsets, len(self.blob))]  # without the ends of the blob
        groups = (inner[start : start + GROUP] for start in range(0, len(inner), GROUP))
        return not any(np.any(self.blob[group] & 0xC0 == 0x80) for group in groups)  # inside a character

    def repeated(self) -> tuple[int, int] | None:
        """Two rows of the same word, if there are any; the offsets must fit."""
        parts = 1 << (len(self) // PART).bit_length()
        hashes = np.empty(len(self), np.uint64)
        for part in range(parts):
            found = hashes[: hash_words(self.blob, self.offsets, hashes, part, parts)]
            found.sort()
            alike = found[1:] == found[:-1]
            while alike.any():
                wanted = found[alike.argmax()]
                rows = self._same(int(wanted))
                if rows:
                    return rows
                alike &= found[1:] != wanted
        return None

    def _same(self, wanted: int) -> tuple[int, int] | None:
        """The first two rows of the same word among those of this hash."""
        seen: dict[bytes, int] = {}
        hashes = np.empty(GROUP, np.uint64)
        for start in range(0, len(self), GROUP):
            offsets = self.offsets[start : start + GROUP + 1]
            count = hash_words(self.blob, offsets, hashes, 0, 1)
            for row in (start + np.flatnonzero(hashes[:count] == wanted)).tolist():
                word = self.blob[self.offsets[row] : self.offsets[row + 1]].tobytes()
                if seen.setdefault(word, row) != row:
                    return seen[word], row
        return None

    def decoded(self, errors: str) -> "Words":
        """The words with what is not UTF-8 in them replaced or ignored, as `errors` is in bytes.decode."""
        parts = [
            Words.of(word.decode("utf-8", errors) for word in self._encoded(start, start + GROUP))
            for start in range(0, len(self), GROUP)
        ]
        lengths = np.concatenate([[0], *(np.diff(part.offsets) for part in parts)])
        return Words(np.concatenate([part.blob for part in parts]), np.cumsum(lengths))

    def first_not_utf8(self) -> bytes:
        """The first word that is not UTF-8; there must be one."""
        return next(
            word
            for start in range(0, len(self), GROUP)
            for word in self._encoded(start, start + GROUP)
            if word.decode(errors="replace").encode() != word
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

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

    def tolist(self) -> list[str]:
        """All the words, as a list of V strings."""
        return self._decode(0, len(self))

    def _decode(self, start: int, stop: int) -> list[str]:
        try:
            return [word.decode() for word in self._encoded(start, stop)]
        except UnicodeDecodeError as error:
            raise W2VError(f"the word {error.object[:60]!r} is not valid UTF-8") from error

    def _encoded(self, start: int, stop: int) -> Iterator[bytes]:
        offsets = self.offsets[start : stop + 1]
        if _falls(offsets):
            raise W2VError("the word offsets are damaged: they must not decrease")
        bounds = offsets.tolist()
        first = bounds[0]
        blob = self.blob[first : bounds[-1]].tobytes()
        return (blob[begin - first : end - first] for begin, end in pairwise(bounds))


def _falls(offsets: NDArray[np.int64]) -> bool:
    return bool(np.any(offsets[1:] < offsets[:-1]))
