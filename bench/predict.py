"""How fast are labels predicted, compared with fastText's program and its Python module, from the same model files?

    python bench/predict.py MODEL TEXTS [MODEL TEXTS …] --fasttext BINARY [--module NAME] [--json FILE]

MODEL is a .bin file of fastText, TEXTS are lines. `--module` is a package with fastText's functions load_model and
predict. Runs alternate. With one thread, processor seconds are compared, of a process that may use one processor; with
more, wall-clock seconds: fastText has only one thread. The seconds for a file of one
line are subtracted. The last table has the processor seconds to load a model that is in the page cache, and then to
predict one line.

bench/classify.py says how to compile BINARY. A model of n-grams of characters, one of two million buckets of word
n-grams, and their texts:

    fasttext supervised -input lid.train -output lid -dim 16 -minn 2 -maxn 4 -bucket 200000 -lr .5 -epoch 25
    fasttext supervised -input mr.train -output mr -dim 256 -wordNgrams 2 -bucket 2000000 -epoch 1
    sed 's/__label__[^ ]* //g' lid.train > lid.txt
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from common import (
    W2V,
    Summary,
    alternate,
    benchmark_parser,
    processor_seconds,
    report_results,
    round_ratios,
    run_command,
    summarise,
)

# Prints the seconds of loading a model, of its first prediction, and of the predictions for a list of texts.
LIST = """
import importlib, sys, time
load_model = importlib.import_module(sys.argv[1]).load_model
lines = open(sys.argv[3], encoding="utf-8").read().split("\\n")[:-1]
clock = getattr(time, sys.argv[4])
start = clock()
model = load_model(sys.argv[2], **dict.fromkeys(sys.argv[5:], True))
loaded = clock()
model.predict(lines[:1])
predicted = clock()
model.predict(lines)
print(loaded - start, predicted - loaded, clock() - predicted)
"""


def seconds(command: Sequence[str | Path], processors: int) -> tuple[str, float]:
    """Return the output of a program, and its processor seconds on one processor, or its seconds on several."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:processors])
    try:
        (output, wall), used = processor_seconds(partial(run_command, command))
    finally:
        os.sched_setaffinity(0, allowed)
    return output, used if processors == 1 else wall


def program_rate(command: Sequence[str | Path], texts: Path, line: Path, processors: int, *more: str) -> float:
    """Return the lines that a program predicts in a second."""
    whole, single = (seconds([*command, file, *more], processors)[1] for file in (texts, line))
    return texts.read_bytes().count(b"\n") / (whole - single)


def list_seconds(module: str, model: Path, texts: Path, processors: int, *options: str) -> list[float]:
    """Return the seconds that a module takes to load a model, for a first prediction, and for a list of texts."""
    clock = "process_time" if processors == 1 else "perf_counter"
    output, _ = seconds([sys.executable, "-c", LIST, module, model, texts, clock, *options], processors)
    return list(map(float, output.split()))


def list_rate(module: str, model: Path, texts: Path, processors: int) -> float:
    """Return the lines of a list that a Python module predicts in a second."""
    return texts.read_bytes().count(b"\n") / list_seconds(module, model, texts, processors)[2]


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=5)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="pairs of MODEL and TEXTS")
    parser.add_argument("--fasttext", required=True, metavar="BINARY")
    parser.add_argument("--module", default="fasttext", help="fastText's Python module [%(default)s]")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="processors to use [1 2]")
    options = parser.parse_args()
    rates: dict[str, Summary] = {}
    ratios: dict[str, Summary] = {}
    starts: dict[str, Summary] = {}
    with tempfile.TemporaryDirectory() as folder:
        line = Path(folder, "line.txt")
        for model, texts in zip(options.files[::2], options.files[1::2], strict=True):
            line.write_bytes(texts.read_bytes().split(b"\n")[0] + b"\n")
            theirs, ours = [options.fasttext, "predict-prob", model], [*W2V, "predict", model]
            for threads in options.threads:
                file_goal, list_goal = {1: (4, 6), 2: (7, None)}.get(threads, (None, None))
                name = f"{model.stem}, {threads} thread{'s' * (threads > 1)}"
                candidates: dict[str, Callable[[], float]] = {
                    f"{name}, fastText": partial(program_rate, theirs, texts, line, threads, "1"),
                    f"{name}, w2v predict": partial(program_rate, ours, texts, line, threads),
                    f"{name}, {options.module}, a list": partial(list_rate, options.module, model, texts, threads),
                    f"{name}, w2v.fasttext, a list": partial(list_rate, "w2v.fasttext", model, texts, threads),
                }
                found = alternate(candidates, options.repeats)
                rates |= {each: summarise(values) for each, values in found.items()}
                program, own, module, own_list = found.values()
                ratios[f"{name}, a file"] = summarise(round_ratios(own, program), file_goal)
                ratios[f"{name}, a list"] = summarise(round_ratios(own_list, module), list_goal)
            for module_name, *more in ((options.module,), ("w2v.fasttext", "mmap")):
                times = [list_seconds(module_name, model, line, 1, *more)[:2] for _ in range(options.repeats)]
                load, first = map(summarise, zip(*times, strict=True))
                starts[f"{model.stem}, {', '.join([module_name, *more])}, load"] = load
                starts[f"{model.stem}, {', '.join([module_name, *more])}, first prediction"] = first
    notes = "Lines a second; their ratio; processor seconds to load a model, and for a first prediction."
    tables = {"lines_a_second": rates, "w2v / fastText": ratios, "processor_seconds": starts}
    report_results(options, "Predicting labels", notes, **tables)


if __name__ == "__main__":
    main()
