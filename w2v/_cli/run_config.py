"""Build the description of a run, new or resumed, and check all arguments before the work starts.

`w2v train` and `w2v classify` use it. An option that a command lacks is not given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from w2v._cli import outputs
from w2v._cli.console import say
from w2v._cli.options import (
    LOSS_NAMES,
    check_effect,
    corpus_of,
    first_name,
    given_options,
    given_settings,
    refuse_together,
)
from w2v._errors import SettingsError, one_line
from w2v._formats import registry
from w2v._formats.vector_file import WORD_VIEW
from w2v._graph.walks import WalkOptions
from w2v._kernel.plan import instruction_set
from w2v._losses.registry import Settings
from w2v._options import options_of
from w2v._settings import ViewOptions, Views
from w2v._system.schema import convert
from w2v._system.shell import join_command
from w2v._text.idstore import ReadingOptions
from w2v._text.labels import LabelOptions
from w2v._text.vocabulary import Vocabulary
from w2v._training.checkpoint import Checkpoint
from w2v._training.checkpoint_folder import latest_checkpoints, run_folder
from w2v._training.communicator import OneProcess
from w2v._training.config import RunConfig, read_options
from w2v._training.source import WORD_SELECTION_SETTINGS, open_source
from w2v._training.train import resumed_config
from w2v._training.views import ONE_VIEW, TWO_VIEWS, settings_of_views, whole_settings

OUTPUT = Path("model.bin")
SHOWN_FILES = 3  # number of corpus files shown in the command that resumes a run
# Options of RunConfig.from_options, except the options of Settings, ReadingOptions, WalkOptions and LabelOptions.
RUN_OPTIONS = (
    "corpus", "graph", "pairs", "preset", "views", "vocabulary", "continue_from", "vocab", "init", "freeze", "phrases",
    "output", "checkpoint", "checkpoint_every", "ignore_memory", "classify", "held_out", "tags", "negatives_from",
)  # fmt: skip
ALLOWED_WITH_RESUME = {"corpus", "views", "phrases", "output", "checkpoint_every", "ignore_memory", "held_out"}
# The options for outputs, by parameter.
OUTPUTS = {
    "output": "-o",
    "contexts": "--contexts",
    "save_vocab": "--save-vocab",
    "save_documents": "--save-documents",
    "plot": "--plot",
}
OF_VECTORS = ("--contexts", "--save-documents")  # further outputs with the formats of -o
OPTION_NAMES = {"continue_from": "--continue", "vocabulary": "--read-vocab"}  # options that differ from their field


@dataclass(frozen=True)
class Command:
    """A run of `w2v train` or `w2v classify`.

    Attributes:
        config: The description of the run.
        inputs: More arguments of `open_training`.
        outputs: The files to write, by parameter: "output" for the model, and perhaps others of OUTPUTS.
    """

    config: RunConfig
    inputs: dict[str, Any]
    outputs: dict[str, Path]

    @property
    def named(self) -> dict[str, str]:
        """The files that the command to resume the run must name besides the corpus, by option."""
        others: dict[str, Any] = {"phrases": self.config.phrases, "cache": self.config.reading.cache}
        others |= {"held_out": self.inputs.get("held_out"), "objective": self.config.settings.objective}
        return _by_option(self.outputs | others)


def _by_option(files: Mapping[str, Any]) -> dict[str, str]:
    """Return the files that some options name, by option, without options that name none."""
    named = {name: value for name, value in files.items() if value and not isinstance(value, bool)}
    return {OUTPUTS.get(name, option_name(name)): str(value) for name, value in named.items()}


def new_run(given: Mapping[str, Any], ranks: OneProcess) -> Command:
    """Return a new run.

    Args:
        given: The options and arguments of the command.
        ranks: The ranks that train; only the root checks the output files.

    Raises:
        W2VError: If a file cannot be read or written.
        SettingsError: If a value is impossible.
        click.UsageError: If options contradict each other.
    """
    file_options = read_options(given["config"]) if given.get("config") else {}
    chosen = given_settings(given)
    run_options = {name: given[name] for name in RUN_OPTIONS if given.get(name) not in (None, False, ())}
    # --loss also replaces the objective of the file, and --objective its loss.
    replaced = LOSS_NAMES if chosen.keys() & LOSS_NAMES else set()
    options = {name: value for name, value in file_options.items() if name not in replaced} | chosen
    objective = options.get("objective")
    if objective != given.get("objective"):
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
    for kind in (ReadingOptions, WalkOptions, LabelOptions):
        options |= given_options(kind, given)
    options |= run_options
    if not options.get("corpus"):
        reason = f": {given['phrases']} is the FILE of --phrases" if isinstance(given.get("phrases"), str) else ""
        raise click.UsageError(f"Missing argument 'CORPUS...'{reason}")
    corpus = corpus_of(options["corpus"])
    source = open_source(run_options)
    output = options.pop("output", None)
    config = RunConfig.from_options(options, source, display_name=option_name)
    settings = config.settings
    views = options.get("views", ViewOptions.views)
    *_, last_view = settings_of_views(views, settings).values()  # with n-grams, if there are two
    has_word_ngrams = config.labels is not None and config.labels.word_ngrams > 1
    check_effect(last_view, chosen.keys() - {"buckets" if has_word_ngrams else ""})
    output = Path(output or default_output(settings, views))
    instruction_set()  # raises SettingsError if W2V_SIMD names an instruction set that the machine lacks
    files = {"output": output} | {name: given[name] for name in OUTPUTS if given.get(name) and name != "output"}
    check_outputs_have_content(files, config)
    phrases = config.phrases if isinstance(config.phrases, str) else None
    if ranks.is_root:
        others = {OUTPUTS[name]: path for name, path in files.items()} | {"--save-config": given.get("save_config")}
        models = _paths([given.get("continue_from"), given.get("init"), options.get("tree_vectors")])
        read = _paths([*corpus.files, given.get("config"), given.get("vocabulary"), given.get("held_out"), phrases])
        check_outputs(others.items(), given["force"], read, models)
    vocabulary = None
    if given.get("vocabulary"):
        vocabulary = Vocabulary.load(given["vocabulary"], settings.min_count, settings.max_vocab)
    notes = {"outputs": {OUTPUTS[name]: str(path.absolute()) for name, path in files.items()}}
    inputs: dict[str, Any] = {"corpus": corpus, "source": source, "vocabulary": vocabulary}
    inputs["held_out"] = corpus_of([str(given["held_out"])]) if given.get("held_out") else None
    inputs |= {"checkpoint": given["checkpoint"], "views": one_view_for_fasttext(views, output)}
    return Command(replace(config, notes=notes), inputs, files)


def check_outputs_have_content(files: Mapping[str, Path], config: RunConfig) -> None:
    """Raise click.UsageError if a run shall write vectors of documents or contexts that it does not have."""
    if "save_documents" in files and not config.settings.documents:
        raise click.UsageError("--save-documents has no effect without --documents")
    if "contexts" in files and not config.pairs:
        raise click.UsageError("--contexts has no effect without --pairs")
    if "contexts" in files and config.settings.loss_class.no_word_outputs:
        raise click.UsageError(f"--contexts: loss {config.settings.loss} gives contexts no vectors")


def option_name(name: str) -> str:
    """Return the command-line name of a field of RunConfig."""
    if name in options_of(WalkOptions):
        return first_name(name, WalkOptions)
    return OPTION_NAMES.get(name, f"--{name.replace('_', '-')}")


def default_output(settings: Settings, views: Views) -> Path:
    """Return the output file of a run without -o: .safetensors for n-grams and documents, which .bin cannot hold."""
    needs_more = settings.subwords or settings.documents or views == TWO_VIEWS
    return OUTPUT.with_suffix(".safetensors") if needs_more else OUTPUT


def one_view_for_fasttext(views: Views, output: Path) -> Views:
    """Return one view instead of "auto" for a .ft.bin file, which holds only the view of subwords."""
    return "words" if views == "auto" and registry.format_for(output).view else views


def resumed_run(given: Mapping[str, Any], ranks: OneProcess) -> Command:
    """Return a run that --resume continues.

    The user must name all files of the run again. Someone else may have written the checkpoint: paths in it could make
    w2v read or replace any file of this user, or write a new ~/.bash_profile.

    Raises:
        SettingsError: If a file is not named, or a setting differs from the run. In the first case, the message shows
            the whole command.
        W2VError: If a file cannot be read or written.
        click.UsageError: If an option has no effect on a resumed run.
    """
    folder = given["resume"]
    excluded = {*RUN_OPTIONS, "config", "save_config"} - ALLOWED_WITH_RESUME
    reading = (name for name in options_of(ReadingOptions) if name != "cache")
    refuse_together("--resume", (*reading, *options_of(WalkOptions), *options_of(LabelOptions), *excluded))
    chosen = given_settings(given) | ({"views": given["views"]} if given.get("views") else {})
    checkpoints = latest_checkpoints(folder)
    before = checkpoints[WORD_VIEW].config
    if command_of(before) != (wanted := "classify" if given.get("classify") else "train"):
        raise SettingsError(
            f"{folder} has a run of w2v {command_of(before)}: resume it with that command, not with w2v {wanted}"
        )
    _check_settings_again(chosen, checkpoints, folder)
    files = {name: given[name] for name in OUTPUTS if given.get(name)}
    named = _by_option(files | {name: given.get(name) for name in ("phrases", "cache", "held_out", "objective")})
    stored = convert(dict[str, str], before.notes.get("outputs", {}), f"{folder}: its outputs")
    # A run can be resumed without its cache, and a loss that is not imported has an error of its own.
    stored |= {"--phrases": before.phrases} if isinstance(before.phrases, str) else {}
    unnamed = {option: one_line(path) for option, path in stored.items() if option not in named}
    if not given["corpus"] or not given["output"] or "--phrases" in unnamed:
        sources = given["corpus"] or _first_files(before.corpus)
        others = {"-o": "MODEL"} | named | unnamed
        command = resume_command(wanted, folder, sources, others, given["force"], given["ignore_memory"])
        raise SettingsError(f"name all files again, because paths in a checkpoint are not used: {command}")
    check_outputs_have_content(files, before)
    corpus = corpus_of(given["corpus"])
    notes = {"outputs": stored | {OUTPUTS[name]: str(path.absolute()) for name, path in files.items()}}
    overrides: dict[str, Any] = {"corpus": given["corpus"], "ignore_memory": given["ignore_memory"], "notes": notes}
    overrides |= {"checkpoint_every": given["checkpoint_every"]} if given["checkpoint_every"] else {}
    config = resumed_config(checkpoints, given.get("phrases") or False, given["cache"], **overrides)
    if ranks.is_root:
        written = {OUTPUTS[name]: path for name, path in files.items()}
        check_outputs(written.items(), given["force"], _paths([*corpus.files, named.get("--phrases")]))
        for option, path in unnamed.items():
            say(f"the run began with {option} {path}: give it again to write that file, too")
    held_out = corpus_of([str(given["held_out"])]) if given.get("held_out") else None
    inputs = {"corpus": corpus, "resume_from": checkpoints, "checkpoint": run_folder(checkpoints), "held_out": held_out}
    return Command(config, inputs, files)


def _check_settings_again(chosen: Mapping[str, Any], checkpoints: Mapping[str, Checkpoint], folder: Path) -> None:
    """Raise SettingsError if the user gives a setting again that differs from the run."""
    settings = [each.settings for each in checkpoints.values()]
    held = whole_settings(settings).as_dict() | {"views": ONE_VIEW}
    if len(settings) > 1:
        held |= {"views": TWO_VIEWS, "subwords": settings[1].subwords}
    for name, value in sorted(chosen.items(), key=lambda one: one[0] != "loss"):
        if name not in held:
            raise SettingsError(
                f"{option_name(name)}: it has no effect with loss {held['loss']}, which the run in {folder} has; leave "
                "it out, or start a new run"
            )
        if value not in (held[name], "auto"):  # "auto" was replaced by a value when the run began
            raise SettingsError(
                f"{option_name(name)} {value}: the run in {folder} has {held[name]}; leave it out, or start a new run"
            )


def _paths(names: Iterable[Any]) -> list[Path]:
    return [Path(name) for name in names if name]


def command_of(config: RunConfig) -> str:
    """Return the name of the command that trains such a run."""
    return "classify" if config.labels else "train"


def resume_command(
    command: str, folder: Path | str, corpus: Iterable[str], named: Mapping[str, Any], force: bool, ignore_memory: bool
) -> str:
    """Return the command line that resumes the run of a command with checkpoints in a folder."""
    words = [*map(_as_argument, corpus), "--resume", _as_argument(folder)]
    for option, value in named.items():
        words += [option, _as_argument(value)] if value else []
    words += ["--force"] if force else []
    words += ["--ignore-memory"] if ignore_memory else []
    return join_command(["w2v", command, *words])


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
        check = outputs.check if index and option not in OF_VECTORS else outputs.check_model
        check = outputs.check_text if option == "--save-vocab" else check
        others = [other for _, other in written[:index] + written[index + 1 :]]
        check(path, force, [*inputs, *others], f"with {option}", models)
        if option == "--plot":
            outputs.check_picture_format(path)
