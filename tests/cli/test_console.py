"""Progress and messages on a terminal and in log files, and standard streams that fail."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import w2v
from tests.helpers import PROGRAM, QUICK, Terminal, needs_full_device, run, run_json, start
from w2v._cli import console
from w2v._progress import Progress

ESCAPE = re.compile(rb"\x1b\[[?0-9;]*[A-Za-z]")
HIDE, SHOW, ERASE_LINE = b"\x1b[?25l", b"\x1b[?25h", b"\x1b[2K"
TRAINING = Progress(
    "train", 250, 1000, "words", 1.28e6, 3725.4, epoch=2, epochs=5, loss=2.34567, alpha=0.0412, memory=230_000_000
)


SHOW_TRAINING = f"""
from w2v._cli import console
from w2v._progress import Progress
with console.ProgressPrinter() as report:
    report({TRAINING})
"""


def test_bar_shows_the_progress_and_ctrl_c_leaves_the_terminal_clean(sample: Path, tmp_path: Path) -> None:
    options = ["-o", tmp_path / "m.bin", "--epochs", 100_000, "--vector-size", 8]
    with Terminal("-m", "w2v", "train", sample, *options) as training:
        training.read_until(b", loss ")
        training.read_until(b"\r")
        bar = ESCAPE.sub(b"", training.shown).decode()
        training.type(b"\x03")
        assert training.wait() == 130
    assert re.search(r"train .* 0%, [\d:]+ left, epoch \d+/100000, [\d.]+ [kM] words/s, loss [\d.]+, ", bar)
    assert b"w2v: train: needs about " in training.shown
    note = b"nothing was saved; with --checkpoint DIR, a run can be resumed after Ctrl-C"
    assert training.shown.endswith(b"w2v: stopped by Ctrl-C; " + note + b"\r\n")
    assert b"[?25" not in ESCAPE.sub(b"", training.shown)  # every escape sequence is whole
    assert training.shown.rindex(SHOW) > training.shown.rindex(HIDE)


def test_cursor_is_visible_after_two_ctrl_c() -> None:
    """The first Ctrl-C shows the cursor, because the second ends the program at once."""
    program = """if True:
        import signal
        from w2v._cli import console
        from w2v._progress import Progress
        with console._raise_on_signals(), console.ProgressPrinter() as report:
            report(Progress("train", 1, 2, "words"))
            try:
                print("drawn", flush=True)
                signal.pause()
            finally:
                signal.pause()  # as if a checkpoint were being written
        """
    with Terminal("-c", program) as terminal:
        terminal.read_until(b"drawn")
        terminal.type(b"\x03")
        terminal.read_until(SHOW)
        terminal.type(b"\x03")
        assert terminal.wait() == -signal.SIGINT


def test_narrow_terminal_folds_the_values() -> None:
    """The last two columns stay free for ^C. Otherwise it would wrap, and the bar would be drawn twice."""
    with Terminal("-c", SHOW_TRAINING, width=32) as terminal:
        assert terminal.wait() == 0
    shown = ESCAPE.sub(b"", terminal.shown.rpartition(ERASE_LINE)[2]).decode()
    assert " ".join(re.sub("[━╸╺]+", "━", shown).split()) == (
        "train ━ 25%, 1:02:05 left, epoch 2/5, 1.28 M words/s, loss 2.346, alpha 0.041"
    )
    assert all(len(line.rstrip()) <= 30 for line in shown.splitlines())


def test_trials_of_tuning_are_printed_above_the_bar(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text(sample.read_text("utf-8")[:200_000], "utf-8")
    before = """if True:
        from w2v._training import search
        search.SEEDS, search.KEEP_PROBABILITY = (1,), 0
        search.CHOICES = {"window": (9,), "negative": (4,), "sample": (0.003,), "alpha": (0.5,), "min_alpha": (0.1,)}
        """
    script = before + PROGRAM[2]
    with Terminal("-c", script, "tune", tmp_path / "text", "-o", tmp_path / "m.bin", *QUICK) as terminal:
        assert terminal.wait() == 0, terminal.shown
    shown = " ".join(ESCAPE.sub(b"", terminal.shown).decode().split())  # rich folds long lines
    trials = re.findall(r"w2v: trial (\d): score \S+ best \S+ with (.*?);", shown)
    # The defaults, then a candidate with 1/9, 1/3 and all of the epochs.
    assert [number for number, _ in trials] == ["1", "2", "3", "4"]
    assert trials[3][1] == "window=9 negative=4 sample=0.003 alpha=0.0375 min_alpha=0.00375"
    assert "w2v: tuning takes about 10 minutes " in shown


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_logged_without_a_terminal(
    quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "LOG_EVERY", 0)
    with console.ProgressPrinter(quiet) as report:
        report(Progress("read", 5_000_000, None, "bytes", 2.5e6))
        report(Progress("train", 0, 1000, "words", epoch=1, epochs=5, alpha=0.05))
        report(TRAINING)
    written = capsys.readouterr().err
    lines = [
        "read: 5.00 M bytes, 2.50 M bytes/s",
        "train: 0%, epoch 1/5, alpha 0.05",
        "train: 25%, 1:02:05 left, epoch 2/5, 1.28 M words/s, loss 2.346, alpha 0.041, needs about 230 MB",
    ]
    assert re.sub(r"(?m)^w2v: [0-2]\d:[0-5]\d:[0-6]\d ", "", written).splitlines() == ([] if quiet else lines)


def test_progress_is_logged_every_ten_seconds_of_a_phase(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: now, strftime=lambda _: "12:00:00"))
    with console.ProgressPrinter() as report:
        for second in range(63):
            now = float(second)
            report(Progress("read" if second < 35 else "train", second, 100, "words"))
    lines = capsys.readouterr().err.splitlines()
    shown = ["read: 10%", "read: 20%", "read: 30%", "train: 45%", "train: 55%"]
    assert lines == [f"w2v: 12:00:00 {line}" for line in shown]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["info", "none.bin", "--json"], 1, "cannot read none.bin: No such file or directory"),
        (["train", "x", "--json", "--alpha", "-1"], 2, "alpha -1.0: it must be a number, from 0 to 1,000, but not 0"),
    ],
)
def test_errors_are_json_with_json(arguments: list[str], code: int, message: str) -> None:
    assert json.loads(run(*arguments, code=code).stderr) == {"error": message, "exit_code": code}


def test_wrong_usage_is_json_with_json() -> None:
    assert json.loads(run("info", "--json", "--not-there", code=2).stderr)["exit_code"] == 2


def test_a_word_that_looks_like_an_option_keeps_errors_as_text() -> None:
    result = run("query", "none.bin", "--", "--json", code=1)
    assert result.stderr == "w2v: cannot read none.bin: No such file or directory\n"


# -- output that cannot be written ----------------------------------------------------------


def run_redirected(redirections: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command with redirections of a shell."""
    script = f'"$@" {redirections}'
    command = ["sh", "-c", script, "sh", *PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("redirections", ["2>&-", pytest.param("2>/dev/full", marks=needs_full_device)])
def test_run_continues_if_standard_error_cannot_be_written(redirections: str, sample: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.bin"
    process = run_redirected(redirections, "train", sample, *QUICK, "-o", output)
    assert (process.returncode, process.stderr) == (0, "")
    assert output.stat().st_size
    assert "words at" in process.stdout


@needs_full_device
def test_exit_code_is_kept_if_standard_error_cannot_be_written(model: Path) -> None:
    assert run_redirected("2>/dev/full", "query", model, "--no-such-option").returncode == 2


TRAIN = "train {sample} --epochs 1 --vector-size 8 -o {out}"
WITH_CLOSED_OUTPUT = [TRAIN, "--help", "query {model} the"]
WITH_FULL_OUTPUT = [TRAIN, "info"]


@pytest.mark.parametrize(
    ("arguments", "redirections", "reason"),
    [
        (TRAIN, "<&- >&-", "Bad file descriptor"),
        *((arguments, ">&-", "Bad file descriptor") for arguments in WITH_CLOSED_OUTPUT),
        *(
            pytest.param(arguments, ">/dev/full", "No space left on device", marks=needs_full_device)
            for arguments in WITH_FULL_OUTPUT
        ),
    ],
)
def test_failing_standard_output_is_an_error_but_files_are_written(
    arguments: str, redirections: str, reason: str, sample: Path, model: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.bin"
    process = run_redirected(redirections, *arguments.format(sample=sample, model=model, out=output).split())
    assert (process.returncode, process.stderr) == (1, f"w2v: standard output: {reason}\n")
    if "{out}" in arguments:
        assert output.stat().st_size


def test_no_file_gets_the_descriptor_of_a_closed_stream(sample: Path, tmp_path: Path) -> None:
    train = ["train", sample, *QUICK, "--min-count", 5, "-o"]
    assert run(*train, tmp_path / "one.bin").exit_code == 0
    assert run_redirected("<&- >&- 2>&-", *train, tmp_path / "two.bin").returncode == 1  # the summary cannot be printed
    assert (tmp_path / "one.bin").read_bytes() == (tmp_path / "two.bin").read_bytes()


def test_closed_standard_input_is_reported_in_one_line(model: Path, tmp_path: Path) -> None:
    for arguments in (["query", model], ["train", "-", "-o", tmp_path / "m.bin"]):
        process = run_redirected("<&-", *arguments)
        assert (process.returncode, process.stderr) == (1, "w2v: cannot read standard input: Bad file descriptor\n")


@pytest.mark.parametrize("arguments", [["--help"], ["info", "--json"]])
def test_closed_pipe_causes_no_message(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        dead = subprocess.run([*PROGRAM, *arguments], stdout=pipe, stderr=subprocess.PIPE)
    assert (dead.returncode, dead.stderr) == (1, b"")


def test_run_continues_if_the_reader_of_its_log_has_ended(sample: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    script = "from w2v._cli import console; console.LOG_EVERY = 0; " + PROGRAM[2]
    command = [sys.executable, "-c", script, "train", sample, *QUICK, "-o", tmp_path / "m.bin", "--json"]
    with os.fdopen(writer, "wb") as pipe:
        process = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=pipe)
    assert process.returncode == 0
    assert b'"tokens_trained"' in process.stdout


WAIT_FOR_HANG_UP = """
import select, signal
from w2v._cli import console
signal.signal(signal.SIGHUP, signal.SIG_IGN)
console.REDRAW_EVERY = 0
report = console.ProgressPrinter.__call__
def report_and_wait(self, progress):
    report(self, progress)
    if progress.phase == "train" and progress.done:
        poll = select.poll()
        poll.register(2, 0)
        poll.poll()
console.ProgressPrinter.__call__ = report_and_wait
"""


def test_run_continues_if_its_terminal_is_closed(sample: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.bin"
    with Terminal("-c", WAIT_FOR_HANG_UP + PROGRAM[2], "train", sample, "-o", output, *QUICK) as terminal:
        terminal.read_until(b"words/s")
        terminal.hang_up()
        assert terminal.process.wait() == 1  # the summary cannot be printed
    assert output.stat().st_size


# -- text that could control a terminal -----------------------------------------------------

HOSTILE = ["\x1b]0;title\x07", "a\x9b31m", "left\u202eright", "plain", "می\u200cروم"]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a model with escape sequences in its words and its file name."""
    vectors = np.eye(len(HOSTILE), dtype=np.float32) + 1
    path = tmp_path / "\x9b31m.bin"  # Windows allows no \x1b in names
    w2v.KeyedVectors(HOSTILE, vectors).save(path)
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "plain"],
        ["info"],
        ["similarity", "pairs", "--verbose"],
        ["analogy", "questions"],
        ["convert", "\x9b.txt"],
        ["evaluate"],
        ["compare", "\x9b31m.bin"],
    ],
    ids=" ".join,
)
def test_text_of_files_cannot_control_the_terminal(arguments: list[str], hostile: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text(f"plain \x1b[31mno 1\nplain {HOSTILE[1]} 2\n", "utf-8")
    (tmp_path / "questions").write_text(f": \x1b[31m\nplain {HOSTILE[1]} plain {HOSTILE[2]}\n", "utf-8")
    command, *others = arguments
    rest = [each if command == "query" or each[0] == "-" else tmp_path / each for each in others]
    shown = run(command, hostile, *rest).stdout
    assert not set(shown) & set("\x1b\x9b\x07\u202e")
    assert re.search(r"\\x[19]b", shown)


def test_harmless_text_and_json_are_printed_unchanged(hostile: Path) -> None:
    assert "می\u200cروم" in run("query", hostile, "plain").stdout
    assert {each["word"] for each in run_json("query", hostile, "plain")["found"]} == {*HOSTILE} - {"plain"}


# -- signals --------------------------------------------------------------------------------


SIGNAL_IN_A_METHOD = """
import os, signal
from w2v._cli import console
class Something:
    def __init__(self):
        end_in("__init__")
        self.made = True
    def __del__(self):
        end_in("__del__")
        assert self.made
def end_in(method):
    if method == METHOD:
        signal.raise_signal(signal.SIGTERM)
        "any call runs the signal handler".split()
report = console.ProgressPrinter.__call__
def show(self, progress):
    report(self, progress)
    if progress.phase == "train" and progress.done:
        Something()
console.ProgressPrinter.__call__ = show
"""


@pytest.mark.parametrize("method", ["__init__", "__del__"])
def test_signal_in_a_constructor_or_destructor_ends_the_program(method: str, sample: Path, tmp_path: Path) -> None:
    before = SIGNAL_IN_A_METHOD.replace("METHOD", repr(method))
    arguments = ["train", sample, "-o", tmp_path / "m.bin", "--epochs", 100_000]
    with start(*arguments, before=before, text=True) as process:
        _, stderr = process.communicate()
    assert (process.returncode, stderr) == (143, "w2v: stopped by SIGTERM\n")


SIGNAL_DURING_IMPORTS = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
from w2v.__main__ import main
sys.argv = ["w2v", "info"]
main()
"""


def test_signal_during_imports_leaves_no_traceback() -> None:
    process = subprocess.run([sys.executable, "-c", SIGNAL_DURING_IMPORTS], capture_output=True, text=True)
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "w2v: stopped by Ctrl-C\n")
