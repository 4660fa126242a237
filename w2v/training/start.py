"""Where a run begins: with a vocabulary and new vectors, or with those of a model that goes on, on more text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError
from w2v.losses.loss import Loss
from w2v.losses.registry import Settings, loss_for
from w2v.text._text import FIRST_TYPE
from w2v.text.idstore import IdStore
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import finite
from w2v.training.model import Model

Vocab = Literal["old", "union"]

# The settings that a model's matrices depend on.
FIXED_SETTINGS = ("model", "loss", "objective", "vector_size", "tree", "tree_vectors", "classes", "blocks", "mixtures")


@dataclass(frozen=True)
class Start:
    """What a run begins with.

    Attributes:
        loss: by default the one that settings and vocabulary ask for.
        parameters: matrices by name, without padding; by default new ones.
        rows: which rows of the run theirs are, int64 (V,); by default all, in order. The others are new.
    """

    vocabulary: Vocabulary
    loss: Loss | None = None
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    rows: NDArray[np.int64] | None = None


def continued_settings(model: Model, given: Mapping[str, Any]) -> Settings:
    """A model's settings with those that are given. Raises SettingsError for what cannot become another."""
    settings = model.settings.as_dict()
    for name in FIXED_SETTINGS:
        if str(given.get(name, settings[name])) != str(settings[name]):  # a path may be a Path
            raise SettingsError(f"{name} {given[name]}: the model that goes on has {settings[name]}; leave it out")
    if "alpha" in given:
        settings["min_alpha"] = None  # follows it
    return Settings(**settings | dict(given))


def start_from_model(model: Model, words: Vocab, settings: Settings, store: IdStore) -> Start:
    """Begin with the vectors of a model.

    "old" keeps its vocabulary, counts and tree. "union" adds the words of the text that occur min_count times, and
    its counts, to them, up to max_vocab words in all. Raises SettingsError where the loss cannot have that, W2VError
    for a model with NaN or infinite values.
    """
    if words not in get_args(Vocab):
        raise SettingsError(f"vocab {words!r}: choose from {', '.join(get_args(Vocab))}")
    parameters = {"inputs": model.inputs} | model.learnt
    if not finite(parameters.values()):
        raise W2VError("the model that goes on holds values that are not numbers")
    if words == "old":
        loss = loss_for(settings, model.vocabulary, model.loss.tensors | model.learnt)
        return Start(model.vocabulary, loss, parameters)
    if model.loss.fixed_vocabulary:
        raise SettingsError(
            f"vocab union: with loss {settings.loss}, {model.loss.fixed_vocabulary}: choose old, or train anew"
        )
    vocabulary, rows = united(model.vocabulary, store, settings)
    return Start(vocabulary, None, parameters, rows)


def united(old: Vocabulary, store: IdStore, settings: Settings) -> tuple[Vocabulary, NDArray[np.int64]]:
    """The words of a vocabulary and of a text, and the places of the former, int64 (V,)."""
    counts, place = store.counts[FIRST_TYPE:], store.remap(old.words)[FIRST_TYPE:]
    summed = old.counts.copy()
    summed[place[place >= 0]] += counts[place >= 0]
    new = np.flatnonzero((place < 0) & (counts >= max(1, settings.min_count)))
    new = new[np.argsort(-counts[new], kind="stable")]
    if settings.max_vocab is not None:
        new = new[: max(0, settings.max_vocab - len(old))]
    words = [*old.words, *store.words(new + FIRST_TYPE)]
    summed = np.concatenate([summed, counts[new]])
    order = np.argsort(-summed, kind="stable")
    rows = np.empty(len(order), np.int64)
    rows[order] = np.arange(len(order))
    return Vocabulary([words[i] for i in order.tolist()], summed[order]), rows[: len(old)]
