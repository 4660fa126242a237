"""Recognise files by their content: models, questions, word pairs, vocabularies, and files of other tools."""

from __future__ import annotations

import codecs
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

from w2v._errors import W2VError, pluralise
from w2v._system import files
from w2v._system.files import PathLike, check_unchanged, text_start, translate_os_errors

HEAD_BYTES = 1 << 20  # bytes to inspect at the start of a file
MIN_TEXT_BYTES = 64  # at least this many bytes at the start of vectors look like text only if they are text
HEAD_LINES = 16  # lines to inspect for the number of columns
MAX_LINE_BYTES = 1 << 24
LAYOUT_LINES = 20  # lines to inspect for the layout of a file of word pairs
KIND_BYTES = 1 << 15  # bytes to inspect to recognise the kind of a file
SENTENCE_END_WORD = b"</s>"  # the entry for sentence ends in a vocabulary file

_HEADER = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t\r]*\n")
_BLANKS = re.compile(rb"[ \t\r]+")
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_WORD = re.compile(rb"\s*([^\s,;|]+\s*[,;|]|\S+)")  # the word of a row, with the comma after it, if any
_WRITTEN_NUMBERS = re.compile(rb"[-+0-9.,:;|eE\[\](){}\s]*[0-9][-+0-9.,:;|eE\[\](){}\s]*")
# Patterns of numbers that w2v does not read, what they look like, and what to do; the first that matches counts.
_LOOKS = {
    rb"[\[\](){}]": "brackets, like a Python list: leave them out",
    rb"[0-9]:": "pairs of an index and a value, like a sparse vector: write all values, without indexes",
    rb"(?:^|\s)[-+]?[0-9]*,[0-9]+(?:[eE][-+]?[0-9]+)?(?:\s|$)": "decimal commas: replace them with points",
    rb"[,;|]": "commas or other separators: separate numbers by spaces",
}
_DECIMAL_COMMA = re.compile(r"([+-]?[0-9]*),([0-9]+)")


# By kind: a description, and the commands that take such a file.
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
    "pairs": (
        "scored word pairs",
        "give them to w2v similarity MODEL PAIRS, w2v evaluate MODEL --pairs FILE or, if they are edges of a graph, "
        "w2v train --graph FILE",
    ),
    "vocabulary": ("words and their counts", "give them as w2v train CORPUS --read-vocab FILE"),
    "ids": ("the cached ids of a text", "only w2v train --cache reads them; give the text or a model itself"),
}


def wrong_kind_error(path: object, kind: str, expected: str) -> W2VError:
    """Return an error that says which kind a file has, which one is expected, and which commands take it."""
    description, use = _KINDS[kind]
    return W2VError(f"{path}: {description}, not {_KINDS.get(expected, [expected])[0]}: {use}")


def refuse_other_kind(path: PathLike, head: bytes, expected: str, min_lines: int = 1) -> None:
    """Refuse a file of another kind than expected.

    Args:
        path: The file.
        head: The start of the file, HEAD_BYTES or all of it.
        expected: A kind that `kind_of` returns; "" refuses only models and id files.
        min_lines: See `kind_of`.

    Raises:
        W2VError: If the file has another kind. The message says which commands take it.
    """
    kind = "ids" if b"\0" in head and is_id_file(path) else kind_of(head[:KIND_BYTES], min_lines)
    if kind and kind != expected and (expected or kind in ("model", "ids")):
        raise wrong_kind_error(path, kind, expected or "text")


def read_head(path: PathLike) -> bytes:
    """Return the first HEAD_BYTES of a file.

    Raises:
        W2VError: If the file cannot be read.
    """
    with translate_os_errors(path), Path(path).open("rb") as file:
        return file.read(HEAD_BYTES)


def kind_of(head: bytes, min_lines: int = 1) -> str:
    """Return the kind of the file that begins with `head`; "" for a text or an unknown kind.

    A word list must have at least `min_lines` lines to be recognised. Where a text is expected, give a higher number:
    a short text can look like a word list.
    """
    head = head.removeprefix(files.BYTE_ORDER_MARK)
    header = _HEADER.match(head)
    if is_native(head) or _NOT_TEXT.search(head):
        return "model" if header or is_native(head) else ""
    lines = head.split(b"\n")
    if len(lines) > 1:
        del lines[-1]  # it is empty, or truncated
    lines = [line for line in lines if line.strip() and not line.startswith(b"#")]
    rows = [line.split() for line in lines]
    if header and _are_vectors(rows[1:], int(header[2])):
        return "model"
    if len(rows) < max(1, min_lines):
        return ""
    if _are_vectors(rows):
        return "model"
    if _are_questions(rows):
        return "questions"
    if _are_pairs(lines, allow_tables=min_lines == 1):
        return "pairs"
    return "vocabulary" if _is_vocabulary(rows) else ""


def _are_vectors(rows: list[list[bytes]], columns: int = 0) -> bool:
    """Return whether each row is a word and `columns` numbers, one of them with a decimal point.

    By default, the first row gives the number of columns, which must be at least two.
    """
    columns = columns or (len(rows[0]) - 1 if rows and len(rows[0]) > 2 else 0)
    return bool(rows and columns) and all(
        len(row) == columns + 1 and any(b"." in field for field in row[1:]) and all(map(_is_number, row[1:]))
        for row in rows
    )


def _are_questions(rows: list[list[bytes]]) -> bool:
    """Return True if the first row is a section header, and each other row is a header or has four words.

    A header begins with a colon. At least one row must not be a header.
    """
    sections = [row[0].startswith(b":") for row in rows]
    return sections[0] and not all(sections) and all(len(row) == 4 or row[0].startswith(b":") for row in rows)


class PairLayout(NamedTuple):
    """The layout of the lines of a file of scored word pairs.

    Attributes:
        separator: The separator of fields: a tab, a comma, a semicolon, or a space for any white space.
        first: The index of the field with the first word. The second word is in the next field.
        score: The index of the field with the score.
    """

    separator: str
    first: int
    score: int

    def fields(self, line: str) -> list[str]:
        """Split a line into fields without surrounding white space. Return [] if it is invalid CSV."""
        if self.separator == " ":
            fields = line.split("\t" if "\t" in line else None)
        elif self.separator == "\t":
            fields = line.split("\t")
        else:
            try:
                fields = next(csv.reader([line], delimiter=self.separator, skipinitialspace=True), [])
            except csv.Error:
                return []
        return [field.strip() for field in fields]

    def pair(self, fields: list[str]) -> tuple[str, str, float] | None:
        """Return the two words and the score of a line, or None if a word or a finite score is missing."""
        score = _score(fields[self.score]) if len(fields) > self.score else None
        words = fields[self.first : self.first + 2]
        return None if score is None or not all(words) else (words[0], words[1], score)

    def is_header(self, fields: list[str]) -> bool:
        """Return whether the fields of the first line are column names, with text instead of a score."""
        return len(fields) > self.score and _number(fields[self.score]) is None


def pair_layout(lines: Sequence[str]) -> PairLayout | None:
    """Return the most common layout of the first lines of a file of scored word pairs, or None if no line has one.

    The score is the first number after two words. A number before the words, such as the row number of a table, is
    ignored.
    """
    layouts: Counter[PairLayout] = Counter()
    # The first separator wins a tie. Semicolons come before commas, because a comma can be a decimal comma.
    for separator in "\t;, ":
        for line in lines:
            fields = PairLayout(separator, 0, 2).fields(line)
            if separator in ("\t", " ") or separator in line:
                numbers = [_score(field) is not None for field in fields]
                first = int(numbers[:3] == [True, False, False])
                if True in numbers[first + 2 :] and all(fields[first : first + 2]):
                    layouts[PairLayout(separator, first, numbers.index(True, first + 2))] += 1
    return layouts.most_common(1)[0][0] if layouts else None


def _are_pairs(lines: list[bytes], allow_tables: bool) -> bool:
    """Return whether each line has two words, without spaces in them, and a score. Column names may come first.

    If `allow_tables` is false, refuse more than three columns, and commas and semicolons as separators: such a file may
    be a text in columns.
    """
    texts = [line.decode(errors="replace") for line in lines]
    layout = pair_layout(texts[:LAYOUT_LINES])
    if layout is None:
        return False
    rows = [layout.fields(text) for text in texts]
    if len(rows) > 2 and layout.is_header(rows[0]):
        del rows[0]
    if {len(row) for row in rows} != {3} and (layout.separator == " " or not allow_tables):
        return False
    if layout.separator in ",;" and not allow_tables:
        return False
    words = [row[layout.first : layout.first + 2] for row in rows if layout.pair(row)]
    return len(words) == len(rows) and not any(" " in word or _is_number(word) for pair in words for word in pair)


def _is_vocabulary(rows: list[list[bytes]]) -> bool:
    """Return whether the rows are different words with counts in descending order. The first may be sentence ends."""
    if rows[0][0] == SENTENCE_END_WORD:
        rows = rows[1:]
    have_counts = all(len(row) == 2 and row[1].isdigit() and len(row[1]) < 20 and int(row[1]) for row in rows)
    counts = [int(row[1]) for row in rows] if have_counts else []
    return bool(counts) and len({row[0] for row in rows}) == len(rows) and counts == sorted(counts, reverse=True)


def _is_number(field: str | bytes) -> bool:
    with suppress(ValueError):
        return math.isfinite(float(field))
    return False


def _number(field: str) -> float | None:
    """Return the number in a field, with a decimal point or a decimal comma. It may be NaN or infinite."""
    comma = _DECIMAL_COMMA.fullmatch(field)
    with suppress(ValueError):
        return float(f"{comma[1]}.{comma[2]}" if comma else field)
    return None


def _score(field: str) -> float | None:
    """Return the finite number in a field, or None."""
    number = _number(field)
    return number if number is not None and math.isfinite(number) else None


def is_native(head: bytes) -> bool:
    """Return whether `head` begins like a safetensors file: a header length below 4 GB, then a brace."""
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32


def is_id_file(path: PathLike) -> bool:
    """Return whether a file ends with the signature of id files."""
    with suppress(OSError, ValueError), Path(path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 32))
        return files.IDS_SIGNATURE in file.read(32)  # limited, because a device such as /dev/zero never ends
    return False


def read_lines(path: PathLike, expected: str = "") -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line) of a text file, without the byte order mark.

    Raises:
        W2VError: If the file cannot be read, changes while it is read, is not UTF-8 text, has another kind than
            `expected`, or has a line longer than MAX_LINE_BYTES.
    """
    with translate_os_errors(path), Path(path).open("rb") as file, check_unchanged(path, file):
        refuse_other_kind(path, file.peek(), expected)
        for number in itertools.count(1):
            line = file.readline(MAX_LINE_BYTES + 1)
            if number == 1:
                line = text_start(path, line)
            if len(line) > MAX_LINE_BYTES:
                raise W2VError(f"{os.fspath(path)}, line {number}: longer than {MAX_LINE_BYTES} bytes")
            if not line and number > 1:
                return
            yield number, line


def decode_line(path: PathLike | None, number: int, text: bytes) -> str:
    """Decode a line of `read_lines`, or a part of it.

    Raises:
        W2VError: If it is not UTF-8. The message names the line.
    """
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise W2VError(f"{path}, line {number}: {text[:60]!r} is not UTF-8") from None


# -- word2vec files -----------------------------------------------------------------------------


class Layout(NamedTuple):
    """The layout of the rows of a word2vec file."""

    kind: Literal["binary", "text"]
    rows: int | None  # from the header; None without a header, as in the files of GloVe and koan
    columns: int
    start: int  # offset of the first row in bytes

    def min_bytes(self, rows: int) -> int:
        """Return the smallest size of `rows` rows, if their numbers have one digit and their words no letters."""
        if self.kind == "binary":
            return rows * (4 * self.columns + 1)
        return rows * (2 * self.columns + 1) - 1  # the last line may lack its newline


def recognise_layout(path: PathLike, head: bytes) -> Layout:
    """Return the layout of a word2vec file.

    Args:
        path: The path of the file, for error messages.
        head: Its first HEAD_BYTES, or all of it if it is shorter.

    Raises:
        W2VError: If it is not a word2vec file, or has no vectors or a wrong header.
    """
    mark = len(files.BYTE_ORDER_MARK) if head.startswith(files.BYTE_ORDER_MARK) else 0
    header = _HEADER.match(head, mark)
    start = header.end() if header else mark
    *lines, last = head[start:].split(b"\n", HEAD_LINES)
    shown = [line for line in lines or [last] if line.strip()]
    numbers = list(map(_count_numbers, shown))
    usual = Counter(numbers).most_common(1)[0][0] if numbers else 0  # the most common number of columns
    is_text = not _NOT_TEXT.search((lines or [last])[0]) and b"\0" not in head
    first_line_is_whole = bool(lines) or len(head) < HEAD_BYTES
    rows, columns = (int(header[1]), int(header[2])) if header else (None, 0)
    if is_text and shown and usual < max(2, columns) and all(map(look_of_row, shown[1:] or shown)):
        row = next(row for row, line in enumerate(shown) if look_of_row(line))
        raise W2VError(f"{path}: row {row + 1} {describe_row(shown[row], columns)}")
    if rows is None:
        if is_text and not usual:
            raise wrong_kind_error(path, "text", "model")
        if not (is_text and first_line_is_whole):
            raise W2VError(f"{path}: not a vector file: it begins with {head[:24]!r}")
        if all(b"\t" in line and _is_number(line.split(b"\t", 1)[0]) for line in shown):
            raise W2VError(
                f"{path}: it has vectors but no words (w2v encode writes such files): if you have the words, write "
                "them, one per line, to NAME.metadata.tsv next to NAME.tsv"
            )
        return Layout("text", None, usual, start)
    if not rows or not columns:
        raise W2VError(f"{path}: no vectors: its header says {rows} rows of {columns} values")
    if usual == columns or (is_text and not first_line_is_whole):
        return Layout("text", rows, columns, start)
    if not (is_text and _is_long_text(head[start:])):
        if not is_text or 2 * usual < columns:
            return Layout("binary", rows, columns, start)
        if not lines:
            return Layout("text", rows, columns, start)
    if not usual:
        raise W2VError(f"{path}: row 1 {describe_row(shown[0], columns)}")
    raise W2VError(f"{path}: wrong header: it says {columns} values per row, but the rows have {usual}")


def _is_long_text(data: bytes) -> bool:
    """Return True for UTF-8 text. Short binary data can look like text by chance, so it must have MIN_TEXT_BYTES."""
    if len(data) < MIN_TEXT_BYTES or _NOT_TEXT.search(data):
        return False
    with suppress(UnicodeDecodeError):
        return bool(codecs.getincrementaldecoder("utf-8")().decode(data))  # the last character may be truncated
    return False


def look_of_row(line: bytes) -> str:
    """Return what is wrong with a row whose numbers are written in another way than with points and spaces, or ""."""
    numbers = _WORD.sub(b"", line, count=1)
    if not _WRITTEN_NUMBERS.fullmatch(numbers):
        return ""
    return next((look for pattern, look in _LOOKS.items() if re.search(pattern, numbers)), "")


def describe_row(line: bytes, columns: int) -> str:
    """Return the end of a message about a row of text that is not a word and numbers; `columns` may be 0."""
    look = look_of_row(line)
    expected = pluralise(columns, "number") if columns else "numbers"
    return f"is not a word and {expected}: {line.decode(errors='replace')[:60]!r}" + f" has {look}" * bool(look)


def _count_numbers(line: bytes) -> int:
    """Return the number of numeric fields at the end of a line. The first field is a word even if it is numeric."""
    count = 0
    for field in reversed(_BLANKS.split(line.strip(b" \t\r"))[1:]):
        try:
            float(field)
        except ValueError:
            break
        count += 1
    return count


# -- files of other tools -----------------------------------------------------------------------

_NPZ = re.compile(files.ZIP + rb".{26}[\w./-]{1,200}\.npy", re.DOTALL)
_SAVE_VECTORS_CODE = "w2v.KeyedVectors(words, vectors).save('vectors.bin')"
_OTHER_TOOLS = {  # signature: description of the file, and how to convert it; {path} is the quoted path
    files.NUMPY: "a NumPy array has no words: write them, one per line, to NAME.words.txt next to NAME.npy",
    files.HDF5: f"an HDF5 file: read its words and vectors, for instance by h5py, and use {_SAVE_VECTORS_CODE}",
    files.PICKLE: "a Python pickle, which can run any code when it is loaded, so w2v does not read it: load it with "
    f"the tool that wrote it, and use {_SAVE_VECTORS_CODE}",
    files.DOCUMENT: "an office document, without vectors",
    files.ZIP: "a zip archive: unpack it and give the vector file in it",
    files.UTF_16: "UTF-16 or UTF-32 text: convert it to UTF-8: iconv -f UTF-16 -t UTF-8 {path} > vectors.txt",
}


def refuse_file_of_other_tool(path: PathLike, head: bytes) -> None:
    """Refuse a file of another tool.

    Raises:
        W2VError: If `head`, the start of the file, has the signature of another tool, or is not a model. The message
            says how to convert or use the file.
    """
    quoted = repr(os.fspath(path))
    if not _HEADER.match(head):
        refuse_other_kind(path, head, "model")
    if _NPZ.match(head):
        raise W2VError(
            f"{path}: a NumPy archive: load words and vectors by numpy.load({quoted}), and use {_SAVE_VECTORS_CODE}"
        )
    for signature, advice in _OTHER_TOOLS.items():
        if re.match(signature, head):
            raise W2VError(f"{path}: {advice.replace('{path}', quoted)}")
