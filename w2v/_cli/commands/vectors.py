"""Commands that use vectors, such as `query`, `encode` and `convert`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from w2v._cli import info as facts
from w2v._cli import options, outputs, prompt
from w2v._cli.console import say
from w2v._cli.options import FILE
from w2v._cli.printing import (
    ANALOGY_FORMULA,
    Result,
    print_analogies,
    print_conversion,
    print_json,
    print_line,
    print_neighbours,
    print_recommendations,
    print_table,
    print_word_pairs,
)
from w2v._errors import W2VError
from w2v._evaluation.analogies import analogies
from w2v._evaluation.compare import compare
from w2v._evaluation.similarity import word_pairs
from w2v._formats import item_lists, matrices, registry
from w2v._formats.storage import FileStorage
from w2v._progress import Report
from w2v._settings import WordVectors
from w2v._system.files import Errors
from w2v._text.encodings import UTF_8
from w2v._training.model import Model, view_of_words
from w2v._vectors import query as queries
from w2v._vectors import reduce
from w2v._vectors.approximate import ApproximateIndex
from w2v._vectors.combine_models import Selection
from w2v._vectors.combine_models import combine as combine_models
from w2v._vectors.encode import Encoder
from w2v._vectors.keyed import KeyedVectors, load, read, to_keyed_vectors
from w2v._vectors.query import Method
from w2v._vectors.recommend import LAST, Recommender


@click.command(cls=options.ResultCommand)
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

    QUESTIONS is a file with one question per line: four words "a b c d" (a is to b as c is to d). A line ": name"
    starts a section, and a name that begins with "gram" marks a syntactic section. Without QUESTIONS, w2v uses the
    bundled questions.

    \b
    w2v analogy model.bin
    w2v analogy model.bin questions-words.txt --restrict-vocab 300000 --method mul
    """
    vectors = load(model, errors=errors, progress=progress)
    result = analogies(vectors, questions, restrict_vocab, method, progress=progress)
    return asdict(result) | {"formula": ANALOGY_FORMULA[method]}, lambda _: print_analogies(result)


@click.command(cls=options.ResultCommand)
@options.MODEL
@click.argument("pairs_or_words", metavar="[PAIRS | WORD WORD]", nargs=-1, type=click.Path(readable=False))
@click.option("--verbose", is_flag=True, help="List the words that are not in the vocabulary.")
@options.ERRORS
@options.JSON
def similarity(model: Path, errors: Errors, pairs_or_words: tuple[str, ...], verbose: bool, progress: Report) -> Result:
    """Correlate cosine similarities with the scores of word PAIRS, or show the cosine of two words.

    PAIRS is a file with two words and a score per line, separated by tabs, commas, semicolons or spaces. It may have
    more columns and a header line, and # begins a comment: w2v reads SimLex-999 and WordSim-353 unchanged. Without
    PAIRS, w2v uses the bundled pairs.

    \b
    w2v similarity model.bin
    w2v similarity model.bin wordsim.csv --json
    w2v similarity model.bin king queen
    """
    given = pairs_or_words
    if len(given) > 2:
        raise click.UsageError(f"give one file of word pairs, or two words, not {len(given)}: {' '.join(given)}")
    if len(given) == 2:
        if verbose:
            raise click.UsageError("--verbose has no effect with two words")
        return _cosine(load(model, errors=errors, progress=progress), given)
    result = word_pairs(load(model, errors=errors, progress=progress), next(iter(given), None))
    return result, lambda _: print_word_pairs(result, verbose)


def _cosine(vectors: KeyedVectors, words: Sequence[str]) -> Result:
    """Return the cosine of two words."""
    found = [queries.split_if_unknown(word, vectors) for word in words]
    pair = [known[0] if len(known) == 1 else word for word, known in zip(words, found, strict=True)]
    files = [word for word in pair if word not in vectors and Path(word).is_file()]
    if files:
        raise click.UsageError(
            f"{files[0]} is a file, and two arguments are two words: give one file of pairs, or several to "
            "w2v evaluate MODEL --pairs FILE --pairs FILE"
        )
    cosine = vectors.similarity(*pair)
    return {"words": words, "cosine": cosine}, lambda _: click.echo(f"{cosine:.4f}")


class QueryCommand(options.ShortHelp):
    """A command that reads -man as minus man instead of as an option, so that king -man means king - man."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        known, end = options.options_by_name(self, context), args.index("--") if "--" in args else len(args)
        parsed: list[str] = []
        for before, argument in zip(["", *args], args[:end], strict=False):
            is_value = before in known and not known[before].is_flag
            is_word = re.match("-[^-]", argument) and argument not in known and not is_value
            if is_word and f"-{argument.partition('=')[0]}" in known:
                raise click.UsageError(f"No such option '{argument}': did you mean -{argument}?", context)
            parsed += ["-", argument[1:]] if is_word else [argument]
        return super().parse_args(context, [*parsed, *args[end:]])


@click.command(cls=QueryCommand)
@options.MODEL
@click.argument("words", nargs=-1)
@click.option("--topn", type=click.IntRange(min=1), default=10, show_default=True, help="Number of results.")
@options.number_option("--restrict-vocab", help="Search only the N most frequent words.  [default: all]")
@click.option("--vector", is_flag=True, help="Also show the vectors of WORDS.")
@click.option(
    "--documents",
    is_flag=True,
    help="Show the documents of w2v train --documents that are nearest to WORDS: to their tag or, if no document has "
    "it, to their text.",
)
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
    documents: bool,
    method: Method,
    as_json: bool,
) -> None:
    """Show the words nearest to WORDS.

    The query is the mean of WORDS. + adds and - subtracts a word, also without spaces as in king-man+woman (but
    king-man is a hyphenated word). Write -- before words that begin with a dash. Counts are shown if the model has
    them. Without WORDS, w2v reads queries from standard input, one per line, or shows a prompt on a terminal.

    \b
    w2v query model.bin france
    w2v query model.bin king - man + woman --topn 3
    w2v query model.bin king -man +woman
    w2v query model.safetensors france --restrict-vocab 20000 --vector
    w2v query model.bin --json < words.txt
    w2v query model.bin -- --word-with-hyphens
    w2v query documents.safetensors --documents a text of several words
    """
    if words and not model.exists() and Path(words[-1]).is_file():
        raise click.UsageError(f"the model comes first: w2v query {words[-1]} {model}")
    if documents:
        if vector or restrict_vocab or method != "add":
            raise click.UsageError("--documents takes no --vector, --restrict-vocab and --method")
        trained = Model.load(model)
        _answer(words, trained.documents, partial(_show_documents, trained, topn, as_json), as_json)
        return
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
        word_vectors = {word: vectors[word].tolist() for word in parsed.words} if vector else {}
        if as_json:
            query = {"query": " ".join(words).strip()} | asdict(parsed) | {"formula": parsed.formula}
            print_json(query | {"found": found} | ({"vectors": word_vectors} if vector else {}))
        else:
            print_neighbours(parsed.formula, found, word_vectors)

    _answer(words, vectors, answer, as_json)


def _show_documents(model: Model, topn: int, as_json: bool, words: Sequence[str]) -> None:
    """Show the documents nearest to a tag or, if there is no such tag, to a text."""
    query = " ".join(words).strip()
    vector: Any = query
    if not (is_tag := model.documents.is_known(query)):
        vector = model.infer([query])[0]
        if not vector.any():
            raise W2VError(f"{query[:60]!r} is no tag of a document, and holds no word that the model knows")
        say(f"no document has the tag {query[:60]!r}, so it is a text")
    found = model.documents.most_similar(vector, topn=topn)
    if as_json:
        shown = [{"document": tag, "score": score} for tag, score in found]
        print_json({"query": query, "is_tag": is_tag, "found": shown})
    else:
        print_line(f"cos(x, the {'document' if is_tag else 'text'} {query[:60]})")
        print_table([(tag, f"{score:.4f}") for tag, score in found])


def _answer(
    words: Sequence[str], vectors: KeyedVectors, answer: Callable[[Sequence[str]], None], as_json: bool
) -> None:
    """Answer the query of the arguments or, without one, those that are typed or piped, one per line."""
    if words:
        answer(words)
        return
    for line in filter(str.strip, prompt.typed_lines(vectors) if sys.stdin.isatty() else prompt.piped_lines()):
        try:
            answer([line])
        except W2VError as error:
            if as_json:
                print_json({"query": line.strip(), "error": str(error)})
            else:
                say(str(error))


@click.command(cls=options.ResultCommand)
@options.MODEL
@click.argument("texts", nargs=-1, type=click.Path())
@options.file_option(
    "-o", "--output", required=True, help=f"File to write: {', '.join(matrices.WRITERS)}. It has one row per text."
)
@options.choice_option(
    "--weights",
    choices=Literal["mean", "idf", "sif", "infer"],
    help="Weights of the words. mean: all equal; idf: -log of the word's frequency; sif: lower for frequent words, and "
    "the common direction of all text vectors is subtracted. infer: train the vector of each text, with a model of "
    "w2v train --documents.  [default: sif; infer for such a model]",
)
@click.option(
    "--column",
    help="Encode the texts in this column of JSON, CSV or Parquet, one per row. `--column none` reads a file as "
    "plain text even if it looks like a table.  [default: plain text; tables are refused]",
)
@options.ENCODING
@options.ERRORS
@options.WRITING
def encode(
    model: Path,
    texts: tuple[str, ...],
    output: Path,
    weights: Literal["mean", "idf", "sif", "infer"] | None,
    force: bool,
    progress: Report,
    **given: Any,
) -> Result:
    """Compute a vector for each line of TEXTS.

    The vector is the weighted mean of the vectors of the words on the line, or zeros if no word is known. A model of
    documents (w2v train --documents) infers it in their space instead. TEXTS are
    files, by default standard input. They are split into words as in the training of MODEL. The weights idf and sif
    need a MODEL with counts, such as a .safetensors file.

    \b
    w2v encode model.safetensors -o vectors.npy < texts.txt
    w2v encode model.bin texts.txt.gz -o vectors.parquet --weights mean
    """
    corpus, errors = options.corpus_of(texts or ["-"], given["header"]), given["errors"]
    outputs.check(output, force, map(Path, texts), models=[model])
    write, reading = matrices.writer_for(output), options.reading_options(given)
    vectors = load(model, errors=errors, progress=progress)
    weights = weights or ("infer" if "documents" in vectors.tensors else "sif")
    encoder: Any = None
    if weights == "infer":
        from w2v._training.infer import Inference  # the kernel is imported only when it is needed

        encoder = Inference(view_of_words(model), errors=errors)
    else:
        encoder = Encoder(vectors, weights, errors)
    write(output, encoder.size, encoder.blocks(corpus, progress, reading.column, reading.encoding), force)
    found = {name: getattr(encoder, name) for name in ("texts", "missing", "words", "unknown")}
    return {"output": str(output), "weights": weights, "vector_size": encoder.size} | found


@click.command(cls=options.ResultCommand)
@options.MODEL
@click.argument("sessions", nargs=-1, required=True, type=click.Path())
@options.file_option(
    "-o",
    "--output",
    help=f"File to write: {', '.join(item_lists.WRITERS)}. It has one row per session.  [default: show the items]",
)
@click.option(
    "--column",
    help="Read the lists of items in this column of JSON, Parquet or Arrow, one session per row.  [default: a "
    "session is a line of items with spaces between them]",
)
@options.LONG_TABLE
@options.number_option("--topn", default=10, help="Number of items for each session.")
@options.number_option("--last", default=LAST, help="Use only the last N known items of a session.")
@click.option(
    "--approximate", is_flag=True, help="Search by an approximate index: faster if there are millions of items."
)
@options.ENCODING
@options.ERRORS
@options.WRITING
def recommend(
    model: Path,
    sessions: tuple[str, ...],
    output: Path | None,
    topn: int,
    last: int,
    approximate: bool,
    errors: Errors,
    force: bool,
    progress: Report,
    **given: Any,
) -> Result:
    """Recommend the items nearest to each of SESSIONS.

    The vector of a session is the mean of the vectors of its last items. The recommended items have the highest cosines
    with this mean, and are not in the session. Items that MODEL does not know are left out, and a session without a
    known item gets no recommendations. With --item and --session, OUTPUT also has a column with the session.

    \b
    w2v recommend items.safetensors sessions.parquet --column items -o top.parquet
    w2v recommend items.safetensors views.csv --item product --session visit --order time -o top.parquet
    w2v recommend items.safetensors sessions.jsonl --column items --last 3 --topn 5
    """
    corpus = options.corpus_of(sessions, given["header"])
    if output:
        outputs.check(output, force, map(Path, sessions), models=[model])
        write = item_lists.writer_for(output)
    reading = options.reading_options(given)
    vectors = load(model, errors=errors, progress=progress)
    index = ApproximateIndex(vectors.vectors, progress) if approximate else None
    recommender = Recommender(vectors, topn, last, index, errors)
    found: dict[str, Any] = {"output": str(output)} if output else {"recommendations": []}
    if reading.long_table and not output:
        found["session_names"] = []
    with closing(recommender.blocks(corpus, progress, reading.column, reading.encoding, reading.long_table)) as blocks:
        if output:
            write(output, vectors.index_to_key, blocks, force)
        else:
            for block in blocks:
                for pairs in block.sessions(vectors.index_to_key):
                    found["recommendations"].append([{"item": key, "score": score} for key, score in pairs])
                if block.names is not None:
                    found["session_names"] += block.names.tolist()
    found |= {name: getattr(recommender, name) for name in ("sessions", "empty", "items", "unknown")}
    if index:
        found["recall"] = index.recall(vectors.vectors)
    if recommender.items and recommender.empty == recommender.sessions:
        say(f"{model} knows none of the items: are they named as in its training?")
    return found, print_recommendations


@click.command(cls=options.ResultCommand)
@click.argument("model", type=FILE, required=False)
@options.ERRORS
@options.JSON
def info(model: Path | None, errors: Errors, progress: Report) -> Result:
    """Show facts about MODEL or, without MODEL, about this installation.

    \b
    w2v info
    w2v info model.safetensors --json
    """
    return facts.model(model, load(model, errors=errors, progress=progress)) if model else facts.installation()


class ConvertCommand(options.ResultCommand):
    """The command `convert`. Only its help needs to know all formats."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        self.epilog = f"\b\nExtensions of OUT:\n{registry.describe_formats()}"
        super().format_epilog(context, formatter)


@click.command(cls=ConvertCommand)
@options.MODEL
@click.argument("output", metavar="OUT", type=FILE)
@options.choice_option(
    "--vectors",
    choices=WordVectors,
    help="Compute these word vectors of a file written by w2v train; see w2v train --help-all.  [default: as in MODEL]",
)
@options.number_option("--max-vocab", help="Keep the N most frequent words.")
@options.file_option("--words", help="Keep the words in this file: the first word of each line.")
@options.number_option("--dims", metavar="D", help="Reduce the vectors to D values, by PCA without centring.")
@options.choice_option(
    "--storage",
    choices=FileStorage,
    help="Store the vectors as float32, bfloat16, float16, or 8-bit integers with a scale for each word (int8). "
    ".safetensors holds all of them, .npy float32 and float16.  [default: as in MODEL]",
)
@click.option(
    "--encoding",
    metavar="NAME",
    default=UTF_8,
    show_default=True,
    help="The encoding of the words of MODEL, such as cp1251.",
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
    encoding: str,
    check: bool,
    force: bool,
    progress: Report,
    **smaller: Any,
) -> Result:
    """Convert MODEL to another format or make it smaller.

    The extension of OUT chooses the format. --vectors needs a .safetensors file written by w2v train. --max-vocab,
    --words, --dims and --storage are applied in this order. Each of them drops the output layer, so you cannot continue
    training the result. N-grams are kept only if the vectors are the input rows (--vectors input).

    \b
    w2v convert model.bin model.txt.gz
    w2v convert glove.txt model.safetensors
    w2v convert model.safetensors input-rows.bin --vectors input
    w2v convert model.safetensors small.safetensors --max-vocab 100000 --dims 64 --storage int8 --check
    """
    models = [] if outputs.same(output, model) else [model]  # the output may replace the model
    words = [smaller["words"]] if smaller["words"] else []
    outputs.check_model(output, force, words, "as OUT", models)
    kind = registry.format_for(output).name
    if storage:
        registry.check_storage(output, storage)
    if vectors:
        options.refuse_together("--vectors", ("encoding", "errors"))
        stored = Model.load(model).with_vectors(vectors).to_vector_file()
    else:
        stored = read(model, False, errors, None, progress, encoding)
    reduced = reduce.reduce_file(stored, **smaller, storage=storage)
    comparison = None
    if check:
        pair = to_keyed_vectors(stored), to_keyed_vectors(reduced)
        comparison = compare(*pair, progress=progress)
        reduced = replace(reduced, header=replace(reduced.header, scores=comparison.second_scores))
    registry.write(output, reduced, force, progress)
    lost = registry.describe_lost_parts(output, stored, reduced)
    found = {"output": str(output), "format": kind, "vocabulary_size": len(reduced.words)}
    found |= {"vector_size": registry.vector_size_in(output, reduced), "lost": lost}
    if comparison is None:
        return found, print_conversion
    names = [str(model), str(output)]
    return found | {"check": asdict(comparison)}, lambda _: print_conversion(found, names, comparison)


def _parse_weights(context: click.Context, parameter: click.Parameter, text: str | None) -> list[float] | None:
    """Return the numbers of a list such as 1,0.8."""
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r}: numbers separated by commas are needed, such as 1,0.8") from None


@click.command(cls=options.ResultCommand)
@click.argument("models", metavar="MODEL MODEL...", nargs=-1, required=True, type=FILE)
@options.file_option("-o", "--output", required=True, help="File to write; w2v convert --help lists all formats.")
@options.choice_option(
    "--words",
    choices=Selection,
    default="intersection",
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
    outputs.check_model(output, force, (), "with -o", models)
    kind = registry.format_for(output).name
    combined = combine_models([load(path, errors=errors, progress=progress) for path in models], weights, words)
    outputs.save([(output, outputs.saver(combined))], force)
    return {
        "output": str(output),
        "format": kind,
        "models": list(map(str, models)),
        "vocabulary_size": len(combined),
        "vector_size": combined.vector_size,
    }
