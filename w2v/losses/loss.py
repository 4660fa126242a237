"""What a loss is: which output rows predict a word, how scores become a gradient, and what all of it needs.

This protocol is all that the rest of the package knows of a loss, one of ours or a user's own (docs/own-loss.md).
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from w2v import memory
from w2v.errors import SettingsError, W2VError
from w2v.formats import bfloat16
from w2v.settings import BaseSettings
from w2v.text.vocabulary import Vocabulary

Array = NDArray[Any]
Worker = Any  # a named tuple, see Loss
Integers = NDArray[np.integer[Any]]
PREFIX = "parameter."  # of a parameter's name in a file


class Alpha(NamedTuple):
    """The learning rate that measured best for each model."""

    skipgram: float
    cbow: float


class Loss:
    """The loss of predicting a word from input rows x, and how what it has learnt moves.

    A loss gives either `choose` and `link`, where output rows are scored by x (the rows of the parameter "outputs"), or
    `step`, which may do anything. These are static methods: plain functions that Numba compiles, with all plain
    functions that they call. Their first argument s is a thread's own:

        s.parameters    what `parameters` returned, shared by all threads     s.data      what `data` holds
        s.random        for draw(s.random), 64 random bits                    s.scratch   what `scratch` returned
        s.rows, s.target, s.offset, s.weight                                  (max_rows,), which `choose` fills
        s.scores, s.room    room for n · max_rows numbers, n being the input rows of a step
        s.place         the number of the window in its chunk of text, and of the step in the window

    The losses of the Cython kernel have a branch there instead (docs/new-loss.md); their `choose` and `link` say the
    same. The other methods run in Python, before training and after it. V is the size of the vocabulary, D that of
    a vector.

    Attributes:
        name: what --loss calls it. help: half a sentence for --help.
        kernels: the kernels that have it, the default first.
        alpha: the default learning rate of each model, with the faithful gradient (bench/defaults.py).
        settings_class: its options are the fields of this class.
        storages: how its matrices can be kept.
        fixed_vocabulary: why no words can be added to a trained model; empty where they can.
        no_word_outputs: why row w of "outputs" is no vector of word w; empty where it is.
        log_frequencies: whether these rows keep the words' log frequency, since scores are log p(w) and a constant.
        epochs_by_size: whether fewer words of text are passed over more often by default.
        vocabulary, settings: those of the run.
        max_rows: output rows that `choose` can choose, at most. expected_rows: those that a prediction takes, about.
        data: arrays that the functions read, by name.
        sequential: whether the context words of a window take their steps one after the other.
        predrawn: random numbers beside s.random's state, drawn when a chunk of text begins.
        notice: what the user should know before training begins; mostly nothing.
    """

    name: ClassVar[str] = "objective"
    help: ClassVar[str] = ""
    kernels: ClassVar[tuple[str, ...]] = ("numba",)
    alpha: ClassVar[Alpha] = Alpha(skipgram=0.05, cbow=0.05)
    settings_class: ClassVar[type[BaseSettings]] = BaseSettings
    storages: ClassVar[tuple[str, ...]] = ("float32",)
    fixed_vocabulary: ClassVar[str] = "only the loss itself knows what new words need"
    no_word_outputs: ClassVar[str] = "its output rows do not belong to words"
    log_frequencies: ClassVar[bool] = False
    epochs_by_size: ClassVar[bool] = False
    sequential: ClassVar[bool] = False

    vocabulary: Vocabulary
    settings: Any  # of settings_class
    data: Mapping[str, Array] = {}
    predrawn: int = 0
    notice: str = ""

    # -- in Python ------------------------------------------------------------------------------

    @property
    def label(self) -> str:
        """How messages name it: module:Name for a user's own."""
        own = self.name == Loss.name
        return f"objective {type(self).__module__}:{type(self).__qualname__}" if own else f"loss {self.name}"

    @classmethod
    def check(cls, settings: Any) -> None:
        """Raise SettingsError for settings that do not go together."""

    @classmethod
    def check_vectors(cls, settings: BaseSettings) -> None:
        """Raise SettingsError where the word vectors that are asked for need output rows of words."""
        if cls.no_word_outputs and settings.vectors not in (None, "input"):
            raise SettingsError(f"vectors {settings.vectors}: with loss {cls.name} {cls.no_word_outputs}; choose input")

    def prepare(self) -> None:
        """Compute what vocabulary and settings decide, `data` for one.

        Raises SettingsError for settings that do not fit the vocabulary.
        """

    def restore(self, tensors: Mapping[str, Array]) -> None:
        """As `prepare`, from the `tensors` that a file keeps. Raises W2VError where they are damaged."""
        self.prepare()

    @property
    def tensors(self) -> dict[str, Array]:
        """What a file must keep beside the parameters."""
        return {}

    @property
    def max_rows(self) -> int:
        return len(self.vocabulary)

    @property
    def expected_rows(self) -> float:
        return self.max_rows

    @property
    def rows(self) -> int:
        """Rows of "outputs"."""
        return len(self.vocabulary)

    @property
    def memory_rows(self) -> int:
        """Rows of D values that the parameters take, about."""
        return self.rows

    def parameters(self, random: np.random.Generator) -> dict[str, Array]:
        """What is learnt beside the input vectors, at the start: C-contiguous matrices by name.

        By default "outputs", rows of zeros. Rows that x is multiplied with are as long as those of x: D numbers, padded
        by zeros, as memory.aligned_rows makes them. Their dtype is that of settings.storage.
        """
        return {"outputs": memory.aligned_rows(self.rows, self.settings.vector_size, self._dtype)}

    def stored(self, parameters: Mapping[str, Array]) -> dict[str, Array]:
        """Views of the parameters without padding, for the model and its file.

        By default, those whose rows are as long as those of x are taken to be padded as these are.
        """
        size, width = self.settings.vector_size, memory.row_width(self.settings.vector_size, self._dtype)
        return {name: array[:, :size] if array.shape[1] == width else array for name, array in parameters.items()}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of what `stored` returns."""
        if type(self).parameters is Loss.parameters:
            return {"outputs": (self.rows, self.settings.vector_size)}
        return {name: array.shape for name, array in self.stored(self.new_parameters()).items()}

    def scratch(self, inputs: int) -> dict[str, Array]:
        """Room for one thread, for a step of this many input rows at most."""
        return {}

    # -- what the model predicts ----------------------------------------------------------------

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        """log p(word | row), natural, of each word: (N, V) for rows (N, D), in their dtype.

        `parameters` is what `stored` returned. By default the softmax of the words' scores.
        """
        return log_softmax(rows @ parameters["outputs"].T.astype(rows.dtype))

    def log_probabilities_of(
        self, parameters: Mapping[str, Array], rows: Array, numbers: Integers, words: Integers
    ) -> Array:
        """log p(words[k] | rows[numbers[k]]), natural: (N,) for rows (M, D) and `numbers` and `words`, both (N,)."""
        return self.distribution(parameters, rows)[numbers, words]

    @property
    def scores_per_row(self) -> int:
        """How many scores log_probabilities_of computes at once for a row, at most."""
        return len(self.vocabulary)

    @property
    def max_rank(self) -> int | None:
        """The highest rank that the matrix of log_probabilities can have, where there is a limit below V."""
        return None

    def distribution(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        """log_probabilities. Raises W2VError where they are no matrix of the right shape."""
        found: Array = call_user(self, "log_probabilities", parameters, rows)
        expected = len(rows), len(self.vocabulary)
        if not isinstance(found, np.ndarray) or found.shape != expected:
            fail(self, "log_probabilities", f"returned {np.shape(found)}: it must be an array {expected}")
        return found

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

    # -- for a run ------------------------------------------------------------------------------

    def prepared(
        self, vocabulary: Vocabulary, settings: BaseSettings, tensors: Mapping[str, Array] | None = None
    ) -> Self:
        """A copy of this loss for a run, or from the `tensors` of a file.

        Raises SettingsError where the settings do not fit the vocabulary, W2VError for damaged tensors and for what a
        user's own loss does wrong.
        """
        self.check_vectors(settings)
        made = copy.copy(self)
        made.vocabulary, made.settings = vocabulary, settings
        call_user(made, *(("prepare",) if tensors is None else ("restore", tensors)))
        made._check_arrays("data", made.data)
        if not isinstance(made.max_rows, int) or made.max_rows < 1:
            raise W2VError(f"{made.label}: max_rows is {made.max_rows!r}: it must be a whole number above 0")
        return made

    def new_parameters(self) -> dict[str, Array]:
        """Those of `parameters`. Raises W2VError for what they cannot be."""
        found: dict[str, Array] = call_user(self, "parameters", np.random.default_rng(self.settings.seed))
        self._check_arrays("parameters", found)
        dtype = self._dtype
        for name, array in found.items():
            what = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            if what != f"{dtype} {getattr(array, 'shape', 0)}" or array.ndim != 2 or not array.flags.c_contiguous:
                raise W2VError(f"{self.label}: parameter {name!r} is {what}: it must be a C-contiguous {dtype} matrix")
        return found

    def new_scratch(self, inputs: int) -> dict[str, Array]:
        """That of `scratch`. Raises W2VError for what it cannot be."""
        found: dict[str, Array] = call_user(self, "scratch", inputs)
        self._check_arrays("scratch", found)
        return found

    @property
    def _dtype(self) -> np.dtype[Any]:
        return bfloat16.dtype_of(self.settings.storage)

    def _check_arrays(self, what: str, found: Any) -> None:
        if not isinstance(found, Mapping):
            raise W2VError(f"{self.label}: {what} gave {type(found).__name__}: it must be a dict of arrays")
        for name, array in found.items():
            if not isinstance(name, str) or not name.isidentifier() or name[0] == "_" or "__" in name:
                raise W2VError(f"{self.label}: {what} have the name {name!r}: write a word, as s.{what}.word")
            if not isinstance(array, np.ndarray | int | float | np.generic):
                raise W2VError(f"{self.label}: {what} {name!r} is {type(array).__name__}: it must be an array")


def call_user(loss: Loss, what: str, *arguments: Any) -> Any:
    """What a method returns. Raises W2VError for any exception of a user's own code, with its place."""
    function = getattr(loss, what)
    if loss.name != Loss.name:
        return function(*arguments)
    function = getattr(function, "py_func", function)  # plain, if it is compiled already
    try:
        with np.errstate(all="ignore"):  # numbers are checked afterwards
            return function(*arguments)
    except W2VError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        frame = next(
            (frame for frame in reversed(frames) if frame.filename == function.__code__.co_filename), frames[-1]
        )
        place = f"{Path(frame.filename).name}, line {frame.lineno}"
        raise W2VError(f"{loss.label}: {what}, {place}: {type(error).__name__}: {error}") from error


def fail(loss: Loss, what: str, message: str) -> None:
    """Raise W2VError with the place of a method."""
    code = getattr(loss, what).__code__
    place = f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
    raise W2VError(f"{loss.label}: {what}, {place}: {message}")


def file_names(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by the names that they have in files: all but "outputs" with a prefix."""
    return {name if name == "outputs" else PREFIX + name: array for name, array in parameters.items()}


def log_softmax(scores: Array) -> Array:
    """The log softmax of each row, in place."""
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return scores
