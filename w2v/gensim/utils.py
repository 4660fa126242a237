"""gensim.utils: what scripts that train word vectors use of it."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from w2v.system.files import PathLike, atomic_write

RULE_DEFAULT, RULE_DISCARD, RULE_KEEP = 0, 1, 2  # what a trim_rule says about a word

TrimRule = Callable[..., int]  # of (word, count, min_count)

_ALPHABETIC = re.compile(r"((?:(?!\d)\w)+)")


def to_unicode(text: str | bytes, encoding: str = "utf8", errors: str = "strict") -> str:
    return text if isinstance(text, str) else text.decode(encoding, errors)


any2unicode = to_unicode


def any2utf8(text: str | bytes, errors: str = "strict", encoding: str = "utf8") -> bytes:
    """The text in UTF-8; bytes are in `encoding`."""
    return to_unicode(text, encoding, errors).encode()


to_utf8 = any2utf8


def deaccent(text: str | bytes) -> str:
    """The text without accents."""
    decomposed = unicodedata.normalize("NFD", to_unicode(text))
    return unicodedata.normalize("NFC", "".join(mark for mark in decomposed if unicodedata.category(mark) != "Mn"))


def tokenize(
    text: str | bytes,
    lowercase: bool = False,
    deacc: bool = False,
    encoding: str = "utf8",
    errors: str = "strict",
    to_lower: bool = False,
    lower: bool = False,
) -> Iterator[str]:
    """The runs of letters (and underscores) in a text, without digits."""
    text = to_unicode(text, encoding, errors)
    if lowercase or to_lower or lower:
        text = text.lower()
    return simple_tokenize(deaccent(text) if deacc else text)


def simple_tokenize(text: str) -> Iterator[str]:
    """As tokenize, of a text as it is."""
    return (found.group() for found in _ALPHABETIC.finditer(text))


def simple_preprocess(doc: str | bytes, deacc: bool = False, min_len: int = 2, max_len: int = 15) -> list[str]:
    """The lower-case words of a text that have from `min_len` to `max_len` letters."""
    words = tokenize(doc, lower=True, deacc=deacc, errors="ignore")
    return [word for word in words if min_len <= len(word) <= max_len and not word.startswith("_")]


def keep_vocab_item(word: object, count: int, min_count: int, trim_rule: TrimRule | None = None) -> bool:
    """Whether a word stays in the vocabulary: as the rule says, by default if it occurs `min_count` times."""
    decision = trim_rule(word, count, min_count) if trim_rule else RULE_DEFAULT
    return decision == RULE_KEEP or (decision == RULE_DEFAULT and count >= min_count)


def prune_vocab(vocab: dict[Any, int], min_reduce: int, trim_rule: TrimRule | None = None) -> int:
    """Drop words that occur at most `min_reduce` times, unless the rule says otherwise; returns the words' counts."""
    dropped = [word for word, count in vocab.items() if not keep_vocab_item(word, count, min_reduce + 1, trim_rule)]
    return sum(vocab.pop(word) for word in dropped)


def save_as_line_sentence(corpus: Iterable[Iterable[str]], filename: PathLike) -> None:
    """Write sentences, one to a line, with spaces between the words."""
    with atomic_write(filename) as file:
        file.writelines((" ".join(sentence) + "\n").encode() for sentence in corpus)


class RepeatCorpus:
    """The first `reps` items of a corpus that is repeated without end."""

    def __init__(self, corpus: Iterable[Any], reps: int) -> None:
        self.corpus, self.reps = corpus, reps

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(itertools.chain.from_iterable(itertools.repeat(self.corpus)), self.reps)


class RepeatCorpusNTimes:
    """A corpus repeated `n` times."""

    def __init__(self, corpus: Iterable[Any], n: int) -> None:
        self.corpus, self.n = corpus, n

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(itertools.repeat(self.corpus, self.n))


class ClippedCorpus:
    """The first `max_docs` items of a corpus, by default all."""

    def __init__(self, corpus: Collection[Any], max_docs: int | None = None) -> None:
        self.corpus, self.max_docs = corpus, max_docs

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(self.corpus, self.max_docs)

    def __len__(self) -> int:
        return len(range(len(self.corpus))[: self.max_docs])
