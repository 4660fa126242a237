"""Folders of spaCy, which numbers words by hashes of its own. It writes them itself; no pipeline is run or read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError, one_line, optional
from w2v.formats import npy
from w2v.formats.vector_file import VectorFile, check_content, checked
from w2v.progress import Report
from w2v.system import schema
from w2v.system.files import Errors, PathLike, atomic_folder
from w2v.text.words import Words

LANGUAGE = "xx"  # of many languages


def _spacy(path: PathLike) -> Any:
    return optional(f"{path}: folders of spaCy need one more package", "spacy", "spacy")


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a pipeline that only splits texts into words with vectors; a folder that exists is never replaced."""
    check_content(path, content)
    spacy = _spacy(path)
    pipeline = spacy.blank(LANGUAGE)
    strings = pipeline.vocab.strings
    keys = np.fromiter((strings.add(word) for word in content.words), np.uint64, len(content.words))
    if len(set(keys.tolist())) < len(keys):
        raise W2VError(f"{path}: not written: spaCy has the same key for two of its words")
    matrix = np.ascontiguousarray(content.vectors, np.float32)
    pipeline.vocab.vectors = spacy.vectors.Vectors(strings=strings, data=matrix, keys=keys.tolist())
    with atomic_folder(path) as folder:
        pipeline.to_disk(folder)


def read(path: PathLike, errors: Errors | None, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the words that have a vector; several may share one. A table of floret is refused, for it has no words."""
    spacy, folder = _spacy(path), Path(path) / "vocab"
    settings = folder / "vectors.cfg"
    mode = schema.read(dict[str, Any], settings).get("mode", "default") if settings.exists() else "default"
    if mode != "default":
        raise W2VError(f"{path}: vectors of mode {one_line(mode)}, which has no words: w2v reads mode default")
    words, rows = _words(spacy, folder)  # before the matrix, since they are many objects for a time
    matrix = npy.read_array(folder / "vectors")
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or (len(rows) and not 0 <= rows.min() <= rows.max() < len(matrix)):
        raise W2VError(f"{path}: damaged: its words do not fit its matrix of shape {matrix.shape}")
    are_all = np.array_equal(rows, np.arange(len(matrix)))
    vectors = (matrix if are_all else np.take(matrix, rows, axis=0)).astype(np.float32, copy=False)
    return checked(path, VectorFile(words, vectors), errors)


def _words(spacy: Any, folder: Path) -> tuple[Words, NDArray[np.int64]]:
    """The words that have a row, in the order of rows, and the row of each, int64 (V,)."""
    strings = schema.read(list[str], folder / "strings.json")
    rows = schema.read(dict[int, int], folder / "key2row", msgspec.msgpack.decode)
    names = {number: name for name, number in spacy.symbols.IDS.items() if number in rows}  # not in the list of strings
    names |= {number: word for word in strings if (number := spacy.strings.hash_string(word)) in rows}
    found = sorted((row, names[key]) for key, row in rows.items() if key in names)
    return Words.of(word for _, word in found), np.array([row for row, _ in found], np.int64)
