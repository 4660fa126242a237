"""Allocate arrays aligned to cache lines, map files into memory, and measure used and available memory.

NumPy requests huge pages for large arrays if the system offers them.
"""

import math
import mmap
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v._errors import W2VError

if sys.platform == "win32":
    from w2v._system.windows import available_memory, process_memory
else:
    import resource

CACHE_LINE = 64  # bytes, which is also the width of the widest vector registers


def empty(
    shape: tuple[int, ...], dtype: DTypeLike = np.float32, allocate: Callable[..., NDArray[Any]] = np.empty
) -> NDArray[Any]:
    """Return an uninitialised array that starts on a cache line. `allocate` returns its bytes.

    Raises:
        W2VError: If there is not enough memory.
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    try:
        raw = allocate(size + CACHE_LINE, np.uint8)
    except (MemoryError, ValueError) as error:  # ValueError: larger than the address space
        raise W2VError(f"no memory for an array of {size / 1e6:,.0f} MB, shape {shape}") from error
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def zeros(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Return an array of zeros that starts on a cache line.

    A page of a large array uses memory only after the first write to it.

    Raises:
        W2VError: If there is not enough memory.
    """
    return empty(shape, dtype, np.zeros)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of an array that does not allow edits."""
    view = array.view()
    view.setflags(write=False)
    return view


def row_width(columns: int, dtype: DTypeLike = np.float32) -> int:
    """Round a number of columns up so that a row fills whole cache lines."""
    line = CACHE_LINE // np.dtype(dtype).itemsize
    return -(-columns // line) * line


def aligned_rows(rows: int, columns: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Return a matrix of zeros, (rows, row_width(columns)), with each row starting on a cache line.

    The columns from `columns` on are padding.

    Raises:
        W2VError: If there is not enough memory.
    """
    return zeros((rows, row_width(columns, dtype)), dtype)


class MappedFile(mmap.mmap):
    """A whole file, memory-mapped for reading.

    If another process truncates the file, reading a lost page ends this process; see _bus_error.pyx. The lost part of
    the last remaining page reads as zeros; check `is_truncated` to detect this.
    """

    def __new__(cls, file: BinaryIO) -> "MappedFile":
        return super().__new__(cls, file.fileno(), 0, access=mmap.ACCESS_READ)

    @property
    def is_truncated(self) -> bool:
        """True if the file is now shorter than when it was mapped."""
        return self.size() < len(self)


def release_pages(memory: mmap.mmap) -> None:
    """Free the memory of a mapped file's pages, if the system can. A page used again is read from disk."""
    if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
        memory.madvise(mmap.MADV_DONTNEED)


def peak_resident_bytes() -> int:
    """Return the largest amount of memory that this process has used so far, in bytes."""
    if sys.platform == "win32":
        return process_memory()[1]
    # On Linux, getrusage would include the peak of the parent process, so /proc comes first.
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return _read_kilobytes("/proc/self/status", "VmHWM:") or (used if sys.platform == "darwin" else 1024 * used)


def resident_bytes() -> int:
    """Return the memory that this process uses now, in bytes, or its peak if the system does not report current use."""
    if sys.platform == "win32":
        return process_memory()[0]
    return _read_kilobytes("/proc/self/status", "VmRSS:") or peak_resident_bytes()


def check(needed: int, what: str, hint: str, ignore: bool = False) -> tuple[int, int]:
    """Check that `needed` more bytes fit in memory.

    Args:
        needed: The bytes to allocate.
        what: What needs the bytes, at the start of the error message.
        hint: What to do, at the end of the error message.
        ignore: If True, do not raise an error.

    Returns:
        The bytes that this process will then use, and the limit for them.

    Raises:
        W2VError: If the bytes are not available.
    """
    now, more = resident_bytes(), available()
    if needed > more and not ignore:
        raise W2VError(
            f"{what} needs about {(now + needed) / 1e6:,.0f} MB of memory, but only {(now + more) / 1e6:,.0f} MB are "
            f"available: {hint}"
        )
    return now + needed, now + more


def available() -> int:
    """Return the memory that this process can still allocate, in bytes.

    The limit is the free memory of the machine, its cgroups, or its address space (ulimit -v), whichever is smallest.
    On Windows, it is the free memory of the machine, or the limit of the page file.
    """
    if sys.platform == "win32":
        return available_memory()
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [_read_kilobytes("/proc/meminfo", "MemAvailable:") or installed - resident_bytes(), *_free_in_cgroups()]
    addresses = resource.getrlimit(resource.RLIMIT_AS)[0]
    if addresses != resource.RLIM_INFINITY:
        limits.append(addresses - _read_kilobytes("/proc/self/status", "VmSize:"))
    return min(limits)


def cpu_seconds_limit() -> float:
    """Return the hard limit of this process's processor time (ulimit -t), in seconds; infinite without a limit."""
    if sys.platform == "win32":
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_CPU)[1]
    return math.inf if limit == resource.RLIM_INFINITY else limit


def _read_kilobytes(path: str, name: str) -> int:
    """Return the value after `name` in a /proc file, converted from kB to bytes; 0 if it is missing."""
    with suppress(OSError, ValueError, IndexError):
        return 1024 * int(Path(path).read_text().partition(name)[2].split()[0])
    return 0


# By controller ("" in cgroups v2, "memory" in v1): the files with the limit and the usage, and the entry of memory.stat
# that counts reclaimable page cache.
_CGROUP_FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def _free_in_cgroups() -> Iterator[int]:
    """Yield the bytes left under the memory limit of this process's cgroup and of each cgroup that contains it."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controller, group = line.split(":", 2)
            if controller in _CGROUP_FILES:
                root, inner = Path("/sys/fs/cgroup", controller), Path(group.lstrip("/"))
                limit, usage, entry = _CGROUP_FILES[controller]
                for folder in (root / inner, *(root / parent for parent in inner.parents)):
                    with suppress(OSError, ValueError):  # ValueError: the limit is "max", that is, unlimited
                        maximum, used = int((folder / limit).read_text()), resident_bytes()
                        with suppress(OSError, ValueError):
                            statistics = (folder / "memory.stat").read_text().split()
                            reclaimable = int(statistics[statistics.index(entry) + 1])
                            used = int((folder / usage).read_text()) - reclaimable
                        yield maximum - used
