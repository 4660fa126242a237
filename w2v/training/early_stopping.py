"""Early stopping: end training when the score on held-out text stops rising, and keep the best vectors."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from w2v.errors import W2VError
from w2v.evaluation.held_out import GapTest
from w2v.text.subword_rows import SubwordRows
from w2v.training.checkpoint import Checkpoint
from w2v.training.checkpoint_folder import CheckpointFolder
from w2v.training.model import Model, matrix_arguments
from w2v.vectors.cosines import Floats

log = logging.getLogger("w2v")


@dataclass(frozen=True)
class EarlyStopping:
    """The rule that ends a run when its score on held-out text has not risen for `patience` epochs.

    Attributes:
        patience: The number of epochs without a higher score after which the run ends.
        held_out: The text that scores the vectors after each epoch.
        checkpoint_folder: The folder that keeps the best state.
    """

    patience: int
    held_out: GapTest
    checkpoint_folder: CheckpointFolder

    def should_stop(self, scores: list[float]) -> bool:
        """Return True if a run with these scores, one for each finished epoch, should end."""
        return bool(scores) and len(scores) - best_epoch(scores) >= self.patience

    def score_epoch(self, state: Checkpoint) -> list[float]:
        """Score the state at the end of an epoch, and write it if it is the best so far.

        Returns:
            The scores of all epochs so far.
        """
        scores = [*state.resume_info.scores, self.held_out.score(word_vectors(state))]
        if best_epoch(scores) == len(scores):
            self.checkpoint_folder.write_best(replace(state, resume_info=replace(state.resume_info, scores=scores)))
        return scores

    def restore_best(self, state: Checkpoint) -> None:
        """Overwrite the matrices of a finished run with their values after the best epoch."""
        scores = state.resume_info.scores
        last, best = len(scores), best_epoch(scores)
        score = f"score on held-out text {scores[best - 1]:.4f}"
        if best == last:
            log.info("the last epoch, %d, was the best: %s", last, score)
            return
        try:
            best_state = self.checkpoint_folder.best()
            if len(best_state.resume_info.scores) != best:
                raise W2VError(f"{self.checkpoint_folder.folder} does not have the state after epoch {best}")
        except W2VError as error:
            log.warning("%s: using the vectors of the last epoch, %d, instead of the best, %d", error, last, best)
            return
        for name, array in best_state.parameters.items():
            state.parameters[name][:] = array
        log.info("training ended after epoch %d: using the vectors of epoch %d, %s", last, best, score)


def best_epoch(scores: list[float]) -> int:
    """Return the number, from 1, of the epoch with the highest score; the earliest one if several are equal."""
    return int(np.argmax(scores)) + 1


def word_vectors(state: Checkpoint) -> Floats:
    """Return the word vectors of a state, (V, D) or (V, 2D); see Settings.vectors."""
    parameters = dict(state.parameters)
    if state.settings.ngrams:
        shared, parameters["inputs"] = parameters.pop("ngrams"), parameters["inputs"].copy()
        # The run has built the same table of subwords, so there is enough memory for it.
        subwords = SubwordRows.of(state.settings.ngrams, state.vocabulary.words, ignore_memory=True)
        subwords.compose(parameters["inputs"], shared)
    return Model(state.settings, state.vocabulary, loss=state.loss, **matrix_arguments(parameters)).vectors
