"""Check a loss in plain Python: that its updates follow the gradient of the loss that it reports, and a dry run.

The dry run tries a user's own loss before it is compiled, so that errors have file and line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, W2VError
from w2v._losses import rows
from w2v._losses.binding import bind
from w2v._losses.loss import Array, Loss, Worker, call_method, fail, mistakes_in_loss
from w2v._losses.registry import LOSSES, Settings
from w2v._losses.worker import floats_as, new_worker
from w2v._system import memory
from w2v._text.vocabulary import Vocabulary

WORDS = ["the", "of", "and", "king", "queen", "a", "man", "woman", "cat", "cats", "élan", "q"]
VECTOR_SIZE = 5
INPUT_ROWS = 2
ALPHA = 1e-7  # so small that the update of one value does not change the update of another
DIFFERENCE = 1e-5  # central differences change a value by this much in both directions
NOISE = 0.5  # standard deviation of the noise added to initial parameters, because many of them are zero
MAX_CHECKED = 200  # values checked in a matrix: this many that the update changes, and this many that it does not


def check_gradient(
    loss: Loss, /, *, vocabulary: Vocabulary | None = None, tolerance: float = 1e-4, seed: int = 1, **settings: Any
) -> dict[str, float]:
    """Compare the updates that a loss makes with the numerical gradient of the loss that it reports.

    The loss runs in plain Python, in float64 and with random parameters. It predicts the first, the middle and the last
    word of a small vocabulary from two input rows. Each value of x and of the parameters must then change by −alpha
    times the derivative of the loss with respect to that value. In large matrices, only a random part of the values is
    checked.

    Args:
        loss: Your own loss, such as Hinge(), or a built-in one.
        vocabulary: The words and counts to use; by default WORDS, with made-up counts.
        tolerance: The largest difference allowed, relative to the largest derivative in a matrix, or to 1 if that is
            smaller.
        seed: The seed of the parameters, the input rows and the words that the loss draws.
        settings: Settings of the run, such as negative=3. The default of vector_size is 5.

    Returns:
        A dict with "x" and the name of each parameter as keys. Its values are the largest absolute derivatives of the
        loss with respect to any element of x or of the parameter. 0 means that the loss does not depend on it.

    Raises:
        W2VError: An update differs from the gradient, or the loss has another mistake; the message has file and line.
        SettingsError: The settings are impossible.
    """
    if not isinstance(loss, Loss):
        raise SettingsError(f"{loss!r}: it must be a Loss, as in check_gradient(Hinge())")
    chosen = {"loss": loss.name} if LOSSES.get(loss.name) is type(loss) else {"objective": loss}
    if vocabulary is None:
        vocabulary = Vocabulary(WORDS, np.arange(2 * len(WORDS), 0, -2))
    loss = loss.prepared(vocabulary, Settings(**{"vector_size": VECTOR_SIZE} | chosen | settings))
    random = np.random.default_rng(seed)
    trial = Trial(loss, random)
    if loss.is_own:
        dry_run(loss, trial.worker(), len(vocabulary))
    largest: dict[str, float] = {}
    for centre in words_to_predict(len(vocabulary)):
        updates = trial.updates(centre)
        for name, matrix in trial.matrices.items():
            elements = _chosen_elements(updates[name], random)
            slopes = numerical_gradient(partial(trial.predict, centre), matrix, elements)
            actual = np.array([updates[name][at] for at in elements])
            if difference := _difference(name, elements, actual, -slopes, tolerance):
                method = "link" if loss.step is None else "step"
                fail(loss, method, f"predicting {vocabulary.words[centre]!r}, {difference}")
            largest[name] = max(largest.get(name, 0.0), float(np.abs(slopes).max(initial=0.0)))
    return largest


def words_to_predict(words: int) -> tuple[int, int, int]:
    """Return the first, the middle and the last word of a vocabulary."""
    return 0, words // 2, words - 1


def numerical_gradient(
    function: Callable[[], float], matrix: Array, elements: Sequence[tuple[int, ...]] | None = None
) -> NDArray[np.float64]:
    """Return the derivatives of a function with respect to elements of a matrix, by central differences.

    Args:
        function: The function, which reads the matrix.
        matrix: The matrix, which is changed during the call.
        elements: The indices of the elements, all by default.

    Returns:
        The derivatives in the shape of the matrix, or one for each of `elements`.
    """
    slopes = []
    for at in np.ndindex(matrix.shape) if elements is None else elements:
        value = matrix[at]
        matrix[at] = value + DIFFERENCE
        above = function()
        matrix[at] = value - DIFFERENCE
        slopes.append((above - function()) / (2 * DIFFERENCE))
        matrix[at] = value
    return np.array(slopes).reshape(matrix.shape if elements is None else -1)


class Trial:
    """One prediction of a loss in plain Python and float64, which can be repeated with other values.

    Attributes:
        x: The input rows, (inputs, padded D).
        parameters: The parameters of the loss, with noise added to the initial values.
        matrices: Views of x and of the parameters without padding, by name.
    """

    def __init__(self, loss: Loss, random: np.random.Generator, inputs: int = INPUT_ROWS) -> None:
        size = loss.settings.vector_size
        self.loss, self.step = loss, step_of(loss)
        self.x = np.zeros((inputs, memory.row_width(size)))
        self.x[:, :size] = random.normal(0, 1, (inputs, size))
        self.parameters = floats_as(np.float64, loss.new_parameters())
        stored = loss.stored(self.parameters)
        for matrix in stored.values():
            matrix += random.normal(0, NOISE, matrix.shape)
        self.matrices = {"x": self.x[:, :size], **stored}
        self._random_numbers = random.integers(0, 1 << 64, loss.predrawn + 1, np.uint64)

    def worker(self) -> Worker:
        """Return a new thread state, with a copy of the parameters. All states draw the same random numbers."""
        copies = {name: array.copy() for name, array in self.parameters.items()}
        n, width = self.x.shape
        worker = new_worker(self.loss, copies, n, width, np.float64)
        worker.random[:] = self._random_numbers
        return worker

    def predict(self, centre: int) -> float:
        """Return the loss of predicting a word from x."""
        return self._run(self.worker(), centre, np.zeros_like(self.x), 0.0)

    def updates(self, centre: int) -> dict[str, Array]:
        """Return what predicting a word adds to each of `matrices`, divided by alpha."""
        worker, change = self.worker(), np.zeros_like(self.x)
        self._run(worker, centre, change, ALPHA)
        updated = self.loss.stored(worker.parameters._asdict())
        updates = {name: (matrix - self.matrices[name]) / ALPHA for name, matrix in updated.items()}
        return {"x": change[:, : self.matrices["x"].shape[1]] / ALPHA, **updates}

    def _run(self, worker: Worker, centre: int, change: Array, alpha: float) -> float:
        # The random generator computes with integers that wrap around.
        with mistakes_in_loss(self.loss, "step", self.step.__code__.co_filename), np.errstate(over="ignore"):
            return float(self.step(worker, centre, self.x, change, alpha))


def step_of(loss: Loss) -> FunctionType:
    """Return the step of a loss in plain Python, which calls `choose` and `link` of the loss."""
    choose, link = partial(call_method, loss, "choose"), partial(call_method, loss, "link")
    return bind(loss.step or rows.rows_step, ((rows.choose, choose), (rows.link, link)))


def _chosen_elements(updates: Array, random: np.random.Generator) -> list[tuple[int, ...]]:
    """Return the indices of random elements: some that an update changes, and some that it does not."""
    order = random.permutation(updates.size)
    changed = updates.ravel()[order] != 0
    chosen = np.concatenate([order[changed][:MAX_CHECKED], order[~changed][:MAX_CHECKED]])
    return list(zip(*(each.tolist() for each in np.unravel_index(chosen, updates.shape)), strict=True))


def _difference(
    name: str, elements: Sequence[tuple[int, ...]], actual: Array, expected: Array, tolerance: float
) -> str:
    """Describe the largest difference of the updates of a matrix from the expected ones; "" if all are close.

    The updates and the expected updates are divided by alpha.
    """
    limit = tolerance * max(1.0, np.abs(expected).max(initial=0.0))
    if np.allclose(actual, expected, rtol=0, atol=limit):
        return ""
    worst = int(np.nan_to_num(np.abs(actual - expected), nan=np.inf).argmax())
    factor = actual @ expected / (expected @ expected) if expected.any() else 0.0
    hint = ""
    if factor and np.allclose(actual, factor * expected, rtol=0, atol=limit):
        hint = ": the sign is wrong" if abs(factor + 1) < tolerance else f": {factor:.3g} times as much"
    return (
        f"it changes {name}[{', '.join(map(str, elements[worst]))}] by {actual[worst]:.6g} · alpha, but the negative "
        f"gradient of the loss is {expected[worst]:.6g}{hint}"
    )


def dry_run(loss: Loss, s: Worker, words: int) -> None:
    """Predict the first, the middle and the last word from two rows, on copies of the parameters.

    Raises:
        W2VError: The loss has a mistake; the message has file and line.
    """
    for name in ("choose", "link") if loss.step is None else ("step",):
        if getattr(loss, name) is getattr(Loss, name):
            raise W2VError(f"{loss.label} has no {name}: write choose and link, or step")
        if hasattr(getattr(loss, name), "__self__"):
            fail(loss, name, "it takes no self: write @staticmethod above it")
    s = s._replace(parameters=type(s.parameters)(*(array.copy() for array in s.parameters)))
    for centre in words_to_predict(words):
        predict(loss, s, centre)


def predict(loss: Loss, s: Worker, centre: int) -> None:
    """Predict a word with the functions of the loss, and raise W2VError if one of them returns an invalid result."""
    n = min(INPUT_ROWS, len(s.x))
    x = s.x[:n].copy()
    x[:, : loss.settings.vector_size] = 0.1
    if loss.step is not None:
        change = np.zeros_like(x)
        value = call_method(loss, "step", s, centre, x, change, x.dtype.type(0.01))
        check_result(loss, "step", value, change)
        return
    m = call_method(loss, "choose", s, centre, x)
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or not 0 < m <= loss.max_rows:
        fail(loss, "choose", f"returned {m!r}: it must be the number of rows, from 1 to {loss.max_rows}")
    outputs = s.parameters.outputs
    if outputs.shape[1] != x.shape[1]:
        fail(
            loss,
            "parameters",
            f"rows of outputs have {outputs.shape[1]} values: memory.aligned_rows pads them to {x.shape[1]}",
        )
    if s.rows[:m].min() < 0 or s.rows[:m].max() >= len(outputs):
        fail(loss, "choose", f"chose row {s.rows[:m].max()}: outputs has {len(outputs)}")
    if len(set(s.rows[:m].tolist())) < m:
        fail(loss, "choose", "chose a row twice: choose it once and raise its weight")
    scores = s.scores[: n * m].reshape(n, m)
    rows.score(x, outputs, s.rows, s.offset, scores)
    value = call_method(loss, "link", s, scores)
    check_result(loss, "link", value, scores)


def check_result(loss: Loss, method: str, value: Any, updates: Any) -> None:
    """Raise W2VError unless the value that a method returned, and the updates that it made, are finite."""
    if not isinstance(value, float | np.floating):
        fail(loss, method, f"returned {value!r}: it must be the loss, a float")
    if not math.isfinite(value) or not np.isfinite(updates).all():
        fail(loss, method, f"with untrained vectors, the loss is {value}: it and all updates must be finite")
