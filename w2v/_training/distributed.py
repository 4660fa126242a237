"""A training run of several ranks. Each trains on its part of the text; exchange.py keeps their matrices the same.

Rounds are counted in words, not in seconds. With one thread per rank, every run therefore gives the same bits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, W2VError
from w2v._kernel.loop import learning_rate
from w2v._progress import Report
from w2v._system.threads import Thread
from w2v._training.checkpoint import Checkpoint
from w2v._training.communicator import MESSAGE_POLL_SECONDS, Communicator
from w2v._training.config import RunConfig
from w2v._training.exchange import FREQUENT_ROWS, Exchange, Flags
from w2v._training.reading import ReadText
from w2v._training.run import POLL_SECONDS, Run, resume_position
from w2v._training.schedule import Schedule
from w2v._training.start import Initialisation

log = logging.getLogger("w2v")

# A round exchanges at most one frequent row per this many words of a thread (frequent rows: see exchange.py).
MIN_WORDS_PER_FREQUENT_ROW = 8
# Words per rank: with fewer, exchanges take more time than several ranks save (bench/README.md, "Several ranks").
MIN_USEFUL_WORDS = 20_000_000
ROUNDS_PER_RANK, MAX_ROUNDS = 1000, 4000  # rounds in an epoch: in proportion to the ranks, up to a maximum
MIN_ROUND_WORDS, MAX_ROUND_WORDS = 1 << 10, 1 << 15  # words that a thread trains in a round
# Ids per chunk. All threads wait for the last chunk of a round, so a round should have several chunks per thread.
MAX_CHUNK = 1 << 10


def words_per_round(words: int, ranks: int) -> int:
    """Return the number of words that a thread trains in a round.

    Args:
        words: The number of words of each rank.
        ranks: The number of ranks. More ranks make more changes, so their rounds are shorter.
    """
    return min(max(words // min(ROUNDS_PER_RANK * ranks, MAX_ROUNDS), MIN_ROUND_WORDS), MAX_ROUND_WORDS)


class DistributedRun(Run):
    """A run of several ranks. Each rank has a store with its part of the text, and the same initial matrices."""

    max_chunk = MAX_CHUNK
    more_copies = 1  # SharedMatrix.synced

    def __init__(self, config: RunConfig, initial: Initialisation, text: ReadText, **options: Any):
        if config.settings.kernel != "cython":
            raise SettingsError(
                f"kernel {config.settings.kernel}: several ranks train with kernel cython and its losses only"
            )
        communicator = text.ranks
        assert isinstance(communicator, Communicator)
        vocabulary = initial.vocabulary
        communicator.assert_same({"words": crc32(vocabulary.words.blob.data), "counts": crc32(vocabulary.counts.data)})
        self.communicator = communicator
        self._rounds_done = 0
        self._sums_before: tuple[Any, Any] = (0.0, 0)  # losses and predictions of all ranks before the run was resumed
        super().__init__(config, initial, text, **options)
        self.tokens = communicator.sum_of(self.plan.tokens)
        most_tokens = communicator.max_of(self.plan.tokens)
        words = words_per_round(most_tokens, communicator.size)
        rounds = -(-most_tokens // (words * communicator.max_of(self.plan.workers)))
        self.schedule = Schedule(self.plan, max(1, min(rounds, communicator.max_of(self.plan.chunks))))
        frequencies = self._frequencies()
        frozen = {"outputs"} if self.plan.frozen_outputs else set()
        matrices = [(array, frequencies[name]) for name, array in self.parameters.items() if name not in frozen]
        frequent = min(words // MIN_WORDS_PER_FREQUENT_ROW // 2 * 2, FREQUENT_ROWS)  # even, as rows_of_round needs
        self.exchange = Exchange(communicator, matrices, self.settings.seed, self.plan.workers, frequent)
        self.exchange_seconds = 0.0  # time that this rank spent on exchanges since the run was started or resumed
        self._seconds_before = 0.0  # training time before the run was resumed

    def _frequencies(self) -> dict[str, NDArray[np.float64]]:
        """Return the expected number of updates of each row per trained word, float64 (R,), by matrix."""
        settings, vocabulary = self.settings, self.vocabulary
        kept_counts = vocabulary.keep_probabilities(settings.sample, settings.sample_formula) * vocabulary.counts
        centres = kept_counts / vocabulary.tokens  # how often each word is a centre word, per trained word
        predictions = centres.sum() * (1 if settings.model == "cbow" else self.plan.mean_context)
        inputs = centres * self.plan.mean_context
        outputs = predictions * self.plan.loss.expected_updates(kept_counts / kept_counts.sum())
        ngrams = self.plan.subwords.totals(inputs)[len(centres) :] if self.plan.subwords else np.empty(0)
        return {"inputs": inputs, "ngrams": ngrams, "outputs": outputs}

    @property
    def metrics(self) -> dict[str, Any]:
        """The number of ranks, and the rounds, seconds, bytes and share of the training time of their exchanges."""
        exchange = {
            "rounds": self.schedule.total_rounds,
            "seconds": self.exchange_seconds,
            "bytes": self.exchange.bytes,
        }
        seconds = self.seconds - self._seconds_before
        exchange["share"] = self.exchange_seconds / seconds if seconds else 0.0
        return {"ranks": self.communicator.size, "exchange": exchange}

    def restore(self, checkpoint: Checkpoint) -> None:
        """Resume from the position of a checkpoint of this run, which may have had any number of ranks.

        If the number of ranks has changed, each rank resumes at the same share of its new part of the text. In the
        current epoch, some text is then trained twice and some is skipped.
        """
        self._rounds_done = resume_position(checkpoint.resume_info, self.schedule.total_rounds, self.communicator.size)
        self.seconds, self.history = checkpoint.resume_info.seconds, checkpoint.history
        self._seconds_before = checkpoint.resume_info.seconds
        if self.communicator.is_root:  # only one rank, because `make_checkpoint` adds up the sums of all ranks
            self._sums_before = checkpoint.losses, checkpoint.predictions
        if self.plan.chunks:
            self.kernel.restore(
                self.schedule.chunks_after(self._rounds_done),
                np.zeros_like(checkpoint.losses),
                np.zeros_like(checkpoint.predictions),
            )
        self._set_history_offset()

    def make_checkpoint(self) -> Checkpoint:
        """Return the state of the whole run as a checkpoint. All ranks must call it, after an exchange of all rows."""
        losses, predictions = self._sums_before
        own, communicator = super().make_checkpoint(), self.communicator
        return replace(
            own,
            losses=communicator.allreduce(self.kernel.losses + losses),
            predictions=communicator.allreduce(self.kernel.predictions + predictions),
            resume_info=replace(
                own.resume_info,
                done=self._rounds_done,
                end=self.schedule.total_rounds,
                tokens_trained=communicator.sum_of(self.kernel.tokens_trained),
                ranks=communicator.size,
            ),
        )

    def train(self, report: Report | None = None) -> None:
        """Train to the end together with the other ranks. Only rank 0 writes checkpoints."""
        if self.communicator.is_root and self.tokens < MIN_USEFUL_WORDS * self.communicator.size:
            size = f"{self.tokens:,} words are few for {self.communicator.size} ranks"
            log.info("%s: one process is probably quicker", size)
        self._start_meter(report)
        with self.communicator.deferred_signals() as stop_requested:
            self._train_rounds(stop_requested)
        if self._rounds_done < self.schedule.total_rounds:
            raise W2VError("another rank was stopped by a signal: resume from the last checkpoint, or start again")

    def _train_rounds(self, stop_requested: Callable[[], bool]) -> None:
        """Train to the end, or until a signal asks one of the ranks to stop."""
        error: Exception | None = None
        flags = Flags()
        first = self._rounds_done
        self.exchange.weighted_words = self._weighted_words
        self.exchange.broadcast_from_root()
        while self._rounds_done < self.schedule.total_rounds:
            if error is None:
                try:
                    self._train_to(self.schedule.chunks_after(self._rounds_done + 1))
                except Exception as raised:  # the flags tell the other ranks after this round
                    error = raised
            self._rounds_done += 1
            self.exchange.weighted_words = self._weighted_words
            with self._measure_exchange():
                if self._rounds_done > first + 1:  # the end of the round before has begun an exchange
                    flags = self.exchange.finish()
                if flags.failed:
                    break
                is_last = flags.stop or self._rounds_done == self.schedule.total_rounds
                if all_rows := is_last or flags.checkpoint or self.schedule.ends_epoch(self._rounds_done):
                    self.exchange.exchange_all_rows()
            if is_last or flags.checkpoint:
                self._raise_on_all_ranks(error)
                checkpoint = self.make_checkpoint()  # on all ranks, because it sums over them
                if folder := self.checkpoint_folder:  # rank 0
                    (folder.write if is_last else folder.copy)(checkpoint)
            if is_last:
                break
            own = Flags(stop=stop_requested(), failed=error is not None, checkpoint=self._checkpoint_due_next)
            with self._measure_exchange():
                self.exchange.begin(None if all_rows else self._rounds_done, own)
        self._raise_on_all_ranks(error)
        checkpoint = self.make_checkpoint()
        with self.communicator.collective_errors():
            self._check_trained(checkpoint)

    @property
    def _checkpoint_due_next(self) -> bool:
        """Whether a checkpoint is due after the next round. By then, the flag has reached the other ranks."""
        if not self.checkpoint_folder:
            return False
        next_position = self.checkpoint_folder.next_position(self._rounds_done, self.schedule.rounds)
        return self.checkpoint_folder.due or next_position == self._rounds_done + 1

    @property
    def _weighted_words(self) -> float:
        """The words that one rank has trained so far, each weighted with its learning rate; see Exchange."""
        plan, share = self.plan, self._rounds_done / self.schedule.total_rounds
        words = plan.epochs * self.tokens / self.communicator.size * share
        mean_alpha = learning_rate(self.settings.start_alpha, self.settings.end_alpha, share / 2)
        return float(words * mean_alpha)

    @contextmanager
    def _measure_exchange(self) -> Iterator[None]:
        """Add the time spent in the `with` block to the training time and to the exchange time."""
        started = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            self.seconds += seconds
            self.exchange_seconds += seconds

    def _raise_on_all_ranks(self, error: Exception | None) -> None:
        with self.communicator.collective_errors():
            if error is not None:
                raise error

    def _wait_for(self, thread: Thread) -> None:
        """Wait as Run does, and let MPI make progress on a pending exchange."""
        end = time.monotonic() + POLL_SECONDS
        while thread.is_alive() and self.exchange.poll() and time.monotonic() < end:
            thread.join(MESSAGE_POLL_SECONDS)
        thread.join(max(0, end - time.monotonic()))

    def _stop_if_checkpoint_due(self) -> None:
        """Do nothing, because all ranks stop together at the end of a round."""
