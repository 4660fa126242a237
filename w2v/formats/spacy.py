"""Folders of spaCy: written and read by spaCy itself, which numbers words by hashes of its own. No pipeline is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from w2v.errors import INSTALL, W2VError, one_line
from w2v.formats.vector_file import VectorFile, check_content, checked
from w2v.progress import Report
from w2v.system.files import Errors, PathLike, atomic_folder
from w2v.text.words import Words

LANGUAGE = "xx"  # of many languages
EXTRA = "spacy"


def fits(path: PathLike, head: bytes) -> bool:
    """Whether a folder holds a vocabulary of spaCy with vectors."""
    return all((Path(path) / "vocab" / name).is_file() for name in ("vectors", "key2row", "strings.json"))


def _spacy(path: PathLike) -> Any:
    try:
        import spacy
    except ImportError:
        raise W2VError(f"{path}: folders of spaCy need one more package: {INSTALL.format(EXTRA)}") from None
    return spacy


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
    spacy = _spacy(path)
    try:
        vocabulary = spacy.vocab.Vocab().from_disk(Path(path) / "vocab")
        vectors = vocabulary.vectors
        rows = {key: row for key, row in vectors.key2row.items() if key in vocabulary.strings}
        keys = sorted(rows, key=rows.__getitem__)
        words = Words.of(vocabulary.strings[key] for key in keys)
        found = np.take(vectors.data, [rows[key] for key in keys], axis=0).astype(np.float32, copy=False)
    except (OSError, LookupError, TypeError, AttributeError, ValueError) as error:
        raise W2VError(f"{path}: spaCy cannot read it: {one_line(error)}") from error
    if vectors.mode != "default":
        raise W2VError(f"{path}: vectors of mode {one_line(vectors.mode)}, which has no words: w2v reads mode default")
    return checked(path, VectorFile(words, found), errors)
