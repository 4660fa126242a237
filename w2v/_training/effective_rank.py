"""The effective rank of a model's predictions, which shows the softmax bottleneck.

Source: Yang et al. 2018, "Breaking the Softmax Bottleneck", arXiv:1711.03953
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._display import Result
from w2v._errors import SettingsError, W2VError
from w2v._options import check_numbers
from w2v._progress import Meter, Report
from w2v._training.model import AnyModel, view_of_words
from w2v._training.perplexity import MAX_SCORES

SAMPLE = 2000  # default number of contexts and of words


@dataclass(frozen=True)
class EffectiveRank(Result):
    """The effective rank and the singular values of the matrix log p(word | context).

    Attributes:
        rank: The effective rank: the number of singular values above max(contexts, words) · ε · (largest singular
            value), as in numpy.linalg.matrix_rank. ε is the precision of float64.
        max_rank: The highest rank that the loss allows with vectors of this size; None if the loss does not limit it.
        contexts, words: Numbers of rows and columns of the matrix. Both are the first words of the vocabulary.
        vector_size: D.
        singular_values: The singular values in descending order.
    """

    rank: int
    max_rank: int | None
    contexts: int
    words: int
    vector_size: int
    singular_values: list[float]


def effective_rank(
    model: AnyModel, contexts: int | None = None, targets: int | None = None, progress: Report | None = None
) -> EffectiveRank:
    """Compute the effective rank of the matrix log p(word | context).

    Probabilities are normalised over the whole vocabulary, in float64.

    Args:
        model: A model, or the path of its file. Of a model of several views, the view of words is measured.
        contexts: Number of rows. The context of row i is the single word i, in CBOW models, too. By default 2000, or
            all words of a smaller vocabulary.
        targets: Number of columns: the first words of the vocabulary, with the same default.
        progress: Called in phase "predict".

    Raises:
        SettingsError: If there are fewer than two contexts or targets, or more than words in the vocabulary.
        W2VError: If the model cannot be used, or if its predictions are not finite.
    """
    view = view_of_words(model)
    size = len(view.vocabulary)
    for name, number in (("contexts", contexts), ("targets", targets)):
        check_numbers(**{name: number})
        if number is not None and number > size:
            raise SettingsError(f"{name} {number}: it must be at most {size:,}, the size of the vocabulary")
    n, m = contexts or min(SAMPLE, size), targets or min(SAMPLE, size)
    blocks = np.array_split(view.inputs[:n].astype(np.float64), -(-n * size // MAX_SCORES))
    logs: NDArray[Any] = np.empty((n, m))
    meter, done = Meter(progress, "predict"), 0
    for rows in blocks:
        logs[done : done + len(rows)] = view.log_probabilities(rows)[:, :m]
        done += len(rows)
        meter(done, n)
    if not np.isfinite(logs).all():
        raise W2VError("the model's predictions are not numbers: its training has diverged")
    values = np.linalg.svd(logs, compute_uv=False)
    significant = int((values > values[0] * max(n, m) * np.finfo(np.float64).eps).sum())
    return EffectiveRank(significant, view.loss.max_rank, n, m, view.inputs.shape[1], values.tolist())
