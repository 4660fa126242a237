"""Writers of files that hold only vectors, without words, one block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, W2VError
from w2v._formats import arrow, npy, tsv
from w2v._system.files import PathLike, atomic_write

Array = NDArray[np.float32]
Blocks = Iterable[Array]  # arrays of shape (n, D)


def _write_npy(path: PathLike, size: int, blocks: Blocks, replace: bool) -> None:
    rows = 0
    with atomic_write(path, replace) as file:
        file.write(npy.header((0, size)))
        for block in blocks:
            file.write(np.ascontiguousarray(block, "<f4").data)
            rows += len(block)
        file.seek(0)  # raises an error if the output is a pipe
        file.write(npy.header((rows, size)))


def _write_lines(
    encode: Callable[[Array], Iterator[bytes]], path: PathLike, size: int, blocks: Blocks, replace: bool
) -> None:
    with atomic_write(path, replace) as file:
        for block in blocks:
            file.writelines(encode(block))


def _json_lines(block: Array) -> Iterator[bytes]:
    """Yield a line of JSON for each row, several lines at a time."""
    for lines in tsv.encode(block):
        rows = lines.replace(b"\t", b", ").splitlines()
        yield b"".join(b'{"vector": [%s]}\n' % row for row in rows)


# Writers by extension. Their arguments are a path, the number of values in a row, the blocks, and `replace`.
WRITERS: dict[str, Callable[[PathLike, int, Blocks, bool], None]] = {
    ".npy": _write_npy,
    ".tsv": partial(_write_lines, tsv.encode),
    ".jsonl": partial(_write_lines, _json_lines),
    ".parquet": arrow.write_vectors,
    ".arrow": arrow.write_vectors,
}

# The suffix of the words file that readers look for, by the extension of the matrix.
WORDS_SUFFIXES = {".npy": npy.WORDS_SUFFIX, ".tsv": tsv.WORDS_SUFFIX}


def writer_for(path: PathLike) -> Callable[[PathLike, int, Blocks, bool], None]:
    """Return the function that writes a file with this name.

    Raises:
        SettingsError: If the extension is unknown.
        W2VError: If a file exists that readers would take for the words of these vectors.
    """
    extension = Path(path).suffix.lower()
    if extension not in WRITERS:
        raise SettingsError(f"{path}: unknown extension: use one of {', '.join(WRITERS)}")
    if extension in WORDS_SUFFIXES:
        words_path = Path(path).with_suffix(WORDS_SUFFIXES[extension])
        if words_path.exists():
            raise W2VError(
                f"{path}: its vectors would be read as the vectors of the words in {words_path}: choose another output"
            )
    return WRITERS[extension]
