"""`Run`: allocate and initialise the matrices, run the threads of the kernel, and monitor them."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import Diverged, NothingToTrain, W2VError
from w2v._evaluation.held_out import GapTest
from w2v._formats import bfloat16
from w2v._kernel.kernels import new_kernel
from w2v._kernel.plan import Plan, initial_inputs
from w2v._kernels import MAX_CHUNK_SIZE
from w2v._losses.loss import by_tensor_name
from w2v._losses.registry import Settings
from w2v._progress import Meter, Report
from w2v._system import memory
from w2v._system.threads import Thread
from w2v._text.subwords import Ngrams
from w2v._training.checkpoint import DIVERGENCE_RATIO, WARNING_RATIO, Checkpoint, ResumeInfo, all_finite, loss_ratio
from w2v._training.checkpoint_folder import CheckpointFolder
from w2v._training.config import RunConfig
from w2v._training.documents import ROWS, Documents
from w2v._training.identity import check_identity
from w2v._training.model import View, matrix_arguments
from w2v._training.planning import memory_needed, plan_run
from w2v._training.reading import ReadText
from w2v._training.schedule import Schedule
from w2v._training.start import Initialisation

log = logging.getLogger("w2v")

POLL_SECONDS = 0.1  # between checks of the threads
HISTORY_ROWS = 200  # approximate number of rows in the history of a finished run
SAMPLED_ROWS = 256  # checked for NaN and infinity at both ends of each matrix, where the most updated rows are


class Run:
    """One training run over a text: the matrices, and the kernel that trains them.

    Attributes:
        config: The description of the run.
        text: The text.
        checkpoint_folder: The folder that checkpoints are written to; None without checkpoints.
        seconds: The time spent on training.
        history: See Checkpoint.
        scores: See ResumeInfo.
        tokens: The number of words of the vocabulary in the text; with several ranks, in all parts of the text.
        needed_memory: The memory that the run needs, in bytes.
        peak_memory: The estimated peak memory of this process in bytes.
        memory_limit: The memory available to this process in bytes.
        max_chunk: The largest number of ids in a chunk.
        more_copies: The number of copies of the matrices, besides those for checkpoints.
    """

    max_chunk = MAX_CHUNK_SIZE
    more_copies = 0

    def __init__(
        self,
        config: RunConfig,
        initial: Initialisation,
        text: ReadText,
        *,
        share: float = 1.0,
        other_memory: int = 0,
        later_memory: int = 0,
        checkpoint_folder: CheckpointFolder | None = None,
        best_folder: CheckpointFolder | None = None,
    ) -> None:
        """Plan the run, and allocate and initialise its matrices.

        Args:
            config: The description of the run.
            initial: The vocabulary, the loss and the initial matrices.
            text: The text.
            share: The share of the text, from its start, to train on.
            other_memory: The bytes that will be needed in addition to the memory of this run.
            later_memory: The bytes that will be needed after the run.
            checkpoint_folder: The folder to write checkpoints to.
            best_folder: The folder that keeps the best checkpoint, if the run may stop early.
        """
        self.config, self.text, self.store = config, text, text.store
        self.vocabulary, self.frozen, self.coordinates = initial.vocabulary, initial.frozen, initial.coordinates
        self.tags = initial.tags
        self.checkpoint_folder = checkpoint_folder
        self._later_memory = later_memory
        self.seconds = 0.0
        self.history = np.zeros((0, 4))
        self.scores: list[float] = []
        # Rows of the history hold the sums of this process minus this offset.
        self._history_offset = np.zeros(2)
        # True after an error of a thread or of reading the ids. The matrices then match no position in the text.
        self._failed = False
        self._early_stopping = None
        if config.settings.stop_early and best_folder:
            share, score = self._hold_out()
            self._early_stopping = EarlyStopping(config.settings.stop_early, score, best_folder)
        plan = self._plan(initial)
        plan = plan if share == 1 else plan.first(share)
        # The ranks draw different random numbers.
        seed = (self.settings.seed + (text.ranks.rank << 48)) % (1 << 64)
        self.plan = replace(plan, settings=replace(plan.settings, seed=seed))
        self.config = replace(config, settings=replace(config.settings, epochs=self.plan.epochs))
        self.schedule = Schedule(self.plan)
        self.tokens = self.plan.tokens
        if self.plan.loss.notice:
            log.warning("%s", self.plan.loss.notice)
        copies = self.more_copies + bool(checkpoint_folder and checkpoint_folder.copies_matrices)
        with text.ranks.collective_errors():
            self._allocate(initial, copies, other_memory)

    @property
    def settings(self) -> Settings:
        return self.config.settings

    @property
    def _unit(self) -> str:
        """What messages call the tokens of the text: words, items or nodes."""
        return f"{self.text.types.noun}s"

    @property
    def metrics(self) -> dict[str, Any]:
        """Measurements that only this kind of run has."""
        return {"held_out_scores": self.scores} if self.scores else {}

    @property
    def _words_trained(self) -> int:
        """The number of words that all ranks have trained, estimated from this rank."""
        return int(self.kernel.tokens_trained) * self.tokens // max(1, self.plan.tokens)

    @property
    def _loss_sums(self) -> NDArray[np.float64]:
        """The summed loss and the number of predictions of this process, float64 (2,)."""
        return np.array([self.kernel.losses.sum(), self.kernel.predictions.sum()])

    def _plan(self, initial: Initialisation) -> Plan:
        """Build the plan of this run."""
        sum_over_ranks, ignore_memory = self.text.ranks.sum_of, self.config.ignore_memory
        return plan_run(self.settings, initial, self.store, sum_over_ranks, self.max_chunk, ignore_memory)

    def _hold_out(self) -> tuple[float, Callable[[], float]]:
        """Return the share of the text to train on, and a function that scores the vectors on the rest."""
        share, gaps = GapTest.at_end(self.store, self.vocabulary)
        return share, lambda: gaps.score(self.view().vectors)

    def _allocate(self, initial: Initialisation, copies: int, other_memory: int) -> None:
        """Allocate the matrices, initialise them with new values or from `initial`, and create the kernel.

        Raises:
            W2VError: There is not enough memory for them, for `copies` copies of them, which checkpoints need, and for
                `other_memory` bytes.
        """
        plan, settings = self.plan, self.plan.settings
        hint = "lower vector_size, max_vocab or window, raise min_count, or add --ignore-memory (ignore_memory=True)"
        self.needed_memory = memory_needed(plan, settings, copies, self._later_memory) + other_memory
        found = memory.check(self.needed_memory, "training", hint, self.config.ignore_memory)
        self.peak_memory, self.memory_limit = found
        words, size = plan.words, settings.vector_size
        inputs = initial_inputs(plan.input_rows, size, settings.seed, bfloat16.dtype_of(settings.storage))
        parameters = plan.loss.new_parameters()
        # The kernel trains padded rows. `self.parameters` are views of them without the padding.
        self.parameters = {"inputs": inputs[:words, :size]} | by_tensor_name(plan.loss.stored(parameters))
        if plan.subwords and settings.ngrams:
            self.parameters["ngrams"] = inputs[words:, :size]
        if self.tags:
            self.parameters[ROWS] = inputs[words:, :size]
        for name, array in initial.parameters.items():
            in_order = initial.rows is None or name in ("ngrams", ROWS)
            self.parameters[name][slice(len(array)) if in_order else initial.rows] = array
        self.kernel = new_kernel(plan, inputs, parameters)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Resume from the position of a checkpoint of this run.

        Raises:
            W2VError: See `resume_position`.
        """
        info = checkpoint.resume_info
        self.seconds, self.history, self.scores = info.seconds, checkpoint.history, list(info.scores)
        self.kernel.restore(resume_position(info, self.plan.total_chunks, 1), checkpoint.losses, checkpoint.predictions)
        total = self.plan.tokens * self.plan.epochs
        log.info("resuming after %s of %s %s", f"{info.tokens_trained:,}", f"{total:,}", self._unit)
        if info.ranks > 1:
            self._set_history_offset()

    def make_checkpoint(self) -> Checkpoint:
        """Return the state of the run as a checkpoint. Call this method only while no thread runs."""
        return Checkpoint(
            config=self.config,
            resume_info=ResumeInfo(
                done=self.kernel.position,
                end=self.plan.total_chunks,
                tokens_trained=self.kernel.tokens_trained,
                seconds=self.seconds,
                instruction_set=self.plan.instruction_set,
                scores=list(self.scores),
                files=self.text.corpus.sizes if self.text.corpus else None,
                inputs=self.text.inputs,
                coordinates=self.coordinates,
            ),
            vocabulary=self.vocabulary,
            loss=self.plan.loss,
            parameters=self.parameters,
            losses=self.kernel.losses,
            predictions=self.kernel.predictions,
            history=self.history,
            frozen=self.frozen,
            tags=self.tags,
        )

    def view(self) -> View:
        """Return the view of a model as trained so far.

        It shares the matrices of the run, except input rows that are composed of subwords and output rows that several
        words share.
        """
        parameters, ngrams, subwords = dict(self.parameters), None, self.plan.subwords
        if self.plan.output_words is not None:  # in the view, each word has a copy of its output row
            parameters["outputs"] = parameters["outputs"][self.plan.output_words]
        if self.settings.ngrams and subwords:
            own, shared = parameters["inputs"], parameters.pop("ngrams")
            parameters["inputs"] = subwords.compose(own, shared)
            order = np.argsort(subwords.buckets)
            rows = subwords.divide_by_row(own, shared)[order]
            ngrams = Ngrams(self.settings.ngrams, subwords.buckets[order], rows)
        return View(
            self.settings,
            self.vocabulary,
            loss=self.plan.loss,
            metrics=self._metrics_of_run(),
            history=self.history,
            text=self.config.text,
            ngrams=ngrams,
            documents=Documents(self.tags, memory.read_only(parameters[ROWS])) if self.tags else None,
            coordinates=self.coordinates,
            **matrix_arguments(parameters),
        )

    def _metrics_of_run(self) -> dict[str, Any]:
        """Return the measurements of the run so far; see View.metrics."""
        checkpoint = self.make_checkpoint()
        words = checkpoint.resume_info.tokens_trained
        metrics = {
            "tokens": self.tokens,
            "tokens_trained": words,
            "words_per_second": words / self.seconds if self.seconds else 0.0,  # the clock may not have advanced
            "seconds": {"read": self.text.seconds, "train": self.seconds},
            "loss": checkpoint.mean_losses,
            "predictions": checkpoint.predictions.tolist(),
            "sentences": self.text.types.sentences,
            "tokens_read": self.text.types.tokens,
            "pruned": self.text.types.pruned,
            "noun": self.text.types.noun,
            "cache_reused": self.store.reused,
            "instruction_set": self.plan.instruction_set,
            **self.metrics,
        }
        if phrases := self.text.phrases:
            metrics["phrases"] = {"found": len(phrases), "delimiter": phrases.options.delimiter}
        return metrics

    def train(self, report: Report | None = None) -> None:
        """Train to the end, or until early stopping, and write checkpoints, the last one at the end.

        Args:
            report: Called regularly with the progress.

        Raises:
            Diverged: Training has diverged.
            NothingToTrain: There was nothing to predict.
        """
        first, checkpoint_folder, early_stopping = self.kernel.position, self.checkpoint_folder, self._early_stopping
        self._start_meter(report)
        try:
            self._score_epoch()  # a resumed run may have stopped before it scored the last epoch
            while self.kernel.position < self.plan.total_chunks:
                if early_stopping and early_stopping.should_stop(self.scores):
                    break
                self._train_to(self._next_pause)
                self._score_epoch()
                if checkpoint_folder and self.kernel.position < self.plan.total_chunks:
                    checkpoint = self.make_checkpoint()
                    checkpoint_folder.copy(checkpoint)
                    # If the checkpoint was due by the clock, stop() ended the threads. restore() lets them run again;
                    # the position and the sums stay the same.
                    self.kernel.restore(checkpoint.resume_info.done, checkpoint.losses, checkpoint.predictions)
        finally:
            # This also runs after a signal or an error: write the result so far, unless the matrices match no position.
            if checkpoint_folder and self.kernel.position > first and not self._failed:
                checkpoint_folder.write(self.make_checkpoint())
        self._check_trained(self.make_checkpoint())
        if early_stopping:
            early_stopping.restore_best(self.make_checkpoint())

    @property
    def _next_pause(self) -> int:
        """The next position at which the threads stop: for a checkpoint, for a score, or at the end."""
        pause, folder = math.inf, self.checkpoint_folder
        if folder:
            pause = folder.next_position(self.kernel.position, self.plan.chunks)
        if self._early_stopping:
            pause = min(pause, max(self.kernel.position + 1, self._next_score_position))
        return int(min(pause, self.plan.total_chunks))

    @property
    def _next_score_position(self) -> int:
        """The end of the first epoch that has no score."""
        return (len(self.scores) + 1) * self.plan.chunks

    def _score_epoch(self) -> None:
        """Score the epoch if it has just ended and training may stop early."""
        if self._early_stopping and self.kernel.position >= self._next_score_position:
            self.scores = self._early_stopping.score_epoch(self.make_checkpoint())

    def _start_meter(self, report: Report | None) -> None:
        constants = {"epochs": self.plan.epochs, "memory": self.peak_memory, "memory_limit": self.memory_limit}
        self._meter = Meter(report, "train", self._words_trained, unit=self._unit, **constants)
        self._report()

    def _check_trained(self, checkpoint: Checkpoint) -> None:
        """Raise NothingToTrain if nothing was predicted, Diverged if training diverged. Warn if the loss has risen."""
        if not checkpoint.predictions.any():
            unit = "a line is a sentence" if self.text.types.is_text else "a list is a session"
            raise NothingToTrain(
                "nothing to learn: no training pairs left after min_count and subsampling; try --sample 0 (sample=0), "
                f"and note that {unit}, which windows do not cross"
            )
        self._check_divergence(*self.parameters.values())
        if checkpoint.loss_ratio > WARNING_RATIO:
            log.warning(
                "the loss has risen to %.3g per prediction: the vectors are poor; lower alpha, now %g",
                _highest_mean_loss(checkpoint.losses, checkpoint.predictions),
                self.settings.start_alpha,
            )

    def _train_to(self, end: int) -> None:
        """Run the threads to position `end`, or until a checkpoint is due."""
        threads = [Thread(target=self.kernel.run, args=(number, end)) for number in range(self.plan.workers)]
        started = time.perf_counter()
        try:
            for thread in threads:
                thread.start()
            self._monitor(threads, started)
        except BaseException:
            self.kernel.stop()
            raise
        finally:
            self._failed = True  # until all threads have ended: a second signal may interrupt the wait for them
            for thread in threads:  # after an error, a thread that has not begun to run never will
                thread.wait()
            self.seconds += time.perf_counter() - started
            self._failed = self.store.is_truncated or any(thread.error for thread in threads)
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
        """Add a row to the history if enough words were trained since the last row, or at the end of the run."""
        words, total = self._words_trained, self.plan.epochs * self.tokens
        since = words - self.history[-1, 0] if len(self.history) else words
        if since >= total / HISTORY_ROWS or (since and words == total):
            self.history = np.vstack([self.history, (words, seconds, *self._loss_sums - self._history_offset)])

    def _set_history_offset(self) -> None:
        """Set the offset that makes new rows of the history continue its last row.

        The history covers one rank. After a run of several ranks is resumed, the kernel's sums cover all ranks if the
        run resumes in one process, and start at 0 if it resumes with several ranks.
        """
        self._history_offset = self._loss_sums - (self.history[-1, 2:] if len(self.history) else 0)

    def _monitor(self, threads: list[Thread], started: float) -> None:
        """Report progress, check for divergence, and stop the threads if a checkpoint is due, until they end."""
        parameters = self.parameters.values()
        sample = [part for array in parameters for part in (array[:SAMPLED_ROWS], array[-SAMPLED_ROWS:])]
        for thread in threads:
            while thread.is_alive():
                self._wait_for(thread)
                self._raise_error(threads)
                self.store.release()
                self._record(self.seconds + time.perf_counter() - started)
                self._report()
                self._check_divergence(*sample)
                self._stop_if_checkpoint_due()

    def _wait_for(self, thread: Thread) -> None:
        """Wait until the thread ends, or until it is time to check it."""
        thread.join(POLL_SECONDS)

    def _stop_if_checkpoint_due(self) -> None:
        if self.checkpoint_folder and self.checkpoint_folder.due:
            self.kernel.stop()

    def _check_divergence(self, *arrays: NDArray[Any]) -> None:
        """Raise Diverged if the loss has risen too far, or one of the arrays has NaN or infinite values."""
        losses, predictions = self.kernel.losses, self.kernel.predictions
        is_finite = np.isfinite(losses).all() and all_finite(arrays)
        has_risen = is_finite and loss_ratio(self.plan.loss, losses, predictions) > DIVERGENCE_RATIO
        if is_finite and not has_risen and not (self.checkpoint_folder and self.checkpoint_folder.diverged):
            return
        last_good = self.checkpoint_folder.discard_after_rise() if self.checkpoint_folder else None
        loss = f"the mean loss of a prediction is {_highest_mean_loss(losses, predictions):,.3g}"
        raise Diverged(
            f"training diverged: after {self.kernel.tokens_trained:,} of {self.plan.epochs * self.plan.tokens:,} "
            f"{self._unit} "
            + (loss if has_risen else "vectors have NaN or infinite values")
            + f"; lower alpha, now {self.settings.start_alpha:g}"
            + (f"; the last good checkpoint is {last_good}" if last_good else "")
        )


def _highest_mean_loss(losses: NDArray[np.float64], predictions: NDArray[np.int64]) -> float:
    """Return the highest mean loss per prediction of an epoch."""
    return float((losses / np.maximum(predictions, 1)).max())


def resume_position(resume_info: ResumeInfo, end: int, ranks: int) -> int:
    """Return the position at which a run resumes.

    With another number of ranks than before, it is the position at the same share of the run.

    Args:
        resume_info: The ResumeInfo of the checkpoint.
        end: The position at the end of the resumed run.
        ranks: The number of ranks of the resumed run.

    Raises:
        W2VError: The checkpoint was written with another division of the text into chunks.
    """
    if resume_info.ranks != ranks:
        return round(resume_info.done / resume_info.end * end)
    if resume_info.end != end:
        raise W2VError(
            "the checkpoint was written by a version of w2v that divides texts differently: resume with that version"
        )
    return resume_info.done


# -- early stopping: end training when the score on held-out text stops rising --------------------------


@dataclass(frozen=True)
class EarlyStopping:
    """The rule that ends a run when its score on held-out text has not risen for `patience` epochs.

    Attributes:
        patience: The number of epochs without a higher score after which the run ends.
        score: A function that scores the vectors, or a classifier, on held-out text.
        checkpoint_folder: The folder that keeps the best checkpoint.
    """

    patience: int
    score: Callable[[], float]
    checkpoint_folder: CheckpointFolder

    def should_stop(self, scores: list[float]) -> bool:
        """Return True if a run with these scores, one for each finished epoch, should end."""
        return bool(scores) and len(scores) - best_epoch(scores) >= self.patience

    def score_epoch(self, checkpoint: Checkpoint) -> list[float]:
        """Score the state at the end of an epoch, and write the checkpoint if it is the best so far.

        Returns:
            The scores of all epochs so far.
        """
        scores = [*checkpoint.resume_info.scores, self.score()]
        if best_epoch(scores) == len(scores):
            resume_info = replace(checkpoint.resume_info, scores=scores)
            self.checkpoint_folder.write_best(replace(checkpoint, resume_info=resume_info))
        return scores

    def restore_best(self, checkpoint: Checkpoint) -> None:
        """Overwrite the matrices of a finished run with their values after the best epoch.

        Args:
            checkpoint: The state of the run at its end. Its matrices are the matrices of the run, not copies.
        """
        scores = checkpoint.resume_info.scores
        last, best = len(scores), best_epoch(scores)
        score = f"score on held-out text {scores[best - 1]:.4f}"
        if best == last:
            log.info("the last epoch, %d, was the best: %s", last, score)
            return
        try:
            best_checkpoint = self.checkpoint_folder.best(checkpoint.loss)
            check_identity(best_checkpoint.path, best_checkpoint.identity, checkpoint.identity)
            if best_checkpoint.resume_info.scores != scores[:best]:
                raise W2VError(f"{best_checkpoint.path} was not written after epoch {best} of this run")
        except W2VError as error:
            log.warning("%s: using the vectors of the last epoch, %d, instead of the best, %d", error, last, best)
            return
        for name, array in best_checkpoint.parameters.items():
            checkpoint.parameters[name][:] = array
        log.info("training ended after epoch %d: using the vectors of epoch %d, %s", last, best, score)


def best_epoch(scores: list[float]) -> int:
    """Return the number, from 1, of the epoch with the highest score; the earliest one if several are equal."""
    return int(np.argmax(scores)) + 1
