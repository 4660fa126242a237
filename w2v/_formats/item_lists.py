"""Files with a list of items and a list of scores for each of many sessions, which may have names."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, W2VError
from w2v._formats import arrow
from w2v._system.files import PathLike, atomic_write
from w2v._text.sessions import Keys

SESSION, ITEMS, SCORES = "session", "items", "scores"  # the names of the columns
DIGITS = 6  # of a score in JSON


class ItemLists(NamedTuple):
    """The items of consecutive sessions, with a score each.

    Attributes:
        rows: int64 (m,), the rows of the items of all sessions.
        scores: float32 (m,).
        starts: int64 (sessions + 1,). Session k has the items rows[starts[k] : starts[k + 1]].
        names: The names of the sessions, if they have names.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    starts: NDArray[np.int64]
    names: Keys | None = None

    def sessions(self, keys: Sequence[Any]) -> Iterator[list[tuple[Any, float]]]:
        """Yield the pairs (key, score) of each session. `keys` are the keys of all rows."""
        pairs = [(keys[row], score) for row, score in zip(self.rows.tolist(), self.scores.tolist(), strict=True)]
        starts = self.starts.tolist()
        for start, end in itertools.pairwise(starts):
            yield pairs[start:end]


def _write_json_lines(path: PathLike, keys: Sequence[Any], blocks: Iterable[ItemLists], replace: bool) -> None:
    with atomic_write(path, replace) as file:
        for block in blocks:
            names = itertools.repeat(None) if block.names is None else block.names.tolist()
            for name, pairs in zip(names, block.sessions(keys), strict=False):
                row = {} if block.names is None else {SESSION: name}
                row |= {ITEMS: [key for key, _ in pairs], SCORES: [round(score, DIGITS) for _, score in pairs]}
                file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _write_table(path: PathLike, keys: Sequence[Any], blocks: Iterable[ItemLists], replace: bool) -> None:
    pa = arrow.import_pyarrow(path)
    key_type = arrow.type_of_keys(pa, keys, ".jsonl")
    all_keys = pa.array(keys, key_type)
    fields = [(ITEMS, pa.list_(key_type)), (SCORES, pa.list_(pa.float32()))]
    blocks = iter(blocks)
    head = [*itertools.islice(blocks, 1)]
    for names in (block.names for block in head if block.names is not None):
        fields.insert(0, (SESSION, arrow.type_of_keys(pa, names.tolist(), ".jsonl")))
    schema = pa.schema(fields)
    with atomic_write(path, replace) as file, arrow.open_writer(path, pa, file, schema) as out:
        for block in itertools.chain(head, blocks):
            starts = pa.array(block.starts.astype(np.int32))
            values = all_keys.take(pa.array(block.rows)), pa.array(block.scores)
            columns = [pa.ListArray.from_arrays(starts, each) for each in values]
            if block.names is not None:
                columns.insert(0, _column_of_names(pa, block.names, fields[0][1]))
            out.write_batch(pa.record_batch(columns, schema=schema))


def _column_of_names(pa: Any, names: Keys, kind: Any) -> Any:
    """Return the names of sessions as a column of a type that the first names have."""
    try:
        return pa.array(names.tolist(), kind)
    except OverflowError:
        raise W2VError(f"the sessions do not fit one type of integers, {kind}: use .jsonl") from None


# Writers by extension. Their arguments are a path, the keys of all rows, the blocks, and `replace`.
WRITERS: dict[str, Callable[[PathLike, Sequence[Any], Iterable[ItemLists], bool], None]] = {
    ".parquet": _write_table,
    ".arrow": _write_table,
    ".jsonl": _write_json_lines,
}


def writer_for(path: PathLike) -> Callable[[PathLike, Sequence[Any], Iterable[ItemLists], bool], None]:
    """Return the function that writes a file with this name.

    Raises:
        SettingsError: If the extension is unknown.
    """
    extension = Path(path).suffix.lower()
    if extension not in WRITERS:
        raise SettingsError(f"{path}: unknown extension: use one of {', '.join(WRITERS)}")
    return WRITERS[extension]
