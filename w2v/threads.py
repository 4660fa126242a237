"""Threads that are surely waited for, however the waiting is interrupted."""

import threading
import time

TICK = 0.001  # seconds


class Thread(threading.Thread):
    """A thread with a `wait`, for up to Python 3.12 a `join` that is interrupted takes the thread for ended."""

    ended = False

    def run(self) -> None:
        try:
            super().run()
        finally:
            self.ended = True

    def wait(self) -> None:
        """Until it ends; not where it has not begun."""
        while self.ident is not None and not self.ended:
            time.sleep(TICK)
        if self.ended:
            self.join()
