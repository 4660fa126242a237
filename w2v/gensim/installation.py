"""Make this package importable as `gensim`."""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path

from w2v.gensim import fall_through
from w2v.gensim.fall_through import ALIAS, FOLDER, PACKAGE
from w2v.gensim.utils import VERSION


def install() -> ExitStack:
    """Make `import gensim` import this package, and importlib.metadata report its version as gensim's.

    Modules and names that this package lacks come from gensim itself, if it is installed. Modules that have already
    imported gensim, and gensim's own modules, keep the real one.

    Returns:
        A context manager. Leaving its `with` block, or calling its close(), undoes the change.
    """
    package = importlib.import_module(PACKAGE)
    found = pkgutil.walk_packages([str(FOLDER)], f"{PACKAGE}.")
    inner_names = [module.name.removeprefix(f"{PACKAGE}.") for module in found]
    names = [PACKAGE, *(f"{PACKAGE}.{inner}" for inner in inner_names if fall_through.has_module(inner))]
    modules = {name.removeprefix("w2v."): importlib.import_module(name) for name in names}
    finder, undo, path = _DistributionFinder(), ExitStack(), list(package.__path__)
    fall_through.install(modules)
    undo.callback(fall_through.uninstall)
    sys.meta_path.insert(0, finder)
    undo.callback(sys.meta_path.remove, finder)
    spec = PathFinder.find_spec(ALIAS)
    if spec and spec.submodule_search_locations:  # programs look there for gensim's test data
        package.__path__ = [*spec.submodule_search_locations, *path]
        undo.callback(setattr, package, "__path__", path)
    return undo


class _GensimDistribution(Distribution):
    """The metadata that importlib.metadata reports for gensim."""

    def read_text(self, filename: str) -> str | None:
        return f"Name: {ALIAS}\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        return FOLDER / str(path)


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
