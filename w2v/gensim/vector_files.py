"""Files of keys and vectors: w2v's native format, and word2vec's formats as gensim reads and writes them."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from w2v.errors import W2VError
from w2v.formats import gensim, native, table, word2vec
from w2v.formats.vector_file import Array, VectorFile
from w2v.gensim.utils import gensims_exceptions
from w2v.options import check_whole
from w2v.system.files import Errors, PathLike, atomic_write_together
from w2v.text.words import Words

log = logging.getLogger("gensim.models.keyedvectors")

# -- w2v's native format ----------------------------------------------------------------------------


def words_of(keys: Sequence[Any]) -> tuple[Words, dict[str, Array]]:
    """Keys as words, and an array that says which are numbers. Raises W2VError for keys of other types."""
    if set(map(type, keys)) == {str}:
        return Words.of(keys), {}
    numbers = np.array([isinstance(key, int | np.integer) and not isinstance(key, bool) for key in keys], bool)
    for key, number in zip(keys, numbers.tolist(), strict=True):
        if not (number or isinstance(key, str)):
            raise W2VError(f"not written: the key {key!r:.60} is neither str nor int; save_word2vec_format writes it")
    return Words.of(map(str, keys)), {gensim.INT_KEYS: numbers}


def keys_of(path: PathLike, found: VectorFile) -> list[Any]:
    """The keys that `words_of` made words of. Raises W2VError for a file whose numbers are none."""
    words: list[Any] = found.words.tolist()
    numbers = found.tensors.get(gensim.INT_KEYS, np.zeros(0, bool))
    if numbers.shape not in ((0,), (len(words),)):
        raise W2VError(f"{path}: damaged: {len(words)} keys, but {numbers.shape} signs of numbers")
    try:
        for row in np.flatnonzero(numbers).tolist():
            words[row] = int(words[row])
    except ValueError:
        raise W2VError(f"{path}: damaged: the key {words[row]!r:.60} is no number") from None
    return words


def write(fname_or_handle: PathLike | BinaryIO, content: VectorFile) -> None:
    """Write a native file, or its bytes to an open file."""
    if isinstance(fname_or_handle, str | os.PathLike):
        with gensims_exceptions(fname_or_handle):
            native.write(fname_or_handle, content)
        return
    with tempfile.TemporaryDirectory() as folder:
        write(path := Path(folder) / "content", content)
        with path.open("rb") as file:
            shutil.copyfileobj(file, fname_or_handle)


def read(path: PathLike, mmap: bool = False) -> VectorFile:
    """Read any file that w2v.load reads; of a model that gensim saved, as of one saved here."""
    with gensims_exceptions(path), table.watched_format(path) as found:
        return gensim.read_saved(path) if found.name == "gensim" else table.read(path, mmap)


# -- word2vec's formats -----------------------------------------------------------------------------


def write_word2vec(
    path: PathLike,
    keys: list[str],
    vectors: Array,
    binary: bool,
    total: int,
    header: bool,
    append: bool,
    vocabulary: tuple[PathLike, Array] | None,
) -> None:
    """Write keys and vectors, in the text format also keys that hold spaces, as that format can be read.

    The `vocabulary` is a file that is replaced together with this one, and the values to write to it after the keys.
    """
    for key in keys:
        if key != key.strip():
            raise W2VError(f"{path}: not written: the key {key!r:.60} begins or ends with white space")
    content = VectorFile(Words.of(keys), vectors.astype(np.float32, copy=False))
    blocks = word2vec.encode_rows(path, content, binary=binary, separators=b" \t\n\r" if binary else b"\t\n\r")
    paths = [path] if vocabulary is None else [vocabulary[0], path]
    with opened(paths, append) as (*lists, plain), word2vec.gzip_if_named(path, plain) as out:
        if vocabulary:
            pairs = zip(keys, vocabulary[1], strict=True)
            lists[0].writelines(f"{key} {value}\n".encode() for key, value in pairs)
        if header:
            out.write(f"{total} {vectors.shape[1]}\n".encode())
        for _, block in blocks:
            out.write(block)


@contextmanager
def opened(paths: list[PathLike], append: bool) -> Iterator[list[BinaryIO]]:
    """Files to write, which replace others only once all are complete, or to append to."""
    with gensims_exceptions(paths[-1]), ExitStack() as stack:
        if append:
            yield [stack.enter_context(Path(path).open("ab")) for path in paths]
        else:
            yield stack.enter_context(atomic_write_together(paths))


def read_word2vec(path: PathLike, encoding: str, errors: Errors, limit: int | None) -> VectorFile:
    """The words, in this encoding, and vectors of a file; of a word that stands there twice, the first.

    Raises OSError, EOFError for a file that is cut, UnicodeDecodeError, and W2VError for other damage.
    """
    if limit is not None:
        check_whole(1, limit=limit)
    with gensims_exceptions(path):
        found = table.read(path, errors=None, limit=limit)
    words = found.words
    if encoding.lower().replace("-", "") not in ("utf8", "ascii") or not words.is_utf8():
        words = words.decoded(errors, encoding)
    if not words.repeated():
        return VectorFile(words, found.vectors)
    first: dict[str, int] = {}
    for row, word in enumerate(words.tolist()):
        if first.setdefault(word, row) != row:
            log.warning("duplicate word '%s' in word2vec file, ignoring all but first", word)
    return VectorFile(Words.of(first), found.vectors[list(first.values())])
