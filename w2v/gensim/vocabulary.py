"""Count words and choose the vocabulary by gensim's rules."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from w2v.errors import NothingToTrain
from w2v.gensim.sentences import Sentences
from w2v.gensim.utils import TrimRule, prune_vocab
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


def effective_min_count(counts: Mapping[Any, int], min_count: float, max_final_vocab: int | None) -> float:
    """Return the smallest min_count, at least `min_count`, that leaves at most `max_final_vocab` words."""
    if max_final_vocab is None or max_final_vocab >= len(counts):
        return min_count
    return max(sorted(counts.values(), reverse=True)[max_final_vocab] + 1, min_count)


def sample_as_share(sample: float, total: int) -> float:
    """Convert gensim's `sample` to a share of the `total` words. A `sample` of 1 or more is a number of words."""
    # The factor (3 + √5) / 2 is gensim's.
    return sample if sample < 1 else min(1.0, int(sample * (3 + np.sqrt(5)) / 2) / max(1, total))


def effect_on_vocabulary(distinct_words: int, kept_counts: list[int], sample: float) -> dict[str, int]:
    """Return what gensim's prepare_vocab reports: how many words are kept and dropped, and what subsampling leaves.

    Args:
        distinct_words: The number of different words before min_count.
        kept_counts: The counts of the words of the vocabulary.
    """
    counts = np.array(kept_counts, np.int64)
    total = int(counts.sum())
    threshold = sample_as_share(sample, total) * total or total
    share = np.minimum(1, np.sqrt(threshold / counts) + threshold / counts)
    return {
        "drop_unique": distinct_words - len(kept_counts),
        "retain_total": total,
        "downsample_unique": int((share < 1).sum()),
        "downsample_total": int((share * counts).sum()),
        "num_retained_words": len(kept_counts),
    }
