"""The content of a vector file, independent of its format, and the checks that all formats share."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from w2v._errors import W2VError, pluralise, translate_errors
from w2v._formats import storage
from w2v._formats.bfloat16 import first_non_finite_row
from w2v._formats.header import ModelHeader
from w2v._formats.product_quantiser import QuantisedMatrix
from w2v._system.files import Errors, PathLike
from w2v._text.encodings import UTF_8
from w2v._text.words import MAX_COUNT, Words

log = logging.getLogger("w2v")

Array = NDArray[Any]

# Check only these tensors for NaN: training and evaluation use them. Programs may store anything in other tensors.
PARAMETER_NAMES = re.compile(
    r"(view\.\w+\.|dv\.)?(vectors|inputs|outputs|documents|(text_)?ngrams|syn1|syn1neg|parameter\..*)", re.DOTALL
)
NGRAM_TENSORS = ("ngrams", "ngram_buckets")
# The views of a model. The only view of a model is called WORD_VIEW, also if it has n-grams.
WORD_VIEW, SUBWORD_VIEW = "words", "subwords"


@dataclass(frozen=True)
class VectorFile:
    """The content of a vector file.

    Attributes:
        words: V words.
        vectors: float32, bfloat16 or float16 (V, D), or a CompactMatrix of int8.
        counts: int64 (V,), how often each word occurred, or None if the file has no counts.
        tensors: The other arrays of the file, by name.
        header: Everything besides words and arrays.
        quantised: The codes of the input rows of a quantised classifier, and of its output rows or None; its `vectors`
            and `tensors` are decoded. None for all other content. Only fastText's format stores it.
    """

    words: Words
    vectors: Array
    counts: NDArray[np.int64] | None = None
    tensors: dict[str, Array] = field(default_factory=dict)
    header: ModelHeader = field(default_factory=ModelHeader)
    quantised: tuple[QuantisedMatrix, QuantisedMatrix | None] | None = None

    def head(self, rows: int) -> VectorFile:
        """Return the first words with their vectors and counts.

        The tensors are left out, because not all of them have a row for each word, and so are the views and labels.
        """
        words = self.words.take(np.arange(min(rows, len(self.words))))
        counts = None if self.counts is None else self.counts[:rows]
        return VectorFile(words, self.vectors[:rows], counts, {}, replace(self.header, views={}, labels=None))

    def take(self, rows: NDArray[np.int64]) -> VectorFile:
        """Return the words of these rows with their vectors and counts, and the arrays of n-grams that stay valid."""
        counts = None if self.counts is None else self.counts[rows]
        header = replace(self.header, views={}, labels=None)
        return VectorFile(self.words.take(rows), self.vectors.take(rows, axis=0), counts, self.ngrams(), header)

    def ngrams(self) -> dict[str, Array]:
        """Return the arrays of n-grams if the vectors are the input rows, otherwise none.

        Only these arrays stay valid for other words and vectors: the others have a row for every word.
        """
        names = () if "inputs" in self.tensors else NGRAM_TENSORS
        return {name: self.tensors[name] for name in names if name in self.tensors}

    def view(self, name: str, where: object) -> VectorFile:
        """Return the content that a file with only this view would have.

        Raises:
            W2VError: If an array of the view is missing or has a wrong shape. The message starts with `where`.
        """
        prefix = view_prefix(name)
        tensors = {key.removeprefix(prefix): array for key, array in self.tensors.items() if key.startswith(prefix)}
        try:
            view, vectors = self.header.views[name], tensors.pop("vectors")
            shared: dict[str, Any] = {each: getattr(self.header, each) for each in ("text", "key_type", "coordinates")}
            header = ModelHeader(view.settings, view.metrics, **shared)
            if view.settings.get("subwords"):
                header = replace(header, subwords=self.header.subwords)
                tensors |= {key: self.tensors[key] for key in NGRAM_TENSORS}
        except KeyError as error:
            raise W2VError(f"{where}: damaged: it lacks {error} of the view of {name:.60}") from error
        if not storage.is_matrix(vectors):
            raise W2VError(f"{where}: damaged: the vectors of the view of {name:.60} are not a matrix of numbers")
        content = VectorFile(self.words, vectors, self.counts, tensors, header)
        _check_shapes(f"{where}: damaged: the view of {name:.60}", content)
        return content


def view_prefix(name: str) -> str:
    """Return the prefix of the names of a view's tensors in a file of several views."""
    return f"view.{name}."


def check_content(path: PathLike, content: VectorFile) -> None:
    """Raise W2VError if a reader would refuse this content."""
    _check_shapes(f"{path}: not written", content)
    _check_values(path, content)
    check_unique(path, content.words)


def validate(
    path: PathLike, content: VectorFile, errors: Errors | None, encoding: str = UTF_8, is_checked: bool = False
) -> VectorFile:
    """Check content that was read from a file, and return it with its words as UTF-8.

    Args:
        path: The file, for error messages.
        content: The content.
        errors: What to do with words that are not in `encoding`, as in bytes.decode. With "replace" and "ignore", the
            first row of a repeated word is kept. With None, words are not checked.
        encoding: The encoding of the words in the file.
        is_checked: Check only the words.

    Raises:
        W2VError: If the content is inconsistent or, with errors "strict", if a word is malformed or appears twice.
    """
    if not is_checked:
        _check_shapes(f"{path}: damaged", content)
    if errors:
        content = replace(content, words=decode_words(path, content.words, errors, encoding))
    if errors == "strict":
        check_unique(path, content.words, 'to keep the first row of each word, give --errors (errors=) "ignore"')
    elif errors:
        content = keep_first_rows(path, content)
    if not is_checked:
        _check_values(path, content)
    return content


def keep_first_rows(path: PathLike, content: VectorFile) -> VectorFile:
    """Return the content with only the first row of each word. If rows are left out, log a warning with their number.

    As in `VectorFile.take`, only words, vectors, counts and n-grams are then left.
    """
    distinct = content.words.rows_of(content.words)  # repeated words have the same number here
    rows = np.sort(np.unique(distinct, return_index=True)[1])
    if len(rows) == len(content.words):
        return content
    row = int(np.setdiff1d(np.arange(len(content.words)), rows)[0])
    log.warning(
        "%s: %s left out, because an earlier row has the same word, such as %.60r in row %d",
        path, pluralise(len(content.words) - len(rows), "row"), content.words[row], row + 1,
    )  # fmt: skip
    return content.take(rows)


def _check_shapes(where: str, content: VectorFile) -> None:
    words, shape, counts = pluralise(len(content.words), "word"), content.vectors.shape, content.counts
    if len(shape) != 2 or 0 in shape or shape[0] != len(content.words):
        raise W2VError(f"{where}: {words}, vectors of shape {shape}")
    if counts is not None and counts.shape != shape[:1]:
        raise W2VError(f"{where}: {words}, counts of shape {counts.shape}")


def _check_values(path: PathLike, content: VectorFile) -> None:
    """Raise W2VError for impossible counts and for NaN or infinite values. The message names the word or the row."""
    words = content.words
    if content.counts is not None:
        check_counts(path, words, content.counts)
    row = first_non_finite_row(content.vectors)
    if row >= 0:
        raise W2VError(f"{path}: row {row + 1} ({words[row][:60]!r}) holds NaN or infinite values")
    for name, array in content.tensors.items():
        if PARAMETER_NAMES.fullmatch(name) and storage.is_matrix(array) and array.ndim and array.size:
            matrix = array if array.ndim == 2 else array.reshape(-1, array.shape[-1])
            if (row := first_non_finite_row(matrix)) >= 0:
                raise W2VError(f"{path}: row {row + 1} of {name:.60} holds NaN or infinite values")


def check_counts(where: object, words: Sequence[str], counts: NDArray[Any]) -> None:
    """Raise W2VError if a count (V,) is negative or not a number, or if their sum is more than an int64 holds.

    `where` is the start of error messages; it may be empty.
    """
    start = f"{where}: " if where else ""
    if counts.size and counts.dtype.kind not in "iufbO":
        raise W2VError(f"{start}counts of type {counts.dtype}: they must be whole numbers")
    if counts.size and counts.min() < 0:
        row = int(counts.argmin())
        raise W2VError(f"{start}row {row + 1} ({words[row][:60]!r}) has a negative count, {counts[row]}")
    if float(counts.sum(dtype=np.float64)) > MAX_COUNT:
        raise W2VError(f"{start}the counts add up to more than {MAX_COUNT}")


def as_floats(
    matrix: ArrayLike, where: object = "", words: Sequence[Any] = (), dtype: DTypeLike = np.float32
) -> NDArray[Any]:
    """Return an array of numbers, such as a matrix (V, D), with another dtype: by default float32.

    Args:
        matrix: The numbers.
        where: The start of error messages; it may be empty.
        words: The words of the rows, for error messages.
        dtype: A type of floats.

    Raises:
        W2VError: If a number would become infinite.
    """
    start = f"{where}: " if where else ""
    largest = f"beyond {np.finfo(dtype).max:.2g}, the largest {np.dtype(dtype)}: scale the vectors"
    numbers = np.asarray(matrix)
    # OverflowError: an int that even a Python float cannot hold
    with np.errstate(over="ignore"), translate_errors(f"{start}a number is {largest}", OverflowError):
        floats: NDArray[Any] = np.asarray(numbers, dtype)
    if floats is not numbers and (infinite := np.isinf(floats)).any():
        for index in np.argwhere(infinite & (np.abs(numbers) != np.inf))[:1].tolist():
            word = f" ({words[index[0]]!r:.60})" if index[0] < len(words) else ""
            raise W2VError(f"{start}row {index[0] + 1}{word} holds {numbers[tuple(index)]!s}, {largest}")
    return floats


def check_unique(path: PathLike, words: Words, hint: str = "") -> None:
    """Raise W2VError if a word appears twice. The message ends with `hint`, if any."""
    if rows := words.find_duplicate():
        first, second = rows
        problem = f"the word {words[first][:60]!r} appears twice, in rows {first + 1} and {second + 1}"
        raise W2VError(f"{path}: {problem}: {hint}" if hint else f"{path}: {problem}")


def decode_words(path: PathLike, words: Words, errors: Errors, encoding: str) -> Words:
    """Return the words as valid UTF-8.

    Args:
        path: The file, for error messages.
        words: The words as stored.
        errors: What to do with malformed words, as in bytes.decode.
        encoding: The encoding of the stored words.

    Raises:
        W2VError: If a word is malformed, with errors "strict".
    """
    try:
        return words.to_utf8(errors, encoding)
    except UnicodeDecodeError as error:
        word = error.object
        name = "valid UTF-8" if encoding == UTF_8 else encoding
        hint = (
            "the file is damaged or not a model" if b"\0" in word
            else "w2v convert --encoding (w2v.load(encoding=)) reads words in another encoding, such as cp1251; "
            'otherwise give --errors (errors=) "replace" or "ignore"'
        )  # fmt: skip
        raise W2VError(f"{path}: the word {word[:60]!r} is not {name}: {hint}") from error
