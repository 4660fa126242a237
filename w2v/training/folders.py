"""The folders with the checkpoints of a training.

With one view, the checkpoints are in the folder that the user names. With two, they are in a folder for each view, and
each view has a checkpoint from the beginning, so a resumed training needs no other files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from w2v.formats.vector_file import SUBWORD_VIEW, WORD_VIEW
from w2v.system.files import PathLike, translate_os_errors
from w2v.training.checkpoint import Checkpoint
from w2v.training.checkpoint_folder import CheckpointFolder, files, latest
from w2v.training.config import RunConfig
from w2v.training.identity import check_identity


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
