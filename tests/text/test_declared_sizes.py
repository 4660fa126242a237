"""The sizes that Parquet and Arrow files declare, compared with pyarrow and with metadata encoded by hand."""

import io
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from w2v.errors import W2VError
from w2v.text import declared_sizes
from w2v.text.declared_sizes import BUFFER_BYTES, OBJECT_BYTES, PAGE_BYTES, STRUCT_BYTES, VALUE_BYTES, Budget, Chunk
from w2v.text.tables import DAMAGE

PAIR_BYTES = 64  # cost of a key and value of metadata, in addition to their bytes


class RecordingBudget(Budget):
    """A budget that keeps a list of all sizes that were subtracted."""

    def __init__(self, size: int = 0) -> None:
        super().__init__("file", size)
        self.content: list[int] = []
        self.metadata: list[int] = []

    def take_content(self, size: int) -> None:
        self.content.append(size)
        super().take_content(size)

    def take_metadata(self, size: int) -> None:
        self.metadata.append(size)
        super().take_metadata(size)


def test_a_budget_can_be_used_up_but_not_exceeded() -> None:
    for size, content, metadata in ((0, 16 << 20, 32 << 20), (1 << 20, 500 << 20, 33 << 20)):
        assert declared_sizes.max_content(size) == content
        budget = Budget("file", size)
        for take, limit, message in (
            (budget.take_content, content, r"^file: refused: its columns unpack to more than 500 times its size; if "),
            (budget.take_metadata, metadata, r"^file: refused: it describes too many columns for a file of its size$"),
        ):
            take(limit - 5)
            take(5)
            take(0)
            with pytest.raises(ValueError, match="a size of -1"):
                take(-1)
            with pytest.raises(W2VError, match=message):
                take(1)


# -- Thrift's compact protocol ----------------------------------------------------------------------

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)


def varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def integer(number: int) -> bytes:
    """Encode an integer: zigzag, so that small negative numbers are short, too."""
    return varint(2 * number if number >= 0 else -2 * number - 1)


def binary(content: bytes) -> bytes:
    return varint(len(content)) + content


def list_of(kind: int, *values: bytes) -> bytes:
    head = bytes([len(values) << 4 | kind]) if len(values) < 15 else bytes([15 << 4 | kind]) + varint(len(values))
    return head + b"".join(values)


def struct(*fields: tuple[int, int, bytes]) -> bytes:
    """Encode a struct of (number, type, value). Small steps between numbers take no extra byte."""
    content, last = b"", 0
    for number, kind, value in fields:
        step = number - last
        content += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + integer(number)
        content, last = content + value, number
    return content + b"\0"


def nested(path: tuple[int, ...], kind: int, value: bytes) -> bytes:
    """Encode a footer with only this value. `path` has the field numbers from the footer down to the value.

    Row groups (4) and column chunks (1) are lists, here of one struct. The other fields on the way are structs.
    """
    number, *rest = path
    if not rest:
        return struct((number, kind, value))
    inner = nested(tuple(rest), kind, value)
    return struct((number, LIST, list_of(STRUCT, inner)) if number in (4, 1) else (number, STRUCT, inner))


VALUES = {
    "true": (TRUE, b""),
    "false": (FALSE, b""),
    "byte": (BYTE, b"\x0c"),
    "i16": (I16, integer(-300)),
    "i64": (I64, integer(1 << 62)),
    "double": (DOUBLE, b"\x15" * 8),
    "binary": (BINARY, binary(b"\x15" * 300)),
    "uuid": (UUID, b"\x15" * 16),
    "list of booleans": (LIST, list_of(TRUE, b"\1", b"\2")),
    "long list": (LIST, list_of(I64, *[integer(-number) for number in range(15)])),
    "empty list": (LIST, list_of(STRUCT)),
    "set": (SET, list_of(BINARY, binary(b"a"), binary(b"bc"))),
    "map": (MAP, varint(2) + bytes([BINARY << 4 | I32]) + 2 * (binary(b"abc") + integer(-9))),
    "map of structs": (MAP, varint(1) + bytes([I64 << 4 | STRUCT]) + integer(1 << 40) + struct((1, I32, integer(7)))),
    "empty map": (MAP, varint(0)),
    "struct": (STRUCT, struct((1, BYTE, b"\5"), (2, DOUBLE, b"\5" * 8))),
    "list of structs": (LIST, list_of(STRUCT, struct((3, UUID, b"\5" * 16)), struct())),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("number", [1, 15, 16, 3000])
def test_values_of_every_type_are_skipped(name: str, number: int) -> None:
    kind, value = VALUES[name]
    data = struct((number, kind, value), (number + 2, I32, integer(-5)), (number - 1, I32, integer(1 << 30)))
    parsed = declared_sizes._Thrift(data + b"more")
    assert parsed.end == len(data)
    assert parsed.numbers[number + 2,] == -5
    assert parsed.numbers[number - 1,] == 1 << 30
    for end in range(len(data)):
        with pytest.raises(IndexError):
            declared_sizes._Thrift(data[:end])


def test_malformed_structs_are_refused() -> None:
    for kind in (0, 14, 15):
        with pytest.raises(ValueError, match=f"a value of the unknown type {kind}"):
            declared_sizes._Thrift(struct((1, LIST, list_of(kind, b"\1"))))
    with pytest.raises(ValueError, match="nested too deeply"):
        declared_sizes._Thrift(b"\x1c" * 100_000)  # each byte begins a struct in field 1
    # A number has at most ten bytes.
    assert declared_sizes._Thrift(struct((1, BINARY, b"\x80" * 9 + b"\0"))).end == 12
    with pytest.raises(IndexError, match="a number does not end"):
        declared_sizes._Thrift(struct((1, BINARY, b"\x80" * 10 + b"\0")))


# -- footers of Parquet -----------------------------------------------------------------------------


def parquet_file(footer: bytes, data: bytes = b"") -> tuple[io.BytesIO, int]:
    content = b"PAR1" + data + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    return io.BytesIO(content), len(content)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False, "version": "1.0", "compression": "none"},
        {"data_page_version": "2.0", "row_group_size": 10, "write_page_index": True},
    ],
    ids=str,
)
def test_chunks_of_a_footer_equal_those_of_pyarrow(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "file"
    table = pa.table({f"column{number}": [f"w{row % 7}" for row in range(200)] for number in range(20)})
    parquet.write_table(table, path, **options)
    metadata = parquet.ParquetFile(path).metadata
    with path.open("rb") as file:
        groups = declared_sizes.check_footer(file, path.stat().st_size, RecordingBudget())
        assert len(groups) == metadata.num_row_groups
        for row, chunks in enumerate(groups):
            columns = [metadata.row_group(row).column(number) for number in range(20)]
            starts = [column.dictionary_page_offset or column.data_page_offset for column in columns]
            assert chunks == [
                Chunk(column.num_values, start, start + column.total_compressed_size)
                for start, column in zip(starts, columns, strict=True)
            ]
        budget = RecordingBudget()
        column = metadata.row_group(0).column(3)
        longest = declared_sizes.check_pages(file, groups[0][3], budget)
    assert bool(longest) == column.has_dictionary_page
    types = 7 * column.has_dictionary_page
    pages = len(budget.content)
    assert pages == 1 + column.has_dictionary_page
    content = sum(budget.content) - PAGE_BYTES * pages - VALUE_BYTES * (column.num_values + types)
    assert 0 < content <= column.total_uncompressed_size < content + 150 * pages  # pyarrow counts the headers of pages


def column_chunk(**numbers: int) -> bytes:
    """Encode a column chunk with these fields of its metadata. The field numbers are from parquet.thrift."""
    fields = {"values": 5, "unpacked": 6, "stored": 7, "data": 9, "index": 10, "dictionary": 11}
    content = [(fields[name], I64, integer(number)) for name, number in numbers.items()]
    return struct((2, I64, integer(4)), (3, STRUCT, struct((1, I32, integer(6)), *content)))


def footer_of(*groups: list[bytes]) -> list[tuple[int, int, bytes]]:
    rows = [
        struct((1, LIST, list_of(STRUCT, *chunks)), (2, I64, integer(1)), (3, I64, integer(1))) for chunks in groups
    ]
    return [(1, I32, integer(1)), (4, LIST, list_of(STRUCT, *rows))]


def test_numbers_of_a_chunk_do_not_pass_to_the_next() -> None:
    chunks = [
        column_chunk(values=5, unpacked=99, stored=30, data=40, index=1, dictionary=10),
        column_chunk(stored=7, data=50),
        column_chunk(values=6, stored=8, data=60, dictionary=0),
        column_chunk(values=6, stored=8, data=60, dictionary=60),
        column_chunk(values=6, stored=8, data=60, dictionary=61),
        column_chunk(values=6, stored=8, data=60, dictionary=59),
        column_chunk(),
    ]
    # A chunk begins with its dictionary if the dictionary is before the data. Missing numbers are 0.
    expected = [
        Chunk(5, 10, 40), Chunk(0, 50, 57), *[Chunk(6, 60, 68)] * 3, Chunk(6, 59, 67), Chunk(0, 0, 0),
    ]  # fmt: skip
    for groups in ([chunks], [chunks[:2], [], chunks[2:]]):
        budget = RecordingBudget()  # its first number is the cost of the whole footer
        found = declared_sizes.check_footer(*parquet_file(struct(*footer_of(*groups))), budget)
        assert [len(group) for group in found] == [len(group) for group in groups]
        assert list(itertools.chain(*found)) == expected
        assert sum(budget.metadata[1:]) == len(groups) * STRUCT_BYTES + len(chunks) * OBJECT_BYTES


def test_the_last_list_of_row_groups_counts() -> None:
    """pyarrow reads a repeated field in this way."""
    first, last = footer_of([column_chunk(values=1)] * 3), footer_of([column_chunk(values=2)])
    footer = parquet_file(struct(*first, *last[1:]))
    assert declared_sizes.check_footer(*footer, RecordingBudget()) == [[Chunk(2, 0, 0)]]


def test_a_footer_must_end_the_file_and_fit_in_it() -> None:
    footer = struct(*footer_of())
    file, size = parquet_file(footer)
    assert declared_sizes.check_footer(file, size, RecordingBudget()) == []
    content = file.getvalue()
    for damaged in (
        content[1:],
        content[:-1],
        content[:-4] + b"PAR2",
        content[:-8] + (len(footer) + 1).to_bytes(4, "little") + b"PAR1",
        content[-8:],
        b"PAR1",
        b"",
    ):
        with pytest.raises(ValueError, match="its end is missing"):
            declared_sizes.check_footer(io.BytesIO(damaged), len(damaged), RecordingBudget())
    with pytest.raises(W2VError, match="too many columns"):  # pyarrow copies the strings of a footer
        declared_sizes.check_footer(*parquet_file(struct((6, BINARY, binary(bytes(9 << 20))))), RecordingBudget())


# The lists in a footer and the types of their elements, from parquet.thrift.
LISTS = {
    (2,): STRUCT, (4,): STRUCT, (5,): STRUCT, (7,): STRUCT, (4, 1): STRUCT, (4, 4): STRUCT, (4, 1, 3, 2): I32,
    (4, 1, 3, 3): BINARY, (4, 1, 3, 8): STRUCT, (4, 1, 3, 13): STRUCT, (4, 1, 3, 16, 2): I64, (4, 1, 3, 16, 3): I64,
    (4, 1, 3, 17, 2): I32, (4, 1, 8, 2, 1): BINARY,
}  # fmt: skip
ELEMENTS = {STRUCT: struct(), I32: integer(5), I64: integer(5), BINARY: binary(b"abc")}


@pytest.mark.parametrize("path", LISTS)
def test_lists_of_a_wrong_type_are_refused(path: tuple[int, ...]) -> None:
    """pyarrow ignores the declared type of these lists, so it would read other bytes than this check."""
    for kind, value in ELEMENTS.items():
        footer = parquet_file(nested(path, LIST, list_of(kind, value)))
        if kind == LISTS[path]:
            declared_sizes.check_footer(*footer, RecordingBudget())
        else:
            with pytest.raises(ValueError, match="a list with elements of a wrong type"):
                declared_sizes.check_footer(*footer, RecordingBudget())
    # In an empty list, the type does not matter.
    declared_sizes.check_footer(*parquet_file(nested(path, LIST, list_of(DOUBLE))), RecordingBudget())


def test_the_arrow_schema_in_a_footer_counts(tmp_path: Path) -> None:
    path = tmp_path / "file"
    schema = pa.schema([pa.field("a" * 3000, pa.int8(), metadata={"key": "v" * 5000})], metadata={"k": "v" * 7000})
    parquet.write_table(pa.table([[1]], schema), path)
    budget = RecordingBudget()
    with path.open("rb") as file:
        declared_sizes.check_footer(file, path.stat().st_size, budget)
    assert budget.metadata[-3:] == [PAIR_BYTES + 1 + 7000, OBJECT_BYTES + 3000, PAIR_BYTES + 3 + 5000]
    content = path.read_bytes()
    place = content.index(b"ARROW:schema") + len(b"ARROW:schema")
    assert content[place] == 1 << 4 | BINARY
    damaged = content[:place] + bytes([2 << 4 | BINARY]) + content[place + 1 :]
    with pytest.raises(ValueError, match="the Arrow schema is not a string"):
        declared_sizes.check_footer(io.BytesIO(damaged), len(damaged), RecordingBudget())


# -- pages of Parquet -------------------------------------------------------------------------------

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
PLAIN, DELTA_BYTE_ARRAY = 0, 7


def page(
    kind: int, values: int, *, unpacked: int = 0, stored: int = 0, encoding: int = PLAIN, filler: bytes = b""
) -> bytes:
    """Encode a page: its header, and `stored` zeros as its content. `filler` makes the header longer."""
    if kind == DATA_PAGE:
        inner = struct((1, I32, integer(values)), (2, I32, integer(encoding)), (3, I32, integer(3)))
    elif kind == DICTIONARY_PAGE:
        inner = struct((1, I32, integer(values)), (2, I32, integer(encoding)))
    else:
        inner = struct(
            *((number, I32, integer(value)) for number, value in enumerate((values, 0, values, encoding, 0), 1))
        )
    number = {DATA_PAGE: 5, DICTIONARY_PAGE: 7, DATA_PAGE_V2: 8}[kind]
    sizes = [(1, I32, integer(kind)), (2, I32, integer(unpacked)), (3, I32, integer(stored))]
    more = [(4, BINARY, binary(filler))] if filler else []
    return struct(*sizes, *more, (number, STRUCT, inner)) + bytes(max(0, stored))


def check(*pages: bytes, values: int, missing: int = 0, **options: bool) -> tuple[int, list[int]]:
    """Check pages at byte 7 of a file. Return the longest string and the costs of the pages.

    `missing` is subtracted from the size of the chunk.
    """
    budget, content = RecordingBudget(), b"".join(pages)
    chunk = Chunk(values, 7, 7 + len(content) - missing)
    longest = declared_sizes.check_pages(io.BytesIO(b"\x15" * 7 + content + b"\x15" * 2000), chunk, budget, **options)
    return longest, budget.content


def cost(unpacked: int, values: int) -> int:
    return PAGE_BYTES + unpacked + VALUE_BYTES * values


def test_each_page_costs_its_size_and_its_values() -> None:
    for kind in (DATA_PAGE, DATA_PAGE_V2):
        pages = [page(kind, 5, unpacked=100, stored=20), page(kind, 6, unpacked=70, stored=200)]
        assert check(*pages, values=11) == (0, [cost(100, 5), cost(70, 6)])
        assert check(*pages, values=5) == (0, [cost(100, 5)])  # the chunk has no more values
        assert check(*pages, values=6) == (0, [cost(100, 5), cost(70, 6)])
        dictionary = page(DICTIONARY_PAGE, 3, unpacked=40, stored=10)
        assert check(dictionary, *pages, values=11) == (40, [cost(40, 3), cost(100, 5), cost(70, 6)])
        delta = [page(kind, 5, unpacked=size, stored=20, encoding=DELTA_BYTE_ARRAY) for size in (100, 30)]
        longest, costs = check(*delta, values=10)
        assert costs == [cost(100, 5), cost(30, 5)]
        assert longest >= 2 * 100  # pyarrow copies such a string more than once
        assert check(*delta[::-1], values=10)[0] == longest
        assert check(page(DICTIONARY_PAGE, 0, unpacked=40), pages[0], values=5)[0] == 0
        copied = check(*delta, values=10, has_unique_strings=True)[1]  # each value may be as long as its page
        assert copied == [cost(100, 5), 5 * 100, cost(30, 5), 5 * 30]


def test_a_page_counts_if_it_begins_up_to_a_hundred_bytes_after_its_chunk() -> None:
    """Old writers leave out up to a hundred bytes of the size of a chunk."""
    pages = [page(DATA_PAGE, 1, stored=20), page(DATA_PAGE, 1, stored=20)]
    last = len(pages[1])
    for missing, found in ((last, 2), (last + 99, 2), (last + 100, 1)):
        assert len(check(*pages, values=2, missing=missing)[1]) == found


def test_negative_numbers_in_a_page_are_refused() -> None:
    for numbers in ({"unpacked": -1}, {"stored": -1}, {"values": -1}):
        for kind in (DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2):
            with pytest.raises(ValueError, match="a size of -1"):
                check(page(kind, **{"values": 1} | numbers), values=1)


def test_headers_of_pages_may_be_long() -> None:
    for size in (500, 1500, 1_000_000):
        assert check(page(DATA_PAGE, 2, unpacked=9, filler=bytes(size)), values=2) == (0, [cost(9, 2)])
    with pytest.raises(ValueError, match="the header of a page is too long"):
        check(page(DATA_PAGE, 2, filler=bytes(1 << 20)), values=2)
    for file in (b"", page(DATA_PAGE, 1)[:-3], page(DATA_PAGE, 2, filler=bytes(1500))[:-3]):
        with pytest.raises(IndexError):
            declared_sizes.check_pages(io.BytesIO(file), Chunk(1, 0, 10), RecordingBudget())


# -- Arrow ------------------------------------------------------------------------------------------


def arrow_file(table: pa.Table, rows: int | None = None, compression: str | None = None) -> bytes:
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table, rows)
    return file.getvalue()


def test_each_field_of_a_schema_costs_its_strings() -> None:
    fields = [
        pa.field("first", pa.struct([pa.field("inside", pa.int8()), ("a" * 50, pa.timestamp("s", "Europe/Rome"))])),
        pa.field("second", pa.list_(pa.field("item", pa.string(), metadata={"ab": "cde"})), metadata={"f": "ghijk"}),
        pa.field("third", pa.duration("s")),
    ]
    data = arrow_file(pa.schema(fields, {"kkkk": "v", "k": ""}).empty_table())
    budget = RecordingBudget()
    assert declared_sizes.check_batches(io.BytesIO(data), len(data), budget) == 0
    assert sorted(budget.metadata) == sorted(
        [
            *(PAIR_BYTES + size for size in (5, 1, 5, 6)),
            *(OBJECT_BYTES + size for size in (5, 6, 50 + len("Europe/Rome"), 6, 4, 5)),
        ]
    )


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_each_buffer_costs_what_it_unpacks_to(compression: str | None) -> None:
    table = pa.table({"x": np.zeros(3000, np.int64), "y": pa.array(["ab", None, "c"] * 1000)})
    data = arrow_file(table, 1000, compression)
    file, size = io.BytesIO(data), len(data)
    whole, first, none = RecordingBudget(), RecordingBudget(), RecordingBudget()
    for budget, buffers in ((whole, None), (first, {0, 1}), (none, set[int]())):
        assert declared_sizes.check_batches(file, size, budget, buffers) == 3000
        assert len(budget.content) == 3 * (1 + 5)  # two buffers of x and three of y
    # The validity of x, which has no missing values, and its values; the validity, offsets and characters of y.
    sizes = [0, 8 * 1000, 1000 // 8, 4 * 1001, 334 * 2 + 333]
    _, *buffers = whole.content[:6]
    for found, expected in zip(buffers, sizes, strict=True):
        assert expected <= found - BUFFER_BYTES <= expected + 64  # buffers that are not compressed may be padded
    if compression:
        assert sum(none.content) < sum(first.content) < sum(whole.content)
        assert first.content[:3] == whole.content[:3]
        assert first.content[3:6] == none.content[3:6]
    else:
        assert none.content == first.content == whole.content


def test_dictionaries_are_always_read() -> None:
    table = pa.table({"x": pa.array(["a" * 100_000, "b"] * 10).dictionary_encode()})
    data = arrow_file(table, compression="zstd")
    for buffers in (None, set[int]()):
        budget = RecordingBudget()
        assert declared_sizes.check_batches(io.BytesIO(data), len(data), budget, buffers) == 20
        assert max(budget.content) >= 100_001


def arrow_stream(table: pa.Table, rows: int, compression: str | None = None) -> bytes:
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(file, table.schema, options=options) as writer:
        writer.write_table(table, rows)
    return file.getvalue()


def test_a_stream_costs_the_same_as_a_file() -> None:
    texts = pa.array(["ab", None, "c"] * 1000)
    table = pa.table({"x": np.zeros(3000, np.int64), "y": texts, "z": texts.dictionary_encode()})
    for buffers in (None, {0, 1}):
        of_file, of_stream = RecordingBudget(), RecordingBudget()
        file, stream = arrow_file(table, 1000, "zstd"), arrow_stream(table, 1000, "zstd")
        assert declared_sizes.check_batches(io.BytesIO(file), len(file), of_file, buffers) == 3000
        assert declared_sizes.check_stream(io.BytesIO(stream), len(stream), of_stream, buffers) == 3000
        assert (of_stream.content, of_stream.metadata) == (of_file.content, of_file.metadata)


def test_messages_of_a_stream_must_lie_in_their_file() -> None:
    data = arrow_stream(pa.table({"x": np.arange(999, dtype=np.int64)}), 500)

    def rows(data: bytes) -> int:
        return declared_sizes.check_stream(io.BytesIO(data), len(data), RecordingBudget())

    assert rows(data) == rows(data[:-8]) == 999  # the mark at the end may be missing
    with pytest.raises(ValueError, match="a batch ends after the file"):
        rows(data[:-9])
    for damaged in (b"", data[:100], data[:7], b"ARROW" + data[5:], data[:4] + b"\xff\xff\xff\0" + data[8:]):
        with pytest.raises(DAMAGE):
            rows(damaged)


def test_batches_and_buffers_must_lie_in_their_file() -> None:
    data = arrow_file(pa.table({"x": np.arange(999, dtype=np.int64)}))
    size = (7992).to_bytes(8, "little")  # of the only buffer, and of the body of its batch
    places = [place for place in range(0, len(data) - 7, 4) if data[place : place + 8] == size]
    errors = set()
    for place, changed in itertools.product(places, (8000, len(data), -1)):
        damaged = data[:place] + changed.to_bytes(8, "little", signed=True) + data[place + 8 :]
        try:
            declared_sizes.check_batches(io.BytesIO(damaged), len(damaged), RecordingBudget())
        except ValueError as error:
            errors.add(str(error))
    assert errors == {"a buffer ends after its batch", "a batch ends after the file", "a size of -1"}
    for damaged in (*(data[:end] for end in range(10, len(data), 500)), b"", b"ARROW1", data[-10:]):
        with pytest.raises(ValueError, match="its end is missing"):
            declared_sizes.check_batches(io.BytesIO(damaged), len(damaged), RecordingBudget())
