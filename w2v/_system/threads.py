"""Count processors, run work in threads, and wait for threads reliably even after Ctrl-C."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from w2v._errors import W2VError

Item = TypeVar("Item")
Result = TypeVar("Result")

POLL_SECONDS = 0.001
NO_THREAD = "can't start new thread"  # the text of Python's RuntimeError


def allowed_processors() -> list[int]:
    """Return the numbers of the processors that this process may use; all numbers if the system does not tell."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(allowed_processors())


class NoThread(W2VError):
    """The system refuses to start more threads for this process or user."""


@contextmanager
def _translate_start_errors() -> Iterator[None]:
    """Turn Python's error for a thread that cannot be started into NoThread."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != NO_THREAD:
            raise
        advice = "close other programs, raise ulimit -u or -v, or lower workers"
        raise NoThread(f"cannot start another thread: {advice}") from error


class Pool(ThreadPoolExecutor):
    """A ThreadPoolExecutor that raises NoThread if the system cannot start a thread."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        with _translate_start_errors():
            return super().submit(function, *arguments, **options)


def map_in_order(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int, must_wait: Callable[[], bool] = lambda: False
) -> Iterator[Result]:
    """Yield `work(item)` for each item, in order. This thread and `workers` − 1 others compute a few items ahead.

    `must_wait` tells whether the next item has not come yet. Then all results are yielded before w2v waits for it.
    """
    if workers == 1:
        yield from map(work, items)
        return
    waiting: deque[tuple[Item, Future[Result]]] = deque()

    def first() -> Result:
        """Return the first result. While another thread computes it, work on items that no thread has begun."""
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
                while len(waiting) > 2 * workers or (waiting and must_wait()):
                    yield first()
            while waiting:
                yield first()
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let matrix products in a `with` block use one thread each, for a block that computes them in several threads.

    Otherwise the threads of all products wait for each other, and a search takes several times as long.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):
        yield


class Thread(threading.Thread):
    """A thread that can be waited for reliably after Ctrl-C.

    Use `wait` instead of `join`: up to Python 3.12, a `join` after an interrupted `join` returns at once. After an
    interrupted `start`, the thread may or may not run later. A lock decides: if `run` acquires it first, the thread
    runs; if `wait` acquires it first, the thread never runs.

    Attributes:
        ended: True after the thread has ended.
        error: The exception that ended the thread, or None.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.ended = False
        self.error: BaseException | None = None
        self._start_returned = False
        self._claimed = threading.Lock()

    def start(self) -> None:
        """Start the thread.

        Raises:
            NoThread: If the system cannot start it.
        """
        with _translate_start_errors():
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
        """Wait until the thread ends. A thread that has not started yet will never run."""
        if not self._start_returned and self._claimed.acquire(blocking=False):
            self.ended = True
        while not self.ended:
            time.sleep(POLL_SECONDS)
        if self._start_returned:
            self.join()
