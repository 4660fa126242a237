"""Splitting text into tokens and converting them to ids, compared with a few lines of Python."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.helpers import LATIN_1, WORDS, reference_ids, text_bytes
from w2v._system.threads import map_in_order
from w2v._text._text import FIRST_TYPE, PADDING, PRUNED_TYPE, SENTENCE_END_ID, Lookup, Malformed, Types, last_space

WHITE_SPACE = b" \t\n\v\f\r"


def strings(types: Types) -> list[bytes]:
    """Return the bytes of each type."""
    blob = b"".join(piece.tobytes() for piece in types.strings())
    bounds = np.cumsum(types.lengths()).tolist()
    assert bounds[PRUNED_TYPE] == 0
    assert bounds[-1] == len(blob)
    return [blob[start:end] for start, end in itertools.pairwise(bounds[PRUNED_TYPE:])]


def read(blocks: list[bytes], errors: Any = "strict", ahead: int = 1) -> tuple[list[int], list[bytes]]:
    """Scan groups of `ahead` blocks, each in reverse order, and merge each group in order. Return the ids and types."""
    types, ids = Types(errors), []
    for start in range(0, len(blocks), ahead):
        scans = [types.scan(block + PADDING) for block in reversed(blocks[start : start + ahead])]
        ids += [number for scan in reversed(scans) for number in types.merge(scan).tolist()]
    assert types.counts().tolist() == np.bincount(ids, minlength=len(types)).tolist()
    return ids, strings(types)


def blocks_of(text: bytes, numbers: list[int]) -> list[bytes]:
    """Divide a text into blocks after some of its white-space characters; `numbers` choose them."""
    ends = [i + 1 for i, byte in enumerate(text) if byte in WHITE_SPACE]
    bounds = sorted({0, len(text), *(ends[number % len(ends)] for number in numbers)})
    return [text[start:end] for start, end in itertools.pairwise(bounds)]


DIVISIONS = st.lists(st.integers(0, 500), max_size=12)


READINGS = st.tuples(st.just("strict"), text_bytes(WORDS)) | st.tuples(
    st.sampled_from(["replace", "ignore"]), text_bytes(LATIN_1 | WORDS)
)


@example(("ignore", b"\xff \xfe\n\xff a\xe9 \xff\n"), [], 1)  # the first sentence has no word left
@settings(max_examples=100)
@given(READINGS, DIVISIONS, st.integers(1, 5))
def test_blocks_scanned_in_any_order_match_the_reference(
    reading: tuple[str, bytes], divisions: list[int], ahead: int
) -> None:
    """Malformed words that become equal are one type."""
    errors, text = reading
    assert read(blocks_of(text, divisions), errors, ahead) == reference_ids(text, errors)


@pytest.mark.parametrize("word", [b"caf\xe9", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"ab\xe5\xa4"])
def test_strict_reports_the_first_malformed_byte(word: bytes) -> None:
    types = Types("strict")
    types.merge(types.scan("Größe x\n".encode() + PADDING))
    with pytest.raises(Malformed) as caught:
        types.merge(types.scan(b"Gr\xc3\xb6\xc3\x9fe new " + word + b" \xff\n" + PADDING))
    with pytest.raises(UnicodeDecodeError) as expected:
        word.decode()
    assert caught.value.args == (len("Größe new ".encode()) + expected.value.start, word)


@pytest.mark.slow
def test_words_keep_their_ids_while_another_thread_adds_words() -> None:
    """A thread once found another word in a slot that was empty when it looked first, once in a million words."""
    random = np.random.default_rng(1)
    for _ in range(20):
        numbers = random.permutation(400_000)[:200_000]
        blocks = [" ".join(map(str, numbers[start : start + 20_000])) for start in range(0, 200_000, 5_000)]
        types = Types()
        scans = map_in_order(types.scan, [f"{block}\n".encode() + PADDING for block in blocks], 2)
        ids = np.concatenate([types.merge(scan) for scan in scans])
        known = strings(types)
        found = b" ".join(known[word - FIRST_TYPE] for word in ids.tolist() if word >= FIRST_TYPE)
        assert found == " ".join(blocks).encode()


@pytest.mark.slow
def test_tables_grow_to_a_million_types() -> None:
    words = [b"%d" % (i * 7919) for i in range(1_000_000)]
    text = b" ".join(words + words[::-1]) + b"\n"
    types = Types()
    half = text.index(b" ", len(text) // 3)
    scans = [types.scan(part + PADDING) for part in (text[:half], text[half:])]
    ids = np.concatenate([types.merge(scan) for scan in scans])
    numbers = np.arange(FIRST_TYPE, len(words) + FIRST_TYPE)
    assert np.array_equal(ids, [*numbers, *numbers[::-1], SENTENCE_END_ID])
    assert strings(types) == words
    assert (types.counts()[FIRST_TYPE:] == 2).all()


@given(st.binary(max_size=200))
def test_last_space_matches_rfind(text: bytes) -> None:
    assert last_space(text) == max(text.rfind(byte) for byte in WHITE_SPACE)


@given(st.sets(WORDS), st.lists(WORDS))
def test_lookup_finds_the_rows_of_known_words(words: set[bytes], wanted: list[bytes]) -> None:
    def packed(items: list[bytes]) -> tuple[Any, Any]:
        offsets = np.cumsum([0, *map(len, items)])
        return np.frombuffer(b"".join(items) + PADDING, np.uint8), offsets

    words = list(words)
    found = Lookup(*packed(words)).rows(*packed([b"", *wanted]))
    assert found.dtype == np.int32
    assert found.tolist() == [-1, *(words.index(word) if word in words else -1 for word in wanted)]
