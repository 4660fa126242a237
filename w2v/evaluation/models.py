"""The protocol of a trained model, which perplexity and effective rank need."""

from __future__ import annotations

from typing import Any, Protocol, Self, cast

from numpy.typing import NDArray

from w2v.losses.loss import Array, Loss
from w2v.losses.registry import Settings
from w2v.system.files import PathLike
from w2v.text.normalise import TextOptions
from w2v.text.vocabulary import Vocabulary


class TrainedModel(Protocol):
    """The attributes and methods of `w2v.Model` that evaluation needs. `w2v.Model` documents them."""

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


def load_if_path(model: TrainedModel | PathLike) -> TrainedModel:
    """Return the model, loaded if it is a path. From a model of several views, return the view of words.

    Raises:
        W2VError: If the file cannot be read or has no output layer.
    """
    from w2v.training.model import Model, ViewsModel  # training imports evaluation

    found = Model.of(cast(Any, model))
    return found.views["words"] if isinstance(found, ViewsModel) else found
