"""Hierarchical softmax: a logistic regression at each inner node of a binary tree (Morin & Bengio 2005).

The nodes on the path from the root to a word predict the word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError
from w2v.losses.loss import Alpha, Array, Integers, Loss, LossOptions, Worker
from w2v.losses.rows import grouped, logistic
from w2v.losses.tree import Tree, cluster, codes_of_words, read_codes
from w2v.options import option
from w2v.settings import LOSS
from w2v.system.files import PathLike
from w2v.text.vocabulary import Vocabulary
from w2v.vectors.keyed import load


def clustered_tree(vocabulary: Vocabulary, vectors: PathLike | None) -> Tree:
    if vectors is None:
        raise SettingsError("tree clustered: give tree_vectors, the model whose vectors are to be clustered")
    return Tree.from_codes(cluster(vocabulary, load(vectors), str(vectors)), vocabulary)


# The trees that `TreeOptions.tree` can name, each built from the vocabulary and `TreeOptions.tree_vectors`.
TREES: dict[str, Callable[[Vocabulary, PathLike | None], Tree]] = {
    "huffman": lambda vocabulary, _: Tree.huffman(vocabulary.counts),
    "balanced": lambda vocabulary, _: Tree.balanced(len(vocabulary)),
    "clustered": clustered_tree,
}


@dataclass(frozen=True, kw_only=True)
class TreeOptions(LossOptions):
    tree: str = option(
        "huffman",
        f"The tree: {', '.join(TREES)}, or a file with a word and its code per line.",
        LOSS,
        fixed=True,
    )
    tree_vectors: str | None = option(
        None, "Model whose vectors --tree clustered clusters.", LOSS, default_text="none", fixed=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.tree == "clustered") != (self.tree_vectors is not None):
            raise SettingsError(
                "tree clustered and tree_vectors, the model to cluster, need each other: give both or neither"
            )


class HierarchicalSoftmax(Loss):
    """Inner node V + k of the tree has output row k. The nodes near the root are in every prediction, so the steps of
    the context words of a window are sequential.

    data: starts, nodes and codes, the paths; see Tree.
    """

    name = branch = "hs"
    help = "hierarchical softmax"
    kernels = ("cython", "numba")
    curvature = 0.25  # that of the logistic loss where both codes are as likely, as at the root
    supports_deterministic = True
    alpha = Alpha(0.025, 0.05)
    options_class = TreeOptions
    options: TreeOptions
    storages = ("float32", "bf16")
    fixed_vocabulary = "its output rows belong to nodes of a tree, in which new words have no leaf"
    no_word_outputs = "output rows belong to nodes of the tree, not to words"
    sequential = True
    link = staticmethod(logistic)

    def prepare(self) -> None:
        self._set(tree_of(self.vocabulary, self.options.tree, self.options.tree_vectors))

    def restore(self, tensors: Mapping[str, Array]) -> None:
        if "tree_parents" not in tensors:  # do not read the file of options.tree instead
            raise W2VError("tree_parents is missing")
        self._set(Tree.from_tensors(tensors, len(self.vocabulary)))

    def _set(self, tree: Tree) -> None:
        self.tree = tree
        self.data = {"starts": tree.starts, "nodes": tree.nodes, "codes": tree.codes}
        self.tensors = {"tree_parents": tree.parents, "tree_bits": tree.bits}
        self.rows = len(self.vocabulary) - 1
        self.max_rows, self.expected_rows = int(tree.lengths.max()), float(tree.lengths.mean())

    def updates(self, words: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self.tree.nodes, np.repeat(words, self.tree.lengths), self.rows).astype(np.float64)

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        start, end = s.data.starts[centre], s.data.starts[centre + 1]
        for j in range(end - start):
            s.rows[j] = s.data.nodes[start + j]
            s.target[j] = 1 - s.data.codes[start + j]
        return end - start

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        return self._from_the_root(parameters["outputs"], rows, np.arange(2 * len(self.vocabulary) - 1))

    def log_probabilities_of(
        self, parameters: Mapping[str, Array], rows: Array, indices: Integers, words: Integers, common: Integers
    ) -> tuple[Array, Array]:
        """Computes only the scores of the nodes on each word's path."""
        tree, outputs, logs = self.tree, parameters["outputs"], np.empty(len(words), rows.dtype)
        for word, positions in grouped(words):
            path = slice(tree.starts[word], tree.starts[word + 1])
            scores = rows[indices[positions]] @ outputs[tree.nodes[path]].T
            logs[positions] = log_logistic((1 - 2 * tree.codes[path]) * scores).sum(axis=1)
        return logs, self._from_the_root(outputs, rows, tree.above(common))

    def _from_the_root(self, outputs: Array, rows: Array, nodes: Integers) -> Array:
        """log p of the words among these nodes, (N, U). Nodes are in ascending order, each with those above it."""
        tree, size = self.tree, len(self.vocabulary)
        depths = tree.depths[nodes]
        logs = np.zeros((len(nodes), len(rows)), rows.dtype)
        for level in np.split(np.argsort(depths), np.cumsum(np.bincount(depths)))[1:-1]:  # from the root down
            above = tree.parents[nodes[level]]
            scores = outputs[above - size] @ rows.T
            scores *= 1 - 2 * tree.bits[nodes[level], None]
            logs[level] = logs[np.searchsorted(nodes, above)] + log_logistic(scores)
        return logs[: np.searchsorted(nodes, size)].T


def tree_of(vocabulary: Vocabulary, name: str, vectors: PathLike | None = None) -> Tree:
    """The tree that `TreeOptions.tree` names. Raises W2VError for a file that cannot be used."""
    if build := TREES.get(name):
        return build(vocabulary, vectors)
    return Tree.from_codes(codes_of_words(read_codes(name), vocabulary, name), vocabulary, f"{name}: ")


def log_logistic(scores: Array) -> Array:
    """log σ of each score, exact even if σ underflows."""
    logs: Array = np.minimum(scores, 0) - np.log1p(np.exp(-np.abs(scores)))
    return logs
