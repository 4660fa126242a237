"""Options that commands share. Options of training and reading are generated from Settings and ReadingOptions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from w2v import _settings as settings
from w2v._cli.console import ProgressPrinter
from w2v._cli.printing import print_result
from w2v._errors import SettingsError, W2VError
from w2v._graph.walks import WalkOptions
from w2v._losses import registry
from w2v._losses.hierarchical_softmax import TREES
from w2v._losses.registry import LOSSES, USER_DEFINED, Settings, only_with
from w2v._options import check_numbers, checked_value, choices_of, keywords_of, options_of, takes_pair, type_of
from w2v._settings import GeneralOptions, ViewOptions
from w2v._system.files import Errors
from w2v._text.corpus import Corpus
from w2v._text.encodings import USUAL
from w2v._text.idstore import ReadingOptions
from w2v._text.labels import LabelOptions
from w2v._text.long_table import LongTable
from w2v._training.config import LABEL_SETTINGS, MODEL_SUFFIX
from w2v._vectors.query import Method

Command = Callable[..., Any]

GROUPS = (settings.TEXT, settings.GRAPH, settings.MODEL, settings.LOSS, settings.TRAINING, settings.RUN)
SHOW_ALL = "w2v.help_all"  # key in the meta of a click context: whether help lists all options
LOSS_NAMES = {"loss", "objective"}  # two settings that choose the loss; a run has only one of them
# Flags that are short for a setting with a value.
SETTING_FLAGS = {"sg": ("model", "skipgram"), "cbow": ("model", "cbow"), "hs": ("loss", "hs")}


class Option(click.Option):
    """An option that --help-all lists under a heading, and that --help lists only if it is common.

    Args:
        group: The heading.
        common: Whether --help lists the option.
    """

    def __init__(self, *arguments: Any, group: str = settings.RUN, common: bool = False, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.group, self.common = group, common


def is_common(parameter: click.Parameter) -> bool:
    return getattr(parameter, "common", True)


def print_full_help(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[SHOW_ALL] = True
        click.echo(context.get_help())
        context.exit()


class ShortHelp(click.Command):
    """A command that lists its common options with --help, and all options under headings with --help-all."""

    def get_params(self, context: click.Context) -> list[click.Parameter]:
        *parameters, help_option = super().get_params(context)
        return [*parameters, *([] if all(map(is_common, parameters)) else [HELP_ALL]), help_option]

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        show_all = context.meta.get(SHOW_ALL, False)
        records: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record and isinstance(parameter, click.Option) and (show_all or is_common(parameter)):
                group = getattr(parameter, "group", settings.RUN) if show_all else ""
                records.setdefault(group, []).append(record)
        for group in sorted(records, key=["", *GROUPS].index):
            with formatter.section(group if len(records) > 1 else "Options"):
                formatter.write_dl(records[group])


class ResultCommand(ShortHelp):
    """A command with --json and perhaps --quiet. Its function receives `progress` and returns a result to print.

    The result is a dataclass or dictionary, or a pair of it and the function that prints it as text; None in the ranks
    of an MPI job that print nothing.
    """

    def invoke(self, context: click.Context) -> None:
        quiet, as_json = context.params.pop("quiet", False), context.params.pop("as_json")
        with ProgressPrinter(quiet) as progress:
            context.params["progress"] = progress
            returned = super().invoke(context)
        result, print_text = returned if isinstance(returned, tuple) else (returned, None)
        if result is not None:
            print_result(result, as_json, quiet, print_text)


class TrainingCommand(ResultCommand):
    """A command with all settings. It knows the options of word2vec.c and fastText, and says what to write instead."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        known = options_by_name(self, context)
        for before, argument in zip(["", *args], takewhile("--".__ne__, args), strict=False):
            given = argument.partition("=")[0]
            name = given.lstrip("-")
            own_name = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)  # word_ngrams for wordNgrams
            option = f"--{settings.RENAMED.get(name, own_name).replace('_', '-')}"
            spelling = FOREIGN.get(name) or (option if option in known else None)
            is_value = before in known and not known[before].is_flag
            if spelling and given.startswith("-") and given not in known and not is_value:
                raise click.UsageError(f"{given}: write {spelling}", context)
        return super().parse_args(context, args)


# What to write for options of word2vec.c and fastText that are not settings, or that RENAMED explains for Python only.
FOREIGN = {
    "train": "the names of the files only",
    "input": "the names of the files only",
    "output": "-o",
    "binary": "-o NAME.bin or -o NAME.txt",
    "t": "--sample",
    "cbow": "--model cbow or --model skipgram",
    "sg": "--model skipgram or --model cbow",
    "hs": "--loss hs or --loss ns",
    "minn": "--subwords 3-6, for -minn and -maxn",
    "maxn": "--subwords 3-6, for -minn and -maxn",
}


def options_by_name(command: click.Command, context: click.Context) -> dict[str, click.Option]:
    """Return the options of a command by name, such as "-o"; an option with several names occurs several times."""
    found = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    return {name: option for option in found for name in (*option.opts, *option.secondary_opts)}


def complete(*names: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a function that completes the value of an option: a file or one of these names."""

    def completions(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        known = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return [CompletionItem(incomplete, type="file"), *known]

    return completions


COMPLETIONS = {
    "tree": complete(*TREES),
    "tree_vectors": complete(),
    "encoding": lambda _, __, incomplete: [CompletionItem(name) for name in USUAL if name.startswith(incomplete)],
}


def number_or_text(text: str) -> int | str:
    """Return text as a whole number if it is one. Otherwise return the text, which Settings checks."""
    try:
        return int(text)
    except ValueError:
        return text


def find_objective(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """Import a loss that the user has written, because a model file contains only its name."""
    if name and not context.resilient_parsing:
        registry.find(name)
    return name


def option_for(kind: type, name: str, common: bool | None = None, **changes: Any) -> Callable[[Command], Command]:
    """Return the command-line option for a field of a dataclass of options.

    Args:
        kind: The dataclass.
        name: The field.
        common: Whether --help lists the option; by default, as the field is marked.
        changes: Other attributes of the Option for this command, such as its help.
    """
    option = replace(options_of(kind)[name], **changes)
    default = kind.__dataclass_fields__[name].default  # type: ignore[attr-defined]
    flags = option_names(kind, name)
    choices = option.choices() if option.choices else choices_of(kind, name)
    value_type, metavar = type_of(kind, name), None
    if choices:
        value_type = click.Choice([choice for choice in choices if choice != USER_DEFINED])
    elif keywords := keywords_of(kind, name):
        value_type, metavar = number_or_text, "|".join(["INTEGER", *keywords])
    elif takes_pair(kind, name):
        value_type, metavar = number_or_text, "INTEGER[,INTEGER]"
    elif name == "cache":
        value_type = FILE
    default_text = option.default_text or default
    if value_type is bool and default is not None:
        default_text = flags[0].split("/")[not default].strip("-")
    losses = losses_with(kind, name)
    with_losses = f"  [with --loss {', '.join(losses)}]" if losses else ""
    return click.option(
        *flags,
        name,
        cls=Option,
        group=option.group,
        common=option.common if common is None else common,
        type=value_type,
        metavar=metavar,
        default=None,
        help=f"{option.help}{with_losses}  [default: {default_text}]",
        shell_complete=COMPLETIONS.get(name),
        callback=find_objective if name == "objective" else None,
    )


def losses_with(kind: type, name: str) -> tuple[str, ...]:
    """Return the losses that a setting belongs to, or () if it has an effect with all of them."""
    needs = only_with(name) if kind is Settings else None
    return needs[1] if needs and needs[0] == "loss" else ()


def options_for(kind: type, *names: str, common: bool | None = None) -> Callable[[Command], Command]:
    """Return options for fields of a dataclass, by default for all.

    Options that fewer losses have come later.
    """
    ordered = sorted(names or options_of(kind), key=lambda name: -len(losses_with(kind, name) or LOSSES))
    return composed(*(option_for(kind, name, common) for name in ordered))


def option_names(kind: type, name: str) -> list[str]:
    """Return the command-line names of a field of a dataclass of options."""
    return list(options_of(kind)[name].flags) or [f"--{name.replace('_', '-')}"]


def first_name(name: str, kind: type = Settings) -> str:
    """Return the first command-line name of a setting, or of a field of another dataclass of options."""
    return option_names(kind, name)[0].split("/")[0]


def as_words(values: Mapping[str, Any], *kinds: type) -> Iterator[str]:
    """Yield the words of a command line that gives these values of fields of some dataclasses of options."""
    for name, value in values.items():
        kind = next(kind for kind in kinds if name in options_of(kind))
        flag, _, opposite = option_names(kind, name)[0].partition("/")
        yield opposite if value is False else flag
        if not isinstance(value, bool):
            yield str(value)


def composed(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator that applies several, the first one outermost."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def check_number(context: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    check_numbers(**{str(parameter.name): value})
    return value


def number_option(
    *flags: str, common: bool = True, metavar: str = "N", **attributes: Any
) -> Callable[[Command], Command]:
    """Return an option for a number in w2v._options.MINIMUM, which is checked before the command loads anything."""
    attributes |= {"metavar": metavar, "type": int, "callback": check_number, "show_default": True}
    return click.option(*flags, cls=Option, common=common, **attributes)


def choice_option(*flags: str, choices: Any, **attributes: Any) -> Callable[[Command], Command]:
    """Return an option for one of the values of a Literal."""
    return click.option(*flags, type=click.Choice(get_args(choices)), show_default=True, **attributes)


def file_option(*flags: str, **attributes: Any) -> Callable[[Command], Command]:
    """Return an option for a file or folder."""
    return click.option(*flags, type=FILE, **attributes)


def rare_option(*flags: str, **attributes: Any) -> Callable[[Command], Command]:
    """Return an option that only --help-all lists."""
    return click.option(*flags, cls=Option, **attributes)


HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_full_help,
    help="Show all options and exit.",
)
# click does not check that the file is readable: an unreadable file is an error with exit code 1, not wrong usage.
FILE = click.Path(path_type=Path, readable=False)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
FORCE = click.option("--force", is_flag=True, help="Replace an existing file.")
QUIET = click.option("--quiet", is_flag=True, help="Show no progress, and print nothing except the output of --json.")
REPORTING = composed(QUIET, JSON)
WRITING = composed(FORCE, QUIET, JSON)
ERRORS = choice_option(
    "--errors",
    cls=Option,
    choices=Errors,
    default=ReadingOptions.errors,
    help="What to do with words that are not UTF-8. replace and ignore also leave out repeated words.",
)
RESTRICT_VOCAB = number_option(
    "--restrict-vocab", default=30_000, help="Use only the N most frequent words, in questions and as answers."
)
METHOD = choice_option(
    "--method", choices=Method, default="add", help="Answer analogies by 3CosAdd (add) or 3CosMul (mul)."
)
OBJECTIVE = rare_option(
    "--objective",
    metavar="NAME",
    expose_value=False,
    callback=find_objective,
    help="The loss of the model, as module:Name, if you wrote it yourself.",
)
MODEL = click.argument("model", type=FILE)
SETTING_FLAG_OPTIONS = composed(
    *(
        rare_option(
            f"--{flag}", group=options_of(Settings)[name].group, is_flag=True, help=f"The same as --{name} {value}."
        )
        for flag, (name, value) in SETTING_FLAGS.items()
    )
)
ONLY_TRAIN = "documents"  # the setting that only w2v train has
TRAINING_SETTINGS = composed(
    options_for(Settings, *(name for name in options_of(Settings) if name != ONLY_TRAIN)), options_for(ViewOptions)
)
# The losses of a classifier: those of the compiled kernel.
LABEL_LOSSES = {name: kind.help for name, kind in LOSSES.items() if "cython" in kind.kernels}
# The settings that have an effect on a classifier, each with the attributes of its option that differ.
CLASSIFIER_SETTINGS: dict[str, dict[str, Any]] = {
    "vector_size": {"help": "Values of a vector in an embedded model; see --classifier."},
    "min_count": {},
    "max_vocab": {},
    "subwords": {
        "default_text": "none",
        "help": "Also use the character n-grams of words, for instance those of 2 to 4 characters (2-4).",
    },
    "buckets": {"help": "Hash n-grams to this many rows. Only rows in use take memory.", "only_with": None},
    "epochs": {"help": "Number of passes over the texts."},
    "alpha": {"default_text": "the best measured for model, pooling and loss"},
    "min_alpha": {},
    "stop_early": {
        "help": "Hold out a tenth of the texts, or use --held-out. Stop training when the accuracy on them has not "
        "risen for this many epochs, and keep the model of the best epoch."
    },
    "seed": {"help": "Seed of the random numbers. With one worker or --deterministic, it decides the whole model."},
    "workers": {},
    "deterministic": {"help": "Give the same model on every run with this number of threads; this takes longer."},
    "storage": {},
    "loss": {
        "help": f"{'; '.join(f'{name}: {text}' for name, text in LABEL_LOSSES.items())}.",
        "choices": lambda: LABEL_LOSSES,
    },
    "smoothing": {},
    "negative": {},
    "ns_exponent": {},
    "adaptive_samples": {},
    "classes": {},
    "large_softmax": {},
}
CLASSIFIER = composed(
    options_for(LabelOptions),
    *(
        option_for(
            Settings, name, **({"default_text": str(LABEL_SETTINGS[name])} if name in LABEL_SETTINGS else {}) | changes
        )
        for name, changes in CLASSIFIER_SETTINGS.items()
    ),
)
ENCODING = options_for(ReadingOptions, "encoding", "header")
LONG_TABLE = options_for(ReadingOptions, "item", "session", "order", common=True)
SESSIONS = "also_context", "weight"  # the options of sessions that only training has
READING = options_for(ReadingOptions, *(name for name in options_of(ReadingOptions) if name not in SESSIONS))
COLUMN_OF_TEXTS = option_for(
    ReadingOptions,
    "column",
    common=True,
    help="Read the texts in this column, by name or number, of JSON, CSV, Parquet or Arrow, one per row. "
    "`--column none` reads a file as plain text even if it looks like a table.",
)
READING_TEXTS = composed(
    COLUMN_OF_TEXTS,
    options_for(
        ReadingOptions, *(name for name in options_of(ReadingOptions) if name not in ("column", *LongTable._fields))
    ),
)
THRESHOLD = click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="Predict only labels of at least this probability.  [default: 0, or 0.5 if texts of the training had several "
    "labels; -k 1 then has no effect]",
)
LABELLED = composed(
    file_option(
        "--labelled", help="Score the predictions for these texts. Their labels have a form that w2v classify reads."
    ),
    option_for(LabelOptions, "labels"),
)
WALKS = options_for(WalkOptions)
CORPUS = click.argument("corpus", nargs=-1, required=True, type=click.Path())


def corpus_of(names: Iterable[str], header: bool | None = None) -> Corpus:
    """Return the corpus in files, folders and patterns. "-" is standard input, and "./-" is a file."""
    paths = []
    for name in names:
        if not name:  # Path("") is the working folder
            raise W2VError("the path of a corpus is empty")
        path = Path(name)
        if name != "-" and path == Path("-"):  # ./- is the same path, and Corpus would read standard input
            path = path.absolute()
        paths.append(path)
    corpus = Corpus(paths)
    corpus.header = header
    return corpus


def check_classifier_output(path: Path) -> None:
    """Raise SettingsError if a file of this name cannot store a classifier."""
    if path.suffix != MODEL_SUFFIX:
        raise SettingsError(
            f"{path}: only {MODEL_SUFFIX} stores every classifier: write it with -o NAME{MODEL_SUFFIX}; w2v convert "
            "writes it for fastText (.ft.bin), and its word vectors in other formats"
        )


def given_options(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a dataclass of options, such as ReadingOptions, that the user has given.

    Raises:
        SettingsError: If a value is impossible.
    """
    chosen = {name: given[name] for name in options_of(kind) if given.get(name) is not None}
    kind(**chosen)  # raises SettingsError now, before the command loads a model
    return chosen


def reading_options(given: Mapping[str, Any]) -> ReadingOptions:
    """Return the ReadingOptions of a command.

    Raises:
        SettingsError: If a value is impossible.
    """
    return ReadingOptions(**given_options(ReadingOptions, given))


def reading_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a Classifier that say how a command reads texts; errors are as in `reading_options`."""
    reading = reading_options(given)
    return {name: getattr(reading, name) for name in ("column", "encoding", "errors")}


def chosen_settings(given: Mapping[str, Any], tried: Mapping[str, Sequence[object]] | None = None) -> Settings:
    """Return the Settings of a command: the settings that the user has given, and defaults for the others.

    Args:
        given: The options and arguments of the command.
        tried: See `check_effect`.

    Raises:
        SettingsError: As in `given_settings`.
        click.UsageError: As in `given_settings` and `check_effect`.
    """
    chosen = given_settings(given)
    settings = Settings(**chosen)
    check_effect(settings, chosen, tried)
    return settings


def check_effect(
    settings: Settings, chosen: Iterable[str], tried: Mapping[str, Sequence[object]] | None = None
) -> None:
    """Check that each setting that the user has given has an effect.

    Args:
        settings: The settings of the run.
        chosen: Names of the settings that the user has given.
        tried: The values that the command tries, by setting.

    Raises:
        click.UsageError: If a setting has no effect. The message has the other setting that it depends on.
    """
    in_effect = settings.in_effect()
    for name in chosen:
        condition = only_with(name)
        if condition is None or name in in_effect:
            continue
        other, values = condition
        if any(value in values for value in (tried or {}).get(other, ())):
            continue
        value = getattr(settings, other)
        reason = f"with {first_name(other)} {value}" if value else f"without {first_name(other)}"
        raise click.UsageError(f"{first_name(name)} has no effect {reason}")


def given_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the user has given.

    Raises:
        SettingsError: If a value is impossible.
        click.UsageError: If two settings contradict each other.
    """
    chosen = {name: given[name] for name in options_of(Settings) if given.get(name) is not None}
    for flag, (name, value) in SETTING_FLAGS.items():
        if given.get(flag) and chosen.setdefault(name, value) != value:
            raise click.UsageError(f"--{flag} contradicts {first_name(name)} {chosen[name]}")
    # Raise SettingsError now, before the command opens a model. Settings would also compare the values with defaults.
    GeneralOptions(**{name: value for name, value in chosen.items() if name in options_of(GeneralOptions)})
    for name, value in chosen.items():
        checked_value(Settings, name, value)
    return chosen


def refuse_together(option: str, others: Iterable[str], word: str = "with") -> None:
    """Refuse other options and arguments together with an option.

    Args:
        option: The option that the user has given, as in the error message.
        others: The names of the parameters of the command that have no effect with it.
        word: "without" if they have no effect without the option, which the user has not given.

    Raises:
        click.UsageError: If the user has given one of them.
    """
    context, others = click.get_current_context(), tuple(others)
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in others and source is not ParameterSource.DEFAULT:
            name = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.make_metavar(context)
            raise click.UsageError(f"{name.strip('[].')} has no effect {word} {option}")


refuse_without = partial(refuse_together, word="without")
