"""Scores on held-out texts with known answers."""

import numpy as np
import pytest

import w2v
from tests.helpers import read_text
from w2v.evaluation.held_out import WINDOW, GapTest
from w2v.text.corpus import Corpus

TOPICS, WORDS = 4, 10


def held_out(sentences: list[list[str]], share: float = 0.5) -> tuple[GapTest, w2v.Vocabulary]:
    with read_text(Corpus(sentences)) as store:
        vocabulary = w2v.Vocabulary.from_store(store, 1)
        return GapTest.of(store, vocabulary, round(share * len(store.ids))), vocabulary


def topics() -> list[list[str]]:
    """Return sentences of seven words; all words of a sentence have the same topic."""
    random = np.random.default_rng(1)
    return [
        [f"t{topic}w{word}" for word in random.integers(WORDS, size=7)]
        for topic in random.integers(TOPICS, size=3000).tolist()
    ]


def test_topic_vectors_win_against_words_of_other_topics() -> None:
    gaps, vocabulary = held_out(topics())
    of_topics = np.eye(TOPICS, dtype=np.float32)[[int(word[1]) for word in vocabulary.words]]
    assert gaps.score(of_topics) == pytest.approx(1 - 1 / TOPICS / 2, abs=0.01)  # equal scores count as half
    assert gaps.score(5 * of_topics) == gaps.score(of_topics)
    assert gaps.score(np.zeros_like(of_topics)) == 0.5
    random = np.random.default_rng(2).normal(size=(len(vocabulary), 50)).astype(np.float32)
    assert gaps.score(random) == pytest.approx(0.5, abs=0.06)


def test_contexts_are_neighbours_in_the_same_sentence() -> None:
    sentences = topics()
    gaps, vocabulary = held_out(sentences, 0)
    topic = np.array([int(word[1]) for word in vocabulary.words])
    assert (gaps.contexts == -1).any()
    assert (gaps.contexts >= 0).any(axis=1).all()
    assert gaps.contexts.shape[1] == 2 * WINDOW
    inside = gaps.contexts >= 0
    assert (topic[gaps.contexts] == topic[gaps.words][:, None])[inside].all()
    assert inside.sum(axis=1).max() <= 6


def test_short_texts_are_not_subsampled() -> None:
    gaps, _ = held_out([["one", "two"], ["three", "four"], ["five", "six"]], 0)
    assert sorted(gaps.words.tolist()) == list(range(6))


def test_text_without_context_words_is_refused() -> None:
    with pytest.raises(w2v.W2VError, match=r"too short to evaluate vectors: give more text"):
        held_out([["one"], ["two"], ["three"], ["four"]])
