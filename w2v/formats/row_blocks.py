"""Blocks of whole rows of a file, plain or compressed, which several threads read in turn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from w2v.detect import HEAD_BYTES
from w2v.errors import W2VError
from w2v.system.files import PathLike, errors_named, open_regular
from w2v.text import decompress

BLOCK_BYTES = 2 << 20  # of a block of rows: large enough to outweigh switching threads, and small enough for the cache

Bytes = NDArray[np.uint8]
Split = Callable[[Bytes, int, int, bool], tuple[int, int]]


@contextmanager
def opened(path: PathLike) -> Iterator[tuple[BufferedReader, int]]:
    """Open a file, unpacked if it is compressed. Yields it and the maximum of bytes that can be read from it.

    Raises W2VError if it cannot be read.
    """
    with errors_named(path), open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if decompress.is_compressed(file.peek(16)):
            chunks = iter(lambda: file.read(decompress.PIECE_BYTES), b"")
            unpacked = decompress.Unpacked(str(path), chunks)
            yield BufferedReader(unpacked), decompress.max_unpacked(size)
        else:
            yield file, size


def head_of(path: PathLike, file: BufferedReader) -> bytes:
    """The first HEAD_BYTES of an opened file. Raises W2VError if it is empty."""
    head = file.read(HEAD_BYTES)
    if not head:
        cut = is_cut(file)
        raise W2VError(f"{path}: {'cut: its compressed data ends before the first row' if cut else 'it is empty'}")
    return head


def is_compressed(file: BufferedReader) -> bool:
    """Whether an opened file is compressed, and unpacked as it is read."""
    return isinstance(file.raw, decompress.Unpacked)


def is_cut(file: BufferedReader) -> bool:
    """Whether the compressed data of an opened file, read to its end, ended too early."""
    return isinstance(file.raw, decompress.Unpacked) and file.raw.cut


class RowBlocks:
    """The first `limit` rows of a file, in blocks.

    `rest` are bytes that were already read; in the end, those read after the last row. `split` returns the number of
    whole rows at the start of some bytes, and their end: see binary_split in _formats.pyx.
    """

    def __init__(self, file: BufferedReader, rest: bytes, split: Split, columns: int, limit: int) -> None:
        self.rows = 0
        self.rest = rest
        self._file, self._split, self._columns, self._limit = file, split, columns, limit
        self._final = False
        self._lock = Lock()

    def stop(self) -> None:
        """Yield no more blocks."""
        self._limit = 0

    def __iter__(self) -> Iterator[tuple[Bytes, int, int]]:
        """The blocks for this thread: their bytes, valid until the next block, their first row and number of rows."""
        buffer = np.empty(0, np.uint8)
        while True:
            with self._lock:
                count = used = 0
                while not count and not self._final and self.rows < self._limit:
                    kept = len(self.rest)
                    size = kept + max(BLOCK_BYTES, kept)  # doubled until a row fits
                    if len(buffer) <= size:
                        buffer = np.empty(size + 1, np.uint8)
                    buffer[:kept] = np.frombuffer(self.rest, np.uint8)
                    self.rest = b""  # freed before it is replaced
                    got = self._file.readinto(buffer[kept:size].data)
                    self._final = kept + got < size
                    size = kept + got
                    buffer[size] = ord("\n")  # ends a number at the end of the data
                    count, used = self._split(buffer[:size], self._columns, self._limit - self.rows, self._final)
                    self.rest = buffer[used:size].tobytes()
                first = self.rows
                self.rows += count
            if not count:
                return
            yield buffer[:used], first, count
