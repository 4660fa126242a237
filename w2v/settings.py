"""What a model is and how it is trained: one set of values, checked once."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any, Literal, get_args

from w2v.cpu import processors
from w2v.errors import SettingsError

ModelName = Literal["skipgram", "cbow"]
LossName = Literal["ns", "hs", "nce", "sampled", "class", "softmax", "dsoftmax", "mos", "charcnn", "objective"]
KernelName = Literal["cython", "numba"]
Storage = Literal["float32", "bf16"]
Formula = Literal["word2vec", "paper"]
Gradient = Literal["corrected", "faithful"]

# The learning rate that measured best for each model and loss, with the faithful gradient (bench/defaults.py);
# with the losses that only Numba has, by bench/objectives.py; skip-gram's mos and charcnn were not swept.
ALPHA: dict[tuple[ModelName, LossName], float] = {
    ("skipgram", "ns"): 0.05,
    ("skipgram", "hs"): 0.025,
    ("cbow", "ns"): 0.075,
    ("cbow", "hs"): 0.05,
    ("skipgram", "nce"): 0.05,
    ("cbow", "nce"): 0.1,
    ("skipgram", "sampled"): 0.05,
    ("cbow", "sampled"): 0.1,
    ("skipgram", "class"): 0.05,
    ("cbow", "class"): 0.1,
    ("skipgram", "softmax"): 0.05,
    ("cbow", "softmax"): 0.1,
    ("skipgram", "dsoftmax"): 0.05,
    ("cbow", "dsoftmax"): 0.2,
    ("skipgram", "mos"): 0.05,
    ("cbow", "mos"): 0.05,
    ("skipgram", "charcnn"): 0.025,
    ("cbow", "charcnn"): 0.05,
    ("skipgram", "objective"): 0.05,
    ("cbow", "objective"): 0.05,
}
COMPILED = ("dsoftmax", "mos", "charcnn", "objective")  # losses that the Numba kernel has alone
CORRECTED = 2  # times as much measured best with the corrected one


@dataclass(frozen=True)
class Settings:
    """The settings of a training run, under the names that gensim made common.

    Attributes:
        model: "skipgram" predicts the centre word from each context word, "cbow" from their mean.
        loss: "ns" negative sampling, "hs" hierarchical softmax, "nce" noise-contrastive estimation, "sampled"
            softmax, "class"-based softmax, or the full "softmax": see w2v/outputs.py. Only with Numba, and in
            w2v/objectives: "dsoftmax" differentiated softmax, "mos" mixture of softmaxes, "charcnn" output vectors
            made from characters; "objective": that of `objective`.
        objective: in place of a loss, module:Name of an Objective: see docs/objectives.md.
        kernel: "cython", or "numba", which gives the same and takes objectives.
        storage: how the matrices are kept, in training and in a .safetensors file: "float32", or "bf16", as bfloat16
            in half the memory; all arithmetic stays float32. Only with kernel "cython", not with loss "softmax"; needs
            ml_dtypes.
        vector_size: dimensions of a vector.
        window: context words on either side, at most.
        shrink_windows: draw each window's reach evenly from 1 to `window`, as word2vec.c.
        min_count: words that occur less often are left out.
        max_vocab: keep only this many words, the most frequent.
        tree: of "hs": "huffman", "balanced", "clustered" by the vectors of the model file `tree_vectors`, or a file
            with a word and its code of zeros and ones on each line.
        negative: words drawn for each prediction by "ns", "nce" and "sampled". ns_exponent: they are drawn from
            count^ns_exponent. adaptive_samples: whether "sampled" draws more where few have weight; with 3 or more.
        classes: of "class", about this many, by default the square root of the vocabulary's size.
        blocks: of "dsoftmax", "300:1000,150:4000,75": output vectors of 300 values for the first 1000 words, of 150
            for the next 4000, of 75 for the others; without numbers of words, blocks of as many words each. The
            lengths add up to vector_size, of which they are by default a half, a quarter and the rest.
        mixtures: of "mos", softmaxes that are mixed; sampled_mixtures: whether each is over sampled words.
        large_softmax: whether "softmax", "dsoftmax" and "mos" may take a vocabulary of more than 30,000 words.
        per_pair: whether every context word takes a step of its own, with negatives of its own, as in
            word2vec.c; otherwise a window's context words share them.
        cbow_gradient: "faithful" gives each context word the whole gradient of their mean, as word2vec.c and
            gensim do, and measured as good; "corrected" divides it among them (İrsoy et al. 2021).
        sample: threshold of subsampling, 0 for none; sample_formula: see Vocabulary.keep_probabilities.
        alpha: learning rate at the start, by default the one that measured best for model and loss; it falls
            linearly with the tokens trained to min_alpha, by default alpha / 10,000.
        epochs: passes over the corpus. workers: threads, by default one for each processor.
        seed: one worker and one seed give the same bits on every run.

    Raises SettingsError, naming the value, for one that is impossible.
    """

    model: ModelName = "skipgram"
    loss: LossName = "ns"
    objective: str | None = None
    kernel: KernelName = "cython"
    storage: Storage = "float32"
    vector_size: int = 100
    window: int = 5
    shrink_windows: bool = True
    min_count: int = 5
    max_vocab: int | None = None
    tree: str = "huffman"
    tree_vectors: str | None = None
    negative: int = 5
    ns_exponent: float = 0.75
    adaptive_samples: bool = False
    classes: int | None = None
    blocks: str | None = None
    mixtures: int = 4
    sampled_mixtures: bool = False
    large_softmax: bool = False
    per_pair: bool = False
    cbow_gradient: Gradient = "faithful"
    sample: float = 1e-3
    sample_formula: Formula = "word2vec"
    alpha: float | None = None
    min_alpha: float | None = None
    epochs: int = 5
    workers: int | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        if self.objective is not None:
            if not isinstance(self.objective, str) or ":" not in self.objective or not self.objective.isprintable():
                raise SettingsError(f"objective {self.objective!r}: write module:Name")
            if self.loss not in ("ns", "objective"):  # ns is also what stands where none is given
                raise SettingsError(f"objective {self.objective} stands in place of loss {self.loss}: give one of them")
            object.__setattr__(self, "loss", "objective")
        elif self.loss == "objective":
            raise SettingsError("loss objective: name it by objective, module:Name")
        if self.loss in COMPILED:
            object.__setattr__(self, "kernel", "numba")
        for name, choices in (
            ("model", ModelName),
            ("loss", LossName),
            ("kernel", KernelName),
            ("storage", Storage),
            ("sample_formula", Formula),
            ("cbow_gradient", Gradient),
        ):
            if getattr(self, name) not in get_args(choices):
                raise SettingsError(f"{name} {getattr(self, name)!r}: choose from {', '.join(get_args(choices))}")
        if self.storage == "bf16" and self.kernel == "numba":
            what = f"loss {self.loss}" if self.loss in COMPILED else "kernel numba"
            raise SettingsError(f"storage bf16: {what} keeps float32 alone: choose storage float32")
        if self.storage == "bf16" and self.loss == "softmax":
            raise SettingsError("storage bf16: with loss softmax each thread would widen all rows: choose float32")
        for name in ("shrink_windows", "per_pair", "adaptive_samples", "sampled_mixtures", "large_softmax"):
            if not isinstance(getattr(self, name), bool):
                raise SettingsError(f"{name} {getattr(self, name)!r}: it must be True or False")
        for name, least, most in (
            ("vector_size", 1, 1 << 20),
            ("window", 1, 1 << 14),
            ("min_count", 0, None),
            ("max_vocab", 1, None),
            ("negative", 1, 1 << 14),
            ("classes", 1, None),
            ("mixtures", 1, 1 << 10),
            ("epochs", 1, 1_000_000),
            ("workers", 1, 1 << 10),
            ("seed", 0, (1 << 64) - 1),
        ):
            self._check(name, int, least, most)
        for name in ("tree", "tree_vectors"):
            value = getattr(self, name)
            if value is not None or name == "tree":
                if not isinstance(value, str | os.PathLike) or not os.fspath(value):
                    raise SettingsError(f"{name} {value!r}: it must be a name or a path")
                object.__setattr__(self, name, os.fspath(value))
        if (self.tree == "clustered") != (self.tree_vectors is not None):
            raise SettingsError("tree clustered and tree_vectors, the model to cluster, go together: give both")
        if self.loss == "sampled" and self.adaptive_samples and self.negative < 3:
            raise SettingsError(
                f"negative {self.negative}: adaptive_samples draws more where fewer than half of the words drawn have "
                "weight, and one always has: give 3 or more"
            )
        self._check("ns_exponent", float, -10, 10)
        self._check("sample", float, 0, 1)
        self._check("alpha", float, 0, 1000)
        self._check("min_alpha", float, 0, 1000)
        if self.alpha == 0:
            raise SettingsError("alpha 0: with a learning rate of 0 nothing is learnt")
        if self.min_alpha is not None and self.min_alpha > self.start_alpha:
            raise SettingsError(f"min_alpha {self.min_alpha}: it is above alpha, {self.start_alpha}")

    def _check(self, name: str, kind: type, least: float, most: float | None) -> None:
        value = getattr(self, name)
        if value is None and type(self).__dataclass_fields__[name].default is None:
            return
        fits = isinstance(value, Integral) or (kind is float and isinstance(value, Real) and math.isfinite(value))
        if not fits or isinstance(value, bool) or value < least or (most is not None and value > most):
            wanted = "a whole number" if kind is int else "a number"
            limits = f"{least:,} or more" if most is None else f"from {least:,} to {most:,}"
            raise SettingsError(f"{name} {value!r}: it must be {wanted}, {limits}")
        object.__setattr__(self, name, kind(value))  # NumPy's numbers become Python's

    @property
    def start_alpha(self) -> float:
        if self.alpha is not None:
            return self.alpha
        corrected = self.model == "cbow" and self.cbow_gradient == "corrected"
        return ALPHA[self.model, self.loss] * (CORRECTED if corrected else 1)

    @property
    def end_alpha(self) -> float:
        return self.start_alpha * 1e-4 if self.min_alpha is None else self.min_alpha

    @property
    def threads(self) -> int:
        return self.workers or processors()

    def as_dict(self) -> dict[str, Any]:
        """Every setting with the value it takes in training."""
        used = {"alpha": self.start_alpha, "min_alpha": self.end_alpha, "workers": self.threads}
        return asdict(self) | used

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]
