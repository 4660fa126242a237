"""Choose the words of a picture, and group them into clusters."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2, vq

from w2v._vectors.cosines import Floats

Groups = Literal["sections", "clusters", "frequency"]

SKIPPED = 100  # number of most frequent words to leave out by default: "the" and "of" say little about a model
WORDS = 200  # default number of words of a map
PAIRS = 20  # default number of pairs of a section of analogy questions
CLUSTERS = 8  # default number of clusters
WORDS_PER_CLUSTER = 5  # by default, there is at most one cluster per this many words
NAME_WORDS = 3  # a cluster is named after this many words, the ones nearest to its centre
ITERATIONS = 50  # of k-means


def default_skip(words: int, topn: int) -> int:
    """Return how many of the most frequent words to leave out: SKIPPED, or fewer so that `topn` words remain."""
    return max(0, min(SKIPPED, words - topn))


def cluster_words(words: Sequence[str], rows: Floats, clusters: int, seed: int) -> tuple[NDArray[np.int64], list[str]]:
    """Cluster n words by their unit vectors `rows` (n, D). Return each word's cluster, int64 (n,), and the names."""
    numbers = k_means(rows, clusters, seed)
    names = []
    for number in range(numbers.max() + 1):
        members = np.flatnonzero(numbers == number)
        cosines = rows[members] @ rows[members].mean(axis=0)
        nearest = members[np.argsort(-cosines, kind="stable")[:NAME_WORDS]]
        names.append(", ".join(words[member] for member in nearest))
    return numbers, names


def nearest_cluster(rows: Floats, members: Floats, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
    """Assign rows (n, D) to the clusters with the nearest mean.

    Args:
        members: Rows (m, D) with known clusters.
        numbers: The cluster of each member, int64 (m,).

    Returns:
        The cluster of each row, int32 (n,).
    """
    means = np.stack([members[numbers == number].mean(axis=0) for number in range(numbers.max() + 1)])
    nearest: NDArray[np.int32] = vq(rows, means)[0]
    return nearest


def k_means(rows: Floats, clusters: int, seed: int) -> NDArray[np.int64]:
    """Cluster rows (n, D) by k-means, initialised by k-means++ (Arthur & Vassilvitskii 2007).

    Returns:
        The cluster of each row, int64 (n,). Clusters are numbered from 0 in the order of their first rows. There are
        fewer than `clusters` if there are fewer different rows, or if k-means empties a cluster.
    """
    random = np.random.default_rng(seed)
    matrix = rows.astype(np.float64)
    centres = matrix[:1]
    while len(centres) < clusters and (weights := vq(matrix, centres)[1] ** 2).any():
        centres = np.vstack([centres, matrix[random.choice(len(matrix), p=weights / weights.sum())]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # SciPy warns of empty clusters, which np.unique drops
        labels = kmeans2(matrix, centres, minit="matrix", iter=ITERATIONS)[1]
    _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
    renumbered: NDArray[np.int64] = np.argsort(np.argsort(first))[numbers]
    return renumbered
