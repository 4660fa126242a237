"""What a terminal shows while a command works, and what a log file gets instead."""

import io
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

import w2v
from tests.helpers import PROGRAM, QUICK, Terminal, run, run_json, start
from w2v.cli import console
from w2v.progress import Progress

ESCAPE = re.compile(rb"\x1b\[[?0-9;]*[A-Za-z]")
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"
TRAINING = Progress(
    "train", 250, 1000, "words", 1.28e6, 3725.4, epoch=2, epochs=5, loss=2.34567, alpha=0.0412, memory=230_000_000
)


@pytest.fixture
def training(sample, tmp_path):
    """A training on a terminal that has no end, once its bar is shown."""
    options = ["-o", tmp_path / "m.bin", "--epochs", 100_000, "--vector-size", 8]
    with Terminal("-m", "w2v", "train", sample, *options) as terminal:
        terminal.read_until(b"words/s")
        yield terminal


def test_ctrl_c_leaves_the_terminal_clean(training):
    training.type(b"\x03")
    assert training.wait() == 130
    note = b"nothing was saved; with --checkpoint states, a run can be resumed after Ctrl-C"
    assert training.shown.endswith(b"w2v: stopped by Ctrl-C; " + note + b"\r\n")
    assert b"[?25" not in ESCAPE.sub(b"", training.shown)  # every escape sequence is whole
    assert training.shown.rindex(SHOW) > training.shown.rindex(HIDE)


def test_first_ctrl_c_shows_the_cursor_for_the_second_ends_the_program_at_once():
    program = """if True:
        import signal
        from w2v.cli import console
        from w2v.progress import Progress
        with console._signals_raise(), console.Reporter() as report:
            report(Progress("train", 1, 2, "words"))
            try:
                signal.pause()
            finally:
                signal.pause()  # as if a checkpoint were being written
        """
    with Terminal("-c", program) as terminal:
        terminal.read_until(b"50%")
        terminal.type(b"\x03")
        terminal.read_until(SHOW)
        terminal.type(b"\x03")
        assert terminal.wait() == -signal.SIGINT


def test_bar_shows_where_the_training_stands(training):
    training.read_until(b", loss ")
    training.read_until(b"\r")
    shown = ESCAPE.sub(b"", training.shown).decode()
    assert "w2v: train: needs about " in shown
    assert re.search(r"train .* 0%, [\d:]+ left, epoch \d+/100000, [\d.]+ [kM] words/s, loss [\d.]+\s", shown)


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (100, "train ━ 25%, 1:02:05 left, epoch 2/5, 1.28 M words/s, loss 2.346, alpha 0.041"),
        (65, "train ━ 25%, 1:02:05 left, epoch 2/5, 1.28 M words/s"),
        (30, "train ━ 25%, 1:02:05 left"),
        (16, "train ━ 25%"),
        (12, "train ━"),
        (10, "train"),
    ],
)
def test_a_narrow_terminal_loses_numbers_then_the_bar(width, expected):
    """And no line reaches the last two columns, where Ctrl-C is shown: it would wrap, and a bar be drawn twice."""
    bars = console.Reporter()
    bars(TRAINING)
    drawn = Console(width=width, file=io.StringIO(), force_terminal=True, color_system="standard")
    with drawn.capture() as shown:
        drawn.print(bars)
    (line,) = ESCAPE.sub(b"", shown.get().encode()).decode().splitlines()
    assert re.sub("[━╸╺]+", "━", line.rstrip()) == expected
    assert len(line.rstrip()) == (width - 2 if "━" in line else 5)


@pytest.mark.parametrize("width", [80, 100])
def test_trials_of_tuning_stay_above_the_bar(width, sample, tmp_path):
    (tmp_path / "text").write_text(sample.read_text("utf-8")[:200_000], "utf-8")
    before = """if True:
        from w2v.training import tune
        tune.SEEDS, tune.KEEP_PROBABILITY = (1,), 0
        tune.CHOICES = {"window": (9,), "negative": (4,), "sample": (0.003,), "alpha": (0.5,), "min_alpha": (0.1,)}
        """
    script = before + PROGRAM[2]
    with Terminal("-c", script, "tune", tmp_path / "text", "-o", tmp_path / "m.bin", *QUICK, width=width) as terminal:
        assert terminal.wait() == 0, terminal.shown
    rows = re.findall(rb"\r\x1b\[2K( +(\d+) +\d+%[^\r\x1b]*(?:\r\n {44}[^\r\x1b]*)*)", terminal.shown)
    assert b"".join(number for _, number in rows) == b"1234"  # the defaults; a candidate with 1/9, 1/3, all epochs
    assert all(len(line) <= width for row, _ in rows for line in row.split(b"\r\n"))
    assert rows[3][0].split()[6:] == b"window=9 negative=4 sample=0.003 alpha=0.0375 min_alpha=0.00375".split()
    assert b"w2v: tuning takes about 10 minutes\r\n" in terminal.shown
    assert b"tune " not in ESCAPE.sub(b"", terminal.shown.rsplit(b"\x1b[2K", 1)[1])  # the bar is gone


def test_log_lines_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(console, "LOG_EVERY", 0)
    with console.Reporter() as report:
        report(Progress("read", 5_000_000, None, "bytes", 2.5e6))
        report(Progress("train", 0, 1000, "words", epoch=1, epochs=5, alpha=0.05))
        report(TRAINING)
    written = capsys.readouterr().err
    assert re.sub(r"(?m)^w2v: [0-2]\d:[0-5]\d:[0-6]\d ", "", written).splitlines() == [
        "read: 5.00 M bytes, 2.50 M bytes/s",
        "train: 0%, epoch 1/5, alpha 0.05",
        "train: 25%, 1:02:05 left, epoch 2/5, 1.28 M words/s, loss 2.346, alpha 0.041, needs about 230 MB",
    ]


@pytest.mark.parametrize(("every", "quiet"), [(console.LOG_EVERY, False), (0, True)])
def test_log_lines_are_rare_and_not_there_with_quiet(every, quiet, monkeypatch, capsys):
    monkeypatch.setattr(console, "LOG_EVERY", every)
    with console.Reporter(quiet=quiet) as report:
        for _ in range(100):
            report(TRAINING)
    assert capsys.readouterr().err == ""


# -- output that cannot be written ----------------------------------------------------------


def shell(redirected, *arguments):
    """Run a command with a shell's redirections."""
    script = f'"$@" {redirected}'
    command = ["sh", "-c", script, "sh", *PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", "2>&- <&-"])
def test_a_log_that_cannot_be_written_stops_no_run(closed, sample, tmp_path):
    output = tmp_path / "m.bin"
    done = shell(closed, "train", sample, *QUICK, "-o", output)
    assert (done.returncode, done.stderr) == (0, "")
    assert output.stat().st_size
    assert "words at" in done.stdout


@pytest.mark.parametrize(("closed", "word"), [("2>&-", "nowhere"), ("2>/dev/full", "--nowhere")])
def test_exit_codes_without_a_log(closed, word, model):
    assert shell(closed, "query", model, word).returncode == 1 + word.startswith("--")


CLOSED, FULL = (">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")


@pytest.mark.parametrize(
    ("arguments", "redirections"),
    [
        ("train {sample} --epochs 1 --vector-size 8 -o {out}", [CLOSED, FULL, ("<&- >&-", "Bad file descriptor")]),
        ("vocab {sample} -o {out}", [CLOSED]),
        ("--help", [CLOSED, FULL]),
        ("--version", [CLOSED]),
        ("info --json", [FULL]),
        ("query {model} the", [CLOSED, FULL]),
        ("analogy {model}", [CLOSED]),
    ],
)
def test_what_cannot_be_printed_is_an_error_and_files_are_written(arguments, redirections, sample, model, tmp_path):
    output = tmp_path / "out.bin"
    for redirected, reason in redirections:
        done = shell(redirected, *arguments.format(sample=sample, model=model, out=output).split())
        assert (done.returncode, done.stderr) == (1, f"w2v: standard output: {reason}\n")
        if "{out}" in arguments:
            assert output.stat().st_size
            output.unlink()


def test_with_all_streams_closed_no_file_takes_their_place(sample, tmp_path):
    train = ["train", sample, *QUICK, "--min-count", 5, "-o"]
    assert run(*train, tmp_path / "one.bin").exit_code == 0
    assert shell("<&- >&- 2>&-", *train, tmp_path / "two.bin").returncode == 1  # its summary is not printed
    assert (tmp_path / "one.bin").read_bytes() == (tmp_path / "two.bin").read_bytes()


def test_closed_standard_input_is_one_line(model, tmp_path):
    for arguments in (["query", model], ["train", "-", "-o", tmp_path / "m.bin"]):
        done = shell("<&-", *arguments)
        assert (done.returncode, done.stderr) == (1, "w2v: cannot read standard input: Bad file descriptor\n")


@pytest.mark.parametrize("arguments", [["info"], ["info", "--json"], ["--help"]])
def test_a_pipe_that_nobody_reads_is_quiet(arguments):
    done = shell("| true", *arguments)
    assert (done.returncode, done.stderr) == (0, "")  # of `true`
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        dead = subprocess.run([*PROGRAM, *arguments], stdout=pipe, stderr=subprocess.PIPE)
    assert (dead.returncode, dead.stderr) == (1, b"")


def test_a_log_into_a_dead_pipe_stops_nothing(sample, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    script = "from w2v.cli import console; console.LOG_EVERY = 0; " + PROGRAM[2]
    command = [sys.executable, "-c", script, "train", sample, *QUICK, "-o", tmp_path / "m.bin", "--json"]
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=pipe)
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
        poll.poll()
console.Reporter.__call__ = report_and_wait
"""


def test_a_terminal_that_is_closed_stops_no_run(sample, tmp_path):
    output = tmp_path / "m.bin"
    with Terminal("-c", UNTIL_IT_HANGS_UP + PROGRAM[2], "train", sample, "-o", output, *QUICK) as terminal:
        terminal.read_until(b"words/s")
        terminal.hang_up()
        assert terminal.process.wait() == 1  # its summary is not printed
    assert output.stat().st_size


def test_a_bar_that_gets_no_thread_is_left_out():
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
    with Terminal("-c", script) as terminal:
        assert terminal.wait() == 0
    assert re.search(rb"w2v: \d\d:\d\d:\d\d train: 50%", terminal.shown)
    assert terminal.shown.rindex(SHOW) > terminal.shown.rindex(HIDE)


# -- text that could control a terminal -----------------------------------------------------

HOSTILE = ["\x1b]0;title\x07", "a\x9b31m", "left\u202eright", "plain", "می\u200cروم"]


@pytest.fixture
def hostile(tmp_path):
    vectors = np.eye(len(HOSTILE), dtype=np.float32) + 1
    path = tmp_path / "\x1b[31m.bin"
    w2v.KeyedVectors(HOSTILE, vectors).save(path)
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "plain"],
        ["info"],
        ["similarity", "pairs", "--verbose"],
        ["analogy", "questions"],
        ["convert", "\x1b.txt"],
        ["evaluate"],
        ["compare", "\x1b[31m.bin"],
    ],
    ids=" ".join,
)
def test_text_of_files_cannot_control_the_terminal(arguments, hostile, tmp_path):
    (tmp_path / "pairs").write_text(f"plain \x1b[31mno 1\nplain {HOSTILE[1]} 2\n", "utf-8")
    (tmp_path / "questions").write_text(f": \x1b[31m\nplain {HOSTILE[1]} plain {HOSTILE[2]}\n", "utf-8")
    command, *others = arguments
    rest = [each if command == "query" or each[0] == "-" else tmp_path / each for each in others]
    shown = run(command, hostile, *rest).stdout
    assert not set(shown) & set("\x1b\x9b\x07\u202e")
    assert "\\x1b" in shown


def test_harmless_text_and_json_are_exact(hostile):
    assert "می\u200cروم" in run("query", hostile, "plain").stdout
    assert {each["word"] for each in run_json("query", hostile, "plain")["found"]} == {*HOSTILE} - {"plain"}


def test_errors_cannot_control_the_terminal(hostile):
    for arguments in (["query", hostile, "\x1b[31mno"], ["info", "\x1b[31m"]):
        assert "\\x1b[31m" in run(*arguments, code=1).stderr


# -- limits of the system -------------------------------------------------------------------


IN_A_METHOD = """
import os, signal
from w2v.cli import console
class Something:
    def __init__(self):
        end_in("__init__")
        self.made = True
    def __del__(self):
        end_in("__del__")
        assert self.made
def end_in(method):
    if method == METHOD:
        os.kill(os.getpid(), signal.SIGTERM)
        "here it is raised".split()
report = console.Reporter.__call__
def show(self, progress):
    report(self, progress)
    if progress.phase == "train" and progress.done:
        Something()
console.Reporter.__call__ = show
"""


@pytest.mark.parametrize("method", ["__init__", "__del__"])
def test_a_signal_while_an_object_is_made_or_destroyed(method, sample, tmp_path):
    before = IN_A_METHOD.replace("METHOD", repr(method))
    arguments = ["train", sample, "-o", tmp_path / "m.bin", "--epochs", 100_000]
    with start(*arguments, before=before, text=True) as process:
        _, stderr = process.communicate()
    assert (process.returncode, stderr) == (143, "w2v: stopped by SIGTERM\n")


DURING_IMPORTS = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from w2v.__main__ import main
sys.argv = ["w2v", "info"]
main()
"""


def test_a_signal_during_imports_leaves_no_traceback():
    done = subprocess.run([sys.executable, "-c", DURING_IMPORTS], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"w2v: stopped by Ctrl-C\n")
