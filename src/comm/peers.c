/* Messages between hosts: the bank and the first rank of every other host send them now and then,
 * while they make progress or wait. */
#include <math.h>
#include <string.h>

#include "comm/world.h"

enum { HEARTBEAT_TAG = 1, MAX_PERIOD_US = 500000, MIN_PERIOD_US = 100000 };

int64_t dt__exchange_period_us(const struct dt_world *world)
{
    int64_t period = atomic_load(&world->inside->watchdog.stall_us) / 8;
    if (period <= 0 || period > MAX_PERIOD_US) return MAX_PERIOD_US;
    return period < MIN_PERIOD_US ? MIN_PERIOD_US : period;
}

int dt__stop_mark(const struct dt__watchdog *watchdog)
{
    return watchdog->stops + 1;
}

static struct dt__heartbeat_message message_make(const struct dt_world *world)
{
    const struct dt__heartbeat *heartbeat = dt__heartbeat_own(world);
    struct dt__heartbeat_message out = {
        .idle_us =
            dt__now_us() - dt__newest_progress_us(atomic_load(&world->inside->watchdog.table)),
        .stop = dt__stop_requested() ? dt__stop_mark(&world->inside->watchdog) : 0,
        .error_printed = dt__error_was_printed(&world->inside->watchdog),
        .step = atomic_load(&heartbeat->step)};
    for (int i = 0; i < DT__PHASE_WORDS; i++)
        out.phase[i] = atomic_load(&heartbeat->phase.word[i]);
    return out;
}

static void peer_take_message(const struct dt__watchdog *watchdog, struct dt__peer *peer,
                              const struct dt__heartbeat_message *message)
{
    int64_t now = dt__now_us();
    if (message->last) atomic_store(&peer->parted, true);
    if (message->last) return; /* a last message has no other contents */
    atomic_store(&peer->heard_us, now);
    atomic_store(&peer->heartbeat.progress_us, now - message->idle_us);
    atomic_store(&peer->heartbeat.step, message->step);
    for (int i = 0; i < DT__PHASE_WORDS; i++)
        atomic_store(&peer->heartbeat.phase.word[i], message->phase[i]);
    if (message->stop == dt__stop_mark(watchdog)) dt_stop_request();
    int nobody = DT__ERROR_NONE;
    if (message->error_printed)
        atomic_compare_exchange_strong(&atomic_load(&watchdog->table)->error, &nobody,
                                       DT__ERROR_PRINTED);
}

/* Records the progress of long computations, on any thread. */
static void work_progress(void)
{
    struct dt_world *world = dt__watched_world();
    if (!world) return;
    for (struct dt_world *part = world; part; part = part->inside->whole)
        dt__store_relaxed(&dt__heartbeat_own(part)->progress_us, dt__now_us());
    if (pthread_equal(pthread_self(), world->inside->watchdog.main)) dt__heartbeat_exchange(world);
}

/* is_it: makes `world` the process's watched world. Otherwise, if it is that world, sets none. */
void dt__watched_world_set(struct dt_world *world, bool is_it)
{
    if (!is_it && dt__watched_world() != world) return;
    dt__watched_world_store(is_it ? world : NULL);
    dt__work_watch(is_it ? work_progress : NULL);
}

void dt__world_watch(struct dt_world *world, double stall_secs)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    const int64_t now = dt__now_us(); /* as if every peer had just sent a message */
    dt__watchdog_progress(world);
    for (int i = 0; i < watchdog->peers; i++) {
        atomic_store(&watchdog->peer[i].heard_us, now);
        atomic_store(&watchdog->peer[i].heartbeat.progress_us, now);
    }
    watchdog->patience_secs = stall_secs;
    dt__watched_world_set(world, true);
    atomic_store(&watchdog->stall_us, (int64_t)(stall_secs * 1e6));
}

/* Clears the request and counts the stop under the lock: if the thread saw only one of the two, it
 * would request the stop again. */
void dt__world_rest(struct dt_world *world, bool stopped)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    atomic_store(&watchdog->stall_us, 0);
    if (!stopped) return;
    pthread_mutex_lock(&watchdog->lock);
    dt__stop_clear();
    watchdog->stops++;
    pthread_mutex_unlock(&watchdog->lock);
}

void dt__heartbeat_exchange(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    if (world->inside->whole) dt__heartbeat_exchange(world->inside->whole);
    if (!watchdog->peers) return;
    int64_t now = dt__now_us();
    const bool news = dt__error_was_printed(watchdog) && !watchdog->error_printed;
    if (now < watchdog->exchange_at_us && !news) return;
    watchdog->error_printed |= news;
    watchdog->exchange_at_us = now + dt__exchange_period_us(world);
    for (int i = 0, there; i < watchdog->peers; i += !there) {
        const int rank = watchdog->peer[i].heartbeat.rank;
        struct dt__heartbeat_message message;
        DT_MPI(MPI_Iprobe(rank, HEARTBEAT_TAG, watchdog->comm, &there, MPI_STATUS_IGNORE));
        if (!there) continue;
        DT_MPI(MPI_Recv(&message, (int)sizeof message, MPI_BYTE, rank, HEARTBEAT_TAG,
                        watchdog->comm, MPI_STATUS_IGNORE));
        peer_take_message(watchdog, &watchdog->peer[i], &message);
    }
    atomic_store(&watchdog->listened_us, dt__now_us());
    for (int i = 0; i < watchdog->peers; i++) {
        struct dt__peer *peer = &watchdog->peer[i];
        int done; /* one message at a time, since they must not pile up at a peer that does not
                   * receive */
        if (atomic_load(&peer->parted)) continue;
        DT_MPI(MPI_Test(&peer->request, &done, MPI_STATUS_IGNORE));
        if (!done) continue;
        peer->out = message_make(world);
        DT_MPI(MPI_Isend(&peer->out, (int)sizeof peer->out, MPI_BYTE, peer->heartbeat.rank,
                         HEARTBEAT_TAG, watchdog->comm, &peer->request));
    }
}

/* ---- this rank ------------------------------------------------------------------------------ */

void dt__world_heartbeat(struct dt_world *world, const char *phase, uint64_t step)
{
    if (world->inside->whole) dt__world_heartbeat(world->inside->whole, phase, step);
    dt__phase_store(&dt__heartbeat_own(world)->phase, phase);
    atomic_store_explicit(&dt__heartbeat_own(world)->step, step, memory_order_relaxed);
    dt__watchdog_progress(world);
    dt__heartbeat_exchange(world);
}

void dt__world_idle(struct dt_world *world, const char *what)
{
    dt__phase_store(&dt__heartbeat_own(world)->wait, what);
    dt__heartbeat_exchange(world);
}

void dt__world_rank_status(const struct dt_world *world, int rank, struct dt_rank_status *out)
{
    const struct dt__watchdog *watchdog = &world->inside->watchdog;
    const struct dt__heartbeat_table *table = atomic_load(&watchdog->table);
    const struct dt__heartbeat *heartbeat = NULL;
    for (int i = 0; i < table->rows && !heartbeat; i++)
        if (table->row[i].rank == rank && atomic_load(&table->row[i].present))
            heartbeat = &table->row[i];
    for (int i = 0; i < watchdog->peers && !heartbeat; i++)
        if (watchdog->peer[i].heartbeat.rank == rank) heartbeat = &watchdog->peer[i].heartbeat;
    *out = (struct dt_rank_status){.rank = rank,
                                   .host = world->host_name[rank],
                                   .role = rank == 0                  ? "bank"
                                           : rank == world->evaluator ? "evaluator"
                                                                      : "worker",
                                   .known = heartbeat,
                                   .wait_fraction = (double)NAN,
                                   .samples_per_sec = (double)NAN};
    if (!heartbeat) return;
    dt__phase_load(&heartbeat->phase, out->phase);
    dt__phase_load(&heartbeat->wait, out->wait);
    out->step = atomic_load(&heartbeat->step);
    out->samples = atomic_load(&heartbeat->samples);
    out->idle_secs = (double)(dt__now_us() - atomic_load(&heartbeat->progress_us)) * 1e-6;
    int permille = atomic_load(&heartbeat->wait_permille);
    if (permille) out->wait_fraction = (permille - 1) * 1e-3;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* Exchanges the last messages with a peer, since MPI may end only when all messages are received.
 * The peer's last message may have arrived already. */
void dt__peer_part(struct dt__peer *peer, MPI_Comm comm)
{
    const struct dt__heartbeat_message last = {.last = 1};
    struct dt__heartbeat_message message;
    const int rank = peer->heartbeat.rank, bytes = (int)sizeof message;
    MPI_Request sent[2] = {peer->request};
    DT_MPI(MPI_Isend(&last, bytes, MPI_BYTE, rank, HEARTBEAT_TAG, comm, &sent[1]));
    for (bool parted = atomic_load(&peer->parted); !parted; parted = message.last)
        DT_MPI(MPI_Recv(&message, bytes, MPI_BYTE, rank, HEARTBEAT_TAG, comm, MPI_STATUS_IGNORE));
    DT_MPI(MPI_Waitall(2, sent, MPI_STATUSES_IGNORE));
}
