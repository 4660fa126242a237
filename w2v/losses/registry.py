"""The built-in losses, and Settings, which has the options of all of them."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from w2v.errors import LossMissing, OtherVersion, SettingsError, W2VError, one_line
from w2v.losses.charcnn import CharacterCNN
from w2v.losses.class_softmax import ClassSettings, ClassSoftmax
from w2v.losses.dsoftmax import BlockSettings, DifferentiatedSoftmax
from w2v.losses.full_softmax import FullSoftmax
from w2v.losses.hierarchical_softmax import HierarchicalSoftmax, TreeSettings
from w2v.losses.loss import Array, Loss
from w2v.losses.mos import MixtureOfSoftmaxes, MixtureSettings
from w2v.losses.sampling import NegativeSampling, NoiseContrastive, SampledSettings, SampledSoftmax
from w2v.options import option, options_of
from w2v.settings import LOSS, MAX_WINDOW, TRAINING, BaseSettings, WordVectors
from w2v.system.threads import processors
from w2v.system.version import __version__
from w2v.text.subwords import Subwords
from w2v.text.vocabulary import Vocabulary

LOSSES: dict[str, type[Loss]] = {
    kind.name: kind
    for kind in (
        NegativeSampling,
        HierarchicalSoftmax,
        NoiseContrastive,
        SampledSoftmax,
        ClassSoftmax,
        FullSoftmax,
        DifferentiatedSoftmax,
        MixtureOfSoftmaxes,
        CharacterCNN,
    )
}
OWN = Loss.name  # the `loss` of settings with an objective
DEFAULT_LOSS, KERNELS = NegativeSampling.name, ("cython", "numba")
MAX_COMBINED = 1024  # the largest vector_size at which vectors are combined by default
CORRECTED = 2  # the best learning rate of CBOW's corrected gradient, relative to the faithful one's
WITH_SUBWORDS = 0.8  # the best learning rate of skip-gram with subwords, relative to that without; CBOW has the same

PAIRS = {"subwords": "-", "window": ","}  # settings that may be pairs of numbers, and what is between these as text

_known: dict[str, Loss] = {}


@dataclass(frozen=True, kw_only=True)
class Settings(SampledSettings, TreeSettings, ClassSettings, BlockSettings, MixtureSettings):
    """The settings of a training run; `w2v train --help` describes each.

    Raises SettingsError, naming the value, for impossible values and for two that contradict each other.
    """

    loss: str = option(
        "",
        "; ".join(f"{name}: {kind.help}" for name, kind in LOSSES.items()) + ".",
        LOSS,
        default_text=DEFAULT_LOSS,
        choices=lambda: {name: kind.help for name, kind in LOSSES.items()} | {OWN: ""},
        common=True,
        fixed=True,
    )
    objective: str | Loss | None = option(
        None,
        "A loss of your own instead of --loss, as module:Name; see docs/own-loss.md.",
        LOSS,
        default_text="none",
        fixed=True,
    )
    kernel: str = option(
        "",
        "Train with the Cython kernel, or with Numba's, which gives the same results and can train your own losses.",
        TRAINING,
        default_text="cython if it has the loss",
        choices=lambda: dict.fromkeys(KERNELS, ""),
    )

    def __post_init__(self) -> None:
        if isinstance(self.objective, Loss):
            object.__setattr__(self, "objective", use(self.objective))
        for name in PAIRS:
            object.__setattr__(self, name, join_pair(name, getattr(self, name)))
        self.ngrams, self.window_sides  # noqa: B018 - raise SettingsError
        super().__post_init__()
        self._choose_loss()
        kind = self.loss_class
        where = f"objective {one_line(self.objective)}" if self.objective else f"loss {self.loss}"
        if not self.kernel:
            object.__setattr__(self, "kernel", kind.kernels[0])
        if self.kernel not in kind.kernels:
            raise SettingsError(f"kernel {self.kernel}: {where} needs kernel {kind.kernels[0]}; leave kernel out")
        if self.storage not in kind.storages or (self.storage == "bf16" and self.kernel == "numba"):
            what = "kernel numba" if self.storage in kind.storages else where
            raise SettingsError(f"storage {self.storage}: {what} keeps float32 only; choose storage float32")
        if self.deterministic and self.workers != 1 and not (kind.ordered and self.kernel == "cython"):
            what = "kernel numba" if kind.ordered else where
            raise SettingsError(f"deterministic: with {what} it needs workers 1")
        kind.check(self)
        if not self.objective:  # otherwise Loss.prepared does
            kind.check_vectors(self)
        if self.min_alpha is not None and self.min_alpha > self.start_alpha:
            raise SettingsError(f"min_alpha {self.min_alpha}: it is above alpha, {self.start_alpha}")

    def _choose_loss(self) -> None:
        if self.objective is not None:
            if ":" not in str(self.objective) or not str(self.objective).isprintable():
                raise SettingsError(f"objective {one_line(repr(self.objective))}: write module:Name")
            if self.loss not in ("", OWN):
                raise SettingsError(
                    f"objective {one_line(self.objective)} replaces loss {self.loss}: give only one of them"
                )
            object.__setattr__(self, "loss", OWN)
        elif self.loss == OWN:
            raise SettingsError(f"loss {OWN}: name your loss with objective, as module:Name")
        elif not self.loss:
            object.__setattr__(self, "loss", DEFAULT_LOSS)

    @property
    def loss_class(self) -> type[Loss]:
        return LOSSES.get(self.loss, Loss)

    @property
    def ngrams(self) -> Subwords | None:
        """The n-grams that make up a word's vector. Raises SettingsError if `subwords` is no range of lengths."""
        if self.subwords is None:
            return None
        found = re.fullmatch(r"([1-9]\d?)-([1-9]\d?)", str(self.subwords), re.ASCII)
        shortest, longest = map(int, found.groups()) if found else (1, 0)
        if shortest > longest:
            raise SettingsError(
                f"subwords {str(self.subwords)[:60]!r}: write the shortest and longest n-gram, as in 3-6"
            )
        return Subwords(shortest, longest, self.buckets)

    @property
    def window_sides(self) -> tuple[int, int]:
        """The most words before and after the centre. By default, the better of 5 and 8 in bench/README.md.

        Raises SettingsError if `window` is no such pair.
        """
        if not isinstance(self.window, str):
            return (self.window or (8 if self.model == "cbow" else 5),) * 2
        sides = tuple(int(side) for side in self.window.split(",") if re.fullmatch(r"\d{1,5}", side, re.ASCII))
        if len(sides) != 2 or not 1 <= max(sides) <= MAX_WINDOW:
            raise SettingsError(
                f"window {self.window[:60]!r}: write how many words before and after the centre, as in 5,0"
            )
        return sides

    @property
    def window_size(self) -> int:
        """The longer of both sides."""
        return max(self.window_sides)

    @property
    def start_alpha(self) -> float:
        if self.alpha is not None:
            return self.alpha
        corrected = self.model == "cbow" and self.cbow_gradient == "corrected"
        composed = WITH_SUBWORDS if self.subwords and self.model == "skipgram" else 1
        return round(getattr(self.loss_class.alpha, self.model) * (CORRECTED if corrected else 1) * composed, 6)

    @property
    def end_alpha(self) -> float:
        return self.start_alpha * 1e-4 if self.min_alpha is None else self.min_alpha

    @property
    def word_vectors(self) -> WordVectors:
        """The kind of word vectors: combined by default, unless computing their eigenvectors would take minutes."""
        combined = 2 <= self.vector_size <= MAX_COMBINED and not (self.loss_class.no_word_outputs or self.subwords)
        return self.vectors or ("combined" if combined else "input")

    @property
    def threads(self) -> int:
        return self.workers or processors()

    def as_dict(self) -> dict[str, Any]:
        """Every setting with the value that training uses."""
        used: dict[str, Any] = {"alpha": self.start_alpha, "min_alpha": self.end_alpha, "workers": self.threads}
        used |= {"vectors": self.word_vectors, "window": self.window or self.window_size}
        return asdict(self) | used

    def relevant(self) -> dict[str, Any]:
        """The settings of `as_dict` that have an effect with this model and loss."""
        return self._with_effect(self.as_dict())

    def saved(self) -> dict[str, Any]:
        """The settings that have an effect, for a file; those that training computes only if they were given."""
        computed = {"kernel": None} if self.kernel == self.loss_class.kernels[0] else {}
        return self._with_effect(asdict(self) | computed)

    def _with_effect(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if value is not None and not self.without_effect(name)}

    def left_open(self) -> Settings:
        """The same settings; those with the value that training would compute are left to it."""
        values = asdict(self)
        for name in ("min_alpha", "alpha", "window", "vectors", "workers"):
            with suppress(SettingsError):  # the given min_alpha is above the default alpha
                if Settings(**values | {name: None}).as_dict() == self.as_dict():
                    values[name] = None
        return Settings(**values)

    def without_effect(self, name: str) -> tuple[str, tuple[str, ...]] | None:
        """The (name, values) of `needed_for` without which this setting has no effect here; None: it has one."""
        needs = needed_for(name)
        if not needs or getattr(self, needs[0]) in needs[1] or (not needs[1] and getattr(self, needs[0])):
            return None
        return needs

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]


def join_pair(name: str, value: Any) -> Any:
    """Return the value of a setting, as text if it is a pair of numbers."""
    return PAIRS[name].join(map(str, value)) if name in PAIRS and isinstance(value, list | tuple) else value


def settings_from(stored: Mapping[str, Any], where: object, **missing: Any) -> Settings:
    """The settings in the header of a file; `missing` are values of settings that older versions did not have.

    Raises W2VError, beginning with `where`, if they are damaged, OtherVersion for one that this version does not have.
    """
    found = missing | dict(stored)
    for name in found.keys() - {*Settings.names()}:
        raise OtherVersion(
            f"{where}: w2v {__version__} does not know {one_line(name)[:60]!r}: use the version that wrote it"
        )
    try:
        return Settings(**found)
    except SettingsError as error:
        raise W2VError(f"{where}: damaged: {one_line(error)}") from error


def needed_for(name: str) -> tuple[str, tuple[str, ...]] | None:
    """(name, values): the setting has an effect only if setting `name` has one of `values`, or any if these are empty.

    None: it always has one.
    """
    if name not in options_of(BaseSettings) and name not in Settings.__annotations__:
        return "loss", tuple(loss for loss, kind in LOSSES.items() if name in options_of(kind.settings_class))
    return options_of(Settings)[name].only_with


def loss_for(settings: Settings, vocabulary: Vocabulary, tensors: Mapping[str, Array] | None = None) -> Loss:
    """The loss of these settings, restored from the `tensors` of a file, if given.

    It never imports a user's code. Raises LossMissing for an objective that is not registered, and the errors of
    Loss.prepared.
    """
    if settings.loss in LOSSES:
        return LOSSES[settings.loss]().prepared(vocabulary, settings, tensors)
    name = str(settings.objective)
    if name not in _known:
        raise LossMissing(
            f"the model's objective is {name}, and files run no code: name it with --objective {name}, or in Python "
            "with w2v.losses.registry.find"
        )
    return _known[name].prepared(vocabulary, settings, tensors)


def use(loss: Loss) -> str:
    """Register a user's loss, so that models can refer to it; returns its name, module:Name."""
    if not isinstance(loss, Loss):
        raise SettingsError(f"objective {loss!r}: it must be a Loss, or module:Name of one")
    name = f"{type(loss).__module__}:{type(loss).__qualname__}"
    _known[name] = loss
    return name


def find(name: str) -> Loss:
    """Import and register the loss "module:Name", also from the working directory.

    Raises SettingsError if it cannot be found.
    """
    if name in _known:
        return _known[name]
    module, _, kind = name.partition(":")
    if not module or not kind:
        raise SettingsError(f"objective {name!r}: write module:Name")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), kind)()
    except Exception as error:
        raise SettingsError(f"objective {name}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)
    if not isinstance(found, Loss):
        raise SettingsError(f"objective {name}: it is not a Loss")
    _known[name] = found
    return found
