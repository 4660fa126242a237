"""The formats of vector files, a line each in FORMATS: a written file's is chosen by name, a read one's by content."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, get_args

from w2v.detect import is_native
from w2v.errors import SettingsError, W2VError
from w2v.formats import arrow, fasttext, gensim, native, npy, spacy, sqlite, static, tsv, word2vec
from w2v.formats.row_blocks import head_of, is_compressed, opened
from w2v.formats.storage import FileStorage
from w2v.formats.vector_file import VectorFile
from w2v.progress import Report
from w2v.system.files import FASTTEXT, NUMPY, SQLITE, Errors, PathLike, errors_named, unchanged_files

EVERYTHING = ("*",)
COUNTS, OUTPUTS, SUBWORDS = ("counts",), ("outputs",), ("ngrams", "ngram_buckets", "subwords")

PARTS = {name: name for name in ("counts", "settings", "metrics", "scores")}
PARTS |= {"inputs": "input rows", "loss_by_epoch": "losses by epoch", "text": "text options", "gensim": "settings"}
PARTS["others"] = "other texts"
PARTS[gensim.INT_KEYS] = "integer keys"
PARTS |= dict.fromkeys(SUBWORDS, "n-grams")


class Format(NamedTuple):
    """A format of vector files.

    Attributes:
        name: as `w2v info` shows it. extensions: by these ends of its name it is chosen for writing.
        fits: whether the file of a path, which begins with some bytes, has this format; one without its file `beside`
            has not.
        read: of (path, errors, limit, progress); it may read more rows than `limit`.
        write: of (path, content, replace, progress), atomic; None for a format that is only read.
        keeps: the names of what it holds beside words and vectors; see VectorFile.
        beside: the end, instead of the extension, of the name of the file beside it. folder: whether it is a folder.
        arrays: a pattern for what follows its name in the names of files that may be beside it.
        leftovers: what follows its name in the names of files that belong to the one it replaces.
        packed: whether it is also read compressed.
        storages: the types in which it holds vectors.
    """

    name: str
    extensions: tuple[str, ...]
    fits: Callable[[PathLike, bytes], bool]
    read: Callable[[PathLike, Errors | None, int | None, Report | None], VectorFile]
    write: Callable[[PathLike, VectorFile, bool, Report | None], None] | None
    keeps: tuple[str, ...] = ()
    beside: str = ""
    folder: bool = False
    arrays: str = ""
    leftovers: tuple[str, ...] = ()
    packed: bool = False
    storages: tuple[FileStorage, ...] = ("float32",)

    def other_files(self, path: Path) -> list[Path]:
        """The files that a vector file of this format consists of besides the one at `path`."""
        if self.folder:
            return [file for file in path.rglob("*") if file.is_file()]
        if self.beside:
            return [path.with_suffix(self.beside)]
        return sorted(path.parent.glob(glob.escape(path.name) + self.arrays)) if self.arrays else []


def _begins(pattern: bytes) -> Callable[[PathLike, bytes], bool]:
    """Whether a file begins with a regular expression."""
    return lambda path, head: bool(re.match(pattern, head))


def _holds(*names: str) -> Callable[[PathLike, bytes], bool]:
    """Return a test whether a path is a folder with these names in it, whatever they are: readers check the kind."""
    return lambda path, head: all((Path(path) / name).exists() for name in names)


# The first that fits is taken, so .ft.bin comes before .bin, and last what reads any text.
FORMATS = (
    Format(
        "native", (".safetensors",), lambda path, head: is_native(head), native.read, native.write, EVERYTHING,
        storages=get_args(FileStorage),
    ),
    Format(
        "fasttext", (".ft.bin",), _begins(FASTTEXT), fasttext.read, fasttext.write, COUNTS + OUTPUTS + SUBWORDS,
        packed=True,
    ),
    Format(
        "gensim", (".model", ".kv"), _begins(gensim.BEGINNING), gensim.read, None, COUNTS + OUTPUTS + SUBWORDS,
        arrays=".*.npy",
    ),
    Format("arrow", (".parquet", ".arrow"), _begins(arrow.BEGINNING), arrow.read, arrow.write, COUNTS),
    Format(
        "sqlite", (".db", ".sqlite"), _begins(SQLITE), sqlite.read, sqlite.write, COUNTS, leftovers=sqlite.COMPANIONS
    ),
    Format(
        "numpy", (".npy",), _begins(NUMPY), npy.read, npy.write, beside=npy.WORDS, storages=("float32", "f16")
    ),
    # The content alone does not tell: many text files hold only numbers.
    Format(
        "projector", (".tsv",), lambda path, head: Path(path).suffix.lower() == ".tsv", tsv.read, tsv.write, COUNTS,
        beside=tsv.METADATA,
    ),
    Format(
        "static embeddings", (".model2vec",), _holds(static.MATRIX, static.TOKENIZER), static.read, static.write,
        folder=True,
    ),
    Format(
        "spacy", (".spacy",), _holds("vocab/vectors", "vocab/key2row", "vocab/strings.json"), spacy.read, spacy.write,
        folder=True,
    ),
    Format(
        "word2vec binary", (".bin", ".bin.gz"), word2vec.fits_binary, word2vec.read,
        partial(word2vec.write, binary=True), packed=True,
    ),
    Format(
        "glove", (".glove.txt", ".glove.txt.gz"), word2vec.fits_glove, word2vec.read,
        partial(word2vec.write, binary=False, header=False), packed=True,
    ),
    Format(
        "word2vec text", (".txt", ".vec", ".txt.gz", ".vec.gz"), word2vec.fits_text, word2vec.read,
        partial(word2vec.write, binary=False), packed=True,
    ),
)  # fmt: skip
WRITTEN = [one for one in FORMATS if one.write]


def described() -> str:
    """A line for each format that is written: its extensions, and its name."""
    ends = [" ".join(one.extensions) for one in WRITTEN]
    width = max(map(len, ends))
    return "\n".join(f"  {end:{width}}  {one.name}" for end, one in zip(ends, WRITTEN, strict=True))


def for_writing(path: PathLike) -> Format:
    """The format of a file of this name. Raises SettingsError for an unknown extension."""
    name = Path(path).name.lower()
    for one in WRITTEN:
        if name.endswith(one.extensions):
            return one
    only_read = next((one for one in FORMATS if name.endswith(one.extensions)), None)
    known = ", ".join(end for one in WRITTEN for end in one.extensions)
    reason = f"{only_read.name}'s own files are only read, not written" if only_read else "unknown extension"
    raise SettingsError(f"{path}: {reason}: use one of {known}")


def check_storage(path: PathLike, storage: FileStorage) -> None:
    """Raise SettingsError if the format of a file of this name does not hold vectors in this type."""
    if storage not in for_writing(path).storages:
        known = [one.extensions[0] for one in WRITTEN if storage in one.storages]
        raise SettingsError(f"{path}: this format does not hold {storage}: use {' or '.join(known)}")


def recognised(path: PathLike) -> Format:
    """The format of a file, by its content. Raises W2VError for any other file."""
    with errors_named(path):
        for one in FORMATS:
            if one.folder and one.fits(path, b""):
                return one
        with opened(path) as (file, _):
            head, packed = head_of(path, file), is_compressed(file)
        files = (one for one in FORMATS if not one.folder and one.fits(path, head))
        found = next(one for one in files if not one.beside or Path(path).with_suffix(one.beside).is_file())
    if packed and not found.packed:
        raise W2VError(f"{path}: a compressed {found.extensions[0]} file: unpack it first")
    return found


@contextmanager
def reading(path: PathLike) -> Iterator[Format]:
    """The format of a file, for a `with` block that reads it.

    Raises W2VError as `recognised` does, and if one of the files that it consists of is changed or replaced within the
    block: what was read may then be a mixture of two models.
    """
    with unchanged_files(path) as watch:
        found = recognised(path)
        watch(found.other_files(Path(path)))
        yield found


def files_of(path: PathLike) -> list[Path]:
    """The vector file at `path` and the other files that it consists of. Raises W2VError as `recognised` does."""
    return [Path(path), *recognised(path).other_files(Path(path))]


def beside(path: PathLike) -> list[Path]:
    """The files beside one of this name that writing it makes or removes. Raises SettingsError as for_writing does."""
    one = for_writing(path)
    written = [Path(path).with_suffix(one.beside)] if one.beside else []
    return [*written, *filter(os.path.lexists, (Path(f"{path}{end}") for end in one.leftovers))]


def parts(content: VectorFile) -> list[str]:
    """The names of the content beside words and vectors."""
    counts = [] if content.counts is None else ["counts"]
    return [*counts, *content.tensors, *content.header.parts]


def lost(path: PathLike, content: VectorFile) -> list[str]:
    """The names of the content that the format of this name does not keep. Raises SettingsError as for_writing does."""
    kept = for_writing(path).keeps
    if kept == EVERYTHING:
        return []
    if "inputs" in content.tensors:  # output rows belong to input rows
        kept = tuple(name for name in kept if name not in OUTPUTS)
    return [name for name in parts(content) if name not in kept]


def described_lost(path: PathLike, before: VectorFile, made: VectorFile) -> list[str]:
    """What was there `before` and is not in a file of this name with the content `made`, in words, each once."""
    kept = {*parts(made)} - {*lost(path, made)}
    names = [name for name in parts(before) if name not in kept]
    return list(dict.fromkeys(PARTS.get(name, "output layer") for name in names))  # the loss has names of its own


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a vector file, atomically, in the format of the extension of `path`.

    Only the native format stores all counts, tensors and the header. `progress` is called in phase "save". Raises
    W2VError if the content does not fit the format, the file cannot be written, or it exists and `replace` is false;
    SettingsError for an unknown extension.
    """
    write = for_writing(path).write
    assert write
    write(path, content, replace, progress)


def read(
    path: PathLike,
    mmap: bool = False,
    errors: Errors | None = "strict",
    limit: int | None = None,
    progress: Report | None = None,
) -> VectorFile:
    """Read a vector file of any format, recognised by its content, compressed or not.

    With `mmap` (only for the native format), the arrays are read-only and read from disk when they are used; their
    sizes and the word offsets are checked, other values are not. `errors` says how to treat words that are not UTF-8,
    as in bytes.decode; with None, words are not checked. With a `limit`, only that many rows are read, the first.
    `progress` is called in phase "load".

    Raises W2VError for a file that is missing, truncated, inconsistent, of unknown format or changed while it is read,
    for NaN or infinite values and for a word that appears twice.
    """
    with reading(path) as found:
        if mmap and found.read is not native.read:
            raise W2VError(f"{path}: only .safetensors files open memory-mapped: `w2v convert` makes one of it")
        content = native.mapped(path) if mmap else found.read(path, errors, limit, progress)
    return content if limit is None else content.first(limit)
