"""Options. Each is defined once, as a dataclass field with its default, help, range and names.

The command line, `w2v.train` and the checks of values are made from these fields.
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, wraps
from numbers import Integral, Real
from types import UnionType
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from w2v.errors import SettingsError
from w2v.system.files import is_nameable

Parameters = ParamSpec("Parameters")
First = TypeVar("First")
Returned = TypeVar("Returned")

SIMILAR, ALMOST_BEST = 0.6, 0.9  # of suggested names: ratio of matching characters (difflib), and share of the best's
SUGGESTIONS = 3


@dataclass(frozen=True)
class Option:
    """The attributes of an option, except its name, type and default.

    Attributes:
        help: one sentence.
        group: the heading under which `--help` lists it.
        minimum, maximum: the range of a number, inclusive; `positive`: without 0, its minimum.
        flags: its names on the command line, by default made from the field's name.
        default_text: the description of a computed default in help.
        only_with: a setting and its values; with other values the option has no effect.
        choices: returns the possible values and what each means; called when they are needed.
        fixed: whether a model's matrices depend on it, so that it cannot change when training is continued.
        common: whether `--help` lists it; --help-all lists all.
    """

    help: str
    group: str
    minimum: float | None = None
    maximum: float | None = None
    positive: bool = False
    flags: tuple[str, ...] = ()
    default_text: str = ""
    only_with: tuple[str, tuple[str, ...]] | None = None
    choices: Callable[[], Mapping[str, str]] | None = None
    fixed: bool = False
    common: bool = False


def option(default: Any, help: str, group: str, **more: Any) -> Any:
    """A field of a dataclass of options; `more` are attributes of Option."""
    return field(default=default, metadata={"option": Option(help, group, **more)})


def options_of(kind: Any) -> dict[str, Option]:
    """The options of a dataclass (or of one of its objects) by name."""
    return {each.name: each.metadata["option"] for each in fields(kind) if "option" in each.metadata}


def type_of(kind: Any, name: str) -> Any:
    """The type of an option, without None: int, float, bool, str, or a Literal."""
    hint = _hints(kind)[name]
    if get_origin(hint) in (Union, UnionType):
        return next(part for part in get_args(hint) if part is not type(None))
    return hint


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def words_of(kind: Any, name: str) -> tuple[str, ...]:
    """The words that a numeric option accepts instead of a number."""
    return tuple(word for part in get_args(_hints(kind)[name]) for word in get_args(part) if type_of(kind, name) is int)


def takes_pair(kind: Any, name: str) -> bool:
    """Whether a numeric option also accepts two numbers, as text with a comma."""
    return str in get_args(_hints(kind)[name]) and type_of(kind, name) is int


def choices_of(kind: type, name: str) -> Mapping[str, str]:
    """The values that an option can have and what each means ("" if its name says it), if there is a list of them."""
    hint, option = type_of(kind, name), options_of(kind).get(name)
    if option and option.choices:
        return option.choices()
    return dict.fromkeys(get_args(hint) if get_origin(hint) is Literal else (), "")


def check_options(values: Any) -> None:
    """Check the options of a frozen dataclass, and convert NumPy's numbers to Python's and paths to text.

    Raises SettingsError, naming option and value, for an impossible value.
    """
    for name in options_of(values):
        object.__setattr__(values, name, checked_value(type(values), name, getattr(values, name)))


def checked_value(kind: type, name: str, value: Any) -> Any:
    """A value for an option of a dataclass, converted. Raises SettingsError, naming both, for an impossible value.

    Fields that are not made by `option` can be checked too, unless they are numbers.
    """
    default, value_type = kind.__dataclass_fields__[name].default, type_of(kind, name)  # type: ignore[attr-defined]
    if value is None and default is None:
        return None
    if choices := choices_of(kind, name):
        if value not in [*choices, default]:  # a list: not every value can be hashed
            raise SettingsError(f"{name} {value!r}: {suggestion(str(value), choices)}")
        return value
    if value_type is bool:
        if not isinstance(value, bool):
            raise SettingsError(f"{name} {value!r}: it must be True or False")
        return value
    if value_type in (int, float):
        words = words_of(kind, name)
        if isinstance(value, str) and "," in value and takes_pair(kind, name):
            return value
        return value if value in words else _checked_number(name, value, value_type, options_of(kind)[name], words)
    if not isinstance(value, str | os.PathLike) or not os.fspath(value) or not is_nameable(value):
        raise SettingsError(f"{name} {value!r}: it must be a name or a path")
    return os.fspath(value)


def _checked_number(name: str, value: Any, kind: Callable[[Any], Any], limits: Option, words: tuple[str, ...]) -> Any:
    fits = isinstance(value, Integral) or (kind is float and isinstance(value, Real) and math.isfinite(value))
    if limits.minimum is not None and fits and not isinstance(value, bool):
        fits = value >= limits.minimum and (limits.maximum is None or value <= limits.maximum)
        fits = fits and not (limits.positive and value == 0)
    if not fits or isinstance(value, bool):
        wanted = "a whole number" if kind is int else "a number"
        low = f"{limits.minimum:,}"
        span = f"{low} or more" if limits.maximum is None else f"from {low} to {limits.maximum:,}"
        span += ", but not 0" * limits.positive
        other = "".join(f", or {word}" for word in words)
        raise SettingsError(f"{name} {value!r}: it must be {wanted}, {span}{other}")
    return kind(value)


def check_whole(minimum: int, **values: Any) -> None:
    """Raise SettingsError, naming the argument, for one that is not a whole number, `minimum` or more."""
    for name, value in values.items():
        _checked_number(name, value, int, Option("", "", minimum), ())


def taking(
    arguments: Callable[Parameters, object],
) -> Callable[[Callable[Concatenate[First, ...], Returned]], Callable[Concatenate[First, Parameters], Returned]]:
    """Give a function, after its first parameter, those of a dataclass: for type checkers, completion and help."""

    def decorate(
        function: Callable[Concatenate[First, ...], Returned],
    ) -> Callable[Concatenate[First, Parameters], Returned]:
        own = inspect.signature(function)
        parameters = [next(iter(own.parameters.values())), *inspect.signature(arguments).parameters.values()]
        vars(function)["__signature__"] = own.replace(parameters=parameters)
        return function

    return decorate


def renamed_arguments(**names: str) -> Callable[[Callable[Parameters, Returned]], Callable[Parameters, Returned]]:
    """A decorator for a function whose arguments had other names, which still work: old="new"."""

    def decorate(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
        @wraps(function)
        def called(*args: Parameters.args, **given: Parameters.kwargs) -> Returned:
            for old, new in names.items():
                if old in given and new not in given:
                    given[new] = given.pop(old)
            return function(*args, **given)

        return called

    return decorate


def refuse_unknown(given: Iterable[str], known: Iterable[str], renamed: Mapping[str, str]) -> None:
    """Raise SettingsError, which suggests similar known names, for a name in `given` that is not `known`."""
    known = list(known)
    for name in given:
        if name in known:
            continue
        hint = f"write {renamed[name]}" if name in renamed else suggestion(name, known)
        raise SettingsError(f"unknown setting {name!r}: {hint}")


def suggestion(name: str, known: Iterable[str]) -> str:
    """The known names that an unknown one may stand for, the best first; all if none is similar.

    A name may also be the beginning of one, or of what one means, if `known` is a mapping to that: "neg" is ns.
    """
    wanted, means = _folded(name), known if isinstance(known, Mapping) else dict.fromkeys(known, "")

    def likeness(other: str) -> float:
        begins = any(_folded(text).startswith(wanted) for text in (other, means[other]))
        return 1 if begins else difflib.SequenceMatcher(None, wanted, _folded(other)).ratio()

    ordered = sorted(means, key=likeness, reverse=True)
    least = max(SIMILAR, ALMOST_BEST * max(map(likeness, means), default=0))
    found = [other for other in ordered if likeness(other) >= least]
    return did_you_mean(found[:SUGGESTIONS]) if wanted and found else f"choose from {', '.join(means)}"


def _folded(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-").strip("-")


def did_you_mean(names: Sequence[str]) -> str:
    """A question: "did you mean a, b or c?"."""
    *others, last = names
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"
