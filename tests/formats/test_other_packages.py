"""Formats of other packages, which entry points name."""

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import run
from w2v._formats import registry

MODULE = """
import json
from pathlib import Path
from w2v._formats.base import Format
from w2v._formats.vector_file import VectorFile
from w2v._system.files import atomic_write
from w2v._text.words import Words
import numpy as np

def read(path, limit=None, progress=None):
    rows = json.loads(Path(path).read_text()[len("rows:"):])
    return VectorFile(Words.of(rows), np.array([*rows.values()], np.float32))

def write(path, content, replace=True, progress=None):
    rows = dict(zip(content.words, content.vectors.tolist()))
    with atomic_write(path, replace) as file:
        file.write(b"rows:" + json.dumps(rows).encode())

def matches(path, head):
    return head.startswith(b"rows:")

FORMAT = Format("rows", (".rows",), 1, matches, read, write)
SAME_NAME = Format("native", (".other",), 0, matches, read, write)
SAME_EXTENSION = Format("mine", (".my.bin",), 0, lambda path, head: True, read, write)
NOT_A_FORMAT = 7
"""
ENTRY_POINTS = """[w2v.formats]
broken = no_such_module:FORMAT
not-a-format = rows_format:NOT_A_FORMAT
rows = rows_format:FORMAT
same-extension = rows_format:SAME_EXTENSION
same-name = rows_format:SAME_NAME
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with entry points into a folder of sys.path."""
    installed = tmp_path / "installed"
    metadata = installed / "rows_format-1.0.dist-info"
    metadata.mkdir(parents=True)
    (installed / "rows_format.py").write_text(MODULE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: rows-format\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(installed)
    registry.other_formats.cache_clear()
    yield
    registry.other_formats.cache_clear()


def test_a_format_of_another_package_is_written_read_and_listed(tmp_path: Path) -> None:
    path, vectors = tmp_path / "m.rows", w2v.KeyedVectors(["the", "köln"], np.array([[1, 2], [3, 4]]))
    vectors.save(path)
    assert path.read_bytes().startswith(b"rows:")
    found = w2v.load(path)
    assert found.index_to_key == ["the", "köln"]
    np.testing.assert_array_equal(found.vectors, vectors.vectors)
    assert ".rows" in run("convert", "--help").stdout
    path.write_text('rows:{"a": [NaN]}')
    with pytest.raises(w2v.W2VError, match=r"m\.rows: row 1 \('a'\) holds NaN"):
        w2v.load(path)


def test_a_format_of_another_package_cannot_replace_one_of_w2v(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "w2v"):
        assert [each.name for each in registry.other_formats()] == ["rows"]
    assert caplog.messages == [
        "the format broken is left out: no_such_module:FORMAT cannot be imported: No module named 'no_such_module'",
        "the format not-a-format is left out: rows_format:NOT_A_FORMAT is not a w2v.formats.Format",
        "the format same-extension is left out: its name or an extension belongs to another format",
        "the format same-name is left out: its name or an extension belongs to another format",
    ]
    for name in ("m.my.bin", "m.safetensors"):
        w2v.KeyedVectors(["a"], np.ones((1, 2))).save(tmp_path / name)
    assert registry.detect_format(tmp_path / "m.my.bin").name == "word2vec binary"
    assert registry.detect_format(tmp_path / "m.safetensors").name == "native"
