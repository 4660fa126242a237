"""gensim.utils: what scripts that train word vectors use of it."""

from __future__ import annotations

import copy
import itertools
import logging
import os
import pickle as pickles
import platform
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from w2v.errors import CutFile, W2VError
from w2v.system.files import PathLike, atomic_write
from w2v.text.normalise import normalized

VERSION = "4.4.0"  # of the gensim whose names and behaviour this package has

log = logging.getLogger("gensim.utils")

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
    decomposed = normalized(to_unicode(text), "NFD")
    return normalized("".join(mark for mark in decomposed if unicodedata.category(mark) != "Mn"), "NFC")


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


def keep_vocab_item(word: object, count: int, min_count: float, trim_rule: TrimRule | None = None) -> bool:
    """Whether a word stays in the vocabulary: as the rule says, by default if it occurs `min_count` times."""
    decision = trim_rule(word, count, min_count) if trim_rule else RULE_DEFAULT
    return decision == RULE_KEEP or (decision == RULE_DEFAULT and count >= min_count)


def prune_vocab(vocab: dict[Any, int], min_reduce: int, trim_rule: TrimRule | None = None) -> int:
    """Drop words that occur at most `min_reduce` times, unless the rule says otherwise; returns the words' counts."""
    dropped = [word for word, count in vocab.items() if not keep_vocab_item(word, count, min_reduce + 1, trim_rule)]
    return sum(vocab.pop(word) for word in dropped)


class SaveLoad:
    """The base of gensim's classes: files, and a record of what was done to an object.

    Attributes:
        lifecycle_events: a dict for each event, or None to record none.
    """

    lifecycle_events: list[dict[str, Any]] | None

    def add_lifecycle_event(self, event_name: str, log_level: int = logging.INFO, **event: Any) -> None:
        """Record an event with its time and this system, and log it at `log_level`, if that is not 0."""
        event = copy.deepcopy(event) | {
            "datetime": datetime.now().isoformat(),
            "gensim": VERSION,
            "python": sys.version,
            "platform": platform.platform(),
            "event": event_name,
        }
        if log_level:
            log.log(log_level, "%s lifecycle event %s", type(self).__name__, event)
        events = vars(self).setdefault("lifecycle_events", [])
        if isinstance(events, list):
            events.append(event)

    def save(self, fname_or_handle: PathLike | BinaryIO, **_: Any) -> None:
        """Pickle the object; classes of this package have formats of their own."""
        self.add_lifecycle_event("saving", fname_or_handle=str(fname_or_handle))
        pickle(self, fname_or_handle)

    @classmethod
    def load(cls, fname: PathLike, mmap: str | None = None) -> Any:
        """Unpickle an object of a class of yours, which runs any code that the file asks for."""
        return unpickle(fname)


@contextmanager
def gensims_exceptions(path: PathLike) -> Iterator[None]:
    """Raises OSError, such as FileNotFoundError, for a file that the system refuses to open, EOFError for one that is
    cut, and W2VError, a ValueError, for other damage.
    """
    try:
        yield
    except CutFile as error:
        raise EOFError(str(error)) from error
    except W2VError as error:
        cause = error.__cause__
        if isinstance(cause, OSError):
            raise OSError(cause.errno, cause.strerror, str(path)) from None
        raise


def writing(fname_or_handle: PathLike | BinaryIO) -> AbstractContextManager[BinaryIO]:
    """An open file as it is, or the file of a name, which replaces another only once it is complete."""
    if isinstance(fname_or_handle, str | os.PathLike):
        return atomic_write(fname_or_handle)
    return nullcontext(fname_or_handle)


def pickle(obj: object, fname: PathLike | BinaryIO, protocol: int = 4) -> None:
    """Pickle an object into a file."""
    with writing(fname) as file:
        pickles.dump(obj, file, protocol)


def unpickle(fname: PathLike) -> Any:
    """The object in a pickle, which runs any code that the file asks for: give it only files of your own."""
    with Path(fname).open("rb") as file:
        return pickles.load(file)


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
