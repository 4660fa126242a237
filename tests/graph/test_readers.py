"""Reading graphs: edge lists, NumPy archives, Matrix Market files, scipy.sparse and networkx."""

import bz2
import gzip
import lzma
import re
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import zstandard

from tests.helpers import assert_memory_grows, memory_of
from w2v.errors import W2VError
from w2v.formats import npy
from w2v.graph.graph import Graph, is_graph
from w2v.graph.readers import GraphOptions, read_graph
from w2v.text.corpus import Corpus

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": zstandard.compress,
}
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


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_compressed_edge_lists_are_read(compression: str, tmp_path: Path) -> None:
    text = "# a comment\n\na\tb\t1.5\n%another\nb\tc\t2.5e-1\nc\ta\t2"
    content = COMPRESSIONS[compression](text.encode())
    assert rows(read(tmp_path / "edges", content, weighted=True)) == TRIANGLE


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


def test_further_fields_are_ignored_without_weights(tmp_path: Path) -> None:
    graph = read(tmp_path / "edges", "a b {'weight': 3, 'kind': 'x;y'}\nb c x\n")
    assert graph.weights is None
    assert rows(graph) == {"a": {"b": 1}, "b": {"a": 1, "c": 1}, "c": {"b": 1}}


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
        ("a b\n\nc\n", {}, "edges, line 3: 'c' has only one field"),
        ("a\tb\nb c\n", {}, "edges, line 2: 'b c' has only one field"),
        ("a b 1\nb c\n", {"weighted": True}, "edges, line 2: 'b c' has no weight"),
        ("a b 1\nb c -1\n", {"weighted": True}, "edges, line 2: 'b c -1' has a weight that is not a number"),
        ("a b nan\n", {"weighted": True}, "edges, line 1: 'a b nan' has a weight"),
        ("a b 1e39\n", {"weighted": True}, "edges, line 1: 'a b 1e39' has a weight"),
        ("a b 1x\n", {"weighted": True}, "edges, line 1: 'a b 1x' has a weight"),
        ("from,to,w\n", {"weighted": True}, "begin a header line with #"),
        ("a,b\n,c\n", {}, "edges, line 2: ',c' has an empty field"),
        (b"a b\nb c\nb \xff\n", {}, "edges, line 3: b'b \\xff' is not UTF-8"),
        ('# edges\n{"source": 1, "target": 2}\n', {}, "edges, line 2 is JSON: write an edge on each line"),
        ('"Doe, Jo","Roe, Ed"\n', {}, "edges, line 1 has quotation marks"),
        ("<?xml version='1.0'?>\n<graphml>\n", {}, "edges, line 1 is XML: write an edge on each line"),
        ("graph [\n  node [\n", {}, "edges, line 1 is GML: write"),
        ('*Vertices 2\n1 "a"\n', {}, "edges, line 1 is Pajek's format: write"),
        (b"PAR1\x15" + bytes(99), {}, "edges is Parquet: write an edge on each line"),
        (b"ARROW1\0\0" + bytes(99), {}, "edges is Arrow: write"),
        (b"\x03\x01 \0\n\xff", {}, "edges is binary, not text"),
        ('"Jo";"Ed"\n', {}, "edges, line 1 has quotation marks"),
        ("# c\na;b;0,5\n", {}, "edges, line 2 has a comma and a semicolon: name the character"),
        ("a b" * 600_000, {}, "edges, line 1: more than 1 MB"),
        ("a b\n".encode("utf-16"), {}, "UTF-16"),
        (gzip.compress(b"a b\n" * 99, mtime=0)[:-9], {}, "truncated"),
        ("%%MatrixMarket matrix array real general\n2 2\n", {}, "line 1: only matrices in coordinate format"),
        ("%%MatrixMarket matrix coordinate complex general\n", {}, "line 1: a complex general matrix"),
        ("%%MatrixMarket matrix coordinate real skew-symmetric\n", {}, "line 1: a real skew-symmetric matrix"),
        ("%%MatrixMarket matrix coordinate pattern general\n", {"weighted": True}, "a pattern has no weights"),
        ("%%MatrixMarket matrix coordinate real general\n% c\n", {}, "it ends before its first entry"),
        ("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 2 1\n", {}, "2 rows and 3 columns"),
        ("%%MatrixMarket matrix coordinate real general\n2 x 1\n1 2 1\n", {}, "line 2: expected the numbers of rows"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n", {}, "row 3 does not exist"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 0 1\n", {}, "row 0 does not exist"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 a 1\n", {}, "'a' is not the number of a row"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n", {}, "its header declares 2"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n\n1 2\n", {"weighted": True}, "line 4: '1 2' has no"),
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
        ("# c\nsource,target\n1,2\n", 2),
        ("from\tto\r\n-1\t2.0\r\n", 1),
        ("a b\nb c\n", 0),
        ("a,1\n1,2\n", 0),
        ("a b", 0),
    ],
)
def test_header_lines_are_noted(text: str, line: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read(tmp_path / "edges", text)
    found = [record.getMessage() for record in caplog.records]
    assert len(found) == bool(line)
    assert all(
        f"edges, line {line}:" in message and "looks like a header, but counts as" in message for message in found
    )


def test_names_with_quotation_marks_are_read_from_tabs(tmp_path: Path) -> None:
    assert rows(read(tmp_path / "edges", '"a"\tb\n')) == {'"a"': {"b": 1}, "b": {'"a"': 1}}


# -- matrices ---------------------------------------------------------------------------------------


def matrix(weights: bool = True) -> Any:
    dense = np.array([[0, 1.5, 2, 0], [1.5, 0, 0.25, 0], [2, 0.25, 3, 0], [0, 0, 0, 0]])
    return scipy.sparse.csr_array(dense if weights else dense > 0)


LOOPS = {"0": {"1": 1.5, "2": 2}, "1": {"0": 1.5, "2": 0.25}, "2": {"0": 2, "1": 0.25, "2": 3}, "3": {}}


@pytest.mark.parametrize("compressed", [False, True])
def test_archives_of_scipy_are_read(compressed: bool, tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    scipy.sparse.save_npz(path, matrix(), compressed=compressed)
    graph = read_graph(Corpus(path), GraphOptions(weighted=True))
    assert (rows(graph), graph.key_type, graph.edges, graph.isolated) == (LOOPS, "int", 4, 1)
    assert read_graph(Corpus(path)).weights is None


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
        ({"indptr": None}, "it has no array 'indptr'"),
        ({"indptr": np.array([0, 2, 1, 7, 7])}, "its indptr must rise"),
        ({"indptr": np.array([0, 2, 4, 7, 8])}, "its indptr must rise"),
        ({"indptr": np.array([[0, 7]])}, "must be rows of whole numbers"),
        ({"indptr": np.array([0.0, 2, 4, 7, 7])}, "must be rows of whole numbers"),
        ({"indices": np.array([1, 2, 0, 2, 0, 1, 4])}, "column 4 is outside its 4 rows"),
        ({"indices": np.array([1, 2, 0, 2, 0, 1, -1])}, "column -1 is outside its 4 rows"),
        ({"data": np.array([1, 2, 0, 2, 0, 1, -1.0])}, "an edge has the weight -1.0"),
        ({"data": np.array([1, 2, 0, 2, 0, 1, np.nan])}, "an edge has the weight nan"),
        ({"data": np.ones(3)}, "weights of shape (3,)"),
        ({"data": np.array([None] * 7)}, "an array of type object"),
        ({"IDs": np.array(["a", "b", "c"])}, "3 names for 4 nodes"),
        ({"IDs": np.array(["a", "b", "a", "d"])}, "two nodes are named 'a'"),
        ({"IDs": np.array(["a", "", "c", "d"])}, "a node has an empty name"),
        ({"shape": np.array([4, 5])}, "a matrix of shape (4, 5)"),
        ({"format": np.array(b"coo")}, "in another format than CSR"),
    ],
)
def test_damaged_archives_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = pecanpy_archive(tmp_path / "graph.npz", **changes)
    with pytest.raises(W2VError, match=re.escape(message)) as error:
        read_graph(Corpus(path), GraphOptions(weighted=True))
    assert str(path) in str(error.value)


def test_truncated_archives_are_refused(tmp_path: Path) -> None:
    content = pecanpy_archive(tmp_path / "graph.npz").read_bytes()
    for size in (40, 400, len(content) - 1):
        with pytest.raises(W2VError, match="damaged archive"):
            read(tmp_path / "cut.npz", content[:size])


def test_forged_sizes_are_refused_before_allocation(tmp_path: Path) -> None:
    forged = npy.header((1 << 40,), "<i4")
    with zipfile.ZipFile(tmp_path / "graph.npz", "w") as archive:
        for name in ("indptr", "indices", "data"):
            archive.writestr(f"{name}.npy", forged)
    market = b"%%MatrixMarket matrix coordinate real general\n999999999 999999999 1\n1 2 1\n"

    def refuse(content: bytes, message: str) -> None:
        with pytest.raises(W2VError, match=message):
            read(tmp_path / "forged", content)

    ordinary = memory_of(partial(read, tmp_path / "edges", "a b\n"))
    cases = [((tmp_path / "graph.npz").read_bytes(), "truncated"), (market, "refused: it declares 999,999,999 rows")]
    for content, message in cases:
        assert_memory_grows((4, ordinary), (len(content), memory_of(partial(refuse, content, message))), 6)


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
    with pytest.raises(W2VError, match=r"shape \(2, 3\)"):
        Graph.of(scipy.sparse.csr_array((2, 3)), weighted=False, directed=False)


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


def test_networkx_and_edge_list_are_the_same_graph(tmp_path: Path) -> None:
    source = nx.les_miserables_graph()
    nx.write_weighted_edgelist(source, tmp_path / "edges", delimiter="\t")
    graph = read_graph(Corpus(tmp_path / "edges"), GraphOptions(weighted=True))
    assert rows(graph) == rows(Graph.of(source, weighted=True, directed=False))
    assert graph.edges == source.number_of_edges()


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
