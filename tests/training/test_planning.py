"""The plan of a run: the size of its chunks, the shares of subwords, and the initial rows."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import w2v
from w2v._kernel import plan as plan_module
from w2v._kernel.plan import initial_inputs
from w2v._kernels import MAX_CHUNK_SIZE
from w2v._losses.registry import Settings
from w2v._text.subword_rows import SubwordRows
from w2v._text.subwords import Subwords
from w2v._text.vocabulary import Vocabulary
from w2v._text.words import Words
from w2v._training.planning import FROZEN_CHUNK, plan_run, update_shares
from w2v._training.source import continued_settings
from w2v._training.start import Initialisation

WORDS = Vocabulary(["ab", "ac", "ad"], [4, 2, 2])


def fake_store(ids: int) -> Any:
    """Return a fake IdStore with this many ids. All of them count as words of the vocabulary."""
    return SimpleNamespace(
        ids=np.zeros(ids, np.uint32),
        remap=lambda words: np.array([-1, 0, 1, 2], np.int32),
        cumulative_known_counts=lambda words, chunk: np.minimum(np.arange(-(-ids // chunk) + 1) * chunk, ids),
    )


@pytest.mark.parametrize(
    ("ids", "options", "expected"),
    [
        (10**6, {"vector_size": 300}, MAX_CHUNK_SIZE),
        (600_000, {"subwords": "2-2"}, 1000),  # a text has 600 chunks
        (60_000, {"subwords": "2-2"}, 256),  # a chunk has at least 256 ids
        (60_000_000, {"subwords": "2-2"}, 4096),  # and at most 4096
        (10**6, {"deterministic": True, "workers": 16}, 128),  # a round has 2048 ids
        (10**6, {"deterministic": True, "workers": 2}, 256),
        (10**6, {"deterministic": True, "workers": 99}, 64),
        (60_000, {"deterministic": True, "workers": 16, "subwords": "2-2"}, 128),
    ],
    ids=str,
)
def test_chunks_are_short_where_changes_are_added_at_their_end(ids: int, options: Any, expected: int) -> None:
    settings = Settings(negative=1, **{"workers": 1} | options)
    plan = plan_run(settings, Initialisation(WORDS), fake_store(ids))
    assert plan.chunk_size == expected
    assert plan.chunks == -(-ids // expected)
    assert plan.tokens == ids


def test_frozen_words_have_short_chunks_and_no_share_of_the_changes() -> None:
    initial = Initialisation(WORDS, frozen=np.array([True, False, True]))
    plan = plan_run(Settings(negative=1, workers=1), initial, fake_store(10**6))
    assert plan.chunk_size == FROZEN_CHUNK
    assert plan.shares is not None
    assert plan.shares.tolist() == [0, 1, 0]
    assert plan_run(Settings(negative=1, workers=1), Initialisation(WORDS), fake_store(10**6)).shares is None


def test_ranks_choose_chunks_for_the_whole_text_up_to_a_limit() -> None:
    settings = Settings(negative=1, workers=1, subwords="2-2")
    for limit, expected in (MAX_CHUNK_SIZE, 1000), (99, 99):
        plan = plan_run(settings, Initialisation(WORDS), fake_store(200_000), lambda number: 3 * number, limit)
        assert plan.chunk_size == expected


def test_subwords_receive_less_of_each_change_the_more_words_have_them() -> None:
    """If about m words of a chunk contain a subword, its row receives the share m^(−1/4) of the change of each word.

    All shares together are at most 8. The own row of a word receives the whole change of the word.
    """
    count = 200
    words = Words.of([f"a{chr(0x4E00 + number)}{chr(0x5E00 + number // 2)}" for number in range(count)])
    subwords = SubwordRows.of(Subwords(1, 1, 1 << 20), words)
    presence = np.linspace(1, 0.5, count)
    rows, shares = subwords.rows, update_shares(subwords, presence)
    assert shares.dtype == np.float32
    for row in range(len(subwords.members)):
        members = [word for word in range(count) if row in rows[subwords.starts[word] : subwords.starts[word + 1]]]
        total = max(1, presence[members].sum())
        share = 1 if row < count else min(total**-0.25, 8 / total)
        np.testing.assert_allclose(shares[rows == row], subwords.members[row] * share, rtol=1e-6)
    shared_by_all = shares[rows == rows[1]]  # the row of "a", the first letter of all words
    assert len(shared_by_all) == count
    assert shared_by_all.sum() < 8 * count / presence.sum() * subwords.members[rows[1]] * 1.001


@pytest.mark.parametrize(
    ("loss", "name", "value", "other"),
    [
        ("mos", "mixtures", 4, 3),
        ("class", "classes", None, 5),
        ("dsoftmax", "blocks", None, "60,40"),
        ("hs", "tree", "huffman", "balanced"),
        ("ns", "vector_size", 100, 99),
        ("ns", "subwords", None, "3-4"),
        ("ns", "loss", "ns", "nce"),
        ("ns", "model", "cbow", "skipgram"),
    ],
)
def test_settings_that_shape_the_matrices_cannot_change(loss: str, name: str, value: Any, other: Any) -> None:
    model: Any = SimpleNamespace(views={"words": SimpleNamespace(settings=Settings(loss=loss))})
    assert continued_settings(model, "old", {name: value}).loss == loss
    with pytest.raises(w2v.SettingsError, match=rf"^{name} {other}: the continued model has .*; leave it out$"):
        continued_settings(model, "old", {name: other})


def test_initial_rows_are_uniform_and_padded_with_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    found = initial_inputs(3000, 20, seed=4)
    assert found.shape[1] % 16 == 0
    rows = found[:, :20]
    assert not found[:, 20:].any()
    assert np.abs(rows).max() == pytest.approx(0.5 / 20, rel=1e-3)
    assert rows.mean() == pytest.approx(0, abs=2e-4)
    assert rows.std() == pytest.approx(1 / (20 * np.sqrt(12)), rel=0.02)
    assert not np.array_equal(found, initial_inputs(3000, 20, seed=5))
    monkeypatch.setattr(plan_module, "INIT_BLOCK", 333)
    np.testing.assert_array_equal(initial_inputs(3000, 20, seed=4), found)
