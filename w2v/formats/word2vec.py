"""The binary and text formats of word2vec, plain or compressed."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from w2v.detect import HEAD_BYTES, Layout, recognise, refuse_foreign
from w2v.errors import CutFile, W2VError, counted
from w2v.formats import _formats, bfloat16
from w2v.formats.row_blocks import BLOCK_BYTES, RowBlocks, head_of, is_cut, opened
from w2v.formats.vector_file import Array, VectorFile, check_content, checked_words
from w2v.progress import Meter, Report
from w2v.system import memory
from w2v.system.files import Errors, PathLike, atomic_write, text_start
from w2v.system.threads import NoThread, Pool
from w2v.text.words import Words

SEPARATORS = b" \t\n\r"

# -- writing --------------------------------------------------------------------------------


def write(
    path: PathLike,
    content: VectorFile,
    replace: bool = True,
    progress: Report | None = None,
    *,
    binary: bool,
    header: bool = True,
) -> None:
    """Write words and vectors, atomically, compressed by gzip if the name ends in .gz; GloVe's text has no header.

    Text has the fewest digits that read back as the same float32. Raises W2VError if the file cannot be written or a
    word does not fit the format.
    """
    blocks = encoded(path, content, binary=binary)
    if not header:
        _check_start(path, content)
    meter, rows = Meter(progress, "save"), len(content.words)
    with atomic_write(path, replace) as plain, packed(path, plain) as file:
        if header:
            file.write(b"%d %d\n" % content.vectors.shape)
        for done, block in blocks:
            file.write(block)
            meter(done, rows)


def encoded(
    path: PathLike, content: VectorFile, *, binary: bool, separators: bytes = SEPARATORS
) -> Iterator[tuple[int, memoryview]]:
    """The rows of a file, without its header, in blocks, each with the number of rows up to its end.

    No word may hold one of the `separators`; a word with spaces is read again from text, but not by every program.
    Raises W2VError immediately, not at the first block, for content that the format cannot store.
    """
    check_content(path, content)
    _check_words_fit(path, content.words, separators)
    return encoded_blocks(content, binary)


def encoded_blocks(content: VectorFile, binary: bool) -> Iterator[tuple[int, memoryview]]:
    """As `encoded`, of content that has been checked."""
    words, vectors = content.words, content.vectors
    columns = vectors.shape[1]
    fill = _formats.binary_format if binary else _formats.text_format
    row_size = 4 * columns + 2 if binary else 17 * columns + 1  # maximum, in bytes, without the word
    for start, block in bfloat16.blocks(vectors, max(1, BLOCK_BYTES // row_size)):
        offsets = words.offsets[start : start + len(block) + 1]
        out = np.empty(len(block) * row_size + int(offsets[-1] - offsets[0]), np.uint8)
        yield start + len(block), out[: fill(block, words.blob, offsets, out)].data


def _check_start(path: PathLike, content: VectorFile) -> None:
    """Raise W2VError for text without a header whose start would not be read again as it is written.

    Its first word may begin with a byte order mark or the signature of another kind of file, or its first row look like
    a header; a control character makes it binary, and one number a row may look like counts of words.
    """
    head = b""
    for _, block in encoded_blocks(content, binary=False):
        head += block
        if len(head) >= HEAD_BYTES:
            break
    head = head[:HEAD_BYTES]
    expected = Layout("text", None, content.vectors.shape[1], 0)
    try:
        refuse_foreign(path, head)
        is_readable = len(text_start(path, head)) == len(head) and recognise(path, head) == expected
    except W2VError:
        is_readable = False
    if not is_readable:
        begin = head[:40].decode(errors="replace")
        raise W2VError(
            f"{path}: not written: in this format, which has no header, what begins with {begin!r} would be read as "
            "something else: use .vec or .safetensors"
        )


def packed(path: PathLike, file: BinaryIO) -> AbstractContextManager[Any]:
    """The file, compressed by gzip if the path ends in .gz."""
    if not Path(path).name.lower().endswith(".gz"):
        return nullcontext(file)
    return gzip.GzipFile(filename="", mode="wb", compresslevel=1, fileobj=file, mtime=0)


def _check_words_fit(path: PathLike, words: Words, separators: bytes) -> None:
    """Raise W2VError for words that the readers of word2vec files would split or lose."""
    words.check_lengths(f"{path}: not written: ")
    bad = np.flatnonzero(np.isin(words.blob, np.frombuffer(separators, np.uint8)))
    empty = np.flatnonzero(words.offsets[1:] == words.offsets[:-1])
    if len(bad) or len(empty):
        row = int(np.searchsorted(words.offsets, bad[0], side="right")) - 1 if len(bad) else int(empty[0])
        raise W2VError(
            f"{path}: not written: the word {words[row][:60]!r} is empty or holds white space, "
            "which this format cannot store: use .safetensors"
        )


# -- reading --------------------------------------------------------------------------------

_CODECS = {
    "binary": (_formats.binary_split, _formats.binary_parse),
    "text": (_formats.text_split, _formats.text_parse),
}


def fits_binary(path: PathLike, head: bytes) -> bool:
    """Whether a file that begins with `head` is binary. Raises W2VError for one that is no word2vec file at all."""
    refuse_foreign(path, head)
    return recognise(path, head).kind == "binary"


def fits_text(path: PathLike, head: bytes) -> bool:
    return recognise(path, head).rows is not None


def fits_glove(path: PathLike, head: bytes) -> bool:
    """Whether text has no header; binary files without one are refused before."""
    return not fits_text(path, head)


def read(path: PathLike, errors: Errors | None, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read a word2vec file, binary or text; see formats.table.read.

    The header is trusted only if the file can hold as many rows. Otherwise, and without a header, the rows are counted
    first, so that no memory is reserved for rows that do not exist.
    """
    with opened(path) as (file, max_size):
        head = head_of(path, file)
        layout = recognise(path, head)
        rows = layout.rows
        if rows is not None and layout.min_bytes(rows) <= max_size:
            content = read_rows(path, layout, rows, file, head, limit, progress)
            return replace(content, words=checked_words(path, content.words, errors))
        whole = _count_rows(layout, file, head) if rows is not None or layout.min_bytes(1) < max_size else 0
        if whole >= rows if rows is not None else layout.min_bytes(whole - 1) > max_size:  # the last line may be cut
            raise W2VError(f"{path}: its {rows or whole} rows are too short for as many different words")
        if rows is not None or is_cut(file):
            raise _cut(path, whole, rows)
    with opened(path) as (file, _):
        content = read_rows(path, layout, whole, file, head_of(path, file), limit, progress)
    return replace(content, words=checked_words(path, content.words, errors))


def _count_rows(layout: Layout, file: BufferedReader, head: bytes) -> int:
    split = _CODECS[layout.kind][0]

    def whole(data: Array, columns: int, limit: int, final: bool) -> tuple[int, int]:
        # With a header, a last line without a newline counts as cut: the file is too short for its header anyway.
        return split(data, columns, limit, final and layout.rows is None)

    return sum(rows for _, _, rows in RowBlocks(file, head[layout.start :], whole, layout.columns, 1 << 62))


def _cut(path: PathLike, whole: int, rows: int | None) -> CutFile:
    if rows is None:
        return CutFile(f"{path}: cut after {counted(whole, 'whole row')}")
    return CutFile(f"{path}: cut, or its header is wrong: {whole} of {rows} rows are whole")


def read_rows(
    path: PathLike,
    layout: Layout,
    rows: int,
    file: BufferedReader,
    head: bytes,
    limit: int | None,
    progress: Report | None,
) -> VectorFile:
    """Read rows of this layout from a file of which `head` has been read; the words are not checked.

    Raises W2VError as `read` does.
    """
    limited = limit is not None and limit < rows
    rows = rows if limit is None else min(rows, limit)
    split, parse = _CODECS[layout.kind]
    blocks = RowBlocks(file, head[layout.start :], split, layout.columns, rows)
    vectors: NDArray[np.float32] = memory.empty((rows, layout.columns))
    offsets = np.zeros(rows + 1, np.int64)  # the lengths of the words, summed at the end
    pieces: dict[int, bytes] = {}  # the words of each block, by its first row
    problems: dict[int, W2VError] = {}  # by row

    def parse_blocks(meter: Meter | None) -> None:
        words = np.empty(0, np.uint8)
        for data, first, count in blocks:
            if meter:
                meter(first, rows)
            if len(words) < len(data):
                words = np.empty(len(data), np.uint8)
            lengths = offsets[first + 1 : first + count + 1]
            used, bad = parse(data, vectors[first : first + count], words, lengths)
            pieces[first] = words[:used].tobytes()
            if bad >= 0:
                blocks.stop()
                in_last_line = bad == count - 1 and data[-1] != ord("\n")
                if lengths[bad] < 0 and in_last_line:
                    problems[first + bad] = _cut(path, first + bad, layout.rows)
                else:
                    problem = _problem(data, layout, bad, lengths[: bad + 1], pieces[first])
                    problems[first + bad] = W2VError(f"{path}: row {first + bad + 1} {problem}")

    meter = Meter(progress, "load")
    _parse_with_help(parse_blocks, meter, blocks, alone=len(head) < HEAD_BYTES)  # a short file is not worth a thread
    meter(rows, rows)
    if problems:
        raise problems[min(problems)]
    if blocks.rows < rows:
        raise _cut(path, blocks.rows, rows)
    if not limited:
        _check_end(path, file, blocks.rest, rows)
    np.cumsum(offsets, out=offsets)
    blob = np.empty(int(offsets[-1]), np.uint8)
    for first in sorted(pieces):
        piece = np.frombuffer(pieces.pop(first), np.uint8)  # freed before the next is copied
        blob[offsets[first] : offsets[first] + len(piece)] = piece
    return VectorFile(Words(blob, offsets), vectors)


def _parse_with_help(parse: Callable[[Meter | None], None], meter: Meter, blocks: RowBlocks, alone: bool) -> None:
    """Parse blocks in this thread and, unless `alone`, in a second one: more do not help, as memory is the limit."""
    with Pool(1) as pool:
        others = []
        if not alone:
            with suppress(NoThread):
                others.append(pool.submit(parse, None))
        try:
            parse(meter)
        except BaseException:
            blocks.stop()
            raise
        for other in others:
            other.result()


def _check_end(path: PathLike, file: BufferedReader, rest: bytes, rows: int) -> None:
    """Raise W2VError if anything but white space follows the last row, or compressed data has no end."""
    while rest := rest or file.read(BLOCK_BYTES):
        if rest.strip():
            raise W2VError(f"{path}: wrong header: it says {counted(rows, 'row')}, but more follow")
        rest = b""
    if is_cut(file):
        raise W2VError(f"{path}: cut: its rows are whole, but its compressed data has no end")


def _problem(data: Array, layout: Layout, row: int, lengths: NDArray[np.int64], words: bytes) -> str:
    """The problem of a row in a block of `data`; `words` and `lengths` are those parsed up to this row."""
    if lengths[row] < 0:
        lines = (line for line in data.tobytes().split(b"\n") if line.strip(b" \t\r"))
        line = next(islice(lines, row, None)).decode(errors="replace")
        return f"is not a word and {layout.columns} numbers: {line[:60]!r}"
    end = int(lengths.sum())
    word = words[end - int(lengths[row]) : end].decode(errors="replace")
    return f"({word[:60]!r}) holds NaN or infinite values"
