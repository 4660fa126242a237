"""code_lengths and `w2v tree`, which also recognises vocabulary files."""

from pathlib import Path

import numpy as np

import w2v
from tests.helpers import run, run_json
from w2v._detect import kind_of
from w2v._losses.code_lengths import code_lengths

TEXT = "a a a a b b c d\n"
WORDS = "</s> 1\na 4\nb 2\nc 1\nd 1\n"


def test_huffman_reaches_the_entropy_of_counts_that_are_powers_of_two() -> None:
    found = code_lengths(w2v.Vocabulary(list("abcd"), [4, 2, 1, 1]), words=["a", "d"])
    assert (found.vocabulary_size, found.tokens, found.entropy_bits) == (4, 8, 1.75)
    balanced, huffman = found.trees
    assert (balanced.name, balanced.expected_bits, balanced.longest_bits, balanced.speed_up) == ("balanced", 2, 2, 2)
    assert (huffman.name, huffman.expected_bits, huffman.longest_bits) == ("huffman", 1.75, 3)
    assert huffman.speed_up == 4 / 1.75
    assert found.huffman_speed_up == 2 / 1.75
    assert [(word.word, word.count, word.information_bits) for word in found.words] == [("a", 4, 1), ("d", 1, 3)]
    assert [len(word.codes["huffman"]) for word in found.words] == [1, 3]
    assert [len(word.codes["balanced"]) for word in found.words] == [2, 2]


def test_tree_command_compares_a_tree_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "words").write_text(WORDS, "utf-8")
    (tmp_path / "tree").write_text("a 111\nb 110\nc 10\nd 0\n", "utf-8")
    found = run_json("tree", tmp_path / "words", "--min-count", 1, "--tree", tmp_path / "tree", "--word", "c")
    assert [tree["name"] for tree in found["trees"]] == ["balanced", "huffman", str(tmp_path / "tree")]
    assert found["trees"][2]["expected_bits"] == (4 * 3 + 2 * 3 + 2 + 1) / 8
    assert found["words"][0]["codes"][str(tmp_path / "tree")] == "10"


def test_tree_command_shows_the_same_for_a_text_and_its_vocabulary(sample: Path, model: Path, tmp_path: Path) -> None:
    run("vocab", sample, "-o", tmp_path / "words", "--quiet")
    options = ["--max-vocab", 500, "--word", "france", "--word", "the", "--tree", "clustered", "--tree-vectors", model]
    found = run_json("tree", sample, *options)
    assert found == run_json("tree", tmp_path / "words", *options)
    assert found == run_json("tree", "-", *options, stdin=sample.read_bytes())
    balanced, huffman, clustered = (tree["expected_bits"] for tree in found["trees"])
    assert found["entropy_bits"] < huffman < clustered < balanced < np.log2(found["vocabulary_size"]) + 1
    shown = run("tree", sample, *options).stdout
    for expected in (f"entropy {found['entropy_bits']:.3f} bits", f"{huffman:.3f}", "the: ", "clustered"):
        assert expected in shown
    for word in found["words"]:
        assert word["codes"]["huffman"] in shown
    fewer = run_json("tree", sample, "--max-vocab", 100)
    assert fewer["vocabulary_size"] == 100
    assert fewer["entropy_bits"] < found["entropy_bits"]


VOCABULARIES = [WORDS, "a 4", "b 1\na 1\n", "</s> 9\n" + "".join(f"word{number} 3\n" for number in range(20_000))]
OTHERS = [TEXT, "", "\n", "</s> 1\n", "chapter 3\nchapter 2\n", "page 1\nfolio 2\n", "a 4\nb 0\n", "4 2\na 0.1 0.2\n"]


def test_vocabulary_files_are_recognised_by_their_content() -> None:
    kinds = [[kind_of(content.encode()) for content in contents] for contents in (VOCABULARIES, OTHERS)]
    assert set(kinds[0]) == {"vocabulary"}
    assert "vocabulary" not in kinds[1]


def test_options_force_how_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a 4\nb 2\n", "utf-8")
    options = ["tree", tmp_path / "file", "--min-count", 1]
    assert run_json(*options) == run_json(*options, "--vocabulary")
    assert run_json(*options)["tokens"] == 6
    assert run_json(*options, "--text")["tokens"] == 4
