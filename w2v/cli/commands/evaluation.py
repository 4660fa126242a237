"""Measuring models."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from w2v.cli import options, outputs, show
from w2v.cli.options import FILE, Option
from w2v.cli.show import Result
from w2v.evaluation import compare as compared
from w2v.evaluation import evaluate as evaluated
from w2v.evaluation import perplexity as predicted
from w2v.evaluation import rank as ranks
from w2v.options import options_of
from w2v.progress import Report
from w2v.system.files import Errors
from w2v.text.idstore import ReadingOptions
from w2v.training.model import Model
from w2v.vectors.keyed import load


@click.command(cls=options.Reporting)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=FILE)
@click.option("--questions", multiple=True, type=FILE, help="Also answer these analogy questions; may be repeated.")
@click.option("--pairs", multiple=True, type=FILE, help="Also use these scored word pairs; may be repeated.")
@click.option("--held-out", type=FILE, help="Also use this text, which no model was trained on; it needs no questions.")
@options.RESTRICT_VOCAB
@options.METHOD
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the bootstrap.")
@options.READING
@options.REPORTING
def evaluate(models: tuple[Path, ...], progress: Report, held_out: Path | None, **given: Any) -> Result:
    """Evaluate one MODEL or several, with intervals and tests of their differences.

    Models are scored on the bundled questions and pairs, and on those of --questions and --pairs. Two more measures
    concern neighbours: of the pairs with scores in the upper third, the share in which each word is among the other's
    10 nearest words; and the share of rare words (fewer than 20 occurrences) among the 10 nearest of the 500 most
    frequent words. Intervals are 95 % bootstrap intervals of 2,000 samples. Differences from the first model are
    computed over the items that both models have.

    For models of a special field, which lack the words of the bundled sets, --held-out scores a text: how often the
    words around a gap in it are nearer to the word in the gap than to another word of the text. 0.5 is chance. Frequent
    words are thinned out, words that a model lacks are left out for all models, and of a long text the last 500,000
    words are used. Options for reading a text are those of the first model's training, unless given.

    \b
    w2v evaluate model.bin
    w2v evaluate model.safetensors --held-out later-texts.txt
    w2v evaluate old.safetensors new.safetensors --questions questions-words.txt --pairs wordsim.txt --pairs men.txt
    """
    reading = options.given_reading(given)
    judging = {name: value for name, value in given.items() if name not in options_of(ReadingOptions)}
    errors = reading.get("errors", ReadingOptions.errors)
    if held_out:
        judging |= {"held_out": held_out} | reading
    elif unused := [name for name in reading if name != "errors"]:
        flag = options.option_names(ReadingOptions, unused[0])[0].split("/")[0]
        raise click.UsageError(f"{flag} has no effect without --held-out")
    loaded = [load(model, errors=errors, progress=progress) for model in models]
    found = evaluated.evaluate(*loaded, **judging, progress=progress)
    names = list(map(str, models))
    return {"models": names, "results": [asdict(one) for one in found]}, lambda _: show.evaluation(names, found)


@click.command(cls=options.Reporting)
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
@click.option(
    "--top", type=int, default=10_000, show_default=True, metavar="N", help="Compare all of the N most frequent words."
)
@click.option(
    "--show",
    cls=Option,
    common=True,
    formerly=["--words"],
    type=int,
    default=20,
    show_default=True,
    metavar="N",
    help="Show the N words that differ most.",
)
@options.ERRORS
@options.REPORTING
def compare(first: Path, second: Path, errors: Errors, progress: Report, **comparing: Any) -> Result:
    """Show the differences of two models.

    These are the share of a word's 10 nearest neighbours that are the same in both models, by the word's frequency rank
    in FIRST; the words whose neighbours differ most; and the scores of w2v evaluate. Neighbours are words that both
    models have. Of the words beyond --top, 1,000 are compared.

    \b
    w2v compare old.safetensors new.safetensors
    w2v compare old.bin new.bin --top 2000 --show 50 --json
    """
    models = [load(path, errors=errors, progress=progress) for path in (first, second)]
    result = compared.compare(*models, **comparing, progress=progress)
    names = [str(first), str(second)]
    return {"models": names} | asdict(result), lambda _: show.comparison(names, result)


@click.command(cls=options.Reporting)
@options.MODEL
@options.CORPUS
@options.OBJECTIVE
@options.READING
@options.REPORTING
def perplexity(model: Path, corpus: tuple[str, ...], progress: Report, **given: Any) -> Result:
    """Measure how well MODEL predicts the words of a CORPUS that it was not trained on.

    The text is normalised and tokenized as in the training of MODEL, unless options say otherwise.

    Skip-gram predicts a word from each other word in its window, CBOW from their mean. `perplexity` corrects for the
    subsampling of the training, and can be compared with `unigram perplexity`, that of the word frequencies in the
    training text, and with other models of the same vocabulary: report this one. Words that are not in the vocabulary
    are skipped, so a model with fewer words has an easier task, and a lower perplexity. `perplexity as trained` is
    without the correction, and too high, because subsampled frequent words are underestimated. MODEL is a .safetensors
    file written by w2v train.

    The losses hs and class compute only the path (hs) or the class (class) of each predicted word and of each word that
    subsampling leaves out; this is fast. The others normalise over the whole vocabulary, in blocks of about 100 MB:
    once per distinct word of the text in skip-gram, once per word in CBOW. With 100,000 words of 300 dimensions, each
    normalisation takes 30 million multiply-adds.

    \b
    w2v perplexity model.safetensors held-out.txt
    w2v perplexity model.safetensors news/ 'wiki/*.gz' --json
    """
    files = [*map(Path, options.corpus_of(corpus).files)]
    result = predicted.perplexity(Model.load(model), files, **options.given_reading(given), progress=progress)
    return result, show.perplexity


@click.command(cls=options.Reporting)
@options.MODEL
@click.option(
    "--contexts", type=int, metavar="N", help="Rows: the N most frequent words, as contexts.  [default: 2,000]"
)
@click.option(
    "--targets",
    cls=Option,
    common=True,
    formerly=["--words"],
    type=int,
    metavar="N",
    help="Columns: the N most frequent words, as predicted.  [default: 2,000]",
)
@click.option("-o", "--output", type=FILE, help="Plot the spectrum to this file: .png, .svg or .pdf.")
@options.OBJECTIVE
@options.WRITING
def rank(model: Path, output: Path | None, force: bool, progress: Report, **size: int | None) -> Result:
    """Show the rank and the singular values of MODEL's predictions.

    The predictions are the matrix log p(word | context). With a single softmax its rank is at most the vector size plus
    one (plus two for the loss ns), for any number of words; a mixture of softmaxes has no such limit. MODEL is a
    .safetensors file written by w2v train.

    \b
    w2v rank model.safetensors
    w2v rank model.safetensors --contexts 5000 --targets 5000 -o rank.png --json
    """
    if output:
        outputs.check_picture(output, force, models=[model])
    result = ranks.rank(Model.load(model), **size, progress=progress)
    if output:
        from w2v.plotting.curves import spectrum

        outputs.save_picture(spectrum(result, model.name), output, force)
    return result, show.rank
