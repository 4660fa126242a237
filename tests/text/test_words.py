"""A sequence of words behaves as a list of them."""

import pytest

from w2v.text.words import Words

LIST = ["the", "Köln", "", "👩‍👩‍👧", "the", "a"]


@pytest.mark.parametrize("word", [*dict.fromkeys(LIST), "missing", 1, None])
@pytest.mark.parametrize("bounds", [(), (1,), (0, 4), (1, 4), (-3, -1), (6, 9)])
def test_words_are_found_as_in_a_list(word: object, bounds: tuple[int, ...]) -> None:
    words = Words.of(LIST)
    assert (word in words) == (word in LIST)
    try:
        expected = LIST.index(word, *bounds)  # type: ignore[arg-type]
    except ValueError:
        with pytest.raises(ValueError, match=r"is not|^$"):
            words.index(word, *bounds)
    else:
        assert words.index(word, *bounds) == expected
