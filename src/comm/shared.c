/* Memory that ranks of one host share, and event counts in it.
 *
 * The memory is an MPI shared-memory window that its first rank asks for as a whole. It lives in
 * /dev/shm, where a shortage that shows late is a SIGBUS, and a failure of one rank inside MPI can leave
 * the others waiting: so there is a look at the room first, and an agreement before and behind. */
#include "comm/shared.h"

#include <linux/futex.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "comm/world.h"

enum { CACHE_LINE = 64 };

dt_status dt__shared_room(size_t bytes, const char *what)
{
    struct statvfs fs;
    double have = 0;
    if (statvfs("/dev/shm", &fs) == 0) have = (double)fs.f_bavail * (double)fs.f_frsize;
    if (have > 1.02 * (double)bytes) return DT_OK;
    return dt_fail(DT_EMEMORY, "/dev/shm has %.0f MB free, the %s needs %.0f MB", have / 1e6, what,
                   (double)bytes / 1e6);
}

dt_status dt__shared_create(MPI_Comm comm, size_t bytes, const char *what, const struct dt_ranks *all,
                            struct dt__shared *out)
{
    int rank, size;
    DT_MPI(MPI_Comm_rank(comm, &rank));
    DT_MPI(MPI_Comm_size(comm, &size));
    *out = (struct dt__shared){.win = MPI_WIN_NULL};
    dt_status status = DT_OK;
    if (!dt_size_add(bytes, CACHE_LINE, &bytes))
        status = dt_fail(DT_EMEMORY, "the %s is beyond memory", what);
    else if (size == 1)
        status = dt_alloc(bytes, 1, what, &out->own);
    else if (rank == 0)
        status = dt__shared_room(bytes, what);
    status = dt_ranks_agree(all, status);
    if (!status) {
        void *base = out->own;
        MPI_Aint mine = rank ? 0 : (MPI_Aint)bytes;
        int unit, code = MPI_SUCCESS;
        if (size > 1)
            code = MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, comm, &base, &out->win);
        if (code != MPI_SUCCESS) {
            char text[MPI_MAX_ERROR_STRING];
            out->win = MPI_WIN_NULL;
            status =
                dt_fail(DT_ECOMM,
                        "MPI gives no memory that the ranks of a host share, for the %s (%s): let "
                        "Open MPI choose its osc component: OMPI_MCA_osc=^ucx",
                        what, dt__mpi_text(code, text));
        } else if (size > 1) {
            DT_MPI(MPI_Win_shared_query(out->win, 0, &mine, &unit, &base));
        }
        status = dt_ranks_agree(all, status);
        out->memory = (unsigned char *)base + -(uintptr_t)base % CACHE_LINE;
    }
    if (status) dt__shared_free(out);
    return status;
}

void dt__shared_free(struct dt__shared *shared)
{
    if (shared->win != MPI_WIN_NULL) DT_MPI(MPI_Win_free(&shared->win));
    dt_free(shared->own);
    *shared = (struct dt__shared){.win = MPI_WIN_NULL};
}

/* ---- event counts --------------------------------------------------------------------------- */

/* Pauses before a waiter sleeps: some 20 us, longer than a futex takes to wake, shorter than a step. */
enum { SPIN_PAUSES = 600 };
static const double EXCHANGE_SECS = 0.1; /* a sleeping waiter looks for messages this often */

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
