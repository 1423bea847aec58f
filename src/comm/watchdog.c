/* The watchdog: the heartbeats that ranks show, the messages by which hosts hear of each other, and
 * the thread that ends the job of those who got stuck, or whose rank is gone. */
#include "comm/watchdog.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "comm/world.h"

static const int64_t LOOK_US = 200000;   /* from look to look */
static const int64_t LATE_US = 1000000;  /* a look so late says that this process was stopped */
static const int64_t QUIET_US = 1000000; /* beyond the deadline: another host is silent */
static const int64_t ABORT_US = 8000000; /* an abort has reached all hosts (measured: up to 3 s) */
static const int64_t ALL_WAIT_US = 12000000; /* beyond it: who is stuck alone has been named */
static const int64_t KILLS_US = 3000000; /* mpirun asks ranks to stop, kills them a second later */

/* The job of this process, of several the last that was to be watched: for errors and progress that
 * are told far from it. */
static struct dt_world *_Atomic watched_world;

static int64_t now_us(void)
{
    return (int64_t)(dt_clock_secs() * 1e6);
}

/* ---- this rank ------------------------------------------------------------------------------ */

/* Relaxed: a look that comes a little late changes nothing. */
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

static void load_phase(const struct dt__phase *phase, char text[DT_PHASE_TEXT])
{
    for (int i = 0; i < DT__PHASE_WORDS; i++) {
        uint64_t word = atomic_load(&phase->word[i]);
        memcpy(text + 8 * i, &word, 8);
    }
    text[DT_PHASE_TEXT - 1] = '\0';
}

static struct dt__heartbeat *own_heartbeat(const struct dt_world *world)
{
    return atomic_load_explicit(&world->inside->watchdog.mine, memory_order_relaxed);
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
    store_relaxed(&own_heartbeat(world)->progress_us, now_us());
    /* Who sees that it waits no more sees the progress, too. */
    atomic_store_explicit(&own_heartbeat(world)->wait.word[0], 0, memory_order_release);
}

void dt__watchdog_wait(struct dt_world *world, const char *what)
{
    store_phase(&own_heartbeat(world)->wait, what);
    store_relaxed(&own_heartbeat(world)->progress_us, now_us());
}

bool dt__watchdog_waits(const struct dt_world *world)
{
    return atomic_load_explicit(&own_heartbeat(world)->wait.word[0], memory_order_relaxed) != 0;
}

void dt_world_show(struct dt_world *world, uint64_t samples, double wait_share)
{
    struct dt__heartbeat *heartbeat = own_heartbeat(world);
    const int permille = wait_share >= 0 && wait_share <= 1 ? 1 + (int)(1000 * wait_share) : 0;
    atomic_store_explicit(&heartbeat->samples, samples, memory_order_relaxed);
    atomic_store_explicit(&heartbeat->wait_permille, permille, memory_order_relaxed);
}

void dt_world_idle(struct dt_world *world, const char *what)
{
    store_phase(&own_heartbeat(world)->wait, what);
    dt__heartbeat_exchange(world);
}

/* Work that takes long shows that it makes progress, from whatever thread. */
static void watchdog_work_progress(void)
{
    struct dt_world *world = atomic_load(&watched_world);
    if (!world) return;
    store_relaxed(&atomic_load(&world->inside->watchdog.mine)->progress_us, now_us());
    if (pthread_equal(pthread_self(), world->inside->watchdog.main)) dt__heartbeat_exchange(world);
}

/* This world is the process's; or no more, if it is. */
static void watched_world_set(struct dt_world *world, bool is_it)
{
    if (!is_it && atomic_load(&watched_world) != world) return;
    atomic_store(&watched_world, is_it ? world : NULL);
    dt_work_watch(is_it ? watchdog_work_progress : NULL);
}

/* ---- the table ------------------------------------------------------------------------------ */

/* This rank's process has ended, and not as one that is done. A mutex whose owner has died is never
 * to be had again. */
static bool heartbeat_is_dead(struct dt__heartbeat *heartbeat)
{
    if (!atomic_load(&heartbeat->present)) return false;
    const int code = pthread_mutex_trylock(&heartbeat->life);
    if (code == 0 || code == EOWNERDEAD) pthread_mutex_unlock(&heartbeat->life);
    return (code == EOWNERDEAD || code == ENOTRECOVERABLE) && atomic_load(&heartbeat->present);
}

/* The thread's: shows in that row, and no more in the one before; NULL: in none. */
static void heartbeat_hold(struct dt__watchdog *watchdog, struct dt__heartbeat *heartbeat)
{
    struct dt__heartbeat *before = watchdog->held;
    if (before == heartbeat) return;
    if (before) {
        atomic_store(&before->awake_us, 0); /* who has ended is not stuck */
        atomic_store(&before->present, 0);
        pthread_mutex_unlock(&before->life);
    }
    watchdog->held = heartbeat;
    if (!heartbeat) return;
    pthread_mutex_lock(&heartbeat->life);
    atomic_store(&heartbeat->present, 1);
}

/* This rank shows in that row of the table from here on. Who is awake has made progress: the own
 * thread may write to the row, and others read it, before this is through. */
static void heartbeat_table_use(struct dt_world *world, struct dt__heartbeat_table *table, int row)
{
    struct dt__heartbeat *heartbeat = &table->row[row];
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&heartbeat->life, &robust);
    pthread_mutexattr_destroy(&robust);
    heartbeat->rank = world->rank;
    store_phase(&heartbeat->phase, "start-up");
    atomic_store(&heartbeat->progress_us, now_us());
    atomic_store(&world->inside->watchdog.mine, heartbeat);
    atomic_store(&heartbeat->awake_us, now_us()); /* it may be stopped before its first look */
    atomic_store(&world->inside->watchdog.table, table);
}

/* When somebody in the table last made progress. */
static int64_t newest_progress_us(const struct dt__heartbeat_table *table)
{
    int64_t newest = 0;
    for (int i = 0; i < table->rows; i++) {
        int64_t progress = atomic_load(&table->row[i].progress_us);
        if (progress > newest) newest = progress;
    }
    return newest;
}

void dt_world_rank_status(const struct dt_world *world, int rank, struct dt_rank_status *out)
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
                                   .wait_share = (double)NAN,
                                   .samples_per_sec = (double)NAN};
    if (!heartbeat) return;
    load_phase(&heartbeat->phase, out->phase);
    load_phase(&heartbeat->wait, out->wait);
    out->step = atomic_load(&heartbeat->step);
    out->samples = atomic_load(&heartbeat->samples);
    out->idle_secs = (double)(now_us() - atomic_load(&heartbeat->progress_us)) * 1e-6;
    int permille = atomic_load(&heartbeat->wait_permille);
    if (permille) out->wait_share = (permille - 1) * 1e-3;
}

/* ---- other hosts ---------------------------------------------------------------------------- */

enum { HEARTBEAT_TAG = 1, MAX_PERIOD_US = 500000, MIN_PERIOD_US = 100000 };

/* Of the error line of a table's host, or of the job's once another host says that it has told. */
enum { ERROR_NONE, ERROR_CLAIMED, ERROR_TOLD };

static bool error_is_told(const struct dt__watchdog *watchdog)
{
    return atomic_load(&atomic_load(&watchdog->table)->error) == ERROR_TOLD;
}

/* Messages go this often. */
static int64_t exchange_period_us(const struct dt_world *world)
{
    int64_t period = atomic_load(&world->inside->watchdog.stall_us) / 8;
    if (period <= 0 || period > MAX_PERIOD_US) return MAX_PERIOD_US;
    return period < MIN_PERIOD_US ? MIN_PERIOD_US : period;
}

void dt__watchdog_connect(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    size_t bytes =
        sizeof *watchdog->alone + (size_t)world->inside->host_size * sizeof watchdog->alone->row[0];
    /* Where there is no memory for a host's table each rank keeps its own, on which the others
     * never show. */
    if (!dt__shared_create(world->inside->host, &(struct dt__room){.used = bytes},
                           "heartbeat table", world->all, &watchdog->shared)) {
        struct dt__heartbeat_table *table =
            (struct dt__heartbeat_table *)(void *)watchdog->shared.memory;
        if (world->inside->host_rank == 0) {
            memset(table, 0, bytes);
            table->rows = world->inside->host_size;
        }
        DT_MPI(MPI_Barrier(world->inside->host));
        heartbeat_table_use(world, table, world->inside->host_rank);
        pthread_mutex_lock(&watchdog->lock);
        pthread_cond_signal(&watchdog->changed); /* from here on its end would be seen */
        pthread_mutex_unlock(&watchdog->lock);
    }
    if (world->hosts == 1) return;
    DT_MPI(MPI_Comm_dup(world->all->comm, &watchdog->comm));
    int peers = 0;
    int64_t now = now_us(); /* as if heard now: a deadline begins here */
    for (int r = 0, hosts = 0; r < world->size; r++) {
        if (world->host_of[r] < hosts) continue; /* hosts are counted by their first ranks */
        hosts++;
        if (world->inside->host_rank == 0 && (world->rank == 0) != (r == 0))
            watchdog->peer[peers++] = (struct dt__peer){.heartbeat.rank = r,
                                                        .heartbeat.progress_us = now,
                                                        .request = MPI_REQUEST_NULL,
                                                        .heard_us = now};
    }
    watchdog->peers = peers;
}

/* What a request to stop is told by: another number behind each training that was stopped, so that
 * what still says of an earlier one asks for nothing. */
static int stop_mark(const struct dt__watchdog *watchdog)
{
    return watchdog->stops + 1;
}

static struct dt__heartbeat_message message_make(const struct dt_world *world)
{
    const struct dt__heartbeat *heartbeat = own_heartbeat(world);
    struct dt__heartbeat_message out = {
        .idle_us = now_us() - newest_progress_us(atomic_load(&world->inside->watchdog.table)),
        .stop = dt_stop_requested() ? stop_mark(&world->inside->watchdog) : 0,
        .told = error_is_told(&world->inside->watchdog),
        .step = atomic_load(&heartbeat->step)};
    for (int i = 0; i < DT__PHASE_WORDS; i++)
        out.phase[i] = atomic_load(&heartbeat->phase.word[i]);
    return out;
}

static void peer_take_message(const struct dt__watchdog *watchdog, struct dt__peer *peer,
                              const struct dt__heartbeat_message *message)
{
    int64_t now = now_us();
    if (message->last) atomic_store(&peer->parted, true);
    if (message->last) return; /* it says no more than that */
    atomic_store(&peer->heard_us, now);
    atomic_store(&peer->heartbeat.progress_us, now - message->idle_us);
    atomic_store(&peer->heartbeat.step, message->step);
    for (int i = 0; i < DT__PHASE_WORDS; i++)
        atomic_store(&peer->heartbeat.phase.word[i], message->phase[i]);
    if (message->stop == stop_mark(watchdog)) dt_stop_request();
    int nobody = ERROR_NONE;
    if (message->told)
        atomic_compare_exchange_strong(&atomic_load(&watchdog->table)->error, &nobody, ERROR_TOLD);
}

void dt_world_watch(struct dt_world *world, double stall_secs)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    const int64_t now = now_us(); /* as if all had been heard now */
    dt__watchdog_progress(world);
    for (int i = 0; i < watchdog->peers; i++) {
        atomic_store(&watchdog->peer[i].heard_us, now);
        atomic_store(&watchdog->peer[i].heartbeat.progress_us, now);
    }
    watchdog->patience_secs = stall_secs;
    watched_world_set(world, true);
    atomic_store(&watchdog->stall_us, (int64_t)(stall_secs * 1e6));
}

/* The thread must not see the one without the other: it would ask again. */
void dt_world_rest(struct dt_world *world, bool stopped)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    atomic_store(&watchdog->stall_us, 0);
    if (!stopped) return;
    pthread_mutex_lock(&watchdog->lock);
    dt_stop_clear();
    watchdog->stops++;
    pthread_mutex_unlock(&watchdog->lock);
}

void dt__heartbeat_exchange(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    if (!watchdog->peers) return;
    int64_t now = now_us();
    const bool news = error_is_told(watchdog) && !watchdog->told;
    if (now < watchdog->exchange_at_us && !news) return;
    watchdog->told |= news;
    watchdog->exchange_at_us = now + exchange_period_us(world);
    for (int i = 0, there; i < watchdog->peers; i += !there) {
        const int rank = watchdog->peer[i].heartbeat.rank;
        struct dt__heartbeat_message message;
        DT_MPI(MPI_Iprobe(rank, HEARTBEAT_TAG, watchdog->comm, &there, MPI_STATUS_IGNORE));
        if (!there) continue;
        DT_MPI(MPI_Recv(&message, (int)sizeof message, MPI_BYTE, rank, HEARTBEAT_TAG,
                        watchdog->comm, MPI_STATUS_IGNORE));
        peer_take_message(watchdog, &watchdog->peer[i], &message);
    }
    atomic_store(&watchdog->listened_us, now_us());
    for (int i = 0; i < watchdog->peers; i++) {
        struct dt__peer *peer = &watchdog->peer[i];
        int done; /* one message at a time: to a peer that does not listen they must not pile up */
        if (atomic_load(&peer->parted)) continue;
        DT_MPI(MPI_Test(&peer->request, &done, MPI_STATUS_IGNORE));
        if (!done) continue;
        peer->out = message_make(world);
        DT_MPI(MPI_Isend(&peer->out, (int)sizeof peer->out, MPI_BYTE, peer->heartbeat.rank,
                         HEARTBEAT_TAG, watchdog->comm, &peer->request));
    }
}

/* ---- who is stuck --------------------------------------------------------------------------- */

/* Adds "rank 2 on node7 (gradient, step 17)", behind a comma if others stand there. `when` goes
 * before the phase. */
static dt_status heartbeat_name(const struct dt_world *world, const struct dt__heartbeat *heartbeat,
                                const char *when, struct dt_text *names)
{
    char phase[DT_PHASE_TEXT], wait[DT_PHASE_TEXT];
    load_phase(&heartbeat->phase, phase);
    load_phase(&heartbeat->wait, wait);
    return dt_text_add(names, "%srank %d on %s (%s%s, step %llu%s%s)", names->length ? ", " : "",
                       heartbeat->rank, world->host_name[heartbeat->rank], when, phase,
                       (unsigned long long)atomic_load(&heartbeat->step),
                       *wait ? ", waiting for " : "", wait);
}

enum rank_state {
    RANK_GONE,    /* heartbeat_is_dead */
    RANK_STOPPED, /* its watchdog has not looked since the limit */
    RANK_STUCK,   /* it has something to do, and made no progress since the limit */
    RANK_SEEN
};

/* Names the ranks of this host that are in that state. */
static void name_ranks(const struct dt_world *world, enum rank_state state, int64_t limit,
                       struct dt_text *names)
{
    struct dt__heartbeat_table *table = atomic_load(&world->inside->watchdog.table);
    for (int i = 0; i < table->rows; i++) {
        struct dt__heartbeat *rank = &table->row[i];
        const int64_t awake = atomic_load(&rank->awake_us);
        const bool waits = atomic_load(&rank->wait.word[0]);
        const bool is[] = {[RANK_GONE] = state == RANK_GONE && heartbeat_is_dead(rank),
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

/* A rank of another host has been silent beyond the deadline. Who sees its heartbeat reports first,
 * then the bank, then host by host: each gives the abort of those before it time to come, so that
 * one line names the culprit. */
static bool is_too_silent(const struct dt_world *world, int rank, int64_t beyond_us)
{
    int64_t turn = world->host_of[world->rank] + (rank_is_alone_on_host(world, rank) ? 0 : 1);
    return beyond_us >= QUIET_US + exchange_period_us(world) + turn * ABORT_US;
}

static void name_silent_hosts(struct dt_world *world, int64_t now, int64_t stall,
                              struct dt_text *names)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    const bool listens =
        atomic_load(&watchdog->listened_us) >= now - QUIET_US - exchange_period_us(world);
    for (int i = 0; i < watchdog->peers && listens; i++) {
        const struct dt__peer *peer = &watchdog->peer[i];
        if (atomic_load(&peer->parted)) continue;
        if (!is_too_silent(world, peer->heartbeat.rank, now - atomic_load(&peer->heard_us) - stall))
            continue;
        if (heartbeat_name(world, &peer->heartbeat, "", names)) return;
        dt_text_add(names, ", which is not heard from");
    }
}

/* Those who made no progress for so long. */
static void name_stalled(struct dt_world *world, int64_t now, int64_t stall, struct dt_text *names)
{
    const struct dt__watchdog *watchdog = &world->inside->watchdog;
    const int64_t limit = now - stall;
    /* A rank alone on its host cannot report that it is stopped: the bank does, and it leaves the
     * report to the bank when it is stuck as well. On several hosts a rank may be stuck in MPI
     * since another host has reported, and the abort is on its way. */
    const bool bank_reports =
        world->host_of[world->rank] != 0 && rank_is_alone_on_host(world, world->rank);
    const int64_t patience = bank_reports ? ABORT_US : world->hosts > 1 ? ABORT_US / 2 : 0;
    name_ranks(world, RANK_STOPPED, limit, names);
    if (!names->length) name_ranks(world, RANK_STUCK, limit - patience, names);
    if (!names->length) name_silent_hosts(world, now, stall, names);
    if (names->length || world->rank) return;
    /* Everybody waits: for each other, or for a file system. The bank reports. */
    int64_t newest = newest_progress_us(atomic_load(&watchdog->table));
    for (int i = 0; i < watchdog->peers; i++) {
        int64_t progress = atomic_load(&watchdog->peer[i].heartbeat.progress_us);
        if (progress > newest) newest = progress;
    }
    if (newest <= limit - ALL_WAIT_US) name_ranks(world, RANK_SEEN, limit, names);
}

/* ---- the thread ----------------------------------------------------------------------------- */

bool dt__error_claim(char place[DT__PLACE])
{
    struct dt_world *world = atomic_load(&watched_world);
    place[0] = '\0';
    if (!world) return true;
    snprintf(place, DT__PLACE, "[rank %d on %s] ", world->rank, world->host_name[world->rank]);
    int nobody = ERROR_NONE;
    return atomic_compare_exchange_strong(&atomic_load(&world->inside->watchdog.table)->error,
                                          &nobody, ERROR_CLAIMED);
}

void dt__error_told(void)
{
    struct dt_world *world = atomic_load(&watched_world);
    if (!world) return;
    atomic_store(&atomic_load(&world->inside->watchdog.table)->error, ERROR_TOLD);
    /* Messages are the main threads': of this rank, or of the first one of its host. */
    if (world->hosts > 1 && !pthread_equal(pthread_self(), world->inside->watchdog.main))
        dt_sleep_secs((double)LOOK_US * 1e-6);
}

void dt__error_await(double secs)
{
    struct dt_world *world = atomic_load(&watched_world);
    const double end = dt_clock_secs() + secs;
    while (world && dt_clock_secs() < end &&
           atomic_load(&atomic_load(&world->inside->watchdog.table)->error) != ERROR_TOLD)
        dt_sleep_secs(0.01);
}

/* A stop request to one process is one to the job. */
static void stop_share(struct dt__watchdog *watchdog)
{
    struct dt__heartbeat_table *table = atomic_load(&watchdog->table);
    pthread_mutex_lock(&watchdog->lock);
    if (dt_stop_requested())
        atomic_store(&table->stop, stop_mark(watchdog));
    else if (atomic_load(&table->stop) == stop_mark(watchdog))
        dt_stop_request();
    pthread_mutex_unlock(&watchdog->lock);
}

static void watchdog_look(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    const int64_t now = now_us(), stall = atomic_load(&watchdog->stall_us);
    if (now - watchdog->looked_us > LATE_US) watchdog->woke_us = now;
    watchdog->looked_us = now;
    heartbeat_hold(watchdog, atomic_load(&watchdog->mine));
    atomic_store(&atomic_load(&watchdog->mine)->awake_us, now);
    stop_share(watchdog);
    struct dt_text names = {0};
    char message[DT_ERROR_MAX];
    name_ranks(world, RANK_GONE, now, &names);
    if (names.length) {
        /* Another host may have ended the job: its ranks are asked to stop, then killed in turn. */
        if (dt_stop_requested()) dt_sleep_secs((double)KILLS_US * 1e-6);
        snprintf(message, sizeof message, "%s is gone: killed, or it crashed", names.data);
        dt__world_die(1, DT__CAUSE_LOST, message);
    }
    /* Who was stopped may have been woken by an abort. */
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
        int64_t at = now_us() + LOOK_US;
        struct timespec until = {.tv_sec = (time_t)(at / 1000000),
                                 .tv_nsec = (long)(at % 1000000) * 1000};
        pthread_mutex_lock(&watchdog->lock);
        while (!watchdog->quit && watchdog->held == atomic_load(&watchdog->mine) &&
               !pthread_cond_timedwait(&watchdog->changed, &watchdog->lock, &until))
            continue;
        quit = watchdog->quit;
        pthread_mutex_unlock(&watchdog->lock);
    }
    heartbeat_hold(watchdog, NULL);
    return NULL;
}

dt_status dt__watchdog_start(struct dt_world *world, double stall_secs)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    watchdog->comm = MPI_COMM_NULL;
    watchdog->main = pthread_self();
    watchdog->looked_us = now_us();
    watchdog->patience_secs = stall_secs;
    watchdog->stall_us = (int64_t)(stall_secs * 1e6);
    struct dt__kept **kept = &world->inside->kept;
    DT_TRY(
        dt__keep(kept, (size_t)world->size, sizeof *watchdog->peer, "heartbeats", &watchdog->peer));
    DT_TRY(dt__keep(kept, 1, sizeof *watchdog->alone + sizeof watchdog->alone->row[0],
                    "heartbeat table", &watchdog->alone));
    watchdog->alone->rows = 1;
    heartbeat_table_use(world, watchdog->alone, 0);
    watched_world_set(world, true);
    pthread_condattr_t monotonic;
    pthread_mutex_init(&watchdog->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watchdog->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    DT_TRY(dt_thread_start(&watchdog->thread, "watchdog", watchdog_run, world));
    watchdog->started = true;
    return DT_OK;
}

void dt__watchdog_stop(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    if (!watchdog->mine) return;
    if (atomic_load(&watched_world) == world) dt_work_watch(NULL);
    if (!watchdog->started) return;
    pthread_mutex_lock(&watchdog->lock);
    watchdog->quit = true;
    pthread_cond_signal(&watchdog->changed);
    pthread_mutex_unlock(&watchdog->lock);
    pthread_join(watchdog->thread, NULL);
}

/* MPI ends when all messages are received. The peer's last one may have come already. */
static void peer_part(struct dt__peer *peer, MPI_Comm comm)
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

void dt__watchdog_free(struct dt_world *world)
{
    struct dt__watchdog *watchdog = &world->inside->watchdog;
    watched_world_set(world, false);
    if (world->inside->connected) {
        for (int i = 0; i < watchdog->peers; i++)
            peer_part(&watchdog->peer[i], watchdog->comm);
        if (watchdog->comm != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&watchdog->comm));
        dt__shared_free(&watchdog->shared);
    }
}
