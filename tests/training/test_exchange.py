"""The exchange of rows between ranks: which rows are exchanged in a round, and how changes are combined."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from w2v._training import exchange as exchange_module
from w2v._training.exchange import Exchange, rows_of_round, slice_if_contiguous, stochastically_rounded


@pytest.mark.slow
@given(st.integers(1, 4000), st.integers(0, 1 << 20), st.integers(1, 128).map(lambda half: 2 * half))
def test_frequent_rows_are_exchanged_more_often(rows: int, first: int, frequent: int) -> None:
    times = np.zeros(rows, np.int64)
    sizes = set()
    cycle = 1
    while cycle * frequent < 2 * rows:
        cycle *= 2
    for number in range(first, first + cycle):
        exchanged = np.concatenate([np.array(part, np.int64) for part in rows_of_round(number, rows, frequent)])
        assert len(np.unique(exchanged)) == len(exchanged)
        times[exchanged] += 1
        sizes.add(len(exchanged))
    bands = np.arange(rows) // frequent
    expected = cycle >> np.array([int(band).bit_length() for band in range(bands[-1] + 1)])
    assert (times == expected[bands]).all()
    assert max(sizes) <= frequent + frequent // 2 * cycle.bit_length()


@pytest.mark.parametrize(
    ("rows", "expected"), [([4, 3, 5], slice(3, 6)), ([7], slice(7, 8)), ([3, 5], None), ([0, 1, 3], None)], ids=str
)
def test_contiguous_rows_are_read_as_a_slice(rows: list[int], expected: slice | None) -> None:
    found = slice_if_contiguous(np.array(rows))
    assert found == expected if expected else np.array_equal(found, rows)


def test_stochastic_rounding_gives_a_neighbour_and_keeps_the_mean() -> None:
    values = np.repeat(np.array([1 + 1 / 512, -3.14159, 1e-3, 0], np.float32), 20_000)
    rounded = stochastically_rounded(values, np.random.default_rng(1)).astype(np.float32)
    assert (np.abs(rounded - values) <= np.abs(values) / 128).all()
    for part, value in zip(np.split(rounded, 4), values[::20_000], strict=True):
        assert len(np.unique(part)) == (2 if value else 1)
        assert part.mean(dtype=float) == pytest.approx(float(value), rel=1e-4)
    assert stochastically_rounded(values, None) is values


class TwoRanks:
    """A fake Communicator that adds the messages of a second rank to the messages of this one."""

    def __init__(self, messages: list[Any]) -> None:
        self.other_messages = iter(messages)

    def start_allreduce(self, values: Any, total: Any) -> None:
        total[:] = values + np.array(next(self.other_messages), np.float32)

    def wait(self, request: Any) -> None: ...

    def broadcast(self, array: Any) -> None: ...


@pytest.mark.parametrize(
    ("weighted_words", "combined"),
    [
        pytest.param(1e6, [2, 0], id="after many updates"),
        pytest.param(1e-6, [4, 0], id="after few updates"),
        pytest.param(np.log(2) / exchange_module.CURVATURE, [3, 0], id="half of the way"),  # two ranks go 3/4 of it
    ],
)
def test_changes_are_added_unless_they_agree_after_many_updates(
    weighted_words: float, combined: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange_module, "rows_of_round", lambda *_: [range(2), range(2, 4)])
    rows = np.zeros((4, 2), np.float32)
    # The messages of the other rank: for each of two rows, the change and its squared length; then the flags.
    first, second = [*(2, 0, 4), *(0, 2, 4), *(0, 0, 0)], [*(-2, 0, 4), *(0, 0, 0), *(0, 1, 0)]
    communicator: Any = TwoRanks([first, second])
    exchange = Exchange(communicator, [(rows, np.ones(4))], seed=1, threads=2)
    synced = exchange._matrices[0].synced
    synced[:] = 0
    rows[:] = [[2, 0], [2, 0], [2, 0], [2, 5]]
    exchange.weighted_words = weighted_words
    exchange.begin(0, exchange_module.Flags(checkpoint=True))
    np.testing.assert_allclose(rows, [combined, [2, 2], [2, 0], [2, 5]], rtol=1e-5)  # the first two are exchanged
    rows[[1, 3]] += 1  # training continues during the exchange of the others
    assert exchange.finish() == (False, True, True)
    np.testing.assert_allclose(synced, [combined, [2, 2], [0, 0], [2, 5]], rtol=1e-5)
    np.testing.assert_allclose(rows, synced + np.array([[0], [1], [0], [1]]), rtol=1e-6)


@pytest.mark.parametrize("begin", ["exchange_all_rows", "broadcast_from_root"])
def test_only_words_since_the_last_exchange_count(begin: str) -> None:
    rows = np.zeros((2, 2), np.float32)
    # The messages of the other rank: changes of two rows with their squared lengths, then the flags.
    messages = [[0] * 9] * (begin == "exchange_all_rows") + [[2, 0, 4, 0, 2, 4, 0, 0, 0]]
    communicator: Any = TwoRanks(messages)
    exchange = Exchange(communicator, [(rows, np.array([1, 2]))], seed=1, threads=1)
    exchange._matrices[0].synced[:] = 0
    exchange.weighted_words = 1e6
    getattr(exchange, begin)()
    rows[:] = [[2, 0], [0, 2]]
    exchange.weighted_words += np.log(2) / exchange_module.CURVATURE
    exchange.exchange_all_rows()
    # One rank goes half of the way to 4 with the first row, and 3/4 of the way to 8/3 with the second; two go further.
    np.testing.assert_allclose(rows, [[3, 0], [0, 8 / 3 * (1 - 1 / 16)]], rtol=1e-5)
