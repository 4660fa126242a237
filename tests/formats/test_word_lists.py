"""Matrices with a words file: .npy, and TSV for TensorBoard's projector."""

from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import assert_refused
from w2v._errors import W2VError


def test_written_files_are_plain_numpy_and_text_files(tmp_path: Path) -> None:
    ours = w2v.KeyedVectors(["the", "a b"], [[1, 2.5, 3], [4, 5, -1e-9]], [5, 3])
    ours.save(tmp_path / "m.npy")
    ours.save(tmp_path / "m.tsv")
    np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), ours.vectors)
    assert (tmp_path / "m.words.txt").read_text() == "the\na b\n"
    assert (tmp_path / "m.tsv").read_text() == "1\t2.5\t3\n4\t5\t-1e-09\n"
    assert (tmp_path / "m.metadata.tsv").read_text() == "word\tcount\nthe\t5\na b\t3\n"
    w2v.KeyedVectors(["the", "a b"], ours.vectors).save(tmp_path / "n.tsv")
    # The projector expects a header only for two or more columns.
    assert (tmp_path / "n.metadata.tsv").read_text() == "the\na b\n"


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f8", "<f2"])
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_all_float_arrays_of_numpy_are_read(tmp_path: Path, kind: str, order: str, version: tuple[int, int]) -> None:
    array = np.array([[1, 2, 3], [4, 5, 6.5]], kind, order=order)
    with (tmp_path / "m.npy").open("wb") as file:
        np.lib.format.write_array(file, array, version)
    (tmp_path / "m.words.txt").write_bytes(b"the\r\nk\xc3\xb6ln\r\n")
    found = w2v.load(tmp_path / "m.npy")
    np.testing.assert_array_equal(found.vectors, array)
    assert found.index_to_key == ["the", "köln"]
    assert found.vectors.flags.c_contiguous


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("piece", range(1, 14))
def test_a_piece_of_a_matrix_may_end_anywhere(
    tmp_path: Path, piece: int, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("w2v._formats.tsv.PIECE_BYTES", piece)
    (tmp_path / "m.tsv").write_text(f"1\t2.5\n3\t4\n5\t6{end}")
    (tmp_path / "m.metadata.tsv").write_text("a\nb\nc\n")
    np.testing.assert_array_equal(w2v.load(tmp_path / "m.tsv").vectors, [[1, 2.5], [3, 4], [5, 6]])


def test_words_and_counts_are_found_by_the_header_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "m.tsv").write_text("1\t2\n3\t4\n")
    (tmp_path / "m.metadata.tsv").write_text("label\tkind\tcount\nthe\tx\t9\na b\ty\t4")
    found = w2v.load(tmp_path / "m.tsv")
    assert found.index_to_key == ["the", "a b"]
    assert found.counts is not None
    assert found.counts.tolist() == [9, 4]


@pytest.mark.parametrize(
    ("numbers", "words", "message"),
    [
        ("1\t2\n3\n", "a\nb\n", "m.tsv: row 2 is not a word and 2 numbers"),
        ("1\tx\n", "a\n", "m.tsv: row 1 is not a word and 2 numbers"),
        ("1\tnan\n", "a\n", r"m.tsv: row 1 .* holds NaN"),
        ("\n\n", "a\nb\n", "m.tsv: row 1 is not a word and 1 number:"),
        ("1\t2\n3\t4\n", "a\n", "metadata.tsv: 1 word for 2 vectors"),
        ("1\t2\n3\t4\n", "abc\n", "metadata.tsv: 1 word for 2 vectors"),
        ("1\t2\n3\t4\n", "a\nb\nc\n", "metadata.tsv: 3 words for 2 vectors"),
        ("1\t2\n3\t4\n", "a\na\n", "twice"),
        ("1\t2\n", "word\tcount\na\tmany\n", "the count of row 1 is missing or not an integer"),
        ("1\t2\n", "word\tcount\na\n", "the count of row 1 is missing or not an integer"),
        ("1\t2\n", "word\tcount\na\t" + "9" * 30 + "\n", "the count of row 1 is missing"),
    ],
)
def test_damaged_numbers_and_word_lists_are_refused(tmp_path: Path, numbers: str, words: str, message: str) -> None:
    (tmp_path / "m.metadata.tsv").write_bytes(words.encode())
    assert_refused(tmp_path / "m.tsv", message, numbers.encode())


def test_an_array_without_words_says_how_to_add_them(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.eye(2))
    assert_refused(tmp_path / "m.npy", r"to NAME\.words\.txt next to NAME\.npy")
    (tmp_path / "m.words.txt").write_text("a\nb\n")
    assert w2v.load(tmp_path / "m.npy").index_to_key == ["a", "b"]
    np.save(tmp_path / "m.npy", np.arange(2))
    assert_refused(tmp_path / "m.npy", "expected a matrix of floats")
    np.save(tmp_path / "m.npy", np.array([{}, {}]), allow_pickle=True)
    assert_refused(tmp_path / "m.npy", "an array of type object")


@pytest.mark.parametrize("extension", [".npy", ".tsv"])
@pytest.mark.parametrize("failing", [1, 2])
def test_both_old_files_remain_if_replacing_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str, failing: int
) -> None:
    calls, system_replace = [], Path.replace

    def replace(path: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == failing:
            raise OSError("the disk is gone")
        return system_replace(path, target)

    path = tmp_path / f"m{extension}"
    w2v.KeyedVectors(["a", "b"], [[1, 2], [3, 4]]).save(path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(W2VError, match="the disk is gone"):
            w2v.KeyedVectors(["c", "d"], [[5, 6], [7, 8]]).save(path, force=True)
    found = w2v.load(path)
    assert found.index_to_key == ["a", "b"]
    np.testing.assert_array_equal(found.vectors, [[1, 2], [3, 4]])
    assert len(list(tmp_path.iterdir())) == 2
