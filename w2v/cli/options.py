"""The options of the commands. Those for training and for reading a text are made from FlatSettings, ReadingOptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from w2v import settings
from w2v.cli import show
from w2v.cli.console import Reporter, refuse_typographic_dashes
from w2v.errors import W2VError
from w2v.losses import registry
from w2v.losses.hierarchical_softmax import TREES
from w2v.losses.registry import LOSSES, OWN, FlatSettings, Settings, only_with
from w2v.options import choices_of, options_of, suggestion, takes_pair, type_of, words_of
from w2v.system.files import Errors
from w2v.text.corpus import Corpus
from w2v.text.encodings import USUAL
from w2v.text.idstore import ReadingOptions
from w2v.text.phrases import PhraseOptions, read_connectors
from w2v.vectors.query import Method

Command = Callable[..., Any]

GROUPS = (settings.TEXT, settings.MODEL, settings.LOSS, settings.TRAINING, settings.RUN)
ALL = "w2v.help_all"  # in the meta of a context: whether all options are listed
NGRAM_LENGTHS = (3, 6)  # the usual ones, those of fastText
LOSS_NAMES = {"loss", "objective"}  # of which a run has one
SHORT = {"sg": ("model", "skipgram"), "cbow": ("model", "cbow"), "hs": ("loss", "hs")}


class Option(click.Option):
    """An option that --help-all lists under a heading, and --help only if it is a common one.

    `formerly` are its names in earlier versions, which still work, but are not shown.
    """

    def __init__(
        self,
        *arguments: Any,
        group: str = settings.RUN,
        common: bool = False,
        formerly: Sequence[str] = (),
        **more: Any,
    ) -> None:
        super().__init__(*arguments, **more)
        self.group, self.common, self.formerly = group, common, list(formerly)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        if self.formerly:
            parser.add_option(obj=self, opts=self.formerly, dest=self.name, action="store", nargs=self.nargs)


def is_common(parameter: click.Parameter) -> bool:
    return getattr(parameter, "common", True)


def show_all(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[ALL] = True
        click.echo(context.get_help())
        context.exit()


class ShortHelp(click.Command):
    """A command whose --help lists its common options; if it has others, --help-all lists all, in groups."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        refuse_typographic_dashes(context, args)
        return super().parse_args(context, args)

    def get_params(self, context: click.Context) -> list[click.Parameter]:
        *parameters, help_option = super().get_params(context)
        return [*parameters, *([] if all(map(is_common, parameters)) else [HELP_ALL]), help_option]

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        every = context.meta.get(ALL, False)
        records: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record and isinstance(parameter, click.Option) and (every or is_common(parameter)):
                group = getattr(parameter, "group", settings.RUN) if every else ""
                records.setdefault(group, []).append(record)
        for group in sorted(records, key=["", *GROUPS].index):
            with formatter.section(group if len(records) > 1 else "Options"):
                formatter.write_dl(records[group])


class Reporting(ShortHelp):
    """A command with --quiet and --json, whose function gets `progress` and returns its result.

    The result is a dataclass or dictionary, alone or in a pair with the function that prints it without --json.
    """

    def invoke(self, context: click.Context) -> None:
        quiet, as_json = context.params.pop("quiet"), context.params.pop("as_json")
        with Reporter(quiet) as progress:
            context.params["progress"] = progress
            found = super().invoke(context)
        result, shown = found if isinstance(found, tuple) else (found, None)
        show.result(result, as_json, quiet, shown)


class TrainingCommand(ShortHelp):
    """A command with all settings, which suggests the right spelling for those of word2vec.c and gensim."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        refuse_foreign_options(args)
        return super().parse_args(context, args)


# Options of word2vec.c and fastText, with one dash and a value each, and their spelling here; {} is the value.
FASTTEXT = ("dim", "ws", "lr", "neg", "minCount", "thread", "minn", "maxn", "bucket")  # which none of ours is near
SAME = ("size", "window", "sample", "negative", "min-count", "alpha", "loss", "save-vocab", "read-vocab")
FOREIGN = {
    **{name: f"--{name} {{}}" for name in SAME},
    **{
        name: f"--{settings.RENAMED[name].replace('_', '-')} {{}}"
        for name in ("size", "threads", "iter", "epoch", *FASTTEXT)
    },
    "train": "{}",
    "input": "{} alone",
    "output": "-o {}",
    "binary": "-o NAME.bin or -o NAME.txt",
    "t": "--sample {}",
    "minn": "--subwords {}-6, for -minn and -maxn",
    "maxn": "--subwords 3-{}, for -minn and -maxn",
}
SWITCHES = {  # with the values 0 and 1
    "cbow": ("--model skipgram", "--model cbow"),
    "sg": ("--model cbow", "--model skipgram"),
    "hs": ("--loss ns", "--loss hs"),
}


def refuse_foreign_options(args: list[str]) -> None:
    """Raise click.UsageError, with the right spelling, for an option of word2vec.c, fastText or gensim."""
    for index, argument in enumerate(args):
        if argument == "--":
            return
        value = args[index + 1] if index + 1 < len(args) else ""
        name = argument.lstrip("-")
        if argument.startswith("-") and name in SWITCHES and value in ("0", "1"):
            raise click.UsageError(f"{argument} {value}: write {SWITCHES[name][int(value)]}")
        dashes = len(argument) - len(name)
        if (dashes == 1 and name in FOREIGN) or (dashes == 2 and name in FASTTEXT):
            raise click.UsageError(f"{argument} {value}: write {FOREIGN[name].format(value)}")


def complete(*names: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """The completion of an option whose value is a file or one of these names."""

    def completed(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        known = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return [CompletionItem(incomplete, type="file"), *known]

    return completed


COMPLETIONS = {
    "tree": complete(*TREES),
    "tree_vectors": complete(),
    "encoding": lambda _, __, incomplete: [CompletionItem(name) for name in USUAL if name.startswith(incomplete)],
}


class Choice(click.Choice):  # type: ignore[type-arg]  # click before 8.2 has no type arguments
    """One of several names; for another, similar ones are suggested. A mapping also says what each name means."""

    def __init__(self, choices: Iterable[str]) -> None:
        super().__init__(list(choices))
        self._known = choices

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value not in self.choices:
            self.fail(f"{value!r}: {suggestion(value, self._known)}", param, ctx)
        return value


def whole_number(text: str) -> int | str:
    """A whole number, or the text of an option that may be something else; Settings checks it."""
    try:
        return int(text)
    except ValueError:
        return text


def find_objective(name: str | None) -> None:
    """Import a user's own loss; model files contain only its name."""
    if name:
        registry.find(name)


def option_for(kind: type, name: str, common: bool = False) -> Callable[[Command], Command]:
    """The command-line option of a field of a dataclass of options; `common` makes it one that --help lists."""
    option, default = options_of(kind)[name], kind.__dataclass_fields__[name].default  # type: ignore[attr-defined]
    flags = option_names(kind, name)
    choices, value_type, metavar = choices_of(kind, name), type_of(kind, name), None
    if choices:
        value_type = Choice({choice: meaning for choice, meaning in choices.items() if choice != OWN})
    elif words := words_of(kind, name):
        value_type, metavar = whole_number, "|".join(["INTEGER", *words])
    elif takes_pair(kind, name):
        value_type, metavar = whole_number, "INTEGER[,INTEGER]"
    elif name == "cache":
        value_type = FILE
    shown = option.default_text or default
    if value_type is bool:
        shown = flags[0].split("/")[not default].strip("-")
    needs = only_with(name) if kind is FlatSettings else None
    with_losses = f"  [with --loss {', '.join(needs[1])}]" if needs and needs[0] == "loss" else ""
    return click.option(
        *flags,
        name,
        cls=Option,
        group=option.group,
        common=option.common or common,
        type=value_type,
        metavar=metavar,
        default=None,
        help=f"{option.help}{with_losses}  [default: {shown}]",
        shell_complete=COMPLETIONS.get(name),
    )


def settings_options(*names: str, common: bool = False) -> Callable[[Command], Command]:
    """An option for each of these settings; those of individual losses come last, in the order of LOSSES."""

    def order(name: str) -> int:
        needs = only_with(name)
        return list(LOSSES).index(needs[1][0]) if needs and needs[0] == "loss" else -1

    return composed(*(option_for(FlatSettings, name, common) for name in sorted(names, key=order)))


def option_names(kind: type, name: str) -> list[str]:
    return list(options_of(kind)[name].flags) or [f"--{name.replace('_', '-')}"]


def first_name(setting: str) -> str:
    return option_names(FlatSettings, setting)[0].split("/")[0]


def composed(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """One decorator that applies several, the first outermost."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_all,
    help="Show all options and exit.",
)
FILE = click.Path(path_type=Path, readable=False)  # an unreadable file is an error with exit code 1, not wrong usage
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
FORCE = click.option("--force", is_flag=True, help="Replace an existing file.")
QUIET = click.option("--quiet", is_flag=True, help="Show no progress, and print nothing but --json.")
REPORTING = composed(QUIET, JSON)
WRITING = composed(FORCE, QUIET, JSON)
ERRORS = click.option(
    "--errors",
    cls=Option,
    type=Choice(get_args(Errors)),
    default=ReadingOptions.errors,
    show_default=True,
    help="What to do with words that are not UTF-8.",
)
RESTRICT_VOCAB = click.option(
    "--restrict-vocab",
    cls=Option,
    common=True,
    formerly=["--top"],
    type=int,
    default=30_000,
    show_default=True,
    metavar="N",
    help="Answer questions with, and search, the N most frequent words only.",
)
METHOD = click.option(
    "--method",
    type=Choice(get_args(Method)),
    default="add",
    show_default=True,
    help="How analogies are answered: 3CosAdd or 3CosMul.",
)
OBJECTIVE = click.option(
    "--objective",
    cls=Option,
    metavar="NAME",
    expose_value=False,
    callback=lambda context, _, name: find_objective(None if context.resilient_parsing else name),
    help="The loss of the model, if it is your own: module:Name.",
)
MODEL = click.argument("model", type=FILE)
SHORT_OPTIONS = composed(
    *(
        click.option(
            f"--{flag}",
            cls=Option,
            group=options_of(FlatSettings)[name].group,
            is_flag=True,
            help=f"The same as --{name} {value}.",
        )
        for flag, (name, value) in SHORT.items()
    )
)
ENCODING = option_for(ReadingOptions, "encoding")
READING = composed(*(option_for(ReadingOptions, name) for name in options_of(ReadingOptions)))
PHRASES = composed(*(option_for(PhraseOptions, name) for name in options_of(PhraseOptions)))
CORPUS = click.argument("corpus", nargs=-1, required=True, type=click.Path())


def corpus_of(names: Iterable[str]) -> Corpus:
    """Return the text of files, folders and patterns; "-" is standard input, and "./-" a file."""
    paths = []
    for name in names:
        if not name:  # Path("") would be the present folder
            raise W2VError("the path of a corpus is empty")
        path = Path(name)
        paths.append(path.absolute() if str(path) == "-" != name else path)
    return Corpus(paths)


def reading_options(given: Mapping[str, Any]) -> ReadingOptions:
    """The ReadingOptions among the options given."""
    return ReadingOptions(**given_reading(given))


def given_reading(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of ReadingOptions that are given as options."""
    return {name: given[name] for name in options_of(ReadingOptions) if given.get(name) is not None}


def phrase_options(given: Mapping[str, Any]) -> PhraseOptions:
    """The PhraseOptions among the options given."""
    chosen = {name: given[name] for name in options_of(PhraseOptions) if given.get(name) is not None}
    words = read_connectors(given["connectors"]) if given.get("connectors") else frozenset()
    return PhraseOptions(**chosen, connectors=words)


def chosen_settings(given: Mapping[str, Any], tried: Mapping[str, Sequence[object]] | None = None) -> Settings:
    """The settings given as options. Raises click.UsageError as `given_settings` and `check_effect` do."""
    chosen = given_settings(given)
    settings = Settings(**chosen)
    check_effect(settings, chosen, tried)
    return settings


def check_effect(
    settings: Settings, chosen: Iterable[str], tried: Mapping[str, Sequence[object]] | None = None
) -> None:
    """Raise click.UsageError if one of the `chosen` settings, which are given as options, has no effect in a run.

    `tried` are settings of which a command tries several values.
    """
    in_effect = settings.in_effect()
    for name in chosen:
        needs = only_with(name)
        if needs and name not in in_effect and not {*needs[1]} & {*(tried or {}).get(needs[0], ())}:
            found = getattr(settings, needs[0])
            other = f"with {first_name(needs[0])} {found}" if found else f"without {first_name(needs[0])}"
            raise click.UsageError(f"{first_name(name)} has no effect {other}")


def given_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings given as options. Raises click.UsageError if they contradict each other."""
    names = set(Settings.names())
    lengths = [given.get("min_ngram"), given.get("max_ngram")]
    if any(lengths):
        if given["subwords"]:
            raise click.UsageError("--min-ngram and --max-ngram have no effect with --subwords")
        shortest, longest = (length or usual for length, usual in zip(lengths, NGRAM_LENGTHS, strict=True))
        if shortest > longest:
            raise click.UsageError(f"n-grams of {shortest} to {longest} characters: give --min-ngram and --max-ngram")
        given = {**given, "subwords": f"{shortest}-{longest}"}
    chosen = {
        name: (value, f"{first_name(name)} {value}")
        for name, value in given.items()
        if value is not None and name in names
    }
    for flag, (name, value) in SHORT.items():
        if given.get(flag) and chosen.setdefault(name, (value, f"--{flag}"))[0] != value:
            raise click.UsageError(f"--{flag} contradicts {chosen[name][1]}")
    return {name: value for name, (value, _) in chosen.items()}


def refuse_together(option: str, others: Iterable[str]) -> None:
    """Raise click.UsageError if one of the options or arguments `others` is given together with `option`."""
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in others and source is not ParameterSource.DEFAULT:
            name = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.make_metavar(context)
            raise click.UsageError(f"{name.strip('[].')} has no effect with {option}")
