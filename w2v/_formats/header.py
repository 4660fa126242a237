"""The header of a model: everything in its file besides words and arrays.

A native file stores the header as named strings, most of them JSON. Only `ModelHeader.from_strings` reads these
strings, and only `ModelHeader.to_strings` writes them. All other code uses the
fields of ModelHeader.

Settings are a plain mapping here, because this package must not import the losses, which define the settings and their
valid values. When a model is loaded, `w2v._losses.registry.settings_from` turns the mapping into checked Settings.
Files of fastText and gensim have only some settings, and reading vectors needs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypedDict

from w2v._errors import W2VError
from w2v._system.schema import Count, convert, decode, encode
from w2v._text.normalise import TextOptions
from w2v._text.subwords import MAX_BUCKETS, MAX_LENGTH, Subwords
from w2v._text.words import KeyType

FILE_KEYS = ("format", "version")  # keys that describe the file, not the model: see native.py
INT_KEYS = "gensim.numbers"  # an array, bool (V,): which words are integer keys in gensim and w2v.gensim
DEFAULT_TEXT_OPTIONS = TextOptions()


@dataclass(frozen=True)
class GensimObject:
    """An object that w2v.gensim or gensim saved: the name of its class, and its attributes except for arrays."""

    kind: str
    attributes: dict[str, Any]


class _PhraseMetrics(TypedDict):
    delimiter: str


class _Metrics(TypedDict, total=False):
    """The part of the metrics that w2v itself uses after loading."""

    phrases: _PhraseMetrics | None


@dataclass(frozen=True)
class ViewHeader:
    """The part of a header that each view of a model has for itself: see `VectorFile.view`.

    Attributes:
        settings: The settings of the view's run.
        metrics: Measurements of the view's run.
    """

    settings: dict[str, Any]
    metrics: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LabelHeader:
    """The part of a header that only a classifier has: see `w2v._training.classifier.Classifier`.

    Attributes:
        options: The fields of LabelOptions.
        several, temperature: See Classifier.
    """

    options: dict[str, Any]
    several: bool = False
    temperature: float = 1.0


# The fields of a header that a file stores as JSON: the type of each, and what error messages call it.
_JSON_FIELDS: dict[str, tuple[Any, str]] = {
    "settings": (dict[str, Any], "settings"),
    "metrics": (dict[str, Any], "metrics"),
    "text": (TextOptions, "text options"),
    "subwords": (Subwords, "subwords"),
    "ngram_offset": (Count, "position of n-grams"),
    "key_type": (KeyType, "type of keys"),
    "views": (dict[str, ViewHeader], "views"),
    "coordinates": (str, "coordinates"),
    "scores": (dict[str, Any], "scores"),
    "labels": (LabelHeader, "labels"),
    "gensim": (GensimObject, "settings"),
}


@dataclass(frozen=True)
class ModelHeader:
    """Everything in a model file besides words and arrays.

    Attributes:
        settings: Training settings, perhaps only some, as stored; None if the vectors were not trained.
        metrics: Measurements of the training, as in Model.metrics; may be empty.
        scores: Results of `w2v convert --check`; may be empty.
        text: How the training text was normalised and split into words.
        subwords: The lengths of n-grams and the number of buckets, if the model has n-grams.
        ngram_offset: The position in a vector of the first value that n-grams contribute to; all values before it
            belong to other views.
        key_type: "int" if the words are numbers, such as ids of items; see w2v._text.words.KeyType.
        views: The views of a model with several, by name; otherwise empty.
        coordinates: A name of the coordinate system of the vectors. Vectors of two files may be compared without an
            alignment if both have the same name. Empty if the system is the model's own.
        labels: What only a classifier has, or None.
        gensim: The object that w2v.gensim or gensim saved, if the file is from one of them.
        package_version: The version of w2v that wrote a checkpoint; empty in other files.
        others: Strings that other programs stored, by name; w2v keeps them, but does not use them.
    """

    settings: Mapping[str, Any] | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, Any] = field(default_factory=dict)
    text: TextOptions = DEFAULT_TEXT_OPTIONS
    subwords: Subwords | None = None
    ngram_offset: int = 0
    key_type: KeyType = "str"
    views: Mapping[str, ViewHeader] = field(default_factory=dict)
    coordinates: str = ""
    labels: LabelHeader | None = None
    gensim: GensimObject | None = None
    package_version: str = ""
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def phrase_delimiter(self) -> str | None:
        """The string between the words of a phrase, or None if training did not join words into phrases."""
        phrases = self.metrics.get("phrases")
        return str(phrases["delimiter"]) if phrases else None

    @property
    def non_empty_fields(self) -> list[str]:
        """The names of the fields that are neither empty nor default, except `package_version`."""
        names = (*_JSON_FIELDS, "others")
        return [name for name in names if (value := getattr(self, name)) and value != getattr(EMPTY_HEADER, name)]

    # -- in files -----------------------------------------------------------------------------------

    @classmethod
    def from_strings(cls, strings: Mapping[str, str], where: object) -> Self:
        """Return the header from the strings of a file.

        Raises:
            W2VError: If the strings are damaged. The message starts with `where`.
        """
        rest = {name: text for name, text in strings.items() if name not in FILE_KEYS}
        fields: dict[str, Any] = {
            name: decode(kind, rest.pop(name), _label(where, label))
            for name, (kind, label) in _JSON_FIELDS.items()
            if name in rest
        }
        convert(_Metrics, fields.get("metrics", {}), _label(where, "metrics"))
        if "subwords" in fields:
            _check_subwords(fields["subwords"], _label(where, "subwords"))
        return cls(**fields, package_version=rest.pop("package_version", ""), others=rest)

    def to_strings(self, where: object) -> dict[str, str]:
        """Return the strings that `from_strings` reads.

        Raises:
            W2VError: If JSON cannot represent a value. The message starts with `where`.
        """
        json_fields = [name for name in self.non_empty_fields if name in _JSON_FIELDS]
        strings = {name: encode(getattr(self, name), _label(where, name)) for name in json_fields}
        if self.package_version:
            strings["package_version"] = self.package_version
        return {name: text for name, text in self.others.items() if name not in FILE_KEYS} | strings


EMPTY_HEADER = ModelHeader()


def _label(where: object, name: str) -> str:
    return f"{where}: its {name}" if where else f"its {name}"


def _check_subwords(subwords: Subwords, where: str) -> None:
    if not 1 <= subwords.shortest <= subwords.longest <= MAX_LENGTH or not 1 <= subwords.buckets <= MAX_BUCKETS:
        numbers = f"{subwords.shortest} to {subwords.longest} characters in {subwords.buckets}"
        raise W2VError(f"{where}: damaged: n-grams of {numbers:.80} buckets")
