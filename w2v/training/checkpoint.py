"""Checkpoints: files for resuming a run, written to one folder during training.

Every random number is a hash of the seed, the epoch and the position in the text. The state of a run is therefore its
matrices and the number of finished chunks. A checkpoint is a model file that also stores this state, so other commands
can read its vectors and `w2v train --continue` accepts it.
"""

from __future__ import annotations

import hashlib
import logging
import math
import resource
import tempfile
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from w2v.errors import LossNotImported, SettingsError, VersionMismatch, W2VError, one_line
from w2v.formats import bfloat16, native
from w2v.formats.header import ModelHeader
from w2v.losses.loss import Loss, by_tensor_name
from w2v.losses.registry import Settings, loss_for, settings_from
from w2v.options import renamed_arguments
from w2v.system.files import PathLike, open_regular, translate_os_errors
from w2v.system.schema import Count, convert, decode, encode
from w2v.system.threads import NoThread, Thread
from w2v.system.version import __version__
from w2v.text.subword_rows import SubwordRows
from w2v.text.vocabulary import Vocabulary
from w2v.text.words import Words
from w2v.training.config import RunConfig
from w2v.training.divergence import DIVERGENCE_RATIO, WARNING_RATIO, all_finite, loss_ratio
from w2v.training.lock import Lock
from w2v.training.schedule import DEFAULT_INTERVAL, interval

Arrays = dict[str, NDArray[Any]]

FILE_NAME, BEST_FILE_NAME = "checkpoint-{:06}.safetensors", "checkpoint-best.safetensors"
# This file is in the folder of a run with several views; the checkpoints are in a folder for each view. See views.py.
VIEWS_FILE_NAME = "views.json"
HASH_BLOCK_BYTES = 1 << 20
# A checkpoint is written after this share of the hard limit on CPU time; at the limit the system kills the process.
CPU_LIMIT_SHARE = 0.75
CHECKPOINT_INPUTS = "vectors"  # the name of the input rows in a checkpoint: other commands read its "vectors"

log = logging.getLogger("w2v")


@dataclass(frozen=True, kw_only=True)
class ResumeInfo:
    """The values that a run needs to resume, besides its config and arrays: its progress, and what identifies the text.

    A checkpoint stores them under the name "position".

    Attributes:
        done: How far the run is, out of `end`. With one process, this is Kernel.position, in chunks. With several
            ranks, it is in rounds; Schedule.chunks_after converts them to the chunks of a rank.
        end: The value of `done` at the end of the run.
        tokens_trained: The number of words that are trained.
        seconds: The time spent on training.
        instruction_set: See Plan.
        ranks: The number of processes.
        scores: The score on held-out text after each epoch, if training may stop early.
        files: (path, bytes) of each file of the text; None if the text can be read only once.
        checksum: The checksum of the text; "" until the text is read.
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
    """The state of a run while its threads are stopped: config, resume info and arrays.

    Attributes:
        parameters: The matrices that training updates, by name.
        losses: The sum of the losses in each epoch, float64 (epochs,).
        predictions: The number of predictions in each epoch, int64 (epochs,).
        history: float64 (n, 4): words trained, seconds of training, summed loss and number of predictions, each since
            the start of the run. With several ranks, the last two cover only rank 0.
        frozen: Bool (V,); see Initialisation.
        path: The file that the checkpoint was read from, with memory-mapped arrays; Path() for the state of a run.
        version: The version of w2v that wrote the checkpoint.
    """

    config: RunConfig
    resume_info: ResumeInfo
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
    def seconds(self) -> float:
        """The time spent on training."""
        return self.resume_info.seconds

    @property
    def loss_ratio(self) -> float:
        """The ratio that shows whether the loss has risen; see `divergence.loss_ratio`."""
        return loss_ratio(self.loss, self.losses, self.predictions)

    @property
    def mean_losses(self) -> list[float | None]:
        """The mean loss per prediction in each epoch; None for an epoch without predictions."""
        sums, counts = self.losses.tolist(), self.predictions.tolist()
        return [total / count if count else None for total, count in zip(sums, counts, strict=True)]


# -- writing ------------------------------------------------------------------------------


class CheckpointFolder:
    """A folder for the checkpoints of one run: the last two, and the best one if training may stop early.

    The folder is locked until the end of the `with` block or of the process. If it is removed during the run, it is
    created again, unless another run has already done so: then this run writes no more checkpoints.

    Attributes:
        diverged: True once a state was not written because its training had diverged.
    """

    @renamed_arguments(after="resumed_from")
    def __init__(
        self,
        folder: PathLike,
        every: str = DEFAULT_INTERVAL,
        *,
        replace: bool = False,
        resumed_from: Checkpoint | None = None,
    ):
        """Open and lock the folder.

        Args:
            folder: The folder; it is created if it does not exist.
            every: The interval between checkpoints, such as "10m"; see `schedule.interval`.
            replace: Whether checkpoints of another run may be removed.
            resumed_from: The checkpoint that the run resumes from.

        Raises:
            SettingsError: The interval is impossible.
            W2VError: The folder cannot be written, another run writes to it, or it holds checkpoints of another run
                and `replace` is false.
        """
        self.folder = Path(folder).absolute()
        self.diverged = False
        self._folder_lost = False  # another run has created the folder again
        self._interval = interval(every)
        # The checkpoints of this run, at most two, oldest first, with their loss ratios:
        self._written: dict[Path, float] = {}
        self._buffers: Arrays = {}  # copies of the matrices, written while training continues
        self._writer: Thread | None = None
        self._last_state: Checkpoint | None = None  # the last state that the writer began to write
        self._last_write = time.monotonic()
        limit = resource.getrlimit(resource.RLIMIT_CPU)[1]
        self._cpu_deadline = math.inf if limit == resource.RLIM_INFINITY else CPU_LIMIT_SHARE * limit  # seconds
        with translate_os_errors(self.folder, "write checkpoints in"):
            self.folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.folder).close()
            try:
                self._lock = Lock(self.folder)
            except BlockingIOError as error:
                raise W2VError(
                    f"another run is writing checkpoints in {self.folder}: wait for its end, or name another folder"
                ) from error
        for unfinished in self.folder.glob(".checkpoint-*.tmp"):  # files that a killed process was writing
            with suppress(OSError):
                unfinished.unlink()
        existing = files(self.folder)
        if resumed_from:
            before = [path for path in existing if sequence_number(path) < sequence_number(resumed_from.path)]
            # The checkpoint before `resumed_from` is not read, so its loss ratio is unknown. 0 marks it as written
            # before the loss rose: if the loss of `resumed_from` has risen, the next write keeps the older one instead.
            self._written = {**dict.fromkeys(before[-1:], 0.0), resumed_from.path: resumed_from.loss_ratio}
        # Files of other runs, to remove once this run has written a checkpoint:
        self._obsolete = [path for path in existing if path not in self._written]
        if not resumed_from:
            self._obsolete += [*self.folder.glob(BEST_FILE_NAME), *self.folder.glob(VIEWS_FILE_NAME)]
        self._next_number = sequence_number(existing[-1]) + 1 if existing else 1
        has_run = existing or (self.folder / VIEWS_FILE_NAME).exists()
        if has_run and not resumed_from and not replace:
            self._lock.release()
            raise W2VError(
                f"{self.folder} holds checkpoints of another run: continue it with --resume, name another folder, or "
                "add --force to replace them"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _ensure_locked(self) -> None:
        """Lock the folder again if it was removed. Raise W2VError if another run has created it in the meantime."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._lock.holds():
            return
        lock = None
        with suppress(BlockingIOError, W2VError):
            lock = Lock(self.folder)
        is_empty = not files(self.folder)
        if lock and (is_empty or lock.has_same_folder(self._lock)):
            self._lock = lock
            if is_empty:
                self._written, self._obsolete = {}, []
            return
        self._folder_lost = True
        raise W2VError(f"{self.folder} was removed and now belongs to another run: this run writes no more checkpoints")

    def wait_for_newest(self) -> Path | None:
        """Wait until a pending write has finished, and return the last checkpoint of this run, or None."""
        self._wait()
        return next(reversed(self._written), None)

    @property
    def newest(self) -> Path | None:
        """The old name of `wait_for_newest`."""
        warnings.warn("CheckpointFolder.newest is now wait_for_newest()", DeprecationWarning, stacklevel=2)
        return self.wait_for_newest()

    def discard_after_rise(self) -> Path | None:
        """Remove the checkpoints written after the loss rose, unless no checkpoint is from before the rise.

        Returns:
            The last checkpoint from before the rise, or None.
        """
        self._wait()
        if paths := self._paths_before_rise():
            self._remove_all_but(paths)
        return next(reversed(paths), None)

    def _paths_before_rise(self) -> list[Path]:
        """Return the checkpoints of this run from before the loss rose, oldest first."""
        return [path for path, ratio in self._written.items() if ratio <= WARNING_RATIO]

    def _remove_all_but(self, paths: list[Path]) -> None:
        """Remove all other checkpoints of this run."""
        for path in self._written.keys() - set(paths):
            self._lock.remove(path)
        self._written = {path: self._written[path] for path in paths}

    @property
    def copies_states(self) -> bool:
        """Whether checkpoints are written during the run, which needs a copy of the matrices."""
        return any(self._interval)

    @property
    def due(self) -> bool:
        """Whether it is time to write a checkpoint, by the interval or the limit on CPU time.

        False while the previous checkpoint is being written. For intervals of epochs or chunks, see `next_position`.
        """
        if self._folder_lost or (self._writer and not self._writer.ended):
            return False
        if time.process_time() >= self._cpu_deadline:
            return True
        return bool(self._interval.seconds) and time.monotonic() >= self._last_write + self._interval.seconds

    def next_position(self, position: int, chunks: int) -> float:
        """Return the position after `position` at which a checkpoint is due, with this many chunks per epoch.

        Infinity if the interval is a time; see `due`.
        """
        step = self._interval.epochs * chunks + self._interval.chunks
        if self._folder_lost or not step:
            return math.inf
        return max(position + 1, math.ceil((position // step + 1) * step))

    def copy(self, state: Checkpoint) -> None:
        """Copy the state of a run, and write the copy while training continues.

        Call it while the threads are stopped. With the interval "never", nothing is copied; the state is written
        immediately, and only if CPU time is running out.
        """
        if not self.copies_states:
            if time.process_time() >= self._cpu_deadline:
                self.write(state)
            return
        self._wait()
        for name, array in state.parameters.items():
            if name not in self._buffers:
                self._buffers[name] = np.empty(array.shape, array.dtype)
            np.copyto(self._buffers[name], array)
        self._start(replace(state, parameters=dict(self._buffers)))

    def write(self, state: Checkpoint) -> None:
        """Write the state of a run, without a copy, and wait until it is written.

        Call it while the threads are stopped. If a signal raises an exception in this method, the state is still
        written before the exception goes on. A second signal ends the program (console._raise_on_signals).
        """
        try:
            self._write_and_wait(state)
        except BaseException:
            self._wait()
            # The exception may have come before the writer began with this state, for example during the wait for the
            # previous checkpoint.
            if self._last_state is not state:
                self._write_and_wait(state)
            raise

    def remove_obsolete(self) -> None:
        """Remove the checkpoints of another run. Writing a checkpoint does the same."""
        for obsolete in self._obsolete:
            self._lock.remove(obsolete)
        self._obsolete = []

    def write_best(self, state: Checkpoint) -> None:
        """Write the best state so far. `best` returns it; a run cannot be resumed from it."""
        self._wait()
        self._write(state, best=True)

    def best(self) -> Checkpoint:
        """Return the state written by `write_best`, with memory-mapped arrays. Raise W2VError if there is none."""
        return read(self.folder / BEST_FILE_NAME)

    def _write_and_wait(self, state: Checkpoint) -> None:
        self._wait()
        self._start(state)
        self._wait()

    def _wait(self) -> None:
        if self._writer:
            self._writer.wait()

    def _start(self, state: Checkpoint) -> None:
        self._last_write = time.monotonic()
        if time.process_time() >= self._cpu_deadline:
            self._cpu_deadline = math.inf
        self._writer = Thread(target=self._write, args=(state,))
        try:
            self._writer.start()
        except NoThread:
            self._writer.run()

    def _write(self, state: Checkpoint, best: bool = False) -> None:
        """Write a state. An error becomes a warning, because training should continue."""
        self._last_state = state
        if self._folder_lost:
            return
        try:
            self._write_file(state, best)
        except Exception as error:
            if self._folder_lost:
                self._written = {}
                log.warning("%s", error)
                return
            kept = f"; {next(reversed(self._written))} is kept" if self._written else ""
            reason = "there is not enough memory" if isinstance(error, MemoryError) else one_line(error)
            log.warning("checkpoint not written: %s%s", reason, kept)

    def _write_file(self, state: Checkpoint, best: bool) -> None:
        parameters = state.parameters
        if not (
            np.isfinite(state.losses).all() and all_finite(parameters.values()) and state.loss_ratio <= DIVERGENCE_RATIO
        ):
            self.diverged = True
            return
        words = Words.of(state.vocabulary.words)
        arrays = {CHECKPOINT_INPUTS if name == "inputs" else name: array for name, array in parameters.items()}
        arrays |= {"words": words.blob, "word_offsets": words.offsets, "counts": state.vocabulary.counts}
        arrays |= state.loss.tensors
        arrays |= {"losses": state.losses, "predictions": state.predictions, "history": state.history}
        arrays |= {} if state.frozen is None else {"frozen": state.frozen}
        path = self.folder / (BEST_FILE_NAME if best else FILE_NAME.format(self._next_number))
        description = {"config": state.config.stored(), "position": asdict(state.resume_info)}
        # The description is stored as an array because the length of the header is limited.
        arrays["run"] = np.frombuffer(encode(description, path).encode(), np.uint8)
        header = ModelHeader(state.settings.as_dict(), text=state.config.text, package_version=__version__)
        metadata = header.to_strings(path)
        metadata["checksum"] = checksum(arrays, metadata["settings"])
        self._ensure_locked()
        native.write_native(path, arrays, metadata, replace=best, follow=False)
        if best:
            self._obsolete = [obsolete for obsolete in self._obsolete if obsolete != path]
            return
        self._next_number += 1
        # Keep two files: the new one, and the newest one from before the loss rose. If there is none, keep the newest.
        self._remove_all_but((self._paths_before_rise() or list(self._written))[-1:])
        self._written[path] = state.loss_ratio
        self.remove_obsolete()


# -- reading ------------------------------------------------------------------------------


def files(folder: Path) -> list[Path]:
    """Return the paths of the checkpoints in a folder, oldest first."""
    paths = folder.glob("checkpoint-*.safetensors")
    return sorted((path for path in paths if sequence_number(path)), key=sequence_number)


def sequence_number(path: Path) -> int:
    """Return the number in the name of a checkpoint; 0 for other files, including the best checkpoint."""
    digits = path.stem.removeprefix("checkpoint-")
    return int(digits) if digits.isdecimal() else 0


def latest(folder: PathLike) -> Checkpoint:
    """Read the newest undamaged checkpoint in a folder, and log a warning for each damaged one.

    Raises:
        W2VError: The folder has no undamaged checkpoint.
    """
    with translate_os_errors(folder):
        paths = files(Path(folder).absolute())
    if not paths:
        raise W2VError(f"{one_line(folder)} holds no checkpoint")
    for path in reversed(paths):
        try:
            return read(path)
        except (LossNotImported, VersionMismatch, SettingsError):  # the older checkpoints would raise the same error
            raise
        except W2VError as error:
            if path == paths[0]:
                raise
            log.warning("%s: resuming from the checkpoint before it", error)
    raise AssertionError


def read(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        W2VError: The file is damaged or is not a checkpoint.
        VersionMismatch: Only another version of w2v can read it.
    """
    with translate_os_errors(path), open_regular(path) as file:
        arrays, metadata = native.read_open(path, file, mmap=True)
    if "run" not in arrays or "settings" not in metadata:
        raise W2VError(f"{path} is not a checkpoint")
    version = metadata.get("package_version", "")
    try:
        if checksum(arrays, metadata["settings"]) != metadata.get("checksum"):
            raise ValueError("its checksum is wrong")
        return _parse(path, arrays, ModelHeader.from_strings(metadata, ""))
    except LossNotImported as error:
        raise LossNotImported(f"{path}: {one_line(error)}") from error
    except (TypeError, LookupError, AttributeError, RecursionError, ValueError) as error:  # W2VError is a ValueError
        if version != __version__:
            raise VersionMismatch(
                f"{path} was written by {one_line(f'w2v {version}') if version else 'an earlier w2v'}, and this is "
                f"w2v {__version__}, which cannot resume it: resume with that version"
            ) from error
        raise W2VError(f"{path} is damaged: {one_line(error)}") from error


def _parse(path: Path, arrays: Arrays, header: ModelHeader) -> Checkpoint:
    """Build a checkpoint from the content of its file.

    Raise LookupError, TypeError, AttributeError, RecursionError or ValueError if the parts do not fit together.
    """
    description = decode(dict[str, Any], arrays["run"].tobytes(), "its description")
    if "origin" in description:
        description = _convert_older(description)
    settings = settings_from(header.settings or {}, "its settings")
    config = RunConfig.from_stored(description["config"], settings)
    resume_info = convert(ResumeInfo, description["position"], "its position")
    vocabulary = Vocabulary(Words(arrays["words"], arrays["word_offsets"]), arrays["counts"])
    loss = loss_for(settings, vocabulary, arrays)
    shapes = {"inputs": (len(vocabulary), settings.vector_size), **by_tensor_name(loss.shapes)}
    if settings.ngrams:
        shapes["ngrams"] = (SubwordRows.of(settings.ngrams, vocabulary.words).shared, settings.vector_size)
    parameters = {name: arrays[CHECKPOINT_INPUTS if name == "inputs" else name] for name in shapes}
    found = {name: (array.shape, array.dtype) for name, array in parameters.items()}
    expected = {name: (shape, bfloat16.dtype_of(settings.storage)) for name, shape in shapes.items()}
    if found != expected or not all_finite(parameters.values()):
        raise ValueError(f"matrices of an unexpected shape or type, or not finite: {found}")
    dtypes = {"losses": np.dtype(np.float64), "predictions": np.dtype(np.int64)}
    expected_sums = {name: ((settings.epochs,), dtype) for name, dtype in dtypes.items()}
    found_sums = {name: (arrays[name].shape, arrays[name].dtype) for name in dtypes}
    if found_sums != expected_sums or resume_info.done > resume_info.end:
        raise ValueError("losses of a wrong shape or type, or a position past the end of the run")
    history = arrays["history"]
    if history.dtype != np.float64 or history.shape != (len(history), 4):
        raise ValueError("a history of a wrong shape or type")
    frozen = arrays.get("frozen")
    if frozen is not None and (frozen.dtype != np.bool_ or frozen.shape != (len(vocabulary),)):
        raise ValueError("frozen words of a wrong shape or type")
    return Checkpoint(
        config=config,
        resume_info=resume_info,
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


def _convert_older(description: dict[str, Any]) -> dict[str, Any]:
    """Convert the description in a checkpoint of w2v 0.2.0 that has no RunConfig.

    Raise LookupError or TypeError if it is damaged.
    """
    origin = description["origin"]
    notes = dict(origin["notes"])
    config = {name: notes.pop(name) for name in ("output", "save_vocab", "plot") if notes.get(name) is not None}
    config |= {"corpus": origin["sources"], "phrases": origin["phrases"], "notes": notes}
    reading = ("errors", "max_types", "column", "encoding")
    config["reading"] = {name: origin[name] for name in reading if name in origin} | origin["text"]
    config["checkpoint_every"] = description["every"]
    position = {each.name: description[each.name] for each in fields(ResumeInfo) if each.name in description}
    position |= {"done": description["position"], "files": origin["files"], "checksum": origin["checksum"]}
    return {"config": config, "position": position}


def checksum(arrays: Mapping[str, NDArray[Any]], settings: str) -> str:
    """Return the SHA-256, in hexadecimal, of the settings and of the arrays in the order of their names."""
    digest = hashlib.sha256(settings.encode())
    for name in sorted(arrays):
        array = bfloat16.as_uint16(np.atleast_1d(arrays[name]))
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        rows = max(1, HASH_BLOCK_BYTES * len(array) // max(1, array.nbytes))
        for start in range(0, len(array), rows):
            digest.update(np.ascontiguousarray(array[start : start + rows]).data)
    return digest.hexdigest()


if not TYPE_CHECKING:  # because type checkers would assume that every name exists

    def __getattr__(name: str) -> Any:
        """Return CheckpointFolder for its old name, with a DeprecationWarning."""
        if name != "Checkpoints":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warnings.warn(f"{__name__}.Checkpoints is now CheckpointFolder", DeprecationWarning, stacklevel=2)
        return CheckpointFolder
