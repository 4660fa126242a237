"""The words of a picture: how many it has by default, which are left out, and their clusters."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2, vq

from w2v.vectors.cosines import Vector

Groups = Literal["sections", "clusters", "frequency"]

SKIPPED = 100  # of the most frequent words, which say little about a model: the, of, and
WORDS = 200  # of a map, by default
PAIRS = 20  # of a section of analogy questions, by default
CLUSTERS = 8
WORDS_OF_A_CLUSTER = 5  # at least, on average, by default
NAMING_WORDS = 3  # after which a cluster is named: those nearest to its middle
ITERATIONS = 50  # of k-means


def skipped(words: int, top: int) -> int:
    """Return how many of the most frequent words are left out by default: SKIPPED, if `top` words remain then."""
    return max(0, min(SKIPPED, words - top))


def clusters_of(words: Sequence[str], rows: Vector, clusters: int, seed: int) -> tuple[NDArray[np.int64], list[str]]:
    """The cluster of each of n words with the unit vectors `rows` (n, D), int64 (n,), and the names of the clusters."""
    numbers = k_means(rows, clusters, seed)
    names = []
    for number in range(numbers.max() + 1):
        members = np.flatnonzero(numbers == number)
        cosines = rows[members] @ rows[members].mean(axis=0)
        nearest = members[np.argsort(-cosines, kind="stable")[:NAMING_WORDS]]
        names.append(", ".join(words[place] for place in nearest))
    return numbers, names


def nearest_cluster(rows: Vector, members: Vector, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
    """The cluster of each of n rows (n, D) by its nearest mean, int32 (n,), from the clusters of m members (m, D)."""
    means = np.stack([members[numbers == number].mean(axis=0) for number in range(numbers.max() + 1)])
    found: NDArray[np.int32] = vq(rows, means)[0]
    return found


def k_means(rows: Vector, clusters: int, seed: int) -> NDArray[np.int64]:
    """The cluster of each of n rows (n, D), int64 (n,), by k-means from k-means++ (Arthur & Vassilvitskii 2007).

    There are at most as many clusters as different rows; they are numbered from 0 in the order of their first rows.
    """
    random = np.random.default_rng(seed)
    matrix = rows.astype(np.float64)
    centres = matrix[:1]
    while len(centres) < clusters and (weights := vq(matrix, centres)[1] ** 2).any():
        centres = np.vstack([centres, matrix[random.choice(len(matrix), p=weights / weights.sum())]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a cluster has become empty, which is left out
        found = kmeans2(matrix, centres, minit="matrix", iter=ITERATIONS)[1]
    _, first, numbers = np.unique(found, return_index=True, return_inverse=True)
    renumbered: NDArray[np.int64] = np.argsort(np.argsort(first))[numbers]
    return renumbered
