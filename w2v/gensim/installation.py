"""This package under the name gensim, for libraries that import that, and what is said of gensim's other modules."""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType

from w2v.gensim.utils import VERSION

OURS, NAME = "w2v.gensim", "gensim"


def install() -> ExitStack:
    """Let `import gensim` and the version of the distribution lead here; in a `with` statement, for its block only.

    Modules that have imported gensim before keep it. close() of what is returned undoes it, too.
    """
    package = importlib.import_module(OURS)
    names = [OURS, *(module.name for module in pkgutil.walk_packages(package.__path__, f"{OURS}."))]
    modules = {name.removeprefix("w2v."): importlib.import_module(name) for name in names}
    finder, installed = _Finder(), ExitStack()
    installed.callback(_replace, _replace(modules))
    sys.meta_path.insert(0, finder)
    installed.callback(sys.meta_path.remove, finder)
    return installed


def _replace(modules: dict[str, ModuleType]) -> dict[str, ModuleType]:
    """Put these modules in the place of all that have the name gensim, or a name inside it; returns those before."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == NAME}
    sys.modules.update(modules)
    return before


class _NotHere:
    """A finder, asked last, that says of gensim's other modules and classes that they are not here."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        package, dot, wanted = name.removeprefix("w2v.").partition(".")
        is_ours = name.startswith(f"{OURS}.") or sys.modules.get(NAME) is sys.modules.get(OURS, ())
        if package == NAME and dot and is_ours and not wanted.rpartition(".")[2].startswith("_"):
            # Without a `name`: Python would replace the message in `from w2v.gensim import corpora`.
            raise ModuleNotFoundError(f"w2v.gensim has no {wanted}, only word vectors: import it from gensim itself")


sys.meta_path.append(_NotHere)


class _Gensim(Distribution):
    """What importlib.metadata tells of gensim."""

    def read_text(self, filename: str) -> str | None:
        return f"Name: {NAME}\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        return Path(__file__).parent / str(path)


class _Finder(DistributionFinder):
    """Finds that distribution, and no modules."""

    def find_spec(self, *_: object) -> None:
        return None

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[Distribution]:
        if context is None or context.name == NAME:
            yield _Gensim()
