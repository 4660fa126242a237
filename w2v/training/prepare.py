"""`prepare`: from the config of a run to a Run that is ready to train. All inputs of a run are opened here."""

from __future__ import annotations

import json
import logging
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

from w2v._kernels import step_for
from w2v.errors import NothingToTrain, SettingsError, W2VError, one_line
from w2v.evaluation.held_out import HeldOut
from w2v.formats import bfloat16
from w2v.formats.native import header_bytes
from w2v.losses import registry
from w2v.progress import Report
from w2v.system.files import PathLike
from w2v.system.version import __version__
from w2v.text.columns import has_columns
from w2v.text.corpus import Corpus, Source
from w2v.text.encodings import UTF_8
from w2v.text.idstore import IdStore, TypeCounts, read_corpus
from w2v.text.phrases import Phrases
from w2v.text.text_checks import warn_about_text
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import Checkpoint, Checkpoints
from w2v.training.communicator import Communicator, collective_errors, is_root
from w2v.training.config import PATHS, RunConfig
from w2v.training.distributed import DistributedRun, merged_types
from w2v.training.early_stopping import EarlyStopping
from w2v.training.initialisation import (
    Initialisation,
    initialise_from_model,
    initialise_from_vectors,
    open_source,
)
from w2v.training.model import Model
from w2v.training.run import Run, instruction_set_of
from w2v.training.schedule import NEVER
from w2v.vectors.keyed import KeyedVectors

METRICS_BYTES = 4096  # upper bound of a model's metrics in the header of its file
OF_TYPES = "types "  # prefix of a checksum of the text's types rather than of the text

log = logging.getLogger("w2v")


def prepare(
    config: RunConfig,
    corpus: Source | Corpus,
    *,
    source: Model | KeyedVectors | None = None,
    vocabulary: Vocabulary | None = None,
    state: Checkpoint | None = None,
    checkpoints: Checkpoints | None = None,
    replace_checkpoints: bool = False,
    communicator: Communicator | None = None,
    progress: Report | None = None,
) -> Run:
    """Read the text of a run, initialise its matrices, and return the Run, which a `with` block closes.

    Args:
        config: describes the run. What it names and is given here, too, is not opened again.
        corpus: the text. source: the model to continue, or the vectors to begin with.
        vocabulary: the words to train, by default those of the text.
        state: the checkpoint from which the run is resumed; `config` is then made by `resumed_config`.
        checkpoints: an open folder of checkpoints. replace_checkpoints: whether those of another run are replaced.
        communicator, progress: see train.

    Raises W2VError for a text, model or folder that cannot be used and for matrices that do not fit in memory.
    """
    started = time.perf_counter()
    with ExitStack() as stack:
        with collective_errors(communicator):
            settings = config.settings
            if settings.objective is not None:
                registry.find(str(settings.objective))
            bfloat16.dtype_of(settings.storage)  # raises if ml_dtypes is missing
            if state is None and source is None:
                source = open_source(config.continue_from, config.init)
            if vocabulary is None and config.vocabulary is not None:
                vocabulary = Vocabulary.load(config.vocabulary, settings.min_count, settings.max_vocab)
            text = corpus if isinstance(corpus, Corpus) else Corpus(corpus)
            if state is not None:
                _check_sizes(state, text)
            if not is_root(communicator):
                checkpoints = None
            elif checkpoints is None and config.checkpoint is not None:
                every = config.checkpoint_every
                checkpoints = Checkpoints(config.checkpoint, every, replace=replace_checkpoints, after=state)
            if checkpoints is not None:
                stack.enter_context(checkpoints)
            if state is not None and state.version != __version__:
                written = f"the checkpoint was written by w2v {state.version}"
                log.warning("%s, this is %s: last bits may differ", written, __version__)
            if communicator:
                _refuse_undividable(config)
            phrases = load_phrases(config.phrases)
        if communicator:
            communicator.assert_same(_values_all_ranks_share(config, text, state))
            settings = replace(settings, workers=settings.workers or communicator.threads())
        config = replace(config, settings=settings, corpus=tuple(text.files))
        with collective_errors(communicator):
            best = checkpoints
            if settings.stop_early and best is None:
                best = Checkpoints(stack.enter_context(TemporaryDirectory(prefix="w2v-")), NEVER)
                stack.enter_context(best)
            whole = has_columns(config.reading.column)
            part = text.part(communicator.rank, communicator.size, whole=whole) if communicator else text
            work: dict[str, Any] = {"workers": settings.threads, "progress": progress}
            store = stack.enter_context(read_corpus(part, config.reading, **work))
            store, joined = join_phrases(store, phrases, config.reading.cache, **work)
            stack.enter_context(store)
        types = merged_types(communicator, store) if communicator else store
        with collective_errors(communicator):
            if not types.tokens:
                raise NothingToTrain(f"{text} holds no words")
            checksum = state.position.checksum if state else ""
            if checkpoints:
                checksum = _checksum(store, types, checksum)
                if state and checksum != state.position.checksum:
                    raise W2VError(f"another corpus: {text} does not hold the text that the run began with")
            instructions = _instruction_set_of(state) if state else None
            initial = _initialise(config, types, source, vocabulary, state)
        if communicator:
            words, counts = initial.vocabulary.words.blob, initial.vocabulary.counts
            communicator.assert_same({"words": crc32(words.data), "counts": crc32(counts.data)})
            run: Run = DistributedRun(communicator, config, initial, store, instructions, checkpoints=checkpoints)
        else:
            share, stopping = 1.0, None
            if settings.stop_early and best:
                share, held_out = HeldOut.at_end(store, initial.vocabulary)
                stopping = EarlyStopping(settings.stop_early, held_out, best)
            run = Run(config, initial, store, instructions, share=share, stopping=stopping, checkpoints=checkpoints)
        run.types, run.phrases, run.files, run.checksum = types, joined, text.sizes, checksum
        with collective_errors(communicator):
            header_bytes(
                "the model",
                run.parameters | run.plan.loss.tensors,
                {"settings": json.dumps(settings.as_dict()), "metrics": " " * METRICS_BYTES},
            )
        if state:
            run.restore(state)
        elif is_root(communicator):
            epochs = None if initial.parameters else settings.epochs
            warn_about_text(types, epochs, config.text, initial.vocabulary.words)
        run.read_seconds = time.perf_counter() - started
        run.resources = stack.pop_all()
    return run


def resumed_config(state: Checkpoint, phrases: bool | PathLike, cache: PathLike | None, **named: Any) -> RunConfig:
    """Return the config of a run that goes on from a checkpoint.

    Whoever wrote the checkpoint chose its paths, so none of them is kept: `named` are those that the user names again,
    and other fields of RunConfig that are given.
    """
    config = state.config
    paths: dict[str, Any] = {**dict.fromkeys(PATHS), "checkpoint": str(state.path.parent), "corpus": ()}
    paths["phrases"] = _phrases_again(config.phrases, phrases)
    return replace(config, **paths | {"reading": replace(config.reading, cache=cache)} | named)


def _phrases_again(before: bool | str, phrases: bool | PathLike) -> bool | str:
    """Return the phrases of a resumed run. Raises W2VError unless they are of a file where the run's were of a file."""
    if isinstance(before, bool):
        if phrases in (False, before):
            return before
        had = "those that it found in the text" if before else "none"
        raise SettingsError(f"phrases {phrases}: the run joined {had}; leave it out")
    if isinstance(phrases, bool):
        raise W2VError(
            "give the file of phrases again with --phrases (phrases=), because paths in a checkpoint are not used; the "
            f"run began with {one_line(before)}"
        )
    return str(phrases)


def _check_sizes(state: Checkpoint, text: Corpus) -> None:
    """Raise W2VError for files of other sizes: this is known before the text is read, unlike its checksum."""
    for (path, size), (now, size_now) in zip(state.position.files or [], text.sizes or [], strict=False):
        if size != size_now:
            before = f"{one_line(path)} had {size:,} bytes when the run began"
            raise W2VError(f"another corpus: {before}, and {now} has {size_now:,}")


def _initialise(
    config: RunConfig,
    types: TypeCounts,
    source: Model | KeyedVectors | None,
    vocabulary: Vocabulary | None,
    state: Checkpoint | None,
) -> Initialisation:
    """Return the vocabulary and the matrices that a run begins or continues with."""
    settings = config.settings
    if state is not None:
        return Initialisation(state.vocabulary, state.loss, state.parameters, frozen=state.frozen)
    if isinstance(source, Model):
        return initialise_from_model(source, config.vocab, settings, types, config.ignore_memory)
    vocabulary = vocabulary or Vocabulary.from_store(types, settings.min_count, settings.max_vocab)
    return Initialisation(vocabulary) if source is None else initialise_from_vectors(source, vocabulary, config.freeze)


def load_phrases(phrases: bool | PathLike) -> Phrases | bool:
    """Return the phrases of a file; True and False are returned unchanged."""
    return phrases if isinstance(phrases, bool) else Phrases.load(phrases)


def join_phrases(
    store: IdStore, phrases: Phrases | bool, folder: PathLike | None, workers: int, progress: Report | None
) -> tuple[IdStore, Phrases | None]:
    """Return the text with the words of phrases joined, and the phrases.

    True finds the phrases in the text, False joins none.

    The joined text is in a temporary file in the folder; `store` is closed.
    """
    if isinstance(phrases, bool):
        if not phrases:
            return store, None
        phrases = Phrases.find(store, workers=workers, progress=progress)
    joined = phrases.join(store, folder=folder, workers=workers, progress=progress)
    store.close()
    return joined, phrases


def _refuse_undividable(config: RunConfig) -> None:
    """Raise SettingsError for options that need the whole text, of which each rank reads a part."""
    reading = config.reading
    if config.settings.stop_early:
        raise SettingsError("--stop-early (stop_early) holds out the end of the whole text: train in one process")
    if reading.encoding != UTF_8:
        raise SettingsError(
            f"--encoding {reading.encoding} (encoding): only UTF-8 is divided among ranks: convert the text with iconv"
        )
    if config.phrases is True:
        raise SettingsError(
            "--phrases (phrases=True) finds the phrases of a whole text, and each rank reads a part of it: find them "
            "with w2v phrases --save-phrases first, and give that file"
        )
    if reading.strip_markup and not has_columns(reading.column):
        raise SettingsError(
            "--strip-markup (strip_markup=True): markup may span the places where a text is divided among ranks: train "
            "in one process"
        )


def _values_all_ranks_share(config: RunConfig, text: Corpus, state: Checkpoint | None) -> dict[str, Any]:
    """Return the values that must be the same on all ranks of a run."""
    about = {"w2v": __version__, **config.settings.as_dict(), **asdict(config.reading)}
    del about["workers"], about["cache"]
    if not isinstance(config.phrases, bool):
        about["checksum of the phrases"] = crc32(Path(config.phrases).read_bytes())
    about |= {"files of the text": len(text.files), "bytes of the text": text.total_bytes}
    if text.sizes:
        about["checksum of samples of the text"] = text.checksum(sampled=True)
    return about | {"position": state.position.done if state else 0}


def _checksum(store: IdStore, types: TypeCounts, known: str) -> str:
    """Return the checksum of the text; of its types, if it is divided among ranks.

    A resumed run has a `known` checksum. If that is of the text, ranks cannot check it and return it.
    """
    if known.startswith(OF_TYPES) or (types is not store and not known):
        return OF_TYPES + types.types_checksum()
    return store.checksum() if types is store else known


def _instruction_set_of(state: Checkpoint) -> str:
    """Return the instruction set that a run began with, since others round differently, or the present one."""
    before, kernel = state.position.instruction_set, state.settings.kernel
    now = instruction_set_of(kernel)
    if before == now or (kernel == "cython" and step_for(before)):
        return before
    log.warning("the run began with %s, and this machine uses %s: last bits will differ", before, now)
    return now
