"""Scores of link prediction, compared with networkx, and the edges held out for it."""

from itertools import pairwise
from pathlib import Path

import networkx
import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v._evaluation import link_prediction as links
from w2v._evaluation.link_prediction import BASELINES, link_prediction
from w2v._graph.graph import Graph
from w2v._vectors.keyed import KeyedVectors


def some_graph(nodes: int = 60, seed: int = 1) -> networkx.Graph:
    return networkx.powerlaw_cluster_graph(nodes, 4, 0.6, seed=seed)


def split(graph: networkx.Graph, share: float = 0.2) -> tuple[networkx.Graph, networkx.Graph]:
    """Return the graph without the held-out edges, and a graph of those."""
    whole = Graph.of(graph, weighted=False, directed=False)
    held_out = networkx.Graph(np.array(whole.names.to_ints())[whole.hold_out(share)[1]].tolist())
    rest = graph.copy()
    rest.remove_edges_from(held_out.edges)
    return rest, held_out


@pytest.mark.parametrize("parts", [1, 3])
def test_held_out_edges_do_not_divide_the_graph(parts: int) -> None:
    graph = networkx.disjoint_union_all([some_graph(seed=seed) for seed in range(parts)])
    graph.add_edge(0, 0)
    rest, held_out = split(graph, 0.3)
    assert held_out.number_of_edges() == round(0.3 * graph.number_of_edges())
    assert networkx.number_connected_components(rest) == parts
    own = Graph.of(graph, weighted=False, directed=False).hold_out(0.3)[0]
    assert own.edges == rest.number_of_edges()
    with pytest.raises(w2v.W2VError, match=r"at most 0\.\d+ of the edges can be held out"):
        split(graph, 0.9)


def test_weights_and_directions_stay_with_their_edges() -> None:
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from([(a, b, a + b / 100) for a, b in networkx.gnp_random_graph(20, 0.4, seed=1).edges])
    whole = Graph.of(graph, weighted=True, directed=True)
    rest, pairs = whole.hold_out(0.25)
    names = np.array(whole.names.to_ints())
    assert rest.edges + len(pairs) == whole.edges
    assert rest.weights is not None
    for node in range(rest.nodes):
        for at in range(rest.indptr[node], rest.indptr[node + 1]):
            first, second = names[node], names[rest.neighbours[at]]
            assert rest.weights[at] == pytest.approx(graph[first][second]["weight"])
            assert (names[pairs] != sorted((first, second))).any(axis=1).all()


def test_measures_are_those_of_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = some_graph()
    rest, held_out = split(graph)
    monkeypatch.setattr(links, "MAX_EDGES", 30)
    compared = []

    def compare(score: links.Scorer, pairs: np.ndarray, negatives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends = np.repeat(pairs[:, 0], negatives.shape[1]), negatives.ravel()
        compared.append((pairs, negatives, np.append(score(*pairs.T), score(*ends))))
        return before(score, pairs, negatives)

    before = links._compare
    monkeypatch.setattr(links, "_compare", compare)
    results = link_prediction(edges=held_out, trained_on=graph)
    names = Graph.of(graph, weighted=False, directed=False).names.to_ints()
    expected = (networkx.preferential_attachment, common_neighbours, networkx.adamic_adar_index)
    for number, (measure, (pairs, negatives, scores)) in enumerate(zip(expected, compared, strict=True)):
        assert len(pairs) == 30
        all_pairs = [*pairs.tolist(), *np.column_stack([np.repeat(pairs[:, 0], 10), negatives.ravel()]).tolist()]
        all_pairs = [(names[first], names[second]) for first, second in all_pairs]
        assert all(graph.has_edge(*pair) for pair in all_pairs[:30])
        assert not any(graph.has_edge(*pair) or pair[0] == pair[1] for pair in all_pairs[30:])
        values = np.array([value for *_, value in measure(rest, all_pairs)], float)
        np.testing.assert_allclose(scores, values, rtol=1e-9)
        own, others = values[:30, None], values[30:].reshape(30, 10)
        above, tied = (others > own).sum(axis=1), (others == own).sum(axis=1)
        ranks = [np.arange(a + 1, a + t + 2) for a, t in zip(above, tied, strict=True)]
        found = [result.scores[number].value for result in results]
        expected_values = [(1 - (above + tied / 2) / 10).mean(), np.mean([(1 / each).mean() for each in ranks])]
        np.testing.assert_allclose(found, expected_values)


def common_neighbours(graph: networkx.Graph, pairs: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    return [(first, second, len([*networkx.common_neighbors(graph, first, second)])) for first, second in pairs]


def test_degrees_alone_score_one_half_and_vectors_of_communities_more() -> None:
    graph = networkx.random_partition_graph([100] * 4, 0.2, 0.005, seed=1)
    _, held_out = split(graph)
    vectors = KeyedVectors(list(range(400)), np.repeat(np.eye(4), 100, axis=0) + 0.01 * np.eye(400, 4))
    hubs = networkx.barabasi_albert_graph(2000, 5, seed=1)
    auc = link_prediction(edges=split(hubs)[1], trained_on=hubs)[0].scores[BASELINES.index("preferential attachment")]
    assert auc.value == pytest.approx(0.5, abs=0.05)
    scores = link_prediction(vectors, edges=held_out, trained_on=graph)[0].scores
    assert scores[0].value is not None
    assert scores[0].value > 0.8


def test_equal_scores_are_chance() -> None:
    vectors = KeyedVectors(list(range(60)), np.ones((60, 4)))
    for one in link_prediction(vectors, edges=split(some_graph())[1]):
        assert one.scores[0].value == pytest.approx(one.chance)


def test_commands_hold_edges_out_and_score_them(tmp_path: Path) -> None:
    networkx.write_edgelist(some_graph(), tmp_path / "graph.tsv", data=False, delimiter="\t")
    walks, held_out, nodes = tmp_path / "walks.txt", tmp_path / "held-out.tsv", tmp_path / "nodes.txt"
    options = ["-o", walks, "--hold-out", held_out, "--share", "0.2"]
    found = run_json("walks", tmp_path / "graph.tsv", *options)
    rest, edges = split(networkx.read_edgelist(tmp_path / "graph.tsv", nodetype=int))
    assert found["held_out_edges"] == edges.number_of_edges() == len(held_out.read_text().splitlines())
    assert found["edges"] == rest.number_of_edges()
    for line in walks.read_text().splitlines()[:20]:
        assert not any(edges.has_edge(*pair) for pair in pairwise(map(int, line.split())))
    run("train", walks, "-o", nodes, "--preset", "graph", "--vector-size", 8)
    printed = run_json("evaluate", nodes, "--edges", held_out, "--trained-on", tmp_path / "graph.tsv")
    assert (printed["models"], printed["baselines"]) == ([str(nodes)], [*BASELINES])
    assert printed["results"][0]["scores"][0]["total"] == edges.number_of_edges()


def test_negatives_of_two_kinds_of_nodes_are_of_the_kind_of_the_second(tmp_path: Path) -> None:
    """Users of a group know its items. Pairs of two items would be too easy negatives, because no edge joins them."""
    random = np.random.default_rng(1)
    lines = [f"{user},{(user % 4) * 10 + item}\n" for user in range(60) for item in random.permutation(10)[:6].tolist()]
    (tmp_path / "plays.csv").write_text("user,item\n" + "".join(lines))
    walks, held_out, nodes = tmp_path / "walks.txt", tmp_path / "held-out.tsv", tmp_path / "nodes.txt"
    graph = [tmp_path / "plays.csv", "--bipartite"]
    run("walks", *graph, "-o", walks, "--hold-out", held_out)
    run("train", walks, "-o", nodes, "--preset", "graph", "--vector-size", 8)
    drawn = []

    def negatives(pairs: np.ndarray, table: object, kinds: np.ndarray) -> np.ndarray:
        drawn.append((kinds[pairs[:, 1:]], kinds[before(pairs, table, kinds)]))
        return before(pairs, table, kinds)

    before = links._negatives
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links, "_negatives", negatives)
        printed = run_json("evaluate", nodes, "--edges", held_out, "--trained-on", *graph)
    (of_seconds, of_negatives) = drawn[0]
    assert {*of_seconds.ravel().tolist()} == {0, 1}
    assert (of_seconds == of_negatives).all()
    assert printed["results"][0]["scores"][0]["items"] == len(held_out.read_text().splitlines())


def test_names_with_spaces_replace_no_held_out_edges(tmp_path: Path) -> None:
    (tmp_path / "graph.tsv").write_text("New York\tb\nb\tc\nc\tNew York\n")
    (tmp_path / "held-out.tsv").write_text("old")
    options = ["-o", tmp_path / "w.txt", "--hold-out", tmp_path / "held-out.tsv", "--force"]
    assert "contains white space" in run("walks", tmp_path / "graph.tsv", *options, code=1).stderr
    assert (tmp_path / "held-out.tsv").read_text() == "old"


def test_impossible_options_are_refused(tmp_path: Path) -> None:
    (tmp_path / "graph.tsv").write_text("a b\nb c\n")
    vectors = KeyedVectors(["x", "y"], np.eye(2))
    with pytest.raises(w2v.W2VError, match="no edge between nodes that the model knows"):
        link_prediction(vectors, edges=tmp_path / "graph.tsv")
    with pytest.raises(w2v.W2VError, match="all its edges are held out"):
        link_prediction(edges=[("a", "b"), ("b", "c")], trained_on=tmp_path / "graph.tsv")
    vectors.save(tmp_path / "nodes.txt")
    same = ["--edges", tmp_path / "graph.tsv", "--trained-on", tmp_path / "graph.tsv"]
    done = run("evaluate", tmp_path / "nodes.txt", *same, code=2)
    assert "--edges and --trained-on must be different files" in done.stderr
    walks = ["walks", tmp_path / "graph.tsv", "-o", tmp_path / "w.txt", "--share", "0.5"]
    assert "--share has no effect without --hold-out" in run(*walks, code=2).stderr
    done = run(*walks, "--hold-out", tmp_path / "h", code=1)
    assert "at most 0.00 of the edges can be held out" in done.stderr


def test_edges_may_be_a_list() -> None:
    graph = some_graph()
    _, held_out = split(graph)
    expected = link_prediction(edges=held_out, trained_on=graph)
    edges = [*held_out.edges]
    found = link_prediction(edges=edges, trained_on=graph)
    assert [one.scores[0].items for one in found] == [len(edges)] * 2
    for one, other in zip(found, expected, strict=True):
        assert one.scores[0].value == pytest.approx(other.scores[0].value, abs=0.1)  # with other negatives
    for wrong in ([], ["ab"], [(1, 2, 3)]):
        with pytest.raises(w2v.W2VError, match="a list of edges has pairs of nodes"):
            link_prediction(edges=wrong, trained_on=graph)
