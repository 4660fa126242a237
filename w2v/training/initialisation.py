"""The start of a run: a vocabulary and new vectors, or those of a model whose training is continued."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from w2v.errors import OnlyVectors, SettingsError, W2VError
from w2v.formats import bfloat16
from w2v.losses.loss import Loss
from w2v.losses.registry import FlatSettings, Settings, loss_for
from w2v.options import options_of
from w2v.system.files import PathLike
from w2v.text._text import FIRST_TYPE
from w2v.text.idstore import TypeCounts
from w2v.text.normalise import TextOptions
from w2v.text.subword_rows import SubwordRows
from w2v.text.vocabulary import Vocabulary
from w2v.training.divergence import finite
from w2v.training.model import Model
from w2v.vectors.keyed import KeyedVectors, load

log = logging.getLogger("w2v")

Vocab = Literal["old", "union"]

OF_NEW_WORDS = ("min_count", "max_vocab")  # settings that choose the words of a text
FIXED_SETTINGS = [name for name, option in options_of(FlatSettings).items() if option.fixed]


@dataclass(frozen=True)
class Initialisation:
    """The vocabulary, the loss and the initial matrices of a run.

    Attributes:
        loss: by default that of the settings.
        parameters: matrices by name, without padding; by default new ones.
        rows: int64 (V,): `parameters[i]` goes to row `rows[i]` of the run (default: i). Rows not listed are initialised
            anew. N-gram rows already have the run's order.
        frozen: bool (V,): the words whose input rows training leaves as they are; by default none.
    """

    vocabulary: Vocabulary
    loss: Loss | None = None
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    rows: NDArray[np.int64] | None = None
    frozen: NDArray[np.bool_] | None = None


def open_source(
    continue_from: Model | PathLike | None, init: KeyedVectors | PathLike | None
) -> Model | KeyedVectors | None:
    """Open what a run begins with: the model that it continues, or the vectors of `init`; None if it is neither.

    Raises W2VError as Model.load and `load` do; for a file of vectors to continue, it says what to do with them.
    """
    if continue_from is None:
        return init if isinstance(init, KeyedVectors | None) else load(init)
    try:
        return Model.of(continue_from, mmap=True)
    except OnlyVectors as error:
        raise W2VError(f"{error}; to start from the vectors of this file, give it as --init (init=)") from error


def text_options_of(source: Model | KeyedVectors | None) -> TextOptions:
    """Return how the text of a model or of vectors was split into words."""
    if isinstance(source, Model):
        return source.text
    return source.header.text if source else TextOptions()


def settings_for_vectors(vectors: KeyedVectors, given: Mapping[str, Any], freeze: bool = False) -> Settings:
    """The given settings, with the size of the vectors to start from. Raises SettingsError if they do not fit these.

    To `freeze` these vectors, word vectors are input rows alone, and are stored in a type that does not round them.
    """
    size = vectors.vector_size
    settings = Settings(**{"vector_size": size} | ({"vectors": "input"} if freeze else {}) | dict(given))
    if freeze and settings.word_vectors != "input":
        raise SettingsError(f"vectors {settings.vectors}: freeze keeps input rows as they are: choose input")
    if freeze and not bfloat16.holds(vectors.vectors, settings.storage):
        raise SettingsError(f"storage {settings.storage}: it would round the vectors that freeze keeps: choose float32")
    if settings.vector_size != size:
        raise SettingsError(f"vector_size {settings.vector_size}: the vectors of init have {size} values; leave it out")
    if settings.subwords is not None:
        raise SettingsError("subwords start anew, and init gives only whole words a vector: leave one of them out")
    return settings


def initialise_from_vectors(vectors: KeyedVectors, vocabulary: Vocabulary, freeze: bool = False) -> Initialisation:
    """Start with the given vectors of the words that have one; those of the others, and outputs, are new.

    With `freeze`, training leaves the given vectors as they are.
    Raises W2VError if no word has one, or one has NaN or infinite values.
    """
    places = {word: row for row, word in enumerate(vocabulary.words)}
    known = [(places[word], row) for row, word in enumerate(vectors.index_to_key) if word in places]
    if not known:
        raise W2VError("init has no vector for any word of this text: are language, --lower and --tokenize the same?")
    rows, found = np.array(known, np.int64).T
    inputs = vectors.vectors[found]
    if not finite([inputs]):
        raise W2VError("the vectors of init have NaN or infinite values")
    others = "; the others are new" if len(rows) < len(places) else ""
    log.info("%s of %s words begin with the vectors of init%s", f"{len(rows):,}", f"{len(places):,}", others)
    if freeze and not others:
        log.warning("freeze: all words keep their vectors, so training changes the output layer alone")
    frozen = np.zeros(len(vocabulary), bool)
    frozen[rows] = freeze
    return Initialisation(vocabulary, None, {"inputs": inputs}, rows, frozen if freeze else None)


def continued_settings(model: Model, words: Vocab, given: Mapping[str, Any]) -> Settings:
    """A model's settings, updated by `given`. Raises SettingsError for a setting that cannot change."""
    settings = without_computed(model.settings)
    for name in OF_NEW_WORDS if words == "old" else ():
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


def without_computed(settings: Settings) -> Settings:
    """Return the same settings, with those left to training that it would compute just so."""
    for name in ("min_alpha", "alpha", "window", "vectors", "workers"):
        with suppress(SettingsError):  # the given min_alpha is above the default alpha
            left_out: dict[str, Any] = {name: None}
            if (found := replace(settings, **left_out)).as_dict() == settings.as_dict():
                settings = found
    return settings


def initialise_from_model(
    model: Model, words: Vocab, settings: Settings, store: TypeCounts, ignore_memory: bool = False
) -> Initialisation:
    """Start with the vectors of a model.

    "old" keeps its vocabulary, counts and tree. "union" adds the counts of the text, and its words that occur at least
    min_count times, up to max_vocab words in all. Raises SettingsError if the loss does not allow that, W2VError for
    a model with NaN or infinite values and, unless `ignore_memory`, if memory is short for a table of n-grams.
    """
    parameters = {"inputs": model.inputs} | model.learnt
    if not finite(parameters.values()):
        raise W2VError("the continued model has NaN or infinite values")
    if words == "old":
        loss = loss_for(settings, model.vocabulary, model.loss.tensors | model.learnt)
        return Initialisation(
            model.vocabulary, loss, parameters | _subword_rows(model, model.vocabulary, slice(None), ignore_memory)
        )
    if model.loss.fixed_vocabulary:
        raise SettingsError(
            f"vocab union: with loss {settings.loss}, {model.loss.fixed_vocabulary}: choose old, or train a new model"
        )
    vocabulary, rows = unite_vocabulary(model.vocabulary, store, settings)
    return Initialisation(vocabulary, None, parameters | _subword_rows(model, vocabulary, rows, ignore_memory), rows)


def _subword_rows(
    model: Model, vocabulary: Vocabulary, words: NDArray[np.int64] | slice, ignore_memory: bool
) -> dict[str, NDArray[Any]]:
    """The rows that make up the input rows of a vocabulary whose `words` are those of the model, if it has n-grams."""
    if not model.ngrams:
        return {}
    subwords = SubwordRows.of(model.ngrams.subwords, vocabulary.words, ignore_memory)
    shared = subwords.join(model.ngrams.of(subwords.buckets))[len(vocabulary) :]
    return {"inputs": subwords.decompose(model.inputs, shared, words), "ngrams": shared}


def unite_vocabulary(old: Vocabulary, store: TypeCounts, settings: Settings) -> tuple[Vocabulary, NDArray[np.int64]]:
    """The union of a vocabulary and the words of a text, and the rows in it of the vocabulary's words, int64 (V,)."""
    counts, index = store.counts[FIRST_TYPE:], store.remap(old.words)[FIRST_TYPE:]
    summed = old.counts.copy()
    summed[index[index >= 0]] += counts[index >= 0]
    new = np.flatnonzero((index < 0) & (counts >= max(1, settings.min_count)))
    new = new[np.argsort(-counts[new], kind="stable")]
    if settings.max_vocab is not None:
        new = new[: max(0, settings.max_vocab - len(old))]
    words = [*old.words, *store.words(new + FIRST_TYPE)]
    summed = np.concatenate([summed, counts[new]])
    order = np.argsort(-summed, kind="stable")
    rows = np.empty(len(order), np.int64)
    rows[order] = np.arange(len(order))
    return Vocabulary([words[i] for i in order.tolist()], summed[order]), rows[: len(old)]
