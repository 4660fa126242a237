"""The kernel in plain NumPy, with the same names in the same order; tests compare the kernels with it.

`train` gives the results of Kernel with one worker, or of a deterministic run, up to rounding. In float64, tests check
gradients with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from w2v._kernels import END_OF_SENTENCE
from w2v.kernel.plan import Plan
from w2v.losses.loss import Loss
from w2v.settings import MAX_ADAPTIVE_BLOCKS, MAX_INPUTS_PER_STEP
from w2v.text._text import SENTENCE_END_ID

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
    """A chunk's random numbers. Those for the next negatives are drawn in advance."""

    def __init__(self, state: int, negative: int) -> None:
        self.state = state
        self.predrawn = [self.draw() for _ in range(negative)]

    def draw(self) -> int:
        self.state = self.state + GOLDEN & MASK
        return scramble(self.state)


class Choice(NamedTuple):
    """The output rows of a prediction. The link is the logistic function, or a softmax over each of `softmaxes`."""

    rows: list[int]
    target: Matrix  # (m,)
    offset: Matrix  # (m,), subtracted from the scores
    weight: Matrix  # (m,), how often each row counts as noise
    softmaxes: list[slice]  # of columns

    @classmethod
    def of(cls, rows: list[int], target: Any, offset: Any = 0, weight: Any = 1, softmaxes: Any = ()) -> Choice:
        target, offset, weight = (np.broadcast_to(values, len(rows)) for values in (target, offset, weight))
        return cls(rows, target, offset, weight, list(softmaxes))


def loss_and_error(scores: Matrix, choice: Choice) -> tuple[float, Matrix]:
    """Σ −log p(target) for scores minus offsets (n, m), and its negative gradient with respect to them."""
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
    """The changes of the inputs (n, D) and the outputs (m, D), and the loss."""
    loss, error = loss_and_error(inputs @ outputs.T - choice.offset, choice)
    return alpha * error @ outputs, alpha * error.T @ inputs, loss


def alias_of(table: Matrix, random: int) -> int:
    entry = random * len(table) >> 64
    chance = (random * len(table) & MASK) >> 32
    return int(table[entry, 1]) if chance > table[entry, 0] else entry


def draw_words(loss: Any, random: Random, counts: dict[int, int]) -> None:
    """Draws K words by the alias table and adds them to `counts`, whose first word is the centre.

    A word drawn again is replaced by negative sampling, and counted by the other losses.
    """
    table = loss.data["alias_table"]
    for drawn in random.predrawn:
        word, tries = alias_of(table, drawn), 0
        while word in counts and not loss.weighted:
            tries += 1
            word = alias_of(table, random.draw()) if tries < REDRAWS else (word + 1) % len(table)
        counts[word] = counts.get(word, 0) + 1
    random.predrawn = [random.draw() for _ in random.predrawn]


def choose_drawn(loss: Any, random: Random, centre: int, blocks: int) -> Choice:
    """The centre and `blocks` times K drawn words."""
    counts = {centre: 0}
    for _ in range(blocks):
        draw_words(loss, random, counts)
    rows, times = list(counts), np.array(list(counts.values()), np.float64)
    target, offset = np.arange(len(rows)) == 0, loss.data["offsets"][rows].astype(np.float64)
    return Choice.of(rows, target, offset, times + target)


def choose_sampled(loss: Any, random: Random, centre: int, blocks: int) -> Choice:
    choice = choose_drawn(loss, random, centre, blocks)
    return choice._replace(offset=choice.offset + np.log(blocks) - np.log(choice.weight), softmaxes=[slice(None)])


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
    "ns": choose_drawn,
    "nce": choose_drawn,
    "sampled": choose_sampled,
    "hs": choose_path,
    "class": choose_class,
    "softmax": choose_all,
}


def effective(scores: Matrix, weight: Matrix) -> float:
    """The smallest effective number of samples, (Σr)² / Σr², of the rows of scores minus offsets.

    r are the importance ratios of the drawn words; `weight` is how often each was drawn.
    """
    if scores.shape[1] < 2:
        return np.inf
    ratios = np.exp(scores[:, 1:] - scores.max(axis=1, keepdims=True))
    return float((ratios.sum(axis=1) ** 2 / (ratios**2 / weight[1:]).sum(axis=1)).min())


def adapted(blocks: int, effective: float, negative: int) -> int:
    """The number of blocks of K words to draw for a window, from that and the effective number of the window before."""
    if effective < negative / 2:
        return min(2 * blocks, MAX_ADAPTIVE_BLOCKS)
    return max(blocks // 2, 1) if effective > negative else blocks


def choose(loss: Loss, random: Random, centre: int, blocks: int = 1) -> Choice:
    """The output rows that predict a centre word. Losses that draw words draw `blocks` times K."""
    return CHOICES[loss.branch](loss, random, centre, blocks)


def collect(
    ids: NDArray[np.uint32], words: NDArray[np.int32], keep: NDArray[np.uint32], key: int
) -> tuple[list[tuple[int, int, int]], int]:
    """(position, word or END_OF_SENTENCE, known tokens up to it) of all kept tokens; and the number of known ones."""
    kept, known = [], 0
    for position, number in enumerate(ids.tolist()):
        ends = number == SENTENCE_END_ID
        word = END_OF_SENTENCE if ends else int(words[number])
        if word < 0 and not ends:
            continue
        known += not ends
        if ends or hash_of(key, position) >> 32 <= keep[word]:
            kept.append((position, word, known))
    return kept, known


def compose(plan: Plan, inputs: Matrix) -> Matrix:
    """The input rows of the words, (V, D): the rows themselves, or the means of those of their subwords."""
    if plan.subwords is None:
        return inputs
    sums = np.add.reduceat(inputs[plan.subwords.rows], plan.subwords.starts[:-1])
    means: Matrix = sums / plan.subwords.sizes[:, np.newaxis]
    return means


def spread(plan: Plan, inputs: Matrix, change: Matrix) -> None:
    """Gives the changes of composed rows, (V, D), to the subwords."""
    if plan.subwords is not None and plan.shares is not None:
        changes = np.repeat(change, np.diff(plan.subwords.starts), axis=0)
        np.add.at(inputs, plan.subwords.rows, plan.shares[:, np.newaxis] * changes)


class Rounds:
    """Rounds of chunks: each chunk is trained on the matrices as they were before its round, and the changes add up."""

    def __init__(self, *matrices: Matrix) -> None:
        self.matrices = matrices
        self.before = [matrix.copy() for matrix in matrices]
        self.after = [matrix.copy() for matrix in matrices]
        self.number: Any = None

    def begin_chunk(self, number: Any) -> None:
        """Ends the chunk before, if any, and begins one of round `number`."""
        for matrix, before, after in zip(self.matrices, self.before, self.after, strict=True):
            after += matrix - before
            if number != self.number:
                before[:] = after
            matrix[:] = before
        self.number = number


def train(plan: Plan, inputs: Matrix, outputs: Matrix) -> list[float]:
    """Trains `inputs` and `outputs` in place, as Kernel does with the same arguments; returns its mean losses."""
    tokens = sum(plan.words[number] >= 0 for number in plan.ids.tolist())
    means = []
    composed = before = compose(plan, inputs)  # at the beginning of a chunk
    rounds, chunks_of_round = Rounds(inputs, outputs), plan.workers if plan.deterministic else 1
    for epoch in range(plan.epochs):
        kept, _ = collect(plan.ids, plan.words, plan.keep, key_of(plan.seed, epoch, SUBSAMPLING))
        negative = plan.loss.predrawn
        random, current, blocks = Random(0, 0), -1, 1
        loss, predictions = 0.0, 0
        for index, (position, centre, known) in enumerate(kept):
            if position // plan.chunk != current:
                current = position // plan.chunk
                spread(plan, inputs, composed - before)
                rounds.begin_chunk((epoch, current // chunks_of_round))
                composed = compose(plan, inputs)
                before = composed.copy()
                random, blocks = Random(hash_of(key_of(plan.seed, epoch, WINDOWS), current), negative), 1
            if centre == END_OF_SENTENCE:
                continue
            progress = (epoch * tokens + known) / (plan.epochs * tokens)
            rate = max(plan.min_alpha, plan.alpha + (plan.min_alpha - plan.alpha) * progress)
            reach = plan.window - (random.draw() * plan.window >> 64) if plan.shrink_windows else plan.window
            left = right = index
            before_centre, after_centre = plan.reaches[:, reach]
            while index - left < before_centre and left > 0 and kept[left - 1][1] != END_OF_SENTENCE:
                left -= 1
            while right - index < after_centre and right + 1 < len(kept) and kept[right + 1][1] != END_OF_SENTENCE:
                right += 1
            context = [kept[k][1] for k in range(left, right + 1) if k != index]
            if not context:
                continue
            inputs_per_step = (
                len(context) if plan.cbow else 1 if plan.per_pair or plan.loss.sequential else MAX_INPUTS_PER_STEP
            )
            least = np.inf
            for first in range(0, len(context), inputs_per_step):
                group = context[first : first + inputs_per_step]
                rows = composed[group].mean(axis=0, keepdims=True) if plan.cbow else composed[group]
                choice = choose(plan.loss, random, centre, blocks)
                if getattr(plan.loss, "adaptive", False):
                    least = min(least, effective(rows @ outputs[choice.rows].T - choice.offset, choice.weight))
                change, outputs_change, moved = step(rows, outputs[choice.rows], choice, rate)
                np.add.at(composed, group, change / (len(group) if plan.cbow and plan.corrected else 1))
                outputs[choice.rows] += outputs_change
                loss, predictions = loss + moved, predictions + len(rows)
            blocks = adapted(blocks, least, negative) if np.isfinite(least) else blocks
        means.append(loss / predictions if predictions else float("nan"))
    spread(plan, inputs, composed - before)
    rounds.begin_chunk(None)
    return means
