"""Training on graphs: `w2v train --graph` and `w2v.train(graph)`."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import w2v
from tests.helpers import assert_same, run, run_json, train_and_stop
from w2v._graph.walks import WalkOptions
from w2v._settings import PRESETS
from w2v._training.config import RunConfig, read_options

SMALL: dict[str, Any] = {"vector_size": 8, "workers": 1, "epochs": 2, "num_walks": 3, "walk_length": 20}


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    """Return a file with the edges of 200 nodes in four communities."""
    path = tmp_path / "edges.csv"
    nx.write_edgelist(communities(), path, delimiter=",", data=False)
    return path


def communities() -> Any:
    graph = nx.empty_graph(200)  # networkx generates the nodes in another order
    graph.add_edges_from(nx.planted_partition_graph(4, 50, 0.3, 0.01, seed=1).edges)
    return graph


def test_nodes_of_a_community_have_similar_vectors() -> None:
    graph = communities()
    graph.add_node(777)
    model = w2v.train(graph, vector_size=16, workers=1, p=0.5, q=2.0)
    assert model.metrics["noun"] == "node"
    assert model.settings.as_dict() | PRESETS["graph"] | {"vector_size": 16} == model.settings.as_dict()
    vectors = model.wv
    assert {*vectors.index_to_key} == {*graph}
    nearest = [vectors.most_similar(node, topn=10) for node in range(200)]
    own = [neighbour // 50 == node // 50 for node in range(200) for neighbour, _ in nearest[node]]
    assert np.mean(own) > 0.9


def test_scipy_and_networkx_give_the_same_model() -> None:
    graph = communities()
    from_matrix = w2v.train(nx.to_scipy_sparse_array(graph), **SMALL)
    assert_same(from_matrix, w2v.train(scipy.sparse.coo_matrix(nx.to_scipy_sparse_array(graph)), **SMALL))
    assert_same(from_matrix, w2v.train(graph, **SMALL))
    assert from_matrix.wv.index_to_key[0] in graph


def test_the_folder_for_walks_is_created(edges: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert_same(w2v.train(edges, graph=True, cache=folder, **SMALL), w2v.train(edges, graph=True, **SMALL))
    assert [*folder.iterdir()] == []  # the file of the walks has no name


def test_options_of_walks_have_their_names_in_errors(edges: Path) -> None:
    for option, shown in (("--walks", "--walks"), ("--num-walks", "--walks"), ("--p", "-p"), ("-q", "-q")):
        error = run("train", edges, option, 2, "-o", edges.with_name("m.bin"), code=2).stderr
        assert f"w2v: {shown} has no effect without --graph" in error


def test_command_and_function_give_the_same_model(edges: Path) -> None:
    output = edges.with_name("m.safetensors")
    options = ["--vector-size", 8, "--workers", 1, "--epochs", 2, "--walks", 3, "--walk-length", 20]
    result = run_json(
        "train", "--graph", edges, "-o", output, *options, "-p", 0.5, "--save-config", edges.with_name("c.toml")
    )
    expected = w2v.train(edges, graph=True, **SMALL, p=0.5)
    assert_same(w2v.Model.load(output), expected)
    assert result["tokens"] == 200 * 3 * 20
    # The saved settings describe the same run.
    run("train", "--config", edges.with_name("c.toml"), "-o", output, "--force", "--workers", 1)
    assert_same(w2v.Model.load(output), expected)
    assert read_options(edges.with_name("c.toml"))["graph"] is True


@pytest.mark.parametrize("in_memory", [False, True], ids=["file", "networkx"])
def test_resumed_run_has_the_same_bits(in_memory: bool, edges: Path, tmp_path: Path) -> None:
    source = communities() if in_memory else edges
    options = SMALL | {"num_walks": 40, "weighted": False, "q": 0.5} | ({} if in_memory else {"graph": True})
    train_and_stop(tmp_path / "states", source, **options)
    resumed = w2v.resume(tmp_path / "states", source)
    assert_same(resumed, w2v.train(source, **options))


def test_another_graph_is_refused_on_resume(edges: Path, tmp_path: Path) -> None:
    train_and_stop(tmp_path / "states", edges, graph=True, **SMALL | {"num_walks": 40})
    content = edges.read_bytes()
    edges.write_bytes(content.replace(b"1", b"7"))
    with pytest.raises(w2v.W2VError, match="belongs to another run, with different text"):
        w2v.resume(tmp_path / "states", edges)
    edges.write_bytes(content + b"1,2\n")
    with pytest.raises(w2v.W2VError, match="the text has changed"):
        w2v.resume(tmp_path / "states", edges)
    with pytest.raises(w2v.W2VError, match="belongs to another run, with different text"):
        w2v.resume(tmp_path / "states", nx.path_graph(300))


def test_run_on_a_text_is_not_resumed_with_a_graph(tmp_path: Path) -> None:
    train_and_stop(tmp_path / "states", [["a", "b", "c", "d"] * 50] * 300)
    with pytest.raises(w2v.W2VError, match="the corpus is a graph, and the run began with a text"):
        w2v.resume(tmp_path / "states", communities())


def test_command_that_resumes_repeats_no_option_of_the_walks(edges: Path, tmp_path: Path) -> None:
    train_and_stop(tmp_path / "states", edges, graph=True, **SMALL | {"num_walks": 40})
    output = tmp_path / "m.safetensors"
    run("train", edges, "--resume", tmp_path / "states", "-o", output)
    assert_same(w2v.Model.load(output), w2v.train(edges, graph=True, **SMALL | {"num_walks": 40}))


def test_isolated_nodes_are_noted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    graph = nx.path_graph(5)
    graph.add_nodes_from(["x", "y"])
    model = w2v.train(graph, **SMALL)
    assert "2 nodes without edges: kept" in caplog.text
    assert {*model.wv.index_to_key} == {"0", "1", "2", "3", "4", "x", "y"}


def test_graphs_without_edges_are_refused(tmp_path: Path) -> None:
    (tmp_path / "edges").write_text("# nothing\n")
    (tmp_path / "empty").write_text("")
    for source in (tmp_path / "edges", tmp_path / "empty", nx.empty_graph(3), scipy.sparse.csr_array((3, 3))):
        with pytest.raises(w2v.W2VError, match="has no edges"):
            w2v.train(source, graph=True, **SMALL)
    result = run("walks", tmp_path / "edges", "-o", tmp_path / "walks", code=1)
    assert result.stderr == f"w2v: {tmp_path / 'edges'} has no edges\n"


def test_options_of_texts_and_of_graphs_are_not_mixed(edges: Path) -> None:
    for arguments, message in [
        (["--graph", "--lower"], "--lower has no effect with --graph"),
        (["--graph", "--phrases"], "--phrases has no effect with --graph"),
        (["--walk-length", 7], "--walk-length has no effect without --graph"),
        (["-p", 7], "-p has no effect without --graph"),
    ]:
        assert message in run("train", edges, "-o", "m.bin", *arguments, code=2).stderr
    with pytest.raises(w2v.SettingsError, match="num_walks has no effect without graph"):
        w2v.train(edges, num_walks=3)
    with pytest.raises(w2v.SettingsError, match="column has no effect with graph"):
        w2v.train(communities(), column="text")
    with pytest.raises(w2v.SettingsError, match="graph 'yes': it must be True or False"):
        w2v.train(edges, graph="yes")  # type: ignore[arg-type]
    with pytest.raises(w2v.W2VError, match="a graph is a path"):
        w2v.train([["a", "b"]], graph=True)


def test_config_of_a_graph_is_stored_and_read() -> None:
    config = RunConfig.from_options({"graph": True, "p": 0.5, "corpus": ("a",)})
    assert config.walks == WalkOptions(p=0.5)
    stored = config.stored()
    assert RunConfig.from_stored(stored, config.settings).walks == config.walks
    with pytest.raises(w2v.W2VError, match="its config: damaged: walks is missing"):
        RunConfig.from_stored({name: stored[name] for name in stored if name != "walks"}, config.settings)
