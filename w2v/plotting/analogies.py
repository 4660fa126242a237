"""Analogies as arrows: pairs related in the same way have parallel offsets (Mikolov et al. 2013, figure 2)."""

from __future__ import annotations

import numpy as np

from w2v.evaluation.analogies import section_pairs
from w2v.options import check_numbers
from w2v.plotting.figure import COLOURS, MAX_TITLE, Lettering, Picture, map_axes
from w2v.plotting.labels import place_labels
from w2v.plotting.projection import project
from w2v.plotting.words import PAIRS
from w2v.system.files import PathLike
from w2v.vectors.cosines import unit
from w2v.vectors.keyed import KeyedVectors

SPACE = 3.5  # that a labelled point takes with its arrow, relative to one without


def analogy_map(
    vectors: KeyedVectors,
    section: str | None = None,
    questions: PathLike | None = None,
    *,
    top: int = PAIRS,
    title: str = "",
) -> Picture:
    """Draw the first `top` pairs of a section of a questions file, each as an arrow from its first to its second word.

    The plane is that of the two principal components of the words' unit vectors. `section` and `questions` are those of
    `section_pairs`, which also names the errors; raises SettingsError for a `top` below 1.
    """
    check_numbers(top=top)
    name, pairs = section_pairs(vectors, questions, section)
    rows, places = np.unique(pairs[:top], return_inverse=True)
    places = places.reshape(-1, 2)
    points = project(unit(vectors.vectors[rows]))
    words = [vectors.index_to_key[row] for row in rows]

    lettering = Lettering([*words, title or name])
    picture, axes = map_axes(points, SPACE)
    lettering.set(axes.title, title or name, MAX_TITLE)
    colours = np.where(np.isin(np.arange(len(rows)), places[:, 0]), COLOURS[0], COLOURS[3])
    markers = axes.scatter(points[:, 0], points[:, 1], s=14, c=colours, zorder=2)
    for start, end in points[places]:
        arrow = {"arrowstyle": "-|>", "color": "#999999", "linewidth": 0.8, "shrinkA": 2, "shrinkB": 2}
        axes.annotate("", end, start, arrowprops=arrow, zorder=1)
    place_labels(
        axes, points, words, lettering, markers=markers, colours=[*colours], lines=points[places], draw_all=True
    )
    return picture
