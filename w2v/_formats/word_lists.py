"""Files with words, and perhaps counts, for formats that store a matrix only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError, pluralise
from w2v._system.files import PathLike, atomic_write_together, open_regular, translate_os_errors
from w2v._text.words import Words

LINE_SEPARATORS = b"\t\n\r"  # no word may contain them
COUNTS_HEADER = b"word\tcount"
MAX_COLUMNS = 100  # columns that are searched for counts


@contextmanager
def write_words_with_matrix(
    matrix_path: PathLike, words_suffix: str, words: Words, counts: NDArray[np.int64] | None, replace: bool
) -> Iterator[BinaryIO]:
    """Write the words file and yield the open matrix file. Both get their names together; see atomic_write_together.

    The words file has a line for each word. If counts are known, it starts with a header, and each line has a tab and
    the count after the word.

    Args:
        matrix_path: The path of the matrix.
        words_suffix: The suffix of the words file; it replaces the extension of `matrix_path`.
        words: V words.
        counts: int64 (V,), or None.
        replace: Whether existing files are replaced.

    Raises:
        W2VError: If a word holds a tab or a line break, or if a file cannot be written.
    """
    path = Path(matrix_path).with_suffix(words_suffix)
    if words.contain_any(LINE_SEPARATORS):
        raise W2VError(f"{path}: not written: a word holds a tab or a line break, which this format cannot store")
    with atomic_write_together([path, matrix_path], replace) as (lines, file):
        if counts is None:
            lines.writelines(f"{word}\n".encode() for word in words)
        else:
            rows = zip(words, counts.tolist(), strict=True)
            lines.write(COUNTS_HEADER + b"\n")
            lines.writelines(f"{word}\t{count}\n".encode() for word, count in rows)
        yield file


class WordBuilder:
    """A builder of Words from single words. A list would take about sixty bytes more per word."""

    def __init__(self, rows: int) -> None:
        self._blob, self._offsets, self._count = bytearray(), np.zeros(rows + 1, np.int64), 0

    def add(self, word: bytes) -> None:
        self._blob += word
        self._count += 1
        self._offsets[self._count] = len(self._blob)

    @property
    def words(self) -> Words:
        return Words(np.frombuffer(self._blob, np.uint8), self._offsets[: self._count + 1])


def read_words(path: Path, rows: int) -> tuple[Words, NDArray[np.int64] | None]:
    """Read words and counts (or None) from a file that `write_words_with_matrix` wrote, or from a table with a header.

    The words of a table are in its first column.

    Raises:
        W2VError: If the file cannot be read or does not have `rows` words.
    """
    with translate_os_errors(path), open_regular(path) as file:
        builder, lines = WordBuilder(rows), 0
        names = file.readline().rstrip(b"\r\n").split(b"\t", MAX_COLUMNS)
        if len(names) == 1:
            file.seek(0)
        count_column = names.index(b"count") if b"count" in names[1:] else 0
        counts = np.empty(rows, np.int64) if count_column else None
        for lines, line in enumerate(file, 1):
            if lines > rows:
                continue
            fields = line.rstrip(b"\r\n").split(b"\t", count_column + 1)
            builder.add(fields[0])
            if counts is not None:
                try:
                    counts[lines - 1] = int(fields[count_column])
                except (ValueError, LookupError, OverflowError):
                    raise W2VError(f"{path}: the count of row {lines:,} is missing or not an integer") from None
    if lines != rows:
        raise W2VError(f"{path}: {pluralise(lines, 'word')} for {pluralise(rows, 'vector')}")
    return builder.words, counts
