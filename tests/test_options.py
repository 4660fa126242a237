"""Options accept values within their limits."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from w2v._graph.walks import WalkOptions
from w2v._losses.registry import Settings
from w2v._options import (
    check_numbers,
    check_whole,
    checked_value,
    options_of,
    refuse_unknown,
    suggestion,
    takes_pair,
    type_of,
)
from w2v._text.idstore import ReadingOptions
from w2v._text.phrases import PhraseOptions

# All options for a number, each with its class.
NUMBERS = [
    (kind, name)
    for kind in (Settings, ReadingOptions, WalkOptions, PhraseOptions)
    for name in options_of(kind)
    if type_of(kind, name) in (int, float)
]


@pytest.mark.parametrize(("kind", "name"), NUMBERS)
def test_options_accept_their_limits_and_refuse_values_beyond_them(kind: Any, name: str) -> None:
    limits, is_float = options_of(kind)[name], type_of(kind, name) is float
    assert limits.minimum is not None
    low, high = math.nextafter(0, 1) if limits.positive else limits.minimum, limits.maximum
    below = math.nextafter(low, -math.inf) if is_float else int(low) - 1
    beyond = [below] if high is None else [below, math.nextafter(high, math.inf) if is_float else int(high) + 1]
    for limit in (low, high):
        if limit is not None:
            assert checked_value(kind, name, limit) == limit
    for value in beyond:
        with pytest.raises(w2v.SettingsError, match=f"^{name} {value!r}: it must be"):
            checked_value(kind, name, value)


@pytest.mark.parametrize("value", ["", 5, "a\0b", "\ud800", ["a"], b"a"])
def test_names_and_paths_must_be_possible(value: Any) -> None:
    for name in "tree", "blocks", "tree_vectors":
        with pytest.raises(w2v.SettingsError, match=f"^{name} {re.escape(repr(value))}: it must be a name or a path$"):
            Settings(**{name: value})
    with pytest.raises(w2v.SettingsError, match=r"^cache .*: it must be a name or a path$"):
        ReadingOptions(cache=value)


def test_values_are_converted_to_types_of_python() -> None:
    given: dict[str, Any] = {"vector_size": np.int64(7), "sample": np.float32(0.25), "alpha": 1, "tree": Path("a")}
    settings = Settings(loss="hs", **given)
    for name, expected in {"vector_size": 7, "sample": 0.25, "alpha": 1.0, "tree": "a"}.items():
        value = getattr(settings, name)
        assert (value, type(value)) == (expected, type(expected))


def test_wrong_numbers_are_named_with_their_limits() -> None:
    wrong: list[tuple[str, Any, str]] = [
        ("vector_size", 0, "a whole number, from 1 to 1,048,576"),
        ("min_count", -1, "a whole number, 0 or more"),
        ("alpha", 0, "a number, from 0 to 1,000, but not 0"),
        ("epochs", "7", "a whole number, from 1 to 1,000,000, or auto"),
        ("window", True, "a whole number, from 1 to 16,384, or all"),
    ]
    for name, value, allowed in wrong:
        with pytest.raises(w2v.SettingsError, match=f"^{name} {value!r}: it must be {re.escape(allowed)}$"):
            Settings(**{name: value})
    check_whole(2, topn=2)
    check_numbers(seed=0, topn=1)
    for check in lambda: check_whole(2, rows=3, topn=1), lambda: check_numbers(seed=0, targets=1):
        with pytest.raises(w2v.SettingsError, match=r"^(topn|targets) 1: it must be a whole number, 2 or more$"):
            check()


def test_only_a_window_may_be_a_pair_of_numbers() -> None:
    assert [name for name in options_of(Settings) if takes_pair(Settings, name)] == ["window"]
    for name in "vector_size", "epochs", "alpha":
        with pytest.raises(w2v.SettingsError, match=f"^{name} '5,0': it must be"):
            Settings(**{name: "5,0"})


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("epoch", ["batch", "epochs", "seed"], "did you mean epochs?"),
        ("Vector Size", ["seed", "vector_size"], "did you mean vector_size?"),
        ("sampel", ["seed", "sampled", "sample"], "did you mean sample or sampled?"),  # the most similar first
        ("s", ["s1", "s2", "s3", "s4"], "did you mean s1, s2 or s3?"),
        ("neg", {"hs": "hierarchical softmax", "ns": "negative sampling"}, "did you mean ns?"),
        ("x", ["one", "two"], "choose from one, two"),
        ("", ["one", "two"], "choose from one, two"),
        ("--", ["one", "two"], "choose from one, two"),
        ("abcde", ["abxyz"], "choose from abxyz"),  # a similarity of 0.4
        ("abcde", ["abcxy"], "did you mean abcxy?"),  # a similarity of 0.6
        ("abcdefghij", ["abcdefghxy", "abcdefghix"], "did you mean abcdefghix?"),  # 0.8 is less than 90 % of 0.9
    ],
)
def test_similar_names_are_suggested(name: str, known: Any, hint: str) -> None:
    assert suggestion(name, known) == hint


def test_unknown_names_are_refused_with_a_hint() -> None:
    refuse_unknown(["a"], ["a", "b"], {})
    with pytest.raises(w2v.SettingsError, match=r"^unknown setting 'size': write vector_size$"):
        refuse_unknown(["sizes", "size"], ["sizes"], {"size": "vector_size"})
    with pytest.raises(w2v.SettingsError, match=r"^unknown setting 'size': did you mean sizes\?$"):
        refuse_unknown(["size"], ["sizes"], {})
