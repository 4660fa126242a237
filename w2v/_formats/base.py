"""What a format of vector files is. Each module with a format declares it as a `Format`; `registry` finds them all."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from w2v._formats.storage import FileStorage
from w2v._formats.vector_file import NGRAM_TENSORS, VectorFile, check_content, validate
from w2v._progress import Report
from w2v._system.files import Errors, PathLike
from w2v._text.encodings import UTF_8

Matches = Callable[[PathLike, bytes], bool]
EVERYTHING = ("*",)
SUBWORDS = (*NGRAM_TENSORS, "subwords")


@dataclass(frozen=True)
class Format:
    """A format of vector files.

    Another package adds a format with an entry point in the group "w2v.formats" that names its `Format`.

    Attributes:
        name: The name that `w2v info` shows.
        extensions: A file with one of these extensions is written in this format.
        order: Formats are asked whether they match, and listed in help, in this order. Formats of other packages
            follow.
        matches: Called with (path, first bytes); returns True if the file has this format. `detect_format` also
            requires that the file with the words exists, if `words_suffix` is set.
        read: Called with (path, limit, progress); may read more rows than `limit`. `load` checks what it returns.
        write: Called with (path, content, replace, progress) and content that `save` has checked; atomic. None for a
            format that w2v only reads.
        read_mapped: Called with a path; returns content that is mapped into memory. None if that is not possible.
        is_checked: True if `read` itself refuses all content that `load` would refuse, except for words.
        stores: Names of the parts that it stores in addition to words and vectors; see VectorFile.
        view: The view that it stores of a model with several, or "" for their concatenated vectors.
        words_suffix: The suffix of a second file with the words. It replaces the extension. Empty if there is no such
            file.
        folder: True if the vectors are stored as a folder.
        array_pattern: A glob pattern, appended to the file name, for further files with arrays.
        extra_suffixes: Suffixes, appended to the file name, of further files such as SQLite journals. When
            `write` replaces a file, it removes them, too.
        compressible: True if compressed files can be read, too.
        storages: The types that it can store vectors in.
        for_classifiers: True if it stores only classifiers, not word vectors.
        separators: ASCII characters that no word may contain.
    """

    name: str
    extensions: tuple[str, ...]
    order: int
    matches: Matches
    read: Callable[[PathLike, int | None, Report | None], VectorFile]
    write: Callable[[PathLike, VectorFile, bool, Report | None], None] | None
    read_mapped: Callable[[PathLike], VectorFile] | None = None
    is_checked: bool = False
    stores: tuple[str, ...] = ()
    view: str = ""
    words_suffix: str = ""
    folder: bool = False
    array_pattern: str = ""
    extra_suffixes: tuple[str, ...] = ()
    compressible: bool = False
    storages: tuple[FileStorage, ...] = ("float32",)
    for_classifiers: bool = False
    separators: bytes = b""

    def load(
        self,
        path: PathLike,
        errors: Errors | None = "strict",
        limit: int | None = None,
        progress: Report | None = None,
        encoding: str = UTF_8,
    ) -> VectorFile:
        """Read a file of this format and check its content. The arguments are as in `registry.read`.

        Raises:
            W2VError: If the file cannot be read, or its content is inconsistent.
        """
        return validate(path, self.read(path, limit, progress), errors, encoding, self.is_checked)

    def save(self, path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
        """Write a file of this format atomically. The arguments are as in `registry.write`.

        Raises:
            W2VError: If `load` would refuse the content, or if the file cannot be written.
        """
        assert self.write
        check_content(path, content)
        self.write(path, content, replace, progress)

    def companion_files(self, path: Path) -> list[Path]:
        """Return the files that belong to the vector file at `path`, without `path` itself.

        The file with the words is listed even if it does not exist.
        """
        if self.folder:
            return [file for file in path.rglob("*") if file.is_file()]
        if self.words_suffix:
            return [path.with_suffix(self.words_suffix)]
        return sorted(path.parent.glob(glob.escape(path.name) + self.array_pattern)) if self.array_pattern else []


def has_signature(pattern: bytes) -> Matches:
    """Return a function that tests whether the first bytes of a file match `pattern`."""
    return lambda path, head: bool(re.match(pattern, head))


def has_files(*names: str) -> Matches:
    """Return a function that tests whether a path is a folder with these entries.

    Readers refuse entries that are not regular files.
    """
    return lambda path, head: all((Path(path) / name).exists() for name in names)
