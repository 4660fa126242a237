"""word2vec, done again and done right.

The public names are imported when they are first used, so that `import w2v` and `w2v --help` are quick.
"""

import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    # `python -m w2v` puts the working directory first in sys.path, so that its numpy.py or pyarrow.py would be imported
    # in place of the real one. This file runs before all that the program imports.
    del sys.path[0]

from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from w2v.pictured import functions

if TYPE_CHECKING:
    from w2v import losses
    from w2v.errors import SettingsError, TextWarning, W2VError
    from w2v.evaluation.analogies import analogies, analogy
    from w2v.evaluation.compare import compare
    from w2v.evaluation.evaluate import evaluate
    from w2v.evaluation.perplexity import Perplexity, perplexity
    from w2v.evaluation.rank import rank
    from w2v.evaluation.similarity import similarity, word_pairs
    from w2v.losses.loss import Loss
    from w2v.losses.registry import Settings
    from w2v.progress import Progress
    from w2v.system.version import __version__
    from w2v.text.phrases import PhraseOptions, Phrases
    from w2v.text.vocabulary import Vocabulary
    from w2v.training.model import Model
    from w2v.training.train import resume, train
    from w2v.training.tune import tune
    from w2v.vectors.keyed import KeyedVectors, load
    from w2v.vectors.unknown import UnknownWordError

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
    "TextWarning",
    "UnknownWordError",
    "Vocabulary",
    "W2VError",
    "__version__",
    "analogies",
    "analogy",
    "compare",
    "evaluate",
    "load",
    "losses",
    "perplexity",
    "rank",
    "resume",
    "similarity",
    "train",
    "tune",
    "word_pairs",
]

_MODULES = {
    "w2v": ("losses",),
    "w2v.errors": ("SettingsError", "TextWarning", "W2VError"),
    "w2v.evaluation.analogies": ("analogies", "analogy"),
    "w2v.evaluation.compare": ("compare",),
    "w2v.evaluation.evaluate": ("evaluate",),
    "w2v.evaluation.perplexity": ("Perplexity", "perplexity"),
    "w2v.evaluation.rank": ("rank",),
    "w2v.evaluation.similarity": ("similarity", "word_pairs"),
    "w2v.losses.loss": ("Loss",),
    "w2v.losses.registry": ("Settings",),
    "w2v.progress": ("Progress",),
    "w2v.text.phrases": ("PhraseOptions", "Phrases"),
    "w2v.text.vocabulary": ("Vocabulary",),
    "w2v.training.model": ("Model",),
    "w2v.training.train": ("resume", "train"),
    "w2v.training.tune": ("tune",),
    "w2v.vectors.keyed": ("KeyedVectors", "load"),
    "w2v.vectors.unknown": ("UnknownWordError",),
    "w2v.system.version": ("__version__",),
}


def _plot(*args: Any, **options: Any) -> Any:
    from w2v.plotting.word_map import word_map

    return word_map(*args, **options)


def _explore(*args: Any, **options: Any) -> Any:
    from w2v.explore.page import explore

    return explore(*args, **options)


functions |= {"plot": _plot, "explore": _explore}

# In a folder with the sources, Python finds these before the installed package, which has the compiled modules. Modules
# of another folder with sources could be of another version.
_installed = [str(Path(entry, "w2v")) for entry in sys.path if not Path(entry, "setup.py").exists()]
_built = PathFinder.find_spec("w2v._kernels", [*__path__, *_installed])
if _built is None or _built.origin is None:
    raise ImportError(f"the sources in {__path__[0]} are not built: run pip install . in the folder above")
__path__[:] = [str(Path(_built.origin).parent)]


if not TYPE_CHECKING:  # type checkers would take it to define every name

    def __getattr__(name: str) -> Any:
        for module, names in _MODULES.items():
            if name in names:
                found = import_module(f"w2v.{name}") if module == "w2v" else getattr(import_module(module), name)
                globals()[name] = found
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
