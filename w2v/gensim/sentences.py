"""gensim's sentence readers: iterables over the sentences of files, each a list of words."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from w2v.gensim import utils
from w2v.system.files import PathLike
from w2v.text.columns import lines_of
from w2v.text.decompress import decompress

MAX_WORDS_IN_BATCH = 10_000
READ_BYTES = 1 << 16

Sentences = Iterable[Iterable[Any]]


class LineSentence:
    """The lines of a file as lists of words. A line of more than `max_sentence_length` words gives several lists.

    Args:
        source: The path of a file, which may be compressed, or an open binary file.
        limit: The number of lines to read; None for all.

    Given a path and the default limits, Word2Vec does not iterate this object: w2v's own reader reads the file.
    """

    def __init__(
        self, source: PathLike | IO[bytes], max_sentence_length: int = MAX_WORDS_IN_BATCH, limit: int | None = None
    ) -> None:
        self.source, self.max_sentence_length, self.limit = source, max_sentence_length, limit

    def __iter__(self) -> Iterator[Any]:
        return self._sentences(self.lines())

    def lines(self) -> Iterator[str | bytes]:
        """Return the lines of the file."""
        if isinstance(self.source, str | os.PathLike):
            return _lines(self.source)
        if not hasattr(self.source, "seek"):
            kind = type(self.source).__name__
            raise TypeError(f"{type(self).__name__} takes the path of a file, or an open file, not {kind}")
        self.source.seek(0)
        return iter(self.source)

    def _sentences(self, lines: Iterable[str | bytes]) -> Iterator[list[str]]:
        for line in itertools.islice(lines, self.limit):
            words = utils.to_unicode(line).split()
            for start in range(0, len(words), self.max_sentence_length):
                yield words[start : start + self.max_sentence_length]


class PathLineSentences(LineSentence):
    """The lines of all files of a folder, sorted by file name. `limit` applies to each file; see LineSentence."""

    def __init__(
        self, source: PathLike, max_sentence_length: int = MAX_WORDS_IN_BATCH, limit: int | None = None
    ) -> None:
        super().__init__(source, max_sentence_length, limit)
        path = Path(source)
        if not path.exists():
            raise ValueError(f"{path}: there is no such file or folder")
        self.input_files = [str(path)] if path.is_file() else sorted(map(str, path.iterdir()))

    def __iter__(self) -> Iterator[list[str]]:
        for file in self.input_files:
            yield from self._sentences(_lines(file))


class Text8Corpus:
    """A file of one long line, split into lists of `max_sentence_length` words."""

    def __init__(self, fname: PathLike, max_sentence_length: int = MAX_WORDS_IN_BATCH) -> None:
        self.fname, self.max_sentence_length = fname, max_sentence_length

    def __iter__(self) -> Iterator[list[str]]:
        words: list[str] = []
        cut_word = b""  # the bytes after the last space of a piece: the next piece may continue the word
        for piece in _pieces(self.fname):
            head, space, cut_word = (cut_word + piece).rpartition(b" ")
            words += (head + space).decode().split()
            while len(words) >= self.max_sentence_length:
                yield words[: self.max_sentence_length]
                del words[: self.max_sentence_length]
        words += cut_word.decode().split()
        if words:
            yield words


class BrownCorpus:
    """The lines of all files of a folder in the format of the Brown corpus, WORD/TAG.

    The token Jury/nn-tl becomes jury/nn: the word in lower case, and the first two letters of its tag. Tokens with
    other tags are left out.
    """

    def __init__(self, dirname: PathLike) -> None:
        self.dirname = dirname

    def __iter__(self) -> Iterator[list[str]]:
        return (words for _, words in self.named_sentences())

    def named_sentences(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the name that gensim's TaggedBrownCorpus gives to each sentence, and its words."""
        for path in sorted(Path(self.dirname).iterdir()):
            if path.is_file():
                for number, line in enumerate(_lines(path)):
                    pairs = (token.split("/") for token in line.decode().split() if token.count("/") == 1)
                    words = [f"{word.lower()}/{tag[:2]}" for word, tag in pairs if tag[:2].isalpha()]
                    if words:
                        yield f"{path}_SENT_{number}", words


def _pieces(path: PathLike) -> Iterator[bytes]:
    """Yield the content of a file, decompressed if necessary."""
    with Path(path).open("rb") as file:
        yield from decompress(str(path), iter(lambda: file.read(READ_BYTES), b""))


def read_bytes(path: PathLike) -> bytes:
    """Return the content of a file, decompressed if necessary."""
    return b"".join(_pieces(path))


def _lines(path: PathLike) -> Iterator[bytes]:
    return lines_of(str(path), _pieces(path))


def files_of(sentences: Sentences | None, corpus_file: PathLike | None) -> list[Path] | None:
    """Return the files that w2v's own reader can read instead of iterating the sentences.

    Return None if there are no such files: for an iterable other than gensim's readers, for sentences that are cut
    shorter than by default (w2v's reader cuts none), and if a file is missing.
    """
    files: list[PathLike] = []
    if corpus_file is not None:
        files = [corpus_file]
    elif isinstance(sentences, LineSentence | Text8Corpus) and sentences.max_sentence_length < MAX_WORDS_IN_BATCH:
        return None
    elif isinstance(sentences, Text8Corpus):
        files = [sentences.fname]
    elif isinstance(sentences, LineSentence) and sentences.limit is None:
        if isinstance(sentences, PathLineSentences):
            files = list(sentences.input_files)
        elif isinstance(sentences.source, str | os.PathLike):
            files = [sentences.source]
    paths = [*map(Path, files)]
    return paths if paths and all(path.is_file() for path in paths) else None
