"""gensim.models: the classes that most scripts import from here."""

from w2v.gensim.models.doc2vec import Doc2Vec as Doc2Vec
from w2v.gensim.models.fasttext import FastText as FastText
from w2v.gensim.models.keyedvectors import KeyedVectors as KeyedVectors
from w2v.gensim.models.phrases import Phrases as Phrases
from w2v.gensim.models.word2vec import Word2Vec as Word2Vec
