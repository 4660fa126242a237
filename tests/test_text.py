"""Bytes → provisional ids, against a few lines of Python."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from w2v._text import FIRST_TYPE, PADDING, PRUNED_TYPE, SENTENCE_END, Malformed, Types, last_space, match

WHITE_SPACE = b" \t\n\v\f\r"
WORDS = st.sampled_from(
    [b"a", b"b", b"a\0", b"\0", b"\0\0", b"sevenby", b"eight by"[:5], b"eightbyt", b"ninebytes", b"x" * 16, b"x" * 17]
    + ["é".encode(), "大".encode(), b"y" * 63, b"y" * 64, b"y" * 65, b"z" * 1000, b"<\x1c>", b"\x7f\x08\x0e\x1f!"]
) | st.integers(0, 3000).map(lambda i: f"w{i}".encode())
SEPARATORS = st.sampled_from([b" ", b"\n", b"\t", b"\r\n", b"\v", b"\f", b"  \n\n ", b" " * 70])
TEXTS = st.lists(st.tuples(WORDS, SEPARATORS), max_size=200).map(lambda pairs: b"".join(map(b"".join, pairs)))


def reference(text, errors="strict"):
    """(ids, types): what any reading of the text must give."""
    numbers, ids = {}, []
    for line in text.split(b"\n"):
        words = filter(None, (word.decode(errors=errors).encode() for word in line.split()))
        found = [numbers.setdefault(word, len(numbers) + FIRST_TYPE) for word in words]
        ids += [*found, SENTENCE_END] if found else []
    return ids, list(numbers)


def strings(types):
    ends = np.cumsum(types.lengths())
    blob = b"".join(piece.tobytes() for piece in types.strings())
    return [blob[end - length : end] for end, length in zip(ends, types.lengths(), strict=True)][FIRST_TYPE:]


def read(blocks, errors="strict"):
    types = Types(errors)
    ids = [id_ for block in blocks for id_ in types.merge(types.scan(block + PADDING)).tolist()]
    assert types.counts().tolist() == np.bincount(ids, minlength=len(types)).tolist()
    return ids, strings(types)


@given(TEXTS, st.lists(st.integers(0, 2000), max_size=10))
def test_any_blocks_give_the_reference(text, cuts):
    text += b"\n"
    spaces = [i + 1 for i, byte in enumerate(text) if byte in WHITE_SPACE]
    bounds = sorted({0, len(text), *(spaces[cut % len(spaces)] for cut in cuts)})
    blocks = [text[start:end] for start, end in zip(bounds, bounds[1:], strict=False)]
    assert read(blocks) == reference(text)


@given(TEXTS, st.integers(1, 400), st.permutations(range(8)))
def test_blocks_scanned_ahead_and_in_any_order_give_the_reference(text, size, order):
    lines = [line + b"\n" for line in text.split(b"\n")]
    blocks = [b"".join(lines[i::1][:1]) for i in range(len(lines))]
    types, ids = Types(), []
    for start in range(0, len(blocks), len(order)):
        ahead = blocks[start : start + len(order)]
        scans = {i: types.scan(ahead[i] + PADDING) for i in order if i < len(ahead)}
        for i in range(len(ahead)):
            ids += types.merge(scans[i]).tolist()
    assert (ids, strings(types)) == reference(text)
