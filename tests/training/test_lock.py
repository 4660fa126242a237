"""The lock on a folder of checkpoints: one run at a time, and no access for other users."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import w2v
from tests.helpers import QUICK, SMALL, assert_mode, run, train_and_stop
from w2v._system.lock import Lock
from w2v._training import checkpoint_folder
from w2v._training.checkpoint_folder import CheckpointFolder, latest


def test_lock_is_exclusive_and_leaves_no_file(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    assert_mode(tmp_path / ".lock", 0o600)
    with pytest.raises(BlockingIOError):
        Lock(tmp_path)
    lock.release()
    assert list(tmp_path.iterdir()) == []
    Lock(tmp_path)  # released at once, because nothing refers to it
    assert list(tmp_path.iterdir()) == []


def test_symlink_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".lock").symlink_to(tmp_path / "victim")
    with pytest.raises(w2v.W2VError, match="cannot write checkpoints in"):
        CheckpointFolder(tmp_path)
    assert not (tmp_path / "victim").exists()


def test_lock_file_of_a_killed_run_can_be_locked(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch(mode=0o644)  # the mode after unpacking an archive
    with CheckpointFolder(tmp_path), pytest.raises(w2v.W2VError, match="another run is writing checkpoints"):
        CheckpointFolder(tmp_path)


def test_error_names_the_lock_file_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open

    def refuse(path: Path, *arguments: Any, **options: Any) -> int:
        if path == tmp_path / ".lock":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real_open(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(w2v.W2VError, match=r"^\S+/\.lock belongs to another user: .* remove this file if no run uses"):
        CheckpointFolder(tmp_path)


FORKING = """
import os, sys
from w2v._training.checkpoint_folder import CheckpointFolder
checkpoints = CheckpointFolder(sys.argv[1])
if not os.fork():
    print("child started", flush=True)
    sys.stdin.read()  # until the test ends
    sys.exit()
os.kill(os.getpid(), 9)
"""


def test_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKING, tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "child started\n"
        assert process.wait() == -signal.SIGKILL
        with CheckpointFolder(tmp_path):
            pass


@pytest.mark.parametrize("options", [[], ["--force"], ["--resume"]])
def test_only_one_run_writes_to_a_folder(sample: Path, tmp_path: Path, options: list[str]) -> None:
    states = tmp_path / "states"
    if options:
        train_and_stop(states, sample)
    resuming = options == ["--resume"]
    arguments = ["train", sample, *([*options, states] if resuming else ["--checkpoint", states, *QUICK, *options])]
    with CheckpointFolder(states, resumed_from=latest(states) if options else None):
        before = checkpoint_folder.files(states)
        message = f"w2v: another run is writing checkpoints in {states}: wait for its end, or name another folder\n"
        assert run(*arguments, "-o", tmp_path / "out.bin", code=1).stderr == message
        assert checkpoint_folder.files(states) == before
    run(*arguments, "-o", tmp_path / "out.bin")


@pytest.mark.parametrize("other_run_is_active", [True, False])
def test_folder_created_again_by_another_run_is_not_used(
    sample: Path, tmp_path: Path, other_run_is_active: bool, caplog: pytest.LogCaptureFixture
) -> None:
    states = tmp_path / "states"
    checkpoints = CheckpointFolder(states, "9chunks", replace=True)
    shutil.rmtree(states)
    other = CheckpointFolder(states)
    if other_run_is_active:
        w2v.train(sample, checkpoint=checkpoints, **SMALL)
        assert checkpoint_folder.files(states) == []
    w2v.train(sample, checkpoint=other, **SMALL | {"seed": 5})
    if not other_run_is_active:  # its checkpoint is in the folder
        w2v.train(sample, checkpoint=checkpoints, **SMALL)
    reason = "another run is writing" if other_run_is_active else r"\S+ belongs to another run"
    assert caplog.messages
    assert all(re.match(f"checkpoint not written: {reason}", message) for message in caplog.messages)
    assert latest(states).settings.seed == 5
    assert checkpoints.wait_for_newest() is None


@pytest.mark.parametrize("remove", [shutil.rmtree, lambda states: (states / ".lock").unlink()])
def test_removed_lock_is_created_again(sample: Path, tmp_path: Path, remove: Callable[[Path], None]) -> None:
    state = train_and_stop(tmp_path / "stopped", sample)
    checkpoints = CheckpointFolder(tmp_path / "states")
    checkpoints.write(state)
    remove(tmp_path / "states")
    checkpoints.write(state)
    with pytest.raises(w2v.W2VError, match="another run is writing checkpoints"):
        CheckpointFolder(tmp_path / "states")
    assert checkpoint_folder.files(tmp_path / "states")[-1] == checkpoints.wait_for_newest()


def test_lock_is_taken_again_if_its_file_is_removed_before_flock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    flock, removed = fcntl.flock, list[Path]()

    def remove_and_lock(file: int, operation: int) -> None:
        if not removed:  # another run ends between opening the file and locking it
            removed.append(tmp_path / ".lock")
            removed[0].unlink()
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", remove_and_lock)
    lock = Lock(tmp_path)
    assert lock.holds()
    with pytest.raises(BlockingIOError):
        Lock(tmp_path)
