"""The built-in losses by name, and `Settings`, the settings of a training run.

How the dataclasses of options fit together:

    GeneralOptions   settings.py     the options of every loss: vector_size, window, epochs, …
    LossOptions      losses/loss.py  the base class of one loss's options; SamplingOptions has negative and ns_exponent
    AllLossOptions   below           the options of all built-in losses
    FlatSettings     below           AllLossOptions and GeneralOptions, with loss, objective and kernel
    Settings         below           GeneralOptions, with loss, objective and kernel, and the options of the chosen loss

A user writes options in one flat list, before the loss is known: on the command line, in a file, or as arguments of
`w2v.train`. FlatSettings defines this list. Settings keeps only the options that the run uses. A loss reads them as
`self.settings`, with the static type GeneralOptions, and `self.options`, an instance of its subclass of LossOptions.
Losses cannot import Settings, because this module imports the losses.

For example, SamplingOptions defines `negative`, and FlatSettings inherits it, so --negative 10 exists.
Settings(negative=10) checks it in a FlatSettings, stores it in loss_options, and the loss reads self.options.negative.

To add a loss, add its class to `LOSSES`. If it has options, add their dataclass to the bases of `AllLossOptions`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from w2v.errors import LossNotImported, SettingsError, VersionMismatch, translate_errors
from w2v.losses.charcnn import CharacterCNN
from w2v.losses.class_softmax import ClassOptions, ClassSoftmax
from w2v.losses.dsoftmax import BlockOptions, DifferentiatedSoftmax
from w2v.losses.full_softmax import FullSoftmax
from w2v.losses.hierarchical_softmax import HierarchicalSoftmax, TreeOptions
from w2v.losses.loss import Array, Loss, LossOptions
from w2v.losses.mos import MixtureOfSoftmaxes, MixtureOptions
from w2v.losses.sampling import NegativeSampling, NoiseContrastive, SampledSoftmax, SampledSoftmaxOptions
from w2v.options import check_options, option, options_of, with_parameters_of
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
USER_DEFINED = Loss.name  # the value of `loss` in settings with an objective, which is a user's own loss
DEFAULT_LOSS, KERNELS = NegativeSampling.name, ("cython", "numba")
SUBWORD_VIEW_WINDOW = 15  # the best window of CBOW for the view of subwords (bench/README.md)
MAX_COMBINED_SIZE = 1024  # input and output rows are combined by default up to this vector_size
# Factors of the default learning rate, each the best that was measured. CBOW with subwords needs no factor.
CORRECTED_CBOW_FACTOR = 2  # with cbow_gradient "corrected"
SUBWORD_SKIPGRAM_FACTOR = 0.8

_own_losses: dict[str, Loss] = {}  # by name, module:Name: the losses that files use


@dataclass(frozen=True, kw_only=True)
class AllLossOptions(SampledSoftmaxOptions, TreeOptions, ClassOptions, BlockOptions, MixtureOptions):
    """The options of all built-in losses in one dataclass.

    FlatSettings inherits them. A user's own loss gets all of them, because it may be derived from any built-in loss.
    """

    def __post_init__(self) -> None:
        # A subclass of LossOptions may also refuse options that contradict each other. A run uses the options of one
        # loss, so contradictions between the options of other losses do not matter here.
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class FlatSettings(AllLossOptions, GeneralOptions):
    """Every option that a user can set, whichever the loss.

    The command line, settings files and the arguments of `w2v.train` and `Settings` are made from these fields.
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
        GeneralOptions.__post_init__(self)


@dataclass(frozen=True, init=False, kw_only=True)
class Settings(GeneralOptions):
    """The settings of a training run: the general options and the options of its loss.

    `w2v train --help` describes each option.

    Args:
        given: Options by name, as in Settings(loss="ns", negative=10). Options of other losses are checked, but not
            stored.

    Attributes:
        loss: The name of the loss; "objective" for a user's own loss.
        objective: A user's own loss; its name, module:Name, if the settings come from a file or a command; or None.
        kernel: "cython" or "numba".
        loss_options: The options of the loss, an instance of its options_class (of AllLossOptions for a user's own
            loss). Each of them can also be read from the settings, as in settings.negative.

    Raises:
        SettingsError: A value is impossible, or two values contradict each other.
    """

    loss: str
    objective: str | Loss | None
    kernel: str
    loss_options: LossOptions

    @with_parameters_of(FlatSettings)
    def __init__(self, **given: Any) -> None:
        # dataclasses.replace also passes loss_options. The other arguments override its values.
        given = vars(given.pop("loss_options", LossOptions())) | given
        flat = FlatSettings(**given)
        for each in fields(self):
            if each.name != "loss_options":
                object.__setattr__(self, each.name, getattr(flat, each.name))
        self._choose_loss()
        options_class = AllLossOptions if self.loss == USER_DEFINED else self.loss_class.options_class
        loss_options = options_class(**{name: getattr(flat, name) for name in options_of(options_class)})
        object.__setattr__(self, "loss_options", loss_options)
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
        if self.storage not in kind.storages or (self.storage == "bf16" and self.kernel == "numba"):
            what = "kernel numba" if self.storage in kind.storages else loss
            raise SettingsError(f"storage {self.storage}: {what} supports only float32; choose storage float32")
        if self.deterministic and self.workers != 1 and not (kind.supports_deterministic and self.kernel == "cython"):
            what = "kernel numba" if kind.supports_deterministic else loss
            raise SettingsError(f"deterministic: with {what} it needs workers 1")
        kind.check(self, self.loss_options)
        if not self.objective:  # the class of a user's own loss may not be imported yet; Loss.prepared checks it
            kind.check_vectors(self)
        if self.min_alpha is not None and self.min_alpha > self.start_alpha:
            raise SettingsError(f"min_alpha {self.min_alpha}: it is above alpha, {self.start_alpha}")
        if self.has_two_views:
            view_settings(self)

    def __getattr__(self, name: str) -> Any:
        options = vars(self).get("loss_options", LossOptions())  # pickle reads attributes before it restores any
        if name not in options_of(options):
            raise AttributeError(f"settings with loss {vars(self).get('loss')} do not have {name!r}")
        return getattr(options, name)

    @property
    def loss_class(self) -> type[Loss]:
        """The class of the loss; Loss itself for a user's own loss, which may not be imported yet."""
        return LOSSES.get(self.loss, Loss)

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
        elif self.model == "skipgram" and self.subwords and not self.has_two_views:
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
        With several views, this is the kind of the view of words.
        """
        has_ngrams = self.subwords and not self.has_two_views
        combined = 2 <= self.view_sizes["words"] <= MAX_COMBINED_SIZE
        combined = combined and not (self.loss_class.no_word_outputs or has_ngrams)
        return self.vectors or ("combined" if combined else "input")

    @property
    def threads(self) -> int:
        """The number of threads: `workers`, or the number of processors."""
        return self.workers or processors()

    def as_dict(self, computed: bool = True) -> dict[str, Any]:
        """Return every setting by name, with the name of `objective` instead of the loss itself.

        Training computes some settings that are None, such as alpha and workers. With `computed`, they have the value
        that training uses. Files and checkpoints store these values. So a run resumes with the number of workers that
        it began with, even on another machine, and a deterministic run needs this number for the same bits.
        """
        values = vars(self) | vars(self.loss_options)
        values |= {"objective": self.objective and str(self.objective)}
        if computed:
            values |= {"alpha": self.start_alpha, "min_alpha": self.end_alpha, "workers": self.threads}
            values |= {"vectors": self.word_vectors}
            if not self.has_two_views:  # by default, each view has its own window
                values |= {"window": self.window or self.window_size}
            values |= {"views": "words+subwords" if self.has_two_views else "words"}
        return {name: values[name] for name in self.names() if name in values}

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

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all arguments of Settings, for every loss."""
        return [each.name for each in fields(FlatSettings)]


def view_settings(settings: Settings) -> dict[str, Settings]:
    """Return the settings of the run of each view, by name. With one view, they are the settings themselves.

    Raises:
        SettingsError: The settings of a view contradict each other.
    """
    if not settings.has_two_views:
        return {"words": settings}
    parts: dict[str, dict[str, Any]] = {"words": {"subwords": None}, "subwords": {"vectors": "input"}}
    if settings.window is None and settings.model == "cbow":
        parts["subwords"]["window"] = SUBWORD_VIEW_WINDOW
    return {
        name: replace(settings, views="words", vector_size=settings.view_sizes[name], **changes)
        for name, changes in parts.items()
    }


def settings_from(stored: Mapping[str, Any], where: object, **missing: Any) -> Settings:
    """Return the settings in the header of a file.

    Args:
        stored: The settings by name.
        where: What error messages begin with.
        missing: Values of settings that are not in files of older versions.

    Raises:
        VersionMismatch: This version does not have one of the settings.
        W2VError: The settings are damaged.
    """
    values = {"views": "words"} | missing | dict(stored)  # older versions trained one model
    for name in values.keys() - {*Settings.names()}:
        raise VersionMismatch(f"{where}: w2v {__version__} does not know {name[:60]!r}: use the version that wrote it")
    with translate_errors(f"{where}: damaged", SettingsError):
        return Settings(**values)


def only_with(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the condition under which an option has an effect, or None if it always has one.

    The condition is (setting, values): the setting must have one of the values. Without values, it must be set.
    """
    losses = tuple(loss for loss, kind in LOSSES.items() if name in options_of(kind.options_class))
    return ("loss", losses) if losses else options_of(FlatSettings)[name].only_with


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
            f"--objective {objective!s:.100}, or in Python call w2v.losses.registry.find"
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
    module, _, class_name = name.partition(":")
    if not module or not class_name:
        raise SettingsError(f"objective {name!r}: write module:Name")
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        loss = getattr(importlib.import_module(module), class_name)()
    except Exception as error:
        raise SettingsError(f"objective {name}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
    if not isinstance(loss, Loss):
        raise SettingsError(f"objective {name}: it is not a Loss: name a subclass of w2v.Loss")
    _own_losses[name] = loss
    return loss
