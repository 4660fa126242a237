"""Errors about words outside the vocabulary, with suggestions of similar known words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from w2v._errors import PUBLIC, W2VError, printable
from w2v._options import did_you_mean

MAX_NAMED = 10  # unknown words in a message
MAX_CHARACTERS = 60  # a message shows this many of an unknown word; longer words get no suggestions
SUGGESTIONS = 3  # for each unknown word
CANDIDATES = 20_000  # known words to compare with an unknown one, which takes well under a second
SIMILAR = 0.75  # minimum of difflib's similarity ratio, 0 to 1


class UnknownWordError(W2VError, KeyError):
    """An error for words that are not in the vocabulary. `args` has all of them.

    The message has the first ten and similar known words.

    Similar words are searched only when the message is read, so that a loop can catch many of these errors quickly.
    """

    __module__ = PUBLIC

    def __init__(self, words: Iterable[Any], known: Mapping[Any, int], model: str = "") -> None:
        """Create the error for words that are not among the known ones. `model` names one of several models."""
        super().__init__(*words)
        self._known, self._model = known, model

    def __str__(self) -> str:
        named = ", ".join(f"{_quoted(word)}{_hint(word, self._known)}" for word in self.args[:MAX_NAMED])
        more = len(self.args) - MAX_NAMED
        of_model = f" of {self._model}" if self._model else ""
        return printable(f"not in the vocabulary{of_model}: {named}{f' and {more:,} more' if more > 0 else ''}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args, {}, self._model)  # the vocabulary may be large, so it is not pickled


def suggestions(word: str, known: Mapping[Any, int]) -> list[str]:
    """Return known words that may be meant by an unknown word: its lower-case form, then similar spellings.

    A known word is a candidate if its length differs by at most 2 and it has the same first character or the same last
    two characters. Only the first CANDIDATES candidates, the most frequent, are compared. Words of more than
    MAX_CHARACTERS get no suggestions.
    """
    if len(word) > MAX_CHARACTERS:
        return []
    lower = word.lower()
    similar = [lower] if lower in known else []
    for spelling in dict.fromkeys((word, lower)):
        candidates = (
            other
            for other in known
            if isinstance(other, str)
            and abs(len(other) - len(word)) <= 2
            and (other[:1] == spelling[:1] or other[-2:] == spelling[-2:])
        )
        similar += difflib.get_close_matches(spelling, islice(candidates, CANDIDATES), SUGGESTIONS, SIMILAR)
    return list(dict.fromkeys(similar))[:SUGGESTIONS]


def _quoted(word: Any) -> str:
    if isinstance(word, str):
        return repr(word[:MAX_CHARACTERS])
    return str(int(word)) if isinstance(word, int | np.integer) else f"{word!r:.60}"


def _hint(word: Any, known: Mapping[Any, int]) -> str:
    if isinstance(word, int | np.integer) and isinstance(next(iter(known), ""), str):
        if str(word) in known:
            return f" (words are strings: did you mean '{word}'?)"
        return f" (words are strings; row {word} is .vectors[{word}])" if 0 <= word < len(known) else ""
    similar = suggestions(word, known) if isinstance(word, str) else []
    return f" ({did_you_mean(similar)})" if similar else ""
