"""Recognises files by their content: models, questions, pairs, vocabularies, and files of other tools."""

from __future__ import annotations

import csv
import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from w2v.errors import W2VError
from w2v.system.files import (
    BYTE_ORDER_MARK,
    DOCUMENT,
    HDF5,
    IDS,
    NUMPY,
    PICKLE,
    UTF_16,
    ZIP,
    PathLike,
    errors_named,
    text_start,
    unchanged,
)

HEAD_BYTES = 1 << 20  # inspected at the start of a file
HEAD_LINES = 16  # in which numbers are counted, to find the number of columns
MAX_LINE_BYTES = 1 << 24
LAYOUT_LINES = 20  # that show how the lines of a file of word pairs are written
KIND_BYTES = 1 << 15  # inspected where a file should be of another kind
SENTENCE_END_WORD = b"</s>"  # stands for the sentence ends in a vocabulary file

_HEADER = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t\r]*\n")
_BLANKS = re.compile(rb"[ \t\r]+")
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_DECIMAL_COMMA = re.compile(r"([+-]?[0-9]*),([0-9]+)")


# What a file is, by kind, and where it is given.
_KINDS = {
    "text": (
        "a text",
        "w2v train CORPUS learns vectors from it; w2v perplexity MODEL CORPUS and w2v evaluate MODEL --held-out FILE "
        "test models with it",
    ),
    "model": ("a model", "give it to w2v query MODEL, w2v info MODEL or w2v train CORPUS --continue MODEL"),
    "questions": (
        "analogy questions",
        "give them to w2v analogy MODEL QUESTIONS, or w2v evaluate MODEL --questions FILE",
    ),
    "pairs": ("scored word pairs", "give them to w2v similarity MODEL PAIRS, or w2v evaluate MODEL --pairs FILE"),
    "vocabulary": ("words and their counts", "give them as w2v train CORPUS --read-vocab FILE"),
    "ids": ("the cached ids of a text", "only w2v train --cache reads them; give the text or a model itself"),
}


def other_kind(path: object, found: str, wanted: str) -> W2VError:
    """An error: a file is of one kind, and should be of another."""
    holds, use = _KINDS[found]
    return W2VError(f"{path}: {holds}, not {_KINDS.get(wanted, [wanted])[0]}: {use}")


def refuse_other(path: PathLike, head: bytes, wanted: str, least: int = 1) -> None:
    """Raise W2VError if the file that begins with `head` is of another kind than wanted; see `kind_of`.

    If no kind is wanted, only models and ids are refused.
    """
    found = "ids" if b"\0" in head and is_id_file(path) else kind_of(head[:KIND_BYTES], least)
    if found and found != wanted and (wanted or found in ("model", "ids")):
        raise other_kind(path, found, wanted or "text")


def head(path: PathLike) -> bytes:
    """The first HEAD_BYTES of a file. Raises W2VError if it cannot be read."""
    with errors_named(path), Path(path).open("rb") as file:
        return file.read(HEAD_BYTES)


def kind_of(head: bytes, least: int = 1) -> str:
    """The kind of a file that begins with `head`; "" for a text and others.

    Files of words need `least` lines: more than one where a text is expected, which may look like them at first.
    """
    head = head.removeprefix(BYTE_ORDER_MARK)
    header = _HEADER.match(head)
    if is_native(head) or _NOT_TEXT.search(head):
        return "model" if header or is_native(head) else ""
    lines = head.split(b"\n")
    if len(lines) > 1:
        del lines[-1]  # it is cut, or empty
    lines = [line for line in lines if line.strip() and not line.startswith(b"#")]
    rows = [line.split() for line in lines]
    if header and _are_vectors(rows[1:], int(header[2])):
        return "model"
    if len(rows) < max(1, least):
        return ""
    if _are_vectors(rows):
        return "model"
    if _are_questions(rows):
        return "questions"
    if _are_pairs(lines, tables=least == 1):
        return "pairs"
    return "vocabulary" if _is_vocabulary(rows) else ""


def _are_vectors(rows: list[list[bytes]], columns: int = 0) -> bool:
    """Whether rows are a word and so many numbers, some with decimals; by default, two or more."""
    columns = columns or (len(rows[0]) - 1 if rows and len(rows[0]) > 2 else 0)
    return bool(rows and columns) and all(
        len(row) == columns + 1 and any(b"." in field for field in row[1:]) and all(map(_is_number, row[1:]))
        for row in rows
    )


def _are_questions(rows: list[list[bytes]]) -> bool:
    """Whether rows are four words, or begin with a colon, as the first does."""
    sections = [row[0].startswith(b":") for row in rows]
    return sections[0] and not all(sections) and all(len(row) == 4 or row[0].startswith(b":") for row in rows)


class PairLayout(NamedTuple):
    """How the lines of a file of scored word pairs are written.

    Attributes:
        separator: of fields: a tab, a comma, a semicolon, or a space for any white space.
        first: the field of the first word, which the second follows. score: the field of the score.
    """

    separator: str
    first: int
    score: int

    def fields(self, line: str) -> list[str]:
        """The fields of a line, without white space around them; none if it is not CSV where it should be."""
        if self.separator == " ":
            found = line.split("\t" if "\t" in line else None)
        elif self.separator == "\t":
            found = line.split("\t")
        else:
            try:
                found = next(csv.reader([line], delimiter=self.separator, skipinitialspace=True), [])
            except csv.Error:
                return []
        return [field.strip() for field in found]

    def pair(self, fields: list[str]) -> tuple[str, str, float] | None:
        """Return the words and the score in the fields of a line; None if one is missing or the score is not finite."""
        score = _score(fields[self.score]) if len(fields) > self.score else None
        words = fields[self.first : self.first + 2]
        return None if score is None or not all(words) else (words[0], words[1], score)

    def is_header(self, fields: list[str]) -> bool:
        """Whether the fields of the first line are names of columns: they have text in place of the score."""
        if len(fields) <= self.score:
            return False
        try:
            float(fields[self.score])
        except ValueError:
            return True
        return False


def pair_layout(lines: Sequence[str]) -> PairLayout | None:
    """The layout that most of these lines have, which are the first of a file of scored word pairs; None without any.

    The score is the first number after two words; a number before them, as of a table's row, does not count.
    """
    found: Counter[PairLayout] = Counter()
    for separator in "\t;, ":  # the first of equal counts is taken; semicolons before commas, which may be decimal
        for line in lines:
            fields = PairLayout(separator, 0, 2).fields(line)
            if separator in ("\t", " ") or separator in line:
                numbers = [_score(field) is not None for field in fields]
                first = int(numbers[:3] == [True, False, False])
                if True in numbers[first + 2 :] and all(fields[first : first + 2]):
                    found[PairLayout(separator, first, numbers.index(True, first + 2))] += 1
    return found.most_common(1)[0][0] if found else None


def _are_pairs(lines: list[bytes], tables: bool) -> bool:
    """Whether all lines are two words, without spaces in them, and a score; before them may be names of columns.

    Without `tables`, they must not have more columns, nor commas or semicolons: a table can also hold a text.
    """
    texts = [line.decode(errors="replace") for line in lines]
    layout = pair_layout(texts[:LAYOUT_LINES])
    if layout is None:
        return False
    rows = [layout.fields(text) for text in texts]
    rows = rows[len(rows) > 2 and layout.is_header(rows[0]) :]
    if {len(row) for row in rows} != {3} and (layout.separator == " " or not tables):
        return False
    if layout.separator in ",;" and not tables:
        return False
    words = [row[layout.first : layout.first + 2] for row in rows if layout.pair(row)]
    return len(words) == len(rows) and not any(" " in word or _is_number(word) for pair in words for word in pair)


def _is_vocabulary(rows: list[list[bytes]]) -> bool:
    """Whether rows are different words with their counts, sorted by count."""
    rows = rows[rows[0][0] == SENTENCE_END_WORD :]
    fits = all(len(row) == 2 and row[1].isdigit() and len(row[1]) < 20 and int(row[1]) for row in rows)
    counts = [int(row[1]) for row in rows] if fits else []
    return bool(counts) and len({row[0] for row in rows}) == len(rows) and counts == sorted(counts, reverse=True)


def _is_number(field: str | bytes) -> bool:
    with suppress(ValueError):
        return math.isfinite(float(field))
    return False


def _score(field: str) -> float | None:
    """Return the number in a field, with a decimal point or a decimal comma; None if it is not a finite number."""
    if comma := _DECIMAL_COMMA.fullmatch(field):
        return float(f"{comma[1]}.{comma[2]}")
    return float(field) if _is_number(field) else None


def is_native(head: bytes) -> bool:
    """Whether a file that begins with `head` is a safetensors file: a header length below 4 GB, then a brace."""
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32


def is_id_file(path: PathLike) -> bool:
    """Whether a file ends with the signature of id files."""
    with suppress(OSError, ValueError), Path(path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 32))
        return IDS in file.read(32)  # a device has no end
    return False


def lines(path: PathLike, wanted: str = "") -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line) of a text file, without a byte order mark.

    Raises W2VError for a file that cannot be read, changes while it is read, is recognised as not being UTF-8 text or
    as another kind than `wanted`, or has a line longer than MAX_LINE_BYTES.
    """
    with errors_named(path), Path(path).open("rb") as file, unchanged(path, file):
        refuse_other(path, file.peek(), wanted)
        for number in itertools.count(1):
            line = file.readline(MAX_LINE_BYTES + 1)
            if number == 1:
                line = text_start(path, line)
            if len(line) > MAX_LINE_BYTES:
                raise W2VError(f"{os.fspath(path)}, line {number}: longer than {MAX_LINE_BYTES} bytes")
            if not line and number > 1:
                return
            yield number, line


# -- word2vec files -----------------------------------------------------------------------------


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
        if is_text and not usual:
            raise other_kind(path, "text", "model")
        if not (is_text and first_line_is_whole):
            raise W2VError(f"{path}: not a vector file: it begins with {head[:24]!r}")
        if all(b"\t" in line and _is_number(line.split(b"\t", 1)[0]) for line in lines or [last] if line.strip()):
            raise W2VError(
                f"{path}: vectors without words, as w2v encode writes them: if they have words, put these beside it, "
                "one on each line, in a file of the same name with .metadata.tsv instead of .tsv"
            )
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

_NPZ = re.compile(ZIP + rb".{26}[\w./-]{1,200}\.npy", re.DOTALL)
_BUILD = "w2v.KeyedVectors(words, vectors).save('vectors.bin')"
_OTHERS = {  # signature: what the file is, and how to convert it; {path} is the quoted path
    NUMPY: "a NumPy array, without words: write them beside it, one on each line, to a file of the same name with "
    ".words.txt instead of .npy",
    HDF5: f"an HDF5 file: read its words and vectors, by h5py for instance, and use {_BUILD}",
    PICKLE: "a Python pickle, which can run any code when it is loaded, so w2v does not read it: load it with the tool "
    f"that wrote it, and use {_BUILD}",
    DOCUMENT: "an office document, without vectors",
    ZIP: "a zip archive: unpack it and give the vector file in it",
    UTF_16: "UTF-16 or UTF-32 text: convert it to UTF-8: iconv -f UTF-16 -t UTF-8 {path} > vectors.txt",
}


def refuse_foreign(path: PathLike, head: bytes) -> None:
    """Raise W2VError, with a way to convert it, if the file that begins with `head` is a known file of another tool."""
    quoted = repr(os.fspath(path))
    if not _HEADER.match(head):
        refuse_other(path, head, "model")
    if _NPZ.match(head):
        raise W2VError(f"{path}: a NumPy archive: load words and vectors by numpy.load({quoted}), and use {_BUILD}")
    for signature, kind in _OTHERS.items():
        if re.match(signature, head):
            raise W2VError(f"{path}: {kind.replace('{path}', quoted)}")
