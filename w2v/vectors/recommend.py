"""Recommendations: the items nearest to the items of a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from w2v.formats.item_lists import ItemLists
from w2v.options import check_numbers
from w2v.progress import Meter, Report
from w2v.system.threads import map_in_order, processors
from w2v.text._text import Lookup
from w2v.text.corpus import Corpus, TextBlock
from w2v.text.encodings import UTF_8, encoding_name
from w2v.text.idstore import locate_malformed
from w2v.text.normalise import Normaliser
from w2v.text.sessions import SessionBlock
from w2v.text.subwords import sums_of_rows
from w2v.vectors.cosines import Floats, unit
from w2v.vectors.neighbours import nearest

if TYPE_CHECKING:
    from w2v.vectors.approximate import ApproximateIndex

Result = tuple[NDArray[np.int64], Floats]


class Recommender:
    """Finds the items nearest by cosine to sessions.

    The vector of a session is the mean of its items' vectors, each scaled to length 1. An item that occurs twice counts
    twice. Items of the session are not recommended, and unknown items are left out. A session without a known item gets
    no recommendations.

    Attributes:
        sessions: Number of sessions so far.
        empty: Number of sessions without a known item.
        items: Number of items in the sessions.
        unknown: Number of unknown items.
    """

    def __init__(
        self,
        lookup: Lookup,
        vectors: NDArray[Any],
        norms: Floats,
        normalise: Normaliser,
        topn: int,
        last: int | None,
        index: ApproximateIndex | None,
    ) -> None:
        """Prepare a search; `lookup` finds the rows of items, and `KeyedVectors.recommender` describes the options.

        Raises:
            SettingsError: If `topn` or `last` is less than 1 or not a whole number.
        """
        check_numbers(topn=topn, **{} if last is None else {"last": last})
        self.sessions = self.empty = self.items = self.unknown = 0
        self._vectors, self._norms, self._index = vectors, norms, index
        self._topn, self._last = topn, last
        self._lookup = lookup
        self._normalise = normalise

    def blocks(
        self, sessions: Corpus, progress: Report | None = None, column: str | None = None, encoding: str = UTF_8
    ) -> Iterator[ItemLists]:
        """Yield the recommendations for sessions in blocks, one for each session in turn.

        A session is a list in the `column` of a table, or the items on a line, separated by white space.

        Raises:
            W2VError: If a file cannot be read, or if it is a table and `column` is None.
            SettingsError: If `encoding` is unknown.
        """
        meter = Meter(progress, "recommend")
        begun, done = np.empty(0, np.int64), 0  # the items of a session that goes on in the next block
        for rows, bytes_done in self._read(sessions, column, encoding_name(encoding)):
            ends = np.flatnonzero(rows < 0)
            if not len(ends):
                begun = np.concatenate([begun, rows])
                continue
            finished = np.concatenate([begun, rows[: ends[-1]]])
            begun, ends = rows[ends[-1] + 1 :], ends + len(begun)
            yield self._recommend(finished, ends)
            done = bytes_done
            meter(done, sessions.total_bytes)
        meter(done, done)

    def _read(self, sessions: Corpus, column: str | None, encoding: str) -> Iterator[tuple[NDArray[np.int64], int]]:
        """Yield the rows of the items, with -1 after each session, and the number of bytes read so far."""
        reading: dict[str, Any] = {"encoding": encoding, "errors": self._normalise.errors}
        for block in sessions.blocks(column, as_lines=True, action="recommended nothing for", **reading):
            if isinstance(block, SessionBlock):
                yield self._lookup.find(block.items)[0], block.bytes_done
                continue
            assert isinstance(block, TextBlock)
            with locate_malformed(block):
                text = self._normalise.to_valid_utf8(block.text)
            yield self._lookup.find(self._normalise(text))[0], block.bytes_done

    def _recommend(self, rows: NDArray[np.int64], ends: NDArray[np.int64]) -> ItemLists:
        """Return the recommendations for sessions, given the rows of their items and the position of each end."""
        is_item = np.ones(len(rows), np.bool_)
        is_item[ends[:-1]] = False
        is_known = is_item & (rows < len(self._vectors))
        ends_of_known = np.append(0, np.cumsum(is_known))[ends]  # the number of known items up to each end
        starts, sizes = np.append(0, ends_of_known), np.diff(ends_of_known, prepend=0)
        known = rows[is_known]
        self.sessions += len(ends)
        self.empty += int(np.count_nonzero(sizes == 0))
        self.items += int(np.count_nonzero(is_item))
        self.unknown += int(np.count_nonzero(is_item)) - len(known)
        asked = np.flatnonzero(sizes)
        left_out = [known[starts[session] : starts[session + 1]] for session in asked.tolist()]
        counts, found_rows, found_scores = np.zeros(len(ends), np.int64), list[Any](), list[Any]()
        queries = self._means(known, starts)[asked]
        for session, (best, scores) in zip(asked.tolist(), self._search(queries, left_out), strict=True):
            counts[session] = len(best)
            found_rows.append(best)
            found_scores.append(scores)
        return ItemLists(
            np.concatenate([np.empty(0, np.int64), *found_rows]),
            np.concatenate([np.empty(0, np.float32), *found_scores]),
            np.append(0, np.cumsum(counts)),
        )

    def _means(self, known: NDArray[np.int64], starts: NDArray[np.int64]) -> Floats:
        """Return the unit vector of each session, float32 (n, D); zeros for a session without known items."""
        if self._last is not None:
            sizes = np.diff(starts)
            positions_from_end = np.repeat(starts[1:], sizes) - np.arange(len(known))
            known = known[positions_from_end <= self._last]
            starts = np.append(0, np.cumsum(np.minimum(sizes, self._last)))
        distinct, indices = np.unique(known, return_inverse=True)
        vectors = unit(np.asarray(self._vectors[distinct], np.float32))
        return unit(sums_of_rows(vectors, indices, starts))

    def _search(self, queries: Floats, left_out: list[NDArray[np.int64]]) -> Iterator[Result]:
        """Yield for each query the nearest rows that are not left out, and their cosines."""
        index, topn = self._index, self._topn
        if index is None:
            yield from nearest(queries, self._vectors, self._norms, topn, left_out)
            return

        def search(number: int) -> Result:
            rows, scores = index.search(queries[number], topn + len(left_out[number]))
            allowed = np.flatnonzero(np.isin(rows, left_out[number], invert=True))[:topn]
            return rows[allowed], scores[allowed]

        yield from map_in_order(search, range(len(queries)), processors())
