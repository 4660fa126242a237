"""The runs of `w2v train`, new or resumed. All arguments are checked here, before any work."""

from __future__ import annotations

import shlex
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
from w2v.training.communicator import Communicator, is_root
from w2v.training.initialisation import (
    OF_NEW_WORDS,
    Vocab,
    open_model,
    open_vectors,
    settings_for_vectors,
    text_options_of,
)
from w2v.training.model import Model
from w2v.training.schedule import DEFAULT_INTERVAL
from w2v.training.train import NEEDS, resume, train

OUTPUT = Path("model.bin")
LONG, MEASURED = 600, 5  # seconds: longer runs are announced, after this time
SHOWN_FILES = 3  # of the text, in the command that resumes a run
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
        resume_with: the command that resumes the run; None if it writes no checkpoints.
        resumable: whether there is a checkpoint to resume from.
        config: the content of the file of --save-config.
        seconds_before: of training, before the run was resumed.
    """

    run: Callable[..., Model]
    output: Path
    save_vocab: Path | None
    plot: Path | None
    force: bool
    resume_with: str | None
    resumable: Callable[[], bool]
    config: Config | None = None
    seconds_before: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Notes:
    """The notes in a checkpoint: the output files, which `--resume` shows if they are not named again."""

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


def new_job(options: Options, given: Mapping[str, Any], communicator: Communicator | None = None) -> Job:
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
    model = open_model(options.continue_from) if options.continue_from else None
    vectors = open_vectors(options.init) if options.init else None
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
    if is_root(communicator):
        others = {"--save-vocab": options.save_vocab, "--save-config": options.save_config, "--plot": options.plot}
        check_outputs([("-o", output), *others.items()], options.force, inputs, models)
    begin: dict[str, Any] = {"settings": settings, "init": vectors, "freeze": options.freeze}
    if model:
        refuse_together("--continue", ("read_vocab", "init"))
        begin = {"continue_from": model, "vocab": words, **merged}
    elif options.read_vocab:
        begin["vocabulary"] = Vocabulary.load(options.read_vocab, settings.min_count, settings.max_vocab)
    checkpoints = None
    if options.checkpoint and is_root(communicator):
        interval = options.checkpoint_every or DEFAULT_INTERVAL
        checkpoints = Checkpoints(options.checkpoint, interval, replace=options.force)
    inherited = asdict(text_options_of(model or vectors))
    reading = asdict(reading_options(inherited | file.options | given_reading(given)))
    named: dict[str, Path | str | None] = {
        "-o": output,
        "--save-vocab": options.save_vocab,
        "--plot": options.plot,
        "--phrases": phrase_file,
        "--cache": reading["cache"],
        "--objective": str(settings.objective) if settings.objective else None,
    }
    run = partial(
        train,
        files,
        **begin,
        phrases=phrases,
        checkpoint=checkpoints,
        notes=Notes.of(output=output, save_vocab=options.save_vocab, plot=options.plot),
        ignore_memory=options.ignore_memory,
        communicator=communicator,
        **reading,
    )
    return Job(
        run,
        output,
        options.save_vocab,
        options.plot,
        options.force,
        resume_command(options.checkpoint, corpus, named, options) if options.checkpoint else None,
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


def resume_job(
    folder: Path, options: Options, given: Mapping[str, Any], communicator: Communicator | None = None
) -> Job:
    """The run whose checkpoints are in a folder; settings, if given, must be those of the run.

    Its files are named again: the checkpoint may be a stranger's, and would have this user's files read and replaced,
    or a new ~/.bash_profile written. Raises SettingsError, with the whole command, if one is missing.
    """
    others = ("read_vocab", "continue_from", "vocab", "init", "freeze", "checkpoint", "config", "save_config")
    refuse_together("--resume", (*(name for name in options_of(ReadingOptions) if name != "cache"), *others))
    find_objective(given["objective"])
    found = latest(folder)
    settings = found.state.settings.as_dict()
    for name, value in given_settings(given).items():
        if value != settings[name]:
            raise SettingsError(
                f"{first_name(name)} {value}: the run in {folder} has {settings[name]}; "
                "leave it out, or start a new run"
            )
    phrase_file = Path(options.phrases) if isinstance(options.phrases, str) else None
    written = {"-o": options.output, "--save-vocab": options.save_vocab, "--plot": options.plot}
    named = written | {"--phrases": phrase_file, "--cache": given["cache"], "--objective": given["objective"]}
    origin, notes = found.origin, checked(Notes, found.origin.notes, f"{found.path}: its notes")
    before = {"-o": notes.output, "--save-vocab": notes.save_vocab, "--plot": notes.plot}
    before["--phrases"] = origin.phrases if isinstance(origin.phrases, str) else None
    unnamed = {option: one_line(path) for option, path in before.items() if path and not named[option]}
    if not options.corpus or not options.output or "--phrases" in unnamed:
        named = {"-o": "MODEL"} | {option: path for option, path in named.items() if path} | unnamed
        command = resume_command(folder, options.corpus or _shown(origin.sources), named, options)
        raise SettingsError(f"name all files again, because paths in a checkpoint are not used: {command}")
    files = [*map(Path, corpus_of(options.corpus).files)]
    if is_root(communicator):
        check_outputs(written.items(), options.force, [*files, *filter(None, [phrase_file])])
        for option, path in unnamed.items():
            say(f"the run began with {option} {path}: give it again to write that file, too")
    run = partial(
        resume,
        replace(found, every=options.checkpoint_every or found.every),
        files,
        phrases=options.phrases or False,
        cache=given["cache"],
        notes=Notes.of(output=options.output, save_vocab=options.save_vocab, plot=options.plot),
        ignore_memory=options.ignore_memory,
        communicator=communicator,
    )
    again = resume_command(folder, options.corpus, named, options)
    return Job(
        run,
        options.output,
        options.save_vocab,
        options.plot,
        options.force,
        again,
        resumable=lambda: True,
        seconds_before=found.state.seconds,
    )


def resume_command(
    folder: Path, corpus: Iterable[str], named: Mapping[str, Path | str | None], options: Options
) -> str:
    """The command that resumes the run whose checkpoints are in a folder, with the files that its options name."""
    words = [*map(_as_argument, corpus), "--resume", _as_argument(folder)]
    for option, value in named.items():
        words += [option, _as_argument(value)] if value else []
    words += ["--force"] if options.force else []
    words += ["--ignore-memory"] if options.ignore_memory else []
    return shlex.join(["w2v", "train", *words])


def _as_argument(path: Path | str) -> str:
    """A path as a command takes it: it does not look like an option."""
    return f"./{path}" if str(path).startswith("-") and str(path) != "-" else str(path)


def _shown(sources: list[str]) -> list[str]:
    """The text of a run as its checkpoint names it, shortened."""
    more = ["..."] if len(sources) > SHOWN_FILES else []
    return [one_line(source) for source in sources[:SHOWN_FILES]] + more or ["CORPUS"]


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
