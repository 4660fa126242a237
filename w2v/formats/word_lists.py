"""Files of words, and perhaps their counts, beside those that hold only a matrix."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError, counted
from w2v.system.files import EXISTS, PathLike, atomic_write, errors_named
from w2v.text.words import Words

HEADER = b"word\tcount"


def write_words(
    path: Path, words: Words, counts: NDArray[np.int64] | None, matrix: PathLike, replace: bool = True
) -> None:
    """Write a line for each word, atomically; if counts are known, with a tab and its count, after a header.

    Raises W2VError for a word that a line cannot hold, as atomic_write does and, without `replace`, if the file of the
    matrix exists, which is written afterwards.
    """
    if words.contain_any(b"\t\n\r"):
        raise W2VError(f"{path}: not written: a word holds a tab or the end of a line, which this format cannot store")
    if not replace and os.path.lexists(matrix):
        raise W2VError(f"cannot write {matrix}: {EXISTS}")
    with atomic_write(path, replace) as file:
        if counts is None:
            file.writelines(f"{word}\n".encode() for word in words)
            return
        file.write(HEADER + b"\n")
        file.writelines(f"{word}\t{count}\n".encode() for word, count in zip(words, counts.tolist(), strict=True))


def read_words(path: Path, rows: int) -> tuple[Words, NDArray[np.int64] | None]:
    """The words of a file of `write_words`, or of the first column of a table with a header, and their counts, if any.

    Raises W2VError for a file that cannot be read, or does not have so many words.
    """
    with errors_named(path):
        text = path.read_bytes()
    lines = text.count(b"\n") + bool(text) - text.endswith(b"\n")
    names = text.partition(b"\n")[0].rstrip(b"\r").split(b"\t")
    if lines - (len(names) > 1) != rows:
        raise W2VError(f"{path}: {counted(lines - (len(names) > 1), 'word')} for {counted(rows, 'vector')}")
    if len(names) == 1:
        return Words.of(line.rstrip(b"\r") for line in text.splitlines()), None
    table = [line.split(b"\t") for line in text.split(b"\n")[1 : rows + 1]]
    place = names.index(b"count") if b"count" in names else None
    try:
        counts = None if place is None else np.array([int(line[place]) for line in table], np.int64)
    except (ValueError, LookupError, OverflowError):
        raise W2VError(f"{path}: a count is missing, or no whole number") from None
    return Words.of(line[0] for line in table), counts
