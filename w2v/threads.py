"""Threads that are surely waited for, however the waiting is interrupted."""

import threading
import time
from typing import Any

TICK = 0.001  # seconds


class Thread(threading.Thread):
    """A thread with a `wait`, for up to Python 3.12 a `join` that is interrupted takes the thread for ended.

    `start` may be interrupted, too: then nobody knows whether the thread will run, until it or `wait` takes its turn.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.ended = False
        self._begun = False
        self._turn = threading.Lock()

    def start(self) -> None:
        super().start()
        self._begun = True

    def run(self) -> None:
        if self._turn.acquire(blocking=False):
            try:
                super().run()
            finally:
                self.ended = True

    def wait(self) -> None:
        """Until it ends; one that has not begun never will."""
        if not self._begun and self._turn.acquire(blocking=False):
            self.ended = True
        while not self.ended:
            time.sleep(TICK)
        if self._begun:
            self.join()
