"""Commands for texts with labels: `classify`, `predict` and `quantize`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import click
import numpy as np

from w2v._cli import options, outputs
from w2v._cli.commands.training import OF_RUNS, run_training
from w2v._cli.console import ProgressPrinter
from w2v._cli.info import classifier_facts
from w2v._cli.options import FILE, option_for
from w2v._cli.printing import (
    Result,
    label_values,
    print_classifier,
    print_explanation,
    print_label_scores,
    print_values,
)
from w2v._errors import SettingsError, printable
from w2v._evaluation.labels import best_labels, evaluate_labels
from w2v._progress import Report
from w2v._settings import GeneralOptions
from w2v._training.classifier import Classifier
from w2v._training.config import MODEL_SUFFIX
from w2v._training.labelled import score_file
from w2v._training.quantize import prune
from w2v._training.quantize import quantize as quantize_classifier

OUTPUT = Path(f"model{MODEL_SUFFIX}")
OF_TEXTS = ("labels", "column", "header", "encoding", "errors")  # the options of w2v quantize that only texts need


@click.command(cls=options.TrainingCommand)
@click.argument("corpus", metavar="TRAIN...", nargs=-1, required=True, type=click.Path())
@options.file_option(
    "-o",
    "--output",
    help=f"File to write: {MODEL_SUFFIX}, the only format that stores every classifier.  [default: {OUTPUT}]",
)
@options.file_option("--test", help="Print the scores on this file at the end, as w2v evaluate --labelled does.")
@options.CLASSIFIER
@options.READING_TEXTS
@options.rare_option(
    "--continue",
    "continue_from",
    type=FILE,
    metavar="MODEL",
    help="Continue training this classifier on TRAIN, which may have new labels.",
)
@options.rare_option(
    "--init",
    type=FILE,
    metavar="VECTORS",
    help="Initialise words of an embedded model from the vectors in this file, in any format.",
)
@options.rare_option("--freeze", flag_value="inputs", help="Keep the vectors from --init unchanged.")
@options.rare_option(
    "--held-out",
    type=FILE,
    help="With --stop-early: score these texts with labels after each epoch, instead of a tenth of TRAIN.",
)
@OF_RUNS
def classify(verbose: bool, progress: Report, test: Path | None, **given: Any) -> Result:
    """Train a classifier, which predicts the labels of texts.

    TRAIN is one or more files with a text in each line. Words that begin with __label__ are its labels, as in fastText.
    With --column and --labels, TRAIN is a table: CSV, JSON lines, Parquet or Arrow. A text may have several labels.

    \b
    w2v classify train.txt --test test.txt
    w2v classify train.csv --column text --labels topic -o topics.safetensors
    w2v classify sentences.txt --subwords 2-4 --word-ngrams 1 -o languages.safetensors
    w2v classify train.txt --checkpoint states
    w2v classify train.txt --resume states -o model.safetensors
    """
    if given["output"]:
        options.check_classifier_output(given["output"])
    if not given["resume"]:
        given["output"] = given["output"] or OUTPUT
    test_texts = options.corpus_of([str(test)]) if test else None
    trained = run_training({**given, "classify": True, "views": "words"}, progress)
    if trained is None:
        return None
    command, model, metrics = trained
    output = command.outputs["output"]
    metrics = {"output": str(output), "bytes": output.stat().st_size} | classifier_facts(model) | metrics
    scores = None
    if test_texts:
        reading = options.reading_arguments(asdict(command.config.reading))
        scores = score_file(model, test_texts, labels=model.options.labels, progress=progress, **reading)

    def print_text(_: object) -> None:
        (print_values if verbose else print_classifier)(metrics | {"settings": model.settings.in_effect()})
        if scores:
            print_label_scores(evaluate_labels([str(output)], [scores]), [scores])

    return metrics | ({"test": label_values(scores)} if scores else {}), print_text


@click.command(cls=options.ShortHelp)
@options.MODEL
@click.argument("texts", nargs=-1, type=click.Path())
@options.number_option("-k", default=1, help="Print up to N labels of each text.")
@options.THRESHOLD
@click.option(
    "--explain",
    is_flag=True,
    help="Also print the words and n-grams that decided: what each adds to the score of the best label, and its share "
    "of all these numbers without their signs.",
)
@options.COLUMN_OF_TEXTS
@options.ENCODING
@options.ERRORS
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each text, in one line.")
def predict(
    model: Path, texts: tuple[str, ...], k: int, threshold: float | None, explain: bool, as_json: bool, **given: Any
) -> None:
    """Predict the labels of each line of TEXTS.

    Prints a line for each text, in their order: the best label and its probability, with a tab between them, and then
    further labels with -k. The line is empty if MODEL knows no word of the text, or no label reaches --threshold. TEXTS
    are files; - is standard input, also without TEXTS. They are split into words as in the training of MODEL. Labels in
    the texts are not used.

    \b
    w2v predict model.safetensors new.txt
    w2v predict model.safetensors -k 3 < new.txt
    w2v predict quality.safetensors pages.jsonl.gz --column text --json
    echo 'a dull film' | w2v predict model.safetensors --explain
    """
    if explain:
        options.refuse_together("--explain", ("k", "threshold"))
    if not texts and sys.stdin.isatty():
        raise click.UsageError("Missing argument 'TEXTS...': name files, or - for standard input")
    corpus, reading = options.corpus_of(texts or ["-"], given["header"]), options.reading_arguments(given)
    classifier = Classifier.load(model, mmap=True)
    with ProgressPrinter() as progress:
        if explain:
            for explanation in classifier.read_explanations(corpus, **reading):
                if as_json:
                    click.echo(json.dumps(asdict(explanation) if explanation else {"label": None, "parts": []}))
                elif explanation:
                    print_explanation(explanation)
                else:
                    click.echo()
            return
        names = np.array([json.dumps(label) if as_json else printable(label) for label in classifier.labels], object)
        pair, between, start, end = "%s\t%.6g", "\t", "", "\n"
        if as_json:
            pair, between, start, end = '{"label": %s, "probability": %r}', ", ", '{"labels": [', "]}\n"
        limits = classifier.limits(k, threshold)
        for block in classifier.read_predictions(corpus, progress=progress, **reading):
            best, values = best_labels(block.probabilities, limits["k"])
            chosen = values >= limits["threshold"]  # False for NaN
            forms = [start + between.join([pair] * size) + end for size in range(best.shape[1] + 1)]
            lines = "".join([forms[size] for size in chosen.sum(axis=1).tolist()])
            pairs = zip(names[best[chosen]].tolist(), values[chosen].tolist(), strict=True)
            sys.stdout.write(lines % tuple(chain.from_iterable(pairs)))
            sys.stdout.flush()


@click.command(cls=options.ResultCommand)
@options.MODEL
@options.file_option("-o", "--output", required=True, help="File to write: .ftz, or .safetensors with --cutoff.")
@options.number_option("--cutoff", help="Keep only the N rows of words and n-grams that matter most.  [default: all]")
@click.option(
    "--size",
    metavar="BYTES",
    help="Keep as many rows as fit in a file of this size, such as 500K or 2M, with --norm, and with --output-layer "
    "from 300 labels on.",
)
@options.number_option("--dsub", help="A byte stands for N values of a row.  [default: 2]")
@click.option("--norm", is_flag=True, default=None, help="Give the length of each row a byte of its own.")
@click.option(
    "--output-layer",
    is_flag=True,
    default=None,
    help="Quantise the output layer, too: smaller from about 300 labels on.",
)
@options.file_option("--retrain", help="Train the rows that are kept on these texts before they are quantised.")
@option_for(GeneralOptions, "epochs", help="Number of passes over the texts of --retrain.", default_text="5")
@option_for(GeneralOptions, "alpha", default_text="a tenth of MODEL's")
@options.LABELLED
@options.COLUMN_OF_TEXTS
@options.ENCODING
@options.ERRORS
@options.WRITING
def quantize(
    model: Path, output: Path, retrain: Path | None, labelled: Path | None, force: bool, progress: Report, **given: Any
) -> Result:
    """Write a small copy of a classifier.

    In a .ftz file, which fastText can read, a byte stands for several values. It can store models with mean pooling:
    train them with w2v classify --pooling mean. Of other models, --cutoff keeps the rows that matter most in a
    .safetensors file. With --labelled, the accuracy before and after is printed.

    \b
    w2v quantize model.bin -o small.ftz --labelled test.txt
    w2v quantize model.safetensors -o small.ftz --size 2M --retrain train.txt --labelled test.txt
    w2v quantize topics.safetensors -o small.safetensors --cutoff 20000
    """
    of_texts = {name: given.pop(name) for name in OF_TEXTS}
    given = {name: value for name, value in given.items() if value is not None}
    outputs.check(output, force, filter(None, (retrain, labelled)), models=[model])
    is_native = output.suffix == MODEL_SUFFIX
    if output.suffix != ".ftz" and not is_native:
        raise SettingsError(f"{output}: w2v quantize writes .ftz or {MODEL_SUFFIX}")
    if is_native and (set(given) - {"cutoff", "epochs", "alpha"} or "cutoff" not in given):
        raise click.UsageError(f"for {MODEL_SUFFIX}, give --cutoff, and none of --size, --dsub, --norm, --output-layer")
    if not retrain and not labelled:
        options.refuse_without("--retrain or --labelled", OF_TEXTS)
    labels, header, reading = of_texts["labels"], of_texts["header"], options.reading_arguments(of_texts)
    reading["progress"] = progress
    classifier = Classifier.load(model)
    if retrain:
        given |= {"texts": options.corpus_of([str(retrain)], header), "labels": labels, **reading}
    small = (prune if is_native else quantize_classifier)(classifier, **given)
    small.save(output, force=force)
    found = {"output": str(output), "bytes_before": model.stat().st_size, "bytes": output.stat().st_size}
    found |= {"rows_before": classifier.features.rows, "rows": small.features.rows}
    if labelled:
        texts = options.corpus_of([str(labelled)], header)
        before, after = (score_file(each, texts, labels=labels, **reading) for each in (classifier, small))
        found |= {"accuracy_before": before.accuracy, "accuracy": after.accuracy}
    return found, print_values
