"""The table of formats of vector files.

Files are written in the format of their extension, and recognised by their content when they are read.
"""

from __future__ import annotations

import glob
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, get_args

from w2v.detect import is_native
from w2v.errors import SettingsError, W2VError
from w2v.formats import arrow, fasttext, gensim, native, npy, spacy, spark, sqlite, static, tsv, word2vec
from w2v.formats.row_blocks import is_compressed, open_unpacked, read_head
from w2v.formats.storage import FileStorage
from w2v.formats.vector_file import NGRAM_TENSORS, SUBWORD_VIEW, VectorFile, view_prefix
from w2v.formats.word_lists import LINE_SEPARATORS
from w2v.progress import Report
from w2v.system.files import FASTTEXT, NUMPY, SQLITE, Errors, PathLike, check_files_unchanged, translate_os_errors
from w2v.text.words import Words

log = logging.getLogger("w2v")

EVERYTHING = ("*",)
KEY_TYPE = "key_type"
COUNTS, OUTPUTS, SUBWORDS = ("counts",), ("outputs",), (*NGRAM_TENSORS, "subwords")
VIEW = view_prefix("{}").rstrip(".")  # the name of all tensors of a view, as one part of a file

# What `describe_lost_parts` calls a part.
PART_LABELS = {
    **{name: name for name in ("counts", "settings", "metrics", "scores")},
    **dict.fromkeys(SUBWORDS, "n-grams"),
    "inputs": "input rows",
    "loss_by_epoch": "losses by epoch",
    "text": "text options",
    "gensim": "settings",
    "coordinates": "coordinates",
    "others": "other texts",
    gensim.INT_KEYS: "integer keys",
}


class Format(NamedTuple):
    """A format of vector files.

    Attributes:
        name: The name that `w2v info` shows.
        extensions: A file with one of these extensions is written in this format.
        matches: Called with (path, first bytes); returns True if the file has this format. detect_format also requires
            that the file with the words exists, if `words_suffix` is set.
        read: Called with (path, errors, limit, progress); may read more rows than `limit`.
        write: Called with (path, content, replace, progress); atomic. None for a format that w2v only reads.
        stores: Names of the parts that it stores in addition to words and vectors; see VectorFile.
        words_suffix: The suffix of a second file with the words. It replaces the extension. Empty if there is no such
            file.
        folder: True if the vectors are stored as a folder.
        array_pattern: A glob pattern, appended to the file name, for further files with arrays.
        extra_suffixes: Suffixes, appended to the file name, of further files such as SQLite journals. When
            `write` replaces a file, it removes them, too.
        compressible: True if compressed files can be read, too.
        storages: The types that it can store vectors in.
        separators: ASCII characters that no word may contain.
    """

    name: str
    extensions: tuple[str, ...]
    matches: Callable[[PathLike, bytes], bool]
    read: Callable[[PathLike, Errors | None, int | None, Report | None], VectorFile]
    write: Callable[[PathLike, VectorFile, bool, Report | None], None] | None
    stores: tuple[str, ...] = ()
    words_suffix: str = ""
    folder: bool = False
    array_pattern: str = ""
    extra_suffixes: tuple[str, ...] = ()
    compressible: bool = False
    storages: tuple[FileStorage, ...] = ("float32",)
    separators: bytes = b""

    def companion_files(self, path: Path) -> list[Path]:
        """Return the files that belong to the vector file at `path`, without `path` itself.

        The file with the words is listed even if it does not exist.
        """
        if self.folder:
            return [file for file in path.rglob("*") if file.is_file()]
        if self.words_suffix:
            return [path.with_suffix(self.words_suffix)]
        return sorted(path.parent.glob(glob.escape(path.name) + self.array_pattern)) if self.array_pattern else []


def _has_signature(pattern: bytes) -> Callable[[PathLike, bytes], bool]:
    """Return a function that tests whether the first bytes of a file match `pattern`."""
    return lambda path, head: bool(re.match(pattern, head))


def _has_files(*names: str) -> Callable[[PathLike, bytes], bool]:
    """Return a function that tests whether a path is a folder with these entries.

    Readers refuse entries that are not regular files.
    """
    return lambda path, head: all((Path(path) / name).exists() for name in names)


# The first match wins: .ft.bin is listed before .bin, and the formats that match any text are last.
FORMATS = (
    Format(
        "native", (".safetensors",), lambda path, head: is_native(head), native.read, native.write, EVERYTHING,
        storages=get_args(FileStorage),
    ),
    Format(
        "fasttext", (".ft.bin",), _has_signature(FASTTEXT), fasttext.read, fasttext.write,
        COUNTS + OUTPUTS + SUBWORDS + (VIEW.format(SUBWORD_VIEW),),
        compressible=True,
    ),
    Format(
        "gensim", (".model", ".kv"), _has_signature(gensim.SIGNATURE), gensim.read, None, COUNTS + OUTPUTS + SUBWORDS,
        array_pattern=".*.npy",
    ),
    Format(
        "arrow", (".parquet", ".arrow"), _has_signature(arrow.SIGNATURE), arrow.read, arrow.write, (*COUNTS, KEY_TYPE)
    ),
    Format(
        "sqlite", (".db", ".sqlite"), _has_signature(SQLITE), sqlite.read, sqlite.write, COUNTS,
        extra_suffixes=sqlite.JOURNAL_SUFFIXES,
    ),
    Format(
        "numpy", (".npy",), _has_signature(NUMPY), npy.read, npy.write, words_suffix=npy.WORDS_SUFFIX,
        storages=("float32", "f16"), separators=LINE_SEPARATORS,
    ),
    # Recognised by extension only, since many text files hold nothing but numbers.
    Format(
        "projector", (".tsv",), lambda path, head: Path(path).suffix.lower() == ".tsv", tsv.read, tsv.write, COUNTS,
        words_suffix=tsv.WORDS_SUFFIX, separators=LINE_SEPARATORS,
    ),
    Format(
        "static embeddings", (".model2vec",), _has_files(static.MATRIX, static.TOKENIZER), static.read, static.write,
        folder=True,
    ),
    Format(
        "spacy", (".spacy",), _has_files("vocab/vectors", "vocab/key2row", "vocab/strings.json"), spacy.read,
        spacy.write, folder=True,
    ),
    Format("spark", (".spark",), spark.matches, spark.read, spark.write, folder=True),
    Format(
        "word2vec binary", (".bin", ".bin.gz"), word2vec.is_binary, word2vec.read,
        partial(word2vec.write, binary=True), compressible=True, separators=word2vec.SEPARATORS,
    ),
    Format(
        "glove", (".glove.txt", ".glove.txt.gz"), word2vec.lacks_text_header, word2vec.read,
        partial(word2vec.write, binary=False, header=False), compressible=True, separators=word2vec.SEPARATORS,
    ),
    Format(
        "word2vec text", (".txt", ".vec", ".txt.gz", ".vec.gz"), word2vec.has_text_header, word2vec.read,
        partial(word2vec.write, binary=False), compressible=True, separators=word2vec.SEPARATORS,
    ),
)  # fmt: skip
WRITABLE = [fmt for fmt in FORMATS if fmt.write]


def describe_formats() -> str:
    """Return a line with the extensions and the name of each format that can be written."""
    extensions = [" ".join(fmt.extensions) for fmt in WRITABLE]
    width = max(map(len, extensions))
    return "\n".join(f"  {each:{width}}  {fmt.name}" for each, fmt in zip(extensions, WRITABLE, strict=True))


def format_for(path: PathLike) -> Format:
    """Return the format of a new file with this name.

    Raises:
        SettingsError: If the extension is unknown.
    """
    name = Path(path).name.lower()
    for fmt in WRITABLE:
        if name.endswith(fmt.extensions):
            return fmt
    read_only = next((fmt for fmt in FORMATS if name.endswith(fmt.extensions)), None)
    known = ", ".join(extension for fmt in WRITABLE for extension in fmt.extensions)
    reason = f"w2v reads {read_only.name} files, but cannot write them" if read_only else "unknown extension"
    raise SettingsError(f"{path}: {reason}: use one of {known}")


def check_storage(path: PathLike, storage: FileStorage) -> None:
    """Raise SettingsError if the format of a file of this name cannot store vectors in this type."""
    if storage not in format_for(path).storages:
        known = [fmt.extensions[0] for fmt in WRITABLE if storage in fmt.storages]
        raise SettingsError(f"{path}: this format cannot store {storage}: use {' or '.join(known)}")


def check_words(path: PathLike, words: Words) -> None:
    """Raise W2VError if the format of a file of this name cannot store one of the words."""
    separators = format_for(path).separators
    if separators and words.contain_any(separators):
        word = next(word for word in words if any(each in word for each in separators.decode()))
        raise W2VError(
            f"{path}: this format cannot store the white space in {word[:60]!r}: use .safetensors or .parquet"
        )


def detect_format(path: PathLike) -> Format:
    """Return the format of a file by its content.

    Raises:
        W2VError: If the file cannot be read or is not a vector file.
    """
    with translate_os_errors(path):
        for fmt in FORMATS:
            if fmt.folder and fmt.matches(path, b""):
                return fmt
        with open_unpacked(path) as (file, _):
            head, is_packed = read_head(path, file), is_compressed(file)
        matching = (fmt for fmt in FORMATS if not fmt.folder and fmt.matches(path, head))
        fmt = next(
            fmt for fmt in matching if not fmt.words_suffix or Path(path).with_suffix(fmt.words_suffix).is_file()
        )
    if is_packed and not fmt.compressible:
        raise W2VError(f"{path}: a compressed {fmt.extensions[0]} file: unpack it first")
    return fmt


@contextmanager
def watch_format(path: PathLike) -> Iterator[Format]:
    """Yield the format of a file, for a `with` block that reads it.

    Raises:
        W2VError: If the file is not a vector file, or if one of its files is changed or replaced within the block, so
            that the block may have read a mixture of two models.
    """
    with check_files_unchanged(path) as watch:
        fmt = detect_format(path)
        watch(fmt.companion_files(Path(path)))
        yield fmt


def all_files(path: PathLike) -> list[Path]:
    """Return the paths of a vector file and of the other files that belong to it.

    Raises:
        W2VError: If the file is not a vector file.
    """
    return [Path(path), *detect_format(path).companion_files(Path(path))]


def companion_files_to_write(path: PathLike) -> list[Path]:
    """Return the other files that writing a file of this name creates or removes.

    Raises:
        SettingsError: If the extension is unknown.
    """
    fmt = format_for(path)
    written = [Path(path).with_suffix(fmt.words_suffix)] if fmt.words_suffix else []
    return [*written, *filter(os.path.lexists, (Path(f"{path}{suffix}") for suffix in fmt.extra_suffixes))]


def part_names(content: VectorFile) -> list[str]:
    """Return the names of the parts of the content other than words and vectors."""
    counts = [] if content.counts is None else ["counts"]
    views = {view_prefix(name): VIEW.format(name) for name in content.header.views}
    tensors = [
        next((view for prefix, view in views.items() if name.startswith(prefix)), name) for name in content.tensors
    ]
    fields = [name for name in content.header.non_empty_fields if name not in ("views", "ngram_offset", "key_type")]
    return [*counts, *dict.fromkeys(tensors), *fields]


def lost_parts(path: PathLike, content: VectorFile) -> list[str]:
    """Return the names of the parts that a file of this name would not store.

    Raises:
        SettingsError: If the extension is unknown.
    """
    stored = format_for(path).stores
    if stored == EVERYTHING:
        return []
    if "inputs" in content.tensors:  # output rows belong to input rows, which these formats do not store
        stored = tuple(name for name in stored if name not in OUTPUTS)
    return [name for name in part_names(content) if name not in stored]


def describe_lost_parts(path: PathLike, before: VectorFile, after: VectorFile) -> list[str]:
    """Return labels for the parts of `before` that are lost if `after` is written to `path`.

    Raises:
        SettingsError: If the extension is unknown.
    """
    stored = {*part_names(after)} - {*lost_parts(path, after)}
    names = [name for name in part_names(before) if name not in stored]
    labels = PART_LABELS | {VIEW.format(name): f"view of {name}" for name in before.header.views}
    # All other names are parameters of a loss.
    return list(dict.fromkeys(labels.get(name, "output layer") for name in names))


def vector_size_in(path: PathLike, content: VectorFile) -> int:
    """Return the number of values of a vector in a file of this name with this content.

    Raises:
        SettingsError: If the extension is unknown.
    """
    if content.header.views and format_for(path).write is fasttext.write:
        content = content.view(SUBWORD_VIEW, path)
    return int(content.vectors.shape[1])


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a vector file atomically, in the format of its extension.

    Only the native format stores all counts, tensors and the header.

    Args:
        path: The file or folder to write.
        content: The content.
        replace: Whether an existing file is replaced. Folders are never replaced.
        progress: Called in phase "save".

    Raises:
        SettingsError: If the extension is unknown.
        W2VError: If the format cannot store the content, if the file cannot be written, or if it exists and `replace`
            is false.
    """
    fmt = format_for(path)
    write = fmt.write
    assert write
    if content.header.key_type == "int" and not {KEY_TYPE, *EVERYTHING} & {*fmt.stores}:
        log.warning("%s: the keys, which are numbers, become text: .safetensors and .parquet keep numbers", path)
    write(path, content, replace, progress)


def read(
    path: PathLike,
    mmap: bool = False,
    errors: Errors | None = "strict",
    limit: int | None = None,
    progress: Report | None = None,
) -> VectorFile:
    """Read a vector file of any format, plain or compressed, recognised by its content.

    Args:
        path: The file or folder.
        mmap: Return read-only arrays that are read from disk when they are used. Only their sizes and the word offsets
            are checked. This works for the native format only.
        errors: How to decode words that are not UTF-8, as in bytes.decode. With None, words are not checked.
        limit: The number of rows to read from the start, or None for all.
        progress: Called in phase "load".

    Raises:
        W2VError: If the file is missing, truncated, inconsistent, in an unknown format or changed while it was read, or
            if it contains NaN or infinite values, or a word twice.
    """
    with watch_format(path) as fmt:
        if mmap and fmt.read is not native.read:
            raise W2VError(
                f"{path}: only .safetensors files can be memory-mapped: convert this file with `w2v convert`"
            )
        content = native.read_mapped(path) if mmap else fmt.read(path, errors, limit, progress)
    return content if limit is None else content.head(limit)
