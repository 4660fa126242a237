"""Commands that train models: `train`, `tune` and `slices`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from w2v._cli import options, outputs
from w2v._cli.console import STDERR, ProgressPrinter, Stopped, say
from w2v._cli.options import FILE, Option
from w2v._cli.printing import Result, print_slices, print_training, print_trial, print_values
from w2v._cli.run_config import (
    OUTPUT,
    Command,
    check_outputs,
    command_of,
    default_output,
    new_run,
    one_view_for_fasttext,
    resume_command,
    resumed_run,
)
from w2v._errors import SettingsError, W2VError, pluralise
from w2v._formats import registry
from w2v._losses.registry import Settings
from w2v._options import options_of
from w2v._progress import Report
from w2v._settings import GRAPH, TEXT, Freeze, Preset, ViewOptions
from w2v._system import memory
from w2v._system.shell import join_command
from w2v._text.idstore import ReadingOptions
from w2v._text.labels import LabelOptions
from w2v._text.vocabulary import Vocabulary
from w2v._text.words import Words
from w2v._training import search as tuning
from w2v._training import slices as slicing
from w2v._training.checkpoint_folder import CheckpointFolder
from w2v._training.communicator import OneProcess, join_ranks
from w2v._training.config import MODEL_SUFFIX, RunConfig, toml_line
from w2v._training.estimate import estimate
from w2v._training.labelled import read_labelled
from w2v._training.model import SAFETENSORS_ALSO_KEEPS, Model
from w2v._training.schedule import DEFAULT_INTERVAL, interval
from w2v._training.source import Vocab
from w2v._training.train import open_training
from w2v._training.tune_labels import Metric, tune_classifier
from w2v._training.views import ONE_VIEW, TWO_VIEWS, settings_to_repeat

DEFAULT_OUTPUT = f"[default: {OUTPUT}, or {OUTPUT.with_suffix('.safetensors')} with --subwords]"
NO_FILE = ""  # the value of --phrases without FILE
IGNORE_MEMORY = options.rare_option("--ignore-memory", is_flag=True, help="Train even if the memory looks too small.")
JOIN_PHRASES = click.option(
    "--phrases",
    cls=Option,
    group=TEXT,
    common=True,
    is_flag=False,
    flag_value=NO_FILE,
    type=lambda text: True if text == NO_FILE else text,
    metavar="[FILE]",
    shell_complete=options.complete(),
    help="Before training, join the words of each phrase. FILE lists the phrases and is written by w2v phrases "
    "--save-phrases; without FILE, train and tune search for phrases in CORPUS.",
)


CHECKPOINTS = options.composed(
    options.file_option(
        "--checkpoint", metavar="DIR", help="Write checkpoints to this folder, for --resume. The last two are kept."
    ),
    options.rare_option(
        "--checkpoint-every",
        metavar="INTERVAL",
        callback=lambda _, __, value: value and interval(value) and value,  # raises SettingsError
        help="Write a checkpoint after each interval: a time (30s, 10m, 2h) or a part of the text (1epoch, 500chunks). "
        f"never: write a checkpoint only when the run ends or is stopped.  [default: {DEFAULT_INTERVAL}]",
    ),
)
OF_RUNS = options.composed(
    CHECKPOINTS,
    options.rare_option(
        "--resume",
        type=FILE,
        metavar="DIR",
        help="Resume a run from the checkpoints in this folder. Name its texts and -o again.",
    ),
    IGNORE_MEMORY,
    options.rare_option("--verbose", is_flag=True, help="Show all settings and measurements at the end."),
    options.WRITING,
)


@click.command(cls=options.TrainingCommand)
@click.argument("corpus", nargs=-1, type=click.Path())
@options.file_option(
    "-o",
    "--output",
    help="File to write: .bin, .txt or .vec (also compressed, as .gz), or .safetensors, which stores the whole model. "
    f"w2v convert --help lists all formats.  {DEFAULT_OUTPUT}",
)
@options.rare_option(
    "--config",
    type=FILE,
    help="Read settings from this file: a TOML file, which may also name corpus and output, or a .safetensors model. "
    "Options on the command line override them.",
)
@options.rare_option("--save-config", type=FILE, help="Write the settings of this run to this file; --config reads it.")
@options.choice_option(
    "--preset",
    cls=Option,
    common=True,
    choices=Preset,
    help="Use other defaults for the settings: the defaults for sessions of items, for walks in a graph, or for pairs. "
    "Options override them.",
)
@options.TRAINING_SETTINGS
@options.option_for(Settings, "documents")
@click.option(
    "--tags",
    cls=Option,
    group=TEXT,
    metavar="COLUMN",
    help="With --documents: the column of a table with the tag, or the list of tags, of each row; rows may share tags. "
    "--column is the column of the text.  [default: the tag is the number of the line or row, from 0]",
)
@options.READING
@options.options_for(ReadingOptions, *options.SESSIONS)
@click.option(
    "--graph",
    cls=Option,
    group=GRAPH,
    common=True,
    is_flag=True,
    help="Read CORPUS as a graph, as w2v walks does, and train on random walks on it, with --preset graph.",
)
@options.WALKS
@click.option(
    "--pairs",
    cls=Option,
    group=GRAPH,
    common=True,
    is_flag=True,
    help="Read CORPUS as pairs, with an input, a context and perhaps a weight in each line, and train inputs to "
    "predict their contexts, with --preset pairs.",
)
@click.option(
    "--negatives-from",
    cls=Option,
    group=GRAPH,
    metavar="COLUMN",
    help="With --pairs: the column of a table with the group of the context, such as its market. The negatives of a "
    "context are drawn from its group.  [default: from all contexts]",
)
@options.rare_option("--contexts", type=FILE, help="With --pairs: write the vectors of contexts to this file.")
@options.SETTING_FLAG_OPTIONS
@options.rare_option("--save-vocab", type=FILE, help="Write the words and their counts to this file.")
@options.rare_option(
    "--save-documents", type=FILE, help="With --documents: write their vectors to this file, in any format of -o."
)
@options.rare_option(
    "--read-vocab", "vocabulary", type=FILE, help="Use the words and counts in this file instead of counting."
)
@options.rare_option(
    "--continue",
    "continue_from",
    type=FILE,
    metavar="MODEL",
    help="Continue training this .safetensors model, on CORPUS.",
)
@options.choice_option(
    "--vocab",
    cls=Option,
    choices=Vocab,
    help="With --continue: train only the words of MODEL (old), or add the words of CORPUS (union).  [default: old]",
)
@options.rare_option(
    "--init",
    type=FILE,
    metavar="VECTORS",
    help="Initialise words from the vectors in this file, in any format. Other words start from random vectors.",
)
@options.choice_option(
    "--freeze",
    cls=Option,
    is_flag=False,
    flag_value="inputs",
    choices=Freeze,
    help="Keep the vectors from --init unchanged, and train only the others (inputs, also without a value), or keep "
    "the output rows of the .safetensors model in --init, so that vectors have its coordinate system (outputs).",
)
@JOIN_PHRASES
@options.rare_option(
    "--plot", type=FILE, help="Plot loss, learning rate and speed over the run to this file: .png, .svg or .pdf."
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Read a sample of CORPUS, train on it for some seconds, and print what the run would need: words, memory, "
    "disk and time. Nothing is written.",
)
@OF_RUNS
def train(dry_run: bool, verbose: bool, progress: Report, **given: Any) -> Result:
    """Train word vectors on a CORPUS.

    A CORPUS is one or more text files, folders or glob patterns. Files may be compressed. - is standard input.

    \b
    w2v train corpus.txt
    w2v train news/ 'wiki/*.gz' -o vectors.safetensors --vector-size 300 --epochs 3
    gzip -dc corpus.gz | w2v train - --cbow --loss hs --json
    w2v train corpus.txt --phrases
    w2v train texts.csv --column text --documents dbow --tags id -o texts.safetensors
    w2v train --graph edges.tsv -p 0.5 -q 2 -o nodes.safetensors
    w2v train corpus.txt --vector-size 300 --dry-run
    w2v train --pairs plays.csv --edges user,song,plays -o users.safetensors --contexts songs.safetensors
    w2v train corpus.txt --checkpoint states --checkpoint-every 5m
    w2v train corpus.txt --resume states -o model.bin
    w2v train --config run.toml --epochs 10
    w2v train mine.txt --init GoogleNews-vectors-negative300.bin -o mine.safetensors
    w2v train more.txt --continue vectors.safetensors --vocab union -o more.safetensors
    """
    if dry_run:
        for name in ("graph", "pairs", "documents"):
            if given[name]:
                raise click.UsageError(f"--dry-run estimates the training of plain texts: leave out --{name}")
        options.refuse_together("--dry-run", ("continue_from", "init", "resume", "checkpoint", "save_config"))
        command = new_run(given, OneProcess())
        more = {name: command.inputs[name] for name in ("views", "vocabulary")}
        return estimate(command.config, command.inputs["corpus"], **more, progress=progress)
    trained = run_training(given, progress)
    if trained is None:
        return None
    command, model, metrics = trained
    output = command.outputs["output"]
    size = {"vocabulary_size": len(model.vocabulary), "vector_size": model.vectors.shape[1]}
    metrics = {"output": str(output)} | size | metrics

    def print_text(_: object) -> None:
        (print_values if verbose else print_training)(metrics | {"settings": model.settings.in_effect()})
        _warn_of_lost_parts(command.outputs, model)
        if output == OUTPUT:
            say(
                f"{OUTPUT} has only words and vectors; -o {OUTPUT.with_suffix('.safetensors')} {SAFETENSORS_ALSO_KEEPS}"
            )

    return metrics, print_text


def run_training(given: Mapping[str, Any], progress: Report) -> tuple[Command, Any, dict[str, Any]] | None:
    """Train a model or a classifier, new or resumed, and save it with the other outputs.

    Args:
        given: The options and arguments of the command.
        progress: See `train`.

    Returns:
        The run, the Model or Classifier, and measurements of the run; None in the ranks of an MPI job that print
        nothing.
    """
    started = time.perf_counter()
    checkpoint_folders: list[CheckpointFolder] = []
    with join_ranks() as ranks:
        with ranks.collective_errors():
            command = (resumed_run if given["resume"] else new_run)(given, ranks)
        config, folder = command.config, command.inputs["checkpoint"]
        try:
            more = {"replace_checkpoints": given["force"], "ranks": ranks, "progress": progress}
            more["check_items"] = partial(_check_items, command.outputs)
            with open_training(config, **command.inputs, **more) as training:
                if given.get("save_config") and ranks.is_root:
                    files = {"output": command.outputs["output"], "views": command.inputs["views"]}
                    config.save(given["save_config"], **files, force=given["force"])
                checkpoint_folders = training.checkpoint_folders
                training.train(progress)
                model: Any = training.classifier() if config.labels else training.model()
            trained = time.perf_counter()
            with ranks.collective_errors():
                if ranks.is_root:
                    save_all(command.outputs, model, given["force"])
        except Stopped as stopped:
            written = [folder.wait_for_newest() for folder in checkpoint_folders]
            if all(written) and (written or given["resume"]):  # a full disk may have prevented the first checkpoints
                options_of_run = (command.named, given["force"], config.ignore_memory)
                again = resume_command(command_of(config), folder, config.corpus, *options_of_run)
                stopped.add_note(f"resume with: {again}")
            elif not folder and os.isatty(STDERR):  # sys.stderr may still belong to the progress bar
                stopped.add_note("nothing was saved; with --checkpoint DIR, a run can be resumed after Ctrl-C")
            raise
    now = time.perf_counter()
    if not ranks.is_root:
        return None
    before = sum(each.seconds for each in command.inputs.get("resume_from", {}).values())
    seconds = {"save": now - trained, "total": now - started + before}
    return (
        command,
        model,
        {
            **model.metrics,
            "seconds": model.metrics["seconds"] | seconds,
            "peak_memory_bytes": memory.peak_resident_bytes(),
            "settings": model.settings.as_dict(),
        },
    )


def _check_items(
    files: Mapping[str, Path], vocabulary: Vocabulary, contexts: Vocabulary | None = None, tags: Words | None = None
) -> None:
    """Raise W2VError before training if an output cannot store the white space in an item, a context or a tag."""
    registry.check_words(files["output"], vocabulary.words)
    if "contexts" in files and contexts:
        registry.check_words(files["contexts"], contexts.words)
    if "save_documents" in files and tags:
        registry.check_words(files["save_documents"], tags)
    if "save_vocab" in files:
        vocabulary.check_separable(files["save_vocab"])


def _warn_of_lost_parts(files: Mapping[str, Path], model: Model) -> None:
    output = files["output"]
    lost, has_two_views = registry.lost_parts(output, model.to_vector_file()), len(model.views) > 1
    if "documents" in lost and "save_documents" not in files:
        say(f"{output} has no documents: write .safetensors to keep them, or their vectors with --save-documents FILE")
    if "labels" in lost and "contexts" not in files and not model.settings.loss_class.no_word_outputs:
        say(f"{output} has no contexts: write .safetensors to keep them, or their vectors with --contexts FILE")
    if has_two_views and "ngrams" not in lost and lost:
        size = pluralise(model.views["subwords"].settings.vector_size, "value")
        say(f"{output} has only the view of subwords, of {size}: write .safetensors for both views")
    if "ngrams" in lost:
        others = "" if has_two_views else " or .ft.bin"
        say(f"{output} has no n-grams, so unknown words have no vector: write .safetensors{others} for them")


def save_all(files: Mapping[str, Path], model: Any, force: bool) -> None:
    """Write the outputs of a run: the model or classifier and, if requested, its vocabulary, documents and plot.

    Args:
        files: The outputs by parameter; see `Command`.
        model: The Model, or a Classifier, which has no other outputs.
        force: Whether to replace existing files.
    """
    output = files["output"]
    written: list[tuple[Path, outputs.Write]] = [(output, outputs.saver(model))]
    if "contexts" in files:
        written.append((files["contexts"], outputs.saver(model.contexts)))
    if "save_vocab" in files:
        written.append((files["save_vocab"], outputs.saver(model.vocabulary, model.metrics["sentences"])))
    if "save_documents" in files:
        written.append((files["save_documents"], outputs.saver(model.documents)))
    if "plot" in files:
        from w2v._plotting.curves import run_picture

        # The plot is drawn when its turn comes, after the model is saved.
        written.append((files["plot"], lambda path, force: run_picture(model, output.name).save(path, force=force)))
    outputs.save(written, force)


@click.command(cls=options.TrainingCommand)
@options.CORPUS
@options.file_option(
    "-o",
    "--output",
    help="File for the best model, as in w2v train. Its settings go to a file of the same name with the extension "
    f".toml, and the trials to a file with .tune.json.  {DEFAULT_OUTPUT}",
)
@click.option("--time", default="10m", show_default=True, help="Total time limit, such as 30s, 10m or 2h.")
@options.file_option("--questions", multiple=True, help="Score trials by these analogy questions. May be repeated.")
@options.file_option("--pairs", multiple=True, help="Score trials by these scored word pairs. May be repeated.")
@options.number_option("--max-size", help="Also try other vector sizes, up to N.  [default: only --vector-size]")
@options.TRAINING_SETTINGS
@JOIN_PHRASES
@click.option("--classify", is_flag=True, help="Tune a classifier, as w2v classify trains it.")
@click.option(
    "--metric",
    cls=Option,
    default=Metric.text,
    callback=lambda _, __, value: Metric(value).text,  # raises SettingsError
    help="With --classify: the score of the trials: accuracy, macro_f1, f1, f1:LABEL, precision_at_recall:0.8 or "
    "recall_at_precision:0.8. The last two may end with :LABEL, too.",
)
@options.rare_option("--held-out", type=FILE, help="With --classify: score the trials on these texts with labels.")
@options.number_option(
    "--folds",
    common=False,
    default=3,
    help="With --classify, without --held-out: the number of parts of the cross-validation.",
)
@options.options_for(LabelOptions, common=False)
@click.option("--resume", is_flag=True, help="Continue with the trials of the same command after it was stopped.")
@IGNORE_MEMORY
@options.READING
@options.WRITING
def tune(
    corpus: tuple[str, ...],
    output: Path | None,
    questions: tuple[Path, ...],
    pairs: tuple[Path, ...],
    phrases: bool | str | None,
    classify: bool,
    resume: bool,
    force: bool,
    progress: ProgressPrinter,
    **given: Any,
) -> Result:
    """Search for good settings for a CORPUS, and train with the best.

    The search uses successive halving and starts with the defaults. It tunes model, loss, window, negative, sample,
    vectors, alpha, min_alpha and epochs, except the settings that you give as options. The score of a trial is the mean
    of its accuracies on analogy questions (--questions) and its correlations with word pairs (--pairs). If you give
    neither, the end of the text is held out for scoring: the score is how often the mean vector of the words around a
    gap is nearer to the word in the gap than to a random word. Finally, w2v trains a model on the whole text with the
    best settings.

    With --classify, w2v searches for good settings of a classifier: pooling, word_ngrams, subwords, epochs, alpha,
    smoothing and min_count, except the settings that you give. The defaults are those of w2v classify.

    \b
    w2v tune train.txt --classify -o best.safetensors --time 2m --metric macro_f1
    w2v tune corpus.txt -o best.safetensors --questions questions-words.txt --pairs wordsim.txt
    w2v tune corpus.txt -o best.safetensors --time 1h --max-size 300 --model cbow
    w2v tune corpus.txt -o best.safetensors --phrases
    w2v tune corpus.txt -o best.safetensors --resume
    w2v train --config best.toml -o again.safetensors
    """
    chosen, reading = options.given_settings(given), options.given_options(ReadingOptions, given)
    tuning.seconds_of(given["time"])  # raises SettingsError now, before the trials of an earlier run are removed
    label_names = ("metric", "held_out", "folds", *options_of(LabelOptions))
    if classify:
        others = ("questions", "pairs", "max_size", "phrases", "views", "ignore_memory")
        no_effect = (*others, *(options_of(Settings).keys() - options.CLASSIFIER_SETTINGS), *options.SETTING_FLAGS)
        options.refuse_together("--classify", (*no_effect, "cache", "item", "session", "order"))
        return _tune_classifier(corpus, output, chosen | reading, given, resume, force, progress)
    options.refuse_without("--classify", label_names)
    given = {name: value for name, value in given.items() if name not in label_names}
    settings = options.chosen_settings(given, tuning.values_to_try(chosen))
    output = output or default_output(settings, given["views"])
    given["views"] = one_view_for_fasttext(given["views"] or ViewOptions.views, output)
    config, state = output.with_suffix(".toml"), output.with_suffix(".tune.json")
    files = [*map(Path, options.corpus_of(corpus).files)]
    inputs = [*files, *questions, *pairs, *([Path(phrases)] if isinstance(phrases, str) else [])]
    check_outputs([("-o", output), ("-o", config)], force, inputs)
    for name, value in {"corpus": list(corpus), "output": str(output), "phrases": phrases}.items():
        toml_line(config, name, value)  # raises W2VError now, and not after the trials, for a name that is not UTF-8
    _prepare_trials_file(state, resume, force, inputs)
    search = partial(tuning.tune, files, questions=questions, pairs=pairs, phrases=phrases or False)
    more = {name: given[name] for name in ("time", "max_size", "ignore_memory", "views")}
    result = _search(search, state, progress, **more, **reading, **chosen)
    model = result.model
    used = RunConfig(
        corpus=corpus,
        settings=settings_to_repeat([view.settings for view in model.views.values()]),
        reading=ReadingOptions(**reading),
        phrases=phrases or False,
    )
    views = TWO_VIEWS if len(model.views) > 1 else ONE_VIEW
    save = partial(used.save, output=output, views=views)
    outputs.save([(output, outputs.saver(model)), (config, lambda path, force: save(path, force=force))], force)
    metrics = {"output": str(output), "config": str(config), **_figures(result, state)}
    metrics["peak_memory_bytes"] = memory.peak_resident_bytes()

    def print_text(_: object) -> None:
        print_values(metrics)
        _warn_of_lost_parts({"output": output}, model)

    return metrics, print_text


def _tune_classifier(
    corpus: tuple[str, ...],
    output: Path | None,
    chosen: dict[str, Any],
    given: Mapping[str, Any],
    resume: bool,
    force: bool,
    progress: ProgressPrinter,
) -> Result:
    """Tune a classifier, save it, and return the result of the command with the `w2v classify` that repeats it."""
    output = output or OUTPUT.with_suffix(MODEL_SUFFIX)
    train, held_out = options.corpus_of(corpus), given["held_out"] and options.corpus_of([str(given["held_out"])])
    state, inputs = output.with_suffix(".tune.json"), [*map(Path, train.files + (held_out.files if held_out else []))]
    outputs.check_model(output, force, inputs, "with -o")
    options.check_classifier_output(output)
    _prepare_trials_file(state, resume, force, inputs)
    labels, reading = (options.given_options(kind, given) for kind in (LabelOptions, ReadingOptions))
    how, fixed = (LabelOptions(**labels), ReadingOptions(**reading)), labels | chosen
    texts = read_labelled(train, *how)
    search = partial(tune_classifier, *texts, held_out=read_labelled(held_out, *how) if held_out else None)
    more = {name: given[name] for name in ("metric", "folds", "time")}
    not_passed_on = ("labels", "column", "encoding", "errors")  # read_labelled has used them
    more |= {name: value for name, value in fixed.items() if name not in not_passed_on}
    result = _search(search, state, progress, **more)
    outputs.save([(output, outputs.saver(result.model))], force)
    words = options.as_words(fixed | result.changed, LabelOptions, ReadingOptions, Settings)
    metrics = {"output": str(output), "metric": given["metric"], **_figures(result, state)}
    return metrics | {"command": join_command(["w2v", "classify", *corpus, *words])}


def _figures(result: tuning.Tuned, state: Path) -> dict[str, Any]:
    """Return the values of a result of tuning to print."""
    figures = {"state": str(state), "trials": result.trials, "score": result.score}
    figures |= {"default_score": result.default_score, "changed_settings": result.changed}
    return figures | {"seconds": result.seconds}


def _search(search: Callable[..., tuning.Tuned], state: Path, progress: ProgressPrinter, **given: Any) -> tuning.Tuned:
    """Run a search that stores its trials in a file. If it is stopped, say how to resume it."""
    try:
        return search(state=state, on_trial=None if progress.quiet else print_trial, progress=progress, **given)
    except Stopped as stopped:
        if state.exists():
            stopped.add_note("to resume, repeat the command with --resume")
        raise


def _prepare_trials_file(path: Path, resume: bool, force: bool, inputs: list[Path]) -> None:
    """Check that the file of trials can be written. Unless `resume` is True, remove the trials of an earlier run.

    Raises:
        W2VError: If the file exists and neither `resume` nor `force` is True, or if it cannot be written.
    """
    if path.is_file() and not (resume or force):
        raise W2VError(f"{path} exists: add --resume to continue with its trials, or --force to start again")
    outputs.check(path, resume or force, inputs)
    if not resume:
        path.unlink(missing_ok=True)


@click.command(cls=options.TrainingCommand)
@options.CORPUS
@options.file_option("-o", "--output", required=True, metavar="DIR", help="Folder for the models.")
@CHECKPOINTS
@click.option(
    "--resume",
    is_flag=True,
    help="Go on after the same command was stopped: keep finished models, and resume the others from --checkpoint.",
)
@options.file_option(
    "--tag-words",
    help="Train one model instead. Each word of this file gets a vector for each CORPUS, such as gay_1990s.",
)
@options.TRAINING_SETTINGS
@options.SETTING_FLAG_OPTIONS
@JOIN_PHRASES
@IGNORE_MEMORY
@options.READING
@options.WRITING
def slices(corpus: tuple[str, ...], output: Path, force: bool, resume: bool, progress: Report, **given: Any) -> Result:
    """Train a model of each CORPUS, so that their vectors can be compared.

    A CORPUS is a file or a folder, such as all texts of a period. It gives the model its name. First, w2v trains a
    model of all texts, the compass. Then it trains the vectors of each text, while the output rows of the compass stay
    unchanged (w2v train --init compass.safetensors --freeze outputs). So all models share one coordinate system.

    A model has the words of the compass that its text contains at least --min-count times. The other words have no
    vector in it: they would keep the vector of the compass, as if they had not changed.

    With --tag-words, w2v trains one model of all texts, DIR/tagged.safetensors. The chosen words have a vector for each
    text, and all forms of a word share its output row (temporal referencing). Other words have one vector.

    \b
    w2v slices 1990s.txt 2000s.txt 2010s.txt -o decades
    w2v slices 1990s/ 2010s/ -o decades --checkpoint states
    w2v slices 1990s/ 2010s/ -o decades --checkpoint states --resume
    w2v slices 1990s/ 2010s/ -o decades --tag-words words.txt
    """
    paths = [Path(name) for name in corpus]
    chosen = options.given_settings(given) | options.given_options(ReadingOptions, given)
    others = ("checkpoint", "phrases", "tag_words", "ignore_memory", "views")
    chosen |= {name: given[name] for name in others if given[name]}
    if chosen.get("phrases") is True:
        raise SettingsError("--phrases needs FILE here: write it with w2v phrases --save-phrases, from all texts")
    chosen["checkpoint_every"] = given["checkpoint_every"] or DEFAULT_INTERVAL
    files = slicing.model_files(paths, output, bool(given["tag_words"]))
    inputs = [*options.corpus_of(corpus).files, *filter(None, [given["phrases"], given["tag_words"]])]
    if output.is_dir():
        for path in files:
            outputs.check(path, True, map(Path, inputs))  # `slices` itself refuses to replace a model
    try:
        result = slicing.slices(paths, output, resume=resume, force=force, progress=progress, **chosen)
    except Stopped as stopped:
        if given["checkpoint"] or any(path.exists() for path in files):
            stopped.add_note("to resume, repeat the command with --resume")
        raise
    return result, print_slices
