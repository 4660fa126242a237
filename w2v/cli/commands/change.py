"""Commands for models of several periods or languages: `align` and `change`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from w2v.cli import options, outputs
from w2v.cli.options import FILE, refuse_together
from w2v.cli.printing import Result, print_change, print_fits
from w2v.evaluation import change as changes
from w2v.evaluation.change import Measure
from w2v.progress import Report
from w2v.system.files import Errors
from w2v.vectors.align import RESTRICT_VOCAB, Reference, read_anchors, read_pairs
from w2v.vectors.align import align as align_models
from w2v.vectors.keyed import load

EXTENSION = ".safetensors"  # of aligned models: other formats lose the name of the coordinate system


@click.command(cls=options.ResultCommand)
@click.argument("models", metavar="MODEL MODEL...", nargs=-1, required=True, type=FILE)
@options.file_option("-o", "--output", metavar="DIR", required=True, help="Folder to write the aligned models to.")
@options.choice_option(
    "--to",
    choices=Reference,
    default="first",
    help="first: rotate each MODEL to the first one; previous: rotate each to the one before it, for a long series.",
)
@options.file_option(
    "--words",
    metavar="FILE",
    help="Compute the rotations from the words in this file, one per line.  [default: all common words]",
)
@options.file_option(
    "--dictionary",
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
    default=RESTRICT_VOCAB,
    help="Search for the translations of held-out words of the dictionary among the N most frequent words.",
)
@options.number_option("--seed", common=False, default=1, help="Seed for the choice of the held-out anchors.")
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
    paths = [output / name for name in file_names(models)]
    outputs.check_folder(output, paths, force, models)
    given["anchors"] = read_anchors(words) if words else None
    given["dictionary"] = read_pairs(dictionary) if dictionary else None
    aligned = align_models([load(path, errors=errors, progress=progress) for path in models], **given)
    output.mkdir(exist_ok=True)
    outputs.save([(path, outputs.saver(each)) for path, each in zip(paths, aligned.vectors, strict=True)], force)
    shown = list(map(str, models))
    references = shown[:1] * (len(models) - 1) if given["to"] == "first" else shown[:-1]
    found: dict[str, Any] = {"outputs": list(map(str, paths)), "coordinates": aligned.vectors[0].header.coordinates}
    found |= {"fits": [asdict(fit) for fit in aligned.fits]}
    return found, lambda _: print_fits(shown[1:], references, aligned.fits, bool(dictionary))


def file_names(models: Sequence[Path]) -> list[str]:
    """Return the file names of aligned models: the names of the models, with EXTENSION; a repeated one has a number."""
    stems = [Path(model.name.removesuffix(".gz")).stem for model in models]
    names: list[str] = []
    for number, stem in enumerate(stems, 1):
        name = f"{stem}{EXTENSION}"
        names.append(f"{stem}-{number}{EXTENSION}" if name in names else name)
    return names


@click.command(cls=options.ResultCommand)
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
@click.option(
    "--word", "words", multiple=True, help="Report this word instead of those that changed most. May be repeated."
)
@options.file_option(
    "--baseline",
    multiple=True,
    metavar="MODEL",
    help="Give it twice: two models that differ by noise only, such as models of two random halves of a text. Or once: "
    "another model of the text of FIRST.",
)
@options.choice_option("--measure", choices=Measure, default="cosine", help="Order words by this distance.")
@options.number_option(
    "--min-count",
    help=f"Leave out words that occur less often than this in one of the texts.  [default: {changes.MIN_COUNT}]",
)
@options.number_option(
    "--restrict-vocab", default=changes.RESTRICT_VOCAB, help="Compare only the N most frequent words of each model."
)
@options.number_option("--topn", default=20, help="Number of words to report.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=changes.LEVEL,
    show_default=True,
    help="Count words with at most this adjusted p as changed.",
)
@options.ERRORS
@options.REPORTING
def change(
    first: Path,
    second: Path,
    words: tuple[str, ...],
    baseline: tuple[Path, ...],
    errors: Errors,
    progress: Report,
    **given: Any,
) -> Result:
    """Show how much each word changed between two models.

    FIRST and SECOND are models of two periods, for instance. They are aligned as by w2v align, unless they come from
    w2v align or w2v slices. Two distances are measured, both from 0 (the same) to 2. "cosine" is 1 minus the cosine of
    the two vectors of the word. It notices changes of any kind. "neighbourhood", the local neighbourhood distance of
    Hamilton et al. 2016, takes the 25 nearest words in each model, and the word's cosines with all of them as a vector;
    it is 1 minus the cosine of the two models' vectors. It notices changes of meaning rather than of grammar.

    Distances are large without any change, because a text is a sample, and largest for rare words. So words are ordered
    by z: how far a distance is above the median of words of similar frequency, in spreads. With --baseline, these are
    words of models that differ by noise only, and p is the share of them with such a z. The adjusted p is for lists: of
    the words with an adjusted p of at most 0.05, at most 5 % are expected to be false (Benjamini-Hochberg). For a word
    that you chose before you saw the list, use p.

    Two trainings of one text with different seeds are not an honest baseline for two texts: they differ much less than
    models of two random halves of a text.

    \b
    w2v change 1990s.safetensors 2010s.safetensors
    w2v change 1990s.safetensors 2010s.safetensors --baseline half1.safetensors --baseline half2.safetensors
    w2v change 1990s.safetensors 2010s.safetensors --word mouse --word tablet --json
    """
    if words:
        refuse_together("--word", ("topn",))
    if len(baseline) > 2:
        raise click.UsageError(f"--baseline is given {len(baseline)} times: give it once or twice")
    loaded = [load(path, errors=errors, progress=progress) for path in (first, second, *baseline)]
    given |= {"words": words or None, "baseline": loaded[2:]}
    found = changes.change(*loaded[:2], **given, progress=progress)
    names = [str(first), str(second)]
    described = {"models": names, "baseline_models": list(map(str, baseline))} | asdict(found)
    return described, lambda _: print_change(names, found, side_by_side=bool(words))
