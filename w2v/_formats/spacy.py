"""spaCy folders, which refer to words by spaCy's own hashes.

spaCy itself writes the folders, and reads the words and vectors in them. w2v never loads or runs a pipeline.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from w2v._errors import W2VError, import_optional, one_line
from w2v._formats.base import Format, has_files
from w2v._formats.vector_file import VectorFile, as_floats
from w2v._progress import Report
from w2v._system.files import PathLike, atomic_folder, open_regular, translate_os_errors
from w2v._text.words import Words

LANGUAGE = "xx"  # spaCy's code for multi-language pipelines
FILES = ("vectors", "vectors.cfg", "key2row", "keys", "strings.json")  # the files in "vocab" that spaCy reads


def _import_spacy(path: PathLike) -> Any:
    return import_optional(f"{path}: folders of spaCy need one more package", "spacy", "spacy")


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a pipeline that consists of a tokenizer and word vectors. An existing folder is never replaced.

    Raises:
        W2VError: If spaCy is missing, if the folder cannot be written or exists, or if two words have the same key.
    """
    spacy = _import_spacy(path)
    pipeline = spacy.blank(LANGUAGE)
    strings = pipeline.vocab.strings
    keys = np.fromiter((strings.add(word) for word in content.words), np.uint64, len(content.words))
    if len(set(keys.tolist())) < len(keys):
        raise W2VError(f"{path}: not written: two of its words have the same spaCy key")
    matrix = np.ascontiguousarray(content.vectors, np.float32)
    pipeline.vocab.vectors = spacy.vectors.Vectors(strings=strings, data=matrix, keys=keys.tolist())
    with atomic_folder(path) as folder:
        pipeline.to_disk(folder)


def read(path: PathLike, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the words that have a vector; several words may share one vector. See Format.read.

    Raises:
        W2VError: If spaCy is missing, if the folder is damaged, or if it has floret vectors, which have no words.
    """
    spacy, folder = _import_spacy(path), Path(path) / "vocab"
    for file in filter(os.path.lexists, (folder / name for name in FILES)):
        with translate_os_errors(file), open_regular(file):
            pass  # spaCy would wait for a pipe, and read a device forever
    try:
        strings = spacy.strings.StringStore().from_disk(folder / "strings.json")
        vectors = spacy.vectors.Vectors(strings=strings).from_disk(folder, exclude=["strings"])
        if vectors.mode == "default":
            # The table may lack the texts of some keys. A negative row stands for no vector.
            rows_by_key = vectors.key2row.items()
            rows_and_words = sorted((row, strings[key]) for key, row in rows_by_key if row >= 0 and key in strings)
            words = Words.of(word for _, word in rows_and_words)
            rows = np.array([row for row, _ in rows_and_words], np.int64)
            matrix = np.take(vectors.data, rows, axis=0)
    except Exception as error:  # spaCy raises errors of many types for damaged files
        raise W2VError(f"{path}: damaged: {one_line(error)}") from error
    if vectors.mode != "default":
        raise W2VError(f"{path}: its vectors are of mode {vectors.mode}, which stores no words: w2v reads only default")
    return VectorFile(words, as_floats(matrix, path, words))


FORMAT = Format(
    "spacy", (".spacy",), 9, has_files("vocab/vectors", "vocab/key2row", "vocab/strings.json"), read, write, folder=True
)
