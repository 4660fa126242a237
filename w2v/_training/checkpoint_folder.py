"""`CheckpointFolder`: when to write the checkpoints of a run, and which of them to keep.

With one view, the checkpoints are in the folder that the user names. With two, they are in a folder for each view, and
each view has a checkpoint from the beginning, so a resumed training needs no other files: see `Folders`.
"""

from __future__ import annotations

import logging
import math
import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError, one_line
from w2v._formats.vector_file import SUBWORD_VIEW, WORD_VIEW
from w2v._losses.loss import Loss
from w2v._system.files import PathLike, translate_os_errors
from w2v._system.lock import Lock
from w2v._system.memory import cpu_seconds_limit
from w2v._system.threads import NoThread, Thread
from w2v._training.checkpoint import WARNING_RATIO, Checkpoint, DamagedCheckpoint, read_checkpoint, write_checkpoint
from w2v._training.config import RunConfig
from w2v._training.identity import check_identity
from w2v._training.schedule import DEFAULT_INTERVAL, interval

FILE_NAME, BEST_FILE_NAME = "checkpoint-{:06}.safetensors", "checkpoint-best.safetensors"
FILES = FILE_NAME.replace("{:06}", "*")
# This is added to the names of another run's files that a new run is to replace. A resumed run does not see them, and
# the first checkpoint of the new run removes them.
REPLACED = ".replaced"
# A checkpoint is written after this share of the hard limit on CPU time; at the limit the system kills the process.
CPU_LIMIT_SHARE = 0.75

log = logging.getLogger("w2v")


class CheckpointFolder:
    """A folder for the checkpoints of one run: the last two, and the best one if training may stop early.

    The folder is locked until the end of the `with` block or of the process. If it is removed during the run, it is
    created again. While it belongs to another run, this run writes and removes nothing there.

    Attributes:
        folder: The absolute path of the folder.
        diverged: True once a checkpoint was not written because training had diverged.
    """

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
            replace: Whether checkpoints of another run may be removed. `set_others_aside` renames them, and they are
                removed once this run has written a checkpoint.
            resumed_from: The checkpoint that the run resumes from.

        Raises:
            SettingsError: The interval is impossible.
            W2VError: The folder cannot be written, another run writes to it, or it holds checkpoints of another run
                and `replace` is false.
        """
        self.folder = Path(folder).absolute()
        self.diverged, self._replace = False, replace
        self._interval = interval(every)
        # The checkpoints of this run, at most two, oldest first, with their loss ratios:
        self._written: dict[Path, float] = {}
        self._buffers: dict[str, NDArray[Any]] = {}  # copies of the matrices, written while training continues
        self._writer: Thread | None = None
        self._last_begun: Checkpoint | None = None  # the last checkpoint that the writer began to write
        self._last_write = time.monotonic()
        self._cpu_deadline = CPU_LIMIT_SHARE * cpu_seconds_limit()
        with translate_os_errors(self.folder, "write checkpoints in"):
            self.folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.folder).close()
            self._lock = self._new_lock()
        for unfinished in self.folder.glob(".checkpoint-*.tmp"):  # files that a killed process was writing
            with suppress(OSError):
                unfinished.unlink()
        existing = files(self.folder)
        self._next_number = sequence_number(existing[-1]) + 1 if existing else 1
        if resumed_from:
            before = [path for path in existing if sequence_number(path) < sequence_number(resumed_from.path)]
            # The checkpoint before `resumed_from` is not read, so its loss ratio is unknown. 0 marks it as written
            # before the loss rose: if the loss of `resumed_from` has risen, the next write keeps the older one instead.
            self._written = {**dict.fromkeys(before[-1:], 0.0), resumed_from.path: resumed_from.loss_ratio}
        elif not replace and (existing or any(self.folder.glob(FILES + REPLACED))):
            self._lock.release()
            raise W2VError(
                f"{self.folder} holds checkpoints of another run: continue it with --resume, name another folder, or "
                "add --force to replace them"
            )

    def _new_lock(self) -> Lock:
        try:
            return Lock(self.folder)
        except BlockingIOError as error:
            raise W2VError(
                f"another run is writing checkpoints in {self.folder}: wait for its end, or name another folder"
            ) from error

    def set_others_aside(self) -> None:
        """Rename damaged files and files of another run, so that resuming does not continue that run.

        Call this method when the run is about to train: a run that cannot start must not touch them.

        Raises:
            W2VError: A file cannot be renamed.
        """
        if not (self._replace or self._written) or not self._lock.holds():  # a new folder, or a removed one
            return
        others = [path for path in files(self.folder) if path not in self._written]
        if not self._written:
            others += self.folder.glob(BEST_FILE_NAME)
        with translate_os_errors(self.folder, "replace checkpoints in"):
            # The oldest first: if this is interrupted, the newest is still there to resume from.
            for path in others:
                path.replace(f"{path}{REPLACED}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._wait()  # the writer uses the lock
        self._lock.release()

    def _ensure_locked(self, checkpoint: Checkpoint) -> None:
        """Create and lock the folder again if it was removed.

        Args:
            checkpoint: The checkpoint to write.

        Raises:
            W2VError: Another run has created the folder in the meantime.
        """
        if self._lock.holds():
            return
        written, self._written = self._written, {}
        self.folder.mkdir(parents=True, exist_ok=True)
        lock, existing = self._new_lock(), files(self.folder)
        for path in existing:
            check_identity(path, read_checkpoint(path, checkpoint.loss).identity, checkpoint.identity)
        self._lock, self._written = lock, {path: written.get(path, 0.0) for path in existing}

    def wait_for_newest(self) -> Path | None:
        """Wait until a pending write has finished, and return the last checkpoint of this run, or None."""
        self._wait()
        return next(reversed(self._written), None)

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
        self._remove(self._written.keys() - set(paths))
        self._written = {path: self._written[path] for path in paths}

    def _remove(self, paths: Iterable[Path]) -> None:
        """Remove files, unless the folder was removed and may belong to another run now. Ignore errors."""
        for path in paths:
            with suppress(OSError):
                if self._lock.holds():
                    path.unlink()

    @property
    def copies_matrices(self) -> bool:
        """Whether checkpoints are written while training continues, from a copy of the matrices."""
        return any(self._interval)

    @property
    def due(self) -> bool:
        """Whether it is time to write a checkpoint, by the interval or the limit on CPU time.

        False while the previous checkpoint is being written. For intervals of epochs or chunks, see `next_position`.
        """
        if self._writer and not self._writer.ended:
            return False
        if time.process_time() >= self._cpu_deadline:
            return True
        return bool(self._interval.seconds) and time.monotonic() >= self._last_write + self._interval.seconds

    def next_position(self, position: int, chunks: int) -> float:
        """Return the position at which the next checkpoint is due.

        Args:
            position: The position of the run.
            chunks: The number of chunks per epoch.

        Returns:
            A position after `position`; infinity if the interval is a time (see `due`).
        """
        step = self._interval.epochs * chunks + self._interval.chunks
        if not step:
            return math.inf
        return max(position + 1, math.ceil((position // step + 1) * step))

    def copy(self, checkpoint: Checkpoint) -> None:
        """Copy the matrices of a checkpoint, and write the copy while training continues.

        Call it while the threads are stopped. With the interval "never", nothing is copied; the checkpoint is written
        immediately, and only if CPU time is running out.
        """
        if not self.copies_matrices:
            if time.process_time() >= self._cpu_deadline:
                self.write(checkpoint)
            return
        self._wait()
        for name, array in checkpoint.parameters.items():
            if name not in self._buffers:
                self._buffers[name] = np.empty(array.shape, array.dtype)
            np.copyto(self._buffers[name], array)
        self._start(replace(checkpoint, parameters=dict(self._buffers)))

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint without copying the matrices, and wait until it is written.

        Call it while the threads are stopped. If a signal raises an exception in this method, the checkpoint is still
        written before the exception goes on. A second signal ends the program (console._raise_on_signals).
        """
        try:
            self._wait()
            self._start(checkpoint)
            self._wait()
        except BaseException:
            self._wait()
            # The exception may have come before the writer began with this checkpoint, for example during the wait for
            # the previous one.
            if self._last_begun is not checkpoint:
                self._start(checkpoint)
                self._wait()
            raise

    def write_first(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint in this thread, and remove no other.

        Raises:
            W2VError: It cannot be written.
        """
        self._ensure_locked(checkpoint)
        # A write that failed may have left a file.
        while os.path.lexists(path := self.folder / FILE_NAME.format(self._next_number)):
            self._next_number += 1
        write_checkpoint(path, checkpoint)
        self._next_number += 1
        self._written[path] = checkpoint.loss_ratio

    def write_best(self, checkpoint: Checkpoint) -> None:
        """Write the best checkpoint so far. `best` returns it; a run cannot be resumed from it."""
        self._wait()
        self._write(checkpoint, best=True)

    def best(self, loss: Loss | None = None) -> Checkpoint:
        """Return the checkpoint written by `write_best`, with memory-mapped arrays. `loss` is as in `read_checkpoint`.

        Raises:
            W2VError: No best checkpoint was written, or it is damaged.
        """
        return read_checkpoint(self.folder / BEST_FILE_NAME, loss)

    def remove_obsolete(self) -> None:
        """Remove the files that were set aside. Writing a checkpoint does the same."""
        self._remove(self.folder.glob(FILES + REPLACED))

    def _wait(self) -> None:
        """Wait until the thread that writes a checkpoint ends."""
        if self._writer:
            self._writer.wait()

    def _start(self, checkpoint: Checkpoint) -> None:
        """Start a thread that writes a checkpoint. Signals do not interrupt it."""
        self._last_write = time.monotonic()
        if time.process_time() >= self._cpu_deadline:
            self._cpu_deadline = math.inf
        self._writer = Thread(target=self._write, args=(checkpoint,))
        try:
            self._writer.start()
        except NoThread:
            self._writer.run()

    def _write(self, checkpoint: Checkpoint, best: bool = False) -> None:
        """Write a checkpoint, and remove older ones. An error becomes a warning, because training should continue."""
        self._last_begun = checkpoint
        try:
            if checkpoint.has_diverged:
                self.diverged = True
                return
            if best:
                self._ensure_locked(checkpoint)
                write_checkpoint(self.folder / BEST_FILE_NAME, checkpoint, replace=True)
                return
            # Keep two files: the new one, and the newest one from before the loss rose. If there is none, keep the
            # newest.
            kept = (self._paths_before_rise() or list(self._written))[-1:]
            self.write_first(checkpoint)
            self._remove_all_but([*kept, *list(self._written)[-1:]])
            self.remove_obsolete()
        except Exception as error:
            left = f"; {next(reversed(self._written))} is kept" if self._written else ""
            reason = "there is not enough memory" if isinstance(error, MemoryError) else one_line(error)
            log.warning("checkpoint not written: %s%s", reason, left)


def files(folder: Path) -> list[Path]:
    """Return the paths of the checkpoints in a folder, oldest first."""
    paths = folder.glob(FILES)
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
        replaced = [*Path(folder).rglob(FILES + REPLACED)]
    if not paths:
        since = f" since a new run began to replace its files: remove {REPLACED} from their names to resume the old run"
        raise W2VError(f"{one_line(folder)} holds no checkpoint{since if replaced else ''}")
    for path in reversed(paths):
        try:
            return read_checkpoint(path)
        except DamagedCheckpoint as error:  # the older checkpoints would raise any other error, too
            if path == paths[0]:
                raise
            log.warning("%s: resuming from the checkpoint before it", error)
    raise AssertionError


def latest_checkpoints(folder: PathLike) -> dict[str, Checkpoint]:
    """Read the newest undamaged checkpoint of each view of a run, by the name of the view.

    Raises:
        W2VError: The folder or a view has no undamaged checkpoint, or the views belong to different runs.
        VersionMismatch: Only another version of w2v can read it.
    """
    root = Path(folder).absolute()
    with translate_os_errors(folder):
        is_one_view = files(root) or not _has_views(root)
    if is_one_view:
        return {WORD_VIEW: latest(folder)}
    checkpoints = {name: latest(root / name) for name in (WORD_VIEW, SUBWORD_VIEW)}
    first, second = checkpoints.values()
    check_identity(second.path, second.identity, first.identity, "start a new run with --force (force=True)")
    return checkpoints


def run_folder(checkpoints: Mapping[str, Checkpoint]) -> Path:
    """Return the folder that checkpoints were read from with `latest_checkpoints`. The resumed run goes on using it."""
    folder = checkpoints[WORD_VIEW].path.parent
    return folder.parent if len(checkpoints) > 1 else folder


def has_checkpoints(folder: Path) -> bool:
    """Return whether a folder has checkpoints of a run of one view or of several."""
    return bool(files(folder)) or _has_views(folder)


def _has_views(folder: Path) -> bool:
    return any(files(folder / name) for name in (WORD_VIEW, SUBWORD_VIEW))


class Folders:
    """The folders for the checkpoints of a run, by view.

    They are opened before the text is read, so that a folder with another run is refused early. Then it is not known
    yet whether there are two views, so the folders of both layouts are opened if they exist.
    """

    def __init__(
        self,
        root: PathLike | CheckpointFolder,
        config: RunConfig,
        checkpoints: Mapping[str, Checkpoint],
        replace_others: bool,
        stack: ExitStack,
    ) -> None:
        self._options: dict[str, Any] = {"every": config.checkpoint_every, "replace": replace_others}
        self._checkpoints, self._stack = checkpoints, stack
        self._root = root if isinstance(root, CheckpointFolder) else self._open(Path(root), WORD_VIEW)
        stack.enter_context(self._root)
        self._of_views = {
            name: stack.enter_context(self._open(self._root.folder / name, name))
            for name in (WORD_VIEW, SUBWORD_VIEW)
            if (self._root.folder / name).is_dir()
        }

    def _open(self, folder: Path, name: str) -> CheckpointFolder:
        checkpoint = self._checkpoints.get(name)
        is_own = checkpoint is not None and checkpoint.path.parent == folder.absolute()
        return CheckpointFolder(folder, resumed_from=checkpoint if is_own else None, **self._options)

    def of(self, names: Sequence[str]) -> dict[str, CheckpointFolder]:
        """Return the folder of each view of the run."""
        if len(names) == 1:
            return {WORD_VIEW: self._root}
        for name in names:
            if name not in self._of_views:
                self._of_views[name] = self._stack.enter_context(self._open(self._root.folder / name, name))
        return self._of_views

    def set_others_aside(self) -> None:
        """Rename the checkpoints of other runs; see CheckpointFolder."""
        for folder in (self._root, *self._of_views.values()):
            folder.set_others_aside()

    def remove_obsolete(self) -> None:
        """Remove the checkpoints of other runs."""
        for folder in (self._root, *self._of_views.values()):
            folder.remove_obsolete()
