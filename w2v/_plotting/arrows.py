"""Draw arrows between words: the path of a word through the models of several periods, and analogies.

Pairs of words with the same relation have parallel offsets (Mikolov et al. 2013, figure 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from w2v._errors import SettingsError, pluralise
from w2v._evaluation.analogies import section_pairs
from w2v._options import check_numbers
from w2v._plotting.figure import COLOURS, MAX_TITLE, Picture, TextFormatter, map_axes
from w2v._plotting.labels import place_labels
from w2v._plotting.projection import Projection, project
from w2v._plotting.words import PAIRS
from w2v._progress import Report
from w2v._system.files import PathLike
from w2v._vectors.align import in_one_system
from w2v._vectors.cosines import Floats, unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of
from w2v._vectors.unknown_words import UnknownWordError

NEAREST = 8  # of the word, in each model
RESTRICT_VOCAB = 20_000  # the nearest words are among this many most frequent words
PATH_SPACE, PAIRS_SPACE = 2.0, 3.5  # area of a labelled point with its arrow, relative to one without an arrow


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
    steps = len(path)
    lines = np.stack([points[: steps - 1], points[1:steps]], axis=1)
    sizes, colours = [30] * steps + [14] * len(others), [COLOURS[3]] * steps + [COLOURS[0]] * len(others)
    arrow = {"color": COLOURS[3], "linewidth": 1.2, "shrinkA": 3, "shrinkB": 3}
    return _draw(points, labels, title or str(word), PATH_SPACE, sizes, colours, lines, **arrow)


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
    colours = np.where(np.isin(np.arange(len(rows)), ends[:, 0]), COLOURS[0], COLOURS[3]).tolist()
    arrow = {"color": "#999999", "linewidth": 0.8, "shrinkA": 2, "shrinkB": 2}
    return _draw(points, words, title or name, PAIRS_SPACE, 14, colours, points[ends], **arrow)


def _draw(
    points: Floats, words: list[str], title: str, space: float, sizes: Any, colours: list[str], lines: Any, **arrow: Any
) -> Picture:
    """Draw labelled points (n, 2), and lines (m, 2, 2) as arrows."""
    formatter = TextFormatter([*words, title])
    picture, axes = map_axes(points, space)
    formatter.set(axes.title, title, MAX_TITLE)
    markers = axes.scatter(points[:, 0], points[:, 1], s=sizes, c=colours, zorder=2)
    for start, end in lines:
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", **arrow}, zorder=1)
    place_labels(axes, points, words, formatter, markers=markers, colours=colours, lines=lines, draw_all=True)
    return picture
