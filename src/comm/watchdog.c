/* The watchdog thread, which ends the job when a rank is stuck or a process has died. */
#include "comm/watchdog.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "comm/world.h"

static const int64_t LATE_US = 1000000;  /* a look this late: the process was suspended */
static const int64_t QUIET_US = 1000000; /* after the deadline, until a silent host is reported */
static const int64_t ABORT_US = 8000000; /* until an abort is everywhere (measured: up to 3 s) */
static const int64_t ALL_WAIT_US =
    12000000;                            /* after the deadline, until a wait of all is reported */
static const int64_t KILLS_US = 3000000; /* mpirun asks ranks to stop, kills them 1 s later */

/* ---- stuck ranks ---------------------------------------------------------------------------- */

/* Adds text like "rank 2 on node7 (gradient, step 17)", after a comma if the list is not empty.
 * `when` precedes the phase. */
static dt_status heartbeat_name(const struct dt_world *world, const struct dt__heartbeat *heartbeat,
                                const char *when, struct dt_text *names)
{
    char phase[DT_PHASE_TEXT], wait[DT_PHASE_TEXT];
    dt__phase_load(&heartbeat->phase, phase);
    dt__phase_load(&heartbeat->wait, wait);
    return dt__text_add(names, "%srank %d on %s (%s%s, step %llu%s%s)", names->length ? ", " : "",
                        heartbeat->rank, world->host_name[heartbeat->rank], when, phase,
                        (unsigned long long)atomic_load(&heartbeat->step),
                        *wait ? ", waiting for " : "", wait);
}

enum rank_state {
    RANK_GONE,    /* heartbeat_is_dead */
    RANK_STOPPED, /* its thread has not looked since the limit */
    RANK_STUCK,   /* it has work, and made no progress since the limit */
    RANK_SEEN
};

/* Names the ranks of this host that are in the given state. */
static void name_ranks(const struct dt_world *world, enum rank_state state, int64_t limit,
                       struct dt_text *names)
{
    struct dt__heartbeat_table *table = atomic_load(&world->inside->watchdog.table);
    for (int i = 0; i < table->rows; i++) {
        struct dt__heartbeat *rank = &table->row[i];
        const int64_t awake = atomic_load(&rank->awake_us);
        const bool waits = atomic_load(&rank->wait.word[0]);
        const bool is[] = {[RANK_GONE] = state == RANK_GONE && dt__heartbeat_is_dead(rank),
                           [RANK_STOPPED] = awake && awake <= limit,
                           [RANK_STUCK] =
                               awake && !waits && atomic_load(&rank->progress_us) <= limit,
                           [RANK_SEEN] = awake};
        const char *when = state == RANK_STOPPED ? "stopped; last heard in " : "";
        if (is[state] && heartbeat_name(world, rank, when, names)) return;
    }
}

static bool rank_is_alone_on_host(const struct dt_world *world, int rank)
{
    int ranks = 0;
    for (int r = 0; r < world->size; r++)
        ranks += world->host_of[r] == world->host_of[rank];
    return ranks == 1;
}

/* Returns whether a rank of another host has been silent for too long after the deadline. Ranks
 * report in turn: first those that see its heartbeat, then the bank, then host by host. Each waits
 * until an abort by an earlier one would have arrived, so that one line names the culprit. */
static bool is_too_silent(const struct dt_world *world, int rank, int64_t beyond_us)
{
    int64_t turn = world->host_of[world->rank] + (rank_is_alone_on_host(world, rank) ? 0 : 1);
    return beyond_us >= QUIET_US + dt__exchange_period_us(world) + turn * ABORT_US;
}

static void name_silent_hosts(struct dt_world *world, int64_t now, int64_t stall,
                              struct dt_text *names)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    const bool listens =
        atomic_load(&watchdog->listened_us) >= now - QUIET_US - dt__exchange_period_us(world);
    for (int i = 0; i < watchdog->peers && listens; i++) {
        const struct dt__peer *peer = &watchdog->peer[i];
        if (atomic_load(&peer->parted)) continue;
        if (!is_too_silent(world, peer->heartbeat.rank, now - atomic_load(&peer->heard_us) - stall))
            continue;
        if (heartbeat_name(world, &peer->heartbeat, "", names)) return;
        dt__text_add(names, ", which is not heard from");
    }
}

/* Names the ranks that have made no progress for `stall`, as far as this rank is to report them. */
static void name_stalled(struct dt_world *world, int64_t now, int64_t stall, struct dt_text *names)
{
    const struct dt__watchdog *watchdog = &world->inside->watchdog;
    const int64_t limit = now - stall;
    /* If a rank alone on its host is stopped, it cannot report that itself; the bank reports it,
     * and also a stuck one. On several hosts a rank may be stuck in MPI because another host has
     * reported an error and the abort is in flight. Hence the longer patience. */
    const bool bank_reports =
        world->host_of[world->rank] != 0 && rank_is_alone_on_host(world, world->rank);
    const int64_t patience = bank_reports ? ABORT_US : world->hosts > 1 ? ABORT_US / 2 : 0;
    name_ranks(world, RANK_STOPPED, limit, names);
    if (!names->length) name_ranks(world, RANK_STUCK, limit - patience, names);
    if (!names->length) name_silent_hosts(world, now, stall, names);
    if (names->length || world->rank) return;
    /* All ranks wait, for each other or for a file system. Only the bank reports that. */
    int64_t newest = dt__newest_progress_us(atomic_load(&watchdog->table));
    for (int i = 0; i < watchdog->peers; i++) {
        int64_t progress = atomic_load(&watchdog->peer[i].heartbeat.progress_us);
        if (progress > newest) newest = progress;
    }
    if (newest <= limit - ALL_WAIT_US) name_ranks(world, RANK_SEEN, limit, names);
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Passes a stop request that one process received to the whole job. */
static void stop_share(struct dt__watchdog *watchdog)
{
    struct dt__heartbeat_table *table = atomic_load(&watchdog->table);
    pthread_mutex_lock(&watchdog->lock);
    if (dt__stop_requested())
        atomic_store(&table->stop, dt__stop_mark(watchdog));
    else if (atomic_load(&table->stop) == dt__stop_mark(watchdog))
        dt_stop_request();
    pthread_mutex_unlock(&watchdog->lock);
}

static void watchdog_look(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    const int64_t now = dt__now_us(), stall = atomic_load(&watchdog->stall_us);
    if (now - watchdog->looked_us > LATE_US) watchdog->woke_us = now;
    watchdog->looked_us = now;
    dt__heartbeat_hold(watchdog, atomic_load(&watchdog->mine));
    atomic_store(&atomic_load(&watchdog->mine)->awake_us, now);
    stop_share(watchdog);
    struct dt_text names = {0};
    char message[DT_ERROR_MAX];
    name_ranks(world, RANK_GONE, now, &names);
    if (names.length) {
        /* Another host may have ended the job: then ranks are first asked to stop, and killed
         * later. */
        if (dt__stop_requested()) dt__sleep_secs((double)KILLS_US * 1e-6);
        snprintf(message, sizeof message, "%s is gone: killed, or it crashed", names.data);
        dt__world_die(1, DT__CAUSE_LOST, message);
    }
    /* A rank that was suspended may have been woken by an abort. */
    const int64_t awake = now - watchdog->woke_us;
    if (stall <= 0 || awake < stall || (watchdog->woke_us && awake < ABORT_US)) return;
    name_stalled(world, now, stall, &names);
    if (!names.length) return;
    snprintf(message, sizeof message, "no progress for %g s (run.stall_secs) at %s",
             (double)stall * 1e-6, names.data);
    dt__world_die(1, DT__CAUSE_STALL, message);
}

static void *watchdog_run(void *arg)
{
    struct dt_world *world = arg;
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    for (bool quit = false; !quit;) {
        watchdog_look(world);
        int64_t at = dt__now_us() + DT__LOOK_US;
        struct timespec until = {.tv_sec = (time_t)(at / 1000000),
                                 .tv_nsec = (long)(at % 1000000) * 1000};
        pthread_mutex_lock(&watchdog->lock);
        while (!watchdog->quit && watchdog->held == atomic_load(&watchdog->mine) &&
               !pthread_cond_timedwait(&watchdog->changed, &watchdog->lock, &until))
            continue;
        quit = watchdog->quit;
        pthread_mutex_unlock(&watchdog->lock);
    }
    dt__heartbeat_hold(watchdog, NULL);
    return NULL;
}

dt_status dt__watchdog_start(struct dt_world *world, double stall_secs)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    watchdog->comm = MPI_COMM_NULL;
    watchdog->main = pthread_self();
    watchdog->looked_us = dt__now_us();
    watchdog->patience_secs = stall_secs;
    watchdog->stall_us = (int64_t)(stall_secs * 1e6);
    struct dt__arena **arena = &world->inside->arena;
    DT_TRY(DT__ARENA_ALLOC(arena, "heartbeats", DT__TABLE(watchdog->peer, (size_t)world->size)));
    DT_TRY(dt__arena_alloc(arena, 1, sizeof *watchdog->alone + sizeof watchdog->alone->row[0],
                           "heartbeat table", &watchdog->alone));
    watchdog->alone->rows = 1;
    dt__heartbeat_table_use(world, watchdog->alone, 0);
    dt__watched_world_set(world, true);
    pthread_condattr_t monotonic;
    pthread_mutex_init(&watchdog->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watchdog->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    DT_TRY(dt__thread_start(&watchdog->thread, "watchdog", watchdog_run, world));
    watchdog->started = true;
    return DT_OK;
}

void dt__watchdog_connect(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    size_t bytes =
        sizeof *watchdog->alone + (size_t)world->inside->host_size * sizeof watchdog->alone->row[0];
    /* If a host has no memory for its table, each of its ranks keeps its private one, in which
     * other ranks never appear. */
    if (!dt__shared_create(world->inside->host, &(struct dt__shm){.used = bytes}, "heartbeat table",
                           world->all, &watchdog->shared)) {
        struct dt__heartbeat_table *table =
            (struct dt__heartbeat_table *)(void *)watchdog->shared.memory;
        if (world->inside->host_rank == 0) {
            memset(table, 0, bytes);
            table->rows = world->inside->host_size;
        }
        DT_MPI(MPI_Barrier(world->inside->host));
        dt__heartbeat_table_use(world, table, world->inside->host_rank);
        pthread_mutex_lock(&watchdog->lock);
        pthread_cond_signal(&watchdog->changed); /* the thread registers in the table now */
        pthread_mutex_unlock(&watchdog->lock);
    }
    if (world->hosts == 1) return;
    DT_MPI(MPI_Comm_dup(world->all->comm, &watchdog->comm));
    int peers = 0;
    int64_t now = dt__now_us(); /* counts as a message, so that deadlines start here */
    for (int r = 0, hosts = 0; r < world->size; r++) {
        if (world->host_of[r] < hosts) continue; /* hosts are numbered by their first ranks */
        hosts++;
        if (world->inside->host_rank == 0 && (world->rank == 0) != (r == 0))
            watchdog->peer[peers++] = (struct dt__peer){.heartbeat.rank = r,
                                                        .heartbeat.progress_us = now,
                                                        .request = MPI_REQUEST_NULL,
                                                        .heard_us = now};
    }
    watchdog->peers = peers;
}

void dt__watchdog_stop(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    if (!watchdog->mine) return;
    if (dt__watched_world() == world) dt__work_watch(NULL);
    if (!watchdog->started) return;
    pthread_mutex_lock(&watchdog->lock);
    watchdog->quit = true;
    pthread_cond_signal(&watchdog->changed);
    pthread_mutex_unlock(&watchdog->lock);
    pthread_join(watchdog->thread, NULL);
}

void dt__watchdog_free(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    dt__watched_world_set(world, false);
    if (world->inside->connected) {
        for (int i = 0; i < watchdog->peers; i++)
            dt__peer_part(&watchdog->peer[i], watchdog->comm);
        if (watchdog->comm != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&watchdog->comm));
        dt__shared_free(&watchdog->shared);
    }
}
