"""gensim's modules for word vectors: its names and behaviour, with w2v doing the work."""

from w2v.gensim import matutils, models, similarities, utils
from w2v.gensim.installation import install
from w2v.gensim.utils import VERSION as __version__

__all__ = ["__version__", "install", "matutils", "models", "similarities", "utils"]
