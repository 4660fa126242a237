"""Make vector files smaller: with fewer words, fewer dimensions (principal components) or a smaller storage type."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from w2v._detect import read_lines
from w2v._errors import SettingsError, W2VError, pluralise
from w2v._formats import bfloat16
from w2v._formats.header import ModelHeader
from w2v._formats.storage import FileStorage, to_storage
from w2v._formats.vector_file import Array, VectorFile
from w2v._options import check_numbers
from w2v._system import memory
from w2v._system.files import PathLike

log = logging.getLogger("w2v")

ROWS_AT_ONCE = 1 << 14  # rows in a block


def reduce_file(
    content: VectorFile,
    max_vocab: int | None = None,
    words: PathLike | None = None,
    dims: int | None = None,
    storage: FileStorage | None = None,
) -> VectorFile:
    """Keep the first words, keep listed words, reduce the dimensions, change the storage: each step if it is asked for.

    Args:
        content: The content of a vector file.
        max_vocab: See `keep_first_words`.
        words: The file of `keep_listed_words`.
        dims: See `reduce_dimensions`.
        storage: See `change_storage`.

    Raises:
        SettingsError, W2VError: As in these functions.
    """
    if max_vocab is not None:
        content = keep_first_words(content, max_vocab)
    if words is not None:
        content = keep_listed_words(content, words)
    if dims is not None:
        content = reduce_dimensions(content, dims)
    if storage is not None:
        content = change_storage(content, storage)
    return content


def keep_first_words(content: VectorFile, max_vocab: int) -> VectorFile:
    """Take the first `max_vocab` words, which are the most frequent.

    Raises:
        SettingsError: If `max_vocab` is less than 1.
    """
    check_numbers(max_vocab=max_vocab)
    return content.take(np.arange(min(max_vocab, len(content.words))))


def keep_listed_words(content: VectorFile, path: PathLike) -> VectorFile:
    """Take the words that are listed in a file, in the order of `content`.

    Each line is a word or, as in a vocabulary file, begins with a word.

    Raises:
        W2VError: If the file cannot be read, is another kind of file or lists none of the words.
    """
    row_of = {word: row for row, word in enumerate(content.words)}
    rows: list[int | None] = []  # None for a line that is not in the vocabulary
    for _, line in read_lines(path, "vocabulary"):
        if fields := line.split(None, 1):
            whole_line, first_field = (text.decode(errors="replace") for text in (line.strip(), fields[0]))
            rows.append(row_of.get(whole_line, row_of.get(first_field)))
    listed = sorted({row for row in rows if row is not None})
    if not listed:
        raise W2VError(f"{path}: none of its words has a vector")
    if unknown := rows.count(None):
        log.warning("%s: %s not in the vocabulary", path, pluralise(unknown, "line"))
    return content.take(np.array(listed))


def reduce_dimensions(content: VectorFile, dims: int) -> VectorFile:
    """Project the vectors on their first `dims` principal components.

    The mean is not subtracted. So cosines change least, and the vector of a word is still the mean of its n-grams.

    Raises:
        SettingsError: If `dims` is less than 1 or not less than the size of the vectors.
    """
    size = content.vectors.shape[1]
    check_numbers(dims=dims)
    if dims >= size:
        raise SettingsError(f"dims {dims}: the vectors have {size} values: choose fewer")
    products = np.zeros((size, size))
    for _, block in bfloat16.float32_blocks(content.vectors, ROWS_AT_ONCE):
        products += block.T.astype(np.float64) @ block
    axes = np.linalg.eigh(products)[1][:, : -dims - 1 : -1].astype(np.float32)  # (size, dims), largest eigenvalue first
    header = _update_settings(content.header, dropped=("vectors", "blocks", "views"), vector_size=dims)
    # The rows of n-grams may have only the last values of a vector; see Ngrams.offset.
    header = replace(header, ngram_offset=0, coordinates="")

    def project(matrix: Array) -> Array:
        projected = memory.empty((len(matrix), dims))
        for start, block in bfloat16.float32_blocks(matrix, ROWS_AT_ONCE):
            np.matmul(block, axes[-matrix.shape[1] :], out=projected[start : start + len(block)])
        return projected

    return _transform(content, project, header)


def change_storage(content: VectorFile, storage: FileStorage) -> VectorFile:
    """Store the vectors and the rows of n-grams in another type.

    Raises:
        SettingsError: If the type cannot store them; see `to_storage`.
    """
    header = _update_settings(content.header, dropped=("storage",))  # the setting has only the types of training
    return _transform(content, lambda matrix: to_storage(matrix, storage), header)


def _transform(content: VectorFile, function: Callable[[Array], Array], header: ModelHeader) -> VectorFile:
    """Apply a function to the vectors, and to the rows of n-grams if the vectors are made from them."""
    tensors = content.ngrams()
    if tensors:
        tensors["ngrams"] = function(tensors["ngrams"])
    return replace(
        content, vectors=function(content.vectors), tensors=tensors, header=replace(header, views={}, labels=None)
    )


def _update_settings(header: ModelHeader, dropped: tuple[str, ...], **changed: int) -> ModelHeader:
    """Return the header with `changed` settings and without the `dropped` ones.

    `vectors="input"` is never dropped, because it stays true.
    """
    if header.settings is None:
        return header
    settings = {**header.settings, **changed}
    remaining = {name: value for name, value in settings.items() if name not in dropped or value == "input"}
    return replace(header, settings=remaining)
