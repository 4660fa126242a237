"""A numerical check of a loss: do its updates follow the gradient of the loss that it reports?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError
from w2v.losses import rows
from w2v.losses.binding import replace_calls
from w2v.losses.dry_run import dry_run
from w2v.losses.loss import Array, Loss, Worker, call_user, fail, user_error
from w2v.losses.registry import Settings
from w2v.losses.worker import floats_as, new_worker
from w2v.system import memory
from w2v.text.vocabulary import Vocabulary

WORDS = ["the", "of", "and", "king", "queen", "a", "man", "woman", "cat", "cats", "élan", "q"]
VECTOR_SIZE = 5
INPUTS = 2  # rows of x
ALPHA = 1e-7  # so small that the update of one value does not depend on that of another
DIFFERENCE = 1e-5  # of a value, on each side
SPREAD = 0.5  # standard deviation of what is added to the initial parameters, of which many are zero
MAX_CHECKED = 200  # values of a matrix that an update changes, and as many of those that it leaves alone


def check_gradient(
    loss: Loss,
    /,
    *,
    vocabulary: Vocabulary | None = None,
    tolerance: float = 1e-4,
    seed: int = 1,
    **settings: Any,
) -> dict[str, float]:
    """Compare the updates that a loss makes with the numerical gradient of the loss that it reports.

    The loss runs in plain Python, in float64 and with random parameters. It predicts the first, the middle and the last
    word of a small vocabulary from two input rows. Each value of x and of the parameters must then change by −alpha
    times the derivative of the loss by that value. Of large matrices, only a random part of the values is checked.

    Args:
        loss: your own loss, such as Hinge(), or a built-in one.
        vocabulary: the words and counts to use instead of twelve words.
        tolerance: the largest difference allowed, relative to the largest derivative in a matrix, or to 1 if that is
            smaller.
        seed: for the parameters, the input rows and the words that the loss draws.
        settings: of the run, such as negative=3; vector_size is 5 unless given.

    Returns the largest absolute derivative found in x and in each parameter, by name: 0 means that the loss does not
    depend on it.

    Raises W2VError, with file and line, for an update that differs from the gradient and for any other mistake in the
    loss; SettingsError for impossible settings.
    """
    if not isinstance(loss, Loss):
        raise SettingsError(f"{loss!r}: it must be a Loss, as in check_gradient(Hinge())")
    own = f"{type(loss).__module__}:{type(loss).__qualname__}"
    chosen = {"objective": own} if loss.name == Loss.name else {"loss": loss.name}
    if vocabulary is None:
        vocabulary = Vocabulary(WORDS, np.arange(2 * len(WORDS), 0, -2))
    loss = loss.prepared(vocabulary, Settings(**{"vector_size": VECTOR_SIZE} | chosen | settings))
    random = np.random.default_rng(seed)
    trial = Trial(loss, random)
    if loss.name == Loss.name:
        dry_run(loss, trial.worker(), len(vocabulary))
    largest: dict[str, float] = {}
    for centre in (0, len(vocabulary) // 2, len(vocabulary) - 1):
        updates = trial.updates(centre)
        for name, matrix in trial.matrices.items():
            elements = _chosen_elements(updates[name], random)
            slopes = numerical_gradient(partial(trial.predict, centre), matrix, elements)
            found = np.array([updates[name][at] for at in elements])
            if wrong := _difference(name, elements, found, -slopes, tolerance):
                fail(loss, "link" if loss.step is None else "step", f"predicting {vocabulary.words[centre]!r}, {wrong}")
            largest[name] = max(largest.get(name, 0.0), float(np.abs(slopes).max(initial=0.0)))
    return largest


def numerical_gradient(
    function: Callable[[], float], matrix: Array, elements: Sequence[tuple[int, ...]] | None = None
) -> NDArray[np.float64]:
    """Return the central differences of `function` by the elements of `matrix`, which it reads.

    The result has the shape of the matrix, or one value for each of `elements`, a list of indices.
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
        x: the input rows, (INPUTS, D padded). parameters: those of the loss, far from their initial values.
        matrices: views of both without padding, by name.
    """

    def __init__(self, loss: Loss, random: np.random.Generator, inputs: int = INPUTS) -> None:
        size = loss.settings.vector_size
        self.loss, self.step = loss, step_of(loss)
        self.x = np.zeros((inputs, memory.row_width(size)))
        self.x[:, :size] = random.normal(0, 1, (inputs, size))
        self.parameters = floats_as(np.float64, loss.new_parameters())
        stored = loss.stored(self.parameters)
        for matrix in stored.values():
            matrix += random.normal(0, SPREAD, matrix.shape)
        self.matrices = {"x": self.x[:, :size], **stored}
        self._numbers = random.integers(0, 1 << 64, loss.predrawn + 1, np.uint64)

    def worker(self) -> Worker:
        """A new worker, on a copy of the parameters, which draws the same random numbers as the one before."""
        copies = {name: array.copy() for name, array in self.parameters.items()}
        n, width = self.x.shape
        worker = new_worker(self.loss, copies, n, width, np.float64)
        worker.random[:] = self._numbers
        return worker

    def predict(self, centre: int) -> float:
        """Return the loss of predicting a word from x."""
        return self._run(self.worker(), centre, np.zeros_like(self.x), 0.0)

    def updates(self, centre: int) -> dict[str, Array]:
        """Return what predicting a word adds to each of `matrices`, divided by alpha."""
        worker, change = self.worker(), np.zeros_like(self.x)
        self._run(worker, centre, change, ALPHA)
        moved = self.loss.stored(worker.parameters._asdict())
        found = {name: (matrix - self.matrices[name]) / ALPHA for name, matrix in moved.items()}
        return {"x": change[:, : self.matrices["x"].shape[1]] / ALPHA, **found}

    def _run(self, worker: Worker, centre: int, change: Array, alpha: float) -> float:
        try:
            with np.errstate(over="ignore"):  # of random numbers, which are integers that wrap around
                return float(self.step(worker, centre, self.x, change, alpha))
        except Exception as error:
            raise user_error(self.loss, "step", error, self.step.__code__.co_filename) from error


def step_of(loss: Loss) -> FunctionType:
    """Return the step of a loss as plain Python, which calls its `choose` and `link`."""
    choose, link = partial(call_user, loss, "choose"), partial(call_user, loss, "link")
    return replace_calls(loss.step or rows.rows_step, ((rows.choose, choose), (rows.link, link)))


def _chosen_elements(updates: Array, random: np.random.Generator) -> list[tuple[int, ...]]:
    """Return indices of random elements: of those that an update changes, and of those that it leaves alone."""
    order = random.permutation(updates.size)
    changed = updates.ravel()[order] != 0
    chosen = np.concatenate([order[changed][:MAX_CHECKED], order[~changed][:MAX_CHECKED]])
    return list(zip(*(each.tolist() for each in np.unravel_index(chosen, updates.shape)), strict=True))


def _difference(name: str, elements: Sequence[tuple[int, ...]], found: Array, expected: Array, tolerance: float) -> str:
    """Say how the updates of a matrix, divided by alpha, differ most from what they should be; empty if they do not."""
    limit = tolerance * max(1.0, np.abs(expected).max(initial=0.0))
    if np.allclose(found, expected, rtol=0, atol=limit):
        return ""
    worst = int(np.nan_to_num(np.abs(found - expected), nan=np.inf).argmax())
    factor = found @ expected / (expected @ expected) if expected.any() else 0.0
    hint = ""
    if factor and np.allclose(found, factor * expected, rtol=0, atol=limit):
        hint = ": the sign is wrong" if abs(factor + 1) < tolerance else f": {factor:.3g} times as much"
    return (
        f"it changes {name}[{', '.join(map(str, elements[worst]))}] by {found[worst]:.6g} · alpha, but the negative "
        f"gradient of the loss is {expected[worst]:.6g}{hint}"
    )
