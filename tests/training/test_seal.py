"""Whose checkpoint it is: paths of one's own are used again, those of a stranger never."""

import contextlib
import json
import logging
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import SMALL, Stop, interrupted, run, stop_at, stopped
from w2v.formats import native
from w2v.training import checkpoint, seal
from w2v.training.checkpoint import latest


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another user's state folder: one without a key."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_seal_is_of_one_key_one_folder_and_one_content(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seal.seal(tmp_path, "sum") == ""
    assert not seal.is_sealed("", tmp_path, "sum")  # no key
    seal.make_key()
    assert (state / "w2v" / "key").stat().st_mode & 0o777 == 0o600
    assert (state / "w2v").stat().st_mode & 0o077 == 0
    found = seal.seal(tmp_path, "sum")
    seal.make_key()
    assert seal.is_sealed(found, tmp_path, "sum")
    (tmp_path / "link").symlink_to(tmp_path)
    assert seal.is_sealed(found, tmp_path / "link", "sum")
    assert not seal.is_sealed(found, tmp_path / "other", "sum")
    assert not seal.is_sealed(found, tmp_path, "other")
    for wrong in ("", "é", found[:-1]):
        assert not seal.is_sealed(wrong, tmp_path, "sum")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    seal.make_key()
    assert not seal.is_sealed(found, tmp_path, "sum")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda key: key.chmod(0o644), "must be a file of this user with mode 0600"),
        (lambda key: key.write_bytes(b"short"), "holds no key: remove it"),
        (lambda key: (key.unlink(), key.symlink_to("elsewhere")), "symbolic links"),
        (lambda key: (key.unlink(), key.mkdir(mode=0o700)), "must be a file"),
        (lambda key: shutil.rmtree(key.parent) or key.parent.touch(), "File exists"),
    ],
)
def test_a_key_that_others_may_know_is_no_key(
    state: Path, tmp_path: Path, spoil: Callable[[Path], Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    seal.make_key()
    assert caplog.records == []
    spoil(state / "w2v" / "key")
    assert seal.seal(tmp_path, "sum") == ""
    seal.make_key()
    (said,) = caplog.messages
    assert caplog.records[0].levelno == logging.WARNING
    assert re.fullmatch(f"no key .*{message}.*; --resume will need the corpus and -o again", said)


def test_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for unset in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", unset)
        assert seal.key_path() == tmp_path / ".local" / "state" / "w2v" / "key"


# -- resuming -------------------------------------------------------------------------------


def stopped_command(sample: Path, folder: Path, *options: object) -> None:
    """The checkpoints of a run of the command line that ended before its model was written."""
    interrupted(sample, "--vector-size", 16, "--epochs", 3, "--workers", 1, "--checkpoint", folder, *options)


@pytest.mark.parametrize("how", ["another key", "no key", "another folder", "changed", "no seal"])
def test_a_strangers_checkpoint_writes_and_reads_nothing_by_itself(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    victim, states, cache = tmp_path / "bashrc", tmp_path / "states", tmp_path / "cache"
    stopped_command(sample, states, "-o", tmp_path / "out.bin", "--save-vocab", victim, "--force", "--cache", cache)
    shutil.rmtree(cache)
    victim.write_bytes(b"mine")
    if how.endswith("key"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        seal.make_key() if how == "another key" else None
    elif how == "another folder":
        states = states.rename(tmp_path / "moved")
    else:
        forge(states, how)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    error = run("train", "--resume", states, "--force", code=2).stderr
    assert "were not written there by this user, so the paths in them are not used: give CORPUS" in error
    assert f"CORPUS ({sample} when the run began) and -o (" in error
    assert "give -o (" in run("train", "--resume", states, sample, "--force", code=2).stderr
    assert "give CORPUS (" in run("train", "--resume", states, "-o", tmp_path / "new.bin", code=2).stderr
    with pytest.raises(w2v.W2VError, match="was not written by this user to this folder"):
        w2v.resume(states)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    run("train", "--resume", states, sample, "-o", tmp_path / "new.bin", "--force")
    assert victim.read_bytes() == b"mine"
    assert not cache.exists()
    w2v.train(sample, **SMALL).save(tmp_path / "whole.bin")
    assert (tmp_path / "new.bin").read_bytes() == (tmp_path / "whole.bin").read_bytes()


def forge(folder: Path, how: str) -> None:
    """Change checkpoints, or who may, as somebody without the key can."""
    for path in checkpoint.files(folder):
        arrays, metadata = native.read_native(path)
        content = json.loads(arrays["run"].tobytes())
        if how == "changed":
            content["origin"]["notes"]["output"] += "2"
        elif how == "no seal":
            del metadata["seal"]
        elif how == "other vectors":
            arrays["vectors"] *= 2
        arrays["run"] = np.frombuffer(json.dumps(content).encode(), np.uint8)
        metadata["checksum"] = checkpoint.checksum(arrays, metadata["settings"])
        native.write_native(path, arrays, metadata)
        path.chmod(0o664 if how == "open to a group" else 0o600)


@pytest.mark.parametrize("how", ["other vectors", "open to a group", "as it was"])
def test_matrices_that_others_may_have_changed_are_not_trusted(sample: Path, tmp_path: Path, how: str) -> None:
    stopped(tmp_path, sample)
    assert [path.stat().st_mode & 0o022 for path in checkpoint.files(tmp_path)] == [0, 0]
    forge(tmp_path, how)
    assert latest(tmp_path).trusted == (how == "as it was")


def test_resuming_does_not_seal_what_a_stranger_wrote(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path / "stranger"))
        notes = {"output": str(tmp_path / "out.bin"), "save_vocab": str(tmp_path / "bashrc"), "force": True}
        stopped(tmp_path / "states", sample, notes=notes, cache=tmp_path / "cache")
    assert not latest(tmp_path / "states").trusted
    here = tmp_path / "here"
    shutil.copy(sample, here)
    with contextlib.suppress(Stop):
        w2v.resume(tmp_path / "states", here, progress=stop_at(0.8))
    found = latest(tmp_path / "states")
    assert found.trusted
    assert (found.origin.sources, found.origin.cache, found.origin.notes) == ([str(here)], None, {})
    assert found.origin == replace(found.origin, errors="strict", checksum=found.origin.checksum)


def test_force_is_never_taken_from_a_checkpoint(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.bin"
    out.write_bytes(b"old")
    stopped_command(sample, tmp_path / "states", "-o", out, "--force")
    refused = run("train", "--resume", tmp_path / "states", code=1).stderr
    assert "out.bin exists: name another file with -o, or add --force" in refused
    assert out.read_bytes() == b"old"
    run("train", "--resume", tmp_path / "states", "--force")
    assert len(w2v.load(out)) > 2000
