"""Failures of the system, made to happen: each call that reads or writes files fails in turn, or the process is killed.

Runs of the command line are forked from one process, in which everything is imported and compiled and the shim (shim.c)
preloaded: so a run takes a fraction of a second, and thousands of them can be made. A folder holds all that a run reads
and writes; whatever happens, the rules of `verdict` must hold.

    python tests/faults/run.py SCENARIO …        runs the scenarios below, and keeps their figures
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
OLD = b"2 1\nold 1\nfile 2\n"  # stands where outputs are to be written
STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGINT, -signal.SIGTERM)
SECONDS = 120  # that a run may take: it takes less than one
REPORT_EVERY = 60.0  # seconds
# Requests for so many bytes or more are refused. Training is safe with the smaller; NumPy and Matplotlib, on which the
# other commands lean, crash where their own buffers, of up to 128 kB, are refused.
SMALL, LARGE = 1 << 12, 1 << 18


class Job:
    """A command line, and the files that it writes; a `pair` is read together, its first file last to get its name."""

    def __init__(self, command: str, *outputs: str, pair: bool = False) -> None:
        self.command, self.outputs, self.pair = command.split(), outputs, pair

    @property
    def resume(self) -> list[str]:
        """The command that resumes a training, with the same files."""
        named = [word for pair in itertools.pairwise(self.command) if pair[0] in FILES for word in pair]
        return ["train", self.command[1], "--resume", "checkpoints", *named, "--force", "--quiet"]


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
    "compare": Job("compare model.safetensors model.bin --json"),
    "perplexity": Job("perplexity model.safetensors corpus.txt --json --quiet --cache cache"),
    "rank": Job("rank model.safetensors -o rank.png --force", "rank.png"),
    "query": Job("query model.safetensors w1 - w2 + w3 --vector --json"),
    "info": Job("info model.safetensors"),
    "convert": Job("convert model.safetensors new.txt.gz --force", "new.txt.gz"),
    "convert to two files": Job("convert model.bin new.npy --force", "new.npy", "new.words.txt", pair=True),
    "convert from text": Job("convert model.txt.gz new.safetensors --force", "new.safetensors"),
    "encode": Job("encode model.safetensors short.txt -o new.npy --force --quiet", "new.npy"),
    "vocab": Job("vocab corpus.txt -o new.txt --force --workers 1", "new.txt"),
    "phrases": Job(
        "phrases short.txt -o new.txt --force --threshold 1 --save-phrases phrases.tsv --workers 1 --quiet",
        "new.txt",
        "phrases.tsv",
    ),
    "plot": Job("plot model.safetensors w1 w2 -o map.svg --force --quiet", "map.svg"),
    "explore": Job("explore model.safetensors -o page.html --force", "page.html"),
    # All that is tried is given: then the time that trials take changes nothing.
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
    """Runs with checkpoints: every loss in both models and each storage, and what else a run may be."""
    from w2v.losses.registry import LOSSES

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
    """What is to go wrong in a run: nothing by default."""

    at: int = 0  # the number of the call
    action: int = FAIL
    error: int = 0
    allocation: int = 0  # from this one on, requests for so many bytes or more are refused
    bytes: int = 1 << 16
    number: signal.Signals = signal.SIGKILL
    after: float = 0  # seconds, at which the signal is sent; 0: never
    streams: tuple[tuple[int, str], ...] = ()  # descriptors, and what becomes of them: a path, "closed" or "dead pipe"


@dataclass(frozen=True)
class Outcome:
    code: int  # negative: ended by this signal
    said: list[str]  # lines on standard error
    shown: bytes  # on standard output
    calls: list[str]  # that were counted


@dataclass
class Whole:
    """What a job gives if nothing goes wrong."""

    files: dict[str, object] = field(default_factory=dict)  # by name, see `content`
    shown: bytes = b""
    calls: int = field(default=0, compare=False)  # differs from run to run: checkpoints can be due by the clock


class Runs:
    """Runs of the command line in `folder`, which is made anew before each with `fresh`."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.folder = folder
        self.log, self.errors, self.shown = (folder.with_name(name) for name in ("calls", "errors", "shown"))
        self.errors_in_turn = itertools.cycle(ERRORS.items())
        self.shim = ctypes.CDLL(str(library))
        self.shim.arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_char_p]
        self.shim.limit_allocations.argtypes = [ctypes.c_long, ctypes.c_size_t]
        chance = random.Random(1)
        words = [f"w{int(50 * chance.random() ** 3)}" for _ in range(60_000)]
        lines = [" ".join(words[start : start + 20]) for start in range(0, len(words), 20)]
        self.inputs = {
            "corpus.txt": "\n".join(lines).encode(),
            "short.txt": "\n".join(lines[:200]).encode(),
            "questions.txt": QUESTIONS,
            "pairs.txt": PAIRS,
            "settings.toml": SETTINGS,
        }
        self.inputs |= self._made()

    def _made(self) -> dict[str, bytes]:
        """Files that commands read, made by commands."""
        made = {}
        model = [*TRAIN.command, "-o", "model.safetensors"]
        for command, name in (
            (model, "model.safetensors"),
            (model, "words.txt"),
            (["convert", "model.safetensors", "model.bin"], "model.bin"),
            (["convert", "model.safetensors", "model.txt.gz"], "model.txt.gz"),
        ):
            self.fresh()
            for given, content in made.items():
                (self.folder / given).write_bytes(content)
            outcome = self.run(command)
            assert outcome.code == 0, outcome.said
            made[name] = (self.folder / name).read_bytes()
        import gzip

        return made | {"corpus.txt.gz": gzip.compress(self.inputs["corpus.txt"])}

    def fresh(self, job: Job | None = None) -> None:
        """Nothing but the inputs is there, and old files where outputs are to be written."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "tmp").mkdir(parents=True)
        outputs = job.outputs if job else ()
        for name, content in (self.inputs | dict.fromkeys(outputs, OLD)).items():
            (self.folder / name).write_bytes(content)

    def whole(self, job: Job) -> Whole:
        """What the job gives, twice the same."""
        found = []
        for _ in range(2):
            self.fresh(job)
            outcome = self.run(job.command)
            assert outcome.code == 0, (job.command, outcome.said)
            files = {name: content(self.folder / name) for name in job.outputs}
            found.append(Whole(files, outcome.shown, len(outcome.calls)))
        assert found[0] == found[1], job.command
        assert OLD not in found[0].files.values(), job.command
        return found[0]

    def run(self, command: list[str], fault: Fault | None = None) -> Outcome:
        fault = fault or Fault()
        for file in (self.log, self.errors, self.shown):
            file.write_bytes(b"")
        child = os.fork()
        if not child:
            self._child(command, fault)
        try:
            code = self._waited(child, fault)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        said = self.errors.read_text("utf-8", "replace").splitlines()
        return Outcome(code, said, self.shown.read_bytes(), self.log.read_text().split())

    def _waited(self, child: int, fault: Fault) -> int:
        started = time.monotonic()
        sent = False
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            passed = time.monotonic() - started
            assert passed < SECONDS, f"{fault}: no end in {SECONDS} s"
            if fault.after and not sent and passed > fault.after:
                os.kill(child, fault.number)
                sent = True
            time.sleep(0.001)
        return os.waitstatus_to_exitcode(ended[1])

    def _child(self, command: list[str], fault: Fault) -> None:
        from w2v.cli.main import main

        code = 70
        try:
            for number in (signal.SIGINT, signal.SIGTERM):  # as in w2v/__main__.py
                signal.signal(number, signal.SIG_DFL)
            for number, path in ((0, Path(os.devnull)), (1, self.shown), (2, self.errors)):
                os.dup2(os.open(path, os.O_RDWR | os.O_APPEND), number)
            os.chdir(self.folder)
            os.environ["TMPDIR"] = os.environ["HOME"] = str(self.folder / "tmp")
            tempfile.tempdir = os.environ["TMPDIR"]  # else Python tries it with a file, which a kill leaves there
            self.shim.arm(str(self.folder).encode(), fault.at, fault.action, fault.error, str(self.log).encode())
            if fault.allocation:
                self.shim.limit_allocations(fault.allocation, fault.bytes)
            for number, what in fault.streams:
                spoil(number, what)
            try:
                main(command, prog_name="w2v")
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 0
            self.shim.limit_allocations(0, 0)
        finally:
            with contextlib.suppress(OSError):
                sys.stderr.flush()
            os._exit(code)

    def verdict(self, job: Job, whole: Whole, outcome: Outcome, after_kill: bool = False) -> str:
        """What a run has come to, "done", "refused" or "stopped"; raises AssertionError where it breaks a rule.

        Either all is written and printed, or the exit code is 1 and each line on standard error a clear one, or the
        code is a signal's and no more than one line is said; each output is the old file or the new one, whole; nothing
        unfinished is left, unless by a process that was killed before. Of a pair, both are old or new, or one is
        missing.
        """
        lines = "\n".join(outcome.said)
        if sys.version_info >= (3, 12):  # whose compile() may forget to raise MemoryError
            lines = lines.replace("internal error: SystemError: error return without exception set", "out of memory")
        assert outcome.code in (0, 1, *STOPPED), (outcome.code, lines)
        assert not re.search(r"Traceback|internal error|Error:|Exception", lines), lines
        assert all(line.startswith("w2v: ") for line in outcome.said), lines
        written = self.check_files(job, whole, after_kill)
        if outcome.code == 0:
            assert written == len(job.outputs), "an output is not written"
            assert outcome.shown == whole.shown, "another result"
            return "done"
        if outcome.code in STOPPED:
            assert len(outcome.said) == (outcome.code > 0), lines  # less than 0: outside of main, as other programs
            return "stopped"
        assert outcome.said, "exit code 1, and nothing said"
        return "refused"

    def check_files(self, job: Job, whole: Whole, after_kill: bool, killed: bool = False) -> int:
        """How many outputs are written; raises AssertionError for one that is neither old nor new, or other files.

        Those that were not finished may lie there where the process was killed, but not among the checkpoints once
        another has run.
        """
        written = 0
        is_missing = job.pair and not (self.folder / job.outputs[0]).exists()
        for name in job.outputs:
            if is_missing and not (self.folder / name).exists():
                continue
            found = (self.folder / name).read_bytes()
            if found != OLD:
                assert content(self.folder / name) == whole.files[name], f"{name} is neither the old file nor the new"
                written += 1
        assert not job.pair or is_missing or written in (0, len(job.outputs)), "a pair of an old file and a new one"
        for path in self.folder.rglob("*"):
            name = str(path.relative_to(self.folder))
            if path.is_dir() or name in self.inputs or name in job.outputs or name == "words.txt":
                continue
            if path.parent.name == "tmp":  # saved there, for it could not be saved where it was to be
                saved = re.fullmatch(r"w2v-\w+-(.*)", path.name)
                assert saved, f"{path} is left"
                assert content(path) == whole.files[saved[1]]
                continue
            known = r"cache/w2v-\w+\.w2v-ids|checkpoints/checkpoint-\d+\.safetensors|new\.tune\.json"
            known += r"|checkpoints/\.lock"  # of a run that was stopped while it took the lock: the next takes it
            may_be_unfinished = killed or is_missing or (after_kill and path.parent.name != "checkpoints")
            unfinished = may_be_unfinished and re.fullmatch(r"\..*\.tmp", path.name)
            assert unfinished or re.fullmatch(known, name), f"{path} is left"
        return written

    def failing(self, job: Job, every: int, actions: tuple[int, ...], first: int = 1) -> Iterator[str]:
        """Makes each `every`-th call fail in turn, with each error or, if calls are left out, the next one; yields what
        comes of it.
        """
        whole = self.whole(job)
        times = len(ERRORS) if every == 1 else 1
        for at, action, _ in itertools.product(range(first, whole.calls + 1, every), actions, range(times)):
            name, error = next(self.errors_in_turn)
            self.fresh(job)
            outcome = self.run(job.command, Fault(at, action, error))
            if len(outcome.calls) < at:
                continue
            with told(
                f"{job.command}: call {at} of {whole.calls} ({outcome.calls[at - 1]}) fails with {name}", outcome
            ):
                yield self.verdict(job, whole, outcome)

    def without_memory(self, job: Job, every: int, size: int) -> Iterator[str]:
        """Refuses memory from each `every`-th large request on."""
        whole = self.whole(job)
        for at in range(1, 10_000, every):
            self.fresh(job)
            outcome = self.run(job.command, Fault(allocation=at, bytes=size))
            with told(f"{job.command}: no memory from large request {at} on", outcome):
                verdict = self.verdict(job, whole, outcome)
                yield verdict
                if verdict == "done":
                    return

    def killed_at_each_call(self, job: Job, every: int, first: int = 1) -> Iterator[str]:
        """Kills a command before or after each `every`-th call, then lets a training go on."""
        whole = self.whole(job)
        for at, action in itertools.product(range(first, whole.calls + 1, every), (KILL_BEFORE, KILL_AFTER)):
            self.fresh(job)
            outcome = self.run(job.command, Fault(at, action))
            if len(outcome.calls) < at:
                continue
            with told(f"killed {('before', 'after')[action - KILL_BEFORE]} call {at} of {whole.calls}", outcome):
                assert outcome.code == -signal.SIGKILL
                self.check_files(job, whole, after_kill=True, killed=True)
                yield self.goes_on(job, whole)

    def goes_on(self, job: Job, whole: Whole) -> str:
        """What comes of a killed command that goes on or is begun again: it must end with the same files."""
        place = self.place()
        outcome = self.run(job.resume if place else job.command)
        assert self.verdict(job, whole, outcome, after_kill=True) == "done", outcome.said
        return "gone on" if place else "begun again"

    def ended_at_random(self, jobs: Iterable[Job], times: int, seed: int, *signals: signal.Signals) -> Iterator[str]:
        """Ends trainings at random moments by one of these, and what goes on with them again and again, until they end.

        Each of the jobs takes its turn, until they have been ended so many times in all.
        """
        chance = random.Random(seed)
        ends = 0
        known: dict[int, tuple[Whole, float]] = {}
        for number, job in itertools.cycle(enumerate(jobs)):
            if number not in known:
                compile_for(job)
                whole = self.whole(job)
                started = time.monotonic()
                self.fresh(job)
                self.run(job.command)
                known[number] = whole, time.monotonic() - started
            if ends >= times:
                return
            for verdict in self._ended_until_done(job, *known[number], chance, signals):
                ends += 1
                yield verdict

    def _ended_until_done(
        self, job: Job, whole: Whole, usual: float, chance: random.Random, signals: tuple[signal.Signals, ...]
    ) -> Iterator[str]:
        self.fresh(job)
        place = stuck = 0
        while True:
            command = job.resume if place else job.command
            # Later and later while nothing is reached: on a machine that has become busy, runs take longer than usual.
            number, after = chance.choice(signals), usual * chance.uniform(0.02, 1.1) * (1 + stuck / 10)
            outcome = self.run(command, Fault(number=number, after=after))
            with told(f"{job.command} ended after {after:.3f} s from place {place}", outcome):
                after_kill = signal.SIGKILL in signals
                if killed := outcome.code == -signal.SIGKILL:
                    verdict = "killed"
                else:
                    verdict = self.verdict(job, whole, outcome, after_kill)
                    if verdict == "done":
                        return
                    assert verdict != "refused"
                written = self.check_files(job, whole, after_kill, killed)
                now = self.place()
                assert now >= place, "a checkpoint is lost"
                if not killed and not place and outcome.code > 0 and not written:
                    assert ("--resume" in outcome.said[0]) == bool(now)
                stuck, place = 0 if now > place else stuck + 1, now
            yield verdict

    def place(self) -> int:
        """How far the newest checkpoint is; every file of that name must be whole."""
        from w2v.training import checkpoint

        found = checkpoint.files(self.folder / "checkpoints")
        return max((checkpoint.read(path).position.done for path in found), default=0)

    def with_spoilt_streams(self, job: Job) -> Iterator[str]:
        """Runs a command with standard streams that are closed, full or read by nobody."""
        whole = self.whole(job)
        both = itertools.product(SPOILT, SPOILT)
        for stdout, stderr, stdin in [*((*pair, "") for pair in both), ("", "", "closed"), 3 * ("closed",)]:
            spoilt = tuple((number, what) for number, what in enumerate((stdin, stdout, stderr)) if what)
            self.fresh(job)
            outcome = self.run(job.command, Fault(streams=spoilt))
            with told(f"{job.command} with {spoilt}", outcome):
                assert self.check_files(job, whole, False) == len(job.outputs), "an output is not written"
                lost = bool(stdout and whole.shown)
                assert outcome.code == lost
                expected = [f"w2v: standard output: {SPOILT[stdout]}"] if lost and SPOILT[stdout] else []
                assert outcome.said == ([] if stderr else expected)
                assert outcome.shown == (b"" if stdout else whole.shown)
                yield "not printed" if lost else "done"


SPOILT = {"": "", "closed": "Bad file descriptor", "/dev/full": "No space left on device", "dead pipe": ""}


def spoil(number: int, what: str) -> None:
    if what == "closed":
        os.close(number)
        return
    if what == "dead pipe":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open(what, os.O_WRONLY)
    os.dup2(writer, number)
    os.close(writer)


def content(path: Path) -> object:
    """What must be the same in two files: of a model, all but the times that its training took."""
    data = path.read_bytes()
    if path.suffix != ".safetensors" or data == OLD:
        return data
    from w2v.formats.native import read_native

    arrays, metadata = read_native(path)
    return {name: array.tobytes() for name, array in arrays.items()}, metadata.get("settings")


@contextlib.contextmanager
def told(what: str, outcome: Outcome) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}\n" + "\n".join(outcome.said)) from error


def compiled(folder: Path) -> Path:
    """The shim, compiled."""
    library = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def preloaded(folder: Path) -> list[str]:
    """The command that runs this module with the shim; see main."""
    library = compiled(folder)
    variables = [f"LD_PRELOAD={library}", "OPENBLAS_NUM_THREADS=1", f"MPLCONFIGDIR={folder}"]
    return ["env", *variables, sys.executable, "-m", "tests.faults.injection", str(library), str(folder)]


SCENARIOS = {
    "fail": "each call of training, saving and checkpointing fails",
    "full": "each call of it and all that follow fail, as on a full disk",
    "memory": "no memory, in training",
    "kill": "kill -9 before and after each call of training, then --resume",
    "random": "kill -9 at random moments of training, with every loss, model and storage, then --resume",
    "signals": "Ctrl-C or SIGTERM at random moments of training, with every loss, model and storage, then --resume",
    "commands": "each call of every other command fails, alone or with all that follow",
    "commands-memory": "no memory for requests of 256 kB or more, in every other command",
    "commands-kill": "kill -9 before and after each call of every other command, then once more",
    "streams": "every command, with standard streams closed, full or read by nobody",
}


def scenario(runs: Runs, name: str, amount: int, seed: int) -> Iterator[str]:
    """`amount`: of ends at random moments, or else the step from call to call."""
    first = 1 + seed % amount
    jobs = COMMANDS.values() if name.startswith("commands") else [TRAIN]
    match name:
        case "random":
            return runs.ended_at_random(kinds_of_training(), amount, seed, signal.SIGKILL)
        case "signals":
            return runs.ended_at_random(kinds_of_training(), amount, seed, signal.SIGINT, signal.SIGTERM)
        case "streams":
            found = map(runs.with_spoilt_streams, [TRAIN, *COMMANDS.values()][seed % amount :: amount])
        case "memory" | "commands-memory":
            found = (runs.without_memory(job, amount, SMALL if job is TRAIN else LARGE) for job in jobs)
        case "kill" | "commands-kill":
            found = (runs.killed_at_each_call(job, amount, first) for job in jobs)
        case _:
            actions = {"fail": (FAIL,), "full": (FAIL_FROM,), "commands": (FAIL, FAIL_FROM)}[name]
            found = (runs.failing(job, amount, actions, first) for job in jobs)
    return itertools.chain.from_iterable(found)


def prepare() -> None:
    """Import once, before all runs, what commands import when they need it."""
    import matplotlib.figure
    import scipy.stats  # noqa: F401

    import w2v.cli.commands.evaluation
    import w2v.cli.commands.pictures
    import w2v.cli.commands.preparation
    import w2v.cli.commands.training
    import w2v.cli.commands.vectors  # noqa: F401

    figure = matplotlib.figure.Figure()
    figure.subplots().set_title("fonts are found")
    figure.savefig(os.devnull, format="png")


def compile_for(job: Job) -> None:
    """Compile in this process, once, what each run of a training with Numba would load."""
    import w2v
    from w2v.losses.registry import LOSSES

    options = dict(itertools.pairwise(job.command))
    loss = options.get("--loss", "ns")
    if LOSSES[loss].kernels == ("numba",) or options.get("--kernel") == "numba":
        shape = {"min_count": 1, "negative": 1, "sample": 0, "vector_size": 8, "epochs": 1, "workers": 1}
        w2v.train([["a", "b", "c", "d", "e", "f"]] * 9, loss=loss, kernel="numba", **shape)


def main(library: str, folder: str) -> None:
    """Runs the scenario of each line "name amount seed" of standard input.

    Prints how often what came of it, each minute and at the end, as a JSON object on a line, and then an empty line.
    """
    prepare()
    runs = Runs(Path(folder, "run").resolve(), Path(library))
    for line in os.fdopen(os.dup(0)):  # runs set the encoding of sys.stdin, which must not have been read
        name, amount, seed = line.split()
        found: Counter[str] = Counter()
        reported = time.monotonic()
        for verdict in scenario(runs, name, int(amount), int(seed)):
            found[verdict] += 1
            if time.monotonic() > reported + REPORT_EVERY:
                reported = time.monotonic()
                print(json.dumps(found), flush=True)
        print(json.dumps(found), end="\n\n", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
