"""Answers to the page: completion of typed text to words, nearest words, and the map."""

import numpy as np
import pytest

import w2v
from tests.helpers import explorer_of
from w2v._explore.explorer import Completer, fold
from w2v._vectors.cosines import unit

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
    ("words", "typed", "topn", "rows"),
    [
        ("banana an and Ana man ANTS", "an", 9, [1, 2, 3, 5, 0, 4]), ("banana an and Ana man ANTS", "an", 2, [1, 2]),
        ("banana Ana man", "ana", 9, [1, 0]), ("banana Ana man", "z", 9, []),
        ("a b c", "", 2, [0, 1]), ("a  c", "", 9, [1, 0, 2]),
    ],
)  # fmt: skip
def test_completion_sorts_whole_words_then_prefixes_then_substrings(
    words: str, typed: str, topn: int, rows: list[int]
) -> None:
    assert Completer(words.split(" ")).rows(typed, topn) == rows
    assert Completer([]).rows(typed, topn) == []


def test_each_word_completes_to_itself_once() -> None:
    completer = Completer(WORDS)
    for row, word in enumerate(WORDS):
        found = completer.rows(word, len(WORDS))
        assert row in found
        assert len(found) == len(set(found))


def test_fold_gives_plain_capital_letters() -> None:
    assert fold("naïve Café ﬁ") == "NAIVE CAFE FI"


@pytest.fixture
def vectors() -> w2v.KeyedVectors:
    random = np.random.default_rng(1)
    return w2v.KeyedVectors([f"w{row}" for row in range(40)], random.normal(size=(40, 4)), range(140, 100, -1))


class ExactIndex:
    """An index that finds the true neighbours."""

    def __init__(self, vectors: w2v.KeyedVectors) -> None:
        self.vectors, self.searches = vectors, 0

    def search(self, query: np.ndarray, topn: int) -> tuple[np.ndarray, np.ndarray]:
        self.searches += 1
        cosines = unit(self.vectors.vectors) @ unit(query)
        rows = np.argsort(-cosines)[:topn]
        return rows, cosines[rows]


@pytest.mark.parametrize(("plus", "minus"), [(["w1"], []), (["w1", "w5"], ["w9"]), (["w0"], ["w39", "w3"])])
def test_an_index_answers_as_the_exact_search(vectors: w2v.KeyedVectors, plus: list[str], minus: list[str]) -> None:
    index = ExactIndex(vectors)
    exact, approximate = explorer_of(vectors, 10), explorer_of(vectors, 10, index)  # type: ignore[arg-type]
    for method in ("add", "mul"):
        expected, found = (each.nearest(plus, minus, method, 5) for each in (exact, approximate))  # type: ignore[arg-type]
        assert [answer["word"] for answer in found] == [answer["word"] for answer in expected]
        assert [answer["score"] for answer in found] == pytest.approx([answer["score"] for answer in expected])
        assert [answer["count"] for answer in found] == [140 - int(answer["word"][1:]) for answer in found]
        assert len(found) == 5
    assert index.searches == 1  # only 3CosAdd is a search for the nearest vectors


def test_completion_prefers_the_exact_spelling() -> None:
    vectors = w2v.KeyedVectors(["koln", "Köln", "kölner"], np.eye(3))
    explorer = explorer_of(vectors, 3)
    for typed, words in (("Köln", ["Köln", "koln", "kölner"]), ("KOLN", ["koln", "Köln", "kölner"])):
        assert [answer["word"] for answer in explorer.complete(typed, 3)] == words
        assert [answer["word"] for answer in explorer.complete(typed, 1)] == words[:1]
    assert explorer.complete("koln", 1)[0] == {"word": "koln", "count": None, "score": None}
    assert explorer.vector("koln") == {"row": 0, "count": None, "values": [1, 0, 0]}


def test_the_map_has_the_first_words(vectors: w2v.KeyedVectors) -> None:
    explorer = explorer_of(vectors, 7)
    assert explorer.map()["words"] == vectors.index_to_key[:7]
    assert explorer.map()["counts"] == list(range(140, 133, -1))
    assert explorer.complete("w39", 1)[0] == {"word": "w39", "count": 101, "score": None}  # also other words


def test_keys_that_are_numbers_are_found_and_shown_as_text() -> None:
    vectors = w2v.KeyedVectors([30, 7, 12], np.eye(3) + 0.1, [9, 8, 7])  # type: ignore[arg-type]
    explorer = explorer_of(vectors, 3)
    assert [answer["word"] for answer in explorer.complete("7", 2)] == ["7"]
    assert {answer["word"] for answer in explorer.nearest(["7"], [], "add", 2)} == {"30", "12"}
    assert explorer.vector("12")["row"] == 2
