"""The built-in losses, and Settings, which has the general options and those of the loss.

To add a loss, add its class to `LOSSES`, and the dataclass of its options, if any, to the bases of `AnyLossOptions`.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

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
from w2v.settings import (
    LOSS,
    MAX_WINDOW,
    MODEL,
    TEXT,
    TRAINING,
    Formula,
    Gradient,
    ModelName,
    Storage,
    WordVectors,
)
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
class GeneralOptions:
    """The options of a run with any loss, under the names that gensim made common."""

    model: ModelName = option(
        "cbow",
        "Predict the centre word from the mean of the context words (cbow), or from each of them (skipgram).",
        MODEL,
        fixed=True,
        common=True,
    )
    vector_size: int = option(
        100,
        "Dimensions of a vector.",
        MODEL,
        minimum=1,
        maximum=1 << 20,
        flags=("--vector-size", "--size"),
        fixed=True,
        common=True,
    )
    window: int | str | None = option(
        None,
        "Maximum number of context words on either side, or before and after, as in 5,0.",
        MODEL,
        minimum=1,
        maximum=MAX_WINDOW,
        default_text="5 for skip-gram, 8 for CBOW",
        common=True,
    )
    min_count: int = option(5, "Leave out words that occur less often.", TEXT, minimum=0, common=True)
    max_vocab: int | None = option(
        None, "Keep only this many of the most frequent words.", TEXT, minimum=1, default_text="all"
    )
    vectors: WordVectors | None = option(
        None,
        "The word vectors: input and output rows combined into --vector-size values, concatenated into twice as many, "
        "or the input rows alone.",
        MODEL,
        default_text="combined; input with --subwords, above 1,024 dimensions, and for losses whose output rows do not "
        "belong to words",
    )
    subwords: str | tuple[int, int] | None = option(
        None,
        "Build each word's vector from its character n-grams, for instance those of 3 to 6 characters (3-6), so that "
        "unknown words get a vector too.",
        MODEL,
        default_text="none",
        fixed=True,
        common=True,
    )
    buckets: int = option(
        2_000_000,
        "N-grams are hashed to this many rows; only those in use take memory.",
        MODEL,
        only_with=("subwords", ()),
        minimum=1,
        maximum=(1 << 31) - 1,
        fixed=True,
    )
    sample: float = option(1e-4, "Threshold of subsampling frequent words; 0 for none.", MODEL, minimum=0, maximum=1)
    sample_formula: Formula = option(
        "word2vec",
        "Keep a word with probability min(1, sqrt(t/f) + t/f) (word2vec), or min(1, sqrt(t/f)) (paper).",
        MODEL,
    )
    shrink_windows: bool = option(
        True,
        "Draw each window's size at random from 1 to --window (--shrink-windows), or always use --window "
        "(--fixed-windows).",
        MODEL,
        flags=("--shrink-windows/--fixed-windows",),
    )
    cbow_gradient: Gradient = option(
        "faithful",
        "Give each context word the whole gradient of their mean, as word2vec.c does (faithful), or divide it among "
        "them (corrected, İrsoy et al. 2021).",
        MODEL,
        only_with=("model", ("cbow",)),
    )
    per_pair: bool = option(
        False,
        "Update after each context word, as word2vec.c does (--per-pair), or once per window (--shared, faster).",
        MODEL,
        flags=("--per-pair/--shared",),
        only_with=("model", ("skipgram",)),
    )
    epochs: int | Literal["auto"] = option(
        "auto",
        "Passes over the corpus; auto: 10, more for little text, and 5 above 100 million words; always 5 for the "
        "losses other than ns, nce and sampled.",
        TRAINING,
        minimum=1,
        maximum=1_000_000,
        flags=("--epochs", "--iter"),
        common=True,
    )
    alpha: float | None = option(
        None,
        "Learning rate at the start.",
        TRAINING,
        minimum=0,
        positive=True,
        maximum=1000,
        default_text="the best measured for model and loss",
    )
    min_alpha: float | None = option(
        None,
        "Learning rate at the end; it falls linearly.",
        TRAINING,
        minimum=0,
        maximum=1000,
        default_text="alpha / 10,000",
    )
    stop_early: int | None = option(
        None,
        "Hold out the last twentieth of the text, at most 500,000 words, end training when the score on it has not "
        "risen for this many epochs, and keep the vectors of the best epoch.",
        TRAINING,
        minimum=1,
        default_text="never",
    )
    seed: int = option(
        1,
        "With one worker or --deterministic, the same seed gives the same vectors on every run.",
        TRAINING,
        minimum=0,
        maximum=(1 << 64) - 1,
    )
    workers: int | None = option(
        None,
        "Number of threads.",
        TRAINING,
        minimum=1,
        maximum=1 << 10,
        flags=("--workers", "--threads"),
        default_text="one per processor",
        common=True,
    )
    deterministic: bool = option(
        False,
        "Give the same vectors on every run with this number of threads; this takes up to twice as long.",
        TRAINING,
        flags=("--deterministic/--free",),
    )
    storage: Storage = option(
        "float32",
        "Store the matrices as float32, or as bfloat16 (bf16): half the memory, somewhat slower.",
        TRAINING,
    )

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
        check_options(self)

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


@dataclass(frozen=True, kw_only=True)
class AnyLossOptions(SampledSoftmaxOptions, TreeOptions, ClassOptions, BlockOptions, MixtureOptions):
    """The options of all built-in losses; also those of a user's own loss, which may be derived from any of them."""

    def __post_init__(self) -> None:
        check_options(self)  # not whether they contradict each other, since only those of one loss are used


@dataclass(frozen=True, kw_only=True)
class FlatSettings(AnyLossOptions, GeneralOptions):
    """All options by name, as the command line, files and the arguments of `w2v.train` and `Settings` have them."""

    def __post_init__(self) -> None:
        GeneralOptions.__post_init__(self)


@dataclass(frozen=True, init=False, kw_only=True)
class Settings(GeneralOptions):
    """The settings of a training run: the general options and those of its loss; `w2v train --help` describes each.

    The arguments are the options by name, such as Settings(loss="ns", negative=10). Options of other losses are checked
    and left out. Raises SettingsError, naming the value, for impossible values and for two that contradict each other.

    Attributes:
        loss_options: an object of the options_class of the loss. Its options are also attributes of the settings.
    """

    loss_options: LossOptions

    @taking(FlatSettings)
    def __init__(self, **given: Any) -> None:
        before = given.pop("loss_options", LossOptions())  # given by dataclasses.replace
        flat = FlatSettings(**vars(before) | given)
        for each in fields(GeneralOptions):
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
        if self.deterministic and self.workers != 1 and not (kind.ordered and self.kernel == "cython"):
            what = "kernel numba" if kind.ordered else where
            raise SettingsError(f"deterministic: with {what} it needs workers 1")
        kind.check(self)
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
        values = {each.name: getattr(self, each.name) for each in fields(GeneralOptions)} | vars(self.loss_options)
        if computed:
            values |= {"alpha": self.start_alpha, "min_alpha": self.end_alpha, "workers": self.threads}
            values |= {"vectors": self.word_vectors, "window": self.window or self.window_size}
        return values

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


def only_with(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return (setting, values): an option has an effect only if this setting has one of the values, or any if () is.

    None: it always has one.
    """
    if name in options_of(GeneralOptions):
        return options_of(GeneralOptions)[name].only_with
    return "loss", tuple(loss for loss, kind in LOSSES.items() if name in options_of(kind.options_class))


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
