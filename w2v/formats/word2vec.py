"""Vector files: the formats of word2vec (binary, text; plain, gzip) and the native one (see w2v.native).

Files are recognised by content when read, and chosen by extension when written.
"""

import gzip
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from w2v import memory
from w2v.errors import SettingsError, W2VError
from w2v.files import Errors, PathLike, atomic_write
from w2v.formats import _formats, bfloat16
from w2v.formats.detect import SAMPLE, Layout, recognise
from w2v.formats.native import is_native, read_native, write_native
from w2v.formats.row_blocks import BLOCK, Blocks, is_cut, opened
from w2v.text.words import Words

THREADS = 2  # reading is bound by memory: more threads do not help

Array = NDArray[Any]


@dataclass(frozen=True)
class Stored:
    """What a vector file holds."""

    words: Words
    vectors: Array  # (V, D), float32 or bfloat16
    counts: NDArray[np.int64] | None = None  # (V,)
    tensors: dict[str, Array] = field(default_factory=dict)  # the other arrays of a native file
    metadata: dict[str, str] = field(default_factory=dict)


# -- writing --------------------------------------------------------------------------------


def format_of(path: PathLike) -> Literal["binary", "text", "native"]:
    """The format in which a file of this name is written. Raises SettingsError for an unknown extension."""
    name = Path(path).name.lower()
    if name.endswith(".safetensors"):
        return "native"
    if name.endswith((".bin", ".bin.gz")):
        return "binary"
    if name.endswith((".txt", ".vec", ".txt.gz", ".vec.gz")):
        return "text"
    raise SettingsError(
        f"{path}: its extension names no format: use .bin, .txt or .vec (with .gz too), or .safetensors"
    )


def write(path: PathLike, stored: Stored, replace: bool = True) -> None:
    """Write words and vectors, atomically, in the format that the extension of `path` names.

    Only the native format keeps counts, further tensors and metadata. Raises W2VError where the content does
    not fit the format, the system refuses, or the file is there already and not to `replace`; SettingsError for an
    unknown extension.
    """
    kind = format_of(path)
    if kind != "native":
        write_word2vec(path, stored.words, stored.vectors, kind == "binary", replace)
        return
    _check_content(path, stored.words, stored.vectors)
    tensors = {**stored.tensors, "vectors": stored.vectors}
    tensors |= {"words": stored.words.blob, "word_offsets": stored.words.offsets}
    if stored.counts is not None:
        tensors["counts"] = stored.counts
    write_native(path, tensors, stored.metadata, replace)


def write_word2vec(path: PathLike, words: Words, vectors: Array, binary: bool, replace: bool = True) -> None:
    """Write the format of word2vec, gzip-compressed where the name ends in .gz.

    Text has the fewest digits that read back as the same float32.
    """
    _check_content(path, words, vectors)
    _check_words_fit(path, words)
    rows, columns = vectors.shape
    fill = _formats.binary_format if binary else _formats.text_format
    row_size = 4 * columns + 2 if binary else 17 * columns + 1  # bytes at most, the word apart
    step = max(1, BLOCK // row_size)
    with atomic_write(path, replace) as plain, _packed(path, plain) as file:
        file.write(b"%d %d\n" % (rows, columns))
        for start in range(0, rows, step):
            block = np.ascontiguousarray(vectors[start : start + step], np.float32)
            offsets = words.offsets[start : start + len(block) + 1]
            out = np.empty(len(block) * row_size + int(offsets[-1] - offsets[0]), np.uint8)
            file.write(out[: fill(block, words.blob, offsets, out)].data)


def _packed(path: PathLike, file: BinaryIO) -> AbstractContextManager[Any]:
    if not Path(path).name.lower().endswith(".gz"):
        return nullcontext(file)
    return gzip.GzipFile(filename="", mode="wb", compresslevel=1, fileobj=file, mtime=0)


def _check_words_fit(path: PathLike, words: Words) -> None:
    """Refuse words that the readers of word2vec files would split or lose."""
    bad = np.flatnonzero(np.isin(words.blob, np.frombuffer(b" \t\n\r", np.uint8)))
    empty = np.flatnonzero(words.offsets[1:] == words.offsets[:-1])
    if len(bad) or len(empty):
        row = int(np.searchsorted(words.offsets, bad[0], side="right")) - 1 if len(bad) else int(empty[0])
        raise W2VError(
            f"{path}: not written: the word {words[row][:60]!r} is empty or holds white space, "
            "which this format cannot keep: use .safetensors"
        )


# -- reading --------------------------------------------------------------------------------


def read(path: PathLike, mmap: bool = False, errors: Errors = "strict") -> Stored:
    """Read a vector file of any format, recognised by its content.

    With `mmap` (native format only) arrays are read-only, and neither read nor checked before they are used.
    `errors` says what becomes of words that are not UTF-8, as in bytes.decode.
    Raises W2VError for a file that is missing, cut, inconsistent or of no known format, for NaN or infinite
    values and for a word that appears twice.
    """
    with opened(path) as (file, most):
        sample = file.read(SAMPLE)
        if not sample:
            raise W2VError(f"{path}: it is empty")
        if is_native(sample):
            return _read_native(path, mmap, errors)
        if mmap:
            raise W2VError(f"{path}: only .safetensors files open memory-mapped: `w2v convert` makes one of it")
        layout = recognise(path, sample)
        rows = layout.rows
        if rows is not None and layout.least_bytes(rows) <= most:
            return _read_rows(path, layout, rows, file, sample, errors)
        whole = _count_rows(layout, file, sample) if rows is not None or layout.least_bytes(1) < most else 0
        if whole >= rows if rows is not None else layout.least_bytes(whole - 1) > most:  # the last line may be cut
            raise W2VError(f"{path}: its {rows or whole} rows are too short for as many different words")
        if rows is not None or is_cut(file):
            raise _cut(path, whole, rows)
    with opened(path) as (file, _):
        return _read_rows(path, layout, whole, file, file.read(SAMPLE), errors)


_CODECS = {
    "binary": (_formats.binary_split, _formats.binary_parse),
    "text": (_formats.text_split, _formats.text_parse),
}


def _count_rows(layout: Layout, file: BufferedReader, sample: bytes) -> int:
    split = _CODECS[layout.kind][0]

    def whole(data: Array, columns: int, limit: int, final: bool) -> tuple[int, int]:
        # With a header the last line is taken for cut if it has no newline: there are too few bytes anyway.
        return split(data, columns, limit, final and layout.rows is None)

    blocks = Blocks(file, sample[layout.start :], whole, layout.columns, 1 << 62)
    return sum(block.rows for block in blocks)


def _cut(path: PathLike, whole: int, rows: int | None) -> W2VError:
    if rows is None:
        return W2VError(f"{path}: cut: its first {whole} rows are whole")
    return W2VError(f"{path}: cut, or its header is wrong: {whole} of {rows} rows are whole")


def _read_rows(
    path: PathLike, layout: Layout, rows: int, file: BufferedReader, sample: bytes, errors: Errors
) -> Stored:
    split, parse = _CODECS[layout.kind]
    blocks = Blocks(file, sample[layout.start :], split, layout.columns, rows)
    vectors: NDArray[np.float32] = memory.empty((rows, layout.columns))
    offsets = np.zeros(rows + 1, np.int64)  # lengths, until they are summed
    pieces: dict[int, bytes] = {}  # the words of the block that begins with this row
    wrong: dict[int, W2VError] = {}  # what is wrong with this row

    def work(_: int) -> None:
        words = np.empty(0, np.uint8)
        for data, first, count in blocks:
            if len(words) < len(data):
                words = np.empty(len(data), np.uint8)
            lengths = offsets[first + 1 : first + count + 1]
            used, bad = parse(data, vectors[first : first + count], words, lengths)
            pieces[first] = words[:used].tobytes()
            if bad >= 0:
                blocks.stop()
                in_last_line = bad == count - 1 and data[-1] != ord("\n")
                if lengths[bad] < 0 and in_last_line:
                    wrong[first + bad] = _cut(path, first + bad, layout.rows)
                else:
                    problem = _problem(data, layout, bad, lengths[: bad + 1], pieces[first])
                    wrong[first + bad] = W2VError(f"{path}: row {first + bad + 1} {problem}")

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    if wrong:
        raise wrong[min(wrong)]
    if blocks.rows < rows:
        raise _cut(path, blocks.rows, rows)
    rest = blocks.rest or file.read(BLOCK)
    while rest:
        if rest.strip():
            raise W2VError(f"{path}: wrong header: it says {rows} rows, but more follow")
        rest = file.read(BLOCK)
    if is_cut(file):
        raise W2VError(f"{path}: cut: its rows are whole, but its gzip data has no end")
    np.cumsum(offsets, out=offsets)
    blob = np.empty(int(offsets[-1]), np.uint8)
    for first in sorted(pieces):
        piece = np.frombuffer(pieces.pop(first), np.uint8)  # freed before the next is copied
        blob[offsets[first] : offsets[first] + len(piece)] = piece
    return Stored(_checked_words(path, Words(blob, offsets), errors), vectors)


def _problem(data: Array, layout: Layout, row: int, lengths: NDArray[np.int64], words: bytes) -> str:
    if lengths[row] < 0:
        lines = (line for line in data.tobytes().split(b"\n") if line.strip(b" \t\r"))
        line = next(islice(lines, row, None)).decode(errors="replace")
        return f"is not a word and {layout.columns} numbers: {line[:60]!r}"
    end = int(lengths.sum())
    word = words[end - int(lengths[row]) : end].decode(errors="replace")
    return f"({word[:60]!r}) holds NaN or infinite values"


def _read_native(path: PathLike, mmap: bool, errors: Errors) -> Stored:
    tensors, metadata = read_native(path, mmap)
    try:
        vectors, blob, offsets = (tensors.pop(name) for name in ("vectors", "words", "word_offsets"))
    except KeyError as error:
        raise W2VError(f"{path}: it holds no vectors: the array {error} is missing") from error
    counts = tensors.pop("counts", None)
    rows = len(vectors) if vectors.ndim == 2 else 0
    if (
        not bfloat16.is_kept(vectors) or not vectors.size
        or blob.dtype != np.uint8 or blob.ndim != 1
        or offsets.dtype != np.int64 or offsets.shape != (rows + 1,)
        or offsets[0] != 0 or offsets[-1] != len(blob)
        or (counts is not None and (counts.dtype != np.int64 or counts.shape != (rows,)))
    ):  # fmt: skip
        raise W2VError(f"{path}: damaged: its arrays do not fit together")
    words = Words(blob, offsets)
    if not mmap:
        if not words.fit():
            raise W2VError(f"{path}: damaged: its word offsets decrease")
        words = _checked_words(path, words, errors)
        _check_finite(path, words, vectors)
    return Stored(words, vectors, counts, tensors, metadata)


# -- checks ---------------------------------------------------------------------------------


def _check_content(path: PathLike, words: Words, vectors: Array) -> None:
    if vectors.ndim != 2 or not vectors.size or len(vectors) != len(words):
        raise W2VError(f"{path}: not written: {len(words)} words, vectors of shape {vectors.shape}")
    if not words.fit():
        raise W2VError(f"{path}: not written: the word offsets are damaged")
    _check_finite(path, words, vectors)
    _check_no_repeats(path, words)


def _check_finite(path: PathLike, words: Words, vectors: Array) -> None:
    row = bfloat16.first_not_finite(vectors)
    if row >= 0:
        raise W2VError(f"{path}: row {row + 1} ({words[row][:60]!r}) holds NaN or infinite values")


def _checked_words(path: PathLike, words: Words, errors: Errors) -> Words:
    """The words as UTF-8. Raises W2VError for one that is not (errors="strict") or that appears twice."""
    if not words.is_utf8():
        if errors == "strict":
            word = words.first_not_utf8()
            raise W2VError(
                f'{path}: the word {word[:60]!r} is not valid UTF-8: give --errors (errors=) "replace" or "ignore"'
            )
        words = words.decoded(errors)
    _check_no_repeats(path, words)
    return words


def _check_no_repeats(path: PathLike, words: Words) -> None:
    rows = words.repeated()
    if rows:
        first, second = rows
        raise W2VError(f"{path}: the word {words[first][:60]!r} appears twice, in rows {first + 1} and {second + 1}")
