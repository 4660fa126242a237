"""The command `w2v walks`."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from tests.helpers import run, run_json
from w2v._errors import W2VError
from w2v._graph.graph import Graph
from w2v._graph.readers import read_graph
from w2v._graph.walks import WalkOptions, walk_blocks, write_walks
from w2v._text._text import FIRST_TYPE
from w2v._text.corpus import Corpus


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    path = tmp_path / "karate.tsv"
    nx.write_edgelist(nx.karate_club_graph(), path, delimiter="\t", data=False)
    return path


def test_walks_are_written_as_text(edges: Path) -> None:
    output = edges.with_suffix(".txt")
    result = run_json("walks", edges, "-o", output, "--walks", 3, "--walk-length", 7, "-p", 0.5, "--seed", 5)
    graph = read_graph(Corpus(edges))
    names = ["", "", *graph.names]
    ids = np.concatenate([*walk_blocks(graph, WalkOptions(num_walks=3, walk_length=7, p=0.5), seed=5)])
    assert output.read_text().split() == [names[node] for node in ids if node >= FIRST_TYPE]
    assert [len(line.split()) for line in output.read_text().splitlines()] == 102 * [7]
    del result["peak_memory_bytes"], result["output"]
    assert result == {"nodes": 34, "edges": 78, "isolated_nodes": 0, "walks": 102, "tokens": 714}


def test_existing_files_are_kept_without_force(edges: Path) -> None:
    output = edges.with_suffix(".txt")
    output.write_text("mine")
    assert "exists" in run("walks", edges, "-o", output, code=1).stderr
    assert output.read_text() == "mine"
    run("walks", edges, "-o", output, "--force")
    assert len(output.read_text().splitlines()) == 340


def test_a_seed_of_more_than_64_bits_is_refused(edges: Path) -> None:
    error = run("walks", edges, "-o", edges.with_name("walks"), "--seed", 1 << 64, code=2).stderr
    assert f"seed {1 << 64}: it must be a whole number, from 0 to {(1 << 64) - 1:,}" in error
    run("walks", edges, "-o", edges.with_name("walks"), "--seed", (1 << 64) - 1)


def test_names_of_compressed_files_are_refused(edges: Path) -> None:
    error = run("walks", edges, "-o", edges.with_name("walks.txt.gz"), code=2).stderr
    assert "walks.txt.gz: text is not compressed: leave out .gz" in error
    assert [*edges.parent.iterdir()] == [edges]


def test_errors_name_the_line_and_leave_no_file(edges: Path) -> None:
    with edges.open("a") as file:
        file.write("alone\n")
    error = run("walks", edges, "-o", edges.with_suffix(".txt"), code=1).stderr
    assert f"{edges}, line 79: 'alone' has 1 field, and the first line has 2" in error
    assert [*edges.parent.iterdir()] == [edges]


def test_standard_input_is_read_and_isolated_nodes_are_noted(tmp_path: Path) -> None:
    done = run("walks", "-", "-o", tmp_path / "walks", "--weighted", "--walk-length", 3, stdin="a b 2\nc c 0\n")
    assert "1 node without edges" in done.stderr
    assert sorted((tmp_path / "walks").read_text().splitlines()) == 10 * ["a b a"] + 10 * ["b a b"] + 10 * ["c"]


def test_names_with_white_space_cannot_be_written(tmp_path: Path) -> None:
    graph = Graph.of(nx.Graph([("New York", "Boston")]), weighted=False, directed=False)
    with pytest.raises(W2VError, match="'New York' contains white space"):
        write_walks(graph, tmp_path / "walks")
