"""The kernel's slow twin in NumPy: the same names in the same order, as the definition that tests hold it to.

`train` gives what Kernel gives with one worker, up to rounding; in float64 it is what gradients are checked on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from w2v.losses.layers import ADAPTIVE_BLOCKS, TOGETHER, ClassSoftmax, FullSoftmax, NegativeSampling, OutputLayer

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


class Choice(NamedTuple):
    """Output rows of a prediction. Scores less `offset` are logistic regressions, or `softmaxes` of columns."""

    rows: list[int]
    target: Matrix
    offset: Matrix
    weight: Matrix  # how often each counts as noise
    softmaxes: list[slice]

    @classmethod
    def of(cls, rows: list[int], target: Any, offset: Any = 0, weight: Any = 1, softmaxes: Any = ()) -> Choice:
        target, offset, weight = (np.broadcast_to(values, len(rows)) for values in (target, offset, weight))
        return cls(rows, target, offset, weight, list(softmaxes))


def loss_and_error(scores: Matrix, choice: Choice) -> tuple[float, Matrix]:
    """Σ −log p(target) of rows of scores (n, m), less their offsets, and minus its gradient by the scores."""
    if not choice.softmaxes:
        loss = choice.weight * np.logaddexp(0, scores) - choice.target * scores
        return float(loss.sum()), choice.target - choice.weight * np.exp(-np.logaddexp(0, -scores))
    loss, error = 0.0, np.empty_like(scores)
    for columns in choice.softmaxes:
        part, target = scores[:, columns], choice.target[columns]
        normaliser = np.logaddexp.reduce(part, axis=1)
        loss += float((normaliser - part @ target).sum())
        error[:, columns] = target - np.exp(part - normaliser[:, None])
    return loss, error


def step(inputs: Matrix, outputs: Matrix, choice: Choice, alpha: float) -> tuple[Matrix, Matrix, float]:
    """The changes of inputs (n, D) and outputs (m, D), and the loss."""
    loss, error = loss_and_error(inputs @ outputs.T - choice.offset, choice)
    return alpha * error @ outputs, alpha * error.T @ inputs, loss


def alias_of(layer: NegativeSampling, random: int) -> int:
    cell = random * layer.rows >> 64
    chance = (random * layer.rows & MASK) >> 32
    return int(layer.cells[cell, 1]) if chance > layer.cells[cell, 0] else cell


def choose_words(layer: NegativeSampling, random: Random, counts: dict[int, int]) -> None:
    """Draws K words by the alias table beside those in `counts`, of which the first is the centre.

    Negative sampling draws again what it has; the other losses count it.
    """
    for drawn in random.drawn:
        word, tries = alias_of(layer, drawn), 0
        while word in counts and layer.loss == "ns":
            tries += 1
            word = alias_of(layer, random.draw()) if tries < REDRAWS else (word + 1) % layer.rows
        counts[word] = counts.get(word, 0) + 1
    random.drawn = [random.draw() for _ in random.drawn]


def sampled(layer: NegativeSampling, counts: dict[int, int]) -> Choice:
    """The choice of the words in `counts`, the centre and those drawn, each so often."""
    rows, times = list(counts), np.array(list(counts.values()), np.float64)
    target = np.arange(len(rows)) == 0
    offset = layer.offsets[rows].astype(np.float64)
    if layer.loss == "ns":
        return Choice.of(rows, target)
    if layer.loss == "nce":
        return Choice.of(rows, target, offset, times + target)
    draws = times.sum() / layer.negative
    offset += np.log(draws) - np.log(times + target)
    return Choice.of(rows, target, offset, times + target, [slice(None)])


def effective(scores: Matrix, weight: Matrix) -> float:
    """The least effective number of samples, (Σr)² / Σr², of rows of scores less offsets; r is had `weight` times."""
    if scores.shape[1] < 2:
        return np.inf
    ratios = np.exp(scores[:, 1:] - scores.max(axis=1, keepdims=True))
    return float((ratios.sum(axis=1) ** 2 / (ratios**2 / weight[1:]).sum(axis=1)).min())


def adapted(blocks: int, effective: float, negative: int) -> int:
    """Times K words to draw for a window, from those of the window before and their effective number."""
    if effective < negative / 2:
        return min(2 * blocks, ADAPTIVE_BLOCKS)
    return max(blocks // 2, 1) if effective > negative else blocks


def choose(layer: OutputLayer, random: Random, centre: int, blocks: int) -> Choice:
    """The output rows that predict a centre word; of words that are drawn, `blocks` times K."""
    if isinstance(layer, NegativeSampling):
        counts = {centre: 0}
        for _ in range(blocks):
            choose_words(layer, random, counts)
        return sampled(layer, counts)
    if isinstance(layer, ClassSoftmax):
        own = int(layer.class_of[centre])
        words = range(layer.starts[own], layer.starts[own + 1])
        rows = [*range(layer.words, layer.rows), *words]
        target = np.zeros(len(rows))
        target[[own, layer.classes + centre - words[0]]] = 1
        return Choice.of(rows, target, softmaxes=[slice(layer.classes), slice(layer.classes, None)])
    if isinstance(layer, FullSoftmax):
        return Choice.of(list(range(layer.words)), np.arange(layer.words) == centre, softmaxes=[slice(None)])
    path = slice(layer.starts[centre], layer.starts[centre + 1])
    return Choice.of(layer.nodes[path].tolist(), 1 - layer.codes[path])


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
    chunk: int,
) -> list[float]:
    """Trains `inputs` and `outputs` in place, as Kernel does with the same arguments; returns its mean losses."""
    tokens = sum(words[number] >= 0 for number in ids.tolist())
    means = []
    for epoch in range(epochs):
        kept, _ = collect(ids, words, keep, key_of(seed, epoch, SUBSAMPLING))
        negative = layer.negative if isinstance(layer, NegativeSampling) else 0
        random, current, blocks = Random(0, 0), -1, 1
        loss, predictions = 0.0, 0
        for index, (position, centre, known) in enumerate(kept):
            if position // chunk != current:
                current = position // chunk
                random, blocks = Random(hash_of(key_of(seed, epoch, WINDOWS), current), negative), 1
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
            together = len(context) if cbow else 1 if per_pair or layer.loss == "hs" else TOGETHER
            least = np.inf
            for first in range(0, len(context), together):
                group = context[first : first + together]
                rows = inputs[group].mean(axis=0, keepdims=True) if cbow else inputs[group]
                choice = choose(layer, random, centre, blocks)
                if isinstance(layer, NegativeSampling) and layer.adaptive:
                    least = min(least, effective(rows @ outputs[choice.rows].T - choice.offset, choice.weight))
                change, outputs_change, moved = step(rows, outputs[choice.rows], choice, rate)
                np.add.at(inputs, group, change / (len(group) if cbow and corrected else 1))
                outputs[choice.rows] += outputs_change
                loss, predictions = loss + moved, predictions + len(rows)
            blocks = adapted(blocks, least, negative) if np.isfinite(least) else blocks
        means.append(loss / predictions if predictions else float("nan"))
    return means
