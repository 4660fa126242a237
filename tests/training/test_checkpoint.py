"""Checkpoints: a run that is stopped and goes on ends as if it had never been stopped."""

import itertools
import json
import os
import resource
import shlex
import shutil
import signal
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
    fault,
    full_disk,
    interrupted,
    run,
    run_json,
    start,
    stop_at,
    stopped,
)
from w2v.formats import native
from w2v.system.threads import NoThread, Thread
from w2v.training import checkpoint
from w2v.training import run as running
from w2v.training.checkpoint import Checkpoints, latest
from w2v.training.run import Run
from w2v.training.schedule import interval


@pytest.fixture(scope="module")
def whole(sample: Path) -> w2v.Model:
    """The model of a run that is not stopped."""
    return w2v.train(sample, **SMALL)


@pytest.fixture(scope="module")
def given(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> checkpoint.Checkpoint:
    """The last checkpoint of such a run that was stopped."""
    return stopped(tmp_path_factory.mktemp("given"), sample)


# -- going on -------------------------------------------------------------------------------


SUBWORDS = {"subwords": (3, 4), "buckets": 3000}
OTHERS: list[dict[str, Any]] = [
    *({"storage": "bf16", "model": model, "loss": loss} for model, loss in (("skipgram", "ns"), ("cbow", "class"))),
    *(SUBWORDS | each for each in ({"loss": "hs"}, {"storage": "bf16"})),
    {"kernel": "numba", "vector_size": 21},
    *({"deterministic": True, "workers": 3, "model": "skipgram", "loss": loss} for loss in ("ns", "hs")),
    {"vectors": "concatenated"},
    {"epochs": "auto", "vector_size": 4},
    {"init": w2v.KeyedVectors(["the", "king"], [[1, -2], [3, 0.5]]), "vector_size": 2},
]


@pytest.mark.parametrize("options", [*MODELS, *OTHERS], ids=str)
def test_a_resumed_run_ends_with_the_same_bits(sample: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    if options.get("loss") in ("softmax", "class") or "storage" in options:  # with all words they take long
        options = options | {"max_vocab": 300}
    text = sample
    if "subwords" in options:  # whose training is slower, in shorter chunks
        text = tmp_path / "text"
        text.write_text(sample.read_text("utf-8")[:100_000], "utf-8")
    whole = w2v.train(text, **SMALL | options)
    found = stopped(tmp_path, text, 0.1, **options)
    kept = found.parameters
    assert {array.dtype.name for array in kept.values()} == {"bfloat16" if "storage" in options else "float32"}
    assert ("ngrams" in kept) == ("subwords" in options)
    with pytest.raises(Stop):
        w2v.resume(tmp_path, text, progress=stop_at(0.5))  # in a later epoch
    resumed = w2v.resume(tmp_path, text)
    assert_same(resumed, whole)
    for name, model in ("resumed", resumed), ("whole", whole):
        model.save(tmp_path / f"{name}.safetensors")
    assert (tmp_path / "resumed.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert_same(w2v.resume(tmp_path, text), whole)  # which has nothing left to do


def test_lists_of_words_are_given_again(sample: Path, tmp_path: Path, whole: w2v.Model) -> None:
    lists = [line.split() for line in sample.read_text("utf-8").splitlines()]
    stopped(tmp_path, lists)
    with pytest.raises(w2v.W2VError, match=r"give the corpus again, .*; it was not a file"):
        w2v.resume(tmp_path)
    assert_same(w2v.resume(tmp_path, lists), whole)


def test_words_are_made_in_the_same_way_after_a_stop(sample: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.jsonl"
    lines = sample.read_text("utf-8").splitlines()
    text.write_text("".join(json.dumps({"t": f"<p>{line.title()}, 1</p>"}) + "\n" for line in lines))
    options = {"column": "t", "lower": True, "tokenize": "words", "digits": "spell", "strip_markup": True}
    found = stopped(tmp_path / "states", text, **options)
    assert w2v.load(found.path).words_in("Paris, 7!") == ["paris", "seven"]
    again = w2v.resume(tmp_path / "states", text)
    assert again.text == w2v.train(text, **SMALL, **options).text == found.config.text
    assert "one" in again.vocabulary.words
    assert_same(again, w2v.train(text, **SMALL, **options))
    assert w2v.Model.load(checkpoint.latest(tmp_path / "states").path).text == again.text


def test_the_same_text_may_have_moved(sample: Path, tmp_path: Path, whole: w2v.Model) -> None:
    shutil.copy(sample, tmp_path / "a.txt")
    stopped(tmp_path / "states", tmp_path / "a.txt")
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    with pytest.raises(w2v.W2VError, match=r"a\.txt' does not exist"):
        w2v.resume(tmp_path / "states", tmp_path / "a.txt")
    assert_same(w2v.resume(tmp_path / "states", tmp_path / "b.txt"), whole)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text + b"more words\n", r".* had [\d,]+ bytes when the run began, and .*text has"),
        (lambda text: text.replace(b"the", b"eht", 1), ".*text does not hold the text"),
        (lambda text: text.replace(b"\n", b" ", 1), ".*text does not hold the text"),
    ],
)
def test_another_corpus_is_refused(
    sample: Path, tmp_path: Path, given: checkpoint.Checkpoint, change: Callable[[bytes], bytes], message: str
) -> None:
    (tmp_path / "text").write_bytes(change(sample.read_bytes()))
    with pytest.raises(w2v.W2VError, match=f"another corpus: {message}"):
        w2v.resume(given, tmp_path / "text")


def test_another_version_is_told(sample: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "__version__", "0.0.7")
        stopped(tmp_path, sample)
    told = f"the checkpoint was written by w2v 0.0.7, this is {w2v.__version__}: last bits may differ"
    for _ in range(2):
        w2v.resume(tmp_path, sample)
        assert caplog.messages == [told]


@pytest.mark.parametrize(
    ("change", "by"),
    [
        ({"package_version": "99.0"}, "w2v 99.0"),  # whose checksum is another
        ({"package_version": "99.0\n" * 999, "settings": '{"quality": "high"}'}, r"w2v 99.0\\n[^\n]*"),
        ({"package_version": ""}, "an earlier w2v"),
    ],
)
def test_a_version_that_writes_others_is_named(
    given: checkpoint.Checkpoint, tmp_path: Path, change: dict[str, str], by: str, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2):
        arrays, metadata = native.read_native(given.path)
        metadata |= {"checksum": "b1946ac9"} | change
        if "settings" in change:
            metadata["checksum"] = checkpoint.checksum(arrays, metadata["settings"])
        native.write_native(tmp_path / f"checkpoint-{number:06}.safetensors", arrays, metadata)
    message = rf"^{tmp_path}/checkpoint-000002.safetensors was written by {by}, and this is w2v [^\n]*that version$"
    with pytest.raises(w2v.W2VError, match=message):
        w2v.resume(tmp_path)
    assert caplog.records == []


# -- the files ------------------------------------------------------------------------------


def test_the_last_two_are_kept_and_others_left_alone(sample: Path, tmp_path: Path) -> None:
    """But not what a killed run has left unfinished, nor what the first of another run replaces."""
    (tmp_path / "checkpoint-notes.safetensors").touch()
    (tmp_path / ".checkpoint-000009.safetensors.0123456789abcdef.tmp").touch()
    for every, kept in (("6 chunks", ("000003", "000004", "notes")), ("1h", ("000005", "notes"))):
        before = checkpoint.files(tmp_path)
        checkpoints = Checkpoints(tmp_path, every, replace=True)
        assert checkpoint.files(tmp_path) == before
        w2v.train(sample, checkpoint=checkpoints, **SMALL)
        assert sorted(path.name for path in tmp_path.iterdir()) == [f"checkpoint-{name}.safetensors" for name in kept]


def test_a_checkpoint_is_a_model_file(given: checkpoint.Checkpoint) -> None:
    vectors = w2v.load(given.path)
    np.testing.assert_array_equal(vectors.vectors, given.parameters["inputs"])
    assert vectors.index_to_key == given.vocabulary.words


def test_a_tree_from_a_file_is_kept(sample: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree.txt"
    vocabulary = w2v.train(sample, max_vocab=256, **SMALL).vocabulary
    tree.write_text("".join(f"{word} {code:08b}\n" for code, word in enumerate(vocabulary.words)), "utf-8")
    options = {"loss": "hs", "tree": str(tree), "max_vocab": 256}
    whole = w2v.train(sample, **SMALL | options)
    stopped(tmp_path / "states", sample, **options)
    tree.unlink()
    assert_same(w2v.resume(tmp_path / "states", sample), whole)


@pytest.mark.parametrize("damage", ["cut", "empty", "matrix", "settings"])
def test_a_damaged_checkpoint_is_passed_over(
    sample: Path, tmp_path: Path, damage: str, given: checkpoint.Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(given.path.parent, tmp_path, dirs_exist_ok=True)
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
    before.write_bytes(b"")
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


def test_time_decides(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run does not end by itself."""
    copy, turns = Checkpoints.copy, itertools.count(1)

    def copy_or_stop(self: Checkpoints, state: checkpoint.Checkpoint) -> None:
        if next(turns) == 3:
            raise Stop
        copy(self, state)

    monkeypatch.setattr(Checkpoints, "copy", copy_or_stop)
    with pytest.raises(Stop):
        w2v.train(sample, checkpoint=tmp_path, checkpoint_every="0.001s", **SMALL | {"epochs": 100_000})
    assert len(checkpoint.files(tmp_path)) == 2


@pytest.mark.parametrize("every", ["1epoch", "never"])
def test_a_checkpoint_is_written_before_a_hard_limit_of_processor_time(
    tmp_path: Path, given: checkpoint.Checkpoint, monkeypatch: pytest.MonkeyPatch, every: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("resource.getrlimit", lambda _: (resource.RLIM_INFINITY, 100))
        checkpoints = Checkpoints(tmp_path, every)
    due = []
    for seconds in (74, 76):
        monkeypatch.setattr("time.process_time", lambda seconds=seconds: seconds)
        due.append(checkpoints.due)
    checkpoints.copy(given)
    assert checkpoints.newest == checkpoint.files(tmp_path)[0]
    assert [*due, checkpoints.due] == [False, True, False]


def test_intervals() -> None:
    found = {"30s": (30, 0, 0), "10m": (600, 0, 0), "1.5h": (5400, 0, 0), "1epoch": (0, 1, 0), "2 chunks": (0, 0, 2)}
    assert {every: interval(every) for every in found} == found
    for every in ("", "0s", "10", "-1m", "10ms", "5 minutes", "epoch"):
        with pytest.raises(w2v.SettingsError, match=r"checkpoint_every .*like 30s or 1epoch"):
            interval(every)


@pytest.mark.parametrize(
    ("every", "expected"),
    [("1chunk", [1, 2, 3, 4, 5, 6]), ("2.5 chunks", [3, 5, 8, 10, 13, 15]), ("1epoch", [10, 20, 30, 40, 50, 60]),
     ("0.25epochs", [3, 5, 8, 10, 13, 15]), ("0.01epochs", [1, 2, 3, 4, 5, 6])],
)  # fmt: skip
def test_parts_of_the_text_end_at_exact_positions(tmp_path: Path, every: str, expected: list[int]) -> None:
    checkpoints = Checkpoints(tmp_path, every)
    positions = itertools.accumulate(range(6), lambda position, _: checkpoints.next_position(position, 10), initial=0)
    assert list(positions) == [0, *expected]
    assert not checkpoints.due


@pytest.mark.parametrize("workers", [1, 3])
def test_checkpoints_are_written_there(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    positions: list[int] = []
    monkeypatch.setattr(Checkpoints, "copy", lambda _, state: positions.append(state.position.done))
    w2v.train(sample, checkpoint=tmp_path, checkpoint_every="4chunks", **SMALL | {"workers": workers})
    end = latest(tmp_path).position.end
    assert positions == list(range(4, end, 4))


# -- what goes wrong ------------------------------------------------------------------------


def test_a_checkpoint_that_cannot_be_written_is_told_and_training_goes_on(
    sample: Path, tmp_path: Path, whole: w2v.Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    system, calls = os.fsync, []

    def fsync(file: int) -> None:  # the disk is full after the first checkpoint
        calls.append(file)
        if len(calls) > 2:
            full_disk()
        system(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        assert_same(w2v.train(sample, checkpoint=tmp_path, checkpoint_every="2chunks", **SMALL), whole)
    (only,) = tmp_path.iterdir()
    reason = f"cannot write {tmp_path / 'checkpoint-000002.safetensors'}: No space left on device"
    assert set(caplog.messages) == {f"checkpoint not written: {reason}; {only} is kept"}
    assert len(caplog.records) > 1
    assert_same(w2v.resume(tmp_path, sample), whole)


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_that_cannot_be_started_cost_no_checkpoint(
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
    assert latest(tmp_path).position.done == 3
    model = w2v.resume(tmp_path, sample)
    assert model.metrics["tokens_trained"] == 3 * model.metrics["tokens"]


def test_an_unforeseen_error_of_the_writer_ends_no_run(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checkpoint, "checksum", lambda *_: 1 / 0)
    w2v.train(sample, checkpoint=tmp_path, **SMALL)
    assert caplog.messages == ["checkpoint not written: division by zero"]


def test_only_the_checkpoints_of_the_run_are_removed(tmp_path: Path, given: checkpoint.Checkpoint) -> None:
    """Not those that someone puts there while it lasts."""
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(given)
    (tmp_path / "checkpoint-900000.safetensors").touch()
    for _ in range(3):
        checkpoints.write(given)
    assert [path.name[11:17] for path in checkpoint.files(tmp_path)] == ["000003", "000004", "900000"]


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


def test_as_many_epochs_as_one_likes(tmp_path: Path) -> None:
    options: dict[str, Any] = {"min_count": 1, "epochs": 60_000, "vector_size": 2, "workers": 1, "sample": 0}
    whole = w2v.train([["a", "b"]] * 2, checkpoint=tmp_path / "states", **options)
    whole.save(tmp_path / "m.safetensors")
    for mmap in (False, True):
        assert w2v.Model.load(tmp_path / "m.safetensors", mmap).metrics["loss"] == whole.metrics["loss"]
    assert latest(tmp_path / "states").losses.shape == (60_000,)


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
    whole: w2v.Model,
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
            raise Stop

    monkeypatch.setattr(checkpoint.Thread, "start", start)
    monkeypatch.setattr(running, "Thread", type("Other", (Thread,), {"start": system}))
    with pytest.raises(Stop):
        w2v.train(sample, checkpoint=tmp_path, checkpoint_every="9chunks" if times == 2 else "1h", **SMALL)
    assert not caplog.records
    assert sorted(tmp_path.iterdir()) == checkpoint.files(tmp_path) != []
    monkeypatch.undo()
    assert_same(w2v.resume(tmp_path, sample), whole)


# -- the command ----------------------------------------------------------------------------


def quick(sample: Path, tmp_path: Path, *options: object) -> list[object]:
    """The arguments of a run with checkpoints."""
    always = ["--vector-size", 16, "--epochs", 3, "--workers", 1, "--checkpoint", tmp_path / "states"]
    return ["train", sample, "-o", tmp_path / "out.bin", *always, *options]


@pytest.fixture
def expected(whole: w2v.Model, tmp_path: Path) -> bytes:
    """The file of such a run that is not stopped."""
    whole.save(tmp_path / "whole.bin")
    return (tmp_path / "whole.bin").read_bytes()


def test_resuming_needs_the_files_and_no_settings(
    sample: Path, tmp_path: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample.parent)
    out, words = os.path.relpath(tmp_path / "out.bin"), tmp_path / "words.txt"
    said = interrupted(sample.name, "-o", out, "--save-vocab", words, *quick(sample, tmp_path)[4:])
    command = f"w2v train {sample.name} --resume {tmp_path / 'states'} -o {out} --save-vocab {words}"
    assert said == f"w2v: stopped by Ctrl-C; resume with: {command}\n"
    assert run(*command.split()[1:], "--quiet").stderr == ""
    assert (tmp_path / "out.bin").read_bytes() == expected
    assert len(w2v.Vocabulary.load(words)) == len(w2v.load(tmp_path / "out.bin"))
    monkeypatch.chdir(tmp_path)
    run("train", sample, "--resume", "states", "-o", "other.bin", "--save-vocab", "words2.txt")
    assert (tmp_path / "other.bin").read_bytes() == expected
    run("train", sample, "--resume", "states", "-o", "out.bin", "--force", "--size", 16, "--iter", 3, "--cbow")


def test_times_include_those_before_the_stop(
    sample: Path, tmp_path: Path, given: checkpoint.Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = 1e6  # seconds of training
    read = checkpoint.read

    def slow(path: Path) -> checkpoint.Checkpoint:
        found = read(path)
        return replace(found, position=replace(found.position, seconds=before))

    monkeypatch.setattr(checkpoint, "read", slow)
    shutil.copytree(given.path.parent, tmp_path / "states")
    seconds = run_json("train", sample, "--resume", tmp_path / "states", "-o", tmp_path / "out.bin")["seconds"]
    assert before < seconds["read"] + seconds["train"] + seconds["save"] <= seconds["total"] < before + 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alpha", 0.1], "--alpha 0.1: the run in given0 has 0.075; leave it out"),
        (["--sg"], "--model skipgram: the run in given0 has cbow"),
        (["--workers", 2], "--workers 2: the run in given0 has 1"),
        (["--errors", "strict"], "--errors has no effect with --resume"),
        (["--checkpoint", "other"], "--checkpoint has no effect with --resume"),
        (["--checkpoint-every", "soon"], "checkpoint_every 'soon': it must be"),
    ],
)
def test_what_is_given_beside_must_be_the_same(
    sample: Path,
    given: checkpoint.Checkpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[object],
    message: str,
) -> None:
    monkeypatch.chdir(given.path.parent.parent)
    arguments = ["train", sample, "--resume", given.path.parent.name, "-o", tmp_path / "out.bin", *options]
    assert message in run(*arguments, code=2).stderr
    assert not (tmp_path / "out.bin").exists()


def test_a_run_begun_in_python_needs_an_output(sample: Path, tmp_path: Path, expected: bytes) -> None:
    stopped(tmp_path / "states", sample)
    assert " -o MODEL\n" in run("train", sample, "--resume", tmp_path / "states", code=2).stderr
    assert "holds checkpoints of another run" in run(*quick(sample, tmp_path), code=1).stderr
    run("train", sample, "--resume", tmp_path / "states", "-o", tmp_path / "out.bin")
    assert (tmp_path / "out.bin").read_bytes() == expected


# -- the process ----------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGXCPU])
def test_signals_write_a_checkpoint(number: signal.Signals, sample: Path, tmp_path: Path, expected: bytes) -> None:
    states = tmp_path / "states and more"
    arguments = [*quick(sample, tmp_path), "--checkpoint", states, "--checkpoint-every", "2chunks"]
    before = fault("w2v.training.checkpoint:Checkpoints.copy", number.name, turn=1)
    with start(*arguments, before=before, text=True) as process:
        stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (128 + number, "")
    by = "Ctrl-C" if number == signal.SIGINT else number.name
    command = f"w2v train {sample} --resume '{states}' -o {tmp_path / 'out.bin'}"
    assert stderr == f"w2v: stopped by {by}; resume with: {command}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [states.name, "whole.bin"]
    assert [each.name[11:17] for each in sorted(states.iterdir())] == ["000001", "000002"]
    assert latest(states).position.done == 4
    run(*shlex.split(command)[1:], "--checkpoint-every", "1h")
    assert (tmp_path / "out.bin").read_bytes() == expected


TWO_SIGNALS = """
import os, signal
from w2v.training.run import Run
def interrupt(*_):
    os.fsync = interrupt  # while a checkpoint is written
    signal.raise_signal(signal.SIGINT)
Run._check_numbers = interrupt
"""


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="elsewhere an unfinished file has a name")
def test_a_second_signal_ends_it_at_once(sample: Path, tmp_path: Path) -> None:
    with start(*quick(sample, tmp_path), before=TWO_SIGNALS) as process:
        assert process.communicate() == (b"", b"")
    assert process.returncode == -signal.SIGINT  # for a shell, 130
    assert checkpoint.files(tmp_path / "states") == []
    assert not (tmp_path / "out.bin").exists()
