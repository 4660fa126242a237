"""What is suggested for words that a query spells and the vocabulary lacks."""

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import w2v
from w2v.gensim.models.keyedvectors import KeyedVectors as GensimVectors
from w2v.text.normalise import TextOptions
from w2v.vectors import query
from w2v.vectors.query import parse, suggestions

WORDS = ["the", "france", "frances", "Paris", "paris", "king", "kings", "woman", "man", "women", "-", "éclair"]


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
def test_suggestions(vectors: w2v.KeyedVectors, word: str, expected: list[str]) -> None:
    assert suggestions(word, vectors) == expected
    gensims = GensimVectors(vectors.vector_size)
    gensims.add_vectors(vectors.index_to_key, vectors.vectors)
    assert suggestions(word, gensims) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zzz", "not in the vocabulary: 'zzz'"),
        ("frnace", "not in the vocabulary: 'frnace' (did you mean france or frances?)"),
        ("king - mna + PARIS", "not in the vocabulary: 'PARIS' (did you mean paris or Paris?), 'mna'"),
    ],
)
def test_unknown_words_come_with_suggestions(vectors: w2v.KeyedVectors, text: str, expected: str) -> None:
    with pytest.raises(w2v.UnknownWordError) as error:
        parse([text], vectors).answer(vectors, 5)
    assert str(error.value) == expected


def test_errors_name_the_first_unknown_words(vectors: w2v.KeyedVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "NAMED", 2)
    with pytest.raises(w2v.UnknownWordError, match=r"^not in the vocabulary: 'z1', 'z2' and 3 more$"):
        query.require(["z1", "z2", "z3", "z4", "z5"], vectors)
    monkeypatch.setattr(difflib, "get_close_matches", lambda *_: pytest.fail("a long word was compared"))
    with pytest.raises(w2v.UnknownWordError, match=r"^not in the vocabulary: 'z{60}'$"):
        query.require(["z" * 100], vectors)


def test_only_some_of_a_large_vocabulary_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The most frequent of the words that begin or end alike, for difflib takes some 10 microseconds for each."""
    words = [f"{first}word{number:05}" for number in range(25_000) for first in "ab"]
    compared: list[str] = []
    matches = difflib.get_close_matches

    def listen(word: str, possibilities: Iterable[str], *arguments: Any) -> list[str]:
        compared.extend(possibilities)
        return matches(word, compared, *arguments)

    monkeypatch.setattr(difflib, "get_close_matches", listen)
    vectors = w2v.KeyedVectors(words, np.zeros((len(words), 1), np.float32))
    assert suggestions("aword0000l", vectors)
    assert len(compared) == query.CANDIDATES
    assert {word[0] for word in compared} == {"a"}


def test_operators_and_words(vectors: w2v.KeyedVectors) -> None:
    for arguments in (
        ["king", "-", "man", "+", "woman"],
        ["king -man +woman"],
        ["king-man+woman"],
        ["-man king+woman"],
    ):
        parsed = parse(arguments, vectors)
        assert (parsed.positive, parsed.negative) == (["king", "woman"], ["man"])
    for word in ("king-man", "c++", "-", "--", "man-", "+-man"):
        assert parse([word], vectors).positive == [word]
    assert parse(["-"], vectors).positive == ["-"]
    with pytest.raises(w2v.SettingsError, match="no word is given"):
        parse([" "], vectors)


@pytest.mark.parametrize(
    ("options", "word", "text", "positive"),
    [
        ({}, "king-man+woman", "king-man+woman", ["king-man+woman"]),
        ({}, "king", "king − man", ["king"]),  # a minus sign
        ({"lower": True}, "a+b", "A+B", ["a+b"]),
        ({"tokenize": "words"}, "king", "king -man", ["king"]),
        ({"tokenize": "words"}, "king", "king-man", ["king", "man"]),  # a hyphenated word
    ],
)
def test_signs_within_words(options: dict[str, Any], word: str, text: str, positive: list[str]) -> None:
    metadata = TextOptions(**options).metadata()
    vectors = w2v.KeyedVectors([word, "man"], np.eye(2), metadata=metadata)
    assert parse([text], vectors).positive == positive
