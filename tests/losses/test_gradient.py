"""check_gradient finds mistakes in a user's own loss, and reports each with its line."""

import re
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import Hinge
from w2v.losses import check_gradient
from w2v.losses.loss import Loss
from w2v.losses.registry import LOSSES


class Upwards(Hinge):
    """The hinge loss, with a gradient of the wrong sign."""

    @staticmethod
    def link(s: Any, scores: Any) -> float:
        loss = Hinge.link(s, scores)
        scores *= -1
        return loss


class Doubled(Hinge):
    """The hinge loss, with a gradient twice as large."""

    @staticmethod
    def link(s: Any, scores: Any) -> float:
        loss = Hinge.link(s, scores)
        scores *= 2
        return loss


class Forgetful(Hinge):
    """The hinge loss, with a gradient that leaves out an output row."""

    @staticmethod
    def link(s: Any, scores: Any) -> float:
        loss = Hinge.link(s, scores)
        scores[:, 1] = 0
        return loss


class NotANumber(Hinge):
    """The hinge loss, which is NaN except for untrained vectors."""

    @staticmethod
    def link(s: Any, scores: Any) -> float:
        return Hinge.link(s, scores) + float(np.log(0.5 - scores.max()))


class Squares(Loss):
    """(x · y − 1)² for the output row y of the centre word, computed by `step`."""

    max_rows = 1

    @staticmethod
    def step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
        return squares(s, centre, x, change, alpha, 1)


class InputsOnly(Squares):
    """The squared loss, with a step that does not update the output row."""

    @staticmethod
    def step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
        return squares(s, centre, x, change, alpha, 0)


class Raising(Squares):
    """The squared loss, with a step that raises an exception, but not in the dry run."""

    @staticmethod
    def step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
        if x[0, 0] != np.float32(0.1):  # the values of the dry run
            raise ValueError("out of luck")
        return 0.0


def squares(s: Any, centre: int, x: Any, change: Any, alpha: float, scale: float) -> float:
    row, loss = s.parameters.outputs[centre].copy(), 0.0
    for i in range(len(x)):
        error = x[i] @ row - 1
        loss += error * error
        change[i] -= alpha * 2 * error * row
        s.parameters.outputs[centre] -= scale * alpha * 2 * error * x[i]
    return loss


@pytest.mark.parametrize("loss", [Hinge, Squares])
def test_correct_losses_pass(loss: type[Loss]) -> None:
    largest = w2v.losses.check_gradient(loss(), tolerance=1e-6)
    assert largest.keys() == {"x", "outputs"}
    assert min(largest.values()) > 0.1


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (
            Upwards,
            r"link, PLACE: predicting 'the', it changes x\[\d, \d\] by NUMBER · alpha, .* is NUMBER: the sign is",
        ),
        (Doubled, r"link, PLACE: .* NUMBER: 2 times as much$"),
        (Forgetful, r"link, PLACE: .* x\[\d, \d\] by NUMBER · alpha, but the negative gradient of the loss is NUMBER$"),
        (NotANumber, r"link, PLACE: .* nan"),
        (InputsOnly, r"step, PLACE: predicting 'the', it changes outputs\[0, \d\] by 0 · alpha, .* is NUMBER$"),
        (Raising, r"step, PLACE: ValueError: out of luck$"),
    ],
)
def test_mistakes_are_reported_in_one_line_with_file_and_line_number(loss: type[Loss], expected: str) -> None:
    pattern = expected.replace("PLACE", r"test_gradient.py, line \d+").replace("NUMBER", r"-?[\d.e-]+")
    with pytest.raises(w2v.W2VError, match=f"{loss.__name__}: {pattern}") as raised:
        check_gradient(loss())
    assert "\n" not in str(raised.value)


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
