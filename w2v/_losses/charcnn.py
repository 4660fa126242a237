"""A convolution over the characters of a word computes its output vector.

Source: Jozefowicz et al. 2016, arXiv:1602.02410, section 3.2.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from w2v._losses.loss import Alpha, Array, Loss, Worker, log_softmax
from w2v._losses.rows import choose, draw_words, exponentials, score, set_importance, softmax, update
from w2v._losses.sampling import SamplingOptions, sampling_data
from w2v._system import memory
from w2v._text.words import Words

MAX_CHARACTERS = 254  # The most frequent characters have vectors of their own. All others share one vector.
OTHER, EDGE = 0, 1  # numbers of the shared character, and of the character added on either side of a word
SPAN = 3  # width of a filter, in characters
BYTES_AT_ONCE = 1 << 20  # numbering the characters of all words proceeds in pieces of this many bytes
SPANS_AT_ONCE = 1 << 14  # after training, the filters are applied to this many spans at once


class CharacterCNN(Loss):
    """A sampled softmax with y_w = P [tanh(max_p F c_p(w)), correction_w] as the output vector of word w.

    c_p(w) is the span of the word that begins with its p-th character: the vectors of SPAN characters, concatenated.
    An edge character is added on either side of the word. After training, the output vectors of all words are computed
    once.

    Parameters: characters (C, length), filters F (filters, SPAN · length), projection P (D, filters + correction),
    corrections (V, correction). `data` holds spelt, uint8, the numbers of the characters of all words, end to end, and
    starts, int64 (V + 1,), where each word begins in spelt.

    Attributes:
        length: The number of values of a character's vector.
        filters: The number of filters.
        correction: The number of values of a word's own correction.
    """

    name = "charcnn"
    help = "output vectors from characters"
    alpha = Alpha(0.025, 0.05)
    options_class = SamplingOptions
    options: SamplingOptions
    no_word_outputs = "output vectors are computed from characters, and are not stored as rows"
    rank_above_size = 1
    length = 16
    filters = 128
    correction = 16

    def prepare(self) -> None:
        vector_size, words = self.settings.vector_size, self.vocabulary.words
        counts = np.zeros(sys.maxunicode + 1, np.int64)
        lengths = np.empty(len(words), np.int64)
        for first, last in pieces(words.offsets, BYTES_AT_ONCE):
            characters, lengths[first:last] = spelling(words, first, last)
            distinct, occurrences = np.unique(characters, return_counts=True)
            counts[distinct] += occurrences
        by_frequency = np.argsort(-counts, kind="stable")[:MAX_CHARACTERS]
        by_frequency = by_frequency[counts[by_frequency] > 0]
        numbers = np.full(len(counts), OTHER, np.uint8)
        numbers[by_frequency] = np.arange(len(by_frequency)) + EDGE + 1
        starts = np.cumsum(np.append(0, lengths + 2))
        spelt = np.full(starts[-1], EDGE, np.uint8)
        for first, last in pieces(words.offsets, BYTES_AT_ONCE):
            characters, _ = spelling(words, first, last)
            begin = starts[first]
            inside = np.ones(starts[last] - begin, bool)
            inside[starts[first:last] - begin] = inside[starts[first + 1 : last + 1] - 1 - begin] = False
            spelt[begin : starts[last]][inside] = numbers[characters]
        self.predrawn, self.max_rows = self.options.negative, self.options.negative + 1
        self._characters = len(by_frequency) + EDGE + 1
        self._max_spans = int(np.diff(starts).max()) - (SPAN - 1)
        self.data = {"starts": starts, "spelt": spelt} | sampling_data(self.vocabulary.counts, self.options)
        max_size = max(self.max_rows, self.filters, memory.row_width(vector_size))
        self.data |= {"identity": np.arange(max_size), "zeros": np.zeros(max_size, np.float32)}
        spans = len(spelt) / len(words)
        # The work of a prediction, in units of rows. Each of its words needs the filters at each span and the
        # projection. They count three times: each is a matrix product, and its update computes two more products.
        self.expected_rows = (
            3 * self.max_rows * (spans * self.filters * SPAN * self.length / vector_size + self.filters)
        )
        self.memory_rows = self.filters + self.correction + len(words) * self.correction // vector_size

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        features = self.filters + self.correction
        return {
            "characters": (self._characters, self.length),
            "filters": (self.filters, SPAN * self.length),
            "projection": (self.settings.vector_size, features),
            "corrections": (len(self.vocabulary), self.correction),
        }

    def parameters(self, random: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        size, shapes = self.settings.vector_size, self.shapes
        shapes["projection"] = memory.row_width(size), self.filters + self.correction
        parameters = {name: memory.zeros(shape) for name, shape in shapes.items()}
        parameters["characters"][:] = random.normal(0, 1, shapes["characters"])
        parameters["filters"][:] = random.normal(0, shapes["filters"][1] ** -0.5, shapes["filters"])
        corrections = random.normal(0, self.correction**-0.5, (size, self.correction))
        parameters["projection"][:size, self.filters :] = corrections
        return parameters

    def stored(self, parameters: Mapping[str, Array]) -> dict[str, NDArray[np.float32]]:
        return dict(parameters) | {"projection": parameters["projection"][: self.settings.vector_size]}

    def scratch(self, inputs: int) -> dict[str, Array]:
        m, features, span = self.max_rows, self.filters + self.correction, SPAN * self.length
        return {
            "outputs": memory.aligned_rows(m, self.settings.vector_size),
            "outputs_change": memory.aligned_rows(m, self.settings.vector_size),
            "features": memory.zeros((m, features)),
            "errors": memory.zeros((m, features)),
            "best_spans": np.zeros((m, self.filters), np.int32),
            "rows": np.zeros(self.filters, np.int64),
            "spans": memory.zeros((self._max_spans, span)),
            "spans_change": memory.zeros((self._max_spans, span)),
            "values": memory.zeros((self._max_spans, self.filters)),
        }

    def outputs(self, parameters: Mapping[str, Array]) -> Array:
        """Return the output vectors of all words, (V, D)."""
        starts, projection = self.data["starts"], parameters["projection"]
        outputs = np.empty((len(starts) - 1, len(projection)), projection.dtype)
        for first, last in pieces(starts, SPANS_AT_ONCE):
            features = np.tanh(self._filter_maxima(parameters, first, last)), parameters["corrections"][first:last]
            outputs[first:last] = np.concatenate(features, axis=1) @ projection.T
        return outputs

    def _filter_maxima(self, parameters: Mapping[str, Array], first: int, last: int) -> Array:
        """Return the maximum of each filter over the spans of each word from `first` to `last`, (words, filters)."""
        characters, filters = parameters["characters"], parameters["filters"]
        starts = self.data["starts"][first : last + 1]
        begins_span = np.ones(starts[-1] - starts[0], bool)
        for back in range(1, SPAN):
            begins_span[starts[1:] - back - starts[0]] = False
        positions = starts[0] + np.flatnonzero(begins_span)
        words = np.repeat(np.arange(last - first), np.diff(starts))[begins_span]  # the word of each position
        maxima = np.full((last - first, len(filters)), -np.inf, filters.dtype)
        for begin in range(0, len(positions), SPANS_AT_ONCE):
            block = positions[begin : begin + SPANS_AT_ONCE, None] + np.arange(SPAN)
            values = characters[self.data["spelt"][block]].reshape(len(block), -1) @ filters.T
            rows, begins = np.unique(words[begin : begin + SPANS_AT_ONCE], return_index=True)
            maxima[rows] = np.maximum(maxima[rows], np.maximum.reduceat(values, begins))
        return maxima

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        if self._outputs is None or self._outputs[0] is not parameters["filters"]:
            self._outputs = parameters["filters"], self.outputs(parameters)
        return log_softmax(rows @ self._outputs[1].T.astype(rows.dtype))

    _outputs: tuple[Array, Array] | None = None  # the filters, and the output vectors computed with them

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        m = draw_words(s, centre, batches=1, counted=True)
        set_importance(s, m, 1)
        return m

    @staticmethod
    def step(s: Worker, centre: int, x: Array, change: Array, alpha: float) -> float:
        n, m = len(x), choose(s, centre, x)
        scratch, projection, identity = s.scratch, s.parameters.projection, s.data.identity
        outputs, outputs_change = scratch.outputs[:m], scratch.outputs_change[:m]
        features, errors = scratch.features[:m], scratch.errors[:m]
        for j in range(m):
            compute_features(s, s.rows[j], j)
        score(features, projection, identity, s.data.zeros, outputs)
        scores = s.scores[: n * m].reshape(n, m)
        score(x, outputs, identity, s.offset, scores)
        loss = softmax(s, scores)
        outputs_change[:] = 0
        errors[:] = 0
        for j in range(m):
            for i in range(n):
                error = alpha * scores[i, j]
                for d in range(x.shape[1]):
                    change[i, d] += error * outputs[j, d]
                    outputs_change[j, d] += error * x[i, d]
        update(features, errors, projection, identity, outputs_change)
        for j in range(m):
            update_word(s, s.rows[j], j)
        return loss


def pieces(offsets: NDArray[np.int64], size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of words with a total length of at most `size`; a longer word is a range by itself.

    Args:
        offsets: Word i is from offsets[i] to offsets[i + 1].
        size: The maximum length of a range, in the unit of the offsets.
    """
    first = 0
    while first < len(offsets) - 1:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + size, "right")) - 1)
        yield first, last
        first = last


def spelling(words: Words, first: int, last: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the code points of the words from `first` to `last`, concatenated, and their number in each word."""
    offsets = words.offsets[first : last + 1]
    blob = words.blob[offsets[0] : offsets[-1]]
    points = np.frombuffer(blob.tobytes().decode().encode("utf-32-le"), "<u4")
    return points, np.add.reduceat(blob & 0xC0 != 0x80, offsets[:-1] - offsets[0], dtype=np.int64)


def read_spans(s: Worker, word: int) -> int:
    """Copy the spans of a word into s.scratch.spans, and return their number."""
    first, characters, length = s.data.starts[word], s.parameters.characters, s.parameters.characters.shape[1]
    count = s.data.starts[word + 1] - first - (SPAN - 1)
    for p in range(count):
        for k in range(SPAN):
            for d in range(length):
                s.scratch.spans[p, k * length + d] = characters[s.data.spelt[first + p + k], d]
    return count


def compute_features(s: Worker, word: int, j: int) -> None:
    """Compute the features of a word, the j-th of this prediction."""
    filters, spans, corrections = s.parameters.filters, s.scratch.spans, s.parameters.corrections
    feature, best_span, size = s.scratch.features[j], s.scratch.best_spans[j], len(filters)
    count = read_spans(s, word)
    values = s.scratch.values[:count]
    score(spans[:count], filters, s.data.identity, s.data.zeros, values)
    for f in range(size):
        feature[f] = values[0, f]
        best_span[f] = 0
    for p in range(1, count):
        for f in range(size):
            best_span[f] = p if values[p, f] > feature[f] else best_span[f]
            feature[f] = max(feature[f], values[p, f])
    hyperbolic_tangents(feature[:size], values[0])
    for r in range(corrections.shape[1]):
        feature[size + r] = corrections[word, r]


def update_word(s: Worker, word: int, j: int) -> None:
    """Update all parameters behind the features of a word by s.scratch.errors[j]."""
    filters, corrections, characters = s.parameters.filters, s.parameters.corrections, s.parameters.characters
    feature, best_span, error = s.scratch.features[j], s.scratch.best_spans[j], s.scratch.errors[j]
    spans, spans_change, rows, errors = s.scratch.spans, s.scratch.spans_change, s.scratch.rows, s.scratch.values[0]
    first, size, length = s.data.starts[word], len(filters), characters.shape[1]
    count = read_spans(s, word)
    spans_change[:count] = 0
    for p in range(count):
        m = 0  # number of filters with their maximum at this span; only these filters are updated
        for f in range(size):
            rows[m] = f
            errors[m] = error[f] * (1 - feature[f] * feature[f])
            m += best_span[f] == p
        update(spans[p : p + 1], spans_change[p : p + 1], filters, rows, errors[:m].reshape(1, m))
        for k in range(SPAN):
            for d in range(length):
                characters[s.data.spelt[first + p + k], d] += spans_change[p, k * length + d]
    for r in range(corrections.shape[1]):
        corrections[word, r] += error[size + r]


def hyperbolic_tangents(values: Array, room: Array) -> None:
    """Compute values ← tanh(values), from exponentials of negative numbers, which cannot overflow."""
    for k in range(len(values)):
        room[k] = -2 * abs(values[k])
    exponentials(room)
    for k in range(len(values)):
        size = (1 - room[k]) / (1 + room[k])
        values[k] = size if values[k] > 0 else -size
