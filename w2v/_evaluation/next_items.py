"""Score recommendations: how high is the last item of a session ranked, given the items before it?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from w2v._errors import W2VError
from w2v._evaluation.scores import Evaluation, ItemScores, name_models
from w2v._options import check_numbers, options_of, refuse_unknown
from w2v._progress import Meter, Report
from w2v._system.threads import processors
from w2v._text._text import FIRST_TYPE, SENTENCE_END_ID
from w2v._text.corpus import Corpus, Source
from w2v._text.idstore import IdStore, ReadingOptions, read_corpus
from w2v._vectors.cosines import unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of
from w2v._vectors.recommend import LAST

MAX_SESSIONS = 20_000  # a random sample of more sessions is scored
SCORES_AT_ONCE = 1 << 22
UNKNOWN = 1 << 62  # the number of items above one that a recommender does not know
SEED = 1
BASELINES = ("popularity", "Markov", "ItemKNN")


@dataclass(frozen=True)
class _Recommender:
    """A way to score items by the items of a session.

    Attributes:
        words: The V items that it knows.
        score: Returns the scores of all items, (n, V), for n sessions, a sparse matrix (n, V) with the number of times
            that each item counts.
        last: How many items at the end of a session count; None for all.
    """

    words: Sequence[str]
    score: Callable[[sparse.csr_array], NDArray[Any]]
    last: int | None = None


def next_items(
    *models: KeyedVectors | HasWordVectors,
    sessions: Source,
    trained_on: Source | None = None,
    topn: int = 20,
    last: int | None = LAST,
    seed: int = SEED,
    progress: Report | None = None,
    **reading: Any,
) -> Evaluation:
    """Score how well models recommend the last item of a session from the items before it, as `recommend` does.

    Items of the session are not recommended, so sessions in which the last item has occurred before are left out. An
    item that a model does not know is never recommended. The results are the hit rate (the share of sessions whose last
    item is among the first `topn`), NDCG (a hit at rank r counts 1 / log2(r + 1); Järvelin & Kekäläinen 2002, with one
    relevant item) and the mean reciprocal rank among the first `topn`. All items are ranked, not a sample of them,
    which would bias the scores (Krichene & Rendle 2020). Equal scores share their ranks: each measure is its mean over
    them.

    Args:
        models: Vectors of items, or models that have them. The first is compared with the others.
        sessions: Sessions that no model was trained on.
        trained_on: The sessions that the models were trained on. From them, three simple recommenders are made, whose
            scores follow those of the models, in the order of BASELINES: the most frequent items; the items that most
            often followed the last item (a first-order Markov chain); and the items in the most similar sessions
            (cosines of the rows of items, weighted by tf-idf; Deshpande & Karypis 2004).
        topn: The number of recommended items.
        last: Use only the last `last` items of a session; None for all.
        seed: Seed of the resampling.
        progress: See `evaluate`.
        reading: Arguments of `train` for reading the sessions, such as `column`, or `item` and `session`.

    Raises:
        W2VError: A file cannot be used, or no session has two items.
        SettingsError: An argument is impossible, or there is nothing to score.
    """
    check_numbers(topn=topn, seed=seed, **{} if last is None else {"last": last})
    baselines = BASELINES if trained_on is not None else ()
    results = Evaluation(models=name_models(models, baselines), baselines=baselines)
    refuse_unknown(reading, options_of(ReadingOptions), {})
    options, workers = ReadingOptions(**reading), processors()
    recommenders = [_by_cosine(vectors_of(model), last) for model in models]
    if trained_on is not None:
        with read_corpus(Corpus(trained_on), options, workers=workers, progress=progress) as store:
            recommenders += _baselines(store)
    corpus = Corpus(sessions)
    with read_corpus(corpus, options, workers=workers, progress=progress) as store:
        ids = np.array(store.ids)
        starts, ends = _usable_sessions(ids)
        if not len(ends):
            raise W2VError(f"{corpus}: no session has two items and a last item that is new in it")
        meter = Meter(progress, "evaluate")
        ranks = []
        for recommender in recommenders:
            rows = store.remap(recommender.words)[ids]
            found = _ranks(recommender, rows, starts, ends)
            ranks.append(found if (rows >= 0).any() else found[:0])  # without any known item, it has no score
            meter(len(ranks), len(recommenders))
    total, items = int(store.sentences), np.arange(len(ends))
    top = np.arange(1, min(topn, max(len(each.words) for each in recommenders)) + 1)  # the ranks that count
    measures = {"hit rate": np.ones(len(top)), "NDCG": 1 / np.log2(top + 1), "reciprocal rank": 1 / top}
    for name, gains in measures.items():
        sums = np.append(0, np.cumsum(gains))
        values = [np.diff(sums[np.minimum(each, len(top))])[:, 0] / np.diff(each)[:, 0] for each in ranks]
        scores = [ItemScores(items[: len(each)], each, total) for each in values]
        results.add("next item", f"{name} at {topn}", scores, seed=seed)
    return results


def _usable_sessions(ids: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where sessions begin, and the places of their last items, if these are new in the session."""
    stops = np.flatnonzero(ids == SENTENCE_END_ID)
    starts, lasts = np.append(0, stops[:-1] + 1), stops - 1
    session_of = np.repeat(np.arange(len(stops)), stops - starts + 1)
    is_repeated = (ids == ids[lasts][session_of]) & (np.arange(len(session_of)) < lasts[session_of])
    repeats = np.bincount(session_of[is_repeated], minlength=len(stops))
    usable = np.flatnonzero((lasts > starts) & (repeats == 0))
    chosen = np.sort(np.random.default_rng(SEED).permutation(usable)[:MAX_SESSIONS])
    return starts[chosen], lasts[chosen]


def _ranks(
    recommender: _Recommender, rows: NDArray[np.int32], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how many items score above the last item of each session, and how many at least as high, int64 (n, 2).

    An unknown item ranks after all others.

    Args:
        recommender: Scores the items.
        rows: The row of each item of a text; -1 for unknown ones.
        starts, ends: The places of the first and of the last items of the sessions in the text.
    """
    size = len(recommender.words)
    ranks = np.tile([UNKNOWN, UNKNOWN + 1], (len(ends), 1))
    known = np.flatnonzero(rows[ends] >= 0)
    for first in range(0, len(known), max(1, SCORES_AT_ONCE // size)):
        part = known[first : first + max(1, SCORES_AT_ONCE // size)]
        begins, targets = starts[part], rows[ends[part]]
        seen = _counts(rows, begins, ends[part], size)
        counted = seen
        if recommender.last is not None:
            counted = _counts(rows, np.maximum(begins, ends[part] - recommender.last), ends[part], size)
        scores = recommender.score(counted)
        scores[seen.nonzero()] = -np.inf
        own = scores[np.arange(len(part)), targets][:, None]
        ranks[part, 0] = np.count_nonzero(scores > own, axis=1)
        ranks[part, 1] = np.count_nonzero(scores >= own, axis=1)
    return ranks


def _counts(rows: NDArray[np.int32], starts: NDArray[np.int64], ends: NDArray[np.int64], size: int) -> sparse.csr_array:
    """Return how often each of `size` items occurs from each start up to each end, (sessions, size)."""
    lengths = ends - starts
    places = np.repeat(ends - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
    sessions, found = np.repeat(np.arange(len(ends)), lengths), rows[places]
    values = np.ones(np.count_nonzero(found >= 0), np.float32)
    return sparse.csr_array((values, (sessions[found >= 0], found[found >= 0])), shape=(len(ends), size))


def _by_cosine(vectors: KeyedVectors, last: int | None) -> _Recommender:
    """Recommend the items nearest to the mean of the items' unit vectors, as `recommend` does."""
    rows = unit(np.asarray(vectors.vectors, np.float32))
    words = [str(key) for key in vectors.index_to_key]
    return _Recommender(words, lambda sessions: cast(NDArray[Any], (sessions @ rows) @ rows.T), last)


def _baselines(store: IdStore) -> list[_Recommender]:
    """Make the recommenders of BASELINES from the sessions that models were trained on."""
    rows = store.ids.astype(np.int32) - FIRST_TYPE  # ends of sessions and pruned items have no row
    ends = np.flatnonzero(store.ids == SENTENCE_END_ID)
    size, words = len(store.counts) - FIRST_TYPE, store.words(np.arange(FIRST_TYPE, len(store.counts)))
    table = _counts(rows, np.append(0, ends[:-1] + 1), ends, size)
    follows = (rows[:-1] >= 0) & (rows[1:] >= 0)
    pairs = rows[:-1][follows], rows[1:][follows]
    chain = sparse.csr_array((np.ones(len(pairs[0]), np.float32), pairs), shape=(size, size))
    occurrences = store.counts[FIRST_TYPE:].astype(np.float32)
    # Items are documents and sessions are terms: a session of many items says little about each.
    inverse_frequency = np.log(size / np.maximum(1, np.diff(table.sign().indptr)))
    weights = (table.sqrt() * inverse_frequency[:, None]).T.tocsr()
    norms = np.sqrt(weights.power(2).sum(axis=1))
    weights = (weights / np.where(norms > 0, norms, 1)[:, None]).tocsr()
    return [
        _Recommender(words, lambda sessions: np.tile(occurrences, (sessions.shape[0], 1))),
        _Recommender(words, lambda sessions: (sessions @ chain).toarray(), last=1),
        _Recommender(words, lambda sessions: ((sessions @ weights) @ weights.T).toarray()),
    ]
