"""The program `w2v`. Its commands are imported when one of them is used: so --help and completion are quick."""

from __future__ import annotations

import importlib

import click
from click.shell_completion import CompletionItem

from w2v.cli.console import Program

COMMANDS = {
    "train": "Train word vectors on a CORPUS.",
    "tune": "Try settings on a CORPUS for a given time, and train with the best.",
    "analogy": "Answer analogy QUESTIONS and report the accuracy.",
    "similarity": "Correlate cosine similarities with the scores of word PAIRS.",
    "evaluate": "Evaluate one MODEL or several, with intervals and tests of their differences.",
    "compare": "Show in what two models differ.",
    "perplexity": "Measure how well MODEL predicts the words of a CORPUS that it was not trained on.",
    "rank": "Show the rank and the singular values of what MODEL predicts.",
    "plot": "Draw a map of WORDS, by default of the most frequent ones.",
    "query": "Show the words nearest to WORDS.",
    "explore": "Explore MODEL in the browser: neighbours, analogies, a map.",
    "info": "Describe MODEL or, without one, this installation.",
    "convert": "Convert MODEL to another format.",
    "vocab": "Count the words of a CORPUS.",
    "phrases": "Find the phrases of a CORPUS, and join their words.",
    "tree": "Compare Huffman and other trees by expected code length.",
}


class LazyProgram(Program, click.Group):
    """Commands whose names and first lines of help are known before they are imported."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module("w2v.cli.commands"), name)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, context, incomplete)]


@click.group(
    cls=LazyProgram,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="w2v", message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Train, evaluate and query word vectors.

    \b
    w2v train corpus.txt
    w2v analogy model.bin
    w2v query model.bin king - man + woman
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
