"""The runs of `w2v train`, new or resumed, as a RunConfig. All arguments are checked here, before any work."""

from __future__ import annotations

import shlex
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
    refuse_together,
)
from w2v.errors import SettingsError, one_line
from w2v.formats import table
from w2v.kernel.plan import instruction_set
from w2v.losses.registry import LOSSES, Settings
from w2v.options import options_of
from w2v.progress import Progress, Report, duration
from w2v.text.idstore import ReadingOptions
from w2v.training.checkpoint import latest
from w2v.training.communicator import Communicator, is_root
from w2v.training.config import PATHS, RunConfig, read_options
from w2v.training.initialisation import OF_NEW_WORDS, open_source
from w2v.training.prepare import resumed_config

OUTPUT = Path("model.bin")
LONG, MEASURED = 600, 5  # seconds: longer runs are announced, after this time
SHOWN_FILES = 3  # of the text, in the command that resumes a run
RESUMABLE = "with --checkpoint states, a run can be resumed after Ctrl-C"
OWN_OPTIONS = (*PATHS, "corpus", "vocab", "freeze", "phrases", "checkpoint_every", "ignore_memory")  # of RunConfig
NAMES = {"continue_from": "--continue", "vocabulary": "--read-vocab"}  # where an option has not its field's name


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


def new_run(given: Mapping[str, Any], communicator: Communicator | None) -> tuple[RunConfig, dict[str, Any]]:
    """Return the config of a new run, from all options of the command, and the inputs for `prepare` that are open.

    Raises W2VError, SettingsError or click.UsageError if it is impossible.
    """
    file = read_options(given["config"]) if given["config"] else {}
    find_objective(given["objective"])
    chosen = given_settings(given)
    own = {name: given[name] for name in OWN_OPTIONS if given[name] not in (None, False, ())}
    replaced = LOSS_NAMES if chosen.keys() & LOSS_NAMES else set()  # a loss given replaces that of the file
    options = {name: value for name, value in file.items() if name not in replaced} | chosen
    objective = options.get("objective")
    if objective != given["objective"]:
        theirs = one_line(objective)
        raise SettingsError(
            f"{given['config']}: its objective is {theirs}, and files run no code: if you trust that code, add "
            f"--objective {theirs}"
        )
    if own.get("continue_from") and own.get("vocab", RunConfig.vocab) == "old":  # the file may be of a run with others
        options = {name: value for name, value in options.items() if name not in OF_NEW_WORDS or name in chosen}
    options |= given_reading(given) | own
    if not options.get("corpus"):
        taken = f": {given['phrases']} is the FILE of --phrases" if isinstance(given["phrases"], str) else ""
        raise click.UsageError(f"Missing argument 'CORPUS...'{taken}")
    text = corpus_of(options["corpus"])
    source = open_source(own.get("continue_from"), own.get("init"))
    config = RunConfig.from_options(options, source, named=option_name)
    check_effect(config.settings, chosen)
    config = replace(config, output=config.output or str(default_output(config.settings)))
    instruction_set()  # raises if W2V_SIMD names one that the machine lacks
    if is_root(communicator):
        inputs = [*text.files, given["config"], config.vocabulary, _phrase_file(config)]
        others = {"--save-vocab": config.save_vocab, "--save-config": given["save_config"], "--plot": config.plot}
        models = _paths([config.continue_from, config.init, options.get("tree_vectors")])
        check_outputs([("-o", config.output), *others.items()], given["force"], _paths(inputs), models)
    return config, {"corpus": text, "source": source}


def option_name(name: str) -> str:
    """Return the name on the command line of a field of RunConfig."""
    return NAMES.get(name, f"--{name.replace('_', '-')}")


def default_output(settings: Settings) -> Path:
    return OUTPUT.with_suffix(".safetensors") if settings.subwords else OUTPUT


def resumed_run(given: Mapping[str, Any], communicator: Communicator | None) -> tuple[RunConfig, dict[str, Any]]:
    """Return what `new_run` does, for a run whose checkpoints are in a folder.

    Settings, if given, must be those of the run.

    Its files are named again: the checkpoint may be a stranger's, and would have this user's files read and replaced,
    or a new ~/.bash_profile written. Raises SettingsError, with the whole command, if one is missing.
    """
    folder = given["resume"]
    others = ("vocabulary", "continue_from", "vocab", "init", "freeze", "checkpoint", "config", "save_config")
    refuse_together("--resume", (*(name for name in options_of(ReadingOptions) if name != "cache"), *others))
    find_objective(given["objective"])
    state = latest(folder)
    settings = state.settings.as_dict()
    for name, value in given_settings(given).items():
        if value != settings[name]:
            raise SettingsError(
                f"{first_name(name)} {value}: the run in {folder} has {settings[name]}; "
                "leave it out, or start a new run"
            )
    names = ("output", "save_vocab", "plot", "checkpoint_every")
    again: dict[str, Any] = {name: str(given[name]) for name in names if given[name]}
    phrases = given["phrases"] if isinstance(given["phrases"], str) else None
    named = {f"--{name.replace('_', '-')}": given[name] for name in ("save_vocab", "plot")}
    named = {"-o": given["output"]} | named
    named |= {"--phrases": phrases, "--cache": given["cache"], "--objective": given["objective"]}
    before = {name: path for name, path in named_files(state.config).items() if name not in ("--cache", "--objective")}
    unnamed = {option: one_line(path) for option, path in before.items() if path and not named[option]}
    if not given["corpus"] or not given["output"] or "--phrases" in unnamed:
        named = {"-o": "MODEL"} | {option: path for option, path in named.items() if path} | unnamed
        corpus = given["corpus"] or _shown(state.config.corpus)
        command = resume_command(folder, corpus, named, given["force"], given["ignore_memory"])
        raise SettingsError(f"name all files again, because paths in a checkpoint are not used: {command}")
    text = corpus_of(given["corpus"])
    config = resumed_config(
        state,
        given["phrases"] or False,
        given["cache"],
        corpus=given["corpus"],
        ignore_memory=given["ignore_memory"],
        **again,
    )
    if is_root(communicator):
        written = [("-o", config.output), ("--save-vocab", config.save_vocab), ("--plot", config.plot)]
        check_outputs(written, given["force"], _paths([*text.files, phrases]))
        for option, path in unnamed.items():
            say(f"the run began with {option} {path}: give it again to write that file, too")
    return config, {"corpus": text, "state": state}


def _phrase_file(config: RunConfig) -> str | None:
    return config.phrases if isinstance(config.phrases, str) else None


def _paths(names: Iterable[Any]) -> list[Path]:
    return [Path(name) for name in names if name]


def named_files(config: RunConfig) -> dict[str, str | None]:
    """Return what the command that resumes a run names besides the text, by option."""
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
    """Return the command that resumes the run with checkpoints in a folder, with the files that its options name."""
    words = [*map(_as_argument, corpus), "--resume", _as_argument(folder)]
    for option, value in named.items():
        words += [option, _as_argument(value)] if value else []
    words += ["--force"] if force else []
    words += ["--ignore-memory"] if ignore_memory else []
    return shlex.join(["w2v", "train", *words])


def _as_argument(path: Path | str) -> str:
    """A path as a command takes it: it does not look like an option."""
    return f"./{path}" if str(path).startswith("-") and str(path) != "-" else str(path)


def _shown(sources: tuple[str, ...]) -> list[str]:
    """The text of a run as its checkpoint names it, shortened."""
    more = ["..."] if len(sources) > SHOWN_FILES else []
    return [one_line(source) for source in sources[:SHOWN_FILES]] + more or ["CORPUS"]


def check_outputs(
    files: Iterable[tuple[str, Path | str | None]], force: bool, inputs: Iterable[Path], models: Iterable[Path] = ()
) -> None:
    """Check the files to be written, each against all `inputs` and `models` that are read, and all that are written.

    They are given with the options that name them: first the model, then others or None.
    """
    read, models, written = list(inputs), list(models), [(option, Path(path)) for option, path in files if path]
    for index, (option, path) in enumerate(written):
        check = outputs.check_picture if option == "--plot" else outputs.check
        others = [other for _, other in written[:index] + written[index + 1 :]]
        check(path, force, [*read, *others], f"with {option}", models)
    for path in table.side_files_to_write(written[0][1]):
        outputs.check(path, force, [*read, *(other for _, other in written)], models=models)
