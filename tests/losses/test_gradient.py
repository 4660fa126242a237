"""The numerical check of a user's own loss finds mistakes, and says what and where they are."""

import re
from typing import Any

import numpy as np
import pytest

import w2v
from w2v.losses import check_gradient
from w2v.losses.loss import Loss
from w2v.losses.registry import LOSSES
from w2v.losses.rows import below, draw, index_of


class Hinge(Loss):
    """The loss of docs/own-loss.md."""

    max_rows = 6

    @staticmethod
    def choose(s: Any, centre: int, x: Any) -> int:
        s.rows[0], s.target[0], m = centre, 1, 1
        for _ in range(5):
            word = below(draw(s.random), len(s.parameters.outputs))
            if index_of(s.rows, word, m) == m:
                s.rows[m], s.target[m], m = word, -1, m + 1
        return m

    @staticmethod
    def link(s: Any, scores: Any) -> float:
        return linked(s, scores, 1)


def linked(s: Any, scores: Any, factor: float) -> float:
    loss = 0.0
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            short = max(1 - s.target[j] * scores[i, j], 0)
            loss += short
            scores[i, j] = factor * s.target[j] if short > 0 else 0
    return loss


class Upwards(Hinge):
    @staticmethod
    def link(s: Any, scores: Any) -> float:
        return linked(s, scores, -1)


class Doubled(Hinge):
    @staticmethod
    def link(s: Any, scores: Any) -> float:
        return linked(s, scores, 2)


class Forgetful(Hinge):
    @staticmethod
    def link(s: Any, scores: Any) -> float:
        loss = linked(s, scores, 1)
        scores[:, 1] = 0
        return loss


class NoNumber(Hinge):
    @staticmethod
    def link(s: Any, scores: Any) -> float:
        return linked(s, scores, 1) + float(np.log(0.5 - scores.max()))  # a number for untrained vectors


class Squares(Loss):
    """(x · y − 1)² for the output row y of the centre word, with a step of its own."""

    max_rows = 1

    @staticmethod
    def step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
        return squares(s, centre, x, change, alpha, 1)


class Lazy(Squares):
    @staticmethod
    def step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
        return squares(s, centre, x, change, alpha, 0)


class Raising(Squares):
    @staticmethod
    def step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
        if x[0, 0] != np.float32(0.1):  # the row of the dry run
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
    found = w2v.losses.check_gradient(loss(), tolerance=1e-6)
    assert found.keys() == {"x", "outputs"}
    assert min(found.values()) > 0.1


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (
            Upwards,
            r"link, PLACE: predicting 'the', it changes x\[\d, \d\] by NUMBER · alpha, .* is NUMBER: the sign is",
        ),
        (Doubled, r"link, PLACE: .* NUMBER: 2 times as much$"),
        (Forgetful, r"link, PLACE: .* x\[\d, \d\] by NUMBER · alpha, but the negative gradient of the loss is NUMBER$"),
        (NoNumber, r"link, PLACE: .* nan"),
        (Lazy, r"step, PLACE: predicting 'the', it changes outputs\[0, \d\] by 0 · alpha, .* is NUMBER$"),
        (Raising, r"step, PLACE: ValueError: out of luck$"),
    ],
)
def test_mistakes_are_one_line_with_the_place(loss: type[Loss], expected: str) -> None:
    pattern = expected.replace("PLACE", r"test_gradient.py, line \d+").replace("NUMBER", r"-?[\d.e-]+")
    with pytest.raises(w2v.W2VError, match=f"{loss.__name__}: {pattern}") as raised:
        check_gradient(loss())
    assert "\n" not in str(raised.value)


def test_large_matrices_are_checked_in_part() -> None:
    calls = []

    class Counting(Hinge):
        @staticmethod
        def link(s: Any, scores: Any) -> float:
            calls.append(1)
            return linked(s, scores, 1)

    counts = np.arange(300, 0, -1)
    vocabulary = w2v.Vocabulary([f"w{row}" for row in counts.tolist()], counts)
    check_gradient(Counting(), vocabulary=vocabulary, vector_size=100)
    assert 1000 < len(calls) < 4000  # 180,000 for all values of the output layer


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(w2v.SettingsError, match=re.escape("it must be a Loss, as in check_gradient(Hinge())")):
        check_gradient(Hinge)  # type: ignore[arg-type]
    with pytest.raises(w2v.SettingsError, match="negative"):
        check_gradient(LOSSES["ns"](), negative=0)
