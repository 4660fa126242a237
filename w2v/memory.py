"""Memory: for matrices, aligned to the cache line and, by NumPy's own `madvise`, in huge pages when large; how much
of it this process holds, and may hold.
"""

import math
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v.errors import W2VError

LINE = 64  # bytes in a cache line, and in the widest vector register


def empty(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """An array of `shape` that starts on a cache line; its values are arbitrary."""
    return _aligned(np.empty, shape, np.dtype(dtype))


def zeros(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """An array of zeros that starts on a cache line; pages of a large one are taken when they are written."""
    return _aligned(np.zeros, shape, np.dtype(dtype))


def row_width(columns: int, dtype: DTypeLike = np.float32) -> int:
    """The values in a row of `columns` that is padded to whole cache lines."""
    line = LINE // np.dtype(dtype).itemsize
    return -(-columns // line) * line


def aligned_rows(rows: int, columns: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """A zeroed (rows, stride) matrix whose every row starts on a cache line.

    stride is `columns` rounded up to a multiple of 16 floats, or 32 bfloat16; the columns past `columns` are padding.
    """
    return zeros((rows, row_width(columns, dtype)), dtype)


def _aligned(
    allocate: Callable[[int, type[np.uint8]], NDArray[np.uint8]], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    size = math.prod(shape) * dtype.itemsize
    try:
        raw = allocate(size + LINE, np.uint8)
    except (MemoryError, ValueError) as error:  # ValueError: beyond the address space
        raise W2VError(f"no memory for an array of {size / 1e6:,.0f} MB, shape {shape}") from error
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def peak() -> int:
    """The most memory that this process has held, in bytes."""
    # Linux's own figure first: there getrusage's begins with that of the process that started this one.
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return _figure("/proc/self/status", "VmHWM:") or (used if sys.platform == "darwin" else 1024 * used)


def held() -> int:
    """The memory that this process holds now, in bytes; where that is not told, the most that it has held."""
    return _figure("/proc/self/status", "VmRSS:") or peak()


def available() -> int:
    """The memory that this process may still take, in bytes: what the machine has free, within the limits of its
    cgroup and of its address space (ulimit -v).
    """
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    free = _figure("/proc/meminfo", "MemAvailable:") or installed - held()
    limits = [free, *(limit - held() for limit in _cgroup_limits())]
    addresses = resource.getrlimit(resource.RLIMIT_AS)[0]
    if addresses != resource.RLIM_INFINITY:
        limits.append(addresses - _figure("/proc/self/status", "VmSize:"))
    return min(limits)


def _figure(path: str, name: str) -> int:
    """A figure in kB of one of Linux's files, in bytes; 0 where there is none."""
    with suppress(OSError, ValueError, IndexError):
        return 1024 * int(Path(path).read_text().partition(name)[2].split()[0])
    return 0


def _cgroup_limits() -> Iterator[int]:
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controller, group = line.split(":", 2)
            if controller in ("", "memory"):  # version 2, version 1
                root = Path("/sys/fs/cgroup", controller)
                name = "memory.limit_in_bytes" if controller else "memory.max"
                group = group.lstrip("/")
                for folder in (root / group, *(root / parent for parent in Path(group).parents)):
                    with suppress(OSError, ValueError):  # ValueError: "max", which is none
                        yield int((folder / name).read_text())
