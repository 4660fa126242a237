"""A lock on a folder, so that at most one run at a time writes to it."""

from __future__ import annotations

import logging
import os
import sys
import weakref
from contextlib import suppress
from pathlib import Path

from w2v.errors import W2VError

FILE_NAME = ".lock"

log = logging.getLogger("w2v")


if sys.platform == "win32":
    import msvcrt

    class Lock:
        """A lock on a file in a folder.

        Windows removes neither the file nor the folder while the lock is held. The lock ends when `release` is called,
        or when this object or the process ends.

        Raises:
            BlockingIOError: Another run holds the lock.
            OSError: The file cannot be opened.
        """

        def __init__(self, folder: Path) -> None:
            self._path = folder / FILE_NAME
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT)
            try:
                msvcrt.locking(self._file, msvcrt.LK_NBLCK, 1)
            except OSError as error:
                os.close(self._file)
                raise BlockingIOError(*error.args) from error
            self.release = weakref.finalize(self, _release, self._path, self._file)

        def holds(self) -> bool:
            """Return True if the lock is held."""
            return self.release.alive

        def has_same_folder(self, other: Lock) -> bool:
            """Return True if the other lock is on the same folder."""
            return self._path == other._path

        def remove(self, path: Path) -> None:
            """Remove a file from the locked folder. Ignore errors."""
            with suppress(OSError):
                path.unlink()

    def _release(path: Path, file: int) -> None:
        os.close(file)
        with suppress(OSError):  # another run has locked it already
            path.unlink()

else:
    import fcntl

    class Lock:
        """An advisory lock (flock) on a file in a folder.

        The file can be opened only by the user who created it, so other users who may read the folder cannot lock it.
        The lock ends when `release` is called, or when this object or the process ends, even if a forked child lives
        on.

        Raises:
            BlockingIOError: Another run holds the lock.
            W2VError: The file belongs to another user.
            OSError: The folder or the file cannot be opened.
        """

        def __init__(self, folder: Path) -> None:
            self._path = folder
            self._folder = os.open(folder, os.O_RDONLY)
            try:
                self._file = _open_locked(folder, self._folder)
                while not self.holds():  # another run removed the file between open and flock
                    os.close(self._file)
                    self._file = _open_locked(folder, self._folder)
            except BaseException:
                os.close(self._folder)
                raise
            self.release = weakref.finalize(self, _release, self._folder, self._file)
            _locks.add(self)

        def holds(self) -> bool:
            """Return True if the path still leads to this folder and the locked file is still in it."""
            return _is_same_file(self._path / FILE_NAME, self._file)

        def has_same_folder(self, other: Lock) -> bool:
            """Return True if the other lock is on the same folder."""
            return os.path.samestat(os.fstat(self._folder), os.fstat(other._folder))

        def remove(self, path: Path) -> None:
            """Remove a file from the locked folder, even if another folder has taken its path. Ignore errors."""
            with suppress(OSError):
                os.unlink(path.name, dir_fd=self._folder)

    def _open_locked(path: Path, folder: int) -> int:
        """Open and lock the lock file, and return its descriptor."""
        try:
            file = os.open(FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=folder)
        except PermissionError as error:
            raise W2VError(
                f"{path / FILE_NAME} belongs to another user: name another folder, or remove this file if no run uses "
                "it"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise
        except OSError as error:  # some network file systems cannot lock files
            log.debug("%s is not locked: %s", path, error)
        return file

    def _is_same_file(path: str | Path, descriptor: int, folder: int | None = None) -> bool:
        with suppress(OSError):
            return os.path.samestat(os.fstat(descriptor), os.stat(path, dir_fd=folder, follow_symlinks=False))
        return False

    def _release(folder: int, file: int) -> None:
        if _is_same_file(FILE_NAME, file, folder):
            with suppress(OSError):
                os.unlink(FILE_NAME, dir_fd=folder)
        os.close(file)
        os.close(folder)

    _locks: weakref.WeakSet[Lock] = weakref.WeakSet()

    def _close_in_child() -> None:
        """Close the descriptors that a forked child inherits; otherwise they would keep its parent's locks."""
        for lock in _locks:
            if lock.release.detach():
                os.close(lock._file)
                os.close(lock._folder)

    os.register_at_fork(after_in_child=_close_in_child)
