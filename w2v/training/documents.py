"""The documents of a model: their tags and rows, and where the documents of a text begin."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from w2v.errors import NothingToTrain, W2VError, pluralise, translate_errors
from w2v.formats import bfloat16
from w2v.formats.header import ModelHeader
from w2v.kernel.plan import Tags
from w2v.system import memory
from w2v.text._text import SENTENCE_END_ID
from w2v.text.idstore import IdStore
from w2v.text.labels import OWN_PREFIX, label_of, label_token
from w2v.text.words import INTEGER, Words
from w2v.vectors.keyed import KeyedVectors

log = logging.getLogger("w2v")

ROWS = "documents"  # the name of the rows of tags among the matrices of a run, and in files


@dataclass(frozen=True)
class Documents:
    """The tags of a model, and their rows, (T, D), in the dtype of the input rows."""

    tags: Words
    rows: NDArray[Any]

    @cached_property
    def keyed_vectors(self) -> KeyedVectors:
        """The vectors by tag. The keys are ints if all tags are whole numbers."""
        is_number = all(map(INTEGER.fullmatch, self.tags))
        header = ModelHeader(key_type="int" if is_number else "str")
        return KeyedVectors(self.tags, memory.read_only(bfloat16.to_float32(self.rows)), header=header)

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays to store in a file, by name."""
        return {ROWS: self.rows} | tensors_of_tags(self.tags)

    @classmethod
    def from_file(cls, tensors: dict[str, NDArray[Any]], size: int, where: object) -> Self | None:
        """Take the documents out of the arrays of a file; return None without documents.

        Raises:
            W2VError: They are damaged. The message starts with `where`.
        """
        if (rows := tensors.pop(ROWS, None)) is None:
            return None
        tags = tags_in(tensors, where)
        if not bfloat16.is_training_dtype(rows) or rows.shape != (len(tags), size):
            raise W2VError(f"{where}: damaged: its documents have shape {rows.shape} and type {rows.dtype}")
        return cls(tags, rows)


def tensors_of_tags(tags: Words) -> dict[str, NDArray[Any]]:
    """Return the arrays that store tags, by name."""
    return {"tags": tags.blob, "tag_offsets": tags.offsets}


def tags_in(tensors: Mapping[str, NDArray[Any]], where: object) -> Words:
    """Return the tags in the arrays of a file. Raise W2VError if they are damaged."""
    blob, offsets = (tensors.get(name, np.empty(0)) for name in ("tags", "tag_offsets"))
    if blob.dtype != np.uint8 or blob.ndim != 1 or offsets.dtype != np.int64 or offsets.ndim != 1:
        raise W2VError(f"{where}: damaged: its tags are inconsistent")
    with translate_errors(str(where), W2VError):
        return Words(blob, np.array(offsets))


def take_tags(store: IdStore) -> Words:
    """Return the tags in a text, in the order of their first documents, and stop counting them as words.

    Raises:
        W2VError: Tags were dropped with rare words, or there are none.
    """
    if store.pruned:
        raise W2VError("there are more words and documents than --max-types (max_types=): raise it")
    ids = np.flatnonzero(store.types.start_with(OWN_PREFIX.encode()))
    if not len(ids):
        raise NothingToTrain("no text has a tag: all of them are missing")
    store.counts = store.counts.copy()
    store.counts[ids] = 0
    store.tokens = int(store.counts[SENTENCE_END_ID + 1 :].sum())
    return Words.of([label_of(token, OWN_PREFIX) for token in store.words(ids)])


def find_documents(
    store: IdStore, words: NDArray[np.int32], vocabulary_size: int, tags: Words, chunk: int
) -> tuple[NDArray[np.int32], Tags]:
    """Return the row of each id, of words and of tags, and the tags of a plan; see Plan.

    Args:
        store: The text.
        words: The word of each id; -1 for others, such as tags.
        vocabulary_size: The number of words.
        tags: The tags of the model; a tag in the text that is not among them is left out.
        chunk: The number of ids in a chunk.
    """
    rows = store.remap([label_token(tag, OWN_PREFIX) for tag in tags])
    is_tag = rows >= 0
    starts, places, before = [np.zeros(1, np.int64)], [np.empty(0, np.int64)], 0
    for ids in store.pieces():
        starts.append(np.flatnonzero(ids == SENTENCE_END_ID) + (before + 1))
        places.append(np.flatnonzero(is_tag[ids]) + before)
        before += len(ids)
    documents = np.concatenate(starts)
    documents = documents[documents < before]
    numbers = np.bincount(np.searchsorted(documents, np.concatenate(places), "right") - 1, minlength=len(documents))
    if untagged := np.count_nonzero(numbers == 0):
        log.warning("%s without a tag, which only train the words", pluralise(int(untagged), "text"))
    chunks = np.arange(0, before, chunk)
    first = documents[np.searchsorted(documents, chunks, "right") - 1]
    return np.where(is_tag, vocabulary_size + rows, words), Tags(len(tags), int(numbers.max()), first)
