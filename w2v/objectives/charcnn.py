"""Output vectors made from the characters of words (Jozefowicz et al. 2016, arXiv:1602.02410, section 3.2)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from w2v import memory
from w2v.objectives.base import Array, Objective, Worker, log_softmax
from w2v.objectives.rows import draw_words, score, set_importance, softmax, start_words
from w2v.outputs import NegativeSampling
from w2v.settings import LossName

CHARACTERS = 254  # different ones at most; the rarer are one
OTHER, EDGE = 0, 1
SPAN = 3  # characters that a filter sees


class CharacterCNN(Objective):
    """A sampled softmax with y_w = tanh(max_p F c_p(w)) P + correction_w M as the output vector of word w.

    c_p are the values of SPAN characters of the word, from its p-th on, with an edge before and after it. Parameters:
    characters (C, length), filters F (filters, SPAN · length), projection P (filters, D), corrections (V, correction)
    and their mixing M (correction, D). Where training has ended the vectors are computed once for all words.
    """

    loss: LossName = "charcnn"
    length = 16  # values of a character
    filters = 128
    correction = 16  # values that a word has of its own

    def prepare(self) -> None:
        settings, words = self.settings, self.vocabulary.words
        counts = Counter(character for word in words for character in word)
        ordered = sorted(counts, key=lambda character: (-counts[character], character))[:CHARACTERS]
        numbers = {character: number for number, character in enumerate(ordered, EDGE + 1)}
        spelt = [[EDGE, *(numbers.get(character, OTHER) for character in word), EDGE] for word in words]
        spelt = [[*word, EDGE] if len(word) < SPAN else word for word in spelt]
        starts = np.cumsum([0, *map(len, spelt)])
        layer = NegativeSampling.build(self.vocabulary.counts, settings.negative, settings.ns_exponent, "sampled")
        self.ahead, self._characters = settings.negative, len(ordered) + EDGE + 1
        self.data = {"cells": layer.cells, "offsets": layer.offsets, "starts": starts}
        self.data |= {"spelt": np.concatenate(spelt).astype(np.int64), "identity": np.arange(layer.most_rows)}
        self._longest = int(np.diff(starts).max())

    @property
    def most_rows(self) -> int:
        return self.settings.negative + 1

    @property
    def mean_rows(self) -> float:
        spans = len(self.data["spelt"]) / len(self.vocabulary)
        return (
            3 * self.most_rows * (spans * self.filters * SPAN * self.length / self.settings.vector_size + self.filters)
        )

    @property
    def rows(self) -> int:
        return self.filters + self.correction + len(self.vocabulary) * self.correction // self.settings.vector_size

    def parameters(self, random: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        def normal(rows: int, columns: int, scale: float) -> NDArray[np.float32]:
            return random.normal(0, scale, (rows, columns)).astype(np.float32)

        size, span = self.settings.vector_size, SPAN * self.length
        mixing = memory.aligned_rows(self.correction, size)
        mixing[:, :size] = normal(self.correction, size, self.correction**-0.5)
        return {
            "characters": normal(self._characters, self.length, 1),
            "filters": normal(self.filters, span, span**-0.5),
            "projection": memory.aligned_rows(self.filters, size),
            "corrections": np.zeros((len(self.vocabulary), self.correction), np.float32),
            "mixing": mixing,
        }

    def stored(self, parameters: Mapping[str, Array]) -> dict[str, NDArray[np.float32]]:
        padded, size = ("projection", "mixing"), self.settings.vector_size
        return {name: array[:, :size] if name in padded else array for name, array in parameters.items()}

    def scratch(self, inputs: int) -> dict[str, Array]:
        m, size = self.most_rows, self.settings.vector_size
        return {
            "outputs": memory.aligned_rows(m, size),
            "moved": memory.aligned_rows(m, size),
            "features": np.zeros((m, self.filters), np.float32),
            "places": np.zeros((m, self.filters), np.int64),
            "spans": np.zeros((self._longest, SPAN * self.length), np.float32),
        }

    def outputs(self, parameters: Mapping[str, Array]) -> Array:
        """The output vectors of all words, (V, D)."""
        starts, spelt = self.data["starts"], self.data["spelt"]
        last = np.zeros(len(spelt), bool)  # places where no span begins
        for back in range(1, SPAN):
            last[starts[1:] - back] = True
        places = np.flatnonzero(~last)
        firsts = np.searchsorted(places, starts[:-1])
        learnt, best = parameters, np.empty((len(starts) - 1, self.filters), parameters["filters"].dtype)
        spans = learnt["characters"][spelt[places[:, None] + np.arange(SPAN)]].reshape(len(places), -1)
        for f in range(self.filters):
            best[:, f] = np.maximum.reduceat(spans @ learnt["filters"][f], firsts)
        return np.tanh(best) @ learnt["projection"] + learnt["corrections"] @ learnt["mixing"]

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        if self._computed is None or self._computed[0] is not parameters["filters"]:
            self._computed = parameters["filters"], self.outputs(parameters)
        return log_softmax(rows @ self._computed[1].T.astype(rows.dtype))

    _computed: tuple[Array, Array] | None = None

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        start_words(s, centre)
        m = draw_words(s, centre, 1, True)
        set_importance(s, m, 1)
        return m

    @staticmethod
    def step(s: Worker, centre: int, x: Array, change: Array, alpha: float) -> float:
        n, m = len(x), choose(s, centre, x)
        outputs, moved = s.scratch.outputs[:m], s.scratch.moved[:m]
        for j in range(m):
            read_word(s, s.rows[j], j)
        scores = s.scores[: n * m].reshape(n, m)
        score(x, outputs, s.data.identity, s.offset, scores)
        loss = softmax(s, scores)
        moved[:] = 0
        for j in range(m):
            for i in range(n):
                error = alpha * scores[i, j]
                for d in range(x.shape[1]):
                    change[i, d] += error * outputs[j, d]
                    moved[j, d] += error * x[i, d]
        for j in range(m):
            move_word(s, s.rows[j], j)
        return loss


def choose(s: Worker, centre: int, x: Array) -> int:
    raise NotImplementedError


def read_spans(s: Worker, word: int) -> int:
    """Lays out the spans of a word; returns how many."""
    first = s.data.starts[word]
    count, length = s.data.starts[word + 1] - first - (SPAN - 1), s.parameters.characters.shape[1]
    for p in range(count):
        for d in range(SPAN * length):
            s.scratch.spans[p, d] = s.parameters.characters[s.data.spelt[first + p + d // length], d % length]
    return count


def read_word(s: Worker, word: int, j: int) -> None:
    """Computes the output vector of a word, number j of those of the prediction."""
    learnt, spans, outputs = s.parameters, s.scratch.spans, s.scratch.outputs
    outputs[j] = 0
    count = read_spans(s, word)
    for f in range(len(learnt.filters)):
        best, place = -np.inf, 0
        for p in range(count):
            value = spans.dtype.type(0)
            for d in range(spans.shape[1]):
                value += learnt.filters[f, d] * spans[p, d]
            if value > best:
                best, place = value, p
        feature = spans.dtype.type(math.tanh(best))
        s.scratch.features[j, f], s.scratch.places[j, f] = feature, place
        for d in range(outputs.shape[1]):
            outputs[j, d] += feature * learnt.projection[f, d]
    for r in range(len(learnt.mixing)):
        value = learnt.corrections[word, r]
        for d in range(outputs.shape[1]):
            outputs[j, d] += value * learnt.mixing[r, d]


def move_word(s: Worker, word: int, j: int) -> None:
    """Moves what the output vector of a word is made of, by s.scratch.moved[j]."""
    learnt, moved, spans = s.parameters, s.scratch.moved, s.scratch.spans
    first, length = s.data.starts[word], learnt.characters.shape[1]
    read_spans(s, word)
    for r in range(len(learnt.mixing)):
        value, total = learnt.corrections[word, r], spans.dtype.type(0)
        for d in range(moved.shape[1]):
            total += moved[j, d] * learnt.mixing[r, d]
            learnt.mixing[r, d] += value * moved[j, d]
        learnt.corrections[word, r] += total
    for f in range(len(learnt.filters)):
        feature, place, total = s.scratch.features[j, f], s.scratch.places[j, f], spans.dtype.type(0)
        for d in range(moved.shape[1]):
            total += moved[j, d] * learnt.projection[f, d]
            learnt.projection[f, d] += feature * moved[j, d]
        total *= 1 - feature * feature
        for d in range(spans.shape[1]):
            character = s.data.spelt[first + place + d // length]
            learnt.characters[character, d % length] += total * learnt.filters[f, d]
            learnt.filters[f, d] += total * spans[place, d]
