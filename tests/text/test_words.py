"""Words behaves like a list of its words."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from w2v._errors import W2VError
from w2v._text import words as module
from w2v._text.words import Words

LIST = ["the", "Köln", "", "👩‍👩‍👧", "the", "a"]


@pytest.mark.parametrize("word", [*dict.fromkeys(LIST), "missing", 1, None])
@pytest.mark.parametrize("bounds", [(), (1,), (0, 4), (1, 4), (-3, -1), (6, 9)])
def test_search_works_as_in_a_list(word: object, bounds: tuple[int, ...]) -> None:
    words = Words.of(LIST)
    assert (word in words) == (word in LIST)
    try:
        expected = LIST.index(word, *bounds)  # type: ignore[arg-type]
    except ValueError:
        with pytest.raises(ValueError, match=r"is not|^$"):
            words.index(word, *bounds)
    else:
        assert words.index(word, *bounds) == expected


@given(st.lists(st.binary(max_size=2) | st.sampled_from(["é".encode(), b"\xc3", b"\xa9", b"eightlet", b"long" * 5])))
def test_repeated_and_malformed_words_are_found(listed: list[bytes]) -> None:
    words = Words.of(listed)
    twice = ((listed.index(word), row) for row, word in enumerate(listed) if word in listed[:row])
    assert words.find_duplicate() == next(twice, None)
    malformed = [word for word in listed if word.decode(errors="ignore").encode() != word]
    assert words.is_utf8() == (not malformed)
    if malformed:
        assert words.first_not_utf8() == malformed[0]
    assert words.to_utf8("replace") == [word.decode(errors="replace") for word in listed]


def test_concat_appends_the_other_words() -> None:
    for one, other in itertools.product([[], LIST], repeat=2):
        assert Words.of(one).concat(Words.of(other)) == one + other


@given(st.lists(st.sampled_from(LIST)), st.data())
def test_take_selects_rows(listed: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.sampled_from(range(len(listed)))) if listed else st.just([]))
    assert Words.of(listed).take(np.array(rows, np.int32)) == [listed[row] for row in rows]


@pytest.mark.parametrize("row", [-1, len(LIST)])
def test_take_refuses_missing_rows(row: int) -> None:
    with pytest.raises(IndexError, match=f"no row {row}"):
        Words.of(LIST).take(np.array([0, row]))


@pytest.mark.parametrize(
    "offsets", [[0, 9, 1, 4], [0, 1, 5], [0, 1, 3], [0, -1, 2, 4], [1, 4], [], [[0, 4]], [0.0, 4.0]]
)
def test_damaged_offsets_are_refused(offsets: list[Any]) -> None:
    with pytest.raises(W2VError, match="the word offsets are damaged: they must rise from 0 to the number of bytes"):
        Words(np.zeros(4, np.uint8), np.array(offsets))


def test_a_character_that_is_split_between_two_words_is_not_utf_8() -> None:
    words = Words(np.frombuffer("é".encode(), np.uint8), np.array([0, 1, 2]))
    assert not words.is_utf8()
    assert words.first_not_utf8() == b"\xc3"


@pytest.mark.parametrize(
    "part", [slice(1, 4), slice(4, 1), slice(None, None, 2), slice(-2, None), slice(9, 12), slice(4, 1, -1)]
)
def test_slices_match_slices_of_a_list(part: slice) -> None:
    assert Words.of(LIST)[part] == LIST[part]


@pytest.mark.parametrize("block", [1, 2, 3, 4, 100])
def test_blocks_do_not_change_what_is_found(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(module, "WORDS_AT_ONCE", block)
    monkeypatch.setattr(module, "BYTES_AT_ONCE", block)
    listed = [b"a", b"bb", b"", b"c", b"dd", b"e"]
    assert Words.of(listed).is_utf8()
    assert Words.of(listed).find_duplicate() is None
    assert not Words.of(listed).contain_any(b"xyz")
    for first, second in itertools.combinations(range(6), 2):
        twice = [*listed[:second], listed[first], *listed[second + 1 :]]
        assert Words.of(twice).find_duplicate() == (first, second)
    for row in range(6):
        words = Words.of([*listed[:row], b"ok\xc3", *listed[row + 1 :]])
        assert not words.is_utf8()
        assert words.first_not_utf8() == b"ok\xc3"
        assert words.contain_any(b"xk")
        assert words[row - 1] == listed[row - 1].decode()  # one damaged word does not affect the others
        with pytest.raises(W2VError, match=r"the word b'ok\\xc3' is not valid UTF-8"):
            words[row]
        with pytest.raises(W2VError, match=r"^place: the word 'xxx.*'… has 524,289 bytes: at most 524,288 fit$"):
            Words.of([*listed[:row], b"x" * 524_289, *listed[row + 1 :]]).check_lengths("place")
    Words.of([b"x" * 524_288] * 5).check_lengths("")


def test_only_lists_of_str_or_bytes_are_words() -> None:
    for make in (Words.of, module.as_list):
        with pytest.raises(W2VError, match=r"a list of words is needed, not the string 'ab': write 'ab'\.split\(\)"):
            make("ab")
    with pytest.raises(W2VError, match="a list of words is needed, not an object of type int"):
        module.as_list(5)  # type: ignore[arg-type]
    with pytest.raises(W2VError, match=r"^the word 5 is of type int, not str$"):
        Words.of(["a", 5])  # type: ignore[list-item]
    with pytest.raises(W2VError, match=r"^the word '\\ud800' cannot be written as UTF-8$"):
        Words.of(["a", "\ud800"])
