"""Trees of hierarchical softmax: Huffman's, and trees from files and from clusters, good and bad."""

import heapq
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import w2v
from tests.helpers import DESCENDING_COUNTS as COUNTS
from tests.helpers import QUICK, run, run_json
from w2v._errors import W2VError
from w2v._losses.hierarchical_softmax import build_tree
from w2v._losses.registry import Settings
from w2v._losses.tree import MAX_CODE_LENGTH, Tree, read_codes


def entropy(shares: np.ndarray) -> float:
    return -float(shares @ np.log2(shares))


def heap_cost(counts: np.ndarray) -> int:
    """Return the total bits of the optimal code, by Huffman's algorithm with a heap."""
    heap, cost = counts.tolist(), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        both = heapq.heappop(heap) + heapq.heappop(heap)
        cost += both
        heapq.heappush(heap, both)
    return cost


@given(COUNTS)
def test_huffman_code_is_optimal(counts: np.ndarray) -> None:
    lengths = Tree.huffman(counts).lengths
    shares = counts / counts.sum()
    assert sum(n * bits for n, bits in zip(counts.tolist(), lengths.tolist(), strict=True)) == heap_cost(counts)
    assert (np.diff(lengths) >= 0).all()  # also for words with equal counts
    assert entropy(shares) - 1e-9 <= shares @ lengths < entropy(shares) + 1


@given(COUNTS)
def test_paths_of_all_words_form_one_tree(counts: np.ndarray) -> None:
    """It follows that the codes are prefix-free and complete."""
    tree = Tree.huffman(counts)
    size = len(counts)
    assert len(tree.starts) - 2 == size - 1
    children: dict[tuple[int, int], str] = {}  # by node and code
    for word in range(size):
        path = range(tree.starts[word], tree.starts[word + 1])
        nodes = tree.nodes[path].tolist()
        assert nodes[0] == size - 2  # the root
        below = [*(f"node {node}" for node in nodes[1:]), f"word {word}"]
        for node, code, child in zip(nodes, tree.codes[path].tolist(), below, strict=True):
            assert children.setdefault((node, code), child) == child
    assert set(children) == {(node, code) for node in range(size - 1) for code in (0, 1)}
    assert len(set(children.values())) == 2 * (size - 1)


def test_tree_of_doubling_counts_is_a_comb() -> None:
    counts = 2 ** np.arange(40)[::-1]
    assert Tree.huffman(counts).lengths.tolist() == [*range(1, 40), 39]


def test_trees_have_at_most_1024_levels() -> None:
    for size in (1025, 1026):  # a comb: each inner node has a word and the inner node before it as children
        inner_nodes = np.arange(size, 2 * size - 1, dtype=np.int32)
        parents = np.concatenate([inner_nodes[:1], inner_nodes, inner_nodes[1:]])
        bits = np.concatenate([[0], np.ones(size - 1), np.zeros(size - 2)]).astype(np.int8)
        if size == 1025:
            assert Tree.from_parents(parents, bits).lengths.max() == 1024
            continue
        with pytest.raises(W2VError, match="the tree has 1025 levels: at most 1024 are possible; choose another tree"):
            Tree.from_parents(parents, bits)


def test_branches_other_than_0_and_1_are_refused() -> None:
    parents, bits = np.array([4, 4, 5, 5, 6, 6], np.int32), np.array([0, 1, 0, 1, 0, 1], np.int8)
    assert Tree.from_tensors({"tree_parents": parents, "tree_bits": bits}, 4).lengths.tolist() == [2, 2, 2, 2]
    parents[4], bits[4] = 5, 2  # 2 · parent + bit is the same as for branch 0 of node 6
    with pytest.raises(w2v.W2VError, match="it is not a binary tree over its 4 words"):
        Tree.from_tensors({"tree_parents": parents, "tree_bits": bits}, 4)


def test_balanced_codes_of_any_number_of_words() -> None:
    """Levels are full except for the last, and the first words have shorter codes."""
    for size in range(2, 40):
        lengths = Tree.balanced(size).lengths.tolist()
        assert lengths == sorted(lengths)
        assert lengths[-1] - lengths[0] <= 1
        assert sum(2.0**-length for length in lengths) == 1


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("a b c d\n" * 10, "utf-8")
    return path


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (b"", "tree: no code for 4 words of the vocabulary, for example 'a'$"),
        (b"a 00\nb 01\nc 1\n", "tree: no code for 1 word of the vocabulary, for example 'd'$"),
        (b"a 00\nb 01\nc 100\nd 101\n", "tree: no code begins with 11: the tree is not full"),
        (b"a 00\nb 010\nc 10\nd 11\n", "tree: no code begins with 011: the tree is not full"),
        (b"a 0\nb 01\nc 10\nd 11\n", "tree: code 0 of 'a' is a prefix of another code"),
        (b"a 00\nb 01\nc 11\nd 11\n", "tree: two words have code 11, 'c' and 'd'"),
        (b"a 00\nb 01\nc 10\nd 11\na 11\n", "tree, line 5: 'a' already has a code"),
        (b"a 00\nb 01\nc 10\nd 110\ne 111\n", "tree, line 5: 'e' is not in the vocabulary"),
        (b"a 0\nb\n", "tree, line 2: not a word and its code of at most 1024 zeros and ones$"),
        (b"a 0 1\n", "tree, line 1: not a word and its code"),
        (b"a 02\n", "tree, line 1: not a word and its code"),
        (b"a " + b"0" * 1025, "tree, line 1: not a word and its code"),
        (b"a 0\ncaf\xe9 1\n", r"tree, line 2: b'caf\\xe9' is not UTF-8$"),
        ("a 0\nb 1\n".encode("utf-16"), "tree is UTF-16"),
    ],
)
def test_bad_trees_are_refused(codes: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "tree").write_bytes(codes)
    with pytest.raises(W2VError, match=message):
        build_tree(w2v.Vocabulary(list("abcd"), [4, 3, 2, 1]), str(tmp_path / "tree"))


def test_commands_refuse_bad_trees_and_models_that_cannot_be_clustered(text: Path, tmp_path: Path) -> None:
    foreign, missing = tmp_path / "foreign.bin", tmp_path / "missing.bin"
    w2v.KeyedVectors(["x", "y"], np.eye(2, dtype=np.float32)).save(foreign)
    clustered = "--tree", "clustered", "--tree-vectors"
    for tree, expected in (
        (("--tree", text), f"{text}, line 1: not a word and its code"),
        ((*clustered, foreign), f"{foreign}: it has none of the vocabulary's words"),
        ((*clustered, missing), f"cannot read {missing}: No such file or directory"),
        ((*clustered, tmp_path), f"cannot read {tmp_path}: it is a folder"),
        ((*clustered, text), f"{text}: a text, not a model: "),
    ):
        options = ["--min-count", 1, *tree]
        for command in ["tree", text, *options], ["train", text, "-o", tmp_path / "m.bin", "--hs", *QUICK, *options]:
            assert run(*command, code=1).stderr.startswith(f"w2v: {expected}")
    assert not (tmp_path / "m.bin").exists()


@pytest.mark.parametrize("length", [1, 1e30, 1e-30])
def test_clustered_codes_of_similar_words_share_prefixes(tmp_path: Path, length: float) -> None:
    """A word that is not in the model is between the clusters, and joins the cluster that makes both halves equal."""
    vocabulary = w2v.Vocabulary(list("abcdef"), [3, 3, 2, 2, 1, 1])
    vectors = [[1, 0.1], [-1, 0.1], [0.9, 0], [-1, 0], [1, -0.1]]
    w2v.KeyedVectors(list("abcde"), length * np.array(vectors)).save(tmp_path / "vectors.bin")
    tree = build_tree(vocabulary, "clustered", tmp_path / "vectors.bin")
    codes = [tree.code(word) for word in range(6)]
    assert codes[0][0] == codes[2][0] == codes[4][0] != codes[1][0] == codes[3][0] == codes[5][0]
    assert [len(code) for code in codes] == [2, 2, 3, 3, 3, 3]


def test_a_model_stores_its_tree(text: Path, tmp_path: Path) -> None:
    """The file of the tree is not needed afterwards."""
    (tmp_path / "tree").write_text("a 111\nb 110\nc 10\nd 0\n", "utf-8")
    output = tmp_path / "m.safetensors"
    run("train", text, "-o", output, "--hs", "--tree", tmp_path / "tree", "--min-count", 1, "--sample", 0, *QUICK)
    (tmp_path / "tree").unlink()
    loss = w2v.Model.load(output).views["words"].loss
    assert [loss.tree.code(word) for word in range(4)] == ["111", "110", "10", "0"]
    assert run_json("perplexity", output, text)["tokens"] == 40


def test_codes_are_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "codes").write_text(f"\ufeffthe 0\r\n\n  köln\t10 \nlong {'1' * MAX_CODE_LENGTH}", "utf-8")
    vocabulary = w2v.Vocabulary(["köln", "the", "long"], [3, 2, 1])
    assert read_codes(tmp_path / "codes", vocabulary) == ["10", "0", "1" * 1024]


@pytest.mark.parametrize("options", [{"tree": "clustered"}, {"tree_vectors": "m.bin"}])
def test_a_clustered_tree_and_its_vectors_need_each_other(options: dict[str, Any]) -> None:
    with pytest.raises(W2VError, match="need each other: give both or neither"):
        Settings(loss="hs", **options)
