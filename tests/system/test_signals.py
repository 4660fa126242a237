"""A mapped file that another process cuts: one line, and no crash."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import w2v
from w2v.errors import W2VError
from w2v.formats.native import read_native, write_native
from w2v.system.memory import MappedFile
from w2v.text.corpus import Corpus
from w2v.text.idstore import ReadingOptions, read_corpus

CUT = """
import os, sys
from w2v.system._signals import end_on_bus_error
from w2v.formats.native import read_native
end_on_bus_error()
arrays, _ = read_native(sys.argv[1], mmap=True)
os.truncate(sys.argv[1], 5000)
print(arrays["a"].sum())
"""


def test_a_model_that_is_cut_while_it_is_mapped(tmp_path):
    path = tmp_path / "m.safetensors"
    write_native(path, {"a": np.ones(1_000_000)}, {})
    assert read_native(path, mmap=True)[0]["a"].sum() == 1_000_000
    done = subprocess.run([sys.executable, "-c", CUT, str(path)], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "w2v: a file in use, the cache of a text or a model, was cut by another process, or its disk failed: "
        "run the command again\n"
    )


CUT_IN_PYTHON = """
import os, sys
import w2v
vectors = w2v.load(sys.argv[1], mmap=True)
os.truncate(sys.argv[1], 5000)
print(vectors.most_similar(vectors.index_to_key[0]))
"""


def test_a_model_that_is_cut_while_python_uses_it(tmp_path):
    path = tmp_path / "m.safetensors"
    w2v.KeyedVectors([f"w{row}" for row in range(9)], np.ones((9, 10_000), np.float32)).save(path)
    done = subprocess.run([sys.executable, "-c", CUT_IN_PYTHON, str(path)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGBUS  # as without us, but with a line
    assert done.stderr.startswith("w2v: a file in use")
    assert done.stderr.count("\n") == 1


CUT_IN_TRAINING = """
import os, sys
from pathlib import Path
import w2v
folder = Path(sys.argv[1])
def cut(progress):
    if progress.phase == "train" and progress.done:
        os.truncate(next(folder.glob("*.w2v-ids")), 100_000)
try:
    w2v.train(
        folder / "text", cache=folder, progress=cut, workers=2, epochs=100_000, vector_size=8,
        checkpoint=folder / "states",
    )
except w2v.W2VError as error:
    print(error, list((folder / "states").iterdir()))
"""


def test_a_cache_that_is_cut_while_python_trains(sample, tmp_path):
    (tmp_path / "text").write_bytes(sample.read_bytes())
    done = subprocess.run([sys.executable, "-c", CUT_IN_TRAINING, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    message = "the file with the ids of the text was cut by another process: train again"
    assert done.stdout == f"{message} []\n"  # no checkpoint of what was trained on zeros


def test_a_cache_that_is_cut_while_it_is_mapped(tmp_path):
    (tmp_path / "text").write_text("a b c d e f g h\n" * 10_000)
    store = read_corpus(Corpus(tmp_path / "text"), ReadingOptions(cache=tmp_path))
    store.release()
    os.truncate(next(tmp_path.glob("*.w2v-ids")), 5000)
    assert store.ids[-10_000:].sum() == 0  # lost pages are zeros
    with pytest.raises(W2VError, match="was cut by another process: train again"):
        store.release()
    with pytest.raises(W2VError, match="was cut by another process: train again"), store:
        pass
    with read_corpus(Corpus(tmp_path / "text"), ReadingOptions(cache=tmp_path)) as store:
        assert store.tokens == 80_000


def test_a_file_that_is_cut_and_as_long_again_is_noticed_where_it_was_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100_000)
    with path.open("rb") as file:
        mapped = MappedFile(file, zeros=True)
    assert not mapped.cut
    os.truncate(path, 10)
    assert mapped[50_000] == 0
    os.truncate(path, 100_000)
    assert mapped.cut
