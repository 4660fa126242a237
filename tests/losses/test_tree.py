"""Trees from files and of clusters, good and bad, through the commands."""

from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import QUICK, run, run_json
from w2v.losses.tree import HierarchicalSoftmax

CODES = "a 00\nb 01\nc 10\nd 11\n"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("a b c d\n" * 10, "utf-8")
    return path


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (b"", "tree: 4 of the vocabulary's words have no code, 'a' for one"),
        (b"a 00\nb 01\nc 1\n", "tree: 1 of the vocabulary's words have no code, 'd' for one"),
        (b"a 00\nb 01\nc 100\nd 101\n", "tree: no code begins with 11: the tree is not full"),
        (b"a 00\nb 010\nc 10\nd 11\n", "tree: no code begins with 011: the tree is not full"),
        (b"a 0\nb 01\nc 10\nd 11\n", "tree: code 0, that of 'a', is the beginning of another code"),
        (b"a 00\nb 01\nc 11\nd 11\n", "tree: code 11 is that of two words, 'c' and 'd'"),
        (b"a 00\nb 01\nc 10\nd 11\na 11\n", "tree, line 5: 'a' has a code already"),
        (b"a 00\nb 01\nc 10\nd 110\ne 111\n", "tree, line 5: 'e' is not in the vocabulary"),
        (b"a 00\nb 02\nc 10\nd 11\n", "tree, line 2: not a word and its code"),
        (b"a 00\nb\nc 10\nd 11\n", "tree, line 2: not a word and its code"),
        (b"a 00\n\nb 0 1\nc 10\nd 11\n", "tree, line 3: not a word and its code"),
        (b"a " + b"0" * 1025, "tree, line 1: not a word and its code of at most 1024"),
        (b"\xff 0\n", "tree, line 1: '\\ufffd' is not in the vocabulary"),
    ],
)
def test_bad_trees(codes: bytes, expected: str, text: Path, tmp_path: Path) -> None:
    (tmp_path / "tree").write_bytes(codes)
    options = ["--min-count", 1, "--tree", tmp_path / "tree"]
    for command in ["tree", text, *options], ["train", text, "-o", tmp_path / "m.bin", "--hs", *QUICK, *options]:
        assert expected in run(*command, code=1).stderr.replace("\ufffd", "\\ufffd")
    assert not (tmp_path / "m.bin").exists()


def test_a_tree_that_is_no_file(text: Path, tmp_path: Path) -> None:
    for name in "missing", ".":
        error = run("tree", text, "--min-count", 1, "--tree", tmp_path / name, code=1).stderr
        assert f"cannot read {tmp_path / name}" in error


def test_vectors_that_cannot_be_clustered(text: Path, tmp_path: Path) -> None:
    foreign, missing = tmp_path / "foreign.bin", tmp_path / "missing.bin"
    w2v.KeyedVectors(["x", "y"], np.eye(2, dtype=np.float32)).save(foreign)
    for path, expected in (
        (foreign, f"{foreign}: has none of the vocabulary's words"),
        (missing, f"cannot read {missing}: No such file or directory"),
        (tmp_path, f"cannot read {tmp_path}: it is a folder"),
        (text, f"{text}: not a vector file: it begins with b'a b c d"),
    ):
        options = ["--min-count", 1, "--tree", "clustered", "--tree-vectors", path]
        for command in ["tree", text, *options], ["train", text, "-o", tmp_path / "m.bin", "--hs", *QUICK, *options]:
            assert run(*command, code=1).stderr.startswith(f"w2v: {expected}")
    assert not (tmp_path / "m.bin").exists()


def test_similar_words_share_the_beginnings_of_clustered_codes(tmp_path: Path) -> None:
    """A word that the model lacks stands between the clusters, and goes where the halves of the text are equal."""
    vocabulary = w2v.Vocabulary(list("abcdef"), [3, 3, 2, 2, 1, 1])
    vectors = [[1, 0.1], [-1, 0.1], [0.9, 0], [-1, 0], [1, -0.1]]
    w2v.KeyedVectors(list("abcde"), np.array(vectors, np.float32)).save(tmp_path / "vectors.bin")
    layer = HierarchicalSoftmax.build(vocabulary, "clustered", tmp_path / "vectors.bin")
    codes = [layer.code(word) for word in range(6)]
    assert codes[0][0] == codes[2][0] == codes[4][0] != codes[1][0] == codes[3][0] == codes[5][0]
    assert [len(code) for code in codes] == [2, 2, 3, 3, 3, 3]


def test_a_tree_is_kept_with_its_model(text: Path, tmp_path: Path) -> None:
    """The model needs its file no more."""
    (tmp_path / "tree").write_text("a 111\nb 110\nc 10\nd 0\n", "utf-8")
    output = tmp_path / "m.safetensors"
    run("train", text, "-o", output, "--hs", "--tree", tmp_path / "tree", "--min-count", 1, "--sample", 0, *QUICK)
    (tmp_path / "tree").unlink()
    layer = w2v.Model.load(output).layer
    assert isinstance(layer, HierarchicalSoftmax)
    assert [layer.code(word) for word in range(4)] == ["111", "110", "10", "0"]
    assert run_json("perplexity", output, text)["tokens"] == 40


def test_full_softmax_of_many_words_is_to_be_asked_for(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("a b\n" + "".join(f"word{number}\n" for number in range(29_999)), "utf-8")
    command = ["train", text, "-o", tmp_path / "m.bin", "--loss", "softmax", "--min-count", 1, *QUICK]
    error = run(*command, code=2).stderr
    assert "loss softmax: each prediction takes the rows of all 30,001 words" in error
    assert "large_softmax" in error
    run(*command, "--large-softmax")
    assert len(w2v.load(tmp_path / "m.bin")) == 30_001
