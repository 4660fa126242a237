"""Binary trees with words as leaves, for hierarchical softmax: Huffman's, balanced, clustered, or from codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._detect import read_lines
from w2v._errors import W2VError, pluralise
from w2v._losses import _tree
from w2v._system.files import PathLike
from w2v._text.vocabulary import Vocabulary
from w2v._vectors.cosines import unit
from w2v._vectors.keyed import KeyedVectors

TWO_MEANS_ROUNDS = 5
MAX_CODE_LENGTH = 1024  # bits


@dataclass(frozen=True)
class Tree:
    """A binary tree with words as leaves (Morin & Bengio 2005).

    Nodes 0 to V − 1 are the words, and nodes V to 2V − 2 are the inner nodes. Each inner node comes after its children,
    so the root is last. Inner node V + k has row k of the output matrix, so the last rows are used most.

    Attributes:
        parents: The parent of each node except the root, int32 (2V − 2,).
        bits: The branch of the parent that leads to each node, 0 or 1, int8 (2V − 2,).
        starts: Where the path of each word begins, int64 (V + 1,): the path of word w is
            nodes[starts[w]:starts[w + 1]], from the root down.
        nodes: The output row of each inner node on a path, int32.
        codes: The branch that the path takes at each of these nodes, int8.
    """

    parents: NDArray[np.int32]
    bits: NDArray[np.int8]
    starts: NDArray[np.int64]
    nodes: NDArray[np.int32]
    codes: NDArray[np.int8]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The code length of each word in bits, int64 (V,)."""
        return np.diff(self.starts)

    @property
    def depths(self) -> NDArray[np.int64]:
        """The number of edges between the root and each node, int64 (2V − 1,)."""
        return _depths(self.parents)

    def above(self, words: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the nodes of these words and all nodes above them, int64, in ascending order."""
        nodes = [words] + [len(self.lengths) + self.nodes[self.starts[word] : self.starts[word + 1]] for word in words]
        return np.unique(np.concatenate(nodes))

    def code(self, word: int) -> str:
        """Return the code of a word, as zeros and ones."""
        return "".join(map(str, self.codes[self.starts[word] : self.starts[word + 1]]))

    @classmethod
    def from_parents(cls, parents: NDArray[np.int32], bits: NDArray[np.int8]) -> Tree:
        """Return the tree with these parents and bits, and compute its paths.

        Raises:
            W2VError: The codes are too long.
        """
        size = len(parents) // 2 + 1
        depths = _depths(parents)
        if depths.max() > MAX_CODE_LENGTH:
            raise W2VError(
                f"the tree has {depths.max()} levels: at most {MAX_CODE_LENGTH} are possible; choose another tree"
            )
        starts = np.concatenate([[0], np.cumsum(depths[:size])])
        tree = cls(parents, bits, starts, np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int8))
        _tree.fill_paths(parents, bits, tree.starts, tree.nodes, tree.codes)
        return tree

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray[Any]], size: int) -> Tree:
        """Return the tree of a model file.

        Args:
            tensors: The tensors of the file.
            size: The number of words.

        Raises:
            W2VError: The tensors do not hold a binary tree over `size` words.
        """
        parents, bits = (tensors.get(name, np.empty(0)) for name in ("tree_parents", "tree_bits"))
        nodes = np.arange(2 * size - 2)
        if (
            parents.dtype != np.int32
            or bits.dtype != np.int8
            or not parents.shape == bits.shape == nodes.shape
            or (bits >> 1).any()  # A bit is neither 0 nor 1.
            or (parents <= np.maximum(nodes, size - 1)).any()
            or (np.sort(2 * parents.astype(np.int64) + bits) != np.arange(2 * size, 4 * size - 2)).any()
        ):
            raise W2VError(f"the model's tree is damaged: it is not a binary tree over its {size} words")
        return cls.from_parents(np.ascontiguousarray(parents), np.ascontiguousarray(bits))

    @classmethod
    def huffman(cls, counts: NDArray[np.int64]) -> Tree:
        """Return Huffman's tree (Mikolov et al. 2013a, section 3.3).

        Args:
            counts: The count of each word in descending order, int64 (V,), V ≥ 2.
        """
        size = len(counts)
        parents, bits = np.empty(2 * size - 2, np.int32), np.empty(2 * size - 2, np.int8)
        _tree.fill_huffman(counts, np.empty(size - 1, np.int64), parents, bits)
        return cls.from_parents(parents, bits)

    @classmethod
    def balanced(cls, size: int) -> Tree:
        """Return the tree over `size` words with full levels, except the last. The first words have shorter codes."""
        heap = np.arange(1, 2 * size - 1)  # in level order without the root, 0: first the inner nodes, then words
        node = np.where(heap < size - 1, 2 * size - 2 - heap, heap - (size - 1))
        parents, bits = np.empty(2 * size - 2, np.int32), np.empty(2 * size - 2, np.int8)
        parents[node] = 2 * size - 2 - (heap - 1) // 2
        bits[node] = (heap - 1) % 2
        return cls.from_parents(parents, bits)

    @classmethod
    def from_codes(cls, codes: list[str], vocabulary: Vocabulary, place: str = "") -> Tree:
        """Return the tree that gives word w of the vocabulary the code codes[w].

        Args:
            codes: Codes of zeros and ones.
            vocabulary: The words and their counts.
            place: What error messages begin with.

        Raises:
            W2VError: The codes are not a full prefix code: a code is a prefix of another code, or a branch does not end
                in a word.
        """
        visits: dict[str, int] = {}
        leaves = {code: word for word, code in enumerate(codes)}
        for word, code in enumerate(codes):
            if leaves[code] != word:
                both = vocabulary.words[word], vocabulary.words[leaves[code]]
                raise W2VError(f"{place}two words have code {code}, {both[0]!r} and {both[1]!r}")
        for code, count in zip(codes, vocabulary.counts.tolist(), strict=True):
            for length in range(len(code)):
                visits[code[:length]] = visits.get(code[:length], 0) + count
            if len(visits) > 2 * len(codes) + MAX_CODE_LENGTH:  # A full tree has fewer inner nodes than words.
                raise W2VError(f"{place}the tree is not full: codes have more than {2 * len(codes)} prefixes")
        for prefix in visits:
            if prefix in leaves:
                word_of_prefix = vocabulary.words[leaves[prefix]]
                raise W2VError(f"{place}code {prefix} of {word_of_prefix!r} is a prefix of another code")
            for branch in (prefix + "0", prefix + "1"):
                if branch not in visits and branch not in leaves:
                    raise W2VError(f"{place}no code begins with {branch}: the tree is not full")
        by_visits = sorted(visits, key=lambda prefix: (visits[prefix], -len(prefix)))  # The root is last.
        numbers = leaves | {prefix: len(codes) + k for k, prefix in enumerate(by_visits)}
        parents, bits = np.empty(2 * len(codes) - 2, np.int32), np.empty(2 * len(codes) - 2, np.int8)
        for prefix, number in numbers.items():
            if prefix:
                parents[number], bits[number] = numbers[prefix[:-1]], prefix[-1] == "1"
        return cls.from_parents(parents, bits)


def _depths(parents: NDArray[np.int32]) -> NDArray[np.int64]:
    depths = np.empty(len(parents) + 1, np.int64)
    _tree.fill_depths(parents, depths)
    return depths


def read_codes(path: PathLike, vocabulary: Vocabulary) -> list[str]:
    """Read a file with a word and its code of zeros and ones per line. Empty lines are skipped.

    Returns:
        The code of each word, in the order of the vocabulary.

    Raises:
        W2VError: The file cannot be read, a line has another form, or a word is missing, repeated or unknown.
    """
    numbers = {word: number for number, word in enumerate(vocabulary.words)}
    codes = [""] * len(vocabulary)
    for line_number, line in read_lines(path):
        fields, place = line.split(None, 2), f"{path}, line {line_number}"
        if not fields:
            continue
        if len(fields) != 2 or fields[1].strip(b"01") or len(fields[1]) > MAX_CODE_LENGTH:
            raise W2VError(f"{place}: not a word and its code of at most {MAX_CODE_LENGTH} zeros and ones")
        try:
            word = fields[0].decode()
        except UnicodeDecodeError:
            raise W2VError(f"{place}: {fields[0][:60]!r} is not UTF-8") from None
        if word not in numbers:
            raise W2VError(f"{place}: {word[:60]!r} is not in the vocabulary; a tree must have exactly its words")
        if codes[numbers[word]]:
            raise W2VError(f"{place}: {word[:60]!r} already has a code")
        codes[numbers[word]] = fields[1].decode()
    if missing := [word for word, code in zip(vocabulary.words, codes, strict=True) if not code]:
        raise W2VError(
            f"{path}: no code for {pluralise(len(missing), 'word')} of the vocabulary, for example {missing[0][:60]!r}"
        )
    return codes


def cluster(vocabulary: Vocabulary, model: KeyedVectors, source: str) -> list[str]:
    """Return a code for each word by recursive two-way clustering of vectors (Mnih & Hinton 2008, section 4).

    Each set of words is sorted along the line between its two means, and split so that both halves have about as many
    occurrences. So similar words share prefixes, and frequent words have short codes. Words that are not in the model
    have zero vectors.

    Args:
        vocabulary: The words and their counts.
        model: The vectors to cluster.
        source: The name of the model in messages.

    Raises:
        W2VError: The model has no word of the vocabulary.
    """
    vectors = np.zeros((len(vocabulary), model.vector_size), np.float32)
    shared = [(row, model.key_to_index[word]) for row, word in enumerate(vocabulary.words) if word in model]
    if not shared:
        raise W2VError(f"{source}: it has none of the vocabulary's words")
    rows, indices = map(list, zip(*shared, strict=True))
    vectors[rows] = unit(model.vectors[indices])
    counts = vocabulary.counts.astype(np.float64)
    codes = [""] * len(vocabulary)
    sets = [("", np.arange(len(vocabulary)))]
    while sets:
        code, words = sets.pop()
        if len(words) == 1:
            codes[words[0]] = code
            continue
        ordered = words[np.argsort(vectors[words] @ direction(vectors[words]), kind="stable")]
        sums = np.cumsum(counts[ordered])
        half = 1 + int(np.argmin(np.abs(sums[:-1] - sums[-1] / 2)))
        sets += [(code + "0", ordered[:half]), (code + "1", ordered[half:])]
    return codes


def direction(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divide vectors into two clusters by 2-means clustering, and return the direction from one mean to the other.

    Args:
        vectors: float32 (n, D).

    Returns:
        float32 (D,), of any length.
    """
    middle = vectors.mean(axis=0)
    farthest = vectors[np.argmax(((vectors - middle) ** 2).sum(axis=1))]
    line: NDArray[np.float32] = farthest - middle
    for _ in range(TWO_MEANS_ROUNDS):
        beyond = (vectors - middle) @ line > 0
        if beyond.all() or not beyond.any():
            break
        ends = vectors[beyond].mean(axis=0), vectors[~beyond].mean(axis=0)
        line, middle = ends[0] - ends[1], (ends[0] + ends[1]) / 2
    return line
