"""Functions of Windows that Python does not offer."""

import ctypes
import msvcrt
import os
import sys
from collections.abc import Callable
from ctypes import wintypes
from functools import cache
from pathlib import Path

assert sys.platform == "win32"

_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_handlers: list[object] = []  # must live as long as the process

_kernel.CreateFileW.restype = wintypes.HANDLE
_kernel.CreateFileW.argtypes = (
    wintypes.LPCWSTR, wintypes.DWORD, wintypes.DWORD, wintypes.LPVOID, wintypes.DWORD, wintypes.DWORD, wintypes.HANDLE,
)  # fmt: skip
GENERIC_READ_AND_WRITE, SHARE_ALL, CREATE_NEW, NORMAL = 0xC000_0000, 7, 1, 0x80


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX."""

    _fields_ = (
        ("length", wintypes.DWORD),
        ("load", wintypes.DWORD),
        *((name, ctypes.c_uint64) for name in ("total", "free", "total_commit", "free_commit", "total_virtual")),
        ("free_virtual", ctypes.c_uint64),
        ("free_extended", ctypes.c_uint64),
    )


class _ProcessMemory(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS."""

    _fields_ = (
        ("length", wintypes.DWORD),
        ("faults", wintypes.DWORD),
        ("peak_resident", ctypes.c_size_t),
        ("resident", ctypes.c_size_t),
        *((f"other{number}", ctypes.c_size_t) for number in range(6)),
    )


def available_memory() -> int:
    """Return the memory that this process can still allocate, in bytes: free memory, and the limit of the page file."""
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    if not _kernel.GlobalMemoryStatusEx(ctypes.byref(status)):
        raise ctypes.WinError(ctypes.get_last_error())
    return min(status.free, status.free_commit, status.free_virtual)


def process_memory() -> tuple[int, int]:
    """Return the memory that this process uses now and has used at most, in bytes."""
    counters = _ProcessMemory(length=ctypes.sizeof(_ProcessMemory))
    process = wintypes.HANDLE(-1)  # this process
    if not _kernel.K32GetProcessMemoryInfo(process, ctypes.byref(counters), counters.length):
        raise ctypes.WinError(ctypes.get_last_error())
    return counters.resident, counters.peak_resident


@cache
def handle_console_events(handle: Callable[[int], bool]) -> None:
    """Let a function handle the events of the console, such as CTRL_BREAK_EVENT, from now on.

    Windows calls it in a new thread. If it returns False, the next handler follows. After CTRL_CLOSE_EVENT and later
    ones, the system ends the process when the function returns, or after some seconds.
    """
    handler = ctypes.WINFUNCTYPE(wintypes.BOOL, wintypes.DWORD)(handle)
    _handlers.append(handler)
    _kernel.SetConsoleCtrlHandler(handler, True)


def create_file(path: Path) -> int:
    """Create a file that can be renamed while it is open, and return its descriptor.

    Raises:
        FileExistsError: If the file exists.
        OSError: If the system reports another error.
    """
    handle = _kernel.CreateFileW(str(path), GENERIC_READ_AND_WRITE, SHARE_ALL, None, CREATE_NEW, NORMAL, None)
    if handle == wintypes.HANDLE(-1).value:
        raise ctypes.WinError(ctypes.get_last_error())
    return msvcrt.open_osfhandle(handle, os.O_RDWR)
