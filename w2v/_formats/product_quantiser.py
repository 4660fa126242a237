"""Product quantisation, as in fastText's small files: a row is divided into parts, and a byte stands for each part."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CENTROIDS = 256  # vectors that a code of a byte can stand for
# k-means takes ROUNDS rounds for a sample of rows. Long rows, which decide most predictions, are drawn more often: this
# halves the error of a sample without weights (bench/NOTES.md).
ROUNDS, SAMPLE_ROWS = 10, 1 << 12
TINY = 1e-30  # so that matrices of zeros have weights


@dataclass(frozen=True)
class QuantisedMatrix:
    """A matrix (R, D). Each part of a row is one of CENTROIDS vectors (Jégou et al. 2011).

    Attributes:
        codes: uint8 (R, parts), the vector that stands for each part.
        centroids: The vectors of each part, float32 (CENTROIDS, size). The last part may be smaller than the others.
        norms: The lengths of the rows, (R, 1), if the parts are those of rows of length 1; else None.
    """

    codes: NDArray[np.uint8]
    centroids: list[NDArray[np.float32]]
    norms: QuantisedMatrix | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.codes), sum(each.shape[1] for each in self.centroids)

    def decode(self, rows: slice = slice(None)) -> NDArray[np.float32]:
        """Return some rows as float32 (n, D)."""
        codes = self.codes[rows].T
        decoded = np.concatenate([each[own] for each, own in zip(self.centroids, codes, strict=True)], axis=1)
        return decoded if self.norms is None else decoded * self.norms.decode(rows)

    @classmethod
    def of(cls, matrix: NDArray[np.float32], part_size: int = 2, normalise: bool = False) -> QuantisedMatrix:
        """Find centroids by k-means, and replace each part by the nearest one.

        Args:
            matrix: float32 (R, D).
            part_size: The number of values of a part.
            normalise: Whether the lengths of the rows get codes of their own.
        """
        from scipy.cluster.vq import vq  # slow to import

        lengths: NDArray[np.float32] = np.linalg.norm(matrix, axis=1, keepdims=True)
        norms = None
        if normalise:
            norms = cls.of(lengths)
            matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
        sample = matrix
        if len(matrix) > SAMPLE_ROWS:
            weights = lengths[:, 0].astype(np.float64) ** 2
            weights += weights.mean() / 100 + TINY
            chosen = np.random.default_rng(1).choice(len(matrix), SAMPLE_ROWS, False, weights / weights.sum())
            sample = matrix[chosen]
        columns = [slice(first, first + part_size) for first in range(0, matrix.shape[1], part_size)]
        centroids = [_find_centroids(np.ascontiguousarray(sample[:, part])) for part in columns]
        codes = np.empty((len(matrix), len(columns)), np.uint8)
        for number, part in enumerate(columns):
            codes[:, number] = vq(np.ascontiguousarray(matrix[:, part]), centroids[number], check_finite=False)[0]
        return cls(codes, centroids, norms)


def _find_centroids(sample: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the centres of CENTROIDS clusters of vectors; if fewer of them are different, these, and zeros."""
    from scipy.cluster.vq import kmeans2

    distinct = np.unique(sample, axis=0)
    if len(distinct) <= CENTROIDS:
        return np.pad(distinct, [(0, CENTROIDS - len(distinct)), (0, 0)])
    start = distinct[np.random.default_rng(1).choice(len(distinct), CENTROIDS, replace=False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a cluster without vectors keeps its centre
        centroids: NDArray[np.float32] = kmeans2(sample, start, iter=ROUNDS, minit="matrix", check_finite=False)[0]
    return centroids
