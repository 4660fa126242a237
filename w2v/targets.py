"""Files that a command is to write: checked before its work begins, and not lost when writing fails after it."""

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from w2v.errors import SettingsError, W2VError


def check(path: Path, force: bool, inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Raise W2VError where `path` cannot be written or, unless `force`, is there already.

    Raises SettingsError where it is one of the `inputs`.
    """
    if path.is_dir():
        raise W2VError(f"{path} is a folder: name a file in it")
    if path.is_file():
        if any(Path(name).exists() and path.samefile(name) for name in inputs):
            raise SettingsError(f"{path} is read, and would be overwritten: name another output")
        if not force:
            raise W2VError(f"{path} exists: name another output, or add --force to replace it")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise W2VError(f"cannot write {path}: folder {folder} does not exist")
    if path.is_file() or not path.exists():  # neither a device nor a pipe
        try:
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise W2VError(f"cannot write in folder {folder}: {error.strerror}") from error


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
