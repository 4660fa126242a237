"""The header of a model: all that its file holds besides words and arrays of numbers.

A native file stores it as named strings, most of them JSON. `from_strings` is the one reader of these, also of the
names of earlier versions, and `to_strings` the one writer. All other code uses the fields of ModelHeader.

Settings are a plain mapping here. Which settings there are, and which values each may have, is known to the losses,
which build on this package: `w2v.losses.registry.settings_from` makes checked Settings of the mapping where a model is
loaded. Files of fastText and gensim have only some of the settings, and reading vectors needs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from w2v.errors import W2VError
from w2v.system.schema import checked, decode, encode
from w2v.text.normalise import TextOptions
from w2v.text.subwords import MAX_BUCKETS, MAX_LENGTH, Subwords

FORMAT = ("format", "version")  # of the file, not of the model: see native.py
OLD_METRICS = "figures"  # the name of the metrics before version 0.2
GENSIM = "gensim."  # begins the name of the attributes of an object of w2v.gensim; its class follows
NO_TEXT_OPTIONS = TextOptions()


@dataclass(frozen=True)
class GensimObject:
    """An object that w2v.gensim or gensim saved: the name of its class, and its attributes except for arrays."""

    kind: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class _Phrases:
    delimiter: str


@dataclass(frozen=True)
class _Metrics:
    """The part of the metrics that w2v itself reads again."""

    phrases: _Phrases | None = None


@dataclass(frozen=True)
class ModelHeader:
    """What a model file holds besides words and arrays.

    Attributes:
        settings: those of the training, or some of them, as they are stored; None without a training.
        metrics: measurements of the training, as in Model.metrics; empty if there are none.
        scores: those of `w2v convert --check`; empty if there are none.
        text: how the text of the training was normalised and split into words.
        subwords: the lengths of n-grams and the number of their buckets, if the model has n-grams.
        gensim: the object that w2v.gensim or gensim saved, if one of them did.
        package_version: the version of w2v that wrote a checkpoint; empty in other files.
        others: strings that other programs have stored, by name; w2v keeps them, but does not use them.
    """

    settings: Mapping[str, Any] | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, Any] = field(default_factory=dict)
    text: TextOptions = NO_TEXT_OPTIONS
    subwords: Subwords | None = None
    gensim: GensimObject | None = None
    package_version: str = ""
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def phrase_delimiter(self) -> str | None:
        """The text between the words of a phrase, if the words of the training text were joined to phrases."""
        phrases = self.metrics.get("phrases")
        return str(phrases["delimiter"]) if phrases else None

    @property
    def parts(self) -> list[str]:
        """The names of the fields that hold anything."""
        names = ("settings", "metrics", "text", "subwords", "scores", "gensim", "others")
        return [name for name in names if (value := getattr(self, name)) and value != NO_TEXT_OPTIONS]

    # -- in files -----------------------------------------------------------------------------------

    @classmethod
    def from_strings(cls, strings: Mapping[str, str], where: object) -> Self:
        """Return the header in the strings of a file. Raises W2VError, beginning with `where`, if it is damaged."""
        rest = {name: text for name, text in strings.items() if name not in FORMAT}
        if OLD_METRICS in rest:
            old = rest.pop(OLD_METRICS)
            rest.setdefault("metrics", old)
        found: dict[str, Any] = {
            name: decode(dict[str, Any], rest.pop(name), _place(where, name))
            for name in ("settings", "metrics", "scores")
            if name in rest
        }
        checked(_Metrics, found.get("metrics", {}), _place(where, "metrics"))
        if "text" in rest:
            found["text"] = decode(TextOptions, rest.pop("text"), _place(where, "text options"))
        if "subwords" in rest:
            found["subwords"] = _checked_subwords(rest.pop("subwords"), _place(where, "subwords"))
        saved = {name: rest.pop(name) for name in list(rest) if name.startswith(GENSIM)}
        if saved:
            found["gensim"] = _gensim_object(saved, _place(where, "settings"))
        return cls(**found, package_version=rest.pop("package_version", ""), others=rest)

    def to_strings(self, where: object) -> dict[str, str]:
        """Return the strings that `from_strings` reads.

        Raises W2VError, beginning with `where`, for values that JSON cannot hold.
        """
        texts = [name for name in self.parts if name not in ("gensim", "others")]
        found = {name: encode(getattr(self, name), _place(where, name)) for name in texts}
        if self.gensim:
            found |= _gensim_strings(self.gensim, _place(where, "settings"))
        if self.package_version:
            found["package_version"] = self.package_version
        return {name: text for name, text in self.others.items() if name not in FORMAT} | found


def _place(where: object, name: str) -> str:
    return f"{where}: its {name}" if where else f"its {name}"


def _checked_subwords(text: str, where: str) -> Subwords:
    found = decode(Subwords, text, where)
    if not 1 <= found.shortest <= found.longest <= MAX_LENGTH or not 1 <= found.buckets <= MAX_BUCKETS:
        numbers = f"{found.shortest} to {found.longest} characters in {found.buckets}"
        raise W2VError(f"{where}: damaged: n-grams of {numbers:.80} buckets")
    return found


# The attributes of a FastText model are stored as those of a Word2Vec model, with a mark.
_FASTTEXT, _WORD2VEC = f"{GENSIM}FastText", f"{GENSIM}Word2Vec"


def _gensim_object(strings: Mapping[str, str], where: str) -> GensimObject:
    name = _WORD2VEC if _WORD2VEC in strings else next(iter(strings))
    kind = _FASTTEXT if _FASTTEXT in strings else name
    return GensimObject(kind.removeprefix(GENSIM), decode(dict[str, Any], strings[name], where))


def _gensim_strings(saved: GensimObject, where: str) -> dict[str, str]:
    attributes = encode(saved.attributes, where)
    if saved.kind == "FastText":
        return {_WORD2VEC: attributes, _FASTTEXT: "1"}
    return {f"{GENSIM}{saved.kind}": attributes}
