"""fastText model files: words with their counts, input rows of words and n-gram buckets, and output rows."""

from __future__ import annotations

import re
import struct
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from w2v.errors import TruncatedFile, W2VError
from w2v.formats.base import SUBWORDS, Format, has_signature
from w2v.formats.bfloat16 import float32_blocks
from w2v.formats.header import ModelHeader
from w2v.formats.row_blocks import open_unpacked
from w2v.formats.vector_file import SUBWORD_VIEW, VectorFile
from w2v.formats.word_lists import WordBuilder
from w2v.progress import Meter, Report
from w2v.settings import MAX_SENTENCE_CONTEXT, WHOLE_SENTENCE
from w2v.system import memory, schema
from w2v.system.files import FASTTEXT, PathLike, atomic_write, check_disk_space, translate_os_errors
from w2v.text.subword_rows import own_rows
from w2v.text.subwords import MAX_LENGTH, Ngrams, Subwords
from w2v.text.words import MAX_WORD_BYTES, Words

MAGIC, VERSION = 793712314, 12
# The fields at the beginning of a file: fastText's arguments, then the sizes of its dictionary.
FIELDS = (
    "magic", "version", "vector_size", "window", "epochs", "min_count", "negative", "word_ngrams", "loss", "model",
    "buckets", "shortest", "longest", "update_rate", "sample", "entries", "words", "labels", "tokens", "pruned",
)  # fmt: skip
HEAD = struct.Struct("<14id3i2q")
OLD_HEAD = struct.Struct("<12id3iq")  # fastText before format version 11 wrote no magic, version and pruned
ENTRY = struct.Struct("<qb")  # the count and type of a word; they follow its bytes and a NUL
MATRIX_HEAD = struct.Struct("<?qq")  # whether a matrix is quantized (not in old files), its rows and columns
LOSSES = {1: "hs", 2: "ns", 3: "softmax"}
MODELS = {1: "cbow", 2: "skipgram"}
SHARED_SETTINGS = ("vector_size", "window", "epochs", "min_count", "sample")  # they mean the same in fastText and w2v
DEFAULTS = {
    "version": VERSION, "magic": MAGIC, "word_ngrams": 1, "update_rate": 100, "labels": 0, "pruned": -1, "epochs": 5,
    "min_count": 1, "sample": 1e-4,
}  # fmt: skip
MIN_SAMPLE = 1e-300  # floret stores two more ints, so that two of its ints look like a far smaller `sample`
BLOCK_ROWS = 1 << 12
MAX_COLUMNS = 1 << 20

UInt31 = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]


@dataclass(frozen=True)
class _Settings:
    """The settings that w2v and fastText models share."""

    model: str | None = None
    loss: str | None = None
    vector_size: UInt31 | None = None
    window: UInt31 | Annotated[str, msgspec.Meta(pattern=r"\A([0-9]{1,9}(,[0-9]{1,9})?|all)\Z")] | None = None
    epochs: UInt31 | Literal["auto"] | None = None
    min_count: UInt31 | None = None
    negative: UInt31 | None = None
    sample: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None


# -- reading --------------------------------------------------------------------------------


def read(path: PathLike, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read a model; see Format.read.

    The vector of a word is the mean of its own row and the rows of its n-grams. Output rows of hierarchical softmax are
    skipped: they belong to the nodes of fastText's tree. Files of the first fastText versions have no signature.

    Raises:
        W2VError: If the file is not a fastText model, is damaged, or holds a classifier or a quantized model (.ftz).
    """
    with open_unpacked(path) as (file, max_size):
        is_old = not re.match(FASTTEXT, file.peek(HEAD.size))
        head, names = (OLD_HEAD, FIELDS[2:-1]) if is_old else (HEAD, FIELDS)
        fields = DEFAULTS | dict(zip(names, head.unpack(_read_exactly(path, file, head.size)), strict=True))
        if is_old and (fields["model"] not in MODELS or fields["loss"] not in LOSSES):
            raise W2VError(f"{path}: not a fastText model")
        _check_fields(path, fields)
        words, size, buckets = fields["words"], fields["vector_size"], fields["buckets"]
        if 4 * words * size > max_size:  # the rows of buckets are read in blocks
            raise TruncatedFile(f"{path}: truncated: it should hold {words + buckets:,} rows of {size:,} values")
        entries, counts = _read_entries(path, file, words)
        meter = Meter(progress, "load")
        _read_matrix_head(path, file, words + buckets, size, is_old)
        vectors = _read_rows(path, file, words, size)
        meter(words, 2 * words + buckets)
        # Drop buckets with a row of zeros. `write` writes such a row for each bucket that no n-gram uses.
        bucket_rows, used_buckets = [np.empty((0, size), np.float32)], [np.empty(0, np.int32)]
        for start in range(0, buckets, BLOCK_ROWS):
            block = _read_rows(path, file, min(BLOCK_ROWS, buckets - start), size)
            used = np.flatnonzero(block.any(axis=1))
            bucket_rows.append(block[used])
            used_buckets.append((start + used).astype(np.int32))
            meter(words + start, 2 * words + buckets)
        tensors = {}
        if LOSSES[fields["loss"]] != "hs":
            _read_matrix_head(path, file, words, size, is_old)
            outputs = _read_rows(path, file, words, size)
            # `write` writes zeros for a model without output rows.
            tensors = {"outputs": outputs} if outputs.any() else {}
        meter(2 * words + buckets, 2 * words + buckets)
    settings = {name: fields[name] for name in SHARED_SETTINGS}
    settings |= {"model": MODELS[fields["model"]], "loss": LOSSES[fields["loss"]]}
    settings |= {"negative": max(1, fields["negative"]), "vectors": "input"}
    ngrams = None
    shortest, longest = max(1, fields["shortest"]), fields["longest"]
    if buckets and shortest <= longest:
        ngrams = Ngrams(Subwords(shortest, longest, buckets), np.concatenate(used_buckets), np.concatenate(bucket_rows))
        ngrams.compose(entries, vectors)  # `validate` refuses NaN and infinite results
        tensors |= ngrams.tensors
        settings |= {"subwords": f"{shortest}-{longest}", "buckets": buckets}
    header = ModelHeader(settings=settings, subwords=ngrams.subwords if ngrams else None)
    return VectorFile(entries, vectors, counts, tensors, header)


def map_matrices(path: PathLike) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
    """Map the matrices of a model that `read` accepts into memory, read-only: they are at the end of the file.

    Returns:
        The rows of the words and of all buckets, (V + buckets, D), and the rows of the output layer, (V, D). None if
        the file is compressed or of an old version.
    """
    with translate_os_errors(path), Path(path).open("rb") as file:
        head = file.read(HEAD.size)
    if not re.match(FASTTEXT, head):
        return None
    fields = dict(zip(FIELDS, HEAD.unpack(head), strict=True))
    words, size = fields["words"], fields["vector_size"]
    rows = words + fields["buckets"]
    outputs_at = Path(path).stat().st_size - 4 * words * size
    inputs_at = outputs_at - MATRIX_HEAD.size - 4 * rows * size
    inputs = np.memmap(path, np.float32, "r", inputs_at, (rows, size))
    return inputs, np.memmap(path, np.float32, "r", outputs_at, (words, size))


def _check_fields(path: PathLike, fields: dict[str, int]) -> None:
    """Raise W2VError if the fields at the beginning of a file describe a model that w2v does not read."""
    if fields["version"] not in (VERSION - 1, VERSION):  # they differ only for classifiers
        raise W2VError(f"{path}: a fastText model of version {fields['version']}: this w2v reads version {VERSION}")
    if 0 < fields["sample"] < MIN_SAMPLE:
        raise W2VError(f"{path}: a floret model: save its vectors as .vec with floret, and give that file")
    if fields["model"] not in MODELS or fields["loss"] not in LOSSES or fields["labels"]:
        raise W2VError(f"{path}: a fastText classifier: w2v reads models of `fasttext skipgram` and `fasttext cbow`")
    if fields["pruned"] != DEFAULTS["pruned"]:
        raise W2VError(f"{path}: a quantized fastText model: give the .bin file that it was made from")
    if fields["words"] < 1 or not 1 <= fields["vector_size"] <= MAX_COLUMNS or fields["buckets"] < 0:
        raise W2VError(
            f"{path}: damaged: it declares {fields['words']} words and {fields['vector_size']} values per word"
        )
    if fields["longest"] > MAX_LENGTH:
        raise W2VError(f"{path}: refused: n-grams of {fields['longest']:,} characters; at most {MAX_LENGTH} are read")


def _read_exactly(path: PathLike, file: BufferedReader, size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise TruncatedFile(f"{path}: truncated")
    return content


def _read_entries(path: PathLike, file: BufferedReader, words: int) -> tuple[Words, NDArray[np.int64]]:
    """Read the words and their counts, int64 (V,)."""
    names, counts = WordBuilder(words), np.empty(words, np.int64)
    for row in range(words):
        names.add(_read_word(path, file))
        counts[row], _ = ENTRY.unpack(_read_exactly(path, file, ENTRY.size))
    return names.words, counts


def _read_word(path: PathLike, file: BufferedReader) -> bytes:
    word = b""
    while len(word) <= MAX_WORD_BYTES:
        ahead = file.peek(1)
        if not ahead:
            raise TruncatedFile(f"{path}: truncated among its words")
        end = ahead.find(b"\0")
        word += file.read(end + 1 or len(ahead))
        if end >= 0:
            return word[:-1]
    raise W2VError(f"{path}: damaged: the word {word[:60]!r}… has more than {MAX_WORD_BYTES:,} bytes")


def _read_matrix_head(path: PathLike, file: BufferedReader, rows: int, columns: int, is_old: bool) -> None:
    """Read the head of a matrix. Raise W2VError if the matrix is quantized or has another shape."""
    quantized, *shape = MATRIX_HEAD.unpack(b"\0" * is_old + _read_exactly(path, file, MATRIX_HEAD.size - is_old))
    if quantized or shape != [rows, columns]:
        raise W2VError(f"{path}: damaged: a matrix of {shape[0]} by {shape[1]} values; expected {rows} by {columns}")


def _read_rows(path: PathLike, file: BufferedReader, rows: int, columns: int) -> NDArray[np.float32]:
    matrix: NDArray[np.float32] = memory.empty((rows, columns))
    if file.readinto(matrix.reshape(-1).view(np.uint8).data) != matrix.nbytes:
        raise TruncatedFile(f"{path}: truncated in a matrix")
    return matrix


# -- writing --------------------------------------------------------------------------------


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a model atomically. fastText computes the same vectors from it, for known and unknown words.

    A model without n-grams is written as fastText writes it with `-maxn 0`. Output rows are written if the model has
    one for each word (loss ns or softmax) and its word vectors are the input rows; otherwise, zeros are written. If a
    model has several views, the view with n-grams is written.

    Raises:
        W2VError: If the file cannot be written, if a word holds a NUL, or if fastText would compute other vectors from
            the n-grams.
    """
    if content.header.views:
        content = content.view(SUBWORD_VIEW, path)
    words, vectors = content.words, content.vectors
    if words.contain_any(b"\0"):
        raise W2VError(f"{path}: not written: a word holds a NUL, which this format cannot store")
    if "ngrams" in content.tensors and "inputs" in content.tensors:
        raise W2VError(
            f"{path}: not written: fastText computes vectors from input rows and n-grams, not from output rows: "
            "add --vectors input"
        )
    if content.header.ngram_offset:
        raise W2VError(f"{path}: not written: fastText computes whole vectors from n-grams, not only a part of them")
    ngrams = Ngrams.from_file(content.tensors, content.header.subwords, vectors.shape[1], path)
    settings = asdict(schema.convert(_Settings, content.header.settings or {}, f"{path}: not written: its settings"))
    counts = np.ones(len(words), np.int64) if content.counts is None else content.counts
    window = str(settings.get("window") or 5).replace(WHOLE_SENTENCE, str(MAX_SENTENCE_CONTEXT)).split(",")
    shared = {name: settings[name] for name in SHARED_SETTINGS if settings[name] not in (None, "auto")}
    fields = DEFAULTS | shared | {"vector_size": vectors.shape[1], "window": max(map(int, window))}
    fields |= {"entries": len(words), "words": len(words), "tokens": int(counts.sum())}
    losses = {name: number for number, name in LOSSES.items()}
    fields |= {"loss": losses.get(settings["loss"] or "", losses["ns"]), "negative": settings["negative"] or 5}
    fields |= {"model": 1 if settings["model"] == "cbow" else 2, "buckets": 0, "shortest": 0, "longest": 0}
    word_rows = vectors
    if ngrams:
        subwords = ngrams.subwords
        fields |= {"buckets": subwords.buckets, "shortest": subwords.shortest, "longest": subwords.longest}
        word_rows = own_rows(vectors, words, ngrams)
    outputs = content.tensors.get("outputs", vectors[:0])
    if settings["loss"] not in ("ns", "softmax") or len(outputs) != len(words) or "inputs" in content.tensors:
        outputs = np.broadcast_to(np.float32(0), vectors.shape)
    buckets = int(fields["buckets"])
    size = 4 * vectors.shape[1] * (2 * len(words) + buckets)
    meter, total = Meter(progress, "save"), len(words) + buckets
    with atomic_write(path, replace) as file:
        check_disk_space(file, Path(path).resolve().parent, size, f"a file with a row for each of {buckets:,} buckets")
        file.write(HEAD.pack(*(fields[name] for name in FIELDS)))
        for word, count in zip(words, counts.tolist(), strict=True):
            file.write(word.encode() + b"\0" + ENTRY.pack(count, 0))
        file.write(MATRIX_HEAD.pack(False, total, vectors.shape[1]))
        for start, block in float32_blocks(word_rows, BLOCK_ROWS):
            file.write(block.data)
            meter(start, total)
        for start in range(0, buckets, BLOCK_ROWS):
            assert ngrams
            part = ngrams.rows_of(np.arange(start, min(start + BLOCK_ROWS, buckets), dtype=np.int32))
            file.write(np.ascontiguousarray(part, np.float32).data)
            meter(len(words) + start, total)
        file.write(MATRIX_HEAD.pack(False, len(words), vectors.shape[1]))
        for _, block in float32_blocks(outputs, BLOCK_ROWS):
            file.write(block.data)
        meter(total, total)


FORMAT = Format(
    "fasttext",
    (".ft.bin",),
    2,
    has_signature(FASTTEXT),
    read,
    write,
    stores=("counts", "outputs", *SUBWORDS),
    view=SUBWORD_VIEW,
    compressible=True,
)
