"""Models and vectors that gensim 2 to 4 saved: pickles, which are read as data, and .npy files with large arrays."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError, one_line, translate_errors
from w2v._formats import pickles
from w2v._formats.base import SUBWORDS, Format, has_signature
from w2v._formats.header import INT_KEYS, GensimObject, ModelHeader
from w2v._formats.npy import read_array
from w2v._formats.pickles import PickledObject
from w2v._formats.vector_file import Array, VectorFile, as_floats
from w2v._progress import Report
from w2v._system.files import PICKLE, PathLike
from w2v._text.subwords import MAX_BUCKETS, MAX_LENGTH, Integers, Ngrams, Subwords
from w2v._text.words import Words

SIGNATURE = PICKLE + rb"(?s:.{0,40}?)gensim\.models\."
SETTINGS = ("vector_size", "window", "epochs", "min_count", "sample", "negative", "ns_exponent", "alpha", "min_alpha")
KEYS = ("index_to_key", "index2word", "index2entity")
OUTPUT_LAYERS = ("syn1", "syn1neg")
TAGS = "dv."  # prefix of the arrays that hold the tags of a Doc2Vec, as a vector file has them
TAG_ROWS = ("vectors_docs", "doctag_syn0", "vectors")  # in gensim 3.3 to 3.8, before and in gensim 4
TAG_NAMES = ("offset2doctag", "index2doctag")  # in gensim 0.12.3 to 3.8, and before
TAG_COUNTS = ("doc_count", "word_count")
PARTS = ("wv", "vocabulary", "trainables")  # the objects in a gensim 3 model; gensim 4 models only have "wv"
VECTORS = ("vectors", "syn0")
WORD_ROWS = ("vectors_vocab", "syn0_vocab")  # the own rows of FastText words, without their n-grams
NGRAM_ROWS = ("vectors_ngrams", "syn0_ngrams", "syn0_all")  # in gensim 3.3 to 4, 3.0 to 3.2, and 2
DEFAULT_BUCKETS = 2_000_000
MAX_BITS = 128  # of the integers in gensim models; only random states have so many
NGRAM_SLACK = 32 << 20  # bytes that rehashed n-grams may take in addition to twice the size of the old rows


log = logging.getLogger("w2v")


def read(path: PathLike, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read word vectors and n-grams and, from a model with negative sampling, output rows and settings.

    See Format.read.
    """
    saved = read_saved(path, progress)
    tensors = {name: array for name, array in saved.tensors.items() if not name.startswith(TAGS)}
    header = replace(saved.header, gensim=None)
    assert saved.header.gensim
    if saved.header.gensim.kind == "Doc2Vec":
        log.warning("%s: its document vectors are left out", path)
    if tensors.pop("syn1", None) is not None:
        log.warning("%s: the output rows of hierarchical softmax are left out: w2v does not keep gensim's tree", path)
    if "syn1neg" not in tensors:
        return replace(saved, tensors=tensors, header=header)
    tensors["outputs"] = tensors.pop("syn1neg")
    attributes = saved.header.gensim.attributes
    settings = {name: attributes[name] for name in SETTINGS if name in attributes}
    settings |= {"model": "skipgram" if attributes.get("sg") else "cbow", "loss": "ns", "vectors": "input"}
    if subwords := header.subwords:
        settings |= {"subwords": f"{subwords.shortest}-{subwords.longest}", "buckets": subwords.buckets}
    return replace(saved, tensors=tensors, header=replace(header, settings=settings))


def read_saved(path: PathLike, progress: Report | None = None) -> VectorFile:
    """Read what gensim saved, under gensim's names. The content still needs `validate`.

    Returns:
        The words, vectors and, if the file has them, counts. The tensors are the output rows "syn1neg" and "syn1",
        float32, the n-grams of FastText, and the tags of Doc2Vec. The header holds the class name and all attributes
        that are numbers or text, under their names in gensim 4.

    Raises:
        W2VError: If the file has no word vectors or is damaged, or if `pickles.read` refuses it.
    """
    root = pickles.read(path, progress)
    if not isinstance(root, PickledObject):
        raise W2VError(f"{path}: a pickle, but not of a gensim model")
    kind = root.name.rpartition(".")[2]
    parts = {"": _Part(path, root)}
    if isinstance(parts[""].values.get("wv"), PickledObject):
        parts |= {name: parts[""].part(name) for name in PARTS if name in parts[""].values}
    vectors_part = parts.get("wv", parts[""])
    attributes = _scalar_attributes(parts.values())
    vectors = vectors_part.matrix(*VECTORS, keep_float16=True)
    word_rows, ngram_rows = vectors_part.matrix(*WORD_ROWS), vectors_part.matrix(*NGRAM_ROWS)
    if vectors is None and word_rows is None:
        raise W2VError(f"{path}: a gensim {one_line(kind)}, without word vectors")
    words, is_integer = _read_words(path, vectors_part)
    widths = {array.shape[1] for array in (vectors, word_rows, ngram_rows) if array is not None}
    if len(widths) > 1:
        raise W2VError(f"{path}: damaged: the shapes of its vectors, word rows and n-gram rows do not match")
    ngrams = None if ngram_rows is None else _read_ngrams(path, vectors_part, ngram_rows, attributes, words)
    if vectors is None:  # gensim 4 does not save vectors that it can compute from the rows
        vectors = _compose_vectors(path, word_rows, words, ngrams)
    vocabulary = vectors_part.values.get("vocab")
    if isinstance(vocabulary, dict):
        counts = _counts_of_gensim_3(path, vocabulary, words)
    else:
        counts = _counts_of_gensim_4(path, vectors_part, words)
    tensors, subwords = (dict(ngrams.tensors), ngrams.subwords) if ngrams else ({}, None)
    tensors |= {INT_KEYS: is_integer} if is_integer.any() else {}
    for part in parts.values():
        for name in OUTPUT_LAYERS:
            layer = part.matrix(name)
            if layer is not None and layer.shape == vectors.shape:  # the layer of some Doc2Vec models is wider
                tensors[name] = layer
    if kind == "Doc2Vec":
        tensors |= _read_tags(path, parts[""])
    header = ModelHeader(subwords=subwords, gensim=GensimObject(kind, attributes))
    return VectorFile(words, vectors, counts, tensors, header)


class _Part:
    """The attributes of a saved object, including the arrays that gensim saved in separate files."""

    def __init__(self, path: PathLike, saved: PickledObject) -> None:
        self.path, self.values = path, saved.attributes()

    def part(self, name: str) -> _Part:
        saved = self.values.get(name)
        if not isinstance(saved, PickledObject):
            raise W2VError(f"{self.path}: damaged: its attribute {name} is not an object")
        return _Part(f"{self.path}.{name}", saved)

    def matrix(self, *names: str, keep_float16: bool = False) -> NDArray[Any] | None:
        """Return the matrix under the first of these names that exists, or None.

        It is float32 or, with `keep_float16`, float16 if the file stores float16.
        """
        listed = self.values.get("__numpys")
        listed = listed if type(listed) is list else []
        separate = {_as_text(item) for item in listed if isinstance(item, str | bytes)}
        for name in names:
            if name in separate:
                path = f"{self.path}.{name}.npy"
                if not os.path.lexists(path):
                    raise W2VError(f"{self.path}: its {name} are in {path}, which is missing: keep the files together")
                array = read_array(path)
            elif self.values.get(name) is not None:
                array = _read_array(self.path, self.values[name])
            else:
                continue
            if array.ndim != 2 or array.dtype.kind != "f" or not array.shape[1]:
                raise W2VError(f"{self.path}: damaged: a matrix of shape {array.shape} and type {array.dtype}")
            dtype = np.float16 if keep_float16 and array.dtype == np.float16 else np.float32
            return np.ascontiguousarray(as_floats(array, self.path, dtype=dtype))
        return None


def _scalar_attributes(parts: Iterable[_Part]) -> dict[str, Any]:
    """Return the attributes that are numbers or text, under their names in gensim 4.

    If two parts have the same attribute, the later part wins.
    """
    attributes: dict[str, Any] = {}
    for part in parts:
        attributes |= {
            name: value
            for name, value in part.values.items()
            if isinstance(value, float | str) or (isinstance(value, int) and value.bit_length() <= MAX_BITS)
        }
    for old, new in {"iter": "epochs", "layer1_size": "vector_size"}.items():
        if old in attributes:
            attributes.setdefault(new, attributes[old])
    return attributes


def _read_tags(path: PathLike, model: _Part) -> dict[str, Array]:
    """Read the tags of documents and their vectors. gensim 3 names only the tags that are text, in the last rows."""
    tags = model.part("dv" if "dv" in model.values else "docvecs")
    rows = tags.matrix(*TAG_ROWS)
    if rows is None:
        raise W2VError(f"{path}: damaged: a Doc2Vec without the vectors of its tags")
    for names in (tags.values[name] for name in TAG_NAMES if isinstance(tags.values.get(name), list)):
        tags.values["index_to_key"] = [*range(len(rows) - len(names)), *names]
    words, is_integer = _read_words(path, tags)
    arrays: dict[str, Array] = {"words": words.blob, "word_offsets": words.offsets, "vectors": rows}
    arrays |= {INT_KEYS: is_integer} if is_integer.any() else {}
    found = {f"vecattr.{name}": _counts_of_gensim_4(path, tags, words, name) for name in TAG_COUNTS}
    arrays |= {name: counts for name, counts in found.items() if counts is not None}
    return {TAGS + name: array for name, array in arrays.items()}


def _read_words(path: PathLike, part: _Part) -> tuple[Words, NDArray[np.bool_]]:
    """Read the keys as words, and a mask, bool (V,), of the integer keys."""
    names = next((part.values[name] for name in KEYS if name in part.values), None)
    if not isinstance(names, list) or not all(type(name) in (str, bytes, int) for name in names):
        raise W2VError(f"{path}: its keys are neither words nor integers")
    is_integer = np.array([isinstance(name, int) for name in names], bool)
    with translate_errors(str(path), W2VError, ValueError):  # ValueError: a number of thousands of digits
        words = Words.of(str(name) if isinstance(name, int) else name for name in names)
    return words, is_integer


def _counts_of_gensim_4(
    path: PathLike, part: _Part, words: Words, attribute: str = "count"
) -> NDArray[np.int64] | None:
    """Read the counts from the word attributes of gensim 4, or return None."""
    expandos = part.values.get("expandos")
    saved = expandos.get(attribute) if isinstance(expandos, dict) else None
    if saved is None:
        return None
    counts = _read_array(path, saved)
    if counts.shape != (len(words),) or counts.dtype.kind not in "iu":
        raise W2VError(f"{path}: damaged: its counts have shape {counts.shape} and type {counts.dtype}")
    return counts.astype(np.int64)


def _counts_of_gensim_3(path: PathLike, vocabulary: dict[Any, Any], words: Words) -> NDArray[np.int64] | None:
    """Read the counts from gensim 3, which saves an object for each word."""
    counts = np.full(len(words), -1, np.int64)
    for word in vocabulary.values():
        attributes = word.attributes() if isinstance(word, PickledObject) else {}
        row, count = attributes.get("index"), attributes.get("count")
        if type(row) is not int or type(count) is not int or not 0 <= row < len(words) or not 0 <= count < 1 << 63:
            raise W2VError(f"{path}: damaged: a word has no valid row and count")
        if counts[row] >= 0:
            raise W2VError(f"{path}: damaged: two words have the row {row}")
        counts[row] = count
    return np.maximum(counts, 0)


def _compose_vectors(
    path: PathLike, word_rows: NDArray[np.float32] | None, words: Words, ngrams: Ngrams | None
) -> NDArray[np.float32]:
    """Compute the vectors of words from their own rows and the rows of their n-grams, as fastText does."""
    if word_rows is None or len(word_rows) != len(words) or (ngrams and ngrams.rows.shape[1] != word_rows.shape[1]):
        raise W2VError(f"{path}: damaged: the shapes of its vectors, word rows and n-gram rows do not match")
    if ngrams:
        if len(ngrams.rows) != ngrams.subwords.buckets:  # gensim 4 saves a row for each bucket
            raise W2VError(f"{path}: damaged: it has neither vectors nor the rows of all n-grams")
        ngrams.compose(words, word_rows)  # `validate` refuses NaN and infinite results
    return word_rows


# -- the n-grams of FastText ----------------------------------------------------------------


def _read_ngrams(
    path: PathLike, part: _Part, rows: NDArray[np.float32], attributes: dict[str, Any], words: Words
) -> Ngrams | None:
    """Read the n-grams of a model and convert their buckets to fastText's hash.

    Return None if the model has no n-grams or if the conversion needs too many rows.
    """
    shortest, longest, count = (attributes.get(name) for name in ("min_n", "max_n", "bucket"))
    # gensim 2 does not store the number of buckets when it saves only the vectors.
    count = DEFAULT_BUCKETS if count is None else count
    if type(shortest) is not int or type(longest) is not int or type(count) is not int:
        raise W2VError(f"{path}: damaged: the lengths and buckets of its n-grams are missing")
    if count == 0 or longest < max(1, shortest):
        return None
    if longest > MAX_LENGTH or not 1 <= count <= MAX_BUCKETS:
        raise W2VError(f"{path}: damaged: n-grams of up to {longest:,} characters in {count:,} buckets")
    with translate_errors(f"{path}: damaged: its n-grams", ValueError, TypeError, LookupError):
        subwords = Subwords(max(1, shortest), longest, count)
        subwords.check_words(words)
        buckets, row_numbers = _bucket_rows(part, len(rows), count)
        if np.any(buckets >= count) or np.any(row_numbers >= len(rows)):
            raise ValueError("a bucket or row number is too large")
        buckets, first = np.unique(buckets, return_index=True)
        if len(buckets) > len(rows):
            raise ValueError(f"{len(buckets):,} buckets have only {len(rows):,} rows")
    chosen = row_numbers[first]
    rows = rows if np.array_equal(chosen, np.arange(len(rows))) else rows[chosen]
    ngrams = Ngrams(subwords, buckets.astype(np.int32), rows)
    if attributes.get("compatible_hash") or words.blob.max(initial=0) < 0x80:
        return ngrams
    rehashed = _rehash(ngrams, words)
    if rehashed is None:
        log.warning("%s: its n-grams are left out: with fastText's hash, they need too many rows", path)
    return rehashed


def _bucket_rows(part: _Part, rows: int, buckets: int) -> tuple[Integers, Integers]:
    """Return the buckets with n-grams and the row number of each, both int64 (n,).

    Raises:
        ValueError, TypeError, LookupError: If the attributes are damaged.
    """
    by_bucket, by_text = part.values.get("hash2index"), part.values.get("ngrams")
    if isinstance(by_bucket, dict):
        return _read_integers(by_bucket), _read_integers(by_bucket.values())
    if isinstance(by_text, dict):
        return _read_integers(map(_old_hash, by_text)) % buckets, _read_integers(by_text.values())
    if rows != buckets:
        raise ValueError(f"{rows:,} rows for {buckets:,} buckets")
    return np.arange(rows), np.arange(rows)


def _read_integers(values: Iterable[Any]) -> Integers:
    """Read the Python and NumPy integers that a pickle describes.

    Raises:
        ValueError, TypeError, LookupError: If a value is not an integer from 0 to 2^32 - 1.
    """
    integers = []
    for value in values:
        if isinstance(value, PickledObject) and value.name.endswith(".scalar"):
            dtype, content = value.arguments
            (value,) = np.frombuffer(content, _read_dtype(dtype)).tolist()
        if type(value) is not int or not 0 <= value < 1 << 32:
            raise ValueError("a value is not an integer from 0 to 2^32 - 1")
        integers.append(value)
    return np.array(integers, np.int64)


def _old_hash(ngram: Any) -> int:
    """Return gensim's hash before version 3.7: FNV-1a of characters. Raise ValueError if `ngram` is not an n-gram."""
    text = _as_text(ngram)
    if len(text) > MAX_LENGTH:
        raise ValueError(f"one has {len(text):,} characters")
    value = 2166136261
    for character in text:
        value = (value ^ ord(character)) * 16777619 & 0xFFFFFFFF
    return value


def _rehash(old: Ngrams, words: Words) -> Ngrams | None:
    """Convert the n-grams of the words from gensim's old hash to fastText's hash.

    If the old number of buckets would merge n-grams with different rows, use MAX_BUCKETS buckets. Return None if this
    takes too many rows.
    """
    max_rows = (2 * old.rows.nbytes + NGRAM_SLACK) // (4 * old.rows.shape[1] + 32)
    for count in (old.subwords.buckets, MAX_BUCKETS):
        subwords = replace(old.subwords, buckets=count)
        pairs = np.empty(0, np.int64)  # each number holds a bucket (upper 32 bits) and a row
        for group in subwords.groups(words):
            known, row_numbers = old.find_rows(old.subwords.ngram_buckets(group, hash_code_points=True)[1])
            pairs = np.union1d(pairs, subwords.ngram_buckets(group)[1][known].astype(np.int64) << 32 | row_numbers)
            if len(pairs) > max_rows:
                return None
        buckets, first = np.unique(pairs >> 32, return_index=True)
        if len(buckets) == len(pairs):
            break
    return Ngrams(subwords, buckets.astype(np.int32), old.rows[pairs[first] & 0xFFFFFFFF])


def _read_array(path: PathLike, value: Any) -> Array:
    """Return the array that a pickle describes. Raise W2VError if it does not hold numbers."""
    with translate_errors(f"{path}: damaged: not an array of numbers", ValueError, TypeError, LookupError):
        if not isinstance(value, PickledObject):
            raise ValueError("not an array")
        if value.name.endswith("._frombuffer"):
            content, dtype_object, shape, order = value.arguments
            by_columns = order == "F"
        elif value.name.endswith("._reconstruct"):
            _, shape, dtype_object, by_columns, content = value.state
        else:
            raise ValueError(f"an object made by {value.name[:60]}")
        dtype = _read_dtype(dtype_object)
        if not isinstance(shape, tuple) or not all(type(length) is int and 0 <= length < 1 << 60 for length in shape):
            raise ValueError("a shape that is not a tuple of lengths")
        array = np.frombuffer(content, dtype).reshape(shape, order="F" if by_columns else "C")
    return array.astype(dtype.newbyteorder("="))  # a copy, since the bytes of the pickle are read-only


def _read_dtype(value: Any) -> np.dtype[Any]:
    if not isinstance(value, PickledObject) or value.name != "numpy.dtype":
        raise ValueError("not a type")
    code = _as_text(value.arguments[0])
    order = _as_text(value.state[1]) if value.state else "="
    if not re.fullmatch(r"[<>|=][fiu][1248]", order + code):
        raise ValueError(f"type {code[:60]!r}")
    return np.dtype(order + code)


def _as_text(value: Any) -> str:
    """Return a str or bytes value as str. Pickles of Python 2 hold text as bytes. Raise ValueError for other types.

    The error does not show the value, which may be huge.
    """
    if not isinstance(value, str | bytes):
        raise ValueError(f"a value of type {type(value).__name__} instead of text")
    return value.decode("latin-1") if isinstance(value, bytes) else value


FORMAT = Format(
    "gensim",
    (".model", ".kv"),
    3,
    has_signature(SIGNATURE),
    read,
    None,
    stores=("counts", "outputs", *SUBWORDS),
    array_pattern=".*.npy",
)
