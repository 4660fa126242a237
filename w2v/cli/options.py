"""The options of the commands, those of training made from Settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from w2v.files import Errors
from w2v.settings import Settings
from w2v.training.model import Model
from w2v.training.start import going_on
from w2v.vectors.benchmarks import Method

Command = Callable[..., Any]

HELP = {
    "model": "Predict the centre word from each context word (skipgram), or from their mean (cbow).",
    "loss": "Negative sampling (ns), hierarchical softmax (hs), noise-contrastive estimation (nce), sampled, "
    "class-based (class) or full softmax; with Numba differentiated (dsoftmax), a mixture (mos), or from characters "
    "(charcnn).",
    "objective": "In place of a loss, module:Name of one's own: see docs/objectives.md.",
    "kernel": "The compiled kernel, or Numba's, which takes objectives.",
    "storage": "Keep the matrices as float32, or as bfloat16 (bf16), in half the memory and somewhat slower.",
    "vector_size": "Dimensions of a vector.",
    "window": "Context words on either side, at most.",
    "shrink_windows": "Draw each window's reach from 1 to --window, or always use all of it.",
    "min_count": "Leave out words that occur less often.",
    "max_vocab": "Keep only this many words, the most frequent.",
    "tree": "Tree of hs: huffman, balanced, clustered, or a file with a word and its code on each line.",
    "tree_vectors": "Model whose vectors --tree clustered clusters.",
    "negative": "Words drawn for each prediction by ns, nce and sampled.",
    "ns_exponent": "Words are drawn from their count to this power by ns, nce and sampled.",
    "adaptive_samples": "Let sampled draw more where few of the samples have weight; with --negative 3 or more.",
    "classes": "About how many classes --loss class has.",
    "blocks": "Lengths of dsoftmax's output vectors by frequency, and numbers of words, like 300:1000,150:4000,75.",
    "mixtures": "Softmaxes that mos mixes.",
    "sampled_mixtures": "Let mos take each of them over sampled words, or over all.",
    "large_softmax": "Let softmax, dsoftmax and mos take more than 30,000 words.",
    "per_pair": "A step for each context word, as in word2vec.c, or one for those of a window (skipgram).",
    "cbow_gradient": "Divide the gradient among the context words, or give each all of it, as word2vec.c.",
    "sample": "Threshold of subsampling; 0 for none.",
    "sample_formula": "Keep min(1, sqrt(t/f) + t/f) of a word (word2vec), or min(1, sqrt(t/f)) (paper).",
    "alpha": "Learning rate at the start.",
    "min_alpha": "Learning rate at the end.",
    "epochs": "Passes over the corpus.",
    "workers": "Threads.",
    "seed": "One worker and one seed give the same vectors on every run.",
}
NAMES = {
    "vector_size": ["--vector-size", "--size"],
    "epochs": ["--epochs", "--iter"],
    "workers": ["--workers", "--threads"],
    "shrink_windows": ["--shrink-windows/--fixed-windows"],
    "per_pair": ["--per-pair/--shared"],
    "adaptive_samples": ["--adaptive-samples/--fixed-samples"],
    "sampled_mixtures": ["--sampled-mixtures/--full-mixtures"],
    "large_softmax": ["--large-softmax/--no-large-softmax"],
}
COMPUTED = {"alpha": "the best measured for model and loss", "min_alpha": "alpha / 10,000"}
COMPUTED |= {"workers": "one for each processor", "max_vocab": "all", "tree_vectors": "none"}
COMPUTED |= {"objective": "none", "blocks": "a half of the vector, a quarter and the rest"}
COMPUTED |= {"classes": "the square root of the number of words"}
SHORT = {"sg": ("model", "skipgram"), "cbow": ("model", "cbow"), "hs": ("loss", "hs")}
DRAWS = "ns", "nce", "sampled", "mos", "charcnn"
# Options that say nothing unless another setting has one of these values.
ONLY_WITH = {
    "tree": ("loss", ("hs",)),
    "tree_vectors": ("loss", ("hs",)),
    "negative": ("loss", DRAWS),
    "ns_exponent": ("loss", DRAWS),
    "adaptive_samples": ("loss", ("sampled",)),
    "classes": ("loss", ("class",)),
    "blocks": ("loss", ("dsoftmax",)),
    "mixtures": ("loss", ("mos",)),
    "sampled_mixtures": ("loss", ("mos",)),
    "large_softmax": ("loss", ("softmax", "dsoftmax", "mos")),
    "per_pair": ("model", ("skipgram",)),
    "cbow_gradient": ("model", ("cbow",)),
}


def settings_options(*names: str) -> Callable[[Command], Command]:
    """An option for each of these settings; its default stands in Settings alone."""
    hints = get_type_hints(Settings)

    def option(name: str) -> Callable[[Command], Command]:
        kind = hints[name]
        options = option_names(name)
        default = COMPUTED.get(name, getattr(Settings, name))
        if get_origin(kind) is Literal:
            kind = click.Choice(get_args(kind))
        elif get_args(kind):  # int | None
            kind = get_args(kind)[0]
        elif kind is bool:
            default = options[0].split("/")[not default].strip("-")
        return click.option(*options, name, type=kind, default=None, help=f"{HELP[name]}  [default: {default}]")

    return together(*map(option, names))


def option_names(setting: str) -> list[str]:
    return NAMES.get(setting, [f"--{setting.replace('_', '-')}"])


def first_name(setting: str) -> str:
    return option_names(setting)[0].split("/")[0]


def together(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


FILE = click.Path(path_type=Path, readable=False)  # what cannot be read is failed work, not wrong use
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
FORCE = click.option("--force", is_flag=True, help="Replace an existing file.")
QUIET = click.option("--quiet", is_flag=True, help="No progress, and no figures but those of --json.")
ERRORS = click.option(
    "--errors",
    type=click.Choice(get_args(Errors)),
    default="strict",
    show_default=True,
    help="What to do with bytes that are not UTF-8.",
)
METHOD = click.option(
    "--method",
    type=click.Choice(get_args(Method)),
    default="add",
    show_default=True,
    help="3CosAdd or 3CosMul.",
)
OBJECTIVE = click.option("--objective", metavar="NAME", help="The model's own objective, module:Name.")
MODEL = together(click.argument("model", type=FILE), ERRORS)
READING = together(
    click.option("--cache", type=FILE, help="Keep the ids in this folder, and use them again."),
    ERRORS,
    click.option(
        "--max-types",
        type=int,
        default=50_000_000,
        show_default=True,
        help="Drop the rarest words when there are more different ones.",
    ),
)
CORPUS = together(click.argument("corpus", nargs=-1, required=True), READING)


def chosen_settings(given: dict[str, Any], model: Model | None = None) -> Settings:
    """The settings of the options that are given, the others from a model that goes on, if there is one.

    Raises click.UsageError where the options contradict each other.
    """
    chosen = given_settings(given)
    settings = going_on(model, chosen) if model else Settings(**chosen)
    for name, (other, values) in ONLY_WITH.items():
        found = getattr(settings, other)
        if name in chosen and found not in values:
            raise click.UsageError(f"{first_name(name)} says nothing with {first_name(other)} {found}")
    return settings


def given_settings(given: dict[str, Any]) -> dict[str, Any]:
    """The values of the options that are given. Raises click.UsageError where they contradict each other."""
    chosen = {
        name: (value, f"{first_name(name)} {value}")
        for name, value in given.items()
        if value is not None and name not in SHORT
    }
    for flag, (name, value) in SHORT.items():
        if given.get(flag) and chosen.setdefault(name, (value, f"--{flag}"))[0] != value:
            raise click.UsageError(f"--{flag} contradicts {chosen[name][1]}")
    return {name: value for name, (value, _) in chosen.items()}


def refuse_beside(option: str, others: Iterable[str]) -> None:
    """Raise click.UsageError where one of the options or arguments `others` is given beside `option`."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in others and context.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{parameter.opts[0]} says nothing beside {option}")
