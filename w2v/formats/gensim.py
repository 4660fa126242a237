"""Models and vectors that gensim 3 and 4 saved: pickles, read as data, with large arrays in files beside them."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError, one_line
from w2v.formats import pickles
from w2v.formats.npy import read_array
from w2v.formats.pickles import Made, Pairs
from w2v.formats.vector_file import Array, VectorFile, checked
from w2v.progress import Report
from w2v.system.files import PICKLE, Errors, PathLike
from w2v.text.words import Words

BEGINNING = PICKLE + rb"(?s:.{0,40}?)gensim\.models\."
DTYPES = {f"{kind}{size}" for kind in "fiu" for size in (1, 2, 4, 8)} - {"f1"}
ORDERS = {"<", ">", "|", "="}
SETTINGS = ("vector_size", "window", "epochs", "min_count", "sample", "negative", "ns_exponent", "alpha", "min_alpha")
KEYS = ("index_to_key", "index2word", "index2entity")
INT_KEYS = "gensim.numbers"  # bool (V,): which words are whole numbers as keys of gensim's, in a file of w2v.gensim too
LAYERS = ("syn1", "syn1neg")
PARTS = ("wv", "vocabulary", "trainables")  # of a model of gensim 3, and for "wv" also of 4


log = logging.getLogger("w2v")


@dataclass(frozen=True)
class Saved:
    """What gensim saved.

    Attributes:
        kind: the name of the class. vectors: words, vectors and, if known, counts.
        layers: float32, the output rows "syn1neg" and "syn1" of a model that has them.
        numbers: the other attributes of a model that are numbers, text or None, by the names of gensim 4.
    """

    kind: str
    vectors: VectorFile
    layers: dict[str, NDArray[np.float32]]
    numbers: dict[str, Any]


def read(path: PathLike, errors: Errors | None, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read word vectors and, of a model with negative sampling, output rows and settings; see formats.table.read."""
    saved = read_saved(path, errors, progress)
    found, numbers = saved.vectors, saved.numbers
    if saved.kind == "Doc2Vec":
        log.warning("%s: the vectors of documents are left out", path)
    if "syn1" in saved.layers:
        log.warning("%s: the output rows of hierarchical softmax are left out: gensim's tree is not kept", path)
    if "syn1neg" not in saved.layers:
        return found
    settings = {name: numbers[name] for name in SETTINGS if numbers.get(name) is not None}
    settings |= {"model": "skipgram" if numbers.get("sg") else "cbow", "loss": "ns", "vectors": "input"}
    tensors = found.tensors | {"outputs": saved.layers["syn1neg"]}
    metadata = {"settings": json.dumps(settings)}
    return VectorFile(found.words, found.vectors, found.counts, tensors, metadata)


def read_saved(path: PathLike, errors: Errors | None = "strict", progress: Report | None = None) -> Saved:
    """What a file of gensim's holds. Raises W2VError as pickles.read does, and for a file without word vectors."""
    root = pickles.read(path, progress)
    if not isinstance(root, Made):
        raise W2VError(f"{path}: a pickle of no model of gensim")
    kind = root.name.rpartition(".")[2]
    parts = {"": _Part(path, root)}
    if isinstance(root.attributes().get("wv"), Made):
        parts |= {name: parts[""].part(name) for name in PARTS if name in parts[""].values}
    holder = parts.get("wv", parts[""])
    matrix = None if "FastText" in kind else holder.array("vectors", "syn0")
    if matrix is None:
        raise W2VError(f"{path}: {_conversion(path, kind)}")
    vectors = _vectors(path, holder, _matrix(path, matrix), errors)
    layers: dict[str, NDArray[np.float32]] = {}
    numbers: dict[str, Any] = {}
    for part in parts.values():
        for name in LAYERS:
            array = part.array(name)
            if array is not None and array.shape == vectors.vectors.shape:  # those of some Doc2Vec are wider
                layers[name] = _matrix(path, array)
        numbers |= {name: value for name, value in part.values.items() if isinstance(value, int | float | str | None)}
    for old, new in {"iter": "epochs", "layer1_size": "vector_size"}.items():
        if old in numbers:
            numbers.setdefault(new, numbers[old])
    return Saved(kind, vectors, layers, numbers)


def _conversion(path: PathLike, kind: str) -> str:
    """What a file without readable word vectors is and, if possible, how gensim makes one with them."""
    quoted, kind = repr(str(path)), one_line(kind)
    if kind == "FastText":
        load = f"gensim.models.FastText.load({quoted})"
        return f"a gensim FastText: convert it: gensim.models.fasttext.save_facebook_model({load}, 'vectors.bin')"
    if kind == "FastTextKeyedVectors":
        load = f"gensim.models.KeyedVectors.load({quoted})"
        ngrams = "only its FastText model can save its n-grams, by save_facebook_model; to keep the words alone"
        return f"a gensim {kind}: {ngrams}, convert it: {load}.save_word2vec_format('vectors.bin', binary=True)"
    return f"a gensim {kind}, without word vectors"


class _Part:
    """The attributes of a saved object, and of arrays that were saved beside it."""

    def __init__(self, path: PathLike, made: Made) -> None:
        self.path, self.values = path, made.attributes()

    def part(self, name: str) -> _Part:
        made = self.values[name]
        if not isinstance(made, Made):
            raise W2VError(f"{self.path}: damaged: its {name} is no object")
        return _Part(f"{self.path}.{name}", made)

    def array(self, *names: str) -> Array | None:
        """The array of the first of these names that there is; None if there is none."""
        beside = self.values.get("__numpys")
        beside = [_text(name) for name in beside] if type(beside) is list else []
        for name in names:
            if name in beside:
                path = f"{self.path}.{name}.npy"
                if not os.path.lexists(path):
                    raise W2VError(f"{self.path}: its {name} are in {path}, which is not there: keep them together")
                return read_array(path)
            if self.values.get(name) is not None:
                return _array(self.path, self.values[name])
        return None


def _vectors(path: PathLike, part: _Part, vectors: NDArray[np.float32], errors: Errors | None) -> VectorFile:
    vocabulary = part.values.get("vocab")
    names = next((part.values[name] for name in KEYS if name in part.values), None)
    if not isinstance(names, list) or not all(isinstance(name, str | bytes) or _is_int(name) for name in names):
        raise W2VError(f"{path}: its keys are neither words nor whole numbers")
    ints = np.array([isinstance(name, int) for name in names], bool)
    try:
        words = Words.of(str(name) if isinstance(name, int) else name for name in names)
    except W2VError as error:
        raise W2VError(f"{path}: {error}") from error
    known = _counts_of(path, vocabulary, words) if isinstance(vocabulary, Pairs) else _counts(path, part, words)
    return checked(path, VectorFile(words, vectors, known, {INT_KEYS: ints} if ints.any() else {}), errors)


def _is_int(key: Any) -> bool:
    return type(key) is int and -(1 << 63) <= key < 1 << 63


def _counts(path: PathLike, part: _Part, words: Words) -> NDArray[np.int64] | None:
    """The counts among the attributes that gensim 4 keeps of words."""
    expandos = part.values.get("expandos")
    pairs = zip(expandos[::2], expandos[1::2], strict=True) if isinstance(expandos, Pairs) else ()
    found = next((value for name, value in pairs if name == "count"), None)
    if found is None:
        return None
    counts = _array(path, found)
    if counts.shape != (len(words),) or counts.dtype.kind not in "iu":
        raise W2VError(f"{path}: damaged: its counts have shape {counts.shape} and type {counts.dtype}")
    return counts.astype(np.int64)


def _counts_of(path: PathLike, vocabulary: Pairs, words: Words) -> NDArray[np.int64] | None:
    """The counts of the objects that gensim 3 keeps for words."""
    counts = np.zeros(len(words), np.int64)
    for made in vocabulary[1::2]:
        found = made.attributes() if isinstance(made, Made) else {}
        row, count = found.get("index"), found.get("count")
        if type(row) is not int or type(count) is not int or not 0 <= row < len(words) or not 0 <= count < 1 << 63:
            raise W2VError(f"{path}: damaged: a word has no row and count")
        counts[row] = count
    return counts


def _matrix(path: PathLike, array: Array) -> NDArray[np.float32]:
    if array.ndim != 2 or array.dtype.kind != "f":
        raise W2VError(f"{path}: damaged: a matrix of shape {array.shape} and type {array.dtype}")
    with np.errstate(over="ignore"):  # what does not fit is infinite, and refused
        return np.ascontiguousarray(array, np.float32)


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
            raise ValueError(f"made by {value.name}")
        dtype = _dtype(made)
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
        raise ValueError(f"type {code!r}")
    return np.dtype(order + code)


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
