"""Reading text, in blocks, from files, compressed or not, standard input, texts and lists of tokens."""

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

from w2v.detect import refuse_other
from w2v.errors import SettingsError, W2VError, counted, warn_of_text
from w2v.system.files import SIGNATURE_BYTES, UTF_16, Errors, PathLike, errors_named, text_start, unchanged
from w2v.text._text import PADDING, last_space
from w2v.text.columns import (
    PLAIN,
    encode,
    has_columns,
    is_parquet,
    missing,
    parquet_texts,
    refuse_table,
    texts,
)
from w2v.text.decompress import decompressed, is_compressed
from w2v.text.encodings import UTF_8, in_utf_8
from w2v.text.markup import without_markup
from w2v.text.paths import looks_like_path, named_files, regular


@runtime_checkable
class Table(Protocol):
    """A table with named columns, such as a DataFrame of pandas."""

    @property
    def columns(self) -> Any: ...
    def __getitem__(self, name: Any, /) -> Any: ...


Source = PathLike | Iterable[PathLike | None] | Iterable[Iterable[str] | None] | Table

BLOCK_BYTES = 1 << 19  # about the size of a TextBlock: it stays in the second-level cache while it is scanned
SAMPLES, SAMPLE_BYTES = 8, 4096  # pieces of a file in a sampled checksum, and their size
MAX_WORD_BYTES = 1 << 24  # above this, it is no word; each is in memory as a whole
LONG_LINE = 1 << 16  # bytes: a text is divided at a space if no line ends within this many
MIN_LINES = 10  # by which a file is recognised as word pairs, for instance, and not a text


class File(NamedTuple):
    """A file, and its bytes that belong to a text; `stop` is None for the whole of it, and `info` if it is no file."""

    name: str
    info: os.stat_result | None
    start: int = 0
    stop: int | None = None

    @property
    def size(self) -> int:
        return self.info.st_size if self.info else 0


class TextBlock(NamedTuple):
    """A piece of the text that begins and ends between tokens, followed by PADDING."""

    text: bytes
    origins: list[tuple[int, str, int]]  # first position in `text`, name of the file, position in the file's text
    bytes_done: int  # bytes read from disk so far, this block included

    def locate(self, position: int) -> tuple[str, int]:
        """The name of the file that a position in `text` comes from, and the position in that file's text."""
        start, name, offset = self.origins[bisect_right(self.origins, position, key=lambda origin: origin[0]) - 1]
        return name, offset + position - start


class Corpus:
    """A user's text: a path, a list of paths, a table, or an iterable of texts or of lists of tokens.

    The type decides, never what exists: a single string or pathlib.Path is a path, a list of Path objects is several; a
    list of strings is texts, with a TextWarning if all of them look like paths.

    A path names a file, a folder (all files in it at any depth, sorted by name, without hidden files, id files and
    links to folders), a glob pattern, or "-" for standard input. In a pattern, ** matches any number of folders,
    again without hidden ones and links. Each file of a folder or pattern is read once, even if links give it several
    names. Files are plain text or compressed by gzip, bzip2, xz or zstandard, which is recognised by content.

    A text, as in a list, a Series or a column of a table (Table), may have several lines; its end ends a sentence. An
    iterable is read once, one item at a time. Missing texts (see is_missing) are skipped or, by `blocks` with
    `as_lines`, empty lines; `blocks` counts them. Raises W2VError for a source that cannot be read.

    Attributes:
        total_bytes: the size of all files on disk, or None if it is unknown.
        missing: how many texts `blocks` has found missing.
    """

    missing = 0
    _is_part = False
    _bytes_read = 0

    def __init__(self, source: Source) -> None:
        self._items: Iterable[Any] = ()
        self._table: Table | None = None
        paths: list[PathLike] = []
        if isinstance(source, str | os.PathLike):
            paths = [source]
        elif isinstance(source, list | tuple) and any(isinstance(item, os.PathLike) for item in source):
            _refuse_others(source)
            paths = list(source)
        elif isinstance(source, Table):
            self._table = source
        elif isinstance(source, Iterable) and not isinstance(source, bytes | Mapping):
            self._items = source
            if isinstance(source, list | tuple) and source and all(map(looks_like_path, source)):
                warn_of_text(
                    f"the strings of this list look like paths, such as {source[0][:60]!r}, but are read as texts: for "
                    "files, give a list of pathlib.Path"
                )
        else:
            kind = type(source).__name__
            raise W2VError(
                f"a corpus is a path, a table, or a list of paths, texts or lists of tokens, not of type {kind}"
            )
        self._files = [File(name, regular(name, path)) for path in paths for name in named_files(path)]
        regularly = bool(self._files) and all(file.info for file in self._files)
        self.total_bytes = sum(file.size for file in self._files) if regularly else None

    @property
    def files(self) -> list[str]:
        """The paths of all files, "-" for standard input."""
        return [file.name for file in self._files]

    @property
    def ranges(self) -> list[tuple[int, int]] | None:
        """The bytes (start, stop) of each file that belong to this part of a text; None for the whole text."""
        return [(file.start, file.stop or 0) for file in self._files] if self._is_part else None

    def part(self, number: int, parts: int, whole: bool = False) -> Corpus:
        """Part `number`, from 0, of a text divided into `parts` parts of about the same size; some may be empty.

        The parts are in the order of the text. Plain files are divided at the end of a line, or of a word if lines are
        very long. A compressed file, or any file if `whole`, belongs to the part in which it begins. Raises W2VError
        for a text that cannot be divided.
        """
        if self.total_bytes is None:
            raise W2VError("standard input, pipes, lists and tables cannot be divided among several ranks: give files")
        found = [self._files_of(k, parts, whole) for k in range(parts)]
        if not all(found):
            for name, info, *_ in self._files:
                if info and info.st_size * parts > self.total_bytes and (whole or _is_compressed(name)):
                    reason, unpack = ("has columns", "") if whole else ("is compressed", "unpack it, or ")
                    raise W2VError(
                        f"{name} {reason} and cannot be divided among {parts} ranks: {unpack}give the text "
                        "in more files"
                    )
        own = copy.copy(self)
        own._is_part, own._files = True, found[number]
        own.total_bytes = sum(stop - start for start, stop in own.ranges or [])
        return own

    def _files_of(self, number: int, parts: int, whole: bool) -> list[File]:
        """The files of a part, with their bytes that belong to it."""
        total, before = self.total_bytes or 0, 0
        found = []
        for file in self._files:
            wanted = (total * k // parts - before for k in (number, number + 1))
            start, stop = (_cut(file.name, file.size, each, whole) for each in wanted)
            if start < stop:
                found.append(file._replace(start=start, stop=stop))
            before += file.size
        return found

    def __str__(self) -> str:
        if not self._files:
            return "this part of the text" if self._is_part else "the text"
        more = f" and {len(self._files) - 1} more" if len(self._files) > 1 else ""
        return _display(self._files[0].name) + more

    @property
    def sizes(self) -> list[tuple[str, int]] | None:
        """The absolute path of each file and its bytes; None if the text can be read only once."""
        if self.total_bytes is None:
            return None
        return [(str(Path(file.name).resolve()), file.size) for file in self._files]

    def checksum(self, sampled: bool = False) -> str:
        """SHA-256 of the bytes of this part of the text or, if `sampled`, of SAMPLES pieces of each file.

        File times do not show every change: some systems count them in seconds, and writes to a mapping set none.
        Raises W2VError for files that can no longer be read.
        """
        found = hashlib.sha256()
        for file in self._files:
            starts = [max(0, file.size - SAMPLE_BYTES) * number // (SAMPLES - 1) for number in range(SAMPLES)]
            samples = [(start, start + SAMPLE_BYTES) for start in starts]
            with errors_named(file.name), Path(file.name).open("rb") as stream:
                for start, stop in samples if sampled else [(file.start, file.stop)]:
                    stream.seek(start)
                    for chunk in self._read(stream, stop):
                        found.update(chunk)
        return found.hexdigest()

    def blocks(
        self,
        column: str | None = None,
        strip_markup: bool = False,
        as_lines: bool = False,
        encoding: str = UTF_8,
        errors: Errors = "strict",
    ) -> Iterator[TextBlock]:
        """The text in blocks of about BLOCK_BYTES; each file, text and list of tokens ends with a newline.

        With a `column`, the files are JSON lines, CSV or Parquet. A newline follows each text of that column; with
        `as_lines`, newlines inside texts become spaces. If `column` is PLAIN, files that look like tables are read as
        text. With `strip_markup`, markup is removed from each file, row, text and list; see `without_markup`. Files in
        another `encoding` are converted to UTF-8; `errors` says how to treat bytes that are not in that encoding.

        At the end, a TextWarning says how many texts were missing.
        """
        self._bytes_read = self.missing = 0
        items = self._items if self._table is None else _column_of(self._table, column)
        if column and has_columns(column) and not self._files and self._table is None and not self._is_part:
            raise SettingsError(f"column {column[:100]!r}: lists have no columns")
        if encoding != UTF_8 and not self._files and not self._is_part:
            raise SettingsError(f"encoding {encoding}: only files have one: leave it out for texts, lists and tables")
        of_files = (self._text(file, column, strip_markup, as_lines, encoding, errors) for file in self._files)
        parts: list[bytes | memoryview] = []
        size = 0
        origins: list[tuple[int, str, int]] = []
        expected = ("", 0)
        for name, offset, chunk in itertools.chain(self._lines(items, strip_markup, as_lines), *of_files):
            if (name, offset) != expected:
                origins.append((size, name, offset))
            expected = (name, offset + len(chunk))
            size += len(chunk)
            cut = last_space(chunk) + 1 if size >= BLOCK_BYTES else 0
            if cut:
                yield TextBlock(b"".join([*parts, memoryview(chunk)[:cut], PADDING]), origins, self._bytes_read)
                parts, size = [chunk[cut:]], len(chunk) - cut
                origins = [(0, name, offset + cut)]
                continue
            parts.append(chunk)
            if size > BLOCK_BYTES + MAX_WORD_BYTES:  # chunks beyond the first BLOCK_BYTES hold no white space
                text = b"".join(parts)
                name, offset = TextBlock(text, origins, 0).locate(last_space(text) + 1)
                raise W2VError(
                    f"{name}: no white space in {MAX_WORD_BYTES >> 20} MB from byte {offset:,} on: separate words by "
                    "spaces, or lines by newlines"
                )
        if size:
            yield TextBlock(b"".join([*parts, PADDING]), origins, self._bytes_read)
        if self.missing:
            treated = "gave zeros to" if as_lines else "skipped"
            warn_of_text(f"{treated} {counted(self.missing, 'missing text')} (None, NaN, or an empty field of CSV)")

    def _lines(self, items: Iterable[Any], strip_markup: bool, as_lines: bool) -> Iterator[tuple[str, int, bytes]]:
        """Texts or lists of tokens as (name for messages, position in the text, line)."""
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
            line = _text_line(number, item) if kind is str else _line(number, item)
            if strip_markup:
                line = b"".join(without_markup([line]))
            yield str(self), offset, line
            offset += len(line)

    def _text(
        self, file: File, column: str | None, strip_markup: bool, as_lines: bool, encoding: str, errors: Errors
    ) -> Iterator[tuple[str, int, bytes]]:
        """The unpacked text of a file, or of a part, as (name for messages, position in the text, bytes).

        Raises W2VError if the file changed since its status was read.
        """
        name, offset = _display(file.name), file.start
        with (
            errors_named(name),
            contextlib.nullcontext(sys.stdin.buffer) if file.name == "-" else Path(name).open("rb") as stream,
            unchanged(name, stream, file.info),
        ):
            if offset:
                stream.seek(offset)
                for chunk in itertools.chain(self._read(stream, file.stop), [b"\n"]):
                    yield name, offset, chunk
                    offset += len(chunk)
                return
            chunks = decompressed(name, self._read(stream, file.stop))
            head = _head(chunks)
            if column != PLAIN and is_parquet(head):
                chunks = self._column(self._parquet(name, stream, file.info, column), strip_markup, as_lines)
            else:
                if encoding != UTF_8:
                    chunks = in_utf_8(name, itertools.chain([head], chunks), encoding, errors)
                    head = _head(chunks)
                elif re.match(UTF_16, head):
                    raise W2VError(f'{name} is UTF-16 or UTF-32: add --encoding utf-16 or utf-32 (encoding="utf-16")')
                text = text_start(name, head)
                offset = len(head) - len(text)
                chunks = itertools.chain([text], chunks)
                if column is None:
                    refuse_other(file.name, text, "text", MIN_LINES)
                    refuse_table(name, text)
                elif column != PLAIN:
                    chunks = self._column(texts(name, chunks, column), strip_markup, as_lines)
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

    def _column(self, values: Iterable[bytes | None], strip_markup: bool, as_lines: bool) -> Iterator[bytes]:
        """The values of a column, a newline after each, in pieces of about BLOCK_BYTES. Missing ones are counted."""
        parts: list[bytes] = []
        size = 0
        for found in values:
            self.missing += found is None
            text = found or b""
            value = text.replace(b"\n", b" ") if as_lines else text
            parts += [*without_markup([value]), b"\n"] if strip_markup else [value, b"\n"]
            size += len(value)
            if size > BLOCK_BYTES:
                yield b"".join(parts)
                parts, size = [], 0
        yield b"".join(parts)

    def _parquet(
        self, name: str, stream: IO[bytes], info: os.stat_result | None, column: str | None
    ) -> Iterator[bytes | None]:
        """The texts in a column of a Parquet file, whose first bytes have been read."""
        if info is None:
            raise W2VError(f"{name}: Parquet is not read from standard input or a pipe: name the file")
        before = self._bytes_read - stream.tell()
        stream.seek(0)
        if not is_parquet(stream.read(SIGNATURE_BYTES)):
            raise W2VError(f"{name}: a compressed Parquet file: unpack it first")
        for text, share in parquet_texts(name, stream, column):
            self._bytes_read = before + int(share * info.st_size)
            yield text

    def _read(self, stream: IO[bytes], stop: int | None) -> Iterator[bytes]:
        """The bytes of a file from the present position on, up to position `stop` if given."""
        left = None if stop is None else stop - stream.tell()
        while chunk := stream.read(BLOCK_BYTES if left is None else min(BLOCK_BYTES, left)):
            self._bytes_read += len(chunk)
            left = None if left is None else left - len(chunk)
            yield chunk


def _head(chunks: Iterator[bytes]) -> bytes:
    """The first chunks of a file, of SIGNATURE_BYTES or more unless the file is shorter."""
    head = b""
    while len(head) < SIGNATURE_BYTES and (chunk := next(chunks, None)) is not None:
        head += chunk
    return head


def _is_compressed(file: str) -> bool:
    with errors_named(file), Path(file).open("rb") as stream:
        return is_compressed(stream.read(SIGNATURE_BYTES))


def _cut(file: str, size: int, wanted: int, whole: bool) -> int:
    """The position near `wanted` at which to divide a file.

    It is the end of the first line that ends at `wanted` or less than LONG_LINE bytes after it; if there is none, of
    the first word. It is the file's start or end if `wanted` is outside, and its end if the file is compressed or must
    stay `whole`.
    """
    if wanted <= 0 or wanted >= size:
        return 0 if wanted <= 0 else size
    if whole or _is_compressed(file):
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


def _column_of(table: Table, column: str | None) -> Iterator[Any]:
    """The texts in a column of a table. Raises W2VError for a missing column."""
    names = list(map(str, getattr(table, "column_names", table.columns)))  # pyarrow's `columns` are the values
    if column is None:
        raise W2VError(f"a table with the columns {', '.join(names)[:200]}: say by column= which of them is the text")
    if column not in names:
        raise missing("the table", column, names)
    return iter(table[column])


def python_values(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items, with the scalars of a pyarrow array converted to Python objects. Does not import pyarrow."""
    return (item.as_py() if hasattr(item, "as_py") else item for item in items)


def is_missing(text: object) -> bool:
    """Return True for None, NaN, and pandas' NA and NaT."""
    is_nan = isinstance(text, float | np.floating) and bool(np.isnan(text))
    return text is None or is_nan or type(text).__name__ in {"NAType", "NaTType"}


def _refuse_others(paths: Iterable[object]) -> None:
    """Raise W2VError for an item of a list of paths that is not a path."""
    for number, path in enumerate(paths):
        if not isinstance(path, os.PathLike):
            shown = f"{path!r:.60}, of type {type(path).__name__}"
            raise W2VError(
                f"item {number} of a list of paths is {shown}: give pathlib.Path objects only, or texts only"
            )


def _text_line(number: int, text: object) -> bytes:
    """A text and a newline. Raises W2VError for anything else."""
    if not isinstance(text, str):
        raise W2VError(f"text {number} is of type {type(text).__name__}: give str")
    return encode(text + "\n")


def _line(number: int, sentence: Iterable[str]) -> bytes:
    """A list of tokens as a line of text. Raises W2VError for anything else."""
    if isinstance(sentence, os.PathLike):
        raise W2VError("paths are taken from a list only: give list(paths)")
    if isinstance(sentence, str | bytes | Mapping) or not isinstance(sentence, Iterable):
        kind = type(sentence).__name__
        raise W2VError(f"sentence {number} is of type {kind}: give a list of tokens, such as text.split()")
    tokens = list(sentence)
    if not all(isinstance(token, str) for token in tokens):
        raise W2VError(f"sentence {number} contains tokens that are not str")
    line = " ".join(tokens)
    if line.split() != tokens:  # perhaps only at non-ASCII white space, at which w2v does not split
        for token in map(encode, tokens):
            if not token:
                raise W2VError(f"sentence {number} contains an empty token: leave it out")
            if token.split() != [token]:
                raise W2VError(f"token {token.decode(errors='replace')[:60]!r} contains white space: join it with '_'")
    return encode(line + "\n")
