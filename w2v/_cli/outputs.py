"""Check the output files of a command before its work, and save them elsewhere if writing fails after the work."""

import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from w2v._cli.console import STDOUT, Stopped
from w2v._errors import SettingsError, W2VError
from w2v._formats import registry
from w2v._system.files import destination

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")  # extensions
Write = Callable[[Path, bool], None]  # writes a file; raises W2VError if the file exists and the flag is False


def check(
    path: Path, force: bool, others: Iterable[Path] = (), option: str = "with -o", models: Iterable[Path] = ()
) -> None:
    """Raise an error if a command cannot write a file, so that it fails before the work and not after it.

    Args:
        path: The file to write.
        force: Whether an existing file may be replaced.
        others: The other files that the command reads or writes.
        option: How the user can name another file, for the error message: "with" and an option.
        models: Models that the command reads. Their companion files count too, such as the word list of a matrix.

    Raises:
        W2VError: If the file cannot be written, or exists and `force` is False.
        SettingsError: If the path is "-", or names one of the other files.
    """
    models = list(models)
    try:
        real, info = destination(path)
    except OSError as error:  # the name is too long, for instance
        raise W2VError(f"cannot write {path}: {error.strerror}") from error
    if path == Path("-") or (info and _is_standard_output(info)):
        raise SettingsError(f"{path}: outputs cannot be written to standard output: name a file")
    if any(same(real, other) for other in [*others, *models]):
        raise SettingsError(f"{path} is named twice: choose another file for the output")
    for model in models:
        if any(same(real, other) for other in registry.all_files(model)):
            raise SettingsError(f"{path} belongs to {model}, which is read: choose another file for the output")
    if info is None and not real.parent.is_dir():
        raise W2VError(f"cannot write {path}: folder {real.parent} does not exist")
    if info and stat.S_ISDIR(info.st_mode):
        raise W2VError(f"{path} is a folder: name a new one, or a file in it")
    if info and not stat.S_ISREG(info.st_mode):  # a device or a pipe: it is written to, not replaced
        return
    if info and not force:
        raise W2VError(f"{path} exists: name another file {option}, or add --force to replace it")
    try:
        tempfile.TemporaryFile(dir=real.parent).close()
    except OSError as error:
        raise W2VError(f"cannot write in folder {real.parent}: {error.strerror}") from error


def check_text(
    path: Path, force: bool, others: Iterable[Path], option: str = "with -o", models: Iterable[Path] = ()
) -> None:
    """Check a text file to write; arguments and errors are as in `check`.

    Raises:
        SettingsError: Also if the name says that the file is compressed.
    """
    check(path, force, others, option, models)
    if path.suffix.lower() in COMPRESSED and (path.is_file() or not path.exists()):
        raise SettingsError(
            f"{path}: text is not compressed: leave out {path.suffix}, and compress the file afterwards"
        )


def check_model(path: Path, force: bool, others: Iterable[Path], option: str, models: Iterable[Path] = ()) -> None:
    """Check a model to write, and its companion files; arguments and errors are as in `check`."""
    others, models = list(others), list(models)
    check(path, force, others, option, models)
    if registry.format_for(path).for_classifiers:
        raise SettingsError(f"{path}: write this format with w2v quantize: it stores small classifiers")
    for companion in registry.companion_files_to_write(path):
        check(companion, force, others, option, models)


def check_folder(folder: Path, paths: Iterable[Path], force: bool, models: Iterable[Path]) -> None:
    """Check models to write to a folder, which need not exist yet.

    Args:
        folder: The folder.
        paths: The paths of the models in it.
        force: Whether existing files may be replaced.
        models: Models that the command reads.

    Raises:
        W2VError, SettingsError: As in `check`, and if the folder is a file.
    """
    models = list(models)
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"{folder} is a file: name a folder with -o")
    for path in paths if folder.exists() else [folder]:
        check(path, force, (), "or folder with -o", models)


def check_picture_format(path: Path) -> None:
    """Check that a picture can be drawn in the format of this path.

    Raises:
        SettingsError: If the extension is unknown.
        W2VError: If matplotlib is not installed.
    """
    from w2v._plotting.figure import format_of  # matplotlib is optional, and slow to import

    format_of(path)


def _is_standard_output(info: os.stat_result) -> bool:
    """Return True if standard output leads to this file or pipe. Devices such as /dev/null do not count."""
    with suppress(OSError):  # standard output is closed
        return not stat.S_ISCHR(info.st_mode) and os.path.samestat(info, os.fstat(STDOUT))
    return False


def same(path: Path, other: Path) -> bool:
    """Return True if two paths lead to the same file, or would if the file existed."""
    try:
        return path.samefile(other)
    except OSError:  # one of them does not exist yet
        return path == Path(os.path.realpath(other))


def save(files: Iterable[tuple[Path, Write]], force: bool) -> None:
    """Write all files. Save a file that cannot be written in the temporary folder, or else in the home folder.

    If a signal arrives while a pipe waits for its reader, this output and the remaining ones are saved there as well.

    Raises:
        W2VError: If some files could not be written. The message names the files saved instead.
        Stopped: If a signal has arrived.
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
        instead = _save_elsewhere(path, write)
        failures.append(f"{failure}; saved as {instead} instead" if instead else failure)
    if stopped:
        stopped.add_note("; ".join(failures))
        raise stopped
    if failures:
        raise W2VError("; ".join(failures))


def saver(result: Any, *arguments: Any) -> Write:
    """Return a function that writes a result, such as a model or a page, by its method `save` with these arguments."""
    return lambda path, force: result.save(path, *arguments, force=force)


def _save_elsewhere(path: Path, write: Write) -> Path | None:
    """Write a file to a new folder in the temporary or home folder, which only this user can read.

    Returns:
        The path of the file, or None on failure.
    """
    for find_folder in (tempfile.gettempdir, Path.home):
        with suppress(OSError, RuntimeError, W2VError):  # RuntimeError: there is no home folder
            folder = Path(tempfile.mkdtemp(prefix="w2v-", dir=find_folder()))
            try:
                write(folder / path.name, False)
            except W2VError:
                folder.rmdir()
                raise
            return folder / path.name
    return None
