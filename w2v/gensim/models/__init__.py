"""gensim.models: the classes under the names that most scripts import."""

from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.models.phrases import Phrases
from w2v.gensim.models.word2vec import Word2Vec

__all__ = ["KeyedVectors", "Phrases", "Word2Vec"]
