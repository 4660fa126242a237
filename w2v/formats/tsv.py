"""Pairs of files for TensorBoard's projector: numbers separated by tabs, and the words in a file beside them."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from w2v.errors import W2VError, one_line
from w2v.formats import word2vec
from w2v.formats.vector_file import VectorFile, check_content, checked
from w2v.formats.word_lists import read_words, write_words
from w2v.progress import Meter, Report
from w2v.system.files import Errors, PathLike, atomic_write, errors_named
from w2v.text.words import Words

METADATA = ".metadata.tsv"  # ends the name of the file of words


def metadata(path: PathLike) -> Path:
    """The file of words that belongs to a file of numbers."""
    return Path(path).with_suffix(METADATA)


def fits(path: PathLike, head: bytes) -> bool:
    """Whether a file with this name has words beside it: its content is only numbers, as many a text's."""
    return Path(path).suffix.lower() == ".tsv" and metadata(path).is_file()


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write the numbers and, beside them, words and counts."""
    check_content(path, content)
    rows = len(content.words)
    write_words(metadata(path), content.words, content.counts, path, replace)
    nameless = VectorFile(Words.of([b""] * rows), content.vectors)
    meter = Meter(progress, "save")
    with atomic_write(path, replace) as file:
        for done, block in word2vec.encoded_blocks(nameless, binary=False):
            file.write(bytes(block)[1:].replace(b"\n ", b"\n").replace(b" ", b"\t"))
            meter(done, rows)


def read(path: PathLike, errors: Errors, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the numbers and, beside them, words and, if there are any, counts."""
    try:
        with errors_named(path), warnings.catch_warnings(action="ignore"):  # of a file of empty lines
            vectors = np.loadtxt(path, np.float32, delimiter="\t", comments=None, ndmin=2)
    except ValueError as error:
        raise W2VError(f"{path}: {one_line(error)}") from error
    words, counts = read_words(metadata(path), len(vectors))
    return checked(path, VectorFile(words, vectors, counts), errors)
