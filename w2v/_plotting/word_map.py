"""Draw a word map, where words from similar contexts are close to each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from w2v._detect import decode_line, read_lines
from w2v._errors import SettingsError, W2VError
from w2v._options import check_numbers
from w2v._plotting.figure import MAX_TITLE, Picture, TextFormatter, add_legend, colour_of, map_axes
from w2v._plotting.labels import place_labels
from w2v._plotting.projection import Projection, project
from w2v._plotting.words import CLUSTERS, WORDS, WORDS_PER_CLUSTER, Groups, cluster_words, default_skip
from w2v._progress import Report
from w2v._system.files import PathLike
from w2v._text.words import as_list
from w2v._vectors.cosines import unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of
from w2v._vectors.unknown_words import UnknownWordError

AREAS = (8.0, 70.0)  # areas of the markers of the rarest and the most frequent word, in square points
METHOD_NAMES: dict[Projection, str] = {"pca": "two principal components", "tsne": "t-SNE", "umap": "UMAP"}


def read_sections(path: PathLike) -> dict[str, list[str]]:
    """Read the words of a file by section. A line ": name" begins a section; spaces or line breaks separate words.

    Words before the first section are in section "".

    Raises:
        W2VError: The file cannot be read, is not UTF-8, or has no words.
    """
    sections: dict[str, list[str]] = {}
    name = ""
    for number, line in read_lines(path):
        text = decode_line(path, number, line)
        if text.startswith(":") and text.strip() != ":":
            name = text[1:].strip()
        else:
            sections.setdefault(name, []).extend(text.split())
    sections = {name: words for name, words in sections.items() if words}
    if not sections:
        raise W2VError(f'{path}: no words: separate them by spaces or lines, with ": name" before each section')
    return sections


def word_map(
    model: KeyedVectors | HasWordVectors,
    words: Iterable[str] | Mapping[str, Sequence[str]] | None = None,
    *,
    topn: int = WORDS,
    skip: int | None = None,
    method: Projection = "pca",
    groups: Groups | None = None,
    clusters: int | None = None,
    seed: int = 1,
    title: str = "",
    progress: Report | None = None,
) -> Picture:
    """Draw words as points in the plane by projecting their unit vectors. Frequent words have larger points.

    If labels would overlap, the labels of rare words are left out.

    Args:
        model: A model or vectors.
        words: The words to draw: a list, or a mapping from the names of sections to lists. By default, frequent words.
        topn: Without `words`, the number of words to draw.
        skip: Without `words`, the number of most frequent words to leave out; by default, see `default_skip`.
        method: The projection; see `project`.
        groups: The meaning of the colours: "sections", "clusters" (by k-means) or "frequency". By default, sections if
            there are several and `clusters` is not given; otherwise clusters.
        clusters: The number of clusters; by default CLUSTERS, or fewer for few words.
        seed: The seed of the projection and of k-means.
        title: The title; by default, the name of the projection.
        progress: Called while t-SNE and UMAP run.

    Returns:
        A matplotlib figure. Its save(path) writes PNG, SVG or PDF.

    Raises:
        UnknownWordError: A word is not in the vocabulary.
        SettingsError: An option is invalid.
        W2VError: The list of words is empty, or a library is not installed.
    """
    vectors = vectors_of(model)
    if groups not in (None, *get_args(Groups)):
        raise SettingsError(f'groups must be "sections", "clusters" or "frequency", not {groups!r}')
    check_numbers(seed=seed, clusters=clusters)
    if clusters is not None and groups in ("sections", "frequency"):
        raise SettingsError(f'clusters has no effect with groups="{groups}"')
    sections = _sections(vectors, words, topn, skip)
    # In reverse order, so that a word in several sections belongs to the first of them.
    section_of = {word: number for number, part in reversed([*enumerate(sections.values())]) for word in part}
    if not section_of:
        raise W2VError("no words to draw")
    rows = {word: row for word in section_of if (row := vectors.row_of(word)) is not None}
    if len(rows) < len(section_of):
        raise UnknownWordError([word for word in section_of if word not in rows], vectors.key_to_index)
    drawn = sorted(rows, key=rows.__getitem__)  # the most frequent first
    matrix, drawn_rows = unit(vectors[drawn]), np.array([rows[word] for word in drawn])
    counts = vectors.counts
    occurrences = 1 / (drawn_rows + 1.0) if counts is None else np.maximum(counts[drawn_rows], 1.0)
    points = project(matrix, method, seed, progress)
    title = title or METHOD_NAMES[method]
    formatter = TextFormatter([*drawn, *sections, title])
    picture, axes = map_axes(points)
    formatter.set(axes.title, title, MAX_TITLE)
    x, y = points.T
    style: dict[str, Any] = {"s": _areas(occurrences), "linewidths": 0.3, "edgecolors": "white"}
    if groups == "frequency":
        markers = axes.scatter(x, y, c=occurrences, norm="log", cmap="viridis_r", **style)
        label = "1 / rank by frequency" if vectors.counts is None else "occurrences"
        picture.colorbar(markers, label=label, shrink=0.5, aspect=30, pad=0.01)
        colours: list[Any] = ["#222222"] * len(drawn)
    else:
        if groups == "sections" or (groups is None and clusters is None and len(sections) > 1):
            numbers, legend = np.array([section_of[word] for word in drawn]), list(sections)
        else:
            clusters = clusters or max(1, min(CLUSTERS, len(drawn) // WORDS_PER_CLUSTER))
            numbers, legend = cluster_words(drawn, matrix, clusters, seed)
        colours = [colour_of(number) for number in numbers.tolist()]
        markers = axes.scatter(x, y, c=colours, **style)
        if len(legend) > 1:
            add_legend(picture, legend, formatter)
    place_labels(axes, points, drawn, formatter, markers=markers, colours=colours)
    return picture


def _sections(
    vectors: KeyedVectors, words: Iterable[str] | Mapping[str, Sequence[str]] | None, topn: int, skip: int | None
) -> Mapping[str, Sequence[str]]:
    """Return the words to draw by section; without sections, in section ""."""
    check_numbers(topn=topn, skip=skip)
    if words is None:
        start = default_skip(len(vectors), topn) if skip is None else skip
        words = vectors.first_words(start + topn)[start:]
    if isinstance(words, Mapping):
        return {name: as_list(part) for name, part in words.items()}
    return {"": [words] if isinstance(words, str) else [*words]}


def _areas(occurrences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the areas of the markers, which grow with the logarithm of the counts."""
    logs = np.log(occurrences)
    shares = (logs - logs.min()) / (np.ptp(logs) or 1)
    areas: NDArray[np.float64] = AREAS[0] + (AREAS[1] - AREAS[0]) * shares
    return areas
