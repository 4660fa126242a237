"""Commands that train models, and that prepare words, phrases and trees for training."""

from __future__ import annotations

import shlex
import time
from contextlib import nullcontext
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, get_args

import click

from w2v import memory
from w2v.cli import outputs, show
from w2v.cli.config import Config
from w2v.cli.console import Reporter, Stopped, say
from w2v.cli.options import (
    CORPUS,
    FILE,
    FORCE,
    JSON,
    PHRASES,
    QUIET,
    READING,
    GroupedCommand,
    GroupedOption,
    chosen_settings,
    complete_connectors,
    complete_file,
    given_settings,
    phrase_options,
    reading_options,
    refuse_together,
    settings_options,
)
from w2v.cli.train import OUTPUT, Job, Options, check_outputs, new_job, resume_job
from w2v.errors import W2VError
from w2v.losses.code_lengths import code_lengths
from w2v.losses.registry import Settings
from w2v.options import options_of
from w2v.settings import LOSS as LOSS_GROUP
from w2v.settings import MODEL as MODEL_GROUP
from w2v.settings import TEXT
from w2v.text.corpus import Corpus
from w2v.text.idstore import IdStore, ReadingOptions, read_corpus
from w2v.text.phrases import PhraseOptions, Phrases
from w2v.text.vocabulary import Vocabulary, is_vocabulary
from w2v.training import tune as tuning
from w2v.training.checkpoint import DEFAULT_INTERVAL
from w2v.training.model import Model
from w2v.training.start import Vocab
from w2v.training.world import join, leads, together

BEST_PHRASES = 10  # of each pass, that are shown
FIND = ""  # the value of --phrases without FILE
JOIN_PHRASES = click.option(
    "--phrases",
    cls=GroupedOption,
    group=TEXT,
    is_flag=False,
    flag_value=FIND,
    type=lambda text: True if text == FIND else text,
    metavar="[FILE]",
    shell_complete=complete_file,
    help="Join the words of phrases first: of the phrases in a file of w2v phrases --save-phrases or, without FILE, of "
    "those found in CORPUS.",
)


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
    help="Read settings, and optionally corpus and output, from this TOML file, or settings from a .safetensors model; "
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
@JOIN_PHRASES
@click.option(
    "--checkpoint", type=FILE, metavar="DIR", help="Keep the last two states of the run in this folder, for --resume."
)
@click.option(
    "--checkpoint-every",
    metavar="TIME",
    help=f"Time between checkpoints: 30s, 10m, 2h or 1epoch.  [default: {DEFAULT_INTERVAL}]",
)
@click.option("--resume", type=FILE, metavar="DIR", help="Resume the run whose checkpoints are in this folder.")
@click.option(
    "--plot", type=FILE, help="Plot loss, learning rate and speed over the run to this file: .png, .svg or .pdf."
)
@click.option("--ignore-memory", is_flag=True, help="Train even if memory looks insufficient.")
@FORCE
@QUIET
@JSON
def train(quiet: bool, as_json: bool, **given: Any) -> None:
    """Train word vectors on a CORPUS.

    A CORPUS is one or more files, folders or glob patterns, compressed or not; - is standard input.

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
    options = Options(**{field.name: given.pop(field.name) for field in fields(Options)})
    with join() or nullcontext() as world:
        with together(world):
            if options.resume:
                job = resume_job(options.resume, options, given, world)
            else:
                job = new_job(options, given, world)
            if options.save_config and job.config and leads(world):
                job.config.save(options.save_config, replace=options.force)
        try:
            with Reporter(quiet or not leads(world)) as progress:
                model = job.run(progress=progress)
            trained = time.perf_counter()
            with together(world):
                if leads(world):
                    save_all(job, model)
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


def save_all(job: Job, model: Model) -> None:
    """Write the outputs of a run: the model and, if requested, its vocabulary and the plot of the run."""
    files: list[tuple[Path, outputs.Write]] = [(job.output, lambda path, force: model.save(path, replace=force))]
    if job.save_vocab:
        files.append((job.save_vocab, partial(save_words, model.vocabulary, model.metrics["sentences"])))
    if job.plot:
        from w2v.plotting.history import run_picture

        picture = run_picture(model, job.output.name)
        files.append((job.plot, lambda path, force: picture.save(path, replace=force)))
    outputs.save(files, job.force)


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
@click.option("--time", default="10m", show_default=True, help="Time limit for everything: 30s, 10m or 2h.")
@click.option("--questions", multiple=True, type=FILE, help="Judge by these analogy questions; may be repeated.")
@click.option("--pairs", multiple=True, type=FILE, help="Judge by these scored word pairs; may be repeated.")
@click.option(
    "--max-size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Try vectors of up to N dimensions.  [default: those of --vector-size]",
)
@settings_options(*Settings.names())
@JOIN_PHRASES
@click.option("--resume", is_flag=True, help="Resume the trials of the same command after it was stopped.")
@click.option("--ignore-memory", is_flag=True, help="Train even if memory looks insufficient.")
@READING
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
    phrases: bool | str | None,
    resume: bool,
    ignore_memory: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Try settings on a CORPUS for a given time, and train with the best.

    Settings given as options are fixed. Of the others, model, loss, window, negative, sample, vectors, alpha, min_alpha
    and epochs are tuned by successive halving; the first trial has the defaults. The score of a trial is the mean of
    its accuracies on --questions and correlations with --pairs. Without either, it is measured on the end of the text,
    which is held out: how often the mean vector of the words around a gap is nearer to the word in the gap than to a
    random word. Finally, a model is trained on the whole text with the best settings.

    \b
    w2v tune corpus.txt -o best.safetensors --questions questions-words.txt --pairs wordsim.txt
    w2v tune corpus.txt -o best.safetensors --time 1h --max-size 300 --model cbow
    w2v tune corpus.txt -o best.safetensors --phrases
    w2v tune corpus.txt -o best.safetensors --resume
    w2v train --config best.toml -o again.safetensors
    """
    chosen_settings(given)  # raises for options that contradict each other
    reading = asdict(reading_options(given))
    config, state = output.with_suffix(".toml"), output.with_suffix(".tune.json")
    inputs = [*map(Path, Corpus(list(corpus)).files), *questions, *pairs]
    inputs += [Path(phrases)] if isinstance(phrases, str) else []
    check_outputs(output, [config], None, force, inputs)
    if resume:
        outputs.check(state, True, inputs)
    else:
        if state.is_file() and not force:
            raise W2VError(f"{state} exists: add --resume to continue with its trials, or --force to start again")
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
                phrases=phrases or False,
                state=state,
                ignore_memory=ignore_memory,
                finished=None if quiet else show.trial,
                progress=progress,
                **reading,
                **given_settings(given),
            )
    except Stopped as stopped:
        if state.exists():
            stopped.add_note("to resume, repeat the command with --resume")
        raise
    model = result.model
    used = Config(corpus, output, options=model.settings.relevant() | reading, phrases=phrases or False)
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
@CORPUS
@click.option("-o", "--output", type=FILE, required=True, help="File to write: one word and its count per line.")
@settings_options("min_count", "max_vocab", "workers")
@READING
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

    The file has the format of word2vec.c, most frequent words first. w2v train --read-vocab reads it.

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
@click.option(
    "-o", "--output", type=FILE, help="Text file to write: one sentence per line, with the words of phrases joined."
)
@PHRASES
@click.option(
    "--connectors",
    metavar="english|FILE",
    shell_complete=complete_connectors,
    help="Words that may be inside a phrase, but not at its ends: English articles, prepositions and conjunctions, or "
    "the words of a file.  [default: none]",
)
@click.option("--save-phrases", type=FILE, help="Write the phrases, their counts and scores to this file.")
@click.option("--read-phrases", type=FILE, help="Join the phrases of this file instead of finding phrases.")
@settings_options("workers")
@READING
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

    Two words become one token, such as new_york, if they occur side by side more often than their frequencies suggest.
    Phrases do not cross lines. All counts are exact; many pairs are counted in parts, to limit the memory.

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
        say(f"{store.pruned:,} rare words were left out of the text because of --max-types")
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
@READING
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

    Hierarchical softmax uses one output row for each bit of a word's code. For the words of a CORPUS, or of a file
    written by w2v vocab, this shows the entropy, the expected code length in the balanced tree, in the Huffman tree
    and in another --tree, and how many times fewer rows a prediction uses than with the full softmax.

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
