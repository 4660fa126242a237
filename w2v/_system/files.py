"""Write files atomically, turn system errors into one line, and recognise file types by their signature."""

import errno
import io
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, Literal

from w2v._errors import W2VError, one_line

if sys.platform == "win32":
    from w2v._system.windows import create_file

    NO_FOLLOW = NO_WAIT = 0  # Windows has no pipes with paths of this kind, and only administrators create links
else:
    NO_FOLLOW, NO_WAIT = os.O_NOFOLLOW, os.O_NONBLOCK  # flags of os.open: refuse links, and do not wait for a pipe
ANOTHER_FOLDER = "; name another folder with --cache or TMPDIR"
EXISTS = "File exists; name another file, or replace it with force=True"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SIGNATURE_BYTES = 512  # enough of a file's start to recognise every signature below

# Signatures: regular expressions for the first bytes of a file.
UTF_16 = (
    rb"\xff\xfe|\xfe\xff|\0\0\xfe\xff|"
    rb"([!-~]\0){2}([\t\n\r -~]\0){6}|(\0[!-~]){2}(\0[\t\n\r -~]){6}"  # without a byte order mark
)
ZIP = rb"PK\x03\x04"
DOCUMENT = (  # Word, Excel, PowerPoint, LibreOffice, EPUB: zip archives; their first file has one of these names
    ZIP + rb"(?s:.{26})(\[Content_Types\]\.xml|_rels/\.rels|docProps/|word/|xl/|ppt/"
    rb"|mimetypeapplication/(vnd\.oasis\.opendocument|epub))"
)
NUMPY = rb"\x93NUMPY"
HDF5 = rb"\x89HDF\r\n\x1a\n"
FASTTEXT = rb"\xba\x16\x4f\x2f"  # 793712314, fastText's magic number, little-endian
PICKLE = rb"\x80[\x02-\x05]"
IDS_SIGNATURE = b"w2v ids, format "  # near the end of id files

SQLITE = rb"SQLite format 3\0"
PARQUET, ARROW = rb"PAR1\x15", rb"ARROW1\0\0"
ARROW_STREAM = rb"\xff{4}(?s:.{3})\0(?s:.)\0{3}"  # the length of the schema (less than 24 bits), and its first offset

_NOT_TEXT = {  # maps a signature to the type of the file and the advice in the error message
    UTF_16: "UTF-16 or UTF-32: convert it to UTF-8, with iconv for instance",
    DOCUMENT: "an office document: save it as plain text in UTF-8, or a spreadsheet as CSV",
    ZIP: "a zip archive: unpack it and give the text file in it",
    rb"\x1f\x8b\x08|BZh[1-9]1AY&SY|\xfd7zXZ\0|\x28\xb5\x2f\xfd": "compressed: unpack it first",
    rb"7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|(?s:.{257})ustar": "an archive: unpack it and give the text file in it",
    rb"%PDF-|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1|\{\\rtf": "a formatted document: save it as plain text",
    rb"\x7fELF|\x89PNG\r|\xff\xd8\xff|GIF8": "binary, not text",
    PARQUET: "a Parquet table, not text: name the column that holds the text with --column",
    ARROW + b"|" + ARROW_STREAM: "an Arrow table, not text: name the column that holds the text with --column",
    b"|".join([NUMPY, HDF5, FASTTEXT, PICKLE, SQLITE]): "binary, not text",
}

PathLike = str | os.PathLike[str]
Errors = Literal["strict", "replace", "ignore"]  # how to treat malformed UTF-8, as in bytes.decode


def as_paths(paths: PathLike | Iterable[PathLike]) -> list[PathLike]:
    """Return one or more paths as a list."""
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


def is_nameable(path: PathLike) -> bool:
    """Return True if a file can have this name: it contains no null character and the system can encode it."""
    with suppress(UnicodeEncodeError):
        return b"\0" not in os.fsencode(path)
    return False


@contextmanager
def translate_os_errors(path: PathLike, action: str = "read", hint: str = "") -> Iterator[None]:
    """Turn system errors in a `with` block into a W2VError, "cannot read PATH: …".

    Args:
        path: The path for the message.
        action: The verb for the message.
        hint: Text for the end of the message.

    Raises:
        W2VError: If the system reports an error, or no file can be named `path`.
    """
    if not is_nameable(path):
        raise W2VError(f"cannot {action} {one_line(os.fspath(path))!r:.60}: no file can have this name")
    try:
        yield
    except OSError as error:
        reason = error.strerror or one_line(error)
        if sys.platform == "win32":
            if error.winerror:  # the text of Windows depends on its language
                reason = os.strerror(error.errno)
            if isinstance(error, FileExistsError) and not os.path.lexists(path):  # a folder above it is a file
                reason = os.strerror(errno.ENOTDIR)
            if isinstance(error, PermissionError):  # for folders and open files, too
                reason = os.strerror(errno.EISDIR) if Path(path).is_dir() else f"{reason}, or a program has it open"
        raise W2VError(f"cannot {action} {one_line(os.fspath(path))}: {reason}{hint}") from error


def open_regular(path: PathLike) -> io.BufferedReader:
    """Open a regular file for reading. A pipe is refused without waiting for its writer.

    Raises:
        W2VError: If it is a folder, or a device or pipe, which may never end.
        OSError: If the system reports an error.
    """
    if sys.platform == "win32" and Path(path).is_dir():  # os.open would only deny access
        raise W2VError(f"cannot read {one_line(os.fspath(path))}: it is a folder")
    file = os.open(path, os.O_RDONLY | NO_WAIT)
    mode = os.fstat(file).st_mode
    if not stat.S_ISREG(mode):
        os.close(file)
        kind = "folder" if stat.S_ISDIR(mode) else "pipe" if stat.S_ISFIFO(mode) else "device"
        raise W2VError(f"cannot read {one_line(os.fspath(path))}: it is a {kind}")
    return os.fdopen(file, "rb")


@contextmanager
def atomic_write(path: PathLike, replace: bool = True, follow: bool = True, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a binary file for writing. It gets the name `path` only when it is complete and on disk.

    Until then the file has a hidden name that ends in .tmp, and no other user may read it. If writing fails, the new
    file is deleted and an existing file at `path` stays unchanged. A killed process leaves the unfinished file. A file
    that replaces an old file gets the mode of the old file.

    Args:
        path: The final name. By default, data is written through a symbolic link, device or pipe at `path`; see
            `destination`.
        replace: If False, an existing file is an error.
        follow: If False, whatever is at `path`, such as a link, device or pipe, is replaced by a new file with the
            permissions `mode`. Use this if other users can predict the name.
        mode: The permissions of a new file, before the umask.

    Raises:
        W2VError: If the system reports an error; the message names the path.
    """
    with _open_draft(path, replace, follow, mode) as draft:
        yield draft.file
        draft.complete()
        draft.publish(replace)


@contextmanager
def atomic_write_together(paths: Sequence[PathLike], replace: bool = True) -> Iterator[list[BinaryIO]]:
    """Open several files for writing, as `atomic_write` does, and replace them together.

    All files are complete before the first one gets its name. After an error, all old files are restored. The last
    path does not exist while the others are replaced. So a killed process or a power failure leaves all old files, all
    new files, or no file at the last path, but never a readable mixture. In the last case, the old files are kept under
    temporary names.

    Raises:
        W2VError: As in `atomic_write`.
    """
    with ExitStack() as stack:
        drafts = [stack.enter_context(_open_draft(path, replace)) for path in paths]
        yield [draft.file for draft in drafts]
        for draft in drafts:
            draft.complete()
        regular = [draft for draft in drafts if draft.temporary]
        with _restore_old_files_on_error(regular, replace) if len(regular) > 1 else nullcontext():
            for draft in drafts:
                draft.publish(replace)


@dataclass
class _Draft:
    """A file that is written before it gets its name.

    Attributes:
        path: The path that the caller named.
        target: The path of the finished file, after following links.
        file: The file, open for writing.
        temporary: The temporary path of the unfinished file, or None for a device or pipe.
        mode: The permissions of the finished file.
    """

    path: PathLike
    target: Path
    file: BinaryIO
    temporary: Path | None = None
    mode: int = 0

    def complete(self) -> None:
        """Write all data to disk."""
        with translate_os_errors(self.path, "write"):
            self.file.flush()
            if self.temporary is None:
                return
            _set_mode(self.file, self.mode)
            os.fsync(self.file.fileno())
            self.file.close()  # Windows keeps the names of open files until they are closed

    def publish(self, replace: bool) -> None:
        """Rename the complete file to its final name."""
        if self.temporary is None:
            return
        with translate_os_errors(self.path, "write"):
            if replace:
                self.temporary.replace(self.target)
            else:
                _rename_without_replacing(self.temporary, self.target)
            sync_folder(self.target.parent)


@contextmanager
def _open_draft(path: PathLike, replace: bool, follow: bool = True, mode: int = 0o666) -> Iterator[_Draft]:
    """Open a new file, as `atomic_write` describes. Delete it at the end unless it was published."""
    with translate_os_errors(path, "write"):
        target, old = destination(path) if follow else (Path(path), None)
        if old and stat.S_ISDIR(old.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if old and not stat.S_ISREG(old.st_mode):
            with os.fdopen(os.open(target, os.O_WRONLY), "wb") as file:  # Linux refuses O_CREAT on others' pipes
                yield _Draft(path, target, file)
            return
        if old and not replace:
            raise FileExistsError(errno.EEXIST, EXISTS)
        temporary = _temporary_path(target)
        try:
            with _create_exclusively(temporary, 0o600 if old else mode) as file:
                mode = (old or os.fstat(file.fileno())).st_mode & 0o777
                _set_mode(file, 0o600)
                yield _Draft(path, target, file, temporary, mode)
        except BaseException:
            with suppress(OSError):  # the first error is the informative one
                temporary.unlink()
            raise


def _temporary_path(path: Path) -> Path:
    """Return a random path in the same folder."""
    # Systems limit names to 255 bytes or so; 20 characters have at most 80 bytes.
    return path.with_name(f".{path.name[:20]}.{secrets.token_hex(8)}.tmp")


@contextmanager
def _restore_old_files_on_error(drafts: list[_Draft], replace: bool) -> Iterator[None]:
    """Move the old files to temporary names, and move them back if the `with` block fails.

    The last file is moved away first and moved back last, so that the other files never change while it exists.
    """
    new = [(draft.target, os.lstat(draft.temporary)) for draft in reversed(drafts) if draft.temporary]
    old = [(target, _temporary_path(target)) for target, _ in new if replace]
    try:
        for target, hidden in old:
            with translate_os_errors(target, "write"), suppress(FileNotFoundError):
                target.rename(hidden)
        for folder in {target.parent for target, _ in old}:
            with translate_os_errors(folder, "write"):
                sync_folder(folder)
        yield
    except BaseException as error:
        try:
            for target, status in new:
                if os.path.lexists(target) and os.path.samestat(os.lstat(target), status):
                    target.unlink()
            for target, hidden in reversed(old):
                with suppress(FileNotFoundError):
                    hidden.rename(target)
        except OSError:
            moved = [f"{target} is now {hidden.name}" for target, hidden in old if os.path.lexists(hidden)]
            if moved and isinstance(error, W2VError):
                raise W2VError("; ".join([str(error), *moved])) from error
        raise
    for _, hidden in 2 * old:  # try twice, in case the system refused to delete a file the first time
        with suppress(OSError):
            hidden.unlink()


def destination(path: PathLike) -> tuple[Path, os.stat_result | None]:
    """Follow symbolic links from `path`. Return the path to write to, and its status (None if it does not exist).

    A device or pipe is written to under the name `path`, because an open pipe such as /dev/fd/63 has no other name.

    Raises:
        OSError: If links lead in a circle, or the system reports another error.
    """
    path = Path(path)
    try:
        info = path.stat()
    except FileNotFoundError:
        info = None
    is_replaced = info is None or stat.S_ISREG(info.st_mode)
    return Path(os.path.realpath(path)) if is_replaced else path, info


def belongs_to_user(status: os.stat_result, forbidden: int = 0) -> bool:
    """Return True if a file or folder belongs to this user and has none of the `forbidden` mode bits.

    On Windows, the result is always True: Python shows no owners and modes there.
    """
    return sys.platform == "win32" or (status.st_uid == user_id() and not status.st_mode & forbidden)


def check_code_folder(folder: Path) -> None:
    """Raise PermissionError if others can write to a folder of cached machine code, because that code is run.

    If the folder does not exist, its nearest existing parent is checked.
    """
    if not folder.is_absolute():  # without a home folder, the cache would be in the working directory
        raise PermissionError(f"there is no home folder for {folder}")
    status = next(each for each in (folder, *folder.parents) if each.exists()).stat()
    if not belongs_to_user(status, forbidden=stat.S_IWOTH):
        raise PermissionError(f"others can write to {folder}")


def user_id() -> int:
    """Return the number of the user, as in the `st_uid` of this user's files. On Windows, it is always 0."""
    return 0 if sys.platform == "win32" else os.geteuid()


def check_disk_space(file: BinaryIO, folder: PathLike, needed: float, what: str, hint: str = "") -> None:
    """Check that the disk of a folder, with an open file in it, has space for `needed` more bytes.

    Args:
        file: The file. The space for a device or pipe is not checked.
        folder: The folder.
        needed: The number of bytes.
        what: What needs the bytes, at the start of the message.
        hint: What to do, at the end of the message.

    Raises:
        W2VError: If the space is not enough.
    """
    free = shutil.disk_usage(folder).free
    if needed > free and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        raise W2VError(
            f"{what} needs about {needed / 1e6:,.0f} MB more on disk, but {os.fspath(folder)} has only "
            f"{free / 1e6:,.0f} MB{hint}"
        )


def temporary_folder(folder: PathLike | None = None) -> Path:
    """Return `folder`, or the system's temporary folder if it is None.

    Raises:
        W2VError: If no temporary folder of the system is writable.
    """
    try:
        return Path(tempfile.gettempdir() if folder is None else folder)
    except FileNotFoundError:
        raise W2VError(
            "no folder for temporary files is writable: name one with the variable TMPDIR, or with --cache"
        ) from None


def reserve_space(file: IO[bytes], size: int) -> None:
    """Reserve disk space for the first `size` bytes of a file, if the system and the file system can.

    Without it, writing to a memory-mapped file would crash the process when the disk is full.
    """
    if hasattr(os, "posix_fallocate"):  # not on macOS and Windows
        with _ignore_errors(errno.EINVAL, errno.EOPNOTSUPP):  # some file systems cannot reserve space
            os.posix_fallocate(file.fileno(), 0, size)


@contextmanager
def _ignore_errors(*numbers: int) -> Iterator[None]:
    """Ignore system errors with these numbers."""
    try:
        yield
    except OSError as error:
        if error.errno not in numbers:
            raise


def _create_exclusively(path: Path, mode: int) -> BinaryIO:
    """Create a file, or raise FileExistsError if a file or link has this name."""
    if sys.platform == "win32":
        return os.fdopen(create_file(path), "w+b")
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode), "w+b")


def _set_mode(file: BinaryIO, mode: int) -> None:
    """Set the mode of an open file, if the system and the file system can."""
    if sys.platform == "win32":
        return
    with suppress(OSError):  # the file system may not support modes
        os.fchmod(file.fileno(), mode)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk, if the system can."""
    if sys.platform == "win32":
        return
    with suppress(PermissionError), ExitStack() as stack:  # the folder may be writable but not readable
        descriptor = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, descriptor)
        with _ignore_errors(errno.EINVAL, errno.ENOTSUP):  # some file systems cannot sync folders
            os.fsync(descriptor)


@contextmanager
def check_unchanged(where: object, file: IO[bytes], info: os.stat_result | None = None) -> Iterator[None]:
    """Check at the end of a successful `with` block that an open file has not changed.

    The check compares the size and the modification time of the file. Files that are not regular are not checked.

    Args:
        where: The start of the error message.
        file: The open file.
        info: The earlier status of the file; by default, its status at the start of the block.

    Raises:
        W2VError: If the file has changed.
    """
    try:
        info = info or os.fstat(file.fileno())
    except io.UnsupportedOperation:  # a file object in memory
        info = None
    yield
    if info is None or not stat.S_ISREG(info.st_mode):
        return
    now = os.fstat(file.fileno())
    if (info.st_size, info.st_mtime_ns) != (now.st_size, now.st_mtime_ns):
        raise W2VError(
            f"{where} changed while it was read: it had {info.st_size:,} bytes, and has {now.st_size:,} now; try again "
            "when nothing writes to it"
        )


@contextmanager
def check_files_unchanged(path: PathLike) -> Iterator[Callable[[Iterable[PathLike]], None]]:
    """Check at the end of a `with` block that files were not changed or replaced during the block.

    The check also runs if the block fails, because a changed file is the likely cause. The context manager returns a
    function that adds files to check. Call it before you read them.

    Raises:
        W2VError: If a file has changed or been replaced.
    """
    versions = {path: _version(path)}

    def watch(paths: Iterable[PathLike]) -> None:
        versions.update((path, _version(path)) for path in paths)

    def check(error: Exception | None = None) -> None:
        for name, version in versions.items():
            if _version(name) != version:
                raise W2VError(
                    f"{one_line(os.fspath(name))} changed while it was read: try again when nothing writes to it"
                ) from error

    try:
        yield watch
    except Exception as error:
        check(error)
        raise
    check()


def _version(path: PathLike) -> tuple[int, ...]:
    """Return numbers that differ if a file is changed or replaced; () if the file does not exist."""
    try:
        info = Path(path).stat()
    except (OSError, ValueError):  # ValueError: no file can have this name
        return ()
    is_folder = stat.S_ISDIR(info.st_mode)  # the caller checks the files in the folder instead
    return (info.st_dev, info.st_ino, *(() if is_folder else (info.st_size, info.st_mtime_ns)))


def _rename_without_replacing(temporary: Path, target: Path) -> None:
    """Rename `temporary` to `target`, or raise FileExistsError if `target` exists."""
    try:
        target.hardlink_to(temporary)  # unlike renaming, linking never replaces a file
    except OSError as error:  # the target exists, or the file system has no hard links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, EXISTS) from error
        temporary.replace(target)
    else:
        temporary.unlink()


def text_start(path: object, head: bytes) -> bytes:
    """Return the start of a text file without its byte order mark.

    Args:
        path: The path of the file, for the error message.
        head: The first SIGNATURE_BYTES or more, or the whole file.

    Raises:
        W2VError: If a signature shows that the file is not UTF-8 text.
    """
    for pattern, kind in _NOT_TEXT.items():
        if re.match(pattern, head):
            raise W2VError(f"{path} is {kind}")
    return head.removeprefix(BYTE_ORDER_MARK)


@contextmanager
def atomic_folder(path: PathLike) -> Iterator[Path]:
    """Create a folder that gets the name `path` only after the `with` block has filled it.

    An existing folder is never replaced, since it may contain other files.

    Raises:
        W2VError: If the path exists, or the system reports an error. The message has the path.
    """
    with translate_os_errors(path, "write"):
        target = Path(path)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "it exists already; name another folder")
        temporary = _temporary_path(target)
        temporary.mkdir()
        try:
            yield temporary
            temporary.rename(target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_folder(target.parent)
