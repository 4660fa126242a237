"""Read the phrases that gensim 1 to 4 saved: pickles, which are read as data."""

from __future__ import annotations

from collections.abc import ItemsView
from typing import Any

from w2v.errors import W2VError
from w2v.formats import pickles
from w2v.formats.pickles import PickledObject
from w2v.system.files import PathLike

CLASSES = {"Phrases": "Phrases", "Phraser": "FrozenPhrases", "FrozenPhrases": "FrozenPhrases"}
SCORERS = {"original_scorer": "default", "npmi_scorer": "npmi"}
# The values of attributes that old files lack.
DEFAULTS = {"max_vocab_size": 40_000_000, "progress_per": 10_000, "min_reduce": 1, "corpus_word_count": 0}
NUMBERS = ("min_count", "threshold", *DEFAULTS)


def read(path: PathLike) -> dict[str, Any]:
    """Return the fields of a Phrases or FrozenPhrases object, named as in the files that w2v.gensim saves.

    Raises:
        W2VError: The file is damaged, or holds something else.
    """
    root = pickles.read(path)
    name = root.name.rpartition(".")[2] if isinstance(root, PickledObject) else type(root).__name__
    if not isinstance(root, PickledObject) or name not in CLASSES:
        raise W2VError(f"{path}: not phrases, but a pickle of {name:.60}")
    saved = DEFAULTS | root.attributes()
    fields: dict[str, Any] = {number: saved[number] for number in NUMBERS if number in saved}
    fields |= {"class": CLASSES[name], "scoring": _scorer_name(saved.get("scoring"))}
    try:
        fields["delimiter"] = _text(saved.get("delimiter", "_"))
        connectors: Any = saved.get("connector_words", saved.get("common_terms", []))
        if isinstance(connectors, PickledObject):  # frozenset(list) in protocol 2
            (connectors,) = connectors.arguments
        fields["connector_words"] = sorted(map(_text, connectors))
        if name == "Phrases":
            fields["vocab"] = {_text(token): count for token, count in _items(saved.get("vocab"))}
        else:
            fields["phrasegrams"] = {
                _phrase(words, fields["delimiter"]): score[-1] if isinstance(score, tuple) else score
                for words, score in _items(saved.get("phrasegrams"))
            }
    except (TypeError, ValueError) as error:
        raise W2VError(f"{path}: damaged: its phrases are not words and numbers") from error
    return fields


def _scorer_name(scoring: Any) -> str:
    """Return the name of a scorer: "default" and "npmi" for gensim's own, "module:function" for others."""
    if isinstance(scoring, type) and issubclass(scoring, PickledObject):  # it stands for a function
        module, _, function = scoring.name.rpartition(".")
        return SCORERS.get(function, function) if module == "gensim.models.phrases" else f"{module}:{function}"
    return "default" if scoring is None else str(scoring)[:60]


def _items(items: Any) -> ItemsView[Any, Any]:
    if not isinstance(items, dict):
        raise TypeError("not a dictionary")
    return items.items()


def _phrase(words: Any, delimiter: str) -> str:
    """Return a phrase. gensim 3 stores a tuple of its words, with the count and the score as value."""
    return delimiter.join(map(_text, words)) if isinstance(words, tuple) else _text(words)


def _text(value: Any) -> str:
    """Return a word. gensim 3 stores words as UTF-8."""
    if not isinstance(value, str | bytes):
        raise TypeError("not a word")
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
