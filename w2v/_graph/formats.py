"""Recognise the format of a file with a graph, and read the formats that networkx and scipy read."""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import Any, Literal

import numpy as np
from numpy.lib.npyio import NpzFile

from w2v._errors import W2VError, import_optional, translate_errors
from w2v._graph.graph import Graph, named_once
from w2v._system.files import ZIP

GraphFormat = Literal["edges", "adjlist", "dimacs", "gml", "graphml", "gexf", "pajek", "json", "mtx", "npz", "mat"]
LINES = ("edges", "adjlist", "dimacs")  # formats whose lines w2v divides into fields; libraries read the others
MATRICES = ("mtx", "npz", "mat")  # formats that scipy reads
NOT_READ = ("metis", "tgf")
# For each format: the extensions of its files, and a regular expression for their first bytes.
FORMATS = {
    "npz": ((".npz",), ZIP),
    "mat": ((".mat",), rb"MATLAB "),
    "mtx": ((".mtx",), rb"%%MatrixMarket"),
    "graphml": ((".graphml",), rb"(?s)\s*<.*<graphml\b"),
    "gexf": ((".gexf",), rb"(?s)\s*<.*<gexf\b"),
    "gml": ((".gml",), rb"\s*(Creator\b.*\s+)?graph\s*\["),
    "pajek": ((".net", ".paj"), rb"(?i)\s*\*(network|vertices)\s"),
    "json": ((".json",), rb"\s*\{"),
    "adjlist": ((".adjlist",), None),
    "dimacs": ((".dimacs", ".col"), rb"(?s)(.*\n)?p (edge|col|sp|max|min|asn) +\d+ +\d+"),
    "metis": ((".graph", ".metis"), None),
    "tgf": ((".tgf",), rb"([^#%\n][^\n]*\n)+#\s*\n"),  # nodes, a line with #, and edges
}
MANY_NODES = 1 << 18  # a Matrix Market file of any size may declare this many rows


def detect_format(name: str, head: bytes) -> str:
    """Return the format of a file, by its first bytes or else by the extension of its name."""
    path = re.sub(r"\.(gz|bz2|xz|zst)$", "", name.lower())
    by_content = (kind for kind, (_, start) in FORMATS.items() if start and re.match(start, head))
    by_extension = (kind for kind, (extensions, _) in FORMATS.items() if path.endswith(extensions))
    return next(by_content, None) or next(by_extension, "edges")


def read_with_library(kind: str, where: str, content: bytes, *, bipartite: bool, **options: bool) -> Graph:
    """Read a graph with networkx or scipy.

    Args:
        kind: The format of the file.
        where: The file, for messages.
        content: The whole file, decompressed.
        bipartite, options: See `Graph.of`.

    Raises:
        W2VError: If a package is missing, or if the file is not a graph in this format.
    """
    is_matrix = kind in MATRICES
    purpose = f"{where}: graphs in the format {kind} need one more package"
    library = import_optional(purpose, "graphs", "scipy.io" if is_matrix else "networkx")
    names = None
    with translate_errors(f"{where} cannot be read as {kind}; --format names another format", Exception):
        if kind == "npz":
            source, names = _read_npz(BytesIO(content))
        elif kind == "mtx":
            from scipy.sparse import coo_array

            source = coo_array(library.mmread(BytesIO(content), spmatrix=False))  # it may be dense
        elif kind == "mat":
            source = _read_mat(library, content, bipartite)
        else:
            source = _read_with_networkx(library, kind, content)
    if kind == "mtx" and max(source.shape) > max(MANY_NODES, len(content)):
        raise W2VError(f"{where}: refused: it declares {max(source.shape):,} rows in {len(content):,} bytes")
    first = 0 if kind == "npz" else 1
    graph = Graph.of(source, bipartite=bipartite, where=where, first=first, **options)
    if names is not None:
        if len(names) != graph.nodes:
            raise W2VError(f"{where}: {len(names):,} IDs for {graph.nodes:,} nodes")
        graph.names = named_once(where, names.astype(str).tolist())
        graph.key_type = "int" if names.dtype.kind in "iu" else "str"
    return graph


def _read_npz(stream: BytesIO) -> tuple[Any, Any]:
    """Return a matrix from scipy.sparse.save_npz, or one from PecanPy and the names of its nodes."""
    from scipy import sparse

    with NpzFile(stream, allow_pickle=False) as arrays:
        if "IDs" in arrays:
            parts = (arrays["data"], arrays["indices"].astype(np.int64), arrays["indptr"].astype(np.int64))
            nodes = len(parts[2]) - 1
            return sparse.csr_array(parts, shape=(nodes, nodes)), np.atleast_1d(arrays["IDs"])
    stream.seek(0)
    return sparse.load_npz(stream), None


def _read_mat(scipy_io: Any, content: bytes, bipartite: bool) -> Any:
    """Return the only sparse matrix, or the only square one, among the variables of MATLAB."""
    variables = scipy_io.loadmat(BytesIO(content), spmatrix=False).items()
    sparse = {name: value for name, value in variables if hasattr(value, "tocsr")}
    found = [name for name, value in sparse.items() if bipartite or value.shape[0] == value.shape[1]]
    if len(found) != 1:
        raise ValueError(f"{len(found)} sparse matrices could be the graph: {', '.join(found) or 'save one'}")
    return sparse[found[0]]


def _read_with_networkx(networkx: Any, kind: str, content: bytes) -> Any:
    """Return the networkx graph that a file contains."""
    if kind == "gml":  # networkx takes only ASCII, with other characters as in HTML
        text = content.decode().encode("ascii", "xmlcharrefreplace")
        return networkx.read_gml(BytesIO(text), label="label" if b"label" in text else "id")
    if kind == "json":
        data = json.loads(content)
        if "elements" in data:
            return networkx.cytoscape_graph(data)
        if "adjacency" in data:
            return networkx.adjacency_graph(data)
        return networkx.node_link_graph(data, edges="links" if "links" in data else "edges")
    return getattr(networkx, f"read_{kind}")(BytesIO(content))
