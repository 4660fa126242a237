"""The content of gzip, bzip2, xz and zstandard files, a piece at a time."""

import bz2
import itertools
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from w2v.errors import W2VError

PIECE = 1 << 19  # bytes given out at a time
ZSTD_FEED = 1024  # bytes given to its decompressor at a time
MAX_UNPACKED, MAX_RATIO = (
    1 << 30,
    500,
)  # a file may unpack to 1 GB, beyond that to 500 times its size; gzip can reach 1032


class _Decompressor(Protocol):
    """What the decompressors of all formats have in common; some keep input back, others hand it out again."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes | memoryview, max_length: int, /) -> bytes: ...


class _Zstd:
    """zstandard's, which knows no max_length: ZSTD_FEED bytes at a time become at most 32 MB."""

    def __init__(self) -> None:
        try:
            import zstandard
        except ImportError:
            raise W2VError("zstandard files need one more package: pip install zstandard") from None
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
        self.unconsumed_tail = data[ZSTD_FEED:]
        return bytes(self._stream.decompress(data[:ZSTD_FEED]))


class _Format(NamedTuple):
    name: str
    magic: re.Pattern[bytes]
    decompressor: Callable[[], _Decompressor]


_FORMATS = [
    _Format("gzip", re.compile(rb"\x1f\x8b\x08"), lambda: zlib.decompressobj(wbits=31)),
    _Format("bzip2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), bz2.BZ2Decompressor),
    _Format("xz", re.compile(rb"\xfd7zXZ\0"), lzma.LZMADecompressor),
    _Format("zstandard", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), _Zstd),
]


def decompressed(name: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The content of a file that may be compressed, in any number of streams one after the other."""
    first = next(chunks, b"")
    chunks = itertools.chain([first], chunks)
    compression = next((known for known in _FORMATS if known.magic.match(first)), None)
    if compression is None:
        yield from chunks
        return
    decompressor = None
    taken = given = 0
    for chunk in chunks:
        taken += len(chunk)
        data = chunk
        while data := data if decompressor else data.lstrip(b"\0"):  # streams may be padded
            decompressor = decompressor or compression.decompressor()
            for text in _unpacked(name, compression.name, decompressor, data):
                given += len(text)
                if given > MAX_UNPACKED and given > MAX_RATIO * taken:
                    raise W2VError(
                        f"{name}: refused: its {compression.name} data grows more than {MAX_RATIO}:1; if you trust it, "
                        "unpack it yourself and give the text, or - and the text on standard input"
                    )
                yield text
            data = decompressor.unused_data if decompressor.eof else b""
            decompressor = None if decompressor.eof else decompressor
    if decompressor:
        raise W2VError(f"{name}: the {compression.name} data is cut short")


def _unpacked(name: str, compression: str, decompressor: _Decompressor, data: bytes | memoryview) -> Iterator[bytes]:
    """What the data becomes, in pieces of at most PIECE bytes."""
    while True:
        try:
            text = decompressor.decompress(data, PIECE)
        except Exception as error:  # each format has its own
            raise W2VError(f"{name}: damaged {compression} data: {error}") from error
        yield from (text[start : start + PIECE] for start in range(0, len(text), PIECE))
        data = getattr(decompressor, "unconsumed_tail", b"")  # zlib's, where the text is longer than a piece
        if decompressor.eof or (len(text) < PIECE and not data):
            return
