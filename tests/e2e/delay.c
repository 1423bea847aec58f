/* Preloaded into dtrain, makes ranks late: the program's calls of MPI, futex, clock and memcpy take
 * longer at some places, and a child stops one rank of four from time to time, between any two
 * instructions. Calls by libraries are not delayed.
 *
 *   DELAY=SEED        which places of which rank are late, and how
 *   DELAY_HOSTS=AABB  the host of each rank, a letter a rank, as if they shared no memory
 *
 * A place is a stack of calls. Rank SEED modulo the ranks is late at one of three places, the
 * others at one of 64: before or after the call, by up to 30 ms, often at first and then less and
 * less. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

enum { PLACES = 4096 };

static struct {
    uint64_t seed; /* of this rank; 0: nothing is late */
    int is_late;   /* often, not seldom */
    atomic_uint_fast64_t calls[PLACES];
} delay;

/* splitmix64 */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void sleep_us(uint64_t us)
{
    struct timespec left = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &left, NULL);
}

/* Returns the place of a caller; 0: not in the program's code. */
static uint64_t place_of(const void *caller)
{
    if (!delay.seed || !is_in_program(caller)) return 0;
    return mix(hash_stack(12) ^ delay.seed) | 1;
}

/* Sleeps here, maybe: often in the first calls of a place, then less and less. */
static void be_late(uint64_t place, int behind)
{
    if (!place || (place & 1 << 8) != (unsigned)behind << 8) return;
    const uint64_t n = atomic_fetch_add(&delay.calls[place >> 48 & (PLACES - 1)], 1),
                   draw = mix(place + n);
    const unsigned one_of = delay.is_late ? 3 : 64;
    if ((place >> 16 & 0xffff) % one_of || draw % (1 + n / 4)) return;
    sleep_us(draw >> 32 & 1 ? 10000 + (draw >> 40) % 20000 : (draw >> 40) % 2000);
}

/* Stops the rank for a while, now and then, as long as it lives. */
static void stop_now_and_then(pid_t rank)
{
    prctl(PR_SET_NAME, "delay"); /* signals for ranks are not for it */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 0; fd < 1024; fd++) /* mpirun waits for the end of each rank's output */
        close(fd);
    for (uint64_t i = 1; getppid() == rank; i++) {
        uint64_t draw = mix(delay.seed + i),
                 us = (draw & 7) ? draw >> 8 & 2047 : 10000 + (draw >> 8) % 30000;
        sleep_us(1000 + (draw >> 32) % 40000);
        kill(rank, SIGSTOP);
        sleep_us(us);
        kill(rank, SIGCONT);
    }
    _exit(0);
}

__attribute__((constructor)) static void delay_start(void)
{
    const char *seed = getenv("DELAY"), *rank = launched_as("RANK");
    const char *size = launched_as("SIZE");
    if (!seed || !rank || !size) return;
    dl_iterate_phdr(find_program, NULL);
    void *frame;
    backtrace(&frame, 1); /* loads what it needs */
    delay.is_late = strtoull(seed, NULL, 10) % strtoull(size, NULL, 10) == strtoull(rank, NULL, 10);
    delay.seed = mix(mix(strtoull(seed, NULL, 10)) + strtoull(rank, NULL, 10)) | 1;
    if (getenv("DELAY_STOPS")) return; /* executed again: the child lives on */
    setenv("DELAY_STOPS", "1", 1);
    pid_t self = getpid();
    if ((delay.seed & 6) == 4 && fork() == 0) stop_now_and_then(self);
}

#define LATE_CALL(type, name, parameters, call)                                                    \
    type name parameters                                                                           \
    {                                                                                              \
        const uint64_t place = place_of(__builtin_return_address(0));                              \
        be_late(place, 0);                                                                         \
        type result = call;                                                                        \
        be_late(place, 1);                                                                         \
        return result;                                                                             \
    }
#define LATE(name, parameters, arguments)                                                          \
    LATE_CALL(int, MPI_##name, parameters, PMPI_##name arguments)

LATE(Start, (MPI_Request * r), (r))
LATE(Test, (MPI_Request * r, int *flag, MPI_Status *s), (r, flag, s))
LATE(Testsome, (int n, MPI_Request r[], int *count, int index[], MPI_Status s[]),
     (n, r, count, index, s))
LATE(Wait, (MPI_Request * r, MPI_Status *s), (r, s))
LATE(Isend, (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r),
     (b, n, t, to, tag, c, r))
LATE(Irecv, (void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r),
     (b, n, t, from, tag, c, r))
LATE(Recv, (void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *s),
     (b, n, t, from, tag, c, s))
LATE(Iprobe, (int from, int tag, MPI_Comm c, int *flag, MPI_Status *s), (from, tag, c, flag, s))
LATE(Ibcast, (void *b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request *r),
     (b, n, t, root, c, r))
LATE(Ireduce,
     (const void *b, void *o, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c,
      MPI_Request *r),
     (b, o, n, t, op, root, c, r))
LATE(Iallreduce,
     (const void *b, void *o, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request *r),
     (b, o, n, t, op, c, r))
LATE(Ibarrier, (MPI_Comm c, MPI_Request *r), (c, r))
LATE(Igather,
     (const void *b, int n, MPI_Datatype t, void *o, int m, MPI_Datatype u, int root, MPI_Comm c,
      MPI_Request *r),
     (b, n, t, o, m, u, root, c, r))
LATE(Put,
     (const void *b, int n, MPI_Datatype t, int to, MPI_Aint at, int m, MPI_Datatype u, MPI_Win w),
     (b, n, t, to, at, m, u, w))
LATE(Get, (void *b, int n, MPI_Datatype t, int from, MPI_Aint at, int m, MPI_Datatype u, MPI_Win w),
     (b, n, t, from, at, m, u, w))
LATE(Fetch_and_op,
     (const void *b, void *o, MPI_Datatype t, int to, MPI_Aint at, MPI_Op op, MPI_Win w),
     (b, o, t, to, at, op, w))
LATE(Win_flush, (int to, MPI_Win w), (to, w))
LATE(Win_sync, (MPI_Win w), (w))

/* Ranks of a host share memory, which is how the program recognises hosts. */
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out)
{
    const char *hosts = getenv("DELAY_HOSTS");
    if (!hosts) return PMPI_Comm_split_type(comm, type, key, info, out);
    return PMPI_Comm_split(comm, hosts[strtoul(launched_as("RANK"), NULL, 10)], key, out);
}

#define NEXT(type, name, parameters)                                                               \
    static type(*_Atomic next) parameters;                                                         \
    if (!next) next = (type(*) parameters)dlsym(RTLD_NEXT, #name)

long syscall(long number, ...)
{
    const uint64_t place = place_of(__builtin_return_address(0));
    long a[6];
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(more, long);
    va_end(more);
    NEXT(long, syscall, (long, ...));
    be_late(place, 0);
    long result = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    be_late(place, 1);
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    NEXT(int, clock_gettime, (clockid_t, struct timespec *));
    uint64_t place = place_of(__builtin_return_address(0));
    be_late(place, 0);
    int result = next(clock, out);
    be_late(place, 1);
    return result;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    const uint64_t place = n < 512 ? 0 : place_of(__builtin_return_address(0));
    be_late(place, 0);
    memmove(to, from, n);
    be_late(place, 1);
    return to;
}
