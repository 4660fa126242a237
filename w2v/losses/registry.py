"""The losses there are, and the settings of a run, which are those of all losses."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from w2v.cpu import processors
from w2v.errors import LossMissing, SettingsError
from w2v.losses.charcnn import CharacterCNN
from w2v.losses.class_softmax import ClassSettings, ClassSoftmax
from w2v.losses.dsoftmax import BlockSettings, DifferentiatedSoftmax
from w2v.losses.full_softmax import FullSoftmax
from w2v.losses.hierarchical_softmax import HierarchicalSoftmax, TreeSettings
from w2v.losses.loss import Array, Loss
from w2v.losses.mos import MixtureOfSoftmaxes, MixtureSettings
from w2v.losses.negative_sampling import NegativeSampling
from w2v.losses.noise_contrastive import NoiseContrastive
from w2v.losses.sampled_softmax import SampledSettings, SampledSoftmax
from w2v.options import option, options_of
from w2v.settings import LOSS, TRAINING, BaseSettings, WordVectors
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
OWN = Loss.name  # the loss of settings that name an objective
DEFAULT_LOSS, KERNELS = NegativeSampling.name, ("cython", "numba")
CORRECTED = 2  # times the learning rate measured best with the corrected gradient of CBOW

_known: dict[str, Loss] = {}


@dataclass(frozen=True, kw_only=True)
class Settings(SampledSettings, TreeSettings, ClassSettings, BlockSettings, MixtureSettings):
    """The settings of a training run; `w2v train --help` describes each.

    Raises SettingsError, naming the value, for one that is impossible and for two that contradict each other.
    """

    loss: str = option(
        "",
        "; ".join(f"{name}: {kind.help}" for name, kind in LOSSES.items()) + ".",
        LOSS,
        default_text=DEFAULT_LOSS,
        choices=lambda: (*LOSSES, OWN),
    )
    objective: str | Loss | None = option(
        None, "A loss of your own in place of --loss: module:Name, see docs/own-loss.md.", LOSS, default_text="none"
    )
    kernel: str = option(
        "",
        "The compiled kernel, or Numba's, which gives the same and takes losses of your own.",
        TRAINING,
        default_text="cython where it has the loss",
        choices=lambda: KERNELS,
    )

    def __post_init__(self) -> None:
        if isinstance(self.objective, Loss):
            object.__setattr__(self, "objective", use(self.objective))
        super().__post_init__()
        self._choose_loss()
        kind = self.loss_class
        where = f"objective {self.objective}" if self.objective else f"loss {self.loss}"
        if not self.kernel:
            object.__setattr__(self, "kernel", kind.kernels[0])
        if self.kernel not in kind.kernels:
            raise SettingsError(f"kernel {self.kernel}: {where} needs kernel {kind.kernels[0]}; leave kernel out")
        if self.storage not in kind.storages or (self.storage == "bf16" and self.kernel == "numba"):
            what = "kernel numba" if self.storage in kind.storages else where
            raise SettingsError(f"storage {self.storage}: {what} keeps float32 only; choose storage float32")
        kind.check(self)
        if not self.objective:  # otherwise Loss.prepared does
            kind.check_vectors(self)
        if self.alpha == 0:
            raise SettingsError("alpha 0: with a learning rate of 0 nothing is learnt")
        if self.min_alpha is not None and self.min_alpha > self.start_alpha:
            raise SettingsError(f"min_alpha {self.min_alpha}: it is above alpha, {self.start_alpha}")

    def _choose_loss(self) -> None:
        if self.objective is not None:
            if ":" not in str(self.objective) or not str(self.objective).isprintable():
                raise SettingsError(f"objective {self.objective!r}: write module:Name")
            if self.loss not in ("", OWN):
                raise SettingsError(f"objective {self.objective} stands in place of loss {self.loss}: give one of them")
            object.__setattr__(self, "loss", OWN)
        elif self.loss == OWN:
            raise SettingsError(f"loss {OWN}: name it by objective, module:Name")
        elif not self.loss:
            object.__setattr__(self, "loss", DEFAULT_LOSS)

    @property
    def loss_class(self) -> type[Loss]:
        return LOSSES.get(self.loss, Loss)

    @property
    def start_alpha(self) -> float:
        if self.alpha is not None:
            return self.alpha
        corrected = self.model == "cbow" and self.cbow_gradient == "corrected"
        return getattr(self.loss_class.alpha, self.model) * (CORRECTED if corrected else 1)

    @property
    def end_alpha(self) -> float:
        return self.start_alpha * 1e-4 if self.min_alpha is None else self.min_alpha

    @property
    def word_vectors(self) -> WordVectors:
        return self.vectors or ("input" if self.loss_class.no_word_outputs else "combined")

    @property
    def threads(self) -> int:
        return self.workers or processors()

    def as_dict(self) -> dict[str, Any]:
        """Every setting with the value it takes in training."""
        used: dict[str, Any] = {"alpha": self.start_alpha, "min_alpha": self.end_alpha, "workers": self.threads}
        used |= {"vectors": self.word_vectors}
        return asdict(self) | used

    def relevant(self) -> dict[str, Any]:
        """Those of `as_dict` that have an effect with this model and loss."""
        told = self.as_dict()
        return {name: value for name, value in told.items() if not self.without_effect(name) and value is not None}

    def without_effect(self, name: str) -> tuple[str, tuple[str, ...]] | None:
        """The setting, and its values, without which this one has no effect, if it has none here."""
        needs = needed_for(name)
        return needs if needs and getattr(self, needs[0]) not in needs[1] else None

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]


def needed_for(name: str) -> tuple[str, tuple[str, ...]] | None:
    """The setting, and its values, that one of the Settings needs to have an effect: for those of some losses only."""
    if name not in {each.name for each in fields(BaseSettings)} and name not in Settings.__annotations__:
        return "loss", tuple(
            loss for loss, kind in LOSSES.items() if name in {each.name for each in fields(kind.settings_class)}
        )
    return options_of(Settings)[name].only_with


def loss_for(settings: Settings, vocabulary: Vocabulary, tensors: Mapping[str, Array] | None = None) -> Loss:
    """The loss that the settings ask for, from the `tensors` that a file keeps, if any.

    No code of a user's is imported here: raises LossMissing for an objective that is not at hand; otherwise as
    Loss.prepared.
    """
    if settings.loss in LOSSES:
        return LOSSES[settings.loss]().prepared(vocabulary, settings, tensors)
    name = str(settings.objective)
    if name not in _known:
        raise LossMissing(
            f"the model's objective is {name}, and files run no code: name it by --objective {name}, or in Python, "
            "w2v.losses.registry.find"
        )
    return _known[name].prepared(vocabulary, settings, tensors)


def use(loss: Loss) -> str:
    """Make a user's loss known to models that name it; returns its name, module:Name."""
    if not isinstance(loss, Loss):
        raise SettingsError(f"objective {loss!r}: it must be a Loss, or module:Name of one")
    name = f"{type(loss).__module__}:{type(loss).__qualname__}"
    _known[name] = loss
    return name


def find(name: str) -> Loss:
    """Import the loss "module:Name", also from the working folder. Raises SettingsError where it is not there."""
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
        raise SettingsError(f"objective {name}: it is no Loss")
    _known[name] = found
    return found
