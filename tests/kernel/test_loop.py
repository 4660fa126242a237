"""The mathematics of training: a step changes the matrices by minus alpha times the gradient of the reported loss.

The loss is computed here from its definition, and differentiated numerically in float64.
"""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.helpers import log_probability, loss_with_draws, make_loss, new_plan, python_worker, train_in_python
from w2v._errors import W2VError
from w2v._kernel import loop
from w2v._losses import rows
from w2v._losses.gradient import numerical_gradient
from w2v._losses.loss import Loss
from w2v._losses.sampling import SamplingLoss
from w2v._settings import MAX_INPUTS_PER_STEP

COUNTS = np.array([9, 7, 4, 4, 2, 1, 1])
WORDS = np.array([-1, -1, 4, 0, 6, 2, -1, 5, 1, 3], np.int32)  # by id: 0 ends a sentence, 1 and 6 are unknown
IDS = np.array([3, 8, 5, 8, 2, 0, 7, 1, 9, 4, 6, 3, 3, 7, 0, 5], np.uint32)
SENTENCES = [[0, 1, 2, 1, 4], [5, 3, 6, 0, 0, 5], [2]]  # IDS in words
WINDOW = 2
SEED = 11
TINY = 1e-30  # a learning rate that changes nothing
DIMENSIONS = 3
MODELS: list[dict[str, Any]] = [{"per_pair": False}, {"per_pair": True}, {"model": "cbow"}]
LOSSES: dict[str, Loss] = {
    "ns": make_loss(COUNTS, "ns", negative=3),
    "nce": loss_with_draws(COUNTS, "nce", 12),
    "sampled": loss_with_draws(COUNTS, "sampled", 12),
    "adaptive": make_loss(COUNTS, "sampled", negative=4, adaptive_samples=True),
    "hs": make_loss(COUNTS, "hs"),
    "class": make_loss(COUNTS, "class"),
    "softmax": make_loss(COUNTS, "softmax"),
}
ROWS = 2 * len(COUNTS)  # at least as many output rows as any loss needs

Matrix = np.ndarray


@pytest.fixture
def matrices() -> tuple[Matrix, Matrix]:
    random = np.random.default_rng(7)
    return random.normal(0, 0.7, (len(COUNTS), DIMENSIONS)), random.normal(0, 0.7, (ROWS, DIMENSIONS))


def train(inputs: Matrix, outputs: Matrix, loss: Loss, alpha: float, **settings: Any) -> list[float]:
    """Train in place, by default for one epoch at a constant rate, and return the mean loss of each epoch."""
    defaults = {"ids": IDS, "word_of_type": WORDS, "window": WINDOW, "shrink_windows": False}
    plan = new_plan(loss, **defaults | {"alpha": alpha, "vector_size": DIMENSIONS, "seed": SEED} | settings)
    kernel = train_in_python(plan, inputs, {"outputs": outputs[: loss.rows]})
    return [total / count if count else np.nan for total, count in zip(kernel.losses, kernel.predictions, strict=True)]


def changes(matrices: tuple[Matrix, Matrix], loss: Loss, **settings: Any) -> tuple[Matrix, Matrix]:
    """Return the changes by training divided by alpha, which is so small that steps do not influence each other."""
    alpha = 1e-8
    inputs, outputs = (matrix.copy() for matrix in matrices)
    train(inputs, outputs, loss, alpha, **settings)
    return (inputs - matrices[0]) / alpha, (outputs - matrices[1]) / alpha


def windows() -> Iterator[tuple[int, list[int]]]:
    """Yield each centre word and its context words."""
    for sentence in SENTENCES:
        for at, centre in enumerate(sentence):
            context = sentence[max(0, at - WINDOW) : at] + sentence[at + 1 : at + 1 + WINDOW]
            if context:
                yield centre, context


def log_sigmoid(score: float) -> float:
    return -float(np.log1p(np.exp(-score)))


def prediction_loss(row: Matrix, outputs: Matrix, loss: Loss, centre: int, drawn: dict[int, int]) -> float:
    """Return −log p of the centre word given one input row; `drawn` is how often each word was drawn."""
    scores = outputs @ row
    noise = COUNTS**0.5 / (COUNTS**0.5).sum()
    if loss.name == "sampled":
        expected = sum(drawn.values()) * noise
        candidates = drawn | {centre: drawn.get(centre, 0) + 1}
        ratios = {k: times * np.exp(scores[k]) / expected[k] for k, times in candidates.items()}
        return -float(np.log(ratios[centre] / sum(ratios.values())))
    if isinstance(loss, SamplingLoss):
        shift = np.log(loss.negative * noise * len(noise)) if loss.name == "nce" else np.zeros(len(noise))
        rest = sum(times * log_sigmoid(shift[k] - scores[k]) for k, times in drawn.items())
        return -log_sigmoid(scores[centre] - shift[centre]) - rest
    return -log_probability(loss, outputs, row, centre)


# For each prediction: the centre word, the input words, and how often each word was drawn.
Drawn = list[tuple[int, Matrix, dict[int, int]]]


def predictions(matrices: tuple[Matrix, Matrix], loss: Loss, model: str = "skipgram", per_pair: bool = False) -> Drawn:
    """Return each prediction in the corpus, with the words that training draws for it."""
    drawn: list[tuple[int, dict[int, int]]] = []

    def recorded(s: Any, centre: int, x: Matrix) -> int:
        m = choose(s, centre, x)
        times = s.weight[:m].astype(int) - (s.rows[:m] == centre)
        drawn.append((centre, {int(row): int(count) for row, count in zip(s.rows, times, strict=False) if count}))
        return m

    choose, recording = loss.choose, copy.copy(loss)
    recording.choose = recorded  # type: ignore[method-assign]
    train(*(matrix.copy() for matrix in matrices), recording, TINY, model=model, per_pair=per_pair)
    one_by_one = model == "skipgram" and (per_pair or loss.sequential)
    groups = [
        (centre, group)
        for centre, context in windows()
        for group in ([[word] for word in context] if one_by_one else [context])
    ]
    found: Drawn = []
    for (centre, group), (predicted, counts) in zip(groups, drawn, strict=True):
        assert predicted == centre
        inputs = [group] if model == "cbow" else [[word] for word in group]
        found += [(centre, np.array(words), counts) for words in inputs]
    return found


def losses(inputs: Matrix, outputs: Matrix, loss: Loss, drawn: Drawn) -> list[float]:
    """Return the loss of each prediction."""
    return [prediction_loss(inputs[words].mean(axis=0), outputs, loss, centre, times) for centre, words, times in drawn]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_changes_are_the_gradient_of_the_reported_loss(
    matrices: tuple[Matrix, Matrix], loss: str, model: dict[str, Any]
) -> None:
    moved = changes(matrices, LOSSES[loss], **model)
    drawn = predictions(matrices, LOSSES[loss], **model)
    reported = train(*(matrix.copy() for matrix in matrices), LOSSES[loss], TINY, **model)
    assert reported == pytest.approx([np.mean(losses(*matrices, LOSSES[loss], drawn))])
    for change, matrix in zip(moved, matrices, strict=True):
        expected = -numerical_gradient(lambda: sum(losses(*matrices, LOSSES[loss], drawn)), matrix)
        assert np.abs(expected).max() > 0.5
        np.testing.assert_allclose(change, expected, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_uncorrected_cbow_moves_inputs_by_n_times_the_gradient(matrices: tuple[Matrix, Matrix], loss: str) -> None:
    ids = np.array([3, 8, 5, 8, 2], np.uint32)
    for window in 4, 9:  # each window is the full sentence, so n is 4
        settings: dict[str, Any] = {"ids": ids, "window": window, "model": "cbow"}
        corrected = changes(matrices, LOSSES[loss], **settings)
        faithful = changes(matrices, LOSSES[loss], **settings, cbow_gradient="faithful")
        np.testing.assert_allclose(faithful[0], 4 * corrected[0], atol=1e-6)
        np.testing.assert_allclose(faithful[1], corrected[1], atol=1e-6)
        assert np.abs(corrected[0]).max() > 0.1


@pytest.mark.parametrize("score", [-1e4, -40.0, 40.0, 1e4])
def test_link_is_exact_at_every_score(score: float) -> None:
    for target in 0, 1:
        thread = python_worker(LOSSES["hs"])
        thread.target[0], thread.scores[0] = target, score
        loss = rows.logistic(thread, thread.scores[:1].reshape(1, 1))
        right = (score > 0) == target
        assert loss == pytest.approx(np.exp(-abs(score)) if right else abs(score), rel=1e-12)
        assert thread.scores[0] == pytest.approx(0 if right else 2 * target - 1, abs=1e-16)


def test_skip_gram_with_hierarchical_softmax_is_sequential(matrices: tuple[Matrix, Matrix]) -> None:
    loss, alpha = LOSSES["hs"], 0.8
    starts, nodes_of, codes = (loss.data[name] for name in ("starts", "nodes", "codes"))
    trained, one_by_one, at_once = ([matrix.copy() for matrix in matrices] for _ in range(3))
    train(*trained, loss, alpha)
    for centre, context in windows():
        path = slice(starts[centre], starts[centre + 1])
        nodes, target = nodes_of[path], 1 - codes[path]
        for inputs, outputs, groups in (*one_by_one, [[word] for word in context]), (*at_once, [context]):
            for group in groups:
                x, y = inputs[group], outputs[nodes]
                error = target - 1 / (1 + np.exp(-x @ y.T))
                np.add.at(inputs, group, alpha * error @ y)
                outputs[nodes] += alpha * error.T @ x
    for found, expected, other in zip(trained, one_by_one, at_once, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert np.abs(found - other).max() > 0.01


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", ["hs", "class", "softmax"])  # losses without random draws
@pytest.mark.parametrize("chunk", [1, 4, 7])
def test_chunk_size_does_not_change_the_result(
    matrices: tuple[Matrix, Matrix], loss: str, model: str, chunk: int
) -> None:
    settings: dict[str, Any] = {"model": model, "keep_thresholds": np.full(len(COUNTS), 2**31, np.uint32), "epochs": 3}
    whole, pieces = ([matrix.copy() for matrix in matrices] for _ in range(2))
    losses = [
        train(*whole, LOSSES[loss], 0.3, **settings),
        train(*pieces, LOSSES[loss], 0.3, chunk_size=chunk, **settings),
    ]
    assert losses[0] == pytest.approx(losses[1])
    for found, expected, before in zip(pieces, whole, matrices, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert np.abs(found - before).max() > 0.01


def test_an_error_of_w2v_is_not_called_a_mistake_in_a_users_loss(matrices: tuple[Matrix, Matrix]) -> None:
    own = copy.copy(LOSSES["ns"])
    own.is_own = True
    for loss in (own, LOSSES["ns"]):
        train(*matrices, loss, 0.1)
        with pytest.raises(IndexError):  # some words have no input row
            train(matrices[0][:2], matrices[1], loss, 0.1)
    of_user, of_w2v = r"NegativeSampling: training: TypeError: int", r"^int"
    for loss, kind, message in ((own, W2VError, of_user), (LOSSES["ns"], TypeError, of_w2v)):
        plan = new_plan(loss, ids=IDS, word_of_type=WORDS, alpha=0.1, vector_size=DIMENSIONS, window=1)
        kernel = loop.Kernel(plan, matrices[0], {"outputs": matrices[1][: loss.rows]})
        kernel._train_chunk = int  # like a compiled function, it has no Python frame
        with pytest.raises(kind, match=message):
            kernel.run(0)


def test_words_without_context_are_not_trained(matrices: tuple[Matrix, Matrix]) -> None:
    before = [matrix.copy() for matrix in matrices]
    assert np.isnan(train(*matrices, LOSSES["ns"], 0.5, ids=np.array([3, 0, 1, 8, 0], np.uint32))).all()
    assert all(np.array_equal(*pair) for pair in zip(matrices, before, strict=True))


@pytest.mark.parametrize(("alpha", "min_alpha"), [(0.05, 5e-6), (0.025, 0.0), (0.1, 0.1), (0.7, 0.03)])
@pytest.mark.parametrize("kept", [1.0, 0.6])
def test_learning_rate_is_linear_in_tokens_and_ends_at_min_alpha(
    matrices: tuple[Matrix, Matrix], alpha: float, min_alpha: float, kept: float
) -> None:
    rates: list[float] = []

    def step(s: Any, centre: int, x: Matrix, change: Matrix, rate: float) -> float:
        rates.append(rate)
        return 0.0

    loss = copy.copy(LOSSES["ns"])
    loss.step = step
    tokens, epochs = 30, 3
    keep = np.full(len(COUNTS), int(kept * (2**32 - 1)), np.uint32)
    keep[WORDS[3]] = 2**32 - 1
    ids = np.array([3, 3] + [8, 5, 3, 1] * 9 + [3], np.uint32)  # id 1 is unknown, so it does not count as a token
    train(*matrices, loss, alpha, min_alpha=min_alpha, ids=ids, keep_thresholds=keep, model="cbow", epochs=epochs)
    schedule = np.linspace(alpha, min_alpha, epochs * tokens + 1)[1:]
    if kept < 1:  # the schedule also counts tokens that subsampling drops
        assert len(rates) < epochs * tokens
        assert all(np.isclose(schedule, rate, rtol=1e-9, atol=1e-12).any() for rate in rates)
    else:
        np.testing.assert_allclose(rates, schedule, rtol=1e-9, atol=1e-12)
    assert rates[-1] == pytest.approx(min_alpha, rel=1e-9, abs=1e-12)
    assert min(rates) >= min_alpha
    assert (np.diff(rates) < 0).all() or alpha == min_alpha


def test_losses_receive_the_positions_of_window_and_step(matrices: tuple[Matrix, Matrix]) -> None:
    found: list[tuple[int, int]] = []

    def step(s: Any, centre: int, x: Matrix, change: Matrix, rate: float) -> float:
        found.append((int(s.position[0]), int(s.position[1])))
        return 0.0

    loss = copy.copy(LOSSES["ns"])
    loss.step = step
    context = np.full(2 * MAX_INPUTS_PER_STEP, 3, np.uint32)
    train(*matrices, loss, 0.1, ids=context, window=(len(context), 0))  # window k has k + 1 words
    step_counts = [-(-(k + 1) // MAX_INPUTS_PER_STEP) for k in range(len(context) - 1)]
    assert found == [(window, number) for window, steps in enumerate(step_counts) for number in range(steps)]
