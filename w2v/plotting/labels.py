"""Labels of points that overlap neither each other nor the points."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from w2v.errors import W2VError, install
from w2v.plotting.figure import Lettering, blend

try:
    import textalloc
    from matplotlib.patheffects import withStroke
except ImportError as error:
    raise W2VError(f"a picture with labels needs textalloc: {install('plot')}") from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONT_SIZE = 7.5  # points
DARKER = 0.25  # share of black that a text has more than its marker, to be legible
HALO = 1.5  # points of white around a text, which lines to other points may cross
MARGIN = 0.0025  # around a label, as a share of the width of the axes
MIN_DISTANCE, MAX_DISTANCE = 0.006, 0.06  # of a label from its point, as shares of the width
CANDIDATES = 300  # positions tried for each label


def place_labels(
    axes: Axes,
    points: NDArray[Any],
    words: Sequence[str],
    lettering: Lettering,
    *,
    markers: Any,
    colours: Sequence[Any],
    lines: NDArray[Any] | None = None,
    draw_all: bool = False,
) -> None:
    """Label the points (n, 2) with n words, the first ones first, and leave out those without space unless `draw_all`.

    Labels do not cover the `markers`, a scatter plot, or the `lines`, (m, 2, 2). A label away from its point is joined
    to it by a line. The layout of the figure is fixed from here on.
    """
    figure: Any = axes.get_figure()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    others: dict[str, Any] = {} if lines is None else {"x_lines": [*lines[..., 0]], "y_lines": [*lines[..., 1]]}
    with contextlib.redirect_stdout(io.StringIO()):  # it prints when there is no space at all
        _, _, texts, _ = textalloc.allocate(
            axes,
            points[:, 0],
            points[:, 1],
            [lettering(word) for word in words],
            scatter_plot=markers,
            textsize=FONT_SIZE,
            textcolor=[blend(colour, "black", DARKER) for colour in colours],
            margin=MARGIN,
            min_distance=MIN_DISTANCE,
            max_distance=MAX_DISTANCE,
            nbr_candidates=CANDIDATES,
            draw_all=draw_all,
            linecolor="#999999",
            linewidth=0.4,
            path_effects=[withStroke(linewidth=HALO, foreground="white")],
            **others,
            **lettering.style,
        )
    figure.words, figure.labels = len(words), sum(text is not None for text in texts)
