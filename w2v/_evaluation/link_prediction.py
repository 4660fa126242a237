"""Score vectors of nodes by link prediction: are nodes with an edge nearer than nodes without one?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from w2v._errors import W2VError
from w2v._evaluation.scores import Evaluation, ItemScores, name_models
from w2v._graph.graph import Graph
from w2v._graph.readers import GraphOptions
from w2v._graph.source import GraphSource
from w2v._options import check_numbers, options_of, refuse_unknown
from w2v._progress import Report
from w2v._system.threads import processors
from w2v._text._text import FIRST_TYPE
from w2v._text.words import Words
from w2v._vectors.cosines import unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of

NEGATIVES = 10  # pairs without an edge for each held-out edge
MAX_EDGES = 20_000  # a random sample of more edges is scored
PRECISIONS = np.append(0, np.cumsum(1 / np.arange(1, NEGATIVES + 2)))  # sums of 1 / rank up to each rank
CHANCE_PRECISION = PRECISIONS[-1].item() / (NEGATIVES + 1)  # if all ranks are equally likely
REDRAWS = 30  # of a drawn node that has an edge to the first node; then the negative stays, and counts as one
SEED = 1
BASELINES = ("preferential attachment", "common neighbours", "Adamic-Adar")

Scorer = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[Any]]  # scores pairs of nodes, by their numbers


def link_prediction(
    *models: KeyedVectors | HasWordVectors,
    edges: Any,
    trained_on: Any = None,
    seed: int = SEED,
    progress: Report | None = None,
    **reading: Any,
) -> Evaluation:
    """Score how well the cosines of nodes, or simple measures, tell held-out edges from pairs without an edge.

    Each edge u–v is compared with 10 pairs u–w. w is drawn with a probability proportional to its degree, like the ends
    of edges are, so that a measure that only knows degrees scores one half. (With uniform negatives it scores far
    higher, because most nodes have few edges: Aiyappa et al. 2024, "Implicit degree bias in the link prediction task".)
    The results are the AUC, the share of these
    pairs that score below the edge (a tie counts one half), and the mean average precision: 1 / the rank of the edge
    among its 11 pairs, on average over the ranks that equal scores share.

    Args:
        models: Vectors of nodes, or models that have them. The first is compared with the others.
        edges: The held-out edges: a list of pairs of nodes, a graph, or the path of one; see `w2v walks --hold-out`.
            Only edges between nodes that all models know are scored.
        trained_on: The graph that the models were trained on, with or without the held-out edges. From it, three simple
            measures are computed without these edges, whose scores follow those of the models, in the order of
            BASELINES: the product of the degrees, the number of common neighbours, and their sum with the weights
            1 / ln degree (Adamic & Adar 2003; Liben-Nowell & Kleinberg 2007). Its degrees are those of the negatives,
            and its edges are no negatives. By default, only the held-out edges are known.
        seed: Seed of the resampling.
        progress: See `evaluate`.
        reading: The options of graphs, such as `delimiter`; see `train`. With `bipartite`, w is of the kind of v.

    Raises:
        W2VError: A file cannot be used, no edge can be scored, or all edges of `trained_on` are held out.
        SettingsError: An argument is impossible, or there is nothing to score.
    """
    check_numbers(seed=seed)
    baselines = BASELINES if trained_on is not None else ()
    results = Evaluation(models=name_models(models, baselines), baselines=baselines)
    refuse_unknown(reading, options_of(GraphOptions), {})
    options, more = GraphOptions(**reading), dict[str, Any](workers=processors(), progress=progress)
    if isinstance(edges, list):
        edges = _graph_of(edges)
    # In files and graphs of held-out edges, the names of two kinds of nodes have their prefixes already.
    held_out = GraphSource(edges).read(replace(options, bipartite=False), **more)
    graph = held_out if trained_on is None else GraphSource(trained_on).read(options, **more)
    rows = [vectors_of(model).lookup.rows(graph.names.with_padding(), graph.names.offsets) for model in models]
    all_pairs, random = _pairs(held_out, graph), np.random.default_rng(SEED)
    known = np.ones(len(all_pairs), np.bool_)
    for each in rows:
        known &= (each[all_pairs] >= 0).all(axis=1)
    pairs = random.permuted(random.permutation(all_pairs[known])[:MAX_EDGES], axis=1)
    if not len(pairs):
        known_to = "all models know" if len(models) > 1 else "the model knows"
        known_to += "" if trained_on is None else f", and that are in {trained_on}"
        raise W2VError(f"{edges}: no edge between nodes that {known_to}")
    scorers = [_cosines(vectors_of(model), own) for model, own in zip(models, rows, strict=True)]
    table = _adjacency(graph, all_pairs)
    if trained_on is not None:
        if table.max() <= 0:
            raise W2VError(f"{trained_on}: all its edges are held out: give the graph that the models were trained on")
        scorers += _baselines(table)
    kinds = np.zeros(graph.nodes, int)
    if options.bipartite:
        kinds = np.unique([name.partition(":")[0] for name in graph.names], return_inverse=True)[1]
    negatives = _negatives(pairs, table, kinds)
    values = [_compare(score, pairs, negatives) for score in scorers]
    items = np.arange(len(pairs))
    for number, (measure, chance) in enumerate({"AUC": 0.5, "average precision": CHANCE_PRECISION}.items()):
        scores = [ItemScores(items, each[number], held_out.edges) for each in values]
        results.add("held-out edges", measure, scores, seed=seed, chance=chance)
    return results


def _graph_of(edges: list[Any]) -> Graph:
    """Return the graph of a list of pairs of nodes.

    Raises:
        W2VError: It has other items, or none.
    """
    if not edges or any(isinstance(edge, str) or len(edge) != 2 for edge in edges):
        raise W2VError("edges: a list of edges has pairs of nodes, such as [('a', 'b'), ('b', 'c')]")
    names, ids = np.unique([str(node) for edge in edges for node in edge], return_inverse=True)
    numbers = np.array(ids, np.uint32) + np.uint32(FIRST_TYPE)
    return Graph.from_blocks([(numbers, None)], Words.of(names.tolist()), directed=False, key_type="str")


def _pairs(held_out: Graph, graph: Graph) -> NDArray[np.int64]:
    """Return the numbers in `graph` of the nodes of held-out edges, int64 (n, 2), each edge once."""
    numbers = graph.names.rows_of(held_out.names).astype(np.int64)
    ends = np.repeat(np.arange(held_out.nodes), np.diff(held_out.indptr)), held_out.neighbours
    pairs = np.sort(np.column_stack([numbers[end] for end in ends]), axis=1)
    return np.unique(pairs[(pairs[:, 0] >= 0) & (pairs[:, 0] != pairs[:, 1])], axis=0)


def _adjacency(graph: Graph, held_out: NDArray[np.int64]) -> sparse.csr_array:
    """Return a symmetric matrix with 1 for each edge, -1 for each held-out one."""
    table = sparse.csr_array((np.ones(len(graph.neighbours)), graph.neighbours, graph.indptr), [graph.nodes] * 2)
    table = (table + table.T).sign()
    known = sparse.csr_array((np.full(len(held_out), 2.0), held_out.T), table.shape)
    return (table - known - known.T).sign().tocsr()


def _negatives(pairs: NDArray[np.int64], table: sparse.csr_array, kinds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw NEGATIVES nodes for the first node of each pair, int64 (n, NEGATIVES), that have no edge to it.

    They are of the same kind as the second node. `kinds` has the kind of each node.
    """
    random, ends = np.random.default_rng(SEED), table.indices
    drawn = random.choice(ends, (len(pairs), NEGATIVES))
    firsts = np.broadcast_to(pairs[:, :1], drawn.shape)
    for _ in range(REDRAWS):
        unusable = (table[firsts.ravel(), drawn.ravel()] != 0).reshape(drawn.shape) | (drawn == firsts)
        unusable |= kinds[drawn] != kinds[pairs[:, 1:]]
        drawn[unusable] = random.choice(ends, np.count_nonzero(unusable))
    return drawn.astype(np.int64)


def _compare(
    score: Scorer, pairs: NDArray[np.int64], negatives: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the AUC and the average precision of each pair among its negatives."""
    own = score(pairs[:, 0], pairs[:, 1])[:, None]
    others = score(np.repeat(pairs[:, 0], NEGATIVES), negatives.ravel()).reshape(negatives.shape)
    above, tied = np.count_nonzero(others > own, axis=1), np.count_nonzero(others == own, axis=1)
    precisions = (PRECISIONS[above + tied + 1] - PRECISIONS[above]) / (tied + 1)
    return 1 - (above + tied / 2) / NEGATIVES, precisions


def _cosines(vectors: KeyedVectors, rows: NDArray[np.int32]) -> Scorer:
    """Score pairs by the cosines of their vectors. `rows` has the row of each node."""
    units = unit(np.asarray(vectors.vectors, np.float32))
    return lambda first, second: np.einsum("nd,nd->n", units[rows[first]], units[rows[second]])


def _baselines(table: sparse.csr_array) -> list[Scorer]:
    """Return the measures of BASELINES in the graph without its held-out edges."""
    known = table.maximum(0).tocsr(copy=True)  # SciPy 1.15 shares the indices, which the next line changes
    known.eliminate_zeros()
    degrees = np.diff(known.indptr)
    weights = 1 / np.log(np.maximum(degrees, 2))  # a common neighbour has at least two edges

    def common(factors: NDArray[Any]) -> Scorer:
        return lambda first, second: known[first].multiply(known[second]) @ factors

    return [lambda first, second: degrees[first] * degrees[second], common(np.ones(len(weights))), common(weights)]
