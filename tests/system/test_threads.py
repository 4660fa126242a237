"""Threads with an interrupted start, threads that end with an error, and results in order."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import w2v
from w2v._system.threads import NoThread, Pool, Thread, map_in_order, processors


class Stop(Exception):
    pass


@pytest.mark.parametrize("moment", ["before", "after"])
def test_waiting_works_after_an_interrupted_start(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    start = threading.Thread.start
    entered, leave = threading.Event(), threading.Event()
    done = []

    def work() -> None:
        entered.set()
        leave.wait()
        done.append(1)

    def interrupted(thread: threading.Thread) -> NoReturn:
        if moment == "after":
            start(thread)
            entered.wait()
        raise Stop

    thread = Thread(target=work)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(Stop):
            thread.start()
        patch.setattr("time.sleep", lambda _: leave.set())  # the thread ends only once it is waited for
        thread.wait()
    assert thread.ended
    assert done == ([1] if moment == "after" else [])
    thread.run()  # as if the system started the thread late
    thread.wait()
    assert done == ([1] if moment == "after" else [])


def test_a_thread_stores_the_exception_that_ended_it() -> None:
    thread = Thread(target=int, args=("no number",))
    thread.start()
    thread.wait()
    assert thread.ended
    assert isinstance(thread.error, ValueError)


def test_a_thread_that_cannot_be_started_gives_a_one_line_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def start(_: Any) -> NoReturn:
        raise RuntimeError("can't start new thread")

    w2v.KeyedVectors([f"w{row}" for row in range(3000)], np.ones((3000, 100), np.float32)).save(tmp_path / "m.bin")
    (tmp_path / "text").write_text("a b c\n" * 99)
    monkeypatch.setattr(threading.Thread, "start", start)
    for use in (
        lambda: w2v.train([["a", "b"]] * 9, min_count=1, workers=1),
        lambda: w2v.train(tmp_path / "text", workers=2),
    ):
        with pytest.raises(NoThread, match=r"^cannot start another thread: close other programs, [^\n]+$"):
            use()
    assert len(w2v.load(tmp_path / "m.bin")) == 3000  # reading falls back to one thread


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_are_in_order(workers: int) -> None:
    def inverse(number: int) -> float:
        return 1 / number

    assert list(map_in_order(inverse, range(1, 30), workers)) == [1 / number for number in range(1, 30)]
    found = map_in_order(inverse, range(3, -30, -1), workers)
    with pytest.raises(ZeroDivisionError):
        list(found)
    assert list(map_in_order(inverse, [], workers)) == []


@pytest.mark.parametrize("workers", [2, 5])
def test_only_a_few_items_are_taken_ahead_of_the_results(workers: int) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = map_in_order(str, items(), workers)
    for number in range(3):
        assert next(results) == str(number)
        assert len(taken) == 2 * workers + 1 + number
    results.close()
    assert len(taken) == 2 * workers + 3


@pytest.mark.parametrize("workers", [1, 2])
def test_no_result_waits_for_an_item_that_has_not_come(workers: int) -> None:
    taken: list[int] = []
    numbers = (taken.append(number) or number for number in range(9))
    for number, result in enumerate(map_in_order(str, numbers, workers, lambda: True)):
        assert (result, len(taken)) == (str(number), number + 1)


def test_items_that_no_thread_has_begun_are_dropped_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end, done = threading.Event(), threading.Event(), []
    shutdown = Pool.shutdown

    def work(number: int) -> None:
        begun.set()
        end.wait()
        done.append(number)

    def items() -> Iterator[int]:
        yield 1
        begun.wait()
        yield from (2, 3)
        raise Stop

    def shut_down(pool: Pool, wait: bool = True, **options: Any) -> None:
        shutdown(pool, wait=False, **options)
        end.set()
        shutdown(pool, wait=wait)

    monkeypatch.setattr(Pool, "shutdown", shut_down)
    with pytest.raises(Stop):
        list(map_in_order(work, items(), 2))
    assert done == [1]


def test_other_errors_of_a_start_are_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: Any) -> NoReturn:
        raise RuntimeError("threads can only be started once")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="threads can only be started once"):
        Thread().start()


def test_processors_are_the_ones_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 8} if process == 0 else set(), raising=False)
    assert processors() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert processors() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processors() == 1
