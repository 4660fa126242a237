"""Binary trees compared by expected code length, which is the cost of hierarchical softmax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from w2v._errors import W2VError
from w2v._losses.hierarchical_softmax import build_tree
from w2v._system.files import PathLike
from w2v._text.vocabulary import Vocabulary
from w2v._vectors.unknown_words import UnknownWordError


@dataclass(frozen=True)
class TreeLength:
    """The code lengths of a tree over V words.

    Attributes:
        name: The name of the tree, or its file.
        expected_bits: The mean code length over all occurrences of words. This is the mean number of output rows of a
            prediction.
        longest_bits: The length of the longest code.
        speed_up: V / expected_bits, because the full softmax uses V rows.
    """

    name: str
    expected_bits: float
    longest_bits: int
    speed_up: float


@dataclass(frozen=True)
class WordCodes:
    """The codes of a word.

    Attributes:
        word, count: The word, and how often it occurs.
        information_bits: −log2 of the share that the word has of all occurrences.
        codes: The code of the word in each tree, by the name of the tree.
    """

    word: str
    count: int
    information_bits: float
    codes: dict[str, str]


@dataclass(frozen=True)
class CodeLengths:
    """A comparison of trees over the same vocabulary.

    Attributes:
        vocabulary_size: The number of words.
        tokens: The number of occurrences of all words.
        entropy_bits: The entropy of the words. No tree has a smaller expected length, and the expected length of
            Huffman's tree is less than one bit larger.
        huffman_speed_up: The expected length of the balanced tree divided by the expected length of Huffman's tree.
        trees: The trees.
        words: The codes of the words that were asked for.
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
    """Compare the balanced tree, Huffman's tree and, if it is neither, `tree`.

    Args:
        vocabulary: The words and their counts.
        tree, tree_vectors: See `w2v train --help`.
        words: The words to show the codes of.

    Raises:
        UnknownWordError: Some of `words` are not in the vocabulary.
        W2VError: The vocabulary has one word, or the tree cannot be used.
    """
    if len(vocabulary) < 2:
        raise W2VError(f"the vocabulary has one word, {vocabulary.words[0][:60]!r}: a tree needs at least 2")
    numbers = {word: number for number, word in enumerate(vocabulary.words)}
    unknown = [word for word in words if word not in numbers]
    if unknown:
        raise UnknownWordError(unknown, numbers)
    names = dict.fromkeys(["balanced", "huffman", tree])
    trees = {name: build_tree(vocabulary, name, tree_vectors) for name in names}
    shares = vocabulary.counts / vocabulary.tokens
    information = -np.log2(shares)
    expected = {name: float(shares @ each.lengths) for name, each in trees.items()}
    return CodeLengths(
        vocabulary_size=len(vocabulary),
        tokens=vocabulary.tokens,
        entropy_bits=float(shares @ information),
        huffman_speed_up=expected["balanced"] / expected["huffman"],
        trees=[
            TreeLength(name, expected[name], int(each.lengths.max()), len(vocabulary) / expected[name])
            for name, each in trees.items()
        ],
        words=[
            WordCodes(
                word,
                int(vocabulary.counts[numbers[word]]),
                float(information[numbers[word]]),
                {name: each.code(numbers[word]) for name, each in trees.items()},
            )
            for word in words
        ],
    )
