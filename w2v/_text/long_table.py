"""Long tables, which have a row for each item of a session: bring the rows of each session together.

The reader turns items and sessions into ids, and the value that orders a row into two numbers, so a row takes 24 bytes.
The rows are stored in a temporary file, divided into parts of whole sessions, and each part is sorted in memory. So a
table may be larger than memory; only the different items and sessions must fit. The sort of DuckDB takes twice as long.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError, one_line
from w2v._system.files import ANOTHER_FOLDER, check_disk_space
from w2v._system.threads import map_in_order
from w2v._text._text import FIRST_TYPE, sorted_items
from w2v._text.sessions import Keys, Place, check_key_type, keys_of_array, keys_of_objects
from w2v._text.tables import as_numpy, is_text, validity
from w2v._text.words import OWN_PREFIX, is_missing

ROWS_AT_ONCE = 1 << 16  # rows of a table read at a time
ROWS_IN_MEMORY = 1 << 19  # rows sorted at a time; a session with more rows is sorted as a whole
HALF = 1 << 32  # see `_split`
DATE = re.compile(  # a date and perhaps a time, a fraction of a second, and the hours and minutes of a time zone
    r"([+-]?\d{4,}-\d\d(?:-\d\d)?(?:[T ]\d\d:\d\d(?::\d\d)?)?)"
    r"(?:(?<=:\d\d)(?:[.,](\d+))? ?(?:Z|([+-]\d\d)(?::?(\d\d))?)?)?"
)
UNITS = {"D": 86400, "h": 3600, "m": 60, "s": 1}  # seconds in a unit of NumPy
FRACTIONS = {"ms": 1000, "us": 10**6, "ns": 10**9}  # units of NumPy in a second
ROW = np.dtype([("session", np.uint32), ("item", np.uint32), ("first", np.float64), ("second", np.float64)])
PARSE_ERRORS = (ValueError, TypeError, OverflowError)
MAX_WEIGHT = 1_000_000  # of a session
KINDS = {"M": "dates", "m": "durations"}  # of orders, by the kind of a NumPy type; others are numbers


class LongTable(NamedTuple):
    """The names of the columns of a long table.

    Attributes:
        item: The column of items.
        session: The column that says which session an item belongs to.
        order: The column that orders the items of a session; None for the order of the rows.
        also_context: The column of items that are context of every window of their session, or None.
        weight: The column with the number of repetitions of a session, or None.
    """

    item: str
    session: str
    order: str | None
    also_context: str | None = None
    weight: str | None = None

    @property
    def columns(self) -> list[str]:
        return [name for name in self if name is not None]


class Order(NamedTuple):
    """Values that order rows.

    Attributes:
        kind: What they are: numbers, dates or durations, such as times of day, which do not compare with each other.
        first, second: float64 (rows,). Rows are ordered by the first and, where it is equal, by the second.
        valid: bool (rows,), which rows have a value.
    """

    kind: str
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    valid: NDArray[np.bool_]


@dataclass(frozen=True)
class RowBlock:
    """Consecutive rows of a long table that have an item, a session and, if it is wanted, an order.

    Attributes:
        keys: The items and the sessions of the rows. The items of `also_context` follow, with OWN_PREFIX before their
            names.
        order: The order of the rows, or None.
        name: The file, for messages.
        rows: int64 (rows,), the number of each row in its file, from 1.
        missing: The number of rows that are left out because a value is missing.
        weights: float64 (rows,), the weight of the session of each row, or None.
        contexts: The number of items of `also_context`, the last of the items.
        bytes_done: See TextBlock.
    """

    keys: tuple[Keys, Keys]
    order: Order | None
    name: str
    rows: NDArray[np.int64]
    missing: int
    weights: NDArray[np.float64] | None = None
    contexts: int = 0
    bytes_done: int = 0

    def __len__(self) -> int:
        return len(self.keys[0])

    def locate(self, position: int, column: int = 0) -> str:
        """Return the place of the first key that contains a position of a blob, for messages.

        Args:
            position: A position in the blob of the items or sessions.
            column: 0 for the items, 1 for the sessions.
        """
        return self.place(self.keys[column].index_at(position))

    def place(self, index: int) -> str:
        """Return the place of one of these rows, for messages."""
        return f"{self.name}, row {self.rows[index]:,}"


# -- rows -------------------------------------------------------------------------------------------


def block_of_rows(
    columns: Sequence[Any], table: LongTable, where: str, row: int, pyarrow: Any = None, typed: bool = True
) -> RowBlock:
    """Return the rows in some columns, in the order of `table.columns`.

    Args:
        columns: The values of each column: arrays of pyarrow, or lists or arrays of Python objects.
        table: The names of the columns.
        where: The start of error messages.
        row: The number of the first row, from 1.
        pyarrow: The module, for its arrays.
        typed: False for a table of text that does not say whether a value is a number.

    Raises:
        W2VError: If a column or a value is of an unsuitable type.
    """

    def place_in(name: str) -> Place:
        return lambda number: f"{where}, row {row + number:,}: column {name[:100]!r}"

    kinds = [kind for kind, name in table._asdict().items() if name is not None]
    values_of, names = dict(zip(kinds, columns, strict=True)), dict(zip(kinds, table.columns, strict=True))
    found = []
    for kind in (each for each in kinds if each in ("item", "session", "also_context")):
        values, place = values_of[kind], place_in(names[kind])
        if pyarrow:
            check_key_type(pyarrow, values.type, f"{where}: column {names[kind][:100]!r}")
        keys, valid = keys_of_array(pyarrow, values, place) if pyarrow else keys_of_objects(values, place)
        has_bytes = keys.lengths > 0
        valid[valid] = has_bytes
        found.append((replace(keys.take(np.flatnonzero(has_bytes)), key_type=keys.key_type if typed else None), valid))
    keep, order, weights = found[0][1] & found[1][1], None, None
    if table.order is not None:
        by, place = values_of["order"], place_in(table.order)
        order = order_of_array(pyarrow, by, place) if pyarrow else order_of_objects(by, place)
        keep &= order.valid
        order = order._replace(first=order.first[keep], second=order.second[keep])
    chosen = np.flatnonzero(keep)
    missing = len(keep) - len(chosen)
    if table.weight is not None:
        weights = weights_of(values_of["weight"], keep, place_in(table.weight))
    items, sessions = (keys.take(np.flatnonzero(keep[valid])) for keys, valid in found[:2])
    has_context = np.empty(0, np.int64)
    if table.also_context is not None:
        if (own := items.words.start_with(OWN_PREFIX.encode())).any():
            bad = place_in(table.item)(int(chosen[own.argmax()]))
            raise W2VError(f"{bad}: the item begins with U+E000, which marks items of --also-context: rename it")
        contexts, valid = found[2]
        has_context = np.flatnonzero(valid[chosen])
        items = items.followed_by(contexts.take(np.flatnonzero(keep[valid])), OWN_PREFIX.encode())
        everything = np.append(np.arange(len(chosen)), has_context)
        chosen, sessions = chosen[everything], sessions.take(everything)
        weights = None if weights is None else weights[everything]
    return RowBlock((items, sessions), order, where, row + chosen, missing, weights, len(has_context))


def weights_of(values: Any, keep: NDArray[np.bool_], place: Place) -> NDArray[np.float64]:
    """Return the weights in some rows of a column. Raise W2VError, with the place, if one is impossible."""
    objects = values if isinstance(values, list) else values.tolist()
    weights = np.full(len(keep), np.nan)
    for number in np.flatnonzero(keep).tolist():
        with suppress(*PARSE_ERRORS):
            is_number = not isinstance(objects[number], bool | np.bool_) and "_" not in str(objects[number])
            weights[number] = float(objects[number]) if is_number else np.nan  # Python reads "1_0" as 10
    if (wrong := keep & ~((weights >= 0) & (weights <= MAX_WEIGHT) & (weights == np.rint(weights)))).any():
        bad = int(wrong.argmax())
        found = "missing" if is_missing(objects[bad]) else one_line(f"{objects[bad]!r:.60}")
        raise W2VError(f"{place(bad)}: the weight is {found}: it must be a whole number from 0 to {MAX_WEIGHT:,}")
    return weights[keep]


# -- the order of rows ------------------------------------------------------------------------------


def order_of_array(pyarrow: Any, array: Any, place: Place) -> Order:
    """Return the order of the values of a pyarrow array. Raise W2VError if its type has none."""
    types = pyarrow.types
    array = array.dictionary_decode() if types.is_dictionary(array.type) else array
    kind = array.type
    if is_text(pyarrow, kind) or types.is_decimal(kind):
        return order_of_objects(array.to_pylist(), place)
    unit = ""
    if types.is_date(kind):
        unit = "M8[D]" if kind.bit_width == 32 else "M8[ms]"
    elif types.is_timestamp(kind) or types.is_time(kind) or types.is_duration(kind):
        unit = f"{'M' if types.is_timestamp(kind) else 'm'}8[{kind.unit}]"
    elif not (types.is_integer(kind) or types.is_floating(kind)):
        raise W2VError(f"{place(0)} holds {one_line(kind)}: an order is a number or a date")
    valid = validity(array)
    if unit:
        array = array.cast(pyarrow.int32() if kind.bit_width == 32 else pyarrow.int64())
    values = as_numpy(array.fill_null(0) if array.null_count else array)
    return _order(values.astype(np.int64).view(unit) if unit else values, valid)


def order_of_objects(objects: Any, place: Place) -> Order:
    """Return the order of Python objects or of a NumPy array: of numbers, or dates, or texts of them.

    Dates without a time zone are in UTC. Raises W2VError, with the place, for other objects, and for both kinds.
    """
    if isinstance(objects, np.ndarray) and objects.dtype.kind in "iufmM":
        return _order(objects, ~np.isnat(objects) if objects.dtype.kind in KINDS else np.ones(len(objects), bool))
    valid = np.array([not (is_missing(each) or (isinstance(each, str) and not each)) for each in objects], bool)
    present = [each for each, is_valid in zip(objects, valid.tolist(), strict=True) if is_valid]
    try:
        kind, *parts = _parsed(present)
    except PARSE_ERRORS as error:
        bad, example = _first_bad(present)
        where = place(int(np.flatnonzero(valid)[bad]))
        raise W2VError(f"{where}: an order is a number or a date such as 2024-12-31, not {example}") from error
    first, second = np.zeros((2, len(valid)))
    first[valid], second[valid] = parts
    return Order(kind, first, second, valid & ~np.isnan(first))


def _first_bad(objects: list[Any]) -> tuple[int, str]:
    """Return the number of the first object that is not of the kind of the first one, and a text about it."""
    for number, each in enumerate(objects):
        try:
            _parsed([objects[0], each])
        except PARSE_ERRORS:
            shown = one_line(f"{each!r:.60}")
            with suppress(*PARSE_ERRORS):
                _parsed([each])
                return number, f"one of each: {shown} comes after {one_line(f'{objects[0]!r:.60}')}"
            return number, shown
    raise AssertionError


def _parsed(values: list[Any]) -> tuple[str, NDArray[np.float64], NDArray[np.float64]]:
    """Return the kind of numbers or dates, and the two numbers that order them. Raise PARSE_ERRORS for others."""
    values = [str(each) if isinstance(each, np.datetime64) else each for each in values]
    values = [each.isoformat() if hasattr(each, "isoformat") else each for each in values]
    if values and isinstance(values[0], str) and DATE.fullmatch(values[0]):
        groups = [match.groups() for match in map(DATE.fullmatch, values) if match]
        if len(groups) < len(values):
            raise ValueError("not all are dates")
        dates, fractions, hours, minutes = zip(*groups, strict=True)
        seconds = np.array(dates, "M8[s]").astype(np.float64)
        if any(hours):
            signs = [-1 if hour and hour[0] == "-" else 1 for hour in hours]
            seconds -= 3600 * np.array([int(hour or 0) for hour in hours])
            seconds -= 60 * np.array(signs) * np.array([int(minute or 0) for minute in minutes])
        return "dates", seconds, np.array([float(f".{fraction or 0}") for fraction in fractions])
    kinds = {*map(type, values)}
    if kinds == {str}:
        with suppress(ValueError, OverflowError):
            return ("numbers", *_split(np.array(values).astype(np.int64)))
        values = [int(each) if each.lstrip("+-").isdecimal() else float(each) for each in values]
        kinds = {*map(type, values)}
    if bool in kinds:
        raise TypeError("a truth value")
    numbers = np.array(values)
    if numbers.ndim > 1:
        raise TypeError("lists")
    if numbers.dtype.kind in "iu" or kinds <= {float}:
        return ("numbers", *_split(numbers))
    first, second = zip(*map(_halves, values), strict=True)
    return "numbers", np.array(first, np.float64), np.array(second, np.float64)


def _order(values: NDArray[Any], valid: NDArray[np.bool_]) -> Order:
    first, second = _split(values)
    return Order(KINDS.get(values.dtype.kind, "numbers"), first, second, valid & ~np.isnan(first))


def _split(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two numbers that order numbers, dates or durations exactly, whatever their type and unit is.

    For dates they are seconds and the fraction of a second. For numbers they are a multiple of 2^32, and the rest.
    """
    if values.dtype.kind in "mM":
        unit, count = np.datetime_data(values.dtype)
        if count != 1 or unit not in {**UNITS, **FRACTIONS}:
            return _split(values.astype(f"{values.dtype.kind}8[us]"))
        if unit in UNITS:
            return values.view(np.int64).astype(np.float64) * UNITS[unit], np.zeros(len(values))
        whole, rest = np.divmod(values.view(np.int64), FRACTIONS[unit])
        return whole.astype(np.float64), rest / FRACTIONS[unit]
    values = values.astype({"i": np.int64, "u": np.uint64, "f": np.float64}[values.dtype.kind])
    with np.errstate(invalid="ignore"):
        rest = np.fmod(values, values.dtype.type(HALF))
    rest = np.where(np.isfinite(values), rest, 0).astype(values.dtype)
    return (values - rest) / HALF, rest.astype(np.float64)


def _halves(value: Any) -> tuple[float, float]:
    """Return what `_split` returns, for a number of any type."""
    if isinstance(value, float) and not math.isfinite(value):
        return value, 0.0
    exact = Fraction(value)
    rest = abs(exact) % HALF
    sign = -1 if exact < 0 else 1
    return sign * float((abs(exact) - rest) / HALF), sign * float(rest)


# -- sorting ----------------------------------------------------------------------------------------


class Rows:
    """The rows of a long table as records of numbers, in a temporary file."""

    def __init__(self, folder: Path) -> None:
        """Create the file in a folder."""
        self._folder = folder
        self._file = self._temporary()

    def _temporary(self) -> Any:
        return cast(Any, tempfile.TemporaryFile(dir=self._folder))

    def add(
        self, items: NDArray[np.uint32], sessions: NDArray[np.uint32], order: Order | None, contexts: int = 0
    ) -> None:
        """Append rows. The last `contexts` of them come first in their sessions, sorted by item."""
        rows = np.zeros(len(items), ROW)
        rows["session"], rows["item"] = sessions, items
        own, others = rows[: len(rows) - contexts], rows[len(rows) - contexts :]
        if order:
            own["first"], own["second"] = order.first, order.second
        others["first"], others["second"] = -np.inf, others["item"] - float(HALF)
        self._file.write(rows.view(np.uint8).data)

    def check_space(self, share: float) -> None:
        """Raise W2VError if the disk is too small for the table. `share` is the share of the rows added so far."""
        written = self._file.tell()
        copies = 1 + (written / share > ROWS_IN_MEMORY * ROW.itemsize)  # see `sessions`
        check_disk_space(self._file, self._folder, copies * written / share - written, "the table", ANOTHER_FOLDER)

    def close(self) -> None:
        """Close the file, which frees its disk space."""
        self._file.close()

    def sessions(
        self, counts: NDArray[np.int64], workers: int
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
        """Yield the items of consecutive sessions, and the number of items of each session.

        Sessions are in the order of their ids. Rows of the same order, or without one, stay in the order of the table.

        Args:
            counts: The number of rows of each session, (sessions,); the ids of sessions begin at FIRST_TYPE.
            workers: The number of threads.
        """
        ends = np.cumsum(counts)
        # Each part ends with the first session that reaches the next multiple of ROWS_IN_MEMORY.
        wanted = np.arange(ROWS_IN_MEMORY, ends[-1] + ROWS_IN_MEMORY, ROWS_IN_MEMORY)
        stops = np.unique(np.minimum(np.searchsorted(ends, wanted), len(ends) - 1)) + 1
        bounds = np.append(0, stops)  # the first session of each part
        starts = np.append(0, ends)[bounds]  # the first row of each part
        if len(stops) > 1:
            self._divide(np.repeat(np.arange(len(stops)), np.diff(bounds)).astype(np.uint32), starts)
        parts = pairwise(zip(bounds.tolist(), starts.tolist(), strict=True))
        read = ((self._read(start, end), first, counts[first:stop]) for (first, start), (stop, end) in parts)
        yield from map_in_order(_sorted_part, read, workers)

    def _read(self, start: int, end: int) -> NDArray[Any]:
        """Return some rows."""
        self._file.seek(start * ROW.itemsize)
        rows = np.empty(end - start, ROW)
        self._file.readinto(rows.view(np.uint8).data)
        return rows

    def _divide(self, parts: NDArray[np.uint32], starts: NDArray[np.int64]) -> None:
        """Divide the rows into parts of consecutive sessions, in a new file.

        Args:
            parts: The number of the part of each session.
            starts: The first row of each part, and the number of all rows.
        """
        divided = self._temporary()
        next_rows = starts[:-1].copy()  # where the next row of each part is written
        for start in range(0, int(starts[-1]), ROWS_IN_MEMORY):
            rows = self._read(start, min(start + ROWS_IN_MEMORY, int(starts[-1])))
            part = parts[rows["session"] - np.uint32(FIRST_TYPE)]
            sizes = np.bincount(part, minlength=len(next_rows))
            kind = np.uint16 if len(next_rows) <= 1 << 16 else np.uint32  # NumPy sorts 16 bits in linear time
            pieces = np.split(rows.take(np.argsort(part.astype(kind), kind="stable")), np.cumsum(sizes)[:-1])
            for number in np.flatnonzero(sizes).tolist():
                divided.seek(int(next_rows[number]) * ROW.itemsize)
                divided.write(pieces[number].view(np.uint8).data)
            next_rows += sizes
        self._file.close()
        self._file = divided


def _sorted_part(part: tuple[NDArray[Any], int, NDArray[np.int64]]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the items of rows by session and order, and the number of items of each session."""
    rows, first, counts = part
    rows["session"] -= np.uint32(first + FIRST_TYPE)
    return sorted_items(rows, counts), counts
