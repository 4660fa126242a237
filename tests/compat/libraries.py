"""Run libraries that train with gensim, once with gensim and once with w2v.gensim in its place.

    python tests/compat/libraries.py [NAME…]

Each library learns vectors for the nodes of a graph with 8 communities. Its quality is the share of a node's ten
nearest nodes that belong to the node's own community; for WEFE it is the effect size of WEAT between two communities.
`make build/libraries/.built` installs the libraries. Exits with 1 if a library fails, or learns less with w2v.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np

FOLDER = Path(__file__).parents[2] / "build" / "libraries"
COMMUNITIES, NODES = 8, 25
TOLERANCE = 0.1  # allowed loss of quality with w2v; runs of PecanPy, which has no seed, differ by 0.07

# -- the libraries ----------------------------------------------------------------------------------


def quality(vectors: Any) -> float:
    """Return the share of the ten nearest nodes that are in a node's own community; row i is the vector of node i."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -1)
    nearest = np.argsort(-cosines, axis=1)[:, :10]
    communities = np.arange(len(unit)) // NODES
    return float((communities[nearest] == communities[:, None]).mean())


def quality_of_nodes(graph: Any, vectors: Any) -> float:
    """Return the quality of vectors that are looked up by the names of the nodes."""
    return quality(vectors[[str(node) for node in graph]])


def with_node2vec(graph: Any) -> float:
    walks = importlib.import_module("node2vec").Node2Vec(
        graph, dimensions=32, walk_length=15, num_walks=10, quiet=True, seed=1
    )
    return quality_of_nodes(graph, walks.fit(window=3, min_count=1, epochs=1, workers=1, seed=1).wv)


def with_fastnode2vec(graph: Any) -> float:
    library = importlib.import_module("fastnode2vec")
    edges = library.Graph([(str(a), str(b)) for a, b in graph.edges], directed=False, weighted=False)
    model = library.Node2Vec(edges, dim=32, walk_length=15, window=3, workers=1, seed=1)
    model.train(epochs=10, verbose=False)
    return quality_of_nodes(graph, model.wv)


def with_pecanpy(graph: Any) -> float:
    sys.modules["nptyping"] = MagicMock()  # it needs types that NumPy 2 no longer has
    walks = importlib.import_module("pecanpy.pecanpy").SparseOTF(p=1, q=1, workers=1, random_state=1)
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        file.writelines(f"{a}\t{b}\n" for a, b in graph.edges)
        file.flush()
        walks.read_edg(file.name, weighted=False, directed=False)
    vectors = walks.embed(dim=32, num_walks=10, walk_length=15, window_size=3, epochs=1)
    rows = {name: row for row, name in enumerate(walks.nodes)}
    return quality(vectors[[rows[str(node)] for node in graph]])


def with_karateclub(name: str, dimensions: int, window: int, graph: Any) -> float:
    model = getattr(importlib.import_module("karateclub"), name)(
        walk_number=10, walk_length=15, dimensions=dimensions, window_size=window, workers=1, seed=1
    )
    model.fit(graph)
    return quality(model.get_embedding())


def train_on_edges(graph: Any) -> Any:
    """Train Word2Vec on the edges of a graph, each a sentence of two nodes."""
    edges = [[str(node) for node in edge] for edge in graph.edges]
    options = {"vector_size": 32, "min_count": 1, "sg": 1, "sample": 0, "alpha": 0.1, "epochs": 20, "workers": 1}
    return importlib.import_module("gensim.models").Word2Vec(edges, **options)


def with_keybert(graph: Any) -> float:
    backend = importlib.import_module("keybert.backend._utils").select_backend(train_on_edges(graph).wv)
    return quality(backend.embed([str(node) for node in graph]))


def with_bertopic(graph: Any) -> float:
    backend = importlib.import_module("bertopic.backend._gensim").GensimBackend(train_on_edges(graph).wv)
    return quality(backend.embed([str(node) for node in graph]))


def with_wefe(graph: Any) -> float:
    model = train_on_edges(graph)
    starts = 0, NODES, NODES // 2, NODES * 3 // 2  # the first halves of two communities, then their second halves
    halves = [[str(node) for node in range(start, start + NODES // 2)] for start in starts]
    word_vectors = importlib.import_module("wefe.word_embedding_model").WordEmbeddingModel(model.wv, "nodes")
    query = importlib.import_module("wefe.query").Query(halves[:2], halves[2:], ["0", "1"], ["0", "1"])
    effect = importlib.import_module("wefe.metrics").WEAT().run_query(query, word_vectors, return_effect_size=True)
    return float(effect["result"])


LIBRARIES = {  # the function that runs each
    "node2vec": with_node2vec,
    "fastnode2vec": with_fastnode2vec,
    "pecanpy": with_pecanpy,
    "karateclub": partial(with_karateclub, "DeepWalk", 32, 3),
    "walklets": partial(with_karateclub, "Walklets", 16, 2),
    "keybert": with_keybert,
    "bertopic": with_bertopic,
    "wefe": with_wefe,
}

# -- a run ------------------------------------------------------------------------------------------


def run(name: str, implementation: str) -> None:
    """Print the quality of one library's vectors, and its processor seconds, as JSON."""
    warnings.simplefilter("ignore")
    if implementation == "w2v":
        importlib.import_module("w2v.gensim").install()
    graph = importlib.import_module("networkx").planted_partition_graph(COMMUNITIES, NODES, 0.3, 0.01, seed=1)
    score = LIBRARIES[name](graph)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"quality": score, "seconds": usage.ru_utime + usage.ru_stime}))


def main() -> int:
    failed = False
    names = sys.argv[1:] or list(LIBRARIES)
    if unknown := set(names) - LIBRARIES.keys():
        sys.exit(f"unknown library: {', '.join(unknown)}; choose from {', '.join(LIBRARIES)}")
    for name in names:
        results = {}
        for implementation in ("gensim", "w2v"):
            path = os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")])
            command = [sys.executable, __file__, "--one", name, implementation]
            done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
            if done.returncode:
                print(f"{name} with {implementation}: {done.stderr.strip().splitlines()[-1]}")
                break
            results[implementation] = json.loads(done.stdout.splitlines()[-1])
        failed |= len(results) < 2
        if len(results) == 2:
            scores = [result["quality"] for result in results.values()]
            failed |= scores[1] < scores[0] - TOLERANCE
            seconds = " and ".join(f"{result['seconds']:.1f}" for result in results.values())
            print(f"{name}: {scores[0]:.3f} with gensim, {scores[1]:.3f} with w2v; {seconds} processor seconds")
    return int(failed)


if __name__ == "__main__":
    sys.exit(run(*sys.argv[2:]) if sys.argv[1:2] == ["--one"] else main())
