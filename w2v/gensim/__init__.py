"""gensim's modules for word vectors, with gensim's names and behaviour, implemented by w2v."""

import logging

from w2v.gensim import matutils, models, similarities, utils
from w2v.gensim.fall_through import attributes_of
from w2v.gensim.installation import install
from w2v.gensim.utils import VERSION as __version__

logging.getLogger("gensim").addHandler(logging.NullHandler())  # silent until a program configures logging

__all__ = ["__version__", "install", "matutils", "models", "similarities", "utils"]


__getattr__ = attributes_of(__name__)
