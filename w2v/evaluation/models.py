"""The models that perplexity and the effective rank measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from w2v.system.files import PathLike

if TYPE_CHECKING:  # training imports evaluation
    from w2v.training.model import Model, View

TrainedModel: TypeAlias = "View"
AnyModel: TypeAlias = "Model | View | PathLike"


def view_of_words(model: AnyModel) -> TrainedModel:
    """Return the view of words of a model or of its file. A view is returned unchanged.

    Raises:
        W2VError: If the file cannot be read or has no output layer.
    """
    from w2v.training.model import Model, View  # training imports evaluation

    return model if isinstance(model, View) else Model.of(model).views["words"]
