"""check_gradient finds mistakes in a user's own loss, and reports each with its line."""

import re
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import Hinge
from w2v.losses import check_gradient
from w2v.losses.gradient import dry_run
from w2v.losses.loss import Loss
from w2v.losses.registry import LOSSES
from w2v.losses.worker import new_worker


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
    with pytest.raises(w2v.W2VError, match=f"{loss.__name__}: {pattern}"):
        check_gradient(loss())


class SlightlyWrong(Squares):
    """The output row of one word changes a little too much: by 0.01 alpha in each value."""

    word = 0

    @staticmethod
    def step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
        loss = squares(s, centre, x, change, alpha, 1)
        if centre == SlightlyWrong.word:
            s.parameters.outputs[centre] += 0.01 * alpha
        return loss


@pytest.mark.parametrize(("word", "name"), [(0, "the"), (6, "man"), (11, "q")])
def test_only_the_first_middle_and_last_word_are_predicted(
    word: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SlightlyWrong, "word", word)
    with pytest.raises(w2v.W2VError, match=f"predicting '{name}', it changes outputs"):
        check_gradient(SlightlyWrong())
    monkeypatch.setattr(SlightlyWrong, "word", word + 1)  # this word is not predicted
    check_gradient(SlightlyWrong())


def test_few_wrong_values_of_a_large_matrix_are_found() -> None:
    counts = np.arange(3000, 0, -1)
    vocabulary = w2v.Vocabulary([f"w{row}" for row in counts.tolist()], counts)
    with pytest.raises(w2v.W2VError, match=r"predicting 'w3000', it changes outputs\[0, \d+\]"):
        check_gradient(SlightlyWrong(), vocabulary=vocabulary, vector_size=20)


class Constant(Loss):
    """The loss is 0 whatever the vectors, and x changes by a constant."""

    max_rows = 1
    error = 0.0

    @staticmethod
    def step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
        change[0, 0] += Constant.error * alpha
        return 0.0


def test_tolerance_is_absolute_for_small_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_gradient(Constant()) == {"x": 0, "outputs": 0}  # the loss depends on nothing
    monkeypatch.setattr(Constant, "error", 0.0099)
    check_gradient(Constant(), tolerance=0.01)
    monkeypatch.setattr(Constant, "error", 0.0101)
    with pytest.raises(w2v.W2VError, match=r"changes x\[0, 0\] by 0.0101 · alpha, but .* the loss is -?0$"):
        check_gradient(Constant(), tolerance=0.01)


class WithoutChoose(Loss):
    """A loss that has no functions."""


def test_own_loss_is_tried_before_its_gradient_is_checked() -> None:
    with pytest.raises(w2v.W2VError, match="WithoutChoose has no choose: write choose and link, or step"):
        check_gradient(WithoutChoose())


class FailsFor(Squares):
    """The step fails for one word."""

    word = 0

    @staticmethod
    def step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
        return float("nan") if centre == FailsFor.word else 0.0


@pytest.mark.parametrize("word", [0, 5, 9])
def test_dry_run_predicts_the_first_middle_and_last_word(word: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loss = FailsFor().prepared(w2v.Vocabulary(list("abcdefghij"), range(10, 0, -1)), w2v.Settings(objective=FailsFor()))
    worker = new_worker(loss, loss.new_parameters(), 2, 112, np.float32)  # rows of 100 values, padded to cache lines
    monkeypatch.setattr(FailsFor, "word", -1)
    dry_run(loss, worker, 10)
    monkeypatch.setattr(FailsFor, "word", word)
    with pytest.raises(w2v.W2VError, match=r"FailsFor: step, .* the loss is nan: it and all updates must be finite"):
        dry_run(loss, worker, 10)


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
