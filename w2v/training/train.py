"""`train` and `resume`: build the config of a run, train each view, and return a Model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from w2v.errors import SettingsError, W2VError, one_line
from w2v.formats.vector_file import WORD_VIEW
from w2v.graph.graph import is_graph
from w2v.graph.walks import WalkOptions
from w2v.losses.registry import Settings
from w2v.options import options_of, refuse_unknown, with_parameters_of
from w2v.progress import Report
from w2v.settings import RENAMED, Freeze, Preset, ViewOptions
from w2v.system.files import PathLike
from w2v.text.corpus import Source
from w2v.text.idstore import ReadingOptions
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import Checkpoint
from w2v.training.checkpoint_folder import CheckpointFolder
from w2v.training.communicator import OneProcess
from w2v.training.config import RunConfig
from w2v.training.folders import latest_checkpoints, run_folder
from w2v.training.model import Model
from w2v.training.source import Vocab, open_source
from w2v.training.training import open_training
from w2v.training.views import whole_settings
from w2v.vectors.keyed import KeyedVectors


@dataclass(frozen=True, kw_only=True)
class Arguments(ReadingOptions, WalkOptions, ViewOptions, Settings):
    """The keyword arguments of `train`: the options of a RunConfig, and objects in memory."""

    settings: Settings | None = None
    preset: Preset | None = None
    graph: bool = False
    vocabulary: Vocabulary | None = None
    continue_from: Model | PathLike | None = None
    vocab: Vocab = RunConfig.vocab
    init: KeyedVectors | Model | PathLike | None = None
    freeze: Freeze | None = RunConfig.freeze
    phrases: bool | PathLike = RunConfig.phrases
    checkpoint: PathLike | CheckpointFolder | None = None
    checkpoint_every: str = RunConfig.checkpoint_every
    notes: Mapping[str, Any] | None = None
    ignore_memory: bool = RunConfig.ignore_memory
    progress: Report | None = None
    communicator: OneProcess | None = None


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
        views: "words" for a model of one view, "words+subwords" for two; see --views.
        vocabulary: The words to train, instead of the words of the corpus.
        continue_from: A model to continue, or its .safetensors file. The run starts with the matrices of the model and
            uses the model's settings unless you give others. `workers` is not taken from a file.
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
        communicator: The ranks of an MPI job to train with, from w2v.training.communicator.join_ranks; see
            docs/cluster.md. Each rank returns the model. Rank 0 writes the checkpoints.

    Returns:
        The trained model.

    Raises:
        W2VError: The corpus cannot be used, or the matrices do not fit in memory.
        SettingsError: A setting is impossible.
    """
    refuse_unknown(given, [each.name for each in fields(Arguments)], RENAMED)
    ranks, progress = given.pop("communicator", None) or OneProcess(), given.pop("progress", None)
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
        source = open_source(given.get("continue_from"), given.get("init"), given.get("freeze"))
        if is_graph(corpus):
            given["graph"] = True
        config = RunConfig.from_options(given, source)
    opened |= {"views": views, "source": source, "ranks": ranks, "progress": progress}
    with open_training(config, corpus, **opened) as training:
        training.train(progress)
        return training.model()


def resume(
    folder: PathLike | Mapping[str, Checkpoint],
    corpus: Source | None = None,
    *,
    phrases: bool | PathLike = False,
    cache: PathLike | None = None,
    notes: Mapping[str, Any] | None = None,
    ignore_memory: bool = False,
    progress: Report | None = None,
    communicator: OneProcess | None = None,
) -> Model:
    """Resume a run from the newest undamaged checkpoint in a folder, and return the model.

    With one worker, or with `deterministic`, the model has the same bits as if the run had never been stopped. All
    files must be named again: somebody else may have written the checkpoint, so paths in it are never opened.

    Args:
        folder: The `checkpoint` folder of `train`, or the result of w2v.training.views.latest_checkpoints.
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
    resources: dict[str, Any] = {"checkpoint": run_folder(checkpoints), "ranks": ranks, "progress": progress}
    with open_training(config, corpus, resume_from=checkpoints, **resources) as training:
        training.train(progress)
        return training.model()


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
        raise SettingsError(f"phrases {phrases}: the run joined {joined}; leave it out")
    if isinstance(phrases, bool):
        raise W2VError(
            "give the file of phrases again with --phrases (phrases=), because paths in a checkpoint are not used; the "
            f"run began with {one_line(original)}"
        )
    return str(phrases)
