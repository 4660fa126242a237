"""What Word2Vec.save writes: a native file of vectors, with the output layers and the model's numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict, get_type_hints

import numpy as np

from w2v.errors import W2VError
from w2v.formats.header import GensimObject
from w2v.formats.vector_file import Array, VectorFile
from w2v.gensim import attributes
from w2v.gensim.training import OUTPUT_LAYERS, Saved, Trainable
from w2v.system.files import PathLike
from w2v.system.schema import checked

KINDS = ("Word2Vec", "FastText")  # of models in files
OF_MODEL = "gensim.model"  # names attributes of the model that programs set
LOCKS = "vectors_lockf"
SAVED = get_type_hints(Saved, include_extras=True)
Found = TypedDict("Found", SAVED, total=False)  # type: ignore[misc]  # gensim's own files may lack some

# Attributes of a model that are not set by programs.
OWN = {*SAVED, *OUTPUT_LAYERS, "wv", "layer1_size", "raw_vocab", "hashfxn", "random", "load"}


def content_of(model: Trainable) -> VectorFile:
    """The content of a model's file: whatever fits its vectors; a warning names what does not."""
    content = model.wv._content()
    arrays = {LOCKS: model.wv.vectors_lockf} | {name: getattr(model, name, None) for name in OUTPUT_LAYERS}
    for key, array in arrays.items():
        if array is not None and array.shape in _shapes(key, content.vectors):
            content.tensors[key] = array
        elif array is not None:
            attributes.warn_not_saved(f"{key} of shape {array.shape}, for vectors of shape {content.vectors.shape}")
    content.tensors.update(attributes.packed(OF_MODEL, attributes.set_by_programs(model, OWN)))
    saved = GensimObject(model._kind, {name: getattr(model, name) for name in SAVED})
    return replace(content, header=replace(content.header, gensim=saved))


def restore(model: Trainable, path: PathLike, found: VectorFile) -> None:
    """Give a new model the content of its file. Raises AttributeError for vectors only, W2VError for a damaged file."""
    saved = found.header.gensim
    if not saved or saved.kind not in KINDS:
        raise AttributeError(f"{path} is no Word2Vec model: it holds vectors; use KeyedVectors.load")
    given = dict(saved.attributes)
    for name, value in given.items():
        if isinstance(value, bool) and SAVED.get(name) is not bool:  # gensim 3 has True for numbers
            given[name] = int(value)
    attributes_found = checked(Found, given, f"{path}: its settings")
    arrays = {name: found.tensors[name] for name in (LOCKS, *OUTPUT_LAYERS) if name in found.tensors}
    for name, array in arrays.items():
        if array.shape not in _shapes(name, found.vectors) or array.dtype != np.float32:
            raise W2VError(f"{path}: damaged: its arrays do not fit together")
    model.wv = type(model.wv)._from_file(path, found)
    model.wv.vectors_lockf = arrays.pop(LOCKS, model.wv.vectors_lockf)
    vars(model).update(attributes_found, **arrays)
    model.layer1_size = model.vector_size
    attributes.restore(model, OWN, attributes.unpacked(path, OF_MODEL, found.tensors))


def _shapes(name: str, vectors: Array) -> list[tuple[int, ...]]:
    """The shapes that an array of a file may have."""
    return [(1,), (len(vectors),)] if name == LOCKS else [vectors.shape]
