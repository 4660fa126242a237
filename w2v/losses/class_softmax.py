"""A softmax over classes, and one over the words of a class (Goodman 2001; Mikolov et al. 2011, section 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError
from w2v.losses.loss import Alpha, Array, Integers, Loss, LossOptions, Worker, log_softmax
from w2v.losses.rows import grouped, softmax_of
from w2v.options import option
from w2v.settings import LOSS


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
    """data: starts, int64 (C + 1,): class c has the words from starts[c] to starts[c + 1], and output row V + c;
    class_of, int32 (V,): the class of each word.
    """

    name = branch = "class"
    help = "class-based softmax"
    kernels = ("cython", "numba")
    alpha = Alpha(0.05, 0.1)
    options_class = ClassOptions
    options: ClassOptions
    storages = ("float32", "bf16")
    no_word_outputs = ""
    fixed_vocabulary = "its output rows belong to classes, which new words would change"

    def prepare(self) -> None:
        kept = self.vocabulary.keep_probabilities(self.settings.sample, self.settings.sample_formula)
        masses = self.vocabulary.counts * kept  # expected counts after subsampling
        self._set(equal_classes(masses, self.options.classes))

    def restore(self, tensors: Mapping[str, Array]) -> None:
        size = len(self.vocabulary)
        if "class_starts" not in tensors:
            raise W2VError("class_starts is missing")
        starts = tensors["class_starts"]
        if starts.dtype != np.int64 or starts.ndim != 1 or len(starts) < 2 or starts[0] != 0 or starts[-1] != size:
            raise W2VError(f"the model's classes are damaged: they do not divide its {size} words")
        if (starts[1:] <= starts[:-1]).any():
            raise W2VError("the model's classes are damaged: one is empty")
        self._set(np.ascontiguousarray(starts))

    def _set(self, starts: NDArray[np.int64]) -> None:
        self.classes = self.rank_above_size = len(starts) - 1  # a normaliser for each class
        sizes, words = np.diff(starts), len(self.vocabulary)
        class_of = np.repeat(np.arange(self.classes, dtype=np.int32), sizes)
        self.data, self.tensors = {"starts": starts, "class_of": class_of}, {"class_starts": starts}
        self.rows, self.max_rows = words + self.classes, self.classes + int(sizes.max())
        self.expected_rows = self.classes + words / self.classes  # classes of equal mass

    @classmethod
    def summary(cls, tensors: Mapping[str, Array]) -> dict[str, Any]:
        starts = tensors.get("class_starts", np.empty(()))
        return {"classes": len(starts) - 1} if starts.ndim else {}

    def updates(self, words: NDArray[np.float64]) -> NDArray[np.float64]:
        of_classes = np.bincount(self.data["class_of"], words)
        return np.append(of_classes[self.data["class_of"]], np.ones(self.classes))  # the classes are the last rows

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        """The rows of the classes, then those of the words of the centre's class."""
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
        of_class = softmax_of(scores, s.target, s.room, 0, classes)
        return of_class + softmax_of(scores, s.target, s.room, classes, scores.shape[1])

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
        """Computes only the scores of the classes, and of the words in each word's class."""
        starts, class_of, outputs = self.data["starts"], self.data["class_of"], parameters["outputs"]
        classes = log_softmax(rows @ outputs[len(self.vocabulary) :].T)
        logs, table = classes[indices, class_of[words]], classes[:, class_of[common]]
        for group, positions in grouped(class_of[words]):
            first, end = starts[group : group + 2]
            distinct, which = np.unique(indices[positions], return_inverse=True)
            logs[positions] += log_softmax(rows[distinct] @ outputs[first:end].T)[which, words[positions] - first]
        for group, columns in grouped(class_of[common]):
            first, end = starts[group : group + 2]
            table[:, columns] += log_softmax(rows @ outputs[first:end].T)[:, common[columns] - first]
        return logs, table


def equal_classes(masses: Array, classes: int | None = None) -> NDArray[np.int64]:
    """The first word of each class, and V: int64 (C + 1,). The about `classes` classes (default √V) have equal mass.

    A word with more than the mass of a class is a class by itself, so there can be fewer. Raises SettingsError for more
    classes than words.
    """
    size = len(masses)
    if classes is not None and classes > size:
        raise SettingsError(f"classes {classes}: the vocabulary has {size} words; lower classes")
    wanted = classes or math.ceil(math.sqrt(size))
    masses = masses.astype(np.float64)
    before = (np.cumsum(masses) - masses) / (masses.sum() or 1)  # subsampling may leave nothing
    _, starts = np.unique((before * wanted).astype(np.int64), return_index=True)
    return np.append(starts, size).astype(np.int64)
