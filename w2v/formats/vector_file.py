"""The content of a vector file in any format, and the checks that all formats share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError, counted
from w2v.formats import storage
from w2v.formats.bfloat16 import first_not_finite
from w2v.formats.header import ModelHeader
from w2v.system.files import Errors, PathLike
from w2v.text.words import MAX_COUNT, Words

Array = NDArray[Any]

# The tensors that training and evaluation compute with; others are not checked, such as attributes that programs set.
LEARNT = re.compile(r"inputs|outputs|ngrams|syn1|syn1neg|parameter\..*", re.DOTALL)
# Vectors of words that share rows may take so many bytes, or so many times their file: spaCy's take 20 times as many.
MAX_UNPACKED, MAX_SHARED = 16 << 20, 50


@dataclass(frozen=True)
class VectorFile:
    """The content of a vector file.

    Attributes:
        words: V words.
        vectors: float32, bfloat16 or float16 (V, D), or int8 as Rounded.
        counts: int64 (V,), how often each word occurred, or None if the file has none.
        tensors: the other arrays of a native file, by name.
        header: what a file holds besides words and arrays.
    """

    words: Words
    vectors: Array
    counts: NDArray[np.int64] | None = None
    tensors: dict[str, Array] = field(default_factory=dict)
    header: ModelHeader = field(default_factory=ModelHeader)

    def first(self, rows: int) -> VectorFile:
        """The first words, vectors and counts, without the tensors, which belong to all words."""
        words = self.words.take(np.arange(min(rows, len(self.words))))
        counts = None if self.counts is None else self.counts[:rows]
        return VectorFile(words, self.vectors[:rows], counts, {}, self.header)


def check_content(path: PathLike, content: VectorFile) -> None:
    """Raise W2VError for content that could not be read again from a file."""
    _check_shapes(f"{path}: not written", content)
    _check_values(path, content)
    check_no_repeats(path, content.words)


def checked(path: PathLike, content: VectorFile, errors: Errors | None) -> VectorFile:
    """Content that was read from a file, with its words as UTF-8. Raises W2VError if it is inconsistent."""
    _check_shapes(f"{path}: damaged", content)
    content = replace(content, words=checked_words(path, content.words, errors))
    _check_values(path, content)
    return content


def _check_shapes(place: str, content: VectorFile) -> None:
    words, shape, counts = counted(len(content.words), "word"), content.vectors.shape, content.counts
    if len(shape) != 2 or 0 in shape or shape[0] != len(content.words):
        raise W2VError(f"{place}: {words}, vectors of shape {shape}")
    if counts is not None and counts.shape != shape[:1]:
        raise W2VError(f"{place}: {words}, counts of shape {counts.shape}")


def _check_values(path: PathLike, content: VectorFile) -> None:
    """Raise W2VError for impossible counts and for NaN or infinite values, naming the word if there is one."""
    words = content.words
    if content.counts is not None:
        check_counts(f"{path}: ", words, content.counts)
    row = first_not_finite(content.vectors)
    if row >= 0:
        raise W2VError(f"{path}: row {row + 1} ({words[row][:60]!r}) holds NaN or infinite values")
    for name, array in content.tensors.items():
        if LEARNT.fullmatch(name) and storage.is_matrix(array) and array.ndim and array.size:
            matrix = array if array.ndim == 2 else array.reshape(-1, array.shape[-1])
            if (row := first_not_finite(matrix)) >= 0:
                raise W2VError(f"{path}: row {row + 1} of {name} holds NaN or infinite values")


def check_counts(place: str, words: Sequence[str], counts: NDArray[Any]) -> None:
    """Raise W2VError if a count (V,) is negative or not a number, or if their sum is more than an int64 holds.

    `place` begins the message.
    """
    if counts.size and counts.dtype.kind not in "iufbO":
        raise W2VError(f"{place}counts of type {counts.dtype}: they must be whole numbers")
    if counts.size and counts.min() < 0:
        row = int(counts.argmin())
        raise W2VError(f"{place}row {row + 1} ({words[row][:60]!r}) has a negative count, {counts[row]}")
    if float(counts.sum(dtype=np.float64)) > MAX_COUNT:
        raise W2VError(f"{place}the counts add up to more than {MAX_COUNT}")


def vectors_of_rows(path: PathLike, matrix: Array, rows: NDArray[Any], size: int) -> NDArray[np.float32]:
    """The vectors of words whose rows of a matrix are given, some by several words, float32 (V, D).

    Raises W2VError where they would be more than a file of `size` bytes may hold.
    """
    if 4 * len(rows) * matrix.shape[1] > max(MAX_UNPACKED, MAX_SHARED * size):
        raise W2VError(
            f"{path}: refused: {counted(len(rows), 'word')} share {counted(len(matrix), 'vector')}, and would take "
            f"more than {MAX_SHARED} times its size"
        )
    found: NDArray[np.float32] = np.take(matrix, rows, axis=0).astype(np.float32, copy=False)
    return found


def check_no_repeats(path: PathLike, words: Words) -> None:
    """Raise W2VError if a word appears twice."""
    rows = words.repeated()
    if rows:
        first, second = rows
        raise W2VError(f"{path}: the word {words[first][:60]!r} appears twice, in rows {first + 1} and {second + 1}")


def checked_words(path: PathLike, words: Words, errors: Errors | None) -> Words:
    """The words as UTF-8; with errors None, as they are.

    Raises W2VError for a malformed word (with errors "strict") or one that appears twice.
    """
    if errors is None:
        return words
    if not words.is_utf8():
        if errors == "strict":
            word = words.first_not_utf8()
            try:
                word.decode()
            except UnicodeDecodeError as error:
                hint = 'give --errors (errors=) "replace" or "ignore"'
                hint = "the file is damaged, or no model" if b"\0" in word else hint
                raise W2VError(f"{path}: the word {word[:60]!r} is not valid UTF-8: {hint}") from error
        words = words.decoded(errors)
    check_no_repeats(path, words)
    return words
