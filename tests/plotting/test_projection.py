"""Projections to the plane: finite for every matrix, and reproducible."""

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, get_args

import numba
import numpy as np
import pytest

from w2v._errors import SettingsError, W2VError
from w2v._plotting.projection import UMAP_START_MAX, Projection, project
from w2v._progress import Progress

MATRICES = {
    "empty": np.zeros((0, 5)), "one": np.ones((1, 5)), "two": np.eye(2), "three": np.eye(3),
    "one-dimension": np.arange(4.0)[:, None], "equal": np.full((20, 3), 0.1), "zero": np.zeros((20, 3)),
    "large": 1e30 * np.eye(6), "small": 1e-30 * np.eye(6), "repeated": np.repeat(np.eye(6), 3, axis=0),
}  # fmt: skip


@pytest.fixture(autouse=True)
def openTSNE_without_pynndescent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make openTSNE's import of pynndescent fail: w2v does not use it, and it may compile for half a minute."""
    monkeypatch.setitem(sys.modules, "pynndescent", None)


@pytest.mark.parametrize("method", ["pca", "tsne"])
@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_points_are_finite_for_every_matrix(matrix: np.ndarray, method: Projection) -> None:
    points = project(matrix.astype(np.float32), method)
    assert points.dtype == np.float32
    assert points.shape == (len(matrix), 2)
    assert np.isfinite(points).all()


def test_pca_gives_the_principal_components_with_fixed_signs() -> None:
    generator = np.random.default_rng(5)
    axes = np.linalg.qr(generator.normal(size=(7, 7)))[0]
    rows = generator.normal(size=(300, 7)) * [9, 5, 1, 1, 1, 1, 1] @ axes.T + 3
    points = project(rows)
    left, values, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(points), np.abs(left[:, :2] * values[:2]), rtol=1e-4, atol=1e-4)
    components = np.linalg.lstsq(points, rows - rows.mean(axis=0))[0]
    assert (components[np.arange(2), np.abs(components).argmax(axis=1)] > 0).all()


def test_tsne_separates_clusters_and_is_reproducible() -> None:
    generator = np.random.default_rng(5)
    groups = np.repeat(np.arange(3), 15)
    rows = (10 * np.eye(3, 8)[groups] + generator.normal(size=(45, 8))).astype(np.float32)
    reports: list[Progress] = []
    points = project(rows, "tsne", seed=3, progress=reports.append)
    assert (reports[-1].phase, reports[-1].unit, reports[-1].done) == ("project", "iterations", reports[-1].total)
    assert (points == project(rows, "tsne", seed=3)).all()
    assert (points != project(rows, "tsne", seed=4)).any()
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (groups[distances.argmin(axis=1)] == groups).all()


def test_umap_gets_the_arguments_that_make_it_reproducible(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake replaces the library, which would compile for half a minute."""
    arguments: dict[str, Any] = {}

    class UMAP:
        def __init__(self, **options: Any) -> None:
            arguments.update(options)

        def fit_transform(self, rows: np.ndarray) -> np.ndarray:
            assert np.abs(rows).max() == 1
            for text in ("\r0/20", "\r15/20", "\n"):  # the output of tqdm
                arguments["tqdm_kwds"]["file"].write(text)
            return rows[:, :2].astype(np.float32)

    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=UMAP))
    rows = np.random.default_rng(2).normal(size=(10, 4))
    reports: list[Progress] = []
    points = project(rows, "umap", seed=8, progress=reports.append)
    np.testing.assert_allclose(points, rows[:, :2] / np.abs(rows).max(), rtol=1e-6)
    assert [(report.phase, report.done, report.total) for report in reports] == [("project", n, 20) for n in (0, 15)]
    start = arguments.pop("init")
    del arguments["tqdm_kwds"]
    assert arguments == {"n_neighbors": 9, "random_state": 8, "n_jobs": 1}
    assert np.corrcoef(start.ravel(), project(rows).ravel())[0, 1] > 0.999
    assert np.abs(start).max() == pytest.approx(UMAP_START_MAX, abs=0.01)


@pytest.mark.parametrize("library", ["openTSNE", "umap"])
def test_neighbours_are_searched_only_among_four_different_rows(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[np.ndarray] = []

    class Fake:
        def __init__(self, **options: Any) -> None:
            starts.append(options.get("init", options.get("initialization")))

        def fit(self, rows: np.ndarray) -> np.ndarray:
            return np.full((len(rows), 2), 7.0)

        fit_transform = fit

    monkeypatch.setitem(sys.modules, library, types.SimpleNamespace(TSNE=Fake, UMAP=Fake))
    method: Projection = "umap" if library == "umap" else "tsne"
    few, enough = (np.repeat(np.eye(different), 5, axis=0) for different in (3, 4))
    np.testing.assert_array_equal(project(few, method), project(few))
    assert (project(enough, method) == 7).all()
    assert len(starts) == 1
    assert len(np.unique(starts[0], axis=0)) == 20  # equal rows start at different points


def test_numba_keeps_the_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace())
    project(np.eye(1), "umap")
    assert str(tmp_path) == numba.config.CACHE_DIR


@pytest.mark.parametrize(
    ("folder", "user", "trusted"),
    [("/proc/none", 0, False), ("~/none", 0, False), ("{}/own", 0, True), ("{}/own", 1, False)],
)
def test_numba_caches_machine_code_only_in_a_folder_of_this_user(
    folder: str, user: int, trusted: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", folder.format(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + user)
    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace())
    project(np.eye(1), "umap")
    assert (numba.config.CACHE_DIR == "") == trusted
    if not trusted:
        assert Path(numba.config.CACHE_DIR).stat().st_mode & 0o777 == 0o700
        assert not Path(numba.config.CACHE_DIR).is_relative_to(tmp_path)
    assert not Path("~").exists()


def test_error_for_an_invalid_numba_variable_is_one_line() -> None:
    script = "import numpy; from w2v._plotting.projection import project; project(numpy.eye(3), 'umap')"
    variables = os.environ | {"NUMBA_NUM_THREADS": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=variables)
    assert done.stderr.splitlines()[-1].startswith("w2v.W2VError: umap cannot be used: ")


def test_unknown_methods_and_nan_are_refused() -> None:
    with pytest.raises(SettingsError, match="mds"):
        project(np.eye(3), "mds")  # type: ignore[arg-type]
    with pytest.raises(W2VError, match="not numbers"):
        project(np.array([[np.nan, 1.0]]))
    assert get_args(Projection) == ("pca", "tsne", "umap")
