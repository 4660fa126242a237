"""Normalise and tokenize text: Unicode form, digits, lower case, and Unicode word boundaries."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from w2v._errors import import_optional
from w2v._options import check_options, option
from w2v._settings import TEXT
from w2v._system.files import Errors
from w2v._text import _normalise
from w2v._text._text import PADDING, Malformed, last_space

Tokenize = Literal["spaces", "words", "words+punctuation"]
Digits = Literal["keep", "spell", "zero"]
Normalize = Literal["keep", "nfc", "nfkc"]


FORMS: dict[str, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}
DIGIT_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
CASED = range(0x20000)  # all letters with case are in the first two planes
ASSIGNED = (range(0x40000), range(0xE0000, 0xE1000))  # all other characters are private or unassigned


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """The options for normalising a text and splitting it into words.

    Raises:
        SettingsError: For impossible values.
    """

    lower: bool = option(
        False,
        "Convert letters to lower case, like Python's str.lower.",
        TEXT,
        flags=("--lower/--keep-case",),
        common=True,
    )
    tokenize: Tokenize = option(
        "spaces",
        "Split the text into words at spaces, or by the rules of Unicode (UAX #29): without punctuation (words), or "
        "with punctuation and symbols as separate words (words+punctuation).",
        TEXT,
        common=True,
    )
    digits: Digits = option(
        "keep",
        "Keep digits, spell each digit as a word (spell: one nine eight four), or replace each by 0 (zero: 0000).",
        TEXT,
    )
    normalize: Normalize = option(
        "keep",
        "Use one spelling for each character, Unicode's composed form (nfc): é is one character, not e and an accent. "
        "nfkc also replaces ligatures, full-width letters and the like.",
        TEXT,
    )
    strip_markup: bool = option(
        False, "Remove HTML and XML tags and decode entities.", TEXT, flags=("--strip-markup/--keep-markup",)
    )

    def __post_init__(self) -> None:
        check_options(self)

    @classmethod
    def of(cls, options: Any) -> Self:
        """Return the text options of an object that has them as attributes."""
        return cls(**{each.name: getattr(options, each.name) for each in fields(cls)})


def label_pattern(prefix: str) -> re.Pattern[bytes]:
    """Return the pattern of the labels in a line."""
    return re.compile(rb"(?<!\S)" + re.escape(prefix.encode()) + rb"\S+")


class Normaliser:
    """A function that applies TextOptions to text, except `strip_markup`.

    Args:
        options: The options.
        errors: How to treat bytes that are not UTF-8, as in bytes.decode.
        labels: The pattern of words that stay as they are, the labels of a text; by default, there are none.

    Raises:
        W2VError: If the options need the package `regex` and it is not installed.
    """

    def __init__(
        self, options: TextOptions, errors: Errors = "strict", labels: re.Pattern[bytes] | None = None
    ) -> None:
        self.errors, self._labels = errors, labels
        self._form = FORMS.get(options.normalize)
        self._digits = options.digits
        self._lower = lower_case_table() if options.lower else None
        self._classes = break_class_table() if options.tokenize != "spaces" else None
        self._punctuation = options.tokenize == "words+punctuation"
        self._is_active = TextOptions(strip_markup=options.strip_markup) != TextOptions.of(options)

    def __call__(self, text: bytes) -> bytes:
        """Apply the options to a text of whole words that ends with PADDING. Any thread may call this.

        With options that change nothing, the text is returned without a check.

        Raises:
            Malformed: If `errors` is "strict", some option changes text, and the text has bytes that are not UTF-8.
        """
        if not self._is_active:
            return text
        if self._labels:
            return self._apply_beside_labels(self.to_valid_utf8(text), self._labels)
        try:
            return self._apply(text)
        except ValueError:
            return self._apply(self.to_valid_utf8(text))

    def to_valid_utf8(self, text: bytes) -> bytes:
        """Return the text as valid UTF-8.

        Raises:
            Malformed: If the text has bytes that are not UTF-8 and `errors` is "strict".
        """
        if text.isascii():
            return text
        try:
            text.decode()
        except UnicodeDecodeError as error:
            if self.errors != "strict":
                return text.decode("utf-8", self.errors).encode()
            word = text[last_space(text[: error.start]) + 1 :].split(None, 1)[0]
            raise Malformed(error.start, word) from None
        return text

    def _apply(self, text: bytes) -> bytes:
        text = self._normalise_form(text)
        if self._digits != "keep":
            text = _DIGIT.sub(_spell_digit if self._digits == "spell" else "0", text.decode()).encode()
        if self._lower is not None:
            # Normalise once more: ǰ has a composed form, but its capital has none.
            text = self._normalise_form(_normalise.lower(text, self._lower))
        if self._classes is not None:
            text = _normalise.split_words(text, self._classes, self._punctuation)
        return text

    def _apply_beside_labels(self, text: bytes, labels: re.Pattern[bytes]) -> bytes:
        """Apply the options to the words of each line, after its labels."""
        lines = text[: -len(PADDING)].split(b"\n")
        words = self._apply(b"\n".join(labels.sub(b" ", line) for line in lines) + PADDING)[: -len(PADDING)]
        pairs = zip(lines, words.split(b"\n"), strict=True)
        return b"\n".join(b" ".join([*labels.findall(line), rest]) for line, rest in pairs) + PADDING

    def _normalise_form(self, text: bytes) -> bytes:
        if self._form is None or text.isascii():
            return text
        return unicodedata.normalize(self._form, text.decode()).encode()

    def words(self, text: str) -> list[str]:
        """Return the words of a text."""
        return [word.decode() for word in self(text.encode("utf-8", "replace") + PADDING).split()]


_DIGIT = re.compile(r"\d")  # digits of any script


def _spell_digit(digit: re.Match[str]) -> str:
    return f" {DIGIT_NAMES[int(digit[0])]} "


@cache
def lower_case_table() -> NDArray[np.uint32]:
    """Return the lower case of each character, for _normalise.lower.

    It is NEEDS_STR_LOWER if the lower case consists of several characters or depends on the context.
    """
    lower = (chr(point).lower() for point in CASED)
    table = np.array([ord(each) if len(each) == 1 else _normalise.NEEDS_STR_LOWER for each in lower], np.uint32)
    table[ord("Σ")] = _normalise.NEEDS_STR_LOWER  # ς at the end of a word, σ elsewhere
    return table


@cache
def break_class_table() -> NDArray[np.uint8]:
    """Return the class of each character for _normalise.split_words."""
    regex = import_optional("--tokenize words needs one more package", "tokenize", "regex")
    flags = {rf"\p{{Word_Break={name}}}+": code for name, code in _normalise.BREAK_CLASSES.items()}
    flags[r"\p{Extended_Pictographic}+"] = _normalise.PICTOGRAPHIC_FLAG
    flags[r"[\p{Letter}\p{Number}]+"] = _normalise.WORD_FLAG
    flags[r"[\s\p{Control}\p{Format}]+"] = _normalise.BLANK_FLAG
    classes = np.zeros(ASSIGNED[-1].stop, np.uint8)
    for points in ASSIGNED:
        text = "".join(map(chr, points))
        for pattern, flag in flags.items():
            for found in regex.finditer(pattern, text):
                classes[points.start + found.start() : points.start + found.end()] |= flag
    return classes
