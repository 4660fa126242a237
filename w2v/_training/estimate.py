"""`estimate`: read a sample of a text, and say what training on the whole text would need."""

from __future__ import annotations

import logging
import math
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from w2v._progress import Progress, Report
from w2v._settings import Views
from w2v._text._text import FIRST_TYPE
from w2v._text.corpus import Corpus
from w2v._text.idstore import IdStore, TypeCounts
from w2v._text.vocabulary import Vocabulary
from w2v._training.config import RunConfig
from w2v._training.reading import ReadText, read_words
from w2v._training.run import Run
from w2v._training.schedule import epochs_for
from w2v._training.train import start_runs
from w2v._training.views import choose_views, settings_of_views

log = logging.getLogger("w2v")

SAMPLE_BYTES = 1 << 24  # of the files; enough for 3 million words of plain text
TRAINING_SECONDS = 2.0  # to measure the speed of each view
BYTES_PER_ID = 4


def estimate(
    config: RunConfig,
    corpus: Corpus,
    *,
    views: Views,
    vocabulary: Vocabulary | None = None,
    progress: Report | None = None,
) -> dict[str, Any]:
    """Read the first SAMPLE_BYTES of a text, train on them for some seconds, and estimate what the whole text needs.

    If the size of the text is unknown, as for a pipe, the estimate is for the part that was read. The number of words
    of the vocabulary grows as a power of the length of the text (Heaps' law); both halves of the sample give the power.
    Everything else grows with the number of words of the text or of the vocabulary.

    Args:
        config: The description of the run.
        corpus: The text.
        views, vocabulary, progress: See `open_training`.

    Returns:
        What the run would need: "share_read" is the share of the text that was read, or None if the size of the text is
        unknown; "memory_bytes" the peak memory of the process, and "available_bytes" its limit; "ids_bytes" the size of
        the temporary file with the ids of the text, and "parameter_bytes" of the matrices, as in a checkpoint;
        "seconds" the time to read the text and to train.

    Raises:
        W2VError: See `train`.
    """
    config = replace(config, reading=replace(config.reading, cache=None))  # it would cache the sample as the text
    corpus.sample_bytes, started = SAMPLE_BYTES, time.perf_counter()
    store, _ = read_words(corpus, config, progress)
    with store:
        seconds, is_whole = time.perf_counter() - started, corpus.bytes_read <= SAMPLE_BYTES
        share = 1.0 if is_whole else corpus.bytes_read / corpus.total_bytes if corpus.total_bytes else None
        factor = 1 / (share or 1)
        counts = np.round(store.counts * factor).astype(np.int64)
        if share is None:
            log.warning("the size of the text is unknown: this is for the part that was read")
        types = TypeCounts(counts, store.strings, store.offsets, store.pruned, store.key_type, store.noun)
        settings = settings_of_views(choose_views(views, config.settings, types), config.settings)
        epochs = epochs_for(config.settings, config.settings.loss_class, types.tokens)
        settings = {name: replace(each, epochs=epochs) for name, each in settings.items()}
        runs = start_runs(config, settings, ReadText(store, store), vocabulary=vocabulary)
        (first, *_), peak = runs.values(), max(run.peak_memory for run in runs.values())
        growth = 1.0 if vocabulary else _growth(store, factor, config.settings.min_count)
        size = min(round(len(first.vocabulary) * growth), config.settings.max_vocab or 1 << 62)
        growth = size / len(first.vocabulary)
        parameters = sum(array.nbytes for run in runs.values() for array in run.parameters.values())
        seconds += sum(epochs * run.tokens / _speed(run) for run in runs.values())
        return {
            "share_read": share,
            "words": round(store.tokens * factor),
            "vocabulary_size": size,
            "epochs": epochs,
            "memory_bytes": round(peak + (growth - 1) * sum(run.needed_memory for run in runs.values())),
            "available_bytes": first.memory_limit,
            "ids_bytes": round(BYTES_PER_ID * len(store.ids) * factor),
            "parameter_bytes": round(parameters * growth),
            "seconds": seconds * factor,
        }


def _growth(store: IdStore, factor: float, min_count: int) -> float:
    """Return by what factor the vocabulary grows if the text gets `factor` times as long."""
    half: Any = np.bincount(store.ids[: len(store.ids) // 2], minlength=len(store.counts))
    of_half, of_all = (int(np.sum(each[FIRST_TYPE:] >= max(1, min_count))) for each in (half, store.counts))
    return float((of_all / max(1, of_half)) ** math.log2(factor))


class _EnoughError(Exception):
    """The speed of a run is known."""


def _speed(run: Run) -> float:
    """Train for TRAINING_SECONDS after the first words, for which Numba compiles, and return the words per second."""
    start, done_before = time.perf_counter(), 0

    def stop(progress: Progress) -> None:
        nonlocal start, done_before
        if not done_before:
            start, done_before = time.perf_counter(), progress.done
        elif time.perf_counter() - start > TRAINING_SECONDS:
            raise _EnoughError

    with suppress(_EnoughError):
        run.train(stop)
    done, seconds = run.kernel.tokens_trained, time.perf_counter() - start
    return float((done - done_before) / seconds if done > done_before else done / run.seconds)
