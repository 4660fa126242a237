"""Errors and warnings about the user's data and settings, and text that is safe to print."""

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

# Control characters, line and paragraph separators, characters that change the text direction, and lone surrogates.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

# What the dynamic linker says if a shared library does not fit in memory.
UNMAPPED_LIBRARY = re.compile(r"\S+: (failed to map segment|cannot map zero-fill pages|cannot create shared object).*")

UNREPORTED = (
    "error return without exception set"  # a SystemError after a failed allocation, in Python's compiler for one
)

PUBLIC = "w2v"  # the module of public errors, as tracebacks show it

IS_ON_PYPI = False  # whether the package index has w2v, so that pip can install its extras by name


class _Printable(Exception):
    """An exception with a printable message: the names of words and files in it may contain control characters."""

    def __str__(self) -> str:
        return printable(super().__str__())


class W2VError(_Printable, ValueError):
    """The user's data cannot be used. The message is one line, which names the problem, its place and a remedy."""

    __module__ = PUBLIC


class SettingsError(W2VError):
    """An option or argument is invalid, or contradicts another."""

    __module__ = PUBLIC


class TruncatedFile(W2VError):
    """A file is truncated."""


class NothingToTrain(W2VError):
    """A text has no training pairs: it has no known words, or none of them has a context after subsampling."""


class Diverged(W2VError):
    """Training has diverged: it gave NaN or infinite values, or the loss became many times as high."""


class VersionMismatch(W2VError):
    """A file comes from another version of w2v, and this version cannot read it."""


class VectorsWithoutModel(W2VError):
    """A file has words and vectors, but a model is needed."""


class LossNotImported(W2VError):
    """A file needs a user-defined loss that has not been imported."""


class TextWarning(_Printable, UserWarning):
    """A text is usable, but the vectors would be better if it or an option were changed. The message says which."""

    __module__ = PUBLIC


_report_text_warning: ContextVar[Callable[[str], object] | None] = ContextVar("report_text_warning", default=None)


@contextmanager
def text_warnings_to(report: Callable[[str], object]) -> Iterator[None]:
    """Pass the lines of text warnings to a function, such as a logger's, instead of issuing a TextWarning."""
    token = _report_text_warning.set(report)
    try:
        yield
    finally:
        _report_text_warning.reset(token)


def issue_text_warning(line: str) -> None:
    """Issue a TextWarning that points at the line of user code that called this package."""
    if report := _report_text_warning.get():
        report(line)
        return
    level, frame = 1, sys._getframe()
    while frame.f_globals.get("__name__", "").split(".")[0] == "w2v" and frame.f_back:
        level, frame = level + 1, frame.f_back
    warnings.warn(line, TextWarning, level)


@contextmanager
def optional_package(purpose: str, extra: str, kind: type[W2VError] = W2VError, hint: str = "") -> Iterator[None]:
    """Turn an ImportError in a `with` block into an error that says how to install the package.

    Args:
        purpose: The beginning of the error message, such as "the Numba kernel needs Numba".
        extra: The extra of this package that installs the modules.
        kind: The class of the error.
        hint: The end of the error message.

    Raises:
        W2VError: If a module is missing.
        ImportError: If a module exists, but probably does not fit in memory.
    """
    try:
        yield
    except ImportError as error:
        if out_of_memory(error):
            raise
        raise kind(f"{purpose}: {install_command(extra)}{hint}") from error


def import_optional(purpose: str, extra: str, *modules: str, kind: type[W2VError] = W2VError) -> Any:
    """Import modules of an optional package and return the first. The other arguments are as in `optional_package`."""
    with optional_package(purpose, extra, kind):
        first, *_ = map(import_module, modules)
        return first


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an optional extra, such as "plot"."""
    from importlib import metadata  # slow to import

    if IS_ON_PYPI:
        return f"pip install 'w2v[{extra}]'"
    try:
        requirements = metadata.requires("w2v") or []
    except metadata.PackageNotFoundError:  # Python runs the sources, and w2v is not installed
        return f"pip install '.[{extra}]' in the folder of w2v's sources"
    in_extra = re.compile(rf"([\w.-]+)[^;]*;.*\bextra == [\"']{extra}[\"']")
    return f"pip install {' '.join(match[1] for match in map(in_extra.match, requirements) if match)}"


def pluralise(number: int, noun: str) -> str:
    """Return a number with its noun in singular or plural: "1 word", "2,000 words"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def malformed_lines(number: int, first: int | None) -> str:
    """Return the number of malformed lines and the first line's number: "1 malformed line: line 5"."""
    return f"{pluralise(number, 'malformed line')}: {'' if number == 1 else 'the first is '}line {first}"


def printable(text: str) -> str:
    """Escape the characters of a text that break lines or control a terminal: \\x1b, for instance."""
    return UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def one_line(error: object) -> str:
    """Return a message as one short printable line: it may contain arbitrary text from a damaged file."""
    return printable(str(error)[:300] or type(error).__name__)[:300]


@contextmanager
def translate_errors(message: str, *kinds: type[Exception], to: type[W2VError] | None = None) -> Iterator[None]:
    """Turn errors of some kinds in a `with` block into an error with `message` and their own message, in one line.

    Raises:
        W2VError: If the block raises such an error. `to` is its class. If W2VError is one of the kinds and `to` is not
            given, the error keeps its own class and its whole message.
    """
    try:
        yield
    except kinds as error:
        if to is None and W2VError in kinds:
            raise type(error)(f"{message}: {error}") from error
        raise (to or W2VError)(f"{message}: {one_line(error)}") from error


def out_of_memory(error: BaseException) -> str:
    """Return a message if an error, or the error that caused it, shows that memory has run out; otherwise ""."""
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, ImportError | OSError) and (unmapped := UNMAPPED_LIBRARY.search(str(error))):
        return f"probably out of memory: {unmapped[0]}"
    if isinstance(error, SystemError) and UNREPORTED in str(error):
        return f"probably out of memory: {error}"
    cause = error.__cause__ or error.__context__
    return out_of_memory(cause) if cause else ""


def error_message(error: Exception) -> str:
    """Return the message of an error for users, without a traceback."""
    if isinstance(error, W2VError):
        return str(error)
    if message := out_of_memory(error):
        return message
    if isinstance(error, OSError):
        return ": ".join(map(str, filter(None, (error.filename, error.strerror or str(error)))))
    return f"internal error: {type(error).__name__}: {error}"  # a bug in w2v
