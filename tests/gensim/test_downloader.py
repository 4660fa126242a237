"""Reading of files that gensim has downloaded."""

import gzip
import json
from pathlib import Path

import pytest

from w2v.gensim import downloader


def test_downloaded_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloader, "BASE_DIR", str(tmp_path))
    for name, content in (("vectors", b"2 2\na 1 2\nb 3 4\n"), ("text8", b" one two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.gz").write_bytes(gzip.compress(content))
    assert downloader.load("vectors")["b"].tolist() == [3, 4]
    text = downloader.load("text8")
    assert list(text) == list(text) == [["one", "two"]]
    assert text.fn == downloader.load("text8", return_path=True) == str(tmp_path / "text8" / "text8.gz")
    assert downloader.load("vectors", return_path=True) == str(tmp_path / "vectors" / "vectors.gz")
    with pytest.raises(FileNotFoundError, match="--download other"):
        downloader.load("other")


def test_list_of_downloads_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloader, "BASE_DIR", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"gensim\.downloader --info"):
        downloader.info()
    listed = {"corpora": {"text8": {"parts": 1}}, "models": {"old": {"latest": False}, "new": {"latest": True}}}
    (tmp_path / "information.json").write_text(json.dumps(listed))
    assert downloader.info("text8") == {"parts": 1}
    assert downloader.info(name_only=True) == {"corpora": ["text8"], "models": ["old", "new"]}
    assert downloader.info() == {"corpora": {"text8": {"parts": 1}}, "models": {"new": {"latest": True}}}
    assert downloader.info(show_only_latest=False) == listed
    with pytest.raises(ValueError, match="'other' is not in"):
        downloader.info("other")
