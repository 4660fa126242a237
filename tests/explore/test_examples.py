"""The examples with which a page opens: of the model's own words, whatever they are."""

from pathlib import Path

import numpy as np
import pytest

import w2v
from w2v.explore.examples import examples


def test_the_analogy_is_answered_as_it_says(model: Path) -> None:
    vectors = w2v.load(model)
    found = examples([vectors], len(vectors))
    a, b, c = found["analogy"]
    assert len({a, b, c, found["word"]}) == 4
    assert vectors.most_similar([a, c], [b])[0][0] == found["word"]


def test_parallel_offsets_are_found_in_any_language() -> None:
    random = np.random.default_rng(1)
    place, capital = random.normal(size=(2, 30))
    countries = random.normal(size=(3, 30))
    words = ["나라1", "나라2", "나라3", "서울1", "서울2", "서울3", "빵", "물"]
    vectors = np.vstack([3 * countries + place, 3 * countries + capital, random.normal(size=(2, 30))])
    found = examples([w2v.KeyedVectors(words, vectors)], 10)
    answer = {"나라": "서울", "서울": "나라"}
    a, b, c = found["analogy"]
    assert (a[2], a[:2]) == (b[2], answer[b[:2]])
    assert (found["word"][2], found["word"][:2]) == (c[2], a[:2])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_small_and_equal_models_have_no_other_words(size: int) -> None:
    words = [f"w{row}" for row in range(size)]
    for vectors in (np.ones((size, 2)), np.zeros((size, 2)), np.random.default_rng(1).normal(size=(size, 2))):
        found = examples([w2v.KeyedVectors(words, vectors)], 5)
        assert {found["word"], *found["analogy"]} <= set(words[:5])
        assert len(found["analogy"]) in (0, 3)


def test_every_model_has_the_words() -> None:
    random = np.random.default_rng(1)
    words = [f"w{row}" for row in range(60)]
    one = w2v.KeyedVectors(words, random.normal(size=(60, 4)))
    other = w2v.KeyedVectors(words[5:], random.normal(size=(55, 4)))
    found = examples([one, other], 10)
    assert {found["word"], *found["analogy"]} <= set(words[5:10])
    assert examples([one, w2v.KeyedVectors(["x"], [[1.0]])], 60) == {"word": None, "analogy": []}
