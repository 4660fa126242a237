"""Approximate nearest-neighbour search with usearch, which builds a graph of neighbours.

Source: Malkov & Yashunin 2018, "Efficient and robust approximate nearest neighbor search using Hierarchical Navigable
Small World graphs" (HNSW), https://arxiv.org/abs/1603.09320
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError, import_optional, one_line
from w2v._progress import Meter, Report
from w2v._system.files import PathLike, open_regular, translate_os_errors
from w2v._vectors.cosines import Floats
from w2v._vectors.neighbours import nearest_rows

RECALL_SAMPLE = 100  # rows used to measure the recall
FIRST_ROWS = 1000  # added by one thread: threads that add the first rows at once leave some that no search finds
RECALL_TOPN = 10  # neighbours of each of these rows


class ApproximateIndex:
    """An index of the rows of a matrix (V, D) for search by cosine. Building it takes minutes for a million rows."""

    def __init__(self, vectors: Floats, progress: Report | None = None) -> None:
        """Index all rows.

        Args:
            vectors: (V, D).
            progress: Called in phase "index".

        Raises:
            W2VError: If usearch is missing.
        """
        self._index: Any = _usearch().Index(ndim=vectors.shape[1], metric="cos", dtype="f32")
        meter = Meter(progress, "index")

        def report(done: int, total: int) -> bool:  # usearch inspects these annotations: they must not be strings
            meter(len(vectors) - total + done, len(vectors))
            return True  # continue

        rows = np.arange(len(vectors))
        self._index.add(rows[:FIRST_ROWS], vectors[:FIRST_ROWS], threads=1)
        self._index.add(rows[FIRST_ROWS:], vectors[FIRST_ROWS:], progress=report)
        meter(len(vectors), len(vectors))

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read an index file that contains the result of `to_bytes`.

        Raises:
            W2VError: If usearch is missing, or if the file cannot be read or is not an index.
        """
        index = cls.__new__(cls)
        with translate_os_errors(path), open_regular(path):
            try:
                index._index = _usearch().Index.restore(str(path))
            except (ValueError, RuntimeError) as error:
                raise W2VError(f"{path}: not an index of usearch: {one_line(error)}") from error
        return index

    def to_bytes(self) -> bytes:
        """Return the index as bytes. Write them to a file, which `load` can read."""
        return bytes(self._index.save())

    @property
    def vector_size(self) -> int:
        """The number of values in an indexed vector, D."""
        return int(self._index.ndim)

    def search(self, vector: Floats, topn: int) -> tuple[NDArray[np.int64], Floats]:
        """Return up to `topn` rows that the index finds nearest to a vector (D,), and their cosines, highest first."""
        matches = self._index.search(np.asarray(vector, np.float32), topn)
        return matches.keys.astype(np.int64), 1 - matches.distances

    def recall(self, vectors: Floats, seed: int = 1) -> float:
        """Measure the share of true nearest neighbours that a search finds, 0 to 1.

        The 10 nearest neighbours of 100 random rows are compared. `vectors` is the indexed matrix.
        """
        sample = np.random.default_rng(seed).permutation(len(vectors))[:RECALL_SAMPLE]
        exact = nearest_rows(vectors, sample, RECALL_TOPN)
        approximate = [self.search(vectors[row], RECALL_TOPN + 1)[0] for row in sample]  # one more: the row itself
        hits = sum(np.isin(true, found).sum() for true, found in zip(exact, approximate, strict=True))
        return float(hits / exact.size) if exact.size else 1.0


def _usearch() -> Any:
    return import_optional("approximate search needs usearch", "approximate", "usearch.index")
