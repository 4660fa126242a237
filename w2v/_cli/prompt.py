"""Read the queries of `w2v query` from standard input, with a prompt and Tab completion on a terminal."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import click

from w2v._errors import printable
from w2v._system.files import translate_os_errors

WELCOME = "Type a word, or king - man + woman. Tab completes words, help shows more, exit or Ctrl-D ends."
HELP = """\
king                  words nearest to king
paris london          words nearest to the mean of both
king - man + woman    + and - add and subtract; also king-man+woman
+ help                the word help itself; likewise + exit and + quit
exit, quit            end the program, as Ctrl-D does"""


def typed_lines(words: Iterable[str]) -> Iterator[str]:
    """Yield the queries that a user types, until `exit`, `quit` or Ctrl-D. Tab completes `words`."""
    with suppress(ImportError):
        _complete(words)
    click.echo(WELCOME)
    with suppress(EOFError):
        while (line := input("> ").strip()) not in ("exit", "quit"):
            if line == "help":
                click.echo(HELP)
            else:
                yield line
        return
    click.echo()


def piped_lines() -> Iterator[str]:
    """Yield the lines of standard input.

    Raises:
        W2VError: If reading fails.
    """
    with translate_os_errors("standard input"):
        yield from sys.stdin


def _complete(words: Iterable[str]) -> None:
    import readline

    readline.set_completer(completer(words))
    readline.set_completer_delims(" \t\n")
    libedit = "libedit" in (readline.__doc__ or "")  # macOS has it in place of readline
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")


def completer(words: Iterable[str]) -> Callable[[str, int], str | None]:
    """Return a completer for readline, which calls it with the start of a word and 0, 1, 2, … until it returns None."""
    matches: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            matches[:] = [word for word in words if text and word.startswith(text) and word == printable(word)]
        return matches[state] if state < len(matches) else None

    return complete
