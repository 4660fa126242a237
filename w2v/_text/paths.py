"""Find the files that a path, folder or pattern names, and recognise strings that look like paths."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from w2v._errors import W2VError
from w2v._system.files import PathLike, is_nameable, translate_os_errors

MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4095  # limits of Linux for a file name and for a path
SEPARATORS = {os.sep, os.altsep or os.sep}  # Windows has two
CACHE_SUFFIX = ".w2v-ids"  # the extension of id files, which are not read as text
# Names of files and folders that Spark and Delta Lake write for their own use.
SPARK_NAME = re.compile(
    r"_(SUCCESS|metadata|common_metadata|temporary|spark_metadata|delta_log|(started|committed)_\d+)"
)


def looks_like_path(text: object) -> bool:
    """Return True for an ASCII string that ends in a file extension, or that has a slash and no white space."""
    if not isinstance(text, str) or not text.isascii() or not _is_short(text):
        return False
    has_extension = re.search(r"[^\s.]\.[A-Za-z]\w{0,8}\Z", text) is not None
    return has_extension or (not SEPARATORS.isdisjoint(text) and len(text.split()) == 1)


def _is_short(text: str) -> bool:
    """Return True if a string is short enough for a path."""
    name = os.fsencode(text.replace(os.sep, "/")) if is_nameable(text) else b""
    return len(name) <= MAX_PATH_BYTES and max(map(len, name.split(b"/"))) <= MAX_NAME_BYTES


def named_files(path: PathLike) -> list[str]:
    """Return the files that a path, folder or pattern names, each only once.

    Raises:
        W2VError: If it names no file, or if a folder cannot be read.
    """
    files: dict[tuple[int, int] | str, str] = {}
    if not _is_short(name := os.fspath(path)):
        raise W2VError(f"{name[:60]!r}… is too long for a path{_hint(path)}")
    with translate_os_errors(path):
        for file in _matches(path):
            files.setdefault(_identity(file), file)
    return list(files.values())


def _identity(file: str) -> tuple[int, int] | str:
    """Return the device and inode of a file, or its name if it does not exist."""
    try:
        info = Path(file).stat()
    except (OSError, ValueError):
        return file
    return info.st_dev, info.st_ino


def _matches(path: PathLike) -> list[str]:
    """Return the files that a path names, in order. A file with several names may appear several times."""
    name = os.fspath(path)
    if name == "-":
        return [name]
    if not name:
        raise W2VError("the path of a corpus is empty")
    if Path(name).is_dir():
        named = (Path(root, file) for root, files in _walk(name) for file in files if _is_content(file))
        files = sorted(file for file in named if not file.name.endswith(CACHE_SUFFIX))
        # Keep broken links, so that reading them reports an error.
        files = [file for file in files if file.is_file() or not file.exists()]
        if not files:
            raise W2VError(f"folder {name} contains no files to read")
        return [str(file) for file in files]
    if not os.path.lexists(name) and glob.has_magic(name):
        matches = sorted(match for match in _glob(name) if not match.endswith(CACHE_SUFFIX))
        if not matches:
            raise W2VError(f"no file matches {name}")
        return [file for match in matches for file in _matches(match)]
    return [name]


def _glob(pattern: str) -> set[str]:
    """Return the paths that match a pattern. Unlike in glob, ** does not follow links, since these may form a cycle."""
    paths = {""}
    for part in re.split(r"((?<![^/])\*\*(?:/+|\Z))", pattern.replace(os.sep, "/")):
        if part == "**":  # at the end of a pattern: return the folders, since reading them includes their subfolders
            paths = {start or os.curdir for start in paths}
        elif part.rstrip("/") == "**":
            roots = (root for start in paths for root, _ in _walk(start or os.curdir))
            here = os.path.join(os.curdir, "")  # noqa: PTH118
            paths = {os.path.join(root, "").removeprefix(here) for root in roots}  # noqa: PTH118
        elif part:
            # Path.glob refuses absolute patterns
            paths = {match for start in paths for match in glob.glob(glob.escape(start) + part)}  # noqa: PTH207
    return {path.replace("/", os.sep) or os.curdir for path in paths}


def _walk(folder: str) -> Iterator[tuple[str, list[str]]]:
    """Yield a folder and its subfolders at any depth, each with its file names.

    Hidden folders, folders of Spark and links are left out.
    """

    def fail(error: OSError) -> None:
        raise W2VError(f"cannot read folder {error.filename}: {error.strerror}") from error

    for root, folders, files in os.walk(folder, onerror=fail):
        folders[:] = filter(_is_content, folders)
        yield root, files


def _is_content(name: str) -> bool:
    """Return False for the names of hidden files and folders, and of files that Spark writes for its own use."""
    return not name.startswith(".") and not SPARK_NAME.fullmatch(name)


def regular_file_status(file: str, path: PathLike) -> os.stat_result | None:
    """Return the status of a regular file; None for standard input, pipes and devices, which can be read only once.

    Args:
        file: The path of the file.
        path: The user's argument that names the file; it may be a folder or pattern.

    Raises:
        W2VError: If the file cannot be read.
    """
    if file == "-":
        return None
    hint = _hint(path) if file == path else ""  # only the user's own argument can be a text given by mistake
    with translate_os_errors(file):
        try:
            info = Path(file).stat()
        except FileNotFoundError:
            raise W2VError(f"corpus file {file!r} does not exist{hint}") from None
    if not os.access(file, os.R_OK):
        raise W2VError(f"cannot read {file}: permission denied")
    return info if stat.S_ISREG(info.st_mode) else None


def _hint(path: PathLike) -> str:
    """Return advice for Python users who passed one text as a string. The command line passes Path objects."""
    if not isinstance(path, str) or looks_like_path(path):
        return ""
    return "; a single string is a path: for one text, give [text]"
