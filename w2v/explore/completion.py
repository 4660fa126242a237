"""Words found by what is typed, forgiving of case and accents: the same as assets/words.js."""

import unicodedata
from collections.abc import Sequence

import numpy as np

from w2v.text.normalise import normalized


def fold(text: str) -> str:
    """Upper case without accents: "koln" finds "Köln", "strasse" finds "Straße"."""
    if not text.isascii():
        decomposed = normalized(text, "NFKD")
        text = "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
    return text.upper().replace("\n", " ")


class Completer:
    """Finds whole words first, then beginnings, then parts, each in the order of the vocabulary."""

    def __init__(self, words: Sequence[str]) -> None:
        folded = [fold(word) for word in words]
        self._text = "\n".join(["", *folded, ""])
        self._starts = np.zeros(len(folded) + 1, np.int64)  # of the line break before each word, and of the last
        np.cumsum([len(word) + 1 for word in folded], out=self._starts[1:])

    def rows(self, typed: str, n: int) -> list[int]:
        """The rows of at most n words."""
        wanted, end = fold(typed), self._starts[-1]
        found: dict[int, None] = {}
        for pattern in (f"\n{wanted}\n", f"\n{wanted}", wanted):
            at = self._text.find(pattern)
            while 0 <= at < end and len(found) < n:
                row = int(np.searchsorted(self._starts, at, side="right")) - 1
                found[row] = None
                at = self._text.find(pattern, self._starts[row + 1])
        return list(found)
