"""Every loss at the limits of its settings: it trains a model with finite values, or refuses the settings."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import w2v
from tests.helpers import ALL_LOSSES
from w2v._losses.registry import LOSSES, Settings
from w2v._options import choices_of, options_of, type_of
from w2v._settings import GeneralOptions

# Below the real maxima, for quick tests.
LARGEST = {"vector_size": 33, "epochs": 2, "workers": 2, "negative": 99, "mixtures": 3, "window": 99}
SMALLEST = [5e-324, 1e-300, 1e-45, 1e-4, 1]
TEXT = st.lists(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=9), min_size=1, max_size=20)
WITHOUT_FILES: dict[str, Any] = {"tree": ["huffman", "balanced"], "blocks": [None, "1", "1,1", "1:1,1"]}


def edges(kind: type, name: str) -> list[Any]:
    """Return possible values of a setting, most of them at the ends of its range."""
    limits, value_type = options_of(kind)[name], type_of(kind, name)
    if choices := WITHOUT_FILES.get(name) or choices_of(kind, name):
        return list(choices)
    if value_type is bool:
        return [False, True]
    if value_type is str:
        return [None]
    low, high = limits.minimum or 0, LARGEST.get(name, limits.maximum or 10**12)
    return [low, high, *(value_type(low + more) for more in SMALLEST if low + more <= high)]


def trains(text: list[list[str]], **chosen: Any) -> bool:
    """Train with these settings and check the model. Return False if w2v refuses the settings."""
    base = {"min_count": 1, "sample": 0, "vector_size": 4, "workers": 1, "epochs": 2}
    try:
        model = w2v.train(text, **(base | chosen))
        result = w2v.perplexity(model, text)
    except w2v.W2VError:
        return False
    assert np.isfinite(model.wv.vectors).all()
    # In dbow, words have only output rows, and a class of a single word does not train its row.
    assert model.wv.vectors.any(axis=1).all() or model.settings.documents == "dbow"
    assert result.perplexity > 0.999
    return True


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=30)
@given(st.data())
def test_possible_settings_train_or_are_refused(loss: str, data: st.DataObject) -> None:
    possible = {*options_of(GeneralOptions), *options_of(LOSSES[loss].options_class)}
    names = data.draw(st.lists(st.sampled_from(sorted(possible)), max_size=4, unique=True))
    chosen = {name: data.draw(st.sampled_from(edges(Settings, name)), name) for name in names}
    trains(data.draw(TEXT), **{"loss": loss} | chosen)


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_default_settings_train_a_tiny_text(loss: str) -> None:
    assert trains([["a", "b"], ["a", "c"]] * 5, loss=loss)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"loss": "class", "sample": 1e-300}, False),
        pytest.param({"loss": "dsoftmax", "vector_size": 1}, True, marks=pytest.mark.slow),  # Numba compiles it
        pytest.param({"loss": "dsoftmax", "vector_size": 2}, True, marks=pytest.mark.slow),
        ({"loss": "ns", "vector_size": 1, "vectors": "combined"}, False),
        ({"loss": "ns", "vector_size": 2, "vectors": "combined"}, True),
    ],
)
def test_smallest_settings_train_or_are_refused(chosen: dict[str, Any], expected: bool) -> None:
    assert trains([["a", "b"], ["a", "c"]] * 5, **chosen) == expected
