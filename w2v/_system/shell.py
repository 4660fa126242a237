"""Command lines, and the encoding and the errors of the standard streams."""

import errno
import os
import re
import shlex
import sys
from collections.abc import Iterable
from typing import TextIO


def join_command(words: Iterable[str]) -> str:
    """Return words as a command line for the system's shell, with quotes where necessary."""
    return " ".join(map(_quote_for_windows, words)) if sys.platform == "win32" else shlex.join(words)


def _quote_for_windows(word: str) -> str:
    """Quote a word for Windows' programs, and so that cmd does not interpret a character such as & in it."""
    if re.fullmatch(r"[\w\\/:.,=+@~-]+", word):
        return word
    escaped = re.sub(r'(\\*)("|$)', lambda found: 2 * found[1] + found[2].replace('"', r"\""), word)
    return f'"{escaped}"'


def is_windows_console(stream: TextIO) -> bool:
    """Return True if Python writes to a stream as Unicode, not as bytes: only to the console of Windows."""
    return sys.platform == "win32" and stream.isatty()


def stream_encoding(stream: TextIO) -> str | None:
    """Return the encoding of a standard stream, or None to keep Python's choice.

    Windows' code page, which is Python's choice for files and pipes there, lacks most letters, so it becomes UTF-8
    unless the user has set PYTHONIOENCODING.
    """
    is_code_page = sys.platform == "win32" and not stream.isatty() and "PYTHONIOENCODING" not in os.environ
    return "utf-8" if is_code_page else None


def write_errno(error: OSError) -> int | None:
    """Return the number of an error in writing to a stream; EPIPE if the reader of a pipe has closed it."""
    # Python on Windows reports a closed pipe as EINVAL.
    return errno.EPIPE if sys.platform == "win32" and error.errno == errno.EINVAL else error.errno
