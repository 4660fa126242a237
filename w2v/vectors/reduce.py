"""Smaller vector files: fewer words, fewer dimensions by principal components, and smaller types."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from w2v.detect import lines
from w2v.errors import SettingsError, W2VError, counted
from w2v.formats import bfloat16
from w2v.formats.header import ModelHeader
from w2v.formats.storage import FileStorage, to_storage
from w2v.formats.vector_file import Array, VectorFile
from w2v.options import check_whole
from w2v.system import memory
from w2v.system.files import PathLike

log = logging.getLogger("w2v")

ROWS_AT_ONCE = 1 << 14


def reduced(
    content: VectorFile,
    top: int | None = None,
    words: PathLike | None = None,
    dims: int | None = None,
    storage: FileStorage | None = None,
) -> VectorFile:
    """The content after those of the functions below that are asked for, in this order."""
    made = content if top is None else first_words(content, top)
    made = made if words is None else listed_words(made, words)
    made = made if dims is None else fewer_dimensions(made, dims)
    return made if storage is None else in_storage(made, storage)


def first_words(content: VectorFile, top: int) -> VectorFile:
    """The `top` first words, which are the most frequent. Raises SettingsError for fewer than one."""
    check_whole(1, top=top)
    return _taken(content, np.arange(min(top, len(content.words))))


def listed_words(content: VectorFile, path: PathLike) -> VectorFile:
    """The words of a file, one on each line, or the first on it as in a vocabulary; in the order of `content`.

    Raises W2VError for a file that cannot be read, is another kind of file or has none of the words.
    """
    rows = {word: row for row, word in enumerate(content.words)}
    wanted: set[int] = set()
    unknown = 0
    for _, line in lines(path, "vocabulary"):
        fields = line.split(None, 1)
        names = [name.decode(errors="replace") for name in (line.strip(), *fields[:1])]
        found = [rows[name] for name in names[: 1 + (names[0] not in rows)] if name in rows]
        wanted.update(found)
        unknown += bool(fields and not found)
    if not wanted:
        raise W2VError(f"{path}: none of its words has a vector")
    if unknown:
        log.warning("%s: %s not in the vocabulary", path, counted(unknown, "line"))
    return _taken(content, np.array(sorted(wanted)))


def fewer_dimensions(content: VectorFile, dims: int) -> VectorFile:
    """The same words with vectors of `dims` values: their first principal components.

    These are not centred, so that cosines change least, and n-grams still make up the vectors of words. Raises
    SettingsError unless `dims` is at least 1 and less than the vectors have.
    """
    size = content.vectors.shape[1]
    check_whole(1, dims=dims)
    if dims >= size:
        raise SettingsError(f"dims {dims}: the vectors have {size} values: choose fewer")
    products = np.zeros((size, size))
    for _, block in bfloat16.blocks(content.vectors, ROWS_AT_ONCE):
        products += block.T.astype(np.float64) @ block
    axes = np.linalg.eigh(products)[1][:, : -dims - 1 : -1].astype(np.float32)  # (size, dims), the largest first
    header = _with_settings(content.header, dropped=("vectors", "blocks"), vector_size=dims)
    return _changed(content, lambda matrix: _projected(matrix, axes), header)


def in_storage(content: VectorFile, storage: FileStorage) -> VectorFile:
    """The same words, their vectors and the rows of n-grams stored in another type. Raises as `stored` does."""
    header = _with_settings(content.header, dropped=("storage",))  # those of training have fewer types
    return _changed(content, lambda matrix: to_storage(matrix, storage), header)


def _changed(content: VectorFile, change: Callable[[Array], Array], header: ModelHeader) -> VectorFile:
    """The same words, with the change of their vectors, and of the rows of n-grams if these make up the vectors."""
    tensors = _ngrams(content)
    if tensors:
        tensors["ngrams"] = change(tensors["ngrams"])
    return replace(content, vectors=change(content.vectors), tensors=tensors, header=header)


def _with_settings(header: ModelHeader, dropped: tuple[str, ...], **changed: int) -> ModelHeader:
    """The header with settings that hold for the new vectors."""
    if header.settings is None:
        return header
    settings = {**header.settings, **changed}
    kept = {name: value for name, value in settings.items() if name not in dropped or value == "input"}
    return replace(header, settings=kept)


def _projected(matrix: Array, axes: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = memory.empty((len(matrix), axes.shape[1]))
    for start, block in bfloat16.blocks(matrix, ROWS_AT_ONCE):
        np.matmul(block, axes, out=found[start : start + len(block)])
    return found


def _taken(content: VectorFile, rows: NDArray[np.int64]) -> VectorFile:
    counts = None if content.counts is None else content.counts[rows]
    return VectorFile(
        content.words.take(rows), content.vectors.take(rows, axis=0), counts, _ngrams(content), content.header
    )


def _ngrams(content: VectorFile) -> dict[str, Array]:
    """The arrays of n-grams, unless the vectors are not the input rows. Other arrays have a row for every word."""
    names = [] if "inputs" in content.tensors else ["ngrams", "ngram_buckets"]
    return {name: content.tensors[name] for name in names if name in content.tensors}
