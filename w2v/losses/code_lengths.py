"""Comparison of binary trees by expected code length, the cost of hierarchical softmax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from w2v.errors import W2VError
from w2v.losses.hierarchical_softmax import tree_of
from w2v.system.files import PathLike
from w2v.text.vocabulary import Vocabulary
from w2v.vectors.unknown_words import UnknownWordError


@dataclass(frozen=True)
class TreeLength:
    """A tree over V words.

    `expected_bits` is the mean code length over all occurrences, that is, the mean number of rows of a prediction;
    `speed_up` is V / expected_bits, since the full softmax uses V rows; `longest_bits` is the length of the longest
    code.
    """

    name: str
    expected_bits: float
    longest_bits: int
    speed_up: float


@dataclass(frozen=True)
class WordCodes:
    """A word, its count, −log2 of its share of all occurrences, and its codes by the name of the tree."""

    word: str
    count: int
    information_bits: float
    codes: dict[str, str]


@dataclass(frozen=True)
class CodeLengths:
    """Trees over a vocabulary whose words occur `tokens` times in all.

    The expected length of every tree is at least `entropy_bits`, and that of Huffman's less than one bit more.
    `huffman_speed_up` is the expected length of the balanced tree divided by Huffman's.
    """

    vocabulary_size: int
    tokens: int
    entropy_bits: float
    huffman_speed_up: float
    trees: list[TreeLength]
    words: list[WordCodes]


def code_lengths(
    vocabulary: Vocabulary, tree: str = "huffman", tree_vectors: PathLike | None = None, words: Sequence[str] = ()
) -> CodeLengths:
    """Compare the balanced tree, Huffman's, and `tree` (see Settings) if it is another; with the codes of `words`.

    Raises W2VError for a vocabulary of one word and for a tree that cannot be used, UnknownWordError for unknown words.
    """
    if len(vocabulary) < 2:
        raise W2VError(f"the vocabulary has one word, {vocabulary.words[0][:60]!r}: a tree needs at least 2")
    numbers = {word: number for number, word in enumerate(vocabulary.words)}
    unknown = [word for word in words if word not in numbers]
    if unknown:
        raise UnknownWordError(unknown, numbers)
    names = dict.fromkeys(["balanced", "huffman", tree])
    found = {name: tree_of(vocabulary, name, tree_vectors) for name in names}
    shares = vocabulary.counts / vocabulary.tokens
    information = -np.log2(shares)
    expected = {name: float(shares @ each.lengths) for name, each in found.items()}
    return CodeLengths(
        vocabulary_size=len(vocabulary),
        tokens=vocabulary.tokens,
        entropy_bits=float(shares @ information),
        huffman_speed_up=expected["balanced"] / expected["huffman"],
        trees=[
            TreeLength(name, expected[name], int(each.lengths.max()), len(vocabulary) / expected[name])
            for name, each in found.items()
        ],
        words=[
            WordCodes(
                word,
                int(vocabulary.counts[numbers[word]]),
                float(information[numbers[word]]),
                {name: each.code(numbers[word]) for name, each in found.items()},
            )
            for word in words
        ],
    )
