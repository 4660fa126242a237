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
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import PROGRAM, QUICK, assert_one_line, run, run_json
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

    def read_until(self, expected: bytes, seconds: float = 60) -> None:
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
        return self.process.wait(timeout=60)

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
        "w2v: read: 5.00 M bytes, 2.50 M bytes/s",
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


# -- output that cannot be written ----------------------------------------------------------


def shell(redirected: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command with a shell's redirections."""
    script = f'"$@" {redirected}'
    command = ["sh", "-c", script, "sh", *PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", "2>&- <&-"])
def test_a_log_that_cannot_be_written_stops_no_run(closed: str, sample: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.bin"
    done = shell(closed, "train", sample, *QUICK, "-o", output)
    assert (done.returncode, done.stderr) == (0, "")
    assert output.stat().st_size
    assert "vocabulary" in done.stdout


@pytest.mark.parametrize(("closed", "word"), [("2>&-", "nowhere"), ("2>/dev/full", "--nowhere")])
def test_exit_codes_without_a_log(closed: str, word: str, sample: Path, model: Path, tmp_path: Path) -> None:
    assert shell(closed, "query", model, word).returncode == 1 + word.startswith("--")
    done = shell(closed, "vocab", sample, "-o", tmp_path / "words")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "words").stat().st_size
    assert "vocabulary" in done.stdout


CLOSED, FULL = (">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")


@pytest.mark.parametrize(
    ("command", "redirections"),
    [(["train", *QUICK], [CLOSED, FULL, ("<&- >&-", "Bad file descriptor")]), (["vocab"], [CLOSED])],
    ids=["train", "vocab"],
)
def test_files_are_written_though_the_summary_cannot_be_printed(
    command: list[str], redirections: list[tuple[str, str]], sample: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.bin"
    for redirected, reason in redirections:
        done = shell(redirected, *command, sample, "-o", output)
        assert (done.returncode, done.stderr) == (1, f"w2v: standard output: {reason}\n")
        assert output.stat().st_size
        output.unlink()


@pytest.mark.parametrize(
    ("arguments", "redirections"),
    [
        ("--help", [CLOSED, FULL]),
        ("--version", [CLOSED]),
        ("info --json", [FULL]),
        ("query {} the", [CLOSED, FULL]),
        ("analogy {}", [CLOSED]),
    ],
)
def test_a_result_that_cannot_be_printed_is_an_error(
    arguments: str, redirections: list[tuple[str, str]], model: Path
) -> None:
    for redirected, reason in redirections:
        done = shell(redirected, *arguments.format(model).split())
        assert (done.returncode, done.stderr) == (1, f"w2v: standard output: {reason}\n")


def test_with_all_streams_closed_no_file_takes_their_place(sample: Path, tmp_path: Path) -> None:
    train = ["train", sample, *QUICK, "--min-count", 5, "-o"]
    assert run(*train, tmp_path / "one.bin").exit_code == 0
    assert shell("<&- >&- 2>&-", *train, tmp_path / "two.bin").returncode == 1  # its summary is not printed
    assert (tmp_path / "one.bin").read_bytes() == (tmp_path / "two.bin").read_bytes()


def test_closed_standard_input_is_one_line(model: Path, tmp_path: Path) -> None:
    for arguments in (["query", model], ["train", "-", "-o", tmp_path / "m.bin"]):
        done = shell("<&-", *arguments)
        assert (done.returncode, done.stderr) == (1, "w2v: cannot read standard input: Bad file descriptor\n")


@pytest.mark.parametrize("arguments", [["info"], ["info", "--json"], ["--help"]])
def test_a_pipe_that_nobody_reads_is_quiet(arguments: list[str]) -> None:
    done = shell("| true", *arguments)
    assert (done.returncode, done.stderr) == (0, "")  # of `true`
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        dead = subprocess.run([*PROGRAM, *arguments], stdout=pipe, stderr=subprocess.PIPE, timeout=60)
    assert (dead.returncode, dead.stderr) == (1, b"")


def test_a_log_into_a_dead_pipe_stops_nothing(sample: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    script = "from w2v.cli import console; console.LOG_EVERY = 0; " + PROGRAM[2]
    command = [sys.executable, "-c", script, "train", sample, *QUICK, "-o", tmp_path / "m.bin", "--json"]
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=pipe, timeout=60)
    assert done.returncode == 0
    assert b'"tokens_trained"' in done.stdout


UNTIL_IT_HANGS_UP = """
import select, signal
from w2v.cli import console
signal.signal(signal.SIGHUP, signal.SIG_IGN)
report = console.Reporter.__call__
def report_and_wait(self, progress):
    report(self, progress)
    if progress.phase == "train" and progress.done:
        poll = select.poll()
        poll.register(2, 0)
        poll.poll(60_000)
console.Reporter.__call__ = report_and_wait
"""


def test_a_terminal_that_is_closed_stops_no_run(sample: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.bin"
    terminal = Terminal("-c", UNTIL_IT_HANGS_UP + PROGRAM[2], "train", sample, "-o", output, *QUICK)
    try:
        terminal.read_until(b"words/s")
        os.close(terminal._leader)
        assert terminal.process.wait(timeout=60) == 1  # its summary is not printed
        assert output.stat().st_size
    finally:
        terminal.process.kill()
        terminal.process.wait()


def test_a_bar_that_gets_no_thread_is_left_out() -> None:
    script = """if True:
        import threading
        from w2v.cli import console
        from w2v.progress import Progress
        def start(self):
            raise RuntimeError("can't start new thread")
        threading.Thread.start = start
        console.LOG_EVERY = 0
        with console.Reporter() as report:
            report(Progress("train", 1, 2, "words"))
        """
    terminal = Terminal("-c", script)
    try:
        assert terminal.wait() == 0
        assert b"w2v: train: 50%" in terminal.shown
        assert terminal.shown.rindex(SHOW) > terminal.shown.rindex(HIDE)
    finally:
        terminal.close()


# -- text that could control a terminal -----------------------------------------------------

HOSTILE = ["\x1b]0;title\x07", "a\x9b31m", "left\u202eright", "plain", "می\u200cروم"]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    vectors = np.eye(len(HOSTILE), dtype=np.float32) + 1
    path = tmp_path / "\x1b[31m.bin"
    w2v.KeyedVectors(HOSTILE, vectors).save(path)
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "plain"],
        ["info"],
        ["similarity", "pairs"],
        ["analogy", "questions"],
        ["convert", "\x1b.txt"],
        ["evaluate"],
        ["compare", "\x1b[31m.bin"],
    ],
    ids=" ".join,
)
def test_text_of_files_cannot_control_the_terminal(arguments: list[str], hostile: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text(f"plain \x1b[31mno 1\nplain {HOSTILE[1]} 2\n", "utf-8")
    (tmp_path / "questions").write_text(f": \x1b[31m\nplain {HOSTILE[1]} plain {HOSTILE[2]}\n", "utf-8")
    command, *others = arguments
    rest: list[Any] = others if command == "query" else [tmp_path / other for other in others]
    shown = run(command, hostile, *rest).stdout
    assert not set(shown) & set("\x1b\x9b\x07\u202e")
    assert "\\x1b" in shown


def test_harmless_text_is_printed_as_it_is(hostile: Path) -> None:
    assert "می\u200cروم" in run("query", hostile, "plain").stdout


def test_json_is_exact(hostile: Path) -> None:
    assert {each["word"] for each in run_json("query", hostile, "plain")["found"]} == {*HOSTILE} - {"plain"}


def test_errors_cannot_control_the_terminal(hostile: Path) -> None:
    for arguments in (["query", hostile, "\x1b[31mno"], ["info", "\x1b[31m"]):
        assert "\\x1b[31m" in run(*arguments, code=1).stderr


# -- limits of the system -------------------------------------------------------------------


def test_a_thread_that_cannot_be_started_is_one_line(sample: Path, tmp_path: Path) -> None:
    script = f"""if True:
        import threading
        def start(self):
            raise RuntimeError("can't start new thread")
        threading.Thread.start = start
        {PROGRAM[2]}
        """
    command = [sys.executable, "-c", script]
    for workers in 1, 2:
        done = subprocess.run(
            [*command, "train", sample, "-o", tmp_path / "m.bin", "--workers", str(workers)],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1
        assert_one_line(done.stderr)
        assert done.stderr.startswith("w2v: cannot start another thread")
