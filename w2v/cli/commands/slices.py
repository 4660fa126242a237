"""The command `slices`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from w2v.cli import options, outputs
from w2v.cli.commands.training import CHECKPOINTS, IGNORE_MEMORY, JOIN_PHRASES
from w2v.cli.console import Stopped
from w2v.cli.printing import Result, print_slices
from w2v.errors import SettingsError
from w2v.progress import Report
from w2v.text.idstore import ReadingOptions
from w2v.training import slices as slicing
from w2v.training.schedule import DEFAULT_INTERVAL


@click.command(cls=options.TrainingCommand)
@options.CORPUS
@options.file_option("-o", "--output", required=True, metavar="DIR", help="Folder for the models.")
@CHECKPOINTS
@click.option(
    "--resume",
    is_flag=True,
    help="Go on after the same command was stopped: keep finished models, and resume the others from --checkpoint.",
)
@options.file_option(
    "--tag-words",
    help="Train one model instead. Each word of this file gets a vector for each CORPUS, such as gay_1990s.",
)
@options.TRAINING_SETTINGS
@options.SETTING_FLAG_OPTIONS
@JOIN_PHRASES
@IGNORE_MEMORY
@options.READING
@options.WRITING
def slices(corpus: tuple[str, ...], output: Path, force: bool, resume: bool, progress: Report, **given: Any) -> Result:
    """Train a model of each CORPUS, so that their vectors can be compared.

    A CORPUS is a file or a folder, such as all texts of a period. It gives the model its name. First, w2v trains a
    model of all texts, the compass. Then it trains the vectors of each text, while the output rows of the compass stay
    unchanged (w2v train --init compass.safetensors --freeze outputs). So all models share one coordinate system.

    A model has the words of the compass that its text contains at least --min-count times. The other words have no
    vector in it: they would keep the vector of the compass, as if they had not changed.

    With --tag-words, w2v trains one model of all texts, DIR/tagged.safetensors. The chosen words have a vector for each
    text, and all forms of a word share its output row (temporal referencing). Other words have one vector.

    \b
    w2v slices 1990s.txt 2000s.txt 2010s.txt -o decades
    w2v slices 1990s/ 2010s/ -o decades --checkpoint states
    w2v slices 1990s/ 2010s/ -o decades --checkpoint states --resume
    w2v slices 1990s/ 2010s/ -o decades --tag-words words.txt
    """
    paths = [Path(name) for name in corpus]
    chosen = options.given_settings(given) | options.given_options(ReadingOptions, given)
    others = ("checkpoint", "phrases", "tag_words", "ignore_memory", "views")
    chosen |= {name: given[name] for name in others if given[name]}
    if chosen.get("phrases") is True:
        raise SettingsError("--phrases needs FILE here: write it with w2v phrases --save-phrases, from all texts")
    chosen["checkpoint_every"] = given["checkpoint_every"] or DEFAULT_INTERVAL
    options.find_objective(given["objective"])
    files = slicing.model_files(paths, output, bool(given["tag_words"]))
    inputs = [*options.corpus_of(corpus).files, *filter(None, [given["phrases"], given["tag_words"]])]
    if output.is_dir():
        for path in files:
            outputs.check(path, True, map(Path, inputs))  # `slices` itself refuses to replace a model
    try:
        result = slicing.slices(paths, output, resume=resume, force=force, progress=progress, **chosen)
    except Stopped as stopped:
        if given["checkpoint"] or any(path.exists() for path in files):
            stopped.add_note("to resume, repeat the command with --resume")
        raise
    return result, print_slices
