"""Sentences, each a list of words: gensim's readers of files, and what Word2Vec counts and trains."""

from __future__ import annotations

import itertools
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from w2v._errors import NothingToTrain
from w2v._system.files import PathLike
from w2v._text._text import FIRST_TYPE
from w2v._text.columns import lines_of
from w2v._text.corpus import Corpus
from w2v._text.decompress import decompress
from w2v._text.idstore import ReadingOptions, read_corpus
from w2v.gensim import utils

log = logging.getLogger("gensim.models.word2vec")

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


WordCounts = tuple[dict[Any, int], int, int]  # the count of each word, the number of words, the number of sentences


def count_files(files: list[Path], max_vocab_size: int | None, cache: PathLike | None, workers: int) -> WordCounts:
    """Count the words of files. Store their ids in the folder `cache`, so that training need not read them again."""
    options = ReadingOptions(cache=cache, max_types=max_vocab_size or ReadingOptions.max_types)
    try:
        with read_corpus(Corpus(files), options, workers=workers) as store:
            words = store.words(np.arange(FIRST_TYPE, len(store.counts)))
            counts = store.counts[FIRST_TYPE:].tolist()
            count_of = {word: count for word, count in zip(words, counts, strict=True) if count}
            return count_of, store.tokens, store.sentences
    except NothingToTrain:
        return {}, 0, 0


def count_sentences(
    sentences: Sentences, max_vocab_size: int | None, trim_rule: utils.TrimRule | None, progress_per: int
) -> WordCounts:
    """Count the words of sentences. Drop the rarest whenever there are more than `max_vocab_size` different words."""
    counts: dict[Any, int] = defaultdict(int)
    words = n_sentences = 0
    min_reduce = 1  # gensim's name for the lowest count that is kept; the first time, it keeps all words
    for n_sentences, sentence in enumerate(sentences, 1):
        if n_sentences == 1 and isinstance(sentence, str):
            log.warning(
                "Each 'sentences' item should be a list of words (usually unicode strings). "
                "First item here is instead plain %s.",
                type(sentence),
            )
        if (n_sentences - 1) % progress_per == 0:
            log.info(
                "PROGRESS: at sentence #%d, processed %d words, keeping %d word types",
                n_sentences - 1, words, len(counts),
            )  # fmt: skip
        words += len(sentence)  # type: ignore[arg-type]
        for word in sentence:
            counts[word] += 1
        if max_vocab_size and len(counts) > max_vocab_size:
            utils.prune_vocab(counts, min_reduce, trim_rule)
            min_reduce += 1
    return counts, words, n_sentences


class NumberedSentences:
    """Sentences for training: each word is replaced, such as by its row number, and unknown words are left out.

    Attributes:
        words: The number of words read in the last iteration, including unknown ones.
        file: The file with the same sentences, if `write` has been called.
    """

    words = 0
    file: Path | None = None

    def __init__(self, sentences: Sentences, replacements: Mapping[Any, str]) -> None:
        self.sentences, self.replacements = sentences, replacements

    def __iter__(self) -> Iterator[list[str]]:
        self.words = 0
        for sentence in self.sentences:
            yield self._numbers(sentence)

    def _numbers(self, sentence: Iterable[Any]) -> list[str]:
        words = list(sentence)
        self.words += len(words)
        return [self.replacements[word] for word in words if word in self.replacements]

    @property
    def is_at_end(self) -> bool:
        """Whether the sentences are an iterator, and the last iteration found it at its end."""
        return isinstance(self.sentences, Iterator) and not self.words

    def write(self, path: Path) -> None:
        """Write the sentences to a file, one per line."""
        with path.open("w") as file:
            file.writelines(" ".join(sentence) + "\n" for sentence in self)
        self.file = path


class JobSentences:
    """The sentences that a subclass's _do_train_job makes from batches, such as random walks from their start nodes."""

    def __init__(
        self, sentences: Sentences, batch_words: int, call_train_job: Callable[[list[Any]], list[Any]]
    ) -> None:
        """Make batches of at most `batch_words` words, of which `call_train_job` makes sentences."""
        self.sentences, self.batch_words, self.call_train_job = sentences, batch_words, call_train_job
        self._counted: Iterator[Any] | None = None  # an iterator that repeats the sentences read by count()

    def count(self) -> int:
        """Return the number of words, or of the first 20 batches if there are more.

        The next iteration repeats the sentences that this method read, so that a generator loses none of them.
        """
        self._counted, sentences = itertools.tee(self._iterate())
        words = 0
        for sentence in sentences:
            words += len(sentence)
            if words > 20 * self.batch_words:
                break
        return words

    def __iter__(self) -> Iterator[Any]:
        counted, self._counted = self._counted, None
        return counted or self._iterate()

    def _iterate(self) -> Iterator[Any]:
        batch: list[Any] = []
        words = 0
        for sentence in self.sentences:
            words += len(sentence)  # type: ignore[arg-type]
            if batch and words > self.batch_words:
                yield from self.call_train_job(batch)
                batch, words = [], len(sentence)  # type: ignore[arg-type]
            batch.append(sentence)
        if batch:
            yield from self.call_train_job(batch)
