"""Folders of spaCy, which numbers words by hashes of its own. It writes them itself; no pipeline is run or read."""

from __future__ import annotations

import itertools
import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError, one_line, optional
from w2v.formats import npy
from w2v.formats.vector_file import VectorFile, check_content, checked, vectors_of_rows
from w2v.formats.word_lists import Gathered
from w2v.progress import Report
from w2v.system import schema
from w2v.system.files import Errors, PathLike, atomic_folder, errors_named, open_regular
from w2v.text.words import Words

LANGUAGE = "xx"  # of many languages
FILES = ("vectors", "key2row", "strings.json")
WORDS_AT_ONCE = 1 << 14  # looked up
KEY_BYTES = 10  # of a key, which is a hash, and its row
MAX_SYMBOLS = 1000  # spaCy's own names, whose keys are smaller


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


class _Settings(msgspec.Struct):
    mode: str = "default"


def read(path: PathLike, errors: Errors | None, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the words that have a vector; several may share one. A table of floret is refused, for it has no words."""
    spacy, folder = _spacy(path), Path(path) / "vocab"
    settings = folder / "vectors.cfg"
    mode = schema.read(_Settings, settings).mode if settings.exists() else "default"
    if mode != "default":
        raise W2VError(f"{path}: vectors of mode {one_line(mode)}, which has no words: w2v reads mode default")
    words, rows = _words(spacy, folder)
    matrix = npy.read_array(folder / "vectors")
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or (len(rows) and rows.max() >= len(matrix)):
        raise W2VError(f"{path}: damaged: its words do not fit its matrix of shape {matrix.shape}")
    if np.array_equal(rows, np.arange(len(matrix))):
        vectors = matrix.astype(np.float32, copy=False)
    else:
        vectors = vectors_of_rows(path, matrix, rows, sum((folder / name).stat().st_size for name in FILES))
    return checked(path, VectorFile(words, vectors), errors)


def _words(spacy: Any, folder: Path) -> tuple[Words, NDArray[np.uint32]]:
    """The words that have a row, in the order of rows, and the row of each, uint32 (V,)."""
    keys, rows = _rows_by_key(folder / "key2row")
    path = folder / "strings.json"
    with errors_named(path), open_regular(path) as file:
        text = file.read()
    hashed = ((word, spacy.strings.hash_string(word)) for word, _ in schema.strings(text, path))
    every = itertools.chain(spacy.symbols.IDS.items(), hashed)  # symbols are not in the list of strings
    words, found, is_found = Gathered(len(keys)), array("q"), bytearray(len(keys))
    while some := list(itertools.islice(every, WORDS_AT_ONCE)):
        wanted = np.fromiter((key for _, key in some), np.uint64, len(some))
        places = np.searchsorted(keys, wanted)
        known = np.flatnonzero(places < len(keys))
        for number in known[keys[places[known]] == wanted[known]].tolist():
            place = int(places[number])
            if not is_found[place]:
                is_found[place] = True
                found.append(place)
                words.add(some[number][0].encode())
    rows = rows[np.frombuffer(found, np.int64)]
    order = np.argsort(rows, kind="stable")
    return words.words.take(order), rows[order]


def _rows_by_key(path: Path) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """The keys of words, ascending, and the row of each, from a file of MessagePack.

    It is read twice, one by one: as a dictionary they would take ten times as much memory as in the file.
    """
    unpacking = optional(f"{path}: folders of spaCy need one more package", "spacy", "srsly.msgpack")
    none = dict.fromkeys(("max_str_len", "max_bin_len", "max_array_len", "max_ext_len"), 0)
    with errors_named(path), open_regular(path) as file:
        try:
            count = unpacking.Unpacker(file, **none).read_map_header()
            if count > os.fstat(file.fileno()).st_size // KEY_BYTES + MAX_SYMBOLS:
                raise ValueError(f"{count:,} keys are too many for its size")

            def pairs() -> Iterator[tuple[int, int]]:
                file.seek(0)
                unpacker = unpacking.Unpacker(file, **none)
                return ((unpacker.unpack(), unpacker.unpack()) for _ in range(unpacker.read_map_header()))

            keys = np.fromiter((key for key, _ in pairs()), np.uint64, count)
            keys.sort()
            rows = np.empty(count, np.uint32)
            every = pairs()
            while some := list(itertools.islice(every, WORDS_AT_ONCE)):
                places = np.searchsorted(keys, np.fromiter((key for key, _ in some), np.uint64, len(some)))
                rows[places] = np.fromiter((row for _, row in some), np.uint32, len(some))
        except (ValueError, TypeError, LookupError, OverflowError, unpacking.UnpackException) as error:
            raise W2VError(f"{path}: damaged: {one_line(error)}") from error
    return keys, rows
