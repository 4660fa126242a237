"""Fault injection: each call that reads or writes files fails in turn, or the process is killed there.

One process imports and compiles everything, with the shim (shim.c) preloaded, and forks a child for each run of the
command line. So a run takes a fraction of a second, and thousands are possible. A run reads and writes in one folder
only; whatever fails, its outcome must pass `FaultInjector.check_outcome`.

    python tests/faults/run.py SCENARIO …        runs the scenarios below, and stores their results
"""

import contextlib
import ctypes
import errno
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

FAIL, FAIL_FROM, KILL_BEFORE, KILL_AFTER = range(4)  # as in shim.c
ERRORS = {name: getattr(errno, name) for name in ("ENOSPC", "EIO", "EACCES", "EDQUOT", "ESTALE", "EROFS")}
OLD = b"2 1\nold 1\nfile 2\n"  # content of each output before a run
STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGINT, -signal.SIGTERM)
RUN_LIMIT = 120  # seconds after which a run counts as failed; most runs take less than one second
REPORT_INTERVAL = 60.0  # seconds
# Allocations of this many bytes or more are refused. Training survives refusals of small ones, too. NumPy and
# Matplotlib, which the other commands use, crash without their own buffers of up to 128 kB.
SMALL_REQUEST, LARGE_REQUEST = 1 << 12, 1 << 18


class Job:
    """A command line and the files that it writes.

    The outputs of a `pair` are read together; the command renames the second file to its final name first.
    """

    def __init__(self, command: str, *outputs: str, pair: bool = False) -> None:
        self.command, self.outputs, self.pair = command.split(), outputs, pair

    @property
    def resume(self) -> list[str]:
        """Return the command that resumes this training with the same files."""
        file_options = [word for pair in itertools.pairwise(self.command) if pair[0] in FILES for word in pair]
        return ["train", self.command[1], "--resume", "checkpoints", *file_options, "--force", "--quiet"]


FILES = ("-o", "--save-vocab", "--cache")
SMALL_RUN = "--force --quiet --workers 1 --min-count 1 --vector-size 8"
CHECKPOINTS = "--checkpoint checkpoints --checkpoint-every"
TRAIN = Job(
    f"train corpus.txt -o model.txt {SMALL_RUN} --epochs 6 --negative 3 --save-vocab words.txt --cache cache "
    f"{CHECKPOINTS} 1epoch",
    "model.txt",
    "words.txt",
)
# At least one for each command.
COMMANDS = {
    "train --continue": Job(
        "train corpus.txt --continue model.safetensors -o new.txt --force --epochs 1 --workers 1 --quiet --vocab union "
        "--save-config run.toml",
        "new.txt",
        "run.toml",
    ),
    "train --config": Job("train --config settings.toml --force --quiet", "new.txt"),
    "analogy": Job("analogy model.safetensors questions.txt --json"),
    "similarity": Job("similarity model.safetensors pairs.txt --json"),
    "evaluate": Job("evaluate model.safetensors model.bin --questions questions.txt --pairs pairs.txt --json"),
    "compare-losses": Job("compare-losses corpus.txt --losses ns --vector-size 8 --epochs 1 --workers 1 --quiet"),
    "compare": Job("compare model.safetensors model.bin --json"),
    "compare-periods": Job(
        "compare-periods short.txt corpus.txt --model model.safetensors --min-count 1 --min-documents 1 --json"
    ),
    "change": Job("change model.safetensors model.safetensors --min-count 1 --json"),
    "perplexity": Job("perplexity model.safetensors corpus.txt --json --quiet --cache cache"),
    "rank": Job("rank model.safetensors -o rank.png --force", "rank.png"),
    "query": Job("query model.safetensors w1 - w2 + w3 --vector --json"),
    "info": Job("info model.safetensors"),
    "convert": Job("convert model.safetensors new.txt.gz --force", "new.txt.gz"),
    "convert to two files": Job("convert model.bin new.npy --force", "new.npy", "new.words.txt", pair=True),
    "convert from text": Job("convert model.txt.gz new.safetensors --force", "new.safetensors"),
    "combine": Job("combine model.safetensors model.bin -o new.safetensors --force", "new.safetensors"),
    "align": Job(
        "align model.safetensors model.bin -o aligned --force",
        "aligned/model.safetensors",
        "aligned/model-2.safetensors",
    ),
    "encode": Job("encode model.safetensors short.txt -o new.npy --force --quiet", "new.npy"),
    "classify": Job("classify labels.txt -o new.safetensors --force --workers 1 --quiet", "new.safetensors"),
    "predict": Job("predict classifier.safetensors short.txt"),
    "quantize": Job("quantize classifier.safetensors -o new.safetensors --cutoff 5 --force --quiet", "new.safetensors"),
    "vocab": Job("vocab corpus.txt -o new.txt --force --workers 1", "new.txt"),
    "phrases": Job(
        "phrases short.txt -o new.txt --force --threshold 1 --save-phrases phrases.tsv --workers 1 --quiet",
        "new.txt",
        "phrases.tsv",
    ),
    "slices": Job(
        f"slices short.txt corpus.txt -o periods {SMALL_RUN} --epochs 1",
        *(f"periods/{name}.safetensors" for name in ("compass", "short", "corpus")),
    ),
    "walks": Job("walks pairs.txt -o new.txt --force --weighted --workers 1 --quiet", "new.txt"),
    "recommend": Job("recommend model.safetensors short.txt -o new.jsonl --topn 2 --force --quiet", "new.jsonl"),
    "plot": Job("plot model.safetensors w1 w2 -o map.svg --force --quiet", "map.svg"),
    "explore": Job("explore model.safetensors -o page.html --force", "page.html"),
    # All settings are fixed, so that the duration of trials cannot change the result.
    "tune": Job(
        f"tune short.txt -o new.safetensors {SMALL_RUN} --model skipgram --loss ns --window 5 --negative 3 --sample 0 "
        "--vectors input --alpha 0.05 --min-alpha 0.001 --epochs 1",
        "new.safetensors",
        "new.toml",
    ),
    "tree": Job("tree words.txt --tree clustered --tree-vectors model.safetensors --json --quiet"),
}
QUESTIONS = b": one\nw1 w2 w3 w4\nw2 w1 w4 w3\n: gram2\nw1 w3 w5 w7\n"
PAIRS = b"w1 w2 1\nw3 w4 2.5\nw5 w6 3\nw7 w8 0.5\n"
SETTINGS = b'corpus = "corpus.txt"\noutput = "new.txt"\nepochs = 1\nworkers = 1\nmin_count = 1\nvector_size = 8\n'


def kinds_of_training() -> Iterator[Job]:
    """Yield trainings with checkpoints: every loss, model and storage, and other options."""
    from w2v._losses.registry import LOSSES

    def job(corpus: str, every: str, options: str) -> Job:
        command = f"train {corpus} -o new.safetensors --force --workers 1 --quiet {CHECKPOINTS} {every} {options}"
        return Job(command, "new.safetensors")

    small = "--min-count 1 --vector-size 8 --epochs 4"
    for (name, kind), model in itertools.product(LOSSES.items(), ("skipgram", "cbow")):
        for storage in kind.storages:
            corpus = "short.txt" if kind.kernels == ("numba",) else "corpus.txt"
            yield job(corpus, "1epoch", f"--model {model} --loss {name} --storage {storage} {small}")
    yield job("corpus.txt", "0.02s", f"{small} --sg --per-pair --cache cache")
    yield job("corpus.txt", "0.02s", f"{small} --loss hs --sg --per-pair --vectors input")
    yield job("corpus.txt", "0.02s", f"{small} --loss sampled --adaptive-samples --vectors concatenated")
    yield job("corpus.txt", "1epoch", f"{small} --model cbow --cbow-gradient corrected --sample 0")
    yield job("corpus.txt.gz", "0.05s", f"{small} --fixed-windows --max-types 30 --save-vocab words.txt")
    yield job("short.txt", "1epoch", f"{small} --kernel numba")
    yield job("corpus.txt", "1epoch", "--continue model.safetensors --vocab old --epochs 4")
    yield job("corpus.txt", "1epoch", "--continue model.safetensors --vocab union --epochs 4 --min-count 1")


@dataclass(frozen=True)
class Fault:
    """What goes wrong in a run; by default nothing."""

    call: int = 0  # number of the call to act on
    action: int = FAIL
    error: int = 0
    allocation: int = 0  # from this request on, allocations of `bytes` or more are refused
    bytes: int = 1 << 16
    signal_number: signal.Signals = signal.SIGKILL
    signal_after: float = 0  # seconds; 0: never
    streams: tuple[tuple[int, str], ...] = ()  # file descriptors, each with a key of BROKEN_STREAMS


@dataclass(frozen=True)
class Outcome:
    """What a run did."""

    code: int  # exit code; negative: ended by this signal
    stderr: list[str]  # lines
    stdout: bytes
    calls: list[str]  # names of the counted calls


@dataclass
class ExpectedResult:
    """The result of a job if nothing goes wrong."""

    files: dict[str, object] = field(default_factory=dict)  # by name, as `comparable_content` returns them
    stdout: bytes = b""
    calls: int = field(default=0, compare=False)  # varies between runs, because some checkpoints are due by the clock


class FaultInjector:
    """Runs jobs in `folder` with faults, and checks their outcomes; `reset_folder` prepares each run."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.folder = folder
        self.log, self.stderr, self.stdout = (folder.with_name(name) for name in ("calls", "stderr", "stdout"))
        self.next_errors = itertools.cycle(ERRORS.items())
        self.expected_results: dict[Job, ExpectedResult] = {}
        self.shim = ctypes.CDLL(str(library))
        self.shim.arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_char_p]
        self.shim.limit_allocations.argtypes = [ctypes.c_long, ctypes.c_size_t]
        generator = random.Random(1)
        words = [f"w{int(50 * generator.random() ** 3)}" for _ in range(60_000)]
        lines = [" ".join(words[start : start + 20]) for start in range(0, len(words), 20)]
        self.inputs = {
            "corpus.txt": "\n".join(lines).encode(),
            "short.txt": "\n".join(lines[:200]).encode(),
            "labels.txt": "\n".join(f"__label__{line[:2]} {line}" for line in lines[:200]).encode(),
            "questions.txt": QUESTIONS,
            "pairs.txt": PAIRS,
            "settings.toml": SETTINGS,
        }
        self.inputs |= self._create_inputs()

    def _create_inputs(self) -> dict[str, bytes]:
        """Run the commands that write inputs of other commands; return the inputs by name."""
        inputs = {}
        model = [*TRAIN.command, "-o", "model.safetensors"]
        for command, name in (
            (model, "model.safetensors"),
            (model, "words.txt"),
            (["classify", "labels.txt", "-o", "classifier.safetensors"], "classifier.safetensors"),
            (["convert", "model.safetensors", "model.bin"], "model.bin"),
            (["convert", "model.safetensors", "model.txt.gz"], "model.txt.gz"),
        ):
            self.reset_folder()
            for input_name, content in inputs.items():
                (self.folder / input_name).write_bytes(content)
            outcome = self.run(command)
            assert outcome.code == 0, outcome.stderr
            inputs[name] = (self.folder / name).read_bytes()
        import gzip

        return inputs | {"corpus.txt.gz": gzip.compress(self.inputs["corpus.txt"])}

    def reset_folder(self, job: Job | None = None) -> None:
        """Empty the folder, then write the inputs, and an old file in the place of each output."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "tmp").mkdir(parents=True)
        outputs = job.outputs if job else ()
        for name, content in (self.inputs | dict.fromkeys(outputs, OLD)).items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_bytes(content)

    def expected_result(self, job: Job) -> ExpectedResult:
        """Run the job twice without faults, once for all scenarios; check that the results agree, and return them."""
        if job in self.expected_results:
            return self.expected_results[job]
        results = []
        for _ in range(2):
            self.reset_folder(job)
            outcome = self.run(job.command)
            assert outcome.code == 0, (job.command, outcome.stderr)
            files = {name: comparable_content(self.folder / name) for name in job.outputs}
            results.append(ExpectedResult(files, outcome.stdout, len(outcome.calls)))
        assert results[0] == results[1], job.command
        assert OLD not in results[0].files.values(), job.command
        return self.expected_results.setdefault(job, results[0])

    def run(self, command: list[str], fault: Fault | None = None) -> Outcome:
        """Run a command in a forked child, with this fault."""

        fault = fault or Fault()
        for file in (self.log, self.stderr, self.stdout):
            file.write_bytes(b"")
        child = os.fork()
        if not child:
            self._run_child(command, fault)
        try:
            code = self._wait(child, fault)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        lines = self.stderr.read_text("utf-8", "replace").splitlines()
        return Outcome(code, lines, self.stdout.read_bytes(), self.log.read_text().split())

    def _wait(self, child: int, fault: Fault) -> int:
        """Wait for the child, send the signal of the fault when due, and return the exit code."""
        started = time.monotonic()
        sent = False
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            elapsed = time.monotonic() - started
            assert elapsed < RUN_LIMIT, f"{fault}: not finished after {RUN_LIMIT} s"
            if fault.signal_after and not sent and elapsed > fault.signal_after:
                os.kill(child, fault.signal_number)
                sent = True
            time.sleep(0.001)
        return os.waitstatus_to_exitcode(ended[1])

    def _run_child(self, command: list[str], fault: Fault) -> None:
        from w2v._cli.main import main

        code = 70
        try:
            for number in (signal.SIGINT, signal.SIGTERM):  # as in w2v/__main__.py
                signal.signal(number, signal.SIG_DFL)
            for number, path in ((0, Path(os.devnull)), (1, self.stdout), (2, self.stderr)):
                os.dup2(os.open(path, os.O_RDWR | os.O_APPEND), number)
            os.chdir(self.folder)
            os.environ["TMPDIR"] = os.environ["HOME"] = str(self.folder / "tmp")
            # Without this, Python tests the folder by writing a file, which would remain after a kill.
            tempfile.tempdir = os.environ["TMPDIR"]
            self.shim.arm(str(self.folder).encode(), fault.call, fault.action, fault.error, str(self.log).encode())
            if fault.allocation:
                self.shim.limit_allocations(fault.allocation, fault.bytes)
            for descriptor, defect in fault.streams:
                break_stream(descriptor, defect)
            try:
                main(command, prog_name="w2v")
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 0
            self.shim.limit_allocations(0, 0)
        finally:
            with contextlib.suppress(OSError):
                sys.stderr.flush()
            os._exit(code)

    def check_outcome(self, job: Job, expected: ExpectedResult, outcome: Outcome, after_kill: bool = False) -> str:
        """Return "done", "refused" or "stopped"; raise AssertionError if the run broke a rule.

        done: all outputs are written and printed, with exit code 0.
        refused: the exit code is 1, and each line on standard error is a clear one.
        stopped: the exit code is a signal's, and standard error has at most one line.

        In each case an output is the complete old file or the complete new one, and no unfinished file is left, except
        by a process that was killed before. The files of a pair are both old or both new, or one is missing.
        """
        lines = "\n".join(outcome.stderr)
        assert outcome.code in (0, 1, *STOPPED), (outcome.code, lines)
        assert not re.search(r"Traceback|internal error|Error:|Exception", lines), lines
        assert all(line.startswith(("w2v: ", '{"error": ')) for line in outcome.stderr), lines
        written = self.check_files(job, expected, after_kill)
        if outcome.code == 0:
            assert written == len(job.outputs), "an output was not written"
            assert outcome.stdout == expected.stdout, "the printed result differs"
            return "done"
        if outcome.code in STOPPED:
            assert len(outcome.stderr) == (outcome.code > 0), lines  # a negative code: the signal came outside of main
            return "stopped"
        assert outcome.stderr, "exit code 1 without an error message"
        return "refused"

    def check_files(self, job: Job, expected: ExpectedResult, after_kill: bool, killed: bool = False) -> int:
        """Return the number of outputs written; raise AssertionError for a wrong output or an unexpected file.

        A killed process may leave unfinished files; the next run must remove those in the folder of checkpoints.
        """
        written = 0
        is_missing = job.pair and not (self.folder / job.outputs[0]).exists()
        for name in job.outputs:
            if is_missing and not (self.folder / name).exists():
                continue
            if (self.folder / name).read_bytes() != OLD:
                is_new = comparable_content(self.folder / name) == expected.files[name]
                assert is_new, f"{name} is neither the old file nor the new"
                written += 1
        is_mixed = job.pair and not is_missing and written not in (0, len(job.outputs))
        assert not is_mixed, "one file of the pair is old, the other new"
        contents = {Path(output).name: content for output, content in expected.files.items()}
        for path in self.folder.rglob("*"):
            name = str(path.relative_to(self.folder))
            if path.is_dir() or name in self.inputs or name in job.outputs or name == "words.txt":
                continue
            # An output that cannot be written in its place is saved in a new folder under the temporary one.
            if re.fullmatch(r"tmp/w2v-\w+", str(path.parent.relative_to(self.folder))) and path.name in contents:
                assert comparable_content(path) == contents[path.name], f"{path} is wrong"
                continue
            known = r"cache/w2v-\w+\.w2v-ids|checkpoints/checkpoint-\d+\.safetensors|new\.tune\.json"
            known += r"|periods/slices\.json"  # tells which slices are finished
            known += r"|checkpoints/\.lock"  # left by a run that was stopped at the lock; the next run takes it
            may_be_unfinished = killed or is_missing or (after_kill and path.parent.name != "checkpoints")
            unfinished = may_be_unfinished and re.fullmatch(r"\..*\.tmp", path.name)
            assert unfinished or re.fullmatch(known, name), f"{path} is left"
        return written

    def fail_calls(self, job: Job, every: int, actions: tuple[int, ...], first: int = 1) -> Iterator[str]:
        """Make each `every`-th call of a job fail, one per run, and yield the outcomes.

        If `every` is 1, each call fails once with each error. Otherwise each call that fails gets the next error.
        """
        expected = self.expected_result(job)
        times = len(ERRORS) if every == 1 else 1
        for call, action, _ in itertools.product(range(first, expected.calls + 1, every), actions, range(times)):
            name, error = next(self.next_errors)
            self.reset_folder(job)
            outcome = self.run(job.command, Fault(call, action, error))
            if len(outcome.calls) < call:
                continue
            with describe_failure(
                f"{job.command}: call {call} of {expected.calls} ({outcome.calls[call - 1]}) fails with {name}", outcome
            ):
                yield self.check_outcome(job, expected, outcome)

    def deny_memory(self, job: Job, every: int, size: int) -> Iterator[str]:
        """Refuse memory from the n-th large request on, for each `every`-th n; yield the outcomes."""
        expected = self.expected_result(job)
        for request in range(1, 10_000, every):
            self.reset_folder(job)
            outcome = self.run(job.command, Fault(allocation=request, bytes=size))
            with describe_failure(f"{job.command}: no memory from large request {request} on", outcome):
                result = self.check_outcome(job, expected, outcome)
                yield result
                if result == "done":
                    return

    def kill_at_each_call(self, job: Job, every: int, first: int = 1) -> Iterator[str]:
        """Kill a command before or after each `every`-th call, then resume or restart it; yield the outcomes."""
        expected = self.expected_result(job)
        for call, action in itertools.product(range(first, expected.calls + 1, every), (KILL_BEFORE, KILL_AFTER)):
            self.reset_folder(job)
            outcome = self.run(job.command, Fault(call, action))
            if len(outcome.calls) < call:
                continue
            moment = ("before", "after")[action - KILL_BEFORE]
            with describe_failure(f"{job.command}: killed {moment} call {call} of {expected.calls}", outcome):
                assert outcome.code == -signal.SIGKILL
                self.check_files(job, expected, after_kill=True, killed=True)
                yield self.continue_after_kill(job, expected)

    def continue_after_kill(self, job: Job, expected: ExpectedResult) -> str:
        """Resume a killed training, or restart the command; check that it ends with the expected files."""
        position = self.newest_position()
        outcome = self.run(job.resume if position else job.command)
        assert self.check_outcome(job, expected, outcome, after_kill=True) == "done", outcome.stderr
        return "resumed" if position else "restarted"

    def stop_at_random(self, jobs: Iterable[Job], times: int, seed: int, *signals: signal.Signals) -> Iterator[str]:
        """Stop trainings by one of these signals at random moments, and resume or restart them until they finish.

        The jobs take turns until `times` runs have been stopped. Yield the outcome of each of these runs.
        """
        generator = random.Random(seed)
        stopped = 0
        known: dict[int, tuple[ExpectedResult, float]] = {}
        for number, job in itertools.cycle(enumerate(jobs)):
            if number not in known:
                compile_kernels(job)
                expected = self.expected_result(job)
                started = time.monotonic()
                self.reset_folder(job)
                self.run(job.command)
                known[number] = expected, time.monotonic() - started
            if stopped >= times:
                return
            for result in self._stop_until_done(job, *known[number], generator, signals):
                stopped += 1
                yield result

    def _stop_until_done(
        self,
        job: Job,
        expected: ExpectedResult,
        usual_seconds: float,
        generator: random.Random,
        signals: tuple[signal.Signals, ...],
    ) -> Iterator[str]:
        self.reset_folder(job)
        position = stuck = 0

        while True:
            command = job.resume if position else job.command

            # Wait longer while no progress is made: runs take longer than usual on a busy machine.
            number = generator.choice(signals)
            after = usual_seconds * generator.uniform(0.02, 1.1) * (1 + stuck / 10)
            outcome = self.run(command, Fault(signal_number=number, signal_after=after))
            with describe_failure(f"{job.command} ended after {after:.3f} s from position {position}", outcome):
                after_kill = signal.SIGKILL in signals
                if killed := outcome.code == -signal.SIGKILL:
                    result = "killed"
                else:
                    result = self.check_outcome(job, expected, outcome, after_kill)
                    if result == "done":
                        return
                    assert result != "refused"
                written = self.check_files(job, expected, after_kill, killed)
                newest = self.newest_position()
                assert newest >= position, "a checkpoint is lost"
                # The message of a signal during the first training names --resume if there is a checkpoint.
                if not killed and not position and outcome.code > 0 and not written:
                    assert ("--resume" in outcome.stderr[0]) == bool(newest)
                stuck, position = 0 if newest > position else stuck + 1, newest
            yield result

    def newest_position(self) -> int:
        """Read all checkpoints, so that a damaged one raises an error; return the position of the newest, or 0."""
        from w2v._training import checkpoint, checkpoint_folder

        paths = checkpoint_folder.files(self.folder / "checkpoints")
        return max((checkpoint.read_checkpoint(path).resume_info.done for path in paths), default=0)

    def break_streams(self, job: Job) -> Iterator[str]:
        """Run a command with standard streams that are closed, full or without a reader; yield the outcomes."""
        expected = self.expected_result(job)
        outputs = [(*defects, "") for defects in itertools.product(BROKEN_STREAMS, repeat=2)]
        for stdout, stderr, stdin in [*outputs, ("", "", "closed"), 3 * ("closed",)]:
            broken = tuple((descriptor, defect) for descriptor, defect in enumerate((stdin, stdout, stderr)) if defect)
            self.reset_folder(job)
            outcome = self.run(job.command, Fault(streams=broken))
            with describe_failure(f"{job.command} with {broken}", outcome):
                assert self.check_files(job, expected, False) == len(job.outputs), "an output was not written"
                lost = bool(stdout and expected.stdout)
                assert outcome.code == lost
                message = f"standard output: {BROKEN_STREAMS[stdout]}"
                line = f"w2v: {message}"
                if "--json" in job.command:
                    line = json.dumps({"error": message, "exit_code": 1})
                lines = [line] if lost and BROKEN_STREAMS[stdout] else []
                assert outcome.stderr == ([] if stderr else lines)
                assert outcome.stdout == (b"" if stdout else expected.stdout)
                yield "not printed" if lost else "done"


# The defects of a stream, and the error that a write reports for each.
BROKEN_STREAMS = {"": "", "closed": "Bad file descriptor", "/dev/full": "No space left on device", "dead pipe": ""}


def break_stream(descriptor: int, defect: str) -> None:
    """Close a file descriptor, or replace it by a file or by a pipe without a reader."""
    if defect == "closed":
        os.close(descriptor)
        return
    if defect == "dead pipe":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open(defect, os.O_WRONLY)
    os.dup2(writer, descriptor)
    os.close(writer)


def comparable_content(path: Path) -> object:
    """Return the content of a file that must be the same in every run: of a model, its arrays and settings."""
    data = path.read_bytes()
    if path.suffix != ".safetensors" or data == OLD:
        return data
    from w2v._formats.native import read_native

    arrays, metadata = read_native(path)
    return {name: array.tobytes() for name, array in arrays.items()}, metadata.get("settings")


@contextlib.contextmanager
def describe_failure(what: str, outcome: Outcome) -> Iterator[None]:
    """Add what happened, and the lines on standard error, to an AssertionError."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}\n" + "\n".join(outcome.stderr)) from error


def compile_shim(folder: Path) -> Path:
    """Compile the shim; return the path of the library."""
    library = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def preloaded_command(folder: Path) -> list[str]:
    """Return the command that runs `main` of this module with the shim preloaded."""
    library = compile_shim(folder)
    variables = [f"LD_PRELOAD={library}", "OPENBLAS_NUM_THREADS=1", f"MPLCONFIGDIR={folder}"]
    return ["env", *variables, sys.executable, "-m", "tests.faults.injection", str(library), str(folder)]


SCENARIOS = {
    "fail": "one call fails, while training, saving and checkpointing",
    "full": "one call and all later ones fail, as on a full disk",
    "memory": "no memory for an allocation of training",
    "kill": "kill -9 before and after each call of training, then --resume",
    "random": "kill -9 at random moments of training, with every loss, model and storage, then --resume",
    "signals": "Ctrl-C or SIGTERM at random moments of training, with every loss, model and storage, then --resume",
    "commands": "one call of another command fails, or that call and all later ones",
    "commands-memory": "no memory for requests of 256 kB or more, in another command",
    "commands-kill": "kill -9 before and after a call of another command, then run it again",
    "streams": "commands with standard streams closed, full or without a reader",
}


def run_scenario(injector: FaultInjector, name: str, amount: int, seed: int) -> Iterator[str]:
    """Yield the outcomes of a scenario.

    `amount` is the number of runs to stop for "random" and "signals". In the other scenarios, each `amount`-th call is
    tried.
    """
    first = 1 + seed % amount
    jobs = COMMANDS.values() if name.startswith("commands") else [TRAIN]
    match name:
        case "random":
            return injector.stop_at_random(kinds_of_training(), amount, seed, signal.SIGKILL)
        case "signals":
            return injector.stop_at_random(kinds_of_training(), amount, seed, signal.SIGINT, signal.SIGTERM)
        case "streams":
            outcomes = map(injector.break_streams, [TRAIN, *COMMANDS.values()][seed % amount :: amount])
        case "memory" | "commands-memory":
            size = SMALL_REQUEST if name == "memory" else LARGE_REQUEST
            outcomes = (injector.deny_memory(job, amount, size) for job in jobs)
        case "kill" | "commands-kill":
            outcomes = (injector.kill_at_each_call(job, amount, first) for job in jobs)
        case _:
            actions = {"fail": (FAIL,), "full": (FAIL_FROM,), "commands": (FAIL, FAIL_FROM)}[name]
            outcomes = (injector.fail_calls(job, amount, actions, first) for job in jobs)
    return itertools.chain.from_iterable(outcomes)


def import_everything() -> None:
    """Import all that commands import on demand, once before all runs."""
    import matplotlib.figure
    import scipy.stats  # noqa: F401

    import w2v._cli.commands.evaluation
    import w2v._cli.commands.pictures
    import w2v._cli.commands.preparation
    import w2v._cli.commands.training
    import w2v._cli.commands.vectors  # noqa: F401

    figure = matplotlib.figure.Figure()
    figure.subplots().set_title("find the fonts")
    figure.savefig(os.devnull, format="png")


def compile_kernels(job: Job) -> None:
    """Compile the kernels of a training with Numba once, in this process, so that its runs inherit them."""
    import w2v
    from w2v._losses.registry import LOSSES

    options = dict(itertools.pairwise(job.command))
    loss = options.get("--loss", "ns")
    if LOSSES[loss].kernels == ("numba",) or options.get("--kernel") == "numba":
        shape = {"min_count": 1, "negative": 1, "sample": 0, "vector_size": 8, "epochs": 1, "workers": 1}
        w2v.train([["a", "b", "c", "d", "e", "f"]] * 9, loss=loss, kernel="numba", **shape)


def main(library: str, folder: str) -> None:
    """Run the scenario of each line "name amount seed" of standard input.

    Print the number of each outcome as a JSON object on a line, each minute and at the end, and then an empty line.
    """
    import_everything()
    injector = FaultInjector(Path(folder, "run").resolve(), Path(library))
    for line in os.fdopen(os.dup(0)):  # sys.stdin must stay unread, because runs set its encoding
        name, amount, seed = line.split()
        counts: Counter[str] = Counter()
        reported = time.monotonic()
        for result in run_scenario(injector, name, int(amount), int(seed)):
            counts[result] += 1
            if time.monotonic() > reported + REPORT_INTERVAL:
                reported = time.monotonic()
                print(json.dumps(counts), flush=True)
        print(json.dumps(counts), end="\n\n", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
