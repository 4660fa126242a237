"""Queries as people type them."""

from typing import Any

import numpy as np
import pytest

import w2v
from w2v._formats.header import ModelHeader
from w2v._text.normalise import TextOptions
from w2v._vectors.query import parse

WORDS = ["the", "france", "frances", "Paris", "paris", "king", "kings", "woman", "man", "women", "-", "éclair"]


@pytest.fixture
def vectors() -> w2v.KeyedVectors:
    return w2v.KeyedVectors(WORDS, np.eye(len(WORDS), dtype=np.float32))


def test_operators_are_told_from_words(vectors: w2v.KeyedVectors) -> None:
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
    signs = parse(["king", "-", "-", "+", "+"], vectors)
    assert (signs.positive, signs.negative) == (["king", "+"], ["-"])
    with pytest.raises(w2v.SettingsError, match="no word is given"):
        parse([" "], vectors)
    for sign in "+-":
        with pytest.raises(w2v.SettingsError, match=rf"^a word is missing after the last \{sign}$"):
            parse([f"king - man {sign}"], vectors)


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
def test_signs_within_words_are_kept(options: dict[str, Any], word: str, text: str, positive: list[str]) -> None:
    vectors = w2v.KeyedVectors([word, "man"], np.eye(2), header=ModelHeader(text=TextOptions(**options)))
    assert parse([text], vectors).positive == positive


def test_the_longest_phrase_of_a_query_is_one_word() -> None:
    words = ["new_york", "new_york_times_square", "new", "york", "times", "square"]
    header = ModelHeader(metrics={"phrases": {"delimiter": "_"}})
    vectors = w2v.KeyedVectors(words, np.eye(len(words)), header=header)
    found = parse(["new york times square - new york times"], vectors)
    assert found.words == ["new_york_times_square", "times", "new_york"]


def test_a_single_argument_can_be_a_phrase() -> None:
    header = ModelHeader(metrics={"phrases": {"delimiter": "_"}}, text=TextOptions(tokenize="words", lower=True))
    vectors = w2v.KeyedVectors(["new_york", "new", "york"], np.eye(3), header=header)
    assert parse(["New-York"], vectors).positive == ["new_york"]
    words = [f"w{number}" for number in range(17)]
    for size, count in ((16, 1), (17, 17)):  # phrases of more words are not searched
        vectors = w2v.KeyedVectors(["_".join(words[:size]), *words], np.eye(18), header=header)
        assert len(parse([" ".join(words[:size])], vectors).words) == count
