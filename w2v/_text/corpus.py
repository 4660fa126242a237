"""Read text or items in blocks from files (compressed or not), standard input, tables, texts and lists."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import itertools
import logging
import os
import re
import select
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from w2v._detect import refuse_other_kind
from w2v._errors import SettingsError, W2VError, issue_text_warning, one_line, pluralise, translate_errors
from w2v._system.files import (
    SIGNATURE_BYTES,
    UTF_16,
    Errors,
    PathLike,
    check_unchanged,
    text_start,
    translate_os_errors,
)
from w2v._text._text import PADDING, last_space
from w2v._text.columns import (
    PLAIN,
    ROW_PER_ITEM,
    TextTable,
    columnar_kind,
    columns_taken,
    encode,
    has_columns,
    missing_column,
    refuse_table,
    text_table,
    texts,
)
from w2v._text.decompress import decompress, is_compressed
from w2v._text.encodings import UTF_8, to_utf_8
from w2v._text.long_table import ROWS_AT_ONCE, LongTable, RowBlock, block_of_rows
from w2v._text.markup import without_markup
from w2v._text.paths import looks_like_path, named_files, regular_file_status
from w2v._text.sessions import ITEMS_AT_ONCE, SessionBlock, SessionBuilder, as_session, block_of_array, check_key_type
from w2v._text.tables import ColumnarFile, check_columns, is_list, is_text, open_table
from w2v._text.words import is_missing


@runtime_checkable
class DataFrameLike(Protocol):
    """A table with named columns, such as a pandas DataFrame."""

    @property
    def columns(self) -> Any: ...
    def __getitem__(self, name: Any, /) -> Any: ...


Source = PathLike | Iterable[PathLike | None] | Iterable[Iterable[Any] | None] | DataFrameLike

log = logging.getLogger("w2v")

BLOCK_BYTES = 1 << 19  # approximate size of a TextBlock, which stays in the second-level cache during the scan
TEXTS_AT_ONCE = 1 << 6  # texts of a column read at a time
SAMPLES, SAMPLE_BYTES = 8, 4096  # number and size of the pieces of a file in a sampled checksum
MAX_RUN_BYTES = 1 << 24  # a longer run without white space is an error, since a whole word must fit in memory
LONG_LINE = 1 << 16  # bytes; if a line is longer, the text is divided at a space
MIN_LINES = 10  # a file needs this many lines to be recognised as another format, such as word pairs


class FromFiles:
    """Texts, pairs or a graph, which may come from files.

    Attributes:
        source: The files, or None.
    """

    source: Corpus | None = None

    @property
    def files(self) -> list[str]:
        """The paths of all files."""
        return self.source.files if self.source else []

    @property
    def sizes(self) -> list[tuple[str, int]] | None:
        """See Corpus."""
        return self.source.sizes if self.source else None


class File(NamedTuple):
    """A file, and the range of its bytes that belongs to a text.

    Attributes:
        name: The path, or "-" for standard input.
        status: The status of a regular file; None for standard input, pipes and devices.
        start: The first byte of the text.
        stop: The position after the last byte, or None for the end of the file.
    """

    name: str
    status: os.stat_result | None
    start: int = 0
    stop: int | None = None

    @property
    def size(self) -> int:
        """The bytes of the whole file, or 0 if they are unknown."""
        return self.status.st_size if self.status else 0


class TextBlock(NamedTuple):
    """A piece of the text that begins and ends between tokens, followed by PADDING."""

    text: bytes
    origins: list[tuple[int, str, int]]  # first position in `text`, name of the file, position in the file's text
    bytes_done: int  # bytes read from disk so far, including this block

    def locate(self, position: int) -> tuple[str, int]:
        """Return the name of the file that a position in `text` comes from, and the position in the file's text."""
        start, name, offset = self.origins[bisect_right(self.origins, position, key=lambda origin: origin[0]) - 1]
        return name, offset + position - start


Piece = tuple[str, int, bytes | SessionBlock | RowBlock]  # name for messages, position in the text, content


class Corpus:
    """A user's text: a path, a list of paths, a table, or an iterable of texts or of lists of tokens or items.

    Only the type of the source decides how it is read, not whether a file exists. A string or pathlib.Path is one path,
    and a list of Path objects is several paths. A list of strings is several texts; if all of them look like paths, a
    TextWarning is issued.

    A path names a file, a folder, a glob pattern, or "-" for standard input. A folder is read with all its files at any
    depth, sorted by name, except hidden files, id files, links to folders, and files that Spark writes for its own use,
    such as _SUCCESS. In a pattern, ** matches any number of
    folders, except hidden folders and links. Each file of a folder or pattern is read once, even if links give it
    several names. Files are plain text or compressed by gzip, bzip2, xz or zstandard, which is recognised by content.

    A text in a list, Series, pyarrow array or table column may have several lines. The end of a text ends a sentence.
    An iterable is read once, one element at a time. Missing texts (see `is_missing`) are skipped; with `as_lines`,
    `blocks` reads them as empty lines.

    Lists in a column of a file are sessions of items. The lists of an iterable are sentences while all tokens are
    texts without white space. With the first other token, this list and all later ones are sessions of items.

    Attributes:
        total_bytes: The size of all files on disk, or None if it is unknown.
        header: Whether the first row of CSV has the names of the columns; None if w2v decides.
        missing: The number of missing texts in the last call of `blocks`.
        bytes_read: The bytes that the last call of `blocks` or `cells` has read so far.
        sample_bytes: `blocks` stops after these bytes of the files; None for the whole text.

    Raises:
        W2VError: If the source cannot be read.
    """

    missing = 0
    header: bool | None = None
    _mark_bytes = 0  # the size of the byte order mark of the last text
    _columns_logged = ""
    _pipe: Any = None  # the pipe or terminal whose lines are yielded as soon as they are there
    _is_part = False
    bytes_read = 0
    sample_bytes: int | None = None

    def __init__(self, source: Source) -> None:
        self._items: Iterable[Any] = ()
        self._table: DataFrameLike | None = None
        paths: list[PathLike] = []
        if isinstance(source, str | os.PathLike):
            paths = [source]
        elif isinstance(source, list | tuple) and any(isinstance(item, os.PathLike) for item in source):
            _check_paths(source)
            paths = list(source)
        elif isinstance(source, DataFrameLike):
            self._table = source
        elif isinstance(source, Iterable) and not isinstance(source, bytes | Mapping):
            self._items = source
            if isinstance(source, list | tuple) and source and all(map(looks_like_path, source)):
                issue_text_warning(
                    f"the strings of this list look like paths, such as {source[0][:60]!r}, but are read as texts: for "
                    "files, give a list of pathlib.Path"
                )
        else:
            kind = type(source).__name__
            raise W2VError(
                f"a corpus is a path, a table, or a list of paths, texts or lists of tokens, not of type {kind}"
            )
        self._files = [File(name, regular_file_status(name, path)) for path in paths for name in named_files(path)]
        all_regular = bool(self._files) and all(file.status for file in self._files)
        self.total_bytes = sum(file.size for file in self._files) if all_regular else None

    @property
    def files(self) -> list[str]:
        """The paths of all files; "-" is standard input."""
        return [file.name for file in self._files]

    @property
    def ranges(self) -> list[tuple[int, int]] | None:
        """The byte range (start, stop) of each file in this part of a text, or None for the whole text."""
        return [(file.start, file.stop or 0) for file in self._files] if self._is_part else None

    def part(self, number: int, parts: int, is_table: bool = False) -> Corpus:
        """Divide the text into `parts` parts of about the same size, and return one of them.

        The parts are in the order of the text; a part may be empty. Plain files are divided at the end of a line, or at
        the end of a word if lines are very long. A compressed file is not divided: it belongs to the part that contains
        its first byte.

        Args:
            number: The part to return, from 0.
            parts: The number of parts.
            is_table: True if the files are tables with columns. They are not divided.

        Raises:
            W2VError: If the text cannot be divided.
        """
        if self.total_bytes is None:
            raise W2VError("standard input, pipes, lists and tables cannot be divided among several ranks: give files")
        files_of_parts = [self._files_of(k, parts, is_table) for k in range(parts)]
        if not all(files_of_parts):
            for name, status, *_ in self._files:
                if status and status.st_size * parts > self.total_bytes and (is_table or _is_compressed(name)):
                    reason, unpack = ("has columns", "") if is_table else ("is compressed", "unpack it, or ")
                    raise W2VError(
                        f"{name} {reason} and cannot be divided among {parts} ranks: {unpack}give the text "
                        "in more files"
                    )
        part = copy.copy(self)
        part._is_part, part._files = True, files_of_parts[number]
        part.total_bytes = sum(stop - start for start, stop in part.ranges or [])
        return part

    def _files_of(self, number: int, parts: int, is_table: bool) -> list[File]:
        """Return the files of a part, each with the range of its bytes in the part."""
        total, before = self.total_bytes or 0, 0
        files = []
        for file in self._files:
            wanted = (total * k // parts - before for k in (number, number + 1))
            start, stop = (_split_position(file.name, file.size, position, is_table) for position in wanted)
            if start < stop:
                files.append(file._replace(start=start, stop=stop))
            before += file.size
        return files

    def __str__(self) -> str:
        if not self._files:
            return "this part of the text" if self._is_part else "the text"
        more = f" and {len(self._files) - 1} more" if len(self._files) > 1 else ""
        return _display(self._files[0].name) + more

    @property
    def sizes(self) -> list[tuple[str, int]] | None:
        """The absolute path and the size in bytes of each file, or None if the text can be read only once."""
        if self.total_bytes is None:
            return None
        return [(str(Path(file.name).resolve()), file.size) for file in self._files]

    def checksum(self, sampled: bool = False) -> str:
        """Return the SHA-256 of the bytes of this part of the text or, if `sampled`, of SAMPLES pieces of each file.

        The modification time of a file does not show every change: some systems store whole seconds, and writes to a
        mapped file may not update the time.

        Raises:
            W2VError: If a file can no longer be read.
        """
        digest = hashlib.sha256()
        for file in self._files:
            starts = [max(0, file.size - SAMPLE_BYTES) * number // (SAMPLES - 1) for number in range(SAMPLES)]
            samples = [(start, start + SAMPLE_BYTES) for start in starts]
            with translate_os_errors(file.name), Path(file.name).open("rb") as stream:
                for start, stop in samples if sampled else [(file.start, file.stop)]:
                    stream.seek(start)
                    for piece in self._read(stream, stop):
                        digest.update(piece)
        return digest.hexdigest()

    def blocks(
        self,
        column: str | None = None,
        strip_markup: bool = False,
        as_lines: bool = False,
        encoding: str = UTF_8,
        errors: Errors = "strict",
        long_table: LongTable | None = None,
        action: str = "skipped",
    ) -> Iterator[TextBlock | SessionBlock | RowBlock]:
        """Yield the text in blocks of about BLOCK_BYTES. Each file, text and list of tokens ends with a newline.

        Sessions are yielded as a SessionBlock. At the end, a TextWarning gives the number of missing texts, sessions,
        items and rows.

        Args:
            column: The column to read from JSON, CSV, Parquet or a table; a newline follows each text. With PLAIN,
                files that look like tables are read as plain text. With None, they are refused.
            strip_markup: If True, remove markup from each file, row, text and list; see `without_markup`.
            as_lines: If True, keep one line for each text of a column: newlines inside a text become spaces, and a
                missing text becomes an empty line. Blocks of a pipe or terminal are yielded before w2v waits for more
                input (not on Windows).
            encoding: The encoding of the files, which are converted to UTF-8.
            errors: How to treat bytes that are not in the encoding.
            long_table: The columns of a table with a row for each item; each RowBlock has some of its rows.
            action: What happens to missing texts and items, as a word for the warning: "skipped", for instance.

        Raises:
            SettingsError: If `column` is given for lists or texts, or `encoding` for anything but files of text.
            W2VError: If the text cannot be read.
        """
        self.bytes_read = self.missing = 0
        items: Iterable[Any] = self._items
        if self._table is not None and long_table is None:
            items = _column_of(self._table, column)
        if long_table and not self._files and self._table is None and not self._is_part:
            raise SettingsError(f"item {long_table.item[:100]!r}: lists have no columns")
        if column and has_columns(column) and not self._files and self._table is None and not self._is_part:
            raise SettingsError(f"column {column[:100]!r}: lists have no columns")
        if encoding != UTF_8 and not self._files and not self._is_part:
            raise SettingsError(f"encoding {encoding}: only files have one: leave it out for texts, lists and tables")
        file_texts = (
            self._file_text(file, column, strip_markup, as_lines, encoding, errors, long_table) for file in self._files
        )
        own_texts = self._own_rows(long_table) if long_table else self._item_lines(items, strip_markup, as_lines)
        parts: list[bytes | memoryview] = []
        size = 0
        origins: list[tuple[int, str, int]] = []
        expected = ("", 0)
        lists = empty = missing_items = missing_rows = 0
        for name, offset, piece in self._sampled(itertools.chain(own_texts, *file_texts)):
            if not isinstance(piece, bytes):
                if size:  # some lists of tokens, before the first list with items of another kind
                    yield TextBlock(b"".join([*parts, PADDING]), origins, self.bytes_read)
                    parts, size, origins = [], 0, []
                if isinstance(piece, SessionBlock):
                    lists, empty = lists + piece.missing, empty + piece.empty
                    missing_items += piece.all_missing_items
                else:
                    missing_rows += piece.missing
                yield replace(piece, bytes_done=self.bytes_read)
                continue
            if (name, offset) != expected:
                origins.append((size, name, offset))
            expected = (name, offset + len(piece))
            size += len(piece)
            if must_wait := self.must_wait():  # a whole line may have come in several pieces
                parts, piece = [], b"".join([*parts, piece])
            end = last_space(piece) + 1 if must_wait or size >= BLOCK_BYTES else 0
            if end:
                block = TextBlock(b"".join([*parts, memoryview(piece)[:end], PADDING]), origins, self.bytes_read)
                yield block
                origins = [(0, *block.locate(size - len(piece) + end))]
                parts, size = [piece[end:]], len(piece) - end
                continue
            parts.append(piece)
            if size > BLOCK_BYTES + MAX_RUN_BYTES:  # all pieces after the first BLOCK_BYTES lack white space
                text = b"".join(parts)
                name, offset = TextBlock(text, origins, 0).locate(last_space(text) + 1)
                raise W2VError(
                    f"{name}: no white space in {MAX_RUN_BYTES >> 20} MB from byte {offset:,} on: separate words by "
                    "spaces, or lines by newlines"
                )
        if size:
            yield TextBlock(b"".join([*parts, PADDING]), origins, self.bytes_read)
        if self.missing:
            issue_text_warning(
                f"{action} {pluralise(self.missing, 'missing text')} (None, NaN, or an empty field of CSV)"
            )
        counts = {
            "missing list": lists,
            "empty list": empty,
            "missing item": missing_items,
            "incomplete row": missing_rows,
        }
        if found := [pluralise(count, noun) for noun, count in counts.items() if count]:
            issue_text_warning(f"{action} {' and '.join(found)}")

    def _sampled(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Yield the pieces up to `sample_bytes`."""
        for piece in pieces:
            yield piece
            if self.sample_bytes is not None and self.bytes_read > self.sample_bytes:
                return

    def contents(self) -> Iterator[tuple[str, bytes, Iterator[bytes]]]:
        """Yield the name of each file for messages, the start of its decompressed content, and the rest of it."""
        self.bytes_read = 0
        for file in self._files:
            with _open(file) as (name, stream):
                unpacked = decompress(name, self._read(stream, None))
                yield name, self._head(unpacked), unpacked

    def cells(
        self, columns: Sequence[str], encoding: str = UTF_8, errors: Errors = "strict"
    ) -> Iterator[tuple[str, list[Any]]]:
        """Yield the place of each row of a table, for messages, and its values in some columns.

        A missing value is None. A place is the name of the file and the number of the row in it, from 1.

        Args:
            columns: The names of the columns.
            encoding, errors: See `blocks`.

        Raises:
            SettingsError: The corpus is not a table.
            W2VError: A column is missing, or the table cannot be read.
        """
        self.bytes_read = 0
        if self._table is not None:
            values = zip(*(python_values(_column_of(self._table, name)) for name in columns), strict=True)
            yield from _numbered("the table", map(list, values))
        elif not self._files:
            raise SettingsError(f"column {columns[0][:100]!r}: lists have no columns")
        for file in self._files:
            with _open(file) as (name, stream):
                unpacked = decompress(name, self._read(stream, file.stop))
                head = self._head(unpacked)
                if kind := columnar_kind(head):
                    table, names, _ = self._open_columnar(name, kind, stream, file, columns, encoding)
                    batches = (batch for _, batch in self._batches(table, names, ROWS_AT_ONCE, file))
                    lists = ([batch[each].to_pylist() for each in names] for batch in batches)
                    yield from _numbered(name, (list(row) for values in lists for row in zip(*values, strict=True)))
                    continue
                _, chunks = self._as_utf_8(name, head, unpacked, encoding, errors)
                found = self._text_table(name, chunks, columns)
                yield from _numbered(name, (row for _, row in found.rows))

    def _item_lines(self, items: Iterable[Any], strip_markup: bool, as_lines: bool) -> Iterator[Piece]:
        """Yield each text or list of tokens as (name for messages, position in the text, line).

        From the first list on that is not a list of tokens without white space, yield blocks of sessions.
        """
        if _is_of_pyarrow(items) and "list<" in str(getattr(items, "type", ""))[:16]:
            yield from self._array_sessions(items)
            return
        offset = 0
        kind: type | None = None
        builder: SessionBuilder | None = None
        for number, item in enumerate(python_values(items)):
            if builder is None and not isinstance(item, str) and is_missing(item):
                self.missing += 1
                if as_lines:
                    yield str(self), offset, b"\n"
                    offset += 1
                continue
            kind = kind or (str if isinstance(item, str) else list)
            if kind is str:
                if not isinstance(item, str):
                    raise W2VError(f"text {number} is of type {type(item).__name__}: give str")
                line: bytes | None = encode(item + "\n")
            else:
                if isinstance(item, os.PathLike):
                    raise W2VError("paths are accepted only in a list: give list(paths)")
                session = None if is_missing(item) else as_session(item, f"sentence {number}")
                line = None if builder or session is None else _token_line(session)
                if line is None:
                    builder = builder or SessionBuilder("the corpus", number, "session")
                    builder.add(session)
                    if builder.size >= ITEMS_AT_ONCE:
                        yield str(self), builder.row, builder.take()
                    continue
            assert line is not None
            if strip_markup:
                line = b"".join(without_markup([line]))
            yield str(self), offset, line
            offset += len(line)
        if builder:
            yield str(self), builder.row, builder.take()

    def _array_sessions(self, array: Any) -> Iterator[Piece]:
        """Yield the sessions in an array of lists of pyarrow."""
        import pyarrow
        import pyarrow.compute

        check_key_type(pyarrow, array.type.value_type, "the column")
        row = 1
        for chunk in getattr(array, "chunks", [array]):
            step = max(1, ITEMS_AT_ONCE * len(chunk) // max(1, len(chunk.flatten())))
            for start in range(0, len(chunk), step):
                part = chunk.slice(start, step)
                yield str(self), row, block_of_array(pyarrow, part, "the column", row)
                row += len(part)

    def _own_rows(self, long_table: LongTable) -> Iterator[Piece]:
        """Yield the rows of a table in memory."""
        table = self._table
        if table is None:
            return
        columns = [_column_of(table, name) for name in long_table.columns]
        where, row = "the table", 1
        if _is_of_pyarrow(columns[0]):
            import pyarrow
            import pyarrow.compute

            for batch in pyarrow.table(dict(zip("abcde", columns, strict=False))).to_batches(ROWS_AT_ONCE):
                yield where, row, block_of_rows(batch.columns, long_table, where, row, pyarrow)
                row += len(batch)
            return
        with translate_errors(where, NotImplementedError):  # an extension type of pandas that NumPy lacks
            arrays = [np.asarray(column) for column in columns]
        for start in range(0, len(arrays[0]), ROWS_AT_ONCE):
            values = [array[start : start + ROWS_AT_ONCE] for array in arrays]
            yield where, start + 1, block_of_rows(values, long_table, where, start + 1)

    def _file_text(
        self,
        file: File,
        column: str | None,
        strip_markup: bool,
        as_lines: bool,
        encoding: str,
        errors: Errors,
        long_table: LongTable | None,
    ) -> Iterator[Piece]:
        """Yield the decompressed text of a file or part of a file as (name for messages, position in the text, bytes).

        Raises W2VError if the file has changed since its status was read.
        """
        offset = file.start
        with _open(file) as (name, stream):
            if offset:  # a later part of a plain text: the rank that reads the first part has checked the file's format
                stream.seek(offset)
                for data in itertools.chain(self._read(stream, file.stop), [b"\n"]):
                    yield name, offset, data
                    offset += len(data)
                return
            self._pipe = stream if as_lines and file.status is None else None
            unpacked = decompress(name, self._read(stream, file.stop))
            head = self._head(unpacked)
            pieces: Iterator[Any] = unpacked
            is_table = has_columns(column) or long_table is not None
            if is_table and not head and len(self._files) > 1:
                return  # Spark writes empty files for parts without rows
            kind = columnar_kind(head)
            if kind and (long_table or column != PLAIN):
                columns = long_table.columns if long_table else [column] if column else []
                table, names, pyarrow = self._open_columnar(name, kind, stream, file, columns, encoding)
                if long_table:
                    pieces = (
                        block_of_rows([batch[each] for each in names], long_table, name, row, pyarrow)
                        for row, batch in self._batches(table, list(dict.fromkeys(names)), ROWS_AT_ONCE, file)
                    )
                else:
                    pieces = self._columnar_pieces(name, table, names[0], file, pyarrow, strip_markup, as_lines)
            else:
                text, unpacked = self._as_utf_8(name, head, unpacked, encoding, errors)
                pieces = unpacked
                if long_table:
                    pieces = self._table_rows(name, unpacked, long_table)
                elif column is None:
                    refuse_other_kind(file.name, text, "text", MIN_LINES)
                    refuse_table(name, text)
                elif column != PLAIN:
                    values = texts(self._text_table(name, unpacked, [column]), name, column)
                    pieces = self._column_text(name, values, column, strip_markup, as_lines)
                if strip_markup and not is_table:
                    pieces = without_markup(unpacked)
                offset = self._mark_bytes
            if column and has_columns(column):
                name = f"{name}, column {column[:100]}"
            if encoding != UTF_8:
                name = f"{name}, in UTF-8"
            if strip_markup:
                name = f"{name}, without markup"
            last = b"\n"
            for piece in pieces:
                yield name, offset, piece
                if isinstance(piece, bytes):
                    offset += len(piece)
                    last = piece or last
            if not last.endswith(b"\n"):
                yield name, offset, b"\n"

    def _column_text(
        self,
        name: str,
        values: Iterable[bytes | list[Any] | None],
        column: str,
        strip_markup: bool = False,
        as_lines: bool = False,
    ) -> Iterator[bytes | SessionBlock]:
        """Yield the values of a column, a newline after each, in pieces of about BLOCK_BYTES. Count missing values.

        If the first value that is not missing is a list, yield blocks of sessions instead.
        """
        first, values = _peek(values)
        if isinstance(first, list):
            yield from _sessions_of_rows(f"{name}, column {column[:100]}", values)
            return
        parts: list[bytes] = []
        size = 0
        for value in values:
            if isinstance(value, list):
                raise W2VError(f"{name}: column {column[:100]!r} holds texts and lists: give one of them")
            self.missing += value is None
            text = value or b""
            text = text.replace(b"\n", b" ") if as_lines else text
            parts += [*without_markup([text]), b"\n"] if strip_markup else [text, b"\n"]
            size += len(text)
            if size > BLOCK_BYTES or self.must_wait():
                yield b"".join(parts)
                parts, size = [], 0
        yield b"".join(parts)

    def _as_utf_8(
        self, name: str, head: bytes, unpacked: Iterator[bytes], encoding: str, errors: Errors
    ) -> tuple[bytes, Iterator[bytes]]:
        """Return the start of a text, and all of it, in UTF-8 and without a byte order mark."""
        if encoding != UTF_8:
            unpacked = to_utf_8(name, itertools.chain([head], unpacked), encoding, errors)
            head = self._head(unpacked)
        elif re.match(UTF_16, head):
            raise W2VError(f'{name} is UTF-16 or UTF-32: add --encoding utf-16 or utf-32 (encoding="utf-16")')
        text = text_start(name, head)
        self._mark_bytes = len(head) - len(text)
        return text, itertools.chain([text], unpacked)

    def _text_table(self, name: str, chunks: Iterable[bytes], columns: Sequence[str]) -> TextTable:
        """Open a text table. Log which columns are taken, unless names say it, once for all files."""
        table = text_table(name, chunks, columns, self.header)
        self._log_columns(name, table.taken)
        return table

    def _log_columns(self, name: str, taken: str) -> None:
        if taken and taken != self._columns_logged:
            log.info("%s: %s", name, taken)
            self._columns_logged = taken

    def _open_columnar(
        self, name: str, kind: str, stream: IO[bytes], file: File, columns: Sequence[str], encoding: str
    ) -> tuple[ColumnarFile, list[str], Any]:
        """Open a Parquet or Arrow file again from its start. Return it, the names of columns, and pyarrow."""
        if encoding != UTF_8:
            raise SettingsError(f"{name}: {kind} is always UTF-8: leave out --encoding (encoding=)")
        if file.status is None:
            raise W2VError(f"{name}: {kind} is not read from standard input or a pipe: name the file")
        self.bytes_read -= stream.tell()
        stream.seek(0)
        if not columnar_kind(stream.read(SIGNATURE_BYTES)):
            raise W2VError(f"{name}: a compressed {kind} file: unpack it first")
        pyarrow, table = open_table(name, stream)
        names = check_columns(name, table, columns)
        if names != [*columns]:
            self._log_columns(name, columns_taken(table.names, [table.names.index(each) for each in names]))
        return table, names, pyarrow

    def _batches(self, table: ColumnarFile, columns: Sequence[str], step: int, file: File) -> Iterator[tuple[int, Any]]:
        """Yield batches of at most `step` rows of a Parquet or Arrow file, each with the number of its first row."""
        before, row = self.bytes_read, 1
        for batch in table.batches(columns, step):
            yield row, batch
            row += len(batch)
            self.bytes_read = before + file.size * (row - 1) // max(1, table.rows)

    def _columnar_pieces(
        self, name: str, table: ColumnarFile, column: str, file: File, pyarrow: Any, strip_markup: bool, as_lines: bool
    ) -> Iterator[bytes | SessionBlock]:
        """Yield the texts or sessions in a column of a Parquet or Arrow file."""
        where, kind = f"{name}, column {column[:100]}", table.schema.field(column).type
        if is_list(pyarrow, kind):
            check_key_type(pyarrow, kind.value_type, where)
            step = max(1, min(ROWS_AT_ONCE, int(ITEMS_AT_ONCE / table.values_per_row(column))))
            for row, batch in self._batches(table, [column], step, file):
                yield block_of_array(pyarrow, batch.column(0), where, row)
            return
        if not is_text(pyarrow, kind):
            advice = ROW_PER_ITEM if pyarrow.types.is_integer(kind) else ""
            raise W2VError(f"{name}: column {column[:100]!r} holds {one_line(kind)}, neither text nor lists{advice}")

        def values() -> Iterator[bytes | None]:
            for _, batch in self._batches(table, [column], TEXTS_AT_ONCE, file):
                with translate_errors(f"{name}: damaged", UnicodeDecodeError):
                    found = batch.column(0).to_pylist()
                yield from (None if text is None else text.encode() for text in found)

        yield from self._column_text(name, values(), column, strip_markup, as_lines)

    def _table_rows(self, name: str, chunks: Iterable[bytes], long_table: LongTable) -> Iterator[RowBlock]:
        """Yield the rows of a long table in JSON or CSV."""
        table = self._text_table(name, chunks, long_table.columns)
        first = 1
        while part := list(itertools.islice(table.rows, ROWS_AT_ONCE)):
            columns = [list(column) for column in zip(*(row for _, row in part), strict=True)]
            yield block_of_rows(columns, long_table, name, first, typed=table.is_typed)
            first += len(part)

    def _read(self, stream: Any, stop: int | None) -> Iterator[bytes]:
        """Yield the bytes of a file from the current position to `stop`, or to the end if `stop` is None."""
        remaining = None if stop is None else stop - stream.tell()
        read = stream.readline if self._pipe else stream.read  # a whole line shows the compression, if there is any
        while piece := read(BLOCK_BYTES if remaining is None else min(BLOCK_BYTES, remaining)):
            self.bytes_read += len(piece)
            remaining = None if remaining is None else remaining - len(piece)
            yield piece
            read = stream.read1 if self._pipe else stream.read

    def must_wait(self) -> bool:
        """Return whether the next bytes of a pipe or terminal have not come yet."""
        if self._pipe is None:
            return False
        try:
            return not select.select([self._pipe], [], [], 0)[0]
        except (OSError, ValueError):  # Windows, or an object without a file
            return False

    def _head(self, pieces: Iterator[bytes]) -> bytes:
        """Read pieces until they have SIGNATURE_BYTES, the file ends, or w2v must wait after a line. Join them."""
        head = b""
        while len(head) < SIGNATURE_BYTES and not (head.endswith(b"\n") and self.must_wait()):
            if (piece := next(pieces, None)) is None:
                break
            head += piece
        return head


def _numbered(name: str, rows: Iterable[list[Any]]) -> Iterator[tuple[str, list[Any]]]:
    return ((f"{name}, row {number}", row) for number, row in enumerate(rows, 1))


@contextlib.contextmanager
def _open(file: File) -> Iterator[tuple[str, Any]]:
    """Open a file or standard input, and return its name for messages, and the stream.

    Raises:
        W2VError: The file cannot be read, or it has changed since its status was read.
    """
    name = _display(file.name)
    with (
        translate_os_errors(name),
        contextlib.nullcontext(sys.stdin.buffer) if file.name == "-" else Path(name).open("rb") as stream,
        check_unchanged(name, stream, file.status),
    ):
        yield name, stream


def _is_compressed(file: str) -> bool:
    with translate_os_errors(file), Path(file).open("rb") as stream:
        return is_compressed(stream.read(SIGNATURE_BYTES))


def _split_position(file: str, size: int, wanted: int, is_table: bool) -> int:
    """Return the position near `wanted` at which to divide a file.

    This is the end of the first line that ends at `wanted` or less than LONG_LINE bytes later. If no line ends there,
    it is the end of the next word. If `wanted` is outside the file, it is the start or the end of the file. If the file
    is compressed or a table, it is the end of the file.
    """
    if wanted <= 0 or wanted >= size:
        return 0 if wanted <= 0 else size
    if is_table or _is_compressed(file):
        return size
    with Path(file).open("rb") as stream:
        stream.seek(wanted - 1)
        line = stream.read(LONG_LINE)
        if b"\n" in line or len(line) < LONG_LINE:  # the last line may have no newline
            return wanted + line.index(b"\n") if b"\n" in line else size
        stream.seek(wanted - 1)
        while piece := stream.read(BLOCK_BYTES):
            if space := re.search(rb"\s", piece):
                return stream.tell() - len(piece) + space.end()
    return size


def _display(file: str) -> str:
    return "standard input" if file == "-" else file


def _column_of(table: DataFrameLike, column: str | None) -> Iterable[Any]:
    """Return a column of a table. Raises W2VError if the column is missing."""
    names = list(map(str, getattr(table, "column_names", table.columns)))  # pyarrow's `columns` are the values
    if column is None:
        raise W2VError(f"a table with the columns {', '.join(names)[:200]}: name the column of the text with column=")
    if column not in names:
        raise missing_column("the table", column, names)
    found: Iterable[Any] = table[column]
    return found


def python_values(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items, with the scalars of a pyarrow array converted to Python objects. Does not import pyarrow."""
    return (item.as_py() if hasattr(item, "as_py") else item for item in items)


def _is_of_pyarrow(values: object) -> bool:
    """Return True for an array or table of pyarrow. Does not import pyarrow."""
    return type(values).__module__.partition(".")[0] == "pyarrow"


def _peek(values: Iterable[Any]) -> tuple[Any, Iterator[Any]]:
    """Return the first value that is not None, or None, and an iterator over all values."""
    iterator, missing, first = iter(values), 0, None
    for first in iterator:
        if first is not None:
            break
        missing += 1
    found = [] if first is None else [first]
    return first, itertools.chain(itertools.repeat(None, missing), found, iterator)


def _sessions_of_rows(where: str, values: Iterable[Any]) -> Iterator[SessionBlock]:
    """Yield the lists in a column of JSON lines as sessions."""
    builder = SessionBuilder(where)
    for value in values:
        if value is not None and not isinstance(value, list):
            raise W2VError(f"{where} holds texts and lists: give one of them")
        builder.add(value)
        if builder.size >= ITEMS_AT_ONCE:
            yield builder.take()
    yield builder.take()


def _check_paths(paths: Iterable[object]) -> None:
    """Raise W2VError if an item of a list of paths is not a path."""
    for number, path in enumerate(paths):
        if not isinstance(path, os.PathLike):
            item = f"{path!r:.60}, of type {type(path).__name__}"
            raise W2VError(f"item {number} of a list of paths is {item}: give pathlib.Path objects only, or texts only")


def _token_line(tokens: list[Any]) -> bytes | None:
    """Join a list of tokens into a line of text. Return None unless all tokens are text without white space."""
    try:
        line = " ".join(tokens)
    except TypeError:
        return None
    # w2v splits only at ASCII white space, so other white space in a token is allowed.
    if line.split() != tokens and any(token.split() != [token] for token in map(encode, tokens)):
        return None
    return encode(line + "\n")
