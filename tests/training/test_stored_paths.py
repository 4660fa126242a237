"""Paths in a checkpoint are shown to the user, who names the files again; no run opens them."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest

import w2v
from tests.helpers import SMALL, assert_same, fault_code, interrupt, run, start, train_and_stop
from w2v._formats import native
from w2v._system.shell import join_command
from w2v._text.phrases import Phrases
from w2v._training import checkpoint, checkpoint_folder

REFUSED = "w2v: name all files again, because paths in a checkpoint are not used: "
OPTIONS = ["--vector-size", 16, "--epochs", 3, "--workers", 1]  # as SMALL


class StoppedRun:
    """A fake Training that has a checkpoint and receives SIGTERM."""

    checkpoint_folders = (SimpleNamespace(wait_for_newest=lambda: "a checkpoint"),)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def train(self, _: object) -> None:
        signal.raise_signal(signal.SIGTERM)


@pytest.fixture(scope="module")
def uninterrupted(sample: Path) -> w2v.Model:
    """Return the model of a run that was never stopped."""
    return w2v.train(sample, **SMALL)


def forge(folder: Path, files: Any = (), **config: Any) -> None:
    """Change the paths in the checkpoints of a folder, as somebody who passes them on could."""
    for path in checkpoint_folder.files(folder):
        arrays, metadata = native.read_native(path)
        description = json.loads(arrays["run"].tobytes())
        description["config"] |= config
        description["position"]["files"] = files or None
        arrays["run"] = np.frombuffer(json.dumps(description).encode(), np.uint8)
        metadata["checksum"] = checkpoint.checksum(arrays, metadata["settings"])
        native.write_native(path, arrays, metadata)


def contents(folder: Path) -> dict[Path, bytes | None]:
    """Return the content of each path in a folder: bytes for a file, None for everything else."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def resume_command(stderr: str) -> list[str]:
    """Return the arguments of the command at the end of standard error, split by the system's shell, without "w2v"."""
    arguments = stderr[stderr.index("w2v train") :].strip().removeprefix("w2v ")
    program = join_command([sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))"])
    done = subprocess.run(f"{program} {arguments}", shell=True, capture_output=True, check=True)
    words: list[str] = json.loads(done.stdout)
    return words


def test_paths_in_a_checkpoint_are_never_opened(sample: Path, tmp_path: Path, uninterrupted: w2v.Model) -> None:
    train_and_stop(tmp_path / "states", sample)
    mine, new, pipe = tmp_path / "mine.bin", tmp_path / ".bash_profile", tmp_path / "pipe"
    mine.write_bytes(b"mine")
    os.mkfifo(pipe)  # opening it would block forever
    outputs = {"-o": str(mine), "--save-vocab": str(new), "--plot": str(tmp_path / "run.png")}
    forge(tmp_path / "states", corpus=[str(pipe)], notes={"outputs": outputs})
    before = contents(tmp_path)
    for named in ([], [sample], ["-o", tmp_path / "named.bin"]):
        stderr = run("train", *named, "--resume", tmp_path / "states", "--force", code=2).stderr
        assert stderr.startswith(REFUSED)
        assert f"--save-vocab {new}" in stderr
    with pytest.raises(w2v.W2VError, match=rf"^give the corpus again, .* the run began with {re.escape(str(pipe))}$"):
        w2v.resume(tmp_path / "states")
    assert contents(tmp_path) == before
    stderr = run("train", sample, "--resume", tmp_path / "states", "-o", tmp_path / "named.bin", "--force").stderr
    assert f"w2v: the run began with --save-vocab {new}: give it again to write that file, too\n" in stderr
    after = contents(tmp_path)
    assert {path for path in after.keys() ^ before.keys() if path.parent == tmp_path} == {tmp_path / "named.bin"}
    assert after[mine] == b"mine"
    uninterrupted.save(tmp_path / "uninterrupted.bin")
    assert after[tmp_path / "named.bin"] == (tmp_path / "uninterrupted.bin").read_bytes()


def test_existing_output_is_replaced_only_if_output_and_force_are_given_again(sample: Path, tmp_path: Path) -> None:
    out, states = tmp_path / "out.bin", tmp_path / "states"
    out.write_bytes(b"old")
    interrupt(sample, "-o", out, "--force", "--checkpoint", states, *OPTIONS)
    assert run("train", sample, "--resume", states, "--force", code=2).stderr.startswith(REFUSED)
    refused = run("train", sample, "--resume", states, "-o", out, code=1).stderr
    assert "out.bin exists: name another file with -o, or add --force" in refused
    assert out.read_bytes() == b"old"
    run("train", sample, "--resume", states, "-o", out, "--force")
    assert len(w2v.load(out)) > 2000


def test_printed_command_resumes_the_run_without_a_home_folder(
    sample: Path, tmp_path: Path, uninterrupted: w2v.Model
) -> None:
    """All paths are relative, and a shell would split or expand them if they were not quoted."""
    text, states = tmp_path / "-the  text's[s].txt", "states  of $PPID"
    shutil.copy(sample, text)
    (tmp_path / "out.bin").write_bytes(b"old")
    outputs = ["-o", "out.bin", "--save-vocab", "words 1.txt", "--cache", "-cache"]
    every = ["--checkpoint", states, "--checkpoint-every", "2chunks"]
    given = [*outputs, *OPTIONS, *every, "--force", "--ignore-memory", "--", text.name]
    before = fault_code("w2v._training.checkpoint_folder:CheckpointFolder.copy", "SIGTERM", turn=1)
    homeless = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    where: dict[str, Any] = {"cwd": tmp_path, "env": homeless | {"HOME": "/proc/none"}, "text": True}
    with start("train", *given, before=before, **where) as process:
        stderr = process.communicate()[1]
    assert process.returncode == 143, stderr
    expected = ["train", f"./{text.name}", "--resume", states, *outputs[:-1], "./-cache", "--force", "--ignore-memory"]
    assert stderr.startswith("w2v: stopped by SIGTERM; resume with: w2v train ")
    assert resume_command(stderr) == expected
    with start(*expected, "--quiet", **where) as process:
        assert process.communicate() == ("", "")
    assert process.returncode == 0
    uninterrupted.save(tmp_path / "uninterrupted.bin")
    assert (tmp_path / "out.bin").read_bytes() == (tmp_path / "uninterrupted.bin").read_bytes()
    assert len(w2v.Vocabulary.load(tmp_path / "words 1.txt")) == len(uninterrupted.vocabulary)


def test_command_in_the_error_resumes_the_run(sample: Path, tmp_path: Path, uninterrupted: w2v.Model) -> None:
    states = tmp_path / "states"
    interrupt(sample, "-o", tmp_path / "my out.bin", "--save-vocab", tmp_path / "v", "--checkpoint", states, *OPTIONS)
    command = resume_command(run("train", "--resume", states, code=2).stderr)
    assert command == [
        "train", str(sample), "--resume", str(states), "-o", str(tmp_path / "my out.bin"), "--save-vocab",
        str(tmp_path / "v"),
    ]  # fmt: skip
    other = resume_command(run("train", "text", "--resume", states, "--cache", "c", code=2).stderr)
    assert other[:4] == ["train", "text", "--resume", str(states)]
    assert {"-o", str(tmp_path / "my out.bin"), "--cache", "c"} < set(other)
    run(*command, "--quiet")
    uninterrupted.save(tmp_path / "uninterrupted.bin")
    assert (tmp_path / "my out.bin").read_bytes() == (tmp_path / "uninterrupted.bin").read_bytes()
    assert (tmp_path / "v").exists()


def test_printed_command_includes_files_of_the_config(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are the corpus, the output and the user's own loss."""
    config, loss = tmp_path / "run.toml", "w2v._losses.sampling:NegativeSampling"
    config.write_text(f'corpus = {json.dumps(str(sample))}\noutput = "own.bin"\nobjective = "{loss}"\n')
    monkeypatch.setattr("w2v._cli.commands.training.open_training", lambda *_, **__: StoppedRun())
    options = ["--config", config, "--objective", loss, "--checkpoint", tmp_path / "states"]
    stderr = run("train", *options, code=143).stderr
    expected = ["train", sample, "--resume", tmp_path / "states", "-o", "own.bin", "--objective", loss]
    assert resume_command(stderr) == list(map(str, expected))


@pytest.mark.parametrize(
    ("sources", "shown"),
    [
        (["--force"], "./--force"),
        (["/a\n/b\x1b[2J"], join_command([r"/a\n/b\x1b[2J"])),
        (["/$(rm x)"], join_command(["/$(rm x)"])),
        (["/a", "/b", "/c"], "/a /b /c"),
        ([f"/{number}" for number in range(9999)], "/0 /1 /2 ..."),
        (["x" * 10_000], "x" * 300),
        ([], "CORPUS"),
    ],
)
def test_paths_in_a_checkpoint_are_shown_in_one_harmless_line(
    sample: Path, tmp_path: Path, sources: list[str], shown: str
) -> None:
    train_and_stop(tmp_path, sample)
    forge(tmp_path, corpus=sources)
    stderr = run("train", "--resume", tmp_path, code=2).stderr
    assert stderr == f"{REFUSED}w2v train {shown} --resume {tmp_path} -o MODEL\n"


def test_file_of_phrases_must_be_named_again(sample: Path, tmp_path: Path) -> None:
    table, states, out = tmp_path / "phrases.tsv", tmp_path / "states", tmp_path / "m.safetensors"
    Phrases.find(sample).save(table)
    train_and_stop(states, sample, phrases=table)
    with pytest.raises(
        w2v.W2VError, match=f"give the file of phrases again .* the run began with {re.escape(str(table))}$"
    ):
        w2v.resume(states, sample)
    again = ["train", sample, "--resume", states, "-o", out]
    assert resume_command(run(*again, code=2).stderr)[-2:] == ["--phrases", str(table)]
    run(*again, "--phrases", table)
    assert_same(w2v.Model.load(out), w2v.train(sample, phrases=table, **SMALL))


@pytest.mark.parametrize(("phrases", "joined"), [(False, "no phrases"), (True, "phrases that it found in the text")])
def test_resume_refuses_other_phrases(sample: Path, tmp_path: Path, phrases: bool, joined: str) -> None:
    table = tmp_path / "phrases.tsv"
    Phrases.find(sample).save(table)
    train_and_stop(tmp_path / "states", sample, phrases=phrases)
    with pytest.raises(w2v.SettingsError, match=rf"^--phrases \(phrases=\): the run joined {joined}; leave it out$"):
        w2v.resume(tmp_path / "states", sample, phrases=table)


def test_cache_is_reused_if_it_is_named_again(sample: Path, tmp_path: Path) -> None:
    train_and_stop(tmp_path / "states", sample, cache=tmp_path / "cache")
    assert not w2v.resume(tmp_path / "states", sample).metrics["cache_reused"]
    assert w2v.resume(tmp_path / "states", sample, cache=tmp_path / "cache").metrics["cache_reused"]


def test_checkpoints_have_the_mode_of_other_files(sample: Path, tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        state = train_and_stop(tmp_path, sample)
    finally:
        os.umask(before)
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o664


def test_settings_of_a_model_do_not_open_a_tree(sample: Path, tmp_path: Path) -> None:
    path, tree = tmp_path / "m.safetensors", tmp_path / "tree"
    for settings in ({"tree": str(tree)}, {"tree": "clustered", "tree_vectors": str(tree)}):
        run("train", sample, "-o", path, "--force", "--loss", "hs", "--max-vocab", 9, *OPTIONS)
        arrays, metadata = native.read_native(path)
        metadata["settings"] = json.dumps(json.loads(metadata["settings"]) | settings)
        native.write_native(path, arrays, metadata)
        stderr = run("train", sample, "--config", path, "-o", tmp_path / "new.bin", code=2).stderr
        assert "its tree was made from a file, and paths in models are not used" in stderr


def test_resume_refuses_settings_of_other_losses_and_outputs_without_content(sample: Path, tmp_path: Path) -> None:
    train_and_stop(tmp_path / "states", sample)
    resume = ["train", sample, "--resume", tmp_path / "states", "-o", tmp_path / "out.bin"]
    error = run(*resume, "--tree", "huffman", code=2).stderr
    assert "--tree: it has no effect with loss ns, which the run in" in error
    assert "--loss hs: the run in" in run(*resume, "--tree", "balanced", "--loss", "hs", code=2).stderr
    assert "--contexts has no effect without --pairs" in run(*resume, "--contexts", "c.bin", code=2).stderr
