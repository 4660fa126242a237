"""`train` and `resume`: read the corpus, train, and return a Model."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Concatenate, ParamSpec
from zlib import crc32

from w2v._kernels import step_for
from w2v.errors import NothingToTrain, SettingsError, W2VError, one_line
from w2v.evaluation.held_out import HeldOut
from w2v.formats import bfloat16
from w2v.formats.native import header_bytes
from w2v.losses import registry
from w2v.losses.registry import Settings
from w2v.options import formerly, refuse_unknown
from w2v.progress import Report
from w2v.settings import RENAMED
from w2v.system.files import PathLike
from w2v.system.version import __version__
from w2v.text.columns import has_columns
from w2v.text.corpus import Corpus, Source
from w2v.text.encodings import UTF_8
from w2v.text.idstore import IdStore, ReadingOptions, TypeCounts, read_corpus
from w2v.text.normalise import TextOptions
from w2v.text.phrases import Phrases
from w2v.text.text_checks import warn_of
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import Checkpoint, Checkpoints, Origin, State, latest
from w2v.training.communicator import Communicator, collective_errors, is_root
from w2v.training.distributed import DistributedRun, merged_types
from w2v.training.early_stopping import EarlyStopping
from w2v.training.initialisation import (
    Initialisation,
    Vocab,
    continued_settings,
    initialise_from_model,
    initialise_from_vectors,
    open_model,
    open_vectors,
    settings_for_vectors,
    text_options_of,
)
from w2v.training.model import Model, split
from w2v.training.run import Run, instruction_set_of
from w2v.training.schedule import DEFAULT_INTERVAL, NEVER
from w2v.vectors.keyed import KeyedVectors

METRICS_BYTES = 4096  # upper bound of a model's metrics in the header of its file
NEEDS = {"vocab": "continue_from", "freeze": "init", "checkpoint_every": "checkpoint"}  # each has no effect without
OF_TYPES = "types "  # prefix of a checksum of the text's types rather than of the text

log = logging.getLogger("w2v")


@dataclass(frozen=True, kw_only=True)
class RunOptions(ReadingOptions):
    """The arguments of `train` that are not settings; see `train`."""

    settings: Settings | None = None
    vocabulary: Vocabulary | None = None
    continue_from: Model | PathLike | None = None
    vocab: Vocab = "old"
    init: KeyedVectors | PathLike | None = None
    freeze: bool = False
    phrases: bool | PathLike = False
    checkpoint: PathLike | Checkpoints | None = None
    checkpoint_every: str = DEFAULT_INTERVAL
    notes: Mapping[str, Any] | None = None
    ignore_memory: bool = False
    progress: Report | None = None
    communicator: Communicator | None = None


@dataclass(frozen=True, kw_only=True)
class TrainOptions(RunOptions, Settings):
    """The keyword arguments of `train`, for its signature."""


P = ParamSpec("P")


def _taking(
    options: Callable[P, TrainOptions],
) -> Callable[[Callable[..., Model]], Callable[Concatenate[Source, P], Model]]:
    """Give a function the signature of a dataclass's keyword arguments, for type checkers, completion and help."""

    def decorate(function: Callable[..., Model]) -> Callable[Concatenate[Source, P], Model]:
        corpus = Parameter("corpus", Parameter.POSITIONAL_OR_KEYWORD, annotation="Source")
        keywords = list(signature(options).parameters.values())
        vars(function)["__signature__"] = Signature([corpus, *keywords], return_annotation="Model")
        return function

    return decorate


@formerly(world="communicator")
@_taking(TrainOptions)
def train(corpus: Source, **given: Any) -> Model:
    """Train word vectors.

    Args:
        corpus: a path, or a list of pathlib.Path (files, folders, globs, "-"; compressed or not); a list, Series or
            other iterable of texts, which are split into words by `tokenize`, or of lists of words, read once; or a
            table, such as a DataFrame, with its `column`. Missing texts (None, NaN) are skipped and counted.
        settings: a Settings object; or its fields as keyword arguments, such as vector_size=300, which
            `w2v train --help` describes. `objective` may be a Loss itself.
        vocabulary: words to use instead of those of the corpus.
        continue_from: a model, or the .safetensors file of one, to continue: its vectors and its settings, except for
            those given and, from a file, workers. `vocab` is "old" to keep its words, counts and tree, or "union" to
            add the corpus's; new words start like those of a new model.
        init: vectors, or a file of any format that w2v.load reads: their words begin with them, the others anew, and
            so does the output layer. With `freeze`, these words keep their vectors as they are.
        phrases: a file of Phrases.save, whose phrases are joined first; or True to find phrases in the corpus with the
            defaults of PhraseOptions.
        cache, encoding, errors, max_types, column, strip_markup, normalize, digits, lower, tokenize: see read_corpus.
            With continue_from and init, the last five default to those of the model.
        checkpoint: a folder in which to keep the last two states of the run, for `resume`; one is written every
            `checkpoint_every` ("30s", "10m", "2h", "1epoch", "never", or "500chunks" of at most 16,384 words), at the
            end, when an exception ends the run and, with stop_early, after each epoch unless it is "never".
        notes: JSON values that are stored in the checkpoints.
        ignore_memory: train even if memory looks insufficient.
        progress: called regularly with a `Progress`, of phase "read" (then "count" and "join"), then "train".
        communicator: the ranks of an MPI job to train with, from w2v.training.communicator.join_ranks; see
            docs/cluster.md. Each returns the model, and rank 0 writes the checkpoints.

    Raises W2VError for a corpus that cannot be used and for matrices that do not fit in memory, SettingsError for
    impossible settings.
    """
    own = {each.name for each in fields(RunOptions)}
    refuse_unknown(given, [*Settings.names(), *own], RENAMED)
    run = RunOptions(**{name: value for name, value in given.items() if name in own})
    options = {name: value for name, value in given.items() if name not in own}
    if run.settings and options:
        raise SettingsError(f"{sorted(options)[0]} is given in addition to settings: make it a part of them")
    for name, needed in NEEDS.items():
        if getattr(run, name) != getattr(RunOptions, name) and getattr(run, needed) is None:
            raise SettingsError(f"{name} has no effect without {needed}")
    with collective_errors(run.communicator):
        run, settings, make_start = _beginning(run, options, given)
        if settings.objective is not None:
            registry.find(str(settings.objective))
        bfloat16.dtype_of(settings.storage)  # raises if ml_dtypes is missing
        source = Corpus(corpus)
        checkpoint = run.checkpoint if is_root(run.communicator) else None
        if checkpoint is not None and not isinstance(checkpoint, Checkpoints):
            checkpoint = Checkpoints(checkpoint, run.checkpoint_every)
        origin = _origin(run, source)
        job = _Job(source, origin, run.phrases, run.cache, settings, make_start, checkpoint, None, run.ignore_memory)
    return _train(job, run.progress, run.communicator)


@dataclass(frozen=True)
class _Job:
    """A run to be made: `make_start` initialises it for the text's types; a resumed one continues at `state`."""

    text: Corpus
    origin: Origin
    phrases: bool | PathLike
    cache: PathLike | None
    settings: Settings
    make_start: Callable[[TypeCounts], Initialisation]
    checkpoints: Checkpoints | None
    state: State | None
    ignore_memory: bool

    @property
    def reading(self) -> ReadingOptions:
        names = ("errors", "max_types", "column", "encoding")
        values = {name: getattr(self.origin, name) for name in names} | asdict(self.origin.text)
        return ReadingOptions(cache=self.cache, **values)


def _origin(run: RunOptions, text: Corpus) -> Origin:
    return Origin(
        **_location(text),
        errors=run.errors,
        max_types=run.max_types,
        column=run.column,
        encoding=run.encoding,
        text=TextOptions.of(run),
        phrases=_stored(run.phrases),
        notes=dict(run.notes or {}),
    )


def _stored(phrases: bool | PathLike) -> bool | str:
    """How a checkpoint names the phrases."""
    return phrases if isinstance(phrases, bool) else str(Path(phrases).absolute())


def _location(text: Corpus) -> dict[str, Any]:
    """The files of a text, as fields of an Origin."""
    sources = [file if file == "-" else str(Path(file).absolute()) for file in text.files]
    return {"sources": sources, "files": text.sizes}


def _beginning(
    run: RunOptions, options: dict[str, Any], given: Mapping[str, Any]
) -> tuple[RunOptions, Settings, Callable[[TypeCounts], Initialisation]]:
    """What `train` begins with: its arguments, settings and what makes its Initialisation.

    Options of the text that are not given become those of the model that is continued or of the vectors of `init`.
    """
    if run.continue_from is not None and run.init is not None:
        raise SettingsError("continue_from has its own vectors: leave init out")
    if run.continue_from is not None and (run.settings or run.vocabulary):
        raise SettingsError("continue_from has its own settings and vocabulary: give only the settings to change")
    model = None if run.continue_from is None else open_model(run.continue_from)
    vectors = None if run.init is None else open_vectors(run.init)
    if model is not None:
        settings = continued_settings(model, run.vocab, options)
    elif vectors is not None:
        settings = settings_for_vectors(vectors, run.settings.as_dict() if run.settings else options, run.freeze)
    else:
        settings = run.settings or Settings(**options)

    def make_start(store: TypeCounts) -> Initialisation:
        if model is not None:
            return initialise_from_model(model, run.vocab, settings, store, run.ignore_memory)
        vocabulary = run.vocabulary or Vocabulary.from_store(store, settings.min_count, settings.max_vocab)
        return (
            Initialisation(vocabulary) if vectors is None else initialise_from_vectors(vectors, vocabulary, run.freeze)
        )

    inherited = {name: value for name, value in asdict(text_options_of(model or vectors)).items() if name not in given}
    return replace(run, **inherited), settings, make_start


@formerly(world="communicator")
def resume(
    folder: PathLike | Checkpoint,
    corpus: Source | None = None,
    *,
    phrases: bool | PathLike = False,
    cache: PathLike | None = None,
    notes: Mapping[str, Any] | None = None,
    ignore_memory: bool = False,
    progress: Report | None = None,
    communicator: Communicator | None = None,
) -> Model:
    """Resume a run from the newest whole checkpoint in a folder.

    With one worker, or `deterministic`, it ends with the same bits as if it had never been stopped. Files are named
    again, because paths in a checkpoint are never opened: the checkpoint may be a stranger's.

    Args:
        folder: the `checkpoint` folder of `train`, or the result of checkpoint.latest for it.
        corpus: the same text, where it is now.
        phrases: the same file of phrases, if the run joined those of a file.
        notes: replace those of the run.
        cache, ignore_memory, progress, communicator: see train. The number of ranks may differ from that of the run so
            far.

    Raises W2VError if the folder holds no whole checkpoint, for another text, and without `corpus`: the error says
    which it was.
    """
    with collective_errors(communicator):
        job = _resumed(folder, corpus, phrases, cache, notes, ignore_memory, communicator)
    return _train(job, progress, communicator)


def _resumed(
    folder: PathLike | Checkpoint,
    corpus: Source | None,
    phrases: bool | PathLike,
    cache: PathLike | None,
    notes: Mapping[str, Any] | None,
    ignore_memory: bool,
    communicator: Communicator | None,
) -> _Job:
    """The rest of a run, with the present location of its text."""
    found = folder if isinstance(folder, Checkpoint) else latest(folder)
    origin, state = found.origin, found.state
    if corpus is None:
        before = f"the run began with {one_line(', '.join(origin.sources))}" if origin.sources else "it was not a file"
        raise W2VError(f"give the corpus again, because paths in a checkpoint are not used; {before}")
    phrases = _phrases_again(origin, phrases)
    text = Corpus(corpus)
    location = _location(text)
    for (path, size, *_), (now, size_now) in zip(origin.files or [], location["files"] or [], strict=False):
        if size != size_now:  # known before the text is read, unlike its checksum
            before = f"{one_line(path)} had {size:,} bytes when the run began"
            raise W2VError(f"another corpus: {before}, and {now} has {size_now:,}")
    origin = replace(origin, **location, phrases=_stored(phrases), notes=origin.notes if notes is None else dict(notes))
    checkpoints = Checkpoints(found.path.parent, found.every, after=found) if is_root(communicator) else None
    if found.version != __version__:
        log.warning(
            "the checkpoint was written by w2v %s, this is %s: last bits may differ", found.version, __version__
        )
    start = Initialisation(state.vocabulary, state.loss, state.parameters, frozen=state.frozen)
    return _Job(text, origin, phrases, cache, state.settings, lambda _: start, checkpoints, state, ignore_memory)


def _phrases_again(origin: Origin, phrases: bool | PathLike) -> bool | PathLike:
    """The phrases of a resumed run. Raises W2VError unless they are of a file where the run's were of a file."""
    if isinstance(origin.phrases, bool):
        if phrases in (False, origin.phrases):
            return origin.phrases
        had = "those that it found in the text" if origin.phrases else "none"
        raise SettingsError(f"phrases {phrases}: the run joined {had}; leave it out")
    if isinstance(phrases, bool):
        raise W2VError(
            "give the file of phrases again with --phrases (phrases=), because paths in a checkpoint are not used; the "
            f"run began with {one_line(origin.phrases)}"
        )
    return phrases


def _train(job: _Job, progress: Report | None, communicator: Communicator | None) -> Model:
    started = time.perf_counter()
    with collective_errors(communicator):
        if communicator:
            _refuse_undividable(job)
        given = loaded_phrases(job.phrases)
    if communicator:
        communicator.assert_same(_alike(job))
        threads = communicator.threads()
        job = replace(job, settings=replace(job.settings, workers=job.settings.workers or threads))
    work: dict[str, Any] = {"workers": job.settings.threads, "progress": progress}
    with ExitStack() as stack:
        with collective_errors(communicator):
            best = job.checkpoints
            if job.settings.stop_early and best is None:
                best = Checkpoints(stack.enter_context(TemporaryDirectory(prefix="w2v-")), NEVER)
            if best:
                stack.enter_context(best)
            whole = has_columns(job.origin.column)
            part = job.text.part(communicator.rank, communicator.size, whole=whole) if communicator else job.text
            store = stack.enter_context(read_corpus(part, job.reading, **work))
            store, phrases = join_phrases(store, given, job.cache, **work)
            stack.enter_context(store)
        types = merged_types(communicator, store) if communicator else store
        run = _made(job, store, types, communicator, best)
        read = time.perf_counter()
        run.train(progress, job.checkpoints)
    return trained_model(run, types, read - started, job.origin.text, phrases)


def _made(
    job: _Job, store: IdStore, types: TypeCounts, communicator: Communicator | None, best: Checkpoints | None
) -> Run:
    """The run, at the position where it begins or continues. If it may stop early, its best state is kept in `best`."""
    checkpoints, state, settings = job.checkpoints, job.state, job.settings
    with collective_errors(communicator):
        if not types.tokens:
            raise NothingToTrain(f"{job.text} holds no words")
        if checkpoints:
            checksum = _checksum(store, types, job.origin.checksum)
            if state and checksum != job.origin.checksum:
                raise W2VError(f"another corpus: {job.text} does not hold the text that the run began with")
            checkpoints.origin = replace(job.origin, checksum=checksum)
        instructions = _instruction_set_of(state, settings.kernel) if state else None
        start = job.make_start(types)
    options: dict[str, Any] = {
        "copies": int(bool(checkpoints and checkpoints.copies)),
        "ignore_memory": job.ignore_memory,
    }
    if communicator:
        vocabulary = start.vocabulary
        communicator.assert_same({"words": crc32(vocabulary.words.blob.data), "counts": crc32(vocabulary.counts.data)})
        run: Run = DistributedRun(communicator, settings, start, store, instructions, **options)
    else:
        if settings.stop_early and best:
            options["share"], held_out = HeldOut.at_end(store, start.vocabulary)
            options["stopping"] = EarlyStopping(settings.stop_early, held_out, best)
        run = Run(settings, start, store, instructions, **options)
    with collective_errors(communicator):
        header_bytes(
            "the model",
            run.parameters | run.plan.loss.tensors,
            {"settings": json.dumps(settings.as_dict()), "metrics": " " * METRICS_BYTES},
        )
    if state:
        run.restore(state)
    elif is_root(communicator):
        epochs = None if start.parameters else settings.epochs
        warn_of(types, epochs, job.origin.text, start.vocabulary.words)
    return run


def loaded_phrases(phrases: bool | PathLike) -> Phrases | bool:
    """The phrases of a file; True and False are returned unchanged."""
    return phrases if isinstance(phrases, bool) else Phrases.load(phrases)


def join_phrases(
    store: IdStore, phrases: Phrases | bool, folder: PathLike | None, workers: int, progress: Report | None
) -> tuple[IdStore, Phrases | None]:
    """The text with the words of phrases joined, and the phrases. True finds the phrases in the text, False joins none.

    The joined text is in a temporary file in the folder; `store` is closed.
    """
    if isinstance(phrases, bool):
        if not phrases:
            return store, None
        phrases = Phrases.find(store, workers=workers, progress=progress)
    joined = phrases.join(store, folder=folder, workers=workers, progress=progress)
    store.close()
    return joined, phrases


def trained_model(
    run: Run, types: TypeCounts, seconds: float, text: TextOptions, phrases: Phrases | None = None
) -> Model:
    """The model of a finished run over a text that was read in `seconds` with these options and phrases."""
    trained = run.state
    phases = {"read": seconds, "train": run.seconds}
    metrics = {
        "tokens": run.tokens,
        "tokens_trained": trained.tokens_trained,
        "words_per_second": trained.tokens_trained / run.seconds if run.seconds else 0.0,  # a clock may stand still
        "seconds": phases,
        "loss": trained.mean_losses,
        "predictions": trained.predictions.tolist(),
        "sentences": types.sentences,
        "tokens_read": types.tokens,
        "pruned": types.pruned,
        "cache_reused": run.store.reused,
        "instruction_set": run.plan.instruction_set,
        **run.metrics,
    }
    if phrases is not None:
        metrics["phrases"] = {"found": len(phrases), "delimiter": phrases.options.delimiter}
    return Model(
        run.settings,
        run.vocabulary,
        loss=run.plan.loss,
        metrics=metrics,
        history=run.history,
        text=text,
        ngrams=run.composed(),
        **split(run.parameters),
    )


def _refuse_undividable(job: _Job) -> None:
    """Raise SettingsError for options that need the whole text, of which each rank reads a part."""
    origin = job.origin
    if job.settings.stop_early:
        raise SettingsError("--stop-early (stop_early) holds out the end of the whole text: train in one process")
    if origin.encoding != UTF_8:
        raise SettingsError(
            f"--encoding {origin.encoding} (encoding): only UTF-8 is divided among ranks: convert the text with iconv"
        )
    if origin.phrases is True:
        raise SettingsError(
            "--phrases (phrases=True) finds the phrases of a whole text, and each rank reads a part of it: find them "
            "with w2v phrases --save-phrases first, and give that file"
        )
    if origin.text.strip_markup and not has_columns(origin.column):
        raise SettingsError(
            "--strip-markup (strip_markup=True): markup may span the places where a text is divided among ranks: train "
            "in one process"
        )


def _alike(job: _Job) -> dict[str, Any]:
    """Values that must be the same on all ranks of a run."""
    text, phrases = job.text, job.phrases
    about = {"w2v": __version__, **job.settings.as_dict(), **asdict(job.reading)}
    del about["workers"], about["cache"]
    if not isinstance(phrases, bool):
        about["checksum of the phrases"] = crc32(Path(phrases).read_bytes())
    about |= {"files of the text": len(text.files), "bytes of the text": text.total_bytes}
    if text.sizes:
        about["checksum of samples of the text"] = text.checksum(sampled=True)
    return about | {"position": job.state.position if job.state else 0}


def _checksum(store: IdStore, types: TypeCounts, known: str) -> str:
    """The checksum of the text; of its types, if it is divided among ranks.

    A resumed run has a `known` checksum. If that is of the text, ranks cannot check it and return it.
    """
    if known.startswith(OF_TYPES) or (types is not store and not known):
        return OF_TYPES + types.types_checksum()
    return store.checksum() if types is store else known


def _instruction_set_of(state: State, kernel: str) -> str:
    """The instruction set that a run began with, since others round differently; the present one if it is missing."""
    now = instruction_set_of(kernel)
    if state.instruction_set == now or (kernel == "cython" and step_for(state.instruction_set)):
        return state.instruction_set
    log.warning("the run began with %s, and this machine uses %s: last bits will differ", state.instruction_set, now)
    return now
