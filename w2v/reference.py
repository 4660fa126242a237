"""The kernel's slow twin in NumPy: the same names in the same order, as the definition that tests hold it to.

`train` gives what Kernel gives with one worker, up to rounding; in float64 it is what gradients are checked on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._kernels import CHUNK_IDS
from w2v.outputs import NegativeSampling, OutputLayer

Matrix = NDArray[Any]

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
SUBSAMPLING, WINDOWS = 1, 2
REDRAWS = 64


def scramble(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def key_of(seed: int, epoch: int, stream: int) -> int:
    return scramble(scramble(seed) + (epoch << 8) + stream & MASK)


def hash_of(key: int, number: int) -> int:
    return scramble(key + number * GOLDEN & MASK)


class Random:
    """A chunk's stream: numbers, of which those for the next negatives are drawn beforehand."""

    def __init__(self, state: int, ahead: int) -> None:
        self.state = state
        self.drawn = [self.draw() for _ in range(ahead)]

    def draw(self) -> int:
        self.state = self.state + GOLDEN & MASK
        return scramble(self.state)


def loss_and_error(scores: Matrix, target: Matrix) -> tuple[float, Matrix]:
    """Σ −log p(target) of logistic regressions, and minus its gradient by the scores."""
    loss = np.logaddexp(0, scores) - target * scores
    error = target - np.exp(-np.logaddexp(0, -scores))
    return float(loss.sum()), error


def step(inputs: Matrix, outputs: Matrix, target: Matrix, alpha: float) -> tuple[Matrix, Matrix, float]:
    """The changes of inputs (n, D) and outputs (m, D) for targets (m,), and the loss."""
    loss, error = loss_and_error(inputs @ outputs.T, target)
    return alpha * error @ outputs, alpha * error.T @ inputs, loss


def alias_of(layer: NegativeSampling, random: int) -> int:
    cell = random * layer.rows >> 64
    chance = (random * layer.rows & MASK) >> 32
    return int(layer.cells[cell, 1]) if chance > layer.cells[cell, 0] else cell


def choose_negatives(layer: NegativeSampling, random: Random, centre: int) -> list[int]:
    """The centre word and K others: drawn by the alias table, none twice, none the centre."""
    words = [centre]
    for drawn in random.drawn:
        word, tries = alias_of(layer, drawn), 0
        while word in words:
            tries += 1
            word = alias_of(layer, random.draw()) if tries < REDRAWS else (word + 1) % layer.rows
        words.append(word)
    random.drawn = [random.draw() for _ in random.drawn]
    return words


def choose(layer: OutputLayer, random: Random, centre: int) -> tuple[list[int], list[int]]:
    """Output rows and targets for one centre word."""
    if isinstance(layer, NegativeSampling):
        return choose_negatives(layer, random, centre), [1] + [0] * layer.negative
    path = slice(layer.starts[centre], layer.starts[centre + 1])
    return layer.nodes[path].tolist(), (1 - layer.codes[path]).tolist()


def collect(
    ids: NDArray[np.uint32], words: NDArray[np.int32], keep: NDArray[np.uint32], key: int
) -> tuple[list[tuple[int, int, int]], int]:
    """(position, word, known tokens so far) of what subsampling keeps, −1 for a sentence end; and all known."""
    kept, known = [], 0
    for position, number in enumerate(ids.tolist()):
        word = -1 if number == 0 else int(words[number])
        if number and word < 0:
            continue
        known += number != 0
        if number == 0 or hash_of(key, position) >> 32 <= keep[word]:
            kept.append((position, word, known))
    return kept, known


def train(
    *,
    ids: NDArray[np.uint32],
    words: NDArray[np.int32],
    keep: NDArray[np.uint32],
    inputs: Matrix,
    outputs: Matrix,
    layer: OutputLayer,
    cbow: bool,
    corrected: bool,
    window: int,
    shrink_windows: bool,
    per_pair: bool,
    alpha: float,
    min_alpha: float,
    epochs: int,
    seed: int,
) -> list[float]:
    """Trains `inputs` and `outputs` in place, as Kernel does with the same arguments; returns its mean losses."""
    tokens = sum(words[number] >= 0 for number in ids.tolist())
    means = []
    for epoch in range(epochs):
        kept, _ = collect(ids, words, keep, key_of(seed, epoch, SUBSAMPLING))
        negative = layer.negative if isinstance(layer, NegativeSampling) else 0
        random, chunk = Random(0, 0), -1
        loss, predictions = 0.0, 0
        for index, (position, centre, known) in enumerate(kept):
            if position // CHUNK_IDS != chunk:
                chunk = position // CHUNK_IDS
                random = Random(hash_of(key_of(seed, epoch, WINDOWS), chunk), negative)
            if centre < 0:
                continue
            progress = (epoch * tokens + known) / (epochs * tokens)
            rate = max(min_alpha, alpha + (min_alpha - alpha) * progress)
            reach = window - (random.draw() * window >> 64) if shrink_windows else window
            left = right = index
            while index - left < reach and left > 0 and kept[left - 1][1] >= 0:
                left -= 1
            while right - index < reach and right + 1 < len(kept) and kept[right + 1][1] >= 0:
                right += 1
            context = [kept[k][1] for k in range(left, right + 1) if k != index]
            if not context:
                continue
            if cbow:
                rows, target = choose(layer, random, centre)
                mean = inputs[context].mean(axis=0, keepdims=True)
                change, outputs_change, moved = step(mean, outputs[rows], np.array(target), rate)
                np.add.at(inputs, context, change / (len(context) if corrected else 1))
                outputs[rows] += outputs_change
                loss, predictions = loss + moved, predictions + 1
                continue
            by_turns = per_pair or not isinstance(layer, NegativeSampling)
            groups = [[word] for word in context] if by_turns else [context]
            for group, (rows, target) in [(group, choose(layer, random, centre)) for group in groups]:
                change, outputs_change, moved = step(inputs[group], outputs[rows], np.array(target), rate)
                np.add.at(inputs, group, change)
                outputs[rows] += outputs_change
                loss, predictions = loss + moved, predictions + len(group)
        means.append(loss / predictions if predictions else float("nan"))
    return means
