"""Draw the path of a word through the models of several periods, among its nearest words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from w2v.errors import SettingsError, pluralise
from w2v.options import check_numbers
from w2v.plotting.figure import COLOURS, MAX_TITLE, Picture, TextFormatter, map_axes
from w2v.plotting.labels import place_labels
from w2v.plotting.projection import Projection, project
from w2v.progress import Report
from w2v.vectors.align import in_one_system
from w2v.vectors.cosines import unit
from w2v.vectors.keyed import HasWordVectors, KeyedVectors, vectors_of
from w2v.vectors.unknown_words import UnknownWordError

NEAREST = 8  # of the word, in each model
RESTRICT_VOCAB = 20_000  # the nearest words are among this many most frequent words
SPACE = 2.0  # area of a labelled point with its arrow, relative to a labelled point without one


def word_path(
    models: Mapping[str, KeyedVectors | HasWordVectors],
    word: str,
    *,
    method: Projection = "pca",
    seed: int = 1,
    title: str = "",
    progress: Report | None = None,
) -> Picture:
    """Draw a word's vectors in several models as a path, among the words that are nearest to it in one of the models.

    The models are aligned first, unless they are in one coordinate system. The position of another word is the mean of
    its vectors in the models that have it, so that the picture has one point for it.

    Args:
        models: At least two models, by the name to show, in the order of the path.
        word: A word of all models.
        method: The projection; see `project`.
        seed: The seed of the projection.
        title: The title; by default, the word.

    Raises:
        UnknownWordError: The word is not in one of the models.
        SettingsError: There is one model only, or an option is invalid.
        W2VError: The models cannot be aligned, or a library is not installed.
    """
    check_numbers(seed=seed)
    if len(models) < 2:
        raise SettingsError(f"{pluralise(len(models), 'model')} for the path of a word: give at least two")
    sources = [vectors_of(model) for model in models.values()]
    for name, source in zip(models, sources, strict=True):
        if not source.is_known(word):  # before the alignment, which takes longer
            raise UnknownWordError([word], source.key_to_index, name)
    aligned, _ = in_one_system(sources)
    nearest = (
        other for each in aligned for other, _ in each.most_similar(word, topn=NEAREST, restrict_vocab=RESTRICT_VOCAB)
    )
    others = list(dict.fromkeys(nearest))
    means = [np.mean([each[other] for each in aligned if each.is_known(other)], axis=0) for other in others]
    path = [each[word] for each in aligned]
    points = project(unit(np.array([*path, *means], np.float32)), method, seed, progress)

    labels = [f"{word} ({name})" for name in models] + list(map(str, others))  # keys may be numbers
    title = title or str(word)
    formatter = TextFormatter([*labels, title])
    picture, axes = map_axes(points, SPACE)
    formatter.set(axes.title, title, MAX_TITLE)
    steps = len(path)
    colours = [COLOURS[3]] * steps + [COLOURS[0]] * len(others)
    x, y = points.T
    markers = axes.scatter(x, y, s=[30] * steps + [14] * len(others), c=colours, zorder=2)
    arrow: dict[str, Any] = {"arrowstyle": "-|>", "color": COLOURS[3], "linewidth": 1.2, "shrinkA": 3, "shrinkB": 3}
    lines = np.stack([points[: steps - 1], points[1:steps]], axis=1)
    for start, end in lines:
        axes.annotate("", end, start, arrowprops=arrow, zorder=1)
    place_labels(axes, points, labels, formatter, markers=markers, colours=colours, lines=lines, draw_all=True)
    return picture
