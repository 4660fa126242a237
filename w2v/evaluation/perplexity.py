"""Perplexity: how well a model predicts the words of a text that it was not trained on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.display import Result
from w2v.errors import W2VError, counted
from w2v.evaluation.models import TrainedModel, load_if_path
from w2v.losses.loss import Array, Integers
from w2v.options import options_of, refuse_unknown
from w2v.progress import Meter, Report
from w2v.system import memory
from w2v.system.files import PathLike, temporary_folder
from w2v.system.threads import processors
from w2v.text._text import SENTENCE_END_ID
from w2v.text.corpus import Corpus, Source
from w2v.text.idstore import IdStore, ReadingOptions, read_corpus, release, temporary_array

MAX_SCORES = 1 << 23  # computed at a time: 32 MB in float32
ARRAYS_AT_ONCE = 4  # of scores
WORDS_AT_ONCE = 1 << 20  # of the text, processed at a time


@dataclass(frozen=True)
class Perplexity(Result):
    """How well a model predicts a text.

    Attributes:
        perplexity: the one to report: 2 to the power of `cross_entropy_bits`, the mean of −log2 p of a prediction: in
            skip-gram of a word given each of its context words, in CBOW of a word given their mean. The subsampling of
            the training is undone: p is that of the model divided by keep(w), normalised.
        unigram_perplexity: the same if the probability of each word is its share of the training text in all contexts.
        perplexity_as_trained: the same with the model's own p, which underestimates frequent words; it equals
            `perplexity` for a model trained with sample=0.
        tokens: words predicted: those of the vocabulary with another in their window.
        predictions: pairs of words in skip-gram; `tokens` in CBOW.
        skipped: words that are not in the vocabulary. They are removed before windows are formed, as in training.
            Perplexities are comparable only between models of the same vocabulary: with fewer words, the task is
            easier.
    """

    perplexity: float
    cross_entropy_bits: float
    unigram_perplexity: float
    perplexity_as_trained: float
    tokens: int
    predictions: int
    skipped: int


def perplexity(
    model: TrainedModel | PathLike,
    corpus: Source,
    *,
    progress: Report | None = None,
    **reading: Any,
) -> Perplexity:
    """Predict each word of a text from the whole window, neither shrunk nor subsampled; see Model.log_probabilities_of.

    If the loss is normalised over the vocabulary, this takes time proportional to V·D for each distinct word of the
    text in skip-gram, and for each word of the text in CBOW: about 3 ms with 70,000 words. The memory does not
    depend on the length of the text, whose words are stored in temporary files: 12 bytes each on disk in CBOW, 20 in
    skip-gram.

    Args:
        progress: called as in training, with the phases "read" and "predict".
        reading: the arguments of `train` for reading a text; by default those that the model was trained with.

    Raises W2VError for a text that cannot be read or has no two words of the vocabulary in one window, for a model
    whose scores are beyond float32, and if there is too little memory or space on disk.
    """
    model = load_if_path(model)
    refuse_unknown(reading, options_of(ReadingOptions), {})
    options = ReadingOptions(**asdict(model.text) | reading)
    model = model.widened()  # once, not for every block
    check_memory(model)
    with read_corpus(Corpus(corpus), options, workers=processors(), progress=progress) as store:
        text = Text(store, model, temporary_folder(options.cache))
        skipped = store.tokens - len(text)
    skipgram = model.settings.model == "skipgram"
    shares = np.log(model.vocabulary.counts / model.vocabulary.tokens)
    keep = model.vocabulary.keep_probabilities(model.settings.sample, model.settings.sample_formula)
    tokens = count = 0
    totals = np.zeros(3)  # of the model with subsampling undone, of the shares, and of the model as trained
    max_rows = max(1, MAX_SCORES // max(model.loss.scores_per_row, model.inputs.shape[1], np.count_nonzero(keep < 1)))
    meter = Meter(progress, "predict")
    with np.errstate(over="ignore", invalid="ignore"):
        for done, contexts, rows, numbers, words in (_from_words if skipgram else _from_means)(model, text, max_rows):
            corrected, as_trained = _log_probabilities(model, rows, numbers, words, keep)
            totals -= [part.sum(dtype=np.float64) for part in (corrected, shares[words], as_trained)]
            tokens += int(np.count_nonzero(contexts))
            count += len(words)
            text.release()
            meter(done, len(text))
    if not count:
        raise W2VError(
            "nothing to predict: no word of the vocabulary has another in its window; "
            f"not in the vocabulary: {counted(skipped, 'word')} of the text"
        )
    if not np.isfinite(totals).all():
        raise W2VError("the model's predictions are not numbers: its training has diverged")
    bits, unigram, trained = (totals / math.log(2) / count).tolist()
    return Perplexity(_power(bits), bits, _power(unigram), _power(trained), tokens, count, skipped)


def _log_probabilities(
    model: TrainedModel, rows: Array, numbers: Integers, words: Integers, keep: NDArray[np.float32]
) -> tuple[Array, Array]:
    """log p(words[k] | rows[numbers[k]]), natural, with subsampling undone, and as the model was trained: both (N,).

    Arguments are those of Model.log_probabilities_of, and `keep` (V,), the share of each word that subsampling kept.
    Undone, p is p(w | c) / keep(w), divided by its sum over the vocabulary. That is 1 + Σ p(u | c) (1 / keep(u) − 1),
    which only needs the words u with keep(u) < 1, the frequent ones. So hierarchical and class-based softmax need not
    compute the probabilities of all words.
    """
    dropped = np.flatnonzero(keep < 1)  # (U,)
    parameters = {"outputs": model.outputs} | model.parameters
    plain, others = model.loss.log_probabilities_of(parameters, rows, numbers, words, dropped)
    more = np.log1p(np.exp(others) @ (1 / keep[dropped] - 1).astype(rows.dtype))
    return plain - np.log(keep[words]).astype(rows.dtype) - more[numbers], plain


def check_memory(model: TrainedModel) -> None:
    """Raise W2VError if there is not enough memory to predict with this model."""
    row = max(model.loss.scores_per_row, model.inputs.shape[1])
    memory.check(ARRAYS_AT_ONCE * 4 * max(MAX_SCORES, row), "perplexity", "end other programs or use a smaller model")


class Text:
    """The T words of a text that are in the vocabulary, in the order of the text, in temporary files.

    words      int32 (T,)
    sentences  int64 (T,): the number of each word's sentence
    counts     int64 (V,): how often each word of the vocabulary occurs

    Raises W2VError if the disk has too little space.
    """

    def __init__(self, store: IdStore, model: TrainedModel, folder: Path) -> None:
        remap = store.remap(model.vocabulary.words)
        known = remap >= 0
        size = int(store.counts[known].sum())
        self.sides = model.settings.window_sides
        self.counts = np.zeros(len(model.vocabulary), np.int64)
        self.counts[remap[known]] = store.counts[known]
        self.folder = folder
        self.words, self.sentences = (temporary_array(size, dtype, folder) for dtype in (np.int32, np.int64))
        done = sentence = 0
        for start in range(0, len(store.ids), WORDS_AT_ONCE):
            ids = store.ids[start : start + WORDS_AT_ONCE]
            words, sentences = remap.take(ids), sentence + np.cumsum(ids == SENTENCE_END_ID)
            inside = words >= 0
            block = slice(done, done + int(np.count_nonzero(inside)))
            self.words[block], self.sentences[block] = words[inside], sentences[inside]
            done, sentence = block.stop, int(sentences[-1])
            store.release()
            self.release()

    def __len__(self) -> int:
        return len(self.words)

    def in_order(self) -> NDArray[np.int64]:
        """The positions of the words, sorted by their index in the vocabulary, int64 (T,), in a temporary file."""
        order = temporary_array(len(self), np.int64, self.folder)
        next_index = np.cumsum(self.counts) - self.counts
        for first in range(0, len(self), WORDS_AT_ONCE):
            words = self.words[first : first + WORDS_AT_ONCE]
            local = np.argsort(words, kind="stable")
            distinct, starts, counts = np.unique(words[local], return_index=True, return_counts=True)
            order[np.repeat(next_index[distinct] - starts, counts) + np.arange(len(words))] = first + local
            next_index[distinct] += counts
            self.release()
            release(order)
        return order

    def contexts(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of context words in the windows around these positions."""
        found: NDArray[np.int64] = np.sum([inside for inside, _ in self.beside(positions, *self.sides)], axis=0)
        return found

    def beside(
        self, positions: NDArray[np.int64], before: int, after: int
    ) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int32]]]:
        """For each offset from -before to after: the words at it from `positions`, and if they are in the sentence.

        Yields (whether the word is in the sentence, the word), both (positions,).
        """
        for offset in range(-before, after + 1):
            other = np.clip(positions + offset, 0, len(self.words) - 1)
            inside = (other == positions + offset) & (self.sentences[other] == self.sentences[positions])
            if offset:
                yield inside, self.words[other]

    def release(self) -> None:
        """Free the memory of the files' pages."""
        release(self.words)
        release(self.sentences)


Predictions = tuple[int, Integers, Array, Integers, Integers]


def _from_words(model: TrainedModel, text: Text, max_rows: int) -> Iterator[Predictions]:
    """For skip-gram: words done so far, the number of contexts of each new one, rows of at most `max_rows` words, and
    which row predicts which word.

    Words are sorted, so that the scores of a row are computed once for all its predictions.
    """
    order = text.in_order()
    ends = np.cumsum(text.counts[text.counts > 0])  # of each distinct word
    max_positions = max(1, MAX_SCORES // 8 // max(text.sides))
    first = 0
    while first < len(order):
        distinct = int(np.searchsorted(ends, first, "right"))
        last = min(first + max_positions, int(ends[min(distinct + max_rows, len(ends)) - 1]))
        block = np.array(order[first:last])
        rows, which = np.unique(text.words[block], return_inverse=True)
        insides, others = (np.array(part) for part in zip(*text.beside(block, *text.sides[::-1]), strict=True))
        numbers = np.broadcast_to(which, others.shape)[insides]
        first = last
        yield last, insides.sum(axis=0), model.inputs[rows], numbers, others[insides]
        release(order)


def _from_means(model: TrainedModel, text: Text, max_rows: int) -> Iterator[Predictions]:
    """For CBOW: words done so far, the number of contexts of each new one, means of at most `max_rows` contexts, and
    which mean predicts which word.
    """
    for first in range(0, len(text), max_rows):
        positions = np.arange(first, min(first + max_rows, len(text)))
        contexts = text.contexts(positions)
        positions, contexts = positions[contexts > 0], contexts[contexts > 0]
        sums = np.zeros((len(positions), model.inputs.shape[1]), np.float32)
        for inside, words in text.beside(positions, *text.sides):
            sums += model.inputs[words] * inside[:, None]
        sums /= contexts[:, None]
        done = min(first + max_rows, len(text))
        yield done, contexts, sums, np.arange(len(positions)), text.words[positions]


def _power(bits: float) -> float:
    return 2.0**bits if bits < 1024 else math.inf
