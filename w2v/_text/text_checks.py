"""Check a text before training, and warn if it is small or not preprocessed."""

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

from w2v._errors import issue_text_warning
from w2v._text._text import FIRST_TYPE, PADDING, SENTENCE_END_ID
from w2v._text.idstore import IdStore, TypeCounts
from w2v._text.labels import LabelOptions
from w2v._text.markup import INLINE, LINES
from w2v._text.normalise import Normaliser, TextOptions
from w2v._text.words import WORDS_AT_ONCE, Words

SMALL_TEXT = 1_000_000  # words; a warning is issued for a smaller text
MIN_EPOCHS = 10  # a small text needs at least this many epochs (bench/README.md)
TYPES = 20_000  # number of types to examine: the first in the text, which include nearly all frequent types
# Shares of the words above which a warning is issued:
ATTACHED, CAPITALS = 0.05, 0.05  # words with attached punctuation, words with capitals
DECOMPOSED = 0.001  # words in decomposed Unicode; a word with two spellings is reported at any share
MARKUP = 0.0002  # words with markup: one pair of tags in 5,000 words is enough
# words that show another format; tags in a column of their own; words with tags such as NN
OTHER_FORMAT, TAG_COLUMN, TAGGED = 0.01, 0.03, 0.5
SINGLE = 0.8  # single characters in scripts without spaces; word segmenters leave fewer
# Mean number of characters per word above which a text seems to lack spaces:
LONG = 20  # languages with spaces have far fewer
LONG_UNSPACED = 10  # for scripts without spaces; word segmenters produce words of 2 to 6
UNSPACED = 0.2  # a text with more than this share of its characters in words of such scripts uses LONG_UNSPACED
SAMPLE_SHARE = 0.9  # a text with at least this share of the bundled question words is taken for the sample corpus
LINE_IDS = 200_000  # ids to inspect for the length of lines
MAX_WIDTH = 300  # bytes of the longest lines of a text that is wrapped, without the longest 2 %
WRAPPED = 0.4  # a text is wrapped if more than this share of its lines have no room for the next word
MIN_LINES, MIN_LENGTHS = 50, 5  # of a wrapped text: lines, and different lengths, since a program repeats one line
EXAMPLE = 40  # characters of an example word in a message

SEGMENTERS = "with jieba (Chinese), MeCab (Japanese) or PyThaiNLP (Thai) for instance"
# Scripts without spaces: Thai, Lao, Tibetan, Burmese, Khmer, kana and Chinese characters.
_UNSPACED = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff]"
)
_TAGS = "|".join(sorted(name.decode() for name in (INLINE | LINES) - {b"s"}))  # <s> often marks a sentence start
_MARKUP = re.compile(
    rf"</?({_TAGS})(?=[\s/>]|\Z)|</(?!s>)[a-z][^\s<>]*>|/>|<!--|&(amp|lt|gt|quot|nbsp|#\d{{1,7}}|#x[0-9a-f]{{1,6}});",
    re.IGNORECASE,
)
_MARKUP_WORDS = re.compile("nbsp|quot|href|curid|br", re.IGNORECASE)  # words that --tokenize makes of markup
_JOINTS = re.compile("[\xa0\u2000-\u200b\u202f\u205f\u3000]+")  # spaces at which only --tokenize splits
# Tags of parts of speech: of Universal Dependencies, and of the Penn Treebank.
_UNIVERSAL_TAGS = "ADJ|ADP|ADV|AUX|CCONJ|DET|INTJ|NOUN|NUM|PART|PRON|PROPN|PUNCT|SCONJ|SYM|VERB"
_PENN_TAGS = r"NNP?S?|VB[DGNPZ]?|JJ[RS]?|RB[RS]?|CC|CD|DT|EX|IN|MD|POS|PRP\$?|RP|TO|W(DT|P\$?|RB)"
# What words with marks look like, what they have, and what to do.
_MARKS = (
    (
        re.compile(rf"\A{LabelOptions.label_prefix}"),
        "the form of a label",
        "w2v classify (train_classifier) learns to predict the labels of texts",
    ),
    (
        re.compile(r"\[\[|\]\]|\{\{|\}\}"),
        "wiki markup",
        "remove it first, with WikiExtractor for instance",
    ),
)
# The same for words in other formats, and the share of them that gives a warning.
_OTHER_FORMATS = (
    (
        re.compile(rf"\w{_JOINTS.pattern}\w"),
        "a space inside that is not an ASCII space, such as a no-break space",
        'split them there with --tokenize words (tokenize="words")',
        OTHER_FORMAT,
    ),
    (
        re.compile(rf"\A({_UNIVERSAL_TAGS})\Z"),
        "the form of tags in CoNLL-U",
        "extract the words with awk -F '\\t' '{sub(/\\r$/, \"\")} "
        '/^[0-9]+\\t/ {printf "%s ", $2} /^$/ {print}\' TEXT > WORDS',
        TAG_COLUMN,
    ),
    (
        re.compile(r"\A[BI]-([A-Z]P|AD[JV]P|SBAR|LOC|ORG|PER|MISC)\Z"),
        "the form of tags in CoNLL-2003",
        'extract the words with awk \'{sub(/\\r$/, "")} '
        '/^-DOCSTART-/ {next} NF {printf "%s ", $1} !NF {print ""}\' TEXT > WORDS',
        OTHER_FORMAT,
    ),
    (
        re.compile(rf"\A[^/_|]+[/_|]({_PENN_TAGS}|{_UNIVERSAL_TAGS})\Z"),
        "a tag after the word",
        "extract the words with sed -E 's,[/_|][^/_| ]+( |$),\\1,g' TEXT > WORDS",
        TAGGED,
    ),
    (
        re.compile(r"\A-->\Z"),
        "the form of arrows in subtitles",
        "extract the words with grep -v -e '-->' -e '^[0-9[:space:]]*$' TEXT > WORDS",
        OTHER_FORMAT,
    ),
)
_SEQUENCE = re.compile("[A-Z*-]{20,}|[acgtun]{20,}")
_IDENTIFIER = re.compile(r"[\d_:/|=]")  # characters of identifiers that words do not contain


def warn_about_text(store: TypeCounts, epochs: int | str | None, text: TextOptions, vocabulary: Words) -> None:
    """Issue a TextWarning for each change to the text that would improve the vectors. Items get no advice.

    Args:
        store: The words of the text.
        epochs: The setting `epochs`, or None for a model that has already been trained.
        text: The options that the text was read with.
        vocabulary: The words to train.
    """
    if not store.is_text:
        return
    first = FirstWords.of(store)
    marks, formats = (
        [_share_advice(first, first.only(look.search), *advice) for look, *advice in looks]
        for looks in (_MARKS, _OTHER_FORMATS)
    )
    lines = [*marks, *formats, _markup_advice(first, text), spacing_advice(first) or _character_advice(first, text)]
    # Without spaces, split into characters, or in another format, the tokens are not words: give no advice on them.
    if not any(formats) and not lines[-1]:
        lines += [size_advice(first, store.tokens, epochs), _preprocessing_advice(first)]
    last = _line_advice(store, first), _spelling_advice(first), _vocabulary_advice(store, text, vocabulary)
    for line in filter(None, [*lines, *last]):
        issue_text_warning(line)


class FirstWords(NamedTuple):
    """The first TYPES types of a text, and their counts."""

    words: list[str]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, store: TypeCounts) -> Self:
        """Return the first words of a stored text."""
        ids = np.arange(FIRST_TYPE, min(len(store.counts), FIRST_TYPE + TYPES))
        return cls(store.words(ids).tolist(), store.counts[ids])

    def mean(self, measure: Callable[[str], float]) -> float:
        """Return the mean of a measure of words, weighted by their counts."""
        return float(np.average(list(map(measure, self.words)), weights=self.counts)) if self.counts.any() else 0.0

    def only(self, chosen: Callable[[str], object]) -> Self:
        """Return only the words that `chosen` accepts."""
        kept = [row for row, word in enumerate(self.words) if chosen(word)]
        return type(self)([self.words[row] for row in kept], self.counts[kept])


def has_word_parts(types: TypeCounts, shortest: int) -> bool:
    """Return True if at least half of the words look like words of a language, and half have `shortest` characters."""
    first = FirstWords.of(types)
    return _is_language(first) and first.mean(lambda word: len(word) >= shortest) >= 0.5


def _is_language(first: FirstWords) -> bool:
    """Return True if at least half of the words look like words of a language, not like identifiers of items."""
    written = first.only(lambda word: any(map(str.isalnum, word)))
    return written.mean(lambda word: not _IDENTIFIER.search(word) or _UNSPACED.search(word) is not None) >= 0.5


def size_advice(first: FirstWords, tokens: int, epochs: int | str | None) -> str:
    """Return advice if the text has few words, else "". Sequences of items and the bundled sample get no advice."""
    questions = _question_words()
    is_sample = len(questions.intersection(first.words)) >= SAMPLE_SHARE * len(questions)
    if tokens >= SMALL_TEXT or is_sample or not _is_language(first):
        return ""
    also = f"; more epochs than {epochs} would also help" if isinstance(epochs, int) and epochs < MIN_EPOCHS else ""
    return f"the text has only {tokens:,} words, which is not much to learn from: add more text{also}"


@cache
def _question_words() -> set[str]:
    """Return the words of the analogy questions that come with the package."""
    text = (importlib.resources.files("w2v.data") / "questions.txt").read_text("utf-8")
    return {word for line in text.splitlines() if not line.startswith(":") for word in line.split()}


def _markup_advice(first: FirstWords, text: TextOptions) -> str:
    """Return advice if the text has tags or entities, else ""."""
    if text.strip_markup:
        return ""
    tokenized = text.tokenize != "spaces"
    found = first.only(lambda word: _MARKUP.search(word) or (tokenized and _MARKUP_WORDS.fullmatch(word)))
    return _share_advice(first, found, "HTML or XML markup", "add --strip-markup (strip_markup=True)")


def _share_advice(first: FirstWords, found: FirstWords, what: str, advice: str, max_share: float = MARKUP) -> str:
    """Return advice if the words that were found are more than a share `max_share` of the text, else ""."""
    share = found.counts.sum() / max(1, first.counts.sum())
    if share <= max_share:
        return ""
    example = found.words[int(found.counts.argmax())]
    percent = f"{share:.0%}" if share >= 0.01 else f"{100 * share:.2g}%"
    return f"{percent} of the words have {what}, {_such_as(example)}: {advice}"


def _line_advice(store: TypeCounts, first: FirstWords) -> str:
    """Return advice if the lines of a text are wrapped at some width, so that they end within sentences, else ""."""
    if not isinstance(store, IdStore) or not _is_language(first):
        return ""
    ids = store.ids[:LINE_IDS]
    ends = np.flatnonzero(ids == SENTENCE_END_ID)
    if len(ends) < MIN_LINES:
        return ""
    lengths = np.add.reduceat(np.diff(store.offsets)[ids] + 1, np.append(0, ends[:-1] + 1))[: len(ends)]
    width = np.percentile(lengths, 98)
    next_words = np.diff(store.offsets)[ids[ends[:-1] + 1]]
    is_full = lengths[:-1] + next_words + 1 > width  # the next word has no room in the line
    if width > MAX_WIDTH or np.mean(is_full) < WRAPPED or len(np.unique(lengths)) < MIN_LENGTHS:
        return ""
    return (
        "lines seem to be wrapped at a fixed width, but the end of a line ends the context: if empty lines divide "
        "paragraphs, join the lines of each with tr -d '\\r' < TEXT | awk -v RS= '{$1 = $1} 1' > JOINED"
    )


def spacing_advice(first: FirstWords) -> str:
    """Return advice if the text has hardly any spaces, else ""."""
    unspaced, sequences = first.only(_UNSPACED.search), first.only(_SEQUENCE.fullmatch)
    length, characters = first.mean(_longest_part), first.mean(len) * first.counts.sum()
    if unspaced.counts.any() and unspaced.mean(len) * unspaced.counts.sum() > UNSPACED * characters:
        length, max_length = unspaced.mean(_longest_part), LONG_UNSPACED
    else:
        max_length = LONG
    if length <= max_length or not _is_language(first):
        return ""
    if sequences.mean(len) * sequences.counts.sum() > 0.5 * characters:
        return (
            f"the text has biological sequences, {_such_as(sequences.words[0])}, like a FASTA file: leave out the "
            "records' names, which begin with >, and write each sequence as one line of k-mers with spaces between them"
        )
    return (
        f"words have {length:.0f} characters on average, so the text has hardly any spaces, like Chinese, Japanese or "
        f"Thai: split it into words first, {SEGMENTERS}; --tokenize words would split it into characters"
    )


def _longest_part(word: str) -> int:
    """Return the number of characters of the longest part of a word between spaces that are not ASCII."""
    return max(map(len, _JOINTS.split(word)))


def _character_advice(first: FirstWords, text: TextOptions) -> str:
    """Return advice if the option `tokenize` has split the text into single characters, else ""."""
    unspaced = first.only(_UNSPACED.search)
    share = unspaced.mean(lambda word: sum(map(str.isalpha, word)) <= 1)
    if text.tokenize == "spaces" or share < SINGLE or unspaced.counts.sum() < UNSPACED * first.counts.sum():
        return ""
    return (
        f"{share:.0%} of the words in Chinese, Japanese or Thai are single characters, because --tokenize "
        f"{text.tokenize} finds no words there: split the text into words first, {SEGMENTERS}, and omit --tokenize"
    )


def _preprocessing_advice(first: FirstWords) -> str:
    """Return advice if many words have attached punctuation or capitals, else ""."""
    attached, capitals = first.mean(_has_attached_punctuation), first.mean(lambda word: word != word.lower())
    if not _is_language(first):
        return ""
    if first.mean(lambda word: word != word.upper()) <= CAPITALS:
        capitals = 0.0  # nearly all words have only capitals, like DNA: --lower would not merge words
    if attached > ATTACHED or capitals > CAPITALS:
        advice = ["--lower (lower=True)"] * (capitals > CAPITALS)
        advice += ['--tokenize words (tokenize="words")'] * (attached > ATTACHED)
        return (
            f"{attached:.0%} of the words begin or end with punctuation, {capitals:.0%} have capital letters: "
            f'the, The and "the," are three words; add {" and ".join(advice)}'
        )
    return ""


def _vocabulary_advice(store: TypeCounts, text: TextOptions, vocabulary: Words) -> str:
    """Return advice if words of the vocabulary cannot occur because the text options change them, else ""."""
    changed = {name: value for name, value in asdict(text).items() if value != getattr(TextOptions, name)}
    changed.pop("strip_markup", None)  # it does not change words
    if not changed:
        return ""
    rows = store.remap(vocabulary)
    absent = np.ones(len(vocabulary), bool)
    absent[rows[rows >= 0]] = False
    missing = vocabulary.take(np.flatnonzero(absent))
    normalise, never = Normaliser(text), list[str]()
    for start in range(0, len(missing), WORDS_AT_ONCE):
        words = missing[start : start + WORDS_AT_ONCE]
        normalised = normalise("\n".join([*words, ""]).encode() + PADDING).decode().split("\n")
        never += [word for word, line in zip(words, normalised, strict=False) if word != line.strip(" ")]
    if not never:
        return ""
    options = [f"--{name}" if value is True else f"--{name} {value}" for name, value in changed.items()]
    return (
        f"{len(never):,} of the {len(vocabulary):,} words of the vocabulary, {_such_as(never[0])}, cannot occur in the "
        f"text, which is read with {' '.join(options)}: count words with the same options, as w2v vocab does"
    )


def _such_as(word: str) -> str:
    """Return an example word for a message, shortened."""
    return f"such as {word[:EXAMPLE]!r}" + "…" * (len(word) > EXAMPLE)


def _spelling_advice(first: FirstWords) -> str:
    """Return advice if words are in decomposed Unicode, else ""."""
    if _is_composed(" ".join(first.words)):
        return ""
    others = {unicodedata.normalize("NFC", word) for word in first.words if not _is_composed(word)}
    twice = others & set(first.words)
    if not twice and first.mean(lambda word: not _is_composed(word)) <= DECOMPOSED:
        return ""
    if twice:
        fault = "occurs in two Unicode spellings (NFC and NFD), which count as two words"
    else:
        fault = "is decomposed (Unicode NFD), but usually composed (NFC) in queries"
    return f'{min(twice or others)!r} {fault}: add --normalize nfc (normalize="nfc")'


def _is_composed(word: str) -> bool:
    return unicodedata.is_normalized("NFC", word)


def _has_attached_punctuation(word: str) -> bool:
    """Return True if a word with letters or digits begins or ends with punctuation other than _, # and @."""
    if word[0].isalnum() and word[-1].isalnum():
        return False
    ends = [each not in "_#@" and unicodedata.category(each)[0] == "P" for each in (word[0], word[-1])]
    return any(ends) and any(map(str.isalnum, word))
