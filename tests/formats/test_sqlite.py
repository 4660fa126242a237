"""Databases: what SQLite and sqlite-vec find in them, and what is refused."""

import sqlite3
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import assert_refused
from w2v.formats import sqlite
from w2v.formats.sqlite import PLAIN, WORDS

NAMES = ["the", "köln", "a b"]


@pytest.fixture(params=["plain", "sqlite-vec"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    else:
        pytest.importorskip("sqlite_vec")
        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            pytest.skip("this Python cannot load extensions of SQLite")
    vectors = w2v.KeyedVectors(NAMES, np.array([[1, 0], [0.5, 1], [0, -1]]), [5, 2, 1])
    vectors.save(tmp_path / "m.db")
    return tmp_path / "m.db"


def test_it_is_read_again_and_searched(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = w2v.load(path)
    assert found.index_to_key == NAMES
    assert found.counts.tolist() == [5, 2, 1]
    np.testing.assert_array_equal(found.vectors, [[1, 0], [0.5, 1], [0, -1]])
    assert list(path.parent.iterdir()) == [path]
    base = sqlite3.connect(path)
    assert base.execute("select * from words").fetchall() == [(1, "the", 5), (2, "köln", 2), (3, "a b", 1)]
    if sys.modules["sqlite_vec"]:
        base.enable_load_extension(True)
        sys.modules["sqlite_vec"].load(base)
        query = "select word from vectors join words using (id) where vector match ? and k = 2 order by distance"
        assert base.execute(query, [found["köln"].tobytes()]).fetchall() == [("köln",), ("the",)]
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
        assert_refused(path, r"m\.db: its vectors need sqlite-vec, and a Python that loads it: pip")
    base.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("delete from words where id = 2", "the ids of its tables are not 1 to 3"),
        ("delete from words where id = 3", "the ids of its tables are not 1 to 2"),
        ("delete from vectors where id = 3", "the ids of its tables are not 1 to 3"),
        ("delete from vectors where id = 1", "its first vector is missing"),
        ("update vectors set vector = x'00' where id = 2", "its vector 2 has not 2 values"),
        ("update vectors set vector = x'0000807F00000000' where id = 2", r"row 2 \('köln'\) holds NaN"),
        ("update words set count = 'x'", "its word 1 is no text, or its count no number"),
        ("update words set count = 1e300", "its word 1 is no text, or its count no number"),
        ("update words set word = x'ff' where id = 1", r"b'\\xff' is not valid UTF-8"),
        ("alter table words add column more", r"its tables \(vectors, words\) are not those that w2v writes"),
        ("drop table words; create view words as select 1 as id, 'a' as word, 1 as count", "are not those that w2v"),
        ("drop table vectors; create virtual table vectors using fts5(id, vector)", "are not those that w2v writes"),
    ],
)
def test_what_is_refused(change: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with sqlite3.connect(path) as base:
        base.executescript(f"{PLAIN};{WORDS};insert into words values (1, 'the', 3), (2, 'köln', 2), (3, 'c', 1)")
        base.executemany("insert into vectors values (?, ?)", [(k, np.ones(2, "<f4").tobytes()) for k in (1, 2, 3)])
        base.executescript(change)
    base.close()
    assert_refused(path, message)


PAGE = 4096  # bytes
INTERIOR, LEAF = 5, 13  # kinds of pages of a table


def page(kind: int, cells: list[bytes], last: int = 0, before: bytes = b"") -> bytes:
    """A page of a table, whose cells lie at its end; `last` is the last page below it, `before` begins the database."""
    places = PAGE - np.cumsum([len(cell) for cell in cells])
    head = before + struct.pack(">BHHHB", kind, 0, len(cells), places[-1], 0)
    head += struct.pack(">I", last) * (kind == INTERIOR) + b"".join(struct.pack(">H", place) for place in places)
    return head.ljust(places[-1], b"\0") + b"".join(reversed(cells))


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, bytes, list[bytes]]:
    """A database, its content, and the cells that describe its tables: each begins with its size and number."""
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    path = tmp_path / "m.db"
    w2v.KeyedVectors(NAMES, np.ones((3, 2))).save(path)
    data = path.read_bytes()
    (count,) = struct.unpack_from(">H", data, 103)
    places = struct.unpack_from(f">{count}H", data, 108)
    cells = [data[place : place + 2 + data[place]] for place in places]  # the size and number of each take a byte
    return path, data, cells


def test_a_description_of_two_gigabytes(database: tuple[Path, bytes, list[bytes]]) -> None:
    path, data, cells = database
    for size in (b"\x87\xff\xff\xff\x7f", b"\xff" * 9):
        cell = (size + b"\x01\xbf\x7f").ljust(3000, b"\x01")  # its header is longer than the page
        assert_refused(path, "damaged: ", page(LEAF, [cell, *cells[1:]], before=data[:100]) + data[PAGE:])


@pytest.mark.parametrize("tree", ["tables", "words"])
def test_trees_without_end(
    database: tuple[Path, bytes, list[bytes]], monkeypatch: pytest.MonkeyPatch, tree: str
) -> None:
    """Each page leads two hundred times to the next, twelve times over."""
    monkeypatch.setattr(sqlite, "STEPS", 1 << 18)
    path, data, cells = database
    first = len(data) // PAGE + 1
    leaf = page(LEAF, cells[1:2] * 30) if tree == "tables" else data[PAGE : 2 * PAGE]
    pages = [page(LEAF, cells), leaf]
    for number in range(first + 1, first + 13):
        pages.append(page(INTERIOR, [struct.pack(">IB", number, 127)] * 200, number))
    top = pages[-1]
    if tree == "tables":
        data = page(INTERIOR, [struct.pack(">IB", first, 127)], first + 13, data[:100]) + data[PAGE:]
    else:
        data = data[:PAGE] + top + data[2 * PAGE :]
    data += b"".join(pages)
    data = data[:28] + struct.pack(">I", len(data) // PAGE) + data[32:]
    assert_refused(path, "damaged: (reading it takes too many steps|the ids of its tables)", data)
