"""What an objective is: the loss of a prediction, and how what it has learnt is moved by it."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from w2v import memory
from w2v.errors import W2VError
from w2v.losses.layers import Layer
from w2v.settings import LossName, Settings
from w2v.text.vocabulary import Vocabulary

Array = NDArray[Any]
Worker = Any  # a named tuple, see Objective
PARAMETER = "parameter."


class Objective:
    """A loss of the Numba kernel. A subclass says how words are predicted from the rows x; see docs/objectives.md.

    It gives either `choose` and `link`, where output rows are scored by x (the rows of the parameter "outputs"), or
    `step`, which may do anything. These are static methods: plain functions that Numba compiles, with all plain
    functions that they call. Their first argument s is a thread's own:

        s.parameters    what `parameters` returned, shared by all threads     s.data      what `data` holds
        s.random        for draw(s.random), 64 random bits                    s.scratch   what `scratch` returned
        s.rows, s.target, s.offset, s.weight                                  (most_rows,), which `choose` fills
        s.scores, s.room    room for n · most_rows numbers, n being the input rows of a step
        s.place         the number of the window in its chunk of text, and of the step in the window

    The other methods run in Python, before training and after it.

    Attributes:
        vocabulary, settings: those of the run.
        most_rows: output rows that `choose` can choose, at most. mean_rows: those that a prediction takes, about.
        data: arrays that the functions read. turns: whether every context word takes a step of its own.
        ahead: random numbers that s.random has beside its state, drawn when a chunk of text begins.
    """

    vocabulary: Vocabulary
    settings: Settings
    loss: LossName = "objective"
    turns: ClassVar[bool] = False
    ahead: int = 0
    data: Mapping[str, Array] = {}

    # -- in Python ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return f"{type(self).__module__}:{type(self).__qualname__}"

    def prepare(self) -> None:
        """Make ready what the vocabulary and the settings decide, `data` for one."""

    @property
    def most_rows(self) -> int:
        return len(self.vocabulary)

    @property
    def mean_rows(self) -> float:
        return self.most_rows

    def parameters(self, random: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """What is learnt beside the input vectors, as it begins: C-contiguous float32 matrices by name.

        By default "outputs", a row of zeros for each word. Rows that x is multiplied with are as long as those of x:
        D numbers, padded by zeros, as memory.aligned_rows makes them.
        """
        return {"outputs": memory.aligned_rows(len(self.vocabulary), self.settings.vector_size)}

    def stored(self, parameters: Mapping[str, Array]) -> dict[str, NDArray[np.float32]]:
        """Views of the parameters without padding, for the model and its file.

        By default, those whose rows are as long as those of x are taken to be padded as these are.
        """
        size, width = self.settings.vector_size, memory.row_width(self.settings.vector_size)
        return {name: array[:, :size] if array.shape[1] == width else array for name, array in parameters.items()}

    def scratch(self, inputs: int) -> dict[str, Array]:
        """Room for one thread, for a step of so many input rows at most."""
        return {}

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        """log p(word | row) of each word, (N, V) for rows (N, D), in their dtype, from what `stored` returned.

        By default the softmax of the words' scores.
        """
        return log_softmax(rows @ parameters["outputs"].T.astype(rows.dtype))

    # -- compiled -------------------------------------------------------------------------------

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        """Choose the output rows that predict the centre word: fill s.rows and s.target; return how many."""
        raise NotImplementedError

    @staticmethod
    def link(s: Worker, scores: Array) -> float:
        """Turn scores (n, m) into −∂loss/∂score, in place; return the summed loss."""
        raise NotImplementedError

    step: Any = None
    """step(s, centre, x, change, alpha): predict the centre word from each of the rows x (n, D padded); move the
    parameters, add to `change` (n, D padded, zeros) what is to be added to x, return the summed loss."""

    # -- as a layer of w2v/outputs.py -----------------------------------------------------------

    @property
    def rows(self) -> int:
        return len(self.vocabulary)

    @property
    def tensors(self) -> dict[str, Array]:
        return {}

    def prepared(self, vocabulary: Vocabulary, settings: Settings) -> Self:
        """A copy of this objective for a run."""
        made = copy.copy(self)
        made.vocabulary, made.settings = vocabulary, settings
        tried(made, "prepare")
        made._check_arrays("data", made.data)
        if not isinstance(made.most_rows, int) or made.most_rows < 1:
            raise W2VError(f"objective {self.name}: most_rows is {made.most_rows!r}: it must be a whole number above 0")
        return made

    def new_parameters(self) -> dict[str, NDArray[np.float32]]:
        """Those of `parameters`. Raises W2VError for what they cannot be."""
        found: dict[str, NDArray[np.float32]] = tried(self, "parameters", np.random.default_rng(self.settings.seed))
        self._check_arrays("parameters", found)
        for name, array in found.items():
            what = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            if what != f"float32 {getattr(array, 'shape', 0)}" or array.ndim != 2 or not array.flags.c_contiguous:
                raise W2VError(
                    f"objective {self.name}: parameter {name!r} is {what}: it must be a C-contiguous float32 matrix"
                )
        return found

    def new_scratch(self, inputs: int) -> dict[str, Array]:
        """That of `scratch`. Raises W2VError for what it cannot be."""
        found: dict[str, Array] = tried(self, "scratch", inputs)
        self._check_arrays("scratch", found)
        return found

    def _check_arrays(self, what: str, found: Any) -> None:
        if not isinstance(found, Mapping):
            raise W2VError(f"objective {self.name}: {what} gave {type(found).__name__}: it must be a dict of arrays")
        for name, array in found.items():
            if not isinstance(name, str) or not name.isidentifier() or name[0] == "_" or "__" in name:
                raise W2VError(f"objective {self.name}: {what} have the name {name!r}: write a word, as s.{what}.word")
            if not isinstance(array, np.ndarray | int | float | np.generic):
                raise W2VError(f"objective {self.name}: {what} {name!r} is {type(array).__name__}: it must be an array")


def tried(objective: Objective, what: str, *arguments: Any) -> Any:
    """What a method returns. Raises W2VError for any exception, with its place."""
    function = getattr(objective, what)
    function = getattr(function, "py_func", function)  # plain, if it is compiled already
    try:
        with np.errstate(all="ignore"):  # numbers are looked at afterwards
            return function(*arguments)
    except W2VError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        frame = next(
            (frame for frame in reversed(frames) if frame.filename == function.__code__.co_filename), frames[-1]
        )
        place = f"{Path(frame.filename).name}, line {frame.lineno}"
        raise W2VError(f"objective {objective.name}: {what}, {place}: {type(error).__name__}: {error}") from error


def wrong(objective: Objective, what: str, said: str) -> None:
    code = getattr(objective, what).__code__
    place = f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
    raise W2VError(f"objective {objective.name}: {what}, {place}: {said}")


def file_names(learnt: Mapping[str, Array]) -> dict[str, Array]:
    """Matrices by the names that they have in files: all but "outputs" with a prefix."""
    return {name if name == "outputs" else PARAMETER + name: array for name, array in learnt.items()}


def shapes(layer: Layer, size: int) -> dict[str, tuple[int, ...]]:
    """The shapes of what a layer learns, without padding, by the names in files."""
    if isinstance(layer, Objective):
        return {name: array.shape for name, array in file_names(layer.stored(layer.new_parameters())).items()}
    return {"outputs": (layer.rows, size)}


def log_softmax(scores: Array) -> Array:
    """Of each row, in place."""
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return scores
