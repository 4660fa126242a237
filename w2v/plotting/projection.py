"""From word vectors to points of a map: PCA, t-SNE (openTSNE) or UMAP (umap-learn)."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError, install, one_line
from w2v.progress import Meter, Report
from w2v.system.files import temporary_folder

Projection = Literal["pca", "tsne", "umap"]

PERPLEXITY = 30  # of t-SNE: van der Maaten & Hinton (2008) suggest 5 to 50
NEIGHBOURS = 15  # of UMAP: its own default
EXAGGERATED, ITERATIONS = 250, 500  # of t-SNE: first with early exaggeration, then without
REPORTED = 10  # iterations between reports
MIN_POINTS = 4  # for t-SNE and UMAP to find neighbours
START_SCALE = 1e-4  # standard deviation of the points from which t-SNE starts (Kobak & Berens 2019)
START_WIDTH = 10.0  # largest coordinate of the points from which UMAP starts, as in its own spectral start


def project(
    matrix: NDArray[Any], method: Projection = "pca", seed: int = 1, progress: Report | None = None
) -> NDArray[np.float32]:
    """Project the rows of `matrix`, floats (n, D), to points of the plane: float32 (n, 2).

    The distances are Euclidean: scale rows to length 1 first for those of cosines. The same arguments give the same
    points; `seed` has no effect on PCA, whose components have the sign that makes their greatest coefficient positive.
    The others start from the two principal components. Fewer than MIN_POINTS different rows are projected by PCA
    whatever the method; missing components are 0. `progress` is called while t-SNE and UMAP work.

    Raises SettingsError for an unknown method, W2VError for values that are not finite or a library that is missing.
    """
    if method not in get_args(Projection):
        raise SettingsError(f'the projection must be "pca", "tsne" or "umap", not {method!r}')
    library = _library(method)
    rows = np.asarray(matrix, np.float64)
    if not np.isfinite(rows).all():
        raise W2VError("the vectors to project have values that are not numbers: the model has diverged")
    points = principal_components(rows)
    if method != "pca" and len(np.unique(points, axis=0)) >= MIN_POINTS:
        rows = rows / np.abs(rows).max()  # squares neither overflow nor vanish
        if method == "tsne":
            points = _tsne(library, rows, points, seed, progress)
        elif method == "umap":
            points = _umap(library, rows, points, seed, progress)
    return points.astype(np.float32)


def principal_components(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The two principal components of rows (n, D): float64 (n, 2), of mean 0."""
    points = np.zeros((len(rows), 2))
    centred = rows - rows[:1]  # first, so that equal rows become exactly 0
    if centred.any():
        centred -= centred.mean(axis=0)
        scaled = centred / np.abs(centred).max()  # squares neither overflow nor vanish
        axes = np.linalg.eigh(scaled.T @ scaled)[1][:, :-3:-1]  # (D, 2), or (1, 1)
        axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
        points[:, : axes.shape[1]] = centred @ axes
    return points


def _library(method: Projection) -> Any:
    """The module that does the work; None for PCA. Raises W2VError if it is missing."""
    try:
        if method == "tsne":
            import openTSNE

            return openTSNE
        if method == "umap":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it warns that Tensorflow is missing, which is not used
                _keep_code_apart()
                import umap

            return umap
    except ImportError as error:
        name = "t-SNE needs openTSNE" if method == "tsne" else "UMAP needs umap-learn"
        raise W2VError(f"{name}: {install('maps')}, or use the method pca") from error
    except Exception as error:  # of Numba, which reads its variables then
        raise W2VError(f"{method} cannot be used: {one_line(error)}") from error
    return None


def _keep_code_apart() -> None:
    """Give Numba a folder of this process for umap's machine code unless its own is, or can be made, this user's.

    Numba fails without such a folder, and runs what it finds there: without a home, in ./~ of the working folder.
    """
    import numba
    from numba.misc import appdirs

    config: Any = numba.config
    folders: Any = appdirs.AppDirs
    if config.CACHE_DIR:  # set by the user
        return
    folder = Path(folders("numba", appauthor=False).user_cache_dir)
    with suppress(OSError):
        if folder.is_absolute():
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            if folder.stat().st_uid == os.geteuid():
                return
    config.CACHE_DIR = _folder_of_this_process().name


@cache
def _folder_of_this_process() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="w2v-", dir=temporary_folder())


def _start(points: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """The points scaled to a largest coordinate of 1, with a little noise: equal ones would never separate."""
    noise = np.random.default_rng(seed).normal(scale=1e-4, size=points.shape)
    started: NDArray[np.float64] = points / np.abs(points).max() + noise
    return started


def _tsne(
    library: Any, rows: NDArray[np.float64], points: NDArray[np.float64], seed: int, progress: Report | None
) -> Any:
    start = _start(points, seed)
    meter = Meter(progress, "project")
    done = 0

    def report(*_: object) -> None:
        nonlocal done
        done += REPORTED
        meter(done, EXAGGERATED + ITERATIONS)

    fitted = library.TSNE(
        perplexity=min(PERPLEXITY, (len(rows) - 1) / 3),
        initialization=start / start[:, 0].std() * START_SCALE,
        early_exaggeration_iter=EXAGGERATED,
        n_iter=ITERATIONS,
        callbacks=report,
        callbacks_every_iters=REPORTED,
        random_state=seed,
        n_jobs=1,  # threads would add in varying order
    ).fit(rows)
    return np.asarray(fitted)


def _umap(
    library: Any, rows: NDArray[np.float64], points: NDArray[np.float64], seed: int, progress: Report | None
) -> Any:
    return library.UMAP(
        n_neighbors=min(NEIGHBOURS, len(rows) - 1),
        init=_start(points, seed) * START_WIDTH,
        random_state=seed,
        n_jobs=1,  # what it would choose itself for a random state, but with a warning
        tqdm_kwds={"disable": False, "file": _Bar(Meter(progress, "project")), "bar_format": "{n_fmt}/{total_fmt}"},
    ).fit_transform(rows)


class _Bar:
    """The file to which umap-learn writes its progress bar, the only report that it gives."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def write(self, text: str) -> None:
        if found := re.search(r"(\d+)/(\d+)", text):
            self._meter(int(found[1]), int(found[2]))

    def flush(self) -> None:
        """tqdm calls it."""
