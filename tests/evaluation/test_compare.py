"""Comparison of two models with known differences."""

from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v._evaluation import compare as comparing
from w2v._evaluation.compare import compare
from w2v.gensim.models.keyedvectors import KeyedVectors as GensimVectors


def random_vectors(words: int, seed: int = 1) -> w2v.KeyedVectors:
    vectors = np.random.default_rng(seed).normal(size=(words, 10))
    return w2v.KeyedVectors([f"w{row}" for row in range(words)], vectors)


def test_rotated_model_has_the_same_neighbours() -> None:
    one = random_vectors(300)
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(10, 10)))[0]
    order = np.random.default_rng(3).permutation(300)
    other = w2v.KeyedVectors([f"w{row}" for row in order], 3 * one.vectors[order] @ rotation)
    found = compare(one, other, restrict_vocab=50)
    assert (found.shared, found.only_first, found.only_second) == (300, 0, 0)
    assert [(band.first, band.last, band.overlap) for band in found.bands] == [(1, 100, 1), (101, 300, 1)]
    assert [band.words for band in found.bands] == [100, 200]


def test_gensim_vectors_can_be_compared() -> None:
    one = random_vectors(30)
    other = GensimVectors(10)
    other.add_vectors(one.index_to_key, one.vectors)
    assert compare(other, one) == compare(one, one)


def test_the_most_frequent_words_and_a_sample_of_the_others_are_compared() -> None:
    one = random_vectors(2000)
    bands = [(band.first, band.last, band.words) for band in compare(one, one, restrict_vocab=100).bands]
    assert bands == [(1, 100, 100), (101, 1000, 474), (1001, 2000, 526)]


def test_overlaps_match_the_definition() -> None:
    one, other = random_vectors(40), random_vectors(50, seed=2)
    found = compare(one, other)
    assert (found.shared, found.only_first, found.only_second) == (40, 0, 10)
    shared = w2v.KeyedVectors(other.index_to_key[:40], other.vectors[:40])
    overlaps = []
    for word in shared.index_to_key:
        first, second = ({near for near, _ in each.most_similar(word)} for each in (one, shared))
        overlaps.append(len(first & second) / 10)
    assert found.bands == [comparing.Band(1, 40, 40, pytest.approx(np.mean(overlaps)))]


def test_models_need_two_shared_words() -> None:
    one = w2v.KeyedVectors(["a", "b"], np.eye(2))
    with pytest.raises(w2v.W2VError, match="the models share 1 word:"):
        compare(one, w2v.KeyedVectors(["b", "c"], np.eye(2)))
    assert compare(one, one).bands[0].overlap == 1


def test_command_shows_overlaps_and_scores(model: Path, sample: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.bin"
    run("train", sample, "-o", other, "--vector-size", 20, "--epochs", 1, "--workers", 1, "--max-vocab", 500)
    result = run_json("compare", model, other)
    assert result["models"] == [str(model), str(other)]
    assert result["shared"] == 500
    assert result["results"] == run_json("evaluate", model, other)["results"]
    shown = run("compare", model, other).stdout
    for expected in ("500 words in both models", "1-100", "bundled pairs"):
        assert expected in shown
    assert "restrict_vocab 0: it must be" in run("compare", model, other, "--restrict-vocab", 0, code=2).stderr
