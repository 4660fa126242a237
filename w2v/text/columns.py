"""Read the text in one column of a table: JSON lines, CSV or Parquet."""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from w2v.errors import W2VError, import_optional, one_line
from w2v.system.files import PARQUET, SIGNATURE_BYTES
from w2v.text.declared_sizes import max_content
from w2v.text.decompress import MAX_RATIO
from w2v.text.tables import Parquet

PLAIN = "none"  # value of `column` for files that are plain text even if they look like tables
MAX_ROW_BYTES = 1 << 26  # limit for a row of JSON or CSV
ROWS_AT_ONCE = 1024  # rows of Parquet read at a time
MAX_NAMES = 100  # column names of JSON lines that are collected for an error message
HEAD_BYTES, HEAD_ROWS = 1 << 16, 20  # part of a file that is inspected to recognise a table

_JSON = re.compile(rb'\s*(\[\s*)?\{\s*"((?:[^"\\\n]|\\.)*)"\s*:')
_COLUMN_NAME = re.compile(r"[^\W\d][\w.:/#()%&-]*( [\w.:/#()%&-]+){0,3}(?<![.:])")
# The end of the error for a file that looks like a table:
_ADVICE = f'; add --column NAME (column="NAME"), or --column {PLAIN} (column="{PLAIN}") if it is plain text'
_EXTENSION = re.compile(r"\.(csv|tsv|tab)(\.\w{1,4})?\Z", re.IGNORECASE)


def is_parquet(head: bytes) -> bool:
    """Return True if a file that begins with `head` is a Parquet file."""
    return re.match(PARQUET, head) is not None


def has_columns(column: str | None) -> bool:
    """Return True if the option `column` names a column of a table."""
    return column not in (None, PLAIN)


def refuse_table(where: str, head: bytes) -> None:
    """Raise W2VError if a file that begins with `head` is JSON or CSV. The message lists the columns.

    `where` is the path of the file. Its extension helps to recognise CSV.
    """
    lines = head[:HEAD_BYTES].splitlines(keepends=True)
    if len(head) >= SIGNATURE_BYTES and not lines[-1].endswith(b"\n"):
        del lines[-1]  # the last line may be incomplete
    lines = [line for line in lines if line.strip()]
    json_start, names = _JSON.match(head), None
    if json_start and not lines:  # the first object is longer than the head
        names = [_decode(json_start[2]), "…"]
    elif json_start and not json_start[1]:
        with contextlib.suppress(ValueError, RecursionError):  # the object spans several lines
            names = list(json.loads(lines[0]))
    if json_start and not names:
        raise W2VError(
            f"{where} looks like JSON, but does not have one object on each line: convert it with `jq -c '.[]'`"
            f"{_ADVICE}"
        )
    if names or (names := _csv_names(lines, _EXTENSION.search(where) is not None)):
        raise _table_error(where, "JSON" if json_start else "CSV", names)


def _csv_names(lines: list[bytes], has_csv_extension: bool) -> list[str]:
    """Return the column names in the first row if the first lines of a file are CSV, otherwise [].

    A file is CSV if its first row has valid column names and all rows have the same number of columns. With the
    extension of CSV, either is enough. Prose does not have valid column names, because a space or the end of a line
    follows each of its commas, and a column name must not be empty or start with a space.
    """
    if not lines:
        return []
    rows: list[list[str]] = []
    delimiter = _delimiter(lines[0])
    with contextlib.suppress(csv.Error):  # an incomplete row, or not CSV
        for row in itertools.islice(csv.reader(map(_decode, lines), delimiter=delimiter, strict=True), HEAD_ROWS):
            rows.append(row)
    if not rows:
        return []
    names, *others = rows
    has_index = delimiter != "\t" and not names[0]  # pandas writes row numbers in a column without a name
    valid_names = len(set(names)) == len(names) and all(map(_COLUMN_NAME.fullmatch, names[has_index:]))
    same_columns = len(names) > 1 and all(len(row) == len(names) for row in others)
    is_csv = valid_names and same_columns and bool(others) and len(rows) + len(names) > 4  # 3 rows or 3 columns
    return names if is_csv or (has_csv_extension and (valid_names or same_columns)) else []


def _table_error(where: str, kind: str, names: Sequence[str]) -> W2VError:
    return W2VError(f"{where} looks like {kind} with the columns {one_line(', '.join(names))}{_ADVICE}")


def parquet_texts(where: str, file: IO[bytes], column: str | None) -> Iterator[tuple[bytes | None, float]]:
    """Yield each text in a column of a Parquet file (None for null) and the share of the rows read so far.

    Raises:
        W2VError: If the file is damaged, if `column` is None or not a column of text, or if pyarrow is not installed.
    """
    need = f"{where}: Parquet files need one more package"
    pyarrow = import_optional(need, "parquet", "pyarrow", "pyarrow.parquet")
    size = os.fstat(file.fileno()).st_size
    table = Parquet(where, file, size, pyarrow)
    names, rows = table.names, max(1, table.rows)
    if column is None:
        raise _table_error(where, "Parquet", names)
    if column not in names:
        raise missing_column(where, column, names)
    if names.count(column) > 1:
        raise W2VError(f"{where} has {names.count(column)} columns {column[:100]!r}: rename the others")
    kind = table.schema.field(column).type
    kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
        raise W2VError(f"{where}: column {column[:100]!r} holds {one_line(kind)}, not text")
    done, bytes_left = 0, max_content(size)
    for batch in table.batches([column], ROWS_AT_ONCE):
        try:
            values = batch.column(0).to_pylist()
        except UnicodeDecodeError as error:
            raise W2VError(f"{where}: damaged Parquet data: {one_line(error)}") from error
        for text in values:
            done += 1
            value = None if text is None else text.encode()
            bytes_left -= len(value or b"")
            if bytes_left < 0:
                raise W2VError(
                    f"{where}: refused: column {column[:100]!r} unpacks to more than {MAX_RATIO} times its size"
                )
            yield value, done / rows


def texts(where: str, chunks: Iterable[bytes], column: str) -> Iterator[bytes | None]:
    """Yield the texts in a column of JSON lines or CSV. The file is JSON if it begins with a brace.

    CSV has column names in its first row; see `_delimiter` for the separator. A missing text is None: null or absent
    in JSON, empty in CSV (as in pandas).

    Raises:
        W2VError: If no row has the column, if a line is not a row, or if its value is not text. The message starts with
            `where` and names the line.
    """
    lines = enumerate(lines_of(where, chunks, MAX_ROW_BYTES), 1)
    number, first = next(((number, line) for number, line in lines if line.strip()), (0, b""))
    start = first.lstrip()[:1]
    if start == b"[":
        raise W2VError(f"{where}: a JSON array: give one object on each line, as `jq -c '.[]'` writes them")
    read = _json_texts if start == b"{" else _csv_texts
    yield from read(where, itertools.chain([(number, first)], lines), column)


def _json_texts(where: str, lines: Iterable[tuple[int, bytes]], column: str) -> Iterator[bytes | None]:
    seen = False
    names: dict[str, None] = {}
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(_decode(line))
        except (ValueError, RecursionError) as error:
            raise W2VError(f"{where}, line {number}: not JSON: {one_line(error)}") from None
        if not isinstance(row, dict):
            raise W2VError(f"{where}, line {number}: not a JSON object")
        text = row.get(column)
        if text is not None and not isinstance(text, str):
            raise W2VError(f"{where}, line {number}: column {column[:100]!r} holds {json.dumps(text)[:60]}, not text")
        if not seen:
            seen = column in row
            names |= dict.fromkeys(itertools.islice(row, MAX_NAMES - len(names)))
        yield None if text is None else encode(text)
    if not seen:
        raise missing_column(where, column, names)


def _csv_texts(where: str, lines: Iterable[tuple[int, bytes]], column: str) -> Iterator[bytes | None]:
    number, first = next(iter(lines))
    csv.field_size_limit(MAX_ROW_BYTES)  # applies to the whole process; the default is too small for texts
    decoded = (_decode(line) for line in itertools.chain([first], (line for _, line in lines)))
    rows = csv.reader(decoded, delimiter=_delimiter(first), strict=True)
    try:
        names = next(rows, [])
        if column not in names:
            raise missing_column(where, column, names)
        index = names.index(column)
        for row in rows:
            if row and len(row) != len(names):
                line = number - 1 + rows.line_num
                raise W2VError(f"{where}, line {line}: {len(row)} columns, and {len(names)} in the first row")
            if row:
                yield encode(row[index]) or None
    except csv.Error as error:
        raise W2VError(f"{where}, line {number - 1 + rows.line_num}: not CSV: {one_line(error)}") from None


def _delimiter(first: bytes) -> str:
    """Return the separator of CSV: a tab if the first row has one, otherwise the more frequent of ',' and ';'."""
    return "\t" if b"\t" in first else ";" if first.count(b";") > first.count(b",") else ","


def lines_of(where: str, chunks: Iterable[bytes], limit: float = math.inf) -> Iterator[bytes]:
    """Yield lines, each with its newline.

    Raises:
        W2VError: If a line has more than `limit` bytes.
    """
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        rest, *lines = chunk.split(b"\n")
        parts.append(rest)
        size += len(rest)
        if size > limit:
            raise W2VError(f"{where}: a row of more than {limit / 2**20:.0f} MB: split it")
        for line in lines:
            yield b"".join([*parts, b"\n"])
            parts, size = [line], len(line)
    if last := b"".join(parts):
        yield last


def missing_column(where: str, column: str, names: Iterable[str]) -> W2VError:
    """Return the error for a table without a column. Long names are shortened."""
    known = ", ".join(each[:40] for each in names)[:120]
    return W2VError(f"{where} has no column {column[:100]!r}; its columns are {one_line(known) if known else 'none'}")


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")  # malformed bytes are kept: --errors applies to them later


def encode(text: str) -> bytes:
    """Encode text as UTF-8.

    Lone surrogates become malformed bytes. Surrogates that `_decode` made from malformed bytes become the original
    bytes again.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # another lone surrogate, for instance from an escape in JSON
        return text.encode("utf-8", "surrogatepass")
