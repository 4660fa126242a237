"""Pairs of files for TensorBoard's projector: numbers separated by tabs, and the words in a file beside them."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

import numpy as np

from w2v.detect import Layout
from w2v.formats import word2vec
from w2v.formats.vector_file import Array, VectorFile, check_content, checked
from w2v.formats.word_lists import atomic_pair, check_size, read_words
from w2v.progress import Meter, Report
from w2v.system.files import Errors, PathLike, errors_named, open_regular
from w2v.text.decompress import Unpacked
from w2v.text.words import Words

PIECE_BYTES = 1 << 16  # read at once
METADATA = ".metadata.tsv"  # ends the name of the file of words, instead of .tsv


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write the numbers and, beside them, words and counts."""
    check_content(path, content)
    rows, done = len(content.words), 0
    meter = Meter(progress, "save")
    with atomic_pair(path, METADATA, content.words, content.counts, replace) as file:
        for lines in encoded(content.vectors):
            file.write(lines)
            done += lines.count(b"\n")
            meter(done, rows)


def encoded(vectors: Array) -> Iterator[bytes]:
    """The rows of a matrix (n, D) as lines of numbers, some at a time."""
    nameless = VectorFile(Words(np.empty(0, np.uint8), np.zeros(len(vectors) + 1, np.int64)), vectors)
    for _, block in word2vec.encoded_blocks(nameless, binary=False):
        yield bytes(block)[1:].replace(b"\n ", b"\n").replace(b" ", b"\t")


def read(path: PathLike, errors: Errors | None, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the numbers and, beside them, words and, if there are any, counts."""
    beside = Path(path).with_suffix(METADATA)
    with errors_named(path), open_regular(path) as file:
        columns, rows, piece = 1, 0, b"\n"
        for piece in iter(lambda: file.readline(PIECE_BYTES), b""):
            columns += piece.count(b"\t") if not rows else 0
            rows += piece.endswith(b"\n")
        rows += not piece.endswith(b"\n")
        check_size(beside, rows)
        file.seek(0)
        named: BufferedReader = BufferedReader(Unpacked(str(path), _named(file)))
        layout = Layout("text", rows, columns, 0)
        vectors = word2vec.read_rows(path, layout, rows, named, b"", None, progress).vectors
    words, counts = read_words(beside, rows)
    return checked(path, VectorFile(words, vectors, counts), errors)


def _named(file: BufferedReader) -> Iterator[bytes]:
    """The lines of a file with a placeholder word before each, so that the reader of word2vec text can parse them."""
    begins = True
    while block := file.read(PIECE_BYTES):
        yield b"-\t" * begins + block[:-1].replace(b"\n", b"\n-\t") + block[-1:]
        begins = block.endswith(b"\n")
