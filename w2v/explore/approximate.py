"""Approximate search for the page, and how much of the exact answers it finds."""

from itertools import islice

import numpy as np

from w2v.progress import Report
from w2v.vectors.approximate import built_index
from w2v.vectors.cosines import unit
from w2v.vectors.keyed import KeyedVectors, Neighbours
from w2v.vectors.query import Query

SAMPLE = 100  # words on which the recall is measured
TOPN = 10


class ApproximateIndex:
    """An index of all vectors of a model; see built_index.

    Attributes:
        recall: the share of the 10 nearest words of a word that are found, measured on a sample, 0 to 1.
    """

    def __init__(self, vectors: KeyedVectors, seed: int = 1, progress: Report | None = None) -> None:
        """`progress` is called in phase "index". Raises W2VError if usearch is missing."""
        self._vectors = vectors
        self._index = built_index(vectors.vectors, progress)
        rows = np.random.default_rng(seed).permutation(len(vectors))[:SAMPLE]
        words = [vectors.index_to_key[row] for row in rows.tolist()]
        exact = [{word for word, _ in found} for found in vectors.most_similar_batch(words, TOPN)]
        found = [{word for word, _ in self.answer(Query([word], [], "add"), TOPN)} for word in words]
        missed = sum(len(one - other) for one, other in zip(exact, found, strict=True))
        self.recall = 1 - missed / max(1, sum(map(len, exact)))

    @property
    def description(self) -> str:
        return f"approximate search in all words, with a recall of {self.recall:.1%} of the {TOPN} nearest words"

    def answer(self, query: Query, n: int) -> Neighbours:
        """The best words of a query by 3CosAdd among those that the index finds, with exact scores.

        Raises UnknownWordError.
        """
        vectors = self._vectors
        weights = [1.0] * len(query.positive) + [-1.0] * len(query.negative)
        direction = vectors.get_mean_vector(query.words, weights, post_normalize=True, ignore_missing=False)
        given = {vectors.key_to_index[word] for word in query.words if vectors.is_known(word)}
        rows = [row for row in self._index.search(direction, n + len(given)).keys.tolist() if row not in given]
        cosines = unit(vectors.vectors[rows]) @ direction
        order = np.argsort(-cosines, kind="stable")
        return [(vectors.index_to_key[rows[at]], float(cosines[at])) for at in islice(order.tolist(), n)]
