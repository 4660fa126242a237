"""The corpus as integer ids in one file on disk, memory-mapped: text is read once, ids in every epoch."""

import contextlib
import hashlib
import io
import json
import mmap
import os
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError
from w2v.files import Errors, PathLike, atomic_write
from w2v.options import check_options, option
from w2v.progress import Progress
from w2v.settings import TEXT
from w2v.text._text import FIRST_TYPE, PADDING, PRUNED_TYPE, SENTENCE_END_ID, Malformed, Scan, Types, match
from w2v.text.corpus import CACHE_SUFFIX, Block, Corpus
from w2v.text.words import Words

SIGNATURE = b"w2v ids, format 1\n"
LARGEST_MAX_TYPES = 1 << 30  # ids have 31 bits, and one block of text may exceed the limit
MEASURED = 64  # blocks of text between looks at the disk
PIECE = 1 << 22  # ids checked, or bytes of them rewritten, at a time


class IdStore:
    """A corpus as ids: 0 ends a sentence, 1 is a word that pruning dropped, from 2 on words as first seen.

    ids        uint32 (tokens + sentences,), memory-mapped, read-only
    counts     int64 (types + 2,): how often each id occurs
    tokens     int: words in the corpus
    sentences  int: lines that hold a word
    pruned     int: how many types were dropped to keep within `max_types`
    reused     bool: whether the file was found in the cache

    The file holds ids, counts, offsets into the words' bytes (int64), the bytes, a description in JSON, its
    length (8 bytes) and a signature. It may be closed meanwhile. Raises ValueError or KeyError for a damaged one.
    """

    def __init__(self, file: BinaryIO, reused: bool = False) -> None:
        self._memory = memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        tail = len(memory) - len(SIGNATURE) - 8
        if tail < 0 or memory[tail + 8 :] != SIGNATURE:
            raise ValueError("an id file is not complete")
        length = int.from_bytes(memory[tail : tail + 8], "little")
        if length > tail:
            raise ValueError("an id file describes itself in more bytes than it has")
        self.description: dict[str, Any] = json.loads(memory[tail - length : tail])
        figures = ids, types, self.pruned = tuple(self.description[name] for name in ("ids", "types", "pruned"))
        if not all(type(figure) is int and 0 <= figure <= tail for figure in figures):
            raise ValueError(f"an id file says that it holds {ids!r} ids of {types!r} types")
        start = _aligned(4 * ids)
        self.ids: NDArray[np.uint32] = np.frombuffer(memory, np.uint32, ids)
        self.counts: NDArray[np.int64] = np.frombuffer(memory, np.int64, types, start)
        self._offsets: NDArray[np.int64] = np.frombuffer(memory, np.int64, types + 1, start + 8 * types)
        start += 8 * (2 * types + 1)
        size = int(self._offsets[-1]) + len(PADDING)
        self._strings: NDArray[np.uint8] = np.frombuffer(memory, np.uint8, size, start)
        self._words = Words(self._strings[: -len(PADDING)], self._offsets)
        self.tokens = int(self.counts[PRUNED_TYPE:].sum())
        self.sentences = int(self.counts[SENTENCE_END_ID])
        self.reused = reused
        if reused:
            self._check()

    def _check(self) -> None:
        """Raise ValueError where numbers of a file that was found do not fit together."""
        if not self._words.fit() or not self._words.is_utf8() or self.counts.min() < 0:
            raise ValueError("the words of an id file are damaged")
        known = 0
        for start in range(0, len(self.ids), PIECE):
            known += int(np.count_nonzero(self.ids[start : start + PIECE] < len(self.counts)))
            self.release()
        if known != len(self.ids) or known != self.counts.sum():
            raise ValueError("the ids of an id file are damaged")

    def words(self, ids: NDArray[np.int64]) -> Words:
        """The words with these ids."""
        return self._words.take(ids)

    def remap(self, words: Sequence[str]) -> NDArray[np.int32]:
        """The position of each id among the words of a vocabulary, −1 if it has none: int32 (types + 2,)."""
        packed = Words.of(words)
        padded = np.append(packed.blob, np.frombuffer(PADDING, np.uint8))
        return match(padded, packed.offsets, self._strings, self._offsets)

    def known_before(self, remap: NDArray[np.int32], size: int) -> NDArray[np.int64]:
        """How many words of the vocabulary stand before each piece of `size` ids, and in all: int64 (pieces + 1,)."""
        pieces = range(0, len(self.ids), size)
        known = np.zeros(len(pieces) + 1, np.int64)
        for piece, start in enumerate(pieces, 1):
            words = remap.take(self.ids[start : start + size])  # where memory is short, remap[...] is not safe
            known[piece] = np.count_nonzero(words >= 0)
            if piece % 64 == 0:
                self.release()
        return np.cumsum(known)

    def checksum(self) -> str:
        """SHA-256 of the text: of its ids, and of the words that they stand for."""
        found = hashlib.sha256(self._strings.data)
        found.update(self._offsets.data)
        for start in range(0, len(self.ids), PIECE):
            found.update(self.ids[start : start + PIECE].data)
            self.release()
        return found.hexdigest()

    def release(self) -> None:
        """Give back the memory that the file's pages take; what is used again is read again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._memory.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Let go of the file, after which only the figures are left; a temporary one gives its place back."""
        for name in ("ids", "counts", "_offsets", "_strings", "_words", "_memory"):
            vars(self).pop(name, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a text is read. Raises SettingsError for impossible values."""

    cache: PathLike | None = option(
        None, "Keep the text as ids in this folder, and use them again.", TEXT, default_text="none"
    )
    errors: Errors = option("strict", "What to do with bytes that are not UTF-8.", TEXT)
    max_types: int = option(
        50_000_000,
        "Drop the rarest words while there are more different words than this.",
        TEXT,
        minimum=1,
        maximum=LARGEST_MAX_TYPES,
    )

    def __post_init__(self) -> None:
        check_options(self)


def read_corpus(
    corpus: Corpus, reading: ReadingOptions | None = None, *, workers: int = 1, progress: Progress | None = None
) -> IdStore:
    """Read the text once, in `workers` threads, and keep it as ids.

    The ids go to a temporary file without a name, of which nothing is left when the process ends, or to a file in the
    folder `cache`, which is used again while the corpus and the settings are the same; a text that can be
    read only once is not kept. `errors` says what becomes of bytes that are not UTF-8. When there are more
    than `max_types` types the rarest are dropped, as word2vec.c does. `progress` is called with
    "read", the number of bytes read, and their total or None.

    Raises W2VError for a text that cannot be read or holds no word and for a folder that cannot be written,
    SettingsError for impossible settings.
    """
    if workers < 1:
        raise SettingsError(f"workers {workers}: it must be at least 1")
    reading = reading or ReadingOptions()
    cache, errors, max_types = reading.cache, reading.errors, reading.max_types
    files = corpus.fingerprint()
    settings = {"files": files, "errors": errors, "max_types": max_types}
    folder = Path(tempfile.gettempdir() if cache is None else cache)
    with _writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if cache is None or files is None:
        with _writing_to(folder):
            temporary = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        with cast(BinaryIO, temporary) as file:
            _write(file, folder, corpus, settings, workers, progress)
            return IdStore(file)

    # One file for the same files read in the same way; whether they have changed stands in it.
    identity = json.dumps([errors, max_types, *(name for name, _, _ in files)])
    path = folder / f"w2v-{hashlib.sha256(identity.encode()).hexdigest()[:16]}{CACHE_SUFFIX}"
    damaged = (OSError, ValueError, TypeError, LookupError, RecursionError)
    with contextlib.suppress(*damaged):  # a damaged file is as good as none
        with path.open("rb") as file:
            store = IdStore(file, reused=True)
        if store.description["settings"] == json.dumps(settings):
            return store
    with atomic_write(path) as file:
        _write(file, folder, corpus, settings, workers, progress)
        file.flush()
        return IdStore(file)


def _write(
    file: BinaryIO,
    folder: Path,
    corpus: Corpus,
    settings: dict[str, Any],
    workers: int,
    progress: Progress | None,
) -> None:
    """Write the ids of a corpus, and all that belongs to them, to a new file."""
    types = Types(settings["errors"])
    max_types = settings["max_types"]
    pruned = threshold = 0
    for place, (block, scan) in enumerate(_scanned(types, corpus.blocks(), workers), 1):
        try:
            ids = types.merge(scan)
        except Malformed as error:
            position, word = error.args
            name, offset = block.locate(position)
            raise W2VError(
                f"{name}: byte {offset}, in {word[:60]!r}, is not UTF-8; convert the text, or choose what "
                "to do with --errors replace or ignore"
            ) from None
        with _writing_to(folder):
            _put(file, ids.data)
            if place % MEASURED == 0 and corpus.total_bytes:
                _check_space(file, folder, block.bytes_done / corpus.total_bytes)
            if len(types) - FIRST_TYPE > max_types:
                before = len(types)
                threshold = _threshold(types.counts()[FIRST_TYPE:], threshold + 1, max_types)
                _renumber(file, types.prune(threshold))
                pruned += before - len(types)
        if progress:
            progress("read", block.bytes_done, corpus.total_bytes)
    counts = types.counts()
    if not counts[PRUNED_TYPE:].any():
        raise W2VError(f"{corpus} holds no words")
    size = int(counts.sum())
    description = {"settings": json.dumps(settings), "ids": size, "types": len(types), "pruned": pruned}
    encoded = json.dumps(description).encode()
    with _writing_to(folder):
        _put(file, bytes(_aligned(4 * size) - 4 * size))
        _put(file, counts.data)
        _put(file, np.cumsum(np.append(0, types.lengths())).data)
        for piece in types.strings():
            _put(file, piece.data)
        _put(file, PADDING + encoded + len(encoded).to_bytes(8, "little") + SIGNATURE)


def _check_space(file: BinaryIO, folder: Path, share: float) -> None:
    """Raise W2VError where the disk has no place for the rest, of which `share` is written."""
    written, disk = file.tell(), os.fstatvfs(file.fileno())
    needed, limit = written / share, written + disk.f_bavail * disk.f_frsize
    if needed > limit:
        raise W2VError(
            f"the ids of the text need about {needed / 1e6:,.0f} MB on disk, and {folder} has {limit / 1e6:,.0f} MB; "
            "name another folder with --cache or TMPDIR"
        )


def _scanned(types: Types, blocks: Iterable[Block], workers: int) -> Iterator[tuple[Block, Scan]]:
    """The blocks in order, scanned ahead of their use by this thread and `workers` − 1 others."""
    if workers == 1:
        for block in blocks:
            yield block, types.scan(block.text)
        return
    ahead: deque[tuple[Block, Future[Scan]]] = deque()

    def first() -> tuple[Block, Scan]:
        """The first block; while another thread is at it, this one scans blocks that nobody has begun."""
        for place, (block, scan) in enumerate(ahead):
            if ahead[0][1].done():
                break
            if scan.cancel():
                ahead[place] = block, Future()
                ahead[place][1].set_result(types.scan(block.text))
        block, scan = ahead.popleft()
        return block, scan.result()

    with ThreadPoolExecutor(workers - 1) as pool:
        for block in blocks:
            ahead.append((block, pool.submit(types.scan, block.text)))
            if len(ahead) > 2 * workers:
                yield first()
        while ahead:
            yield first()


def _threshold(counts: NDArray[np.int64], least: int, max_types: int) -> int:
    """The smallest number, `least` or more, that at most `max_types` counts exceed."""
    rank = counts.size - max_types - 1
    return max(least, int(np.partition(counts, rank)[rank]))


def _renumber(file: BinaryIO, renumbered: NDArray[np.uint32]) -> None:
    """Replace every id written so far."""
    file.flush()
    position = 0
    while data := os.pread(file.fileno(), PIECE, position):
        file.seek(position)
        _put(file, renumbered[np.frombuffer(data, np.uint32)].data)
        position += len(data)


def _put(file: BinaryIO | io.FileIO, data: bytes | memoryview) -> None:
    """Write all of it, where the system may write less than it is given."""
    rest = memoryview(data).cast("B") if len(data) else memoryview(b"")
    while rest:
        rest = rest[file.write(rest) :]


def _aligned(size: int) -> int:
    return (size + 7) // 8 * 8


@contextlib.contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise W2VError(
            f"cannot write ids to {folder}: {error.strerror}; name another folder with --cache or TMPDIR"
        ) from error
