"""Loss, the protocol of losses: which output rows predict a word, and how their scores become a gradient.

The rest of the package uses every loss only through this protocol, whether it is built in or written by a user
(docs/own-loss.md).
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from w2v._errors import LossNotImported, SettingsError, W2VError
from w2v._formats import bfloat16
from w2v._settings import GeneralOptions
from w2v._system import memory
from w2v._text.vocabulary import Vocabulary

Array = NDArray[Any]
Worker = Any  # the state `s` of a thread, a named tuple: see Loss
Integers = NDArray[np.integer[Any]]
PREFIX = "parameter."  # A file stores the parameter NAME as the tensor parameter.NAME.
DATA_PREFIX = "data."  # A file of a user's own loss stores the array or number NAME of `data` as the tensor data.NAME.
DATA_TOLERANCE = 1e-6  # another machine may compute floats of `data` with this relative difference

PACKAGE, NUMPY = Path(__file__).parents[1], Path(np.__file__).parent  # the folders of code that no user has written


class Alpha(NamedTuple):
    """The default learning rate of a loss for each model, the best that was measured."""

    skipgram: float
    cbow: float


@dataclass(frozen=True, kw_only=True)
class LossOptions:
    """The base class for the options of a loss, in addition to GeneralOptions. It has no options itself."""


class Loss:
    """The loss of predicting a word from input rows x.

    A loss implements `choose` and `link` if its scores are products of x and rows of the parameter "outputs". Any other
    loss implements `step`. These are static methods, which Numba compiles together with all plain functions that they
    call. Their first argument s is the state of a thread:

        s.parameters    the result of `parameters`, by name; shared by all threads
        s.data          `data`, by name
        s.random        the random generator: draw(s.random) returns 64 random bits
        s.scratch       the result of `scratch`, by name
        s.rows, s.target, s.offset, s.weight    (max_rows,), filled by `choose`
        s.scores, s.room    working memory: n · max_rows numbers each for a step of n input rows
        s.position      the index of the window in its chunk of text, and of the step in its window

    A loss of the Cython kernel also has a branch there, which computes the same as `choose` and `link`
    (docs/new-loss.md). All other methods run in Python, before and after training. V is the number of words in the
    vocabulary, D is vector_size.

    Attributes:
        name: The name for --loss.
        help: The description for --help.
        branch: The name of its branch in the Cython kernel; empty without one.
        kernels: The kernels that can train the loss, the default first: Cython's only with a branch.
        alpha: The default learning rate of each model, with the faithful gradient (bench/README.md).
        options_class: The dataclass of its options. Your own loss can use the dataclass of a built-in one.
        storages: The values of `storage` that the loss supports.
        fixed_vocabulary: Why no words can be added to a trained model; empty if they can.
        no_word_outputs: Why row w of "outputs" is not a vector of word w; empty if it is.
        log_frequencies: Whether the output rows contain the log frequencies of words, because scores are log p(w) plus
            a constant.
        rank_above_size: The highest possible rank of the matrix of log_probabilities, minus D; None if only V limits
            it.
        epochs_by_size: Whether a smaller text gets more epochs by default.
        is_own: Whether this is a user's own loss. It may be derived from a built-in one.
        vocabulary, settings: The vocabulary and the settings of the run.
        options: The same settings, as an instance of options_class.
        data: Arrays and numbers that the compiled functions read, by name.
        tensors: Arrays that a file must store in addition to the parameters.
        curvature: The curvature (second derivative) of the loss of a prediction along a row. n updates at the learning
            rate alpha move a row about the fraction 1 - exp(-curvature · alpha · n) of the way to its optimum.
        independent: Whether each word has a probability of its own, so that they do not add up to 1.
        sequential: Whether the context words of a window are trained one after the other.
        predrawn: The number of random numbers that s.random holds after the state of the generator. They are drawn at
            the start of each chunk of text.
        notice: A warning to show before training; empty for none.
    """

    name: ClassVar[str] = "objective"
    help: ClassVar[str] = ""
    branch: ClassVar[str] = ""
    kernels: ClassVar[tuple[str, ...]] = ("numba",)
    alpha: ClassVar[Alpha] = Alpha(skipgram=0.05, cbow=0.05)
    options_class: ClassVar[type[LossOptions]] = LossOptions
    storages: ClassVar[tuple[str, ...]] = ("float32",)
    fixed_vocabulary: ClassVar[str] = "it does not say how to add words (fixed_vocabulary)"
    no_word_outputs: ClassVar[str] = "its output rows do not belong to words"
    log_frequencies: ClassVar[bool] = False
    epochs_by_size: ClassVar[bool] = False
    curvature: ClassVar[float] = 0.25  # of the logistic loss at score 0, for an input row of length 1
    independent: ClassVar[bool] = False
    sequential: ClassVar[bool] = False

    is_own: bool = True  # until `prepared` reads it from the settings
    vocabulary: Vocabulary
    settings: GeneralOptions
    options: Any  # of options_class
    data: Mapping[str, Any] = {}
    tensors: dict[str, Array]
    rank_above_size: int | None = None
    predrawn: int = 0
    notice: str = ""

    def __init_subclass__(cls) -> None:
        cls.kernels = ("cython", "numba") if cls.branch else ("numba",)

    # -- preparation ----------------------------------------------------------------------------

    def __str__(self) -> str:
        """Return the name of the class, module:Name, by which files and commands refer to a user's own loss."""
        return f"{type(self).__module__}:{type(self).__qualname__}"

    @property
    def label(self) -> str:
        """The name of the loss in messages. A user's own loss is called "objective module:Name"."""
        return f"objective {self}" if self.is_own else f"loss {self.name}"

    @classmethod
    def check(cls, settings: GeneralOptions, options: Any) -> None:
        """Raise SettingsError if options of the loss contradict each other or general options.

        `settings` and `options` are the same object, with the types of GeneralOptions and of `options_class`.
        """

    @classmethod
    def check_vectors(cls, settings: GeneralOptions) -> None:
        """Raise SettingsError if the settings combine input and output rows, and the loss does not allow it."""
        reason = cls.no_word_outputs
        if settings.vector_size < 2 and not reason:  # rows are normalised, so that a single value would be -1 or 1
            reason = "vector_size 1 leaves only the signs of rows"
        if reason and settings.vectors not in (None, "input"):
            raise SettingsError(f"vectors {settings.vectors}: with loss {cls.name} {reason}; choose input")

    def prepare(self) -> None:
        """Compute `data`, and all other attributes that depend on the vocabulary and the settings.

        Raises:
            SettingsError: The settings do not fit the vocabulary.
        """

    def restore(self, tensors: Mapping[str, Array]) -> None:
        """Do the work of `prepare` for a loss that is read from a file.

        If the settings decide how much memory a loss allocates, it must call `check_stored` first: the settings of a
        damaged file may ask for any amount.

        Args:
            tensors: The tensors of the file, with the parameters.

        Raises:
            W2VError: The tensors are damaged.
        """
        self.prepare()

    def check_stored(self, tensors: Mapping[str, Array]) -> None:
        """Raise W2VError unless the file has exactly the parameters of this loss, in their shapes."""
        shapes = by_tensor_name(self.shapes)
        for name in tensors:
            if name not in shapes and is_parameter(name):
                raise W2VError(f"damaged: it has {name[:60]!r}, which {self.label} does not have")
        for name, shape in shapes.items():
            array = tensors.get(name, np.empty(0))
            if not bfloat16.is_training_dtype(array) or array.shape != shape:
                what = "output matrix" if name == "outputs" else name
                raise W2VError(f"damaged: its {what} has shape {array.shape} and type {array.dtype}, not {shape}")

    # -- sizes: defaults, which `prepare` may override -------------------------------------------

    @cached_property
    def rows(self) -> int:
        """The number of rows of "outputs"."""
        return len(self.vocabulary)

    @cached_property
    def max_rows(self) -> int:
        """The maximum number of output rows of a prediction."""
        return len(self.vocabulary)

    @cached_property
    def expected_rows(self) -> float:
        """The approximate mean number of output rows of a prediction."""
        return self.max_rows

    @cached_property
    def memory_rows(self) -> int:
        """The approximate size of all parameters, in rows of D values."""
        return self.rows

    # -- parameters -----------------------------------------------------------------------------

    def expected_updates(self, words: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected number of updates of each row of "outputs" in a prediction, (rows,).

        Args:
            words: The probability of each word, (V,).
        """
        return np.ones(self.rows)

    def parameters(self, random: np.random.Generator) -> dict[str, Array]:
        """Return the initial values of everything that is learnt except the input vectors, by name.

        All values are C-contiguous matrices with the dtype of settings.storage. Rows that are multiplied with x are as
        wide as x: D values, padded with zeros by memory.aligned_rows. The default is "outputs", zeros.
        """
        return {"outputs": memory.aligned_rows(self.rows, self.settings.vector_size, self._dtype)}

    def stored(self, parameters: Mapping[str, Array]) -> dict[str, Array]:
        """Return views of the parameters without padding, for the model and its file.

        The default removes the padding of each matrix that is as wide as x.
        """
        size, width = self.settings.vector_size, memory.row_width(self.settings.vector_size, self._dtype)
        return {name: array[:, :size] if array.shape[1] == width else array for name, array in parameters.items()}

    @classmethod
    def summary(cls, tensors: Mapping[str, Array]) -> dict[str, Any]:
        """Return the true values of settings that the tensors of a file show, such as `classes`, for `w2v info`."""
        return {}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the matrices that `stored` returns."""
        if type(self).parameters is Loss.parameters:
            return {"outputs": (self.rows, self.settings.vector_size)}
        return {name: array.shape for name, array in self.stored(self.new_parameters()).items()}

    def scratch(self, inputs: int) -> dict[str, Array]:
        """Return working memory of a thread for steps of at most `inputs` input rows: arrays by name."""
        return {}

    # -- predictions of the model ---------------------------------------------------------------

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        """Return the natural log p(word | row) of each word, (N, V), in the dtype of the rows.

        The default is the softmax of the scores of the words.

        Args:
            parameters: The parameters as `stored` returned them.
            rows: Input rows, (N, D).
        """
        if not len(parameters["outputs"]):
            raise W2VError(f"{self.label}: without a parameter outputs, it needs a method log_probabilities")
        return log_softmax(rows @ parameters["outputs"].T.astype(rows.dtype))

    def log_probabilities_of(
        self, parameters: Mapping[str, Array], rows: Array, indices: Integers, words: Integers, common: Integers
    ) -> tuple[Array, Array]:
        """Return the natural log p of given pairs of a row and a word, and of the words in `common` for every row.

        A loss overrides this if it can compute the probabilities of a few words faster than of all words.

        Args:
            parameters: The parameters as `stored` returned them.
            rows: Input rows, (M, D).
            indices, words: Pairs of an index of a row and a word, (N,) each.
            common: Words, (U,).

        Returns:
            log p(words[k] | rows[indices[k]]), (N,), and log p(common[u] | rows[m]), (M, U).
        """
        logs = self.distribution(parameters, rows)
        return logs[indices, words], logs[:, common]

    @property
    def scores_per_row(self) -> int:
        """The maximum number of scores that log_probabilities_of computes at once for a row."""
        is_default = type(self).log_probabilities_of is Loss.log_probabilities_of
        return len(self.vocabulary) if is_default else self.max_rows

    @property
    def max_rank(self) -> int | None:
        """The highest possible rank of the matrix of log_probabilities; None if only V limits it."""
        return None if self.rank_above_size is None else self.settings.vector_size + self.rank_above_size

    def distribution(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        """Return `log_probabilities`, or raise W2VError if a user's own loss returned the wrong shape."""
        logs: Array = call_method(self, "log_probabilities", parameters, rows)
        expected = len(rows), len(self.vocabulary)
        if not isinstance(logs, np.ndarray) or logs.shape != expected:
            fail(self, "log_probabilities", f"returned {np.shape(logs)}: it must be an array {expected}")
        return logs

    # -- compiled -------------------------------------------------------------------------------

    @staticmethod
    def choose(s: Worker, centre: int, x: Array) -> int:
        """Fill s.rows and s.target with the output rows that predict the centre word, and return their number."""
        raise NotImplementedError

    @staticmethod
    def link(s: Worker, scores: Array) -> float:
        """Replace the scores (n, m) by −∂loss/∂score, and return the summed loss."""
        raise NotImplementedError

    step: Any = None
    """step(s, centre, x, change, alpha) predicts the centre word from each of the rows x, (n, padded D). It updates the
    parameters, adds the update of x to `change` (zeros of the shape of x), and returns the summed loss."""

    # -- checks of a user's own loss ------------------------------------------------------------

    def prepared(self, vocabulary: Vocabulary, settings: Any, tensors: Mapping[str, Array] | None = None) -> Self:
        """Return a copy of this loss, prepared for a run with these Settings or restored from the `tensors` of a file.

        Raises:
            SettingsError: The settings do not fit the vocabulary or the loss.
            LossNotImported: The file was written with another user's own loss of the same name.
            W2VError: The tensors are damaged, or a user's own loss has a mistake.
        """
        self.check_vectors(settings)
        options: object = settings
        if not isinstance(options, self.options_class):
            name = self.options_class.__name__
            raise SettingsError(
                f"{self.label}: its options_class {name} does not belong to a built-in loss: use the "
                "options_class of a built-in loss"
            )
        loss = copy.copy(self)
        loss.is_own = settings.objective is not None
        loss.vocabulary, loss.settings, loss.options, loss.tensors = vocabulary, settings, options, {}
        if tensors is None:
            call_method(loss, "prepare")
        else:
            call_method(loss, "restore", tensors)
            loss.check_stored(tensors)
        loss._check_arrays("data", loss.data)
        if loss.is_own:
            loss.tensors |= loss._data_tensors(tensors or {})
        if not isinstance(loss.max_rows, int) or loss.max_rows < 1:
            raise W2VError(f"{loss.label}: max_rows is {loss.max_rows!r}: it must be a whole number above 0")
        return loss

    def _data_tensors(self, stored: Mapping[str, Array]) -> dict[str, Array]:
        """Return copies of `data` as the tensors of a file.

        Raise LossNotImported if they differ from the `stored` tensors: losses of one class with different data have the
        same name.
        """
        found = {DATA_PREFIX + name: np.array(value) for name, value in self.data.items()}
        for name, array in found.items():
            if array.dtype.kind not in "biuf":
                found[name] = array.reshape(-1).view(np.uint8)
        before = {name: array for name, array in stored.items() if name.startswith(DATA_PREFIX)} or found
        for name in sorted(before.keys() | found.keys()):
            old, new = (arrays.get(name, np.empty(0)) for arrays in (before, found))
            tolerance = DATA_TOLERANCE if new.dtype.kind == "f" else 0
            if old.shape != new.shape or not np.allclose(old, new, tolerance, 0, equal_nan=True):
                raise LossNotImported(
                    f"the file was written with another loss {self}, with other {name:.60}: give that loss to "
                    "w2v._losses.registry.register"
                )
        return found

    def new_parameters(self) -> dict[str, Array]:
        """Return `parameters`, or raise W2VError if they are invalid."""
        parameters: dict[str, Array] = call_method(self, "parameters", np.random.default_rng(self.settings.seed))
        self._check_arrays("parameters", parameters)
        dtype = self._dtype
        for name, array in parameters.items():
            what = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            if what != f"{dtype} {getattr(array, 'shape', 0)}" or array.ndim != 2 or not array.flags.c_contiguous:
                raise W2VError(f"{self.label}: parameter {name!r} is {what}: it must be a C-contiguous {dtype} matrix")
        return parameters

    def new_scratch(self, inputs: int) -> dict[str, Array]:
        """Return `scratch`, or raise W2VError if it is invalid."""
        scratch: dict[str, Array] = call_method(self, "scratch", inputs)
        self._check_arrays("scratch", scratch)
        return scratch

    @property
    def _dtype(self) -> np.dtype[Any]:
        return bfloat16.dtype_of(self.settings.storage)

    def _check_arrays(self, what: str, arrays: Any) -> None:
        if not isinstance(arrays, Mapping):
            raise W2VError(f"{self.label}: {what} gave {type(arrays).__name__}: it must be a dict of arrays")
        for name, array in arrays.items():
            if not isinstance(name, str) or not name.isidentifier() or name[0] == "_" or "__" in name:
                raise W2VError(
                    f"{self.label}: a key of {what} is {name!r}: it must be a Python name without __ or a leading _"
                )
            numbers = (int, float, np.generic) if what == "data" else ()
            if not isinstance(array, (np.ndarray, *numbers)):
                wanted = "an array or a number" if numbers else "an array"
                raise W2VError(f"{self.label}: {what} {name!r} is {type(array).__name__}: it must be {wanted}")


def call_method(loss: Loss, name: str, *arguments: Any) -> Any:
    """Call a method of a loss. See `mistakes_in_loss` for exceptions in a user's own loss."""
    function = getattr(loss, name)
    if not loss.is_own:
        return function(*arguments)
    function = getattr(function, "py_func", function)  # Numba keeps the plain function of a compiled one here.
    with mistakes_in_loss(loss, name, function.__code__.co_filename), np.errstate(all="ignore"):
        return function(*arguments)  # The caller checks whether numbers are finite.


@contextmanager
def mistakes_in_loss(loss: Loss, what: str, file: str | None = None) -> Iterator[None]:
    """Turn an exception in the code of a user's own loss into a W2VError with the line where it was raised.

    If the traceback has lines in `file`, the message names the innermost of them. Most exceptions in compiled code have
    no lines. An exception in code of w2v is not a mistake in the loss, and stays as it is.
    """
    try:
        yield
    except (W2VError, MemoryError):
        raise
    except Exception as error:
        # Compiled modules of w2v have relative file names.
        paths = [(frame, PACKAGE.parent / frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
        frames = [frame for frame, path in paths if not any(map(path.is_relative_to, (PACKAGE, NUMPY)))]
        is_compiled = len(paths) == 2  # only this function and the caller's `with` block, which calls compiled code
        if not loss.is_own or not (frames or is_compiled):
            raise
        if frames:
            frame = next((frame for frame in reversed(frames) if frame.filename == file), frames[-1])
            what = f"{what}, {Path(frame.filename).name}, line {frame.lineno}"
        message = str(error).partition("\n")[0]  # Numba's messages go on with a place in its own code
        raise W2VError(f"{loss.label}: {what}: {type(error).__name__}: {message}") from error


def fail(loss: Loss, method: str, message: str) -> None:
    """Raise W2VError with the file and line where a method of the loss is defined."""
    code = getattr(loss, method).__code__
    place = f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
    raise W2VError(f"{loss.label}: {method}, {place}: {message}")


def by_tensor_name(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Replace each parameter's name by its tensor's name in files: with PREFIX, except for "outputs"."""
    return {name if name == "outputs" else PREFIX + name: value for name, value in parameters.items()}


def is_parameter(name: str) -> bool:
    """Return True if the tensor with this name in a file is a parameter of the loss."""
    return name == "outputs" or name.startswith(PREFIX)


def softmax(scores: Array) -> Array:
    """Replace the scores by the softmax of each row, and return them."""
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def log_softmax(scores: Array) -> Array:
    """Replace the scores by the log softmax of each row, and return them."""
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return scores
