"""Combined word vectors match the definition, also for unusual matrices."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from w2v._formats.bfloat16 import bfloat16
from w2v._vectors import combine_matrices as module
from w2v._vectors.combine_matrices import combine_matrices, concatenate_matrices

SHAPES = {"usual": (300, 8), "fewer words than values": (5, 8), "one value": (40, 1), "two words": (2, 3)}


def matrices(words: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return input rows, output rows that share a vector and contain log frequency, and counts."""
    random = np.random.default_rng(words + size)
    counts = np.sort(random.zipf(1.5, words))[::-1].astype(np.int64)
    inputs, outputs = random.normal(size=(2, words, size))
    if size > 1:  # otherwise all would be the same
        outputs += 2 + np.log(counts)[:, None]
    return inputs.astype(np.float32), outputs.astype(np.float32), counts


def unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def parts(matrix: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """Return R of combine_matrices.py: unit rows, minus their regression on ones and `columns`, of length 1 again."""
    rows = unit(matrix.astype(np.float64))
    regressors = np.stack([np.ones(len(rows)), *columns], axis=1)
    residuals = rows - regressors @ np.linalg.lstsq(regressors, rows, rcond=None)[0]
    return unit(np.where(rows.any(axis=1, keepdims=True), residuals, 0))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
@pytest.mark.parametrize("regressed", [False, True], ids=["mean", "log counts"])
def test_vectors_match_the_definition(shape: tuple[int, int], regressed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "VALUES_AT_ONCE", 7 * shape[1])  # several blocks, the last one cut
    inputs, outputs, counts = matrices(*shape)
    if regressed and shape[0] == 2:
        pytest.skip("the regression fits two words exactly, so the residuals are only rounding errors")
    both = np.hstack([parts(inputs), parts(outputs, *([np.log(counts)] if regressed else []))])
    given: Any = counts if regressed else None
    np.testing.assert_allclose(concatenate_matrices(inputs, outputs, given), both, atol=1e-5)
    found = combine_matrices(inputs, outputs, given)
    assert (found.dtype, found.shape) == (np.float32, shape)
    left, values, _ = np.linalg.svd(both, full_matrices=False)
    kept = min(shape[1], len(values))
    # No matrix of this rank is nearer to the inner products of the concatenation:
    best = (left[:, :kept] * values[:kept]) @ (left[:, :kept] * values[:kept]).T
    np.testing.assert_allclose(found @ found.T, best, atol=1e-4)


def test_vectors_ignore_lengths_and_are_reproducible() -> None:
    inputs, outputs, counts = matrices(300, 8)
    expected = combine_matrices(inputs, outputs, counts)
    np.testing.assert_array_equal(combine_matrices(inputs, outputs, counts), expected)
    lengths = np.random.default_rng(1).uniform(0.1, 10, size=(300, 1)).astype(np.float32)
    np.testing.assert_allclose(combine_matrices(inputs * lengths, outputs, counts), expected, atol=1e-4)
    both = concatenate_matrices(inputs, outputs, counts)
    lengths[:, 0] = 1
    lengths[[1, 100, 200, 299], 0] = 1e-30, 1e-20, 1e30, 2e37
    with np.errstate(over="ignore"):  # of squares
        np.testing.assert_allclose(concatenate_matrices(inputs * lengths, outputs * lengths, counts), both, atol=1e-5)


def test_zero_rows_stay_zero() -> None:
    inputs, outputs, counts = matrices(300, 8)
    outputs[[3, 299]] = 0
    assert not concatenate_matrices(inputs, outputs)[[3, 299], 8:].any()
    inputs[3] = 0
    for given in (None, counts):
        found = combine_matrices(inputs, outputs, given)
        assert not found[3].any()
        assert np.isfinite(found).all()
        assert found[299].any()


def test_equal_counts_only_remove_the_mean() -> None:
    inputs, outputs, _ = matrices(300, 8)
    found = concatenate_matrices(inputs, outputs, np.full(300, 7, np.int64))
    np.testing.assert_allclose(found, concatenate_matrices(inputs, outputs), atol=1e-6)


def test_bfloat16_matrices_are_combined() -> None:
    pytest.importorskip("ml_dtypes")
    inputs, outputs, counts = matrices(300, 8)
    half = [matrix.astype(bfloat16()) for matrix in (inputs, outputs)]
    found = combine_matrices(half[0], half[1], counts)
    wide = [matrix.astype(np.float32) for matrix in half]
    np.testing.assert_array_equal(found, combine_matrices(wide[0], wide[1], counts))


@pytest.mark.parametrize(("words", "size"), [(10, 300), (20_000, 60)])
def test_memory_is_estimated(words: int, size: int) -> None:
    assert module.memory_of("input", words, size) == 0
    inputs = np.random.default_rng(1).normal(size=(words, size)).astype(np.float32)
    for kind, make in (("combined", combine_matrices), ("concatenated", concatenate_matrices)):
        estimate = module.memory_of(kind, words, size)  # type: ignore[arg-type]
        tracemalloc.start()
        make(inputs, inputs)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # The estimate leaves out blocks of rows, and vectors with a value for each word: in all less than six blocks of
        # float32. It may be three times the peak, because it reserves LAPACK's work space.
        blocks = 6 * 4 * module.VALUES_AT_ONCE
        assert estimate / 3 - blocks < peak < estimate + blocks


def test_words_with_a_count_of_0_count_as_if_they_occurred_once() -> None:
    inputs, outputs, counts = matrices(40, 4)
    never, once = counts.copy(), counts.copy()
    never[-3:], once[-3:] = 0, 1
    for combine in (combine_matrices, concatenate_matrices):
        found = combine(inputs, outputs, never)
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found, combine(inputs, outputs, once))
