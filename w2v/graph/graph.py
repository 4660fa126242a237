"""`Graph`: the nodes and edges of a graph in compressed sparse rows, built from edges, scipy.sparse or networkx."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError, pluralise
from w2v.graph._edges import close_gaps, count_degrees, count_loops, is_symmetric, scatter, sort_rows
from w2v.system.threads import map_in_order
from w2v.text._text import FIRST_TYPE, decimal_words
from w2v.text.words import KeyType, Words, is_number

MAX_NODES = 1 << 30  # ids have 31 bits
EDGES_AT_ONCE = 1 << 20  # entries of the rows that a thread sorts at a time


class Graph:
    """A graph with weighted or unweighted edges.

    A repeated edge counts once, with its last weight, as in networkx and PecanPy. An edge of weight 0 is left out. A
    loop is one neighbour of its node. In an undirected graph, each edge is in the rows of both nodes.

    Attributes:
        indptr: int64 (nodes + 1,). The neighbours of node i are neighbours[indptr[i]:indptr[i + 1]].
        neighbours: uint32 (edges,), sorted in each row.
        weights: float32 (edges,), positive, or None if all edges weigh the same.
        names: The names of the nodes.
        directed: Whether an edge leads only from its first node to its second.
        key_type: "int" if the names are whole numbers, which keep their type.
    """

    def __init__(
        self,
        indptr: NDArray[np.int64],
        neighbours: NDArray[np.uint32],
        weights: NDArray[np.float32] | None,
        names: Words,
        directed: bool,
        key_type: KeyType = "str",
    ) -> None:
        self.indptr, self.neighbours, self.weights = indptr, neighbours, weights
        self.names, self.directed, self.key_type = names, directed, key_type

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.indptr) - 1

    @property
    def isolated(self) -> int:
        """The number of nodes without any edge."""
        has_edge = np.diff(self.indptr) > 0
        has_edge[self.neighbours] = True
        return int(np.count_nonzero(~has_edge))

    @property
    def edges(self) -> int:
        """The number of edges. In an undirected graph, the two directions of an edge are one."""
        if self.directed:
            return len(self.neighbours)
        return (len(self.neighbours) + count_loops(self.indptr, self.neighbours)) // 2

    def __repr__(self) -> str:
        return f"<Graph: {pluralise(self.nodes, 'node')}, {pluralise(len(self.neighbours), 'neighbour')}>"

    @classmethod
    def from_blocks(
        cls,
        blocks: list[tuple[NDArray[np.uint32], NDArray[np.float32] | None]],
        names: Words,
        *,
        directed: bool,
        key_type: KeyType = "str",
        workers: int = 1,
    ) -> Graph:
        """Build a graph from blocks of edges. The list is emptied, to free the memory of each block after its use.

        Args:
            blocks: The ids of the two nodes of each edge, uint32 (2 · edges,), from FIRST_TYPE on, and the weights of
                the edges, float32 (edges,), or None.
            names: The names of the nodes.
            directed, key_type: See Graph.
            workers: The number of threads.
        """
        nodes = len(names)
        weighted = bool(blocks) and blocks[0][1] is not None
        indptr = np.zeros(nodes + 1, np.int64)
        for ids, _ in blocks:
            count_degrees(ids, indptr[1:], directed)
        np.cumsum(indptr, out=indptr)
        neighbours = np.empty(indptr[-1], np.uint32)
        weights = np.empty(indptr[-1], np.float32) if weighted else None
        ends = indptr[:-1].copy()
        blocks.reverse()
        while blocks:
            ids, block_weights = blocks.pop()
            scatter(ids, block_weights, ends, neighbours, weights, directed)
        del ends
        return cls._sorted(indptr, neighbours, weights, names, directed, key_type, workers)

    @classmethod
    def _sorted(
        cls,
        indptr: NDArray[np.int64],
        neighbours: NDArray[np.uint32],
        weights: NDArray[np.float32] | None,
        names: Words,
        directed: bool,
        key_type: KeyType,
        workers: int,
    ) -> Graph:
        """Sort the rows in place and drop repeated edges, and return the graph."""
        nodes = len(indptr) - 1
        degrees = np.empty(nodes, np.int64)
        bounds = np.searchsorted(indptr, np.arange(0, indptr[-1], EDGES_AT_ONCE)[1:]).tolist()
        bounds = [0, *bounds, nodes]
        parts = pairwise(bounds)
        for _ in map_in_order(lambda part: sort_rows(indptr, neighbours, weights, degrees, *part), parts, workers):
            pass
        if weights is None and np.array_equal(degrees, np.diff(indptr)):
            return cls(indptr, neighbours, weights, names, directed, key_type)
        indptr = close_gaps(indptr, neighbours, weights, degrees)
        size = int(indptr[-1])
        weights = None if weights is None else weights[:size]
        return cls(indptr, neighbours[:size], weights, names, directed, key_type)

    @classmethod
    def from_rows(
        cls,
        where: str,
        indptr: NDArray[Any],
        columns: NDArray[Any],
        weights: NDArray[Any] | None,
        names: Words | None,
        *,
        directed: bool,
        workers: int = 1,
    ) -> Graph:
        """Build a graph from the arrays of a CSR matrix, which are checked.

        Args:
            where: The start of error messages.
            indptr, columns, weights: The arrays of the matrix. Entry (i, j) is an edge from node i to node j.
            names: The names of the nodes; by default, their numbers from 0, as whole numbers.
            directed: Whether to take the entries as they are. If False, an entry without its mirror image gets one.
            workers: The number of threads.

        Raises:
            W2VError: If the arrays do not fit together, or a weight is negative or not finite.
        """
        _check_csr(where, indptr, columns)
        nodes = len(indptr) - 1
        if weights is not None:
            weights = _checked_weights(where, weights, len(columns))
        key_type: KeyType = "str" if names is not None else "int"
        names = number_names(0, nodes) if names is None else names
        if len(names) != nodes:
            raise W2VError(f"{where}: {pluralise(len(names), 'name')} for {pluralise(nodes, 'node')}")
        rows = indptr.astype(np.int64)
        graph = cls._sorted(rows, columns.astype(np.uint32), weights, names, directed, key_type, workers)
        if directed or is_symmetric(graph.indptr, graph.neighbours, graph.weights):
            return graph
        sources = np.repeat(np.arange(nodes, dtype=np.uint32), np.diff(graph.indptr))
        ids = np.column_stack([sources, graph.neighbours]).ravel() + np.uint32(FIRST_TYPE)
        blocks = [(ids, graph.weights)]
        del graph, sources, ids
        return cls.from_blocks(blocks, names, directed=False, key_type=key_type, workers=workers)

    @classmethod
    def of(cls, source: Any, *, weighted: bool, directed: bool, workers: int = 1) -> Graph:
        """Return a graph from scipy.sparse or networkx; a Graph is returned unchanged.

        A networkx graph knows whether it is directed. Its weights are the edge attribute "weight".

        Raises:
            W2VError: If a weight is negative or not finite, if the matrix is not square, or two nodes have one name.
        """
        if isinstance(source, Graph):
            return source
        if is_networkx(source):
            return cls._from_networkx(source, weighted, workers)
        if source.shape[0] != source.shape[1]:
            raise W2VError(f"a matrix of shape {source.shape}: the matrix of a graph has as many columns as rows")
        matrix = source.tocsr()
        weights = np.asarray(matrix.data) if weighted else None
        return cls.from_rows(
            "the matrix", matrix.indptr, matrix.indices, weights, None, directed=directed, workers=workers
        )

    @classmethod
    def _from_networkx(cls, source: Any, weighted: bool, workers: int) -> Graph:
        nodes = list(source)
        if not nodes:
            raise W2VError("the graph has no nodes")
        is_int = all(map(is_number, nodes))
        rows = {node: row for row, node in enumerate(nodes)}
        edges = source.edges()
        ids = np.fromiter((rows[node] for edge in edges for node in edge), np.uint32) + np.uint32(FIRST_TYPE)
        weights = None
        if weighted:
            values = [weight for _, _, weight in source.edges(data="weight", default=1)]
            try:
                array = np.array(values, np.float64)
            except (TypeError, ValueError):
                raise W2VError('the graph has an edge with an attribute "weight" that is not a number') from None
            weights = _checked_weights("the graph", array, len(ids) // 2)
        names = named_once("the graph", map(str, nodes))
        key_type: KeyType = "int" if is_int else "str"
        directed = bool(source.is_directed())
        return cls.from_blocks([(ids, weights)], names, directed=directed, key_type=key_type, workers=workers)


def is_graph(source: object) -> bool:
    """Return whether an object is a Graph, a scipy.sparse matrix or array, or a networkx graph. Imports neither."""
    return isinstance(source, Graph) or is_networkx(source) or _is_from(source, "scipy.sparse", "tocsr")


def is_networkx(source: object) -> bool:
    return _is_from(source, "networkx", "adjacency")


def _is_from(source: object, package: str, method: str) -> bool:
    packages = {kind.__module__ for kind in type(source).__mro__}
    return any(name == package or name.startswith(f"{package}.") for name in packages) and hasattr(source, method)


def number_names(first: int, count: int) -> Words:
    """Return `count` consecutive whole numbers as names."""
    return Words(*decimal_words(np.arange(first, first + count)))


def named_once(where: str, names: Iterable[str]) -> Words:
    """Return the names of nodes as Words.

    Raises:
        W2VError: If a name is empty, or belongs to two nodes.
    """
    words = Words.of(names)
    if np.any(np.diff(words.offsets) == 0):
        raise W2VError(f"{where}: a node has an empty name: give it one")
    if rows := words.find_duplicate():
        raise W2VError(f"{where}: two nodes are named {words[rows[0]][:60]!r}: give each its own name")
    return words


def _check_csr(where: str, indptr: NDArray[Any], columns: NDArray[Any]) -> None:
    """Raise W2VError, with the start `where`, if the arrays do not form a square CSR matrix."""
    nodes = len(indptr) - 1
    if nodes < 1 or columns.ndim != 1 or indptr.ndim != 1 or {indptr.dtype.kind, columns.dtype.kind} - {*"iu"}:
        raise W2VError(f"{where}: not a CSR matrix: its indptr and indices must be rows of whole numbers")
    if nodes > MAX_NODES:
        raise W2VError(f"{where}: {nodes:,} nodes: at most {MAX_NODES:,} are possible")
    if indptr[0] != 0 or indptr[-1] != len(columns) or np.any(indptr[1:] < indptr[:-1]):
        raise W2VError(f"{where}: not a CSR matrix: its indptr must rise from 0 to the number of indices")
    for column in {int(columns.min()), int(columns.max())} if len(columns) else ():
        if not 0 <= column < nodes:
            raise W2VError(
                f"{where}: column {column} is outside its {nodes:,} rows: the matrix of a graph has as many columns as "
                "rows"
            )


def _checked_weights(where: str, weights: NDArray[Any], size: int) -> NDArray[np.float32]:
    """Return weights as float32. Raise W2VError if they cannot be weights of `size` edges."""
    if weights.shape != (size,) or weights.dtype.kind not in "fiub":
        raise W2VError(f"{where}: weights of shape {weights.shape} and type {weights.dtype} for {size:,} edges")
    with np.errstate(over="ignore"):
        found = weights.astype(np.float32)
    wrong = ~((found >= 0) & (found < np.inf))
    if wrong.any():
        raise W2VError(
            f"{where}: an edge has the weight {weights[wrong][0]}: weights are from 0 to 3.4e38; leave out weighted to "
            "ignore them"
        )
    return found
