/* Memory that ranks of one host share, and event counts in it.
 *
 * The memory is a file in /dev/shm, or on a disk, where it may be larger than the host's memory.
 * One rank creates the file, the others open it, and its name is removed before it takes space, so
 * it disappears with the last rank, however that rank ends. A shortage would show only later, as a
 * SIGBUS. So the free space is checked first; then each rank allocates some of the pages, near its
 * cores, and all agree on the outcome. Each rank maps the file at a multiple of huge pages, so that
 * the kernel can use these. */
#include "comm/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "comm/world.h"

/* PAGE: no regular page is larger */
enum { PAGE = 1 << 16, HUGE_PAGE = 1 << 21, LARGE = 32 << 20, NAME_SIZE = 4096 };
enum { OPEN_FLAGS = O_RDWR | O_CLOEXEC | O_NOFOLLOW };

void *dt__shm_take(struct dt__shm *shm, size_t count, size_t size)
{
    void *at = shm->memory ? shm->memory + shm->used : NULL;
    size_t bytes;
    if (!dt__size_mul(count, size, &bytes) || !dt__size_add(bytes, 63, &bytes) ||
        !dt__size_add(shm->used, bytes & ~63UL, &shm->used))
        shm->used = SIZE_MAX;
    return at;
}

dt_status dt__shm_has_space(size_t bytes, const char *what)
{
    struct statvfs fs;
    double have = 0;
    if (statvfs("/dev/shm", &fs) == 0) have = (double)fs.f_bavail * (double)fs.f_frsize;
    if (have > 1.02 * (double)bytes) return DT_OK;
    return dt_fail(DT_EMEMORY, "/dev/shm has %.0f MB free, expected %.0f MB for the %s", have / 1e6,
                   (double)bytes / 1e6, what);
}

bool dt__shared_fits(MPI_Comm comm, size_t bytes, const char *what)
{
    int size;
    DT_MPI(MPI_Comm_size(comm, &size));
    return size == 1 || !dt__shm_has_space(bytes, what);
}

static const char *dir_of(const struct dt__shm *shm)
{
    return shm->dir ? shm->dir : "/dev/shm";
}

static dt_status no_memory(const struct dt__shm *shm, const char *what)
{
    return dt_fail(DT_EMEMORY, "no memory in %s that the ranks of a host share, for the %s: %s",
                   dir_of(shm), what, strerror(errno));
}

/* Returns the number of bytes that need pages. */
static size_t shm_pages(const struct dt__shm *shm)
{
    size_t bytes = shm->used;
    for (int i = 0; i < shm->holes; i++)
        bytes -= shm->hole[i].end - shm->hole[i].begin;
    return bytes;
}

/* Creates the file, and writes its name. */
static dt_status shm_create(const struct dt__shm *shm, size_t bytes, const char *what,
                            char name[NAME_SIZE], int *out_fd)
{
    struct timespec now;
    if (!shm->dir) DT_TRY(dt__shm_has_space(shm_pages(shm), what));
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, NAME_SIZE, "%s/dtrain-%ld-%lld-%ld", dir_of(shm), (long)getpid(),
             (long long)now.tv_sec, now.tv_nsec);
    *out_fd = open(name, OPEN_FLAGS | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
    if (*out_fd < 0) name[0] = '\0';
    return *out_fd < 0 || ftruncate(*out_fd, (off_t)bytes) ? no_memory(shm, what) : DT_OK;
}

/* Maps the file, in an address range that was reserved with one huge page to spare, and releases
 * the excess. fd -1: private memory of a single rank. Returns NULL on failure, with errno set. */
static unsigned char *shm_map(int fd, size_t bytes)
{
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    unsigned char *reserved = mmap(NULL, bytes + HUGE_PAGE, PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return NULL;
    const size_t before = -(uintptr_t)reserved % HUGE_PAGE;
    void *at = mmap(reserved + before, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
    if (before) munmap(reserved, before);
    munmap(reserved + before + bytes, HUGE_PAGE - before);
    return at == MAP_FAILED ? NULL : at;
}

/* Allocates this rank's pages, in whole units of the ranges between holes, or fails. */
static dt_status shm_reserve(int fd, const struct dt__shm *shm, size_t unit, int rank, int size,
                             const char *what)
{
    size_t from = 0;
    errno = 0;
    for (int i = 0; i <= shm->holes && !errno; i++) {
        const size_t to = i < shm->holes ? shm->hole[i].begin : shm->used;
        const size_t first = from / unit, units = (to + unit - 1) / unit - first;
        const size_t begin = (first + units * (size_t)rank / (size_t)size) * unit,
                     end = (first + units * ((size_t)rank + 1) / (size_t)size) * unit;
        do
            errno = begin < end ? posix_fallocate(fd, (off_t)begin, (off_t)(end - begin)) : 0;
        while (errno == EINTR);
        if (i < shm->holes) from = shm->hole[i].end;
    }
    return errno ? no_memory(shm, what) : DT_OK;
}

dt_status dt__shared_create(MPI_Comm comm, const struct dt__shm *shm, const char *what,
                            const struct dt_ranks *all, struct dt__shared *out)
{
    const size_t bytes = shm->used, unit = bytes < HUGE_PAGE || shm->holes ? PAGE : HUGE_PAGE;
    char name[NAME_SIZE] = "";
    int rank, size, fd = -1;
    DT_MPI(MPI_Comm_rank(comm, &rank));
    DT_MPI(MPI_Comm_size(comm, &size));
    *out = (struct dt__shared){.memory = NULL};
    dt_status status = DT_OK;
    if (!dt__size_add(bytes, unit - 1, &out->bytes))
        status = dt_fail(DT_EMEMORY, "the %s is beyond memory", what);
    out->bytes -= out->bytes % unit;
    /* alone: private memory, without a file; named: a file that other ranks open by its name;
     * neither: an anonymous mapping, whose holes take no pages */
    const bool alone = !bytes || (size == 1 && !shm->holes && !shm->dir);
    const bool named = !alone && (size > 1 || shm->dir);
    if (!status && alone)
        status = dt__alloc(bytes, 1, what, &out->own);
    else if (!status && rank == 0 && named)
        status = shm_create(shm, out->bytes, what, name, &fd);
    status = dt__ranks_agree(all, status);
    const bool goes_on = !status;
    if (goes_on && named) {
        DT_MPI(MPI_Bcast(name, NAME_SIZE, MPI_CHAR, 0, comm));
        if (rank) fd = open(name, OPEN_FLAGS);
        if (fd < 0) status = no_memory(shm, what);
        DT_MPI(MPI_Barrier(comm));
    }
    if (rank == 0 && name[0]) unlink(name);
    if (goes_on) {
        out->memory = alone || status ? out->own : shm_map(fd, out->bytes);
        if (!status && !out->memory) status = no_memory(shm, what);
        if (!status && named) status = shm_reserve(fd, shm, unit, rank, size, what);
        status = dt__ranks_agree(all, status);
    }
    if (fd >= 0) close(fd);
    if (status) dt__shared_free(out);
    return status;
}

void dt__shared_fill(const struct dt__shared *shared, const void *begin, size_t bytes)
{
#ifndef MADV_COLLAPSE
    enum { MADV_COLLAPSE = 25 }; /* since Linux 6.1 */
#endif
    unsigned char *at = (unsigned char *)(uintptr_t)begin;
    const size_t skip = -(uintptr_t)at % HUGE_PAGE;
    if (shared->own || bytes < skip + LARGE) return;
    at += skip;
    bytes = (bytes - skip) / HUGE_PAGE * HUGE_PAGE;
    for (size_t i = 0; i < bytes; i += HUGE_PAGE)
        at[i] = 0;                     /* the kernel does not collapse pages that do not exist */
    madvise(at, bytes, MADV_COLLAPSE); /* a hint; may fail */
}

void dt__shared_free(struct dt__shared *shared)
{
    if (shared->memory && !shared->own) munmap(shared->memory, shared->bytes);
    dt_free(shared->own);
    *shared = (struct dt__shared){.memory = NULL};
}

dt_status dt__world_share(struct dt_world *world, size_t bytes, const char *what,
                          struct dt__shared **out, bool *out_first)
{
    const struct dt__shm shm = {.used = bytes};
    struct dt__shared *shared;
    *out = NULL;
    *out_first = world->inside->host_rank == 0;
    if (!bytes) return dt__ranks_agree(world->all, DT_OK);
    dt_status status = dt__alloc(1, sizeof *shared, what, &shared);
    DT_TRY(dt__ranks_agree(world->all, status));
    status = dt__shared_create(world->inside->host, &shm, what, world->all, shared);
    if (status) {
        dt_free(shared);
        return status;
    }
    if (*out_first) dt__shared_fill(shared, shared->memory, bytes);
    *out = shared;
    return DT_OK;
}

void *dt__shared_memory(const struct dt__shared *shared)
{
    return shared ? shared->memory : NULL;
}

void dt__world_unshare(struct dt__shared *shared)
{
    if (shared) dt__shared_free(shared);
    dt_free(shared);
}

/* ---- event counts --------------------------------------------------------------------------- */

/* Pauses before a waiter sleeps: about 20 us, which is longer than a futex takes to wake, and
 * shorter than a step. */
enum { SPIN_PAUSES = 600 };
static const double EXCHANGE_SECS = 0.1; /* interval at which a sleeping waiter exchanges messages
                                          * between hosts */

bool dt__event_reached(struct dt__event_count *event, uint32_t target)
{
    return (int32_t)(atomic_load_explicit(&event->count, memory_order_acquire) - target) >= 0;
}

uint32_t dt__event_post(struct dt__event_count *event, uint32_t n)
{
    uint32_t count = atomic_fetch_add(&event->count, n) + n;
    if (atomic_load(&event->sleepers))
        syscall(SYS_futex, &event->count, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    return count;
}

bool dt__event_wait_for(struct dt__event_count *event, uint32_t target, double secs)
{
    struct timespec span = {.tv_sec = (time_t)secs,
                            .tv_nsec = (long)((secs - (double)(time_t)secs) * 1e9)};
    atomic_fetch_add(&event->sleepers, 1);
    uint32_t seen = atomic_load(&event->count);
    if ((int32_t)(seen - target) < 0)
        syscall(SYS_futex, &event->count, FUTEX_WAIT, seen, &span, NULL, 0);
    atomic_fetch_sub(&event->sleepers, 1);
    return dt__event_reached(event, target);
}

void dt__event_wait(struct dt__event_count *event, uint32_t target, struct dt_world *world,
                    const char *what)
{
    if (dt__event_reached(event, target)) return;
    for (int i = 0; world->inside->spin && i < SPIN_PAUSES; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        if (dt__event_reached(event, target)) return;
    }
    dt__watchdog_wait(world, what);
    while (!dt__event_wait_for(event, target, EXCHANGE_SECS))
        dt__heartbeat_exchange(world);
    dt__watchdog_progress(world);
}
