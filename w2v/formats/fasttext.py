"""The model files of fastText: words and counts, input rows with those of n-grams, and output rows."""

from __future__ import annotations

import re
import shutil
import struct
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from w2v.errors import CutFile, W2VError
from w2v.formats.bfloat16 import blocks
from w2v.formats.header import ModelHeader
from w2v.formats.row_blocks import opened
from w2v.formats.vector_file import VectorFile, check_content, checked, checked_words
from w2v.formats.word_lists import Gathered
from w2v.progress import Meter, Report
from w2v.system import memory, schema
from w2v.system.files import FASTTEXT, Errors, PathLike, atomic_write, errors_named
from w2v.text.subword_rows import own_rows
from w2v.text.subwords import MAX_LENGTH, Ngrams, Subwords
from w2v.text.words import MAX_WORD_BYTES, Words

MAGIC, VERSION = 793712314, 12
# The numbers at the beginning: of fastText's arguments, then those of its dictionary.
NUMBERS = (
    "magic", "version", "vector_size", "window", "epochs", "min_count", "negative", "word_ngrams", "loss", "model",
    "buckets", "shortest", "longest", "update_rate", "sample", "entries", "words", "labels", "tokens", "pruned",
)  # fmt: skip
HEAD = struct.Struct("<14id3i2q")
OLD_HEAD = struct.Struct("<12id3iq")  # before version 11: without magic, version and pruned
ENTRY = struct.Struct("<qb")  # after a word that ends with NUL: its count and type
SHAPE = struct.Struct("<?qq")  # of a matrix: whether it is quantized, which old files do not say, rows, columns
LOSSES = {1: "hs", 2: "ns", 3: "softmax"}
MODELS = {1: "cbow", 2: "skipgram"}
SETTINGS = ("vector_size", "window", "epochs", "min_count", "sample")  # with the same names and meanings as ours
DEFAULTS = {
    "version": VERSION, "magic": MAGIC, "word_ngrams": 1, "update_rate": 100, "labels": 0, "pruned": -1, "epochs": 5,
    "min_count": 1, "sample": 1e-4,
}  # fmt: skip
ROWS_AT_ONCE = 1 << 12
MAX_COLUMNS = 1 << 20

Small = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]


@dataclass(frozen=True)
class _Settings:
    """The settings of w2v that a model of fastText states, too."""

    model: str | None = None
    loss: str | None = None
    vector_size: Small | None = None
    window: Small | Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,9}(,[0-9]{1,9})?\Z")] | None = None
    epochs: Small | Literal["auto"] | None = None
    min_count: Small | None = None
    negative: Small | None = None
    sample: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None


# -- reading --------------------------------------------------------------------------------


def read(path: PathLike, errors: Errors | None, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read a model; see formats.table.read. Those of classifiers and quantized ones (.ftz) are refused.

    The vectors are the means of the words' own rows and those of their n-grams. The output rows of hierarchical softmax
    are left out: they belong to the nodes of fastText's tree. Files of the first versions have no signature.
    """
    with opened(path) as (file, max_size):
        old = not re.match(FASTTEXT, file.peek(HEAD.size))
        head, names = (OLD_HEAD, NUMBERS[2:-1]) if old else (HEAD, NUMBERS)
        found = DEFAULTS | dict(zip(names, head.unpack(_exactly(path, file, head.size)), strict=True))
        if old and (found["model"] not in MODELS or found["loss"] not in LOSSES):
            raise W2VError(f"{path}: not a model of fastText")
        _check_numbers(path, found)
        words, size, buckets = found["words"], found["vector_size"], found["buckets"]
        if 4 * (words + buckets) * size > max_size:
            raise CutFile(f"{path}: cut: it should hold {words + buckets:,} rows of {size:,} values")
        entries, counts = _entries(path, file, words)
        entries = checked_words(path, entries, errors)
        meter = Meter(progress, "load")
        _check_shape(path, file, words + buckets, size, old)
        vectors = _rows(path, file, words, size)
        meter(words, 2 * words + buckets)
        kept, places = [np.empty((0, size), np.float32)], [np.empty(0, np.int32)]
        for start in range(0, buckets, ROWS_AT_ONCE):
            block = _rows(path, file, min(ROWS_AT_ONCE, buckets - start), size)
            used = np.flatnonzero(block.any(axis=1))
            kept.append(block[used])
            places.append((start + used).astype(np.int32))
            meter(words + start, 2 * words + buckets)
        tensors = {}
        if LOSSES[found["loss"]] != "hs":
            _check_shape(path, file, words, size, old)
            outputs = _rows(path, file, words, size)
            tensors = {"outputs": outputs} if outputs.any() else {}  # zeros stand for none
        meter(2 * words + buckets, 2 * words + buckets)
    settings = {name: found[name] for name in SETTINGS} | {"negative": max(1, found["negative"]), "vectors": "input"}
    settings |= {"model": MODELS[found["model"]], "loss": LOSSES[found["loss"]]}
    ngrams = None
    shortest, longest = max(1, found["shortest"]), found["longest"]
    if buckets and shortest <= longest:
        ngrams = Ngrams(Subwords(shortest, longest, buckets), np.concatenate(places), np.concatenate(kept))
        ngrams.compose(entries, vectors)  # what is infinite or NaN is refused below
        tensors |= ngrams.tensors
        settings |= {"subwords": f"{shortest}-{longest}", "buckets": buckets}
    header = ModelHeader(settings=settings, subwords=ngrams.subwords if ngrams else None)
    return checked(path, VectorFile(entries, vectors, counts, tensors, header), None)


def _check_numbers(path: PathLike, found: dict[str, int]) -> None:
    """Raise W2VError for the numbers of a model that cannot be read."""
    if found["version"] not in (VERSION - 1, VERSION):  # which differ for classifiers alone
        raise W2VError(f"{path}: a fastText model of version {found['version']}: this w2v reads version {VERSION}")
    if found["model"] not in MODELS or found["loss"] not in LOSSES or found["labels"]:
        raise W2VError(f"{path}: a fastText classifier: w2v reads models of `fasttext skipgram` and `fasttext cbow`")
    if found["pruned"] != DEFAULTS["pruned"]:
        raise W2VError(f"{path}: a quantized fastText model: give the .bin file that it was made from")
    if found["words"] < 1 or not 1 <= found["vector_size"] <= MAX_COLUMNS or found["buckets"] < 0:
        raise W2VError(f"{path}: damaged: it says {found['words']} words, {found['vector_size']} values")
    if found["longest"] > MAX_LENGTH:
        raise W2VError(f"{path}: refused: n-grams of {found['longest']:,} characters; at most {MAX_LENGTH} are read")


def _exactly(path: PathLike, file: BufferedReader, size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise CutFile(f"{path}: cut")
    return content


def _entries(path: PathLike, file: BufferedReader, words: int) -> tuple[Words, NDArray[np.int64]]:
    """The words and their counts, int64 (V,)."""
    names, counts = Gathered(words), np.empty(words, np.int64)
    for row in range(words):
        names.add(_word(path, file))
        counts[row], _ = ENTRY.unpack(_exactly(path, file, ENTRY.size))
    return names.words, counts


def _word(path: PathLike, file: BufferedReader) -> bytes:
    word = b""
    while len(word) <= MAX_WORD_BYTES:
        ahead = file.peek(1)
        if not ahead:
            raise CutFile(f"{path}: cut among its words")
        end = ahead.find(b"\0")
        word += file.read(end + 1 or len(ahead))
        if end >= 0:
            return word[:-1]
    raise W2VError(f"{path}: damaged: the word {word[:60]!r}… has more than {MAX_WORD_BYTES:,} bytes")


def _check_shape(path: PathLike, file: BufferedReader, rows: int, columns: int, old: bool) -> None:
    """Read what stands before a matrix. Raises W2VError if it is quantized or has another shape."""
    quantized, *shape = SHAPE.unpack(b"\0" * old + _exactly(path, file, SHAPE.size - old))
    if quantized or shape != [rows, columns]:
        raise W2VError(f"{path}: damaged: a matrix of {shape[0]} by {shape[1]} values; expected {rows} by {columns}")


def _rows(path: PathLike, file: BufferedReader, rows: int, columns: int) -> NDArray[np.float32]:
    matrix: NDArray[np.float32] = memory.empty((rows, columns))
    if file.readinto(matrix.reshape(-1).view(np.uint8).data) != matrix.nbytes:
        raise CutFile(f"{path}: cut in a matrix")
    return matrix


# -- writing --------------------------------------------------------------------------------


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a model that fastText loads, atomically; it makes the same vectors of known and unknown words.

    A model without n-grams becomes one of `-maxn 0`. Output rows are zero unless row w belongs to word w, and the word
    vectors are the input rows. Raises W2VError if the file cannot be written, a word holds a NUL, or the vectors are
    not those that the n-grams make up.
    """
    check_content(path, content)
    words, vectors = content.words, content.vectors
    if words.contain_any(b"\0"):
        raise W2VError(f"{path}: not written: a word holds a NUL, which this format cannot store")
    if "ngrams" in content.tensors and "inputs" in content.tensors:
        raise W2VError(f"{path}: not written: fastText makes vectors of n-grams alone: add --vectors input")
    ngrams = Ngrams.from_file(content.tensors, content.header.subwords, vectors.shape[1], path)
    settings = asdict(schema.checked(_Settings, content.header.settings or {}, f"{path}: not written: its settings"))
    counts = np.ones(len(words), np.int64) if content.counts is None else content.counts
    window = str(settings.get("window") or 5).split(",")  # before and after the centre word
    known = {name: settings[name] for name in SETTINGS if settings[name] not in (None, "auto")}
    numbers = DEFAULTS | known | {"vector_size": vectors.shape[1], "window": max(map(int, window))}
    numbers |= {"entries": len(words), "words": len(words), "tokens": int(counts.sum())}
    losses = {name: number for number, name in LOSSES.items()}
    numbers |= {"loss": losses.get(settings["loss"] or "", losses["ns"]), "negative": settings["negative"] or 5}
    numbers |= {"model": 1 if settings["model"] == "cbow" else 2, "buckets": 0, "shortest": 0, "longest": 0}
    own = vectors
    if ngrams:
        kind = ngrams.subwords
        numbers |= {"buckets": kind.buckets, "shortest": kind.shortest, "longest": kind.longest}
        own = own_rows(vectors, words, ngrams)
    outputs = content.tensors.get("outputs", vectors[:0])
    if settings["loss"] not in ("ns", "softmax") or len(outputs) != len(words) or "inputs" in content.tensors:
        outputs = np.broadcast_to(np.float32(0), vectors.shape)
    buckets = int(numbers["buckets"])
    size = 4 * vectors.shape[1] * (2 * len(words) + buckets)
    with errors_named(path):
        free = shutil.disk_usage(Path(path).resolve().parent).free
    if size > free:
        rows = f"a row for each of {buckets:,} buckets"
        raise W2VError(f"{path}: not written: with {rows}, it takes {size:,} bytes, and {free:,} are free")
    meter, total = Meter(progress, "save"), len(words) + buckets
    with atomic_write(path, replace) as file:
        file.write(HEAD.pack(*(numbers[name] for name in NUMBERS)))
        for word, count in zip(words, counts.tolist(), strict=True):
            file.write(word.encode() + b"\0" + ENTRY.pack(count, 0))
        file.write(SHAPE.pack(False, total, vectors.shape[1]))
        for start, block in blocks(own, ROWS_AT_ONCE):
            file.write(block.data)
            meter(start, total)
        for start in range(0, buckets, ROWS_AT_ONCE):
            assert ngrams
            part = ngrams.of(np.arange(start, min(start + ROWS_AT_ONCE, buckets), dtype=np.int32))
            file.write(np.ascontiguousarray(part, np.float32).data)
            meter(len(words) + start, total)
        file.write(SHAPE.pack(False, len(words), vectors.shape[1]))
        for _, block in blocks(outputs, ROWS_AT_ONCE):
            file.write(block.data)
        meter(total, total)
