"""Save and load Word2Vec: a native file with vectors, output layers and the model's settings."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TypedDict, get_type_hints

import numpy as np

from w2v.errors import W2VError
from w2v.formats import native
from w2v.formats.gensim import TAGS
from w2v.formats.header import GensimObject
from w2v.formats.vector_file import Array, VectorFile
from w2v.gensim import attributes
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.training import OUTPUT_LAYERS, StoredAttributes, Trainable
from w2v.system.files import PathLike
from w2v.system.schema import convert

log = logging.getLogger("w2v")

MODEL_CLASSES = ("Word2Vec", "FastText", "Doc2Vec")
USER_ATTRIBUTES = "gensim.model"  # prefix of the tensors that hold the user's attributes
LOCKS = "vectors_lockf"
ATTRIBUTE_TYPES = get_type_hints(StoredAttributes, include_extras=True)
# gensim's files may lack some attributes.
FileAttributes = TypedDict("FileAttributes", ATTRIBUTE_TYPES, total=False)  # type: ignore[misc]

OWN_ATTRIBUTES = {*ATTRIBUTE_TYPES, *OUTPUT_LAYERS, "wv", "dv", "layer1_size", "raw_vocab", "hashfxn", "random", "load"}


def content_of(model: Trainable) -> VectorFile:
    """Return the content of a model's file. Leave out, with a warning, arrays that do not fit the vectors."""
    content = model.wv.to_vector_file()
    arrays = {LOCKS: model.wv.vectors_lockf} | {name: getattr(model, name, None) for name in OUTPUT_LAYERS}
    for key, array in arrays.items():
        if array is not None and array.shape in _shapes(key, content.vectors):
            content.tensors[key] = array
        elif array is not None:
            attributes.warn_not_saved(f"{key} of shape {array.shape}, for vectors of shape {content.vectors.shape}")
    if len(getattr(model, "dv", ())):
        tags = native.arrays_of(model.dv.to_vector_file()) | {LOCKS: model.dv.vectors_lockf}
        content.tensors.update({TAGS + name: array for name, array in tags.items()})
    content.tensors.update(attributes.pack(USER_ATTRIBUTES, attributes.user_attributes(model, OWN_ATTRIBUTES)))
    settings = {name: getattr(model, name) for name in ATTRIBUTE_TYPES}
    settings = {name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()}
    return replace(content, header=replace(content.header, gensim=GensimObject(model._kind, settings)))


def restore(model: Trainable, path: PathLike, content: VectorFile) -> None:
    """Give a new model the content of its file.

    Raises:
        AttributeError: The file holds only vectors.
        W2VError: The file is damaged.
    """
    stored = content.header.gensim
    if not stored or stored.kind not in MODEL_CLASSES:
        raise AttributeError(f"{path} is not a Word2Vec model: it holds only vectors; use KeyedVectors.load")
    settings = dict(stored.attributes)
    for name, value in settings.items():
        if isinstance(value, bool) and ATTRIBUTE_TYPES.get(name) is not bool:  # gensim 3 saves some numbers as True
            settings[name] = int(value)
    settings = dict(convert(FileAttributes, settings, f"{path}: its settings"))
    arrays = {name: content.tensors[name] for name in (LOCKS, *OUTPUT_LAYERS) if name in content.tensors}
    for name, array in arrays.items():
        if array.shape not in _shapes(name, content.vectors) or array.dtype != np.float32:
            raise W2VError(f"{path}: damaged: its arrays do not fit together")
    model.wv = type(model.wv)._from_file(path, content)
    model.wv.vectors = model.wv.vectors.astype(np.float32, copy=False)
    model.wv.vectors_lockf = arrays.pop(LOCKS, np.ones(1, np.float32))
    vars(model).update(settings, **arrays)
    model.vector_size = model.layer1_size = model.wv.vector_size  # some files of gensim 3.2 lack it
    if stored.kind == "Doc2Vec":
        model.dv = KeyedVectors(model.vector_size)
        tags = {name.removeprefix(TAGS): array for name, array in content.tensors.items() if name.startswith(TAGS)}
        locks = tags.pop(LOCKS, np.ones(1, np.float32))
        if tags:
            model.dv = KeyedVectors._from_file(path, native.from_arrays(path, tags, {}))
        if model.dv.vectors.shape[1] != model.vector_size or locks.shape not in _shapes(LOCKS, model.dv.vectors):
            raise W2VError(f"{path}: damaged: the arrays of its tags do not fit together")
        model.dv.vectors_lockf = locks
    attributes.restore(model, OWN_ATTRIBUTES, attributes.unpack(path, USER_ATTRIBUTES, content.tensors))


def _shapes(name: str, vectors: Array) -> list[tuple[int, ...]]:
    """Return the shapes that the array `name` of a model with these vectors may have."""
    return [(1,), (len(vectors),)] if name == LOCKS else [vectors.shape]
