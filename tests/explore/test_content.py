"""The data of a page: 8-bit vectors, map coordinates, and examples."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import w2v
from tests.helpers import SMALL, explorer_of
from w2v._explore import content
from w2v._explore.content import MAX_COORDINATE, embedded_model, encode_array, examples, word_maps
from w2v._formats.storage import quantise


def map_data(vectors: w2v.KeyedVectors, restrict_vocab: int) -> dict[str, Any]:
    return word_maps([vectors], restrict_vocab, "pca")[0]


def embedded(vectors: w2v.KeyedVectors, restrict_vocab: int) -> dict[str, Any]:
    return embedded_model("name", vectors, restrict_vocab, map_data(vectors, restrict_vocab))


def decode_array(text: str, dtype: str) -> Any:
    return np.frombuffer(base64.b64decode(text), dtype)


@given(arrays.arrays(np.float32, (3, 4), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_quantisation_error_is_at_most_half_a_step(vectors: Any) -> None:
    integers, scales = quantise(vectors)
    largest = np.abs(vectors).max(axis=1, keepdims=True).astype(np.float64)
    error = np.abs(integers * scales[:, None].astype(np.float64) - vectors)
    # Half a step is largest / 254. The rest is for the rounding of the scale, which is coarse for tiny values.
    assert (error <= largest / 253 + 1e-43).all()


def test_quantisation_keeps_the_signs_of_the_smallest_values() -> None:
    # The first scale is rounded to 0, the second is rounded down.
    values = np.array([[1.4e-45, 0, -1.4e-45], [2.6e-43, -1.3e-43, 0]], np.float32)
    assert quantise(values)[0].tolist() == [[127, 0, -127], [127, -64, 0]]


def test_map_fills_the_coordinate_range_with_equal_scales() -> None:
    corners = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]], np.float32)
    found = map_data(w2v.KeyedVectors(list("abcd"), 5 * corners, [4, 3, 2, 1]), 10)
    points = decode_array(found["map"], "<i2").reshape(4, 2)
    assert np.abs(points).max() == MAX_COORDINATE
    assert (points[0] + points[2]).tolist() == [0, 0]
    distances = np.linalg.norm(points.astype(float), axis=1)
    assert distances == pytest.approx(distances[0], rel=1e-3)
    assert found["words"] == list("abcd")
    assert found["counts"] == [4, 3, 2, 1]


def test_maps_of_slices_have_the_same_axes_and_clusters() -> None:
    random = np.random.default_rng(1)
    rows = random.normal(size=(30, 5))
    words = [f"w{row}" for row in range(30)]
    moved = rows.copy()
    moved[0] = -rows[0]
    slices = [w2v.KeyedVectors(words, rows), w2v.KeyedVectors(words[1:] + words[:1], 3 * np.roll(moved, -1, axis=0))]
    first, second = word_maps(slices, 30, "pca", slices=True)
    points = [decode_array(each["map"], "<i2").reshape(30, 2) for each in (first, second)]
    assert np.abs(points[0][1:] - points[1][:-1]).max() <= 1
    assert np.linalg.norm(points[0][0] - points[1][-1].astype(float)) > 1000
    assert first["names"] == second["names"]
    clusters = [decode_array(each["clusters"], "u1").tolist() for each in (first, second)]
    assert clusters[0][1:] == clusters[1][:-1]
    apart = word_maps(slices, 30, "pca")
    assert apart[0] == map_data(slices[0], 30)
    assert apart[1]["map"] != second["map"]
    with pytest.raises(w2v.W2VError, match="no words"):
        word_maps([slices[0], w2v.KeyedVectors([], np.zeros((0, 5)))], 30, "pca", slices=True)


def test_clusters_come_from_the_words_shown_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "INITIAL_WORDS", 4)
    found = map_data(w2v.KeyedVectors(list("abcdefgh"), np.vstack([np.eye(4), np.eye(4)])), 10)
    assert (found["skipped"], found["shown"]) == (4, 4)
    assert found["names"] == list("efgh")
    assert decode_array(found["clusters"], "u1").tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize(
    "vectors", [[[1.0, 2.0]], [[1.0], [2.0]], [[0.0, 0.0]] * 3, [[1.0, 1.0]] * 3, [[1e38], [1e-45]]]
)
def test_small_models_have_finite_coordinates(vectors: list[list[float]]) -> None:
    found = embedded(w2v.KeyedVectors([str(row) for row in range(len(vectors))], vectors), 10)
    assert len(decode_array(found["map"], "<i2")) == 2 * len(vectors)
    assert np.isfinite(decode_array(found["scales"], "<f4")).all()


@pytest.mark.parametrize(
    ("vectors", "restrict_vocab", "message"),
    [
        (np.zeros((0, 3)), 10, "no words"),
        ([[np.nan]], 10, "not numbers"),
        ([[1.0]], 0, "restrict_vocab 0: it must be a whole number, 1 or more"),
    ],
)
def test_models_without_a_map_are_refused(vectors: Any, restrict_vocab: int, message: str) -> None:
    with pytest.raises(w2v.SettingsError if restrict_vocab == 0 else w2v.W2VError, match=message):
        map_data(w2v.KeyedVectors(["a"][: len(vectors)], vectors), restrict_vocab)


def test_arrays_are_encoded_little_endian() -> None:
    assert base64.b64decode(encode_array(np.array([1, 256], ">i2"))) == b"\1\0\0\1"


def test_only_a_server_composes_vectors_of_unknown_words(sample: Path) -> None:
    vectors = w2v.train(sample, **SMALL | {"subwords": "3-4", "buckets": 1000}).wv
    explorer = explorer_of(vectors, 10)
    found = explorer.vector("kingship")
    assert (found["row"], found["count"]) == (None, None)
    np.testing.assert_array_equal(np.float32(found["values"]), vectors["kingship"])
    near = [answer["word"] for answer in explorer.nearest(["kingship"], [], "add", 3)]
    assert near == [word for word, _ in vectors.most_similar("kingship", topn=3)]
    assert embedded(vectors, 10)["has_ngrams"] is True
    plain = w2v.KeyedVectors(list(vectors), vectors.vectors)
    assert embedded(plain, 10)["has_ngrams"] is False


def test_model_answers_the_example_analogy(model: Path) -> None:
    vectors = w2v.load(model)
    found = examples([vectors], len(vectors))
    a, b, c = found["analogy"]
    assert len({a, b, c, found["word"]}) == 4
    assert vectors.most_similar([a, c], [b])[0][0] == found["word"]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_examples_of_small_models_use_their_own_words(size: int) -> None:
    words = [f"w{row}" for row in range(size)]
    for vectors in (np.ones((size, 2)), np.zeros((size, 2)), np.random.default_rng(1).normal(size=(size, 2))):
        found = examples([w2v.KeyedVectors(words, vectors)], 5)
        assert {found["word"], *found["analogy"]} <= set(words[:5])
        assert len(found["analogy"]) in (0, 3)


def test_examples_use_words_that_all_models_have() -> None:
    random = np.random.default_rng(1)
    words = [f"w{row}" for row in range(60)]
    one = w2v.KeyedVectors(words, random.normal(size=(60, 4)))
    other = w2v.KeyedVectors(words[5:], random.normal(size=(55, 4)))
    found = examples([one, other], 10)
    assert {found["word"], *found["analogy"]} <= set(words[5:10])
    assert examples([one, w2v.KeyedVectors(["x"], [[1.0]])], 60) == {"word": None, "analogy": []}


def test_the_map_is_centred() -> None:
    rows = np.array([[1, 0, 0], [0.9, 0.1, 0], [0.8, 0.2, 0], [0, 0, 1]], np.float32)  # the last is far from the others
    coordinates = decode_array(map_data(w2v.KeyedVectors(list("abcd"), rows), 10)["map"], "<i2").reshape(4, 2)
    assert np.abs(coordinates.min(axis=0) + coordinates.max(axis=0)).max() <= 1


def examples_of(pairs: list[tuple[str, str, float]], size: int = 12) -> dict[str, Any]:
    """Return the examples for pairs of words and the angles, in degrees, of the offsets between them.

    All pairs are orthogonal to each other, except that their offsets are in one plane.
    """
    words, vectors = [], []
    for number, (first, second, angle) in enumerate(pairs):
        base = np.zeros(size)
        base[2 + number] = 3
        offset = np.zeros(size)
        offset[:2] = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
        words += [first, second]
        vectors += [base - offset / 2, base + offset / 2]
    return examples([w2v.KeyedVectors(words, vectors)], len(words))


def test_example_analogy_uses_the_pairs_with_the_most_parallel_offsets() -> None:
    found = examples_of([("a0", "b0", 0), ("a1", "b1", 70), ("a2", "b2", 85), ("a3", "b3", 160)])
    assert {found["word"], *found["analogy"]} == {"a1", "b1", "a2", "b2"}
    a, b, c = found["analogy"]
    assert (a[1], a[0]) == (b[1], found["word"][0])
    assert (c[1], c[0]) == (found["word"][1], b[0])


def test_page_data_names_the_model_and_the_search() -> None:
    vectors = w2v.KeyedVectors(list("abcd"), np.eye(4, 3), [9, 5, 2, 1])
    for size, searched in ((3, "the first 3 words"), (4, "all words"), (5, "all words")):
        found = embedded(vectors, size)
        assert (found["name"], found["size"], found["dimensions"]) == ("name", 4, 3)
        assert found["search"] == f"search in {searched}, with vectors rounded to 8 bits"
        assert (found["words"], found["counts"]) == (list("abcd")[:size], [9, 5, 2, 1][:size])
        integers, scales = decode_array(found["vectors"], "i1"), decode_array(found["scales"], "<f4")
        np.testing.assert_allclose(integers.reshape(-1, 3) * scales[:, None], vectors.vectors[:size], atol=0.01)
    assert embedded(w2v.KeyedVectors(list("ab"), np.eye(2)), 2)["counts"] is None


def test_an_example_analogy_has_four_different_words() -> None:
    """The nearest word of one word can be the other word of its pair, or be the nearest of both."""
    found = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        size = 4 + seed % 4
        line = np.cumsum(random.uniform(0.5, 1, size))[:, None] * [0.1, 0] + [0, 1]  # words in a row
        vectors = line + 0.01 * random.normal(size=(size, 2))
        one = examples([w2v.KeyedVectors([f"w{row}" for row in range(size)], vectors)], size)
        if one["analogy"]:
            found.append(one)
            assert len({one["word"], *one["analogy"]}) == 4
    assert len(found) > 10
