"""Atomic writing of files, errors of the system as one line, and file signatures."""

import errno
import io
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, Literal

from w2v.errors import W2VError, one_line

EXISTS = "File exists; name another file, or replace it with force=True"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SIGNATURE_BYTES = 512  # enough of a file's start to recognise every signature below

# Signatures: regular expressions for the first bytes of a file.
UTF_16 = (
    rb"\xff\xfe|\xfe\xff|\0\0\xfe\xff|"
    rb"([!-~]\0){2}([\t\n\r -~]\0){6}|(\0[!-~]){2}(\0[\t\n\r -~]){6}"  # without a byte order mark
)
ZIP = rb"PK\x03\x04"
DOCUMENT = (  # Word, Excel, PowerPoint, LibreOffice, EPUB: a zip archive whose first file has one of these names
    ZIP + rb"(?s:.{26})(\[Content_Types\]\.xml|_rels/\.rels|docProps/|word/|xl/|ppt/"
    rb"|mimetypeapplication/(vnd\.oasis\.opendocument|epub))"
)
NUMPY = rb"\x93NUMPY"
HDF5 = rb"\x89HDF\r\n\x1a\n"
FASTTEXT = rb"\xba\x16\x4f\x2f"  # 793712314, fastText's magic number, little-endian
PICKLE = rb"\x80[\x02-\x05]"
IDS = b"w2v ids, format "  # near the end of an id file

SQLITE = rb"SQLite format 3\0"
PARQUET = rb"PAR1\x15"

_NOT_TEXT = {  # signature: what the file is, and what to do
    UTF_16: "UTF-16 or UTF-32: convert it to UTF-8, with iconv for instance",
    DOCUMENT: "an office document: save it as plain text, in UTF-8; of a spreadsheet, save the sheet as CSV",
    ZIP: "a zip archive: unpack it and give the text file in it",
    rb"\x1f\x8b\x08|BZh[1-9]1AY&SY|\xfd7zXZ\0|\x28\xb5\x2f\xfd": "compressed: unpack it first",
    rb"7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|(?s:.{257})ustar": "an archive: unpack it and give the text file in it",
    rb"%PDF-|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1|\{\\rtf": "a formatted document: save it as plain text",
    rb"\x7fELF|\x89PNG\r|\xff\xd8\xff|GIF8": "binary, not text",
    PARQUET: "a Parquet table, not text: name the column that holds the text with --column",
    b"|".join([NUMPY, HDF5, FASTTEXT, PICKLE, SQLITE]): "binary, not text",
}

PathLike = str | os.PathLike[str]
Errors = Literal["strict", "replace", "ignore"]  # how to treat bytes that are not UTF-8, as in bytes.decode


def as_paths(paths: PathLike | Iterable[PathLike]) -> list[PathLike]:
    """Return one path or several as a list."""
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


def is_nameable(path: PathLike) -> bool:
    """Whether a file can have this name: it has no zero character, and the system can encode it."""
    with suppress(UnicodeEncodeError):
        return b"\0" not in os.fsencode(path)
    return False


@contextmanager
def errors_named(path: PathLike, action: str = "read", hint: str = "") -> Iterator[None]:
    """Turn errors of the system in a `with` block into W2VError, "cannot read PATH: …"; also for impossible names."""
    if not is_nameable(path):
        raise W2VError(f"cannot {action} {one_line(os.fspath(path))!r:.60}: no file can have this name")
    try:
        yield
    except OSError as error:
        raise W2VError(
            f"cannot {action} {one_line(os.fspath(path))}: {error.strerror or one_line(error)}{hint}"
        ) from error


def open_regular(path: PathLike) -> io.BufferedReader:
    """Open a regular file for reading, without waiting for the writer of a pipe.

    Raises W2VError for a folder, and for a device or a pipe, which may have no end; OSError if the system does.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(file).st_mode
    if not stat.S_ISREG(mode):
        os.close(file)
        kind = "folder" if stat.S_ISDIR(mode) else "pipe" if stat.S_ISFIFO(mode) else "device"
        raise W2VError(f"cannot read {one_line(os.fspath(path))}: it is a {kind}")
    return os.fdopen(file, "rb")


@contextmanager
def atomic_write(path: PathLike, replace: bool = True, follow: bool = True, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a binary file for writing that appears under the name `path` only once it is complete and on the disk.

    While it is written, the file is unnamed or, where the system has no unnamed files, has a random temporary name, and
    nobody else may read it. If writing fails, nothing is left of it and an existing file at `path` is unchanged. The
    owner and mode of a replaced file are kept; a new one has `mode`, less the umask. Without `replace`, an existing
    file is an error. A symbolic link, device or pipe at `path` is written through, see `destination`. Without `follow`,
    what is there is replaced by a new file, which is safe for names that others can predict.

    Raises W2VError, naming the path, if the system reports an error.
    """
    with _draft(path, replace, follow, mode) as draft:
        yield draft.file
        draft.complete()
        draft.publish(replace)


@contextmanager
def atomic_write_together(paths: Sequence[PathLike], replace: bool = True) -> Iterator[list[BinaryIO]]:
    """Open files for writing, as `atomic_write` does, that are read together and so must be replaced together.

    All are complete before the first gets its name. If an error occurs, all old files are back under their names. The
    last file has no name while the others change, so a process that is killed meanwhile, or a power cut, leaves either
    all old files, all new ones, or no last file, never a mixture; the old files then have temporary names.
    """
    with ExitStack() as stack:
        drafts = [stack.enter_context(_draft(path, replace)) for path in paths]
        yield [draft.file for draft in drafts]
        for draft in drafts:
            draft.complete()
        regular = [draft for draft in drafts if draft.temporary]
        with _restored_after_errors(regular, replace) if len(regular) > 1 else nullcontext():
            for draft in drafts:
                draft.publish(replace)


@dataclass
class _Draft:
    """A file that is written before it gets its name.

    Attributes:
        path: the name it was opened by. target: the path it gets. file: open for writing.
        temporary: its path until then; None for a device or pipe, which is written through.
        unnamed: whether it has no name at all yet.
        old: the status of the file that it replaces, if there is one. mode: its permissions in the end.
    """

    path: PathLike
    target: Path
    file: BinaryIO
    temporary: Path | None = None
    unnamed: bool = False
    old: os.stat_result | None = None
    mode: int = 0

    def complete(self) -> None:
        """Bring the whole file to the disk, under its temporary name."""
        with errors_named(self.path, "write"):
            self.file.flush()
            if self.temporary is None:
                return
            _set_owner_and_mode(self.file, self.old, self.mode)
            os.fsync(self.file.fileno())
            if self.unnamed:
                _name(self.file, self.temporary, self.old, self.mode)

    def publish(self, replace: bool) -> None:
        """Give a complete file its name."""
        if self.temporary is None:
            return
        with errors_named(self.path, "write"):
            if replace:
                self.temporary.replace(self.target)
            else:
                _rename_unless_there(self.temporary, self.target)
            sync_folder(self.target.parent)


@contextmanager
def _draft(path: PathLike, replace: bool, follow: bool = True, mode: int = 0o666) -> Iterator[_Draft]:
    """Open a new file, as `atomic_write` describes. It is removed at the end unless it was published."""
    with errors_named(path, "write"):
        target, old = destination(path, replace) if follow else (Path(path), _status(path))
        if old and stat.S_ISDIR(old.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if old and not replace and stat.S_ISREG(old.st_mode):
            raise FileExistsError(errno.EEXIST, EXISTS)
        if not follow:
            old = None  # whoever put it there does not own the new file
        elif old and not stat.S_ISREG(old.st_mode):
            with os.fdopen(os.open(target, os.O_WRONLY), "wb") as file:  # O_CREAT is refused for others' pipes
                yield _Draft(path, target, file)
            return
        temporary = _hidden(target)
        creation_mode = 0o600 if old else mode
        unnamed = _unnamed(target.parent, creation_mode)
        try:
            with unnamed or _exclusive(temporary, creation_mode) as file:
                mode = (old or os.fstat(file.fileno())).st_mode & 0o777
                _set_mode(file, 0o600)
                yield _Draft(path, target, file, temporary, unnamed is not None, old, mode)
        except BaseException:
            with suppress(OSError):  # the first error says more
                temporary.unlink()
            raise


def _hidden(path: Path) -> Path:
    """A random path beside `path`. Names are limited in bytes, of which a character has at most four."""
    return path.with_name(f".{path.name[:20]}.{secrets.token_hex(8)}.tmp")


@contextmanager
def _restored_after_errors(drafts: list[_Draft], replace: bool) -> Iterator[None]:
    """Move the files that complete new ones `replace` out of their way; if the `with` block fails, bring them back.

    The last is moved first and comes back last, so that no other changes while it is there.
    """
    new = [(draft.target, os.lstat(draft.temporary)) for draft in reversed(drafts) if draft.temporary]
    old = [(target, _hidden(target)) for target, _ in new if replace]
    try:
        for target, hidden in old:
            with errors_named(target, "write"), suppress(FileNotFoundError):
                target.rename(hidden)
        for folder in {target.parent for target, _ in old}:
            with errors_named(folder, "write"):
                sync_folder(folder)
        yield
    except BaseException as error:
        try:
            for target, status in new:
                now = _status(target)
                if now and os.path.samestat(now, status):
                    target.unlink()
            for target, hidden in reversed(old):
                with suppress(FileNotFoundError):
                    hidden.rename(target)
        except OSError:
            moved = [f"{target} is now {hidden.name}" for target, hidden in old if os.path.lexists(hidden)]
            if moved and isinstance(error, W2VError):
                raise W2VError("; ".join([str(error), *moved])) from error
        raise
    for _, hidden in 2 * old:  # the second time, what the system would not remove the first time
        with suppress(OSError):
            hidden.unlink()


def destination(path: PathLike, replace: bool) -> tuple[Path, os.stat_result | None]:
    """The file that is written to under the name `path`, and its status; None if it does not exist.

    Symbolic links are followed. Raises W2VError for a link that another user put into a folder in which everyone may
    write and, without `replace`, for a pipe of another user, who could read from it or let us wait.
    """
    path = Path(path)
    target = _followed(path)
    info = _status(target)
    if info is None:
        with suppress(FileNotFoundError):  # an open pipe, as /dev/stdout or /dev/fd/63 may be: it has no name
            return path, path.stat()
    elif stat.S_ISFIFO(info.st_mode) and not replace and info.st_uid != os.geteuid():
        raise W2VError(f"{path} is a pipe of another user: name another output, or add --force to write to it")
    return target, info


def _followed(path: Path) -> Path:
    """The path of a file without symbolic links and "..". Raises W2VError for a link as in `destination`."""
    with suppress(FileNotFoundError):
        path.stat()  # raises OSError for a circle of links
    found, parts = Path("/"), list(path.absolute().parts[:0:-1])
    while parts:
        part = parts.pop()
        step = found.parent if part == ".." else found / part
        if not step.is_symlink():
            found = step
            continue
        folder, owner = found.stat(), step.lstat().st_uid
        everyones = folder.st_mode & (stat.S_ISVTX | stat.S_IWOTH)
        if everyones and owner not in (os.geteuid(), folder.st_uid, 0):
            raise W2VError(f"cannot write {path}: {step} is a link of another user: name the file it leads to")
        there = step.readlink()
        found = Path("/") if there.is_absolute() else found
        parts += [part for part in reversed(there.parts) if part != "/"]
    return found


def _status(path: PathLike) -> os.stat_result | None:
    """The status of the file, folder or symbolic link of this name, or None."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def is_own(descriptor: int, others: int) -> bool:
    """Whether an open file belongs to this user, and its mode gives others none of the permissions `others`."""
    status = os.fstat(descriptor)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & others


def temporary_folder(folder: PathLike | None = None) -> Path:
    """`folder` or, if it is None, that of the system. Raises W2VError if no folder of the system can be written to."""
    try:
        return Path(tempfile.gettempdir() if folder is None else folder)
    except FileNotFoundError:
        raise W2VError(
            "no folder for temporary files can be written to: name one with the variable TMPDIR, or with --cache"
        ) from None


def _unnamed(folder: Path, mode: int) -> BinaryIO | None:
    """An unnamed new file, which vanishes even if the process is killed; None where the system has no such files."""
    with suppress(OSError, AttributeError):  # only Linux has them, on most file systems
        return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_RDWR, mode), "w+b")
    return None


def _exclusive(path: Path, mode: int = 0o600) -> BinaryIO:
    """A new file. Raises FileExistsError if there is a file or link of this name."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR, mode), "w+b")


def _set_mode(file: BinaryIO, mode: int) -> None:
    with suppress(OSError):  # a file system without modes
        os.fchmod(file.fileno(), mode)


def _set_owner_and_mode(file: BinaryIO, old: os.stat_result | None, mode: int) -> None:
    """Give a complete file its mode, and the owner and group of the file that it replaces."""
    now = os.fstat(file.fileno())
    if old and (old.st_uid, old.st_gid) != (now.st_uid, now.st_gid):
        try:
            os.fchown(file.fileno(), old.st_uid, old.st_gid)
        except OSError:
            if old.st_gid != now.st_gid:
                mode &= ~0o070  # the permissions of the old group are not for another
    _set_mode(file, mode)


def _name(file: BinaryIO, path: Path, old: os.stat_result | None, mode: int) -> None:
    """Give an unnamed file a name."""
    try:
        folder = os.open(path.parent, getattr(os, "O_PATH", os.O_RDONLY))  # a folder may be writable, but not readable
        try:  # os.link follows the link in /proc, as needed here, only if it is given a folder's descriptor
            os.link(f"/proc/self/fd/{file.fileno()}", path.name, dst_dir_fd=folder)
        finally:
            os.close(folder)
    except OSError:  # no /proc, or a file system without links
        file.seek(0)
        with _exclusive(path) as copy:
            shutil.copyfileobj(file, copy)
            copy.flush()
            _set_owner_and_mode(copy, old, mode)
            os.fsync(copy.fileno())


def sync_folder(folder: Path) -> None:
    """Make a renaming in a folder reach the disk, if the system can; the file's content is already on it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # it is writable, but not readable
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot sync folders
            raise
    finally:
        os.close(descriptor)


@contextmanager
def unchanged(name: object, file: IO[bytes], info: os.stat_result | None = None) -> Iterator[None]:
    """Raise W2VError at the end of a `with` block that raises no error, if a file changed since its status was `info`.

    `info` is by default the status at the beginning. Only regular files are compared.
    """
    try:
        info = info or os.fstat(file.fileno())
    except io.UnsupportedOperation:  # the file is not one of the operating system
        info = None
    yield
    if info is None or not stat.S_ISREG(info.st_mode):
        return
    now = os.fstat(file.fileno())
    if (info.st_size, info.st_mtime_ns) != (now.st_size, now.st_mtime_ns):
        raise W2VError(
            f"{name} changed while it was read: it had {info.st_size:,} bytes, and has {now.st_size:,} now; try again "
            "when nothing writes to it"
        )


@contextmanager
def unchanged_files(path: PathLike) -> Iterator[Callable[[Iterable[PathLike]], None]]:
    """Raise W2VError if a file is changed or replaced within a `with` block, also in place of an error of the block.

    Yields a function that adds more files to the one at `path`, before they are read.
    """
    found = {path: _version(path)}

    def watch(paths: Iterable[PathLike]) -> None:
        found.update((path, _version(path)) for path in paths)

    def check(error: Exception | None = None) -> None:
        for name, version in found.items():
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
    """What differs between a file and one that replaces it, and before and after a change; () if there is none."""
    try:
        info = Path(path).stat()
    except (OSError, ValueError):  # ValueError: no file can have this name
        return ()
    is_folder = stat.S_ISDIR(info.st_mode)  # whose files are compared instead
    return (info.st_dev, info.st_ino, *(() if is_folder else (info.st_size, info.st_mtime_ns)))


def _rename_unless_there(temporary: Path, target: Path) -> None:
    """Rename `temporary` to `target`. Raises FileExistsError if `target` exists."""
    try:
        target.hardlink_to(temporary)  # unlike renaming, linking never replaces a file
    except OSError as error:  # the file exists now, or the file system has no hard links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, EXISTS) from error
        temporary.replace(target)
    else:
        temporary.unlink()


def text_start(path: object, head: bytes) -> bytes:
    """Strip the byte order mark from `head`, the first SIGNATURE_BYTES or more of a text file (or all of it).

    Raises W2VError if a signature shows that the file is not UTF-8 text.
    """
    for pattern, kind in _NOT_TEXT.items():
        if re.match(pattern, head):
            raise W2VError(f"{path} is {kind}")
    return head.removeprefix(BYTE_ORDER_MARK)


@contextmanager
def atomic_folder(path: PathLike) -> Iterator[Path]:
    """A new folder that appears under the name `path` only once a `with` block has filled it.

    Raises W2VError, naming the path, if the system reports an error or something has this name: a folder is never
    replaced, since it may hold more than was written to it.
    """
    with errors_named(path, "write"):
        target = Path(path)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "it is there already; name another folder")
        temporary = _hidden(target)
        temporary.mkdir()
        try:
            yield temporary
            temporary.rename(target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_folder(target.parent)
