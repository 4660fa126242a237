"""How well a model predicts the words of a text that it was not trained on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from w2v.cpu import processors
from w2v.errors import W2VError
from w2v.evaluation import subsampling
from w2v.files import Errors, PathLike
from w2v.losses.loss import Array, Integers
from w2v.progress import Meter, Report
from w2v.text._text import SENTENCE_END_ID
from w2v.text.corpus import Corpus, Source
from w2v.text.idstore import ReadingOptions, read_corpus
from w2v.training.model import Model

MAX_SCORES = 1 << 23  # computed at a time: 32 MB in float32, and some three arrays of them are held


@dataclass(frozen=True)
class Perplexity:
    """How well a model predicts a text.

    Attributes:
        perplexity: 2 to the power of `cross_entropy_bits`, the mean of −log2 p of a prediction: in skip-gram of a word
            given each of its context words, in CBOW of a word given their mean.
        corrected_perplexity: the same with the subsampling of the training undone: p(w | c) / keep(w), normalised. It
            is the one to compare with `unigram_perplexity`, and equals `perplexity` for a model trained with sample=0.
        unigram_perplexity: the same where each word has its share of the training text, whatever its context.
        tokens: words predicted: those of the vocabulary that have another within the window.
        predictions: pairs of words in skip-gram; `tokens` in CBOW.
        skipped: words that are not in the vocabulary. They are passed over before windows are cut, as in training.
    """

    perplexity: float
    cross_entropy_bits: float
    corrected_perplexity: float
    unigram_perplexity: float
    tokens: int
    predictions: int
    skipped: int


def perplexity(
    model: Model | PathLike,
    corpus: Source,
    *,
    cache: PathLike | None = None,
    errors: Errors = ReadingOptions.errors,
    max_types: int = ReadingOptions.max_types,
    progress: Report | None = None,
) -> Perplexity:
    """Predict each word of a text from the whole window, neither shrunk nor subsampled; see Model.log_probabilities_of.

    Where the loss is normalised over the vocabulary, the time goes with V·D for each distinct word of the text in
    skip-gram, for each of its words in CBOW; the memory does not, so nothing else limits the vocabulary. `progress` is
    called as in training, with the phases "read" and "predict"; the other arguments are those of
    `train`. Raises W2VError for a text that cannot be read or in which there is nothing to predict, and for a model
    whose scores are beyond float32.
    """
    if not isinstance(model, Model):
        model = Model.load(model)
    model = model.widened()  # once, not for every block
    with read_corpus(
        Corpus(corpus),
        ReadingOptions(cache=cache, errors=errors, max_types=max_types),
        workers=processors(),
        progress=progress,
    ) as store:
        places = store.remap(model.vocabulary.words)[store.ids]  # (tokens + sentences,)
        known = places >= 0
        text = Text(places[known], np.cumsum(store.ids == SENTENCE_END_ID)[known], model.settings.window)
        skipped = store.tokens - len(text.words)
    skipgram = model.settings.model == "skipgram"
    predictions = text.contexts if skipgram else np.minimum(text.contexts, 1)  # of each word
    count = int(predictions.sum())
    if not count:
        raise W2VError(
            "nothing to predict: no word of the vocabulary has another within its window; "
            f"{skipped:,} words of the text are not in the vocabulary"
        )
    shares = np.log2(model.vocabulary.counts / model.vocabulary.tokens)
    keep = subsampling.keep_probabilities(model)
    totals = np.zeros(2)  # of the model, and with subsampling undone
    most = max(1, MAX_SCORES // max(model.loss.scores_per_row, model.inputs.shape[1], np.count_nonzero(keep < 1)))
    meter = Meter(progress, "predict")
    with np.errstate(over="ignore", invalid="ignore"):
        for done, rows, numbers, words in (_from_words if skipgram else _from_means)(model, text, most):
            logs = subsampling.log_probabilities_of(model, rows, numbers, words, keep)
            totals -= [part.sum(dtype=np.float64) for part in logs]
            meter(done, len(text.words))
    if not np.isfinite(totals).all():
        raise W2VError("the model predicts what is not a number: its vectors have diverged")
    bits, corrected_bits = (totals / math.log(2) / count).tolist()
    return Perplexity(
        perplexity=_power(bits),
        cross_entropy_bits=bits,
        corrected_perplexity=_power(corrected_bits),
        unigram_perplexity=_power(-float(predictions @ shares[text.words]) / count),
        tokens=int((text.contexts > 0).sum()),
        predictions=count,
        skipped=skipped,
    )


class Text:
    """T words of the vocabulary, one after the other.

    words, sentences   int (T,): each word, and the number of its sentence
    contexts           int64 (T,): how many words share its window
    """

    def __init__(self, words: NDArray[np.int32], sentences: NDArray[np.int64], window: int) -> None:
        self.words, self.sentences, self.window = words, sentences, window
        self.contexts = np.zeros(len(words), np.int64)
        for inside, _ in self.beside(np.arange(len(words))):
            self.contexts += inside

    def beside(self, places: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int32]]]:
        """For each place in the window: whether a word of the sentence stands there, seen from `places`; and which."""
        for offset in range(-self.window, self.window + 1):
            other = np.clip(places + offset, 0, len(self.words) - 1)
            inside = (other == places + offset) & (self.sentences[other] == self.sentences[places])
            if offset:
                yield inside, self.words[other]


Predictions = tuple[int, Array, Integers, Integers]


def _from_words(model: Model, text: Text, most: int) -> Iterator[Predictions]:
    """The words done, the rows of at most so many of them, and which row predicts which word: each that stands beside.

    Words are taken in order, so that the scores of a row serve all its predictions.
    """
    order = np.argsort(text.words, kind="stable")
    words = text.words[order]
    rank = np.cumsum(np.diff(words, prepend=words[:1]) != 0)
    places = max(1, MAX_SCORES // 8 // text.window)
    first = 0
    while first < len(order):
        last = min(first + places, int(np.searchsorted(rank, rank[first] + most)))
        distinct, which = np.unique(words[first:last], return_inverse=True)
        beside = list(text.beside(order[first:last]))
        numbers = np.concatenate([which[inside] for inside, _ in beside])
        first = last
        yield last, model.inputs[distinct], numbers, np.concatenate([others[inside] for inside, others in beside])


def _from_means(model: Model, text: Text, most: int) -> Iterator[Predictions]:
    """The words done, the means of at most so many contexts, and which predicts which word."""
    for first in range(0, len(text.words), most):
        places = np.arange(first, min(first + most, len(text.words)))
        places = places[text.contexts[places] > 0]
        sums = np.zeros((len(places), model.inputs.shape[1]), np.float32)
        for inside, words in text.beside(places):
            sums += model.inputs[words] * inside[:, None]
        sums /= text.contexts[places, None]
        yield min(first + most, len(text.words)), sums, np.arange(len(places)), text.words[places]


def _power(bits: float) -> float:
    return 2.0**bits if bits < 1024 else math.inf
