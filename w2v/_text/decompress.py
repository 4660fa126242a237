"""Decompress gzip, bzip2, xz and zstandard files in pieces."""

import bz2
import itertools
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from io import RawIOBase
from typing import Any

from w2v._errors import TruncatedFile, W2VError, import_optional

PIECE_BYTES = 1 << 19  # decompressed bytes yielded at a time
ZSTANDARD_INPUT_BYTES = 1024  # compressed bytes passed to zstandard at a time
# Numbers in a compressed file are trusted if they fit 64 MB or 500 times its size, whichever is larger. Typical ratios:
# text and vectors 2 to 10, zeros written by w2v (gzip level 1) 230.
MAX_UNPACKED_BYTES, MAX_RATIO = 64 << 20, 500


class _Zstandard:
    """A zstandard decompressor.

    The library's decompressor does not have max_length. So this class passes it only ZSTANDARD_INPUT_BYTES at a time.
    They expand to at most 32 MB.
    """

    def __init__(self) -> None:
        zstandard = import_optional("zstandard files need one more package", "zstd", "zstandard")
        self._stream = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
        self.unconsumed_tail = memoryview(b"")

    @property
    def eof(self) -> bool:
        return bool(self._stream.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._stream.unused_data) + self.unconsumed_tail

    def decompress(self, data: bytes | memoryview, max_length: int, /) -> bytes:
        data = memoryview(data)
        self.unconsumed_tail = data[ZSTANDARD_INPUT_BYTES:]
        return bytes(self._stream.decompress(data[:ZSTANDARD_INPUT_BYTES]))


# For each compression: its signature, and a function that returns a decompressor for one stream. All decompressors have
# the interface of bz2.BZ2Decompressor. Those for gzip and zstandard also have `unconsumed_tail`, the input that is left
# when the output reaches max_length.
_COMPRESSIONS: dict[str, tuple[re.Pattern[bytes], Callable[[], Any]]] = {
    "gzip": (re.compile(rb"\x1f\x8b\x08"), lambda: zlib.decompressobj(wbits=31)),
    "bzip2": (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), bz2.BZ2Decompressor),
    "xz": (re.compile(rb"\xfd7zXZ\0"), lzma.LZMADecompressor),
    "zstandard": (re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), _Zstandard),
}


def _compression(head: bytes) -> str | None:
    """Return the compression of a file that begins with `head`, or None."""
    return next((name for name, (signature, _) in _COMPRESSIONS.items() if signature.match(head)), None)


def is_compressed(head: bytes) -> bool:
    """Return True if a file that begins with `head` has a compression that `decompress` supports."""
    return _compression(head) is not None


def max_unpacked(size: int) -> int:
    """Return the number of bytes that a compressed file of `size` bytes can be expected to decompress to, at most."""
    return max(MAX_UNPACKED_BYTES, MAX_RATIO * size)


def decompress(where: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the content of a file, which may be compressed in one or more consecutive streams.

    Args:
        where: The start of error messages.
        pieces: The bytes of the file in pieces.

    Raises:
        TruncatedFile: If the file ends too early.
        W2VError: If the data is damaged.
    """
    first = next(pieces, b"")
    pieces = itertools.chain([first], pieces)
    compression = _compression(first)
    if compression is None:
        yield from pieces
        return
    decompressor = None
    for data in pieces:
        while True:
            if not decompressor:
                data = data.lstrip(b"\0")  # padding between streams
            if not data:
                break
            decompressor = decompressor or _COMPRESSIONS[compression][1]()
            yield from _unpack(where, compression, decompressor, data)
            data = decompressor.unused_data if decompressor.eof else b""
            decompressor = None if decompressor.eof else decompressor
    if decompressor:
        raise TruncatedFile(f"{where}: the {compression} data is truncated")


def _unpack(where: str, compression: str, decompressor: Any, data: bytes | memoryview) -> Iterator[bytes]:
    """Yield the decompressed data in pieces of at most PIECE_BYTES."""
    while True:
        try:
            piece = decompressor.decompress(data, PIECE_BYTES)
        except Exception as error:  # each library raises its own type of error
            raise W2VError(f"{where}: damaged {compression} data: {error}") from error
        yield from (piece[start : start + PIECE_BYTES] for start in range(0, len(piece), PIECE_BYTES))
        data = getattr(decompressor, "unconsumed_tail", b"")
        if decompressor.eof or (len(piece) < PIECE_BYTES and not data):
            return


class DecompressedStream(RawIOBase):
    """The content of a file as a raw stream, decompressed if the file is compressed.

    If compressed data is truncated, the stream ends early and `is_truncated` is True.
    """

    def __init__(self, where: str, pieces: Iterator[bytes]) -> None:
        self.is_truncated = False
        self._pieces = decompress(where, pieces)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, view: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            try:
                self._rest = memoryview(next(self._pieces, b""))
            except TruncatedFile:
                self.is_truncated = True
                return 0
        size = min(len(view), len(self._rest))
        view[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
