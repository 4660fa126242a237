"""word2vec, done again and done right.

The public names are imported when they are first used, so that `import w2v` and `w2v --help` are quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from w2v.errors import SettingsError, W2VError
    from w2v.evaluation.perplexity import Perplexity, perplexity
    from w2v.losses.loss import Loss
    from w2v.losses.registry import Settings
    from w2v.progress import Progress
    from w2v.text.phrases import PhraseOptions, Phrases
    from w2v.text.vocabulary import Vocabulary
    from w2v.training.model import Model
    from w2v.training.train import resume, train
    from w2v.training.tune import tune
    from w2v.vectors.benchmarks import analogies, word_pairs
    from w2v.vectors.keyed import KeyedVectors, UnknownWordError, load
    from w2v.version import __version__

__all__ = [
    "KeyedVectors",
    "Loss",
    "Model",
    "Perplexity",
    "PhraseOptions",
    "Phrases",
    "Progress",
    "Settings",
    "SettingsError",
    "UnknownWordError",
    "Vocabulary",
    "W2VError",
    "__version__",
    "analogies",
    "load",
    "perplexity",
    "resume",
    "train",
    "tune",
    "word_pairs",
]

_MODULES = {
    "w2v.errors": ("SettingsError", "W2VError"),
    "w2v.evaluation.perplexity": ("Perplexity", "perplexity"),
    "w2v.losses.loss": ("Loss",),
    "w2v.losses.registry": ("Settings",),
    "w2v.progress": ("Progress",),
    "w2v.text.phrases": ("PhraseOptions", "Phrases"),
    "w2v.text.vocabulary": ("Vocabulary",),
    "w2v.training.model": ("Model",),
    "w2v.training.train": ("resume", "train"),
    "w2v.training.tune": ("tune",),
    "w2v.vectors.benchmarks": ("analogies", "word_pairs"),
    "w2v.vectors.keyed": ("KeyedVectors", "UnknownWordError", "load"),
    "w2v.version": ("__version__",),
}


if not TYPE_CHECKING:  # type checkers would take it to define every name

    def __getattr__(name: str) -> Any:
        for module, names in _MODULES.items():
            if name in names:
                value = globals()[name] = getattr(import_module(module), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
