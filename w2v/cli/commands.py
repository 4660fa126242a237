"""The commands of `w2v`: options in, results out. The work is done in the other modules."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, get_args

import click

from w2v import memory
from w2v.cli import info as facts
from w2v.cli import outputs, prompt, show
from w2v.cli.console import Reporter, Stopped, say
from w2v.cli.options import (
    CORPUS,
    ERRORS,
    FILE,
    FORCE,
    JSON,
    METHOD,
    MODEL,
    OBJECTIVE,
    QUIET,
    READING,
    TOP,
    GroupedCommand,
    GroupedOption,
    chosen_settings,
    reading_options,
    refuse_together,
    settings_options,
)
from w2v.cli.train import OUTPUT, new_job, resume_job
from w2v.errors import W2VError
from w2v.evaluation import compare as compared
from w2v.evaluation import perplexity as evaluated
from w2v.evaluation import rank as ranks
from w2v.evaluation.judge import judge
from w2v.files import Errors
from w2v.formats import table
from w2v.losses import registry
from w2v.losses.code_lengths import code_lengths
from w2v.losses.registry import Settings
from w2v.settings import LOSS as LOSS_GROUP
from w2v.settings import MODEL as MODEL_GROUP
from w2v.settings import WordVectors
from w2v.text.corpus import Corpus
from w2v.text.idstore import IdStore, ReadingOptions, read_corpus
from w2v.text.vocabulary import Vocabulary, is_vocabulary
from w2v.training.checkpoint import DEFAULT_INTERVAL
from w2v.training.model import Model
from w2v.training.start import Vocab
from w2v.training.world import join, leads, together
from w2v.vectors import query as queries
from w2v.vectors.benchmarks import Method, analogies, word_pairs
from w2v.vectors.keyed import load


@click.command(cls=GroupedCommand)
@click.argument("corpus", nargs=-1, type=click.Path())
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="File to write: .bin, .txt or .vec (with .gz too), or .safetensors, which stores the whole model.  "
    f"[default: {OUTPUT}]",
)
@click.option(
    "--config",
    type=FILE,
    help="Read settings, and perhaps corpus and output, from this TOML file, or settings from a .safetensors model; "
    "other options override them.",
)
@click.option("--save-config", type=FILE, help="Write the settings of this run to this file, for --config.")
@settings_options(*Settings.names())
@READING
@click.option("--sg", cls=GroupedOption, group=MODEL_GROUP, is_flag=True, help="The same as --model skipgram.")
@click.option("--cbow", cls=GroupedOption, group=MODEL_GROUP, is_flag=True, help="The same as --model cbow.")
@click.option("--hs", cls=GroupedOption, group=LOSS_GROUP, is_flag=True, help="The same as --loss hs.")
@click.option("--save-vocab", type=FILE, help="Write the words and their counts to this file.")
@click.option("--read-vocab", type=FILE, help="Use the words and counts of this file.")
@click.option(
    "--continue", "continue_from", type=FILE, metavar="MODEL", help="Continue training from this .safetensors file."
)
@click.option(
    "--vocab",
    type=click.Choice(get_args(Vocab)),
    help="Words of a continued model: its own (old), or the corpus's too (union).  [default: old]",
)
@click.option(
    "--checkpoint", type=FILE, metavar="DIR", help="Keep the last two states of the run in this folder, for --resume."
)
@click.option(
    "--checkpoint-every", metavar="TIME", help=f"How often: 30s, 10m, 2h or 1epoch.  [default: {DEFAULT_INTERVAL}]"
)
@click.option(
    "--resume", "states", type=FILE, metavar="DIR", help="Resume the run whose checkpoints are in this folder."
)
@click.option("--ignore-memory", is_flag=True, help="Train even if memory looks insufficient.")
@FORCE
@QUIET
@JSON
def train(
    corpus: tuple[str, ...],
    config: Path | None,
    save_config: Path | None,
    output: Path | None,
    save_vocab: Path | None,
    read_vocab: Path | None,
    continue_from: Path | None,
    vocab: Vocab | None,
    checkpoint: Path | None,
    checkpoint_every: str | None,
    states: Path | None,
    ignore_memory: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Train word vectors on a CORPUS.

    It is made of files, folders or glob patterns, compressed or not; - is standard input.

    \b
    w2v train corpus.txt
    w2v train news/ 'wiki/*.gz' -o vectors.safetensors --vector-size 300 --epochs 3
    zcat corpus.gz | w2v train - --cbow --loss hs --json
    w2v train corpus.txt --checkpoint states --checkpoint-every 5m
    w2v train --resume states
    w2v train --config run.toml --epochs 10
    w2v train more.txt --continue vectors.safetensors --vocab union -o more.safetensors
    """
    started = time.perf_counter()
    with join() or nullcontext() as world:
        shared: dict[str, Any] = {"output": output, "save_vocab": save_vocab, "checkpoint_every": checkpoint_every}
        shared |= {"force": force, "ignore_memory": ignore_memory, "world": world}
        with together(world):
            if states:
                job = resume_job(states, corpus, given, **shared)
            else:
                shared |= {"read_vocab": read_vocab, "continue_from": continue_from, "vocab": vocab}
                shared |= {"checkpoint": checkpoint, "config": config, "save_config": save_config}
                job = new_job(corpus, given, **shared)
            if save_config and job.config and leads(world):
                job.config.save(save_config, replace=force)
        try:
            with Reporter(quiet or not leads(world)) as progress:
                model = job.run(progress=progress)
            trained = time.perf_counter()
            files: list[tuple[Path, outputs.Write]] = [
                (job.output, lambda path, force: model.save(path, replace=force))
            ]
            if job.save_vocab:
                files.append((job.save_vocab, partial(save_words, model.vocabulary, model.metrics["sentences"])))
            with together(world):
                if leads(world):
                    outputs.save(files, job.force)
        except Stopped as stopped:
            if job.states and job.resumable():
                own = f" --objective {given['objective']}" if given["objective"] else ""
                stopped.add_note(f"resume with: w2v train --resume {shlex.quote(str(job.states))}{own}")
            raise
    if not leads(world):
        return
    now = time.perf_counter()
    metrics = {
        "output": str(job.output),
        "vocabulary_size": len(model.vocabulary),
        "vector_size": model.vectors.shape[1],
        **model.metrics,
        "seconds": model.metrics["seconds"] | {"save": now - trained, "total": now - started},
        "peak_memory_bytes": memory.peak(),
        "settings": model.settings.as_dict(),
    }
    if as_json:
        show.as_json(metrics)
    elif not quiet:
        show.training(metrics | {"settings": model.settings.relevant()})


def save_words(vocabulary: Vocabulary, sentences: int, path: Path, force: bool) -> None:
    vocabulary.save(path, sentences, replace=force)


@click.command()
@MODEL
@click.argument("questions", type=FILE, required=False)
@TOP
@METHOD
@JSON
def analogy(model: Path, errors: Errors, questions: Path | None, top: int, method: Method, as_json: bool) -> None:
    """Answer analogy QUESTIONS and report the accuracy.

    Without QUESTIONS, the bundled ones are used. The file has one question per line, four words "a b c d" (a is to b
    as c is to d), and a line ": name" before each section. Sections whose names begin with "gram" are syntactic.

    \b
    w2v analogy model.bin
    w2v analogy model.bin questions-words.txt --top 300000 --method mul
    """
    result = analogies(load(model, errors=errors), questions, top, method)
    if as_json:
        show.as_json(asdict(result) | {"formula": show.ANALOGY_FORMULA[method]})
    else:
        show.analogies(result)


@click.command()
@MODEL
@click.argument("pairs", type=FILE, required=False)
@click.option("--words", nargs=2, metavar="WORD WORD", help="Show the cosine of these two words instead.")
@JSON
def similarity(model: Path, errors: Errors, pairs: Path | None, words: tuple[str, str] | None, as_json: bool) -> None:
    """Correlate cosine similarities with the scores of word PAIRS.

    Without PAIRS, the bundled ones are used. The file has two words and a score per line; # begins a comment.

    \b
    w2v similarity model.bin
    w2v similarity model.bin wordsim.txt --json
    w2v similarity model.bin --words king queen
    """
    if words:
        refuse_together("--words", ("pairs",))
        vectors = load(model, errors=errors)
        queries.require(words, vectors)
        cosine = vectors.similarity(*words)
        if as_json:
            show.as_json({"words": words, "cosine": cosine})
        else:
            click.echo(f"{cosine:.4f}")
        return
    result = word_pairs(load(model, errors=errors), pairs)
    if as_json:
        show.as_json(asdict(result))
    else:
        show.word_pairs(result)


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=FILE)
@click.option("--questions", multiple=True, type=FILE, help="Also answer these analogy questions; may be repeated.")
@click.option("--pairs", multiple=True, type=FILE, help="Also use these scored word pairs; may be repeated.")
@TOP
@METHOD
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the resampling.")
@ERRORS
@JSON
def evaluate(
    models: tuple[Path, ...],
    questions: tuple[Path, ...],
    pairs: tuple[Path, ...],
    top: int,
    method: Method,
    seed: int,
    errors: Errors,
    as_json: bool,
) -> None:
    """Evaluate one MODEL or several, with intervals and tests of their differences.

    The bundled questions and pairs are used, and those that are named. Two more figures are about neighbours: how many
    pairs with a score in the upper third are each among the other's 10 nearest words, and the share of rare words
    (fewer than 20 times) among the 10 nearest of the 500 most frequent words. Intervals hold 95 % of 2,000 bootstrap
    samples. Differences to the first model are of the items that both models have.

    \b
    w2v evaluate model.bin
    w2v evaluate old.safetensors new.safetensors --questions questions-words.txt --pairs wordsim.txt --pairs men.txt
    """
    found = judge([load(model, errors=errors) for model in models], questions, pairs, top=top, method=method, seed=seed)
    if as_json:
        show.as_json({"models": list(map(str, models)), "results": [asdict(one) for one in found]})
    else:
        show.judgements(list(map(str, models)), found)


@click.command()
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
@click.option(
    "--top", type=int, default=10_000, show_default=True, metavar="N", help="Compare all of the N most frequent words."
)
@click.option("--words", type=click.IntRange(min=0), default=20, show_default=True, help="Number of words named.")
@ERRORS
@JSON
def compare(first: Path, second: Path, top: int, words: int, errors: Errors, as_json: bool) -> None:
    """Show in what two models differ.

    That is how many of the 10 nearest shared words are the same in both models, by frequency; the words whose
    neighbourhoods differ most, with the neighbours; and the scores of w2v evaluate. Frequency is rank in FIRST. Of the
    words beyond --top, a thousand are compared.

    \b
    w2v compare old.safetensors new.safetensors
    w2v compare old.bin new.bin --top 2000 --words 50 --json
    """
    result = compared.compare(load(first, errors=errors), load(second, errors=errors), top=top, words=words)
    if as_json:
        show.as_json({"models": [str(first), str(second)]} | asdict(result))
    else:
        show.comparison([str(first), str(second)], result)


@click.command()
@click.argument("model", type=FILE)
@CORPUS
@OBJECTIVE
@QUIET
@JSON
def perplexity(
    model: Path,
    objective: str | None,
    corpus: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Measure how well MODEL predicts the words of a CORPUS that it was not trained on.

    Skip-gram predicts a word from each other word in its window, CBOW from their mean. The unigram perplexity, for
    comparison, is that of the word frequencies in the training text alone. A model trained with subsampling
    underestimates frequent words, so two figures are shown: with subsampling undone, which is the one to compare with
    the unigram perplexity, and as trained. MODEL is a .safetensors file written by w2v train.

    The losses hs and class compute only the path or the class of each word, and of the words that were subsampled. The
    others normalise over the whole vocabulary, in blocks of about 100 MB: once per distinct word of the text in
    skip-gram, once per word in CBOW. With 100,000 words of 300 dimensions, each normalisation takes 30 million
    multiply-adds.

    \b
    w2v perplexity model.safetensors held-out.txt
    w2v perplexity model.safetensors news/ 'wiki/*.gz' --json
    """
    find_objective(objective)
    files = Corpus(list(corpus)).files
    with Reporter(quiet) as progress:
        result = evaluated.perplexity(Model.load(model), files, **asdict(reading_options(given)), progress=progress)
    if as_json:
        show.as_json(asdict(result))
    elif not quiet:
        show.perplexity(result)


@click.command()
@click.argument("model", type=FILE)
@click.option("--contexts", type=int, metavar="N", help="Rows: the N most frequent words.  [default: 2,000]")
@click.option("--words", type=int, metavar="N", help="Columns: the N most frequent words.  [default: 2,000]")
@click.option("-o", "--output", type=FILE, help="Plot the spectrum to this file, .png or .svg; needs matplotlib.")
@OBJECTIVE
@FORCE
@JSON
def rank(
    model: Path,
    contexts: int | None,
    words: int | None,
    output: Path | None,
    objective: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Show the rank and the singular values of what MODEL predicts.

    They are those of the matrix log p(word | context). With a single softmax the rank is at most the vector size plus
    one, however many words there are (plus two for the loss ns); a mixture of softmaxes has no such limit. MODEL is a
    .safetensors file written by w2v train.

    \b
    w2v rank model.safetensors
    w2v rank model.safetensors --contexts 5000 --words 5000 -o rank.png --json
    """
    if output:
        outputs.check(output, force, [model])
        ranks.check_picture(output)
    find_objective(objective)
    result = ranks.rank(Model.load(model), contexts, words)
    if output:
        name = model.name
        outputs.save([(output, lambda path, force: ranks.picture(result, path, name, replace=force))], force)
    if as_json:
        show.as_json(asdict(result))
    else:
        show.rank(result)


def find_objective(name: str | None) -> None:
    """Import a user's own loss; model files contain only its name."""
    if name:
        registry.find(name)


@click.command()
@MODEL
@click.argument("words", nargs=-1)
@click.option("--topn", type=click.IntRange(min=1), default=10, show_default=True, help="Number of results.")
@click.option(
    "--top", type=click.IntRange(min=1), metavar="N", help="Search the N most frequent words only.  [default: all]"
)
@click.option("--vector", is_flag=True, help="Show the vectors of the query's words, too.")
@METHOD
@JSON
def query(
    model: Path,
    errors: Errors,
    words: tuple[str, ...],
    topn: int,
    top: int | None,
    vector: bool,
    method: Method,
    as_json: bool,
) -> None:
    """Show the words nearest to WORDS.

    Their counts are shown, too, where the model has counts. Several words are averaged; + and - between words add and
    subtract. Without WORDS, queries are read from standard input, one per line; on a terminal there is a prompt. Write
    -- before words that look like options.

    \b
    w2v query model.bin france
    w2v query model.bin king - man + woman --topn 3
    w2v query model.safetensors france --top 20000 --vector
    w2v query model.bin --json < words.txt
    w2v query model.bin -- --word-with-hyphens
    """
    vectors = load(model, errors=errors)

    def answer(words: Sequence[str]) -> None:
        parsed = queries.parse(words, vectors, method)
        found: list[dict[str, Any]] = [
            {"word": word, "score": score} for word, score in parsed.answer(vectors, topn, top)
        ]
        if vectors.counts is not None:
            for one in found:
                one["count"] = int(vectors.counts[vectors.key_to_index[one["word"]]])
        asked = {word: vectors[word].tolist() for word in parsed.words} if vector else {}
        if as_json:
            query = {"query": " ".join(words).strip()} | asdict(parsed) | {"formula": parsed.formula}
            show.as_json(query | {"found": found} | ({"vectors": asked} if vector else {}))
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
                show.as_json({"query": line.strip(), "error": str(error)})
            else:
                say(str(error))


@click.command()
@click.argument("model", type=FILE, required=False)
@ERRORS
@JSON
def info(model: Path | None, errors: Errors, as_json: bool) -> None:
    """Describe MODEL or, without one, this installation.

    \b
    w2v info
    w2v info model.safetensors --json
    """
    found = facts.model(model, load(model, errors=errors)) if model else facts.installation()
    if as_json:
        show.as_json(found)
    else:
        show.facts(found)


@click.command()
@MODEL
@click.argument("output", metavar="OUT", type=FILE)
@click.option(
    "--vectors",
    type=click.Choice(get_args(WordVectors)),
    help="The word vectors to make of a file written by w2v train; see there.  [default: those of MODEL]",
)
@OBJECTIVE
@FORCE
@JSON
def convert(
    model: Path,
    errors: Errors,
    output: Path,
    vectors: WordVectors | None,
    objective: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Convert MODEL to another format.

    The extension of OUT decides which: .bin, .txt or .vec (.gz may follow), or .safetensors. With --vectors, MODEL is
    a .safetensors file written by w2v train.

    \b
    w2v convert model.bin model.txt.gz
    w2v convert glove.txt model.safetensors
    w2v convert model.safetensors input-rows.bin --vectors input
    """
    find_objective(objective)
    outputs.check(output, force)
    kind = table.format_of(output)
    stored = Model.load(model).with_vectors(vectors).content(output) if vectors else table.read(model, errors=errors)
    table.write(output, stored, replace=force)
    lost = [] if kind == "native" else facts.beside_vectors(stored)
    found = {"output": str(output), "format": kind, "vocabulary_size": len(stored.words)}
    found |= {"vector_size": stored.vectors.shape[1], "lost": lost}
    if as_json:
        show.as_json(found)
    else:
        show.facts(found)


@click.command()
@CORPUS
@click.option("-o", "--output", type=FILE, required=True, help="File to write: one word and its count per line.")
@settings_options("min_count", "max_vocab", "workers")
@FORCE
@QUIET
@JSON
def vocab(
    corpus: tuple[str, ...],
    output: Path,
    force: bool,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Count the words of a CORPUS.

    They are written as word2vec.c writes them, most frequent first. w2v train --read-vocab reads the file.

    \b
    w2v vocab corpus.txt -o words.txt
    w2v vocab texts/ -o words.txt --min-count 1 --max-vocab 100000
    """
    settings = chosen_settings(given)
    text = Corpus(list(corpus))
    outputs.check(output, force, map(Path, text.files))
    store = read(text, settings, quiet, reading_options(given))
    vocabulary = Vocabulary.from_store(store, settings.min_count, settings.max_vocab)
    outputs.save([(output, partial(save_words, vocabulary, store.sentences))], force)
    metrics = {
        "output": str(output),
        "vocabulary_size": len(vocabulary),
        "tokens": vocabulary.tokens,
        "corpus_tokens": store.tokens,
        "sentences": store.sentences,
        "pruned": store.pruned,
        "cache_reused": store.reused,
    }
    if as_json:
        show.as_json(metrics)
    elif not quiet:
        show.facts(metrics)


def read(corpus: Corpus, settings: Settings, quiet: bool, reading: ReadingOptions) -> IdStore:
    with Reporter(quiet) as progress:
        return read_corpus(corpus, reading, workers=settings.threads, progress=progress)


@click.command()
@CORPUS
@settings_options("min_count", "max_vocab", "workers", "tree", "tree_vectors")
@click.option("--word", "words", multiple=True, metavar="WORD", help="Show the codes of this word; may be repeated.")
@click.option(
    "--vocabulary/--text",
    "counted",
    default=None,
    help="Whether CORPUS is a file of words and counts, or text.  [default: detected]",
)
@QUIET
@JSON
def tree(
    corpus: tuple[str, ...],
    words: tuple[str, ...],
    counted: bool | None,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare Huffman and other trees by expected code length.

    Hierarchical softmax takes one output row for each bit of a word's code. For the words of a CORPUS, or of a file
    written by w2v vocab, this shows the entropy, the expected code length in the balanced tree, in the Huffman tree
    and in another --tree, and how many times fewer rows a prediction takes than with the full softmax.

    \b
    w2v tree corpus.txt --word france --word the
    w2v tree words.txt --tree clustered --tree-vectors model.bin
    """
    settings = chosen_settings(given | {"loss": "hs"})
    if counted is None:
        counted = len(corpus) == 1 and Path(corpus[0]).is_file() and is_vocabulary(corpus[0])
    if counted and len(corpus) > 1:
        raise click.UsageError("--vocabulary takes one file")
    if counted:
        vocabulary = Vocabulary.load(corpus[0], settings.min_count, settings.max_vocab)
    else:
        store = read(Corpus(list(corpus)), settings, quiet, reading_options(given))
        vocabulary = Vocabulary.from_store(store, settings.min_count, settings.max_vocab)
    result = code_lengths(vocabulary, settings.tree, settings.tree_vectors, words)
    if as_json:
        show.as_json(asdict(result))
    elif not quiet:
        show.code_lengths(result)
