"""The formats of vector files: chosen by extension for writing, recognised by content for reading."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Literal, NamedTuple

from w2v.detect import HEAD_BYTES, is_native, recognise, refuse_foreign
from w2v.errors import SettingsError, W2VError
from w2v.formats import fasttext, native, word2vec
from w2v.formats.row_blocks import is_compressed, is_cut, opened
from w2v.formats.vector_file import VectorFile
from w2v.progress import Report
from w2v.system.files import Errors, PathLike

FormatName = Literal["native", "fasttext", "binary", "text"]


class Format(NamedTuple):
    """A format: the extensions of its files, the function (path, content, replace, progress) that writes them, and the
    names of what it keeps beside words and vectors ("*": everything).
    """

    name: FormatName
    extensions: tuple[str, ...]
    write: Callable[[PathLike, VectorFile, bool, Report | None], None]
    keeps: tuple[str, ...] = ()


FORMATS = (
    Format("native", (".safetensors",), native.write, ("*",)),
    Format("fasttext", (".ft.bin",), fasttext.write, ("counts", "outputs", "ngrams", "ngram_buckets", "subwords")),
    Format("binary", (".bin", ".bin.gz"), partial(word2vec.write, binary=True)),  # after .ft.bin
    Format("text", (".txt", ".vec", ".txt.gz", ".vec.gz"), partial(word2vec.write, binary=False)),
)


def format_of(path: PathLike) -> FormatName:
    """The name of the format for writing a file of this name. Raises SettingsError for an unknown extension."""
    return _by_extension(path).name


def _by_extension(path: PathLike) -> Format:
    name = Path(path).name.lower()
    for entry in FORMATS:
        if name.endswith(entry.extensions):
            return entry
    raise SettingsError(f"{path}: unknown extension: use .bin, .txt or .vec (also with .gz), .ft.bin or .safetensors")


def lost(path: PathLike, content: VectorFile) -> list[str]:
    """The names of the content that the format of this name does not keep. Raises SettingsError as format_of does."""
    counts = [] if content.counts is None else ["counts"]
    names = [*counts, *content.tensors, *(name for name in content.metadata if name not in ("format", "version"))]
    kept = _by_extension(path).keeps
    return [name for name in names if name not in kept and "*" not in kept]


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a vector file, atomically, in the format of the extension of `path`.

    Only the native format stores all counts, tensors and metadata. `progress` is called in phase "save". Raises
    W2VError if the content does not fit the format, the file cannot be written, or it exists and `replace` is false;
    SettingsError for an unknown extension.
    """
    _by_extension(path).write(path, content, replace, progress)


def read(
    path: PathLike,
    mmap: bool = False,
    errors: Errors | None = "strict",
    limit: int | None = None,
    progress: Report | None = None,
) -> VectorFile:
    """Read a vector file of any format, recognised by its content, compressed or not.

    With `mmap` (only for the native format), the arrays are read-only, read from disk when they are used, and not
    checked. `errors` says how to treat words that are not UTF-8, as in bytes.decode; with None, words are not
    checked. With a `limit`, only that many rows are read, the first. `progress` is called in phase "load" while a
    word2vec file is read.

    Raises W2VError for a file that is missing, truncated, inconsistent or of unknown format, for NaN or infinite values
    and for a word that appears twice.
    """
    with opened(path) as (file, max_size):
        head = _head(path, file)
        if is_native(head):
            if is_compressed(file):
                raise W2VError(f"{path}: a compressed .safetensors file: unpack it first")
            content = native.read(path, mmap, errors)
            return content if limit is None else content.first(limit)
        is_fasttext = fasttext.is_fasttext(head)
        if not is_fasttext:
            refuse_foreign(path, head)
        if mmap:
            raise W2VError(f"{path}: only .safetensors files open memory-mapped: `w2v convert` makes one of it")
        if is_fasttext:
            content = fasttext.read(path, errors, progress)
            return content if limit is None else content.first(limit)
        return word2vec.read(path, file, head, max_size, errors, limit, progress)


def _head(path: PathLike, file: BufferedReader) -> bytes:
    head = file.read(HEAD_BYTES)
    if not head:
        raise W2VError(
            f"{path}: {'cut: its compressed data ends before the first row' if is_cut(file) else 'it is empty'}"
        )
    return head


def content_format(path: PathLike) -> FormatName:
    """The name of the format of a file, recognised by its content. Raises W2VError for any other file."""
    with opened(path) as (file, _):
        head = _head(path, file)
    if is_native(head):
        return "native"
    if fasttext.is_fasttext(head):
        return "fasttext"
    refuse_foreign(path, head)
    return recognise(path, head).kind
