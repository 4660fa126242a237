"""gensim.models: the classes under the names that most scripts import."""

from w2v.gensim.models.keyedvectors import KeyedVectors

__all__ = ["KeyedVectors"]
