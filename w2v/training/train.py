"""Training: text in, model out. Reads the corpus, has a run begin where it is to, and makes a model of its end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from w2v._kernels import step_for
from w2v.errors import SettingsError, W2VError
from w2v.files import Errors, PathLike
from w2v.formats import bfloat16
from w2v.losses import registry
from w2v.progress import Progress
from w2v.settings import Settings
from w2v.text.corpus import Corpus, Source
from w2v.text.idstore import IdStore, read_corpus
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import EVERY, Checkpoint, Checkpoints, Origin, State, latest
from w2v.training.model import Model, split
from w2v.training.run import Run, instruction_set
from w2v.training.start import Start, Words, carry, going_on

log = logging.getLogger("w2v")


def train(
    corpus: Source,
    settings: Settings | None = None,
    *,
    vocabulary: Vocabulary | None = None,
    continue_from: Model | PathLike | None = None,
    vocab: Words = "old",
    cache: PathLike | None = None,
    errors: Errors = "strict",
    max_types: int = 50_000_000,
    checkpoint: PathLike | Checkpoints | None = None,
    checkpoint_every: str = EVERY,
    notes: Mapping[str, Any] | None = None,
    ignore_memory: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Model:
    """Train word vectors.

    Args:
        corpus: a path or list of paths (files, folders, globs, "-"; compressed or not), or any iterable of
            lists of words, which is read once.
        settings: or the names of `Settings` as keyword arguments; `objective` may be an Objective itself.
        vocabulary: words to use in place of those of the corpus.
        continue_from: a model, or the .safetensors file of one, to go on from: its vectors and its settings, but for
            those given. `vocab` is "old" to keep its words, counts and tree, or "union" to add the corpus's; words
            that are new begin like those of a new model.
        cache, errors, max_types: see read_corpus.
        checkpoint: a folder in which to keep the last two states of the run, for `resume`; one is written every
            `checkpoint_every` ("30s", "10m", "2h", "1epoch"), at the end, and when an exception ends the run.
        notes: what JSON holds; kept in the checkpoints.
        ignore_memory: begin although the memory that it needs is not there.
        progress: called now and then as progress(phase, done, total); phase is "read" (bytes), then once "memory"
            (bytes: the estimated peak, and what is available), then "train" (tokens).

    Raises W2VError for a corpus that cannot be used and for matrices that the memory does not hold, SettingsError
    for impossible settings.
    """
    if "objective" in options and not isinstance(options["objective"], str | None):
        options["objective"] = registry.use(options["objective"])
    unknown = sorted(set(options) - set(Settings.names()))
    if unknown:
        raise SettingsError(f"unknown setting {unknown[0]!r}: choose from {', '.join(Settings.names())}")
    if settings and options:
        raise SettingsError(f"{sorted(options)[0]} stands beside settings: put it into them")
    if continue_from is None:
        chosen = settings or Settings(**options)

        def begin(store: IdStore) -> Start:
            return Start(vocabulary or Vocabulary.from_store(store, chosen.min_count, chosen.max_vocab))

    else:
        if settings or vocabulary:
            raise SettingsError("continue_from brings settings and vocabulary; give single settings beside it")
        model = continue_from if isinstance(continue_from, Model) else Model.load(continue_from, mmap=True)
        chosen = going_on(model, options)
        begin = partial(carry, model, vocab, chosen)
    if chosen.objective is not None:
        registry.find(chosen.objective)
    bfloat16.dtype_of(chosen.storage)  # what it needs must be there
    text = Corpus(corpus)
    if checkpoint is not None and not isinstance(checkpoint, Checkpoints):
        checkpoint = Checkpoints(checkpoint, checkpoint_every)
    origin = Origin(
        sources=[file if file == "-" else str(Path(file).absolute()) for file in text.files],
        files=text.fingerprint(),
        cache=None if cache is None else str(Path(cache).absolute()),
        errors=errors,
        max_types=max_types,
        notes=dict(notes or {}),
    )
    return _train(text, origin, chosen, begin, None, checkpoint, ignore_memory, progress)


def resume(
    folder: PathLike | Checkpoint,
    corpus: Source | None = None,
    *,
    ignore_memory: bool = False,
    progress: Progress | None = None,
) -> Model:
    """Go on with a run from the newest whole checkpoint in a folder; with one worker, to the same bits as if it had
    never been stopped.

    Args:
        folder: what `train` was given as `checkpoint`; or what checkpoint.latest has read from it.
        corpus: the same text, where it is now; lists of words must be given again. By default the files of the run.
        ignore_memory, progress: see train.

    Raises W2VError where the folder holds no whole checkpoint and for another text.
    """
    found = folder if isinstance(folder, Checkpoint) else latest(folder)
    origin = found.origin
    if corpus is None and not origin.sources:
        raise W2VError("the corpus of this run was lists of words: give them again")
    text = Corpus(origin.sources if corpus is None else corpus)
    for (path, size, _), (now, size_now, _) in zip(origin.files or [], text.fingerprint() or [], strict=False):
        if size != size_now:  # seen without reading it
            raise W2VError(f"another corpus: {path} had {size:,} bytes when the run began, and {now} has {size_now:,}")
    checkpoints = Checkpoints(found.path.parent, found.every, after=found.path)
    if found.version != version("w2v"):
        log.warning("the checkpoint is of w2v %s, this is %s: last bits may differ", found.version, version("w2v"))
    state = found.state
    start = Start(state.vocabulary, state.layer, state.parameters)
    return _train(text, origin, state.settings, lambda _: start, state, checkpoints, ignore_memory, progress)


def _train(
    text: Corpus,
    origin: Origin,
    settings: Settings,
    begin: Callable[[IdStore], Start],
    state: State | None,
    checkpoints: Checkpoints | None,
    ignore_memory: bool,
    progress: Progress | None,
) -> Model:
    """Train from where `begin` says, or from a state, which it then must give."""
    started = time.perf_counter()
    tell = progress or (lambda phase, done, total: None)
    with (
        checkpoints or nullcontext(),
        read_corpus(
            text,
            cache=origin.cache,
            errors=cast(Errors, origin.errors),
            workers=settings.threads,
            max_types=origin.max_types,
            progress=tell,
        ) as store,
    ):
        if checkpoints:
            checksum = store.checksum()
            if state and checksum != origin.checksum:
                raise W2VError(f"another corpus: {text} does not hold the text that the run began with")
            checkpoints.origin = replace(origin, checksum=checksum)
        instructions = _instruction_set_of(state) if state else None
        run = Run(settings, begin(store), store, instructions, copies=bool(checkpoints), ignore_memory=ignore_memory)
        if state:
            run.restore(state)
        tell("memory", run.peak, run.limit)
        read = time.perf_counter()
        run.go(tell, checkpoints)
    seconds = {"read": read - started, "train": run.seconds}
    figures = {
        "tokens": run.tokens,
        "tokens_trained": run.kernel.tokens_trained,
        "words_per_second": run.kernel.tokens_trained / seconds["train"],
        "seconds": seconds,
        "loss": run.mean_losses,
        "sentences": store.sentences,
        "pruned": store.pruned,
        "cache_reused": store.reused,
        "instruction_set": run.instruction_set,
    }
    return Model(settings, run.vocabulary, layer=run.layer, figures=figures, **split(run.parameters))


def _instruction_set_of(state: State) -> str:
    """The one in which a run was begun, for others round differently; where it is not there, the one in use."""
    if step_for(state.instruction_set):
        return state.instruction_set
    log.warning("this machine lacks %s, in which the run began: last bits will differ", state.instruction_set)
    return instruction_set()
