"""How near is training on one thread to the limits of the machine?

    python bench/limit.py TEXT [--models skipgram cbow] [--sizes 300 100] [--workers 1] [--share 0.25] [--repeats 5]
                          [--json FILE]

Negative sampling, against the lower of two limits, measured alternately with it:

arithmetic   the multiply-add peak over the operations for each window that the text has. Skip-gram: 3 · contexts ·
             (negative + 1) · size. CBOW: (3 · (negative + 1) + 2 · contexts) · size, of which 2 · contexts are the
             additions that make the mean and spread its change
memory       the rate at which rows of matrices of that size can be read and written at random, over negative + 2 for
             each window: the word's and the negatives' outputs and one new input. They are drawn as training draws
             them, so frequent ones are in cache as there, and prefetched at the best distance.

One thread, processor time.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, get_args

import numpy as np
from common import LANES, Peaks, Spread, Text, alternate, arguments, clock_of, finish, prepared, quotients, spread
from common import training_seconds as train
from numpy.typing import NDArray
from peers import BASE

from w2v.losses.registry import Settings
from w2v.plan import instruction_set
from w2v.settings import ModelName
from w2v.system import memory

WINDOWS = 500_000  # whose rows are drawn
DISTANCES = (2, 4, 8, 16, 32)  # rows
TOKENS = 4_000_000  # of which windows are counted
GOALS = {"skipgram": 0.55, "cbow": 0.5}


def count_windows(text: Text, settings: Settings) -> tuple[float, float]:
    """The number of windows in the text, and their mean number of context words."""
    ids = text.store.ids[:TOKENS]
    words = text.store.remap(text.vocabulary.words)[ids]
    keep = text.vocabulary.keep_probabilities(settings.sample)
    kept = (words >= 0) & (np.random.default_rng(1).random(len(ids)) < keep[words])
    ends = np.append(ids[kept | (ids == 0)] == 0, True)
    place = np.arange(len(ends))
    left = place - np.maximum.accumulate(np.where(ends, place, -1)) - 1
    right = np.minimum.accumulate(np.where(ends, place, len(ends))[::-1])[::-1] - place - 1
    reaches = range(1, settings.window_size + 1)
    contexts = [np.minimum(left, reach) + np.minimum(right, reach) for reach in reaches]
    sizes = np.concatenate([each[~ends] for each in contexts])
    used = sizes[sizes > 0]
    return text.kept * len(used) / len(sizes), float(used.mean())


def row_orders(text: Text, settings: Settings) -> list[NDArray[np.int32]]:
    """For each worker the rows that WINDOWS windows need, in a matrix of all inputs and then all outputs."""
    counts, random = text.vocabulary.counts, np.random.default_rng(2)

    def draw(weights: NDArray[Any], columns: int) -> NDArray[np.int64]:
        cumulated = np.cumsum(weights / weights.sum())
        drawn = np.searchsorted(cumulated, random.random((WINDOWS, columns)))
        return np.minimum(drawn, len(counts) - 1)

    kept = counts * text.vocabulary.keep_probabilities(settings.sample).astype(np.float64)
    orders = []
    for _ in range(settings.threads):
        centres, negatives = draw(kept, 1), draw(counts**settings.ns_exponent, settings.negative)
        rows = np.hstack([draw(kept, 1), len(counts) + centres, len(counts) + negatives])
        orders.append(rows.astype(np.int32).ravel())
    return orders


def measure(
    text: Text, settings: Settings, peaks: Peaks, windows: float, contexts: float, repeats: int
) -> dict[str, list[float]]:
    """Windows per second by each limit and in training, for each round."""
    workers, lanes = settings.threads, LANES[instruction_set()]
    orders = row_orders(text, settings)
    matrix = memory.aligned_rows(2 * len(text.vocabulary), settings.vector_size)
    matrix.fill(0.1)
    peaks.rows(matrix, orders, DISTANCES[0])
    distance = max(DISTANCES, key=lambda distance: peaks.rows(matrix, orders, distance))
    products = 3 * (settings.negative + 1)
    operations = products + 2 * contexts if settings.model == "cbow" else products * contexts
    work = operations * -(-settings.vector_size // lanes) * lanes
    return alternate(
        {
            "arithmetic": lambda: workers * peaks.multiply_adds() / work,
            "memory": lambda: peaks.rows(matrix, orders, distance) / (settings.negative + 2),
            "training": lambda: windows / train(settings, text.vocabulary, text.store, clock_of(workers)),
        },
        repeats,
    )


def main() -> None:
    parser = arguments(__doc__, 5, corpus=True)
    parser.add_argument("--models", nargs="+", choices=get_args(ModelName), default=get_args(ModelName))
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 100])
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    peaks = Peaks(instruction_set())
    speeds: dict[str, Spread] = {}
    fractions: dict[str, Spread] = {}
    with prepared(options.corpus, options.share, BASE) as text:
        windows, contexts = count_windows(text, BASE)
        for model, size in product(options.models, options.sizes):
            settings = replace(BASE, model=model, vector_size=size, workers=options.workers)
            found = measure(text, settings, peaks, windows, contexts, options.repeats)
            limits = [min(pair) for pair in zip(found["arithmetic"], found["memory"], strict=True)]
            speeds |= {f"{model} {size}, {name}": spread(values) for name, values in found.items()}
            goal = GOALS[model] if options.workers == 1 else None
            fractions[f"{model} {size}, training / lower limit"] = spread(quotients(found["training"], limits), goal)
            for name in ("arithmetic", "memory"):
                fractions[f"{model} {size}, training / {name}"] = spread(quotients(found["training"], found[name]))
        notes = f"{windows / text.store.tokens:.3f} windows per word of the text, {contexts:.2f} context words per "
    notes += f"window; threads: {options.workers}."
    finish(options, "Training against the machine's limits", notes, windows_a_second=speeds, fraction=fractions)


if __name__ == "__main__":
    main()
