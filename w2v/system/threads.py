"""The processors of this machine, and threads that Ctrl-C cannot make impossible to wait for; they keep their error."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from w2v.errors import W2VError

Item = TypeVar("Item")
Result = TypeVar("Result")

POLL_SECONDS = 0.001
NO_THREAD = "can't start new thread"  # Python's RuntimeError


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class NoThread(W2VError):
    """The system starts no more threads for this process or user."""


@contextmanager
def starting() -> Iterator[None]:
    """Turn Python's error for a thread that cannot be started into NoThread."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != NO_THREAD:
            raise
        what = "close other programs, raise ulimit -u, or lower workers"
        raise NoThread(f"cannot start another thread: {what}") from error


class Pool(ThreadPoolExecutor):
    """A ThreadPoolExecutor that raises NoThread where the system starts no more threads."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        with starting():
            return super().submit(function, *arguments, **options)


def in_order(work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """The results of `work` for each item, in order: of this thread and `workers` − 1 others, a few items ahead."""
    if workers == 1:
        yield from map(work, items)
        return
    waiting: deque[tuple[Item, Future[Result]]] = deque()

    def first() -> Result:
        """The first result; while another thread works on it, this thread takes items that no thread has begun."""
        for index, (item, result) in enumerate(waiting):
            if waiting[0][1].done():
                break
            if result.cancel():
                waiting[index] = item, Future()
                waiting[index][1].set_result(work(item))
        return waiting.popleft()[1].result()

    with Pool(workers - 1) as pool:
        try:
            for item in items:
                waiting.append((item, pool.submit(work, item)))
                if len(waiting) > 2 * workers:
                    yield first()
            while waiting:
                yield first()
        finally:
            pool.shutdown(cancel_futures=True)


class Thread(threading.Thread):
    """A thread with a `wait` method: up to Python 3.12, `join` treats a thread as ended after an interrupted `join`.

    An interrupted `start` leaves open whether the thread will run. A lock decides: if `run` takes it first the thread
    runs, if `wait` takes it first it never does. `error` is the exception that ended the thread, or None.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.ended = False
        self.error: BaseException | None = None
        self._start_returned = False
        self._claimed = threading.Lock()

    def start(self) -> None:
        """Raises NoThread."""
        with starting():
            super().start()
        self._start_returned = True

    def run(self) -> None:
        if self._claimed.acquire(blocking=False):
            try:
                super().run()
            except BaseException as error:
                self.error = error
            finally:
                self.ended = True

    def wait(self) -> None:
        """Wait until the thread ends; a thread that has not started yet never runs."""
        if not self._start_returned and self._claimed.acquire(blocking=False):
            self.ended = True
        while not self.ended:
            time.sleep(POLL_SECONDS)
        if self._start_returned:
            self.join()
