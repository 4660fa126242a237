"""`train`, `train_classifier` and `resume`: describe a run, open it, train each view, and return what was trained.

Two views are two ordinary runs with all threads and ordinary checkpoints, one after the other, over one reading of the
text. `open_training` is where every training begins: these functions, `slices` and the command line call it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Self

from numpy.typing import ArrayLike

from w2v._errors import SettingsError, W2VError, one_line, pluralise
from w2v._formats import bfloat16
from w2v._formats.native import header_bytes
from w2v._formats.vector_file import WORD_VIEW
from w2v._graph.graph import Graph, is_graph
from w2v._graph.pairs import PairSource
from w2v._graph.walks import WalkOptions
from w2v._losses import registry
from w2v._losses.registry import Settings
from w2v._options import options_of, refuse_unknown, with_parameters_of
from w2v._progress import Progress, Report, notebook_bar
from w2v._settings import RENAMED, Freeze, Preset, ViewOptions, Views
from w2v._system import memory
from w2v._system.files import PathLike
from w2v._system.version import __version__
from w2v._text.corpus import Corpus, Source
from w2v._text.idstore import ReadingOptions
from w2v._text.labels import LabelledTexts, LabelOptions, with_labels
from w2v._text.tagging import TaggedTexts
from w2v._text.text_checks import warn_about_text
from w2v._text.vocabulary import Vocabulary
from w2v._training.checkpoint import Checkpoint
from w2v._training.checkpoint_folder import CheckpointFolder, Folders, latest_checkpoints, run_folder
from w2v._training.classifier import Classifier
from w2v._training.communicator import OneProcess
from w2v._training.config import RunConfig
from w2v._training.distributed import DistributedRun
from w2v._training.labels import DistributedLabelRun, LabelledExamples, LabelRun, initialise_labels
from w2v._training.model import Model, View
from w2v._training.pairs import PairExamples, PairRun
from w2v._training.reading import ReadText, read_text
from w2v._training.run import Run
from w2v._training.schedule import NEVER
from w2v._training.source import Vocab, open_source, views_of_source
from w2v._training.start import initialise
from w2v._training.views import ONE_VIEW, TWO_VIEWS, choose_views, settings_of_views, whole_settings
from w2v._vectors.keyed import KeyedVectors

METRICS_BYTES = 4096  # upper bound of the space for a model's metrics in the header of its file
FLOAT_BYTES = 4

log = logging.getLogger("w2v")


class Training:
    """The training of a model: a run for each view.

    Attributes:
        runs: The runs that are not finished, by view.
        checkpoint_folders: The folders that checkpoints are written to; empty without checkpoints.
        resources: Closes the text and the folders at the end of the `with` block.
    """

    def __init__(self, runs: dict[str, Run], folders: Folders | None = None) -> None:
        self.runs = runs
        self.checkpoint_folders = [run.checkpoint_folder for run in runs.values() if run.checkpoint_folder]
        self._folders = folders
        self._views: dict[str, Any] = {}  # a View each, or a Classifier
        self.resources = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        """Close the files. Raise W2VError if the file of ids was truncated during the training."""
        self.resources.__exit__(*error)

    def write_first_checkpoints(self) -> None:
        """Write a checkpoint of each view. With several ranks, all of them must call this method.

        Raises:
            W2VError: One of them cannot be written. Checkpoints of the other views alone could not be resumed.
        """
        checkpoints = [run.make_checkpoint() for run in self.runs.values()]
        for folder, checkpoint in zip(self.checkpoint_folders, checkpoints, strict=False):
            folder.write_first(checkpoint)
        for folder in self.checkpoint_folders:  # only now can the run be resumed
            folder.remove_obsolete()

    def train(self, report: Report | None = None) -> None:
        """Train each view to its end; see Run.train.

        Args:
            report: Called regularly with the progress of the whole training.
        """
        report = report or notebook_bar()
        words = {name: run.plan.epochs * run.tokens for name, run in self.runs.items()}
        peak_memory, before = max(run.peak_memory for run in self.runs.values()), 0
        for name in words:
            run = self.runs.pop(name)  # so that its threads and copies are freed before the next view
            part = report
            if len(words) > 1:
                part = report and _part_of(report, name, before, sum(words.values()), peak_memory)
                if run.settings.stop_early:  # the scores that the run logs are of this view
                    log.info("training the view of %s", name)
            run.train(part)
            self._views[name] = run.view()
            before += words[name]
        if self._folders and all(folder.wait_for_newest() for folder in self.checkpoint_folders):
            self._folders.remove_obsolete()

    def model(self) -> Model:
        """Return the trained model of words."""
        return Model(self._views)

    def classifier(self) -> Classifier:
        """Return the trained classifier."""
        (classifier,) = self._views.values()
        assert isinstance(classifier, Classifier)
        return classifier


def _part_of(report: Report, view: str, before: int, total: int, memory: int) -> Report:
    """Return a progress function that reports the training of a view as a part of the whole training.

    Args:
        report: Receives the progress of the whole training.
        view: The name of the view.
        before: The number of words that earlier views train.
        total: The number of words that all views train.
        memory: The estimated peak memory of the whole training.
    """

    def report_part(progress: Progress) -> None:
        done = before + progress.done
        left = (total - done) / progress.rate if progress.rate else None
        report(replace(progress, done=done, total=total, seconds_left=left, memory=memory, view=view))

    return report_part


def open_training(
    config: RunConfig,
    corpus: Source | Corpus | Graph | PairSource | TaggedTexts | LabelledTexts,
    *,
    views: Views = "auto",
    source: Model | KeyedVectors | Classifier | None = None,
    vocabulary: Vocabulary | None = None,
    resume_from: Mapping[str, Checkpoint] | None = None,
    checkpoint: PathLike | CheckpointFolder | None = None,
    replace_checkpoints: bool = False,
    check_items: Callable[..., None] | None = None,
    held_out: Source | Corpus | LabelledTexts | None = None,
    ranks: OneProcess | None = None,
    progress: Report | None = None,
) -> Training:
    """Read the text of a model, and prepare a run for each view. Use the result in a `with` block.

    Args:
        config: The description of the run. For a resumed run, the result of `resumed_config`.
        corpus: The text.
        views: See `train`.
        source: The model to continue, or the vectors to initialise words with; see `open_source`.
        vocabulary: The words to train; by default, the words of the text.
        resume_from: The checkpoints to resume from; see `latest_checkpoints`.
        checkpoint: The folder for checkpoints.
        replace_checkpoints: Whether checkpoints of another run may be removed.
        check_items: A function that raises W2VError if an output cannot store the items of a vocabulary. For pairs, it
            gets the vocabularies of inputs and contexts, and for documents also `tags`.
        held_out: Texts that score a classifier after each epoch; see `train_classifier`.
        ranks: The ranks that train; by default, only this process.
        progress: See `train`.

    Raises:
        W2VError: A text, model or folder cannot be used, or the matrices do not fit in memory.
    """
    ranks, resumed, folders = ranks or OneProcess(), resume_from or {}, None
    with ExitStack() as stack:
        with ranks.collective_errors():
            views = _views_before_reading(config, corpus, views, source, resumed)
            if checkpoint is not None and ranks.is_root:
                folders = Folders(checkpoint, config, resumed, replace_checkpoints, stack)
        ranks.assert_same({"views": views})
        workers = config.settings.workers or ranks.default_workers()
        config = replace(config, settings=replace(config.settings, workers=workers))
        *_, settings_of_last = settings_of_views(views, config.settings).values()  # items may not suit its n-grams
        more: dict[str, Any] = {"ranks": ranks, "progress": progress}
        text = read_text(replace(config, settings=settings_of_last), corpus, checkpoints=[*resumed.values()], **more)
        stack.enter_context(text.store)
        if held_out is not None:
            text.held_out = read_text(config, held_out, checkpoints=[], **more)
            stack.enter_context(text.held_out.store)
        examples = _examples(text, config, source, resumed.get(WORD_VIEW))
        with ranks.collective_errors():
            config = replace(config, corpus=tuple(text.corpus.files if text.corpus else ()))
            if not resumed:
                views = choose_views(views, config.settings, text.types)
                config = examples.choose(config) if isinstance(examples, LabelledExamples) else config
            settings = settings_of_views(views, config.settings)
            settings |= {name: each.settings for name, each in resumed.items()}
            folders_of_views = folders.of([*settings]) if folders else {}
            if folders:
                text.identify()
                for each in resumed.values():
                    text.check_same_text(each)
        runs = start_runs(
            config,
            settings,
            text,
            examples=examples,
            source=source,
            vocabulary=vocabulary,
            check_items=check_items,
            resume_from=resumed,
            folders=folders_of_views,
            best_folders=folders_of_views or _best_folders([*settings], config, stack),
        )
        training = Training(runs, folders)
        with ranks.collective_errors():
            if folders:
                folders.set_others_aside()
        if len(runs) > 1 and checkpoint is not None and not resumed:
            with ranks.collective_errors():
                training.write_first_checkpoints()
        training.resources = stack.pop_all()
    return training


def _views_before_reading(
    config: RunConfig, corpus: Any, views: Views, source: Any, resumed: Mapping[str, Checkpoint]
) -> Views:
    """Return the views as far as they are known before the text is read, and raise W2VError now for what cannot work.

    The arguments are those of `open_training`.
    """
    # A name that comes from a continued model belongs to the loss that the model was loaded with.
    known = source.settings.objective if isinstance(source, Model) else None
    objective = config.settings.objective
    if not resumed and objective not in (None, known if isinstance(known, str) else None):
        registry.find(objective)  # imports the user's loss; raises SettingsError if it is missing
    bfloat16.dtype_of(config.settings.storage)  # raises W2VError if the package ml_dtypes is missing
    views = ViewOptions(views=views).views
    views = TWO_VIEWS if len(resumed) > 1 else ONE_VIEW if resumed else views_of_source(views, source)
    settings_of_views(views, config.settings)  # raises SettingsError
    has_tags = config.tags is not None or isinstance(corpus, LabelledTexts)
    if isinstance(source, Model) and config.settings.documents and not has_tags:
        raise SettingsError("a model of documents is continued with --tags (tags=): numbers of lines are not unique")
    for each in resumed.values():
        if each.version != __version__:
            writer = f"the checkpoint was written by w2v {each.version}"
            log.warning("%s, this is %s: last bits may differ", writer, __version__)
    return views


def _examples(
    text: ReadText, config: RunConfig, source: Any, checkpoint: Checkpoint | None
) -> LabelledExamples | PairExamples | None:
    """Return the labelled texts or the pairs to train; None if words predict words. See `start_runs`."""
    if config.labels:
        return LabelledExamples.of(text, config, source, checkpoint)
    if config.pairs:
        view = source.views[WORD_VIEW] if isinstance(source, Model) else source
        return PairExamples.of(text, config, view, checkpoint)
    return None


def _best_folders(names: Sequence[str], config: RunConfig, stack: ExitStack) -> dict[str, CheckpointFolder]:
    """Return temporary folders for the best checkpoint of each view, if the run may stop early."""
    if not config.settings.stop_early:
        return {}
    temporary = Path(stack.enter_context(TemporaryDirectory(prefix="w2v-")))
    return {name: stack.enter_context(CheckpointFolder(temporary / name, NEVER)) for name in names}


def start_runs(
    config: RunConfig,
    settings: Mapping[str, Settings],
    text: ReadText,
    *,
    share: float = 1.0,
    examples: LabelledExamples | PairExamples | None = None,
    source: Model | KeyedVectors | Classifier | None = None,
    vocabulary: Vocabulary | None = None,
    check_items: Callable[..., None] | None = None,
    resume_from: Mapping[str, Checkpoint] = MappingProxyType({}),
    folders: Mapping[str, CheckpointFolder] = MappingProxyType({}),
    best_folders: Mapping[str, CheckpointFolder] = MappingProxyType({}),
) -> dict[str, Run]:
    """Start a run for each view of a model.

    Args:
        config: The description of the runs, except for their settings.
        settings: The settings of each view, by name.
        text: The text.
        share: The share of the text, from its start, to train on.
        examples: The texts of a classifier, or the pairs to train; None if words predict words.
        source, vocabulary, check_items, resume_from: See `open_training`.
        folders: The folder for the checkpoints of each view; empty without checkpoints.
        best_folders: The folder that keeps the best checkpoint of each view, for early stopping.

    Returns:
        The runs, by name of the view.
    """
    ranks, runs = text.ranks, dict[str, Run]()
    for name, settings_of_view in settings.items():
        view_config = replace(config, settings=settings_of_view)
        with ranks.collective_errors():
            view = source.views[name] if isinstance(source, Model) else source
            checkpoint = resume_from.get(name)
            if isinstance(examples, LabelledExamples):
                initial = initialise_labels(view_config, examples, checkpoint)
            elif examples:
                initial = examples.initialise(view_config, text.types, checkpoint)
            else:
                assert not isinstance(view, Classifier)
                initial = initialise(view_config, text, view, vocabulary, checkpoint)
            if check_items and (initial.tags or not text.types.is_text):
                of_pairs = (examples.inputs, examples.contexts) if isinstance(examples, PairExamples) else None
                check_items(*(of_pairs or [initial.vocabulary]), tags=initial.tags)
            if not runs and config.freeze == "outputs" and isinstance(view, View) and name not in resume_from:
                found = f"{len(initial.vocabulary):,} of {len(view.vocabulary):,} words of the model occur in the text"
                least = pluralise(settings_of_view.min_count, "time")
                log.info("%s at least %s; the others have no vector", found, least)
        other_memory = later_memory = 0
        if runs:  # the matrices of an earlier view stay until the end, and not all of their pages are in use yet
            other_memory = max(0, max(run.peak_memory for run in runs.values()) - memory.resident_bytes())
            later_memory = FLOAT_BYTES * config.settings.vector_size * len(initial.vocabulary)
        kind: Any = DistributedRun if ranks.size > 1 else Run
        if isinstance(examples, LabelledExamples):
            kind = partial(DistributedLabelRun if ranks.size > 1 else LabelRun, examples)
        elif examples:
            kind = partial(PairRun, examples)
        run: Run = kind(
            view_config,
            initial,
            text,
            share=share,
            other_memory=other_memory,
            later_memory=later_memory,
            checkpoint_folder=folders.get(name),
            best_folder=best_folders.get(name),
        )
        with ranks.collective_errors():
            # Raise W2VError now, instead of after training, if the header of the model file would be too large.
            header = {"settings": json.dumps(run.settings.as_dict()), "metrics": " " * METRICS_BYTES}
            header_bytes("the model", run.parameters | run.plan.loss.tensors, header)
        if name in resume_from:
            run.restore(resume_from[name])
        elif ranks.is_root and not runs and share == 1 and not examples:
            epochs = None if initial.parameters else config.settings.epochs
            warn_about_text(text.types, epochs, config.text, initial.vocabulary.words)
        runs[name] = run
    return runs


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """The keyword arguments of `train` and of `train_classifier`: options of a RunConfig, and objects in memory."""

    init: KeyedVectors | Model | PathLike | None = None
    freeze: Freeze | None = RunConfig.freeze
    checkpoint: PathLike | CheckpointFolder | None = None
    checkpoint_every: str = RunConfig.checkpoint_every
    notes: Mapping[str, Any] | None = None
    ignore_memory: bool = RunConfig.ignore_memory
    progress: Report | None = None
    communicator: OneProcess | None = None


@dataclass(frozen=True, kw_only=True)
class Arguments(RunArguments, ReadingOptions, WalkOptions, ViewOptions, Settings):
    """The keyword arguments of `train`."""

    settings: Settings | None = None
    preset: Preset | None = None
    graph: bool = False
    tags: str | Iterable[Any] | None = None
    negatives_from: str | None = None
    vocabulary: Vocabulary | None = None
    continue_from: Model | PathLike | None = None
    vocab: Vocab = RunConfig.vocab
    phrases: bool | PathLike = RunConfig.phrases


@with_parameters_of(Arguments)
def train(corpus: Source | PairSource, **given: Any) -> Model:
    """Train word vectors, and return a model.

    Args:
        corpus: The text to train on. One of: a path or a list of pathlib.Path (files, folders, globs, "-"; compressed
            or not); an iterable (list, Series, ...) of texts or of lists of words; a table, such as a DataFrame, with
            the argument `column`. Texts are split into words according to `tokenize`. Missing texts (None, NaN) are
            skipped and counted. An iterable is read once.
        settings: A Settings object. Its fields can be given as keyword arguments instead, such as vector_size=300;
            `w2v train --help` describes them. `objective` may be a Loss object.
        preset: Other defaults for the settings that are not given: "items" or "graph", as --preset.
        graph: Whether the files of the corpus are a graph, to train on random walks; see w2v._graph.readers.read_graph.
            The corpus may also be a graph of scipy.sparse or networkx. The default of preset is then "graph".
        weighted, directed, delimiter, walk_length, num_walks, p, q: The options of the walks; see WalkOptions.
        tags: With `documents`: the tags of the texts, as the name of a column or as a list of a tag, or a list of tags,
            for each text. Texts may share tags. By default, the tag of a text is its number, from 0.
        views: "words" for a model of one view, "words+subwords" for two; see --views.
        vocabulary: The words to train, instead of the words of the corpus.
        continue_from: A model to continue, or its .safetensors file. The run starts with the matrices of the model and
            uses the model's settings unless you give others. `workers` is not taken from a file, and `alpha` is at most
            0.01 unless you give another, so that the model keeps what it has learnt.
        vocab: "old" keeps the words, counts and tree of the continued model. "union" adds the words and counts of the
            corpus; new words start like the words of a new model.
        init: KeyedVectors, or a file in any format that w2v.load reads. Matching words start with these vectors. All
            other words and the output layer start with new values.
        freeze: What stays unchanged during training. "inputs": the vectors of the words in `init`. "outputs":
            the output rows of the model in `init`, such as a model of all periods. The run then takes its settings and
            words from this model, without the words that occur less than min_count times in the corpus. All models that
            are trained in this way share the coordinate system of the model.
        phrases: A file written by Phrases.save, to join these phrases; or True to find phrases in the corpus with the
            default PhraseOptions.
        cache, encoding, errors, max_types, column: See read_corpus.
        strip_markup, normalize, digits, lower, tokenize: See read_corpus. With continue_from or init, they default to
            the options of the model.
        checkpoint: A folder for the last two checkpoints of the run, for `resume`. A checkpoint is written at every
            interval, at the end, and if an exception ends the run.
        checkpoint_every: The interval: "30s", "10m", "2h", "1epoch", "never", or "500chunks" of at most 16,384 words.
            With stop_early, a checkpoint is also written after each epoch, except with "never".
        notes: JSON values that are stored in the checkpoints.
        ignore_memory: Whether to train even if memory looks insufficient.
        progress: A function that is called regularly with a `Progress` of phase "read" (then "count" and "join" for
            phrases), and then "train".
        communicator: The ranks of an MPI job to train with, from w2v._training.communicator.join_ranks; see
            docs/cluster.md. Each rank returns the model. Rank 0 writes the checkpoints.

    Returns:
        The trained model.

    Raises:
        W2VError: The corpus cannot be used, or the matrices do not fit in memory.
        SettingsError: A setting is impossible.
    """
    refuse_unknown(given, [each.name for each in fields(Arguments)], RENAMED)
    ranks, progress = given.pop("communicator", None) or OneProcess(), given.pop("progress", None)
    tags = given.pop("tags", None)
    given |= {"tags": tags} if isinstance(tags, str) else {}
    opened: dict[str, Any] = {name: given.get(name) for name in ("vocabulary", "checkpoint")}
    views = given.get("views", ViewOptions.views)
    with ranks.collective_errors():
        if (settings := given.pop("settings", None)) is not None:
            if others := sorted(given.keys() & {*options_of(Settings)}):
                raise SettingsError(f"give {others[0]} inside settings, not in addition to it")
            if given.get("preset") is not None:
                raise SettingsError("preset has no effect with settings, which have all values")
            if given.get("continue_from") is not None:
                raise SettingsError("continue_from has its own settings: give only the settings to change")
            given |= settings.as_dict(computed=False) | {"objective": settings.objective}
        given["notes"] = dict(given.get("notes") or {})
        source = open_source(given)
        if isinstance(corpus, PairSource):
            given["pairs"] = True
        elif is_graph(corpus):
            given["graph"] = True
        config = RunConfig.from_options(given, source)
        corpus = _with_tags(corpus, config, tags)
    opened |= {"views": views, "source": source, "ranks": ranks, "progress": progress}
    with open_training(config, corpus, **opened) as training:
        training.train(progress)
        return training.model()


def _with_tags(corpus: Any, config: RunConfig, tags: Any) -> Any:
    """Return the texts with a list of tags, and other texts as they are.

    Raises:
        SettingsError: The run has no documents.
    """
    if tags is None or isinstance(tags, str):
        return corpus
    if not config.settings.documents:
        raise SettingsError("--tags (tags=) has no effect without --documents (documents=)")
    return LabelledTexts.of_documents(corpus, tags, config.reading)


@dataclass(frozen=True, kw_only=True)
class PairArguments(Arguments):
    """The keyword arguments of `train_pairs`."""

    weights: Iterable[Any] | None = None


@with_parameters_of(PairArguments)
def train_pairs(pairs: Any, **given: Any) -> Model:
    """Train inputs to predict their contexts, and return a model.

    `model.wv` are the vectors of the inputs, and `model.contexts` those of the contexts.

    Args:
        pairs: Pairs (input, context) or triples (input, context, weight), where a weight of 3 is the same as three
            pairs. One of: an iterable; a table with these columns, such as a DataFrame; a scipy.sparse matrix of inputs
            × contexts; or files, as for `w2v train --pairs`. Names are texts or whole numbers.
        weights: The weights of an iterable of pairs, (N,).
        edges: The columns of a table, such as "user,item,plays".
        bipartite: False if inputs and contexts are the same words, with one vocabulary.
        negatives_from: The column of a table with the group of a context, such as its market. Negative sampling draws
            the negatives of a context from its group.

    The other arguments are those of `train`.

    Raises:
        W2VError: The pairs cannot be used, or the matrices do not fit in memory.
        SettingsError: A setting is impossible.
    """
    return train(PairSource(pairs, given.pop("weights", None)), **given)


@dataclass(frozen=True, kw_only=True)
class ClassifierArguments(RunArguments, ReadingOptions, LabelOptions, Settings):
    """The keyword arguments of `train_classifier`."""

    labels: Any = field(default=None, kw_only=False)
    sample_weight: ArrayLike | None = None
    held_out: Any = None
    continue_from: Classifier | PathLike | None = None


@with_parameters_of(ClassifierArguments)
def train_classifier(texts: Source, labels: Any = None, **given: Any) -> Classifier:
    """Train a model that predicts the labels of texts, and return it.

    Args:
        texts: The texts, as for `train`. In files, and in texts without `labels`, words that begin with `label_prefix`
            are the labels of their line. An iterable is read once.
        labels: The labels of the texts: a string, or a list of strings, for each. For a table, the name of its column.
        sample_weight: The weight of each text, 0 or more, relative to the others: weights are scaled to a mean of 1,
            and then are factors of the learning rate. Texts of weight 0 are left out.
        continue_from: A classifier to continue, or its .safetensors file, with more texts and perhaps new labels. The
            run has its settings, unless you give others.
        held_out: With stop_early, texts that score the classifier after each epoch, instead of a tenth of the texts: a
            pair of texts and their labels, or texts with labels as in `texts`.
        init: KeyedVectors, or a file in any format, with vectors for words of an embedded classifier to start with.
        freeze: "inputs" keeps the vectors from `init` unchanged, and trains only the other rows and the output layer.
        column: The column of a table with the texts.
        checkpoint, checkpoint_every, notes, ignore_memory, progress, communicator: See `train`.

    The other arguments are settings, which `w2v classify --help-all` describes.

    Raises:
        W2VError: The texts cannot be used, or the matrices do not fit in memory.
        SettingsError: A setting is impossible.
    """
    refuse_unknown(given, [each.name for each in fields(ClassifierArguments)], RENAMED)
    sample_weight = given.pop("sample_weight", None)
    ranks = given.pop("communicator", None) or OneProcess()
    opened: dict[str, Any] = {"checkpoint": given.get("checkpoint"), "progress": given.pop("progress", None)}
    opened["held_out"] = with_labels(given.pop("held_out", None), given.get("column"))
    corpus: Any = texts
    if isinstance(labels, str):
        given["labels"] = labels
    elif labels is not None:
        corpus = LabelledTexts.of_lists(texts, labels, sample_weight, given.pop("column", None))
    if sample_weight is not None and not isinstance(corpus, LabelledTexts):
        raise SettingsError("sample_weight needs labels: give a list of them")
    given |= {"notes": dict(given.get("notes") or {}), "held_out": opened["held_out"] is not None, "classify": True}
    with ranks.collective_errors():
        source = open_source(given)
        config = RunConfig.from_options(given, source)
    with open_training(config, corpus, views="words", source=source, ranks=ranks, **opened) as training:
        training.train(opened["progress"])
        return training.classifier()


def resume(
    folder: PathLike | Mapping[str, Checkpoint],
    corpus: Source | None = None,
    *,
    labels: Iterable[Any] | None = None,
    tags: Iterable[Any] | None = None,
    sample_weight: Any = None,
    held_out: Any = None,
    phrases: bool | PathLike = False,
    cache: PathLike | None = None,
    notes: Mapping[str, Any] | None = None,
    ignore_memory: bool = False,
    progress: Report | None = None,
    communicator: OneProcess | None = None,
) -> Model | Any:
    """Resume a run from the newest undamaged checkpoint in a folder, and return the model, or the Classifier.

    With one worker, or with `deterministic`, the model has the same bits as if the run had never been stopped. All
    files must be named again: somebody else may have written the checkpoint, so paths in it are never opened.

    Args:
        folder: The `checkpoint` folder of `train`, or the result of `latest_checkpoints`.
        corpus: The same text as before; it may have been moved.
        labels, sample_weight: The same as before, for a classifier of texts in memory; see `train_classifier`.
        tags: The same list as before, for documents in memory; see `train`.
        held_out: The same as before; see `train_classifier`.
        phrases: The same file of phrases, if the run joined the phrases of a file.
        cache: See `train`.
        notes: JSON values that replace the notes of the run.
        ignore_memory: See `train`.
        progress: See `train`.
        communicator: See `train`. The number of ranks may differ from the number before.

    Returns:
        The trained model.

    Raises:
        W2VError: The folder has no undamaged checkpoint, the text has changed, or `corpus` is missing. In the last case
            the message names the text.
    """
    ranks = communicator or OneProcess()
    with ranks.collective_errors():
        checkpoints = folder if isinstance(folder, Mapping) else latest_checkpoints(folder)
        first = checkpoints[WORD_VIEW]
        if corpus is None:
            files = first.config.corpus
            before = f"the run began with {one_line(', '.join(files))}" if files else "it was not a file"
            raise W2VError(f"give the corpus again, because paths in a checkpoint are not used; {before}")
        others = {"notes": first.config.notes if notes is None else dict(notes), "ignore_memory": ignore_memory}
        config = resumed_config(checkpoints, phrases, cache, **others)
        corpus = _with_tags(corpus, config, tags)
    resources: dict[str, Any] = {"checkpoint": run_folder(checkpoints), "ranks": ranks, "progress": progress}
    resources["held_out"] = with_labels(held_out)
    texts = corpus if labels is None else LabelledTexts.of_lists(corpus, labels, sample_weight)
    with open_training(config, texts, resume_from=checkpoints, **resources) as training:
        training.train(progress)
        return training.classifier() if config.labels else training.model()


def resumed_config(
    checkpoints: Mapping[str, Checkpoint], phrases: bool | PathLike, cache: PathLike | None, **overrides: Any
) -> RunConfig:
    """Return the config of a run that resumes from checkpoints.

    No path in a checkpoint is used, because somebody else may have written it.

    Args:
        checkpoints: The checkpoints; see `latest_checkpoints`.
        phrases: The file of phrases, if the run joined the phrases of a file.
        cache: The cache of the text, if any.
        overrides: Other fields of RunConfig, such as the paths that the user names again.
    """
    config = checkpoints[WORD_VIEW].config
    settings = whole_settings([each.settings for each in checkpoints.values()])
    paths: dict[str, Any] = {"corpus": (), "phrases": _resumed_phrases(config.phrases, phrases)}
    reading = replace(config.reading, cache=cache)
    return replace(config, **paths | {"settings": settings, "reading": reading} | overrides)


def _resumed_phrases(original: bool | str, phrases: bool | PathLike) -> bool | str:
    """Return the phrases of a resumed run.

    Raise W2VError if the run began with a file of phrases and `phrases` is not a file. Raise SettingsError if
    `phrases` contradicts a run that began without a file.
    """
    if isinstance(original, bool):
        if phrases in (False, original):
            return original
        joined = "phrases that it found in the text" if original else "no phrases"
        raise SettingsError(f"--phrases (phrases=): the run joined {joined}; leave it out")
    if isinstance(phrases, bool):
        raise W2VError(
            "give the file of phrases again with --phrases (phrases=), because paths in a checkpoint are not used; the "
            f"run began with {one_line(original)}"
        )
    return str(phrases)
