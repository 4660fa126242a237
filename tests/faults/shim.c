/* A library to preload: it makes one of a program's calls to the system fail, or kills the program there.
 *
 * After arm(), it counts the calls below on files in one folder. At call number `at`, `action` decides: with FAIL the call
 * fails with `error`; with FAIL_FROM all later calls that write fail, too, as on a full disk; KILL_BEFORE and KILL_AFTER
 * end the process as kill -9 does, before or after the system has done the work.
 *
 * After limit_allocations(n, size), the n-th request for `size` bytes or more, and each later one, fails. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FAIL, FAIL_FROM, KILL_BEFORE, KILL_AFTER };

static char folder[4096];
static long at, count;
static int error, action, armed, log_file = -1;
static long allocation_at, allocations;
static size_t allocation_size;

void arm(const char *within, long place, int what, int with_error, const char *log) {
    snprintf(folder, sizeof folder, "%s", within);
    at = place, count = 0, action = what, error = with_error;
    log_file = log ? open(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    armed = 1;
}

void limit_allocations(long place, size_t size) {
    allocations = 0, allocation_size = size;
    __atomic_store_n(&allocation_at, place, __ATOMIC_SEQ_CST);
}

static int within(const char *path) {
    const size_t length = strlen(folder);
    return !strncmp(path, folder, length) && (path[length] == '/' || !path[length] || path[length] == ' ');
}

static int concerns_path(const char *path) { return armed && path && within(path); }

static int concerns(int fd) {
    char name[64], path[4096];
    if (!armed || fd < 0) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return within(path);
}

static int writes(const char *name) {
    return strcmp(name, "read") && strcmp(name, "close") && strcmp(name, "unlink") && strcmp(name, "open") &&
           strncmp(name, "lseek", 5) && strncmp(name, "mmap", 4);
}

/* Counts a call in our folder; returns whether it must fail; kills the process if it must end before this call. */
static int fails(const char *name, long *mine) {
    *mine = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    if (log_file >= 0) dprintf(log_file, "%s\n", name);
    if (*mine == at && action == KILL_BEFORE) kill(getpid(), SIGKILL);
    if ((*mine == at && action == FAIL) || (at && *mine >= at && action == FAIL_FROM && writes(name))) {
        errno = error;
        return 1;
    }
    return 0;
}

static void after(long mine) {
    if (mine == at && action == KILL_AFTER) kill(getpid(), SIGKILL);
}

/* Defines a wrapper: return type, name, parameters, arguments, whether the call is in our folder, its value on failure. */
#define WRAP(type, name, parameters, arguments, ours, failed)                            \
    type name parameters {                                                               \
        static type(*original) parameters;                                               \
        long mine;                                                                       \
        if (!original) original = (type(*) parameters)dlsym(RTLD_NEXT, #name);           \
        if (!(ours)) return original arguments;                                          \
        if (fails(#name, &mine)) return failed;                                          \
        type result = original arguments;                                                \
        after(mine);                                                                     \
        return result;                                                                   \
    }

WRAP(ssize_t, read, (int fd, void *to, size_t size), (fd, to, size), concerns(fd), -1)
WRAP(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size), concerns(fd), -1)
WRAP(int, fsync, (int fd), (fd), concerns(fd), -1)
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), concerns(fd), -1)
WRAP(int, ftruncate64, (int fd, off64_t size), (fd, size), concerns(fd), -1)
WRAP(int, posix_fallocate, (int fd, off_t from, off_t size), (fd, from, size), concerns(fd), error)
WRAP(int, posix_fallocate64, (int fd, off64_t from, off64_t size), (fd, from, size), concerns(fd), error)
WRAP(off_t, lseek, (int fd, off_t to, int whence), (fd, to, whence), concerns(fd), -1)
WRAP(off64_t, lseek64, (int fd, off64_t to, int whence), (fd, to, whence), concerns(fd), -1)
WRAP(void *, mmap, (void *to, size_t size, int access, int flags, int fd, off_t from), (to, size, access, flags, fd, from),
     concerns(fd), MAP_FAILED)
WRAP(void *, mmap64, (void *to, size_t size, int access, int flags, int fd, off64_t from),
     (to, size, access, flags, fd, from), concerns(fd), MAP_FAILED)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), concerns_path(path), -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), concerns_path(to), -1)
WRAP(int, link, (const char *from, const char *to), (from, to), concerns_path(to), -1)
WRAP(int, linkat, (int at_from, const char *from, int at_to, const char *to, int flags), (at_from, from, at_to, to, flags),
     concerns_path(to) || concerns(at_to), -1)
WRAP(int, unlink, (const char *path), (path), concerns_path(path), -1)

int close(int fd) {
    static int (*original)(int);
    long mine;
    if (!original) original = (int (*)(int))dlsym(RTLD_NEXT, "close");
    if (!concerns(fd)) return original(fd);
    const int failed = fails("close", &mine), result = original(fd);
    if (failed) errno = error; /* the descriptor is closed nevertheless */
    after(mine);
    return failed ? -1 : result;
}

#define WRAP_OPEN(name, parameters, arguments, path)                                     \
    int name parameters {                                                                \
        static int(*original) parameters;                                                \
        mode_t mode = 0;                                                                 \
        long mine;                                                                       \
        va_list more;                                                                    \
        va_start(more, flags);                                                           \
        if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) mode = va_arg(more, mode_t);                  \
        va_end(more);                                                                    \
        if (!original) original = (int(*) parameters)dlsym(RTLD_NEXT, #name);            \
        if (!concerns_path(path)) return original arguments;                             \
        if (fails((flags & O_ACCMODE) == O_RDONLY ? "open" : "create", &mine)) return -1;                                             \
        const int result = original arguments;                                           \
        after(mine);                                                                     \
        return result;                                                                   \
    }

WRAP_OPEN(open, (const char *path, int flags, ...), (path, flags, mode), path)
WRAP_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode), path)
WRAP_OPEN(openat, (int where, const char *path, int flags, ...), (where, path, flags, mode), path)
WRAP_OPEN(openat64, (int where, const char *path, int flags, ...), (where, path, flags, mode), path)

/* -- glibc's allocations -- */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static int refuses(size_t size) {
    const long place = __atomic_load_n(&allocation_at, __ATOMIC_SEQ_CST);
    if (!place || size < allocation_size) return 0;
    if (__atomic_add_fetch(&allocations, 1, __ATOMIC_SEQ_CST) < place) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return refuses(size) ? NULL : __libc_malloc(size); }
void *calloc(size_t many, size_t size) { return refuses(many * size) ? NULL : __libc_calloc(many, size); }
void *realloc(void *old, size_t size) { return refuses(size) ? NULL : __libc_realloc(old, size); }
