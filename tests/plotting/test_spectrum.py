"""The picture of w2v rank."""

from pathlib import Path
from typing import Any

import numpy as np

import w2v
from tests.helpers import run
from w2v.evaluation.rank import Rank
from w2v.plotting.spectrum import spectrum


def test_singular_values_relative_to_the_first() -> None:
    axes = spectrum(Rank(2, 3, 4, 4, 2, [8.0, 4.0, 0.08, 0.008]), "price $ \udcff").axes[0]
    values, limit, rank = axes.lines
    np.testing.assert_allclose(values.get_xydata(), [[1, 1], [2, 0.5], [3, 0.01], [4, 0.001]])
    assert (set(limit.get_xdata()), set(rank.get_xdata())) == ({3}, {2})
    assert axes.get_title() == r"price $ \udcff"
    assert len(spectrum(Rank(2, None, 4, 4, 2, [8.0, 4.0]), "no limit").axes[0].lines) == 2


def test_command(tmp_path: Path) -> None:
    model, drawn = tmp_path / "m.safetensors", tmp_path / "rank.svg"
    settings: dict[str, Any] = {"min_count": 1, "negative": 2, "epochs": 1, "vector_size": 4, "sample": 0, "workers": 1}
    w2v.train([["a", "b", "c", "d"]] * 50, **settings).save(model)
    run("rank", model, "-o", drawn, "--quiet")
    assert b"<svg" in drawn.read_bytes()
