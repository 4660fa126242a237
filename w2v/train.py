"""Training: text in, model out. Reads the corpus, lays out the matrices, and runs the kernel's threads."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v import memory
from w2v._kernels import Kernel, chunk_ids, step_for
from w2v.corpus import Corpus, Source
from w2v.errors import SettingsError, W2VError
from w2v.files import Errors, PathLike
from w2v.idstore import IdStore, read_corpus
from w2v.model import Model
from w2v.outputs import output_layer
from w2v.settings import Settings
from w2v.vocab import Vocabulary

INSTRUCTION_SETS = ("avx512", "avx2", "neon", "baseline")  # the fastest first
POLL = 0.1  # seconds between looks at the threads
BLOCK = 1 << 12  # rows

# progress(phase, done, total or None): see train
Progress = Callable[[str, int, int | None], None]


def instruction_set() -> str:
    """The instruction set in use: the fastest that this machine runs, or the one that W2V_SIMD names.

    Raises SettingsError for one that it does not run.
    """
    available = [name for name in INSTRUCTION_SETS if step_for(name)]
    chosen = os.environ.get("W2V_SIMD") or available[0]
    if chosen not in available:
        raise SettingsError(f"W2V_SIMD={chosen}: this machine runs {', '.join(available)}")
    return chosen


def train(
    corpus: Source,
    settings: Settings | None = None,
    *,
    vocabulary: Vocabulary | None = None,
    cache: PathLike | None = None,
    errors: Errors = "strict",
    max_types: int = 50_000_000,
    progress: Progress | None = None,
    **options: Any,
) -> Model:
    """Train word vectors.

    Args:
        corpus: a path or list of paths (files, folders, globs, "-"; compressed or not), or any iterable of
            lists of words, which is read once.
        settings: or the names of `Settings` as keyword arguments.
        vocabulary: words to use in place of those of the corpus.
        cache, errors, max_types: see read_corpus.
        progress: called now and then as progress(phase, done, total); phase is "read" (bytes), then once "memory"
            (bytes: the estimated peak, and what is available), then "train" (tokens).

    Raises W2VError for a corpus that cannot be used and for matrices that the memory does not hold, SettingsError
    for impossible settings.
    """
    if settings is None:
        unknown = sorted(set(options) - set(Settings.names()))
        if unknown:
            raise SettingsError(f"unknown setting {unknown[0]!r}: choose from {', '.join(Settings.names())}")
        settings = Settings(**options)
    elif options:
        raise SettingsError(f"{sorted(options)[0]} stands beside settings: put it into them")
    started = time.perf_counter()
    tell = progress or (lambda phase, done, total: None)
    with read_corpus(
        Corpus(corpus),
        cache=cache,
        errors=errors,
        workers=settings.threads,
        max_types=max_types,
        progress=lambda done, total: tell("read", done, total),
    ) as store:
        if vocabulary is None:
            vocabulary = Vocabulary.from_store(store, settings.min_count, settings.max_vocab)
        run = Run(settings, vocabulary, store)
        tell("memory", run.peak, run.limit)
        read = time.perf_counter()
        run.go(tell)
    seconds = {"read": read - started, "train": time.perf_counter() - read}
    figures = {
        "tokens": run.tokens,
        "tokens_trained": run.kernel.tokens_trained,
        "words_per_second": run.kernel.tokens_trained / seconds["train"],
        "seconds": seconds,
        "loss": run.mean_losses,
        "sentences": store.sentences,
        "pruned": store.pruned,
        "cache_reused": store.reused,
    }
    size = settings.vector_size
    return Model(settings, vocabulary, run.inputs[:, :size], run.outputs[:, :size], run.layer, figures)


class Run:
    """One training run over an id store: the matrices, and the kernel's threads that move them."""

    def __init__(self, settings: Settings, vocabulary: Vocabulary, store: IdStore) -> None:
        if len(vocabulary) < 2:
            raise W2VError(
                f"the vocabulary has one word, {vocabulary.words[0]!r}: at least 2 are needed; "
                "lower min_count or give more text"
            )
        self.layer = layer = output_layer(settings, vocabulary, {})
        chunk = chunk_ids(layer.mean_rows, settings.vector_size, settings.window)
        words = store.remap(vocabulary.words)
        tokens_before = store.known_before(words, chunk)
        self.tokens = int(tokens_before[-1])
        if not self.tokens:
            raise W2VError("no word of the corpus is in the vocabulary that was given")
        self.settings = settings
        self.store = store
        self.peak, self.limit = peak_memory(len(vocabulary) + layer.rows, settings.vector_size)
        self.inputs = initial_inputs(len(vocabulary), settings.vector_size, settings.seed)
        self.outputs = memory.aligned_rows(layer.rows, settings.vector_size)
        keep = vocabulary.keep_probabilities(settings.sample, settings.sample_formula)
        self.kernel = Kernel(
            ids=store.ids,
            words=words,
            tokens_before=tokens_before,
            keep=thresholds(keep),
            inputs=self.inputs,
            outputs=self.outputs,
            layer=layer,
            cbow=settings.model == "cbow",
            corrected=settings.cbow_gradient == "corrected",
            window=settings.window,
            shrink_windows=settings.shrink_windows,
            per_pair=settings.per_pair,
            alpha=settings.start_alpha,
            min_alpha=settings.end_alpha,
            epochs=settings.epochs,
            seed=settings.seed,
            chunk=chunk,
            workers=settings.threads,
            instruction_set=instruction_set(),
        )

    def go(self, tell: Progress) -> None:
        """Train to the end. Raises W2VError where the vectors diverge."""
        total = self.settings.epochs * self.tokens
        threads = [threading.Thread(target=self.kernel.run, args=(number,)) for number in range(self.settings.threads)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(POLL)
                    self.store.release()
                    tell("train", self.kernel.tokens_trained, total)
        except BaseException:
            self.kernel.stop()
            raise
        finally:
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
        tell("train", self.kernel.tokens_trained, total)
        if not self.kernel.predictions.any():
            raise W2VError(
                "nothing to learn: no word has another within its window; a sentence is a line, and words rarer than "
                "min_count and subsampled ones leave it first"
            )
        if not all(math.isfinite(loss) for loss in self.kernel.losses):
            raise W2VError(
                f"training diverged: the loss is no longer a number; lower alpha, now {self.settings.start_alpha:g}"
            )

    @property
    def mean_losses(self) -> list[float | None]:
        """Mean loss of a prediction in each epoch, None where there was none."""
        sums, counts = self.kernel.losses.tolist(), self.kernel.predictions.tolist()
        return [total / count if count else None for total, count in zip(sums, counts, strict=True)]


def peak_memory(rows: int, size: int) -> tuple[int, int]:
    """The bytes that this process is about to hold with `rows` more vectors, and the most that it may.

    Raises W2VError where they are too many.
    """
    held, needed, available = memory.held(), memory.row_bytes(size) * rows, memory.available()
    if needed > available:
        raise W2VError(
            f"training needs about {(held + needed) / 1e6:,.0f} MB of memory, and {(held + available) / 1e6:,.0f} MB "
            "are there: lower vector_size or max_vocab, or raise min_count"
        )
    return held + needed, held + available


def initial_inputs(rows: int, size: int, seed: int) -> NDArray[np.float32]:
    """Input rows drawn evenly from ±0.5 / size, as word2vec.c does: float32 (rows, size padded with zeros)."""
    inputs = memory.aligned_rows(rows, size)
    generator = np.random.Generator(np.random.PCG64(seed))
    for start in range(0, rows, BLOCK):
        block = inputs[start : start + BLOCK, :size]
        block[:] = (generator.random(block.shape, np.float32) - 0.5) / size
    return inputs


def thresholds(probabilities: NDArray[np.float32]) -> NDArray[np.uint32]:
    """The largest of the 32-bit numbers that stand for "yes" where a yes has these probabilities."""
    scaled = np.ceil(probabilities.astype(np.float64) * 2.0**32) - 1
    limited: NDArray[np.float64] = np.clip(scaled, 0, 2**32 - 1)
    return limited.astype(np.uint32)
