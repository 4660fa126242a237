"""One line where a page of a memory-mapped file is lost, because another process truncated the file or its disk failed.

The system then sends SIGBUS to the thread that reads the page, and ends the process. A handler in Python cannot say
why: it would run after the access, which is repeated for ever.
"""

from posix.signal cimport sigaction, sigaction_t, sigemptyset
from posix.unistd cimport STDERR_FILENO, _exit, write

cdef extern from "<signal.h>":
    const int SIGBUS

cdef bytes MESSAGE = (
    b"w2v: a file in use, the cache of a text or a model, was cut by another process, or its disk failed: "
    b"run the command again\n"
)
cdef const char *message = MESSAGE
cdef size_t length = len(MESSAGE)


cdef void end(int number) noexcept nogil:
    write(STDERR_FILENO, message, length)
    _exit(1)


def end_on_bus_error():
    """End the process with one line and exit code 1 where a page of a memory-mapped file is lost."""
    cdef sigaction_t action
    action.sa_handler = end
    action.sa_flags = 0
    sigemptyset(&action.sa_mask)
    sigaction(SIGBUS, &action, NULL)
