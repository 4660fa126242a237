"""Compare w2v with PecanPy on graphs: walks, vectors, and a graph of a million nodes.

    python bench/graphs.py walks                      # time per step and memory of walks
    python bench/graphs.py tasks --wordnet FOLDER     # link prediction and node classification
    python bench/graphs.py read                       # time and memory of reading an edge list, only with w2v
    python bench/graphs.py large                      # from an edge list to vectors, only with w2v

FOLDER has WordNet's data.noun, as in Debian's package wordnet-base. `make build/libraries/.built` installs PecanPy. Its
SparseOTF is compiled by Numba before the clock starts, and gensim trains on its walks. Each measurement runs in a
process of its own, with two threads.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from common import W2V
from numpy.typing import NDArray

from w2v._system.memory import peak_resident_bytes

FOLDER = Path(__file__).parents[1] / "build/libraries"
THREADS = 2
CLOCKS = ("seconds", "cpu")
HELD_OUT = 0.2  # share of the edges of WordNet to predict

Edges = NDArray[np.int64]  # (edges, 2)


def in_child(function: str, *arguments: object) -> dict[str, Any]:
    """Call a function of this file in another process, and return its result with the peak memory in MB."""
    command = [sys.executable, __file__, "--child", function, json.dumps(arguments, default=str)]
    environment = os.environ | {"NUMBA_NUM_THREADS": str(THREADS)}
    found: dict[str, Any] = json.loads(subprocess.check_output(command, env=environment, text=True).splitlines()[-1])
    return found


def write_edges(path: Path, edges: Edges) -> None:
    with path.open("w") as file:
        for start in range(0, len(edges), 1 << 20):
            file.write("".join(f"{a}\t{b}\n" for a, b in edges[start : start + (1 << 20)].tolist()))


@contextlib.contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Yield a dict that gets the seconds of a `with` block, and its processor seconds, which load affects less."""
    found: dict[str, float] = {}
    start, cpu = time.perf_counter(), time.process_time()
    yield found
    found |= {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}


def random_edges(nodes: int, edges: int) -> Edges:
    """Return random edges: the graph of Erdős and Rényi."""
    return np.random.default_rng(1).integers(0, nodes, (edges, 2))


# -- called in other processes ----------------------------------------------------------------------


def pecanpy_graph(path: str, p: float, q: float, seed: int) -> Any:
    """Return a SparseOTF with its graph, after Numba has compiled it."""
    sys.path.append(str(FOLDER))
    sys.modules["nptyping"] = MagicMock()  # it needs types that NumPy 2 no longer has
    graph = importlib.import_module("pecanpy.pecanpy").SparseOTF(p=p, q=q, workers=THREADS, random_state=seed)
    graph.read_edg(path, weighted=False, directed=False)
    # It would compile new functions for each call.
    graph.get_move_forward = functools.cache(graph.get_move_forward)
    graph.get_has_nbrs = functools.cache(graph.get_has_nbrs)
    graph.simulate_walks(num_walks=1, walk_length=2)
    return graph


def pecanpy_walks(path: str, p: float, q: float) -> dict[str, Any]:
    graph = pecanpy_graph(path, p, q, 1)
    with measured() as found:
        walks = graph.simulate_walks(num_walks=1, walk_length=79)  # walks of 80 nodes
    return found | {"steps": sum(map(len, walks))}


def w2v_walks(path: str, p: float, q: float) -> dict[str, Any]:
    from w2v._graph.readers import read_graph
    from w2v._graph.walks import WalkOptions, walk_store
    from w2v._text.corpus import Corpus

    graph = read_graph(Corpus(Path(path)), workers=THREADS)
    with measured() as found, walk_store(graph, WalkOptions(p=p, q=q), workers=THREADS) as store:
        steps = store.tokens
    return found | {"steps": steps}


def w2v_read(path: str) -> dict[str, Any]:
    from w2v._graph.readers import read_graph
    from w2v._text.corpus import Corpus

    with measured() as found:
        graph = read_graph(Corpus(Path(path)), workers=THREADS)
    return found | {"nodes": graph.nodes, "edges": graph.edges}


def pecanpy_vectors(path: str, output: str, walks: int, length: int, seed: int) -> dict[str, Any]:
    from gensim.models import Word2Vec

    graph = pecanpy_graph(path, 1, 1, seed)
    with measured() as found:
        texts = graph.simulate_walks(num_walks=walks, walk_length=length - 1)
        model = Word2Vec(texts, vector_size=128, window=10, min_count=0, sg=1, workers=THREADS, epochs=1, seed=seed)
    np.savez(output, names=np.array(model.wv.index_to_key), vectors=model.wv.vectors)
    return found


def w2v_vectors(path: str, output: str, walks: int, length: int, seed: int) -> dict[str, Any]:
    import w2v

    options: dict[str, Any] = {"num_walks": walks, "walk_length": length, "seed": seed, "workers": THREADS}
    with measured() as found:
        vectors = w2v.train(path, graph=True, **options).wv  # with reading the graph
    np.savez(output, names=np.array(vectors.index_to_key), vectors=vectors.vectors)
    return found


# -- the measurements -------------------------------------------------------------------------------


def measure_walks(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    path = folder / "edges.tsv"
    write_edges(path, random_edges(arguments.nodes or 100_000, arguments.edges or 1_000_000))
    for p, q in zip(arguments.p, arguments.q, strict=True):
        found = {name: in_child(f"{name}_walks", path, p, q) for name in ("pecanpy", "w2v")}
        per_step = {
            (name, clock): 1e9 * each[clock] / each["steps"]
            for clock in ("seconds", "cpu")
            for name, each in found.items()
        }
        yield {
            "p": p, "q": q,
            **{f"ratio of {clock}": per_step["pecanpy", clock] / per_step["w2v", clock] for clock in CLOCKS},
            **{f"{name} ns per step, {clock}": value for (name, clock), value in per_step.items()},
            **{f"{name} MB": each["megabytes"] for name, each in found.items()},
        }  # fmt: skip


def measure_reading(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    path = folder / "edges.tsv"
    write_edges(path, random_edges(arguments.nodes or 1_000_000, arguments.edges or 10_000_000))
    yield in_child("w2v_read", path)


def measure_tasks(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    tasks: list[tuple[str, Any, int, int]] = []
    if arguments.wordnet:
        tasks.append(("WordNet, AUC", wordnet_edges(arguments.wordnet / "data.noun"), 3, 40))
    tasks.append(("communities, accuracy", community_edges(), 10, 80))
    for task, edges, walks, length in tasks:
        scores: dict[str, list[float]] = {"pecanpy": [], "w2v": []}
        seconds: dict[str, list[float]] = {"pecanpy": [], "w2v": []}
        cpu: dict[str, list[float]] = {"pecanpy": [], "w2v": []}
        for seed in range(1, arguments.seeds + 1):
            path, output = folder / "edges.tsv", folder / "vectors.npz"
            random = np.random.default_rng(seed)
            held_out = random.random(len(edges)) < (HELD_OUT if task.startswith("WordNet") else 0)
            write_edges(path, edges[~held_out])
            for name in scores:
                found = in_child(f"{name}_vectors", path, output, walks, length, seed)
                with np.load(output) as arrays:
                    vectors = dict(zip(map(int, arrays["names"]), arrays["vectors"], strict=True))
                score = auc(vectors, edges[held_out]) if held_out.any() else accuracy(vectors)
                scores[name].append(score)
                seconds[name].append(found["seconds"])
                cpu[name].append(found["cpu"])
        yield {
            "task": task, "walks": walks, "length": length,
            "ratio of seconds": mean(seconds["pecanpy"]) / mean(seconds["w2v"]),
            "ratio of cpu": mean(cpu["pecanpy"]) / mean(cpu["w2v"]),
            **{f"{name} score": [round(score, 4) for score in values] for name, values in scores.items()},
            **{f"{name} seconds": mean(values) for name, values in seconds.items()},
            **{f"{name} cpu": mean(values) for name, values in cpu.items()},
        }  # fmt: skip


def measure_large(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    path = folder / "edges.tsv"
    nodes, edges = arguments.nodes or 1_000_000, arguments.edges or 10_000_000
    write_edges(path, random_edges(nodes, edges))
    options = ["--json", "--quiet", "--workers", str(THREADS), "--walks", str(arguments.walks)]
    command = [*W2V, "train", "--graph", str(path), "-o", str(folder / "m.bin"), *options]
    found = json.loads(subprocess.check_output(command, text=True))
    yield {
        "nodes": nodes, "edges": edges, "walks": arguments.walks, "vectors": found["vocabulary_size"],
        "seconds": found["seconds"], "megabytes": found["peak_memory_bytes"] / 1e6,
    }  # fmt: skip


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def wordnet_edges(path: Path) -> Edges:
    """Return the hypernyms (@) and instance hypernyms (@i) of WordNet's nouns, as pairs of the numbers of synsets."""
    edges = []
    for line in path.read_text("latin-1").splitlines():
        if line[0] != " ":  # otherwise a line of the licence
            fields = line.split(" | ")[0].split()
            first = 5 + 2 * int(fields[3], 16)  # the pointers follow the words
            for k in range(first, first + 4 * int(fields[first - 1]), 4):
                if fields[k] in ("@", "@i"):
                    edges.append((int(fields[0]), int(fields[k + 1])))
    return np.array(edges)


def community_edges() -> Edges:
    """Return the edges of 2,000 nodes in 20 communities; node i is in community i // 100."""
    random = np.random.default_rng(1)
    pairs = np.column_stack(np.triu_indices(2000, 1))
    same = pairs[:, 0] // 100 == pairs[:, 1] // 100
    return pairs[random.random(len(pairs)) < np.where(same, 0.1, 0.01)]


def auc(vectors: dict[int, NDArray[np.float32]], edges: Edges) -> float:
    """Return how often the cosine of an edge is above the cosine of two random nodes."""
    known = np.array([edge for edge in edges.tolist() if edge[0] in vectors and edge[1] in vectors])
    others = np.random.default_rng(0).choice(np.unique(known), known.shape)
    scores = []
    for pairs in (known, others):
        left, right = (np.array([vectors[node] for node in column]) for column in pairs.T.tolist())
        lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        scores.append((left * right).sum(axis=1) / lengths)
    ranks = np.argsort(np.argsort(np.concatenate(scores)))[: len(known)]
    return float((ranks.sum() - len(known) * (len(known) - 1) / 2) / len(known) ** 2)


def accuracy(vectors: dict[int, NDArray[np.float32]]) -> float:
    """Return how often a logistic regression on half of the nodes finds the community of the others."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import normalize

    nodes = np.random.default_rng(0).permutation(sorted(vectors))
    values = normalize(np.array([vectors[node] for node in nodes]))
    half = len(nodes) // 2
    model = LogisticRegression(C=10, max_iter=1000).fit(values[:half], nodes[:half] // 100)
    return float(model.score(values[half:], nodes[half:] // 100))


MEASUREMENTS = {"walks": measure_walks, "read": measure_reading, "tasks": measure_tasks, "large": measure_large}


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        found = globals()[sys.argv[2]](*json.loads(sys.argv[3]))
        print(json.dumps(found | {"megabytes": peak_resident_bytes() / 1e6}))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurement", choices=[*MEASUREMENTS])
    parser.add_argument("-p", type=float, nargs="+", default=[1.0, 0.5, 4.0], help="values of p for walks")
    parser.add_argument("-q", type=float, nargs="+", default=[1.0, 2.0, 4.0], help="values of q, one for each p")
    parser.add_argument("--wordnet", type=Path, metavar="FOLDER")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--edges", type=int)
    parser.add_argument("--walks", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    arguments = parser.parse_args()
    measure = MEASUREMENTS[arguments.measurement]
    results = []
    with tempfile.TemporaryDirectory(prefix="w2v-graphs-") as name:
        for result in measure(arguments, Path(name)):
            print(json.dumps(result, default=str), flush=True)
            results.append(result)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
