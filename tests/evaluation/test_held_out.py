"""Scores on held-out texts with known answers."""

import numpy as np
import pytest

import w2v
from tests.helpers import TOPICS, read_text, topic_sentences
from w2v._evaluation import held_out as held_out_module
from w2v._evaluation.held_out import WINDOW, GapTest
from w2v._text.corpus import Corpus


def held_out(sentences: list[list[str]], share: float = 0.5) -> tuple[GapTest, w2v.Vocabulary]:
    with read_text(Corpus(sentences)) as store:
        vocabulary = w2v.Vocabulary.from_store(store, 1)
        return GapTest.of(store, vocabulary, round(share * len(store.ids))), vocabulary


def test_topic_vectors_win_against_words_of_other_topics() -> None:
    gaps, vocabulary = held_out(topic_sentences(3000))
    of_topics = np.eye(TOPICS, dtype=np.float32)[[int(word[1]) for word in vocabulary.words]]
    assert gaps.score(of_topics) == pytest.approx(1 - 1 / TOPICS / 2, abs=0.01)  # equal scores count as half
    assert gaps.score(5 * of_topics) == gaps.score(of_topics)
    assert gaps.score(np.zeros_like(of_topics)) == 0.5
    random = np.random.default_rng(2).normal(size=(len(vocabulary), 50)).astype(np.float32)
    assert gaps.score(random) == pytest.approx(0.5, abs=0.06)


def test_short_texts_are_not_subsampled() -> None:
    gaps, _ = held_out([["one", "two"], ["three", "four"], ["five", "six"]], 0)
    assert sorted(gaps.words.tolist()) == list(range(6))


def test_text_without_context_words_is_refused() -> None:
    with pytest.raises(w2v.W2VError, match=r"too short to evaluate vectors: give more text"):
        held_out([["one"], ["two"], ["three"], ["four"]])


def test_the_last_twentieth_of_a_training_text_is_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with read_text(Corpus(topic_sentences(250))) as store:  # 2000 ids: seven words and the end of each sentence
        vocabulary = w2v.Vocabulary.from_store(store, 1)
        share, gaps = GapTest.at_end(store, vocabulary)
        assert share == 1900 / 2000
        assert gaps.contexts.tolist() == GapTest.of(store, vocabulary, 1900).contexts.tolist()
        monkeypatch.setattr(held_out_module, "MAX_IDS", 64)
        share, gaps = GapTest.at_end(store, vocabulary)
        assert share == 1936 / 2000
        assert 0 < len(gaps.words) <= 56


def test_gaps_are_limited_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out_module, "MAX_GAPS", 30)
    few, vocabulary = held_out([[f"w{number}" for number in range(60)]], 0)  # one sentence
    assert len(few.words) == len(few.contexts) == len(few.others) == 30
    vectors = np.random.default_rng(2).normal(size=(len(vocabulary), 5)).astype(np.float32)
    expected = [
        sum((word_cosine > other) + (word_cosine == other) / 2 for other in others)
        for word_cosine, *others in slow_cosines(few, vectors)
    ]
    for batch in (1, 7, 30):
        monkeypatch.setattr(held_out_module, "GAPS_AT_ONCE", batch)
        assert few.count_wins(vectors).tolist() == expected
    assert few.score(vectors) == pytest.approx(np.mean(expected) / few.others.shape[1])


def slow_cosines(gaps: GapTest, vectors: np.ndarray) -> list[list[float]]:
    """Return for each gap the products of its mean context with its word and with the random words."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        (unit[[word, *others]] @ unit[context[context >= 0]].mean(axis=0)).tolist()
        for context, word, others in zip(gaps.contexts, gaps.words, gaps.others, strict=True)
    ]


def test_contexts_reach_five_words_to_each_side_in_the_same_sentence() -> None:
    sentences = [range(20), range(20, 23), range(23, 30)]
    gaps, vocabulary = held_out([[f"w{number}" for number in sentence] for sentence in sentences], 0)
    number = np.array([int(word[1:]) for word in vocabulary.words])
    assert gaps.contexts.shape == (30, 2 * WINDOW)
    for context, word in zip(gaps.contexts, number[gaps.words].tolist(), strict=True):
        sentence = next(each for each in sentences if word in each)
        found = sorted(number[context[context >= 0]].tolist())
        assert found == [near for near in sentence if 0 < abs(near - word) <= 5]
