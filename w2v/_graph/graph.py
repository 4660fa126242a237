"""`Graph`: the nodes and edges of a graph in compressed sparse rows, built from edges, scipy.sparse or networkx."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError, pluralise, translate_errors
from w2v._graph._edges import close_gaps, count_degrees, scatter, sort_rows
from w2v._system.threads import map_in_order
from w2v._text._text import FIRST_TYPE, decimal_words
from w2v._text.words import KeyType, Words, is_number

MAX_NODES = 1 << 30  # ids have 31 bits
EDGES_AT_ONCE = 1 << 20  # entries of the rows that a thread sorts at a time
TWO_KINDS = ("left", "right")  # prefixes of the nodes of a bipartite graph whose columns have no names

log = logging.getLogger("w2v")


@dataclass(eq=False, repr=False)
class Graph:
    """A graph with weighted or unweighted edges.

    A repeated edge counts once, with its last weight, as in networkx and PecanPy; among pairs, with the sum of its
    weights. An edge of weight 0 is left out. A loop is one neighbour of its node. In an undirected graph, each edge is
    in the rows of both nodes.

    Attributes:
        indptr: int64 (nodes + 1,). The neighbours of node i are neighbours[indptr[i]:indptr[i + 1]].
        neighbours: uint32 (edges,), sorted in each row.
        weights: float32 (edges,), positive, or None if all edges weigh the same.
        names: The names of the nodes.
        directed: Whether an edge leads only from its first node to its second.
        key_type: "int" if the names are whole numbers, which keep their type.
    """

    indptr: NDArray[np.int64]
    neighbours: NDArray[np.uint32]
    weights: NDArray[np.float32] | None
    names: Words
    directed: bool
    key_type: KeyType = "str"

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
        sources = np.repeat(np.arange(self.nodes, dtype=np.uint32), np.diff(self.indptr))
        return (len(self.neighbours) + int(np.count_nonzero(sources == self.neighbours))) // 2

    def __repr__(self) -> str:
        return f"<Graph: {pluralise(self.nodes, 'node')}, {pluralise(len(self.neighbours), 'neighbour')}>"

    def hold_out(self, share: float, seed: int = 1) -> tuple[Graph, NDArray[np.int64]]:
        """Take a random `share` of the edges away, without dividing a connected part of the graph.

        The edges of a random spanning forest stay, and so do loops.

        Returns:
            The rest of the graph, and the nodes of the held-out edges, int64 (n, 2).

        Raises:
            W2VError: The rest of the graph would have too few edges.
        """
        from scipy import sparse

        sources = np.repeat(np.arange(self.nodes), np.diff(self.indptr))
        ends = np.sort([sources, self.neighbours.astype(np.int64)], axis=0)
        numbers = ends[0] * self.nodes + ends[1]  # the same in both directions
        distinct = np.unique(numbers[ends[0] < ends[1]])
        pairs = np.divmod(distinct, self.nodes)
        places = tuple(each.astype(np.int32) for each in pairs)  # csgraph of SciPy 1.15 takes no others
        random = np.random.default_rng(seed)
        lengths = sparse.csr_array((1 + random.random(len(distinct)), places), shape=(self.nodes, self.nodes))
        forest = sparse.csgraph.minimum_spanning_tree(lengths).tocoo()
        free = np.setdiff1d(distinct, forest.row.astype(np.int64) * self.nodes + forest.col)
        wanted = round(share * self.edges)
        if wanted > len(free):
            most = len(free) / max(1, self.edges)
            raise W2VError(f"at most {most:.2f} of the edges can be held out: without more, the graph falls apart")
        chosen = random.permutation(free)[:wanted]
        stay = ~np.isin(numbers, chosen)
        indptr = np.append(0, np.cumsum(stay))[self.indptr]
        weights = None if self.weights is None else self.weights[stay]
        rest = Graph(indptr, self.neighbours[stay], weights, self.names, self.directed, self.key_type)
        return rest, np.column_stack(np.divmod(chosen, self.nodes))

    @classmethod
    def from_blocks(
        cls,
        blocks: list[tuple[NDArray[np.uint32], NDArray[np.float32] | None]],
        names: Words,
        *,
        directed: bool,
        key_type: KeyType = "str",
        add_repeats: bool = False,
        workers: int = 1,
    ) -> Graph:
        """Build a graph from blocks of edges. The list is emptied, to free the memory of each block after its use.

        Args:
            blocks: The ids of the two nodes of each edge, uint32 (2 · edges,), from FIRST_TYPE on, and the weights of
                the edges, float32 (edges,), or None.
            names: The names of the nodes.
            directed, key_type: See Graph.
            add_repeats: Whether a repeated edge has the sum of its weights, instead of its last weight.
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
        degrees = np.empty(nodes, np.int64)
        bounds = np.searchsorted(indptr, np.arange(0, indptr[-1], EDGES_AT_ONCE)[1:]).tolist()
        parts = pairwise([0, *bounds, nodes])
        rows = indptr, neighbours, weights, degrees, add_repeats
        for _ in map_in_order(lambda part: sort_rows(*rows, *part), parts, workers):
            pass
        indptr = close_gaps(indptr, neighbours, weights, degrees)
        size = int(indptr[-1])
        weights = None if weights is None else weights[:size]
        return cls(indptr, neighbours[:size], weights, names, directed, key_type)

    @classmethod
    def of(
        cls, source: Any, *, weighted: bool, directed: bool, bipartite: bool = False, where: str = "", first: int = 0
    ) -> Graph:
        """Return a graph from scipy.sparse or networkx; a Graph is returned unchanged.

        A networkx graph knows whether it is directed. Its weights are the edge attribute "weight". An undirected graph
        from a matrix has each entry as an edge in both directions.

        Args:
            source: The graph or matrix.
            weighted: Whether to use its weights.
            directed: Whether entry (i, j) of a matrix is only an edge from node i to node j.
            bipartite: Whether the rows and the columns of a matrix are two kinds of nodes.
            where: The start of error messages.
            first: The number of the first row of a matrix.

        Raises:
            W2VError: If a weight is negative or not finite, if the matrix is not square or is damaged, or if two nodes
                have one name.
        """
        if isinstance(source, Graph):
            return source
        if is_networkx(source):
            if bipartite:
                raise W2VError("each node of networkx has its own name: leave out --bipartite (bipartite)")
            return cls._from_networkx(source, weighted, where or "the graph")
        where, shape = where or "the matrix", source.shape
        if len(shape) != 2 or (shape[0] != shape[1] and not bipartite):
            raise W2VError(
                f"{where} has the shape {shape}: the matrix of a graph is square; if rows and columns are two kinds "
                "of nodes, add --bipartite (bipartite=True)"
            )
        if sum(shape) > MAX_NODES:
            raise W2VError(f"{where}: a matrix of shape {shape}: at most {MAX_NODES:,} nodes are possible")
        with translate_errors(f"{where}: damaged", ValueError):
            if hasattr(source, "check_format"):
                source.check_format()
            entries = source.tocsr().tocoo()  # adds up repeated entries
        edges = np.column_stack([entries.row, entries.col]).astype(np.uint32) + np.uint32(FIRST_TYPE)
        weights = _checked_weights(where, entries.data, weighted)
        names = Words(*decimal_words(np.arange(first, first + shape[0])))
        if bipartite:
            edges[:, 1] += np.uint32(shape[0])
            names = Words.of(
                f"{kind}:{first + row}" for kind, size in zip(TWO_KINDS, shape, strict=True) for row in range(size)
            )
        key_type: KeyType = "str" if bipartite else "int"
        return cls.from_blocks([(edges.ravel(), weights)], names, directed=directed, key_type=key_type)

    def as_pairs(self, prefixes: tuple[bytes, bytes]) -> Graph:
        """Return the pairs of a weighted bipartite matrix, from `of`, of inputs × contexts; see `read_graph`."""
        inputs = np.repeat(np.arange(self.nodes, dtype=np.uint32), np.diff(self.indptr))
        rows = int(np.count_nonzero(self.names.start_with(f"{TWO_KINDS[0]}:".encode())))
        names, contexts = [name.partition(":")[2].encode() for name in self.names], self.neighbours
        if prefixes[0] == prefixes[1]:
            names, contexts = max(names[:rows], names[rows:], key=len), contexts - np.uint32(rows)
        else:
            names[rows:] = (prefixes[0] + name for name in names[rows:])
        edges = np.column_stack([contexts, inputs]) + np.uint32(FIRST_TYPE)
        blocks = [(edges.ravel(), self.weights)]
        return Graph.from_blocks(blocks, Words.of(names), directed=True, key_type="int", add_repeats=True)

    @classmethod
    def _from_networkx(cls, source: Any, weighted: bool, where: str) -> Graph:
        nodes = list(source)
        if not nodes:
            raise W2VError(f"{where} has no nodes")
        key_type: KeyType = "int" if all(map(is_number, nodes)) else "str"
        large = [node for node in nodes if isinstance(node, int) and not isinstance(node, bool) and not is_number(node)]
        if large:
            raise W2VError(
                f"{where}: the node {large[0]!s:.60} has more than 64 bits: give nodes other names, such as texts with "
                "networkx.relabel_nodes(graph, str)"
            )
        rows = {node: row for row, node in enumerate(nodes)}
        triples = list(source.edges(data="weight"))
        ids = np.array([rows[node] for *edge, _ in triples for node in edge], np.uint32) + np.uint32(FIRST_TYPE)
        if weighted and triples and all(weight is None for _, _, weight in triples):
            log.warning('%s has no edge with an attribute "weight": all edges weigh the same', where)
        values = [1 if weight is None else weight for _, _, weight in triples]
        numbers = [value for value in values if isinstance(value, Real)]
        if weighted and len(numbers) < len(values):
            raise W2VError(f'{where} has an edge with an attribute "weight" that is not a number')
        weights = _checked_weights(where, np.array(numbers, np.float64), weighted)
        names = named_once(where, map(str, nodes))
        directed = bool(source.is_directed())
        return cls.from_blocks([(ids, weights)], names, directed=directed, key_type=key_type)


def is_graph(source: object) -> bool:
    """Return whether an object is a Graph, a scipy.sparse matrix or array, or a networkx graph. Imports neither."""
    return isinstance(source, Graph) or is_networkx(source) or _is_from(source, "scipy.sparse", "tocsr")


def is_networkx(source: object) -> bool:
    return _is_from(source, "networkx", "adjacency")


def _is_from(source: object, package: str, method: str) -> bool:
    packages = {kind.__module__ for kind in type(source).__mro__}
    return any(name == package or name.startswith(f"{package}.") for name in packages) and hasattr(source, method)


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


def _checked_weights(where: str, weights: NDArray[Any], weighted: bool) -> NDArray[np.float32] | None:
    """Return weights as float32; None if they are not used, which is logged if they differ.

    Raises:
        W2VError: If an edge cannot have such a weight.
    """
    if not weighted:
        if np.any(weights != weights[:1]):
            note_unused_weights(where)
        return None
    if weights.dtype.kind not in "fiub":
        raise W2VError(f"{where}: weights of type {weights.dtype} are not numbers from 0 to 3.4e38")
    with np.errstate(over="ignore"):
        found = weights.astype(np.float32)
    wrong = ~((found >= 0) & (found < np.inf))
    if wrong.any():
        raise W2VError(
            f"{where}: an edge has the weight {weights[wrong][0]}: weights are from 0 to 3.4e38; for a graph, leave "
            "out --weighted (weighted) to ignore them"
        )
    return found


def note_unused_weights(where: str) -> None:
    """Log that a graph has weights, and how to use them."""
    log.warning("%s: its weights are not used: add --weighted (weighted=True) to choose edges by weight", where)
