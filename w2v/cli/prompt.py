"""The prompt of `w2v query` on a terminal: lines that are edited, and words that Tab completes."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import click

WELCOME = "Type a word, or king - man + woman. Tab completes words; help explains more; quit or Ctrl-D ends."
HELP = """\
king                  words nearest to king
paris london          words nearest to the mean of both
king - man + woman    + and - add and subtract
+ help                the word help itself; + quit likewise
quit                  end, as Ctrl-D does"""


def lines(words: Iterable[str]) -> Iterator[str]:
    """The queries that are typed, until `quit` or Ctrl-D. Tab completes `words`."""
    with suppress(ImportError):
        _complete(words)
    click.echo(WELCOME)
    with suppress(EOFError):
        while (line := input("> ").strip()) != "quit":
            if line == "help":
                click.echo(HELP)
            else:
                yield line
        return
    click.echo()


def _complete(words: Iterable[str]) -> None:
    import readline

    readline.set_completer(completer(words))
    readline.set_completer_delims(" \t\n")
    libedit = "libedit" in (readline.__doc__ or "")  # which stands in for readline on macOS
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")


def completer(words: Iterable[str]) -> Callable[[str, int], str | None]:
    """A function that readline calls with the beginning of a word and 0, 1, 2 and so on, until it returns None."""
    matches: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            matches[:] = [word for word in words if word.startswith(text)] if text else []
        return matches[state] if state < len(matches) else None

    return complete
