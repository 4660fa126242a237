"""The errors and warnings that a user's data or settings can cause, and text that is safe to print."""

import re
import sys
import warnings
from importlib import import_module
from typing import Any

# Control characters, line and paragraph separators, those that change the direction of the text, and lone surrogates.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

ON_INDEX = False  # whether w2v is on the package index, from which its extras can then be installed


class W2VError(ValueError):
    """A user's data cannot be used: one line that says what was found, where, and what to do."""


class SettingsError(W2VError):
    """An option or argument has an impossible value, or contradicts another."""


class CutFile(W2VError):
    """A file ends before its content does."""


class NothingToTrain(W2VError):
    """A text has no training pairs: no word of the vocabulary, or none with another in its window after subsampling."""


class Diverged(W2VError):
    """Training has made NaN or infinite values, or its loss has risen to a multiple."""


class OtherVersion(W2VError):
    """A file was written by a version of w2v whose files this one cannot read."""


class OnlyVectors(W2VError):
    """A file holds words and vectors, but no model."""


class LossMissing(W2VError):
    """A file names a user's own loss that has not been imported."""


class TextWarning(UserWarning):
    """A text can be used, but a change of it or of an option would give better vectors: one line says which."""


def warn_of_text(line: str) -> None:
    """Issue a TextWarning that names the line of the user's code that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_globals.get("__name__", "").split(".")[0] == "w2v" and frame.f_back:
        level, frame = level + 1, frame.f_back
    warnings.warn(line, TextWarning, level)


def optional(need: str, extra: str, *modules: str, kind: type[W2VError] = W2VError) -> Any:
    """Import modules of an optional package, which the extra installs, and return the first.

    Raises `kind`, with `need` and how to install the extra, if the package is missing.
    """
    try:
        first, *_ = map(import_module, modules)
    except ImportError as error:
        raise kind(f"{need}: {install(extra)}") from error
    return first


def install(extra: str) -> str:
    """How to install the packages of an optional extra, such as "plot", which the metadata of this package name."""
    from importlib import metadata  # slow to import

    if ON_INDEX:
        return f"pip install 'w2v[{extra}]'"
    try:
        needed = metadata.requires("w2v") or []
    except metadata.PackageNotFoundError:  # sources that are used without having been installed
        return f"pip install '.[{extra}]' in the folder of w2v's sources"
    of_extra = re.compile(rf"([\w.-]+)[^;]*;.*\bextra == [\"']{extra}[\"']")
    return f"pip install {' '.join(found[1] for found in map(of_extra.match, needed) if found)}"


def counted(number: int, noun: str) -> str:
    """A number with its noun in singular or plural: "1 word", "2,000 words"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def malformed_lines(number: int, first: int | None) -> str:
    """The number of malformed lines and the first of them: "1 malformed line: line 5"."""
    return f"{counted(number, 'malformed line')}: {'' if number == 1 else 'the first is '}line {first}"


def printable(text: str) -> str:
    """One line of text in which characters that could control a terminal are escaped, as \\x1b for instance."""
    return UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(error: object) -> str:
    """The message of an error, or other text, as one short printable line: a damaged file can put any text there."""
    return printable(str(error)[:300] or type(error).__name__)[:300]


def described(error: Exception) -> str:
    """What an error says to a user."""
    if isinstance(error, W2VError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, OSError):
        return ": ".join(map(str, filter(None, (error.filename, error.strerror or str(error)))))
    return f"internal error: {type(error).__name__}: {error}"  # a bug of ours
