"""Read columns of tables: JSON lines, CSV, Parquet or Arrow."""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from w2v.errors import W2VError, one_line, translate_errors
from w2v.system.files import ARROW, ARROW_STREAM, PARQUET, SIGNATURE_BYTES
from w2v.text.tables import ColumnarFile, is_text

PLAIN = "none"  # value of `column` for files that are plain text even if they look like tables
MAX_ROW_BYTES = 1 << 26  # limit for a row of JSON or CSV
ROWS_AT_ONCE = 1024  # rows of Parquet read at a time
MAX_NAMES = 100  # column names of JSON lines that are collected for an error message
HEAD_BYTES, HEAD_ROWS = 1 << 16, 20  # part of a file that is inspected to recognise a table

JSON_START = re.compile(rb'\s*(\[\s*)?\{\s*"((?:[^"\\\n]|\\.)*)"\s*:')
_COLUMN_NAME = re.compile(r"[^\W\d][\w.:/#()%&-]*( [\w.:/#()%&-]+){0,3}(?<![.:])")
# The end of the error for a file that looks like a table:
_ADVICE = f'; add --column NAME (column="NAME"), or --column {PLAIN} (column="{PLAIN}") if it is plain text'
_ROW_PER_ITEM = "; if each row is an item of a session, add --item and --session (item=, session=)"
_EXTENSION = re.compile(r"\.(csv|tsv|tab)(\.\w{1,4})?\Z", re.IGNORECASE)


def columnar_kind(head: bytes) -> str:
    """Return "Parquet" or "Arrow" if a file that begins with `head` has this format, otherwise ""."""
    signatures = {PARQUET: "Parquet", ARROW: "Arrow", ARROW_STREAM: "Arrow"}
    return next((kind for start, kind in signatures.items() if re.match(start, head)), "")


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
    json_start, names = JSON_START.match(head), None
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


def check_columns(where: str, table: ColumnarFile, columns: Sequence[str] | None) -> None:
    """Raise W2VError if `columns` is None, or if a table does not have each of the columns once."""
    if columns is None:
        raise _table_error(where, table.kind, table.names)
    for column in columns:
        if column not in table.names:
            raise missing_column(where, column, table.names)
        if table.names.count(column) > 1:
            raise W2VError(f"{where} has {table.names.count(column)} columns {column[:100]!r}: rename the others")


def columnar_texts(where: str, table: ColumnarFile, column: str, pyarrow: Any) -> Iterator[tuple[bytes | None, float]]:
    """Yield each text in a column of a Parquet or Arrow file, and the share of the rows read so far.

    A text that is null is None.

    Raises:
        W2VError: If the file is damaged or if the column does not hold text.
    """
    kind = table.schema.field(column).type
    if not is_text(pyarrow, kind):
        advice = _ROW_PER_ITEM if pyarrow.types.is_integer(kind) else ""
        raise W2VError(f"{where}: column {column[:100]!r} holds {one_line(kind)}, neither text nor lists{advice}")
    done = 0
    for batch in table.batches([column], ROWS_AT_ONCE):
        with translate_errors(f"{where}: damaged", UnicodeDecodeError):
            values = batch.column(0).to_pylist()
        for text in values:
            done += 1
            yield None if text is None else text.encode(), done / max(1, table.rows)


def texts(where: str, chunks: Iterable[bytes], column: str) -> Iterator[bytes | list[Any] | None]:
    """Yield the texts, or lists, in a column of JSON lines or CSV. The file is JSON if it begins with a brace.

    CSV has column names in its first row; see `_delimiter` for the separator. A missing text is None: null or absent
    in JSON, empty in CSV (as in pandas). JSON may have lists in place of texts.

    Raises:
        W2VError: If no row has the column, if a line is not a row, or if its value is neither text nor a list. The
            message starts with `where` and names the line.
    """
    for number, (value,) in rows(where, chunks, [column])[1]:
        if value is None or isinstance(value, list):
            yield value
        elif isinstance(value, str):
            yield encode(value)
        else:
            shown, advice = json.dumps(value)[:60], _ROW_PER_ITEM if type(value) is int else ""
            raise W2VError(
                f"{where}, line {number}: column {column[:100]!r} holds {shown}, neither text nor a list{advice}"
            )


def rows(where: str, chunks: Iterable[bytes], columns: Sequence[str]) -> tuple[bool, Iterator[tuple[int, list[Any]]]]:
    """Return whether a file is JSON lines rather than CSV, and its rows: the number of the line, and some columns.

    A missing value is None. In CSV, all other values are text.

    Raises:
        W2VError: If no row has a column, or if a line is not a row.
    """
    lines = enumerate(lines_of(where, chunks, MAX_ROW_BYTES), 1)
    number, first = next(((number, line) for number, line in lines if line.strip()), (0, b""))
    start = first.lstrip()[:1]
    if start == b"[":
        raise W2VError(f"{where}: a JSON array: give one object on each line, as `jq -c '.[]'` writes them")
    read = _json_rows if start == b"{" else _csv_rows
    return start == b"{", read(where, itertools.chain([(number, first)], lines), columns)


def _json_rows(
    where: str, lines: Iterable[tuple[int, bytes]], columns: Sequence[str]
) -> Iterator[tuple[int, list[Any]]]:
    unseen = [*columns]
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
        if unseen:
            unseen = [column for column in unseen if column not in row]
            names |= dict.fromkeys(itertools.islice(row, MAX_NAMES - len(names)))
        yield number, [row.get(column) for column in columns]
    if unseen:
        raise missing_column(where, unseen[0], names)


def _csv_rows(
    where: str, lines: Iterable[tuple[int, bytes]], columns: Sequence[str]
) -> Iterator[tuple[int, list[Any]]]:
    number, first = next(iter(lines))
    csv.field_size_limit(MAX_ROW_BYTES)  # applies to the whole process; the default is too small for texts
    decoded = (_decode(line) for line in itertools.chain([first], (line for _, line in lines)))
    rows = csv.reader(decoded, delimiter=_delimiter(first), strict=True)
    try:
        names = next(rows, [])
        for column in columns:
            if column not in names:
                raise missing_column(where, column, names)
        indices = [names.index(column) for column in columns]
        for row in rows:
            if row and len(row) != len(names):
                line = number - 1 + rows.line_num
                raise W2VError(f"{where}, line {line}: {len(row)} columns, and {len(names)} in the first row")
            if row:
                yield number - 1 + rows.line_num, [row[index] or None for index in indices]
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
