"""Make this package importable as `fasttext`."""

import importlib
import sys
from contextlib import ExitStack

ALIAS = "fasttext"
MODULES = ("", ".FastText", ".util")


def install() -> ExitStack:
    """Make `import fasttext` import this package.

    Modules that have already imported fastText keep the real one.

    Returns:
        A context manager. Leaving its `with` block, or calling its close(), undoes the change.
    """
    undo = ExitStack()
    replaced = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == ALIAS}
    undo.callback(sys.modules.update, replaced)
    for name in MODULES:
        sys.modules[f"{ALIAS}{name}"] = importlib.import_module(f"w2v.fasttext{name}")
        undo.callback(sys.modules.pop, f"{ALIAS}{name}", None)
    return undo
