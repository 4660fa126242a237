"""`Training`: the runs of the views of a model, one after the other, over one reading of the text.

Each view is an ordinary run with all threads, and has ordinary checkpoints. `open_training` is where every training
begins: `w2v.train`, `resume`, `slices` and the command line call it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Self

from w2v.errors import pluralise
from w2v.formats import bfloat16
from w2v.formats.native import header_bytes
from w2v.graph.graph import Graph
from w2v.losses import registry
from w2v.losses.registry import Settings
from w2v.progress import Progress, Report, notebook_bar
from w2v.settings import ViewOptions, Views
from w2v.system import memory
from w2v.system.files import PathLike
from w2v.system.version import __version__
from w2v.text.corpus import Corpus, Source
from w2v.text.tagging import TaggedTexts
from w2v.text.text_checks import warn_about_text
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import Checkpoint
from w2v.training.checkpoint_folder import CheckpointFolder
from w2v.training.communicator import OneProcess
from w2v.training.config import RunConfig
from w2v.training.distributed import DistributedRun
from w2v.training.folders import Folders
from w2v.training.inputs import Inputs, open_inputs
from w2v.training.model import Model, View
from w2v.training.run import Run
from w2v.training.schedule import NEVER
from w2v.training.source import views_of_source
from w2v.training.start import initialise
from w2v.training.views import ONE_VIEW, TWO_VIEWS, choose_views, settings_of_views
from w2v.vectors.keyed import KeyedVectors

METRICS_BYTES = 4096  # upper bound of the space for a model's metrics in the header of its file
FLOAT_BYTES = 4

log = logging.getLogger("w2v")


class Training:
    """The training of a model: a run for each view.

    Attributes:
        runs: The runs that are not finished, by view.
        checkpoint_folders: The folders that checkpoints are written to; empty without checkpoints.
        resources: Closes the text and the folders at the end of the `with` block.
    """

    def __init__(self, runs: dict[str, Run], folders: Folders | None = None) -> None:
        self.runs = runs
        self.checkpoint_folders = [run.checkpoint_folder for run in runs.values() if run.checkpoint_folder]
        self._folders = folders
        self._views: dict[str, View] = {}
        self.resources = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        """Close the files. Raise W2VError if the file of ids was truncated during the training."""
        self.resources.__exit__(*error)

    def write_first_checkpoints(self) -> None:
        """Write a checkpoint of each view. With several ranks, all of them must call this method.

        Raises:
            W2VError: One of them cannot be written. Checkpoints of the other views alone could not be resumed.
        """
        checkpoints = [run.make_checkpoint() for run in self.runs.values()]
        for folder, checkpoint in zip(self.checkpoint_folders, checkpoints, strict=False):
            folder.write_first(checkpoint)
        for folder in self.checkpoint_folders:  # only now can the run be resumed
            folder.remove_obsolete()

    def train(self, report: Report | None = None) -> None:
        """Train each view to its end; see Run.train.

        Args:
            report: Called regularly with the progress of the whole training.
        """
        report = report or notebook_bar()
        words = {name: run.plan.epochs * run.tokens for name, run in self.runs.items()}
        peak_memory, before = max(run.peak_memory for run in self.runs.values()), 0
        for name in words:
            run = self.runs.pop(name)  # so that its threads and copies are freed before the next view
            part = report
            if len(words) > 1:
                part = report and _part_of(report, name, before, sum(words.values()), peak_memory)
                if run.settings.stop_early:  # the scores that the run logs are of this view
                    log.info("training the view of %s", name)
            run.train(part)
            self._views[name] = run.view()
            before += words[name]
        if self._folders and all(folder.wait_for_newest() for folder in self.checkpoint_folders):
            self._folders.remove_obsolete()

    def model(self) -> Model:
        """Return the trained model."""
        return Model(self._views)


def _part_of(report: Report, view: str, before: int, total: int, memory: int) -> Report:
    """Return a progress function that reports the training of a view as a part of the whole training.

    Args:
        report: Receives the progress of the whole training.
        view: The name of the view.
        before: The number of words that earlier views train.
        total: The number of words that all views train.
        memory: The estimated peak memory of the whole training.
    """

    def report_part(progress: Progress) -> None:
        done = before + progress.done
        left = (total - done) / progress.rate if progress.rate else None
        report(replace(progress, done=done, total=total, seconds_left=left, memory=memory, view=view))

    return report_part


def open_training(
    config: RunConfig,
    corpus: Source | Corpus | Graph | TaggedTexts,
    *,
    views: Views = "auto",
    source: Model | KeyedVectors | None = None,
    vocabulary: Vocabulary | None = None,
    resume_from: Mapping[str, Checkpoint] | None = None,
    checkpoint: PathLike | CheckpointFolder | None = None,
    replace_checkpoints: bool = False,
    check_items: Callable[[Vocabulary], None] | None = None,
    ranks: OneProcess | None = None,
    progress: Report | None = None,
) -> Training:
    """Read the text of a model, and prepare a run for each view. Use the result in a `with` block.

    Args:
        config: The description of the run. For a resumed run, the result of `resumed_config`.
        corpus: The text.
        views: See `train`.
        source: The model to continue, or the vectors to initialise words with; see `open_source`.
        vocabulary: The words to train; by default, the words of the text.
        resume_from: The checkpoints to resume from; see `latest_checkpoints`.
        checkpoint: The folder for checkpoints.
        replace_checkpoints: Whether checkpoints of another run may be removed.
        check_items: A function that raises W2VError if an output cannot store the items of a vocabulary.
        ranks: The ranks that train; by default, only this process.
        progress: See `train`.

    Raises:
        W2VError: A text, model or folder cannot be used, or the matrices do not fit in memory.
    """
    ranks, resumed, folders = ranks or OneProcess(), resume_from or {}, None
    with ExitStack() as stack:
        with ranks.collective_errors():
            # A name that comes from a continued model belongs to the loss that the model was loaded with.
            known = source.settings.objective if isinstance(source, Model) else None
            objective = config.settings.objective
            if not resumed and objective not in (None, known if isinstance(known, str) else None):
                registry.find(objective)  # imports the user's loss; raises SettingsError if it is missing
            bfloat16.dtype_of(config.settings.storage)  # raises W2VError if the package ml_dtypes is missing
            views = ViewOptions(views=views).views
            views = TWO_VIEWS if len(resumed) > 1 else ONE_VIEW if resumed else views_of_source(views, source)
            settings_of_views(views, config.settings)  # raises SettingsError now, before the text is read
            for each in resumed.values():
                if each.version != __version__:
                    writer = f"the checkpoint was written by w2v {each.version}"
                    log.warning("%s, this is %s: last bits may differ", writer, __version__)
            if checkpoint is not None and ranks.is_root:
                folders = Folders(checkpoint, config, resumed, replace_checkpoints, stack)
        ranks.assert_same({"views": views})
        workers = config.settings.workers or ranks.default_workers()
        config = replace(config, settings=replace(config.settings, workers=workers))
        more: dict[str, Any] = {"checkpoints": [*resumed.values()], "ranks": ranks, "progress": progress}
        *_, settings_of_last = settings_of_views(views, config.settings).values()  # items may not suit its n-grams
        inputs = open_inputs(replace(config, settings=settings_of_last), corpus, **more)
        stack.enter_context(inputs.store)
        with ranks.collective_errors():
            if not resumed:
                views = choose_views(views, config.settings, inputs.types)
            config = replace(config, corpus=tuple(inputs.text.files if inputs.text else ()))
            settings = settings_of_views(views, config.settings)
            settings |= {name: each.settings for name, each in resumed.items()}
            folders_of_views = folders.of([*settings]) if folders else {}
            if folders:
                inputs.identify([*resumed.values()])
        runs = start_runs(
            config,
            settings,
            inputs,
            source=source,
            vocabulary=vocabulary,
            check_items=check_items,
            resume_from=resumed,
            folders=folders_of_views,
            best_folders=folders_of_views or _best_folders([*settings], config, stack),
        )
        with ranks.collective_errors():
            if folders:
                folders.set_others_aside()
        training = Training(runs, folders)
        if len(runs) > 1 and checkpoint is not None and not resumed:
            with ranks.collective_errors():
                training.write_first_checkpoints()
        training.resources = stack.pop_all()
    return training


def _best_folders(names: Sequence[str], config: RunConfig, stack: ExitStack) -> dict[str, CheckpointFolder]:
    """Return temporary folders for the best checkpoint of each view, if the run may stop early."""
    if not config.settings.stop_early:
        return {}
    temporary = Path(stack.enter_context(TemporaryDirectory(prefix="w2v-")))
    return {name: stack.enter_context(CheckpointFolder(temporary / name, NEVER)) for name in names}


def start_runs(
    config: RunConfig,
    settings: Mapping[str, Settings],
    inputs: Inputs,
    *,
    share: float = 1.0,
    source: Model | KeyedVectors | None = None,
    vocabulary: Vocabulary | None = None,
    check_items: Callable[[Vocabulary], None] | None = None,
    resume_from: Mapping[str, Checkpoint] = MappingProxyType({}),
    folders: Mapping[str, CheckpointFolder] = MappingProxyType({}),
    best_folders: Mapping[str, CheckpointFolder] = MappingProxyType({}),
) -> dict[str, Run]:
    """Start a run for each view of a model.

    Args:
        config: The description of the runs, except for their settings.
        settings: The settings of each view, by name.
        inputs: The text.
        share: The share of the text, from its start, to train on.
        source, vocabulary, check_items, resume_from: See `open_training`.
        folders: The folder for the checkpoints of each view; empty without checkpoints.
        best_folders: The folder that keeps the best checkpoint of each view, for early stopping.

    Returns:
        The runs, by name of the view.
    """
    ranks, runs = inputs.ranks, dict[str, Run]()
    for name, settings_of_view in settings.items():
        view_config = replace(config, settings=settings_of_view)
        with ranks.collective_errors():
            view = source.views[name] if isinstance(source, Model) else source
            initial = initialise(view_config, inputs, view, vocabulary, resume_from.get(name))
            if check_items and not inputs.types.is_text:
                check_items(initial.vocabulary)
            if not runs and config.freeze == "outputs" and isinstance(view, View) and name not in resume_from:
                found = f"{len(initial.vocabulary):,} of {len(view.vocabulary):,} words of the model occur in the text"
                least = pluralise(settings_of_view.min_count, "time")
                log.info("%s at least %s; the others have no vector", found, least)
        other_memory = 0
        if runs:  # the matrices of an earlier view stay until the end, and not all of their pages are in use yet
            still_needed = max(0, max(run.peak_memory for run in runs.values()) - memory.resident_bytes())
            other_memory = still_needed + FLOAT_BYTES * config.settings.vector_size * len(initial.vocabulary)
        run = (DistributedRun if ranks.size > 1 else Run)(
            view_config,
            initial,
            inputs,
            share=share,
            other_memory=other_memory,
            checkpoint_folder=folders.get(name),
            best_folder=best_folders.get(name),
        )
        with ranks.collective_errors():
            # Raise W2VError now, instead of after training, if the header of the model file would be too large.
            header = {"settings": json.dumps(run.settings.as_dict()), "metrics": " " * METRICS_BYTES}
            header_bytes("the model", run.parameters | run.plan.loss.tensors, header)
        if name in resume_from:
            run.restore(resume_from[name])
        elif ranks.is_root and not runs and share == 1:
            epochs = None if initial.parameters else config.settings.epochs
            warn_about_text(inputs.types, epochs, config.text, initial.vocabulary.words)
        runs[name] = run
    return runs
