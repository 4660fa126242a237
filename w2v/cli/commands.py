"""The commands of `w2v`: options in, results out. The work is done in the other modules."""

from __future__ import annotations

import shlex
import sys
import time
import webbrowser
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from w2v import memory
from w2v.cli import info as facts
from w2v.cli import outputs, prompt, show
from w2v.cli.config import Config
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
    PHRASES,
    QUIET,
    READING,
    TOP,
    GroupedCommand,
    GroupedOption,
    chosen_settings,
    complete_connectors,
    complete_file,
    given_reading,
    given_settings,
    phrase_options,
    reading_options,
    refuse_together,
    settings_options,
)
from w2v.cli.train import OUTPUT, check_outputs, new_job, resume_job
from w2v.errors import W2VError
from w2v.evaluation import compare as compared
from w2v.evaluation import perplexity as evaluated
from w2v.evaluation import rank as ranks
from w2v.evaluation.judge import judge
from w2v.explore import content
from w2v.explore import page as pages
from w2v.explore.approximate import ApproximateIndex
from w2v.explore.explorer import Explorer
from w2v.files import Errors
from w2v.formats import table
from w2v.losses import registry
from w2v.losses.code_lengths import code_lengths
from w2v.losses.registry import Settings
from w2v.options import options_of
from w2v.plotting.options import CLUSTERS, PAIRS, WORDS, Groups
from w2v.plotting.projection import Projection
from w2v.settings import LOSS as LOSS_GROUP
from w2v.settings import MODEL as MODEL_GROUP
from w2v.settings import TEXT, WordVectors
from w2v.text.corpus import Corpus
from w2v.text.idstore import IdStore, ReadingOptions, read_corpus
from w2v.text.phrases import PhraseOptions, Phrases
from w2v.text.vocabulary import Vocabulary, is_vocabulary
from w2v.training import tune as tuning
from w2v.training.checkpoint import DEFAULT_INTERVAL
from w2v.training.model import Model
from w2v.training.start import Vocab
from w2v.vectors import query as queries
from w2v.vectors.benchmarks import Method, analogies, word_pairs
from w2v.vectors.keyed import load

if TYPE_CHECKING:
    from w2v.plotting.figure import Picture
BEST_PHRASES = 10  # of each pass, that are shown
FIND = ""  # the value of --phrases without FILE


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
    "--phrases",
    cls=GroupedOption,
    group=TEXT,
    is_flag=False,
    flag_value=FIND,
    type=lambda text: True if text == FIND else text,
    metavar="[FILE]",
    shell_complete=complete_file,
    help="Join the words of phrases first: of those in a file of w2v phrases --save-phrases or, without FILE, of those "
    "found in CORPUS.",
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
@click.option(
    "--plot", type=FILE, help="Plot loss, learning rate and speed over the run to this file: .png, .svg or .pdf."
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
    phrases: bool | str | None,
    checkpoint: Path | None,
    checkpoint_every: str | None,
    states: Path | None,
    plot: Path | None,
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
    w2v train corpus.txt --phrases
    w2v train corpus.txt --checkpoint states --checkpoint-every 5m
    w2v train --resume states
    w2v train --config run.toml --epochs 10
    w2v train more.txt --continue vectors.safetensors --vocab union -o more.safetensors
    """
    started = time.perf_counter()
    shared: dict[str, Any] = {
        "output": output,
        "save_vocab": save_vocab,
        "checkpoint_every": checkpoint_every,
        "plot": plot,
    }
    shared |= {"force": force, "ignore_memory": ignore_memory}
    if states:
        job = resume_job(states, corpus, given, **shared)
    else:
        shared |= {"read_vocab": read_vocab, "continue_from": continue_from, "vocab": vocab, "phrases": phrases}
        shared |= {"checkpoint": checkpoint}
        shared |= {"config": config, "save_config": save_config}
        job = new_job(corpus, given, **shared)
    if save_config and job.config:
        job.config.save(save_config, replace=force)
    try:
        with Reporter(quiet) as progress:
            model = job.run(progress=progress)
        trained = time.perf_counter()
        files: list[tuple[Path, outputs.Write]] = [(job.output, lambda path, force: model.save(path, replace=force))]
        if job.save_vocab:
            files.append((job.save_vocab, partial(save_words, model.vocabulary, model.metrics["sentences"])))
        if job.plot:
            from w2v.plotting.history import run_picture

            picture = run_picture(model, job.output.name)
            files.append((job.plot, lambda path, force: picture.save(path, replace=force)))
        outputs.save(files, job.force)
    except Stopped as stopped:
        if job.states and job.resumable():
            own = f" --objective {given['objective']}" if given["objective"] else ""
            stopped.add_note(f"resume with: w2v train --resume {shlex.quote(str(job.states))}{own}")
        raise
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


@click.command(cls=GroupedCommand)
@CORPUS
@click.option(
    "-o",
    "--output",
    type=FILE,
    default=OUTPUT,
    show_default=True,
    help="File to write the best model to, as w2v train does; its settings go to a file of this name with .toml, and "
    "the trials to one with .tune.json.",
)
@click.option("--time", default="10m", show_default=True, help="How long all of it may take: 30s, 10m or 2h.")
@click.option("--questions", multiple=True, type=FILE, help="Judge by these analogy questions; may be repeated.")
@click.option("--pairs", multiple=True, type=FILE, help="Judge by these scored word pairs; may be repeated.")
@click.option(
    "--max-size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Try vectors of up to N dimensions.  [default: those of --vector-size]",
)
@settings_options(*Settings.names())
@click.option("--resume", is_flag=True, help="Go on from the trials of a run of the same command that was stopped.")
@click.option("--ignore-memory", is_flag=True, help="Train even if memory looks insufficient.")
@FORCE
@QUIET
@JSON
def tune(
    corpus: tuple[str, ...],
    output: Path,
    time: str,
    questions: tuple[Path, ...],
    pairs: tuple[Path, ...],
    max_size: int | None,
    resume: bool,
    ignore_memory: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Try settings on a CORPUS for a given time, and train with the best.

    Settings that are given stay as they are. Model, loss, window, negative, sample, vectors, alpha, min_alpha and
    epochs, where they are not given, are tried by successive halving, with the defaults as the first trial. They are
    judged by the mean of the accuracies on --questions and the correlations with --pairs or, without either, by the
    end of the text: how often the vector of a word is nearer to that of a word beside it than to that of a random one.
    The best settings are then trained on the whole text.

    \b
    w2v tune corpus.txt -o best.safetensors --questions questions-words.txt --pairs wordsim.txt
    w2v tune corpus.txt -o best.safetensors --time 1h --max-size 300 --model cbow
    w2v tune corpus.txt -o best.safetensors --resume
    w2v train --config best.toml -o again.safetensors
    """
    chosen_settings(given)  # raises for options that contradict each other
    reading = asdict(reading_options(given))
    config, state = output.with_suffix(".toml"), output.with_suffix(".tune.json")
    inputs = [*map(Path, Corpus(list(corpus)).files), *questions, *pairs]
    check_outputs(output, [config], None, force, inputs)
    if resume:
        outputs.check(state, True, inputs)
    else:
        if state.is_file() and not force:
            raise W2VError(f"{state} exists: add --resume to go on with its trials, or --force to start again")
        outputs.check(state, force, inputs)
        state.unlink(missing_ok=True)
    try:
        with Reporter(quiet) as progress:
            result = tuning.tune(
                list(corpus),
                time=time,
                questions=questions,
                pairs=pairs,
                max_size=max_size,
                state=state,
                ignore_memory=ignore_memory,
                finished=None if quiet else show.trial,
                progress=progress,
                **reading,
                **given_settings(given),
            )
    except Stopped as stopped:
        if state.exists():
            stopped.add_note("go on with the same command and --resume")
        raise
    model = result.model
    used = Config(corpus, output, options=model.settings.relevant() | reading)
    outputs.save(
        [
            (output, lambda path, force: model.save(path, replace=force)),
            (config, lambda path, force: used.save(path, replace=force)),
        ],
        force,
    )
    metrics = {
        "output": str(output),
        "config": str(config),
        "state": str(state),
        "trials": result.trials,
        "score": result.score,
        "default_score": result.default_score,
        "changed_settings": result.changed,
        "seconds": result.seconds,
        "peak_memory_bytes": memory.peak(),
    }
    if as_json:
        show.as_json(metrics)
    elif not quiet:
        show.facts(metrics)


@click.command()
@MODEL
@click.argument("questions", type=FILE, required=False)
@TOP
@METHOD
@QUIET
@JSON
def analogy(
    model: Path, errors: Errors, questions: Path | None, top: int, method: Method, quiet: bool, as_json: bool
) -> None:
    """Answer analogy QUESTIONS and report the accuracy.

    Without QUESTIONS, the bundled ones are used. The file has one question per line, four words "a b c d" (a is to b
    as c is to d), and a line ": name" before each section. Sections whose names begin with "gram" are syntactic.

    \b
    w2v analogy model.bin
    w2v analogy model.bin questions-words.txt --top 300000 --method mul
    """
    with Reporter(quiet) as progress:
        vectors = load(model, errors=errors, progress=progress)
        result = analogies(vectors, questions, top, method, progress=progress)
    if as_json:
        show.as_json(asdict(result) | {"formula": show.ANALOGY_FORMULA[method]})
    elif not quiet:
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
        found = [queries.known_words(word, vectors) for word in words]
        first, second = (known[0] if len(known) == 1 else word for word, known in zip(words, found, strict=True))
        queries.require((first, second), vectors)
        cosine = vectors.similarity(first, second)
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
@QUIET
@JSON
def evaluate(
    models: tuple[Path, ...],
    questions: tuple[Path, ...],
    pairs: tuple[Path, ...],
    top: int,
    method: Method,
    seed: int,
    errors: Errors,
    quiet: bool,
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
    with Reporter(quiet) as progress:
        loaded = [load(model, errors=errors, progress=progress) for model in models]
        found = judge(loaded, questions, pairs, top=top, method=method, seed=seed, progress=progress)
    if as_json:
        show.as_json({"models": list(map(str, models)), "results": [asdict(one) for one in found]})
    elif not quiet:
        show.judgements(list(map(str, models)), found)


@click.command()
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
@click.option(
    "--top", type=int, default=10_000, show_default=True, metavar="N", help="Compare all of the N most frequent words."
)
@click.option("--words", type=click.IntRange(min=0), default=20, show_default=True, help="Number of words named.")
@ERRORS
@QUIET
@JSON
def compare(first: Path, second: Path, top: int, words: int, errors: Errors, quiet: bool, as_json: bool) -> None:
    """Show in what two models differ.

    That is how many of the 10 nearest shared words are the same in both models, by frequency; the words whose
    neighbourhoods differ most, with the neighbours; and the scores of w2v evaluate. Frequency is rank in FIRST. Of the
    words beyond --top, a thousand are compared.

    \b
    w2v compare old.safetensors new.safetensors
    w2v compare old.bin new.bin --top 2000 --words 50 --json
    """
    with Reporter(quiet) as progress:
        models = [load(path, errors=errors, progress=progress) for path in (first, second)]
        result = compared.compare(*models, top=top, words=words, progress=progress)
    if as_json:
        show.as_json({"models": [str(first), str(second)]} | asdict(result))
    elif not quiet:
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

    Words are made of the text as in the training of MODEL (--lower, --tokenize and so on), unless options say
    otherwise.

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
        result = evaluated.perplexity(Model.load(model), files, **given_reading(given), progress=progress)
    if as_json:
        show.as_json(asdict(result))
    elif not quiet:
        show.perplexity(result)


@click.command()
@click.argument("model", type=FILE)
@click.option("--contexts", type=int, metavar="N", help="Rows: the N most frequent words.  [default: 2,000]")
@click.option("--words", type=int, metavar="N", help="Columns: the N most frequent words.  [default: 2,000]")
@click.option("-o", "--output", type=FILE, help="Plot the spectrum to this file: .png, .svg or .pdf.")
@OBJECTIVE
@FORCE
@QUIET
@JSON
def rank(
    model: Path,
    contexts: int | None,
    words: int | None,
    output: Path | None,
    objective: str | None,
    force: bool,
    quiet: bool,
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
        outputs.check_picture(output, force, [model])
    find_objective(objective)
    with Reporter(quiet) as progress:
        result = ranks.rank(Model.load(model), contexts, words, progress)
    if output:
        from w2v.plotting.spectrum import spectrum

        save_picture(spectrum(result, model.name), output, force)
    if as_json:
        show.as_json(asdict(result))
    elif not quiet:
        show.rank(result)


def save_picture(picture: Picture, path: Path, force: bool) -> None:
    outputs.save([(path, lambda path, force: picture.save(path, replace=force))], force)


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
@click.argument("model", type=FILE)
@click.argument("model2", type=FILE, required=False)
@ERRORS
@click.option(
    "-o", "--output", type=FILE, help="Write the page to this .html file, which needs neither server nor network."
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=content.TOP,
    show_default=True,
    metavar="N",
    help="Words in the file, or on the map of a served page: the N most frequent.",
)
@click.option(
    "--method",
    type=click.Choice(get_args(Projection)),
    default="pca",
    show_default=True,
    help="Projection to the map: principal components, t-SNE (needs openTSNE) or UMAP (needs umap-learn).",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the server.  [default: any free one]")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address of the server; 0.0.0.0 lets other machines ask, too.",
)
@click.option(
    "--approximate", is_flag=True, help="Search by an index, and show its recall; needs usearch and time to build it."
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
@FORCE
@JSON
def explore(
    model: Path,
    model2: Path | None,
    errors: Errors,
    output: Path | None,
    top: int,
    method: Projection,
    port: int,
    host: str,
    approximate: bool,
    open_page: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Explore MODEL in the browser: neighbours, analogies, a map.

    With MODEL2, two models side by side. The page is served on this machine until Ctrl-C, and searches all words. With
    -o it is one file instead, to keep or to send: it has the --top most frequent words.

    \b
    w2v explore model.bin --open
    w2v explore model.bin -o page.html
    w2v explore old.bin new.bin --method umap --port 8000
    """
    files = [file for file in (model, model2) if file]
    names = [file.name for file in files] if len({file.name for file in files}) == len(files) else list(map(str, files))
    if output:
        refuse_together("--output", ("port", "host", "approximate"))
        outputs.check(output, force, files)
        models = {name: load(file, errors=errors) for name, file in zip(names, files, strict=True)}
        page = pages.explore(models, top, method)
        outputs.save([(output, lambda path, force: page.save(path, replace=force))], force)
        found = {"output": str(output), "bytes": len(page.html.encode())}
        if as_json:
            show.as_json(found)
        else:
            show.facts(found)
        if open_page:
            open_in_browser(output.absolute().as_uri())
        return
    from w2v.explore.server import Server

    server = Server(host, port)
    facts, explorers = [], []
    for name, file in zip(names, files, strict=True):
        vectors = load(file, errors=errors)
        index = ApproximateIndex(vectors) if approximate else None
        facts.append(content.facts(name, vectors, index.description if index else "exact search in all words"))
        explorers.append(Explorer(vectors, top, method, index))
    if as_json:
        show.as_json({"url": server.url})
    else:
        click.echo(server.url)
        say("the page is served at this address until Ctrl-C")
    if open_page:
        open_in_browser(server.url)
    server.run(pages.page(facts, connect="'self'"), explorers)


def open_in_browser(url: str) -> None:
    if not webbrowser.open(url):
        say("no browser was found: open the page yourself")


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
@QUIET
@JSON
def convert(
    model: Path,
    errors: Errors,
    output: Path,
    vectors: WordVectors | None,
    objective: str | None,
    force: bool,
    quiet: bool,
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
    with Reporter(quiet) as progress:
        if vectors:
            stored = Model.load(model).with_vectors(vectors).content(output)
        else:
            stored = table.read(model, errors=errors, progress=progress)
        table.write(output, stored, force, progress)
    lost = [] if kind == "native" else facts.beside_vectors(stored)
    found = {"output": str(output), "format": kind, "vocabulary_size": len(stored.words)}
    found |= {"vector_size": stored.vectors.shape[1], "lost": lost}
    if as_json:
        show.as_json(found)
    elif not quiet:
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
    with read(text, settings, quiet, reading_options(given)) as store:
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
@click.option("-o", "--output", type=FILE, help="Text file to write: a sentence a line, the words of phrases joined.")
@PHRASES
@click.option(
    "--connectors",
    metavar="english|FILE",
    shell_complete=complete_connectors,
    help="Words that may stand inside a phrase, but not at its ends: English articles, prepositions and conjunctions, "
    "or the words of a file.  [default: none]",
)
@click.option("--save-phrases", type=FILE, help="Write the phrases, their counts and scores to this file.")
@click.option("--read-phrases", type=FILE, help="Join the phrases of this file instead of finding some.")
@settings_options("workers")
@FORCE
@QUIET
@JSON
def phrases(
    corpus: tuple[str, ...],
    output: Path | None,
    save_phrases: Path | None,
    read_phrases: Path | None,
    force: bool,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Find the phrases of a CORPUS, and join their words.

    Two words become one token, such as new_york, if they stand side by side more often than their frequencies suggest.
    Phrases do not cross lines. All counts are exact; where there are many pairs, they are counted part by part, to
    limit the memory.

    \b
    w2v phrases corpus.txt -o joined.txt
    w2v phrases news/ 'wiki/*.gz' -o joined.txt --passes 2 --connectors english --save-phrases phrases.tsv
    w2v phrases more.txt -o more-joined.txt --read-phrases phrases.tsv
    """
    if not output and not save_phrases:
        raise click.UsageError("nothing to write: name a file with -o or --save-phrases")
    if read_phrases:
        refuse_together("--read-phrases", (*options_of(PhraseOptions), "connectors", "save_phrases"))
    settings, text = chosen_settings(given), Corpus(list(corpus))
    inputs = [*map(Path, text.files), *filter(None, [read_phrases])]
    if output:
        outputs.check(output, force, inputs)
    if save_phrases:
        outputs.check(save_phrases, force, [*inputs, *filter(None, [output])])
    known = Phrases.load(read_phrases) if read_phrases else None
    options = phrase_options(given)
    with Reporter(quiet) as progress:
        work: dict[str, Any] = {"workers": settings.threads, "progress": progress}
        store = read_corpus(text, reading_options(given), **work)
        found = Phrases.find(store, options=options, **work) if known is None else known
        tokens = None

        def write(path: Path, force: bool) -> None:
            nonlocal tokens
            tokens = found.write(store, path, replace=force, **work)

        files: list[tuple[Path, outputs.Write]] = []
        if save_phrases:
            files.append((save_phrases, lambda path, force: found.save(path, replace=force)))
        if output:
            files.append((output, write))
        outputs.save(files, force)
    if store.pruned:
        say(f"{store.pruned:,} rare words were dropped to keep within --max-types, and left out of the text")
    metrics = {
        "output": output and str(output),
        "phrases": len(found),
        "phrases_by_pass": [len(one) for one in found.passes],
        "best": [found.joined(phrase) for one in found.passes for phrase in list(one)[:BEST_PHRASES]],
        "corpus_tokens": store.tokens,
        "tokens": tokens,
        "sentences": store.sentences,
        "pruned": store.pruned,
        "peak_memory_bytes": memory.peak(),
    }
    if as_json:
        show.as_json(metrics)
    elif not quiet:
        show.facts(metrics)


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
        with read(Corpus(list(corpus)), settings, quiet, reading_options(given)) as store:
            vocabulary = Vocabulary.from_store(store, settings.min_count, settings.max_vocab)
    result = code_lengths(vocabulary, settings.tree, settings.tree_vectors, words)
    if as_json:
        show.as_json(asdict(result))
    elif not quiet:
        show.code_lengths(result)


@click.command()
@MODEL
@click.argument("words", nargs=-1)
@click.option("-o", "--output", type=FILE, required=True, help="File to write: .png, .svg or .pdf.")
@click.option(
    "--words", "words_file", type=FILE, metavar="FILE", help='Draw the words of this file; ": name" begins a group.'
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Draw the N most frequent words, or the first N pairs of --analogies.  [default: {WORDS}, or {PAIRS} pairs]",
)
@click.option(
    "--method",
    type=click.Choice(get_args(Projection)),
    default="pca",
    show_default=True,
    help="Projection to the plane: principal components, t-SNE (needs openTSNE) or UMAP (needs umap-learn).",
)
@click.option(
    "--groups",
    type=click.Choice(get_args(Groups)),
    help="What colours mean: groups of the --words file, clusters by k-means, or frequency.  "
    "[default: sections if the file has any, else clusters]",
)
@click.option("--clusters", type=click.IntRange(min=1), default=CLUSTERS, show_default=True, help="Number of clusters.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of t-SNE, UMAP and k-means.")
@click.option(
    "--analogies",
    is_flag=False,
    flag_value="",
    metavar="[SECTION]",
    help="Draw the pairs of this section of analogy questions as arrows, by default of the first section.",
)
@click.option("--questions", type=FILE, help="The questions of --analogies, instead of the bundled ones.")
@FORCE
@QUIET
@JSON
def plot(
    model: Path,
    errors: Errors,
    words: tuple[str, ...],
    output: Path,
    words_file: Path | None,
    top: int | None,
    method: Projection,
    groups: Groups | None,
    clusters: int,
    seed: int,
    analogies: str | None,
    questions: Path | None,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Draw a map of WORDS, by default of the most frequent ones.

    The nearer two words are, the more alike they are used; the plane shows this only roughly, t-SNE and UMAP best.
    Frequent words have larger points. Labels that find no place are left out. The same seed gives the same file.

    \b
    w2v plot model.bin -o map.png
    w2v plot model.bin king queen man woman -o few.svg
    w2v plot model.bin --words groups.txt --method tsne -o groups.pdf
    w2v plot model.bin --analogies country-capital -o capitals.svg
    """
    if words:
        refuse_together("WORDS", ("words_file", "top"))
    if words_file:
        refuse_together("--words", ("top",))
    if analogies is not None:
        refuse_together("--analogies", ("words", "words_file", "method", "groups", "clusters", "seed"))
    elif questions:
        raise click.UsageError("--questions has no effect without --analogies")
    outputs.check_picture(output, force, [path for path in (model, words_file, questions) if path])
    from w2v.plotting.analogies import analogy_map
    from w2v.plotting.word_map import NAMES, read_sections, word_map

    chosen = read_sections(words_file) if words_file else {"": list(words)} if words else None
    with Reporter(quiet) as progress:
        vectors = load(model, errors=errors, progress=progress)
        if analogies is not None:
            picture = analogy_map(vectors, analogies or None, questions, top=top or PAIRS)
        else:
            unknown = [word for part in (chosen or {}).values() for word in part if word not in vectors]
            if words:
                queries.require(words, vectors)
            elif chosen and unknown:
                say(f"not in the vocabulary, {len(unknown):,} of the words of {words_file}: {', '.join(unknown[:5])}")
                chosen = {name: [word for word in part if word in vectors] for name, part in chosen.items()}
            picture = word_map(
                vectors,
                chosen,
                top=top or WORDS,
                method=method,
                groups=groups,
                clusters=clusters,
                seed=seed,
                title=f"{model.name}, {NAMES[method]}",
                progress=progress,
            )
        save_picture(picture, output, force)
    found = {"output": str(output), "words": picture.words, "labels": picture.labels}
    if as_json:
        show.as_json(found)
    elif not quiet:
        show.facts(found)
