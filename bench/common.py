"""Shared by the benchmark programs: alternating runs, their metrics, the machine's limits, tables and JSON."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import math
import os
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.cli.options import option_names
from w2v.kernel.plan import instruction_set
from w2v.losses.registry import FlatSettings, Settings
from w2v.losses.tree import Tree
from w2v.system.threads import processors
from w2v.text.corpus import Corpus
from w2v.text.idstore import IdStore, read_corpus
from w2v.text.vocabulary import Vocabulary
from w2v.training.config import RunConfig
from w2v.training.initialisation import Initialisation
from w2v.training.run import Run

BENCH = Path(__file__).parent
KERNEL = BENCH.parent / "w2v/kernel"
FLAGS = ["-O3", "-fno-math-errno", "-ffp-contract=fast", "-fPIC", "-shared"]  # those of setup.py
LINE_WORDS = 1000
BLOCK = 1 << 22  # bytes
W2V = [sys.executable, "-m", "w2v"]
LANES = {"baseline": 4, "neon": 4, "avx2": 8, "avx512": 16}
WATCHED = 0.005  # seconds between readings
ROUNDS = 3_000_000  # of 12 multiply-adds: some milliseconds

Spread = dict[str, float]


def arguments(documentation: str | None, repeats: int, corpus: bool = False) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    if corpus:
        parser.add_argument("corpus", type=Path, metavar="TEXT")
        parser.add_argument("--share", type=float, default=1.0, help="first part of the text to train on [%(default)s]")
    parser.add_argument("--repeats", type=int, default=repeats, help="rounds of alternating runs [%(default)s]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the metrics to this file")
    return parser


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def clock_of(threads: int) -> Callable[[], float]:
    """The processor time of one thread, which other processes do not affect; with more threads, wall-clock time."""
    return time.process_time if threads == 1 else time.perf_counter


def alternate(contestants: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """What the contestants return, run alternately (A B C, A B C, …), so that other processes affect all alike."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, work in contestants.items():
            found[name].append(work())
    return found


def spread(values: Iterable[float], goal: float | None = None) -> Spread:
    """Median, lowest, highest, and the goal, if there is one."""
    listed = list(values)
    metrics = {"median": statistics.median(listed), "low": min(listed), "high": max(listed)}
    return metrics if goal is None else metrics | {"goal": goal}


def quotients(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """The ratio of each round: their median varies less than the ratio of medians."""
    return [a / b for a, b in zip(numerators, denominators, strict=True)]


def split_lines(source: Path, target: Path, share: float = 1.0) -> None:
    """Copy the first `share` of a text, with lines of at most 1000 words."""
    left, rest = round(share * source.stat().st_size), b""
    with source.open("rb") as text, target.open("wb") as file:
        while left > 0 and (block := text.read(min(BLOCK, left))):
            left -= len(block)
            block = rest + block
            end = max(block.rfind(b" "), block.rfind(b"\n")) + 1
            block, rest = (block[:end], block[end:]) if left > 0 else (block, b"")
            for line in block.split(b"\n"):
                words = line.split()
                for start in range(0, len(words), LINE_WORDS):
                    file.write(b" ".join(words[start : start + LINE_WORDS]) + b"\n")


def beginnings(text: Path, megabytes: Iterable[float], folder: Path) -> dict[str, Path]:
    """The first megabytes of a text, as files in a folder, by name."""
    found = {}
    for size in megabytes:
        found[f"{text.stem}, {size:g} MB"] = part = folder / f"{size:g}.txt"
        split_lines(text, part, size * 1e6 / text.stat().st_size)
    return found


@dataclass(frozen=True)
class Text:
    """A prepared corpus: lines of at most 1000 words, `whole` and its first part.

    `vocabulary` is that of the whole text, so that the matrices have their full size however small the part is;
    `store` has the ids of the part, and `kept` is the mean number of its words after subsampling.
    """

    whole: Path
    part: Path
    vocabulary: Vocabulary
    store: IdStore
    kept: float


@contextlib.contextmanager
def prepared(corpus: Path, share: float, settings: Settings) -> Iterator[Text]:
    with tempfile.TemporaryDirectory() as folder:
        whole, part = Path(folder) / "whole.txt", Path(folder) / "part.txt"
        split_lines(corpus, whole)
        split_lines(whole, part, share)
        with read_corpus(Corpus(whole), workers=settings.threads) as store:
            vocabulary = Vocabulary.from_store(store, settings.min_count)
        with read_corpus(Corpus(part), workers=settings.threads) as store:
            words = store.remap(vocabulary.words)
            keep = vocabulary.keep_probabilities(settings.sample)
            yield Text(whole, part, vocabulary, store, float(store.counts[words >= 0] @ keep[words[words >= 0]]))


def training_seconds(
    settings: Settings, vocabulary: Vocabulary, store: IdStore, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The time of training alone; checks that all tokens were trained and the loss fell."""
    training = Run(RunConfig(settings=settings), Initialisation(vocabulary), store)
    taken = seconds(lambda: training.train(), clock)
    if settings.loss == "hs":
        weights = vocabulary.counts * vocabulary.keep_probabilities(settings.sample)
        decisions = float(np.average(Tree.huffman(vocabulary.counts).lengths, weights=weights))
    else:
        decisions = float(settings.negative + 1)
    assert training.kernel.tokens_trained == settings.epochs * training.plan.tokens, "tokens were left out"
    loss = training.state.mean_losses[-1]
    assert loss is not None, "nothing was predicted"
    assert 0 < loss < decisions * math.log(2), "the loss is no lower than before training"
    return taken


def compiled(*sources: Path, compiler: str = os.environ.get("CC", "cc")) -> ctypes.CDLL:
    """C sources as a library, built in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "library.so"
        includes = ["-I", str(KERNEL)]
        command = [*shlex.split(compiler), *FLAGS, *includes, "-o", str(library), *map(str, sources), "-lm"]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(library))


class Peaks:
    """The limits of the machine with one instruction set, measured by peaks.c."""

    def __init__(self, name: str) -> None:
        library, suffix = compiled(BENCH / "peaks.c"), "baseline" if name == "neon" else name
        self._lanes = LANES[name]
        self._multiply_adds = library[f"multiply_adds_{suffix}"]
        self._multiply_adds.argtypes = [ctypes.c_int64, ctypes.c_float, ctypes.c_float]
        self._move_rows = library[f"move_rows_{suffix}"]
        self._move_rows.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
        self._move_rows.restype = None

    def multiply_adds(self) -> float:
        """float32 multiply-adds per second of processor time, on one thread."""
        return ROUNDS * 12 * self._lanes / seconds(lambda: self._multiply_adds(ROUNDS, 0.999, 0.001), time.thread_time)

    def rows(self, matrix: NDArray[np.float32], orders: Sequence[NDArray[np.int32]], distance: int) -> float:
        """Rows read and written per second, one thread per order, prefetched `distance` rows before."""
        count, width, at = len(orders[0]) - distance, matrix.shape[1], matrix.ctypes.data
        arguments = [(at, width, order.ctypes.data, count, distance) for order in orders]
        threads = [threading.Thread(target=self._move_rows, args=each) for each in arguments]

        def move() -> None:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return len(orders) * count / seconds(move, clock_of(len(orders)))


def w2v_command(settings: Settings, corpus: Path, output: Path) -> list[str]:
    """`w2v train` with the options that differ from the defaults and have an effect, for it refuses the others."""
    default = Settings().in_effect(computed=False)
    options: list[str] = []
    for name, value in settings.in_effect(computed=False).items():
        if value == default.get(name):
            continue
        names = option_names(FlatSettings, name)[0].split("/")  # of a flag: for yes and for no
        options += [names[not value]] if isinstance(value, bool) else [names[0], str(value)]
    return [*W2V, "train", str(corpus), "-o", str(output), "--force", "--json", *options]


def run(command: Sequence[str | Path]) -> tuple[str, float]:
    """What a program prints, and the seconds it took."""
    start = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{shlex.join(map(str, command))} failed:\n{done.stderr}")
    return done.stdout, wall


def wall_seconds(command: Sequence[str | Path]) -> float:
    """The seconds that a program took."""
    return run(command)[1]


def watched(command: Sequence[str | Path]) -> tuple[dict[str, Any], dict[str, int]]:
    """The JSON object that a program prints, and the largest values in /proc/PID/status while it ran, in bytes."""
    most = {"RssAnon": 0, "RssFile": 0, "VmRSS": 0}
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            if status.exists():
                for name, _, value in (line.partition(":") for line in status.read_text().splitlines()):
                    if name in most:
                        most[name] = max(most[name], 1024 * int(value.split()[0]))
            time.sleep(WATCHED)
        printed = process.communicate()[0]
    if process.returncode:
        sys.exit(f"{shlex.join(map(str, command))} failed")
    return json.loads(printed), most


def processor_seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` returns, and the processor seconds of the child processes that it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return result, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Runs:
    """Runs of a comparison, stored in a JSON file: one that is in it already is not repeated."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.document: dict[str, Any] = {"machine": machine(), "commands": [], "runs": []}
        if path.exists():
            self.document |= json.loads(path.read_text())
        self.document["commands"] = list(dict.fromkeys([*self.document["commands"], command_line()]))

    def make(self, key: dict[str, Any], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The metrics of the run that `key` names, computed by `work` if they are not in the file."""
        runs: list[dict[str, Any]] = self.document["runs"]
        for run in runs:
            if {name: value for name, value in run.items() if name != "figures"} == key:
                return dict(run["figures"])
        metrics = work()
        runs.append({**key, "figures": metrics})
        self._path.write_text(json.dumps(self.document, indent=2) + "\n")
        print(*(f"{name} {value}" for name, value in key.items() if value != ""), metrics, flush=True)
        return metrics


def grouped(runs: Iterable[dict[str, Any]], names: Sequence[str]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The metrics of all runs that have the same values under these names."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for made in runs:
        groups.setdefault(tuple(made.get(name, "") for name in names), []).append(made["figures"])
    return groups


def mean_and_half(values: Sequence[float]) -> str:
    """Mean ± half of the range."""
    half = (max(values) - min(values)) / 2 if values else 0
    return f"{statistics.mean(values):.1f}" + f" ± {half:.1f}" * (len(values) > 1) if values else ""


def runs_parser(documentation: str | None, corpora: bool = False) -> argparse.ArgumentParser:
    """The options of a program that collects runs in a JSON file."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    if corpora:
        parser.add_argument("--corpora", dest="corpus", type=Path, nargs="+", default=[], metavar="TEXT")
    else:
        parser.add_argument("corpus", type=Path, metavar="TEXT", nargs="?")
    parser.add_argument("--questions", type=Path, metavar="FILE")
    parser.add_argument("--pairs", type=Path, nargs="+", default=[], metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the runs to this file")
    parser.add_argument("--table", type=Path, metavar="FILE", help="train nothing, print the table of such a file")
    return parser


def open_runs(
    parser: argparse.ArgumentParser, options: argparse.Namespace, markdown: Callable[[dict[str, Any]], str]
) -> Runs:
    """The runs of --json; with --table, print the table of a file and exit."""
    if options.table:
        print(markdown(json.loads(options.table.read_text())))
        raise SystemExit
    if not (options.corpus and options.questions and options.json):
        parser.error("a text, --questions and --json are needed, or --table")
    return Runs(options.json)


def runs_markdown(
    document: Mapping[str, Any], title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *notes: str
) -> str:
    commands = [line for command in document["commands"] for line in (f"`{command}`", "")]
    return "\n".join([f"## {title}", "", *commands, table(header, rows), "", *notes, document["machine"]])


def new_picture(rows: int, columns: int, **options: Any) -> tuple[Any, Any]:
    """A matplotlib figure of the bench programs' style, and its axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "w2v"  # the same data give the same file
    mpl.rcParams["svg.fonttype"] = "none"  # text stays text, which is small
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(rows, columns, layout="constrained", **options)
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save_picture(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def machine() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":")[1].strip() if lines else model
    return f"{model}, {processors()} processors, {instruction_set()}, {platform.system()}"


def command_line() -> str:
    """How this program was called, without the folders of its files."""
    return shlex.join(["python", f"bench/{Path(sys.argv[0]).name}", *(a.rsplit("/", 1)[-1] for a in sys.argv[1:])])


def finish(options: argparse.Namespace, title: str, notes: str, **tables: Mapping[str, Spread]) -> None:
    """Print the tables of name → spread, and write them to the file that --json names."""
    document: dict[str, Any] = {"title": title, "notes": notes, "command": command_line(), "machine": machine()}
    document |= {"repeats": options.repeats, **tables}
    print(markdown(document))
    if options.json:
        options.json.write_text(json.dumps(document, indent=2) + "\n")


def markdown(document: Mapping[str, Any]) -> str:
    """The tables of a benchmark's JSON: every member that maps names to metrics with a median."""
    lines = [f"## {document['title']}", ""] if "title" in document else []
    if "command" in document:
        lines += [f"`{document['command']}`", ""]
    for name, rows in document.items():
        if isinstance(rows, dict) and rows and all(isinstance(row, dict) and "median" in row for row in rows.values()):
            body = [
                [label, *(number(row[key]) for key in ("median", "low", "high")), number(row.get("goal"))]
                for label, row in rows.items()
            ]
            lines += [table([name.replace("_", " "), "median", "low", "high", "goal"], body), ""]
    return "\n".join([*lines, *filter(None, [document.get("notes"), document.get("machine")])])


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    rule = "|".join(["", "---", *["---:"] * (len(header) - 1), ""])
    first, *others = ("| " + " | ".join(row) + " |" for row in [header, *rows])
    return "\n".join([first, rule, *others])
