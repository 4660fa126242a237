"""Sentences that Word2Vec counts and trains, and the log of its progress."""

from __future__ import annotations

import itertools
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from w2v.errors import NothingToTrain
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.sentences import Sentences
from w2v.gensim.utils import TrimRule, prune_vocab
from w2v.progress import Progress
from w2v.system.files import PathLike
from w2v.text._text import FIRST_TYPE
from w2v.text.corpus import Corpus
from w2v.text.idstore import ReadingOptions, read_corpus

log = logging.getLogger("gensim.models.word2vec")

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
    sentences: Sentences, max_vocab_size: int | None, trim_rule: TrimRule | None, progress_per: int
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
            prune_vocab(counts, min_reduce, trim_rule)
            min_reduce += 1
    return counts, words, n_sentences


class NumberedSentences:
    """Sentences for training: each word is replaced by its row number, and unknown words are left out.

    Models with subwords keep the words themselves.

    Attributes:
        words: The number of words read in the last iteration, including unknown ones.
        file: The file with the same sentences, if `write` has been called.
    """

    words = 0
    file: Path | None = None

    def __init__(self, sentences: Sentences, wv: KeyedVectors) -> None:
        self.sentences = sentences
        self.replacements = {word: word if wv.subwords else str(row) for word, row in wv.key_to_index.items()}

    def __iter__(self) -> Iterator[list[str]]:
        self.words = 0
        for sentence in self.sentences:
            words = list(sentence)
            self.words += len(words)
            yield [self.replacements[word] for word in words if word in self.replacements]

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


class ProgressLog:
    """A progress callback that logs at most once per `report_delay` seconds."""

    def __init__(self, report_delay: float) -> None:
        self.delay, self.last_time = report_delay, time.perf_counter()

    def __call__(self, progress: Progress) -> None:
        now = time.perf_counter()
        if progress.phase == "train" and progress.total and now - self.last_time >= self.delay:
            self.last_time = now
            log.info(
                "EPOCH %d - PROGRESS: at %.2f%% words, %.0f words/s",
                (progress.epoch or 1) - 1, 100 * progress.done / progress.total, progress.rate or 0,
            )  # fmt: skip
