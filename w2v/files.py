"""Files that are either written whole or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from w2v.errors import W2VError


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the name `path` only once all of it is on the disk.

    It is written under a temporary name in the same folder, flushed and renamed. On any failure the temporary
    file is removed and an older file of that name stands. A device or pipe is written directly.
    Raises W2VError, naming the path, where the system refuses.
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
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
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
