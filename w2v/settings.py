"""The types of settings, the headings of their help, limits, and their names in other programs.

The settings themselves are in w2v/losses/registry.py: `GeneralOptions`, and `Settings`, which adds those of the loss.
"""

from __future__ import annotations

from typing import Literal

ModelName = Literal["skipgram", "cbow"]
Storage = Literal["float32", "bf16"]
Formula = Literal["word2vec", "paper"]
Gradient = Literal["corrected", "faithful"]
WordVectors = Literal["combined", "concatenated", "input"]

MAX_INPUTS_PER_STEP = 16  # context words of a window that take a step together (bench/NOTES.md)
MAX_ADAPTIVE_BLOCKS = 16  # with adaptive_samples, the most blocks of `negative` samples drawn for a prediction

MAX_WINDOW = 1 << 14

# The headings of `w2v train --help`.
TEXT, MODEL, LOSS, TRAINING, RUN = "Text", "Model", "Loss", "Training", "Run"

# The names of our settings in gensim, word2vec.c and fastText.
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
