"""Runs of several views: each is an ordinary run over the same text, and their vectors are concatenated.

The views train one after the other, each with all threads. The folder for checkpoints has the file `views.json`, which
describes the whole run, and a folder for each view, which is like the folder of an ordinary run. Each view has a
checkpoint from the beginning, so a resumed run needs no other files than an ordinary one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from w2v.errors import W2VError, translate_errors
from w2v.losses.registry import DEFAULT_LOSS, Settings, settings_from, view_settings
from w2v.progress import Progress, Report, notebook_bar
from w2v.settings import DEFAULT_NGRAMS
from w2v.system.files import PathLike, atomic_write, open_regular, translate_os_errors
from w2v.system.schema import decode, encode
from w2v.text.idstore import TypeCounts
from w2v.text.text_checks import has_word_parts
from w2v.training.checkpoint import Checkpoint
from w2v.training.checkpoint_folder import VIEWS_FILE_NAME, CheckpointFolder, latest
from w2v.training.config import RunConfig
from w2v.training.identity import check_identity
from w2v.training.model import Model, ViewsModel
from w2v.training.run import BaseRun, Run

# Two views are better than one model for this many words of text, and vectors of at least this many values. Longer
# vectors leave enough values to the view of words for the meanings of more words (bench/README.md, "Two views in one
# vector").
MIN_WORDS, MAX_WORDS, MIN_VECTOR_SIZE = 300_000, 5_000_000, 100
MAX_WORDS_LONG, LONG_VECTOR_SIZE = 25_000_000, 200

log = logging.getLogger("w2v")


def with_views(settings: Settings, types: TypeCounts) -> Settings:
    """Return the settings with views chosen, if they are "auto": two views for the texts that measured better so.

    The log tells the user if there are two.

    Two views are chosen only for CBOW with negative sampling, for a text of words and not of identifiers or short
    words, and if the user leaves window, vectors and subwords to w2v.

    Args:
        settings: The settings of the run.
        types: The types of the whole text.
    """
    if settings.views != "auto":
        return settings
    most = MAX_WORDS_LONG if settings.vector_size >= LONG_VECTOR_SIZE else MAX_WORDS
    is_default = (settings.model, settings.loss) == ("cbow", DEFAULT_LOSS)
    is_default = is_default and settings.window is settings.vectors is settings.subwords is None
    is_measured = settings.vector_size >= MIN_VECTOR_SIZE and MIN_WORDS <= types.tokens <= most
    two_views = types.is_text and is_default and is_measured and has_word_parts(types, DEFAULT_NGRAMS[0])
    if two_views:
        log.info(
            "a text of %s words is best learnt by two models, of words and of subwords: training both; --views words "
            "(views=) trains one",
            f"{types.tokens:,}",
        )
    return replace(settings, views="words+subwords" if two_views else "words")


@dataclass(frozen=True)
class ViewsCheckpoint:
    """The checkpoints of a run of several views.

    Attributes:
        config: The description of the whole run.
        views: The newest checkpoint of each view, by name.
        path: The file that describes the run.
    """

    config: RunConfig
    views: dict[str, Checkpoint]
    path: Path

    @property
    def settings(self) -> Settings:
        return self.config.settings

    @property
    def seconds(self) -> float:
        """The time spent on training."""
        return sum(checkpoint.seconds for checkpoint in self.views.values())


class ViewsRun(BaseRun):
    """A run of several views."""

    def __init__(self, config: RunConfig, runs: dict[str, Run]) -> None:
        first = next(iter(runs.values()))
        folders = [folder for run in runs.values() for folder in run.checkpoint_folders]
        super().__init__(replace(config, settings=replace(config.settings, epochs=first.settings.epochs)), folders)
        self._runs = runs
        self._models: dict[str, Model] = {}

    def begin_checkpoints(self, folder: CheckpointFolder | None) -> None:
        """Write a checkpoint of each view, and the description of the run, if there is a folder.

        With several ranks, all of them must call this method; only one has the folder.

        Raises:
            W2VError: The description cannot be written.
        """
        checkpoints = {name: run.make_checkpoint() for name, run in self._runs.items()}
        if folder is None:
            return
        for name, run in self._runs.items():
            if run.checkpoint_folder:
                run.checkpoint_folder.write(checkpoints[name])
        path = folder.folder / VIEWS_FILE_NAME
        description = encode(_Description(self.config.stored(), self.settings.as_dict()), path)
        with atomic_write(path, follow=False) as file:  # last, so that a run without it is not resumed
            file.write(description.encode())
        if all(each.wait_for_newest() for each in self.checkpoint_folders):
            folder.remove_obsolete()

    def train(self, report: Report | None = None) -> None:
        """Train each view to its end. See Run.train.

        Args:
            report: Called regularly with the progress of the whole run.
        """
        report = report or notebook_bar()
        words = {name: run.plan.epochs * run.tokens for name, run in self._runs.items()}
        memory, before = max(run.peak_memory for run in self._runs.values()), 0
        for name in list(self._runs):
            run = self._runs.pop(name)  # so that its threads and copies are freed before the next view
            part = _PartOfRun(report, name, before, sum(words.values()), memory) if report else None
            run.train(part)
            self._models[name] = run.model()
            before += words[name]

    def model(self) -> ViewsModel:
        """Return the trained model."""
        return ViewsModel(self.settings, self._models)


@dataclass(frozen=True)
class _Description:
    """The content of `views.json`."""

    config: dict[str, Any]
    settings: dict[str, Any]


@dataclass(frozen=True)
class _PartOfRun:
    """A progress function that reports the training of a view as a part of the whole run.

    Attributes:
        report: Receives the progress of the whole run.
        view: The name of the view.
        before: The number of words that earlier views train.
        total: The number of words that all views train.
        memory: The estimated peak memory of the whole run.
    """

    report: Report
    view: str
    before: int
    total: int
    memory: int

    def __call__(self, progress: Progress) -> None:
        done = self.before + progress.done
        left = (self.total - done) / progress.rate if progress.rate else None
        total, memory = self.total, self.memory
        self.report(replace(progress, done=done, total=total, seconds_left=left, memory=memory, view=self.view))


# -- checkpoints --------------------------------------------------------------------------


def open_folders(
    root: CheckpointFolder, checkpoints: Mapping[str, Checkpoint | None], replace_others: bool, stack: ExitStack
) -> dict[str, CheckpointFolder]:
    """Open the folder for the checkpoints of each view.

    Args:
        root: The open folder of the whole run.
        checkpoints: The checkpoint that each view resumes from; None for a new run.
        replace_others: Whether checkpoints of another run may be removed.
        stack: Closes the folders.

    Raises:
        W2VError: See CheckpointFolder.
    """
    return {
        name: stack.enter_context(
            CheckpointFolder(root.folder / name, root.every, replace=replace_others, resumed_from=each)
        )
        for name, each in checkpoints.items()
    }


def latest_checkpoint(folder: PathLike) -> Checkpoint | ViewsCheckpoint:
    """Read the newest undamaged checkpoint in a folder, of each view if the run has several.

    Raises:
        W2VError: The folder or a view has no undamaged checkpoint, or the description of the views is damaged.
        VersionMismatch: Only another version of w2v can read it.
    """
    path = Path(folder).absolute() / VIEWS_FILE_NAME
    has_views = False
    with suppress(OSError):  # the name may be too long; then `latest` raises the error
        has_views = path.exists()
    if not has_views:
        return latest(folder)
    with translate_os_errors(path), open_regular(path) as file:
        stored = decode(_Description, file.read(), path)
    settings = settings_from(stored.settings, f"{path}: its settings")
    with translate_errors(f"{path}: damaged", W2VError, to=W2VError):
        config = RunConfig.from_stored(stored.config, settings)
    if not settings.has_two_views:
        raise W2VError(f"{path}: damaged: it describes a run of one view")
    views = {name: latest(path.parent / name) for name in view_settings(settings)}
    for name, wanted in view_settings(settings).items():
        checkpoint = views[name]
        where, expected = f"{path}: its view {checkpoint.path}", replace(checkpoint.identity, run_id=config.run_id)
        check_identity(where, checkpoint.identity, expected, "start a new run with --force (force=True)")
        found = checkpoint.settings
        # The objective decides which code runs; the other values, whether the vectors can be concatenated.
        if (found.objective, found.vector_size, found.ngrams) != (wanted.objective, wanted.vector_size, wanted.ngrams):
            raise W2VError(f"{path}: damaged: it does not fit the checkpoint {checkpoint.path}")
    return ViewsCheckpoint(config, views, path)
