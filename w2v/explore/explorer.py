"""The answers to the questions of a served page: searches all words of a model."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from w2v.explore.content import Content, map_of
from w2v.plotting.projection import Projection
from w2v.progress import Report
from w2v.text.normalise import normalized
from w2v.vectors.approximate import ApproximateIndex
from w2v.vectors.keyed import KeyedVectors, Neighbours
from w2v.vectors.query import Method, Query

Answer = dict[str, Any]


class Explorer:
    """One model, with the methods of EmbeddedModel in assets/embedded.js."""

    def __init__(
        self,
        vectors: KeyedVectors,
        top: int,
        method: Projection,
        index: ApproximateIndex | None = None,
        progress: Report | None = None,
    ) -> None:
        """The map has the first `top` words; with an index, search is approximate. Raises as content.map_of."""
        self.vectors = vectors
        self._index = index
        self._completer = Completer(vectors.index_to_key)
        self._map = map_of(vectors, top, method, progress)

    def complete(self, text: str, n: int) -> list[Answer]:
        """At most n words that complete what is typed."""
        exact = [self.vectors.key_to_index[text]] if text in self.vectors.key_to_index else []
        rows = dict.fromkeys([*exact, *self._completer.rows(text, n)])
        return [self._word(row) for row in list(rows)[:n]]

    def nearest(self, plus: list[str], minus: list[str], method: Method, n: int) -> list[Answer]:
        """The n words nearest to plus - minus. Raises UnknownWordError."""
        query = Query(plus, minus, method)
        approximate = self._index is not None and method == "add"
        found = self._search_index(query, n) if approximate else query.answer(self.vectors, n)
        return [self._word(self.vectors.key_to_index[word], score) for word, score in found]

    def _search_index(self, query: Query, n: int) -> Neighbours:
        """Answer a query by 3CosAdd with the index. Raises UnknownWordError."""
        assert self._index is not None
        weights = [1.0] * len(query.positive) + [-1.0] * len(query.negative)
        direction = self.vectors.get_mean_vector(query.words, weights, post_normalize=True, ignore_missing=False)
        given = [self.vectors.key_to_index[word] for word in query.words if self.vectors.is_known(word)]
        rows, scores = self._index.search(direction, n + len(given))
        pairs = zip(rows.tolist(), scores.tolist(), strict=True)
        return [(self.vectors.index_to_key[row], score) for row, score in pairs if row not in given][:n]

    def vector(self, word: str) -> Answer:
        """The vector of a word, and its row and count (None if it is made of n-grams). Raises UnknownWordError."""
        values = self.vectors[word].tolist()
        row = self.vectors.key_to_index.get(word)
        return {"row": row, "count": None if row is None else self._count(row), "values": values}

    def map(self) -> Content:
        """As content.map_of gives it."""
        return self._map

    def _word(self, row: int, score: float | None = None) -> Answer:
        return {"word": self.vectors.index_to_key[row], "count": self._count(row), "score": score}

    def _count(self, row: int) -> int | None:
        return None if self.vectors.counts is None else int(self.vectors.counts[row])


class Completer:
    """Find words by what is typed: whole words, then beginnings, then parts, each in the order of the vocabulary."""

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


def fold(text: str) -> str:
    """Return upper case without accents, as assets/words.js does: "koln" finds "Köln", "strasse" finds "Straße"."""
    if not text.isascii():
        decomposed = normalized(text, "NFKD")
        text = "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
    return text.upper().replace("\n", " ")
