"""A run: the matrices of a training, laid out, and the kernel's threads that move them, watched."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v import memory
from w2v._kernels import Kernel, chunk_ids, step_for, worker_bytes
from w2v.errors import SettingsError, W2VError
from w2v.formats import bfloat16
from w2v.losses.layers import Layer, output_layer
from w2v.losses.objective import Objective, file_names
from w2v.losses.rows import objective_of
from w2v.progress import Progress
from w2v.settings import Settings
from w2v.text.idstore import IdStore
from w2v.threads import Thread
from w2v.training.checkpoint import Checkpoints, State, finite
from w2v.training.start import Start

INSTRUCTION_SETS = ("avx512", "avx2", "neon", "baseline")  # the fastest first
POLL = 0.1  # seconds between looks at the threads
BLOCK = 1 << 17  # values
SAMPLED = 256  # rows at either end of a matrix, the most often visited, looked at for what is not a number


def instruction_set() -> str:
    """The instruction set in use: the fastest that this machine runs, or the one that W2V_SIMD names.

    Raises SettingsError for one that it does not run.
    """
    available = [name for name in INSTRUCTION_SETS if step_for(name)]
    chosen = os.environ.get("W2V_SIMD") or available[0]
    if chosen not in available:
        raise SettingsError(f"W2V_SIMD={chosen}: this machine runs {', '.join(available)}")
    return chosen


class Run:
    """One training run over an id store: the matrices, and the kernel's threads that move them.

    `copies` says whether memory is needed for copies of the matrices.
    """

    def __init__(
        self,
        settings: Settings,
        start: Start,
        store: IdStore,
        instructions: str | None = None,
        *,
        copies: bool = False,
        ignore_memory: bool = False,
    ) -> None:
        vocabulary = start.vocabulary
        if len(vocabulary) < 2:
            raise W2VError(
                f"the vocabulary has one word, {vocabulary.words[0][:60]!r}: at least 2 are needed; "
                "lower min_count or give more text"
            )
        self.layer = layer = start.layer or output_layer(settings, vocabulary, {})
        chunk = chunk_ids(layer.mean_rows, settings.vector_size, settings.window)
        words = store.remap(vocabulary.words)
        tokens_before = store.known_before(words, chunk)
        self.tokens = int(tokens_before[-1])
        if not self.tokens:
            raise W2VError("no word of the corpus is in the vocabulary that was given")
        self.settings = settings
        self.vocabulary = vocabulary
        self.store = store
        self.chunks = len(tokens_before) - 1  # in an epoch
        self.end = settings.epochs * self.chunks
        self.seconds = 0.0  # of training
        self.instruction_set = instructions or instruction_set()
        dtype = bfloat16.dtype_of(settings.storage)
        row = memory.row_width(settings.vector_size, dtype) * dtype.itemsize
        matrices = row * (len(vocabulary) + layer.rows) * (2 if copies else 1)
        self.peak, self.limit = peak_memory(matrices + threads_memory(layer, settings, chunk), ignore_memory)
        self.inputs = initial_inputs(len(vocabulary), settings.vector_size, settings.seed, dtype)
        learnt = new_parameters(layer, settings)
        keep = vocabulary.keep_probabilities(settings.sample, settings.sample_formula)
        arguments: dict[str, Any] = {
            "ids": store.ids,
            "words": words,
            "tokens_before": tokens_before,
            "keep": thresholds(keep),
            "inputs": bfloat16.bits(self.inputs),
            "cbow": settings.model == "cbow",
            "corrected": settings.cbow_gradient == "corrected",
            "window": settings.window,
            "shrink_windows": settings.shrink_windows,
            "per_pair": settings.per_pair,
            "alpha": settings.start_alpha,
            "min_alpha": settings.end_alpha,
            "epochs": settings.epochs,
            "seed": settings.seed,
            "chunk": chunk,
            "workers": settings.threads,
        }
        self.kernel: Any
        if settings.kernel == "numba":
            from w2v.training import numba_kernel  # Numba is optional, and slow to import

            objective = layer if isinstance(layer, Objective) else objective_of(layer)
            self.kernel = numba_kernel.Kernel(**arguments, parameters=learnt, objective=objective)
        else:
            assert not isinstance(layer, Objective)
            outputs = bfloat16.bits(learnt["outputs"])
            self.kernel = Kernel(**arguments, outputs=outputs, layer=layer, instruction_set=self.instruction_set)
        # Without padding:
        self.parameters = {"inputs": self.inputs[:, : settings.vector_size]}
        if isinstance(layer, Objective):
            self.parameters |= file_names(layer.stored(learnt))
        else:
            self.parameters["outputs"] = learnt["outputs"][:, : settings.vector_size]
        for name, array in start.parameters.items():
            self.parameters[name][slice(None) if start.rows is None else start.rows] = array

    def restore(self, state: State) -> None:
        """Take up the place of a run of the same settings. Raises W2VError where it cannot."""
        if state.end != self.end:
            raise W2VError("the checkpoint is of a version of w2v that counts in other chunks: go on with that")
        self.seconds = state.seconds
        self.kernel.restore(state.position, state.losses, state.predictions)

    @property
    def state(self) -> State:
        """All that a run needs to go on from here. At rest."""
        return State(
            settings=self.settings,
            vocabulary=self.vocabulary,
            layer=self.layer,
            parameters=self.parameters,
            position=self.kernel.position,
            end=self.end,
            losses=self.kernel.losses,
            predictions=self.kernel.predictions,
            tokens_trained=self.kernel.tokens_trained,
            seconds=self.seconds,
            instruction_set=self.instruction_set,
        )

    def go(self, tell: Progress, checkpoints: Checkpoints | None = None) -> None:
        """Train to the end, and write checkpoints, the last when it ends. Raises W2VError where the vectors diverge."""
        begun = self.kernel.position
        try:
            while self.kernel.position < self.end:
                self._work(tell, checkpoints)
                if checkpoints and self.kernel.position < self.end:
                    state = self.state
                    checkpoints.copy(state)
                    self.kernel.restore(state.position, state.losses, state.predictions)
        finally:
            if checkpoints and self.kernel.position > begun:
                checkpoints.write(self.state)
        if not self.kernel.predictions.any():
            raise W2VError(
                "nothing to learn: no word has another within its window; a sentence is a line, and words rarer than "
                "min_count and subsampled ones leave it first"
            )
        self._check_numbers(checkpoints, *self.parameters.values())

    def _work(self, tell: Progress, checkpoints: Checkpoints | None) -> None:
        """Train until all is done or a checkpoint is due."""
        total = self.settings.epochs * self.tokens
        threads = [Thread(target=self.kernel.run, args=(number,)) for number in range(self.settings.threads)]
        parameters = self.parameters.values()
        sample = [part for array in parameters for part in (array[:SAMPLED], array[-SAMPLED:])]
        started = time.perf_counter()
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(POLL)
                    self.store.release()
                    tell("train", self.kernel.tokens_trained, total)
                    self._check_numbers(checkpoints, *sample)
                    if checkpoints and checkpoints.due(self.kernel.position // self.chunks):
                        self.kernel.stop()
        except BaseException:
            self.kernel.stop()
            raise
        finally:
            for thread in threads:  # one that has not begun will find that it is to stop
                thread.wait()
            self.seconds += time.perf_counter() - started
        tell("train", self.kernel.tokens_trained, total)

    def _check_numbers(self, checkpoints: Checkpoints | None, *arrays: NDArray[Any]) -> None:
        """Raise W2VError where the losses or one of the arrays are no longer numbers."""
        if np.isfinite(self.kernel.losses).all() and finite(arrays) and not (checkpoints and checkpoints.diverged):
            return
        newest = checkpoints.newest if checkpoints else None
        raise W2VError(
            f"training diverged: after {self.kernel.tokens_trained:,} of {self.settings.epochs * self.tokens:,} words "
            f"vectors are no longer numbers; lower alpha, now {self.settings.start_alpha:g}"
            + (f"; the last good checkpoint is {newest}" if newest else "")
        )

    @property
    def mean_losses(self) -> list[float | None]:
        """Mean loss of a prediction in each epoch, None where there was none."""
        sums, counts = self.kernel.losses.tolist(), self.kernel.predictions.tolist()
        return [total / count if count else None for total, count in zip(sums, counts, strict=True)]


def new_parameters(layer: Layer, settings: Settings) -> dict[str, NDArray[Any]]:
    """What a layer learns, as it begins, with rows padded."""
    if isinstance(layer, Objective):
        return layer.new_parameters()
    return {"outputs": memory.aligned_rows(layer.rows, settings.vector_size, bfloat16.dtype_of(settings.storage))}


def threads_memory(layer: Layer, settings: Settings, chunk: int) -> int:
    """The bytes that the threads of a run take beside the matrices."""
    width = memory.row_width(settings.vector_size, bfloat16.dtype_of(settings.storage))
    if settings.kernel == "numba":
        from w2v.training import numba_kernel

        objective = layer if isinstance(layer, Objective) else objective_of(layer)
        each = numba_kernel.worker_bytes(objective, width=width, window=settings.window, chunk=chunk)
    else:
        assert not isinstance(layer, Objective)
        each = worker_bytes(
            layer,
            width=width,
            window=settings.window,
            cbow=settings.model == "cbow",
            per_pair=settings.per_pair,
            chunk=chunk,
            workers=settings.threads,
            bfloat16=settings.storage == "bf16",
        )
    return settings.threads * each


def peak_memory(needed: int, ignore: bool = False) -> tuple[int, int]:
    """The bytes that this process is about to hold with those that are `needed`, and the most that it may.

    Raises W2VError where they are too many, unless that is to be ignored.
    """
    held, available = memory.held(), memory.available()
    if needed > available and not ignore:
        raise W2VError(
            f"training needs about {(held + needed) / 1e6:,.0f} MB of memory, and {(held + available) / 1e6:,.0f} MB "
            "are there: lower vector_size, max_vocab or window, raise min_count, or add --ignore-memory "
            "(ignore_memory=True)"
        )
    return held + needed, held + available


def initial_inputs(rows: int, size: int, seed: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Input rows drawn evenly from ±0.5 / size, as word2vec.c does: (rows, size padded with zeros)."""
    inputs = memory.aligned_rows(rows, size, dtype)
    generator = np.random.Generator(np.random.PCG64(seed))
    at_once = -(-BLOCK // size)
    for start in range(0, rows, at_once):
        block = inputs[start : start + at_once, :size]
        block[:] = (generator.random(block.shape, np.float32) - 0.5) / size
    return inputs


def thresholds(probabilities: NDArray[np.float32]) -> NDArray[np.uint32]:
    """The largest of the 32-bit numbers that stand for "yes" where a yes has these probabilities."""
    scaled = np.ceil(probabilities.astype(np.float64) * 2.0**32) - 1
    limited: NDArray[np.float64] = np.clip(scaled, 0, 2**32 - 1)
    return limited.astype(np.uint32)
