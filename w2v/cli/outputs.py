"""The files that a command writes: checked before the work; saved elsewhere if they cannot be written afterwards."""

import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from w2v.cli.console import STDOUT, Stopped
from w2v.errors import SettingsError, W2VError
from w2v.formats import table
from w2v.system.files import destination

if TYPE_CHECKING:
    from w2v.plotting.figure import Picture

Write = Callable[[Path, bool], None]  # writes a file; raises W2VError if it exists and the flag is false


def check(
    path: Path,
    force: bool,
    others: Iterable[Path] = (),
    option: str = "with -o",
    models: Iterable[Path] = (),
) -> None:
    """Raise W2VError if `path` cannot be written or, without `force`, exists; `option` says where to name another.

    Raises SettingsError if it is "-", one of `others`, the files that the same command reads or writes, or one of the
    files of the `models` that it reads, such as the words beside a matrix.
    """
    models = list(models)
    try:
        real, info = destination(path, force)
    except OSError as error:  # its name is too long, for instance
        raise W2VError(f"cannot write {path}: {error.strerror}") from error
    if path == Path("-") or (info and _is_standard_output(info)):
        raise SettingsError(f"{path}: outputs cannot be written to standard output: name a file")
    if any(same(real, other) for other in [*others, *models]):
        raise SettingsError(f"{path} is named twice: choose another file for the output")
    for model in models:
        if any(same(real, other) for other in table.all_files(model)):
            raise SettingsError(f"{path} belongs to {model}, which is read: choose another file for the output")
    if info is None and not real.parent.is_dir():
        raise W2VError(f"cannot write {path}: folder {real.parent} does not exist")
    if info and stat.S_ISDIR(info.st_mode):
        raise W2VError(f"{path} is a folder: name a new one, or a file in it")
    if info and not stat.S_ISREG(info.st_mode):  # a device or pipe, which is written through
        return
    if info and not force:
        raise W2VError(f"{path} exists: name another file {option}, or add --force to replace it")
    folder = real.parent.stat()
    if info and folder.st_mode & stat.S_ISVTX and os.geteuid() not in (0, folder.st_uid, info.st_uid):
        raise W2VError(f"{path} belongs to another user, who alone may replace it: name another output")
    try:
        tempfile.TemporaryFile(dir=real.parent).close()
    except OSError as error:
        raise W2VError(f"cannot write in folder {real.parent}: {error.strerror}") from error


def check_picture(
    path: Path,
    force: bool,
    others: Iterable[Path] = (),
    option: str = "with -o",
    models: Iterable[Path] = (),
) -> None:
    """As `check`, for a picture. Also raises SettingsError for an unknown extension, W2VError without matplotlib."""
    check(path, force, others, option, models)
    from w2v.plotting.figure import format_of  # matplotlib is optional, and slow to import

    format_of(path)


def _is_standard_output(info: os.stat_result) -> bool:
    """Whether a file or pipe, not a device such as /dev/null, is what standard output leads to."""
    with suppress(OSError):  # it is closed
        return not stat.S_ISCHR(info.st_mode) and os.path.samestat(info, os.fstat(STDOUT))
    return False


def same(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file, or would if it existed."""
    try:
        return path.samefile(other)
    except OSError:  # it does not exist yet
        return path == Path(os.path.realpath(other))


def save(files: Iterable[tuple[Path, Write]], force: bool) -> None:
    """Write all files; one that cannot be written is saved in the temporary or home folder instead.

    A signal while a pipe waits for its reader has this one and those after it saved there, and is raised afterwards.
    After trying all of them, raises W2VError if any could not be written; it names the files saved instead.
    """
    failures: list[str] = []
    stopped: Stopped | None = None
    for path, write in files:
        failure = f"{path} is not written"
        if not stopped:
            try:
                write(path, force)
                continue
            except W2VError as error:
                failure = str(error)
            except Stopped as error:
                if not path.is_fifo():
                    raise
                stopped = error
        instead = _saved_elsewhere(path, write)
        failures.append(f"{failure}; saved as {instead} instead" if instead else failure)
    if stopped:
        stopped.add_note("; ".join(failures))
        raise stopped
    if failures:
        raise W2VError("; ".join(failures))


def saving(thing: Any, *more: Any) -> Write:
    """The `save` method of a model, page or the like, with `more` arguments."""
    return lambda path, force: thing.save(path, *more, force=force)


def save_picture(picture: "Picture", path: Path, force: bool) -> None:
    save([(path, saving(picture))], force)


def _fallback_folders() -> Iterator[Path]:
    """The temporary and the home folder, if they exist."""
    with suppress(OSError):
        yield Path(tempfile.gettempdir())
    with suppress(RuntimeError):
        yield Path.home()


def _saved_elsewhere(path: Path, write: Write) -> Path | None:
    """Write a file in the temporary or home folder, for this user alone. Returns its path, or None if it cannot be."""
    for folder in _fallback_folders():
        # Others may write to the temporary folder, so the name must be random. It keeps the extension.
        instead = folder / f"w2v-{secrets.token_hex(8)}-{path.name[-40:]}"
        if os.path.lexists(instead):
            continue
        mask = os.umask(0o077)
        try:
            write(instead, False)
        except W2VError:
            continue
        finally:
            os.umask(mask)
        return instead
    return None
