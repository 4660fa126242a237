"""A lock on a folder, so that at most one run at a time writes to it."""

from __future__ import annotations

import logging
import os
import sys
import weakref
from contextlib import suppress
from pathlib import Path

from w2v._errors import W2VError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

FILE_NAME = ".lock"

log = logging.getLogger("w2v")


class Lock:
    """A lock on a file in a folder.

    Only the user who created the file can open it, so other users who may read the folder cannot lock it. The lock ends
    when `release` is called, or when this object or the process ends, even if a forked child lives on.

    Raises:
        BlockingIOError: Another run holds the lock.
        W2VError: The file belongs to another user.
        OSError: The file cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._file = _open_locked(self._path)
        while not self.holds():  # another run removed the file between open and lock
            os.close(self._file)
            self._file = _open_locked(self._path)
        self.release = weakref.finalize(self, _release, self._path, self._file)
        _locks.add(self)

    def holds(self) -> bool:
        """Return True if the locked file is still in the folder. Windows does not remove it while it is locked."""
        return sys.platform == "win32" or _is_same_file(self._path, self._file)


def _open_locked(path: Path) -> int:
    """Open and lock the lock file, and return its descriptor."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except PermissionError as error:
        raise W2VError(
            f"{path} belongs to another user: name another folder, or remove this file if no run uses it"
        ) from error
    try:
        if sys.platform == "win32":
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if sys.platform == "win32" or isinstance(error, BlockingIOError):
            os.close(file)
            raise BlockingIOError(*error.args) from error
        log.debug("%s is not locked: %s", path, error)  # some network file systems have no locks
    return file


def _is_same_file(path: Path, descriptor: int) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


def _release(path: Path, file: int) -> None:
    if sys.platform != "win32" and _is_same_file(path, file):
        path.unlink(missing_ok=True)
    os.close(file)
    if sys.platform == "win32":  # which removes no open file
        with suppress(OSError):  # another run has locked it already
            path.unlink()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _close_in_child() -> None:
    """Close the files that a forked child inherits. It would keep the locks of its parent, or end them with itself."""
    for lock in _locks:
        if lock.release.detach():
            os.close(lock._file)


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_close_in_child)
