"""Long tables, which have a row for each item of a session: bring the rows of each session together.

The reader turns items and sessions into ids, so a row takes 16 bytes. The rows are stored in temporary files, divided
into parts of whole sessions, and each part is sorted in memory. So a table may be larger than memory; only the
different items and sessions must fit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError, one_line
from w2v.system.files import ANOTHER_FOLDER, check_disk_space
from w2v.text._text import FIRST_TYPE
from w2v.text.sessions import Keys, Place, check_key_type, keys_of_array, keys_of_objects
from w2v.text.tables import as_numpy, is_text, validity
from w2v.text.words import is_missing

ROWS_AT_ONCE = 1 << 16  # rows of a table read at a time
ORDER_ERRORS = (ValueError, TypeError, OverflowError)  # raised by `_numbers_of`
ROWS_IN_MEMORY = 1 << 21  # rows sorted at a time; a session with more rows is sorted as a whole


class LongTable(NamedTuple):
    """The names of the columns of a long table.

    Attributes:
        item: The column of items.
        session: The column that says which session an item belongs to.
        order: The column that orders the items of a session; None for the order of the rows.
    """

    item: str
    session: str
    order: str | None

    @property
    def columns(self) -> list[str]:
        return [name for name in self if name is not None]


@dataclass(frozen=True)
class RowBlock:
    """Consecutive rows of a long table that have an item, a session and, if it is wanted, an order.

    Attributes:
        keys: The items and the sessions of the rows.
        order: int64 or float64 (rows,), or None.
        name: The file, for messages.
        rows: int64 (rows,), the number of each row in its file, from 1.
        missing: The number of rows that are left out because a value is missing.
        bytes_done: See TextBlock.
    """

    keys: tuple[Keys, Keys]
    order: NDArray[Any] | None
    name: str
    rows: NDArray[np.int64]
    missing: int
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

    @property
    def order_type(self) -> np.dtype[Any] | None:
        """The type of the values of `order`."""
        return None if self.order is None else self.order.dtype

    def order_for(self, order_type: np.dtype[Any] | None) -> NDArray[Any] | None:
        """Return `order` in the type of earlier rows. Raise W2VError for fractions that follow whole numbers."""
        if self.order is None or self.order.dtype == order_type:
            return self.order
        if order_type == np.float64:
            return self.order.astype(np.float64)
        fractions = np.flatnonzero(self.order != np.rint(self.order))
        where = self.place(int(fractions[0]) if len(fractions) else 0)
        raise W2VError(f"{where}: the order is a fraction, after whole numbers: write all of them as fractions")


# -- rows -------------------------------------------------------------------------------------------


def block_of_arrays(pyarrow: Any, arrays: list[Any], table: LongTable, where: str, row: int) -> RowBlock:
    """Return the rows in arrays of pyarrow, in the order of `table.columns`.

    Raises:
        W2VError: If an array is of an unsuitable type. The message begins with `where`.
    """
    for name, array in zip(table.columns[:2], arrays, strict=False):
        check_key_type(pyarrow, array.type, f"{where}: column {name[:100]!r}")
    places = _places(table, where, row)
    items, sessions = (keys_of_array(pyarrow, *pair) for pair in zip(arrays[:2], places, strict=False))
    order = (
        None
        if table.order is None
        else _order_of_array(pyarrow, arrays[2], f"{where}: column {table.order[:100]!r}", places[2])
    )
    return _joined(items, sessions, order, where, row)


def block_of_objects(values: Sequence[Any], table: LongTable, where: str, row: int, typed: bool = True) -> RowBlock:
    """Return the rows in lists or arrays of Python objects, in the order of `table.columns`.

    Args:
        values: A list of the values of each column.
        table: The names of the columns.
        where: The start of error messages.
        row: The number of the first row, from 1.
        typed: False for a table of text that does not say whether a value is a number.
    """
    places = _places(table, where, row)
    items, sessions = (keys_of_objects(*pair) for pair in zip(values[:2], places, strict=False))
    if not typed:
        items, sessions = ((replace(keys, key_type=None), valid) for keys, valid in (items, sessions))
    order = None if table.order is None else _order_of_objects(values[2], places[2])
    return _joined(items, sessions, order, where, row)


def _places(table: LongTable, where: str, row: int) -> list[Place]:
    """Return for each column a function that returns the place of a value, by its number in a block."""

    def place_in(name: str) -> Place:
        return lambda number: f"{where}, row {row + number:,}: column {name[:100]!r}"

    return [place_in(name) for name in table.columns]


Column = tuple[Any, NDArray[np.bool_]]  # values, and which rows have one


def _joined(items: Column, sessions: Column, order: Column | None, where: str, row: int) -> RowBlock:
    """Return the rows that have an item, a session and, if it is wanted, an order."""
    keep = items[1] & sessions[1]
    for keys, valid in (items, sessions):
        keep[np.flatnonzero(valid)[keys.lengths == 0]] = False
    if order:
        keep &= order[1]
    parts = [keys.take(np.flatnonzero(keep[valid])) for keys, valid in (items, sessions)]
    numbers = order[0][keep] if order else None
    rows = row + np.flatnonzero(keep)
    return RowBlock((parts[0], parts[1]), numbers, where, rows, len(keep) - len(rows))


def _order_of_array(pyarrow: Any, array: Any, where: str, place: Place) -> Column:
    """Return numbers that order the values of an array like the values themselves, and which rows have a value."""
    types, kind = pyarrow.types, array.type
    if types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if is_text(pyarrow, kind):
        return _order_of_objects(array.to_pylist(), place)
    if types.is_decimal(kind):
        array = array.cast(pyarrow.float64())
    elif types.is_temporal(kind) and not types.is_interval(kind):
        array = array.cast(pyarrow.int32() if kind.bit_width == 32 else pyarrow.int64())
    elif not (types.is_integer(kind) or types.is_floating(kind)):
        raise W2VError(f"{where} holds {one_line(kind)}: an order is a number or a date")
    valid = validity(array)
    values = as_numpy(array.fill_null(0) if array.null_count else array)
    return _order_of_numbers(values, valid)


def _order_of_numbers(values: NDArray[Any], valid: NDArray[np.bool_]) -> Column:
    if values.dtype.kind == "f":
        return values.astype(np.float64), valid & ~np.isnan(values)
    if values.dtype == np.uint64 and len(values) and values.max() >= 1 << 63:
        return values.astype(np.float64), valid
    return values.astype(np.int64), valid


def _order_of_objects(objects: Any, place: Place) -> Column:
    """Return numbers that order objects: numbers, or text with numbers or dates."""
    if isinstance(objects, np.ndarray) and objects.dtype.kind in "iuf":
        return _order_of_numbers(objects, np.ones(len(objects), bool))
    if isinstance(objects, np.ndarray) and objects.dtype.kind in "mM":
        return objects.astype(objects.dtype.str[:2] + "8[ns]").view(np.int64), ~np.isnat(objects)
    valid = np.array([not (is_missing(each) or each == "") for each in objects], bool)
    present = [each for each, is_valid in zip(objects, valid.tolist(), strict=True) if is_valid]
    try:
        numbers = _numbers_of(present)
    except ORDER_ERRORS as error:
        bad = _first_without_order(present)
        where, example = place(int(np.flatnonzero(valid)[bad])), one_line(f"{present[bad]!r:.60}")
        raise W2VError(f"{where}: an order is a number or a date such as 2024-12-31, not {example}") from error
    values = np.zeros(len(valid), numbers.dtype)
    values[valid] = numbers
    return _order_of_numbers(values, valid)


def _first_without_order(objects: list[Any]) -> int:
    """Return the number of the first object that is neither a number nor a date, or is not what the first object is."""
    for number, each in enumerate(objects):
        try:
            _numbers_of([objects[0], each])
        except ORDER_ERRORS:
            return number
    return 0


def _numbers_of(objects: list[Any]) -> NDArray[Any]:
    """Return numbers, texts of numbers, or dates as int64 or float64. Raise ValueError or TypeError for others."""
    if not objects:
        return np.zeros(0, np.int64)
    values = np.array(objects)
    if values.dtype.kind in "iuf":
        return values
    if values.dtype.kind == "U":
        for dtype in (np.int64, np.float64):
            with suppress(ValueError, OverflowError):
                return values.astype(dtype)
        objects = [text.removesuffix("Z") for text in objects]
    return np.array(objects, "M8[us]").view(np.int64)


# -- sorting ----------------------------------------------------------------------------------------


class Rows:
    """The rows of a long table as ids, in temporary files.

    Attributes:
        order_type: The type of the values that order the rows, or None.
    """

    def __init__(self, folder: Path, order_type: np.dtype[Any] | None) -> None:
        """Create the files in a folder."""
        self._folder, self.order_type = folder, order_type
        self._types: list[Any] = [np.uint32, np.uint32, *([] if order_type is None else [order_type])]
        self._files = [cast(BinaryIO, tempfile.TemporaryFile(dir=folder)) for _ in self._types]  # noqa: SIM115

    def add(self, items: NDArray[np.uint32], sessions: NDArray[np.uint32], order: NDArray[Any] | None) -> None:
        """Append rows."""
        for file, values in zip(self._files, (items, sessions, order), strict=False):
            assert values is not None
            file.write(np.ascontiguousarray(values).data)

    def check_space(self, share: float) -> None:
        """Raise W2VError if the disk is too small for the table. `share` is the share of the rows added so far."""
        items, written = self._files[0], sum(file.tell() for file in self._files)
        copies = 1 + (items.tell() / share > ROWS_IN_MEMORY * np.dtype(self._types[0]).itemsize)  # see `sessions`
        check_disk_space(items, self._folder, copies * written / share - written, "the table", ANOTHER_FOLDER)

    def close(self) -> None:
        """Close the files, which frees their disk space."""
        for file in self._files:
            file.close()

    def sessions(self, counts: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
        """Yield the items of consecutive sessions, and the number of items of each session.

        Sessions are in the order of their ids. Rows of the same order, or without one, stay in the order of the table.

        Args:
            counts: The number of rows of each session, (sessions,); the ids of sessions begin at FIRST_TYPE.
        """
        ends = np.cumsum(counts)
        # Each part ends with the first session that reaches the next multiple of ROWS_IN_MEMORY.
        wanted = np.arange(ROWS_IN_MEMORY, ends[-1] + ROWS_IN_MEMORY, ROWS_IN_MEMORY)
        last = np.unique(np.minimum(np.searchsorted(ends, wanted), len(ends) - 1))
        part_ends = ends[last]  # in rows
        rows = self._divided(last, part_ends) if len(last) > 1 else self
        start = first = 0
        with closing(rows):
            for end, last_session in zip(part_ends.tolist(), last.tolist(), strict=True):
                items, sessions, *order = rows._read(start, end)
                yield items[np.lexsort((*order, sessions))], counts[first : last_session + 1]
                start, first = end, last_session + 1

    def _read(self, start: int, end: int) -> list[NDArray[Any]]:
        """Return the columns of some rows."""
        columns = []
        for file, kind in zip(self._files, self._types, strict=True):
            size = np.dtype(kind).itemsize
            file.seek(start * size)
            columns.append(np.frombuffer(file.read((end - start) * size), kind))
        return columns

    def _divided(self, last: NDArray[np.int64], part_ends: NDArray[np.int64]) -> Rows:
        """Return the same rows, divided into parts of consecutive sessions, and close these files.

        Args:
            last: The last session of each part.
            part_ends: The number of rows up to the end of each part.
        """
        divided = Rows(self._folder, self.order_type)
        next_rows = np.append(0, part_ends[:-1])  # where the next row of each part is written
        for start in range(0, int(part_ends[-1]), ROWS_IN_MEMORY):
            columns = self._read(start, min(start + ROWS_IN_MEMORY, int(part_ends[-1])))
            part = np.searchsorted(last, columns[1].astype(np.int64) - FIRST_TYPE)
            by_part = np.argsort(part, kind="stable")
            sizes = np.bincount(part, minlength=len(last))
            for file, values in zip(divided._files, columns, strict=True):
                values, begin = values[by_part], 0
                for number in np.flatnonzero(sizes).tolist():
                    file.seek(int(next_rows[number]) * values.itemsize)
                    file.write(values[begin : begin + sizes[number]].data)
                    begin += int(sizes[number])
            next_rows += sizes
        self.close()
        return divided
