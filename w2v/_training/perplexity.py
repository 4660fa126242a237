"""Perplexity: a measure of how well a model predicts the words of a text that it was not trained on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._display import Result
from w2v._errors import W2VError, pluralise
from w2v._losses.loss import Array, Integers
from w2v._options import options_of, refuse_unknown
from w2v._progress import Meter, Report
from w2v._system import memory
from w2v._system.files import temporary_folder
from w2v._system.threads import processors
from w2v._text._text import SENTENCE_END_ID
from w2v._text.corpus import Corpus, Source
from w2v._text.idstore import IdStore, ReadingOptions, read_corpus, release, temporary_array
from w2v._training.model import AnyModel, View, view_of_words

MAX_SCORES = 1 << 23  # scores in a batch: 32 MB in float32
SCORE_ARRAYS = 4  # arrays of MAX_SCORES in memory at the same time
WORDS_AT_ONCE = 1 << 20  # words of the text in a block


@dataclass(frozen=True)
class Perplexity(Result):
    """The result of measuring how well a model predicts a text.

    Attributes:
        perplexity: 2 to the power of `cross_entropy_bits`. This is the value to report. It undoes the subsampling of
            the training: the model's probability p(w) is divided by keep(w), the share of the occurrences of w that
            subsampling kept, and normalised.
        cross_entropy_bits: The mean of −log2 p over all predictions. A prediction is a word given one of its context
            words in skip-gram, and a word given the mean of its context words in CBOW.
        unigram_perplexity: The perplexity if p(w) is the share of w in the training text, in all contexts.
        perplexity_as_trained: The perplexity with the model's own p, which underestimates frequent words. It equals
            `perplexity` for a model trained with sample=0.
        tokens: Number of words predicted: words of the vocabulary with another such word in their window.
        predictions: Number of predictions: pairs of words in skip-gram, `tokens` in CBOW.
        skipped: Number of words outside the vocabulary. They are removed before windows are formed, as in training.
            Compare perplexities only between models with the same vocabulary: with fewer words, the task is easier.
        vocabulary_size: Number of words of the vocabulary, which is the perplexity of a guess among all of them.
    """

    perplexity: float
    cross_entropy_bits: float
    unigram_perplexity: float
    perplexity_as_trained: float
    tokens: int
    predictions: int
    skipped: int
    vocabulary_size: int


def perplexity(model: AnyModel, corpus: Source, *, progress: Report | None = None, **reading: Any) -> Perplexity:
    """Predict each word of a text from its full window, without random shrinking and without subsampling.

    The time is proportional to V·D for each distinct word of the text in skip-gram, and for each word of the text in
    CBOW: about 3 ms with 70,000 words. The losses hs and class take less. The memory does not depend on the length of
    the text. Its words are stored in temporary files: 12 bytes each in CBOW, 20 in skip-gram.

    Args:
        model: A model, or the path of its file. Of a model of several views, the view of words is measured.
        corpus: The text, as in `train`.
        progress: Called in the phases "read" and "predict".
        reading: Arguments of `train` for reading the text; by default as in the training of the model.

    Raises:
        W2VError: If the text cannot be read or has no two words of the vocabulary in one window, if the model has
            scores beyond float32, or if there is too little memory or space on disk.
    """
    refuse_unknown(reading, options_of(ReadingOptions), {})
    view = view_of_words(model).to_float32()  # once, rather than in every batch
    options = ReadingOptions(**asdict(view.text) | reading)
    with read_corpus(Corpus(corpus), options, workers=processors(), progress=progress) as store:
        return perplexity_of_ids(view, store, temporary_folder(options.cache), progress=progress)


def perplexity_of_ids(
    view: View, store: IdStore, folder: Path, first: int = 0, progress: Report | None = None
) -> Perplexity:
    """Predict the words of a text that was read; see `perplexity`.

    Args:
        view: The view of a model, in float32.
        store: The ids of the text.
        folder: The folder for temporary files.
        first: The number of the first id to predict.
        progress: Called in the phase "predict".
    """
    row = max(view.loss.scores_per_row, view.inputs.shape[1])  # the most numbers that a prediction needs
    memory.check(SCORE_ARRAYS * 4 * max(MAX_SCORES, row), "perplexity", "end other programs or use a smaller model")
    text = KnownWords(store, view, folder, first)
    predictions = _skipgram_predictions if view.settings.model == "skipgram" else _cbow_predictions
    unigram = np.log(view.vocabulary.counts / view.vocabulary.tokens)
    keep = view.vocabulary.keep_probabilities(view.settings.sample, view.settings.sample_formula)
    tokens = count = 0
    totals = np.zeros(3)  # Σ −log p: with subsampling undone, of the unigram model, and as trained
    max_rows = max(1, MAX_SCORES // max(row, np.count_nonzero(keep < 1)))
    meter = Meter(progress, "predict")
    with np.errstate(over="ignore", invalid="ignore"):
        for done, contexts, rows, indices, words in predictions(view, text, max_rows):
            corrected, as_trained = _log_probabilities(view, rows, indices, words, keep)
            totals -= [logs.sum(dtype=np.float64) for logs in (corrected, unigram[words], as_trained)]
            tokens += int(np.count_nonzero(contexts))
            count += len(words)
            text.release()
            meter(done, len(text))
    if not count:
        raise W2VError(
            "nothing to predict: no word of the vocabulary has another in its window; "
            f"not in the vocabulary: {pluralise(text.skipped, 'word')} of the text"
        )
    if not np.isfinite(totals).all():
        raise W2VError("the model's predictions are not numbers: its training has diverged")
    bits = totals / math.log(2) / count
    with np.errstate(over="ignore"):
        corrected, unigram, as_trained = np.exp2(bits).tolist()
    return Perplexity(corrected, float(bits[0]), unigram, as_trained, tokens, count, text.skipped, len(view.vocabulary))


def _log_probabilities(
    model: View, rows: Array, indices: Integers, words: Integers, keep: NDArray[np.float32]
) -> tuple[Array, Array]:
    """Return log p(words[k] | rows[indices[k]]) with subsampling undone, and as the model was trained: both (N,).

    Logarithms are natural. `keep` (V,) is the share of each word that subsampling kept; the other arguments are the
    same as for Loss.log_probabilities_of.

    To undo subsampling, p(w | c) / keep(w) is divided by its sum over the vocabulary, which is
    1 + Σ p(u | c) (1 / keep(u) − 1). Only frequent words u, with keep(u) < 1, contribute to it. So hierarchical and
    class-based softmax need not compute the probabilities of all words.
    """
    subsampled = np.flatnonzero(keep < 1)  # (U,)
    parameters = {"outputs": model.outputs} | model.parameters
    as_trained, of_subsampled = model.loss.log_probabilities_of(parameters, rows, indices, words, subsampled)
    log_sums = np.log1p(np.exp(of_subsampled) @ (1 / keep[subsampled] - 1).astype(rows.dtype))
    return as_trained - np.log(keep[words]).astype(rows.dtype) - log_sums[indices], as_trained


class KnownWords:
    """The known words of a text, T of them, stored in temporary files.

    Attributes:
        words: int32 (T,), in text order.
        sentences: int64 (T,), the number of each word's sentence.
        counts: int64 (V,), how often each word of the vocabulary occurs in the text.
        skipped: The number of words that the vocabulary lacks.
        sides: Maximum number of context words before and after a word.

    Raises:
        W2VError: If the disk has too little space.
    """

    def __init__(self, store: IdStore, model: View, folder: Path, first: int) -> None:
        remap = store.remap(model.vocabulary.words)
        known = remap >= 0
        of_types = np.bincount(store.ids[first:], minlength=len(remap)) if first else store.counts
        size = int(of_types[known].sum())
        self.skipped = int(of_types[SENTENCE_END_ID + 1 :].sum()) - size
        self.sides = model.settings.window_sides
        self.counts = np.zeros(len(model.vocabulary), np.int64)
        self.counts[remap[known]] = of_types[known]
        self.folder = folder
        self.words, self.sentences = (temporary_array(size, dtype, folder) for dtype in (np.int32, np.int64))
        done = sentence = 0
        for start in range(first, len(store.ids), WORDS_AT_ONCE):
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

    def positions_by_word(self) -> NDArray[np.int64]:
        """Return the positions of the words, sorted by vocabulary index: int64 (T,), in a temporary file."""
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

    def neighbours(
        self, positions: NDArray[np.int64], before: int, after: int
    ) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int32]]]:
        """Yield the words at each offset, from -before to after, from n positions.

        Each item is (True where the word is in the same sentence, the words), both (n,).
        """
        for offset in range(-before, after + 1):
            other = np.clip(positions + offset, 0, len(self.words) - 1)
            inside = (other == positions + offset) & (self.sentences[other] == self.sentences[positions])
            if offset:
                yield inside, self.words[other]

    def release(self) -> None:
        """Free the memory that holds pages of the files."""
        release(self.words)
        release(self.sentences)


# A batch of predictions: the number of text words done so far; the number of context words of each word in the batch;
# the input rows, at most `max_rows`; and for each prediction the index of its input row and the predicted word.
Predictions = tuple[int, Integers, Array, Integers, Integers]


def _skipgram_predictions(model: View, text: KnownWords, max_rows: int) -> Iterator[Predictions]:
    """Yield the predictions of skip-gram.

    Words are sorted, so that the scores of an input row are computed once for all its predictions.
    """
    order = text.positions_by_word()
    ends = np.cumsum(text.counts[text.counts > 0])  # where each distinct word ends in `order`
    max_positions = max(1, MAX_SCORES // 8 // max(text.sides))
    first = 0
    while first < len(order):
        words_done = int(np.searchsorted(ends, first, "right"))
        end = min(first + max_positions, int(ends[min(words_done + max_rows, len(ends)) - 1]))
        block = np.array(order[first:end])
        rows, row_indices = np.unique(text.words[block], return_inverse=True)
        # A word predicts the words that have it in their window, so the sides are swapped:
        neighbours = zip(*text.neighbours(block, *text.sides[::-1]), strict=True)
        insides, others = (np.array(part) for part in neighbours)
        indices = np.broadcast_to(row_indices, others.shape)[insides]
        first = end
        yield end, insides.sum(axis=0), model.inputs[rows], indices, others[insides]
        release(order)


def _cbow_predictions(model: View, text: KnownWords, max_rows: int) -> Iterator[Predictions]:
    """Yield the predictions of CBOW. The input rows are means of context words."""
    for first in range(0, len(text), max_rows):
        positions = np.arange(first, min(first + max_rows, len(text)))
        contexts = np.sum([inside for inside, _ in text.neighbours(positions, *text.sides)], axis=0)
        positions, contexts = positions[contexts > 0], contexts[contexts > 0]
        sums = np.zeros((len(positions), model.inputs.shape[1]), np.float32)
        for inside, words in text.neighbours(positions, *text.sides):
            sums += model.inputs[words] * inside[:, None]
        sums /= contexts[:, None]
        done = min(first + max_rows, len(text))
        yield done, contexts, sums, np.arange(len(positions)), text.words[positions]
