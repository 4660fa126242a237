"""Handles SIGBUS, which the system sends to a thread that reads a lost page of a memory-mapped file, after another
process has truncated it. A handler in Python cannot help: the access would be repeated for ever.

A Guard decides what happens when a lost page of its mapping is read: the page becomes zeros and `cut` true, or the
process prints a line on standard error and ends as it would have ended without the Guard.
"""

cimport cython
from libc.stdint cimport uintptr_t
from posix.mman cimport MAP_ANONYMOUS, MAP_FAILED, MAP_FIXED, MAP_PRIVATE, PROT_READ, mmap
from posix.signal cimport SA_SIGINFO, sigaction, sigaction_t, sigemptyset, siginfo_t
from posix.unistd cimport _SC_PAGESIZE, STDERR_FILENO, _exit, sysconf, write

cdef extern from "<signal.h>":
    const int SIGBUS

cdef enum:
    GUARDS = 256

cdef struct Range:
    uintptr_t begin, end
    bint zeros, cut

cdef bytes MESSAGE = (
    b"w2v: a file in use, the cache of a text or a model, was cut by another process, or its disk failed: "
    b"run the command again\n"
)
cdef const char *message = MESSAGE
cdef size_t length = len(MESSAGE)
cdef size_t page_size = sysconf(_SC_PAGESIZE)
cdef Range[GUARDS] guarded
cdef sigaction_t before
cdef bint installed = False, exits = False


cdef void handle(int number, siginfo_t *info, void *context) noexcept nogil:
    cdef uintptr_t address = <uintptr_t> info.si_addr
    cdef void *page = <void *> (address - address % page_size)
    cdef bint ours = False
    for i in range(GUARDS):
        if guarded[i].begin <= address < guarded[i].end:
            ours = guarded[i].cut = True
            if guarded[i].zeros and mmap(
                page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0
            ) != MAP_FAILED:
                return
    if ours or exits:
        write(STDERR_FILENO, message, length)
    if exits:
        _exit(1)
    sigaction(SIGBUS, &before, NULL)  # the access is repeated


cdef void install() noexcept:
    global installed
    cdef sigaction_t action
    if not installed:
        action.sa_sigaction = handle
        action.sa_flags = SA_SIGINFO
        sigemptyset(&action.sa_mask)
        sigaction(SIGBUS, &action, &before)
        installed = True


def end_on_bus_error():
    """End the process with one line and exit code 1 at a lost page of a mapped file, unless its Guard gives zeros."""
    global exits
    exits = True
    install()


@cython.final
cdef class Guard:
    """Watches a mapped file, read-only, as long as the Guard exists. With 256 Guards in use, further ones do nothing.

    cut: whether a lost page was read.
    """

    cdef int slot

    def __cinit__(self, const unsigned char[::1] memory not None, bint zeros):
        install()
        self.slot = -1
        for i in range(GUARDS):
            if not guarded[i].end:
                self.slot = i
                guarded[i] = Range(<uintptr_t> &memory[0], <uintptr_t> &memory[0] + memory.shape[0], zeros, False)
                break

    def __dealloc__(self):
        if self.slot >= 0:
            guarded[self.slot] = Range(0, 0, False, False)

    @property
    def cut(self):
        return self.slot >= 0 and guarded[self.slot].cut
