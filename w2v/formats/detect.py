"""Recognises files by their first bytes: the layout of a word2vec file, or a file of another tool."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Literal, NamedTuple

from w2v.errors import W2VError
from w2v.files import BYTE_ORDER_MARK, FASTTEXT, HDF5, NUMPY, PICKLE, UTF_16, ZIP, PathLike
from w2v.text.idstore import is_id_file

HEAD_BYTES = 1 << 20  # inspected at the start of a file
HEAD_LINES = 16  # in which numbers are counted, to find the number of columns

_HEADER = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t\r]*\n")
_BLANKS = re.compile(rb"[ \t\r]+")
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f]")


class Layout(NamedTuple):
    """The layout of the rows of a word2vec file."""

    kind: Literal["binary", "text"]
    rows: int | None  # according to the header; None without a header, as in the files of GloVe and koan
    columns: int
    start: int  # bytes before the first row

    def min_bytes(self, rows: int) -> int:
        """The minimum of bytes that `rows` rows of different words take, with numbers of one digit."""
        length = 0 if self.kind == "binary" else 1  # of the shortest word
        row = 4 * self.columns + 1 if self.kind == "binary" else 2 * self.columns + 1
        size = rows * row - (self.kind == "text")  # the last line may lack its newline
        while rows > 0:
            words = min(rows, 1 << 8 * length)  # words of this length
            size += words * length
            rows -= words
            length += 1
        return size


def recognise(path: PathLike, head: bytes) -> Layout:
    """The layout of the word2vec file that begins with `head` (HEAD_BYTES, or all of it).

    Raises W2VError for any other file.
    """
    mark = len(BYTE_ORDER_MARK) if head.startswith(BYTE_ORDER_MARK) else 0
    header = _HEADER.match(head, mark)
    start = header.end() if header else mark
    *lines, last = head[start:].split(b"\n", HEAD_LINES)
    numbers = [_count_numbers(line) for line in lines or [last] if line.strip()]
    usual = Counter(numbers).most_common(1)[0][0] if numbers else 0
    is_text = not _NOT_TEXT.search((lines or [last])[0]) and b"\0" not in head
    first_line_is_whole = bool(lines) or len(head) < HEAD_BYTES
    if not header:
        if not (is_text and first_line_is_whole and usual):
            raise W2VError(f"{path}: not a vector file: it begins with {head[:24]!r}")
        return Layout("text", None, usual, start)
    rows, columns = int(header[1]), int(header[2])
    if not rows or not columns:
        raise W2VError(f"{path}: no vectors: its header says {rows} rows of {columns} values")
    if usual != columns and (not is_text or (first_line_is_whole and 2 * usual < columns)):
        return Layout("binary", rows, columns, start)
    if usual != columns and lines:
        raise W2VError(f"{path}: wrong header: it says {columns} values in a row, its rows have {usual}")
    return Layout("text", rows, columns, start)


def _count_numbers(line: bytes) -> int:
    """The number of numeric fields at the end of a line. The first field is a word, even if it looks like a number."""
    count = 0
    for field in reversed(_BLANKS.split(line.strip(b" \t\r"))[1:]):
        try:
            float(field)
        except ValueError:
            break
        count += 1
    return count


# -- files of other tools -----------------------------------------------------------------------

_GENSIM = re.compile(PICKLE + rb".{0,40}?gensim\.models\.[\w.]{1,60}(?:\n|\x94?\x8c.)(\w{1,60})", re.DOTALL)
_NPZ = re.compile(ZIP + rb".{26}[\w./-]{1,200}\.npy", re.DOTALL)
_SAVE = "save_word2vec_format('vectors.bin', binary=True)"
_BUILD = "w2v.KeyedVectors(words, vectors).save('vectors.bin')"
_OTHERS = {  # signature: what the file is, and how to convert it; {path} is the quoted path
    FASTTEXT: "a fastText model: use the .vec file that fastText wrote beside it, or make one by `fasttext "
    "print-word-vectors {path} < words.txt > vectors.vec`, or convert it with gensim: "
    "gensim.models.fasttext.load_facebook_vectors({path})." + _SAVE,
    NUMPY: "a NumPy array, without words: use w2v.KeyedVectors(words, numpy.load({path})).save('vectors.bin')",
    HDF5: f"an HDF5 file: read its words and vectors, by h5py for instance, and use {_BUILD}",
    PICKLE: "a Python pickle, which can run any code when it is loaded, so w2v does not read it: load it with the tool "
    f"that wrote it, and use {_BUILD}",
    ZIP: "a zip archive: unpack it and give the vector file in it",
    UTF_16: "UTF-16 or UTF-32 text: convert it to UTF-8: iconv -f UTF-16 -t UTF-8 {path} > vectors.txt",
}


def refuse_foreign(path: PathLike, head: bytes) -> None:
    """Raise W2VError, with a way to convert it, if the file that begins with `head` is a known file of another tool."""
    quoted = repr(os.fspath(path))
    if is_id_file(path):
        raise W2VError(f"{path}: the ids of a text, a file of `w2v train --cache`: give a model file")
    gensim = _GENSIM.match(head)
    if gensim and gensim[1].endswith((b"KeyedVectors", b"Word2Vec", b"FastText", b"Doc2Vec")):
        name = gensim[1].decode()
        load = f"KeyedVectors.load({quoted})" if name.endswith("KeyedVectors") else f"{name}.load({quoted}).wv"
        raise W2VError(f"{path}: a gensim {name}: convert it with gensim: gensim.models.{load}.{_SAVE}")
    if _NPZ.match(head):
        raise W2VError(f"{path}: a NumPy archive: load words and vectors by numpy.load({quoted}), and use {_BUILD}")
    for signature, kind in _OTHERS.items():
        if re.match(signature, head):
            raise W2VError(f"{path}: {kind.replace('{path}', quoted)}")
