"""The runs of `w2v train`, new or resumed. Everything is checked here, before any work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from w2v.cli import outputs
from w2v.cli.config import Config
from w2v.cli.options import (
    chosen_settings,
    first_name,
    given_reading,
    given_settings,
    reading_options,
    refuse_together,
)
from w2v.errors import SettingsError, one_line
from w2v.formats import table
from w2v.instruction_set import instruction_set
from w2v.losses import registry
from w2v.options import options_of
from w2v.schema import PathText, checked
from w2v.text.corpus import Corpus
from w2v.text.idstore import ReadingOptions
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import DEFAULT_INTERVAL, Checkpoints, latest
from w2v.training.model import Model
from w2v.training.start import Vocab
from w2v.training.train import resume, train
from w2v.training.world import World, leads

OUTPUT = Path("model.bin")


@dataclass(frozen=True)
class Job:
    """`run` trains (given `progress`); the model is written to `output`, its words to `save_vocab`, the picture of the
    run to `plot`, if any.

    `states` is the folder of its checkpoints, if any, and `resumable` says whether there is one to resume from.
    `config` is what --save-config writes.
    """

    run: Callable[..., Model]
    output: Path
    save_vocab: Path | None
    plot: Path | None
    force: bool
    states: Path | None
    resumable: Callable[[], bool]
    config: Config | None = None


@dataclass(frozen=True, kw_only=True)
class Notes:
    """What a checkpoint notes for `--resume`."""

    output: PathText | None = None
    save_vocab: PathText | None = None
    plot: PathText | None = None


def new_job(
    corpus: tuple[str, ...],
    given: dict[str, Any],
    *,
    config: Path | None,
    save_config: Path | None,
    output: Path | None,
    save_vocab: Path | None,
    plot: Path | None,
    read_vocab: Path | None,
    continue_from: Path | None,
    vocab: Vocab | None,
    phrases: bool | str | None,
    checkpoint: Path | None,
    checkpoint_every: str | None,
    force: bool,
    ignore_memory: bool,
    world: World | None = None,
) -> Job:
    """A new run. Raises W2VError, SettingsError or click.UsageError if it is impossible."""
    file = Config.load(config) if config else Config()
    if objective := given.get("objective") or file.settings.get("objective"):
        registry.find(objective)
    corpus = corpus or file.corpus
    if not corpus:
        raise click.UsageError("Missing argument 'CORPUS...'")
    if checkpoint_every and not checkpoint:
        raise click.UsageError("--checkpoint-every has no effect without --checkpoint")
    if vocab and not continue_from:
        raise click.UsageError("--vocab has no effect without --continue")
    model = Model.load(continue_from, mmap=True) if continue_from else None
    settings = chosen_settings(given, model, file.settings)
    instruction_set()  # raises if W2V_SIMD names one that the machine lacks
    files = Corpus(list(corpus)).files
    output = output or file.output or OUTPUT
    phrases = phrases or file.phrases
    phrase_file = Path(phrases) if isinstance(phrases, str) else None
    inputs = [*map(Path, files), *filter(None, [config, read_vocab, continue_from, phrase_file])]
    if leads(world):
        check_outputs(output, [save_vocab, save_config], plot, force, inputs)
    if model:
        refuse_together("--continue", ("read_vocab",))
        what = partial(train, files, continue_from=model, vocab=vocab or "old", **file.settings | given_settings(given))
    else:
        words = Vocabulary.load(read_vocab, settings.min_count, settings.max_vocab) if read_vocab else None
        what = partial(train, files, settings=settings, vocabulary=words)
    checkpoints = None
    if checkpoint and leads(world):
        checkpoints = Checkpoints(checkpoint, checkpoint_every or DEFAULT_INTERVAL, replace=force)
    notes = asdict(Notes(output=absolute(output), save_vocab=absolute(save_vocab), plot=absolute(plot)))
    inherited = asdict(model.text) if model else {}
    reading = asdict(reading_options(inherited | file.options | given_reading(given)))
    beside: dict[str, Any] = {"phrases": phrases, "notes": notes, "ignore_memory": ignore_memory, "world": world}
    run = partial(what, checkpoint=checkpoints, **beside, **reading)
    used = Config(corpus, output, settings.relevant() | reading, phrases)
    return Job(run, output, save_vocab, plot, force, checkpoint, lambda: bool(checkpoints and checkpoints.newest), used)


def resume_job(
    folder: Path,
    corpus: tuple[str, ...],
    given: dict[str, Any],
    *,
    output: Path | None,
    save_vocab: Path | None,
    plot: Path | None,
    checkpoint_every: str | None,
    force: bool,
    ignore_memory: bool,
    world: World | None = None,
) -> Job:
    """The run whose checkpoints are in a folder; settings, if given, must be those of the run."""
    beside = (*options_of(ReadingOptions), "read_vocab", "continue_from", "vocab", "phrases", "checkpoint")
    refuse_together("--resume", (*beside, "config", "save_config"))
    if given.get("objective"):
        registry.find(given["objective"])
    found = latest(folder)
    settings = found.state.settings.as_dict()
    for name, value in given_settings(given).items():
        if value != settings[name]:
            raise SettingsError(
                f"{first_name(name)} {value}: the run in {folder} has {settings[name]}; leave it out, or start another"
            )
    origin = found.origin
    notes = origin.notes if found.trusted else {}
    if not found.trusted:
        wanted = [
            f"{option} ({one_line(str(value))} when the run began)"
            for option, given, value in (
                ("CORPUS", corpus, ", ".join(map(str, origin.sources))),
                ("-o", output, origin.notes.get("output", "none")),
            )
            if not given
        ]
        if wanted:
            raise SettingsError(
                f"the checkpoints in {folder} were not written there by this user, so the paths in them are not used: "
                f"give {' and '.join(wanted)}"
            )
    kept = checked(Notes, notes, f"{found.path}: its notes")
    if not output and kept.output is None:
        raise click.UsageError("this run was not started by w2v train: name its output with -o")
    output = output or Path(str(kept.output))
    if not save_vocab and kept.save_vocab is not None:
        save_vocab = Path(kept.save_vocab)
    if not plot and kept.plot is not None:
        plot = Path(kept.plot)
    files = Corpus(list(corpus)).files if corpus else origin.sources
    if leads(world):
        check_outputs(output, [save_vocab], plot, force, map(Path, files))
    found = replace(found, every=checkpoint_every or found.every)
    notes = asdict(Notes(output=absolute(output), save_vocab=absolute(save_vocab), plot=absolute(plot)))
    run = partial(resume, found, files or None, notes=notes, ignore_memory=ignore_memory, world=world)
    return Job(run, output, save_vocab, plot, force, folder, lambda: True)


def check_outputs(
    output: Path, others: Iterable[Path | None], plot: Path | None, force: bool, inputs: Iterable[Path]
) -> None:
    """Check the files to be written: the model, `others` and a picture, each against all that are read or written."""
    read, written = list(inputs), [other for other in others if other]
    if plot:
        outputs.check_picture(plot, force, [output, *read, *written])
    outputs.check(output, force, [*read, *written])
    table.format_of(output)
    for number, other in enumerate(written):
        outputs.check(other, force, [*read, *written[:number]])


def absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())
