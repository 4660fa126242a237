"""Binary trees with the words as leaves, for hierarchical softmax: Huffman's, balanced, clustered, or from codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.detect import lines
from w2v.errors import W2VError, pluralise
from w2v.losses import _trees
from w2v.system.files import PathLike
from w2v.text.vocabulary import Vocabulary
from w2v.vectors.cosines import unit
from w2v.vectors.keyed import KeyedVectors

TWO_MEANS_ROUNDS = 5
MAX_CODE_LENGTH = 1024  # bits
# All codes together have at most MAX_CODE_BITS + MAX_MEAN_CODE_LENGTH · V bits; Huffman's have about 30 each.
MAX_CODE_BITS, MAX_MEAN_CODE_LENGTH = 1 << 22, 64


@dataclass(frozen=True)
class Tree:
    """A binary tree whose leaves are the words (Morin & Bengio 2005).

    Nodes 0 to V − 1 are the words, and V to 2V − 2 the inner nodes, each after its children, so the root is last.
    Inner node V + k is row k of the output matrix: the last rows are used most.

    Attributes:
        parents: int32 (2V − 2,): the parent of each node except the root.
        bits: int8 (2V − 2,): which branch of its parent each node is, 0 or 1.
        starts: int64 (V + 1,): word w's path is nodes[starts[w]:starts[w + 1]], from the root down.
        nodes: int32: row of each inner node on the path.
        codes: int8: the branch taken there.
    """

    parents: NDArray[np.int32]
    bits: NDArray[np.int8]
    starts: NDArray[np.int64]
    nodes: NDArray[np.int32]
    codes: NDArray[np.int8]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Code lengths, int64 (V,), in bits."""
        return np.diff(self.starts)

    @property
    def depths(self) -> NDArray[np.int64]:
        """Edges between the root and each node, int64 (2V − 1,)."""
        return _depths(self.parents)

    def above(self, words: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The nodes of these words and all above them, int64, ascending."""
        nodes = [words] + [len(self.lengths) + self.nodes[self.starts[word] : self.starts[word + 1]] for word in words]
        return np.unique(np.concatenate(nodes))

    def code(self, word: int) -> str:
        return "".join(map(str, self.codes[self.starts[word] : self.starts[word + 1]]))

    @classmethod
    def of(cls, parents: NDArray[np.int32], bits: NDArray[np.int8]) -> Tree:
        size = len(parents) // 2 + 1
        depths = _depths(parents)
        if depths.max() > MAX_CODE_LENGTH:
            raise W2VError(f"the tree has {depths.max()} levels: at most {MAX_CODE_LENGTH} are possible")
        starts = np.concatenate([[0], np.cumsum(depths[:size])])
        if starts[-1] > MAX_CODE_BITS + MAX_MEAN_CODE_LENGTH * size:
            raise W2VError(
                f"the codes of the tree have {starts[-1] / size:.0f} bits on average: they take too much memory"
            )
        layer = cls(parents, bits, starts, np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int8))
        _trees.fill_paths(parents, bits, layer.starts, layer.nodes, layer.codes)
        return layer

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray[Any]], size: int) -> Tree:
        """The tree of a file. Raises W2VError unless it is one over `size` words."""
        parents, bits = (tensors.get(name, np.empty(0)) for name in ("tree_parents", "tree_bits"))
        nodes = np.arange(2 * size - 2)
        if (
            parents.dtype != np.int32
            or bits.dtype != np.int8
            or not parents.shape == bits.shape == nodes.shape
            or (bits >> 1).any()  # neither 0 nor 1
            or (parents <= np.maximum(nodes, size - 1)).any()
            or (np.sort(2 * parents.astype(np.int64) + bits) != np.arange(2 * size, 4 * size - 2)).any()
        ):
            raise W2VError(f"the model's tree is damaged: it is not a binary tree over its {size} words")
        return cls.of(np.ascontiguousarray(parents), np.ascontiguousarray(bits))

    @classmethod
    def huffman(cls, counts: NDArray[np.int64]) -> Tree:
        """Huffman's tree (Mikolov et al. 2013a, section 3.3). `counts` is int64 (V,), in descending order, V >= 2."""
        size = len(counts)
        parents, bits = np.empty(2 * size - 2, np.int32), np.empty(2 * size - 2, np.int8)
        _trees.fill_huffman(counts, np.empty(size - 1, np.int64), parents, bits)
        return cls.of(parents, bits)

    @classmethod
    def balanced(cls, size: int) -> Tree:
        """The tree whose levels are full except the last. The first of the `size` words have the shorter codes."""
        heap = np.arange(1, 2 * size - 1)  # positions in level order, without the root, 0; inner nodes come first
        node = np.where(heap < size - 1, 2 * size - 2 - heap, heap - (size - 1))
        parents, bits = np.empty(2 * size - 2, np.int32), np.empty(2 * size - 2, np.int8)
        parents[node] = 2 * size - 2 - (heap - 1) // 2
        bits[node] = (heap - 1) % 2
        return cls.of(parents, bits)

    @classmethod
    def from_codes(cls, codes: list[str], vocabulary: Vocabulary, place: str = "") -> Tree:
        """The tree in which word w of the vocabulary has the code codes[w], of characters 0 and 1.

        Raises W2VError, beginning with `place`, unless they are a full prefix code: no code is a prefix of another,
        and every branch ends in a word.
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
            if len(visits) > 2 * len(codes) + MAX_CODE_LENGTH:  # a full tree has fewer nodes than words
                raise W2VError(f"{place}the tree is not full: codes have more than {2 * len(codes)} prefixes")
        for prefix in visits:
            if prefix in leaves:
                whose = vocabulary.words[leaves[prefix]]
                raise W2VError(f"{place}code {prefix} of {whose!r} is a prefix of another code")
            for branch in (prefix + "0", prefix + "1"):
                if branch not in visits and branch not in leaves:
                    raise W2VError(f"{place}no code begins with {branch}: the tree is not full")
        rising = sorted(visits, key=lambda prefix: (visits[prefix], -len(prefix)))
        numbers = leaves | {prefix: len(codes) + k for k, prefix in enumerate(rising)}
        parents, bits = np.empty(2 * len(codes) - 2, np.int32), np.empty(2 * len(codes) - 2, np.int8)
        for prefix, number in numbers.items():
            if prefix:
                parents[number], bits[number] = numbers[prefix[:-1]], prefix[-1] == "1"
        return cls.of(parents, bits)


def _depths(parents: NDArray[np.int32]) -> NDArray[np.int64]:
    depths = np.empty(len(parents) + 1, np.int64)
    _trees.fill_depths(parents, depths)
    return depths


def read_codes(path: PathLike) -> Iterator[tuple[str, str, str]]:
    """Yield the place (file and line, for messages), the word and the code of each line that is not empty.

    A code consists of zeros and ones. Raises W2VError for a file that cannot be read and for a line of another form.
    """
    for number, line in lines(path):
        fields, place = line.split(None, 2), f"{path}, line {number}"
        if not fields:
            continue
        if len(fields) != 2 or fields[1].strip(b"01") or len(fields[1]) > MAX_CODE_LENGTH:
            raise W2VError(f"{place}: not a word and its code of at most {MAX_CODE_LENGTH} zeros and ones")
        try:
            word = fields[0].decode()
        except UnicodeDecodeError:
            raise W2VError(f"{place}: {fields[0][:60]!r} is not UTF-8") from None
        yield place, word, fields[1].decode()


def codes_of_words(codes: Iterable[tuple[str, str, str]], vocabulary: Vocabulary, source: str) -> list[str]:
    """The code of each word of the vocabulary, from (place, word, code) of each; see read_codes.

    Raises W2VError if a word is missing, repeated or unknown.
    """
    numbers = {word: number for number, word in enumerate(vocabulary.words)}
    found = [""] * len(vocabulary)
    for place, word, code in codes:
        if word not in numbers:
            raise W2VError(f"{place}: {word[:60]!r} is not in the vocabulary; a tree must have exactly its words")
        if found[numbers[word]]:
            raise W2VError(f"{place}: {word[:60]!r} already has a code")
        found[numbers[word]] = code
    missing = [word for word, code in zip(vocabulary.words, found, strict=True) if not code]
    if missing:
        raise W2VError(
            f"{source}: no code for {pluralise(len(missing), 'word')} of the vocabulary, for example "
            f"{missing[0][:60]!r}"
        )
    return found


def cluster(vocabulary: Vocabulary, known: KeyedVectors, source: str) -> list[str]:
    """Codes by recursive two-way clustering of vectors (Mnih & Hinton 2008, section 4).

    Each set of words is sorted along the line between its two means and split so that half of its occurrences are on
    either side. So similar words share prefixes, and frequent words have short codes. Words that are not in the model
    have zero vectors.
    """
    vectors = np.zeros((len(vocabulary), known.vector_size), np.float32)
    found = [(row, known.key_to_index[word]) for row, word in enumerate(vocabulary.words) if word in known]
    if not found:
        raise W2VError(f"{source}: it has none of the vocabulary's words")
    rows, indices = map(list, zip(*found, strict=True))
    vectors[rows] = unit(known.vectors[indices])
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
    """The direction between the two means (2-means clustering) of n vectors, float32 (n, D): (D,)."""
    away = vectors[np.argmax(((vectors - vectors.mean(axis=0)) ** 2).sum(axis=1))]
    line: NDArray[np.float32] = away - vectors.mean(axis=0)
    middle = vectors.mean(axis=0)
    for _ in range(TWO_MEANS_ROUNDS):
        beyond = (vectors - middle) @ line > 0
        if beyond.all() or not beyond.any():
            break
        ends = vectors[beyond].mean(axis=0), vectors[~beyond].mean(axis=0)
        line, middle = ends[0] - ends[1], (ends[0] + ends[1]) / 2
    return line
