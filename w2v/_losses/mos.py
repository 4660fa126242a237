"""A mixture of softmaxes, without the rank limit of a single one (Yang et al. 2018, arXiv:1711.03953)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from w2v._losses.full_softmax import FullSoftmax, SoftmaxOptions, check_size
from w2v._losses.loss import Array, Loss, Worker, log_softmax
from w2v._losses.rows import choose, score, shifted_exponentials, update
from w2v._losses.sampling import SampledSoftmax, SamplingOptions, sampling_data
from w2v._options import option
from w2v._settings import LOSS
from w2v._system import memory


@dataclass(frozen=True, kw_only=True)
class MixtureOptions(SamplingOptions, SoftmaxOptions):
    mixtures: int = option(4, "Number of softmaxes in the mixture.", LOSS, minimum=1, maximum=1 << 10, fixed=True)
    sampled_mixtures: bool = option(
        False,
        "Compute each softmax over sampled words (--sampled-mixtures), or over all words (--full-mixtures).",
        LOSS,
        flags=("--sampled-mixtures/--full-mixtures",),
    )


class MixtureOfSoftmaxes(Loss):
    """p(w | x) = Σ_k π_k softmax(Y tanh(W_k x))_w, with weights π = softmax(G x) of K components.

    Parameters: outputs Y (V, D), projections W (K D, D), gates G (K, D). Each softmax is over all words or, with
    sampled_mixtures, over the centre word and `negative` drawn words, as in sampled softmax.
    """

    name = "mos"
    help = "mixture of softmaxes"
    options_class = MixtureOptions
    options: MixtureOptions
    no_word_outputs = "output rows are compared with projections of the input rows, not with the input rows"

    def prepare(self) -> None:
        options, vector_size = self.options, self.settings.vector_size
        size = options.mixtures * vector_size
        self.data = {"identity": np.arange(size), "zeros": np.zeros(size, np.float32)}
        if options.sampled_mixtures:
            self.data |= sampling_data(self.vocabulary.counts, options)
            self.predrawn, self.max_rows = options.negative, options.negative + 1
            self.choose = SampledSoftmax.choose  # type: ignore[method-assign]
        else:
            check_size(self, "set sampled_mixtures")
            self.choose = FullSoftmax.choose  # type: ignore[method-assign]
        self.expected_rows = options.mixtures * (self.max_rows + vector_size)
        self.memory_rows = self.rows + options.mixtures * (vector_size + 1)

    def restore(self, tensors: Mapping[str, Array]) -> None:
        self.check_stored(tensors)  # before `prepare`, which allocates as much memory as the options require
        self.prepare()

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        size, mixtures = self.settings.vector_size, self.options.mixtures
        return {"outputs": (self.rows, size), "projections": (mixtures * size, size), "gates": (mixtures, size)}

    def parameters(self, random: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        size, mixtures = self.settings.vector_size, self.options.mixtures
        projections = memory.aligned_rows(mixtures * size, size)
        projections[:, :size] = random.normal(0, size**-0.5, (mixtures * size, size))
        projections[:, :size] += np.tile(np.eye(size, dtype=np.float32), (mixtures, 1))
        gates = memory.aligned_rows(mixtures, size)
        return super().parameters(random) | {"projections": projections, "gates": gates}

    def scratch(self, inputs: int) -> dict[str, Array]:
        size, mixtures = self.settings.vector_size, self.options.mixtures
        rows = {name: memory.aligned_rows(inputs * mixtures, size) for name in ("hidden", "hidden_change")}
        sizes = {"logits": self.max_rows, "projected": size, "gates": 1}
        return rows | {name: memory.aligned_rows(1, inputs * mixtures * each)[0] for name, each in sizes.items()}

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        matrices = {name: array.astype(rows.dtype) for name, array in parameters.items()}
        log_weights = log_softmax(rows @ matrices["gates"].T)
        projections = np.split(matrices["projections"], self.options.mixtures)
        components = (
            log_softmax(np.tanh(rows @ projection.T) @ matrices["outputs"].T) + log_weight[:, np.newaxis]
            for projection, log_weight in zip(projections, log_weights.T, strict=True)
        )
        return reduce(np.logaddexp, components)

    @staticmethod
    def step(s: Worker, centre: int, x: Array, change: Array, alpha: float) -> float:
        parameters, scratch = s.parameters, s.scratch
        n, m, mixtures = len(x), choose(s, centre, x), len(parameters.gates)
        size = len(parameters.projections) // mixtures
        hidden, hidden_change = scratch.hidden[: n * mixtures], scratch.hidden_change[: n * mixtures]
        projected = scratch.projected[: n * mixtures * size].reshape(n, mixtures * size)
        gates = scratch.gates[: n * mixtures].reshape(n, mixtures)
        logits = scratch.logits[: n * mixtures * m].reshape(n * mixtures, m)
        score(x, parameters.gates, s.data.identity, s.data.zeros, gates)
        score(x, parameters.projections, s.data.identity, s.data.zeros, projected)
        for row in range(n * mixtures):
            i, first = row // mixtures, row % mixtures * size
            for d in range(size):
                hidden[row, d] = math.tanh(projected[i, first + d])
        score(hidden, parameters.outputs, s.rows, s.offset, logits)
        loss = mixture_gradient(s, gates, logits, m, alpha)
        hidden_change[:] = 0
        update(hidden, hidden_change, parameters.outputs, s.rows, logits)
        for row in range(n * mixtures):  # `projected` now takes the changes of the projected rows.
            i, first = row // mixtures, row % mixtures * size
            for d in range(size):
                projected[i, first + d] = hidden_change[row, d] * (1 - hidden[row, d] * hidden[row, d])
        update(x, change, parameters.projections, s.data.identity, projected)
        update(x, change, parameters.gates, s.data.identity, gates)
        return loss


def mixture_gradient(s: Worker, gates: Array, logits: Array, m: int, alpha: float) -> float:
    """Replace gates (n, K) and logits (n K, m) by −alpha times the gradient of −Σ log p, and return −Σ log p."""
    n, mixtures = gates.shape
    loss, target_column = 0.0, 0
    for j in range(m):
        if s.target[j] > 0:
            target_column = j
    for i in range(n):
        normalise(gates[i])
        p = 0.0
        for k in range(mixtures):
            normalise(logits[i * mixtures + k])
            p += gates[i, k] * logits[i * mixtures + k, target_column]
        loss -= math.log(p)
        for k in range(mixtures):
            row = logits[i * mixtures + k]
            posterior = gates[i, k] * row[target_column] / p  # p(component | word)
            scale = gates.dtype.type(-alpha * posterior)
            for j in range(m):
                row[j] *= scale
            row[target_column] -= scale
            gates[i, k] = alpha * (posterior - gates[i, k])
    return loss


def normalise(row: Array) -> None:
    """Replace a row by its softmax."""
    _, total = shifted_exponentials(row, row)
    for j in range(len(row)):
        row[j] /= total
