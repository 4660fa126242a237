"""Reading graphs: edge lists, NumPy archives, Matrix Market files, scipy.sparse and networkx."""

import csv
import gzip
import io
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse

from tests.helpers import assert_memory_grows, memory_of
from w2v._errors import W2VError
from w2v._graph.graph import Graph, is_graph
from w2v._graph.readers import GraphOptions, read_graph
from w2v._text.corpus import Corpus

TRIANGLE = {"a": {"b": 1.5, "c": 2.0}, "b": {"a": 1.5, "c": 0.25}, "c": {"a": 2.0, "b": 0.25}}


def read(path: Path, content: str | bytes, **options: Any) -> Graph:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_graph(Corpus(path), GraphOptions(**options))


def rows(graph: Graph) -> dict[str, dict[str, float]]:
    """Return the weight of each edge, by the names of its nodes."""
    names = graph.names.tolist()
    found: dict[str, dict[str, float]] = {}
    for node, name in enumerate(names):
        row = slice(graph.indptr[node], graph.indptr[node + 1])
        neighbours = graph.neighbours[row].tolist()
        assert neighbours == sorted(set(neighbours))
        weights = [1.0] * len(neighbours) if graph.weights is None else graph.weights[row].tolist()
        found[name] = {names[x]: weight for x, weight in zip(neighbours, weights, strict=True)}
    return found


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_compressed_edge_lists_are_read(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    text = b"# a comment\n\na\tb\t1.5\n%another\nb\tc\t2.5e-1\nc\ta\t2"
    assert rows(read(tmp_path / "edges", compress(text), weighted=True)) == TRIANGLE


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a b 1.5\nb  c\t0.25\n a c 2 \r\n", None),
        ("a,b,1.5\nb , c,0.25\na,c,2", None),
        ("a;b;1.5\nb; c;0.25\na;c;2", None),
        ("a|b|1.5\nb|c|0.25\na|c|2", "|"),
        ("# a\tcomment, with; all\na;b;1.5\nb;c;0.25\na;c;2", None),
        ("a b 1.5\nb  c\t0.25\n a c 2 ", "space"),
        ("a\tb\t1.5\nb\tc\t0.25\na\tc\t2", "tab"),
    ],
)
def test_delimiters_are_detected_or_named(text: str, delimiter: str | None, tmp_path: Path) -> None:
    assert rows(read(tmp_path / "edges", text, weighted=True, delimiter=delimiter)) == TRIANGLE


@pytest.mark.parametrize(
    ("text", "options", "wanted"),
    [
        (
            "alice knows bob\nbob likes carol\n",
            {"edges": "1,3"},
            {"alice": {"bob": 1}, "bob": {"carol": 1}, "carol": {}},
        ),
        ("Id,Source,Target\n0,a,b\n1,b,c\n", {}, {"a": {"b": 1}, "b": {"c": 1}, "c": {}}),
        ("Source,Target,Id,Weight\na,b,0,2\n", {"weighted": True}, {"a": {"b": 2}, "b": {}}),
        ("x;y;z\n1;2;3\n", {"edges": "z,x"}, {"3": {"1": 1}, "1": {}}),
        ("x y z\n1 2 3\n", {"edges": "y,x,z"}, {"2": {"1": 3}, "1": {}}),
        ("7 a b 2 x\n", {"edges": "3,2,4"}, {"b": {"a": 2}, "a": {}}),
        ("a b {'weight': 4, 'kind': 'x y'}\nb c {}\n", {"weighted": True}, {"a": {"b": 4}, "b": {"c": 1}, "c": {}}),
        ("a,b,{'weight': 4, 'kind': 'x y'}\n", {}, {"a": {"b": 1}, "b": {}}),
        ("% asym weighted\n% 1 2\n1 2 3 99\n", {"weighted": True}, {"1": {"2": 3}, "2": {}}),
        ("1\t2\r\n3\t4\r\n", {}, {"1": {"2": 1}, "2": {}, "3": {"4": 1}, "4": {}}),
        ('"Doe, Jo","Roe, ""Ed"""\n', {}, {"Doe, Jo": {'Roe, "Ed"': 1}, 'Roe, "Ed"': {}}),
        ("c text\np edge 3 2\nn 1 2\ne 1 2\ne 2 3\n", {}, {"1": {"2": 1}, "2": {"3": 1}, "3": {}}),
        ("p sp 2 1\na 1 2 5\n", {"weighted": True}, {"1": {"2": 5}, "2": {}}),
    ],
)
def test_columns_are_chosen_or_recognised(
    text: str, options: dict[str, Any], wanted: dict[str, Any], tmp_path: Path
) -> None:
    assert rows(read(tmp_path / "edges", text, directed=True, **options)) == wanted


ADJACENCY = "a b c\nd\n# a comment\nb d\n"


@pytest.mark.parametrize(("name", "options"), [("g.adjlist", {}), ("g", {"graph_format": "adjlist"})])
def test_adjacency_lists_are_read(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    graph = read(tmp_path / name, ADJACENCY + "e\n", directed=True, **options)
    assert rows(graph) == {"a": {"b": 1, "c": 1}, "b": {"d": 1}, "c": {}, "d": {}, "e": {}}


@pytest.mark.parametrize(
    ("text", "options", "wanted"),
    [
        ("1 1\n1 2\n", {"bipartite": True}, {"left:1": ["right:1", "right:2"]}),
        ("% bip unweighted\n2 1\n1 1\n", {}, {"left:2": ["right:1"], "left:1": ["right:1"]}),
        ("n,n\n1,1\n2,1\n", {"bipartite": True}, {"left:1": ["right:1"], "left:2": ["right:1"]}),
        ("user,item\n1,1\n", {"bipartite": True, "edges": "item,user"}, {"item:1": ["user:1"]}),
        (
            "1 1 3\n2\n",
            {"bipartite": True, "graph_format": "adjlist"},
            {"left:1": ["right:1", "right:3"], "left:2": []},
        ),
    ],
)
def test_users_and_items_with_equal_names_are_two_nodes(
    text: str, options: dict[str, Any], wanted: dict[str, list[str]], tmp_path: Path
) -> None:
    found = rows(read(tmp_path / "edges", text, **options))
    first = next(iter(wanted)).split(":")[0]
    assert {node: sorted(row) for node, row in found.items() if node.startswith(first)} == wanted
    assert {*found} == {*wanted} | {item for row in wanted.values() for item in row}


@pytest.mark.parametrize(
    ("text", "options", "noted"),
    [
        ("a b 2\nb c 3\n", {}, True),
        ("a b {'weight': 2}\n", {}, True),
        ("a b {}\n", {}, False),
        ("a b\n", {}, False),
        ("a b 2\n", {"weighted": True}, False),
        ("a b 2\n", {"edges": "1,2"}, False),
    ],
)
def test_unused_weights_are_noted(
    text: str, options: dict[str, Any], noted: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read(tmp_path / "edges", text, **options)
    assert [record.getMessage() for record in caplog.records] == noted * [
        f"{tmp_path / 'edges'}: its weights are not used: add --weighted (weighted=True) to choose edges by weight"
    ]


def test_a_column_of_numbers_with_another_name_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "Source,Target,Id,Capacity\na,b,0,2\nb,c,1,3\n"
    read(tmp_path / "edges", text)
    message = "its numbers are not used: if they are weights, add --edges Source,Target,Capacity"
    assert message in caplog.text
    with pytest.raises(W2VError, match="name the column of weights, such as --edges 1,2,3"):
        read(tmp_path / "edges", text, weighted=True)
    assert rows(read(tmp_path / "edges", text, edges="Source,Target,Capacity"))["c"] == {"b": 3}


def test_a_header_with_fewer_fields_than_the_edges_is_refused(tmp_path: Path) -> None:
    (tmp_path / "edges").write_text("a b\n3 3 25\n3 3 7\n")
    with pytest.raises(W2VError, match="line 2: '3 3 25' has 3 fields, and the first line has 2"):
        read_graph(Corpus(tmp_path / "edges"))


def test_white_space_at_the_end_of_a_line_is_not_a_field(tmp_path: Path) -> None:
    assert rows(read(tmp_path / "edges", "a\tb\t\nb\tc\t \r\n", directed=True)) == {
        "a": {"b": 1},
        "b": {"c": 1},
        "c": {},
    }


def test_names_may_contain_white_space(tmp_path: Path) -> None:
    texts = ("New York\tBoston 2\n", None), ("New York; Boston 2\n", None), ("New York  | Boston 2\n", "|")
    for text, delimiter in texts:
        assert rows(read(tmp_path / "edges", text, delimiter=delimiter))["New York"] == {"Boston 2": 1}


def test_the_last_weight_of_a_repeated_edge_counts(tmp_path: Path) -> None:
    text = "a b 1\nb a 2\nb c 1\nb c 0\na a 4\n"
    undirected = read(tmp_path / "edges", text, weighted=True)
    assert rows(undirected) == {"a": {"a": 4, "b": 2}, "b": {"a": 2}, "c": {}}
    assert (undirected.edges, undirected.isolated) == (2, 1)
    directed = read(tmp_path / "edges", text, weighted=True, directed=True)
    assert rows(directed) == {"a": {"a": 4, "b": 1}, "b": {"a": 2}, "c": {}}
    assert directed.edges == 3


def test_many_edges_are_those_of_scipy(tmp_path: Path) -> None:
    """Rows of every length, and more edges than one block."""
    generator = np.random.default_rng(1)
    pairs = (3000 * generator.random((90_000, 2)) ** 2).astype(int)
    text = "".join(f"n{a} n{b} {number % 97 + 1}\n" for number, (a, b) in enumerate(pairs.tolist()))
    (tmp_path / "edges").write_text(text)
    graph = read_graph(Corpus(tmp_path / "edges"), GraphOptions(weighted=True, directed=True), workers=3)
    wanted = {(f"n{a}", f"n{b}"): number % 97 + 1 for number, (a, b) in enumerate(pairs.tolist())}
    found = {(a, b): weight for a, row in rows(graph).items() for b, weight in row.items()}
    assert found == wanted
    assert np.diff(graph.indptr).max() > 500
    assert graph.names[0] == f"n{pairs[0, 0]}"


def test_several_edge_lists_are_one_graph(tmp_path: Path) -> None:
    (tmp_path / "1.tsv").write_text("a\tb")
    (tmp_path / "2.csv").write_text("b,c\n")
    assert rows(read_graph(Corpus(tmp_path))) == {"a": {"b": 1}, "b": {"a": 1, "c": 1}, "c": {"b": 1}}


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a\n", {}, "edges, line 1: 'a' has only one field"),
        ("a b\n\nc\n", {}, "edges, line 3: 'c' has 1 field, and the first line has 2: name the columns"),
        ("a\tb\nb c\n", {}, "edges, line 2: 'b c' has 1 field, and the first line has 2"),
        (ADJACENCY, {}, "edges, line 1: 'a b c' has a weight that is not a number from 0 to 3.4e38: name the columns"),
        ("1 2\n2 3 4\n", {}, "edges, line 2: '2 3 4' has 3 fields, and the first line has 2"),
        ("alice knows bob\n", {}, "for adjacency lists add --format adjlist"),
        ("1 2 3 4\n", {}, "edges, line 1 has 4 fields: 1, 2, 3, 4: name the columns of the nodes"),
        ("id,a,b\n0,1,2\n", {}, "edges, line 1 has 3 fields: id, a, b: name the columns of the nodes"),
        ("3 2\n2\n1 3\n2\n", {"graph_format": "adjlist"}, "edges looks like a METIS file, which w2v does not read"),
        ("3 3\n2 3\n1 3\n1 2\n", {}, "edges looks like a METIS file"),
        ("3 2 1\n2 9\n1 9 3 8\n2 8\n", {"graph_format": "adjlist"}, "edges looks like a METIS file"),
        ("3 2 011 2\n1 1 2 9\n5 5 1 9 3 8\n1 1 2 8\n", {"graph_format": "adjlist"}, "edges looks like a METIS file"),
        ("1 A\n2 B\n#\n1 2 knows\n", {}, "edges is a TGF file, which w2v does not read"),
        ("a b 1\nb c\n", {"weighted": True}, "edges, line 2: 'b c' has 2 fields, and the first line has 3"),
        ("a b\n", {"weighted": True}, "edges, line 1: 'a b' has no weight"),
        ("a b 1\nb c -1\n", {"weighted": True}, "edges, line 2: 'b c -1' has a weight that is not a number"),
        ("a b nan\n", {"weighted": True}, "edges, line 1: 'a b nan' has a weight"),
        ("a b 1e39\n", {"weighted": True}, "edges, line 1: 'a b 1e39' has a weight"),
        ("a b 1x\n", {"weighted": True}, "edges, line 1: 'a b 1x' has a weight"),
        ("a b {'weight': 'x'}\n", {"weighted": True}, "edges, line 1: \"a b {'weight': 'x'}\" has a weight"),
        ("a b {[}\n", {}, "edges, line 1: 'a b {[}' has a weight"),
        ("p edge 1 1\ne 1\n", {}, "edges, line 2: 'e' has only one field"),
        ("a,b\n,c\n", {}, "edges, line 2: ',c' has an empty field"),
        ("a,b\n", {"edges": "a,c"}, "edges, line 1 has no column 'c'; its columns are a, b"),
        ("a,b\n", {"edges": "1,3"}, "edges, line 1 has no column '3'; its columns are 2, without names"),
        ("a\n", {"edges": "1,2", "graph_format": "adjlist"}, "the format adjlist has no columns: leave out --edges"),
        ("a\n", {"weighted": True, "graph_format": "adjlist"}, "adjacency lists have no weights"),
        (b"a b\nb c\nb \xff\n", {}, "edges, line 3: 'b \ufffd' is not UTF-8"),
        ('"a,b\n', {}, "edges, line 1: 'a,b' has only one field"),
        ('a,b\n"a\nb",c\n', {}, "edges, line 2: '\"a' has quotation marks"),
        ('a,b\n"a""b"x,c\n', {}, 'edges, line 2: \'"a""b"x,c\' has quotation marks that do not match'),
        (b"PAR1\x15" + bytes(99), {}, "edges is a table of Parquet or Arrow: save its edges as CSV"),
        (b"ARROW1\0\0" + bytes(99), {}, "edges is a table of Parquet or Arrow"),
        (b"\x03\x01 \0\n\xff", {}, "edges is binary, not text"),
        ("# c\na;b;0,5\n", {}, "edges, line 2 has a comma and a semicolon: name the character"),
        ("a b" * 600_000, {}, "edges, line 1: more than 1 MB"),
        ("a b\n".encode("utf-16"), {}, "UTF-16"),
        (gzip.compress(b"a b\n" * 99, mtime=0)[:-9], {}, "truncated"),
        ("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 2 1\n", {}, "shape (2, 3): the matrix of a graph"),
        ("%%MatrixMarket matrix coordinate real general\n2 x 1\n1 2 1\n", {}, "edges cannot be read as mtx;"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n", {}, "edges cannot be read as mtx;"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n", {}, "edges cannot be read as mtx;"),
        ("<?xml version='1.0'?>\n<graphml>\n", {}, "edges cannot be read as graphml;"),
        ("graph [\n  node [\n", {}, "edges cannot be read as gml;"),
        ('{"source": 1}\n{"source": 1}\n', {}, "edges cannot be read as json; --format names another format"),
        ('{"nodes": [], "edges": []}', {"bipartite": True}, "leave out --bipartite"),
        ('{"nodes": [], "edges": []}', {"delimiter": "tab"}, "the format json has no columns"),
        ("a b\n", {"graph_format": "metis"}, "graph_format 'metis': choose from edges"),
    ],
)
def test_bad_lines_are_refused_with_file_and_line(
    text: str | bytes, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(W2VError, match=re.escape(message)):
        read(tmp_path / "edges", text, **options)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# source,target\nsource,target\na,b\n", 2),
        ("x\ty\r\n-1\t2.0\r\n", 1),
        ("node node weight\na b 1\n", 1),
        ("a b\nb c\n", 0),
        ("a,1\n1,2\n", 0),
        ("a b", 0),
    ],
)
def test_headers_are_not_edges(text: str, line: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    graph = read(tmp_path / "edges", text)
    found = [record.getMessage() for record in caplog.records if "is a header" in record.getMessage()]
    assert len(found) == bool(line)
    assert all(f"edges, line {line} is a header, and its nodes are" in message for message in found)
    assert graph.nodes == (2 if found else len({*text.replace(",", " ").split()}))


def test_names_with_quotation_marks_are_read_from_tabs(tmp_path: Path) -> None:
    assert rows(read(tmp_path / "edges", '"a"\tb\n')) == {'"a"': {"b": 1}, "b": {'"a"': 1}}


# -- matrices ---------------------------------------------------------------------------------------


def matrix(weights: bool = True) -> Any:
    dense = np.array([[0, 1.5, 2, 0], [1.5, 0, 0.25, 0], [2, 0.25, 3, 0], [0, 0, 0, 0]])
    return scipy.sparse.csr_array(dense if weights else dense > 0)


LOOPS = {"0": {"1": 1.5, "2": 2}, "1": {"0": 1.5, "2": 0.25}, "2": {"0": 2, "1": 0.25, "2": 3}, "3": {}}


def pecanpy_archive(path: Path, **changes: Any) -> Path:
    """Write the arrays that PecanPy's SparseGraph.save writes."""
    csr = matrix()
    arrays = {
        "IDs": np.array(["a", "köln", "c", "d"]), "data": csr.data.astype(np.float32),
        "indptr": csr.indptr.astype(np.uint32), "indices": csr.indices.astype(np.uint32),
    }  # fmt: skip
    np.savez(path, **{name: array for name, array in (arrays | changes).items() if array is not None})
    return path


def test_archives_of_pecanpy_are_read(tmp_path: Path) -> None:
    graph = read_graph(Corpus(pecanpy_archive(tmp_path / "graph.npz")), GraphOptions(weighted=True))
    assert graph.names == ["a", "köln", "c", "d"]
    assert graph.key_type == "str"
    assert rows(graph)["c"] == {"a": 2, "köln": 0.25, "c": 3}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": None}, "cannot be read as npz"),
        ({"indptr": np.array([0, 2, 1, 7, 7])}, "cannot be read as npz|: damaged"),
        ({"indices": np.array([1, 2, 0, 2, 0, 1, -1])}, "cannot be read as npz|: damaged"),
        ({"data": np.array([1, 2, 0, 2, 0, 1, -1.0])}, "an edge has the weight -1.0"),
        ({"data": np.array([None] * 7)}, "cannot be read as npz"),
        ({"IDs": np.array(["a", "b", "c"])}, "3 IDs for 4 nodes"),
        ({"IDs": np.array(["a", "b", "a", "d"])}, "two nodes are named 'a'"),
        ({"IDs": np.array(["a", "", "c", "d"])}, "a node has an empty name"),
    ],
)
def test_damaged_archives_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = pecanpy_archive(tmp_path / "graph.npz", **changes)
    with pytest.raises(W2VError, match=message) as error:
        read_graph(Corpus(path), GraphOptions(weighted=True))
    assert str(path) in str(error.value)


def test_an_archive_of_one_node_may_have_one_name(tmp_path: Path) -> None:
    one = {"data": np.ones(1), "indices": np.zeros(1, int), "indptr": np.array([0, 1]), "IDs": np.array("a")}
    assert rows(read_graph(Corpus(pecanpy_archive(tmp_path / "graph.npz", **one)))) == {"a": {"a": 1}}


def test_forged_sizes_are_refused_before_allocation(tmp_path: Path) -> None:
    market = b"%%MatrixMarket matrix coordinate real general\n999999999 999999999 1\n1 2 1\n"

    def refuse() -> None:
        with pytest.raises(W2VError, match="refused: it declares 999,999,999 rows"):
            read(tmp_path / "forged", market)

    ordinary = memory_of(partial(read, tmp_path / "edges", "a b\n"))
    assert_memory_grows((4, ordinary), (len(market), memory_of(refuse)), 6)


def test_matrices_of_two_kinds_of_nodes_may_have_any_shape(tmp_path: Path) -> None:
    source = scipy.sparse.csr_array(np.array([[0, 2, 0], [1, 0, 3]]))
    graph = Graph.of(source, weighted=True, directed=True, bipartite=True)
    wanted = {"left:0": {"right:1": 2}, "left:1": {"right:0": 1, "right:2": 3}}
    assert rows(graph) == wanted | {f"right:{column}": {} for column in range(3)}
    scipy.io.mmwrite(tmp_path / "dense.mtx", source.toarray())
    dense = read_graph(Corpus(tmp_path / "dense.mtx"), GraphOptions(weighted=True, directed=True, bipartite=True))
    assert rows(dense)["left:2"] == {"right:1": 1, "right:3": 3}
    scipy.io.savemat(tmp_path / "g.mat", {"network": matrix(), "group": source})
    assert rows(read_graph(Corpus(tmp_path / "g.mat")))["3"] == {"1": 1, "2": 1, "3": 1}  # the square one
    with pytest.raises(W2VError, match="2 sparse matrices could be the graph: network, group"):
        read_graph(Corpus(tmp_path / "g.mat"), GraphOptions(bipartite=True))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("symmetry", ["symmetric", "general"])
def test_matrix_market_files_are_read(symmetry: str, weighted: bool, tmp_path: Path) -> None:
    scipy.io.mmwrite(tmp_path / "graph.mtx", matrix(), "a comment", symmetry=symmetry)
    content = gzip.compress((tmp_path / "graph.mtx").read_bytes())
    # The stored half of a symmetric matrix is the whole matrix, also for a directed graph.
    graph = read(tmp_path / "graph.mtx.gz", content, weighted=weighted, directed=True)
    wanted = {
        str(int(a) + 1): {str(int(b) + 1): w if weighted else 1 for b, w in row.items()} for a, row in LOOPS.items()
    }
    assert rows(graph) == wanted
    assert graph.key_type == "int"


def test_undirected_matrices_get_missing_mirror_images() -> None:
    upper = scipy.sparse.triu(matrix())
    assert rows(Graph.of(upper, weighted=True, directed=False)) == LOOPS
    assert rows(Graph.of(upper, weighted=True, directed=True))["2"] == {"2": 3}
    assert rows(Graph.of(scipy.sparse.coo_matrix(matrix(False)), weighted=False, directed=False))["1"] == {
        "0": 1,
        "2": 1,
    }


def test_matrices_that_are_not_square_are_refused() -> None:
    for shape in ((2, 3), (3,)):
        with pytest.raises(W2VError, match=rf"shape {re.escape(str(shape))}: the matrix of a graph is square"):
            Graph.of(scipy.sparse.coo_array(shape), weighted=False, directed=False)


# -- networkx ---------------------------------------------------------------------------------------


def test_networkx_graphs_keep_direction_weights_and_names() -> None:
    source = nx.DiGraph()
    source.add_weighted_edges_from([(1, 5, 2.5), (5, 1, 3), (5, 5, 1)])
    source.add_node(9)
    graph = Graph.of(source, weighted=True, directed=False)
    assert rows(graph) == {"1": {"5": 2.5}, "5": {"1": 3, "5": 1}, "9": {}}
    assert (graph.key_type, graph.directed) == ("int", True)
    named = Graph.of(nx.Graph([("a", 1), (1, 2.5)]), weighted=True, directed=True)
    assert rows(named) == {"a": {"1": 1}, "1": {"a": 1, "2.5": 1}, "2.5": {"1": 1}}
    assert (named.key_type, named.directed) == ("str", False)


def random_graph(random: Random, weighted: bool) -> Any:
    """Return a graph with loops and isolated nodes, named by whole numbers or by texts."""
    graph = random.choice([nx.Graph, nx.DiGraph])()
    names = random.choice([range(1, 9), [*"abcdefgh"], ["é", "x-1", "7", "q_q", "Z", "0", "w", "µ"]])
    graph.add_nodes_from(random.sample([*names], 5))
    for _ in range(random.randrange(1, 12)):
        attributes = {"weight": random.choice([1, 2.5, 0.125, 1e6])} if weighted else {}
        graph.add_edge(*random.choices([*names], k=2), **attributes)
    return graph


def shuffled_lines(random: Random, graph: Any, delimiter: str, weighted: bool) -> bytes:
    """Return an edge list with comments, empty lines, repeated edges and perhaps quotation marks."""
    file = io.StringIO()
    quoting = random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]) if delimiter in ",;" else csv.QUOTE_NONE
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=random.choice(["\n", "\r\n"]))
    for *edge, weight in graph.edges(data="weight"):
        if random.random() < 0.3:
            file.write(random.choice(["# a, comment\n", "\n", "%\n"]))
            writer.writerow([*edge, 9][: 3 if weighted else 2])  # the last weight counts
        writer.writerow([*edge, weight][: 3 if weighted else 2])
    return file.getvalue().encode()


def written(random: Random, kind: str, graph: Any, weighted: bool, path: Path) -> dict[str, Any]:
    """Write a graph in a format. Return the options that read it."""
    if kind in ("\t", " ", ",", ";"):
        path.write_bytes(shuffled_lines(random, graph, kind, weighted))
        return {}
    if kind == "adjlist":
        nx.write_adjlist(graph, path)
    elif kind == "dicts":
        nx.write_edgelist(graph, path)
        return {}
    elif kind == "json":
        data = random.choice([nx.adjacency_data, partial(nx.node_link_data, edges="links"), nx.cytoscape_data])(graph)
        path.write_text(json.dumps(data))
    elif kind in ("mtx", "npz", "mat"):
        matrix = nx.to_scipy_sparse_array(graph)
        with path.open("wb") as file:
            if kind == "mat":
                scipy.io.savemat(file, {"graph": matrix})
            elif kind == "mtx":
                scipy.io.mmwrite(file, matrix)
            else:
                scipy.sparse.save_npz(file, random.choice([matrix, matrix.tocoo(), matrix.tocsc()]))
    else:
        getattr(nx, f"write_{kind}")(graph, path)
    return {"graph_format": kind} if kind == "adjlist" or random.random() < 0.3 else {}


KINDS = ("\t", " ", ",", ";", "dicts", "adjlist", "gml", "graphml", "gexf", "pajek", "json", "mtx", "npz", "mat")


@pytest.mark.parametrize("kind", KINDS)
def test_random_graphs_are_those_of_networkx(kind: str, tmp_path: Path) -> None:
    for seed in range(20):
        random = Random(f"{kind} {seed}")
        weighted = random.random() < 0.5 and kind != "adjlist"
        source = random_graph(random, weighted)
        options = written(random, kind, source, weighted, tmp_path / "graph")
        directed = source.is_directed()
        graph = read_graph(Corpus(tmp_path / "graph"), GraphOptions(weighted=weighted, directed=directed, **options))
        if kind in ("mtx", "npz", "mat"):
            numbers = {node: row + (kind != "npz") for row, node in enumerate(source)}
            source = nx.relabel_nodes(source, numbers)
        elif kind in KINDS[:5]:  # an edge list has no isolated nodes
            source.remove_nodes_from([*nx.isolates(source)])
        wanted = rows(Graph.of(source, weighted=weighted, directed=False))
        assert (rows(graph), graph.directed) == (wanted, directed), seed


def test_whole_numbers_of_more_than_64_bits_are_refused() -> None:
    with pytest.raises(W2VError, match=f"the node {1 << 64} has more than 64 bits: give nodes other names"):
        Graph.of(nx.Graph([(1, 1 << 64)]), weighted=False, directed=False)
    graph = Graph.of(nx.Graph([(-1 << 63, (1 << 64) - 1)]), weighted=False, directed=False)
    assert (graph.key_type, graph.names) == ("int", [str(-1 << 63), str((1 << 64) - 1)])


def test_networkx_is_asked_for_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(
        W2VError, match=r"graph.gml: graphs in the format gml need one more package: pip install"
    ) as error:
        read(tmp_path / "graph.gml", "graph [ ]")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(1, "1", {})], "two nodes are named '1'"),
        ([(1, 2, {"weight": "much"})], 'with an attribute "weight" that is not a number'),
        ([(1, 2, {"weight": -2})], "an edge has the weight -2"),
        ([("", "b", {})], "empty name"),
    ],
)
def test_impossible_networkx_graphs_are_refused(edges: list[Any], message: str) -> None:
    with pytest.raises(W2VError, match=message):
        Graph.of(nx.Graph(edges), weighted=True, directed=False)


def test_empty_networkx_graphs_are_refused() -> None:
    with pytest.raises(W2VError, match="no nodes"):
        Graph.of(nx.Graph(), weighted=False, directed=False)


def test_graphs_are_recognised() -> None:
    graph = Graph.of(nx.path_graph(3), weighted=False, directed=False)
    assert Graph.of(graph, weighted=False, directed=False) is graph
    for source in (graph, nx.MultiDiGraph(), scipy.sparse.csr_matrix((1, 1)), scipy.sparse.coo_array((1, 1))):
        assert is_graph(source)
    for other in ("edges.tsv", [["a", "b"]], np.eye(2), nx):
        assert not is_graph(other)
