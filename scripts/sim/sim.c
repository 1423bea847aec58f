/* The simulator's side of sim.h: what the program asks of the system and of MPI, on a cluster that
 * SimGrid simulates.
 *
 * All ranks are contexts of one thread, of which one runs at a time; each has a copy of the
 * program's variables, and of those here. Threads of the program's own keep real time. Computing
 * takes no simulated time but what is told by the environment:
 *   SIM_FLOPS   a worker's multiply-adds a second: layers take their share of simulated time
 *   SIM_ROWS    a worker's rows a step, for that
 *   SIM_FOLD    bytes: memory blocks of so many and more lie on the same pages, and gradients are
 *               not computed. For clusters that one machine cannot hold: times are right, values
 *               are not
 *   SIM_BUCKETS for that, the network's layers with weights
 *   SIM_JITTER  seconds: each layer takes up to so many more, drawn by SIM_SEED and the rank
 *   SIM_BLOCK   1: ranks that wait sleep until a message comes. Where workers share a host they
 *               wait for each other too, and have to look again and again */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <smpi/smpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>

#include "comm/exchange.h"
#include "dtrain/model.h"

#undef clock_gettime
#undef nanosleep
#undef syscall
#undef exit
#undef aligned_alloc
#undef free
#undef MPI_Init_thread
#undef MPI_Send_init
#undef MPI_Recv_init
#undef MPI_Start
#undef MPI_Request_free
#undef MPI_Test
#undef MPI_Testsome
#undef MPI_Iallreduce
#undef MPI_Ireduce
#undef MPI_Ibcast
#undef MPI_Ibarrier

static bool is_rank(void)
{
    return syscall(SYS_gettid) == getpid();
}

static double setting(const char *name)
{
    const char *text = getenv(name);
    return text ? strtod(text, NULL) : 0;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* What is known of requests, by where they stand. SMPI's MPI_Testsome reports persistent ones that
 * were never started, and its MPI_Testany never reports small sends. */
enum state { NONE, IDLE, STARTED, ENDED };
struct known {
    MPI_Request *request;
    enum state state;
    unsigned awaited; /* at which sleep it was last awaited */
};
static struct known *known;
static size_t room, used;

static struct known *known_of(const MPI_Request *request)
{
    size_t at = (uintptr_t)request * UINT64_C(0x9E3779B97F4A7C15) >> 20 & (room - 1);
    while (known[at].request && known[at].request != request)
        at = (at + 1) & (room - 1);
    return &known[at];
}

static enum state state_of(const MPI_Request *request)
{
    return room ? known_of(request)->state : NONE;
}

static void set_state(MPI_Request *request, enum state state)
{
    if (2 * used >= room) {
        const size_t before = room;
        struct known *old = known;
        room = room ? 2 * room : 1024;
        known = calloc(room, sizeof *known);
        for (size_t i = 0; i < before; i++)
            if (old[i].request) *known_of(old[i].request) = old[i];
        free(old);
    }
    struct known *at = known_of(request);
    used += !at->request;
    at->request = request;
    at->state = state;
}

static bool blocks; /* SIM_BLOCK */

/* Requests that were looked at in vain since this rank last slept or got on, each once; how many
 * times it looked. */
static struct awaited {
    MPI_Request **request;
    size_t count, room;
    unsigned sleep;
    int looks;
} awaited = {.sleep = 1};

static void await(MPI_Request *request)
{
    if (state_of(request) == NONE) set_state(request, NONE); /* it has a place */
    struct known *at = known_of(request);
    if (at->awaited == awaited.sleep) return;
    at->awaited = awaited.sleep;
    if (awaited.count == awaited.room) {
        awaited.room = awaited.room ? 2 * awaited.room : 64;
        awaited.request = realloc(awaited.request, awaited.room * sizeof(MPI_Request *));
    }
    awaited.request[awaited.count++] = request;
}

static void await_nothing(void)
{
    awaited.count = 0;
    awaited.looks = 0;
    awaited.sleep++;
}

/* A rank that has looked in vain sleeps until one of what it awaits has ended. SMPI's MPI_Waitany
 * does so for messages alone: while a collective is under way, the rank naps. */
static void sleep_until_message(double secs)
{
    const size_t count = awaited.count;
    size_t persistent = 0;
    for (size_t i = 0; i < count; i++)
        persistent += state_of(awaited.request[i]) != NONE;
    await_nothing();
    if (!count || !blocks || persistent < count) {
        sg_actor_sleep_for(secs);
        return;
    }
    MPI_Request *all = calloc(count, sizeof(MPI_Request));
    int ended;
    for (size_t i = 0; i < count; i++)
        all[i] = *awaited.request[i];
    MPI_Waitany((int)count, all, &ended, MPI_STATUS_IGNORE);
    if (ended != MPI_UNDEFINED) {
        *awaited.request[ended] = all[ended];
        set_state(awaited.request[ended], ENDED);
    }
    free(all);
}

/* Whether a request has ended; it is awaited if not. */
static int look(MPI_Request *request, int *done)
{
    const enum state state = state_of(request);
    *done = state == ENDED || *request == MPI_REQUEST_NULL;
    if (!*done) {
        const int code = MPI_Test(request, done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) return code;
    }
    if (!*done)
        await(request);
    else if (state != NONE)
        set_state(request, *request == MPI_REQUEST_NULL ? NONE : IDLE);
    return MPI_SUCCESS;
}

static bool busy; /* the rank computes, and looks by the way */

/* The program looks some hundred times before it sleeps: here the second time does. */
static void looked(bool in_vain)
{
    static const double NAP_SECS = 20e-6;
    if (!in_vain)
        await_nothing();
    else if (!busy && ++awaited.looks > 1)
        sleep_until_message(NAP_SECS);
}

/* The status of nothing is asked for by who calls these. */
int sim_test(MPI_Request *request, int *done, MPI_Status *status)
{
    (void)status;
    const int code = look(request, done);
    looked(!*done);
    return code;
}

int sim_testsome(int count, MPI_Request *request, int *ended, int *index, MPI_Status *status)
{
    int open = 0, done, code = MPI_SUCCESS;
    (void)status;
    *ended = 0;
    for (int i = 0; i < count && code == MPI_SUCCESS; i++) {
        const enum state state = state_of(&request[i]);
        if (state == IDLE || (request[i] == MPI_REQUEST_NULL && state != ENDED)) continue;
        open++;
        code = look(&request[i], &done);
        if (done) index[(*ended)++] = i;
    }
    if (!open) *ended = MPI_UNDEFINED;
    if (open) looked(!*ended);
    return code;
}

int sim_send_init(const void *bytes, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    set_state(request, IDLE);
    return MPI_Send_init(bytes, count, type, rank, tag, comm, request);
}

int sim_recv_init(void *bytes, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    set_state(request, IDLE);
    return MPI_Recv_init(bytes, count, type, rank, tag, comm, request);
}

int sim_start(MPI_Request *request)
{
    set_state(request, STARTED);
    return MPI_Start(request);
}

int sim_request_free(MPI_Request *request)
{
    set_state(request, NONE);
    return MPI_Request_free(request);
}

/* SMPI's collectives that do not block never end where a rank is alone. */
static bool is_alone(MPI_Comm comm, MPI_Request *request)
{
    int size;
    MPI_Comm_size(comm, &size);
    if (size == 1) *request = MPI_REQUEST_NULL;
    return size == 1;
}

int sim_iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    return is_alone(comm, request) ? MPI_Allreduce(from, to, count, type, op, comm)
                                   : MPI_Iallreduce(from, to, count, type, op, comm, request);
}

int sim_ireduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request *request)
{
    return is_alone(comm, request) ? MPI_Reduce(from, to, count, type, op, root, comm)
                                   : MPI_Ireduce(from, to, count, type, op, root, comm, request);
}

int sim_ibcast(void *bytes, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request)
{
    return is_alone(comm, request) ? MPI_SUCCESS
                                   : MPI_Ibcast(bytes, count, type, root, comm, request);
}

int sim_ibarrier(MPI_Comm comm, MPI_Request *request)
{
    return is_alone(comm, request) ? MPI_SUCCESS : MPI_Ibarrier(comm, request);
}

/* SMPI gives level 0; threads that do not call it do no harm. */
int sim_init_thread(int *argc, char ***argv, int required, int *provided)
{
    *provided = required;
    blocks = setting("SIM_BLOCK") > 0;
    return MPI_Init(argc, argv);
}

/* ---- time ----------------------------------------------------------------------------------- */

static double secs_of(const struct timespec *time)
{
    return (double)time->tv_sec + 1e-9 * (double)time->tv_nsec;
}

int sim_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (!is_rank() || clock == CLOCK_PROCESS_CPUTIME_ID) return clock_gettime(clock, out);
    const double now = 1e6 + simgrid_get_clock(); /* no clock is at 0 */
    *out = (struct timespec){(time_t)now, (long)((now - (double)(time_t)now) * 1e9)};
    return 0;
}

int sim_nanosleep(const struct timespec *span, struct timespec *left)
{
    if (!is_rank()) return nanosleep(span, left);
    sleep_until_message(secs_of(span));
    return 0;
}

/* Who waits for another rank of its host lets it run. */
long sim_futex(long number, void *address, int operation, ...)
{
    static const double NAP_SECS = 20e-6;
    va_list rest;
    va_start(rest, operation);
    const uint32_t value = va_arg(rest, uint32_t);
    const struct timespec *span = va_arg(rest, const struct timespec *);
    va_end(rest);
    if (!is_rank()) return syscall(number, address, operation, value, span, NULL, 0);
    if (operation != FUTEX_WAIT) return 0;
    const double end = simgrid_get_clock() + secs_of(span);
    while (__atomic_load_n((uint32_t *)address, __ATOMIC_SEQ_CST) == value &&
           simgrid_get_clock() < end)
        sg_actor_sleep_for(NAP_SECS);
    return 0;
}

void sim_exit(int code)
{
    smpi_exit(code);
    abort();
}

/* ---- computing ------------------------------------------------------------------------------ */

void __real_dt_exchange_need(struct dt_exchange *x, int bucket);
void __wrap_dt_exchange_need(struct dt_exchange *x, int bucket);
void __real_dt_exchange_ready(struct dt_exchange *x, int bucket);
void __wrap_dt_exchange_ready(struct dt_exchange *x, int bucket);
void __real_dt_exchange_advance(struct dt_exchange *x);
void __wrap_dt_exchange_advance(struct dt_exchange *x);
dt_status __real_dt_network_gradient(struct dt_network *network, const float *params,
                                     const struct dt_batch *batch, const struct dt_rng *dropout,
                                     bool accumulate, struct dt_slot slot, double *out_loss,
                                     const struct dt_network_hooks *hooks);
dt_status __wrap_dt_network_gradient(struct dt_network *network, const float *params,
                                     const struct dt_batch *batch, const struct dt_rng *dropout,
                                     bool accumulate, struct dt_slot slot, double *out_loss,
                                     const struct dt_network_hooks *hooks);

/* So many products of a layer's matrix with the rows of a worker. */
static void compute(const struct dt_exchange *x, int bucket, int products)
{
    const struct dt__floats at = x->bucket[bucket].at;
    const double rate = setting("SIM_FLOPS"), rows = setting("SIM_ROWS");
    static struct dt_rng late;
    static uint64_t draws;
    double secs = rate > 0 ? products * rows * (double)(at.end - at.begin) / rate : 0;
    if (!draws)
        late = dt_rng_make((uint64_t)setting("SIM_SEED"), DT_STREAM_DROPOUT, (uint64_t)x->world->rank, 0);
    secs += setting("SIM_JITTER") * dt_rng_uniform(&late, draws++);
    await_nothing();
    if (secs > 0) sg_actor_sleep_for(secs);
}

void __wrap_dt_exchange_need(struct dt_exchange *x, int bucket)
{
    __real_dt_exchange_need(x, bucket);
    compute(x, bucket, 1);
}

void __wrap_dt_exchange_ready(struct dt_exchange *x, int bucket)
{
    compute(x, bucket, bucket > 0 ? 2 : 1);
    busy = true;
    __real_dt_exchange_ready(x, bucket);
    busy = false;
}

void __wrap_dt_exchange_advance(struct dt_exchange *x)
{
    busy = true;
    __real_dt_exchange_advance(x);
    busy = false;
}

dt_status __wrap_dt_network_gradient(struct dt_network *network, const float *params,
                                     const struct dt_batch *batch, const struct dt_rng *dropout,
                                     bool accumulate, struct dt_slot slot, double *out_loss,
                                     const struct dt_network_hooks *hooks)
{
    if (!setting("SIM_FOLD"))
        return __real_dt_network_gradient(network, params, batch, dropout, accumulate, slot,
                                          out_loss, hooks);
    *out_loss = 0;
    const int buckets = (int)setting("SIM_BUCKETS");
    for (int b = 0; b < buckets && hooks && hooks->before_forward; b++)
        hooks->before_forward(hooks->arg, b);
    for (int b = buckets - 1; b >= 0 && hooks && hooks->after_backward; b--)
        hooks->after_backward(hooks->arg, b);
    return DT_OK;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* The first bytes of a block are its own: what ranks share begins with counters. */
enum { FOLD_BYTES = 16 << 20, OWN_BYTES = 256 << 10, MOST_FOLDED = 256 };
static struct folded {
    void *memory;
    size_t bytes;
} folded[MOST_FOLDED];

void *sim_aligned_alloc(size_t alignment, size_t bytes)
{
    const double fold = setting("SIM_FOLD");
    int i = 0;
    if (!(fold > 0) || (double)bytes < fold || !is_rank()) return aligned_alloc(alignment, bytes);
    while (i < MOST_FOLDED && folded[i].memory)
        i++;
    static int fd = -1;
    if (fd < 0) fd = memfd_create("dtrain-sim", 0);
    unsigned char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (i == MOST_FOLDED || at == MAP_FAILED || fd < 0 || ftruncate(fd, FOLD_BYTES)) abort();
    for (size_t begin = OWN_BYTES; begin < bytes; begin += FOLD_BYTES) {
        const size_t length = bytes - begin < FOLD_BYTES ? bytes - begin : FOLD_BYTES;
        if (mmap(at + begin, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
            MAP_FAILED)
            abort();
    }
    folded[i] = (struct folded){at, bytes};
    return at;
}

void sim_free(void *memory)
{
    for (int i = 0; memory && i < MOST_FOLDED; i++) {
        if (folded[i].memory != memory) continue;
        munmap(memory, folded[i].bytes);
        folded[i].memory = NULL;
        return;
    }
    free(memory);
}
