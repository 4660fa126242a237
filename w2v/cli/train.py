"""The runs of `w2v train`, new or resumed. All arguments are checked here, before any work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from w2v.cli import outputs
from w2v.cli.config import Config
from w2v.cli.console import say
from w2v.cli.options import (
    chosen_settings,
    corpus_of,
    find_objective,
    first_name,
    given_reading,
    given_settings,
    merged_settings,
    reading_options,
    refuse_together,
)
from w2v.errors import SettingsError, one_line
from w2v.formats import table
from w2v.kernel.plan import instruction_set
from w2v.losses.registry import LOSSES, Settings
from w2v.options import options_of
from w2v.progress import Progress, Report, duration
from w2v.system.schema import PathText, checked
from w2v.text.idstore import ReadingOptions
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import Checkpoints, latest
from w2v.training.interval import DEFAULT_INTERVAL
from w2v.training.model import Model
from w2v.training.start import OF_NEW_WORDS, Vocab, opened, opened_vectors, settings_for_vectors, text_of
from w2v.training.train import NEEDS, resume, train
from w2v.training.world import World, leads

OUTPUT = Path("model.bin")
LONG, MEASURED = 600, 5  # seconds: longer runs are announced, after this time
RESUMABLE = "with --checkpoint states, a run can be resumed after Ctrl-C"


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of w2v train except Settings, ReadingOptions and those about its output on the terminal."""

    corpus: tuple[str, ...]
    config: Path | None
    save_config: Path | None
    output: Path | None
    save_vocab: Path | None
    plot: Path | None
    read_vocab: Path | None
    continue_from: Path | None
    vocab: Vocab | None
    init: Path | None
    freeze: bool
    phrases: bool | str | None
    checkpoint: Path | None
    checkpoint_every: str | None
    resume: Path | None
    force: bool
    ignore_memory: bool


@dataclass(frozen=True)
class Job:
    """A run of training and its outputs.

    Attributes:
        run: trains, with the argument `progress`.
        output, save_vocab, plot: files for the model and, if given, its vocabulary and the plot of the run.
        force: whether existing files are replaced.
        states: the folder of its checkpoints, if any. resumable: whether there is one to resume from.
        config: the content of the file of --save-config.
        seconds_before: of training, before the run was resumed.
    """

    run: Callable[..., Model]
    output: Path
    save_vocab: Path | None
    plot: Path | None
    force: bool
    states: Path | None
    resumable: Callable[[], bool]
    config: Config | None = None
    seconds_before: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Notes:
    """The notes in a checkpoint: the output files, for `--resume`."""

    output: PathText | None = None
    save_vocab: PathText | None = None
    plot: PathText | None = None

    @classmethod
    def of(cls, **paths: Path | None) -> dict[str, Any]:
        return asdict(cls(**{name: str(path.absolute()) for name, path in paths.items() if path}))


@dataclass
class Forecast:
    """Passes on the progress of a new run. If it will take long, it says so once, and what would help.

    Attributes:
        report: receives the progress. settings: those that have an effect in the run.
        resumable: whether the run has checkpoints. known: whether the duration is known.
    """

    report: Report
    settings: Mapping[str, Any]
    resumable: bool
    known: bool = False

    def __call__(self, progress: Progress) -> None:
        self.report(progress)
        if self.known or progress.phase != "train" or not progress.rate or progress.done < MEASURED * progress.rate:
            return
        self.known, seconds = True, (progress.total or 0) / progress.rate
        if seconds > LONG:
            say("; ".join([f"at this speed, training takes about {duration(seconds)}", *self._advice()]))

    def _advice(self) -> Iterator[str]:
        kind = LOSSES.get(self.settings["loss"])
        if self.settings.get("sampled_mixtures") is False:
            yield "--sampled-mixtures is quicker"
        elif kind and not kind.epochs_by_size:
            yield f"the losses {', '.join(name for name, other in LOSSES.items() if other.epochs_by_size)} are quicker"
        if not self.resumable:
            yield RESUMABLE


def new_job(options: Options, given: Mapping[str, Any], world: World | None = None) -> Job:
    """A new run with these settings. Raises W2VError, SettingsError or click.UsageError if it is impossible."""
    file = Config.load(options.config) if options.config else Config()
    find_objective(given["objective"])
    own = merged_settings(given, file.settings).get("objective")
    if own != given["objective"]:
        raise SettingsError(
            f"{options.config}: its objective is {one_line(own)}, and files run no code: if you trust that code, add "
            f"--objective {one_line(own)}"
        )
    corpus = options.corpus or file.corpus
    if not corpus:
        taken = f": {options.phrases} is the FILE of --phrases" if isinstance(options.phrases, str) else ""
        raise click.UsageError(f"Missing argument 'CORPUS...'{taken}")
    _refuse_what_needs_another(options)
    model = opened(options.continue_from) if options.continue_from else None
    vectors = opened_vectors(options.init) if options.init else None
    words = options.vocab or "old"
    unused = OF_NEW_WORDS if model and words == "old" else ()
    config = {name: value for name, value in file.settings.items() if name not in unused}
    settings, merged = chosen_settings(given, config, model, words), merged_settings(given, config)
    if vectors:
        settings = settings_for_vectors(vectors, merged, options.freeze)
    instruction_set()  # raises if W2V_SIMD names one that the machine lacks
    files = [*map(Path, corpus_of(corpus).files)]
    output = options.output or file.output or default_output(settings)
    phrases = options.phrases or file.phrases
    phrase_file = Path(phrases) if isinstance(phrases, str) else None
    inputs = [*files, *filter(None, [options.config, options.read_vocab, phrase_file])]
    tree_vectors = merged.get("tree_vectors")
    models = filter(None, [options.continue_from, options.init, tree_vectors and Path(tree_vectors)])
    if leads(world):
        others = {"--save-vocab": options.save_vocab, "--save-config": options.save_config, "--plot": options.plot}
        check_outputs([("-o", output), *others.items()], options.force, inputs, models)
    begin: dict[str, Any] = {"settings": settings, "init": vectors, "freeze": options.freeze}
    if model:
        refuse_together("--continue", ("read_vocab", "init"))
        begin = {"continue_from": model, "vocab": words, **merged}
    elif options.read_vocab:
        begin["vocabulary"] = Vocabulary.load(options.read_vocab, settings.min_count, settings.max_vocab)
    checkpoints = None
    if options.checkpoint and leads(world):
        interval = options.checkpoint_every or DEFAULT_INTERVAL
        checkpoints = Checkpoints(options.checkpoint, interval, replace=options.force)
    inherited = asdict(text_of(model or vectors))
    reading = asdict(reading_options(inherited | file.options | given_reading(given)))
    run = partial(
        train,
        files,
        **begin,
        phrases=phrases,
        checkpoint=checkpoints,
        notes=Notes.of(output=output, save_vocab=options.save_vocab, plot=options.plot),
        ignore_memory=options.ignore_memory,
        world=world,
        **reading,
    )
    return Job(
        run,
        output,
        options.save_vocab,
        options.plot,
        options.force,
        options.checkpoint,
        resumable=lambda: bool(checkpoints and checkpoints.newest),
        config=Config(corpus, output, settings.saved() | reading, phrases),
    )


def _refuse_what_needs_another(options: Options) -> None:
    """Raise click.UsageError for an option without the one that it needs."""
    for option, needed in NEEDS.items():
        if getattr(options, option) and not getattr(options, needed):
            name, other = (f"--{each.removesuffix('_from').replace('_', '-')}" for each in (option, needed))
            raise click.UsageError(f"{name} has no effect without {other}")


def default_output(settings: Settings) -> Path:
    return OUTPUT.with_suffix(".safetensors") if settings.subwords else OUTPUT


def resume_job(folder: Path, options: Options, given: Mapping[str, Any], world: World | None = None) -> Job:
    """The run whose checkpoints are in a folder; settings, if given, must be those of the run."""
    others = ("read_vocab", "continue_from", "vocab", "init", "freeze", "phrases", "checkpoint", "config")
    refuse_together("--resume", (*options_of(ReadingOptions), *others, "save_config"))
    find_objective(given["objective"])
    found = latest(folder)
    settings = found.state.settings.as_dict()
    for name, value in given_settings(given).items():
        if value != settings[name]:
            raise SettingsError(
                f"{first_name(name)} {value}: the run in {folder} has {settings[name]}; "
                "leave it out, or start a new run"
            )
    origin = found.origin
    notes = origin.notes if found.trusted else {}
    if not found.trusted:
        missing = [
            f"{option} ({one_line(str(value))} when the run began)"
            for option, value, given_now in (
                ("CORPUS", ", ".join(map(str, origin.sources)), options.corpus),
                ("-o", origin.notes.get("output", "none"), options.output),
            )
            if not given_now
        ]
        if missing:
            raise SettingsError(
                f"the checkpoints in {folder} were not written there by this user, so the paths in them are not used: "
                f"give {' and '.join(missing)}"
            )
    kept = asdict(checked(Notes, notes, f"{found.path}: its notes"))
    output, save_vocab, plot = (getattr(options, name) or (path and Path(path)) for name, path in kept.items())
    if not output:
        raise click.UsageError("this run was not started by w2v train: name its output with -o")
    files = [*map(Path, corpus_of(options.corpus).files if options.corpus else origin.sources)]
    if leads(world):
        written = [("-o", output), ("--save-vocab", save_vocab), ("--plot", plot)]
        check_outputs(written, options.force, files)
    found = replace(found, every=options.checkpoint_every or found.every)
    notes = Notes.of(output=output, save_vocab=save_vocab, plot=plot)
    run = partial(resume, found, files or None, notes=notes, ignore_memory=options.ignore_memory, world=world)
    return Job(run, output, save_vocab, plot, options.force, folder, lambda: True, seconds_before=found.state.seconds)


def check_outputs(
    files: Iterable[tuple[str, Path | None]], force: bool, inputs: Iterable[Path], models: Iterable[Path] = ()
) -> None:
    """Check the files to be written, each against all `inputs` and `models` that are read, and all that are written.

    They are given with the options that name them: first the model, then others or None.
    """
    read, models, written = list(inputs), list(models), [(option, path) for option, path in files if path]
    for index, (option, path) in enumerate(written):
        check = outputs.check_picture if option == "--plot" else outputs.check
        others = [other for _, other in written[:index] + written[index + 1 :]]
        check(path, force, [*read, *others], f"with {option}", models)
    for path in table.beside(written[0][1]):
        outputs.check(path, force, [*read, *(other for _, other in written)], models=models)
