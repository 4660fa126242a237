"""word2vec, done again and done right."""

from importlib.metadata import version

from w2v.errors import SettingsError, W2VError
from w2v.evaluation.perplexity import Perplexity, perplexity
from w2v.losses.loss import Loss
from w2v.losses.registry import Settings
from w2v.text.vocabulary import Vocabulary
from w2v.training.model import Model
from w2v.training.train import resume, train
from w2v.vectors.benchmarks import analogies, word_pairs
from w2v.vectors.keyed import KeyedVectors, UnknownWordError, load

__version__ = version("w2v")
__all__ = [
    "KeyedVectors",
    "Loss",
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
