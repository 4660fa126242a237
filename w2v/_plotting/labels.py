"""Place labels so that they overlap neither each other nor the points."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from w2v._errors import optional_package
from w2v._plotting.figure import TextFormatter, blend

with optional_package("a picture with labels needs textalloc", "plot"):
    import textalloc
    from matplotlib.axes import Axes
    from matplotlib.patheffects import withStroke

FONT_SIZE = 7.5  # points
DARKENING = 0.25  # share of black mixed into the colour of a marker for its label, so that the label is legible
HALO = 1.5  # width of the white outline of a label, in points: lines to other points may cross it
MARGIN = 0.0025  # around a label, as a share of the width of the axes
MIN_DISTANCE, MAX_DISTANCE = 0.006, 0.06  # from a point to its label, as shares of the width of the axes
CANDIDATES = 300  # positions tried for each label


def place_labels(
    axes: Axes,
    points: NDArray[Any],
    words: Sequence[str],
    formatter: TextFormatter,
    *,
    markers: Any,
    colours: Sequence[Any],
    lines: NDArray[Any] | None = None,
    draw_all: bool = False,
) -> None:
    """Label points (n, 2) with n words, in order, and fix the layout of the figure.

    A line joins a distant label to its point.

    Args:
        markers: The scatter plot of the points; no label covers it.
        colours: The colours of the points.
        lines: Line segments (m, 2, 2) that no label covers.
        draw_all: Draw all labels, even where they overlap others.
    """
    figure: Any = axes.get_figure()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    obstacles: dict[str, Any] = {} if lines is None else {"x_lines": [*lines[..., 0]], "y_lines": [*lines[..., 1]]}
    with contextlib.redirect_stdout(io.StringIO()):  # textalloc prints a message if it finds no space
        _, _, texts, _ = textalloc.allocate(
            axes,
            points[:, 0],
            points[:, 1],
            [formatter(word) for word in words],
            scatter_plot=markers,
            textsize=FONT_SIZE,
            textcolor=[blend(colour, "black", DARKENING) for colour in colours],
            margin=MARGIN,
            min_distance=MIN_DISTANCE,
            max_distance=MAX_DISTANCE,
            nbr_candidates=CANDIDATES,
            draw_all=draw_all,
            linecolor="#999999",
            linewidth=0.4,
            path_effects=[withStroke(linewidth=HALO, foreground="white")],
            va="bottom",  # textalloc reserves a box from the bottom of the text up, not from its baseline up
            **obstacles,
            **formatter.style,
        )
    figure.words, figure.labels = len(words), sum(text is not None for text in texts)
