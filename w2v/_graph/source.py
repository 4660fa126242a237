"""`GraphSource`: a user's graph, in files or in memory, to train on."""

from __future__ import annotations

from typing import Any

from w2v._errors import W2VError
from w2v._graph.graph import Graph, is_graph
from w2v._graph.readers import GraphOptions, check_edges, read_graph
from w2v._progress import Report
from w2v._text.corpus import Corpus, FromFiles


class GraphSource(FromFiles):
    """A user's graph: a Graph, a scipy.sparse matrix, a networkx graph, or files as in `read_graph`.

    Raises:
        W2VError: If the source is not a graph or a path.
    """

    def __init__(self, source: Any) -> None:
        self._graph = source if is_graph(source) else None
        if self._graph is None:
            self.source = source if isinstance(source, Corpus) else Corpus(source)
            if not self.source.files:
                kind = type(source).__name__
                raise W2VError(f"a graph is a path, or a graph of scipy.sparse or networkx, not of type {kind}")

    def __str__(self) -> str:
        return str(self.source or "the graph")

    def read(self, options: GraphOptions, *, workers: int = 1, progress: Report | None = None) -> Graph:
        """Return the graph, and log how many of its nodes have no edges.

        Raises:
            W2VError: If the graph cannot be read or has no edges.
        """
        if self.source:
            graph = read_graph(self.source, options, workers=workers, progress=progress)
        else:
            graph = Graph.of(
                self._graph, weighted=options.weighted, directed=options.directed, bipartite=options.bipartite
            )
        check_edges(graph, str(self))
        return graph
