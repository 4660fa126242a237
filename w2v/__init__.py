"""Train, evaluate and query word2vec embeddings.

Public names are imported on first use, so that `import w2v` and `w2v --help` are fast.
"""

import sys

if sys.argv[:1] == ["-m"] and len(sys.orig_argv) > len(sys.argv) and not sys.flags.safe_path:
    # `python -m w2v` puts the working directory first in sys.path, so a numpy.py or pyarrow.py there would be imported
    # instead of the real package. This file runs before all other imports of the program. Another program that imports
    # w2v this early, from the `__init__` of its own package, keeps its path.
    _program = sys.orig_argv[-len(sys.argv)]  # the last argument of Python itself, such as "w2v" or "-mw2v"
    if _program.startswith("-"):
        _program = _program.partition("m")[2]
    if _program.partition(".")[0] == "w2v":
        del sys.path[0]
    del _program

from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as in _MODULES, for type checkers and editors
    from w2v import formats as formats
    from w2v import losses as losses
    from w2v._errors import SettingsError as SettingsError
    from w2v._errors import TextWarning as TextWarning
    from w2v._errors import W2VError as W2VError
    from w2v._evaluation.analogies import analogies as analogies
    from w2v._evaluation.change import change as change
    from w2v._evaluation.compare import compare as compare
    from w2v._evaluation.evaluate import evaluate as evaluate
    from w2v._evaluation.link_prediction import link_prediction as link_prediction
    from w2v._evaluation.next_items import next_items as next_items
    from w2v._evaluation.probe import probe as probe
    from w2v._evaluation.similarity import word_pairs as word_pairs
    from w2v._explore.page import explore_page as explore_page
    from w2v._losses.loss import Loss as Loss
    from w2v._losses.registry import Settings as Settings
    from w2v._plotting.word_map import word_map as word_map
    from w2v._progress import Progress as Progress
    from w2v._system.version import __version__ as __version__
    from w2v._text.phrases import PhraseOptions as PhraseOptions
    from w2v._text.phrases import Phrases as Phrases
    from w2v._text.vocabulary import Vocabulary as Vocabulary
    from w2v._training.classifier import Classifier as Classifier
    from w2v._training.classifier import load as load
    from w2v._training.compare_periods import compare_periods as compare_periods
    from w2v._training.effective_rank import effective_rank as effective_rank
    from w2v._training.model import Model as Model
    from w2v._training.perplexity import Perplexity as Perplexity
    from w2v._training.perplexity import perplexity as perplexity
    from w2v._training.quantize import prune as prune
    from w2v._training.quantize import quantize as quantize
    from w2v._training.search import tune as tune
    from w2v._training.slices import slices as slices
    from w2v._training.train import resume as resume
    from w2v._training.train import train as train
    from w2v._training.train import train_classifier as train_classifier
    from w2v._training.train import train_pairs as train_pairs
    from w2v._vectors.align import align as align
    from w2v._vectors.combine_models import combine as combine
    from w2v._vectors.encode import encode as encode
    from w2v._vectors.keyed import KeyedVectors as KeyedVectors
    from w2v._vectors.recommend import recommend as recommend
    from w2v._vectors.unknown_words import UnknownWordError as UnknownWordError

_MODULES = {  # the module of each public name
    "Classifier": "w2v._training.classifier",
    "KeyedVectors": "w2v._vectors.keyed",
    "Loss": "w2v._losses.loss",
    "Model": "w2v._training.model",
    "Perplexity": "w2v._training.perplexity",
    "PhraseOptions": "w2v._text.phrases",
    "Phrases": "w2v._text.phrases",
    "Progress": "w2v._progress",
    "Settings": "w2v._losses.registry",
    "SettingsError": "w2v._errors",
    "TextWarning": "w2v._errors",
    "UnknownWordError": "w2v._vectors.unknown_words",
    "Vocabulary": "w2v._text.vocabulary",
    "W2VError": "w2v._errors",
    "__version__": "w2v._system.version",
    "align": "w2v._vectors.align",
    "analogies": "w2v._evaluation.analogies",
    "change": "w2v._evaluation.change",
    "combine": "w2v._vectors.combine_models",
    "compare": "w2v._evaluation.compare",
    "compare_periods": "w2v._training.compare_periods",
    "effective_rank": "w2v._training.effective_rank",
    "encode": "w2v._vectors.encode",
    "evaluate": "w2v._evaluation.evaluate",
    "explore_page": "w2v._explore.page",
    "formats": "w2v.formats",
    "link_prediction": "w2v._evaluation.link_prediction",
    "load": "w2v._training.classifier",
    "losses": "w2v.losses",
    "next_items": "w2v._evaluation.next_items",
    "perplexity": "w2v._training.perplexity",
    "probe": "w2v._evaluation.probe",
    "prune": "w2v._training.quantize",
    "quantize": "w2v._training.quantize",
    "recommend": "w2v._vectors.recommend",
    "resume": "w2v._training.train",
    "slices": "w2v._training.slices",
    "train": "w2v._training.train",
    "train_classifier": "w2v._training.train",
    "train_pairs": "w2v._training.train",
    "tune": "w2v._training.search",
    "word_map": "w2v._plotting.word_map",
    "word_pairs": "w2v._evaluation.similarity",
}
__all__ = list(_MODULES)

# If Python runs in a folder with sources that are not built, as after `pip install .`, use the installed package.
# Skip entries of sys.path with a setup.py: they are other source folders, perhaps of another version.
_installed_folders = [str(Path(entry, "w2v")) for entry in sys.path if not Path(entry, "setup.py").exists()]
_kernels_spec = PathFinder.find_spec("w2v._kernels", [*__path__, *_installed_folders])
if _kernels_spec is None or _kernels_spec.origin is None:
    raise ImportError(f"the sources in {__path__[0]} are not built: run pip install . in the folder above")
__path__[:] = [str(Path(_kernels_spec.origin).parent)]


if not TYPE_CHECKING:  # with it, type checkers would assume that every name exists

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(_MODULES[name])
        is_module = module.__name__ == f"w2v.{name}"  # True for w2v.formats and w2v.losses, which are public as a whole
        value = module if is_module else getattr(module, name)
        globals()[name] = value  # the next use finds it without this function
        return value


def __dir__() -> list[str]:
    return __all__
