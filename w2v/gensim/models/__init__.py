"""gensim.models: the classes that most scripts import from here."""

from w2v.gensim.models.doc2vec import Doc2Vec
from w2v.gensim.models.fasttext import FastText
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.models.phrases import Phrases
from w2v.gensim.models.word2vec import Word2Vec

__all__ = ["Doc2Vec", "FastText", "KeyedVectors", "Phrases", "Word2Vec"]
