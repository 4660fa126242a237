"""Files that a command is to write: checked before its work begins, and not lost when writing fails after it."""

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from w2v.errors import SettingsError, W2VError


def check(path: Path, force: bool, others: Iterable[Path] = ()) -> None:
    """Raise W2VError where `path` cannot be written or, unless `force`, is there already.

    Raises SettingsError where it is "-", or one of the `others`, files that the same command reads or writes.
    """
    if path == Path("-"):
        raise SettingsError("-: an output is a file, not standard output; name one")
    real = Path(os.path.realpath(path))
    if any(_same(real, other) for other in others):
        raise SettingsError(f"{path} is named for two things: name another output")
    if real.is_dir():
        raise W2VError(f"{path} is a folder: name a file in it")
    if real.is_file() and not force:
        raise W2VError(f"{path} exists: name another output, or add --force to replace it")
    if not real.parent.is_dir():
        raise W2VError(f"cannot write {path}: folder {real.parent} does not exist")
    if real.is_file() or not real.exists():  # neither a device nor a pipe
        try:
            tempfile.TemporaryFile(dir=real.parent).close()
        except OSError as error:
            raise W2VError(f"cannot write in folder {real.parent}: {error.strerror}") from error


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # not there yet
        return path == Path(os.path.realpath(other))


def save(write: Callable[[Path], None], path: Path) -> None:
    """Write a file; where that fails, write it to the temporary or home folder.

    Raises W2VError in any case of failure; it names the file written instead.
    """
    try:
        write(path)
    except W2VError as error:
        for folder in (Path(tempfile.gettempdir()), Path.home()):
            instead = folder / f"w2v-{os.getpid()}-{path.name}"
            try:
                write(instead)
            except W2VError:
                continue
            raise W2VError(f"{error}; saved as {instead} instead") from error
        raise
