"""Plot curves: loss, learning rate and speed during training, and the singular values of a model's scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._plotting.figure import COLOURS, Picture, set_title
from w2v._training.effective_rank import EffectiveRank
from w2v._training.model import Model, View


def run_picture(model: Model, title: str = "") -> Picture:
    """Plot loss, learning rate and words per second against the number of words trained, from their history.

    Each value of loss and speed is the mean since the previous value. The curves of a resumed run include the part
    before it was stopped. Each of several views has its own curves, which begin at 0 words.
    """
    views = model.views
    tokens = max(view.metrics["tokens"] for view in views.values())
    epochs = np.arange(1, max(view.metrics["tokens_trained"] for view in views.values()) // tokens)
    picture = Picture(7, 6.5)
    panels = picture.subplots(3, sharex=True)
    for number, (name, view) in enumerate(views.items()):
        for panel, (axes, (label, x, y)) in enumerate(zip(panels, _run_curves(view), strict=True)):
            colour = COLOURS[number if len(views) > 1 else panel]
            style = {"color": colour, "linestyle": ("-", "--")[number], "label": name}
            axes.plot(x / 1e6, y, linewidth=1.4, marker="o", markersize=2, **style)
            axes.set_ylabel(label)
    for axes in panels:
        axes.grid(axis="y", color="#eeeeee")
        axes.spines[["top", "right"]].set_visible(False)
        for epoch in epochs:
            axes.axvline(epoch * tokens / 1e6, color="#cccccc", linewidth=0.6, zorder=0)
    for axes in (panels[1], panels[2]):
        axes.set_ylim(bottom=0)
    if len(views) > 1:
        panels[0].legend()
    panels[-1].set_xlabel("million words trained (vertical lines: ends of epochs)")
    picture.align_ylabels()
    set_title(panels[0], title)
    return picture


def _run_curves(model: View) -> list[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Return the label, the numbers of words trained and the values of each curve of a run."""
    settings = model.settings
    assert isinstance(settings.epochs, int)
    planned = settings.epochs * model.metrics["tokens"]  # early stopping may leave out the last epochs
    words, seconds = np.vstack([np.zeros(2), model.history[:, :2]]).T
    measured = np.diff(seconds) > 0  # two values can have the same time if the clock is coarse
    alphas = settings.start_alpha + (settings.end_alpha - settings.start_alpha) * words / planned
    losses = np.reshape(model.loss_curve, (-1, 2)).T
    return [
        ("loss per prediction", losses[0], losses[1]),
        ("learning rate", words, alphas),
        ("million words/s", words[1:][measured], np.diff(words)[measured] / np.diff(seconds)[measured] / 1e6),
    ]


def spectrum(result: EffectiveRank, name: str) -> Picture:
    """Plot the singular values relative to the first. `name` is the title.

    Vertical lines show the effective rank and, if the loss limits it, the highest possible rank.
    """
    picture = Picture(6, 4)
    axes = picture.subplots()
    values = np.array(result.singular_values)
    axes.semilogy(np.arange(1, len(values) + 1), values / values[0], color=COLOURS[0])
    if result.max_rank is not None:
        label = f"highest rank with this loss: {result.max_rank:,}"
        axes.axvline(result.max_rank, color="grey", linestyle=":", label=label)
    axes.axvline(result.rank, color=COLOURS[3], linestyle="--", label=f"effective rank: {result.rank:,}")
    set_title(axes, name)
    axes.set(xlabel="singular value", ylabel="relative to the first")
    axes.legend()
    return picture
