"""Parquet and Arrow: pyarrow and pandas read the tables of w2v, and w2v reads the tables of other tools."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import w2v
from tests.helpers import assert_refused
from w2v._formats import native

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


def test_words_may_have_any_type_of_strings_or_bytes(tmp_path: Path) -> None:
    vectors = pa.array([[1.0], [2.0], [3.0]], pa.list_(pa.float32()))
    encoded = [word.encode() for word in WORDS]
    arrays = [pa.array(WORDS, kind) for kind in (pa.large_string(), pa.string_view())]
    arrays += [pa.array(encoded, kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())]
    for number, words in enumerate(arrays):
        path, batch = tmp_path / f"{number}.arrow", pa.record_batch([words, vectors], names=["word", "vector"])
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
            writer.write_batch(batch)
        assert w2v.load(path).index_to_key == WORDS


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


def write_table(table: Any, path: Path) -> None:
    (parquet.write_table if path.suffix == ".parquet" else feather.write_feather)(table, str(path))


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
        (
            pa.table([["a", "b"], LISTS, [2, 1], [1, 2]], names=["word", "vector", "count", "count"]),
            "it has 2 columns named count",
        ),
        ({"word": [[1], [2]], "vector": LISTS}, "its words are list<(item|element): int64>: expected strings"),
    ],
)
@pytest.mark.parametrize("extension", ["parquet", "arrow"])
def test_tables_without_words_and_vectors_are_refused(
    tmp_path: Path, columns: Any, message: str, extension: str
) -> None:
    path = tmp_path / f"m.{extension}"
    write_table(pa.table(columns) if isinstance(columns, dict) else columns, path)
    assert_refused(path, message)


def test_only_needed_columns_of_arrow_are_decompressed(tmp_path: Path) -> None:
    magic = b"\x28\xb5\x2f\xfd"  # of Zstandard
    path = tmp_path / "m.arrow"
    table = pa.table({"word": ["a", "b"], "other": ["b" * 1000] * 2, "vector": LISTS})
    feather.write_feather(table, str(path), compression="zstd")
    frames = path.read_bytes().split(magic)  # offsets and bytes of words, the same of others, vectors
    path.write_bytes(magic.join(frames[:3]) + b"\0\0\0\0" + frames[3] + b"\0\0\0\0" + magic.join(frames[4:]))
    with pytest.raises(OSError, match="ZSTD"):
        feather.read_table(path)
    np.testing.assert_array_equal(w2v.load(path).vectors, [[1, 2], [3, 4]])


@pytest.mark.parametrize("extension", ["parquet", "arrow"])
def test_missing_counts_are_0(tmp_path: Path, extension: str) -> None:
    """The value under a missing one is undefined: here it would be a negative count."""
    counts = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\1"), pa.py_buffer(np.array([7, -5]).tobytes())])
    assert counts.to_pylist() == [7, None]
    write_table(pa.table({"word": ["a", "b"], "vector": LISTS, "count": counts}), tmp_path / f"m.{extension}")
    found = w2v.load(tmp_path / f"m.{extension}").counts
    assert found is not None
    assert found.tolist() == [7, 0]


def test_arrow_words_with_falling_offsets_are_refused(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 3, 1], np.int32))
    words = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"abcdef"))
    batch = pa.record_batch({"word": words, "vector": LISTS})
    with pa.ipc.new_file(str(tmp_path / "m.arrow"), batch.schema) as file:
        file.write_batch(batch)
    with pytest.raises(w2v.W2VError, match="damaged"):
        w2v.load(tmp_path / "m.arrow")
