"""What the losses learn: sampled losses approach the full softmax, and each learns the true probabilities."""

from typing import Any, Literal

import numpy as np
import pytest

import w2v
from tests.helpers import CYTHON_LOSSES, loss_with_draws, make_loss, python_worker, train_on_pairs
from w2v._losses.gradient import step_of
from w2v._losses.loss import Loss

COUNTS = np.array([9, 7, 4, 4, 2, 1, 1])
CENTRE = 2


def mean_step(loss: Loss, inputs: np.ndarray, outputs: np.ndarray, draws: int) -> np.ndarray:
    """Return the mean change of inputs and outputs in a step at learning rate 1 that predicts CENTRE."""
    thread, step = python_worker(loss, outputs.copy(), len(inputs)), step_of(loss)
    inputs_change, outputs_change = np.zeros_like(inputs), np.zeros_like(outputs)
    with np.errstate(over="ignore"):
        for _ in range(draws):
            step(thread, CENTRE, inputs, inputs_change, 1.0)
            outputs_change += thread.parameters.outputs - outputs
            thread.parameters.outputs[:] = outputs
    return np.concatenate([inputs_change, outputs_change]) / draws


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["nce", "sampled"])
def test_sampled_losses_approach_the_full_softmax(loss: Literal["nce", "sampled"]) -> None:
    """The bias of the mean gradient is proportional to 1 / K (Gutmann & Hyvärinen 2012; Bengio & Senécal 2003).

    The gradient of noise-contrastive estimation approaches the softmax gradient only if the scores are normalised,
    Σ exp(s) = V.
    """
    random = np.random.default_rng(5)
    inputs, outputs = random.normal(0, 1, (1, 3)), random.normal(0, 1, (len(COUNTS), 3))
    normaliser = np.logaddexp.reduce(outputs @ inputs[0])
    outputs += (np.log(len(COUNTS)) - normaliser) * inputs / (inputs @ inputs.T)
    full = mean_step(make_loss(COUNTS, "softmax"), inputs, outputs, 1)
    distances = []
    for k in range(9):
        draws = 2 ** (13 - k) if k < 8 else 2**8  # more draws for the last K, which has the tightest bound below
        sampled = mean_step(loss_with_draws(COUNTS, loss, 2**k), inputs, outputs, draws)
        distances.append(np.linalg.norm(sampled - full) / np.linalg.norm(full))
    assert (np.diff(distances) < 0).all()
    assert distances[0] > 0.3  # K = 1
    assert distances[-1] < 0.01  # K = 256


@pytest.mark.parametrize("name", CYTHON_LOSSES)
def test_expected_updates_match_the_rows_that_predictions_choose(name: Any) -> None:
    counts = np.arange(40, 0, -1)
    words = counts / counts.sum()
    loss = make_loss(counts, name)
    random, thread = np.random.default_rng(5), python_worker(loss)
    updates, draws = np.zeros(loss.rows), 4000
    with np.errstate(over="ignore"):
        for centre in random.choice(len(words), draws, p=words):
            updates[thread.rows[: loss.choose(thread, int(centre), thread.x)]] += 1 / draws
    # A word that is drawn repeatedly is only one row. The other differences are chance.
    np.testing.assert_allclose(updates, loss.expected_updates(words), rtol=0.15, atol=0.03)


@pytest.mark.parametrize("name", ["softmax", "mos"])
def test_full_softmax_requires_opt_in_for_large_vocabularies(name: str) -> None:
    counts = np.ones(30_001, np.int64)
    message = f"loss {name}: each prediction computes the scores of all 30,001 words.*large_softmax"
    with pytest.raises(w2v.SettingsError, match=message):
        make_loss(counts, name)
    assert make_loss(counts, name, large_softmax=True).max_rows == 30_001
    assert make_loss(counts[:30_000], name).max_rows == 30_000


def learn_pairs(**options: Any) -> tuple[w2v.Model, np.ndarray, np.ndarray]:
    """Return a model of pairs of words, its scores, and the true p(column's word | row's word), (V, V)."""
    model, scores, counts = train_on_pairs(**{"sample": 0, "alpha": 0.05} | options)
    return model, scores, counts / counts.sum(axis=1, keepdims=True)


def divergence(true: np.ndarray, model: w2v.Model) -> float:
    """Return the largest Kullback–Leibler divergence, in nats, of the model's distributions given a word."""
    logs = model.views["words"].log_probabilities(model.views["words"].inputs)
    return float((true * (np.log(true) - logs)).sum(axis=1).max())


@pytest.mark.parametrize(
    "options",
    [
        *({"loss": loss, "model": model} for loss in ("softmax", "class", "hs") for model in ("skipgram", "cbow")),
        pytest.param({"loss": "hs", "tree": "balanced"}, marks=pytest.mark.slow),
        pytest.param({"loss": "class", "classes": 20}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_exact_losses_learn_the_conditional_distribution(options: dict[str, Any]) -> None:
    model, _, true = learn_pairs(**options)
    assert divergence(true, model) < 0.005
    shares = model.vocabulary.counts / model.vocabulary.tokens
    entropy = -float(shares @ (true * np.log(true)).sum(axis=1))
    assert model.metrics["loss"][-1] == pytest.approx(entropy, rel=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["skipgram", "cbow"])
@pytest.mark.parametrize("options", [{"negative": 5}, {"negative": 19, "ns_exponent": 0.5}], ids=str)
def test_noise_contrastive_estimation_learns_normalised_probabilities(options: dict[str, Any], model: str) -> None:
    """The scores are log p + log V without normalisation."""
    found, scores, true = learn_pairs(loss="nce", model=model, **options)
    np.testing.assert_allclose(np.exp(scores).mean(axis=1), 1, atol=0.04)
    assert divergence(true, found) < 0.005


@pytest.mark.slow
@pytest.mark.parametrize("model", ["skipgram", "cbow"])
def test_sampled_softmax_learns_the_conditional_distribution(model: str) -> None:
    """Few samples suffice."""
    few, many, adaptive = (
        learn_pairs(loss="sampled", model=model, ns_exponent=1, **options)
        for options in ({"negative": 3}, {"negative": 19}, {"negative": 3, "adaptive_samples": True})
    )
    for found, _, true in few, many, adaptive:
        assert divergence(true, found) < 0.005
    assert not np.array_equal(few[0].views["words"].inputs, adaptive[0].views["words"].inputs)


@pytest.mark.parametrize(("model", "negative"), [("skipgram", 1), ("cbow", 2)])
def test_negative_sampling_scores_are_at_their_optimum(model: str, negative: int) -> None:
    """The optimum is s = log p − log E[number of times that the word is among the negatives].

    A negative is never the centre word, and the second of two negatives never repeats the first.
    """
    found, scores, true = learn_pairs(model=model, loss="ns", negative=negative)
    noise = found.vocabulary.counts**0.5
    # The expected number of times that each word (column) is drawn, given the centre word (row).
    drawn = np.where(np.eye(len(noise), dtype=bool), 0, noise)
    drawn /= drawn.sum(axis=1, keepdims=True)
    if negative == 2:
        times = drawn / (1 - drawn)
        drawn += drawn * (times.sum(axis=1, keepdims=True) - times)
    away = scores - np.log(true) + np.log(true @ drawn)
    assert np.abs(away).mean() < 0.08
    assert away.mean() == pytest.approx(0, abs=0.02)
    assert divergence(true, found) < 0.02  # not 0: log_probabilities takes p / (1 − p) for p
