"""fastText model files: words, labels, input rows of words and n-gram buckets, and output rows."""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from io import BufferedReader, FileIO
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import TruncatedFile, W2VError, translate_errors
from w2v._formats.base import SUBWORDS, Format, has_signature
from w2v._formats.bfloat16 import float32_blocks
from w2v._formats.header import LabelHeader, ModelHeader
from w2v._formats.product_quantiser import CENTROIDS, QuantisedMatrix
from w2v._formats.row_blocks import open_unpacked
from w2v._formats.storage import join_rows
from w2v._formats.vector_file import SUBWORD_VIEW, VectorFile, validate
from w2v._formats.word_lists import WordBuilder
from w2v._progress import Meter, Report
from w2v._settings import MAX_SENTENCE_CONTEXT, WHOLE_SENTENCE
from w2v._system import memory
from w2v._system.files import FASTTEXT, Errors, PathLike, atomic_write, check_disk_space, translate_os_errors
from w2v._text.examples import NGRAM_ROWS
from w2v._text.labels import LabelOptions, label_of, label_token
from w2v._text.subword_rows import own_rows
from w2v._text.subwords import MAX_LENGTH, Ngrams, Subwords
from w2v._text.words import MAX_WORD_BYTES, Words

MAGIC, VERSION = 793712314, 12
# The fields at the beginning of a file: fastText's arguments, then the sizes of its dictionary.
FIELDS = (
    "magic", "version", "vector_size", "window", "epochs", "min_count", "negative", "word_ngrams", "loss", "model",
    "buckets", "shortest", "longest", "update_rate", "sample", "entries", "words", "labels", "tokens", "pruned",
)  # fmt: skip
HEAD = struct.Struct("<14id3i2q")
OLD_HEAD = struct.Struct("<12id3iq")  # fastText before format version 11 wrote no magic, version and pruned
ENTRY = struct.Struct("<qb")  # the count and type of a word; they follow its bytes and a NUL
MIN_ENTRY_BYTES = 1 + ENTRY.size
# A matrix begins with a byte, whether it is quantized (not in old files), and the numbers of its rows and columns.
DENSE, MATRIX_HEAD = b"\0", struct.Struct("<qq")
INT, QUANTIZER = struct.Struct("<i"), struct.Struct("<4i")
MAX_CODES = (1 << 31) - 1  # a file stores their number as an int
MAX_PART_SIZE = 64  # values that a code stands for; with more, a small file could take any amount of memory
LOSSES = {1: "hs", 2: "ns", 3: "softmax", 4: "ova"}
MODELS, CLASSIFIER = {1: "cbow", 2: "skipgram"}, 3
MAX_PRUNED_BUCKETS = 1 << 26  # each takes 4 bytes of memory, but none of the file
MAX_WORDS = 10  # of an n-gram; see LabelOptions
SHARED_SETTINGS = ("vector_size", "window", "epochs", "min_count", "sample")  # they mean the same in fastText and w2v
DEFAULTS = {
    "version": VERSION, "magic": MAGIC, "word_ngrams": 1, "update_rate": 100, "labels": 0, "pruned": -1, "epochs": 5,
    "min_count": 1, "sample": 1e-4,
}  # fmt: skip
LABEL_PARTS = ("labels", "label_offsets", "label_counts", "text_buckets", NGRAM_ROWS)
MIN_SAMPLE = 1e-300  # floret stores two more ints, so that two of its ints look like a far smaller `sample`
BLOCK_ROWS = 1 << 12
MAX_COLUMNS = 1 << 20

# -- reading --------------------------------------------------------------------------------


def read(
    path: PathLike, limit: int | None = None, progress: Report | None = None, is_mapped: bool = False
) -> VectorFile:
    """Read a model; see Format.read. With `is_mapped`, map the input rows of a classifier into memory if possible.

    The vector of a word is the mean of its own row and the rows of its n-grams; in a classifier, it is its own row.
    Quantized matrices are decoded. Output rows of hierarchical softmax over words are skipped: they belong to the nodes
    of fastText's tree. Files of the first fastText versions have no signature.

    Raises:
        W2VError: If the file is not a fastText model, or is damaged.
    """
    with open_unpacked(path) as (file, max_size):
        is_old = not re.match(FASTTEXT, file.peek(HEAD.size))
        head, names = (OLD_HEAD, FIELDS[2:-1]) if is_old else (HEAD, FIELDS)
        fields = DEFAULTS | dict(zip(names, head.unpack(_read_exactly(path, file, head.size)), strict=True))
        if is_old and (fields["model"] not in MODELS or fields["loss"] not in LOSSES):
            raise W2VError(f"{path}: not a fastText model")
        _check_fields(path, fields)
        words, labels, size = fields["words"], fields["labels"], fields["vector_size"]
        if MIN_ENTRY_BYTES * (words + labels) > max_size:
            raise TruncatedFile(f"{path}: truncated: it should hold {words + labels:,} words and labels")
        entries, counts = _read_entries(path, file, words, 0)
        label_entries = _read_entries(path, file, labels, 1)
        pruned = _read_pruned(path, file, fields, max_size) if fields["pruned"] >= 0 else None
        buckets = fields["buckets"] if pruned is None else len(pruned)
        meter, total = Meter(progress, "load"), words + buckets + (labels or words)
        shape = words + buckets, size
        fill, codes = _open_matrix(path, file, shape, max_size, not is_old, bool(labels))
        if pruned is not None and not codes:
            raise W2VError(f"{path}: damaged: n-grams were pruned, but it is not quantized")
        is_mapped = is_mapped and labels > 0 and not codes and isinstance(file.raw, FileIO)
        inputs: NDArray[np.float32] = _map_rows(path, file, shape) if is_mapped else memory.empty(shape)
        vectors, end = inputs[:words], words
        if not is_mapped:
            fill(vectors)
        meter(words, total)
        # Drop buckets with a row of zeros. `write` writes such a row for each bucket that no n-gram uses.
        used_buckets = [np.arange(buckets if is_mapped else 0, dtype=np.int32)]
        for start in range(0, 0 if is_mapped else buckets, BLOCK_ROWS):
            block = inputs[end : end + min(BLOCK_ROWS, buckets - start)]
            fill(block)
            used = np.arange(len(block)) if pruned is not None else np.flatnonzero(block.any(axis=1))
            block[: len(used)] = block[used]
            end += len(used)
            used_buckets.append((start + used).astype(np.int32) if pruned is None else pruned[start + used])
            meter(words + start, total)
        rows, bucket_numbers = inputs[words : None if is_mapped else end], np.concatenate(used_buckets)
        has_outputs = labels or LOSSES[fields["loss"]] != "hs"
        outputs: NDArray[np.float32] = memory.empty(((labels or words) if has_outputs else 0, size))
        if has_outputs:
            fill, output_codes = _open_matrix(path, file, outputs.shape, max_size, not is_old, codes is not None)
            fill(outputs)
        meter(total, total)
    if labels:
        tensors: dict[str, NDArray[Any]] = {NGRAM_ROWS: rows, "text_buckets": bucket_numbers, "outputs": outputs}
        header = _classifier_header(fields, *label_entries, tensors)
        return VectorFile(entries, vectors, counts, tensors, header, (codes, output_codes) if codes else None)
    # `write` writes zeros for a model without output rows.
    tensors = {"outputs": outputs} if outputs.any() else {}
    settings = {name: fields[name] for name in SHARED_SETTINGS}
    settings |= {"model": MODELS[fields["model"]], "loss": LOSSES[fields["loss"]]}
    settings |= {"negative": max(1, fields["negative"]), "vectors": "input"}
    ngrams = None
    if subwords := _subwords(fields):
        ngrams = Ngrams(subwords, bucket_numbers, rows)
        ngrams.compose(entries, vectors)  # `validate` refuses NaN and infinite results
        tensors |= ngrams.tensors
        settings |= {"subwords": f"{subwords.shortest}-{subwords.longest}", "buckets": subwords.buckets}
    header = ModelHeader(settings=settings, subwords=subwords)
    return VectorFile(entries, vectors, counts, tensors, header)


def read_mapped(path: PathLike, errors: Errors = "strict") -> VectorFile:
    """Read a classifier, and map its rows into memory. Their values are not checked.

    Quantized and compressed classifiers are read.

    Raises:
        W2VError: As in `read`, or if the model is not a classifier.
    """
    content = read(path, is_mapped=True)
    if not content.header.labels:
        raise W2VError(f"{path}: a fastText model of words cannot be memory-mapped: convert it with `w2v convert`")
    return validate(path, content, errors, is_checked=True)


def _subwords(fields: dict[str, int]) -> Subwords | None:
    """Return the n-grams of characters that a model uses, or None."""
    shortest, longest = max(1, fields["shortest"]), fields["longest"]
    is_used = fields["buckets"] and shortest <= longest
    return Subwords(shortest, longest, fields["buckets"]) if is_used else None


def _classifier_header(
    fields: dict[str, int], labels: Words, counts: NDArray[np.int64], tensors: dict[str, NDArray[Any]]
) -> ModelHeader:
    """Return the header of a classifier, and add its labels to its tensors.

    A file does not store the prefix of labels. It is "__label__" if all labels begin with it, or else the beginning
    that they share, up to a character that is neither a letter nor a digit.
    """
    names = list(labels)
    prefix = LabelOptions.label_prefix
    if not all(name.startswith(prefix) for name in names):
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False))
        shared = re.match(r".*[\W_]", "".join(first for first, _ in pairs))
        prefix = shared[0] if shared else prefix
    own = Words.of([label_of(name, prefix) for name in names])
    tensors |= {"labels": own.blob, "label_offsets": own.offsets, "label_counts": counts}
    loss, subwords = LOSSES[fields["loss"]], _subwords(fields)
    if loss == "hs":
        # fastText's branch 1 has the probability σ(score), and branch 0 has it here. It has a row more than nodes.
        tensors["outputs"] = -tensors["outputs"][:-1]
    names_of_settings = ("vector_size", "epochs", "min_count", "negative", "buckets")
    settings: dict[str, Any] = {name: max(1, fields[name]) for name in names_of_settings}
    settings |= {"model": "cbow", "sample": 0, "vectors": "input", "loss": loss, "large_softmax": True}
    settings |= {"subwords": f"{subwords.shortest}-{subwords.longest}" if subwords else None}
    options = LabelOptions(
        label_prefix=prefix,
        word_ngrams=max(1, fields["word_ngrams"]),
        pooling="mean",
        classifier="embedded",
        auto_loss=False,
        fasttext=True,
        pruned=fields["pruned"] >= 0,
    )
    return ModelHeader(settings=settings, labels=LabelHeader(asdict(options)))


def map_matrices(path: PathLike) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Map the matrices of a model of words into memory, read-only: they are at the end of the file.

    The file is one that `read` accepts, and it begins with the signature FASTTEXT.

    Returns:
        The rows of the words and of all buckets, (V + buckets, D), and the rows of the output layer, (V, D).
    """
    with translate_os_errors(path), Path(path).open("rb") as file:
        fields = dict(zip(FIELDS, HEAD.unpack(file.read(HEAD.size)), strict=True))
    words, size = fields["words"], fields["vector_size"]
    rows = words + fields["buckets"]
    outputs_at = Path(path).stat().st_size - 4 * words * size
    inputs_at = outputs_at - 1 - MATRIX_HEAD.size - 4 * rows * size
    inputs = np.memmap(path, np.float32, "r", inputs_at, (rows, size))
    return inputs, np.memmap(path, np.float32, "r", outputs_at, (words, size))


def _check_fields(path: PathLike, fields: dict[str, int]) -> None:
    """Raise W2VError if the fields at the beginning of a file describe a model that w2v does not read."""
    if fields["version"] not in (VERSION - 1, VERSION):
        raise W2VError(f"{path}: a fastText model of version {fields['version']}: this w2v reads version {VERSION}")
    if 0 < fields["sample"] < MIN_SAMPLE:
        raise W2VError(f"{path}: a floret model: save its vectors as .vec with floret, and give that file")
    is_classifier = fields["model"] == CLASSIFIER
    if fields["model"] not in (*MODELS, CLASSIFIER) or fields["loss"] not in LOSSES:
        raise W2VError(f"{path}: damaged: model {fields['model']} and loss {fields['loss']}, which fastText lacks")
    words, labels, pruned = fields["words"], fields["labels"], fields["pruned"]
    if labels < 0 or is_classifier != (labels > 0) or (pruned >= 0 and not is_classifier):
        kind = "classifier" if is_classifier else "model of words"
        raise W2VError(f"{path}: damaged: a {kind} with {labels} labels and {pruned} pruned n-grams")
    if words < 1 or not 1 <= fields["vector_size"] <= MAX_COLUMNS or fields["buckets"] < 0:
        raise W2VError(f"{path}: damaged: it declares {words} words and {fields['vector_size']} values per word")
    if fields["entries"] != words + labels:
        raise W2VError(f"{path}: damaged: it declares {words} words, {labels} labels and {fields['entries']} entries")
    if is_classifier and fields["version"] < VERSION:  # before version 12, classifiers had no n-grams of characters
        fields["longest"] = 0
    if fields["longest"] > MAX_LENGTH:
        raise W2VError(f"{path}: refused: n-grams of {fields['longest']:,} characters; at most {MAX_LENGTH} are read")
    if pruned >= 0 and fields["buckets"] > MAX_PRUNED_BUCKETS:
        raise W2VError(
            f"{path}: refused: {fields['buckets']:,} buckets of n-grams; at most {MAX_PRUNED_BUCKETS:,} are read"
        )
    if fields["word_ngrams"] > MAX_WORDS and is_classifier:
        raise W2VError(f"{path}: refused: n-grams of {fields['word_ngrams']:,} words; at most {MAX_WORDS} are read")


def _read_exactly(path: PathLike, file: BufferedReader, size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise TruncatedFile(f"{path}: truncated")
    return content


def _read_entries(path: PathLike, file: BufferedReader, number: int, kind: int) -> tuple[Words, NDArray[np.int64]]:
    """Read words, or labels of kind 1, and their counts, int64 (V,)."""
    names, counts = WordBuilder(number), np.empty(number, np.int64)
    for row in range(number):
        names.add(_read_word(path, file))
        counts[row], found = ENTRY.unpack(_read_exactly(path, file, ENTRY.size))
        if found != kind:
            raise W2VError(f"{path}: damaged: entry {row + 1} has type {found}; expected {kind}")
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


def _read_pruned(path: PathLike, file: BufferedReader, fields: dict[str, int], max_size: int) -> NDArray[np.int32]:
    """Read which buckets a pruned model kept, in the order of their rows, int32 (n,)."""
    number = fields["pruned"]
    _check_size(path, 8 * number, max_size)
    pairs = np.frombuffer(_read_exactly(path, file, 8 * number), "<i4").reshape(number, 2)
    buckets, rows = pairs[np.argsort(pairs[:, 1], kind="stable")].T
    if not np.array_equal(rows, np.arange(number)) or np.any(buckets < 0) or np.any(buckets >= fields["buckets"]):
        raise W2VError(f"{path}: damaged: its list of pruned n-grams is inconsistent")
    return np.array(buckets, np.int32)


def _open_matrix(
    path: PathLike, file: BufferedReader, shape: tuple[int, int], max_size: int, has_flag: bool, may_be_quantized: bool
) -> tuple[Callable[[NDArray[np.float32]], None], QuantisedMatrix | None]:
    """Read the head of a matrix, and all codes of a quantized one.

    Args:
        shape: The expected shape.
        max_size: The largest possible size of the file.
        has_flag: Whether the matrix begins with a flag for quantized matrices; not in old files.
        may_be_quantized: Whether this flag has a meaning.

    Returns:
        A function that fills an array, float32 (n, D), with the next n rows; and the matrix, if it is quantized.

    Raises:
        W2VError: If the matrix has another shape, or is damaged.
    """
    is_quantized = has_flag and _read_exactly(path, file, 1) != b"\0" and may_be_quantized
    is_normalised = is_quantized and _read_exactly(path, file, 1) != b"\0"
    found = MATRIX_HEAD.unpack(_read_exactly(path, file, MATRIX_HEAD.size))
    if found != shape:
        raise W2VError(
            f"{path}: damaged: a matrix of {found[0]} by {found[1]} values; expected {shape[0]} by {shape[1]}"
        )
    if not is_quantized:
        _check_size(path, 4 * shape[0] * shape[1], max_size)
        return partial(_read_rows, path, file), None
    matrix, position = _read_quantized(path, file, shape, max_size, is_normalised), 0

    def fill(decoded: NDArray[np.float32]) -> None:
        nonlocal position
        decoded[:] = matrix.decode(slice(position, position + len(decoded)))
        position += len(decoded)

    return fill, matrix


def _check_size(path: PathLike, size: int, max_size: int) -> None:
    if size > max_size:
        raise TruncatedFile(f"{path}: truncated: it should hold {size:,} bytes more")


def _read_rows(path: PathLike, file: BufferedReader, rows: NDArray[np.float32]) -> None:
    """Fill an array with rows."""
    if file.readinto(rows.reshape(-1).view(np.uint8).data) != rows.nbytes:
        raise TruncatedFile(f"{path}: truncated in a matrix")


def _map_rows(path: PathLike, file: BufferedReader, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Map the next rows of a plain file, and move behind them."""
    start, size = file.tell(), 4 * shape[0] * shape[1]
    mapped = memory.MappedFile(file)
    if len(mapped) < start + size:
        raise TruncatedFile(f"{path}: truncated in a matrix")
    file.seek(start + size)
    return np.frombuffer(mapped, "<f4", size // 4, start).reshape(shape)


def _read_quantized(
    path: PathLike, file: BufferedReader, shape: tuple[int, int], max_size: int, is_normalised: bool
) -> QuantisedMatrix:
    """Read a quantized matrix after its shape."""
    rows, columns = shape
    (code_bytes,) = INT.unpack(_read_exactly(path, file, INT.size))
    parts = code_bytes // rows
    if code_bytes % rows or not columns <= parts * MAX_PART_SIZE or parts > columns:
        raise W2VError(f"{path}: damaged: {code_bytes} codes for {rows} rows of {columns} values")
    _check_size(path, code_bytes + 4 * CENTROIDS * columns, max_size)
    codes = np.frombuffer(_read_exactly(path, file, code_bytes), np.uint8).reshape(rows, parts)
    centroids, norms = _read_centroids(path, file, columns, parts), None
    if is_normalised:
        norm_codes = np.frombuffer(_read_exactly(path, file, rows), np.uint8).reshape(rows, 1)
        norms = QuantisedMatrix(norm_codes, _read_centroids(path, file, 1, 1))
    return QuantisedMatrix(codes, centroids, norms)


def _read_centroids(path: PathLike, file: BufferedReader, columns: int, parts: int) -> list[NDArray[np.float32]]:
    """Read the centroids of each part of a row, float32 (CENTROIDS, size of the part)."""
    *found, size, last = QUANTIZER.unpack(_read_exactly(path, file, QUANTIZER.size))
    if found != [columns, parts] or not 1 <= last <= size or (parts - 1) * size + last != columns:
        raise W2VError(f"{path}: damaged: a quantizer of {found[1]} parts of {size} values; rows have {columns} values")
    values = np.frombuffer(_read_exactly(path, file, 4 * CENTROIDS * columns), "<f4")
    if not np.isfinite(values).all():
        raise W2VError(f"{path}: damaged: its quantizer holds NaN or infinite values")
    *whole, rest = np.split(values, np.arange(1, parts) * CENTROIDS * size)
    return [*(part.reshape(CENTROIDS, size) for part in whole), rest.reshape(CENTROIDS, last)]


# -- writing --------------------------------------------------------------------------------


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a model atomically. fastText computes the same vectors from it, for known and unknown words.

    A model without n-grams is written as fastText writes it with `-maxn 0`. Output rows are written if the model has
    one for each word (loss ns or softmax) and its word vectors are the input rows; otherwise, zeros are written. If a
    model has several views, the view with n-grams is written. fastText predicts the same labels from a classifier.

    Raises:
        W2VError: If the file cannot be written, if a word holds a NUL, or if fastText would compute other vectors from
            the n-grams, or other probabilities of labels.
    """
    if content.header.labels:
        content = dataclasses.replace(as_fasttext(path, content), quantised=None)
    if content.header.labels and content.header.labels.options["pruned"]:
        raise W2VError(
            f"{path}: not written: its n-grams were pruned, which fastText reads only from .ftz: write .ftz or "
            ".safetensors"
        )
    if content.header.views:
        content = content.view(SUBWORD_VIEW, path)
    _write(path, content, replace, progress)


def write_quantised(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a quantised classifier atomically, with the codes that it has, or else new ones with fastText's settings.

    Raises:
        W2VError: If the content is not a classifier, and as `write` does.
    """
    if not content.header.labels:
        raise W2VError(f"{path}: not written: this format stores only classifiers: write .ft.bin")
    _write(path, content if content.quantised else quantise(path, content), replace, progress)


def _write(path: PathLike, content: VectorFile, replace: bool, progress: Report | None) -> None:
    words, vectors, codes = content.words, content.vectors, content.quantised
    if words.contain_any(b"\0"):
        raise W2VError(f"{path}: not written: a word holds a NUL, which this format cannot store")
    if "ngrams" in content.tensors and "inputs" in content.tensors:
        raise W2VError(
            f"{path}: not written: fastText computes vectors from input rows and n-grams, not from output rows: "
            "add --vectors input"
        )
    if content.header.ngram_offset:
        raise W2VError(f"{path}: not written: fastText computes whole vectors from n-grams, not only a part of them")
    fields = _fields_of(path, content)
    counts = np.ones(len(words), np.int64) if content.counts is None else content.counts
    entries = [(words, counts, 0)]
    if content.header.labels:
        ngrams, outputs = _classifier_parts(content, fields, entries)
    else:
        ngrams = Ngrams.from_file(content.tensors, content.header.subwords, vectors.shape[1], path)
        outputs = content.tensors.get("outputs", vectors[:0])
        loss = (content.header.settings or {}).get("loss")
        if loss not in ("ns", "softmax", "ova") or len(outputs) != len(words) or "inputs" in content.tensors:
            outputs = np.broadcast_to(np.float32(0), vectors.shape)
    subwords = ngrams.subwords if ngrams else Subwords(0, 0, 0)
    buckets = subwords.buckets
    fields |= {"buckets": buckets, "shortest": subwords.shortest, "longest": subwords.longest}
    fields |= {"entries": sum(len(each[0]) for each in entries), "words": len(words)}
    fields["tokens"] = sum(int(each[1].sum()) for each in entries)
    word_rows = own_rows(vectors, words, ngrams) if ngrams and not content.header.labels else vectors
    size = 0 if codes else 4 * vectors.shape[1] * (len(words) + buckets + len(outputs))
    meter, total = Meter(progress, "save"), len(words) + buckets
    with atomic_write(path, replace) as file:
        check_disk_space(file, Path(path).resolve().parent, size, f"a file with a row for each of {buckets:,} buckets")
        file.write(HEAD.pack(*(fields[name] for name in FIELDS)))
        for names, numbers, kind in entries:
            for word, count in zip(names, numbers.tolist(), strict=True):
                file.write(word.encode() + b"\0" + ENTRY.pack(count, kind))
        if fields["pruned"] >= 0:
            buckets_and_rows = np.column_stack([content.tensors["text_buckets"], np.arange(fields["pruned"])])
            file.write(buckets_and_rows.astype("<i4").tobytes())
        if codes:
            _write_quantised(file, codes[0])
        else:
            file.write(DENSE + MATRIX_HEAD.pack(total, vectors.shape[1]))
            for start, block in float32_blocks(word_rows, BLOCK_ROWS):
                file.write(block.data)
                meter(start, total)
            for start in range(0, buckets, BLOCK_ROWS):
                assert ngrams
                part = ngrams.rows_of(np.arange(start, min(start + BLOCK_ROWS, buckets), dtype=np.int32))
                file.write(np.ascontiguousarray(part, np.float32).data)
                meter(len(words) + start, total)
        if codes and codes[1]:
            _write_quantised(file, codes[1])
        else:
            file.write(DENSE + MATRIX_HEAD.pack(len(outputs), vectors.shape[1]))
            for _, block in float32_blocks(outputs, BLOCK_ROWS):
                file.write(block.data)
        meter(total, total)


def _fields_of(path: PathLike, content: VectorFile) -> dict[str, Any]:
    """Return the fields at the beginning of a file that follow from the settings of a model.

    Raises:
        W2VError: If a setting is not a number that fits into the file.
    """
    settings, losses = content.header.settings or {}, {name: number for number, name in LOSSES.items()}
    window = str(settings.get("window") or 5).replace(WHOLE_SENTENCE, str(MAX_SENTENCE_CONTEXT)).split(",")
    shared = {name: settings[name] for name in SHARED_SETTINGS if settings.get(name) not in (None, "auto")}
    with translate_errors(f"{path}: not written: its settings: damaged", ValueError, TypeError, struct.error):
        fields = DEFAULTS | shared | {"vector_size": content.vectors.shape[1], "window": max(map(int, window))}
        fields |= {"loss": losses.get(settings.get("loss", "ns"), losses["ns"])}
        fields |= {"negative": settings.get("negative") or 5, "model": 1 if settings.get("model") == "cbow" else 2}
        HEAD.pack(*(fields.get(name, 0) for name in FIELDS))
    return fields


def _write_quantised(file: IO[bytes], matrix: QuantisedMatrix) -> None:
    file.write(struct.pack("<??", True, matrix.norms is not None))
    file.write(MATRIX_HEAD.pack(*matrix.shape) + INT.pack(matrix.codes.size))
    for each in filter(None, (matrix, matrix.norms)):
        file.write(each.codes.tobytes())
        sizes = [part.shape[1] for part in each.centroids]
        file.write(QUANTIZER.pack(sum(sizes), len(sizes), sizes[0], sizes[-1]))
        for part in each.centroids:
            file.write(part.tobytes())


def as_fasttext(path: PathLike, content: VectorFile) -> VectorFile:
    """Return a classifier as fastText can store it: without a temperature, and with an output layer.

    Raises:
        W2VError: If fastText would compute other probabilities. The message begins with the path.
    """
    header, settings = content.header.labels, content.header.settings or {}
    assert header
    options, loss = LabelOptions(**header.options), str(settings.get("loss"))
    if options.pooling == "idf":
        raise W2VError(
            f"{path}: not written: this format cannot store the weights of idf pooling: train with --pooling mean, "
            "or write .safetensors"
        )
    if not options.fasttext:
        if loss == "ova" and not header.several:
            loss = "softmax"  # here, probabilities of one-vs-all add up to 1 unless texts have several labels
        if loss not in ("ova", "softmax", "hs") or (loss == "hs" and settings.get("tree") != "huffman"):
            raise W2VError(
                f"{path}: not written: fastText would compute other probabilities with loss {loss}: train with ova, "
                "softmax, or hs and the tree huffman, or write .safetensors"
            )
    outputs: NDArray[np.float32] = np.asarray(content.tensors.get("outputs", np.eye(len(content.vectors[0]))))
    tensors = content.tensors | {"outputs": (outputs / header.temperature).astype(np.float32)}
    options = dataclasses.replace(options, classifier="embedded", fasttext=True)
    labels = LabelHeader(asdict(options))
    changed = dataclasses.replace(content.header, settings={**settings, "loss": loss}, labels=labels)
    return dataclasses.replace(content, tensors=tensors, header=changed)


def output_rows(content: VectorFile) -> NDArray[np.float32]:
    """Return the output rows of a classifier from `as_fasttext` in the form of fastText's files, (L, D)."""
    outputs: NDArray[np.float32] = content.tensors["outputs"]
    is_tree = (content.header.settings or {})["loss"] == "hs"  # see _classifier_header
    return np.pad(-outputs, [(0, 1), (0, 0)]) if is_tree else outputs


def quantise(
    path: PathLike, content: VectorFile, part_size: int = 2, normalise: bool = False, quantise_outputs: bool = False
) -> VectorFile:
    """Return a classifier with quantised rows, as `read` returns it.

    Buckets without a row are pruned: a file has a row for each bucket, or a list of those that have one.

    Args:
        path: The file, or a name, for error messages.
        content: The classifier.
        part_size, normalise: See QuantisedMatrix.of.
        quantise_outputs: Whether to quantise the output rows, too.

    Raises:
        W2VError: If fastText would compute other probabilities, or if there are too many codes.
    """
    content = as_fasttext(path, content)
    words, tensors, header = len(content.words), content.tensors, content.header.labels
    assert header
    order = np.argsort(tensors["text_buckets"])
    rows = np.asarray(join_rows([content.vectors, tensors[NGRAM_ROWS][order]]), np.float32)
    if len(rows) * -(-rows.shape[1] // part_size) > MAX_CODES:
        raise W2VError(f"{path}: not written: {len(rows):,} rows have more than {MAX_CODES:,} codes: drop some rows")
    inputs, outputs = QuantisedMatrix.of(rows, part_size, normalise), None
    tensors = tensors | {"text_buckets": tensors["text_buckets"][order]}
    if quantise_outputs:
        outputs = QuantisedMatrix.of(output_rows(content), 2, normalise)
        decoded = outputs.decode()
        tensors["outputs"] = -decoded[:-1] if len(decoded) > len(tensors["outputs"]) else decoded
    decoded = inputs.decode()
    tensors[NGRAM_ROWS] = decoded[words:]
    is_pruned = header.options["pruned"] or len(order) < int((content.header.settings or {})["buckets"])
    labels = LabelHeader({**header.options, "pruned": is_pruned})
    changed = dataclasses.replace(content.header, labels=labels)
    return dataclasses.replace(
        content, vectors=decoded[:words], tensors=tensors, header=changed, quantised=(inputs, outputs)
    )


def _classifier_parts(
    content: VectorFile, fields: dict[str, Any], entries: list[tuple[Words, NDArray[np.int64], int]]
) -> tuple[Ngrams | None, NDArray[np.float32]]:
    """Return the n-grams and the output rows of a classifier. Add its labels to the entries, and to the fields."""
    header, tensors, settings = content.header.labels, content.tensors, content.header.settings or {}
    assert header
    options, names = LabelOptions(**header.options), Words(tensors["labels"], tensors["label_offsets"])
    entries.append((Words.of([label_token(name, options.label_prefix) for name in names]), tensors["label_counts"], 1))
    outputs = output_rows(content)
    fields |= {"model": CLASSIFIER, "labels": len(names), "word_ngrams": options.word_ngrams}
    fields |= {"window": 5, "sample": DEFAULTS["sample"]}  # fastText's defaults, which have no effect
    fields["pruned"] = len(tensors["text_buckets"]) if options.pruned else -1
    lengths = re.fullmatch(r"(\d+)-(\d+)", str(settings.get("subwords")))
    if not lengths and options.word_ngrams == 1:
        return None, outputs
    shortest, longest = map(int, lengths.groups()) if lengths else (0, 0)
    order = np.argsort(tensors["text_buckets"])
    subwords = Subwords(shortest, longest, int(settings["buckets"]))
    return Ngrams(subwords, tensors["text_buckets"][order], tensors[NGRAM_ROWS][order]), outputs


FORMAT = Format(
    "fasttext",
    (".ft.bin",),
    2,
    has_signature(FASTTEXT),
    read,
    write,
    read_mapped,
    stores=("counts", "outputs", *SUBWORDS, *LABEL_PARTS),
    view=SUBWORD_VIEW,
    compressible=True,
)
QUANTISED = dataclasses.replace(
    FORMAT,
    name="fasttext quantized",
    extensions=(".ftz",),
    write=write_quantised,
    stores=("counts", "outputs", *LABEL_PARTS),
    view="",
    for_classifiers=True,
)
