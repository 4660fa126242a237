"""spaCy folders, which refer to words by spaCy's own hashes.

spaCy itself writes the folders. To read one, w2v parses the files of its vocabulary. It never loads or runs a pipeline.
"""

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

from w2v.errors import W2VError, import_optional, one_line
from w2v.formats import npy
from w2v.formats.vector_file import VectorFile, as_floats, check_content, expand_shared_rows, validate
from w2v.formats.word_lists import WordBuilder
from w2v.progress import Report
from w2v.system import schema
from w2v.system.files import Errors, PathLike, atomic_folder, open_regular, translate_os_errors
from w2v.text.words import Words

LANGUAGE = "xx"  # spaCy's code for multi-language pipelines
FILES = ("vectors", "key2row", "strings.json")
BATCH_WORDS = 1 << 14  # words that are looked up at once
ENTRY_BYTES = 10  # minimum size of a hash and its row in the file of keys
MAX_SYMBOLS = 1000  # upper limit for the number of spaCy's symbols: their entries are smaller than ENTRY_BYTES


def _import_spacy(path: PathLike) -> Any:
    return import_optional(f"{path}: folders of spaCy need one more package", "spacy", "spacy")


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a pipeline that consists of a tokenizer and word vectors. An existing folder is never replaced.

    Raises:
        W2VError: If spaCy is missing, if the folder cannot be written or exists, or if two words have the same key.
    """
    check_content(path, content)
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


class _Settings(msgspec.Struct):
    mode: str = "default"


def read(path: PathLike, errors: Errors | None, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the words that have a vector; several words may share one vector. See formats.table.read.

    Raises:
        W2VError: If spaCy is missing, if the folder is damaged, or if it has floret vectors, which have no words.
    """
    spacy, folder = _import_spacy(path), Path(path) / "vocab"
    settings = folder / "vectors.cfg"
    mode = schema.read(_Settings, settings).mode if settings.exists() else "default"
    if mode != "default":
        raise W2VError(
            f"{path}: its vectors are of mode {one_line(mode)}, which stores no words: w2v reads only mode default"
        )
    words, rows = _read_words(spacy, folder)
    matrix = npy.read_array(folder / "vectors")
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or (len(rows) and rows.max() >= len(matrix)):
        raise W2VError(f"{path}: damaged: its words do not fit its matrix of shape {matrix.shape}")
    if np.array_equal(rows, np.arange(len(matrix))):
        vectors = as_floats(matrix, path, words)
    else:
        vectors = expand_shared_rows(path, matrix, rows, sum((folder / name).stat().st_size for name in FILES), words)
    return validate(path, VectorFile(words, vectors), errors)


def _read_words(spacy: Any, folder: Path) -> tuple[Words, NDArray[np.uint32]]:
    """Read the words that have a row, ordered by row, and the row of each, uint32 (V,)."""
    keys, rows = _read_rows_by_key(folder / "key2row")
    path = folder / "strings.json"
    with translate_os_errors(path), open_regular(path) as file:
        text = file.read()
    hashed = ((word, spacy.strings.hash_string(word)) for word, _ in schema.iter_json_strings(text, path))
    candidates = itertools.chain(spacy.symbols.IDS.items(), hashed)  # strings.json does not list spaCy's symbols
    words, key_indices, is_taken = WordBuilder(len(keys)), array("q"), bytearray(len(keys))
    while batch := list(itertools.islice(candidates, BATCH_WORDS)):
        hashes = np.fromiter((key for _, key in batch), np.uint64, len(batch))
        indices = np.searchsorted(keys, hashes)
        inside = np.flatnonzero(indices < len(keys))
        for number in inside[keys[indices[inside]] == hashes[inside]].tolist():
            index = int(indices[number])
            if not is_taken[index]:
                is_taken[index] = True
                key_indices.append(index)
                words.add(batch[number][0].encode())
    rows = rows[np.frombuffer(key_indices, np.int64)]
    order = np.argsort(rows, kind="stable")
    return words.words.take(order), rows[order]


def _read_rows_by_key(path: Path) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Read the keys of words, ascending, and the row of each, from a MessagePack file.

    The entries are read one by one, and twice: as a dictionary they would take ten times the size of the file.
    """
    msgpack = import_optional(f"{path}: folders of spaCy need one more package", "spacy", "srsly.msgpack")
    # Keys and rows are integers, so the parser may refuse strings and arrays before it reserves memory for them.
    limits = dict.fromkeys(("max_str_len", "max_bin_len", "max_array_len", "max_ext_len"), 0)
    with translate_os_errors(path), open_regular(path) as file:
        try:
            count = msgpack.Unpacker(file, **limits).read_map_header()
            if count > os.fstat(file.fileno()).st_size // ENTRY_BYTES + MAX_SYMBOLS:
                raise ValueError(f"{count:,} keys are too many for its size")

            def pairs() -> Iterator[tuple[int, int]]:
                file.seek(0)
                unpacker = msgpack.Unpacker(file, **limits)
                return ((unpacker.unpack(), unpacker.unpack()) for _ in range(unpacker.read_map_header()))

            keys = np.fromiter((key for key, _ in pairs()), np.uint64, count)
            keys.sort()
            rows = np.empty(count, np.uint32)
            entries = pairs()
            while batch := list(itertools.islice(entries, BATCH_WORDS)):
                indices = np.searchsorted(keys, np.fromiter((key for key, _ in batch), np.uint64, len(batch)))
                rows[indices] = np.fromiter((row for _, row in batch), np.uint32, len(batch))
        except (ValueError, TypeError, LookupError, OverflowError, msgpack.UnpackException) as error:
            raise W2VError(f"{path}: damaged: {one_line(error)}") from error
    return keys, rows
