"""Reading of files that gensim has downloaded."""

import gzip
from pathlib import Path

import pytest

from w2v.gensim import downloader


def test_downloaded_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloader, "BASE_DIR", str(tmp_path))
    for name, content in (("vectors", b"2 2\na 1 2\nb 3 4\n"), ("text8", b" one two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.gz").write_bytes(gzip.compress(content))
    assert downloader.load("vectors")["b"].tolist() == [3, 4]
    assert list(downloader.load("text8")) == [["one", "two"]]
    assert downloader.load("vectors", return_path=True) == str(tmp_path / "vectors" / "vectors.gz")
    with pytest.raises(FileNotFoundError, match="--download other"):
        downloader.load("other")
