"""Commands that use the vectors of a model."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

import click

from w2v.cli import info as facts
from w2v.cli import options, outputs, prompt, show
from w2v.cli.console import DASHES, options_by_name, say
from w2v.cli.options import FILE, Option
from w2v.cli.show import Result
from w2v.errors import W2VError
from w2v.evaluation.analogies import analogies
from w2v.evaluation.compare import compare
from w2v.evaluation.similarity import word_pairs
from w2v.formats import matrices, table
from w2v.formats.storage import FileStorage
from w2v.progress import Report
from w2v.settings import WordVectors
from w2v.system.files import Errors
from w2v.training.model import Model
from w2v.vectors import query as queries
from w2v.vectors import reduce
from w2v.vectors.concatenate import Selection
from w2v.vectors.concatenate import combine as concatenated
from w2v.vectors.encode import Weights
from w2v.vectors.keyed import KeyedVectors, keyed, load
from w2v.vectors.query import Method


@click.command(cls=options.Reporting)
@options.MODEL
@click.argument("questions", type=FILE, required=False)
@options.RESTRICT_VOCAB
@options.METHOD
@options.ERRORS
@options.REPORTING
def analogy(
    model: Path, errors: Errors, questions: Path | None, restrict_vocab: int, method: Method, progress: Report
) -> Result:
    """Answer analogy QUESTIONS and report the accuracy.

    Without QUESTIONS, the bundled ones are used. The file has one question per line, four words "a b c d" (a is to b
    as c is to d), and a line ": name" before each section. Sections whose names begin with "gram" are syntactic.

    \b
    w2v analogy model.bin
    w2v analogy model.bin questions-words.txt --restrict-vocab 300000 --method mul
    """
    vectors = load(model, errors=errors, progress=progress)
    result = analogies(vectors, questions, restrict_vocab, method, progress=progress)
    return asdict(result) | {"formula": show.ANALOGY_FORMULA[method]}, lambda _: show.analogies(result)


@click.command(cls=options.ShortHelp)
@options.MODEL
@click.argument("asked", metavar="[PAIRS | WORD WORD]", nargs=-1, type=click.Path(readable=False))
@click.option("--words", nargs=2, hidden=True)  # how two words were given in earlier versions
@click.option("--verbose", is_flag=True, help="List the words that are not in the vocabulary.")
@options.ERRORS
@options.JSON
def similarity(
    model: Path, errors: Errors, asked: tuple[str, ...], words: tuple[str, str] | None, verbose: bool, as_json: bool
) -> None:
    """Correlate cosine similarities with the scores of word PAIRS, or show the cosine of two words.

    Without PAIRS, the bundled ones are used. The file has two words and a score per line, separated by tabs, commas,
    semicolons or spaces, perhaps with more columns and with a first line that names them; # begins a comment. Tables
    such as those of SimLex-999 and WordSim-353 are read as they are.

    \b
    w2v similarity model.bin
    w2v similarity model.bin wordsim.csv --json
    w2v similarity model.bin king queen
    """
    given = [*asked, *(words or ())]
    if len(given) > 2:
        raise click.UsageError(f"give one file of word pairs, or two words, not {len(given)}: {' '.join(given)}")
    if len(given) == 2:
        if verbose:
            raise click.UsageError("--verbose has no effect with two words")
        _show_cosine(load(model, errors=errors), given, as_json)
        return
    result = word_pairs(load(model, errors=errors), next(iter(asked), None))
    show.result(result, as_json, shown=lambda found: show.word_pairs(found, verbose))


def _show_cosine(vectors: KeyedVectors, words: Sequence[str], as_json: bool) -> None:
    """Show the cosine of two words."""
    found = [queries.known_words(word, vectors) for word in words]
    pair = [known[0] if len(known) == 1 else word for word, known in zip(words, found, strict=True)]
    files = [word for word in pair if word not in vectors and Path(word).is_file()]
    if files:
        raise click.UsageError(
            f"{files[0]} is a file, and two arguments are two words: give one file of pairs, or several to "
            "w2v evaluate MODEL --pairs FILE --pairs FILE"
        )
    cosine = vectors.similarity(*pair)
    show.result({"words": words, "cosine": cosine}, as_json, shown=lambda _: click.echo(f"{cosine:.4f}"))


class QueryCommand(options.ShortHelp):
    """A command whose words may follow a minus sign, which looks like an option: king -man is king - man."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        known, end = options_by_name(context), args.index("--") if "--" in args else len(args)
        flags = {name for name, option in known.items() if option.is_flag}
        parsed, has_model = list[str](), False
        for before, argument in zip(["", *args], args[:end], strict=False):
            is_value = before.startswith("--") and before not in flags
            has_model = has_model or not (is_value or argument.startswith("-"))
            if is_value or argument in known or not has_model or not re.match(f"-[^-{DASHES}]", argument):
                parsed.append(argument)
            elif f"-{argument.partition('=')[0]}" in known:
                raise click.UsageError(f"No such option '{argument}': did you mean -{argument}?", context)
            else:
                parsed += ["-", argument[1:]]
        return super().parse_args(context, [*parsed, *args[end:]])


@click.command(cls=QueryCommand)
@options.MODEL
@click.argument("words", nargs=-1)
@click.option("--topn", type=click.IntRange(min=1), default=10, show_default=True, help="Number of results.")
@click.option(
    "--restrict-vocab",
    cls=Option,
    common=True,
    formerly=["--top"],
    type=click.IntRange(min=1),
    metavar="N",
    help="Search the N most frequent words only.  [default: all]",
)
@click.option("--vector", is_flag=True, help="Show the vectors of the query's words, too.")
@options.METHOD
@options.ERRORS
@options.JSON
def query(
    model: Path,
    errors: Errors,
    words: tuple[str, ...],
    topn: int,
    restrict_vocab: int | None,
    vector: bool,
    method: Method,
    as_json: bool,
) -> None:
    """Show the words nearest to WORDS.

    Counts are shown if the model has them. Several words are averaged; + and - add and subtract, also without spaces,
    as in king-man+woman (but king-man is a hyphenated word). Without WORDS, queries are read from standard input, one
    per line; on a terminal there is a prompt. Write -- before words that begin with a dash themselves.

    \b
    w2v query model.bin france
    w2v query model.bin king - man + woman --topn 3
    w2v query model.bin king -man +woman
    w2v query model.safetensors france --restrict-vocab 20000 --vector
    w2v query model.bin --json < words.txt
    w2v query model.bin -- --word-with-hyphens
    """
    if words and not model.exists() and Path(words[-1]).is_file():
        raise click.UsageError(f"the model comes first: w2v query {words[-1]} {model}")
    vectors = load(model, errors=errors)

    def answer(words: Sequence[str]) -> None:
        parsed = queries.parse(words, vectors, method)
        found: list[dict[str, Any]] = [
            {"word": word, "score": score} for word, score in parsed.answer(vectors, topn, restrict_vocab)
        ]
        if vectors.counts is not None:
            for one in found:
                one["count"] = int(vectors.counts[vectors.key_to_index[one["word"]]])
        for word in parsed.words:
            if not vectors.is_known(word):
                say(f"{word} is not in the vocabulary: its vector is made of its n-grams")
        asked = {word: vectors[word].tolist() for word in parsed.words} if vector else {}
        if as_json:
            query = {"query": " ".join(words).strip()} | asdict(parsed) | {"formula": parsed.formula}
            show.print_json(query | {"found": found} | ({"vectors": asked} if vector else {}))
        else:
            show.neighbours(parsed.formula, found, asked)

    if words:
        answer(words)
        return
    for line in prompt.lines(vectors) if sys.stdin.isatty() else prompt.piped_lines():
        try:
            if line.strip():
                answer([line])
        except W2VError as error:
            if as_json:
                show.print_json({"query": line.strip(), "error": str(error)})
            else:
                say(str(error))


@click.command(cls=options.Reporting)
@options.MODEL
@click.argument("texts", nargs=-1, type=click.Path())
@click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    help=f"File to write: {', '.join(matrices.WRITERS)}; a row for each text.",
)
@click.option(
    "--weights",
    type=options.Choice(get_args(Weights)),
    default="sif",
    show_default=True,
    help="mean: all words count the same; idf: -log of a word's frequency; sif: frequent words count less, and the "
    "direction that all text vectors have in common is subtracted.",
)
@click.option(
    "--column",
    help="Encode the texts in this column of JSON lines, CSV or Parquet, a row each. `--column none` reads a file "
    "as plain text even if it looks like a table.  [default: plain text; tables are refused]",
)
@options.ENCODING
@options.ERRORS
@options.WRITING
def encode(
    model: Path,
    texts: tuple[str, ...],
    output: Path,
    weights: Weights,
    column: str | None,
    encoding: str | None,
    errors: Errors,
    force: bool,
    progress: Report,
) -> Result:
    """Turn TEXTS, one on each line, into vectors.

    The vector of a text is the weighted mean of the vectors of its words; a text without a known word gets zeros. TEXTS
    are files, by default standard input, and are split into words as in the training of MODEL. Weights by frequency
    need a MODEL with counts, such as a .safetensors file.

    \b
    w2v encode model.safetensors -o vectors.npy < texts.txt
    w2v encode model.bin texts.txt.gz -o vectors.parquet --weights mean
    """
    corpus = options.corpus_of(texts or ["-"])
    outputs.check(output, force, map(Path, texts), models=[model])
    write, reading = matrices.writer_for(output), options.reading_options({"encoding": encoding})
    encoder = load(model, errors=errors, progress=progress).encoder(weights, errors)
    write(output, encoder.size, encoder.blocks(corpus, progress, column, reading.encoding), force)
    found = {name: getattr(encoder, name) for name in ("texts", "missing", "words", "unknown")}
    return {"output": str(output), "weights": weights, "vector_size": encoder.size} | found


@click.command(cls=options.ShortHelp)
@click.argument("model", type=FILE, required=False)
@options.ERRORS
@options.JSON
def info(model: Path | None, errors: Errors, as_json: bool) -> None:
    """Describe MODEL or, without one, this installation.

    \b
    w2v info
    w2v info model.safetensors --json
    """
    found = facts.model(model, load(model, errors=errors), as_json) if model else facts.installation()
    show.result(found, as_json)


@click.command(cls=options.Reporting, epilog=f"\b\nExtensions of OUT:\n{table.describe_formats()}")
@options.MODEL
@click.argument("output", metavar="OUT", type=FILE)
@click.option(
    "--vectors",
    type=options.Choice(get_args(WordVectors)),
    help="Word vectors to compute for a file written by w2v train; see w2v train --help.  [default: those of MODEL]",
)
@click.option("--top", type=int, metavar="N", help="Keep the N most frequent words, before --words.")
@click.option(
    "--words", type=FILE, help="Keep the words of this file that MODEL has; each line is a word, or begins with one."
)
@click.option("--dims", type=int, metavar="D", help="Reduce the vectors to D values, by PCA without centring.")
@click.option(
    "--storage",
    type=options.Choice(get_args(FileStorage)),
    help="Store the vectors as float32, bfloat16, float16, or 8-bit integers and a scale for each word; .safetensors "
    "holds all, .npy float16.  [default: as in MODEL]",
)
@click.option("--check", is_flag=True, help="Compare the result with MODEL, as w2v compare does.")
@options.OBJECTIVE
@options.ERRORS
@options.WRITING
def convert(
    model: Path,
    errors: Errors,
    output: Path,
    vectors: WordVectors | None,
    storage: FileStorage | None,
    check: bool,
    force: bool,
    progress: Report,
    **smaller: Any,
) -> Result:
    """Convert MODEL to another format, or make it smaller.

    The extension of OUT chooses the format. With --vectors, MODEL must be a .safetensors file written by w2v train.
    --top, --words, --dims and --storage are applied in this order. Any of them drops the output layer, so training
    cannot be continued. N-grams stay only if the vectors are the input rows (--vectors input).

    \b
    w2v convert model.bin model.txt.gz
    w2v convert glove.txt model.safetensors
    w2v convert model.safetensors input-rows.bin --vectors input
    w2v convert model.safetensors small.safetensors --top 100000 --dims 64 --storage int8 --check
    """
    models = [] if outputs.same(output, model) else [model]  # a model may replace itself, as a whole
    words = [smaller["words"]] if smaller["words"] else []
    outputs.check(output, force, words, "as OUT", models)
    for path in table.companion_files(output):
        outputs.check(path, force, words, "as OUT", models)
    kind = table.format_for(output).name
    if storage:
        table.check_storage(output, storage)
    if vectors:
        stored = Model.load(model).with_vectors(vectors).content()
    else:
        stored = table.read(model, errors=errors, progress=progress)
    made = reduce.reduced(stored, **smaller, storage=storage)
    compared = compare(keyed(stored), keyed(made), show=0, progress=progress) if check else None
    if compared:
        made = replace(made, header=replace(made.header, scores=compared.second_scores))
    table.write(output, made, force, progress)
    lost = table.describe_lost_parts(output, stored, made)
    found = {"output": str(output), "format": kind, "vocabulary_size": len(made.words)}
    found |= {"vector_size": made.vectors.shape[1], "lost": lost}
    if compared is None:
        return found, show.converted
    return found | {"check": asdict(compared)}, lambda _: show.converted(found, [str(model), str(output)], compared)


def _parse_weights(context: click.Context, parameter: click.Parameter, text: str | None) -> list[float] | None:
    """Return the numbers of a list such as 1,0.8."""
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r}: numbers separated by commas are needed, such as 1,0.8") from None


@click.command(cls=options.Reporting)
@click.argument("models", metavar="MODEL MODEL...", nargs=-1, required=True, type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="File to write; w2v convert --help lists all formats.")
@click.option(
    "--words",
    type=options.Choice(get_args(Selection)),
    default="intersection",
    show_default=True,
    help="intersection: the words that all MODELs have; union: all words, with zeros in the parts of the MODELs that "
    "lack a word.",
)
@click.option(
    "--weights",
    callback=_parse_weights,
    metavar="NUMBER,NUMBER...",
    help="The weight of each MODEL, as in 1,0.8.  [default: 1 each]",
)
@options.ERRORS
@options.WRITING
def combine(
    models: tuple[Path, ...],
    output: Path,
    words: Selection,
    weights: list[float] | None,
    errors: Errors,
    force: bool,
    progress: Report,
) -> Result:
    """Combine several MODELs into one with longer vectors.

    The vectors of a word are scaled to length 1, multiplied by the weights and concatenated. So the cosine of two words
    is the mean of their cosines in the MODELs, with squared weights. Words are sorted by the count in the first MODEL
    that has one. Only words, vectors and counts are kept: training cannot be continued, and unknown words do not have a
    vector.

    \b
    w2v combine words.bin subwords.safetensors -o both.safetensors
    w2v combine news.bin wiki.bin -o both.bin --words union --weights 1,0.8
    """
    outputs.check(output, force, models=models)
    kind = table.format_for(output).name
    made = concatenated([load(path, errors=errors, progress=progress) for path in models], weights, words)
    outputs.save([(output, outputs.saving(made))], force)
    return {
        "output": str(output),
        "format": kind,
        "models": list(map(str, models)),
        "vocabulary_size": len(made),
        "vector_size": made.vector_size,
    }
