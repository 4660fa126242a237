"""What to do when a memory-mapped file is cut by another process: the system then sends SIGBUS, which Python cannot
handle, for the access is repeated for ever."""

from libc.signal cimport signal
from posix.unistd cimport STDERR_FILENO, _exit, write

cdef extern from "<signal.h>":
    const int SIGBUS

cdef bytes MESSAGE = (
    b"w2v: a file in use, the cache of a text or a model, was cut by another process, or its disk failed: "
    b"run the command again\n"
)
cdef const char *message = MESSAGE
cdef size_t length = len(MESSAGE)


cdef void fail(int number) noexcept nogil:
    write(STDERR_FILENO, message, length)
    _exit(1)


def end_on_bus_error():
    """End the process with one line and exit code 1, in place of a crash, where a mapped file has been cut."""
    signal(SIGBUS, fail)
