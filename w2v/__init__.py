"""word2vec, done again and done right."""

from importlib.metadata import version

from w2v.errors import SettingsError, W2VError
from w2v.evaluate import analogies, word_pairs
from w2v.model import Model
from w2v.perplexity import Perplexity, perplexity
from w2v.settings import Settings
from w2v.train import resume, train
from w2v.vectors import KeyedVectors, UnknownWordError, load
from w2v.vocab import Vocabulary

__version__ = version("w2v")
__all__ = [
    "KeyedVectors",
    "Model",
    "Perplexity",
    "Settings",
    "SettingsError",
    "UnknownWordError",
    "Vocabulary",
    "W2VError",
    "analogies",
    "load",
    "perplexity",
    "resume",
    "train",
    "word_pairs",
]
