"""The long runs: all of tests/faults, and a table of what was tried, how often, and what came of it.

    python tests/faults/run.py [PART …] [--kills N] [--step N] [--seconds S]
    python tests/faults/run.py --short
    python tests/faults/run.py --table

A part that ends, or is ended, leaves its figures in build/faults, with the version of the code; injections do so each
minute. --short does some of each part in two to three minutes. --table prints the figures of all parts as
docs/reliability.md shows them. What is promised: no committed checkpoint lost, the old file or a whole new one there,
the same bits in the end, one clear line otherwise. A run ends with the first thing lost, and exit code 1.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.faults import injection  # noqa: E402

FOLDER = ROOT / "build/faults"
Row = tuple[str, int, str]  # what was done, how often, what came of it

# What tests of the rooms show, by a line for the table: their files, and which of their tests (as pytest's -k).
TESTS = {
    "a folder of checkpoints is removed, made again or taken by another run": (
        ["training/test_lock.py"],
        "vanishes or taken or made_again",
    ),
    "file names as long as the system allows, and longer": (["system/test_files.py", "cli/test_outputs.py"], "name"),
    "outputs that exist, or whose writing fails at the end": (
        ["cli/test_outputs.py", "test_data.py"],
        "stands or refused or goes",
    ),
    "a signal while an output waits for the reader of a pipe": (["cli/test_outputs.py"], "waits"),
    "no folder for temporary files": (["system/test_files.py"], "without_a_temporary_folder"),
    "memory limits of the machine, of cgroups that others share, and of the address space": (
        ["system/test_memory.py"],
        "smallest_limit",
    ),
    "--resume of a stranger's checkpoint": (["training/test_stored_paths.py"], ""),
    "links and pipes planted under names that can be guessed": (
        [
            *("system/test_files.py", "text/test_idstore.py", "cli/test_outputs.py"),
            *("training/test_checkpoint.py", "training/test_lock.py"),
        ],
        "planted or no_link or in_place_of",
    ),
    "files that promise more than they hold, read by every command that opens a model: memory": (
        ["formats/test_hostile.py"],
        "memory",
    ),
    "words, names and file names that could control a terminal": (
        ["cli/test_console.py"],
        "control or harmless or exact",
    ),
    "a user's own loss raises an exception in a thread": (["kernel/test_numba_kernel.py"], "exception_in_a_thread"),
    "a text that is cut, grows or changes while it is read, or behind its times": (
        ["text/test_corpus.py", "text/test_idstore.py"],
        "a_change or changed_text or something_changes",
    ),
    "a model that changes or is replaced while it is loaded": (["formats/test_table.py"], "changes_while"),
    "a matrix and the file of its words, replaced while calls fail": (["system/test_files.py"], "never_mixed"),
    "a database with changes in files beside it": (["formats/test_sqlite.py"], "replace or whole or committed"),
    "a text without white space, or without an end": (["text/test_corpus.py"], "white_space or endless"),
    "a cache that another user could change": (["text/test_idstore.py"], "user"),
    "explorer: connections that ask nothing, and the limit of open files": (
        ["explore/test_server.py"],
        "keep_out or limit_of_open",
    ),
    "ranks whose copies of a text differ": (["training/test_distributed.py"], "content"),
    "the limit of processor time (SIGXCPU)": (
        ["training/test_checkpoint.py", "cli/test_main.py"],
        "limit_of_processor or signals",
    ),
    "a thread that cannot be started": (
        ["system/test_threads.py", "training/test_checkpoint.py", "cli/test_console.py"],
        "cannot_be_started or gets_no_thread",
    ),
    "a mapped model or cache that another process cuts (SIGBUS)": (["system/test_signals.py"], ""),
    "Numba's cache on disk damaged, full or read-only": (["kernel/test_numba_kernel.py"], "cannot_be_used"),
    "a terminal or log that is closed while it trains": (
        ["cli/test_console.py"],
        "terminal_that_is_closed or dead_pipe",
    ),
}


def figures(command: list[str], given: str = "") -> Iterator[dict[str, Any]]:
    """The JSON objects that a program prints, a line each. Raises SystemExit if it fails."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdin
        assert process.stdout
        with process.stdin:
            process.stdin.write(given)
        yield from map(json.loads, filter(str.strip, process.stdout))
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")


def verdicts(what: str, found: dict[str, int]) -> list[Row]:
    said = ", ".join(f"{verdict} {times:,}" for verdict, times in sorted(found.items()))
    return [(what, sum(found.values()), said)]


def injected(name: str, amount: int) -> Iterator[list[Row]]:
    with tempfile.TemporaryDirectory() as folder:
        command = injection.preloaded(Path(folder))
        for found in figures(command, f"{name} {amount} {int(time.time())}\n"):
            yield verdicts(injection.SCENARIOS[name], found)


def proven() -> Iterator[list[Row]]:
    rows: list[Row] = []
    for what, (files, chosen) in TESTS.items():
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"tests/{file}" for file in files)]
        done = subprocess.run([*command, "-k", chosen], capture_output=True, text=True, cwd=ROOT)
        passed = re.search(r"(\d+) passed", done.stdout)
        if done.returncode or not passed:
            raise SystemExit(f"{what}:\n{done.stdout[-5000:]}")
        rows.append((what, int(passed[1]), "as its tests say"))
        yield rows


def workers() -> Iterator[list[Row]]:
    """Whether every token is trained once an epoch, and how far the loss is from that of one worker."""
    import w2v
    from w2v.data import make

    rows: list[Row] = []
    last = []
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text")
        text.write_text("".join(make.corpus(300_000, seed=1)), "utf-8")
        for count in (1, 2, 4, 16, 64):
            metrics = w2v.train(text, workers=count, epochs=3, vector_size=50).metrics
            if metrics["tokens_trained"] != 3 * metrics["tokens"]:
                raise SystemExit(
                    f"{count} workers trained {metrics['tokens_trained']} tokens, not 3 × {metrics['tokens']}"
                )
            last.append(metrics["loss"][-1])
            rows.append((f"{count} workers", 1, f"{metrics['tokens_trained']:,} tokens trained, loss {last[-1]:.3f}"))
    if max(last) > 1.05 * min(last):
        raise SystemExit(f"the last loss depends on the number of workers: {last}")
    yield rows


def programs(name: str, seconds: int) -> Iterator[list[Row]]:
    """The rows of fuzz.py or forge.py, each of which prints a JSON object for each kind of file."""
    if name == "fuzz" and not importlib.util.find_spec("atheris"):
        print("fuzzing left out: it needs atheris, which is not made for every Python")
        return
    rows: list[Row] = []
    for found in figures([sys.executable, str(ROOT / f"tests/faults/{name}.py"), str(seconds)]):
        if name == "fuzz":
            if found["code"]:  # the program shows what it found, goes on with the other loaders, and fails in the end
                continue
            times = int(found["number_of_executed_units"])
            rows.append((f"any bytes to the loader: {found['loader']}", times, "loaded or refused in one line"))
        else:
            times = found["loaded"] + found["refused"]
            said = f"{found['loaded']:,} loaded, {found['refused']:,} refused in one line"
            rows.append((f"forged files: {found['kind']}", times, said))
        yield rows


def power(amount: int) -> Iterator[list[Row]]:
    if os.geteuid() or not shutil.which("mkfs.ext4"):
        print("power cuts left out: only root can mount a file system, which mkfs.ext4 makes")
        return
    for found in figures([sys.executable, "-m", "tests.faults.power", str(amount)]):
        yield verdicts("power cuts on a file system of its own (ext4), then --resume", found)


def version() -> str:
    said = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=ROOT).stdout
    return said.strip()


def table() -> str:
    lines = ["| what was done | times | result | version |", "|---|---:|---|---|"]
    for part in PARTS:
        file = FOLDER / f"{part}.json"
        if file.exists():
            kept = json.loads(file.read_text("utf-8"))
            lines += [f"| {what} | {times:,} | {said} | {kept['version']} |" for what, times, said in kept["rows"]]
    return "\n".join(lines)


PARTS = [*injection.SCENARIOS, "proven", "power", "workers", "fuzz", "forge"]
# How much of each part a short run does: each N-th call, so many ends or power cuts, or so many seconds for a kind of
# file. What the tests of `make test` show is left out.
SHORT = {
    "fail": 50, "full": 50, "memory": 60, "kill": 80, "random": 4, "signals": 4, "commands": 200, "commands-memory": 60,
    "commands-kill": 200, "streams": 8, "power": 1, "workers": 0, "fuzz": 1, "forge": 1,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"by default all: {', '.join(PARTS)}")
    parser.add_argument(
        "--kills",
        type=int,
        default=1000,
        help="ends at random moments, by each kind of signal; a tenth of it power cuts",
    )
    parser.add_argument("--step", type=int, default=1, help="let each N-th call fail")
    parser.add_argument("--seconds", type=int, default=60, help="of fuzzing and forging, for each kind of file")
    parser.add_argument("--short", action="store_true", help="some of each part, in two to three minutes")
    parser.add_argument("--table", action="store_true", help="print the table of what was run, and run nothing")
    given = parser.parse_args()
    amounts = dict.fromkeys(PARTS, given.step) | {"random": given.kills, "signals": given.kills}
    amounts |= {"power": given.kills // 10, "fuzz": given.seconds, "forge": given.seconds}
    amounts = SHORT if given.short else amounts
    for part in [] if given.table else given.parts or amounts:
        if part not in amounts:
            parser.error(f"{part}: choose from {', '.join(amounts)}")
        if part in injection.SCENARIOS:
            results = injected(part, amounts[part])
        elif part in ("fuzz", "forge"):
            results = programs(part, amounts[part])
        else:
            results = {"proven": proven, "power": partial(power, amounts[part]), "workers": workers}[part]()
        began_with = version()
        rows: list[Row] = []
        for rows in results:
            FOLDER.mkdir(parents=True, exist_ok=True)
            (FOLDER / f"{part}.json").write_text(json.dumps({"version": began_with, "rows": rows}), "utf-8")
        print(part, *map(list, rows), sep="\n  ", flush=True)
    if given.table or not given.parts:
        print(table())


if __name__ == "__main__":
    main()
