"""`RunConfig`: the description of a run, in memory, in a settings file and in a checkpoint."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

from w2v._errors import SettingsError, W2VError, translate_errors
from w2v._formats import registry
from w2v._formats.vector_file import WORD_VIEW
from w2v._graph.readers import GraphOptions
from w2v._graph.walks import WalkOptions
from w2v._losses.hierarchical_softmax import TREES
from w2v._losses.registry import LOSSES, USER_DEFINED, Settings, settings_from
from w2v._options import checked_value, options_of, refuse, refuse_unknown, suggestion
from w2v._settings import PRESETS, RENAMED, Freeze, ViewOptions, join_pair
from w2v._system.files import PathLike, atomic_write, is_nameable, translate_os_errors
from w2v._system.schema import convert
from w2v._text.idstore import ReadingOptions
from w2v._text.labels import DIRECT_LOSSES, LabelOptions
from w2v._text.normalise import TextOptions
from w2v._text.words import KeyType
from w2v._training.classifier import Classifier
from w2v._training.identity import new_run_id
from w2v._training.model import SAFETENSORS_ALSO_KEEPS, Model
from w2v._training.schedule import DEFAULT_INTERVAL, interval
from w2v._training.source import Vocab, settings_of_classifier, settings_of_run
from w2v._training.views import settings_to_repeat
from w2v._vectors.keyed import KeyedVectors

# Each option, and the option without which it has no effect.
REQUIRED_OPTION = {"vocab": "continue_from", "freeze": "init", "checkpoint_every": "checkpoint"}
# Options that have no effect if the run takes its words, matrices and settings from a model.
EXCLUDED_BY_CONTINUE, EXCLUDED_BY_FREEZE = ("init", "vocabulary", "preset"), ("vocabulary", "preset")
# Options that a RunConfig does not have: `train` opens the files, and chooses the views and the defaults.
KINDS = ("pairs", "graph")  # of a corpus, besides texts
OPENED = ("continue_from", "init", "vocabulary", "checkpoint", "views", *KINDS, "classify", "preset", "held_out")
OTHERS_IN_FILES = ("corpus", *KINDS, "output", "phrases", "preset", "views")  # what a settings file may also have
OPTIONAL = {"walks": WalkOptions, "pairs": GraphOptions, "labels": LabelOptions}  # parts that only some runs have
NO_EFFECT_ON_PAIRS = {"vocabulary", "window", "shrink_windows", "cbow_gradient", "views"}
NO_EFFECT_ON_PAIRS |= options_of(WalkOptions).keys() - {"graph_format", "edges", "delimiter", "bipartite"}
# Other defaults for a classifier.
LABEL_SETTINGS: dict[str, Any] = {
    "model": "cbow",
    "loss": "ova",
    "smoothing": 0.01,
    "min_count": 1,
    "sample": 0,
    "vectors": "input",
    "epochs": 10,
}
# Other defaults for documents, by the value of `documents`: the best that were measured (bench/NOTES.md).
DOCUMENT_SETTINGS: dict[str, dict[str, Any]] = {
    "dbow": {"model": "skipgram", "min_count": 2, "epochs": 20, "sample": 1e-3, "alpha": 0.1},
    "dm": {"model": "cbow", "min_count": 2, "epochs": 20, "window": 5, "alpha": 0.1},
    "dbow+words": {"model": "skipgram", "min_count": 2, "epochs": 20, "sample": 1e-3, "alpha": 0.05},
}
MODEL_SUFFIX = ".safetensors"


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The description of a run: its text, its settings, and how it starts. All values can be stored as JSON.

    Attributes:
        corpus: The paths of the text, "-" for standard input; () for a text in memory.
        settings: The settings of the run, including those that come from a continued model or the vectors of `init`.
        reading: How the text is read, including options that come from a continued model or the vectors of `init`.
        walks: How to make random walks if the corpus is a graph; None if it is a text.
        pairs: How to read the corpus if it is pairs.
        labels: The options of a classifier; None if words predict words.
        tags: The column of a table with the tags of documents; None without one.
        negatives_from: The column of a table of pairs with the group of the context; None without one.
        phrases: The file of phrases to join; True to find phrases in the text.
        vocab: See `train`.
        freeze: See `train`.
        checkpoint_every: The interval between checkpoints.
        notes: JSON values of the caller, stored in the checkpoints.
        ignore_memory: Whether the run starts even if memory looks insufficient.
        run_id: See `Identity`.

    Raises:
        SettingsError: A value is impossible.
    """

    corpus: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    walks: WalkOptions | None = None
    pairs: GraphOptions | None = None
    labels: LabelOptions | None = None
    tags: str | None = None
    negatives_from: str | None = None
    phrases: bool | str = False
    vocab: Vocab = "old"
    freeze: Freeze | None = None
    checkpoint_every: str = DEFAULT_INTERVAL
    notes: dict[str, Any] = field(default_factory=dict)
    ignore_memory: bool = False
    run_id: str = field(default_factory=new_run_id, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.corpus, tuple) or not all(map(_is_path, self.corpus)):
            found = list(self.corpus) if isinstance(self.corpus, tuple) else self.corpus
            raise SettingsError(f"corpus {found!r}: it must be a path or a list of paths")
        if not isinstance(self.phrases, bool) and not _is_path(self.phrases):
            raise SettingsError(f"phrases {self.phrases!r}: it must be true, or a path")
        for name in ("tags", "negatives_from", "vocab", "freeze", "ignore_memory", "run_id"):
            checked_value(RunConfig, name, getattr(self, name))  # raises SettingsError
        if self.settings.documents:
            self._check_documents()
        elif self.tags is not None:
            raise SettingsError("--tags (tags=) has no effect without --documents (documents=)")
        if self.negatives_from is not None and not self.pairs:
            raise SettingsError("--negatives-from (negatives_from=) has no effect without --pairs (pairs=)")
        if self.reading.also_context is not None and (self.settings.subwords is not None or self.freeze == "inputs"):
            raise SettingsError(
                "--also-context (also_context=) cannot be combined with --subwords (subwords=) or --freeze inputs "
                "(freeze=)"
            )
        if not isinstance(self.notes, dict):
            raise SettingsError(f"notes {self.notes!r}: they must be a dictionary")
        interval(self.checkpoint_every)  # raises SettingsError

    def _check_documents(self) -> None:
        """Raise SettingsError if an option does not suit documents."""
        refused = {
            "--graph (graph=)": self.walks,
            "--pairs (pairs=)": self.pairs,
            "w2v classify (train_classifier)": self.labels,
            "--freeze (freeze=)": self.freeze,
            "--item (item=)": self.reading.item,
            "--phrases (phrases=) without a file": self.phrases is True,
        }
        prefix = f"documents {self.settings.documents}: it cannot be combined with "
        refuse({prefix + name: is_chosen for name, is_chosen in refused.items()})

    @classmethod
    def from_options(
        cls,
        given: Mapping[str, Any],
        source: Model | KeyedVectors | Classifier | None = None,
        display_name: Callable[[str], str] = str,
    ) -> RunConfig:
        """Build the config of a run from options.

        Args:
            given: The options by name: fields of Settings, of ReadingOptions, of WalkOptions and of this class, and
                OPENED, in one namespace. `graph` says whether the corpus is a graph. `preset` is the name of other
                defaults for the settings, a key of PRESETS; for a graph, it is "graph".
            source: The model to continue, or the vectors to initialise words with. It provides the settings and text
                options that are not given.
            display_name: A function that converts the name of an option to the form shown in errors, such as --vocab.

        Raises:
            SettingsError: A name is unknown, a value is impossible, or options contradict each other.
        """
        own = [each.name for each in fields(cls) if each.name not in ("settings", "reading", *OPTIONAL)]
        names = [options_of(each) for each in (Settings, ReadingOptions, WalkOptions, LabelOptions)] + [own]
        refuse_unknown(given, [*chain(*names), *OPENED], RENAMED)
        settings, reading, walks, labels, others = (
            {name: given[name] for name in given if name in known} for known in names
        )
        kind = next((name for name in KINDS if _checked_flag(name, given.get(name, False))), None)
        preset = preset_settings(given.get("preset") or (None if isinstance(source, Model) else kind))
        for name, relation, other in _options_without_effect(given):
            starts = ": the run starts from the words, matrices and settings of the model"
            reason = starts if (relation, other) in (("with", "continue_from"), ("with", "freeze")) else ""
            raise SettingsError(f"{display_name(name)} has no effect {relation} {display_name(other)}{reason}")
        if isinstance(others.get("phrases"), os.PathLike):
            others["phrases"] = os.fspath(others["phrases"])
        inherited = {}
        if source is not None:
            preset.pop("vector_size", None)  # the source decides it
            inherited = asdict(source.header.text if isinstance(source, KeyedVectors) else source.text)
        vocab, freeze = others.get("vocab", cls.vocab), others.get("freeze")
        label_options = None
        if isinstance(source, Classifier):
            resolved = settings_of_classifier(source, settings | labels)
            label_options = replace(source.options, labels=None, **labels)
        else:
            if _checked_flag("classify", given.get("classify", False)):
                size = {"vector_size": source.vector_size} if isinstance(source, KeyedVectors) else {}
                label_options = label_options_of(labels, size | settings)
                if freeze == "outputs":
                    raise SettingsError("freeze outputs: only words have such rows: choose inputs")
                preset = LABEL_SETTINGS | preset
            if not isinstance(source, Model):
                preset = DOCUMENT_SETTINGS.get(str(given.get("documents")), {}) | preset
            resolved = settings_of_run(source, preset | settings, vocab, freeze)
        if given.get("held_out") and not resolved.stop_early:
            raise SettingsError(f"{display_name('held_out')} has no effect without {display_name('stop_early')}")
        pair_options = GraphOptions(**{"bipartite": True, **walks}) if kind == "pairs" else None
        if pair_options:
            if pair_options.bipartite and isinstance(source, Model) and not source.views[WORD_VIEW].contexts:
                raise SettingsError(
                    "the model to start from was not trained on pairs of two vocabularies: leave it out"
                )
            check_pair_settings(resolved, pair_options, given.get("negatives_from") is not None)
        return cls(
            settings=resolved,
            reading=ReadingOptions(**inherited | reading),
            walks=WalkOptions(**walks) if kind == "graph" else None,
            pairs=pair_options,
            labels=label_options,
            **others,
        )

    @property
    def text(self) -> TextOptions:
        """How the text is normalised and split into words."""
        return TextOptions.of(self.reading)

    def check_items(self, where: str, key_type: KeyType | None) -> None:
        """Raise SettingsError if an option does not suit a corpus of items or nodes.

        Args:
            where: The name of the corpus, for the message.
            key_type: "int" if the items are numbers; None if that is not known yet.
        """
        if self.phrases is not False:
            raise SettingsError(f"--phrases (phrases=) joins words of a text, but {where} holds items: leave it out")
        settings = self.settings
        by_characters = {
            "--subwords or --views words+subwords (subwords=, views=)": settings.subwords is not None,
            "--loss charcnn (loss=)": settings.loss == "charcnn",
        }
        if key_type == "int" and (options := [name for name, is_chosen in by_characters.items() if is_chosen]):
            raise SettingsError(f"{options[0]} needs the characters of words, but {where} holds numbers: leave it out")

    def stored(self) -> dict[str, Any]:
        """Return the values that a checkpoint stores, for `from_stored`, with absolute paths.

        They leave out the settings, which are in the header of every model file, and the cache folder, which the user
        must name again.
        """
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "settings"}
        values["reading"] = {name: value for name, value in asdict(self.reading).items() if name != "cache"}
        parts = {name: getattr(self, name) for name in OPTIONAL}
        values |= {name: part and asdict(part) for name, part in parts.items()}
        values["corpus"] = [path if path == "-" else str(Path(path).absolute()) for path in self.corpus]
        if isinstance(self.phrases, str):
            values["phrases"] = str(Path(self.phrases).absolute())
        return values

    @classmethod
    def from_stored(cls, values: Mapping[str, Any], settings: Settings) -> RunConfig:
        """Build the config from the values in a checkpoint.

        Somebody else may have written the checkpoint, so its paths are only shown to the user, who names the files
        again. They are never opened.

        Raises:
            W2VError: The values are damaged.
        """
        names = {each.name for each in fields(cls)} - {"settings"}
        for name in sorted(names ^ values.keys()):
            raise W2VError(f"its config: damaged: {name:.60} is missing or unknown")
        with translate_errors("its config: damaged", TypeError):
            converted = {
                "corpus": tuple(convert(list[str], values["corpus"], "its corpus")),
                "reading": ReadingOptions(**values["reading"]),
                **{name: values[name] and kind(**values[name]) for name, kind in OPTIONAL.items()},
            }
            return cls(**{**values, **converted}, settings=settings)

    def save(self, path: PathLike, *, output: PathLike, views: str, force: bool = False) -> None:
        """Write the settings, and the names of the text and the output, to a TOML file that `read_options` can read.

        Args:
            path: The file.
            output: The file for the model.
            views: The views of the model; see `train`.
            force: Whether to replace an existing file.

        Raises:
            W2VError: The file cannot be written, or it exists and `force` is false.
        """
        values: dict[str, Any] = {"corpus": list(self.corpus), "output": os.fspath(output), "views": views}
        values |= self.settings.in_effect(computed=False)
        if options := self.walks or self.pairs:
            values |= {"graph" if self.walks else "pairs": True, **asdict(options), "cache": self.reading.cache}
        else:
            values |= asdict(self.reading)
        values["phrases"] = self.phrases or None
        with atomic_write(path, force) as file:
            for name, value in values.items():
                if value is not None and not (self.pairs and name in NO_EFFECT_ON_PAIRS):
                    file.write(toml_line(path, name, value))


def _options_without_effect(given: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each given option without effect, "with" or "without", and the other option that causes this."""
    kind = next((name for name in KINDS if given.get(name)), "")
    if kind:
        none = options_of(ReadingOptions).keys() - {"cache"} | {"phrases", "graph"} - {kind}
        none |= NO_EFFECT_ON_PAIRS if kind == "pairs" else set()
        yield from ((name, "with", kind) for name, value in given.items() if name in none and value is not False)
    else:
        yield from ((name, "without", "graph") for name in given if name in options_of(WalkOptions))
    for name, needed in REQUIRED_OPTION.items():
        default = getattr(RunConfig, name)
        if given.get(name, default) != default and given.get(needed) is None:
            yield name, "without", needed
    if given.get("continue_from") is not None:
        yield from ((name, "with", "continue_from") for name in EXCLUDED_BY_CONTINUE if given.get(name) is not None)
    elif given.get("freeze") == "outputs":
        yield from ((name, "with", "freeze") for name in EXCLUDED_BY_FREEZE if given.get(name) is not None)


def _checked_flag(name: str, value: Any) -> bool:
    """Return a flag. Raise SettingsError if it is not a bool."""
    if not isinstance(value, bool):
        raise SettingsError(f"{name} {value!r:.60}: it must be True or False")
    return value


def check_pair_settings(settings: Settings, pairs: GraphOptions, has_groups: bool) -> None:
    """Raise SettingsError if a setting does not suit pairs."""
    reasons = {
        "model cbow: each input predicts its context: choose skipgram": settings.model != "skipgram",
        "subwords: the inputs of pairs have none: leave it out": settings.subwords is not None,
        f"negatives_from: loss {settings.loss}, kernel {settings.kernel}: choose loss ns and kernel cython": has_groups
        and (settings.loss, settings.kernel) != ("ns", "cython"),
        "stop_early: pairs cannot be held out: leave it out": settings.stop_early is not None,
        f"vectors {settings.vectors}: inputs and contexts have two vocabularies: choose input, or --unipartite "
        "(bipartite=False)": pairs.bipartite and settings.word_vectors != "input",
    }
    refuse(reasons)


def label_options_of(labels: Mapping[str, Any], settings: Mapping[str, Any]) -> LabelOptions:
    """Return the options of a classifier. The settings that are given may decide between direct and embedded.

    Raises:
        SettingsError: A value is impossible, or a direct model does not suit a setting.
    """
    loss = settings.get("loss")
    options = LabelOptions(**labels, auto_loss=loss is None)
    if settings.get("min_alpha") is not None and settings.get("alpha") is None:
        raise SettingsError("min_alpha needs alpha: the default of alpha is chosen after the texts are read")
    if loss in LOSSES and "cython" not in LOSSES[loss].kernels:
        raise SettingsError(f"loss {loss} cannot learn labels: choose ova, softmax, hs or ns")
    is_embedded = "vector_size" in settings or loss not in (None, *DIRECT_LOSSES)
    if options.classifier == "direct" and is_embedded:
        found = "vector_size" if "vector_size" in settings else f"loss {loss}"
        raise SettingsError(f"classifier direct: it has no {found}: leave it out, or choose embedded")
    if options.classifier == "auto" and (is_embedded or loss):
        is_embedded = is_embedded or options.pooling == "mean"
        return replace(options, classifier="embedded" if is_embedded else "direct")
    return options


def preset_settings(name: str | None) -> dict[str, Any]:
    """Return the settings of a preset by its name, in a new dict; it is empty without a name.

    Raises:
        SettingsError: There is no such preset.
    """
    if name is None:
        return {}
    if name not in [*PRESETS]:  # in a list, since the value may not be hashable
        raise SettingsError(f"preset {name!r}: {suggestion(str(name), [*PRESETS])}")
    return dict(PRESETS[name])


def _is_path(value: object) -> bool:
    return isinstance(value, str) and bool(value) and is_nameable(value)


# -- settings files -----------------------------------------------------------------------


def read_options(path: Path) -> dict[str, Any]:
    """Read options for `RunConfig.from_options` from a TOML file, or from the settings in a .safetensors model.

    Raises:
        SettingsError: A name is unknown, or a value has the wrong type or is out of range. The message names the file.
        W2VError: The file cannot be read.
    """
    if path.suffix == MODEL_SUFFIX:
        return _options_of_model(path)
    values = _options_of_toml(path)
    kinds = {name: kind for kind in (Settings, ReadingOptions, WalkOptions) for name in options_of(kind)}
    with translate_errors(str(path), SettingsError, to=SettingsError):
        refuse_unknown(values, [*kinds, *OTHERS_IN_FILES], RENAMED)
        others = {name: values.pop(name) for name in OTHERS_IN_FILES if name in values}
        if isinstance(corpus := others.get("corpus"), str | list):
            others["corpus"] = (corpus,) if isinstance(corpus, str) else tuple(corpus)
        preset_settings(others.get("preset"))  # raises SettingsError
        for name in KINDS:
            _checked_flag(name, others.get(name, False))  # raises SettingsError
        RunConfig(**{name: others[name] for name in ("corpus", "phrases") if name in others})
        checked_value(ViewOptions, "views", others.get("views", ViewOptions.views))
        if not _is_path(others.get("output", "model.bin")):
            raise SettingsError(f"output {others['output']!r}: it must be a path")
        checked = {name: checked_value(kinds[name], name, join_pair(name, value)) for name, value in values.items()}
        return checked | others


def _options_of_toml(path: Path) -> dict[str, Any]:
    with translate_os_errors(path), path.open("rb") as file:
        text = file.read()
    # A ValueError says that it is not UTF-8 or not TOML.
    with translate_errors(f"{path} is not a TOML file of settings", ValueError, RecursionError):
        return tomllib.loads(text.decode())


def _options_of_model(path: Path) -> dict[str, Any]:
    """Return the options that a model was trained with, without computed values, which depend on other options.

    Somebody else may have written the model, so its paths are not used.
    """
    header = registry.read(path, mmap=True).header
    if header.settings is None:
        raise W2VError(f"{path}: it has no settings: train with -o model.safetensors, which {SAFETENSORS_ALSO_KEEPS}")
    views = [dict(view.settings) for view in header.views.values()] or [dict(header.settings)]
    for stored in views:
        if stored.get("loss") == USER_DEFINED or stored.get("objective") is not None:
            raise SettingsError(
                f"{path}: its loss is user-defined, and model files run no code: write a TOML file of settings"
            )
        if stored.get("tree") not in (None, *TREES) or stored.get("tree_vectors") is not None:
            raise SettingsError(
                f"{path}: its tree was made from a file, and paths in models are not used: write a TOML file of "
                "settings"
            )
    settings = settings_to_repeat([settings_from(stored, f"{path}: its settings") for stored in views])
    text = {name: value for name, value in asdict(header.text).items() if value is not None}
    return (
        replace(settings, workers=None).in_effect(computed=False)
        | text
        | {"views": "+".join(header.views or ["words"])}
    )


def toml_line(path: PathLike, name: str, value: Any) -> bytes:
    """Return the line of a TOML file that gives an option this value.

    Raises:
        W2VError: The value is a file name with bytes that are not UTF-8.
    """
    try:
        return f"{name} = {_toml(value)}\n".encode()
    except UnicodeEncodeError:
        raise W2VError(f"cannot write {path}: {name} is not UTF-8, which TOML requires") from None


def _toml(value: Any) -> str:
    """Return a value in TOML syntax. It is the same as in JSON, except for the character DEL."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
