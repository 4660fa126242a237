"""Tables as people have them: separators, headers, quoting, arrays of JSON and orders of any type, as pandas reads."""

import csv
import io
import itertools
import json
import logging
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import parquet

import w2v
from tests.helpers import read_sessions, read_text, run
from w2v._errors import W2VError
from w2v._text import columns, corpus, long_table
from w2v._text.corpus import Corpus
from w2v._text.long_table import Order, order_of_array, order_of_objects

NAMES = {"item": "i", "session": "s", "order": "t"}
BY_NUMBER = {"item": "2", "session": "1", "order": "4"}
RATINGS = [("196", "242", "3", "881250949"), ("186", "302", "3", "891717742"), ("196", "377", "1", "878887116")]


def texts(path: Path, **reading: Any) -> list[str]:
    with read_text(Corpus(path), **reading) as store:
        return list(store.types)[2:]


def cells(path: Path, *names: str, header: bool | None = None) -> list[list[Any]]:
    table = Corpus(path)
    table.header = header
    return [row for _, row in table.cells(names)]


@pytest.mark.parametrize("separator", ["\t", "::", ",", ";", "|", " "])
@pytest.mark.parametrize("header", [True, False])
def test_columns_are_found_by_number(
    tmp_path: Path, separator: str, header: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The files have the form of MovieLens' u.data and ratings.dat."""
    rows = [*([("user", "movie", "rating", "time")] if header else []), *RATINGS]
    (tmp_path / "u").write_text("".join(separator.join(row) + "\n" for row in rows))
    with caplog.at_level(logging.INFO, "w2v"):
        assert read_sessions(tmp_path / "u", **BY_NUMBER) == ("int", [["377", "242"], ["302"]])
    taken = "columns 2 (movie) and 1 (user) and 4 (time)" if header else "columns 2 and 1 and 4"
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'u'}: {taken}, separated by {columns.SEPARATORS[separator]}; the first row has "
        f"{'names' if header else 'data'} (--header, --no-header)"
    ]


def test_the_user_decides_whether_the_first_row_has_names(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("alice,bob\ncarol,dave\n")
    for header, found in ((None, ["bob", "dave"]), (False, ["bob", "dave"]), (True, ["dave"])):
        assert cells(tmp_path / "a", "2", header=header) == [[each] for each in found]
    run("vocab", tmp_path / "a", "--column", 2, "--header", "--min-count", 1, "-o", tmp_path / "words")
    assert (tmp_path / "words").read_text() == "</s> 1\ndave 1\n"
    with pytest.raises(W2VError, match="without a header, columns have no names: give their numbers, from 1"):
        cells(tmp_path / "a", "alice", header=False)
    with pytest.raises(W2VError, match="has no column '3'; its columns are 2, without names"):
        cells(tmp_path / "a", "3")
    (tmp_path / "b").write_text("2,a,a\nx,y,z\n")
    assert cells(tmp_path / "b", "2") == [["x"]]  # a name comes before a number
    assert cells(tmp_path / "b", "3", "2", header=True) == [["z", "x"]]
    with pytest.raises(W2VError, match="has 2 columns 'a': name it by its number, from 1"):
        cells(tmp_path / "b", "a")


@pytest.mark.parametrize("first", ["u1,i1,", "u1,i1,NULL", "guest,501,1700000000"])
def test_a_first_row_with_numbers_or_missing_values_is_no_header(tmp_path: Path, first: str) -> None:
    (tmp_path / "x").write_text(f"{first}\n17,502,5\n17,503,4\n")
    assert cells(tmp_path / "x", "2")[0] == [first.split(",")[1]]


def test_a_row_above_dates_is_a_header(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("user,item,when\na,b,2024-01-31\nc,d,2024-01-31T10:00:00Z\n")
    assert cells(tmp_path / "x", "2") == [["b"], ["d"]]


def test_columns_of_parquet_are_found_by_number(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    parquet.write_table(pyarrow.table({"user": ["a", "a"], "film": [7, 8]}), tmp_path / "x")
    with caplog.at_level(logging.INFO, "w2v"):
        assert read_sessions(tmp_path / "x", item="2", session="1") == ("int", [["7", "8"]])
    assert [record.getMessage() for record in caplog.records] == [f"{tmp_path / 'x'}: columns 2 (film) and 1 (user)"]


@pytest.mark.parametrize("separator", ["\t", "::", ",", ";", "|"])
def test_rows_that_are_read_as_text_are_named(tmp_path: Path, separator: str) -> None:
    (tmp_path / "u").write_text("".join(separator.join(row) + "\n" for row in RATINGS))
    with pytest.warns(w2v.TextWarning, match="its lines have 4 fields, separated by .*--item 2 --session 1"):
        read_text(Corpus(tmp_path / "u"), column=None).close()


@pytest.mark.parametrize(
    "text",
    [
        *("one, two\nthree, four\nfive, six\n", "a b c\nd e f\ng h i\n", "a,b\na,b\n"),
        "File::Spec\nFile::Basename\nText::Wrap test\n",
        *("2024-01-01 12:00:00,100 INFO job\n" * 3, "foo(a,b);\nbar(a,b);\nbaz(c,d);\n", "1,5 kg\n2,5 kg\n3,5 kg\n"),
        "the cat .\tle chat .\nthe dog .\tle chien .\na bird .\tun oiseau .\n",
    ],
)
def test_lines_of_text_give_no_advice_about_columns(text: str, recwarn: pytest.WarningsRecorder) -> None:
    columns.refuse_table("text", text.encode())
    assert not recwarn.list


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('id\ttext\tn\n1\t"abc" def\t1\n2\tx\t2\n', ['"abc" def', "x"]),  # quotation marks, but no quoting
        ('id\ttext\tn\n1\t"abc\t1\n2\tdef"\t2\n', ['"abc', 'def"']),
        ('id\ttext\n1\t"abc"\n2\tx\n', ["abc", "x"]),
        ('id\ttext\n1\t"a ""b"" c"\n2\t"d\ne"\n', ['a "b" c', "d\ne"]),
        ('id,text\n1,"a, ""b"""\n2,"c\nd"\n', ['a, "b"', "c\nd"]),
        ('id,text\n1,"a \\"b\\", c"\n2,d\n', ['a "b", c', "d"]),
        ('id,text\n1,"abc" def\n2,x\n', ['"abc" def', "x"]),
        ("id|text\n1|a,b\n2|c,d,e\n", ["a,b", "c,d,e"]),
        ("text\na,b\n", None),  # 1 column, and then 2
        ('id,text\n1,"a\n', None),  # the file is cut
        ('id,text\n1,"a"\n2,"b" c\n3,x,y\n', None),
    ],
)
def test_quotation_marks_are_read_as_they_are_meant(tmp_path: Path, text: str, found: list[str] | None) -> None:
    (tmp_path / "a").write_text(text)
    if found is None:
        with pytest.raises(W2VError, match=r"a, line \d: (not CSV|\d columns, and \d in the first row)"):
            cells(tmp_path / "a", "text")
    else:
        assert cells(tmp_path / "a", "text") == [[each] for each in found]


@pytest.mark.parametrize("size", [1, 3, 1 << 19])
def test_arrays_of_json_are_tables(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "BLOCK_BYTES", size)
    rows = [{"t": "a [1], {2}"}, {"t": None}, {"t": 'é "b" \\ \n]'}, {"n": 1, "t": "c"}]
    for name, text in {
        "array": json.dumps(rows),
        "lines": "\n".join(map(json.dumps, rows)),
        "indented": json.dumps(rows, indent=2, ensure_ascii=False) + "\n",
        "objects": "\n".join(json.dumps(row, indent=1) for row in rows),
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert cells(tmp_path / name, "t") == [[row["t"]] for row in rows]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"t": "a"}, {"t": "b"}', "line 1: not JSON"),  # cut
        ('[{"t": "a"},\n{"t" "b"},\n{"t": "c"}]', "line 2: not JSON: Expecting ':' delimiter"),
        ('[{"t": "a"}]\n5\n', "line 2: not a JSON object"),
        ('[["t"], ["a"]]', "line 1: not a JSON object"),
        ('{"t": "a"}\n{"t": "b\n', "line 2: not JSON"),
    ],
)
def test_damaged_json_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(W2VError, match=message):
        cells(tmp_path / "a", "t")


# -- orders -----------------------------------------------------------------------------------------

MOMENTS = [pandas.Timestamp(f"2024-01-0{day}") for day in (3, 1, 2)]
FORMS: dict[str, Any] = {
    **{unit: pyarrow.array(MOMENTS, pyarrow.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "zone": pyarrow.array([each.tz_localize("UTC") for each in MOMENTS], pyarrow.timestamp("us", "Asia/Tokyo")),
    "date32": pyarrow.array(MOMENTS, pyarrow.date32()),
    "date64": pyarrow.array(MOMENTS, pyarrow.date64()),
    "text": pyarrow.array([f"{each:%Y-%m-%d}" for each in MOMENTS]),
}


def order_of(values: Any) -> Order:
    """Return the order of a pyarrow array, NumPy array or list."""
    is_array = isinstance(values, pyarrow.Array)
    return order_of_array(pyarrow, values, str) if is_array else order_of_objects(values, str)


def test_dates_of_all_units_are_the_same_order(tmp_path: Path) -> None:
    """Each file has two rows of a session, and each item is the day of the month."""
    for form, values in FORMS.items():
        order = order_of(values)
        assert order.kind == "dates"
        np.testing.assert_array_equal((order.first, order.second), order_of(FORMS["ns"])[1:3], form)
    forms = [FORMS["s"][:1], *(values[1:] for values in FORMS.values()), FORMS["date64"][:1]]
    for number, values in enumerate(forms):
        items = [3] if len(values) == 1 else [1, 2]
        table = {"i": items, "s": [number % 2] * len(items), "t": values}
        parquet.write_table(pyarrow.table(table), tmp_path / str(number))
    assert read_sessions(tmp_path, **NAMES)[1] == [[*"1111222233"[:4], *"2222", "3"], [*"1111", *"2222", "3"]]


@pytest.mark.parametrize(
    "orders",
    [
        [np.datetime64("1600-01-01", "s"), np.datetime64("2262-05-01", "s"), np.datetime64("9999-01-01", "s")],
        ["9999-12-31", "10000-01-01", "123456-01-01"],
        [9223372036854775809, 18446744073709551614, 18446744073709551615],
        [-(1 << 63), (1 << 63) - 2, (1 << 63) - 1],
        [-(1 << 63), 1 << 63, (1 << 63) + 1],
        ["5", "98765432109876543210", "98765432109876543211"],
        [Decimal("-0.1"), Decimal("98765432109876543211"), Decimal("98765432109876543211.5")],
        [2, 2.5, (1 << 60) + 1, (1 << 60) + 2],
        ["2023-12-31T23:59:59.999999999", "2024-01-01T00:00:00.000000001", "2024-01-01T00:00:00.000000002"],
        ["2024-01-01T12:00:00+0100", "2024-01-01T12:00:00+00:30", "2024-01-01T12:00:00Z", "2024-01-01 12:00-01:00"],
        [float("-inf"), -1e300, -5e-324, 0.0, 2.5],
        ["2023-12-31T23:00", "2024-01-01 09:59:59.5", "2024-01-01T10:00:00Z", "2024-02"],
        ["-8", "9.5", "1e1"],
        [date(2023, 12, 31), date(2024, 1, 1)],
        [datetime(2024, 1, 1), pandas.Timestamp("2024-01-01 00:00:00.000000002")],
        [np.timedelta64(-1, "ns"), np.timedelta64(1, "ns"), np.timedelta64(2, "ns")],
    ],
    ids=str,
)
def test_no_order_loses_digits(orders: list[Any]) -> None:
    """Each list is in its order."""
    forms = [orders, np.array(orders, object), [*map(str, orders)]]
    if isinstance(orders[0], np.generic):
        forms = [np.array(orders), *(forms if orders[0].dtype.kind == "M" else [])]
    for values in forms:
        backwards = order_of(values[::-1])
        np.testing.assert_array_equal(np.lexsort((backwards.second, backwards.first)), range(len(orders))[::-1])


def test_orders_of_pyarrow_keep_their_digits() -> None:
    for array in (
        pyarrow.array([1 << 63, (1 << 64) - 1], pyarrow.uint64()),
        pyarrow.array([date(2023, 12, 31), date(2024, 1, 1)], pyarrow.date64()),
        pyarrow.array([time(0), time(11, 59, 59, 999999), time(12)]),
        pyarrow.array([timedelta(-1), timedelta(microseconds=1), timedelta(1)], pyarrow.duration("us")),
        pyarrow.array(["9", "10"]).dictionary_encode(),
        pyarrow.array([Decimal("98765432109876543210"), Decimal("98765432109876543211")]),
    ):
        order = order_of(array)
        np.testing.assert_array_equal(np.lexsort((order.second, order.first)), range(len(array)))
    order = order_of(pyarrow.array([1, None], pyarrow.timestamp("s")))
    assert (order.kind, order.valid.tolist()) == ("dates", [True, False])
    assert order_of(pyarrow.array([1.5, None, float("nan")])).valid.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        (["1704000000", "2024-01-01"], "row 2: column 't': an order .* not one of each: '2024-01-01' comes after '17"),
        (["2024-01-01", "1704000000"], "row 2: column 't': an order .* not one of each: '1704000000' comes after"),
        (["2024-01-01", "NaT"], "row 2: column 't': an order is a number or a date such as 2024-12-31, not 'NaT'"),
        (["today", "2024-01-01"], "row 1: column 't': an order is a number or a date .* not 'today'"),
        (["2024-13-01", "2024-01-01"], "row 1: column 't': an order is a number or a date .* not '2024-13-01'"),
    ],
)
def test_orders_of_two_kinds_are_refused(tmp_path: Path, orders: list[str], message: str) -> None:
    (tmp_path / "a").write_text("i,s,t\n" + "".join(f"1,1,{each}\n" for each in orders))
    with pytest.raises(W2VError, match=message):
        read_sessions(tmp_path / "a", **NAMES)


def test_files_with_orders_of_two_kinds_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("i,s,t\n1,1,1704000000\n")
    parquet.write_table(pyarrow.table({"i": [1], "s": [1], "t": FORMS["ms"][:1]}), tmp_path / "b")
    with pytest.raises(W2VError, match=r"b, row 1: the order is dates, but numbers in .*a, row 1: use one kind"):
        read_sessions(tmp_path, **NAMES)


@pytest.mark.parametrize(
    "column",
    [
        pyarrow.array([[1], [2]]),
        pyarrow.array([[("a", 1)], []], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        pyarrow.array([(1, 2, 3)] * 2, pyarrow.month_day_nano_interval()),
        pyarrow.array([{"a": 1}] * 2),
        pyarrow.array([True, False]),
    ],
    ids=lambda column: str(column.type)[:9],
)
def test_unsuitable_columns_are_one_line(tmp_path: Path, column: Any) -> None:
    table = pyarrow.table({"i": [1, 2], "s": [1, 1], "t": column})
    frame = pandas.DataFrame({"i": [1, 2], "s": 1, "t": pandas.array(column, pandas.ArrowDtype(column.type))})
    for source, options in itertools.product((table, frame), (NAMES, {"item": "t", "session": "s"})):
        if source is frame and options is not NAMES and column.type == pyarrow.bool_():
            continue  # objects of other types are items by their text
        with pytest.raises(W2VError, match=r"the table.*(an order is a number|text or whole|single keys|month_day)"):
            read_sessions(source, **options)
    interval = pandas.arrays.IntervalArray.from_tuples([(0, 1), (1, 2)])
    with pytest.raises(W2VError, match="an order is a number or a date"):
        read_sessions(frame.assign(t=interval), **NAMES)


def test_equal_orders_keep_the_order_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_table, "ROWS_IN_MEMORY", 1 << 18)
    random = np.random.default_rng(1)
    rows = 300_000
    sessions, orders = random.integers(0, 100_000, rows), random.integers(0, 3, rows)
    table = pyarrow.table({"i": np.arange(rows), "s": sessions, "t": orders})
    with read_text(Corpus(table), **NAMES, workers=2) as store:
        found = np.array(list(store.types)[2:])[store.ids[store.ids > 0] - 2].astype(np.int64)
    by_first_row = np.full(100_000, rows)
    np.minimum.at(by_first_row, sessions, np.arange(rows))
    np.testing.assert_array_equal(found, np.lexsort((np.arange(rows), orders, by_first_row[sessions])))


def test_text_tables_need_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.csv").write_text("i,s\n1,a b\n2,a\n")
    (tmp_path / "b.json").write_text('[{"i": 1, "s": "a b"}, {"i": 2, "s": "a"}]')
    for name in ("a.csv", "b.json"):
        assert texts(tmp_path / name, column="s") == ["a", "b"]
        assert read_sessions(tmp_path / name, item="i", session="s") == ("int", [["1"], ["2"]])


# -- the same as pandas -----------------------------------------------------------------------------

VALUES: dict[str, Any] = {
    "numbers": [0, 7, -3, 1 << 40, 99],
    "texts": ["tea", "green tea", 'a "b"', "it's", "x,y", "x;y", "007", "é"],
    "fractions": [0.5, -1.25, 3.0, 1e9, 2.0],
    "dates": [pandas.Timestamp("2024-02-29"), pandas.Timestamp("1969-12-31 23:59:59"), pandas.Timestamp("2024-03-01")],
}


def random_table(seed: int, order: str) -> pandas.DataFrame:
    """Return a table with missing values and equal orders."""
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 40))

    def column(kind: str) -> pandas.Series:
        values = VALUES[kind]
        chosen = [values[k] if random.random() > 0.1 else None for k in random.integers(0, len(values), rows)]
        return pandas.Series(chosen, dtype="Int64" if isinstance(values[0], int) else None)

    kinds = ["numbers", "texts"]
    return pandas.DataFrame({
        "n": 1, "i": column(str(random.choice(kinds))), "s": column(str(random.choice(kinds))), "t": column(order)
    })  # fmt: skip


def write_table(frame: pandas.DataFrame, path: Path, seed: int) -> None:
    """Write a table in one of several forms."""
    form = ["parquet", "jsonl", "json", ",", ";", "\t", "|"][seed % 7]
    text = io.StringIO()
    if form == "parquet":
        parquet.write_table(pyarrow.Table.from_pandas(frame), path, row_group_size=9)
    elif form in ("jsonl", "json"):
        frame.to_json(text, orient="records", lines=form == "jsonl", date_format="iso", date_unit="ns")
    else:
        quoting = csv.QUOTE_ALL if seed // 7 % 2 else csv.QUOTE_MINIMAL
        frame.to_csv(text, index=False, sep=form, quoting=quoting, lineterminator="\r\n" if seed % 3 else "\n")
    if text.getvalue():
        path.write_text(text.getvalue(), encoding="utf-8", newline="")


@pytest.mark.parametrize("order", ["numbers", "fractions", "dates"])
def test_random_tables_are_read_as_pandas_reads_them(tmp_path: Path, order: str) -> None:
    """84 tables of each kind of order, in files of one folder. A session goes on in later files."""
    frames = []
    for seed in range(84):
        frames.append(random_table(seed, order))
        write_table(frames[-1], tmp_path / f"{seed:02}", seed)
    whole = pandas.concat([frame.astype({"i": object, "s": object}) for frame in frames]).dropna()
    sessions = whole.groupby(whole["s"].astype(str), sort=False)
    expected = [rows.sort_values("t", kind="stable")["i"].astype(str).tolist() for _, rows in sessions]
    assert len(whole) > 900
    assert read_sessions(tmp_path, **NAMES)[1] == expected
    for frame in frames[:3]:
        whole = frame.dropna()
        for source in (frame, pyarrow.Table.from_pandas(frame)):
            expected = [
                rows.sort_values("t", kind="stable")["i"].tolist() for _, rows in whole.groupby("s", sort=False)
            ]
            assert read_sessions(source, **NAMES)[1] == [[*map(str, items)] for items in expected]
