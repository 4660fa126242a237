"""If another process truncates a mapped file, one line says so and no wrong result is saved."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import SMALL, assert_same, start
from w2v._errors import W2VError
from w2v._formats.native import write_native
from w2v._text.corpus import Corpus
from w2v._text.idstore import ReadingOptions, read_corpus
from w2v._training.checkpoint_folder import latest

pytest.importorskip("w2v._system._bus_error", reason="Windows does not let other processes truncate a mapped file")
LINE = (
    "w2v: another process truncated a file that w2v was reading (a model or the cache of a text), or its disk failed: "
    "run the command again\n"
)
TRUNCATE = """
import os, sys
from w2v._formats.native import read_native
from w2v._system._bus_error import end_on_bus_error
if sys.argv[2] == "command":
    end_on_bus_error()
arrays, _ = read_native(sys.argv[1], mmap=True)
os.truncate(sys.argv[1], 5000)
print(arrays["a"].sum())
"""


@pytest.mark.parametrize(("program", "code", "stderr"), [("command", 1, LINE), ("Python", -signal.SIGBUS, "")])
def test_reading_lost_pages_ends_the_process(tmp_path: Path, program: str, code: int, stderr: str) -> None:
    """A command prints a line. A Python program ends with SIGBUS, as with any mapped file."""
    path = tmp_path / "m.safetensors"
    write_native(path, {"a": np.ones(1_000_000)}, {})
    done = subprocess.run([sys.executable, "-c", TRUNCATE, str(path), program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", stderr)


TRUNCATE_THE_CACHE = """
import os
from pathlib import Path
from w2v._training.checkpoint_folder import CheckpointFolder
copy = CheckpointFolder.copy
def copy_and_truncate(self, state):
    copy(self, state)
    self._wait()
    file = next(Path("cache").glob("*.w2v-ids"))
    os.truncate(file, {size})
CheckpointFolder.copy = copy_and_truncate
"""


@pytest.mark.parametrize(
    ("size", "stderr"),
    [
        ("5000", LINE),
        ("file.stat().st_size - 1", "w2v: another process truncated the file with the ids of the text: train again\n"),
    ],
)
def test_training_on_a_truncated_cache_saves_nothing(sample: Path, tmp_path: Path, size: str, stderr: str) -> None:
    """Either whole pages are lost, or only the end of the last page, which then reads as zeros."""
    options = [*("--cache", "cache"), *("--epochs", 3), *("--workers", 1), *("--vector-size", 16)]
    states = ["--checkpoint", "states", "--checkpoint-every", "1epoch"]
    before = TRUNCATE_THE_CACHE.format(size=size)
    with start("train", sample, "-o", "m.bin", *options, *states, before=before, cwd=tmp_path, text=True) as process:
        assert process.communicate() == ("", stderr)
    assert process.returncode == 1
    assert not (tmp_path / "m.bin").exists()
    assert len(list((tmp_path / "states").glob("*.safetensors"))) == 1
    state = latest(tmp_path / "states")
    assert state.resume_info.done == state.resume_info.end // 3
    expected = w2v.train(sample, **SMALL)
    assert_same(w2v.resume(tmp_path / "states", sample), expected)


def test_a_truncated_cache_is_noticed_and_replaced(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b c d e f g h\n" * 10_000)
    store = read_corpus(Corpus(tmp_path / "text"), ReadingOptions(cache=tmp_path))
    store.release()
    file = next(tmp_path.glob("*.w2v-ids"))
    os.truncate(file, file.stat().st_size - 1)
    with pytest.raises(W2VError, match=r"another process truncated .*: train again"):
        store.release()
    with pytest.raises(W2VError, match=r"another process truncated .*: train again"), store:
        pass
    with read_corpus(Corpus(tmp_path / "text"), ReadingOptions(cache=tmp_path)) as store:
        assert store.tokens == 80_000
