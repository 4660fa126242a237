"""fastText's Python module for unsupervised models, implemented by w2v: `import w2v.fasttext as fasttext`."""

from w2v.fasttext import FastText, util
from w2v.fasttext.FastText import (
    BOW,
    EOS,
    EOW,
    cbow,
    load_model,
    skipgram,
    supervised,
    tokenize,
    train_supervised,
    train_unsupervised,
)
from w2v.fasttext.installation import install

__all__ = [
    "BOW", "EOS", "EOW", "FastText", "cbow", "install", "load_model", "skipgram", "supervised", "tokenize",
    "train_supervised", "train_unsupervised", "util",
]  # fmt: skip
