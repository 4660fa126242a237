"""check_gradient finds mistakes in a user's own loss, and reports each with its line."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import Hinge
from w2v._losses.loss import Loss
from w2v._losses.registry import LOSSES
from w2v.losses import check_gradient


def wrong_hinge(factor: float = 1, forgotten: slice = slice(0), added: float = 0) -> Loss:
    """Return the hinge loss plus `added`, with a gradient times `factor` that leaves out `forgotten` output rows."""

    def link(s: Any, scores: Any) -> float:
        loss = Hinge.link(s, scores)
        scores *= factor
        scores[:, forgotten] = 0
        return loss + added

    wrong: Loss = type("WrongHinge", (Hinge,), {"link": staticmethod(link)})()
    return wrong


def own_loss(step: Callable[..., float]) -> Loss:
    """Return a user's own loss with one output row and this step."""
    loss: Loss = type("OwnLoss", (Loss,), {"max_rows": 1, "step": staticmethod(step)})()
    return loss


def squares(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
    """Compute (x · y − 1)² for the output row y of the centre word."""
    row, loss = s.parameters.outputs[centre].copy(), 0.0
    for i in range(len(x)):
        error = x[i] @ row - 1
        loss += error * error
        change[i] -= alpha * 2 * error * row
        s.parameters.outputs[centre] -= alpha * 2 * error * x[i]
    return loss


def squares_of_inputs(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
    """Compute `squares`, but do not update the output row."""
    row = s.parameters.outputs[centre].copy()
    loss = squares(s, centre, x, change, alpha)
    s.parameters.outputs[centre] = row
    return loss


def raising(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
    """Raise an exception, but not in the dry run."""
    if x[0, 0] != np.float32(0.1):  # the values of the dry run
        raise ValueError("out of luck")
    return 0.0


@pytest.mark.parametrize("loss", [Hinge(), own_loss(squares)])
def test_correct_losses_pass(loss: Loss) -> None:
    largest = w2v.losses.check_gradient(loss, tolerance=1e-6)
    assert largest.keys() == {"x", "outputs"}
    assert min(largest.values()) > 0.1


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (
            wrong_hinge(factor=-1),
            r"link, PLACE: predicting 'the', it changes x\[\d, \d\] by NUMBER · alpha, .* is NUMBER: the sign is",
        ),
        (wrong_hinge(factor=2), r"link, PLACE: .* NUMBER: 2 times as much$"),
        (
            wrong_hinge(forgotten=slice(1, 2)),
            r"link, PLACE: .* x\[\d, \d\] by NUMBER · alpha, but the negative gradient of the loss is NUMBER$",
        ),
        (wrong_hinge(added=np.nan), r"link, PLACE: .* nan"),
        (
            own_loss(squares_of_inputs),
            r"step, PLACE: predicting 'the', it changes outputs\[0, \d\] by 0 · alpha, .* is NUMBER$",
        ),
        (own_loss(raising), r"step, PLACE: ValueError: out of luck$"),
    ],
)
def test_mistakes_are_reported_in_one_line_with_file_and_line_number(loss: Loss, expected: str) -> None:
    pattern = expected.replace("PLACE", r"test_gradient.py, line \d+").replace("NUMBER", r"-?[\d.e-]+")
    with pytest.raises(w2v.W2VError, match=f"{type(loss).__name__}: {pattern}"):
        check_gradient(loss)


def slightly_wrong(word: int) -> Loss:
    """Return a loss that changes the output row of one word a little too much: by 0.01 alpha in each value."""

    def step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
        loss = squares(s, centre, x, change, alpha)
        if centre == word:
            s.parameters.outputs[centre] += 0.01 * alpha
        return loss

    return own_loss(step)


def not_a_number(word: int) -> Loss:
    """Return a loss that is NaN for one word."""
    return own_loss(lambda s, centre, x, change, alpha: float("nan") if centre == word else 0.0)


@pytest.mark.parametrize(("word", "name"), [(0, "the"), (6, "man"), (11, "q")])
def test_only_the_first_middle_and_last_word_are_predicted(word: int, name: str) -> None:
    """The dry run finds losses that are not numbers."""
    for wrong, message in (
        (slightly_wrong, f"predicting '{name}', it changes outputs"),
        (not_a_number, "OwnLoss: step, .* the loss is nan: it and all updates must be finite"),
    ):
        with pytest.raises(w2v.W2VError, match=message):
            check_gradient(wrong(word))
        check_gradient(wrong(word + 1))  # this word is not predicted


def test_few_wrong_values_of_a_large_matrix_are_found() -> None:
    counts = np.arange(3000, 0, -1)
    vocabulary = w2v.Vocabulary([f"w{row}" for row in counts.tolist()], counts)
    with pytest.raises(w2v.W2VError, match=r"predicting 'w3000', it changes outputs\[0, \d+\]"):
        check_gradient(slightly_wrong(0), vocabulary=vocabulary, vector_size=20)


def constant(error: float) -> Loss:
    """Return a loss that is 0 whatever the vectors, with a step that changes x by a constant."""

    def step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
        change[0, 0] += error * alpha
        return 0.0

    return own_loss(step)


def test_tolerance_is_absolute_for_small_derivatives() -> None:
    assert check_gradient(constant(0)) == {"x": 0, "outputs": 0}  # the loss depends on nothing
    check_gradient(constant(0.0099), tolerance=0.01)
    with pytest.raises(w2v.W2VError, match=r"changes x\[0, 0\] by 0.0101 · alpha, but .* the loss is -?0$"):
        check_gradient(constant(0.0101), tolerance=0.01)


def test_own_loss_is_tried_before_its_gradient_is_checked() -> None:
    with pytest.raises(w2v.W2VError, match="NoFunctions has no choose: write choose and link, or step"):
        check_gradient(type("NoFunctions", (Loss,), {})())


def test_only_a_part_of_large_matrices_is_checked() -> None:
    calls = []

    class Counting(Hinge):
        @staticmethod
        def link(s: Any, scores: Any) -> float:
            calls.append(1)
            return Hinge.link(s, scores)

    counts = np.arange(300, 0, -1)
    vocabulary = w2v.Vocabulary([f"w{row}" for row in counts.tolist()], counts)
    check_gradient(Counting(), vocabulary=vocabulary, vector_size=100)
    assert 1000 < len(calls) < 4000  # Checking all values of the output layer takes 180,000 calls.


def test_impossible_arguments_are_refused() -> None:
    with pytest.raises(w2v.SettingsError, match=re.escape("it must be a Loss, as in check_gradient(Hinge())")):
        check_gradient(Hinge)  # type: ignore[arg-type]
    with pytest.raises(w2v.SettingsError, match="negative"):
        check_gradient(LOSSES["ns"](), negative=0)
