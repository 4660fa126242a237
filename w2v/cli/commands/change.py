"""Commands that compare models of several periods or languages: `align`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import click

from w2v.cli import options, outputs
from w2v.cli.options import FILE, refuse_together
from w2v.cli.printing import Result, print_fits
from w2v.progress import Report
from w2v.system.files import Errors
from w2v.vectors.align import Reference, read_anchors, read_pairs
from w2v.vectors.align import align as align_models
from w2v.vectors.keyed import load

EXTENSION = ".safetensors"  # of aligned models: other formats lose the name of the coordinate system


@click.command(cls=options.ResultCommand)
@click.argument("models", metavar="MODEL MODEL...", nargs=-1, required=True, type=FILE)
@click.option("-o", "--output", metavar="DIR", type=FILE, required=True, help="Folder to write the aligned models to.")
@click.option(
    "--to",
    type=options.Choice(get_args(Reference)),
    default="first",
    show_default=True,
    help="first: rotate each MODEL to the first one; previous: rotate each to the one before it, for a long series.",
)
@click.option(
    "--words",
    type=FILE,
    metavar="FILE",
    help="Compute the rotations from the words in this file, one per line.  [default: all common words]",
)
@click.option(
    "--dictionary",
    type=FILE,
    metavar="FILE",
    help="Align two languages by this dictionary: on each line, a word of the first MODEL and its translation in the "
    "second.",
)
@click.option(
    "--centre/--no-centre",
    default=True,
    show_default=True,
    help="Subtract the mean vector of each MODEL, between two scalings to length 1.",
)
@options.number_option(
    "--restrict-vocab",
    default=50_000,
    show_default=True,
    help="Search for the translations of held-out words of the dictionary among the N most frequent words.",
)
@options.number_option(
    "--seed", common=False, default=1, show_default=True, help="Seed for the choice of the held-out anchors."
)
@options.ERRORS
@options.WRITING
def align(
    models: tuple[Path, ...],
    output: Path,
    words: Path | None,
    dictionary: Path | None,
    errors: Errors,
    force: bool,
    progress: Report,
    **given: Any,
) -> Result:
    """Rotate the vectors of several MODELs into one coordinate system.

    Two trainings give vectors in different coordinate systems, even on the same text. After the rotation (orthogonal
    Procrustes), you can compare the vectors of a word in models of several periods, or search for a translation.

    DIR receives a .safetensors file for each MODEL, with its name, and a number if several MODELs have the same name.
    Its vectors have length 1. The report has the mean cosine of the anchors in both models after the rotation, and of a
    tenth of the anchors that were held out. With a dictionary, it also has the share of held-out words that are
    translated correctly by the nearest word, or by one of the five nearest: by cosine, and by CSLS, which disfavours
    words that are near to everything.

    \b
    w2v align 1990s.safetensors 2000s.safetensors 2010s.safetensors -o aligned
    w2v align 1900s.bin 1910s.bin 1920s.bin --to previous -o aligned
    w2v align english.bin italian.bin --dictionary en-it.txt -o aligned
    """
    if dictionary:
        refuse_together("--dictionary", ("words", "to"))
    else:
        refuse_together("no --dictionary", ("restrict_vocab",))
    paths = outputs.check_folder(output, file_names(models), force, models)
    given["anchors"] = read_anchors(words) if words else None
    given["dictionary"] = read_pairs(dictionary) if dictionary else None
    aligned = align_models([load(path, errors=errors, progress=progress) for path in models], **given)
    output.mkdir(exist_ok=True)
    outputs.save([(path, outputs.saver(each)) for path, each in zip(paths, aligned.vectors, strict=True)], force)
    shown = list(map(str, models))
    references = shown[:1] * (len(models) - 1) if given["to"] == "first" else shown[:-1]
    found: dict[str, Any] = {"outputs": list(map(str, paths)), "coordinates": aligned.vectors[0].header.coordinates}
    found |= {"fits": [asdict(fit) for fit in aligned.fits]}
    return found, lambda _: print_fits(shown[1:], references, aligned.fits)


def file_names(models: Sequence[Path]) -> list[str]:
    """Return the file names of aligned models: the names of the models, with EXTENSION; a repeated one has a number."""
    stems = [Path(model.name.removesuffix(".gz")).stem for model in models]
    names: list[str] = []
    for number, stem in enumerate(stems, 1):
        name = f"{stem}{EXTENSION}"
        names.append(f"{stem}-{number}{EXTENSION}" if name in names else name)
    return names
