"""Shared by all commands: standard streams, errors as one line, signals, progress."""

from __future__ import annotations

import errno
import io
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

from w2v._signals import end_on_bus_error
from w2v.errors import SettingsError, W2VError, printable
from w2v.launcher import launched
from w2v.progress import formatted_values, quantity

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from w2v.progress import Progress

LOG_EVERY = 10.0  # seconds between lines of progress without a terminal
RETRY = 0.001  # seconds until a swallowed exception is raised again
SHOW_CURSOR = b"\x1b[?25h"
STDOUT, STDERR = 1, 2  # file descriptors
_silent = False  # true in all ranks of an MPI job except rank 0
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
        _silent = command == ["train"] and (launched() or (0,))[0] > 0  # rank 0 prints the messages of an MPI job
        log = logging.getLogger("w2v")
        warnings = _Warnings()
        log.addHandler(warnings)
        try:
            _set_up_streams()
            end_on_bus_error()
            with _signals_raise():
                code = super().main(*args, **{**options, "standalone_mode": False})
                sys.stdout.flush()
        except click.UsageError as error:
            place = f"; see {error.ctx.command_path} --help" if error.ctx else ""
            _fail(2, error.format_message().rstrip(".") + place)
        except click.ClickException as error:
            _fail(error.exit_code, error.format_message())
        except SettingsError as error:
            _fail(2, str(error))
        except W2VError as error:
            _fail(1, str(error))
        except OSError as error:
            _fail(1, ": ".join(map(str, filter(None, (error.filename, error.strerror or str(error))))))
        except MemoryError:
            _fail(1, "out of memory")
        except Exception as error:
            _fail(1, f"internal error: {type(error).__name__}: {error}")  # a bug of ours
        except Stopped as stopped:
            number = signal.Signals(stopped.args[0])
            by = "Ctrl-C" if number == signal.SIGINT else number.name
            _fail(128 + number, "; ".join([f"stopped by {by}", *getattr(stopped, "__notes__", [])]))
        finally:
            log.removeHandler(warnings)
        sys.exit(code if isinstance(code, int) else 0)


def _fail(code: int, message: str) -> NoReturn:
    say(message)
    sys.exit(code)


def say(message: str) -> None:
    """One line on standard error."""
    if not _silent:
        print(f"w2v: {printable(' '.join(message.split()))}", file=sys.stderr)  # click.echo writes into a bar


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
    """Raises its first error, with its name, and drops later output: Python tries to write the rest again at exit."""

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

    A second signal ends the program at once.
    """

    stopped = False

    def stop(number: int, frame: object) -> NoReturn:
        nonlocal stopped
        stopped = True
        for other in handled:  # the system repeats SIGXCPU every second
            signal.signal(other, signal.SIG_IGN if other == signal.SIGXCPU else signal.SIG_DFL)
        if sys.stderr.isatty():  # a bar hides the cursor, and a second signal would leave it hidden
            with suppress(OSError):
                os.write(STDERR, SHOW_CURSOR)  # not through sys.stderr, which the bar has replaced
        raise Stopped(number)

    def swallowed(ignored: Any) -> None:
        """Raise an exception again a little later if it was raised in a destructor, where Python ignores it.

        Other exceptions there are not shown after a signal, which may have interrupted the making of the object.
        """
        if isinstance(ignored.exc_value, Stopped):
            number = ignored.exc_value.args[0]
            signal.signal(signal.SIGALRM, lambda _, frame: stop(number, frame))
            signal.setitimer(signal.ITIMER_REAL, RETRY)
        elif not stopped:
            hook(ignored)

    hook, sys.unraisablehook = sys.unraisablehook, swallowed
    before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}
    handled = [number for number in SIGNALS if before[number] is not signal.SIG_IGN]  # as under nohup
    for number in handled:
        signal.signal(number, stop)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        if not stopped:  # otherwise the traceback keeps objects until the process ends
            sys.unraisablehook = hook


class Reporter:
    """Progress on standard error: a bar on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._phase = ""
        self._bar: Bar | None = None
        self._exit = ExitStack()

    def __enter__(self) -> Reporter:
        advice = logging.getLogger("w2v.advice")
        self._exit.callback(advice.setLevel, advice.level)
        advice.setLevel(logging.ERROR if self._quiet else logging.INFO)
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

            columns = TextColumn("{task.description}"), BarColumn(bar_width=None), TaskProgressColumn()
            values = TextColumn("{task.fields[values]}")
            self._bar = Progress(*columns, values, console=Console(stderr=True), expand=True)
            try:
                self._exit.enter_context(self._bar)
            except RuntimeError:  # no thread can be started to draw it
                self._bar.stop()
                self._bar = None
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def __call__(self, progress: Progress) -> None:
        if self._quiet:
            return
        now = time.monotonic()
        if progress.phase != self._phase:
            self._phase, self._logged = progress.phase, now
            if self._bar:
                if progress.memory is not None:
                    say(f"{progress.phase}: {needs(progress.memory)}")
                self._task = self._bar.add_task(progress.phase, total=progress.total, values="")
        if self._bar:
            line = ", ".join(formatted_values(progress))
            self._bar.update(self._task, completed=progress.done, total=progress.total, values=line)
        elif now - self._logged >= LOG_EVERY:
            self._logged = now
            done, total = progress.done, progress.total
            share = f"{done / total:.0%}" if total else f"{quantity(done)} {progress.unit}"
            parts = [share, *formatted_values(progress)]
            if progress.memory is not None:
                parts.append(needs(progress.memory))
            say(f"{progress.phase}: {', '.join(parts)}")


def needs(memory: int) -> str:
    return f"needs about {memory / 1e6:,.0f} MB"
