"""Files that are either written whole or not at all, and text files read by the line."""

import errno
import itertools
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal

from w2v.errors import W2VError

LONGEST_LINE = 1 << 24  # bytes
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HEAD = 512  # bytes that tell what is not text
_UTF_16 = "UTF-16 or UTF-32: convert it to UTF-8, with iconv for instance"
_OTHERS = {  # how files begin that are plainly not text, and what they are
    rb"\xff\xfe|\xfe\xff|\0\0\xfe\xff": _UTF_16,
    rb"([!-~]\0){2}([\t\n\r -~]\0){6}|(\0[!-~]){2}(\0[\t\n\r -~]){6}": _UTF_16,  # without a byte order mark
    rb"PK\x03\x04": "a zip archive: give the text that is in it",
    rb"\x1f\x8b\x08|BZh[1-9]1AY&SY|\xfd7zXZ\0|\x28\xb5\x2f\xfd": "compressed: unpack it first",
    rb"7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|(?s:.{257})ustar": "an archive: give the text that is in it",
    rb"%PDF-|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1|\{\\rtf": "a formatted document: give its text alone",
    rb"\x7fELF|\x89PNG\r|\xff\xd8\xff|GIF8|SQLite format 3\0|\x93NUMPY": "binary, not text",
}

PathLike = str | os.PathLike[str]
Errors = Literal["strict", "replace", "ignore"]  # what becomes of bytes that are not UTF-8


@contextmanager
def atomic_write(path: PathLike, replace: bool = True) -> Iterator[BinaryIO]:
    """A binary file that takes the name `path` only once all of it is on the disk.

    It is written without a name or, where the system has no such files, under a temporary one, flushed and then
    renamed. On any failure nothing of it is left and an older file of that name stands, as it does unless it is to
    `replace`. A device or pipe is written directly. Raises W2VError, naming the path, where the system refuses.
    """
    target = Path(os.path.realpath(path))  # a symbolic link is followed, not replaced
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb") as file:
                yield file
            return
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(8)}.tmp")
        try:
            with _unnamed(target.parent) or temporary.open("x+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if not temporary.exists():
                    _name(file, temporary)
            if replace:
                temporary.replace(target)
            else:
                _rename_unless_there(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the rename itself reaches the disk
        finally:
            os.close(folder)
    except OSError as error:
        raise W2VError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from error


def _unnamed(folder: Path) -> BinaryIO | None:
    """A new file without a name, of which nothing is left even where the process is killed; None if there are none."""
    with suppress(OSError, AttributeError):  # Linux has them, on most file systems
        return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), "w+b")
    return None


def _name(file: BinaryIO, path: Path) -> None:
    """Give a file without a name this one."""
    try:
        folder = os.open(path.parent, os.O_RDONLY)
        try:  # with a folder's descriptor, os.link follows the link in /proc, as it must
            os.link(f"/proc/self/fd/{file.fileno()}", path.name, dst_dir_fd=folder)
        finally:
            os.close(folder)
    except OSError:  # no /proc, or a file system without links
        file.seek(0)
        with path.open("xb") as copy:
            shutil.copyfileobj(file, copy)
            copy.flush()
            os.fsync(copy.fileno())


def lines(path: PathLike) -> Iterator[tuple[int, bytes]]:
    """The lines of a text file, numbered from 1, one at a time; a byte order mark is left out.

    Raises W2VError for a file that cannot be read, is plainly no UTF-8 text or has a line of more than 16 MB.
    """
    try:
        with Path(path).open("rb") as file:
            for number in itertools.count(1):
                line = file.readline(LONGEST_LINE + 1)
                if number == 1:
                    line = text_start(path, line)
                if len(line) > LONGEST_LINE:
                    raise W2VError(f"{os.fspath(path)}, line {number}: it is longer than {LONGEST_LINE} bytes")
                if not line and number > 1:
                    return
                yield number, line
    except OSError as error:
        raise W2VError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from error


def _rename_unless_there(temporary: Path, target: Path) -> None:
    """Raises FileExistsError where `target` has appeared in the meantime."""
    try:
        target.hardlink_to(temporary)  # unlike a renaming, it never replaces
    except FileExistsError:
        raise
    except OSError as error:  # a file system without links
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        temporary.replace(target)
    else:
        temporary.unlink()


def text_start(path: object, head: bytes) -> bytes:
    """`head`, the first bytes of a text file (HEAD or more, or all of it), without a byte order mark.

    Raises W2VError for what is plainly not UTF-8 text.
    """
    for pattern, kind in _OTHERS.items():
        if re.match(pattern, head):
            raise W2VError(f"{path} is {kind}")
    return head.removeprefix(BYTE_ORDER_MARK)
