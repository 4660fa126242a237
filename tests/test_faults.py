"""Failing system calls, refused memory, kills and full disks.

These tests run a part of tests/faults; `make faults` runs all of it.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import w2v
from w2v._cli.main import COMMANDS
from w2v._formats import registry
from w2v._losses.registry import LOSSES

pytest.importorskip("resource", reason="Windows lacks fork, SIGKILL and the limits that tests/faults uses")
from tests.faults import fuzz, injection, mutants, run, variants

TESTS = Path(__file__).parent

needs_shim = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="compiles and preloads a library, on Linux"
)


@pytest.fixture(scope="module")
def injector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that runs scenarios; see injection.main."""
    command = injection.preloaded_command(tmp_path_factory.mktemp("injector"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        yield process
        process.communicate()


@needs_shim
@pytest.mark.parametrize(
    ("name", "amount", "expected"),
    [
        ("full", 90, ("refused",)),
        ("memory", 180, ("done", "refused")),
        ("kill", 120, ("restarted", "resumed")),
        ("random", 2, ("killed",)),
        ("signals", 2, ("stopped",)),
        pytest.param("commands", 1000, ("done", "refused"), marks=pytest.mark.slow),
        pytest.param("streams", 12, ("done", "not printed"), marks=pytest.mark.slow),
    ],
)
def test_failures_lose_nothing(
    injector: subprocess.Popen[str], name: str, amount: int, expected: tuple[str, ...]
) -> None:
    print(name, amount, 1, file=injector.stdin, flush=True)
    counts = ""
    for line in injector.stdout:
        if line == "\n":
            break
        counts = line
    else:
        pytest.fail(injector.stderr.read())
    assert all(result in counts for result in expected), counts


TRAIN_ON_FULL_DISK = """
import shutil, subprocess, sys
from pathlib import Path
disk, size = Path(sys.argv[1]), sys.argv[2]
disk.mkdir()
if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], capture_output=True).returncode:
    raise SystemExit(77)
(disk / "old.bin").write_bytes(b"2 1\\nold 1\\n")
train = [sys.executable, "-m", "w2v", "train", sys.argv[3], "-o", str(disk / "old.bin")]
train += ["--force", "--quiet", "--epochs", "1", *sys.argv[4:]]
done = subprocess.run(train, capture_output=True, text=True, env={"TMPDIR": str(disk), "HOME": str(disk)})
print(done.returncode, (disk / "old.bin").stat().st_size, len(list(disk.iterdir())), done.stderr, end="")
"""


@pytest.mark.skipif(not shutil.which("unshare"), reason="mounts a small disk")
@pytest.mark.parametrize(("size", "vector_size", "message"), [("64k", 8, "ids to"), ("2m", 300, "old.bin")])
def test_full_disk_keeps_the_old_file_and_reports_one_line(
    sample: Path, tmp_path: Path, size: str, vector_size: int, message: str
) -> None:
    options = ["--vector-size", str(vector_size)]
    command = [
        "unshare",
        "--mount",
        sys.executable,
        "-c",
        TRAIN_ON_FULL_DISK,
        str(tmp_path / "disk"),
        size,
        str(sample),
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("mounting is not allowed here")
    code, old_size, files, shown_message = done.stdout.split(" ", 3)
    assert (code, old_size, files) == ("1", "10", "1"), done.stdout + done.stderr
    assert shown_message.count("\n") == 1
    assert "No space left on device" in shown_message or "not enough" in shown_message or "free" in shown_message
    assert message in shown_message


def test_training_survives_removal_of_its_cache_folder(sample: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()

    def remove(progress: w2v.Progress) -> None:
        if progress.phase == "train":
            shutil.rmtree(folder, True)

    model = w2v.train(sample, cache=folder, epochs=1, vector_size=8, progress=remove)
    assert model.metrics["tokens_trained"] == model.metrics["tokens"]
    with pytest.raises(w2v.W2VError, match=r"cannot write .*model\.bin: No such file or directory"):
        model.save(folder / "model.bin")


TRAIN_REPEATEDLY = """
import os, sys, w2v
from w2v._system import memory
sizes = []
for round in range(40):
    model = w2v.train([["a", "b", "c", "d"] * 5] * 50, min_count=1, negative=2, vector_size=20, epochs=1, workers=4)
    model.save(sys.argv[1], force=True)
    w2v.load(sys.argv[1])
    sizes.append((memory.resident_bytes(), len(os.listdir("/proc/self/fd"))))
print(*sizes[9], *sizes[-1])
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_repeated_runs_in_one_process_leak_neither_memory_nor_files(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TRAIN_REPEATEDLY, str(tmp_path / "m.safetensors")]
    figures = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    memory, files, later_memory, later_files = map(int, figures)
    assert later_files == files
    assert later_memory - memory < 8 << 20


def test_every_command_loss_and_scenario_is_injected() -> None:
    assert {name.split()[0] for name in injection.COMMANDS} | {"train"} == {*COMMANDS}
    losses = {
        job.command[job.command.index("--loss") + 1] for job in injection.kinds_of_training() if "--loss" in job.command
    }
    assert losses == {*LOSSES}
    assert [*injection.SCENARIOS] == run.PARTS[: len(injection.SCENARIOS)]


def test_short_run_includes_every_part_but_the_tests() -> None:
    assert {*run.SHORT, "tests"} == {*run.PARTS}


def test_every_selection_of_tests_still_matches_test_names() -> None:
    """Without this, a renamed test could silently drop out of `make faults`."""
    unmatched = []
    for files, selection in run.TESTS.values():
        sources = "".join((TESTS / file).read_text("utf-8") for file in files)
        names = " ".join(re.findall(r'def test_\w+|"[^"\n]*"', sources))  # strings can be parameters
        unmatched += [f"{files}: {word}" for word in filter(None, selection.split(" or ")) if word not in names]
    assert unmatched == []


NOT_FUZZED = {"arrow", "spark", "spacy", "sqlite"}  # a library reads them
NOT_FUZZED |= {"fasttext quantized"}  # the loader of fasttext reads it, too


def test_every_format_that_w2v_parses_is_fuzzed() -> None:
    parsed = [one for one in registry.own_formats() if one.name not in NOT_FUZZED]
    assert {*fuzz.FORMATS.values()} == {one.name for one in parsed}
    in_several_files = {name for name in fuzz.FILES if name in fuzz.FORMATS}
    assert {fuzz.FORMATS[name] for name in in_several_files} == {
        one.name for one in parsed if one.folder or one.words_suffix
    }


FAKE_FUZZER = """
import json, sys
for name, code in (("a", 77), ("b", 0), ("c", 77), ("d", 0)):
    print(json.dumps({"loader": name, "code": code, "number_of_executed_units": "9"}), flush=True)
    print("x" * 100_000 if code else "", file=sys.stderr, flush=True)
raise SystemExit("loaders that failed: a, c")
"""


def test_failure_of_the_fuzzer_is_shown_and_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests" / "faults").mkdir(parents=True)
    (tmp_path / "tests" / "faults" / "fuzz.py").write_text(FAKE_FUZZER)
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    rows = []
    with pytest.raises(SystemExit, match="exit code 1"):
        rows += run.run_fuzzer(1)
    stderr = capfd.readouterr().err
    assert "loaders that failed: a, c" in stderr
    assert "BrokenPipeError" not in stderr


def test_functions_with_intended_races_exist() -> None:
    """The functions that tsan.txt names are in the sources."""
    package = Path(w2v.__file__).parent
    sources = "".join(
        (package / name).read_text("utf-8") for name in ("_kernels.pyx", "_formats/_formats.pyx", "_kernel/step_body.h")
    )
    lines = Path(injection.__file__).with_name("tsan.txt").read_text("utf-8").splitlines()
    names = [line.removeprefix("race:").strip("^$").removeprefix("Kernel_") for line in lines if line[0] != "#"]
    assert len(names) == 12
    for name in names:
        assert f"{name}(" in sources or f"NAME({name.rpartition('_')[0]})(" in sources


def test_tests_for_sanitizers_exist() -> None:
    assert [name for name in variants.TESTS_OF_COMPILED if not (TESTS / name).exists()] == []


SOURCE = """
class A:
    def b(self, c: int = 1) -> bool:
        print("é", 2 if TYPE_CHECKING else c)
        if sys.platform == "win32":
            return c < 3
        return not c or c > 4
"""
CHANGES = {
    "A.b constant 1": "    def b(self, c: int = 2) -> bool:",
    "A.b call 1": "        pass",
    "A.b comparison 1": "        return not c or (c >= 4)",
    "A.b constant 2": "        return not c or c > 5",
}


def test_small_faults_change_one_line_that_runs_on_this_machine() -> None:
    found = {}
    for fault in mutants.faults(Path("a.py"), SOURCE.encode()):
        changed = SOURCE.encode()[: fault.start] + fault.text.encode() + SOURCE.encode()[fault.end :]
        found[fault.name] = [*{*changed.decode().splitlines()} - {*SOURCE.splitlines()}]
    assert found == {f"a.py {name}": [line] for name, line in CHANGES.items()}


@pytest.mark.slow
def test_a_small_fault_is_found_by_a_test_or_mypy_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "COPY", tmp_path)
    monkeypatch.setattr(mutants, "OUTPUT", tmp_path / "output.txt")
    monkeypatch.setattr(mutants, "MYPY", [sys.executable, "-c", "raise SystemExit(1)"])
    (tmp_path / "w2v").mkdir()
    (tmp_path / "w2v/__init__.py").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "w2v" / "a.py").write_text("one = 1\ntwo = 2\n")
    (tmp_path / "tests" / "test_a.py").write_text("import w2v.a\ndef test_one():\n    assert w2v.a.one == 1\n")
    faults = mutants.faults(Path("w2v", "a.py"), b"one = 1\ntwo = 2\n")
    results = [mutants.try_fault(fault) for fault in faults]
    assert [result["found"] for result in results] == [f"{Path('tests', 'test_a.py')}::test_one", "mypy"]
    assert [result["change"] for result in results] == ["line 1: 1 → 2", "line 2: 2 → 3"]
    assert (tmp_path / "w2v" / "a.py").read_text() == "one = 1\ntwo = 2\n"
