"""Pairs of files for TensorBoard's projector: numbers separated by tabs, and a second file with the words."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

import numpy as np

from w2v._detect import Layout
from w2v._formats import word2vec
from w2v._formats.base import Format
from w2v._formats.vector_file import Array, VectorFile
from w2v._formats.word_lists import LINE_SEPARATORS, read_words, write_words_with_matrix
from w2v._progress import Meter, Report
from w2v._system.files import PathLike, open_regular, translate_os_errors
from w2v._text.decompress import DecompressedStream
from w2v._text.words import Words

PIECE_BYTES = 1 << 16
WORDS_SUFFIX = ".metadata.tsv"  # suffix of the file with the words; it replaces .tsv


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write the numbers, and words and counts to the words file; both are replaced together."""
    rows, done = len(content.words), 0
    meter = Meter(progress, "save")
    with write_words_with_matrix(path, WORDS_SUFFIX, content.words, content.counts, replace) as file:
        for lines in encode(content.vectors):
            file.write(lines)
            done += lines.count(b"\n")
            meter(done, rows)


def encode(vectors: Array) -> Iterator[bytes]:
    """Yield the rows of a matrix (n, D) as lines of numbers, several lines at a time."""
    without_words = VectorFile(Words(np.empty(0, np.uint8), np.zeros(len(vectors) + 1, np.int64)), vectors)
    for _, block in word2vec.encode_blocks(without_words, binary=False):
        # Each line starts with an empty word and a space: drop the space.
        yield bytes(block)[1:].replace(b"\n ", b"\n").replace(b" ", b"\t")


def read(path: PathLike, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the numbers, and words and counts (if any) from the words file; see Format.read."""
    with translate_os_errors(path), open_regular(path) as file:
        columns, rows, piece = 1, 0, b"\n"
        for piece in iter(lambda: file.readline(PIECE_BYTES), b""):
            columns += piece.count(b"\t") if not rows else 0
            rows += piece.endswith(b"\n")
        rows += not piece.endswith(b"\n")
        file.seek(0)
        # The text is not compressed: DecompressedStream only turns the iterator of bytes into a stream.
        with_words: BufferedReader = BufferedReader(DecompressedStream(str(path), _with_placeholder_words(file)))
        layout = Layout("text", rows, columns, 0)
        vectors = word2vec.read_rows(path, layout, rows, with_words, b"", None, progress).vectors
    words, counts = read_words(Path(path).with_suffix(WORDS_SUFFIX), rows)
    return VectorFile(words, vectors, counts)


def _with_placeholder_words(file: BufferedReader) -> Iterator[bytes]:
    """Yield a file with a placeholder word before each line, so that the reader of word2vec text can parse it."""
    is_line_start = True
    while piece := file.read(PIECE_BYTES):
        yield b"-\t" * is_line_start + piece[:-1].replace(b"\n", b"\n-\t") + piece[-1:]
        is_line_start = piece.endswith(b"\n")


# Recognised by extension only, since many text files hold nothing but numbers.
FORMAT = Format(
    "projector",
    (".tsv",),
    7,
    lambda path, head: Path(path).suffix.lower() == ".tsv",
    read,
    write,
    stores=("counts",),
    words_suffix=WORDS_SUFFIX,
    separators=LINE_SEPARATORS,
)
