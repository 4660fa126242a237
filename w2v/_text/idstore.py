"""Store a corpus as integer ids in a memory-mapped file. The text is read once, the ids in every epoch."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import mmap
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

import msgspec
import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v._errors import NothingToTrain, SettingsError, W2VError
from w2v._options import check_whole, option, options_of
from w2v._progress import Meter, Report
from w2v._settings import TEXT
from w2v._system import files
from w2v._system.files import Errors, PathLike, atomic_write, temporary_folder, translate_os_errors
from w2v._system.memory import MappedFile, release_pages
from w2v._system.schema import Count, decode, encode
from w2v._system.threads import map_in_order
from w2v._text._text import FIRST_TYPE, PADDING, PRUNED_TYPE, SENTENCE_END_ID, Lookup, Malformed, Scan, Types
from w2v._text.columns import has_columns
from w2v._text.corpus import Corpus, TextBlock
from w2v._text.encodings import UTF_8, encoding_name
from w2v._text.long_table import LongTable, RowBlock, Rows
from w2v._text.normalise import Normaliser, TextOptions, label_pattern
from w2v._text.paths import CACHE_SUFFIX
from w2v._text.sessions import ITEMS_AT_ONCE, Keys, SessionBlock
from w2v._text.words import INTEGER, OWN_PREFIX, KeyType, Noun, Words

SIGNATURE = files.IDS_SIGNATURE + b"1\n"
# The largest allowed max_types. Ids have 31 bits. Types are pruned only after a block, so a block can exceed max_types.
MAX_TYPES_LIMIT = 1 << 30
SPACE_CHECK_BLOCKS = 64  # blocks of text between checks of the free disk space
IDS_AT_ONCE = 1 << 22  # ids checked, hashed or renumbered at a time


class IdFileFooter(msgspec.Struct, frozen=True):
    """The footer of an id file, in JSON.

    Attributes:
        cache_key: Identifies the text and the reading options, as JSON; empty if the text is not cached. The file calls
            it "settings".
        ids: The number of ids.
        types: The number of types, including the ids 0 and 1 of TypeCounts.
        pruned: The number of pruned types.
        key_type: See TypeCounts.
        noun: See TypeCounts.
    """

    cache_key: str = msgspec.field(name="settings")
    ids: Count
    types: Count
    pruned: Count
    key_type: KeyType = "str"
    noun: Noun = "word"


class TypeCounts:
    """The types (distinct words) of a corpus and their counts.

    Id 0 is the end of a sentence and id 1 a word that pruning dropped. The types have the ids 2, 3, … in first-seen
    order.

    Attributes:
        counts: int64 (types + 2,), how often each id occurs.
        types: The word of each id, as Words; empty for ids 0 and 1.
        strings: uint8, the bytes of all types, concatenated, and PADDING.
        offsets: int64 (types + 3,), see Words.
        pruned: The number of types dropped to keep within `max_types`, int.
        tokens: The number of words in the corpus, int.
        sentences: The number of lines that contain a word, int.
        key_type: "int" if all words are numbers of items, in decimal digits; otherwise "str".
        noun: What messages call the words: items of sessions and nodes of a graph are not words of a text.
        is_text: Whether the words are words of a text. Others get no advice on texts.
    """

    def __init__(
        self,
        counts: NDArray[np.int64],
        strings: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        pruned: int,
        key_type: KeyType = "str",
        noun: Noun = "word",
    ) -> None:
        self.counts, self.strings, self.offsets, self.pruned = counts, strings, offsets, pruned
        self.key_type, self.noun = key_type, noun
        self.is_text = noun == "word"
        self.types = Words(strings[: -len(PADDING)], offsets)
        self.tokens = int(counts[PRUNED_TYPE:].sum())
        self.sentences = int(counts[SENTENCE_END_ID])

    def words(self, ids: NDArray[np.int64]) -> Words:
        """Return the words with these ids."""
        return self.types.take(ids)

    def remap(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Return the index in `words` of each id's word, or −1 if `words` does not contain it: int32 (types + 2,)."""
        return Words.of(words).lookup().rows(self.strings, self.offsets)

    def concat(self, other: TypeCounts) -> TypeCounts:
        """Return the types of this corpus followed by another, in first-seen order."""
        index = Lookup(self.strings, self.offsets).rows(other.strings, other.offsets)
        index[:FIRST_TYPE] = range(FIRST_TYPE)
        new = np.flatnonzero(index < 0)
        counts = np.concatenate([self.counts, other.counts[new]])
        counts[index[index >= 0]] += other.counts[index >= 0]
        types = self.types.concat(other.words(new))
        parts = [part for part in (self, other) if part.tokens] or [self]  # an empty part has neither words nor items
        key_type: KeyType = "int" if all(part.key_type == "int" for part in parts) else "str"
        noun = next((part.noun for part in parts if part.is_text), parts[0].noun)
        pruned = self.pruned + other.pruned
        return TypeCounts(counts, types.with_padding(), types.offsets, pruned, key_type, noun)

    def types_checksum(self) -> str:
        """Return the SHA-256 of the types and their counts. It is the same however ranks divide the text."""
        digest = hashlib.sha256(self.strings.data)
        digest.update(self.offsets.data)
        digest.update(self.counts[FIRST_TYPE:].data)
        return digest.hexdigest()


class IdStore(TypeCounts):
    """A corpus as ids; see TypeCounts.

    The file contains the ids, padded to a multiple of 8 bytes, the counts, the offsets of the words (int64), the bytes
    of the words and PADDING, an IdFileFooter, the length of the footer (8 bytes) and a signature. The caller may close
    `file`.

    Attributes:
        ids: uint32 (tokens + sentences,), memory-mapped, read-only.
        reused: True if the file comes from the cache.

    Raises:
        ValueError: If the file is damaged.
    """

    def __init__(self, file: BinaryIO, reused: bool = False) -> None:
        self._memory = memory = MappedFile(file)
        tail = len(memory) - len(SIGNATURE) - 8
        if tail < 0 or memory[tail + 8 :] != SIGNATURE:
            raise ValueError("an id file is incomplete")
        length = int.from_bytes(memory[tail : tail + 8], "little")
        if length > tail:
            raise ValueError("the footer of an id file is longer than the file")
        self.footer = decode(IdFileFooter, memory[tail - length : tail], "an id file")
        ids, types, pruned = self.footer.ids, self.footer.types, self.footer.pruned
        if types < FIRST_TYPE or max(ids, types) > tail:
            raise ValueError(f"an id file declares {ids} ids of {types} types")
        start = _round_up(4 * ids)
        self.ids: NDArray[np.uint32] = np.frombuffer(memory, np.uint32, ids)
        counts: NDArray[np.int64] = np.frombuffer(memory, np.int64, types, start)
        offsets: NDArray[np.int64] = np.frombuffer(memory, np.int64, types + 1, start + 8 * types)
        start += 8 * (2 * types + 1)
        strings: NDArray[np.uint8] = np.frombuffer(memory, np.uint8, int(offsets[-1]) + len(PADDING), start)
        super().__init__(counts, strings, offsets, pruned, self.footer.key_type, self.footer.noun)
        self.reused = reused
        if reused:
            self._check()

    def _check(self) -> None:
        """Raise ValueError if the numbers in a cached file are inconsistent."""
        if not self.types.is_utf8() or self.counts.min() < 0:
            raise ValueError("the words of an id file are damaged")
        known = sum(int(np.count_nonzero(ids < len(self.counts))) for ids in self.pieces())
        if known != len(self.ids) or known != self.counts.sum():
            raise ValueError("the ids of an id file are damaged")

    def cumulative_known_counts(self, remap: NDArray[np.int32], size: int) -> NDArray[np.int64]:
        """Return the number of known tokens before each piece of `size` ids, and their total: int64 (pieces + 1,).

        A token is known if it is a word of the vocabulary. `remap`, int32 (types + 2,), is what the method `remap`
        returns for the vocabulary.
        """
        # If memory runs out, `take` raises MemoryError; remap[ids] would crash the process.
        known = [np.count_nonzero(remap.take(ids) >= 0) for ids in self.pieces(size)]
        return np.cumsum([0, *known])

    def checksum(self) -> str:
        """Return the SHA-256 of the ids and the words."""
        digest = hashlib.sha256(self.strings.data)
        digest.update(self.offsets.data)
        for ids in self.pieces():
            digest.update(ids.data)
        return digest.hexdigest()

    def pieces(self, size: int = IDS_AT_ONCE) -> Iterator[NDArray[np.uint32]]:
        """Yield the ids in pieces of `size`, and free their memory every IDS_AT_ONCE ids."""
        for start in range(0, len(self.ids), size):
            yield self.ids[start : start + size]
            if (start + size) % IDS_AT_ONCE < size:
                self.release()

    @property
    def is_truncated(self) -> bool:
        """True if the file has been truncated. Some ids that were read may then be wrong."""
        return self._memory.is_truncated

    def release(self) -> None:
        """Free the memory of the file's pages. A page that is used again is read again from disk.

        Raises:
            W2VError: If the file has been truncated.
        """
        if self.is_truncated:
            raise W2VError("another process truncated the file with the ids of the text: train again")
        release_pages(self._memory)

    def close(self) -> None:
        """Close the file and free the disk space of a temporary file. Only attributes that are an int stay usable."""
        for name in ("ids", "counts", "types", "offsets", "strings", "_memory"):
            vars(self).pop(name, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Close the file. Raises W2VError if it has been truncated."""
        try:
            if kind is None and "_memory" in vars(self):
                self.release()
        finally:
            self.close()


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(TextOptions):
    """The options for reading a text.

    Raises:
        SettingsError: For impossible values.
    """

    column: str | None = option(
        None,
        "Read the text, or the lists of items, in this column, by name or number, of JSON, CSV, Parquet or Arrow; each "
        "row ends a sentence. `--column none` reads a file as plain text even if it looks like a table.",
        TEXT,
        default_text="plain text; tables are refused",
    )
    cache: PathLike | None = option(
        None, "Cache the text as ids in this folder, and reuse the cache.", TEXT, default_text="none"
    )
    item: str | None = option(
        None,
        "Read items from a table with a row for each of them: --item is the column of items, and --session the column "
        "that says which rows belong together.",
        TEXT,
        default_text="none",
    )
    session: str | None = option(None, "The column of sessions; see --item.", TEXT, default_text="none")
    order: str | None = option(
        None,
        "The column with the order of the items in a session: numbers or dates. Rows with equal values keep their "
        "order.",
        TEXT,
        default_text="the order of the rows",
    )
    also_context: str | None = option(
        None,
        "The column with an item that is also context of every window of its session, such as the one that was bought. "
        "A session may have several.",
        TEXT,
        default_text="none",
    )
    weight: str | None = option(
        None,
        "The column with the weight of a session: a session of weight 3 is read three times.",
        TEXT,
        default_text="1",
    )
    header: bool | None = option(
        None,
        "The first row of CSV has the names of the columns, or is data. Without names, columns have numbers from 1, "
        "such as --item 2.",
        TEXT,
        flags=("--header/--no-header",),
        default_text="by the first rows",
    )
    encoding: str = option(
        UTF_8, "Encoding of the text, such as latin-1, cp949 or utf-16. Parquet and Arrow are always UTF-8.", TEXT
    )
    errors: Errors = option("strict", "What to do with bytes that are not in this encoding.", TEXT)
    max_types: int = option(
        50_000_000,
        "While reading, drop the rarest words if there are more distinct words than this.",
        TEXT,
        minimum=1,
        maximum=MAX_TYPES_LIMIT,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "encoding", encoding_name(self.encoding))
        if (self.item is None) != (self.session is None) or (self.order is not None and self.item is None):
            raise SettingsError("--item and --session (item=, session=) are given together, and --order only with them")
        for name in ("also_context", "weight"):
            if self.item is None and getattr(self, name) is not None:
                flag = f"--{name.replace('_', '-')}"
                raise SettingsError(f"{flag} ({name}=) is a column of sessions: add --item and --session")
        columns = [name for name in (self.item, self.session, self.also_context, self.weight) if name is not None]
        if len({*columns}) < len(columns):
            twice = max(columns, key=columns.count)
            raise SettingsError(f"the column {twice[:60]!r} is named twice, as item, session, also_context or weight")
        if self.item is not None and has_columns(self.column):
            raise SettingsError("--column (column=) reads lists or texts, and --item (item=) rows: give one of them")

    @property
    def long_table(self) -> LongTable | None:
        """The columns of a table with a row for each item, or None."""
        return None if self.item is None else LongTable(*(getattr(self, name) for name in LongTable._fields))

    def refuse_for_items(self, where: str) -> None:
        """Raise SettingsError if an option is set that changes words of a text. `where` names the items."""
        for name in options_of(TextOptions):
            if getattr(self, name) != getattr(TextOptions, name):
                option_name = f"--{name.replace('_', '-')} ({name}=)"
                raise SettingsError(f"{option_name} changes words of a text, but {where} holds items: leave it out")


CheckItems = Callable[[str, KeyType | None], None]  # gets a name for messages, and the type of keys; see `read_corpus`


def read_corpus(
    corpus: Corpus,
    reading: ReadingOptions | None = None,
    *,
    workers: int = 1,
    progress: Report | None = None,
    check_items: CheckItems | None = None,
    label_prefix: str = "",
) -> IdStore:
    """Read a text once and store it as ids.

    The ids are stored in an unnamed temporary file, which the system deletes when the process ends. With
    `reading.cache`, they are stored in a file of this user in that folder, and reused as long as the corpus and the
    options are the same. A text that can be read only once is not cached. If there are more than `max_types` types, the
    rarest are dropped, as in word2vec.c.

    Args:
        corpus: The text.
        reading: The reading options. `strip_markup`, `normalize`, `digits`, `lower` and `tokenize` are applied in this
            order.
        workers: The number of threads.
        progress: Called regularly with a Progress of phase "read".
        check_items: Called with the name and the type of keys of items as soon as they are read, to refuse them. It is
            not called for a text in the cache. The type is None if it is still unknown, as in CSV.
        label_prefix: The beginning of words that stay as they are, because they are labels; "" for none.

    Raises:
        W2VError: If the text cannot be read or has no words, or if the folder is not writable.
        SettingsError: If `workers` is less than 1.
    """
    check_whole(1, workers=workers)
    reading = reading or ReadingOptions()
    cache = reading.cache
    corpus.header = corpus.header if reading.header is None else reading.header
    sizes = corpus.sizes
    folder = temporary_folder(cache)
    _create_folder(folder)
    if cache is None or sizes is None:
        with _temporary(folder) as file:
            _write(file, folder, corpus, reading, "", workers, progress, check_items, label_prefix)
            return IdStore(file)

    # Each user has one cache file for the same files and options. Its cache key shows whether the files have changed.
    options = {name: value for name, value in asdict(reading).items() if name != "cache"}
    options |= {"label_prefix": label_prefix} if label_prefix else {}
    identity = json.dumps([files.user_id(), options, [path for path, _ in sizes], corpus.ranges])
    cache_key = json.dumps([sizes, corpus.ranges, options, corpus.checksum()])
    path = folder / f"w2v-{hashlib.sha256(identity.encode()).hexdigest()[:16]}{CACHE_SUFFIX}"
    with contextlib.suppress(OSError, ValueError):  # a damaged file is replaced
        # In a shared folder, another user may have created a link or a pipe with this name.
        descriptor = os.open(path, os.O_RDONLY | files.NO_FOLLOW | files.NO_WAIT)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            is_trusted = stat.S_ISREG(status.st_mode) and files.belongs_to_user(status, forbidden=0o022)
            store = IdStore(file, reused=True) if is_trusted else None
        if store and store.footer.cache_key == cache_key:
            return store
        if store:
            store.close()  # Windows does not replace a file that is mapped
    with atomic_write(path, follow=False, mode=0o600) as file:
        _write(file, folder, corpus, reading, cache_key, workers, progress, check_items, label_prefix)
        file.flush()
        return IdStore(file)


def temporary_array(size: int, dtype: DTypeLike, folder: Path) -> NDArray[Any]:
    """Return an array of zeros, memory-mapped to an unnamed file in a folder.

    Raises:
        W2VError: If the folder is not writable or the disk is full.
    """
    length = max(1, size * np.dtype(dtype).itemsize)
    with _translate_write_errors(folder), tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(length)
        files.reserve_space(file, length)
        return np.ndarray(size, dtype, mmap.mmap(file.fileno(), length))


def concatenate_in_files(
    parts: Iterable[Sequence[NDArray[Any]]], dtypes: Sequence[DTypeLike], folder: Path
) -> list[NDArray[Any]]:
    """Concatenate the first arrays of all parts, the second arrays, and so on.

    Args:
        parts: The arrays of each part, one for each dtype.
        dtypes: The type of each array.
        folder: The folder for unnamed files, to which the results are memory-mapped.

    Raises:
        W2VError: If the folder is not writable or the disk is full.
    """
    with _translate_write_errors(folder), contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in dtypes]
        for part in parts:
            for file, array in zip(files, part, strict=True):
                file.write(np.ascontiguousarray(array).data)
        found = []
        for file, dtype in zip(files, dtypes, strict=True):
            file.flush()
            size = file.tell()
            memory = mmap.mmap(file.fileno(), size) if size else b""
            found.append(np.frombuffer(memory, dtype))
        return found


def release(array: NDArray[Any]) -> None:
    """Free the memory of a temporary array's pages. A page that is used again is read again from disk."""
    release_pages(cast(mmap.mmap, array.base))


def _write(
    file: BinaryIO,
    folder: Path,
    corpus: Corpus,
    reading: ReadingOptions,
    cache_key: str,
    workers: int,
    progress: Report | None,
    check_items: CheckItems | None,
    label_prefix: str,
) -> None:
    """Read the corpus and write the file of an IdStore. `cache_key` is stored in the file."""
    types = Types(reading.errors)
    labels = label_pattern(label_prefix) if label_prefix else None
    normalise = Normaliser(TextOptions.of(reading), reading.errors, labels)
    blocks = corpus.blocks(
        reading.column,
        reading.strip_markup,
        encoding=reading.encoding,
        errors=reading.errors,
        long_table=reading.long_table,
    )
    blocks = _with_checked_items(blocks, reading, check_items)
    meter = Meter(progress, "read")
    if reading.long_table:
        rows = cast(Iterator[RowBlock], blocks)
        blocks = sessions_of_table(rows, folder, reading.errors, workers, meter, corpus.total_bytes)
    pruned = threshold = done = 0
    kinds: set[str | None] = set()  # the types of the keys of items, and "text" for words of a text

    def scan(block: TextBlock | SessionBlock | RowBlock) -> tuple[TextBlock | SessionBlock, Scan]:
        assert not isinstance(block, RowBlock)
        if isinstance(block, SessionBlock):
            return block, types.scan(block.items)
        with locate_malformed(block):
            return block, types.scan(normalise(block.text))

    for number, (block, scanned) in enumerate(map_in_order(scan, blocks, workers), 1):
        with locate_malformed(block):
            ids = types.merge(scanned)
        if len(ids):
            kinds.add(block.keys.key_type if isinstance(block, SessionBlock) else "text")
        with _translate_write_errors(folder):
            _write_all(file, ids.data)
            if number % SPACE_CHECK_BLOCKS == 0 and corpus.total_bytes:
                _check_space(file, folder, block.bytes_done / corpus.total_bytes)
            if len(types) - FIRST_TYPE > reading.max_types:
                before = len(types)
                threshold = max(threshold + 1, pruning_threshold(types.counts()[FIRST_TYPE:], reading.max_types))
                _renumber(file, types.prune(threshold))
                pruned += before - len(types)
        done = max(done, block.bytes_done)  # the sessions of a long table follow after all of its bytes are read
        meter(done, corpus.total_bytes)
    meter(done, done)
    counts = types.counts()
    if not counts[PRUNED_TYPE:].any() and corpus.ranges is None:  # a part of a text may be empty
        raise NothingToTrain(f"{corpus} holds no words")
    key_type: KeyType = "int" if _are_numbers(kinds, types) else "str"
    with _translate_write_errors(folder):
        noun: Noun = "word" if kinds <= {"text"} else "item"
        footer = IdFileFooter(cache_key, int(counts.sum()), len(counts), pruned, key_type, noun)
        _write_types(file, footer, counts, types.lengths(), types.strings())


def _with_checked_items(
    blocks: Iterable[TextBlock | SessionBlock | RowBlock], reading: ReadingOptions, check_items: CheckItems | None
) -> Iterator[TextBlock | SessionBlock | RowBlock]:
    """Yield blocks. Raise SettingsError at the first block of items that does not suit the options."""
    for block in blocks:
        if not isinstance(block, TextBlock):
            reading.refuse_for_items(block.name)
            keys = block.keys if isinstance(block, SessionBlock) else block.keys[0]
            if check_items:
                check_items(block.name, keys.key_type)
        yield block


def _are_numbers(kinds: set[str | None], types: Types) -> bool:
    """Return True if all items are numbers. The kind None, of tables that hold only text, says that they may be."""
    if None in kinds and kinds <= {None, "int"}:
        words = Words(np.concatenate([np.empty(0, np.uint8), *types.strings()]), np.cumsum([0, *types.lengths()]))
        return all(INTEGER.fullmatch(word.removeprefix(OWN_PREFIX)) for word in words[FIRST_TYPE:])
    return kinds == {"int"}


def sessions_of_table(
    blocks: Iterator[RowBlock],
    folder: Path,
    errors: Errors,
    workers: int,
    meter: Meter,
    total_bytes: int | None,
    with_names: bool = False,
) -> Iterator[SessionBlock]:
    """Yield the sessions of a long table, in the order of their first rows.

    Args:
        blocks: The rows of the table.
        folder: The folder for temporary files.
        errors: What to do with items and names that are not UTF-8.
        workers: The number of threads.
        meter: Gets the number of bytes read so far.
        total_bytes: The size of the table in bytes; None if it is unknown.
        with_names: Whether the blocks have the names of their sessions.
    """
    types = Types(errors), Types(errors)  # of items and of sessions

    def scan(block: RowBlock) -> tuple[RowBlock, list[Scan]]:
        return block, [each.scan(keys.as_one_session()) for each, keys in zip(types, block.keys, strict=True)]

    with contextlib.ExitStack() as stack:
        rows: Rows | None = None
        key_types: tuple[set[str | None], ...] = set(), set()  # of items and of sessions
        weights: NDArray[np.float64] = np.empty(0)  # of sessions
        has_contexts = False
        for number, (block, scans) in enumerate(map_in_order(scan, blocks, workers), 1):
            meter(block.bytes_done, total_bytes)
            if not len(block):
                continue
            ids = []
            for column, (each, scanned) in enumerate(zip(types, scans, strict=True)):
                with locate_malformed(block, column):
                    ids.append(each.merge(scanned)[:-1])
            if any(len(each) != len(block) for each in ids):
                where = f"{block.place(0)} or a later one"
                raise W2VError(f"{where}: an item or session is empty after --errors ignore: choose replace")
            if len(types[1]) > MAX_TYPES_LIMIT:
                raise W2VError(f"{block.place(0)} or a later one: there are more than {MAX_TYPES_LIMIT:,} sessions")
            for found, keys in zip(key_types, block.keys, strict=True):
                found.add(keys.key_type)
            if block.weights is not None:
                weights = _with_weights(weights, block, ids[1] - np.uint32(FIRST_TYPE))
            kind = block.order and block.order.kind
            with _translate_write_errors(folder):
                if rows is None:
                    rows, first_kind, first_place = Rows(folder), kind, block.place(0)
                    stack.enter_context(contextlib.closing(rows))
                if kind != first_kind:
                    problem = f"the order is {kind}, but {first_kind} in {first_place}: use one kind"
                    raise W2VError(f"{block.place(0)}: {problem}")
                rows.add(ids[0], ids[1], block.order, block.contexts)
                has_contexts |= block.contexts > 0
                if number % SPACE_CHECK_BLOCKS == 0 and total_bytes:
                    rows.check_space(block.bytes_done / total_bytes)
        if rows is None:
            return
        if len(weights) and not weights.any():
            raise NothingToTrain(f"{block.name}: no session has a weight above 0")
        all_items = _keys_of_types(types[0], key_types[0])
        all_sessions = _keys_of_types(types[1], key_types[1]) if with_names else None
        sizes = types[1].counts()[FIRST_TYPE:]
        last, rows_done, rows_total = FIRST_TYPE, 0, int(sizes.sum())
        with _translate_write_errors(folder):
            for items, lengths in rows.sessions(sizes, workers):
                first, last = last, last + len(lengths)
                numbers = np.arange(first, last, dtype=np.int32)
                names = None if all_sessions is None else replace(all_sessions, numbers=numbers)
                rows_done += len(items)
                bytes_done = block.bytes_done * rows_done // rows_total
                if has_contexts:
                    items, lengths = _without_repeated_contexts(items, lengths, all_items)
                of_sessions = weights[first - FIRST_TYPE : last - FIRST_TYPE] if len(weights) else np.ones(len(lengths))
                for part, part_lengths in _repeated(items, lengths, of_sessions):
                    keys = replace(all_items, numbers=part.astype(np.int32))
                    yield SessionBlock(keys, part_lengths, "the table", 1, bytes_done=bytes_done, names=names)


def _with_weights(weights: NDArray[np.float64], block: RowBlock, sessions: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Return the weights of all sessions, including those of a block, which are numbered from 0.

    Raises:
        W2VError: The rows of a session have different weights.
    """
    assert block.weights is not None
    weights = np.append(weights, np.full(max(0, int(sessions.max()) + 1 - len(weights)), -1.0))  # -1: not known yet
    is_new = np.flatnonzero(weights[sessions] < 0)[::-1]  # so that the first row of a session decides
    weights[sessions[is_new]] = block.weights[is_new]
    if (differs := weights[sessions] != block.weights).any():
        bad = int(differs.argmax())
        found = f"{block.weights[bad]:.0f}, and {weights[sessions[bad]]:.0f} in another row"
        raise W2VError(f"{block.place(bad)}: the weight of this session is {found}: give all of its rows the same")
    return weights


def _without_repeated_contexts(
    items: NDArray[np.uint32], lengths: NDArray[np.int64], all_items: Keys
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the items and lengths of sessions, with each item of `also_context` of a session once."""
    is_context = Words(all_items.blob, all_items.offsets).start_with(OWN_PREFIX.encode())
    keep = ~(is_context[items] & (items == np.roll(items, 1)))
    return items[keep], np.add.reduceat(keep, np.cumsum(lengths) - lengths, dtype=np.int64)


def _repeated(
    items: NDArray[np.uint32], lengths: NDArray[np.int64], weights: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
    """Yield the items and the lengths of the sessions with a weight above 0, then above 1, and so on."""
    while (keep := weights > 0).any():
        items, lengths, weights = items[np.repeat(keep, lengths)], lengths[keep], weights[keep]
        times = int(min(weights.min(), max(1, ITEMS_AT_ONCE // len(items))))
        yield np.tile(items, times), np.tile(lengths, times)
        weights = weights - times


def _keys_of_types(types: Types, kinds: set[str | None]) -> Keys:
    """Return the strings of all types as keys, given the types of the keys that were read."""
    blob = np.concatenate([np.empty(0, np.uint8), *types.strings()])
    return Keys(blob, np.append(0, np.cumsum(types.lengths())), None, "int" if _are_numbers(kinds, types) else "str")


def _write_types(
    file: BinaryIO,
    footer: IdFileFooter,
    counts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    strings: Iterable[NDArray[np.uint8]],
) -> None:
    """Write the part of an id file that follows the ids."""
    encoded = encode(footer, "ids").encode()
    _write_all(file, bytes(_round_up(4 * footer.ids) - 4 * footer.ids))
    _write_all(file, counts.data)
    _write_all(file, np.cumsum(np.append(0, lengths)).data)
    for piece in strings:
        _write_all(file, piece.data)
    _write_all(file, PADDING + encoded + len(encoded).to_bytes(8, "little") + SIGNATURE)


def store_of_ids(
    pieces: Iterable[tuple[NDArray[np.uint32], float]],
    types: Callable[[], tuple[NDArray[np.int64], Words]],
    folder: Path,
    *,
    cache_key: str = "",
    pruned: int = 0,
    key_type: KeyType = "str",
    noun: Noun = "word",
) -> IdStore:
    """Create a store of ids that do not come from the text reader, in an unnamed temporary file in a folder.

    Args:
        pieces: The ids, uint32, in pieces, each with the share of all ids up to its end, from 0 to 1.
        types: Called after the last piece; returns the counts, int64 (types + 2,), and words of all ids. Ids 0 and 1
            have empty words; see TypeCounts.
        folder: The folder of the temporary file.
        cache_key: See IdFileFooter.
        pruned: See TypeCounts.
        key_type: See TypeCounts.
        noun: See TypeCounts.

    Raises:
        W2VError: If the folder is not writable, or its disk is too small.
    """
    _create_folder(folder)
    with _temporary(folder) as file:
        for number, (ids, share) in enumerate(pieces, 1):
            with _translate_write_errors(folder):
                _write_all(file, ids.data)
                if number % SPACE_CHECK_BLOCKS == 0:
                    _check_space(file, folder, share)
        counts, words = types()
        with _translate_write_errors(folder):
            footer = IdFileFooter(cache_key, int(counts.sum()), len(counts), pruned, key_type, noun)
            _write_types(file, footer, counts, np.diff(words.offsets), [words.blob])
        return IdStore(file)


def _create_folder(folder: Path) -> None:
    with _translate_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


def _temporary(folder: Path) -> BinaryIO:
    with _translate_write_errors(folder):
        return cast(BinaryIO, tempfile.TemporaryFile(dir=folder, buffering=0))


def _check_space(file: BinaryIO, folder: Path, share: float) -> None:
    """Raise W2VError if the disk is too small for all ids. `share` is the share of the ids written so far."""
    files.check_disk_space(file, folder, file.tell() / share - file.tell(), "the text, as ids,", files.ANOTHER_FOLDER)


@contextlib.contextmanager
def locate_malformed(block: TextBlock | SessionBlock | RowBlock, column: int = 0) -> Iterator[None]:
    """Turn a Malformed error in a `with` block into a W2VError that names the file and the position in it.

    `column` is 1 for the sessions of a RowBlock.
    """
    try:
        yield
    except Malformed as error:
        position, word = error.args
        if not isinstance(block, TextBlock):
            where = block.locate(position, column) if isinstance(block, RowBlock) else block.locate(position)
            hint = "add --errors replace or --errors ignore (errors=)"
            raise W2VError(f"{where}: the {('item', 'session')[column]} {word[:60]!r} is not UTF-8; {hint}") from None
        name, offset = block.locate(position)
        hint = (
            "if it is in another encoding, such as latin-1 or cp949, add --encoding (encoding=), otherwise "
            "--errors replace or --errors ignore"
        )
        hint = "it is binary, not text" if b"\0" in block.text else hint
        raise W2VError(f"{name}: byte {offset}, in {word[:60]!r}, is not UTF-8; {hint}") from None


def pruning_threshold(counts: NDArray[np.int64], size: int) -> int:
    """Return the smallest t such that at most `size` counts are greater than t. Requires len(counts) > size."""
    rank = len(counts) - size - 1
    return int(np.partition(counts, rank)[rank])


def _renumber(file: BinaryIO, new_ids: NDArray[np.uint32]) -> None:
    """Replace each id in the file by new_ids[id]."""
    position = 0
    file.seek(0)
    while data := file.read(4 * IDS_AT_ONCE):
        file.seek(position)
        _write_all(file, new_ids[np.frombuffer(data, np.uint32)].data)
        position += len(data)
        file.seek(position)


def _write_all(file: BinaryIO | io.FileIO, data: bytes | memoryview) -> None:
    """Write all of the data, in several writes if an unbuffered file writes only a part."""
    remaining = memoryview(data).cast("B") if len(data) else memoryview(b"")
    while remaining:
        remaining = remaining[file.write(remaining) :]


def _round_up(size: int) -> int:
    """Round a number of bytes up to a multiple of 8."""
    return (size + 7) // 8 * 8


def _translate_write_errors(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Turn system errors in a `with` block into W2VError."""
    return translate_os_errors(folder, "write ids to", files.ANOTHER_FOLDER)
