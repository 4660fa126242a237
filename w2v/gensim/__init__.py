"""gensim's modules for word vectors: its names and behaviour, with w2v doing the work."""

from w2v.gensim import models, utils

__version__ = "4.4.0"  # of the gensim whose behaviour this is

__all__ = ["models", "utils"]
