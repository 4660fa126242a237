"""This package under the name gensim, for libraries that import that."""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from email.message import EmailMessage
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path

from w2v.gensim.utils import VERSION

OURS, NAME = "w2v.gensim", "gensim"


def install() -> ExitStack:
    """Let `import gensim` and the version of the distribution lead here; in a `with` statement, for its block only.

    Modules that have imported gensim before keep it. close() of what is returned undoes it, too.
    """
    package = importlib.import_module(OURS)
    names = [OURS, *(module.name for module in pkgutil.walk_packages(package.__path__, f"{OURS}."))]
    modules = {name.removeprefix("w2v."): importlib.import_module(name) for name in names}
    before = {name: module for name, module in sys.modules.items() if _is_gensims(name)}
    finder = _Finder()

    def undo() -> None:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _is_gensims(name)]:
            del sys.modules[name]
        sys.modules.update(before)

    for name in before:
        del sys.modules[name]
    sys.modules.update(modules)
    sys.meta_path.insert(0, finder)
    installed = ExitStack()
    installed.callback(undo)
    return installed


def _is_gensims(name: str) -> bool:
    return name.partition(".")[0] == NAME


class _Gensim(Distribution):
    """What importlib.metadata tells of gensim."""

    def read_text(self, filename: str) -> str | None:
        message = EmailMessage()
        message["Name"], message["Version"] = NAME, VERSION
        return str(message) if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        return Path(__file__).parent / str(path)


class _Finder(DistributionFinder):
    """Finds that distribution, and no modules."""

    def find_spec(self, *_: object) -> None:
        return None

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[Distribution]:
        if context is None or context.name == NAME:
            yield _Gensim()
