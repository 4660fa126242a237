"""Initialisation of a run: new vectors, given vectors, or the matrices of a model that is continued."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from w2v.errors import NothingToTrain, SettingsError, VectorsWithoutModel, W2VError, pluralise
from w2v.formats import bfloat16
from w2v.losses.loss import DATA_PREFIX, Loss
from w2v.losses.registry import FlatSettings, Settings, loss_for
from w2v.options import options_of, suggestion
from w2v.settings import Freeze
from w2v.system.files import PathLike
from w2v.text._text import FIRST_TYPE
from w2v.text.idstore import TypeCounts
from w2v.text.normalise import TextOptions
from w2v.text.subword_rows import SubwordRows
from w2v.text.vocabulary import Vocabulary
from w2v.training.divergence import all_finite
from w2v.training.model import Model, ViewsModel
from w2v.vectors.keyed import KeyedVectors, load

log = logging.getLogger("w2v")

Vocab = Literal["old", "union"]

WORD_SELECTION_SETTINGS = ("min_count", "max_vocab")  # settings that select words from the text
FIXED_SETTINGS = [name for name, option in options_of(FlatSettings).items() if option.fixed]


@dataclass(frozen=True)
class Initialisation:
    """The vocabulary, the loss and the initial matrices of a run.

    Attributes:
        vocabulary: The words of the run.
        loss: The loss; by default, a new loss according to the settings.
        parameters: Initial matrices by name, without padding. Matrices that are missing get new values.
        rows: int64 (n,): row i of the matrices in `parameters` becomes row `rows[i]` of the run; by default, row i.
            Other rows get new values. N-gram rows already have the order of the run.
        frozen: Bool (V,): True for words that keep their input rows during training; by default, none.
        coordinates: The name of the coordinate system of output rows that stay unchanged (see ModelHeader); "" if the
            output rows are trained.
        output_words: See Plan. The loss must draw only words that have their own output row.
    """

    vocabulary: Vocabulary
    loss: Loss | None = None
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    rows: NDArray[np.int64] | None = None
    frozen: NDArray[np.bool_] | None = None
    coordinates: str = ""
    output_words: NDArray[np.int32] | None = None


def open_source(
    continue_from: Model | ViewsModel | PathLike | None,
    init: KeyedVectors | Model | ViewsModel | PathLike | None,
    freeze: Freeze | bool | None = None,
) -> Model | ViewsModel | KeyedVectors | None:
    """Open the model to continue, or the vectors or the model to initialise words with.

    Args:
        continue_from, init: See `train`.
        freeze: See `train`. "outputs" needs a model in `init`.

    Returns:
        The model or the vectors; None if both arguments are None.

    Raises:
        W2VError: The file cannot be read, or it holds only word vectors and a model is needed.
    """
    if continue_from is None and freeze == "outputs" and init is not None:
        return Model.of(init, mmap=True)
    if continue_from is None:
        vectors = init.wv if isinstance(init, Model | ViewsModel) else init
        return vectors if isinstance(vectors, KeyedVectors | None) else load(vectors)
    try:
        return Model.of(continue_from, mmap=True)
    except VectorsWithoutModel as error:
        raise W2VError(f"{error}; to start from the vectors of this file, give it as --init (init=)") from error


def checked_freeze(freeze: Freeze | bool | None) -> Freeze | None:
    """Return a value of the option freeze: None for False, and "inputs" for True.

    Raises:
        SettingsError: The value is impossible.
    """
    if freeze is None or freeze is False:
        return None
    if freeze is True:
        return "inputs"
    if freeze not in get_args(Freeze):
        raise SettingsError(f"freeze {freeze!r}: {suggestion(str(freeze), get_args(Freeze))}")
    return freeze


def text_options_of(source: Model | ViewsModel | KeyedVectors | None) -> TextOptions:
    """Return how the text of a model or of vectors was normalised and split; the defaults without a source."""
    if isinstance(source, Model | ViewsModel):
        return source.text
    return source.header.text if source else TextOptions()


def settings_for_vectors(vectors: KeyedVectors, given: Mapping[str, Any], freeze: Freeze | None) -> Settings:
    """Return the settings of a run that initialises words with vectors.

    Args:
        vectors: The vectors; they decide vector_size.
        given: The settings that the user has given.
        freeze: "inputs" if the words keep their vectors. Then the word vectors of the model must be its input rows, and
            the storage must not round them.

    Raises:
        SettingsError: A given setting contradicts the vectors or `freeze`.
    """
    size = vectors.vector_size
    defaults: dict[str, Any] = {"vector_size": size, "views": "words"} | ({"vectors": "input"} if freeze else {})
    settings = Settings(**defaults | dict(given))
    if freeze:
        _check_word_vectors(settings)
    if freeze and not bfloat16.stores_exactly(vectors.vectors, settings.storage):
        raise SettingsError(f"storage {settings.storage}: it would round the vectors that freeze keeps: choose float32")
    if settings.vector_size != size:
        raise SettingsError(f"vector_size {settings.vector_size}: the vectors of init have {size} values; leave it out")
    if settings.subwords is not None:
        given_name = "views" if settings.has_two_views else "subwords"
        raise SettingsError(
            f"init has vectors only for words, and not for their subwords: leave out init or {given_name}"
        )
    return settings


def _check_word_vectors(settings: Settings) -> None:
    """Raise SettingsError if the word vectors of a run with frozen rows are not its input rows."""
    if settings.word_vectors != "input":
        raise SettingsError(
            f"vectors {settings.vectors}: with freeze, the word vectors must be the input rows: choose vectors input"
        )


def initialise_from_vectors(vectors: KeyedVectors, vocabulary: Vocabulary, freeze: Freeze | None) -> Initialisation:
    """Initialise matching words from these vectors; all other words and the output layer start with new values.

    Args:
        vectors: The vectors.
        vocabulary: The words of the run.
        freeze: "inputs" if the matching words keep their vectors.

    Raises:
        W2VError: No word has a vector, or a vector has NaN or infinite values.
    """
    row_of_word = {word: row for row, word in enumerate(vocabulary.words)}
    words = vectors.first_words(len(vectors))
    matches = [(row_of_word[word], row) for row, word in enumerate(words) if word in row_of_word]
    if not matches:
        raise W2VError("init has no vector for any word of this text: are language, --lower and --tokenize the same?")
    rows, vector_rows = np.array(matches, np.int64).T
    inputs = vectors.vectors[vector_rows]
    if not all_finite([inputs]):
        raise W2VError("the vectors of init have NaN or infinite values")
    all_match = len(rows) == len(row_of_word)
    others = "" if all_match else "; the other words get new vectors"
    log.info("%s of %s words start with their vectors in init%s", f"{len(rows):,}", f"{len(row_of_word):,}", others)
    if freeze and all_match:
        log.warning("freeze: all words keep their vectors, so training changes only the output layer")
    frozen = np.zeros(len(vocabulary), bool)
    frozen[rows] = True
    return Initialisation(vocabulary, None, {"inputs": inputs}, rows, frozen if freeze else None)


def continued_settings(model: Model | ViewsModel, vocab: Vocab, given: Mapping[str, Any]) -> Settings:
    """Return the settings of a run that continues a model.

    Args:
        model: The model.
        vocab: See `train`.
        given: The settings that the user has given; they override the settings of the model.

    Raises:
        SettingsError: A given setting cannot change when training is continued.
    """
    views = model.settings.as_dict()["views"]
    settings = replace(without_computed(model.settings), views=views)
    if given.get("views") == "auto":  # as in a settings file of the run that trained the model
        given = {**given, "views": views}
    for name in WORD_SELECTION_SETTINGS if vocab == "old" else ():
        if given.get(name) is not None:
            raise SettingsError(
                f"{name} {given[name]}: vocab old keeps the model's words: leave it out, or choose union"
            )
    for name in FIXED_SETTINGS:
        held = getattr(settings, name, None)
        if name in given and hasattr(settings, name) and str(given[name]) != str(held):  # a path may be a Path
            raise SettingsError(f"{name} {given[name]}: the continued model has {held}; leave it out")
    if "alpha" in given:
        given = {"min_alpha": None, **given}  # its default depends on alpha
    return replace(settings, **given)


def settings_for_compass(compass: Model | ViewsModel, given: Mapping[str, Any]) -> Settings:
    """Return the settings of a run with the frozen output rows of a model: the settings of the model, unless given.

    Raises:
        SettingsError: A given setting does not fit the model, or the output rows of the model do not belong to words.
    """
    settings = continued_settings(compass, "union", {"vectors": "input", **given})
    check_frozen_outputs(settings)
    return settings


def check_frozen_outputs(settings: Settings) -> None:
    """Raise SettingsError if output rows cannot be frozen with these settings, because they do not belong to words."""
    _check_word_vectors(settings)
    if reason := settings.loss_class.fixed_vocabulary:
        raise SettingsError(
            f"freeze outputs: with loss {settings.loss}, {reason}: choose loss ns for the model with these rows"
        )


def without_computed(settings: Settings) -> Settings:
    """Return the same settings without the values that training would compute itself."""
    for name in ("min_alpha", "alpha", "window", "vectors", "workers"):
        with suppress(SettingsError):  # the default of alpha may be below the min_alpha of the settings
            left_out: dict[str, Any] = {name: None}
            if (found := replace(settings, **left_out)).as_dict() == settings.as_dict():
                settings = found
    return settings


def initialise_from_model(
    model: Model, vocab: Vocab, settings: Settings, types: TypeCounts, ignore_memory: bool
) -> Initialisation:
    """Initialise a run from a model that is continued.

    Args:
        model: The model.
        vocab: "old" keeps the vocabulary, counts and tree of the model. "union" adds the counts of the text, and adds
            words of the text that occur at least min_count times, up to max_vocab words in total.
        settings: The settings of the run.
        types: The types of the text.
        ignore_memory: Whether to build a table of n-grams even if memory looks insufficient.

    Raises:
        SettingsError: The loss does not allow "union".
        W2VError: The model has NaN or infinite values, or there is not enough memory for a table of n-grams.
    """
    parameters = {"inputs": model.inputs} | model.output_parameters
    if not all_finite(parameters.values()):
        raise W2VError("the continued model has NaN or infinite values")
    if vocab == "old":
        # Copy what the trained model keeps: Windows does not replace the file of the old model while it is mapped.
        old = model.vocabulary
        vocabulary = Vocabulary(old.words.take(np.arange(len(old))), old.counts.copy(), old.key_type)
        # The data of a user's own loss may depend on settings that have changed.
        tensors = {
            name: tensor.copy() for name, tensor in model.loss.tensors.items() if not name.startswith(DATA_PREFIX)
        }
        loss = loss_for(settings, vocabulary, tensors | model.output_parameters)
        parameters |= _subword_rows(model, vocabulary, slice(None), ignore_memory)
        return Initialisation(vocabulary, loss, parameters)
    if model.loss.fixed_vocabulary:
        raise SettingsError(
            f"vocab union: with loss {settings.loss}, {model.loss.fixed_vocabulary}: choose old, or train a new model"
        )
    vocabulary, rows = unite_vocabulary(model.vocabulary, types, settings)
    return Initialisation(vocabulary, None, parameters | _subword_rows(model, vocabulary, rows, ignore_memory), rows)


def initialise_from_compass(compass: Model, settings: Settings, types: TypeCounts, text: str) -> Initialisation:
    """Initialise a run that trains input rows against the frozen output rows of a model (TWEC, Di Carlo et al. 2019).

    The words are the words of the model that occur in the text at least min_count times. Another word of the model
    would keep its vector, as if the text used the word in the same way as the text of the model.

    Args:
        compass: The model.
        settings: The settings of the run.
        types: The types of the text.
        text: The text, as in error messages.

    Raises:
        NothingToTrain: No word of the model is frequent enough in the text.
        W2VError: The model has NaN or infinite values.
    """
    if not all_finite(compass.output_parameters.values()):
        raise W2VError("the model of init has NaN or infinite values")
    for array in compass.output_parameters.values():
        if not bfloat16.stores_exactly(array, settings.storage):
            raise SettingsError(
                f"storage {settings.storage}: it would round the output rows that freeze keeps: choose float32"
            )
    row_of_type = types.remap(compass.vocabulary.words)[FIRST_TYPE:]
    is_known = row_of_type >= 0
    counts = np.zeros(len(compass.vocabulary), np.int64)
    counts[row_of_type[is_known]] = types.counts[FIRST_TYPE:][is_known]
    rows = np.argsort(-counts, kind="stable")
    rows = rows[counts[rows] >= max(1, settings.min_count)][: settings.max_vocab]
    if not len(rows):
        raise NothingToTrain(
            f"no word of the model of init occurs at least {pluralise(settings.min_count, 'time')} in {text}: are "
            "language, --lower and --tokenize the same?"
        )
    words = [compass.vocabulary.words[row] for row in rows.tolist()]
    vocabulary = Vocabulary(words, counts[rows])
    # Input rows get new values, as in CADE. If they started from the rows of the model, rare words would stay near them
    # and seem unchanged (bench/NOTES.md).
    parameters = {name: array[rows] for name, array in compass.output_parameters.items()}
    coordinates = compass.coordinates or coordinates_of(compass.outputs)
    return Initialisation(vocabulary, None, parameters, coordinates=coordinates)


def coordinates_of(outputs: NDArray[Any]) -> str:
    """Return the name of the coordinate system that output rows define: a part of their SHA-256."""
    return hashlib.sha256(np.ascontiguousarray(outputs).view(np.uint8).data).hexdigest()[:16]


def _subword_rows(
    model: Model, vocabulary: Vocabulary, rows: NDArray[np.int64] | slice, ignore_memory: bool
) -> dict[str, NDArray[Any]]:
    """Return the word and n-gram rows that the input rows are composed of, if the model has n-grams.

    Args:
        model: The model.
        vocabulary: The words of the run.
        rows: The rows in `vocabulary` of the model's words.
        ignore_memory: Whether to build a table of n-grams even if memory looks insufficient.
    """
    if not model.ngrams:
        return {}
    subwords = SubwordRows.of(model.ngrams.subwords, vocabulary.words, ignore_memory)
    shared = subwords.sum_by_row(model.ngrams.rows_of(subwords.buckets))[len(vocabulary) :]
    return {"inputs": subwords.decompose(model.inputs, shared, rows), "ngrams": shared}


def unite_vocabulary(old: Vocabulary, types: TypeCounts, settings: Settings) -> tuple[Vocabulary, NDArray[np.int64]]:
    """Add the words and counts of a text to a vocabulary.

    Returns:
        The new vocabulary, and the new row of each old word, int64 (V,).
    """
    counts, old_row_of_type = types.counts[FIRST_TYPE:], types.remap(old.words)[FIRST_TYPE:]
    is_old = old_row_of_type >= 0
    summed = old.counts.copy()
    summed[old_row_of_type[is_old]] += counts[is_old]
    new = np.flatnonzero(~is_old & (counts >= max(1, settings.min_count)))
    new = new[np.argsort(-counts[new], kind="stable")]
    if settings.max_vocab is not None:
        new = new[: max(0, settings.max_vocab - len(old))]
    words = [*old.words, *types.words(new + FIRST_TYPE)]
    summed = np.concatenate([summed, counts[new]])
    order = np.argsort(-summed, kind="stable")
    rows = np.empty(len(order), np.int64)
    rows[order] = np.arange(len(order))
    key_type = old.key_type if old.key_type == types.key_type else "str"
    return Vocabulary([words[i] for i in order.tolist()], summed[order], key_type), rows[: len(old)]
