"""The text in one column of a table: JSON lines, CSV or Parquet."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import IO

from w2v.errors import W2VError, one_line
from w2v.files import PARQUET

MAX_ROW_BYTES = 1 << 26  # of JSON and CSV
ROWS_AT_ONCE = 1024  # of Parquet


def is_parquet(head: bytes) -> bool:
    """Whether a file that begins with `head` is a Parquet file."""
    return re.match(PARQUET, head) is not None


def parquet_texts(name: str, file: IO[bytes], column: str) -> Iterator[tuple[bytes, float]]:
    """The texts in a column of a Parquet file, each with the share of the file's rows up to it.

    Raises W2VError for a file that is damaged or has no such column of text, and if pyarrow is missing.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise W2VError(f"{name}: Parquet files need one more package: pip install 'w2v[parquet]'") from None
    try:
        table = parquet.ParquetFile(file)
        if column not in table.schema_arrow.names:
            raise _missing(name, column, table.schema_arrow.names)
        kind = table.schema_arrow.field(column).type
        kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
        if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
            raise W2VError(f"{name}: column {column[:100]!r} holds {kind}, not text")
        rows = max(1, table.metadata.num_rows)
        done = 0
        for batch in table.iter_batches(ROWS_AT_ONCE, columns=[column]):
            for text in batch.column(0).to_pylist():
                done += 1
                if text is not None:
                    yield text.encode(), done / rows
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise W2VError(f"{name}: damaged Parquet data: {one_line(error)}") from error


def texts(name: str, chunks: Iterable[bytes], column: str) -> Iterator[bytes]:
    """The texts in a column of JSON lines, if the file begins with a brace, or else of CSV with names in its first row.

    Columns of CSV are separated by commas, or by tabs if the first row has tabs. Texts that are null or missing are
    left out. Raises W2VError, naming the line, if a line is not a row or its column not text, and for a missing column.
    """
    lines = enumerate(_lines(name, chunks), 1)
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
            names |= dict.fromkeys(row)
        if text is not None:
            yield encode(text)
    if not seen:
        raise _missing(name, column, names)


def _of_csv(name: str, lines: Iterable[tuple[int, bytes]], column: str) -> Iterator[bytes]:
    number, first = next(iter(lines))
    csv.field_size_limit(MAX_ROW_BYTES)  # of the whole process; its default is too small for texts
    decoded = (_decode(line) for line in itertools.chain([first], (line for _, line in lines)))
    rows = csv.reader(decoded, delimiter="\t" if b"\t" in first else ",", strict=True)
    try:
        names = next(rows, [])
        if column not in names:
            raise _missing(name, column, names)
        index = names.index(column)
        for row in rows:
            if row and len(row) != len(names):
                line = number - 1 + rows.line_num
                raise W2VError(f"{name}, line {line}: {len(row)} columns, and {len(names)} in the first row")
            if row:
                yield encode(row[index])
    except csv.Error as error:
        raise W2VError(f"{name}, line {number - 1 + rows.line_num}: not CSV: {one_line(error)}") from None


def _lines(name: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their ends. Raises W2VError for one of more than MAX_ROW_BYTES."""
    parts: list[bytes] = []
    for chunk in chunks:
        rest, *lines = chunk.split(b"\n")
        parts.append(rest)
        if sum(map(len, parts)) > MAX_ROW_BYTES:
            raise W2VError(f"{name}: a row of more than {MAX_ROW_BYTES >> 20} MB")
        for line in lines:
            yield b"".join([*parts, b"\n"])
            parts = [line]
    if last := b"".join(parts):
        yield last


def _missing(name: str, column: str, names: Iterable[str]) -> W2VError:
    return W2VError(f"{name} has no column {column[:100]!r}; its columns are {', '.join(names)[:200] or 'none'}")


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")  # --errors decides later


def encode(text: str) -> bytes:
    """UTF-8. Lone surrogates become malformed bytes, as files may have: the original ones after surrogateescape."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # other surrogates, such as half a pair from an escape in JSON
        return text.encode("utf-8", "surrogatepass")
