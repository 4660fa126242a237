"""Bytes → provisional ids, held to a few lines of Python."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.helpers import LATIN_1, WORDS, reference, texts
from w2v.text._text import FIRST_TYPE, PADDING, PRUNED_TYPE, SENTENCE_END_ID, Lookup, Malformed, Types, last_space

WHITE_SPACE = b" \t\n\v\f\r"


def strings(types):
    """The bytes of all types."""
    blob = b"".join(piece.tobytes() for piece in types.strings())
    bounds = np.cumsum(types.lengths()).tolist()
    assert bounds[PRUNED_TYPE] == 0
    assert bounds[-1] == len(blob)
    return [blob[start:end] for start, end in itertools.pairwise(bounds[PRUNED_TYPE:])]


def read(blocks, errors="strict", ahead=1):
    """(ids, types) with so many blocks scanned, last one first, before any of them is merged."""
    types, ids = Types(errors), []
    for start in range(0, len(blocks), ahead):
        scans = [types.scan(block + PADDING) for block in reversed(blocks[start : start + ahead])]
        ids += [number for scan in reversed(scans) for number in types.merge(scan).tolist()]
    assert types.counts().tolist() == np.bincount(ids, minlength=len(types)).tolist()
    return ids, strings(types)


def cut(text, places):
    """The text in blocks that end at these of its white spaces, counted around."""
    ends = [i + 1 for i, byte in enumerate(text) if byte in WHITE_SPACE]
    bounds = sorted({0, len(text), *(ends[place % len(ends)] for place in places)})
    return [text[start:end] for start, end in itertools.pairwise(bounds)]


PLACES = st.lists(st.integers(0, 500), max_size=12)


READINGS = st.tuples(st.just("strict"), texts(WORDS)) | st.tuples(
    st.sampled_from(["replace", "ignore"]), texts(LATIN_1 | WORDS)
)


@example(("ignore", b"\xff \xfe\n\xff a\xe9 \xff\n"), [], 1)  # which leaves no word of the first sentence
@settings(max_examples=200)
@given(READINGS, PLACES, st.integers(1, 5))
def test_any_blocks_in_any_order_give_the_reference(reading, places, ahead):
    """Malformed words that become equal are one."""
    errors, text = reading
    assert read(cut(text, places), errors, ahead) == reference(text, errors)


@pytest.mark.parametrize("word", [b"caf\xe9", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"ab\xe5\xa4"])
def test_strict_finds_the_first_malformed_byte(word):
    types = Types("strict")
    types.merge(types.scan("Größe x\n".encode() + PADDING))
    with pytest.raises(Malformed) as caught:
        types.merge(types.scan(b"Gr\xc3\xb6\xc3\x9fe new " + word + b" \xff\n" + PADDING))
    with pytest.raises(UnicodeDecodeError) as expected:
        word.decode()
    assert caught.value.args == (len("Größe new ".encode()) + expected.value.start, word)


def test_a_million_types_grow_every_table():
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


@given(texts(WORDS), PLACES, st.integers(0, 4))
def test_pruning_keeps_the_frequent_in_order(text, places, threshold):
    types = Types()
    blocks = cut(text, places)
    scans = [types.scan(block + PADDING) for block in blocks]  # all before pruning: their ids are old ones
    middle = len(blocks) // 2
    before = np.concatenate([np.empty(0, np.uint32), *(types.merge(scan) for scan in scans[:middle])])
    counts, words = types.counts().copy(), strings(types)
    renumbered = types.prune(threshold)
    kept = np.flatnonzero(counts[FIRST_TYPE:] > threshold)
    assert strings(types) == [words[i] for i in kept]
    assert renumbered[:FIRST_TYPE].tolist() == [SENTENCE_END_ID, PRUNED_TYPE]
    assert renumbered[kept + FIRST_TYPE].tolist() == list(range(FIRST_TYPE, len(types)))
    assert set(np.delete(renumbered, kept + FIRST_TYPE)[FIRST_TYPE:]) <= {PRUNED_TYPE}
    ids = [*renumbered[before].tolist()]
    for scan in scans[middle:]:
        ids += types.merge(scan).tolist()
    assert types.counts().tolist() == np.bincount(ids, minlength=len(types)).tolist()
    known = [None, None, *strings(types)]
    expected = [(b"\n" if i == SENTENCE_END_ID else reference(text)[1][i - FIRST_TYPE]) for i in reference(text)[0]]
    dropped = {word for i, word in enumerate(words) if i not in set(kept.tolist())}
    for position, (number, word) in enumerate(zip(ids, expected, strict=True)):
        if number == SENTENCE_END_ID:
            assert word == b"\n"
        elif number == PRUNED_TYPE:
            assert word in dropped
            assert position < before.size
        else:
            assert known[number] == word


@given(st.binary(max_size=200))
def test_last_space(text):
    assert last_space(text) == max(text.rfind(byte) for byte in WHITE_SPACE)


@given(st.sets(WORDS), st.lists(WORDS))
def test_match(words, wanted):
    def packed(items):
        offsets = np.cumsum([0, *map(len, items)])
        return np.frombuffer(b"".join(items) + PADDING, np.uint8), offsets

    words = list(words)
    found = Lookup(*packed(words)).rows(*packed([b"", *wanted]))
    assert found.dtype == np.int32
    assert found.tolist() == [-1, *(words.index(word) if word in words else -1 for word in wanted)]
