"""Bytes of a file, plain or gzip, in blocks of whole rows that several threads take in turn."""

import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError
from w2v.files import PathLike

BLOCK = 2 << 20  # bytes read or written at a time: enough to be worth handing out, and still in cache
RATIO = 100  # how much a gzip file may grow, SLACK apart: vectors grow two- or threefold, zeros a thousandfold
SLACK = 8 << 20  # bytes

Bytes = NDArray[np.uint8]
Split = Callable[[Bytes, int, int, bool], tuple[int, int]]


@contextmanager
def opened(path: PathLike) -> Iterator[tuple[BufferedReader, int]]:
    """A file to read, unpacked if it is gzip, and the most bytes it can hold.

    Raises W2VError if it cannot be read.
    """
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "folder" if stat.S_ISDIR(status.st_mode) else "device"
            raise W2VError(f"cannot read {path}: it is a {kind}")
        with Path(path).open("rb") as file:
            if file.peek(2)[:2] == b"\x1f\x8b":
                yield BufferedReader(_Gunzip(path, file)), SLACK + RATIO * status.st_size
            else:
                yield file, status.st_size
    except OSError as error:
        raise W2VError(f"cannot read {path}: {error.strerror or error}") from error


class _Gunzip(RawIOBase):
    """The unpacked bytes of a gzip file; a cut file simply ends early, as a cut plain one does."""

    def __init__(self, path: object, file: BufferedReader) -> None:
        self._path, self._file = path, file
        self._inflate = zlib.decompressobj(wbits=31)  # 31: gzip framing, checksum verified
        self._packed, self._taken, self._given = b"", 0, 0
        self.cut = False

    def readable(self) -> bool:
        return True

    def readinto(self, view: memoryview) -> int:  # type: ignore[override]
        while True:
            ended = self._inflate.eof  # one member has ended; another may follow
            if ended:
                self._packed = self._inflate.unused_data.lstrip(b"\0")
            if not self._packed:
                self._packed = self._file.read(BLOCK)
                self._taken += len(self._packed)
                if not self._packed:
                    self.cut = not ended
                    return 0
            if ended:
                self._inflate = zlib.decompressobj(wbits=31)
            try:
                data = self._inflate.decompress(self._packed, min(len(view), BLOCK))
            except zlib.error as error:
                raise W2VError(f"{self._path}: its gzip data is damaged: {error}") from error
            self._packed = self._inflate.unconsumed_tail
            self._given += len(data)
            if self._given > SLACK + RATIO * self._taken:
                raise W2VError(
                    f"{self._path}: refused: its gzip data grows more than {RATIO}:1; unpack it if you trust it"
                )
            if data:
                view[: len(data)] = data
                return len(data)


def is_cut(file: BufferedReader) -> bool:
    """Whether the gzip data of an opened file, read to its end, ended too early."""
    return isinstance(file.raw, _Gunzip) and file.raw.cut


class Block(NamedTuple):
    """Whole rows: `rows` of them from row `first` on; `data` lies in a buffer of the thread that took it."""

    data: Bytes
    first: int
    rows: int


class Blocks:
    """The rows of a file, at most `limit`, handed out a block at a time; `rest` holds what follows them."""

    def __init__(self, file: BufferedReader, rest: bytes, split: Split, columns: int, limit: int) -> None:
        self.rows = 0
        self.rest = rest
        self._file, self._split, self._columns, self._limit = file, split, columns, limit
        self._final = False
        self._lock = Lock()

    def stop(self) -> None:
        """Hand out nothing more."""
        self._limit = 0

    def __iter__(self) -> Iterator[Block]:
        """The blocks that this thread gets. Each is valid until the next is asked for."""
        buffer = np.empty(0, np.uint8)
        while True:
            with self._lock:
                count = used = 0
                while not count and not self._final and self.rows < self._limit:
                    kept = len(self.rest)
                    size = kept + max(BLOCK, kept)  # doubled while a row does not fit
                    if len(buffer) <= size:
                        buffer = np.empty(size + 1, np.uint8)
                    buffer[:kept] = np.frombuffer(self.rest, np.uint8)
                    self.rest = b""  # freed before its successor is made
                    got = self._file.readinto(buffer[kept:size].data)
                    self._final = kept + got < size
                    size = kept + got
                    buffer[size] = 10  # a newline after the data stops the conversion of a number
                    count, used = self._split(buffer[:size], self._columns, self._limit - self.rows, self._final)
                    self.rest = buffer[used:size].tobytes()
                block = Block(buffer[:used], self.rows, count)
                self.rows += count
            if not count:
                return
            yield block
