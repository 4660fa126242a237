"""gensim's modules for word vectors, with gensim's names and behaviour, implemented by w2v."""

import logging

from w2v.gensim import models as models
from w2v.gensim import similarities as similarities
from w2v.gensim import utils as utils
from w2v.gensim.installation import install as install
from w2v.gensim.utils import VERSION as __version__  # noqa: F401

logging.getLogger("gensim").addHandler(logging.NullHandler())  # silent until a program configures logging
