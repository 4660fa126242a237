"""Sessions of items: from lists and all formats of tables, with items of any kind."""

import gzip
import json
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, parquet

import w2v
from tests.helpers import read_sessions, read_text
from w2v._errors import SettingsError, W2VError
from w2v._text import corpus
from w2v._text._text import FIRST_TYPE, Items, Types, decimal_words
from w2v._text.corpus import Corpus
from w2v._text.tables import open_table
from w2v._vectors.encode import Encoder, encode

INTEGERS = st.integers(-(1 << 63), (1 << 63) - 1)
ROWS = {"item": "x", "session": "y", "order": "n"}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)


def expected(lists: Iterable[Iterable[Any] | None]) -> list[list[str]]:
    """Return the items of lists as text, without missing and empty ones."""
    kept = [[str(item) for item in items or () if item not in (None, "")] for items in lists]
    return [items for items in kept if items]


def write_all(folder: Path, lists: list[Any], item_type: Any) -> dict[str, Path]:
    """Write lists to the column x of a file in each format, and return the files."""
    array = pyarrow.array(lists, pyarrow.list_(item_type))
    large = array.cast(pyarrow.large_list(item_type))
    names = ("parquet", "large", "arrow", "stream", "views", "large views", "jsonl", "jsonl.gz")
    files = {name: folder / name for name in names}
    table = pyarrow.table({"n": [1] * len(lists), "x": array})
    parquet.write_table(table, files["parquet"], row_group_size=3)
    parquet.write_table(pyarrow.table({"x": large}), files["large"], use_dictionary=False)
    feather.write_feather(table, str(files["arrow"]), compression="zstd")
    with pyarrow.ipc.new_stream(files["stream"], table.schema) as writer:
        writer.write_table(table, 2)
    view_type = pyarrow.string_view() if item_type == pyarrow.string() else item_type
    views = {"views": pyarrow.list_view(view_type), "large views": pyarrow.large_list_view(view_type)}
    for name, kind in views.items():
        table = pyarrow.table({"x": pyarrow.array(lists, kind)})
        with pyarrow.ipc.new_file(files[name], table.schema) as writer:
            writer.write_table(table)
    files["jsonl"].write_text("".join(json.dumps({"x": row}) + "\n" for row in lists))
    files["jsonl.gz"].write_bytes(gzip.compress(files["jsonl"].read_bytes()))
    return files


LISTS = pytest.mark.parametrize(
    ("lists", "item_type", "key_type"),
    [
        ([[5, None, -7], None, [], [5], [None]], pyarrow.int64(), "int"),
        ([["new york", "a\tb\n", ""], None, [], ["köln", None]], pyarrow.string(), "str"),
    ],
    ids=["numbers", "texts"],
)


@LISTS
def test_all_sources_give_the_same_items(tmp_path: Path, lists: list[Any], item_type: Any, key_type: str) -> None:
    found = (key_type, expected(lists))
    for file in write_all(tmp_path, lists, item_type).values():
        assert read_sessions(file, column="x") == found
    array = pyarrow.array(lists, pyarrow.list_(item_type))
    frame = pandas.DataFrame({"x": lists})
    for source in (lists, iter(lists), array, pyarrow.chunked_array([array[:1], array[1:]]), frame["x"]):
        assert read_sessions(source) == found
    for table in (frame, pyarrow.table({"x": array})):
        assert read_sessions(table, column="x") == found


@LISTS
def test_missing_lists_and_items_are_counted(tmp_path: Path, lists: list[Any], item_type: Any, key_type: str) -> None:
    empty = sum(items is not None and not expected([items]) for items in lists)
    items = sum(item in (None, "") for items in lists for item in items or ())
    message = f"skipped 1 missing list and {empty} empty list{'s' * (empty > 1)} and {items} missing items"
    for source in [*write_all(tmp_path, lists, item_type).values(), lists]:
        options = {"column": "x"} if isinstance(source, Path) else {}
        with pytest.warns(w2v.TextWarning) as caught:
            read_sessions(source, **options)
        assert [str(each.message) for each in caught] == [message]


@pytest.mark.parametrize("width", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_of_every_width_are_items(tmp_path: Path, width: str) -> None:
    limits = np.iinfo(width)
    numbers = [int(limits.min), 0, 7, int(limits.max)]
    for item_type in (getattr(pyarrow, width)(), pyarrow.dictionary(pyarrow.int8(), getattr(pyarrow, width)())):
        array = pyarrow.array([numbers, numbers[:2]], pyarrow.list_(item_type))
        parquet.write_table(pyarrow.table({"x": array}), tmp_path / "x.parquet")
        feather.write_feather(pyarrow.table({"x": array}), str(tmp_path / "x.arrow"))
        for source in (tmp_path / "x.parquet", tmp_path / "x.arrow"):
            assert read_sessions(source, column="x") == ("int", expected([numbers, numbers[:2]]))
    assert read_sessions([np.array(numbers, width)]) == ("int", expected([numbers]))
    assert read_sessions([list(np.array(numbers, width))]) == ("int", expected([numbers]))


@pytest.mark.slow
@given(
    st.lists(st.lists(TEXTS, max_size=8) | st.lists(INTEGERS, max_size=8) | st.none(), max_size=8), st.integers(1, 9)
)
def test_any_items_are_read_back(tmp_path_factory: pytest.TempPathFactory, lists: list[Any], at_once: int) -> None:
    """Lists of texts are read with one list that is not plain tokens; otherwise they are a text."""
    folder = tmp_path_factory.mktemp("items")
    texts = [["an item"], *[items if items is None else list(map(str, items)) for items in lists]]
    numbers = [[0], *[items for items in lists if items is None or all(isinstance(item, int) for item in items)]]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(corpus, "ITEMS_AT_ONCE", at_once)
        for kind, rows, item_type in (("str", texts, pyarrow.string()), ("int", numbers, pyarrow.int64())):
            found = (kind, expected(rows))
            assert read_sessions(rows) == found
            for name in (item_type, pyarrow.dictionary(pyarrow.int32(), item_type)):
                array = pyarrow.array(rows, pyarrow.list_(name))
                parquet.write_table(pyarrow.table({"x": array}), folder / "x.parquet")
                assert read_sessions(folder / "x.parquet", column="x") == found
                assert read_sessions(array) == found


@given(st.lists(INTEGERS))
def test_numbers_are_written_as_str_writes_them(numbers: list[int]) -> None:
    blob, offsets = decimal_words(np.array(numbers, np.int64))
    assert blob.tobytes().decode() == "".join(map(str, numbers))
    assert np.diff(offsets).tolist() == [len(str(number)) for number in numbers]
    unsigned = np.array(numbers, np.int64).view(np.uint64).tolist()
    assert decimal_words(np.array(numbers, np.int64), True)[0].tobytes().decode() == "".join(map(str, unsigned))


def test_keys_of_any_type_become_text() -> None:
    assert read_sessions([[1, "a", 1.5, (2, 3)], [True, 1 << 64]]) == (
        "str", [["1", "a", "1.5", "(2, 3)"], ["True", "18446744073709551616"]],
    )  # fmt: skip


def test_numbers_that_pandas_stored_as_floats_stay_numbers(tmp_path: Path) -> None:
    found = ("int", [["5", "7"]])
    assert read_sessions(pandas.Series([np.array([5.0, np.nan, 7.0])])) == found
    parquet.write_table(pyarrow.table({"x": [[5.0, None, float("nan"), 7.0]]}), tmp_path / "x.parquet")
    assert read_sessions(tmp_path / "x.parquet", column="x") == found


def test_lists_of_tokens_without_white_space_are_a_text() -> None:
    with read_text(Corpus([["a", "no\u00a0break"], ["B"]]), lower=True) as store:
        assert (store.is_text, store.types.tolist()[FIRST_TYPE:]) == (True, ["a", "no\u00a0break", "b"])
    mixed = [["a", "b"], ["new york"], ["c"], [3]]
    assert read_sessions(mixed) == ("str", expected(mixed))


@pytest.mark.parametrize(
    "options",
    [{"lower": True}, {"tokenize": "words"}, {"digits": "zero"}, {"normalize": "nfc"}, {"strip_markup": True}],
)
def test_options_that_change_words_are_refused_for_items(options: dict[str, Any]) -> None:
    name = next(iter(options))
    with pytest.raises(SettingsError, match=rf"\({name}=\) changes words of a text, but the corpus holds items"):
        read_text(Corpus([[1, 2]]), **options)


def test_folders_that_spark_writes_are_read(tmp_path: Path) -> None:
    for day, items in (("day=1", [1, 2]), ("day=2", [3])):
        folder = tmp_path / "sessions" / day
        folder.mkdir(parents=True)
        parquet.write_table(pyarrow.table({"x": [items]}), folder / "part-00000-c000.snappy.parquet")
        parquet.write_table(pyarrow.table({"x": pyarrow.array([], pyarrow.list_(pyarrow.int64()))}), folder / "part-1")
        (folder / ".part-00000-c000.snappy.parquet.crc").write_bytes(b"crc")
        (folder / "part-00002-empty.json").touch()
    for name in ("_SUCCESS", "_metadata", "_common_metadata", "_started_123", "_delta_log/0.json", "_temporary/0/part"):
        (tmp_path / "sessions" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "sessions" / name).write_text("not a table")
    assert read_sessions(tmp_path / "sessions", column="x") == ("int", [["1", "2"], ["3"]])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pyarrow.array([[1], None, [], [1, 1.5]]),
            "column x, row 4: the number 1.5: items and sessions are text or whole",
        ),
        (pyarrow.array([[True]]), "column x holds bool: items and sessions are text or whole numbers"),
        (pyarrow.array([[["a"]]]), "column x holds list<.*>: items and sessions are text or whole numbers"),
        (pyarrow.array([{"a": 1}]), "column 'x' holds struct<a: int64>, neither text nor lists"),
    ],
)
def test_unsuitable_columns_are_refused(tmp_path: Path, column: Any, message: str) -> None:
    parquet.write_table(pyarrow.table({"x": column}), tmp_path / "x.parquet")
    with pytest.raises(W2VError, match=f"^{re.escape(str(tmp_path / 'x.parquet'))}[,:] {message}"):
        read_text(Corpus(tmp_path / "x.parquet"), column="x")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('{"x": ["a"]}\n{"x": "b"}', "column x holds texts and lists: give one of them"),
        ('{"x": null}\n{"x": "b"}\n{"x": ["a"]}', "column 'x' holds texts and lists: give one of them"),
        ('{"x": [["a"]]}', r"column x, row 1: the item \['a'\] is of type list: give text, numbers or other"),
        ('{"x": 5}', "line 1: column 'x' holds 5, neither text nor a list; if each row is an item"),
    ],
)
def test_unsuitable_rows_of_json_are_refused(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "x.jsonl").write_text(rows)
    with pytest.raises(W2VError, match=message) as caught:
        read_text(Corpus(tmp_path / "x.jsonl"), column="x")
    assert str(caught.value).startswith(str(tmp_path / "x.jsonl"))


@pytest.mark.parametrize("at_once", [1, 5, 1000])
def test_unsuitable_items_of_lists_name_their_session(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "ITEMS_AT_ONCE", at_once)
    sessions = [["a", "b"], ["c"], [1, 2], None, [], [3, [4]], [5]]
    with pytest.raises(W2VError, match=r"^the corpus, session 5: the item \[4\] is of type list: give text, numbers"):
        read_text(Corpus(sessions))
    with pytest.raises(W2VError, match=r"^the corpus, session 5: the item b'a\\xed.* is not UTF-8"):
        read_text(Corpus([*sessions[:5], [3, "a\ud800"]]))


def test_items_that_are_not_utf_8_name_their_row(tmp_path: Path) -> None:
    bad = pyarrow.StringArray.from_buffers(
        3, pyarrow.py_buffer(np.array([0, 1, 2, 3], np.int32)), pyarrow.py_buffer(b"ab\xff")
    )
    array = pyarrow.ListArray.from_arrays(pyarrow.array([0, 1, 3], pyarrow.int32()), bad)
    parquet.write_table(pyarrow.table({"x": array}), tmp_path / "x.parquet")
    message = r"x.parquet, column x, row 2: the item b'\\xff' is not UTF-8; add --errors replace or --errors ignore"
    with pytest.raises(W2VError, match=message):
        read_text(Corpus(tmp_path / "x.parquet"), column="x")
    assert read_sessions(tmp_path / "x.parquet", column="x", errors="replace")[1] == [["a"], ["b", "\ufffd"]]
    assert read_sessions(tmp_path / "x.parquet", column="x", errors="ignore")[1] == [["a"], ["b"]]


def test_a_string_that_many_items_repeat_takes_its_memory_once(tmp_path: Path) -> None:
    """Without dictionaries, this list would take 200 MB."""
    array = pyarrow.array([["x" * 100_000] * 2000])
    parquet.write_table(pyarrow.table({"x": array}), tmp_path / "x.parquet")
    with (tmp_path / "x.parquet").open("rb") as file:
        _, table = open_table("x", file)
        assert sum(batch.nbytes for batch in table.batches(["x"], 1)) < 1_000_000
    with read_text(Corpus(tmp_path / "x.parquet"), column="x") as store:
        assert store.counts.tolist() == [1, 0, 2000]


def test_views_of_strings_are_texts_and_order_rows(tmp_path: Path) -> None:
    table = pyarrow.table({name: pyarrow.array(["10", "a b", None], pyarrow.string_view()) for name in "xy"})
    numbers = pyarrow.array(["3", "2", "1"], pyarrow.string_view())
    table = table.append_column("n", numbers)
    with pyarrow.ipc.new_stream(tmp_path / "x", table.schema) as writer:
        writer.write_table(table)
    with read_text(Corpus(tmp_path / "x"), column="x") as store:
        assert list(store.types)[2:] == ["10", "a", "b"]
    with pytest.warns(w2v.TextWarning, match="1 incomplete row"), read_text(Corpus(tmp_path / "x"), **ROWS) as store:
        assert list(store.types)[2:] == ["10", "a b"]


def test_lists_of_a_fixed_size_are_sessions(tmp_path: Path) -> None:
    pairs = pyarrow.list_(pyarrow.int16(), 2)
    without_missing, with_missing = ([[1, 2], *missing, [3, None]] for missing in ([], [None]))
    # Not all versions of pyarrow can write missing lists of a fixed size to Parquet.
    parquet.write_table(pyarrow.table({"x": pyarrow.array(without_missing, pairs)}), tmp_path / "x.parquet")
    feather.write_feather(pyarrow.table({"x": pyarrow.array(with_missing, pairs)}), str(tmp_path / "x.arrow"))
    for name, warning in ("x.parquet", "skipped 1 missing item$"), ("x.arrow", "1 missing list and 1 missing item"):
        with pytest.warns(w2v.TextWarning, match=warning):
            assert read_sessions(tmp_path / name, column="x") == ("int", [["1", "2"], ["3"]])


@pytest.mark.parametrize(
    ("offsets", "lengths", "numbers"),
    [
        ([0, 2, 1], [2], None),  # offsets that fall
        ([0, 1, 4], [2], None),  # an offset behind the end
        ([1, 2, 3], [2], None),  # bytes before the first offset
        ([], [], None),
        ([0, 1, 3], [1], None),  # too few items in the sessions
        ([0, 1, 3], [3, -1], None),
        ([0, 1, 3], [1], [2]),  # a word that does not exist
        ([0, 1, 3], [1], [-1]),
    ],
)
def test_damaged_items_are_refused(offsets: list[int], lengths: list[int], numbers: list[int] | None) -> None:
    arrays = np.array(offsets, np.int64), np.array(lengths, np.int64)
    with pytest.raises(ValueError, match="damaged"):
        Items(np.frombuffer(b"abc", np.uint8), *arrays, None if numbers is None else np.array(numbers, np.int32))


def test_items_scanned_before_types_are_pruned_are_scanned_again() -> None:
    types = Types()
    items = Items(np.frombuffer(b"aab", np.uint8), np.arange(4), np.array([3]))
    early = types.scan(items)
    types.merge(types.scan(items))
    types.prune(1)  # b is dropped
    assert types.merge(early).tolist() == [2, 2, 3, 0]


def test_lists_of_items_are_encoded(tmp_path: Path) -> None:
    vectors = w2v.KeyedVectors([1193, 5], [[1, 0], [0, 1]], [1, 1])
    rows = [[1193, 1193, 5], None, [7], [5]]
    expected = [[2 / 3, 1 / 3], [0, 0], [0, 0], [0, 1]]
    np.testing.assert_allclose(encode(vectors, rows, "mean"), expected, rtol=1e-6)
    parquet.write_table(pyarrow.table({"x": rows}), tmp_path / "x.parquet")
    encoder = Encoder(vectors, "mean")
    blocks = list(encoder.blocks(Corpus(tmp_path / "x.parquet"), column="x"))
    np.testing.assert_allclose(np.concatenate(blocks), expected, rtol=1e-6)
    assert (encoder.texts, encoder.words, encoder.unknown) == (4, 5, 1)
