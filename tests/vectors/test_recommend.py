"""Recommendations for sessions, compared with gensim's most_similar, and the files that `w2v recommend` writes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import w2v
from tests.helpers import import_gensim, run, run_json
from w2v._text import long_table
from w2v._text.corpus import Corpus
from w2v._vectors import approximate
from w2v._vectors.recommend import Recommender, recommend

ITEMS = [f"i{row}" for row in range(60)]
VECTORS = np.random.default_rng(1).normal(size=(60, 8)).astype(np.float32)
SESSIONS = [["i3"], ["i1", "i2", "i1", "unknown"], ["i7", "i7"], ["unknown"], [], ["i5", "i9", "i40", "i59", "i0"]]


@pytest.fixture(scope="module")
def vectors() -> w2v.KeyedVectors:
    return w2v.KeyedVectors(ITEMS, VECTORS)


@pytest.fixture(scope="module")
def theirs() -> Any:
    keyed = import_gensim("gensim.models").KeyedVectors(8)
    keyed.add_vectors(ITEMS, VECTORS)
    return keyed


def assert_same(found: list[Any], expected: list[Any]) -> None:
    assert [key for key, _ in found] == [key for key, _ in expected]
    np.testing.assert_allclose([score for _, score in found], [score for _, score in expected], atol=1e-5)


@pytest.mark.parametrize("topn", [1, 4, 100, 1 << 70])
@pytest.mark.parametrize("last", [None, 1, 2, 9, 1 << 70])
def test_recommendations_are_those_of_gensim(
    vectors: w2v.KeyedVectors, theirs: Any, topn: int, last: int | None
) -> None:
    found = recommend(vectors, SESSIONS, topn, last)
    assert len(found) == len(SESSIONS)
    for session, items in zip(SESSIONS, found, strict=True):
        known = [item for item in session if item in vectors]
        used = known if last is None else known[-last:]
        expected = theirs.most_similar(used, topn=60) if used else []
        assert_same(items, [pair for pair in expected if pair[0] not in known][:topn])
        assert not items or len(items) == min(topn, 60 - len(set(known)))


def test_an_index_gives_nearly_the_same_recommendations(vectors: w2v.KeyedVectors) -> None:
    pytest.importorskip("usearch")
    index = approximate.ApproximateIndex(VECTORS)
    exact, found = recommend(vectors, SESSIONS, 5, 2), recommend(vectors, SESSIONS, 5, 2, index)
    assert [len(items) for items in found] == [5, 5, 5, 0, 0, 5]
    scores = [dict(recommend(vectors, [session], 60, 2)[0]) for session in SESSIONS]
    for session, items, best in zip(scores, found, exact, strict=True):
        for item, score in items:
            assert score == pytest.approx(session[item], abs=1e-5)
        assert len({item for item, _ in items} & {item for item, _ in best}) >= len(best) - 1


def test_missing_sessions_keep_their_place(vectors: w2v.KeyedVectors) -> None:
    with pytest.warns(w2v.TextWarning, match=r"^recommended nothing for 2 missing texts "):
        found = recommend(vectors, [None, ["i3"], None], 2)
    assert [len(items) for items in found] == [0, 2, 0]
    assert recommend(vectors, []) == []


def test_small_types_are_searched(tmp_path: Path, vectors: w2v.KeyedVectors) -> None:
    vectors.save(tmp_path / "m.safetensors")
    run("convert", tmp_path / "m.safetensors", tmp_path / "f16.safetensors", "--storage", "f16", "--quiet")
    small = w2v.load(tmp_path / "f16.safetensors", mmap=True)
    for items, expected in zip(recommend(small, SESSIONS, 3), recommend(vectors, SESSIONS, 60), strict=True):
        for item, score in items:
            assert score == pytest.approx(dict(expected)[item], abs=2e-3)


@pytest.mark.parametrize("size", [2, 7, 40])
def test_a_session_may_go_on_in_the_next_block(
    monkeypatch: pytest.MonkeyPatch, vectors: w2v.KeyedVectors, tmp_path: Path, size: int
) -> None:
    expected = recommend(vectors, SESSIONS, 3)
    (tmp_path / "sessions").write_text("".join(" ".join(session) + "\n" for session in SESSIONS))

    ends = {"unknown": 60, "end": -1}
    rows = np.array([ends.get(item, 0) or int(item[1:]) for each in SESSIONS for item in [*each, "end"]], np.int64)
    monkeypatch.setattr(Corpus, "blocks", lambda *_, **__: range(0, len(rows), size))
    monkeypatch.setattr(Recommender, "_rows_of", lambda _, start: (rows[start : start + size], None, start))
    recommender = Recommender(vectors, 3)
    blocks = [*recommender.blocks(Corpus(tmp_path / "sessions"))]
    found = [pairs for block in blocks for pairs in block.sessions(ITEMS)]
    for items, best in zip(found, expected, strict=True):
        assert_same(items, best)
    assert (recommender.sessions, recommender.empty, recommender.items, recommender.unknown) == (6, 2, 13, 2)


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_sessions_are_searched_in_batches(
    monkeypatch: pytest.MonkeyPatch, vectors: w2v.KeyedVectors, at_once: int
) -> None:
    expected = recommend(vectors, SESSIONS, 3)
    monkeypatch.setattr("w2v._vectors.recommend.SESSIONS_AT_ONCE", at_once)
    sizes: list[int] = []
    search = Recommender._search

    def counted(self: Any, queries: Any, left_out: Any) -> Any:
        sizes.append(len(queries))
        return search(self, queries, left_out)

    monkeypatch.setattr(Recommender, "_search", counted)
    for items, best in zip(recommend(vectors, SESSIONS, 3), expected, strict=True):
        assert_same(items, best)
    assert max(sizes) <= at_once


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topn": 0}, "topn 0"),
        ({"last": 0}, "last 0"),
        ({"topn": 2.5}, "topn 2.5"),
        ({"sessions": "i1 i2"}, "a list of sessions is needed, not an object of type str"),
        ({"sessions": Path("i1")}, "a list of sessions is needed"),
        ({"sessions": {"a": ["i1"]}}, "a list of sessions is needed, not an object of type dict"),
    ],
)
def test_wrong_arguments_are_refused(vectors: w2v.KeyedVectors, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(w2v.W2VError, match=message):
        recommend(vectors, **{"sessions": SESSIONS} | arguments)


# -- the command ------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, vectors: w2v.KeyedVectors, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    vectors.save("m.bin")
    Path("s.txt").write_text("".join(" ".join(session) + "\n" for session in SESSIONS))
    return tmp_path


@pytest.mark.parametrize("extension", ["parquet", "arrow", "jsonl"])
def test_the_command_writes_a_row_for_each_session(files: Path, vectors: w2v.KeyedVectors, extension: str) -> None:
    shown = run_json("recommend", "m.bin", "s.txt", "-o", f"top.{extension}", "--topn", 3, "--last", 2)
    assert shown == {"output": f"top.{extension}", "sessions": 6, "empty": 2, "items": 13, "unknown": 2}
    if extension == "jsonl":
        rows = [json.loads(line) for line in Path("top.jsonl").read_text().splitlines()]
    else:
        read = parquet.read_table if extension == "parquet" else feather.read_table
        table = read(f"top.{extension}")
        assert table.schema == pa.schema([("items", pa.list_(pa.string())), ("scores", pa.list_(pa.float32()))])
        rows = table.to_pylist()
    for row, expected in zip(rows, recommend(vectors, SESSIONS, 3, 2), strict=True):
        assert_same(list(zip(row["items"], row["scores"], strict=True)), expected)


def test_the_command_shows_items_without_an_output(files: Path, vectors: w2v.KeyedVectors) -> None:
    shown = run_json("recommend", "m.bin", "s.txt", "--topn", 2)
    pairs = [[(one["item"], one["score"]) for one in session] for session in shown["recommendations"]]
    for found, expected in zip(pairs, recommend(vectors, SESSIONS, 2), strict=True):
        assert_same(found, expected)
    text = run("recommend", "m.bin", "s.txt", "--topn", 2).stdout
    (first, _), (second, score) = recommend(vectors, [["i3"]], 2)[0]
    assert text.splitlines()[0].split()[:2] == ["1", first]
    assert text.splitlines()[1].split() == [second, f"{score:.4f}"]
    assert "4  no known item" in text
    assert "unknown   2" in text


def test_sessions_of_other_items_are_noted(files: Path) -> None:
    Path("other.txt").write_text("x y\nz\n")
    result = run("recommend", "m.bin", "other.txt", "-o", "top.jsonl")
    assert "w2v: m.bin knows none of the items: are they named as in its training?\n" in result.stderr
    assert [json.loads(line) for line in Path("top.jsonl").read_text().splitlines()] == 2 * [
        {"items": [], "scores": []}
    ]
    Path("none.txt").write_text("\n\n")
    assert "knows none" not in run("recommend", "m.bin", "none.txt").stderr


def test_approximate_search_reports_its_recall(files: Path, vectors: w2v.KeyedVectors) -> None:
    pytest.importorskip("usearch")
    shown = run_json("recommend", "m.bin", "s.txt", "--approximate")
    assert 0.9 < shown["recall"] <= 1
    assert len(shown["recommendations"][0]) == 10


def test_numbers_are_written_as_numbers(tmp_path: Path) -> None:
    keys = [3, 5, 1 << 63]
    for number_keys, kind in ((keys[:2], pa.int64()), (keys, pa.uint64())):
        numbers = w2v.KeyedVectors(number_keys, VECTORS[: len(number_keys)])
        numbers.save(tmp_path / "m.safetensors", force=True)
        (tmp_path / "s.txt").write_text("3\n")
        for name in ("top.parquet", "top.jsonl"):
            run("recommend", tmp_path / "m.safetensors", tmp_path / "s.txt", "-o", tmp_path / name, "--force")
        table = parquet.read_table(tmp_path / "top.parquet")
        assert table.schema.field("items").type == pa.list_(kind)
        items = table.column("items").to_pylist()[0]
        assert sorted(items) == number_keys[1:]
        assert json.loads((tmp_path / "top.jsonl").read_text())["items"] == items


@pytest.mark.parametrize("kind", [pa.int16(), pa.uint64(), pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_columns_of_lists_are_read(tmp_path: Path, kind: Any) -> None:
    """Sessions in part files, with missing and empty ones, and items with white space."""
    is_text = not pa.types.is_integer(kind)
    keys: list[Any] = [f"item {row}" for row in range(60)] if is_text else list(range(60))
    unknown: Any = "un known" if is_text else 999
    sessions = [[keys[3]], None, [], [keys[1], unknown, keys[2]], [unknown], [keys[7], None]]
    vectors = w2v.KeyedVectors(keys, VECTORS)
    vectors.save(tmp_path / "m.safetensors")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "_SUCCESS").touch()
    values = [None if session is None else pa.array(session, pa.string() if is_text else kind) for session in sessions]
    value_type = pa.string() if is_text else kind
    for number, part in enumerate((values[:2], values[2:])):
        lists = pa.array([None if each is None else each.to_pylist() for each in part], pa.list_(value_type))
        if pa.types.is_dictionary(kind):
            lists = pa.ListArray.from_arrays(lists.offsets, lists.values.dictionary_encode(), mask=lists.is_null())
        parquet.write_table(pa.table({"items": lists}), tmp_path / "parts" / f"part-{number}.parquet")
    arguments = "recommend", tmp_path / "m.safetensors", tmp_path / "parts", "--column", "items", "--topn", 4
    shown = run_json(*arguments, "-o", tmp_path / "top.parquet")
    assert (shown["sessions"], shown["empty"], shown["items"], shown["unknown"]) == (6, 3, 6, 2)
    rows = parquet.read_table(tmp_path / "top.parquet").to_pylist()
    known = [[keys[3]], [], [], [keys[1], keys[2]], [], [keys[7]]]
    for row, expected in zip(rows, recommend(vectors, known, 4), strict=True):
        assert_same(list(zip(row["items"], row["scores"], strict=True)), expected)


# Rows (item, session, order) of the sessions 9: i1, i2; 4: i3; 7: no known item; and a row without an item.
LONG_TABLE = [("i2", 9, 2), ("i3", 4, 5), ("unknown", 7, 1), (None, 4, 4), ("i1", 9, 1)]


@pytest.mark.parametrize("rows_in_memory", [1, 100])
@pytest.mark.parametrize("kind", ["int64", "uint64", "string", "csv", "csv of text", "jsonl"])
def test_tables_with_a_row_for_each_item_are_read(
    files: Path, vectors: w2v.KeyedVectors, monkeypatch: pytest.MonkeyPatch, kind: str, rows_in_memory: int
) -> None:
    monkeypatch.setattr(long_table, "ROWS_IN_MEMORY", rows_in_memory)
    is_number = kind not in ("string", "csv of text")
    names: dict[int, Any] = {name: name if is_number else f"visit {name}" for name in (9, 4, 7)}
    if kind == "uint64":
        names[9] = (1 << 63) + 9
    session_type = pa.uint64() if kind == "uint64" else pa.int64() if is_number else pa.string()
    columns = [[item for item, _, _ in LONG_TABLE], [names[name] for _, name, _ in LONG_TABLE]]
    columns.append([order for _, _, order in LONG_TABLE])
    if kind.startswith("csv"):
        lines = [",".join("" if value is None else str(value) for value in row) for row in zip(*columns, strict=True)]
        Path("rows").write_text("\n".join(["item,visit,time", *lines]))
    elif kind == "jsonl":
        rows = [dict(zip(["item", "visit", "time"], row, strict=True)) for row in zip(*columns, strict=True)]
        Path("rows").write_text("\n".join(map(json.dumps, rows)))
    else:
        sessions = pa.array(columns[1], session_type)
        parquet.write_table(pa.table({"item": columns[0], "visit": sessions, "time": columns[2]}), "rows")
    arguments = "recommend", "m.bin", "rows", "--item", "item", "--session", "visit", "--order", "time", "--topn", 3
    expected = {names[9]: ["i1", "i2"], names[4]: ["i3"], names[7]: []}
    found = run(*arguments, "--last", 1, "-o", "top.parquet")
    assert "recommended nothing for 1 incomplete row" in found.stderr
    table = parquet.read_table("top.parquet")
    assert table.schema.field("session").type == session_type
    run(*arguments, "--last", 1, "-o", "top.jsonl", "--quiet")
    for rows in (table.to_pylist(), [json.loads(line) for line in Path("top.jsonl").read_text().splitlines()]):
        assert [row["session"] for row in rows] == list(expected)
        for row, best in zip(rows, recommend(vectors, expected.values(), 3, 1), strict=True):
            assert_same(list(zip(row["items"], row["scores"], strict=True)), best)
    shown = run_json(*arguments)
    assert shown["session_names"] == list(expected)
    assert [len(items) for items in shown["recommendations"]] == [3, 3, 0]
    assert f"\n{names[7]}  no known item" in run(*arguments).stdout


def test_an_empty_table_with_a_row_for_each_item_gives_an_empty_file(files: Path) -> None:
    Path("rows.csv").write_text("item,visit\n,1\n")
    for name in ("top.parquet", "top.jsonl"):
        shown = run_json("recommend", "m.bin", "rows.csv", "--item", "item", "--session", "visit", "-o", name)
        assert shown["sessions"] == 0
    assert parquet.read_table("top.parquet").column_names == ["session", "items", "scores"]
    assert parquet.read_table("top.parquet").num_rows == 0
    assert Path("top.jsonl").read_text() == ""


def test_numbers_that_no_integer_type_holds_are_refused_in_one_line(files: Path) -> None:
    keys = [-5, 1 << 63]
    w2v.KeyedVectors(keys, VECTORS[:2]).save("numbers.safetensors")
    Path("s.jsonl").write_text('{"visit": -1, "item": -5}\n{"visit": 9223372036854775808, "item": -5}\n')
    Path("line.txt").write_text("-5\n")
    for arguments in (
        ["numbers.safetensors", "line.txt"],
        ["m.bin", "s.jsonl", "--item", "item", "--session", "visit"],
    ):
        error = run("recommend", *arguments, "-o", "top.parquet", code=1).stderr
        assert "9223372036854775808 do not fit one type of integers: use .jsonl" in error
        run("recommend", *arguments, "-o", "top.jsonl", "--force")


def test_a_later_session_that_the_type_does_not_hold_is_refused(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("w2v._vectors.recommend.SESSIONS_AT_ONCE", 1)
    Path("rows.csv").write_text(f"item,visit\ni1,1\ni2,{1 << 63}\n")
    columns = "--item", "item", "--session", "visit"
    error = run("recommend", "m.bin", "rows.csv", *columns, "-o", "t.arrow", code=1).stderr
    assert "the sessions do not fit one type of integers, int64: use .jsonl" in error
    assert not Path("t.arrow").exists()


def test_wrong_files_are_refused_in_one_line(files: Path) -> None:
    error = run("recommend", "m.bin", "s.txt", "-o", "top.txt", code=2).stderr
    assert "top.txt: unknown extension: use one of .parquet, .arrow, .jsonl" in error
    Path("bad.txt").write_bytes(b"i1\n\xff\n")
    assert "bad.txt: byte 3, in b'\\xff', is not UTF-8" in run("recommend", "m.bin", "bad.txt", code=1).stderr
