"""The lock of a folder of checkpoints: one run at a time, of this user."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import w2v
from tests.helpers import QUICK, SMALL, run, stopped
from w2v.training import checkpoint
from w2v.training.checkpoint import Checkpoints, latest
from w2v.training.lock import Lock


def test_a_lock_is_of_one_run_and_leaves_nothing(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    assert (tmp_path / ".lock").stat().st_mode & 0o777 == 0o600
    with pytest.raises(BlockingIOError):
        Lock(tmp_path)
    lock.release()
    assert list(tmp_path.iterdir()) == []
    Lock(tmp_path)  # which ends at once, as nothing refers to it
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".lock").symlink_to(tmp_path / "victim")
    with pytest.raises(w2v.W2VError, match="cannot write checkpoints in"):
        Checkpoints(tmp_path)
    assert not (tmp_path / "victim").exists()


def test_a_lock_that_a_killed_run_left_is_taken(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch(mode=0o644)  # as an archive unpacks it
    with Checkpoints(tmp_path), pytest.raises(w2v.W2VError, match="another run is writing checkpoints"):
        Checkpoints(tmp_path)


def test_the_lock_of_another_user_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = os.open

    def refused(path: str, *arguments: Any, **options: Any) -> int:
        if path == ".lock":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return system(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(w2v.W2VError, match=r"^\S+/\.lock is another user's: .* remove that file if no run uses"):
        Checkpoints(tmp_path)


FORKING = """
import os, sys
from w2v.training.checkpoint import Checkpoints
checkpoints = Checkpoints(sys.argv[1])
if not os.fork():
    print("lives", flush=True)
    sys.stdin.read()  # as long as the test
    sys.exit()
os.kill(os.getpid(), 9)
"""


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKING, tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "lives\n"
        assert process.wait() == -signal.SIGKILL
        with Checkpoints(tmp_path):
            pass


@pytest.mark.parametrize("begin", [[], ["--force"], ["--resume"]])
def test_a_folder_takes_the_checkpoints_of_one_run(sample: Path, tmp_path: Path, begin: list[str]) -> None:
    states = tmp_path / "states"
    if begin:
        stopped(states, sample)
    resuming = begin == ["--resume"]
    arguments = ["train", sample, *([*begin, states] if resuming else ["--checkpoint", states, *QUICK, *begin])]
    with Checkpoints(states, replace=True):
        there = checkpoint.files(states)
        message = f"w2v: another run is writing checkpoints in {states}: wait for its end, or name another folder\n"
        assert run(*arguments, "-o", tmp_path / "out.bin", code=1).stderr == message
        assert checkpoint.files(states) == there
    run(*arguments, "-o", tmp_path / "out.bin")


@pytest.mark.parametrize("other_runs", [True, False])
def test_a_folder_that_another_run_has_taken_is_left_to_it(
    sample: Path, tmp_path: Path, other_runs: bool, caplog: pytest.LogCaptureFixture
) -> None:
    states = tmp_path / "states"
    checkpoints = Checkpoints(states, "9chunks", replace=True)
    shutil.rmtree(states)
    other = Checkpoints(states)
    if other_runs:
        w2v.train(sample, checkpoint=checkpoints, **SMALL)
        assert checkpoint.files(states) == []
    w2v.train(sample, checkpoint=other, **SMALL | {"seed": 5})
    if not other_runs:  # its checkpoint stands
        w2v.train(sample, checkpoint=checkpoints, **SMALL)
    assert caplog.messages == [
        f"{states} was removed and now belongs to another run: this run writes no more checkpoints"
    ]
    assert latest(states).settings.seed == 5
    assert checkpoints.newest is None


@pytest.mark.parametrize("remove", [shutil.rmtree, lambda states: (states / ".lock").unlink()])
def test_a_lock_that_was_removed_is_made_again(sample: Path, tmp_path: Path, remove: Callable[[Path], None]) -> None:
    given = stopped(tmp_path / "given", sample)
    checkpoints = Checkpoints(tmp_path / "states")
    checkpoints.write(given)
    remove(tmp_path / "states")
    checkpoints.write(given)
    with pytest.raises(w2v.W2VError, match="another run is writing checkpoints"):
        Checkpoints(tmp_path / "states")
    assert checkpoint.files(tmp_path / "states")[-1] == checkpoints.newest


def test_a_lock_whose_file_was_removed_just_before_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, removed = fcntl.flock, list[Path]()

    def late(file: int, operation: int) -> None:
        if not removed:  # another run ends between opening the file and locking it
            removed.append(tmp_path / ".lock")
            removed[0].unlink()
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    lock = Lock(tmp_path)
    assert lock.holds()
    with pytest.raises(BlockingIOError):
        Lock(tmp_path)
