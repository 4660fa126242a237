"""Score models on analogy questions, word pairs, neighbours and held-out text."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, W2VError, malformed_lines, pluralise
from w2v._evaluation.analogies import Questions, answer_questions
from w2v._evaluation.held_out import DRAWS, MAX_IDS, GapTest
from w2v._evaluation.scores import Evaluation, ItemScores, correlations, means, name_models
from w2v._evaluation.similarity import RatedPairs, rated_pairs
from w2v._evaluation.word_sets import score_word_set
from w2v._formats.header import ModelHeader
from w2v._options import check_numbers, options_of, refuse_unknown
from w2v._progress import Meter, Report
from w2v._system.files import PathLike, as_paths
from w2v._system.threads import processors
from w2v._text._text import FIRST_TYPE
from w2v._text.corpus import Corpus, Source
from w2v._text.idstore import ReadingOptions, read_corpus
from w2v._text.vocabulary import Vocabulary
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of
from w2v._vectors.neighbours import nearest_rows
from w2v._vectors.query import Method

log = logging.getLogger("w2v")

NEIGHBOURS = 10
RELATED_QUANTILE = 2 / 3  # pairs with a score at or above this quantile of their file count as related
FREQUENT_WORDS = 500  # number of most frequent words in "rare neighbours"
RARE_COUNT = 20  # words that occur fewer times are rare


def evaluate(
    *models: KeyedVectors | HasWordVectors,
    questions: PathLike | Sequence[PathLike] = (),
    pairs: PathLike | Sequence[PathLike] = (),
    test: PathLike | Sequence[PathLike] = (),
    held_out: Source | None = None,
    restrict_vocab: int = 30_000,
    method: Method = "add",
    seed: int = 1,
    progress: Report | None = None,
    **reading: Any,
) -> Evaluation:
    """Score models on the bundled questions and pairs, on more files of questions and pairs, and by word neighbours.

    The first model is the baseline: every other model is compared with it.

    Args:
        models: Vectors, or models that have them.
        questions, pairs: One or several files; see `analogies` and `word_pairs`.
        test: One or several test sets of words, which are recognised by their content:

            - a word and its category in each line, as in AP, BLESS, Battig and ESSLLI: the purity of clusters of words
            - a group of words, an empty line, and outliers, or a folder of such files, as 8-8-8: outlier detection
            - a JSON object of four lists of words, two of targets and two of attributes: the association test WEAT
            - a folder of files with a word, a tab and its answers, divided by "/", in each line, as BATS: analogies,
              answered by three methods
        held_out: A text that no model was trained on. Words that one of the models does not have are left out for all
            models. Only the last 500,000 words of a long text are used.
        restrict_vocab, method: See `analogies`.
        seed: Seed of the resampling.
        progress: Called in phase "evaluate" and, with `held_out`, in phase "read".
        reading: Arguments of `train` for reading `held_out`; by default as in the training of the first model.

    Raises:
        W2VError: If a file cannot be used.
        SettingsError: If an argument is impossible, or there are no models.
    """
    check_numbers(seed=seed)
    refuse_unknown(reading, options_of(ReadingOptions), {})
    if reading and held_out is None:
        raise SettingsError(f"{next(iter(reading))} has no effect without held_out")
    questions, pairs = as_paths(questions), as_paths(pairs)
    meter = Meter(progress, "evaluate")
    total = 4 + len(questions) + 2 * len(pairs) + (held_out is not None)
    vectors = [vectors_of(model) for model in models]
    results = Evaluation(models=name_models(models))

    def add_result(name: str, measure: str, items: list[ItemScores], *more: Any) -> None:
        results.add(name, measure, items, *more, seed=seed)
        meter(len(results), total)

    for file in (None, *questions):
        name = "bundled questions" if file is None else Path(file).name
        answered = [answer_questions(model, file, restrict_vocab, method) for model in vectors]
        _warn_of_malformed(file, [question_set for question_set, _ in answered])
        add_result(name, "accuracy", [_accuracy(*each) for each in answered])
    for file in (None, *pairs):
        name = "bundled pairs" if file is None else Path(file).name
        rated = [rated_pairs(model, file) for model in vectors]
        _warn_of_malformed(file, rated)
        add_result(name, "spearman", [_cosines(each) for each in rated], correlations)
        if any(0 < len(each.indices) < len(each.all_scores) for each in rated):
            total += 1
            add_result(name, "spearman, unknown pairs as 0", [_all_cosines(each) for each in rated], correlations)
        related = [_related(*each) for each in zip(vectors, rated, strict=True)]
        add_result(name, "related neighbours", related)
    add_result("frequent words", "rare neighbours", [_rare(model) for model in vectors])
    for path in as_paths(test):
        scored = score_word_set(path, vectors, restrict_vocab)
        total += len(scored)
        for one in scored:
            add_result(Path(path).name, one[0].measure, [each.items for each in one], one[0].statistic, one[0].chance)
    if held_out is not None:
        name = Path(held_out).name if isinstance(held_out, str | os.PathLike) else "held-out text"
        add_result(name, "gaps", _gaps(name, vectors, held_out, reading, progress), means, 0.5)
    return results


def _warn_of_malformed(file: PathLike | None, contents: Sequence[Questions | RatedPairs]) -> None:
    """Log a warning if a file, which each model has read, has malformed lines."""
    for content in contents[:1]:
        if content.malformed:
            log.warning("%s: skipped %s", file, malformed_lines(content.malformed, content.first_malformed))


# -- item scores ----------------------------------------------------------------------------


def _accuracy(questions: Questions, correct: NDArray[np.bool_]) -> ItemScores:
    """Return 1 for each known question that is answered correctly, otherwise 0; sections are the strata."""
    items = np.flatnonzero(questions.known)
    return ItemScores(items, correct[items].astype(float), len(correct), strata=questions.sections[items])


def _cosines(rated: RatedPairs) -> ItemScores:
    """Return the cosine of each pair."""
    return ItemScores(rated.indices, rated.cosines.astype(float), len(rated.all_scores), ratings=rated.scores)


def _all_cosines(rated: RatedPairs) -> ItemScores:
    """Return the cosine of each pair, 0 for pairs with a word without a vector."""
    size = len(rated.all_scores)
    cosines = np.zeros(size)
    cosines[rated.indices] = rated.cosines
    return ItemScores(np.arange(size), cosines, size, ratings=rated.all_scores)


def _related(model: KeyedVectors, rated: RatedPairs) -> ItemScores:
    """Return 1 for each related pair with both words among each other's nearest neighbours, otherwise 0."""
    threshold = np.quantile(rated.all_scores, RELATED_QUANTILE)
    related = np.flatnonzero((rated.scores >= threshold) & (rated.rows < len(model)).all(axis=1))
    words, indices = np.unique(rated.rows[related], return_inverse=True)
    nearest = nearest_rows(model.vectors, words, NEIGHBOURS)
    first, second = indices.reshape(-1, 2).T
    mutual = (nearest[first] == words[second][:, None]).any(1) & (nearest[second] == words[first][:, None]).any(1)
    total = int((rated.all_scores >= threshold).sum())
    return ItemScores(rated.indices[related], mutual.astype(float), total)


def _rare(model: KeyedVectors) -> ItemScores:
    """Return the share of rare words among the nearest neighbours of each frequent word."""
    counts = model.counts if model.counts is not None else np.zeros(0, np.int64)
    frequent = np.argsort(-counts, kind="stable")[:FREQUENT_WORDS]
    rare = counts < RARE_COUNT
    total = min(FREQUENT_WORDS, len(model))
    if len(counts) < 2 or not rare.any():  # as in a file without counts, or with frequent words only
        return ItemScores(np.empty(0, str), np.empty(0), total)
    shares = rare[nearest_rows(model.vectors, frequent, NEIGHBOURS)].mean(axis=1)
    words = np.array([model.index_to_key[row] for row in frequent], str)
    return ItemScores(words, shares, total)


def _gaps(
    name: str, models: Sequence[KeyedVectors], text: Source, reading: Mapping[str, Any], progress: Report | None
) -> list[ItemScores]:
    """Return how often each model prefers the word in a gap of a text to random words, for the same gaps in all models.

    Only words that all models have take part. `total` is the number of words in the text.
    """
    text_options = [getattr(model, "header", ModelHeader()).text for model in models]
    if not reading and any(options != text_options[0] for options in text_options):
        log.warning("the models split texts into words in different ways: %s is split as for the first", name)
    options = ReadingOptions(**asdict(text_options[0]) | dict(reading))
    with read_corpus(Corpus(text), options, workers=processors(), progress=progress) as store:
        start = max(0, len(store.ids) - MAX_IDS)
        ids, counts = np.unique(store.ids[start:].astype(np.int64), return_counts=True)
        ids, counts = ids[ids >= FIRST_TYPE], counts[ids >= FIRST_TYPE]
        words = store.words(ids).tolist()
        known = np.flatnonzero([all(word in model for model in models) for word in words])
        known = known[np.argsort(-counts[known], kind="stable")]
        if not len(known):
            raise W2VError(f"{name}: none of its words is in {'all models' if len(models) > 1 else 'the model'}")
        vocabulary = Vocabulary([words[row] for row in known.tolist()], counts[known])
        gaps = GapTest.of(store, vocabulary, start)
    total = int(counts.sum())
    if skipped := total - vocabulary.tokens:
        log.info("%s: left out %s of %s that not all models have", name, f"{skipped:,}", pluralise(total, "word"))
    items = np.arange(len(gaps.words))
    wins = [gaps.count_wins(model[vocabulary.words.tolist()]) / DRAWS for model in models]
    return [ItemScores(items, each, total) for each in wins]
