"""Random walks on a graph, as ids: as an IdStore to train on, or as a text file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError
from w2v._graph._walks import Walker, count_ids
from w2v._graph.graph import Graph
from w2v._graph.readers import GraphOptions
from w2v._options import option
from w2v._progress import Meter, Report
from w2v._settings import GRAPH
from w2v._system.files import PathLike, atomic_write, check_disk_space, temporary_folder
from w2v._system.threads import map_in_order
from w2v._text._phrases import ids_to_text
from w2v._text._text import FIRST_TYPE, SENTENCE_END_ID
from w2v._text.idstore import IdStore, store_of_ids
from w2v._text.words import Words

IDS_AT_ONCE = 1 << 18  # approximate number of ids that a thread makes at a time
SPACE = b" \t\n\v\f\r"
MIN_BIAS, MAX_BIAS = 1e-9, 1e9  # of p and q: their reciprocals, multiplied by sums of weights, stay precise in float64


@dataclass(frozen=True, kw_only=True)
class WalkOptions(GraphOptions):
    """The options of random walks, with the names and defaults of node2vec and PecanPy.

    Raises:
        SettingsError: For impossible values.
    """

    walk_length: int = option(80, "Number of nodes of a walk.", GRAPH, minimum=1, maximum=1 << 20)
    num_walks: int = option(
        10,
        "Number of walks that start at each node.",
        GRAPH,
        minimum=1,
        maximum=1 << 20,
        flags=("--walks", "--num-walks"),
    )
    p: float = option(
        1.0,
        "Return parameter of node2vec: above 1, a walk seldom goes straight back to the node that it came from.",
        GRAPH,
        minimum=MIN_BIAS,
        maximum=MAX_BIAS,
        flags=("-p", "--p"),
    )
    q: float = option(
        1.0,
        "In-out parameter of node2vec: above 1, a walk stays near the node that it came from; below 1, it goes away.",
        GRAPH,
        minimum=MIN_BIAS,
        maximum=MAX_BIAS,
        flags=("-q", "--q"),
    )


def walk_blocks(
    graph: Graph,
    options: WalkOptions | None = None,
    *,
    seed: int = 1,
    workers: int = 1,
    progress: Report | None = None,
) -> Iterator[NDArray[np.uint32]]:
    """Yield random walks in blocks of ids: uint32 (n,). They are the same for any number of threads.

    Each turn starts one walk at each node, in a new random order. A walk ends early at a node without further edges.
    Node i has the id FIRST_TYPE + i, and SENTENCE_END_ID ends each walk.

    Args:
        graph: The graph.
        options: The options of the walks; the options for reading a graph have no effect.
        seed: The seed of the random numbers.
        workers: The number of threads.
        progress: Called regularly with a Progress of phase "walk".
    """
    options = options or WalkOptions()
    walker = Walker(graph.indptr, graph.neighbours, graph.weights, options.p, options.q, options.walk_length, seed)
    total = graph.nodes * options.num_walks
    size = max(1, IDS_AT_ONCE // (options.walk_length + 1))
    parts = ((first, min(first + size, total)) for first in range(0, total, size))
    meter = Meter(progress, "walk")
    for (_, last), ids in map_in_order(lambda part: (part, walker.walks(*part)), parts, workers):
        yield ids
        meter(last, total)


def walk_store(
    graph: Graph,
    options: WalkOptions | None = None,
    *,
    seed: int = 1,
    workers: int = 1,
    folder: PathLike | None = None,
    progress: Report | None = None,
) -> IdStore:
    """Make random walks and store them as the ids of a text, in an unnamed temporary file.

    Args:
        graph, options, seed, workers, progress: See `walk_blocks`.
        folder: The folder of the file; by default, the system's temporary folder.

    Raises:
        W2VError: If the folder is not writable or has no space left.
    """
    options = options or WalkOptions()
    counts, walks = np.zeros(graph.nodes + FIRST_TYPE, np.int64), graph.nodes * options.num_walks

    def counted() -> Iterator[tuple[NDArray[np.uint32], float]]:
        for ids in walk_blocks(graph, options, seed=seed, workers=workers, progress=progress):
            count_ids(ids, counts)
            yield ids, int(counts[SENTENCE_END_ID]) / walks

    return store_of_ids(
        counted(),
        lambda: (counts, _words_of_ids(graph)),
        temporary_folder(folder),
        key_type=graph.key_type,
        noun="node",
    )


def check_separable(names: Words, path: PathLike) -> None:
    """Raise W2VError if a name contains white space, which separates nodes in a text file."""
    if names.contain_any(SPACE):
        name = next(name for name in names if any(space in name for space in SPACE.decode()))
        raise W2VError(
            f"cannot write {path}: the name {name[:60]!r} contains white space, which separates nodes there: train "
            "with w2v train --graph, or rename the nodes"
        )


def write_walks(
    graph: Graph,
    path: PathLike,
    options: WalkOptions | None = None,
    *,
    seed: int = 1,
    workers: int = 1,
    force: bool = False,
    progress: Report | None = None,
) -> int:
    """Write random walks to a text file: one walk per line, its nodes separated by spaces. Return the number of nodes.

    Args:
        graph, options, seed, workers, progress: See `walk_blocks`.
        path: The file to write, at once when it is complete.
        force: Whether an existing file may be replaced.

    Raises:
        W2VError: If the file cannot be written, or a name contains white space, which a text file cannot store.
    """
    check_separable(graph.names, path)
    options = options or WalkOptions()
    words, folder = _words_of_ids(graph), Path(path).resolve().parent
    written = walks = size = 0
    with atomic_write(path, force) as file:
        for ids in walk_blocks(graph, options, seed=seed, workers=workers, progress=progress):
            size += file.write(ids_to_text(ids, words.blob, words.offsets).data)
            written += int(np.count_nonzero(ids))
            walks += int(np.count_nonzero(ids == SENTENCE_END_ID))
            rest = graph.nodes * options.num_walks / walks - 1
            check_disk_space(file, folder, rest * size, "a file of all walks")
    return written


def _words_of_ids(graph: Graph) -> Words:
    """Return the word of each id: an empty one for each id below FIRST_TYPE, then the names of the nodes."""
    return Words(graph.names.blob, np.concatenate([np.zeros(FIRST_TYPE, np.int64), graph.names.offsets]))
