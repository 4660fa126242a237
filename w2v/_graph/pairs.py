"""`PairSource`: a user's pairs of inputs and contexts, in files, a table, a matrix or an iterable, as a `Graph`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice, repeat
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import NothingToTrain, SettingsError, W2VError, pluralise
from w2v._graph.graph import Graph, is_graph, is_networkx
from w2v._graph.readers import GraphOptions, read_graph
from w2v._progress import Report
from w2v._system.files import PathLike, temporary_folder, translate_os_errors
from w2v._text._text import FIRST_TYPE, Items, Types
from w2v._text.columns import JSON_START, columnar_kind
from w2v._text.corpus import Corpus, DataFrameLike, FromFiles
from w2v._text.decompress import decompress
from w2v._text.idstore import IdStore, store_of_ids
from w2v._text.words import OWN_PREFIX, Words, encode, is_missing, is_number

PREFIX = OWN_PREFIX.encode()  # of the names of contexts, unless inputs and contexts have one vocabulary
ROWS_AT_ONCE = 1 << 16
HEAD_BYTES = 1 << 12  # from which a file of JSON, Parquet or Arrow is recognised
MAX_WEIGHT = float(np.finfo(np.float32).max)

Row = tuple[str, Any, Any, Any]  # the place for messages, the input, the context, and the weight


class PairSource(FromFiles):
    """A user's pairs of an input and a context, each with a weight.

    One of: files, which hold an edge list (see `read_graph`), a Matrix Market, .npz or .mat matrix, or a table of JSON,
    Parquet or Arrow; a table in memory; a scipy.sparse matrix of inputs × contexts; or an iterable of pairs or triples.

    Args:
        source: The pairs.
        weights: The weights of an iterable of pairs, (N,); by default 1, or the third value of each triple.

    Attributes:
        groups: After `read` with `negatives_from`, the group of each context.
        graph: After `read`, the pairs: an edge from each context to its inputs, with the sum of the weights of equal
            pairs. The names of contexts begin with PREFIX, unless there is one vocabulary.

    Raises:
        W2VError: The source is something else.
    """

    graph: Graph
    groups: dict[bytes, bytes]

    def __init__(self, source: Any, weights: Iterable[Any] | None = None) -> None:
        self._pairs, self._weights = source, weights
        if is_networkx(source) or isinstance(source, Graph | Mapping):
            raise W2VError(f"pairs are triples, a table, a matrix or a path, not of type {type(source).__name__}")
        if isinstance(source, np.ndarray) and source.ndim == 2 and (source.dtype.kind == "f" or source.shape[1] > 3):
            raise W2VError(f"pairs: an array of shape {source.shape} is a matrix: give scipy.sparse.csr_array(array)")
        is_path = isinstance(source, Corpus | str | Path)
        if is_path or isinstance(source, DataFrameLike) or _are_paths(source):
            self.source = source if isinstance(source, Corpus) else Corpus(source)
        elif not is_graph(source) and not isinstance(source, Iterable):
            raise W2VError(f"pairs are triples, a table, a matrix or a path, not of type {type(source).__name__}")
        if weights is not None and (self.source or is_graph(source)):
            raise SettingsError("weights belong to a list of pairs: name the column of a table with edges=")

    def checksum(self) -> str:
        """Return the SHA-256 of what the ids of `read` lack: numbers of inputs of contexts, weights and groups."""
        assert self.graph.weights is not None
        digest = hashlib.sha256(self.graph.indptr.data)
        digest.update(self.graph.weights.data)
        digest.update(str(self.groups or "").encode())
        return digest.hexdigest()

    def __str__(self) -> str:
        return str(self.source) if self.files else "the pairs"

    def read(
        self,
        options: GraphOptions,
        negatives_from: str | None = None,
        *,
        folder: PathLike | None,
        workers: int = 1,
        progress: Report | None = None,
    ) -> IdStore:
        """Read the pairs into `graph`, and return the inputs of all pairs as ids, in a temporary file in a folder.

        `negatives_from` is the column of a table with the group of the context.

        Raises:
            W2VError: The pairs cannot be read, or there are none with a weight above 0.
        """
        prefixes, self.groups = (PREFIX if options.bipartite else b"", b""), {}
        if negatives_from is not None and (self.source is None or options.delimiter or options.graph_format):
            raise SettingsError(
                "--negatives-from (negatives_from=) names a column: give a table, without --delimiter and --format"
            )
        if is_graph(self._pairs):
            matrix = Graph.of(self._pairs, weighted=True, directed=True, bipartite=True)
            self.graph = matrix.as_pairs(prefixes)
        elif self.files and negatives_from is None and not _is_table(self.files[0]):
            assert self.source
            options = replace(options, directed=True)
            self.graph = read_graph(self.source, options, pairs=prefixes, workers=workers, progress=progress)
        else:
            self.graph = _graph_of_rows(self._rows(options, negatives_from), prefixes, workers)
        graph = self.graph
        if not len(graph.neighbours):
            raise NothingToTrain(f"{self}: no pair has a weight above 0")
        if options.bipartite and (own := graph.neighbours[graph.names.start_with(PREFIX)[graph.neighbours]]).size:
            name = graph.names[own[0]]
            raise W2VError(f"{self}: the input {name!r:.60} begins with U+E000, which marks contexts: rename it")
        names = Words(graph.names.blob, np.append(np.zeros(FIRST_TYPE, np.int64), graph.names.offsets))
        counts = np.bincount(graph.neighbours, minlength=graph.nodes).astype(np.int64)
        counts = np.append(np.zeros(FIRST_TYPE, np.int64), counts)
        ids = [(graph.neighbours + np.uint32(FIRST_TYPE), 1.0)]
        key_type = graph.key_type
        return store_of_ids(ids, lambda: (counts, names), temporary_folder(folder), key_type=key_type, noun="item")

    def _rows(self, options: GraphOptions, negatives_from: str | None) -> Iterator[Row]:
        """Yield the rows of a table, or the pairs or triples of an iterable."""
        if self.source:
            if options.edges is None and self.files:
                raise W2VError(f"{self} is a table: name its columns with --edges INPUT,CONTEXT[,WEIGHT] (edges=)")
            columns = getattr(self._pairs, "column_names", None) or getattr(self._pairs, "columns", [])
            names = options.edges.split(",") if options.edges else [*map(str, columns)][:3]
            if len(names) < 2:
                raise W2VError(f"a table with the columns {names!r:.60}: pairs need an input and a context")
            names = names if negatives_from is None else [*names, negatives_from]
            for where, (given, context, *others) in self.source.cells(names):
                group = None if negatives_from is None else others.pop()
                weight = others[0] if others else 1
                if self.files and isinstance(weight, str):  # CSV has no types
                    with suppress(ValueError):
                        weight = float(weight)
                if negatives_from is not None and weight != 0:  # pairs of weight 0 are left out
                    name, named = _name(context, where), _name(group, where, "a group of a context")
                    if self.groups.setdefault(name, named) != named:
                        other = f"{context!r:.60} has another group, {named.decode()!r:.60}, than in a row before"
                        raise W2VError(f"{where}: the context {other}: a context has one group")
                yield where, given, context, weight
            return
        pairs: Iterable[tuple[Any, Any]] = zip(self._pairs, repeat(1), strict=False)
        if self._weights is not None:
            rows, weights = list(self._pairs), list(self._weights)
            if len(rows) != len(weights):
                found = f"{pluralise(len(weights), 'weight')} (weights=) for {pluralise(len(rows), 'pair')}"
                raise W2VError(f"{found}: one number is needed for each pair")
            pairs = zip(rows, weights, strict=True)
        for number, (row, weight) in enumerate(pairs, 1):
            values = list(row) if isinstance(row, Iterable) and not isinstance(row, str) else []
            values += [weight] if len(values) == 2 or self._weights is not None else []
            if len(values) != 3:
                raise W2VError(f"pair {number}: {row!r:.60} is not an input, a context and perhaps a weight")
            yield f"pair {number}", *values


def _graph_of_rows(rows: Iterator[Row], prefixes: tuple[bytes, bytes], workers: int) -> Graph:
    """Return the graph of pairs, as `read_graph` does with `pairs`."""
    types, key_type = Types(), "int"
    blocks: list[tuple[NDArray[np.uint32], NDArray[np.float32] | None]] = []
    while block := list(islice(rows, ROWS_AT_ONCE)):
        names = Words.of(
            prefix + _name(value, where)
            for where, given, context, _ in block
            for prefix, value in zip(prefixes, (context, given), strict=True)
        )
        if any(isinstance(value, str) for _, *pair, _ in block for value in pair):
            key_type = "str"
        scanned = types.scan(Items(names.blob, names.offsets, np.array([len(names)])))
        blocks.append((types.merge(scanned)[:-1], np.array([_weight(row) for row in block], np.float32)))
    strings = np.concatenate([np.empty(0, np.uint8), *types.strings()])
    found = Words(strings, np.cumsum(np.append(0, types.lengths()[FIRST_TYPE:])))
    how: Any = {"key_type": key_type, "add_repeats": True, "workers": workers}
    return Graph.from_blocks(blocks, found, directed=True, **how)


def _name(value: Any, where: str, noun: str = "an input or context") -> bytes:
    """Return the name of an input or a context. Raise W2VError unless it is valid text or a whole number."""
    if isinstance(value, str) and value:
        return encode(value)
    if is_number(value) or (isinstance(value, float) and value.is_integer()):
        return b"%d" % value
    found = "missing" if is_missing(value) or value == "" else f"{value!r:.60}"
    raise W2VError(f"{where}: {noun} is {found}: it must be text or a whole number")


def _weight(row: Row) -> float:
    """Return the weight of a row. Raise W2VError if it is impossible."""
    where, *_, weight = row
    if not isinstance(weight, Real) or not 0 <= float(weight) <= MAX_WEIGHT:
        raise W2VError(f"{where}: the weight {weight!r:.60} is not a number from 0 to 3.4e38")
    return float(weight)


def _is_table(path: str) -> bool:
    """Return True if a file is a table of JSON, Parquet or Arrow, rather than an edge list."""
    if path == "-":
        return False
    with translate_os_errors(path), Path(path).open("rb") as file, suppress(W2VError):
        head = next(decompress(path, iter(lambda: file.read(HEAD_BYTES), b"")), b"")
        return bool(columnar_kind(head) or JSON_START.match(head))
    return False


def _are_paths(source: Any) -> bool:
    return isinstance(source, list | tuple) and any(isinstance(item, os.PathLike) for item in source)
