"""What all commands share: standard streams, one-line errors, signals, and progress on the terminal."""

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

from w2v.errors import SettingsError, TextWarning, error_message, printable
from w2v.options import suggestion
from w2v.progress import formatted_values, quantity
from w2v.system.launcher import mpi_rank_and_size
from w2v.system.shell import is_windows_console, stream_encoding, write_errno
from w2v.system.signals import (
    REPEATED_SIGNALS,
    TERMINATION_SIGNALS,
    end_on_bus_error,
    signal_console_events,
    signal_name,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.live import Live

    from w2v.progress import Progress

LOG_EVERY = 10.0  # seconds between lines of progress where standard error is not a terminal
CTRL_C_COLUMNS = 2  # columns left free after a bar: the ^C that a terminal shows there would otherwise wrap the line
MIN_BAR = 4  # columns of the shortest bar that is drawn
TYPOGRAPHIC_DASHES = (
    "\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{FIGURE DASH}\N{EN DASH}\N{EM DASH}\N{HORIZONTAL BAR}\N{MINUS SIGN}"
)
SHOW_CURSOR = b"\x1b[?25h"
STDOUT, STDERR = 1, 2  # file descriptors
_silent = False  # whether messages are dropped: True in all ranks of an MPI job except rank 0
_stopped = 0  # number of the signal that asked the program to end, or 0
SIGNALS = (*TERMINATION_SIGNALS, *REPEATED_SIGNALS)


class Stopped(BaseException):
    """A signal asks the program to end. `add_note` adds text to the message that the program then prints."""


class Program(click.Command):
    """A command that turns every failure into one line on standard error and an exit code.

    The exit code is 0 for success, 2 for wrong usage, 1 for other errors, and 128 + n for signal n.
    """

    def main(self, *args: Any, **options: Any) -> NoReturn:
        global _silent
        command = (options.get("args") or sys.argv[1:])[:1]
        log = logging.getLogger("w2v")
        handler = _LogHandler()
        log.addHandler(handler)
        try:
            _set_up_streams()
            _silent = command == ["train"] and (mpi_rank_and_size() or (0,))[0] > 0  # only rank 0 of an MPI job prints
            end_on_bus_error()
            with _raise_on_signals():
                code = super().main(*args, **{**options, "standalone_mode": False})
                sys.stdout.flush()
        except click.UsageError as error:
            place = f"see {error.ctx.command_path} --help" if error.ctx else ""
            message = _no_such_option(error) if isinstance(error, click.NoSuchOption) else error.format_message()
            _fail(2, message if message.endswith("?") else "; ".join(filter(None, [message.rstrip("."), place])))
        except click.ClickException as error:
            _fail(error.exit_code, error.format_message())
        except Exception as error:
            _fail(2 if isinstance(error, SettingsError) else 1, error_message(error))
        except Stopped as stopped:
            number = stopped.args[0]
            _fail(128 + number, "; ".join([f"stopped by {signal_name(number)}", *getattr(stopped, "__notes__", [])]))
        finally:
            log.removeHandler(handler)
        sys.exit(code if isinstance(code, int) else 0)


def options_by_name(context: click.Context) -> dict[str, click.Option]:
    """Return the options of a command by name, such as "-o"; an option with several names occurs several times."""
    options = [each for each in context.command.get_params(context) if isinstance(each, click.Option)]
    return {name: option for option in options for name in (*option.opts, *option.secondary_opts)}


def refuse_typographic_dashes(context: click.Context, args: Sequence[str]) -> None:
    """Refuse options with typographic dashes, which word processors and web pages put in place of hyphens.

    Raises:
        click.UsageError: If `args` has such an option. The message has the right spelling.
    """
    known = options_by_name(context)
    for argument in itertools.takewhile(lambda argument: argument != "--", args):
        name = argument.partition("=")[0].lstrip(f"-{TYPOGRAPHIC_DASHES}")
        dashes = argument[: argument.find(name)]
        spelling = next((option for option in (f"--{name}", f"-{name}") if option in known), None)
        if spelling and not set(TYPOGRAPHIC_DASHES).isdisjoint(dashes):
            raise click.UsageError(f"{argument} begins with a typographic dash: write {spelling}", context)


def _no_such_option(error: click.NoSuchOption) -> str:
    """Return the message for an unknown option, with the options that the user may have meant."""
    known = [name for name in (options_by_name(error.ctx) if error.ctx else ()) if name.startswith("--")]
    message, hint = f"No such option '{error.option_name}'", suggestion(error.option_name, known)
    return f"{message}: {hint}" if hint.endswith("?") and error.option_name.startswith("--") else message


def _fail(code: int, message: str) -> NoReturn:
    """Print a message and end the program with this exit code."""
    say(message)
    sys.exit(code)


def say(message: str) -> None:
    """Print a message as one line on standard error."""
    if not _silent:
        line = printable(" ".join(map(str.strip, message.splitlines())))
        print(f"w2v: {line}", file=sys.stderr)  # rich puts it above a progress bar; click.echo would write into the bar


def _set_up_streams() -> None:
    """Make standard streams behave the same for files, terminals, dead pipes and closed descriptors.

    The descriptor of a closed stream is opened on /dev/null, so that no file that the program opens later gets its
    number. Standard input is opened for writing and the other two for reading, so that using the stream still fails.
    Text that cannot be written to standard error is dropped.
    """
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # returns the lowest free descriptor, which is this one
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, closefd=False)
    if sys.stdout is sys.__stdout__ and not (sys.stdout and is_windows_console(sys.stdout)):  # tests replace it
        sys.stdout = _text_stream(_StandardOutput(STDOUT, "w", closefd=False), sys.stdout)
    if sys.stderr is sys.__stderr__ and not (sys.stderr and is_windows_console(sys.stderr)):
        sys.stderr = _text_stream(_StandardError(STDERR, "w", closefd=False), sys.stderr)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # backslashreplace: for characters that the encoding lacks
            stream.reconfigure(encoding=stream_encoding(stream), errors="backslashreplace")


def _text_stream(raw: io.FileIO, before: Any) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(raw), getattr(before, "encoding", None), line_buffering=True)


class _StandardOutput(io.FileIO):
    """Standard output that raises an error with its name when a write fails for the first time.

    Later writes are dropped, because Python writes the rest of its buffer again at exit and would fail again.
    """

    failed = False

    def write(self, data: Any) -> int:
        if self.failed:
            return len(data)
        try:
            return _written(super().write(data))
        except OSError as error:
            self.failed = True
            raise OSError(write_errno(error), error.strerror, "standard output") from error


class _StandardError(io.FileIO):
    """Standard error that drops what it cannot write: a full disk or a closed terminal must not end a run."""

    def write(self, data: Any) -> int:
        with suppress(OSError):
            return _written(super().write(data))
        return len(data)


def _written(size: int | None) -> int:
    """Return the result of a write, the number of bytes. It is None if a non-blocking descriptor had no room.

    Raises:
        BlockingIOError: If it is None.
    """
    if size is None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return size


class _LogHandler(logging.Handler):
    """A log handler that prints each message of the package as one line."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


@contextmanager
def _raise_on_signals() -> Iterator[None]:
    """Raise Stopped for signals that end a program, so that it can stop its threads and write a checkpoint.

    A second signal ends the program at once. If the first signal arrives in a destructor, where Python ignores
    exceptions, ProgressPrinter raises Stopped again.
    """

    def stop(number: int, frame: object) -> NoReturn:
        global _stopped
        _stopped = number
        # The exception may leave objects half initialised, and their destructors then fail. The hook stays in place,
        # because tracebacks keep such objects until the program ends.
        sys.unraisablehook = lambda _: None
        for other in handled:
            signal.signal(other, signal.SIG_IGN if other in REPEATED_SIGNALS else signal.SIG_DFL)
        if os.isatty(STDERR):  # a progress bar hides the cursor, and a second signal would leave it hidden
            with suppress(OSError):
                os.write(STDERR, SHOW_CURSOR)  # not sys.stderr, which the progress bar replaces
        raise Stopped(number)

    global _stopped
    before = {number: signal.getsignal(number) for number in SIGNALS}
    handled = [number for number in SIGNALS if before[number] is not signal.SIG_IGN]  # nohup ignores SIGHUP
    for number in handled:
        signal.signal(number, stop)
    signal_console_events()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _stopped = 0


class ProgressPrinter:
    """A printer of progress on standard error: a bar for each phase on a terminal, otherwise a line every ten seconds.

    Such a line begins with the time of day. Each report raises Stopped if a signal has arrived.

    Args:
        quiet: Print nothing, and hide warnings about the text.
        output: A stream that receives results during the work. Bars are drawn below these results and
            removed at the end. If the stream is a pipe, there are no bars, because the program that reads the pipe may
            write to the same terminal.
    """

    def __init__(self, quiet: bool = False, output: TextIO | None = None) -> None:
        self._quiet, self._output = quiet, output
        self._phases: dict[str, Progress] = {}  # the latest report of each phase
        self._logged = 0.0  # time of the last line
        self._bars: Live | None = None
        self._exit = ExitStack()

    def __enter__(self) -> ProgressPrinter:
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
            say(f"{progress.phase}: {memory_text(progress.memory)}")
        if not self._bars and now - self._logged >= LOG_EVERY:
            self._logged = now
            memory = [] if progress.memory is None else [memory_text(progress.memory)]
            say(f"{time.strftime('%H:%M:%S')} {progress.phase}: {', '.join([*values_of(progress), *memory])}")

    def _draw(self) -> None:
        """Start to draw bars."""
        from rich.console import Console
        from rich.live import Live

        print_above = sys.stdout.isatty()  # text printed to the same terminal goes above the bars
        console = Console(stderr=True, highlight=False)
        self._bars = Live(self, console=console, transient=bool(self._output), redirect_stdout=print_above)
        try:
            self._exit.enter_context(self._bars)
        except RuntimeError:  # the thread that redraws them cannot be started
            self._bars.stop()
            self._bars = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        indent = max(map(len, self._phases), default=0)
        for progress in list(self._phases.values()):
            yield from bar(progress, indent, options.max_width - CTRL_C_COLUMNS)


def bar(progress: Progress, indent: int, width: int) -> Iterator[RenderableType]:
    """Yield one line of `width` columns: the phase, padded to `indent` columns, a bar, and values.

    If the line is too short, the last values are left out first, then the bar.
    """
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    values = values_of(progress)
    texts = [f" {', '.join(values[:count])}" for count in range(len(values), 0, -1)]
    text = next((text for text in texts if indent + 1 + MIN_BAR + len(text) <= width), "")
    yield Text(f"{progress.phase:<{indent}} ", end="")
    if (space := width - indent - 1 - len(text)) >= MIN_BAR:
        yield ProgressBar(progress.total, progress.done, width=space)
    yield Text(text)


def values_of(progress: Progress) -> list[str]:
    """Return the values of a progress report as text, the most important first."""
    done, total = progress.done, progress.total
    return [f"{done / total:.0%}" if total else f"{quantity(done)} {progress.unit}", *formatted_values(progress)]


def memory_text(memory: int) -> str:
    return f"needs about {memory / 1e6:,.0f} MB"
