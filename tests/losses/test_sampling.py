"""The alias table of the noise distribution, and the words drawn from it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import w2v
from tests.helpers import DESCENDING_COUNTS as COUNTS
from tests.helpers import make_loss, python_worker
from w2v._losses.rows import draw_words, effective_samples, exponentials

ZIPF = (10_000 / np.arange(1, 21)).astype(np.int64)


def noise(counts: np.ndarray, exponent: float = 0.5) -> np.ndarray:
    weights = counts.astype(np.float64) ** exponent
    return weights / weights.sum()


def choose_negatives(thread: Any, centre: int) -> list[int]:
    """Return the centre word and the words drawn for it."""
    with np.errstate(over="ignore"):
        m = draw_words(thread, centre, 1, counted=False)
    return list(thread.rows[:m].tolist())


@given(COUNTS, st.sampled_from([0, 0.75, 1, -0.5, 2]))
def test_alias_table_holds_the_noise_distribution(counts: np.ndarray, exponent: float) -> None:
    loss = make_loss(counts, negative=1, ns_exponent=exponent)
    thresholds, aliases = loss.data["alias_table"].T
    own = (thresholds + 1.0) / 2**32
    distribution = (own + np.bincount(aliases, 1 - own, len(counts))) / len(counts)
    np.testing.assert_allclose(distribution, noise(counts, exponent), rtol=0, atol=1e-8)


def test_draws_follow_the_noise_distribution() -> None:
    centre, draws, thread = 3, 20_000, python_worker(make_loss(ZIPF, negative=1))
    drawn = np.bincount([choose_negatives(thread, centre)[1] for _ in range(draws)], minlength=len(ZIPF))
    others = np.arange(len(ZIPF)) != centre
    expected = noise(ZIPF)[others]
    assert drawn[centre] == 0
    assert chisquare(drawn[others], draws * expected / expected.sum()).pvalue > 0.01
    # The test can detect a small difference of the exponent.
    assert chisquare(drawn[others], draws * noise(ZIPF[others], 0.65)).pvalue < 1e-6


@given(COUNTS, st.integers(0, 2**64 - 1), st.data())
def test_negatives_differ_from_the_centre_word_and_from_each_other(
    counts: np.ndarray, seed: int, data: st.DataObject
) -> None:
    size = len(counts)
    negative = data.draw(st.integers(1, min(size - 1, 30)))
    loss = make_loss(counts, negative=negative)
    centre = data.draw(st.integers(0, size - 1))
    words = choose_negatives(python_worker(loss, seed=seed), centre)
    assert words[0] == centre
    assert len(set(words)) == len(words) == negative + 1
    assert 0 <= min(words) <= max(words) < size


@pytest.mark.parametrize("centre", [0, 1, 7])
def test_all_other_words_can_be_negatives(centre: int) -> None:
    counts = np.array([10**15] + [1] * 7)  # Random draws practically never find the seven rare words.
    loss = make_loss(counts, negative=7, ns_exponent=1)
    assert sorted(choose_negatives(python_worker(loss), centre)) == list(range(8))


@pytest.mark.parametrize("kind", ["ns", "nce", "sampled"])
def test_negatives_are_limited_to_the_other_words_of_the_vocabulary(kind: str) -> None:
    loss = make_loss(np.array([5, 2, 1]), kind, negative=100)
    assert loss.max_rows == 3
    assert loss.notice == "negative 100: the vocabulary has 3 words, so 2 are drawn for each prediction"
    assert make_loss(np.array([5, 2, 1]), kind, negative=2).notice == ""
    assert "so 1 is drawn for each prediction" in make_loss(np.array([5, 2]), kind, negative=5).notice


@pytest.mark.parametrize(("words", "negative", "adaptive"), [(9, 3, True), (4, 8, True), (3, 8, False)])
def test_adaptive_sampling_needs_three_words_to_draw(words: int, negative: int, adaptive: bool) -> None:
    """With fewer, one drawn word is always half of the effective samples. `negative` is limited to the other words."""
    loss = make_loss(np.arange(words, 0, -1), "sampled", negative=negative, adaptive_samples=True)
    drawn = min(negative, words - 1)
    assert loss.max_rows == (16 * drawn if adaptive else drawn) + 1


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_exponentials_are_accurate(kind: Any) -> None:
    values = -np.concatenate([np.linspace(0, 3, 101), np.geomspace(1e-6, 60, 101)]).astype(kind)
    expected = np.exp(values.astype(np.float64))
    exponentials(values)
    np.testing.assert_allclose(values, expected, rtol=3e-7 if kind == np.float32 else 1e-15)


def test_toy_vocabularies_train(caplog: pytest.LogCaptureFixture) -> None:
    model = w2v.train([["a", "b", "c"]] * 200, min_count=1, sample=0, epochs=20, vector_size=4, workers=1)
    assert model.metrics["loss"][-1] < model.metrics["loss"][0]
    assert "so 2 are drawn for each prediction" in caplog.text


def test_effective_samples_are_counted_in_each_row() -> None:
    """n samples with equal importance, and one of them drawn twice, are n + 1 effective samples."""
    scores = np.array([[5.0, 1.0, 1.0 + np.log(2), 1.0], [5.0, 1.0, -50.0, -50.0]])
    weight, room = np.array([1.0, 1.0, 2.0, 1.0]), np.empty(4)
    assert effective_samples(scores[:1], weight, room) == pytest.approx(4)
    assert effective_samples(scores, weight, room) == pytest.approx(1)
    assert effective_samples(scores[:, :1], weight, room) == np.inf  # all drawn words were the centre word
