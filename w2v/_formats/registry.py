"""The registry of the formats of vector files, and how a file of any format is read and written.

Files are written in the format of their extension, and recognised by their content when they are read.
"""

from __future__ import annotations

import logging
import os
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from w2v import _formats as formats
from w2v._errors import SettingsError, W2VError, one_line
from w2v._formats.base import EVERYTHING, SUBWORDS, Format
from w2v._formats.header import INT_KEYS
from w2v._formats.row_blocks import is_compressed, open_unpacked, read_head
from w2v._formats.storage import FileStorage
from w2v._formats.vector_file import VectorFile, view_prefix
from w2v._progress import Report
from w2v._system.files import Errors, PathLike, check_files_unchanged, translate_os_errors
from w2v._text.encodings import UTF_8
from w2v._text.words import Words

log = logging.getLogger("w2v")

ENTRY_POINTS = "w2v.formats"  # the group of the formats of other packages
VIEW = view_prefix("{}").rstrip(".")  # the name of all tensors of a view, as one part of a file

# What `describe_lost_parts` calls a part.
PART_LABELS = {
    **{name: name for name in ("counts", "settings", "metrics", "scores")},
    **dict.fromkeys(SUBWORDS, "n-grams"),
    **dict.fromkeys(("labels", "label_offsets", "label_counts", "text_ngrams", "text_buckets", "idf"), "classifier"),
    **dict.fromkeys(("documents", "tags", "tag_offsets"), "documents"),
    "inputs": "input rows",
    "loss_by_epoch": "losses by epoch",
    "text": "text options",
    "gensim": "settings",
    "coordinates": "coordinates",
    "others": "other texts",
    INT_KEYS: "integer keys",
}


@cache
def own_formats() -> list[Format]:
    """Return the formats that the modules of this package declare, in their order."""
    modules = [import_module(f"{formats.__name__}.{found.name}") for found in pkgutil.iter_modules(formats.__path__)]
    declared = {id(each): each for module in modules for each in vars(module).values() if isinstance(each, Format)}
    return sorted(declared.values(), key=lambda each: each.order)


@cache
def other_formats() -> list[Format]:
    """Return the formats of other packages. A format is left out, with a warning, if it is like one that is known."""
    found: list[Format] = []
    for point in entry_points(group=ENTRY_POINTS):
        try:
            other = point.load()
        except Exception as error:  # any code can be behind an entry point
            log.warning(
                "the format %s is left out: %s cannot be imported: %s", point.name, point.value, one_line(error)
            )
            continue
        known = own_formats() + found
        extensions = tuple(end for each in known for end in each.extensions)
        if not isinstance(other, Format):
            log.warning("the format %s is left out: %s is not a w2v.formats.Format", point.name, point.value)
        elif other.name in [each.name for each in known] or any(end.endswith(extensions) for end in other.extensions):
            log.warning("the format %s is left out: its name or an extension belongs to another format", point.name)
        else:
            found.append(other)
    return found


def writable_formats() -> list[Format]:
    """Return the formats that word vectors can be written in."""
    return [each for each in own_formats() + other_formats() if each.write and not each.for_classifiers]


def describe_formats() -> str:
    """Return a line with the extensions and the name of each format that can be written."""
    writable = writable_formats()
    extensions = [" ".join(fmt.extensions) for fmt in writable]
    width = max(map(len, extensions))
    return "\n".join(f"  {each:{width}}  {fmt.name}" for each, fmt in zip(extensions, writable, strict=True))


def format_for(path: PathLike) -> Format:
    """Return the format of a new file with this name.

    Raises:
        SettingsError: If the extension is unknown.
    """
    name = Path(path).name.lower()
    fmt = next((fmt for fmt in own_formats() if name.endswith(fmt.extensions)), None)
    fmt = fmt or next((fmt for fmt in other_formats() if name.endswith(fmt.extensions)), None)
    if fmt and fmt.write:
        return fmt
    known = ", ".join(extension for fmt in writable_formats() for extension in fmt.extensions)
    reason = f"w2v reads {fmt.name} files, but cannot write them" if fmt else "unknown extension"
    raise SettingsError(f"{path}: {reason}: use one of {known}")


def check_storage(path: PathLike, storage: FileStorage) -> None:
    """Raise SettingsError if the format of a file of this name cannot store vectors in this type."""
    if storage not in format_for(path).storages:
        known = [fmt.extensions[0] for fmt in writable_formats() if storage in fmt.storages]
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
        if Path(path).is_dir():
            for fmt in own_formats() + other_formats():
                if fmt.folder and fmt.matches(path, b""):
                    return fmt
        with open_unpacked(path) as (file, _):
            head, is_packed = read_head(path, file), is_compressed(file)
        try:
            fmt = next(_matching(own_formats(), path, head))
        except W2VError:  # no format of this package
            others = _matching(other_formats(), path, head)
            if (other := next(others, None)) is None:
                raise
            fmt = other
    if is_packed and not fmt.compressible:
        raise W2VError(f"{path}: a compressed {fmt.extensions[0]} file: unpack it first")
    return fmt


def _matching(candidates: list[Format], path: PathLike, head: bytes) -> Iterator[Format]:
    """Yield the formats of the file that starts with `head`."""
    for fmt in candidates:
        has_words = not fmt.words_suffix or Path(path).with_suffix(fmt.words_suffix).is_file()
        if has_words and not fmt.folder and fmt.matches(path, head):
            yield fmt


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
    fmt = format_for(path)
    if fmt.stores == EVERYTHING:
        return []
    stored = {*fmt.stores, VIEW.format(fmt.view)}
    if "inputs" in content.tensors:  # output rows belong to input rows, which these formats do not store
        stored -= {"outputs"}
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
    view = format_for(path).view
    if content.header.views and view:
        content = content.view(view, path)
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
    if content.header.key_type == "int" and not {"key_type", *EVERYTHING} & {*fmt.stores}:
        log.warning("%s: the keys, which are numbers, become text: .safetensors and .parquet keep numbers", path)
    fmt.save(path, content, replace, progress)


def read(
    path: PathLike,
    mmap: bool = False,
    errors: Errors | None = "strict",
    limit: int | None = None,
    progress: Report | None = None,
    encoding: str = UTF_8,
) -> VectorFile:
    """Read a vector file of any format, plain or compressed, recognised by its content.

    Args:
        path: The file or folder.
        mmap: Return read-only arrays that are read from disk when they are used. Only their sizes and the word offsets
            are checked. This works for the native format, and for the rows of fastText's classifiers.
        errors: How to decode words that are not in `encoding`, as in bytes.decode. With "replace" and "ignore", the
            first row of a repeated word is kept. With None, words are not checked.
        limit: The number of rows to read from the start, or None for all.
        progress: Called in phase "load".
        encoding: The encoding of the words; memory-mapped words are always UTF-8.

    Raises:
        W2VError: If the file is missing, truncated, inconsistent, in an unknown format or changed while it was read, or
            if it contains NaN or infinite values or, with errors "strict", a word twice.
    """
    with watch_format(path) as fmt:
        if mmap and not fmt.read_mapped:
            raise W2VError(
                f"{path}: only .safetensors files can be memory-mapped: convert this file with `w2v convert`"
            )
        if mmap and encoding != UTF_8:
            raise SettingsError(f"encoding {encoding}: the words of memory-mapped files are UTF-8: leave it out")
        if mmap and fmt.read_mapped:
            content = fmt.read_mapped(path)
        else:
            content = fmt.load(path, errors, limit, progress, encoding)
    return content if limit is None else content.head(limit)
