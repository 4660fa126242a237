"""The text in one column of a table: JSON lines, CSV or Parquet."""

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

from w2v.errors import W2VError, one_line, optional
from w2v.system.files import PARQUET, SIGNATURE_BYTES
from w2v.text.declared import max_content
from w2v.text.decompress import MAX_RATIO
from w2v.text.tables import Parquet

PLAIN = "none"  # instead of a column: a file is plain text, even if it looks like a table
MAX_ROW_BYTES = 1 << 26  # of JSON and CSV
ROWS_AT_ONCE = 1024  # of Parquet
MAX_NAMES = 100  # of columns that are kept for a message
HEAD_BYTES, HEAD_ROWS = 1 << 16, 20  # of a file that may be a table, are inspected

_JSON = re.compile(rb'\s*(\[\s*)?\{\s*"((?:[^"\\\n]|\\.)*)"\s*:')
_NAME = re.compile(r"[^\W\d][\w.:/#()%&-]*( [\w.:/#()%&-]+){0,3}(?<![.:])")  # of a column
_COLUMN = f'; add --column NAME (column="NAME"), or --column {PLAIN} (column="{PLAIN}") if it is plain text'
_EXTENSION = re.compile(r"\.(csv|tsv|tab)(\.\w{1,4})?\Z", re.IGNORECASE)


def is_parquet(head: bytes) -> bool:
    """Whether a file that begins with `head` is a Parquet file."""
    return re.match(PARQUET, head) is not None


def has_columns(column: str | None) -> bool:
    """Whether the option `column` names a column, so that the text is in tables."""
    return column not in (None, PLAIN)


def refuse_table(name: str, head: bytes) -> None:
    """Raise W2VError, which names the columns, if a file that begins with `head` is JSON or CSV."""
    lines = head[:HEAD_BYTES].splitlines(keepends=True)
    if len(head) >= SIGNATURE_BYTES and not lines[-1].endswith(b"\n"):
        del lines[-1]  # it may be cut
    lines = [line for line in lines if line.strip()]
    found, names = _JSON.match(head), None
    if found and not lines:
        names = [_decode(found[2]), "…"]
    elif found and not found[1]:
        with contextlib.suppress(ValueError, RecursionError):  # an object on several lines
            names = list(json.loads(lines[0]))
    if found and not names:
        raise W2VError(
            f"{name} looks like JSON, but not with one object on each line: write it as `jq -c '.[]'` does{_COLUMN}"
        )
    if names or (names := _names_in_csv(lines, _EXTENSION.search(name) is not None)):
        raise _is_table(name, "JSON" if found else "CSV", names)


def _names_in_csv(lines: list[bytes], by_extension: bool) -> list[str]:
    """The first row of the first lines of a file, if they are CSV; otherwise [].

    By content alone, it must have names, and all rows as many columns. Prose has none, for there a space or the end of
    the line follows each comma, and a name neither begins with a space nor is empty.
    """
    if not lines:
        return []
    rows: list[list[str]] = []
    delimiter = _delimiter(lines[0])
    with contextlib.suppress(csv.Error):  # of a row that is cut, or no CSV
        for row in itertools.islice(csv.reader(map(_decode, lines), delimiter=delimiter, strict=True), HEAD_ROWS):
            rows.append(row)
    if not rows:
        return []
    names, *others = rows
    unnamed = delimiter != "\t" and not names[0]  # as pandas writes the column of the row's numbers
    named = len(set(names)) == len(names) and all(map(_NAME.fullmatch, names[unnamed:]))
    table = len(names) > 1 and all(len(row) == len(names) for row in others)
    by_content = named and table and bool(others) and len(rows) + len(names) > 4  # three rows, or three columns
    return names if by_content or (by_extension and (named or table)) else []


def _is_table(name: str, kind: str, names: Sequence[str]) -> W2VError:
    return W2VError(f"{name} looks like {kind} with the columns {one_line(', '.join(names))}{_COLUMN}")


def parquet_texts(name: str, file: IO[bytes], column: str | None) -> Iterator[tuple[bytes, float]]:
    """The texts in a column of a Parquet file, each with the share of the file's rows up to it.

    Raises W2VError for a file that is damaged or has no such column of text, without a column, and if pyarrow is
    missing.
    """
    need = f"{name}: Parquet files need one more package"
    pyarrow = optional(need, "parquet", "pyarrow", "pyarrow.parquet")
    size = os.fstat(file.fileno()).st_size
    table = Parquet(name, file, size, pyarrow)
    names, rows = table.names, max(1, table.rows)
    if column is None:
        raise _is_table(name, "Parquet", names)
    if column not in names:
        raise missing(name, column, names)
    if names.count(column) > 1:
        raise W2VError(f"{name} has {names.count(column)} columns {column[:100]!r}")
    kind = table.schema.field(column).type
    kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
        raise W2VError(f"{name}: column {column[:100]!r} holds {one_line(kind)}, not text")
    done, left = 0, max_content(size)
    for batch in table.batches([column], ROWS_AT_ONCE):
        try:
            values = batch.column(0).to_pylist()
        except UnicodeDecodeError as error:
            raise W2VError(f"{name}: damaged Parquet data: {one_line(error)}") from error
        for text in values:
            done += 1
            value = (text or "").encode()
            left -= len(value)
            if left < 0:
                raise W2VError(
                    f"{name}: refused: column {column[:100]!r} unpacks to more than {MAX_RATIO} times its size"
                )
            yield value, done / rows


def texts(name: str, chunks: Iterable[bytes], column: str) -> Iterator[bytes]:
    """The texts in a column of JSON lines, if the file begins with a brace, or else of CSV with names in its first row.

    Columns of CSV are separated as in `_delimiter`. Texts that are null or missing are empty. Raises W2VError, naming
    the line, if a line is not a row or its column not text, and for a missing column.
    """
    lines = enumerate(lines_of(name, chunks, MAX_ROW_BYTES), 1)
    number, first = next(((number, line) for number, line in lines if line.strip()), (0, b""))
    start = first.lstrip()[:1]
    if start == b"[":
        raise W2VError(f"{name}: a JSON array: give one object on each line, as `jq -c '.[]'` writes them")
    found = _of_json if start == b"{" else _of_csv
    yield from found(name, itertools.chain([(number, first)], lines), column)


def _of_json(name: str, lines: Iterable[tuple[int, bytes]], column: str) -> Iterator[bytes]:
    seen = False
    names: dict[str, None] = {}
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(_decode(line))
        except (ValueError, RecursionError) as error:
            raise W2VError(f"{name}, line {number}: not JSON: {one_line(error)}") from None
        if not isinstance(row, dict):
            raise W2VError(f"{name}, line {number}: not a JSON object")
        text = row.get(column)
        if text is not None and not isinstance(text, str):
            raise W2VError(f"{name}, line {number}: column {column[:100]!r} holds no text, but {json.dumps(text)[:60]}")
        if not seen:
            seen = column in row
            names |= dict.fromkeys(itertools.islice(row, MAX_NAMES - len(names)))
        yield encode(text or "")
    if not seen:
        raise missing(name, column, names)


def _of_csv(name: str, lines: Iterable[tuple[int, bytes]], column: str) -> Iterator[bytes]:
    number, first = next(iter(lines))
    csv.field_size_limit(MAX_ROW_BYTES)  # of the whole process; its default is too small for texts
    decoded = (_decode(line) for line in itertools.chain([first], (line for _, line in lines)))
    rows = csv.reader(decoded, delimiter=_delimiter(first), strict=True)
    try:
        names = next(rows, [])
        if column not in names:
            raise missing(name, column, names)
        index = names.index(column)
        for row in rows:
            if row and len(row) != len(names):
                line = number - 1 + rows.line_num
                raise W2VError(f"{name}, line {line}: {len(row)} columns, and {len(names)} in the first row")
            if row:
                yield encode(row[index])
    except csv.Error as error:
        raise W2VError(f"{name}, line {number - 1 + rows.line_num}: not CSV: {one_line(error)}") from None


def _delimiter(first: bytes) -> str:
    """What separates the columns of CSV: a tab if the first row has any, or else what it has more of, ',' or ';'."""
    return "\t" if b"\t" in first else ";" if first.count(b";") > first.count(b",") else ","


def lines_of(name: str, chunks: Iterable[bytes], limit: float = math.inf) -> Iterator[bytes]:
    """Lines with their ends. Raises W2VError for one of more than `limit` bytes."""
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        rest, *lines = chunk.split(b"\n")
        parts.append(rest)
        size += len(rest)
        if size > limit:
            raise W2VError(f"{name}: a row of more than {limit / 2**20:.0f} MB")
        for line in lines:
            yield b"".join([*parts, b"\n"])
            parts, size = [line], len(line)
    if last := b"".join(parts):
        yield last


def missing(name: str, column: str, names: Iterable[str]) -> W2VError:
    known = ", ".join(each[:40] for each in names)[:120]
    return W2VError(f"{name} has no column {column[:100]!r}; its columns are {one_line(known) if known else 'none'}")


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")  # --errors decides later


def encode(text: str) -> bytes:
    """UTF-8. Lone surrogates become malformed bytes, as files may have: the original ones after surrogateescape."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # other surrogates, such as half a pair from an escape in JSON
        return text.encode("utf-8", "surrogatepass")
