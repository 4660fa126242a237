"""`train` and `resume`: build the config of a run, prepare the run, train, and return a Model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from w2v.errors import SettingsError, W2VError, one_line
from w2v.graph.graph import is_graph
from w2v.graph.walks import WalkOptions
from w2v.losses.registry import FlatSettings, Settings
from w2v.options import refuse_unknown, with_parameters_of
from w2v.progress import Report
from w2v.settings import RENAMED, Freeze, Preset
from w2v.system.files import PathLike
from w2v.text.corpus import Source
from w2v.text.idstore import ReadingOptions
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import Checkpoint
from w2v.training.checkpoint_folder import CheckpointFolder
from w2v.training.communicator import Communicator, collective_errors
from w2v.training.config import RunConfig
from w2v.training.initialisation import Vocab, open_source
from w2v.training.model import Model, ViewsModel
from w2v.training.prepare import prepare, resumed_config
from w2v.training.views import ViewsCheckpoint, latest_checkpoint
from w2v.vectors.keyed import KeyedVectors


@dataclass(frozen=True, kw_only=True)
class Arguments(ReadingOptions, WalkOptions, FlatSettings):
    """The keyword arguments of `train`: the options of a RunConfig, and objects in memory."""

    settings: Settings | None = None
    preset: Preset | None = None
    graph: bool = False
    vocabulary: Vocabulary | None = None
    continue_from: Model | ViewsModel | PathLike | None = None
    vocab: Vocab = RunConfig.vocab
    init: KeyedVectors | Model | ViewsModel | PathLike | None = None
    freeze: Freeze | bool | None = RunConfig.freeze
    phrases: bool | PathLike = RunConfig.phrases
    checkpoint: PathLike | CheckpointFolder | None = None
    checkpoint_every: str = RunConfig.checkpoint_every
    notes: Mapping[str, Any] | None = None
    ignore_memory: bool = RunConfig.ignore_memory
    progress: Report | None = None
    communicator: Communicator | None = None


@with_parameters_of(Arguments)
def train(corpus: Source, **given: Any) -> Model:
    """Train word vectors, and return a model.

    Args:
        corpus: The text to train on. One of: a path or a list of pathlib.Path (files, folders, globs, "-"; compressed
            or not); an iterable (list, Series, ...) of texts or of lists of words; a table, such as a DataFrame, with
            the argument `column`. Texts are split into words according to `tokenize`. Missing texts (None, NaN) are
            skipped and counted. An iterable is read once.
        settings: A Settings object. Its fields can be given as keyword arguments instead, such as vector_size=300;
            `w2v train --help` describes them. `objective` may be a Loss object.
        preset: Other defaults for the settings that are not given: "items" or "graph", as --preset.
        graph: Whether the files of the corpus are a graph, to train on random walks; see w2v.graph.readers.read_graph.
            The corpus may also be a graph of scipy.sparse or networkx. The default of preset is then "graph".
        weighted, directed, delimiter, walk_length, num_walks, p, q: The options of the walks; see WalkOptions.
        vocabulary: The words to train, instead of the words of the corpus.
        continue_from: A model to continue, or its .safetensors file. The run starts with the matrices of the model and
            uses the model's settings unless you give others. `workers` is not taken from a file.
        vocab: "old" keeps the words, counts and tree of the continued model. "union" adds the words and counts of the
            corpus; new words start like the words of a new model.
        init: KeyedVectors, or a file in any format that w2v.load reads. Matching words start with these vectors. All
            other words and the output layer start with new values.
        freeze: What stays unchanged during training. "inputs" (or True): the vectors of the words in `init`. "outputs":
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
        communicator: The ranks of an MPI job to train with, from w2v.training.communicator.join_ranks; see
            docs/cluster.md. Each rank returns the model. Rank 0 writes the checkpoints.

    Returns:
        The trained model. With two `views`, which is the default for most small texts, it is a ViewsModel, and
        `model.views["words"]` is a Model.

    Raises:
        W2VError: The corpus cannot be used, or the matrices do not fit in memory.
        SettingsError: A setting is impossible.
    """
    refuse_unknown(given, [each.name for each in fields(Arguments)], RENAMED)
    progress, communicator = given.pop("progress", None), given.pop("communicator", None)
    with collective_errors(communicator):
        if (settings := given.pop("settings", None)) is not None:
            if others := sorted(given.keys() & {*Settings.names()}):
                raise SettingsError(f"give {others[0]} inside settings, not in addition to it")
            if given.get("preset") is not None:
                raise SettingsError("preset has no effect with settings, which have all values")
            if given.get("continue_from") is not None:
                raise SettingsError("continue_from has its own settings: give only the settings to change")
            given |= settings.as_dict(computed=False) | {"objective": settings.objective}
        given["notes"] = dict(given.get("notes") or {})
        source = open_source(given.get("continue_from"), given.get("init"), given.get("freeze"))
        if is_graph(corpus):
            given["graph"] = True
        config = RunConfig.from_options(given, source)
        folder = given.get("checkpoint")
        inputs: dict[str, Any] = {"checkpoint_folder": folder if isinstance(folder, CheckpointFolder) else None}
        inputs |= {"source": source, "vocabulary": given.get("vocabulary")}
    with prepare(config, corpus, **inputs, communicator=communicator, progress=progress) as run:
        run.train(progress)
        return cast(Model, run.model())  # see Model.load


def resume(
    folder: PathLike | Checkpoint | ViewsCheckpoint,
    corpus: Source | None = None,
    *,
    phrases: bool | PathLike = False,
    cache: PathLike | None = None,
    notes: Mapping[str, Any] | None = None,
    ignore_memory: bool = False,
    progress: Report | None = None,
    communicator: Communicator | None = None,
) -> Model:
    """Resume a run from the newest undamaged checkpoint in a folder, and return the model.

    With one worker, or with `deterministic`, the model has the same bits as if the run had never been stopped. All
    files must be named again: somebody else may have written the checkpoint, so paths in it are never opened.

    Args:
        folder: The `checkpoint` folder of `train`, or the result of w2v.training.views.latest_checkpoint.
        corpus: The same text as before; it may have been moved.
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
    with collective_errors(communicator):
        checkpoint = folder if isinstance(folder, Checkpoint | ViewsCheckpoint) else latest_checkpoint(folder)
        if corpus is None:
            files = checkpoint.config.corpus
            before = f"the run began with {one_line(', '.join(files))}" if files else "it was not a file"
            raise W2VError(f"give the corpus again, because paths in a checkpoint are not used; {before}")
        others = {"notes": checkpoint.config.notes if notes is None else dict(notes), "ignore_memory": ignore_memory}
        config = resumed_config(checkpoint, phrases, cache, **others)
    with prepare(config, corpus, resume_from=checkpoint, communicator=communicator, progress=progress) as run:
        run.train(progress)
        return cast(Model, run.model())  # see Model.load
