"""Commands for several periods or languages: `align`, `change` and `compare-periods`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from w2v._cli import options, outputs
from w2v._cli.options import FILE, refuse_together
from w2v._cli.printing import Result, print_change, print_fits, print_periods
from w2v._evaluation import change as changes
from w2v._evaluation.change import Measure
from w2v._options import options_of
from w2v._progress import Report
from w2v._system.files import Errors
from w2v._text.idstore import ReadingOptions
from w2v._training import compare_periods as periods
from w2v._vectors.align import RESTRICT_VOCAB, Reference, read_anchors, read_pairs
from w2v._vectors.align import align as align_models
from w2v._vectors.keyed import load

WORDS = click.option(
    "--word", "words", multiple=True, help="Report this word instead of those that changed most. May be repeated."
)
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
@WORDS
@options.choice_option("--measure", choices=Measure, default="cosine", help="Order words by this distance.")
@options.number_option(
    "--min-count",
    help=f"Leave out words that occur less often than this in one of the texts.  [default: {changes.MIN_COUNT}]",
)
@options.number_option(
    "--restrict-vocab", default=changes.RESTRICT_VOCAB, help="Compare only the N most frequent words of each model."
)
@options.number_option("--topn", default=20, help="Number of words to report.")
@options.ERRORS
@options.REPORTING
def change(
    first: Path,
    second: Path,
    words: tuple[str, ...],
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
    by z: how far a distance is above the median of words of similar frequency, in spreads. If you have the texts of the
    periods, w2v compare-periods also says which of the changes are more than chance.

    \b
    w2v change 1990s.safetensors 2010s.safetensors
    w2v change 1990s.safetensors 2010s.safetensors --word mouse --word tablet --json
    """
    if words:
        refuse_together("--word", ("topn",))
    loaded = [load(path, errors=errors, progress=progress) for path in (first, second)]
    found = changes.change(*loaded, **given, words=words or None, progress=progress)
    names = [str(first), str(second)]
    return {"models": names} | asdict(found), lambda _: print_change(names, found, side_by_side=bool(words))


@click.command(cls=options.ResultCommand)
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@options.file_option(
    "--model", help="Compare the words in the space of this model.  [default: train a model of all documents]"
)
@WORDS
@options.file_option("--exclude", help="Leave out the words in this file, one per line, such as proper names.")
@options.number_option(
    "--min-count",
    common=False,
    default=changes.MIN_COUNT,
    help="Leave out words that occur less often than this in one of the periods.",
)
@options.number_option(
    "--min-documents",
    default=periods.MIN_DOCUMENTS,
    help="Leave out words that occur in fewer documents than this in one of the periods.",
)
@options.number_option(
    "--restrict-vocab", default=changes.RESTRICT_VOCAB, help="Compare only the N most frequent words of the model."
)
@options.number_option("--topn", default=20, help="Number of words to report.")
@options.number_option("--seed", common=False, default=1, help="Seed of the training and of the random deals.")
@options.READING_TEXTS
@options.REPORTING
def compare_periods(
    first: str,
    second: str,
    model: Path | None,
    words: tuple[str, ...],
    exclude: Path | None,
    progress: Report,
    **given: Any,
) -> Result:
    """Find the words that two periods use differently, from their documents.

    FIRST and SECOND are the texts of two periods, for instance. Of a folder, each file is a document; of a file, each
    line, or with --column each row. Give whole documents, not sentences: a document uses the same word many times, so
    sentences are not independent of each other, and too many words would seem to have changed.

    w2v trains a model of all documents, and computes the vector of each word in each period from the words around it.
    "cosine" is 1 minus the cosine of both vectors. Then the documents with the word are dealt to the periods at random,
    up to 20,000 times: "by chance" is the mean distance, z the distance above it in standard deviations, and p the
    share of deals with at least the observed distance. The adjusted p is for lists: of the words with an adjusted p of
    at most 0.05, at most 5 % are expected to be false (Benjamini-Hochberg). They come first, in the order of their
    distance above chance. For a word that you chose before you saw the list, use p.

    For other settings of the training, train a model of both texts with w2v train, and give it with --model.

    \b
    w2v compare-periods 1990s/ 2010s/
    w2v compare-periods 1990s.txt 2010s.txt --exclude names.txt --min-documents 20
    w2v compare-periods 1990s.csv 2010s.csv --column text --lower --word mouse
    w2v compare-periods 1990s/ 2010s/ --model both.safetensors --json
    """
    if words:
        refuse_together("--word", ("topn",))
    if model:
        refuse_together("--model", {*options_of(ReadingOptions)} - {"column", "header", "encoding", "errors"})
    chosen = options.given_options(ReadingOptions, given)
    given = {name: value for name, value in given.items() if name not in options_of(ReadingOptions)}
    given |= {"model": load(model, progress=progress) if model else None, "words": words or None}
    given["exclude"] = read_anchors(exclude) if exclude else None
    found = periods.compare_periods(Path(first), Path(second), **chosen, **given, progress=progress)
    names = [first, second]
    return {"periods": names} | asdict(found), lambda _: print_periods(names, found, side_by_side=bool(words))
