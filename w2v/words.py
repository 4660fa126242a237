"""Many words as one block of bytes, decoded only when asked for."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError

GROUP = 1 << 16  # words decoded at a time


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
            raise W2VError(f"the word {error.object!r} cannot be written as UTF-8") from error
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

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
            raise W2VError(f"the word {error.object!r} is not valid UTF-8") from error

    def _encoded(self, start: int, stop: int) -> Iterator[bytes]:
        offsets = self.offsets[start : stop + 1]
        if np.any(offsets[1:] < offsets[:-1]):
            raise W2VError("the word offsets are damaged: they must not decrease")
        bounds = offsets.tolist()
        first = bounds[0]
        blob = self.blob[first : bounds[-1]].tobytes()
        return (blob[begin - first : end - first] for begin, end in pairwise(bounds))
