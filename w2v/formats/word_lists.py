"""Files of words, and perhaps their counts, beside those that hold only a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from w2v.detect import Layout
from w2v.errors import W2VError, counted
from w2v.system.files import PathLike, atomic_write_together, errors_named, open_regular
from w2v.text.words import Words

HEADER = b"word\tcount"
MAX_COLUMNS = 100  # in which counts are looked for


@contextmanager
def atomic_pair(
    matrix: PathLike, end: str, words: Words, counts: NDArray[np.int64] | None, replace: bool
) -> Iterator[BinaryIO]:
    """Open the file of a matrix, which is replaced together with the file of its words; see atomic_write_together.

    The name of the other has another end. It has a line for each word; if counts are known, with a tab and its count,
    after a header. Raises W2VError for a word that a line cannot hold, and as atomic_write does.
    """
    path = Path(matrix).with_suffix(end)
    if words.contain_any(b"\t\n\r"):
        raise W2VError(f"{path}: not written: a word holds a tab or the end of a line, which this format cannot store")
    with atomic_write_together([path, matrix], replace) as (lines, file):
        if counts is None:
            lines.writelines(f"{word}\n".encode() for word in words)
        else:
            rows = zip(words, counts.tolist(), strict=True)
            lines.write(HEADER + b"\n")
            lines.writelines(f"{word}\t{count}\n".encode() for word, count in rows)
        yield file


class Gathered:
    """Words that come one by one: as a list, each would take some sixty bytes more."""

    def __init__(self, rows: int) -> None:
        self._blob, self._offsets, self._count = bytearray(), np.zeros(rows + 1, np.int64), 0

    def add(self, word: bytes) -> None:
        self._blob += word
        self._count += 1
        self._offsets[self._count] = len(self._blob)

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """The bytes of all words."""
        return len(self._blob)

    @property
    def words(self) -> Words:
        return Words(np.frombuffer(self._blob, np.uint8), self._offsets[: self._count + 1])


def check_size(path: Path, rows: int) -> None:
    """Raise W2VError for a file that is too short for so many different words: before memory is taken for them."""
    with errors_named(path):
        size = path.stat().st_size
    if Layout("text", None, 0, 0).min_bytes(rows) > size:
        raise W2VError(f"{path}: too short for {counted(rows, 'different word')}, one for each vector")


def read_words(path: Path, rows: int) -> tuple[Words, NDArray[np.int64] | None]:
    """The words of a file of `atomic_pair`, or of the first column of a table with a header, and their counts, if any.

    Raises W2VError for a file that cannot be read, or does not have so many words.
    """
    check_size(path, rows)
    with errors_named(path), open_regular(path) as file:
        found, lines = Gathered(rows), 0
        names = file.readline().rstrip(b"\r\n").split(b"\t", MAX_COLUMNS)
        if len(names) == 1:
            file.seek(0)
        place = names.index(b"count") if b"count" in names[1:] else 0
        counts = np.empty(rows, np.int64) if place else None
        for lines, line in enumerate(file, 1):
            if lines > rows:
                continue
            fields = line.rstrip(b"\r\n").split(b"\t", place + 1)
            found.add(fields[0])
            if counts is not None:
                try:
                    counts[lines - 1] = int(fields[place])
                except (ValueError, LookupError, OverflowError):
                    raise W2VError(f"{path}: the count of row {lines:,} is missing, or no whole number") from None
    if lines != rows:
        raise W2VError(f"{path}: {counted(lines, 'word')} for {counted(rows, 'vector')}")
    return found.words, counts
