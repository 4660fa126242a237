"""Print the results of commands on standard output: as one JSON object, or as text and tables."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click
import msgspec
import numpy as np

from w2v._cli.console import say
from w2v._display import format_value, text_table
from w2v._errors import malformed_lines, pluralise, printable
from w2v._evaluation.labels import wilson_interval
from w2v._evaluation.scores import GAPS, OTHER_TEST_SETS, Evaluation

if TYPE_CHECKING:
    from w2v._evaluation.analogies import AnalogyResult
    from w2v._evaluation.change import Change, WordChange
    from w2v._evaluation.compare import Comparison
    from w2v._evaluation.labels import LabelScores
    from w2v._evaluation.similarity import PairsResult
    from w2v._losses.code_lengths import CodeLengths
    from w2v._training.classifier import Explanation
    from w2v._training.compare_periods import ChangedWord, PeriodComparison
    from w2v._training.effective_rank import EffectiveRank
    from w2v._training.perplexity import Perplexity
    from w2v._training.search import Search, Trial
    from w2v._training.slices import Slices
    from w2v._vectors.align import Fit
    from w2v._vectors.query import Method

# The result of a command: a dictionary or dataclass, or a pair of it and a function that prints it as text.
Result = Any
SHOWN_LABELS, SHOWN_CONFUSIONS, SHOWN_PARTS = 20, 10, 10  # rows of the tables about labels
BRIEF = ("model", "loss", "window", "epochs")  # settings in the short summary of a run, if they are not None
ANALOGY_FORMULA: dict[Method, str] = {
    "add": "3CosAdd: cos(x, b) - cos(x, a) + cos(x, c)",
    "mul": "3CosMul: cos(x, b) * cos(x, c) / cos(x, a), cosines shifted to 0..1",
}


def print_json(result: object) -> None:
    """Print a dictionary or dataclass as one JSON object on one line. Infinity and NaN become null."""
    values = msgspec.to_builtins(result, enc_hook=lambda value: value.tolist())  # the hook is for NumPy's types
    finite = json.loads(json.dumps(values), parse_constant=lambda _: None)
    # json escapes all characters that could control a terminal, and paths that are not UTF-8.
    click.echo(json.dumps(finite))


def print_result(
    result: Any, as_json: bool, quiet: bool = False, print_text: Callable[[Any], None] | None = None
) -> None:
    """Print the result of a command, a dictionary or dataclass: as JSON or, unless `quiet`, as text.

    By default, the text is one name and value per line.
    """
    if as_json:
        print_json(result)
    elif not quiet:
        (print_text or print_values)(result)


def print_line(text: str) -> None:
    """Print one line of text."""
    click.echo(printable(text))


def print_table(rows: Sequence[Sequence[object]], header: Sequence[str] = ()) -> None:
    """Print rows in aligned columns. With a header, all columns except the first are right-aligned."""
    if text := text_table(rows, header):
        click.echo(text)


def print_training(metrics: Mapping[str, Any]) -> None:
    """Print the summary of a training run."""
    noun, values = metrics["noun"], pluralise(metrics["vector_size"], "value")
    speed = f"{metrics['words_per_second'] / 1e6:.2f} M {noun}s/s"
    vocabulary, memory = pluralise(metrics["vocabulary_size"], noun), f"{metrics['peak_memory_bytes'] / 1e6:,.0f} MB"
    settings, seconds = metrics["settings"], metrics["seconds"]
    views = metrics.get("views", {"": metrics}).values()
    loss = " and ".join(map(_last_loss, views))
    rows = [
        ("output", f"{metrics['output']}: {vocabulary}, {values} each, in {seconds['total']:.1f} s with {memory}"),
        ("trained", f"{metrics['tokens_trained']:,} {noun}s at {speed}, loss {loss} in the last epoch"),
        ("settings", f"{format_value({name: settings[name] for name in BRIEF if name in settings})}; all: --verbose"),
    ]
    if metrics["pruned"]:
        rows.append(("pruned", f"{pluralise(metrics['pruned'], f'rare {noun}')} dropped, because of --max-types"))
    print_table(rows)


def _last_loss(metrics: Mapping[str, Any]) -> str:
    """Return the loss of the last epoch that was trained."""
    return format_value(next((loss for loss in reversed(metrics["loss"]) if loss is not None), None))


def print_classifier(metrics: Mapping[str, Any]) -> None:
    """Print the summary of the training of a classifier."""
    sizes = ", ".join(pluralise(metrics[f"{noun}s"], noun) for noun in ("label", "word", "ngram"))
    settings, options, seconds = metrics["settings"], metrics["options"], metrics["seconds"]
    temperature = f", temperature {metrics['temperature']:.3g}" if metrics["temperature"] != 1 else ""
    brief = {"model": options["classifier"], "pooling": options["pooling"], "word_ngrams": options["word_ngrams"]}
    brief |= {name: settings[name] for name in ("subwords", "loss", "alpha", "epochs") if name in settings}
    print_table(
        [
            ("output", f"{metrics['output']}: {sizes.replace('ngram', 'n-gram')}; {metrics['bytes'] / 1e6:,.2f} MB"),
            (
                "trained",
                f"{pluralise(metrics['texts'], 'text')} in {seconds['total']:.1f} s with "
                f"{metrics['peak_memory_bytes'] / 1e6:,.0f} MB, loss {_last_loss(metrics)} in the last "
                f"epoch{temperature}",
            ),
            ("settings", f"{format_value(brief)}; all: --verbose"),
        ]
    )


def label_values(scores: LabelScores) -> dict[str, Any]:
    """Return the scores of a classifier for --json: without the result of each text."""
    return {each.name: getattr(scores, each.name) for each in fields(scores) if each.name != "correct"}


def print_label_scores(evaluation: Evaluation, results: Sequence[LabelScores]) -> None:
    """Print the scores of classifiers: in total, of each label, and the labels that they confuse."""
    click.echo(str(evaluation))
    for name, one in zip(evaluation.models, results, strict=True):
        if one.unknown_labels:
            print_line(f"{name} lacks {pluralise(one.unknown_labels, 'label')} of the texts, which it cannot predict")
        if one.without_words:
            print_line(f"{name} knows no word of {pluralise(one.without_words, 'text')}")
        if len(results) > 1:
            print_line(f"labels of {name}:")
        _print_labels(one)


def _print_labels(scores: LabelScores) -> None:
    """Print the scores of the most frequent labels, and the pairs that are confused most often."""
    by_texts = sorted(scores.labels, key=lambda label: -label.texts)
    rows = [
        (each.label, percent(each.precision), percent(each.recall), percent(each.f1), each.texts, each.predicted)
        for each in by_texts[:SHOWN_LABELS]
    ]
    print_table(rows, ("label", "precision", "recall", "F1", "texts", "predicted"))
    if len(by_texts) > SHOWN_LABELS:
        print_line(f"and {len(by_texts) - SHOWN_LABELS:,} labels more: --json has all")
    if scores.confusion is None:
        return
    wrong = scores.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:SHOWN_CONFUSIONS]
    pairs = [
        (scores.labels[row], scores.labels[column], wrong[row, column])
        for row, column in zip(*np.unravel_index(order, wrong.shape), strict=True)
    ]
    confused = [(true.label, best.label, number, share(number, true.texts)) for true, best, number in pairs if number]
    if confused:
        print_table(confused, ("most confused", "taken for", "texts", "of its texts"))


def print_explanation(explanation: Explanation) -> None:
    """Print the label of a text, and the words and n-grams that add most to its score."""
    click.echo(f"{printable(explanation.label)}\t{explanation.probability:.6g}")
    total = sum(abs(part) for _, part in explanation.parts) or 1.0
    rows = [(f"  {name}", f"{part:+.4f}", f"{part / total:+.1%}") for name, part in explanation.parts[:SHOWN_PARTS]]
    print_table(rows)
    if len(explanation.parts) > SHOWN_PARTS:
        print_line(f"  and {len(explanation.parts) - SHOWN_PARTS:,} more: --json has all")


def print_trial(latest: Trial, search: Search) -> None:
    """Print one line about a trial of tuning on standard error, where progress is shown."""
    numbers = (latest.score, search.score)
    score, best = ("-" if each is None or not math.isfinite(each) else f"{100 * each:.2f}" for each in numbers)
    changed = search.changed(latest.choices)
    settings = " ".join(f"{name}={format_value(value)}" for name, value in changed.items()) or "the defaults"
    details = f"{search.details(latest)}, {latest.seconds:.1f} s"
    say(f"trial {len(search.trials)}: score {score}, best {best}, with {settings}; {details}")


def print_analogies(result: AnalogyResult) -> None:
    """Print the accuracy by section and in total, the coverage, the number of words searched, and the formula."""
    rows: list[tuple[object, ...]] = [
        (part.name, share(part.correct, part.answered), part.correct, part.answered, part.total)
        for part in result.sections
    ]
    rows += [(name, percent(getattr(result, name))) for name in ("semantic", "syntactic")]
    correct = sum(part.correct for part in result.sections)
    rows.append(("all", percent(result.accuracy), correct, result.answered, result.questions))
    print_table(rows, ("section", "accuracy", "correct", "answered", "questions"))
    if not result.answered:
        print_line(f"no question has only words of the model: {OTHER_TEST_SETS}")
        return
    others = f"the others contain words outside the {result.restrict_vocab:,} most frequent; "
    print_line(
        f"answered {share(result.answered, result.questions)} of the questions; "
        f"{others if result.answered < result.questions else ''}{ANALOGY_FORMULA[result.method]}"
    )
    _print_malformed(result.malformed, result.first_malformed)


def print_word_pairs(result: PairsResult, verbose: bool) -> None:
    """Print correlations and coverage, and the unknown words if `verbose`, otherwise only their number."""
    correlations = {"Spearman": result.spearman, "Pearson": result.pearson}
    print_table([(name, "-" if value is None else f"{value:.4f}") for name, value in correlations.items()])
    print_line(f"found {result.found:,} of {result.pairs:,} pairs ({share(result.found, result.pairs)})")
    if result.known < result.found:
        known = "-" if result.known_spearman is None else f"{result.known_spearman:.4f}"
        print_line(f"only the {result.known:,} pairs of words in the vocabulary: Spearman {known}")
    if not result.found:
        print_line(f"no pair has both words in the model: {OTHER_TEST_SETS}")
    if result.unknown:
        unknown = (
            ", ".join(result.unknown) if verbose else f"{pluralise(len(result.unknown), 'word')} (--verbose: which)"
        )
        print_line(f"not in the vocabulary: {unknown}")
    _print_malformed(result.malformed, result.first_malformed)


def print_comparison(names: Sequence[str], result: Comparison) -> None:
    """Print the numbers of words, the overlap by frequency, and the scores."""
    only = f"{result.only_first:,} only in {names[0]}, {result.only_second:,} only in {names[1]}"
    print_line(f"{pluralise(result.shared, 'word')} in both models, {only}")
    rows = [(f"{band.first:,}-{band.last:,}", f"{band.words:,}", percent(band.overlap)) for band in result.bands]
    print_table(rows, ("frequency rank", "words compared", "same among the 10 nearest"))
    click.echo(str(Evaluation(result.results, names)))


def print_conversion(values: Mapping[str, Any], names: Sequence[str] = (), compared: Comparison | None = None) -> None:
    """Print facts about a converted file, the parts that it lacks, and its comparison with the original model."""
    print_values({**values, "lost": ", ".join(values["lost"]) or None})
    if compared:
        print_comparison(names, compared)


def print_fits(names: Sequence[str], references: Sequence[str], fits: Sequence[Fit], with_dictionary: bool) -> None:
    """Print how well each model fits its reference, and the precision of translations with a dictionary."""
    rows = [
        (f"{name} to {reference}", f"{fit.anchors:,}", f"{fit.cosine:.3f}", f"{fit.held_out:,}", _cosine(fit))
        for name, reference, fit in zip(names, references, fits, strict=True)
    ]
    print_table(rows, ("model", "anchors", "mean cosine", "held out", "their mean cosine"))
    for fit in fits:
        if fit.pairs:
            print_line(f"{fit.anchors:,} of the {pluralise(fit.pairs, 'pair')} have both words in the models")
        if found := fit.translation:
            precisions = [
                (name, *(_with_interval(share, found.words) for share in shares))
                for name, shares in (("nearest", found.nearest), ("CSLS", found.csls))
            ]
            print_table(precisions, ("search", "precision@1 (95 %)", "precision@5 (95 %)"))
            print_line(
                f"translations of {pluralise(found.words, 'held-out word')}, searched in {found.candidates:,} words"
            )
        elif with_dictionary and not fit.held_out:
            print_line("too few pairs to hold some out and translate them: give at least 10")
        elif with_dictionary:
            print_line("no held-out word has a translation among the most frequent words: raise --restrict-vocab")


def _with_interval(share: float, trials: int) -> str:
    """Return a share and its 95 % confidence interval as percentages."""
    low, high = wilson_interval(round(share * trials), trials)
    return f"{percent(share)} ({percent(low)} to {percent(high)})"


def _cosine(fit: Fit) -> str:
    return "-" if fit.held_out_cosine is None else f"{fit.held_out_cosine:.3f}"


def print_change(names: Sequence[str], result: Change, side_by_side: bool) -> None:
    """Print the distances of words with z and p, and their nearest words in both models.

    Args:
        names: The names of the models.
        result: The result.
        side_by_side: Whether the nearest words are in two columns with cosines, instead of two lines.
    """
    print_line(f"{pluralise(result.compared, 'word')} of both models compared")
    if result.fit:
        print_line(
            f"aligned by {pluralise(result.fit.anchors, 'word')}: mean cosine {result.fit.cosine:.3f}, "
            f"{_cosine(result.fit)} of held-out words"
        )
    rows = []
    for word in result.words:
        distances = [(f"{each.value:.3f}", f"{each.z:.1f}") for each in (word.cosine, word.neighbourhood)]
        rows.append((word.word, *(word.counts or ("-", "-")), *distances[0], *distances[1]))
    print_table(rows, ("word", "count", "count", "cosine", "z", "neighbourhood", "z"))
    _print_nearest(names, result.words, side_by_side)
    print_line("z compares with all words of similar frequency in these models")


def _print_nearest(names: Sequence[str], words: Sequence[WordChange | ChangedWord], side_by_side: bool) -> None:
    """Print the nearest words of each word in two models or periods; see print_change."""
    for word in words:
        print_line(f"nearest to {word.word}")
        if side_by_side:
            sides = [[f"{other} {cosine:.3f}" for other, cosine in near] for near in (word.first, word.second)]
            print_table([(f"  {names[0]}", names[1]), *(("  " + a, b) for a, b in zip_longest(*sides, fillvalue=""))])
        else:
            lines = [" ".join(str(other) for other, _ in near) for near in (word.first, word.second)]
            print_table([(f"  {name}", line) for name, line in zip(names, lines, strict=True)])


def print_periods(names: Sequence[str], result: PeriodComparison, side_by_side: bool) -> None:
    """Print the distances of words in two periods with p, what the number of documents allows, and nearest words.

    The arguments are those of print_change.
    """
    one, two = result.documents
    print_line(f"{one:,} and {pluralise(two, 'document')}; {pluralise(result.compared, 'word')} of both compared")
    rows = [
        (
            word.word,
            *(*word.counts, *word.documents),
            *(f"{word.cosine:.3f}", f"{word.by_chance:.3f}"),
            *(f"{word.z:.1f}", f"{word.p:.2g}", f"{word.adjusted_p:.2g}"),
        )
        for word in result.words
    ]
    columns = ("word", "count", "count", "documents", "documents", "cosine", "by chance", "z", "p", "adjusted p")
    print_table(rows, columns)
    _print_nearest(names, result.words, side_by_side)
    print_line(f"{pluralise(result.significant, 'word')} changed: adjusted p (Benjamini-Hochberg) of at most 0.05")
    condition = f", if at least {result.least:,} change as clearly as possible" if result.possible else ""
    print_line(f"{pluralise(result.possible, 'word')} could count as changed with so many documents{condition}")


def print_perplexity(result: Perplexity) -> None:
    """Print the perplexity of the model and of the unigram model, and the numbers of words and predictions."""
    print_table(
        [
            ("perplexity", f"{result.perplexity:,.2f}, {result.cross_entropy_bits:.4f} bits a prediction"),
            ("unigram perplexity", f"{result.unigram_perplexity:,.2f}, from word frequencies only"),
            ("perplexity as trained", f"{result.perplexity_as_trained:,.2f}, with subsampling"),
            ("predicted", f"{pluralise(result.tokens, 'word')} in {pluralise(result.predictions, 'prediction')}"),
            ("skipped", f"{pluralise(result.skipped, 'word')} not in the vocabulary"),
        ]
    )
    guess = "a guess among all words" if result.perplexity > result.vocabulary_size else "word frequencies only"
    if result.perplexity > min(result.vocabulary_size, result.unigram_perplexity):
        print_line(
            f"worse than {guess}: the model is too sure of its predictions. It has learnt too long from too little "
            "text, or this text is of another kind. Its vectors may still be good: w2v evaluate --held-out tests them"
        )
    if skipped := result.skipped:
        print_line(
            "perplexities are comparable only between models of the same vocabulary: "
            f"{share(skipped, result.tokens + skipped)} of the words are skipped, and a model with more words has to "
            "predict some of them"
        )


def print_losses(result: Mapping[str, Any]) -> None:
    """Print a row for each loss, and the perplexities to compare with."""
    formats = {"loss": "", "alpha": "g", "seconds": ",.1f", "perplexity": ",.1f", "gaps": ".3f"}
    rows = [
        (*(format(one[name], form) for name, form in formats.items()), percent(one["accuracy"]))
        for one in result["losses"]
    ]
    print_table(rows, (*formats, "analogies"))
    print_line(
        f"perplexity of word frequencies only: {result['unigram_perplexity']:,.1f}; of a guess among all words: "
        f"{result['vocabulary_size']:,}; {pluralise(result['epochs'], 'epoch')} each"
    )
    if worse := [one["loss"] for one in result["losses"] if one["perplexity"] > result["vocabulary_size"]]:
        print_line(f"worse than a guess: {', '.join(worse)}, which learnt too long from too little text")
    print_line(f"gaps: {GAPS}")


def print_rank(result: EffectiveRank) -> None:
    """Print the rank and selected singular values, including the values next to the rank and to its limit."""
    values, limit = result.singular_values, result.max_rank
    numbers = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, result.rank, result.rank + 1}
    if limit is not None:
        numbers |= {limit, limit + 1}
    rows = [(str(number), f"{values[number - 1]:.4g}") for number in sorted(numbers) if number <= len(values)]
    print_table(
        [
            ("rank", f"{result.rank:,} of {len(values):,}"),
            ("highest rank with this loss", "none" if limit is None else f"{limit:,}"),
            ("matrix", f"{pluralise(result.contexts, 'context')}, {pluralise(result.words, 'word')}"),
        ]
    )
    print_table(rows, ("singular value", ""))


def print_code_lengths(result: CodeLengths) -> None:
    """Print the expected code lengths and speed-ups of the trees, then the codes of the requested words."""
    print_line(f"{result.vocabulary_size:,} words, {result.tokens:,} tokens, entropy {result.entropy_bits:.3f} bits")
    rows = [
        (tree.name, f"{tree.expected_bits:.3f}", tree.longest_bits, f"{tree.speed_up:,.1f} ×") for tree in result.trees
    ]
    print_table(rows, ("tree", "expected bits", "longest code", "fewer rows than softmax"))
    print_line(f"the Huffman tree uses {result.huffman_speed_up:.2f} × fewer rows than the balanced tree")
    names = [tree.name for tree in result.trees]
    for word in result.words:
        print_line(f"{word.word}: {pluralise(word.count, 'time')}, {word.information_bits:.3f} bits")
        print_table([(name, len(word.codes[name]), word.codes[name]) for name in names])


def _print_malformed(number: int, first: int | None) -> None:
    if number:
        print_line(f"skipped {malformed_lines(number, first)}")


def print_neighbours(
    formula: str, neighbours: Sequence[Mapping[str, Any]], vectors: Mapping[str, Sequence[float]]
) -> None:
    """Print the formula of the scores, the neighbours with scores and known counts, and the requested vectors."""
    print_line(formula)
    print_table(
        [
            (one["word"], f"{one['score']:.4f}", *([pluralise(one["count"], "time")] if "count" in one else []))
            for one in neighbours
        ]
    )
    for word, values in vectors.items():
        print_line(f"{word}: {' '.join(f'{value:.6g}' for value in values)}")


def print_slices(result: Slices) -> None:
    """Print the file of each model, and how many words it has and lacks."""
    rows = [(result.compass, f"{result.words:,}", "")]
    for name, each in result.slices.items():
        shown = f"tagged words of {name}" if each.path == result.compass else each.path
        rows.append((shown, f"{each.words:,}", f"{each.missing:,}"))
    print_table(rows, ("model", "words", "missing words"))


def print_recommendations(result: Mapping[str, Any]) -> None:
    """Print the recommended items of each session, if the result has them, and then the other values.

    Sessions without names are numbered from 1.
    """
    values = dict(result)
    names = values.pop("session_names", None) or itertools.count(1)
    for name, items in zip(names, values.pop("recommendations", []), strict=False):
        rows = [(str(name) if not place else "", one["item"], f"{one['score']:.4f}") for place, one in enumerate(items)]
        print_table(rows or [(str(name), "no known item", "")])
    print_values(values)


def print_values(values: Mapping[str, Any]) -> None:
    """Print one name and value per line, without empty values.

    A dictionary takes one line, too, but a dictionary of dictionaries, such as the views of a model, one for each.
    """
    rows: dict[str, Any] = {}
    for name, value in values.items():
        is_nested = isinstance(value, Mapping) and all(isinstance(part, Mapping) for part in value.values())
        rows |= {f"{name} {key}": part for key, part in value.items()} if is_nested else {name: value}
    print_table(
        [(name.replace("_", " "), format_value(rows[name])) for name in rows if rows[name] not in (None, {}, [])]
    )


def share(part: int, whole: int) -> str:
    return percent(part / whole if whole else None)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
