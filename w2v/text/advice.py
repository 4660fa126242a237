"""Advice on a text before training: that it is small, or not preprocessed."""

from __future__ import annotations

import importlib.resources
import unicodedata
from collections.abc import Callable

import numpy as np

from w2v.settings import BaseSettings
from w2v.text._text import FIRST_TYPE
from w2v.text.idstore import TypeCounts

LITTLE = 1_000_000  # words
EPOCHS = 10  # fewer are too few for little text (bench/README.md)
TYPES = 20_000  # the first types of the text, which are examined; most of the frequent ones are among them
ATTACHED, CAPITALS = 0.05, 0.05  # above these shares of the words, a text is not preprocessed
LONG = 20  # mean characters per word; languages written with spaces are far below
SAMPLE_SHARE = 0.9  # of the words of the bundled questions, in the sample corpus


def advice(store: TypeCounts, settings: BaseSettings) -> list[str]:
    """A line for each change that would improve the vectors; usually none."""
    return [line for line in (_on_size(store, settings), on_spaces(store) or _on_words(store)) if line]


def _on_size(store: TypeCounts, settings: BaseSettings) -> str:
    if store.tokens >= LITTLE or _is_sample(store):
        return ""
    few = settings.epochs != "auto" and settings.epochs < EPOCHS
    also = f"; more epochs than {settings.epochs} would also help" if few else ""
    return f"the text has {store.tokens:,} words, which are few to learn word vectors from: add more text{also}"


def _is_sample(store: TypeCounts) -> bool:
    """Whether the text is the bundled sample, which has the words of the bundled questions."""
    text = (importlib.resources.files("w2v.data") / "questions.txt").read_text("utf-8")
    words = list({word for line in text.splitlines() if not line.startswith(":") for word in line.split()})
    return int((store.remap(words)[FIRST_TYPE:] >= 0).sum()) >= SAMPLE_SHARE * len(words)


def on_spaces(store: TypeCounts) -> str:
    """Advice for a text that has hardly any spaces; "" for others."""
    length = _mean(store, len)
    if length <= LONG:
        return ""
    return (
        f"words have {length:.0f} characters on average, so the text has hardly any spaces, as Chinese and Japanese: "
        "cut it into words first, with jieba or MeCab for instance"
    )


def _mean(store: TypeCounts, measure: Callable[[str], float]) -> float:
    """The mean of a measure of words, each counted as often as it occurs."""
    ids = np.arange(FIRST_TYPE, min(len(store.counts), FIRST_TYPE + TYPES))
    counts = store.counts[ids]
    return float(np.average([measure(word) for word in store.words(ids)], weights=counts)) if counts.any() else 0.0


def _on_words(store: TypeCounts) -> str:
    """Advice for a text whose words have attached punctuation or capitals; "" for others."""
    attached, capitals = _mean(store, _attached), _mean(store, _capital)
    if attached > ATTACHED or capitals > CAPITALS:
        return (
            f"{attached:.0%} of the words begin or end with punctuation, {capitals:.0%} have capital letters: "
            'the, The and "the," are three words; add --lower (lower=True) and --tokenize words (tokenize="words")'
        )
    return ""


def _attached(word: str) -> bool:
    """Whether a word begins or ends with punctuation other than _, # and @, but is not only punctuation."""
    ends = [each not in "_#@" and unicodedata.category(each)[0] == "P" for each in (word[0], word[-1])]
    return any(ends) and any(map(str.isalnum, word))


def _capital(word: str) -> bool:
    return word != word.lower()
