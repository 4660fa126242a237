"""Training: text in, model out. Reads the corpus, lays out the matrices, and runs the kernel's threads."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from w2v import memory, objectives
from w2v._kernels import Kernel, chunk_ids, step_for, worker_bytes
from w2v.checkpoint import EVERY, Checkpoint, Checkpoints, Origin, State, finite, latest
from w2v.corpus import Corpus, Source
from w2v.errors import SettingsError, W2VError
from w2v.files import Errors, PathLike
from w2v.idstore import IdStore, read_corpus
from w2v.model import Model, split
from w2v.objectives import Objective
from w2v.objectives.base import file_names
from w2v.objectives.rows import objective_of
from w2v.outputs import Layer, output_layer
from w2v.settings import Settings
from w2v.start import Start, Words, carry, going_on
from w2v.threads import Thread
from w2v.vocab import Vocabulary

INSTRUCTION_SETS = ("avx512", "avx2", "neon", "baseline")  # the fastest first
POLL = 0.1  # seconds between looks at the threads
BLOCK = 1 << 17  # values
SAMPLED = 256  # rows at either end of a matrix, the most often visited, looked at for what is not a number

log = logging.getLogger("w2v")

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
    continue_from: Model | PathLike | None = None,
    vocab: Words = "old",
    cache: PathLike | None = None,
    errors: Errors = "strict",
    max_types: int = 50_000_000,
    checkpoint: PathLike | Checkpoints | None = None,
    checkpoint_every: str = EVERY,
    notes: Mapping[str, Any] | None = None,
    ignore_memory: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Model:
    """Train word vectors.

    Args:
        corpus: a path or list of paths (files, folders, globs, "-"; compressed or not), or any iterable of
            lists of words, which is read once.
        settings: or the names of `Settings` as keyword arguments; `objective` may be an Objective itself.
        vocabulary: words to use in place of those of the corpus.
        continue_from: a model, or the .safetensors file of one, to go on from: its vectors and its settings, but for
            those given. `vocab` is "old" to keep its words, counts and tree, or "union" to add the corpus's; words
            that are new begin like those of a new model.
        cache, errors, max_types: see read_corpus.
        checkpoint: a folder in which to keep the last two states of the run, for `resume`; one is written every
            `checkpoint_every` ("30s", "10m", "2h", "1epoch"), at the end, and when an exception ends the run.
        notes: what JSON holds; kept in the checkpoints.
        ignore_memory: begin although the memory that it needs is not there.
        progress: called now and then as progress(phase, done, total); phase is "read" (bytes), then once "memory"
            (bytes: the estimated peak, and what is available), then "train" (tokens).

    Raises W2VError for a corpus that cannot be used and for matrices that the memory does not hold, SettingsError
    for impossible settings.
    """
    if "objective" in options and not isinstance(options["objective"], str | None):
        options["objective"] = objectives.use(options["objective"])
    unknown = sorted(set(options) - set(Settings.names()))
    if unknown:
        raise SettingsError(f"unknown setting {unknown[0]!r}: choose from {', '.join(Settings.names())}")
    if settings and options:
        raise SettingsError(f"{sorted(options)[0]} stands beside settings: put it into them")
    if continue_from is None:
        chosen = settings or Settings(**options)

        def begin(store: IdStore) -> Start:
            return Start(vocabulary or Vocabulary.from_store(store, chosen.min_count, chosen.max_vocab))

    else:
        if settings or vocabulary:
            raise SettingsError("continue_from brings settings and vocabulary; give single settings beside it")
        model = continue_from if isinstance(continue_from, Model) else Model.load(continue_from, mmap=True)
        chosen = going_on(model, options)
        begin = partial(carry, model, vocab, chosen)
    if chosen.objective is not None:
        objectives.find(chosen.objective)
    text = Corpus(corpus)
    if checkpoint is not None and not isinstance(checkpoint, Checkpoints):
        checkpoint = Checkpoints(checkpoint, checkpoint_every)
    origin = Origin(
        sources=[file if file == "-" else str(Path(file).absolute()) for file in text.files],
        files=text.fingerprint(),
        cache=None if cache is None else str(Path(cache).absolute()),
        errors=errors,
        max_types=max_types,
        notes=dict(notes or {}),
    )
    return _train(text, origin, chosen, begin, None, checkpoint, ignore_memory, progress)


def resume(
    folder: PathLike | Checkpoint,
    corpus: Source | None = None,
    *,
    ignore_memory: bool = False,
    progress: Progress | None = None,
) -> Model:
    """Go on with a run from the newest whole checkpoint in a folder; with one worker, to the same bits as if it had
    never been stopped.

    Args:
        folder: what `train` was given as `checkpoint`; or what checkpoint.latest has read from it.
        corpus: the same text, where it is now; lists of words must be given again. By default the files of the run.
        ignore_memory, progress: see train.

    Raises W2VError where the folder holds no whole checkpoint and for another text.
    """
    found = folder if isinstance(folder, Checkpoint) else latest(folder)
    origin = found.origin
    if corpus is None and not origin.sources:
        raise W2VError("the corpus of this run was lists of words: give them again")
    text = Corpus(origin.sources if corpus is None else corpus)
    for (path, size, _), (now, size_now, _) in zip(origin.files or [], text.fingerprint() or [], strict=False):
        if size != size_now:  # seen without reading it
            raise W2VError(f"another corpus: {path} had {size:,} bytes when the run began, and {now} has {size_now:,}")
    checkpoints = Checkpoints(found.path.parent, found.every, after=found.path)
    if found.version != version("w2v"):
        log.warning("the checkpoint is of w2v %s, this is %s: last bits may differ", found.version, version("w2v"))
    state = found.state
    start = Start(state.vocabulary, state.layer, state.parameters)
    return _train(text, origin, state.settings, lambda _: start, state, checkpoints, ignore_memory, progress)


def _train(
    text: Corpus,
    origin: Origin,
    settings: Settings,
    begin: Callable[[IdStore], Start],
    state: State | None,
    checkpoints: Checkpoints | None,
    ignore_memory: bool,
    progress: Progress | None,
) -> Model:
    """Train from where `begin` says, or from a state, which it then must give."""
    started = time.perf_counter()
    tell = progress or (lambda phase, done, total: None)
    with (
        checkpoints or nullcontext(),
        read_corpus(
            text,
            cache=origin.cache,
            errors=cast(Errors, origin.errors),
            workers=settings.threads,
            max_types=origin.max_types,
            progress=lambda done, total: tell("read", done, total),
        ) as store,
    ):
        if checkpoints:
            checksum = store.checksum()
            if state and checksum != origin.checksum:
                raise W2VError(f"another corpus: {text} does not hold the text that the run began with")
            checkpoints.origin = replace(origin, checksum=checksum)
        instructions = _instruction_set_of(state) if state else None
        run = Run(settings, begin(store), store, instructions, copies=bool(checkpoints), ignore_memory=ignore_memory)
        if state:
            run.restore(state)
        tell("memory", run.peak, run.limit)
        read = time.perf_counter()
        run.go(tell, checkpoints)
    seconds = {"read": read - started, "train": run.seconds}
    figures = {
        "tokens": run.tokens,
        "tokens_trained": run.kernel.tokens_trained,
        "words_per_second": run.kernel.tokens_trained / seconds["train"],
        "seconds": seconds,
        "loss": run.mean_losses,
        "sentences": store.sentences,
        "pruned": store.pruned,
        "cache_reused": store.reused,
        "instruction_set": run.instruction_set,
    }
    return Model(settings, run.vocabulary, layer=run.layer, figures=figures, **split(run.parameters))


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
        matrices = memory.row_bytes(settings.vector_size) * (len(vocabulary) + layer.rows) * (2 if copies else 1)
        self.peak, self.limit = peak_memory(matrices + threads_memory(layer, settings, chunk), ignore_memory)
        self.inputs = initial_inputs(len(vocabulary), settings.vector_size, settings.seed)
        learnt = new_parameters(layer, settings)
        keep = vocabulary.keep_probabilities(settings.sample, settings.sample_formula)
        arguments: dict[str, Any] = {
            "ids": store.ids,
            "words": words,
            "tokens_before": tokens_before,
            "keep": thresholds(keep),
            "inputs": self.inputs,
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
            from w2v import _numba  # Numba is optional, and slow to import

            objective = layer if isinstance(layer, Objective) else objective_of(layer)
            self.kernel = _numba.Kernel(**arguments, parameters=learnt, objective=objective)
        else:
            assert not isinstance(layer, Objective)
            self.kernel = Kernel(
                **arguments, outputs=learnt["outputs"], layer=layer, instruction_set=self.instruction_set
            )
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

    def _check_numbers(self, checkpoints: Checkpoints | None, *arrays: NDArray[np.float32]) -> None:
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


def new_parameters(layer: Layer, settings: Settings) -> dict[str, NDArray[np.float32]]:
    """What a layer learns, as it begins, with rows padded."""
    if isinstance(layer, Objective):
        return layer.new_parameters()
    return {"outputs": memory.aligned_rows(layer.rows, settings.vector_size)}


def _instruction_set_of(state: State) -> str:
    """The one in which a run was begun, for others round differently; where it is not there, the one in use."""
    if step_for(state.instruction_set):
        return state.instruction_set
    log.warning("this machine lacks %s, in which the run began: last bits will differ", state.instruction_set)
    return instruction_set()


def threads_memory(layer: Layer, settings: Settings, chunk: int) -> int:
    """The bytes that the threads of a run take beside the matrices."""
    width = memory.row_bytes(settings.vector_size) // 4
    if settings.kernel == "numba":
        from w2v import _numba

        objective = layer if isinstance(layer, Objective) else objective_of(layer)
        each = _numba.worker_bytes(objective, width=width, window=settings.window, chunk=chunk)
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


def initial_inputs(rows: int, size: int, seed: int) -> NDArray[np.float32]:
    """Input rows drawn evenly from ±0.5 / size, as word2vec.c does: float32 (rows, size padded with zeros)."""
    inputs = memory.aligned_rows(rows, size)
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
