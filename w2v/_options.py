"""Options as dataclass fields: `option` attaches the help, the range and the command-line names to a field.

Each option is defined once. The command line, the arguments of `w2v.train` and the checks of values all read its field.
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from w2v._errors import SettingsError
from w2v._system.files import is_nameable

Parameters = ParamSpec("Parameters")
First = TypeVar("First")
Returned = TypeVar("Returned")

# For an unknown name, `suggestion` names the most similar known names. Similarity is difflib's ratio of matching
# characters, from 0 to 1.
SIMILAR = 0.6  # lowest similarity of a suggested name
ALMOST_BEST = 0.9  # lowest similarity of a suggested name, as a share of the highest similarity of any name
MAX_SUGGESTIONS = 3
# The smallest allowed values of whole numbers that are not settings, by name. `check_numbers` checks them both as
# arguments of functions and as options of commands, so that each limit is written only once.
MINIMUM = {
    "clusters": 1, "contexts": 2, "cutoff": 1, "dims": 1, "dsub": 1, "folds": 2, "k": 1, "last": 1, "max_size": 1,
    "max_vocab": 1, "min_count": 1, "min_documents": 1,
    "restrict_vocab": 1, "seed": 0, "skip": 0, "targets": 2, "topn": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Option:
    """The metadata of an option. Its name, type and default are in the dataclass field that has the metadata.

    Attributes:
        help: One sentence for `--help`.
        group: The heading of `--help` that lists the option.
        minimum, maximum: The range of a number, inclusive.
        positive: Whether 0 is excluded although it is the minimum.
        flags: The names on the command line; by default the field's name with dashes.
        default_text: What `--help` shows in place of the field's default, for instance if the default is computed.
        only_with: The name of another setting, and some of its values: this option has an effect only with one of these
            values. An empty tuple means every value except None.
        choices: A function that returns the possible values, each with its meaning. It is called only when the values
            are needed.
        fixed: Whether the option must stay the same when training is continued, because the matrices depend on it.
        common: Whether `--help` lists the option; `--help-all` lists every option.
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
    """Return a dataclass field for an option. `more` are the other attributes of Option."""
    return field(default=default, metadata={"option": Option(help, group, **more)})


def options_of(kind: Any) -> dict[str, Option]:
    """Return the options of a dataclass, or of an instance, by name. The dict must not be changed."""
    return _options_of_type(kind if isinstance(kind, type) else type(kind))


@cache  # each setting is checked often, and looks up its option
def _options_of_type(kind: type) -> dict[str, Option]:
    return {each.name: each.metadata["option"] for each in fields(kind) if "option" in each.metadata}


def type_of(kind: Any, name: str) -> Any:
    """Return the type of an option without None: int, float, bool, str, or a Literal."""
    hint = _hints(kind)[name]
    if get_origin(hint) in (Union, UnionType):
        return next(part for part in get_args(hint) if part is not type(None))
    return hint


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def keywords_of(kind: Any, name: str) -> tuple[str, ...]:
    """Return the keywords that an option accepts instead of a whole number, such as "auto"."""
    if type_of(kind, name) is not int:
        return ()
    return tuple(keyword for part in get_args(_hints(kind)[name]) for keyword in get_args(part))


def takes_pair(kind: Any, name: str) -> bool:
    """Return whether an option for a whole number also accepts a pair of numbers as text, such as "5,0"."""
    return str in get_args(_hints(kind)[name]) and type_of(kind, name) is int


def choices_of(kind: type, name: str) -> Mapping[str, str]:
    """Return the values that an option allows, each with its meaning; empty if the values cannot be listed.

    The meaning is "" if the value explains itself.
    """
    hint, option = type_of(kind, name), options_of(kind).get(name)
    if option and option.choices:
        return option.choices()
    return dict.fromkeys(get_args(hint) if get_origin(hint) is Literal else (), "")


def check_options(values: Any) -> None:
    """Check every option of a frozen dataclass, and convert NumPy numbers to Python numbers and paths to text.

    Raises:
        SettingsError: If a value is impossible. The message has the option and the value.
    """
    for name in options_of(values):
        object.__setattr__(values, name, checked_value(type(values), name, getattr(values, name)))


def checked_value(kind: type, name: str, value: Any) -> Any:
    """Return a value for a field of a dataclass, converted as in `check_options`.

    A field for a number must be made by `option`, which gives its range. Other fields need not be.

    Raises:
        SettingsError: If the value is impossible. The message has the option and the value.
    """
    default, value_type = kind.__dataclass_fields__[name].default, type_of(kind, name)  # type: ignore[attr-defined]
    if value is None and default is None:
        return None
    if choices := choices_of(kind, name):
        if value not in [*choices, default]:  # in a list, since a value may not be hashable
            raise SettingsError(f"{name} {value!r}: {suggestion(str(value), choices)}")
        return value
    if value_type is bool:
        if not isinstance(value, bool):
            raise SettingsError(f"{name} {value!r}: it must be True or False")
        return value
    if value_type in (int, float):
        keywords = keywords_of(kind, name)
        if value in keywords or (isinstance(value, str) and "," in value and takes_pair(kind, name)):
            return value
        return _checked_number(name, value, value_type, options_of(kind)[name], keywords)
    kinds = tuple(part for part in get_args(_hints(kind)[name]) if isinstance(part, type) and part is not str)
    if value is not None and isinstance(value, kinds):
        return value  # for instance a Loss
    if not isinstance(value, str | os.PathLike) or not os.fspath(value) or not is_nameable(value):
        raise SettingsError(f"{name} {value!r}: it must be a name or a path")
    return os.fspath(value)


def _checked_number(
    name: str, value: Any, kind: Callable[[Any], Any], limits: Option, keywords: tuple[str, ...]
) -> Any:
    is_number = isinstance(value, Integral) or (kind is float and isinstance(value, Real) and math.isfinite(value))
    fits = is_number and not isinstance(value, bool)
    if limits.minimum is not None and fits:
        fits = value >= limits.minimum and (limits.maximum is None or value <= limits.maximum)
        fits = fits and not (limits.positive and value == 0)
    if not fits:
        wanted = "a whole number" if kind is int else "a number"
        low = f"{limits.minimum:,}"
        span = f"{low} or more" if limits.maximum is None else f"from {low} to {limits.maximum:,}"
        span += ", but not 0" * limits.positive
        or_keywords = "".join(f", or {keyword}" for keyword in keywords)
        raise SettingsError(f"{name} {value!r}: it must be {wanted}, {span}{or_keywords}")
    return kind(value)


def check_whole(minimum: int, **values: Any) -> None:
    """Check that each argument is a whole number of at least `minimum`.

    Raises:
        SettingsError: If one is not. The message has the name and the value of the argument.
    """
    for name, value in values.items():
        _checked_number(name, value, int, Option("", "", minimum), ())


def check_numbers(**values: Any) -> None:
    """Check that each argument that is not None is a whole number of at least its MINIMUM.

    Raises:
        SettingsError: If one is not. The message has the name and the value of the argument.
    """
    for name, value in values.items():
        if value is not None:
            check_whole(MINIMUM[name], **{name: value})


def with_parameters_of(
    arguments: Callable[Parameters, object],
) -> Callable[[Callable[Concatenate[First, ...], Returned]], Callable[Concatenate[First, Parameters], Returned]]:
    """Return a decorator that gives a function the fields of a dataclass as parameters, in place of its **options.

    The function has one other parameter, which stays first. Type checkers, completion and help() then show each field.

    Args:
        arguments: The dataclass.
    """

    def decorate(
        function: Callable[Concatenate[First, ...], Returned],
    ) -> Callable[Concatenate[First, Parameters], Returned]:
        signature = inspect.signature(function)
        parameters = [next(iter(signature.parameters.values())), *inspect.signature(arguments).parameters.values()]
        vars(function)["__signature__"] = signature.replace(parameters=parameters)
        return function

    return decorate


def refuse_unknown(given: Iterable[str], known: Iterable[str], renamed: Mapping[str, str]) -> None:
    """Check that all names in `given` are also in `known`.

    Args:
        given: The names that the user has given.
        known: All valid names.
        renamed: What to write instead of an invalid name, where similar names would not help.

    Raises:
        SettingsError: If a name is unknown. The message says what to write instead, or suggests similar names.
    """
    known = list(known)
    for name in given:
        if name in known:
            continue
        hint = f"write {renamed[name]}" if name in renamed else suggestion(name, known)
        raise SettingsError(f"unknown setting {name!r}: {hint}")


def refuse(reasons: Mapping[str, object]) -> None:
    """Raise SettingsError with the first reason whose value is true."""
    for reason, is_chosen in reasons.items():
        if is_chosen:
            raise SettingsError(reason)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a hint about an unknown name: "did you mean a or b?" with similar names, or "choose from" and all names.

    A known name that begins with the unknown one counts as similar. If `known` is a mapping from names to meanings, the
    meaning may also begin with the unknown name: for "neg", the hint has ns, which means negative sampling.
    """
    wanted = _normalised(name)
    meanings = known if isinstance(known, Mapping) else dict.fromkeys(known, "")

    def similarity(other: str) -> float:
        is_prefix = any(_normalised(text).startswith(wanted) for text in (other, meanings[other]))
        return 1 if is_prefix else difflib.SequenceMatcher(None, wanted, _normalised(other)).ratio()

    threshold = max(SIMILAR, ALMOST_BEST * max(map(similarity, meanings), default=0))
    by_similarity = sorted(meanings, key=similarity, reverse=True)
    similar = [other for other in by_similarity if similarity(other) >= threshold]
    return did_you_mean(similar[:MAX_SUGGESTIONS]) if wanted and similar else f"choose from {', '.join(meanings)}"


def _normalised(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-").strip("-")


def did_you_mean(names: Sequence[str]) -> str:
    """Return the question "did you mean a, b or c?"."""
    *others, last = names
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"
