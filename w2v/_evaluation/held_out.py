"""Score word vectors on held-out text, which they were not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError
from w2v._text._text import SENTENCE_END_ID
from w2v._text.idstore import IdStore
from w2v._text.vocabulary import Vocabulary
from w2v._vectors.cosines import Floats, unit

WINDOW = 5  # maximum number of context words on each side of a gap
SAMPLE = 1e-4  # threshold of subsampling, the same for all models: frequent words carry little information
SHARE, MAX_IDS = 0.05, 500_000  # share of a training text to hold out, and maximum number of its ids
MAX_GAPS = 100_000
DRAWS = 5  # random words to compare with the word in each gap
GAPS_AT_ONCE = 1 << 13  # gaps in a batch
SEED = 1


@dataclass(frozen=True)
class GapTest:
    """n gaps in a text: the context words around each, the word in it, and random words of the same text.

    Vectors are scored by how often the mean of the context words is nearer, by cosine, to the word in the gap than to a
    random word (the ranking criterion of Collobert & Weston 2008). This is the area under the ROC curve, the only
    ranking measure that is not biased by sampling the random words (Krichene & Rendle 2020). The score does not need
    probabilities, so it compares models with any losses, if they have the same vocabulary. The words in the gaps and
    the random words have the same frequencies, so a model that only knows frequencies scores one half. bench/README.md,
    "Tuning", shows how the score agrees with questions and pairs.

    Attributes:
        contexts: int64 (n, 2 WINDOW), the context words, −1 for none.
        words: int64 (n,), the words in the gaps.
        others: int64 (n, DRAWS), the random words.
    """

    contexts: NDArray[np.int64]
    words: NDArray[np.int64]
    others: NDArray[np.int64]

    @classmethod
    def at_end(cls, store: IdStore, vocabulary: Vocabulary) -> tuple[float, Self]:
        """Return the share of the text to train on, and gaps in the rest of it.

        Raises:
            W2VError: If the rest is too short: if none of its words has a context word.
        """
        size = len(store.ids)
        start = size - min(round(SHARE * size), MAX_IDS)
        return start / size, cls.of(store, vocabulary, start)

    @classmethod
    def of(cls, store: IdStore, vocabulary: Vocabulary, start: int) -> Self:
        """Choose gaps in the ids of a store, from id number `start` on.

        Subsampling never drops words with a count of 1, so that a short text has some gaps.

        Raises:
            W2VError: If the text is too short: if none of its words has a context word.
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

    def score(self, vectors: Floats) -> float:
        """Return the score of the vocabulary's vectors (V, D), 0 to 1. Random vectors score about one half."""
        return float(self.count_wins(vectors).sum() / self.others.size)

    def count_wins(self, vectors: Floats) -> NDArray[np.float64]:
        """Return for each gap the number of random words that its word beats, float64 (n,); a tie counts one half."""
        rows = np.vstack([unit(vectors), np.zeros((1, vectors.shape[1]), np.float32)])  # index −1: zeros
        wins = np.empty(len(self.words))
        for start in range(0, len(self.words), GAPS_AT_ONCE):
            part = slice(start, start + GAPS_AT_ONCE)
            means = rows[self.contexts[part]].sum(axis=1)
            right = np.einsum("nd,nd->n", means, rows[self.words[part]])[:, None]
            wrong = np.einsum("nd,nkd->nk", means, rows[self.others[part]])
            wins[part] = np.count_nonzero(right > wrong, axis=1) + np.count_nonzero(right == wrong, axis=1) / 2
        return wins
