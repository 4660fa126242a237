"""Output layers: from the vocabulary's counts to the arrays that say which output rows predict a word.

negative sampling, noise-contrastive estimation, sampled softmax    a row for each word; samples of them are drawn
hierarchical softmax                                                a row for each inner node of a tree: tree.py
class-based softmax                                                 a row for each word, and one for each class
full softmax                                                        a row for each word

What a layer needs beside the settings and the counts, it gives as `tensors`, for a file to keep.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Union

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError
from w2v.losses import _trees
from w2v.losses.tree import HierarchicalSoftmax
from w2v.settings import COMPILED, LossName, Settings
from w2v.text.vocabulary import Vocabulary

Tensors = dict[str, NDArray[Any]]

LARGE_SOFTMAX = 30_000  # words
TOGETHER = 16  # context words of a window at most that take a step together (bench/NOTES.md)
ADAPTIVE_BLOCKS = 16  # times `negative` samples at most


@dataclass(frozen=True)
class NegativeSampling:
    """Losses that draw K words from the noise distribution q(w) ∝ count(w)^exponent, by an alias table.

    "ns"       logistic regressions on the scores themselves, K different words (Mikolov et al. 2013b, section 2.2)
    "nce"      on s − log(K q(w)), where s = log p(w) + log V: the normaliser is fixed at V, so that zero vectors are
               the uniform distribution (Mnih & Teh 2012)
    "sampled"  a softmax over the word itself and the drawn ones, all less the logarithm of how often each is expected
               to be drawn: the probability that of these words this is the one from the text (Bengio & Senécal 2003;
               Jean et al. 2015, section 3.1)

    Attributes:
        negative: words drawn for each prediction, K.
        cells: uint32 (V, 2), a threshold and an alias: cell i gives i for a uniform 32-bit number up to the
            threshold, and the alias otherwise.
        offsets: float32 (V,), what is taken off the score of a drawn word: 0, log(K q V) or log(K q).
        adaptive: whether "sampled" draws more, up to 16 K, after windows in which the effective number of samples of
            some context word, (Σr)² / Σr² with r the ratios of importance, was below K / 2 (Bengio & Senécal 2008).
            They ask the sample itself; that dilutes heavy words just when they are drawn, and learnt worse.
    """

    negative: int
    cells: NDArray[np.uint32]
    offsets: NDArray[np.float32]
    loss: LossName = "ns"
    adaptive: bool = False

    @property
    def rows(self) -> int:
        return len(self.cells)

    @property
    def most_rows(self) -> int:
        return self.negative * (ADAPTIVE_BLOCKS if self.adaptive else 1) + 1

    @property
    def mean_rows(self) -> float:
        return self.most_rows

    @property
    def tensors(self) -> Tensors:
        return {}

    @classmethod
    def build(
        cls,
        counts: NDArray[np.int64],
        negative: int,
        exponent: float = 0.75,
        loss: Literal["ns", "nce", "sampled"] = "ns",
        adaptive: bool = False,
    ) -> NegativeSampling:
        """Raises SettingsError where "ns" finds too few words for `negative` different negatives."""
        size = len(counts)
        if loss == "ns" and negative >= size:
            raise SettingsError(
                f"negative {negative}: needs at least {negative + 1} words to draw from, "
                f"but the vocabulary has {size}; lower negative or min_count"
            )
        weights = counts.astype(np.float64) ** exponent
        weights /= weights.mean()
        scale = {"ns": 0.0, "nce": negative, "sampled": negative / size}[loss]
        offsets = np.log(weights * scale) if scale else np.zeros(size)
        layer = cls(negative, np.empty((size, 2), np.uint32), offsets.astype(np.float32), loss, adaptive)
        _trees.fill_alias(weights, layer.cells, np.empty(size, np.int64))
        return layer


def too_large(loss: LossName, size: int, instead: str) -> SettingsError:
    return SettingsError(
        f"loss {loss}: each prediction takes the rows of all {size:,} words, {size / 6:,.0f} times as many as negative "
        f"sampling with 5; lower max_vocab to {LARGE_SOFTMAX:,}, {instead}, or set large_softmax to have it so"
    )


@dataclass(frozen=True)
class ClassSoftmax:
    """A softmax over classes, and one over the words of the class (Goodman 2001; Mikolov et al. 2011, section 3).

    Attributes:
        starts: int64 (C + 1,): class c is the words from starts[c] to starts[c + 1]. Its row is number V + c.
    """

    starts: NDArray[np.int64]
    loss: ClassVar[LossName] = "class"

    @property
    def words(self) -> int:
        return int(self.starts[-1])

    @property
    def classes(self) -> int:
        return len(self.starts) - 1

    @property
    def rows(self) -> int:
        return self.words + self.classes

    @property
    def most_rows(self) -> int:
        return self.classes + int(np.diff(self.starts).max())

    @property
    def mean_rows(self) -> float:
        return self.classes + self.words / self.classes  # classes of equal mass

    @property
    def class_of(self) -> NDArray[np.int32]:
        """The class of each word, int32 (V,)."""
        return np.repeat(np.arange(self.classes, dtype=np.int32), np.diff(self.starts))

    @property
    def tensors(self) -> Tensors:
        return {"class_starts": self.starts}

    @classmethod
    def from_tensors(cls, starts: NDArray[Any], size: int) -> ClassSoftmax:
        """The classes of a file. Raises W2VError unless they part `size` words."""
        if starts.dtype != np.int64 or starts.ndim != 1 or len(starts) < 2 or starts[0] != 0 or starts[-1] != size:
            raise W2VError(f"the model's classes are damaged: they do not part its {size} words")
        if (starts[1:] <= starts[:-1]).any():
            raise W2VError("the model's classes are damaged: one is empty")
        return cls(np.ascontiguousarray(starts))

    @classmethod
    def build(cls, masses: NDArray[Any], classes: int | None = None) -> ClassSoftmax:
        """Classes of equal mass, in the order of the words, about `classes` of them, by default √V.

        A word with more than one class's mass is a class by itself, so there can be fewer.

        Raises SettingsError for more classes than words.
        """
        size = len(masses)
        if classes is not None and classes > size:
            raise SettingsError(f"classes {classes}: the vocabulary has {size} words; lower classes")
        wanted = classes or math.ceil(math.sqrt(size))
        masses = masses.astype(np.float64)
        before = (np.cumsum(masses) - masses) / masses.sum()
        _, starts = np.unique((before * wanted).astype(np.int64), return_index=True)
        return cls(np.append(starts, size).astype(np.int64))


@dataclass(frozen=True)
class FullSoftmax:
    """The softmax over all words, exactly."""

    words: int
    loss: ClassVar[LossName] = "softmax"

    @property
    def rows(self) -> int:
        return self.words

    @property
    def most_rows(self) -> int:
        return self.words

    @property
    def mean_rows(self) -> float:
        return self.words

    @property
    def tensors(self) -> Tensors:
        return {}


if TYPE_CHECKING:
    from w2v.losses.objective import Objective

OutputLayer = NegativeSampling | HierarchicalSoftmax | ClassSoftmax | FullSoftmax
Layer = Union[OutputLayer, "Objective"]


def kept_layer(settings: Settings, vocabulary: Vocabulary, tensors: Mapping[str, NDArray[Any]]) -> Layer:
    """The output layer that a file keeps. Raises W2VError where it lacks what that needs, and as output_layer."""
    needed = {"hs": "tree_parents", "class": "class_starts"}.get(settings.loss)
    if needed and needed not in tensors:  # no other file is read in its place
        raise W2VError(f"it lacks {needed}")
    return output_layer(settings, vocabulary, tensors)


def output_layer(settings: Settings, vocabulary: Vocabulary, tensors: Mapping[str, NDArray[Any]]) -> Layer:
    """The output layer or objective that the settings ask for, from the `tensors` of one of its kind, if any.

    Raises SettingsError for settings that do not go with the vocabulary, W2VError for a tree that cannot be used.
    """
    counts, size, loss = vocabulary.counts, len(vocabulary), settings.loss
    if loss in COMPILED:
        from w2v.losses import registry

        return registry.of(settings).prepared(vocabulary, settings)
    if loss == "hs":
        if "tree_parents" in tensors:
            return HierarchicalSoftmax.from_tensors(tensors, size)
        return HierarchicalSoftmax.build(vocabulary, settings.tree, settings.tree_vectors)
    if loss == "class":
        if "class_starts" in tensors:
            return ClassSoftmax.from_tensors(tensors["class_starts"], size)
        kept = vocabulary.keep_probabilities(settings.sample, settings.sample_formula)
        return ClassSoftmax.build(counts * kept, settings.classes)  # as often as training sees them
    if loss == "softmax":
        if size > LARGE_SOFTMAX and not settings.large_softmax:
            raise too_large(loss, size, "choose loss sampled or class")
        return FullSoftmax(size)
    if settings.negative >= size and loss != "ns":
        raise SettingsError(
            f"negative {settings.negative}: the vocabulary has {size} words, and a softmax over all of them is exact "
            "and costs no more: choose loss softmax, or lower negative"
        )
    assert loss in ("ns", "nce", "sampled")
    return NegativeSampling.build(
        counts, settings.negative, settings.ns_exponent, loss, settings.adaptive_samples and loss == "sampled"
    )
