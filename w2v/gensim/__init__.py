"""gensim's modules for word vectors: its names and behaviour, with w2v doing the work."""

import logging

from w2v.gensim import matutils, models, similarities, utils
from w2v.gensim.installation import install
from w2v.gensim.utils import VERSION as __version__

logging.getLogger("gensim").addHandler(logging.NullHandler())  # silent until a program asks for its messages

__all__ = ["__version__", "install", "matutils", "models", "similarities", "utils"]
