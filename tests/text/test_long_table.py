"""Long tables: their rows become sessions, in memory and on disk, from all formats."""

from collections.abc import Callable
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
from tests.helpers import read_sessions, read_text, run
from w2v._errors import SettingsError, W2VError
from w2v._text import corpus, long_table
from w2v._text._text import sorted_items
from w2v._text.corpus import Corpus

NAMES = {"item": "i", "session": "s", "order": "t"}
ROWS = st.lists(st.tuples(st.integers(-3, 9), st.integers(0, 5), st.integers(-4, 4)), min_size=1, max_size=60)


def grouped(rows: list[tuple[Any, Any, Any]], by_order: bool = True) -> list[list[str]]:
    """Group rows (item, session, order) with plain Python."""
    found: dict[Any, list[tuple[Any, Any]]] = {}
    for item, session, order in rows:
        found.setdefault(session, []).append((order, item))
    if by_order:
        found = {session: sorted(pairs, key=lambda pair: pair[0]) for session, pairs in found.items()}
    return [[str(item) for _, item in pairs] for pairs in found.values()]


def frame_of(rows: list[tuple[Any, Any, Any]]) -> pandas.DataFrame:
    return pandas.DataFrame(rows, columns=["i", "s", "t"])


WRITE: dict[str, Callable[[pandas.DataFrame, Path], Any]] = {
    "parquet": lambda frame, path: parquet.write_table(pyarrow.Table.from_pandas(frame), path, row_group_size=7),
    "arrow": lambda frame, path: feather.write_feather(frame, str(path)),
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True, date_format="iso"),
}


@pytest.mark.parametrize("kind", [*WRITE, "pandas", "pyarrow"])
def test_rows_become_sessions_in_the_order_of_a_column(tmp_path: Path, kind: str) -> None:
    rows = [(10, "b", 3), (20, "a", 2), (30, "b", 1), (20, "a", 2), (-10, "b", 3), (7, "c", 10), (8, "c", 9)]
    frame = frame_of(rows)
    source: Any = {"pandas": frame, "pyarrow": pyarrow.Table.from_pandas(frame)}.get(kind, tmp_path / kind)
    if kind in WRITE:
        WRITE[kind](frame, source)
    assert read_sessions(source, **NAMES) == ("int", [["30", "10", "-10"], ["20", "20"], ["8", "7"]])
    assert read_sessions(source, item="i", session="s") == ("int", grouped(rows, by_order=False))
    assert read_sessions(source, item="s", session="i", order="t")[0] == "str"


@pytest.mark.parametrize(("item", "key_type"), [(7, "int"), ("x", "str")])
def test_numbers_in_csv_and_parquet_are_the_same_keys(tmp_path: Path, item: Any, key_type: str) -> None:
    WRITE["parquet"](frame_of([(7, "a", 1), (8, "a", 2)]), tmp_path / "1.parquet")
    WRITE["csv"](frame_of([(item, "a", 3)]), tmp_path / "2.csv")
    assert read_sessions(tmp_path, **NAMES) == (key_type, [["7", "8", str(item)]])


@given(ROWS, st.integers(1, 9), st.integers(1, 70), st.booleans(), st.booleans())
def test_sessions_are_the_same_in_blocks_of_any_size(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int, int]],
    at_once: int,
    sorted_rows: int,
    by_order: bool,
    is_csv: bool,
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows"
    WRITE["csv" if is_csv else "parquet"](frame_of(rows), path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "ROWS_AT_ONCE", at_once)
        patch.setattr(long_table, "ROWS_IN_MEMORY", sorted_rows)
        found = read_sessions(path, item="i", session="s", order="t" if by_order else None)
    assert found == ("int", grouped(rows, by_order))


def test_damaged_rows_are_refused() -> None:
    rows = np.zeros(3, long_table.ROW)
    for sessions, counts in (
        ([0, 2, 1], [2, 1]),
        ([0, 1, 1], [2, 1]),
        ([0, 0, 0], [2, 1]),
        ([0, 0, 1], [2, 2]),
        ([0, 0, 1], [3]),
    ):
        rows["session"] = sessions
        with pytest.raises(ValueError, match="damaged"):
            sorted_items(rows.copy(), np.array(counts))


def test_rows_with_a_missing_value_are_counted(tmp_path: Path) -> None:
    rows = [("x", "a", 2), (None, "a", 1), ("y", None, 1), ("z", "a", None), ("v", "a", 1), ("", "a", 1)]
    for kind, write in WRITE.items():
        write(frame_of(rows), tmp_path / kind)
        with pytest.warns(w2v.TextWarning, match="^skipped 4 incomplete rows$"):
            assert read_sessions(tmp_path / kind, **NAMES) == ("str", [["v", "x"]])
    with pytest.warns(w2v.TextWarning, match="^skipped 4 incomplete rows$"):
        assert read_sessions(frame_of(rows), **NAMES) == ("str", [["v", "x"]])


def test_dictionary_columns_are_read(tmp_path: Path) -> None:
    table = pyarrow.table({name: pyarrow.array(["b", "a", "b"]).dictionary_encode() for name in "is"})
    parquet.write_table(table, tmp_path / "x")
    feather.write_feather(table, str(tmp_path / "y"))
    frame = table.to_pandas()
    for source in (tmp_path / "x", tmp_path / "y", table, frame):
        assert read_sessions(source, item="i", session="s") == ("str", [["b", "b"], ["a"]])


def test_numbers_of_csv_with_a_leading_zero_are_text_and_empty_files_have_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("i,s\n01,a\n2,b\n")
    (tmp_path / "b.csv").touch()
    assert read_sessions(tmp_path, item="i", session="s") == ("str", [["01"], ["2"]])


def test_rare_items_of_a_long_table_are_pruned(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("i,s\n" + "1,a\n2,a\n3,b\n1,b\n" * 3 + "4,b\n")
    with read_text(Corpus(tmp_path / "a.csv"), item="i", session="s", max_types=3) as store:
        assert (store.pruned, store.types.tolist()[2:], store.sentences) == (1, ["1", "2", "3"], 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "i,s,t\n1,a,\n1,a,9\n1,a,soon\n",
            "row 3: column 't': an order is a number or a date such as 2024-12-31, not 'soon'",
        ),
        ("i,s,x\n1,a,2\n", "has no column 't'; its columns are i, s, x"),
        (b"i,s,t\n\xff,,1\na,b,1\na\xff,b,1\n", r"row 3: the item b'a\\xff' is not UTF-8; add --errors replace"),
        (b"i,s,t\na,b,1\na,b\xff,1\n", r"row 2: the session b'b\\xff' is not UTF-8; add --errors replace"),
        ('{"i": 1}\n{"i": [1], "s": 2, "t": 1}\n', r"row 2: column 'i': the item \[1\] is of type list: give text"),
    ],
)
@pytest.mark.parametrize("at_once", [1, 1000])
def test_unsuitable_tables_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | bytes, message: str, at_once: int
) -> None:
    monkeypatch.setattr(corpus, "ROWS_AT_ONCE", at_once)
    (tmp_path / "a").write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(W2VError, match=message) as caught:
        read_text(Corpus(tmp_path / "a"), **NAMES)
    assert str(caught.value).startswith(str(tmp_path / "a"))


def test_fractions_order_rows_among_whole_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "ROWS_AT_ONCE", 2)
    (tmp_path / "a").write_text("i,s,t\n1,a,2\n,a,3\n2,a,9007199254740993\n3,a,2.5\n4,a,9007199254740992\n5,a,1e300\n")
    assert read_sessions(tmp_path / "a", **NAMES)[1] == [["1", "3", "4", "2", "5"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"item": "i"}, "--item and --session .* are given together"),
        ({"session": "s"}, "--item and --session .* are given together"),
        ({"order": "t"}, "--item and --session .* are given together, and --order only with them"),
        ({"item": "i", "session": "i"}, "the column 'i' is named twice, as item, session, also_context or weight"),
        (NAMES | {"also_context": "i"}, "the column 'i' is named twice"),
        (NAMES | {"weight": "s"}, "the column 's' is named twice"),
        (NAMES | {"column": "i"}, "--column .* reads lists or texts, and --item .* rows: give one of them"),
        (NAMES | {"lower": True}, "changes words of a text, but the table holds items: leave it out"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_text(Corpus(frame_of([(1, 2, 3)])), **options)
    with pytest.raises(SettingsError, match="lists have no columns"):
        read_text(Corpus([[1]]), item="i", session="s")


def test_a_long_table_is_cached_and_trained(tmp_path: Path) -> None:
    rows = [(item, session, -item) for session in range(40) for item in (5, 7, 1193)]
    WRITE["parquet"](frame_of(rows), tmp_path / "rows.parquet")
    command = ["train", tmp_path / "rows.parquet", "--item", "i", "--session", "s", "--order", "t", "--size", 3]
    command += ["--cache", tmp_path, "--epochs", 1, "--sample", 0, "--workers", 1]
    for name, reused in (("a", False), ("b", True)):
        assert (
            f'"cache_reused": {str(reused).lower()}'
            in run(*command, "-o", tmp_path / f"{name}.safetensors", "--json").stdout
        )
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    lists = [[1193, 7, 5]] * 40
    trained = w2v.train(lists, vector_size=3, epochs=1, sample=0, workers=1)
    loaded = w2v.load(tmp_path / "a.safetensors")
    assert loaded.index_to_key == trained.wv.index_to_key == [1193, 7, 5]
    np.testing.assert_array_equal(loaded.vectors, trained.wv.vectors)


CONTEXTS = [  # item, session, order, item that is also context, weight
    (1, "a", 2, 9, 2), (2, "a", 1, None, 2), (3, "b", -np.inf, 8, 1), (4, "b", 1, 9, 1), (5, "b", 2, 8, 1),
    (6, "c", 0, None, 0),
]  # fmt: skip


@pytest.mark.parametrize("kind", [*WRITE, "pandas", "pyarrow"])
def test_sessions_begin_with_their_contexts_and_are_repeated_by_weight(tmp_path: Path, kind: str) -> None:
    frame = pandas.DataFrame(CONTEXTS, columns=["i", "s", "t", "c", "w"])
    frame["t"] = frame["t"].replace(-np.inf, -5) if kind == "jsonl" else frame["t"]  # JSON has no infinity
    source: Any = {"pandas": frame, "pyarrow": pyarrow.Table.from_pandas(frame)}.get(kind, tmp_path / kind)
    if kind in WRITE:
        WRITE[kind](frame.astype({"c": "Int64"}), source)
    first, second = ["\ue0009", "2", "1"], ["\ue0009", "\ue0008", "3", "4", "5"]
    assert read_sessions(source, **NAMES, also_context="c", weight="w") == ("int", [first, second, first])
    assert read_sessions(source, **NAMES, weight="w")[1] == [first[1:], second[2:], first[1:]]
    assert read_sessions(source, **NAMES, also_context="c")[1] == [first, second, ["6"]]


@given(ROWS, st.integers(1, 9), st.integers(1, 70))
def test_contexts_and_weights_are_the_same_in_blocks_of_any_size(
    rows: list[tuple[int, int, int]], at_once: int, sorted_rows: int
) -> None:
    frame = frame_of(rows).assign(c=lambda frame: frame["i"].abs() % 3, w=lambda frame: frame["s"] % 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "ROWS_AT_ONCE", at_once)
        patch.setattr(long_table, "ROWS_IN_MEMORY", sorted_rows)
        kept = frame["w"].any()
        if not kept:
            with pytest.raises(W2VError, match="no session has a weight above 0"):
                read_sessions(frame, **NAMES, also_context="c", weight="w")
            return
        _, found = read_sessions(frame, **NAMES, also_context="c", weight="w")
    expected = [
        [*{f"\ue000{abs(int(item)) % 3}" for item in items}, *items]
        for session, items in zip(dict.fromkeys(frame["s"]), grouped(rows), strict=True)
        for _ in range(session % 3)
    ]
    for sessions in found, expected:
        for session in sessions:  # contexts, in any order, come before the items
            contexts = sorted(item for item in session if item[0] == "\ue000")
            assert sorted(session[: len(contexts)]) == contexts
            session[: len(contexts)] = contexts
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("x", "a", "y", 0.5)], "row 1: column 'w': the weight is 0.5: it must be a whole number from 0 to 1,000,000"),
        ([("x", "a", "y", 1), ("z", "a", "y", None)], "row 2: column 'w': the weight is missing"),
        ([("x", "a", "y", -1)], "column 'w': the weight is -1"),
        ([("x", "a", "y", 1e7)], "column 'w': the weight is 10000000.0"),
        ([("x", "a", "y", "many")], "column 'w': the weight is 'many'"),
        ([("x", "a", "y", 2), ("x", "b", "y", 1), ("x", "a", "y", 3)], "row 3: the weight of this session is 3, and 2"),
        ([("\ue000x", "a", "y", 1)], "row 1: column 'i': the item begins with U.E000, which marks items of --also"),
        ([("x", "a", ["y"], 1)], "row 1: column 'c': the item .* is of type list"),
    ],
)
def test_impossible_weights_and_contexts_name_their_place(rows: list[Any], message: str) -> None:
    frame = pandas.DataFrame(rows, columns=["i", "s", "c", "w"], dtype=object)
    with pytest.raises(W2VError, match=f"^the table, {message}" if message.startswith("row") else message):
        read_sessions(frame, item="i", session="s", also_context="c", weight="w")


@pytest.mark.parametrize("name", ["also_context", "weight"])
def test_columns_of_sessions_need_sessions_and_must_exist(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=rf"--{name.replace('_', '-')} \({name}=\) is a column of sessions"):
        read_sessions(frame_of([(1, 1, 1)]), column="i", **{name: "t"})
    (tmp_path / "x.csv").write_text("i,s,t\n1,2,3\n")
    for source in (frame_of([(1, 1, 1)]), tmp_path / "x.csv"):
        with pytest.raises(W2VError, match="column 'nothing'"):
            read_sessions(source, **NAMES, **{name: "nothing"})


def test_sessions_of_large_weights_come_in_few_blocks() -> None:
    frame = pandas.DataFrame({"i": [1, 2, 3], "s": [1, 1, 2], "w": [300_000, 300_000, 2]})
    with read_text(Corpus(frame), item="i", session="s", weight="w") as store:
        assert store.counts[store.counts > 0].tolist() == [300_002, 300_000, 300_000, 2]
        assert store.ids[:8].tolist() == [2, 3, 0, 4, 0, 2, 3, 0]  # sessions of weight above 0, then above 1
    with pytest.raises(W2VError, match=r"^the table: no session has a weight above 0$"):
        read_sessions(frame.assign(w=0), item="i", session="s", weight="w")
