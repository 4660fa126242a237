"""Threads that can be waited for reliably, even if Ctrl-C interrupts the start or the wait; they keep their error."""

import threading
import time
from typing import Any

POLL_SECONDS = 0.001


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
