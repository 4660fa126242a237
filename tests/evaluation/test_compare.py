"""Comparison of two models with known differences."""

from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v.evaluation import compare as comparing
from w2v.evaluation.compare import compare
from w2v.gensim.models.keyedvectors import KeyedVectors as GensimVectors

SHOW_IS_DEPRECATED = pytest.mark.filterwarnings("ignore:the argument show:DeprecationWarning")


def random_vectors(words: int, seed: int = 1) -> w2v.KeyedVectors:
    vectors = np.random.default_rng(seed).normal(size=(words, 10))
    return w2v.KeyedVectors([f"w{row}" for row in range(words)], vectors)


@SHOW_IS_DEPRECATED
def test_rotated_model_has_the_same_neighbours() -> None:
    one = random_vectors(300)
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(10, 10)))[0]
    order = np.random.default_rng(3).permutation(300)
    other = w2v.KeyedVectors([f"w{row}" for row in order], 3 * one.vectors[order] @ rotation)
    found = compare(one, other, top=50, show=3)
    assert (found.shared, found.only_first, found.only_second) == (300, 0, 0)
    assert [(band.first, band.last, band.overlap) for band in found.bands] == [(1, 100, 1), (101, 300, 1)]
    assert [band.words for band in found.bands] == [100, 200]
    assert max(moved.distance for moved in found.moved) < 1e-5
    assert all(moved.first == moved.second for moved in found.moved)


def test_gensim_vectors_can_be_compared() -> None:
    one = random_vectors(30)
    other = GensimVectors(10)
    other.add_vectors(one.index_to_key, one.vectors)
    assert compare(other, one) == compare(one, one)


@SHOW_IS_DEPRECATED
def test_moved_word_is_listed_first() -> None:
    one = random_vectors(2000)
    vectors = one.vectors.copy()
    vectors[7] = vectors[1500]
    found = compare(one, w2v.KeyedVectors(one.index_to_key, vectors), top=100, show=2)
    assert found.moved[0].word == "w7"
    assert found.moved[0].first == [word for word, _ in one.most_similar("w7")]
    assert found.moved[0].second[0] == "w1500"
    assert found.moved[0].distance > 10 * found.moved[1].distance
    assert [(band.first, band.last, band.words) for band in found.bands] == [
        (1, 100, 100), (101, 1000, 474), (1001, 2000, 526)
    ]  # fmt: skip


@SHOW_IS_DEPRECATED
def test_overlaps_and_distances_match_the_definition() -> None:
    one, other = random_vectors(40), random_vectors(50, seed=2)
    found = compare(one, other, show=40)
    assert (found.shared, found.only_first, found.only_second) == (40, 0, 10)
    shared = w2v.KeyedVectors(other.index_to_key[:40], other.vectors[:40])
    overlaps = []
    for moved in found.moved:
        first, second = ([word for word, _ in each.most_similar(moved.word)] for each in (one, shared))
        assert (moved.first, moved.second) == (first, second)
        overlaps.append(len({*first} & {*second}) / 10)
        union = sorted({*first, *second})
        sides = [np.array([each.similarity(moved.word, word) for word in union]) for each in (one, shared)]
        cosine = sides[0] @ sides[1] / np.linalg.norm(sides[0]) / np.linalg.norm(sides[1])
        assert moved.distance == pytest.approx(1 - cosine, abs=1e-5)
    assert found.bands == [comparing.Band(1, 40, 40, pytest.approx(np.mean(overlaps)))]
    assert [moved.distance for moved in found.moved] == sorted((each.distance for each in found.moved), reverse=True)


def test_models_need_two_shared_words() -> None:
    one = w2v.KeyedVectors(["a", "b"], np.eye(2))
    with pytest.raises(w2v.W2VError, match="the models share 1 word:"):
        compare(one, w2v.KeyedVectors(["b", "c"], np.eye(2)))
    assert compare(one, one).bands[0].overlap == 1


def test_command_shows_overlaps_moved_words_and_scores(model: Path, sample: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.bin"
    run("train", sample, "-o", other, "--vector-size", 20, "--epochs", 1, "--workers", 1, "--max-vocab", 500)
    result = run_json("compare", model, other, "--show", 2)
    assert result["models"] == [str(model), str(other)]
    assert result["shared"] == 500
    assert len(result["moved"]) == 2
    assert result["results"] == run_json("evaluate", model, other)["results"]
    shown = run("compare", model, other, "--show", 2).stdout
    for expected in ("500 words in both models", "1-100", result["moved"][0]["word"], "bundled pairs"):
        assert expected in shown
    assert "words whose neighbours differ most, with the distance of their neighbours: from 0 (the same) to 2" in shown
    first = result["moved"][0]
    assert f"\n{first['word']} (distance {first['distance']:.3f})\n" in shown
    assert run_json("compare", model, other, "--words", 2) == result  # the old name of --show
    assert "top 0: it must be" in run("compare", model, other, "--top", 0, code=2).stderr


def test_the_list_of_words_is_deprecated() -> None:
    vectors = random_vectors(30)
    assert compare(vectors, vectors).moved == []
    with pytest.warns(DeprecationWarning, match=r"use w2v\.change") as caught:
        assert len(compare(vectors, vectors, show=2).moved) == 2
    assert caught[0].filename == __file__
