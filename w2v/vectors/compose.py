"""Vectors of words outside the vocabulary, in models where n-grams make only a part of a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.vectors.cosines import Floats, unit
from w2v.vectors.neighbours import nearest

NEAREST_KNOWN = 10  # bench/NOTES.md compares other numbers


def complete_vectors(ngram_vectors: Floats, vectors: NDArray[Any]) -> Floats:
    """Return the whole vectors of n unknown words, float32 (n, D).

    If the n-grams make only the last part of a vector, this part is scaled to length 1. The rest is the mean of this
    rest in the vectors of the NEAREST_KNOWN words with the nearest last parts, scaled to length 1.

    Args:
        ngram_vectors: The means of the words' n-gram rows, (n, D) or shorter. Rows of zeros stay zeros.
        vectors: The vectors of the known words, (V, D). If the n-grams make only a part of them, both parts have
            length 1.
    """
    offset = vectors.shape[1] - ngram_vectors.shape[1]
    if not offset:
        return ngram_vectors
    whole: Floats = np.pad(unit(ngram_vectors), ((0, 0), (offset, 0)))
    made = np.flatnonzero(whole.any(axis=1))
    # The zeros in the first parts leave the cosines of the last parts.
    results = nearest(whole[made], vectors, np.ones(len(vectors), np.float32), NEAREST_KNOWN, [[]] * len(made))
    for row, (best, _) in zip(made, results, strict=True):
        whole[row, :offset] = np.asarray(vectors[best], np.float32)[:, :offset].mean(axis=0)
    whole[:, :offset] = unit(whole[:, :offset])
    return whole
