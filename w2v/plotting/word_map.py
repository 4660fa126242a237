"""A map of words: words used in similar contexts are near each other."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError
from w2v.files import PathLike, lines
from w2v.plotting.figure import COLOURS, Lettering, Picture, set_title
from w2v.plotting.labels import place_labels
from w2v.plotting.options import CLUSTERS, WORDS, Groups
from w2v.plotting.projection import Projection, project
from w2v.progress import Report
from w2v.vectors.cosines import Vector, unit

if TYPE_CHECKING:
    from w2v.vectors.keyed import KeyedVectors

NAMING_WORDS = 3  # of a cluster, in the legend
ITERATIONS = 50  # of k-means
MAX_LEGEND = 30  # groups named
AREAS = (8.0, 70.0)  # of the markers of the rarest and the most frequent word, in square points
NAMES: dict[Projection, str] = {"pca": "two principal components", "tsne": "t-SNE", "umap": "UMAP"}


def read_sections(path: PathLike) -> dict[str, list[str]]:
    """The words of a file by section: words separated by spaces or lines, and a line ": name" before each section.

    Words before the first such line are in section "". Raises W2VError for a file that cannot be read or has no words.
    """
    sections: dict[str, list[str]] = {}
    name = ""
    for number, line in lines(path):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise W2VError(f"{path}, line {number}: {line[:60]!r} is not UTF-8") from None
        if text.startswith(":") and text.strip() != ":":
            name = text[1:].strip()
        else:
            sections.setdefault(name, []).extend(text.split())
    found = {name: words for name, words in sections.items() if words}
    if not found:
        raise W2VError(f'{path}: no words: separate them by spaces or lines, with ": name" before each section')
    return found


def word_map(
    vectors: KeyedVectors,
    words: Iterable[str] | Mapping[str, Sequence[str]] | None = None,
    *,
    top: int = WORDS,
    method: Projection = "pca",
    groups: Groups | None = None,
    clusters: int | None = None,
    seed: int = 1,
    title: str = "",
    progress: Report | None = None,
) -> Picture:
    """Draw words as points in the plane, by a projection of their unit vectors; frequent words have larger points.

    `words` are those to draw, optionally by section; by default the first `top` words. `groups` says what colours mean:
    sections, `clusters` (by default CLUSTERS) clusters by k-means, or frequency; by default sections if there are
    several and no number of clusters is given, otherwise clusters. Labels without space are left out, those of rare
    words first.

    Raises UnknownWordError for an unknown word, SettingsError for impossible options, W2VError if a library is missing
    or there is no word.
    """
    if groups not in (None, *get_args(Groups)):
        raise SettingsError(f'groups must be "sections", "clusters" or "frequency", not {groups!r}')
    if top < 1 or (clusters is not None and clusters < 1):
        raise SettingsError(f"{'top' if top < 1 else 'clusters'} must be at least 1")
    if clusters is not None and groups in ("sections", "frequency"):
        raise SettingsError(f'clusters has no effect with groups="{groups}"')
    words = [words] if isinstance(words, str) else words
    sections = words if isinstance(words, Mapping) else {"": vectors.first_words(top) if words is None else [*words]}
    section_of = {word: number for number, part in reversed([*enumerate(sections.values())]) for word in part}
    if not section_of:
        raise W2VError("no words to draw")
    vectors[section_of]  # raises for an unknown word
    names = sorted(section_of, key=vectors.key_to_index.__getitem__)  # the frequent ones first
    matrix = unit(vectors[names])
    points = project(matrix, method, seed, progress)
    occurrences = _occurrences(vectors, names)

    lettering = Lettering([*names, *sections])
    picture = Picture(10, 8.5)
    axes = picture.subplots()
    axes.set(xticks=[], yticks=[])
    axes.margins(0.05)
    axes.spines[:].set_color("#cccccc")
    set_title(axes, title or NAMES[method])
    style: dict[str, Any] = {"s": _areas(occurrences), "linewidths": 0.3, "edgecolors": "white"}
    if groups == "frequency":
        markers = axes.scatter(points[:, 0], points[:, 1], c=occurrences, norm=LogNorm(), cmap="viridis_r", **style)
        label = "1 / rank by frequency" if vectors.counts is None else "occurrences"
        picture.colorbar(markers, label=label, shrink=0.5, aspect=30, pad=0.01)
        colours = ["#222222"] * len(names)
    else:
        if groups == "sections" or (groups is None and clusters is None and len(sections) > 1):
            numbers, legend = np.array([section_of[name] for name in names]), list(sections)
        else:
            numbers = k_means(matrix, clusters or CLUSTERS, seed)
            legend = [_cluster_name(names, numbers == number) for number in range(numbers.max() + 1)]
        colours = [colour_of(number) for number in numbers.tolist()]
        markers = axes.scatter(points[:, 0], points[:, 1], c=colours, **style)
        if len(legend) > 1:
            _add_legend(picture, legend, lettering)
    place_labels(axes, points, names, lettering, markers=markers, colours=colours)
    return picture


def k_means(rows: Vector, clusters: int, seed: int) -> NDArray[np.int64]:
    """The cluster of each of n rows (n, D), int64 (n,), by k-means from k-means++ (Arthur & Vassilvitskii 2007).

    There are at most as many clusters as different rows; they are numbered from 0 in the order of their first rows.
    """
    from scipy.cluster.vq import kmeans2, vq  # slow to import

    random = np.random.default_rng(seed)
    matrix = rows.astype(np.float64)
    centres = matrix[:1]
    while len(centres) < clusters and (weights := vq(matrix, centres)[1] ** 2).any():
        centres = np.vstack([centres, matrix[random.choice(len(matrix), p=weights / weights.sum())]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a cluster has become empty, which is left out
        found = kmeans2(matrix, centres, minit="matrix", iter=ITERATIONS)[1]
    _, first, numbers = np.unique(found, return_index=True, return_inverse=True)
    renumbered: NDArray[np.int64] = np.argsort(np.argsort(first))[numbers]
    return renumbered


def colour_of(number: int) -> Any:
    """The colour of a group: those of COLOURS, then lighter ones, then again from the first."""
    colour = np.array(to_rgb(COLOURS[number % len(COLOURS)]))
    return tuple(colour if number // len(COLOURS) % 2 == 0 else (1 + colour) / 2)


def _cluster_name(names: Sequence[str], members: NDArray[np.bool_]) -> str:
    return ", ".join(names[place] for place in np.flatnonzero(members)[:NAMING_WORDS])


def _occurrences(vectors: KeyedVectors, names: Sequence[str]) -> NDArray[np.float64]:
    """How often each of n words occurs, (n,), or, if that is unknown, one over its rank."""
    rows = np.array([vectors.key_to_index[name] for name in names])
    return 1 / (rows + 1.0) if vectors.counts is None else np.maximum(vectors.counts[rows], 1.0)


def _areas(occurrences: NDArray[np.float64]) -> NDArray[np.float64]:
    logs = np.log(occurrences)
    shares = (logs - logs.min()) / (np.ptp(logs) or 1)
    areas: NDArray[np.float64] = AREAS[0] + (AREAS[1] - AREAS[0]) * shares
    return areas


def _add_legend(picture: Picture, names: Sequence[str], lettering: Lettering) -> None:
    """Name the groups below the map."""
    shown = list(names[:MAX_LEGEND])
    handles = [
        Line2D([], [], marker="o", linestyle="", markersize=5, color=colour_of(number)) for number in range(len(shown))
    ]
    if len(names) > len(shown):
        handles.append(Line2D([], [], linestyle=""))
        shown.append(f"and {len(names) - len(shown)} more")
    legend = picture.legend(handles, ["-"] * len(shown), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    for text, name in zip(legend.get_texts(), shown, strict=True):  # not as labels: matplotlib drops those with a _
        lettering.set(text, name)
