"""Digits, lower case and Unicode words, compared with plain Python and the package uniseg."""

import re
import sys
import unicodedata
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uniseg import wordbreak

from tests.helpers import WORDS, text_bytes
from w2v._errors import SettingsError, W2VError, install_command
from w2v._text import _normalise, normalise
from w2v._text._text import PADDING, Malformed
from w2v._text.normalise import DIGIT_NAMES, Normaliser, TextOptions

CHARACTERS = st.characters(codec="utf-8") | st.sampled_from("ΣσςİIıißẞKÅǅΑα\u0345\u0301.'·:’Ⱥ\u200d AZ@[`{09\n\t")
# Characters of each class of Word_Break. Versions of Unicode differ only in rare characters.
BREAKS = st.text(
    "aB\u2139\u05d0\u30a2\u0663\u0301\u00ad\u200d🇩🇪👩'\".:,;_1 -/日あก\u3000\u00a0\u2019\u2028\U0002000b\n", max_size=12
)


def apply(text: str, **options: object) -> str:
    data = Normaliser(TextOptions(**options))(text.encode() + PADDING)  # type: ignore[arg-type]
    assert data.endswith(PADDING)
    return data.removesuffix(PADDING).decode()


@given(st.text(CHARACTERS) | st.text("ΣΑ.α \u0301", max_size=8))
def test_lower_case_matches_python(text: str) -> None:
    words = re.split("([ \t\n\v\f\r])", text)
    assert apply(text, lower=True) == "".join(word.lower() for word in words)


def test_lower_case_of_every_character_matches_python() -> None:
    characters = [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]
    assert apply(" ".join(characters), lower=True) == " ".join(map(str.lower, characters))
    assert not any(chr(point).lower() != chr(point) for point in range(normalise.CASED.stop, sys.maxunicode + 1))


@given(text=text_bytes(WORDS | st.binary(max_size=3)))
def test_malformed_utf_8_is_replaced_ignored_or_refused(text: bytes) -> None:
    for errors in ("replace", "ignore"):
        found = Normaliser(TextOptions(lower=True), errors)(text + PADDING)  # type: ignore[arg-type]
        words = [word.decode("utf-8", errors).lower().encode() for word in text.split()]
        assert found.split() == [word for word in words if word]
    for options in (TextOptions(lower=True), TextOptions(tokenize="words"), TextOptions(digits="zero")):
        normalise_strictly = Normaliser(options)
        if (first := first_malformed(text)) is None:
            normalise_strictly(text + PADDING)
            continue
        with pytest.raises(Malformed) as raised:
            normalise_strictly(text + PADDING)
        assert raised.value.args[0] == first
        assert raised.value.args[1] in text.split()


def first_malformed(text: bytes) -> int | None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def segments(text: str) -> list[str]:
    """Return the visible UAX #29 segments of a text that is first split at ASCII white space."""
    pieces = re.split("[ \t\n\v\f\r]", text)
    found = chain.from_iterable(map(wordbreak.words, filter(None, pieces)))
    return [segment for segment in found if not all(map(is_blank, segment))]


def is_blank(character: str) -> bool:
    classes = normalise.break_class_table()
    return ord(character) < len(classes) and bool(classes[ord(character)] & _normalise.BLANK_FLAG)


@given(BREAKS)
def test_unicode_words_match_uniseg(text: str) -> None:
    expected = segments(text)
    assert Normaliser(TextOptions(tokenize="words+punctuation")).words(text) == expected
    words = [segment for segment in expected if any(map(str.isalnum, segment))]
    assert Normaliser(TextOptions(tokenize="words")).words(text) == words
    assert apply(text, tokenize="words").count("\n") == text.count("\n")


@given(st.text(CHARACTERS))
def test_tokenizing_keeps_all_visible_characters(text: str) -> None:
    kept = apply(text, tokenize="words+punctuation")
    assert [each for each in kept if not is_blank(each)] == [each for each in text if not is_blank(each)]


def test_a_sentence_is_split_into_words() -> None:
    text = "“Can't,” said the U.S. 3.14 (e-mail: a_b@c.de) don’t «Ελλάδα» 1,000 €5 👩‍👧 ½"
    words = ["Can't", "said", "the", "U.S", "3.14", "e", "mail", "a_b", "c.de", "don’t", "Ελλάδα", "1,000", "5", "½"]
    assert Normaliser(TextOptions(tokenize="words")).words(text) == words
    shown = Normaliser(TextOptions(tokenize="words+punctuation")).words(text)
    assert shown[:8] == ["“", "Can't", ",", "”", "said", "the", "U.S", "."]
    assert "👩‍👧" in shown


def test_unicode_words_without_regex_name_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    normalise.break_class_table.cache_clear()
    with pytest.raises(W2VError, match=re.escape(install_command("tokenize"))):
        Normaliser(TextOptions(tokenize="words"))


@given(st.text(CHARACTERS))
def test_digits_are_spelled_or_replaced_by_zero(text: str) -> None:
    assert apply(text, digits="zero") == re.sub(r"\d", "0", text)
    spelled = apply(text, digits="spell")
    assert spelled == "".join(f" {DIGIT_NAMES[int(each)]} " if each.isdecimal() else each for each in text)


@given(st.text(CHARACTERS | st.sampled_from("éÉ한ㅎㅏfﬁｅJ\u030c\u0301\u1112\u1161\u11ab"), max_size=20))
def test_unicode_forms_match_unicodedata(text: str) -> None:
    for form in ("nfc", "nfkc"):
        plain = unicodedata.normalize(form.upper(), text)
        assert apply(text, normalize=form) == plain
        assert apply(unicodedata.normalize("NFD", text), normalize=form) == plain
        lower = unicodedata.normalize(form.upper(), apply(plain, lower=True))
        assert apply(text, normalize=form, lower=True) == lower


def test_a_letter_without_composed_capital_is_composed_in_lower_case() -> None:
    assert apply("J\u030cuul \u01f0uul", lower=True, normalize="nfc") == "\u01f0uul \u01f0uul"


def test_options_are_applied_together() -> None:
    text = "In 1984, İzmir's ΟΔΟΣ: ٣!"
    assert Normaliser(TextOptions(lower=True, tokenize="words", digits="spell")).words(text) == (
        ["in", "one", "nine", "eight", "four", "i̇zmir's", "οδος", "three"]
    )
    assert Normaliser(TextOptions(tokenize="words", digits="zero")).words("In 1984, 3!") == ["In", "0000", "0"]


def test_text_is_not_copied_if_no_option_changes_it() -> None:
    data = b"\xff A1 <b>" + PADDING
    assert Normaliser(TextOptions(strip_markup=True))(data) is data


@pytest.mark.parametrize(
    "wrong", [{"lower": 1}, {"tokenize": "chars"}, {"digits": None}, {"normalize": "nfd"}, {"strip_markup": "yes"}]
)
def test_impossible_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        TextOptions(**wrong)  # type: ignore[arg-type]
