"""Ends training when the score of its vectors on held-out text stops rising, and keeps the best of them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from w2v.errors import W2VError
from w2v.evaluation.held_out import HeldOut
from w2v.text.subword_rows import SubwordRows
from w2v.training.checkpoint import Checkpoint, Checkpoints
from w2v.training.model import Model, split
from w2v.vectors.cosines import Vector

log = logging.getLogger("w2v")


@dataclass(frozen=True)
class EarlyStopping:
    """Scores a run after each epoch; its best state is in `checkpoints`.

    It ends when the score has not risen for `patience` epochs.
    """

    patience: int
    held_out: HeldOut
    checkpoints: Checkpoints

    def is_due(self, scores: list[float]) -> bool:
        """Whether a run with these scores, one for each epoch so far, ends now."""
        return bool(scores) and len(scores) - best_epoch(scores) >= self.patience

    def score(self, state: Checkpoint) -> list[float]:
        """The scores after one more epoch. Writes the state if its score is the highest."""
        scores = [*state.position.scores, self.held_out.score(vectors_of(state))]
        if best_epoch(scores) == len(scores):
            self.checkpoints.write_best(replace(state, position=replace(state.position, scores=scores)))
        return scores

    def restore_best(self, state: Checkpoint) -> None:
        """Give the matrices of a run that has ended the values that they had after its best epoch."""
        scores = state.position.scores
        ended, best = len(scores), best_epoch(scores)
        score = f"score on held-out text {scores[best - 1]:.4f}"
        if best == ended:
            log.info("the last epoch, %d, was the best: %s", ended, score)
            return
        try:
            found = self.checkpoints.best()
            if len(found.position.scores) != best:
                raise W2VError(f"{self.checkpoints.folder} does not have the state after epoch {best}")
        except W2VError as error:
            log.warning("%s: the vectors are those of the last epoch, %d, not of the best, %d", error, ended, best)
            return
        for name, array in found.parameters.items():
            state.parameters[name][:] = array
        log.info("training ended after epoch %d: the vectors are those of epoch %d, %s", ended, best, score)


def best_epoch(scores: list[float]) -> int:
    """The number of the epoch, from 1, after which the score was the highest; the first of several."""
    return int(np.argmax(scores)) + 1


def vectors_of(state: Checkpoint) -> Vector:
    """The word vectors of a run at this state, (V, D) or (V, 2D); see Settings.vectors."""
    parameters = dict(state.parameters)
    if state.settings.ngrams:
        shared, parameters["inputs"] = parameters.pop("ngrams"), parameters["inputs"].copy()
        # The run has made this table before, so its memory is not checked again.
        rows = SubwordRows.of(state.settings.ngrams, state.vocabulary.words, ignore_memory=True)
        rows.compose(parameters["inputs"], shared)
    return Model(state.settings, state.vocabulary, loss=state.loss, **split(parameters)).vectors
