"""The parts of `choose`, `link` and `step`: random numbers, drawing words, scores, links, updates.

All functions are plain Python that Numba can compile; see Loss for their arguments. `step`, `choose` and `link` stand
for those of a loss; see binding.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from w2v.losses.loss import Array, Integers, Worker

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
HALF, HALF_MASK = np.uint64(32), np.uint64(0xFFFFFFFF)
REDRAWS = 64
WHOLE = 64  # scores handled together: whole vectors, and the product of 64 factors up to 2 does not overflow


# -- random numbers -------------------------------------------------------------------------


def scramble(x: Any) -> Any:
    """SplitMix64's finaliser (Steele et al. 2014): a hash of 64 bits to 64 bits."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


def draw(random: Array) -> Any:
    """The next 64 random bits of a worker's stream, uint64."""
    random[0] += GOLDEN
    return scramble(random[0])


def below(bits: Any, size: int) -> Any:
    """The high half of bits × size, for size below 2³²: uniform from 0 to size − 1 for random bits."""
    low = ((bits & HALF_MASK) * np.uint64(size)) >> HALF
    return np.int64(((bits >> HALF) * np.uint64(size) + low) >> HALF)


def alias_of(table: Array, bits: Any) -> Any:
    """A word drawn by an alias table: the high half of bits × size is the entry, the low half decides within it."""
    size = np.uint64(len(table))
    entry = below(bits, len(table))
    if ((bits * size) & np.uint64(0xFFFFFFFFFFFFFFFF)) >> HALF > table[entry, 0]:
        return np.int64(table[entry, 1])
    return entry


# -- one step of rows -----------------------------------------------------------------------


def step(s: Worker, centre: int, x: Array, change: Array, alpha: float) -> float:
    raise NotImplementedError


def choose(s: Worker, centre: int, x: Array) -> int:
    raise NotImplementedError


def link(s: Worker, scores: Array) -> float:
    raise NotImplementedError


def rows_step(s: Worker, centre: int, x: Array, change: Array, alpha: float) -> float:
    """The step of a loss that has `choose` and `link`."""
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
    """scores ← X Yᵀ − offset; x: (n, D), Y: the first m `rows` of outputs; scores: (n, m)."""
    m = scores.shape[1]
    scores[:] = x @ outputs[rows[:m]].T - offset[:m]


def update(x: Array, change: Array, outputs: Array, rows: Array, error: Array) -> None:
    """change ← change + E Y and Y ← Y + Eᵀ X, both from the old Y; error: (n, m)."""
    at = rows[: error.shape[1]]
    change += error @ outputs[at]
    outputs[at] += error.T @ x


def prefetch(outputs: Array, row: int) -> None:
    """Prefetch a row that is needed soon; does nothing in plain Python."""


# -- links ----------------------------------------------------------------------------------


def exponentials(values: Array) -> None:
    """values ← e^values, for values ≤ 0."""
    if values.itemsize == 4:
        # 2^k · e^r with |r| ≤ ln 2 / 2, as in kernel/step_body.h: a loop that the compiler can vectorise.
        for k in range(len(values)):
            value = max(np.float32(values[k]), np.float32(-64))
            whole = np.float32(math.floor(value * np.float32(1.44269504) + np.float32(0.5)))
            r = value - whole * np.float32(0.693145752) - whole * np.float32(1.42860677e-6)
            p = np.float32(0.0416666667) + r * (np.float32(8.33333333e-3) + r * np.float32(1.38888889e-3))
            p = np.float32(1) + r * (np.float32(1) + r * (np.float32(0.5) + r * (np.float32(0.166666667) + r * p)))
            values[k] = np.int32(np.float32(p).view(np.int32) + (np.int32(whole) << 23)).view(np.float32)
    else:
        for k in range(len(values)):
            values[k] = math.exp(values[k])


def logistic(s: Worker, scores: Array) -> float:
    """Logistic regressions: scores (n, m) ← target − weight · σ(scores); returns −Σ log p."""
    n, m = scores.shape
    whole = -(-n * m // WHOLE) * WHOLE
    values, u = s.scores[:whole], s.room[:whole]
    zero, one = scores.dtype.type(0), scores.dtype.type(1)
    for k in range(n * m, whole):
        values[k] = 100
    for k in range(whole):
        u[k] = -abs(values[k])
    exponentials(u)
    loss, linear = 0.0, zero
    for begin in range(0, whole, WHOLE):
        product = one
        for k in range(begin, begin + WHOLE):
            product *= one + u[k]
        loss += math.log(product)
    for j in range(m):
        target, weight = s.target[j], s.weight[j]
        for i in range(n):
            linear += weight * max(scores[i, j], zero) - target * scores[i, j]
            if weight != one:
                loss += (weight - one) * math.log1p(u[i * m + j])
    for k in range(whole):
        values[k] = (one if values[k] >= zero else u[k]) / (one + u[k])
    for i in range(n):
        for j in range(m):
            scores[i, j] = s.target[j] - s.weight[j] * scores[i, j]
    return loss + linear


def softmax(s: Worker, scores: Array) -> float:
    """scores (n, m) ← target − softmax(scores) of each row; returns −Σ log p."""
    return softmax_of(scores, s.target, s.room, 0, scores.shape[1])


def softmax_of(scores: Array, target: Array, room: Array, begin: int, end: int) -> float:
    """The softmax over the columns from `begin` to `end`."""
    loss, shares, wanted = 0.0, room[: end - begin], target[begin:end]
    for i in range(len(scores)):
        row = scores[i, begin:end]
        top, total = powers(row, shares)
        target_score = row.dtype.type(0)
        for j in range(len(row)):
            target_score += wanted[j] * row[j]
        loss += math.log(total) + top - target_score
        share = 1 / total
        for j in range(len(row)):
            row[j] = wanted[j] - shares[j] * share
    return loss


def powers(scores: Array, out: Array) -> tuple[float, float]:
    """out ← e^(scores − the highest); it may be the same array. Returns the highest score and the sum of the powers."""
    top, total = scores[0], scores.dtype.type(0)
    for j in range(len(scores)):
        top = max(top, scores[j])
    for j in range(len(scores)):
        out[j] = scores[j] - top
    exponentials(out)
    for j in range(len(scores)):
        total += out[j]
    return top, total


# -- drawing words --------------------------------------------------------------------------


def draw_words(s: Worker, centre: int, blocks: int, counted: bool) -> int:
    """Makes the centre word and `blocks` times K drawn words the first rows; returns the number of rows.

    The words are those of random numbers drawn in advance. One that is among the rows is drawn again or, if `counted`,
    its weight increases.
    """
    size = len(s.data.alias_table)
    s.rows[0], s.target[0], s.weight[0] = centre, 1, 1
    m = 1
    for _ in range(blocks):
        for k in range(1, len(s.random)):
            word, tries = alias_of(s.data.alias_table, s.random[k]), 0
            at = index_of(s.rows, word, m)
            while at < m and not counted:
                tries += 1
                word = alias_of(s.data.alias_table, draw(s.random)) if tries < REDRAWS else (word + 1) % size
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
    """Prefetch the rows of the words for the next prediction."""
    for k in range(1, len(s.random)):
        prefetch(s.parameters.outputs, alias_of(s.data.alias_table, s.random[k]))


def index_of(rows: Array, word: int, m: int) -> int:
    for j in range(m):
        if rows[j] == word:
            return j
    return m


def set_importance(s: Worker, m: int, blocks: int) -> None:
    """Offsets of sampled softmax: the logarithm of each word's expected count in `blocks` times K draws."""
    for j in range(m):
        s.offset[j] = s.data.offsets[s.rows[j]] + math.log(blocks) - math.log(s.weight[j])


def effective(scores: Array, weight: Array, room: Array) -> float:
    """The smallest effective number of samples, (Σr)² / Σr², of rows of scores; the first column is not a sample."""
    least = np.inf
    ratios = room[: scores.shape[1]]
    for i in range(len(scores)):
        powers(scores[i], ratios)
        total, squares = 0.0, 0.0
        for j in range(1, len(ratios)):
            total += ratios[j]
            squares += ratios[j] * ratios[j] / weight[j]
        least = min(least, total * total / squares)
    return least


# -- in Python ------------------------------------------------------------------------------


def grouped(keys: Integers) -> Iterator[tuple[int, Integers]]:
    """Each distinct key, and its positions."""
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts)[1:], strict=True)
