"""`w2v train` as one of several ranks of an MPI job, with simulated ranks. See tests/training/test_distributed.py."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import w2v
from tests.helpers import run
from w2v._cli.commands import training


@pytest.mark.parametrize("is_root", [True, False])
def test_only_the_root_writes_files_and_messages(
    is_root: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = w2v.train([["a", "b", "c"]] * 40, vector_size=3, epochs=1, sample=0, workers=1)
    reports: list[Any] = []

    @contextmanager
    def join_ranks() -> Iterator[Any]:
        yield SimpleNamespace(is_root=is_root, collective_errors=nullcontext)

    @contextmanager
    def open_training(*_: Any, **__: Any) -> Iterator[Any]:
        runs = {"words": SimpleNamespace(inputs=SimpleNamespace(types=SimpleNamespace(is_text=True)))}
        yield SimpleNamespace(runs=runs, train=reports.append, model=lambda: trained, checkpoint_folders=[])

    monkeypatch.setattr(training, "join_ranks", join_ranks)
    monkeypatch.setattr(training, "open_training", open_training)
    (tmp_path / "text").write_text("a b c\n")
    files = {"-o": "new.bin", "--save-config": "new.toml", "--save-vocab": "new.words"}
    options = [each for option, name in files.items() for each in (option, tmp_path / name)]
    result = run("train", tmp_path / "text", *options)
    assert {path.name for path in tmp_path.iterdir()} == {"text", *(files.values() if is_root else ())}
    assert ("new.bin" in result.stdout) == is_root
    assert result.stderr == ""
    (tmp_path / "old.bin").write_text("old")
    result = run("train", tmp_path / "text", "-o", tmp_path / "old.bin", code=1 if is_root else 0)
    assert ("old.bin exists" in result.stderr) == is_root
    assert (tmp_path / "old.bin").read_text() == "old"
