"""The corpus as integer ids in a memory-mapped file: the text is read once, the ids in every epoch."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import mmap
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v.errors import NothingToTrain, SettingsError, W2VError
from w2v.options import option
from w2v.progress import Meter, Report
from w2v.settings import TEXT
from w2v.system.files import IDS, Errors, PathLike, atomic_write, errors_named, is_own, temporary_folder
from w2v.system.memory import MappedFile
from w2v.system.schema import Count, decode, encode
from w2v.system.threads import map_in_order
from w2v.text._text import FIRST_TYPE, PADDING, PRUNED_TYPE, SENTENCE_END_ID, Lookup, Malformed, Scan, Types
from w2v.text.corpus import Corpus, TextBlock
from w2v.text.encodings import UTF_8, encoding_name
from w2v.text.normalise import Normaliser, TextOptions
from w2v.text.paths import CACHE_SUFFIX
from w2v.text.words import Words

SIGNATURE = IDS + b"1\n"
MAX_TYPES_LIMIT = 1 << 30  # the largest max_types: ids have 31 bits, and one block of text may exceed max_types
SPACE_CHECK_BLOCKS = 64  # blocks of text between checks of the space on disk
IDS_AT_ONCE = 1 << 22  # ids checked, hashed or renumbered at a time


@dataclass(frozen=True)
class Description:
    """The description in an id file: how the text was read (JSON), and the numbers of ids, types and pruned types."""

    settings: str
    ids: Count
    types: Count
    pruned: Count


class TypeCounts:
    """The types of a corpus: id 0 ends a sentence, 1 is a word that pruning dropped, 2, 3, … are in first-seen order.

    Attributes:
        counts: int64 (types + 2,), how often each id occurs.
        types: the word of each id as Words, empty for ids 0 and 1.
        strings: uint8, the bytes of all types, end to end, and PADDING. offsets: int64 (types + 3,), see Words.
        pruned: number of types dropped to keep within `max_types`, int.
        tokens: number of words in the corpus, int.
        sentences: number of lines that contain a word, int.
    """

    def __init__(
        self, counts: NDArray[np.int64], strings: NDArray[np.uint8], offsets: NDArray[np.int64], pruned: int
    ) -> None:
        self.counts, self.strings, self.offsets, self.pruned = counts, strings, offsets, pruned
        self.types = Words(strings[: -len(PADDING)], offsets)
        self.tokens = int(counts[PRUNED_TYPE:].sum())
        self.sentences = int(counts[SENTENCE_END_ID])

    def words(self, ids: NDArray[np.int64]) -> Words:
        """The words with these ids."""
        return self.types.take(ids)

    def remap(self, words: Sequence[str]) -> NDArray[np.int32]:
        """The index of each id's word in `words`, −1 if it is not among them: int32 (types + 2,)."""
        packed = Words.of(words)
        return Lookup(packed.padded(), packed.offsets).rows(self.strings, self.offsets)

    def followed_by(self, other: TypeCounts) -> TypeCounts:
        """The types of this corpus and of another that follows it, in first-seen order."""
        index = Lookup(self.strings, self.offsets).rows(other.strings, other.offsets)
        index[:FIRST_TYPE] = range(FIRST_TYPE)
        new = np.flatnonzero(index < 0)
        counts = np.concatenate([self.counts, other.counts[new]])
        counts[index[index >= 0]] += other.counts[index >= 0]
        types = self.types.followed_by(other.words(new))
        return TypeCounts(counts, types.padded(), types.offsets, self.pruned + other.pruned)

    def types_checksum(self) -> str:
        """SHA-256 of the types and their counts; it does not depend on how the text is divided among ranks."""
        found = hashlib.sha256(self.strings.data)
        found.update(self.offsets.data)
        found.update(self.counts[FIRST_TYPE:].data)
        return found.hexdigest()


class IdStore(TypeCounts):
    """A corpus as ids; see TypeCounts.

    Attributes:
        ids: uint32 (tokens + sentences,), memory-mapped, read-only.
        reused: whether the file was found in the cache, bool.

    The file contains the ids, the counts, the offsets into the words' bytes (int64), these bytes, a description in
    JSON, the description's length (8 bytes) and a signature. The caller may close `file`. Raises ValueError if it
    is damaged.
    """

    def __init__(self, file: BinaryIO, reused: bool = False) -> None:
        self._memory = memory = MappedFile(file)
        tail = len(memory) - len(SIGNATURE) - 8
        if tail < 0 or memory[tail + 8 :] != SIGNATURE:
            raise ValueError("an id file is incomplete")
        length = int.from_bytes(memory[tail : tail + 8], "little")
        if length > tail:
            raise ValueError("the description of an id file is longer than the file")
        self.description = decode(Description, memory[tail - length : tail], "an id file")
        ids, types, pruned = self.description.ids, self.description.types, self.description.pruned
        if types < FIRST_TYPE or max(ids, types) > tail:
            raise ValueError(f"an id file claims {ids} ids of {types} types")
        start = _aligned(4 * ids)
        self.ids: NDArray[np.uint32] = np.frombuffer(memory, np.uint32, ids)
        counts: NDArray[np.int64] = np.frombuffer(memory, np.int64, types, start)
        offsets: NDArray[np.int64] = np.frombuffer(memory, np.int64, types + 1, start + 8 * types)
        start += 8 * (2 * types + 1)
        strings: NDArray[np.uint8] = np.frombuffer(memory, np.uint8, int(offsets[-1]) + len(PADDING), start)
        super().__init__(counts, strings, offsets, pruned)
        self.reused = reused
        if reused:
            self._check()

    def _check(self) -> None:
        """Raise ValueError if the numbers in a file from the cache are inconsistent."""
        if not self.types.is_utf8() or self.counts.min() < 0:
            raise ValueError("the words of an id file are damaged")
        known = sum(int(np.count_nonzero(ids < len(self.counts))) for ids in self._pieces())
        if known != len(self.ids) or known != self.counts.sum():
            raise ValueError("the ids of an id file are damaged")

    def known_before(self, remap: NDArray[np.int32], size: int) -> NDArray[np.int64]:
        """The number of words of the vocabulary before each piece of `size` ids, and in all: int64 (pieces + 1,).

        `remap`, int32 (types + 2,), is the result of the method `remap`.
        """
        known = [
            np.count_nonzero(remap.take(ids) >= 0) for ids in self._pieces(size)
        ]  # remap[...] crashes if memory is short
        return np.cumsum([0, *known])

    def checksum(self) -> str:
        """SHA-256 of the text: of its ids and their words."""
        found = hashlib.sha256(self.strings.data)
        found.update(self.offsets.data)
        for ids in self._pieces():
            found.update(ids.data)
        return found.hexdigest()

    def _pieces(self, size: int = IDS_AT_ONCE) -> Iterator[NDArray[np.uint32]]:
        """The ids in pieces of `size`, whose memory is freed from time to time."""
        for start in range(0, len(self.ids), size):
            yield self.ids[start : start + size]
            if (start + size) % IDS_AT_ONCE < size:
                self.release()

    @property
    def is_cut(self) -> bool:
        """Whether the file has been truncated: then some ids that were read may not be those of the text."""
        return self._memory.is_cut

    def release(self) -> None:
        """Free the memory of the file's pages; those used again are read again from disk.

        Raises W2VError if the file has been cut.
        """
        if self.is_cut:
            raise W2VError("the file with the ids of the text was cut by another process: train again")
        if hasattr(mmap, "MADV_DONTNEED"):
            self._memory.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Release the file: only the numbers stay usable, and the disk space of a temporary file is freed."""
        for name in ("ids", "counts", "types", "offsets", "strings", "_memory"):
            vars(self).pop(name, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Raises W2VError if the file has been cut."""
        try:
            if kind is None and "_memory" in vars(self):
                self.release()
        finally:
            self.close()


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(TextOptions):
    """How a text is read. Raises SettingsError for impossible values."""

    column: str | None = option(
        None,
        "Read the text in this column of JSON lines, CSV or Parquet; each row ends a sentence. `--column none` "
        "reads a file as plain text even if it looks like a table.",
        TEXT,
        default_text="plain text; tables are refused",
    )
    cache: PathLike | None = option(
        None, "Cache the text as ids in this folder, and reuse them.", TEXT, default_text="none"
    )
    encoding: str = option(
        UTF_8, "Encoding of the text, such as latin-1, cp949 or utf-16. Parquet is always UTF-8.", TEXT
    )
    errors: Errors = option("strict", "What to do with bytes that are not in this encoding.", TEXT)
    max_types: int = option(
        50_000_000,
        "While reading, drop the rarest words if there are more different words than this.",
        TEXT,
        minimum=1,
        maximum=MAX_TYPES_LIMIT,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "encoding", encoding_name(self.encoding))


def read_corpus(
    corpus: Corpus, reading: ReadingOptions | None = None, *, workers: int = 1, progress: Report | None = None
) -> IdStore:
    """Read the text once, in `workers` threads, and store it as ids.

    The ids are stored in an unnamed temporary file, which vanishes when the process ends, or in a file of this user in
    the folder `cache`, which is reused as long as corpus and settings are the same. A text that can be read only once
    is not cached. `errors` says how to treat bytes that are not in the `encoding`, by default UTF-8. If there are more
    than `max_types` types, the rarest are dropped, as in word2vec.c. With `column`, the text is in that column of
    tables. `strip_markup`, `normalize`, `digits`, `lower` and `tokenize` are applied to the text in this order.
    `progress` is called regularly with a Progress of phase "read".

    Raises W2VError for a text that cannot be read or has no words and for a folder that cannot be written to,
    SettingsError for impossible settings.
    """
    if workers < 1:
        raise SettingsError(f"workers {workers}: it must be at least 1")
    reading = reading or ReadingOptions()
    cache = reading.cache
    files = corpus.sizes
    folder = temporary_folder(cache)
    with _writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if cache is None or files is None:
        with _temporary(folder) as file:
            _write(file, folder, corpus, reading, "", workers, progress)
            return IdStore(file)

    # One cache file of a user for the same files read in the same way; its description shows whether they have changed.
    how = {name: value for name, value in asdict(reading).items() if name != "cache"}
    identity = json.dumps([os.geteuid(), how, [path for path, _ in files], corpus.ranges])
    description = json.dumps([files, corpus.ranges, how, corpus.checksum()])
    path = folder / f"w2v-{hashlib.sha256(identity.encode()).hexdigest()[:16]}{CACHE_SUFFIX}"
    with contextlib.suppress(OSError, ValueError):  # a damaged file is replaced
        # In a shared folder, another user may have put a link or a pipe there.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            store = IdStore(file, reused=True) if is_own(descriptor, forbidden=0o022) else None
        if store and store.description.settings == description:
            return store
    with atomic_write(path, follow=False, mode=0o600) as file:
        _write(file, folder, corpus, reading, description, workers, progress)
        file.flush()
        return IdStore(file)


def temporary_array(size: int, dtype: DTypeLike, folder: Path) -> NDArray[Any]:
    """An array of zeros in an unnamed file in a folder, memory-mapped. Raises W2VError if the disk has no space."""
    length = max(1, size * np.dtype(dtype).itemsize)
    with _writing_to(folder), tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(length)
        try:
            os.posix_fallocate(file.fileno(), 0, length)  # a disk that is full later would end the process
        except AttributeError:  # macOS
            pass
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # some file systems cannot reserve space
                raise
        return np.ndarray(size, dtype, mmap.mmap(file.fileno(), length))


def release(array: NDArray[Any]) -> None:
    """Free the memory of a temporary array's pages; those used again are read again from disk."""
    if hasattr(mmap, "MADV_DONTNEED"):
        cast(mmap.mmap, array.base).madvise(mmap.MADV_DONTNEED)


def _write(
    file: BinaryIO,
    folder: Path,
    corpus: Corpus,
    reading: ReadingOptions,
    description: str,
    workers: int,
    progress: Report | None,
) -> None:
    """Write a new file for an IdStore, which describes its content."""
    types = Types(reading.errors)
    normalise = Normaliser(TextOptions.of(reading), reading.errors)
    blocks = corpus.blocks(reading.column, reading.strip_markup, encoding=reading.encoding, errors=reading.errors)
    pruned = threshold = done = 0
    meter = Meter(progress, "read")

    def scan(block: TextBlock) -> tuple[TextBlock, Scan]:
        with naming(block):
            return block, types.scan(normalise(block.text))

    for number, (block, scanned) in enumerate(map_in_order(scan, blocks, workers), 1):
        with naming(block):
            ids = types.merge(scanned)
        with _writing_to(folder):
            _put(file, ids.data)
            if number % SPACE_CHECK_BLOCKS == 0 and corpus.total_bytes:
                _check_space(file, folder, block.bytes_done / corpus.total_bytes)
            if len(types) - FIRST_TYPE > reading.max_types:
                before = len(types)
                threshold = max(threshold + 1, lowest_threshold(types.counts()[FIRST_TYPE:], reading.max_types))
                _renumber(file, types.prune(threshold))
                pruned += before - len(types)
        done = block.bytes_done
        meter(done, corpus.total_bytes)
    meter(done, done)
    counts = types.counts()
    if not counts[PRUNED_TYPE:].any() and corpus.ranges is None:  # a part of a text may be empty
        raise NothingToTrain(f"{corpus} holds no words")
    with _writing_to(folder):
        _write_types(file, counts, types.lengths(), types.strings(), description, pruned)


def _write_types(
    file: BinaryIO,
    counts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    strings: Iterable[NDArray[np.uint8]],
    settings: str,
    pruned: int,
) -> None:
    """Write the part of an IdStore's file that follows the ids."""
    size = int(counts.sum())
    encoded = encode(Description(settings, size, len(counts), pruned), "ids").encode()
    _put(file, bytes(_aligned(4 * size) - 4 * size))
    _put(file, counts.data)
    _put(file, np.cumsum(np.append(0, lengths)).data)
    for piece in strings:
        _put(file, piece.data)
    _put(file, PADDING + encoded + len(encoded).to_bytes(8, "little") + SIGNATURE)


def rewritten(
    store: IdStore,
    pieces: Iterable[NDArray[np.uint32]],
    types: Callable[[], tuple[NDArray[np.int64], Words]],
    folder: Path,
) -> IdStore:
    """A store of other ids for the same text, in an unnamed temporary file in a folder.

    `pieces` are the ids. `types` is called after the last piece and returns their counts, int64 (types + 2,), and
    words. Raises W2VError for a folder that cannot be written to.
    """
    with _temporary(folder) as file:
        for ids in pieces:
            with _writing_to(folder):
                _put(file, ids.data)
        counts, words = types()
        with _writing_to(folder):
            _write_types(file, counts, np.diff(words.offsets), [words.blob], store.description.settings, store.pruned)
        found = IdStore(file)
        found.reused = store.reused
        return found


def _temporary(folder: Path) -> BinaryIO:
    with _writing_to(folder):
        return cast(BinaryIO, tempfile.TemporaryFile(dir=folder, buffering=0))


def _check_space(file: BinaryIO, folder: Path, share: float) -> None:
    """Raise W2VError if the ids, of which `share` is written, will not fit on the disk."""
    written, disk = file.tell(), os.fstatvfs(file.fileno())
    needed, limit = written / share, written + disk.f_bavail * disk.f_frsize
    if needed > limit:
        raise W2VError(
            f"the ids of the text need about {needed / 1e6:,.0f} MB on disk, and {folder} has {limit / 1e6:,.0f} MB; "
            "name another folder with --cache or TMPDIR"
        )


@contextlib.contextmanager
def naming(block: TextBlock) -> Iterator[None]:
    """Turn Malformed into a W2VError that names the file and the position in it."""
    try:
        yield
    except Malformed as error:
        position, word = error.args
        name, offset = block.locate(position)
        hint = (
            "if it is in another encoding, such as latin-1 or cp949, add --encoding (encoding=), otherwise "
            "--errors replace or --errors ignore"
        )
        hint = "it is binary, not text" if b"\0" in block.text else hint
        raise W2VError(f"{name}: byte {offset}, in {word[:60]!r}, is not UTF-8; {hint}") from None


def lowest_threshold(counts: NDArray[np.int64], size: int) -> int:
    """The lowest threshold above which no more than `size` counts, of which there are more, lie."""
    rank = len(counts) - size - 1
    return int(np.partition(counts, rank)[rank])


def _renumber(file: BinaryIO, renumbered: NDArray[np.uint32]) -> None:
    """Replace each id written so far by renumbered[id]."""
    file.flush()
    position = 0
    while data := os.pread(file.fileno(), 4 * IDS_AT_ONCE, position):
        file.seek(position)
        _put(file, renumbered[np.frombuffer(data, np.uint32)].data)
        position += len(data)


def _put(file: BinaryIO | io.FileIO, data: bytes | memoryview) -> None:
    """Write all of the data: one write to an unbuffered file may write only a part."""
    rest = memoryview(data).cast("B") if len(data) else memoryview(b"")
    while rest:
        rest = rest[file.write(rest) :]


def _aligned(size: int) -> int:
    return (size + 7) // 8 * 8


def _writing_to(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Turn the system's errors into W2VError."""
    return errors_named(folder, "write ids to", "; name another folder with --cache or TMPDIR")
