"""Project word vectors to the plane by PCA, t-SNE (openTSNE) or UMAP (umap-learn)."""

from __future__ import annotations

import re
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, W2VError, one_line, optional_package, out_of_memory
from w2v._progress import Meter, Report
from w2v._system.files import check_code_folder, temporary_folder

Projection = Literal["pca", "tsne", "umap"]

TSNE_PERPLEXITY = 30  # van der Maaten & Hinton (2008) suggest 5 to 50
TSNE_EXAGGERATED, TSNE_ITERATIONS = 250, 500  # iterations with early exaggeration, then without
TSNE_REPORT_EVERY = 10  # iterations between progress reports
TSNE_START_STD = 1e-4  # standard deviation of the initial points (Kobak & Berens 2019)
UMAP_NEIGHBOURS = 15  # umap-learn's default
UMAP_START_MAX = 10.0  # largest coordinate of the initial points, as in umap-learn's spectral initialisation
MIN_POINTS = 4  # t-SNE and UMAP need at least this many different points to find neighbours


def project(
    matrix: NDArray[Any], method: Projection = "pca", seed: int = 1, progress: Report | None = None
) -> NDArray[np.float32]:
    """Project the rows of `matrix`, floats (n, D), to points in the plane.

    All methods use Euclidean distances: scale the rows to length 1 first to use cosines. The same arguments always
    give the same points. PCA makes the largest coefficient of each component positive. t-SNE and UMAP start from the
    two principal components.

    Args:
        method: Fewer than MIN_POINTS different rows are projected by PCA, whatever the method.
        seed: The seed of t-SNE and UMAP; it has no effect on PCA.
        progress: Called in phase "project" by t-SNE and UMAP.

    Returns:
        The points, float32 (n, 2). If the rows span fewer than two dimensions, the missing coordinates are 0.

    Raises:
        SettingsError: The method is unknown.
        W2VError: A value is not finite, or the library of the method is not installed.
    """
    if method not in get_args(Projection):
        raise SettingsError(f'the projection must be "pca", "tsne" or "umap", not {method!r}')
    library = _library(method)
    rows = np.asarray(matrix, np.float64)
    if not np.isfinite(rows).all():
        raise W2VError("the vectors to project contain values that are not numbers: the model has diverged")
    points = principal_components(rows)
    if method != "pca" and len(np.unique(points, axis=0)) >= MIN_POINTS:
        rows = rows / np.abs(rows).max()  # squares neither overflow nor vanish
        if method == "tsne":
            points = _tsne(library, rows, points, seed, progress)
        elif method == "umap":
            points = _umap(library, rows, points, seed, progress)
    return points.astype(np.float32)


def principal_components(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first two principal components of rows (n, D): float64 (n, 2), with mean 0."""
    points = np.zeros((len(rows), 2))
    centred = rows - rows[:1]  # before subtracting the mean, so that equal rows become exactly 0
    if centred.any():
        centred -= centred.mean(axis=0)
        scaled = centred / np.abs(centred).max()  # squares neither overflow nor vanish
        axes = np.linalg.eigh(scaled.T @ scaled)[1][:, :-3:-1]  # largest eigenvalues: (D, 2), or (1, 1) if D is 1
        axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
        points[:, : axes.shape[1]] = centred @ axes
    return points


def _library(method: Projection) -> Any:
    """Import the library of a method; return None for PCA, which needs none."""
    if method == "pca":
        return None
    name = "t-SNE needs openTSNE" if method == "tsne" else "UMAP needs umap-learn"
    with optional_package(name, "maps", hint=", or use the method pca"), warnings.catch_warnings():
        try:
            if method == "tsne":
                return import_module("openTSNE")
            warnings.simplefilter("ignore")  # umap warns that Tensorflow is missing, which is not needed here
            _secure_numba_cache()
            return import_module("umap")
        except Exception as error:  # Numba reads its environment variables on import, and raises many kinds of errors
            if isinstance(error, ImportError) or out_of_memory(error):
                raise
            raise W2VError(f"{method} cannot be used: {one_line(error)}") from error


def _secure_numba_cache() -> None:
    """Let Numba cache umap's machine code in a temporary folder, unless its default folder belongs to this user.

    Numba fails without a cache folder.
    """
    import numba
    from numba.misc import appdirs

    config: Any = numba.config
    folders: Any = appdirs.AppDirs
    if config.CACHE_DIR:  # set by the user
        return
    folder = Path(folders("numba", appauthor=False).user_cache_dir)
    with suppress(OSError):
        check_code_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        return
    config.CACHE_DIR = _process_folder().name


@cache
def _process_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder that exists as long as this process."""
    return tempfile.TemporaryDirectory(prefix="w2v-", dir=temporary_folder())


def _initial_points(points: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Scale the points to a largest coordinate of 1 and add a little noise: equal points would never separate."""
    noise = np.random.default_rng(seed).normal(scale=1e-4, size=points.shape)
    initial: NDArray[np.float64] = points / np.abs(points).max() + noise
    return initial


def _tsne(
    library: Any, rows: NDArray[np.float64], points: NDArray[np.float64], seed: int, progress: Report | None
) -> Any:
    start = _initial_points(points, seed)
    meter = Meter(progress, "project")
    done = 0

    def report(*_: object) -> None:
        nonlocal done
        done += TSNE_REPORT_EVERY
        meter(done, TSNE_EXAGGERATED + TSNE_ITERATIONS)

    fitted = library.TSNE(
        perplexity=min(TSNE_PERPLEXITY, (len(rows) - 1) / 3),
        initialization=start / start[:, 0].std() * TSNE_START_STD,
        early_exaggeration_iter=TSNE_EXAGGERATED,
        n_iter=TSNE_ITERATIONS,
        callbacks=report,
        callbacks_every_iters=TSNE_REPORT_EVERY,
        random_state=seed,
        n_jobs=1,  # several threads would add floats in varying order
    ).fit(rows)
    return np.asarray(fitted)


def _umap(
    library: Any, rows: NDArray[np.float64], points: NDArray[np.float64], seed: int, progress: Report | None
) -> Any:
    return library.UMAP(
        n_neighbors=min(UMAP_NEIGHBOURS, len(rows) - 1),
        init=_initial_points(points, seed) * UMAP_START_MAX,
        random_state=seed,
        n_jobs=1,  # umap-learn would choose 1 itself for a random state, but with a warning
        tqdm_kwds={"disable": False, "file": _BarFile(Meter(progress, "project")), "bar_format": "{n_fmt}/{total_fmt}"},
    ).fit_transform(rows)


class _BarFile:
    """A file object that receives umap-learn's progress bar: umap-learn has no progress callback."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def write(self, text: str) -> None:
        if match := re.search(r"(\d+)/(\d+)", text):
            self._meter(int(match[1]), int(match[2]))

    def flush(self) -> None:
        """Do nothing; tqdm calls this method."""
