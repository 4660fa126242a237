"""What the commands share beside results: errors as one line, signals, progress."""

from __future__ import annotations

import io
import logging
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

from w2v.errors import SettingsError, W2VError

if TYPE_CHECKING:
    from rich.progress import Progress

LOG_EVERY = 10.0  # seconds between lines where there is no terminal for a bar
UNITS = {"read": "bytes", "train": "words", "predict": "words"}
LATER = 0.001  # seconds
SHOW_CURSOR = "\x1b[?25h"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asks the program to end. Its notes are told."""


class Program(click.Group):
    """Commands that end with exit code 0, or with one line on standard error and another exit code.

    2 for wrong use, 1 for failed work, 128 + n for signal n.
    """

    def main(self, *args: Any, **options: Any) -> NoReturn:
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # where not all is in its encoding
        log = logging.getLogger("w2v")
        warnings = _Warnings()
        log.addHandler(warnings)
        try:
            with _signals_raise():
                code = super().main(*args, **{**options, "standalone_mode": False})
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
            _fail(1, "there is not enough memory for this")
        except Exception as error:  # a mistake of ours, still told in one line
            _fail(1, f"internal error: {type(error).__name__}: {error}")
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
    click.echo(f"w2v: {' '.join(message.split())}", err=True)


class _Warnings(logging.Handler):
    """Warnings of the package, each as one line."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Signals that end a program end it by an exception, so that threads and checkpoints are seen to.

    A second one ends it at once.
    """

    def stop(number: int, frame: object) -> NoReturn:
        for other in handled:
            signal.signal(other, signal.SIG_DFL)
        if sys.stderr.isatty():
            sys.stderr.write(SHOW_CURSOR)  # which a bar has hidden
        raise Stopped(number)

    def swallowed(ignored: Any) -> None:
        """What is raised in a destructor goes no further: raise it again, a little later."""
        if isinstance(ignored.exc_value, Stopped):
            number = ignored.exc_value.args[0]
            signal.signal(signal.SIGALRM, lambda _, frame: stop(number, frame))
            signal.setitimer(signal.ITIMER_REAL, LATER)
        else:
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
        sys.unraisablehook = hook


class Reporter:
    """Progress on standard error: a bar on a terminal, a line every ten seconds elsewhere.

    Both say how much memory training needs.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._phase = self._needs = ""
        self._bar: Progress | None = None
        self._exit = ExitStack()

    def __enter__(self) -> Reporter:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
            speed = TextColumn("{task.fields[speed]}")
            self._bar = Progress(*columns, speed, TimeRemainingColumn(), console=Console(stderr=True))
            self._exit.enter_context(self._bar)
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        """Take note that `done` of `total` bytes or words are worked through."""
        if self._quiet:
            return
        if phase == "memory":
            self._needs = f", needs about {done / 1e6:,.0f} MB"
            return
        now = time.monotonic()
        if phase != self._phase:
            self._phase, self._started, self._logged = phase, now, now
            if self._bar:
                self._task = self._bar.add_task(phase, total=total, speed="")
        speed = f"{done / max(now - self._started, 1e-3) / 1e6:.2f} M {UNITS[phase]}/s{self._needs}"
        if self._bar:
            self._bar.update(self._task, completed=done, total=total, speed=speed)
        elif now - self._logged >= LOG_EVERY:
            self._logged = now
            share = f"{done / total:.0%}" if total else f"{done / 1e6:,.0f} M"
            say(f"{phase}: {share}, {speed}")
