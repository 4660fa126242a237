"""Lengths and cosines of all finite vectors, even if their squares overflow or underflow in float32."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from tests.helpers import FINITE
from w2v._formats import bfloat16
from w2v._vectors.cosines import cosines, lengths, unit
from w2v._vectors.keyed import KeyedVectors
from w2v._vectors.neighbours import nearest_rows

SCALES = [1e-37, 1e-30, 1e-20, 1e-12, 1, 1e12, 1e18, 1e30, 1e37]
WORDS = [f"w{row}" for row in range(60)]
PLAIN = np.random.default_rng(1).normal(size=(60, 8)).astype(np.float32)


def exact_unit(vectors: NDArray[Any]) -> NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=-1, keepdims=True)
    return wide / np.where(norms == 0, 1, norms)


@given(arrays.arrays(np.float32, (4, 3), elements=FINITE))
def test_cosines_are_precise_for_all_finite_vectors(vectors: NDArray[np.float32]) -> None:
    before = vectors.copy()
    expected = exact_unit(vectors)
    np.testing.assert_allclose(unit(vectors), expected, atol=1e-6)
    np.testing.assert_allclose([unit(vector) for vector in vectors], expected, atol=1e-6)
    norms = lengths(vectors)
    exact = np.linalg.norm(vectors.astype(np.float64), axis=1)
    representable = exact <= np.finfo(np.float32).max
    np.testing.assert_allclose(norms[representable], exact[representable], rtol=1e-6, atol=1e-45)
    np.testing.assert_allclose(cosines(unit(vectors), vectors, norms), expected @ expected.T, atol=1e-6)
    np.testing.assert_allclose(cosines(unit(vectors[0]), vectors, norms), expected @ expected[0], atol=1e-6)
    np.testing.assert_array_equal(vectors, before)
    assert unit(vectors, vectors) is vectors
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_usual_lengths_stay_in_float32() -> None:
    np.testing.assert_array_equal(unit(PLAIN), PLAIN / np.sqrt(np.einsum("nd,nd->n", PLAIN, PLAIN))[:, None])


@pytest.mark.parametrize("scale", SCALES)
def test_nearest_words_do_not_depend_on_lengths(scale: float) -> None:
    factors = np.where(np.arange(len(PLAIN))[:, None] % 3, np.float32(scale), np.float32(1))
    plain, scaled = KeyedVectors(WORDS, PLAIN), KeyedVectors(WORDS, PLAIN * factors)
    for words in (["w0"], ["w1", "w3"]):
        for search in ("most_similar", "most_similar_cosmul"):
            expected, found = (getattr(each, search)(words, ["w5"]) for each in (plain, scaled))
            assert [word for word, _ in found] == [word for word, _ in expected]
            np.testing.assert_allclose([score for _, score in found], [score for _, score in expected], atol=1e-5)
    expected, found = (dict(each.most_similar("w1", topn=len(WORDS))) for each in (plain, scaled))
    assert found == pytest.approx(expected, abs=1e-5)
    rows = np.arange(60)
    np.testing.assert_array_equal(nearest_rows(scaled.vectors, rows, 5), nearest_rows(plain.vectors, rows, 5))


@given(arrays.arrays(np.float32, (4, 3), elements=FINITE))
def test_mean_of_finite_vectors_is_finite(vectors: NDArray[np.float32]) -> None:
    assume(vectors.any())
    model = KeyedVectors(WORDS[:4], vectors)
    mean = model.get_mean_vector(WORDS[:4], pre_normalize=False)
    np.testing.assert_allclose(mean, vectors.astype(np.float64).mean(axis=0), rtol=1e-6, atol=1e-45)


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_the_number_of_blocks_does_not_change_cosines(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    monkeypatch.setattr(bfloat16, "BLOCK_VALUES", 8 * 20)  # 20 rows
    vectors = PLAIN[: 20 * blocks].astype(bfloat16.bfloat16())
    expected = exact_unit(vectors.astype(np.float32))
    norms = lengths(vectors)
    np.testing.assert_allclose(norms, np.linalg.norm(vectors.astype(np.float64), axis=1), rtol=1e-5)
    for queries in (expected[5].astype(np.float32), expected[:3].astype(np.float32)):
        np.testing.assert_allclose(cosines(queries, vectors, norms), queries @ expected.T, atol=1e-5)
