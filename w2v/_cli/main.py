"""The program `w2v`. It imports a command only when it runs it, so that --help and completion are fast."""

from __future__ import annotations

import importlib

import click
from click.shell_completion import CompletionItem

from w2v._cli.console import Program
from w2v._options import suggestion
from w2v._system.version import __version__

# The headings of `w2v --help`; for each command, its module in w2v/_cli/commands and the first line of its help.
GROUPS = {
    "Prepare": {
        "vocab": ("preparation", "Count the words of a CORPUS."),
        "phrases": ("preparation", "Find phrases in a CORPUS and join their words."),
        "walks": ("preparation", "Write random walks on a GRAPH."),
        "tree": ("preparation", "Compare Huffman and other trees by expected code length."),
    },
    "Train": {
        "train": ("training", "Train word vectors on a CORPUS."),
        "classify": ("labels", "Train a classifier, which predicts the labels of texts."),
        "slices": ("training", "Train a model of each CORPUS, so that their vectors can be compared."),
        "tune": ("training", "Search for good settings for a CORPUS, and train with the best."),
    },
    "Use": {
        "query": ("vectors", "Show the words nearest to WORDS."),
        "predict": ("labels", "Predict the labels of each line of TEXTS."),
        "quantize": ("labels", "Write a small copy of a classifier."),
        "encode": ("vectors", "Compute a vector for each line of TEXTS."),
        "recommend": ("vectors", "Recommend the items nearest to each of SESSIONS."),
        "info": ("vectors", "Show facts about MODEL or, without MODEL, about this installation."),
        "convert": ("vectors", "Convert MODEL to another format or make it smaller."),
        "combine": ("vectors", "Combine several MODELs into one with longer vectors."),
        "align": ("change", "Rotate the vectors of several MODELs into one coordinate system."),
    },
    "Evaluate": {
        "analogy": ("vectors", "Answer analogy QUESTIONS and report the accuracy."),
        "similarity": (
            "vectors",
            "Correlate cosine similarities with the scores of word PAIRS, or show the cosine of two words.",
        ),
        "evaluate": ("evaluation", "Evaluate one or more MODELs, with confidence intervals and significance tests."),
        "compare": ("evaluation", "Show how two models of one text differ, such as a model and its compressed copy."),
        "change": ("change", "Show how much each word changed between two models."),
        "compare-periods": ("change", "Find the words that two periods use differently, from their documents."),
        "perplexity": ("evaluation", "Measure how well MODEL predicts the words of a new CORPUS."),
        "compare-losses": ("evaluation", "Train each loss on a CORPUS at equal settings, and compare them."),
        "rank": ("evaluation", "Show the rank and the singular values of MODEL's predictions."),
    },
    "Visualise": {
        "plot": ("pictures", "Draw a map of WORDS, or of the most frequent words."),
        "explore": ("pictures", "Explore MODEL in the browser: neighbours, analogies, a map."),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
# Commands of other programs, and the option to use for each. `w2v help COMMAND` means `w2v COMMAND --help`.
OTHER_NAMES = {"help": "--help", "version": "--version"}


class LazyProgram(Program, click.Group):
    """The group of all commands. It lists their names and the first lines of their help without importing them."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _ = COMMANDS[name]
        command: click.Command = getattr(importlib.import_module(f"w2v._cli.commands.{module}"), name.replace("-", "_"))
        return command

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if args and args[0] in OTHER_NAMES:
            args = [*args[1:], OTHER_NAMES[args[0]]]
        return super().parse_args(context, args)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not context.resilient_parsing:
            context.fail(f"No such command {args[0]!r}: {suggestion(args[0], [*COMMANDS, *OTHER_NAMES])}")
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(f"{name:<{width}}", text) for name, (_, text) in commands.items()])

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, context, incomplete)]


@click.group(
    cls=LazyProgram,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Train, evaluate and query word vectors.

    \b
    w2v train corpus.txt
    w2v analogy model.bin
    w2v query model.bin king - man + woman
    w2v help train
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
