"""Check the sizes that Parquet and Arrow files declare, before pyarrow allocates memory for them.

Parquet describes its columns and pages in Thrift's compact protocol. Arrow describes its schema and batches in
flatbuffers. A small file can declare anything: a page that decompresses to gigabytes, a million columns, or the same
batch a thousand times. The functions raise W2VError if a file declares too much, and ValueError, LookupError or
struct.error if its metadata cannot be parsed.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Container, Iterator
from enum import IntEnum
from typing import IO, NamedTuple

from w2v.errors import W2VError
from w2v.text.decompress import MAX_RATIO

MAX_CONTENT_BYTES = 16 << 20  # any file may unpack to this many bytes, a large file to MAX_RATIO times its size
VALUE_BYTES = 8  # memory that a reader may need for each value, in addition to its bytes
PAGE_BYTES = 5000  # cost of each page, so that a file cannot list the same pages again and again
OBJECT_BYTES = 1 << 10  # memory that pyarrow may need for the metadata of a field or a column chunk
STRUCT_BYTES = 1 << 8  # memory that pyarrow may need for any other struct in a footer
MAX_METADATA_BYTES = 32 << 20  # memory that the metadata of any file may need, in addition to the size of the file


def max_content(size: int) -> int:
    """Return the number of bytes that a file of `size` bytes may unpack to."""
    return max(MAX_CONTENT_BYTES, MAX_RATIO * size)


class Budget:
    """The bytes that are left for the content of a file of `size` bytes, and those left for its metadata.

    Messages start with `where`.
    """

    def __init__(self, where: str, size: int) -> None:
        self.where = where
        self._content = max_content(size)
        self._metadata = MAX_METADATA_BYTES + size

    def take_content(self, size: int) -> None:
        """Subtract `size` bytes of content.

        Raises:
            W2VError: If fewer bytes are left.
        """
        self._content -= _non_negative(size)
        if self._content < 0:
            raise W2VError(
                f"{self.where}: refused: its columns unpack to more than {MAX_RATIO} times its size; if you trust it, "
                "write it again without compression"
            )

    def take_metadata(self, size: int) -> None:
        """Subtract `size` bytes of metadata.

        Raises:
            W2VError: If fewer bytes are left.
        """
        self._metadata -= _non_negative(size)
        if self._metadata < 0:
            raise W2VError(f"{self.where}: refused: it describes too many columns for a file of its size")


def _non_negative(size: int) -> int:
    """Return `size`. Raise ValueError if it is negative."""
    if size < 0:
        raise ValueError(f"a size of {size}")
    return size


# -- Parquet: Thrift's compact protocol -------------------------------------------------------------


class Kind(IntEnum):
    """The types of Thrift's values."""

    TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)


FieldPath = tuple[int, ...]  # the field numbers from the outermost struct to a field

# Element types of the lists in a footer. Parquet readers use these types and ignore the types declared in the file.
LISTS: dict[FieldPath, int] = {
    # Schema, row groups, key-value metadata, column orders.
    (2,): Kind.STRUCT, (4,): Kind.STRUCT, (5,): Kind.STRUCT, (7,): Kind.STRUCT,
    # Column chunks and sorting columns of a row group.
    (4, 1): Kind.STRUCT, (4, 4): Kind.STRUCT,
    # Metadata of a column chunk.
    (4, 1, 3, 2): Kind.I32, (4, 1, 3, 3): Kind.BINARY, (4, 1, 3, 8): Kind.STRUCT, (4, 1, 3, 13): Kind.STRUCT,
    (4, 1, 3, 16, 2): Kind.I64, (4, 1, 3, 16, 3): Kind.I64, (4, 1, 3, 17, 2): Kind.I32, (4, 1, 8, 2, 1): Kind.BINARY,
}  # fmt: skip
GROUPS, COLUMNS = (4,), (4, 1)  # the lists of row groups and of their column chunks
# Fields of a column chunk: number of values, stored bytes, start of the data pages, start of the dictionary page.
CHUNK = (4, 1, 3, 5), (4, 1, 3, 7), (4, 1, 3, 9), (4, 1, 3, 11)


class Chunk(NamedTuple):
    """A column chunk (one column of a row group): its number of values and its position in the file."""

    values: int
    begin: int
    end: int


class _Thrift:
    """A struct parsed from Thrift's compact protocol.

    If a budget is given, the struct is the footer of a file, and the memory that pyarrow needs for each struct in its
    lists is subtracted from the budget.

    Attributes:
        numbers: The 32-bit integers by field, and the 64-bit integers of the fields in CHUNK.
        groups: The column chunks of each row group in a footer.
        end: The position after the last byte.
    """

    def __init__(self, data: bytes, budget: Budget | None = None) -> None:
        self._data, self._budget = data, budget
        self.numbers: dict[FieldPath, int] = {}
        self.groups: list[list[Chunk]] = []
        self.end = 0
        try:
            self._struct(())
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error

    def _byte(self) -> int:
        self.end += 1
        return self._data[self.end - 1]

    def _skip(self, size: int) -> None:
        self.end += size
        if self.end > len(self._data):
            raise IndexError("it ends too early")

    def _integer(self) -> int:
        found, self.end = _varint(self._data, self.end)
        return (found >> 1) ^ -(found & 1)

    def _size(self) -> int:
        found, self.end = _varint(self._data, self.end)
        return found

    def _struct(self, path: FieldPath) -> None:
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            if head & 15 not in (Kind.TRUE, Kind.FALSE):  # a boolean field has no further bytes
                self._value(head & 15, (*path, number))

    def _value(self, kind: int, path: FieldPath) -> None:
        match kind:
            case Kind.TRUE | Kind.FALSE | Kind.BYTE:
                self._skip(1)
            case Kind.I16 | Kind.I32 | Kind.I64:
                number = self._integer()
                if kind == (Kind.I64 if path in CHUNK else Kind.I32):
                    self.numbers[path] = number
            case Kind.DOUBLE:
                self._skip(8)
            case Kind.BINARY:
                self._skip(self._size())
            case Kind.LIST | Kind.SET:
                self._list(path)
            case Kind.MAP:
                size = self._size()
                kinds = self._byte() if size else 0
                for _ in range(size):
                    self._value(kinds >> 4, path)
                    self._value(kinds & 15, path)
            case Kind.STRUCT:
                self._struct(path)
            case Kind.UUID:
                self._skip(16)
            case _:
                raise ValueError(f"a value of the unknown type {kind}")

    def _list(self, path: FieldPath) -> None:
        head = self._byte()
        kind = head & 15
        size = self._size() if head >> 4 == 15 else head >> 4
        if size and kind != LISTS.get(path, kind):
            raise ValueError("a list with elements of a wrong type")
        if path == GROUPS:
            self.groups = []
        for _ in range(size):
            if kind == Kind.STRUCT and self._budget:
                self._list_struct(path)
            else:
                self._value(kind, path)

    def _list_struct(self, path: FieldPath) -> None:
        """Read a struct in a list of a footer."""
        assert self._budget
        self._budget.take_metadata(OBJECT_BYTES if path == COLUMNS else STRUCT_BYTES)
        if path == GROUPS:
            self.groups.append([])
        if path != COLUMNS:
            self._struct(path)
            return
        for field in CHUNK:
            self.numbers.pop(field, None)
        self._struct(path)
        values, stored, begin, dictionary = (self.numbers.get(field, 0) for field in CHUNK)
        begin = dictionary if 0 < dictionary < begin else begin
        self.groups[-1].append(Chunk(values, begin, begin + stored))


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Read a number stored as 7 bits per byte, lowest bits first. Return it and the position after it."""
    value = 0
    for count, byte in enumerate(data[position : position + 10]):
        value |= (byte & 127) << 7 * count
        if byte < 128:
            return value, position + count + 1
    raise IndexError("a number does not end")


def check_footer(file: IO[bytes], size: int, budget: Budget) -> list[list[Chunk]]:
    """Check the footer of a Parquet file of `size` bytes. Return the column chunks of each row group."""
    file.seek(max(0, size - 8))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or length > size - 12:
        raise ValueError("its end is missing")
    budget.take_metadata(4 * length)  # pyarrow copies strings
    file.seek(size - 8 - length)
    footer = file.read(length)
    groups = _Thrift(footer, budget).groups
    for key in re.finditer(rb"ARROW:schema", footer):  # pyarrow also stores an Arrow schema, as a string
        begin = key.end() + 1
        count, begin = _varint(footer, begin)
        if footer[key.end()] != 1 << 4 | Kind.BINARY:
            raise ValueError("the Arrow schema is not a string")
        flat, kind, content = _message(base64.b64decode(footer[begin : begin + count], validate=True))
        if kind == SCHEMA:
            _check_fields(flat, content, budget)
    return groups


# Fields of a page header: type of the page, decompressed and stored bytes, number of dictionary entries; for each type
# of data page, the number of values and their encoding.
PAGE_TYPE, UNPACKED, STORED, ENTRIES = (1,), (2,), (3,), (7, 1)
VALUES, ENCODINGS = {0: (5, 1), 3: (8, 1)}, {0: (5, 2), 3: (8, 4)}
DELTA_BYTE_ARRAY = 7  # an encoding that stores only the part of a string that differs from the previous string
DELTA_COPIES = 6  # copies that pyarrow makes of such a string
HEADER_BYTES = 1 << 10, 1 << 20  # bytes read of a page header: at first, and at most
OMITTED_BYTES = 100  # bytes that old writers leave out of the size of a column chunk


def check_pages(file: IO[bytes], chunk: Chunk, budget: Budget, has_unique_strings: bool = False) -> int:
    """Check the pages of a column chunk.

    Args:
        file: The file.
        chunk: The place of the column chunk.
        budget: The content of the pages is subtracted from it.
        has_unique_strings: True if the reader keeps only one copy of equal strings. Then strings with a shared prefix
            count with their full lengths.

    Returns:
        An upper limit for the bytes of a string that is stored once but used by many rows (from a dictionary, or as a
        shared prefix); 0 if the chunk stores every string separately.
    """
    longest = values_read = 0
    begin = chunk.begin
    while values_read < chunk.values and begin < chunk.end + OMITTED_BYTES:
        header = _header(file, begin)
        numbers = header.numbers
        kind, unpacked, entries = numbers[PAGE_TYPE], numbers[UNPACKED], numbers.get(ENTRIES, 0)
        values = numbers[VALUES[kind]] if kind in VALUES else 0
        budget.take_content(
            PAGE_BYTES + _non_negative(unpacked) + VALUE_BYTES * (_non_negative(values) + _non_negative(entries))
        )
        if kind in ENCODINGS and numbers[ENCODINGS[kind]] == DELTA_BYTE_ARRAY:
            longest = max(longest, DELTA_COPIES * unpacked)
            if has_unique_strings:
                budget.take_content(values * unpacked)
        elif entries:
            longest = max(longest, unpacked)
        values_read += values
        begin += header.end + _non_negative(numbers[STORED])
    return longest


def _header(file: IO[bytes], position: int) -> _Thrift:
    """Read the page header at a position in a file."""
    for size in HEADER_BYTES:
        file.seek(position)
        data = file.read(size)
        try:
            return _Thrift(data)
        except IndexError:
            if len(data) < size:
                raise
    raise ValueError("the header of a page is too long")


# -- Arrow: flatbuffers -----------------------------------------------------------------------------

SCHEMA, DICTIONARY_BATCH, RECORD_BATCH = 1, 2, 3  # types of messages
CONTINUATION = b"\xff\xff\xff\xff"  # the first bytes of a message, except in old versions
MAGIC = b"ARROW1"
# Field numbers in the tables of Arrow's flatbuffers.
FOOTER_SCHEMA, FOOTER_DICTIONARIES, FOOTER_BATCHES = 1, 2, 3
MESSAGE_VERSION, MESSAGE_KIND, MESSAGE_CONTENT, MESSAGE_BODY, MESSAGE_CUSTOM_METADATA = range(5)
SCHEMA_FIELDS, SCHEMA_CUSTOM_METADATA = 1, 2
FIELD_NAME, FIELD_TYPE_KIND, FIELD_TYPE, FIELD_CHILDREN, FIELD_CUSTOM_METADATA = 0, 2, 3, 5, 6
BATCH_ROWS, BATCH_BUFFERS, BATCH_COMPRESSION = 0, 2, 3
DICTIONARY_DATA = 1
TIMESTAMP, UNION = 10, 14  # types that have a string or vector in field 1
VERSION_5 = 4  # the first version that stores the compression in the batch; older versions store it in the metadata
BUFFER_BYTES = 128  # memory that pyarrow may need for each buffer, in addition to its bytes
BLOCK, BUFFER = struct.Struct("<qi4xq"), struct.Struct("<qq")
PREFIX = struct.Struct("<4sI")  # of a message in a stream: CONTINUATION, and the length of what describes it


class _Flat:
    """The tables of a flatbuffer. A table is identified by its position."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.root = self._target(0)

    def _number(self, layout: str, position: int) -> int:
        if position < 0:
            raise ValueError("a negative position")
        (value,) = struct.unpack_from(layout, self._data, position)
        return int(value)

    def _target(self, position: int) -> int:
        return position + self._number("<I", position)

    def _field(self, table: int, field: int) -> int:
        """Return the position of a field, or 0 if it is missing."""
        vtable = table - self._number("<i", table)
        entry = 4 + 2 * field
        offset = self._number("<H", vtable + entry) if entry < self._number("<H", vtable) else 0
        return table + offset if offset else 0

    def number(self, table: int, field: int, layout: str) -> int:
        """Return a number, or 0 if the field is missing."""
        position = self._field(table, field)
        return self._number(layout, position) if position else 0

    def table(self, table: int, field: int) -> int:
        """Return the position of an inner table, or 0 if it is missing."""
        position = self._field(table, field)
        return self._target(position) if position else 0

    def length(self, table: int, field: int) -> int:
        """Return the length of a string or vector."""
        position = self.table(table, field)
        return self._number("<I", position) if position else 0

    def tables(self, table: int, field: int) -> Iterator[int]:
        """Yield the positions of the tables in a vector."""
        position = self.table(table, field)
        for number in range(self.length(table, field)):
            yield self._target(position + 4 + 4 * number)

    def structs(self, table: int, field: int, layout: struct.Struct) -> Iterator[tuple[int, ...]]:
        """Yield the structs in a vector."""
        position = self.table(table, field)
        for number in range(self.length(table, field)):
            yield layout.unpack_from(self._data, position + 4 + layout.size * number)


def _message(data: bytes) -> tuple[_Flat, int, int]:
    """Return a message, its type, and the position of its content."""
    flat = _Flat(data[8:] if data.startswith(CONTINUATION) else data[4:])
    return flat, flat.number(flat.root, MESSAGE_KIND, "<B"), flat.table(flat.root, MESSAGE_CONTENT)


def _check_fields(flat: _Flat, schema: int, budget: Budget) -> None:
    """Subtract the fields of a schema from the budget.

    The budget ends the loop if a malicious file refers to one table many times or nests a table in itself.
    """
    _check_custom_metadata(flat, schema, SCHEMA_CUSTOM_METADATA, budget)
    stack = [flat.tables(schema, SCHEMA_FIELDS)]
    while stack:
        field = next(stack[-1], None)
        if field is None:
            stack.pop()
            continue
        kind = flat.table(field, FIELD_TYPE)
        has_vector = kind and flat.number(field, FIELD_TYPE_KIND, "<B") in (TIMESTAMP, UNION)
        details = flat.length(kind, 1) if has_vector else 0
        budget.take_metadata(OBJECT_BYTES + flat.length(field, FIELD_NAME) + details)
        _check_custom_metadata(flat, field, FIELD_CUSTOM_METADATA, budget)
        stack.append(flat.tables(field, FIELD_CHILDREN))


def _check_custom_metadata(flat: _Flat, table: int, field: int, budget: Budget) -> None:
    """Subtract the keys and values in a table's custom metadata from the budget."""
    for pair in flat.tables(table, field):
        budget.take_metadata(64 + flat.length(pair, 0) + flat.length(pair, 1))


def check_batches(file: IO[bytes], size: int, budget: Budget, buffers: Container[int] | None = None) -> int:
    """Check the batches of an Arrow file of `size` bytes.

    Args:
        buffers: The numbers of the buffers that will be read from each batch, or None for all. A buffer that will not
            be read counts with its stored size, even if it would decompress to more. Dictionaries are always read.

    Returns:
        The number of rows of all batches.
    """
    file.seek(max(0, size - len(MAGIC) - 4))
    tail = file.read()
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length > size - len(tail):
        raise ValueError("its end is missing")
    file.seek(size - len(tail) - length)
    flat = _Flat(file.read(length))
    _check_fields(flat, flat.table(flat.root, FOOTER_SCHEMA), budget)
    for begin, length, _ in flat.structs(flat.root, FOOTER_DICTIONARIES, BLOCK):
        _check_batch(file, size, begin, length, budget, None)
    rows = 0
    for begin, length, _ in flat.structs(flat.root, FOOTER_BATCHES, BLOCK):
        rows += _check_batch(file, size, begin, length, budget, buffers)
    return rows


def check_stream(file: IO[bytes], size: int, budget: Budget, buffers: Container[int] | None = None) -> int:
    """Check the messages of an Arrow stream of `size` bytes; see `check_batches`.

    Returns:
        The number of rows of all batches.
    """
    begin = rows = 0
    while True:
        file.seek(begin)
        prefix = file.read(PREFIX.size)
        if not prefix and begin:  # the marker of the end may be missing
            return rows
        continuation, length = PREFIX.unpack(prefix)
        if continuation != CONTINUATION or length > size - begin:
            raise ValueError("a message of its stream is damaged")
        if not length:
            return rows
        flat, kind, content = _message(prefix + file.read(length))
        length += PREFIX.size
        if kind == SCHEMA:
            _check_fields(flat, content, budget)
        elif kind == RECORD_BATCH:
            rows += _check_batch(file, size, begin, length, budget, buffers)
        else:
            _check_batch(file, size, begin, length, budget, None)
        begin += length + _non_negative(flat.number(flat.root, MESSAGE_BODY, "<q"))


def _check_batch(
    file: IO[bytes], size: int, begin: int, length: int, budget: Budget, buffers: Container[int] | None
) -> int:
    """Check the batch with the message of `length` bytes at `begin`, and return its number of rows."""
    budget.take_content(length)
    file.seek(_non_negative(begin))
    flat, kind, batch = _message(file.read(length))
    if kind == DICTIONARY_BATCH:
        batch = flat.table(batch, DICTIONARY_DATA)
    begin += length
    end = begin + _non_negative(flat.number(flat.root, MESSAGE_BODY, "<q"))
    if end > size:
        raise ValueError("a batch ends after the file")
    is_old = flat.number(flat.root, MESSAGE_VERSION, "<h") < VERSION_5 and flat.length(
        flat.root, MESSAGE_CUSTOM_METADATA
    )
    is_packed = is_old or flat.table(batch, BATCH_COMPRESSION)
    for number, (offset, stored) in enumerate(flat.structs(batch, BATCH_BUFFERS, BUFFER)):
        if begin + _non_negative(offset) + _non_negative(stored) > end:
            raise ValueError("a buffer ends after its batch")
        unpacked = 0
        if is_packed and stored and (buffers is None or number in buffers):
            file.seek(begin + offset)
            unpacked = int.from_bytes(file.read(8), "little", signed=True)  # negative if not compressed
        budget.take_content(BUFFER_BYTES + max(stored, unpacked))
    return _non_negative(flat.number(batch, BATCH_ROWS, "<q"))
