"""gensim.models.callbacks: what is called at the beginning and end of training and of each epoch."""

from typing import Any


class CallbackAny2Vec:
    """A base class, whose methods are called before and after each epoch, and before and after training.

    They get the model, whose `wv` is up to date.
    """

    def on_epoch_begin(self, model: Any) -> None: ...

    def on_epoch_end(self, model: Any) -> None: ...

    def on_train_begin(self, model: Any) -> None: ...

    def on_train_end(self, model: Any) -> None: ...
