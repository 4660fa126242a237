"""The documents of a model: their tags and rows, and where the documents of a text begin."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from w2v._errors import NothingToTrain, W2VError, one_line, pluralise, translate_errors
from w2v._formats import bfloat16
from w2v._formats.header import ModelHeader
from w2v._kernel.plan import Tags
from w2v._system import memory
from w2v._text._text import SENTENCE_END_ID
from w2v._text.idstore import IdStore
from w2v._text.labels import label_of, label_token
from w2v._text.words import INTEGER, OWN_PREFIX, Words
from w2v._vectors.keyed import KeyedVectors

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
        others = "tags" if store.is_text else "items of --also-context"
        raise W2VError(f"there are more {store.noun}s and {others} than --max-types (max_types=): raise it")
    ids = np.flatnonzero(store.types.start_with(OWN_PREFIX.encode()))
    if not len(ids):
        where = "text has a tag" if store.is_text else "session has an item in the column of --also-context"
        raise NothingToTrain(f"no {where}: all of them are missing")
    store.counts = store.counts.copy()
    store.counts[ids] = 0
    store.tokens = int(store.counts[SENTENCE_END_ID + 1 :].sum())
    return Words.of([label_of(token, OWN_PREFIX) for token in store.words(ids)])


def find_documents(
    store: IdStore, words: NDArray[np.int32], vocabulary: Words, tags: Words | None, chunk: int
) -> tuple[NDArray[np.int32], Tags | None]:
    """Return the number of each id, of words and then of tags, and the tags of a plan; see Plan.

    Args:
        store: The text.
        words: The word of each id; -1 for others, such as tags.
        vocabulary: The words.
        tags: The tags of the model; None if they are words, the items of `also_context`. A tag in the text that is not
            among them is left out.
        chunk: The number of ids in a chunk.
    """
    names = (
        (OWN_PREFIX + word for word in vocabulary) if tags is None else (label_token(tag, OWN_PREFIX) for tag in tags)
    )
    rows = store.remap([*names])
    is_tag = rows >= 0
    if tags is None and (unknown := np.count_nonzero(store.types.start_with(OWN_PREFIX.encode()) & ~is_tag)):
        example = store.words(np.flatnonzero(store.types.start_with(OWN_PREFIX.encode()) & ~is_tag)[:1])[0]
        example = one_line(example.removeprefix(OWN_PREFIX)[:60])
        found = pluralise(int(unknown), "item")
        log.warning("--also-context: %s not in the vocabulary, such as %r, left out", found, example)
    starts, places, before = [np.zeros(1, np.int64)], [np.empty(0, np.int64)], 0
    for ids in store.pieces():
        starts.append(np.flatnonzero(ids == SENTENCE_END_ID) + (before + 1))
        places.append(np.flatnonzero(is_tag[ids]) + before)
        before += len(ids)
    documents = np.concatenate(starts)
    documents = documents[documents < before]
    numbers = np.bincount(np.searchsorted(documents, np.concatenate(places), "right") - 1, minlength=len(documents))
    if tags is None and not numbers.any():
        return words, None
    if (untagged := np.count_nonzero(numbers == 0)) and tags is not None:
        log.warning("%s without a tag, which only train the words", pluralise(int(untagged), "text"))
    chunks = np.arange(0, before, chunk)
    first = documents[np.searchsorted(documents, chunks, "right") - 1]
    own = Tags(len(tags or vocabulary), int(numbers.max()), first, are_words=tags is None)
    return np.where(is_tag, len(vocabulary) + rows, words), own
