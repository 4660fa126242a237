"""What all commands share: standard streams, one-line errors, signals, and progress on the terminal."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NoReturn

import click

from w2v._errors import SettingsError, TextWarning, error_message, printable
from w2v._progress import formatted_values, quantity
from w2v._system.launcher import mpi_rank_and_size
from w2v._system.shell import is_windows_console, stream_encoding, write_errno
from w2v._system.signals import (
    REPEATED_SIGNALS,
    TERMINATION_SIGNALS,
    end_on_bus_error,
    signal_console_events,
    signal_name,
)

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from w2v._progress import Progress

LOG_EVERY = 10.0  # seconds between lines of progress where standard error is not a terminal
REDRAW_EVERY = 0.1  # seconds between updates of the bars on a terminal
SHOW_CURSOR = b"\x1b[?25h"
STDOUT, STDERR = 1, 2  # file descriptors
_silent = False  # whether messages are dropped: True in all ranks of an MPI job except rank 0
_stopped = 0  # number of the signal that asked the program to end, or 0
SIGNALS = (*TERMINATION_SIGNALS, *REPEATED_SIGNALS)


class Stopped(BaseException):
    """A signal asks the program to end. `add_note` adds text to the message that the program then prints."""


class Program(click.Command):
    """A command that turns every failure into one line on standard error and an exit code.

    With --json, the line is a JSON object with "error" and "exit_code", and standard output has a result or nothing.
    The exit code is 0 for success, 2 for wrong usage, 1 for other errors, and 128 + n for signal n.
    """

    def main(self, *args: Any, **options: Any) -> NoReturn:
        global _silent
        arguments = options.get("args") or (args[0] if args else sys.argv[1:])
        log = logging.getLogger("w2v")
        handler = _LogHandler()
        log.addHandler(handler)
        try:
            _set_up_streams()
            _silent = (
                arguments[:1] in (["train"], ["classify"]) and (mpi_rank_and_size() or (0,))[0] > 0
            )  # only rank 0 of an MPI job prints
            end_on_bus_error()
            with _raise_on_signals():
                code = super().main(*args, **{**options, "standalone_mode": False})
                sys.stdout.flush()
        except (Exception, Stopped) as error:
            code, message = _failure(error)
            if "--json" not in takewhile("--".__ne__, arguments):
                say(message)
            elif not _silent:
                print(json.dumps({"error": message, "exit_code": code}), file=sys.stderr)
        finally:
            log.removeHandler(handler)
        sys.exit(code if isinstance(code, int) else 0)


def _failure(error: Exception | Stopped) -> tuple[int, str]:
    """Return the exit code and the message of an error that ends the program."""
    if isinstance(error, Stopped):
        number = error.args[0]
        return 128 + number, "; ".join([f"stopped by {signal_name(number)}", *getattr(error, "__notes__", [])])
    if isinstance(error, click.UsageError):
        place = f"see {error.ctx.command_path} --help" if error.ctx else ""
        message = error.format_message()
        return 2, message if message.endswith("?") else "; ".join(filter(None, [message.rstrip("."), place]))
    if isinstance(error, click.ClickException):
        return error.exit_code, error.format_message()
    return 2 if isinstance(error, SettingsError) else 1, error_message(error)


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
        sys.stdout = _text_stream(STDOUT, sys.stdout)
    if sys.stderr is sys.__stderr__ and not (sys.stderr and is_windows_console(sys.stderr)):
        sys.stderr = _text_stream(STDERR, sys.stderr)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # backslashreplace: for characters that the encoding lacks
            stream.reconfigure(encoding=stream_encoding(stream), errors="backslashreplace")


def _text_stream(descriptor: int, before: Any) -> io.TextIOWrapper:
    raw = _StandardStream(descriptor, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), getattr(before, "encoding", None), line_buffering=True)


class _StandardStream(io.FileIO):
    """Standard output or standard error, which treat a failing write differently.

    Standard output raises an error with its name when a write fails for the first time. Later writes are dropped,
    because Python writes the rest of its buffer again at exit and would fail again. Standard error drops what it cannot
    write: a full disk or a closed terminal must not end a run.
    """

    failed = False

    def write(self, data: Any) -> int:
        if self.failed:
            return len(data)
        try:
            size = super().write(data)
            if size is None:  # a non-blocking descriptor has no room
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        except OSError as error:
            if self.fileno() == STDOUT:
                self.failed = True
                raise OSError(write_errno(error), error.strerror, "standard output") from error
            return len(data)
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
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._shown: dict[str, float] = {}  # when the progress of each phase was last drawn or printed
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}  # the bar of each phase
        self._exit = ExitStack()

    def __enter__(self) -> ProgressPrinter:
        self._exit.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore" if self.quiet else "always", TextWarning)
        warnings.showwarning = lambda message, *_, **__: say(str(message))
        log = logging.getLogger("w2v")
        self._exit.callback(log.setLevel, log.level)
        log.setLevel(logging.WARNING if self.quiet else logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def __call__(self, progress: Progress) -> None:
        if _stopped:
            raise Stopped(_stopped)
        if self.quiet or _silent:
            return
        if not self._shown and sys.stderr.isatty():
            self._bars = self._exit.enter_context(_new_bars())
        phase, done, total, now = progress.phase, progress.done, progress.total, time.monotonic()
        values = [f"{done / total:.0%}" if total else f"{quantity(done)} {progress.unit}", *formatted_values(progress)]
        memory = [] if progress.memory is None else [f"needs about {progress.memory / 1e6:,.0f} MB"]
        is_due = now - self._shown.setdefault(phase, now) >= (REDRAW_EVERY if self._bars else LOG_EVERY)
        if is_due:
            self._shown[phase] = now
        if not self._bars:
            if is_due:
                say(f"{time.strftime('%H:%M:%S')} {phase}: {', '.join([*values, *memory])}")
            return
        state: dict[str, Any] = {"completed": done, "total": total, "values": ", ".join(values)}
        if phase in self._tasks:
            self._bars.update(self._tasks[phase], refresh=is_due, **state)
            return
        for text in memory:
            say(f"{phase}: {text}")
        self._tasks[phase] = self._bars.add_task(phase, **state)


def _new_bars() -> Bars:
    """Return an empty display of bars. Reports redraw it, because a thread of its own could fail to start."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    return Bars(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None, table_column=Column(ratio=1)),
        TextColumn("{task.fields[values]}", table_column=Column()),  # on several lines if the terminal is narrow
        TextColumn(" "),  # room for the ^C that a terminal shows there, which would otherwise wrap the line
        console=Console(stderr=True, highlight=False),
        auto_refresh=False,
        redirect_stdout=sys.stdout.isatty(),  # text printed to the same terminal goes above the bars
        expand=True,
    )
