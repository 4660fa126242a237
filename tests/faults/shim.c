/* A library to preload: it makes one of a program's calls to the system fail, or kills the program there.
 *
 * After arm(), it counts the calls below on files in one folder. At call number `target_call`, `action` decides:
 * with FAIL the call fails with `error`; with FAIL_FROM all later calls that write fail, too, as on a full disk;
 * KILL_BEFORE and KILL_AFTER end the process as kill -9 does, before or after the system has done the work.
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
static long target_call, count;
static int error, action, armed, log_file = -1;
static long target_request, requests;
static size_t allocation_size;

void arm(const char *watched_folder, long at_call, int with_action, int with_error, const char *log) {
    snprintf(folder, sizeof folder, "%s", watched_folder);
    target_call = at_call, count = 0, action = with_action, error = with_error;
    log_file = log ? open(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    armed = 1;
}

void limit_allocations(long from_request, size_t size) {
    requests = 0, allocation_size = size;
    __atomic_store_n(&target_request, from_request, __ATOMIC_SEQ_CST);
}

static int is_in_folder(const char *path) {
    const size_t length = strlen(folder);
    return !strncmp(path, folder, length) && (path[length] == '/' || !path[length] || path[length] == ' ');
}

static int path_is_watched(const char *path) { return armed && path && is_in_folder(path); }

static int fd_is_watched(int fd) {
    char name[64], path[4096];
    if (!armed || fd < 0) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_in_folder(path);
}

static int writes(const char *name) {
    return strcmp(name, "read") && strcmp(name, "close") && strcmp(name, "unlink") && strcmp(name, "open") &&
           strncmp(name, "lseek", 5) && strncmp(name, "mmap", 4);
}

/* Counts a call in our folder; returns whether it must fail; kills the process if it must end before this call. */
static int fails(const char *name, long *number) {
    *number = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    if (log_file >= 0) dprintf(log_file, "%s\n", name);
    if (*number == target_call && action == KILL_BEFORE) kill(getpid(), SIGKILL);
    const int is_reached = target_call && *number >= target_call;
    if ((*number == target_call && action == FAIL) || (is_reached && action == FAIL_FROM && writes(name))) {
        errno = error;
        return 1;
    }
    return 0;
}

static void after(long number) {
    if (number == target_call && action == KILL_AFTER) kill(getpid(), SIGKILL);
}

/* Defines a wrapper: return type, name, parameters, arguments, whether the call is in our folder, its value on failure. */
#define WRAP(type, name, parameters, arguments, ours, failed)                            \
    type name parameters {                                                               \
        static type(*original) parameters;                                               \
        long number;                                                                     \
        if (!original) original = (type(*) parameters)dlsym(RTLD_NEXT, #name);           \
        if (!(ours)) return original arguments;                                          \
        if (fails(#name, &number)) return failed;                                        \
        type result = original arguments;                                                \
        after(number);                                                                   \
        return result;                                                                   \
    }

WRAP(ssize_t, read, (int fd, void *to, size_t size), (fd, to, size), fd_is_watched(fd), -1)
WRAP(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size), fd_is_watched(fd), -1)
WRAP(int, fsync, (int fd), (fd), fd_is_watched(fd), -1)
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), fd_is_watched(fd), -1)
WRAP(int, ftruncate64, (int fd, off64_t size), (fd, size), fd_is_watched(fd), -1)
WRAP(int, posix_fallocate, (int fd, off_t from, off_t size), (fd, from, size), fd_is_watched(fd), error)
WRAP(int, posix_fallocate64, (int fd, off64_t from, off64_t size), (fd, from, size), fd_is_watched(fd), error)
WRAP(off_t, lseek, (int fd, off_t to, int whence), (fd, to, whence), fd_is_watched(fd), -1)
WRAP(off64_t, lseek64, (int fd, off64_t to, int whence), (fd, to, whence), fd_is_watched(fd), -1)
WRAP(void *, mmap, (void *to, size_t size, int access, int flags, int fd, off_t from), (to, size, access, flags, fd, from),
     fd_is_watched(fd), MAP_FAILED)
WRAP(void *, mmap64, (void *to, size_t size, int access, int flags, int fd, off64_t from),
     (to, size, access, flags, fd, from), fd_is_watched(fd), MAP_FAILED)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), path_is_watched(path), -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), path_is_watched(to), -1)
WRAP(int, link, (const char *from, const char *to), (from, to), path_is_watched(to), -1)
WRAP(int, linkat, (int at_from, const char *from, int at_to, const char *to, int flags), (at_from, from, at_to, to, flags),
     path_is_watched(to) || fd_is_watched(at_to), -1)
WRAP(int, unlink, (const char *path), (path), path_is_watched(path), -1)

int close(int fd) {
    static int (*original)(int);
    long number;
    if (!original) original = (int (*)(int))dlsym(RTLD_NEXT, "close");
    if (!fd_is_watched(fd)) return original(fd);
    const int failed = fails("close", &number), result = original(fd);
    if (failed) errno = error; /* the descriptor is closed nevertheless */
    after(number);
    return failed ? -1 : result;
}

#define WRAP_OPEN(name, parameters, arguments, path)                                     \
    int name parameters {                                                                \
        static int(*original) parameters;                                                \
        mode_t mode = 0;                                                                 \
        long number;                                                                     \
        va_list more;                                                                    \
        va_start(more, flags);                                                           \
        if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) mode = va_arg(more, mode_t); \
        va_end(more);                                                                    \
        if (!original) original = (int(*) parameters)dlsym(RTLD_NEXT, #name);            \
        if (!path_is_watched(path)) return original arguments;                           \
        if (fails((flags & O_ACCMODE) == O_RDONLY ? "open" : "create", &number)) return -1; \
        const int result = original arguments;                                           \
        after(number);                                                                   \
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
    const long target = __atomic_load_n(&target_request, __ATOMIC_SEQ_CST);
    if (!target || size < allocation_size) return 0;
    if (__atomic_add_fetch(&requests, 1, __ATOMIC_SEQ_CST) < target) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return refuses(size) ? NULL : __libc_malloc(size); }
void *calloc(size_t many, size_t size) { return refuses(many * size) ? NULL : __libc_calloc(many, size); }
void *realloc(void *old, size_t size) { return refuses(size) ? NULL : __libc_realloc(old, size); }
