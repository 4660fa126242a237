"""Answer the queries of a served page from all words of a model."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from w2v._explore.content import Content
from w2v._vectors.approximate import ApproximateIndex
from w2v._vectors.keyed import KeyedVectors, Neighbours
from w2v._vectors.query import Method, Query

Answer = dict[str, Any]


class Explorer:
    """A model that answers the page's queries, with the same methods as EmbeddedModel in assets/embedded.js."""

    def __init__(self, vectors: KeyedVectors, word_map: Content, index: ApproximateIndex | None = None) -> None:
        """Prepare the completion of words. With an index, `nearest` is approximate."""
        self.vectors = vectors
        self._index = index
        self._completer = Completer([*map(str, vectors.index_to_key)])
        self._map = word_map

    def complete(self, text: str, topn: int) -> list[Answer]:
        """Return at most `topn` words that match the typed text, a word of exactly this spelling first."""
        exact = self.vectors.row_of(text)
        rows = dict.fromkeys([*([] if exact is None else [exact]), *self._completer.rows(text, topn)])
        return [self._word(row) for row in list(rows)[:topn]]

    def nearest(self, plus: list[str], minus: list[str], method: Method, topn: int) -> list[Answer]:
        """Return the `topn` words nearest to plus - minus.

        Raises:
            UnknownWordError: A word has no vector.
        """
        query = Query(plus, minus, method)
        approximate = self._index is not None and method == "add"
        neighbours = self._search_index(query, topn) if approximate else query.answer(self.vectors, topn)
        return [self._word(self.vectors.key_to_index[word], score) for word, score in neighbours]

    def _search_index(self, query: Query, topn: int) -> Neighbours:
        """Return the `topn` nearest words by 3CosAdd from the approximate index."""
        assert self._index is not None
        weights = [1.0] * len(query.positive) + [-1.0] * len(query.negative)
        direction = self.vectors.get_mean_vector(query.words, weights, post_normalize=True, ignore_missing=False)
        query_rows = [row for word in query.words if (row := self.vectors.row_of(word)) is not None]
        rows, scores = self._index.search(direction, topn + len(query_rows))
        pairs = zip(rows.tolist(), scores.tolist(), strict=True)
        return [(self.vectors.index_to_key[row], score) for row, score in pairs if row not in query_rows][:topn]

    def vector(self, word: str) -> Answer:
        """Return a word's row, count, and the values of its vector.

        Row and count are None if the vector is composed of n-grams.

        Raises:
            UnknownWordError: The word has no vector.
        """
        values = self.vectors[word].tolist()
        row = self.vectors.row_of(word)
        return {"row": row, "count": None if row is None else self._count(row), "values": values}

    def map(self) -> Content:
        """Return the data of the map; see word_maps."""
        return self._map

    def _word(self, row: int, score: float | None = None) -> Answer:
        return {"word": str(self.vectors.index_to_key[row]), "count": self._count(row), "score": score}

    def _count(self, row: int) -> int | None:
        return None if self.vectors.counts is None else int(self.vectors.counts[row])


class Completer:
    """A completer of typed text to words that ignores case and accents.

    Whole words come before words that begin with the text, and these before words that contain it. Words of each kind
    are in the order of the vocabulary.
    """

    def __init__(self, words: Sequence[str]) -> None:
        folded = [fold(word) for word in words]
        self._text = "\n".join(["", *folded, ""])
        self._starts = np.zeros(len(folded) + 1, np.int64)  # offsets of the line breaks around the words
        np.cumsum([len(word) + 1 for word in folded], out=self._starts[1:])

    def rows(self, typed: str, topn: int) -> list[int]:
        """Return the rows of at most `topn` matching words."""
        folded, end = fold(typed), self._starts[-1]
        rows: dict[int, None] = {}  # used as an ordered set
        for pattern in (f"\n{folded}\n", f"\n{folded}", folded):
            offset = self._text.find(pattern)
            while 0 <= offset < end and len(rows) < topn:
                row = int(np.searchsorted(self._starts, offset, side="right")) - 1
                rows[row] = None
                offset = self._text.find(pattern, self._starts[row + 1])
        return list(rows)


def fold(text: str) -> str:
    """Return text in upper case without accents, as assets/words.js does: "koln" and "Köln" become the same."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
    return text.upper().replace("\n", " ")
