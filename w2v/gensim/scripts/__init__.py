"""gensim.scripts: command-line programs of gensim, as functions."""

from w2v.gensim.fall_through import attributes_of

__getattr__ = attributes_of(__name__)
