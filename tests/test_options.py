"""Functions accept the old names of their arguments, and warn about them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from w2v.options import renamed_arguments

VECTORS = w2v.KeyedVectors(["a", "b"], np.eye(2, dtype=np.float32))


@renamed_arguments(count="size")
def doubled(size: int) -> int:
    return 2 * size


def test_an_old_name_of_an_argument_warns_at_the_line_of_the_caller() -> None:
    with pytest.warns(DeprecationWarning, match=r"^the argument count of doubled is now size$") as caught:
        assert doubled(count=2) == 4  # type: ignore[call-arg]
    assert [Path(warning.filename) for warning in caught] == [Path(__file__)]


def test_the_new_name_of_an_argument_does_not_warn() -> None:
    assert doubled(2) == doubled(size=2) == 4


def test_both_names_of_an_argument_together_are_refused() -> None:
    with pytest.raises(TypeError, match="count"):
        doubled(size=2, count=2)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("function", "arguments", "old", "value"),
    [
        (w2v.train, [[]], "world", None),
        (w2v.resume, ["no such folder"], "world", None),
        (w2v.analogies, [VECTORS], "top", 0),
        (w2v.evaluate, [VECTORS], "top", 0),
        (w2v.compare, [VECTORS, VECTORS], "words", -1),
        (w2v.rank, ["no such file"], "words", 1),
    ],
)
def test_functions_know_the_old_names_of_their_arguments(
    function: Any, arguments: list[Any], old: str, value: Any
) -> None:
    """Each call is wrong in another way too, so that it ends at once."""
    with pytest.warns(DeprecationWarning, match=f"the argument {old} of "), pytest.raises(w2v.W2VError):
        function(*arguments, **{old: value})
