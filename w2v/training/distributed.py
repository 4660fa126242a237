"""One training run of several ranks: each trains on its part of the text, and they exchange the rows they changed.

Every rank keeps all matrices, and a copy `last` of them after the last exchange, the same on all ranks. In a round a
rank trains some of its chunks. Then, for each row, the changes Δ of the ranks since `last` are combined:

    last ← last + ΣΔ · (1 - exp(-mx)) / (m (1 - exp(-x))),    m = max(1, ‖ΣΔ‖² / Σ‖Δ‖²)

and every rank adds to its row what the others contributed. m, from 1 to the number of ranks, says how many changes
point in the same direction. Changes in different directions are added. Equal changes are added, too, as long as a
rank's updates alone move the row only a small part of the way to where it converges; if they move it all the way, the
sum would overshoot, and equal changes are averaged. x, which tells these cases apart, is the learning rate times
the expected number of updates of the row by a rank since its last exchange, times CURVATURE: alone, a rank would go the
part 1 - exp(-x) of the way, and m ranks one after the other the part 1 - exp(-mx). Measuring agreement by sums of
squares is the idea of the model combiner of Gill et al. 2019, "Distributed Training of Embeddings using Graph
Analytics"; this form needs only sums over the ranks.

Frequent rows must be exchanged often, rare ones need not be. With rows ordered by frequency, the first n are exchanged
in every round, the next n in every second, the next 2n in every fourth, and so on. Each round takes another slice of
these, so that all messages are of about the same size, which grows with the logarithm of the vocabulary. All rows are
exchanged at the end of an epoch, and before a checkpoint.

Short rounds with few rows learn better than long rounds with many, at the same number of bytes (bench/README.md,
"Several ranks"). But each round takes the time of a message, so long texts have long rounds, with n = FREQUENT_ROWS;
in short ones, n is in proportion to the words of a round.

The first n rows are exchanged before the next round begins, because rows that converge within a few rounds would
overshoot without the contributions of the other ranks. The other rows, most of the message, are exchanged while the
next round is trained; at its end, the result is added to the rows as they are then.

Rounds are counted in words, not seconds, so that with one thread each the ranks give the same bits on every run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError
from w2v.formats import bfloat16
from w2v.kernel.loop import learning_rate
from w2v.kernel.plan import Plan
from w2v.losses.loss import Loss
from w2v.progress import Report
from w2v.system.threads import Thread
from w2v.text.idstore import IdStore, TypeCounts
from w2v.training.checkpoint import Checkpoint
from w2v.training.communicator import LOOK, Communicator
from w2v.training.config import RunConfig
from w2v.training.initialisation import Initialisation
from w2v.training.run import POLL, Run, plan_run, resumed_at
from w2v.training.schedule import Schedule

log = logging.getLogger("w2v")

FREQUENT_ROWS = 256  # rows of a matrix that are exchanged in every round, at most
WORDS_PER_ROW = 8  # words of a thread in a round for each of these rows, at least
ENOUGH_WORDS = 20_000_000  # of each rank: with fewer, exchanges take more time than ranks save (bench/README.md)
ROUNDS, MAX_ROUNDS = 1000, 4000  # of an epoch: for each rank, and in all
MIN_WORDS, MAX_WORDS = 1 << 10, 1 << 15  # of a thread in a round, for texts of any length
CURVATURE = Loss.curvature  # for every loss
MAX_CHUNK = 1 << 10  # ids: small, so that a round has several chunks per thread, since all threads wait for the last
ROWS_AT_ONCE = 1 << 14  # of a matrix, when all rows are exchanged
PART = 512  # rows that are read, changed and written together


def merged_types(communicator: Communicator, store: IdStore) -> TypeCounts:
    """The types of the text of all ranks, as one process would find them: the parts follow each other by rank."""
    merged: TypeCounts | None = None
    for rank in range(communicator.size):
        sizes = np.array([len(store.counts), len(store.strings), store.pruned], np.int64)
        communicator.broadcast(sizes, rank)
        counts, strings = np.empty(sizes[0], np.int64), np.empty(sizes[1], np.uint8)
        offsets = np.empty(sizes[0] + 1, np.int64)
        if rank == communicator.rank:
            counts[:], strings[:], offsets[:] = store.counts, store.strings, store.offsets
        for array in (counts, strings, offsets):
            communicator.broadcast(array, rank)
        part = TypeCounts(counts, strings, offsets, int(sizes[2]))
        merged = part if merged is None else merged.followed_by(part)
    assert merged
    return merged


def words_of_round(words: int, ranks: int) -> int:
    """The words of a thread in a round, for so many words of each rank: more ranks, which change more, meet sooner."""
    return min(max(words // min(ROUNDS * ranks, MAX_ROUNDS), MIN_WORDS), MAX_WORDS)


def rows_of_round(number: int, rows: int, frequent: int = FREQUENT_ROWS) -> list[range]:
    """The rows, of `rows` ordered by frequency, that are exchanged after round `number`: see the head of the module.

    `frequent` is the n described there, an even number.
    """
    found = [range(min(frequent, rows))]
    start, every, share = frequent, 2, frequent // 2
    while start < rows:
        first = start + number % every * share
        found.append(range(min(first, rows), min(first + share, rows)))
        start, every = 2 * start, 2 * every
    return found


@dataclass
class Matrix:
    """A matrix that all ranks train, (R, D).

    Attributes:
        rows: the matrix. last: its rows after their last exchange, the same on all ranks.
        frequencies: expected updates of each row per word trained, float64 (R,).
        order: the rows, the most frequent first.
        exchanged: the value of Exchange.trained when each row was last exchanged, float64 (R,).
    """

    rows: NDArray[Any]
    last: NDArray[Any]
    frequencies: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.order = np.argsort(-self.frequencies, kind="stable")
        self.exchanged = np.zeros(len(self.rows))

    def parts(self, ranges: list[range]) -> list[Part]:
        """The rows in these ranges of the order, in parts that stay in a core's cache."""
        pieces = [self.order[start : min(start + PART, rows.stop)] for rows in ranges for start in rows[::PART]]
        return [Part(self, contiguous(piece), len(piece)) for piece in pieces]


class Part(NamedTuple):
    matrix: Matrix
    rows: slice | NDArray[np.int64]
    size: int


class Pending(NamedTuple):
    """A part of a matrix whose exchange is under way.

    `start` is its offset in the message, `before` its rows when it was packed, (N, D), and `progress` x of the head of
    the module, (N, 1).
    """

    part: Part
    start: int
    before: NDArray[np.float32]
    progress: NDArray[np.float64]


def contiguous(rows: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Different rows in any order, as a slice if they are contiguous: rows of a slice need not be gathered."""
    first, end = int(rows.min()), int(rows.max()) + 1
    return slice(first, end) if end - first == len(rows) else rows


class Flags(NamedTuple):
    """What a rank reports or asks for; after an exchange, each is set if any rank has set it."""

    stop: bool = False
    failed: bool = False
    checkpoint: bool = False


class Exchange:
    """Exchanges rows of matrices of one width.

    Attributes:
        trained: words that a rank has trained so far, each times its learning rate; the same on all ranks.
    """

    def __init__(
        self,
        communicator: Communicator,
        matrices: list[tuple[NDArray[Any], NDArray[np.float64]]],
        seed: int,
        threads: int,
        frequent: int = FREQUENT_ROWS,
    ) -> None:
        self.trained = 0.0
        self._communicator = communicator
        self._frequent = frequent
        self._matrices = [Matrix(rows, np.empty(rows.shape, rows.dtype), frequencies) for rows, frequencies in matrices]
        self._width = matrices[0][0].shape[1]
        self._seed, self._count = seed, 0  # exchanges
        # One thread is the caller's: passing parts to another takes longer than small parts do.
        self._map: Callable[..., Iterable[Any]] = ThreadPoolExecutor(threads).map if threads > 1 else map
        self._own = self._total = np.empty(0, np.float32)  # the message of this rank, and the sum of all
        self._pending: list[Pending] = []
        self._size = 0  # of the message under way; 0 if there is none
        self._request: Any = None  # None once the message has arrived
        self.bytes = 0  # given to MPI to be summed

    def start_from_root(self) -> None:
        """Begin with the rows of rank 0."""
        for matrix in self._matrices:
            for start in range(0, len(matrix.rows), ROWS_AT_ONCE):
                block = bfloat16.bits(matrix.rows)[start : start + ROWS_AT_ONCE]
                copied = np.ascontiguousarray(block)
                self._communicator.broadcast(copied)
                block[:] = copied
            np.copyto(matrix.last, matrix.rows)
            matrix.exchanged[:] = self.trained

    def begin(self, number: int | None, flags: Flags) -> None:
        """Exchange the most frequent rows, and begin the exchange of the others of round `number`; `finish` ends it.

        If `number` is None, only the flags are exchanged.
        """
        frequent: list[Part] = []
        others: list[Part] = []
        if number is not None:
            for matrix in self._matrices:
                first, *rest = rows_of_round(number, len(matrix.rows), self._frequent)
                frequent += matrix.parts([first])
                others += matrix.parts(rest)
            self._begin(frequent, Flags())
            self.finish()
        self._begin(others, flags)

    def all_rows(self) -> None:
        """Exchange all rows, and wait for the result."""
        for matrix in self._matrices:
            count = len(matrix.rows)
            for start in range(0, count, ROWS_AT_ONCE):
                self._begin(matrix.parts([range(start, min(start + ROWS_AT_ONCE, count))]), Flags())
                self.finish()

    def look(self) -> bool:
        """Let MPI make progress; returns whether a message is still under way."""
        if self._request is not None and self._request.Test():
            self._request = None
        return self._request is not None

    def _begin(self, parts: list[Part], flags: Flags) -> None:
        starts = np.cumsum([0, *((self._width + 1) * part.size for part in parts)]).tolist()
        self._size = starts[-1] + len(flags)
        if self._size > len(self._own):
            self._own, self._total = np.empty(self._size, np.float32), np.empty(self._size, np.float32)
        self._pending = list(self._map(self._packed, parts, starts))
        self._own[starts[-1] : self._size] = flags
        self._request = self._communicator.start_sum(self._own[: self._size], self._total[: self._size])
        self.bytes += 4 * self._size

    def finish(self) -> Flags:
        """End an exchange: add the others' contributions to the rows of this rank. Returns the flags of all ranks."""
        if self._request is not None:
            self._communicator.wait(self._request)
        self._count += 1
        list(self._map(self._unpack, self._pending, count()))
        flags = Flags(*map(bool, self._total[self._size - len(Flags._fields) : self._size]))
        self._request, self._pending, self._size = None, [], 0
        return flags

    def _packed(self, part: Part, start: int) -> Pending:
        """Write the changes of a part's rows, and their squared lengths, into the message."""
        before = part.matrix.rows[part.rows].astype(np.float32)  # a copy
        own = self._of_part(self._own, part, start)
        np.subtract(before, part.matrix.last[part.rows], out=own[:, :-1])
        own[:, -1] = squared_lengths(own[:, :-1])
        matrix, rows, _ = part
        progress = CURVATURE * matrix.frequencies[rows] * (self.trained - matrix.exchanged[rows])
        matrix.exchanged[rows] = self.trained
        return Pending(part, start, before, progress[:, np.newaxis])

    def _unpack(self, pending: Pending, index: int) -> None:
        """Add the other ranks' contributions to a part."""
        (matrix, rows, _), start, before, progress = pending
        seeds = [self._seed, self._count, index]  # the same on all ranks
        random = np.random.Generator(np.random.PCG64(seeds)) if bfloat16.is_bfloat16(matrix.rows) else None
        total = self._of_part(self._total, pending.part, start)
        agreed = matrix.last[rows] + combined_change(total[:, :-1], total[:, -1:], progress)
        matrix.last[rows] = rounded(agreed, random)
        since = matrix.rows[rows].astype(np.float32) - before  # 0 if the rank did not train meanwhile
        matrix.rows[rows] = rounded(matrix.last[rows] + since, random)

    def _of_part(self, message: NDArray[np.float32], part: Part, start: int) -> NDArray[np.float32]:
        """The values of a part in a message: its changes and their squared lengths, (rows, D + 1)."""
        width = self._width + 1
        return message[start : start + width * part.size].reshape(part.size, width)


def rounded(values: NDArray[np.float32], random: np.random.Generator | None) -> NDArray[Any]:
    """Values rounded stochastically to bfloat16; without a random generator, as they are."""
    if random is None:
        return values
    noise = random.integers(0, 1 << 16, values.shape, np.uint32)
    bits: NDArray[np.uint16] = ((values.view(np.uint32) + noise) >> np.uint32(16)).astype(np.uint16)
    return bits.view(bfloat16.bfloat16())


def combined_change(
    total: NDArray[np.float32], squares: NDArray[np.float32], progress: NDArray[np.float64]
) -> NDArray[np.float32]:
    """The combined change of each row, from sums over the ranks of their changes (N, D) and squared lengths (N, 1).

    `progress` is x of the head of the module, (N, 1).
    """
    length = squared_lengths(total)[:, np.newaxis]
    agreeing = np.divide(length, squares, out=np.ones_like(squares), where=length > squares)
    x = np.maximum(progress, 1e-6)
    scale = (np.expm1(-agreeing * x) / (agreeing * np.expm1(-x))).astype(np.float32)
    change: NDArray[np.float32] = total * scale
    return change


def squared_lengths(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The squared length of each row (N, D): (N,)."""
    found: NDArray[np.float32] = np.einsum("nd,nd->n", rows, rows)
    return found


class DistributedRun(Run):
    """A run of several ranks. Each has a store, with its part of the text, and all are initialised alike."""

    def __init__(
        self,
        communicator: Communicator,
        config: RunConfig,
        initial: Initialisation,
        store: IdStore,
        *arguments: Any,
        **options: Any,
    ):
        if config.settings.kernel != "cython":
            raise SettingsError(
                f"kernel {config.settings.kernel}: several ranks train with kernel cython and its losses only"
            )
        self.communicator = communicator
        self._done = 0  # rounds
        self._sums: tuple[Any, Any] = (0.0, 0)  # losses and predictions before this process resumed the run
        super().__init__(config, initial, store, *arguments, **options)
        self.tokens = communicator.total(self.plan.tokens)
        largest = communicator.maximum(self.plan.tokens)
        words = words_of_round(largest, communicator.size)
        rounds = -(-largest // (words * communicator.maximum(self.plan.workers)))
        self.schedule = Schedule(self.plan, max(1, min(rounds, communicator.maximum(self.plan.chunks))))
        frequencies = self._frequencies()
        matrices = [(array, frequencies[name]) for name, array in self.parameters.items()]
        frequent = min(words // WORDS_PER_ROW // 2 * 2, FREQUENT_ROWS)
        self.exchange = Exchange(communicator, matrices, self.settings.seed, self.plan.workers, frequent)
        self.exchange_seconds = 0.0  # during which this rank did not train, since the run began or was resumed
        self._seconds_before = 0.0  # of training, before the run was resumed

    def _frequencies(self) -> dict[str, NDArray[np.float64]]:
        """The expected updates of each row of the matrices per word trained, by name: (R,)."""
        settings, vocabulary = self.settings, self.vocabulary
        kept = vocabulary.keep_probabilities(settings.sample, settings.sample_formula) * vocabulary.counts
        context = sum(self.plan.reaches[:, 1:].mean(axis=1) if settings.shrink_windows else settings.window_sides)
        words = kept / vocabulary.tokens
        predictions = words.sum() * (1 if self.plan.cbow else context)
        inputs, outputs = words * context, predictions * self.plan.loss.updates(kept / kept.sum())
        ngrams = self.plan.subwords.totals(inputs)[len(words) :] if self.plan.subwords else np.empty(0)
        return {"inputs": inputs, "ngrams": ngrams, "outputs": outputs}

    def _allocate(self, initial: Initialisation, copies: int) -> None:
        with self.communicator.collective_errors():
            super()._allocate(initial, copies + 1)  # one copy is Matrix.last

    @property
    def metrics(self) -> dict[str, Any]:
        exchanged = {"rounds": self.schedule.end, "seconds": self.exchange_seconds, "bytes": self.exchange.bytes}
        seconds = self.seconds - self._seconds_before
        exchanged["share"] = self.exchange_seconds / seconds if seconds else 0.0  # of the time
        return {"ranks": self.communicator.size, "exchange": exchanged}

    def _plan(self, initial: Initialisation, instructions: str | None) -> Plan:
        total, ignore_memory = self.communicator.total, self.config.ignore_memory
        plan = plan_run(self.settings, initial, self.store, instructions, total, MAX_CHUNK, ignore_memory)
        return replace(plan, seed=(plan.seed + (self.communicator.rank << 48)) % (1 << 64))  # other draws on each rank

    def restore(self, state: Checkpoint) -> None:
        """Continue from the position of a run with the same settings, and with any number of ranks.

        With another number, each rank continues at the same share of its new part: some text of the current epoch is
        then trained twice, and some not at all.
        """
        self._done = resumed_at(state.position, self.schedule.end, self.communicator.size)
        self.seconds, self.history = state.position.seconds, state.history
        self._seconds_before = state.position.seconds
        if self.communicator.is_root:  # the sums are of all ranks
            self._sums = state.losses, state.predictions
        if self.plan.chunks:
            self.kernel.restore(
                self.schedule.position(self._done), np.zeros_like(state.losses), np.zeros_like(state.predictions)
            )
        self._continue_history()

    @property
    def state(self) -> Checkpoint:
        """All ranks must call this, after an exchange of all rows."""
        losses, predictions = self._sums
        own, ranks = super().state, self.communicator
        return replace(
            own,
            losses=ranks.sum(self.kernel.losses + losses),
            predictions=ranks.sum(self.kernel.predictions + predictions),
            position=replace(
                own.position,
                done=self._done,
                end=self.schedule.end,
                tokens_trained=ranks.total(self.kernel.tokens_trained),
                ranks=ranks.size,
            ),
        )

    def train(self, report: Report | None = None) -> None:
        """Train to the end together with the other ranks. Only rank 0 has checkpoints, if any."""
        if self.communicator.is_root and self.tokens < ENOUGH_WORDS * self.communicator.size:
            few = f"{self.tokens:,} words are few for {self.communicator.size} ranks"
            log.info("%s: one process is probably quicker", few)
        self._start_meter(report)
        with self.communicator.signals_noted() as told_to_stop:
            self._train_rounds(told_to_stop)
        if self._done < self.schedule.end:
            raise W2VError("another rank was told to stop")

    def _train_rounds(self, told_to_stop: Callable[[], bool]) -> None:
        """Train to the end, or until a rank is told to stop."""
        error: Exception | None = None
        flags = Flags()
        first = self._done
        self.exchange.trained = self._trained
        self.exchange.start_from_root()
        while self._done < self.schedule.end:
            if error is None:
                try:
                    self._train_to(self.schedule.position(self._done + 1))
                except Exception as found:  # the other ranks learn of it after this round
                    error = found
            self._done += 1
            self.exchange.trained = self._trained
            with self._exchanging():
                if self._done > first + 1:
                    flags = self.exchange.finish()
                if flags.failed:
                    break
                last = flags.stop or self._done == self.schedule.end
                if all_rows := last or flags.checkpoint or self.schedule.ends_epoch(self._done):
                    self.exchange.all_rows()
            if last or flags.checkpoint:
                self._save(error, last)
            if last:
                break
            own = Flags(stop=told_to_stop(), failed=error is not None, checkpoint=self._due_next)
            with self._exchanging():
                self.exchange.begin(None if all_rows else self._done, own)
        self._raise_together(error)
        state = self.state
        with self.communicator.collective_errors():
            self._check_trained(state)

    @property
    def _due_next(self) -> bool:
        """Whether a checkpoint is due after the next round: the flag of one reaches the other ranks by then."""
        if not self.checkpoints:
            return False
        return (
            self.checkpoints.due or self.checkpoints.next_position(self._done, self.schedule.rounds) == self._done + 1
        )

    @property
    def _trained(self) -> float:
        """Words that a rank has trained so far, each times its learning rate; see Exchange."""
        plan, done = self.plan, self._done / self.schedule.end
        words = plan.epochs * self.tokens / self.communicator.size * done
        mean_alpha = learning_rate(plan.alpha, plan.min_alpha, done / 2)
        return float(words * mean_alpha)

    @contextmanager
    def _exchanging(self) -> Iterator[None]:
        """Count the time spent here as training time and as exchange time."""
        started = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            self.seconds += seconds
            self.exchange_seconds += seconds

    def _raise_together(self, error: Exception | None) -> None:
        with self.communicator.collective_errors():
            if error is not None:
                raise error

    def _save(self, error: Exception | None, last: bool) -> None:
        """Write a checkpoint, on rank 0, if the run has a folder for them. Raises an error of any rank instead."""
        self._raise_together(error)
        state = self.state  # of all ranks
        if self.checkpoints:
            (self.checkpoints.write if last else self.checkpoints.copy)(state)

    def _wait_for(self, thread: Thread) -> None:
        end = time.monotonic() + POLL
        while thread.is_alive() and self.exchange.look() and time.monotonic() < end:
            thread.join(LOOK)
        thread.join(max(0, end - time.monotonic()))

    def _stop_if_due(self) -> None:
        """Does nothing: all ranks stop together, at the end of a round."""
