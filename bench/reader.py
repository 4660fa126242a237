"""How fast is text counted and written as ids? One and two threads against `wc -w`, run in turn.

    python bench/reader.py TEXT [--runs 15] [--json FILE]

TEXT is a plain file; 50 MB or more give steady figures. Goals: 0.7 times the speed of `wc -w` with one
thread, and 1.7 times that with two. `wc` is a whole process, ours a call that ends when all ids are in a file.
"""

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from w2v.corpus import Corpus
from w2v.idstore import read_corpus

HEAD = 1 << 20  # bytes


def validate(path: Path) -> int:
    """The number of words, after a look at whether one and two threads give the right ids."""
    text = np.fromfile(path, np.uint8)
    blank = np.concatenate([[True], (text == 32) | (text - np.uint8(9) <= 4)])
    head = text[:HEAD].tobytes().split()[:-1]
    with read_corpus(Corpus(path), workers=1) as one, read_corpus(Corpus(path), workers=2) as two:
        assert one.tokens == np.count_nonzero(blank[:-1] & ~blank[1:]), "a wrong number of tokens"
        words = one.ids[one.ids > 0][: len(head)].astype(np.int64)
        assert one.words(words) == [word.decode() for word in head], "the wrong words"
        assert np.array_equal(np.bincount(one.ids), one.counts), "counts that do not fit the ids"
        assert np.array_equal(one.ids, two.ids), "ids that depend on the number of threads"
        return one.tokens


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def summary(values: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    low, median, high = statistics.quantiles(values, n=4)
    return {"median": median, "low": low, "high": high}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    path: Path = options.text

    tokens, size = validate(path), path.stat().st_size
    contestants: dict[str, Callable[[], object]] = {
        "wc -w": lambda: subprocess.run(["wc", "-w", path], check=True, capture_output=True),
        "one thread": lambda: read_corpus(Corpus(path), workers=1).close(),
        "two threads": lambda: read_corpus(Corpus(path), workers=2).close(),
    }
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(options.runs):
        for name, work in contestants.items():
            times[name].append(seconds(work))
    speeds = {name: summary([size / 1e6 / t for t in found]) for name, found in times.items()}

    def ratio(name: str, to: str) -> dict[str, float]:
        return summary([other / own for own, other in zip(times[name], times[to], strict=True)])

    ratios = {
        "one thread / wc -w": {**ratio("one thread", "wc -w"), "goal": 0.7},
        "two threads / one": {**ratio("two threads", "one thread"), "goal": 1.7},
    }
    print(f"{path}: {size / 1e6:.0f} MB, {tokens:,} words; medians of {options.runs} runs (quartiles)")
    for name, found in speeds.items():
        print(f"{name:20} {found['median']:6.0f} MB/s  ({found['low']:.0f} to {found['high']:.0f})")
    for name, found in ratios.items():
        spread = f"({found['low']:.2f} to {found['high']:.2f})"
        print(f"{name:20} {found['median']:6.2f} ×     {spread}, goal {found['goal']}")
    if options.json:
        result = {"bytes": size, "tokens": tokens, "runs": options.runs, "megabytes_per_second": speeds}
        options.json.write_text(json.dumps({**result, "ratios": ratios}, indent=2) + "\n")


if __name__ == "__main__":
    main()
