"""The course of a training run: loss, learning rate and speed."""

from __future__ import annotations

import numpy as np

from w2v.plotting.figure import COLOURS, Picture, set_title
from w2v.training.model import Model


def run_picture(model: Model, title: str = "") -> Picture:
    """Draw loss, learning rate and words a second over the words trained, from `model.history`.

    Each value of loss and speed is the mean since the one before; a resumed run goes on where it was stopped.
    """
    words, seconds, losses, predictions = np.vstack([np.zeros(4), model.history]).T
    steps = np.diff([words, seconds, losses, predictions])
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN leaves a gap
        loss, speed = steps[2] / steps[3], steps[0] / steps[1]
    settings = model.settings
    total = model.metrics["tokens"] * settings.epochs
    alphas = settings.start_alpha + (settings.end_alpha - settings.start_alpha) * words / total
    curves = [
        ("loss per prediction", words[1:], loss),
        ("learning rate", words, alphas),
        ("million words/s", words[1:], speed / 1e6),
    ]
    picture = Picture(7, 6.5)
    panels = picture.subplots(len(curves), sharex=True)
    for axes, (label, places, values), colour in zip(panels, curves, COLOURS, strict=False):
        axes.plot(places / 1e6, values, color=colour, linewidth=1.4, marker="o", markersize=2)
        axes.set_ylabel(label)
        axes.grid(axis="y", color="#eeeeee")
        axes.spines[["top", "right"]].set_visible(False)
        for epoch in range(1, settings.epochs):
            axes.axvline(epoch * model.metrics["tokens"] / 1e6, color="#cccccc", linewidth=0.6, zorder=0)
    for axes in (panels[1], panels[2]):
        axes.set_ylim(bottom=0)
    panels[-1].set_xlabel("million words trained; vertical lines end the epochs")
    set_title(panels[0], title)
    return picture
