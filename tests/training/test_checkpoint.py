"""Checkpoints: a run that is stopped and goes on ends as if it had never been stopped."""

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import w2v
from tests.helpers import CYTHON_LOSSES, SMALL, Stop, assert_same, plan_for, run, start, stop_at, stopped, wait_for
from w2v import memory
from w2v._kernels import MAX_CHUNK_IDS
from w2v.formats import native
from w2v.settings import ModelName
from w2v.threads import NoThread, Thread
from w2v.training import checkpoint
from w2v.training import run as running
from w2v.training.checkpoint import Checkpoints, interval, latest
from w2v.training.run import Run, threads_memory

MODELS = [{"model": model, "loss": loss} for model in get_args(ModelName) for loss in CYTHON_LOSSES]
FEW = {"max_vocab": 300}  # words, for losses that take all or many of them


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "POLL", 0.002)


def stopped_again(folder: Path, share: float) -> None:
    """Resumes a run and stops it after this share of the whole; again, as above, where it has ended."""
    before = {path: path.read_bytes() for path in checkpoint.files(folder)}
    for _ in range(20):
        try:
            w2v.resume(folder, progress=stop_at(share))
        except Stop:
            return
        for path in checkpoint.files(folder):
            path.unlink()
        for path, content in before.items():
            path.write_bytes(content)
    pytest.fail("each run had ended before it was looked at")


# -- going on -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", MODELS, ids=str)
def test_a_resumed_run_ends_with_the_same_bits(sample: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    options |= FEW if options["loss"] in ("softmax", "class") else {}
    whole = w2v.train(sample, **SMALL | options)
    stopped(tmp_path, sample, 0.1, **options)
    stopped_again(tmp_path, 0.5)  # in a later epoch
    resumed = w2v.resume(tmp_path)
    assert_same(resumed, whole)
    assert resumed.settings.as_dict() == whole.settings.as_dict()
    assert_same(w2v.resume(tmp_path), whole)  # which has nothing left to do


@pytest.mark.parametrize("options", [MODELS[0], MODELS[-1]], ids=str)
def test_checkpoints_change_nothing(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(running, "POLL", 0.001)
    options |= FEW if options["loss"] in ("softmax", "class") else {}
    whole = w2v.train(sample, **SMALL | options)
    for folder in (tmp_path / str(number) for number in range(20)):
        assert_same(w2v.train(sample, checkpoint=folder, checkpoint_every="0.005s", **SMALL | options), whole)
        if int(latest(folder).path.stem[-6:]) > 1:
            return
    pytest.fail("each run had ended before a checkpoint was due")


def test_several_workers_train_every_token_through_checkpoints_and_stops(sample: Path, tmp_path: Path) -> None:
    stopped(tmp_path, sample, 0.3, workers=3)
    model = w2v.resume(tmp_path)
    assert model.metrics["tokens_trained"] == 3 * model.metrics["tokens"]
    assert None not in model.metrics["loss"]
    assert model.metrics["loss"][0] > model.metrics["loss"][2]


def test_lists_of_words_are_given_again(sample: Path, tmp_path: Path) -> None:
    lists = [line.split() for line in sample.read_text("utf-8").splitlines()]
    whole = w2v.train(lists, **SMALL)
    stopped(tmp_path, lists)
    with pytest.raises(w2v.W2VError, match="list of sentences: give it again"):
        w2v.resume(tmp_path)
    assert_same(w2v.resume(tmp_path, lists), whole)


def test_words_are_made_in_the_same_way_after_a_stop(sample: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.jsonl"
    lines = sample.read_text("utf-8").splitlines()
    text.write_text("".join(json.dumps({"t": f"<p>{line.title()}, 1</p>"}) + "\n" for line in lines))
    options = {"column": "t", "lower": True, "tokenize": "words", "digits": "spell", "strip_markup": True}
    found = stopped(tmp_path / "states", text, **options)
    assert w2v.load(found.path).words_in("Paris, 7!") == ["paris", "seven"]
    again = w2v.resume(tmp_path / "states")
    assert again.text == w2v.train(text, **SMALL, **options).text == found.origin.text
    assert "one" in again.vocabulary.words
    assert_same(again, w2v.train(text, **SMALL, **options))
    assert w2v.Model.load(checkpoint.latest(tmp_path / "states").path).text == again.text


def test_the_same_text_may_have_moved(sample: Path, tmp_path: Path) -> None:
    shutil.copy(sample, tmp_path / "a.txt")
    stopped(tmp_path / "states", tmp_path / "a.txt")
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    with pytest.raises(w2v.W2VError, match=r"a\.txt' does not exist"):
        w2v.resume(tmp_path / "states")
    assert_same(w2v.resume(tmp_path / "states", tmp_path / "b.txt"), w2v.train(sample, **SMALL))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda text: text + b"more words\n",
            r"another corpus: .*text had [\d,]+ bytes when the run began, and .*text",
        ),
        (lambda text: text.replace(b"the", b"eht", 1), "another corpus: .*text does not hold the text"),
        (lambda text: text.replace(b"\n", b" ", 1), "another corpus: .*text does not hold the text"),
    ],
)
def test_another_corpus_is_refused(
    sample: Path, tmp_path: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    text = tmp_path / "text"
    text.write_bytes(sample.read_bytes())
    stopped(tmp_path / "states", text)
    text.write_bytes(change(text.read_bytes()))
    with pytest.raises(w2v.W2VError, match=message):
        w2v.resume(tmp_path / "states")


def test_another_version_is_told(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "__version__", "0.0.7")
        stopped(tmp_path, sample)
    w2v.resume(tmp_path)
    assert [record.getMessage() for record in caplog.records] == [
        f"the checkpoint was written by w2v 0.0.7, this is {w2v.__version__}: last bits may differ"
    ]
    w2v.resume(tmp_path)
    assert len(caplog.records) == 1


# -- the files ------------------------------------------------------------------------------


def test_the_last_two_are_kept_and_others_left_alone(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoint-notes.safetensors").touch()
    stopped(tmp_path, sample, 0.3)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 3
    first, second = (int(name[11:17]) for name in names[:2])
    assert 1 < second == first + 1
    assert names[2] == "checkpoint-notes.safetensors"


def test_a_checkpoint_is_a_model_file(sample: Path, tmp_path: Path) -> None:
    found = stopped(tmp_path, sample)
    vectors = w2v.load(found.path)
    np.testing.assert_array_equal(vectors.vectors, found.state.parameters["inputs"])
    assert vectors.index_to_key == found.state.vocabulary.words
    assert json.loads(vectors.metadata["settings"])["vector_size"] == 16


def test_a_tree_from_a_file_is_kept(sample: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree.txt"
    vocabulary = w2v.train(sample, max_vocab=256, **SMALL).vocabulary
    tree.write_text("".join(f"{word} {code:08b}\n" for code, word in enumerate(vocabulary.words)), "utf-8")
    options = {"loss": "hs", "tree": str(tree), "max_vocab": 256}
    whole = w2v.train(sample, **SMALL | options)
    stopped(tmp_path / "states", sample, **options)
    tree.unlink()
    assert_same(w2v.resume(tmp_path / "states"), whole)


@pytest.mark.parametrize("damage", ["cut", "empty", "matrix", "settings"])
def test_a_damaged_checkpoint_is_passed_over(
    sample: Path, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole = w2v.train(sample, **SMALL)
    stopped(tmp_path, sample, 0.4)
    before, newest = checkpoint.files(tmp_path)
    content = bytearray(newest.read_bytes())
    if damage == "matrix":
        content[len(content) // 2] ^= 1
    elif damage == "settings":
        content[content.index(b"epochs") + 10] ^= 1
    newest.write_bytes(content[: {"cut": len(content) - 1, "empty": 0}.get(damage)])
    assert latest(tmp_path).path == before
    assert f"{newest}" in caplog.text
    assert "resuming from the checkpoint before it" in caplog.text
    assert_same(w2v.resume(tmp_path), whole)
    before.write_bytes(b"")
    for path in checkpoint.files(tmp_path):
        path.write_bytes(b"")
    with pytest.raises(w2v.W2VError, match=r"checkpoint-\d+.safetensors: "):
        w2v.resume(tmp_path)


def test_folders_that_will_not_do(sample: Path, model: Path, tmp_path: Path) -> None:
    with pytest.raises(w2v.W2VError, match="nowhere holds no checkpoint"):
        w2v.resume(tmp_path / "nowhere")
    shutil.copy(model, tmp_path / "checkpoint-000001.safetensors")
    with pytest.raises(w2v.W2VError, match="is not a checkpoint"):
        w2v.resume(tmp_path)
    with pytest.raises(w2v.W2VError, match="holds checkpoints of another run"):
        w2v.train(sample, checkpoint=tmp_path)
    with pytest.raises(w2v.W2VError, match=r"cannot write checkpoints in .*: Not a directory"):
        w2v.train(sample, checkpoint=model / "below")


@pytest.mark.parametrize("begin", [[], ["--force"], ["--resume"]])
def test_a_folder_takes_the_checkpoints_of_one_run(sample: Path, tmp_path: Path, begin: list[str]) -> None:
    states = tmp_path / "states"
    if begin:
        stopped(states, sample)
    arguments = quick(sample, tmp_path, *begin) if begin != ["--resume"] else ["train", "--resume", states]
    with Checkpoints(states, replace=True):
        there = checkpoint.files(states)
        message = f"w2v: another run is writing checkpoints in {states}: wait for its end, or name another folder\n"
        assert run(*arguments, "-o", tmp_path / "out.bin", code=1).stderr == message
        assert checkpoint.files(states) == there
    run(*arguments, "-o", tmp_path / "out.bin")


def test_what_a_killed_run_has_left_unfinished_is_removed(sample: Path, tmp_path: Path) -> None:
    found = stopped(tmp_path, sample)
    (tmp_path / f".{found.path.name}.0123456789abcdef.tmp").touch()
    w2v.resume(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(checkpoint.files(tmp_path))


def test_replaced_checkpoints_go_when_the_first_is_written(sample: Path, tmp_path: Path) -> None:
    stopped(tmp_path, sample, seed=5)
    old = checkpoint.files(tmp_path)
    checkpoints = Checkpoints(tmp_path, replace=True)
    assert checkpoint.files(tmp_path) == old
    w2v.train(sample, checkpoint=checkpoints, **SMALL)
    assert checkpoint.files(tmp_path) == [checkpoints.newest]
    assert latest(tmp_path).state.settings.seed == 1


@pytest.mark.parametrize(
    ("every", "expected"),
    [("30s", (30, 0)), ("10m", (600, 0)), ("1.5h", (5400, 0)), ("1epoch", (0, 1)), ("2 epochs", (0, 2))],
)
def test_intervals(every: str, expected: tuple[float, float]) -> None:
    assert interval(every) == expected


@pytest.mark.parametrize("every", ["", "0s", "10", "-1m", "5 minutes", "epoch"])
def test_impossible_intervals(every: str) -> None:
    with pytest.raises(w2v.SettingsError, match=r"checkpoint_every .*like 30s or 1epoch"):
        interval(every)


def test_a_checkpoint_for_each_epoch(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "2 epochs")
    assert [checkpoints.due(epoch) for epoch in range(4)] == [False, False, True, True]


# -- what goes wrong ------------------------------------------------------------------------


def test_a_checkpoint_that_cannot_be_written_is_told_and_training_goes_on(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = w2v.train(sample, **SMALL)
    system, calls = os.fsync, []

    def fsync(file: int) -> None:  # the disk is full after the first checkpoint
        calls.append(file)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        system(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        assert_same(w2v.train(sample, checkpoint=tmp_path, checkpoint_every="0.005s", **SMALL), whole)
    (only,) = tmp_path.iterdir()
    for message in {record.getMessage() for record in caplog.records}:
        expected = f"cannot write {tmp_path / 'checkpoint-000002.safetensors'}: No space left on device"
        assert message == f"checkpoint not written: {expected}; {only} is kept"
    assert len(caplog.records) > 1
    assert_same(w2v.resume(tmp_path), whole)


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_that_cannot_be_started_cost_no_checkpoint(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    system, trained = threading.Thread.start, []

    def start(thread: threading.Thread) -> None:
        if trained:  # once the first chunks are
            raise RuntimeError("can't start new thread")
        system(thread)

    def progress(now: w2v.Progress) -> None:
        if now.phase == "train" and now.done:
            trained.append(now.done)

    for folder in (tmp_path / str(number) for number in range(20)):
        options = SMALL | {"workers": workers, "epochs": 10}
        trained.clear()
        with monkeypatch.context() as patch, contextlib.suppress(NoThread):
            patch.setattr(threading.Thread, "start", start)
            w2v.train(sample, checkpoint=folder, checkpoint_every="0.005s", progress=progress, **options)
            continue
        assert latest(folder).state.tokens_trained >= trained[-1]
        model = w2v.resume(folder)
        assert model.metrics["tokens_trained"] == 10 * model.metrics["tokens"]
        return
    pytest.fail("each run had ended before a checkpoint was due")


def test_an_unforeseen_error_of_the_writer_ends_no_run(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checkpoint, "checksum", lambda *_: 1 / 0)
    w2v.train(sample, checkpoint=tmp_path, **SMALL)
    assert [record.getMessage() for record in caplog.records] == ["checkpoint not written: division by zero"]


LIMITED = """
import resource, time
from w2v.cli import console
def show(self, progress):
    if progress.phase == "train" and progress.done and resource.getrlimit(resource.RLIMIT_CPU)[0] < 0:
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1, resource.RLIM_INFINITY))
console.Reporter.__call__ = show
"""


def test_the_limit_of_processor_time_ends_a_run_with_a_checkpoint(sample: Path, tmp_path: Path) -> None:
    with start(*quick(sample, tmp_path, "--epochs", 100_000), before=LIMITED) as process:
        stderr = process.communicate(timeout=300)[1].decode()
    assert process.returncode == 128 + signal.SIGXCPU
    assert stderr.splitlines()[-1].startswith("w2v: stopped by SIGXCPU; resume with: w2v train --resume ")
    assert latest(tmp_path / "states").state.position


def test_a_folder_that_vanishes_is_made_again(sample: Path, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "states", "0.005s")
    (tmp_path / "states").rmdir()
    w2v.train(sample, checkpoint=checkpoints, **SMALL)
    assert latest(tmp_path / "states").state.position > 0


@pytest.mark.parametrize("other_runs", [True, False])
def test_a_folder_that_another_run_has_taken_is_left_to_it(
    sample: Path, tmp_path: Path, other_runs: bool, caplog: pytest.LogCaptureFixture
) -> None:
    states = tmp_path / "states"
    checkpoints = Checkpoints(states, "0.005s", replace=True)
    states.rmdir()
    other = Checkpoints(states)
    if other_runs:
        w2v.train(sample, checkpoint=checkpoints, **SMALL)
        assert list(states.iterdir()) == []
    w2v.train(sample, checkpoint=other, **SMALL | {"seed": 5})
    if not other_runs:  # its checkpoint stands
        w2v.train(sample, checkpoint=checkpoints, **SMALL)
    assert [record.getMessage() for record in caplog.records] == [
        f"{states} was removed and now belongs to another run: this run writes no more checkpoints"
    ]
    assert latest(states).state.settings.seed == 5
    assert checkpoints.newest is None


def test_a_folder_that_was_made_again_is_locked_again(tmp_path: Path, sample: Path) -> None:
    states = tmp_path / "states"
    refused = []

    def remove(progress: w2v.Progress) -> None:
        if progress.phase == "train" and progress.done and not refused:
            shutil.rmtree(states)
            checkpoints.write(latest_run.state)
            with pytest.raises(w2v.W2VError, match="another run is writing checkpoints") as failure:
                Checkpoints(states)
            refused.append(failure)

    latest_run = stopped(tmp_path / "given", sample)
    checkpoints = Checkpoints(states, "1h")
    w2v.train(sample, checkpoint=checkpoints, progress=remove, **SMALL)
    assert refused
    assert checkpoint.files(states) == [
        states / "checkpoint-000001.safetensors",
        states / "checkpoint-000002.safetensors",
    ]


def test_only_the_checkpoints_of_the_run_are_removed(sample: Path, tmp_path: Path) -> None:
    """Not those that someone puts there while it lasts."""
    found = stopped(tmp_path / "given", sample)
    checkpoints = Checkpoints(tmp_path / "states")
    checkpoints.write(found.state)
    stray = tmp_path / "states" / "checkpoint-900000.safetensors"
    stray.touch()
    for _ in range(3):
        checkpoints.write(found.state)
    assert [path.name[11:17] for path in checkpoint.files(tmp_path / "states")] == ["000003", "000004", "900000"]


def test_a_link_in_place_of_a_checkpoint_is_not_followed(
    sample: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    states, victim = tmp_path / "states", tmp_path / "victim"
    checkpoints = Checkpoints(states)
    (states / "checkpoint-000001.safetensors").symlink_to(victim)
    w2v.train(sample, checkpoint=checkpoints, **SMALL)
    assert not victim.exists()
    file = states / "checkpoint-000001.safetensors"
    assert f"checkpoint not written: cannot write {file}: File exists" in caplog.text


MANY = 60_000


def test_as_many_epochs_as_one_likes(tmp_path: Path) -> None:
    text = [["a", "b"]] * 2
    checkpoints = Checkpoints(tmp_path / "states")
    whole = w2v.train(text, min_count=1, epochs=MANY, vector_size=2, workers=1, sample=0, checkpoint=checkpoints)
    assert len(whole.metrics["loss"]) == MANY
    whole.save(tmp_path / "m.safetensors")
    for mmap in (False, True):
        loaded = w2v.Model.load(tmp_path / "m.safetensors", mmap)
        assert loaded.metrics["loss"] == whole.metrics["loss"]
        assert list(loaded.metrics) != []
    assert latest(tmp_path / "states").state.losses.shape == (MANY,)
    assert len(w2v.load(tmp_path / "m.safetensors")) == 2


def test_epochs_without_predictions_are_kept(sample: Path, tmp_path: Path) -> None:
    model = w2v.train(sample, **SMALL)
    model.metrics["loss"][1] = None
    model.save(tmp_path / "m.safetensors")
    loaded = w2v.Model.load(tmp_path / "m.safetensors")
    assert loaded.metrics == model.metrics
    loaded.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "m.safetensors").read_bytes()


def test_what_cannot_be_saved_is_not_trained(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "MAX_HEADER_BYTES", 4_000)
    monkeypatch.setattr(Run, "train", lambda *_: pytest.fail("it trains"))
    with pytest.raises(w2v.W2VError, match=r"cannot write the model: a header of \d+ bytes; at most 4000 fit"):
        w2v.train(sample, **SMALL)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("begins", [False, True])
def test_the_last_checkpoint_is_written_once_though_its_thread_is_interrupted(
    sample: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    begins: bool,
    times: int,
) -> None:
    """Of the thread that writes: at its `times`-th start, which `begins` to run or does not."""
    starts: list[Thread] = []
    system = Thread.start

    def start(thread: Thread) -> None:
        starts.append(thread)
        if len(starts) != times or begins:
            system(thread)
        if len(starts) == times:
            thread._begun = False
            raise Stop

    monkeypatch.setattr(checkpoint.Thread, "start", start)
    monkeypatch.setattr(running, "Thread", type("Other", (Thread,), {"start": system}))
    with pytest.raises(Stop):
        w2v.train(sample, checkpoint=tmp_path, checkpoint_every="0.01s" if times == 2 else "1h", **SMALL)
    assert not caplog.records
    assert len({path.name for path in tmp_path.iterdir()}) == len(checkpoint.files(tmp_path)) > 0
    monkeypatch.undo()
    assert_same(w2v.resume(tmp_path), w2v.train(sample, **SMALL))


@pytest.mark.parametrize("ending", [float("nan"), float("inf")])
@pytest.mark.parametrize("matrix", ["inputs", "outputs"])
def test_divergence_is_found_and_the_last_good_checkpoint_stays(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: float, matrix: str
) -> None:
    run: list[Run] = []
    remember = Run.train

    def go(self: Run, *arguments: Any) -> None:
        run.append(self)
        remember(self, *arguments)

    def spoil(progress: w2v.Progress) -> None:
        if progress.phase == "train" and checkpoint.files(tmp_path):
            run[0].parameters[matrix][0, 3] = ending

    monkeypatch.setattr(Run, "train", go)
    message = (
        rf"^training diverged: after [\d,]+ of [\d,]+ words .* lower alpha, now 0\.05; .* checkpoint is {tmp_path}/"
    )
    with pytest.raises(w2v.W2VError, match=message) as failure:
        w2v.train(sample, checkpoint=tmp_path, checkpoint_every="0.005s", progress=spoil, **SMALL | {"epochs": 100_000})
    newest = latest(tmp_path)
    assert str(failure.value).endswith(str(newest.path))
    for array in newest.state.parameters.values():
        assert np.isfinite(array).all()
    w2v.train(sample, continue_from=newest.path, alpha=0.01, epochs=1)


def test_memory_can_be_ignored(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = SMALL | {"vectors": "input"}
    model = w2v.train(sample, **options)
    needed = 2 * 64 * len(model.vocabulary) + threads_memory(
        plan_for(model.loss, model.settings, MAX_CHUNK_IDS), "cython"
    )
    monkeypatch.setattr(memory, "available", lambda: needed)
    w2v.train(sample, **options)
    with pytest.raises(w2v.W2VError, match="or add --ignore-memory"):  # for the copies that checkpoints take
        w2v.train(sample, checkpoint=tmp_path, **options)
    w2v.train(sample, checkpoint=tmp_path, ignore_memory=True, **options)
    monkeypatch.setattr(memory, "available", lambda: 0)
    assert "training needs about" in run("train", sample, "-o", tmp_path / "m.bin", code=1).stderr
    run("train", sample, "-o", tmp_path / "m.bin", "--ignore-memory", "--epochs", 1)


# -- the command ----------------------------------------------------------------------------


def quick(sample: Path, tmp_path: Path, *options: object) -> list[object]:
    """The arguments of a run with checkpoints."""
    always = ["--vector-size", 16, "--epochs", 3, "--workers", 1, "--checkpoint", tmp_path / "states"]
    return ["train", sample, "-o", tmp_path / "out.bin", *always, *options]


@pytest.fixture
def whole(sample: Path, tmp_path: Path) -> bytes:
    """The file of such a run that is not stopped."""
    w2v.train(sample, **SMALL).save(tmp_path / "whole.bin")
    return (tmp_path / "whole.bin").read_bytes()


def test_resuming_needs_nothing_else(
    sample: Path, tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample.parent)
    arguments = [sample.name, "-o", os.path.relpath(tmp_path / "out.bin"), "--save-vocab", tmp_path / "words.txt"]
    with monkeypatch.context() as patch:
        patch.setattr(w2v.Model, "save", lambda *_, **__: signal.raise_signal(signal.SIGINT))
        said = run("train", *arguments, *quick(sample, tmp_path)[4:], code=130).stderr
    assert said == f"w2v: stopped by Ctrl-C; resume with: w2v train --resume {tmp_path / 'states'}\n"
    monkeypatch.chdir(tmp_path)
    assert run("train", "--resume", "states", "--quiet").stderr == ""
    assert (tmp_path / "out.bin").read_bytes() == whole
    assert len(w2v.Vocabulary.load(tmp_path / "words.txt")) == len(w2v.load(tmp_path / "out.bin"))
    assert "out.bin exists: name another output, or add --force" in run("train", "--resume", "states", code=1).stderr
    run("train", "--resume", "states", "-o", "other.bin", "--save-vocab", "words2.txt")
    assert (tmp_path / "other.bin").read_bytes() == whole
    run("train", "--resume", "states", "--force", sample, "--size", 16, "--iter", 3, "--sg")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alpha", 0.1], "--alpha 0.1: the run in states has 0.05; leave it out"),
        (["--cbow"], "--model cbow: the run in states has skipgram"),
        (["--workers", 2], "--workers 2: the run in states has 1"),
        (["--errors", "strict"], "--errors has no effect with --resume"),
        (["--checkpoint", "other"], "--checkpoint has no effect with --resume"),
        (["--checkpoint-every", "soon"], "checkpoint_every 'soon': it must be"),
    ],
)
def test_what_is_given_beside_must_be_the_same(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[object], message: str
) -> None:
    stopped(tmp_path / "states", sample)
    monkeypatch.chdir(tmp_path)
    assert message in run("train", "--resume", "states", "-o", "out.bin", *options, code=2).stderr
    assert not (tmp_path / "out.bin").exists()


def test_a_run_begun_in_python_needs_an_output(sample: Path, tmp_path: Path, whole: bytes) -> None:
    stopped(tmp_path / "states", sample)
    assert "name its output with -o" in run("train", "--resume", tmp_path / "states", code=2).stderr
    run("train", "--resume", tmp_path / "states", "-o", tmp_path / "out.bin")
    assert (tmp_path / "out.bin").read_bytes() == whole


def test_checkpoint_options_that_make_no_sense(sample: Path, tmp_path: Path) -> None:
    assert "has no effect without --checkpoint" in run("train", sample, "--checkpoint-every", "5m", code=2).stderr
    assert "Missing argument" in run("train", code=2).stderr
    stopped(tmp_path / "states", sample)
    assert "holds checkpoints of another run" in run(*quick(sample, tmp_path), code=1).stderr
    run(*quick(sample, tmp_path), "--force")


# -- the process ----------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_write_a_checkpoint(number: signal.Signals, code: int, sample: Path, tmp_path: Path) -> None:
    states = tmp_path / "states and more"
    arguments = ["train", sample, "-o", tmp_path / "out.bin", "--vector-size", 16, "--epochs", 12, "--workers", 1]
    with start(*arguments, "--checkpoint", states, "--checkpoint-every", "0.05s", text=True) as process:
        wait_for(lambda: states.exists() and checkpoint.files(states))
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (code, "")
    by = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
    assert stderr == f"w2v: stopped by {by}; resume with: w2v train --resume '{states}'\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [states.name]
    assert list(states.iterdir()) == sorted(checkpoint.files(states), key=list(states.iterdir()).index)
    run("train", "--resume", states, "--checkpoint-every", "1h")
    w2v.train(sample, **SMALL | {"epochs": 12}).save(tmp_path / "whole.bin")
    assert (tmp_path / "out.bin").read_bytes() == (tmp_path / "whole.bin").read_bytes()


SLOW_DISK = """
import os, threading, time
from w2v.training.run import Run
def fsync(file):
    os.write(1, b"waits")
    time.sleep(60)
def train(run, *arguments):
    threading.Thread(target=tell, args=(run.kernel,), daemon=True).start()
    whole(run, *arguments)
def tell(kernel):
    while not kernel.position:
        time.sleep(0.001)
    os.fsync = fsync
    os.write(1, b"trains")
whole, Run.train = Run.train, train
"""


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="elsewhere an unfinished file has a name")
def test_a_second_signal_ends_it_at_once(sample: Path, tmp_path: Path) -> None:
    arguments = quick(sample, tmp_path, "--epochs", 100_000, "--checkpoint-every", "1h")
    with start(*arguments, before=SLOW_DISK) as process:
        assert process.stdout
        for said in (b"trains", b"waits"):
            assert os.read(process.stdout.fileno(), 100) == said
            process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == -signal.SIGINT  # for a shell, 130
    assert [path.name for path in tmp_path.rglob("*")] == ["states"]


IN_A_METHOD = """
import os, signal
from w2v.cli import console
class Something:
    def __init__(self):
        end_in("__init__")
        self.made = True
    def __del__(self):
        end_in("__del__")
        assert self.made
def end_in(method):
    if method == METHOD:
        os.kill(os.getpid(), signal.SIGTERM)
        "here it is raised".split()
def show(self, progress):
    if progress.phase == "train" and progress.done:
        Something()
console.Reporter.__call__ = show
"""


@pytest.mark.parametrize("method", ["__init__", "__del__"])
def test_a_signal_while_an_object_is_made_or_destroyed(method: str, sample: Path, tmp_path: Path) -> None:
    before = IN_A_METHOD.replace("METHOD", repr(method))
    with start(*quick(sample, tmp_path, "--epochs", 100_000), before=before, text=True) as process:
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 143
    assert stderr == f"w2v: stopped by SIGTERM; resume with: w2v train --resume {tmp_path / 'states'}\n"


DURING_IMPORTS = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from w2v.__main__ import main
sys.argv = ["w2v", "info"]
main()
"""


def test_a_signal_during_imports_leaves_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", DURING_IMPORTS], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"w2v: stopped by Ctrl-C\n")
