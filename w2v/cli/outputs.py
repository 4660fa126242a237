"""The files that a command writes: checked before the work; saved elsewhere if they cannot be written afterwards."""

import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from w2v.errors import SettingsError, W2VError

if TYPE_CHECKING:
    from w2v.plotting.figure import Picture

Write = Callable[[Path, bool], None]  # writes a file; raises W2VError if it exists and the flag is false


def check(path: Path, force: bool, others: Iterable[Path] = ()) -> None:
    """Raise W2VError if `path` cannot be written or, without `force`, exists.

    Raises SettingsError if it is "-", or one of `others`, the files that the same command reads or writes.
    """
    if path == Path("-"):
        raise SettingsError("-: outputs cannot be written to standard output: name a file")
    real = Path(os.path.realpath(path))
    if any(_same(real, other) for other in others):
        raise SettingsError(f"{path} is named twice: choose another file for the output")
    try:
        mode = real.lstat().st_mode
    except FileNotFoundError:
        if not real.parent.is_dir():
            raise W2VError(f"cannot write {path}: folder {real.parent} does not exist") from None
        mode = stat.S_IFREG
        force = True
    except OSError as error:  # its name is too long, for instance
        raise W2VError(f"cannot write {path}: {error.strerror}") from error
    if stat.S_ISDIR(mode):
        raise W2VError(f"{path} is a folder: name a file in it")
    if not stat.S_ISREG(mode):  # a device or pipe, which is written through
        return
    if not force:
        raise W2VError(f"{path} exists: name another output, or add --force to replace it")
    try:
        tempfile.TemporaryFile(dir=real.parent).close()
    except OSError as error:
        raise W2VError(f"cannot write in folder {real.parent}: {error.strerror}") from error


def check_picture(path: Path, force: bool, others: Iterable[Path] = ()) -> None:
    """As `check`, for a picture. Also raises SettingsError for an unknown extension, W2VError without matplotlib."""
    check(path, force, others)
    from w2v.plotting.figure import format_of  # matplotlib is optional, and slow to import

    format_of(path)


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # it does not exist yet
        return path == Path(os.path.realpath(other))


def save(files: Iterable[tuple[Path, Write]], force: bool) -> None:
    """Write all files; one that cannot be written is saved in the temporary or home folder instead.

    After trying all of them, raises W2VError if any could not be written; it names the files saved instead.
    """
    failures = [failure for path, write in files if (failure := _save(path, write, force))]
    if failures:
        raise W2VError("; ".join(failures))


def save_picture(picture: "Picture", path: Path, force: bool) -> None:
    save([(path, lambda path, force: picture.save(path, replace=force))], force)


def _fallback_folders() -> Iterator[Path]:
    """The temporary and the home folder, if they exist."""
    with suppress(OSError):
        yield Path(tempfile.gettempdir())
    with suppress(RuntimeError):
        yield Path.home()


def _save(path: Path, write: Write, force: bool) -> str:
    """Write one file. Returns the error message; empty if there is no error."""
    try:
        write(path, force)
    except W2VError as error:
        for folder in _fallback_folders():
            # Others may write to the temporary folder, so the name must be random. It keeps the extension.
            instead = folder / f"w2v-{secrets.token_hex(8)}-{path.name[-40:]}"
            if os.path.lexists(instead):
                continue
            try:
                write(instead, False)
            except W2VError:
                continue
            return f"{error}; saved as {instead} instead"
        return str(error)
    return ""
