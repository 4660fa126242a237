"""Sessions: lists of items, such as the products that a customer bought, read from lists and from columns of tables.

An item is text or a number. It is a token of its own, so it may contain white space. Numbers are stored as text, in
decimal digits, and a `KeyType` says that they are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError, one_line
from w2v._text._text import Items, decimal_words
from w2v._text.columns import encode
from w2v._text.tables import as_numpy, is_text, validity
from w2v._text.words import KeyType, Words, is_missing, is_number

ITEMS_AT_ONCE = 1 << 17  # approximate number of items in a SessionBlock
Place = Callable[[int], str]  # returns the place of a key by its number, for messages
NESTED = (list, dict, set, frozenset, bytes, bytearray, np.ndarray)  # types of objects that are not items


@dataclass(frozen=True)
class Keys:
    """Items, or names of sessions, as text.

    Attributes:
        blob, offsets, numbers: See w2v._text._text.Items.
        key_type: "int" if all keys are numbers; None if the table does not say, as in CSV.
    """

    blob: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    numbers: NDArray[np.int32] | None
    key_type: KeyType | None

    def __len__(self) -> int:
        return len(self.offsets) - 1 if self.numbers is None else len(self.numbers)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of bytes of each key."""
        lengths = np.diff(self.offsets)
        return lengths if self.numbers is None else lengths[self.numbers]

    def take(self, rows: NDArray[np.int64]) -> Keys:
        """Return some of the keys, without a copy of their bytes."""
        if len(rows) == len(self):
            return self
        return replace(self, numbers=(rows if self.numbers is None else self.numbers[rows]).astype(np.int32))

    @property
    def words(self) -> Words:
        """The keys as text."""
        words = Words(self.blob, self.offsets)
        return words if self.numbers is None else words.take(self.numbers.astype(np.int64))

    def tolist(self) -> list[Any]:
        """Return the keys as a list of str or, if the key type is "int", of int."""
        return self.words.to_ints() if self.key_type == "int" else self.words.tolist()

    def followed_by(self, others: Keys, prefix: bytes) -> Keys:
        """Return these keys, and then the others with a prefix."""
        words, at = others.words, np.repeat(others.words.offsets[:-1], len(prefix))
        blob = np.insert(words.blob, at, np.tile(np.frombuffer(prefix, np.uint8), len(words)))
        joined = self.words.concat(Words(blob, words.offsets + len(prefix) * np.arange(len(words) + 1)))
        return Keys(joined.blob, joined.offsets, None, self.key_type)

    def as_one_session(self) -> Items:
        """Return the keys as the items of one session."""
        return Items(self.blob, self.offsets, np.array([len(self)]), self.numbers)

    def index_at(self, position: int) -> int:
        """Return the first key that contains a position of the blob."""
        word = int(np.searchsorted(self.offsets, position, side="right")) - 1
        return word if self.numbers is None else int(np.flatnonzero(self.numbers == word)[0])


NO_KEYS = Keys(np.empty(0, np.uint8), np.zeros(1, np.int64), None, None)


@dataclass(frozen=True)
class SessionBlock:
    """Consecutive sessions.

    Attributes:
        keys: The items of all sessions. An item without bytes is missing.
        lengths: int64 (sessions,), the number of items of each session, including missing ones.
        name: The file, for messages.
        row: The number of the first session, for messages.
        missing: The number of sessions that are missing; their length is 0.
        missing_items: The number of missing items that are not among the keys.
        unit: What `row` counts: rows from 1, or the sessions of a Python list from 0.
        bytes_done: See TextBlock.
        names: The name of each session, if the sessions come from a long table and names are wanted.
    """

    keys: Keys
    lengths: NDArray[np.int64]
    name: str
    row: int
    missing: int = 0
    missing_items: int = 0
    unit: str = "row"
    bytes_done: int = 0
    names: Keys | None = None

    @classmethod
    def of(
        cls,
        keys: Keys,
        valid: NDArray[np.bool_],
        lengths: NDArray[np.int64],
        name: str,
        row: int,
        missing: int,
        unit: str,
    ) -> SessionBlock:
        """Return sessions of these lengths, given which of their items have a key: bool (items,)."""
        missing_items = len(valid) - len(keys)
        if missing_items:
            ends, present = np.cumsum(lengths), np.append(0, np.cumsum(valid))
            lengths = present[ends] - present[ends - lengths]
        return cls(keys, lengths, name, row, missing, missing_items, unit)

    @cached_property
    def items(self) -> Items:
        """The items, for Types.scan and Lookup.find."""
        return Items(self.keys.blob, self.keys.offsets, self.lengths, self.keys.numbers)

    @property
    def all_missing_items(self) -> int:
        """The number of missing items."""
        return self.missing_items + int(np.count_nonzero(self.keys.lengths == 0))

    @property
    def empty(self) -> int:
        """The number of sessions without items, except missing ones."""
        ends = np.cumsum(self.lengths)
        present = np.append(0, np.cumsum(self.keys.lengths > 0))
        return int(np.count_nonzero(present[ends] == present[ends - self.lengths])) - self.missing

    def locate(self, position: int) -> str:
        """Return the place of the first item that contains a position of the keys' blob, for messages."""
        return _place(self.name, self.unit, self.row, self.lengths)(self.keys.index_at(position))


def _place(name: str, unit: str, row: int, lengths: NDArray[np.int64]) -> Place:
    """Return a function that returns the place of an item, such as "x.parquet, row 7"."""
    return lambda item: f"{name}, {unit} {row + int(np.searchsorted(np.cumsum(lengths), item, side='right')):,}"


# -- columns of pyarrow -----------------------------------------------------------------------------


def check_key_type(pyarrow: Any, kind: Any, where: str) -> None:
    """Raise W2VError if a pyarrow type is neither text nor numbers. The message begins with `where`."""
    types = pyarrow.types
    value_type = kind.value_type if types.is_dictionary(kind) else kind
    is_number = types.is_integer(value_type) or types.is_float32(kind) or types.is_float64(kind)
    if not (is_text(pyarrow, kind) or is_number or types.is_null(value_type)):
        raise W2VError(f"{where} holds {one_line(kind)}: items and sessions are text or whole numbers: convert them")


def keys_of_array(pyarrow: Any, array: Any, place: Place) -> tuple[Keys, NDArray[np.bool_]]:
    """Return the values of an array, and which of its elements have a value, bool (n,).

    `check_key_type` must accept the type of the array. Raises W2VError, with the place, if a number is not whole.
    """
    if pyarrow.types.is_floating(array.type):
        return _keys_of_floats(as_numpy(array.fill_null(np.nan) if array.null_count else array), place)
    valid = validity(array)
    if pyarrow.types.is_string_view(array.type):
        array = array.cast(pyarrow.large_string())
    values = array if valid.all() else array.drop_null()
    if not pyarrow.types.is_dictionary(values.type):
        return _keys_of_values(pyarrow, values), valid
    numbers, dictionary = as_numpy(values.indices).astype(np.int32), values.dictionary
    if dictionary.null_count:
        known = validity(dictionary)
        valid[valid] = known[numbers]
        numbers = (np.cumsum(known) - 1).astype(np.int32)[numbers[known[numbers]]]
        dictionary = dictionary.drop_null()
    return replace(_keys_of_values(pyarrow, dictionary), numbers=numbers), valid


def _keys_of_values(pyarrow: Any, values: Any) -> Keys:
    """Return the keys in an array without nulls."""
    types, kind = pyarrow.types, values.type
    if types.is_null(kind):  # an array of this type without nulls has no values at all
        return NO_KEYS
    if types.is_integer(kind):
        return _keys_of_numbers(as_numpy(values))
    _, offset_buffer, data = values.buffers()
    offset_type = np.dtype(np.int32 if types.is_string(kind) else np.int64)
    offsets = np.zeros(1, np.int64)
    if len(values):
        begin = values.offset * offset_type.itemsize
        offsets = np.frombuffer(offset_buffer, offset_type, len(values) + 1, begin).astype(np.int64)
    blob = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    return Keys(blob, offsets - offsets[0], None, "str")


def _keys_of_floats(numbers: NDArray[Any], place: Place) -> tuple[Keys, NDArray[np.bool_]]:
    """Return whole numbers that are stored as floats, as pandas does if some of them are missing (NaN)."""
    valid = ~np.isnan(numbers)
    present = numbers[valid]
    whole = np.abs(present) < 1 << 53
    whole[whole] = present[whole] == np.rint(present[whole])
    if not whole.all():
        bad = int(np.flatnonzero(valid)[~whole][0])
        raise W2VError(
            f"{place(bad)}: the number {numbers[bad]}: items and sessions are text or whole numbers: convert them"
        )
    return _keys_of_numbers(present.astype(np.int64)), valid


def _keys_of_numbers(numbers: NDArray[Any]) -> Keys:
    """Return integers of any width as keys."""
    bits = numbers.view(np.int64) if numbers.dtype == np.uint64 else numbers.astype(np.int64)
    return Keys(*decimal_words(bits, numbers.dtype == np.uint64), None, "int")


def block_of_array(pyarrow: Any, array: Any, name: str, row: int) -> SessionBlock:
    """Return the sessions in an array of lists; see SessionBlock."""
    counted = pyarrow.compute.list_value_length(array)
    is_present = validity(counted)
    lengths = np.zeros(len(array), np.int64)
    lengths[is_present] = as_numpy(counted.drop_null())
    keys = keys_of_array(pyarrow, array.flatten(), _place(name, "row", row, lengths))
    return SessionBlock.of(*keys, lengths, name, row, int(np.count_nonzero(~is_present)), "row")


# -- Python objects ---------------------------------------------------------------------------------


def keys_of_objects(objects: list[Any] | NDArray[Any], place: Place) -> tuple[Keys, NDArray[np.bool_]]:
    """Return Python objects, or a NumPy array, as keys, and which of the objects are not missing, bool (n,).

    An object that is neither text nor a number becomes text by `str`.

    Raises:
        W2VError: If an object is a list or another object that holds several values. The message gives its place.
    """
    everything = np.ones(len(objects), bool)
    if isinstance(objects, np.ndarray):
        if objects.dtype.kind in "iu":
            return _keys_of_numbers(objects), everything
        if objects.dtype.kind == "f":
            return _keys_of_floats(objects, place)
        objects = cast(list[Any], objects.tolist())
    kinds = {*map(type, objects)}
    if kinds == {str}:
        return _keys_of_texts(objects, "str"), everything
    if kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        numbers = np.array(objects)
        if numbers.dtype.kind in "iu":  # otherwise some of the numbers have more than 64 bits
            return _keys_of_numbers(numbers), everything
    valid = np.array([not is_missing(each) for each in objects], bool)
    for number, each in enumerate(objects):
        if isinstance(each, NESTED):
            kind = one_line(f"{each!r:.60} is of type {type(each).__name__}")
            raise W2VError(f"{place(number)}: the item {kind}: give text, numbers or other single keys")
    present = [each for each, is_valid in zip(objects, valid.tolist(), strict=True) if is_valid]
    key_type: KeyType = "int" if present and all(map(is_number, present)) else "str"
    return _keys_of_texts([str(each) for each in present], key_type), valid


def _keys_of_texts(texts: Sequence[str], key_type: KeyType) -> Keys:
    joined = "".join(texts)
    if joined.isascii():
        blob, lengths = joined.encode(), map(len, texts)
    else:
        encoded = [encode(text) for text in texts]
        blob, lengths = b"".join(encoded), map(len, encoded)
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, len(texts)), out=offsets[1:])
    return Keys(np.frombuffer(blob, np.uint8), offsets, None, key_type)


def as_session(session: Any, where: str) -> list[Any]:
    """Return a session as a list of items. Raise W2VError, with the start `where`, for an object of another type."""
    if isinstance(session, list):
        return session
    if isinstance(session, np.ndarray):
        values: Any = session.tolist()
        if session.dtype.kind == "f":  # pandas stores whole numbers like this if some are missing
            values = [int(value) if value.is_integer() else value for value in values]
        session = values
    if isinstance(session, str | bytes | Mapping) or not isinstance(session, Iterable):
        kind = type(session).__name__
        advice = "tokens, such as text.split()" if isinstance(session, str) else "items for each session"
        raise W2VError(f"{where} is of type {kind}: give a list of {advice}")
    return list(session)


class SessionBuilder:
    """Collects sessions that are Python lists into blocks.

    Attributes:
        row: The number of the first session since the last `take`, for messages.
        size: The number of items and sessions collected since then.
    """

    def __init__(self, name: str, row: int = 1, unit: str = "row") -> None:
        """Begin at a row; see SessionBlock."""
        self._name, self.row, self._unit = name, row, unit
        self._clear()

    def _clear(self) -> None:
        self._items: list[Any] = []
        self._lengths: list[int] = []
        self.size = self._missing = 0

    def add(self, session: list[Any] | None) -> None:
        """Add a session; None if it is missing."""
        self._missing += session is None
        self._items += session or ()
        self._lengths.append(len(session or ()))
        self.size += 1 + self._lengths[-1]

    def take(self) -> SessionBlock:
        """Return the sessions that were added since the last call.

        Raises:
            W2VError: If an item is of an unsuitable type.
        """
        lengths = np.array(self._lengths, np.int64)
        keys = keys_of_objects(self._items, _place(self._name, self._unit, self.row, lengths))
        block = SessionBlock.of(*keys, lengths, self._name, self.row, self._missing, self._unit)
        self.row += len(lengths)
        self._clear()
        return block
