"""Checkpoints: a resumed run gives the same model as an uninterrupted run."""

import itertools
import json
import os
import re
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import (
    MODELS,
    SMALL,
    Stop,
    assert_same,
    fault_code,
    full_disk,
    interrupt,
    run,
    run_json,
    start,
    stop_at,
    train_and_stop,
)
from w2v._cli.console import SIGNALS
from w2v._formats import native
from w2v._system.shell import join_command
from w2v._system.signals import signal_name
from w2v._system.threads import NoThread, Thread
from w2v._training import checkpoint, checkpoint_folder
from w2v._training import run as run_module
from w2v._training.checkpoint_folder import CheckpointFolder, latest
from w2v._training.run import Run
from w2v._training.schedule import interval


@pytest.fixture(scope="module")
def uninterrupted(sample: Path) -> w2v.Model:
    """Return the model of a run that was never stopped."""
    return w2v.train(sample, **SMALL)


@pytest.fixture(scope="module")
def stopped_run(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> checkpoint.Checkpoint:
    """Return the last checkpoint of the same run, stopped before its end. Its folder is named stopped0."""
    return train_and_stop(tmp_path_factory.mktemp("stopped"), sample)


# -- resuming -----------------------------------------------------------------------------


SUBWORDS = {"subwords": (3, 4), "buckets": 3000}
MORE_OPTIONS: list[dict[str, Any]] = [
    *({"storage": "bf16", "model": model, "loss": loss} for model, loss in (("skipgram", "ns"), ("cbow", "class"))),
    *(SUBWORDS | each for each in ({"loss": "hs"}, {"storage": "bf16"})),
    {"kernel": "numba", "vector_size": 21},
    *({"deterministic": True, "workers": 3, "model": "skipgram", "loss": loss} for loss in ("ns", "hs")),
    {"vectors": "concatenated"},
    {"window": "all", "vector_size": 4},
    {"epochs": "auto", "vector_size": 4},
    {"init": w2v.KeyedVectors(["the", "king"], [[1, -2], [3, 0.5]]), "vector_size": 2},
]


@pytest.mark.parametrize("options", [*MODELS, *MORE_OPTIONS], ids=str)
def test_resume_is_bit_identical(sample: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    if options.get("loss") in ("softmax", "class") or "storage" in options:  # slow with a large vocabulary
        options = options | {"max_vocab": 300}
    text = tmp_path / "text"
    short_chunks = "subwords" in options or "deterministic" in options
    size, share = (100_000, 0.1) if short_chunks else (300_000, 0.25)
    text.write_text(sample.read_text("utf-8")[:size], "utf-8")
    uninterrupted = w2v.train(text, **SMALL | options)
    parameters = train_and_stop(tmp_path, text, share, **options).parameters
    assert {array.dtype.name for array in parameters.values()} == {"bfloat16" if "storage" in options else "float32"}
    assert ("ngrams" in parameters) == ("subwords" in options)
    with pytest.raises(Stop):
        w2v.resume(tmp_path, text, progress=stop_at(0.5))  # in a later epoch
    resumed = w2v.resume(tmp_path, text)
    assert_same(resumed, uninterrupted)
    for name, model in ("resumed", resumed), ("uninterrupted", uninterrupted):
        model.save(tmp_path / f"{name}.safetensors")
    assert (tmp_path / "resumed.safetensors").read_bytes() == (tmp_path / "uninterrupted.safetensors").read_bytes()
    assert_same(w2v.resume(tmp_path, text), uninterrupted)  # nothing is left to train


def test_resume_needs_lists_of_words_again(sample: Path, tmp_path: Path, uninterrupted: w2v.Model) -> None:
    lists = [line.split() for line in sample.read_text("utf-8").splitlines()]
    train_and_stop(tmp_path, lists)
    with pytest.raises(w2v.W2VError, match=r"give the corpus again, .*; it was not a file"):
        w2v.resume(tmp_path)
    assert_same(w2v.resume(tmp_path, lists), uninterrupted)


def test_resume_reads_the_text_with_the_same_options(sample: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.jsonl"
    lines = sample.read_text("utf-8").splitlines()
    text.write_text("".join(json.dumps({"t": f"<p>{line.title()}, 1</p>"}) + "\n" for line in lines))
    options = {"column": "t", "lower": True, "tokenize": "words", "digits": "spell", "strip_markup": True}
    state = train_and_stop(tmp_path / "states", text, **options)
    assert w2v.load(state.path).words_in("Paris, 7!") == ["paris", "seven"]
    resumed = w2v.resume(tmp_path / "states", text)
    assert resumed.text == w2v.train(text, **SMALL, **options).text == state.config.text
    assert "one" in resumed.vocabulary.words
    assert_same(resumed, w2v.train(text, **SMALL, **options))
    assert w2v.Model.load(checkpoint_folder.latest(tmp_path / "states").path).text == resumed.text


def test_resume_accepts_a_text_that_was_moved(sample: Path, tmp_path: Path, uninterrupted: w2v.Model) -> None:
    shutil.copy(sample, tmp_path / "a.txt")
    train_and_stop(tmp_path / "states", tmp_path / "a.txt")
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    with pytest.raises(w2v.W2VError, match=r"a\.txt' does not exist"):
        w2v.resume(tmp_path / "states", tmp_path / "a.txt")
    assert_same(w2v.resume(tmp_path / "states", tmp_path / "b.txt"), uninterrupted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text + b"more words\n", r"the text has changed: .* had [\d,]+ bytes when .*, and now .*text has"),
        *(
            (change, "another run, with different text: name its text and other files instead of .*text, or")
            for change in (lambda text: text.replace(b"the", b"eht", 1), lambda text: text.replace(b"\n", b" ", 1))
        ),
    ],
)
def test_resume_refuses_another_corpus(
    sample: Path, tmp_path: Path, stopped_run: checkpoint.Checkpoint, change: Callable[[bytes], bytes], message: str
) -> None:
    (tmp_path / "text").write_bytes(change(sample.read_bytes()))
    with pytest.raises(w2v.W2VError, match=message):
        w2v.resume({"words": stopped_run}, tmp_path / "text")


def test_resume_warns_of_another_version(sample: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "__version__", "0.0.7")
        train_and_stop(tmp_path, sample)
    warning = f"the checkpoint was written by w2v 0.0.7, this is {w2v.__version__}: last bits may differ"
    for _ in range(2):
        w2v.resume(tmp_path, sample)
        assert caplog.messages == [warning]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"checkpoint_format": "99", "package_version": "9.0"}, "99, .* w2v 9.0"),
        ({}, f"none, .* w2v {w2v.__version__}"),
    ],
)
def test_checkpoint_of_another_format_is_refused(
    stopped_run: checkpoint.Checkpoint, tmp_path: Path, change: dict[str, str], found: str
) -> None:
    """Other formats may compute the checksum differently. The older checkpoint has the same format."""
    arrays, metadata = native.read_native(stopped_run.path)
    del metadata["checkpoint_format"]
    for number in (1, 2):
        path = tmp_path / f"checkpoint-{number:06}.safetensors"
        native.write_native(path, arrays, metadata | {"checksum": "b1946ac9"} | change)
    with pytest.raises(w2v.W2VError, match=rf"000002\.safetensors has checkpoint format {found}$"):
        w2v.resume(tmp_path)


def test_error_of_the_program_is_not_called_damage(
    stopped_run: checkpoint.Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "loss_for", lambda *_: {}["a bug"])
    with pytest.raises(KeyError, match="a bug"):
        checkpoint.read_checkpoint(stopped_run.path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"losses": None}, "the array losses is missing"),
        ({"history": np.zeros(4)}, r"the array history has an unexpected shape or type: \(4,\), float64"),
        ({"outputs": np.inf}, "NaN|infinite|finite"),
        ({"config": {"column": 1}}, "its config: damaged: "),
        ({"config": {"reading": {"colour": 1}}}, "its config: damaged: .*'colour'"),
        ({"position": {"done": -1}}, "its description: damaged: .*done"),
    ],
    ids=str,
)
def test_inconsistent_part_of_a_checkpoint_is_named(
    stopped_run: checkpoint.Checkpoint, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    arrays, metadata = native.read_native(stopped_run.path)
    description = json.loads(arrays["run"].tobytes())
    for name, value in change.items():
        if name in description:
            description[name] |= value
        elif value is None:
            del arrays[name]
        else:
            arrays[name] = np.full_like(arrays[name], value) if np.isscalar(value) else value
    arrays["run"] = np.frombuffer(json.dumps(description).encode(), np.uint8)
    metadata["checksum"] = checkpoint.checksum(arrays, metadata["settings"])
    path = tmp_path / "checkpoint-000001.safetensors"
    native.write_native(path, arrays, metadata)
    with pytest.raises(w2v.W2VError, match=rf"^{re.escape(str(path))}: {message}"):
        w2v.resume(tmp_path)


# -- files --------------------------------------------------------------------------------


def test_folder_keeps_the_last_two_checkpoints_and_unrelated_files(sample: Path, tmp_path: Path) -> None:
    """Unfinished files of a killed run are removed, and the first checkpoint of a new run replaces older ones."""
    (tmp_path / "checkpoint-notes.safetensors").touch()
    (tmp_path / ".checkpoint-000009.safetensors.0123456789abcdef.tmp").touch()
    for every, expected in (("6 chunks", ("000003", "000004", "notes")), ("1h", ("000005", "notes"))):
        before = checkpoint_folder.files(tmp_path)
        checkpoints = CheckpointFolder(tmp_path, every, replace=True)
        assert checkpoint_folder.files(tmp_path) == before  # until the run begins to train
        w2v.train(sample, checkpoint=checkpoints, **SMALL)
        names = sorted(path.name for path in tmp_path.iterdir())
        assert names == [f"checkpoint-{name}.safetensors" for name in expected]


def test_resume_does_not_continue_a_run_that_was_to_be_replaced(sample: Path, tmp_path: Path) -> None:
    before = train_and_stop(tmp_path, sample).path.read_bytes()
    with pytest.raises(Stop):
        w2v.train(sample, checkpoint=CheckpointFolder(tmp_path, replace=True), progress=stop_at(0), **SMALL)
    with pytest.raises(w2v.W2VError, match="holds no checkpoint since a new run began to replace its files: "):
        w2v.resume(tmp_path, sample)
    for path in tmp_path.glob("*.replaced"):
        path.rename(path.with_suffix(""))
    assert latest(tmp_path).path.read_bytes() == before


def test_checkpoint_is_a_model_file(stopped_run: checkpoint.Checkpoint) -> None:
    vectors = w2v.load(stopped_run.path)
    np.testing.assert_array_equal(vectors.vectors, stopped_run.parameters["inputs"])
    assert vectors.index_to_key == stopped_run.vocabulary.words


def test_checkpoint_stores_a_tree_from_a_file(sample: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree.txt"
    vocabulary = w2v.train(sample, max_vocab=256, **SMALL).vocabulary
    tree.write_text("".join(f"{word} {code:08b}\n" for code, word in enumerate(vocabulary.words)), "utf-8")
    options = {"loss": "hs", "tree": str(tree), "max_vocab": 256}
    uninterrupted = w2v.train(sample, **SMALL | options)
    train_and_stop(tmp_path / "states", sample, **options)
    tree.unlink()
    assert_same(w2v.resume(tmp_path / "states", sample), uninterrupted)


@pytest.mark.parametrize("damage", ["cut", "empty", "matrix", "settings"])
def test_damaged_checkpoint_is_skipped(
    sample: Path, tmp_path: Path, damage: str, stopped_run: checkpoint.Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(stopped_run.path.parent, tmp_path, dirs_exist_ok=True)
    older, newest = checkpoint_folder.files(tmp_path)
    content = bytearray(newest.read_bytes())
    if damage == "matrix":
        content[len(content) // 2] ^= 1
    elif damage == "settings":
        content[content.index(b"epochs") + len(rb"epochs\": ")] ^= 1  # the number of epochs
    newest.write_bytes(content[: {"cut": len(content) - 1, "empty": 0}.get(damage)])
    assert latest(tmp_path).path == older
    assert f"{newest}" in caplog.text
    assert "resuming from the checkpoint before it" in caplog.text
    older.write_bytes(b"")
    with pytest.raises(w2v.W2VError, match=r"checkpoint-\d+.safetensors: "):
        w2v.resume(tmp_path)


def test_unusable_folders_are_refused(sample: Path, model: Path, tmp_path: Path) -> None:
    with pytest.raises(w2v.W2VError, match="nowhere holds no checkpoint"):
        w2v.resume(tmp_path / "nowhere")
    shutil.copy(model, tmp_path / "checkpoint-000001.safetensors")
    with pytest.raises(w2v.W2VError, match="is not a checkpoint"):
        w2v.resume(tmp_path)
    with pytest.raises(w2v.W2VError, match="holds checkpoints of another run"):
        w2v.train(sample, checkpoint=tmp_path)
    with pytest.raises(w2v.W2VError, match=r"cannot write checkpoints in .*: Not a directory"):
        w2v.train(sample, checkpoint=model / "below")


def test_checkpoints_are_written_at_time_intervals(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run would take very long. This test stops it at the third checkpoint."""
    copy, positions = CheckpointFolder.copy, [0]  # a position for the start, and one for each checkpoint

    def copy_or_stop(self: CheckpointFolder, state: checkpoint.Checkpoint) -> None:
        assert state.resume_info.done > positions[-1]  # training goes on after each checkpoint
        positions.append(state.resume_info.done)
        if len(positions) == 4:
            raise Stop
        copy(self, state)

    monkeypatch.setattr(CheckpointFolder, "copy", copy_or_stop)
    with pytest.raises(Stop):
        w2v.train(sample, checkpoint=tmp_path, checkpoint_every="0.001s", **SMALL | {"epochs": 100_000})
    assert len(checkpoint_folder.files(tmp_path)) == 2


@pytest.mark.parametrize("every", ["1epoch", "never"])
def test_checkpoint_is_written_before_the_hard_cpu_limit(
    tmp_path: Path, stopped_run: checkpoint.Checkpoint, monkeypatch: pytest.MonkeyPatch, every: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("w2v._training.checkpoint_folder.cpu_seconds_limit", lambda: 100)
        checkpoints = CheckpointFolder(tmp_path, every)
    due = []
    for seconds in (74, 76):  # a checkpoint is due at three quarters of the limit
        monkeypatch.setattr("time.process_time", lambda seconds=seconds: seconds)
        due.append(checkpoints.due)
    checkpoints.copy(stopped_run)
    assert checkpoints.wait_for_newest() == checkpoint_folder.files(tmp_path)[0]
    assert [*due, checkpoints.due] == [False, True, False]


def test_intervals_are_parsed() -> None:
    expected = {"30s": (30, 0, 0), "10m": (600, 0, 0), "1.5h": (5400, 0, 0), "1epoch": (0, 1, 0), "2 chunks": (0, 0, 2)}
    assert {every: interval(every) for every in expected} == expected
    for every in ("", "0s", "10", "-1m", "10ms", "5 minutes", "epoch"):
        with pytest.raises(w2v.SettingsError, match=r"checkpoint_every .*like 30s or 1epoch"):
            interval(every)


@pytest.mark.parametrize(
    ("every", "expected"),
    [("1chunk", [1, 2, 3, 4, 5, 6]), ("2.5 chunks", [3, 5, 8, 10, 13, 15]), ("1epoch", [10, 20, 30, 40, 50, 60]),
     ("0.25epochs", [3, 5, 8, 10, 13, 15]), ("0.01epochs", [1, 2, 3, 4, 5, 6])],
)  # fmt: skip
def test_next_position_is_exact_for_parts_of_the_text(tmp_path: Path, every: str, expected: list[int]) -> None:
    checkpoints = CheckpointFolder(tmp_path, every)
    positions = itertools.accumulate(range(6), lambda position, _: checkpoints.next_position(position, 10), initial=0)
    assert list(positions) == [0, *expected]
    assert not checkpoints.due


def test_best_checkpoint_is_written_after_a_pending_one(
    tmp_path: Path, stopped_run: checkpoint.Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending, events = threading.Event(), list[str]()
    real_write = checkpoint_folder.write_checkpoint

    def write(path: Path, state: checkpoint.Checkpoint, replace: bool = False) -> None:
        if not replace:
            assert pending.wait(60)
        real_write(path, state, replace)
        events.append(path.name)

    class Writer(Thread):
        def wait(self) -> None:
            pending.set()
            super().wait()

    monkeypatch.setattr(checkpoint_folder, "write_checkpoint", write)
    monkeypatch.setattr(checkpoint_folder, "Thread", Writer)
    with CheckpointFolder(tmp_path, "1epoch") as checkpoints:
        checkpoints.copy(stopped_run)
        checkpoints.write_best(stopped_run)
    pending.set()
    assert events == ["checkpoint-000001.safetensors", "checkpoint-best.safetensors"]


@pytest.mark.parametrize("workers", [1, 3])
def test_checkpoints_are_written_at_exact_positions(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    positions: list[int] = []
    monkeypatch.setattr(CheckpointFolder, "copy", lambda _, state: positions.append(state.resume_info.done))
    w2v.train(sample, checkpoint=tmp_path, checkpoint_every="4chunks", **SMALL | {"workers": workers})
    end = latest(tmp_path).resume_info.end
    assert positions == list(range(4, end, 4))


# -- failures -----------------------------------------------------------------------------


def test_training_continues_if_a_checkpoint_cannot_be_written(
    sample: Path,
    tmp_path: Path,
    uninterrupted: w2v.Model,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    real_fsync, calls = os.fsync, []

    def fsync(file: int) -> None:  # the disk is full after the first checkpoint; not all systems sync its folder
        calls.append(stat.S_ISREG(os.fstat(file).st_mode))
        if sum(calls) > 1:
            full_disk()
        real_fsync(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        assert_same(w2v.train(sample, checkpoint=tmp_path, checkpoint_every="2chunks", **SMALL), uninterrupted)
    (only,) = tmp_path.iterdir()
    reason = f"cannot write {tmp_path / 'checkpoint-000002.safetensors'}: No space left on device"
    assert set(caplog.messages) == {f"checkpoint not written: {reason}; {only} is kept"}
    assert len(caplog.records) > 1
    assert_same(w2v.resume(tmp_path, sample), uninterrupted)


@pytest.mark.parametrize("workers", [1, 3])
def test_checkpoint_is_written_if_threads_cannot_be_started(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def progress(now: w2v.Progress) -> None:
        if now.phase == "train" and now.done:
            monkeypatch.setattr(threading.Thread, "start", start)

    options = SMALL | {"workers": workers}
    with pytest.raises(NoThread):
        w2v.train(sample, checkpoint=tmp_path, checkpoint_every="3chunks", progress=progress, **options)
    monkeypatch.undo()
    assert latest(tmp_path).resume_info.done == 3
    model = w2v.resume(tmp_path, sample)
    assert model.metrics["tokens_trained"] == 3 * model.metrics["tokens"]


def test_training_continues_after_an_unexpected_error_of_the_writer(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checkpoint, "checksum", lambda *_: 1 / 0)
    w2v.train(sample, checkpoint=tmp_path, **SMALL)
    assert caplog.messages == ["checkpoint not written: division by zero"]


def test_run_removes_only_its_own_checkpoints(tmp_path: Path, stopped_run: checkpoint.Checkpoint) -> None:
    """It keeps a checkpoint that somebody else puts into the folder during the run."""
    checkpoints = CheckpointFolder(tmp_path)
    checkpoints.write(stopped_run)
    (tmp_path / "checkpoint-900000.safetensors").touch()
    for _ in range(3):
        checkpoints.write(stopped_run)
    assert [path.name[11:17] for path in checkpoint_folder.files(tmp_path)] == ["000003", "000004", "900000"]


def test_symlink_in_place_of_a_checkpoint_is_not_followed(sample: Path, tmp_path: Path) -> None:
    states, victim = tmp_path / "states", tmp_path / "victim"
    checkpoints = CheckpointFolder(states)
    (states / "checkpoint-000001.safetensors").symlink_to(victim)
    w2v.train(sample, checkpoint=checkpoints, **SMALL)
    assert not victim.exists()
    assert (states / "checkpoint-000001.safetensors").is_symlink()
    assert (states / "checkpoint-000002.safetensors").is_file()


def test_losses_of_many_epochs_are_stored(tmp_path: Path) -> None:
    options: dict[str, Any] = {"min_count": 1, "epochs": 60_000, "vector_size": 2, "workers": 1, "sample": 0}
    uninterrupted = w2v.train([["a", "b"]] * 2, checkpoint=tmp_path / "states", **options)
    uninterrupted.save(tmp_path / "m.safetensors")
    for mmap in (False, True):
        assert w2v.Model.load(tmp_path / "m.safetensors", mmap).metrics["loss"] == uninterrupted.metrics["loss"]
    assert latest(tmp_path / "states").losses.shape == (60_000,)


def test_training_does_not_start_if_the_model_cannot_be_saved(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "MAX_HEADER_BYTES", 4_000)
    monkeypatch.setattr(Run, "train", lambda *_: pytest.fail("training started"))
    with pytest.raises(w2v.W2VError, match=r"cannot write the model: a header of \d+ bytes; at most 4000 fit"):
        w2v.train(sample, **SMALL)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("starts_writing", [False, True])
def test_last_checkpoint_is_written_once_despite_an_interrupt(
    sample: Path,
    tmp_path: Path,
    uninterrupted: w2v.Model,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    starts_writing: bool,
    number: int,
) -> None:
    """The interrupt comes when writer thread `number` is started: before it runs, or after."""
    starts: list[Thread] = []
    real_start = Thread.start

    def start(thread: Thread) -> None:
        starts.append(thread)
        if len(starts) != number or starts_writing:
            real_start(thread)
        if len(starts) == number:
            raise Stop

    monkeypatch.setattr(checkpoint_folder.Thread, "start", start)
    monkeypatch.setattr(run_module, "Thread", type("Other", (Thread,), {"start": real_start}))
    with pytest.raises(Stop):
        w2v.train(sample, checkpoint=tmp_path, checkpoint_every="9chunks" if number == 2 else "1h", **SMALL)
    assert not caplog.records
    assert sorted(tmp_path.iterdir()) == checkpoint_folder.files(tmp_path) != []
    monkeypatch.undo()
    assert_same(w2v.resume(tmp_path, sample), uninterrupted)


# -- command line -------------------------------------------------------------------------


def training_arguments(sample: Path, tmp_path: Path, *options: object) -> list[object]:
    """Return the arguments of a command that trains with checkpoints."""
    common = ["--vector-size", 16, "--epochs", 3, "--workers", 1, "--checkpoint", tmp_path / "states"]
    return ["train", sample, "-o", tmp_path / "out.bin", *common, *options]


@pytest.fixture
def expected(uninterrupted: w2v.Model, tmp_path: Path) -> bytes:
    """Return the content of the model file of an uninterrupted run."""
    uninterrupted.save(tmp_path / "uninterrupted.bin")
    return (tmp_path / "uninterrupted.bin").read_bytes()


def test_command_resumes_without_settings(
    sample: Path, tmp_path: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample.parent)
    out, words = os.path.relpath(tmp_path / "out.bin"), tmp_path / "words.txt"
    stderr = interrupt(sample.name, "-o", out, "--save-vocab", words, *training_arguments(sample, tmp_path)[4:])
    command = f"w2v train {sample.name} --resume {tmp_path / 'states'} -o {out} --save-vocab {words}"
    assert stderr == f"w2v: stopped by Ctrl-C; resume with: {command}\n"
    assert run(*command.split()[1:], "--quiet").stderr == ""
    assert (tmp_path / "out.bin").read_bytes() == expected
    assert len(w2v.Vocabulary.load(words)) == len(w2v.load(tmp_path / "out.bin"))
    monkeypatch.chdir(tmp_path)
    run("train", sample, "--resume", "states", "-o", "other.bin", "--save-vocab", "words2.txt")
    assert (tmp_path / "other.bin").read_bytes() == expected
    same_settings = ["--size", 16, "--iter", 3, "--cbow"]  # may be given again, also by their names in word2vec.c
    run("train", sample, "--resume", "states", "-o", "out.bin", "--force", *same_settings)


def test_seconds_include_the_time_before_the_stop(
    sample: Path, tmp_path: Path, stopped_run: checkpoint.Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds_before = 1e6
    read = checkpoint.read_checkpoint

    def read_with_seconds(path: Path) -> checkpoint.Checkpoint:
        state = read(path)
        return replace(state, resume_info=replace(state.resume_info, seconds=seconds_before))

    monkeypatch.setattr(checkpoint_folder, "read_checkpoint", read_with_seconds)
    shutil.copytree(stopped_run.path.parent, tmp_path / "states")
    seconds = run_json("train", sample, "--resume", tmp_path / "states", "-o", tmp_path / "out.bin")["seconds"]
    assert (
        seconds_before
        < seconds["read"] + seconds["train"] + seconds["save"]
        <= seconds["total"]
        < seconds_before + 1000
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alpha", 0.1], "--alpha 0.1: the run in stopped0 has 0.075; leave it out"),
        (["--workers", 2], "--workers 2: the run in stopped0 has 1"),
        (["--errors", "strict"], "--errors has no effect with --resume"),
        (["--checkpoint-every", "soon"], "checkpoint_every 'soon': it must be"),
    ],
)
def test_options_of_a_resumed_run_must_be_the_same(
    sample: Path,
    stopped_run: checkpoint.Checkpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[object],
    message: str,
) -> None:
    monkeypatch.chdir(stopped_run.path.parent.parent)
    arguments = ["train", sample, "--resume", stopped_run.path.parent.name, "-o", tmp_path / "out.bin", *options]
    assert message in run(*arguments, code=2).stderr
    assert not (tmp_path / "out.bin").exists()


# -- signals ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", SIGNALS)
def test_signals_write_a_checkpoint(number: signal.Signals, sample: Path, tmp_path: Path, expected: bytes) -> None:
    states = tmp_path / "states and more"
    arguments = [*training_arguments(sample, tmp_path), "--checkpoint", states, "--checkpoint-every", "2chunks"]
    before = fault_code("w2v._training.checkpoint_folder:CheckpointFolder.copy", number.name, turn=1)
    with start(*arguments, before=before, text=True) as process:
        stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (128 + number, "")
    arguments = ["train", str(sample), "--resume", str(states), "-o", str(tmp_path / "out.bin")]
    assert stderr == f"w2v: stopped by {signal_name(number)}; resume with: {join_command(['w2v', *arguments])}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [states.name, "uninterrupted.bin"]
    assert [each.name[11:17] for each in sorted(states.iterdir())] == ["000001", "000002"]
    assert latest(states).resume_info.done == 4
    run(*arguments, "--checkpoint-every", "1h")
    assert (tmp_path / "out.bin").read_bytes() == expected


# The system starts this function, with the number of an event, in a new thread of each process of a console.
CONSOLE_EVENT = """
import ctypes, threading
from w2v._training.checkpoint_folder import CheckpointFolder
copy, copies, stopping = CheckpointFolder.copy, [], threading.Event()
def copy_and_send(*arguments):
    copy(*arguments)
    copies.append(arguments)
    if len(copies) == 2:
        routine = ctypes.WinDLL("kernelbase").CtrlRoutine
        threading.Thread(target=routine, args=(event,), daemon=True).start()
        while True:
            stopping.wait(0.01)
CheckpointFolder.copy = copy_and_send
"""


@pytest.mark.skipif(sys.platform != "win32", reason="only Windows has console events")
@pytest.mark.parametrize("event", [0, 1, 2, 6], ids=["Ctrl-C", "Ctrl-Break", "close", "shutdown"])
def test_console_events_write_a_checkpoint(event: int, sample: Path, tmp_path: Path) -> None:
    arguments = [*training_arguments(sample, tmp_path), "--checkpoint", tmp_path, "--checkpoint-every", "2chunks"]
    with start(*arguments, before=f"event = {event}\n{CONSOLE_EVENT}", text=True) as process:
        stderr = process.communicate()[1]
    assert stderr.startswith("w2v: stopped by Ctrl-")
    assert process.returncode == 128 + (signal.SIGBREAK if event else signal.SIGINT)
    assert latest(tmp_path).resume_info.done > 2


TWO_SIGNALS = """
import os, signal
from w2v._training.run import Run
def interrupt(*_):
    os.fsync = interrupt  # the second signal comes while a checkpoint is written
    signal.raise_signal(signal.SIGINT)
Run._check_divergence = interrupt
"""


def test_second_signal_ends_the_process_at_once(sample: Path, tmp_path: Path) -> None:
    with start(*training_arguments(sample, tmp_path), before=TWO_SIGNALS) as process:
        assert process.communicate() == (b"", b"")
    assert process.returncode == -signal.SIGINT  # for a shell, 130
    assert checkpoint_folder.files(tmp_path / "states") == []
    assert not (tmp_path / "out.bin").exists()
