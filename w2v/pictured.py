"""The methods of vectors whose work is done in rooms that build on vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from w2v.shown import Page

functions: dict[str, Callable[..., Any]] = {}  # by method; w2v/__init__.py, which knows all rooms, adds them


class Pictured:
    """Vectors that can be drawn and explored."""

    def plot(self, words: Iterable[str] | Mapping[str, Sequence[str]] | None = None, **options: Any) -> Figure:
        """A map of words, optionally by section, by default of 200 frequent ones: a matplotlib figure.

        `options` are top=200, the number of words; skip, how many of the most frequent ones are left out (100, or fewer
        in a small model); method="pca", or "tsne" or "umap"; groups, what colours mean:
        "sections", "clusters" or "frequency"; clusters, their number (8); seed=1; title; progress, called while t-SNE
        and UMAP work. Raises UnknownWordError, SettingsError for impossible options, W2VError if a library is missing.
        """
        figure: Figure = functions["plot"](self, words, **options)
        return figure

    def explore(self, other: Self | None = None, **options: Any) -> Page:
        """A page with neighbours, analogies and a map, of one or two models; a notebook displays it.

        `options`, with their defaults, are top=10_000, the number of words; method="pca", or "tsne" or "umap", how
        their vectors are projected to the map; progress, called while t-SNE and UMAP work. The page's save(path) writes
        one HTML file. Raises SettingsError, or W2VError if a library is missing or a vector is not finite.
        """
        models = {"vectors": self} if other is None else {"vectors": self, "other": other}
        page: Page = functions["explore"](models, **options)
        return page
