"""Print one line if a page of a memory-mapped file is lost.

A page is lost if another process truncates the file or its disk fails. The system then sends SIGBUS to the thread that
reads the page, which ends the process. The handler must be in C: a Python handler would run only after the failing
access, but the processor repeats this access for ever.
"""

from posix.signal cimport sigaction, sigaction_t, sigemptyset
from posix.unistd cimport STDERR_FILENO, _exit, write

cdef extern from "<signal.h>":
    const int SIGBUS

cdef bytes MESSAGE = (
    b"w2v: another process truncated a file that w2v was reading (a model or the cache of a text), or its disk failed: "
    b"run the command again\n"
)
cdef const char *message = MESSAGE
cdef size_t length = len(MESSAGE)


cdef void end(int number) noexcept nogil:
    write(STDERR_FILENO, message, length)
    _exit(1)


def end_on_bus_error():
    """Make SIGBUS end the process with one line on standard error and exit code 1."""
    cdef sigaction_t action
    action.sa_handler = end
    action.sa_flags = 0
    sigemptyset(&action.sa_mask)
    sigaction(SIGBUS, &action, NULL)
