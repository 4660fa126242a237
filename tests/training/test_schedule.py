"""The course of a run: rounds, chunks, epochs and the learning rate."""

from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import schedule_of

SMALL = st.integers(1, 20)


@given(SMALL, st.integers(0, 50), SMALL)
def test_each_chunk_is_in_one_round(epochs: int, chunks: int, rounds: int) -> None:
    schedule = schedule_of(rounds, epochs=epochs, chunks=chunks)
    positions = [schedule.position(done) for done in range(schedule.end + 1)]
    assert positions == sorted(positions)
    assert (positions[0], positions[-1]) == (0, epochs * chunks)
    for done, position in enumerate(positions):
        if schedule.ends_epoch(done):
            assert position == done // rounds * chunks
        assert 0 <= done * chunks - position * rounds < rounds


def test_epochs_and_learning_rates() -> None:
    schedule = schedule_of(1, epochs=2, chunks=5, tokens=100, alpha=0.05, min_alpha=0.01)
    assert [schedule.epoch(position) for position in (0, 4, 5, 9, 10)] == [0, 0, 1, 1, 1]
    assert [round(schedule.alpha_after(tokens), 9) for tokens in (0, 50, 200)] == [0.05, 0.04, 0.01]
    empty = schedule_of(3, epochs=2, chunks=0, tokens=0, alpha=0.05, min_alpha=0.01)
    assert (empty.epoch(0), round(empty.alpha_after(0), 9), empty.position(empty.end)) == (1, 0.01, 0)
