"""Arrays aligned to cache lines, memory-mapped files, and the memory that this process uses and may use.

NumPy requests huge pages for large arrays, where the system offers them.
"""

import math
import mmap
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v.errors import W2VError

CACHE_LINE = 64  # bytes; also the width of the widest vector register


def empty(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """An uninitialised array that starts on a cache line. Raises W2VError if memory is short."""
    return _aligned(np.empty, shape, np.dtype(dtype))


def zeros(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """An array of zeros that starts on a cache line. Raises W2VError if memory is short.

    A page of a large array takes up memory only once it is written to.
    """
    return _aligned(np.zeros, shape, np.dtype(dtype))


def row_width(columns: int, dtype: DTypeLike = np.float32) -> int:
    """`columns` rounded up so that a row of that many values fills whole cache lines."""
    line = CACHE_LINE // np.dtype(dtype).itemsize
    return -(-columns // line) * line


def aligned_rows(rows: int, columns: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """A matrix of zeros (rows, row_width(columns)), each row of which starts on a cache line.

    The columns from `columns` on are padding. Raises W2VError if memory is short.
    """
    return zeros((rows, row_width(columns, dtype)), dtype)


def _aligned(
    allocate: Callable[[int, type[np.uint8]], NDArray[np.uint8]], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    size = math.prod(shape) * dtype.itemsize
    try:
        raw = allocate(size + CACHE_LINE, np.uint8)
    except (MemoryError, ValueError) as error:  # ValueError: beyond the address space
        raise W2VError(f"no memory for an array of {size / 1e6:,.0f} MB, shape {shape}") from error
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + size].view(dtype).reshape(shape)


class MappedFile(mmap.mmap):
    """A whole file, memory-mapped for reading.

    If another process truncates the file, reading a lost page ends this process, see _signals.pyx; the rest of the last
    page is read as zeros, and `is_cut` tells.
    """

    def __new__(cls, file: BinaryIO) -> "MappedFile":
        return super().__new__(cls, file.fileno(), 0, access=mmap.ACCESS_READ)

    @property
    def is_cut(self) -> bool:
        return self.size() < len(self)


def peak() -> int:
    """The most memory that this process has used so far, in bytes."""
    # On Linux, getrusage would include the peak of the parent process, so /proc comes first.
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return _reported("/proc/self/status", "VmHWM:") or (used if sys.platform == "darwin" else 1024 * used)


def held() -> int:
    """The memory that this process uses now, in bytes; its peak if the system does not report it."""
    return _reported("/proc/self/status", "VmRSS:") or peak()


def check(needed: int, what: str, hint: str, ignore: bool = False) -> tuple[int, int]:
    """The bytes that this process will use if `what` takes those `needed`, and the limit.

    Raises W2VError, with a hint, if they are above the limit, unless `ignore`.
    """
    now, more = held(), available()
    if needed > more and not ignore:
        raise W2VError(
            f"{what} needs about {(now + needed) / 1e6:,.0f} MB of memory, but only {(now + more) / 1e6:,.0f} MB are "
            f"available: {hint}"
        )
    return now + needed, now + more


def available() -> int:
    """The memory that this process can still take, in bytes.

    This is the free memory of the machine, or less if a cgroup or the address space (ulimit -v) leaves less.
    """
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [_reported("/proc/meminfo", "MemAvailable:") or installed - held(), *_free_in_cgroups()]
    addresses = resource.getrlimit(resource.RLIMIT_AS)[0]
    if addresses != resource.RLIM_INFINITY:
        limits.append(addresses - _reported("/proc/self/status", "VmSize:"))
    return min(limits)


def _reported(path: str, name: str) -> int:
    """The value in kB after `name` in one of Linux's /proc files, in bytes; 0 if there is none."""
    with suppress(OSError, ValueError, IndexError):
        return 1024 * int(Path(path).read_text().partition(name)[2].split()[0])
    return 0


# By version of cgroups: the files of the limit and the usage, and the cached files that the system drops first.
_CGROUP_FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def _free_in_cgroups() -> Iterator[int]:
    """What the memory limits of this process's cgroup and of the cgroups around it leave to it, in bytes."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controller, group = line.split(":", 2)
            if controller in _CGROUP_FILES:
                root, inner = Path("/sys/fs/cgroup", controller), Path(group.lstrip("/"))
                limit, usage, cached = _CGROUP_FILES[controller]
                for folder in (root / inner, *(root / parent for parent in inner.parents)):
                    with suppress(OSError, ValueError):  # ValueError: "max", no limit
                        maximum, used = int((folder / limit).read_text()), held()
                        with suppress(OSError, ValueError):
                            statistics = (folder / "memory.stat").read_text().split()
                            freed_first = int(statistics[statistics.index(cached) + 1])
                            used = int((folder / usage).read_text()) - freed_first
                        yield maximum - used
