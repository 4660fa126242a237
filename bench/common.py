"""Functions that the benchmark programs share: alternating rounds, machine limits, stored runs, tables and JSON.

versions.py also imports `prepared`, `training_seconds` and peers.py from older checkouts, so these names must stay.
"""

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

from w2v._cli.options import option_names
from w2v._kernel.plan import instruction_set
from w2v._losses.registry import Settings
from w2v._losses.tree import Tree
from w2v._system.threads import processors
from w2v._text.corpus import Corpus
from w2v._text.idstore import IdStore, read_corpus
from w2v._text.vocabulary import Vocabulary
from w2v._training.config import RunConfig
from w2v._training.reading import ReadText
from w2v._training.run import Run
from w2v._training.start import Initialisation

BENCH = Path(__file__).parent
KERNEL = BENCH.parent / "w2v/_kernel"
FLAGS = ["-O3", "-fno-math-errno", "-ffp-contract=fast", "-fPIC", "-shared"]  # as in setup.py
LINE_WORDS = 1000
COPY_BLOCK = 1 << 22  # bytes
W2V = [sys.executable, "-m", "w2v"]
CHAINS = 12  # as in peaks.c
LANES = {"baseline": 4, "neon": 4, "avx2": 8, "avx512": 16}  # floats in a register
POLL_INTERVAL = 0.005  # seconds between two readings of /proc/PID/status
PEAK_ITERATIONS = 3_000_000  # of CHAINS vector multiply-adds each: some milliseconds in all

Summary = dict[str, float]  # "median", "low", "high" and perhaps "goal"


def benchmark_parser(documentation: str | None, repeats: int, corpus: bool = False) -> argparse.ArgumentParser:
    """Return a parser with the options that most benchmarks share; with `corpus`, also TEXT and --share."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    if corpus:
        parser.add_argument("corpus", type=Path, metavar="TEXT")
        parser.add_argument("--share", type=float, default=1.0, help="train on this part of the text [%(default)s]")
    parser.add_argument("--repeats", type=int, default=repeats, help="rounds of alternating runs [%(default)s]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    return parser


def time_call(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds that a call takes."""
    start = clock()
    work()
    return clock() - start


def clock_for(threads: int) -> Callable[[], float]:
    """Return the clock for work on this many threads.

    For one thread it is processor time, which other processes do not affect; for more, wall-clock time.
    """
    return time.process_time if threads == 1 else time.perf_counter


def alternate(candidates: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """Call the candidates in turn (A B C, A B C, …), so that other processes affect all alike; return their results."""
    results: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, work in candidates.items():
            results[name].append(work())
    return results


def summarise(values: Iterable[float], goal: float | None = None) -> Summary:
    """Return median, lowest and highest value, and the goal if there is one."""
    listed = list(values)
    summary = {"median": statistics.median(listed), "low": min(listed), "high": max(listed)}
    return summary if goal is None else summary | {"goal": goal}


def round_ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return the ratio of each round. The median of these ratios varies less than the ratio of two medians."""
    return [a / b for a, b in zip(numerators, denominators, strict=True)]


def split_lines(source: Path, target: Path, share: float = 1.0) -> None:
    """Copy the first `share` of a text in lines of at most 1000 words."""
    remaining, carry = round(share * source.stat().st_size), b""
    with source.open("rb") as text, target.open("wb") as file:
        while remaining > 0 and (block := text.read(min(COPY_BLOCK, remaining))):
            remaining -= len(block)
            block = carry + block
            end = max(block.rfind(b" "), block.rfind(b"\n")) + 1
            block, carry = (block[:end], block[end:]) if remaining > 0 else (block, b"")
            for line in block.split(b"\n"):
                words = line.split()
                for start in range(0, len(words), LINE_WORDS):
                    file.write(b" ".join(words[start : start + LINE_WORDS]) + b"\n")


def write_prefixes(text: Path, megabytes: Iterable[float], folder: Path) -> dict[str, Path]:
    """Write the first megabytes of a text to files in `folder`; return their paths by label, as "wiki100, 2 MB"."""
    prefixes = {}
    for size in megabytes:
        prefixes[f"{text.stem}, {size:g} MB"] = path = folder / f"{size:g}.txt"
        split_lines(text, path, size * 1e6 / text.stat().st_size)
    return prefixes


@dataclass(frozen=True)
class Text:
    """A corpus in lines of at most 1000 words, as a file of all of it and a file of its first part.

    The vocabulary covers the whole corpus, so the matrices have their full size however small the part is.

    Attributes:
        full: The file with the whole corpus.
        part: The file with the part to train on.
        vocabulary: The vocabulary of the whole corpus.
        store: The ids of the part.
        trained_words: The expected number of words of the part that subsampling keeps.
    """

    full: Path
    part: Path
    vocabulary: Vocabulary
    store: IdStore
    trained_words: float


@contextlib.contextmanager
def prepared(corpus: Path, share: float, settings: Settings) -> Iterator[Text]:
    """Prepare a corpus for training on its first `share`; its files exist inside the `with` block."""
    with tempfile.TemporaryDirectory() as folder:
        full, part = Path(folder) / "full.txt", Path(folder) / "part.txt"
        split_lines(corpus, full)
        split_lines(full, part, share)
        with read_corpus(Corpus(full), workers=settings.threads) as store:
            vocabulary = Vocabulary.from_store(store, settings.min_count)
        with read_corpus(Corpus(part), workers=settings.threads) as store:
            words = store.remap(vocabulary.words)
            keep = vocabulary.keep_probabilities(settings.sample)
            trained_words = float(store.counts[words >= 0] @ keep[words[words >= 0]])
            yield Text(full, part, vocabulary, store, trained_words)


def training_seconds(
    settings: Settings, vocabulary: Vocabulary, store: IdStore, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the seconds of training, without reading or saving.

    Check that all tokens were trained and the loss fell.
    """
    training = Run(RunConfig(settings=settings), Initialisation(vocabulary), ReadText(store, store))
    duration = time_call(training.train, clock)
    # Before training, each binary decision of a prediction has the loss log 2.
    if settings.loss == "hs":
        weights = vocabulary.counts * vocabulary.keep_probabilities(settings.sample)
        decisions = float(np.average(Tree.huffman(vocabulary.counts).lengths, weights=weights))
    else:
        decisions = float(settings.negative + 1)
    assert training.kernel.tokens_trained == settings.epochs * training.plan.tokens, "some tokens were not trained"
    loss = training.make_checkpoint().mean_losses[-1]
    assert loss is not None, "nothing was predicted"
    assert 0 < loss < decisions * math.log(2), "training did not lower the loss"
    return duration


def compile_library(*sources: Path, compiler: str = os.environ.get("CC", "cc")) -> ctypes.CDLL:
    """Compile C sources to a shared library and load it."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "library.so"
        includes = ["-I", str(KERNEL)]
        command = [*shlex.split(compiler), *FLAGS, *includes, "-o", str(library), *map(str, sources), "-lm"]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(library))


class Peaks:
    """The limits of this machine with one instruction set, measured by peaks.c."""

    def __init__(self, name: str) -> None:
        library, suffix = compile_library(BENCH / "peaks.c"), "baseline" if name == "neon" else name
        self._lanes = LANES[name]
        self._multiply_adds = library[f"multiply_adds_{suffix}"]
        self._multiply_adds.argtypes = [ctypes.c_int64, ctypes.c_float, ctypes.c_float]
        self._move_rows = library[f"move_rows_{suffix}"]
        self._move_rows.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
        self._move_rows.restype = None

    def multiply_adds_per_second(self) -> float:
        """Measure float32 multiply-adds per second of processor time, on one thread."""
        duration = time_call(lambda: self._multiply_adds(PEAK_ITERATIONS, 0.999, 0.001), time.thread_time)
        return PEAK_ITERATIONS * CHAINS * self._lanes / duration

    def rows_per_second(self, matrix: NDArray[np.float32], orders: Sequence[NDArray[np.int32]], distance: int) -> float:
        """Measure rows read and written per second, with one thread per order, prefetching `distance` rows ahead."""
        count, width, address = len(orders[0]) - distance, matrix.shape[1], matrix.ctypes.data
        threads = [
            threading.Thread(target=self._move_rows, args=(address, width, order.ctypes.data, count, distance))
            for order in orders
        ]

        def move() -> None:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return len(orders) * count / time_call(move, clock_for(len(orders)))


def w2v_command(settings: Settings, corpus: Path, output: Path) -> list[str]:
    """Return the `w2v train` command for these settings.

    It names only options that differ from the defaults and have an effect, because w2v refuses options without effect.
    """
    default = Settings().in_effect(computed=False)
    options: list[str] = []
    for name, value in settings.in_effect(computed=False).items():
        if value == default.get(name):
            continue
        spellings = option_names(Settings, name)[0].split("/")  # a flag has two: --NAME and --no-NAME
        options += [spellings[not value]] if isinstance(value, bool) else [spellings[0], str(value)]
    return [*W2V, "train", str(corpus), "-o", str(output), "--force", "--json", *options]


def run_command(command: Sequence[str | Path]) -> tuple[str, float]:
    """Run a program; return its standard output and its wall-clock seconds. Exit if it fails."""
    start = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{shlex.join(map(str, command))} failed:\n{done.stderr}")
    return done.stdout, wall


def wall_seconds(command: Sequence[str | Path]) -> float:
    """Return the wall-clock seconds of a program."""
    return run_command(command)[1]


def watch_memory(command: Sequence[str | Path]) -> tuple[dict[str, Any], dict[str, int]]:
    """Run a program that prints JSON; return its JSON object and its peak memory as watch_process does."""
    output, peaks = watch_process(command)
    return json.loads(output), peaks


def watch_process(command: Sequence[str | Path]) -> tuple[str, dict[str, int]]:
    """Run a program; return its standard output and its peak memory in bytes. Exit if it fails.

    The peaks are the largest RssAnon, RssFile, VmRSS and VmHWM that /proc/PID/status showed while the program ran.
    """
    peaks = {"RssAnon": 0, "RssFile": 0, "VmRSS": 0, "VmHWM": 0}
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            if status.exists():
                for name, _, value in (line.partition(":") for line in status.read_text().splitlines()):
                    if name in peaks:
                        peaks[name] = max(peaks[name], 1024 * int(value.split()[0]))
            time.sleep(POLL_INTERVAL)
        output = process.communicate()[0]
    if process.returncode:
        sys.exit(f"{shlex.join(map(str, command))} failed")
    return output, peaks


def processor_seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    """Call `work`; return its result and the processor seconds of the child processes that it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return result, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def scattered_words(number: int) -> list[str]:
    """Return different words that, as in a real vocabulary, are not in alphabetical order.

    They are the multiples of an odd number modulo 2**32, which differ and look random.
    """
    return [f"{row * 2654435761 % (1 << 32):x}" for row in range(number)]


class StoredRuns:
    """The runs of a comparison, in a JSON file. When the program is called again, it does not repeat them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.document: dict[str, Any] = {"machine": describe_machine(), "commands": [], "runs": []}
        if path.exists():
            self.document |= read_results(path)
        self.document["commands"] = list(dict.fromkeys([*self.document["commands"], command_line()]))

    def run_once(self, conditions: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> None:
        """Measure a run under these conditions, such as its text and seed, unless the file already has this run."""
        runs: list[dict[str, Any]] = self.document["runs"]
        if any({name: run[name] for name in run if name != "measurements"} == conditions for run in runs):
            return
        measurements = measure()
        runs.append({**conditions, "measurements": measurements})
        self._path.write_text(json.dumps(self.document, indent=2) + "\n")
        print(*(f"{name} {value}" for name, value in conditions.items() if value != ""), measurements, flush=True)


def read_results(path: Path) -> dict[str, Any]:
    """Read the file that --json of a program wrote."""
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def group_runs(runs: Iterable[dict[str, Any]], names: Sequence[str]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Group runs by their conditions of these names. Return the measurements of the runs in each group."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault(tuple(run.get(name, "") for name in names), []).append(run["measurements"])
    return groups


def format_mean(values: Sequence[float]) -> str:
    """Format the mean ± half of the range; a single value without a range, and no values as an empty text."""
    if not values:
        return ""
    mean, half = statistics.mean(values), (max(values) - min(values)) / 2
    return f"{mean:.1f}" if len(values) == 1 else f"{mean:.1f} ± {half:.1f}"


def table_of_means(runs: Iterable[dict[str, Any]], names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table with a row for each group of runs, and a column for each measurement.

    See group_runs and format_mean.
    """
    groups = group_runs(runs, names)
    columns = list(dict.fromkeys(column for measured in groups.values() for each in measured for column in each))
    rows = []
    for group, measured in groups.items():
        cells = [format_mean([each[column] for each in measured if each.get(column) is not None]) for column in columns]
        rows.append([*map(str, group), str(len(measured)), *cells])
    return [*names, "seeds", *columns], rows


def runs_parser(documentation: str | None, corpora: bool = False) -> argparse.ArgumentParser:
    """Return a parser with the options of a program that collects runs in a JSON file."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    if corpora:
        parser.add_argument("--corpora", dest="corpus", type=Path, nargs="+", default=[], metavar="TEXT")
    else:
        parser.add_argument("corpus", type=Path, metavar="TEXT", nargs="?")
    parser.add_argument("--questions", type=Path, metavar="FILE")
    parser.add_argument("--pairs", type=Path, nargs="+", default=[], metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the runs to this file")
    parser.add_argument("--table", type=Path, metavar="FILE", help="only print the table of a file that --json wrote")
    return parser


def open_runs(
    parser: argparse.ArgumentParser, options: argparse.Namespace, markdown: Callable[[dict[str, Any]], str]
) -> StoredRuns:
    """Open the runs of --json. With --table, print the table of that file and exit instead."""
    if options.table:
        print(markdown(read_results(options.table)))
        raise SystemExit
    if not (options.corpus and options.questions and options.json):
        parser.error("name a text, --questions and --json, or --table")
    return StoredRuns(options.json)


def runs_markdown(
    document: Mapping[str, Any], title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *notes: str
) -> str:
    """Return the Markdown of a comparison: title, commands, table, notes and machine."""
    commands = [line for command in document["commands"] for line in (f"`{command}`", "")]
    return "\n".join([f"## {title}", "", *commands, markdown_table(header, rows), "", *notes, document["machine"]])


def new_figure(rows: int, columns: int, **options: Any) -> tuple[Any, Any]:
    """Return a matplotlib figure in the style of these programs, and its axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "w2v"  # the same data give the same file
    mpl.rcParams["svg.fonttype"] = "none"  # keep text as text: files are smaller than with outlines
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(rows, columns, layout="constrained", **options)
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save_figure(figure: Any, path: Path) -> None:
    """Save a figure; an SVG gets no date, so the same data give the same file."""
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def describe_machine() -> str:
    """Return processor, number of processors, instruction set and system in one line."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":")[1].strip() if lines else model
    return f"{model}, {processors()} processors, {instruction_set()}, {platform.system()}"


def command_line() -> str:
    """Return the command that started this program, without the folders of its files."""
    arguments = (argument.rsplit("/", 1)[-1] for argument in sys.argv[1:])
    return shlex.join(["python", f"bench/{Path(sys.argv[0]).name}", *arguments])


def report_results(options: argparse.Namespace, title: str, notes: str, **tables: Mapping[str, Summary]) -> None:
    """Print the tables, each a mapping from row labels to summaries, and write them to the file that --json names."""
    document: dict[str, Any] = {"title": title, "notes": notes, "command": command_line()}
    document |= {"machine": describe_machine(), "repeats": options.repeats, **tables}
    print(benchmark_markdown(document))
    if options.json:
        options.json.write_text(json.dumps(document, indent=2) + "\n")


def benchmark_markdown(document: Mapping[str, Any]) -> str:
    """Return the Markdown of a benchmark's JSON, with a table for each member that maps labels to summaries."""
    lines = [f"## {document['title']}", ""] if "title" in document else []
    if "command" in document:
        lines += [f"`{document['command']}`", ""]
    for name, rows in document.items():
        if isinstance(rows, dict) and rows and all(isinstance(row, dict) and "median" in row for row in rows.values()):
            body = [
                [label, *(format_number(row.get(key)) for key in ("median", "low", "high", "goal"))]
                for label, row in rows.items()
            ]
            lines += [markdown_table([name.replace("_", " "), "median", "low", "high", "goal"], body), ""]
    return "\n".join([*lines, *filter(None, [document.get("notes"), document.get("machine")])])


def format_number(value: float | None) -> str:
    """Format a number with three significant digits, or as an integer from 1,000 on; None as an empty cell."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, with all columns but the first aligned to the right."""
    rule = "|".join(["", "---", *["---:"] * (len(header) - 1), ""])
    first, *others = ("| " + " | ".join(row) + " |" for row in [header, *rows])
    return "\n".join([first, rule, *others])
