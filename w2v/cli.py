"""The command line: options in, results out. What is done stands in the other modules."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

from w2v import formats, info, query, targets
from w2v.console import Program, Reporter, say, show_json, show_table
from w2v.corpus import Corpus
from w2v.errors import W2VError
from w2v.evaluate import Method, analogies, word_pairs
from w2v.idstore import Errors, read_corpus
from w2v.settings import Settings
from w2v.train import instruction_set
from w2v.train import train as train_model
from w2v.vectors import KeyedVectors, load
from w2v.vocab import Vocabulary

Command = Callable[..., Any]

HELP = {
    "model": "Predict the centre word from each context word (skipgram), or from their mean (cbow).",
    "loss": "Negative sampling (ns) or hierarchical softmax (hs).",
    "vector_size": "Dimensions of a vector.",
    "window": "Context words on either side, at most.",
    "shrink_windows": "Draw each window's reach from 1 to --window, or always use all of it.",
    "min_count": "Leave out words that occur less often.",
    "max_vocab": "Keep only this many words, the most frequent.",
    "negative": "Negatives for each prediction.",
    "ns_exponent": "Negatives are drawn from count to this power.",
    "per_pair": "Negatives for each context word, as in word2vec.c, or shared by those of a window.",
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
}
COMPUTED = {"alpha": "the best measured for model and loss", "min_alpha": "alpha / 10,000"}
COMPUTED |= {"workers": "one for each processor", "max_vocab": "all"}
SHORT = {"sg": ("model", "skipgram"), "cbow": ("model", "cbow"), "hs": ("loss", "hs")}
# Options that say nothing unless another setting has this value.
ONLY_WITH = {
    "negative": ("loss", "ns"),
    "ns_exponent": ("loss", "ns"),
    "cbow_gradient": ("model", "cbow"),
}


def settings_options(command: Command) -> Command:
    """An option for each of the settings; its default stands in Settings alone."""
    hints = get_type_hints(Settings)
    for field in reversed(fields(Settings)):
        hint = next(kind for kind in get_args(hints[field.name]) or [hints[field.name]] if kind is not NoneType)
        kind: Any = click.Choice(get_args(hints[field.name])) if get_origin(hints[field.name]) is Literal else hint
        default = COMPUTED.get(field.name, field.default)
        names = NAMES.get(field.name, [f"--{field.name.replace('_', '-')}"])
        if hint is bool:
            default = names[0].split("/")[not default].strip("-")
        text = f"{HELP[field.name]}  [default: {default}]"
        command = click.option(*names, field.name, type=kind, default=None, help=text)(command)
    return command


def option(*names: str, **settings: Any) -> Callable[[Command], Command]:
    return click.option(*names, **settings)


def stacked(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


FILE = click.Path(path_type=Path)
as_json = option("--json", "as_json", is_flag=True, help="Print one JSON object.")
force = option("--force", is_flag=True, help="Replace an existing file.")
quiet = option("--quiet", is_flag=True, help="Print no progress and no figures.")
malformed = option("--errors", type=click.Choice(get_args(Errors)), default="strict", show_default=True,
                   help="What to do with bytes that are not UTF-8.")  # fmt: skip
corpus_arguments = stacked(
    click.argument("corpus", nargs=-1, required=True),
    option("--cache", type=FILE, help="Keep the ids in this folder, and use them again."),
    malformed,
    option("--max-types", type=int, default=50_000_000, show_default=True,
           help="Drop the rarest words when there are more different ones."),
)  # fmt: skip
model_argument = stacked(click.argument("model", type=FILE), malformed)
method = option("--method", type=click.Choice(get_args(Method)), default="add", show_default=True,
                help="3CosAdd or 3CosMul.")  # fmt: skip


@click.group(
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="w2v", message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Train word vectors, evaluate them and ask them.

    \b
    w2v train corpus.txt
    w2v analogy model.bin
    w2v query model.bin king - man + woman
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@main.command()
@corpus_arguments
@option("-o", "--output", type=FILE, default="model.bin", show_default=True,
        help="File to write: .bin, .txt or .vec (with .gz too), or .safetensors, which keeps all of the model.")
@settings_options
@option("--sg", is_flag=True, help="The same as --model skipgram.")
@option("--cbow", is_flag=True, help="The same as --model cbow.")
@option("--hs", is_flag=True, help="The same as --loss hs.")
@option("--save-vocab", type=FILE, help="Write the words and their counts to this file.")
@option("--read-vocab", type=FILE, help="Use the words and counts of this file.")
@force
@quiet
@as_json
def train(
    corpus: tuple[str, ...],
    cache: Path | None,
    errors: Errors,
    max_types: int,
    output: Path,
    save_vocab: Path | None,
    read_vocab: Path | None,
    force: bool,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Train vectors on a CORPUS of files, folders or glob patterns, compressed or not; - is standard input.

    \b
    w2v train corpus.txt
    w2v train news/ 'wiki/*.gz' -o vectors.safetensors --vector-size 300 --epochs 3
    zcat corpus.gz | w2v train - --cbow --loss hs --json
    """
    started = time.perf_counter()
    settings = chosen_settings(given)
    used = instruction_set()
    formats.format_of(output)
    inputs = [*corpus, *([read_vocab] if read_vocab else [])]
    targets.check(output, force, inputs)
    if save_vocab:
        targets.check(save_vocab, force, [*inputs, output])
    vocabulary = read_vocab and Vocabulary.load(read_vocab, settings.min_count, settings.max_vocab)
    with Reporter(quiet) as progress:
        model = train_model(
            list(corpus),
            settings,
            vocabulary=vocabulary,
            cache=cache,
            errors=errors,
            max_types=max_types,
            progress=progress,
        )
    trained = time.perf_counter()
    targets.save(model.save, output)
    if save_vocab:
        model.vocabulary.save(save_vocab, model.figures["sentences"])
    now = time.perf_counter()
    figures = {
        "output": str(output),
        "vocabulary_size": len(model.vocabulary),
        "vector_size": settings.vector_size,
        **model.figures,
        "seconds": model.figures["seconds"] | {"save": now - trained, "total": now - started},
        "peak_memory_bytes": info.peak_memory(),
        "instruction_set": used,
        "settings": settings.as_dict(),
    }
    if as_json:
        show_json(figures)
    elif not quiet:
        show_table(readable(figures))


def chosen_settings(given: dict[str, Any]) -> Settings:
    """The settings of the options that are given. Raises click.UsageError where they contradict each other."""
    flags = {flag: given.pop(flag) for flag in SHORT}
    chosen = {name: (value, option_name(name)) for name, value in given.items() if value is not None}
    for flag, (name, value) in SHORT.items():
        if flags[flag]:
            if chosen.setdefault(name, (value, f"--{flag}"))[0] != value:
                raise click.UsageError(f"--{flag} contradicts {chosen[name][1]} {chosen[name][0]}")
    settings = Settings(**{name: value for name, (value, _) in chosen.items()})
    for name, (other, value) in ONLY_WITH.items():
        if name in chosen and getattr(settings, other) != value:
            found = getattr(settings, other)
            raise click.UsageError(f"{option_name(name)} says nothing with {option_name(other)} {found}")
    return settings


def option_name(name: str) -> str:
    return NAMES.get(name, [f"--{name.replace('_', '-')}"])[0]
