"""The built-in losses, and Settings, which has the general options and those of the loss.

To add a loss, add its class to `LOSSES`, and the dataclass of its options, if any, to the bases of `AnyLossOptions`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from w2v.errors import LossMissing, OtherVersion, SettingsError, W2VError, one_line
from w2v.losses.charcnn import CharacterCNN
from w2v.losses.class_softmax import ClassOptions, ClassSoftmax
from w2v.losses.dsoftmax import BlockOptions, DifferentiatedSoftmax
from w2v.losses.full_softmax import FullSoftmax
from w2v.losses.hierarchical_softmax import HierarchicalSoftmax, TreeOptions
from w2v.losses.loss import Array, Loss, LossOptions
from w2v.losses.mos import MixtureOfSoftmaxes, MixtureOptions
from w2v.losses.sampling import NegativeSampling, NoiseContrastive, SampledSoftmax, SampledSoftmaxOptions
from w2v.options import check_options, option, options_of, taking
from w2v.settings import LOSS, TRAINING, GeneralOptions, WordVectors
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

_known: dict[str, Loss] = {}


@dataclass(frozen=True, kw_only=True)
class AnyLossOptions(SampledSoftmaxOptions, TreeOptions, ClassOptions, BlockOptions, MixtureOptions):
    """The options of all built-in losses; also those of a user's own loss, which may be derived from any of them."""

    def __post_init__(self) -> None:
        check_options(self)  # not whether they contradict each other, since only those of one loss are used


@dataclass(frozen=True, kw_only=True)
class FlatSettings(AnyLossOptions, GeneralOptions):
    """All options by name, as the command line, files and the arguments of `w2v.train` and `Settings` have them."""

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
        GeneralOptions.__post_init__(self)


@dataclass(frozen=True, init=False, kw_only=True)
class Settings(GeneralOptions):
    """The settings of a training run: the general options and those of its loss; `w2v train --help` describes each.

    The arguments are the options by name, such as Settings(loss="ns", negative=10). Options of other losses are checked
    and left out. Raises SettingsError, naming the value, for impossible values and for two that contradict each other.

    Attributes:
        loss, kernel: those of the run, also if they were not given. objective: the name of a loss of one's own.
        loss_options: an object of the options_class of the loss. Its options are also attributes of the settings.
    """

    loss: str
    objective: str | None
    kernel: str
    loss_options: LossOptions

    @taking(FlatSettings)
    def __init__(self, **given: Any) -> None:
        before = given.pop("loss_options", LossOptions())  # given by dataclasses.replace
        flat = FlatSettings(**vars(before) | given)
        for each in fields(self):
            if each.name != "loss_options":
                object.__setattr__(self, each.name, getattr(flat, each.name))
        self._choose_loss()
        kind = AnyLossOptions if self.loss == OWN else self.loss_class.options_class
        options = kind(**{name: getattr(flat, name) for name in options_of(kind)})
        object.__setattr__(self, "loss_options", options)
        self._check()

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

    def _check(self) -> None:
        """Raise SettingsError for settings that the loss or the kernel does not allow; choose the kernel."""
        kind = self.loss_class
        where = f"objective {one_line(self.objective)}" if self.objective else f"loss {self.loss}"
        if not self.kernel:
            object.__setattr__(self, "kernel", kind.kernels[0])
        if self.kernel not in kind.kernels:
            raise SettingsError(f"kernel {self.kernel}: {where} needs kernel {kind.kernels[0]}; leave kernel out")
        if self.storage not in kind.storages or (self.storage == "bf16" and self.kernel == "numba"):
            what = "kernel numba" if self.storage in kind.storages else where
            raise SettingsError(f"storage {self.storage}: {what} keeps float32 only; choose storage float32")
        if self.deterministic and self.workers != 1 and not (kind.supports_deterministic and self.kernel == "cython"):
            what = "kernel numba" if kind.supports_deterministic else where
            raise SettingsError(f"deterministic: with {what} it needs workers 1")
        kind.check(self, self.loss_options)
        if not self.objective:  # otherwise Loss.prepared does
            kind.check_vectors(self)
        if self.min_alpha is not None and self.min_alpha > self.start_alpha:
            raise SettingsError(f"min_alpha {self.min_alpha}: it is above alpha, {self.start_alpha}")

    def __getattr__(self, name: str) -> Any:
        options = vars(self).get("loss_options", LossOptions())  # there are none while it is unpickled
        if name not in options_of(options):
            raise AttributeError(f"settings with loss {vars(self).get('loss')} do not have {name!r}")
        return getattr(options, name)

    @property
    def loss_class(self) -> type[Loss]:
        return LOSSES.get(self.loss, Loss)

    @property
    def ngrams(self) -> Subwords | None:
        """The n-grams that make up a word's vector."""
        return Subwords(*self.ngram_lengths, self.buckets) if self.ngram_lengths else None

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

    def as_dict(self, computed: bool = True) -> dict[str, Any]:
        """Every setting, by name. Those that training computes have the value that it uses if `computed`, else None."""
        values = vars(self) | vars(self.loss_options)
        if computed:
            values |= {"alpha": self.start_alpha, "min_alpha": self.end_alpha, "workers": self.threads}
            values |= {"vectors": self.word_vectors, "window": self.window or self.window_size}
        return {name: values[name] for name in self.names() if name in values}

    def in_effect(self, computed: bool = True) -> dict[str, Any]:
        """The settings of `as_dict` that have an effect in this run, without those that are None.

        Without `computed`, the kernel is left out too if it is the default of the loss.
        """
        values = self.as_dict(computed)
        if not computed and self.kernel == self.loss_class.kernels[0]:
            values["kernel"] = None
        return {name: value for name, value in values.items() if value is not None and self._has_effect(name)}

    def _has_effect(self, name: str) -> bool:
        if (needs := only_with(name)) is None:
            return True
        setting, values = needs
        found = getattr(self, setting)
        return found in values if values else bool(found)

    @classmethod
    def names(cls) -> list[str]:
        """The names of all arguments."""
        return [each.name for each in fields(FlatSettings)]


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


def only_with(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return (setting, values): an option has an effect only if this setting has one of the values, or any if () is.

    None: it always has one.
    """
    losses = tuple(loss for loss, kind in LOSSES.items() if name in options_of(kind.options_class))
    return ("loss", losses) if losses else options_of(FlatSettings)[name].only_with


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
