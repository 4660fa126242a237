"""Prints results on standard output: one JSON object, or tables for people."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

import click

from w2v.cli.console import STDERR, STDOUT
from w2v.display import format_value
from w2v.errors import malformed_lines, pluralise, printable

if TYPE_CHECKING:
    from w2v.evaluation.analogies import AnalogyResult
    from w2v.evaluation.compare import Comparison
    from w2v.evaluation.evaluate import EvaluationResult, Score
    from w2v.evaluation.perplexity import Perplexity
    from w2v.evaluation.rank import Rank
    from w2v.evaluation.similarity import PairsResult
    from w2v.losses.code_lengths import CodeLengths
    from w2v.training.tune import Trial, Tuner
    from w2v.vectors.query import Method

OWN_SETS = (
    "w2v evaluate MODEL --questions FILE --pairs FILE takes sets of your own, and w2v evaluate MODEL --held-out FILE "
    "needs only a text"
)
GAPS = (
    "how often the words around a gap in the text are nearer to the word in it than to another; without any knowledge "
    "this is 0.5"
)
Result = Any  # of a command: a dictionary or dataclass, or a pair of it and a function that prints it for people
BRIEF = ("model", "loss", "window", "epochs")  # the settings in the summary of a run
TRIAL_HEADER = ("trial", "epochs", "seed", "score", "best", "seconds", "settings")
ANALOGY_FORMULA: dict[Method, str] = {
    "add": "3CosAdd: cos(x, b) - cos(x, a) + cos(x, c)",
    "mul": "3CosMul: cos(x, b) * cos(x, c) / cos(x, a), cosines shifted to 0..1",
}


def print_json(result: object) -> None:
    """One JSON object on one line; numbers that JSON does not have, such as infinity, become null."""
    click.echo(json.dumps(_finite(result), allow_nan=False))


def result(found: Any, as_json: bool, quiet: bool = False, shown: Callable[[Any], None] | None = None) -> None:
    """The result of a command, a dictionary or dataclass: as JSON or, unless `quiet`, as `shown` prints it."""
    if as_json:
        print_json(asdict(found) if is_dataclass(found) and not isinstance(found, type) else found)
    elif not quiet:
        (shown or facts)(found)


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def line(text: str) -> None:
    """One line of text."""
    click.echo(printable(text))


def table(rows: Sequence[Sequence[object]], header: Sequence[str] = ()) -> None:
    """Rows in columns; with a header, all columns except the first are right-aligned."""
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=None, show_header=bool(header), pad_edge=False, padding=(0, 2, 0, 0))
    for index in range(max(map(len, rows), default=0)):
        title = printable(header[index]) if header else ""
        grid.add_column(title, justify="right" if header and index else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(printable(str(cell)) for cell in row))
    width = None if sys.stdout.isatty() else 1 << 16  # lines are only folded for a terminal
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    with console.capture() as capture:
        console.print(grid)
    for line in capture.get().splitlines():
        click.echo(line.rstrip())


def training(metrics: Mapping[str, Any], verbose: bool) -> None:
    """Summary of a training run: three lines, or all settings and measurements."""
    values, speed = pluralise(metrics["vector_size"], "value"), f"{metrics['words_per_second'] / 1e6:.2f} M words/s"
    vocabulary, memory = pluralise(metrics["vocabulary_size"], "word"), f"{metrics['peak_memory_bytes'] / 1e6:,.0f} MB"
    settings, seconds = metrics["settings"], metrics["seconds"]
    brief = format_value({name: settings[name] for name in BRIEF})
    loss = format_value(next((loss for loss in reversed(metrics["loss"]) if loss is not None), None))
    rows = [
        ("output", f"{metrics['output']}: {vocabulary}, {values} each, in {seconds['total']:.1f} s with {memory}"),
        ("trained", f"{metrics['tokens_trained']:,} words at {speed}, loss {loss} in the last epoch"),
        ("settings", f"{brief}; all: --verbose"),
    ]
    if verbose:
        rows = [
            ("output", metrics["output"]),
            ("vocabulary", f"{vocabulary}, {values} each"),
            ("corpus", f"{metrics['tokens']:,} words in the vocabulary"),
            ("trained", f"{metrics['tokens_trained']:,} words, {speed}"),
            ("loss by epoch", format_value(metrics["loss"])),
            *([("held-out scores", format_value(metrics["held_out_scores"]))] if "held_out_scores" in metrics else []),
            ("seconds", format_value(seconds)),
            ("peak memory", memory),
            ("instruction set", metrics["instruction_set"]),
            ("settings", format_value(settings)),
        ]
        if "exchange" in metrics:
            share = metrics["exchange"]["share"]
            rows.append(("ranks", f"{metrics['ranks']}, which exchanged rows in {share:.1%} of the time"))
        if metrics["cache_reused"]:
            rows.append(("cache", "reused; the text was not read again"))
    if metrics["pruned"]:
        rows.append(("pruned", f"{pluralise(metrics['pruned'], 'rare word')} dropped, because of --max-types"))
    table(rows)


def trial(latest: Trial, tuner: Tuner, err: bool) -> None:
    """One trial of tuning; before the first, a header; on standard error if `err`. Lines are folded for a terminal."""
    stream = sys.stderr if err else sys.stdout
    settings = " ".join(f"{name}={format_value(value)}" for name, value in tuner.changed(latest.choices).items())
    scores = (_percentage(latest.score), _percentage(tuner.score))
    numbers = (len(tuner.trials), f"{latest.share:.0%}", latest.seed, *scores, f"{latest.seconds:.1f}")
    on_terminal = os.isatty(STDERR if err else STDOUT)  # not stream.isatty(): before rich 15, a bar's streams deny it
    width = shutil.get_terminal_size().columns if on_terminal else 1 << 16
    for *cells, last in [TRIAL_HEADER] * (len(tuner.trials) == 1) + [(*numbers, settings or "the defaults")]:
        start = "{:>5}  {:>6}  {:>4}  {:>6}  {:>6}  {:>7}  ".format(*cells)
        folded = textwrap.fill(last, width, initial_indent=start, subsequent_indent=" " * len(start))
        stream.write(f"{folded}\n")  # click.echo writes into a bar


def _percentage(score: float | None) -> str:
    return "-" if score is None or not math.isfinite(score) else f"{100 * score:.2f}"


def analogies(result: AnalogyResult) -> None:
    """Accuracy by section and in total, coverage, number of words searched and formula."""
    rows: list[tuple[object, ...]] = [
        (part.name, share(part.correct, part.answered), part.correct, part.answered, part.total)
        for part in result.sections
    ]
    rows += [(name, percent(getattr(result, name))) for name in ("semantic", "syntactic")]
    correct = sum(part.correct for part in result.sections)
    rows.append(("all", percent(result.accuracy), correct, result.answered, result.questions))
    table(rows, ("section", "accuracy", "correct", "answered", "questions"))
    if not result.answered:
        line(f"no question has only words of the model: {OWN_SETS}")
        return
    others = f"the others contain words outside the {result.top:,} most frequent; "
    line(
        f"answered {share(result.answered, result.questions)} of the questions; "
        f"{others if result.answered < result.questions else ''}{ANALOGY_FORMULA[result.method]}"
    )
    _malformed(result.malformed, result.first_malformed)


def word_pairs(result: PairsResult, verbose: bool) -> None:
    """Correlations and coverage; the unknown words if `verbose`, otherwise their number."""
    correlations = {"Spearman": result.spearman, "Pearson": result.pearson}
    table([(name, "-" if value is None else f"{value:.4f}") for name, value in correlations.items()])
    line(f"found {result.found:,} of {result.pairs:,} pairs ({share(result.found, result.pairs)})")
    if not result.found:
        line(f"no pair has both words in the model: {OWN_SETS}")
    if result.unknown:
        unknown = (
            ", ".join(result.unknown) if verbose else f"{pluralise(len(result.unknown), 'word')} (--verbose: which)"
        )
        line(f"not in the vocabulary: {unknown}")
    _malformed(result.malformed, result.first_malformed)


def evaluation(names: Sequence[str], results: Sequence[EvaluationResult]) -> None:
    """For each measure its values with intervals, differences and numbers of items, with a column for each model."""
    rows: list[tuple[str, ...]] = []
    for one in results:
        rows.append((one.name, one.measure, *(map(_score, one.scores))))
        if any(score.p is not None for score in one.scores):
            rows.append(("", "difference to the first", *map(_difference, one.scores)))
        rows.append(("", "scored", *(f"{score.items:,} of {score.total:,}" for score in one.scores)))
    table(rows, ("set", "measure", *names))
    for number, name in enumerate(names):
        lacking = [(one.measure, one.name) for one in results if not one.scores[number].items]
        if sets := [name for measure, name in lacking if measure in ("accuracy", "spearman")]:
            line(f"{name} lacks a word of every item of {' and '.join(sets)}: {OWN_SETS}")
        if any(measure == "rare neighbours" for measure, _ in lacking):
            line(f"{name} has no counts of its words, or no rare words, so rare neighbours cannot be counted")
    if any(one.measure == "gaps" for one in results):
        line(f"gaps: {GAPS}")
    line("95 % intervals (bootstrap) in brackets; p: McNemar's test for items right or wrong, otherwise bootstrap")
    if len(names) > 1:
        line("differences are over the items that both models score")


def _score(score: Score) -> str:
    interval = "" if score.low is None else f" [{score.low:.3f}, {score.high:.3f}]"
    return "-" if score.value is None else f"{score.value:.3f}{interval}"


def _difference(score: Score) -> str:
    if score.difference is None or score.p is None:
        return ""
    return f"{score.difference:+.3f} (p {'< 0.001' if score.p < 0.001 else f'{score.p:.3f}'})"


def comparison(names: Sequence[str], result: Comparison) -> None:
    """The words, the overlap by frequency, the words that differ most, and the scores."""
    only = f"{result.only_first:,} only in {names[0]}, {result.only_second:,} only in {names[1]}"
    line(f"{pluralise(result.shared, 'word')} in both models, {only}")
    rows = [(f"{band.first:,}-{band.last:,}", f"{band.words:,}", percent(band.overlap)) for band in result.bands]
    table(rows, ("frequency rank", "words compared", "same among the 10 nearest"))
    if result.moved:
        line("words whose neighbourhoods differ most, by their distance: 0 if they are the same, 2 at most")
    for moved in result.moved:
        line(f"{moved.word} (distance {moved.distance:.3f})")
        table([(f"  {name}", " ".join(near)) for name, near in zip(names, (moved.first, moved.second), strict=True)])
    scored = [one for one in result.results if all(score.value is not None for score in one.scores)]
    left_out = [f"{one.name}, {one.measure}" for one in result.results if one not in scored]
    if scored:
        evaluation(names, scored)
    if left_out:
        line(f"not compared, for lack of words: {'; '.join(left_out)}")


def converted(found: Mapping[str, Any], names: Sequence[str] = (), compared: Comparison | None = None) -> None:
    """What was written, what it lacks, and how it compares with the model that it was made of."""
    facts({**found, "lost": ", ".join(found["lost"]) or None})
    if compared:
        comparison(names, compared)


def perplexity(result: Perplexity) -> None:
    """Perplexity of the model and of the unigram model, and the numbers of words and predictions."""
    table(
        [
            ("perplexity", f"{result.perplexity:,.2f}, {result.cross_entropy_bits:.4f} bits a prediction"),
            ("unigram perplexity", f"{result.unigram_perplexity:,.2f}, of word frequencies alone"),
            ("perplexity as trained", f"{result.perplexity_as_trained:,.2f}, with subsampling"),
            ("predicted", f"{pluralise(result.tokens, 'word')} in {pluralise(result.predictions, 'prediction')}"),
            ("skipped", f"{pluralise(result.skipped, 'word')} not in the vocabulary"),
        ]
    )
    if skipped := result.skipped:
        line(
            f"perplexities are comparable only over the same vocabulary: {share(skipped, result.tokens + skipped)} of "
            "the words are skipped, some of which a model with more words has to predict"
        )


def rank(result: Rank) -> None:
    """The rank, and some of the singular values, including those next to the rank and to the limit."""
    values, limit = result.singular_values, result.max_rank
    numbers = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, result.rank, result.rank + 1}
    if limit is not None:
        numbers |= {limit, limit + 1}
    rows = [(str(number), f"{values[number - 1]:.4g}") for number in sorted(numbers) if number <= len(values)]
    table(
        [
            ("rank", f"{result.rank:,} of {len(values):,}"),
            ("highest rank with this loss", "none" if limit is None else f"{limit:,}"),
            ("matrix", f"{pluralise(result.contexts, 'context')}, {pluralise(result.words, 'word')}"),
        ]
    )
    table(rows, ("singular value", ""))


def code_lengths(result: CodeLengths) -> None:
    """Expected code lengths and speed-ups of the trees, then the codes of the requested words."""
    line(f"{result.vocabulary_size:,} words, {result.tokens:,} tokens, entropy {result.entropy_bits:.3f} bits")
    rows = [
        (tree.name, f"{tree.expected_bits:.3f}", tree.longest_bits, f"{tree.speed_up:,.1f} ×") for tree in result.trees
    ]
    table(rows, ("tree", "expected bits", "longest code", "fewer rows than softmax"))
    line(f"the Huffman tree uses {result.huffman_speed_up:.2f} × fewer rows than the balanced tree")
    names = [tree.name for tree in result.trees]
    for word in result.words:
        line(f"{word.word}: {pluralise(word.count, 'time')}, {word.information_bits:.3f} bits")
        table([(name, len(word.codes[name]), word.codes[name]) for name in names])


def _malformed(number: int, first: int | None) -> None:
    if number:
        line(f"skipped {malformed_lines(number, first)}")


def neighbours(formula: str, found: Sequence[Mapping[str, Any]], vectors: Mapping[str, Sequence[float]]) -> None:
    """The formula of the scores; words, scores and, if known, counts; the requested vectors."""
    line(formula)
    table(
        [
            (one["word"], f"{one['score']:.4f}", *([pluralise(one["count"], "time")] if "count" in one else []))
            for one in found
        ]
    )
    for word, values in vectors.items():
        line(f"{word}: {' '.join(f'{value:.6g}' for value in values)}")


def facts(values: Mapping[str, Any]) -> None:
    """One name and value per line; nested values on one line."""
    table(
        [(name.replace("_", " "), format_value(value)) for name, value in values.items() if value not in (None, {}, [])]
    )


def share(part: int, whole: int) -> str:
    return percent(part / whole if whole else None)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
