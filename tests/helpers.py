"""Helpers of several test files: the command line, stopped runs, models with a known solution, vector files, texts."""

import errno
import importlib.util
import itertools
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, NoReturn, get_args

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import strategies as st

import w2v
from w2v._cli import main as cli
from w2v._errors import W2VError
from w2v._explore.content import word_maps
from w2v._explore.explorer import Explorer
from w2v._formats import registry
from w2v._formats.header import ModelHeader
from w2v._formats.native import write_native
from w2v._formats.vector_file import VectorFile
from w2v._kernel import loop
from w2v._kernel.plan import INSTRUCTION_SETS, Plan
from w2v._kernels import Kernel, step_for
from w2v._losses.loss import Loss
from w2v._losses.registry import LOSSES, Settings, loss_for
from w2v._losses.rows import below, draw, index_of
from w2v._losses.sampling import alias_table, noise_weights
from w2v._losses.worker import new_worker
from w2v._progress import Progress, Report
from w2v._settings import ModelName
from w2v._system import memory
from w2v._text._text import FIRST_TYPE, SENTENCE_END_ID
from w2v._text.columns import PLAIN
from w2v._text.corpus import Corpus
from w2v._text.idstore import IdStore, ReadingOptions, read_corpus
from w2v._text.words import Words
from w2v._training import checkpoint, checkpoint_folder
from w2v._training.model import View
from w2v._training.schedule import Schedule
from w2v._vectors.approximate import ApproximateIndex

SETS = [name for name in INSTRUCTION_SETS if step_for(name)]  # the instruction sets of this machine
CYTHON_LOSSES = [name for name, kind in LOSSES.items() if "cython" in kind.kernels]
# Numba compiles the losses that are not in CYTHON_LOSSES, which takes some seconds for each.
ALL_LOSSES = [pytest.param(name, marks=[pytest.mark.slow] * (name not in CYTHON_LOSSES)) for name in LOSSES]
MODELS = [{"model": model, "loss": loss} for model in get_args(ModelName) for loss in CYTHON_LOSSES]

# -- gensim, which has no wheel for the newest Python -------------------------------------------


class MissingModule:
    """A stand-in for a module, and for everything in it. A test that calls something in it is skipped."""

    def __getattr__(self, name: str) -> "MissingModule":
        if name.startswith("__"):  # pytest asks for some
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: object, **options: object) -> NoReturn:
        pytest.skip("gensim is not installed")


def import_gensim(name: str = "gensim") -> Any:
    """Return a module of gensim, or a MissingModule if gensim is not installed."""
    return importlib.import_module(name) if importlib.util.find_spec("gensim") else MissingModule()


# -- the command line -----------------------------------------------------------------------

PROGRAM = [sys.executable, "-c", "from w2v._cli.main import main; main(prog_name='w2v')"]
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
needs_full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="macOS and Windows have no /dev/full")
QUICK = ["--epochs", "1", "--vector-size", "8", "--workers", "1"]


def run(*arguments: object, code: int = 0, stdin: str | bytes | None = None) -> Result:
    """Run a command in this process and check its exit code. A failing command must print one line.

    With --json, this line is the JSON of an error.
    """
    result = CliRunner().invoke(cli.main, list(map(str, arguments)), input=stdin, prog_name="w2v")
    assert (result.exit_code, type(result.exception)) in [(0, type(None)), (code, SystemExit)], result.stderr
    assert result.exit_code == code, result.output
    if code:
        if "--json" in itertools.takewhile(lambda argument: argument != "--", arguments):
            assert json.loads(result.stderr).keys() == {"error", "exit_code"}
        else:
            assert_one_line(result.stderr)
        assert result.stdout == ""
    return result


def explorer_of(vectors: w2v.KeyedVectors, size: int, index: ApproximateIndex | None = None) -> Explorer:
    """Return the explorer of a model with a map of its first `size` words."""
    return Explorer(vectors, word_maps([vectors], size, "pca")[0], index)


def run_json(*arguments: object, **options: Any) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run(*arguments, "--json", **options).stdout)
    return result


def command_of(context: click.Context, name: str) -> click.Command:
    command = cli.main.get_command(context, name)
    assert command is not None
    return command


class ChildProcess(subprocess.Popen[Any]):
    """A child process that is killed if its `with` block fails: otherwise the test would wait for its end."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind:
            self.kill()
        super().__exit__(kind, error, trace)


def start(*arguments: object, before: str = "", **options: Any) -> ChildProcess:
    """Start a command in a new process, which first runs the Python code `before`."""
    program = [*PROGRAM[:2], before + PROGRAM[2], *map(str, arguments)]
    return ChildProcess(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


class Terminal:
    """A Python program on a pseudo-terminal. It is killed at the end of the `with` block.

    Attributes:
        shown: The output so far.
    """

    def __init__(self, *arguments: object, width: int = 80, **variables: str) -> None:
        fcntl, pty, termios = map(pytest.importorskip, ("fcntl", "pty", "termios"))
        self.shown = b""
        self._leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        # These variables would replace the size of the terminal.
        inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=inherited | {"TERM": "xterm"} | variables,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # turns a typed Ctrl-C into a signal
        )
        os.close(follower)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.hang_up()

    def type(self, text: bytes) -> None:
        os.write(self._leader, text)

    def read_until(self, expected: bytes) -> None:
        """Read until the program prints `expected`."""
        start = len(self.shown)
        while expected not in self.shown[start:]:
            self.shown += os.read(self._leader, 1)  # raises OSError at the end of the program

    def wait(self) -> int:
        """Read to the end, and return the exit code."""
        with suppress(OSError):  # Linux raises it when the program has closed its end of the terminal
            while data := os.read(self._leader, 4096):
                self.shown += data
        return self.process.wait()

    def hang_up(self) -> None:
        if self._leader >= 0:
            os.close(self._leader)
        self._leader = -1


# Code for a child process. It defines `fault`, which makes call number `turn` of a function raise an error or a signal.
# The function is "module.function" or "module:Class.method".
FAULT = """
import itertools, pkgutil, signal
def fault(name, kind, turn):
    owner_name, _, name = name.rpartition(".")
    owner = pkgutil.resolve_name(owner_name)
    original, turns = getattr(owner, name), itertools.count()
    def faulty(*arguments, **options):
        if next(turns) == turn:
            if kind == "error":
                raise RuntimeError("broken")
            signal.raise_signal(signal.Signals[kind])
        return original(*arguments, **options)
    setattr(owner, name, faulty)
"""


def fault_code(name: str, kind: str, turn: int = 0, condition: str = "True") -> str:
    """Return code for `before` that injects a fault into a call of a function if `condition` is true; see FAULT."""
    return f"{FAULT}if {condition}:\n    fault({name!r}, {kind!r}, {turn})\n"


def full_disk(*_: object, **__: object) -> None:
    """Raise the error of a full disk, in place of a function that writes."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def limit_disk_space(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    """Let every disk have this many free bytes."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))


def assert_mode(path: Path, mode: int) -> None:
    """Assert that a file has these permissions. Windows has none that Python shows."""
    assert os.name == "nt" or stat.S_IMODE(path.stat().st_mode) == mode


def assert_one_line(stderr: str) -> None:
    assert stderr.startswith("w2v: ")
    assert stderr.count("\n") == 1
    assert stderr.endswith("\n")


# -- stopped runs ---------------------------------------------------------------------------

SMALL: dict[str, Any] = {"vector_size": 16, "epochs": 3, "workers": 1}


class Stop(Exception):
    """An exception that a progress callback raises to stop a run."""


def stop_at(share: float) -> Report:
    """Return a progress callback that stops training after this share of it."""

    def stop(progress: Progress) -> None:
        if progress.phase == "train" and progress.total and share <= progress.done / progress.total < 1:
            raise Stop

    return stop


def train_and_stop(folder: Path, corpus: Any, share: float = 0.2, **options: Any) -> checkpoint.Checkpoint:
    """Train, stop the run after this share of it, and return the last checkpoint. The folder then has two."""
    options = options if "settings" in options else SMALL | options
    with pytest.raises(Stop):
        w2v.train(corpus, checkpoint=folder, checkpoint_every="2chunks", progress=stop_at(share), **options)
    latest = checkpoint_folder.latest(folder)
    assert 0 < latest.resume_info.done < latest.resume_info.end
    assert len(checkpoint_folder.files(folder)) == 2
    return latest


def stop_after(count: int) -> Callable[[Any, Any], None]:
    """Return a callback that stops a search for settings after this many trials."""

    def stop(trial: Any, search: Any) -> None:
        if len(search.trials) == count:
            raise Stop

    return stop


def trials_in(state: Path) -> list[dict[str, Any]]:
    """Return the trials in the state file of a search."""
    trials: list[dict[str, Any]] = json.loads(state.read_text())["trials"]
    return trials


def interrupt(*arguments: object) -> str:
    """Run `w2v train`, send Ctrl-C when it saves its model, and return what it prints to stderr."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(w2v.Model, "save", lambda *_, **__: signal.raise_signal(signal.SIGINT))
        return run("train", *arguments, code=130).stderr


def assert_same(one: w2v.Model, other: w2v.Model) -> None:
    """Assert that two models have bit-identical matrices and the same losses and counts."""
    assert [*one.views] == [*other.views]
    np.testing.assert_array_equal(one.wv.vectors, other.wv.vectors)
    for name in one.views:
        assert_same_views(one.views[name], other.views[name])


def assert_same_views(one: View, other: View) -> None:
    """Assert the same of two views."""
    assert one.vocabulary.words == other.vocabulary.words
    np.testing.assert_array_equal(one.inputs, other.inputs)
    np.testing.assert_array_equal(one.outputs, other.outputs)
    np.testing.assert_array_equal(one.wv.vectors, other.wv.vectors)
    assert (one.ngrams is None) == (other.ngrams is None)
    if one.ngrams and other.ngrams:
        np.testing.assert_array_equal(one.ngrams.rows, other.ngrams.rows)
    for name in ("loss", "tokens", "tokens_trained", "sentences"):
        assert one.metrics[name] == other.metrics[name], name


# -- models with a known solution -----------------------------------------------------------


@cache
def pairs() -> tuple[list[list[str]], np.ndarray]:
    """Return sentences of two words, and the symmetric counts of all word pairs, (V, V), all above 0."""
    size, random = 20, np.random.default_rng(5)
    joint = random.gamma(0.7, size=(size, size)) + 0.05
    joint = joint + joint.T
    sentences = random.choice(size * size, 100_000, p=(joint / joint.sum()).ravel())
    counts = np.bincount(sentences, minlength=size * size).reshape(size, size)
    return [[f"w{k // size}", f"w{k % size}"] for k in sentences.tolist()], counts + counts.T


def train_on_pairs(**options: Any) -> tuple[w2v.Model, np.ndarray, np.ndarray]:
    """Train a model on the sentences of `pairs`.

    Returns:
        The model, its scores (V, R) of all output rows for each word, and the pair counts in the vocabulary's order.
    """
    sentences, counts = pairs()
    defaults = {"vector_size": 24, "window": 1, "min_count": 1, "sample": 0, "epochs": 6, "workers": 1}
    model = w2v.train(sentences, **(defaults | options))
    order = [int(word[1:]) for word in model.vocabulary.words]
    return model, model.views["words"].inputs @ model.views["words"].outputs.T, counts[np.ix_(order, order)]


def make_loss(counts: Any, loss: str = "ns", **settings: Any) -> Loss:
    """Return a loss over words with these counts, by default without subsampling."""
    vocabulary = w2v.Vocabulary([f"w{row}" for row in range(len(counts))], np.asarray(counts, np.int64))
    return loss_for(Settings(loss=loss, **{"sample": 0, **settings}), vocabulary)


def loss_with_draws(counts: Any, name: str, negative: int, **settings: Any) -> Loss:
    """Return a loss with more noise draws than words, so that it draws some words repeatedly."""
    loss: Any = make_loss(counts, name, negative=negative, **settings)
    loss.negative = loss.predrawn = negative
    loss.max_rows = negative + 1
    weights = noise_weights(counts, loss.options.ns_exponent)
    loss.data = {"alias_table": alias_table(weights), "offsets": loss.offsets(weights)}
    result: Loss = loss
    return result


class Hinge(Loss):
    """The loss of docs/own-loss.md, written by a user."""

    max_rows = 6

    @staticmethod
    def choose(s: Any, centre: int, x: Any) -> int:
        s.rows[0], s.target[0], m = centre, 1, 1
        for _ in range(5):
            word = below(draw(s.random), len(s.parameters.outputs))
            if index_of(s.rows, word, m) == m:
                s.rows[m], s.target[m], m = word, -1, m + 1
        return m

    @staticmethod
    def link(s: Any, scores: Any) -> float:
        loss = 0.0
        for i in range(scores.shape[0]):
            for j in range(scores.shape[1]):
                short = max(1 - s.target[j] * scores[i, j], 0)
                loss += short
                scores[i, j] = s.target[j] if short > 0 else 0
        return loss


def log_probability(loss: Loss, outputs: np.ndarray, row: np.ndarray, word: int) -> float:
    """Return log p(word | row), computed factor by factor from the definition of a loss."""
    data: Any = loss.data
    scores, size, starts = outputs @ row, len(loss.vocabulary), data.get("starts")
    if loss.name == "hs":
        path = slice(starts[word], starts[word + 1])
        return -float(np.logaddexp(0, (2 * data["codes"][path] - 1) * scores[data["nodes"][path]]).sum())
    if loss.name == "class":
        own = int(np.searchsorted(starts, word, "right")) - 1
        of_class = _log_softmax(scores[size : size + len(starts) - 1], own)
        return of_class + _log_softmax(scores[starts[own] : starts[own + 1]], word - starts[own])
    # The scores of negative sampling estimate log(p / noise), up to a constant.
    noise = loss.options.ns_exponent * np.log(loss.vocabulary.counts) if loss.name == "ns" else 0
    return _log_softmax(scores[:size] + noise, word)


def _log_softmax(scores: np.ndarray, index: int) -> float:
    return float(scores[index] - np.log(np.exp(scores).sum()))


def new_plan(loss: Loss, *, ids: np.ndarray, word_of_type: np.ndarray, chunk_size: int = 1000, **given: Any) -> Plan:
    """Return a plan; by default, of skip-gram with one worker for one epoch at a constant learning rate.

    Args:
        loss: The loss.
        ids, word_of_type, chunk_size: See Plan.
        given: Other fields of Plan, and settings.
    """
    words = len(given.get("keep_thresholds", loss.vocabulary)) - (given["tags"].count if given.get("tags") else 0)
    known = ((word_of_type[ids] >= 0) & (word_of_type[ids] < words)).astype(np.int64)
    before = np.append(0, np.cumsum(np.add.reduceat(known, np.arange(0, len(known), chunk_size))))
    keep = np.full(len(loss.vocabulary), 2**32 - 1, np.uint32)
    plan = {"keep_thresholds": keep, "epochs": 1, "workers": 1, "instruction_set": "baseline"}
    plan |= {each.name: given.pop(each.name) for each in fields(Plan) if each.name in given}
    defaults = {"model": "skipgram", "cbow_gradient": "corrected", "min_alpha": given.get("alpha"), "seed": 2}
    plan = {"settings": Settings(**defaults | given)} | plan
    return Plan(loss=loss, ids=ids, word_of_type=word_of_type, chunk_size=chunk_size, tokens_before=before, **plan)


def train_in_python(plan: Plan, inputs: np.ndarray, parameters: dict[str, np.ndarray]) -> loop.Kernel:
    """Train matrices in place with the loop in plain Python.

    Deterministic workers train in rounds. Each worker trains one chunk, starting from the matrices at the beginning of
    the round. The sum of all changes is then added to the matrices.
    """
    kernel = loop.Kernel(plan, inputs, parameters)
    matrices, workers = [inputs, *parameters.values()], plan.workers if plan.settings.deterministic else 1
    for epoch in range(plan.epochs):
        for first in range(0, plan.chunks, workers):
            before = [matrix.copy() for matrix in matrices]
            after = [matrix.copy() for matrix in matrices]
            for chunk in range(first, min(first + workers, plan.chunks)):
                kernel.run(0, epoch * plan.chunks + chunk + 1)
                for matrix, old, new in zip(matrices, before, after, strict=True):
                    new += matrix - old
                    matrix[:] = old
            for matrix, new in zip(matrices, after, strict=True):
                matrix[:] = new
    return kernel


def python_worker(loss: Loss, outputs: np.ndarray | None = None, inputs: int = 1, seed: int = 1) -> Any:
    """Return the state of a worker of the loop in plain Python, in float64, for this number of input rows."""
    outputs = np.zeros((loss.rows, 3)) if outputs is None else outputs
    thread = new_worker(loss, {"outputs": outputs}, inputs, outputs.shape[1], np.float64)
    with np.errstate(over="ignore"):
        loop.start_random(thread, np.uint64(seed))
    return thread


def plan_without_text(loss: Loss, settings: Settings, chunk_size: int) -> Plan:
    """Return a plan for a run with these settings, without a text."""
    nothing = dict.fromkeys(("ids", "word_of_type", "keep_thresholds"), np.zeros(0, np.int64))
    return new_plan(loss, settings=settings, workers=settings.threads, chunk_size=chunk_size, **nothing)


def make_schedule(rounds: int, **plan: Any) -> Schedule:
    """Return a schedule for a plan with only these attributes."""
    partial_plan: Any = SimpleNamespace(**plan)
    return Schedule(partial_plan, rounds)


# The counts of a vocabulary of at least two words, the most frequent first.
DESCENDING_COUNTS = st.lists(st.integers(1, 20) | st.integers(1, 10**12), min_size=2, max_size=200).map(
    lambda counts: np.array(sorted(counts, reverse=True), np.int64)
)


MEMORY_NOISE = 4 << 20  # peaks of the same work differ by this many bytes: pages, and the gaps in a heap


def memory_of(use: Callable[[], object]) -> int:
    """Return the peak of the memory in bytes that a function allocates in Python and NumPy."""
    tracemalloc.start()
    try:
        use()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def assert_memory_grows(small: tuple[int, int], large: tuple[int, int], at_most: float) -> None:
    """Assert that the memory for a large input exceeds that for a small one by at most `at_most` times its growth.

    The difference does not have what depends on the machine: libraries, their buffers, and the heap of a process.

    Args:
        small: The size of an input and the peak memory for it, in bytes.
        large: The same for a larger input of the same kind.
    """
    input_growth, growth = (after - before for before, after in zip(small, large, strict=True))
    assert growth <= at_most * input_growth + MEMORY_NOISE, f"{growth / 1e6:,.1f} MB for {input_growth / 1e6:,.1f} MB"


# -- vector files -------------------------------------------------------------------------

FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
VOCABULARY = ["the", "köln", "case", "1", "[UNK]", '"', "a/b", "ﬁ", "大"]


def make_content(words: list[str] | int = VOCABULARY, columns: int = 3) -> VectorFile:
    """Return vectors for these words, or for a number of words, with counts, output rows and settings."""
    words = [f"wörd{row}" for row in range(words)] if isinstance(words, int) else words
    vectors = np.random.default_rng(1).standard_normal((len(words), columns)).astype(np.float32)
    header = ModelHeader({"loss": "ns", "model": "skipgram"})
    return VectorFile(Words.of(words), vectors, np.arange(len(words), 0, -1), {"outputs": vectors + 1}, header)


def write_with_strings(path: Path, **strings: str) -> None:
    """Write a native file of one word with these strings as its metadata, valid or not."""
    words = Words.of(["a"])
    tensors = {"words": words.blob, "word_offsets": words.offsets, "vectors": np.ones((1, 1), np.float32)}
    write_native(path, tensors, strings)


def assert_same_content(found: VectorFile, expected: VectorFile) -> None:
    """Assert that the words are equal and the vectors bit-identical."""
    assert list(found.words) == list(expected.words)
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors.view(np.uint32), expected.vectors.view(np.uint32))


def assert_refused(path: Path, message: str, data: bytes | None = None, mmap: bool = False) -> None:
    """Assert that a file is refused in one short line that matches `message`. Write `data` to it first, if given."""
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(W2VError, match=message) as caught:
        registry.read(path, mmap).words.tolist()
    error = str(caught.value)
    assert "\n" not in error
    assert len(error) < 600 + len(str(path))


# -- texts and their ids --------------------------------------------------------------------

SEPARATORS = st.sampled_from([b" ", b"\n", b"\t", b"\r\n", b"\v", b"\f", b"  \n\n ", b" " * 70])
# The tokenizer reads words of up to 8 bytes as one number, longer ones 8 bytes at a time, and texts 64 bytes at a time.
LENGTHS = [1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1000]
WORDS = (
    st.sampled_from([b"a\0", b"\0", b"\0\0", "é".encode(), "大".encode(), b"\x08\x0e", b"<\x1c\x1f"])
    | st.builds(bytes.__mul__, st.sampled_from([b"x", b"y"]), st.sampled_from(LENGTHS))
    | st.integers(0, 3000).map(b"w%d".__mod__)
)
LATIN_1 = st.text("aé\ufffd", min_size=1, max_size=3).map(lambda word: word.encode("latin-1", "ignore") or b"\xe9")


def text_bytes(words: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Return a strategy for texts of these words with any separators."""
    pieces = st.lists(st.tuples(words, SEPARATORS), max_size=200)
    return pieces.map(lambda pairs: b"".join(itertools.chain.from_iterable(pairs)) + b"\n")


def read_text(corpus: Corpus, *, workers: int = 1, progress: Report | None = None, **reading: Any) -> IdStore:
    """Read a corpus with these options. Read it as plain text even if it looks like a table."""
    return read_corpus(corpus, ReadingOptions(**{"column": PLAIN, **reading}), workers=workers, progress=progress)


def read_sessions(source: Any, **options: Any) -> tuple[str, list[list[str]]]:
    """Return the type of the keys of items, and the sessions that have items."""
    with read_text(Corpus(source), **options) as store:
        words = store.types.tolist()
        found: list[list[str]] = [[]]
        for number in store.ids.tolist():
            if number:
                found[-1].append(words[number])
            else:
                found.append([])
        assert not found.pop()
        assert store.counts.tolist() == np.bincount(store.ids, minlength=len(store.counts)).tolist()
        assert not store.is_text
        return store.key_type, found


def reference_ids(text: bytes, errors: str = "strict") -> tuple[list[int], list[bytes]]:
    """Return the ids and the types of a text, computed from their definition."""
    numbers: dict[bytes, int] = {}
    ids: list[int] = []
    for line in text.split(b"\n"):
        words = [word.decode(errors=errors).encode() for word in line.split()]
        sentence = [numbers.setdefault(word, len(numbers) + FIRST_TYPE) for word in words if word]
        ids += [*sentence, SENTENCE_END_ID] if sentence else []
    return ids, list(numbers)


TOPICS = 4


def topic_sentences(number: int) -> list[list[str]]:
    """Return sentences of seven words of t0w0 to t3w9. All words of a sentence have the same topic, t0 to t3."""
    random = np.random.default_rng(1)
    topics = random.integers(TOPICS, size=number).tolist()
    return [[f"t{topic}w{word}" for word in random.integers(10, size=7)] for topic in topics]


def related_vectors(rows: int, columns: int = 8, seed: int = 5, noise: float = 0.4) -> w2v.KeyedVectors:
    """Return vectors of pairs a0 b0, a1 b1, … for which some analogies hold: each b is its a plus a shift and noise."""
    random = np.random.default_rng(seed)
    first = random.standard_normal((rows, columns))
    second = first + random.standard_normal(columns) + noise * random.standard_normal((rows, columns))
    words = [f"{letter}{row}" for row in range(rows) for letter in "ab"]
    return w2v.KeyedVectors(words, np.stack([first, second], axis=1).reshape(2 * rows, columns))


def ngrams_of(word: str, shortest: int, longest: int) -> list[str]:
    """Return all substrings of these lengths in <word>, except a single < or >."""
    marked = f"<{word}>"
    found = [
        marked[first : first + length]
        for first in range(len(marked))
        for length in range(shortest, longest + 1)
        if first + length <= len(marked)
    ]
    ends = [marked[:1]] * (shortest == 1) + [marked[-1:]] * (shortest == 1)
    for end in ends:
        found.remove(end)
    return found


def bucket_of(ngram: str, buckets: int) -> int:
    """Return fastText's hash, FNV-1a of signed bytes."""
    value = 2166136261
    for byte in ngram.encode():
        value = (value ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * 16777619 % 2**32
    return value % buckets


def copy_matrices(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with copies of the matrices, which another run may change."""
    copies = {name: memory.aligned_rows(*arguments[name].shape) for name in ("inputs", "outputs")}
    for name, matrix in copies.items():
        matrix[:] = arguments[name]
    return arguments | copies


def run_threads(kernel: Kernel, workers: int, end: int | None = None) -> None:
    threads = [threading.Thread(target=kernel.run, args=(number, end)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
