"""A run: makes a plan, allocates the matrices, and watches the kernel's threads while they train."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v._kernels import MAX_CHUNK_IDS, Kernel, chunk_ids, worker_bytes
from w2v.errors import Diverged, NothingToTrain, W2VError
from w2v.formats import bfloat16
from w2v.kernel import loop
from w2v.kernel.plan import Plan, instruction_set
from w2v.losses.loss import file_names
from w2v.losses.registry import Settings, loss_for
from w2v.progress import Meter, Report
from w2v.system import memory
from w2v.system.threads import Thread
from w2v.text.idstore import IdStore, TypeCounts
from w2v.text.phrases import Phrases
from w2v.text.subword_rows import SubwordRows
from w2v.text.subwords import Ngrams
from w2v.training.checkpoint import Checkpoint, Checkpoints, Position
from w2v.training.config import RunConfig
from w2v.training.divergence import MAX_RISE, SOUND_RISE, finite, rise
from w2v.training.early_stopping import EarlyStopping
from w2v.training.initialisation import Initialisation
from w2v.training.model import Model, split
from w2v.training.schedule import Schedule, epochs_for
from w2v.vectors.combine import memory_of

log = logging.getLogger("w2v")

POLL = 0.1  # seconds between checks of the threads
DRAWN = 1 << 17  # initial values drawn at a time
HISTORY_ROWS = 200  # of a whole run, about
# Ids in a chunk with subwords, all of whose changes are computed from the values before the chunk: a share of the text.
SUBWORD_CHUNKS, MIN_SUBWORD_CHUNK, MAX_SUBWORD_CHUNK = 600, 256, 4096
# Ids in a round and in a chunk of deterministic threads, which copy the rows that several chunks of a round need.
ORDERED_ROUND, MIN_ORDERED_CHUNK, MAX_ORDERED_CHUNK = 2048, 64, 256
FROZEN_CHUNK = 512  # ids in a chunk with frozen words, whose copies change within it
MOST_CHANGES = 8  # in a chunk: single letters, which most words have, diverge with more
DAMPING = 0.25  # of these changes: see shares_of
SAMPLED = 256  # rows at either end of a matrix, the most updated ones, that are checked for NaN and infinity


def plan_run(
    settings: Settings,
    initial: Initialisation,
    store: IdStore,
    instructions: str | None = None,
    total: Callable[[int], int] = int,
    max_chunk: int = MAX_CHUNK_IDS,
    ignore_memory: bool = False,
) -> Plan:
    """The plan of a run. Raises W2VError for a vocabulary that cannot be trained on.

    `total` sums a number over the ranks of a run, each of which has a part of the text.
    """
    vocabulary = initial.vocabulary
    if len(vocabulary) < 2:
        raise NothingToTrain(
            f"the vocabulary has one word, {vocabulary.words[0][:60]!r}: at least 2 are needed; "
            "lower min_count or give more text"
        )
    loss = initial.loss or loss_for(settings, vocabulary)
    chunk = min(max_chunk, chunk_ids(loss.expected_rows, settings.vector_size, settings.window_size))
    keep = vocabulary.keep_probabilities(settings.sample, settings.sample_formula)
    subwords, shares = None, None
    if settings.deterministic:
        chunk = min(chunk, max(MIN_ORDERED_CHUNK, min(ORDERED_ROUND // settings.threads, MAX_ORDERED_CHUNK)))
    if settings.ngrams:
        share = total(len(store.ids)) // SUBWORD_CHUNKS
        chunk = min(chunk, max(MIN_SUBWORD_CHUNK, min(share, MAX_SUBWORD_CHUNK)))
        subwords = SubwordRows.of(settings.ngrams, vocabulary.words, ignore_memory)
        shares = shares_of(subwords, -np.expm1(-chunk * keep * vocabulary.counts / vocabulary.tokens))
    elif initial.frozen is not None:  # the steps of a chunk update copies of rows, and frozen rows receive none of it
        chunk = min(chunk, FROZEN_CHUNK)
        subwords, shares = SubwordRows.own(len(vocabulary)), (~initial.frozen).astype(np.float32)
    words = store.remap(vocabulary.words)
    tokens_before = store.known_before(words, chunk)
    if not (tokens := total(int(tokens_before[-1]))):
        raise NothingToTrain("no word of the corpus is in the vocabulary that was given")
    return Plan(
        ids=store.ids,
        words=words,
        tokens_before=tokens_before,
        keep=thresholds(keep),
        loss=loss,
        cbow=settings.model == "cbow",
        corrected=settings.cbow_gradient == "corrected",
        sides=settings.window_sides,
        shrink_windows=settings.shrink_windows,
        per_pair=settings.per_pair,
        alpha=settings.start_alpha,
        min_alpha=settings.end_alpha,
        epochs=epochs_for(settings, loss, tokens),
        seed=settings.seed,
        vector_size=settings.vector_size,
        storage=settings.storage,
        chunk=chunk,
        workers=settings.threads,
        instruction_set=instructions or instruction_set_of(settings.kernel),
        subwords=subwords,
        shares=shares,
        deterministic=settings.deterministic,
    )


def shares_of(subwords: SubwordRows, presence: NDArray[np.float64]) -> NDArray[np.float32]:
    """The share of a word's change that each of its rows receives, float32 (n,) as subwords.rows.

    `presence` is the probability that a word is in a chunk, (V,). If about m words of a chunk contain a subword, it
    takes the fraction m^-DAMPING of each word's change, and at most MOST_CHANGES whole changes in total. A row that is
    the sum of several subwords receives all of theirs.
    """
    together = np.maximum(1, subwords.totals(presence))
    together[: len(presence)] = 1  # words' own rows
    of_row = subwords.members * np.minimum(together**-DAMPING, MOST_CHANGES / together)
    shares: NDArray[np.float32] = of_row[subwords.rows].astype(np.float32)
    return shares


def instruction_set_of(kernel: str) -> str:
    """The instruction set of a kernel's machine code; see Plan."""
    return str(numba_kernel().target()) if kernel == "numba" else instruction_set()


def numba_kernel() -> Any:
    """The module of the Numba kernel, imported where it is needed: Numba is optional, and slow to import."""
    return import_module("w2v.kernel.numba_kernel")


def memory_needed(plan: Plan, settings: Settings, copies: int = 0) -> int:
    """Bytes needed by a run: its matrices and `copies` of them, its threads, and the word vectors made at its end."""
    rows, row_bytes = input_rows(plan) + plan.loss.memory_rows, plan.width * bfloat16.dtype_of(plan.storage).itemsize
    vectors = memory_of(settings.word_vectors, len(plan.keep), plan.vector_size)
    return rows * row_bytes * (1 + copies) + vectors + threads_memory(plan, settings.kernel)


def input_rows(plan: Plan) -> int:
    """The rows of words and, with subwords, those of n-grams after them."""
    return len(plan.keep) + (plan.subwords.shared if plan.subwords else 0)


def threads_memory(plan: Plan, kernel: str) -> int:
    """The bytes that the threads of a run take in addition to the matrices."""
    of_one = loop.worker_bytes if kernel == "numba" else worker_bytes
    return int(plan.workers * of_one(plan))


class Run:
    """One training run over an id store: the matrices, and the kernel that trains them.

    `prepare` makes one; use it in a `with` block, at whose end its text and its checkpoints are closed. It trains on
    the first `share` of the text, `stopping` may end it early, and it writes `checkpoints`.

    Attributes:
        types: the types of the whole text, of all ranks. phrases: those that were joined in it.
        files, checksum: see Position. read_seconds: how long reading the text took.
    """

    types: TypeCounts
    phrases: Phrases | None = None
    files: list[tuple[str, int]] | None = None
    checksum = ""
    read_seconds = 0.0

    def __init__(
        self,
        config: RunConfig,
        initial: Initialisation,
        store: IdStore,
        instructions: str | None = None,
        *,
        share: float = 1.0,
        stopping: EarlyStopping | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.vocabulary, self.frozen = initial.vocabulary, initial.frozen
        self.store = self.types = store
        self.checkpoints = checkpoints
        self.resources = ExitStack()  # closed at the end of the `with` block
        self.seconds = 0.0  # of training
        self.history = np.zeros((0, 4))  # see Checkpoint
        self.scores: list[float] = []  # see Position
        self._unrecorded = np.zeros(2)  # sums of losses and predictions that the history does not include
        self._failed = False  # a thread or reading the ids failed: the matrices belong to no position of the run
        self.config, self.stopping = config, stopping
        plan = self._plan(initial, instructions)
        self.plan = plan if share == 1 else plan.first(share)
        self.config = replace(config, settings=replace(config.settings, epochs=self.plan.epochs))
        self.schedule = Schedule(self.plan)
        self.tokens = self.plan.tokens  # words of the vocabulary in the text, of all ranks
        if self.plan.loss.notice:
            log.warning("%s", self.plan.loss.notice)
        self._allocate(initial, int(bool(checkpoints and checkpoints.copies)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        """Raise W2VError if the file with the ids of the text has been cut."""
        self.resources.__exit__(*error)

    @property
    def settings(self) -> Settings:
        return self.config.settings

    @property
    def metrics(self) -> dict[str, Any]:
        """Measurements of this kind of run alone."""
        return {"held_out_scores": self.scores} if self.scores else {}

    @property
    def _words_trained(self) -> int:
        """Words of the vocabulary that all ranks have trained, estimated from this rank."""
        return int(self.kernel.tokens_trained) * self.tokens // max(1, self.plan.tokens)

    @property
    def _summed(self) -> NDArray[np.float64]:
        """Summed loss and number of predictions of this process, float64 (2,)."""
        return np.array([self.kernel.losses.sum(), self.kernel.predictions.sum()])

    def _plan(self, initial: Initialisation, instructions: str | None) -> Plan:
        return plan_run(self.settings, initial, self.store, instructions, ignore_memory=self.config.ignore_memory)

    def _allocate(self, initial: Initialisation, copies: int) -> None:
        """Allocate the matrices, initialise them (or copy those of a continued model), and make the kernel.

        The memory check includes `copies` of the matrices, such as the one that checkpoints need.
        """
        plan = self.plan
        hint = "lower vector_size, max_vocab or window, raise min_count, or add --ignore-memory (ignore_memory=True)"
        needed = memory_needed(plan, self.settings, copies)
        self.peak, self.limit = memory.check(needed, "training", hint, self.config.ignore_memory)
        words = len(self.vocabulary)
        inputs = initial_inputs(input_rows(plan), plan.vector_size, plan.seed, bfloat16.dtype_of(plan.storage))
        parameters = plan.loss.new_parameters()
        # Without padding:
        self.parameters = {"inputs": inputs[:words, : plan.vector_size]} | file_names(plan.loss.stored(parameters))
        if self.settings.ngrams:
            self.parameters["ngrams"] = inputs[words:, : plan.vector_size]
        for name, array in initial.parameters.items():
            self.parameters[name][slice(None) if initial.rows is None or name == "ngrams" else initial.rows] = array
        self.kernel: Any
        if self.settings.kernel == "numba":
            self.kernel = numba_kernel().Kernel(plan, inputs, parameters)
        else:
            self.kernel = Kernel(plan, bfloat16.bits(inputs), bfloat16.bits(parameters["outputs"]))

    def restore(self, state: Checkpoint) -> None:
        """Continue from the position of a run with the same settings. Raises W2VError if that is impossible."""
        self.seconds, self.history, self.scores = state.position.seconds, state.history, list(state.position.scores)
        self.kernel.restore(resumed_at(state.position, self.plan.end, 1), state.losses, state.predictions)
        if state.position.ranks > 1:
            self._continue_history()

    @property
    def state(self) -> Checkpoint:
        """All that is needed to resume from here. Use it while no thread runs."""
        return Checkpoint(
            config=self.config,
            position=Position(
                done=self.kernel.position,
                end=self.plan.end,
                tokens_trained=self.kernel.tokens_trained,
                seconds=self.seconds,
                instruction_set=self.plan.instruction_set,
                scores=list(self.scores),
                files=self.files,
                checksum=self.checksum,
            ),
            vocabulary=self.vocabulary,
            loss=self.plan.loss,
            parameters=self.parameters,
            losses=self.kernel.losses,
            predictions=self.kernel.predictions,
            history=self.history,
            frozen=self.frozen,
        )

    def model(self) -> Model:
        """Return the model, once the run is trained. Its n-grams are composed, so the run cannot train further."""
        trained = self.state
        words = trained.position.tokens_trained
        metrics = {
            "tokens": self.tokens,
            "tokens_trained": words,
            "words_per_second": words / self.seconds if self.seconds else 0.0,  # a clock may stand still
            "seconds": {"read": self.read_seconds, "train": self.seconds},
            "loss": trained.mean_losses,
            "predictions": trained.predictions.tolist(),
            "sentences": self.types.sentences,
            "tokens_read": self.types.tokens,
            "pruned": self.types.pruned,
            "cache_reused": self.store.reused,
            "instruction_set": self.plan.instruction_set,
            **self.metrics,
        }
        if self.phrases is not None:
            metrics["phrases"] = {"found": len(self.phrases), "delimiter": self.phrases.options.delimiter}
        return Model(
            self.settings,
            self.vocabulary,
            loss=self.plan.loss,
            metrics=metrics,
            history=self.history,
            text=self.config.text,
            ngrams=self.composed(),
            **split(self.parameters),
        )

    def composed(self) -> Ngrams | None:
        """After training: make the input rows the means of their subwords; returns the rows of n-grams, if any."""
        subwords, kind = self.plan.subwords, self.settings.ngrams
        if subwords is None or kind is None:
            return None
        own, shared = self.parameters["inputs"], self.parameters.pop("ngrams")
        rows = subwords.split(own, shared)
        subwords.compose(own, shared)
        order = np.argsort(subwords.buckets)
        return Ngrams(kind, subwords.buckets[order], rows[order])

    def train(self, report: Report | None = None) -> None:
        """Train to the end, or until it stops early, and write checkpoints, one of them at the end.

        Raises Diverged if the vectors do.
        """
        first, checkpoints = self.kernel.position, self.checkpoints
        self._start_meter(report)
        try:
            self._score_epoch()  # if the run was stopped before it
            while self.kernel.position < self.plan.end and not (self.stopping and self.stopping.is_due(self.scores)):
                self._train_to(self._next_stop)
                self._score_epoch()
                if checkpoints and self.kernel.position < self.plan.end:
                    state = self.state
                    checkpoints.copy(state)
                    self.kernel.restore(state.position.done, state.losses, state.predictions)
        finally:
            if checkpoints and self.kernel.position > first and not self._failed:
                checkpoints.write(self.state)
        self._check_trained(self.state)
        if self.stopping:
            self.stopping.restore_best(self.state)

    @property
    def _next_stop(self) -> int:
        """The position of the next checkpoint, if one is due at a position, of the next score, or the end."""
        due = self.checkpoints.next_position(self.kernel.position, self.plan.chunks) if self.checkpoints else math.inf
        if self.stopping:
            due = min(due, max(self.kernel.position + 1, self._next_score))
        return int(min(due, self.plan.end))

    @property
    def _next_score(self) -> int:
        """The position at the end of the first epoch that has no score."""
        return (len(self.scores) + 1) * self.plan.chunks

    def _score_epoch(self) -> None:
        if self.stopping and self.kernel.position >= self._next_score:
            self.scores = self.stopping.score(self.state)

    def _start_meter(self, report: Report | None) -> None:
        known = {"epochs": self.plan.epochs, "memory": self.peak, "memory_limit": self.limit}
        self._meter = Meter(report, "train", self._words_trained, **known)
        self._report()

    def _check_trained(self, state: Checkpoint) -> None:
        """Raise W2VError for a run that has made no predictions, or whose vectors diverged."""
        if not state.predictions.any():
            raise NothingToTrain(
                "nothing to learn: no training pairs left after min_count and subsampling; try --sample 0 (sample=0), "
                "and note that a line is a sentence, which windows do not cross"
            )
        self._check_numbers(*self.parameters.values())
        if state.rise > SOUND_RISE:
            log.warning(
                "the loss has risen to %.3g per prediction: the vectors are poor; lower alpha, now %g",
                _highest_mean(state.losses, state.predictions),
                self.settings.start_alpha,
            )

    def _train_to(self, end: int) -> None:
        """Run the threads until position `end`, or until so much time has passed that a checkpoint is due."""
        threads = [Thread(target=self.kernel.run, args=(number, end)) for number in range(self.plan.workers)]
        started = time.perf_counter()
        try:
            for thread in threads:
                thread.start()
            self._watch(threads, started)
        except BaseException:
            self.kernel.stop()
            raise
        finally:
            for thread in threads:  # after an error, one that has not started yet returns at once
                thread.wait()
            self.seconds += time.perf_counter() - started
            self._failed = self.store.is_cut or any(thread.error for thread in threads)
        self._raise_error(threads)
        self.store.release()
        self._record(self.seconds)
        self._report()

    def _raise_error(self, threads: list[Thread]) -> None:
        for thread in threads:
            if thread.error:
                raise thread.error

    def _report(self) -> None:
        epoch = self.schedule.epoch(self.kernel.position)
        loss, predictions = float(self.kernel.losses[epoch]), int(self.kernel.predictions[epoch])
        alpha = self.schedule.alpha_after(self.kernel.tokens_trained)
        done, total = self._words_trained, self.plan.epochs * self.tokens
        self._meter(done, total, epoch=epoch + 1, loss=loss / predictions if predictions else None, alpha=alpha)

    def _record(self, seconds: float) -> None:
        """Add a row to the history if enough words were trained since the last one, or all are."""
        words, total = self._words_trained, self.plan.epochs * self.tokens
        since = words - self.history[-1, 0] if len(self.history) else words
        if since >= total / HISTORY_ROWS or (since and words == total):
            self.history = np.vstack([self.history, (words, seconds, *self._summed - self._unrecorded)])

    def _continue_history(self) -> None:
        """Make the sums in the history of a resumed run, which are those of one rank, continue from its last row."""
        self._unrecorded = self._summed - (self.history[-1, 2:] if len(self.history) else 0)

    def _watch(self, threads: list[Thread], started: float) -> None:
        """Until the threads end: report progress, check for divergence, and stop them when a checkpoint is due."""
        parameters = self.parameters.values()
        sample = [part for array in parameters for part in (array[:SAMPLED], array[-SAMPLED:])]
        for thread in threads:
            while thread.is_alive():
                self._wait_for(thread)
                self._raise_error(threads)
                self.store.release()
                self._record(self.seconds + time.perf_counter() - started)
                self._report()
                self._check_numbers(*sample)
                self._stop_if_due()

    def _wait_for(self, thread: Thread) -> None:
        thread.join(POLL)

    def _stop_if_due(self) -> None:
        if self.checkpoints and self.checkpoints.due:
            self.kernel.stop()

    def _check_numbers(self, *arrays: NDArray[Any]) -> None:
        """Raise Diverged if the loss has risen, or one of the arrays has NaN or infinite values."""
        losses, predictions = self.kernel.losses, self.kernel.predictions
        are_numbers = np.isfinite(losses).all() and finite(arrays)
        risen = are_numbers and rise(self.plan.loss, losses, predictions) > MAX_RISE
        if are_numbers and not risen and not (self.checkpoints and self.checkpoints.diverged):
            return
        sound = self.checkpoints.last_sound() if self.checkpoints else None
        loss = f"the mean loss of a prediction is {_highest_mean(losses, predictions):,.3g}"
        raise Diverged(
            f"training diverged: after {self.kernel.tokens_trained:,} of {self.plan.epochs * self.plan.tokens:,} words "
            + (loss if risen else "vectors are no longer numbers")
            + f"; lower alpha, now {self.settings.start_alpha:g}"
            + (f"; the last good checkpoint is {sound}" if sound else "")
        )


def _highest_mean(losses: NDArray[np.float64], predictions: NDArray[np.int64]) -> float:
    """The highest mean loss of a prediction in an epoch."""
    return float((losses / np.maximum(predictions, 1)).max())


def resumed_at(position: Position, end: int, ranks: int) -> int:
    """The position, from 0 to `end`, at which a run with this number of ranks resumes.

    Raises W2VError if that is impossible.
    """
    if position.ranks != ranks:
        return round(position.done / position.end * end)
    if position.end != end:
        raise W2VError(
            "the checkpoint was written by a version of w2v that divides texts differently: resume with that version"
        )
    return position.done


def initial_inputs(rows: int, size: int, seed: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Input rows drawn uniformly from ±0.5 / size, as in word2vec.c: (rows, size padded with zeros)."""
    inputs = memory.aligned_rows(rows, size, dtype)
    generator = np.random.Generator(np.random.PCG64(seed))
    at_once = -(-DRAWN // size)
    for start in range(0, rows, at_once):
        block = inputs[start : start + at_once, :size]
        block[:] = (generator.random(block.shape, np.float32) - 0.5) / size
    return inputs


def thresholds(probabilities: NDArray[np.float32]) -> NDArray[np.uint32]:
    """uint32 thresholds t: a uniform 32-bit number is <= t with these probabilities."""
    scaled = np.ceil(probabilities.astype(np.float64) * 2.0**32) - 1
    limited: NDArray[np.float64] = np.clip(scaled, 0, 2**32 - 1)
    return limited.astype(np.uint32)
