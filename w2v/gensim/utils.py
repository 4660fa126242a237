"""gensim.utils: the functions that scripts with word vectors use."""

from __future__ import annotations

import copy
import logging
import os
import pickle as pickles
import platform
import re
import shutil
import sys
import tempfile
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from glob import escape
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from w2v._errors import TruncatedFile, W2VError
from w2v._formats.row_blocks import open_unpacked
from w2v._formats.word2vec import compress_by_name
from w2v._system.files import PathLike, atomic_write, temporary_folder

VERSION = "4.4.0"  # the version of gensim that this package imitates

log = logging.getLogger("gensim.utils")

RULE_DEFAULT, RULE_DISCARD, RULE_KEEP = 0, 1, 2  # the possible results of a trim_rule

TrimRule = Callable[..., int]  # called with (word, count, min_count)

_ALPHABETIC = re.compile(r"((?:(?!\d)\w)+)")


def to_unicode(text: str | bytes, encoding: str = "utf8", errors: str = "strict") -> str:
    return text if isinstance(text, str) else text.decode(encoding, errors)


any2unicode = to_unicode


def any2utf8(text: str | bytes, errors: str = "strict", encoding: str = "utf8") -> bytes:
    """Return the text as UTF-8. If it is bytes, decode them from `encoding` first."""
    return to_unicode(text, encoding, errors).encode()


to_utf8 = any2utf8


def deaccent(text: str | bytes) -> str:
    """Return the text without accents."""
    decomposed = unicodedata.normalize("NFD", to_unicode(text))
    kept = "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
    return unicodedata.normalize("NFC", kept)


def tokenize(
    text: str | bytes,
    lowercase: bool = False,
    deacc: bool = False,
    encoding: str = "utf8",
    errors: str = "strict",
    to_lower: bool = False,
    lower: bool = False,
) -> Iterator[str]:
    """Return an iterator over the tokens of a text: runs of letters and underscores, without digits."""
    text = to_unicode(text, encoding, errors)
    if lowercase or to_lower or lower:
        text = text.lower()
    return simple_tokenize(deaccent(text) if deacc else text)


def simple_tokenize(text: str) -> Iterator[str]:
    """Return the tokens of a text, as `tokenize` does with its default options."""
    return (match.group() for match in _ALPHABETIC.finditer(text))


def simple_preprocess(doc: str | bytes, deacc: bool = False, min_len: int = 2, max_len: int = 15) -> list[str]:
    """Return the tokens of `min_len` to `max_len` characters, in lower case."""
    words = tokenize(doc, lower=True, deacc=deacc, errors="ignore")
    return [word for word in words if min_len <= len(word) <= max_len and not word.startswith("_")]


def keep_vocab_item(word: object, count: int, min_count: float, trim_rule: TrimRule | None = None) -> bool:
    """Return whether a word stays in the vocabulary: as `trim_rule` decides, or else if it occurs `min_count` times."""
    decision = trim_rule(word, count, min_count) if trim_rule else RULE_DEFAULT
    return decision == RULE_KEEP or (decision == RULE_DEFAULT and count >= min_count)


def prune_vocab(vocab: dict[Any, int], min_reduce: int, trim_rule: TrimRule | None = None) -> int:
    """Drop words of a count below `min_reduce`, unless the rule keeps them. Return the sum of the dropped counts."""
    dropped = [word for word, count in vocab.items() if not keep_vocab_item(word, count, min_reduce, trim_rule)]
    return sum(vocab.pop(word) for word in dropped)


def refuse_load_of_model(*_: Any, **__: Any) -> None:
    """Refuse `model.load(path)`, a common mistake: it would return a new model, and leave this one as it is."""
    raise AttributeError("load returns a new model: call it on the class, Word2Vec.load(path)")


class SaveLoad:
    """The base of gensim's classes: it saves and loads objects, and records events.

    Attributes:
        lifecycle_events: One dict per event; None to record no events.
    """

    lifecycle_events: list[dict[str, Any]] | None

    def add_lifecycle_event(self, event_name: str, log_level: int = logging.INFO, **event: Any) -> None:
        """Record an event, its time and the versions in use. Log it at `log_level`, unless that is 0."""
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

    def save(
        self,
        fname_or_handle: PathLike | BinaryIO,
        separately: object = None,
        sep_limit: int = 0,
        ignore: Iterable[str] = (),
        pickle_protocol: int = 4,
    ) -> None:
        """Pickle the object into one file. The classes of this package override this method, and write no pickles.

        Args:
            separately, sep_limit: They have no effect.
            ignore: Attributes to leave out. They are None in the loaded object.
        """
        self.add_lifecycle_event("saving", fname_or_handle=str(fname_or_handle))
        saved = copy.copy(self)
        vars(saved).update(dict.fromkeys(vars(saved).keys() & set(ignore)))
        pickle(saved, fname_or_handle, pickle_protocol)

    @classmethod
    def load(cls, fname: PathLike, mmap: str | None = None) -> Any:
        """Unpickle an object. A pickle can run any code: load only files that you trust."""
        return unpickle(fname)


@contextmanager
def gensim_exceptions(path: PathLike) -> Iterator[None]:
    """Convert w2v's errors for a file into the exceptions that gensim raises.

    Raises:
        OSError: The system refuses to open the file; FileNotFoundError, for instance.
        EOFError: The file is truncated.
        W2VError: The file has other damage. A W2VError is a ValueError.
    """
    try:
        yield
    except TruncatedFile as error:
        raise EOFError(str(error)) from error
    except W2VError as error:
        cause = error.__cause__
        if isinstance(cause, OSError):
            raise OSError(cause.errno, cause.strerror, str(path)) from None
        raise


@contextmanager
def open_output(fname_or_handle: PathLike | BinaryIO) -> Iterator[BinaryIO]:
    """Open a path for an atomic write, compressed as its extension says, or yield an open file as it is."""
    if isinstance(fname_or_handle, str | os.PathLike):
        with atomic_write(fname_or_handle) as plain, compress_by_name(fname_or_handle, plain) as file:
            yield file
    else:
        yield fname_or_handle


@contextmanager
def unpacked(path: PathLike, signature: bytes) -> Iterator[PathLike]:
    """Yield the path of an unpacked temporary copy of a compressed file that begins with `signature`, a regex.

    The arrays that gensim has saved next to it as `.npz` are unpacked, too. For any other file, and if there is none,
    yield the path itself.
    """
    path = Path(path)
    if path.is_file():
        with open_unpacked(path) as (file, _):
            if not isinstance(file.raw, FileIO) and re.match(signature, file.peek(1)):
                with tempfile.TemporaryDirectory(dir=temporary_folder()) as folder, _paths_in(path.parent, folder):
                    copy_of_file = Path(folder) / path.name
                    with copy_of_file.open("wb") as out:
                        shutil.copyfileobj(file, out)
                    for array in path.parent.glob(f"{escape(path.name)}.*.npz"):
                        _unpack_array(array, copy_of_file.with_name(f"{array.stem}.npy"))
                    yield copy_of_file
                return
    yield path


@contextmanager
def _paths_in(folder: PathLike, temporary: str) -> Iterator[None]:
    """Name files of `folder` in errors, rather than their copies in the folder `temporary`."""
    try:
        yield
    except W2VError as error:
        raise type(error)(str(error).replace(temporary, str(folder))) from error.__cause__


def _unpack_array(path: Path, out: Path) -> None:
    try:
        with ZipFile(path) as archive, archive.open("val.npy") as packed, out.open("wb") as file:
            shutil.copyfileobj(packed, file)
    except (BadZipFile, KeyError, EOFError, zlib.error) as error:
        raise W2VError(f"{path}: damaged: not an array that gensim saved") from error


def pickle(obj: object, fname: PathLike | BinaryIO, protocol: int = 4) -> None:
    """Pickle an object to a path or an open file."""
    with open_output(fname) as file:
        pickles.dump(obj, file, protocol)


def unpickle(fname: PathLike) -> Any:
    """Unpickle the object in a file, compressed or not. A pickle can run any code: load only files that you trust."""
    with gensim_exceptions(fname), open_unpacked(fname) as (file, _):
        return pickles.load(file)


def save_as_line_sentence(corpus: Iterable[Iterable[str]], filename: PathLike) -> None:
    """Write one sentence per line, with spaces between the words, compressed as the extension of the file says."""
    with open_output(filename) as file:
        for sentence in corpus:
            file.write((" ".join(sentence) + "\n").encode())
