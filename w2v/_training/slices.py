"""`slices`: train models of several texts, such as the texts of successive periods, in one coordinate system.

A model of all texts, the compass, is trained first. Then the vectors of each text are trained against the frozen output
rows of the compass. A word has similar vectors in two texts if it predicts similar words in both (Di Carlo et al. 2019,
"Training Temporal Word Embeddings with a Compass").
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from w2v._detect import read_lines
from w2v._display import Result
from w2v._errors import NothingToTrain, SettingsError, W2VError, pluralise, translate_errors
from w2v._formats.vector_file import WORD_VIEW
from w2v._options import refuse, refuse_unknown
from w2v._progress import Report
from w2v._settings import RENAMED
from w2v._system.files import PathLike, as_paths, translate_os_errors
from w2v._text._text import FIRST_TYPE
from w2v._text.corpus import Corpus, DataFrameLike, Source
from w2v._text.tagging import TaggedTexts, tagged
from w2v._training.checkpoint import checksum
from w2v._training.checkpoint_folder import has_checkpoints, latest_checkpoints
from w2v._training.config import RunConfig
from w2v._training.identity import Identity, State, check_identity, identity_of, new_run_id, read_state, write_state
from w2v._training.model import Model
from w2v._training.reading import read_words
from w2v._training.source import check_frozen_outputs
from w2v._training.start import coordinates_of
from w2v._training.train import Arguments, open_training, resumed_config

log = logging.getLogger("w2v")

COMPASS, TAGGED = "compass", "tagged"  # the names of models of all texts
EXTENSION = ".safetensors"
# The files in the folder of the models that tell which of them are finished, without and with tagged words.
STATE, TAGGED_STATE = "slices.json", "tagged.json"
START_AGAIN = "start again with --force (force=True) instead of --resume"
COMPRESSED = {".gz", ".bz2", ".xz", ".zst"}
# Arguments of `train` that `slices` sets itself, or that several runs cannot share.
NOT_SHARED = {"settings", "vocabulary", "continue_from", "vocab", "init", "freeze", "notes", "communicator"}
OPTIONS = [each.name for each in fields(Arguments) if each.name not in NOT_SHARED | {"checkpoint", "progress"}]


@dataclass(frozen=True)
class Slice:
    """The model of one text.

    Attributes:
        path: The file of the model.
        words: The number of words in the model.
        missing: The number of words of the compass that the text contains less than min_count times. They have no
            vector in the model.
    """

    path: str
    words: int
    missing: int


@dataclass(frozen=True)
class Slices(Result):
    """The result of `slices`.

    Attributes:
        compass: The file of the model of all texts.
        words: The number of words of this model.
        slices: The model of each text, by name. With tag_words, this is the model of all texts, and only the tagged
            words are counted.
    """

    compass: str
    words: int
    slices: dict[str, Slice]


def slices(
    corpora: Mapping[str, Source] | Sequence[PathLike],
    output: PathLike,
    *,
    tag_words: PathLike | Collection[str] | None = None,
    checkpoint: PathLike | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Report | None = None,
    **given: Any,
) -> Slices:
    """Train a model of each text so that the vectors of all models can be compared.

    The models are written to `output`: the model of all texts to compass.safetensors, and the model of each text to a
    file with its name. They have the same `coordinates`. Each text is trained with all threads, one after the other.

    Args:
        corpora: The texts by name; or their files or folders, which give them their names: 1990s.txt.gz has the name
            1990s. Each text is anything that `train` accepts, except an iterator.
        output: The folder for the models; it is created if it does not exist.
        tag_words: Words, or the file of a text with them, to train one model of all texts instead, tagged.safetensors.
            In this model, each of these words has a vector for each text, such as gay_1990s, and other words have one
            vector (temporal referencing, Dubossarsky et al. 2019).
        checkpoint: A folder for the checkpoints of all runs.
        resume: Whether to go on after the same call was stopped, with the same texts and options. Models that are
            finished are kept. A run with a checkpoint is resumed.
        force: Whether to replace existing models and checkpoints.
        progress: See `train`.
        given: Other arguments of `train`, for all runs. `views` is "words" by default, and `vectors` must be "input".

    Returns:
        The files of the models, and the number of words that each text lacks.

    Raises:
        W2VError: A text cannot be used, a model exists and neither `resume` nor `force` is true, or a resumed call has
            other texts or options, or finds models of another call.
        SettingsError: A name or a setting is impossible.
    """
    refuse_unknown(given, OPTIONS, RENAMED)
    if given.get("phrases") is True:
        raise SettingsError(
            "phrases True: each text would have other phrases: find them first in all texts, with w2v phrases "
            "--save-phrases, and give that file"
        )
    options = {"views": "words", "vectors": "input", **given}
    config = RunConfig.from_options({**options, "checkpoint": checkpoint})
    if name := "documents" if config.settings.documents else config.reading.also_context and "also_context":
        raise SettingsError(f"{name}: slices train words: leave it out")
    sources = named_sources(corpora)
    words = None
    if tag_words is None:
        check_frozen_outputs(config.settings)
    else:
        words = words_to_tag(tag_words)
        views = None if options["views"] == "words" else options["views"]
        chosen = {"stop_early": config.settings.stop_early, "subwords": config.settings.subwords, "views": views}
        reason = "cannot be combined with tag_words: leave one of them out"
        refuse({f"{name} {reason}": value is not None for name, value in chosen.items()})
    output = Path(output)
    _check_outputs(output, [TAGGED] if words else [COMPASS, *sources], resume or force)
    given["tag_words"] = words
    given = {name: getattr(config.settings, name, value) for name, value in given.items()}
    state = _State(identity_of(config.run_id, _checksums(sources, config, words, progress), given), force=force)
    state_path = output / (TAGGED_STATE if words else STATE)
    if resume:
        stored = read_state(state_path, state, f"give the same texts and options again, or {START_AGAIN}")
        state = replace(stored, force=stored.force or force)
    write_state(state_path, state)
    run = _Runs(output, state_path, Path(checkpoint) if checkpoint else None, resume, progress, state)
    if words:
        return run.tagged(sources, words, options)
    compass = run.model(COMPASS, joined(list(sources.values())), options, None)
    finished: dict[str, Slice] = {}
    # The compass has the settings of a preset, and a text may get more epochs than the longer text of the compass.
    options = {"epochs": "auto"} | {name: value for name, value in options.items() if name != "preset"}
    options |= {"init": run.path(COMPASS), "freeze": "outputs"}
    for name, source in sources.items():
        model = run.model(name, source, options, compass)
        words_in_model, missing = len(model.vocabulary), len(compass.vocabulary) - len(model.vocabulary)
        finished[name] = Slice(str(run.path(name)), words_in_model, missing)
    return Slices(str(run.path(COMPASS)), len(compass.vocabulary), finished)


def _check_outputs(output: Path, names: Iterable[str], may_exist: bool) -> None:
    """Create the folder of the models.

    Raises:
        SettingsError: It is a file.
        W2VError: It cannot be created, or the model of one of the names exists and `may_exist` is false.
    """
    if output.exists() and not output.is_dir():
        raise SettingsError(f"{output} is a file: name a folder with -o (output=)")
    with translate_os_errors(output, "write models in"):
        output.mkdir(parents=True, exist_ok=True)
    for path in (output / f"{name}{EXTENSION}" for name in names):
        if path.exists() and not may_exist:
            raise W2VError(
                f"{path} exists: add --resume (resume=True) to keep finished models, or --force (force=True) to "
                "replace them"
            )


def _checksums(
    sources: Mapping[str, Source], config: RunConfig, tag_words: list[str] | None, progress: Report | None
) -> dict[str, str]:
    """Read all texts, and return the checksum of each by its name in messages.

    Raise W2VError if one of them has too few words to train a model. The compass has the words that a text contains at
    least min_count times, because it is trained on all texts.
    """
    min_count, checksums = config.settings.min_count, dict[str, str]()
    for name, source in sources.items():
        with translate_errors(f"the text {name}", NothingToTrain, to=NothingToTrain):
            store, _ = read_words(Corpus(source), config, progress)
        with store:
            if not tag_words and store.counts[FIRST_TYPE:].max(initial=0) < min_count:
                raise W2VError(
                    f"the text {name} has no word that occurs at least {pluralise(min_count, 'time')}: join it with "
                    "another text, leave it out, or lower --min-count (min_count=)"
                )
            checksums[f"text {name}"] = store.checksum()
    return checksums


@dataclass(frozen=True)
class _State(State):
    """The content of the file with the state of a call of `slices`. All runs of the call have the same id.

    Attributes:
        models: The checksum of the vectors of each model that was finished or is being written, by name.
        force: Whether the call replaces existing models.
    """

    models: dict[str, str] = field(default_factory=dict)
    force: bool = False


@dataclass
class _Runs:
    """The runs of a call of `slices`, with its arguments and its state, which they keep in a file."""

    output: Path
    state_path: Path
    checkpoint: Path | None
    resume: bool
    progress: Report | None
    state: _State

    def path(self, name: str) -> Path:
        return self.output / f"{name}{EXTENSION}"

    def model(
        self, name: str, source: Source | TaggedTexts, options: Mapping[str, Any], compass: Model | None
    ) -> Model:
        """Return a model with its coordinates: from its file, if it is finished and the call resumes, or by training.

        Args:
            name: The name of the text.
            source: The text.
            options: The arguments of `train`.
            compass: The model with the output rows to freeze; None for a model of all texts.
        """
        path = self.path(name)
        if self.resume and path.exists():
            try:
                finished = Model.load(path, mmap=True)
            except W2VError as error:
                raise W2VError(f"{error}; remove the file to train it again, or {START_AGAIN}") from None
            if checksum({"vectors": finished.vectors}, "") == self.state.models.get(name):
                return finished
            if not self.state.force:
                raise W2VError(f"{path} was not written by this call: remove it, or {START_AGAIN}")
        log.info("training %s", f"the slice {name}" if compass else f"the model {name} on all slices")
        with translate_errors(f"the text {name}", NothingToTrain, to=NothingToTrain):
            model = self._train(name, source, options, compass)
        if name == COMPASS:
            views = {
                name: replace(view, coordinates=coordinates_of(view.outputs)) for name, view in model.views.items()
            }
            model = replace(model, views=views)
            self.state.models.clear()  # slices that were trained with another compass do not count as finished
        # The state is written first: a model without its checksum would be taken for a model of another call.
        self.state.models[name] = checksum({"vectors": model.vectors}, "")
        write_state(self.state_path, self.state)
        model.save(path, force=self.state.force)
        return model

    def _train(
        self, name: str, source: Source | TaggedTexts, options: Mapping[str, Any], compass: Model | None
    ) -> Model:
        """Train a model, or resume its run from a checkpoint."""
        folder, run_id, resumed = self.checkpoint and self.checkpoint / name, self.state.identity.run_id, None
        arguments: dict[str, Any] = {"progress": self.progress, "replace_checkpoints": self.state.force}
        arguments |= {"checkpoint": folder}
        if folder and self.resume and has_checkpoints(folder):
            resumed = latest_checkpoints(folder)
        if resumed and (resumed[WORD_VIEW].config.run_id == run_id or not self.state.force):
            first = resumed[WORD_VIEW]
            check_identity(first.path, Identity(first.config.run_id), Identity(run_id), START_AGAIN)
            others = {key: options[key] for key in ("ignore_memory", "checkpoint_every") if key in options}
            config = resumed_config(resumed, options.get("phrases", False), options.get("cache"), **others)
            arguments["resume_from"] = resumed
        else:
            if name == COMPASS:  # another compass: checkpoints of slices that were trained with the old one do not fit
                run_id = new_run_id()
                self.state = replace(self.state, identity=replace(self.state.identity, run_id=run_id), models={})
                write_state(self.state_path, self.state)
            config = replace(RunConfig.from_options({**options, "checkpoint": folder}, compass), run_id=run_id)
            arguments |= {"source": compass, "views": options["views"]}
        with open_training(config, source, **arguments) as training:
            training.train(self.progress)
            return training.model()

    def tagged(self, sources: Mapping[str, Source], words: list[str], options: Mapping[str, Any]) -> Slices:
        """Train one model of all texts, with a vector of each chosen word for each text."""
        texts = TaggedTexts({name: Corpus(source) for name, source in sources.items()}, words)
        model = self.model(TAGGED, texts, options, None)
        path, known, size = str(self.path(TAGGED)), set(model.vocabulary.words), len(model.vocabulary)
        counts = {name: sum(tagged(word, name) in known for word in words) for name in sources}
        return Slices(path, size, {name: Slice(path, count, len(words) - count) for name, count in counts.items()})


def words_to_tag(words: PathLike | Collection[str]) -> list[str]:
    """Return the words of a file or of a collection, each once.

    Raises:
        W2VError: The file cannot be read, is not UTF-8, or contains no words.
    """
    if not isinstance(words, str | os.PathLike):
        if not words:
            raise W2VError("tag_words has no words")
        return list(dict.fromkeys(words))
    with translate_errors(f"{words}: its words are not UTF-8", UnicodeDecodeError):
        found = dict.fromkeys(word.decode() for _, line in read_lines(words) for word in line.split())
    if not found:
        raise W2VError(f"{words}: no words to tag: write some into it")
    return list(found)


def model_files(corpora: Mapping[str, Source] | Sequence[PathLike], output: Path, has_tags: bool) -> list[Path]:
    """Return the files that `slices` writes to a folder. `has_tags` is true with tag_words.

    Raises:
        SettingsError: A name is used twice or is impossible, or a text cannot be used.
    """
    names = named_sources(corpora)
    return [output / f"{name}{EXTENSION}" for name in ([TAGGED] if has_tags else [COMPASS, *names])]


def named_sources(corpora: Mapping[str, Source] | Sequence[PathLike]) -> dict[str, Source]:
    """Return the texts by name.

    Raises:
        SettingsError: A name is used twice or is impossible, there are fewer than two texts, or one can be read only
            once.
    """
    if isinstance(corpora, Mapping):
        sources = dict(corpora)
    else:
        sources = {}
        for path in as_paths(corpora):
            if not isinstance(path, str | os.PathLike):
                raise SettingsError(f"{path!r:.60} is not a path: give paths, or a dict of texts by name")
            name = slice_name(path)
            if {"*", "?"} & set(name) and not Path(path).exists():
                raise SettingsError(
                    f"{path}: a pattern does not give a name: put its files into a folder, and name the folder"
                )
            if name in sources:
                raise SettingsError(f"{sources[name]} and {path} have the same name {name!r}: rename one of them")
            sources[name] = path
    if len(sources) < 2:
        raise SettingsError(f"{pluralise(len(sources), 'text')}: give at least two")
    seen: dict[str, str] = {}
    for name, source in sources.items():
        if not isinstance(name, str):
            raise SettingsError(f"name {name!r}: it must be a string, such as '{name}'")
        if not name or name.startswith(".") or {"/", os.sep, "\0"} & set(name):
            raise SettingsError(f"name {name!r}: it must be the name of a file")
        if name.casefold() in (COMPASS, TAGGED):
            raise SettingsError(f"name {name!r}: it belongs to the model of all texts: rename the text")
        if (other := seen.setdefault(name.casefold(), name)) != name:
            raise SettingsError(f"names {other!r} and {name!r}: on some systems they are the same file: rename one")
        paths = [Path(path) for path in paths_of(source)]
        if Path("-") in paths or isinstance(source, Iterator):
            raise SettingsError(f"{name}: it can be read only once, but it is trained twice: give a file or a list")
        if paths:
            Corpus(paths)  # raises W2VError if a file does not exist
    return sources


def slice_name(path: PathLike) -> str:
    """Return the name of the slice in a file or folder: the name of the file without its extensions."""
    path = Path(path)
    if path.is_dir():
        return path.resolve().name
    if path.suffix in COMPRESSED:
        path = path.with_suffix("")
    return path.stem


def joined(sources: Sequence[Source]) -> Source:
    """Return one text with all texts, one after the other.

    Raises:
        SettingsError: The texts are neither all files nor all lists.
    """
    are_paths = [bool(paths_of(source)) for source in sources]
    if all(are_paths):
        return [Path(path) for source in sources for path in paths_of(source)]
    if any(are_paths) or any(isinstance(source, DataFrameLike) for source in sources):
        raise SettingsError("texts to join must all be files, or all be lists of texts or of lists of words")
    return [text for source in sources for text in source]  # type: ignore[union-attr,return-value]


def paths_of(source: Source) -> list[PathLike]:
    """Return the paths of a text in files; an empty list if it is in memory."""
    if isinstance(source, str | os.PathLike):
        return [source]
    is_list = isinstance(source, list | tuple) and any(isinstance(item, os.PathLike) for item in source)
    return list(source) if is_list else []  # type: ignore[arg-type]
