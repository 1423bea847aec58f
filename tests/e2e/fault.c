/* Preloaded into a program, lets one call fail: the Nth of a kind that the program's own code makes,
 * by the return address. What libraries call for themselves goes through.
 *
 *   FAULT=KIND:N[+]   the Nth call of the kind fails; with +, all from the Nth on
 *   FAULT_RANK=R      in rank R alone (0 without mpirun)
 *   FAULT_COUNT=FILE  the calls of each kind in that rank, its later executions and children: 8-byte
 *                     integers in the order below
 *   FAULT_STACKS=FILE each call's kind, number and hash of the calls that led to it, three 8-byte integers
 *
 * Kinds: alloc, write (fwrite, fflush and ftruncate too), fsync, rename (links too), open (mkdir too),
 * read, close, thread. What goes to stderr is not counted: it is the error line. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"

enum { CALLS_MAX = 1 << 20 };
enum kind { ALLOC, WRITE, FSYNC, RENAME, OPEN, READ, CLOSE, THREAD, KINDS };
static const char *const names[] = {"alloc", "write", "fsync", "rename",
                                    "open",  "read",  "close", "thread"};

static struct {
    enum kind kind;             /* that is to fail; KINDS: none */
    long at;
    int lasting;
    atomic_long
        *calls; /* [KINDS], in a file that the rank's next execution and its children share */
    struct call {
        int64_t kind, n;
        uint64_t stack;
    } * stacks; /* [CALLS_MAX], in FAULT_STACKS, or NULL */
} fault = {.kind = KINDS};

static void *share(const char *path, size_t size)
{
    int fd = open64(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate64(fd, (off64_t)size)) _exit(99);
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) _exit(99);
    return map;
}

__attribute__((constructor)) static void fault_start(void)
{
    const char *text = getenv("FAULT"), *want = getenv("FAULT_RANK"),
               *count = getenv("FAULT_COUNT");
    const char *rank = launched_as("RANK");
    if (!count || strcmp(program_invocation_short_name, "dtrain")) return;
    if (strcmp(want ? want : "0", rank ? rank : "0")) return;
    fault.calls = share(count, KINDS * sizeof *fault.calls);
    const char *stacks = getenv("FAULT_STACKS");
    if (stacks) fault.stacks = share(stacks, CALLS_MAX * sizeof *fault.stacks);
    for (int k = 0; text && k < KINDS; k++) {
        size_t length = strlen(names[k]);
        if (strncmp(text, names[k], length) || text[length] != ':') continue;
        char *end;
        fault.at = strtol(text + length + 1, &end, 10);
        fault.lasting = *end == '+';
        fault.kind = (enum kind)k;
    }
    dl_iterate_phdr(find_program, NULL);
}

/* The calls that led here, as addresses for addr2line, in $FAULT_COUNT.where. */
static void tell_where(void)
{
    char path[4096];
    void *frames[24];
    snprintf(path, sizeof path, "%s.where", getenv("FAULT_COUNT"));
    FILE *file = fopen(path, "a");
    int n = backtrace(frames, 24);
    for (int i = 0; file && i < n; i++)
        if (is_in_program(frames[i]))
            fprintf(file, "0x%lx\n", (unsigned long)((uintptr_t)frames[i] - program.base - 1));
    if (file) fclose(file);
}

static void record_stack(enum kind kind, long n)
{
    const uint64_t hash = hash_stack(32);
    size_t at = (size_t)kind * (CALLS_MAX / KINDS) + (size_t)n;
    if (n < CALLS_MAX / KINDS) fault.stacks[at] = (struct call){kind, n, hash};
}

static int fails(enum kind kind, const void *caller)
{
    if (!is_in_program(caller)) return 0;
    long n = atomic_fetch_add(&fault.calls[kind], 1) + 1;
    if (fault.stacks) record_stack(kind, n);
    if (kind != fault.kind || n < fault.at || (n > fault.at && !fault.lasting)) return 0;
    if (n == fault.at) tell_where();
    return 1;
}

/* Defines NAME, which fails with RESULT and errno ERROR if FAILING, or is the next NAME there is. */
#define FAULTY_BY(failing, type, name, parameters, arguments, error, result)                       \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*_Atomic next) parameters;                                                     \
        if (!next) next = (type(*) parameters)dlsym(RTLD_NEXT, #name);                             \
        if (failing) return errno = (error), (result);                                             \
        return next arguments;                                                                     \
    }

#define FAULTY_IF(counts, kind, ...)                                                               \
    FAULTY_BY((counts) && fails(kind, __builtin_return_address(0)), __VA_ARGS__)
#define FAULTY(...) FAULTY_IF(1, __VA_ARGS__)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

/* dlsym allocates: these go straight to the C library. */
#define FAULTY_ALLOC(name, parameters, next)                                                       \
    void *name parameters                                                                          \
    {                                                                                              \
        if (fails(ALLOC, __builtin_return_address(0))) return errno = ENOMEM, NULL;                \
        return next;                                                                               \
    }
FAULTY_ALLOC(malloc, (size_t size), __libc_malloc(size))
FAULTY_ALLOC(calloc, (size_t count, size_t size), __libc_calloc(count, size))
FAULTY_ALLOC(realloc, (void *old, size_t size), __libc_realloc(old, size))
FAULTY_ALLOC(aligned_alloc, (size_t alignment, size_t size), __libc_memalign(alignment, size))

FAULTY_IF(fd != 2, WRITE, ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n),
          ENOSPC, -1)
FAULTY(WRITE, ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at),
       EIO, -1)
FAULTY(WRITE, int, ftruncate, (int fd, off_t length), (fd, length), EIO, -1)
/* A stream that has failed says so later, too. NULL is every stream, for fflush. */
static int stream_fails(FILE *file, const void *caller)
{
    if (file == stderr || !fails(WRITE, caller)) return 0;
    if (file) file->_flags |= 0x20; /* glibc's _IO_ERR_SEEN */
    return 1;
}
FAULTY_BY(stream_fails(file, __builtin_return_address(0)), size_t, fwrite,
          (const void *data, size_t size, size_t n, FILE *file), (data, size, n, file), ENOSPC, 0)
FAULTY_BY(stream_fails(file, __builtin_return_address(0)), int, fflush, (FILE * file), (file),
          ENOSPC, EOF)
FAULTY(FSYNC, int, fsync, (int fd), (fd), EIO, -1)
FAULTY(FSYNC, int, fdatasync, (int fd), (fd), EIO, -1)
FAULTY(RENAME, int, rename, (const char *from, const char *to), (from, to), EIO, -1)
FAULTY(RENAME, int, renameat2, (int a, const char *from, int b, const char *to, unsigned how),
       (a, from, b, to, how), EIO, -1)
FAULTY(RENAME, int, link, (const char *from, const char *to), (from, to), EIO, -1)
FAULTY(RENAME, int, symlink, (const char *from, const char *to), (from, to), EIO, -1)
FAULTY(OPEN, int, mkdir, (const char *path, mode_t mode), (path, mode), EACCES, -1)
FAULTY(OPEN, int, mkostemp, (char *path, int flags), (path, flags), EMFILE, -1)
FAULTY(OPEN, FILE *, fopen, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
FAULTY(READ, ssize_t, read, (int fd, void *data, size_t n), (fd, data, n), EIO, -1)
FAULTY(READ, ssize_t, pread, (int fd, void *data, size_t n, off_t at), (fd, data, n, at), EIO, -1)
FAULTY(CLOSE, int, fclose, (FILE * file), (file), ENOSPC, EOF)
FAULTY(THREAD, int, pthread_create,
       (pthread_t * thread, const pthread_attr_t *how, void *(*body)(void *), void *argument),
       (thread, how, body, argument), 0, EAGAIN)

/* A close that fails has closed. */
int close(int fd)
{
    static int (*_Atomic next)(int);
    if (!next) next = (int (*)(int))dlsym(RTLD_NEXT, "close");
    int result = next(fd);
    return fails(CLOSE, __builtin_return_address(0)) ? (errno = EIO, -1) : result;
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (fails(OPEN, __builtin_return_address(0))) return errno = EMFILE, -1;
    return open64(path, flags, mode);
}
