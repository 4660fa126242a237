"""Errors about unknown words, and the known words that they suggest."""

import difflib
import pickle
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import w2v
from w2v._formats.header import ModelHeader
from w2v._plotting.word_map import word_map
from w2v._text.subwords import Subwords
from w2v._vectors import unknown_words
from w2v._vectors.unknown_words import UnknownWordError, suggestions
from w2v.gensim.models.keyedvectors import KeyedVectors as GensimVectors

WORDS = ["the", "france", "frances", "Paris", "paris", "king", "kings", "woman", "man", "women", "-", "éclair", "3"]


@pytest.fixture
def vectors() -> w2v.KeyedVectors:
    return w2v.KeyedVectors(WORDS, np.eye(len(WORDS), dtype=np.float32))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("frnace", ["france", "frances"]),
        ("Frnace", ["france", "frances"]),
        ("France", ["france", "frances"]),
        ("PARIS", ["paris", "Paris"]),  # the lower-case form first
        ("aking", ["king"]),  # a wrong first letter
        ("womann", ["woman"]),
        ("éclaire", ["éclair"]),
        ("zzz", []),
        ("ж", []),
    ],
)
def test_similar_words_are_suggested(vectors: w2v.KeyedVectors, word: str, expected: list[str]) -> None:
    assert suggestions(word, vectors.key_to_index) == expected
    gensims = GensimVectors(vectors.vector_size)
    gensims.add_vectors([*vectors.index_to_key, 5], np.vstack([vectors.vectors, vectors.vectors[:1]]))
    assert suggestions(word, gensims.key_to_index) == expected


@pytest.mark.parametrize(
    "ask",
    [
        lambda vectors, word: vectors[word],
        lambda vectors, word: vectors[["the", word]],
        lambda vectors, word: vectors.most_similar(word),
        lambda vectors, word: vectors.most_similar("the", word),
        lambda vectors, word: vectors.most_similar_cosmul("the", word),
        lambda vectors, word: vectors.most_similar_batch([word]),
        lambda vectors, word: vectors.similarity("the", word),
        lambda vectors, word: vectors.get_mean_vector([word]),
        lambda vectors, word: vectors.doesnt_match([word]),
        lambda vectors, word: word_map(vectors, [word]),
    ],
)
def test_every_method_suggests_similar_words(vectors: w2v.KeyedVectors, ask: Callable[..., Any]) -> None:
    for word, expected in (
        ("frnace", "'frnace' (did you mean france or frances?)"),
        ("zzz", "'zzz'"),
        (3, "3 (words are strings: did you mean '3'?)"),
        (np.int64(3), "3 (words are strings: did you mean '3'?)"),
        (0, "0 (words are strings; row 0 is .vectors[0])"),
        (12, "12 (words are strings; row 12 is .vectors[12])"),
        (13, "13"),  # there is no such row
        (-1, "-1"),
    ):
        with pytest.raises(UnknownWordError) as error:
            ask(vectors, word)
        assert str(error.value) == f"not in the vocabulary: {expected}"
        assert error.value.args == (word,)


@pytest.mark.parametrize("ngrams", [False, True])
@pytest.mark.parametrize("key", [["the"], None, 3.5, {"the": 1}], ids=str)
def test_keys_that_are_not_words_are_unknown(vectors: w2v.KeyedVectors, key: Any, ngrams: bool) -> None:
    if ngrams:
        tensors = {"ngrams": np.ones((4, len(WORDS)), np.float32), "ngram_buckets": np.arange(4, dtype=np.int32)}
        header = ModelHeader(subwords=Subwords(3, 4, 4))
        vectors = w2v.KeyedVectors(WORDS, vectors.vectors, tensors=tensors, header=header)
    for call in (
        lambda: vectors.get_vector(key),
        lambda: vectors[["the", key]],
        lambda: vectors.similarity(key, "the"),
        lambda: vectors.most_similar_batch([key]),
    ):
        with pytest.raises(UnknownWordError) as error:
            call()
        assert str(error.value) == f"not in the vocabulary: {key!r}"
    assert key not in vectors


def test_an_int_is_never_a_row(vectors: w2v.KeyedVectors) -> None:
    assert 3 not in vectors
    assert np.int64(3) not in vectors
    assert "3" in vectors
    for ask in (vectors.get_mean_vector, vectors.doesnt_match):
        ask(["the", "unheard"])  # left out
        with pytest.raises(UnknownWordError, match=r"^not in the vocabulary: 3 "):
            ask(["the", 3])


def test_long_lists_are_cut_and_suggestions_are_lazy(
    vectors: w2v.KeyedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [f"unheard{number}" for number in range(1000)]
    with monkeypatch.context() as patch:
        patch.setattr(difflib, "get_close_matches", None)  # not called before the message is read
        with pytest.raises(UnknownWordError) as error:
            vectors[words]
    assert error.value.args == tuple(words)
    for count, end in ((10, ", 'w9'"), (11, ", 'w9' and 1 more"), (1011, ", 'w9' and 1,001 more")):
        assert str(UnknownWordError([f"w{number}" for number in range(count)], {})).endswith(end)


def test_error_is_pickled_without_the_vocabulary(vectors: w2v.KeyedVectors) -> None:
    copy = pickle.loads(pickle.dumps(UnknownWordError(["frnace"], vectors.key_to_index)))
    assert copy.args == ("frnace",)
    assert str(copy) == "not in the vocabulary: 'frnace'"


def test_large_vocabularies_are_compared_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the most frequent candidates are compared, because difflib takes about 10 microseconds for each."""
    words = [f"{first}word{number:05}" for number in range(25_000) for first in "ab"]
    compared: list[str] = []
    matches = difflib.get_close_matches

    def listen(word: str, possibilities: Iterable[str], *arguments: Any) -> list[str]:
        compared.extend(possibilities)
        return matches(word, compared, *arguments)

    monkeypatch.setattr(difflib, "get_close_matches", listen)
    assert suggestions("aword0000l", {word: row for row, word in enumerate(words)})
    assert len(compared) == unknown_words.CANDIDATES
    assert {word[0] for word in compared} == {"a"}


def test_each_unknown_word_gets_at_most_three_suggestions() -> None:
    names = ["wording", "wordings", "wordsing", "wordinq", "wordiny"]
    vectors = w2v.KeyedVectors(names, np.eye(5))
    with pytest.raises(UnknownWordError) as error:
        vectors["wordin"]
    assert sum(str(error.value).count(f"{name}{end}") for name in names for end in (",", " ", "?")) == 3


def test_a_word_of_60_characters_is_compared_and_a_longer_one_is_cut_and_not_compared() -> None:
    for length, count in ((60, 1), (61, 0)):
        assert len(suggestions("x" * length, {"x" * 60: 0, "other": 1})) == count
    assert str(UnknownWordError(["z" * 100], {"z" * 99: 0})) == f"not in the vocabulary: '{'z' * 60}'"
