"""Class-based softmax: a softmax over classes of words, and a softmax over the words of a class.

Source: Goodman 2001; Mikolov et al. 2011, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, W2VError
from w2v._losses.loss import Alpha, Array, Integers, Loss, LossOptions, Worker, log_softmax
from w2v._losses.rows import grouped, softmax_of
from w2v._options import option
from w2v._settings import LOSS


@dataclass(frozen=True, kw_only=True)
class ClassOptions(LossOptions):
    classes: int | None = option(
        None,
        "Approximate number of classes.",
        LOSS,
        minimum=1,
        default_text="the square root of the number of words",
        fixed=True,
    )


class ClassSoftmax(Loss):
    """The softmax over C classes, times the softmax over the words of the class.

    `data` holds starts, int64 (C + 1,), and class_of, int32 (V,), the class of each word. Class c has the words from
    starts[c] to starts[c + 1], and output row V + c.
    """

    name = branch = "class"
    help = "class-based softmax"
    alpha = Alpha(0.05, 0.1)
    options_class = ClassOptions
    options: ClassOptions
    storages = ("float32", "bf16")
    no_word_outputs = ""
    fixed_vocabulary = "its output rows belong to classes, which new words would change"

    def prepare(self) -> None:
        keep = self.vocabulary.keep_probabilities(self.settings.sample, self.settings.sample_formula)
        masses = self.vocabulary.counts * keep  # expected counts after subsampling
        self._set_classes(equal_classes(masses, self.options.classes))

    def restore(self, tensors: Mapping[str, Array]) -> None:
        size = len(self.vocabulary)
        if "class_starts" not in tensors:
            raise W2VError("the model's classes are damaged: class_starts is missing")
        starts = tensors["class_starts"]
        if starts.dtype != np.int64 or starts.ndim != 1 or len(starts) < 2 or starts[0] != 0 or starts[-1] != size:
            raise W2VError(f"the model's classes are damaged: they do not divide its {size} words")
        if (starts[1:] <= starts[:-1]).any():
            raise W2VError("the model's classes are damaged: one is empty")
        self._set_classes(np.ascontiguousarray(starts))

    def _set_classes(self, starts: NDArray[np.int64]) -> None:
        self.classes = len(starts) - 1
        self.rank_above_size = self.classes  # The normaliser of each class adds at most 1 to the rank.
        sizes, words = np.diff(starts), len(self.vocabulary)
        class_of = np.repeat(np.arange(self.classes, dtype=np.int32), sizes)
        self.data, self.tensors = {"starts": starts, "class_of": class_of}, {"class_starts": starts}
        self.rows, self.max_rows = words + self.classes, self.classes + int(sizes.max())
        self.expected_rows = self.classes + words / self.classes  # since all classes have about the same mass

    @classmethod
    def summary(cls, tensors: Mapping[str, Array]) -> dict[str, Any]:
        starts = tensors.get("class_starts", np.empty(()))
        return {"classes": len(starts) - 1} if starts.ndim else {}

    def expected_updates(self, words: NDArray[np.float64]) -> NDArray[np.float64]:
        class_probabilities = np.bincount(self.data["class_of"], words)
        # Each prediction updates the rows of all classes, which are the last ones.
        return np.append(class_probabilities[self.data["class_of"]], np.ones(self.classes))

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        """Choose the rows of all classes, and then the rows of the words in the class of the centre word."""
        classes, own = len(s.data.starts) - 1, s.data.class_of[centre]
        first, words = s.data.starts[own], s.data.starts[own + 1] - s.data.starts[own]
        for j in range(classes):
            s.rows[j] = s.data.starts[classes] + j
            s.target[j] = j == own
        for j in range(words):
            s.rows[classes + j] = first + j
            s.target[classes + j] = first + j == centre
        return classes + words

    @staticmethod
    def link(s: Worker, scores: Array) -> float:
        classes = len(s.data.starts) - 1
        class_loss = softmax_of(scores, s.target, s.room, 0, classes)
        return class_loss + softmax_of(scores, s.target, s.room, classes, scores.shape[1])

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        scores: Array = rows @ parameters["outputs"].T
        size, firsts, class_of = len(self.vocabulary), self.data["starts"][:-1], self.data["class_of"]
        words, classes = scores[:, :size], log_softmax(scores[:, size:])
        words -= np.maximum.reduceat(words, firsts, axis=1)[:, class_of]
        classes -= np.log(np.add.reduceat(np.exp(words), firsts, axis=1, dtype=np.float64)).astype(rows.dtype)
        words += classes[:, class_of]
        return words

    def log_probabilities_of(
        self, parameters: Mapping[str, Array], rows: Array, indices: Integers, words: Integers, common: Integers
    ) -> tuple[Array, Array]:
        """Compute only the scores of the classes, and of the words in the class of each word."""
        starts, class_of, outputs = self.data["starts"], self.data["class_of"], parameters["outputs"]
        classes = log_softmax(rows @ outputs[len(self.vocabulary) :].T)
        logs, table = classes[indices, class_of[words]], classes[:, class_of[common]]
        for group, positions in grouped(class_of[words]):
            first, end = starts[group : group + 2]
            distinct, inverse = np.unique(indices[positions], return_inverse=True)
            logs[positions] += log_softmax(rows[distinct] @ outputs[first:end].T)[inverse, words[positions] - first]
        for group, columns in grouped(class_of[common]):
            first, end = starts[group : group + 2]
            table[:, columns] += log_softmax(rows @ outputs[first:end].T)[:, common[columns] - first]
        return logs, table


def equal_classes(masses: Array, classes: int | None = None) -> NDArray[np.int64]:
    """Divide the words into classes of about equal mass.

    A word with more than the mass of a class is a class by itself, so there can be fewer than `classes` classes.

    Args:
        masses: The mass of each word, (V,).
        classes: The approximate number of classes, √V by default.

    Returns:
        The first word of each class, and V at the end: int64 (C + 1,).

    Raises:
        SettingsError: There are fewer words than classes.
    """
    size = len(masses)
    if classes is not None and classes > size:
        raise SettingsError(f"classes {classes}: the vocabulary has {size} words; lower classes")
    count = classes or math.ceil(math.sqrt(size))
    masses = masses.astype(np.float64)
    before = (np.cumsum(masses) - masses) / (masses.sum() or 1)  # The sum is 0 if subsampling leaves nothing.
    _, starts = np.unique((before * count).astype(np.int64), return_index=True)
    return np.append(starts, size).astype(np.int64)
