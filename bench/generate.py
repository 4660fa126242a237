"""Generate a text of any size: its words follow Zipf's law and have topics to learn.

The frequency of the r-th word falls as 1 / (r + 2.7) (Zipf–Mandelbrot). Each line has 20 words and a topic, and every
second word, on average, belongs to this topic. The topic of the r-th word is r mod topics, so the nearest words of a
word should share its topic. Words are made of syllables; frequent words are shorter. The same seed gives the same text.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

SHIFT = 2.7
LINE_WORDS = 20
BLOCK_LINES = 20_000
TOPICS, SEED, THREADS = 100, 1, 2
MAX_SYLLABLES = 4
MAX_WORD = 2 * MAX_SYLLABLES + 1  # bytes, with the space after it
MAX_TYPES = 100**MAX_SYLLABLES
SYLLABLES = np.array(
    [[ord(consonant), ord(vowel)] for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou"], np.uint8
)


@numba.njit(nogil=True, error_model="numpy")
def write_lines(text: NDArray[np.uint8], syllables: NDArray[np.uint8], lines: int, types: int, seed: np.uint64) -> int:
    """Fill `text` with lines of words; return the number of bytes.

    A word's length and its topic are random, so a branch on them would be mispredicted half of the time. So all four
    syllables are written, and the next word begins right after the word's own last syllable.
    """
    spread = math.log((types + SHIFT) / SHIFT)
    last, topic_count, base = np.uint32(types - 1), np.uint32(TOPICS), np.uint32(100)
    random, topic, end = seed, np.uint32(0), 0
    for _ in range(lines):
        for position in range(LINE_WORDS):
            random += np.uint64(0x9E3779B97F4A7C15)  # SplitMix64
            bits = (random ^ (random >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            bits ^= bits >> np.uint64(31)
            if position == 0:
                topic = np.uint32(bits & np.uint64(0xFFFF)) % topic_count
            uniform = (bits >> np.uint64(17)) * 2.0**-47
            rank = np.uint32(SHIFT * (math.exp(uniform * spread) - 1))  # the inverse of ∫ dr / (r + SHIFT)
            in_topic = np.uint32(rank // topic_count * topic_count + topic)
            rank = min(last, in_topic if bits & np.uint64(0x10000) else rank)
            number = rank
            for syllable in range(MAX_SYLLABLES):
                text[end + 2 * syllable] = syllables[number % base, 0]
                text[end + 2 * syllable + 1] = syllables[number % base, 1]
                number = np.uint32(number // base - np.uint32(1))
            end += 2 * int(1 + (rank >= 100) + (rank >= 100 + 100**2) + (rank >= 100 + 100**2 + 100**3))
            text[end] = 32
            end += 1
        text[end - 1] = 10
    return end


def rank_of(word: str) -> int:
    """Return the rank of a generated word."""
    numbers = {bytes(syllable).decode(): number for number, syllable in enumerate(SYLLABLES)}
    rank = -1
    for start in range(len(word) - 2, -1, -2):
        rank = (rank + 1) * 100 + numbers[word[start : start + 2]]
    return rank


def blocks(tokens: int, types: int) -> Iterator[NDArray[np.uint8]]:
    """Yield the text in order. Each block has its own seed, so the text does not depend on the number of threads."""
    lines = math.ceil(tokens / LINE_WORDS)

    def block(number: int) -> NDArray[np.uint8]:
        text = np.empty(BLOCK_LINES * LINE_WORDS * MAX_WORD, np.uint8)
        seed = np.random.SeedSequence([SEED, number]).generate_state(1, np.uint64)[0]
        count = min(BLOCK_LINES, lines - number * BLOCK_LINES)
        return text[: write_lines(text, SYLLABLES, count, types, seed)]

    numbers = iter(range(math.ceil(lines / BLOCK_LINES)))
    with ThreadPoolExecutor(THREADS) as pool:
        pending: list[Future[Any]] = [pool.submit(block, number) for number in islice(numbers, 2 * THREADS)]
        while pending:
            yield pending.pop(0).result()
            pending += [pool.submit(block, number) for number in islice(numbers, 1)]


def generate(path: Path, tokens: int, types: int) -> float:
    """Write the text; return the megabytes written per second."""
    if not 1 <= types <= MAX_TYPES:
        raise SystemExit(f"--types {types}: must be from 1 to {MAX_TYPES}")
    next(blocks(1, types))  # compiled before the clock starts
    start, size = time.perf_counter(), 0
    with path.open("wb") as file:
        for block in blocks(tokens, types):
            size += file.write(block.data)
    return size / 1e6 / (time.perf_counter() - start)
