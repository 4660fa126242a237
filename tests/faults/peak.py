"""The limit for the memory of reading a file (docs/reliability.md), fast enough for millions of uses."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from w2v._system.memory import peak_resident_bytes

RESET = Path("/proc/self/clear_refs")
SLACK = 8 << 20  # bytes; a peak that has risen by more is reset before the next use

_baseline = 0


@contextmanager
def bounded(size: int, per_byte: int = 5) -> Iterator[None]:
    """Raise AssertionError if the peak of memory rises inside the block by more than a file of this size may take.

    `per_byte` is the number of bytes of memory for each byte of the file, in addition to 64 MB.
    """
    global _baseline
    limit = per_byte * size + (64 << 20)
    before = _peak()
    if before > _baseline + SLACK:
        with suppress(OSError):
            RESET.write_text("5")  # on Linux this resets the peak to the current size
        _baseline = before = _peak()
    yield
    growth = _peak() - before
    assert growth <= limit, f"{growth / 1e6:,.0f} MB taken, {limit / 1e6:,.0f} MB allowed"


def _peak() -> int:
    if sys.platform == "win32":
        return peak_resident_bytes()
    import resource

    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
