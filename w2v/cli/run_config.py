"""Build the RunConfig of `w2v train`, for a new or a resumed run, and check all arguments before the work starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from w2v.cli import outputs
from w2v.cli.console import say
from w2v.cli.options import (
    LOSS_NAMES,
    check_effect,
    corpus_of,
    find_objective,
    first_name,
    given_reading,
    given_settings,
    given_walks,
    refuse_together,
)
from w2v.errors import SettingsError, one_line
from w2v.formats import fasttext, table
from w2v.graph.walks import WalkOptions
from w2v.kernel.plan import instruction_set
from w2v.losses.registry import LOSSES, Settings
from w2v.options import options_of
from w2v.progress import Progress, Report, duration
from w2v.system.shell import join_command
from w2v.text.idstore import ReadingOptions
from w2v.training.communicator import Communicator, is_root
from w2v.training.config import PATHS, RunConfig, read_options
from w2v.training.initialisation import WORD_SELECTION_SETTINGS, open_source
from w2v.training.prepare import resumed_config
from w2v.training.views import latest_checkpoint

OUTPUT = Path("model.bin")
LONG_RUN_SECONDS = 600  # a notice says how long a longer run will take
NOTICE_AFTER_SECONDS = 5  # training time before this notice, until the speed is known well enough
SHOWN_FILES = 3  # number of corpus files shown in the command that resumes a run
RESUMABLE = "with --checkpoint DIR, a run can be resumed after Ctrl-C"
# Options of RunConfig.from_options, except the options of Settings, ReadingOptions and WalkOptions.
RUN_OPTIONS = (*PATHS, "corpus", "graph", "preset", "vocab", "freeze", "phrases", "checkpoint_every", "ignore_memory")
OPTION_NAMES = {"continue_from": "--continue", "vocabulary": "--read-vocab"}  # options that differ from their field


@dataclass
class LongRunNotice:
    """A progress function that prints a notice if a new run will take long. The notice says what would be faster.

    Attributes:
        report: The progress function that receives all reports.
        settings: The settings that have an effect in the run.
        resumable: Whether the run has checkpoints.
        decided: Whether the notice has been printed or turned out to be unnecessary.
    """

    report: Report
    settings: Mapping[str, Any]
    resumable: bool
    decided: bool = False

    def __call__(self, progress: Progress) -> None:
        self.report(progress)
        if self.decided or progress.phase != "train" or not progress.rate:
            return
        if progress.done < NOTICE_AFTER_SECONDS * progress.rate:
            return
        self.decided, seconds = True, (progress.total or 0) / progress.rate
        if seconds > LONG_RUN_SECONDS:
            say("; ".join([f"at this speed, training takes about {duration(seconds)}", *self._advice()]))

    def _advice(self) -> Iterator[str]:
        # Only the quick losses get more epochs on a small text by default.
        quick = [name for name, kind in LOSSES.items() if kind.epochs_by_size]
        loss = self.settings["loss"]
        if self.settings.get("sampled_mixtures") is False:
            yield "--sampled-mixtures is quicker"
        elif loss in LOSSES and loss not in quick:
            yield f"the losses {', '.join(quick)} are quicker"
        if not self.resumable:
            yield RESUMABLE


def new_run(given: Mapping[str, Any], communicator: Communicator | None) -> tuple[RunConfig, dict[str, Any]]:
    """Return the config of a new run, and more arguments of `prepare`: the corpus and the initial vectors.

    Args:
        given: The options and arguments of the command.
        communicator: The communicator of an MPI job; only its root checks the output files.

    Raises:
        W2VError: If a file cannot be read or written.
        SettingsError: If a value is impossible.
        click.UsageError: If options contradict each other.
    """
    file_options = read_options(given["config"]) if given["config"] else {}
    find_objective(given["objective"])
    chosen = given_settings(given)
    run_options = {name: given[name] for name in RUN_OPTIONS if given[name] not in (None, False, ())}
    # --loss also replaces the objective of the file, and --objective its loss.
    replaced = LOSS_NAMES if chosen.keys() & LOSS_NAMES else set()
    options = {name: value for name, value in file_options.items() if name not in replaced} | chosen
    objective = options.get("objective")
    if objective != given["objective"]:
        raise SettingsError(
            f"{given['config']}: its objective is {objective:.100}, and w2v does not run code that a file names: if "
            f"you trust that code, add --objective {objective:.100}"
        )
    if run_options.get("continue_from") and run_options.get("vocab", RunConfig.vocab) == "old":
        # The config file may come from a run that chose words from its text. With the words of the old model,
        # RunConfig would refuse the settings of this choice, so they are left out unless the user repeats them.
        options = {
            name: value for name, value in options.items() if name not in WORD_SELECTION_SETTINGS or name in chosen
        }
    options |= given_reading(given) | given_walks(given) | run_options
    if not options.get("corpus"):
        reason = f": {given['phrases']} is the FILE of --phrases" if isinstance(given["phrases"], str) else ""
        raise click.UsageError(f"Missing argument 'CORPUS...'{reason}")
    corpus = corpus_of(options["corpus"])
    source = open_source(run_options.get("continue_from"), run_options.get("init"), run_options.get("freeze"))
    config = RunConfig.from_options(options, source, display_name=option_name)
    check_effect(config.settings, chosen)
    config = replace(config, output=config.output or str(default_output(config.settings)))
    instruction_set()  # raises SettingsError if W2V_SIMD names an instruction set that the machine lacks
    if is_root(communicator):
        inputs = [*corpus.files, given["config"], config.vocabulary, _phrase_file(config)]
        others = {"--save-vocab": config.save_vocab, "--save-config": given["save_config"], "--plot": config.plot}
        models = _paths([config.continue_from, config.init, options.get("tree_vectors")])
        check_outputs([("-o", config.output), *others.items()], given["force"], _paths(inputs), models)
    config = replace(config, settings=one_view_for_fasttext(config.settings, str(config.output)))
    return config, {"corpus": corpus, "source": source}


def option_name(name: str) -> str:
    """Return the command-line name of a field of RunConfig."""
    if name in options_of(WalkOptions):
        return first_name(name, WalkOptions)
    return OPTION_NAMES.get(name, f"--{name.replace('_', '-')}")


def default_output(settings: Settings) -> Path:
    """Return the output file of a run without -o: .safetensors if it has n-grams, which .bin cannot hold."""
    return OUTPUT.with_suffix(".safetensors") if settings.subwords else OUTPUT


def one_view_for_fasttext(settings: Settings, output: Path | str) -> Settings:
    """Return the settings with one view instead of "auto" for a .ft.bin file, which holds only the view of subwords."""
    if settings.views == "auto" and table.format_for(output).write is fasttext.write:
        return replace(settings, views="words")
    return settings


def resumed_run(given: Mapping[str, Any], communicator: Communicator | None) -> tuple[RunConfig, dict[str, Any]]:
    """Return the config of a run that `w2v train --resume` continues, and the corpus and checkpoint for `prepare`.

    The user must name all files of the run again. Someone else may have written the checkpoint: paths in it could make
    w2v read or replace any file of this user, or write a new ~/.bash_profile.

    Raises:
        SettingsError: If a file is not named, or a setting differs from the run. In the first case, the message shows
            the whole command.
        W2VError: If a file cannot be read or written.
        click.UsageError: If an option has no effect on a resumed run.
    """
    folder = given["resume"]
    others = ("vocabulary", "continue_from", "vocab", "init", "freeze", "preset", "checkpoint", "config", "save_config")
    reading = (name for name in options_of(ReadingOptions) if name != "cache")
    refuse_together("--resume", (*reading, *options_of(WalkOptions), "graph", *others))
    find_objective(given["objective"])
    chosen = given_settings(given)
    checkpoint = latest_checkpoint(folder)
    settings = checkpoint.settings.as_dict()
    for name, value in chosen.items():
        if value not in (settings[name], "auto"):  # "auto" was replaced by a value when the run began
            raise SettingsError(
                f"{first_name(name)} {value}: the run in {folder} has {settings[name]}; "
                "leave it out, or start a new run"
            )
    phrases = given["phrases"] if isinstance(given["phrases"], str) else None
    named = {
        "-o": given["output"],
        "--save-vocab": given["save_vocab"],
        "--plot": given["plot"],
        "--phrases": phrases,
        "--cache": given["cache"],
        "--objective": given["objective"],
    }
    unnamed = {
        option: one_line(path)
        for option, path in named_files(checkpoint.config).items()
        # A run can be resumed without its cache, and a loss that is not imported has an error of its own.
        if path and not named[option] and option not in ("--cache", "--objective")
    }
    if not given["corpus"] or not given["output"] or "--phrases" in unnamed:
        files = {"-o": "MODEL"} | {option: path for option, path in named.items() if path} | unnamed
        sources = given["corpus"] or _first_files(checkpoint.config.corpus)
        command = resume_command(folder, sources, files, given["force"], given["ignore_memory"])
        raise SettingsError(f"name all files again, because paths in a checkpoint are not used: {command}")
    outputs_and_interval = ("output", "save_vocab", "plot", "checkpoint_every")
    options_again: dict[str, Any] = {name: str(given[name]) for name in outputs_and_interval if given[name]}
    corpus = corpus_of(given["corpus"])
    config = resumed_config(
        checkpoint,
        given["phrases"] or False,
        given["cache"],
        corpus=given["corpus"],
        ignore_memory=given["ignore_memory"],
        **options_again,
    )
    if is_root(communicator):
        written = [("-o", config.output), ("--save-vocab", config.save_vocab), ("--plot", config.plot)]
        check_outputs(written, given["force"], _paths([*corpus.files, phrases]))
        for option, path in unnamed.items():
            say(f"the run began with {option} {path}: give it again to write that file, too")
    return config, {"corpus": corpus, "resume_from": checkpoint}


def _phrase_file(config: RunConfig) -> str | None:
    return config.phrases if isinstance(config.phrases, str) else None


def _paths(names: Iterable[Any]) -> list[Path]:
    return [Path(name) for name in names if name]


def named_files(config: RunConfig) -> dict[str, str | None]:
    """Return the files, except the corpus, that the command to resume a run must name, by option."""
    cache, objective = config.reading.cache, config.settings.objective
    return {
        "-o": config.output,
        "--save-vocab": config.save_vocab,
        "--plot": config.plot,
        "--phrases": _phrase_file(config),
        "--cache": str(cache) if cache else None,
        "--objective": str(objective) if objective else None,
    }


def resume_command(
    folder: Path | str, corpus: Iterable[str], named: Mapping[str, Any], force: bool, ignore_memory: bool
) -> str:
    """Return the command line that resumes the run with checkpoints in a folder."""
    words = [*map(_as_argument, corpus), "--resume", _as_argument(folder)]
    for option, value in named.items():
        words += [option, _as_argument(value)] if value else []
    words += ["--force"] if force else []
    words += ["--ignore-memory"] if ignore_memory else []
    return join_command(["w2v", "train", *words])


def _as_argument(path: Path | str) -> str:
    """Return a path in a form that does not look like an option."""
    return f"./{path}" if str(path).startswith("-") and str(path) != "-" else str(path)


def _first_files(sources: tuple[str, ...]) -> list[str]:
    """Return the first corpus files of a checkpoint, with "..." for the others, or "CORPUS" if it names none."""
    if not sources:
        return ["CORPUS"]
    more = ["..."] if len(sources) > SHOWN_FILES else []
    return [one_line(source) for source in sources[:SHOWN_FILES]] + more


def check_outputs(
    files: Iterable[tuple[str, Path | str | None]], force: bool, inputs: Iterable[Path], models: Iterable[Path] = ()
) -> None:
    """Check all files that a run writes, each against the files that it reads and the other files that it writes.

    Args:
        files: The options that name outputs, and their paths or None. The first option names the model.
        force: Whether existing files may be replaced.
        inputs: The files that the run reads.
        models: The models that the run reads.

    Raises:
        W2VError: As in `outputs.check`.
        SettingsError: As in `outputs.check`.
    """
    inputs, models = list(inputs), list(models)
    written = [(option, Path(path)) for option, path in files if path]
    for index, (option, path) in enumerate(written):
        check = outputs.check if index else outputs.check_model
        check = outputs.check_text if option == "--save-vocab" else check
        others = [other for _, other in written[:index] + written[index + 1 :]]
        check(path, force, [*inputs, *others], f"with {option}", models)
        if option == "--plot":
            outputs.check_picture_format(path)
