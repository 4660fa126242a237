"""Checkpoints: everything a run needs to resume, in native files in one folder, written while it trains.

All random numbers are hashes of seed, epoch and position, so the state of a run is its matrices and the number of
finished chunks. A checkpoint is a model file with this state added: other commands read its vectors, and
`w2v train --continue` takes it.
"""

from __future__ import annotations

import hashlib
import logging
import math
import resource
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from w2v.errors import LossMissing, OtherVersion, SettingsError, W2VError, one_line
from w2v.formats import bfloat16, native
from w2v.formats.header import ModelHeader
from w2v.losses.loss import Loss, file_names
from w2v.losses.registry import Settings, loss_for, settings_from
from w2v.system.files import PathLike, errors_named, open_regular
from w2v.system.schema import Count, checked, decode, encode
from w2v.system.threads import NoThread, Thread
from w2v.system.version import __version__
from w2v.text.subword_rows import SubwordRows
from w2v.text.vocabulary import Vocabulary
from w2v.text.words import Words
from w2v.training.config import RunConfig
from w2v.training.divergence import MAX_RISE, SOUND_RISE, finite, rise
from w2v.training.lock import Lock
from w2v.training.schedule import DEFAULT_INTERVAL, interval

Arrays = dict[str, NDArray[Any]]

NAME, BEST = "checkpoint-{:06}.safetensors", "checkpoint-best.safetensors"
BYTES_AT_ONCE = 1 << 20  # for the checksum
LAST_CHANCE = 0.75  # share of the hard CPU limit after which a checkpoint is written: at 1 the system kills the process
INPUTS = "vectors"  # the input rows in the native format

log = logging.getLogger("w2v")


@dataclass(frozen=True, kw_only=True)
class Position:
    """How far a run has come, and in which text.

    Attributes:
        done, end: chunks trained, and in all (with several ranks: rounds, see Schedule).
        tokens_trained: words. seconds: of training.
        instruction_set: see Plan. ranks: number of processes.
        scores: on held-out text, after each epoch, if training may stop early.
        files: (path, bytes) of each file of the text; None if the text can be read only once.
        checksum: of the text, once it is read.
    """

    done: Count
    end: Count
    tokens_trained: Count
    seconds: float
    instruction_set: str
    ranks: Count = 1
    scores: list[float] = field(default_factory=list)
    files: list[tuple[str, int]] | None = None
    checksum: str = ""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The state of a run whose threads have stopped: its config, its position and its arrays.

    Attributes:
        parameters: the matrices that training updates, by name.
        losses: summed, in each epoch, float64 (epochs,). predictions: their number, int64 (epochs,).
        history: float64 (n, 4): words trained, seconds of training, summed loss and number of predictions, each since
            the beginning of the run; the last two are of rank 0 alone.
        frozen: bool (V,), see Initialisation.
        path: of its file, once it is written; then its arrays are memory-mapped. version: of the w2v that wrote it.
    """

    config: RunConfig
    position: Position
    vocabulary: Vocabulary
    loss: Loss
    parameters: Mapping[str, NDArray[Any]]
    losses: NDArray[np.float64]
    predictions: NDArray[np.int64]
    history: NDArray[np.float64]
    frozen: NDArray[np.bool_] | None = None
    path: Path = Path()
    version: str = __version__

    @property
    def settings(self) -> Settings:
        return self.config.settings

    @property
    def rise(self) -> float:
        return rise(self.loss, self.losses, self.predictions)

    @property
    def mean_losses(self) -> list[float | None]:
        """Mean loss of a prediction in each epoch; None for an epoch without predictions."""
        sums, counts = self.losses.tolist(), self.predictions.tolist()
        return [total / count if count else None for total, count in zip(sums, counts, strict=True)]


# -- writing --------------------------------------------------------------------------------


class Checkpoints:
    """Writes checkpoints of a run to a folder, of which it keeps the last two, and the best if training may stop early.

    `every` is an interval, see schedule.py. `after` is the checkpoint that the run resumes from. The folder is locked
    until the end of a `with` block, or of the process. Raises SettingsError for an impossible interval; W2VError if the
    folder cannot be written, another run writes to it, or it holds checkpoints of another run and `replace` is false. A
    folder that is removed during the run is made again; if another run has taken its place, nothing more is written.
    """

    def __init__(
        self,
        folder: PathLike,
        every: str = DEFAULT_INTERVAL,
        *,
        replace: bool = False,
        after: Checkpoint | None = None,
    ):
        self.folder = Path(folder).absolute()
        self.diverged = False  # a state was not written
        self._lost = False  # another run has taken the folder
        self._interval = interval(every)
        self._mine: dict[Path, float] = {}  # see `rise`
        self._copied: Arrays = {}
        self._writer: Thread | None = None
        self._taken: Checkpoint | None = None
        self._last = time.monotonic()
        limit = resource.getrlimit(resource.RLIMIT_CPU)[1]
        self._last_chance = math.inf if limit == resource.RLIM_INFINITY else LAST_CHANCE * limit  # processor time
        with errors_named(self.folder, "write checkpoints in"):
            self.folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.folder).close()
            try:
                self._lock = Lock(self.folder)
            except BlockingIOError as error:
                raise W2VError(
                    f"another run is writing checkpoints in {self.folder}: wait for its end, or name another folder"
                ) from error
        for unfinished in self.folder.glob(".checkpoint-*.tmp"):  # by a process that was killed
            with suppress(OSError):
                unfinished.unlink()
        existing = files(self.folder)
        if after:
            before = [path for path in existing if number(path) < number(after.path)]
            self._mine = {**dict.fromkeys(before[-1:], 0.0), after.path: after.rise}
        self._old = [path for path in existing if path not in self._mine]  # removed once a newer one is written
        if not after:
            self._old += self.folder.glob(BEST)
        self._next = number(existing[-1]) + 1 if existing else 1
        if existing and not after and not replace:
            self._lock.release()
            raise W2VError(
                f"{self.folder} holds checkpoints of another run: continue it with --resume, name another folder, or "
                "add --force to replace them"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _keep_lock(self) -> None:
        """Check that the path still names the locked folder; make and lock it again if it was removed.

        Raises W2VError if another run has taken its place.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._lock.holds():
            return
        lock = None
        with suppress(BlockingIOError, W2VError):
            lock = Lock(self.folder)
        is_new = not files(self.folder)
        if lock and (is_new or lock.is_of_folder(self._lock)):
            self._lock = lock
            if is_new:
                self._mine, self._old = {}, []
            return
        self._lost = True
        raise W2VError(f"{self.folder} was removed and now belongs to another run: this run writes no more checkpoints")

    @property
    def newest(self) -> Path | None:
        """The last checkpoint of this run, after waiting for one that is being written."""
        self._wait()
        return next(reversed(self._mine), None)

    def last_sound(self) -> Path | None:
        """The last checkpoint from before the loss rose, after removing those since then; None if there is none."""
        self._wait()
        if sound := self._sound():
            self._keep(sound)
        return next(reversed(sound), None)

    def _sound(self) -> list[Path]:
        return [path for path, risen in self._mine.items() if risen <= SOUND_RISE]

    def _keep(self, paths: list[Path]) -> None:
        """Remove the other checkpoints of this run."""
        for path in self._mine.keys() - set(paths):
            self._lock.remove(path)
        self._mine = {path: self._mine[path] for path in paths}

    @property
    def copies(self) -> bool:
        """Whether states are copied during the run."""
        return any(self._interval)

    @property
    def due(self) -> bool:
        """Whether so much time has passed that the next checkpoint is due, and the previous one is written."""
        if self._lost or (self._writer and not self._writer.ended):
            return False
        if time.process_time() >= self._last_chance:
            return True
        return bool(self._interval.seconds) and time.monotonic() >= self._last + self._interval.seconds

    def next_position(self, position: int, chunks: int) -> float:
        """The position of the next checkpoint after this one, with so many chunks in an epoch; inf if time decides."""
        step = self._interval.epochs * chunks + self._interval.chunks
        if self._lost or not step:
            return math.inf
        return max(position + 1, math.ceil((position // step + 1) * step))

    def copy(self, state: Checkpoint) -> None:
        """Copy the state of a run whose threads have stopped; the copy is written while training continues.

        With the interval "never" the state is not copied: it is written at once where processor time runs out.
        """
        if not self.copies:
            if time.process_time() >= self._last_chance:
                self.write(state)
            return
        self._wait()
        for name, array in state.parameters.items():
            if name not in self._copied:
                self._copied[name] = np.empty(array.shape, array.dtype)
            np.copyto(self._copied[name], array)
        self._start(replace(state, parameters=dict(self._copied)))

    def write(self, state: Checkpoint) -> None:
        """Write the state of a run whose threads do not continue meanwhile, even if a signal interrupts the writing."""
        try:
            self._write_and_wait(state)
        except BaseException:
            self._wait()
            if self._taken is not state:
                self._write_and_wait(state)
            raise

    def write_best(self, state: Checkpoint) -> None:
        """Write the best state so far, which `best` returns; it is no state to resume from."""
        self._wait()
        self._write(state, best=True)

    def best(self) -> Checkpoint:
        """The state that write_best wrote last, its arrays memory-mapped. Raises W2VError if there is none."""
        return read(self.folder / BEST)

    def _write_and_wait(self, state: Checkpoint) -> None:
        self._wait()
        self._start(state)
        self._wait()

    def _wait(self) -> None:
        if self._writer:
            self._writer.wait()

    def _start(self, state: Checkpoint) -> None:
        self._last = time.monotonic()
        if time.process_time() >= self._last_chance:
            self._last_chance = math.inf
        self._writer = Thread(target=self._write, args=(state,))
        try:
            self._writer.start()
        except NoThread:
            self._writer.run()

    def _write(self, state: Checkpoint, best: bool = False) -> None:
        self._taken = state
        if self._lost:
            return
        try:
            self._try_to_write(state, best)
        except Exception as error:  # training continues after any error
            if self._lost:
                self._mine = {}
                log.warning("%s", error)
                return
            kept = f"; {next(reversed(self._mine))} is kept" if self._mine else ""
            reason = "there is not enough memory" if isinstance(error, MemoryError) else one_line(error)
            log.warning("checkpoint not written: %s%s", reason, kept)

    def _try_to_write(self, state: Checkpoint, best: bool) -> None:
        parameters = state.parameters
        if not (np.isfinite(state.losses).all() and finite(parameters.values()) and state.rise <= MAX_RISE):
            self.diverged = True
            return
        words = Words.of(state.vocabulary.words)
        arrays = {INPUTS if name == "inputs" else name: array for name, array in parameters.items()}
        arrays |= {"words": words.blob, "word_offsets": words.offsets, "counts": state.vocabulary.counts}
        arrays |= state.loss.tensors
        arrays |= {"losses": state.losses, "predictions": state.predictions, "history": state.history}
        arrays |= {} if state.frozen is None else {"frozen": state.frozen}
        path = self.folder / (BEST if best else NAME.format(self._next))
        run = {"config": state.config.stored(), "position": asdict(state.position)}
        # As an array, because the length of a header is limited:
        arrays["run"] = np.frombuffer(encode(run, path).encode(), np.uint8)
        header = ModelHeader(state.settings.as_dict(), text=state.config.text, package_version=__version__)
        metadata = header.to_strings(path)
        metadata["checksum"] = checksum(arrays, metadata["settings"])
        self._keep_lock()
        native.write_native(path, arrays, metadata, replace=best, follow=False)
        if best:
            self._old = [old for old in self._old if old != path]
            return
        self._next += 1
        self._keep((self._sound() or list(self._mine))[-1:])  # the last one from before the loss rose
        self._mine[path] = state.rise
        for old in self._old:
            self._lock.remove(old)
        self._old = []


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
    with errors_named(folder):
        found = files(Path(folder).absolute())
    if not found:
        raise W2VError(f"{one_line(folder)} holds no checkpoint")
    for path in reversed(found):
        try:
            return read(path)
        except (LossMissing, OtherVersion, SettingsError):  # older checkpoints would raise it too
            raise
        except W2VError as error:
            if path == found[0]:
                raise
            log.warning("%s: resuming from the checkpoint before it", error)
    raise AssertionError


def read(path: Path) -> Checkpoint:
    """Read a checkpoint. Raises W2VError if it is none or is damaged, OtherVersion if only another w2v can read it."""
    with errors_named(path), open_regular(path) as file:
        arrays, metadata = native.read_open(path, file, mmap=True)
    if "run" not in arrays or "settings" not in metadata:
        raise W2VError(f"{path} is not a checkpoint")
    found, version = checksum(arrays, metadata["settings"]), metadata.get("package_version", "")
    try:
        if found != metadata.get("checksum"):
            raise ValueError("its checksum is wrong")
        return _checkpoint(path, arrays, ModelHeader.from_strings(metadata, ""))
    except LossMissing as error:
        raise LossMissing(f"{path}: {one_line(error)}") from error
    except (TypeError, LookupError, AttributeError, RecursionError, ValueError) as error:  # W2VError among them
        if version != __version__:
            raise OtherVersion(
                f"{path} was written by {one_line(f'w2v {version}') if version else 'an earlier w2v'}, and this is "
                f"w2v {__version__}, which cannot resume it: resume with that version"
            ) from error
        raise W2VError(f"{path} is damaged: {one_line(error)}") from error


def _checkpoint(path: Path, arrays: Arrays, header: ModelHeader) -> Checkpoint:
    """Raises LookupError, TypeError, AttributeError, RecursionError or ValueError for an inconsistent checkpoint."""
    run = decode(dict[str, Any], arrays["run"].tobytes(), "its description")
    if "origin" in run:
        run = _convert_older(run)
    settings = settings_from(header.settings or {}, "its settings")
    config = RunConfig.from_stored(run["config"], settings)
    position = checked(Position, run["position"], "its position")
    vocabulary = Vocabulary(Words(arrays["words"], arrays["word_offsets"]), arrays["counts"])
    loss = loss_for(settings, vocabulary, arrays)
    wanted = {"inputs": (len(vocabulary), settings.vector_size), **file_names(loss.shapes)}
    if settings.ngrams:
        wanted["ngrams"] = (SubwordRows.of(settings.ngrams, vocabulary.words).shared, settings.vector_size)
    parameters = {name: arrays[INPUTS if name == "inputs" else name] for name in wanted}
    found = {name: (array.shape, array.dtype) for name, array in parameters.items()}
    expected = {name: (shape, bfloat16.dtype_of(settings.storage)) for name, shape in wanted.items()}
    if found != expected or not finite(parameters.values()):
        raise ValueError(f"matrices of an unexpected shape or type, or not finite: {found}")
    sums = {"losses": np.dtype(np.float64), "predictions": np.dtype(np.int64)}
    epochs = {name: ((settings.epochs,), dtype) for name, dtype in sums.items()}
    if {name: (arrays[name].shape, arrays[name].dtype) for name in epochs} != epochs or position.done > position.end:
        raise ValueError("losses of a wrong shape or type, or a position past the end of the run")
    history = arrays["history"]
    if history.dtype != np.float64 or history.shape != (len(history), 4):
        raise ValueError("a history of a wrong shape or type")
    frozen = arrays.get("frozen")
    if frozen is not None and (frozen.dtype != np.bool_ or frozen.shape != (len(vocabulary),)):
        raise ValueError("frozen words of a wrong shape or type")
    return Checkpoint(
        config=config,
        position=position,
        vocabulary=vocabulary,
        loss=loss,
        parameters=parameters,
        losses=arrays["losses"],
        predictions=arrays["predictions"],
        history=history,
        frozen=frozen,
        path=path,
        version=header.package_version,
    )


def _convert_older(run: dict[str, Any]) -> dict[str, Any]:
    """Convert the description in checkpoints without a RunConfig, of w2v 0.2.0. Raises LookupError or TypeError."""
    origin = run["origin"]
    notes = dict(origin["notes"])
    config = {name: notes.pop(name) for name in ("output", "save_vocab", "plot") if notes.get(name) is not None}
    config |= {"corpus": origin["sources"], "phrases": origin["phrases"], "notes": notes}
    reading = ("errors", "max_types", "column", "encoding")
    config["reading"] = {name: origin[name] for name in reading if name in origin} | origin["text"]
    config["checkpoint_every"] = run["every"]
    position = {each.name: run[each.name] for each in fields(Position) if each.name in run}
    position |= {"done": run["position"], "files": origin["files"], "checksum": origin["checksum"]}
    return {"config": config, "position": position}


def checksum(arrays: Mapping[str, NDArray[Any]], settings: str) -> str:
    """SHA-256 of the arrays by name, and of the settings."""
    found = hashlib.sha256(settings.encode())
    for name in sorted(arrays):
        array = bfloat16.bits(np.atleast_1d(arrays[name]))
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        rows = max(1, BYTES_AT_ONCE * len(array) // max(1, array.nbytes))
        for start in range(0, len(array), rows):
            found.update(np.ascontiguousarray(array[start : start + rows]).data)
    return found.hexdigest()
