"""The kernel's slow twin in NumPy: the same names in the same order, as the definition that tests hold it to.

`train` gives what Kernel gives with one worker, up to rounding; in float64 it is what gradients are checked on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from w2v.losses.loss import Loss
from w2v.plan import Plan
from w2v.settings import MAX_ADAPTIVE_BLOCKS, MAX_INPUTS_PER_STEP

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


def alias_of(table: Matrix, random: int) -> int:
    cell = random * len(table) >> 64
    chance = (random * len(table) & MASK) >> 32
    return int(table[cell, 1]) if chance > table[cell, 0] else cell


def choose_words(loss: Any, random: Random, counts: dict[int, int]) -> None:
    """Draws K words by the alias table beside those in `counts`, of which the first is the centre.

    Negative sampling draws again what it has; the other losses count it.
    """
    table = loss.data["alias_table"]
    for drawn in random.drawn:
        word, tries = alias_of(table, drawn), 0
        while word in counts and not loss.weighted:
            tries += 1
            word = alias_of(table, random.draw()) if tries < REDRAWS else (word + 1) % len(table)
        counts[word] = counts.get(word, 0) + 1
    random.drawn = [random.draw() for _ in random.drawn]


def drawn_words(loss: Any, random: Random, centre: int, blocks: int) -> tuple[list[int], Matrix, Matrix, Matrix]:
    """The centre and `blocks` times K words drawn: rows, targets, offsets, and how often each is drawn."""
    counts = {centre: 0}
    for _ in range(blocks):
        choose_words(loss, random, counts)
    rows, times = list(counts), np.array(list(counts.values()), np.float64)
    return rows, np.arange(len(rows)) == 0, loss.data["offsets"][rows].astype(np.float64), times


def choose_ns(loss: Any, random: Random, centre: int, blocks: int) -> Choice:
    rows, target, _, _ = drawn_words(loss, random, centre, blocks)
    return Choice.of(rows, target)


def choose_nce(loss: Any, random: Random, centre: int, blocks: int) -> Choice:
    rows, target, offset, times = drawn_words(loss, random, centre, blocks)
    return Choice.of(rows, target, offset, times + target)


def choose_sampled(loss: Any, random: Random, centre: int, blocks: int) -> Choice:
    rows, target, offset, times = drawn_words(loss, random, centre, blocks)
    offset += np.log(times.sum() / loss.negative) - np.log(times + target)
    return Choice.of(rows, target, offset, times + target, [slice(None)])


def choose_path(loss: Any, random: Random, centre: int, blocks: int) -> Choice:
    starts, nodes, codes = (loss.data[name] for name in ("starts", "nodes", "codes"))
    path = slice(starts[centre], starts[centre + 1])
    return Choice.of(nodes[path].tolist(), 1 - codes[path])


def choose_class(loss: Any, random: Random, centre: int, blocks: int) -> Choice:
    starts, own = loss.data["starts"], int(loss.data["class_of"][centre])
    words, classes = range(starts[own], starts[own + 1]), len(starts) - 1
    rows = [*range(starts[-1], starts[-1] + classes), *words]
    target = np.zeros(len(rows))
    target[[own, classes + centre - words[0]]] = 1
    return Choice.of(rows, target, softmaxes=[slice(classes), slice(classes, None)])


def choose_all(loss: Any, random: Random, centre: int, blocks: int) -> Choice:
    return Choice.of(list(range(loss.rows)), np.arange(loss.rows) == centre, softmaxes=[slice(None)])


CHOICES = {
    "ns": choose_ns,
    "nce": choose_nce,
    "sampled": choose_sampled,
    "hs": choose_path,
    "class": choose_class,
    "softmax": choose_all,
}


def effective(scores: Matrix, weight: Matrix) -> float:
    """The least effective number of samples, (Σr)² / Σr², of rows of scores less offsets; r is had `weight` times."""
    if scores.shape[1] < 2:
        return np.inf
    ratios = np.exp(scores[:, 1:] - scores.max(axis=1, keepdims=True))
    return float((ratios.sum(axis=1) ** 2 / (ratios**2 / weight[1:]).sum(axis=1)).min())


def adapted(blocks: int, effective: float, negative: int) -> int:
    """Times K words to draw for a window, from those of the window before and their effective number."""
    if effective < negative / 2:
        return min(2 * blocks, MAX_ADAPTIVE_BLOCKS)
    return max(blocks // 2, 1) if effective > negative else blocks


def choose(loss: Loss, random: Random, centre: int, blocks: int = 1) -> Choice:
    """The output rows that predict a centre word; of words that are drawn, `blocks` times K."""
    return CHOICES[loss.name](loss, random, centre, blocks)


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


def train(plan: Plan, inputs: Matrix, outputs: Matrix) -> list[float]:
    """Trains `inputs` and `outputs` in place, as Kernel does with the same arguments; returns its mean losses."""
    tokens = sum(plan.words[number] >= 0 for number in plan.ids.tolist())
    means = []
    for epoch in range(plan.epochs):
        kept, _ = collect(plan.ids, plan.words, plan.keep, key_of(plan.seed, epoch, SUBSAMPLING))
        negative = plan.loss.prefetched_draws
        random, current, blocks = Random(0, 0), -1, 1
        loss, predictions = 0.0, 0
        for index, (position, centre, known) in enumerate(kept):
            if position // plan.chunk != current:
                current = position // plan.chunk
                random, blocks = Random(hash_of(key_of(plan.seed, epoch, WINDOWS), current), negative), 1
            if centre < 0:
                continue
            progress = (epoch * tokens + known) / (plan.epochs * tokens)
            rate = max(plan.min_alpha, plan.alpha + (plan.min_alpha - plan.alpha) * progress)
            reach = plan.window - (random.draw() * plan.window >> 64) if plan.shrink_windows else plan.window
            left = right = index
            while index - left < reach and left > 0 and kept[left - 1][1] >= 0:
                left -= 1
            while right - index < reach and right + 1 < len(kept) and kept[right + 1][1] >= 0:
                right += 1
            context = [kept[k][1] for k in range(left, right + 1) if k != index]
            if not context:
                continue
            together = (
                len(context) if plan.cbow else 1 if plan.per_pair or plan.loss.sequential else MAX_INPUTS_PER_STEP
            )
            least = np.inf
            for first in range(0, len(context), together):
                group = context[first : first + together]
                rows = inputs[group].mean(axis=0, keepdims=True) if plan.cbow else inputs[group]
                choice = choose(plan.loss, random, centre, blocks)
                if getattr(plan.loss, "adaptive", False):
                    least = min(least, effective(rows @ outputs[choice.rows].T - choice.offset, choice.weight))
                change, outputs_change, moved = step(rows, outputs[choice.rows], choice, rate)
                np.add.at(inputs, group, change / (len(group) if plan.cbow and plan.corrected else 1))
                outputs[choice.rows] += outputs_change
                loss, predictions = loss + moved, predictions + len(rows)
            blocks = adapted(blocks, least, negative) if np.isfinite(least) else blocks
        means.append(loss / predictions if predictions else float("nan"))
    return means
