"""Functions to write a loss with: random numbers, drawing words, scores, links, updates.

All of them are plain Python that Numba can compile. Loss describes their common argument s. `step`, `choose` and `link`
are placeholders for the functions of a loss; see binding.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from w2v._losses.loss import Array, Integers, Worker

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ divided by the golden ratio: SplitMix64's increment
MULTIPLIER_1, MULTIPLIER_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
HALF, HALF_MASK = np.uint64(32), np.uint64(0xFFFFFFFF)  # half of the 64 bits
MAX_REDRAWS = 64  # After drawing this many words that are already in the rows, take the next word that is not.
SCORE_BLOCK = 64  # `logistic` pads scores to a multiple of this. A product of 64 factors up to 2 does not overflow.


# -- random numbers -------------------------------------------------------------------------


def scramble(x: Any) -> Any:
    """Return a 64-bit hash of 64 bits: the finaliser of SplitMix64 (Steele et al. 2014)."""
    x = (x ^ (x >> np.uint64(30))) * MULTIPLIER_1
    x = (x ^ (x >> np.uint64(27))) * MULTIPLIER_2
    return x ^ (x >> np.uint64(31))


def draw(random: Array) -> Any:
    """Return the next 64 random bits of a thread's generator, uint64."""
    random[0] += GOLDEN
    return scramble(random[0])


def below(bits: Any, size: int) -> Any:
    """Return a number from 0 to size − 1, uniform for random bits: the high half of bits × size, for size below 2³²."""
    low = ((bits & HALF_MASK) * np.uint64(size)) >> HALF
    return np.int64(((bits >> HALF) * np.uint64(size) + low) >> HALF)


def draw_from(table: Array, bits: Any) -> Any:
    """Return a word drawn from an alias table.

    The high half of bits × size is the entry, and the low half chooses between the word of the entry and its alias.
    """
    size = np.uint64(len(table))
    entry = below(bits, len(table))
    if ((bits * size) & np.uint64(0xFFFFFFFFFFFFFFFF)) >> HALF > table[entry, 0]:
        return np.int64(table[entry, 1])
    return entry


# -- one step of rows -----------------------------------------------------------------------


def step(s: Worker, centre: int, x: Array, change: Array, alpha: float) -> float:
    """Raise NotImplementedError: _losses/binding.py replaces this placeholder with the `step` of a loss."""
    raise NotImplementedError


def choose(s: Worker, centre: int, x: Array) -> int:
    """Raise NotImplementedError: _losses/binding.py replaces this placeholder with the `choose` of a loss."""
    raise NotImplementedError


def link(s: Worker, scores: Array) -> float:
    """Raise NotImplementedError: _losses/binding.py replaces this placeholder with the `link` of a loss."""
    raise NotImplementedError


def rows_step(s: Worker, centre: int, x: Array, change: Array, alpha: float) -> float:
    """Train one prediction: the `step` of every loss that has `choose` and `link`."""
    outputs = s.parameters.outputs
    n, m = len(x), choose(s, centre, x)
    scores = s.scores[: n * m].reshape(n, m)
    score(x, outputs, s.rows, s.offset, scores)
    loss = link(s, scores)
    for k in range(n * m):
        s.scores[k] *= alpha
    update(x, change, outputs, s.rows, scores)
    return loss


def score(x: Array, outputs: Array, rows: Array, offset: Array, scores: Array) -> None:
    """Compute scores ← X Yᵀ − offset, (n, m), for input rows X (n, D) and the first m `rows` Y of `outputs`."""
    m = scores.shape[1]
    scores[:] = x @ outputs[rows[:m]].T - offset[:m]


def update(x: Array, change: Array, outputs: Array, rows: Array, error: Array) -> None:
    """Compute change ← change + E Y and Y ← Y + Eᵀ X, both from the old Y, for the errors E (n, m); see `score`."""
    chosen = rows[: error.shape[1]]
    change += error @ outputs[chosen]
    outputs[chosen] += error.T @ x


def update_inputs(x: Array, change: Array, outputs: Array, rows: Array, error: Array) -> None:
    """Compute change ← change + E Y, in place of `update` if the outputs are frozen."""
    change += error @ outputs[rows[: error.shape[1]]]


def prefetch(outputs: Array, row: int) -> None:
    """Prefetch a row that is needed soon into the cache. In plain Python, do nothing."""


# -- links ----------------------------------------------------------------------------------


def exponentials(values: Array) -> None:
    """Compute values ← e^values for values ≤ 0."""
    if values.itemsize == 4:
        # e^value = 2^power · e^r with |r| ≤ ln 2 / 2, as in _kernel/step_body.h. The compiler can vectorise this loop.
        for k in range(len(values)):
            value = max(np.float32(values[k]), np.float32(-64))
            power = np.float32(math.floor(value * np.float32(1.44269504) + np.float32(0.5)))
            r = value - power * np.float32(0.693145752) - power * np.float32(1.42860677e-6)
            p = np.float32(0.0416666667) + r * (np.float32(8.33333333e-3) + r * np.float32(1.38888889e-3))
            p = np.float32(1) + r * (np.float32(1) + r * (np.float32(0.5) + r * (np.float32(0.166666667) + r * p)))
            values[k] = np.int32(np.float32(p).view(np.int32) + (np.int32(power) << 23)).view(np.float32)
    else:
        for k in range(len(values)):
            values[k] = math.exp(values[k])


def logistic(s: Worker, scores: Array) -> float:
    """Apply a logistic regression to each score: scores (n, m) ← target − weight · σ(scores). Return −Σ log p."""
    n, m = scores.shape
    padded = -(-n * m // SCORE_BLOCK) * SCORE_BLOCK
    values, u = s.scores[:padded], s.room[:padded]
    zero, one = scores.dtype.type(0), scores.dtype.type(1)
    for k in range(n * m, padded):
        values[k] = 100  # adds nothing to the loss, since 1 + e^-100 rounds to 1
    for k in range(padded):
        u[k] = -abs(values[k])
    exponentials(u)
    loss, linear = 0.0, zero
    for begin in range(0, padded, SCORE_BLOCK):
        product = one
        for k in range(begin, begin + SCORE_BLOCK):
            product *= one + u[k]
        loss += math.log(product)
    for j in range(m):
        target, weight = s.target[j], s.weight[j]
        for i in range(n):
            linear += weight * max(scores[i, j], zero) - target * scores[i, j]
            if weight != one:
                loss += (weight - one) * math.log1p(u[i * m + j])
    for k in range(padded):
        values[k] = (one if values[k] >= zero else u[k]) / (one + u[k])
    for i in range(n):
        for j in range(m):
            scores[i, j] = s.target[j] - s.weight[j] * scores[i, j]
    return loss + linear


def softmax(s: Worker, scores: Array) -> float:
    """Apply a softmax to each row: scores (n, m) ← target − softmax(scores). Return −Σ log p."""
    return softmax_of(scores, s.target, s.room, 0, scores.shape[1])


def softmax_of(scores: Array, target: Array, room: Array, begin: int, end: int) -> float:
    """Apply a softmax to the columns from `begin` to `end` of each row, as `softmax` does to all columns."""
    loss, shifted, targets = 0.0, room[: end - begin], target[begin:end]
    for i in range(len(scores)):
        row = scores[i, begin:end]
        highest, total = shifted_exponentials(row, shifted)
        target_score = row.dtype.type(0)
        for j in range(len(row)):
            target_score += targets[j] * row[j]
        loss += math.log(total) + highest - target_score
        scale = 1 / total
        for j in range(len(row)):
            row[j] = targets[j] - shifted[j] * scale
    return loss


def shifted_exponentials(scores: Array, out: Array) -> tuple[float, float]:
    """Compute out ← e^(scores − highest score), and return the highest score and the sum. `out` may be `scores`."""
    highest, total = scores[0], scores.dtype.type(0)
    for j in range(len(scores)):
        highest = max(highest, scores[j])
    for j in range(len(scores)):
        out[j] = scores[j] - highest
    exponentials(out)
    for j in range(len(scores)):
        total += out[j]
    return highest, total


# -- drawing words --------------------------------------------------------------------------


def draw_words(s: Worker, centre: int, batches: int, counted: bool) -> int:
    """Fill s.rows with the centre word and `batches` times K drawn words, and return the number of rows.

    The K random numbers in s.random were drawn in advance, so that the rows of their words can be prefetched. When a
    drawn word is already in the rows, its weight increases by 1 with `counted`; without it, another word is drawn.
    """
    size = len(s.data.alias_table)
    s.rows[0], s.target[0], s.weight[0] = centre, 1, 1
    m = 1
    for _ in range(batches):
        for k in range(1, len(s.random)):
            word, tries = draw_from(s.data.alias_table, s.random[k]), 0
            at = index_of(s.rows, word, m)
            while at < m and not counted:
                tries += 1
                word = draw_from(s.data.alias_table, draw(s.random)) if tries < MAX_REDRAWS else (word + 1) % size
                at = index_of(s.rows, word, m)
            if at < m:
                s.weight[at] += 1
            else:
                s.rows[m], s.target[m], s.weight[m] = word, 0, 1
                m += 1
        for k in range(1, len(s.random)):
            s.random[k] = draw(s.random)
    return m


def prefetch_draws(s: Worker) -> None:
    """Prefetch the rows of the words that will be drawn for the next prediction."""
    for k in range(1, len(s.random)):
        prefetch(s.parameters.outputs, draw_from(s.data.alias_table, s.random[k]))


def index_of(rows: Array, word: int, m: int) -> int:
    """Return the index of a word among the first m rows, or m if it is not there."""
    for j in range(m):
        if rows[j] == word:
            return j
    return m


def set_importance(s: Worker, m: int, batches: int) -> None:
    """Set the offsets of sampled softmax: the logarithm of a word's expected count in `batches` times K draws.

    The logarithm of the weight is subtracted, so that a word with weight k counts k times in the softmax.
    """
    for j in range(m):
        s.offset[j] = s.data.offsets[s.rows[j]] + math.log(batches) - math.log(s.weight[j])


def effective_samples(scores: Array, weight: Array, room: Array) -> float:
    """Return the smallest effective number of samples of any row of scores: (Σr)² / Σr² with importance ratios r.

    The first column is the centre word, which is not a sample. A row without samples does not count.
    """
    smallest = np.inf
    ratios = room[: scores.shape[1]]
    for i in range(len(scores)):
        shifted_exponentials(scores[i], ratios)
        total, squares = 0.0, 0.0
        for j in range(1, len(ratios)):
            total += ratios[j]
            squares += ratios[j] * ratios[j] / weight[j]
        if squares > 0:
            smallest = min(smallest, total * total / squares)
    return smallest


# -- not compiled ---------------------------------------------------------------------------


def grouped(keys: Integers) -> Iterator[tuple[int, Integers]]:
    """Yield each distinct key with its positions."""
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts)[1:], strict=True)
