"""Alignment of vectors by orthogonal Procrustes: planted rotations are found, and the fit is reported as defined."""

from pathlib import Path

import numpy as np
import pytest

import w2v
from w2v.formats.header import ModelHeader
from w2v.vectors.align import align


def random_vectors(words: int, size: int = 10, seed: int = 1, **more: object) -> w2v.KeyedVectors:
    vectors = np.random.default_rng(seed).normal(size=(words, size)) + 0.3
    return w2v.KeyedVectors([f"w{row}" for row in range(words)], vectors, **more)  # type: ignore[arg-type]


def rotated(vectors: w2v.KeyedVectors, seed: int = 2) -> w2v.KeyedVectors:
    """Return the vectors, rotated and three times as long, in another order."""
    random, (rows, size) = np.random.default_rng(seed), vectors.vectors.shape
    order = random.permutation(rows)
    rotation = np.linalg.qr(random.normal(size=(size, size)))[0]
    return w2v.KeyedVectors([vectors.index_to_key[row] for row in order], 3 * vectors.vectors[order] @ rotation)


def unit(matrix: np.ndarray) -> np.ndarray:
    result: np.ndarray = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return result


@pytest.mark.parametrize("to", ["first", "previous"])
@pytest.mark.parametrize("centre", [False, True])
def test_a_rotated_copy_is_recovered(to: str, centre: bool) -> None:
    one = random_vectors(300)
    found = align([one, rotated(one), rotated(one, 3)], to=to, centre=centre)  # type: ignore[arg-type]
    for other in found.vectors[1:]:
        np.testing.assert_allclose(other[one.index_to_key], found.vectors[0].vectors, atol=1e-5)
    assert [(fit.anchors, fit.held_out) for fit in found.fits] == [(300, 30), (300, 30)]
    for fit in found.fits:
        assert (fit.cosine, fit.held_out_cosine) == pytest.approx((1, 1), abs=1e-5)
    if not centre:
        np.testing.assert_allclose(found.vectors[0].vectors, unit(one.vectors), atol=1e-6)


def test_words_of_one_model_only_are_rotated_too() -> None:
    one = random_vectors(100)
    copy = rotated(one)
    other = w2v.KeyedVectors([f"new {word}" if word == "w7" else word for word in copy.index_to_key], copy.vectors)
    found = align([one, other])
    assert found.fits[0].anchors == 99
    np.testing.assert_allclose(found.vectors[1]["new w7"], found.vectors[0]["w7"], atol=1e-5)


def test_centred_vectors_have_a_mean_of_almost_zero() -> None:
    one = random_vectors(300)
    first = align([one, rotated(one)], centre=True).vectors[0].vectors
    expected = unit(unit(one.vectors) - unit(one.vectors).mean(axis=0))
    np.testing.assert_allclose(first, expected, atol=1e-6)


def test_only_the_anchors_determine_the_rotation() -> None:
    one = random_vectors(300)
    copy = rotated(one)
    matrix = copy.vectors.copy()
    changed = [copy.key_to_index[f"w{row}"] for row in range(100, 300)]
    matrix[changed] = np.random.default_rng(4).normal(size=(200, 10))
    other = w2v.KeyedVectors(copy.index_to_key, matrix)
    anchors = [f"w{row}" for row in range(100)]
    found = align([one, other], anchors=[*anchors, *anchors, "unknown"])
    assert found.fits[0].anchors == 100
    np.testing.assert_allclose(found.vectors[1][anchors], found.vectors[0][anchors], atol=1e-5)
    all_words = align([one, other])
    assert np.abs(all_words.vectors[1][anchors] - all_words.vectors[0][anchors]).max() > 0.01


def test_the_fit_on_held_out_anchors_ignores_what_the_rotation_overfits() -> None:
    """Of two unrelated models, any rotation brings the anchors nearer, but not the held-out ones."""
    one, other = random_vectors(60, 30), random_vectors(60, 30, seed=2)
    centred = [w2v.KeyedVectors(each.index_to_key, each.vectors - 0.3) for each in (one, other)]
    fit = align(centred).fits[0]
    assert fit.held_out_cosine is not None
    assert fit.cosine > 0.5
    assert abs(fit.held_out_cosine) < 0.3
    assert align(centred, seed=2).fits[0] != fit == align(centred, seed=1).fits[0]


def test_a_chain_reaches_the_first_model_through_the_one_before() -> None:
    one = random_vectors(100)
    two = rotated(one)
    renamed = w2v.KeyedVectors([f"v{row}" for row in range(100)], rotated(two).vectors)
    both = w2v.KeyedVectors([*two.index_to_key, *renamed.index_to_key], np.vstack([two.vectors, renamed.vectors]))
    with pytest.raises(w2v.W2VError, match=r"model 3 and model 1 share none of the words"):
        align([one, both, rotated(renamed)])
    found = align([one, both, rotated(renamed)], to="previous")
    assert found.fits[1].cosine == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(found.vectors[2]["v7"], found.vectors[1]["v7"], atol=1e-5)


def test_headers_name_the_common_coordinate_system() -> None:
    one = random_vectors(50, header=ModelHeader(settings={"loss": "ns"}, metrics={"phrases": {"delimiter": "_"}}))
    first = align([one, rotated(one)])
    names = {each.header.coordinates for each in first.vectors}
    assert len(names) == 1
    assert names != {""}
    assert names == {each.header.coordinates for each in align([one, rotated(one, 3)]).vectors}
    assert names.isdisjoint(each.header.coordinates for each in align([one, rotated(one)], centre=True).vectors)
    assert first.vectors[0].header.phrase_delimiter == "_"
    assert first.vectors[0].header.settings is None


def test_counts_and_words_are_kept(tmp_path: Path) -> None:
    one = w2v.KeyedVectors(["a", "b", "c"], np.eye(3), [5, 4, 3])
    other = w2v.KeyedVectors(["c", "b", "a"], np.eye(3))
    found = align([one, other]).vectors
    assert found[0].counts is not None
    assert found[0].counts.tolist() == [5, 4, 3]
    assert (found[1].index_to_key, found[1].counts) == (["c", "b", "a"], None)
    found[0].save(tmp_path / "a.safetensors")
    assert w2v.load(tmp_path / "a.safetensors").header == found[0].header


def test_zero_vectors_stay_zero() -> None:
    one = w2v.KeyedVectors(["a", "b", "c"], [[1, 0], [0, 0], [0, 2]])
    for centre in (False, True):
        found = align([one, one], centre=centre)
        assert not found.vectors[1]["b"].any()
        assert found.fits[0].held_out_cosine is None


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ([random_vectors(9)], {}, "1 model to align: give at least two"),
        ([random_vectors(9)] * 2, {"to": "last"}, 'to is \'last\': it must be "first" or "previous"'),
        ([random_vectors(9)] * 2, {"seed": -1}, "seed -1: it must be a whole number, 0 or more"),
        ([random_vectors(9)] * 2, {"anchors": ["a", "b"]}, "model 2 and model 1 share none of the 2 anchors: check"),
        ([random_vectors(9), random_vectors(9, 5)], {}, "vectors of 10, 5 values: models to align need vectors of the"),
        ([random_vectors(9), "model.bin"], {}, "'model.bin' is not a model: give one, such as"),
    ],
)
def test_wrong_input_is_refused_in_one_line(models: list[object], options: dict[str, object], message: str) -> None:
    with pytest.raises(w2v.W2VError, match=message):
        align(models, **options)  # type: ignore[arg-type]
