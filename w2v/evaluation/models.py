"""Protocols of the models that can be evaluated."""

from __future__ import annotations

from typing import Any, Protocol, Self, cast

from numpy.typing import NDArray

from w2v.errors import W2VError, one_line
from w2v.losses.loss import Array, Loss
from w2v.losses.registry import Settings
from w2v.system.files import PathLike
from w2v.text.normalise import TextOptions
from w2v.text.vocabulary import Vocabulary
from w2v.vectors.keyed import KeyedVectors


class HasWordVectors(Protocol):
    """A model that has word vectors."""

    @property
    def wv(self) -> KeyedVectors: ...


class TrainedModel(Protocol):
    """The attributes and methods of `w2v.Model` that evaluation needs. `w2v.Model` documents them."""

    settings: Settings
    vocabulary: Vocabulary
    inputs: NDArray[Any]  # (V, D)
    outputs: NDArray[Any]  # (R, D)
    loss: Loss
    parameters: dict[str, NDArray[Any]]
    text: TextOptions

    def as_float32(self) -> Self: ...
    def log_probabilities(self, rows: Array) -> Array: ...


def vectors_of(model: KeyedVectors | HasWordVectors) -> KeyedVectors:
    """Return the word vectors of a model, or the argument itself if it is vectors.

    Raises W2VError for any other object, such as a path.
    """
    vectors = getattr(model, "wv", model)
    if not hasattr(vectors, "words_in"):
        raise W2VError(f"{one_line(repr(model))[:60]} is not a model: give one, such as w2v.load('model.bin')")
    return cast(KeyedVectors, vectors)


def load_if_path(model: TrainedModel | PathLike) -> TrainedModel:
    """Return the model, loaded if it is a path. Raises W2VError for vectors without an output layer."""
    from w2v.training.model import Model  # training imports evaluation

    if hasattr(model, "log_probabilities"):
        return cast(TrainedModel, model)
    return Model.of(model)
