"""gensim.models.callbacks: the base class of training callbacks."""

from typing import Any


class CallbackAny2Vec:
    """A base class for callbacks. Training calls its methods with the model, after updating `model.wv`."""

    def on_epoch_begin(self, model: Any) -> None: ...

    def on_epoch_end(self, model: Any) -> None: ...

    def on_train_begin(self, model: Any) -> None: ...

    def on_train_end(self, model: Any) -> None: ...
