"""SQLite databases: SQLite and sqlite-vec read them, and damaged or foreign ones are refused."""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import assert_refused, full_disk, run
from w2v._errors import W2VError
from w2v._formats import sqlite
from w2v._formats.sqlite import PLAIN_TABLE, WORDS_TABLE

NAMES = ["the", "köln", "a b"]


@pytest.fixture(params=["plain", "sqlite-vec"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a database that was written without sqlite-vec, or with it."""
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    else:
        pytest.importorskip("sqlite_vec")
        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            pytest.skip("this Python cannot load extensions of SQLite")
    vectors = w2v.KeyedVectors(NAMES, np.array([[1, 0], [0.5, 1], [0, -1]]), [5, 2, 1])
    vectors.save(tmp_path / "m.db")
    return tmp_path / "m.db"


def test_a_database_is_read_back_and_searched_by_sqlite_vec(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = w2v.load(path)
    assert found.index_to_key == NAMES
    assert found.counts.tolist() == [5, 2, 1]
    np.testing.assert_array_equal(found.vectors, [[1, 0], [0.5, 1], [0, -1]])
    assert list(path.parent.iterdir()) == [path]
    connection = sqlite3.connect(path)
    assert connection.execute("select * from words").fetchall() == [(1, "the", 5), (2, "köln", 2), (3, "a b", 1)]
    if sys.modules["sqlite_vec"]:
        connection.enable_load_extension(True)
        sys.modules["sqlite_vec"].load(connection)
        query = "select word from vectors join words using (id) where vector match ? and k = 2 order by distance"
        assert connection.execute(query, [found["köln"].tobytes()]).fetchall() == [("köln",), ("the",)]
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
        assert_refused(path, r"m\.db: its vectors need sqlite-vec, and a Python that can load it: pip")
    connection.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("delete from words where id = 2", "the ids of its tables are not 1 to 2"),
        ("delete from words where id = 3", "the ids of its tables are not 1 to 2"),
        ("delete from vectors where id = 3", "the ids of its tables are not 1 to 3"),
        ("delete from vectors where id = 1", "its first vector is missing"),
        ("update vectors set vector = x'00' where id = 2", "its vector 2 does not have 2 values"),
        ("update vectors set vector = x'0000807F00000000' where id = 2", r"row 2 \('köln'\) holds NaN"),
        ("update words set count = 'x'", "its word 1 is not text, or its count is not a number"),
        ("update words set count = 1e300", "its word 1 is not text, or its count is not a number"),
        ("update words set word = x'ff' where id = 1", r"b'\\xff' is not valid UTF-8"),
        (
            "alter table words rename to others",
            r"its tables \(vectors, others\) are not the tables words and vectors that w2v writes",
        ),
        ("alter table words rename column word to name", "damaged: no such column: word"),
        ("drop table words; create view words as select 1 as id, 'a' as word, 1 as count", "are not the tables"),
        ("drop table vectors; create virtual table vectors using fts5(id, vector)", "its first vector is missing"),
    ],
)
def test_damaged_and_foreign_databases_are_refused(change: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            f"{PLAIN_TABLE};{WORDS_TABLE};insert into words values (1, 'the', 3), (2, 'köln', 2), (3, 'c', 1)"
        )
        connection.executemany(
            "insert into vectors values (?, ?)", [(k, np.ones(2, "<f4").tobytes()) for k in (1, 2, 3)]
        )
        connection.executescript(change)
    connection.close()
    assert_refused(path, message)


# -- changes in the journals of a database -------------------------------------------------------

ONES, SEVENS = np.ones((3, 2), np.float32), np.full((3, 2), 7, np.float32)
# Change all vectors of a database to 2. The process ends before the changes are copied from the write-ahead log or,
# with a journal, in the middle of the transaction.
CHANGE = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(f"pragma journal_mode = {sys.argv[2]}")
connection.execute("pragma cache_size = 1")
connection.execute("begin")
connection.execute("update vectors set vector = x'0000004000000040'")
connection.execute("insert into words values (9, hex(zeroblob(100000)), 1)")
if sys.argv[2] == "wal":
    connection.execute("delete from words where id = 9")
    connection.execute("commit")
os._exit(0)
"""


def save(path: Path, vectors: np.ndarray, force: bool = False) -> None:
    w2v.KeyedVectors(NAMES, vectors).save(path, force=force)


def file_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def database_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a database with vectors of ones, and return its path."""
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    monkeypatch.setattr(sqlite, "TIMEOUT", 0.0)
    save(tmp_path / "m.db", ONES)
    return tmp_path / "m.db"


@pytest.fixture(params=["wal", "delete"])
def changed(request: pytest.FixtureRequest, database_path: Path) -> Path:
    """Return the path of a database with unfinished changes in a journal, left by a process that was killed."""
    subprocess.run([sys.executable, "-c", CHANGE, database_path, request.param], check=True)
    assert len(file_names(database_path.parent)) > 1
    return database_path


def test_a_new_database_that_replaces_another_is_not_changed_by_its_journals(changed: Path) -> None:
    save(changed, SEVENS, force=True)
    assert file_names(changed.parent) == ["m.db"]
    with closing(sqlite3.connect(changed)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert {vector for (vector,) in connection.execute("select vector from vectors")} == {SEVENS[0].tobytes()}
    np.testing.assert_array_equal(w2v.load(changed).vectors, SEVENS)


def test_replacing_through_a_link_finishes_the_journals_of_the_target(changed: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / "link.db"
    link.symlink_to(changed)
    save(link, SEVENS, force=True)
    assert file_names(tmp_path) == ["m.db", "other"]
    np.testing.assert_array_equal(w2v.load(link).vectors, SEVENS)


def test_journals_without_a_database_are_replaced_only_with_force(changed: Path) -> None:
    changed.unlink()
    journals = file_names(changed.parent)
    with pytest.raises(
        W2VError, match=rf"cannot write {re.escape(str(changed))}: remove .*m\.db-\w+ first: SQLite would"
    ):
        save(changed, SEVENS)
    given = changed.with_name("given.vec")
    given.write_text("1 2\nthe 1 2\n")
    assert "exists: name another file as OUT, or add --force" in run("convert", given, changed, code=1).stderr
    given.unlink()
    assert file_names(changed.parent) == journals
    changed.write_text("not a database")
    save(changed, SEVENS, force=True)
    assert file_names(changed.parent) == ["m.db"]
    np.testing.assert_array_equal(w2v.load(changed).vectors, SEVENS)


def test_an_old_database_stays_whole_if_replacing_it_fails(changed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_committed = changed.with_name("m.db-wal").exists()
    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(W2VError, match="No space left on device"):
        save(changed, SEVENS, force=True)
    np.testing.assert_array_equal(w2v.load(changed).vectors, 2 * ONES if is_committed else ONES)


def test_only_committed_changes_are_read(changed: Path) -> None:
    files = file_names(changed.parent)
    if "m.db-wal" in files:
        np.testing.assert_array_equal(w2v.load(changed).vectors, 2 * ONES)
    else:
        assert_refused(changed, r"m\.db: a change was interrupted: open the database with sqlite3")
    assert file_names(changed.parent) == files


@pytest.mark.parametrize("mode", ["wal", "delete", "persist", "truncate"])
def test_reading_a_closed_database_leaves_no_files(database_path: Path, mode: str) -> None:
    with closing(sqlite3.connect(database_path, isolation_level=None)) as other:
        other.execute(f"pragma journal_mode = {mode}")
        other.execute("update vectors set vector = ?", [SEVENS[0].tobytes()])
    files = file_names(database_path.parent)
    np.testing.assert_array_equal(w2v.load(database_path).vectors, SEVENS)
    assert file_names(database_path.parent) == files


@pytest.mark.parametrize("without", [1, 3])
def test_counts_are_unknown_if_one_is_missing(database_path: Path, without: int) -> None:
    with closing(sqlite3.connect(database_path, isolation_level=None)) as other:
        other.execute("update words set count = 5")
        np.testing.assert_array_equal(w2v.load(database_path).counts, [5, 5, 5])
        other.execute("update words set count = null where id = ?", [without])
    assert w2v.load(database_path).counts is None


def test_most_words_may_be_in_the_write_ahead_log(database_path: Path) -> None:
    words = [(number, f"word {number}", None) for number in range(4, 3001)]
    with closing(sqlite3.connect(database_path, isolation_level=None)) as other:
        other.execute("pragma journal_mode = wal")
        other.execute("pragma wal_autocheckpoint = 0")
        other.execute("begin")
        other.executemany("insert into words values (?, ?, ?)", words)
        other.executemany("insert into vectors values (?, ?)", [(row, SEVENS[0].tobytes()) for row, _, _ in words])
        other.execute("commit")
        vectors = w2v.load(database_path).vectors
    np.testing.assert_array_equal(vectors[:3], ONES)
    np.testing.assert_array_equal(vectors[3:], np.repeat(SEVENS[:1], 2997, axis=0))


def test_words_and_vectors_are_read_from_one_transaction(database_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if another program changes the database after its words were read and before its vectors are read."""
    with closing(sqlite3.connect(database_path, isolation_level=None, timeout=0)) as other:
        other.execute("pragma journal_mode = wal")
        other.execute("update words set count = 5")

        class ChangingBuilder(sqlite.WordBuilder):
            def add(self, word: bytes) -> None:
                super().add(word)
                other.execute("update vectors set vector = ?", [SEVENS[0].tobytes()])

        monkeypatch.setattr(sqlite, "WordBuilder", ChangingBuilder)
        found = w2v.load(database_path)
        assert found.counts is not None
        assert found.counts.tolist() == [5, 5, 5]
        np.testing.assert_array_equal(found.vectors, ONES)
        np.testing.assert_array_equal(w2v.load(database_path).vectors, SEVENS)


def test_a_database_is_neither_read_nor_replaced_while_another_program_changes_it(database_path: Path) -> None:
    with closing(sqlite3.connect(database_path, isolation_level=None)) as other:
        other.execute("begin immediate")
        other.execute("update words set count = 5")
        with pytest.raises(W2VError, match=r"cannot write .*m\.db: another program is changing it: try again later"):
            save(database_path, SEVENS, force=True)
        other.execute("commit")
        other.execute("begin exclusive")
        assert_refused(database_path, r"m\.db: another program is changing it: try again later")
    np.testing.assert_array_equal(w2v.load(database_path).vectors, ONES)


def test_a_database_that_another_program_has_open_is_replaced(database_path: Path) -> None:
    with closing(sqlite3.connect(database_path, isolation_level=None)) as other:
        other.execute("pragma journal_mode = wal")
        other.execute("update words set count = 6")
        save(database_path, SEVENS, force=True)  # nothing is being changed
    np.testing.assert_array_equal(w2v.load(database_path).vectors, SEVENS)
