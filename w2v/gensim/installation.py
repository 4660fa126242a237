"""Make this package importable as `gensim`, and explain that gensim's other modules are missing."""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType

from w2v.gensim.utils import VERSION

PACKAGE, ALIAS = "w2v.gensim", "gensim"


def install() -> ExitStack:
    """Make `import gensim` import this package, and importlib.metadata report its version as gensim's.

    Modules that have already imported gensim keep the real one.

    Returns:
        A context manager. Leaving its `with` block, or calling its close(), undoes the change.
    """
    package = importlib.import_module(PACKAGE)
    names = [PACKAGE, *(module.name for module in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."))]
    modules = {name.removeprefix("w2v."): importlib.import_module(name) for name in names}
    finder, undo = _DistributionFinder(), ExitStack()
    undo.callback(_replace_modules, _replace_modules(modules))
    sys.meta_path.insert(0, finder)
    undo.callback(sys.meta_path.remove, finder)
    return undo


def _replace_modules(modules: dict[str, ModuleType]) -> dict[str, ModuleType]:
    """Remove `gensim` and its submodules from sys.modules, add these modules, and return the removed ones."""
    removed = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == ALIAS}
    sys.modules.update(modules)
    return removed


class _MissingModuleFinder:
    """The last import finder: it refuses the modules of gensim that this package lacks, and says where to find them."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        package, dot, submodule = name.removeprefix("w2v.").partition(".")
        is_installed = ALIAS in sys.modules and sys.modules[ALIAS] is sys.modules.get(PACKAGE)
        is_ours = name.startswith(f"{PACKAGE}.") or is_installed
        if package == ALIAS and dot and is_ours and not submodule.rpartition(".")[2].startswith("_"):
            # Leave out the argument `name`: with it, `from w2v.gensim import corpora` would show Python's own message.
            raise ModuleNotFoundError(f"w2v.gensim has no {submodule}, only word vectors: import it from gensim itself")


sys.meta_path.append(_MissingModuleFinder)


class _GensimDistribution(Distribution):
    """The metadata that importlib.metadata reports for gensim."""

    def read_text(self, filename: str) -> str | None:
        return f"Name: {ALIAS}\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        return Path(__file__).parent / str(path)


class _DistributionFinder(DistributionFinder):
    """A finder of gensim's distribution. It finds no modules."""

    def find_spec(self, *_: object) -> None:
        return None

    def find_distributions(
        self,
        context: DistributionFinder.Context = DistributionFinder.Context(),  # noqa: B008 - as in the base class
    ) -> Iterator[Distribution]:
        if context.name in (None, ALIAS):
            yield _GensimDistribution()
