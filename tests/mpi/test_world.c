/* Starts that fail on one rank, and worlds in a job of another program's MPI.
 *
 *   test_world             the Nth allocation or thread of rank 1 fails, for every N, in the start
 *                          of a world, an exchange and an async exchange: all ranks get the same
 *                          error, and none waits forever; a spec beyond its bounds; a gather
 *                          beyond 2 GiB
 *   test_world hang SECS   rank 1 hangs in the start: the watchdog ends the job
 *   test_world killed      rank 1 is killed: a surviving rank names it
 *   test_world stopped     rank 0 is stopped before its watchdog has looked once
 *   test_world part        hosts leave one after the other: the bank still gets their last messages
 *   test_world single      an MPI without thread support: one error
 *   test_world stays       rank 1 is stopped before it ends MPI: the others exit with their code
 *   test_world refused     the same after a start that failed
 *   test_world late        rank 1 appears late in its host's table: no rank takes that for a stall
 *
 * Fails if a rank ends before the others know of its error, if the watchdog does not cover a start
 * or an end, or if a count does not fit an int. */
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/limits.h"
#include "comm/async.h"
#include "comm/comm.h"
#include "mpi/expect.h"

static int rank, size;

/* ---- faults --------------------------------------------------------------------------------- */

static int countdown; /* the call that fails, counted from 1; 0: none */
static bool fails_now(void)
{
    return countdown > 0 && --countdown == 0;
}

void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails_now() ? NULL : __real_aligned_alloc(alignment, bytes);
}

typedef void *thread_fn(void *);
int __real_pthread_create(pthread_t *out, const pthread_attr_t *attributes, thread_fn *fn,
                          void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes, thread_fn *fn,
                          void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes, thread_fn *fn,
                          void *arg)
{
    return fails_now() ? EAGAIN : __real_pthread_create(out, attributes, fn, arg);
}

static double hang_secs;
int __real_sched_getaffinity(pid_t pid, size_t bytes, void *set);
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, void *set);
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, void *set)
{
    if (hang_secs > 0) dt__sleep_secs(hang_secs);
    return __real_sched_getaffinity(pid, bytes, set);
}

static pthread_t late_thread; /* a thread whose reads of the clock are slow */
static bool is_late;
int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (is_late && pthread_equal(pthread_self(), late_thread)) dt__sleep_secs(0.25);
    return __real_clock_gettime(clock, out);
}

/* ---- starts that fail ----------------------------------------------------------------------- */

struct started {
    struct dt_world *world;
    struct dt_exchange *exchange;
    struct dt_async *async;
};

static dt_status start_world(struct started *started)
{
    const MPI_Comm comm = MPI_COMM_WORLD;
    return dt_world_attach(&comm, 60, &started->world);
}

static void update(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                   const float *grad, float *const *vectors, float *out)
{
    (void)arg, (void)info, (void)offset, (void)n, (void)grad, (void)vectors, (void)out;
}

static struct dt_exchange_times times; /* not read here */
static const size_t bucket_end[] = {1000, 5000};
static struct dt_exchange_spec exchange_spec(int kind)
{
    return (struct dt_exchange_spec){.kind = kind,
                                     .params = 5000,
                                     .times = &times,
                                     .buckets = 2,
                                     .bucket_end = bucket_end,
                                     .replicas = 3,
                                     .vectors = 2,
                                     .update = update};
}

static dt_status start_node(struct started *started)
{
    struct dt_exchange_spec spec = exchange_spec(DT_EXCHANGE_NODE);
    return dt__exchange_create(started->world, &spec, &started->exchange);
}
static dt_status start_reduce(struct started *started)
{
    struct dt_exchange_spec spec = exchange_spec(DT_EXCHANGE_REDUCE);
    return dt__exchange_create(started->world, &spec, &started->exchange);
}

static const bool active[] = {true, true, true, true};
static dt_status start_async(struct started *started, int memory)
{
    struct dt_async_spec spec = {
        .params = 5000, .states = 1, .staleness = -1, .active = active, .memory = memory};
    return dt__async_create(started->world, &spec, &started->async);
}
static dt_status start_shared(struct started *started)
{
    return start_async(started, DT_ASYNC_SHARED);
}
static dt_status start_window(struct started *started)
{
    return start_async(started, DT_ASYNC_WINDOW);
}

/* Lets the Nth allocation or thread of rank 1 fail, for N from 1 up to the number that the start
 * needs. All ranks must fail alike, with rank 1 in the message. */
static void fail_every(const char *name, dt_status (*start)(struct started *),
                       struct started *started)
{
    for (int n = 1; n < 100; n++) {
        countdown = rank == 1 ? n : 0;
        dt_status status = start(started);
        int met = rank == 1 && countdown == 0, reached, least, most;
        countdown = 0;
        MPI_Allreduce(&met, &reached, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(&(int){(int)status}, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&(int){(int)status}, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        EXPECT(least == most, "%s, fault %d: status %d to %d", name, n, least, most);
        if (!reached) {
            EXPECT(!status, "%s: %s", name, dt_error_text());
            return;
        }
        EXPECT(status == DT_EMEMORY, "%s, fault %d: status %d", name, n, (int)status);
        EXPECT(strstr(dt_error_text(), "[rank 1 on "), "%s: %s", name, dt_error_text());
    }
    EXPECT(false, "%s: still fails at fault 99", name);
}

/* ---- bounds --------------------------------------------------------------------------------- */

static void refuse_specs(struct dt_world *world)
{
    struct dt_exchange *exchange;
    struct dt_exchange_spec spec = exchange_spec(DT_EXCHANGE_REDUCE);
    spec.vectors = DT_EXCHANGE_VECTORS + 1;
    EXPECT(dt__exchange_create(world, &spec, &exchange) == DT_EUSAGE,
           "too many vectors are accepted");
    spec = exchange_spec(DT_EXCHANGE_REDUCE);
    spec.replicas = DT_EXCHANGE_REPLICAS + 1;
    EXPECT(dt__exchange_create(world, &spec, &exchange) == DT_EUSAGE,
           "too many replicas are accepted");
    struct dt_async *async;
    struct dt_async_spec async_spec = {
        .params = 10, .states = DT_ASYNC_STATES + 1, .staleness = -1, .active = active};
    EXPECT(dt__async_create(world, &async_spec, &async) == DT_EUSAGE,
           "too many states are accepted");
}

/* ---- a gather beyond 2 GiB ------------------------------------------------------------------ */

static size_t gathered; /* bytes passed to MPI */
static bool fake_send;
int __real_MPI_Isend(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request);
int __wrap_MPI_Isend(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request);
int __wrap_MPI_Isend(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request)
{
    if (!fake_send) return __real_MPI_Isend(from, n, type, to, tag, comm, request);
    EXPECT(n > 0, "a count of %d", n);
    gathered += (size_t)n;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

static void gather(struct dt_world *world)
{
    const bool tiny = DT__MPI_CHUNK < 1 << 20;
    const size_t length = tiny ? 10 * (size_t)DT__MPI_CHUNK + 7 : ((size_t)1 << 32) + 12345;
    fake_send = true;
    if (rank) dt__ranks_gather(world->trainers, &length, length, NULL);
    EXPECT(gathered == (rank ? length : 0), "%zu of %zu bytes gathered", gathered, length);
    fake_send = false;
    uint64_t mine[3] = {(uint64_t)rank, 7, 11}, all[3 * 64] = {0};
    dt__ranks_gather(world->trainers, mine, sizeof mine, rank ? NULL : all);
    for (int r = 0; r < size && rank == 0; r++)
        EXPECT(all[3 * r] == (uint64_t)r && all[3 * r + 2] == 11, "row %d is wrong", r);
}

/* ---- jobs that end -------------------------------------------------------------------------- */

static void hang(double secs)
{
    struct dt_world *world;
    const MPI_Comm comm = MPI_COMM_WORLD;
    hang_secs = rank == 1 ? secs : 0;
    dt_world_attach(&comm, 1, &world);
}

static void lost(int victim, int sig)
{
    struct dt_world *world;
    const MPI_Comm comm = MPI_COMM_WORLD;
    if (dt_world_attach(&comm, 60, &world)) return;
    dt__world_watch(world, sig == SIGSTOP ? 2 : 60);
    if (rank == victim) kill(getpid(), sig);
    dt__world_heartbeat(world, "gradient", 17);
    dt__ranks_barrier(world->trainers);
}

static void show_late(void)
{
    struct dt_world *world;
    const MPI_Comm comm = MPI_COMM_WORLD;
    late_thread = pthread_self();
    is_late = rank == 1;
    const dt_status status = dt_world_attach(&comm, 60, &world);
    is_late = false;
    EXPECT(!status, "%s", dt_error_text());
    dt_world_destroy(world);
    MPI_Finalize();
}

/* Each rank acts as if on a separate host. */
static bool are_apart;
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out)
{
    if (are_apart) return PMPI_Comm_split(comm, rank, key, out);
    return PMPI_Comm_split_type(comm, type, key, info, out);
}

/* Hosts leave one after the other: their last messages arrive while the bank still works. */
static void part(void)
{
    struct dt_world *world;
    const MPI_Comm comm = MPI_COMM_WORLD;
    are_apart = true;
    const dt_status status = dt_world_attach(&comm, 60, &world);
    EXPECT(!status, "%s", dt_error_text());
    if (rank == 0) { /* a rank that has sent no heartbeat yet has no known phase */
        struct dt_rank_status other;
        dt__world_heartbeat(world, "the bank's own", 17);
        dt__world_watch(world, 60);
        dt__world_rank_status(world, 1, &other);
        EXPECT(other.known && strcmp(other.phase, "the bank's own") && other.idle_secs < 1,
               "'%s', %g s", other.phase, other.idle_secs);
        dt__world_rest(world, false);
    }
    for (int i = 0; i < 20 && rank == 0; i++) {
        dt__work_progress();
        dt__sleep_secs(0.1);
    }
    dt_world_destroy(world);
    MPI_Finalize();
}

static bool is_single;
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    const int code = PMPI_Init_thread(argc, argv, required, provided);
    if (is_single) *provided = MPI_THREAD_SINGLE;
    return code;
}

static void be_single(void)
{
    struct dt_world *world;
    is_single = true;
    EXPECT(dt_world_create(&world) == DT_ECOMM, "an MPI without threads is accepted");
    EXPECT(strstr(dt_error_text(), "lets a rank have no threads"), "%s", dt_error_text());
    dt__world_end(NULL, DT_OK);
}

/* A regular end has a time limit of a minute or more, which starts once all ranks have come to it.
 * The test does not wait that long. */
static _Atomic int *bank_has_come; /* NULL: the end need not wait for the bank */
unsigned __real_alarm(unsigned secs);
unsigned __wrap_alarm(unsigned secs);
unsigned __wrap_alarm(unsigned secs)
{
    EXPECT(is_single ? secs == 10 : secs >= 60, "a time limit of %u s for the end", secs);
    EXPECT(!bank_has_come || *bank_has_come, "the time limit starts while the bank is busy");
    if (failures) _exit(3);
    return __real_alarm(1);
}

static bool is_staying;
int MPI_Finalize(void)
{
    if (is_staying) kill(getpid(), SIGSTOP);
    return PMPI_Finalize();
}

static void stay(bool refused)
{
    struct dt_world *world = NULL;
    is_single = refused;
    const dt_status status = dt_world_create(&world);
    EXPECT(status == (refused ? DT_ECOMM : DT_OK), "%s", dt_error_text());
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    is_staying = rank == 1;
    if (world) {
        MPI_Win window;
        MPI_Aint bytes;
        int unit;
        dt__world_watch(world, 30);
        MPI_Win_allocate_shared(sizeof *bank_has_come, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                                &bank_has_come, &window);
        MPI_Win_shared_query(window, 0, &bytes, &unit, &bank_has_come);
        if (rank == 0) dt__sleep_secs(0.5);
        if (rank == 0) *bank_has_come = 1;
    }
    dt__world_end(world, refused ? DT_EUSAGE : DT_STOPPED);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "single") == 0) return be_single(), failures != 0;
    if (argc > 1 && strcmp(argv[1], "stays") == 0) return stay(false), 3;
    if (argc > 1 && strcmp(argv[1], "refused") == 0) return stay(true), 1;
    struct dt_world *early;
    const MPI_Comm comm = MPI_COMM_WORLD;
    EXPECT(dt_world_attach(&comm, 1, &early) == DT_EUSAGE, "accepted before MPI_Init");
    EXPECT(dt_world_attach_fortran(0, 1, &early) == DT_EUSAGE, "accepted before MPI_Init");
    MPI_Init(&argc, &argv);
    EXPECT(dt_world_create(&early) == DT_EUSAGE, "accepted after MPI_Init");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2) hang(strtod(argv[2], NULL));
    if (argc == 2 && strcmp(argv[1], "killed") == 0) lost(1, SIGKILL);
    if (argc == 2 && strcmp(argv[1], "stopped") == 0) lost(0, SIGSTOP);
    if (argc == 2 && strcmp(argv[1], "late") == 0) return show_late(), failures != 0;
    if (argc == 2 && strcmp(argv[1], "part") == 0) return part(), failures != 0;
    struct started started = {0};
    fail_every("world", start_world, &started);
    fail_every("node", start_node, &started);
    dt__exchange_destroy(started.exchange);
    fail_every("reduce", start_reduce, &started);
    dt__exchange_destroy(started.exchange);
    fail_every("shared", start_shared, &started);
    dt__async_destroy(started.async);
    fail_every("window", start_window, &started);
    dt__async_destroy(started.async);
    refuse_specs(started.world);
    gather(started.world);
    dt_world_destroy(started.world);
    int all = failures;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("test_world: %s\n", all ? "failed" : "passed");
    MPI_Finalize();
    EXPECT(dt_world_attach(&comm, 1, &early) == DT_EUSAGE, "accepted after MPI_Finalize");
    return all != 0 || failures != 0;
}
