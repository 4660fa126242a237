"""Commands that evaluate models: `evaluate`, `compare`, `perplexity` and `rank`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from w2v._cli import options, outputs
from w2v._cli.console import say
from w2v._cli.options import FILE, refuse_together
from w2v._cli.printing import (
    Result,
    label_values,
    print_comparison,
    print_label_scores,
    print_losses,
    print_perplexity,
    print_rank,
)
from w2v._errors import SettingsError
from w2v._evaluation.compare import compare as compare_models
from w2v._evaluation.evaluate import evaluate as evaluate_models
from w2v._evaluation.labels import evaluate_labels
from w2v._evaluation.link_prediction import link_prediction
from w2v._evaluation.next_items import next_items
from w2v._evaluation.probe import probe
from w2v._evaluation.scores import Evaluation
from w2v._graph.readers import GraphOptions
from w2v._losses.registry import Settings
from w2v._options import options_of
from w2v._progress import Report
from w2v._system.files import Errors
from w2v._text.corpus import Corpus
from w2v._text.idstore import ReadingOptions
from w2v._text.labels import LabelOptions
from w2v._training.classifier import Classifier
from w2v._training.classifier import load as load_any
from w2v._training.compare_losses import WORD_LOSSES
from w2v._training.compare_losses import compare_losses as train_and_compare
from w2v._training.effective_rank import effective_rank
from w2v._training.labelled import read_labelled, score_file
from w2v._training.model import Model, View
from w2v._training.perplexity import perplexity as measure_perplexity
from w2v._vectors.keyed import load
from w2v._vectors.recommend import LAST

# The options of `evaluate` for other measures than --sessions and --edges.
OTHER_MEASURES = (
    "questions",
    "pairs",
    "test",
    "held_out",
    "labelled",
    "labels",
    "k",
    "threshold",
    "restrict_vocab",
    "method",
)
NOT_COMPARED = ("loss", "objective", "kernel", "stop_early", "smoothing", options.ONLY_TRAIN)  # by compare-losses
VIEW = click.option(
    "--view", type=click.Choice(["words", "subwords"]), help="The view to measure, if MODEL has two.  [default: words]"
)


def _load_view(path: Path, view: str | None) -> View:
    """Load a view of a model: the only one, or the chosen one, by default the view of words.

    Raises:
        SettingsError: If a model with one view is given with a choice.
    """
    views = Model.load(path).views
    if len(views) > 1 and view is None:
        say(f"{path} has two views; this is the view of words, and --view subwords measures the other")
    if len(views) == 1 and view is not None:
        raise SettingsError(f"--view {view}: {path} has one view only: leave it out")
    return views[view or "words"]


@click.command(cls=options.ResultCommand)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=FILE)
@options.file_option("--questions", multiple=True, help="Also answer these analogy questions. May be repeated.")
@options.file_option("--pairs", multiple=True, help="Also use these scored word pairs. May be repeated.")
@options.file_option(
    "--test", multiple=True, help="Also use this test set of words, a file or a folder. May be repeated."
)
@options.file_option("--held-out", help="Also use this text, which no model was trained on.")
@options.LABELLED
@options.number_option("-k", default=1, help="With --labelled: predict up to N labels of each text.")
@options.THRESHOLD
@options.file_option("--sessions", help="Score recommendations for these sessions, which no MODEL was trained on.")
@options.file_option("--edges", help="Score link prediction on these edges, which no MODEL was trained on.")
@options.file_option(
    "--trained-on",
    help="With --sessions or --edges: also score simple methods on the sessions or the graph of the training.",
)
@options.option_for(GraphOptions, "bipartite", help="With --edges: --trained-on has two kinds of nodes.")
@options.number_option("--topn", default=20, help="With --sessions: the number of recommended items.")
@options.number_option("--last", default=LAST, help="With --sessions: use only the last N items of a session.")
@options.RESTRICT_VOCAB
@options.METHOD
@options.number_option("--seed", default=1, help="Seed of the bootstrap, and of the folds with --labelled.")
@options.READING
@options.REPORTING
def evaluate(
    models: tuple[Path, ...],
    progress: Report,
    held_out: Path | None,
    labelled: Path | None,
    sessions: Path | None,
    edges: Path | None,
    trained_on: Path | None,
    bipartite: bool | None,
    topn: int,
    last: int,
    labels: str | None,
    k: int,
    threshold: float | None,
    **given: Any,
) -> Result:
    """Evaluate one or more MODELs, with confidence intervals and significance tests.

    Models are scored on the bundled questions and word pairs, and on your own from --questions and --pairs. Two more
    measures look at nearest words. "related neighbours" is the share of pairs, among the highest-scored third of the
    word pairs, where each word is one of the 10 nearest words of the other. "rare neighbours" is the share of rare
    words (fewer than 20 occurrences) among the 10 nearest words of the 500 most frequent words. Intervals are 95 %
    bootstrap intervals from 2,000 samples. Every other model is compared with the first one, over the items that both
    models score.

    A model of a special field may lack the words of the bundled sets. --held-out needs only a text. Its score, "gaps",
    is how often the words around a gap in the text are nearer to the word in the gap than to another word of the text.
    Chance is 0.5. Frequent words are subsampled, words that a model lacks are left out for all models, and only the
    last 500,000 words of a long text are used. The text is read with the options of the first model's training, unless
    you give others.

    --test takes test sets of words, which are recognised by their content. For a word and its category in each line,
    the score is the purity of clusters of words. For a group of words, an empty line, and outliers, it is the share of
    outliers that are the least similar of the group, and their mean place. A folder of files with a word, a tab and its
    answers, divided by /, in each line (BATS) has analogies, answered by 3CosAdd, 3CosAvg and LRCos. For a JSON object
    of four lists of words, two of targets and two of attributes (WEAT), the scores are the effect size and its p-value.

    With --labelled, the MODELs are classifiers, and the scores are the accuracy of the best label, precision, recall
    and F1 of all predicted labels and of each label (macro F1 is the mean of the labels), how far probabilities are
    from the share of right predictions (calibration error), and the labels that are confused most often. Intervals of
    the accuracy are 95 % intervals (Wilson), and other models are compared with the first by McNemar's test. If the
    MODELs have vectors of words or nodes, a logistic regression learns the labels from the vectors of the texts or of
    the nodes, and predicts them in 5-fold cross-validation. The vectors of the texts are those of w2v encode: SIF if
    the MODEL has counts of its words, otherwise the mean. The scores are the micro and the macro F1, next to the scores
    of a guess: the most frequent label.

    With --sessions, the MODELs have vectors of items, and the scores say how high the last item of each session is
    ranked among the recommendations for the items before it. With --edges, they have vectors of nodes, and the scores
    say how often an edge has a higher cosine than a pair without an edge, whose second node is drawn by its degree.
    --trained-on adds columns for simple methods, which every model should beat. Without them, such scores say little.

    \b
    w2v evaluate model.bin
    w2v evaluate items.safetensors --sessions later.csv --item product --session visit --trained-on earlier.csv
    w2v evaluate nodes.bin --edges held-out.tsv --trained-on graph.tsv
    w2v evaluate classifier.safetensors --labelled test.txt
    w2v evaluate old.safetensors new.safetensors --labelled test.csv --column text --labels topic
    w2v evaluate model.safetensors --held-out later-texts.txt
    w2v evaluate old.safetensors new.safetensors --questions questions-words.txt --pairs wordsim.txt --pairs men.txt
    """
    reading = options.given_options(ReadingOptions, given)
    if sessions or edges:
        option, scored = ("--edges", edges) if edges else ("--sessions", sessions)
        if trained_on and scored and trained_on.resolve() == scored.resolve():
            raise SettingsError(f"{trained_on}: {option} and --trained-on must be different files")
        of_both = {"trained_on": trained_on, "seed": given["seed"], "progress": progress}
        if not edges:
            refuse_together("--sessions", (*OTHER_MEASURES, "bipartite"))
            of_items = {"sessions": sessions, "topn": topn, "last": last} | of_both | reading
            return _evaluate_with_baselines(models, next_items, of_items)
        refuse_together("--edges", (*OTHER_MEASURES, "sessions", "topn", "last", *options_of(ReadingOptions)))
        of_both |= {"bipartite": bipartite} if bipartite else {}
        return _evaluate_with_baselines(models, link_prediction, {"edges": edges} | of_both)
    options.refuse_without("--sessions or --edges", ["trained_on"])
    options.refuse_without("--edges", ["bipartite"])
    options.refuse_without("--sessions", ["topn", "last"])
    if labelled:
        without_effect = ("questions", "pairs", "test", "held_out", "restrict_vocab", "method")
        used = ("column", "header", "encoding", "errors")
        refuse_together(
            "--labelled", (*without_effect, *(name for name in options_of(ReadingOptions) if name not in used))
        )
        texts = options.corpus_of([str(labelled)], reading.pop("header", None))
        chosen = {"labels": labels, "k": k, "threshold": threshold} | reading
        return _evaluate_labels(models, texts, chosen, given["seed"], progress)
    options.refuse_without("--labelled", ("labels", "k", "threshold"))
    arguments = {name: value for name, value in given.items() if name not in options_of(ReadingOptions)}
    errors = reading.get("errors", ReadingOptions.errors)
    if held_out:
        arguments |= {"held_out": held_out} | reading
    elif unused := [name for name in reading if name != "errors"]:
        raise click.UsageError(f"{options.first_name(unused[0], ReadingOptions)} has no effect without --held-out")
    vectors = [load(model, errors=errors, progress=progress) for model in models]
    for model, loaded in zip(models, vectors, strict=True):
        if loaded.header.labels:
            say(f"{model} is a classifier: these are scores of its word vectors, and --labelled FILE scores its labels")
    return _show(models, evaluate_models(*vectors, **arguments, progress=progress))


def _show(models: tuple[Path, ...], evaluation: Evaluation) -> Result:
    """Return the scores of these files and the function that prints them."""
    evaluation.models = [*map(str, models)]
    return evaluation.to_dict(), lambda _: click.echo(str(evaluation))


def _evaluate_with_baselines(
    models: tuple[Path, ...], score: Callable[..., Evaluation], given: dict[str, Any]
) -> Result:
    """Score models of items or nodes, and simple methods next to them."""
    if not given["trained_on"]:
        say("without --trained-on, no simple methods are scored, and such scores alone say little")
    return _show(models, score(*(load(model, progress=given["progress"]) for model in models), **given))


def _evaluate_labels(
    models: tuple[Path, ...], texts: Corpus, given: dict[str, Any], seed: int, progress: Report
) -> Result:
    """Score classifiers, or a probe of word vectors, on the same texts, and compare the others with the first."""
    loaded: list[Any] = [load_any(model, progress=progress) for model in models]
    are_classifiers = [isinstance(each, Classifier) for each in loaded]
    if not any(are_classifiers):
        refuse_together("--labelled and word vectors", ("k", "threshold"))
        reading = {name: value for name, value in given.items() if name not in ("labels", "k", "threshold")}
        found = read_labelled(
            texts, LabelOptions(labels=given["labels"]), ReadingOptions(header=texts.header, **reading)
        )
        return _show(models, probe(*loaded, texts=found[0], labels=found[1], seed=seed))
    if not all(are_classifiers):
        raise SettingsError(f"{models[are_classifiers.index(False)]} is not a classifier: evaluate it alone")
    refuse_together("--labelled and classifiers", ["seed"])
    results = [score_file(each, texts, **given, progress=progress) for each in loaded]
    evaluation = evaluate_labels([*map(str, models)], results)
    values = evaluation.to_dict() | {"classifiers": [*map(label_values, results)]}
    return values, lambda _: print_label_scores(evaluation, results)


@click.command(cls=options.ResultCommand)
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
@options.number_option("--restrict-vocab", default=10_000, help="Compare the N most frequent words.")
@options.ERRORS
@options.REPORTING
def compare(first: Path, second: Path, restrict_vocab: int, errors: Errors, progress: Report) -> Result:
    """Show how two models of one text differ, such as a model and its compressed copy.

    First comes the share of a word's 10 nearest neighbours that are the same in both models, by the frequency rank of
    the word in FIRST. Then come the scores of w2v evaluate. Only words in both models count as neighbours. The
    --restrict-vocab most frequent words are compared, and a sample of 1,000 others.

    w2v change shows which words differ between models of two texts.

    \b
    w2v compare old.safetensors new.safetensors
    w2v compare old.bin new.bin --restrict-vocab 2000 --json
    """
    models = [load(path, errors=errors, progress=progress) for path in (first, second)]
    result = compare_models(*models, restrict_vocab=restrict_vocab, progress=progress)
    names = [str(first), str(second)]
    return {"models": names} | asdict(result), lambda _: print_comparison(names, result)


@click.command(cls=options.ResultCommand)
@options.MODEL
@options.CORPUS
@VIEW
@options.OBJECTIVE
@options.READING
@options.REPORTING
def perplexity(model: Path, corpus: tuple[str, ...], view: str | None, progress: Report, **given: Any) -> Result:
    """Measure how well MODEL predicts the words of a new CORPUS.

    MODEL is a .safetensors file written by w2v train, and was not trained on CORPUS. The text is normalised and
    tokenized as in the training, unless you give other options.

    Skip-gram predicts a word from each other word in its window, CBOW from the mean of these words. The first line,
    `perplexity`, is the one to report. It corrects for the subsampling in training, so that you can compare it with
    `unigram perplexity`, which uses only the word frequencies in the training text, and with other models of the same
    vocabulary. Words outside the vocabulary are skipped, so a model with fewer words has an easier task and a lower
    perplexity. `perplexity as trained` has no such correction. It is too high, because the model underestimates
    frequent words, which training subsamples.

    The losses hs and class are fast: they compute only the path (hs) or the class (class) of each predicted word and of
    each word that subsampling leaves out. The other losses normalise over the whole vocabulary, in blocks of about
    100 MB: once per distinct word of the text in skip-gram, once per word in CBOW. With 100,000 words of 300
    dimensions, each normalisation takes 30 million multiply-adds.

    \b
    w2v perplexity model.safetensors held-out.txt
    w2v perplexity model.safetensors news/ 'wiki/*.gz' --json
    """
    files, reading = [*map(Path, options.corpus_of(corpus).files)], options.given_options(ReadingOptions, given)
    return measure_perplexity(_load_view(model, view), files, **reading, progress=progress), print_perplexity


@click.command(cls=options.TrainingCommand)
@options.CORPUS
@click.option(
    "--losses",
    metavar="NAME,NAME,…",
    default=WORD_LOSSES,
    show_default=True,
    help="The losses to compare, divided by commas.",
)
@options.file_option("--questions", help="Answer these analogy questions.  [default: the bundled ones]")
@options.options_for(Settings, *(name for name in options_of(Settings) if name not in NOT_COMPARED))
@options.READING
@options.REPORTING
def compare_losses(
    corpus: tuple[str, ...], losses: str, questions: Path | None, progress: Report, **given: Any
) -> Result:
    """Train each loss on a CORPUS at equal settings, and compare them.

    The end of the text is held out: 5 %, and at most 500,000 words. All models have the same words and settings, 5
    epochs and the input rows as word vectors, unless you give others; each loss has its own best --alpha. The scores
    are the seconds of the training, the perplexity of the held-out text (see w2v perplexity), how often the words
    around a gap in it are nearer to the word in the gap than to another word (chance is 0.5), and the accuracy on
    analogy questions. Progress shows the remaining time of each loss.

    softmax, dsoftmax and mos compute the scores of all words at each step: with a large vocabulary, they take hours.
    Choose --max-vocab 2000 for a first impression. dsoftmax, mos and charcnn need Numba, which compiles them first.

    \b
    w2v compare-losses corpus.txt --losses ns,hs,nce --vector-size 50
    w2v compare-losses corpus.txt --max-vocab 3000 --questions questions-words.txt --json
    """
    chosen = options.given_settings(given)
    names = losses.split(",")
    options.check_effect(Settings(**chosen, loss=names[0]), chosen, {"loss": names})
    reading = options.given_options(ReadingOptions, given)
    files = [*map(Path, options.corpus_of(corpus).files)]
    result = train_and_compare(files, losses=losses, questions=questions, progress=progress, **chosen, **reading)
    return result, print_losses


@click.command(cls=options.ResultCommand)
@options.MODEL
@options.number_option("--contexts", help="Number of rows: the N most frequent words as contexts.  [default: 2,000]")
@options.number_option(
    "--targets", help="Number of columns: the N most frequent words as predicted words.  [default: 2,000]"
)
@options.file_option("-o", "--output", help="Plot the singular values to this file: .png, .svg or .pdf.")
@VIEW
@options.OBJECTIVE
@options.WRITING
def rank(
    model: Path, output: Path | None, view: str | None, force: bool, progress: Report, **size: int | None
) -> Result:
    """Show the rank and the singular values of MODEL's predictions.

    MODEL is a .safetensors file written by w2v train. Its predictions are the matrix log p(word | context). With a
    single softmax, the rank is at most the vector size plus one (plus two for the loss ns), for any number of words. A
    mixture of softmaxes has no such limit.

    \b
    w2v rank model.safetensors
    w2v rank model.safetensors --contexts 5000 --targets 5000 -o rank.png --json
    """
    if output:
        outputs.check(output, force, models=[model])
        outputs.check_picture_format(output)
    result = effective_rank(_load_view(model, view), **size, progress=progress)
    if output:
        from w2v._plotting.curves import spectrum

        outputs.save([(output, outputs.saver(spectrum(result, model.name)))], force)
    return result, print_rank
