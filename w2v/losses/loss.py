"""The protocol of losses: which output rows predict a word, and how their scores become a gradient.

The rest of the package uses a loss, built in or a user's own (docs/own-loss.md), only by this protocol.
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError
from w2v.formats import bfloat16
from w2v.options import check_options
from w2v.settings import GeneralOptions
from w2v.system import memory
from w2v.text.vocabulary import Vocabulary

Array = NDArray[Any]
Worker = Any  # a named tuple, see Loss
Integers = NDArray[np.integer[Any]]
PREFIX = "parameter."  # of a parameter's name in a file


class Alpha(NamedTuple):
    """The learning rate that measured best for each model."""

    skipgram: float
    cbow: float


@dataclass(frozen=True, kw_only=True)
class LossOptions:
    """The options that a loss has in addition to the general ones: none. Losses with options have a subclass.

    Raises SettingsError, naming the value, for impossible values. A subclass may also check how they fit each other.
    """

    def __post_init__(self) -> None:
        check_options(self)


class Loss:
    """The loss of predicting a word from input rows x.

    A loss has either `choose` and `link`, if its scores are products of x and rows of the parameter "outputs", or
    `step`, which may compute anything. These are static methods: plain functions, which Numba compiles together with
    all plain functions that they call. Their first argument s is the state of a thread:

        s.parameters    what `parameters` returned, shared by all threads     s.data      what `data` holds
        s.random        for draw(s.random), 64 random bits                    s.scratch   what `scratch` returned
        s.rows, s.target, s.offset, s.weight                                  (max_rows,), which `choose` fills
        s.scores, s.room    working memory for n · max_rows numbers each, for steps of n input rows
        s.position      indices of the window in its chunk of text, and of the step in its window

    Losses of the Cython kernel also have a branch there (docs/new-loss.md), which does the same as `choose` and `link`.
    The other methods run in Python, before and after training. V is the size of the vocabulary, D that of a vector.

    Attributes:
        name: its name for --loss. help: its description for --help.
        kernels: the kernels that can train it, the default first.
        branch: the branch of the Cython kernel that chooses its rows, if there is one.
        alpha: the default learning rate of each model, with the faithful gradient (bench/README.md).
        options_class: the dataclass of its options; a loss of your own can have that of a built-in one.
        storages: the settings of `storage` that it supports.
        fixed_vocabulary: why no words can be added to a trained model; empty if they can.
        no_word_outputs: why row w of "outputs" is not a vector of word w; empty if it is.
        log_frequencies: whether these rows contain the words' log frequency, since scores are log p(w) + a constant.
        rank_above_size: the highest possible rank of the matrix of log_probabilities, minus D; None if there is no
            limit below V.
        epochs_by_size: whether a smaller text gets more epochs by default.
        vocabulary, settings, options: those of the run; `options` is an object of options_class.
        data: arrays that the functions read, by name.
        tensors: arrays that a file must store in addition to the parameters.
        curvature: of the loss of a prediction, along a row: n updates at the learning rate alpha take a row about the
            part 1 - exp(-curvature · alpha · n) of the way to where they lead.
        supports_deterministic: whether several threads of the compiled kernel can give the same bits on every run
            (`deterministic`).
        sequential: whether the context words of a window take their steps one after the other.
        predrawn: how many random numbers follow the state in s.random; they are drawn at the start of each chunk.
        notice: a warning to show before training; usually empty.
    """

    name: ClassVar[str] = "objective"
    help: ClassVar[str] = ""
    kernels: ClassVar[tuple[str, ...]] = ("numba",)
    branch: ClassVar[str] = ""
    alpha: ClassVar[Alpha] = Alpha(skipgram=0.05, cbow=0.05)
    options_class: ClassVar[type[LossOptions]] = LossOptions
    storages: ClassVar[tuple[str, ...]] = ("float32",)
    fixed_vocabulary: ClassVar[str] = "it does not say how to add words (fixed_vocabulary)"
    no_word_outputs: ClassVar[str] = "its output rows do not belong to words"
    log_frequencies: ClassVar[bool] = False
    epochs_by_size: ClassVar[bool] = False
    curvature: ClassVar[float] = 0.04
    supports_deterministic: ClassVar[bool] = False
    sequential: ClassVar[bool] = False

    vocabulary: Vocabulary
    settings: GeneralOptions
    options: Any  # of options_class
    data: Mapping[str, Array] = {}
    tensors: dict[str, Array]
    rank_above_size: int | None = None
    predrawn: int = 0
    notice: str = ""

    # -- in Python ------------------------------------------------------------------------------

    @property
    def label(self) -> str:
        """Its name in messages: module:Name for a user's own loss."""
        own = self.name == Loss.name
        return f"objective {type(self).__module__}:{type(self).__qualname__}" if own else f"loss {self.name}"

    @classmethod
    def check(cls, settings: GeneralOptions, options: Any) -> None:
        """Raise SettingsError for options of the loss that contradict general ones."""

    @classmethod
    def check_vectors(cls, settings: GeneralOptions) -> None:
        """Raise SettingsError if the word vectors in the settings cannot be made of input and output rows."""
        reason = cls.no_word_outputs
        if settings.vector_size < 2 and not reason:  # they are combined at length 1, and a value would be -1 or 1
            reason = "vector_size 1 leaves only the signs of rows"
        if reason and settings.vectors not in (None, "input"):
            raise SettingsError(f"vectors {settings.vectors}: with loss {cls.name} {reason}; choose input")

    def prepare(self) -> None:
        """Compute what depends on vocabulary and settings: `data`, and sizes that are not the default.

        Raises SettingsError for settings that do not fit the vocabulary.
        """

    def restore(self, tensors: Mapping[str, Array]) -> None:
        """Like `prepare`, from the `tensors` of a file, parameters included. Raises W2VError if they are damaged.

        A loss that allocates memory by its settings must call `check_stored` first: the settings of a damaged file may
        require any amount.
        """
        self.prepare()

    def check_stored(self, tensors: Mapping[str, Array]) -> None:
        """Raise W2VError unless the parameters among a file's `tensors` are those of this loss, in its shapes."""
        shapes = file_names(self.shapes)
        for name in tensors:
            if name not in shapes and is_parameter(name):
                raise W2VError(f"damaged: it has {name[:60]!r}, which {self.label} does not have")
        for name, shape in shapes.items():
            array = tensors.get(name, np.empty(0))
            if not bfloat16.is_training_dtype(array) or array.shape != shape:
                what = "output matrix" if name == "outputs" else name
                raise W2VError(f"damaged: its {what} has shape {array.shape} and type {array.dtype}, not {shape}")

    # -- sizes, by default; `prepare` may set others ----------------------------------------------

    @cached_property
    def rows(self) -> int:
        """Rows of "outputs"."""
        return len(self.vocabulary)

    @cached_property
    def max_rows(self) -> int:
        """Maximum number of output rows of a prediction."""
        return len(self.vocabulary)

    @cached_property
    def expected_rows(self) -> float:
        """Approximate mean number of output rows of a prediction."""
        return self.max_rows

    @cached_property
    def memory_rows(self) -> int:
        """Approximate size of the parameters, in rows of D values."""
        return self.rows

    # -- parameters -----------------------------------------------------------------------------

    def updates(self, words: NDArray[np.float64]) -> NDArray[np.float64]:
        """The expected updates of each row of "outputs" by a prediction, (R,), given the words' probabilities (V,)."""
        return np.ones(self.rows)

    def parameters(self, random: np.random.Generator) -> dict[str, Array]:
        """Initial values of all that is learnt in addition to the input vectors: C-contiguous matrices by name.

        By default "outputs", zeros. Rows that are multiplied with x have its width: D values, padded with zeros by
        memory.aligned_rows. Their dtype is that of settings.storage.
        """
        return {"outputs": memory.aligned_rows(self.rows, self.settings.vector_size, self._dtype)}

    def stored(self, parameters: Mapping[str, Array]) -> dict[str, Array]:
        """Views of the parameters without padding, for the model and its file.

        By default, matrices as wide as x are assumed to be padded as x is.
        """
        size, width = self.settings.vector_size, memory.row_width(self.settings.vector_size, self._dtype)
        return {name: array[:, :size] if array.shape[1] == width else array for name, array in parameters.items()}

    @classmethod
    def summary(cls, tensors: Mapping[str, Array]) -> dict[str, Any]:
        """Values that `w2v info` shows in place of the settings of the same names, from the tensors of a file."""
        return {}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the matrices that `stored` returns."""
        if type(self).parameters is Loss.parameters:
            return {"outputs": (self.rows, self.settings.vector_size)}
        return {name: array.shape for name, array in self.stored(self.new_parameters()).items()}

    def scratch(self, inputs: int) -> dict[str, Array]:
        """Working memory of a thread, for steps of at most this many input rows."""
        return {}

    # -- predictions of the model ---------------------------------------------------------------

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        """log p(word | row), natural, of each word: (N, V) for rows (N, D), in their dtype.

        `parameters` are those that `stored` returned. By default the softmax of the words' scores.
        """
        return log_softmax(rows @ parameters["outputs"].T.astype(rows.dtype))

    def log_probabilities_of(
        self, parameters: Mapping[str, Array], rows: Array, indices: Integers, words: Integers, common: Integers
    ) -> tuple[Array, Array]:
        """log p(words[k] | rows[indices[k]]), and log p of `common` words (U,) for each row, natural: (N,) and (M, U).

        Rows are (M, D), `indices` and `words` both (N,).
        """
        found = self.distribution(parameters, rows)
        return found[indices, words], found[:, common]

    @property
    def scores_per_row(self) -> int:
        """The maximum number of scores that log_probabilities_of computes at once for a row."""
        of_all_words = type(self).log_probabilities_of is Loss.log_probabilities_of
        return len(self.vocabulary) if of_all_words else self.max_rows

    @property
    def max_rank(self) -> int | None:
        """The highest possible rank of the matrix of log_probabilities; None if there is no limit below V."""
        return None if self.rank_above_size is None else self.settings.vector_size + self.rank_above_size

    def distribution(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        """log_probabilities. Raises W2VError if their shape is wrong."""
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
    """step(s, centre, x, change, alpha): predict the centre word from each of the rows x (n, D padded); update the
    parameters, add the update of x to `change` (n, D padded, zeros), return the summed loss."""

    # -- for a run ------------------------------------------------------------------------------

    def prepared(self, vocabulary: Vocabulary, settings: Any, tensors: Mapping[str, Array] | None = None) -> Self:
        """A copy of this loss for a run with these Settings, or from the `tensors` of a file.

        Raises SettingsError for settings that do not fit the vocabulary, W2VError for damaged tensors and for mistakes
        in a user's own loss.
        """
        self.check_vectors(settings)
        if not isinstance(settings.loss_options, self.options_class):
            name = self.options_class.__name__
            raise SettingsError(
                f"{self.label}: its options_class {name} is not that of a built-in loss: use one of these"
            )
        made = copy.copy(self)
        made.vocabulary, made.settings, made.options, made.tensors = vocabulary, settings, settings.loss_options, {}
        if tensors is None:
            call_user(made, "prepare")
        else:
            call_user(made, "restore", tensors)
            made.check_stored(tensors)
        made._check_arrays("data", made.data)
        if not isinstance(made.max_rows, int) or made.max_rows < 1:
            raise W2VError(f"{made.label}: max_rows is {made.max_rows!r}: it must be a whole number above 0")
        return made

    def new_parameters(self) -> dict[str, Array]:
        """The result of `parameters`. Raises W2VError if it is invalid."""
        found: dict[str, Array] = call_user(self, "parameters", np.random.default_rng(self.settings.seed))
        self._check_arrays("parameters", found)
        dtype = self._dtype
        for name, array in found.items():
            what = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            if what != f"{dtype} {getattr(array, 'shape', 0)}" or array.ndim != 2 or not array.flags.c_contiguous:
                raise W2VError(f"{self.label}: parameter {name!r} is {what}: it must be a C-contiguous {dtype} matrix")
        return found

    def new_scratch(self, inputs: int) -> dict[str, Array]:
        """The result of `scratch`. Raises W2VError if it is invalid."""
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
    """Call a method of a loss. Raises W2VError, with file and line, for any exception in a user's own loss."""
    function = getattr(loss, what)
    if loss.name != Loss.name:
        return function(*arguments)
    function = getattr(function, "py_func", function)  # the plain function of a compiled one
    try:
        with np.errstate(all="ignore"):  # numbers are checked afterwards
            return function(*arguments)
    except W2VError:
        raise
    except Exception as error:
        raise user_error(loss, what, error, function.__code__.co_filename) from error


def user_error(loss: Loss, what: str, error: Exception, file: str | None = None) -> W2VError:
    """An exception in a user's own code as W2VError, with its innermost line in `file`, or else in any file."""
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((frame for frame in reversed(frames) if frame.filename == file), frames[-1])
    place = f"{Path(frame.filename).name}, line {frame.lineno}"
    return W2VError(f"{loss.label}: {what}, {place}: {type(error).__name__}: {error}")


def fail(loss: Loss, what: str, message: str) -> None:
    """Raise W2VError with file and line of a method."""
    code = getattr(loss, what).__code__
    place = f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
    raise W2VError(f"{loss.label}: {what}, {place}: {message}")


def file_names(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by their names in files: with a prefix, except "outputs"."""
    return {name if name == "outputs" else PREFIX + name: array for name, array in parameters.items()}


def is_parameter(name: str) -> bool:
    """Whether a tensor of a file, by its name, is a parameter."""
    return name == "outputs" or name.startswith(PREFIX)


def log_softmax(scores: Array) -> Array:
    """The log softmax of each row, in place."""
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return scores
