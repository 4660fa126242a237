"""Completion of typed text to words."""

import pytest

from w2v.explore.explorer import Completer, fold

WORDS = ["the", "Köln", "Straße", "kol", "koln", "İzmir", "ΟΔΟΣ", "οδός", "a\nb", "", "ba", "한국", "über", "X"]


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("koln", "Köln"), ("STRASSE", "Straße"), ("izmir", "İzmir"), ("οδοσ", "ΟΔΟΣ"), ("한", "한국"),
        ("ｕｂｅｒ", "über"), ("A B", "a\nb"),
    ],
)  # fmt: skip
def test_completion_ignores_case_and_accents(typed: str, word: str) -> None:
    assert word in [WORDS[row] for row in Completer(WORDS).rows(typed, 3)]


@pytest.mark.parametrize(
    ("words", "typed", "n", "rows"),
    [
        ("banana an and Ana man ANTS", "an", 9, [1, 2, 3, 5, 0, 4]), ("banana an and Ana man ANTS", "an", 2, [1, 2]),
        ("banana Ana man", "ana", 9, [1, 0]), ("banana Ana man", "z", 9, []),
        ("a b c", "", 2, [0, 1]), ("a  c", "", 9, [1, 0, 2]),
    ],
)  # fmt: skip
def test_completion_sorts_whole_words_then_prefixes_then_substrings(
    words: str, typed: str, n: int, rows: list[int]
) -> None:
    assert Completer(words.split(" ")).rows(typed, n) == rows
    assert Completer([]).rows(typed, n) == []


def test_each_word_completes_to_itself_once() -> None:
    completer = Completer(WORDS)
    for row, word in enumerate(WORDS):
        found = completer.rows(word, len(WORDS))
        assert row in found
        assert len(found) == len(set(found))


def test_fold_gives_plain_capital_letters() -> None:
    assert fold("naïve Café ﬁ") == "NAIVE CAFE FI"
