"""Models and vectors that gensim 2 to 4 saved: pickles, read as data, with large arrays in files beside them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError, one_line
from w2v.formats import pickles
from w2v.formats.header import GensimObject, ModelHeader
from w2v.formats.npy import read_array
from w2v.formats.pickles import Made, Pairs
from w2v.formats.vector_file import Array, VectorFile, checked
from w2v.progress import Report
from w2v.system.files import PICKLE, Errors, PathLike
from w2v.text.subwords import MAX_BUCKETS, MAX_LENGTH, Integers, Ngrams, Subwords
from w2v.text.words import Words

BEGINNING = PICKLE + rb"(?s:.{0,40}?)gensim\.models\."
DTYPES = {f"{kind}{size}" for kind in "fiu" for size in (1, 2, 4, 8)} - {"f1"}
ORDERS = {"<", ">", "|", "="}
SETTINGS = ("vector_size", "window", "epochs", "min_count", "sample", "negative", "ns_exponent", "alpha", "min_alpha")
KEYS = ("index_to_key", "index2word", "index2entity")
INT_KEYS = "gensim.numbers"  # bool (V,): which words are whole numbers as keys of gensim's, in a file of w2v.gensim too
LAYERS = ("syn1", "syn1neg")
PARTS = ("wv", "vocabulary", "trainables")  # of a model of gensim 3, and for "wv" also of 4
VECTORS = ("vectors", "syn0")
OWN_ROWS = ("vectors_vocab", "syn0_vocab")  # of words, without their n-grams
NGRAM_ROWS = ("vectors_ngrams", "syn0_ngrams", "syn0_all")  # of gensim 3.3 to 4, 3.0 to 3.2, and 2
DEFAULT_BUCKETS = 2_000_000
MAX_TEXT = 1 << 20  # characters of the names and texts among a model's attributes, together
NGRAM_SLACK = 32 << 20  # bytes that n-grams may take besides twice the rows in the file


log = logging.getLogger("w2v")


def read(path: PathLike, errors: Errors | None, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read word vectors, n-grams and, of a model with negative sampling, output rows and settings.

    See formats.table.read.
    """
    saved = read_saved(path, errors, progress)
    tensors, header = dict(saved.tensors), replace(saved.header, gensim=None)
    assert saved.header.gensim
    if saved.header.gensim.kind == "Doc2Vec":
        log.warning("%s: the vectors of documents are left out", path)
    if tensors.pop("syn1", None) is not None:
        log.warning("%s: the output rows of hierarchical softmax are left out: gensim's tree is not kept", path)
    if "syn1neg" not in tensors:
        return replace(saved, tensors=tensors, header=header)
    tensors["outputs"] = tensors.pop("syn1neg")
    numbers = saved.header.gensim.attributes
    settings = {name: numbers[name] for name in SETTINGS if name in numbers}
    settings |= {"model": "skipgram" if numbers.get("sg") else "cbow", "loss": "ns", "vectors": "input"}
    if subwords := header.subwords:
        settings |= {"subwords": f"{subwords.shortest}-{subwords.longest}", "buckets": subwords.buckets}
    return replace(saved, tensors=tensors, header=replace(header, settings=settings))


def read_saved(path: PathLike, errors: Errors | None = "strict", progress: Report | None = None) -> VectorFile:
    """What a file of gensim's holds: words, vectors and, if known, counts.

    Its tensors are the output rows "syn1neg" and "syn1" of a model that has them, float32, and the n-grams of FastText.
    Its header has the name of the class, and of the other attributes numbers and text, by the names of gensim 4.
    Raises W2VError as pickles.read does, and for a file without word vectors.
    """
    root = pickles.read(path, progress)
    if not isinstance(root, Made):
        raise W2VError(f"{path}: a pickle of no model of gensim")
    kind = root.name.rpartition(".")[2]
    parts = {"": _Part(path, root)}
    if isinstance(parts[""].values.get("wv"), Made):
        parts |= {name: parts[""].part(name) for name in PARTS if name in parts[""].values}
    holder = parts.get("wv", parts[""])
    numbers = _numbers(path, parts.values())
    vectors, own, rows = (holder.matrix(*names) for names in (VECTORS, OWN_ROWS, NGRAM_ROWS))
    if vectors is None and own is None:
        raise W2VError(f"{path}: a gensim {one_line(kind)}, without word vectors")
    words, ints = _words(path, holder)
    widths = {array.shape[1] for array in (vectors, own, rows) if array is not None}
    if len(widths) > 1:
        raise W2VError(f"{path}: damaged: its words, their rows and those of n-grams do not fit together")
    ngrams = None if rows is None else _ngrams(path, holder, rows, numbers, words)
    if vectors is None:  # gensim 4 leaves them out, since they follow from the rows
        vectors = _composed(path, own, words, ngrams)
    vocabulary = holder.values.get("vocab")
    counts = _counts_of(path, vocabulary, words) if isinstance(vocabulary, Pairs) else _counts(path, holder, words)
    tensors, subwords = (dict(ngrams.tensors), ngrams.subwords) if ngrams else ({}, None)
    tensors |= {INT_KEYS: ints} if ints.any() else {}
    for part in parts.values():
        for name in LAYERS:
            layer = part.matrix(name)
            if layer is not None and layer.shape == vectors.shape:  # those of some Doc2Vec are wider
                tensors[name] = layer
    header = ModelHeader(subwords=subwords, gensim=GensimObject(kind, numbers))
    return checked(path, VectorFile(words, vectors, counts, tensors, header), errors)


class _Part:
    """The attributes of a saved object, and of arrays that were saved beside it."""

    def __init__(self, path: PathLike, made: Made) -> None:
        self.path, self.values = path, made.attributes()

    def part(self, name: str) -> _Part:
        made = self.values[name]
        if not isinstance(made, Made):
            raise W2VError(f"{self.path}: damaged: its {name} is no object")
        return _Part(f"{self.path}.{name}", made)

    def matrix(self, *names: str) -> NDArray[np.float32] | None:
        """The matrix of the first of these names that there is; None if there is none."""
        listed = self.values.get("__numpys")
        beside = {_text(one) for one in listed if isinstance(one, str | bytes)} if type(listed) is list else set()
        for name in names:
            if name in beside:
                path = f"{self.path}.{name}.npy"
                if not os.path.lexists(path):
                    raise W2VError(f"{self.path}: its {name} are in {path}, which is not there: keep them together")
                array = read_array(path)
            elif self.values.get(name) is not None:
                array = _array(self.path, self.values[name])
            else:
                continue
            if array.ndim != 2 or array.dtype.kind != "f" or not array.shape[1]:
                raise W2VError(f"{self.path}: damaged: a matrix of shape {array.shape} and type {array.dtype}")
            with np.errstate(over="ignore"):  # what does not fit is infinite, and refused
                return np.ascontiguousarray(array, np.float32)
        return None


def _numbers(path: PathLike, parts: Iterable[_Part]) -> dict[str, Any]:
    """The attributes that are numbers or text, by the names of gensim 4. Those of later parts replace others."""
    numbers: dict[str, Any] = {}
    for part in parts:
        numbers = dict.fromkeys(part.values) | numbers
        numbers |= {name: value for name, value in part.values.items() if isinstance(value, int | float | str)}
    if sum(len(text) for item in numbers.items() for text in item if isinstance(text, str)) > MAX_TEXT:
        raise W2VError(f"{path}: damaged: its attributes hold more than {MAX_TEXT:,} characters of text")
    for old, new in {"iter": "epochs", "layer1_size": "vector_size"}.items():
        if old in numbers:
            numbers.setdefault(new, numbers[old])
    return {name: value for name, value in numbers.items() if value is not None}


def _words(path: PathLike, part: _Part) -> tuple[Words, NDArray[np.bool_]]:
    """The keys as words, and which of them are whole numbers."""
    names = next((part.values[name] for name in KEYS if name in part.values), None)
    if not isinstance(names, list) or not all(isinstance(name, str | bytes) or _is_int(name) for name in names):
        raise W2VError(f"{path}: its keys are neither words nor whole numbers")
    if sum(len(name) for name in names if isinstance(name, str | bytes)) > Path(path).stat().st_size:
        raise W2VError(f"{path}: damaged: its words have more characters than the file, so one appears twice")
    ints = np.array([isinstance(name, int) for name in names], bool)
    try:
        words = Words.of(str(name) if isinstance(name, int) else name for name in names)
    except W2VError as error:
        raise W2VError(f"{path}: {error}") from error
    return words, ints


def _is_int(key: Any) -> bool:
    return type(key) is int and -(1 << 63) <= key < 1 << 63


def _counts(path: PathLike, part: _Part, words: Words) -> NDArray[np.int64] | None:
    """The counts among the attributes that gensim 4 keeps of words."""
    expandos = part.values.get("expandos")
    pairs = zip(expandos[::2], expandos[1::2], strict=True) if isinstance(expandos, Pairs) else ()
    found = next((value for name, value in pairs if isinstance(name, str) and name == "count"), None)
    if found is None:
        return None
    counts = _array(path, found)
    if counts.shape != (len(words),) or counts.dtype.kind not in "iu":
        raise W2VError(f"{path}: damaged: its counts have shape {counts.shape} and type {counts.dtype}")
    return counts.astype(np.int64)


def _counts_of(path: PathLike, vocabulary: Pairs, words: Words) -> NDArray[np.int64] | None:
    """The counts of the objects that gensim 3 keeps for words."""
    counts = np.full(len(words), -1, np.int64)
    for made in vocabulary[1::2]:
        found = made.attributes() if isinstance(made, Made) else {}
        row, count = found.get("index"), found.get("count")
        if type(row) is not int or type(count) is not int or not 0 <= row < len(words) or not 0 <= count < 1 << 63:
            raise W2VError(f"{path}: damaged: a word has no row and count")
        if counts[row] >= 0:  # and one object for many words would take long
            raise W2VError(f"{path}: damaged: two words have the row {row}")
        counts[row] = count
    return np.maximum(counts, 0)


def _composed(
    path: PathLike, own: NDArray[np.float32] | None, words: Words, ngrams: Ngrams | None
) -> NDArray[np.float32]:
    """The vectors of words from their own rows and those of their n-grams, as fastText makes them."""
    if own is None or len(own) != len(words) or (ngrams and ngrams.rows.shape[1] != own.shape[1]):
        raise W2VError(f"{path}: damaged: its words, their rows and those of n-grams do not fit together")
    if ngrams:
        if len(ngrams.rows) != ngrams.subwords.buckets:  # gensim 4 has one for each
            raise W2VError(f"{path}: damaged: it has neither vectors nor the rows of all n-grams")
        ngrams.compose(words, own)  # what is infinite or NaN is refused
    return own


# -- the n-grams of FastText ----------------------------------------------------------------


def _ngrams(
    path: PathLike, part: _Part, rows: NDArray[np.float32], numbers: dict[str, Any], words: Words
) -> Ngrams | None:
    """The n-grams of a model, by fastText's hash; None if it has none."""
    shortest, longest, count = (numbers.get(name) for name in ("min_n", "max_n", "bucket"))
    count = DEFAULT_BUCKETS if count is None else count  # the vectors of gensim 2 alone do not tell
    if type(shortest) is not int or type(longest) is not int or type(count) is not int:
        raise W2VError(f"{path}: damaged: it does not say which n-grams it has")
    if count == 0 or longest < max(1, shortest):
        return None
    if longest > MAX_LENGTH or not 1 <= count <= MAX_BUCKETS:
        raise W2VError(f"{path}: damaged: n-grams of up to {longest:,} characters in {count:,} buckets")
    try:
        subwords = Subwords(max(1, shortest), longest, count)
        subwords.check_words(words)
        buckets, places = _places(part, len(rows), count)
        if np.any(buckets >= count) or np.any(places >= len(rows)):
            raise ValueError("one has no row")
        buckets, first = np.unique(buckets, return_index=True)
        if len(buckets) > len(rows):
            raise ValueError(f"{len(buckets):,} have {len(rows):,} rows")
    except (ValueError, TypeError, LookupError) as error:
        raise W2VError(f"{path}: damaged: its n-grams: {one_line(error)}") from error
    chosen = places[first]
    rows = rows if np.array_equal(chosen, np.arange(len(rows))) else rows[chosen]
    ngrams = Ngrams(subwords, buckets.astype(np.int32), rows)
    if numbers.get("compatible_hash") or words.blob.max(initial=0) < 0x80:
        return ngrams
    made = _rehashed(ngrams, words)
    if made is None:
        log.warning("%s: the n-grams are left out: with fastText's hash, they need too many rows", path)
    return made


def _places(part: _Part, rows: int, buckets: int) -> tuple[Integers, Integers]:
    """The buckets of n-grams, and the row of each, both int64 (n,). Raises ValueError, TypeError or LookupError."""
    by_bucket, by_text = part.values.get("hash2index"), part.values.get("ngrams")
    if isinstance(by_bucket, Pairs):
        return _integers(by_bucket[::2]), _integers(by_bucket[1::2])
    if isinstance(by_text, Pairs):
        return _integers(map(_hash, by_text[::2])) % buckets, _integers(by_text[1::2])
    if rows != buckets:
        raise ValueError(f"{rows:,} rows for {buckets:,} buckets")
    return np.arange(rows), np.arange(rows)


def _integers(values: Iterable[Any]) -> Integers:
    """Python's and NumPy's integers that a pickle describes. Raises ValueError, TypeError or LookupError for others."""
    found = []
    for value in values:
        if isinstance(value, Made) and value.name.endswith(".scalar"):
            dtype, content = value.arguments
            (value,) = np.frombuffer(content, _dtype(dtype)).tolist()
        if type(value) is not int or not 0 <= value < 1 << 32:
            raise ValueError("what should be a number is not one, or too large")
        found.append(value)
    return np.array(found, np.int64)


def _hash(ngram: Any) -> int:
    """The hash of gensim before 3.7: FNV-1a of characters. Raises ValueError for what is no n-gram."""
    text = _text(ngram)
    if len(text) > MAX_LENGTH:
        raise ValueError(f"one of {len(text):,} characters")
    value = 2166136261
    for character in text:
        value = (value ^ ord(character)) * 16777619 & 0xFFFFFFFF
    return value


def _rehashed(old: Ngrams, words: Words) -> Ngrams | None:
    """The rows of the words' n-grams, by fastText's hash, of rows by the hash of gensim before 3.7; see Subwords.of.

    As far as possible, n-grams with different rows get different buckets. None if this takes too many rows.
    """
    most = (2 * old.rows.nbytes + NGRAM_SLACK) // (4 * old.rows.shape[1] + 32)
    for count in (old.subwords.buckets, MAX_BUCKETS):
        subwords = replace(old.subwords, buckets=count)
        pairs = np.empty(0, np.int64)  # of a bucket and a row, in one number each
        for _, group in subwords.groups(words):
            known, places = old.find_rows(old.subwords.of(group, of_characters=True)[1])
            pairs = np.union1d(pairs, subwords.of(group)[1][known].astype(np.int64) << 32 | places)
            if len(pairs) > most:
                return None
        buckets, first = np.unique(pairs >> 32, return_index=True)
        if len(buckets) == len(pairs):
            break
    return Ngrams(subwords, buckets.astype(np.int32), old.rows[pairs[first] & 0xFFFFFFFF])


def _array(path: PathLike, value: Any) -> Array:
    """The array that a pickle describes. Raises W2VError for one that does not hold numbers."""
    try:
        if not isinstance(value, Made):
            raise ValueError("no array")
        if value.name.endswith("._frombuffer"):
            content, made, shape, order = value.arguments
            by_columns = order == "F"
        elif value.name.endswith("._reconstruct"):
            _, shape, made, by_columns, content = value.state
        else:
            raise ValueError(f"made by {value.name[:60]}")
        dtype = _dtype(made)
        if not isinstance(shape, tuple) or not all(type(length) is int and 0 <= length < 1 << 60 for length in shape):
            raise ValueError("a shape that is not a tuple of lengths")
        array = np.frombuffer(content, dtype).reshape(shape, order="F" if by_columns else "C")
    except (ValueError, TypeError, LookupError) as error:
        raise W2VError(f"{path}: damaged: no array of numbers: {one_line(error)}") from error
    return array.astype(dtype.newbyteorder("="))  # which copies it, so that it can be written to


def _dtype(value: Any) -> np.dtype[Any]:
    if not isinstance(value, Made) or value.name != "numpy.dtype":
        raise ValueError("no type")
    code = _text(value.arguments[0])
    order = _text(value.state[1]) if value.state else "="
    if code not in DTYPES or order not in ORDERS:
        raise ValueError(f"type {code[:60]!r}")
    return np.dtype(order + code)


def _text(value: Any) -> str:
    """Text, which Python 2 saved as bytes. Raises ValueError for other values, which may be too large to be shown."""
    if not isinstance(value, str | bytes):
        raise ValueError(f"a value of type {type(value).__name__} in the place of text")
    return value.decode("latin-1") if isinstance(value, bytes) else value
