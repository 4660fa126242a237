"""Several ranks train one model: real processes under mpiexec, most of them for `make cluster` only."""

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
from tests.helpers import CYTHON_LOSSES, Started, assert_one_line, assert_same, fault, run, schedule_of, stopped
from w2v.errors import install
from w2v.losses.registry import LOSSES
from w2v.system.launcher import launched
from w2v.text.corpus import Corpus
from w2v.text.idstore import ReadingOptions
from w2v.text.vocabulary import Vocabulary
from w2v.training import checkpoint, distributed
from w2v.training.config import RunConfig
from w2v.training.distributed import Exchange, rows_of_round
from w2v.training.model import Model
from w2v.training.prepare import _refuse_undividable, _values_all_ranks_share
from w2v.training.run import resumed_at

MPIEXEC = str(Path(sys.executable).with_name("mpiexec"))
PROGRAM = "from w2v.cli.main import main; main(prog_name='w2v')"
SMALL = ["--vector-size", "8", "--min-count", "1", "--workers", "1", "--quiet"]
FEW: dict[str, Any] = {"epochs": 2, "sample": 0, "negative": 1, "vector_size": 8, "min_count": 1, "workers": 1}
AS_FEW = ["--epochs", 2, "--sample", 0, "--negative", 1]  # FEW, with SMALL
cluster = pytest.mark.cluster
ranks = pytest.mark.parametrize("count", [2, pytest.param(4, marks=cluster)])


def mpiexec(
    count: int, *arguments: object, before: str = "", code: int | None = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command on so many ranks, each of which first runs the code `before`."""
    program = [sys.executable, "-c", before + "\n" + PROGRAM, *map(str, arguments)]
    done = subprocess.run(
        [MPIEXEC, "-n", str(count), *program],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, env=os.environ | environment,
    )  # fmt: skip
    assert code is None or done.returncode == code, done.stderr
    return done


def trained(count: int, texts: list[Path], output: Path, *arguments: object) -> Model:
    done = mpiexec(count, "train", *texts, "-o", output, *SMALL, *arguments)
    assert done.stderr == ""
    return Model.load(output)


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> Path:
    """A text of 60,000 words, in which one can see that something is learnt."""
    path = tmp_path_factory.mktemp("distributed") / "text"
    lines = sample.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) * 2 // 5]), "utf-8")
    return path


# -- in this process ------------------------------------------------------------------------


@given(st.integers(1, 4000), st.integers(0, 1 << 20), st.integers(1, 128).map(lambda half: 2 * half))
def test_rows_are_exchanged_as_often_as_they_are_frequent(rows: int, first: int, frequent: int) -> None:
    seen = np.zeros(rows, np.int64)
    sizes = set()
    cycle = 1
    while cycle * frequent < 2 * rows:
        cycle *= 2
    for number in range(first, first + cycle):
        found = np.concatenate([np.array(part, np.int64) for part in rows_of_round(number, rows, frequent)])
        assert len(np.unique(found)) == len(found)
        seen[found] += 1
        sizes.add(len(found))
    bands = np.arange(rows) // frequent
    expected = cycle >> np.array([int(band).bit_length() for band in range(bands[-1] + 1)])
    assert (seen == expected[bands]).all()
    assert max(sizes) <= frequent + frequent // 2 * cycle.bit_length()


class TwoRanks:
    """Stands for Communicator in one process: the sum of what this rank and another send, message by message."""

    def __init__(self, messages: list[Any]) -> None:
        self.messages = iter(messages)

    def start_sum(self, values: Any, total: Any) -> None:
        total[:] = values + np.array(next(self.messages), np.float32)

    def wait(self, request: Any) -> None: ...


@pytest.mark.parametrize(
    ("trained", "agreed"),
    [
        pytest.param(1e6, [2, 0], id="after many updates"),
        pytest.param(1e-6, [4, 0], id="after few updates"),
        pytest.param(np.log(2) / distributed.CURVATURE, [3, 0], id="half of the way"),  # two ranks: 3/4 of it
    ],
)
def test_changes_are_added_unless_they_agree_after_many_updates(
    trained: float, agreed: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "rows_of_round", lambda *_: [range(2), range(2, 4)])
    rows = np.zeros((4, 2), np.float32)
    # Changes of two rows and their squared lengths, then the flags.
    communicator: Any = TwoRanks([[2, 0, 4, 0, 2, 4, 0, 0, 0], [-2, 0, 4, 0, 0, 0, 0, 1, 0]])
    exchange = Exchange(communicator, [(rows, np.ones(4))], seed=1, threads=2)
    last = exchange._matrices[0].last
    last[:] = 0
    rows[:] = [[2, 0], [2, 0], [2, 0], [2, 5]]
    exchange.trained = trained
    exchange.begin(0, distributed.Flags(checkpoint=True))
    np.testing.assert_allclose(rows, [agreed, [2, 2], [2, 0], [2, 5]], rtol=1e-5)  # the first two at once
    rows[[1, 3]] += 1  # training goes on meanwhile
    assert exchange.finish() == (False, True, True)
    np.testing.assert_allclose(last, [agreed, [2, 2], [0, 0], [2, 5]], rtol=1e-5)
    np.testing.assert_allclose(rows, last + np.array([[0], [1], [0], [1]]), rtol=1e-6)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 50), st.integers(1, 50), st.floats(0, 0.999))
def test_what_another_number_of_ranks_trains(before: int, after: int, rounds: int, others: int, share: float) -> None:
    """Only of the epoch that was under way is any text trained twice or not at all: half of it at most."""
    epochs, chunks = 3, 5040  # of the text
    if after == before:
        others = rounds
    done = int(share * epochs * rounds)
    state: Any = SimpleNamespace(ranks=before, done=done, end=epochs * rounds)
    resumed = resumed_at(state, epochs * others, after)
    trained = np.zeros((epochs, chunks), np.int64)
    for part in trained.reshape(epochs, before, -1).swapaxes(0, 1):
        end = schedule_of(rounds, epochs=epochs, chunks=chunks // before).position(done)
        part[np.unravel_index(np.arange(end), part.shape)] += 1
    for part in trained.reshape(epochs, after, -1).swapaxes(0, 1):
        start = schedule_of(others, epochs=epochs, chunks=chunks // after).position(resumed)
        part[np.unravel_index(np.arange(start, part.size), part.shape)] += 1
    assert (np.delete(trained, done // rounds, axis=0) == 1).all()
    twice, never = (trained == 2).sum(), (trained == 0).sum()
    assert twice <= chunks / 2 + chunks / others / 2
    assert abs(twice - never) <= chunks / others / 2 + before + after  # the position is rounded to a round
    if before == after or done % rounds == 0:
        assert twice == never == 0


@pytest.mark.parametrize(
    ("environment", "code", "message"),
    [
        ({"PMIX_RANK": "0", "PMIX_NAMESPACE": "job"}, 0, ""),
        ({"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "1"}, 0, ""),
        ({"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "2"}, 1, "needs mpi4py"),
        ({"PMI_RANK": "0", "PMI_SIZE": ""}, 0, ""),
        ({"PMI_RANK": "0", "PMI_SIZE": "two"}, 2, "PMI_SIZE 'two': it must be a number of ranks; unset PMI_RANK"),
    ],
)
def test_a_job_of_one_process_needs_no_mpi(
    environment: dict[str, str], code: int, message: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert message in run("train", text, "-o", tmp_path / "m.bin", "--epochs", 1, *SMALL, code=code).stderr


def test_a_rank_without_a_launcher_does_not_start_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMIX_RANK", "0")
    assert launched() is None
    monkeypatch.setenv("PMIX_NAMESPACE", "job")
    assert launched() == (0, 0)


# -- what is trained ------------------------------------------------------------------------


def test_one_rank_gives_the_bits_of_a_run_without_mpi(text: Path, tmp_path: Path) -> None:
    alone = w2v.train(text, vector_size=8, min_count=1, workers=1, epochs=2)
    assert_same(trained(1, [text], tmp_path / "one.safetensors", "--epochs", 2), alone)


@ranks
def test_words_counts_and_tokens_are_those_of_one_process(count: int, text: Path, tmp_path: Path) -> None:
    done = mpiexec(count, "train", text, "-o", tmp_path / "m.safetensors", "--epochs", 3, *SMALL[:-1])
    assert done.stderr.count(f" words are few for {count} ranks: one process is probably quicker\n") == 1
    model = Model.load(tmp_path / "m.safetensors")
    alone = w2v.train(text, vector_size=8, min_count=1, workers=1, epochs=3)
    assert model.vocabulary.words == alone.vocabulary.words
    assert model.vocabulary.counts.tolist() == alone.vocabulary.counts.tolist()
    assert model.metrics["tokens_trained"] == 3 * alone.vocabulary.tokens
    assert model.metrics["sentences"] == alone.metrics["sentences"]
    assert model.metrics["ranks"] == count
    assert model.metrics["loss"][2] < model.metrics["loss"][0]


ROWS = """
import json, sys, zlib, w2v
from w2v.training.communicator import join_ranks
with join_ranks() as communicator:
    model = w2v.train(sys.argv[1], world=communicator, vector_size=8, epochs=2, workers=1, **json.loads(sys.argv[2]))
    found = [zlib.crc32(array.tobytes()) for array in (model.inputs, model.outputs)]
    every = communicator.gather(json.dumps([found, float(abs(model.outputs).sum(dtype=float))]))
if communicator.is_root:
    print(json.dumps(every))
"""
TRAININGS = [
    {"loss": loss, "model": model, "storage": storage}
    for loss, kind in LOSSES.items()
    if loss in CYTHON_LOSSES
    for model in ("skipgram", "cbow")
    for storage in kind.storages
]
TRAININGS.insert(1, {"loss": "ns", "model": "skipgram", "subwords": "2-3"})


@pytest.mark.parametrize(
    "options", [pytest.param(each, marks=[cluster] * (number > 1)) for number, each in enumerate(TRAININGS)]
)
def test_all_ranks_end_with_the_same_rows(text: Path, options: dict[str, str]) -> None:
    settings = {**options, "min_count": 20 if options["loss"] == "softmax" else 1}
    program = [sys.executable, "-W", "error", "-c", ROWS, str(text), json.dumps(settings)]
    runs = [subprocess.check_output([MPIEXEC, "-n", "2", *program], text=True, timeout=300) for _ in range(2)]
    one, two = map(json.loads, json.loads(runs[0]))
    assert one == two
    assert one[1] > 0
    assert runs[0] == runs[1]  # with one thread each, also on another run


# -- the text -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "contents",
    [
        pytest.param(["a b c d\n" * 3000, "a b\n" * 200, "d c b\n" * 50], id="unequal files"),
        pytest.param(["a b c d\n" * 500, "", "\n \n"], id="empty files"),
        pytest.param(["a b c d b c\n"], id="more ranks than lines"),
    ],
)
@cluster
def test_any_division_of_the_text(contents: list[str], tmp_path: Path) -> None:
    for number, content in enumerate(contents):
        (tmp_path / f"{number}.txt").write_text(content)
    files = sorted(tmp_path.glob("*.txt"))
    alone = w2v.train(files, **FEW)
    model = trained(4, files, tmp_path / "m.safetensors", *AS_FEW)
    assert model.vocabulary.words == alone.vocabulary.words
    assert model.metrics["tokens_trained"] == alone.metrics["tokens_trained"]


@cluster
def test_options_of_reading_and_phrases(tmp_path: Path) -> None:
    for number, content in enumerate(["New York has 3 trees", "a tree in New York", "an old tree"]):
        (tmp_path / f"{number}.jsonl").write_text(f'{{"text": "{content}"}}\n' * 50)
    files = sorted(tmp_path.glob("*.jsonl"))
    found = w2v.Phrases.find(files, reading=ReadingOptions(column="text", lower=True), threshold=0.01)
    assert "new york" in found.passes[0]
    found.save(tmp_path / "phrases")
    reading: dict[str, Any] = {"column": "text", "lower": True, "digits": "zero", "strip_markup": True}
    alone = w2v.train(files, phrases=tmp_path / "phrases", **reading, **FEW)
    arguments = ["--column", "text", "--lower", "--digits", "zero", "--strip-markup", "--phrases", tmp_path / "phrases"]
    arguments += ["--plot", tmp_path / "run.svg", "--save-vocab", tmp_path / "words", "-o", tmp_path / "m.bin"]
    mpiexec(2, "train", *files, *arguments, *AS_FEW, *SMALL)
    vocabulary = Vocabulary.load(tmp_path / "words")
    assert list(vocabulary.words) == list(alone.vocabulary.words)
    assert "new_york" in vocabulary.words
    assert vocabulary.counts.tolist() == alone.vocabulary.counts.tolist()
    assert (tmp_path / "run.svg").exists()


# -- errors: one line, from rank 0 ----------------------------------------------------------

RANK_1 = "import os\nif os.environ['PMI_RANK'] == '1':\n    "
REFUSALS = {
    "wrong use": (["--epochs", "0"], "", "w2v: epochs 0: it must be a whole number", 2),
    "standard input": (["-"], "", "w2v: standard input, pipes, lists and tables", 1),
    "phrases of a part": (["--phrases"], "", "finds the phrases of a whole text, and each rank reads a part of it", 2),
    "encoding": (["--encoding", "cp949"], "", "only UTF-8 is divided among ranks: convert the text with iconv", 2),
    "markup": (["--strip-markup"], "", "markup may span the places where a text is divided", 2),
    "other text options": ([], "import sys; sys.argv += ['--lower']", "has lower true, and rank 0", 1),
    "no such file": (["nothing"], "", "w2v: corpus file 'nothing' does not exist", 1),
    "no words": ([Path(__file__).with_name("__init__.py")], "", "__init__.py holds no words", 1),
    "other settings": ([], "import sys; sys.argv += ['--epochs', '7']", "has epochs 7, and rank 0", 1),
    "other version": ([], "import w2v.training.prepare as t; t.__version__ = '0'", 'has w2v "0", and rank 0', 1),
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
        f"training on several ranks needs mpi4py: {install('mpi')}",
        1,
    ),
    "an error on one rank": (
        [],
        "import w2v.training.prepare as t; from w2v.errors import W2VError\n"
        "    def fail(*a, **k): raise W2VError('no luck')\n"
        "    t.read_corpus = fail",
        ": no luck",
        1,
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[cluster] * (name not in ("other settings", "other content of the same size")))
        for name in REFUSALS
    ],
)
def test_one_line_says_what_is_wrong(name: str, text: Path, tmp_path: Path) -> None:
    arguments, change, message, code = REFUSALS[name]
    corpus = [] if name in ("standard input", "no such file", "no words") else [text]
    options = ["train", *corpus, *arguments, "-o", tmp_path / "m.bin", *SMALL]
    done = mpiexec(2, *options, before=RANK_1 + change if change else "", code=code)
    assert_one_line(done.stderr)
    assert message in done.stderr
    assert not (tmp_path / "m.bin").exists()


# -- faults ---------------------------------------------------------------------------------

PHASES = {
    "reading": ("w2v.training.prepare.read_corpus", 0),
    "merging": ("w2v.training.prepare.merged_types", 0),
    "the first rows": ("w2v.training.distributed:Exchange.start_from_root", 0),
    "a round": ("w2v.training.distributed:Exchange.begin", 5),
    "the end of an epoch": ("w2v.training.distributed:Exchange.all_rows", 1),
}


def ours(said: str) -> str:
    """The lines of w2v, without those of MPICH."""
    return "".join(line for line in said.splitlines(keepends=True) if line.startswith("w2v:"))


@cluster
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("kind", ["SIGKILL", "SIGSTOP", "error"])
def test_a_rank_that_fails_ends_all(phase: str, kind: str, text: Path, tmp_path: Path) -> None:
    name, turn = PHASES[phase]
    before = "import os\n" + fault(name, kind, turn, "os.environ['PMI_RANK'] == '1'")
    options = ["-o", tmp_path / "m.bin", "--checkpoint", tmp_path / "states", "--checkpoint-every", "5chunks", *SMALL]
    patience = {"W2V_RANK_TIMEOUT": "3"} if kind == "SIGSTOP" else {}
    done = mpiexec(2, "train", text, "--epochs", 4, *options, before=before, code=None, **patience)
    assert done.returncode != 0
    assert not (tmp_path / "m.bin").exists()
    if kind == "error":
        assert "w2v: rank 1 (" in done.stderr
        assert "internal error: RuntimeError: broken" in done.stderr
    elif kind == "SIGKILL":
        assert ours(done.stderr) == ""  # mpiexec says it, and the other rank ends at once
        assert "BAD TERMINATION" in done.stdout + done.stderr
    else:
        assert_one_line(ours(done.stderr))
        assert re.match(r"w2v: rank 1 \(.+\) has not answered for 3 seconds: the run ends", ours(done.stderr))
    if checkpoint.files(tmp_path / "states"):
        mpiexec(4, "train", text, "--resume", tmp_path / "states", "-o", tmp_path / "m.bin", "--quiet")
        assert (tmp_path / "m.bin").exists()


SAYING_SO = """
import sys
from w2v.training.checkpoint import Checkpoints
copy = Checkpoints.copy
def copy_and_say(self, state):
    copy(self, state)
    print("copied", file=sys.stderr, flush=True)
Checkpoints.copy = copy_and_say
"""


def interrupted(text: Path, folder: Path, number: int) -> str:
    """Send a signal to mpiexec once there is a checkpoint; what the ranks then say."""
    options = ["-o", folder / "m.safetensors", "--checkpoint", folder / "states", "--checkpoint-every", "1epoch"]
    arguments = map(str, ["train", text, "--epochs", 200, *options, *SMALL])
    program = [MPIEXEC, "-n", "2", sys.executable, "-c", SAYING_SO + PROGRAM, *arguments]
    with Started(program, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr.readline() == "copied\n"
        running.send_signal(number)
        said = running.communicate(timeout=120)[1]
    assert running.returncode == 128 + number, said
    return ours(said)


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=cluster), signal.SIGTERM])
def test_a_signal_to_mpiexec_writes_a_checkpoint(number: int, text: Path, tmp_path: Path) -> None:
    said = interrupted(text, tmp_path, number)
    assert_one_line(said)
    assert "stopped by" in said
    again = f"w2v train {text} --resume {tmp_path / 'states'} -o {tmp_path / 'm.safetensors'}\n"
    assert said.endswith(f"resume with: {again}")
    state = checkpoint.latest(tmp_path / "states")
    assert 0 < state.position.done < state.position.end
    assert state.position.ranks == 2


@cluster
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_stopped_run_resumes_with_any_number_of_ranks(count: int, text: Path, tmp_path: Path) -> None:
    whole = trained(2, [text], tmp_path / "whole.safetensors", "--epochs", 6)
    states = ["--checkpoint", tmp_path / "states", "--checkpoint-every", "1epoch"]
    output = tmp_path / "m.safetensors"
    killed = fault("w2v.training.checkpoint:Checkpoints.copy", "SIGKILL", 2)
    mpiexec(2, "train", text, "-o", output, "--epochs", 6, *states, *SMALL, before=killed, code=None)
    state = checkpoint.latest(tmp_path / "states")
    assert state.position.done % (state.position.end // 6) == 0  # exactly at the end of an epoch
    done = mpiexec(count, "train", text, "--resume", tmp_path / "states", "-o", output, "--quiet")
    assert done.stderr == ""
    model = Model.load(output)
    total = whole.metrics["tokens_trained"]
    # With another number of ranks the position is rounded to a round, or to a chunk.
    assert model.metrics["tokens_trained"] == (total if count == 2 else pytest.approx(total, rel=0.05))
    assert model.metrics["loss"][-1] < model.metrics["loss"][0]
    assert model.metrics["loss"][-1] == pytest.approx(whole.metrics["loss"][-1], rel=0.25)


@cluster
def test_a_run_of_one_process_resumes_with_ranks(text: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.safetensors"
    stopped(tmp_path / "states", text, 0.5)
    mpiexec(2, "train", text, "--resume", tmp_path / "states", "-o", output, "--quiet")
    assert Model.load(output).metrics["ranks"] == 2


@cluster
def test_ranks_must_resume_the_same_text(text: Path, tmp_path: Path) -> None:
    mine = tmp_path / "text"
    mine.write_bytes(text.read_bytes())
    interrupted(mine, tmp_path, signal.SIGTERM)
    mine.write_bytes(text.read_bytes().replace(b"a", b"e"))
    again = ["-o", tmp_path / "m.bin", "--quiet"]
    done = mpiexec(2, "train", mine, "--resume", tmp_path / "states", *again, code=1)
    assert_one_line(done.stderr)
    assert "does not hold the text that the run began with" in done.stderr


def test_the_old_name_of_join_ranks_works_with_a_warning() -> None:
    from w2v.training.world import join

    with pytest.warns(DeprecationWarning, match=r"w2v\.training\.communicator\.join_ranks"):
        assert join() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop_early": 2}, "holds out the end of the whole text"),
        ({"encoding": "cp949"}, "only UTF-8 is divided among ranks"),
        ({"phrases": True}, "finds the phrases of a whole text"),
        ({"strip_markup": True}, "markup may span the places where a text is divided"),
    ],
)
def test_what_needs_the_whole_text_is_refused(options: dict[str, Any], message: str) -> None:
    _refuse_undividable(RunConfig.from_options({}))
    with pytest.raises(w2v.SettingsError, match=message):
        _refuse_undividable(RunConfig.from_options(options))


def test_ranks_notice_phrases_of_another_file(text: Path, tmp_path: Path) -> None:
    found = []
    for phrases in ("new york", "new jersey"):
        (tmp_path / "phrases").write_text(phrases)
        config = RunConfig.from_options({"phrases": tmp_path / "phrases"})
        found.append(_values_all_ranks_share(config, Corpus(text), None))
    assert found[0].keys() == found[1].keys()
    assert [name for name in found[0] if found[0][name] != found[1][name]] == ["checksum of the phrases"]
