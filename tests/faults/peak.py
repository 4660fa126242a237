"""A limit for the memory of a piece of code, fast enough for millions of uses."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RESET = Path("/proc/self/clear_refs")
SLACK = 8 << 20  # bytes; a peak that has risen by more is reset before the next use

_baseline = 0


@contextmanager
def bounded(limit: int) -> Iterator[None]:
    """Raise AssertionError if the peak of the process's memory rises by more than `limit` bytes inside the block."""
    global _baseline
    before = _peak()
    if before > _baseline + SLACK:
        with suppress(OSError):
            RESET.write_text("5")  # on Linux this resets the peak to the current size
        _baseline = before = _peak()
    yield
    growth = _peak() - before
    assert growth <= limit, f"{growth / 1e6:,.0f} MB taken, {limit / 1e6:,.0f} MB allowed"


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
