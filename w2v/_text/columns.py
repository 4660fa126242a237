"""Read columns of text tables: JSON, and rows whose fields a separator divides, such as CSV.

The start of a file decides how its fields are separated and quoted, and whether its first row has the names of the
columns.
"""

from __future__ import annotations

import codecs
import csv
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from w2v._errors import W2VError, issue_text_warning, one_line
from w2v._system.files import ARROW, ARROW_STREAM, PARQUET, SIGNATURE_BYTES

PLAIN = "none"  # value of `column` for files that are plain text even if they look like tables
MAX_ROW_BYTES = 1 << 26  # limit for a row of JSON or CSV
READ_AT_LEAST = 1 << 20  # an unfinished row of JSON that is longer is parsed again when it has doubled
MAX_NAMES = 100  # column names of JSON that are collected for an error message
HEAD_BYTES, HEAD_ROWS, LAYOUT_ROWS = 1 << 16, 20, 500  # parts of a file that are inspected to recognise a table
MAX_FIELDS = 20  # lines with more fields are not taken for rows of a table

JSON_START = re.compile(rb'\s*(\[\s*)?\{\s*"((?:[^"\\\n]|\\.)*)"\s*:')
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_VALUE = re.compile(rf"{NUMBER.pattern}|\d{{4}}-\d\d-\d\d([T ]\d\d:\d\d\S*)?")  # a number or a date
_COLUMN_NAME = re.compile(r"[^\W\d][\w.:/#()%&-]*( [\w.:/#()%&-]+){0,3}(?<![.:])")
# The end of the error for a file that looks like a table:
_ADVICE = f'; add --column NAME (column="NAME"), or --column {PLAIN} (column="{PLAIN}") if it is plain text'
ROW_PER_ITEM = "; if each row is an item of a session, add --item and --session (item=, session=)"
_MISSING = {"null", "nan", "na", "n/a", "none", "\\n"}
_IN_TEXT = re.compile(r"[\s\"(){}\[\]<>]")  # in fields of text or code
_EXTENSION = re.compile(r"\.(csv|tsv|tab)(\.\w{1,4})?\Z", re.IGNORECASE)

SEPARATORS = {"\t": "tabs", "::": "'::'", ",": "commas", ";": "semicolons", "|": "'|'", " ": "spaces"}
Quoting = Literal["doubled", "escaped", "none"]  # how a quoted field writes a quotation mark; "none" without quoting


class Layout(NamedTuple):
    """How the rows of a text are divided into fields.

    Attributes:
        separator: The characters between two fields.
        quoting: Whether fields are quoted, and how they write a quotation mark.
        rows: The first rows.
    """

    separator: str
    quoting: Quoting
    rows: list[list[str]]

    @property
    def has_equal_rows(self) -> bool:
        """Whether the first rows have the same number of fields, and more than one."""
        return len({*map(len, self.rows)}) == 1 and len(self.rows[0]) > 1


class TextTable(NamedTuple):
    """The rows of a text table.

    Attributes:
        taken: Which columns were taken, for a message; "" if their names say it.
        is_typed: Whether values have types, as in JSON; otherwise all of them are text.
        rows: The number of the line, and the values of the columns, of each row. A missing value is None.
    """

    taken: str
    is_typed: bool
    rows: Iterator[tuple[int, list[Any]]]


def columnar_kind(head: bytes) -> str:
    """Return "Parquet" or "Arrow" if a file that begins with `head` has this format, otherwise ""."""
    signatures = {PARQUET: "Parquet", ARROW: "Arrow", ARROW_STREAM: "Arrow"}
    return next((kind for start, kind in signatures.items() if re.match(start, head)), "")


def has_columns(column: str | None) -> bool:
    """Return True if the option `column` names a column of a table."""
    return column not in (None, PLAIN)


def find_column(where: str, names: Sequence[str], column: str) -> int:
    """Return the index of a column, given its name, or its number from 1. A name that is a number comes first.

    Raises:
        W2VError: There is no such column, or there are several of this name. The message starts with `where`.
    """
    if names.count(column) > 1:
        raise W2VError(f"{where} has {names.count(column)} columns {column[:100]!r}: name it by its number, from 1")
    if column in names:
        return names.index(column)
    if is_position(column) and 0 < int(column) <= len(names):
        return int(column) - 1
    raise missing_column(where, column, names)


def is_position(column: str) -> bool:
    """Return True if a column is given by its number."""
    return column.isascii() and column.isdecimal()


def missing_column(where: str, column: str, names: Iterable[str]) -> W2VError:
    """Return the error for a table without a column. Long names are shortened."""
    names = [*names]
    known = one_line(", ".join(each[:40] for each in names)[:120]) if any(names) else ""
    known = known or (f"{len(names)}, without names" if names else "none")
    return W2VError(f"{where} has no column {column[:100]!r}; its columns are {known}")


def columns_taken(names: Sequence[str], indices: Sequence[int]) -> str:
    """Return the numbers and names of columns for a message: "columns 2 (movie) and 1 (user)"."""
    taken = [f"{index + 1}{f' ({names[index][:40]})' if names[index] else ''}" for index in indices]
    return f"column{'s' * (len(taken) > 1)} {' and '.join(taken)}"


# -- plain text, or a table? ------------------------------------------------------------------------


def refuse_table(where: str, head: bytes) -> None:
    """Raise W2VError if a file that begins with `head` is a table with named columns. The message lists the names.

    If the names are missing, but all rows have the same few fields, a TextWarning is issued. `where` is the path of the
    file. Its extension helps to recognise CSV.
    """
    if start := JSON_START.match(head):
        try:
            names = list(next(json_values(where, [head]))[1])
        except W2VError:  # the first object is longer than the head
            names = [_decode(start[2]), "…"]
        raise table_error(where, "JSON", names)
    lines = _whole_lines(_with_newlines(head[:HEAD_BYTES]))
    layout = find_layout(lines[:HEAD_ROWS]) if lines else None
    if not layout or not layout.rows or layout.separator == " ":
        return
    names, *others = layout.rows
    has_index = layout.separator != "\t" and not names[0]  # pandas writes row numbers in a column without a name
    valid_names = len(set(names)) == len(names) and all(map(_COLUMN_NAME.fullmatch, names[has_index:]))
    is_csv = valid_names and layout.has_equal_rows and bool(others) and len(layout.rows) + len(names) > 4
    is_csv = is_csv and layout.separator in ("\t", ",", ";")  # words with tags may be divided by the others
    if is_csv or (_EXTENSION.search(where) and (valid_names or layout.has_equal_rows)):
        raise table_error(where, "CSV", names)
    if layout.has_equal_rows and len(others) > 1 and _are_rows(layout.rows):
        issue_text_warning(
            f"{where}: its lines have {len(names)} fields, separated by {SEPARATORS[layout.separator]}, and are read "
            f"as text: if it is a table, name columns by number, such as --column 2, or --item 2 --session 1; if it is "
            f"plain text, add --column {PLAIN}"
        )


def _are_rows(rows: list[list[str]]) -> bool:
    """Return whether rows of equal length look like those of a table: all fields are single words, or some numbers."""
    fields = [field for row in rows for field in row]
    if len(rows[0]) > MAX_FIELDS or not all(field and not field[0].isspace() for field in fields):  # as after a comma
        return False
    has_numbers = len(rows[0]) > 2 and any(all(map(NUMBER.fullmatch, column)) for column in zip(*rows, strict=True))
    return has_numbers or not any(map(_IN_TEXT.search, fields))


def table_error(where: str, kind: str, names: Sequence[str]) -> W2VError:
    """Return the error for a table without the name of a column."""
    return W2VError(f"{where} looks like {kind} with the columns {one_line(', '.join(names))}{_ADVICE}")


def _with_newlines(head: bytes) -> bytes:
    """Return the start of a table with newlines instead of the carriage returns that end the rows of some programs."""
    return head if b"\n" in head else head.replace(b"\r", b"\n")


def _whole_lines(head: bytes) -> list[str]:
    """Return the first lines of a file, except empty ones, and the last one if it may be incomplete."""
    *lines, last = head.split(b"\n")
    if len(head) < SIGNATURE_BYTES or not lines:
        lines.append(last)
    return [_decode(line) for line in lines if line.strip()]


# -- fields and their separators --------------------------------------------------------------------


def find_layout(lines: list[str], columns: Sequence[str] = ()) -> Layout:
    """Return how the first lines of a text are divided into fields. There must be a line.

    The separator is the one that gives the first row the wanted names of columns or, otherwise, gives all rows the same
    number of fields; otherwise it is a tab or, without tabs, the most frequent one in the first row.
    """
    first = lines[0]
    found = [each for each in SEPARATORS if each in first]
    found.sort(key=lambda each: (each == " ", each not in ("\t", "::"), -first.count(each)))
    layouts = [_layout(lines, separator) for separator in found or [","]]

    def fit(layout: Layout) -> tuple[bool, bool, bool]:
        has_names = bool(columns) and bool(layout.rows) and {*columns} <= {*layout.rows[0]}
        return has_names, layout.has_equal_rows, layout.separator != " "

    best = max(layouts, key=fit)
    return best if best.separator != " " or best.has_equal_rows else _layout(lines, ",")


def _layout(lines: list[str], separator: str) -> Layout:
    """Return the layout of lines with this separator.

    Fields with commas and semicolons are quoted, unless that is impossible. With other separators they are quoted if
    the lines have quotation marks, and if quoted fields do not join lines that are whole rows without quoting.
    """
    plain = Layout(separator, "none", _first_rows(lines, separator, "none")[0])
    is_csv = separator in ",;"
    if separator in ("::", " ") or not (is_csv or any('"' in line for line in lines)):
        return plain
    prefers_plain = plain.has_equal_rows and not is_csv
    quotings: tuple[Quoting, ...] = ("doubled", "escaped")
    for quoting in quotings[: 1 + any('\\"' in line for line in lines)]:
        rows, error = _first_rows(lines, separator, quoting)
        is_cut = "unexpected end" in error or "larger than" in error  # the last field may go on after these lines
        if error and (prefers_plain or not is_cut):
            continue
        layout = Layout(separator, quoting, rows)
        if layout.has_equal_rows and not (prefers_plain and len(rows) < len(plain.rows)):
            return layout
    if plain.has_equal_rows:
        return plain
    return Layout(separator, "doubled", _first_rows(lines, separator, "doubled")[0])


def _first_rows(lines: list[str], separator: str, quoting: Quoting) -> tuple[list[list[str]], str]:
    """Return the rows up to the first error, and the error or ""."""
    rows = []
    try:
        for row in split_rows(lines, separator, quoting):
            rows.append(row)
    except csv.Error as error:
        return rows, str(error)
    return rows, ""


def split_rows(lines: Iterable[str], separator: str, quoting: Quoting) -> Iterator[list[str]]:
    """Yield the fields of each row. Empty rows have none.

    Raises:
        csv.Error: Quotation marks do not fit the quoting.
    """
    if quoting != "none":
        escape = "\\" if quoting == "escaped" else None
        csv.field_size_limit(MAX_ROW_BYTES)  # applies to the whole process; the default is too small for texts
        yield from csv.reader(lines, delimiter=separator, strict=True, escapechar=escape, doublequote=escape is None)
        return
    for line in lines:
        line = line.rstrip("\r\n")
        yield line.split(separator) if line else []


def has_header(rows: list[list[str]], columns: Sequence[str], least: int = 1) -> bool:
    """Return whether the first row of a table has the names of its columns.

    It has if a wanted column is a name, or if `least` columns of numbers or dates begin with something else. Names are
    not numbers, dates or missing, except that of row numbers, which pandas writes first.
    """
    if columns and ({*columns} <= {*rows[0]} or not all(map(is_position, columns))):
        return True
    if any(_VALUE.fullmatch(name) or name.strip().lower() in _MISSING for name in rows[0]) or not all(rows[0][1:]):
        return False
    values = itertools.zip_longest(*rows[1:], fillvalue="")
    return len(rows) > 1 and sum(all(map(_VALUE.fullmatch, column)) for column in values) >= least


# -- rows -------------------------------------------------------------------------------------------


def text_table(where: str, chunks: Iterable[bytes], columns: Sequence[str], header: bool | None = None) -> TextTable:
    """Return some columns of a table: of JSON if it begins with a brace or bracket, otherwise of fields.

    JSON has an object for each row, one after the other or in an array. A null or absent value is missing, and so is an
    empty field.

    Args:
        where: The start of error messages.
        chunks: The bytes of the file. The first chunk decides how fields are separated.
        columns: The names or, for fields, the numbers of the columns.
        header: Whether the first row has the names of columns; by default, w2v decides.

    Raises:
        W2VError: No row has a column, or a line is not a row.
    """
    chunks = iter(chunks)
    head = b""
    while not head.strip() and (chunk := next(chunks, None)) is not None:
        head += chunk
    if _with_newlines(head) != head:
        head, chunks = _with_newlines(head), (chunk.replace(b"\r", b"\n") for chunk in chunks)
    chunks = itertools.chain([head], chunks)
    if head.lstrip()[:1] in (b"{", b"["):
        return TextTable("", True, _json_rows(where, chunks, columns))
    return _field_rows(where, head, chunks, columns, header)


def _json_rows(where: str, chunks: Iterable[bytes], columns: Sequence[str]) -> Iterator[tuple[int, list[Any]]]:
    unseen = [*columns]
    names: dict[str, None] = {}
    for number, row in json_values(where, chunks):
        if unseen:
            unseen = [column for column in unseen if column not in row]
            names |= dict.fromkeys(itertools.islice(row, MAX_NAMES - len(names)))
        yield number, [row.get(column) for column in columns]
    if unseen:
        raise missing_column(where, unseen[0], names)


def json_values(where: str, chunks: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of JSON lines, or of an array of JSON, each with the number of its first line.

    Raises:
        W2VError: The text is something else. The message starts with `where`, and has the number of the line.
    """
    decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    scan = json.JSONDecoder().raw_decode
    text, at, line, chunks = "", 0, 1, iter(chunks)
    gap, in_array, is_ended = re.compile(r"\s*"), False, False
    while True:
        begin = gap.match(text, at).end()  # type: ignore[union-attr]
        line, at = line + text.count("\n", at, begin), begin
        if text[at : at + 1] == "[" and gap.pattern == r"\s*":
            gap, in_array, at = re.compile(r"[\s,]*"), True, at + 1
            continue
        if text[at : at + 1] == "]" and in_array:
            in_array, at = False, at + 1
            continue
        try:
            value, end = scan(text, at)
        except (ValueError, RecursionError) as error:
            problem, place = one_line(getattr(error, "msg", error)), getattr(error, "pos", at)
            if isinstance(error, RecursionError) or is_ended or text.find("\n", place) >= 0:  # more text cannot help
                if at == len(text) and not in_array:
                    return
                number = line + text.count("\n", at, place)
                raise W2VError(f"{where}, line {number}: not JSON: {problem}") from None
            if len(text) - at > MAX_ROW_BYTES:
                raise _too_long(f"{where}, line {line}") from None
            pieces, size = [text[at:]], len(text) - at
            wanted = size if size > READ_AT_LEAST else 0
            for chunk in chunks:
                pieces.append(decode(chunk))
                wanted -= len(pieces[-1])
                if wanted < 0:
                    break
            else:
                is_ended = True
            text, at = "".join(pieces), 0
            continue
        if not isinstance(value, dict):
            raise W2VError(f"{where}, line {line}: not a JSON object")
        yield line, value
        line, at = line + text.count("\n", at, end), end


def _field_rows(
    where: str, head: bytes, chunks: Iterable[bytes], columns: Sequence[str], header: bool | None
) -> TextTable:
    layout = find_layout(_whole_lines(head)[:LAYOUT_ROWS] or [""], columns)
    number = 0  # of the last line that was read

    def lines() -> Iterator[str]:
        nonlocal number
        for line in lines_of(where, chunks, MAX_ROW_BYTES):
            number += 1
            yield _decode(line)

    def rows() -> Iterator[list[str]]:
        try:
            yield from filter(None, split_rows(lines(), layout.separator, layout.quoting))
        except csv.Error as error:
            raise W2VError(f"{where}, line {number}: not CSV: {one_line(error)}") from None

    fields = rows()
    first = next(fields, [])
    if header is None:
        header = has_header(layout.rows or [first], columns)
    if not header and not all(map(is_position, columns)):
        raise W2VError(f"{where}: without a header, columns have no names: give their numbers, from 1")
    names = first if header else [""] * len(first)
    indices = [find_column(where, names, column) for column in columns]

    def values() -> Iterator[tuple[int, list[Any]]]:
        for row in fields if header else itertools.chain([first], fields):
            if len(row) != len(names):
                raise W2VError(f"{where}, line {number}: {len(row)} columns, and {len(names)} in the first row")
            yield number, [row[index] or None for index in indices]

    first_row = "names" if header else "data"
    separator = SEPARATORS[layout.separator]
    taken = f"{columns_taken(names, indices)}, separated by {separator}; the first row has {first_row}"
    is_named = [names[index] for index in indices] == [*columns]
    return TextTable("" if is_named else f"{taken} (--header, --no-header)", False, values())


def texts(table: TextTable, where: str, column: str) -> Iterator[bytes | list[Any] | None]:
    """Yield the texts, or lists, in a table with one column. A missing text is None.

    Raises:
        W2VError: If a value is neither text nor a list. The message starts with `where` and names the line.
    """
    for number, (value,) in table.rows:
        if value is None or isinstance(value, list):
            yield value
        elif isinstance(value, str):
            yield encode(value)
        else:
            shown, advice = json.dumps(value)[:60], ROW_PER_ITEM if type(value) is int else ""
            raise W2VError(
                f"{where}, line {number}: column {column[:100]!r} holds {shown}, neither text nor a list{advice}"
            )


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
            raise _too_long(where)
        for line in lines:
            yield b"".join([*parts, b"\n"])
            parts, size = [line], len(line)
    if last := b"".join(parts):
        yield last


def _too_long(where: str) -> W2VError:
    return W2VError(f"{where}: a row of more than {MAX_ROW_BYTES / 2**20:.0f} MB: split it")


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
