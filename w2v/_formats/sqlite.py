"""SQLite databases with a table of words and a table of vectors, which sqlite-vec can search if it is installed.

The tables are words (id integer primary key, word text, count integer) and vectors (id integer primary key, vector),
with vectors as the bytes of float32 values.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import sqlite3
except ImportError:  # some builds of Python lack it
    sqlite3 = None  # type: ignore[assignment]

from w2v._errors import W2VError, install_command, one_line
from w2v._formats.base import Format, has_signature
from w2v._formats.bfloat16 import float32_blocks
from w2v._formats.vector_file import VectorFile
from w2v._formats.word_lists import WordBuilder
from w2v._progress import Meter, Report
from w2v._system import memory
from w2v._system.files import SQLITE, PathLike, atomic_write, destination, sync_folder, translate_os_errors

BLOCK_ROWS = 1 << 12
TIMEOUT = 5.0  # seconds that SQLite waits for other programs
JOURNAL_SUFFIXES = ("-wal", "-shm", "-journal")  # suffixes of the files with changes that are not yet in the database
MESSAGES = {  # by the name of SQLite's error
    "SQLITE_BUSY": "another program is changing it: try again later",
    "SQLITE_CANTOPEN": "SQLite cannot open it or the files with its changes: to read a write-ahead log, the folder "
    "must be writable",
    "SQLITE_READONLY": "a change was interrupted: open the database with sqlite3, for instance, to undo the change, "
    "and try again",
}
WORDS_TABLE = "create table words (id integer primary key, word text not null unique, count integer)"
PLAIN_TABLE = "create table vectors (id integer primary key, vector blob not null)"
VIRTUAL_TABLE = (
    "create virtual table vectors using vec0(id integer primary key, vector float[{}] distance_metric=cosine)"
)


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a database atomically. With sqlite-vec, the table of vectors is virtual and can find nearest neighbours.

    Raises:
        W2VError: If the database cannot be written, or if another program is changing the existing one.
    """
    size = content.vectors.shape[1]
    with translate_os_errors(path, "write"):
        target, _ = destination(path)
    journals = [Path(f"{target}{end}") for end in JOURNAL_SUFFIXES]
    if not replace:
        for journal in filter(os.path.lexists, journals):
            raise W2VError(
                f"cannot write {path}: remove {journal} first: SQLite would apply its changes to the new file"
            )
    with (
        atomic_write(path, replace) as file,
        tempfile.TemporaryDirectory(prefix=".w2v-", dir=Path(path).absolute().parent) as folder,
    ):
        draft = Path(folder) / "vectors.db"
        with (
            _translate_sqlite_errors(path, f"cannot write {path}"),
            closing(sqlite3.connect(draft, isolation_level=None)) as database,
        ):
            database.execute("pragma journal_mode = off")  # an incomplete draft is thrown away
            database.execute("pragma synchronous = off")
            database.execute("begin")
            database.execute(WORDS_TABLE)
            database.execute(VIRTUAL_TABLE.format(size) if _load_sqlite_vec(database) else PLAIN_TABLE)
            for start, block in float32_blocks(content.vectors, BLOCK_ROWS, Meter(progress, "save")):
                end = start + len(block)
                ids, words = range(start + 1, end + 1), content.words[start:end]
                counts = [None] * len(block) if content.counts is None else content.counts[start:end].tolist()
                database.executemany("insert into words values (?, ?, ?)", zip(ids, words, counts, strict=True))
                database.executemany(
                    "insert into vectors values (?, ?)", zip(ids, map(np.ndarray.tobytes, block), strict=True)
                )
            database.execute("commit")
        with draft.open("rb") as content_of_draft:
            shutil.copyfileobj(content_of_draft, file)
        if any(map(os.path.lexists, journals)):
            _checkpoint(path, target)
            for journal in journals:
                journal.unlink(missing_ok=True)
            sync_folder(target.parent)


def _checkpoint(path: PathLike, target: Path) -> None:
    """Let SQLite finish the changes of an old database, so that the database is complete without its journals.

    A file that is not a database has no changes.

    Raises:
        W2VError: If another program is changing the database.
    """
    uri = f"{target.as_uri()}?mode=rw"
    with _translate_sqlite_errors(path, f"cannot write {path}"):
        try:
            with closing(sqlite3.connect(uri, timeout=TIMEOUT, isolation_level=None, uri=True)) as database:
                database.execute("begin immediate")
                database.execute("commit")
                is_busy = database.execute("pragma wal_checkpoint(full)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            is_busy = _error_code(error) == "SQLITE_BUSY"
    if is_busy:
        raise W2VError(f"cannot write {path}: {MESSAGES['SQLITE_BUSY']}")


def _error_code(error: Exception) -> str:
    """Return the name of SQLite's primary error code, without the extension: SQLITE_BUSY for SQLITE_BUSY_TIMEOUT."""
    return "_".join(str(getattr(error, "sqlite_errorname", "")).split("_")[:2])


def _load_sqlite_vec(database: sqlite3.Connection) -> bool:
    """Load sqlite-vec, and return True if it is installed and this Python can load extensions."""
    try:
        import sqlite_vec

        database.enable_load_extension(True)
    except (ImportError, AttributeError):
        return False
    sqlite_vec.load(database)
    database.enable_load_extension(False)
    return True


def read(path: PathLike, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the tables that `write` makes; see Format.read. A word and its vector have the same id: 1, 2, 3, …"""
    with translate_os_errors(path):
        uri = _read_only_uri(Path(path))
    with (
        _translate_sqlite_errors(path, f"{path}: damaged"),
        closing(sqlite3.connect(uri, timeout=TIMEOUT, isolation_level=None, uri=True)) as database,
    ):
        database.execute("begin")  # one transaction: everything is read from the same state of the database
        database.execute("pragma trusted_schema = off")
        database.text_factory = bytes
        _check_end(Path(path), database)
        _check_tables(path, database)
        rows = database.execute("select count(*) from words").fetchone()[0]
        first = database.execute("select vector from vectors where id = 1").fetchone() or [b""]
        if rows < 1 or not isinstance(first[0], bytes) or not first[0] or len(first[0]) % 4:
            raise W2VError(f"{path}: damaged: its first vector is missing or does not consist of float32 values")
        total, rows, columns = rows, rows if limit is None else min(rows, limit), len(first[0]) // 4
        words, counts, has_counts = WordBuilder(rows), np.zeros(rows, np.int64), True
        vectors: NDArray[np.float32] = memory.empty((rows, columns))
        meter = Meter(progress, "load")
        for row, (word, count) in _rows_by_id(
            path, database, "select id, word, count from words order by id", rows, total
        ):
            if not isinstance(word, bytes) or not (count is None or (isinstance(count, int) and count >= 0)):
                raise W2VError(f"{path}: damaged: its word {row + 1:,} is not text, or its count is not a number")
            words.add(word)
            counts[row] = count or 0
            has_counts = has_counts and count is not None
        for row, (vector,) in _rows_by_id(path, database, "select id, vector from vectors order by id", rows, total):
            if not isinstance(vector, bytes) or len(vector) != 4 * columns:
                raise W2VError(f"{path}: damaged: its vector {row + 1:,} does not have {columns:,} values")
            vectors[row] = np.frombuffer(vector, "<f4")
            meter(row + 1, rows)
    return VectorFile(words.words, vectors, counts if has_counts else None)


def _check_end(path: Path, database: sqlite3.Connection) -> None:
    """Raise W2VError if the last page of a database is incomplete. SQLite notices only if a whole page is missing."""
    (pages,), (page_bytes,) = (database.execute(f"pragma {name}").fetchone() for name in ("page_count", "page_size"))
    size = path.stat().st_size
    if pages * page_bytes > size and not Path(f"{path.resolve()}-wal").exists():  # a log may hold the last pages
        raise W2VError(f"{path}: truncated: it has {size:,} of {pages * page_bytes:,} bytes")


def _read_only_uri(path: Path) -> str:
    """Return the URI to open a database for reading.

    In WAL mode, SQLite creates files next to the database and leaves them there, or fails if it lacks the permission.
    Without a log, the database cannot change while it is read, so SQLite may open it as immutable and needs no such
    files.
    """
    with path.open("rb") as file:
        is_in_wal_mode = file.read(20)[18:] == b"\2\2"
    real = path.resolve()
    has_changes = any(Path(f"{real}{end}").is_file() for end in JOURNAL_SUFFIXES if end != "-shm")
    return f"{real.as_uri()}?mode=ro{'&immutable=1' if is_in_wal_mode and not has_changes else ''}"


def _check_tables(path: PathLike, database: sqlite3.Connection) -> None:
    """Raise W2VError if a table is missing, or if its vectors need sqlite-vec, which is missing."""
    tables = dict(database.execute("select name, sql from sqlite_master where type = 'table'"))
    if not {b"words", b"vectors"} <= {*tables}:
        names = ", ".join(name.decode(errors="replace") for name in tables)
        raise W2VError(f"{path}: its tables ({one_line(names)}) are not the tables words and vectors that w2v writes")
    if b"using vec0" in tables[b"vectors"].lower() and not _load_sqlite_vec(database):
        raise W2VError(
            f"{path}: its vectors need sqlite-vec, and a Python that can load it: {install_command('sqlite')}"
        )


def _rows_by_id(
    path: PathLike, database: sqlite3.Connection, query: str, rows: int, total: int
) -> Iterator[tuple[int, list[Any]]]:
    """Yield the first rows of a table, numbered from 0. Raise W2VError unless the ids are 1, 2, 3, … up to `total`."""
    done = 0
    # When all rows are read, ask for one more, to detect rows beyond `total`.
    for number, *values in database.execute(f"{query} limit {rows + (rows == total)}"):
        done += 1
        if number != done or done > rows:
            break
        yield done - 1, values
    if done != rows:
        raise W2VError(f"{path}: damaged: the ids of its tables are not 1 to {total:,}")


@contextmanager
def _translate_sqlite_errors(path: PathLike, where: str) -> Iterator[None]:
    """Turn SQLite errors into W2VError. Also raise W2VError if this Python has no SQLite.

    Messages without a better explanation start with `where`.
    """
    if sqlite3 is None:
        raise W2VError(f"{where}: this Python was built without SQLite")
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # UnicodeDecodeError: SQLite's message is not UTF-8
        message = MESSAGES.get(_error_code(error))
        raise W2VError(f"{path}: {message}" if message else f"{where}: {one_line(error)}") from error


FORMAT = Format(
    "sqlite",
    (".db", ".sqlite"),
    5,
    has_signature(SQLITE),
    read,
    write,
    stores=("counts",),
    extra_suffixes=JOURNAL_SUFFIXES,
)
