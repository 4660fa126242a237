"""Blocks of complete rows from a plain or compressed file, which several threads read in turn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from w2v._detect import HEAD_BYTES
from w2v._errors import W2VError
from w2v._system.files import PathLike, open_regular, translate_os_errors
from w2v._text import decompress

BLOCK_BYTES = 2 << 20  # large enough to outweigh switching between threads, small enough for the cache

Bytes = NDArray[np.uint8]
Split = Callable[[Bytes, int, int, bool], tuple[int, int]]


@contextmanager
def open_unpacked(path: PathLike) -> Iterator[tuple[BufferedReader, int]]:
    """Open a file. Yield the file, decompressed if it is compressed, and the largest size in bytes to expect of it.

    Raises:
        W2VError: If the file cannot be read.
    """
    with translate_os_errors(path), open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if decompress.is_compressed(file.peek(16)):
            pieces = iter(lambda: file.read(decompress.PIECE_BYTES), b"")
            unpacked = decompress.DecompressedStream(str(path), pieces)
            yield BufferedReader(unpacked), decompress.max_unpacked(size)
        else:
            yield file, size


def read_head(path: PathLike, file: BufferedReader) -> bytes:
    """Read the first HEAD_BYTES of an open file.

    Raises:
        W2VError: If the file is empty.
    """
    head = file.read(HEAD_BYTES)
    if not head:
        problem = "truncated: its compressed data ends before the first row" if is_truncated(file) else "it is empty"
        raise W2VError(f"{path}: {problem}")
    return head


def is_compressed(file: BufferedReader) -> bool:
    """Return True if `open_unpacked` decompresses this file."""
    return isinstance(file.raw, decompress.DecompressedStream)


def is_truncated(file: BufferedReader) -> bool:
    """Return True if the compressed data of a file is truncated. Call this after you have read to the end."""
    return isinstance(file.raw, decompress.DecompressedStream) and file.raw.is_truncated


class RowBlocks:
    """The first `limit` rows of a file, in blocks. Each thread iterates over some of them.

    Attributes:
        rows: The number of rows read so far.
        leftover: Bytes that were read but belong to no row yet; at the end, the bytes read after the last row.
    """

    def __init__(self, file: BufferedReader, leftover: bytes, split: Split, columns: int, limit: int) -> None:
        """Start with `leftover`, bytes that were already read from the file but not yet parsed.

        Args:
            split: Returns the number of complete rows at the start of a block and their end; see binary_split in
                _formats.pyx.
        """
        self.rows = 0
        self.leftover = leftover
        self._file, self._split, self._columns, self._limit = file, split, columns, limit
        self._final = False
        self._lock = Lock()

    def stop(self) -> None:
        """Yield no more blocks."""
        self._limit = 0

    def __iter__(self) -> Iterator[tuple[Bytes, int, int]]:
        """Yield blocks for this thread: bytes (valid until the next block), number of the first row, number of rows."""
        buffer = np.empty(0, np.uint8)
        while True:
            with self._lock:
                count = used = 0
                while not count and not self._final and self.rows < self._limit:
                    start = len(self.leftover)
                    size = start + max(BLOCK_BYTES, start)  # doubles until a row fits
                    if len(buffer) <= size:
                        buffer = np.empty(size + 1, np.uint8)
                    buffer[:start] = np.frombuffer(self.leftover, np.uint8)
                    self.leftover = b""  # free it before the next leftover is made
                    read = self._file.readinto(buffer[start:size].data)
                    self._final = start + read < size
                    size = start + read
                    buffer[size] = ord("\n")  # ends a number at the end of the data
                    count, used = self._split(buffer[:size], self._columns, self._limit - self.rows, self._final)
                    self.leftover = buffer[used:size].tobytes()
                first = self.rows
                self.rows += count
            if not count:
                return
            yield buffer[:used], first, count
