"""Checkpoints: everything a run needs to resume, in native files in one folder, written while it trains.

All random numbers are hashes of seed, epoch and position, so the state of a run is its matrices and the number of
finished chunks. A checkpoint is a model file with this state added: other commands read its vectors, and
`w2v train --continue` takes it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import tempfile
import time
import weakref
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from w2v.errors import LossMissing, SettingsError, W2VError, one_line
from w2v.files import Errors, PathLike
from w2v.formats import bfloat16, native
from w2v.losses.loss import Loss, file_names
from w2v.losses.registry import Settings, loss_for, settings_from
from w2v.schema import Count, PathText, decode, encode
from w2v.text.normalise import TextOptions
from w2v.text.vocabulary import Vocabulary
from w2v.text.words import Words
from w2v.threads import NoThread, Thread
from w2v.training.seal import is_sealed, make_key, seal
from w2v.version import __version__

Arrays = dict[str, NDArray[Any]]

DEFAULT_INTERVAL = "10m"
KEPT = 2  # checkpoints in a folder
NAME = "checkpoint-{:06}.safetensors"
BYTES_AT_ONCE = 1 << 20  # for the checksum
UNITS = {"s": 1, "m": 60, "h": 3600}
INPUTS = "vectors"  # the input rows in the native format

log = logging.getLogger("w2v")


@dataclass(frozen=True)
class Origin:
    """The text of a run, and notes of its caller.

    Attributes:
        sources: absolute paths of the text; ["-"] for standard input, [] for lists of words.
        files: (path, bytes) of each file; None if the text can be read only once.
        cache, errors, max_types, column, text: see read_corpus.
        phrases: the file of phrases that were joined; True for those found in the text.
        notes: JSON values of the caller.
        checksum: of the ids, once the text is read.
    """

    sources: list[PathText] = field(default_factory=list)
    files: list[tuple[str, int]] | None = None
    cache: PathText | None = None
    errors: Errors = "strict"
    max_types: int = 0
    column: str | None = None
    text: TextOptions = field(default_factory=TextOptions)
    phrases: bool | PathText = False
    notes: dict[str, Any] = field(default_factory=dict)
    checksum: str = ""


@dataclass(frozen=True, kw_only=True)
class RunDescription:
    """What a checkpoint stores as JSON besides the settings. Raises SettingsError for an impossible interval."""

    position: Count
    end: Count
    tokens_trained: Count
    seconds: float
    parameters: list[str]
    instruction_set: str
    every: str
    origin: Origin
    version: str
    ranks: Count = 1
    seal: str = ""  # see seal.py

    def __post_init__(self) -> None:
        interval(self.every)


@dataclass(frozen=True)
class State:
    """A run whose threads have stopped after `position` of `end` chunks (with several ranks: rounds, see Schedule).

    `parameters` are the matrices that training updates, by name. The columns of `history` are words trained, seconds of
    training, summed loss and number of predictions, each since the beginning of the run; the last two are of rank 0
    alone.
    """

    settings: Settings
    vocabulary: Vocabulary
    loss: Loss
    parameters: Mapping[str, NDArray[Any]]
    position: int
    end: int
    losses: NDArray[np.float64]  # (epochs,), summed
    predictions: NDArray[np.int64]  # (epochs,)
    tokens_trained: int
    seconds: float  # of training
    instruction_set: str
    history: NDArray[np.float64]  # (n, 4)
    ranks: int = 1

    @property
    def mean_losses(self) -> list[float | None]:
        """Mean loss of a prediction in each epoch; None for an epoch without predictions."""
        sums, counts = self.losses.tolist(), self.predictions.tolist()
        return [total / count if count else None for total, count in zip(sums, counts, strict=True)]


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint file; its arrays are memory-mapped.

    `trusted` says whether a run of this user, writing to this folder, made it: only then are the paths in its origin
    used.
    """

    path: Path
    state: State
    origin: Origin
    every: str
    version: str  # of the package that has written it
    trusted: bool


def finite(parameters: Iterable[NDArray[Any]]) -> bool:
    """Whether all values of these matrices are finite."""
    return all(bfloat16.first_not_finite(array) < 0 for array in parameters)


# -- writing --------------------------------------------------------------------------------


class Checkpoints:
    """Writes checkpoints of a run to a folder, of which it keeps the last two.

    `every` is a number with s, m, h or epoch(s). `after` is the checkpoint that the run resumes from. The folder is
    locked until the end of a `with` block, or of the process. Raises SettingsError for an impossible interval; W2VError
    if the folder cannot be written, another run writes to it, or it holds checkpoints of another run and `replace` is
    false. A folder that is removed during the run is made again; if another run has taken its place, nothing more is
    written.
    """

    def __init__(
        self, folder: PathLike, every: str = DEFAULT_INTERVAL, *, replace: bool = False, after: Path | None = None
    ):
        self.folder = Path(folder).absolute()
        self.every = every
        self.origin = Origin()
        self.diverged = False
        self._lost = False  # another run has taken the folder
        self._seconds, self._epochs = interval(every)
        self._mine = [after] if after else []
        self._copies: Arrays = {}
        self._writer: Thread | None = None
        self._taken: State | None = None
        self._last = time.monotonic()
        self._last_epoch = 0
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.folder).close()
            self._descriptor = locked(self.folder)
            self._unlock = weakref.finalize(self, os.close, self._descriptor)
        except BlockingIOError as error:
            raise W2VError(
                f"another run is writing checkpoints in {self.folder}: wait for its end, or name another folder"
            ) from error
        except OSError as error:
            raise W2VError(f"cannot write checkpoints in {self.folder}: {error.strerror}") from error
        for unfinished in self.folder.glob(".checkpoint-*.tmp"):  # by a process that was killed
            with suppress(OSError):
                unfinished.unlink()
        existing = files(self.folder)
        self._old = [path for path in existing if path not in self._mine]  # removed once a newer one is written
        self._next = number(existing[-1]) + 1 if existing else 1
        if existing and not after and not replace:
            self._unlock()
            raise W2VError(
                f"{self.folder} holds checkpoints of another run: continue it with --resume, name another folder, or "
                "add --force to replace them"
            )
        make_key()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._unlock()

    def _keep_lock(self) -> None:
        """Check that the path still names the locked folder; make and lock it again if it was removed.

        Raises W2VError if another run has taken its place.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.path.samestat(os.fstat(self._descriptor), self.folder.stat()):
            return
        try:
            descriptor = locked(self.folder)
        except BlockingIOError:
            descriptor = -1
        if descriptor >= 0 and not files(self.folder):
            self._unlock()
            self._descriptor = descriptor
            self._unlock = weakref.finalize(self, os.close, descriptor)
            self._mine, self._old = [], []
            return
        if descriptor >= 0:
            os.close(descriptor)
        self._lost = True
        raise W2VError(f"{self.folder} was removed and now belongs to another run: this run writes no more checkpoints")

    @property
    def newest(self) -> Path | None:
        """The last checkpoint of this run, after waiting for one that is being written."""
        self._wait()
        return self._mine[-1] if self._mine else None

    def due(self, epoch: int) -> bool:
        """Whether the next checkpoint is due, in this epoch, and the previous one is written."""
        if self._lost or (self._writer and not self._writer.ended):
            return False
        if self._epochs:
            return epoch >= self._last_epoch + self._epochs
        return time.monotonic() >= self._last + self._seconds

    def copy(self, state: State) -> None:
        """Copy the state of a run whose threads have stopped; the copy is written while training continues."""
        for name, array in state.parameters.items():
            if name not in self._copies:
                self._copies[name] = np.empty(array.shape, array.dtype)
            np.copyto(self._copies[name], array)
        self._start(state, self._copies)

    def write(self, state: State) -> None:
        """Write the state of a run whose threads do not continue meanwhile, even if a signal interrupts the writing."""
        try:
            self._write_and_wait(state)
        except BaseException:
            self._wait()
            if self._taken is not state:
                self._write_and_wait(state)
            raise

    def _write_and_wait(self, state: State) -> None:
        self._wait()
        self._start(state, state.parameters)
        self._wait()

    def _wait(self) -> None:
        if self._writer:
            self._writer.wait()

    def _start(self, state: State, parameters: Mapping[str, NDArray[Any]]) -> None:
        self._last = time.monotonic()
        self._last_epoch = state.position * len(state.losses) // state.end
        self._writer = Thread(target=self._write, args=(state, dict(parameters)))
        try:
            self._writer.start()
        except NoThread:
            self._writer.run()

    def _write(self, state: State, parameters: Arrays) -> None:
        self._taken = state
        if self._lost:
            return
        try:
            self._try_to_write(state, parameters)
        except Exception as error:  # training continues after any error
            if self._lost:
                self._mine = []
                log.warning("%s", error)
                return
            kept = f"; {self._mine[-1]} is kept" if self._mine else ""
            reason = "there is not enough memory" if isinstance(error, MemoryError) else one_line(error)
            log.warning("checkpoint not written: %s%s", reason, kept)

    def _try_to_write(self, state: State, parameters: Arrays) -> None:
        if not (np.isfinite(state.losses).all() and finite(parameters.values())):
            self.diverged = True  # the last good one is kept
            return
        words = Words.of(state.vocabulary.words)
        arrays = {INPUTS if name == "inputs" else name: array for name, array in parameters.items()}
        arrays |= {"words": words.blob, "word_offsets": words.offsets, "counts": state.vocabulary.counts}
        arrays |= state.loss.tensors | {"losses": state.losses, "predictions": state.predictions}
        arrays["history"] = state.history
        run = RunDescription(
            position=state.position,
            end=state.end,
            tokens_trained=state.tokens_trained,
            seconds=state.seconds,
            parameters=list(parameters),
            instruction_set=state.instruction_set,
            ranks=state.ranks,
            every=self.every,
            origin=self.origin,
            seal=seal(self.folder, asdict(self.origin)),
            version=__version__,
        )
        path = self.folder / NAME.format(self._next)
        # As an array, because the length of a header is limited:
        arrays["run"] = np.frombuffer(encode(run, path).encode(), np.uint8)
        metadata = {"settings": encode(state.settings.as_dict(), path), **self.origin.text.metadata()}
        metadata["checksum"] = checksum(arrays, metadata["settings"])
        self._keep_lock()
        native.write_native(path, arrays, metadata, replace=False, follow=False)
        self._next += 1
        self._old += self._mine[: 1 - KEPT]
        self._mine = [*self._mine, path][-KEPT:]
        for old in self._old:
            with suppress(OSError):
                os.unlink(old.name, dir_fd=self._descriptor)  # in the locked folder, even if its path now names another
        self._old = []


def locked(folder: Path) -> int:
    """A descriptor of the folder, which is locked until it is closed. Raises BlockingIOError if it is locked."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError as error:  # some network file systems cannot lock folders
        log.info("%s is not locked: %s", folder, error)
    return descriptor


def interval(every: str) -> tuple[float, float]:
    """Seconds and epochs, of which one is 0. Raises SettingsError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|m|h|epochs?)", every)
    if not found or not float(found[1]):
        raise SettingsError(
            f"checkpoint_every {every!r}: it must be a number with s, m, h or epoch, like 30s or 1epoch"
        )
    size, unit = float(found[1]), found[2]
    return (size * UNITS[unit], 0.0) if unit in UNITS else (0.0, size)


# -- reading --------------------------------------------------------------------------------


def files(folder: Path) -> list[Path]:
    """The checkpoints in a folder, the oldest first."""
    return sorted((path for path in folder.glob("checkpoint-*.safetensors") if number(path)), key=number)


def number(path: Path) -> int:
    digits = path.stem.removeprefix("checkpoint-")
    return int(digits) if digits.isdecimal() else 0


def latest(folder: PathLike) -> Checkpoint:
    """The newest checkpoint in a folder that is not damaged; a warning names each damaged one.

    Raises W2VError if there is none.
    """
    found = files(Path(folder).absolute())
    if not found:
        raise W2VError(f"{folder} holds no checkpoint")
    for path in reversed(found):
        try:
            return read(path)
        except (LossMissing, SettingsError):  # older checkpoints would raise it too
            raise
        except W2VError as error:
            if path == found[0]:
                raise
            log.warning("%s: resuming from the checkpoint before it", error)
    raise AssertionError


def read(path: Path) -> Checkpoint:
    """Read a checkpoint. Raises W2VError if it is not one or is damaged."""
    arrays, metadata = native.read_native(path, mmap=True)
    if "run" not in arrays or "settings" not in metadata:
        raise W2VError(f"{path} is not a checkpoint")
    if checksum(arrays, metadata["settings"]) != metadata.get("checksum"):
        raise W2VError(f"{path} is damaged: its checksum is wrong")
    try:
        return _checkpoint(path, arrays, metadata["settings"])
    except LossMissing as error:
        raise LossMissing(f"{path}: {one_line(error)}") from error
    except (TypeError, LookupError, AttributeError, RecursionError, ValueError) as error:  # W2VError among them
        raise W2VError(f"{path} is damaged: {one_line(error)}") from error


def _checkpoint(path: Path, arrays: Arrays, metadata: str) -> Checkpoint:
    """Raises LookupError, TypeError, AttributeError, RecursionError or ValueError for an inconsistent checkpoint."""
    run = decode(RunDescription, arrays["run"].tobytes(), "its description")
    settings = settings_from(metadata, "its settings")
    vocabulary = Vocabulary(Words(arrays["words"], arrays["word_offsets"]), arrays["counts"])
    loss = loss_for(settings, vocabulary, arrays)
    parameters = {name: arrays[INPUTS if name == "inputs" else name] for name in run.parameters}
    wanted = {"inputs": (len(vocabulary), settings.vector_size), **file_names(loss.shapes)}
    found = {name: (array.shape, array.dtype) for name, array in parameters.items()}
    expected = {name: (shape, bfloat16.dtype_of(settings.storage)) for name, shape in wanted.items()}
    if found != expected or not finite(parameters.values()):
        raise ValueError(f"matrices of an unexpected shape or type, or not finite: {found}")
    sums = {"losses": np.dtype(np.float64), "predictions": np.dtype(np.int64)}
    epochs = {name: ((settings.epochs,), dtype) for name, dtype in sums.items()}
    if {name: (arrays[name].shape, arrays[name].dtype) for name in epochs} != epochs or run.position > run.end:
        raise ValueError("losses of a wrong shape or type, or a position past the end of the run")
    history = arrays.get("history", np.zeros((0, 4)))  # older versions kept none
    if history.dtype != np.float64 or history.shape != (len(history), 4):
        raise ValueError("a history of a wrong shape or type")
    state = State(
        settings=settings,
        vocabulary=vocabulary,
        loss=loss,
        parameters=parameters,
        losses=arrays["losses"],
        predictions=arrays["predictions"],
        history=history,
        **{name: getattr(run, name) for name in ("position", "end", "tokens_trained", "seconds", "instruction_set")},
        ranks=run.ranks,
    )
    trusted = is_sealed(run.seal, path.parent, asdict(run.origin))
    return Checkpoint(path, state, run.origin, run.every, run.version, trusted)


def checksum(arrays: Mapping[str, NDArray[Any]], settings: str) -> str:
    """CRC-32 of the arrays by name, and of the settings."""
    code = zlib.crc32(settings.encode())
    for name in sorted(arrays):
        array = bfloat16.bits(np.atleast_1d(arrays[name]))
        code = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), code)
        rows = max(1, BYTES_AT_ONCE * len(array) // max(1, array.nbytes))
        for start in range(0, len(array), rows):
            code = zlib.crc32(np.ascontiguousarray(array[start : start + rows]).data, code)
    return f"{code:08x}"
