"""Hierarchical softmax: the nodes on the path from the root of a binary tree to a word predict the word.

Each inner node is a logistic regression. Source: Morin & Bengio 2005.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, W2VError
from w2v._losses.loss import Alpha, Array, Integers, Loss, LossOptions, Worker
from w2v._losses.rows import grouped, logistic
from w2v._losses.tree import Tree, cluster, read_codes
from w2v._options import option
from w2v._settings import LOSS, GeneralOptions
from w2v._system.files import PathLike
from w2v._text.vocabulary import Vocabulary
from w2v._vectors.keyed import load

TREES = "huffman", "balanced", "clustered"  # the trees that `TreeOptions.tree` can name; see build_tree


@dataclass(frozen=True, kw_only=True)
class TreeOptions(LossOptions):
    tree: str = option(
        "huffman", f"The tree: {', '.join(TREES)}, or a file with a word and its code per line.", LOSS, fixed=True
    )
    tree_vectors: str | None = option(
        None, "Model with the vectors that --tree clustered groups into a tree.", LOSS, default_text="none", fixed=True
    )


class HierarchicalSoftmax(Loss):
    """A logistic regression at each inner node of a binary tree.

    Inner node V + k of the tree has output row k. The nodes near the root are part of every prediction, so the context
    words of a window are trained one after the other. `data` holds the paths: starts, nodes and codes of the Tree.
    """

    name = branch = "hs"
    help = "hierarchical softmax"
    alpha = Alpha(0.025, 0.05)
    options_class = TreeOptions
    options: TreeOptions
    storages = ("float32", "bf16")
    fixed_vocabulary = "its output rows belong to nodes of a tree, and new words have no leaf in it"
    no_word_outputs = "output rows belong to nodes of the tree, not to words"
    sequential = True
    link = staticmethod(logistic)

    @classmethod
    def check(cls, settings: GeneralOptions, options: TreeOptions) -> None:
        if (options.tree == "clustered") != (options.tree_vectors is not None):
            raise SettingsError(
                "tree clustered and tree_vectors, the model to cluster, need each other: give both or neither"
            )

    def prepare(self) -> None:
        self._set_tree(build_tree(self.vocabulary, self.options.tree, self.options.tree_vectors))

    def restore(self, tensors: Mapping[str, Array]) -> None:
        if "tree_parents" in tensors:
            self._set_tree(Tree.from_tensors(tensors, len(self.vocabulary)))
        elif self.options.tree == "huffman":  # files of fastText have no tree
            self.prepare()
        else:  # options.tree may be a path from somebody else, which must not be read
            raise W2VError("the model's tree is damaged: tree_parents is missing")

    def _set_tree(self, tree: Tree) -> None:
        self.tree = tree
        self.data = {"starts": tree.starts, "nodes": tree.nodes, "codes": tree.codes}
        self.tensors = {"tree_parents": tree.parents, "tree_bits": tree.bits}
        self.rows = len(self.vocabulary) - 1
        self.max_rows, self.expected_rows = int(tree.lengths.max()), float(tree.lengths.mean())

    def expected_updates(self, words: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self.tree.nodes, np.repeat(words, self.tree.lengths), self.rows).astype(np.float64)

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        start, end = s.data.starts[centre], s.data.starts[centre + 1]
        for j in range(end - start):
            s.rows[j] = s.data.nodes[start + j]
            s.target[j] = 1 - s.data.codes[start + j]
        return end - start

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        return self.descend(parameters["outputs"], rows, np.arange(2 * len(self.vocabulary) - 1))

    def log_probabilities_of(
        self, parameters: Mapping[str, Array], rows: Array, indices: Integers, words: Integers, common: Integers
    ) -> tuple[Array, Array]:
        """Compute only the scores of the nodes on the path of each word."""
        tree, outputs, logs = self.tree, parameters["outputs"], np.empty(len(words), rows.dtype)
        for word, positions in grouped(words):
            path = slice(tree.starts[word], tree.starts[word + 1])
            scores = rows[indices[positions]] @ outputs[tree.nodes[path]].T
            logs[positions] = log_logistic((1 - 2 * tree.codes[path]) * scores).sum(axis=1)
        return logs, self.descend(outputs, rows, tree.above(common))

    def descend(self, outputs: Array, rows: Array, nodes: Integers, floor: float = 0) -> Array:
        """Return log p of the words among these nodes, (N, U), from the root down.

        Args:
            outputs: The output rows.
            rows: Input rows, (N, D).
            nodes: Nodes of the tree in ascending order, with all nodes above them.
            floor: A number to add to the probability of each branch.
        """
        tree, size = self.tree, len(self.vocabulary)
        depths = tree.depths[nodes]
        logs = np.zeros((len(nodes), len(rows)), rows.dtype)
        for level in np.split(np.argsort(depths), np.cumsum(np.bincount(depths)))[1:-1]:
            above = tree.parents[nodes[level]]
            scores = outputs[above - size] @ rows.T
            scores *= 1 - 2 * tree.bits[nodes[level], None]
            branch = log_logistic(scores)
            logs[level] = logs[np.searchsorted(nodes, above)] + (np.log(np.exp(branch) + floor) if floor else branch)
        return logs[: np.searchsorted(nodes, size)].T


def build_tree(vocabulary: Vocabulary, name: str, vectors: PathLike | None = None) -> Tree:
    """Return the tree with a name of TREES, or the tree in a file of codes.

    Args:
        vocabulary: The words and their counts.
        name: The name of the tree or of the file.
        vectors: The model with the vectors to cluster.

    Raises:
        SettingsError: The tree clusters vectors, but the settings name no vectors.
        W2VError: The file, or the model with the vectors, cannot be used.
    """
    if name == "huffman":
        return Tree.huffman(vocabulary.counts)
    if name == "balanced":
        return Tree.balanced(len(vocabulary))
    if name != "clustered":
        return Tree.from_codes(read_codes(name, vocabulary), vocabulary, f"{name}: ")
    if vectors is None:
        raise SettingsError("tree clustered: give tree_vectors, a model with the vectors to cluster")
    return Tree.from_codes(cluster(vocabulary, load(vectors), str(vectors)), vocabulary)


def log_logistic(scores: Array) -> Array:
    """Return log σ of each score, exact even if σ underflows."""
    logs: Array = np.minimum(scores, 0) - np.log1p(np.exp(-np.abs(scores)))
    return logs
