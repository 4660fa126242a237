"""Join several texts into one, and add the name of its text to each chosen word, as in gay_1990s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError
from w2v._text._text import FIRST_TYPE, Lookup
from w2v._text.corpus import Corpus
from w2v._text.idstore import IdStore, TypeCounts, store_of_ids
from w2v._text.vocabulary import Vocabulary
from w2v._text.words import Words


def tagged(word: str, name: str) -> str:
    """Return a chosen word with the name of a text."""
    return f"{word}_{name}"


class TaggedTexts:
    """Several texts, by name, to train one model on. Chosen words carry the name of their text.

    Attributes:
        corpora: The texts by name.
        words: The chosen words, without repeats.
    """

    def __init__(self, corpora: Mapping[str, Corpus], words: Sequence[str]) -> None:
        self.corpora, self.words = corpora, words

    @property
    def files(self) -> list[str]:
        """The paths of all files."""
        return [file for corpus in self.corpora.values() for file in corpus.files]

    @property
    def sizes(self) -> list[tuple[str, int]] | None:
        """See Corpus."""
        sizes = [corpus.sizes for corpus in self.corpora.values()]
        return None if None in sizes else [each for files in sizes if files for each in files]

    def __str__(self) -> str:
        return "the text of all slices"

    def output_words(self, vocabulary: Vocabulary) -> NDArray[np.int32]:
        """Return the word with the output row of each word of the joined text; see Plan.output_words.

        The tagged forms of a word share the row of the most frequent form.
        """
        row_of_word = {word: row for row, word in enumerate(vocabulary.words)}
        output_words = np.arange(len(vocabulary), dtype=np.int32)
        for word in self.words:
            rows = [row_of_word[form] for name in self.corpora if (form := tagged(word, name)) in row_of_word]
            output_words[rows] = min(rows, default=0)
        return output_words


def join_tagged(stores: Mapping[str, IdStore], words: Sequence[str], folder: Path) -> IdStore:
    """Join texts, and tag the chosen words in each text with its name.

    Args:
        stores: The texts by name.
        words: The chosen words, without repeats.
        folder: The folder for a temporary file with the new ids.

    Returns:
        The joined text, in the order of the stores.

    Raises:
        W2VError: A text contains a tagged word already, or no text contains a chosen word.
    """
    names = [tagged(word, name) for word in words for name in stores]
    for name, store in stores.items():
        if (found := store.remap(names)).max() >= 0:
            raise W2VError(f"the text {name} has the word {names[found.max()]!r} already: rename the text")
    if not any((store.remap(words) >= 0).any() for store in stores.values()):
        raise W2VError(f"no text has one of the words to tag, such as {words[0][:60]!r}")
    renamed = [_rename(store, words, name) for name, store in stores.items()]
    joined = reduce(TypeCounts.concat, renamed)
    lookup = Lookup(joined.strings, joined.offsets)

    def pieces() -> Iterator[tuple[NDArray[np.uint32], float]]:
        done, total = 0, sum(len(store.ids) for store in stores.values())
        for store, types in zip(stores.values(), renamed, strict=True):
            new_ids = lookup.rows(types.strings, types.offsets)
            new_ids[:FIRST_TYPE] = range(FIRST_TYPE)
            for ids in store.pieces():
                done += len(ids)
                yield new_ids[ids].astype(np.uint32), done / total

    types = joined.counts, joined.types
    return store_of_ids(pieces(), lambda: types, folder, pruned=joined.pruned, noun=joined.noun)


def _rename(store: IdStore, words: Sequence[str], name: str) -> TypeCounts:
    """Return the types of a text with the chosen words tagged."""
    chosen = store.remap(words)
    ids = np.flatnonzero(chosen >= 0)
    order = np.arange(len(chosen))
    order[ids] = len(chosen) + np.arange(len(ids))
    tagged_words = Words.of([tagged(words[number], name) for number in chosen[ids].tolist()])
    types = store.types.concat(tagged_words).take(order)
    return TypeCounts(store.counts, types.with_padding(), types.offsets, store.pruned, noun=store.noun)
