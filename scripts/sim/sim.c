/* The simulator's side of sim.h: replaces the system and MPI calls of the program, on a cluster
 * that SimGrid simulates.
 *
 * All ranks are contexts of one thread, and one context runs at a time; each has a copy of the
 * program's variables, and of the variables here. Other threads of the program keep real time.
 * Computing takes no simulated time unless the environment sets it:
 *   SIM_FLOPS   a worker's multiply-adds per second: layers take their share of simulated time
 *   SIM_ROWS    a worker's rows per step, for that
 *   SIM_FOLD    bytes: memory blocks of at least this size share the same pages, gradients are not
 *               computed, the optimizer's state is not moved, and nothing is saved. For
 *               clusters that one machine cannot hold: times are right, values are not
 *   SIM_BUCKETS for that, the network's layers with weights
 *   SIM_JITTER  seconds: each layer takes up to this much longer, drawn by SIM_SEED and the rank
 *   SIM_MESSAGE seconds of a processor to send or to receive one message
 *   SIM_BYTE    the same for each byte
 *   SIM_CORES   1: all processor time is spent on the one host "cores", whose cores the ranks
 *               share, as namespaces on one machine do. Else each rank has a processor
 *   SIM_BLOCK   1: waiting ranks sleep until a message arrives. Workers that share a host also
 *               wait for each other, and must poll; in async they serve */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/exec.h>
#include <simgrid/host.h>
#include <smpi/smpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>

#include "comm/exchange.h"
#include "links.h"
#include "model/model.h"
#include "train/bank.h"

#undef clock_gettime
#undef nanosleep
#undef syscall
#undef exit
#undef aligned_alloc
#undef free
#undef MPI_Init_thread
#undef MPI_Test
#undef MPI_Testall
#undef MPI_Testsome
#undef MPI_Iallreduce
#undef MPI_Ireduce
#undef MPI_Ibcast
#undef MPI_Ibarrier

static bool is_rank(void)
{
    return syscall(SYS_gettid) == getpid();
}

static bool blocks;     /* SIM_BLOCK */
static sg_host_t cores; /* SIM_CORES; else NULL */

static double setting(const char *name)
{
    const char *text = getenv(name);
    return text ? strtod(text, NULL) : 0;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Messages of the exchange are ours: they go over the links of links.h. (SMPI keeps each that was
 * tested in a list, which each wait walks.) */
static int rank;

static struct message *message_of(MPI_Request request)
{
    const uintptr_t bits = (uintptr_t)request;
    return bits & 1 ? (struct message *)(bits - 1) : NULL;
}

static double message_secs, byte_secs; /* SIM_MESSAGE, SIM_BYTE */
static double debt; /* seconds that messages took of the processor, and that are not yet slept */
static bool ours, others;       /* such requests, or SMPI's, were looked at in vain */
static const MPI_Request *last; /* SMPI's request that was checked last, if no other was since */
static int looks;               /* in vain */

static void owe(const struct message *message)
{
    debt += message_secs + byte_secs * (double)message->length;
}

/* Occupies a processor for this many seconds; with more ranks than cores it takes longer. */
static void take_processor(double secs)
{
    if (!(secs > 0)) return;
    if (!cores) {
        sg_actor_sleep_for(secs);
        return;
    }
    sg_exec_t exec = sg_actor_exec_init(secs * sg_host_get_speed(cores));
    sg_exec_set_host(exec, cores);
    sg_exec_wait(exec);
}

static void pay_debt(void)
{
    const double secs = debt;
    debt = 0;
    take_processor(secs);
}

static void look_again(void)
{
    looks = 0;
    ours = others = false;
    last = NULL;
}

/* A rank that also waits for other requests than ours polls. */
static void sleep_until_message(double secs)
{
    const bool until = blocks && ours && !others;
    look_again();
    pay_debt();
    links_sleep(rank, until ? -1 : secs);
}

static bool busy; /* the rank computes, and looks by the way */

/* The program looks some hundred times before it sleeps: here it sleeps as soon as it has looked at
 * all that it waits for. */
static void looked(bool in_vain)
{
    enum { MOST_LOOKS = 6 }; /* of one turn of a loop that waits */
    static const double NAP_SECS = 20e-6;
    if (!in_vain)
        looks = 0;
    else if (!busy && ++looks > MOST_LOOKS)
        sleep_until_message(NAP_SECS);
}

/* The callers ignore the status of MPI_REQUEST_NULL. A rank that checks one of SMPI's requests
 * twice, and nothing else, waits only for it: SMPI does that without naps, which take the time of a
 * message each. */
int sim_test(MPI_Request *request, int *done, MPI_Status *status)
{
    (void)status;
    *done = *request == MPI_REQUEST_NULL;
    int code = *done ? MPI_SUCCESS : MPI_Test(request, done, MPI_STATUS_IGNORE);
    if (!*done && blocks && !busy && last == request) {
        pay_debt();
        code = MPI_Wait(request, MPI_STATUS_IGNORE);
        *done = true;
    }
    last = *done ? NULL : request;
    others |= !*done;
    looked(!*done);
    return code;
}

/* The program goes on with other work between two of these. */
int sim_testall(int count, MPI_Request *request, int *done, MPI_Status *status)
{
    const int code = MPI_Testall(count, request, done, status);
    last = NULL;
    others |= !*done;
    return code;
}

static bool message_ended(struct message *message)
{
    if (!message->ended) return false;
    if (!message->is_send) owe(message);
    free(message);
    return true;
}

int sim_testsome(int count, MPI_Request *request, int *ended, int *index, MPI_Status *status)
{
    int done, code = MPI_SUCCESS;
    bool own = false, other = false; /* are still open */
    (void)status;
    *ended = 0;
    last = NULL;
    for (int i = 0; i < count && code == MPI_SUCCESS; i++) {
        struct message *message = message_of(request[i]);
        if (message) {
            done = message_ended(message);
            if (done) request[i] = MPI_REQUEST_NULL;
            own |= !done;
        } else {
            code = MPI_Test(&request[i], &done, MPI_STATUS_IGNORE);
            other |= !done;
        }
        if (done) index[(*ended)++] = i;
    }
    ours |= own && !*ended;
    others |= other && !*ended;
    looked(!*ended);
    return code;
}

void __wrap_dt__message_begin(struct dt__requests *requests, int *left, const void *bytes,
                              size_t length, struct dt__envelope envelope);

void __wrap_dt__message_begin(struct dt__requests *requests, int *left, const void *bytes,
                              size_t length, struct dt__envelope envelope)
{
    MPI_Group here, all;
    int other, comm_size;
    if (!length) return;
    struct message *message = malloc(sizeof *message);
    if (!message) abort();
    MPI_Comm_size(requests->comm, &comm_size);
    MPI_Comm_group(requests->comm, &here);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_translate_ranks(here, 1, &envelope.rank, all, &other);
    MPI_Group_free(&all);
    MPI_Group_free(&here);
    *message = (struct message){.is_send = envelope.sends,
                                .from = envelope.sends ? rank : other,
                                .to = envelope.sends ? other : rank,
                                .tag = envelope.tag,
                                .comm = comm_size,
                                .bytes = (void *)(uintptr_t)bytes,
                                .length = length};
    *dt__request_add(requests, left) = (MPI_Request)((uintptr_t)message | 1);
    if (envelope.sends) owe(message);
    links_start(message);
}

/* SMPI's collectives that do not block never end where a rank is alone. */
static bool is_alone(MPI_Comm comm, MPI_Request *request)
{
    int size;
    MPI_Comm_size(comm, &size);
    if (size == 1) *request = MPI_REQUEST_NULL;
    return size == 1;
}

/* SMPI's own ones that do not block go from one to all, or from each to each. Who agrees, or waits for
 * bytes or a barrier, has nothing else to do, and may as well block. */
int sim_iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
    if (!is_alone(comm, request) && (!blocks || from != MPI_IN_PLACE)) /* within a step: the norm */
        return MPI_Iallreduce(from, to, count, type, op, comm, request);
    *request = MPI_REQUEST_NULL;
    return MPI_Allreduce(from, to, count, type, op, comm);
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
    enum { CHUNK = 1 << 20 }; /* SMPI's time goes with the square of a broadcast's length */
    if (is_alone(comm, request)) return MPI_SUCCESS;
    if (!blocks || type != MPI_BYTE) /* within a step: weights */
        return MPI_Ibcast(bytes, count, type, root, comm, request);
    *request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;
    for (int begin = 0; begin < count && code == MPI_SUCCESS; begin += CHUNK)
        code = MPI_Bcast((char *)bytes + begin, count - begin < CHUNK ? count - begin : CHUNK, type,
                         root, comm);
    return code;
}

int sim_ibarrier(MPI_Comm comm, MPI_Request *request)
{
    if (is_alone(comm, request)) return MPI_SUCCESS;
    if (!blocks) return MPI_Ibarrier(comm, request);
    *request = MPI_REQUEST_NULL;
    return MPI_Barrier(comm);
}

/* SMPI gives level 0; threads that do not call it do no harm. */
int sim_init_thread(int *argc, char ***argv, int required, int *provided)
{
    *provided = required;
    blocks = setting("SIM_BLOCK") > 0;
    message_secs = setting("SIM_MESSAGE");
    byte_secs = setting("SIM_BYTE");
    if (setting("SIM_CORES") > 0) cores = sg_host_by_name("cores");
    const int code = MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    links_join(rank);
    return code;
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
    static const double LONG_SECS = 1e-3; /* no wait for a message has such naps */
    if (!is_rank()) return nanosleep(span, left);
    if (secs_of(span) < LONG_SECS)
        sleep_until_message(secs_of(span));
    else
        sg_actor_sleep_for(secs_of(span));
    return 0;
}

long sim_futex(long number, void *address, int operation, ...)
{
    va_list rest;
    va_start(rest, operation);
    const uint32_t value = va_arg(rest, uint32_t);
    const struct timespec *span = va_arg(rest, const struct timespec *);
    va_end(rest);
    if (!is_rank()) return syscall(number, address, operation, value, span, NULL, 0);
    if (operation != FUTEX_WAIT)
        links_wake_here(rank);
    else if (__atomic_load_n((uint32_t *)address, __ATOMIC_SEQ_CST) == value)
        links_wait_here(rank, secs_of(span));
    return 0;
}

void sim_exit(int code)
{
    smpi_exit(code);
    abort();
}

/* ---- computing ------------------------------------------------------------------------------ */

void __real_dt__exchange_need(struct dt_exchange *x, int bucket);
void __wrap_dt__exchange_need(struct dt_exchange *x, int bucket);
void __real_dt__exchange_ready(struct dt_exchange *x, int bucket);
void __wrap_dt__exchange_ready(struct dt_exchange *x, int bucket);
bool __real_dt__exchange_advance(struct dt_exchange *x);
bool __wrap_dt__exchange_advance(struct dt_exchange *x);
dt_status __real_dt__network_gradient(struct dt_network *network, const float *params,
                                      const struct dt_batch *batch, const struct dt_rng *dropout,
                                      bool accumulate, struct dt_slot slot, double *out_loss,
                                      const struct dt_network_hooks *hooks);
dt_status __wrap_dt__network_gradient(struct dt_network *network, const float *params,
                                      const struct dt_batch *batch, const struct dt_rng *dropout,
                                      bool accumulate, struct dt_slot slot, double *out_loss,
                                      const struct dt_network_hooks *hooks);

/* Simulates this many products of a layer's matrix with a worker's rows. */
static void compute(const struct dt_exchange *x, int bucket, int products)
{
    const struct dt__floats at = x->layout->bucket[bucket].at;
    const double rate = setting("SIM_FLOPS"), rows = setting("SIM_ROWS");
    static struct dt_rng late;
    static uint64_t draws;
    double secs = rate > 0 ? products * rows * (double)(at.end - at.begin) / rate : 0;
    if (!draws)
        late = dt__rng_make((uint64_t)setting("SIM_SEED"), DT_STREAM_DROPOUT,
                            (uint64_t)x->world->rank, 0);
    secs += setting("SIM_JITTER") * dt__rng_uniform(&late, draws++);
    look_again();
    pay_debt();
    take_processor(secs);
}

void __wrap_dt__exchange_need(struct dt_exchange *x, int bucket)
{
    __real_dt__exchange_need(x, bucket);
    compute(x, bucket, 1);
}

void __wrap_dt__exchange_ready(struct dt_exchange *x, int bucket)
{
    compute(x, bucket, bucket > 0 ? 2 : 1);
    busy = true;
    __real_dt__exchange_ready(x, bucket);
    busy = false;
}

bool __wrap_dt__exchange_advance(struct dt_exchange *x)
{
    busy = true;
    const bool moved = __real_dt__exchange_advance(x);
    busy = false;
    return moved;
}

dt_status __wrap_dt__network_gradient(struct dt_network *network, const float *params,
                                      const struct dt_batch *batch, const struct dt_rng *dropout,
                                      bool accumulate, struct dt_slot slot, double *out_loss,
                                      const struct dt_network_hooks *hooks)
{
    if (!setting("SIM_FOLD"))
        return __real_dt__network_gradient(network, params, batch, dropout, accumulate, slot,
                                           out_loss, hooks);
    *out_loss = 0;
    const int buckets = (int)setting("SIM_BUCKETS");
    for (int b = 0; b < buckets && hooks && hooks->before_forward; b++)
        hooks->before_forward(hooks->arg, b);
    for (int b = buckets - 1; b >= 0 && hooks && hooks->after_backward; b--)
        hooks->after_backward(hooks->arg, b);
    return DT_OK;
}

void __real_dt__ranks_move(const struct dt_ranks *ranks, int from, bool to_first, float *own,
                           float *first, size_t n);
void __wrap_dt__ranks_move(const struct dt_ranks *ranks, int from, bool to_first, float *own,
                           float *first, size_t n);

/* Moves the state of owners and errors, before the first step and after the last. */
void __wrap_dt__ranks_move(const struct dt_ranks *ranks, int from, bool to_first, float *own,
                           float *first, size_t n)
{
    if (!setting("SIM_FOLD")) __real_dt__ranks_move(ranks, from, to_first, own, first, n);
}

dt_status __real_dt__save(struct dt_bank *bank, bool at_end);
dt_status __wrap_dt__save(struct dt_bank *bank, bool at_end);

dt_status __wrap_dt__save(struct dt_bank *bank, bool at_end)
{
    return setting("SIM_FOLD") ? DT_OK : __real_dt__save(bank, at_end);
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
