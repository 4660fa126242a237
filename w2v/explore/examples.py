"""What a page shows before anything is asked: words and an analogy of the model's own, in whatever language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from w2v.explore.content import SHOWN
from w2v.plotting.options import skipped
from w2v.vectors.cosines import unit
from w2v.vectors.keyed import KeyedVectors

TRIED = 10  # analogies, until one is answered as expected
SEARCHED = 10_000  # words for the answer


def examples(models: Sequence[KeyedVectors], top: int) -> dict[str, Any]:
    """A word, and the words a, b, c of an analogy a - b + c whose answer it is, which all models have.

    The word is None where no word is in all models, the analogy [] for fewer than four words. They are among the first
    `top` words of each model. Two words and their nearest ones make an analogy: that of the most parallel offsets.
    """
    first, *others = models
    start = skipped(min(top, len(first)), SHOWN)
    words = [
        word
        for word in first.first_words(min(top, start + SHOWN))[start:]
        if all(other.key_to_index.get(word, top) < top for other in others)
    ]
    if len(words) < 4:
        return {"word": words[0] if words else None, "analogy": []}
    vectors = unit(first[words])
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = cosines.argmax(axis=1)
    offsets = unit(vectors - vectors[nearest])
    left, right = np.triu_indices(len(words), 1)
    different = (nearest[left] != nearest[right]) & (nearest[left] != right) & (nearest[right] != left)
    left, right = left[different], right[different]
    found = []
    for pair in np.argsort(-(offsets @ offsets.T)[left, right], kind="stable")[:TRIED]:
        places = left[pair], nearest[left[pair]], nearest[right[pair]], right[pair]
        a, b, c, answer = (words[place] for place in places)
        found.append({"word": answer, "analogy": [a, b, c]})
        if first.most_similar([a, c], [b], 1, SEARCHED)[0][0] == answer:
            return found[-1]
    return found[0] if found else {"word": words[0], "analogy": []}
