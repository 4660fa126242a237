"""Which files a path, folder or pattern names, and which strings look like paths."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from w2v.errors import W2VError, one_line
from w2v.system.files import PathLike, errors_named, is_nameable

MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4095  # longer strings are no paths
CACHE_SUFFIX = ".w2v-ids"  # of id files, which are not read as text


def looks_like_path(text: object) -> bool:
    """Return True for a string of ASCII characters with a separator of folders and no space, or with an extension."""
    if not isinstance(text, str) or not text.isascii() or not _is_short(text):
        return False
    has_extension = re.search(r"[^\s.]\.[A-Za-z]\w{0,8}\Z", text) is not None
    return has_extension or (os.sep in text and len(text.split()) == 1)


def _is_short(text: str) -> bool:
    """Whether a string is short enough for a path."""
    name = os.fsencode(text) if is_nameable(text) else b""
    return len(name) <= MAX_PATH_BYTES and max(map(len, name.split(b"/"))) <= MAX_NAME_BYTES


def named_files(path: PathLike) -> list[str]:
    """The files that a path names, each once."""
    found: dict[tuple[int, int] | str, str] = {}
    if not _is_short(name := os.fspath(path)):
        raise W2VError(f"{one_line(name[:60])!r}… is too long for a path{_hint(path)}")
    with errors_named(path):
        for file in _matches(path):
            found.setdefault(_identity(file), file)
    return list(found.values())


def _identity(file: str) -> tuple[int, int] | str:
    """Device and inode of a file, or its name if it does not exist."""
    try:
        info = Path(file).stat()
    except (OSError, ValueError):
        return file
    return info.st_dev, info.st_ino


def _matches(path: PathLike) -> list[str]:
    """The files that a path names, in order; those with several names may appear several times."""
    name = os.fspath(path)
    if name == "-":
        return [name]
    if not name:
        raise W2VError("the path of a corpus is empty")
    if Path(name).is_dir():
        files = [file for file in sorted(_walk(name)) if file.is_file() or not file.exists()]
        if not files:
            raise W2VError(f"folder {name} holds no files to read")
        return [str(file) for file in files]
    if not os.path.lexists(name) and glob.has_magic(name):
        matches = sorted(match for match in _glob(name) if not match.endswith(CACHE_SUFFIX))
        if not matches:
            raise W2VError(f"no file matches {name}")
        return [file for match in matches for file in _matches(match)]
    return [name]


def _glob(pattern: str) -> set[str]:
    """The paths that match a pattern. Unlike in glob, ** does not follow links, which may form a cycle."""
    found = {""}
    for part in re.split(r"((?<![^/])\*\*(?:/+|\Z))", pattern):
        if part == "**":  # at the end: the content of the folders
            found = {start or os.curdir for start in found}
        elif part.rstrip("/") == "**":
            roots = (root for start in found for root, _ in _folders(start or os.curdir))
            found = {os.path.join(root, "").removeprefix("./") for root in roots}  # noqa: PTH118
        elif part:
            # Path.glob refuses absolute patterns
            found = {match for start in found for match in glob.glob(glob.escape(start) + part)}  # noqa: PTH207
    return {path or os.curdir for path in found}


def _walk(folder: str) -> Iterator[Path]:
    for root, files in _folders(folder):
        yield from (Path(root, name) for name in files if not name.startswith(".") and not name.endswith(CACHE_SUFFIX))


def _folders(folder: str) -> Iterator[tuple[str, list[str]]]:
    """A folder and those in it at any depth, without hidden ones and links, each with the names of its files."""

    def fail(error: OSError) -> None:
        raise W2VError(f"cannot read folder {error.filename}: {error.strerror}") from error

    for root, folders, files in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield root, files


def regular(file: str, given: PathLike) -> os.stat_result | None:
    """The status of a file that can be read again; None for standard input, pipes and devices.

    `given` is the path of a user's that names it.
    """
    if file == "-":
        return None
    hint = _hint(given) if file == given else ""  # not for a file in a folder
    with errors_named(file):
        try:
            info = Path(file).stat()
        except FileNotFoundError:
            raise W2VError(f"corpus file {file!r} does not exist{hint}") from None
    if not os.access(file, os.R_OK):
        raise W2VError(f"cannot read {file}: permission denied")
    return info if stat.S_ISREG(info.st_mode) else None


def _hint(path: PathLike) -> str:
    """What to write in Python for a single string that may be a text; the command line gives Path objects."""
    if not isinstance(path, str) or looks_like_path(path):
        return ""
    return "; a single string is a path: for one text, give [text]"
