"""The protocol of a trained model, which perplexity and effective rank need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self, cast

from numpy.typing import NDArray

from w2v.losses.loss import Array, Loss
from w2v.losses.registry import Settings
from w2v.system.files import PathLike
from w2v.text.normalise import TextOptions
from w2v.text.vocabulary import Vocabulary


class TrainedModel(Protocol):
    """The attributes and methods of a view of a model that evaluation needs; see `w2v.training.model.View`."""

    @property
    def settings(self) -> Settings: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def inputs(self) -> NDArray[Any]: ...  # (V, D)
    @property
    def outputs(self) -> NDArray[Any]: ...  # (R, D)
    @property
    def loss(self) -> Loss: ...
    @property
    def parameters(self) -> dict[str, NDArray[Any]]: ...
    @property
    def text(self) -> TextOptions: ...
    def to_float32(self) -> Self: ...
    def log_probabilities(self, rows: Array) -> Array: ...


class HasViews(Protocol):
    """A `w2v.Model`."""

    @property
    def views(self) -> Mapping[str, Any]: ...


def view_of_words(model: TrainedModel | HasViews | PathLike) -> TrainedModel:
    """Return the view of words of a model or of its file. A view is returned unchanged.

    Raises:
        W2VError: If the file cannot be read or has no output layer.
    """
    from w2v.training.model import Model, View  # training imports evaluation

    return model if isinstance(model, View) else Model.of(cast(Any, model)).views["words"]
