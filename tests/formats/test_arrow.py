"""Parquet and Arrow: pyarrow and pandas read the tables of w2v, and w2v reads the tables of other tools."""

import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import w2v
from tests.helpers import assert_refused
from w2v.formats import native
from w2v.text import declared_sizes, tables

WORDS = ["the", "köln", "a b"]


def test_pyarrow_and_pandas_read_written_tables(tmp_path: Path) -> None:
    ours = w2v.KeyedVectors(WORDS, np.random.default_rng(1).standard_normal((3, 4)), [3, 2, 1])
    ours.save(tmp_path / "m.parquet")
    ours.save(tmp_path / "m.arrow")
    for table in (parquet.read_table(tmp_path / "m.parquet"), feather.read_table(tmp_path / "m.arrow")):
        assert table.schema.field("vector").type == pa.list_(pa.float32(), 4)
        assert table.column("word").to_pylist() == WORDS
        assert table.column("count").to_pylist() == [3, 2, 1]
    frame = pd.read_parquet(tmp_path / "m.parquet")
    np.testing.assert_array_equal(np.stack(frame["vector"]), ours.vectors)


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.float16()])
def test_tables_of_other_tools_are_read(tmp_path: Path, kind: Any, compression: str) -> None:
    rows = np.array([[1, 2], [3, 4.5], [5, -6]], kind.to_pandas_dtype())
    values = pa.array(rows.reshape(-1))
    fixed = pa.FixedSizeListArray.from_arrays(values, 2)
    # Each case has another layout of the lists.
    lists = fixed if compression == "none" else pa.ListArray.from_arrays(pa.array([0, 2, 4, 6], pa.int32()), values)
    words = pa.array(WORDS).dictionary_encode()
    table = pa.table({"text": pa.array([None] * 3), "vector": lists, "word": words})
    parquet.write_table(table, tmp_path / "m.parquet", compression=compression, row_group_size=2)
    for path in (tmp_path / "m.parquet", tmp_path / "m.arrow"):
        if path.suffix == ".arrow":
            feather.write_feather(table, str(path), compression=compression.replace("none", "uncompressed"))
        found = w2v.load(path)
        assert found.index_to_key == WORDS
        np.testing.assert_array_equal(found.vectors, rows)
        assert found.counts is None


def test_files_with_numbers_beyond_float32_are_refused(tmp_path: Path) -> None:
    matrix = np.array([[1, 2], [3, 1e300]])
    np.save(tmp_path / "m.npy", matrix)
    (tmp_path / "m.words.txt").write_text("a\nb\n")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), 2)
    parquet.write_table(pa.table({"word": ["a", "b"], "vector": lists}), tmp_path / "m.parquet")
    w2v.KeyedVectors(["a", "b"], np.eye(2)).save(tmp_path / "m.model2vec")
    native.write_native(tmp_path / "m.model2vec" / "model.safetensors", {"embeddings": matrix}, {})
    for name in ("m.npy", "m.parquet", "m.model2vec"):
        with pytest.raises(w2v.W2VError, match=rf"{name}: row 2 \('b'\) holds 1e\+300, beyond 3.4e\+38"):
            w2v.load(tmp_path / name)


LISTS = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2, 3, 4], pa.float32()), 2)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"word": ["a", "b"]}, "its columns are word: expected word and vector"),
        ({"word": ["a", "b"], "vector": [1.0, 2]}, "its vectors are double: expected lists of floats"),
        ({"word": ["a", "b"], "vector": [["a"], ["b"]]}, "expected lists of floats"),
        ({"word": ["a", "b"], "vector": [[1.0], [2.0, 3]]}, "a vector after row 0 does not have 1 val"),
        ({"word": ["a", "b"], "vector": [[], [1.0]]}, "its first row has no vector"),
        ({"word": ["a", "b"], "vector": [None, [1.0]]}, "its first row has no vector"),
        ({"word": pa.array([], pa.string()), "vector": pa.array([], pa.list_(pa.float32()))}, "its first row has no"),
        ({"word": ["a", None], "vector": LISTS}, "a word is missing after row 0"),
        (
            {"word": ["a", "b"], "vector": LISTS.take(pa.array([0, None]))},
            "a vector after row 0 does not have|damaged: Expected",
        ),
        ({"word": ["a", "a"], "vector": LISTS}, "twice"),
        ({"word": [b"a", b"\xff"], "vector": LISTS}, "is not valid UTF-8"),
        ({"word": [[1], [2]], "vector": LISTS}, "its words are list<(item|element): int64>: expected strings"),
    ],
)
@pytest.mark.parametrize("extension", ["parquet", "arrow"])
def test_tables_without_words_and_vectors_are_refused(
    tmp_path: Path, columns: dict[str, Any], message: str, extension: str
) -> None:
    path = tmp_path / f"m.{extension}"
    write = parquet.write_table if extension == "parquet" else feather.write_feather
    write(pa.table(columns), str(path))
    assert_refused(path, message)


def test_only_needed_columns_of_arrow_are_decompressed(tmp_path: Path) -> None:
    magic = b"\x28\xb5\x2f\xfd"  # of Zstandard
    path = tmp_path / "m.arrow"
    table = pa.table({"other": ["b" * 1000] * 2, "word": ["a", "b"], "vector": LISTS})
    feather.write_feather(table, str(path), compression="zstd")
    damaged = path.read_bytes().replace(magic, b"\0\0\0\0", 2)  # the offsets and the bytes of the first column
    path.write_bytes(damaged)
    with pytest.raises(OSError, match="ZSTD"):
        feather.read_table(path)
    np.testing.assert_array_equal(w2v.load(path).vectors, [[1, 2], [3, 4]])


OTHER_TYPES = {
    "numbers": pa.array([1, 2], pa.decimal128(3)),
    "texts": pa.array([["a"], None], pa.large_list(pa.large_string())),
    "records": pa.array([{"a": 1, "b": [True]}, None], pa.struct({"a": pa.date32(), "b": pa.list_(pa.bool_(), 1)})),
    "uuids": pa.array([bytes(16)] * 2, pa.uuid()) if hasattr(pa, "uuid") else pa.nulls(2, pa.binary(16)),
    "categories": pa.array(["a", "b"]).dictionary_encode(),
}


@pytest.mark.parametrize(
    "column",
    [*OTHER_TYPES.values(), LISTS, pa.array([b"a", b"b"]), pa.array([b"a", b"b"], pa.binary(1)), pa.array([1, None])],
    ids=lambda column: str(column.type),
)
def test_buffers_of_a_column_are_counted(column: Any) -> None:
    assert tables._buffer_count(pa, column.type) == len(column.buffers())


def test_arrow_columns_that_are_not_needed_may_be_large(tmp_path: Path) -> None:
    """A file of a few kilobytes has a 20 MB column that nothing reads, next to columns of other types."""
    zeros = pa.array([bytes(10_000_000)] * 2)
    table = pa.table({**OTHER_TYPES, "other": zeros, "word": ["a", "b"], "vector": LISTS})
    feather.write_feather(table, str(tmp_path / "m.arrow"), compression="zstd")
    np.testing.assert_array_equal(w2v.load(tmp_path / "m.arrow").vectors, [[1, 2], [3, 4]])
    for name in ("vector", "word"):  # but not the columns that are read
        large = pa.FixedSizeListArray.from_arrays(np.zeros(5_000_000, np.float32), 2_500_000)
        changed = large if name == "vector" else zeros
        feather.write_feather(
            table.set_column(table.schema.get_field_index(name), name, changed),
            str(tmp_path / "m.arrow"),
            compression="zstd",
        )
        assert_refused(tmp_path / "m.arrow", "unpack to more than 500 times its size")


def test_parquet_chunks_that_share_pages_are_refused(tmp_path: Path) -> None:
    """Each page counts each time it is read, even if it holds almost nothing."""
    path = tmp_path / "m.parquet"
    parquet.write_table(
        pa.table({"word": ["a"] * 1000}), path, use_dictionary=False, data_page_size=1, write_batch_size=1
    )
    with path.open("rb") as file:
        size = path.stat().st_size
        budget = declared_sizes.Budget(str(path), size)
        ((chunk,),) = declared_sizes.check_footer(file, size, budget)

        def check_again(times: int) -> None:
            for _ in range(times):
                declared_sizes.check_pages(file, chunk, budget)

        check_again(1)
        with pytest.raises(w2v.W2VError, match="unpack to more than 500 times its size"):
            check_again(20)


@pytest.mark.parametrize("extension", ["parquet", "arrow"])
def test_two_columns_of_counts_are_refused(tmp_path: Path, extension: str) -> None:
    table = pa.table({"word": ["a", "b"], "vector": LISTS, "count": [2, 1]}).append_column("count", pa.array([1, 2]))
    write = parquet.write_table if extension == "parquet" else feather.write_feather
    write(table, str(tmp_path / f"m.{extension}"))
    assert_refused(tmp_path / f"m.{extension}", "it has 2 columns named count")


@pytest.mark.parametrize("extension", ["parquet", "arrow"])
def test_missing_counts_are_0(tmp_path: Path, extension: str) -> None:
    """The value under a missing one is undefined: here it would be a negative count."""
    counts = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\1"), pa.py_buffer(np.array([7, -5]).tobytes())])
    assert counts.to_pylist() == [7, None]
    write = parquet.write_table if extension == "parquet" else feather.write_feather
    write(pa.table({"word": ["a", "b"], "vector": LISTS, "count": counts}), str(tmp_path / f"m.{extension}"))
    found = w2v.load(tmp_path / f"m.{extension}").counts
    assert found is not None
    assert found.tolist() == [7, 0]


def test_buffers_of_odd_sizes_do_not_crash(tmp_path: Path) -> None:
    """The size of a buffer is not a multiple of the size of its values."""
    path = tmp_path / "m.arrow"
    table = pa.table({"word": ["a", "b"], "vector": LISTS, "count": pa.array([2, 1])})
    feather.write_feather(table, str(path), compression="uncompressed")
    data, size = path.read_bytes(), (16).to_bytes(8, "little")  # the buffers of vectors and counts have 16 bytes
    offsets = [offset for offset in range(len(data) - 16) if data[offset : offset + 8] == size]
    assert len(offsets) >= 2
    for offset in offsets:
        path.write_bytes(data[:offset] + (17).to_bytes(8, "little") + data[offset + 8 :])
        with suppress(w2v.W2VError):
            np.testing.assert_array_equal(w2v.load(path).vectors, [[1, 2], [3, 4]])


def test_a_schema_that_lists_one_field_often_is_refused(tmp_path: Path) -> None:
    """Each entry of the list takes as much memory as a separate field, but almost no space in the file."""
    count = 100_000
    # vtables, which have the positions of the fields in a table
    one_field, no_fields = struct.pack("<4H", 8, 8, 0, 4), struct.pack("<2H", 4, 4)
    tables = struct.pack("<I", 16) + one_field + no_fields
    tables += struct.pack("<iI", 12, 4) + struct.pack("<iI", 20, 4) + struct.pack("<I", count)  # footer, schema, list
    tables += (4 * np.arange(count, 0, -1)).astype("<u4").tobytes() + struct.pack("<i", 24 + 4 * count)
    path = tmp_path / "m.arrow"
    assert_refused(
        path, "describes too many columns", b"ARROW1\0\0" + tables + struct.pack("<I", len(tables)) + b"ARROW1"
    )


def test_arrow_words_with_falling_offsets_are_refused(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 3, 1], np.int32))
    words = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"abcdef"))
    batch = pa.record_batch({"word": words, "vector": LISTS})
    with pa.ipc.new_file(str(tmp_path / "m.arrow"), batch.schema) as file:
        file.write_batch(batch)
    with pytest.raises(w2v.W2VError, match="damaged"):
        w2v.load(tmp_path / "m.arrow")
