/* The heartbeat table of a host, and the messages by which hosts hear of each other: that they are there
 * and what they do, how long ago somebody of theirs made progress, and whether a stop was requested. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "comm/heartbeat.h"
#include "comm/world.h"

int64_t dt__now_us(void)
{
    return (int64_t)(dt_clock_secs() * 1e6);
}

/* ---- this rank ------------------------------------------------------------------------------ */

/* All relaxed: a look that comes a little late changes nothing. */
static void store_relaxed(_Atomic int64_t *place, int64_t value)
{
    atomic_store_explicit(place, value, memory_order_relaxed);
}

static void store_phase(struct dt__phase *phase, const char *text)
{
    uint64_t words[DT__PHASE_WORDS] = {0};
    strncpy((char *)words, text, sizeof words - 1);
    for (int i = 0; i < DT__PHASE_WORDS; i++)
        atomic_store_explicit(&phase->word[i], words[i], memory_order_relaxed);
}

static struct dt__heartbeat *own_heartbeat(const struct dt_world *world)
{
    return atomic_load_explicit(&world->watchdog.mine, memory_order_relaxed);
}

void dt_world_heartbeat(struct dt_world *world, const char *phase, uint64_t step)
{
    store_phase(&own_heartbeat(world)->phase, phase);
    atomic_store_explicit(&own_heartbeat(world)->step, step, memory_order_relaxed);
    dt__watchdog_progress(world);
    dt__heartbeat_exchange(world);
}

void dt__watchdog_progress(struct dt_world *world)
{
    store_relaxed(&own_heartbeat(world)->progress_us, dt__now_us());
    atomic_store_explicit(&own_heartbeat(world)->wait.word[0], 0, memory_order_relaxed);
}

void dt__watchdog_wait(struct dt_world *world, const char *what)
{
    store_phase(&own_heartbeat(world)->wait, what);
    store_relaxed(&own_heartbeat(world)->progress_us, dt__now_us());
}

void dt_world_show_wait(struct dt_world *world, double share)
{
    int permille = share >= 0 && share <= 1 ? 1 + (int)(1000 * share) : 0;
    atomic_store_explicit(&own_heartbeat(world)->wait_permille, permille, memory_order_relaxed);
}

void dt_world_show_samples(struct dt_world *world, uint64_t samples)
{
    atomic_store_explicit(&own_heartbeat(world)->samples, samples, memory_order_relaxed);
}

void dt_world_idle(struct dt_world *world, const char *what)
{
    store_phase(&own_heartbeat(world)->wait, what);
    dt__heartbeat_exchange(world);
}

void dt__watchdog_ask(struct dt_world *world)
{
    store_relaxed(&own_heartbeat(world)->asking_us, dt__now_us());
}

void dt__watchdog_answered(struct dt_world *world)
{
    store_relaxed(&own_heartbeat(world)->asking_us, 0);
}

/* ---- the table ------------------------------------------------------------------------------ */

void dt__heartbeat_table_use(struct dt_world *world, struct dt__heartbeat_table *table, int row)
{
    struct dt__heartbeat *heartbeat = &table->row[row];
    atomic_store(&world->watchdog.mine, heartbeat);
    heartbeat->rank = world->rank;
    atomic_store(&heartbeat->awake_us, dt__now_us()); /* it may be stopped before its first look */
    dt_world_heartbeat(world, "start-up", 0);
    atomic_store(&heartbeat->pid, (int)getpid());
    atomic_store(&world->watchdog.table, table);
}

/* The host's table; where MPI has no memory for it each rank keeps its own, on which the others never
 * show. */
void dt__heartbeat_table_share(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->watchdog;
    size_t bytes =
        sizeof *watchdog->alone + (size_t)world->host_size * sizeof watchdog->alone->row[0];
    if (dt__shared_create(world, world->host, bytes, "heartbeat table", world->all,
                          &watchdog->shared))
        return;
    struct dt__heartbeat_table *table =
        (struct dt__heartbeat_table *)(void *)watchdog->shared.memory;
    if (world->host_rank == 0) {
        memset(table, 0, bytes);
        table->rows = world->host_size;
    }
    DT_MPI(MPI_Barrier(world->host));
    dt__heartbeat_table_use(world, table, world->host_rank);
}

int64_t dt__heartbeat_newest_us(const struct dt__heartbeat_table *table)
{
    int64_t newest = 0;
    for (int i = 0; i < table->rows; i++) {
        int64_t progress = atomic_load(&table->row[i].progress_us);
        if (progress > newest) newest = progress;
    }
    return newest;
}

static void load_phase(const struct dt__phase *phase, char text[8 * DT__PHASE_WORDS])
{
    for (int i = 0; i < DT__PHASE_WORDS; i++) {
        uint64_t word = atomic_load(&phase->word[i]);
        memcpy(text + 8 * i, &word, 8);
    }
    text[8 * DT__PHASE_WORDS - 1] = '\0';
}

dt_status dt__heartbeat_name(const struct dt_world *world, const struct dt__heartbeat *heartbeat,
                             struct dt_text *names)
{
    char phase[8 * DT__PHASE_WORDS], wait[8 * DT__PHASE_WORDS];
    load_phase(&heartbeat->phase, phase);
    load_phase(&heartbeat->wait, wait);
    return dt_text_add(names, "%srank %d on %s (%s, step %llu%s%s)", names->length ? ", " : "",
                       heartbeat->rank, world->host_name[heartbeat->rank], phase,
                       (unsigned long long)atomic_load(&heartbeat->step),
                       *wait ? ", waiting for " : "", wait);
}

void dt_world_rank_status(const struct dt_world *world, int rank, struct dt_rank_status *out)
{
    const struct dt__watchdog *watchdog = &world->watchdog;
    const struct dt__heartbeat_table *table = atomic_load(&watchdog->table);
    const struct dt__heartbeat *heartbeat = NULL;
    int64_t seen_us = 0;
    for (int i = 0; i < table->rows && !heartbeat; i++)
        if (table->row[i].rank == rank && atomic_load(&table->row[i].pid)) {
            heartbeat = &table->row[i];
            seen_us = atomic_load(&heartbeat->progress_us);
        }
    for (int i = 0; i < watchdog->peers && !heartbeat; i++)
        if (watchdog->peer[i].heartbeat.rank == rank) {
            heartbeat = &watchdog->peer[i].heartbeat;
            seen_us = atomic_load(&watchdog->peer[i].progress_us);
        }
    *out = (struct dt_rank_status){.rank = rank,
                                   .host = world->host_name[rank],
                                   .role = rank == 0                                ? "bank"
                                           : rank == dt_world_evaluator_rank(world) ? "evaluator"
                                                                                    : "worker",
                                   .known = heartbeat,
                                   .wait_share = (double)NAN,
                                   .samples_per_sec = (double)NAN};
    if (!heartbeat) return;
    load_phase(&heartbeat->phase, out->phase);
    load_phase(&heartbeat->wait, out->wait);
    out->step = atomic_load(&heartbeat->step);
    out->samples = atomic_load(&heartbeat->samples);
    out->idle_secs = (double)(dt__now_us() - seen_us) * 1e-6;
    int permille = atomic_load(&heartbeat->wait_permille);
    if (permille) out->wait_share = (permille - 1) * 1e-3;
}

/* ---- other hosts ---------------------------------------------------------------------------- */

enum { HEARTBEAT_TAG = 1, MAX_PERIOD_US = 500000, MIN_PERIOD_US = 100000 };

int64_t dt__exchange_period_us(const struct dt_world *world)
{
    int64_t period = atomic_load(&world->watchdog.stall_us) / 8;
    if (period <= 0 || period > MAX_PERIOD_US) return MAX_PERIOD_US;
    return period < MIN_PERIOD_US ? MIN_PERIOD_US : period;
}

static bool is_first_of_host(const struct dt_world *world, int rank)
{
    int r = 0;
    while (world->host_of[r] != world->host_of[rank])
        r++;
    return r == rank;
}

void dt__peers_connect(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->watchdog;
    if (world->hosts == 1) return;
    DT_MPI(MPI_Comm_dup(world->all, &watchdog->comm));
    int peers = 0;
    int64_t now = dt__now_us(); /* as if heard now: a deadline begins here */
    for (int r = 0; r < world->size; r++) {
        bool pair = (world->rank == 0) != (r == 0);
        if (pair && world->host_of[r] != world->host_of[world->rank] &&
            is_first_of_host(world, r) && is_first_of_host(world, world->rank))
            watchdog->peer[peers++] = (struct dt__peer){.heartbeat.rank = r,
                                                        .request = MPI_REQUEST_NULL,
                                                        .heard_us = now,
                                                        .progress_us = now};
    }
    watchdog->peers = peers;
}

void dt__peers_free(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->watchdog;
    if (watchdog->comm == MPI_COMM_NULL) return;
    for (int i = 0; i < watchdog->peers; i++)
        DT_MPI(MPI_Wait(&watchdog->peer[i].request, MPI_STATUS_IGNORE));
    DT_MPI(MPI_Comm_free(&watchdog->comm));
}

static struct dt__heartbeat_message message_make(const struct dt_world *world)
{
    const struct dt__heartbeat *heartbeat = own_heartbeat(world);
    struct dt__heartbeat_message out = {
        .idle_us = dt__now_us() - dt__heartbeat_newest_us(atomic_load(&world->watchdog.table)),
        .stop = dt_stop_requested(),
        .step = atomic_load(&heartbeat->step)};
    for (int i = 0; i < DT__PHASE_WORDS; i++)
        out.phase[i] = atomic_load(&heartbeat->phase.word[i]);
    return out;
}

static void peer_take_message(struct dt__peer *peer, const struct dt__heartbeat_message *message)
{
    int64_t now = dt__now_us();
    atomic_store(&peer->heard_us, now);
    atomic_store(&peer->progress_us, now - message->idle_us);
    atomic_store(&peer->heartbeat.step, message->step);
    for (int i = 0; i < DT__PHASE_WORDS; i++)
        atomic_store(&peer->heartbeat.phase.word[i], message->phase[i]);
    if (message->stop) dt_stop_request();
}

void dt__peers_reset(struct dt_world *world)
{
    struct dt__heartbeat_message own = message_make(world);
    own.stop = 0;
    for (int i = 0; i < world->watchdog.peers; i++)
        peer_take_message(&world->watchdog.peer[i], &own);
}

static bool peer_receive(struct dt__watchdog *watchdog, struct dt__peer *peer)
{
    int there, rank = peer->heartbeat.rank;
    struct dt__heartbeat_message message;
    DT_MPI(MPI_Iprobe(rank, HEARTBEAT_TAG, watchdog->comm, &there, MPI_STATUS_IGNORE));
    if (!there) return false;
    DT_MPI(MPI_Recv(&message, (int)sizeof message, MPI_BYTE, rank, HEARTBEAT_TAG, watchdog->comm,
                    MPI_STATUS_IGNORE));
    peer_take_message(peer, &message);
    return true;
}

void dt__heartbeat_exchange(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->watchdog;
    if (!watchdog->peers) return;
    int64_t now = dt__now_us();
    if (now < watchdog->exchange_at_us) return;
    watchdog->exchange_at_us = now + dt__exchange_period_us(world);
    for (int i = 0; i < watchdog->peers; i++)
        while (peer_receive(watchdog, &watchdog->peer[i]))
            continue;
    atomic_store(&watchdog->listened_us, dt__now_us());
    for (int i = 0; i < watchdog->peers; i++) {
        struct dt__peer *peer = &watchdog->peer[i];
        int done; /* one message at a time: to a peer that does not listen they must not pile up */
        DT_MPI(MPI_Test(&peer->request, &done, MPI_STATUS_IGNORE));
        if (!done) continue;
        peer->out = message_make(world);
        DT_MPI(MPI_Isend(&peer->out, (int)sizeof peer->out, MPI_BYTE, peer->heartbeat.rank,
                         HEARTBEAT_TAG, watchdog->comm, &peer->request));
    }
}
