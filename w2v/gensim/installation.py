"""Make programs that import gensim use this package's classes."""

from __future__ import annotations

import importlib
import pickle
from contextlib import ExitStack
from threading import Lock
from types import FunctionType, MethodType, ModuleType
from typing import Any

# gensim's modules with classes and functions that this package has, too.
MODULES = [f"models{name}" for name in ("", ".word2vec", ".keyedvectors", ".doc2vec", ".fasttext", ".phrases")] + [
    "similarities.annoy"
]

_lock = Lock()
_calls: list[ExitStack] = []  # the results of `install` that are not closed yet
_undo = ExitStack()  # undoes the change
_ours: dict[int, Any] = {}  # this package's class or function for each of gensim's that is replaced, by its id
_theirs: dict[tuple[str, str], Any] = {}  # gensim's class or function, by the name of its module and its own


class _ChangedModule(ModuleType):
    """A module of gensim that gives programs this package's classes and functions in place of its own.

    The functions of the module itself do not read its attributes, but its globals, which still have gensim's classes.
    """

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        return _ours.get(id(value), value)


class _OwnUnpickler(pickle.Unpickler):
    """An unpickler for gensim's `load` methods: it finds gensim's own classes."""

    def find_class(self, module: str, name: str) -> Any:
        return _theirs.get((module, name)) or super().find_class(module, name)


def install() -> ExitStack:
    """Change gensim so that programs get this package's classes and functions of the modules in MODULES.

    All else in gensim is as before, and uses gensim's own classes. Names that a program has imported before remain
    gensim's. Objects of gensim's own Word2Vec, Doc2Vec, FastText, KeyedVectors and Phrases that were made before cannot
    be pickled meanwhile (pickle raises PicklingError), and such a FastText should not be trained.

    Calls can be nested, and can come from several threads. The change lasts until all of them are undone.

    Returns:
        A context manager. Leaving its `with` block, or calling its close(), undoes the call.

    Raises:
        ImportError: gensim is not installed.
    """
    try:
        for name in ("utils", *MODULES):
            importlib.import_module(f"gensim.{name}")
    except ImportError as error:
        raise ImportError(
            f"w2v.gensim.install() changes gensim, which cannot be imported: {error}. Install it, or import w2v.gensim "
            "instead of gensim"
        ) from error
    call = ExitStack()
    with _lock:
        if not _calls:
            _change_gensim()
        _calls.append(call)
    call.callback(_finish, call)
    return call


def _finish(call: ExitStack) -> None:
    with _lock:
        _calls.remove(call)
        if not _calls:
            _undo.close()


def _change_gensim() -> None:
    utils = importlib.import_module("gensim.utils")

    def unpickle(fname: Any) -> Any:
        with utils.open(fname, "rb") as file:
            return _OwnUnpickler(file, encoding="latin1").load()  # gensim's encoding, for pickles of Python 2

    _set(utils, "unpickle", unpickle)
    for name in MODULES:
        theirs, ours = importlib.import_module(f"gensim.{name}"), importlib.import_module(f"w2v.gensim.{name}")
        for key in vars(ours).keys() & vars(theirs).keys():
            value, original = vars(ours)[key], vars(theirs)[key]
            is_kind = isinstance(value, type | FunctionType | MethodType)  # not scorers, which gensim's Phrases pickles
            if is_kind and not key.startswith("_") and value.__module__.startswith("w2v.gensim."):
                _ours[id(original)] = value
                _theirs[theirs.__name__, key] = original
        _set(theirs, "__class__", _ChangedModule)
    _undo.callback(_ours.clear)
    _undo.callback(_theirs.clear)


def _set(target: Any, name: str, value: Any) -> None:
    _undo.callback(setattr, target, name, getattr(target, name))
    setattr(target, name, value)
