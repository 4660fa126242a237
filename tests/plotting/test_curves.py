"""Plots of a training run, including a resumed one, and of singular values."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import QUICK, SMALL, interrupt, run, train_and_stop
from w2v._plotting.curves import run_picture, spectrum
from w2v._training import run as run_module
from w2v._training.effective_rank import EffectiveRank


def check_history(model: w2v.Model) -> None:
    """Assert that the history is cumulative and agrees with the metrics."""
    history = model.views["words"].history
    words, seconds, losses, predictions = history.T
    assert (np.diff(history, axis=0) >= 0).all()
    assert (np.diff(words) > 0).all()
    assert 5 < len(words) < 1.5 * run_module.HISTORY_ROWS
    assert words[-1] == model.metrics["tokens_trained"]
    assert predictions[-1] == sum(model.metrics["predictions"])
    assert 0 < seconds[-1] <= model.metrics["seconds"]["train"]
    summed = np.dot(model.metrics["loss"], model.metrics["predictions"])
    assert losses[-1] == pytest.approx(summed)


def test_curves_and_ends_of_epochs_are_those_of_the_history() -> None:
    """The second value of the clock repeats the first, so no speed is known between them."""
    history = [[2e6, 1, 0, 0], [4e6, 1, 0, 0], [12e6, 5, 0, 0]]
    view: Any = SimpleNamespace(
        settings=SimpleNamespace(epochs=4, start_alpha=0.05, end_alpha=0.01),
        metrics={"tokens": 4_000_000, "tokens_trained": 12_000_000},
        history=np.array(history),
        loss_curve=[(2e6, 3.0), (12e6, 2.5)],
    )
    panels = run_picture(w2v.Model({"words": view})).axes
    loss, alpha, speed = (panel.lines[0].get_xydata() for panel in panels)
    np.testing.assert_allclose(loss, [[2, 3], [12, 2.5]])
    np.testing.assert_allclose(alpha, [[0, 0.05], [2, 0.045], [4, 0.04], [12, 0.02]])
    np.testing.assert_allclose(speed, [[2, 2], [12, 2]])
    assert [panel.get_ylabel() for panel in panels] == ["loss per prediction", "learning rate", "million words/s"]
    assert panels[2].get_xlabel().startswith("million words trained")
    for panel in panels:
        assert [line.get_xdata()[0] for line in panel.lines[1:]] == [4, 8]
        assert panel.get_legend() is None
    assert panels[0].get_ylim()[0] > 0  # the loss is shown in detail
    assert panels[1].get_ylim()[0] == panels[2].get_ylim()[0] == 0
    assert {panel.get_xlim() for panel in panels} == {panels[0].get_xlim()}


def test_picture_shows_each_view(sample: Path) -> None:
    options = SMALL | {"epochs": 2, "views": "words+subwords", "vector_size": 8, "buckets": 2000}
    model = w2v.train(sample.read_text("utf-8")[:100_000].splitlines(), **options)
    panels = run_picture(model, "views").axes
    for number, view in enumerate(model.views.values()):
        alone = run_picture(w2v.Model({"words": view})).axes
        for panel, expected in zip(panels, alone, strict=True):
            np.testing.assert_array_equal(panel.lines[number].get_xydata(), expected.lines[0].get_xydata())
    for panel in panels:
        assert len(panel.lines) == 3  # two views and the end of the first epoch
        for look in ("get_color", "get_linestyle"):
            assert len({getattr(line, look)() for line in panel.lines[:2]}) == 2
    legend = panels[0].get_legend()
    assert legend
    assert [label.get_text() for label in legend.get_texts()] == ["words", "subwords"]


def test_resumed_command_draws_the_run(sample: Path, tmp_path: Path) -> None:
    states, plot, model = tmp_path / "states", tmp_path / "run.svg", tmp_path / "m.safetensors"
    interrupt(sample, "-o", model, "--plot", plot, "--checkpoint", states, "--views", "words+subwords", *QUICK)
    assert not plot.exists()
    run("train", sample, "--resume", states, "-o", model, "--plot", plot)
    assert b"<svg" in plot.read_bytes()


def test_resumed_run_keeps_its_history(sample: Path, tmp_path: Path) -> None:
    state = train_and_stop(tmp_path, sample, share=0.5)
    assert len(state.history)
    model = w2v.resume(tmp_path, sample)
    check_history(model)
    np.testing.assert_array_equal(model.views["words"].history[: len(state.history)], state.history)
    run_picture(model)


def test_train_command_saves_the_model_before_drawing(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plot, model = tmp_path / "run.svg", tmp_path / "m.bin"
    run("train", sample, "-o", model, "--plot", plot, *QUICK)
    assert b"<svg" in plot.read_bytes()
    assert "is named twice" in run("train", sample, "-o", model, "--plot", model, "--force", *QUICK, code=2).stderr
    assert sorted(tmp_path.iterdir()) == [model, plot]
    monkeypatch.setattr("w2v._plotting.curves.run_picture", lambda *_: 1 / 0)  # an unforeseen error
    run("train", sample, "-o", tmp_path / "saved.bin", "--plot", tmp_path / "b.svg", *QUICK, code=1)
    assert (tmp_path / "saved.bin").exists()


def test_spectrum_is_relative_to_the_first_singular_value() -> None:
    axes = spectrum(EffectiveRank(2, 3, 4, 4, 2, [8.0, 4.0, 0.08, 0.008]), "price $ \udcff").axes[0]
    values, limit, rank = axes.lines
    np.testing.assert_allclose(values.get_xydata(), [[1, 1], [2, 0.5], [3, 0.01], [4, 0.001]])
    assert (set(limit.get_xdata()), set(rank.get_xdata())) == ({3}, {2})
    assert axes.get_title() == r"price $ \udcff"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("singular value", "relative to the first")
    assert axes.get_yscale() == "log"
    legend = axes.get_legend()
    assert legend
    labels = ["highest rank with this loss: 3", "effective rank: 2"]
    assert [text.get_text() for text in legend.get_texts()] == labels
    assert [handle.get_linestyle() for handle in legend.get_lines()] == [limit.get_linestyle(), rank.get_linestyle()]
    assert limit.get_linestyle() != rank.get_linestyle()
    assert len(spectrum(EffectiveRank(2, None, 4, 4, 2, [8.0, 4.0]), "no limit").axes[0].lines) == 2


def test_rank_command_draws_the_spectrum(tmp_path: Path) -> None:
    model, drawn = tmp_path / "m.safetensors", tmp_path / "rank.svg"
    settings: dict[str, Any] = {"min_count": 1, "negative": 2, "epochs": 1, "vector_size": 4, "sample": 0, "workers": 1}
    w2v.train([["a", "b", "c", "d"]] * 50, **settings).save(model)
    run("rank", model, "-o", drawn, "--quiet")
    assert b"<svg" in drawn.read_bytes()
