"""How close does training come to the limits of the machine, and where does its time go?

    python bench/limit.py TEXT [--sets avx512 avx2 baseline] [--models skipgram cbow] [--sizes 300 100] [--workers 1]
                          [--share 0.25] [--repeats 5] [--json FILE]

For each instruction set, the program compares the time of a window, with negative sampling, with two lower bounds. They
are measured alternately with training, and the best round of each bound counts:

arithmetic   the number of multiply-adds of a mean window, at the peak rate of the processor.
             Skip-gram: 3 · contexts · (negative + 1) · size. CBOW: (3 · (negative + 1) + 2 · contexts) · size; the
             2 · contexts are the additions that compute the mean and spread its change
memory       the negative + 2 rows of a window (the outputs of the word and the negatives, and one new input), at the
             rate of reading and writing random rows of matrices of this size. Rows are drawn as in training, so
             frequent ones are in cache as there, and prefetched at the best distance

The last table has the nanoseconds of a window: both bounds; the step with its rows in cache, which adds the
link, sums and stores to the arithmetic; training on a text of WORDS_IN_CACHE different words, which adds choosing rows;
and training on the text, which adds waiting for rows. With one thread, the default, all times are processor time.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
from common import (
    BENCH,
    KERNEL,
    LANES,
    Peaks,
    Summary,
    Text,
    alternate,
    benchmark_parser,
    clock_for,
    compile_library,
    prepared,
    report_results,
    summarise,
    training_seconds,
)
from numpy.typing import NDArray
from peers import BASE
from step import SHAPES, Steps

from w2v._kernel.plan import available_sets
from w2v._losses.registry import Settings
from w2v._settings import ModelName
from w2v._system import memory

WINDOWS = 500_000  # number of windows to draw rows for
DISTANCES = (2, 4, 8, 16, 32)  # rows
TOKENS = 4_000_000  # number of tokens to count windows in
WORDS_IN_CACHE = 400
STEP_ROWS = 12  # inputs, and as many outputs, in cache
GOALS = {
    ("avx512", "skipgram", 300): 0.65, ("avx512", "skipgram", 100): 0.55, ("avx512", "cbow", 300): 0.5,
    ("avx512", "cbow", 100): 0.5, ("avx2", "skipgram", 300): 0.7, ("avx2", "skipgram", 100): 0.6,
}  # fmt: skip


def count_windows(text: Text, settings: Settings) -> tuple[float, NDArray[np.int64]]:
    """Return the number of windows in the text, and the number of context words of each window in a sample."""
    ids = text.store.ids[:TOKENS]
    words = text.store.remap(text.vocabulary.words)[ids]
    keep = text.vocabulary.keep_probabilities(settings.sample)
    kept = (words >= 0) & (np.random.default_rng(1).random(len(ids)) < keep[words])
    ends = np.append(ids[kept | (ids == 0)] == 0, True)  # where lines end, among the words that are kept
    position = np.arange(len(ends))
    left = position - np.maximum.accumulate(np.where(ends, position, -1)) - 1
    right = np.minimum.accumulate(np.where(ends, position, len(ends))[::-1])[::-1] - position - 1
    window_sizes = range(1, settings.window_size + 1)
    contexts = [np.minimum(left, size) + np.minimum(right, size) for size in window_sizes]
    sizes = np.concatenate([each[~ends] for each in contexts])
    nonempty = sizes[sizes > 0]
    trained_words = text.store.counts @ np.append(keep, 0)[text.store.remap(text.vocabulary.words)]
    return float(trained_words) * len(nonempty) / len(sizes), nonempty


def write_cached(text: Path, target: Path) -> None:
    """Write half of a text, with its words hashed to WORDS_IN_CACHE different ones."""
    with text.open("rb") as lines, target.open("w") as file:
        for line in lines:
            if lines.tell() > text.stat().st_size // 2:
                break
            print(*(f"w{zlib.crc32(word) % WORDS_IN_CACHE}" for word in line.split()), file=file)


def row_orders(text: Text, settings: Settings) -> list[NDArray[np.int32]]:
    """Draw for each worker the rows that WINDOWS windows need, in a matrix of all inputs followed by all outputs."""
    counts, random = text.vocabulary.counts, np.random.default_rng(2)

    def draw(weights: NDArray[Any], columns: int) -> NDArray[np.int64]:
        cumulative = np.cumsum(weights / weights.sum())
        indices = np.searchsorted(cumulative, random.random((WINDOWS, columns)))
        return np.minimum(indices, len(counts) - 1)

    trained = counts * text.vocabulary.keep_probabilities(settings.sample).astype(np.float64)
    orders = []
    for _ in range(settings.threads):
        centres, negatives = draw(trained, 1), draw(counts**settings.ns_exponent, settings.negative)
        rows = np.hstack([draw(trained, 1), len(counts) + centres, len(counts) + negatives])
        orders.append(rows.astype(np.int32).ravel())
    return orders


def measure(text: Text, cached: Text, settings: Settings, name: str, repeats: int) -> dict[str, list[float]]:
    """Measure the nanoseconds of a window in each round: its arithmetic, moving its rows, the step and training."""
    workers, lanes, peaks = settings.threads, LANES[name], Peaks(name)
    orders = row_orders(text, settings)
    matrix = memory.aligned_rows(2 * len(text.vocabulary), settings.vector_size)
    matrix.fill(0.1)
    peaks.rows_per_second(matrix, orders, DISTANCES[0])  # warms up
    distance = max(DISTANCES, key=lambda distance: peaks.rows_per_second(matrix, orders, distance))
    windows, contexts = count_windows(text, settings)
    every_word = replace(settings, sample=0.0)
    cached_windows, _ = count_windows(cached, every_word)
    shapes = np.random.default_rng(3).choice(contexts, SHAPES).astype(np.int32)
    library = compile_library(BENCH / "step.c", KERNEL / "step.c")
    steps = Steps(library, name, settings.vector_size, STEP_ROWS, shapes, pooled=settings.model == "cbow")
    products = 3 * (settings.negative + 1)
    operations = products + 2 * contexts.mean() if settings.model == "cbow" else products * contexts.mean()
    work = operations * -(-settings.vector_size // lanes) * lanes

    def train(settings: Settings, text: Text, windows: float) -> float:
        return training_seconds(settings, text.vocabulary, text.store, clock_for(workers)) / windows * 1e9

    return alternate(
        {
            "arithmetic": lambda: work / (workers * peaks.multiply_adds_per_second()) * 1e9,
            "memory": lambda: (settings.negative + 2) / peaks.rows_per_second(matrix, orders, distance) * 1e9,
            "step": steps.nanoseconds,
            "training, rows in cache": lambda: train(every_word, cached, cached_windows),
            "training": lambda: train(settings, text, windows),
        },
        repeats,
    )


def main() -> None:
    parser = benchmark_parser(__doc__, 5, corpus=True)
    parser.add_argument("--sets", nargs="+", choices=available_sets(), default=available_sets())
    parser.add_argument("--models", nargs="+", choices=get_args(ModelName), default=get_args(ModelName))
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 100])
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    results: dict[tuple[str, str, int], dict[str, list[float]]] = {}
    with prepared(options.corpus, options.share, BASE) as text, tempfile.TemporaryDirectory() as folder:
        write_cached(text.part, Path(folder) / "cached.txt")
        with prepared(Path(folder) / "cached.txt", 1.0, BASE) as cached:
            for name, model, size in product(options.sets, options.models, options.sizes):
                os.environ["W2V_SIMD"] = name
                settings = replace(BASE, model=model, vector_size=size, workers=options.workers)
                results[name, model, size] = measure(text, cached, settings, name, options.repeats)
        windows, contexts = count_windows(text, BASE)
        notes = f"{windows / text.store.tokens:.3f} windows per word of the text, {contexts.mean():.2f} context words "
    notes += f"per window; threads: {options.workers}."
    nanoseconds: dict[str, Summary] = {}
    fractions: dict[str, Summary] = {}
    for (name, model, size), times in results.items():
        memory_time = min(min(others["memory"]) for key, others in results.items() if key[2] == size)
        bound = max(min(times["arithmetic"]), memory_time)
        goal = GOALS.get((name, model, size)) if options.workers == 1 else None
        fractions[f"{name}, {model} {size}"] = summarise((bound / duration for duration in times["training"]), goal)
        nanoseconds |= {f"{name}, {model} {size}, {kind}": summarise(values) for kind, values in times.items()}
    report_results(options, "Training against the machine's limits", notes,
           bound_by_training=fractions, nanoseconds_of_a_window=nanoseconds)  # fmt: skip


if __name__ == "__main__":
    main()
