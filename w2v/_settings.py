"""GeneralOptions: the options of every training run, whichever loss it has.

The modules of the losses import this module, so it imports no loss. `Settings` in _losses/registry.py combines these
options with the options of one loss.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from w2v._errors import SettingsError
from w2v._options import check_options, option

ModelName = Literal["skipgram", "cbow"]
Storage = Literal["float32", "bf16"]
Freeze = Literal["inputs", "outputs"]
Formula = Literal["word2vec", "paper"]
Gradient = Literal["corrected", "faithful"]
WordVectors = Literal["combined", "concatenated", "input"]
Views = Literal["auto", "words", "words+subwords"]
Preset = Literal["items", "graph", "pairs"]
Documents = Literal["dbow", "dm", "dbow+words"]

MAX_INPUTS_PER_STEP = 16  # maximum number of context words that a training step combines (bench/NOTES.md)
MAX_ADAPTIVE_BATCHES = 16  # adaptive_samples draws at most this many times `negative` words for a prediction

MAX_WINDOW = 1 << 14
WHOLE_SENTENCE = "all"  # the window that is the whole sentence: for items, the session
MAX_SENTENCE_CONTEXT = 50  # maximum number of context words in such a window (bench/README.md)

DEFAULT_NGRAMS = (3, 6)  # shortest and longest n-gram, as in fastText

# The headings of `w2v train --help-all`.
TEXT, GRAPH, MODEL, LOSS, TRAINING, RUN = "Text", "Graph", "Model", "Loss", "Training", "Run"

PAIR_SEPARATORS = {"subwords": "-", "window": ","}  # by setting that may be a pair of numbers, as in "3-6" or "5,0"

# What to write in w2v for a setting of gensim, word2vec.c or fastText.
RENAMED = {
    "size": "vector_size",
    "iter": "epochs",
    "sg": 'model="skipgram" or model="cbow"',
    "cbow": 'model="cbow"',
    "hs": 'loss="hs"',
    "cbow_mean": "cbow_gradient",
    "max_final_vocab": "max_vocab",
    "max_vocab_size": "max_types",
    "threads": "workers",
    "dim": "vector_size",
    "ws": "window",
    "lr": "alpha",
    "neg": "negative",
    "epoch": "epochs",
    "minCount": "min_count",
    "thread": "workers",
    "minn": 'subwords="3-6", for minn and maxn',
    "maxn": 'subwords="3-6", for minn and maxn',
    "bucket": "buckets",
    "sentences": "it as the first argument: w2v.train(sentences)",
    "corpus_file": "it as the first argument: w2v.train(path)",
}


# Other defaults of the settings, by the name of a preset.
PRESETS: dict[Preset, dict[str, Any]] = {
    # Measured with bench/items.py --search:
    "items": {
        "model": "skipgram",
        "window": WHOLE_SENTENCE,
        "epochs": 20,
        "sample": 1e-3,
        "ns_exponent": -0.5,
        "min_count": 1,
    },
    # The defaults of PecanPy, with the subsampling of gensim, which PecanPy trains with:
    "graph": {"model": "skipgram", "vector_size": 128, "window": 10, "epochs": 1, "min_count": 0, "sample": 1e-3},
    "pairs": {"model": "skipgram", "min_count": 1, "sample": 0, "vectors": "input"},
}


@dataclass(frozen=True, kw_only=True)
class GeneralOptions:
    """The options of every training run, whichever loss it has. An option that gensim also has is named as there."""

    model: ModelName = option(
        "cbow",
        "Predict the centre word from the mean of the context words (cbow), or from each of them (skipgram).",
        MODEL,
        fixed=True,
        common=True,
    )
    documents: Documents | None = option(
        None,
        "Also train a vector for each document, which is a line, row or text: from its words (dbow), from its words "
        "and each window (dm), or as dbow, with word vectors in the same space (dbow+words).",
        MODEL,
        default_text="none",
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
    window: int | Literal["all"] | str | None = option(
        None,
        "Maximum number of context words on either side, or before and after, as in 5,0. all: every other item of the "
        f"session (word of the sentence) is context; for each item of a long session, {MAX_SENTENCE_CONTEXT} drawn at "
        "random.",
        MODEL,
        minimum=1,
        maximum=MAX_WINDOW,
        default_text="5 for skip-gram, 8 for CBOW, 15 for CBOW's view of subwords",
        common=True,
    )
    min_count: int = option(5, "Leave out words that occur less often than this.", TEXT, minimum=0, common=True)
    max_vocab: int | None = option(
        None, "Keep only this many of the most frequent words.", TEXT, minimum=1, default_text="all"
    )
    vectors: WordVectors | None = option(
        None,
        "Combine input and output rows into word vectors of --vector-size values (combined), concatenate them into "
        "vectors of twice as many values (concatenated), or use only the input rows (input).",
        MODEL,
        default_text="combined; input with --subwords, above 1,024 dimensions, and for losses with output rows that do "
        "not belong to words",
    )
    subwords: str | tuple[int, int] | None = option(
        None,
        "Build each word's vector from its character n-grams, for instance from n-grams of 3 to 6 characters (3-6), so "
        "that unknown words have vectors, too.",
        MODEL,
        default_text="none; 3-6 with two views",
        fixed=True,
        common=True,
    )
    buckets: int = option(
        2_000_000,
        "Hash n-grams to this many rows. Only rows in use take memory.",
        MODEL,
        only_with=("subwords", ()),
        minimum=1,
        maximum=(1 << 31) - 1,
        fixed=True,
    )
    sample: float = option(
        1e-4, "Threshold for subsampling frequent words; 0 turns it off.", MODEL, minimum=0, maximum=1
    )
    sample_formula: Formula = option(
        "word2vec",
        "Keep a word with probability min(1, sqrt(t/f) + t/f) (word2vec), or min(1, sqrt(t/f)) (paper).",
        MODEL,
    )
    shrink_windows: bool = option(
        True,
        "Draw each window's size at random from 1 to --window (--shrink-windows), or always use --window "
        "(--fixed-windows, and always with --window all).",
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
        "Number of passes over the corpus. auto: 10, more for a small corpus, and 5 above 100 million words; always 5 "
        "for losses other than ns, nce and sampled.",
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
        "Hold out the last twentieth of the text, at most 500,000 words. Stop training when the score on the held-out "
        "text has not risen for this many epochs, and keep the vectors of the best epoch.",
        TRAINING,
        minimum=1,
        default_text="never",
    )
    seed: int = option(
        1,
        "Seed of the random numbers. With one worker or --deterministic, the same seed gives the same vectors on every "
        "run.",
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
        "float32", "Store the matrices as float32, or as bfloat16 (bf16): half the memory, somewhat slower.", TRAINING
    )

    def __post_init__(self) -> None:
        for name in PAIR_SEPARATORS:
            object.__setattr__(self, name, join_pair(name, getattr(self, name)))
        self.ngram_lengths, self.window_sides  # noqa: B018 - both raise SettingsError for an impossible value
        check_options(self)

    @property
    def ngram_lengths(self) -> tuple[int, int] | None:
        """The lengths of the shortest and longest n-gram, from `subwords`; None without n-grams."""
        if self.subwords is None:
            return None
        lengths = re.fullmatch(r"([1-9]\d?)-([1-9]\d?)", str(self.subwords), re.ASCII)
        shortest, longest = map(int, lengths.groups()) if lengths else (1, 0)
        if shortest > longest:
            raise SettingsError(
                f"subwords {str(self.subwords)[:60]!r}: write the shortest and longest n-gram, as in 3-6"
            )
        return shortest, longest

    @property
    def whole_sentences(self) -> bool:
        """Whether every other word of a sentence is context, up to MAX_SENTENCE_CONTEXT words at random."""
        return self.window == WHOLE_SENTENCE

    @property
    def window_sides(self) -> tuple[int, int]:
        """The maximum number of context words before and after the centre word.

        By default, each model has the better of 5 and 8, as measured in bench/README.md. _training/views.py has
        another default for the view of subwords.
        """
        if self.whole_sentences:
            return (MAX_SENTENCE_CONTEXT,) * 2
        if not isinstance(self.window, str):
            return (self.window or (8 if self.model == "cbow" else 5),) * 2
        sides = tuple(int(side) for side in self.window.split(",") if re.fullmatch(r"\d{1,5}", side, re.ASCII))
        if len(sides) != 2 or not 1 <= max(sides) <= MAX_WINDOW:
            raise SettingsError(
                f"window {self.window[:60]!r}: write how many words before and after the centre, as in 5,0, or all"
            )
        return sides


@dataclass(frozen=True, kw_only=True)
class ViewOptions:
    """How many models a run trains; see _training/views.py."""

    views: Views = option(
        "auto",
        "Train one model (words), or two that share --vector-size: one of whole words and one of character n-grams "
        "(words+subwords). The vector of a word is then the concatenation of its two vectors, each scaled to length 1. "
        "auto: two where they are better, for CBOW with ns on 300,000 to 5 million words (25 million with 200 "
        "dimensions), unless you choose the window, vectors or subwords.",
        MODEL,
        common=True,
    )

    def __post_init__(self) -> None:
        check_options(self)


def join_pair(name: str, value: Any) -> Any:
    """Return the value of a setting, with a pair of numbers joined to text: "5,0" for the window (5, 0)."""
    is_pair = name in PAIR_SEPARATORS and isinstance(value, list | tuple)
    return PAIR_SEPARATORS[name].join(map(str, value)) if is_pair else value
