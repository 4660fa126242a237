"""Threads whose start is interrupted."""

import threading
import time
from collections.abc import Callable

import pytest

from w2v.threads import Thread


class Stop(Exception):
    pass


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_interrupted_start_leaves_no_doubt(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    start: Callable[[threading.Thread], None] = threading.Thread.start
    entered, leave = threading.Event(), threading.Event()
    done = []

    def work() -> None:
        entered.set()
        leave.wait()
        time.sleep(0.01)
        done.append(1)

    def interrupted(thread: threading.Thread) -> None:
        if moment == "after":
            start(thread)
            entered.wait()
            leave.set()
        raise Stop

    thread = Thread(target=work)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(Stop):
            thread.start()
    thread.wait()
    assert thread.ended
    assert done == ([1] if moment == "after" else [])
    thread.run()  # as where the system has begun it late
    thread.wait()
    assert done == ([1] if moment == "after" else [])


def test_the_exception_that_ends_a_thread_is_kept() -> None:
    thread = Thread(target=int, args=("no number",))
    thread.start()
    thread.wait()
    assert thread.ended
    assert isinstance(thread.error, ValueError)


def test_a_thread_is_waited_for() -> None:
    done: list[int] = []
    thread = Thread(target=done.append, args=(1,))
    thread.start()
    thread.wait()
    assert (done, thread.is_alive()) == ([1], False)
