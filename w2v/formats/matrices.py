"""Files of vectors alone, without words, written a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError
from w2v.formats import arrow, npy, tsv
from w2v.system.files import PathLike, atomic_write

Array = NDArray[np.float32]
Blocks = Iterable[Array]  # of rows, (n, D)


def _write_array(path: PathLike, size: int, blocks: Blocks, replace: bool) -> None:
    rows, start = 0, npy.header((0, size))
    with atomic_write(path, replace) as file:
        file.write(start)
        for block in blocks:
            file.write(np.ascontiguousarray(block, "<f4").data)
            rows += len(block)
        file.seek(0)  # of a pipe, this is an error
        file.write(npy.header((rows, size)))


def _write_lines(
    encoded: Callable[[Array], Iterator[bytes]], path: PathLike, size: int, blocks: Blocks, replace: bool
) -> None:
    with atomic_write(path, replace) as file:
        for block in blocks:
            file.writelines(encoded(block))


def _objects(block: Array) -> Iterator[bytes]:
    """A line of JSON for each row."""
    for lines in tsv.encoded(block):
        rows = lines.replace(b"\t", b", ").splitlines()
        yield b"".join(b'{"vector": [%s]}\n' % row for row in rows)


# By the ends of their names: of (path, values in a row, blocks, replace).
WRITERS: dict[str, Callable[[PathLike, int, Blocks, bool], None]] = {
    ".npy": _write_array,
    ".tsv": partial(_write_lines, tsv.encoded),
    ".jsonl": partial(_write_lines, _objects),
    ".parquet": arrow.write_vectors,
    ".arrow": arrow.write_vectors,
}

WORDS = {".npy": npy.WORDS, ".tsv": tsv.METADATA}  # by the same: what ends the name of the words beside a matrix


def writer(path: PathLike) -> Callable[[PathLike, int, Blocks, bool], None]:
    """The function that writes a file of this name. Raises SettingsError for an unknown extension.

    Raises W2VError, too, if a file is there that would be read as the words of these vectors.
    """
    end = Path(path).suffix.lower()
    if end not in WRITERS:
        raise SettingsError(f"{path}: unknown extension: use one of {', '.join(WRITERS)}")
    words = Path(path).with_suffix(WORDS.get(end, end))
    if end in WORDS and words.exists():
        raise W2VError(f"{path}: its vectors would be read as those of the words in {words}: choose another output")
    return WRITERS[end]
