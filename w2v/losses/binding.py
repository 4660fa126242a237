"""Puts the functions of a loss in the place of placeholders, in plain Python and for Numba.

The training loop calls `step`, and `rows_step` calls `choose` and `link`: functions of losses/rows.py that only stand
for those of a loss. `replace_calls` copies the caller and lets the copy call the loss. So the loop reads as if there
were one loss, a compiler can inline that loss, and no function is looked up while it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from w2v.losses import rows
from w2v.losses.loss import Loss

Functions = tuple[tuple[Callable[..., Any], Callable[..., Any]], ...]  # (placeholder, what to call instead)


def functions_of(loss: Loss) -> Functions:
    """The functions of a loss, each with its placeholder."""
    return (rows.step, loss.step or rows.rows_step), (rows.choose, loss.choose), (rows.link, loss.link)


def replace_calls(function: Callable[..., Any], functions: Functions) -> FunctionType:
    """A copy of a plain function that, with all it calls, calls the second function of each pair for the first."""

    def replaced(value: FunctionType) -> Any:
        found = python_function(dict(functions).get(value, value))
        return replace_calls(found, needed_replacements(found, functions)) if isinstance(found, FunctionType) else found

    whole: FunctionType = python_function(function)
    return copy_function(whole, replaced) if needed_replacements(whole, functions) else whole


def copy_function(function: FunctionType, replaced: Callable[[FunctionType], Any]) -> FunctionType:
    """A copy of a plain function that calls `replaced(f)` for each plain function f that it refers to."""
    code = function.__code__
    names = function.__globals__ | referenced_globals(function)
    names |= {
        name: replaced(value) for name, value in referenced_globals(function).items() if isinstance(value, FunctionType)
    }
    cells = tuple(CellType(names[name]) for name in code.co_freevars)
    copy = FunctionType(code, names, function.__name__, function.__defaults__, cells)
    copy.__kwdefaults__, copy.__module__ = function.__kwdefaults__, function.__module__
    return copy


def referenced_globals(function: FunctionType) -> dict[str, Any]:
    """The globals and closure variables that the code of a function refers to, by name."""
    code = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    names = function.__globals__ | {name: cell.cell_contents for name, cell in cells}
    return {name: python_function(names[name]) for name in sorted({*code.co_names, *code.co_freevars} & names.keys())}


def needed_replacements(function: FunctionType, functions: Functions) -> Functions:
    """The pairs whose placeholder a function, or one that it calls, refers to."""
    found: set[Any] = set()
    rest = [function]
    while rest:
        new = {value for value in referenced_globals(rest.pop()).values() if isinstance(value, FunctionType)} - found
        found |= new
        replaced = (python_function(dict(functions).get(value, value)) for value in new)
        rest += [value for value in replaced if isinstance(value, FunctionType)]
    return tuple(pair for pair in functions if pair[0] in found)


def python_function(value: Any) -> Any:
    """The Python function of one that a user has compiled with Numba, and any other value itself."""
    return getattr(value, "py_func", value)
