"""Draw analogies as arrows: pairs with the same relation have parallel offsets (Mikolov et al. 2013, figure 2)."""

from __future__ import annotations

import numpy as np

from w2v.evaluation.analogies import section_pairs
from w2v.options import check_numbers
from w2v.plotting.figure import COLOURS, MAX_TITLE, Picture, TextFormatter, map_axes
from w2v.plotting.labels import place_labels
from w2v.plotting.projection import project
from w2v.plotting.words import PAIRS
from w2v.system.files import PathLike
from w2v.vectors.cosines import unit
from w2v.vectors.keyed import KeyedVectors

SPACE = 3.5  # area of a labelled point with its arrow, relative to a labelled point without one


def analogy_map(
    vectors: KeyedVectors,
    section: str | None = None,
    questions: PathLike | None = None,
    *,
    topn: int = PAIRS,
    title: str = "",
) -> Picture:
    """Draw the first `topn` pairs of a section of a questions file as arrows from the first to the second word.

    The axes are the first two principal components of the words' unit vectors.

    Args:
        section: The name of a section; see `section_pairs` for the default.
        questions: A file of analogy questions; None for the bundled one.
        title: The title; by default, the name of the section.

    Raises:
        SettingsError: `topn` is below 1.
        W2VError: There is no such section, or it has no pair of known words.
    """
    check_numbers(topn=topn)
    name, pairs = section_pairs(vectors, questions, section)
    rows, ends = np.unique(pairs[:topn], return_inverse=True)
    points = project(unit(vectors.vectors[rows]))
    words = [vectors.index_to_key[row] for row in rows]

    formatter = TextFormatter([*words, title or name])
    picture, axes = map_axes(points, SPACE)
    formatter.set(axes.title, title or name, MAX_TITLE)
    colours = np.where(np.isin(np.arange(len(rows)), ends[:, 0]), COLOURS[0], COLOURS[3])
    markers = axes.scatter(points[:, 0], points[:, 1], s=14, c=colours, zorder=2)
    for start, end in points[ends]:
        arrow = {"arrowstyle": "-|>", "color": "#999999", "linewidth": 0.8, "shrinkA": 2, "shrinkB": 2}
        axes.annotate("", end, start, arrowprops=arrow, zorder=1)
    place_labels(axes, points, words, formatter, markers=markers, colours=[*colours], lines=points[ends], draw_all=True)
    return picture
