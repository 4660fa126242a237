"""gensim.similarities.annoy: approximate search, by usearch in the place of Annoy."""

from __future__ import annotations

from typing import Any

import numpy as np

from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.models.word2vec import Word2Vec
from w2v.system.files import PathLike, atomic_write, open_regular
from w2v.system.schema import decode, encode
from w2v.vectors.approximate import built_index, index_of_file
from w2v.vectors.cosines import Vector


class AnnoyIndexer:
    """An index of a model's vectors, for the argument `indexer` of most_similar; `num_trees` has no effect.

    Attributes:
        labels: the keys, in the order of the vectors. model: that of the constructor.
    """

    def __init__(self, model: Word2Vec | KeyedVectors | None = None, num_trees: int | None = None) -> None:
        """Raises ValueError for another model, W2VError if usearch is missing."""
        self.model, self.num_trees = model, num_trees
        self.index: Any = None
        self.labels: list[Any] = []
        if model is None or not num_trees:
            return
        if not isinstance(model, Word2Vec | KeyedVectors):
            raise ValueError("Only a Word2Vec or KeyedVectors instance can be used")
        vectors = model.wv if isinstance(model, Word2Vec) else model
        self.index, self.labels = built_index(vectors.vectors), vectors.index_to_key

    def most_similar(self, vector: Vector, num_neighbors: int) -> list[tuple[Any, float]]:
        """The keys of the nearest vectors that the index finds, and their cosines."""
        found = self.index.search(np.asarray(vector, np.float32), num_neighbors)
        pairs = zip(found.keys.tolist(), found.distances.tolist(), strict=True)
        return [(self.labels[row], 1 - distance) for row, distance in pairs]

    def save(self, fname: PathLike, **_: Any) -> None:
        """Write the index, and its keys as JSON to a file that ends in .dict."""
        text = encode({"size": self.index.ndim, "num_trees": self.num_trees, "labels": self.labels}, fname)
        self.index.save(str(fname))
        with atomic_write(f"{fname}.dict") as file:
            file.write(text.encode())

    def load(self, fname: PathLike) -> None:
        """Read a file of `save`. Raises OSError if it is missing."""
        with open_regular(f"{fname}.dict") as file:
            about = decode(dict[str, Any], file.read(), f"{fname}.dict")
        self.index = index_of_file(fname)
        self.num_trees, self.labels = about["num_trees"], about["labels"]
