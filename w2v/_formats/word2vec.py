"""The binary and text formats of word2vec, and GloVe's text format, plain or compressed."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import lzma
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from io import BufferedReader
from itertools import islice
from mmap import mmap
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from w2v._detect import HEAD_BYTES, Layout, describe_row, recognise_layout, refuse_file_of_other_tool
from w2v._errors import TruncatedFile, W2VError, import_optional, pluralise
from w2v._formats import _formats, bfloat16
from w2v._formats.base import Format
from w2v._formats.row_blocks import BLOCK_BYTES, RowBlocks, is_truncated, open_unpacked, read_head
from w2v._formats.vector_file import Array, VectorFile
from w2v._progress import Meter, Report
from w2v._system import memory
from w2v._system.files import PathLike, atomic_write, text_start
from w2v._system.threads import NoThread, Pool
from w2v._text.words import Words

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
    """Write words and vectors atomically, compressed if the name ends in .gz, .bz2, .xz or .zst.

    Args:
        path: The file to write.
        content: Words and vectors; nothing else is written.
        replace: Whether an existing file is replaced.
        progress: Called in phase "save".
        binary: Write binary numbers; otherwise text, with the fewest digits that read back as the same float32.
        header: Write a first line with the numbers of rows and columns. GloVe's text does not have it.

    Raises:
        W2VError: If the file cannot be written, or if the format cannot represent a word.
    """
    blocks = encode_rows(path, content, binary=binary)
    if not header:
        _check_recognisable(path, content)
    meter, rows = Meter(progress, "save"), len(content.words)
    with atomic_write(path, replace) as plain, compress_by_name(path, plain) as file:
        if header:
            file.write(b"%d %d\n" % content.vectors.shape)
        for done, block in blocks:
            file.write(block)
            meter(done, rows)


def encode_rows(
    path: PathLike, content: VectorFile, *, binary: bool, separators: bytes = SEPARATORS
) -> Iterator[tuple[int, memoryview]]:
    """Return an iterator of (number of rows encoded so far, bytes of a block of rows). The header is not included.

    Args:
        path: The file, for error messages.
        content: Words and vectors.
        binary: Encode binary numbers instead of text.
        separators: Bytes that no word may contain. w2v reads text with spaces in words, but not every program does.

    Raises:
        W2VError: If the format cannot store the content. The error is raised before the first block is requested.
    """
    _check_words_fit(path, content.words, separators)
    return encode_blocks(content, binary)


def encode_blocks(content: VectorFile, binary: bool) -> Iterator[tuple[int, memoryview]]:
    """Yield blocks like `encode_rows`, without checking the content."""
    words, vectors = content.words, content.vectors
    columns = vectors.shape[1]
    fill = _formats.binary_format if binary else _formats.text_format
    row_size = 4 * columns + 2 if binary else 17 * columns + 1  # maximum, in bytes, without the word
    for start, block in bfloat16.float32_blocks(vectors, max(1, BLOCK_BYTES // row_size)):
        offsets = words.offsets[start : start + len(block) + 1]
        out = np.empty(len(block) * row_size + int(offsets[-1] - offsets[0]), np.uint8)
        yield start + len(block), out[: fill(block, words.blob, offsets, out)].data


def _check_recognisable(path: PathLike, content: VectorFile) -> None:
    """Raise W2VError if readers would not recognise this content as text vectors in a file without a header.

    For example, the first word may start with a byte order mark or with the signature of another file type, the first
    row may look like a header, a control character may look like binary data, and rows with a single number may look
    like word counts.
    """
    head = b""
    for _, block in encode_blocks(content, binary=False):
        head += block
        if len(head) >= HEAD_BYTES:
            break
    head = head[:HEAD_BYTES]
    expected = Layout("text", None, content.vectors.shape[1], 0)
    try:
        refuse_file_of_other_tool(path, head)
        is_readable = len(text_start(path, head)) == len(head) and recognise_layout(path, head) == expected
    except W2VError:
        is_readable = False
    if not is_readable:
        start = head[:40].decode(errors="replace")
        raise W2VError(
            f"{path}: not written: this format has no header, and a file that starts with {start!r} would be read as "
            "something else: use .vec or .safetensors"
        )


def compress_by_name(path: PathLike, file: BinaryIO) -> AbstractContextManager[Any]:
    """Return the file as a context manager that compresses if the path ends in .gz, .bz2, .xz or .zst."""
    match Path(path).suffix.lower():
        case ".gz":
            return gzip.GzipFile(filename="", mode="wb", compresslevel=1, fileobj=file, mtime=0)
        case ".bz2":
            return bz2.BZ2File(file, "wb")
        case ".xz":
            return lzma.LZMAFile(file, "wb")
        case ".zst":
            zstandard = import_optional("writing zstandard files needs the zstandard module", "zstd", "zstandard")
            writer: AbstractContextManager[Any] = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
            return writer
    return nullcontext(file)


def _check_words_fit(path: PathLike, words: Words, separators: bytes) -> None:
    """Raise W2VError for words that readers of word2vec files would split or lose."""
    words.check_lengths(f"{path}: not written")
    bad = np.flatnonzero(np.isin(words.blob, np.frombuffer(separators, np.uint8)))
    empty = np.flatnonzero(words.offsets[1:] == words.offsets[:-1])
    if len(bad) or len(empty):
        row = int(np.searchsorted(words.offsets, bad[0], side="right")) - 1 if len(bad) else int(empty[0])
        raise W2VError(
            f"{path}: not written: the word {words[row][:60]!r} is empty or contains white space, "
            "which this format cannot store: use .safetensors"
        )


# -- reading --------------------------------------------------------------------------------

_CODECS = {
    "binary": (_formats.binary_split, _formats.binary_parse),
    "text": (_formats.text_split, _formats.text_parse),
}


def is_binary(path: PathLike, head: bytes) -> bool:
    """Return True if a file that starts with `head` is binary.

    Raises:
        W2VError: If the file is not a word2vec file at all.
    """
    refuse_file_of_other_tool(path, head)
    return recognise_layout(path, head).kind == "binary"


def has_text_header(path: PathLike, head: bytes) -> bool:
    return recognise_layout(path, head).rows is not None


def lacks_text_header(path: PathLike, head: bytes) -> bool:
    """Return True for text without a header. `is_binary`, which is tried first, refuses binary files without one."""
    return not has_text_header(path, head)


def read(path: PathLike, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read a word2vec file, binary or text; see Format.read.

    The header is trusted only if the file is large enough for its number of rows. Otherwise, and without a header, the
    rows are counted first, so that no memory is reserved for rows that do not exist.
    """
    with open_unpacked(path) as (file, max_size):
        head = read_head(path, file)
        layout = recognise_layout(path, head)
        rows = layout.rows
        if rows is not None and layout.min_bytes(rows) <= max_size:
            return read_rows(path, layout, rows, file, head, limit, progress)
        complete = _count_rows(layout, file, head)
        if (rows is not None and complete < rows) or is_truncated(file):
            raise _truncated_error(path, complete, rows)
    with open_unpacked(path) as (file, _):
        return read_rows(path, layout, complete, file, read_head(path, file), limit, progress)


def _count_rows(layout: Layout, file: BufferedReader, head: bytes) -> int:
    split = _CODECS[layout.kind][0]

    def split_complete(data: Array, columns: int, limit: int, final: bool) -> tuple[int, int]:
        # With a header, do not count a last line without a newline: the file is truncated anyway.
        return split(data, columns, limit, final and layout.rows is None)

    return sum(rows for _, _, rows in RowBlocks(file, head[layout.start :], split_complete, layout.columns, 1 << 62))


def _truncated_error(path: PathLike, complete: int, rows: int | None) -> TruncatedFile:
    if rows is None:
        return TruncatedFile(f"{path}: truncated after {pluralise(complete, 'complete row')}")
    return TruncatedFile(f"{path}: truncated, or its header is wrong: {complete} of {rows} rows are complete")


def read_rows(
    path: PathLike,
    layout: Layout,
    rows: int,
    file: BufferedReader,
    head: bytes,
    limit: int | None,
    progress: Report | None,
) -> VectorFile:
    """Read rows with this layout from an open file. The words are not checked.

    Args:
        path: The file, for error messages.
        layout: The kind of rows and their columns.
        rows: The number of rows in the file.
        file: The file, read up to the end of `head`.
        head: The bytes of the file that were already read.
        limit: The maximum number of rows to read, or None for all.
        progress: Called in phase "load".

    Raises:
        W2VError: If the rows are truncated or malformed.
    """
    is_limited = limit is not None and limit < rows
    rows = rows if limit is None else min(rows, limit)
    split, parse = _CODECS[layout.kind]
    blocks = RowBlocks(file, head[layout.start :], split, layout.columns, rows)
    vectors: NDArray[np.float32] = memory.empty((rows, layout.columns))
    offsets = np.zeros(rows + 1, np.int64)  # the lengths of the words, summed at the end
    # The words of each block, by the first row of the block. They are mapped, since the allocator keeps what is freed.
    word_bytes: dict[int, mmap] = {}
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
            word_bytes[first] = mmap(-1, max(used, 1))
            word_bytes[first].write(words[:used].data)
            if bad >= 0:
                blocks.stop()
                in_last_line = bad == count - 1 and data[-1] != ord("\n")
                if lengths[bad] < 0 and in_last_line:
                    problems[first + bad] = _truncated_error(path, first + bad, layout.rows)
                else:
                    problem = _describe_problem(data, layout, bad, lengths[: bad + 1], words[:used].tobytes())
                    problems[first + bad] = W2VError(f"{path}: row {first + bad + 1} {problem}")

    meter = Meter(progress, "load")
    # For a short file, a second thread costs more than it saves.
    _parse_in_two_threads(parse_blocks, meter, blocks, single=len(head) < HEAD_BYTES)
    meter(rows, rows)
    if problems:
        raise problems[min(problems)]
    if blocks.rows < rows:
        raise _truncated_error(path, blocks.rows, rows)
    if not is_limited:
        _check_end(path, file, blocks.leftover, rows)
    np.cumsum(offsets, out=offsets)
    blob = np.empty(int(offsets[-1]), np.uint8)
    for first in sorted(word_bytes):
        with word_bytes.pop(first) as block_words:
            size = block_words.tell()
            blob[offsets[first] : offsets[first] + size] = np.frombuffer(block_words[:size], np.uint8)
    return VectorFile(Words(blob, offsets), vectors)


def _parse_in_two_threads(parse: Callable[[Meter | None], None], meter: Meter, blocks: RowBlocks, single: bool) -> None:
    """Parse blocks in this thread and, unless `single`, in another.

    More threads do not help, because memory bandwidth is the bottleneck.
    """
    with Pool(1) as pool:
        others = []
        if not single:
            with suppress(NoThread):
                others.append(pool.submit(parse, None))
        try:
            parse(meter)
        except BaseException:
            blocks.stop()
            raise
        for other in others:
            other.result()


def _check_end(path: PathLike, file: BufferedReader, leftover: bytes, rows: int) -> None:
    """Raise W2VError if anything but white space follows the last row, or if compressed data is truncated after it."""
    while leftover := leftover or file.read(BLOCK_BYTES):
        if leftover.strip():
            raise W2VError(f"{path}: wrong header: it declares {pluralise(rows, 'row')}, but more follow")
        leftover = b""
    if is_truncated(file):
        raise W2VError(f"{path}: truncated: its rows are complete, but the end of its compressed data is missing")


def _describe_problem(data: Array, layout: Layout, row: int, lengths: NDArray[np.int64], words: bytes) -> str:
    """Describe the problem of a row in a block; `words` and `lengths` are from the rows up to this one."""
    if lengths[row] < 0:
        lines = (line for line in data.tobytes().split(b"\n") if line.strip(b" \t\r"))
        return describe_row(next(islice(lines, row, None)), layout.columns)
    end = int(lengths.sum())
    word = words[end - int(lengths[row]) : end].decode(errors="replace")
    return f"({word[:60]!r}) holds NaN or infinite values"


# These formats match any text, so all others are asked before.
BINARY = Format(
    "word2vec binary",
    (".bin", ".bin.gz"),
    11,
    is_binary,
    read,
    partial(write, binary=True),
    is_checked=True,
    compressible=True,
    separators=SEPARATORS,
)
GLOVE = dataclasses.replace(
    BINARY,
    name="glove",
    extensions=(".glove.txt", ".glove.txt.gz"),
    order=12,
    matches=lacks_text_header,
    write=partial(write, binary=False, header=False),
)
TEXT = dataclasses.replace(
    BINARY,
    name="word2vec text",
    extensions=(".txt", ".vec", ".txt.gz", ".vec.gz"),
    order=13,
    matches=has_text_header,
    write=partial(write, binary=False),
)
