"""Held-out text: how well word vectors fit a text that they were not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError
from w2v.text._text import SENTENCE_END_ID
from w2v.text.idstore import IdStore
from w2v.text.vocabulary import Vocabulary
from w2v.vectors.cosines import Vector, unit

WINDOW = 5  # words on either side of a gap, at most
SAMPLE = 1e-4  # threshold of subsampling, independent of the models' own: frequent words carry little information
SHARE, MAX_IDS = 0.05, 500_000  # of a text, that are held out
MAX_GAPS, DRAWS = 100_000, 5
GAPS_AT_ONCE = 1 << 13
SEED = 1


@dataclass(frozen=True)
class HeldOut:
    """Gaps in a text: the words around each, the word in it, and others drawn at random from the same text.

    Vectors are scored by how often the mean of the words around a gap is nearer, by cosine, to the word in the gap than
    to another (the ranking criterion of Collobert & Weston 2008). This is the area under the ROC curve, the only
    ranking measure that sampling the others does not bias (Krichene & Rendle 2020). It needs no probabilities, so
    models with the same vocabulary and any losses can be compared. Words and others have the same frequencies, so
    frequency alone scores one half. bench/README.md, "Tuning", shows how the score agrees with questions and pairs.

    contexts: int64 (n, 2 WINDOW), −1 for none. words: int64 (n,). others: int64 (n, DRAWS).
    """

    contexts: NDArray[np.int64]
    words: NDArray[np.int64]
    others: NDArray[np.int64]

    @classmethod
    def at_end(cls, store: IdStore, vocabulary: Vocabulary) -> tuple[float, Self]:
        """The share of the text to train on, and gaps in the rest. Raises the errors of `of`."""
        size = len(store.ids)
        start = size - min(round(SHARE * size), MAX_IDS)
        return start / size, cls.of(store, vocabulary, start)

    @classmethod
    def of(cls, store: IdStore, vocabulary: Vocabulary, start: int) -> Self:
        """Gaps in the ids of a store from `start` on. Raises W2VError if no two of their words are in one window.

        Words that occur once in the vocabulary's counts are never subsampled, so that a short text has some gaps.
        """
        random = np.random.default_rng(SEED)
        ids = store.ids[start:]
        words = store.remap(vocabulary.words)[ids].astype(np.int64)
        sentences = np.cumsum(ids == SENTENCE_END_ID)
        kept = np.flatnonzero(words >= 0)
        sample = max(SAMPLE, 1 / vocabulary.tokens)
        kept = kept[random.random(len(kept)) < vocabulary.keep_probabilities(sample)[words[kept]]]
        words, sentences = words[kept], sentences[kept]
        gaps = np.sort(random.permutation(len(words))[:MAX_GAPS])
        positions = gaps[:, None] + [offset for offset in range(-WINDOW, WINDOW + 1) if offset]
        inside = (positions >= 0) & (positions < len(words))
        positions[~inside] = 0
        inside &= sentences[positions] == sentences[gaps][:, None]
        contexts = np.where(inside, words[positions], -1)
        usable = inside.any(axis=1)
        if not usable.any():
            raise W2VError("the held-out text is too short to evaluate vectors: give more text")
        gaps = gaps[usable]
        return cls(contexts[usable], words[gaps], random.choice(words, (len(gaps), DRAWS)))

    def score(self, vectors: Vector) -> float:
        """The score of the vectors (V, D) of the vocabulary, 0 to 1; random vectors score about one half."""
        return float(self.won(vectors).sum() / self.others.size)

    def won(self, vectors: Vector) -> NDArray[np.float64]:
        """To how many of the others the word in each gap is preferred, float64 (n,); a tie counts as one half."""
        rows = np.vstack([unit(vectors), np.zeros((1, vectors.shape[1]), np.float32)])  # −1 is the last
        won = np.empty(len(self.words))
        for start in range(0, len(self.words), GAPS_AT_ONCE):
            part = slice(start, start + GAPS_AT_ONCE)
            means = rows[self.contexts[part]].sum(axis=1)
            right = np.einsum("nd,nd->n", means, rows[self.words[part]])[:, None]
            wrong = np.einsum("nd,nkd->nk", means, rows[self.others[part]])
            won[part] = np.count_nonzero(right > wrong, axis=1) + np.count_nonzero(right == wrong, axis=1) / 2
        return won
