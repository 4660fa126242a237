"""Where do many threads stop scaling? Rows that travel between processors: counted, and what follows from the count.

    python bench/sharing.py TEXT [--sizes 300 100] [--share 0.25] [--threads 2 4 8 16 32 64] [--repeats 5] [--json FILE]

This machine may have few processors, so only two threads are timed; the rest is computed.

counted   Threads take windows in turn, each from its own part of the text, with negative sampling, and read and write
          the rows that training does (the copied rows of the most frequent words excepted). A row travels if another
          thread has written it since this thread did, and this thread used it so recently that one thread alone would
          have found it in its second-level cache: at most as many row accesses ago as that cache holds rows.
measured  The time of a window on one thread; on two threads with one pair of matrices; and in two processes, each with
          one thread and matrices of its own, which share the memory and the third-level cache but no rows.
computed  The difference of the last two, over the rows that travel in a window with two threads, is what one row costs.
          It is taken to be the same with more threads: they are on one socket, and memory's bandwidth is not reached.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numba
import numpy as np
from common import Spread, Text, alternate, arguments, finish, prepared, spread, training_seconds
from limit import count_windows
from numpy.typing import NDArray
from peers import BASE

from w2v.losses.registry import Settings

TOKENS = 4_000_000  # of the text, dealt out to the threads
SECOND_LEVEL = 2 << 20  # bytes, where the system does not say
COPIED = 16  # rows of the outputs: HOT_WORDS of _kernels.pyx


@numba.njit()
def travelling_rows(
    words: NDArray[np.int32],
    cumulated: NDArray[np.float64],
    threads: int,
    window: int,
    negative: int,
    recent: int,
    random: np.random.Generator,
) -> float:
    """The mean number of rows that travel in a window. Rows from len(cumulated) on are those of the outputs."""
    vocabulary, part = len(cumulated), len(words) // threads
    used = np.full((2 * vocabulary, threads), -recent - 1, np.int32)  # the number of a thread's access to a row
    written = np.full(2 * vocabulary, -1, np.int32)  # the thread that wrote a row last
    accesses = np.zeros(threads, np.int32)
    rows = np.empty(2 * window + 1 + negative, np.int64)
    travelled = windows = 0
    for place in range(window, part - window):
        for thread in range(threads):
            centre = thread * part + place
            count = 0
            reach = random.integers(1, window + 1)
            for other in range(centre - reach, centre + reach + 1):
                if other != centre:
                    rows[count] = words[other]
                    count += 1
            rows[count] = vocabulary + words[centre]
            for k in range(negative):
                rows[count + 1 + k] = vocabulary + np.searchsorted(cumulated, random.random())
            windows += 1
            for row in rows[: count + 1 + negative]:
                if vocabulary <= row < vocabulary + COPIED:
                    continue
                accesses[thread] += 1
                if written[row] != thread and accesses[thread] - used[row, thread] <= recent:
                    travelled += 1
                used[row, thread] = accesses[thread]
                written[row] = thread
    return travelled / windows


def subsampled(text: Text, settings: Settings) -> NDArray[np.int32]:
    words = text.store.remap(text.vocabulary.words)[text.store.ids[:TOKENS]]
    keep = text.vocabulary.keep_probabilities(settings.sample)
    chosen = (words >= 0) & (np.random.default_rng(1).random(len(words)) < keep[words])
    return words[chosen].astype(np.int32)


def second_level_cache() -> int:
    try:
        return os.sysconf("SC_LEVEL2_CACHE_SIZE") or SECOND_LEVEL
    except (OSError, ValueError):  # not told by this system
        return SECOND_LEVEL


texts: list[Text] = []  # the one that a process of `apart` trains


def alone(settings: Settings) -> float:
    """The seconds of one thread."""
    return training_seconds(replace(settings, workers=1), texts[0].vocabulary, texts[0].store)


def apart(settings: Settings, processes: ProcessPoolExecutor) -> float:
    """The seconds of two processes for the whole text, if each trains half of it."""
    return max(processes.map(alone, [settings, settings])) / 2


def main() -> None:
    parser = arguments(__doc__, 5, corpus=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 100])
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 4, 8, 16, 32, 64])
    options = parser.parse_args()
    tables: dict[str, dict[str, Spread]] = {
        "rows_that_travel_in_a_window": {},
        "nanoseconds": {},
        "times_one_thread": {},
    }
    counted, times, speedups = tables.values()
    with (
        prepared(options.corpus, options.share, BASE) as text,
        ProcessPoolExecutor(2, get_context("fork"), texts.append, (text,)) as processes,
    ):
        texts.append(text)
        words = subsampled(text, BASE)
        noise = np.cumsum(text.vocabulary.counts**BASE.ns_exponent)
        noise /= noise[-1]
        windows, _ = count_windows(text, BASE)
        for size in options.sizes:
            settings = replace(BASE, vector_size=size)
            recent = second_level_cache() // (4 * size)
            travel = {
                threads: travelling_rows(
                    words, noise, threads, BASE.window_size, BASE.negative, recent, np.random.default_rng(1)
                )
                for threads in sorted({2, *options.threads})
            }
            work = {
                "one thread": partial(alone, settings),
                "two threads": partial(training_seconds, settings, text.vocabulary, text.store),
                "two processes": partial(apart, settings, processes),
            }
            found = {
                name: np.array(taken) / windows * 1e9 * (1 if name == "one thread" else 2)
                for name, taken in alternate(work, options.repeats).items()
            }
            row = (found["two threads"] - found["two processes"]) / travel[2]
            times |= {f"size {size}: a window, {name}": spread(taken) for name, taken in found.items()}
            times[f"size {size}: a row that travels"] = spread(row)
            for threads, travelled in travel.items():
                counted[f"size {size}, {threads} threads"] = spread([travelled])
                window = found["two processes"] + np.maximum(row, 0) * travelled
                speedups[f"size {size}, {threads} threads"] = spread(threads * found["one thread"] / window)
    notes = f"Nanoseconds are measured, the rest is computed. Second-level cache: {second_level_cache():,} bytes."
    finish(options, "Rows that travel between processors", notes, **tables)


if __name__ == "__main__":
    main()
