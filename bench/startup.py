"""How long do `import w2v`, `w2v --help`, shell completion, and small calls of 20,000 vectors take?

    python bench/startup.py [--repeats 21] [--json FILE]

The program compares whole processes of this Python with `python -c pass` and `import numpy`, alternating, after one
round that fills the disk's cache. To compare two installations, run it with each one's Python.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from timeit import timeit
from unittest import mock

import numpy as np
from common import W2V, alternate, benchmark_parser, report_results, run_command, summarise, wall_seconds

import w2v

PYTHON = [sys.executable, "-c"]
COMPLETION = {"_W2V_COMPLETE": "bash_complete", "COMP_WORDS": "w2v train --loss ", "COMP_CWORD": "3"}
COMMANDS = {
    "python": [*PYTHON, "pass"],
    "import numpy": [*PYTHON, "import numpy"],
    "import w2v": [*PYTHON, "import w2v"],
    "import w2v; w2v.load": [*PYTHON, "import w2v; w2v.load"],
    "w2v --help": [*W2V, "--help"],
    "w2v train --help": [*W2V, "train", "--help"],
}


def completion_seconds() -> float:
    """Return the wall-clock seconds of a completion in Bash."""
    with mock.patch.dict(os.environ, COMPLETION):
        output, seconds = run_command(W2V)
    assert "plain,softmax" in output, f"wrong completion: {output}"
    return seconds


def small_calls() -> dict[str, Callable[[], float]]:
    """Return functions that measure the seconds of a look-up, a similarity and a query."""
    words = [f"w{number}" for number in range(20_000)]
    vectors = w2v.KeyedVectors(words, np.random.default_rng(1).normal(size=(len(words), 100)).astype(np.float32))
    calls: dict[str, tuple[Callable[[], object], int]] = {
        'vectors["w9"]': (lambda: vectors["w9"], 20_000),
        "similarity": (lambda: vectors.similarity("w9", "w99"), 5_000),
        "most_similar": (lambda: vectors.most_similar("w9"), 50),
    }
    return {name: partial(seconds_per_call, *call) for name, call in calls.items()}


def seconds_per_call(call: Callable[[], object], number: int) -> float:
    return timeit(call, number=number) / number


def main() -> None:
    options = benchmark_parser(__doc__, repeats=21).parse_args()
    candidates: dict[str, Callable[[], float]]
    candidates = {name: partial(wall_seconds, command) for name, command in COMMANDS.items()}
    candidates["completion by Tab"] = completion_seconds
    alternate(candidates, 1)
    times = alternate(candidates, options.repeats)
    differences = [ours - numpy for ours, numpy in zip(times["import w2v"], times["import numpy"], strict=True)]
    calls = {
        name: summarise([1e6 * each for each in values])
        for name, values in alternate(small_calls(), options.repeats).items()
    }
    goals = {"w2v --help": 0.2}
    report_results(
        options,
        "Start-up time",
        "Goals: --help in 0.2 s, import w2v at most 0.05 s after import numpy.",
        seconds={name: summarise(values, goals.get(name)) for name, values in times.items()},
        microseconds_a_call=calls,
        difference={"import w2v − import numpy": summarise(differences, goal=0.05)},
    )


if __name__ == "__main__":
    main()
