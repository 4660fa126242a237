"""Vectors of new texts from a model of documents: each text trains a new row, and all other rows stay unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from queue import SimpleQueue
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError
from w2v._formats import bfloat16
from w2v._kernel.kernels import new_kernel, own_instruction_set
from w2v._kernel.plan import Plan, Tags, initial_inputs, thresholds
from w2v._kernels import MAX_CHUNK_SIZE
from w2v._losses.loss import by_tensor_name
from w2v._progress import Meter, Report
from w2v._system import memory
from w2v._system.files import Errors
from w2v._system.threads import map_in_order, processors
from w2v._text.columns import PLAIN
from w2v._text.corpus import Corpus
from w2v._text.encodings import UTF_8
from w2v._text.lines import read_lines
from w2v._text.words import OWN_PREFIX

Rows = NDArray[np.int32]

TEXTS_AT_ONCE = 16  # texts that a thread infers at a time


class Inference:
    """Infers the vectors of texts, as paragraph vectors do (Le and Mikolov 2014).

    Each text is a run of its own with one worker. So its vector depends on the text, the model and the settings, but
    not on other texts or threads. The texts share the rows of the model, which stay unchanged; each thread has one row
    for the text that it trains.

    Attributes:
        texts, words, unknown, missing: The numbers of texts, of their words, and of unknown words and missing texts.
    """

    def __init__(self, view: Any, errors: Errors = "strict") -> None:
        """Copy the rows of a model.

        Args:
            view: A View that was trained with `documents`.
            errors: What to do with bytes that are not UTF-8.

        Raises:
            SettingsError: The model has no documents.
        """
        settings = view.settings
        if not settings.documents:
            raise SettingsError("the model has no documents: train with --documents (documents=)")
        self.texts = self.words = self.unknown = self.missing = 0
        self.size, self.workers, self._errors = settings.vector_size, processors(), errors
        # Word vectors stay as they are, so skip-gram steps of words would change nothing.
        kind = "dm" if settings.documents == "dm" else "dbow"
        settings = replace(settings, documents=kind, workers=1, deterministic=False)
        self._lookup, self._text, self._vocabulary_size = (
            view.vocabulary.words.lookup(),
            view.text,
            len(view.vocabulary),
        )
        self._inputs, self._parameters = self._copy_rows(view)
        self._start = initial_inputs(1, self.size, settings.seed, self._inputs.dtype)[0]
        self._slots = SimpleQueue[int]()
        for slot in range(self._vocabulary_size, len(self._inputs)):
            self._slots.put(slot)
        keep = np.ones(len(self._inputs), np.float32)
        keep[: self._vocabulary_size] = view.vocabulary.keep_probabilities(settings.sample, settings.sample_formula)
        self._tags = Tags(self._slots.qsize(), 1, np.zeros(1, np.int64), fixed_words=True)
        self._plan = Plan(
            settings=settings,
            ids=np.empty(0, np.uint32),
            word_of_type=np.arange(-1, len(self._inputs), dtype=np.int32),
            tokens_before=np.zeros(1, np.int64),
            keep_thresholds=thresholds(keep),
            loss=view.loss,
            epochs=int(settings.epochs),
            workers=1,
            chunk_size=1,
            instruction_set=own_instruction_set(settings.kernel),
            frozen_outputs=True,
            tags=self._tags,
        )

    def with_schedule(self, epochs: int | None, alpha: float | None) -> Inference:
        """Return an Inference that shares the rows, with another number of epochs or learning rate, unless it is None.

        Raises:
            SettingsError: A value is impossible.
        """
        if isinstance(epochs, str):
            raise SettingsError(f"epochs {epochs[:60]!r}: a new text needs a whole number, from 1 to 1,000,000")
        changed: dict[str, Any] = {} if alpha is None else {"alpha": alpha, "min_alpha": None}
        changed |= {} if epochs is None else {"epochs": epochs}
        settings = replace(self._plan.settings, **changed)
        other = copy(self)
        other._plan = replace(self._plan, settings=settings, epochs=int(settings.epochs))
        return other

    def _copy_rows(self, view: Any) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
        """Return padded copies: of the input rows, with rows for the texts, and of the parameters of the loss."""
        words = self._vocabulary_size
        inputs = memory.aligned_rows(words + 2 * self.workers, self.size, bfloat16.dtype_of(view.settings.storage))
        inputs[:words, : self.size] = view.inputs
        parameters = view.loss.new_parameters()
        for name, array in by_tensor_name(view.loss.stored(parameters)).items():
            array[:] = view.output_parameters[name]
        return inputs, parameters

    def blocks(
        self, texts: Corpus, progress: Report | None = None, column: str | None = PLAIN, encoding: str = UTF_8
    ) -> Iterator[NDArray[np.float32]]:
        """Yield the vectors of texts in blocks; see Encoder.blocks. A text without known words gets zeros."""
        meter, done = Meter(progress, "encode"), 0
        rows: Rows
        rest: Rows = np.empty(0, np.int32)
        documents: list[Rows]
        for text, bytes_done in read_lines(texts, self._text, column, encoding, self._errors, action="gave zeros to"):
            if isinstance(text, bytes):
                text = text.replace(OWN_PREFIX.encode(), b" ")  # as in training; see `words_of`
            rows = np.append(rest, self._lookup.find(text)[0])  # -1 at the end of a line; V + k is the unknown word k
            *documents, rest = np.split(rows, np.flatnonzero(rows < 0) + 1)
            batches = (documents[first : first + TEXTS_AT_ONCE] for first in range(0, len(documents), TEXTS_AT_ONCE))
            yield from map_in_order(self._infer, batches, self.workers)
            self.texts += len(documents)
            self.words += sum(map(len, documents)) - len(documents)
            self.unknown += sum(int(np.count_nonzero(each >= self._vocabulary_size)) for each in documents)
            done = bytes_done
            meter(done, texts.total_bytes)
        self.missing += texts.missing
        meter(done, done)

    def _infer(self, documents: list[Rows]) -> NDArray[np.float32]:
        """Return the vectors of some texts, (n, D), each given by its rows of words and -1 at the end."""
        slot, vectors = self._slots.get(), np.zeros((len(documents), self.size), np.float32)
        row = self._inputs[slot]
        for vector, document in zip(vectors, documents, strict=True):
            known = document[(document >= 0) & (document < self._vocabulary_size)]
            if len(known):
                row[:] = self._start
                new_kernel(self._plan_of(slot, known), self._inputs, self._parameters).run(0)
                vector[:] = row[: self.size]
        self._slots.put(slot)
        return vectors

    def _plan_of(self, slot: int, words: Rows) -> Plan:
        """Return the plan to train a row on the words of a text. Id k + 1 is row k, and the first id is the tag."""
        ids = np.append(slot, words).astype(np.uint32) + np.uint32(1)
        chunk = min(len(ids), MAX_CHUNK_SIZE)
        ends = np.minimum(np.arange(0, len(ids) + chunk, chunk), len(ids))
        tags = replace(self._tags, document_starts=np.zeros(len(ends) - 1, np.int64))
        # With the same random numbers for all texts, their vectors would have the same error: a bias. `replace` would
        # check the settings, which takes half as long as a short text.
        settings = copy(self._plan.settings)
        object.__setattr__(settings, "seed", settings.seed ^ crc32(words.tobytes()))
        before = np.maximum(ends - 1, 0)
        return replace(self._plan, settings=settings, ids=ids, chunk_size=chunk, tokens_before=before, tags=tags)
