"""The source of a run, a model to continue or vectors to initialise words with, and the settings that it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Literal

from w2v._errors import SettingsError, VectorsWithoutModel, W2VError
from w2v._formats import bfloat16
from w2v._losses.registry import Settings
from w2v._options import options_of
from w2v._settings import Freeze, Views
from w2v._text.labels import LabelOptions
from w2v._training.classifier import Classifier
from w2v._training.model import Model
from w2v._training.views import ONE_VIEW, TWO_VIEWS, settings_to_repeat
from w2v._vectors.keyed import KeyedVectors, load, vectors_of

Vocab = Literal["old", "union"]

# The highest default learning rate of a continued run. With the rates of a new run, the model forgets its first text
# (bench/README.md).
CONTINUED_ALPHA = 0.01
WORD_SELECTION_SETTINGS = ("min_count", "max_vocab")  # settings that select words from the text
# The options that cannot change when training is continued.
FIXED_OPTIONS = {name for kind in (Settings, LabelOptions) for name, option in options_of(kind).items() if option.fixed}


def open_source(given: Mapping[str, Any]) -> Model | Classifier | KeyedVectors | None:
    """Open the model to continue, or the vectors or the model to initialise words with.

    Args:
        given: The options of the run by name: `continue_from`, `init` and `freeze`, see `train`; and `classify`, which
            is true for a classifier.

    Returns:
        The model, classifier or vectors; None without `continue_from` and `init`.

    Raises:
        W2VError: The file cannot be read, or it holds only word vectors and a model is needed.
    """
    continued, init, classify = given.get("continue_from"), given.get("init"), given.get("classify")
    if continued is None and init is not None and given.get("freeze") == "outputs" and not classify:
        return Model.of(init, mmap=True)
    if continued is None:
        vectors: Any = init.wv if isinstance(init, Model) else init
        if hasattr(vectors, "to_vector_file"):  # of w2v.gensim
            vectors = vectors_of(vectors)
        return vectors if isinstance(vectors, KeyedVectors | None) else load(vectors)
    if classify:
        return continued if isinstance(continued, Classifier) else Classifier.load(continued, mmap=True)
    try:
        return Model.of(continued, mmap=True)
    except VectorsWithoutModel as error:
        raise W2VError(f"{error}; to start from the vectors of this file, give it as --init (init=)") from error


def settings_of_run(
    source: Model | KeyedVectors | None, given: Mapping[str, Any], vocab: Vocab, freeze: Freeze | None
) -> Settings:
    """Return the settings of a run: the given ones, and else the settings of the source, or the defaults.

    Args:
        source: The model to continue or whose output rows are frozen, or the vectors to initialise words with, which
            decide vector_size.
        given: The settings that the user has given.
        vocab: See `train`.
        freeze: See `train`. With "inputs", the storage must not round the vectors.

    Raises:
        SettingsError: A given setting contradicts the source or `freeze`.
    """
    if source is None:
        return Settings(**given)
    if isinstance(source, KeyedVectors):
        return _settings_for_vectors(source, given, freeze)
    if freeze != "outputs":
        settings = continued_settings(source, vocab, given)
        if "alpha" in given or settings.start_alpha <= CONTINUED_ALPHA:
            return settings
        return replace(settings, alpha=CONTINUED_ALPHA, min_alpha=given.get("min_alpha"))
    settings = continued_settings(source, "union", {"vectors": "input", **given})
    check_frozen_outputs(settings)
    return settings


def _settings_for_vectors(vectors: KeyedVectors, given: Mapping[str, Any], freeze: Freeze | None) -> Settings:
    size = vectors.vector_size
    defaults: dict[str, Any] = {"vector_size": size} | ({"vectors": "input"} if freeze else {})
    settings = Settings(**defaults | dict(given))
    if freeze:
        _check_word_vectors(settings)
    if freeze and not bfloat16.stores_exactly(vectors.vectors, settings.storage):
        raise SettingsError(f"storage {settings.storage}: it would round the vectors that freeze keeps: choose float32")
    if settings.vector_size != size:
        raise SettingsError(f"vector_size {settings.vector_size}: the vectors of init have {size} values; leave it out")
    if settings.subwords is not None:
        raise SettingsError("init has vectors only for words, and not for their subwords: leave out init or subwords")
    return settings


def _check_word_vectors(settings: Settings) -> None:
    """Raise SettingsError if the word vectors of a run with frozen rows are not its input rows."""
    if settings.word_vectors != "input":
        raise SettingsError(
            f"vectors {settings.vectors}: with freeze, the word vectors must be the input rows: choose vectors input"
        )


def continued_settings(model: Model, vocab: Vocab, given: Mapping[str, Any]) -> Settings:
    """Return the settings of a run that continues a model.

    Args:
        model: The model.
        vocab: See `train`.
        given: The settings that the user has given; they override the settings of the model.

    Raises:
        SettingsError: A given setting cannot change when training is continued.
    """
    settings = settings_to_repeat([view.settings for view in model.views.values()])
    for name in WORD_SELECTION_SETTINGS if vocab == "old" else ():
        if given.get(name) is not None:
            raise SettingsError(
                f"{name} {given[name]}: vocab old keeps the model's words: leave it out, or choose union"
            )
    return _with_changes(settings, given, settings.as_dict(computed=False), "model")


def check_frozen_outputs(settings: Settings) -> None:
    """Raise SettingsError if output rows cannot be frozen with these settings, because they do not belong to words."""
    _check_word_vectors(settings)
    if reason := settings.loss_class.fixed_vocabulary:
        raise SettingsError(
            f"freeze outputs: with loss {settings.loss}, {reason}: choose loss ns for the model with these rows"
        )


def settings_of_classifier(source: Classifier, given: Mapping[str, Any]) -> Settings:
    """Return the settings of a run that continues a classifier. Raise SettingsError if a given one must stay."""
    fixed = {**source.settings.as_dict(computed=False), **asdict(source.options)}
    changes = {name: value for name, value in given.items() if name in fixed}
    return _with_changes(replace(source.settings, workers=None), changes, fixed, "classifier")


def _with_changes(settings: Settings, given: Mapping[str, Any], held: Mapping[str, Any], kind: str) -> Settings:
    """Return the settings of a continued model with other values for those that the user has given.

    Args:
        settings: The settings of the model.
        given: The options that the user has given.
        held: All options of the model.
        kind: What messages call the model.

    Raises:
        SettingsError: A given option cannot change when training is continued.
    """
    for name in sorted(FIXED_OPTIONS & given.keys() & held.keys()):
        if str(given[name]) != str(held[name]):  # a path may be a Path
            raise SettingsError(f"{name} {given[name]}: the continued {kind} has {held[name]}; leave it out")
    alpha = {"min_alpha": None} if "alpha" in given else {}  # its default depends on alpha
    return replace(settings, **alpha | {name: given[name] for name in given.keys() & options_of(Settings)})


def views_of_source(views: Views, source: Model | KeyedVectors | Classifier | None) -> Views:
    """Return the views of a run that starts from a model or from vectors, which decide them.

    Raises:
        SettingsError: The user has chosen other views.
    """
    if source is None:
        return views
    found = TWO_VIEWS if isinstance(source, Model) and len(source.views) > 1 else ONE_VIEW
    if views in ("auto", found):
        return found
    if isinstance(source, Model):
        raise SettingsError(f"views {views}: the continued model has {found}; leave it out")
    raise SettingsError("init has vectors only for words, and not for their subwords: leave out init or views")
