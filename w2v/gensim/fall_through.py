"""Take names that this package lacks from an installed gensim. Its modules keep using gensim's own classes.

While this package is installed as `gensim`, sys.modules has its modules under gensim's names, and gensim's modules only
where this package has none. `own_modules` puts all of gensim's modules there for a moment, for an import of gensim or a
pickle of its objects.
"""

from __future__ import annotations

import copyreg
import importlib
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from threading import RLock
from types import ModuleType, SimpleNamespace
from typing import Any

PACKAGE, ALIAS = "w2v.gensim", "gensim"
FOLDER = Path(__file__).parent
PLACEHOLDERS = {"models.doc2vec"}  # modules of this package that are used only without gensim

_facade: dict[str, ModuleType] = {}  # this package's modules by gensim's names, while it is installed under them
_own: dict[str, ModuleType] = {}  # the modules of gensim itself that have been imported, in the same time
_hidden_classes: list[type] = []  # classes of gensim that have the name of one of this package's
_lock = RLock()


def _is_installed() -> bool:
    """Return True if `import gensim` imports this package."""
    return bool(_facade) and sys.modules.get(ALIAS) is _facade[ALIAS]


def has_gensim() -> bool:
    """Return True if gensim itself can be imported."""
    imported = _own if _is_installed() else sys.modules
    if ALIAS in imported:
        return imported[ALIAS] is not None  # None forbids the import
    return PathFinder.find_spec(ALIAS) is not None


def has_module(inner: str) -> bool:
    """Return True if this package has a module, such as "models.phrases", which gensim's does not replace."""
    path = FOLDER.joinpath(*inner.split("."))
    exists = path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
    return exists and not (inner in PLACEHOLDERS and has_gensim())


def install(modules: dict[str, ModuleType]) -> None:
    """Put modules of this package in the places of gensim's."""
    if not _facade:
        _own.update(_remove_modules())
    _facade.update(modules)
    sys.modules.update(_own | _facade)
    _adapt_pickling()


def uninstall() -> None:
    """Put gensim's own modules back, including those that were imported in the meantime."""
    _remove_modules()
    _forget_hidden_classes()
    sys.modules.update(_own)
    _own.clear()
    _facade.clear()


def _remove_modules() -> dict[str, ModuleType]:
    """Remove `gensim` and its submodules from sys.modules, and return them."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == ALIAS}


@contextmanager
def own_modules() -> Iterator[None]:
    """Import gensim's own modules in a `with` block, even while this package is installed under their names."""
    with _lock:
        if not _is_installed():
            yield
            return
        _remove_modules()
        _forget_hidden_classes()
        sys.modules.update(_own)
        try:
            yield
        finally:
            _own.update(_remove_modules())
            _adapt_pickling()
            sys.modules.update(_own | _facade)


def import_own(name: str) -> Any:
    """Return a module of gensim itself, such as "gensim.corpora"."""
    imported = _own if _is_installed() else sys.modules
    if name not in imported:
        with own_modules():
            importlib.import_module(name)
    return imported[name]


def _adapt_pickling() -> None:
    """Let pickles find gensim's own classes and functions, although they look them up in sys.modules.

    gensim's modules pickle with all of gensim's modules in place. A pickle of the program has the objects of classes
    that this package hides, such as the vectors of a Doc2Vec, as calls of `_new_object`.
    """
    functions = {name: own_modules()(getattr(pickle, name)) for name in ("dump", "dumps", "load", "loads")}
    replacement = SimpleNamespace(**vars(pickle) | functions)
    imported = {name: module for name, module in _own.items() if module}  # None forbids the import
    for module in imported.values():
        vars(module).update({name: replacement for name in ("pickle", "_pickle") if vars(module).get(name) is pickle})

    for name in imported.keys() & _facade.keys():
        for kind in vars(imported[name]).values():
            if isinstance(kind, type) and kind.__module__ == name:
                copyreg.pickle(kind, _reduce)
                _hidden_classes.append(kind)


def _forget_hidden_classes() -> None:
    """Undo `copyreg.pickle` of the classes that this package hides."""
    while _hidden_classes:
        copyreg.dispatch_table.pop(_hidden_classes.pop(), None)


def _reduce(instance: Any) -> Any:
    """Return what pickle and copy need to make an object again, with the name of its class rather than the class."""
    _, (kind, *arguments), *state = instance.__reduce_ex__(2)
    return _new_object, (kind.__module__, kind.__qualname__, *arguments), *state


def _new_object(module: str, name: str, *arguments: Any) -> Any:
    kind = getattr(import_own(module), name)
    return kind.__new__(kind, *arguments)


def missing(name: str) -> str:
    """Return the error message for a name that neither this package nor gensim has."""
    return f"w2v.gensim has no {name}, only word vectors: for it, install gensim itself: pip install gensim"


def _public_names(module: str) -> list[str]:
    """Return the names that `from module import *` imports: from this package's module and from gensim's."""
    names = set(vars(sys.modules[module]))
    if has_gensim():
        names |= vars(import_own(_own_name(module))).keys()
    return sorted(name for name in names if not name.startswith("_"))


def _own_name(module: str) -> str:
    """Return the name of gensim's module for a module of this package."""
    return module.removeprefix("w2v.")


def attributes_of(module: str) -> Callable[[str], Any]:
    """Return a function __getattr__ for a module of this package: it returns the attributes of gensim's module."""
    inner = module.removeprefix(PACKAGE).removeprefix(".")

    def __getattr__(name: str) -> Any:
        if name == "__path__" and not has_gensim():
            return []  # as for a package, `from module import name` then asks Finder for a missing name
        if name == "__all__":
            return _public_names(module)
        if name.startswith("__") or has_module(f"{inner}.{name}".removeprefix(".")):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if not has_gensim():
            raise AttributeError(missing(f"{inner}.{name}".removeprefix(".")))
        try:
            return getattr(import_own(_own_name(module)), name)
        except ModuleNotFoundError as error:  # a module that only this package has
            raise AttributeError(f"module {module!r} has no attribute {name!r}") from error

    return __getattr__


class Finder:
    """The first import finder: it finds modules that this package lacks in an installed gensim."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, inner = name.removeprefix("w2v.").partition(".")
        if (
            package != ALIAS
            or not inner
            or has_module(inner)
            or not (name.startswith(f"{PACKAGE}.") or _is_installed())
        ):
            return None
        if not has_gensim():
            if inner.rpartition(".")[2].startswith("_"):
                return None
            # Leave out the argument `name`: with it, `from w2v.gensim import corpora` would show Python's own message.
            raise ModuleNotFoundError(missing(inner))
        module = import_own(f"{ALIAS}.{inner}")
        sys.modules.pop(name, None)  # if it stayed there, Python would execute the module a second time
        return ModuleSpec(name, _Loader(module))


class _Loader(Loader):
    """A loader that returns a module which has been imported under another name."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


sys.meta_path.insert(0, Finder)
