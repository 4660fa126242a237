"""`prepare`: open all inputs that the config of a run names, and return a Run that is ready to train."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from zlib import crc32

from w2v._kernels import step_for
from w2v.errors import NothingToTrain, SettingsError, W2VError, one_line, pluralise
from w2v.evaluation.held_out import GapTest
from w2v.formats import bfloat16, table
from w2v.formats.native import header_bytes
from w2v.graph.graph import Graph, is_graph
from w2v.graph.source import GraphSource
from w2v.graph.walks import walk_store
from w2v.losses import registry
from w2v.losses.registry import Settings, loss_for, view_settings
from w2v.losses.sampling import SamplingLoss, share_outputs
from w2v.progress import Report
from w2v.system import memory
from w2v.system.files import PathLike, temporary_folder
from w2v.system.version import __version__
from w2v.text.columns import has_columns
from w2v.text.corpus import Corpus, Source
from w2v.text.encodings import UTF_8
from w2v.text.idstore import IdStore, TypeCounts, read_corpus
from w2v.text.phrases import Phrases
from w2v.text.tagging import TaggedTexts, join_tagged
from w2v.text.text_checks import warn_about_text
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import Checkpoint
from w2v.training.checkpoint_folder import CheckpointFolder
from w2v.training.communicator import Communicator, collective_errors, is_root
from w2v.training.config import PATHS, RunConfig
from w2v.training.distributed import DistributedRun, merge_types
from w2v.training.early_stopping import EarlyStopping
from w2v.training.identity import check_identity
from w2v.training.initialisation import (
    Initialisation,
    initialise_from_compass,
    initialise_from_model,
    initialise_from_vectors,
)
from w2v.training.model import Model, ViewsModel
from w2v.training.planning import machine_instruction_set
from w2v.training.run import Run
from w2v.training.schedule import NEVER
from w2v.training.views import ViewsCheckpoint, ViewsRun, open_folders, with_views
from w2v.vectors.keyed import KeyedVectors

METRICS_BYTES = 4096  # upper bound of the space for a model's metrics in the header of its file
FLOAT_BYTES = 4
TYPES_PREFIX = "types "  # marks a checksum of the text's types and their counts, instead of the whole text

log = logging.getLogger("w2v")


def prepare(
    config: RunConfig,
    corpus: Source | Corpus | Graph | TaggedTexts,
    *,
    source: Model | ViewsModel | KeyedVectors | None = None,
    vocabulary: Vocabulary | None = None,
    resume_from: Checkpoint | ViewsCheckpoint | None = None,
    checkpoint_folder: CheckpointFolder | None = None,
    replace_checkpoints: bool = False,
    communicator: Communicator | None = None,
    progress: Report | None = None,
) -> Run | ViewsRun:
    """Read the text of a run, initialise its matrices, and return the run. Use the run in a `with` block.

    Each view of the model has a Run of its own over the same text. With one view, this Run is returned.

    Args:
        config: The description of the run. For a resumed run, the result of `resumed_config`.
        corpus: The text.
        source: The model to continue, or the vectors to initialise words with; see `open_source`.
        vocabulary: The words to train; by default, the file that `config` names, or the words of the text.
        resume_from: The checkpoint to resume from.
        checkpoint_folder: The open folder for checkpoints; by default, the folder that `config` names.
        replace_checkpoints: Whether checkpoints of another run may be removed.
        communicator: See `train`.
        progress: See `train`.

    Raises:
        W2VError: A text, model or folder cannot be used, or the matrices do not fit in memory.
    """
    started = time.perf_counter()
    with ExitStack() as stack:
        with collective_errors(communicator):
            settings = config.settings
            # A name that comes from a continued model belongs to the loss that the model was loaded with.
            known = source.settings.objective if isinstance(source, Model | ViewsModel) else None
            if resume_from is None and settings.objective not in (None, known if isinstance(known, str) else None):
                registry.find(settings.objective)  # imports the user's loss; raises SettingsError if it is missing
            bfloat16.dtype_of(settings.storage)  # raises W2VError if the package ml_dtypes is missing
            if vocabulary is None and config.vocabulary is not None:
                vocabulary = Vocabulary.load(config.vocabulary, settings.min_count, settings.max_vocab)
            text = _open_corpus(config, corpus)
            for each in filter(None, _checkpoints_of_views(settings, resume_from).values()):
                _check_file_sizes(each, text)
                if each.version != __version__:
                    writer = f"the checkpoint was written by w2v {each.version}"
                    log.warning("%s, this is %s: last bits may differ", writer, __version__)
            root_folder = None
            if is_root(communicator):
                root_folder = checkpoint_folder or _open_checkpoint_folder(config, resume_from, replace_checkpoints)
            if root_folder:
                stack.enter_context(root_folder)
            if communicator:
                _check_options_for_ranks(config)
            phrases = load_phrases(config.phrases)
        if communicator:
            assert isinstance(text, Corpus)
            communicator.assert_same(_values_all_ranks_share(config, text, resume_from))
            settings = replace(settings, workers=settings.workers or communicator.default_workers())
        with collective_errors(communicator):
            part = text
            if communicator:
                assert isinstance(text, Corpus)
                is_table = has_columns(config.reading.column) or config.reading.item is not None
                part = text.part(communicator.rank, communicator.size, is_table)
            store, joined_phrases = read_words(part, config, phrases, settings.threads, progress)
            stack.enter_context(store)
        types = merge_types(communicator, store) if communicator else store
        with collective_errors(communicator):
            if not types.tokens:
                raise NothingToTrain(f"{text} holds no words")
            if source is None:
                settings = with_views(settings, types)
            config = replace(config, settings=settings, corpus=tuple(text.files))
            checkpoints = _checkpoints_of_views(settings, resume_from)
            folders: dict[str, CheckpointFolder] = {}
            if root_folder:
                folders = {"words": root_folder}
                if settings.has_two_views:
                    folders = open_folders(root_folder, checkpoints, replace_checkpoints, stack)
            best_folders = folders  # keep the best checkpoint of each view, for early stopping
            if settings.stop_early and not folders:
                temporary = Path(stack.enter_context(TemporaryDirectory(prefix="w2v-")))
                best_folders = {
                    name: stack.enter_context(CheckpointFolder(temporary / name, NEVER)) for name in checkpoints
                }
            first_checkpoint = checkpoints["words"]
            checksum = first_checkpoint.resume_info.checksum if first_checkpoint else ""
            if folders:
                checksum = _text_checksum(store, types, checksum)
                remedy = f"name its text and phrases instead of {text}, or start a new run"
                for each in filter(None, checkpoints.values()):
                    check_identity(each.path, each.identity, replace(each.identity, inputs={"text": checksum}), remedy)
        runs: dict[str, Run] = {}
        for name, view in _configs_of_views(config, checkpoints).items():
            checkpoint, folder = checkpoints[name], folders.get(name)
            with collective_errors(communicator):
                instruction_set = _resumed_instruction_set(checkpoint) if checkpoint else None
                view_source = source.views[name] if isinstance(source, ViewsModel) else source
                initial = _initialise(view, types, str(text), view_source, vocabulary, checkpoint)
                if isinstance(text, TaggedTexts):
                    initial = _share_outputs(initial, settings, text)
                if isinstance(view_source, Model) and config.freeze == "outputs" and not runs and not checkpoint:
                    _log_known_words(initial.vocabulary, view_source.vocabulary, settings.min_count)
            other_memory = _other_memory(runs, config, initial)
            options: dict[str, Any] = {"checkpoint_folder": folder, "other_memory": other_memory}
            if not types.is_text:
                _check_outputs(config, initial.vocabulary)
            if communicator:
                words, counts = initial.vocabulary.words.blob, initial.vocabulary.counts
                communicator.assert_same({"words": crc32(words.data), "counts": crc32(counts.data)})
                run: Run = DistributedRun(communicator, view, initial, store, instruction_set, **options)
            else:
                if settings.stop_early:
                    options["share"], held_out = GapTest.at_end(store, initial.vocabulary)
                    view_name = name if settings.has_two_views else ""
                    options["early_stopping"] = EarlyStopping(
                        settings.stop_early, held_out, best_folders[name], view_name
                    )
                run = Run(view, initial, store, instruction_set, **options)
            run.types, run.phrases, run.files, run.checksum = types, joined_phrases, text.sizes, checksum
            with collective_errors(communicator):
                # Raise W2VError now, instead of after training, if the header of the model file would be too large.
                header_bytes(
                    "the model",
                    run.parameters | run.plan.loss.tensors,
                    {"settings": json.dumps(settings.as_dict()), "metrics": " " * METRICS_BYTES},
                )
            if checkpoint:
                run.restore(checkpoint)
            elif is_root(communicator) and not runs:
                epochs = None if initial.parameters else settings.epochs
                warn_about_text(types, epochs, config.text, initial.vocabulary.words)
            run.read_seconds = time.perf_counter() - started
            runs[name] = run
        if len(runs) == 1:
            run.resources = stack.pop_all()
            return run
        views_run = ViewsRun(config, runs)
        if resume_from is None and (config.checkpoint is not None or checkpoint_folder is not None):
            with collective_errors(communicator):
                views_run.begin_checkpoints(root_folder)
        views_run.resources = stack.pop_all()
    return views_run


def _open_corpus(
    config: RunConfig, corpus: Source | Corpus | Graph | TaggedTexts
) -> Corpus | GraphSource | TaggedTexts:
    """Return the text or graph of a run. Raise W2VError if a text is needed and this is a graph."""
    if config.walks:
        return GraphSource(corpus)
    if is_graph(corpus):
        raise W2VError("the corpus is a graph, and the run began with a text: give the same text again")
    return corpus if isinstance(corpus, Corpus | TaggedTexts) else Corpus(cast(Source, corpus))


def _check_outputs(config: RunConfig, vocabulary: Vocabulary) -> None:
    """Raise W2VError if an output cannot store the white space in an item."""
    if config.output is not None:
        table.check_words(config.output, vocabulary.words)
    if config.save_vocab is not None:
        vocabulary.check_separable(config.save_vocab)


def _open_checkpoint_folder(
    config: RunConfig, checkpoint: Checkpoint | ViewsCheckpoint | None, replace_others: bool
) -> CheckpointFolder | None:
    """Open the folder for the checkpoints of a run, or of the description of a run of several views.

    Args:
        config: The description of the run, which may name the folder.
        checkpoint: The checkpoint that the run resumes from; None for a new run.
        replace_others: Whether checkpoints of another run may be removed.
    """
    if config.checkpoint is None:
        return None
    if isinstance(checkpoint, ViewsCheckpoint):
        checkpoint = checkpoint.views["words"]
    return CheckpointFolder(config.checkpoint, config.checkpoint_every, replace=replace_others, resumed_from=checkpoint)


def _checkpoints_of_views(
    settings: Settings, checkpoint: Checkpoint | ViewsCheckpoint | None
) -> dict[str, Checkpoint | None]:
    """Return the checkpoint that each view resumes from, or None, by the name of the view."""
    if isinstance(checkpoint, ViewsCheckpoint):
        return {**checkpoint.views}
    return dict.fromkeys(settings.view_sizes, checkpoint)


def run_in_memory(
    config: RunConfig,
    vocabulary: Vocabulary,
    store: IdStore,
    *,
    share: float = 1.0,
    phrases: Phrases | None = None,
    read_seconds: float = 0.0,
) -> Run | ViewsRun:
    """Return a new run over a text that is already read, without checkpoints and held-out text.

    Args:
        config: The description of the run.
        vocabulary: The words to train.
        store: The ids of the text.
        share: The share of the text, from its start, to train on.
        phrases: The phrases that were joined in the text.
        read_seconds: The time spent on reading the text.
    """
    initial, runs = Initialisation(vocabulary), dict[str, Run]()
    for name, view in _configs_of_views(config, dict.fromkeys(config.settings.view_sizes)).items():
        run = Run(view, initial, store, share=share, other_memory=_other_memory(runs, config, initial))
        run.phrases, run.read_seconds = phrases, read_seconds
        runs[name] = run
    return runs["words"] if len(runs) == 1 else ViewsRun(config, runs)


def _configs_of_views(config: RunConfig, checkpoints: Mapping[str, Checkpoint | None]) -> dict[str, RunConfig]:
    """Return the description of the run of each view, by name."""
    if len(checkpoints) == 1:
        return dict.fromkeys(checkpoints, config)
    settings = view_settings(config.settings) | {name: each.settings for name, each in checkpoints.items() if each}
    folders = {name: config.checkpoint and str(Path(config.checkpoint, name)) for name in checkpoints}
    return {name: replace(config, settings=settings[name], checkpoint=folders[name]) for name in checkpoints}


def _other_memory(runs: Mapping[str, Run], config: RunConfig, initial: Initialisation) -> int:
    """Return the bytes that a view needs in addition to its run: what earlier views still allocate, plus the vectors.

    The matrices of an earlier view stay until the end, and not all of their pages are in use before training.
    """
    if not runs:
        return 0
    still_needed = max(0, max(run.peak_memory for run in runs.values()) - memory.resident_bytes())
    return still_needed + FLOAT_BYTES * config.settings.vector_size * len(initial.vocabulary)


def resumed_config(
    checkpoint: Checkpoint | ViewsCheckpoint, phrases: bool | PathLike, cache: PathLike | None, **overrides: Any
) -> RunConfig:
    """Return the config of a run that resumes from a checkpoint.

    No path in the checkpoint is used, because somebody else may have written the checkpoint.

    Args:
        checkpoint: The checkpoint.
        phrases: The file of phrases, if the run joined the phrases of a file.
        cache: The cache of the text, if any.
        overrides: Other fields of RunConfig, such as the paths that the user names again.
    """
    config = checkpoint.config
    # The run goes on writing to the folder that its checkpoint was read from; the user has named this folder.
    paths: dict[str, Any] = {**dict.fromkeys(PATHS), "checkpoint": str(checkpoint.path.parent), "corpus": ()}
    paths["phrases"] = _resumed_phrases(config.phrases, phrases)
    return replace(config, **paths | {"reading": replace(config.reading, cache=cache)} | overrides)


def _resumed_phrases(original: bool | str, phrases: bool | PathLike) -> bool | str:
    """Return the phrases of a resumed run.

    Raise W2VError if the run began with a file of phrases and `phrases` is not a file. Raise SettingsError if
    `phrases` contradicts a run that began without a file.
    """
    if isinstance(original, bool):
        if phrases in (False, original):
            return original
        joined = "phrases that it found in the text" if original else "no phrases"
        raise SettingsError(f"phrases {phrases}: the run joined {joined}; leave it out")
    if isinstance(phrases, bool):
        raise W2VError(
            "give the file of phrases again with --phrases (phrases=), because paths in a checkpoint are not used; the "
            f"run began with {one_line(original)}"
        )
    return str(phrases)


def _check_file_sizes(checkpoint: Checkpoint, text: Corpus | GraphSource | TaggedTexts) -> None:
    """Raise W2VError if the sizes of the files have changed. This needs no reading, unlike the checksum of the text."""
    for (old_path, old_size), (path, size) in zip(checkpoint.resume_info.files or [], text.sizes or [], strict=False):
        if old_size != size:
            original = f"{one_line(old_path)} had {old_size:,} bytes when the run began"
            raise W2VError(
                f"the text has changed: {original}, and now {path} has {size:,}: name the original text, or start a "
                "new run"
            )


def _initialise(
    config: RunConfig,
    types: TypeCounts,
    text: str,
    source: Model | KeyedVectors | None,
    vocabulary: Vocabulary | None,
    checkpoint: Checkpoint | None,
) -> Initialisation:
    """Return the vocabulary and the matrices of the run at its start, or at the checkpoint that it resumes from.

    `text` names the text in error messages.
    """
    settings = config.settings
    if checkpoint is not None:
        return Initialisation(
            checkpoint.vocabulary,
            checkpoint.loss,
            checkpoint.parameters,
            frozen=checkpoint.frozen,
            coordinates=checkpoint.resume_info.coordinates,
        )
    if isinstance(source, Model) and config.freeze == "outputs":
        return initialise_from_compass(source, settings, types, text)
    if isinstance(source, Model):
        return initialise_from_model(source, config.vocab, settings, types, config.ignore_memory)
    if vocabulary is not None:
        vocabulary = vocabulary.with_key_type(types.key_type)
    else:
        vocabulary = Vocabulary.from_store(types, settings.min_count, settings.max_vocab)
    return Initialisation(vocabulary) if source is None else initialise_from_vectors(source, vocabulary, config.freeze)


def _share_outputs(initial: Initialisation, settings: Settings, texts: TaggedTexts) -> Initialisation:
    """Let the tagged forms of a word share an output row."""
    loss, output_words = initial.loss or loss_for(settings, initial.vocabulary), texts.output_words(initial.vocabulary)
    if not isinstance(loss, SamplingLoss):
        raise SettingsError(f"tag_words: with loss {settings.loss}, words cannot share outputs: choose ns")
    return replace(initial, loss=share_outputs(loss, output_words), output_words=output_words)


def _log_known_words(words: Vocabulary, compass: Vocabulary, min_count: int) -> None:
    found = f"{len(words):,} of {len(compass):,} words of the model occur in the text"
    log.info("%s at least %s; the others have no vector", found, pluralise(min_count, "time"))


def load_phrases(phrases: bool | PathLike) -> Phrases | bool:
    """Load a file of phrases. True and False are returned unchanged; see `read_words`."""
    return phrases if isinstance(phrases, bool) else Phrases.load(phrases)


def read_words(
    text: Corpus | TaggedTexts | GraphSource,
    config: RunConfig,
    phrases: Phrases | bool,
    workers: int,
    progress: Report | None,
) -> tuple[IdStore, Phrases | None]:
    """Read texts and join the words of their phrases, or read a graph and make random walks on it.

    Args:
        text: The text, texts or graph.
        config: The description of the run.
        phrases: The phrases; True to find them in the text, False to join none.
        workers: The number of threads.
        progress: See `train`.

    Returns:
        The ids of the words, and the phrases, or None if `phrases` is False.

    Raises:
        W2VError: If the text or graph cannot be read.
        SettingsError: If an option does not suit items or nodes.
    """
    cache = config.reading.cache
    resources: dict[str, Any] = {"workers": workers, "progress": progress}
    if isinstance(text, GraphSource):
        assert config.walks
        graph = text.read(config.walks, **resources)
        config.check_items(str(text), graph.key_type)
        return walk_store(graph, config.walks, seed=config.settings.seed, folder=cache, **resources), None
    if isinstance(text, TaggedTexts):
        joined_phrases = None
        with ExitStack() as stack:
            stores = {}
            for name, corpus in text.corpora.items():
                part, joined_phrases = read_words(corpus, config, phrases, workers, progress)
                stores[name] = stack.enter_context(part)
            return join_tagged(stores, text.words, temporary_folder(cache)), joined_phrases
    store = read_corpus(text, config.reading, check_items=config.check_items, **resources)
    with ExitStack() as stack:
        stack.enter_context(store)
        if not store.is_text:  # the items may come from the cache, or only now turn out to be numbers
            config.check_items(str(text), store.key_type)
        if phrases is not False:
            found = Phrases.find(store, **resources) if phrases is True else phrases
            return found.join(store, folder=cache, **resources), found
        stack.pop_all()
    return store, None


def _check_options_for_ranks(config: RunConfig) -> None:
    """Raise SettingsError for options that need the whole text; with several ranks, each one reads only a part."""
    reading = config.reading
    if config.walks:
        raise SettingsError("--graph (graph=True): a graph cannot be divided among ranks: train in one process")
    if config.settings.stop_early:
        raise SettingsError("--stop-early (stop_early) holds out the end of the whole text: train in one process")
    if reading.encoding != UTF_8:
        raise SettingsError(
            f"--encoding {reading.encoding} (encoding): only UTF-8 can be divided among ranks: convert the text with "
            "iconv"
        )
    if reading.item is not None:
        raise SettingsError("--item (item=): a session may have rows in the parts of several ranks: use one process")
    if config.phrases is True:
        raise SettingsError(
            "--phrases (phrases=True) finds phrases in the whole text, but each rank reads only a part: find them "
            "first with w2v phrases --save-phrases, and give that file"
        )
    if reading.strip_markup and not has_columns(reading.column):
        raise SettingsError(
            "--strip-markup (strip_markup=True): the text cannot be divided among ranks inside markup: train in one "
            "process"
        )


def _values_all_ranks_share(
    config: RunConfig, text: Corpus, checkpoint: Checkpoint | ViewsCheckpoint | None
) -> dict[str, Any]:
    """Return the values that must be the same on all ranks of a run."""
    values = {"w2v": __version__, **config.settings.as_dict(), **asdict(config.reading)}
    del values["workers"], values["cache"]
    if not isinstance(config.phrases, bool):
        values["checksum of the phrases"] = crc32(Path(config.phrases).read_bytes())
    values |= {"files of the text": len(text.files), "bytes of the text": text.total_bytes}
    if text.sizes:
        values["checksum of samples of the text"] = text.checksum(sampled=True)
    checkpoints = _checkpoints_of_views(config.settings, checkpoint)
    resumed = {name: [each.config.run_id, each.resume_info.done] for name, each in checkpoints.items() if each}
    return values | {"checkpoints": resumed}


def _text_checksum(store: IdStore, types: TypeCounts, original: str) -> str:
    """Return the checksum of the text; the checksum of its types if the text is divided among ranks.

    Args:
        store: The ids of the text, or of this rank's part of it.
        types: The types of the whole text; `store` itself if there is only one process.
        original: The checksum in the checkpoint; "" for a new run. Several ranks cannot verify a checksum of the whole
            text, and return it unchanged.
    """
    if original.startswith(TYPES_PREFIX) or (types is not store and not original):
        return TYPES_PREFIX + types.types_checksum()
    return store.checksum() if types is store else original


def _resumed_instruction_set(checkpoint: Checkpoint) -> str:
    """Return the instruction set that the run began with, because others round differently.

    If this machine does not support it, warn and return the machine's own.
    """
    original, kernel = checkpoint.resume_info.instruction_set, checkpoint.settings.kernel
    current = machine_instruction_set(kernel)
    if original == current or (kernel == "cython" and step_for(original)):
        return original
    log.warning("the run began with %s, and this machine uses %s: last bits will differ", original, current)
    return current
