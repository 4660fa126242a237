"""The training loop of every loss in Numba: the same chunks, draws and windows as in _kernels.pyx, and a step.

Functions are plain Python with placeholders. `compiled` makes a copy that calls the functions of a loss instead,
compiles it with all that it calls, and caches the machine code on disk under a hash of all that code.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import threading
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import CellType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._kernels import END_OF_SENTENCE
from w2v.errors import SettingsError, W2VError, install, one_line

try:
    import numba
    from numba.core.registry import cpu_target
    from numba.misc.appdirs import AppDirs
except ImportError as error:
    raise SettingsError(f"the Numba kernel needs Numba: {install('numba')}") from error
except Exception as error:  # from the values of Numba's environment variables
    said = one_line(str(error).partition("Traceback")[0])
    raise SettingsError(f"Numba cannot be used: {said} (see the variables NUMBA_…)") from error
if getattr(numba.config, "DISABLE_JIT", 0):
    raise SettingsError("the Numba kernel cannot run uncompiled: unset NUMBA_DISABLE_JIT")

from w2v.kernel.plan import Plan
from w2v.losses import rows
from w2v.losses.dry_run import dry_run
from w2v.losses.loss import Array, Loss, Worker, user_error
from w2v.losses.rows import GOLDEN, below, draw, prefetch, rows_step, scramble
from w2v.losses.worker import named, new_worker
from w2v.settings import MAX_INPUTS_PER_STEP
from w2v.text._text import SENTENCE_END_ID
from w2v.text.subword_rows import SubwordRows
from w2v.text.subwords import Subwords
from w2v.text.words import Words
from w2v.training import numba_vectors
from w2v.training.numba_vectors import gather, scatter

NO_SUBWORDS = SubwordRows.of(Subwords(1, 1, 1), Words.of([]))
SUBSAMPLING, WINDOWS = np.uint64(1), np.uint64(2)
# Sums may be reordered and fused; infinities and NaN are preserved.
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"contract", "reassoc", "nsz", "arcp"}, "error_model": "numpy"}
INLINED: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

log = logging.getLogger("w2v")

Functions = tuple[tuple[Callable[..., Any], Callable[..., Any]], ...]


# -- compiling ------------------------------------------------------------------------------


def target() -> str:
    """The target of compilation: other compilers, processors or processor features may round differently."""
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    return f"Numba {numba.__version__} for {cpu}, {zlib.crc32(f'{triple} {features}'.encode()):08x}"


@cache
def compiled(function: FunctionType, replacements: Functions, on_disk: bool = True) -> Any:
    """Compile a function and all that it calls, with the first function of each pair of replacements by the second.

    `on_disk`: whether the machine code is cached on disk.
    """
    if on_disk and not numba.config.CACHE_DIR:  # type: ignore[attr-defined]
        check_cache(Path(AppDirs("numba", appauthor=False).user_cache_dir))  # type: ignore[no-untyped-call]
    copied, _ = _copied(function, replacements)
    return numba.njit(**OPTIONS, cache=on_disk and Path(function.__code__.co_filename).exists())(copied)


def check_cache(folder: Path) -> None:
    """Raise PermissionError unless a folder for machine code, which runs when it is read, is or would be this user's.

    Without a home, it would be in the working directory.
    """
    if not folder.is_absolute():
        raise PermissionError(f"there is no home folder for {folder}")
    status = next(each for each in (folder, *folder.parents) if each.exists()).stat()
    if status.st_uid != os.geteuid() or status.st_mode & stat.S_IWOTH:
        raise PermissionError(f"others can write to {folder}")


@cache
def _inlined(function: FunctionType, replacements: Functions) -> tuple[Any, bytes]:
    copied, digest = _copied(function, replacements)
    return numba.njit(**OPTIONS, **INLINED)(copied), digest


def _plain(value: Any) -> Any:
    """The Python function of a compiled one, to be compiled again with its callers."""
    return getattr(value, "py_func", value)


def _called(function: FunctionType) -> dict[str, Any]:
    """The globals and closure variables that the code of a function refers to, by name."""
    code = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    names = function.__globals__ | {name: cell.cell_contents for name, cell in cells}
    return {name: _plain(names[name]) for name in sorted({*code.co_names, *code.co_freevars} & names.keys())}


def _needed(function: FunctionType, replacements: Functions) -> Functions:
    """The replacements that a function, or one that it calls, refers to. Without any, all losses share its code."""
    found: set[Any] = set()
    rest = [function]
    while rest:
        new = {value for value in _called(rest.pop()).values() if isinstance(value, FunctionType)} - found
        found |= new
        rest += [_plain(dict(replacements).get(value, value)) for value in new]
    return tuple(pair for pair in replacements if pair[0] in found)


def _copied(function: FunctionType, replacements: Functions) -> tuple[FunctionType, bytes]:
    """A copy that calls compiled functions, and a hash, part of its name, of all that the machine code depends on."""
    code, called = function.__code__, _called(function)
    names = function.__globals__ | called
    # The module too: machine code on disk refers to it.
    about = function.__module__, code.co_code, code.co_consts, code.co_names, function.__defaults__
    digest = hashlib.sha256(repr(about).encode())
    for name, value in called.items():
        if isinstance(value, FunctionType):
            value = _plain(dict(replacements).get(value, value))
            names[name], part = _inlined(value, _needed(value, replacements))
        elif isinstance(value, np.ndarray):
            part = repr((value.dtype, value.shape)).encode() + value.tobytes()
        else:
            part = repr(value).encode() if isinstance(value, int | float | str | tuple | np.generic) else b""
        digest.update(name.encode() + part)
    cells = tuple(CellType(names[name]) for name in code.co_freevars)
    copied = FunctionType(code, names, function.__name__, function.__defaults__, cells)
    copied.__qualname__ = f"{function.__name__}_{digest.hexdigest()[:16]}"
    copied.__module__ = function.__module__
    return copied, digest.digest()


# -- the loop -------------------------------------------------------------------------------


def step(s: Worker, centre: int, x: Array, change: Array, alpha: float) -> float:
    raise NotImplementedError


def key_of(seed: Any, epoch: int, stream: Any) -> Any:
    return scramble(scramble(seed) + (np.uint64(epoch) << np.uint64(8)) + stream)


def hash_of(key: Any, number: int) -> Any:
    return scramble(key + np.uint64(number) * GOLDEN)


def is_kept(c: Any, key: Any, position: int, word: int) -> bool:
    return bool(hash_of(key, position) >> np.uint64(32) <= c.keep[word])


def collect(c: Any, s: Worker, key: Any, begin: int, end: int) -> int:
    """Fills `kept` with the chunk's words, from index window + 1 on, and their neighbours; returns where they end."""
    kept = s.kept
    first = last = c.window + 1
    known = 0
    for position in range(begin, end):
        if c.ids[position] == SENTENCE_END_ID:
            kept[last] = END_OF_SENTENCE
            last += 1
            continue
        word = c.words[c.ids[position]]
        if word < 0:
            continue
        known += 1
        kept[last] = word
        s.token_number[last] = known
        if is_kept(c, key, position, word):
            last += 1
    if last == first:
        return last
    k, position = first - 1, begin - 1
    while k > 0 and position >= 0 and c.ids[position] != SENTENCE_END_ID:
        word = c.words[c.ids[position]]
        if word >= 0 and is_kept(c, key, position, word):
            kept[k] = word
            k -= 1
        position -= 1
    kept[k] = END_OF_SENTENCE
    k, position = last, end
    while k < last + c.window and position < len(c.ids) and c.ids[position] != SENTENCE_END_ID:
        word = c.words[c.ids[position]]
        if word >= 0 and is_kept(c, key, position, word):
            kept[k] = word
            k += 1
        position += 1
    kept[k] = END_OF_SENTENCE
    return last


def compose(c: Any, s: Worker, last: int) -> int:
    """Composes the input row of each word in `kept` of its subwords; returns the number of different words."""
    count, k = 0, c.window
    if last > c.window + 1:
        while s.kept[k] != END_OF_SENTENCE:
            k -= 1
        while k < last or s.kept[k] != END_OF_SENTENCE:
            word = s.kept[k]
            if word != END_OF_SENTENCE and not (s.slots[word] < count and s.distinct[s.slots[word]] == word):
                s.slots[word] = count
                s.distinct[count] = word
                count += 1
            k += 1
    for k in range(count):
        start, end = c.part_starts[s.distinct[k]], c.part_starts[s.distinct[k] + 1]
        row, scale = s.composed[k], s.composed.dtype.type(1) / s.composed.dtype.type(c.sizes[s.distinct[k]])
        row[:] = 0
        for part in range(start, end):
            row += c.inputs[c.parts[part]]
        row *= scale
        s.composed_before[k] = row
    return count


def spread(c: Any, s: Worker, count: int) -> None:
    """Gives the changes of the composed rows to the subwords."""
    for k in range(count):
        for part in range(c.part_starts[s.distinct[k]], c.part_starts[s.distinct[k] + 1]):
            c.inputs[c.parts[part]] += c.shares[part] * (s.composed[k] - s.composed_before[k])


def train_chunk(c: Any, s: Worker, epoch: int, chunk: int) -> tuple[float, int]:
    """Trains one chunk; returns its summed loss and number of predictions."""
    begin, chunks = chunk * c.chunk, len(c.tokens_before) - 1
    total = float(c.epochs * c.tokens_before[chunks])
    before = epoch * c.tokens_before[chunks] + c.tokens_before[chunk]
    kept = s.kept
    s.random[0] = hash_of(key_of(c.seed, epoch, WINDOWS), chunk)
    for k in range(1, len(s.random)):
        s.random[k] = draw(s.random)
    last = collect(c, s, key_of(c.seed, epoch, SUBSAMPLING), begin, min(begin + c.chunk, len(c.ids)))
    loss, predictions = 0.0, 0
    one = s.x.dtype.type(1)
    s.position[0] = -1
    composes = len(c.parts) > 0
    count = compose(c, s, last) if composes else 0
    inputs = s.composed if composes else c.inputs
    for centre in range(c.window + 1, last):
        if kept[centre] == END_OF_SENTENCE:
            continue
        progress = np.float32((before + s.token_number[centre]) / total)
        alpha = one * max(c.min_alpha, c.alpha + (c.min_alpha - c.alpha) * progress)
        reach, left, right = c.window, centre, centre
        if c.shrink:
            reach -= below(draw(s.random), c.window)
        while centre - left < c.reaches[0, reach] and kept[left - 1] != END_OF_SENTENCE:
            left -= 1
        while right - centre < c.reaches[1, reach] and kept[right + 1] != END_OF_SENTENCE:
            right += 1
        n = right - left
        if n == 0:
            continue
        if kept[centre + c.window] >= 0 and not composes:
            prefetch(c.inputs, kept[centre + c.window])
        for k in range(n):
            word = kept[left + k] if left + k < centre else kept[left + k + 1]
            s.context[k] = s.slots[word] if composes else word
        s.position[0] += 1
        size = n if c.cbow else c.inputs_per_step
        gradient_scale = one / s.x.dtype.type(n) if c.cbow and c.corrected else one
        for group in range(0, n, size):
            s.position[1] = group // size
            words = s.context[group : min(group + size, n)]
            rows = 1 if c.cbow else len(words)
            x, change = s.x[:rows], s.change[:rows]
            gather(inputs, words, c.cbow, x, change)
            loss += step(s, kept[centre], x, change, alpha)
            scatter(inputs, words, c.cbow, gradient_scale, change)
            predictions += rows
    spread(c, s, count)
    return loss, predictions


class Kernel:
    """Like w2v._kernels.Kernel, for every loss; takes its parameters by name.

    Raises W2VError for a loss that cannot be compiled or violates the protocol.

    Attributes:
        position: chunks handed out, through all epochs; while no thread runs, chunks trained.
        tokens_trained: known tokens of the chunks trained, through all epochs.
        losses: summed loss of each epoch, float64 (epochs,). predictions: number of them, int64 (epochs,).
    """

    position: int
    tokens_trained: int
    losses: NDArray[np.float64]
    predictions: NDArray[np.int64]

    def __init__(self, plan: Plan, inputs: NDArray[Any], parameters: Mapping[str, NDArray[Any]]) -> None:
        loss = plan.loss
        names = ("ids", "words", "tokens_before", "keep", "cbow", "corrected", "window", "reaches", "epochs", "chunk")
        corpus: dict[str, Any] = {name: getattr(plan, name) for name in names}
        corpus |= {"inputs": inputs, "shrink": plan.shrink_windows}
        corpus |= {"inputs_per_step": 1 if plan.per_pair or loss.sequential else MAX_INPUTS_PER_STEP}
        parts, shares = (plan.subwords, plan.shares) if plan.subwords else (NO_SUBWORDS, np.empty(0, np.float32))
        corpus |= {"part_starts": parts.starts, "parts": parts.rows, "sizes": parts.sizes, "shares": shares}
        corpus |= {"alpha": np.float32(plan.alpha), "min_alpha": np.float32(plan.min_alpha)}
        self._corpus = named("corpus", corpus | {"seed": np.uint64(plan.seed)})
        n, width = 2 * plan.window, inputs.shape[1]
        composed = len(plan.keep) if plan.subwords else 0
        self._workers = [
            new_worker(loss, parameters, n, width, inputs.dtype, plan.chunk, composed) for _ in range(plan.workers)
        ]
        if loss.name == Loss.name:
            dry_run(loss, new_worker(loss, parameters, n, width, inputs.dtype), len(inputs))
        fast: dict[Any, Any] = {
            rows.score: numba_vectors.score,
            rows.update: numba_vectors.update,
            rows.prefetch: numba_vectors.prefetch,
        }
        own = {step: loss.step or rows_step, rows.choose: loss.choose, rows.link: loss.link}
        self._loss = loss
        self._tokens_before = plan.tokens_before
        self._chunks, self._end = plan.chunks, plan.end
        try:
            self._train_chunk = self._compiled(tuple((fast | own).items()))
        except Exception as error:  # not all of Numba's are NumbaError
            raise W2VError(f"{loss.label} cannot be compiled: {reason(error)}") from error
        self._lock = threading.Lock()
        self.restore(0, np.zeros(plan.epochs), np.zeros(plan.epochs, np.int64))

    def _compiled(self, replacements: Functions) -> Any:
        """train_chunk, compiled; without Numba's cache on disk if that is damaged, full or read-only."""

        def loop(on_disk: bool) -> Any:
            function = compiled(train_chunk, replacements, on_disk)
            function(self._corpus, self._workers[0], 0, self._chunks)  # an empty chunk: compiles
            return function

        try:
            return loop(on_disk=True)
        except numba.core.errors.NumbaError:
            raise
        except Exception as error:
            function = loop(on_disk=False)  # raises the same error if the cache is not its cause
            reason = f"{type(error).__name__}: {one_line(error)}"
            hint = "NUMBA_CACHE_DIR names another folder"
            log.warning("Numba's cache on disk cannot be used (%s): compiled without it; %s", reason, hint)
            return function

    def run(self, worker: int, end: int | None = None) -> None:
        """Trains chunks until position `end`, by default that of the run, or until `stop` is called.

        Each thread has a `worker` number of its own. Raises W2VError for an exception of a user's own loss.
        """
        last = self._end if end is None else end
        while not self._stopped:
            with self._lock:
                item = self.position
                self.position = min(item + 1, last)
            if item == last:
                break
            epoch, chunk = divmod(item, self._chunks)
            try:
                loss, predictions = self._train_chunk(self._corpus, self._workers[worker], epoch, chunk)
            except Exception as error:
                raise user_error(self._loss, "training", error) from error
            with self._lock:
                self.losses[epoch] += loss
                self.predictions[epoch] += predictions
                self.tokens_trained += int(self._tokens_before[chunk + 1] - self._tokens_before[chunk])

    def stop(self) -> None:
        """Makes every `run` return at the end of its chunk."""
        self._stopped = True

    def restore(self, position: int, losses: NDArray[np.float64], predictions: NDArray[np.int64]) -> None:
        """Makes `run` continue after the first `position` chunks. Call it while no thread runs."""
        epoch, chunk = divmod(position, self._chunks)
        self.position = position
        self.tokens_trained = int(epoch * self._tokens_before[-1] + self._tokens_before[chunk])
        self.losses, self.predictions = losses.copy(), predictions.copy()
        self._stopped = False


def worker_bytes(plan: Plan) -> int:
    """The bytes of memory that each thread of a Kernel takes, from the arrays of one whose pages are not written."""
    composed = len(plan.keep) if plan.subwords else 0
    worker = new_worker(plan.loss, {}, 2 * plan.window, plan.width, np.float32, plan.chunk, composed)
    return sum(array.nbytes for array in (*worker, *worker.scratch) if isinstance(array, np.ndarray))


def reason(error: Exception) -> str:
    """The first informative line of Numba's message, and the first source line that it names."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    messages = [
        line for line in lines if not line.startswith(("Failed in nopython", "During:", "File", "<source", "^"))
    ]
    location = next((line.rstrip(":") for line in lines if line.startswith("File ")), "")
    message = messages[0] if messages else str(error)
    if not type(error).__module__.startswith("numba"):
        message = f"{type(error).__name__}: {message}"
    return f"{message} ({location})" if location else message
