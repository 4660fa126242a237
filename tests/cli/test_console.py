"""What a terminal shows while a command works, and what a log file gets instead."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from w2v.cli import console
from w2v.progress import Progress

ESCAPE = re.compile(rb"\x1b\[[?0-9;]*[A-Za-z]")
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"
TRAINING = Progress(
    "train", 250, 1000, "words", 1.28e6, 3725.4, epoch=2, epochs=5, loss=2.34567, alpha=0.0412, memory=230_000_000
)


class Terminal:
    """A Python program on a pseudo-terminal of 80 columns, and what it has shown."""

    def __init__(self, *arguments: object) -> None:
        self.shown = b""
        self._leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=os.environ | {"TERM": "xterm"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that what is typed as Ctrl-C is a signal
        )
        os.close(follower)

    def type(self, text: bytes) -> None:
        os.write(self._leader, text)

    def read_until(self, expected: bytes, seconds: float = 20) -> None:
        """Read until this is shown after what was shown before."""
        start, end = len(self.shown), time.monotonic() + seconds
        while expected not in self.shown[start:]:
            assert select.select([self._leader], [], [], max(0, end - time.monotonic()))[0], self.shown
            self.shown += os.read(self._leader, 4096)

    def wait(self) -> int:
        """Read to the end; returns the exit code."""
        try:
            while data := os.read(self._leader, 4096):
                self.shown += data
        except OSError:  # how Linux tells that nobody is left at the other end
            pass
        return self.process.wait(timeout=10)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._leader)


@pytest.fixture
def training(sample: Path, tmp_path: Path) -> Iterator[Terminal]:
    """A training on a terminal that has no end, once its bar is shown."""
    options = ["-o", tmp_path / "m.bin", "--epochs", 100_000, "--vector-size", 8]
    terminal = Terminal("-m", "w2v", "train", sample, *options)
    try:
        terminal.read_until(b"words/s")
        yield terminal
    finally:
        terminal.close()


def test_ctrl_c_leaves_the_terminal_clean(training: Terminal) -> None:
    training.type(b"\x03")
    assert training.wait() == 130
    assert training.shown.endswith(b"w2v: stopped by Ctrl-C\r\n")
    assert b"[?25" not in ESCAPE.sub(b"", training.shown)  # every escape sequence is whole
    assert training.shown.rindex(SHOW) > training.shown.rindex(HIDE)


def test_first_ctrl_c_shows_the_cursor_for_the_second_ends_the_program_at_once() -> None:
    program = """if True:
        import time
        from w2v.cli import console
        from w2v.progress import Progress
        with console._signals_raise(), console.Reporter() as report:
            report(Progress("train", 1, 2, "words"))
            try:
                time.sleep(60)
            finally:
                time.sleep(60)  # as if a checkpoint were being written
        """
    terminal = Terminal("-c", program)
    try:
        terminal.read_until(b"50%")
        terminal.type(b"\x03")
        terminal.read_until(SHOW)
        terminal.type(b"\x03")
        assert terminal.wait() == -signal.SIGINT
    finally:
        terminal.close()


def test_bar_shows_where_the_training_stands(training: Terminal) -> None:
    training.read_until(b"left")
    shown = ESCAPE.sub(b"", training.shown).decode()
    assert "w2v: train: needs about " in shown
    assert re.search(
        r"train +.* 0% epoch \d+/100000, loss \d\.\d{3}, alpha 0\.05, \d\.\d\d M words/s, [\d:]+ left", shown
    )


def test_log_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(console, "LOG_EVERY", 0)
    with console.Reporter() as report:
        report(Progress("read", 5_000_000, None, "bytes", 2.5e6))
        report(Progress("train", 0, 1000, "words", epoch=1, epochs=5, alpha=0.05))
        report(TRAINING)
    assert capsys.readouterr().err.splitlines() == [
        "w2v: read: 5 M bytes, 2.50 M bytes/s",
        "w2v: train: 0%, epoch 1/5, alpha 0.05",
        "w2v: train: 25%, epoch 2/5, loss 2.346, alpha 0.041, 1.28 M words/s, 1:02:05 left, needs about 230 MB",
    ]


def test_log_lines_are_rare(capsys: pytest.CaptureFixture[str]) -> None:
    with console.Reporter() as report:
        for _ in range(100):
            report(TRAINING)
    assert capsys.readouterr().err == ""


def test_quiet_reports_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(console, "LOG_EVERY", 0)
    with console.Reporter(quiet=True) as report:
        report(TRAINING)
    assert capsys.readouterr().err == ""
