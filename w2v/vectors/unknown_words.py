"""Words that are not in the vocabulary, and the known words that may be meant instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from w2v.errors import W2VError, printable
from w2v.options import did_you_mean

MAX_NAMED = 10  # unknown words in a message
MAX_CHARACTERS = 60  # of an unknown word in a message; longer words get no suggestions
SUGGESTIONS = 3  # for each unknown word
CANDIDATES = 20_000  # words compared with an unknown one: this takes well under a second
SIMILAR = 0.75  # minimum ratio of matching characters (difflib)


class UnknownWordError(W2VError, KeyError):
    """Words are not in the vocabulary: `args` has them all, the message the first ten and similar words.

    Similar words are searched when the message is read, so that catching the error in a loop is quick.
    """

    def __init__(self, words: Iterable[Any], known: Mapping[Any, int]) -> None:
        super().__init__(*words)
        self._known = known

    def __str__(self) -> str:
        named = ", ".join(f"{_quoted(word)}{_hint(word, self._known)}" for word in self.args[:MAX_NAMED])
        more = len(self.args) - MAX_NAMED
        return f"not in the vocabulary: {named}{f' and {more:,} more' if more > 0 else ''}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args, {})  # without the vocabulary, which may be large


def suggestions(word: str, known: Mapping[Any, int]) -> list[str]:
    """Return known words that may be meant by an unknown word: its lower-case form, then similar spellings.

    Spellings are compared if they have about as many characters, and the same first one or last two; at most the
    first CANDIDATES, which are the most frequent. There are none for words of more than MAX_CHARACTERS.
    """
    if len(word) > MAX_CHARACTERS:
        return []
    lower = word.lower()
    found = [lower] if lower in known else []
    for spelling in dict.fromkeys((word, lower)):
        candidates = (
            other
            for other in known
            if isinstance(other, str)
            and abs(len(other) - len(word)) <= 2
            and (other[:1] == spelling[:1] or other[-2:] == spelling[-2:])
        )
        found += difflib.get_close_matches(spelling, islice(candidates, CANDIDATES), SUGGESTIONS, SIMILAR)
    return list(dict.fromkeys(found))[:SUGGESTIONS]


def _quoted(word: Any) -> str:
    if isinstance(word, str):
        return printable(repr(word[:MAX_CHARACTERS]))
    return str(int(word)) if isinstance(word, int | np.integer) else printable(f"{word!r:.60}")


def _hint(word: Any, known: Mapping[Any, int]) -> str:
    if isinstance(word, int | np.integer):
        if str(word) in known:
            return f" (words are strings: did you mean '{word}'?)"
        return f" (words are strings; row {word} is .vectors[{word}])" if 0 <= word < len(known) else ""
    found = suggestions(word, known) if isinstance(word, str) else []
    return f" ({did_you_mean(found)})" if found else ""
