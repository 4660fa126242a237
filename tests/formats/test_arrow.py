"""Parquet and Arrow: pyarrow and pandas read what is written, and other tools' tables of the same columns are read."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import w2v
from tests.helpers import assert_refused

WORDS = ["the", "köln", "a b"]


def test_other_tools_read_what_is_written(tmp_path: Path) -> None:
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
def test_tables_of_other_tools(tmp_path: Path, kind: Any, compression: str) -> None:
    rows = np.array([[1, 2], [3, 4.5], [5, -6]], kind.to_pandas_dtype())
    values = pa.array(rows.reshape(-1))
    fixed = pa.FixedSizeListArray.from_arrays(values, 2)
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


LISTS = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2, 3, 4], pa.float32()), 2)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"word": ["a", "b"]}, "its columns are word: expected word and vector"),
        ({"word": ["a", "b"], "vector": [1.0, 2]}, "its vectors are double: expected lists of floats"),
        ({"word": ["a", "b"], "vector": [["a"], ["b"]]}, "expected lists of floats"),
        ({"word": ["a", "b"], "vector": [[1.0], [2.0, 3]]}, "after row 0, a word is missing or a vector has not 1 val"),
        ({"word": ["a", "b"], "vector": [[], [1.0]]}, "its first row has no vector"),
        ({"word": ["a", "b"], "vector": [None, [1.0]]}, "its first row has no vector"),
        ({"word": pa.array([], pa.string()), "vector": pa.array([], pa.list_(pa.float32()))}, "its first row has no"),
        ({"word": ["a", None], "vector": LISTS}, "after row 0, a word is missing or a vector"),
        ({"word": ["a", "b"], "vector": LISTS.take(pa.array([0, None]))}, "a word is missing|damaged: Expected"),
        ({"word": ["a", "a"], "vector": LISTS}, "twice"),
        ({"word": [b"a", b"\xff"], "vector": LISTS}, "damaged"),
        ({"word": [[1], [2]], "vector": LISTS}, "damaged"),
    ],
)
@pytest.mark.parametrize("extension", ["parquet", "arrow"])
def test_tables_without_vectors(tmp_path: Path, columns: dict[str, Any], message: str, extension: str) -> None:
    path = tmp_path / f"m.{extension}"
    write = parquet.write_table if extension == "parquet" else feather.write_feather
    write(pa.table(columns), str(path))
    assert_refused(path, message)
