"""`train` and `resume`: build the config of a run, prepare it, train, and return a Model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from w2v.errors import SettingsError, W2VError, one_line
from w2v.losses.registry import FlatSettings, Settings
from w2v.options import formerly, refuse_unknown, taking
from w2v.progress import Report
from w2v.settings import RENAMED
from w2v.system.files import PathLike
from w2v.text.corpus import Source
from w2v.text.idstore import ReadingOptions
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import Checkpoint, Checkpoints, latest
from w2v.training.communicator import Communicator, collective_errors
from w2v.training.config import RunConfig
from w2v.training.initialisation import Vocab, open_source
from w2v.training.model import Model
from w2v.training.prepare import prepare, resumed_config
from w2v.vectors.keyed import KeyedVectors


@dataclass(frozen=True, kw_only=True)
class Arguments(ReadingOptions, FlatSettings):
    """The keyword arguments of `train`, which are its signature: the options of a RunConfig, and objects in memory."""

    settings: Settings | None = None
    vocabulary: Vocabulary | None = None
    continue_from: Model | PathLike | None = None
    vocab: Vocab = RunConfig.vocab
    init: KeyedVectors | PathLike | None = None
    freeze: bool = RunConfig.freeze
    phrases: bool | PathLike = RunConfig.phrases
    checkpoint: PathLike | Checkpoints | None = None
    checkpoint_every: str = RunConfig.checkpoint_every
    notes: Mapping[str, Any] | None = None
    ignore_memory: bool = RunConfig.ignore_memory
    progress: Report | None = None
    communicator: Communicator | None = None


@formerly(world="communicator")
@taking(Arguments)
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
    refuse_unknown(given, [each.name for each in fields(Arguments)], RENAMED)
    progress, communicator = given.pop("progress", None), given.pop("communicator", None)
    with collective_errors(communicator):
        if (settings := given.pop("settings", None)) is not None:
            if others := sorted(given.keys() & {*Settings.names()}):
                raise SettingsError(f"{others[0]} is given in addition to settings: make it a part of them")
            if given.get("continue_from") is not None:
                raise SettingsError("continue_from has its own settings: give only the settings to change")
            given |= settings.as_dict(computed=False)
        given["notes"] = dict(given.get("notes") or {})
        source = open_source(given.get("continue_from"), given.get("init"))
        config = RunConfig.from_options(given, source)
        folder = given.get("checkpoint")
        inputs: dict[str, Any] = {"checkpoints": folder if isinstance(folder, Checkpoints) else None}
        inputs |= {"source": source, "vocabulary": given.get("vocabulary")}
    with prepare(config, corpus, **inputs, communicator=communicator, progress=progress) as run:
        run.train(progress)
        return run.model()


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
        state = folder if isinstance(folder, Checkpoint) else latest(folder)
        if corpus is None:
            files = state.config.corpus
            before = f"the run began with {one_line(', '.join(files))}" if files else "it was not a file"
            raise W2VError(f"give the corpus again, because paths in a checkpoint are not used; {before}")
        others = {"notes": state.config.notes if notes is None else dict(notes), "ignore_memory": ignore_memory}
        config = resumed_config(state, phrases, cache, **others)
    with prepare(config, corpus, state=state, communicator=communicator, progress=progress) as run:
        run.train(progress)
        return run.model()
