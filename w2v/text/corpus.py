"""Read text in blocks from files (compressed or not), standard input, tables, texts and lists of tokens."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import itertools
import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from w2v.detect import refuse_other_kind
from w2v.errors import SettingsError, W2VError, issue_text_warning, pluralise
from w2v.system.files import SIGNATURE_BYTES, UTF_16, Errors, PathLike, check_unchanged, text_start, translate_os_errors
from w2v.text._text import PADDING, last_space
from w2v.text.columns import (
    PLAIN,
    encode,
    has_columns,
    is_parquet,
    missing_column,
    parquet_texts,
    refuse_table,
    texts,
)
from w2v.text.decompress import decompress, is_compressed
from w2v.text.encodings import UTF_8, to_utf_8
from w2v.text.markup import without_markup
from w2v.text.paths import looks_like_path, named_files, regular_file_status


@runtime_checkable
class DataFrameLike(Protocol):
    """A table with named columns, such as a pandas DataFrame."""

    @property
    def columns(self) -> Any: ...
    def __getitem__(self, name: Any, /) -> Any: ...


Source = PathLike | Iterable[PathLike | None] | Iterable[Iterable[str] | None] | DataFrameLike

BLOCK_BYTES = 1 << 19  # approximate size of a TextBlock, which stays in the second-level cache during the scan
SAMPLES, SAMPLE_BYTES = 8, 4096  # number and size of the pieces of a file in a sampled checksum
MAX_RUN_BYTES = 1 << 24  # a longer run without white space is an error, since a whole word must fit in memory
LONG_LINE = 1 << 16  # bytes; if a line is longer, the text is divided at a space
MIN_LINES = 10  # a file needs this many lines to be recognised as another format, such as word pairs


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


class Corpus:
    """A user's text: a path, a list of paths, a table, or an iterable of texts or of lists of tokens.

    Only the type of the source decides how it is read, not whether a file exists. A string or pathlib.Path is one path,
    and a list of Path objects is several paths. A list of strings is several texts; if all of them look like paths, a
    TextWarning is issued.

    A path names a file, a folder, a glob pattern, or "-" for standard input. A folder is read with all its files at any
    depth, sorted by name, except hidden files, id files and links to folders. In a pattern, ** matches any number of
    folders, except hidden folders and links. Each file of a folder or pattern is read once, even if links give it
    several names. Files are plain text or compressed by gzip, bzip2, xz or zstandard, which is recognised by content.

    A text in a list, Series, pyarrow array or table column may have several lines. The end of a text ends a sentence.
    An iterable is read once, one item at a time. Missing texts (see `is_missing`) are skipped; with `as_lines`,
    `blocks` reads them as empty lines.

    Attributes:
        total_bytes: The size of all files on disk, or None if it is unknown.
        missing: The number of missing texts in the last call of `blocks`.

    Raises:
        W2VError: If the source cannot be read.
    """

    missing = 0
    _is_part = False
    _bytes_read = 0

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
                    for chunk in self._read(stream, stop):
                        digest.update(chunk)
        return digest.hexdigest()

    def blocks(
        self,
        column: str | None = None,
        strip_markup: bool = False,
        as_lines: bool = False,
        encoding: str = UTF_8,
        errors: Errors = "strict",
    ) -> Iterator[TextBlock]:
        """Yield the text in blocks of about BLOCK_BYTES. Each file, text and list of tokens ends with a newline.

        At the end, a TextWarning gives the number of missing texts.

        Args:
            column: The column to read from JSON lines, CSV, Parquet or a table; a newline follows each text. With
                PLAIN, files that look like tables are read as plain text. With None, they are refused.
            strip_markup: If True, remove markup from each file, row, text and list; see `without_markup`.
            as_lines: If True, keep one line for each text of a column: newlines inside a text become spaces, and a
                missing text becomes an empty line.
            encoding: The encoding of the files, which are converted to UTF-8.
            errors: How to treat bytes that are not in the encoding.

        Raises:
            SettingsError: If `column` is given for lists or texts, or `encoding` for anything but files.
            W2VError: If the text cannot be read.
        """
        self._bytes_read = self.missing = 0
        items = self._items if self._table is None else _column_of(self._table, column)
        if column and has_columns(column) and not self._files and self._table is None and not self._is_part:
            raise SettingsError(f"column {column[:100]!r}: lists have no columns")
        if encoding != UTF_8 and not self._files and not self._is_part:
            raise SettingsError(f"encoding {encoding}: only files have one: leave it out for texts, lists and tables")
        file_texts = (self._file_text(file, column, strip_markup, as_lines, encoding, errors) for file in self._files)
        parts: list[bytes | memoryview] = []
        size = 0
        origins: list[tuple[int, str, int]] = []
        expected = ("", 0)
        for name, offset, chunk in itertools.chain(self._item_lines(items, strip_markup, as_lines), *file_texts):
            if (name, offset) != expected:
                origins.append((size, name, offset))
            expected = (name, offset + len(chunk))
            size += len(chunk)
            end = last_space(chunk) + 1 if size >= BLOCK_BYTES else 0
            if end:
                yield TextBlock(b"".join([*parts, memoryview(chunk)[:end], PADDING]), origins, self._bytes_read)
                parts, size = [chunk[end:]], len(chunk) - end
                origins = [(0, name, offset + end)]
                continue
            parts.append(chunk)
            if size > BLOCK_BYTES + MAX_RUN_BYTES:  # all chunks after the first BLOCK_BYTES lack white space
                text = b"".join(parts)
                name, offset = TextBlock(text, origins, 0).locate(last_space(text) + 1)
                raise W2VError(
                    f"{name}: no white space in {MAX_RUN_BYTES >> 20} MB from byte {offset:,} on: separate words by "
                    "spaces, or lines by newlines"
                )
        if size:
            yield TextBlock(b"".join([*parts, PADDING]), origins, self._bytes_read)
        if self.missing:
            action = "gave zeros to" if as_lines else "skipped"
            issue_text_warning(
                f"{action} {pluralise(self.missing, 'missing text')} (None, NaN, or an empty field of CSV)"
            )

    def _item_lines(self, items: Iterable[Any], strip_markup: bool, as_lines: bool) -> Iterator[tuple[str, int, bytes]]:
        """Yield each text or list of tokens as (name for messages, position in the text, line)."""
        offset = 0
        kind: type | None = None
        for number, item in enumerate(python_values(items)):
            if not isinstance(item, str) and is_missing(item):
                self.missing += 1
                if as_lines:
                    yield str(self), offset, b"\n"
                    offset += 1
                continue
            kind = kind or (str if isinstance(item, str) else list)
            line = _text_line(number, item) if kind is str else _token_line(number, item)
            if strip_markup:
                line = b"".join(without_markup([line]))
            yield str(self), offset, line
            offset += len(line)

    def _file_text(
        self, file: File, column: str | None, strip_markup: bool, as_lines: bool, encoding: str, errors: Errors
    ) -> Iterator[tuple[str, int, bytes]]:
        """Yield the decompressed text of a file or part of a file as (name for messages, position in the text, bytes).

        Raises W2VError if the file has changed since its status was read.
        """
        name, offset = _display(file.name), file.start
        with (
            translate_os_errors(name),
            contextlib.nullcontext(sys.stdin.buffer) if file.name == "-" else Path(name).open("rb") as stream,
            check_unchanged(name, stream, file.status),
        ):
            if offset:  # a later part of a plain text: the rank that reads the first part has checked the file's format
                stream.seek(offset)
                for chunk in itertools.chain(self._read(stream, file.stop), [b"\n"]):
                    yield name, offset, chunk
                    offset += len(chunk)
                return
            chunks = decompress(name, self._read(stream, file.stop))
            head = _head(chunks)
            if column != PLAIN and is_parquet(head):
                values = self._parquet_values(name, stream, file.status, column)
                chunks = self._column_text(values, strip_markup, as_lines)
            else:
                if encoding != UTF_8:
                    chunks = to_utf_8(name, itertools.chain([head], chunks), encoding, errors)
                    head = _head(chunks)
                elif re.match(UTF_16, head):
                    raise W2VError(f'{name} is UTF-16 or UTF-32: add --encoding utf-16 or utf-32 (encoding="utf-16")')
                text = text_start(name, head)
                offset = len(head) - len(text)
                chunks = itertools.chain([text], chunks)
                if column is None:
                    refuse_other_kind(file.name, text, "text", MIN_LINES)
                    refuse_table(name, text)
                elif column != PLAIN:
                    chunks = self._column_text(texts(name, chunks, column), strip_markup, as_lines)
                if strip_markup and not has_columns(column):
                    chunks = without_markup(chunks)
            if column and has_columns(column):
                name = f"{name}, column {column[:100]}"
            if encoding != UTF_8:
                name = f"{name}, in UTF-8"
            if strip_markup:
                name = f"{name}, without markup"
            last = b"\n"
            for chunk in chunks:
                yield name, offset, chunk
                offset += len(chunk)
                last = chunk or last
            if not last.endswith(b"\n"):
                yield name, offset, b"\n"

    def _column_text(self, values: Iterable[bytes | None], strip_markup: bool, as_lines: bool) -> Iterator[bytes]:
        """Yield the values of a column, a newline after each, in pieces of about BLOCK_BYTES. Count missing values."""
        parts: list[bytes] = []
        size = 0
        for value in values:
            self.missing += value is None
            text = value or b""
            text = text.replace(b"\n", b" ") if as_lines else text
            parts += [*without_markup([text]), b"\n"] if strip_markup else [text, b"\n"]
            size += len(text)
            if size > BLOCK_BYTES:
                yield b"".join(parts)
                parts, size = [], 0
        yield b"".join(parts)

    def _parquet_values(
        self, name: str, stream: IO[bytes], status: os.stat_result | None, column: str | None
    ) -> Iterator[bytes | None]:
        """Yield the texts in a column of a Parquet file, read again from its start."""
        if status is None:
            raise W2VError(f"{name}: Parquet is not read from standard input or a pipe: name the file")
        before = self._bytes_read - stream.tell()
        stream.seek(0)
        if not is_parquet(stream.read(SIGNATURE_BYTES)):
            raise W2VError(f"{name}: a compressed Parquet file: unpack it first")
        for text, share in parquet_texts(name, stream, column):
            self._bytes_read = before + int(share * status.st_size)
            yield text

    def _read(self, stream: IO[bytes], stop: int | None) -> Iterator[bytes]:
        """Yield the bytes of a file from the current position to `stop`, or to the end if `stop` is None."""
        remaining = None if stop is None else stop - stream.tell()
        while chunk := stream.read(BLOCK_BYTES if remaining is None else min(BLOCK_BYTES, remaining)):
            self._bytes_read += len(chunk)
            remaining = None if remaining is None else remaining - len(chunk)
            yield chunk


def _head(chunks: Iterator[bytes]) -> bytes:
    """Read chunks until they have SIGNATURE_BYTES or the file ends. Return them joined."""
    head = b""
    while len(head) < SIGNATURE_BYTES and (chunk := next(chunks, None)) is not None:
        head += chunk
    return head


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


def _column_of(table: DataFrameLike, column: str | None) -> Iterator[Any]:
    """Return the texts in a column of a table. Raises W2VError if the column is missing."""
    names = list(map(str, getattr(table, "column_names", table.columns)))  # pyarrow's `columns` are the values
    if column is None:
        raise W2VError(f"a table with the columns {', '.join(names)[:200]}: name the column of the text with column=")
    if column not in names:
        raise missing_column("the table", column, names)
    return iter(table[column])


def python_values(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items, with the scalars of a pyarrow array converted to Python objects. Does not import pyarrow."""
    return (item.as_py() if hasattr(item, "as_py") else item for item in items)


def is_missing(text: object) -> bool:
    """Return True for None, NaN, and pandas' NA and NaT."""
    is_nan = isinstance(text, float | np.floating) and bool(np.isnan(text))
    return text is None or is_nan or type(text).__name__ in {"NAType", "NaTType"}


def _check_paths(paths: Iterable[object]) -> None:
    """Raise W2VError if an item of a list of paths is not a path."""
    for number, path in enumerate(paths):
        if not isinstance(path, os.PathLike):
            item = f"{path!r:.60}, of type {type(path).__name__}"
            raise W2VError(f"item {number} of a list of paths is {item}: give pathlib.Path objects only, or texts only")


def _text_line(number: int, text: object) -> bytes:
    """Return a text and a newline in UTF-8. Raises W2VError if `text` is not a str."""
    if not isinstance(text, str):
        raise W2VError(f"text {number} is of type {type(text).__name__}: give str")
    return encode(text + "\n")


def _token_line(number: int, sentence: Iterable[str]) -> bytes:
    """Join a list of tokens into a line of text. Raises W2VError if `sentence` is not a list of tokens."""
    if isinstance(sentence, os.PathLike):
        raise W2VError("paths are accepted only in a list: give list(paths)")
    if isinstance(sentence, str | bytes | Mapping) or not isinstance(sentence, Iterable):
        kind = type(sentence).__name__
        raise W2VError(f"sentence {number} is of type {kind}: give a list of tokens, such as text.split()")
    tokens = list(sentence)
    if not all(isinstance(token, str) for token in tokens):
        raise W2VError(f"sentence {number} contains tokens that are not str")
    line = " ".join(tokens)
    if line.split() != tokens:  # w2v splits only at ASCII white space, so other white space in a token is allowed
        for token in map(encode, tokens):
            if not token:
                raise W2VError(f"sentence {number} contains an empty token: leave it out")
            if token.split() != [token]:
                raise W2VError(f"token {token.decode(errors='replace')[:60]!r} contains white space: join it with '_'")
    return encode(line + "\n")
