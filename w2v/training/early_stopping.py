"""Early stopping: end training when the score on held-out text stops rising, and keep the best vectors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from w2v.errors import W2VError
from w2v.training.checkpoint import Checkpoint
from w2v.training.checkpoint_folder import CheckpointFolder
from w2v.training.identity import check_identity

log = logging.getLogger("w2v")


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
