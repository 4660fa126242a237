"""Recommendations: the items nearest to the items of a session."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError
from w2v._formats.item_lists import ItemLists
from w2v._options import check_numbers
from w2v._progress import Meter, Report
from w2v._system.files import Errors, temporary_folder
from w2v._system.threads import map_in_order, processors
from w2v._text.corpus import Corpus, DataFrameLike, TextBlock
from w2v._text.encodings import UTF_8, encoding_name
from w2v._text.idstore import locate_malformed, sessions_of_table
from w2v._text.long_table import LongTable
from w2v._text.normalise import Normaliser
from w2v._text.sessions import NO_KEYS, Keys, SessionBlock
from w2v._text.subwords import sums_of_rows
from w2v._vectors.cosines import Floats, unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, Neighbours, vectors_of
from w2v._vectors.neighbours import nearest

if TYPE_CHECKING:
    from w2v._vectors.approximate import ApproximateIndex

Result = tuple[NDArray[np.int64], Floats]
SESSIONS_AT_ONCE = 1 << 16
LAST = 10  # gains 4.9 points over all items on MovieLens, and loses 0.8 in baskets (bench/README.md)
MAX_ITEMS = 1 << 62  # more than a session can have


def recommend(
    model: KeyedVectors | HasWordVectors,
    sessions: Iterable[Iterable[Any] | None],
    topn: int = 10,
    last: int | None = LAST,
    index: ApproximateIndex | None = None,
) -> list[Neighbours]:
    """Return the `topn` items nearest to each of n sessions and their cosines, computed in batches; see Recommender.

    Args:
        model: A model or vectors.
        sessions: Lists of items. A session without a known item gets an empty list.
        topn: The number of items to return for a session. Items of the session are left out.
        last: Use only the last `last` known items of a session; None for all.
        index: Search in this index of the vectors instead of comparing all items.

    Raises:
        SettingsError: If `topn` or `last` is less than 1 or not a whole number.
        W2VError: If `sessions` is not a list of lists.
    """
    if isinstance(sessions, str | os.PathLike | DataFrameLike | Mapping):
        raise W2VError(f"a list of sessions is needed, not an object of type {type(sessions).__name__}")
    vectors = vectors_of(model)
    blocks = Recommender(vectors, topn, last, index).blocks(Corpus(sessions), progress=lambda _: None)
    return [found for block in blocks for found in block.sessions(vectors.index_to_key)]


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
        vectors: KeyedVectors,
        topn: int = 10,
        last: int | None = LAST,
        index: ApproximateIndex | None = None,
        errors: Errors = "strict",
    ) -> None:
        """Prepare a search. `recommend` describes the options; `errors` says how to treat bytes that are not UTF-8.

        Raises:
            SettingsError: If `topn` or `last` is less than 1 or not a whole number.
        """
        check_numbers(topn=topn, last=last)
        self.sessions = self.empty = self.items = self.unknown = 0
        self._vectors, self._norms, self._index = vectors.vectors, vectors.norms, index
        self._topn, self._last = min(topn, len(vectors)), last and min(last, MAX_ITEMS)
        self._lookup = vectors.lookup
        self._normalise = Normaliser(vectors.header.text, errors)

    def blocks(
        self,
        sessions: Corpus,
        progress: Report | None = None,
        column: str | None = None,
        encoding: str = UTF_8,
        long_table: LongTable | None = None,
    ) -> Generator[ItemLists, None, None]:
        """Yield the recommendations for sessions in blocks, one for each session in turn.

        A session is a list in the `column` of a table, or the items on a line, separated by white space. In a
        `long_table`, a session has several rows; the sessions then have names, and are in the order of their first
        rows. Close the generator if you stop before its end: a long table has temporary files.

        Raises:
            W2VError: If a file cannot be read, or if it is a table and neither `column` nor `long_table` is given.
            SettingsError: If `encoding` is unknown.
        """
        meter, errors = Meter(progress, "recommend"), self._normalise.errors
        reading: dict[str, Any] = {"encoding": encoding_name(encoding), "errors": errors, "long_table": long_table}
        read: Any = sessions.blocks(column, as_lines=True, action="recommended nothing for", **reading)
        if long_table:
            folder, reading_meter, total = temporary_folder(None), Meter(progress, "read"), sessions.total_bytes
            read = sessions_of_table(read, folder, errors, processors(), reading_meter, total, with_names=True)
        begun, done = np.empty(0, np.int64), 0  # the items of a session that goes on in the next block
        for rows, names, bytes_done in map(self._rows_of, read):
            ends = np.flatnonzero(rows < 0)
            if not len(ends):
                begun = np.concatenate([begun, rows])
                continue
            finished = np.concatenate([begun, rows[: ends[-1]]])
            begun, ends = rows[ends[-1] + 1 :], ends + len(begun)
            starts = np.append(0, ends[:-1] + 1)
            for first in range(0, len(ends), SESSIONS_AT_ONCE):
                part = ends[first : first + SESSIONS_AT_ONCE]
                found = self._recommend(finished[starts[first] : part[-1]], part - starts[first])
                yield found._replace(names=names and names.take(np.arange(first, first + len(part))))
            done = bytes_done
            meter(done, sessions.total_bytes)
        if long_table and not self.sessions:
            yield ItemLists(np.empty(0, np.int64), np.empty(0, np.float32), np.zeros(1, np.int64), NO_KEYS)
        meter(done, done)

    def _rows_of(self, block: TextBlock | SessionBlock) -> tuple[NDArray[np.int64], Keys | None, int]:
        """Return the rows of the items, with -1 after each session, the names of the sessions, and the bytes read."""
        if isinstance(block, SessionBlock):
            return self._lookup.find(block.items)[0], block.names, block.bytes_done
        with locate_malformed(block):
            text = self._normalise.to_valid_utf8(block.text)
        return self._lookup.find(self._normalise(text))[0], None, block.bytes_done

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
