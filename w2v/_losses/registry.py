"""The built-in losses by name, and `Settings`, the settings of a training run.

    GeneralOptions   settings.py     the options of every loss: vector_size, window, epochs, …
    LossOptions      _losses/loss.py  the base class of one loss's options; SamplingOptions has negative and ns_exponent
    Settings         below           all of them, with loss, objective and kernel

A user writes options in one flat list: on the command line, in a file, or as arguments of `w2v.train` and `Settings`.
For example, SamplingOptions defines `negative`, and Settings inherits it, so --negative 10 exists. Options of other
losses than the chosen one are checked, and then have their defaults. A loss reads its settings as `self.settings`, with
the static type GeneralOptions, and as `self.options`, with the type of its options. Losses cannot import Settings,
because this module imports the losses.

To add a loss, add its class to `LOSSES`. If it has options, add their dataclass to the bases of `Settings`.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from w2v._errors import LossNotImported, SettingsError, VersionMismatch, translate_errors
from w2v._losses.charcnn import CharacterCNN
from w2v._losses.class_softmax import ClassOptions, ClassSoftmax
from w2v._losses.dsoftmax import BlockOptions, DifferentiatedSoftmax
from w2v._losses.full_softmax import FullSoftmax, OneVsAll, OneVsAllOptions
from w2v._losses.hierarchical_softmax import HierarchicalSoftmax, TreeOptions
from w2v._losses.loss import Array, Loss
from w2v._losses.mos import MixtureOfSoftmaxes, MixtureOptions
from w2v._losses.sampling import NegativeSampling, NoiseContrastive, SampledSoftmax, SampledSoftmaxOptions
from w2v._options import option, options_of
from w2v._settings import LOSS, TRAINING, GeneralOptions, WordVectors
from w2v._system.threads import processors
from w2v._system.version import __version__
from w2v._text.subwords import Subwords
from w2v._text.vocabulary import Vocabulary

LOSSES: dict[str, type[Loss]] = {
    kind.name: kind
    for kind in (
        NegativeSampling,
        HierarchicalSoftmax,
        NoiseContrastive,
        SampledSoftmax,
        ClassSoftmax,
        FullSoftmax,
        OneVsAll,
        DifferentiatedSoftmax,
        MixtureOfSoftmaxes,
        CharacterCNN,
    )
}
USER_DEFINED = Loss.name  # the value of `loss` in settings with an objective, which is a user's own loss
DEFAULT_LOSS, KERNELS = NegativeSampling.name, ("cython", "numba")
MAX_COMBINED_SIZE = 1024  # input and output rows are combined by default up to this vector_size
# Factors of the default learning rate, each the best that was measured. CBOW with subwords needs no factor.
CORRECTED_CBOW_FACTOR = 2  # with cbow_gradient "corrected"
SUBWORD_SKIPGRAM_FACTOR = 0.8

_own_losses: dict[str, Loss] = {}  # by name, module:Name: the losses that files use


LOSS_OPTIONS = {name for kind in LOSSES.values() for name in options_of(kind.options_class)}


@dataclass(frozen=True, kw_only=True)
class Settings(
    OneVsAllOptions, SampledSoftmaxOptions, TreeOptions, ClassOptions, BlockOptions, MixtureOptions, GeneralOptions
):
    """The settings of a training run: the general options and the options of its loss.

    `w2v train --help` describes each option.

    Attributes:
        loss: The name of the loss; "objective" for a user's own loss.
        objective: A user's own loss; its name, module:Name, if the settings come from a file or a command; or None.
        kernel: "cython" or "numba".

    Raises:
        SettingsError: A value is impossible, or two values contradict each other.
    """

    loss: str = option(
        "",
        "; ".join(f"{name}: {kind.help}" for name, kind in LOSSES.items()) + ".",
        LOSS,
        default_text=DEFAULT_LOSS,
        choices=lambda: {name: kind.help for name, kind in LOSSES.items()} | {USER_DEFINED: ""},
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
        super().__post_init__()
        self._choose_loss()
        for name in self._other_losses_options:
            object.__setattr__(self, name, getattr(Settings, name))
        self._check()

    def _choose_loss(self) -> None:
        if self.objective is not None:
            name = str(self.objective)
            if ":" not in name or not name.isprintable():
                raise SettingsError(f"objective {self.objective!r:.100}: write module:Name")
            if self.loss not in ("", USER_DEFINED):
                raise SettingsError(f"objective {name:.100} replaces loss {self.loss}: give only one of them")
            object.__setattr__(self, "loss", USER_DEFINED)
        elif self.loss == USER_DEFINED:
            raise SettingsError(f"loss {USER_DEFINED}: name your loss with objective, as module:Name")
        elif not self.loss:
            object.__setattr__(self, "loss", DEFAULT_LOSS)

    def _check(self) -> None:
        """Choose the kernel, and raise SettingsError for settings that the loss or the kernel does not allow."""
        kind = self.loss_class
        loss = f"objective {self.objective!s:.100}" if self.objective else f"loss {self.loss}"
        if not self.kernel:
            object.__setattr__(self, "kernel", kind.kernels[0])
        if self.kernel not in kind.kernels:
            raise SettingsError(f"kernel {self.kernel}: {loss} needs kernel {kind.kernels[0]}; leave kernel out")
        if self.documents:
            model = "cbow" if self.documents == "dm" else "skipgram"
            if self.model != model:
                raise SettingsError(f"documents {self.documents}: it needs model {model}, not {self.model}")
            for name in ("subwords", "stop_early"):
                if getattr(self, name) is not None:
                    raise SettingsError(f"documents {self.documents}: it cannot be combined with {name}: leave it out")
        if self.storage not in kind.storages or (self.storage == "bf16" and self.kernel == "numba"):
            what = "kernel numba" if self.storage in kind.storages else loss
            raise SettingsError(f"storage {self.storage}: {what} supports only float32; choose storage float32")
        if self.deterministic and self.workers != 1 and self.kernel != "cython":
            what = "kernel numba" if kind.branch else loss
            raise SettingsError(f"deterministic: with {what} it needs workers 1")
        kind.check(self, self)
        if not self.objective:  # the class of a user's own loss may not be imported yet; Loss.prepared checks it
            kind.check_vectors(self)
        if self.min_alpha is not None and self.min_alpha > self.start_alpha:
            raise SettingsError(f"min_alpha {self.min_alpha}: it is above alpha, {self.start_alpha}")

    @property
    def loss_class(self) -> type[Loss]:
        """The class of the loss; Loss itself for a user's own loss, which may not be imported yet."""
        return LOSSES.get(self.loss, Loss)

    @property
    def _other_losses_options(self) -> set[str]:
        """The options that only other losses have. A user's own loss may be derived from any built-in loss."""
        return set() if self.loss == USER_DEFINED else LOSS_OPTIONS - {*options_of(self.loss_class.options_class)}

    @property
    def ngrams(self) -> Subwords | None:
        """The n-grams that make up the vector of a word; None without `subwords`."""
        return Subwords(*self.ngram_lengths, self.buckets) if self.ngram_lengths else None

    @property
    def window_size(self) -> int:
        """The larger of the two `window_sides`."""
        return max(self.window_sides)

    @property
    def start_alpha(self) -> float:
        """The learning rate at the start: `alpha`, or the default of the model and the loss."""
        if self.alpha is not None:
            return self.alpha
        factor = 1.0
        if self.model == "cbow" and self.cbow_gradient == "corrected":
            factor = CORRECTED_CBOW_FACTOR
        elif self.model == "skipgram" and self.subwords:
            factor = SUBWORD_SKIPGRAM_FACTOR
        return round(getattr(self.loss_class.alpha, self.model) * factor, 6)

    @property
    def end_alpha(self) -> float:
        """The learning rate at the end: `min_alpha`, or a ten-thousandth of `start_alpha`."""
        return self.start_alpha * 1e-4 if self.min_alpha is None else self.min_alpha

    @property
    def word_vectors(self) -> WordVectors:
        """How word vectors are made from the rows: `vectors`, or a default.

        The default is "combined" if the loss has an output row for each word, the model has only words, not n-grams,
        and vector_size is from 2 to MAX_COMBINED_SIZE. For longer vectors, computing the eigenvectors takes minutes.
        """
        combined = 2 <= self.vector_size <= MAX_COMBINED_SIZE
        combined = combined and not (self.loss_class.no_word_outputs or self.subwords)
        return self.vectors or ("combined" if combined else "input")

    @property
    def threads(self) -> int:
        """The number of threads: `workers`, or the number of processors."""
        return self.workers or processors()

    def as_dict(self, computed: bool = True) -> dict[str, Any]:
        """Return the settings of this loss by name, with the name of `objective` instead of the loss itself.

        Training computes some settings that are None, such as alpha and workers. With `computed`, they have the value
        that training uses. Files and checkpoints store these values. So a run resumes with the number of workers that
        it began with, even on another machine, and a deterministic run needs this number for the same bits.
        """
        names = [name for name in options_of(self) if name not in self._other_losses_options]
        values = {name: getattr(self, name) for name in names}
        values |= {"objective": self.objective and str(self.objective)}
        if computed:
            values |= {"alpha": self.start_alpha, "min_alpha": self.end_alpha, "workers": self.threads}
            values |= {"vectors": self.word_vectors, "window": self.window or self.window_size}
        return values

    def in_effect(self, computed: bool = True) -> dict[str, Any]:
        """Return the settings of `as_dict` that have an effect in this run and are not None.

        Without `computed`, the kernel is left out too if it is the default of the loss.
        """
        values = self.as_dict(computed)
        if not computed and self.kernel == self.loss_class.kernels[0]:
            values["kernel"] = None
        return {name: value for name, value in values.items() if value is not None and self._has_effect(name)}

    def _has_effect(self, name: str) -> bool:
        if name == "shrink_windows" and self.whole_sentences:  # a window of a whole sentence is never shrunk
            return False
        if (condition := only_with(name)) is None:
            return True
        setting, values = condition
        value = getattr(self, setting)
        return value in values if values else bool(value)


def settings_from(stored: Mapping[str, Any], where: object) -> Settings:
    """Return the settings in the header of a file.

    Args:
        stored: The settings by name.
        where: What error messages begin with.

    Raises:
        VersionMismatch: This version does not have one of the settings.
        W2VError: The settings are damaged.
    """
    for name in stored.keys() - {*options_of(Settings)}:
        raise VersionMismatch(f"{where}: w2v {__version__} does not know {name[:60]!r}: use the version that wrote it")
    with translate_errors(f"{where}: damaged", SettingsError):
        return Settings(**stored)


def only_with(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the condition under which an option has an effect, or None if it always has one.

    The condition is (setting, values): the setting must have one of the values. Without values, it must be set.
    """
    losses = tuple(loss for loss, kind in LOSSES.items() if name in options_of(kind.options_class))
    return ("loss", losses) if losses else options_of(Settings)[name].only_with


def loss_for(settings: Settings, vocabulary: Vocabulary, tensors: Mapping[str, Array] | None = None) -> Loss:
    """Return the loss of these settings, prepared for a run or restored from the `tensors` of a file.

    This never imports a user's code.

    Raises:
        LossNotImported: The objective is a name that is not registered, or the file has other data of the loss.
        SettingsError, W2VError: See Loss.prepared.
    """
    if settings.loss in LOSSES:
        return LOSSES[settings.loss]().prepared(vocabulary, settings, tensors)
    objective = settings.objective
    loss = objective if isinstance(objective, Loss) else _own_losses.get(str(objective))
    if loss is None:
        raise LossNotImported(
            f"the model's objective is {objective!s:.100}, and w2v does not run code that a file names: give "
            f"--objective {objective!s:.100}, or in Python call w2v.losses.find({str(objective)[:100]!r})"
        )
    return loss.prepared(vocabulary, settings, tensors)


def register(loss: Loss) -> str:
    """Let files that name the class of a user's own loss use this loss, and return the name, module:Name.

    `train` and `tune` do this for the loss that they are given. A loss that is registered later replaces it.

    Raises:
        SettingsError: It is not a Loss.
    """
    if not isinstance(loss, Loss):
        raise SettingsError(f"objective {loss!r}: it must be a Loss, or module:Name of one")
    _own_losses[str(loss)] = loss
    return str(loss)


def find(name: str | Loss) -> Loss:
    """Import the loss "module:Name", call it without arguments, and register the result. Register a Loss itself.

    The module may be in the working directory.

    Raises:
        SettingsError: The module or the loss cannot be imported, or it is not a Loss.
    """
    if isinstance(name, Loss):
        register(name)
        return name
    if not all(name.partition(":")):
        raise SettingsError(f"objective {name!r}: write module:Name")
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        loss = pkgutil.resolve_name(name)()
    except Exception as error:
        raise SettingsError(f"objective {name}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
    if not isinstance(loss, Loss):
        raise SettingsError(f"objective {name}: it is not a Loss: name a subclass of w2v.Loss")
    _own_losses[name] = loss
    return loss
