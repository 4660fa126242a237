"""Failures of the system, made to happen: each call that reads or writes files fails in turn, or the process is killed.

Runs of the command line are forked from one process, in which everything is imported and the shim (shim.c) preloaded:
so a run takes a fraction of a second, and hundreds of them can be made. A folder holds all that a run reads and
writes; whatever happens, the rules of `verdict` must hold.
"""

import contextlib
import ctypes
import errno
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FAIL, FAIL_FROM, KILL_BEFORE, KILL_AFTER = range(4)  # as in shim.c
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EACCES": errno.EACCES}
OLD = b"2 1\nold 1\nfile 2\n"  # stands where the model is to be written
TRAIN = ["train", "corpus.txt", "-o", "model.txt", "--force", "--workers", "1", "--vector-size", "8", "--epochs", "6"]
TRAIN += ["--min-count", "1", "--negative", "3", "--save-vocab", "words.txt", "--cache", "cache"]
TRAIN += ["--checkpoint", "checkpoints", "--checkpoint-every", "1epoch"]
RESUME = ["train", "--resume", "checkpoints", "--force"]
LOAD = ["convert", "given.safetensors", "model.txt", "--force"]
STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGINT, -signal.SIGTERM)
SECONDS = 60  # that a run may take: it takes less than one


def compiled(folder: Path) -> Path:
    """The shim, compiled."""
    library = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


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


@dataclass(frozen=True)
class Outcome:
    code: int  # negative: ended by this signal
    said: list[str]  # lines on standard error
    calls: list[str]  # that were counted


class Runs:
    """Runs of the command line in `folder`, which is made anew before each with `fresh`."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.folder, self.log, self.errors = folder, folder.with_name("calls"), folder.with_name("errors")
        self.shim = ctypes.CDLL(str(library))
        self.shim.arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_char_p]
        self.shim.limit_allocations.argtypes = [ctypes.c_long, ctypes.c_size_t]
        chance = random.Random(1)
        words = [f"w{int(50 * chance.random() ** 3)}" for _ in range(60_000)]
        self.text = "\n".join(" ".join(words[start : start + 20]) for start in range(0, len(words), 20)).encode()
        self.given = b""
        self.fresh()
        self.run(TRAIN)
        self.whole = {name: (folder / name).read_bytes() for name in ("model.txt", "words.txt")}
        self.run(["convert", "model.txt", "given.safetensors", "--force"])
        self.given = (folder / "given.safetensors").read_bytes()
        self.fresh()
        assert self.verdict(self.run(LOAD)) == "done"
        assert self.whole["model.txt"].count(b"\n") > 40

    def fresh(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "tmp").mkdir(parents=True)
        (self.folder / "corpus.txt").write_bytes(self.text)
        (self.folder / "given.safetensors").write_bytes(self.given)
        (self.folder / "model.txt").write_bytes(OLD)

    def run(self, command: list[str], fault: Fault | None = None) -> Outcome:
        fault = fault or Fault()
        for file in (self.log, self.errors):
            file.write_bytes(b"")
        child = os.fork()
        if not child:
            self._child(command, fault)
        started = time.monotonic()
        sent = False
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            passed = time.monotonic() - started
            if passed > SECONDS:
                os.kill(child, signal.SIGKILL)
                raise AssertionError(f"{command}, {fault}: no end in {SECONDS} s")
            if fault.after and not sent and passed > fault.after:
                os.kill(child, fault.number)
                sent = True
            time.sleep(0.001)
        said = self.errors.read_text("utf-8", "replace").splitlines()
        return Outcome(os.waitstatus_to_exitcode(ended[1]), said, self.log.read_text().split())

    def _child(self, command: list[str], fault: Fault) -> None:
        from w2v.cli.main import main

        code = 70
        try:
            out = os.open(self.errors, os.O_WRONLY | os.O_APPEND)
            os.dup2(out, 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.chdir(self.folder)
            os.environ["TMPDIR"] = os.environ["HOME"] = str(self.folder / "tmp")
            os.environ["XDG_STATE_HOME"] = str(self.folder / "state")
            self.shim.arm(str(self.folder).encode(), fault.at, fault.action, fault.error, str(self.log).encode())
            if fault.allocation:
                self.shim.limit_allocations(fault.allocation, fault.bytes)
            try:
                main([*command, "--quiet"] if command[0] == "train" else command)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 0
            self.shim.limit_allocations(0, 0)
        finally:
            sys.stderr.flush()
            os._exit(code)

    def verdict(self, outcome: Outcome, after_kill: bool = False) -> str:
        """What a run has come to, "done", "refused" or "stopped"; raises AssertionError where it breaks a rule.

        Either all is written, or the exit code is 1 and each line on standard error a clear one, or the code is a
        signal's and no more than one line is said; the old model stands or the new one is whole; nothing unfinished is
        left, unless by a process that was killed before.
        """
        model = (self.folder / "model.txt").read_bytes()
        lines = "\n".join(outcome.said)
        assert outcome.code in (0, 1, *STOPPED), (outcome.code, lines)
        assert not re.search(r"Traceback|internal error|Error:|Exception", lines), lines
        assert all(line.startswith("w2v: ") for line in outcome.said), lines
        assert model in (OLD, self.whole["model.txt"]), "the model is neither the old one nor the new"
        for path in self.folder.rglob("*"):
            known = path.is_dir() or re.fullmatch(
                r"corpus\.txt|given\.safetensors|model\.txt|words\.txt|cache/w2v-\w+\.w2v-ids|"
                r"checkpoints/checkpoint-\d+\.safetensors|tmp/w2v-\w+-(model|words)\.txt|state/w2v/key",
                str(path.relative_to(self.folder)),
            )
            known = known or (
                after_kill and re.fullmatch(r"\..*\.tmp", path.name) and path.parent.name != "checkpoints"
            )
            assert known, f"{path} is left"
            if path.parent.name == "tmp":  # saved there, for it could not be saved where it was to be
                assert path.read_bytes() == self.whole[path.name.split("-")[-1]]
        if outcome.code == 0:
            assert model == self.whole["model.txt"]
            return "done"
        if outcome.code in STOPPED:
            assert len(outcome.said) == (outcome.code > 0), lines  # less than 0: outside of main, as other programs
            return "stopped"
        assert outcome.said, "exit code 1, and nothing said"
        return "refused"

    def failing(self, command: list[str], every: int, actions: tuple[int, ...], first: int = 1) -> Iterator[str]:
        """Makes each `every`-th call fail in turn, with each error; yields what comes of it."""
        self.fresh()
        calls = len(self.run(command).calls)
        for at in range(first, calls + 1, every):
            for action in actions:
                for name, error in ERRORS.items():
                    self.fresh()
                    outcome = self.run(command, Fault(at, action, error))
                    if len(outcome.calls) < at:  # when checkpoints are due, the clock says
                        continue
                    with told(
                        f"{command[0]}: call {at} of {calls} ({outcome.calls[at - 1]}) fails with {name}", outcome
                    ):
                        yield self.verdict(outcome)

    def without_memory(self, command: list[str], every: int, size: int = 1 << 16) -> Iterator[str]:
        """Refuses memory from each `every`-th large request on."""
        for at in range(1, 10_000, every):
            self.fresh()
            outcome = self.run(command, Fault(allocation=at, bytes=size))
            with told(f"{command[0]}: no memory from large request {at} on", outcome):
                verdict = self.verdict(outcome)
                yield verdict
                if verdict == "done":
                    return

    def killed_at_each_call(self, every: int, first: int = 1) -> Iterator[str]:
        """Kills training before or after each `every`-th call, then lets it go on."""
        self.fresh()
        calls = len(self.run(TRAIN).calls)
        for at in range(first, calls + 1, every):
            for action in (KILL_BEFORE, KILL_AFTER):
                self.fresh()
                outcome = self.run(TRAIN, Fault(at, action))
                if len(outcome.calls) < at:
                    continue
                with told(f"killed {('before', 'after')[action - KILL_BEFORE]} call {at} of {calls}", outcome):
                    assert outcome.code == -signal.SIGKILL
                    yield self.goes_on()

    def ended_at_random(self, times: int, seed: int, *signals: signal.Signals) -> Iterator[str]:
        """Ends training at random moments by one of these, and what goes on with it again and again, until it ends."""
        chance = random.Random(seed)
        self.fresh()
        started = time.monotonic()
        self.run(TRAIN)
        usual = time.monotonic() - started
        ends = 0
        while ends < times:
            self.fresh()
            command, place = TRAIN, 0
            while True:
                number, after = chance.choice(signals), usual * chance.uniform(0.02, 1.1)
                outcome = self.run(command, Fault(number=number, after=after))
                with told(f"end {ends} at random", outcome):
                    killed = outcome.code == -signal.SIGKILL
                    verdict = "killed" if killed else self.verdict(outcome, after_kill=signal.SIGKILL in signals)
                    if verdict == "done":
                        break
                    assert verdict != "refused"
                    ends += 1
                    now = self.place()
                    assert now >= place, "a checkpoint is lost"
                    if command == TRAIN and outcome.code > 0 and (self.folder / "model.txt").read_bytes() == OLD:
                        assert ("--resume" in outcome.said[0]) == bool(now)
                    command, place = (RESUME if now else TRAIN), now
                    yield verdict
            with told("at the end", outcome):
                assert (self.folder / "model.txt").read_bytes() == self.whole["model.txt"]

    def goes_on(self) -> str:
        """What comes of a killed run that goes on: it must end with the same model."""
        model = (self.folder / "model.txt").read_bytes()
        assert model in (OLD, self.whole["model.txt"]), "the model is neither the old one nor the new"
        place = self.place()
        outcome = self.run(RESUME if place else TRAIN)
        assert self.verdict(outcome, after_kill=True) == "done", outcome.said
        assert (self.folder / "words.txt").read_bytes() == self.whole["words.txt"]
        return "gone on" if place else "begun again"

    def place(self) -> int:
        """How far the newest checkpoint is; every file of that name must be whole."""
        from w2v.training import checkpoint

        found = checkpoint.files(self.folder / "checkpoints")
        return max((checkpoint.read(path).state.position for path in found), default=0)


@contextlib.contextmanager
def told(what: str, outcome: Outcome) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}\n" + "\n".join(outcome.said)) from error


def preloaded(folder: Path, *arguments: str) -> list[str]:
    """The command that runs this module with the shim; see __main__."""
    library = compiled(folder)
    return [
        "env",
        f"LD_PRELOAD={library}",
        "OPENBLAS_NUM_THREADS=1",
        sys.executable,
        __file__,
        str(library),
        str(folder),
        *arguments,
    ]


SCENARIOS = {
    "fail": "each call of training, saving and checkpointing fails",
    "full": "each call and all that follow fail",
    "load": "each call of loading fails",
    "memory": "no memory, in training",
    "memory-load": "no memory, in loading",
    "kill": "kill -9 before and after each call, then --resume",
    "random": "kill -9 at random moments, then --resume",
    "signals": "Ctrl-C or SIGTERM at random moments, then --resume",
}


def scenario(runs: Runs, name: str, amount: int, seed: int) -> Iterator[str]:
    """`amount`: of kills, or else the step from call to call."""
    first = 1 + seed % amount
    match name:
        case "fail":
            return runs.failing(TRAIN, amount, (FAIL,), first)
        case "full":
            return runs.failing(TRAIN, amount, (FAIL_FROM,), first)
        case "load":
            return runs.failing(LOAD, amount, (FAIL, FAIL_FROM), first)
        case "memory":
            return runs.without_memory(TRAIN, amount, 1 << 12)
        case "memory-load":
            return runs.without_memory(LOAD, amount, 1 << 12)
        case "kill":
            return runs.killed_at_each_call(amount, first)
        case "random":
            return runs.ended_at_random(amount, seed, signal.SIGKILL)
        case _:
            return runs.ended_at_random(amount, seed, signal.SIGINT, signal.SIGTERM)


def main(library: str, folder: str, name: str, amount: str, seed: str) -> None:
    """Prints how often what came of it."""
    import w2v.cli.commands  # all is imported once, before all runs
    import w2v.cli.main
    import w2v.cli.train  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as in w2v_command.py
    found: dict[str, int] = {}
    for verdict in scenario(Runs(Path(folder, "run").resolve(), Path(library)), name, int(amount), int(seed)):
        found[verdict] = found.get(verdict, 0) + 1
    print(", ".join(f"{verdict} {times}" for verdict, times in sorted(found.items())))


if __name__ == "__main__":
    main(*sys.argv[1:])
