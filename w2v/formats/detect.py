"""What a file is, told by its first bytes."""

import re
from collections import Counter
from typing import Literal, NamedTuple

from w2v.errors import W2VError
from w2v.files import BYTE_ORDER_MARK

SAMPLE = 1 << 20  # bytes looked at
LINES = 16  # lines that vote on the number of columns

_HEADER = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t\r]*\n")
_BLANKS = re.compile(rb"[ \t\r]+")
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f]")


class Layout(NamedTuple):
    """How the rows of a word2vec file lie."""

    kind: Literal["binary", "text"]
    rows: int | None  # as the header says; None without a header, as GloVe and koan write
    columns: int
    start: int  # bytes before the first row

    def least_bytes(self, rows: int) -> int:
        """The fewest bytes that so many rows of different words can take, at one digit a number."""
        length = 0 if self.kind == "binary" else 1  # of the shortest word
        row = 4 * self.columns + 1 if self.kind == "binary" else 2 * self.columns + 1
        size = rows * row - (self.kind == "text")  # the last line may have no end
        while rows > 0:
            alike = min(rows, 1 << 8 * length)  # words of this length
            size += alike * length
            rows -= alike
            length += 1
        return size


def recognise(path: object, sample: bytes) -> Layout:
    """The layout of the word2vec file that begins with `sample` (SAMPLE bytes, or all of it).

    Raises W2VError for anything else.
    """
    mark = len(BYTE_ORDER_MARK) if sample.startswith(BYTE_ORDER_MARK) else 0
    header = _HEADER.match(sample, mark)
    start = header.end() if header else mark
    *lines, last = sample[start:].split(b"\n", LINES)
    votes = [_numbers(line) for line in lines or [last] if line.strip()]
    usual = Counter(votes).most_common(1)[0][0] if votes else 0
    is_text = not _NOT_TEXT.search((lines or [last])[0]) and b"\0" not in sample
    whole = bool(lines) or len(sample) < SAMPLE  # whether the first line is
    if not header:
        if not (is_text and whole and usual):
            raise W2VError(f"{path}: not a vector file: it begins with {sample[:24]!r}")
        return Layout("text", None, usual, start)
    rows, columns = int(header[1]), int(header[2])
    if not rows or not columns:
        raise W2VError(f"{path}: it holds no vectors: its header says {rows} rows of {columns} values")
    if usual != columns and (not is_text or (whole and 2 * usual < columns)):
        return Layout("binary", rows, columns, start)
    if usual != columns and lines:
        raise W2VError(f"{path}: wrong header: it says {columns} values in a row, its rows have {usual}")
    return Layout("text", rows, columns, start)


def _numbers(line: bytes) -> int:
    """How many fields at the end of a line are numbers, the first field never being one."""
    count = 0
    for text in reversed(_BLANKS.split(line.strip(b" \t\r"))[1:]):
        try:
            float(text)
        except ValueError:
            break
        count += 1
    return count
