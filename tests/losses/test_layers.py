"""Output layers: the noise distribution as an alias table, and the Huffman tree."""

import heapq
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from w2v.losses.layers import NegativeSampling

from w2v import memory
from w2v._kernels import MAX_CHUNK_IDS, Kernel
from w2v.errors import SettingsError
from w2v.losses.tree import HierarchicalSoftmax
from w2v.reference import Random
from w2v.text.corpus import Corpus
from w2v.text.idstore import read_corpus
from w2v.text.vocabulary import Vocabulary
from w2v.training.run import instruction_set

CORPORA = Path(os.environ.get("W2V_CORPORA", Path(__file__).resolve().parents[2] / "shared" / "corpora"))
ZIPF = (10_000 / np.arange(1, 21)).astype(np.int64)

COUNTS = st.lists(st.integers(1, 20) | st.integers(1, 10**12), min_size=2, max_size=200).map(
    lambda counts: np.array(sorted(counts, reverse=True), np.int64)
)


def noise(counts: np.ndarray, exponent: float = 0.75) -> np.ndarray:
    weights = counts.astype(np.float64) ** exponent
    return weights / weights.sum()


def choose_negatives(layer: NegativeSampling, random: Random, centre: int) -> list[int]:
    counts = {centre: 0}
    draw_words(layer, random, counts)
    return list(counts)


def entropy(shares: np.ndarray) -> float:
    return -float(shares @ np.log2(shares))


@given(COUNTS, st.sampled_from([0, 0.75, 1, -0.5, 2]))
def test_alias_table_holds_the_noise_distribution(counts: np.ndarray, exponent: float) -> None:
    layer = NegativeSampling.build(counts, 1, exponent)
    thresholds, aliases = layer.alias_table.T
    own = (thresholds + 1.0) / 2**32
    held = (own + np.bincount(aliases, 1 - own, len(counts))) / len(counts)
    np.testing.assert_allclose(held, noise(counts, exponent), rtol=0, atol=1e-8)


def test_draws_follow_the_noise_distribution() -> None:
    centre, draws, random = 3, 20_000, Random(1, negative=1)
    layer = NegativeSampling.build(ZIPF, 1)
    drawn = np.bincount([choose_negatives(layer, random, centre)[1] for _ in range(draws)], minlength=len(ZIPF))
    others = np.arange(len(ZIPF)) != centre
    expected = noise(ZIPF)[others]
    assert drawn[centre] == 0
    assert chisquare(drawn[others], draws * expected / expected.sum()).pvalue > 0.01
    assert chisquare(drawn[others], draws * noise(ZIPF[others], 0.65)).pvalue < 1e-6  # the test sees a small difference


def test_kernel_draws_follow_the_noise_distribution() -> None:
    """Draws are counted by what they leave in zero outputs: each moves a row by half of the same tiny step.

    The corpus is pairs of words 3 and 5, each centre once; the other words come from the noise alone.
    """
    pairs, size, alpha = MAX_CHUNK_IDS, len(ZIPF), 2.0**-26
    inputs, outputs = memory.aligned_rows(size, 1), memory.aligned_rows(size, 1)
    inputs[:, 0] = 1
    Kernel(
        ids=np.tile(np.array([2, 1, 0], np.uint32), pairs), words=np.array([-1, 5, 3], np.int32),
        tokens_before=np.arange(4) * (2 * pairs // 3),
        keep=np.full(size, 2**32 - 1, np.uint32), inputs=inputs, outputs=outputs,
        layer=NegativeSampling.build(ZIPF, 1), cbow=False, corrected=True, window=1, shrink_windows=True,
        per_pair=False, alpha=alpha, min_alpha=alpha, epochs=1, seed=2, chunk=pairs, workers=1,
        instruction_set=instruction_set(),
    ).run(0)  # fmt: skip
    drawn = -outputs[:, 0].astype(np.float64) / (alpha / 2)
    drawn[[3, 5]] += pairs
    np.testing.assert_allclose(drawn, drawn.round(), atol=0.2)
    assert drawn.round().sum() == 2 * pairs
    expected = np.zeros(size)
    for centre in 3, 5:
        others = np.arange(size) != centre
        expected[others] += pairs * noise(ZIPF)[others] / noise(ZIPF)[others].sum()
    assert chisquare(drawn.round(), expected).pvalue > 0.01


@given(COUNTS, st.integers(0, 2**64 - 1), st.data())
def test_negatives_are_others_and_differ(counts: np.ndarray, seed: int, data: st.DataObject) -> None:
    size = len(counts)
    negative = data.draw(st.integers(1, min(size - 1, 30)))
    layer = NegativeSampling.build(counts, negative)
    centre = data.draw(st.integers(0, size - 1))
    words = choose_negatives(layer, Random(seed, negative=negative), centre)
    assert words[0] == centre
    assert len(set(words)) == len(words) == negative + 1
    assert 0 <= min(words) <= max(words) < size


@pytest.mark.parametrize("centre", [0, 1, 7])
def test_all_other_words_can_be_negatives(centre: int) -> None:
    counts = np.array([10**15] + [1] * 7)  # the rest would take ages to be drawn
    layer = NegativeSampling.build(counts, 7, exponent=1)
    assert sorted(choose_negatives(layer, Random(1, negative=7), centre)) == list(range(8))


@pytest.mark.parametrize("negative", [3, 100])
def test_too_many_negatives(negative: int) -> None:
    with pytest.raises(SettingsError) as caught:
        NegativeSampling.build(np.array([5, 2, 1]), negative)
    message = str(caught.value)
    assert f"negative {negative}" in message
    assert "the vocabulary has 3" in message
    assert "\n" not in message


def heap_cost(counts: np.ndarray) -> int:
    """Total bits of the optimal code, by Huffman's algorithm with a heap."""
    heap, cost = counts.tolist(), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        both = heapq.heappop(heap) + heapq.heappop(heap)
        cost += both
        heapq.heappush(heap, both)
    return cost


@given(COUNTS)
def test_huffman_code_is_optimal(counts: np.ndarray) -> None:
    lengths = HierarchicalSoftmax.huffman(counts).lengths
    shares = counts / counts.sum()
    assert sum(n * bits for n, bits in zip(counts.tolist(), lengths.tolist(), strict=True)) == heap_cost(counts)
    assert entropy(shares) - 1e-9 <= shares @ lengths < entropy(shares) + 1


@given(COUNTS)
def test_codes_are_prefix_free_and_complete(counts: np.ndarray) -> None:
    layer = HierarchicalSoftmax.huffman(counts)
    codes = ["".join(map(str, path)) for path in np.split(layer.codes, layer.starts[1:-1])]
    assert [len(code) for code in codes] == layer.lengths.tolist()
    assert not any(longer.startswith(code) for code, longer in pairwise(sorted(codes)))
    most = int(layer.lengths.max())
    assert sum(1 << (most - len(code)) for code in codes) == 1 << most  # Kraft's sum is 1


@given(COUNTS)
def test_paths_are_of_one_tree(counts: np.ndarray) -> None:
    layer = HierarchicalSoftmax.huffman(counts)
    size = len(counts)
    assert layer.rows == size - 1
    children: dict[tuple[int, int], str] = {}  # by node and code
    for word in range(size):
        path = range(layer.starts[word], layer.starts[word + 1])
        nodes = layer.nodes[path].tolist()
        assert nodes[0] == size - 2  # the root
        below = [*(f"node {node}" for node in nodes[1:]), f"word {word}"]
        for node, code, child in zip(nodes, layer.codes[path].tolist(), below, strict=True):
            assert children.setdefault((node, code), child) == child
    assert set(children) == {(node, code) for node in range(size - 1) for code in (0, 1)}
    assert len(set(children.values())) == 2 * (size - 1)


@given(COUNTS, st.integers(0, 2**32))
def test_probabilities_sum_to_one(counts: np.ndarray, seed: int) -> None:
    layer = HierarchicalSoftmax.huffman(counts)
    scores = np.random.default_rng(seed).normal(0, 3, layer.rows)[layer.nodes]
    taken = np.logaddexp(0, np.where(layer.codes, scores, -scores))  # −log σ(±s), + for code 0
    assert np.exp(-np.add.reduceat(taken, layer.starts[:-1])).sum() == pytest.approx(1, abs=1e-12)


@given(COUNTS)
def test_equal_counts_have_a_fixed_order(counts: np.ndarray) -> None:
    first, second = HierarchicalSoftmax.huffman(counts), HierarchicalSoftmax.huffman(counts.copy())
    assert (np.diff(first.lengths) >= 0).all()  # of two equal counts, the later word's code is not the shorter
    for name in "starts", "nodes", "codes":
        assert np.array_equal(getattr(first, name), getattr(second, name))


def test_tree_of_equal_counts_is_balanced() -> None:
    for bits in range(1, 11):
        assert (HierarchicalSoftmax.huffman(np.full(2**bits, 5)).lengths == bits).all()


def test_tree_of_two_words_has_one_node() -> None:
    layer = HierarchicalSoftmax.huffman(np.array([100, 1]))
    assert layer.rows == 1
    assert layer.starts.tolist() == [0, 1, 2]
    assert layer.nodes.tolist() == [0, 0]
    assert sorted(layer.codes.tolist()) == [0, 1]


def test_tree_of_doubling_counts_is_a_comb() -> None:
    counts = 2 ** np.arange(40)[::-1]
    assert HierarchicalSoftmax.huffman(counts).lengths.tolist() == [*range(1, 40), 39]


@pytest.mark.skipif(not (CORPORA / "wiki100.txt.xz").exists(), reason="W2V_CORPORA names no folder with wiki100.txt.xz")
def test_code_lengths_on_wikipedia() -> None:
    with read_corpus(Corpus(CORPORA / "wiki100.txt.xz")) as store:
        counts = Vocabulary.from_store(store, min_count=5).counts
    shares = counts / counts.sum()
    assert entropy(shares) == pytest.approx(10.556, abs=1e-3)
    assert shares @ HierarchicalSoftmax.huffman(counts).lengths == pytest.approx(10.583, abs=1e-3)
    assert np.log2(len(counts)) == pytest.approx(16.052, abs=1e-3)
