"""gensim.models.callbacks: what is called at the beginning and end of training and of each epoch."""

from typing import Any


class CallbackAny2Vec:
    """A base class; its methods get the model, whose `wv` is up to date."""

    def on_epoch_begin(self, model: Any) -> None:
        """Before each epoch."""

    def on_epoch_end(self, model: Any) -> None:
        """After each epoch."""

    def on_train_begin(self, model: Any) -> None:
        """Before training."""

    def on_train_end(self, model: Any) -> None:
        """After training."""
