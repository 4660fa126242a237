"""The lock of a folder: at most one run at a time writes there."""

from __future__ import annotations

import fcntl
import logging
import os
import weakref
from contextlib import suppress
from pathlib import Path

from w2v.errors import W2VError

NAME = ".lock"

log = logging.getLogger("w2v")


class Lock:
    """The lock of a folder, on a file that this user creates for this user alone: whoever reads the folder cannot lock.

    It ends with `release`, with this object or with the process, even if a forked child lives on. Raises
    BlockingIOError if another run holds it, W2VError if its file is another user's, OSError.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder
        self._folder = os.open(folder, os.O_RDONLY)
        try:
            self._file = _locked(folder, self._folder)
            while not self.holds():  # another run removed the file after it was opened here
                os.close(self._file)
                self._file = _locked(folder, self._folder)
        except BaseException:
            os.close(self._folder)
            raise
        self.release = weakref.finalize(self, _release, self._folder, self._file)
        _locks.add(self)

    def holds(self) -> bool:
        """Whether the path still names this folder, and its file is still the locked one."""
        return _is_same(self._path / NAME, self._file)

    def is_of_folder(self, other: Lock) -> bool:
        """Whether both are of the same folder."""
        return os.path.samestat(os.fstat(self._folder), os.fstat(other._folder))

    def remove(self, path: Path) -> None:
        """Remove a file from this folder, even if its path now names another."""
        with suppress(OSError):
            os.unlink(path.name, dir_fd=self._folder)


def _locked(path: Path, folder: int) -> int:
    """A descriptor of the locked file."""
    try:
        file = os.open(NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=folder)
    except PermissionError as error:
        raise W2VError(
            f"{path / NAME} is another user's: name another folder, or remove that file if no run uses this one"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise
    except OSError as error:  # some network file systems cannot lock files
        log.debug("%s is not locked: %s", path, error)
    return file


def _is_same(path: str | Path, descriptor: int, folder: int | None = None) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), os.stat(path, dir_fd=folder, follow_symlinks=False))
    return False


def _release(folder: int, file: int) -> None:
    if _is_same(NAME, file, folder):
        with suppress(OSError):
            os.unlink(NAME, dir_fd=folder)
    os.close(file)
    os.close(folder)


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _forget() -> None:
    """Close a forked child's descriptors of its parent's locks: the locks would last as long as the child."""
    for lock in _locks:
        if lock.release.detach():
            os.close(lock._file)
            os.close(lock._folder)


os.register_at_fork(after_in_child=_forget)
