"""Binding of a loss into the training loop, in plain Python and for Numba.

The training loop calls `step`, and `rows_step` calls `choose` and `link`. In _losses/rows.py, these three functions are
placeholders. `bind` copies the calling function so that the copy calls the functions of a loss instead. The loop is
therefore written as if there were only one loss, a compiler can inline the functions of the loss, and none of them is
looked up while the loop runs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from w2v._losses import rows
from w2v._losses.loss import Loss

Functions = tuple[tuple[Callable[..., Any], Callable[..., Any]], ...]  # pairs of a placeholder and its replacement


def functions_of(loss: Loss) -> Functions:
    """Return the functions of a loss, each with its placeholder."""
    return (rows.step, loss.step or rows.rows_step), (rows.choose, loss.choose), (rows.link, loss.link)


def bind(function: Callable[..., Any], functions: Functions) -> FunctionType:
    """Return a copy of a plain function that calls replacements for placeholders, also in all functions that it calls.

    A function that reaches no placeholder is returned itself.
    """

    def replace(value: FunctionType) -> Any:
        replacement = plain_function(dict(functions).get(value, value))
        is_function = isinstance(replacement, FunctionType)
        return bind(replacement, pairs_used_by(replacement, functions)) if is_function else replacement

    original: FunctionType = plain_function(function)
    return copy_function(original, replace) if pairs_used_by(original, functions) else original


def copy_function(function: FunctionType, replace: Callable[[FunctionType], Any]) -> FunctionType:
    """Return a copy of a plain function that refers to replace(f) instead of each plain function f."""
    code = function.__code__
    names = function.__globals__ | references(function)
    names |= {name: replace(value) for name, value in references(function).items() if isinstance(value, FunctionType)}
    cells = tuple(CellType(names[name]) for name in code.co_freevars)
    copy = FunctionType(code, names, function.__name__, function.__defaults__, cells)
    copy.__kwdefaults__, copy.__module__ = function.__kwdefaults__, function.__module__
    return copy


def references(function: FunctionType) -> dict[str, Any]:
    """Return the globals and closure variables that the code of a function refers to, by name."""
    code = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    names = function.__globals__ | {name: cell.cell_contents for name, cell in cells}
    return {name: plain_function(names[name]) for name in sorted({*code.co_names, *code.co_freevars} & names.keys())}


def pairs_used_by(function: FunctionType, functions: Functions) -> Functions:
    """Return the pairs of `functions` with a placeholder that this function, or a function that it calls, refers to."""
    reached: set[Any] = set()
    to_search = [function]
    while to_search:
        new = {value for value in references(to_search.pop()).values() if isinstance(value, FunctionType)} - reached
        reached |= new
        replacements = (plain_function(dict(functions).get(value, value)) for value in new)
        to_search += [value for value in replacements if isinstance(value, FunctionType)]
    return tuple(pair for pair in functions if pair[0] in reached)


def plain_function(value: Any) -> Any:
    """Return the Python function of a function that a user compiled with Numba; any other value is returned itself."""
    return getattr(value, "py_func", value)
