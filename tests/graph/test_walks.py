"""Random walks: their transition frequencies, starts, ends, and independence of the number of threads."""

import os
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from tests.helpers import limit_disk_space
from w2v._errors import SettingsError, W2VError
from w2v._graph.graph import Graph
from w2v._graph.walks import WalkOptions, walk_blocks, walk_store, write_walks
from w2v._system import files
from w2v._text import idstore
from w2v._text._text import FIRST_TYPE, SENTENCE_END_ID

SIGNIFICANCE = 1e-6  # the seeds are fixed, so a test that passes once always passes
# A graph with triangles, a pendant node, a loop and nodes of degree 1 to 6.
EDGES = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (3, 5), (2, 4), (5, 6), (0, 7), (7, 7), (2, 7), (2, 8)]
# A directed graph: 3 is a dead end, and 1 → 0 is the only way back.
ARROWS = [(0, 1), (1, 0), (0, 2), (1, 2), (2, 0), (2, 1), (2, 3), (1, 4), (4, 0), (4, 2), (2, 4), (2, 2)]


def graph_of(edges: Iterable[tuple[int, int]], directed: bool = False, weighted: bool = False) -> Graph:
    source = nx.DiGraph() if directed else nx.Graph()
    source.add_nodes_from(range(9 if not directed else 5))
    for number, (a, b) in enumerate(edges):
        source.add_edge(a, b, weight=0.25 + number % 4)
    return Graph.of(source, weighted=weighted, directed=directed)


def walks_of(graph: Graph, **options: Any) -> list[list[int]]:
    """Return the walks as lists of nodes."""
    chosen = {name: options.pop(name) for name in ("seed", "workers") if name in options}
    ids = np.concatenate([*walk_blocks(graph, WalkOptions(**options), **chosen)])
    ends = np.flatnonzero(ids == SENTENCE_END_ID)
    return [(walk[:-1].astype(int) - FIRST_TYPE).tolist() for walk in np.split(ids, ends + 1)[:-1]]


def weights_of(graph: Graph, node: int) -> dict[int, float]:
    row = slice(graph.indptr[node], graph.indptr[node + 1])
    weights = np.ones(row.stop - row.start) if graph.weights is None else graph.weights[row]
    return dict(zip(graph.neighbours[row].tolist(), weights.tolist(), strict=True))


def expected(graph: Graph, previous: int | None, node: int, p: float, q: float) -> dict[int, float]:
    """Return the probability of each next node by the formula of node2vec."""
    found = weights_of(graph, node)
    for x in found if previous is not None else ():
        found[x] *= 1 / p if x == previous else 1 if x in weights_of(graph, previous) else 1 / q
    total = sum(found.values())
    return {x: weight / total for x, weight in found.items()}


def check_frequencies(graph: Graph, walks: list[list[int]], p: float, q: float) -> int:
    """Test by chi-square the transitions from each pair of nodes. Return the number of pairs tested."""
    first = Counter((None, *walk[:2]) for walk in walks if len(walk) > 1)
    later = Counter(triple for walk in walks for triple in zip(walk, walk[1:], walk[2:], strict=False))
    transitions = first + later
    values, tested = [], 0
    for previous, node in {triple[:2] for triple in transitions}:
        probabilities = expected(graph, previous, node, p, q)
        seen = np.array([transitions[previous, node, x] for x in probabilities])
        wanted = seen.sum() * np.array([*probabilities.values()])
        assert sum(count for triple, count in transitions.items() if triple[:2] == (previous, node)) == seen.sum()
        usual = wanted >= 5  # chi-square needs some events of each kind
        if usual.sum() > 1:
            rest = [seen[~usual].sum()], [wanted[~usual].sum()]
            seen, wanted = (
                np.concatenate([part[usual], other]) for part, other in zip((seen, wanted), rest, strict=True)
            )
            values.append(stats.chisquare(seen[wanted > 0], wanted[wanted > 0]).pvalue)
            tested += 1
    assert min(values) > SIGNIFICANCE / tested
    assert stats.kstest(values, "uniform").pvalue > SIGNIFICANCE
    return tested


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(
    ("p", "q"), [(1, 1), (0.25, 4), (4, 0.25), (1e-9, 1), (0.5, 1e-9), (1e9, 1), (1, 1e4), (1e9, 1e9)]
)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_transitions_have_the_probabilities_of_node2vec(p: float, q: float, weighted: bool, directed: bool) -> None:
    graph = graph_of(ARROWS if directed else EDGES, directed, weighted)
    walks = walks_of(graph, num_walks=600, walk_length=20, p=p, q=q, weighted=weighted)
    assert check_frequencies(graph, walks, p, q) >= 5


def test_frequencies_of_other_parameters_are_detected() -> None:
    graph = graph_of(EDGES)
    walks = walks_of(graph, num_walks=600, walk_length=20, p=0.5, q=2)
    with pytest.raises(AssertionError):
        check_frequencies(graph, walks, 0.6, 2)


@pytest.mark.slow
def test_hubs_are_left_in_time_and_by_weight() -> None:
    """A hub's edges are drawn by weight although a walk that arrives from a leaf is rejected nearly always."""
    hub = nx.star_graph(300)
    nx.set_edge_attributes(hub, {edge: 1.0 + edge[1] % 3 for edge in hub.edges}, "weight")
    graph = Graph.of(hub, weighted=True, directed=False)
    walks = walks_of(graph, num_walks=40, walk_length=12, p=1e9, q=1e9, weighted=True)
    leaves = Counter(walk[k] % 3 for walk in walks for k in range(2 if walk[0] else 1, 12, 2) if walk[k])
    seen = np.array([leaves[rest] for rest in range(3)])
    weights = np.array([1, 2, 3])
    assert stats.chisquare(seen, seen.sum() * weights / weights.sum()).pvalue > SIGNIFICANCE


def test_each_round_starts_at_every_node_in_a_new_order() -> None:
    graph = Graph.of(nx.cycle_graph(1000), weighted=False, directed=False)
    starts = np.array([walk[0] for walk in walks_of(graph, num_walks=4, walk_length=2)]).reshape(4, 1000)
    assert all(sorted(turn) == [*range(1000)] for turn in starts.tolist())
    for one, other in [*pairwise(starts), (np.arange(1000), starts[0])]:
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.15
        assert np.count_nonzero(one == other) < 10


def test_walks_follow_edges_and_end_at_dead_ends() -> None:
    graph = graph_of(ARROWS, directed=True)
    walks = walks_of(graph, num_walks=50, walk_length=10)
    assert len(walks) == 250
    assert {*(pair for walk in walks for pair in pairwise(walk))} == {*ARROWS}
    for walk in walks:
        assert len(walk) == 10 or walk[-1] == 3
        assert 3 not in walk[:-1]
    assert [3] in walks


@pytest.mark.parametrize("options", [{}, {"p": 0.5, "q": 2.0}])
def test_walks_are_the_same_for_any_number_of_threads(options: dict[str, Any]) -> None:
    graph = Graph.of(nx.gnp_random_graph(3000, 0.002, seed=1), weighted=False, directed=False)
    options |= {"num_walks": 5, "walk_length": 40}  # several blocks
    blocks = [*walk_blocks(graph, WalkOptions(**options))]
    assert len(blocks) > 2
    assert walks_of(graph, **options) == walks_of(graph, workers=3, **options)
    assert walks_of(graph, **options) != walks_of(graph, seed=2, **options)


def test_store_has_the_walks_and_counts_of_nodes() -> None:
    graph = Graph.of(nx.karate_club_graph(), weighted=False, directed=False)
    options = WalkOptions(num_walks=3, walk_length=7)
    with walk_store(graph, options, workers=2) as store:
        ids = np.concatenate([*walk_blocks(graph, options)])
        assert store.ids.tolist() == ids.tolist()
        assert store.counts.tolist() == np.bincount(ids, minlength=36).tolist()
        assert (store.tokens, store.sentences) == (34 * 3 * 7, 34 * 3)
        assert store.words(np.arange(FIRST_TYPE, 36)).tolist() == [str(node) for node in range(34)]


def test_insufficient_disk_space_is_noticed_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idstore, "SPACE_CHECK_BLOCKS", 1)
    limit_disk_space(monkeypatch, 1_600_000)
    graph, options = Graph.of(nx.karate_club_graph(), weighted=False, directed=False), WalkOptions(num_walks=1000)
    refused = rf"needs about (10|6) MB more on disk, but {tmp_path} has only 2 MB"
    with pytest.raises(W2VError, match=refused):
        walk_store(graph, options, folder=tmp_path)
    with pytest.raises(W2VError, match=refused):
        write_walks(graph, tmp_path / "walks.txt", options)
    assert not list(tmp_path.iterdir())
    with Path(os.devnull).open("wb") as device:
        files.check_disk_space(device, tmp_path, 1e18, "a device")


@pytest.mark.parametrize("wrong", [{"p": 9e-10}, {"q": 0}, {"walk_length": 0}, {"num_walks": 0}, {"delimiter": "::"}])
def test_impossible_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        WalkOptions(**wrong)
