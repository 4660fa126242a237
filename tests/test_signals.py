"""A mapped file that another process cuts: one line, and no crash."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from w2v.errors import W2VError
from w2v.formats.native import read_native, write_native
from w2v.text.corpus import Corpus
from w2v.text.idstore import ReadingOptions, read_corpus

CUT = """
import os, sys
from w2v._signals import end_on_bus_error
from w2v.formats.native import read_native
end_on_bus_error()
arrays, _ = read_native(sys.argv[1], mmap=True)
os.truncate(sys.argv[1], 5000)
print(arrays["a"].sum())
"""


def test_a_model_that_is_cut_while_it_is_mapped(tmp_path: Path) -> None:
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


def test_a_cache_that_is_cut_while_it_is_mapped(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b c d e f g h\n" * 10_000)
    with read_corpus(Corpus(tmp_path / "text"), ReadingOptions(cache=tmp_path)) as store:
        store.release()
        os.truncate(next(tmp_path.glob("*.w2v-ids")), 5000)
        with pytest.raises(W2VError, match="was cut by another process: train again"):
            store.release()
    with read_corpus(Corpus(tmp_path / "text"), ReadingOptions(cache=tmp_path)) as store:
        assert store.tokens == 80_000
