"""Advice on a text before training: that it is small, or not preprocessed."""

from __future__ import annotations

import importlib.resources
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from w2v.errors import warn_of_text
from w2v.text._text import FIRST_TYPE
from w2v.text.idstore import TypeCounts

LITTLE = 1_000_000  # words
EPOCHS = 10  # fewer are too few for little text (bench/README.md)
TYPES = 20_000  # the first types of the text, which are examined; most of the frequent ones are among them
ATTACHED, CAPITALS = 0.05, 0.05  # above these shares of the words, a text is not preprocessed
UNCOMPOSED = 0.001  # above this share of the words, or if one is spelled in two ways
LONG = 20  # mean characters per word; languages written with spaces are far below
SAMPLE_SHARE = 0.9  # of the words of the bundled questions, in the sample corpus


def warn_of(store: TypeCounts, epochs: int | str | None) -> None:
    """Issue a TextWarning for each change that would improve the vectors; usually none.

    `epochs` is that of Settings, or None for a model that has been trained before.
    """
    first = FirstWords.of(store)
    for line in (_on_size(store, epochs), on_spaces(first) or _on_words(first), _on_spelling(first)):
        if line:
            warn_of_text(line)


class FirstWords(NamedTuple):
    """The first words of a text, and their counts."""

    words: list[str]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, store: TypeCounts) -> Self:
        ids = np.arange(FIRST_TYPE, min(len(store.counts), FIRST_TYPE + TYPES))
        return cls(store.words(ids).tolist(), store.counts[ids])

    def mean(self, measure: Callable[[str], float]) -> float:
        """The mean of a measure of words, each counted as often as it occurs."""
        return float(np.average(list(map(measure, self.words)), weights=self.counts)) if self.counts.any() else 0.0


def _on_size(store: TypeCounts, epochs: int | str | None) -> str:
    if store.tokens >= LITTLE or _is_sample(store):
        return ""
    also = f"; more epochs than {epochs} would also help" if isinstance(epochs, int) and epochs < EPOCHS else ""
    return f"the text has {store.tokens:,} words, which are few to learn word vectors from: add more text{also}"


def _is_sample(store: TypeCounts) -> bool:
    """Whether the text is the bundled sample, which has the words of the bundled questions."""
    words = _words_of_questions()
    return int((store.remap(words)[FIRST_TYPE:] >= 0).sum()) >= SAMPLE_SHARE * len(words)


@cache
def _words_of_questions() -> list[str]:
    text = (importlib.resources.files("w2v.data") / "questions.txt").read_text("utf-8")
    return list({word for line in text.splitlines() if not line.startswith(":") for word in line.split()})


def on_spaces(first: FirstWords) -> str:
    """Advice for a text that has hardly any spaces; "" for others."""
    length = first.mean(len)
    if length <= LONG:
        return ""
    return (
        f"words have {length:.0f} characters on average, so the text has hardly any spaces, as Chinese and Japanese: "
        "cut it into words first, with jieba or MeCab for instance"
    )


def _on_words(first: FirstWords) -> str:
    """Advice for a text whose words have attached punctuation or capitals; "" for others."""
    attached, capitals = first.mean(_attached), first.mean(_capital)
    if attached > ATTACHED or capitals > CAPITALS:
        advice = ["--lower (lower=True)"] * (capitals > CAPITALS)
        advice += ['--tokenize words (tokenize="words")'] * (attached > ATTACHED)
        return (
            f"{attached:.0%} of the words begin or end with punctuation, {capitals:.0%} have capital letters: "
            f'the, The and "the," are three words; add {" and ".join(advice)}'
        )
    return ""


def _on_spelling(first: FirstWords) -> str:
    """Advice for a text with words in decomposed Unicode; "" for others."""
    if _is_composed(" ".join(first.words)):
        return ""
    others = {unicodedata.normalize("NFC", word) for word in first.words if not _is_composed(word)}
    twice = others & set(first.words)
    if not twice and first.mean(lambda word: not _is_composed(word)) <= UNCOMPOSED:
        return ""
    found = "has two spellings, which are two words" if twice else "is decomposed, and in queries usually composed"
    return f'{min(twice or others)!r} {found} (Unicode NFC and NFD): add --normalize nfc (normalize="nfc")'


def _is_composed(word: str) -> bool:
    return unicodedata.is_normalized("NFC", word)


def _attached(word: str) -> bool:
    """Whether a word begins or ends with punctuation other than _, # and @, but is not only punctuation."""
    if word[0].isalnum() and word[-1].isalnum():
        return False
    ends = [each not in "_#@" and unicodedata.category(each)[0] == "P" for each in (word[0], word[-1])]
    return any(ends) and any(map(str.isalnum, word))


def _capital(word: str) -> bool:
    return word != word.lower()
