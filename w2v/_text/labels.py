"""Labels of texts: their options, their tokens in lines, and texts whose labels come from a table or a list."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, W2VError, pluralise, translate_errors
from w2v._options import check_options, option
from w2v._settings import MODEL, TEXT, TRAINING
from w2v._system.files import Errors
from w2v._text._text import PADDING
from w2v._text.columns import has_columns
from w2v._text.corpus import Corpus, DataFrameLike, FromFiles, python_values
from w2v._text.idstore import ReadingOptions
from w2v._text.lines import read_whole_lines
from w2v._text.normalise import TextOptions
from w2v._text.words import OWN_PREFIX, is_missing

Pooling = Literal["idf", "mean"]
ClassifierKind = Literal["auto", "direct", "embedded"]

DIRECT_LOSSES = ("ova", "softmax")  # the losses of a direct classifier
MAX_EXACT = 1 << 53  # from which floats skip whole numbers
_ESCAPES = {ord(space): 0xE001 + number for number, space in enumerate(" \t\n\v\f\r\0")}
_UNESCAPES = {private: space for space, private in _ESCAPES.items()}


@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    """The options of a classifier, in addition to the settings of its run.

    Raises:
        SettingsError: For impossible values.
    """

    labels: str | None = option(
        None,
        "The column of a table with the label of each row, or with a list of labels; --column is the column of the "
        "text.",
        TEXT,
        default_text="labels are words of the text",
        common=True,
    )
    label_prefix: str = option(
        "__label__", "A word of a line that begins with this is a label of the line.", TEXT, common=True
    )
    word_ngrams: int = option(
        2, "Use n-grams of up to this many words.", MODEL, minimum=1, maximum=10, fixed=True, common=True
    )
    min_count_label: int = option(0, "Leave out labels that occur less often than this.", TEXT, minimum=0)
    pooling: Pooling = option(
        "idf",
        "Weight words and n-grams by (1 + ln tf) idf, and scale each text to length 1 (idf), or take their mean, as "
        "fastText does (mean).",
        MODEL,
        fixed=True,
    )
    balanced: bool = option(
        False,
        "Give all labels the same weight together, however many texts have them, by weighting each text.",
        TRAINING,
        flags=("--balanced/--as-counted",),
    )
    classifier: ClassifierKind = option(
        "auto",
        "Learn one score for each word and label (direct), or vectors of --vector-size values and an output layer "
        "(embedded). auto: direct with idf pooling, up to 1,000 labels and 1 GB of scores, unless you choose the "
        "vector size, or another loss than ova and softmax.",
        MODEL,
    )

    several: bool = option(
        False,
        "Give each label a probability of its own, so that a text may have several labels or none. This is the default "
        "if a text of the training has several.",
        MODEL,
        flags=("--several/--as-found",),
    )
    calibrated: bool = option(
        True,
        "Measure how much to correct the probabilities, which takes a second training on at most 20,000 texts "
        "(--calibrated), or leave them as they are.",
        TRAINING,
        flags=("--calibrated/--as-trained",),
    )
    auto_loss: bool = True  # whether the loss may be chosen, because none is given
    fasttext: bool = False  # whether the model is of fastText's format, and predicts as fastText does
    # Whether rows were left out: n-grams without a row do not count, and further texts add no rows.
    pruned: bool = False

    def __post_init__(self) -> None:
        check_options(self)
        if re.search(r"\s", self.label_prefix):
            raise SettingsError(f"label_prefix {self.label_prefix[:60]!r}: it must not have white space")


def label_token(label: str, prefix: str) -> str:
    """Return a label as a word of a text. White space in it becomes private characters."""
    return prefix + label.translate(_ESCAPES)


def label_of(token: str, prefix: str) -> str:
    """Return the label that `label_token` wrote as this word."""
    return token.removeprefix(prefix).translate(_UNESCAPES)


class LabelledTexts(FromFiles):
    """Texts and their labels from a table or from lists, read once, as lines that begin with their labels.

    The labels may also be the tags of documents.

    Attributes:
        corpus: The lines, with labels as `label_token` writes them with OWN_PREFIX.
        sample_weight: float32 (N,), the weight of each text, or None.
        source: The table in files, or None.
    """

    def __init__(
        self,
        rows: Iterable[tuple[str, Any, Any]],
        sample_weight: NDArray[Any] | None = None,
        source: Corpus | None = None,
    ) -> None:
        """Take rows: the place for messages, a text or list of words, and its label or labels."""
        self.sample_weight, self.source = sample_weight, source
        self.corpus = Corpus(self._lines(rows))

    @classmethod
    def of_table(cls, table: Corpus, column: str | None, labels: str, encoding: str, errors: Errors) -> LabelledTexts:
        """Take the columns of a table. Raise SettingsError if no column of texts is named."""
        if column is None or not has_columns(column):
            raise SettingsError(
                f"the column of labels or tags, {labels}, needs --column (column=), the column of the text"
            )
        rows = ((where, text, own) for where, (text, own) in table.cells([column, labels], encoding, errors))
        return cls(rows, source=table)

    @classmethod
    def of_lists(
        cls,
        texts: Any,
        labels: Iterable[Any] | None,
        sample_weight: Any = None,
        column: str | None = None,
        noun: str = "label",
    ) -> LabelledTexts:
        """Take N texts, or a table in memory and the column of its texts, and the label or the labels of each text.

        Without labels, the label of a text is its number, from 0. Messages call a label `noun`.

        Raises:
            W2VError: There are no texts.
            SettingsError: The weights are impossible.
        """
        if isinstance(texts, DataFrameLike) and column:
            texts = (text for _, (text,) in Corpus(texts).cells([column]))
        elif isinstance(texts, str | Mapping | DataFrameLike) or not isinstance(texts, Iterable):
            raise W2VError(f"a list of texts is needed with a list of labels or tags, not {type(texts).__name__}")
        message = "sample_weight must have one number for each text, 0 or more"
        with translate_errors(message, ValueError, TypeError, to=SettingsError):
            weights = None if sample_weight is None else np.asarray(sample_weight, np.float32)
        if weights is not None and (
            weights.ndim != 1 or not np.all(np.isfinite(weights)) or weights.min(initial=0) < 0
        ):
            raise SettingsError(message)
        if labels is None:
            rows = (
                (f"the list of texts, row {number + 1}", text, number)
                for number, text in enumerate(python_values(texts))
            )
            return cls(rows, weights)
        return cls(_rows(texts, labels, noun), weights)

    @classmethod
    def of_documents(cls, texts: Any, tags: str | Iterable[Any] | None, reading: ReadingOptions) -> LabelledTexts:
        """Take texts, as `train` does, and their tags, as labels: the column of a table, or a list.

        Without tags, the tag of a text is the number of its line or row, from 0.
        """
        corpus = texts if isinstance(texts, Corpus) else Corpus(texts)
        corpus.header = corpus.header if reading.header is None else reading.header
        if isinstance(tags, str):
            return cls.of_table(corpus, reading.column, tags, reading.encoding, reading.errors)
        if not corpus.files:
            return cls.of_lists(texts, tags, column=reading.column, noun="tag")
        if tags is not None:
            raise SettingsError("tags: for files, name the column of a table that has them")
        blocks = read_whole_lines(corpus, TextOptions(), reading.column, reading.encoding, reading.errors)
        lines = (line for block in blocks for line in block[: -len(PADDING)].split(b"\n")[:-1])
        rows = ((f"{corpus}, line {number + 1}", line.decode(), number) for number, line in enumerate(lines))
        return cls(rows, source=corpus)

    def checksum(self) -> str:
        """Return the SHA-256 of the weights; "" without weights. The ids of the lines have their own checksum."""
        return "" if self.sample_weight is None else hashlib.sha256(self.sample_weight.data).hexdigest()

    def __str__(self) -> str:
        return str(self.source) if self.source else "the list of texts"

    def _lines(self, rows: Iterable[tuple[str, Any, Any]]) -> Iterator[str]:
        for where, text, own in rows:
            tokens = [label_token(label, OWN_PREFIX) for label in labels_of(own, where)]
            yield " ".join([*tokens, words_of(text, where)])


def with_labels(texts: Any, column: str | None = None) -> Any:
    """Return a pair of texts and their labels as LabelledTexts, see LabelledTexts.of_lists, and others as they are."""
    if isinstance(texts, tuple) and len(texts) == 2:
        return LabelledTexts.of_lists(texts[0], texts[1], column=column)
    return texts


def labels_of(own: Any, where: str) -> list[str]:
    """Return the labels of a text: of a label, a list of labels, or a missing value. Whole numbers become text.

    Floats that are whole numbers are taken as such, because pandas stores whole numbers with missing values as floats.
    Empty labels are left out.

    Raises:
        W2VError: A label is neither text nor a whole number, or has a private character of `label_token`. The message
            starts with `where`.
    """
    labels = []
    values = own if isinstance(own, list | tuple | set | np.ndarray) else [] if is_missing(own) else [own]
    for value in python_values(values):
        if isinstance(value, float | np.floating) and value.is_integer() and -MAX_EXACT < value < MAX_EXACT:
            value = int(value)
        is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not is_number and not isinstance(value, str):
            raise W2VError(
                f"{where}: the label or tag {value!r:.60} is neither text nor a whole number: convert it to text"
            )
        labels.append(str(value))
        if any(chr(private) in labels[-1] for private in _UNESCAPES):
            raise W2VError(f"{where}: the label or tag {value!r:.60} has a private character, U+E001 to U+E007")
    return list(dict.fromkeys(filter(None, labels)))


def words_of(text: Any, where: str = "a text") -> str:
    """Return a text in one line: of a string, a list of words, or a missing value.

    Raises:
        W2VError: It is something else. The message starts with `where`.
    """
    if isinstance(text, list | tuple) and all(isinstance(word, str) for word in text):
        text = " ".join(text)
    if not isinstance(text, str):
        if not is_missing(text):
            raise W2VError(f"{where}: the text {text!r:.60} is neither text nor a list of words")
        return ""
    return " ".join(text.replace(OWN_PREFIX, " ").splitlines())


def _rows(texts: Iterable[Any], labels: Iterable[Any], noun: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the rows of LabelledTexts. Raise W2VError if there are more texts than labels, or more labels."""
    nothing = object()
    for number, (text, label) in enumerate(zip_longest(python_values(texts), python_values(labels), fillvalue=nothing)):
        if text is nothing or label is nothing:
            more, fewer = (f"{noun}s", "text") if text is nothing else ("texts", noun)
            raise W2VError(f"there are more {more} than {pluralise(number, fewer)}: give one {noun}, or list, for each")
        yield f"the list of texts, row {number + 1}", text, label
