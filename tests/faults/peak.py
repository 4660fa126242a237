"""The most memory that a piece of code takes, asserted: quick, for millions of uses."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RESET = Path("/proc/self/clear_refs")
SLACK = 8 << 20  # bytes: a peak that has risen by more is set back before the next use

_level = 0


@contextmanager
def bounded(limit: int) -> Iterator[None]:
    """Raises AssertionError where the peak of the process's memory rises by more than `limit` bytes."""
    global _level
    before = _peak()
    if before > _level + SLACK:
        with suppress(OSError):
            RESET.write_text("5")  # Linux: the peak becomes what is held now
        _level = before = _peak()
    yield
    taken = _peak() - before
    assert taken <= limit, f"{taken / 1e6:,.0f} MB taken, {limit / 1e6:,.0f} MB allowed"


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
