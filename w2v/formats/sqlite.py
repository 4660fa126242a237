"""Databases of SQLite: a table of words and one of their vectors, which sqlite-vec, if it is installed, can search.

words (id integer primary key, word text, count integer); vectors (id integer primary key, vector), float32 as bytes.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import sqlite3
except ImportError:  # some builds of Python lack it
    sqlite3 = None  # type: ignore[assignment]

from w2v.errors import W2VError, counted, install, one_line
from w2v.formats.bfloat16 import blocks
from w2v.formats.vector_file import VectorFile, check_content, checked
from w2v.formats.word_lists import Gathered
from w2v.progress import Meter, Report
from w2v.system import memory
from w2v.system.files import Errors, PathLike, atomic_write, destination, errors_named, sync_folder

ROWS_AT_ONCE = 1 << 12
MAX_BYTES = 1 << 24  # of a value that is read
TIMEOUT = 5.0  # seconds that SQLite waits for other programs
COMPANIONS = ("-wal", "-shm", "-journal")  # end the names of files with changes that are not yet in the database
NAMES_A_FILE = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"  # ends a journal of a transaction of several databases
IN_USE = "another program is changing it: try again later"
UNOPENED = "SQLite cannot open it, or the files of its changes: with a write-ahead log, the folder must be writable"
UNFINISHED = "a change of it was interrupted: open it with sqlite3 or the like, which undoes that, and try again"
# A damaged tree of pages can lead to the same rows without end: what reading takes is counted in SQLite's own steps.
STEPS, STEPS_PER_BYTE, STEPS_AT_ONCE = 1 << 22, 1 << 6, 1 << 16
WORDS = "create table words (id integer primary key, word text not null unique, count integer)"
PLAIN = "create table vectors (id integer primary key, vector blob not null)"
SEARCHABLE = "create virtual table vectors using vec0(id integer primary key, vector float[{}] distance_metric=cosine)"


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a database, atomically; with sqlite-vec, its table of vectors is a virtual one that finds the nearest."""
    check_content(path, content)
    rows, size = content.vectors.shape
    meter = Meter(progress, "save")
    with errors_named(path, "write"):
        target, _ = destination(path, replace)
    companions = [Path(f"{target}{end}") for end in COMPANIONS]
    if not replace:
        for left in filter(os.path.lexists, companions):
            raise W2VError(f"cannot write {path}: {left} exists, which SQLite would apply to it: remove it first")
    with (
        atomic_write(path, replace) as file,
        tempfile.TemporaryDirectory(prefix=".w2v-", dir=Path(path).absolute().parent) as folder,
    ):
        made = Path(folder) / "vectors.db"
        with _problems(path, "cannot write {path}: "), closing(sqlite3.connect(made, isolation_level=None)) as base:
            base.execute("pragma journal_mode = off")  # the file is of no use before it is whole
            base.execute("pragma synchronous = off")
            base.execute("begin")
            base.execute(WORDS)
            base.execute(SEARCHABLE.format(size) if _extended(base) else PLAIN)
            for start, block in blocks(content.vectors, ROWS_AT_ONCE):
                end = start + len(block)
                ids, words = range(start + 1, end + 1), content.words[start:end]
                counts = [None] * len(block) if content.counts is None else content.counts[start:end].tolist()
                base.executemany("insert into words values (?, ?, ?)", zip(ids, words, counts, strict=True))
                base.executemany(
                    "insert into vectors values (?, ?)", zip(ids, map(np.ndarray.tobytes, block), strict=True)
                )
                meter(start, rows)
            base.execute("commit")
        with made.open("rb") as whole:
            shutil.copyfileobj(whole, file)
        if any(map(os.path.lexists, companions)):
            _finish_changes(path, target)
            for companion in companions:
                companion.unlink(missing_ok=True)
            sync_folder(target.parent)
    meter(rows, rows)


def _finish_changes(path: PathLike, target: Path) -> None:
    """Let SQLite finish the changes of an old database, so that it is whole without its companions.

    Raises W2VError if another program is changing it. A file that is not a database has no changes. A journal that
    names a further file is not used, since SQLite would remove that file.
    """
    _check_companions(path, target)
    journal = Path(f"{target}-journal")
    if journal.is_file() and _ends_with(journal, NAMES_A_FILE):
        return
    address = f"{target.as_uri()}?mode=rw"
    with _problems(path, "cannot write {path}: "):
        try:
            with closing(sqlite3.connect(address, TIMEOUT, isolation_level=None, uri=True)) as base:
                base.execute("begin immediate")
                base.execute("commit")
                is_busy = base.execute("pragma wal_checkpoint(full)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            is_busy = _name(error) == "SQLITE_BUSY"
    if is_busy:
        raise W2VError(f"cannot write {path}: {IN_USE}")


def _check_companions(path: PathLike, target: Path) -> None:
    """Raise W2VError for a file beside a database that SQLite would open, and that is not a regular file."""
    for companion in (Path(f"{target}{end}") for end in COMPANIONS):
        if companion.exists() and not companion.is_file():
            raise W2VError(f"{path}: {companion} belongs to it, and is not a regular file: remove it")


def _ends_with(path: Path, end: bytes) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(end)))
        return file.read() == end


def _name(error: Exception) -> str:
    """SQLite's name of an error, without the part that makes it more specific."""
    return "_".join(str(getattr(error, "sqlite_errorname", "")).split("_")[:2])


def _extended(base: sqlite3.Connection) -> bool:
    """Whether sqlite-vec is installed and this Python can load it; it is then loaded."""
    try:
        import sqlite_vec

        base.enable_load_extension(True)
    except (ImportError, AttributeError):
        return False
    sqlite_vec.load(base)
    base.enable_load_extension(False)
    return True


def read(path: PathLike, errors: Errors | None, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the tables that `write` makes. Words and vectors belong together by their ids, which are 1, 2, 3, …"""
    with errors_named(path):
        _check_companions(path, Path(path).resolve())
        size, address = _size(Path(path)), _address(Path(path))
    with (
        _problems(path, "{path}: damaged: "),
        closing(sqlite3.connect(address, TIMEOUT, isolation_level=None, uri=True)) as base,
    ):
        base.execute("begin")  # all that follows is read from one state of the database
        base.execute("pragma trusted_schema = off")
        base.execute("pragma cell_size_check = on")
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
        base.text_factory = bytes
        base.set_progress_handler(_stopwatch(STEPS + STEPS_PER_BYTE * size), STEPS_AT_ONCE)
        _check_tables(path, base)
        rows = base.execute("select max(id) from words").fetchone()[0] or 0  # which are numbered: see below
        first = base.execute("select vector from vectors where id = 1").fetchone() or [b""]
        if rows < 1 or not isinstance(first[0], bytes) or not first[0] or len(first[0]) % 4:
            raise W2VError(f"{path}: damaged: its first vector is missing, or not of float32")
        if rows * len(first[0]) > size:
            raise W2VError(f"{path}: damaged: it says {counted(rows, 'word')} of {len(first[0]):,} bytes")
        total, rows, columns = rows, rows if limit is None else min(rows, limit), len(first[0]) // 4
        words, counts, known = Gathered(rows), np.zeros(rows, np.int64), True
        vectors: NDArray[np.float32] = memory.empty((rows, columns))
        meter = Meter(progress, "load")
        for row, (word, count) in _numbered(path, base, "select id, word, count from words order by id", rows, total):
            if not isinstance(word, bytes) or not (count is None or (isinstance(count, int) and count >= 0)):
                raise W2VError(f"{path}: damaged: its word {row + 1:,} is no text, or its count no number")
            words.add(word)
            counts[row] = count or 0
            known = known and count is not None
        for row, (vector,) in _numbered(path, base, "select id, vector from vectors order by id", rows, total):
            if not isinstance(vector, bytes) or len(vector) != 4 * columns:
                raise W2VError(f"{path}: damaged: its vector {row + 1:,} has not {columns:,} values")
            vectors[row] = np.frombuffer(vector, "<f4")
            meter(row + 1, rows)
    return checked(path, VectorFile(words.words, vectors, counts if known else None), errors)


def _size(path: Path) -> int:
    """The bytes of a database and of its write-ahead log."""
    files = (path, Path(f"{path.resolve()}-wal"))
    return sum(file.stat().st_size for file in files if file.is_file())


def _address(path: Path) -> str:
    """The address of a database that is only read.

    In WAL mode SQLite makes files beside it, for which there may be no permission, and leaves them there. Without a WAL
    that is not necessary: then the database itself does not change before SQLite copies a new WAL into it.
    """
    with path.open("rb") as file:
        is_in_wal_mode = file.read(20)[18:] == b"\2\2"
    real = path.resolve()
    has_changes = any(Path(f"{real}{end}").is_file() for end in COMPANIONS if end != "-shm")
    return f"{real.as_uri()}?mode=ro{'&immutable=1' if is_in_wal_mode and not has_changes else ''}"


def _stopwatch(steps: int) -> Callable[[], bool]:
    """A function that is called each STEPS_AT_ONCE of SQLite's steps, and says when they are too many."""
    calls = itertools.count()
    return lambda: next(calls) * STEPS_AT_ONCE > steps


def _check_tables(path: PathLike, base: sqlite3.Connection) -> None:
    """Raise W2VError for other tables than ours, which could compute anything, and where sqlite-vec is needed."""
    texts = "typeof(name) = 'text' and typeof(sql) = 'text'"
    found = dict(base.execute(f"select name, sql from sqlite_master where type = 'table' and {texts}"))
    made = " ".join(found.get(b"vectors", b"").decode(errors="replace").lower().split())
    is_searchable = re.fullmatch(re.escape(SEARCHABLE).replace(r"\{\}", r"\d{1,7}"), made)
    if found.get(b"words", b"").lower() != WORDS.encode() or not (is_searchable or made == PLAIN):
        names = ", ".join(name.decode(errors="replace") for name in found)
        raise W2VError(f"{path}: its tables ({one_line(names)}) are not those that w2v writes, words and vectors")
    if is_searchable and not _extended(base):
        raise W2VError(f"{path}: its vectors need sqlite-vec, and a Python that loads it: {install('sqlite')}")


def _numbered(
    path: PathLike, base: sqlite3.Connection, query: str, rows: int, total: int
) -> Iterator[tuple[int, list[Any]]]:
    """The first rows of a table, numbered from 0. Raises W2VError unless their ids are 1, 2, 3, … up to `total`."""
    done = 0
    for number, *values in base.execute(f"{query} limit {rows + (rows == total)}"):
        done += 1
        if number != done or done > rows:
            break
        yield done - 1, values
    if done != rows:
        raise W2VError(f"{path}: damaged: the ids of its tables are not 1 to {total:,}")


@contextmanager
def _problems(path: PathLike, place: str) -> Iterator[None]:
    """Turn the errors of SQLite into W2VError. Raises it, too, if this Python has no SQLite."""
    if sqlite3 is None:
        raise W2VError(f"{place.format(path=path)}this Python was built without SQLite")
    try:
        yield
    # UnicodeDecodeError: where a message is not UTF-8. MemoryError: a damaged database asks for gigabytes.
    except (sqlite3.Error, UnicodeDecodeError, MemoryError) as error:
        known = {"SQLITE_BUSY": IN_USE, "SQLITE_READONLY": UNFINISHED, "SQLITE_CANTOPEN": UNOPENED}.get(_name(error))
        reason = "reading it takes too many steps" if str(error) == "interrupted" else one_line(error)
        raise W2VError(f"{path}: {known}" if known else f"{place.format(path=path)}{reason}") from error
