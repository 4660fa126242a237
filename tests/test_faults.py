"""What goes wrong around a run: calls of the system that fail, memory that is refused, kills, full disks, extremes.

This is a selection; `make faults` does all of it. See tests/faults.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.faults import fuzz, injection, run, variants
from w2v.cli.main import COMMANDS
from w2v.formats import table
from w2v.losses.registry import LOSSES

needs_shim = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="preloads a library, which it compiles, on Linux"
)


@pytest.fixture(scope="module")
def injecting(tmp_path_factory):
    """A process that runs scenarios, see injection.main."""
    command = injection.preloaded(tmp_path_factory.mktemp("injecting"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        yield process
        process.communicate()


@needs_shim
@pytest.mark.parametrize(
    ("name", "amount", "expected"),
    [
        ("fail", 20, ("done", "refused")),
        ("full", 30, ("refused",)),
        ("memory", 60, ("done", "refused")),
        ("kill", 60, ("begun again", "gone on")),
        ("random", 4, ("killed",)),
        ("signals", 4, ("stopped",)),
        ("commands", 1000, ("done", "refused")),
        ("streams", 12, ("done", "not printed")),
    ],
)
def test_whatever_fails_nothing_is_lost(injecting, name, amount, expected):
    print(name, amount, 1, file=injecting.stdin, flush=True)
    found = ""
    for line in injecting.stdout:
        if line == "\n":
            break
        found = line
    else:
        pytest.fail(injecting.stderr.read())
    assert all(verdict in found for verdict in expected), found


FULL = """
import shutil, subprocess, sys
from pathlib import Path
room, size = Path(sys.argv[1]), sys.argv[2]
room.mkdir()
if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(room)], capture_output=True).returncode:
    raise SystemExit(77)
(room / "old.bin").write_bytes(b"2 1\\nold 1\\n")
train = [sys.executable, "-m", "w2v", "train", sys.argv[3], "-o", str(room / "old.bin")]
train += ["--force", "--quiet", "--epochs", "1", *sys.argv[4:]]
done = subprocess.run(train, capture_output=True, text=True, env={"TMPDIR": str(room), "HOME": str(room)})
print(done.returncode, (room / "old.bin").stat().st_size, len(list(room.iterdir())), done.stderr, end="")
"""


@pytest.mark.skipif(not shutil.which("unshare"), reason="mounts a small disk of its own")
@pytest.mark.parametrize(("size", "vector_size", "message"), [("64k", 8, "ids to"), ("2m", 300, "old.bin")])
def test_a_full_disk(sample, tmp_path, size, vector_size, message):
    options = ["--vector-size", str(vector_size)]
    command = ["unshare", "--mount", sys.executable, "-c", FULL, str(tmp_path / "disk"), size, str(sample), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("mounting is not allowed here")
    code, left, files, message_shown = done.stdout.split(" ", 3)
    assert (code, left, files) == ("1", "10", "1"), done.stdout + done.stderr
    assert message_shown.count("\n") == 1
    assert "No space left on device" in message_shown or "not enough" in message_shown or "free" in message_shown
    assert message in message_shown


def test_a_folder_that_is_removed_while_it_trains(sample, tmp_path):
    room = tmp_path / "room"
    room.mkdir()

    def remove(progress):
        if progress.phase == "train":
            shutil.rmtree(room, True)

    model = w2v.train(sample, cache=room, epochs=1, vector_size=8, progress=remove)
    assert model.metrics["tokens_trained"] == model.metrics["tokens"]
    with pytest.raises(w2v.W2VError, match=r"cannot write .*model\.bin: No such file or directory"):
        model.save(room / "model.bin")


SOAK = """
import os, sys, w2v
from w2v.system import memory
sizes = []
for round in range(40):
    model = w2v.train([["a", "b", "c", "d"] * 5] * 50, min_count=1, negative=2, vector_size=20, epochs=1, workers=4)
    model.save(sys.argv[1], force=True)
    w2v.load(sys.argv[1])
    sizes.append((memory.held(), len(os.listdir("/proc/self/fd"))))
print(*sizes[9], *sizes[-1])
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's figures of a process")
def test_many_runs_in_one_process_hold_no_more(tmp_path):
    command = [sys.executable, "-c", SOAK, str(tmp_path / "m.safetensors")]
    figures = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    memory, files, memory_then, files_then = map(int, figures)
    assert files_then == files
    assert memory_then - memory < 8 << 20


def test_every_command_and_scenario_has_its_injections():
    assert {name.split()[0] for name in injection.COMMANDS} | {"train"} == {*COMMANDS}
    losses = {
        job.command[job.command.index("--loss") + 1] for job in injection.kinds_of_training() if "--loss" in job.command
    }
    assert losses == {*LOSSES}
    assert [*injection.SCENARIOS] == run.PARTS[: len(injection.SCENARIOS)]


def test_a_short_run_has_every_part_that_tests_do_not_show():
    assert {*run.SHORT, "proven"} == {*run.PARTS}


def test_every_format_is_fuzzed():
    assert {*fuzz.FORMATS.values()} == {one.name for one in table.FORMATS}
    several = {name for name, (whole, _) in fuzz.FILES.items() if name in fuzz.FORMATS}
    assert {fuzz.FORMATS[name] for name in several} == {
        one.name for one in table.FORMATS if one.folder or one.companion
    }


FINDING = """
import json, sys
for name, code in (("a", 77), ("b", 0), ("c", 77), ("d", 0)):
    print(json.dumps({"loader": name, "code": code, "number_of_executed_units": "9"}), flush=True)
    print("x" * 100_000 if code else "", file=sys.stderr, flush=True)
raise SystemExit("harmed: a, c")
"""


def test_a_finding_of_the_fuzzer_is_shown_and_fails_in_the_end(tmp_path, monkeypatch, capfd):
    (tmp_path / "tests" / "faults").mkdir(parents=True)
    (tmp_path / "tests" / "faults" / "fuzz.py").write_text(FINDING)
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    rows = []
    with pytest.raises(SystemExit, match="exit code 1"):
        rows += run.programs("fuzz", 1)
    said = capfd.readouterr().err
    assert "harmed: a, c" in said
    assert "BrokenPipeError" not in said


MANY_WORDS = [[f"w{i % 150}" for i in range(start, start + 40)] for start in range(0, 6000, 40)]


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
@pytest.mark.parametrize(
    "options",
    [
        *({"vector_size": size} for size in (1, 7, 16, 17, 1000)),
        *({name: value} for name in ("window", "negative") for value in (1, 100)),
        *({"sample": value} for value in (0, 1e-9)),
        {"loss": "hs", "window": 100},
        {"workers": 64},
    ],
    ids=str,
)
def test_extreme_settings(model, options):
    values = {"min_count": 1, "epochs": 2, "sample": 0, "vector_size": 10} | options
    if values["sample"] == 1e-9:
        with pytest.raises(w2v.W2VError, match="nothing to learn"):
            w2v.train(MANY_WORDS, model=model, **values)
        return
    trained = w2v.train(MANY_WORDS, model=model, **values)
    assert trained.metrics["tokens_trained"] == 2 * 6000
    assert np.isfinite(trained.inputs).all()
    assert np.isfinite(trained.outputs).all()
    assert trained.inputs.shape == (150, values["vector_size"])


@pytest.mark.parametrize("loss", ["ns", "nce", "sampled", "hs", "class", "softmax"])
@pytest.mark.parametrize("model", ["skipgram", "cbow"])
@pytest.mark.parametrize("words", ["a b", "a b c"])
def test_the_smallest_corpora(loss, words, model):
    options = {"min_count": 1, "negative": 1, "sample": 0, "vector_size": 3, "epochs": 5}
    trained = w2v.train([words.split()], loss=loss, model=model, **options)
    assert trained.metrics["tokens_trained"] == 5 * len(words.split())
    assert np.isfinite(trained.inputs).all()
    with pytest.raises(w2v.W2VError, match="the vocabulary has one word, 'a'"):
        w2v.train([["a", "a"]], loss=loss, **options)


@pytest.mark.parametrize("loss", ["ns", "nce", "sampled", "hs", "class"])
def test_counts_beyond_32_bits(tmp_path, loss):
    (tmp_path / "words").write_text("".join(f"w{i} {(1 << 40) // (i + 1)}\n" for i in range(150)))
    vocabulary = w2v.Vocabulary.load(tmp_path / "words")
    assert vocabulary.tokens > 1 << 42
    trained = w2v.train(MANY_WORDS, vocabulary=vocabulary, loss=loss, sample=0, epochs=2, vector_size=10)
    assert trained.metrics["tokens_trained"] == 2 * 6000
    assert np.isfinite(trained.outputs).all()


def test_races_that_are_meant_are_named():
    """The functions whose races the sanitizer passes over are there."""
    package = Path(w2v.__file__).parent
    sources = "".join(
        (package / name).read_text("utf-8") for name in ("_kernels.pyx", "formats/_formats.pyx", "kernel/step_body.h")
    )
    lines = Path(injection.__file__).with_name("tsan.txt").read_text("utf-8").splitlines()
    names = [line.removeprefix("race:").strip("^$").removeprefix("Kernel_") for line in lines if line[0] != "#"]
    assert len(names) == 12
    for name in names:
        assert f"{name}(" in sources or f"NAME({name.rpartition('_')[0]})(" in sources


def test_the_tests_that_sanitizers_run_are_there():
    tests = Path(__file__).parent
    assert [name for name in variants.TESTS_OF_COMPILED if not (tests / name).exists()] == []
