"""w2v rank: what the rank of a model's predictions is, and the softmax bottleneck."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v.data import make
from w2v.evaluation.rank import picture, rank


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, w2v.Model]:
    text = [line.split() for line in "".join(make.corpus(5000, seed=2)).splitlines()]
    options: dict[str, Any] = {"vector_size": 5, "epochs": 2, "workers": 1, "min_count": 2}
    return {loss: w2v.train(text, loss=loss, **options) for loss in ("softmax", "hs", "mos")}


def test_one_softmax_has_rank_vector_size_plus_one_and_a_mixture_more(models: dict[str, w2v.Model]) -> None:
    found = {loss: rank(model) for loss, model in models.items()}
    size = len(models["softmax"].vocabulary)
    assert size > 100
    assert found["softmax"].rank == 6
    assert found["hs"].rank > 20
    assert found["mos"].rank > 20
    for loss, model in models.items():
        logs = model.log_probabilities(model.inputs.astype(np.float64))
        assert found[loss].contexts == found[loss].words == size
        assert sum(np.square(found[loss].singular_values)) == pytest.approx((logs**2).sum())
    assert rank(models["mos"], 10, 20).rank == 10
    assert len(rank(models["mos"], 10, 20).singular_values) == 10


@pytest.mark.parametrize("options", [{"contexts": 1}, {"words": 10**6}])
def test_rank_of_what_is_not_there(models: dict[str, w2v.Model], options: dict[str, int]) -> None:
    with pytest.raises(w2v.SettingsError, match=r"^(contexts 1|words 1000000): from 2 to \d"):
        rank(models["softmax"], **options)


def test_command(models: dict[str, w2v.Model], tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    models["softmax"].save(path)
    facts = run_json("rank", path, "--contexts", 50, "--words", 60)
    assert (facts["rank"], facts["contexts"], facts["words"], facts["vector_size"]) == (6, 50, 60, 5)
    assert len(facts["singular_values"]) == 50
    shown = run("rank", path).stdout
    assert "rank" in shown
    assert "6" in shown


def test_picture(models: dict[str, w2v.Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, drawn = tmp_path / "m.safetensors", tmp_path / "rank.png"
    models["softmax"].save(path)
    run("rank", path, "--words", 60, "-o", drawn)
    assert drawn.read_bytes()[1:4] == b"PNG"
    with pytest.raises(w2v.W2VError, match="cannot write"):
        picture(rank(models["softmax"], 10, 10), tmp_path / "rank.nothing", "softmax")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(w2v.W2VError, match=r"needs matplotlib: pip install 'w2v\[plot\]'$"):
        picture(rank(models["softmax"], 10, 10), drawn, "softmax")
