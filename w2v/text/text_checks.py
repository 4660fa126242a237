"""Checks of a text before training: warn if it is small or not preprocessed."""

from __future__ import annotations

import importlib.resources
import re
import unicodedata
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from w2v.errors import warn_of_text
from w2v.text._text import FIRST_TYPE, PADDING
from w2v.text.idstore import TypeCounts
from w2v.text.markup import INLINE, LINES
from w2v.text.normalise import Normaliser, TextOptions, normalized
from w2v.text.words import WORDS_AT_ONCE, Words

LITTLE = 1_000_000  # words
EPOCHS = 10  # fewer are too few for little text (bench/README.md)
TYPES = 20_000  # the first types of the text, which are examined; most of the frequent ones are among them
ATTACHED, CAPITALS = 0.05, 0.05  # above these shares of the words, a text is not preprocessed
UNCOMPOSED = 0.001  # above this share of the words, or if one is spelled in two ways
MARKUP = 0.0002  # above this share of the words; a document of 5,000 words is then in one pair of tags
LONG = 20  # mean characters per word; languages written with spaces are far below
LONG_UNSPACED = 10  # the same of words in scripts without spaces; those of word segmenters have 2 to 6
UNSPACED = 0.2  # the share of the characters from which on such words count
SINGLE = 0.8  # of these words are single characters: more than a segmenter leaves
SAMPLE_SHARE = 0.9  # of the words of the bundled questions, in the sample corpus
EXAMPLE = 40  # characters of a word that a line shows

SEGMENTERS = "with jieba (Chinese), MeCab (Japanese) or PyThaiNLP (Thai) for instance"
# Thai, Lao, Tibetan, Burmese, Khmer, kana and Chinese characters.
_UNSPACED = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff]"
)
_TAGS = "|".join(sorted(name.decode() for name in (INLINE | LINES) - {b"s"}))  # <s> is often the start of a sentence
_MARKUP = re.compile(
    rf"</?({_TAGS})(?=[\s/>]|\Z)|</(?!s>)[a-z][^\s<>]*>|/>|<!--|&(amp|lt|gt|quot|nbsp|#\d{{1,7}}|#x[0-9a-f]{{1,6}});",
    re.IGNORECASE,
)
_LEFT_OF_MARKUP = re.compile("nbsp|quot|href|curid|br", re.IGNORECASE)  # what --tokenize leaves of tags and entities
_WIKI = re.compile(r"\[\[|\]\]|\{\{|\}\}")
_OF_ITEMS = re.compile(r"[\d_:/|=]")  # in identifiers, but not in words


def warn_of(store: TypeCounts, epochs: int | str | None, text: TextOptions, vocabulary: Words) -> None:
    """Issue a TextWarning for each change that would improve the vectors; usually none.

    `epochs` is that of Settings, or None for a model that has been trained before. The text was read with the options
    `text`.
    """
    first = FirstWords.of(store)
    words, size = on_spaces(first) or _on_characters(first, text), ""
    if not words:  # only then are the words those of the language, and their number says something
        size, words = on_size(first, store.tokens, epochs), _on_words(first)
    never = _on_vocabulary(store, text, vocabulary)
    for line in filter(None, (size, _on_markup(first, text), _on_wiki(first), words, _on_spelling(first), never)):
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

    def only(self, chosen: Callable[[str], object]) -> Self:
        """The words for which `chosen` is true."""
        kept = [row for row, word in enumerate(self.words) if chosen(word)]
        return type(self)([self.words[row] for row in kept], self.counts[kept])


def _is_language(first: FirstWords) -> bool:
    """Whether at least half of the words look like words of a language, and not like the identifiers of items."""
    written = first.only(lambda word: any(map(str.isalnum, word)))
    return written.mean(lambda word: not _OF_ITEMS.search(word) or _UNSPACED.search(word) is not None) >= 0.5


def on_size(first: FirstWords, tokens: int, epochs: int | str | None) -> str:
    """Advice for a text of few words; "" for others, for items and for the bundled sample."""
    questions = _words_of_questions()
    is_sample = len(questions.intersection(first.words)) >= SAMPLE_SHARE * len(questions)
    if tokens >= LITTLE or is_sample or not _is_language(first):
        return ""
    also = f"; more epochs than {epochs} would also help" if isinstance(epochs, int) and epochs < EPOCHS else ""
    return f"the text has {tokens:,} words, which are few to learn word vectors from: add more text{also}"


@cache
def _words_of_questions() -> set[str]:
    text = (importlib.resources.files("w2v.data") / "questions.txt").read_text("utf-8")
    return {word for line in text.splitlines() if not line.startswith(":") for word in line.split()}


def _on_markup(first: FirstWords, text: TextOptions) -> str:
    """Advice for a text with tags or entities; "" for others."""
    if text.strip_markup:
        return ""
    tokenized = text.tokenize != "spaces"
    found = first.only(lambda word: _MARKUP.search(word) or (tokenized and _LEFT_OF_MARKUP.fullmatch(word)))
    return _share_of(first, found, "HTML or XML markup", "add --strip-markup (strip_markup=True)")


def _on_wiki(first: FirstWords) -> str:
    """Advice for a text with the markup of a wiki; "" for others."""
    return _share_of(first, first.only(_WIKI.search), "wiki markup", "remove it first, with WikiExtractor for instance")


def _share_of(first: FirstWords, found: FirstWords, what: str, advice: str) -> str:
    share = found.counts.sum() / max(1, first.counts.sum())
    if share <= MARKUP:
        return ""
    example = found.words[int(found.counts.argmax())]
    percent = f"{share:.0%}" if share >= 0.01 else f"{100 * share:.2g}%"
    return f"{percent} of the words have {what}, {_such_as(example)}: {advice}"


def on_spaces(first: FirstWords) -> str:
    """Advice for a text that has hardly any spaces; "" for others."""
    unspaced = first.only(_UNSPACED.search)
    length, characters = first.mean(len), first.mean(len) * first.counts.sum()
    if unspaced.counts.any() and unspaced.mean(len) * unspaced.counts.sum() > UNSPACED * characters:
        length, most = unspaced.mean(len), LONG_UNSPACED
    else:
        most = LONG
    if length <= most or not _is_language(first):
        return ""
    return (
        f"words have {length:.0f} characters on average, so the text has hardly any spaces, as Chinese, Japanese and "
        f"Thai: cut it into words first, {SEGMENTERS}; --tokenize words would cut it into characters"
    )


def _on_characters(first: FirstWords, text: TextOptions) -> str:
    """Advice for a text that the option `tokenize` has cut into single characters; "" for others."""
    unspaced = first.only(_UNSPACED.search)
    share = unspaced.mean(lambda word: sum(map(str.isalpha, word)) <= 1)
    if text.tokenize == "spaces" or share < SINGLE or unspaced.counts.sum() < UNSPACED * first.counts.sum():
        return ""
    return (
        f"{share:.0%} of the words in Chinese, Japanese or Thai are single characters, because --tokenize "
        f"{text.tokenize} finds no words there: cut the text into words first, {SEGMENTERS}, and leave --tokenize out"
    )


def _on_words(first: FirstWords) -> str:
    """Advice for a text whose words have attached punctuation or capitals; "" for others."""
    attached, capitals = first.mean(_attached), first.mean(_capital)
    if not _is_language(first):
        return ""
    if attached > ATTACHED or capitals > CAPITALS:
        advice = ["--lower (lower=True)"] * (capitals > CAPITALS)
        advice += ['--tokenize words (tokenize="words")'] * (attached > ATTACHED)
        return (
            f"{attached:.0%} of the words begin or end with punctuation, {capitals:.0%} have capital letters: "
            f'the, The and "the," are three words; add {" and ".join(advice)}'
        )
    return ""


def _on_vocabulary(store: TypeCounts, text: TextOptions, vocabulary: Words) -> str:
    """Advice for a vocabulary with words that do not occur, because the options of the text change them; or ""."""
    changed = {name: value for name, value in asdict(text).items() if value != getattr(TextOptions, name)}
    changed.pop("strip_markup", None)  # which changes no words
    if not changed:
        return ""
    rows = store.remap(vocabulary)
    absent = np.ones(len(vocabulary), bool)
    absent[rows[rows >= 0]] = False
    missing = vocabulary.take(np.flatnonzero(absent))
    normalise, never = Normaliser(text), list[str]()
    for start in range(0, len(missing), WORDS_AT_ONCE):
        words = missing[start : start + WORDS_AT_ONCE]
        made = normalise("\n".join([*words, ""]).encode() + PADDING).decode().split("\n")
        never += [word for word, same in zip(words, made, strict=False) if word != same.strip(" ")]
    if not never:
        return ""
    options = [f"--{name}" if value is True else f"--{name} {value}" for name, value in changed.items()]
    return (
        f"{len(never):,} of the {len(vocabulary):,} words of the vocabulary, {_such_as(never[0])}, cannot occur in the "
        f"text, which is read with {' '.join(options)}: count words with the same options, as w2v vocab does"
    )


def _such_as(word: str) -> str:
    """The example of a word in a line."""
    return f"such as {word[:EXAMPLE]!r}" + "…" * (len(word) > EXAMPLE)


def _on_spelling(first: FirstWords) -> str:
    """Advice for a text with words in decomposed Unicode; "" for others."""
    if _is_composed(" ".join(first.words)):
        return ""
    others = {normalized(word, "NFC") for word in first.words if not _is_composed(word)}
    twice = others & set(first.words)
    if not twice and first.mean(lambda word: not _is_composed(word)) <= UNCOMPOSED:
        return ""
    found = "has two spellings, which are two words" if twice else "is decomposed, and in queries usually composed"
    return f'{min(twice or others)!r} {found} (Unicode NFC and NFD): add --normalize nfc (normalize="nfc")'


def _is_composed(word: str) -> bool:
    return word.isascii() or normalized(word, "NFC") == word


def _attached(word: str) -> bool:
    """Whether a word begins or ends with punctuation other than _, # and @, but is not only punctuation."""
    if word[0].isalnum() and word[-1].isalnum():
        return False
    ends = [each not in "_#@" and unicodedata.category(each)[0] == "P" for each in (word[0], word[-1])]
    return any(ends) and any(map(str.isalnum, word))


def _capital(word: str) -> bool:
    return word != word.lower()
