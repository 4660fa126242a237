"""How much faster are several ranks than one? Computed from measurements on this machine; nothing is sent.

    python bench/cluster.py TEXT [--share 1] [--vector-size 100] [--threads 16] [--json FILE]

The program measures, in processor time, how long a rank takes to train a word and to pack and unpack a row for an
exchange. From these two times it computes the speed of 2 to 64 ranks, in networks of 10 to 100 Gb/s, with vocabularies
of 100,000 to 10 million words. A round takes

    sending the rows that every round exchanges + max(training, sending the other rows) + packing,

where sending takes, as in a ring all-reduce of n ranks,

    2 (n - 1) (latency + bytes / n / bandwidth).

An epoch of a billion words ends by exchanging all rows, during which nothing is trained. The goal is 3.6 for 4 ranks
with 100,000 words at 10 Gb/s. quality.py measures how well several ranks learn.
"""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from common import benchmark_parser, describe_machine, markdown_table, prepared, training_seconds
from peers import BASE

from w2v._system import memory
from w2v._training.distributed import MAX_ROUND_WORDS, words_per_round
from w2v._training.exchange import Exchange, Flags, rows_of_round

RANKS, GIGABITS, VOCABULARIES = (2, 4, 8, 16, 32, 64), (10, 25, 100), (100_000, 1_000_000, 10_000_000)
LATENCY = 20e-6  # seconds per message
WORDS = 1_000_000_000  # per epoch


def packing_seconds(size: int, rounds: int = 40) -> float:
    """Measure the processor seconds to pack and unpack a row of matrices that exceed the caches."""
    communicator: Any = SimpleNamespace(
        start_allreduce=lambda values, total: np.copyto(total, values), wait=lambda request: None
    )
    matrices = [(memory.aligned_rows(100_000, size)[:, :size], 1 / np.arange(1, 100_001)) for _ in range(2)]
    exchange = Exchange(communicator, matrices, 1, 1)
    random = np.random.default_rng(1)
    for rows, _ in matrices:
        rows[:] = random.random(rows.shape, np.float32)
    exchange.exchange_all_rows()
    total = 0.0
    for number in range(rounds):
        for rows, _ in matrices:
            rows[random.integers(0, len(rows), 5000)] += 0.01
        started = time.process_time()
        exchange.begin(number, Flags())
        exchange.finish()
        total += time.process_time() - started
    return total / rounds / (2 * sum(map(len, rows_of_round(0, 100_000))))


def speedup(
    ranks: int, gigabits: float, vocabulary: int, word_seconds: float, row_seconds: float, size: int, threads: int
) -> float:
    """Return how many times as fast as one rank this many ranks are.

    `word_seconds` and `row_seconds` are the times that a thread needs to train a word and to pack a row.
    """

    def sending(rows: int) -> float:
        """Return the seconds that a ring all-reduce of this many rows takes."""
        return 2 * (ranks - 1) * (LATENCY + 4 * (size + 1) * rows / ranks / (gigabits * 1e9 / 8))

    first, *others = (2 * len(each) for each in rows_of_round(0, vocabulary))
    words = words_per_round(WORDS // ranks, ranks)
    rounds = WORDS / ranks / (words * threads)
    sending_and_training = sending(first) + max(words * word_seconds, sending(sum(others)))
    round_seconds = sending_and_training + (first + sum(others)) * row_seconds / threads
    epoch = rounds * round_seconds + sending(2 * vocabulary) + 2 * vocabulary * row_seconds / threads
    return WORDS * word_seconds / threads / epoch


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=3, corpus=True)
    parser.add_argument("--vector-size", type=int, default=100)
    parser.add_argument("--threads", type=int, default=16, help="threads of each rank [%(default)s]")
    options = parser.parse_args()
    size, threads = options.vector_size, options.threads
    settings = replace(BASE, vector_size=size, workers=1)
    with prepared(options.corpus, options.share, settings) as text:
        word_seconds = min(
            training_seconds(settings, text.vocabulary, text.store, time.process_time) / text.store.tokens
            for _ in range(options.repeats)
        )
    row_seconds = min(packing_seconds(size) for _ in range(options.repeats))
    print(f"Measured, {describe_machine()}:")
    print(f"a thread trains {1 / word_seconds:,.0f} words a second, and packs a row in {1e6 * row_seconds:.2f} µs.\n")
    computed = {}
    lines = []
    for vocabulary, gigabits in itertools.product(VOCABULARIES, GIGABITS):
        speeds = [speedup(ranks, gigabits, vocabulary, word_seconds, row_seconds, size, threads) for ranks in RANKS]
        computed[f"{vocabulary} words, {gigabits} Gb/s"] = speeds
        message = 4 * (size + 1) * 2 * sum(map(len, rows_of_round(0, vocabulary)))
        sizes = [f"{vocabulary:,}", f"{message / 1e6:.1f}", f"{message / (MAX_ROUND_WORDS * threads):.0f}"]
        lines.append([*sizes, str(gigabits), *(f"{speed:.1f}" for speed in speeds)])
    header = ["words", "MB per round", "bytes per trained word", "Gb/s", *(f"{ranks} ranks" for ranks in RANKS)]
    print(f"Computed, ranks of {threads} threads, an epoch of a billion words:\n\n{markdown_table(header, lines)}")
    if options.json:
        results = {"seconds_a_word": word_seconds, "seconds_a_row": row_seconds, "computed": computed}
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
