"""spaCy folders: spaCy loads the folders of w2v, and w2v reads the folders of spaCy."""

import os
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

import w2v
from tests.helpers import assert_refused
from w2v._formats import spacy as spacy_folders

WORDS = ["the", "köln", "case", "NOUN"]  # the last two are predefined symbols in spaCy


def test_spacy_loads_written_folders(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    vectors = w2v.KeyedVectors(WORDS, np.random.default_rng(1).standard_normal((4, 3)))
    vectors.save(tmp_path / "m.spacy")
    loaded = spacy.load(tmp_path / "m.spacy")
    for word in WORDS:
        np.testing.assert_array_equal(loaded.vocab[word].vector, vectors[word])
    np.testing.assert_allclose(loaded("the case").vector, vectors[["the", "case"]].mean(axis=0), rtol=1e-6)
    assert not loaded("unknown").has_vector


def test_folders_of_spacy_are_read_unless_damaged(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    rows = np.random.default_rng(1).standard_normal((3, 3)).astype(np.float32)
    for word, row in zip(WORDS, rows, strict=False):
        pipeline.vocab.set_vector(word, row)
    pipeline.vocab.vectors.add(pipeline.vocab.strings.add("alias"), row=0)
    pipeline.vocab.vectors.add("unknown to the table of strings", row=1)
    pipeline.to_disk(tmp_path / "theirs")
    found = w2v.load(tmp_path / "theirs")
    assert {word: found[word].tolist() for word in found.index_to_key} == {
        word: rows[row].tolist() for word, row in (*zip(WORDS, range(3), strict=False), ("alias", 0))
    }
    vectors = (tmp_path / "theirs" / "vocab" / "vectors").read_bytes()
    the = spacy.strings.hash_string("the")
    for name, content, message in (
        ("vectors", vectors[:-4], "damaged: (Failed to read all data|cannot reshape array)"),
        ("key2row", msgspec.msgpack.encode({the: 100}), "damaged: index 100 is out of bounds"),
        ("key2row", msgspec.msgpack.encode({the: (1 << 64) - 1}), "damaged: "),
        ("key2row", msgspec.msgpack.encode({the: -1}), "0 words"),
        ("key2row", msgspec.msgpack.encode({the: None}), "damaged: "),
        ("key2row", msgspec.msgpack.encode({"the": 1}), "damaged: "),
        ("key2row", b"\xdf\x0f\xff\xff\xff\1\1", "damaged: "),
        ("strings.json", b'["a" "b"]', "damaged: "),
        ("strings.json", b'["a", "\\ud800"]', "damaged: "),
        ("strings.json", b'["a', "damaged: "),
        ("strings.json", b"[]", "0 words"),
        ("strings.json", b'["a", 1]', "damaged: "),
        ("key2row", b"\x81\x01", "damaged: "),
        ("vectors.cfg", b"[", "damaged: "),
    ):
        path = tmp_path / "theirs" / "vocab" / name
        before = path.read_bytes()
        path.write_bytes(content)
        assert_refused(tmp_path / "theirs", message)
        path.write_bytes(before)


@pytest.mark.parametrize("device", ["", "/dev/zero"])
def test_settings_that_are_a_device_or_pipe_are_refused(tmp_path: Path, device: str) -> None:
    pytest.importorskip("spacy")
    path = tmp_path / "m.spacy"
    w2v.KeyedVectors(WORDS, np.ones((4, 3))).save(path)
    settings = path / "vocab" / "vectors.cfg"
    settings.unlink()
    settings.symlink_to(device) if device else os.mkfifo(settings)
    assert_refused(path, f"vectors.cfg: it is a {'device' if device else 'pipe'}")


def test_floret_vectors_are_refused(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.vocab.vectors = spacy.vectors.Vectors(
        strings=pipeline.vocab.strings, data=np.ones((10, 3), "f4"), mode="floret", hash_count=1, minn=2, maxn=3
    )
    pipeline.to_disk(tmp_path / "theirs")
    assert_refused(tmp_path / "theirs", "its vectors are of mode floret, which stores no words")


def test_words_with_the_same_key_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """spaCy's keys are hashes of 64 bits, so the test replaces them by the lengths of the words."""
    strings = SimpleNamespace(add=len)
    pipeline = SimpleNamespace(vocab=SimpleNamespace(strings=strings))
    monkeypatch.setattr(spacy_folders, "_import_spacy", lambda _: SimpleNamespace(blank=lambda _: pipeline))
    with pytest.raises(w2v.W2VError, match=r"m\.spacy: not written: two of its words have the same spaCy key"):
        w2v.KeyedVectors(["a", "two", "one"], np.ones((3, 2))).save(tmp_path / "m.spacy")
    assert not list(tmp_path.iterdir())
