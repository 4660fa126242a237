"""gensim.test: the helpers that gensim's examples import."""

from w2v.gensim.fall_through import attributes_of

__getattr__ = attributes_of(__name__)
