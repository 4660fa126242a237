"""Run all of tests/faults, and show what was tried, how often, and with what result.

    python tests/faults/run.py [PART …] [--kills N] [--step N] [--seconds S]
    python tests/faults/run.py --short
    python tests/faults/run.py --table

Each part stores its results in build/faults, with the version of the code, when it ends or is stopped; injections also
do so each minute. --short runs some of each part in two to three minutes. --table prints the results of all parts for
docs/reliability.md.

Whatever fails, no committed checkpoint may be lost, an output must be the complete old or the complete new file, a
resumed run must end with the same bits, and an error must be one clear line. The first violation ends the run with exit
code 1.
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

RESULTS = ROOT / "build/faults"
SEED = int(os.environ.get("FAULTS_SEED", time.time()))
Row = tuple[str, int, str]  # what was done, how often, with what result


# Cases that ordinary tests cover. Each has a row in the table of results, the files of its tests, and pytest's -k.
TESTS = {
    "the checkpoint folder is removed, created again or taken by another run": (
        ["training/test_lock.py"],
        "only_one_run or created_again",
    ),
    "file names as long as the system allows, and longer": (["system/test_files.py", "cli/test_outputs.py"], "name"),
    "outputs that exist already, or that fail at the end of writing": (
        ["cli/test_outputs.py", "test_data.py"],
        "old_file_is_kept or refused or elsewhere or overwritten_only or unwritable",
    ),
    "a signal while an output waits for the reader of a pipe": (["cli/test_outputs.py"], "waits"),
    "no folder for temporary files": (["system/test_files.py"], "without_a_temporary_folder"),
    "memory limits of the machine, of shared cgroups, and of the address space": (
        ["system/test_memory.py"],
        "smallest_limit",
    ),
    "--resume of another user's checkpoint": (["training/test_stored_paths.py"], ""),
    "links and pipes planted under names that can be guessed": (
        [*("system/test_files.py", "text/test_idstore.py"), *("training/test_checkpoint.py", "training/test_lock.py")],
        "planted or in_place_of",
    ),
    "memory of every reader of vectors, for files that promise more data than they hold": (
        ["formats/test_hostile.py"],
        "memory",
    ),
    "words, names and file names with control characters for a terminal": (
        ["cli/test_console.py"],
        "control or harmless",
    ),
    "a user's own loss raises an exception in a thread": (["kernel/test_numba_kernel.py"], "exception_in_a_thread"),
    "a text is cut, grows or changes while it is read, or changes but keeps its times": (
        ["text/test_corpus.py", "text/test_idstore.py"],
        "a_change or changed_text or something_changes",
    ),
    "a model is changed or replaced while it is loaded": (["formats/test_registry.py"], "changes_while"),
    "a matrix and its word list are replaced while calls fail": (["system/test_files.py"], "never_mixed"),
    "a database with a write-ahead log or journal": (["formats/test_sqlite.py"], "replace or whole or committed"),
    "a text without white space, or without an end": (["text/test_corpus.py"], "white_space or endless"),
    "a cache that another user could change": (["text/test_idstore.py"], "user"),
    "ranks with different copies of a text": (["training/test_distributed.py"], "content"),
    "the limit of processor time (SIGXCPU)": (
        ["training/test_checkpoint.py", "cli/test_main.py"],
        "hard_cpu_limit or signals",
    ),
    "a thread that cannot be started": (["system/test_threads.py", "training/test_checkpoint.py"], "cannot_be_started"),
    "another process cuts a mapped model or cache (SIGBUS)": (["system/test_bus_error.py"], ""),
    "Numba's cache on disk is damaged, full or read-only": (["kernel/test_numba_kernel.py"], "cannot_be_used"),
    "a terminal or log is closed during training": (["cli/test_console.py"], "terminal_is_closed or reader_of_its_log"),
}


def json_lines(command: list[str], stdin: str = "") -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that a program prints, one per line. Raise SystemExit if it fails."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdin
        assert process.stdout
        with process.stdin:
            process.stdin.write(stdin)
        yield from map(json.loads, filter(str.strip, process.stdout))
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")


def count_row(what: str, counts: dict[str, int]) -> Row:
    """Return the row of a part from the number of each result."""
    return what, sum(counts.values()), ", ".join(f"{result} {times:,}" for result, times in sorted(counts.items()))


def run_injection(name: str, amount: int) -> Iterator[list[Row]]:
    """Run a scenario of injection.py; yield its row each minute."""
    with tempfile.TemporaryDirectory() as folder:
        command = injection.preloaded_command(Path(folder))
        for counts in json_lines(command, f"{name} {amount} {SEED}\n"):
            yield [count_row(injection.SCENARIOS[name], counts)]


def run_tests() -> Iterator[list[Row]]:
    """Run the tests of TESTS; yield the rows so far after each case."""
    rows: list[Row] = []
    for what, (files, selection) in TESTS.items():
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"tests/{file}" for file in files)]
        done = subprocess.run([*command, "-k", selection], capture_output=True, text=True, cwd=ROOT)
        passed = re.search(r"(\d+) passed", done.stdout)
        if done.returncode or not passed:
            raise SystemExit(f"{what}:\n{done.stdout[-5000:]}")
        rows.append((what, int(passed[1]), "as promised"))
        yield rows


def compare_workers() -> Iterator[list[Row]]:
    """Check that every token is trained once per epoch, and that the number of workers hardly changes the loss."""
    import w2v
    from w2v.data import make

    rows: list[Row] = []
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text")
        text.write_text("".join(make.corpus(300_000, seed=1)), "utf-8")
        for count in (1, 2, 4, 16, 64):
            metrics = w2v.train(text, workers=count, epochs=3, vector_size=50).metrics
            if metrics["tokens_trained"] != 3 * metrics["tokens"]:
                raise SystemExit(
                    f"{count} workers trained {metrics['tokens_trained']} tokens, not 3 × {metrics['tokens']}"
                )
            losses.append(metrics["loss"][-1])
            rows.append((f"{count} workers", 1, f"{metrics['tokens_trained']:,} tokens trained, loss {losses[-1]:.3f}"))
    if max(losses) > 1.05 * min(losses):
        raise SystemExit(f"the loss depends on the number of workers: {losses}")
    yield rows


def run_fuzzer(seconds: int) -> Iterator[list[Row]]:
    """Run fuzz.py, which prints a JSON object for each loader; yield the rows so far after each."""
    if not importlib.util.find_spec("atheris"):
        print("fuzzing is skipped: it needs atheris, which has no wheel for this Python")
        return
    rows: list[Row] = []
    for result in json_lines([sys.executable, str(ROOT / "tests/faults/fuzz.py"), str(seconds)]):
        if result["code"]:  # fuzz.py shows the failure, goes on with the other loaders, and exits with 1
            continue
        times = int(result["number_of_executed_units"])
        rows.append((f"any bytes to the loader: {result['loader']}", times, "loaded or refused in one line"))
        yield rows


def cut_power(amount: int) -> Iterator[list[Row]]:
    """Run power.py for this many cuts; yield its row after each."""
    if os.geteuid() or not shutil.which("mkfs.ext4"):
        print("power cuts are skipped: they need root, to mount a file system, and mkfs.ext4")
        return
    for counts in json_lines([sys.executable, "-m", "tests.faults.power", str(amount)]):
        yield [count_row("the power is cut, on a separate file system (ext4), then --resume", counts)]


def code_version() -> str:
    """Return the version of the code as git describes it."""
    description = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=ROOT
    ).stdout
    return description.strip()


def results_table() -> str:
    """Return the Markdown table of all stored results."""
    lines = ["| what was done | times | result | version |", "|---|---:|---|---|"]
    for part in PARTS:
        file = RESULTS / f"{part}.json"
        if file.exists():
            stored = json.loads(file.read_text("utf-8"))
            lines += [
                f"| {what} | {times:,} | {result} | {stored['version']} |" for what, times, result in stored["rows"]
            ]
    return "\n".join(lines)


PARTS = [*injection.SCENARIOS, "tests", "power", "workers", "fuzz"]
# The amount of each part in a short run: the step between calls, the number of stopped runs or power cuts, or the
# seconds for each loader. The part "tests" is left out, because `make test` and `make test-slow` run it.
SHORT = {
    "fail": 50, "full": 50, "memory": 60, "kill": 80, "random": 4, "signals": 4, "commands": 200, "commands-memory": 60,
    "commands-kill": 200, "streams": 8, "power": 1, "workers": 0, "fuzz": 1,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"by default all: {', '.join(PARTS)}")
    parser.add_argument(
        "--kills",
        type=int,
        default=1000,
        help="number of runs to stop at random moments, by SIGKILL and by other signals; a tenth as many power cuts",
    )
    parser.add_argument("--step", type=int, default=1, help="make every N-th call fail")
    parser.add_argument("--seconds", type=int, default=60, help="seconds of fuzzing, for each loader")
    parser.add_argument("--short", action="store_true", help="run some of each part, in two to three minutes")
    parser.add_argument("--table", action="store_true", help="only print the table of stored results")
    options = parser.parse_args()
    amounts = dict.fromkeys(PARTS, options.step) | {"random": options.kills, "signals": options.kills}
    amounts |= {"power": options.kills // 10, "fuzz": options.seconds}
    amounts = SHORT if options.short else amounts
    for part in [] if options.table else options.parts or amounts:
        if part not in amounts:
            parser.error(f"there is no part {part}: choose from {', '.join(amounts)}")
        if part in injection.SCENARIOS:
            results = run_injection(part, amounts[part])
        else:
            others = {
                "tests": run_tests,
                "power": partial(cut_power, amounts[part]),
                "workers": compare_workers,
                "fuzz": partial(run_fuzzer, amounts[part]),
            }
            results = others[part]()
        version = code_version()
        rows: list[Row] = []
        for rows in results:
            RESULTS.mkdir(parents=True, exist_ok=True)
            (RESULTS / f"{part}.json").write_text(json.dumps({"version": version, "rows": rows}), "utf-8")
        print(part, *map(list, rows), sep="\n  ", flush=True)
    if options.table or not options.parts:
        print(results_table())


if __name__ == "__main__":
    main()
