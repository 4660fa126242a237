"""gensim.similarities.annoy: approximate nearest-neighbour search, with usearch instead of Annoy."""

from __future__ import annotations

from typing import Any

from w2v._system.files import PathLike, atomic_write_together, open_regular
from w2v._system.schema import decode, encode
from w2v._vectors.approximate import ApproximateIndex
from w2v._vectors.cosines import Floats
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.models.word2vec import Word2Vec


class AnnoyIndexer:
    """An index of a model's vectors, for the argument `indexer` of most_similar.

    Attributes:
        labels: The keys, in the order of the vectors.
        model: The model that was given to the constructor.
        num_trees: Kept for compatibility; it has no effect.
    """

    def __init__(self, model: Word2Vec | KeyedVectors | None = None, num_trees: int | None = None) -> None:
        """Build the index, or leave it empty without a model or num_trees.

        Raises:
            ValueError: `model` is not a Word2Vec or KeyedVectors.
            W2VError: usearch is not installed.
        """
        self.model, self.num_trees = model, num_trees
        self.index: ApproximateIndex | None = None
        self.labels: list[Any] = []
        if model is None or not num_trees:
            return
        vectors: Any = getattr(model, "dv", getattr(model, "wv", model))  # gensim's Doc2Vec has dv
        if not hasattr(vectors, "index_to_key"):
            raise ValueError("Only a Word2Vec, Doc2Vec, FastText or KeyedVectors instance can be used")
        self.index, self.labels = ApproximateIndex(vectors.vectors), vectors.index_to_key

    def most_similar(self, vector: Floats, num_neighbors: int) -> list[tuple[Any, float]]:
        """Return (key, cosine) of the nearest vectors that the index finds."""
        rows, cosines = self._require_index().search(vector, num_neighbors)
        return [(self.labels[row], cosine) for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True)]

    def save(self, fname: PathLike, **_: Any) -> None:
        """Write the index to `fname`, and its keys as JSON to `fname`.dict."""
        index = self._require_index()
        text = encode({"size": index.vector_size, "num_trees": self.num_trees, "labels": self.labels}, fname)
        with atomic_write_together([f"{fname}.dict", fname]) as (keys, file):
            keys.write(text.encode())
            file.write(index.to_bytes())

    def _require_index(self) -> ApproximateIndex:
        if self.index is None:
            raise ValueError("the index is empty: give AnnoyIndexer a model and num_trees, or call load")
        return self.index

    def load(self, fname: PathLike) -> None:
        """Read the files that `save` wrote.

        Raises:
            OSError: A file is missing.
        """
        with open_regular(f"{fname}.dict") as file:
            metadata = decode(dict[str, Any], file.read(), f"{fname}.dict")
        self.index = ApproximateIndex.load(fname)
        self.num_trees, self.labels = metadata["num_trees"], metadata["labels"]
