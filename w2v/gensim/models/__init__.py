"""gensim.models: the classes that most scripts import from here."""

import importlib
from typing import Any

from w2v.gensim import fall_through
from w2v.gensim.models.fasttext import FastText as FastText
from w2v.gensim.models.keyedvectors import KeyedVectors as KeyedVectors
from w2v.gensim.models.phrases import Phrases as Phrases
from w2v.gensim.models.word2vec import Word2Vec as Word2Vec


def __getattr__(name: str) -> Any:
    if name == "Doc2Vec" and not fall_through.has_gensim():
        return importlib.import_module("w2v.gensim.models.doc2vec").Doc2Vec
    return fall_through.attributes_of(__name__)(name)
