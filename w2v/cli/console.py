"""Shared by all commands: standard streams, errors as one line, signals, progress."""

from __future__ import annotations

import errno
import io
import itertools
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from w2v.errors import SettingsError, TextWarning, described, printable
from w2v.options import suggestion
from w2v.progress import formatted_values, quantity
from w2v.system._signals import end_on_bus_error
from w2v.system.launcher import rank_and_size

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.live import Live

    from w2v.progress import Progress

LOG_EVERY = 10.0  # seconds between lines of progress without a terminal
ROOM_FOR_CTRL_C = 2  # columns: a terminal shows ^C there, and in the next line if a bar ends at the last column
MIN_BAR = 4  # columns
DASHES = "\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{FIGURE DASH}\N{EN DASH}\N{EM DASH}\N{HORIZONTAL BAR}\N{MINUS SIGN}"
SHOW_CURSOR = b"\x1b[?25h"
STDOUT, STDERR = 1, 2  # file descriptors
_silent = False  # true in all ranks of an MPI job except rank 0
_stopped = 0  # the signal that asked the program to end
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)


class Stopped(BaseException):
    """A signal asks the program to end. Its notes are printed with the signal's name."""


class Program(click.Command):
    """A command that ends with exit code 0, or with one line on standard error and another exit code:

    2 for wrong usage, 1 for other errors, 128 + n for signal n.
    """

    def main(self, *args: Any, **options: Any) -> NoReturn:
        global _silent
        command = (options.get("args") or sys.argv[1:])[:1]
        log = logging.getLogger("w2v")
        handler = _Warnings()
        log.addHandler(handler)
        try:
            _set_up_streams()
            _silent = command == ["train"] and (rank_and_size() or (0,))[0] > 0  # only rank 0 of an MPI job prints
            end_on_bus_error()
            with _signals_raise():
                code = super().main(*args, **{**options, "standalone_mode": False})
                sys.stdout.flush()
        except click.UsageError as error:
            place = f"see {error.ctx.command_path} --help" if error.ctx else ""
            message = _no_such_option(error) if isinstance(error, click.NoSuchOption) else error.format_message()
            _fail(2, message if message.endswith("?") else "; ".join(filter(None, [message.rstrip("."), place])))
        except click.ClickException as error:
            _fail(error.exit_code, error.format_message())
        except Exception as error:
            _fail(2 if isinstance(error, SettingsError) else 1, described(error))
        except Stopped as stopped:
            number = signal.Signals(stopped.args[0])
            by = "Ctrl-C" if number == signal.SIGINT else number.name
            _fail(128 + number, "; ".join([f"stopped by {by}", *getattr(stopped, "__notes__", [])]))
        finally:
            log.removeHandler(handler)
        sys.exit(code if isinstance(code, int) else 0)


def options_by_name(context: click.Context) -> dict[str, click.Option]:
    """The options of a command by each of their names, with dashes."""
    found = [each for each in context.command.get_params(context) if isinstance(each, click.Option)]
    return {name: each for each in found for name in (*each.opts, *each.secondary_opts)}


def refuse_typographic_dashes(context: click.Context, args: Sequence[str]) -> None:
    """Raise click.UsageError for an option whose dashes are typographic, as word processors and pages make them."""
    known = options_by_name(context)
    for argument in itertools.takewhile(lambda argument: argument != "--", args):
        name = argument.partition("=")[0].lstrip(f"-{DASHES}")
        dashes = argument[: argument.find(name)]
        right = next((option for option in (f"--{name}", f"-{name}") if option in known), None)
        if right and not set(DASHES).isdisjoint(dashes):
            raise click.UsageError(f"{argument} begins with a typographic dash: write {right}", context)


def _no_such_option(error: click.NoSuchOption) -> str:
    """The message for an unknown option, with those that may be meant."""
    known = [name for name in (options_by_name(error.ctx) if error.ctx else ()) if name.startswith("--")]
    message, hint = f"No such option '{error.option_name}'", suggestion(error.option_name, known)
    return f"{message}: {hint}" if hint.endswith("?") and error.option_name.startswith("--") else message


def _fail(code: int, message: str) -> NoReturn:
    say(message)
    sys.exit(code)


def say(message: str) -> None:
    """One line on standard error."""
    if not _silent:
        line = printable(" ".join(map(str.strip, message.splitlines())))
        print(f"w2v: {line}", file=sys.stderr)  # click.echo writes into a bar


def _set_up_streams() -> None:
    """Make standard streams behave the same whether they are files, terminals, dead pipes or closed.

    A closed descriptor is opened so that using it still fails, but no file of ours gets its number. Text that cannot be
    written to standard error is dropped.
    """
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest free number, which is this one
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, closefd=False)
    if sys.stdout is sys.__stdout__:  # not replaced, as in tests
        sys.stdout = _text_stream(_StandardOutput(STDOUT, "w", closefd=False), sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text_stream(_StandardError(STDERR, "w", closefd=False), sys.stderr)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for characters that its encoding lacks


def _text_stream(raw: io.FileIO, before: Any) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(raw), getattr(before, "encoding", None), line_buffering=True)


class _StandardOutput(io.FileIO):
    """The first failed write raises an error that names standard output.

    Later writes are dropped, because Python would retry the buffered rest at exit and fail again.
    """

    failed = False

    def write(self, data: Any) -> int:
        if self.failed:
            return len(data)
        try:
            return _written(super().write(data))
        except OSError as error:
            self.failed = True
            raise OSError(error.errno, error.strerror, "standard output") from error


class _StandardError(io.FileIO):
    """Drops text that cannot be written, since a full disk or a closed terminal must not end a run."""

    def write(self, data: Any) -> int:
        with suppress(OSError):
            return _written(super().write(data))
        return len(data)


def _written(size: int | None) -> int:
    if size is None:  # the descriptor does not block, and is full
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return size


class _Warnings(logging.Handler):
    """Warnings of the package, each as one line."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Turn signals that end a program into an exception, so that threads are stopped and checkpoints written.

    A second signal ends the program at once. If the first one arrives in a destructor, where Python ignores exceptions,
    Reporter raises it again.
    """

    def stop(number: int, frame: object) -> NoReturn:
        global _stopped
        _stopped = number
        # Destructors may fail now for objects that are half made. This stays, as tracebacks keep objects to the end.
        sys.unraisablehook = lambda _: None
        for other in handled:  # the system repeats SIGXCPU every second
            signal.signal(other, signal.SIG_IGN if other == signal.SIGXCPU else signal.SIG_DFL)
        if os.isatty(STDERR):  # a bar hides the cursor, and a second signal would leave it hidden
            with suppress(OSError):
                os.write(STDERR, SHOW_CURSOR)  # not through sys.stderr, which the bar has replaced
        raise Stopped(number)

    global _stopped
    before = {number: signal.getsignal(number) for number in SIGNALS}
    handled = [number for number in SIGNALS if before[number] is not signal.SIG_IGN]  # as under nohup
    for number in handled:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _stopped = 0


class Reporter:
    """Progress on standard error: a bar for each phase on a terminal; elsewhere, every ten seconds, a line that begins
    with the time of day.

    `output` is a stream to which results are printed meanwhile. The bars are below them and disappear at the end; there
    are none if it is a pipe, whose reader may write to the same terminal. Raises Stopped after a signal.
    """

    def __init__(self, quiet: bool = False, output: TextIO | None = None) -> None:
        self._quiet, self._output = quiet, output
        self._phases: dict[str, Progress] = {}  # the latest report of each
        self._logged = 0.0
        self._bars: Live | None = None
        self._exit = ExitStack()

    def __enter__(self) -> Reporter:
        self._exit.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore" if self._quiet else "always", TextWarning)
        warnings.showwarning = lambda message, *_, **__: say(str(message))
        log = logging.getLogger("w2v")
        self._exit.callback(log.setLevel, log.level)
        log.setLevel(logging.WARNING if self._quiet else logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def __call__(self, progress: Progress) -> None:
        if _stopped:
            raise Stopped(_stopped)
        if self._quiet:
            return
        now, new = time.monotonic(), progress.phase not in self._phases
        if not self._phases and sys.stderr.isatty() and (self._output is None or self._output.isatty()):
            self._draw()
        self._phases[progress.phase] = progress
        if new:
            self._logged = now
        if self._bars and new and progress.memory is not None:
            say(f"{progress.phase}: {needs(progress.memory)}")
        if not self._bars and now - self._logged >= LOG_EVERY:
            self._logged = now
            memory = [] if progress.memory is None else [needs(progress.memory)]
            say(f"{time.strftime('%H:%M:%S')} {progress.phase}: {', '.join([*numbers(progress), *memory])}")

    def _draw(self) -> None:
        """Begin to draw bars."""
        from rich.console import Console
        from rich.live import Live

        shown_above = sys.stdout.isatty()  # what is printed meanwhile; otherwise standard output goes elsewhere
        console = Console(stderr=True, highlight=False)
        self._bars = Live(self, console=console, transient=bool(self._output), redirect_stdout=shown_above)
        try:
            self._exit.enter_context(self._bars)
        except RuntimeError:  # no thread can be started to draw them
            self._bars.stop()
            self._bars = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        indent = max(map(len, self._phases), default=0)
        for progress in list(self._phases.values()):
            yield from bar(progress, indent, options.max_width - ROOM_FOR_CTRL_C)


def bar(progress: Progress, indent: int, width: int) -> Iterator[RenderableType]:
    """One line: the phase, which takes `indent` columns, a bar, and numbers. If space is short, the last numbers are
    left out first, then the bar."""
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    shown = numbers(progress)
    texts = [f" {', '.join(shown[:count])}" for count in range(len(shown), 0, -1)]
    text = next((text for text in texts if indent + 1 + MIN_BAR + len(text) <= width), "")
    yield Text(f"{progress.phase:<{indent}} ", end="")
    if (space := width - indent - 1 - len(text)) >= MIN_BAR:
        yield ProgressBar(progress.total, progress.done, width=space)
    yield Text(text)


def numbers(progress: Progress) -> list[str]:
    """What a report says, the most important first."""
    done, total = progress.done, progress.total
    return [f"{done / total:.0%}" if total else f"{quantity(done)} {progress.unit}", *formatted_values(progress)]


def needs(memory: int) -> str:
    return f"needs about {memory / 1e6:,.0f} MB"
