"""What Word2Vec.save writes: a native file of vectors, with the output layers and the model's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, get_type_hints

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError
from w2v.formats import gensim, native, table
from w2v.gensim.exceptions import gensims_exceptions
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.system.files import PathLike
from w2v.system.schema import Count, Integer, Number, checked, decode, encode
from w2v.vectors import keyed

METADATA = "gensim.Word2Vec"  # names a model's numbers in a file
LOCKS = "vectors_lockf"

Layers = dict[str, NDArray[np.float32]]


class Saved(TypedDict):
    """What a file keeps besides arrays."""

    vector_size: Count
    window: Count
    workers: Count
    epochs: Count
    corpus_count: Count
    corpus_total_words: Count
    seed: Integer
    sg: Integer
    hs: Integer
    negative: Integer
    cbow_mean: Integer
    null_word: Integer
    train_count: Integer
    batch_words: Integer
    sorted_vocab: Integer
    alpha: float
    min_alpha: float
    ns_exponent: float
    total_train_time: float
    min_alpha_yet_reached: float
    running_training_loss: float
    min_count: Number
    effective_min_count: Number
    sample: Number
    max_vocab_size: Integer | None
    max_final_vocab: Integer | None
    compute_loss: bool
    shrink_windows: bool
    comment: Any


def write(path: PathLike, wv: KeyedVectors, layers: Layers, saved: Mapping[str, Any]) -> None:
    content = wv._content()
    content.tensors.update(layers, **{LOCKS: wv.vectors_lockf})
    content.metadata[METADATA] = encode(saved, f"{path}: its settings")
    with gensims_exceptions(path):
        native.write(path, content)


def read(path: PathLike, names: tuple[str, ...], mmap: bool) -> tuple[KeyedVectors, Layers, Mapping[str, Any]]:
    """Raises as Word2Vec.load does."""
    with gensims_exceptions(path):
        if table.recognised(path).name == "gensim":
            return _of_gensim(path)
        found = keyed.load(path, mmap=mmap)
    if METADATA not in found.metadata:
        raise AttributeError(f"{path} is no Word2Vec model: it holds vectors; use KeyedVectors.load")
    saved = decode(Saved, found.metadata[METADATA], f"{path}: its settings")
    shape = len(found), saved["vector_size"]
    locks = found.tensors.get(LOCKS, np.empty(0))
    layers = {name: found.tensors[name] for name in names if name in found.tensors}
    if (
        found.vectors.shape != shape
        or locks.shape not in ((1,), (len(found),))
        or any(array.shape != shape for array in layers.values())
        or any(array.dtype != np.float32 for array in (locks, *layers.values()))
    ):
        raise W2VError(f"{path}: damaged: its arrays do not fit together")
    wv = KeyedVectors._copied(found)
    wv.vectors_lockf = locks
    return wv, layers, saved


def _of_gensim(path: PathLike) -> tuple[KeyedVectors, Layers, Mapping[str, Any]]:
    """What gensim itself saved; numbers that it has not saved are left out."""
    saved = gensim.read_saved(path)
    if saved.kind != "Word2Vec":
        raise AttributeError(f"{path} is no Word2Vec model, but a {saved.kind}")
    kinds = get_type_hints(Saved, include_extras=True)
    known = {name: value for name, value in saved.numbers.items() if name in kinds and value is not None}
    numbers = {name: checked(kinds[name], value, f"{path}: its {name}") for name, value in known.items()}
    found = saved.vectors
    wv = KeyedVectors._copied(keyed.KeyedVectors(found.words, found.vectors, found.counts))
    return wv, saved.layers, numbers | {"vector_size": wv.vector_size}
