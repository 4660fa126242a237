"""Every loss at the edges of its settings: a model that is one, or one line that says why there is none."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import w2v
from w2v.losses.registry import LOSSES, FlatSettings
from w2v.options import choices_of, options_of, type_of
from w2v.settings import GeneralOptions

LARGEST = {"vector_size": 33, "epochs": 2, "workers": 2, "negative": 99, "mixtures": 3, "window": 99}  # for quick tests
SMALLEST = [5e-324, 1e-300, 1e-45, 1e-4, 1]
TEXT = st.lists(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=9), min_size=1, max_size=20)
WITHOUT_FILES: dict[str, Any] = {"tree": ["huffman", "balanced"], "blocks": [None, "1", "1,1", "1:1,1"]}


def edges(kind: type, name: str) -> list[Any]:
    """Possible values of a setting, most of them at the ends of its range."""
    limits, value_type = options_of(kind)[name], type_of(kind, name)
    if found := WITHOUT_FILES.get(name) or choices_of(kind, name):
        return list(found)
    if value_type is bool:
        return [False, True]
    if value_type is str:
        return [None]
    low, high = limits.minimum or 0, LARGEST.get(name, limits.maximum or 10**12)
    return [low, high, *(value_type(low + more) for more in SMALLEST if low + more <= high)]


def is_trained(text: list[list[str]], **chosen: Any) -> bool:
    """Whether these settings make a model, which must be a sound one; otherwise the error says why not."""
    base = {"min_count": 1, "sample": 0, "vector_size": 4, "workers": 1, "epochs": 2}
    try:
        model = w2v.train(text, **(base | chosen))
        found = w2v.perplexity(model, text)
    except w2v.W2VError:
        return False
    assert np.isfinite(model.wv.vectors).all()
    assert model.wv.vectors.any(axis=1).all()
    assert found.perplexity > 0.999
    return True


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=30)
@given(st.data())
def test_settings_are_refused_or_train(loss: str, data: st.DataObject) -> None:
    possible = {*options_of(GeneralOptions), *options_of(LOSSES[loss].options_class)}
    names = data.draw(st.lists(st.sampled_from(sorted(possible)), max_size=4, unique=True))
    chosen = {name: data.draw(st.sampled_from(edges(FlatSettings, name)), name) for name in names}
    is_trained(data.draw(TEXT), **{"loss": loss} | chosen)


@pytest.mark.parametrize("loss", LOSSES)
def test_plain_settings_train(loss: str) -> None:
    assert is_trained([["a", "b"], ["a", "c"]] * 5, loss=loss)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"loss": "class", "sample": 1e-300}, False),
        ({"loss": "dsoftmax", "vector_size": 1}, True),
        ({"loss": "dsoftmax", "vector_size": 2}, True),
        ({"loss": "ns", "vector_size": 1, "vectors": "combined"}, False),
    ],
)
def test_small_settings(chosen: dict[str, Any], expected: bool) -> None:
    assert is_trained([["a", "b"], ["a", "c"]] * 5, **chosen) == expected
