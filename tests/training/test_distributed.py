"""Several ranks train one model in real processes under mpiexec. `make cluster` runs all tests, `make test` a few."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import w2v
from tests.helpers import (
    CYTHON_LOSSES,
    ChildProcess,
    assert_one_line,
    assert_same,
    fault_code,
    make_schedule,
    run,
    train_and_stop,
)
from w2v._errors import install_command
from w2v._losses.registry import LOSSES
from w2v._system.launcher import mpi_rank_and_size
from w2v._text.corpus import Corpus
from w2v._text.idstore import ReadingOptions
from w2v._text.vocabulary import Vocabulary
from w2v._training import checkpoint, checkpoint_folder
from w2v._training.config import RunConfig
from w2v._training.model import Model
from w2v._training.reading import _check_options_for_ranks, _values_all_ranks_share
from w2v._training.run import resume_position

MPIEXEC = str(Path(sys.executable).with_name("mpiexec"))
PROGRAM = "from w2v._cli.main import main; main(prog_name='w2v')"
SMALL_ARGUMENTS = ["--vector-size", "8", "--min-count", "1", "--workers", "1", "--quiet"]
# For texts of few words: options of w2v.train, and the same options of the command together with SMALL_ARGUMENTS.
FEW_OPTIONS: dict[str, Any] = {"epochs": 2, "sample": 0, "negative": 1, "vector_size": 8, "min_count": 1, "workers": 1}
FEW_ARGUMENTS = ["--epochs", 2, "--sample", 0, "--negative", 1]
cluster = pytest.mark.cluster
ranks = pytest.mark.parametrize("size", [2, pytest.param(4, marks=cluster)])


def run_ranks(
    size: int, *arguments: object, before: str = "", code: int | None = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a w2v command on `size` ranks. Each rank first executes the code `before`."""
    program = [sys.executable, "-c", before + "\n" + PROGRAM, *map(str, arguments)]
    done = subprocess.run(
        [MPIEXEC, "-n", str(size), *program],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1000, env=os.environ | environment,
    )  # fmt: skip
    assert code is None or done.returncode == code, done.stderr
    return done


def train_on_ranks(size: int, texts: list[Path], output: Path, *arguments: object) -> Model:
    """Train with SMALL_ARGUMENTS on `size` ranks, and return the saved model."""
    done = run_ranks(size, "train", *texts, "-o", output, *SMALL_ARGUMENTS, *arguments)
    assert done.stderr == ""
    return Model.load(output)


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> Path:
    """Return a text of 40,000 words, enough for the loss to fall."""
    path = tmp_path_factory.mktemp("distributed") / "text"
    lines = sample.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) * 2 // 5]), "utf-8")
    return path


# -- without mpiexec ----------------------------------------------------------------------


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 50), st.integers(1, 50), st.floats(0, 0.999))
def test_resume_with_another_number_of_ranks_keeps_finished_epochs(
    before: int, after: int, rounds: int, rounds_after: int, share: float
) -> None:
    """Only in the current epoch, some text is trained twice or skipped, and at most half of it."""
    epochs, chunks = 3, 5040
    if after == before:
        rounds_after = rounds
    done = int(share * epochs * rounds)
    state: Any = SimpleNamespace(ranks=before, done=done, end=epochs * rounds)
    resumed = resume_position(state, epochs * rounds_after, after)
    trained = np.zeros((epochs, chunks), np.int64)
    for part in trained.reshape(epochs, before, -1).swapaxes(0, 1):
        end = make_schedule(rounds, epochs=epochs, chunks=chunks // before).chunks_after(done)
        part[np.unravel_index(np.arange(end), part.shape)] += 1
    for part in trained.reshape(epochs, after, -1).swapaxes(0, 1):
        start = make_schedule(rounds_after, epochs=epochs, chunks=chunks // after).chunks_after(resumed)
        part[np.unravel_index(np.arange(start, part.size), part.shape)] += 1
    assert (np.delete(trained, done // rounds, axis=0) == 1).all()
    twice, skipped = (trained == 2).sum(), (trained == 0).sum()
    assert twice <= chunks / 2 + chunks / rounds_after / 2
    assert abs(twice - skipped) <= chunks / rounds_after / 2 + before + after  # the position is rounded to a round
    if before == after or done % rounds == 0:
        assert twice == skipped == 0


@pytest.mark.parametrize(
    ("environment", "code", "message"),
    [
        ({"PMIX_RANK": "0", "PMIX_NAMESPACE": "job"}, 0, ""),
        ({"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "1"}, 0, ""),
        ({"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "2"}, 1, "needs mpi4py"),
        ({"PMI_RANK": "0", "PMI_SIZE": ""}, 0, ""),
        (
            {"PMI_RANK": "0", "PMI_SIZE": "two"},
            2,
            "PMI_SIZE 'two': it must be a number of ranks; to train without MPI, unset PMI_RANK",
        ),
    ],
)
def test_mpi4py_is_needed_only_if_the_launcher_started_several_ranks(
    environment: dict[str, str], code: int, message: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert message in run("train", text, "-o", tmp_path / "m.bin", "--epochs", 1, *SMALL_ARGUMENTS, code=code).stderr


def test_rank_variable_without_a_launcher_does_not_start_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMIX_RANK", "0")
    assert mpi_rank_and_size() is None
    monkeypatch.setenv("PMIX_NAMESPACE", "job")
    assert mpi_rank_and_size() == (0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop_early": 2}, "holds out the end of the whole text"),
        ({"encoding": "cp949"}, "only UTF-8 can be divided among ranks"),
        ({"phrases": True}, "finds phrases in the whole text"),
        ({"strip_markup": True}, "the text cannot be divided among ranks inside markup"),
    ],
)
def test_options_that_need_the_whole_text_are_refused(options: dict[str, Any], message: str) -> None:
    _check_options_for_ranks(RunConfig.from_options({}))
    with pytest.raises(w2v.SettingsError, match=message):
        _check_options_for_ranks(RunConfig.from_options(options))


def test_ranks_notice_phrases_of_another_file(text: Path, tmp_path: Path) -> None:
    found = []
    for phrases in ("new york", "new jersey"):
        (tmp_path / "phrases").write_text(phrases)
        config = RunConfig.from_options({"phrases": tmp_path / "phrases"})
        found.append(_values_all_ranks_share(config, Corpus(text), []))
    assert found[0].keys() == found[1].keys()
    assert [name for name in found[0] if found[0][name] != found[1][name]] == ["checksum of the phrases"]
    assert found[0]["w2v"] == w2v.__version__


# -- results ------------------------------------------------------------------------------


def test_one_rank_gives_the_same_bits_as_a_run_without_mpi(text: Path, tmp_path: Path) -> None:
    single = w2v.train(text, vector_size=8, min_count=1, workers=1, epochs=2)
    assert_same(train_on_ranks(1, [text], tmp_path / "one.safetensors", "--epochs", 2), single)


@ranks
def test_ranks_find_the_same_words_and_counts_as_one_process(size: int, text: Path, tmp_path: Path) -> None:
    done = run_ranks(size, "train", text, "-o", tmp_path / "m.safetensors", "--epochs", 3, *SMALL_ARGUMENTS[:-1])
    assert done.stderr.count(f" words are few for {size} ranks: one process is probably quicker\n") == 1
    model = Model.load(tmp_path / "m.safetensors")
    single = w2v.train(text, vector_size=8, min_count=1, workers=1, epochs=3)
    assert model.vocabulary.words == single.vocabulary.words
    assert model.vocabulary.counts.tolist() == single.vocabulary.counts.tolist()
    assert model.metrics["tokens_trained"] == 3 * single.vocabulary.tokens
    assert model.metrics["sentences"] == single.metrics["sentences"]
    assert model.metrics["ranks"] == size
    assert model.metrics["loss"][2] < model.metrics["loss"][0]


# Trains, and prints for each rank the checksums of its matrices and the sum of its output rows.
TRAIN_AND_PRINT_CHECKSUMS = """
import json, sys, zlib, w2v
from w2v._training.communicator import join_ranks
with join_ranks() as communicator:
    options = {"vector_size": 8, "epochs": 2, "workers": 1} | json.loads(sys.argv[2])
    model = w2v.train(sys.argv[1], communicator=communicator, **options)
    view = model.views["words"]
    checksums = [zlib.crc32(array.tobytes()) for array in (view.inputs, view.outputs)]
    by_rank = communicator.allgather(json.dumps([checksums, float(abs(view.outputs).sum(dtype=float))]))
if communicator.is_root:
    print(json.dumps(by_rank))
"""
TRAININGS = [
    {"loss": loss, "model": model, "storage": storage}
    for loss, kind in LOSSES.items()
    if loss in CYTHON_LOSSES
    for model in ("skipgram", "cbow")
    for storage in kind.storages
]
TRAININGS.insert(1, {"loss": "ns", "model": "skipgram", "subwords": "2-3"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [pytest.param(each, marks=[cluster] * (number > 1)) for number, each in enumerate(TRAININGS)]
)
def test_all_ranks_end_with_the_same_rows(text: Path, options: dict[str, str]) -> None:
    settings = {**options, "min_count": 20 if options["loss"] == "softmax" else 1}
    program = [sys.executable, "-W", "error", "-c", TRAIN_AND_PRINT_CHECKSUMS, str(text), json.dumps(settings)]
    runs = [subprocess.check_output([MPIEXEC, "-n", "2", *program], text=True, timeout=1000) for _ in range(2)]
    one, two = map(json.loads, json.loads(runs[0]))
    assert one == two
    assert one[1] > 0
    assert runs[0] == runs[1]  # with one thread each, also on another run


@pytest.mark.slow
def test_ranks_train_and_resume_both_views(text: Path, tmp_path: Path) -> None:
    options = [*SMALL_ARGUMENTS, "--views", "words+subwords", "--buckets", 500, "--epochs", 1]
    whole, resumed = tmp_path / "whole.safetensors", tmp_path / "resumed.safetensors"
    run_ranks(2, "train", text, "-o", whole, *options, "--checkpoint", tmp_path / "states")
    before_training, last = checkpoint_folder.files(tmp_path / "states" / "subwords")
    assert checkpoint.read_checkpoint(before_training).resume_info.done == 0
    last.unlink()
    run_ranks(2, "train", text, "-o", resumed, "--resume", tmp_path / "states", "--quiet")
    assert len(Model.load(whole).views) == 2
    assert resumed.read_bytes() == whole.read_bytes()


# -- divided texts ------------------------------------------------------------------------


@cluster
def test_ranks_read_texts_and_join_phrases_as_one_process(tmp_path: Path) -> None:
    for number, content in enumerate(["New York has 3 trees", "a tree in New York", "an old tree"]):
        (tmp_path / f"{number}.jsonl").write_text(f'{{"text": "{content}"}}\n' * 50)
    files = sorted(tmp_path.glob("*.jsonl"))
    phrases = w2v.Phrases.find(files, reading=ReadingOptions(column="text", lower=True), threshold=0.01)
    assert "new york" in phrases.passes[0]
    phrases.save(tmp_path / "phrases")
    reading: dict[str, Any] = {"column": "text", "lower": True, "digits": "zero", "strip_markup": True}
    single = w2v.train(files, phrases=tmp_path / "phrases", **reading, **FEW_OPTIONS)
    arguments = ["--column", "text", "--lower", "--digits", "zero", "--strip-markup", "--phrases", tmp_path / "phrases"]
    arguments += ["--plot", tmp_path / "run.svg", "--save-vocab", tmp_path / "words", "-o", tmp_path / "m.bin"]
    run_ranks(2, "train", *files, *arguments, *FEW_ARGUMENTS, *SMALL_ARGUMENTS)
    vocabulary = Vocabulary.load(tmp_path / "words")
    assert list(vocabulary.words) == list(single.vocabulary.words)
    assert "new_york" in vocabulary.words
    assert vocabulary.counts.tolist() == single.vocabulary.counts.tolist()
    assert (tmp_path / "run.svg").exists()


# -- errors -------------------------------------------------------------------------------

RANK_1 = "import os\nif os.environ['PMI_RANK'] == '1':\n    "
# By name: the arguments, code to run first after RANK_1 (its indented lines run only on rank 1), a part of the message,
# and the exit code.
REFUSALS = {
    "wrong use": (["--epochs", "0"], "", "w2v: epochs 0: it must be a whole number", 2),
    "standard input": (["-"], "", "w2v: standard input, pipes, lists and tables", 1),
    "missing file": ([], "import sys; sys.argv[2] += 'x'", "rank 1 ", 1),
    "other content of the same size": (
        [],
        "import sys; from pathlib import Path; other = Path(sys.argv[4]).with_name('other')\n"
        "    other.write_bytes(Path(sys.argv[2]).read_bytes().replace(b'a', b'e')); sys.argv[2] = str(other)",
        "has checksum of samples of the text ",
        1,
    ),
    "no mpi4py": (
        [],
        "pass\nimport sys; sys.modules['mpi4py'] = None",
        f"training on several ranks needs mpi4py: {install_command('mpi')}",
        1,
    ),
    "an error on one rank": (
        [],
        "import w2v._training.reading as t; from w2v._errors import W2VError\n"
        "    def fail(*a, **k): raise W2VError('no luck')\n"
        "    t.read_corpus = fail",
        ": no luck",
        1,
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[cluster] * (name != "other content of the same size")) for name in REFUSALS]
)
def test_errors_are_one_line(name: str, text: Path, tmp_path: Path) -> None:
    arguments, change, message, code = REFUSALS[name]
    corpus = [] if name == "standard input" else [text]
    options = ["train", *corpus, *arguments, "-o", tmp_path / "m.bin", *SMALL_ARGUMENTS]
    done = run_ranks(2, *options, before=RANK_1 + change if change else "", code=code)
    assert_one_line(done.stderr)
    assert message in done.stderr
    assert not (tmp_path / "m.bin").exists()


# -- failed and stopped ranks -------------------------------------------------------------

# The function that fails, and the number of the call, from 0, that fails.
PHASES = {
    "reading": ("w2v._training.reading.read_corpus", 0),
    "merging": ("w2v._training.reading._merge_types", 0),
    "the first rows": ("w2v._training.exchange:Exchange.broadcast_from_root", 0),
    "a round": ("w2v._training.exchange:Exchange.begin", 5),
    "the end of an epoch": ("w2v._training.exchange:Exchange.exchange_all_rows", 1),
}


def lines_of_w2v(stderr: str) -> str:
    """Return the lines that w2v has written, without the lines of MPICH."""
    return "".join(line for line in stderr.splitlines(keepends=True) if line.startswith("w2v:"))


@cluster
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("kind", ["SIGKILL", "SIGSTOP", "error"])
def test_failed_rank_ends_all_ranks(phase: str, kind: str, text: Path, tmp_path: Path) -> None:
    name, turn = PHASES[phase]
    before = "import os\n" + fault_code(name, kind, turn, "os.environ['PMI_RANK'] == '1'")
    options = [
        "-o",
        tmp_path / "m.bin",
        "--checkpoint",
        tmp_path / "states",
        "--checkpoint-every",
        "5chunks",
        *SMALL_ARGUMENTS,
    ]
    patience = {"W2V_RANK_TIMEOUT": "3"} if kind == "SIGSTOP" else {}
    done = run_ranks(2, "train", text, "--epochs", 4, *options, before=before, code=None, **patience)
    assert done.returncode != 0
    assert not (tmp_path / "m.bin").exists()
    if kind == "error":
        assert "w2v: rank 1 (" in done.stderr
        assert "internal error: RuntimeError: broken" in done.stderr
    elif kind == "SIGKILL":
        assert lines_of_w2v(done.stderr) == ""  # mpiexec reports the failure, and the other rank ends at once
        assert "BAD TERMINATION" in done.stdout + done.stderr
    else:
        assert_one_line(lines_of_w2v(done.stderr))
        assert re.match(r"w2v: rank 1 \(.+\) has not answered for 3 seconds: the run ends", lines_of_w2v(done.stderr))
    if checkpoint_folder.files(tmp_path / "states"):
        run_ranks(4, "train", text, "--resume", tmp_path / "states", "-o", tmp_path / "m.bin", "--quiet")
        assert (tmp_path / "m.bin").exists()


REPORT_COPIES = """
import sys
from w2v._training.checkpoint_folder import CheckpointFolder
copy = CheckpointFolder.copy
def copy_and_report(self, state):
    copy(self, state)
    print("copied", file=sys.stderr, flush=True)
CheckpointFolder.copy = copy_and_report
"""


def stop_by_signal(text: Path, folder: Path, number: int) -> str:
    """Send a signal to mpiexec once there is a checkpoint, and return what the ranks write to standard error."""
    options = ["-o", folder / "m.safetensors", "--checkpoint", folder / "states", "--checkpoint-every", "1epoch"]
    arguments = map(str, ["train", text, "--epochs", 200, *options, *SMALL_ARGUMENTS])
    program = [MPIEXEC, "-n", "2", sys.executable, "-c", REPORT_COPIES + PROGRAM, *arguments]
    with ChildProcess(program, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr.readline() == "copied\n"
        running.send_signal(number)
        stderr = running.communicate(timeout=1000)[1]
    assert running.returncode == 128 + number, stderr
    return lines_of_w2v(stderr)


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=cluster), signal.SIGTERM])
def test_signal_to_mpiexec_writes_a_checkpoint(number: int, text: Path, tmp_path: Path) -> None:
    stderr = stop_by_signal(text, tmp_path, number)
    assert_one_line(stderr)
    assert "stopped by" in stderr
    command = f"w2v train {text} --resume {tmp_path / 'states'} -o {tmp_path / 'm.safetensors'}\n"
    assert stderr.endswith(f"resume with: {command}")
    state = checkpoint_folder.latest(tmp_path / "states")
    assert 0 < state.resume_info.done < state.resume_info.end
    assert state.resume_info.ranks == 2


@cluster
def test_run_of_one_process_resumes_with_several_ranks(text: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.safetensors"
    train_and_stop(tmp_path / "states", text, 0.5)
    run_ranks(2, "train", text, "--resume", tmp_path / "states", "-o", output, "--quiet")
    assert Model.load(output).metrics["ranks"] == 2
